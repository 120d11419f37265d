//! What a host and an interface count while a run lasts: the numbers behind `ip -s link`, `ethtool -S`, `nstat` and
//! `/proc/net/softnet_stat`, read before and after, and which of them tell where frames went.
//!
//! Nothing is switched on for it. What cannot be read here (a driver without statistics, a kernel without IPv6) is
//! left out.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::ethtool::Ethtool;
use crate::interface::{CounterReader, LINK_COUNTERS};

/// Who counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The kernel, for the interface: `ip -s -s link`.
    Interface,
    /// The driver: `ethtool -S`.
    Driver,
    /// The network stack of the interface's namespace: `nstat`.
    Stack,
    /// The cores of this machine, all namespaces together: `/proc/net/softnet_stat`.
    Cores,
}

impl Source {
    /// As it stands in results.
    pub fn name(self) -> &'static str {
        match self {
            Source::Interface => "interface",
            Source::Driver => "driver",
            Source::Stack => "stack",
            Source::Cores => "cores",
        }
    }
}

/// A counter that rose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rise {
    /// Who counts.
    pub source: Source,
    /// By the name it has where the source says.
    pub name: String,
    /// By so many.
    pub by: u64,
}

/// Packets that went through one queue of an interface, as its driver counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// One that receives; else one that sends.
    pub receives: bool,
    /// Its number, from 0.
    pub number: u32,
    /// Packets since the interface was made.
    pub packets: u64,
}

/// Frames that go into a counter are gone: why, and what helps.
struct Meaning {
    source: Source,
    /// The whole name.
    name: &'static str,
    says: &'static str,
}

const fn meaning(source: Source, name: &'static str, says: &'static str) -> Meaning {
    Meaning { source, name, says }
}

const MEANINGS: [Meaning; 20] = [
    meaning(
        Source::Interface,
        "rx_missed_errors",
        "the receive ring was full: a larger one (ethtool -G), more queues, or a lower rate",
    ),
    meaning(Source::Interface, "rx_dropped", "dropped by the kernel on arrival, before a socket saw them"),
    meaning(Source::Interface, "rx_fifo_errors", "the interface's own memory was full"),
    meaning(Source::Interface, "rx_over_errors", "the interface's own memory was full"),
    meaning(Source::Interface, "rx_crc_errors", "arrived damaged (FCS): the cable, the optics or the device"),
    meaning(Source::Interface, "rx_frame_errors", "arrived damaged (alignment): the cable or the device"),
    meaning(Source::Interface, "rx_length_errors", "longer than the MTU of the interface allows"),
    meaning(
        Source::Interface,
        "rx_nohandler",
        "arrived at an interface that hands nothing on (a member of a team or bond that is down)",
    ),
    meaning(
        Source::Interface,
        "tx_dropped",
        "dropped on the way out: the transmit queue or the peer's was full",
    ),
    meaning(Source::Interface, "tx_errors", "not transmitted by the driver"),
    meaning(Source::Interface, "tx_fifo_errors", "not transmitted: the interface's own memory ran empty"),
    meaning(Source::Interface, "tx_carrier_errors", "not transmitted: no carrier"),
    meaning(
        Source::Cores,
        "dropped",
        "the backlog of a core was full: a higher net.core.netdev_max_backlog, or receiving on more cores",
    ),
    meaning(Source::Stack, "IpInHdrErrors", "thrown away for a wrong IP header"),
    meaning(Source::Stack, "IpInDiscards", "thrown away for want of memory"),
    meaning(Source::Stack, "UdpInCsumErrors", "thrown away for a wrong UDP checksum"),
    meaning(Source::Stack, "TcpInCsumErrors", "thrown away for a wrong TCP checksum"),
    meaning(
        Source::Stack,
        "UdpRcvbufErrors",
        "the buffer of a UDP socket was full: a higher net.core.rmem_max, or a faster reader",
    ),
    meaning(Source::Stack, "IpExtInTruncatedPkts", "shorter than their IP header says"),
    meaning(Source::Stack, "TcpExtTCPBacklogDrop", "the backlog of a TCP socket was full"),
];

/// Parts of drivers' names for frames that were lost. `ethtool -S` has no common names.
const LOSING: [&str; 9] =
    ["drop", "discard", "no_buf", "nobuf", "no_desc", "missed", "overrun", "overflow", "crc_err"];
/// What our own meter drops after counting it, as XDP's verdict.
const OURS: &str = "xdp_drop";

impl Rise {
    /// Where frames went, if this counter tells.
    pub fn meaning(&self) -> Option<&'static str> {
        if self.source == Source::Driver {
            let lost = LOSING.iter().any(|part| self.name.contains(part)) && !self.name.contains(OURS);
            return lost.then_some("dropped by the driver or the device");
        }
        let found =
            MEANINGS.iter().find(|meaning| meaning.source == self.source && meaning.name == self.name);
        found.map(|meaning| meaning.says)
    }
}

type Values = BTreeMap<(Source, String), u64>;

/// One end of a run, from [`Watch::begin`] on.
#[derive(Debug)]
pub struct Watch {
    link: Option<CounterReader>,
    driver: Option<Ethtool>,
    /// Opened in the namespace, they tell of it wherever they are read.
    stack: Vec<File>,
    cores: Option<File>,
    before: Values,
}

/// Files of `/proc/net` with lines of names and lines of values, and one of pairs.
const STACK: [&str; 3] = ["snmp", "netstat", "snmp6"];

impl Watch {
    /// Reads for the first time. To be called in the interface's namespace. `with_cores`: the machine's cores, too,
    /// which one of several watches is enough for.
    pub fn begin(interface: &str, with_cores: bool) -> Watch {
        let proc = |name: &str| File::open(format!("/proc/thread-self/net/{name}")).ok();
        let mut watch = Watch {
            link: CounterReader::open(interface).ok(),
            driver: Ethtool::open(interface).ok(),
            stack: STACK.iter().filter_map(|name| proc(name)).collect(),
            cores: with_cores.then(|| proc("softnet_stat")).flatten(),
            before: Values::new(),
        };
        watch.before = watch.read();
        watch
    }

    /// What rose since.
    pub fn end(mut self) -> Vec<Rise> {
        self.rises()
    }

    /// What has risen so far.
    pub fn rises(&mut self) -> Vec<Rise> {
        self.look().0
    }

    /// What has risen so far, and what went through each queue meanwhile, where the driver tells.
    pub fn look(&mut self) -> (Vec<Rise>, Vec<Queue>) {
        let after = self.read();
        let of_driver = |values: &Values| {
            let driver = values.iter().filter(|((source, _), _)| *source == Source::Driver);
            queues(driver.map(|((_, name), value)| (name.as_str(), *value)))
        };
        let then = of_driver(&self.before);
        let before = |queue: &Queue| {
            let same = |then: &&Queue| (then.receives, then.number) == (queue.receives, queue.number);
            then.iter().find(same).map_or(0, |then| then.packets)
        };
        let since = |queue: Queue| Queue { packets: queue.packets.saturating_sub(before(&queue)), ..queue };
        let queues: Vec<Queue> = of_driver(&after).into_iter().map(since).collect();
        let rises = after.into_iter().filter_map(|((source, name), value)| {
            let before = self.before.get(&(source, name.clone())).copied().unwrap_or(0);
            // Gauges fall, and drivers start again from zero.
            let by = value.checked_sub(before).filter(|by| *by > 0)?;
            Some(Rise { source, name, by })
        });
        (rises.collect(), queues)
    }

    fn read(&mut self) -> Values {
        let mut values = Values::new();
        if let Some(words) = self.link.as_mut().and_then(|link| link.read_all().ok()) {
            let named = LINK_COUNTERS.iter().zip(words);
            values.extend(named.map(|(name, value)| ((Source::Interface, (*name).to_owned()), value)));
        }
        if let Some(pairs) = self.driver.as_ref().and_then(|driver| driver.statistics().ok()) {
            values.extend(pairs.into_iter().map(|(name, value)| ((Source::Driver, name), value)));
        }
        for file in &self.stack {
            let pairs = stack(&text(file));
            values.extend(pairs.into_iter().map(|(name, value)| ((Source::Stack, name), value)));
        }
        if let Some(file) = &self.cores {
            let pairs = softnet(&text(file));
            values.extend(pairs.into_iter().map(|(name, value)| ((Source::Cores, name.to_owned()), value)));
        }
        values
    }
}

/// A file of `/proc` from its beginning; what cannot be read is nothing.
fn text(file: &File) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 8192];
    // More than any of these files has: a loop must end.
    while bytes.len() < 1 << 20 {
        match file.read_at(&mut chunk, bytes.len() as u64) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `Udp: InDatagrams NoPorts` above `Udp: 12 3`, or `Udp6InDatagrams 12`: names as `nstat` has them.
fn stack(text: &str) -> Vec<(String, u64)> {
    let mut pairs = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((group, names)) = line.split_once(": ") else {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
                pairs.push((name.to_owned(), value));
            }
            continue;
        };
        let values = lines.next().and_then(|line| line.split_once(": ")).map_or("", |(_, values)| values);
        let both = names.split_whitespace().zip(values.split_whitespace());
        // Some are negative, none of which count frames.
        pairs.extend(both.filter_map(|(name, value)| Some((format!("{group}{name}"), value.parse().ok()?))));
    }
    pairs
}

/// The queues among a driver's counters, receiving ones first. There is no common way to name them:
/// `rx_queue_0_packets` (virtio, igb, ixgbe), `rx0_packets` (mlx5), `rx-0.packets` (i40e), `queue_0_rx_cnt` (ena),
/// `rx_packets[0]` (gve), `rx_queue_0_xdp_packets` and `tx_queue_0_xdp_xmit` (veth, which counts no others).
fn queues<'a>(counters: impl Iterator<Item = (&'a str, u64)>) -> Vec<Queue> {
    let mut found: BTreeMap<(bool, bool, u32), u64> = BTreeMap::new();
    for (name, packets) in counters {
        if let Some((sends, by_xdp, number)) = queue_of(name) {
            *found.entry((sends, by_xdp, number)).or_default() += packets;
        }
    }
    // What XDP saw is a part of all that a queue had, where that is counted.
    let all = [false, true].map(|sends| found.keys().any(|key| (key.0, key.1) == (sends, false)));
    found.retain(|&(sends, by_xdp, _), _| !(by_xdp && all[usize::from(sends)]));
    found
        .into_iter()
        .map(|((sends, _, number), packets)| Queue { receives: !sends, number, packets })
        .collect()
}

/// Which queue a counter of packets is of: a sending one, what XDP took only, its number.
fn queue_of(name: &str) -> Option<(bool, bool, u32)> {
    let mut words: Vec<&str> = Vec::new();
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        let digits = part.find(|c: char| c.is_ascii_digit()).unwrap_or(part.len());
        let (letters, number) = part.split_at(digits);
        words.extend([letters, number].into_iter().filter(|word| !word.is_empty()));
    }
    let (way, number, by_xdp) = match words[..] {
        [way, number, "packets" | "pkts"]
        | [way, "queue", number, "packets" | "pkts"]
        | ["queue", number, way, "cnt" | "packets"]
        | [way, "packets", number] => (way, number, false),
        [way @ "rx", "queue", number, "xdp", "packets"] | [way @ "tx", "queue", number, "xdp", "xmit"] => {
            (way, number, true)
        }
        _ => return None,
    };
    let sends = match way {
        "rx" => false,
        "tx" => true,
        _ => return None,
    };
    Some((sends, by_xdp, number.parse().ok()?))
}

/// Sums over the cores of `/proc/net/softnet_stat`, whose columns are hexadecimal.
fn softnet(text: &str) -> Vec<(&'static str, u64)> {
    const COLUMNS: [(usize, &str); 4] =
        [(0, "processed"), (1, "dropped"), (2, "time_squeeze"), (10, "flow_limit_count")];
    let rows: Vec<Vec<Option<u32>>> = crate::softnet::rows(text).map(|(_, columns)| columns).collect();
    let sum = |column: usize| rows.iter().filter_map(|row| *row.get(column)?).map(u64::from).sum();
    COLUMNS.iter().map(|&(column, name)| (name, sum(column))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_proc_net_are_read() {
        let snmp = "Ip: Forwarding InReceives\nIp: 1 20\nTcp: MaxConn ActiveOpens\nTcp: -1 7\n";
        let expected = [("IpForwarding", 1), ("IpInReceives", 20), ("TcpActiveOpens", 7)];
        assert_eq!(stack(snmp), expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(stack("Ip6InReceives   \t 5\nbroken\nUdp6:\n"), [("Ip6InReceives".to_owned(), 5)]);
        assert_eq!(stack("Ip: A B\n"), []);
    }

    #[test]
    fn cores_are_added_up() {
        let two = "0000000a 00000001 00000002 0 0 0 0 0 0 0 00000003 0 0\n00000010 00000002 0 0 0 0 0 0 0 0 0 0 1\n";
        let sums = [("processed", 26), ("dropped", 3), ("time_squeeze", 2), ("flow_limit_count", 3)];
        assert_eq!(softnet(two), sums);
    }

    #[test]
    fn queues_are_told_however_drivers_name_them() {
        for (name, queue) in [
            ("rx_queue_3_packets", Some((false, false, 3))),
            ("tx12_packets", Some((true, false, 12))),
            ("rx-0.packets", Some((false, false, 0))),
            ("queue_7_tx_cnt", Some((true, false, 7))),
            ("rx_packets[2]", Some((false, false, 2))),
            ("rx_queue_0_xdp_packets", Some((false, true, 0))),
            ("tx_queue_1_xdp_xmit", Some((true, true, 1))),
            ("tx_queue_1_xdp_xmit_errors", None),
            ("rx_queue_0_drops", None),
            ("rx_packets", None),
            ("rx_99999999999_packets", None),
            ("", None),
        ] {
            assert_eq!(queue_of(name), queue, "{name}");
        }
        let counters =
            [("rx0_packets", 9), ("rx_queue_0_xdp_packets", 5), ("tx_queue_0_xdp_xmit", 4), ("x", 1)];
        let [received, sent] =
            [(true, 9), (false, 4)].map(|(receives, packets)| Queue { receives, number: 0, packets });
        assert_eq!(queues(counters.into_iter()), [received, sent]);
    }

    #[test]
    fn what_a_counter_means_is_known_only_where_frames_are_gone() {
        let rise = |source, name: &str| Rise { source, name: name.to_owned(), by: 1 };
        assert!(rise(Source::Cores, "dropped").meaning().is_some());
        assert!(rise(Source::Driver, "rx_out_of_buffer_drops").meaning().is_some());
        for (source, name) in [
            (Source::Driver, "rx_queue_0_xdp_drops"),
            (Source::Driver, "rx_packets"),
            (Source::Interface, "rx_packets"),
            (Source::Cores, "processed"),
        ] {
            assert_eq!(rise(source, name).meaning(), None, "{name}");
        }
    }

    #[test]
    fn what_happens_on_this_host_is_seen() {
        let watch = Watch::begin("lo", true);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        socket.recv(&mut [0]).unwrap();
        let rises = watch.end();
        let by =
            |source, name: &str| rises.iter().find(|r| r.source == source && r.name == name).map(|r| r.by);
        assert!(by(Source::Interface, "rx_packets") >= Some(1), "{rises:?}");
        assert!(by(Source::Stack, "UdpInDatagrams") >= Some(1), "{rises:?}");
        assert!(by(Source::Cores, "processed") >= Some(1), "{rises:?}");
    }
}
