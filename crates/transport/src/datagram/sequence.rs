//! What became of numbered datagrams: lost, reordered, twice. No I/O, no clock.

use std::time::Duration;

/// Numbers that are remembered, to tell a late datagram from one that came again.
const WINDOW: u64 = 65_536;

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that arrived, without those that came again.
    pub received: u64,
    /// Numbers up to the highest that did not arrive (yet).
    pub lost: u64,
    /// Arrived after one with a higher number.
    pub reordered: u64,
    /// Came again. A datagram later than 65,536 numbers cannot be told from one, and counts as reordered.
    pub duplicates: u64,
    /// Interarrival jitter (RFC 3550, 6.4.1), in ns.
    pub jitter_ns: u64,
}

/// What one datagram was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The next, or one after a gap.
    New,
    /// Later than one with a higher number.
    Late,
    /// It was here before.
    Again,
}

/// Follows the numbers of one stream of datagrams.
#[derive(Debug)]
pub struct Sequence {
    counts: Counts,
    /// The number that is next in order.
    next: u64,
    /// Bit n: number n modulo [`WINDOW`] was here.
    seen: Box<[u64]>,
    transit: Option<i128>,
    /// Sixteen times the jitter, as the RFC keeps it.
    jitter: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        Sequence::new()
    }
}

impl Sequence {
    /// Begins with number 0.
    pub fn new() -> Sequence {
        let seen = vec![0; (WINDOW / 64) as usize].into_boxed_slice();
        Sequence { counts: Counts::default(), next: 0, seen, transit: None, jitter: 0 }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        Counts { jitter_ns: self.jitter / 16, ..self.counts }
    }

    fn place(&mut self, number: u64) -> (&mut u64, u64) {
        let at = number % WINDOW;
        // In bounds: the window has as many bits.
        (&mut self.seen[(at / 64) as usize], 1 << (at % 64))
    }

    /// A datagram arrived: its number, its sender's time and ours.
    pub fn arrived(&mut self, number: u64, sent: Duration, now: Duration) -> Arrival {
        let transit = now.as_nanos() as i128 - sent.as_nanos() as i128;
        if let Some(before) = self.transit {
            let off = u64::try_from((transit - before).unsigned_abs()).unwrap_or(u64::MAX);
            // J += (|D| - J) / 16
            self.jitter = (self.jitter - self.jitter / 16).saturating_add(off);
        }
        self.transit = Some(transit);
        if number >= self.next {
            let gap = number - self.next;
            self.forget(number, gap);
            self.counts.lost = self.counts.lost.saturating_add(gap);
            self.next = number.saturating_add(1);
            let (word, bit) = self.place(number);
            *word |= bit;
            self.counts.received += 1;
            return Arrival::New;
        }
        let remembered = self.next - number <= WINDOW;
        let (word, bit) = self.place(number);
        if remembered && *word & bit != 0 {
            self.counts.duplicates += 1;
            return Arrival::Again;
        }
        if remembered {
            *word |= bit;
        }
        self.counts.received += 1;
        self.counts.reordered += 1;
        self.counts.lost = self.counts.lost.saturating_sub(1);
        Arrival::Late
    }

    /// Makes room for `number` and the `gap` numbers before it.
    fn forget(&mut self, number: u64, gap: u64) {
        if gap >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for number in number - gap..=number {
            let (word, bit) = self.place(number);
            *word &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: impl IntoIterator<Item = u64>) -> Counts {
        let mut sequence = Sequence::new();
        for number in numbers {
            sequence.arrived(number, Duration::ZERO, Duration::ZERO);
        }
        sequence.counts()
    }

    #[test]
    fn each_number_is_lost_late_or_twice() {
        assert_eq!(after(0..1000), Counts { received: 1000, ..Counts::default() });
        assert_eq!(
            after([0, 1, 4, 3, 3, 0]),
            Counts { received: 4, lost: 1, reordered: 1, duplicates: 2, ..Counts::default() }
        );
        assert_eq!(after([5]), Counts { received: 1, lost: 5, ..Counts::default() });
        // What comes round again in the window is not taken for what was there before.
        assert_eq!(
            after((0..200_000).filter(|n| n % 7 != 3)).lost,
            (0..199_999).filter(|n| n % 7 == 3).count() as u64
        );
        assert_eq!(after((0..200_000).chain(190_000..190_010)).duplicates, 10);
    }

    #[test]
    fn a_number_that_nobody_sent_breaks_nothing() {
        let counts = after([0, u64::MAX - 1, u64::MAX - 1, 1, 2]);
        assert_eq!((counts.received, counts.lost), (4, u64::MAX - 4));
    }

    #[test]
    fn jitter_is_the_mean_difference_of_transit_times() {
        let mut sequence = Sequence::new();
        for n in 0..10_000 {
            let ms = Duration::from_millis(n);
            sequence.arrived(n, ms, ms + Duration::from_micros(if n % 2 == 0 { 100 } else { 300 }));
        }
        assert!(sequence.counts().jitter_ns.abs_diff(200_000) < 200, "{:?}", sequence.counts());
    }
}
