//! What keeps drops from being traced, in words that say what to do about it.

/// Why drops are not traced.
#[derive(Debug, thiserror::Error)]
pub enum DropsError {
    /// The kernel wants more rights.
    #[error(
        "tracing what the kernel drops needs {missing}: run with sudo, or give the program its rights: setcap \
         cap_bpf,cap_perfmon,cap_syslog+ep {program}"
    )]
    Permission {
        /// "CAP_BPF and CAP_PERFMON".
        missing: String,
        /// The path of the running program.
        program: String,
    },
    /// The kernel does not say how its structures are laid out.
    #[error(
        "this kernel ({release}) does not describe itself (/sys/kernel/btf/vmlinux: {reason}), so that drops cannot be traced: it needs \
         CONFIG_DEBUG_INFO_BTF, which distributions' kernels of Linux 5.10 and newer have"
    )]
    NoBtf {
        /// As `uname -r` prints it.
        release: String,
        /// What reading it came to.
        reason: String,
    },
    /// No program may read the kernel's memory.
    #[error(
        "this kernel is locked down (confidentiality, in /sys/kernel/security/lockdown), which lets no program see what it drops: boot \
         with lockdown=integrity"
    )]
    LockedDown,
    /// The kernel did not take the program.
    #[error("the program that traces drops cannot be loaded: {reason}")]
    Load {
        /// What the kernel or its verifier said.
        reason: String,
    },
    /// A system call that should not fail did.
    #[error("{what}: {error}")]
    System {
        /// What it was for.
        what: &'static str,
        /// What it returned.
        error: std::io::Error,
    },
}
