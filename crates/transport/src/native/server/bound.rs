//! A server's bound on what a client sends it in datagrams, which nothing but the client itself can slow down. Without sockets and clocks: bytes
//! and times in.

use std::time::Duration;

/// What comes at once, within this, may be more than the bound.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Clocks differ, and payload is counted when it is read: so much more is no more.
const SLACK: f64 = 1.05;
/// A small bound lets some datagrams through at once.
const LEAST: f64 = 262_144.0;

/// Bytes above the bound so far.
#[derive(Debug)]
pub(super) struct Bound {
    bits_per_second: u64,
    above: f64,
    bytes: u64,
    at: Duration,
}

impl Bound {
    /// Nothing came yet.
    pub fn new(bits_per_second: u64) -> Bound {
        Bound { bits_per_second, above: 0.0, bytes: 0, at: Duration::ZERO }
    }

    /// So many bytes came since the start, which is so long ago. False: more than is permitted.
    pub fn holds(&mut self, bytes: u64, at: Duration) -> bool {
        let rate = self.bits_per_second as f64 / 8.0;
        let new = bytes.saturating_sub(self.bytes) as f64;
        let permitted = rate * SLACK * at.saturating_sub(self.at).as_secs_f64();
        // Who sent less before may not send more for it.
        self.above = (self.above + new - permitted).max(0.0);
        (self.bytes, self.at) = (bytes, at);
        self.above <= (rate * AT_ONCE.as_secs_f64()).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_to_the_rate_is_let_and_who_does_not_is_found_out_soon() {
        let at = |n: u64| Duration::from_millis(20 * n);
        // 8 Mbit/s are 20,000 bytes in 20 ms.
        let mut fair = Bound::new(8_000_000);
        assert!((1..=10_000).all(|n| fair.holds(20_000 * n, at(n))));
        // All that was not used before is no credit.
        assert!(fair.holds(20_000 * 10_000, at(20_000)));
        assert!(!fair.holds(20_000 * 10_000 + 600_000, at(20_001)));
        let mut twice = Bound::new(8_000_000);
        let found = (1..100).find(|n| !twice.holds(40_000 * n, at(*n))).expect("found out");
        assert!((20..60).contains(&found), "{found}");
    }
}
