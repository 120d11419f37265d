//! How long a command of several searches still takes: those of other frame sizes, and what follows a search, included.
//!
//! No clock: whoever carries trials out tells how long each took. The rest is counted in trials first and becomes time last,
//! so that trials that were taken from an earlier result count for what they are, although they took no time.

use crate::search::Left;

/// Between trials frames are waited for and counters are read. How long that takes is not known before the first; it is
/// taken for one trial's worth of this.
const BETWEEN_NS: u64 = 500_000_000;

/// The account of one command.
#[derive(Debug, Clone)]
pub struct Ahead {
    sizes: u64,
    /// Sizes that are over, and what was done with them.
    over: u64,
    done_before: Left,
    /// Of the present size: what was done, and what follows the search that goes on.
    done: Left,
    follows: Left,
    /// The most that a size may take, where searches say no more than that.
    bound: Left,
    between_ns: u64,
    timed: u64,
}

/// What is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// Nanoseconds; never none.
    pub ns: u64,
    /// It may be less, and (but for trials that have to be repeated) not more.
    pub at_most: bool,
}

impl Ahead {
    /// Nothing was done yet, and there is one size.
    pub fn new() -> Self {
        Self {
            sizes: 1,
            over: 0,
            done_before: Left::default(),
            done: Left::default(),
            follows: Left::default(),
            bound: Left::default(),
            between_ns: 0,
            timed: 0,
        }
    }

    /// The searches of size `number` (from 1) of `sizes` begin.
    pub fn size(&mut self, number: usize, sizes: usize) {
        if self.done.trials > 0 {
            self.over += 1;
            self.done_before.add(std::mem::take(&mut self.done));
        }
        self.follows = Left::default();
        self.sizes = sizes.max(number) as u64;
    }

    /// With this size so much is done after the search that goes on now.
    pub fn follows(&mut self, left: Left) {
        self.follows = left;
    }

    /// A trial was done. `took_ns`: with its repetitions and all that is around them; `None` if it was done earlier.
    pub fn tried(&mut self, sending_ns: u64, took_ns: Option<u64>) {
        self.done.add(Left::of(1, sending_ns));
        if let Some(took_ns) = took_ns {
            self.between_ns = self.between_ns.saturating_add(took_ns.saturating_sub(sending_ns));
            self.timed += 1;
        }
    }

    /// What is to come when the present search has `left`; `None` when that is nothing. `size`: which of the sizes it is.
    pub fn left(&mut self, left: Left, size: usize) -> Option<Remaining> {
        let mut rest = left;
        rest.add(self.follows);
        let mut whole = self.done;
        whole.add(rest);
        // Another size takes what those took that are over, or what this one will have taken.
        // Once the most is all that is known of one search, it is all that is known of its like at other sizes.
        let each = if rest.at_most || self.bound.trials > 0 {
            self.bound.trials = self.bound.trials.max(whole.trials);
            self.bound.sending_ns = self.bound.sending_ns.max(whole.sending_ns);
            Left { at_most: true, ..self.bound }
        } else if self.over > 0 {
            let over = self.over;
            Left {
                trials: self.done_before.trials.div_ceil(over),
                sending_ns: self.done_before.sending_ns / over,
                at_most: false,
            }
        } else {
            whole
        };
        rest.add(each.times(self.sizes.saturating_sub(size as u64)));
        let between = self.between_ns.saturating_add(BETWEEN_NS) / (self.timed + 1);
        let ns = rest.sending_ns.saturating_add(rest.trials.saturating_mul(between));
        (rest.trials > 0).then_some(Remaining { ns: ns.max(1), at_most: rest.at_most })
    }
}

impl Default for Ahead {
    fn default() -> Self {
        Self::new()
    }
}
