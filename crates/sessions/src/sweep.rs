//! Looks for slots where nothing came back in time, and for those that are held. Pure: words and times go in, tasks come out.

use crate::layout::TICK_BITS;

/// States of a connection (`enum session_state`).
const SYN_SENT: u32 = 1;
const WAITING: u32 = 3;
const HELD: u32 = 5;
const FIN_WAIT_2: u32 = 7;
const LAST_ACK: u32 = 8;
/// It was asked once more since all are used again (`WORD_USED_AGAIN`).
const USED_AGAIN: u64 = 1 << 21;

/// What is to be done with a slot (`enum session_task`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Send again what was sent last.
    Again = 0,
    /// End it: it was not over in time.
    TimeOut = 1,
    /// End it: all is to end.
    Abandon = 2,
    /// Who has thought asks again.
    Ask = 3,
    /// Who is held asks again, once for each.
    UseAgain = 4,
    /// Who is held closes.
    Close = 5,
}

/// A time in the units of the slots.
pub fn ticks(ns: u64) -> u32 {
    (ns >> TICK_BITS) as u32
}

/// A slot as far as it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    state: u32,
    used_again: bool,
    since: u32,
    deadline: u32,
    /// Of UDP: what the server gave with what it saw; 0: nothing.
    cookie: u16,
}

impl Slot {
    /// A slot of four words, of which each has two members; only the first if that says that there is no connection.
    pub fn read(word: impl Fn(usize) -> u64) -> Option<Slot> {
        let first = |word: u64| {
            let [a, b, c, d, ..] = word.to_ne_bytes();
            u32::from_ne_bytes([a, b, c, d])
        };
        let head = word(0);
        let state = head as u32 & 0xff;
        if !(SYN_SENT..=LAST_ACK).contains(&state) {
            return None;
        }
        let (since, deadline) = (first(word(2)), first(word(3)));
        let [.., c, d] = word(1).to_ne_bytes();
        let cookie = u16::from_ne_bytes([c, d]);
        Some(Slot { state, used_again: head & USED_AGAIN != 0, since, deadline, cookie })
    }

    /// Its server sends relays to it, if it is of UDP.
    pub fn has_cookie(self) -> bool {
        self.cookie != 0
    }

    /// What is to be done at `now` with one that is on its way. A connection whose request was acknowledged waits without sending anything
    /// until the first byte of the answer came, since servers may think; and so does one whose FIN was acknowledged.
    pub fn task(self, now: u32, timeout: u32) -> Option<Task> {
        let after = |time: u32| now.wrapping_sub(time) as i32;
        if self.is_held() {
            return None;
        }
        if after(self.since) > timeout as i32 {
            return Some(Task::TimeOut);
        }
        let waits = [WAITING, FIN_WAIT_2].contains(&self.state);
        (!waits && after(self.deadline) > 0).then_some(Task::Again)
    }

    /// It has thought long enough at `now`.
    pub fn has_thought(self, now: u32) -> bool {
        self.is_held() && now.wrapping_sub(self.deadline) as i32 > 0
    }

    /// Nothing is under way.
    pub fn is_held(self) -> bool {
        self.state == HELD
    }

    /// Held, and not used again yet.
    pub fn is_unused(self) -> bool {
        self.is_held() && !self.used_again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(state: u32, since: u32, deadline: u32) -> Option<Slot> {
        let word = |low: u32, high: u32| {
            let (low, high) = (low.to_ne_bytes(), high.to_ne_bytes());
            u64::from_ne_bytes([low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]])
        };
        let words = [u64::from(state | 7 << 8) | 1 << 32, word(2, 3), word(since, 0), word(deadline, 0)];
        Slot::read(|at| words[at])
    }

    #[test]
    fn only_connections_that_are_not_over_are_looked_at() {
        assert!(slot(0, 0, 0).is_none() && slot(9, 0, 0).is_none() && slot(14, 0, 0).is_none());
        assert!((1..=8).all(|state| slot(state, 0, 0).is_some()));
    }

    #[test]
    fn what_is_late_is_sent_again_until_the_connection_times_out() {
        for state in [1, 2, 4, 6, 8] {
            let task = |now| slot(state, 100, 200).expect("a connection").task(now, 1_000);
            assert_eq!([task(200), task(201), task(1_100)], [None, Some(Task::Again), Some(Task::Again)]);
            assert_eq!(task(1_101), Some(Task::TimeOut));
        }
    }

    #[test]
    fn a_server_may_think_before_its_answer_and_before_it_closes() {
        for state in [3, 7] {
            assert_eq!(slot(state, 100, 200).expect("a connection").task(900, 1_000), None);
            assert_eq!(slot(state, 100, 200).expect("a connection").task(1_101, 1_000), Some(Task::TimeOut));
        }
    }

    #[test]
    fn who_is_held_is_never_late_and_asks_again_when_it_has_thought() {
        let held = slot(5, 100, 200).expect("a connection");
        assert_eq!(held.task(u32::MAX / 4, 1_000), None);
        assert!(held.is_held() && held.is_unused() && held.has_thought(201) && !held.has_thought(200));
        assert!(!slot(4, 100, 200).expect("a connection").has_thought(300));
    }

    #[test]
    fn times_wrap() {
        let begun = u32::MAX - 50;
        assert_eq!(slot(1, begun, begun).expect("a connection").task(10, 1_000), Some(Task::Again));
        assert_eq!(slot(1, begun, 20).expect("a connection").task(10, 1_000), None);
    }
}
