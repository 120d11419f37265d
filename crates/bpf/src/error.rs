//! What keeps a program from working at an interface, in words that say what to do about it.

use std::io;

/// Why a program that was made of C is not at work.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The name is none here.
    #[error("there is no interface `{0}` in this network namespace (`ip link` lists them)")]
    NoSuchInterface(String),
    /// The kernel wants more rights.
    #[error(
        "{what} is not permitted: run with sudo, or give the program CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW"
    )]
    Permission {
        /// What was tried: "attaching an XDP program".
        what: &'static str,
    },
    /// There is not enough memory for the maps.
    #[error("no memory for the {program}'s maps ({bytes} bytes): raise the limit of this cgroup")]
    Memory {
        /// Whose maps.
        program: &'static str,
        /// How much they take.
        bytes: u64,
    },
    /// The kernel did not take the program.
    #[error("the {program}'s program cannot be loaded: {reason}")]
    Load {
        /// Which one.
        program: &'static str,
        /// What the kernel or its verifier said.
        reason: String,
    },
    /// The way that was asked for is not possible, or none is.
    #[error("cannot {what} on {interface}: {reasons}")]
    NotPossible {
        /// What was to be done there: "measure".
        what: &'static str,
        /// Where.
        interface: String,
        /// Why each way is not possible.
        reasons: String,
    },
    /// A system call that should not fail did.
    #[error("{what}: {error}")]
    System {
        /// What it was for.
        what: &'static str,
        /// What it returned.
        error: io::Error,
    },
}
