//! The questions and answers as bytes: ARP (RFC 826), Neighbour Solicitation and Advertisement (RFC 4861 section 4). Those of others are read,
//! and their answers made, for who stands for an address (`emulate`).

use super::Mac;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Ethernet and IPv4, addresses of 6 and 4 bytes.
const ARP_KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
/// Only a neighbour's packet arrives with all its hops left (RFC 4861 section 7.1).
const HOPS: u8 = 255;
/// In an advertisement: it answers a solicitation, and what it says replaces what was known.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// The shortest frame, without FCS.
const SHORTEST: usize = 60;

/// The frame that asks who has `target`; `None` if the two addresses are of different families.
pub fn question(own: Mac, source: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
    match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => Some(arp_request(own, source, target)),
        (IpAddr::V6(source), IpAddr::V6(target)) => Some(solicitation(own, source, target)),
        _ => None,
    }
}

/// The Ethernet address in `frame`, if it answers for `target`.
pub fn answer(frame: &[u8], target: IpAddr) -> Option<Mac> {
    let mac = match target {
        IpAddr::V4(target) => arp_reply(frame, target),
        IpAddr::V6(target) => advertisement(frame, target),
    }?;
    // A group or nothing is nobody's address.
    (mac[0] & 1 == 0 && mac != [0; 6]).then_some(mac)
}

/// A question that arrived: who has `target`?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Whose Ethernet address is asked for.
    pub target: IpAddr,
    /// The address of who asks; unspecified while that one only looks whether anybody has it.
    pub source: IpAddr,
    /// Who asks.
    pub mac: Mac,
}

/// The question in `frame`, if it is one.
pub fn asked(frame: &[u8]) -> Option<Asked> {
    let asked = if frame.get(12..14)? == ARP { arp_asked(frame) } else { solicited(frame) }?;
    // A group or nothing asks for nothing.
    (asked.mac[0] & 1 == 0 && asked.mac != [0; 6]).then_some(asked)
}

/// The frame that answers a question: `own` has the address.
pub fn reply(own: Mac, asked: &Asked) -> Vec<u8> {
    match (asked.source, asked.target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let mut frame = arp([asked.mac, own], 2, (own, target), (asked.mac, source));
            frame.resize(SHORTEST, 0);
            frame
        }
        (IpAddr::V6(source), IpAddr::V6(target)) => advertised(own, (asked.mac, source), target),
        // A question is of one family.
        _ => Vec::new(),
    }
}

fn arp_asked(frame: &[u8]) -> Option<Asked> {
    let arp = frame.get(14..42)?;
    let v4 = |at: usize| arp.get(at..)?.first_chunk::<4>().map(|octets| IpAddr::from(*octets));
    let is_request = arp.get(..6)? == ARP_KIND && arp.get(6..8)? == [0, 1];
    is_request.then_some(())?;
    Some(Asked { target: v4(24)?, source: v4(14)?, mac: arp.get(8..14)?.try_into().ok()? })
}

fn solicited(frame: &[u8]) -> Option<Asked> {
    let icmp = neighbour_discovery(frame, SOLICITATION)?;
    let v6 = |bytes: &[u8]| bytes.first_chunk::<16>().map(|octets| IpAddr::from(*octets));
    let target = v6(icmp.get(8..)?)?;
    Some(Asked { target, source: v6(frame.get(22..)?)?, mac: frame.get(6..12)?.try_into().ok()? })
        .filter(|_| !target.is_multicast())
}

fn advertised(own: Mac, (mac, source): (Mac, Ipv6Addr), target: Ipv6Addr) -> Vec<u8> {
    // Who asks from no address hears it with all others (RFC 4861 section 7.2.4).
    let (flags, mac, to) = if source.is_unspecified() {
        (OVERRIDE, [0x33, 0x33, 0, 0, 0, 1], Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1))
    } else {
        (SOLICITED | OVERRIDE, mac, source)
    };
    let mut icmp = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
    icmp.extend(target.octets());
    icmp.extend([TARGET_LINK_LAYER, 1]);
    icmp.extend(own);
    icmpv6([mac, own], [target, to], icmp)
}

fn arp([to, from]: [Mac; 2], operation: u8, sender: (Mac, Ipv4Addr), target: (Mac, Ipv4Addr)) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend(ARP);
    frame.extend(ARP_KIND);
    frame.extend([0, operation]);
    for (mac, address) in [sender, target] {
        frame.extend(mac);
        frame.extend(address.octets());
    }
    frame
}

/// A frame with this message, whose checksum it gets.
fn icmpv6(macs: [Mac; 2], [source, destination]: [Ipv6Addr; 2], mut icmp: Vec<u8>) -> Vec<u8> {
    let sum = checksum(source, destination, &icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = macs.concat();
    frame.extend(IPV6);
    frame.extend([0x60, 0, 0, 0, 0, icmp.len() as u8, ICMPV6, HOPS]);
    frame.extend(source.octets());
    frame.extend(destination.octets());
    frame.extend(icmp);
    frame
}

/// The message of this type in `frame`, if it came from a neighbour and is whole.
fn neighbour_discovery(frame: &[u8], kind: u8) -> Option<&[u8]> {
    let ip = frame.get(14..54)?;
    if frame.get(12..14)? != IPV6 || ip.first()? >> 4 != 6 || ip.get(6..8)? != [ICMPV6, HOPS] {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([*ip.get(4)?, *ip.get(5)?]));
    let icmp = frame.get(54..54 + length)?;
    let address =
        |at: usize| ip.get(at..at + 16)?.try_into().ok().map(|octets: [u8; 16]| Ipv6Addr::from(octets));
    let is_it = icmp.get(..2)? == [kind, 0] && checksum(address(8)?, address(24)?, icmp) == 0;
    is_it.then_some(icmp)
}

fn arp_request(own: Mac, source: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let mut frame = arp([[0xff; 6], own], 1, (own, source), ([0; 6], target));
    frame.resize(SHORTEST, 0);
    frame
}

fn arp_reply(frame: &[u8], target: Ipv4Addr) -> Option<Mac> {
    let (arp, reply) = (frame.get(14..42)?, [0, 2]);
    let ours = frame.get(12..14)? == ARP
        && arp.get(..6)? == ARP_KIND
        && arp.get(6..8)? == reply
        && arp.get(14..18)? == target.octets();
    if ours { arp.get(8..14)?.try_into().ok() } else { None }
}

fn solicitation(own: Mac, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    // The solicited-node group (RFC 4291 section 2.7.1).
    let [.., x, y, z] = target.octets();
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(x), u16::from_be_bytes([y, z]));
    let mut icmp = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    icmp.extend(target.octets());
    // Who asks from no address must not say where it is (RFC 4861 section 4.3).
    if !source.is_unspecified() {
        icmp.extend([SOURCE_LINK_LAYER, 1]);
        icmp.extend(own);
    }
    icmpv6([[0x33, 0x33, 0xff, x, y, z], own], [source, group], icmp)
}

fn advertisement(frame: &[u8], target: Ipv6Addr) -> Option<Mac> {
    let icmp = neighbour_discovery(frame, ADVERTISEMENT)?;
    if icmp.get(8..24)? != target.octets() {
        return None;
    }
    let mut options = icmp.get(24..)?;
    while let [kind, words, ..] = *options {
        let option = options.get(..usize::from(words) * 8).filter(|option| !option.is_empty())?;
        if kind == TARGET_LINK_LAYER {
            return option.get(2..8)?.try_into().ok();
        }
        options = options.get(option.len()..)?;
    }
    // Without the option it is where the frame came from (a unicast answer may leave it out).
    frame.get(6..12)?.try_into().ok()
}

/// Over the message and its pseudo header (RFC 8200 section 8.1); 0 if the message has its right checksum in it.
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, icmp: &[u8]) -> u16 {
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
    };
    let addresses = words(&source.octets()) + words(&destination.octets());
    let mut sum = addresses + words(icmp) + icmp.len() as u32 + u32::from(ICMPV6);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const THEIRS: Mac = [2, 0, 0, 0, 0, 2];

    #[test]
    fn an_arp_request_is_as_rfc_826_has_it_and_its_reply_is_read() {
        let frame = question(OWN, "198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap()).unwrap();
        assert_eq!(frame.len(), 60);
        let literal = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0,
            0, 1, 198, 18, 0, 1, 0, 0, 0, 0, 0, 0, 198, 18, 0, 2,
        ];
        assert_eq!(frame[..42], literal);
        let mut reply = frame.clone();
        reply[21] = 2;
        reply[22..28].copy_from_slice(&THEIRS);
        reply[28..32].copy_from_slice(&[198, 18, 0, 2]);
        assert_eq!(answer(&reply, "198.18.0.2".parse().unwrap()), Some(THEIRS));
        // Not our own question, not another's answer, not half of one.
        assert_eq!(answer(&frame, "198.18.0.2".parse().unwrap()), None);
        assert_eq!(answer(&reply, "198.18.0.3".parse().unwrap()), None);
        assert!((0..42).all(|cut| answer(&reply[..cut], "198.18.0.2".parse().unwrap()).is_none()));
    }

    #[test]
    fn a_solicitation_goes_to_the_solicited_node_group_with_a_right_checksum() {
        let (source, target) = ("2001:db8::1".parse().unwrap(), "2001:db8::a:b0c".parse().unwrap());
        let frame = question(OWN, source, target).unwrap();
        assert_eq!(frame[..6], [0x33, 0x33, 0xff, 0x0a, 0x0b, 0x0c]);
        let group: Ipv6Addr = "ff02::1:ff0a:b0c".parse().unwrap();
        assert_eq!((frame[21], &frame[38..54]), (255, &group.octets()[..]));
        let IpAddr::V6(source) = source else { panic!("an IPv6 address") };
        assert_eq!(checksum(source, group, &frame[54..]), 0);
        assert_eq!(frame[78..86], [1, 1, 2, 0, 0, 0, 0, 1]);
        // From no address: without the option.
        let frame = question(OWN, "::".parse().unwrap(), target).unwrap();
        assert_eq!(frame.len(), 78);
    }

    #[test]
    fn questions_are_read_and_their_answers_are_what_who_asks_reads() {
        for (source, target) in
            [("198.18.0.1", "198.18.0.2"), ("2001:db8::1", "2001:db8::2"), ("0.0.0.0", "198.18.0.2")]
        {
            let (source, target) = (source.parse().unwrap(), target.parse().unwrap());
            let frame = question(OWN, source, target).unwrap();
            let read = asked(&frame).unwrap();
            assert_eq!(read, Asked { target, source, mac: OWN });
            let answered = reply(THEIRS, &read);
            assert_eq!(answer(&answered, target), Some(THEIRS));
            assert_eq!((&answered[..6], &answered[6..12]), (&OWN[..], &THEIRS[..]));
            // An answer is no question, nor is half of one, nor one of a group.
            assert_eq!(asked(&answered), None);
            assert!((0..42).all(|cut| asked(&frame[..cut]).is_none()));
            let mut group = frame.clone();
            let at = if target.is_ipv4() { 22 } else { 6 };
            group[at] |= 1;
            assert_eq!(asked(&group), None);
        }
        // Who only looks whether the address is taken is told with all others.
        let (none, target) = ("::".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let answered = reply(THEIRS, &asked(&question(OWN, none, target).unwrap()).unwrap());
        assert_eq!((&answered[..6], answered[58]), (&[0x33, 0x33, 0, 0, 0, 1][..], OVERRIDE));
        assert_eq!(answer(&answered, target), Some(THEIRS));
    }

    #[test]
    fn an_advertisement_tells_by_its_option_or_else_by_its_frame() {
        let (target, group): (Ipv6Addr, Ipv6Addr) =
            ("2001:db8::2".parse().unwrap(), "ff02::1".parse().unwrap());
        let make = |option: &[u8], hops: u8| {
            let mut icmp = vec![ADVERTISEMENT, 0, 0, 0, 0x20, 0, 0, 0];
            icmp.extend(target.octets());
            icmp.extend(option);
            let sum = checksum(target, group, &icmp);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            let mut frame = [[0x33, 0x33, 0, 0, 0, 1], [2, 0, 0, 0, 0, 9]].concat();
            frame.extend(IPV6);
            frame.extend([0x60, 0, 0, 0, 0, icmp.len() as u8, ICMPV6, hops]);
            frame.extend(target.octets());
            frame.extend(group.octets());
            frame.extend(icmp);
            frame
        };
        let with_option = make(&[2, 1, 2, 0, 0, 0, 0, 2], 255);
        let it = IpAddr::V6(target);
        assert_eq!(answer(&with_option, it), Some(THEIRS));
        assert_eq!(answer(&make(&[], 255), it), Some([2, 0, 0, 0, 0, 9]));
        assert_eq!(answer(&make(&[], 64), it), None, "it came through a router");
        assert_eq!(answer(&make(&[1, 0], 255), it), None, "an option of no length");
        let mut spoilt = with_option.clone();
        spoilt[85] ^= 1;
        assert_eq!(answer(&spoilt, it), None, "a wrong checksum");
        assert!((0..with_option.len()).all(|cut| answer(&with_option[..cut], it).is_none()));
    }
}
