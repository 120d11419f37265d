//! Which signals end a run.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Those that people and other programs end a run by. A hangup that was ignored when this process began (`nohup`, a
/// script's `trap '' HUP`) stays ignored, as it does in programs that know nothing of it.
pub fn ending_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangup = (!ignores(&status, SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hangup).collect()
}

/// Whether the terminal's end shall not end the run.
#[cfg(feature = "tui")]
pub(crate) fn outlives_the_terminal() -> bool {
    !ending_signals().contains(&SIGHUP)
}

/// Whether a process with this status (proc_pid_status(5)) ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert_eq!([SIGHUP, SIGINT, 13].map(|signal| ignores(status, signal)), [true, false, true]);
        assert!(!ignores("", SIGHUP) && !ignores("SigIgn:\tx\n", SIGHUP));
    }
}
