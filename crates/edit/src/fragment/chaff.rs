//! Chaff: packets that look like the ones beside them, carry other data, and which a receiver must not take.

use super::options::{insert_ip_option, tcp_option};
use super::packet::{Packet, set};
use super::random::Random;
use super::{IpChaff, TcpChaff};
use wire::bytes::be16;

/// Of a whole packet or a fragment: other data behind the same header. `None` where there is nothing to replace.
pub(super) fn ip(packet: &Packet, kind: IpChaff, random: &mut Random) -> Option<Packet> {
    let layout = packet.layout()?;
    let mut chaff = packet.clone();
    let start = if layout.fragment { layout.upper } else { layout.payload };
    random.letters(chaff.bytes.get_mut(start..).filter(|data| !data.is_empty())?);
    match kind {
        IpChaff::Duplicate => {}
        IpChaff::Option => {
            // An option that says it is longer than the header.
            let [kind, a, b, ..] = random.next().to_be_bytes();
            if !insert_ip_option(&mut chaff, &[kind | 2, 0xff, a, b]) {
                return None;
            }
        }
        IpChaff::Ttl(ttl) => set(&mut chaff.bytes, if layout.v6 { 7 } else { 8 }, &[ttl]),
    }
    chaff.finish();
    Some(chaff)
}

/// Of a TCP segment that carries data.
pub(super) fn tcp(packet: &Packet, kind: TcpChaff, random: &mut Random) -> Option<Packet> {
    let (layout, payload) = packet.tcp()?;
    let mut chaff = packet.clone();
    random.letters(chaff.bytes.get_mut(payload..).filter(|data| !data.is_empty())?);
    let upper = layout.upper;
    match kind {
        TcpChaff::Retransmission | TcpChaff::Checksum => {}
        TcpChaff::NoFlags => set(&mut chaff.bytes, upper + 13, &[0]),
        TcpChaff::Sequence => {
            // Half of the number space away from what is expected.
            let near = |at: usize| chaff.bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b));
            let (sequence, acknowledged) = (near(upper + 4)?, near(upper + 8)?);
            let far = 0x4000_0000 + (random.next() as u32 >> 2);
            set(&mut chaff.bytes, upper + 4, &sequence.wrapping_add(far).to_be_bytes());
            set(&mut chaff.bytes, upper + 8, &acknowledged.wrapping_sub(far).to_be_bytes());
        }
        TcpChaff::Syn => {
            chaff.bytes.truncate(payload);
            set(&mut chaff.bytes, upper + 4, &(random.next() as u32).to_be_bytes());
            set(&mut chaff.bytes, upper + 8, &[0; 4]);
            set(&mut chaff.bytes, upper + 13, &[0x02]);
        }
        TcpChaff::Paws => match time_stamp(&chaff, upper + 20, payload) {
            Some(at) => set(&mut chaff.bytes, at, &[0; 8]),
            None => {
                let before = chaff.bytes.len();
                tcp_option(&mut chaff, &[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
                if chaff.bytes.len() == before {
                    return None;
                }
            }
        },
        TcpChaff::Ttl(ttl) => set(&mut chaff.bytes, if layout.v6 { 7 } else { 8 }, &[ttl]),
    }
    chaff.finish_upper();
    if kind == TcpChaff::Checksum {
        let checksum = be16(&chaff.bytes, upper + 16)?;
        // Neither the right one nor another form of it.
        let wrong = checksum.wrapping_add(1 + random.below(0xfffd) as u16);
        set(&mut chaff.bytes, upper + 16, &wrong.to_be_bytes());
    }
    Some(chaff)
}

/// Where a time stamp option's values are (RFC 7323 section 3.2).
fn time_stamp(packet: &Packet, mut at: usize, end: usize) -> Option<usize> {
    while at < end {
        match packet.bytes.get(at..end)? {
            [8, 10, values @ ..] if values.len() >= 8 => return Some(at + 2),
            [1, ..] => at += 1,
            [kind, length, ..] if *kind != 0 && *length >= 2 => at += usize::from(*length),
            _ => return None,
        }
    }
    None
}
