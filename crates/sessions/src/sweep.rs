//! Looks for slots where nothing came back in time. Pure: words and times go in, tasks come out.

use crate::layout::TICK_BITS;

/// States of a connection (`enum session_state`).
const SYN_SENT: u32 = 1;
const WAITING: u32 = 3;
const LAST_ACK: u32 = 4;

/// What is to be done with a slot (`enum session_task`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Send again what was sent last.
    Again = 0,
    /// End it: it was not over in time.
    TimeOut = 1,
    /// End it: all is to end.
    Abandon = 2,
}

/// A time in the units of the slots.
pub fn ticks(ns: u64) -> u32 {
    (ns >> TICK_BITS) as u32
}

/// A slot as far as it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    state: u32,
    received: u32,
    opened: u32,
    deadline: u32,
}

impl Slot {
    /// A slot of four words, of which each has two members; only the first if that says that there is no connection.
    pub fn read(word: impl Fn(usize) -> u64) -> Option<Slot> {
        let halves = |word: u64| {
            let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
            (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
        };
        let state = word(0) as u32 & 0xff;
        if !(SYN_SENT..=LAST_ACK).contains(&state) {
            return None;
        }
        let (received, opened, deadline) = (halves(word(1)).1, halves(word(2)).0, halves(word(3)).0);
        Some(Slot { state, received, opened, deadline })
    }

    /// What is to be done at `now`. A connection whose request was acknowledged waits without sending anything until the first byte of the
    /// answer came: servers may think.
    pub fn task(self, now: u32, timeout: u32) -> Option<Task> {
        let after = |time: u32| now.wrapping_sub(time) as i32;
        if after(self.opened) > timeout as i32 {
            return Some(Task::TimeOut);
        }
        let waits = self.state == WAITING && self.received == 0;
        (!waits && after(self.deadline) > 0).then_some(Task::Again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(state: u32, received: u32, opened: u32, deadline: u32) -> Option<Slot> {
        let word = |low: u32, high: u32| {
            let (low, high) = (low.to_ne_bytes(), high.to_ne_bytes());
            u64::from_ne_bytes([low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]])
        };
        let words =
            [u64::from(state | 7 << 8) | 1 << 32, word(2, received), word(opened, 0), word(deadline, 0)];
        Slot::read(|at| words[at])
    }

    #[test]
    fn only_connections_that_are_not_over_are_looked_at() {
        assert!(slot(0, 0, 0, 0).is_none() && slot(5, 0, 0, 0).is_none() && slot(9, 0, 0, 0).is_none());
        assert!((1..=4).all(|state| slot(state, 0, 0, 0).is_some()));
    }

    #[test]
    fn what_is_late_is_sent_again_until_the_connection_times_out() {
        for state in [1, 2, 4] {
            let task = |now| slot(state, 0, 100, 200).expect("a connection").task(now, 1_000);
            assert_eq!([task(200), task(201), task(1_100)], [None, Some(Task::Again), Some(Task::Again)]);
            assert_eq!(task(1_101), Some(Task::TimeOut));
        }
    }

    #[test]
    fn a_server_may_think_before_its_answer_and_not_within_it() {
        assert_eq!(slot(3, 0, 100, 200).expect("a connection").task(900, 1_000), None);
        assert_eq!(slot(3, 1, 100, 200).expect("a connection").task(900, 1_000), Some(Task::Again));
        assert_eq!(slot(3, 0, 100, 200).expect("a connection").task(1_101, 1_000), Some(Task::TimeOut));
    }

    #[test]
    fn times_wrap() {
        let begun = u32::MAX - 50;
        assert_eq!(slot(1, 0, begun, begun).expect("a connection").task(10, 1_000), Some(Task::Again));
        assert_eq!(slot(1, 0, begun, 20).expect("a connection").task(10, 1_000), None);
    }
}
