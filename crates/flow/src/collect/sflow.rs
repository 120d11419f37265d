//! sFlow version 5 (sflow.org, "sFlow Version 5", July 2004): flow samples, each a record of one packet.
//!
//! A sample holds the beginning of a packet, or what a switch read of it, and beside it what the switch knows: VLANs, next hop,
//! autonomous systems. The record has what each of them says.

use super::{Cursor, Holds, Lent, Malformed, Session, Verdict, sampled, walk};
use crate::element::{self, Number};
use crate::packet::{self, Frame, Walk};
use crate::record::{Format, Other, Record, unsigned};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::LinkType;
use wire::layers::{L3, Layers};

/// Samples of a datagram, and records of a sample; each has dozens of bytes.
const MOST: u32 = 4096;
/// Sources of samples of an exporter: each port of a switch is one.
const MOST_SOURCES: usize = 4096;
/// Of an interface's number, that says nothing is known of it, or that it is the switch itself.
const NO_INTERFACE: u32 = 0x3fff_ffff;
/// `forwardingStatus`: dropped, for a reason that it does not say (RFC 7270, 4.12).
const DROPPED: [u8; 1] = [0x80];

/// Where samples are taken, by a hash of agent and sub-agent, and the source.
#[derive(Debug, Default)]
pub(super) struct Sources(HashMap<(u32, u64), Source, foldhash::fast::RandomState>);

/// What is known of a source of samples.
#[derive(Debug, Clone, Copy)]
struct Source {
    /// The greatest number that came, and which of it and the 63 before came, or were before the first.
    last: u32,
    seen: u64,
    /// What it says it had no room for.
    drops: u32,
    /// Samples in a row whose numbers were long before that.
    row: u8,
}

impl Sources {
    /// An agent began anew, and numbers its samples from the start again.
    pub(super) fn forget(&mut self, agent: u32, room: &mut Lent) {
        let before = self.0.len();
        self.0.retain(|(of, _), _| *of != agent);
        room.give_back((before - self.0.len()) * SOURCE);
    }

    pub(super) fn forget_all(&mut self, room: &mut Lent) {
        room.give_back(self.0.len() * SOURCE);
        self.0 = HashMap::default();
    }
}

/// A gap of more is no loss: the agent began anew.
const RESTART: u32 = 1 << 24;
/// So many samples in a row that are long before the latest one were not overtaken: their source began anew.
const ROW: u8 = 16;

/// What one more sample says of those that did not come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Step {
    missing: u32,
    /// One that had been missing.
    found: bool,
    dropped: u32,
}

impl Source {
    fn first(number: u32, drops: u32) -> Source {
        Source { last: number, seen: u64::MAX, drops, row: 0 }
    }

    /// `verdict`: what its datagram is, by its own number. One that came behind later ones, or twice, brings no restart.
    fn follow(&mut self, number: u32, drops: u32, verdict: Option<Verdict>) -> Step {
        let ahead = number.wrapping_sub(self.last);
        let behind = self.last.wrapping_sub(number);
        if (64..RESTART).contains(&behind) && matches!(verdict, Some(Verdict::Late | Verdict::Duplicate)) {
            // Too far back to be remembered. What came late had been missing.
            return Step { found: verdict == Some(Verdict::Late), ..Step::default() };
        }
        if behind < 64 {
            // Late, or come twice.
            let found = self.seen & 1 << behind == 0;
            self.seen |= 1 << behind;
            self.row = 0;
            return Step { found, ..Step::default() };
        }
        if ahead >= RESTART {
            self.row += 1;
            if behind >= RESTART || self.row >= ROW {
                *self = Source::first(number, drops);
            }
            return Step::default();
        }
        self.row = 0;
        self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
        self.last = number;
        // What was said before this run, or by one that began anew, is no loss of now.
        let dropped = Some(drops.wrapping_sub(self.drops)).filter(|more| *more < RESTART).unwrap_or(0);
        self.drops = drops;
        Step { missing: ahead - 1, found: false, dropped }
    }
}

/// Who sent a datagram.
struct Agent {
    address: IpAddr,
    domain: u32,
    /// Of both: several agents may send through one address and port.
    key: u32,
}

impl Agent {
    fn of(bytes: &[u8], domain: u32) -> Option<Agent> {
        let address = address(bytes)?;
        // FNV-1a, which is enough to tell some apart.
        let hash = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let key = bytes.iter().fold(0x811c_9dc5, hash) ^ domain;
        Some(Agent { address, domain, key })
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from_bits(unsigned(bytes) as u32).into()),
        16 => bytes.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes).into()),
        _ => None,
    }
}

/// The bytes of an address behind its type; none where it is not known.
fn typed_address<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    match cursor.u32()? {
        // Not known.
        0 => Ok(&[]),
        1 => cursor.take(4),
        2 => cursor.take(16),
        _ => Err(Malformed),
    }
}

/// Where packets leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    One(u32),
    Discarded,
    /// So many; zero: it does not say how many.
    Several(u32),
}

impl Output {
    fn of(format: u32, value: u32) -> Output {
        match format {
            0 => Output::One(known_interface(value)),
            1 => Output::Discarded,
            2 => Output::Several(value),
            _ => Output::One(0),
        }
    }
}

fn known_interface(value: u32) -> u32 {
    if value == NO_INTERFACE { 0 } else { value }
}

impl Session {
    pub(super) fn sflow(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) -> Result<(), Malformed> {
        let mut cursor = Cursor(bytes);
        if cursor.u32()? != 5 {
            return Err(Malformed);
        }
        let agent = typed_address(&mut cursor)?;
        let (domain, number, uptime, samples) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let agent = Agent::of(agent, domain).ok_or(Malformed)?;
        if samples > MOST {
            return Err(Malformed);
        }
        self.follow((Format::Sflow, agent.key), number, Holds::of(1).up(uptime));
        for _ in 0..samples {
            let (kind, length) = (cursor.u32()?, cursor.u32()?);
            let sample = Cursor(cursor.take(length as usize)?);
            // Of sFlow itself: flow samples, and those with longer numbers. Counters are none of ours.
            match kind {
                1 => self.flow_sample(sample, false, &agent, each)?,
                3 => self.flow_sample(sample, true, &agent, each)?,
                2 | 4 => {}
                _ => self.counters.asides.unread_samples += 1,
            }
        }
        // One more sample, at least its kind and length.
        self.current.disagrees |= cursor.0.len() >= 8;
        Ok(())
    }

    fn flow_sample(
        &mut self,
        mut sample: Cursor<'_>,
        expanded: bool,
        agent: &Agent,
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) -> Result<(), Malformed> {
        let number = sample.u32()?;
        // The source's type, then its number; together in one word where they are short.
        let source = match expanded {
            true => u64::from(sample.u32()?) << 32 | u64::from(sample.u32()?),
            false => {
                let both = sample.u32()?;
                u64::from(both >> 24) << 32 | u64::from(both & 0xff_ffff)
            }
        };
        let (rate, _pool, drops) = (sample.u32()?, sample.u32()?, sample.u32()?);
        self.follow_source((agent.key, source), number, drops);
        // The format of an interface, then its number; together as those of a source.
        let mut interface = || -> Result<(u32, u32), Malformed> {
            if expanded {
                return Ok((sample.u32()?, sample.u32()?));
            }
            let both = sample.u32()?;
            Ok((both >> 30, both & 0x3fff_ffff))
        };
        let (input, output) = (interface()?, interface()?);
        let output = Output::of(output.0, output.1);
        let left_by = if let Output::One(left_by) = output { left_by } else { 0 };
        let interfaces = [if input.0 == 0 { known_interface(input.1) } else { 0 }, left_by];
        let blank = Record { interfaces, ..Record::blank(Format::Sflow, agent.domain, 0, rate) };
        let walk = self.walk.get_or_insert_with(walk);
        let record = read(&mut sample, walk, blank)?;
        self.current.disagrees |= sample.0.len() >= 8;
        let Some(record) = record else {
            self.counters.asides.unread_samples += 1;
            return Ok(());
        };
        self.counters.records += 1;
        self.counters.asides.unknown_sampling += u64::from(rate == 0);
        if !self.keeps_others {
            each(&record, &[]);
            return Ok(());
        }
        let (v4, v6);
        let mut others = Vec::with_capacity(2);
        others.push(match agent.address {
            IpAddr::V4(address) => {
                v4 = address.octets();
                Other { number: element::EXPORTER[0], bytes: v4.as_slice() }
            }
            IpAddr::V6(address) => {
                v6 = address.octets();
                Other { number: element::EXPORTER[1], bytes: v6.as_slice() }
            }
        });
        let several;
        match output {
            Output::One(_) => {}
            Output::Discarded => others.push(Other { number: Number::iana(89), bytes: &DROPPED }),
            Output::Several(count) => {
                several = count.to_be_bytes();
                others.push(Other { number: element::OUTPUTS, bytes: &several });
            }
        }
        each(&record, &others);
        Ok(())
    }

    fn follow_source(&mut self, key: (u32, u64), number: u32, drops: u32) {
        let asides = &mut self.counters.asides;
        let Some(source) = self.sources.0.get_mut(&key) else {
            if self.sources.0.len() < MOST_SOURCES && self.room.take(SOURCE) {
                self.sources.0.insert(key, Source::first(number, drops));
            } else {
                self.counters.refused += 1;
            }
            return;
        };
        let verdict = self.current.followed.map(|(_, verdict)| verdict);
        let step = source.follow(number, drops, verdict);
        asides.missing_samples += u64::from(step.missing);
        asides.missing_samples = asides.missing_samples.saturating_sub(step.found.into());
        asides.dropped_samples += u64::from(step.dropped);
    }
}

/// What a source takes.
const SOURCE: usize = 2 * size_of::<((u32, u64), Source)>();

/// The record of a sample: of its packet, and of what is said beside it. `None`: no packet of IP can be read.
fn read(sample: &mut Cursor<'_>, walk: &mut Walk, blank: Record) -> Result<Option<Record>, Malformed> {
    let records = sample.u32()?;
    if records > MOST {
        return Err(Malformed);
    }
    let (mut packet, mut told, mut beside) = (None, None, Beside::default());
    for _ in 0..records {
        let (kind, length) = (sample.u32()?, sample.u32()?);
        // A padded length: XDR has words of four bytes.
        let mut body = Cursor(sample.take(length as usize)?);
        match kind {
            1 => packet = header(&mut body, walk, blank)?.or(packet),
            3 | 4 => told = told_packet(&mut body, kind == 4, blank)?.or(told),
            1001 => beside.switch(&mut body)?,
            1002 => beside.router(&mut body)?,
            1003 => beside.gateway(&mut body)?,
            // Ethernet addresses alone, MPLS, users, URLs, and what vendors have.
            _ => {}
        }
    }
    Ok(packet.or(told).map(|record| beside.put(record)))
}

/// The beginning of a packet, as it was.
fn header(body: &mut Cursor<'_>, walk: &mut Walk, blank: Record) -> Result<Option<Record>, Malformed> {
    let (protocol, length, stripped, size) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
    let bytes = body.take(size as usize)?;
    let link = match protocol {
        1 => LinkType::ETHERNET,
        // IPv4 and IPv6.
        11 | 12 => LinkType::RAW,
        _ => return Ok(None),
    };
    let length = (length.saturating_sub(stripped) as usize).max(bytes.len());
    let frame = Frame { link, length, ..Frame::ethernet(bytes, blank.exported_ns) };
    Ok(sampled(walk, &frame, blank).or_else(|| short(&frame, blank)))
}

/// Of a header that ends before its ports do: what the IP header says.
pub(super) fn short(frame: &Frame<'_>, blank: Record) -> Option<Record> {
    let layers = Layers::parse(frame.link, frame.bytes);
    let bytes = frame.bytes.get(layers.l3_offset..)?;
    let whole = frame.length.saturating_sub(layers.l3_offset) as u64;
    let word = |at: usize| bytes.get(at..at + 2).map_or(0, unsigned);
    let record = match layers.l3 {
        L3::V4 => Record {
            addresses: [address(bytes.get(12..16)?), address(bytes.get(16..20)?)],
            tos: *bytes.get(1)?,
            octets: if word(2) >= 20 { word(2) } else { whole },
            ..blank
        },
        L3::V6 => Record {
            addresses: [address(bytes.get(8..24)?), address(bytes.get(24..40)?)],
            tos: (word(0) >> 4) as u8,
            octets: if word(4) > 0 { 40 + word(4) } else { whole },
            ..blank
        },
        _ => return None,
    };
    let (vlans, macs) = ([layers.vlan.unwrap_or(0), 0], packet::macs(frame));
    Some(Record { protocol: layers.ip_protocol.unwrap_or(0), packets: 1, vlans, macs, ..record })
}

/// What a switch read of a packet: `sampled_ipv4` and `sampled_ipv6`.
fn told_packet(body: &mut Cursor<'_>, v6: bool, blank: Record) -> Result<Option<Record>, Malformed> {
    let size = if v6 { 16 } else { 4 };
    let (octets, protocol) = (body.u32()?, body.u32()?);
    let addresses = [address(body.take(size)?), address(body.take(size)?)];
    let (source, destination, flags, tos) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
    Ok(Some(Record {
        addresses,
        ports: [source as u16, destination as u16],
        protocol: protocol as u8,
        tos: tos as u8,
        tcp_flags: flags as u16,
        packets: 1,
        octets: octets.into(),
        ..blank
    }))
}

/// What a switch knows of a packet that does not stand in it.
#[derive(Default)]
struct Beside {
    vlans: [u16; 2],
    next_hop: Option<IpAddr>,
    prefixes: [u8; 2],
    systems: [u32; 2],
}

impl Beside {
    /// VLANs, each with a priority.
    fn switch(&mut self, body: &mut Cursor<'_>) -> Result<(), Malformed> {
        let (source, _, destination) = (body.u32()?, body.u32()?, body.u32()?);
        self.vlans = [source, destination].map(|vlan| u16::try_from(vlan).unwrap_or(0));
        Ok(())
    }

    fn router(&mut self, body: &mut Cursor<'_>) -> Result<(), Malformed> {
        self.next_hop = address(typed_address(body)?);
        self.prefixes = [body.u32()? as u8, body.u32()? as u8];
        Ok(())
    }

    /// The router's own system, the source's, and the path to the destination: the last on it is the destination's, and without a
    /// path it is the router's.
    fn gateway(&mut self, body: &mut Cursor<'_>) -> Result<(), Malformed> {
        let hop = address(typed_address(body)?);
        self.next_hop = self.next_hop.or(hop);
        let (own, source, _peer, segments) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
        self.systems = [source, own];
        for _ in 0..segments.min(MOST) {
            // An ordered sequence, or a set, whose members are all as near.
            let (_kind, count) = (body.u32()?, body.u32()?);
            let path = body.take((count as usize).checked_mul(4).ok_or(Malformed)?)?;
            if let Some(last) = path.last_chunk::<4>() {
                self.systems[1] = u32::from_be_bytes(*last);
            }
        }
        Ok(())
    }

    fn put(&self, mut record: Record) -> Record {
        // Frames lose their tags on the way into a switch, or get them there.
        for (vlan, said) in record.vlans.iter_mut().zip(self.vlans) {
            *vlan = if said == 0 { *vlan } else { said };
        }
        let next_hop = self.next_hop.filter(|hop| !hop.is_unspecified());
        Record { next_hop, prefixes: self.prefixes, systems: self.systems, ..record }
    }
}

#[cfg(test)]
mod tests;
