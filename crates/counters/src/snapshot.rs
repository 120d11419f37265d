//! The counters of a network namespace at one moment, and their file.

use crate::kind::{Kind, kind};
use crate::parse::Read;
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read as _};

/// What a file of a snapshot says it is.
pub const SCHEMA: &str = "netdyno.counters/1";

/// More of one file is not read: /proc/net/udp has 128 bytes for each socket.
const MOST: u64 = 16 << 20;

/// The counters of a network namespace at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: String,
    /// The host's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Of the boot: counters and the monotonic clock begin with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The network namespace, as `readlink /proc/self/ns/net` says it: `net:[4026531840]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// CLOCK_REALTIME, in nanoseconds.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC, in nanoseconds, read just before the counters.
    pub monotonic_ns: u64,
    /// Counters by name: `Tcp.OutSegs`, `if.eth0.rx_packets`. Those named `softnet.` are of the whole host.
    pub counters: BTreeMap<String, u64>,
    /// Gauges by name: `Tcp.CurrEstab`.
    pub gauges: BTreeMap<String, i64>,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The kernel's counters cannot be read.
    #[error("reading {path}: {error}; is /proc mounted?")]
    Unreadable {
        /// Which file.
        path: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// A text is no snapshot.
    #[error("this is no snapshot of counters: {0}; `netdyno counters -w FILE` writes one")]
    Malformed(String),
}

impl Snapshot {
    /// Of the calling thread's network namespace, now. Takes about a millisecond.
    ///
    /// # Errors
    /// That /proc/net/snmp cannot be read. Other files that are not there (no IPv6) are left out.
    pub fn here() -> Result<Snapshot, SnapshotError> {
        const SNMP: &str = "/proc/thread-self/net/snmp";
        let monotonic_ns = clock(ClockId::Monotonic);
        let realtime_ns = clock(ClockId::Realtime);
        let mut read = Read::default();
        read.pairs(&text(SNMP).map_err(|error| SnapshotError::Unreadable { path: SNMP, error })?);
        type Take = fn(&mut Read, &str);
        let files: [(&str, Take); 8] = [
            ("netstat", Read::pairs),
            ("snmp6", Read::names),
            ("dev", Read::interfaces),
            ("softnet_stat", Read::softnet),
            ("sockstat", Read::sockets),
            ("sockstat6", Read::sockets),
            ("udp", Read::udp_sockets),
            ("udp6", Read::udp_sockets),
        ];
        for (file, take) in files {
            if let Ok(text) = text(&format!("/proc/thread-self/net/{file}")) {
                take(&mut read, &text);
            }
        }
        let uname = rustix::system::uname();
        Ok(Snapshot {
            schema: SCHEMA.to_owned(),
            host: Some(uname.nodename().to_string_lossy().into_owned()),
            boot_id: text("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned()),
            namespace: std::fs::read_link("/proc/thread-self/ns/net")
                .ok()
                .map(|link| link.to_string_lossy().into_owned()),
            realtime_ns,
            monotonic_ns,
            counters: read.counters,
            gauges: read.gauges,
        })
    }

    /// Adds what others counted: a driver (`ethtool.eth0`), a queueing discipline (`qdisc.eth0.fq`). `of` comes before the
    /// names. Of two numbers of one name the sum is kept: some drivers name those of each queue alike.
    pub fn add<N: AsRef<str>>(&mut self, of: &str, numbers: impl IntoIterator<Item = (N, u64)>) {
        for (name, number) in numbers {
            let name = format!("{of}.{}", name.as_ref());
            match kind(&name) {
                Kind::Counter => {
                    let sum = self.counters.entry(name).or_default();
                    *sum = sum.wrapping_add(number);
                }
                Kind::Gauge => {
                    let sum = self.gauges.entry(name).or_default();
                    *sum = sum.saturating_add(i64::try_from(number).unwrap_or(i64::MAX));
                }
            }
        }
    }

    /// As a file has it: JSON, indented.
    pub fn to_json(&self) -> String {
        // Maps with text as keys, and numbers: nothing in it can fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads what [`Snapshot::to_json`] wrote.
    ///
    /// # Errors
    /// That it is something else.
    pub fn from_json(text: &str) -> Result<Snapshot, SnapshotError> {
        let read: Snapshot =
            serde_json::from_str(text).map_err(|error| SnapshotError::Malformed(error.to_string()))?;
        if read.schema != SCHEMA {
            let said = format!("its schema is {:?}, not {SCHEMA:?}", read.schema);
            return Err(SnapshotError::Malformed(said));
        }
        Ok(read)
    }
}

fn clock(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn text(path: &str) -> io::Result<String> {
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(MOST).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_of_this_host_has_its_counters_and_comes_back_from_its_file() {
        let here = Snapshot::here().expect("a snapshot");
        for name in [
            "Tcp.OutSegs",
            "TcpExt.TCPTimeouts",
            "Udp.RcvbufErrors",
            "if.lo.rx_bytes",
            "softnet.cpu0.dropped",
        ] {
            assert!(here.counters.contains_key(name), "{name}");
        }
        assert!(here.gauges.contains_key("Tcp.CurrEstab") && here.gauges.contains_key("sockstat.TCP.mem"));
        assert!(here.namespace.as_ref().is_some_and(|name| name.starts_with("net:[")));
        assert_eq!(Snapshot::from_json(&here.to_json()).expect("the same"), here);
    }

    #[test]
    fn a_file_of_something_else_is_refused_with_its_reason() {
        let said = |text: &str| Snapshot::from_json(text).expect_err("no snapshot").to_string();
        assert!(said("{}").contains("schema"), "{}", said("{}"));
        let other =
            r#"{"schema":"netdyno.counters/9","realtime_ns":0,"monotonic_ns":0,"counters":{},"gauges":{}}"#;
        assert!(said(other).contains("netdyno.counters/9"));
        assert!(said("Tcp: 1").contains("-w FILE"));
    }

    #[test]
    fn what_queues_name_alike_is_summed() {
        let mut here = Snapshot::here().expect("a snapshot");
        here.add("ethtool.eth0", [("rx", 1), ("rx", 2)]);
        here.add("qdisc.eth0.fq", [("waiting", 3), ("dropped", 4)]);
        assert_eq!((here.counters["ethtool.eth0.rx"], here.counters["qdisc.eth0.fq.dropped"]), (3, 4));
        assert_eq!(here.gauges["qdisc.eth0.fq.waiting"], 3);
    }
}
