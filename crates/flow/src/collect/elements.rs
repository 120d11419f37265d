//! Which field of a record is meant where several could be: addresses of both IP versions, counters since the last record and
//! since the beginning, times of several kinds, ICMP's type beside ports.
//!
//! A template is looked at once, when it comes ([`arrange`]). If each of its fields has a place of its own, whatever it
//! says, its records are read by the fast ways; else by [`Template::careful`], which says of such records the same.

use super::samplers::{INIT, Known, Rate, is_rate, is_selector};
use super::{Cursor, Field, Head, Malformed, Place, Template, Uptime, sampled, sflow, times, walk};
use crate::element::Number;
use crate::packet::Frame;
use crate::record::{Format, Other, OtherWay, Record, unsigned};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::LinkType;
use wire::numbers::protocol;

/// Where an element goes.
pub(super) fn place(id: u16) -> Place {
    match id {
        1 | 85 => Place::Octets,
        2 | 86 => Place::Packets,
        4 => Place::Protocol,
        5 => Place::Tos,
        6 => Place::Flags,
        7 => Place::Port(0),
        11 => Place::Port(1),
        8 | 27 => Place::Address(0),
        12 | 28 => Place::Address(1),
        9 | 29 => Place::Prefix(0),
        13 | 30 => Place::Prefix(1),
        10 => Place::Interface(0),
        14 => Place::Interface(1),
        15 | 62 => Place::NextHop,
        16 => Place::System(0),
        17 => Place::System(1),
        22 => Place::Uptime(0),
        21 => Place::Uptime(1),
        32 => Place::Icmp(0),
        139 => Place::Icmp(1),
        176 => Place::IcmpType(0),
        177 => Place::IcmpCode(0),
        178 => Place::IcmpType(1),
        179 => Place::IcmpCode(1),
        56 => Place::Mac(0),
        80 => Place::Mac(1),
        58 | 243 => Place::Vlan(0),
        59 | 254 => Place::Vlan(1),
        60 => Place::Implied,
        136 => Place::EndReason,
        61 => Place::Direction,
        150 | 152 | 154 | 156 => Place::Time(0),
        151 | 153 | 155 | 157 => Place::Time(1),
        322..=325 => Place::Observed,
        313 | 315 => Place::Section,
        410 => Place::SectionLength,
        158 => Place::Delta(0),
        159 => Place::Delta(1),
        id if is_selector(id) => Place::Sampler,
        id if is_rate(id) => Place::Rate,
        _ => Place::Elsewhere,
    }
}

/// Where an element goes whose other direction is said.
pub(super) fn other_place(id: u16) -> Place {
    match place(id) {
        Place::Packets => Place::OtherPackets,
        Place::Octets => Place::OtherOctets,
        Place::Flags => Place::OtherFlags,
        Place::Time(which) => Place::OtherTime(which),
        Place::Uptime(which) => Place::OtherUptime(which),
        _ => Place::Elsewhere,
    }
}

/// How a template is read, as its fields have it.
pub(super) struct Arranged {
    /// Its records are to be read with care.
    pub(super) is_careful: bool,
    /// Its records are of both directions, by what initiator and responder sent.
    pub(super) both_ways: bool,
}

/// Counters of a flow, of octets and of packets: those that a record counts are the first of these that its template has. What was
/// counted since the last record comes before what was counted since the beginning, which is said in every record again;
/// what left comes last.
const COUNTERS: [[u16; 5]; 2] = [[1, 85, 231, 23, 171], [2, 86, 298, 24, 172]];
const RESPONDER: [u16; 2] = [232, 299];
const INITIATOR: [u16; 2] = [231, 298];
const LEFT: [u16; 2] = [23, 24];
/// Of times the most precise first.
const TIMES: [[u16; 6]; 2] = [[156, 154, 152, 150, 158, 22], [157, 155, 153, 151, 159, 21]];

/// Decides where the fields of a template go, and in which order they are read: what depends on others comes behind them.
pub(super) fn arrange(fields: &mut [Field], format: Format) -> Arranged {
    let has = |fields: &[Field], id: u16| fields.iter().any(|field| field.number == Number::iana(id));
    let mut both_ways = false;
    let counters: [Place; 2] = [Place::Octets, Place::Packets];
    let chosen = COUNTERS.map(|ids| ids.into_iter().find(|id| has(fields, *id)));
    let of_initiator = chosen.iter().zip(INITIATOR).any(|(chosen, id)| *chosen == Some(id));
    // Responders alone, without anything that this direction counts.
    let of_responder = chosen == [None; 2] && RESPONDER.iter().any(|id| has(fields, *id));
    for which in 0..2 {
        for field in fields.iter_mut().filter(|field| field.number.enterprise == 0) {
            let id = field.number.id;
            if COUNTERS[which].contains(&id) {
                field.to = match chosen[which] {
                    Some(one) if one == id => counters[which],
                    // Of a flow that was counted where it left alone the others are zero.
                    Some(_) if id == LEFT[which] => Place::Left(which as u8),
                    _ => Place::Elsewhere,
                };
            } else if id == RESPONDER[which] && (of_initiator || of_responder) {
                field.to = [Place::OtherOctets, Place::OtherPackets][which];
                both_ways = true;
            }
        }
    }
    let lacks_a_time = TIMES.iter().any(|ids| !ids.iter().any(|id| has(fields, *id)));
    for field in fields.iter_mut().filter(|field| field.number.enterprise == 0) {
        match field.number.id {
            161 | 162 if lacks_a_time => field.to = Place::Duration,
            INIT if format == Format::Ipfix => field.to = Place::Init,
            _ => {}
        }
    }
    // One address of IPv4 and one of IPv6: which of the two a record is of, its values say.
    let mut addresses = fields.iter().filter(|field| matches!(field.to, Place::Address(_)));
    let first = addresses.next().map(|field| field.length);
    let mut is_careful = addresses.any(|field| Some(field.length) != first);
    let mut filled = 0u64;
    for field in &*fields {
        let needs = match field.to {
            Place::Left(_) | Place::IcmpType(_) | Place::IcmpCode(_) | Place::Sampler | Place::Rate => true,
            Place::Duration | Place::Init => true,
            Place::Observed | Place::Section | Place::SectionLength => true,
            // What they are counted from has to be known first, and last tells of first.
            Place::Uptime(_) | Place::OtherUptime(_) => format == Format::Ipfix,
            Place::Icmp(_) => !has(fields, 4),
            _ => false,
        };
        let bit = slot(field.to).map_or(0, |slot| 1 << slot);
        is_careful |= needs || filled & bit != 0;
        filled |= bit;
    }
    Arranged { is_careful, both_ways }
}

/// Two fields of the same slot are for one member of a record.
fn slot(to: Place) -> Option<u8> {
    Some(match to {
        Place::Address(which) => which,
        Place::Port(which) => 2 + which,
        Place::Protocol => 4,
        Place::Tos => 5,
        Place::Flags => 6,
        Place::Packets => 7,
        Place::Octets => 8,
        Place::Time(which) | Place::Uptime(which) | Place::Delta(which) => 10 + which,
        Place::Interface(which) => 12 + which,
        Place::System(which) => 14 + which,
        Place::Prefix(which) => 16 + which,
        Place::NextHop => 18,
        Place::Vlan(which) => 20 + which,
        Place::Mac(which) => 22 + which,
        Place::EndReason => 24,
        Place::Direction => 25,
        Place::Icmp(_) => 26,
        Place::OtherPackets => 27,
        Place::OtherOctets => 28,
        Place::OtherTime(which) | Place::OtherUptime(which) => 30 + which,
        Place::OtherFlags => 32,
        _ => return None,
    })
}

/// Fields are read in the order of this, and those of the same rank as the template has them.
pub(super) fn rank(field: &Field) -> u8 {
    let precise = |which: u8| {
        let ids = TIMES.get(usize::from(which & 1));
        ids.and_then(|ids| ids.iter().position(|id| *id == field.number.id)).unwrap_or(0) as u8
    };
    match field.to {
        Place::Time(which) | Place::Uptime(which) | Place::Delta(which) => 1 + precise(which),
        Place::OtherTime(which) | Place::OtherUptime(which) => 1 + precise(which),
        // They need the protocol and the ports.
        Place::Icmp(_) | Place::IcmpType(_) | Place::IcmpCode(_) => 10,
        _ => 0,
    }
}

/// Whether ICMP's type and code are for this record: where a protocol is not said, there are no ports either.
#[inline]
pub(super) fn is_icmp(record: &Record) -> bool {
    matches!(record.protocol, protocol::ICMP | protocol::ICMPV6)
        || record.protocol == 0 && record.ports == [0; 2]
}

/// Does nothing say yet what goes there?
fn is_free(to: Place, record: &Record, other_way: &OtherWay) -> bool {
    let is_zero = |numbers: &[u64; 2], which: u8| numbers[usize::from(which & 1)] == 0;
    match to {
        Place::Address(which) => {
            record.addresses[usize::from(which & 1)].is_none_or(|address| address.is_unspecified())
        }
        Place::Port(which) => is_zero(&record.ports.map(u64::from), which),
        Place::Protocol => record.protocol == 0,
        Place::Tos => record.tos == 0,
        Place::Flags => record.tcp_flags == 0,
        Place::Packets => record.packets == 0,
        Place::Octets => record.octets == 0,
        Place::Time(which) | Place::Delta(which) => is_zero(&record.times_ns, which),
        Place::Interface(which) => is_zero(&record.interfaces.map(u64::from), which),
        Place::System(which) => is_zero(&record.systems.map(u64::from), which),
        Place::Prefix(which) => is_zero(&record.prefixes.map(u64::from), which),
        Place::NextHop => record.next_hop.is_none(),
        Place::Vlan(which) => is_zero(&record.vlans.map(u64::from), which),
        Place::Mac(which) => record.macs[usize::from(which & 1)] == [0; 6],
        Place::EndReason => record.end_reason == 0,
        Place::Direction => record.direction == 0,
        Place::OtherPackets => other_way.packets == 0,
        Place::OtherOctets => other_way.octets == 0,
        Place::OtherTime(which) => is_zero(&other_way.times_ns, which),
        Place::OtherFlags => other_way.tcp_flags == 0,
        _ => true,
    }
}

/// What is known beside a record when it is read.
#[derive(Clone, Copy)]
pub(super) struct Beside<'k> {
    pub(super) head: Head,
    pub(super) known: &'k Known,
    /// The template's number.
    pub(super) template: u16,
}

/// What can be said when all fields have been seen.
#[derive(Default)]
struct Late<'a> {
    left: [Option<(Number, &'a [u8])>; 2],
    uptimes: [Option<u64>; 2],
    other_uptimes: [Option<u64>; 2],
    began_ms: Option<u64>,
    duration_us: Option<u64>,
    /// Type and code of ICMP and ICMPv6: together, and one by one.
    icmp: [u16; 2],
    icmp_parts: [[u8; 2]; 2],
    selector: Option<u64>,
    rate: Rate,
    /// By which element, and when: of several the most precise one counts, which has the highest number.
    observed: (u16, u64),
    /// The beginning of a packet, and the link that its frame is of.
    section: Option<(LinkType, &'a [u8])>,
    section_length: Option<u64>,
}

impl Template {
    /// Reads a record whose fields may say the same of each other: of two for one member the one that is not zero counts.
    pub(super) fn careful<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        beside: Beside<'_>,
        (record, other_way): (&mut Record, &mut OtherWay),
        others: &mut Option<&mut Vec<Other<'a>>>,
    ) -> Result<(), Malformed> {
        let mut late = Late::default();
        if self.varies {
            // Where a field stands is known when those before it have been seen.
            let all: Vec<&[u8]> =
                self.fields.iter().map(|field| self.field(cursor, field)).collect::<Result<_, _>>()?;
            let mut order: Vec<(&Field, &[u8])> = self.fields.iter().zip(all).collect();
            if self.is_careful {
                order.sort_by_key(|(field, _)| rank(field));
            }
            for (field, bytes) in order {
                late.take(field, bytes, beside.head, (record, other_way), others);
            }
        } else {
            let whole = cursor.take(self.least)?;
            for field in &self.fields {
                late.take(field, field.of(whole), beside.head, (record, other_way), others);
            }
        }
        late.settle(beside, (record, other_way), others);
        Ok(())
    }
}

impl<'a> Late<'a> {
    fn take(
        &mut self,
        field: &Field,
        bytes: &'a [u8],
        head: Head,
        (record, other_way): (&mut Record, &mut OtherWay),
        others: &mut Option<&mut Vec<Other<'a>>>,
    ) {
        let value = unsigned(bytes);
        let is_zero = bytes.iter().all(|byte| *byte == 0);
        let mut keep = || {
            if let Some(others) = others {
                others.push(Other { number: field.number, bytes });
            }
        };
        match field.to {
            Place::Left(which) => self.left[usize::from(which & 1)] = Some((field.number, bytes)),
            Place::Init => self.began_ms = Some(value).filter(|ms| *ms > 0),
            Place::Duration if field.number.id == 161 => self.duration_us = Some(value.saturating_mul(1000)),
            Place::Duration => self.duration_us = Some(value),
            Place::Uptime(which) => {
                self.uptimes[usize::from(which & 1)].get_or_insert(value);
            }
            Place::OtherUptime(which) => {
                self.other_uptimes[usize::from(which & 1)].get_or_insert(value);
            }
            Place::Sampler => {
                self.selector = self.selector.filter(|id| *id != 0).or(Some(value));
                keep();
            }
            Place::Rate => {
                self.rate.hear(field.number.id, bytes);
                if !matches!(field.number.id, 34 | 50) {
                    keep();
                }
            }
            Place::Observed => {
                let at_ns = times::absolute(field.kind, value, || bytes);
                if at_ns > 0 && field.number.id > self.observed.0 {
                    self.observed = (field.number.id, at_ns);
                }
            }
            Place::Section => {
                let link = if field.number.id == 313 { LinkType::RAW } else { LinkType::ETHERNET };
                self.section = Some((link, bytes));
                keep();
            }
            Place::SectionLength => self.section_length = Some(value),
            // Of other protocols they mean nothing.
            Place::Icmp(_) | Place::IcmpType(_) | Place::IcmpCode(_) if !is_icmp(record) => {}
            Place::Icmp(which) => self.icmp[usize::from(which & 1)] = value as u16,
            Place::IcmpType(which) => self.icmp_parts[usize::from(which & 1)][0] = value as u8,
            Place::IcmpCode(which) => self.icmp_parts[usize::from(which & 1)][1] = value as u8,
            to if !is_free(to, record, other_way) => {
                if !is_zero {
                    keep();
                }
            }
            // Of two that are zero the first one stays.
            Place::Address(which) if is_zero && record.addresses[usize::from(which & 1)].is_some() => {}
            _ => field.put(value, || bytes, head, (record, other_way), others),
        }
    }

    fn settle(
        &self,
        beside: Beside<'_>,
        (record, other_way): (&mut Record, &mut OtherWay),
        others: &mut Option<&mut Vec<Other<'a>>>,
    ) {
        let counts_nothing = record.octets == 0 && record.packets == 0;
        for (which, (number, bytes)) in
            self.left.iter().enumerate().filter_map(|(at, left)| Some((at, (*left)?)))
        {
            if counts_nothing {
                *[&mut record.octets, &mut record.packets][which] = unsigned(bytes);
            } else if let Some(others) = others {
                others.push(Other { number, bytes });
            }
        }
        self.settle_section(record);
        self.settle_icmp(record);
        self.settle_times(beside.head, record, other_way);
        settle_addresses(record);
        let own = self.rate.one_in();
        if own > 0 {
            record.sampling = own;
        } else if self.selector.is_some() || beside.known.by_interface() {
            record.sampling = beside.known.one_in(beside.template, self.selector, record.interfaces);
        }
    }

    /// What a packet says of itself, where the record says no more of it (RFC 5477, section 8.5).
    fn settle_section(&self, record: &mut Record) {
        let Some((link, bytes)) = self.section else { return };
        // A field of a fixed length is filled up behind a shorter packet.
        let length =
            self.section_length.map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX));
        let bytes = bytes.get(..length).unwrap_or(bytes);
        let frame = Frame { link, ..Frame::ethernet(bytes, record.exported_ns) };
        // A later fragment's first one was hardly ever sampled: each packet stands for itself.
        if let Some(read) = sampled(&mut walk(), &frame, *record).or_else(|| sflow::short(&frame, *record)) {
            complete(record, &read);
        }
        record.packets = record.packets.max(1);
    }

    fn settle_icmp(&self, record: &mut Record) {
        let parts = self.icmp_parts.map(u16::from_be_bytes);
        let of_v6 = record.protocol == protocol::ICMPV6 || matches!(record.addresses[0], Some(IpAddr::V6(_)));
        let mut ways = [self.icmp[0], parts[0], self.icmp[1], parts[1]];
        if of_v6 {
            ways.rotate_left(2);
        }
        if let Some(said) = ways.into_iter().find(|said| *said != 0)
            && is_icmp(record)
        {
            record.ports[1] = said;
        }
    }

    fn settle_times(&self, head: Head, record: &mut Record, other_way: &mut OtherWay) {
        let uptime = match (head.format, self.began_ms) {
            (Format::Ipfix, Some(began_ms)) => {
                Uptime::Since { began_ms, exported_ms: head.exported_ns / 1_000_000 }
            }
            _ => head.uptime,
        };
        let both = [(&mut record.times_ns, self.uptimes), (&mut other_way.times_ns, self.other_uptimes)];
        for (times_ns, uptimes) in both {
            if uptimes != [None; 2] {
                for (time, by_uptime) in times_ns.iter_mut().zip(uptime.pair(uptimes)) {
                    *time = if *time == 0 { by_uptime } else { *time };
                }
            }
        }
        if record.times_ns == [0; 2] {
            record.times_ns = [self.observed.1; 2];
        }
        let Some(duration_us) = self.duration_us else { return };
        let ns = duration_us.saturating_mul(1000);
        match record.times_ns {
            [0, last] if last > 0 => record.times_ns[0] = times::told(last.saturating_sub(ns)),
            [first, 0] if first > 0 => record.times_ns[1] = first.saturating_add(ns),
            _ => {}
        }
    }
}

/// Takes what a packet says and the record itself does not. Of a packet in another one the record may mean the other.
fn complete(record: &mut Record, read: &Record) {
    fn fill<T: Copy + Default + PartialEq>(own: &mut T, read: T) {
        if *own == T::default() {
            *own = read;
        }
    }
    // The octets of several are not those of one.
    if record.packets <= 1 {
        fill(&mut record.octets, read.octets);
    }
    let agrees = record.addresses.iter().zip(read.addresses).all(|(own, read)| own.is_none() || *own == read)
        && (record.protocol == 0 || record.protocol == read.protocol);
    if !agrees && record.addresses != [None; 2] {
        return;
    }
    for (own, read) in record.addresses.iter_mut().zip(read.addresses) {
        *own = own.or(read);
    }
    for (own, read) in record.vlans.iter_mut().zip(read.vlans) {
        fill(own, read);
    }
    for (own, read) in record.macs.iter_mut().zip(read.macs) {
        fill(own, read);
    }
    fill(&mut record.tos, read.tos);
    if !agrees {
        return;
    }
    for (own, read) in record.ports.iter_mut().zip(read.ports) {
        fill(own, read);
    }
    fill(&mut record.protocol, read.protocol);
    fill(&mut record.tcp_flags, read.tcp_flags);
}

/// One address of a pair may be zero, and then its IP version is that of the other one.
fn settle_addresses(record: &mut Record) {
    let none_of = |other: &IpAddr| match other {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    if let [Some(source), Some(destination)] = &mut record.addresses {
        if source.is_unspecified() {
            *source = none_of(destination);
        } else if destination.is_unspecified() {
            *destination = none_of(source);
        }
    }
}
