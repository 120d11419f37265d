//! CRC-32C, which is SCTP's checksum (RFC 9260 section 6.8): the polynomial 0x1edc6f41 with bits reflected, all ones
//! before and inverted after, stored with its least significant byte first. It covers the packet from the common header
//! to its end and no address, with its own field taken as zero.
//!
//! The CRC itself is the crate `crc32c`'s. What is here besides is what follows from its being linear: how a single byte
//! changes it depends on the byte and on how many bytes stand behind it, and on nothing else. By that the kernel's
//! executor corrects the CRC of a frame for the bytes that vary, and `edit` for ports that it changes.

use crate::proto::sctp;

/// The CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The four bytes that belong into the checksum field of an SCTP packet, which ends where `packet` ends. `None` where its
/// common header is cut off.
pub fn sctp(packet: &[u8]) -> Option<[u8; 4]> {
    let before = packet.get(..sctp::CHECKSUM)?;
    let behind = packet.get(sctp::HEADER..)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    Some(crc32c::crc32c_append(crc, behind).to_le_bytes())
}

/// Makes an SCTP packet's checksum right; one whose common header is cut off stays as it is.
pub fn fix_sctp(packet: &mut [u8]) {
    if let Some(right) = sctp(packet)
        && let Some(field) = packet.get_mut(sctp::CHECKSUM..sctp::HEADER)
    {
        field.copy_from_slice(&right);
    }
}

/// By what the CRC-32C changes when bytes of it become others, as many, with `behind` more bytes behind them.
pub fn changed(old: &[u8], new: &[u8], behind: usize) -> u32 {
    crc32c::crc32c_combine(crc32c(old) ^ crc32c(new), 0, behind)
}

/// By what each value of a byte changes the CRC-32C, as against a zero there: the exclusive or of what all bytes that vary
/// change is what they change together.
pub fn changes(behind: usize) -> [u32; 256] {
    let bits: [u32; 8] = std::array::from_fn(|bit| changed(&[0], &[1 << bit], behind));
    std::array::from_fn(|byte| {
        (0..8).filter(|bit| byte >> bit & 1 == 1).fold(0, |change, bit| change ^ bits[bit])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9260 appendix A, a bit at a time: the independent implementation.
    fn plain(bytes: &[u8]) -> u32 {
        let mut crc = !0u32;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            }
        }
        !crc
    }

    #[test]
    fn the_published_vectors_of_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // RFC 3720 appendix B.4, which prints the bytes as they are sent.
        let up: Vec<u8> = (0..32).collect();
        let down: Vec<u8> = (0..32).rev().collect();
        for (bytes, sent) in [
            (vec![0; 32], [0xaa, 0x36, 0x91, 0x8a]),
            (vec![0xff; 32], [0x43, 0xab, 0xa8, 0x62]),
            (up, [0x4e, 0x79, 0xdd, 0x46]),
            (down, [0x5c, 0xdb, 0x3f, 0x11]),
        ] {
            assert_eq!(crc32c(&bytes).to_le_bytes(), sent);
        }
        let mut read = vec![0x01, 0xc0];
        read.extend([0; 14]);
        read.extend([0x14, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 2]);
        read.extend([0; 7]);
        assert_eq!(crc32c(&read).to_le_bytes(), [0x56, 0x3a, 0x96, 0xd9], "an iSCSI read command");
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_form(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(crc32c(&bytes), plain(&bytes));
        }

        #[test]
        fn a_packets_checksum_is_that_with_zero_in_its_field(
            mut packet in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let fixed = { let mut copy = packet.clone(); fix_sctp(&mut copy); copy };
            if packet.len() < 12 {
                prop_assert_eq!(sctp(&packet), None);
                prop_assert_eq!(fixed, packet);
            } else {
                packet[8..12].fill(0);
                let right = plain(&packet).to_le_bytes();
                prop_assert_eq!(sctp(&fixed), Some(right));
                packet[8..12].copy_from_slice(&right);
                prop_assert_eq!(fixed, packet);
            }
        }

        #[test]
        fn what_single_bytes_change_is_what_they_change_together(
            mut bytes in proptest::collection::vec(any::<u8>(), 1..300),
            new in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..20),
        ) {
            let mut crc = crc32c(&bytes);
            for (at, value) in new {
                let at = at.index(bytes.len());
                let behind = bytes.len() - 1 - at;
                let changes = changes(behind);
                let change = changes[usize::from(bytes[at])] ^ changes[usize::from(value)];
                prop_assert_eq!(changed(&[bytes[at]], &[value], behind), change);
                crc ^= change;
                bytes[at] = value;
            }
            prop_assert_eq!(crc, plain(&bytes));
        }
    }
}
