//! Edits of IPv4, IPv6 and ARP, in place. Each function gets the bytes from its header on, to the end of the frame.

use wire::checksum::sum;
use wire::ends::Ends;
use wire::numbers::ethertype;
use wire::numbers::protocol::{self, ICMPV6, SCTP, TCP, UDP};
use wire::proto::sctp;

use super::bytes::{be16, be32, be128, write, write16};
use super::group::Group;
use super::plan::{AddressMap, Plan, Side};
use super::sums;

/// An IP packet whose header is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) v6: bool,
    /// Length of the header, with extension headers where an upper layer was found.
    pub(super) header: usize,
    /// The upper layer's protocol. `None` in fragments but the first, and behind headers that cannot be walked.
    pub(super) upper: Option<u8>,
    /// A part of a packet: it has no upper layer whose checksum could be computed.
    pub(super) fragment: bool,
}

impl Packet {
    // Inlined, because what is returned in memory and read at once costs more than the parsing.
    #[inline(always)]
    pub(super) fn v4(bytes: &[u8]) -> Option<Packet> {
        let header = usize::from(bytes.first()? & 0xf) * 4;
        if bytes.len() < 20 || header > bytes.len() {
            return None;
        }
        let flags = be16(bytes, 6)?;
        let upper = (flags & 0x1fff == 0 && header >= 20).then(|| bytes.get(9).copied()).flatten();
        Some(Packet { v6: false, header, upper, fragment: flags & 0x3fff != 0 })
    }

    /// Walks over extension headers (RFC 8200 section 4).
    pub(super) fn v6(bytes: &[u8]) -> Option<Packet> {
        if bytes.len() < 40 {
            return None;
        }
        let mut packet = Packet { v6: true, header: 40, upper: None, fragment: false };
        let mut next = bytes.get(6).copied()?;
        loop {
            let extension = |at: usize| bytes.get(packet.header + at).copied();
            let length = match next {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::MOBILITY => {
                    extension(1).map(|units| usize::from(units) * 8 + 8)
                }
                // It counts words of 32 bits (RFC 4302).
                protocol::AUTHENTICATION => extension(1).map(|units| usize::from(units) * 4 + 8),
                protocol::FRAGMENT => {
                    packet.fragment = true;
                    let offset = be16(bytes, packet.header + 2);
                    if offset.is_none_or(|offset| offset >> 3 != 0) {
                        return Some(packet);
                    }
                    Some(8)
                }
                // Encrypted, or nothing.
                protocol::ESP | protocol::NO_NEXT_HEADER => return Some(packet),
                _ => {
                    packet.upper = (packet.header <= bytes.len()).then_some(next);
                    return Some(packet);
                }
            };
            let (Some(length), Some(following)) = (length, extension(0)) else { return Some(packet) };
            packet.header += length;
            next = following;
        }
    }

    /// The upper layer with its protocol.
    fn upper_mut<'a>(&self, bytes: &'a mut [u8]) -> Option<(u8, &'a mut [u8])> {
        Some((self.upper?, bytes.get_mut(self.header..)?))
    }
}

/// TOS, TTL, ports, sequence numbers of both versions. Whether checksums are to be computed afresh.
pub(super) fn headers(bytes: &mut [u8], packet: &Packet, plan: &Plan) -> bool {
    let mut recompute = false;
    if packet.v6 {
        if let (Some(ttl), Some(limit)) = (plan.ttl, bytes.get_mut(7)) {
            recompute = ttl != super::Ttl::Set(*limit);
            *limit = ttl.apply(*limit);
        }
        if let Some(word) = be32(bytes, 0) {
            let word = plan.traffic_class.map_or(word, |class| word & 0xf00f_ffff | u32::from(class) << 20);
            let word = plan.flow_label.map_or(word, |label| word & 0xfff0_0000 | label & 0x000f_ffff);
            write(bytes, 0, &word.to_be_bytes());
        }
    } else {
        if let Some(tos) = plan.tos {
            change_v4_word(bytes, 0, |word| word & 0xff00 | u16::from(tos));
        }
        if let (Some(ttl), Some(&old)) = (plan.ttl, bytes.get(8)) {
            recompute = ttl != super::Ttl::Set(old);
            change_v4_word(bytes, 8, |word| word & 0x00ff | u16::from(ttl.apply(old)) << 8);
        }
    }
    let stated = stated_length(bytes, packet);
    if let Some((protocol, upper)) = packet.upper_mut(bytes) {
        let upper = within(upper, stated, packet);
        match protocol {
            // Its CRC depends on how many bytes stand behind the ports, which a fragment does not tell.
            SCTP if packet.fragment => {}
            SCTP => sctp_ports(upper, stated.saturating_sub(packet.header), plan),
            _ => ports(upper, protocol, plan),
        }
        if let Some(shift) = plan.tcp_shift
            && protocol == TCP
        {
            shift_numbers(upper, shift);
        }
    }
    recompute
}

/// Changes a word of an IPv4 header and corrects its checksum.
fn change_v4_word(bytes: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
    let (Some(old), Some(checksum)) = (be16(bytes, at), be16(bytes, 10)) else { return };
    let new = change(old);
    write16(bytes, at, new);
    write16(bytes, 10, sums::word_changed(checksum, old, new));
}

/// What of the upper layer belongs to the packet, by its header's length: behind that is padding. A length that leaves no room
/// for it (0, of captures before segmentation) says nothing.
fn within<'a>(upper: &'a mut [u8], stated: usize, packet: &Packet) -> &'a mut [u8] {
    let room = match stated.saturating_sub(packet.header) {
        0 => upper.len(),
        room => room.min(upper.len()),
    };
    upper.get_mut(..room).unwrap_or_default()
}

/// Fields that are there are edited, also where the rest of their header was not captured.
fn ports(upper: &mut [u8], protocol: u8, plan: &Plan) {
    if plan.ports.is_empty() || !matches!(protocol, TCP | UDP) || upper.len() < 4 {
        return;
    }
    for at in [2, 0] {
        let Some(old) = be16(upper, at) else { return };
        let new = plan.ports.get(old);
        if new != old {
            write16(upper, at, new);
            sums::upper_changed(upper, protocol, |checksum| sums::word_changed(checksum, old, new));
        }
    }
}

/// As [`ports`], in an SCTP packet of `length` bytes, by its headers.
fn sctp_ports(upper: &mut [u8], length: usize, plan: &Plan) {
    let Some(old) = upper.first_chunk::<4>().copied() else { return };
    let whole_header = sctp::HEADER <= upper.len().min(length);
    if plan.ports.is_empty() || !whole_header {
        return;
    }
    let port = |at: usize| plan.ports.get(u16::from_be_bytes([old[at], old[at + 1]])).to_be_bytes();
    let ([a, b], [c, d]) = (port(0), port(2));
    let new = [a, b, c, d];
    if new != old {
        write(upper, 0, &new);
        sums::sctp_changed(upper, old, new, length);
    }
}

/// Shifts sequence and acknowledgement numbers; a SYN without ACK acknowledges nothing. Where the flags were not captured, a zero
/// is taken for that.
fn shift_numbers(upper: &mut [u8], shift: u32) {
    let acknowledges = match upper.get(13) {
        Some(flags) => flags & 0x12 != 0x02,
        None => be32(upper, 8) != Some(0),
    };
    for at in [4].into_iter().chain(acknowledges.then_some(8)) {
        let Some(old) = be32(upper, at) else { return };
        let new = old.wrapping_add(shift);
        write(upper, at, &new.to_be_bytes());
        sums::upper_changed(upper, TCP, |checksum| {
            sums::bytes_changed(checksum, sum(&old.to_be_bytes()), sum(&new.to_be_bytes()))
        });
    }
}

/// Corrects what covers the address at `at` for its change, given as partial sums.
#[inline]
fn address_changed(bytes: &mut [u8], packet: &Packet, at: usize, old: u64, new: u64) {
    if !packet.v6
        && let Some(checksum) = be16(bytes, 10)
    {
        write16(bytes, 10, sums::bytes_changed(checksum, old, new));
    }
    if !covers(bytes, packet, at) {
        return;
    }
    let stated = stated_length(bytes, packet);
    if let Some((protocol, upper)) = packet.upper_mut(bytes) {
        // ICMP over IPv4 does not cover the addresses. A checksum that was captured is corrected, whatever else was.
        if matches!(protocol, TCP | UDP) || protocol == ICMPV6 && packet.v6 {
            let upper = within(upper, stated, packet);
            sums::upper_changed(upper, protocol, |checksum| sums::bytes_changed(checksum, old, new));
        }
    }
}

/// Whether the upper layer's checksum covers the header's address at `at`. With a route or a home address before it, it may
/// be another.
#[inline]
fn covers(bytes: &[u8], packet: &Packet, at: usize) -> bool {
    let plain = if packet.v6 { 40 } else { 20 };
    packet.header == plain
        || Ends::of(bytes).is_some_and(|ends| {
            ends.source.start == at || ends.destination.is_some_and(|place| place.start == at)
        })
}

/// The address maps that apply to a frame's source and to its destination, in their order.
fn maps(plan: &Plan, side: Side) -> ([&AddressMap; 2], [&AddressMap; 2]) {
    let (near, far) = match side {
        Side::Client => (&plan.map_client, &plan.map_server),
        Side::Server => (&plan.map_server, &plan.map_client),
    };
    ([&plan.map_source, near], [&plan.map_destination, far])
}

fn is_group_v4(address: u32) -> bool {
    address >> 28 == 0xe
}

fn is_group_v6(address: u128) -> bool {
    address >> 120 == 0xff
}

fn mapped_v4(address: u32, map: &AddressMap, plan: &Plan) -> u32 {
    if plan.skip_broadcast && is_group_v4(address) {
        return address;
    }
    map.map_v4(address).unwrap_or(address)
}

fn mapped_v6(address: u128, map: &AddressMap, plan: &Plan) -> u128 {
    if plan.skip_broadcast && is_group_v6(address) {
        return address;
    }
    map.map_v6(address).unwrap_or(address)
}

/// tcprewrite's law: a word becomes (word ^ seed) - (word & seed), both taken as a little-endian machine reads them
/// from the packet, which is what all its published results are.
fn scramble_word(word: u32, seed: u32) -> u32 {
    let (word, seed) = (word.swap_bytes(), seed.swap_bytes());
    (word ^ seed).wrapping_sub(word & seed).swap_bytes()
}

fn scrambled_v4(address: u32, seed: u32, plan: &Plan) -> u32 {
    let group = is_group_v4(address);
    if plan.skip_broadcast && group {
        return address;
    }
    let new = scramble_word(address, seed);
    match (group, is_group_v4(new)) {
        (true, false) => new & 0x0fff_ffff | 0xe000_0000,
        (false, true) => new & 0x7fff_ffff,
        _ => new,
    }
}

fn scrambled_v6(address: u128, seed: u32, plan: &Plan) -> u128 {
    let group = is_group_v6(address);
    if plan.skip_broadcast && group {
        return address;
    }
    let mut new = 0;
    for shift in [96, 64, 32, 0] {
        new |= u128::from(scramble_word((address >> shift) as u32, seed)) << shift;
    }
    let first = match (group, is_group_v6(new)) {
        (true, false) => 0xff,
        (false, true) => 0xaa,
        _ => return new,
    };
    new & (u128::MAX >> 8) | first << 120
}

/// What becomes of the checksums over an address that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sums {
    /// They are corrected for the change.
    Corrected,
    /// They are left: [`checksums`] computes all of them afterwards.
    Left,
}

/// Whether [`checksums`] will compute every checksum that covers the addresses, whatever it is now.
pub(super) fn sums_all(bytes: &[u8], packet: &Packet, whole: bool) -> bool {
    let whole = whole && be16(bytes, 2).is_some_and(|length| usize::from(length) == bytes.len());
    whole && !packet.v6 && !packet.fragment && packet.header >= 20
}

/// Maps, then scrambles the addresses of an IP packet, and of the packet that an ICMPv6 error quotes.
pub(super) fn addresses(bytes: &mut [u8], packet: &Packet, plan: &Plan, side: Side, sums: Sums) {
    let (source, destination) = maps(plan, side);
    let (source_at, destination_at) = if packet.v6 { (8, 24) } else { (12, 16) };
    // The order matters to nothing but a checksum's two zeros; it is tcprewrite's.
    let [maps_source, maps_near] = source;
    let [maps_destination, maps_far] = destination;
    let steps = [
        (source_at, maps_source),
        (destination_at, maps_destination),
        (destination_at, maps_far),
        (source_at, maps_near),
    ];
    for (at, map) in steps.into_iter().filter(|(_, map)| !map.is_empty()) {
        if packet.v6 {
            change_v6(bytes, packet, at, |address| mapped_v6(address, map, plan));
        } else {
            change_v4(bytes, packet, at, sums, |address| mapped_v4(address, map, plan));
        }
    }
    if let Some(seed) = plan.scramble_ip {
        for at in [destination_at, source_at] {
            if packet.v6 {
                change_v6(bytes, packet, at, |address| scrambled_v6(address, seed, plan));
            } else {
                change_v4(bytes, packet, at, sums, |address| scrambled_v4(address, seed, plan));
            }
        }
    }
    if packet.v6
        && let Some((ICMPV6, message)) = packet.upper_mut(bytes)
    {
        quoted(message, plan, side);
    }
}

#[inline]
fn change_v4(bytes: &mut [u8], packet: &Packet, at: usize, sums: Sums, change: impl FnOnce(u32) -> u32) {
    let Some(old) = be32(bytes, at) else { return };
    let new = change(old);
    if new != old {
        write(bytes, at, &new.to_be_bytes());
        if sums == Sums::Corrected {
            let sum = |address: u32| u64::from(address >> 16) + u64::from(address & 0xffff);
            address_changed(bytes, packet, at, sum(old), sum(new));
        }
    }
}

#[inline]
fn change_v6(bytes: &mut [u8], packet: &Packet, at: usize, change: impl FnOnce(u128) -> u128) {
    let Some(old) = be128(bytes, at) else { return };
    let new = change(old);
    if new != old {
        write(bytes, at, &new.to_be_bytes());
        address_changed(bytes, packet, at, sum(&old.to_be_bytes()), sum(&new.to_be_bytes()));
    }
}

/// The packet that an ICMPv6 error message quotes (RFC 4443 section 3) is of the same conversation, in the other
/// direction of it: it is edited alike, so that no address stays behind.
fn quoted(message: &mut [u8], plan: &Plan, side: Side) {
    let error = matches!(message.first(), Some(1..=4));
    let Some(quote) =
        message.get_mut(8..).filter(|quote| error && quote.first().is_some_and(|b| b >> 4 == 6))
    else {
        return;
    };
    let Some(packet) = Packet::v6(quote) else { return };
    let before = sum(quote);
    addresses(quote, &packet, plan, side, Sums::Corrected);
    let after = sum(quote);
    if before != after {
        sums::upper_changed(message, ICMPV6, |checksum| sums::bytes_changed(checksum, before, after));
    }
}

/// Where the addresses of an ARP request or reply for IPv4 stand: the sender's, and the target's.
pub(super) fn arp_addresses(bytes: &[u8]) -> Option<[usize; 2]> {
    let (Some(ethertype::IPV4), Some(1 | 2)) = (be16(bytes, 2), be16(bytes, 6)) else { return None };
    let (Some(&hardware), Some(&4)) = (bytes.get(4), bytes.get(5)) else { return None };
    let sender = 8 + usize::from(hardware);
    Some([sender, sender + 4 + usize::from(hardware)])
}

/// Maps, then scrambles the addresses of ARP requests and replies for IPv4.
pub(super) fn arp(bytes: &mut [u8], plan: &Plan, side: Side) {
    let (Some([sender, target]), Some(operation)) = (arp_addresses(bytes), be16(bytes, 6)) else { return };
    let (near, far) = match side {
        Side::Client => (&plan.map_client, &plan.map_server),
        Side::Server => (&plan.map_server, &plan.map_client),
    };
    // tcprewrite takes a request's sender for the far side.
    let (of_sender, of_target) = if operation == 1 { (far, near) } else { (near, far) };
    for (at, map) in [(sender, of_sender), (target, of_target)] {
        if let Some(old) = be32(bytes, at) {
            let new = mapped_v4(old, map, plan);
            let new = plan.scramble_ip.map_or(new, |seed| scrambled_v4(new, seed, plan));
            write(bytes, at, &new.to_be_bytes());
        }
    }
}

/// Makes the IP header's length that of the frame, whose IP packet had `length` bytes on the wire.
/// Whether it changed.
pub(super) fn set_length(bytes: &mut [u8], packet: &Packet, length: usize) -> bool {
    let (at, value) = if packet.v6 { (4, length.wrapping_sub(40)) } else { (2, length) };
    let changed = be16(bytes, at) != Some(value as u16);
    if changed {
        write16(bytes, at, value as u16);
    }
    changed
}

/// The length of the packet, as its header says.
fn stated_length(bytes: &[u8], packet: &Packet) -> usize {
    let (at, more) = if packet.v6 { (4, 40) } else { (2, 0) };
    more + usize::from(be16(bytes, at).unwrap_or(0))
}

/// Computes checksums afresh. `whole` says that every byte was captured. What contradicts itself is left alone.
pub(super) fn checksums(bytes: &mut [u8], packet: &Packet, whole: bool) {
    if packet.v6 {
        let length = stated_length(bytes, packet);
        if let (true, false, Some(protocol)) = (whole, packet.fragment, packet.upper)
            && let Some(bytes) = bytes.get_mut(..length)
        {
            sums::ipv6_upper(bytes, protocol, packet.header);
        }
        return;
    }
    if packet.header < 20 {
        return;
    }
    if whole && !packet.fragment {
        if stated_length(bytes, packet) != bytes.len() {
            return;
        }
        sums::ipv4_upper(bytes, packet.header);
    }
    if let Some(header) = bytes.get_mut(..packet.header) {
        sums::ipv4_header(header);
    }
}

/// The destination, if it is a group.
#[inline]
pub(super) fn group(bytes: &[u8], packet: &Packet) -> Option<Group> {
    if packet.v6 {
        be128(bytes, 24).filter(|address| is_group_v6(*address)).map(Group::V6)
    } else {
        be32(bytes, 16).filter(|address| is_group_v4(*address)).map(Group::V4)
    }
}
