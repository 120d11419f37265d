//! One bit of a frame's payload flips, as on a bad cable behind a switch that computes the FCS anew.

use wire::LinkType;
use wire::checksum::{finish_udp, pseudo_v4, pseudo_v6, sum};
use wire::crc;
use wire::layers::{L3, Layers};
use wire::proto::sctp;
use wire::signature::{self, Signature};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const ETHERNET: usize = 14;

/// Flips the bit that `random` chooses: of what stands behind the transport header (behind the Ethernet header where there
/// is none), and not in a signature of ours unless there is nothing else. With `mend` the checksum of TCP, UDP or SCTP is
/// made right again, so that the receiving host takes the frame. False if there is no payload.
pub fn flip(frame: &mut [u8], random: u64, mend: bool) -> bool {
    let layers = Layers::parse(LinkType::ETHERNET, frame);
    let transport = layers.l4_offset.filter(|_| !layers.is_fragment());
    let header = match (transport, layers.ip_protocol) {
        (Some(at), Some(UDP)) => at + 8,
        (Some(at), Some(TCP)) => at + usize::from(frame.get(at + 12).map_or(5, |byte| byte >> 4)).max(5) * 4,
        (Some(at), Some(SCTP)) => at + sctp::payload(frame.get(at..).unwrap_or_default()),
        (Some(at), _) => at,
        (None, _) => ETHERNET,
    };
    let end = frame.len();
    let before_signature = end.saturating_sub(signature::LEN);
    let end = if Signature::at_end_of(frame).is_some() && before_signature > header {
        before_signature
    } else {
        end
    };
    let bits = end.saturating_sub(header) as u64 * 8;
    if bits == 0 {
        return false;
    }
    let bit = ((u128::from(random) * u128::from(bits)) >> 64) as usize;
    let Some(byte) = frame.get_mut(header + bit / 8) else { return false };
    *byte ^= 0x80 >> (bit % 8);
    if mend && let (Some(at), Some(protocol)) = (transport, layers.ip_protocol) {
        checksum(frame, &layers, at, protocol);
    }
    true
}

/// Computes the checksum at `at` anew. UDP's zero, which stands for none, stays.
fn checksum(frame: &mut [u8], layers: &Layers, at: usize, protocol: u8) {
    let field = match protocol {
        TCP => at + 16,
        UDP => at + 6,
        SCTP => at + sctp::CHECKSUM + 2,
        _ => return,
    };
    let ip = layers.l3_offset;
    let word = |at: usize| wire::bytes::be16(frame, at).map(usize::from);
    // What the packet says: a short frame is padded behind it.
    let stated = if layers.l3 == L3::V4 { word(ip + 2) } else { word(ip + 4).map(|length| length + 40) };
    let Some(end) = stated.map(|length| ip + length).filter(|&end| end <= frame.len() && field + 2 <= end)
    else {
        return;
    };
    if protocol == UDP && word(field) == Some(0) {
        return;
    }
    if protocol == SCTP {
        return crc::fix_sctp(&mut frame[at..end]);
    }
    frame[field..field + 2].fill(0);
    fn chunk<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
        frame.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
    }
    let pseudo = if layers.l3 == L3::V4 {
        pseudo_v4(chunk(frame, ip + 12), chunk(frame, ip + 16), protocol, end - at)
    } else {
        pseudo_v6(chunk(frame, ip + 8), chunk(frame, ip + 24), protocol, end - at)
    };
    let value = finish_udp(pseudo + sum(&frame[at..end]));
    frame[field..field + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A UDP frame with a right checksum, some payload and perhaps a signature.
    fn udp(payload: usize, signed: bool) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let length = 8 + payload;
        frame.extend([0x45, 0]);
        frame.extend((20 + length as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 3, 0xe8, 0, 53]);
        frame.extend((length as u16).to_be_bytes());
        frame.extend([0, 1]);
        frame.extend((0..payload).map(|n| n as u8));
        if signed {
            let at = frame.len() - signature::LEN;
            let signature = Signature { stream: 1, sequence: 2, time: 3 };
            frame[at..].copy_from_slice(&signature.to_bytes());
        }
        let layers = Layers::parse(LinkType::ETHERNET, &frame);
        checksum(&mut frame, &layers, 34, UDP);
        frame
    }

    fn is_right(frame: &[u8]) -> bool {
        let pseudo = pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], UDP, frame.len() - 34);
        wire::checksum::fold(pseudo + sum(&frame[34..])) == 0xffff
    }

    proptest! {
        #[test]
        fn exactly_one_bit_of_the_payload_flips_and_the_signature_stays(random: u64, payload in 19..200usize, signed: bool) {
            let before = udp(payload, signed);
            let mut frame = before.clone();
            prop_assert!(is_right(&before) && flip(&mut frame, random, false));
            let bits = |at: std::ops::Range<usize>| -> u32 {
                at.map(|n| (before[n] ^ frame[n]).count_ones()).sum()
            };
            let end = frame.len() - if signed { signature::LEN } else { 0 };
            prop_assert_eq!((bits(42..end), bits(0..frame.len())), (1, 1));
            prop_assert!(!is_right(&frame));
            let mut mended = before.clone();
            flip(&mut mended, random, true);
            prop_assert!(is_right(&mended) && mended[42..] == frame[42..]);
        }

        #[test]
        fn whatever_the_frame_nothing_panics(mut frame in proptest::collection::vec(any::<u8>(), 0..120), random: u64, ip: bool) {
            if ip && frame.len() > 24 {
                frame[12..15].copy_from_slice(&[8, 0, 0x45]);
                frame[23] = [TCP, UDP, SCTP][(random % 3) as usize];
            }
            flip(&mut frame, random, true);
        }
    }

    #[test]
    fn of_sctp_the_user_data_is_hit_and_its_crc_mended() {
        let mut before = udp(12 + 16 + 8, false);
        before.drain(34..42);
        (before[17], before[23]) = (20 + 36, SCTP);
        // A DATA chunk of 24 bytes.
        before[46..50].copy_from_slice(&[0, 3, 0, 24]);
        let layers = Layers::parse(LinkType::ETHERNET, &before);
        checksum(&mut before, &layers, 34, SCTP);
        let right = |frame: &[u8]| crc::sctp(&frame[34..]).is_some_and(|crc| frame[42..46] == crc);
        assert!(right(&before));
        for bit in 0..64 {
            let random = (bit << 58) + (1 << 57);
            let (mut wrong, mut mended) = (before.clone(), before.clone());
            assert!(flip(&mut wrong, random, false) && flip(&mut mended, random, true));
            assert!(!right(&wrong) && right(&mended), "bit {bit}");
            assert!(
                wrong[..62] == before[..62] && wrong[62..] != before[62..] && wrong[62..] == mended[62..]
            );
        }
    }

    #[test]
    fn with_nothing_but_a_signature_it_is_hit() {
        let mut frame = udp(18, true);
        assert!(flip(&mut frame, 5, false) && frame != udp(18, true));
        assert!(!flip(&mut [0; 14], 5, false));
    }
}
