//! What is known of counters by their names: which are gauges, how wide they are, what they are about and what they mean.
//!
//! Names are the kernel's, with the group they stand in before a dot: `TcpExt.TCPTimeouts` as /proc/net/netstat has it,
//! `Ip6.InReceives` of snmp6's `Ip6InReceives`, `if.eth0.rx_dropped`, `softnet.cpu0.time_squeeze`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a number may be subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Counts events, and only rises.
    Counter,
    /// A state or a setting.
    Gauge,
}

/// What a counter is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// TCP segments and connections.
    Tcp,
    /// TCP's retransmissions, and what they were for.
    Retransmission,
    /// Segments out of order, and duplicates.
    Reordering,
    /// Full buffers and windows, and memory that was short.
    Memory,
    /// Connections that came and were not taken.
    Listen,
    /// Checksums and headers that were wrong.
    Malformed,
    /// Explicit congestion notification.
    Ecn,
    /// UDP datagrams and what was dropped of them.
    Udp,
    /// IP packets, their fragments and routes, and ICMP.
    Ip,
    /// Multipath TCP.
    Mptcp,
    /// What interfaces sent, received and dropped.
    Interface,
    /// What drivers count (`ethtool -S`).
    Driver,
    /// Queueing disciplines.
    Qdisc,
    /// The way of packets through this host's CPUs: of the whole host, not of one namespace.
    Softnet,
    /// Anything else.
    Other,
}

impl Topic {
    /// As a heading.
    pub fn title(self) -> &'static str {
        match self {
            Topic::Tcp => "TCP",
            Topic::Retransmission => "TCP retransmission",
            Topic::Reordering => "TCP reordering and duplicates",
            Topic::Memory => "TCP memory, buffers and windows",
            Topic::Listen => "Connections not accepted",
            Topic::Malformed => "Checksums and malformed packets",
            Topic::Ecn => "ECN",
            Topic::Udp => "UDP",
            Topic::Ip => "IP and ICMP",
            Topic::Mptcp => "Multipath TCP",
            Topic::Interface => "Interfaces",
            Topic::Driver => "Drivers (ethtool -S)",
            Topic::Qdisc => "Queueing disciplines",
            Topic::Softnet => "CPUs' packet queues (softnet; of the whole host, all namespaces)",
            Topic::Other => "Other",
        }
    }
}

/// Gauges with a name of their own (RFC 4022 and 4293 have most of them; the kernel's net/ipv4/proc.c prints them).
const GAUGES: [&str; 8] = [
    "Ip.Forwarding",
    "Ip.DefaultTTL",
    "Tcp.RtoAlgorithm",
    "Tcp.RtoMin",
    "Tcp.RtoMax",
    "Tcp.MaxConn",
    "Tcp.CurrEstab",
    "MPTcpExt.MPCurrEstab",
];

/// Whether the number of this name is a counter or a gauge.
pub fn kind(name: &str) -> Kind {
    let last = name.rsplit('.').next().unwrap_or(name);
    let gauge = GAUGES.contains(&name)
        || name.starts_with("sockstat.")
        || name.starts_with("Tls.TlsCurr")
        || name.starts_with("softnet.") && ["backlog", "input_queue", "process_queue"].contains(&last)
        || name.starts_with("qdisc.") && last == "waiting"
        // veth has it among its counters.
        || name.starts_with("ethtool.") && last == "peer_ifindex";
    if gauge { Kind::Gauge } else { Kind::Counter }
}

/// Whether the kernel keeps 32 bits of this counter on every machine.
pub(crate) fn is_narrow(name: &str) -> bool {
    name.starts_with("softnet.") || name.starts_with("udp_socket.") || name.starts_with("qdisc.")
}

/// Whether there may be only 32 bits of it: drivers copy what their hardware has.
pub(crate) fn may_be_narrow(name: &str) -> bool {
    is_narrow(name) || name.starts_with("ethtool.") || name.starts_with("if.")
}

/// What a counter is about.
pub fn topic(name: &str) -> Topic {
    if let Some((_, topic, _)) = KNOWN.iter().find(|(known, _, _)| *known == name) {
        return *topic;
    }
    let (group, rest) = name.split_once('.').unwrap_or((name, ""));
    if rest.contains("CsumErrors") || rest == "InErrs" || rest.contains("HdrErrors") {
        return Topic::Malformed;
    }
    let has = |words: &[&str]| words.iter().any(|word| rest.contains(word));
    match group {
        "Tcp" => Topic::Tcp,
        "TcpExt" if has(&["Retrans", "Fast", "Loss", "Recovery", "Timeout", "Undo", "Spurious", "Probe"]) => {
            Topic::Retransmission
        }
        "TcpExt" if has(&["Reorder", "DSACK", "SACK", "Sack", "OFO", "Ofo"]) => Topic::Reordering,
        "TcpExt" if has(&["Memory", "Prune", "Collaps", "Window", "Win", "Backlog", "RcvQ"]) => Topic::Memory,
        "TcpExt" if has(&["Listen", "Syncookies", "ReqQ"]) => Topic::Listen,
        "TcpExt" => Topic::Tcp,
        "Udp" | "UdpLite" | "Udp6" | "UdpLite6" | "udp_socket" => Topic::Udp,
        "Ip" | "Ip6" | "IpExt" if has(&["ECT", "CEPkts"]) => Topic::Ecn,
        "Ip" | "IpExt" | "Ip6" | "Icmp" | "IcmpMsg" | "Icmp6" => Topic::Ip,
        "MPTcpExt" => Topic::Mptcp,
        "if" => Topic::Interface,
        "ethtool" => Topic::Driver,
        "qdisc" => Topic::Qdisc,
        "softnet" => Topic::Softnet,
        _ => Topic::Other,
    }
}

/// What a counter means, in a few words, where that is not what its name says.
pub fn meaning(name: &str) -> Option<&'static str> {
    if let Some((_, _, meaning)) = KNOWN.iter().find(|(known, _, _)| *known == name) {
        return Some(meaning);
    }
    let last = name.rsplit('.').next()?;
    match (name.split_once('.')?.0, last) {
        ("softnet", "dropped") => {
            Some("packets dropped: a CPU's input queue was full (net.core.netdev_max_backlog)")
        }
        ("softnet", "time_squeeze") => {
            Some("polls that ended with work left (net.core.netdev_budget, netdev_budget_usecs)")
        }
        ("softnet", "flow_limit") => Some("packets dropped by the flow limit"),
        ("softnet", "rps") => Some("wake-ups by another CPU (RPS)"),
        ("if", "rx_dropped") => Some("no buffer, no taker, or dropped by the stack"),
        ("if", "rx_fifo_errors") => Some("the device had no room"),
        ("if", "tx_dropped") => Some("dropped before the device"),
        _ => None,
    }
}

/// Counters whose topic or meaning the name does not say. Meanings: the kernel's Documentation/networking/snmp_counter.rst and
/// its source.
#[rustfmt::skip]
const KNOWN: [(&str, Topic, &str); 62] = [
    ("Tcp.OutSegs", Topic::Tcp, "segments sent, of a super-packet each; not those with retransmitted data only"),
    ("Tcp.RetransSegs", Topic::Retransmission, "segments sent again"),
    ("Tcp.AttemptFails", Topic::Listen, "connections that failed before they were established"),
    ("Tcp.EstabResets", Topic::Tcp, "established connections that were reset"),
    ("Tcp.InErrs", Topic::Malformed, "segments that were malformed"),
    ("TcpExt.TCPTimeouts", Topic::Retransmission, "retransmission timeouts"),
    ("TcpExt.TCPLossProbes", Topic::Retransmission, "tail loss probes sent (RFC 8985)"),
    ("TcpExt.TCPLossProbeRecovery", Topic::Retransmission, "tail losses that a probe repaired"),
    ("TcpExt.TCPFastRetrans", Topic::Retransmission, "segments sent again in fast recovery"),
    ("TcpExt.TCPSlowStartRetrans", Topic::Retransmission, "segments sent again after a timeout"),
    ("TcpExt.TCPLostRetransmit", Topic::Retransmission, "retransmissions that were lost as well"),
    ("TcpExt.TCPSackRecovery", Topic::Retransmission, "times that fast recovery began"),
    ("TcpExt.TCPRetransFail", Topic::Retransmission, "retransmissions that the local host could not send"),
    ("TcpExt.TCPSynRetrans", Topic::Retransmission, "SYN and SYN-ACK segments sent again"),
    ("TcpExt.TCPSpuriousRTOs", Topic::Retransmission, "timeouts that were needless (F-RTO)"),
    ("TcpExt.TCPSpuriousRtxHostQueues", Topic::Retransmission, "retransmissions not sent: the original was still queued here"),
    ("TcpExt.TcpTimeoutRehash", Topic::Retransmission, "new paths tried after a timeout"),
    ("TcpExt.TCPAbortOnTimeout", Topic::Retransmission, "connections given up after too many timeouts"),
    ("TcpExt.TCPDSACKRecv", Topic::Reordering, "duplicates that the peer reported: sent again needlessly"),
    ("TcpExt.TCPDSACKOldSent", Topic::Reordering, "duplicates received and reported"),
    ("TcpExt.TCPSACKReorder", Topic::Reordering, "reordering found by SACK"),
    ("TcpExt.TCPTSReorder", Topic::Reordering, "reordering found by time stamps"),
    ("TcpExt.TCPRenoReorder", Topic::Reordering, "reordering found without SACK"),
    ("TcpExt.TCPOFOQueue", Topic::Reordering, "segments received out of order and kept"),
    ("TcpExt.TCPOFODrop", Topic::Memory, "segments out of order dropped for want of buffer"),
    ("TcpExt.TCPOFOMerge", Topic::Reordering, "segments that overlapped others out of order"),
    ("TcpExt.TCPMemoryPressures", Topic::Memory, "times that TCP came under memory pressure (net.ipv4.tcp_mem)"),
    ("TcpExt.TCPMemoryPressuresChrono", Topic::Memory, "milliseconds under memory pressure"),
    ("TcpExt.TCPAbortOnMemory", Topic::Memory, "connections given up for want of memory"),
    ("TcpExt.PruneCalled", Topic::Memory, "times that a full receive buffer was tidied"),
    ("TcpExt.RcvPruned", Topic::Memory, "segments dropped for a full receive buffer"),
    ("TcpExt.TCPRcvCollapsed", Topic::Memory, "segments joined in a full receive buffer"),
    ("TcpExt.TCPRcvQDrop", Topic::Memory, "segments dropped for a full receive queue"),
    ("TcpExt.TCPBacklogDrop", Topic::Memory, "segments dropped: the socket was busy and its backlog full"),
    ("TcpExt.TCPBacklogCoalesce", Topic::Tcp, "segments joined while the socket was busy"),
    ("TcpExt.TCPZeroWindowDrop", Topic::Memory, "segments dropped that came at a closed window"),
    ("TcpExt.TCPToZeroWindowAdv", Topic::Memory, "times that a receive window was closed"),
    ("TcpExt.TCPFromZeroWindowAdv", Topic::Memory, "times that a receive window was opened again"),
    ("TcpExt.TCPWantZeroWindowAdv", Topic::Memory, "times that a window should have been closed and was not"),
    ("TcpExt.TCPWqueueTooBig", Topic::Memory, "write queues grown too long by small segments"),
    ("TcpExt.TCPRcvCoalesce", Topic::Tcp, "segments joined in the receive queue"),
    ("TcpExt.TCPAutoCorking", Topic::Tcp, "small writes held back to be joined"),
    ("TcpExt.TCPTimeWaitOverflow", Topic::Listen, "TIME-WAIT sockets dropped (net.ipv4.tcp_max_tw_buckets)"),
    ("TcpExt.ListenOverflows", Topic::Listen, "connections refused: the accept queue was full"),
    ("TcpExt.ListenDrops", Topic::Listen, "connections refused at a listening socket, for any reason"),
    ("TcpExt.TCPReqQFullDrop", Topic::Listen, "SYN segments dropped: the SYN queue was full"),
    ("TcpExt.TCPReqQFullDoCookies", Topic::Listen, "SYN segments answered with cookies: the SYN queue was full"),
    ("TcpExt.SyncookiesSent", Topic::Listen, "SYN cookies sent"),
    ("TcpExt.SyncookiesFailed", Topic::Listen, "SYN cookies that were wrong"),
    ("TcpExt.TCPDeliveredCE", Topic::Ecn, "segments acknowledged with a congestion mark"),
    ("TcpExt.IPReversePathFilter", Topic::Ip, "packets dropped by reverse path filtering (rp_filter)"),
    ("IpExt.InCEPkts", Topic::Ecn, "packets received with a congestion mark"),
    ("IpExt.InNoECTPkts", Topic::Ecn, "packets received without ECN"),
    ("Udp.NoPorts", Topic::Udp, "datagrams that nobody listened for"),
    ("Udp.InErrors", Topic::Udp, "datagrams not delivered: full buffers, memory, checksums"),
    ("Udp.RcvbufErrors", Topic::Udp, "datagrams dropped: the socket's receive buffer was full"),
    ("Udp.SndbufErrors", Topic::Udp, "datagrams not sent: the socket's send buffer was full"),
    ("Udp.MemErrors", Topic::Udp, "datagrams dropped for want of memory (net.ipv4.udp_mem)"),
    ("Ip.ReasmFails", Topic::Ip, "packets that could not be put together from their fragments"),
    ("Ip.OutDiscards", Topic::Ip, "packets not sent by this host"),
    ("Ip.OutNoRoutes", Topic::Ip, "packets without a route"),
    ("IpExt.InTruncatedPkts", Topic::Malformed, "packets shorter than their header says"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_limits_are_gauges_and_events_are_counters() {
        for name in [
            "Tcp.CurrEstab",
            "Tcp.MaxConn",
            "sockstat.TCP.mem",
            "softnet.cpu1.backlog",
            "qdisc.eth0.fq.waiting",
        ] {
            assert_eq!(kind(name), Kind::Gauge, "{name}");
        }
        for name in [
            "Tcp.OutSegs",
            "Ip.ReasmTimeout",
            "softnet.cpu1.dropped",
            "qdisc.eth0.fq.dropped",
            "if.a.b.rx_bytes",
        ] {
            assert_eq!(kind(name), Kind::Counter, "{name}");
        }
    }

    #[test]
    fn each_known_counter_is_known_once() {
        for (n, (name, _, _)) in KNOWN.iter().enumerate() {
            assert_eq!(KNOWN.iter().position(|(other, _, _)| other == name), Some(n), "{name}");
        }
    }

    #[test]
    fn unknown_counters_find_their_topic_by_their_words() {
        assert_eq!(topic("TcpExt.TCPSackFailures"), Topic::Reordering);
        assert_eq!(topic("Udp6.InCsumErrors"), Topic::Malformed);
        assert_eq!(topic("Udp6.RcvbufErrors"), Topic::Udp);
        assert_eq!(topic("Ip6.InECT0Pkts"), Topic::Ecn);
        assert_eq!(topic("something.new"), Topic::Other);
    }
}
