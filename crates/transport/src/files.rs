//! How many files this process may have open (RLIMIT_NOFILE): raised for as many connections as are wanted, or refused by a name.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files of a process that are no connections: of libraries, reports, listeners, epoll.
const OTHERS: u64 = 256;

/// So many connections take more files than this process may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process may open {most} files (RLIMIT_NOFILE), and {connections} connections take {wanted}: raise its hard limit (ulimit -Hn, \
     LimitNOFILE of a systemd unit), or open fewer"
)]
pub struct TooFewFiles {
    connections: u64,
    wanted: u64,
    most: u64,
}

/// Raises the soft limit for `connections` beside what the process has anyway, and the hard limit where that is permitted
/// (CAP_SYS_RESOURCE). Never lowers it.
///
/// # Errors
/// The limit stays below it.
pub fn raise(connections: u64) -> Result<(), TooFewFiles> {
    let wanted = connections.saturating_add(OTHERS);
    let most = raised(wanted);
    if most < wanted { Err(TooFewFiles { connections, wanted, most }) } else { Ok(()) }
}

/// How many connections fit beside what the process has anyway, of at most `connections`. Raises the limits as [`raise`] does.
pub fn fit(connections: u64) -> u64 {
    raised(connections.saturating_add(OTHERS)).saturating_sub(OTHERS).min(connections)
}

/// The limit, once it is raised towards `wanted`.
fn raised(wanted: u64) -> u64 {
    let now = getrlimit(Resource::Nofile);
    let Some(soft) = now.current.filter(|soft| *soft < wanted) else {
        return now.current.unwrap_or(u64::MAX);
    };
    let hard = now.maximum.unwrap_or(u64::MAX);
    let set = |current: u64, maximum: u64| {
        let new = Rlimit { current: Some(current), maximum: now.maximum.is_some().then_some(maximum) };
        setrlimit(Resource::Nofile, new).is_ok()
    };
    if wanted > hard && set(wanted, wanted) {
        return wanted;
    }
    let most = wanted.min(hard);
    if set(most, hard) { most } else { soft }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said_by_its_limit() {
        // More than any kernel permits (fs.nr_open is at most 2^31).
        let said = raise(1 << 40).expect_err("too many").to_string();
        assert!(said.contains("RLIMIT_NOFILE") && said.contains("1099511627776 connections"), "{said}");
        assert_eq!(raise(1), Ok(()));
        assert_eq!(fit(1), 1);
    }
}
