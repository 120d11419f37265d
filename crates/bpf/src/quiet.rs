//! What libbpf has to say is kept for the error, instead of being written over the user's screen.

use crate::kernel;
use libbpf_rs::{PrintLevel, set_print};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What libbpf last complained about.
static LOG: Mutex<String> = Mutex::new(String::new());

/// While it lives, libbpf's messages are kept. Loading is rare, so loads wait for each other.
#[derive(Debug)]
pub struct Quiet(#[allow(dead_code, reason = "held for its lock")] MutexGuard<'static, ()>);

fn log() -> MutexGuard<'static, String> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Quiet {
    /// Begins to keep.
    pub fn start() -> Quiet {
        static ONE: Mutex<()> = Mutex::new(());
        let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        log().clear();
        set_print(Some((PrintLevel::Warn, |_, message| log().push_str(&message))));
        Quiet(guard)
    }

    /// Drops what was kept up to now, before another load.
    pub fn forget() {
        log().clear();
    }

    /// Whether the verifier said why it refused.
    pub fn has_verifiers_log() -> bool {
        log().contains("PROG LOAD LOG")
    }

    /// The last lines that say why an object was not loaded, at most so many: the verifier's where it has spoken, else libbpf's.
    pub fn last_lines(most: usize) -> Vec<String> {
        kernel::last_lines(&log(), most)
    }

    /// Why the kernel did not load a program, in one line.
    pub fn refusal(error: &str) -> String {
        kernel::refusal(&log(), error)
    }
}
