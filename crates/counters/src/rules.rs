//! What follows from a difference: each rule has a code, its condition, and a sentence that says what to do.
//!
//! A rule says what the kernel's counters prove, not what may be. docs/counters.md lists them. They speak of the whole
//! namespace, because its counters do.

use crate::difference::Difference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Explains figures.
    Explanation,
    /// Something was lost, refused or held up.
    Warning,
}

/// What follows from counters, by a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// The rule's code: `udp-receiver-too-slow`.
    pub rule: String,
    /// How much it matters.
    pub weight: Weight,
    /// For a person.
    pub text: String,
}

/// Counters by name; what did not move is 0.
struct Moved<'a>(&'a Difference);

impl Moved<'_> {
    fn of(&self, name: &str) -> u64 {
        self.0.changed(name).unwrap_or(0)
    }

    /// Sum over UDP of IPv4 and IPv6, UDP-Lite left out.
    fn udp(&self, name: &str) -> u64 {
        self.of(&format!("Udp.{name}")) + self.of(&format!("Udp6.{name}"))
    }

    /// Sum over names of a group that end so: `softnet.*.dropped`.
    fn all(&self, group: &str, last: &str) -> u64 {
        let changes = self.0.groups.iter().flat_map(|group| &group.changes);
        let fits = changes.filter(|change| {
            let rest = change.name.strip_prefix(group).and_then(|rest| rest.strip_prefix('.'));
            rest.and_then(|rest| rest.rsplit_once('.')).is_some_and(|(_, of)| of == last)
        });
        fits.filter_map(|change| change.by).fold(0, u64::saturating_add)
    }

    /// `last` of those of a group that have one, each by the name of what counted.
    fn who(&self, group: &str, last: &[&str]) -> Vec<(String, String, u64)> {
        let changes = self.0.groups.iter().flat_map(|group| &group.changes);
        let found = changes.filter_map(|change| {
            let (who, of) = change.name.strip_prefix(group)?.strip_prefix('.')?.rsplit_once('.')?;
            last.contains(&of).then_some((who.to_owned(), of.to_owned(), change.by?))
        });
        found.collect()
    }
}

/// `3 segments`, `1 segment`.
fn n(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "?".to_owned() } else { format!("{:.4}%", 100.0 * part as f64 / whole as f64) }
}

/// Notes of all rules that apply.
pub(crate) fn notes(of: &Difference) -> Vec<Note> {
    let moved = Moved(of);
    let mut notes = Vec::new();
    let mut say =
        |rule: &str, weight: Weight, text: String| notes.push(Note { rule: rule.to_owned(), weight, text });
    tcp_sending(&moved, &mut say);
    tcp_receiving(&moved, &mut say);
    listening(&moved, &mut say);
    udp(&moved, &mut say);
    below(&moved, &mut say);
    notes
}

use Weight::{Explanation, Warning};

fn tcp_sending(moved: &Moved<'_>, say: &mut impl FnMut(&str, Weight, String)) {
    let (sent, again) = (moved.of("Tcp.OutSegs"), moved.of("Tcp.RetransSegs"));
    if again > 0 && sent > 0 {
        let text = format!(
            "TCP sent {} again: {} of {sent} in Tcp.OutSegs",
            n(again, "segment"),
            percent(again, sent)
        );
        say("tcp-retransmission", Warning, text);
    }
    let (timeouts, probes) = (moved.of("TcpExt.TCPTimeouts"), moved.of("TcpExt.TCPLossProbes"));
    if timeouts > 0 && probes == 0 {
        let text = format!(
            "{} and no tail loss probe: what was lost was a SYN, a whole window, or the peer has no SACK (RFC 8985); each \
             timeout costs 200 ms or more",
            n(timeouts, "retransmission timeout")
        );
        say("tcp-timeouts-without-probes", Warning, text);
    } else if timeouts > 0 {
        let text = format!(
            "{} beside {}: probes did not repair all tail losses; each timeout costs 200 ms or more",
            n(timeouts, "retransmission timeout"),
            n(probes, "tail loss probe")
        );
        say("tcp-timeouts", Warning, text);
    }
    let needless = moved.of("TcpExt.TCPDSACKRecv") + moved.of("TcpExt.TCPDSACKOfoRecv");
    if needless > 0 && again > 0 {
        let text = format!(
            "the peer had {} already that TCP sent again (DSACK): not lost but late or reordered, or its acknowledgment was lost",
            n(needless, "segment")
        );
        say("tcp-needless-retransmission", Explanation, text);
    }
    let queued = moved.of("TcpExt.TCPSpuriousRtxHostQueues");
    if queued > 0 {
        let text = format!(
            "{} not sent again because the original still waited in this host's queue: the local qdisc or driver is slow, \
             not the network",
            n(queued, "segment")
        );
        say("tcp-local-queue", Explanation, text);
    }
    let reordered = ["TCPSACKReorder", "TCPTSReorder", "TCPRenoReorder"];
    let reordered: u64 = reordered.iter().map(|name| moved.of(&format!("TcpExt.{name}"))).sum();
    if reordered > 0 {
        let text = format!("the network reordered segments: TCP found that {}", n(reordered, "time"));
        say("tcp-reordering", Explanation, text);
    }
    let given_up = moved.of("TcpExt.TCPAbortOnTimeout");
    if given_up > 0 {
        let text =
            format!("{} given up after too many timeouts (net.ipv4.tcp_retries2)", n(given_up, "connection"));
        say("tcp-given-up", Warning, text);
    }
    let marked = moved.of("TcpExt.TCPDeliveredCE");
    if marked > 0 {
        let text = format!(
            "{} acknowledged with a congestion mark (ECN): a queue on the path is full",
            n(marked, "segment")
        );
        say("ecn-acknowledged", Explanation, text);
    }
}

fn tcp_receiving(moved: &Moved<'_>, say: &mut impl FnMut(&str, Weight, String)) {
    let closed = moved.of("TcpExt.TCPToZeroWindowAdv");
    if closed > 0 {
        let text = format!(
            "a receive window was closed {}: a program here read more slowly than its peer sent",
            n(closed, "time")
        );
        say("tcp-receiver-too-slow", Explanation, text);
    }
    let dropped = ["RcvPruned", "TCPRcvQDrop", "TCPBacklogDrop", "TCPOFODrop", "TCPZeroWindowDrop"];
    let told: Vec<String> = dropped
        .iter()
        .filter_map(|name| Some((name, moved.of(&format!("TcpExt.{name}")))).filter(|(_, by)| *by > 0))
        .map(|(name, by)| format!("{name} {by}"))
        .collect();
    if !told.is_empty() {
        let text = format!(
            "this host dropped segments that had arrived, for want of buffer ({}): its senders see loss that the network did \
             not cause; net.ipv4.tcp_rmem bounds buffers",
            told.join(", ")
        );
        say("tcp-receive-buffer", Warning, text);
    }
    let pressure = moved.of("TcpExt.TCPMemoryPressures") + moved.of("TcpExt.TCPAbortOnMemory");
    if pressure > 0 {
        let text =
            "TCP of this host came under memory pressure (net.ipv4.tcp_mem): windows shrink".to_owned();
        say("tcp-memory-pressure", Warning, text);
    }
}

fn listening(moved: &Moved<'_>, say: &mut impl FnMut(&str, Weight, String)) {
    let (overflows, drops) = (moved.of("TcpExt.ListenOverflows"), moved.of("TcpExt.ListenDrops"));
    if overflows > 0 {
        let text = format!(
            "{} refused because an accept queue was full (ListenOverflows): the server accepts too slowly; its backlog, and \
             net.core.somaxconn above it, bound the queue",
            n(overflows, "connection")
        );
        say("listen-overflow", Warning, text);
    }
    if drops > overflows {
        let text = format!(
            "{} dropped at listening sockets for other reasons than a full accept queue (ListenDrops)",
            n(drops - overflows, "connection")
        );
        say("listen-drops", Warning, text);
    }
    let (cookies, full) = (moved.of("TcpExt.TCPReqQFullDoCookies"), moved.of("TcpExt.TCPReqQFullDrop"));
    if cookies + full > 0 {
        let text = format!(
            "a SYN queue was full: {cookies} answered with cookies, {full} dropped (net.ipv4.tcp_max_syn_backlog)"
        );
        say("syn-queue-full", Warning, text);
    }
    let waits = moved.of("TcpExt.TCPTimeWaitOverflow");
    if waits > 0 {
        let text = format!("{} dropped in TIME-WAIT (net.ipv4.tcp_max_tw_buckets)", n(waits, "socket"));
        say("time-wait-overflow", Warning, text);
    }
}

fn udp(moved: &Moved<'_>, say: &mut impl FnMut(&str, Weight, String)) {
    let (full, delivered) = (moved.udp("RcvbufErrors"), moved.udp("InDatagrams"));
    if full > 0 {
        let text = format!(
            "{} of {} that arrived were dropped at a full socket buffer (RcvbufErrors): the receiving program was too slow, not \
             the network; SO_RCVBUF, bounded by net.core.rmem_max, bridges bursts",
            n(full, "UDP datagram"),
            full.saturating_add(delivered)
        );
        say("udp-receiver-too-slow", Warning, text);
    }
    let memory = moved.udp("MemErrors");
    if memory > 0 {
        let text = format!("{} dropped for want of memory (net.ipv4.udp_mem)", n(memory, "UDP datagram"));
        say("udp-memory", Warning, text);
    }
    let nobody = moved.udp("NoPorts");
    if nobody > 0 {
        let text = format!("{} came for ports that nobody listened at (NoPorts)", n(nobody, "UDP datagram"));
        say("udp-nobody-listens", Warning, text);
    }
    let unsent = moved.udp("SndbufErrors");
    if unsent > 0 {
        let text =
            format!("{} not sent: this host's own queue was full (SndbufErrors)", n(unsent, "UDP datagram"));
        say("udp-not-sent", Warning, text);
    }
}

/// IP, checksums, interfaces, CPUs.
fn below(moved: &Moved<'_>, say: &mut impl FnMut(&str, Weight, String)) {
    let wrong: Vec<String> = ["Tcp", "Udp", "Udp6", "Icmp", "Icmp6", "IpExt"]
        .iter()
        .filter_map(|group| {
            Some((group, moved.of(&format!("{group}.InCsumErrors")))).filter(|(_, by)| *by > 0)
        })
        .map(|(group, by)| format!("{group} {by}"))
        .collect();
    if !wrong.is_empty() {
        let text = format!(
            "packets arrived with a wrong checksum ({}): damaged on the way, or wrong at their sender",
            wrong.join(", ")
        );
        say("checksums", Warning, text);
    }
    let marked = moved.of("IpExt.InCEPkts") + moved.of("Ip6.InCEPkts");
    if marked > 0 {
        let text = format!(
            "{} arrived with a congestion mark (ECN): a queue on the path is full",
            n(marked, "packet")
        );
        say("ecn-received", Explanation, text);
    }
    let fragments = moved.of("Ip.ReasmFails") + moved.of("Ip6.ReasmFails");
    if fragments > 0 {
        let text =
            format!("{} not put together: a fragment was lost or late (ReasmFails)", n(fragments, "packet"));
        say("fragments-lost", Warning, text);
    }
    let filtered = moved.of("TcpExt.IPReversePathFilter");
    if filtered > 0 {
        let text = format!("{} dropped by reverse path filtering (rp_filter)", n(filtered, "packet"));
        say("reverse-path", Warning, text);
    }
    let discarded = moved.of("Ip.OutDiscards") + moved.of("Ip6.OutDiscards");
    if discarded > 0 {
        let text = format!(
            "this host did not send {} (OutDiscards): a full queue, or no room",
            n(discarded, "packet")
        );
        say("ip-not-sent", Warning, text);
    }
    let lost = ["rx_dropped", "rx_fifo_errors", "rx_errors", "tx_dropped", "tx_errors", "tx_carrier_errors"];
    for (interface, what, by) in moved.who("if", &lost) {
        say("interface-drops", Warning, format!("interface {interface} counted {what} {by}"));
    }
    for (queue, _, by) in moved.who("qdisc", &["dropped"]) {
        say(
            "qdisc-drops",
            Warning,
            format!("{} dropped by the queueing discipline {queue}", n(by, "packet")),
        );
    }
    let dropped = moved.all("softnet", "dropped");
    if dropped > 0 {
        let text = format!(
            "CPUs of this host dropped {} at their input queues (softnet, all namespaces): net.core.netdev_max_backlog",
            n(dropped, "packet")
        );
        say("softnet-dropped", Warning, text);
    }
    let squeezed = moved.all("softnet", "time_squeeze");
    if squeezed > 0 {
        let text = format!(
            "{} of a CPU ended with packets left (softnet time_squeeze, all namespaces): net.core.netdev_budget",
            n(squeezed, "poll")
        );
        say("softnet-squeezed", Explanation, text);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Snapshot, difference};

    /// The rules that apply when counters move from 0 to these.
    fn said(counters: &[(&str, u64)]) -> Vec<(String, String)> {
        let of = |counters: &[(&str, u64)]| {
            let counters: std::collections::BTreeMap<_, _> = counters.iter().copied().collect();
            let text = serde_json::json!({"schema": crate::SCHEMA, "realtime_ns": 0, "monotonic_ns": 0, "counters": counters, "gauges": {}});
            Snapshot::from_json(&text.to_string()).expect("a snapshot")
        };
        let zero: Vec<_> = counters.iter().map(|(name, _)| (*name, 0)).collect();
        let found = difference(&of(&zero), &of(counters)).expect("comparable");
        found.notes.into_iter().map(|note| (note.rule, note.text)).collect()
    }

    #[test]
    fn udp_loss_at_a_full_buffer_is_the_receivers() {
        let notes = said(&[("Udp.RcvbufErrors", 40), ("Udp.InErrors", 40), ("Udp.InDatagrams", 60)]);
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].0, "udp-receiver-too-slow");
        assert!(notes[0].1.starts_with("40 UDP datagrams of 100 that arrived"), "{}", notes[0].1);
    }

    #[test]
    fn retransmission_is_told_as_a_share_of_segments_sent() {
        let notes = said(&[
            ("Tcp.OutSegs", 2_890_817),
            ("Tcp.RetransSegs", 17_004),
            ("TcpExt.TCPTimeouts", 1),
            ("TcpExt.TCPLossProbes", 20),
        ]);
        assert_eq!(notes[0].1, "TCP sent 17004 segments again: 0.5882% of 2890817 in Tcp.OutSegs");
        assert_eq!(notes[1].0, "tcp-timeouts");
    }

    #[test]
    fn each_rule_has_counters_that_call_for_it() {
        let one = |counters: &[(&str, u64)], rule: &str| {
            let rules: Vec<String> = said(counters).into_iter().map(|(rule, _)| rule).collect();
            assert_eq!(rules, [rule], "{counters:?}");
        };
        one(&[("TcpExt.TCPTimeouts", 2)], "tcp-timeouts-without-probes");
        one(&[("TcpExt.TCPSpuriousRtxHostQueues", 2)], "tcp-local-queue");
        one(&[("TcpExt.TCPTSReorder", 2)], "tcp-reordering");
        one(&[("TcpExt.TCPAbortOnTimeout", 1)], "tcp-given-up");
        one(&[("TcpExt.TCPDeliveredCE", 1)], "ecn-acknowledged");
        one(&[("TcpExt.TCPToZeroWindowAdv", 1)], "tcp-receiver-too-slow");
        one(&[("TcpExt.TCPBacklogDrop", 1)], "tcp-receive-buffer");
        one(&[("TcpExt.TCPMemoryPressures", 1)], "tcp-memory-pressure");
        one(&[("TcpExt.ListenOverflows", 1), ("TcpExt.ListenDrops", 1)], "listen-overflow");
        one(&[("TcpExt.ListenDrops", 1)], "listen-drops");
        one(&[("TcpExt.TCPReqQFullDrop", 1)], "syn-queue-full");
        one(&[("TcpExt.TCPTimeWaitOverflow", 1)], "time-wait-overflow");
        one(&[("Udp6.MemErrors", 1)], "udp-memory");
        one(&[("Udp.NoPorts", 1)], "udp-nobody-listens");
        one(&[("Udp.SndbufErrors", 1)], "udp-not-sent");
        one(&[("Udp.InCsumErrors", 1)], "checksums");
        one(&[("IpExt.InCEPkts", 1)], "ecn-received");
        one(&[("Ip.ReasmFails", 1)], "fragments-lost");
        one(&[("TcpExt.IPReversePathFilter", 1)], "reverse-path");
        one(&[("Ip.OutDiscards", 1)], "ip-not-sent");
        one(&[("if.eth0.100.rx_dropped", 1)], "interface-drops");
        one(&[("qdisc.eth0.fq.dropped", 1)], "qdisc-drops");
        one(&[("softnet.cpu0.dropped", 1), ("softnet.cpu1.dropped", 1)], "softnet-dropped");
        one(&[("softnet.cpu0.time_squeeze", 1)], "softnet-squeezed");
    }

    #[test]
    fn plain_traffic_has_no_notes() {
        assert_eq!(said(&[("Tcp.OutSegs", 100), ("Tcp.InSegs", 100), ("if.eth0.rx_bytes", 9000)]), []);
    }
}
