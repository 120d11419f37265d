//! Which of each stream's last sequence numbers were seen, by whatever CPU: `programs/bpf/include/seen.h` in Rust, for one thread.

use wire::signature::MAX_SEQUENCE;

/// Whether a frame was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Never,
    Before,
    /// Nobody remembers.
    Unknown,
}

/// Of all streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    streams: usize,
    bits: u32,
    /// A recent number of each stream, 0 if there was none; then the streams' rings.
    pub words: Vec<u64>,
}

impl Seen {
    /// Remembers 2 to the power of `bits` (8 to 16) numbers of each stream, but for the 248 that are so far below the highest.
    pub fn new(streams: u32, bits: u32) -> Seen {
        let words = streams as usize * (1 + words(bits));
        Seen { streams: streams as usize, bits, words: vec![0; words] }
    }

    /// A recent number of the stream, 0 if there was none.
    pub fn near(&mut self, stream: usize) -> &mut u64 {
        &mut self.words[stream]
    }

    /// Takes down `number`.
    pub fn mark(&mut self, stream: usize, number: u64) -> Mark {
        if number.is_multiple_of(1 << self.bits) {
            self.words[stream] = number.max(self.words[stream]);
        }
        let part = 1usize << (self.bits - 8);
        let word = (number & 7) as usize * part + (number as usize >> 8 & (part - 1));
        let word = &mut self.words[self.streams + stream * words(self.bits) + word];
        let bit = 1 << (number >> 3 & 31);
        let round = ((number & MAX_SEQUENCE) >> self.bits) as u32;
        // Rounds come round as numbers do: the sign of 40 - bits is extended.
        let ahead = (round.wrapping_sub((*word >> 32) as u32) << (self.bits - 8)) as i32;
        if *word as u32 == 0 || ahead > 0 {
            *word = u64::from(round) << 32 | bit;
        } else if ahead < 0 {
            return Mark::Unknown;
        } else if *word & bit != 0 {
            return Mark::Before;
        } else {
            *word |= bit;
        }
        Mark::Never
    }
}

/// Of a ring of 2 to the power of `bits` numbers.
pub fn words(bits: u32) -> usize {
    1 << (bits - 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::ZERO;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use wire::signature::SEQUENCES;

    #[test]
    fn a_number_is_remembered_until_the_highest_is_far_enough_above() {
        for bits in [8, 11, 16] {
            let remembered = (1u64 << bits) - 248;
            for (above, mark) in [(remembered - 1, Mark::Before), (remembered + 255, Mark::Unknown)] {
                let mut seen = Seen::new(1, bits);
                (0..=248 + above).for_each(|number| assert_eq!(seen.mark(0, ZERO + number), Mark::Never));
                assert_eq!(seen.mark(0, ZERO + 248), mark, "{bits} {above}");
            }
        }
    }

    proptest! {
        /// Steps within what is remembered, forth and back, before and after numbers come round.
        #[test]
        fn what_was_seen_is_what_a_list_says(
            steps in prop::collection::vec((0u64..40, 0u64..700), 1..600),
            start in prop_oneof![Just(ZERO), 3 * SEQUENCES - 2000..3 * SEQUENCES],
        ) {
            let (mut seen, mut list) = (Seen::new(2, 10), HashSet::new());
            let mut highest = start + 1000;
            for (forth, back) in steps {
                highest += forth;
                for number in [highest, highest - back] {
                    let wanted = if list.insert(number) { Mark::Never } else { Mark::Before };
                    prop_assert_eq!(seen.mark(1, number), wanted, "{} of {}", number, highest);
                }
            }
        }
    }
}
