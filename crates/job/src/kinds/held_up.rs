//! Whether others hold up a thread that does what is due and else sleeps, and that it then goes before them. Senders with a schedule of
//! frames have that in `engine::worker`; this is for others, which look at it now and then. Senders rest, so that nobody starves; one of
//! these that turns out to need its CPU always is like everybody else again.

use engine::{Had, Priority};

/// Others that had the CPU for so long between two looks (a tenth of a second) held up what was due.
const NOTABLE_NS: u64 = 1_000_000;
/// Who works for so many parts of a hundred of the time between two looks does not sleep. Linux leaves ordinary tasks 5 (sched(7)).
const BUSY: u64 = 90;

/// Of the calling thread.
#[derive(Debug)]
pub struct HeldUp {
    priority: Priority,
    had: Had,
    /// For how long it had waited for a CPU at the last look.
    waited_ns: Option<u64>,
    /// When that was, and for how long it had had a CPU by then.
    looked_ns: (u64, u64),
}

impl HeldUp {
    pub fn of(priority: Priority) -> HeldUp {
        HeldUp { priority, had: Had::Ordinary, waited_ns: None, looked_ns: (0, 0) }
    }

    /// In the thread that it is about. `waited_ns`: for how long it has waited for a CPU since it began; `None` where the kernel does
    /// not tell. `now_ns`: the time, and for how long it has had a CPU.
    pub fn look(&mut self, waited_ns: Option<u64>, now_ns: (u64, u64)) {
        let then_ns = std::mem::replace(&mut self.looked_ns, now_ns);
        let [passed, used] =
            [(now_ns.0, then_ns.0), (now_ns.1, then_ns.1)].map(|(now, then)| now.saturating_sub(then));
        if self.priority == Priority::AsNeeded && self.had == Had::RealTime && used * 100 > passed * BUSY {
            self.priority = Priority::Ordinary;
            engine::priority::give_up();
            return;
        }
        let before = std::mem::replace(&mut self.waited_ns, waited_ns);
        let Some((now, before)) = waited_ns.zip(before) else {
            self.had = self.had.max(self.priority.take());
            return;
        };
        if now.saturating_sub(before) > NOTABLE_NS
            && let Some(had) = self.priority.needed()
        {
            self.had = had;
        }
    }

    /// The most that the thread had.
    pub fn had(&self) -> Had {
        self.had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it may have more than others is its user's rights' to say; that it asks only when it is held up is what is tested.
    #[test]
    fn it_goes_before_others_when_they_held_it_up_and_not_before() {
        let had = |priority, waits: &'static [Option<u64>]| {
            let of = move || {
                let mut held_up = HeldUp::of(priority);
                waits.iter().for_each(|waited_ns| held_up.look(*waited_ns, (0, 0)));
                held_up.had()
            };
            std::thread::spawn(of).join().expect("no panic")
        };
        let permitted = std::thread::spawn(|| Priority::RealTime.take()).join().expect("no panic");
        let (little, much) = (&[Some(0), Some(900_000), Some(1_800_000)], &[Some(5), Some(3_000_000)]);
        assert_eq!(had(Priority::AsNeeded, little), Had::Ordinary);
        assert_eq!(had(Priority::AsNeeded, &[None, Some(9_000_000), None]), Had::Ordinary);
        assert_eq!(had(Priority::AsNeeded, much), permitted);
        assert_eq!(had(Priority::Ordinary, much), Had::Ordinary);
    }

    #[test]
    fn one_that_never_sleeps_does_not_go_before_others_for_long() {
        let (first, last) = std::thread::spawn(|| {
            let mut held_up = HeldUp::of(Priority::AsNeeded);
            held_up.look(Some(0), (0, 0));
            held_up.look(Some(9_000_000), (100_000_000, 90_000_000));
            let first = engine::priority::is_real_time();
            held_up.look(Some(9_000_000), (200_000_000, 181_000_000));
            held_up.look(Some(99_000_000), (300_000_000, 182_000_000));
            (first, engine::priority::is_real_time())
        })
        .join()
        .expect("no panic");
        let permitted =
            std::thread::spawn(|| Priority::RealTime.take() == Had::RealTime).join().expect("no panic");
        assert_eq!((first, last), (permitted, false));
    }
}
