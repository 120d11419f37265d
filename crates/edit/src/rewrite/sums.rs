//! Checksums in frames: corrected for what changed (RFC 1624), or computed afresh.

use wire::checksum::{finish, finish_udp, fold, sum};
use wire::crc;
use wire::ends::Ends;
use wire::numbers::protocol::{ICMP, ICMPV6, SCTP, TCP, UDP};
use wire::proto::sctp;

use super::bytes::{be16, write16};

/// One's complement addition.
fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// A checksum after one of its words changed (RFC 1624, equation 3).
pub(super) fn word_changed(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
}

/// A checksum after bytes with partial sum `old` became others with partial sum `new`.
pub(super) fn bytes_changed(checksum: u16, old: u64, new: u64) -> u16 {
    !fold(0xffff + u64::from(!checksum) + u64::from(!fold(old)) + u64::from(fold(new)))
}

/// Where the checksum stands in the header of a protocol whose checksum covers the IP addresses.
fn field(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        ICMPV6 => Some(2),
        _ => None,
    }
}

/// Corrects the upper layer's checksum at the start of `upper` for a change, where it has one.
pub(super) fn upper_changed(upper: &mut [u8], protocol: u8, change: impl FnOnce(u16) -> u16) {
    let Some(at) = field(protocol) else { return };
    let Some(old) = be16(upper, at) else { return };
    match (protocol, old) {
        // No checksum (RFC 768).
        (UDP, 0) => {}
        (UDP, old) => write16(upper, at, nonzero(change(old))),
        (_, old) => write16(upper, at, change(old)),
    }
}

/// Corrects the CRC of an SCTP packet of `length` bytes whose ports changed.
pub(super) fn sctp_changed(upper: &mut [u8], old: [u8; 4], new: [u8; 4], length: usize) {
    let change = crc::changed(&old, &new, length.saturating_sub(old.len())).to_le_bytes();
    if let Some(field) = upper.get_mut(sctp::CHECKSUM..sctp::HEADER) {
        field.iter_mut().zip(change).for_each(|(byte, change)| *byte ^= change);
    }
}

/// A UDP checksum that comes out as zero is sent as all ones (RFC 768).
fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// Computes the checksum of a whole upper layer. `pseudo` is the pseudo header's partial sum.
fn upper(upper: &mut [u8], protocol: u8, pseudo: u64) {
    let (at, shortest) = match protocol {
        TCP => (16, 20),
        UDP => (6, 8),
        ICMP | ICMPV6 => (2, 8),
        SCTP => return crc::fix_sctp(upper),
        _ => return,
    };
    if upper.len() < shortest || protocol == UDP && be16(upper, at) == Some(0) {
        return;
    }
    write16(upper, at, 0);
    let total = pseudo + sum(upper);
    write16(upper, at, if protocol == UDP { finish_udp(total) } else { finish(total) });
}

/// The IPv4 header's own checksum. `header` is the whole header.
pub(super) fn ipv4_header(header: &mut [u8]) {
    write16(header, 10, 0);
    let checksum = finish(sum(header));
    write16(header, 10, checksum);
}

/// The upper layer of an IPv4 packet that ends where its header says.
pub(super) fn ipv4_upper(packet: &mut [u8], header_len: usize) {
    let protocol = packet.get(9).copied().unwrap_or(0);
    let pseudo = match protocol {
        ICMP | SCTP => 0,
        ICMPV6 => return,
        _ => {
            let ends = if header_len == 20 { Some(Ends::of_header(false)) } else { Ends::of(packet) };
            let Some(addresses) = ends.and_then(|ends| ends.sum(packet)) else { return };
            addresses + u64::from(protocol)
        }
    };
    if let Some(rest) = packet.get_mut(header_len..) {
        let rest = covered(rest, protocol);
        let length = if matches!(protocol, ICMP | SCTP) { 0 } else { rest.len() as u64 };
        upper(rest, protocol, pseudo + length);
    }
}

/// The part of an upper layer that its checksum covers: of UDP as much as its own length says (RFC 768; RFC 8200 section 8.1).
/// Where that cannot be (of a datagram that was cut) it is all there is.
fn covered(rest: &mut [u8], protocol: u8) -> &mut [u8] {
    let stated = be16(rest, 4).map(usize::from).filter(|_| protocol == UDP);
    let length = stated.filter(|length| (8..=rest.len()).contains(length)).unwrap_or(rest.len());
    rest.get_mut(..length).unwrap_or_default()
}

/// The upper layer of an IPv6 packet, at `at`, that ends where its header says. It is left alone where it cannot be told
/// which addresses its checksum covers.
pub(super) fn ipv6_upper(packet: &mut [u8], protocol: u8, at: usize) {
    if protocol == SCTP {
        // It covers no address.
        return packet.get_mut(at..).map_or((), crc::fix_sctp);
    }
    let ends = if at == 40 { Some(Ends::of_header(true)) } else { Ends::of(packet) };
    let Some(addresses) = ends.and_then(|ends| ends.sum(packet)).filter(|_| protocol != ICMP) else { return };
    if let Some(rest) = packet.get_mut(at..) {
        let rest = covered(rest, protocol);
        // A pseudo header has the length and the protocol besides the addresses (RFC 8200 section 8.1).
        let pseudo = addresses + u64::from(protocol) + rest.len() as u64;
        upper(rest, protocol, pseudo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_corrected_checksum_is_the_one_computed_afresh(
            mut bytes in proptest::collection::vec(any::<u8>(), 4..80),
            new in any::<u32>(),
        ) {
            bytes.truncate(bytes.len() / 2 * 2);
            bytes[0] = 0x45;
            let checksum = finish(sum(&bytes));
            let old = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            bytes[..4].copy_from_slice(&(new | 0x4000_0000).to_be_bytes());
            let fresh = finish(sum(&bytes));
            let new = new | 0x4000_0000;
            let words = word_changed(
                word_changed(checksum, (old >> 16) as u16, (new >> 16) as u16), old as u16, new as u16);
            prop_assert_eq!(fold(u64::from(words) + 0xffff), fold(u64::from(fresh) + 0xffff));
            let at_once = bytes_changed(checksum, sum(&old.to_be_bytes()), sum(&new.to_be_bytes()));
            prop_assert_eq!(at_once, fresh);
        }
    }
}
