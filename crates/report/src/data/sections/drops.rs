//! Where the kernel of this host dropped frames, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};
use crate::data::units;

/// Whose frames were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DroppedKind {
    /// Those of this test, by the signature at their end; of `netdyno drops` those of any.
    Test,
    /// Of another test: their signature was stamped before this one began.
    OtherTest,
    /// Without a signature.
    #[default]
    Ordinary,
    /// Not known: XDP dropped them, which tells how many and where.
    #[serde(other)]
    Xdp,
}

/// Frames that the kernel dropped at one place for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// The function of the kernel that dropped them; `(hidden)` where the kernel does not tell its names. Of `xdp` the tracepoint.
    pub function: String,
    /// Why, in the kernel's own word: `NO_SOCKET`, `NETFILTER_DROP`. `NOT_SPECIFIED` where it gives none.
    pub reason: String,
    /// How many. A frame of which another copy was held meanwhile is not among them.
    pub frames: u64,
    /// Whose.
    pub kind: DroppedKind,
    /// Their bytes, as the kernel counts them at that place: perhaps without headers that it had taken off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Copies that were dropped while another one was held, as by a bridge that floods: the frames went on, or are counted where their
    /// last copy was dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copies: u64,
    /// The interface that they were at, or had come in by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The number of its network namespace, where that is not the one of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u32>,
    /// Nothing says in which network namespace they were: they lay in a socket that was closed, or belonged to no interface any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub namespace_unknown: bool,
    /// `udp`, `tcp`, `arp`, or a number: 0x88cc of EtherTypes, `ip 89` of IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The destination port of TCP, UDP or SCTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The meter had counted them before: they arrived, and are no part of the loss.
    #[serde(default, skip_serializing_if = "is_false")]
    pub measured: bool,
    /// The kernel refused these frames to their sender, which tried again or gave them up: they are attempts, no frames that were sent, and no
    /// part of the loss.
    #[serde(default, skip_serializing_if = "is_false")]
    pub refused: bool,
    /// When the first one was dropped, to about 10 ms, from the beginning on: of a run with intervals from its first frame on.
    pub first_ns: u64,
    /// When the last one was dropped.
    pub last_ns: u64,
    /// How many in each of the result's `intervals`, by when they were dropped: of the causes that lost the most frames of a run. Those of the
    /// others are in `drops_traced.over_time`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_interval: Vec<u64>,
    /// Those dropped before the first interval or after the last one: with them `by_interval` comes to `frames`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside_frames: u64,
    /// Which of the test's frames, by stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<DroppedOfStream>,
    /// Where netfilter dropped them: the rules that did, or can have. All of them are possible; which are certain, they say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<DropRule>,
    /// Why it is not certain which rule it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_uncertain: Option<String>,
    /// Where traffic control dropped them: the queueing disciplines at that interface that counted drops meanwhile, frames of others
    /// included. One with classes counts what is dropped within it, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<DropQueue>,
    /// Where a CPU's backlog was full: the CPUs that counted drops meanwhile, frames of others included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backlogs: Vec<DropBacklog>,
}

/// A rule of nftables, or the policy of a chain, that dropped frames or can have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropRule {
    /// `ip`, `ip6`, `inet`, `arp`, `bridge`, `netdev`.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its chain.
    pub chain: String,
    /// Its handle, as `nft --handle list ruleset` shows it. Left out of a chain's policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
    /// Its words. Left out where nft is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// By so many packets its own counter rose during the run. Left out of one without a counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// It dropped frames of this cause: nothing else can have dropped all of them.
    pub certain: bool,
}

/// What a queueing discipline dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropQueue {
    /// `tbf`, `fq_codel`; `clsact` and `ingress`, where filters drop.
    pub kind: String,
    /// Its handle: `8001:`.
    pub handle: String,
    /// `root`, or the class that it is in: `1:10`.
    pub parent: String,
    /// By so much its counter of drops rose during the run.
    pub dropped: u64,
}

/// What a CPU's backlog dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropBacklog {
    /// Its number.
    pub cpu: u32,
    /// By so much its counter of drops rose during the run (/proc/net/softnet_stat).
    pub dropped: u64,
    /// So often its time or budget was over meanwhile while frames were left (`time_squeeze` there).
    pub time_squeeze: u64,
}

/// Frames of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedOfStream {
    /// Its number.
    pub stream: u32,
    /// How many.
    pub frames: u64,
    /// The sequence number of the first one, in the order of time.
    pub first_sequence: u64,
    /// The sequence number of the last one.
    pub last_sequence: u64,
    /// The lowest of them.
    pub lowest_sequence: u64,
    /// The highest of them.
    pub highest_sequence: u64,
    /// When the first one was dropped.
    pub first_ns: u64,
    /// When the last one was dropped.
    pub last_ns: u64,
}

/// What the kernel dropped in a while: what `netdyno drops` shows, `netdyno.drops/1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drops {
    /// `netdyno.drops/1`.
    pub schema: String,
    /// How long it was looked at.
    pub duration_ns: u64,
    /// What was dropped, the most frequent first.
    pub drops: Vec<Dropped>,
    /// All frames in `drops`, and those that found no place there.
    pub frames: u64,
    /// Frames that are not in `drops`: there were too many different causes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted_frames: u64,
    /// Drops that came while another one on the same CPU was being counted; nothing else is known of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_frames: u64,
    /// Messages between processes of this host (Unix sockets, netlink) that were freed unread; they are no frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub local_messages: u64,
    /// The exit status of the command, if one was run and ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_status: Option<i32>,
    /// What the reader should know: names that are hidden, frames in which no signature could be looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What the drops of a run come to (`--trace-drops`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropsTraced {
    /// Frames of this test that this kernel dropped before they were measured: the part of the loss of which the cause is known.
    pub named_frames: u64,
    /// Lost frames that this kernel did not drop: a NIC, a program of XDP or another machine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_seen_frames: Option<u64>,
    /// Frames without a signature that were dropped meanwhile in the same network namespaces and are not in `drops`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_frames: u64,
    /// Frames of which it is not known whose they were: there were too many different causes, or two drops at once on a CPU, or the
    /// kernel did not say in which network namespace they were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted_frames: u64,
    /// What of the loss was when. Left out where nothing was followed: without intervals, and where a note says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<DropsOverTime>,
    /// What the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The loss over time, beside `by_interval` of the causes that lost most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropsOverTime {
    /// Frames in each of the result's `intervals` that other causes dropped; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_by_interval: Vec<u64>,
    /// Frames that all causes dropped before the first interval or after the last one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside_frames: u64,
    /// Lost frames in each interval that this kernel did not drop, as far as the times of two kinds allow: a loss counts where the frame was
    /// sent, a drop where it was dropped. They come to `not_seen_frames`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_seen_by_interval: Vec<u64>,
}

/// The value of [`Drops::schema`].
pub const DROPS_SCHEMA: &str = "netdyno.drops/1";

impl Dropped {
    /// Whether frames of this test were lost by it: frames that had been sent, and had not been measured.
    pub fn is_loss(&self) -> bool {
        self.kind == DroppedKind::Test && !self.measured && !self.refused
    }

    /// "nf_hook_slow, NETFILTER_DROP".
    pub fn cause(&self) -> String {
        format!("{}, {}", self.function, self.reason)
    }
}

impl DropRule {
    /// "`udp dport 53 counter drop` (inet f, chain c, handle 4), +12".
    pub fn said(&self) -> String {
        let DropRule { family, table, chain, handle, text, counted, .. } = self;
        let place = match handle {
            Some(handle) => format!("{family} {table}, chain {chain}, handle {handle}"),
            None => format!("{family} {table}, chain {chain}"),
        };
        let words = match (text, handle) {
            (Some(text), _) => format!("`{text}` ({place})"),
            (None, Some(_)) => place,
            (None, None) => format!("policy drop ({place})"),
        };
        match counted {
            Some(counted) => format!("{words}, counted {}", units::count(*counted)),
            None => format!("{words}, without a counter"),
        }
    }
}

impl Drops {
    /// JSON, indented.
    ///
    /// # Errors
    /// None that is known: what it consists of can be written.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

impl Dropped {
    /// Who else counted these drops, one sentence each: rules, queueing disciplines, CPUs.
    pub fn witnesses(&self) -> Vec<String> {
        let mut said = Vec::new();
        let rules: Vec<String> = self.rules.iter().map(DropRule::said).collect();
        let rules = rules.join("; ");
        match (&self.rules[..], self.rules_uncertain.as_deref()) {
            ([], None) => {}
            ([], Some(why)) => said.push(format!("by which rule cannot be told: {why}")),
            ([_], None) => said.push(format!("by the rule {rules}")),
            (_, None) => said.push(format!("by these rules: {rules}")),
            ([_], Some(why)) => said.push(format!("possibly by the rule {rules}; cannot tell: {why}")),
            (_, Some(why)) => {
                said.push(format!("possibly by one of these rules: {rules}; cannot tell: {why}"))
            }
        }
        for DropQueue { kind, handle, parent, dropped } in &self.queues {
            said.push(format!(
                "the queueing discipline {kind} {handle} ({parent}) counted {}",
                units::count(*dropped)
            ));
        }
        for DropBacklog { cpu, dropped, time_squeeze } in &self.backlogs {
            said.push(format!(
                "the backlog of CPU {cpu} counted {}; its time or budget was over {} meanwhile",
                units::count(*dropped),
                units::counted(*time_squeeze, "time")
            ));
        }
        said
    }
}

/// What is known of a cause by its function and reason alone: what it is, and what to look at. `None`: nothing is.
pub fn meaning(function: &str, reason: &str) -> Option<&'static str> {
    let by_reason = MEANINGS.iter().find(|(of, _)| *of == reason);
    let by_function = || PLACES.iter().find(|(of, _)| function.starts_with(of));
    by_reason.or_else(by_function).map(|(_, meaning)| *meaning)
}

/// By reason.
const MEANINGS: [(&str, &str); 31] = [
    ("NO_SOCKET", "nobody listens on that port: `ss -lnut` there lists who does"),
    (
        "SOCKET_RCVBUFF",
        "the receiving program is too slow, or its buffer too small: SO_RCVBUF, net.core.rmem_max",
    ),
    ("SOCKET_FILTER", "a filter of the receiving socket refused them"),
    ("SOCKET_BACKLOG", "the receiving program is too slow: its socket's backlog was full"),
    ("SOCKET_CLOSE", "they waited in a socket that was closed"),
    ("PROTO_MEM", "all sockets together have too much memory: net.ipv4.udp_mem, net.ipv4.tcp_mem"),
    ("NETFILTER_DROP", "a rule drops them: `nft list ruleset` there, rules with `counter` tell which"),
    (
        "OTHERHOST",
        "they are for another MAC address: the sender's destination, or its neighbour entry, is wrong",
    ),
    ("IP_INHDR", "their IP header is damaged or contradicts itself"),
    ("IP_CSUM", "the IP header's checksum is wrong"),
    ("UDP_CSUM", "the UDP checksum is wrong"),
    ("TCP_CSUM", "the TCP checksum is wrong"),
    ("SKB_CSUM", "a checksum is wrong"),
    (
        "IP_RPFILTER",
        "no route leads back to the source by the interface that they came in by: net.ipv4.conf.*.rp_filter",
    ),
    ("IP_OUTNOROUTES", "there is no route to the destination: `ip route get ADDRESS` there"),
    ("IP_INNOROUTES", "there is no route to the destination: `ip route get ADDRESS` there"),
    ("IP_INADDRERRORS", "the destination address is not one of this host, or may not be used"),
    ("IP_LOCALNET", "an address of the loopback came in by another interface"),
    ("IP_LOCAL_SOURCE", "their source address is one of this host"),
    ("IP_NOPROTO", "nothing takes this protocol of IP"),
    ("NEIGH_FAILED", "no neighbour answered for that address: `ip neigh` there"),
    (
        "NEIGH_QUEUEFULL",
        "more waited for a neighbour's answer than may: `ip neigh` there, neigh.*.unres_qlen_bytes",
    ),
    ("NEIGH_DEAD", "the neighbour's entry was removed"),
    (
        "QDISC_DROP",
        "a queueing discipline was full or drops on purpose, or the interface has no carrier: `tc -s qdisc`, `ip link` there",
    ),
    ("QDISC_OVERLIMIT", "a queueing discipline was full: `tc -s qdisc` there"),
    ("CPU_BACKLOG", "the receiving CPU's backlog was full: net.core.netdev_max_backlog, more queues or RPS"),
    ("TC_INGRESS", "a filter of traffic control drops them: `tc -s filter show dev IFACE ingress` there"),
    ("TC_EGRESS", "a filter of traffic control drops them: `tc -s filter show dev IFACE egress` there"),
    ("PKT_TOO_BIG", "they are longer than the next link's MTU and may not be fragmented"),
    ("XDP", "a program of generic XDP drops them: `bpftool net` there"),
    ("DEV_READY", "the interface was down"),
];

/// By the function's beginning, where the kernel gives no reason.
const PLACES: [(&str, &str); 15] = [
    (
        "ip_error",
        "the route refuses them (blackhole, unreachable, prohibit) or there is none: `ip route get ADDRESS` there",
    ),
    (
        "ip6_pkt_discard",
        "there is no route to the destination, or it refuses them: `ip -6 route get ADDRESS` there",
    ),
    ("ip6_pkt_prohibit", "a route prohibits them: `ip -6 route` there"),
    ("dst_discard", "a blackhole route: `ip route` there"),
    (
        "ip_forward",
        "forwarding refused them: their TTL was at its end, or they are longer than the MTU with DF set",
    ),
    (
        "ip6_forward",
        "forwarding refused them: their hop limit was at its end, or they are longer than the MTU",
    ),
    ("br_", "a bridge does not pass them on: `bridge link`, `bridge vlan`, `bridge fdb` there"),
    ("veth_xdp_rcv_skb", "a program of XDP at that interface drops them: `bpftool net` there"),
    ("netif_receive_generic_xdp", "a program of generic XDP drops them: `bpftool net` there"),
    ("veth_xmit", "the other end of the cable was full or down"),
    ("packet_rcv", "a packet socket (a capture) was too slow: it lost copies, the frames went on"),
    ("tpacket_rcv", "a packet socket (a capture) was too slow: it lost copies, the frames went on"),
    ("xdp_exception", "an XDP program failed, or a verdict could not be carried out: `bpftool net` there"),
    (
        "xdp_devmap_xmit",
        "an interface did not take frames that XDP redirected to it: its ring was full, or its peer has no XDP program",
    ),
    ("xdp_bulk_tx", "an interface did not take frames that XDP sent back: its ring was full"),
];
