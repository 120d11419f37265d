//! Making several frames of one, in ways that reassembly has to cope with: fragments, segments, overlaps, chaff,
//! duplicates, losses, another order. The rules are those of fragroute(8), one to a line.
//!
//! ```text
//!  text --> Rules::parse --> Rules::apply(frame) --> rule by rule over a list of packets --> frames
//! ```
//!
//! Pure: what comes out follows from the rules, the frame, its number and the seed; no files, no clock. IPv4 and IPv6
//! alike. Only whole packets are taken apart; what is none (another protocol, cut off by the capture) stays one frame
//! as it is. Frames are hostile, and what one frame becomes is bounded ([`MAX_FRAMES`], [`MAX_BYTES`]).

mod chaff;
mod options;
mod packet;
mod parse;
mod random;
mod split;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use parse::BadRule;

use packet::Packet;
use random::Random;

/// The most frames that one may become.
pub const MAX_FRAMES: usize = 65_536;
/// The most bytes that the frames made of one may have in all.
pub const MAX_BYTES: usize = 16 << 20;

/// Whose data a receiver is to keep where two overlap; the other has random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Favour {
    /// What came first.
    Old,
    /// What came last.
    New,
}

/// Which of the queued packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    First,
    Last,
    Random,
}

/// What makes a receiver throw a packet of chaff away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IpChaff {
    Duplicate,
    Option,
    Ttl(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpChaff {
    Checksum,
    NoFlags,
    Paws,
    Retransmission,
    Sequence,
    Syn,
    Ttl(u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IpOption {
    Route { strict: bool, pointer: u8, hops: Vec<Ipv4Addr> },
    Raw(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ip6Option {
    Route {
        left: u8,
        hops: Vec<Ipv6Addr>,
    },
    /// Destination options (RFC 8200 section 4.6), without the header's first two bytes.
    Raw(Vec<u8>),
}

/// One directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    Fragment {
        size: usize,
        overlap: Option<Favour>,
    },
    Segment {
        size: usize,
        overlap: Option<Favour>,
    },
    IpChaff(IpChaff),
    TcpChaff(TcpChaff),
    Duplicate(Which, u8),
    Drop(Which, u8),
    Shuffle,
    Reverse,
    Ttl(u8),
    Tos(u8),
    IpOption(IpOption),
    /// Bytes of TCP options, padded to words.
    TcpOption(Vec<u8>),
    Ip6Option(Ip6Option),
    Ip6Qos {
        class: u8,
        label: u32,
    },
}

/// One frame would become too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it would become more than {MAX_FRAMES} frames or {} MiB; fragment or segment it into larger pieces",
    MAX_BYTES >> 20
)]
pub struct TooMany;

/// Rules, in the order in which they are applied.
///
/// ```
/// use netdyno_edit::fragment::Rules;
///
/// let rules = Rules::parse("tcp_seg 24 new\nip_frag 64\norder random", 1).unwrap();
/// assert!(Rules::parse("ip_frag 20", 1).unwrap_err().to_string().starts_with("line 1: "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) seed: u64,
}

impl Rules {
    /// Applies the rules to a frame whose IP header starts at `network`: the frames it becomes, none if it is
    /// dropped. `number` is the frame's in its capture; with the seed it decides all that is random.
    ///
    /// # Errors
    /// The frame would become more frames than one may.
    pub fn apply(&self, frame: &[u8], network: usize, number: u64) -> Result<Vec<Vec<u8>>, TooMany> {
        let Some((link, packet)) = packet::split(frame, network) else { return Ok(vec![frame.to_vec()]) };
        let mut random = Random::new(self.seed, number);
        let mut queue = Queue { bytes: 0, packets: vec![packet.clone()] };
        for rule in &self.rules {
            let before = std::mem::take(&mut queue.packets);
            queue.bytes = 0;
            step(rule, before, &mut queue, &mut random)?;
        }
        // Padding behind the packet stays unless the packet changed.
        if let [only] = queue.packets.as_slice()
            && *only == packet
        {
            return Ok(vec![frame.to_vec()]);
        }
        Ok(queue.packets.into_iter().map(|packet| [link, &packet.bytes].concat()).collect())
    }
}

/// Packets on their way to the next rule.
#[derive(Debug)]
pub(crate) struct Queue {
    packets: Vec<Packet>,
    bytes: usize,
}

impl Queue {
    pub(crate) fn push(&mut self, packet: Packet) -> Result<(), TooMany> {
        self.bytes += packet.bytes.len() + 64;
        if self.packets.len() >= MAX_FRAMES || self.bytes > MAX_BYTES {
            return Err(TooMany);
        }
        self.packets.push(packet);
        Ok(())
    }

    fn extend(&mut self, packets: Vec<Packet>) -> Result<(), TooMany> {
        packets.into_iter().try_for_each(|packet| self.push(packet))
    }
}

fn step(rule: &Rule, mut before: Vec<Packet>, to: &mut Queue, random: &mut Random) -> Result<(), TooMany> {
    match rule {
        Rule::Fragment { size, overlap } => {
            before.iter().try_for_each(|packet| split::fragment(packet, *size, *overlap, to, random))
        }
        Rule::Segment { size, overlap } => {
            before.iter().try_for_each(|packet| split::segment(packet, *size, *overlap, to, random))
        }
        Rule::IpChaff(kind) => before.into_iter().try_for_each(|packet| {
            let chaff = chaff::ip(&packet, *kind, random);
            beside(packet, chaff, to, random)
        }),
        Rule::TcpChaff(kind) => before.into_iter().try_for_each(|packet| {
            let chaff = chaff::tcp(&packet, *kind, random);
            beside(packet, chaff, to, random)
        }),
        Rule::Duplicate(which, percent) => {
            if let Some(index) = pick(&before, *which, *percent, random)
                && let Some(packet) = before.get(index)
            {
                before.insert(index, packet.clone());
            }
            to.extend(before)
        }
        Rule::Drop(which, percent) => {
            if let Some(index) = pick(&before, *which, *percent, random) {
                before.remove(index);
            }
            to.extend(before)
        }
        Rule::Shuffle => {
            for index in (1..before.len()).rev() {
                before.swap(index, random.below(index + 1));
            }
            to.extend(before)
        }
        Rule::Reverse => {
            before.reverse();
            to.extend(before)
        }
        Rule::Ttl(_)
        | Rule::Tos(_)
        | Rule::IpOption(_)
        | Rule::TcpOption(_)
        | Rule::Ip6Option(_)
        | Rule::Ip6Qos { .. } => {
            before.iter_mut().for_each(|packet| options::set_rule(packet, rule));
            to.extend(before)
        }
    }
}

/// Puts chaff before or behind the packet it is to be taken for, as the dice fall.
fn beside(packet: Packet, chaff: Option<Packet>, to: &mut Queue, random: &mut Random) -> Result<(), TooMany> {
    let Some(chaff) = chaff else { return to.push(packet) };
    let (first, second) = if random.percent(50) { (chaff, packet) } else { (packet, chaff) };
    to.push(first)?;
    to.push(second)
}

fn pick(packets: &[Packet], which: Which, percent: u8, random: &mut Random) -> Option<usize> {
    if packets.is_empty() || !random.percent(percent) {
        return None;
    }
    Some(match which {
        Which::First => 0,
        Which::Last => packets.len() - 1,
        Which::Random => random.below(packets.len()),
    })
}
