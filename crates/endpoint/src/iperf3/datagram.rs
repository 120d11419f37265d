//! What datagrams carry: two words that open a stream, then time and number, from which a receiver knows loss, order
//! and jitter.

/// A client's first datagram, in the byte order of most hosts; servers of all releases take any content.
pub const HELLO: [u8; 4] = 0x3637_3839u32.to_le_bytes();
/// A server's answer.
pub const REPLY: [u8; 4] = 0x3938_3736u32.to_le_bytes();
/// What releases before 3.13 send, in the byte order of most hosts.
pub const OLD_HELLO: [u8; 4] = 123_456_789u32.to_le_bytes();

/// Bytes of a header.
pub fn header_len(wide: bool) -> usize {
    if wide { 16 } else { 12 }
}

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
        let number = if wide {
            u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?)
        } else {
            word(8)?.into()
        };
        Some(Header { sent_ns: seconds * 1_000_000_000 + micros * 1000, number })
    }
}

/// What a receiver knows of a stream of datagrams.
///
/// Numbers of 32 bits are unwrapped: at 5 million datagrams a second they begin anew after 14 minutes, which iperf3 takes for
/// loss. Numbers that are far from what is expected count as they are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Arrivals {
    /// The highest number seen.
    pub highest: u64,
    /// Gaps, less what came late.
    pub lost: i64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Seconds, after RFC 1889 (now 3550) 6.4.1.
    pub jitter: f64,
    transit: Option<i64>,
}

impl Arrivals {
    /// One arrived.
    pub fn note(&mut self, header: Header, wide: bool, arrived_ns: u64) {
        let number = if wide { header.number } else { unwrap(header.number, self.highest) };
        if number > self.highest {
            self.lost = self.lost.saturating_add_unsigned(number - self.highest - 1);
            self.highest = number;
        } else {
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
        }
        let transit = arrived_ns.wrapping_sub(header.sent_ns).cast_signed();
        if let Some(before) = self.transit {
            let change = transit.wrapping_sub(before).unsigned_abs() as f64 / 1e9;
            self.jitter += (change - self.jitter) / 16.0;
        }
        self.transit = Some(transit);
    }
}

/// The number next to `near` whose low 32 bits are these.
fn unwrap(low: u64, near: u64) -> u64 {
    let ahead = (low as u32).wrapping_sub(near as u32);
    if ahead < 1 << 31 {
        near + u64::from(ahead)
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
            prop_assert_eq!(Header::read(&datagram[..header_len(wide) - 1], wide), None);
        }

        #[test]
        fn hostile_numbers_and_times_are_counted(all: Vec<(u64, u64, u64)>, wide: bool) {
            let mut seen = Arrivals::default();
            for (sent_ns, number, arrived) in all {
                seen.note(Header { sent_ns, number }, wide, arrived);
            }
            prop_assert!(seen.jitter.is_finite() && seen.jitter >= 0.0);
        }

        #[test]
        fn loss_is_what_is_missing_whatever_the_order(missing in proptest::collection::hash_set(1..100u64, 0..30), last in 100..110u64, seed: u64) {
            let mut order: Vec<u64> = (1..=last).filter(|n| !missing.contains(n)).collect();
            // Some come later than the next ones.
            for at in (0..order.len() - 1).filter(|at| seed >> (at % 64) & 1 == 1) {
                order.swap(at, at + 1);
            }
            let mut seen = Arrivals::default();
            for number in order {
                seen.note(Header { sent_ns: 0, number }, false, 0);
            }
            prop_assert_eq!((seen.highest, seen.lost), (last, missing.len() as i64));
        }
    }

    #[test]
    fn numbers_of_32_bits_go_on_after_their_end() {
        let mut seen = Arrivals { highest: u64::from(u32::MAX) - 1, ..Arrivals::default() };
        for number in [u64::from(u32::MAX), 0, 1, 3, 2] {
            seen.note(Header { sent_ns: 0, number }, false, 0);
        }
        assert_eq!((seen.highest, seen.lost, seen.out_of_order), ((1 << 32) + 3, 0, 1));
    }

    #[test]
    fn jitter_is_a_sixteenth_of_each_change() {
        let mut seen = Arrivals::default();
        for (number, delay) in [(1, 0), (2, 16_000), (3, 16_000)] {
            let sent_ns = number * 1_000_000;
            seen.note(Header { sent_ns, number }, true, sent_ns + delay);
        }
        assert!((seen.jitter - 1e-6 * 15.0 / 16.0).abs() < 1e-12, "{}", seen.jitter);
    }
}
