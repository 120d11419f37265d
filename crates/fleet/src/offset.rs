//! How far another host's clock is ahead of this one's, by exchanges of time stamps, with an error that covers the truth.
//!
//! ```text
//!   here   t1 ------------------------ t4
//!   there       \-- t2 ... t3 --/
//! ```
//!
//! Nothing is believed about the way there and back but that it takes some time: t2 is not before t1, and t4 is not before t3. So the
//! clock there is ahead by at most t2 - t1 and by at least t3 - t4, and the truth lies between these two however unequal
//! the ways are. Of many exchanges the one with the least round trip says most (RFC 5905, section 10, chooses likewise). No clock is read here, and nothing is sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Clocks that are kept right are slewed by half of that at most (adjtimex(2): 500 ppm).
const SLEW: u64 = 1000;
/// A stamp is a whole number of nanoseconds, and what it leaves out is part of the error.
const WHOLE_NS: i128 = 1;

/// The time stamps of one exchange, in nanoseconds of CLOCK_TAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Here, before the request was written.
    pub t1: u64,
    /// There, when it was read.
    pub t2: u64,
    /// There, before the answer was written.
    pub t3: u64,
    /// Here, when it had been read.
    pub t4: u64,
}

/// Why exchanges tell nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoOffset {
    /// There was no exchange.
    #[error("no time stamps were exchanged")]
    None,
    /// An answer was written before it was asked for, or took longer than the whole exchange.
    #[error("its time stamps contradict each other: an answer took it longer than the whole exchange lasted")]
    Impossible,
    /// No constant distance fits all exchanges.
    #[error("a clock was set, there or here, while time stamps were exchanged")]
    Stepped,
}

/// How far the clock there is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offset {
    /// In nanoseconds; below zero if it is behind.
    pub offset_ns: i64,
    /// The truth is no further from that than this, in nanoseconds.
    pub error_ns: u64,
    /// The least round trip, without the time that the agent took, in nanoseconds.
    pub round_trip_ns: u64,
    /// When that was, in nanoseconds of this host's CLOCK_TAI.
    pub at_ns: u64,
    /// Exchanges of which it is the best.
    pub exchanges: usize,
}

impl Exchange {
    /// The least and the most by which the clock there is ahead.
    fn bounds(&self) -> Option<(i128, i128)> {
        let [t1, t2, t3, t4] = [self.t1, self.t2, self.t3, self.t4].map(i128::from);
        (t1 <= t4 && t2 <= t3 && t3 - t2 <= t4 - t1).then(|| (t3 - t4 - WHOLE_NS, t2 - t1 + WHOLE_NS))
    }
}

impl Offset {
    /// As a result has it, of an agent's host; `is_here`: it is this one, whose clock is known without any error.
    pub(crate) fn of_agent(&self, is_here: bool) -> report::AgentClock {
        let same_host = is_here && self.may_be(0);
        let (offset_ns, error_ns) = if same_host { (0, 0) } else { (self.offset_ns, self.error_ns) };
        report::AgentClock { offset_ns, error_ns, round_trip_ns: self.round_trip_ns, same_host }
    }

    /// May the clock be so far ahead, by what was measured?
    pub(crate) fn may_be(&self, ahead_ns: i64) -> bool {
        self.offset_ns.abs_diff(ahead_ns) <= self.error_ns
    }

    /// What exchanges say that were made one after the other.
    ///
    /// # Errors
    /// They say nothing, or contradict each other.
    pub fn of(exchanges: &[Exchange]) -> Result<Offset, NoOffset> {
        let mut bounded = Vec::with_capacity(exchanges.len());
        for exchange in exchanges {
            bounded.push((exchange.bounds().ok_or(NoOffset::Impossible)?, exchange));
        }
        let best = bounded.iter().min_by_key(|((least, most), _)| most - least);
        let &((least, most), exchange) = best.ok_or(NoOffset::None)?;
        // Each must agree with the best, by as much as clocks drift apart in between.
        for &((lower, upper), other) in &bounded {
            let drift = i128::from(other.t1.abs_diff(exchange.t1) / SLEW);
            if lower > most + drift || upper < least - drift {
                return Err(NoOffset::Stepped);
            }
        }
        let middle = (least + most).div_euclid(2);
        // Of both ends the further one.
        let error = most - middle;
        Ok(Offset {
            offset_ns: i64::try_from(middle).map_err(|_| NoOffset::Impossible)?,
            error_ns: u64::try_from(error).map_err(|_| NoOffset::Impossible)?,
            round_trip_ns: u64::try_from(most - least - 2 * WHOLE_NS).map_err(|_| NoOffset::Impossible)?,
            at_ns: exchange.t1,
            exchanges: exchanges.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i128 = 1_795_768_413_000_000_000;

    /// An exchange that begins after `at`, of a clock there that is ahead by `ahead`.
    fn exchange(at: u64, ahead: i64, there: u64, thinks: u64, back: u64) -> Exchange {
        let t1 = NOW + i128::from(at);
        let [t2, t3] = [there, there + thinks].map(|after| t1 + i128::from(after) + i128::from(ahead));
        let t4 = t1 + i128::from(there + thinks + back);
        let [t1, t2, t3, t4] = [t1, t2, t3, t4].map(|time| u64::try_from(time).unwrap());
        Exchange { t1, t2, t3, t4 }
    }

    proptest! {
        #[test]
        fn the_error_covers_the_truth_however_unequal_the_ways_are(
            ahead in prop_oneof![-5_000_000_000_000i64..5_000_000_000_000, -1000i64..1000],
            ways in prop::collection::vec((0..1_000_000_000u64, 0..1_000_000_000u64, 0..1_000_000_000u64), 1..50),
        ) {
            let exchanges: Vec<Exchange> = ways.iter().enumerate()
                .map(|(n, (there, thinks, back))| exchange(n as u64 * 4_000_000_000, ahead, *there, *thinks, *back)).collect();
            let found = Offset::of(&exchanges).unwrap();
            prop_assert!(found.offset_ns.abs_diff(ahead) <= found.error_ns, "{found:?}");
            let least = ways.iter().map(|(there, _, back)| there + back).min().unwrap();
            prop_assert_eq!(found.round_trip_ns, least);
            prop_assert!(found.error_ns <= least / 2 + 2);
        }

        /// One clock that is up to 500 ppm too fast: where the best exchange was made, it is covered.
        #[test]
        fn a_clock_that_drifts_is_no_contradiction(ppm in -499i64..=499, ways in prop::collection::vec((0..100_000u64, 0..100_000u64), 2..40)) {
            let exchanges: Vec<Exchange> = ways.iter().enumerate().map(|(n, (there, back))| {
                let at = n as u64 * 50_000_000;
                exchange(at, 7_000 + at as i64 / 1_000_000 * ppm, *there, 10, *back)
            }).collect();
            let found = Offset::of(&exchanges).unwrap();
            let at = i64::try_from(i128::from(found.at_ns) - NOW).unwrap();
            prop_assert!(found.offset_ns.abs_diff(7_000 + at / 1_000_000 * ppm) <= found.error_ns);
        }

        /// What a hostile agent says is an offset or an error.
        #[test]
        fn any_stamps_are_taken(stamps in prop::collection::vec(prop::array::uniform4(any::<u64>()), 0..10)) {
            let exchanges: Vec<Exchange> = stamps.iter().map(|[t1, t2, t3, t4]| Exchange { t1: *t1, t2: *t2, t3: *t3, t4: *t4 }).collect();
            let _ = Offset::of(&exchanges);
        }
    }

    #[test]
    fn a_clock_that_was_set_between_two_exchanges_is_noticed() {
        let mut exchanges: Vec<Exchange> =
            (0..10).map(|n| exchange(n * 50_000_000, 5, 10_000, 5_000, 9_000)).collect();
        assert!(Offset::of(&exchanges).is_ok());
        exchanges.extend((10..20).map(|n| exchange(n * 50_000_000, 600_000, 10_000, 5_000, 9_000)));
        assert_eq!(Offset::of(&exchanges), Err(NoOffset::Stepped));
        assert_eq!(Offset::of(&[]), Err(NoOffset::None));
        let backwards = Exchange { t1: 10, t2: 5, t3: 4, t4: 20 };
        assert_eq!(Offset::of(&[backwards]), Err(NoOffset::Impossible));
        let too_long = Exchange { t1: 10, t2: 0, t3: 100, t4: 20 };
        assert_eq!(Offset::of(&[too_long]), Err(NoOffset::Impossible));
    }
}
