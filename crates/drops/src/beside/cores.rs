//! What CPUs dropped at their backlogs: columns of `/proc/net/softnet_stat`, which counts for all network namespaces together.

use std::collections::BTreeMap;

/// What one CPU counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Core {
    /// Frames for which its backlog had no room.
    pub dropped: u32,
    /// How often its budget or time was over while frames were left.
    pub time_squeeze: u32,
}

/// By its number.
pub type Cores = BTreeMap<u32, Core>;

/// Reads them; where they cannot be read there are none.
pub fn read() -> Cores {
    parse(&std::fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default())
}

pub(super) fn parse(text: &str) -> Cores {
    let core = |(cpu, columns): (u32, Vec<Option<u32>>)| {
        let column = |at: usize| columns.get(at).copied().flatten();
        Some((cpu, Core { dropped: column(1)?, time_squeeze: column(2)? }))
    };
    port::softnet::rows(text).filter_map(core).collect()
}

/// Those that dropped anything since.
pub fn since(now: &Cores, earlier: &Cores) -> Cores {
    let rise = |(cpu, now): (&u32, &Core)| {
        let then = earlier.get(cpu).copied().unwrap_or_default();
        let dropped = now.dropped.wrapping_sub(then.dropped);
        let time_squeeze = now.time_squeeze.wrapping_sub(then.time_squeeze);
        (dropped > 0).then_some((*cpu, Core { dropped, time_squeeze }))
    };
    now.iter().filter_map(rise).collect()
}
