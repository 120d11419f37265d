//! Runs side by side that wait for each other, because they share links: a driver may take a link down when a program is
//! attached or detached, and with it the frames of all that use it.
//!
//! ```text
//!   each run:  attach, open --> Attached --> wait for carriers --> Ready --> send, measure --> Measured --> detach
//!                                  (nobody goes on from here before all have come)
//! ```
//!
//! Nobody is waited for who has ended, however that was; and nobody waits when the run is to be stopped.

use super::Setup;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where runs meet, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// All is attached and open that will be.
    Attached,
    /// The carriers are there.
    Ready,
    /// All that was on its way has been counted.
    Measured,
    /// It waits for nobody any more, and nobody for it.
    Left,
}

/// How often is looked whether to stop.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Inside {
    /// How far each has come; `None`: it has not come to the first.
    reached: Mutex<Vec<Option<Stage>>>,
    changed: Condvar,
}

impl Inside {
    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Stage>>> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of several runs. Dropping it releases the others.
#[derive(Debug)]
pub struct Member {
    inside: Arc<Inside>,
    number: usize,
    /// It waits for nobody any more from here on, and nobody for it.
    last: Stage,
}

impl Member {
    /// As many members as there are runs, for each one. They meet at every stage, because they last equally long.
    pub fn of(runs: usize) -> Vec<Member> {
        Member::until(Stage::Measured, runs)
    }

    /// Jobs that begin together, and of which each ends when it is over.
    pub fn beginning(jobs: usize) -> Vec<Member> {
        Member::until(Stage::Ready, jobs)
    }

    fn until(last: Stage, runs: usize) -> Vec<Member> {
        let inside = Arc::new(Inside { reached: Mutex::new(vec![None; runs]), changed: Condvar::new() });
        (0..runs).map(|number| Member { inside: Arc::clone(&inside), number, last }).collect()
    }

    /// Waits until all others have come as far, have left, or `stop` is set. A stage may be met again.
    pub(crate) fn meet(&self, stage: Stage, stop: &AtomicBool) {
        if stage > self.last {
            return;
        }
        let mut reached = self.come(stage);
        while !stop.load(Relaxed) && reached.iter().any(|other| *other < Some(stage)) {
            let waited = self.inside.changed.wait_timeout(reached, LOOK);
            reached = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The others need not wait for it, and it does not wait for them.
    pub(crate) fn is_ready(&self) {
        drop(self.come(Stage::Ready));
    }

    fn come(&self, stage: Stage) -> MutexGuard<'_, Vec<Option<Stage>>> {
        let mut reached = self.inside.lock();
        if let Some(own) = reached.get_mut(self.number) {
            *own = (*own).max(Some(stage));
        }
        self.inside.changed.notify_all();
        reached
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        drop(self.come(Stage::Left));
    }
}

impl Setup {
    /// Waits for the runs beside this one.
    pub(super) fn meet(&self, stage: Stage) {
        if let Some(member) = &self.session.together {
            member.meet(stage, &self.session.stop);
        }
    }

    /// Whether jobs of the same file run beside this one, whose frames may come where its own do.
    pub(super) fn beside_jobs(&self) -> bool {
        self.session.together.as_ref().is_some_and(|member| member.last == Stage::Ready)
    }

    /// What ends waiting for the sake of the result.
    pub(super) fn hurry(&self) -> Option<&AtomicBool> {
        self.discarded.then_some(&*self.session.stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use crate::run::{Opened, run};

    use engine::{Control, Engine, Job, Sent, Userspace};
    use lab::{Host, Lab, Located};
    use port::packet::Sendmmsg;
    use report::{Choice, Report};
    use std::sync::atomic::AtomicUsize;
    use std::time::Instant;
    use traffic::{Program, Schedule, Stream};

    #[test]
    fn nobody_goes_on_before_all_have_come() {
        const RUNS: usize = 4;
        let (stop, come) = (AtomicBool::new(false), [const { AtomicUsize::new(0) }; 3]);
        std::thread::scope(|scope| {
            for (number, member) in Member::of(RUNS).into_iter().enumerate() {
                let (stop, come) = (&stop, &come);
                scope.spawn(move || {
                    for (stage, come) in
                        [Stage::Attached, Stage::Ready, Stage::Measured].into_iter().zip(come)
                    {
                        std::thread::sleep(Duration::from_millis(3 * number as u64));
                        come.fetch_add(1, Relaxed);
                        member.meet(stage, stop);
                        assert_eq!(come.load(Relaxed), RUNS, "{stage:?}");
                        // Again: an engine that is replaced attaches once more.
                        member.meet(stage, stop);
                    }
                });
            }
        });
    }

    #[test]
    fn whoever_fails_or_panics_releases_the_others() {
        let stop = AtomicBool::new(false);
        let [fails, panics, waits] = <[Member; 3]>::try_from(Member::of(3)).expect("three");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| waits.meet(Stage::Measured, &stop));
            drop(fails);
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished(), "one has not come yet");
            let panicked = scope.spawn(move || {
                let _panics = panics;
                std::panic::resume_unwind(Box::new("as a defect would"));
            });
            assert!(panicked.join().is_err());
            waiting.join().expect("released");
        });
    }

    /// A short job's figures are of its own time: it does not go on counting until a long one is over.
    #[test]
    fn jobs_that_begin_together_end_by_themselves() {
        let stop = AtomicBool::new(false);
        let [short, long] = <[Member; 2]>::try_from(Member::beginning(2)).expect("two");
        std::thread::scope(|scope| {
            scope.spawn(|| [Stage::Attached, Stage::Ready].iter().for_each(|stage| long.meet(*stage, &stop)));
            for stage in [Stage::Attached, Stage::Ready, Stage::Measured] {
                short.meet(stage, &stop);
            }
        });
    }

    #[test]
    fn an_interrupt_ends_the_waiting() {
        let stop = AtomicBool::new(false);
        let [alone, _other] = <[Member; 2]>::try_from(Member::of(2)).expect("two");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| alone.meet(Stage::Attached, &stop));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished(), "the other has not come yet");
            stop.store(true, Relaxed);
            waiting.join().expect("ended");
        });
    }

    type Log = Arc<Mutex<Vec<String>>>;

    fn note(log: &Log, what: String) {
        log.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// An engine that says when it sends and when it is closed, and whether both interfaces have a meter's program then.
    struct Told {
        inner: Userspace<Sendmmsg>,
        name: &'static str,
        ends: [Place; 2],
        log: Log,
    }

    impl Told {
        fn metered(&self) -> bool {
            self.ends.iter().all(|end| {
                let look = || port::interface::Interface::by_name(&end.interface.name);
                end.run_in(look).is_ok_and(|found| found.is_ok_and(|found| found.xdp.is_some()))
            })
        }
    }

    impl Engine for Told {
        fn name(&self) -> &'static str {
            "packet"
        }

        fn run(&mut self, job: &mut Job, control: &Control) -> Sent {
            note(&self.log, format!("{} begins, metered: {}", self.name, self.metered()));
            let sent = self.inner.run(job, control);
            note(&self.log, format!("{} ends, metered: {}", self.name, self.metered()));
            sent
        }
    }

    impl Drop for Told {
        fn drop(&mut self) {
            note(&self.log, format!("{} closes", self.name));
        }
    }

    fn place(host: &Host) -> Place {
        let namespace = Some(host.namespace.try_clone().expect("a handle"));
        let name = host.interface.to_owned();
        Place::at(name.clone(), Located { namespace, name }).expect("a place")
    }

    /// A way of 50 frames, of which one is sent in each of so many milliseconds, and that takes so long to open.
    fn way(
        lab: &Lab,
        name: &'static str,
        (every_ms, opens_ms): (u64, u64),
        log: &Log,
        member: Member,
    ) -> Report {
        let (from, to) =
            if name == "there" { (&lab.sender, &lab.receiver) } else { (&lab.receiver, &lab.sender) };
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&to.mac);
        frame[6..12].copy_from_slice(&from.mac);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let program = Program::single(Stream::of("s", &frame))
            .with_schedule(Schedule::Frames { frames: 1, per_ns: every_ms * 1_000_000 });
        let (ends, opens_log) = ([place(from), place(to)], Arc::clone(log));
        let ends = Mutex::new(Some(ends));
        let open = move |wanted: &crate::run::Wanted<'_>| {
            let place = wanted.places.first().expect("a place");
            std::thread::sleep(Duration::from_millis(opens_ms));
            note(&opens_log, format!("{name} opens"));
            let inner = Userspace::new("packet", place.run_in(|| Sendmmsg::open(&place.target(), 60))??);
            let ends = ends.lock().unwrap_or_else(PoisonError::into_inner).take().expect("once");
            let told = Told { inner, name, ends, log: Arc::clone(&opens_log) };
            let choice = Choice { name: "packet".to_owned(), ..Choice::default() };
            Ok(Opened { workers: vec![Box::new(told)], choice, replaceable: false })
        };
        run(Setup {
            tx: vec![place(from)],
            rx: vec![(place(to), meter::Options::default())],
            session: crate::session::Session { together: Some(member), ..Default::default() },
            ..bare(program, Box::new(open))
        })
        .expect("a result")
    }

    /// A trial's run of 50 frames, without ends.
    fn bare(program: Program, open: crate::run::Open) -> Setup {
        let job = Job { count: Some(50), ..Job::program(program) };
        Setup { best_effort: true, discarded: true, ..Setup::of("trial", open, job, 60) }
    }

    /// An engine that sends nothing: its queue is stuck at once, or it waits until it is stopped.
    struct Idle {
        stuck: bool,
    }

    impl Engine for Idle {
        fn name(&self) -> &'static str {
            "packet"
        }

        fn run(&mut self, _job: &mut Job, control: &Control) -> Sent {
            if self.stuck {
                let stuck = port::tx::TxError::Stuck("tx0".to_owned(), 1_000);
                return Sent { ended: engine::Ended::Fault(stuck), ..Sent::idle() };
            }
            while !control.stopped() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Sent { ended: engine::Ended::Stopped, ..Sent::idle() }
        }
    }

    /// What is thrown away is not waited for, and of that a fault knows nothing: frames under way, and the ways beside, still
    /// count.
    #[test]
    fn a_workers_fault_ends_the_workers_beside_it_and_is_no_interrupt() {
        for interrupted in [false, true] {
            let schedule = Schedule::Frames { frames: 1, per_ns: 1_000_000 };
            let program = Program::single(Stream::of("s", &[0; 60])).with_schedule(schedule);
            let open = move |_: &crate::run::Wanted<'_>| {
                let workers = [!interrupted, false].map(|stuck| Box::new(Idle { stuck }) as Box<dyn Engine>);
                Ok(Opened { workers: workers.into(), choice: Choice::default(), replaceable: false })
            };
            let setup = Setup { cpus: vec![None; 2], ..bare(program, Box::new(open)) };
            let stop = Arc::clone(&setup.session.stop);
            stop.store(interrupted, Relaxed);
            // It ends, so the other was stopped.
            let report = run(setup).expect("a result");
            assert_eq!(stop.load(Relaxed), interrupted);
            let said = report.result.verdict.reasons().join("; ");
            assert_eq!(said.contains("accepted no frame"), !interrupted, "{said}");
        }
    }

    /// The way back opens long after the way there could have sent all, and sends long after that one has ended.
    #[test]
    fn ways_send_only_while_all_that_is_attached_stays() {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let log = Log::default();
        let [there, back] = <[Member; 2]>::try_from(Member::of(2)).expect("two");
        let began = Instant::now();
        std::thread::scope(|scope| {
            let there = scope.spawn(|| way(&lab, "there", (1, 0), &log, there));
            let back = scope.spawn(|| way(&lab, "back", (20, 400), &log, back));
            for report in [there.join().expect("the way there"), back.join().expect("the way back")] {
                let received = report.result.rx.as_ref().map(|rx| rx.totals.frames);
                assert!(received.is_some_and(|frames| frames >= 50), "{received:?}");
                assert!(report.result.link_events.is_empty(), "{:?}", report.result.link_events);
            }
        });
        assert!(began.elapsed() > Duration::from_millis(400));
        let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let at = |what: &str| {
            log.iter().position(|said| said == what).unwrap_or_else(|| panic!("{what}: {log:?}"))
        };
        // Both have attached and opened before either sends, and both have ended before either closes.
        let opened = at("there opens").max(at("back opens"));
        let begun = ["there begins, metered: true", "back begins, metered: true"].map(at);
        let ended = ["there ends, metered: true", "back ends, metered: true"].map(at);
        let closed = at("there closes").min(at("back closes"));
        assert!(begun.iter().all(|begun| *begun > opened), "{log:?}");
        assert!(ended.iter().all(|ended| *ended < closed), "{log:?}");
    }
}
