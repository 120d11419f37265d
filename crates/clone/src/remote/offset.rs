//! What another host's clock is ahead of this one's or behind it, as far as it matters: a frame that was sent at a time of theirs
//! arrived at a time of ours, and the least of these differences is the one of the frame that waited least on its way.

/// A difference is forgotten after this, to twice this: clocks drift.
const WINDOW_NS: u64 = 10_000_000_000;

/// The difference.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offset {
    since_ns: u64,
    /// The least of the window before, and of this one.
    least: [Option<i64>; 2],
}

impl Offset {
    /// A frame came.
    pub fn saw(&mut self, sent_ns: u64, arrived_ns: u64) {
        let difference = arrived_ns.wrapping_sub(sent_ns) as i64;
        let [before, now] = &mut self.least;
        if arrived_ns.saturating_sub(self.since_ns) > WINDOW_NS {
            self.since_ns = arrived_ns;
            (*before, *now) = (*now, None);
        }
        *now = Some(now.map_or(difference, |least| least.min(difference)));
    }

    /// What is added to a time of theirs, wrapping, to have it in ours.
    pub fn shift(&self) -> u64 {
        self.least.iter().flatten().min().copied().unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_frame_that_waited_least_says_the_difference() {
        let mut offset = Offset::default();
        // Their clock is 5 s behind; frames take 1 ms and more.
        for (n, way) in [9, 3, 1, 7, 40].into_iter().enumerate() {
            let sent = (100 + n as u64) * S;
            offset.saw(sent, sent + 5 * S + way * 1_000_000);
        }
        assert_eq!(offset.shift(), 5 * S + 1_000_000);
        // Their clock is ahead.
        let mut offset = Offset::default();
        offset.saw(100 * S, 90 * S);
        assert_eq!((101 * S).wrapping_add(offset.shift()), 91 * S);
    }

    #[test]
    fn a_clock_that_drifts_or_is_set_is_followed() {
        let mut offset = Offset::default();
        (0..100).for_each(|n| offset.saw(n * S, n * S + 1000));
        assert_eq!(offset.shift(), 1000);
        // Two windows later nothing of before counts.
        (100..125).for_each(|n| offset.saw(n * S, n * S + 3 * S));
        assert_eq!(offset.shift(), 3 * S);
    }
}
