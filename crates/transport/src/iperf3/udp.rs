//! iperf3's datagrams for this crate's data phases.

use crate::datagram::Header;
use endpoint::iperf3::datagram;
use std::cell::Cell;
use std::time::Duration;

/// Time in seconds and microseconds, number from 1 in 32 bits.
#[derive(Debug, Default)]
pub struct Narrow {
    /// Where numbers of 32 bits are near.
    near: Cell<u64>,
}

/// The same, with numbers of 64 bits.
#[derive(Debug, Default)]
pub struct Wide;

fn write(into: &mut [u8], number: u64, sent: Duration, wide: bool) {
    let sent_ns = u64::try_from(sent.as_nanos()).unwrap_or(u64::MAX);
    datagram::Header { sent_ns, number: number + 1 }.write(into, wide);
}

fn read(from: &[u8], wide: bool) -> Option<(u64, Duration)> {
    let header = datagram::Header::read(from, wide)?;
    Some((header.number, Duration::from_nanos(header.sent_ns)))
}

impl Header for Narrow {
    const LENGTH: usize = 12;

    fn write(&self, into: &mut [u8], number: u64, sent: Duration) {
        write(into, number, sent, false);
    }

    fn read(&self, from: &[u8]) -> Option<(u64, Duration)> {
        let (low, sent) = read(from, false)?;
        let number = datagram::unwrap(low, self.near.get());
        self.near.set(number.max(self.near.get()));
        Some((number.checked_sub(1)?, sent))
    }
}

impl Header for Wide {
    const LENGTH: usize = 16;

    fn write(&self, into: &mut [u8], number: u64, sent: Duration) {
        write(into, number, sent, true);
    }

    fn read(&self, from: &[u8]) -> Option<(u64, Duration)> {
        let (number, sent) = read(from, true)?;
        Some((number.checked_sub(1)?, sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_with_1_on_the_wire_and_0_here() {
        let mut bytes = [0; 16];
        let sent = Duration::from_micros(1_500_000);
        Narrow::default().write(&mut bytes, 0, sent);
        assert_eq!(bytes[..12], [0, 0, 0, 1, 0, 7, 161, 32, 0, 0, 0, 1]);
        assert_eq!(Narrow::default().read(&bytes), Some((0, sent)));
        Wide.write(&mut bytes, 1 << 40, sent);
        assert_eq!(Wide.read(&bytes), Some((1 << 40, sent)));
        assert_eq!(Wide.read(&[0; 16]), None);
        assert_eq!(Wide.read(&bytes[..15]), None);
    }
}
