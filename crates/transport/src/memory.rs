//! What connections take of memory: of this process, and of the kernel of the whole host.
//!
//! The kernel accounts for no single connection. Its slab (sockets, files, dentries, epoll's entries) and TCP's buffers are sums of the
//! host: beside other work, and where both ends are on one host, they are not of one end alone.

use serde::{Deserialize, Serialize};

/// At one moment, in bytes. What cannot be read is None.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    process: Option<u64>,
    slab: Option<u64>,
    buffers: Option<u64>,
}

/// What was added between two readings, in bytes; less than 0: it became less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Added {
    /// Connections that were open then.
    pub connections: u64,
    /// Of this process (VmRSS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<i64>,
    /// Of the kernel's slab (Slab in /proc/meminfo).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slab: Option<i64>,
    /// Of TCP's buffers (mem of TCP in /proc/net/sockstat).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<i64>,
}

impl Reading {
    /// Now.
    pub fn now() -> Reading {
        let page = rustix::param::page_size() as u64;
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let sockstat = std::fs::read_to_string("/proc/self/net/sockstat").unwrap_or_default();
        Reading {
            process: statm
                .split_whitespace()
                .nth(1)
                .and_then(|pages| Some(pages.parse::<u64>().ok()? * page)),
            slab: slab(&meminfo),
            buffers: tcp_pages(&sockstat).map(|pages| pages * page),
        }
    }

    /// From this one until `later`, when so many connections were open.
    pub fn until(&self, later: &Reading, connections: u64) -> Added {
        let added = |before: Option<u64>, after: Option<u64>| {
            let [before, after] = [before?, after?].map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
            Some(after - before)
        };
        Added {
            connections,
            process: added(self.process, later.process),
            slab: added(self.slab, later.slab),
            buffers: added(self.buffers, later.buffers),
        }
    }
}

fn slab(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Slab:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// `TCP: inuse 5 orphan 0 tw 0 alloc 7 mem 3`.
fn tcp_pages(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "mem")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_sums_are_read_and_what_is_not_there_is_left_out() {
        assert_eq!(slab("MemTotal:  1 kB\nSlab:   12 kB\nSReclaimable: 3 kB\n"), Some(12 * 1024));
        assert_eq!(
            tcp_pages("sockets: used 9\nTCP: inuse 5 orphan 0 tw 0 alloc 7 mem 3\nUDP: inuse 0\n"),
            Some(3)
        );
        assert_eq!((slab(""), tcp_pages("TCP: inuse 5\n")), (None, None));
        let now = Reading::now();
        assert!(now.process.is_some_and(|bytes| bytes > 100_000) && now.slab.is_some(), "{now:?}");
        let less = Reading { process: now.process.map(|bytes| bytes - 4096), ..now };
        assert_eq!(now.until(&less, 2).process, Some(-4096));
    }
}
