//! Why a program is not tested, in words that say what to do about it.

use bpf::ProgramError;
use std::io;

/// Why a program is not tested.
#[derive(Debug, thiserror::Error)]
pub enum VerdictsError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    File {
        /// Which one.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// It is no object of BPF.
    #[error(
        "{path} is no object with BPF programs, as `clang -O2 -g -target bpf -c prog.c -o prog.o` makes it: {reason}"
    )]
    NoObject {
        /// Which file.
        path: String,
        /// What libbpf said.
        reason: String,
    },
    /// It holds none for XDP.
    #[error("{path} holds no XDP program; it holds {found}")]
    NoProgram {
        /// Which file.
        path: String,
        /// What is there, with sections.
        found: String,
    },
    /// Several could be meant.
    #[error("{path} holds several XDP programs: name the one that is meant. There are {found}")]
    Several {
        /// Which file.
        path: String,
        /// The programs, with sections.
        found: String,
    },
    /// None has that name.
    #[error("{path} holds no XDP program and no section of one that is called `{wanted}`. There are {found}")]
    NoSuch {
        /// Which file.
        path: String,
        /// What was asked for.
        wanted: String,
        /// The programs, with sections.
        found: String,
    },
    /// The kernel did not take it.
    #[error("Linux {release} does not load the program {program} of {path}. The last lines of why:\n{lines}")]
    NotLoaded {
        /// This kernel.
        release: String,
        /// Its name.
        program: String,
        /// Which file.
        path: String,
        /// The verifier's, or libbpf's.
        lines: String,
    },
    /// The kernel wants more rights.
    #[error(
        "{what} is not permitted: run with sudo, or give the program CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    Permission {
        /// What was tried.
        what: &'static str,
    },
    /// It is not attached.
    #[error("the program cannot be attached to {interface}: {reason}")]
    NotAttached {
        /// Where.
        interface: String,
        /// Why not.
        reason: String,
    },
    /// It is not counted what it says.
    #[error("{0}")]
    Program(#[from] ProgramError),
    /// A system call that should not fail did.
    #[error("{what}: {error}")]
    System {
        /// What it was for.
        what: &'static str,
        /// What it returned.
        error: io::Error,
    },
}
