//! When a flow's packets came: absolute times, and uptimes of the exporter, which wrap after 49.7 days.
//!
//! A time that cannot be known is zero, never one of 1970: an exporter without a clock counts from there.

use crate::record::time_ns;

/// Earlier times are those of clocks that were never set: 1 January 1971.
const EARLIEST_NS: u64 = 365 * 86_400_000_000_000;
/// An uptime may lie so far ahead of that of its message, by clocks that are read one after the other. What lies farther ahead is
/// of before the wrap.
const AHEAD_MS: u32 = 3_600_000;
/// The last packet of a flow that IPFIX exports came not much longer ago: by this, uptimes that wrapped are distinguished from old ones.
const RECENT_MS: i64 = 86_400_000;

/// What uptimes are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uptime {
    /// Nobody said it.
    Unknown,
    /// The message says what uptime its time is (v5, v9).
    At { exported_ms: u64, uptime_ms: u32 },
    /// `systemInitTimeMilliseconds` says it (IPFIX), and this is when the message was sent.
    Since { began_ms: u64, exported_ms: u64 },
}

/// A time that was said, in nanoseconds since 1970; zero where it cannot be one.
#[inline]
pub(super) fn told(ns: u64) -> u64 {
    if ns < EARLIEST_NS { 0 } else { ns }
}

/// How long before the uptime `now` the uptime `then` was; both are modulo 2^32.
fn ago_ms(now: u32, then: u32) -> i64 {
    let ahead = then.wrapping_sub(now);
    if ahead <= AHEAD_MS { -i64::from(ahead) } else { now.wrapping_sub(then).into() }
}

fn before(exported_ms: u64, ago_ms: i64) -> u64 {
    // Of a message without a time nothing is known.
    let at = exported_ms.checked_add_signed(-ago_ms).filter(|_| exported_ms > 0);
    told(at.and_then(|ms| ms.checked_mul(1_000_000)).unwrap_or(0))
}

impl Uptime {
    /// When an uptime was, in nanoseconds since 1970; zero if that cannot be known.
    #[inline]
    pub(super) fn at(self, value: u64) -> u64 {
        match self {
            Uptime::At { exported_ms, uptime_ms } => {
                // Some templates have more than four bytes for it; the message's own has four.
                before(exported_ms, ago_ms(uptime_ms, value as u32))
            }
            Uptime::Unknown | Uptime::Since { .. } => self.pair([Some(value), None])[0],
        }
    }

    /// The same of a record's first and last: the last one tells whether they wrapped.
    pub(super) fn pair(self, values: [Option<u64>; 2]) -> [u64; 2] {
        match self {
            Uptime::Unknown => [0; 2],
            Uptime::At { .. } => values.map(|value| value.map_or(0, |value| self.at(value))),
            Uptime::Since { began_ms, exported_ms } => {
                let plain = |value: u64| {
                    told(began_ms.checked_add(value).and_then(|ms| ms.checked_mul(1_000_000)).unwrap_or(0))
                };
                let uptime = exported_ms.saturating_sub(began_ms);
                let four = values.iter().flatten().all(|value| *value <= u32::MAX.into());
                let last = values[1].or(values[0]).unwrap_or(0);
                // An uptime of four bytes begins anew after 49.7 days. If the flow had not just been over, it is one that was
                // exported long after.
                let wrapped =
                    uptime > u32::MAX.into() && four && ago_ms(uptime as u32, last as u32) < RECENT_MS;
                // What would lie ahead was before the exporter began: softflowd says so of captures.
                let ahead = |value: u64| {
                    four && began_ms.saturating_add(value) > exported_ms.saturating_add(AHEAD_MS.into())
                };
                let at = |value: u64| match wrapped || ahead(value) {
                    true => before(exported_ms, ago_ms(uptime as u32, value as u32)),
                    false => plain(value),
                };
                values.map(|value| value.map_or(0, at))
            }
        }
    }
}

/// A time of `kind` in a field, zero where it is none.
#[inline(always)]
pub(super) fn absolute<'a>(kind: crate::element::Kind, value: u64, bytes: impl FnOnce() -> &'a [u8]) -> u64 {
    use crate::element::Kind;
    // Nearly all are these.
    let time = match kind {
        Kind::Milliseconds => value.checked_mul(1_000_000),
        kind => time_ns(kind, bytes()),
    };
    told(time.unwrap_or(0))
}

/// Microseconds before the message was sent (`flowStartDeltaMicroseconds`).
pub(super) fn delta(exported_ns: u64, microseconds: u64) -> u64 {
    let at = microseconds.checked_mul(1000).and_then(|ago| exported_ns.checked_sub(ago));
    told(at.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECONDS: u64 = 1_700_000_000;

    proptest! {
        /// Whatever the uptime was when a flow began, ended and was exported: of three true times the same three are read.
        #[test]
        fn times_are_right_on_either_side_of_a_wrap(
            began_ms in 1_000_000_000_000u64..1_700_000_000_000,
            up_ms in 0u64..20_000_000_000,
            lasted in 0u64..2_000_000_000,
            // A day at most before the message, and an hour at most behind it.
            waited in -3_600_000i64..86_000_000,
        ) {
            let exported_ms = began_ms + up_ms;
            let last = exported_ms.saturating_add_signed(-waited).max(began_ms);
            let first = last.saturating_sub(lasted).max(began_ms);
            let uptimes = [first, last].map(|at| (at - began_ms) & u64::from(u32::MAX));
            let wanted = [first, last].map(|at| at * 1_000_000);
            let uptime_ms = up_ms as u32;
            let header = Uptime::At { exported_ms, uptime_ms };
            prop_assert_eq!(header.pair(uptimes.map(Some)), wanted);
            prop_assert_eq!(uptimes.map(|value| header.at(value)), wanted);
            // IPFIX knows when the exporter began, so there is a wrap only if it is older.
            let options = Uptime::Since { began_ms, exported_ms };
            if up_ms > u64::from(u32::MAX) + 3_600_000 || last <= began_ms + u64::from(u32::MAX) {
                prop_assert_eq!(options.pair(uptimes.map(Some)), wanted);
            }
        }
    }

    #[test]
    fn what_cannot_be_known_is_zero() {
        assert_eq!(Uptime::Unknown.pair([Some(5000), Some(6000)]), [0; 2]);
        assert_eq!(Uptime::Unknown.at(5000), 0);
        // A message without a time, and one of a clock that was never set.
        for seconds in [0, 100_000] {
            let uptime = Uptime::At { exported_ms: seconds * 1000, uptime_ms: 9000 };
            assert_eq!(uptime.at(8000), 0, "{seconds}");
            assert_eq!(delta(seconds * 1_000_000_000, 5), 0);
        }
        assert_eq!(delta(SECONDS * 1_000_000_000, 5), SECONDS * 1_000_000_000 - 5000);
        assert_eq!([told(0), told(EARLIEST_NS - 1), told(EARLIEST_NS)], [0, 0, EARLIEST_NS]);
    }

    #[test]
    fn what_was_before_the_exporter_began_does_not_lie_ahead() {
        let began_ms = SECONDS * 1000;
        let uptime = Uptime::Since { began_ms, exported_ms: began_ms + 1000 };
        // Ten days before, as softflowd 1.1.0 has it of a capture.
        let ago = [864_000_000u64, 863_000_000];
        let values = ago.map(|ago| Some((1 << 32) - ago));
        assert_eq!(uptime.pair(values), ago.map(|ago| (began_ms - ago) * 1_000_000));
        // An hour ahead may be a clock.
        assert_eq!(uptime.pair([Some(500), Some(3_600_000)])[1], (began_ms + 3_600_000) * 1_000_000);
    }

    #[test]
    fn records_that_are_exported_long_after_are_not_taken_for_wrapped_ones() {
        let began_ms = SECONDS * 1000;
        // Two years later, and not by chance a multiple of 49.7 days.
        let exported_ms = began_ms + 14 * (1 << 32) + 1_000_000_000;
        let uptime = Uptime::Since { began_ms, exported_ms };
        assert_eq!(uptime.pair([Some(5000), Some(6000)]), [5000, 6000].map(|ms| (began_ms + ms) * 1_000_000));
    }
}
