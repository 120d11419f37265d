//! What can go wrong with the meter and the reflector, in words that say what to do about it.

use std::io;

/// Why nothing can be measured or reflected.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// The name is none here.
    #[error("there is no interface `{0}` in this network namespace (`ip link` lists them)")]
    NoSuchInterface(String),
    /// An option is out of its range.
    #[error("{0}")]
    Options(String),
    /// The kernel wants more rights.
    #[error(
        "{what} is not permitted: run with sudo, or give the program CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW"
    )]
    Permission { what: &'static str },
    /// There is not enough memory for the tables.
    #[error(
        "no memory for the meter's tables ({bytes} bytes; {} for each stream, 32 KB for each stream with a histogram, 8 for \
         each arrival time): ask for fewer streams, histograms or arrivals, or raise the limit of this cgroup",
        crate::layout::STREAM_BYTES
    )]
    Memory { bytes: u64 },
    /// The kernel did not take the program.
    #[error("the {program}'s program cannot be loaded: {reason}")]
    Load { program: &'static str, reason: String },
    /// The way that was asked for is not possible, or none is.
    #[error("cannot {what} on {interface}: {reasons}")]
    NotPossible { what: &'static str, interface: String, reasons: String },
    /// A system call that should not fail did.
    #[error("{what}: {error}")]
    System { what: &'static str, error: io::Error },
}
