//! Where packets were lost: by the reflector's own sequence numbers, if these are its count of what it sent in this session.
//!
//! A stateful reflector numbers its answers from 0 (RFC 8762, section 4.3.1). Up to the last packet that was answered, a number of its own that
//! never came is an answer that was lost on the way back, and what it did not number never reached it. A stateless one copies the sender's number,
//! which tells nothing; and so does a stateful one to which every packet came. Only numbers that differ from the sender's, and that are
//! one count from 0, tell directions. Anything else is "cannot tell".

/// Why losses have no direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDirection {
    /// The reflector's numbers are the sender's: it is stateless, or received all up to the last that it answered.
    SameNumbers,
    /// Its numbers are no count of this session from 0: other sessions are in them, or they are something else.
    NoCount,
    /// Packets arrived twice at the reflector: a number that is missing may be of an answer to a duplicate.
    Duplicates,
    /// Its numbers went on by more than the packets that can have reached it meanwhile: some came twice or in another order, or it counts other
    /// sessions too. A number that is missing may be of one of those.
    Jumps,
}

/// Where packets were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directions {
    /// On the way to the reflector.
    pub forward: u64,
    /// On the way back.
    pub back: u64,
    /// After the last packet that was answered: nobody knows.
    pub unknown: u64,
}

/// A set of small numbers.
#[derive(Debug, Clone, Default)]
struct Seen(Vec<u64>);

impl Seen {
    /// Whether it is new.
    fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1_u64 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        // In bounds: it was made as long.
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
}

/// Follows the numbers of answers, late ones included.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    seen: Seen,
    /// Different numbers of the reflector's.
    count: u64,
    most: Option<u32>,
    /// Packets that were answered, and the last of them.
    answered: u64,
    last: Option<u32>,
    differ: bool,
    contradict: bool,
    duplicates: u64,
    /// Numbers of the reflector's grew faster than the sender's.
    jumps: bool,
}

impl Numbers {
    /// The first answer to packet `number`, of `sent` packets so far, has the reflector's number `own`.
    pub fn first(&mut self, number: u32, own: u32, sent: u64) {
        self.answered += 1;
        let later = self.last.is_none_or(|last| number > last);
        let grown = |now: u32, before: Option<u32>| {
            u64::from(now) + 1 - before.map_or(0, |before| u64::from(before) + 1)
        };
        // Of a later packet: as many as were sent since may have been counted since, and no more.
        if later && self.most.is_none_or(|most| own > most) {
            self.jumps |= grown(own, self.most) > grown(number, self.last);
        }
        self.last = self.last.max(Some(number));
        self.differ |= own != number;
        // What it sent is what it received, from 0: never more than was sent to it. That also bounds the set.
        if u64::from(own) >= sent + self.duplicates {
            self.contradict = true;
            return;
        }
        self.add(own);
    }

    /// A further answer to packet `number`, whose first had the number `before`.
    pub fn again(&mut self, number: u32, before: u32, own: u32, sent: u64) {
        if own == before {
            // The answer was duplicated on its way; or a stateless reflector's packet.
            return;
        }
        self.differ |= own != number;
        // Bounded like the packets: who answers each more often than twice is not believed.
        if self.duplicates >= sent || u64::from(own) > sent + self.duplicates {
            self.contradict = true;
            return;
        }
        self.duplicates += 1;
        self.add(own);
    }

    fn add(&mut self, own: u32) {
        if self.seen.insert(own) {
            self.count += 1;
            self.most = self.most.max(Some(own));
        } else {
            // One number for two packets is no count.
            self.contradict = true;
        }
    }

    /// Numbers of the reflector's that are not the packets' were seen, and are one count from 0.
    pub fn is_stateful(&self) -> bool {
        self.differ && !self.contradict
    }

    /// Where the packets were lost that were never answered, of `sent`.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn directions(&self, sent: u64) -> Result<Directions, NoDirection> {
        let none = || Directions { forward: 0, back: 0, unknown: 0 };
        if sent == self.answered {
            return Ok(none());
        }
        let (Some(last), Some(most)) = (self.last, self.most) else {
            return Err(if self.contradict { NoDirection::NoCount } else { NoDirection::SameNumbers });
        };
        if self.contradict {
            return Err(NoDirection::NoCount);
        }
        if !self.differ {
            return Err(NoDirection::SameNumbers);
        }
        if self.duplicates > 0 {
            return Err(NoDirection::Duplicates);
        }
        let span = u64::from(last) + 1;
        // Counted in two ways, which must agree: packets that have no answer, and numbers of both ends that are missing.
        let lost = span.checked_sub(self.answered).ok_or(NoDirection::NoCount)?;
        let forward = u64::from(last).checked_sub(u64::from(most)).ok_or(NoDirection::NoCount)?;
        let back = (u64::from(most) + 1).checked_sub(self.count).ok_or(NoDirection::NoCount)?;
        if forward + back != lost {
            return Err(NoDirection::NoCount);
        }
        if self.jumps {
            return Err(NoDirection::Jumps);
        }
        Ok(Directions { forward, back, unknown: sent.saturating_sub(span) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reflector that counts from `start`: what it numbers, of packets that are lost by their number there and back.
    fn stateful(sent: u32, start: u32, there: impl Fn(u32) -> bool, back: impl Fn(u32) -> bool) -> Numbers {
        let (mut numbers, mut own) = (Numbers::default(), start);
        for number in (0..sent).filter(|number| !there(*number)) {
            if !back(number) {
                numbers.first(number, own, u64::from(number) + 1);
            }
            own += 1;
        }
        numbers
    }

    #[test]
    fn losses_have_the_direction_in_which_they_happened() {
        let numbers = stateful(100, 0, |n| n % 10 == 3, |n| n % 10 == 7);
        assert_eq!(numbers.directions(100), Ok(Directions { forward: 10, back: 10, unknown: 0 }));
        assert!(numbers.is_stateful());
        let numbers = stateful(100, 0, |n| n % 10 == 3 || n >= 95, |_| false);
        assert_eq!(numbers.directions(100), Ok(Directions { forward: 10, back: 0, unknown: 5 }));
    }

    #[test]
    fn the_senders_own_numbers_tell_nothing() {
        let mut stateless = Numbers::default();
        (0..100).filter(|n| n % 10 != 3).for_each(|n| stateless.first(n, n, u64::from(n) + 1));
        assert_eq!(stateless.directions(100), Err(NoDirection::SameNumbers));
        assert!(!stateless.is_stateful());
        // Nor do those of a stateful one to which all came.
        let numbers = stateful(100, 0, |_| false, |n| n % 10 == 7);
        assert_eq!(numbers.directions(100), Err(NoDirection::SameNumbers));
        // Nothing was lost in either direction, whatever the numbers are.
        (0..10).for_each(|n| stateless.first(n * 10 + 3, n * 10 + 3, 100));
        assert_eq!(stateless.directions(100), Ok(Directions { forward: 0, back: 0, unknown: 0 }));
        assert_eq!(Numbers::default().directions(5), Err(NoDirection::SameNumbers));
    }

    #[test]
    fn numbers_that_are_no_count_of_this_session_are_not_believed() {
        // Begun before, or of several sessions.
        let numbers = stateful(100, 7, |n| n == 50, |_| false);
        assert_eq!(numbers.directions(100), Err(NoDirection::NoCount));
        // Always the same.
        let mut constant = Numbers::default();
        (0..10).for_each(|n| constant.first(n, 0, u64::from(n) + 1));
        assert_eq!(constant.directions(11), Err(NoDirection::NoCount));
        // Other sessions in between: more answers would be missing than packets.
        let mut shared = Numbers::default();
        (0..100_u32).filter(|n| n % 50 != 1).for_each(|n| shared.first(n, n / 2, u64::from(n) + 1));
        assert_eq!(shared.directions(100), Err(NoDirection::NoCount));
        let mut shared = Numbers::default();
        [(0, 0), (2, 1), (3, 3), (4, 5)].into_iter().for_each(|(n, own)| shared.first(n, own, 6));
        assert_eq!(shared.directions(6), Err(NoDirection::NoCount));
        // With another session's packet in between: the sums agree by chance.
        let mut shared = Numbers::default();
        [(0, 0), (2, 1), (3, 3)].into_iter().for_each(|(n, own)| shared.first(n, own, 4));
        assert_eq!(shared.directions(4), Err(NoDirection::Jumps));
        // Anything.
        let mut huge = Numbers::default();
        huge.first(0, u32::MAX, 1);
        huge.again(0, u32::MAX, u32::MAX - 1, 1);
        assert_eq!(huge.directions(2), Err(NoDirection::NoCount));
        assert!(huge.seen.0.is_empty());
    }

    #[test]
    fn duplicates_at_the_reflector_take_the_direction_away() {
        let mut numbers = Numbers::default();
        numbers.first(0, 0, 1);
        numbers.first(1, 1, 2);
        numbers.again(1, 1, 2, 2);
        numbers.first(3, 3, 4);
        assert_eq!(numbers.directions(4), Err(NoDirection::Duplicates));
        // On the way back they do not.
        let mut numbers = stateful(9, 0, |n| n == 3, |n| n == 5);
        numbers.again(8, 7, 7, 9);
        assert_eq!(numbers.directions(9), Ok(Directions { forward: 1, back: 1, unknown: 0 }));
    }

    proptest! {
        #[test]
        fn what_is_told_is_true(lost in prop::collection::vec(0..3_u8, 1..200), start in 0..2_u32) {
            let is = |n: u32, how: u8| lost.get(n as usize) == Some(&how);
            let sent = lost.len() as u32;
            let numbers = stateful(sent, start, |n| is(n, 1), |n| is(n, 2));
            if let (Ok(found), 0) = (numbers.directions(sent.into()), start) {
                let last = lost.iter().rposition(|how| *how == 0).map_or(0, |at| at + 1);
                let count = |how| lost[..last].iter().filter(|h| **h == how).count() as u64;
                prop_assert_eq!(found, Directions { forward: count(1), back: count(2), unknown: (lost.len() - last) as u64 });
            }
        }

        /// Packets that are lost there (1) or on the way back (2), or arrive twice there, of which one answer or the other is lost (3, 4), or
        /// have another session's after them (5), and are not beside one that is lost there: what is told is true, or nothing is. One that is
        /// lost there beside them looks in every respect like one whose answer was lost.
        #[test]
        fn who_counts_more_than_comes_is_found_out(ways in prop::collection::vec(0..6_u8, 1..60)) {
            let mut ways = ways;
            for at in 1..ways.len() {
                if ways[at - 1] > 2 || (ways[at - 1], ways[at]) == (1, 4) {
                    ways[at] = 0;
                }
            }
            let mut arrive: Vec<(u32, bool)> = Vec::new();
            for (number, way) in (0_u32..).zip(&ways) {
                match way {
                    1 => {}
                    3 => arrive.extend([(number, false), (number, true)]),
                    4 => arrive.extend([(number, true), (number, false)]),
                    5 => arrive.extend([(number, false), (u32::MAX, true)]),
                    _ => arrive.push((number, *way == 2)),
                }
            }
            let sent = ways.len() as u64;
            let mut numbers = Numbers::default();
            for (own, (number, lost)) in (0_u32..).zip(&arrive) {
                if !lost {
                    numbers.first(*number, own, sent);
                }
            }
            if let Ok(found) = numbers.directions(sent) {
                let last = ways.iter().rposition(|way| !matches!(way, 1 | 2)).map_or(0, |at| at + 1);
                let count = |how| ways[..last].iter().filter(|way| **way == how).count() as u64;
                prop_assert_eq!(found, Directions { forward: count(1), back: count(2), unknown: sent - last as u64 });
            }
        }

        #[test]
        fn any_numbers_are_bounded(all in prop::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 0..100)) {
            let mut numbers = Numbers::default();
            for (number, own, again) in all {
                if again { numbers.again(number, 0, own, 100) } else { numbers.first(number % 100, own, 100) }
            }
            prop_assert!(numbers.seen.0.len() < 16);
            let _ = numbers.directions(100);
        }
    }
}
