//! Which datagrams of a stream count. Both ends decide by what the datagram itself says, so that what is sent and what is received are of one
//! set: two ends that each look at their own clock count two. No I/O, no clock.

use std::time::Duration;

/// Datagrams count whose sender's time is in it: the first moment included, the second one not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// From then on.
    pub from: Duration,
    /// Until then. None: to the end.
    pub to: Option<Duration>,
}

impl Window {
    /// Does one count that was sent then?
    pub fn holds(&self, sent: Duration) -> bool {
        sent >= self.from && self.to.is_none_or(|to| sent < to)
    }
}

/// How much longer than others a datagram was on its way, by the least transit of late: clocks of two hosts have nothing to do with each
/// other, and drift.
#[derive(Debug, Default)]
pub(super) struct Transit {
    /// The least of the second before, and of this one so far, in ns.
    least: [Option<i128>; 2],
    /// Which second.
    second: u64,
}

impl Transit {
    /// A datagram arrived `now`, sent then by the sender's clock.
    pub fn arrived(&mut self, sent: Duration, now: Duration) {
        let second = now.as_secs();
        if second != self.second {
            self.least = [self.least[1].or(self.least[0]), None];
            self.second = second;
        }
        let took = took(sent, now);
        self.least[1] = Some(self.least[1].map_or(took, |least| least.min(took)));
    }

    /// When one that was sent then would have arrived at the earliest, by the receiver's clock. None: nothing has arrived yet.
    pub fn earliest(&self, sent: Duration) -> Option<i128> {
        let least = self.least.into_iter().flatten().min()?;
        Some(nanos(sent).saturating_add(least))
    }
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

fn took(sent: Duration, now: Duration) -> i128 {
    nanos(now).saturating_sub(nanos(sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_its_first_moment_and_not_its_last() {
        let ms = Duration::from_millis;
        let window = Window { from: ms(10), to: Some(ms(20)) };
        assert_eq!([9, 10, 19, 20].map(|at| window.holds(ms(at))), [false, true, true, false]);
        assert!(Window::default().holds(Duration::MAX));
    }

    #[test]
    fn the_least_transit_follows_clocks_that_drift() {
        let mut transit = Transit::default();
        assert_eq!(transit.earliest(Duration::ZERO), None);
        // The sender's clock is a day ahead, and loses 100 us each second; some are held up on the way.
        let day = Duration::from_secs(86_400);
        for ms in 0..10_000_u64 {
            let now = Duration::from_millis(ms);
            let late = if ms % 3 == 0 { Duration::ZERO } else { Duration::from_millis(40) };
            let sent = day + now - Duration::from_micros(ms / 10) - late.min(now);
            transit.arrived(sent, now);
        }
        let sent = day + Duration::from_secs(10) - Duration::from_micros(1000);
        let earliest = transit.earliest(sent).expect("some came");
        // Within what the clock lost in two seconds.
        assert!((earliest - 10_000_000_000).abs() <= 200_000, "{earliest}");
    }
}
