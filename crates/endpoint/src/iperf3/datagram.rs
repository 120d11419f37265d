//! What datagrams carry: two words that open a stream, then time and number, from which a receiver knows
//! loss, order and jitter.

/// A client's first datagram, in the byte order of most hosts; servers of all releases take any content.
pub const HELLO: [u8; 4] = 0x3637_3839u32.to_le_bytes();
/// A server's answer.
pub const REPLY: [u8; 4] = 0x3938_3736u32.to_le_bytes();

/// When a datagram was sent, and its number from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Nanoseconds by the sender's clock; microseconds are sent.
    pub sent_ns: u64,
    /// Its number.
    pub number: u64,
}

impl Header {
    /// Writes it to the start of a datagram, which is long enough (`limits::UDP_BLOCK`).
    pub fn write(&self, datagram: &mut [u8], wide: bool) {
        let seconds = (self.sent_ns / 1_000_000_000) as u32;
        let micros = (self.sent_ns % 1_000_000_000 / 1000) as u32;
        datagram[..4].copy_from_slice(&seconds.to_be_bytes());
        datagram[4..8].copy_from_slice(&micros.to_be_bytes());
        if wide {
            datagram[8..16].copy_from_slice(&self.number.to_be_bytes());
        } else {
            datagram[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
        }
    }

    /// Of a datagram; `None` if it is too short.
    pub fn read(datagram: &[u8], wide: bool) -> Option<Header> {
        let word = |at: usize| datagram.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let (seconds, micros) = (u64::from(word(0)?), u64::from(word(4)?));
        let number =
            if wide { u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?) } else { word(8)?.into() };
        Some(Header { sent_ns: seconds * 1_000_000_000 + micros * 1000, number })
    }
}

/// The number next to `near` whose low 32 bits are these: at 5 million datagrams a second numbers of 32 bits begin anew after 14
/// minutes, which iperf3 takes for loss. A number that is far from what is expected counts as it is.
pub fn unwrap(low: u64, near: u64) -> u64 {
    let ahead = (low as u32).wrapping_sub(near as u32);
    if ahead < 1 << 31 {
        near.saturating_add(ahead.into())
    } else {
        near.checked_sub(u64::from(ahead.wrapping_neg())).unwrap_or(low)
    }
}

/// Digits over and over, as iperf2 sends them.
pub fn repeating(buffer: &mut [u8]) {
    for (byte, digit) in buffer.iter_mut().zip((b'0'..=b'9').cycle()) {
        *byte = digit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_survive_the_wire(seconds in 0..u64::from(u32::MAX), micros in 0..1_000_000u64, number: u64, wide: bool) {
            let number = if wide { number } else { number & 0xffff_ffff };
            let header = Header { sent_ns: seconds * 1_000_000_000 + micros * 1000, number };
            let mut datagram = [0; 20];
            header.write(&mut datagram, wide);
            prop_assert_eq!(Header::read(&datagram, wide), Some(header));
            prop_assert_eq!(Header::read(&datagram[..if wide { 15 } else { 11 }], wide), None);
        }

        #[test]
        fn low_bits_are_unwrapped_to_what_is_near(near in 1u64 << 33..1 << 62, off in -(1i64 << 30)..1 << 30) {
            let number = near.wrapping_add_signed(off);
            prop_assert_eq!(unwrap(number & 0xffff_ffff, near), number);
        }
    }

    #[test]
    fn numbers_of_32_bits_go_on_after_their_end() {
        let near = u64::from(u32::MAX);
        assert_eq!([near - 1, near, 0, 2].map(|low| unwrap(low, near)), [near - 1, near, near + 1, near + 3]);
        assert_eq!(unwrap(5, 0), 5);
        assert_eq!(unwrap(0xffff_ffff, 3), 0xffff_ffff);
    }
}
