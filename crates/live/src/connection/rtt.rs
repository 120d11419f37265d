//! The retransmission timer's length (RFC 6298).

use super::{MS, Nanos};

/// Before anything was measured (section 2.1).
const INITIAL: Nanos = 1_000 * MS;
/// Section 2.4 recommends a second; all systems in use have less, and a server that lost our words should not be waited
/// for as long. This is Linux's.
const LEAST: Nanos = 200 * MS;
const MOST: Nanos = 60_000 * MS;
/// Clock granularity (G).
const GRANULARITY: Nanos = MS;

#[derive(Debug, Clone, Default)]
pub struct Rtt {
    smoothed: Option<(Nanos, Nanos)>,
    backoff: u32,
    pub least: Option<Nanos>,
    pub most: Nanos,
    pub samples: u64,
    sum: u128,
}

impl Rtt {
    /// Takes a measured round trip (section 2.2 and 2.3). Never of a retransmitted segment (section 3).
    pub fn sample(&mut self, rtt: Nanos) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => (srtt - srtt / 8 + rtt / 8, rttvar - rttvar / 4 + srtt.abs_diff(rtt) / 4),
        });
        self.backoff = 0;
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.most = self.most.max(rtt);
        self.samples += 1;
        self.sum += u128::from(rtt);
    }

    /// How long to wait for an acknowledgement.
    pub fn timeout(&self) -> Nanos {
        let base = match self.smoothed {
            None => INITIAL,
            Some((srtt, rttvar)) => (srtt + (4 * rttvar).max(GRANULARITY)).max(LEAST),
        };
        (base << self.backoff.min(10)).min(MOST)
    }

    /// The timer ran out (section 5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// New data was acknowledged: what was backed off from is over.
    pub fn progress(&mut self) {
        self.backoff = 0;
    }

    pub fn smoothed(&self) -> Option<Nanos> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    pub fn mean(&self) -> Option<Nanos> {
        (self.samples > 0).then(|| (self.sum / u128::from(self.samples)) as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_is_as_rfc_6298_has_it() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(), 1_000 * MS);
        rtt.back_off();
        assert_eq!(rtt.timeout(), 2_000 * MS);
        rtt.sample(100 * MS);
        // SRTT 100 ms, RTTVAR 50 ms.
        assert_eq!(rtt.timeout(), 300 * MS);
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(), 60_000 * MS);
    }
}
