//! Which frame leaves next: by due time, equal ones in the order they came; and those that wait for others to pass.
//!
//! With one delay for all, dues come in order and a plain queue does; only what is due before an earlier one goes into a
//! heap.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Who waits for others waits no longer than this after its own time: a second.
pub const PATIENCE_NS: u64 = 1_000_000_000;

/// What waits to leave.
#[derive(Debug)]
pub struct Queue<T> {
    in_order: VecDeque<Entry<T>>,
    out_of_order: BinaryHeap<Reverse<Entry<T>>>,
    held: VecDeque<Held<T>>,
    entered: u64,
    passed: u64,
}

#[derive(Debug)]
struct Entry<T> {
    due: u64,
    number: u64,
    item: T,
}

#[derive(Debug)]
struct Held<T> {
    /// Goes on when so many have passed.
    after: u64,
    due: u64,
    item: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (u64, u64) {
        (self.due, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            in_order: VecDeque::new(),
            out_of_order: BinaryHeap::new(),
            held: VecDeque::new(),
            entered: 0,
            passed: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Leaves at `due`. Those that were held for it to pass come right behind it.
    pub fn push(&mut self, due: u64, item: T) {
        self.enter(due, item);
        self.passed += 1;
        while let Some(held) = self.held.pop_front_if(|held| held.after <= self.passed) {
            self.enter(due.max(held.due), held.item);
        }
    }

    /// A copy, which is not one of those that others wait for.
    pub fn push_copy(&mut self, due: u64, item: T) {
        self.enter(due, item);
    }

    /// Leaves at `due`, but behind so many frames to come; if they do not come, a second later. What is held after it with
    /// the same number, its copies, leaves with it. A queue holds frames for one number of others only.
    pub fn hold(&mut self, due: u64, behind: u32, item: T) {
        self.held.push_back(Held { after: self.passed + u64::from(behind), due, item });
    }

    fn enter(&mut self, due: u64, item: T) {
        let entry = Entry { due, number: self.entered, item };
        self.entered += 1;
        if self.in_order.back().is_none_or(|last| last.due <= due) {
            self.in_order.push_back(entry);
        } else {
            self.out_of_order.push(Reverse(entry));
        }
    }

    /// When something may leave next.
    pub fn next_due(&self) -> Option<u64> {
        let front = self.in_order.front().map(|entry| entry.due);
        let top = self.out_of_order.peek().map(|Reverse(entry)| entry.due);
        let held = self.held.front().map(|held| held.due.saturating_add(PATIENCE_NS));
        [front, top, held].into_iter().flatten().min()
    }

    /// What leaves next, if it is due; with the time it was due.
    pub fn pop(&mut self, now: u64) -> Option<(u64, T)> {
        while let Some(held) = self.held.pop_front_if(|held| held.due.saturating_add(PATIENCE_NS) <= now) {
            self.enter(held.due.saturating_add(PATIENCE_NS), held.item);
        }
        let front = self.in_order.front().map(Entry::key);
        let top = self.out_of_order.peek().map(|Reverse(entry)| entry.key());
        let entry = match (front, top) {
            (Some(front), top) if top.is_none_or(|top| front < top) && front.0 <= now => {
                self.in_order.pop_front()?
            }
            (_, Some(top)) if front.is_none_or(|front| top < front) && top.0 <= now => {
                self.out_of_order.pop()?.0
            }
            _ => return None,
        };
        Some((entry.due, entry.item))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.in_order.len() + self.out_of_order.len() + self.held.len()
    }

    /// Does none wait?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(queue: &mut Queue<u32>, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(now).map(|(_, item)| item)).collect()
    }

    proptest! {
        #[test]
        fn all_leave_once_by_due_time_and_then_as_they_came(dues in proptest::collection::vec(0..50u64, 0..200)) {
            let mut queue = Queue::default();
            for (n, &due) in dues.iter().enumerate() {
                queue.push(due, n as u32);
            }
            let mut wanted: Vec<u32> = (0..dues.len() as u32).collect();
            wanted.sort_by_key(|&n| dues[n as usize]);
            prop_assert_eq!(queue.len(), dues.len());
            let mut left = Vec::new();
            for now in 0..50 {
                prop_assert!(queue.next_due().is_none_or(|due| due >= now));
                let due = drain(&mut queue, now);
                prop_assert!(due.iter().all(|&n| dues[n as usize] == now));
                left.extend(due);
            }
            prop_assert_eq!(left, wanted);
            prop_assert!(queue.is_empty() && queue.next_due().is_none());
        }

        /// The extent of a frame that is put back by k is k.
        #[test]
        fn a_held_frame_comes_right_behind_as_many_as_it_waits_for(behind in 1..9u32, at in 0..20u32) {
            let mut queue = Queue::default();
            for n in 0..40 {
                if n == at { queue.hold(u64::from(n), behind, n) } else { queue.push(u64::from(n), n) }
                queue.push_copy(u64::from(n), 100 + n);
            }
            let order: Vec<u32> = drain(&mut queue, 40).into_iter().filter(|&n| n < 100).collect();
            let mut wanted: Vec<u32> = (0..40).filter(|&n| n != at).collect();
            wanted.insert((at + behind) as usize, at);
            prop_assert_eq!(order, wanted);
        }
    }

    #[test]
    fn who_waits_for_frames_that_never_come_leaves_after_a_second() {
        let mut queue = Queue::default();
        queue.hold(5, 3, 7);
        assert_eq!((queue.next_due(), queue.pop(5 + PATIENCE_NS - 1)), (Some(5 + PATIENCE_NS), None));
        assert_eq!(queue.pop(5 + PATIENCE_NS), Some((5 + PATIENCE_NS, 7)));
    }
}
