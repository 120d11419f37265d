//! When to call, for how long, and when to sleep or rest instead. Pure: times go in, steps come out.
//!
//! A call of BPF_PROG_TEST_RUN keeps its CPU in one RCU read section on a preemptible kernel: whoever waits for RCU,
//! anywhere on the machine, waits for its end. So calls are short, and there is one after the other. A call runs the
//! program so many times; what a run takes differs by a factor of a hundred (one that waits for a frame lingers two
//! microseconds, one that sends takes 20 ns), so the number follows what the calls before took, and the program is told
//! until when it may linger, which bounds the rest.
//!
//! ```text
//!   top speed, or gaps too short   call 20 ms | call 20 ms | call 20 ms |
//!   gaps worth sleeping in         sleep ......... call | sleep ......... call |
//!                                          frame ---'           frame ---'
//!   a real-time thread             call 1.3 ms | rest | call | rest |
//!   one that became one on its     sleep ....... call | sleep ....... call |, in gaps of 0.1 ms and more;
//!   way, because others want       call 0.4 ms | rest | call | rest |, in shorter ones
//!   its core
//! ```

/// How long a call is to last. RCU waits of others last about as long. `make bench`: calls of 20 ms cost less than 1 %
/// of the rate at top speed, of 5 ms 4 %, of 1 ms 9 %.
pub const CALL_NS: u64 = 20_000_000;
/// A sleep shorter than this is not worth its context switches and the call that follows.
const LEAST_SLEEP_NS: u64 = 30_000;
/// How long before a frame a sleep ends of one that was not tried for that.
const FIRST_MARGIN: u64 = 60_000;
/// No longer sleep at a time, to notice requests.
const MOST_SLEEP_NS: u64 = 20_000_000;
/// What is run through in vain at the end of a call, when the next frame is far away, may take so long.
const IDLE_NS: u64 = 4_000;

/// A real-time thread rests for a twelfth of the time that it works: Linux takes away a twentieth from those who
/// do not, in one piece (sched(7): the fair server, before 6.12 throttling). A sixteenth was too little: switching takes its part, and
/// beside `stress-ng --cpu 2` on Linux 6.18 the core was gone for 50 ms in each second.
const WORK_PER_REST: u64 = 12;
/// One that became a real-time task because others want its core does not keep it to wait there: it rests for a fifth of the time that it
/// waits. With a twelfth, senders of 5,000 frames/s on both cores of two left so little to twenty others that `ip link` took minutes.
const WAIT_PER_REST: u64 = 5;
/// It rests so long at a time. What a rest takes longer, because the machine wakes threads late, goes to its credit.
pub const REST_NS: u64 = 80_000;
/// So many runs of a program that waits take about as long as a thread works for such a rest.
const RUNS_PER_REST: u32 = 256;
/// However late threads are woken, sleeps end no more than so many of the first margins before a frame: what is later is
/// the machine's, and reported as lateness.
const MOST_MARGINS: u64 = 8;
/// The most that earlier sleep is worth.
const MOST_CREDIT_NS: i64 = 1_250_000;

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Run the program so often. It lingers only for frames that are due before `until`, and less than `stay` away.
    Call {
        /// Times.
        repeat: u32,
        /// On the clock that goes in.
        until: u64,
        /// Nanoseconds.
        stay: u64,
    },
    /// Sleep until then.
    Sleep(u64),
}

/// What a call came to. Times are on the clock that goes in.
#[derive(Debug, Clone, Copy)]
pub struct Called {
    /// From when.
    pub began: u64,
    /// Until when.
    pub ended: u64,
    /// When the first of its frames was due.
    pub due: u64,
    /// When the next frame is due now; `None` at top speed.
    pub next: Option<u64>,
    /// Frames that left.
    pub sent: u64,
    /// For how long it waited for frames to be due.
    pub waited: u64,
}

/// Plans the calls of one sending thread.
#[derive(Debug, Clone)]
pub struct Calls {
    batch: u32,
    repeat: u32,
    /// Sleeps end this long before the frame is due; `None`: it never sleeps.
    margin: Option<u64>,
    /// What that was at first.
    least: u64,
    /// What it may become.
    most: u64,
    /// Rest that is owed; `None`: none ever is.
    owed: Option<i64>,
    /// It goes before others that want its core: it leaves that to them wherever it can.
    goes_first: bool,
}

impl Calls {
    /// Calls of whole batches. `margin`: how long before a frame a sleep has to end on this machine, if sleeping may be
    /// worth it at all. `rests`: the thread has a real-time priority.
    pub fn new(batch: u32, margin: Option<u64>, rests: bool) -> Calls {
        let batch = batch.max(1);
        Calls {
            batch,
            repeat: whole(16_384, batch),
            margin,
            least: margin.unwrap_or(0),
            most: MOST_MARGINS * margin.unwrap_or(0),
            owed: rests.then_some(0),
            goes_first: false,
        }
    }

    /// The thread has become a real-time task because others want its core: it rests from now on, and sleeps in shorter gaps. How
    /// late it was woken among those others says nothing of how late it is woken before them, which it learns. `gap`: between two of its
    /// frames, if sleeping may be worth it at all; of that it keeps its core for a third at most, however late it is woken.
    pub fn goes_first_now(&mut self, gap: Option<u64>) {
        self.owed.get_or_insert(0);
        self.most = gap.map_or(0, |gap| (gap / 3).clamp(LEAST_SLEEP_NS / 2, MOST_MARGINS * FIRST_MARGIN));
        self.least = self.margin.unwrap_or(FIRST_MARGIN).min(FIRST_MARGIN).min(self.most);
        self.margin = gap.map(|_| self.least);
        self.goes_first = true;
    }

    /// How often a call runs the program that waits for the start, some microseconds each: briefly, or, of a thread that rests after
    /// each call, as long as otherwise, so that the start seldom falls into a rest.
    pub fn before_the_start(&self) -> u32 {
        let few = FEW * self.batch;
        if self.rests() { few.max(RUNS_PER_REST) } else { few }
    }

    /// Must the thread rest?
    pub fn rests(&self) -> bool {
        self.owed.is_some()
    }

    /// What to do at `now`, when the next frame is due at `due`; `None` at top speed.
    pub fn next(&self, now: u64, due: Option<u64>) -> Step {
        let stay = self.stay();
        if let (Some(due), Some(margin)) = (due, self.margin)
            && due > now.saturating_add(stay)
        {
            return Step::Sleep((due - margin).min(now + MOST_SLEEP_NS));
        }
        if let Some(owed) = self.owed.filter(|owed| *owed >= REST_NS as i64) {
            return Step::Sleep(now + (owed as u64).min(2 * REST_NS));
        }
        Step::Call { repeat: self.repeat, until: now + self.length(), stay }
    }

    /// A gap shorter than this is spun through. On a core that nobody else wants, what a sleep there spares is not worth a frame
    /// that is late now and then.
    fn stay(&self) -> u64 {
        match (self.margin, self.goes_first) {
            (Some(margin), true) => margin + LEAST_SLEEP_NS,
            (Some(margin), false) => 4 * margin + LEAST_SLEEP_NS,
            (None, _) => u64::MAX,
        }
    }

    /// How long the next call is to be.
    fn length(&self) -> u64 {
        let work = if self.goes_first { WAIT_PER_REST } else { WORK_PER_REST };
        match self.owed {
            Some(owed) => {
                let credit = (REST_NS as i64 - owed).max(REST_NS as i64 / 2) as u64;
                (credit * work).min(CALL_NS)
            }
            None => CALL_NS,
        }
    }

    /// A call as planned by `step` was made, and was not interrupted.
    pub fn called(&mut self, step: Step, call: &Called) {
        let Called { began, ended, due, next, sent, waited } = *call;
        let Step::Call { repeat, until, stay } = step else { return };
        let took = ended.saturating_sub(began).max(1);
        if let Some(owed) = &mut self.owed {
            // Its calls are shorter and more, and what is between them takes its part, too.
            let (waited, work) =
                if self.goes_first { (waited.min(took), WORK_PER_REST - 2) } else { (0, WORK_PER_REST) };
            *owed += ((took - waited) / work + waited / WAIT_PER_REST) as i64;
        }
        let wanted = until.saturating_sub(began).max(1);
        let short = took < wanted * 3 / 4;
        let scaled = |factor: f64| (f64::from(repeat) * factor) as u32;
        let in_vain = |margin: u64| match sent {
            // It had begun shortly before the frame; what came after that was for nothing.
            0 | 1 => ended.saturating_sub(due.max(began)) > IDLE_NS.max(margin / 4),
            // There were gaps to sleep in.
            sent => took / sent > stay,
        };
        let next = if took > wanted + wanted / 4 {
            scaled((wanted as f64 / took as f64).max(0.125))
        } else if short && next.is_none_or(|next| next < until && next < ended.saturating_add(stay)) {
            // It ended although there was something to stay for.
            let most = if self.margin.is_some() { 2.0 } else { 4.0 };
            scaled((wanted as f64 / took as f64).min(most))
        } else if short && self.margin.is_some_and(in_vain) {
            repeat / 2
        } else {
            repeat
        };
        self.repeat = whole(next, self.batch);
    }

    /// A sleep that was to end at `until` lasted from `began` to `ended`.
    pub fn slept(&mut self, began: u64, until: u64, ended: u64) {
        if let Some(owed) = &mut self.owed {
            *owed = (*owed - ended.saturating_sub(began) as i64).max(-MOST_CREDIT_NS);
        }
        if let Some(margin) = &mut self.margin {
            if ended > until + *margin {
                // A frame was late for it. One very late sleep is not to end all others.
                *margin = (*margin + *margin / 2).min(self.most);
            } else {
                // A machine that was busy for a while is not busy for ever.
                *margin -= (*margin - self.least) / 64;
            }
        }
    }

    /// How long before a frame sleeps end now.
    pub fn margin(&self) -> Option<u64> {
        self.margin
    }
}

/// Batches of a call that is to end at once.
pub const FEW: u32 = 16;

/// As many whole batches as that comes to, and at least a few.
fn whole(repeat: u32, batch: u32) -> u32 {
    let batches = (repeat / batch).clamp(FEW, (1 << 28) / batch);
    batches * batch
}

/// How long before a frame a sleep has to end, from how late this machine woke the thread in a trial of many; `None`: it
/// was not tried often enough to know.
pub fn margin(late: &mut [u64]) -> Option<(u64, u64)> {
    const ENOUGH: usize = 50;
    if late.len() < ENOUGH {
        return None;
    }
    late.sort_unstable();
    let p99 = late[(late.len() * 99).div_ceil(100) - 1];
    Some((p99, p99 + p99 / 2 + 2_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel in virtual time: what one run of the program takes, with frames due every `gap` (0: top speed).
    struct Machine {
        now: u64,
        gap: u64,
        sent: u64,
        late: u64,
        /// A run that sends, one that looks once, one that lingers.
        costs: [u64; 3],
        /// Between two calls.
        pause: u64,
        /// Each sleep ends so late.
        wakes: u64,
        longest_call: u64,
        busy: u64,
        /// Of that, until frames were due.
        waited: u64,
        slept: u64,
    }

    impl Machine {
        fn new(gap: u64) -> Machine {
            Machine {
                now: 1_000,
                gap,
                sent: 0,
                late: 0,
                costs: [50, 80, 2_000],
                pause: 60_000,
                wakes: 8_000,
                longest_call: 0,
                busy: 0,
                waited: 0,
                slept: 0,
            }
        }

        fn due(&self) -> u64 {
            self.sent * self.gap
        }

        fn call(&mut self, repeat: u32, until: u64, stay: u64) {
            for _ in 0..repeat {
                let (at, due) = (self.now, self.due());
                let lingers = due < until && due.saturating_sub(at) < stay;
                if self.gap > 0 && due > at && !(lingers && due - at < self.costs[2]) {
                    let run = if lingers { self.costs[2] } else { self.costs[1] };
                    self.waited += run;
                    self.now += run;
                    continue;
                }
                self.waited += due.saturating_sub(self.now);
                self.now = self.now.max(due) + self.costs[0];
                self.late = self.late.max(self.now - due);
                self.sent += 1;
            }
        }

        fn run(&mut self, calls: &mut Calls, until: u64) {
            while self.now < until {
                let due = (self.gap > 0).then(|| self.due());
                match calls.next(self.now, due) {
                    step @ Step::Call { repeat, until, stay } => {
                        let (began, before, waited) = (self.now, self.sent, self.waited);
                        let first = self.due();
                        self.call(repeat, until, stay);
                        let next = (self.gap > 0).then(|| self.due());
                        let (ended, sent) = (self.now, self.sent - before);
                        let waited = self.waited - waited;
                        calls.called(step, &Called { began, ended, due: first, next, sent, waited });
                        self.longest_call = self.longest_call.max(self.now - began);
                        self.now += self.pause;
                        self.busy += self.now - began;
                    }
                    Step::Sleep(until) => {
                        let began = self.now;
                        self.now = self.now.max(until) + self.wakes;
                        self.slept += self.now - began;
                        calls.slept(began, until, self.now);
                    }
                }
            }
        }
    }

    #[test]
    fn calls_settle_at_their_length_at_top_speed_and_paced() {
        for gap in [0, 300, 1_000, 10_000, 200_000, 5_000_000] {
            let mut machine = Machine::new(gap);
            let mut calls = Calls::new(64, None, false);
            machine.run(&mut calls, 500_000_000);
            machine.longest_call = 0;
            let begun = machine.now;
            let before = machine.busy;
            machine.run(&mut calls, begun + 1_000_000_000);
            assert!(machine.longest_call <= 30_000_000, "{gap}: {}", machine.longest_call);
            assert!(machine.busy - before >= 1_000_000_000, "{gap}: it never sleeps");
            assert_eq!(machine.slept, 0);
        }
    }

    #[test]
    fn a_call_is_bounded_also_when_frames_become_rare_all_at_once() {
        // 50 ns a run for a while: very many runs a call.
        let mut machine = Machine::new(0);
        let mut calls = Calls::new(1, None, false);
        machine.run(&mut calls, 300_000_000);
        (machine.gap, machine.sent) = (10_000_000, machine.now / 10_000_000 + 1);
        (machine.longest_call, machine.late) = (0, 0);
        machine.run(&mut calls, 800_000_000);
        assert!(machine.longest_call <= 80_000_000, "{}", machine.longest_call);
        assert!(machine.late <= 1_000_000, "{}", machine.late);
    }

    #[test]
    fn it_sleeps_in_gaps_that_are_worth_it_and_is_in_time() {
        // 5,000 frames/s on a machine that wakes threads after 5 us, and begins a call in 4.
        let mut machine = Machine::new(200_000);
        machine.pause = 4_000;
        machine.wakes = 5_000;
        let (_, margin) = margin(&mut vec![5_000; 100]).expect("enough");
        let mut calls = Calls::new(1, Some(margin), false);
        machine.run(&mut calls, 200_000_000);
        (machine.late, machine.busy) = (0, 0);
        machine.run(&mut calls, 1_200_000_000);
        assert!(machine.busy < 100_000_000, "a tenth of a core: {}", machine.busy);
        assert!(machine.late < 6_000, "{}", machine.late);
    }

    #[test]
    fn it_spins_where_the_machine_wakes_too_late() {
        let (_, margin) = margin(&mut vec![400_000; 100]).expect("enough");
        let mut machine = Machine::new(200_000);
        let mut calls = Calls::new(1, Some(margin), false);
        machine.run(&mut calls, 500_000_000);
        assert_eq!(machine.slept, 0);
        assert!(margin_of_few().is_none());
    }

    fn margin_of_few() -> Option<(u64, u64)> {
        margin(&mut [1; 10])
    }

    #[test]
    fn a_real_time_thread_rests_more_than_linux_takes_away() {
        for (gap, wakes) in [(0, 5_000), (0, 120_000), (1_000, 5_000), (100_000, 3_000_000)] {
            let mut machine = Machine::new(gap);
            machine.wakes = wakes;
            let mut calls = Calls::new(64, None, true);
            machine.run(&mut calls, 100_000_000);
            (machine.slept, machine.busy, machine.longest_call) = (0, 0, 0);
            machine.run(&mut calls, 2_100_000_000);
            let share = machine.slept as f64 / (machine.slept + machine.busy) as f64;
            assert!(share > 0.07, "{gap}, {wakes}: rests {share}");
            assert!(machine.longest_call < 30_000_000, "{gap}, {wakes}: {}", machine.longest_call);
        }
    }

    #[test]
    fn one_that_goes_before_others_leaves_them_its_core_in_gaps_that_it_spun_through_before() {
        // 2,500 frames/s; among the others it was woken 900 us late, before them 60.
        let mut machine = Machine::new(400_000);
        machine.wakes = 900_000;
        machine.pause = 4_000;
        let (_, among) = margin(&mut vec![900_000; 100]).expect("enough");
        let mut calls = Calls::new(1, Some(among), false);
        machine.run(&mut calls, 500_000_000);
        assert_eq!(machine.slept, 0);
        calls.goes_first_now(Some(400_000));
        machine.wakes = 60_000;
        machine.run(&mut calls, 600_000_000);
        (machine.late, machine.busy, machine.slept) = (0, 0, 0);
        machine.run(&mut calls, 1_600_000_000);
        assert!(machine.busy < 400_000_000, "of a second: {}", machine.busy);
        assert!(machine.late < 6_000, "{}", machine.late);
        // Where no sleep is worth it, it rests for a sixth of the time.
        calls.goes_first_now(None);
        (machine.busy, machine.slept) = (0, 0);
        machine.run(&mut calls, 2_600_000_000);
        let share = machine.slept as f64 / (machine.slept + machine.busy) as f64;
        assert!(share > 0.15, "it rests {share}");
    }

    #[test]
    fn one_that_goes_before_others_leaves_them_half_of_its_core_however_late_it_is_woken() {
        // Each of the others is in the kernel for long when it should be woken.
        for wakes in [60_000, 300_000, 900_000] {
            let mut machine = Machine::new(400_000);
            (machine.wakes, machine.pause) = (wakes, 4_000);
            let (_, before) = margin(&mut vec![wakes; 100]).expect("enough");
            let mut calls = Calls::new(1, Some(before), false);
            calls.goes_first_now(Some(400_000));
            machine.run(&mut calls, 500_000_000);
            (machine.busy, machine.slept) = (0, 0);
            machine.run(&mut calls, 1_500_000_000);
            assert!(machine.busy < 500_000_000, "{wakes}: busy {} of a second", machine.busy);
        }
    }

    #[test]
    fn one_that_needs_its_core_to_send_rests_no_more_than_it_must() {
        let mut machine = Machine::new(60);
        let mut calls = Calls::new(64, None, false);
        calls.goes_first_now(None);
        machine.run(&mut calls, 500_000_000);
        (machine.busy, machine.slept) = (0, 0);
        machine.run(&mut calls, 1_500_000_000);
        let share = machine.slept as f64 / (machine.slept + machine.busy) as f64;
        assert!((0.07..0.12).contains(&share), "it rests {share}");
    }

    #[test]
    fn a_sleep_that_ends_too_late_widens_the_margin() {
        let mut calls = Calls::new(1, Some(20_000), false);
        calls.slept(0, 100_000, 115_000);
        assert_eq!(calls.margin(), Some(20_000));
        calls.slept(0, 100_000, 125_000);
        assert_eq!(calls.margin(), Some(30_000));
    }
}
