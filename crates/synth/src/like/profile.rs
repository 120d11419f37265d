//! The statistics of a capture, as a file has them.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use wire::numbers::protocol;

use super::distribution::Distribution;
use super::measure::CONVERSATIONS;

/// What a file of this version says in `schema`.
pub const SCHEMA: &str = "netdyno.flow-profile/1";

/// Sizes are told apart by the place of a frame among those of its direction: first, second, third, fourth, up to 8, up to 16,
/// later.
pub(super) const PLACES: usize = 7;
/// Kinds of conversations that a measured profile has, at most; what goes beyond is put together by protocol and class of port.
pub(super) const KINDS: usize = 256;
/// Longest frame, FCS counted: what a capture file holds of one.
const LONGEST: u64 = 262_144;
/// Longest duration: a year.
const MAX_NS: u64 = 366 * 86_400 * 1_000_000_000;
/// Most frames: what takes days to write.
const MAX_FRAMES: u64 = 1 << 40;

/// What is known of a capture. Nothing in it is an address or payload of the capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowProfile {
    /// [`SCHEMA`].
    pub schema: String,
    /// From the first frame to the last, in ns.
    pub duration_ns: u64,
    /// Where made-up addresses are from: blocks of which the capture had none.
    #[serde(default)]
    pub blocks: Blocks,
    /// Hosts of IPv4 conversations.
    #[serde(default)]
    pub ipv4: Hosts,
    /// Hosts of IPv6 conversations.
    #[serde(default)]
    pub ipv6: Hosts,
    /// Different outermost VLANs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub vlans: u64,
    /// Conversations by kind.
    pub kinds: Vec<Kind>,
    /// Frames that belong to no conversation.
    #[serde(default)]
    pub others: Vec<Other>,
    /// How long each of `intervals` is, in ns.
    #[serde(default)]
    pub interval_ns: u64,
    /// How frames are spread over time: equal parts of the duration. Without them conversations begin evenly.
    #[serde(default)]
    pub intervals: Vec<Interval>,
}

/// Blocks of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// 10.0.0.0 (of /8), 100.64.0.0 (/10), 172.16.0.0 (/12), 198.18.0.0 (/15) or 240.0.0.0 (/8).
    pub ipv4: Ipv4Addr,
    /// A /48.
    pub ipv6: Ipv6Addr,
    /// The first octet of Ethernet addresses: 2, 6, 10 or 14.
    pub mac: u8,
}

impl Default for Blocks {
    fn default() -> Blocks {
        let [(ipv4, _), ..] = IPV4_BLOCKS;
        let [ipv6, ..] = IPV6_BLOCKS;
        let [mac, ..] = MAC_BLOCKS;
        Blocks { ipv4, ipv6, mac }
    }
}

/// Private, shared, benchmarking and reserved addresses (RFC 1918, 6598, 2544, 1112), with the bits of a host's number.
pub(super) const IPV4_BLOCKS: [(Ipv4Addr, u32); 5] = [
    (Ipv4Addr::new(10, 0, 0, 0), 24),
    (Ipv4Addr::new(100, 64, 0, 0), 22),
    (Ipv4Addr::new(172, 16, 0, 0), 20),
    (Ipv4Addr::new(198, 18, 0, 0), 17),
    (Ipv4Addr::new(240, 0, 0, 0), 24),
];
/// Benchmarking (RFC 5180), documentation (RFC 3849), unique local (RFC 4193).
pub(super) const IPV6_BLOCKS: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0),
    Ipv6Addr::new(0x2001, 0xdb8, 0x4e44, 0, 0, 0, 0, 0),
    Ipv6Addr::new(0xfd6e, 0x6574, 0x6479, 0, 0, 0, 0, 0),
];
/// Locally administered, unicast. "ND" follows.
pub(super) const MAC_BLOCKS: [u8; 4] = [2, 6, 10, 14];

/// How many hosts there were, by what they did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Clients: those that sent the first frame of a conversation.
    pub clients: u64,
    /// Servers: those that it was sent to.
    pub servers: u64,
    /// How many of the servers are clients, too.
    #[serde(default)]
    pub both: u64,
    /// How many of the servers never sent a frame.
    #[serde(default)]
    pub silent: u64,
    /// How many of the clients never got a frame.
    #[serde(default)]
    pub unanswered: u64,
}

/// Headers between Ethernet and the network layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    /// VLAN tags.
    #[serde(default, skip_serializing_if = "is_none")]
    pub vlan: u8,
    /// MPLS labels.
    #[serde(default, skip_serializing_if = "is_none")]
    pub mpls: u8,
    /// PPPoE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pppoe: bool,
}

impl Tags {
    pub(super) fn bytes(self) -> u64 {
        4 * u64::from(self.vlan) + if self.pppoe { 8 } else { 4 * u64::from(self.mpls) }
    }

    pub(super) fn has_none(&self) -> bool {
        *self == Tags::default()
    }
}

/// Conversations that have these in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// 4 or 6.
    pub ip: u8,
    /// The transport's number.
    pub protocol: u8,
    /// The server's port; of ICMP type * 256 + code. None: one of several, see `ports`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Without `port`: these different ports, lowest and highest, and how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<[u16; 3]>,
    /// Headers before IP's.
    #[serde(default, skip_serializing_if = "Tags::has_none")]
    pub tags: Tags,
    /// Conversations.
    pub shapes: Vec<Shape>,
    /// How large frames are.
    pub sizes: Sizes,
}

/// Conversations of about the same number of frames. Each has its client's, its server's and its duration dealt by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// How many.
    pub conversations: u64,
    /// Frames that the client sends.
    pub client: Distribution,
    /// Frames that the server sends.
    pub server: Distribution,
    /// From the first frame to the last, in ns.
    pub duration_ns: Distribution,
    /// How many begin with a frame of the server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub server_first: u64,
    /// How many begin with SYN.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub opened: u64,
    /// How many end with FIN.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub finished: u64,
    /// How many end with RST.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reset: u64,
}

/// Frame sizes, the FCS counted, by direction and by a frame's place among those of its direction: first, second, third, fourth,
/// 5 to 8, 9 to 16, later. With fewer lists the last one holds for what follows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// From the client.
    #[serde(default)]
    pub client: Vec<Distribution>,
    /// From the server.
    #[serde(default)]
    pub server: Vec<Distribution>,
}

/// Frames of no conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// What they are.
    pub what: What,
    /// Headers before.
    #[serde(default, skip_serializing_if = "Tags::has_none")]
    pub tags: Tags,
    /// Sizes, the FCS counted.
    pub sizes: Distribution,
}

/// What a frame of no conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// Another protocol than IP, by its EtherType; IP's own where the header is broken.
    EtherType(u16),
    /// IEEE 802.2.
    Llc,
    /// Neither.
    Unknown,
    /// A later fragment.
    Fragment {
        /// 4 or 6.
        ip: u8,
        /// Of this protocol.
        protocol: u8,
    },
    /// IP that ends before the ports.
    CutOff {
        /// 4 or 6.
        ip: u8,
        /// The protocol.
        protocol: u8,
    },
}

/// A part of the duration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// For each conversation that begins in it the time from the frame before, of whatever conversation, in ns.
    pub starts_ns: Distribution,
    /// For each other frame the time since the frame before, in ns.
    pub gaps_ns: Distribution,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_none(value: &u8) -> bool {
    *value == 0
}

/// Why a profile cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct BadProfile {
    /// The member.
    pub place: String,
    /// What is wrong, and what would do.
    pub what: String,
}

fn bad<T>(place: impl Into<String>, what: impl Into<String>) -> Result<T, BadProfile> {
    Err(BadProfile { place: place.into(), what: what.into() })
}

/// What a profile amounts to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Conversations.
    pub conversations: u64,
    /// One-way flows.
    pub flows: u64,
    /// Frames, of no conversation among them.
    pub frames: u64,
}

impl Kind {
    /// Has its protocol ports?
    pub(super) fn has_ports(&self) -> bool {
        use protocol::{DCCP, SCTP, TCP, UDP, UDPLITE};
        matches!(self.protocol, TCP | UDP | UDPLITE | SCTP | DCCP)
    }

    /// The shortest frame of this kind that can be made, FCS counted.
    pub(super) fn shortest(&self) -> u64 {
        shortest(self.ip, self.protocol, self.tags)
    }
}

/// The shortest frame that can be made of this, FCS counted. It need not be one that Ethernet takes: captures have shorter ones.
pub(super) fn shortest(ip: u8, transport: u8, tags: Tags) -> u64 {
    let headers = match transport {
        protocol::TCP => 20,
        protocol::SCTP | protocol::DCCP => 12,
        protocol::UDP | protocol::UDPLITE | protocol::ICMP | protocol::ICMPV6 => 8,
        _ => 0,
    };
    4 + 14 + tags.bytes() + if ip == 6 { 40 } else { 20 } + headers
}

impl FlowProfile {
    /// What it amounts to.
    pub fn bounds(&self) -> Bounds {
        let mut all = Bounds::default();
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        for shape in self.kinds.iter().flat_map(|kind| &kind.shapes) {
            add(&mut all.conversations, shape.conversations);
            for side in [&shape.client, &shape.server] {
                let some = side.count() - side.0.get(&0).copied().unwrap_or(0);
                // Dealt anew where there are more conversations than values.
                let per =
                    |value: u128| (value * u128::from(shape.conversations)) / u128::from(side.count().max(1));
                add(&mut all.flows, u64::try_from(per(some.into())).unwrap_or(u64::MAX));
                let frames = per(side.sum().min(u128::from(u64::MAX)));
                add(&mut all.frames, u64::try_from(frames).unwrap_or(u64::MAX));
            }
        }
        for other in &self.others {
            add(&mut all.frames, other.sizes.count());
        }
        all
    }

    /// Can it be followed? Says of a file what is wrong with it, and where.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn check(&self) -> Result<(), BadProfile> {
        if self.schema != SCHEMA {
            return bad("schema", format!("`{}` is none that is known here: {SCHEMA}", self.schema));
        }
        if self.duration_ns > MAX_NS {
            return bad("duration_ns", "more than 366 days");
        }
        if !IPV4_BLOCKS.iter().any(|(block, _)| *block == self.blocks.ipv4) {
            let known: Vec<String> = IPV4_BLOCKS.iter().map(|(block, _)| block.to_string()).collect();
            return bad("blocks.ipv4", format!("{} is none of {}", self.blocks.ipv4, known.join(", ")));
        }
        if self.blocks.mac & 3 != 2 {
            return bad(
                "blocks.mac",
                "not a unicast address that is locally administered: write 2, 6, 10 or 14",
            );
        }
        for (name, hosts) in [("ipv4", &self.ipv4), ("ipv6", &self.ipv6)] {
            let most = hosts.clients.max(hosts.servers);
            if most > CONVERSATIONS as u64 || hosts.both > hosts.clients.min(hosts.servers) {
                return bad(
                    name,
                    format!("at most {CONVERSATIONS} hosts, and no more in both roles than in either"),
                );
            }
            if hosts.silent > hosts.servers - hosts.both || hosts.unanswered > hosts.clients - hosts.both {
                let what = "`silent` and `unanswered` hosts have one role: no more of them than servers, or clients, that are not both";
                return bad(name, what);
            }
        }
        if self.kinds.len() > 4 * KINDS || self.others.len() > 4 * KINDS || self.intervals.len() > 4 * KINDS {
            return bad("kinds, others, intervals", format!("at most {} each", 4 * KINDS));
        }
        if !self.intervals.is_empty() && (self.interval_ns == 0 || self.interval_ns > MAX_NS) {
            return bad("interval_ns", "how long is an interval? Between 1 ns and 366 days");
        }
        for (n, kind) in self.kinds.iter().enumerate() {
            check_kind(&format!("kinds[{n}]"), kind)?;
        }
        for (n, other) in self.others.iter().enumerate() {
            check_sizes(&format!("others[{n}].sizes"), &other.sizes)?;
            check_tags(&format!("others[{n}].tags"), other.tags)?;
        }
        for (n, interval) in self.intervals.iter().enumerate() {
            if interval.gaps_ns.sum() + interval.starts_ns.sum() > u128::from(MAX_NS) {
                return bad(format!("intervals[{n}]"), "these add up to more than 366 days");
            }
        }
        let bounds = self.bounds();
        if bounds.conversations > CONVERSATIONS as u64 {
            return bad(
                "kinds",
                format!("{} conversations; {CONVERSATIONS} are the most", bounds.conversations),
            );
        }
        if bounds.frames == 0 || bounds.frames > MAX_FRAMES {
            return bad("kinds", format!("{} frames; 1 to {MAX_FRAMES} can be made", bounds.frames));
        }
        Ok(())
    }
}

fn check_kind(place: &str, kind: &Kind) -> Result<(), BadProfile> {
    if !matches!(kind.ip, 4 | 6) {
        return bad(format!("{place}.ip"), format!("{} is not a version of IP: write 4 or 6", kind.ip));
    }
    if let Some([least, most, count]) = kind.ports
        && (least > most || count == 0 || u32::from(count) > u32::from(most - least) + 1)
    {
        return bad(
            format!("{place}.ports"),
            "these are the lowest, the highest, and how many: at least 1, and no more than lie between",
        );
    }
    check_tags(&format!("{place}.tags"), kind.tags)?;
    for (name, sides) in [("client", &kind.sizes.client), ("server", &kind.sizes.server)] {
        if sides.len() > PLACES {
            return bad(format!("{place}.sizes.{name}"), format!("at most {PLACES} lists"));
        }
        for (n, sizes) in sides.iter().enumerate() {
            check_sizes(&format!("{place}.sizes.{name}[{n}]"), sizes)?;
        }
    }
    for (n, shape) in kind.shapes.iter().enumerate() {
        let place = format!("{place}.shapes[{n}]");
        if shape.client.most().max(shape.server.most()) > u64::from(u32::MAX) {
            return bad(place, "a conversation has at most 4,294,967,295 frames in a direction");
        }
        if shape.duration_ns.most() > MAX_NS {
            return bad(format!("{place}.duration_ns"), "more than 366 days");
        }
        if shape.client.most() == 0 && shape.server.most() == 0 {
            return bad(
                place,
                "these conversations have no frames: neither `client` nor `server` has a value above 0",
            );
        }
        let both =
            shape.client.0.get(&0).is_some_and(|n| *n > 0) && shape.server.0.get(&0).is_some_and(|n| *n > 0);
        if both {
            return bad(
                place,
                "`client` and `server` may both be 0: give conversations of one direction a shape of their own",
            );
        }
    }
    Ok(())
}

fn check_tags(place: &str, tags: Tags) -> Result<(), BadProfile> {
    match tags.vlan > 4 || tags.mpls > 8 {
        true => bad(place, "at most 4 VLAN tags and 8 MPLS labels"),
        false => Ok(()),
    }
}

fn check_sizes(place: &str, sizes: &Distribution) -> Result<(), BadProfile> {
    match sizes.most() > LONGEST {
        true => bad(place, format!("a frame of {} bytes; {LONGEST} are the most", sizes.most())),
        false => Ok(()),
    }
}
