//! Frames apart from their VLAN tags, and echo requests with their answers (RFC 792, RFC 4443 section 4).

use crate::devices::Vlan;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::checksum;

const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// Tags that are looked behind.
const DEEPEST: usize = 3;
/// Addresses of a frame.
const ADDRESSES: usize = 12;
const ECHO_REQUEST: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Hops of what a device sends.
const HOPS: u8 = 64;

/// The numbers of a frame's VLANs, the outermost first, and the frame without its tags. `outer`: the tag that the kernel took out. A tag of
/// number 0 is a priority alone.
pub(crate) fn untagged(outer: Option<(u16, u16)>, bytes: &[u8]) -> Option<(Vec<u16>, Vec<u8>)> {
    let addresses = bytes.get(..ADDRESSES)?;
    let mut rest = bytes.get(ADDRESSES..)?;
    let mut vlans: Vec<u16> = outer.map(|(_, control)| control & 0xfff).into_iter().collect();
    for _ in 0..DEEPEST {
        let kind = u16::from_be_bytes(*rest.first_chunk()?);
        if !TAGS.contains(&kind) {
            break;
        }
        vlans.push(u16::from_be_bytes(*rest.get(2..)?.first_chunk()?) & 0xfff);
        rest = rest.get(4..)?;
    }
    vlans.retain(|vlan| *vlan != 0);
    Some((vlans, [addresses, rest].concat()))
}

/// The frame with these tags.
pub(crate) fn tagged(vlans: &[Vlan], frame: &[u8]) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(ADDRESSES.min(frame.len()));
    let mut tagged = addresses.to_vec();
    for vlan in vlans {
        tagged.extend(vlan.tpid.to_be_bytes());
        tagged.extend((u16::from(vlan.priority & 7) << 13 | vlan.id & 0xfff).to_be_bytes());
    }
    tagged.extend(rest);
    tagged
}

/// Whom an echo request in a frame without tags is for.
pub(crate) fn pinged(frame: &[u8]) -> Option<IpAddr> {
    match *frame.get(ADDRESSES..)?.first_chunk()? {
        [8, 0] => {
            let (ip, icmp) = v4(frame)?;
            (icmp.first()? == &ECHO_REQUEST && checksum::finish(checksum::sum(icmp)) == 0).then_some(())?;
            Some(IpAddr::from(*ip.get(16..)?.first_chunk::<4>()?))
        }
        [0x86, 0xdd] => {
            let (ip, icmp) = v6(frame)?;
            (icmp.first()? == &ECHO_REQUEST_V6 && sum_v6(ip, icmp)? == 0).then_some(())?;
            Some(IpAddr::from(*ip.get(24..)?.first_chunk::<16>()?))
        }
        _ => None,
    }
}

/// The answer to the echo request in `frame`, by who is at its destination.
pub(crate) fn pong(frame: &[u8]) -> Option<Vec<u8>> {
    let mut answer = [frame.get(6..12)?, frame.get(..6)?].concat();
    answer.extend(frame.get(12..14)?);
    if frame.get(12..14)? == [8, 0] {
        let (ip, icmp) = v4(frame)?;
        let from: Ipv4Addr = (*ip.get(12..)?.first_chunk::<4>()?).into();
        (!from.is_unspecified() && !from.is_multicast() && !from.is_broadcast()).then_some(())?;
        // Without the request's options.
        let length = u16::try_from(20 + icmp.len()).ok()?;
        let mut head = vec![0x45, *ip.get(1)?];
        head.extend(length.to_be_bytes());
        head.extend(ip.get(4..6)?);
        head.extend([0, 0, HOPS, ICMP, 0, 0]);
        head.extend(ip.get(16..20)?);
        head.extend(ip.get(12..16)?);
        let sum = checksum::finish(checksum::sum(&head));
        head.get_mut(10..12)?.copy_from_slice(&sum.to_be_bytes());
        let mut icmp = icmp.to_vec();
        icmp.get_mut(..4)?.copy_from_slice(&[0; 4]);
        let sum = checksum::finish(checksum::sum(&icmp));
        icmp.get_mut(2..4)?.copy_from_slice(&sum.to_be_bytes());
        answer.extend(head);
        answer.extend(icmp);
    } else {
        let (ip, icmp) = v6(frame)?;
        let from: Ipv6Addr = (*ip.get(8..)?.first_chunk::<16>()?).into();
        (!from.is_unspecified() && !from.is_multicast()).then_some(())?;
        let mut head = ip.get(..7)?.to_vec();
        head.push(HOPS);
        head.extend(ip.get(24..40)?);
        head.extend(ip.get(8..24)?);
        let mut icmp = icmp.to_vec();
        icmp.get_mut(..4)?.copy_from_slice(&[ECHO_REPLY_V6, 0, 0, 0]);
        let sum = sum_v6(&head, &icmp)?;
        icmp.get_mut(2..4)?.copy_from_slice(&sum.to_be_bytes());
        answer.extend(head);
        answer.extend(icmp);
    }
    Some(answer)
}

/// How many bytes of an IP packet a frame has, without what fills it up.
pub(crate) fn packet(frame: &[u8]) -> usize {
    frame.len().saturating_sub(ADDRESSES + 2)
}

/// Header and message of a whole ICMP packet that is no fragment.
fn v4(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let ip = frame.get(14..)?;
    let first = *ip.first()?;
    let header = usize::from(first & 15) * 4;
    let length = usize::from(u16::from_be_bytes(*ip.get(2..)?.first_chunk()?));
    let is_it = first >> 4 == 4
        && header >= 20
        && *ip.get(9)? == ICMP
        && u16::from_be_bytes(*ip.get(6..)?.first_chunk()?) & 0x3fff == 0
        && checksum::finish(checksum::sum(ip.get(..header)?)) == 0;
    is_it.then_some(())?;
    let message = ip.get(header..length).filter(|message| message.len() >= 8)?;
    Some((ip.get(..header)?, message))
}

fn v6(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let ip = frame.get(14..54)?;
    let length = usize::from(u16::from_be_bytes(*ip.get(4..)?.first_chunk()?));
    (ip.first()? >> 4 == 6 && *ip.get(6)? == ICMPV6).then_some(())?;
    let message = frame.get(54..54 + length).filter(|message| message.len() >= 8)?;
    Some((ip, message))
}

/// The checksum that a message of this header must have; 0: it has it.
fn sum_v6(ip: &[u8], icmp: &[u8]) -> Option<u16> {
    let address = |at: usize| ip.get(at..)?.first_chunk::<16>().copied();
    let pseudo = checksum::pseudo_v6(address(8)?, address(24)?, ICMPV6, icmp.len());
    Some(checksum::finish(pseudo + checksum::sum(icmp)))
}
