//! The engine: one call of BPF_PROG_TEST_RUN after the other, watched from another thread through shared words.
//!
//! The program inside knows when to begin, when each frame leaves and when to end; where it stands is kept in the shared
//! words from call to call. Calls are short, because on a preemptible kernel whoever waits for RCU waits for their end
//! (`crate::calls`), and cheap, because the program is attached to a spare device (`crate::spare`).

use crate::XdpError;
use crate::calls::{self, Called, Calls, Step};
use crate::compile::{Compiled, Options, Pages, compile};
use crate::layout::{self, lane};
use crate::spare::{self, Known};
use crate::sys::{interrupt, prepare_interrupts, yield_priority};
use crate::way::Way;
use bpf::Run;
use engine::clock::Clock;
use engine::{
    Control, Counts, Course, Ended, Engine, GRACE_NS, Had, Job, LATE_NS, Pacing, Priority, Punctuality,
    Reach, Sent, Waits, clock,
};
use histogram::{BUCKETS, Histogram};
use port::tx::{TxCounters, TxError};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use traffic::Program;

/// How often the shared words are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// How often the interface is.
const LOOK_AT_LINK: Duration = Duration::from_millis(100);
/// A run that was told to stop and does not is interrupted after so long.
const PATIENCE: Duration = Duration::from_millis(5);

/// A core that was taken away for so long was wanted by others, and not for an interrupt.
const TAKEN_NS: u64 = 300_000;

/// At more frames a second no gap is long enough to sleep in.
const SLEEPS_BELOW: f64 = 25_000.0;
/// Sleeps by which it is found out how late this machine wakes a thread, and the time they may take.
const TRIES: usize = 100;
const TRY_FOR: Duration = Duration::from_millis(60);

/// A program, loaded, and the way it sends through.
#[derive(Debug)]
pub struct Live {
    way: Arc<Way>,
    /// `None`: this core has no part in the program.
    compiled: Option<Arc<Compiled>>,
    /// The compiled one, known to the kernel before any core begins.
    _known: Option<Known>,
    program: Program,
}

impl Live {
    /// Compiles and loads `program`, which is this core's part. `pages` tells what happens to them behind the
    /// interface; signatures carry times of the clock `stamps`, at top speed perhaps several frames the same (`together`).
    ///
    /// # Errors
    /// As [`compile()`](crate::compile::compile).
    pub fn open(
        way: &Arc<Way>,
        program: &Program,
        pages: Pages,
        pacing: Pacing,
        (stamps, together): (Clock, bool),
    ) -> Result<Live, XdpError> {
        prepare_interrupts().map_err(|error| XdpError::System {
            what: "installing a signal handler",
            error: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        let options = Options { exit: way.exit, pages, pacing, stamps, together };
        let empty = program.lanes.is_empty();
        let compiled = if empty { None } else { Some(Arc::new(compile(program, &options)?)) };
        let _known = compiled.as_ref().map(|compiled| spare::attach(&compiled.program)).transpose()?;
        Ok(Live { way: Arc::clone(way), compiled, _known, program: program.clone() })
    }
}

impl Engine for Live {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn counts(&self) -> Counts {
        Counts::HandedOver
    }

    /// Times are frozen into the program, but its start can be put off.
    fn reach(&self) -> Reach {
        Reach::Pause
    }

    fn run(&mut self, job: &mut Job, control: &Control) -> Sent {
        let Some(compiled) = self.compiled.clone() else {
            let start = control.gate.pass(&control.stop);
            control.started.store(start, Relaxed);
            return nothing(start, Ended::Done);
        };
        // The thread that sends has the one below (`yield_priority`).
        let had = control.priority.take();
        // A lane alone ends with its frames, as the run does.
        let own = match &self.program.lanes[..] {
            [only] => only.frames,
            _ => None,
        };
        let count = job.count.unwrap_or(u64::MAX).min(own.unwrap_or(u64::MAX));
        let duration = job.duration.map_or(u64::MAX, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        compiled.state.store(layout::LEFT as usize, count);
        compiled.state.store(layout::DURATION as usize, duration);
        let worker = {
            let (spin, priority) = (job.pacing.spin, control.priority);
            let (way, compiled, thread) =
                (Arc::clone(&self.way), Arc::clone(&compiled), Arc::clone(&control.thread));
            std::thread::Builder::new().name("live".to_owned()).spawn(move || {
                thread.store(clock::thread_number(), Relaxed);
                work(&way, &compiled, spin, priority, had)
            })
        };
        let worker = match worker {
            Ok(worker) => worker,
            Err(source) => {
                return nothing(clock::now(), Ended::Fault(self.fault("starting a thread", source)));
            }
        };
        step_aside();
        let (start, fault) = self.watch(&compiled, &worker, control);
        // Whatever ended the run, the call ends with it.
        compiled.state.store(layout::STOP as usize, 1);
        let (since, stopped_ns) = (Instant::now(), clock::now());
        while !worker.is_finished() {
            if compiled.state.load(layout::DONE as usize) != 0 || since.elapsed() > PATIENCE {
                interrupt(&worker);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let worked = worker.join().unwrap_or_else(|_| Worked::nothing(Err(Errno::FAULT)));
        let Worked { result, cpu_ns, waits, had, taken, others_ns } = worked;
        let ended = match (fault, result) {
            (Some(fault), _) => Ended::Fault(fault),
            (None, Err(error)) => Ended::Fault(self.fault("running live frames", error.into())),
            (None, Ok(())) => Ended::Done,
        };
        let mut sent = self.sent(&compiled, control, (start, stopped_ns), duration, cpu_ns, ended);
        if let Some(kept) = &mut sent.punctuality {
            (kept.waits, kept.had, kept.taken, kept.others_ns) = (waits, had, taken, others_ns);
        }
        sent
    }
}

/// What became of the sending thread.
struct Worked {
    result: Result<(), Errno>,
    cpu_ns: u64,
    /// What it can say about its sleep.
    waits: Option<Waits>,
    /// What it had of priority at its end, and how often its core was taken away.
    had: Had,
    taken: u64,
    /// Time in which others had its CPU.
    others_ns: Option<u64>,
}

impl Worked {
    fn nothing(result: Result<(), Errno>) -> Worked {
        Worked { result, cpu_ns: 0, waits: None, had: Had::Ordinary, taken: 0, others_ns: None }
    }
}

/// The sending thread's part: call after call until the program says that it is done.
fn work(way: &Way, compiled: &Compiled, spin: bool, priority: Priority, had: Had) -> Worked {
    let before = clock::thread_cpu();
    let rests = yield_priority();
    // Below the real-time priorities there is none of ours.
    let had = if had == Had::RealTime && !rests { Had::Ordinary } else { had };
    let mut worked = Worked { had, ..Worked::nothing(Ok(())) };
    worked.result =
        way.enter().and_then(|()| call_after_call(way, compiled, (spin, rests, priority), &mut worked));
    worked.cpu_ns = clock::thread_cpu() - before;
    worked
}

fn call_after_call(
    way: &Way,
    compiled: &Compiled,
    (spin, rests, priority): (bool, bool, Priority),
    worked: &mut Worked,
) -> Result<(), Errno> {
    let word = |at: u32| compiled.state.load(at as usize);
    let (live, ingress) = (Some(compiled.batch), way.ingress());
    let run =
        |repeat: u32| match compiled.program.run(Run { repeat, live, ingress, ..Run::on(&compiled.frame) }) {
            Ok(_) => Ok(true),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        };
    let worth_sleeping = !spin && compiled.paced && compiled.rate.is_none_or(|rate| rate < SLEEPS_BELOW);
    let (tried, goes_first) = if worth_sleeping { wake_ups(priority, worked) } else { (None, false) };
    let mut calls = Calls::new(compiled.batch, tried.map(|(_, margin)| margin), rests);
    // Of captures' times nobody knows how far they are apart.
    let gap = worth_sleeping.then(|| compiled.rate.map_or(u64::MAX, |rate| (1e9 / rate.max(1.0)) as u64));
    if goes_first {
        calls.goes_first_now(gap);
    }
    let mut kept = Waits { wake_up_p99_ns: tried.map(|(p99, _)| p99), slept: 0 };
    let (mut begun, mut stalls) = (false, 0);
    // What others had of the CPU, before the start and when the thread was held up last.
    let (mut at_start, mut waited) = (None, None);
    while word(layout::DONE) == 0 && word(layout::STOP) == 0 {
        let (start, now) = (word(layout::START), clock::now());
        if start == 0 {
            if begun {
                // A pause.
                std::thread::sleep(LOOK);
            } else {
                // It is to be running when its start comes. Short, so that nobody waits for it long.
                run(calls.before_the_start())?;
                // Each call has a page pool, with one of the kernel's 65,534 numbers for it, which is free again when RCU's callbacks have
                // run: where real-time tasks have all cores, they do not, and a second of short calls takes all numbers (ENOSPC).
                if calls.rests() {
                    clock::sleep_until(clock::now() + calls::REST_NS);
                }
            }
            continue;
        }
        if !begun {
            begun = true;
            at_start = clock::thread_waited();
            waited = at_start;
        }
        // The schedule's times count from here.
        let start = start + word(layout::PUT_OFF);
        // What is never due ends the run at once.
        let left = word(layout::LEFT);
        let due = compiled.paced.then(|| match next_due(compiled) {
            due if due >= word(layout::DURATION) || left == 0 => now,
            due => start.saturating_add(due),
        });
        let step = calls.next(now, due);
        match step {
            Step::Sleep(until) => {
                clock::sleep_until(until);
                kept.slept += u64::from(due.is_some_and(|due| due > until));
                calls.slept(now, until, clock::now());
            }
            Step::Call { repeat, until, stay } => {
                compiled.state.store(layout::LINGER as usize, until.saturating_sub(start));
                compiled.state.store(layout::STAY as usize, stay);
                let lingered = word(layout::LINGERED);
                let whole = run(repeat)?;
                let ended = clock::now();
                // It may have been put off once more meanwhile.
                let start = word(layout::START) + word(layout::PUT_OFF);
                let next = compiled.paced.then(|| start.saturating_add(next_due(compiled)));
                let sent = left.saturating_sub(word(layout::LEFT));
                if compiled.paced && word(layout::STALLS) != stalls {
                    stalls = word(layout::STALLS);
                    if priority == Priority::AsNeeded && word(layout::LONGEST_STALL) > TAKEN_NS {
                        let (now, before) = (clock::thread_waited(), waited);
                        waited = now;
                        let risen = now.zip(before).map(|(now, before)| now.saturating_sub(before));
                        let others = risen.is_none_or(|risen| risen > LATE_NS);
                        worked.taken += u64::from(others);
                        if others && let Some(had) = priority.needed_there() {
                            worked.had = had;
                            if had == Had::RealTime {
                                calls.goes_first_now(gap);
                            }
                        }
                    }
                }
                if whole {
                    let waited = word(layout::LINGERED).saturating_sub(lingered);
                    let due = due.unwrap_or(now);
                    calls.called(step, &Called { began: now, ended, due, next, sent, waited });
                }
            }
        }
    }
    worked.waits = compiled.paced.then_some(kept);
    worked.others_ns = at_start.zip(clock::thread_waited()).map(|(before, now)| now.saturating_sub(before));
    Ok(())
}

/// How late this machine wakes the calling thread, and how long before a frame its sleeps have to end for that; and whether it has become a
/// real-time task, because others had its core while it was tried: how late it was woken among those is no property of the machine.
fn wake_ups(priority: Priority, worked: &mut Worked) -> (Option<(u64, u64)>, bool) {
    let before = clock::thread_waited();
    let mut late = clock::wake_ups(TRIES, TRY_FOR);
    let others = before.zip(clock::thread_waited()).is_some_and(|(before, now)| now - before > TAKEN_NS);
    let mut goes_first = false;
    if others && priority == Priority::AsNeeded && late.iter().any(|late| *late > TAKEN_NS) {
        worked.taken += 1;
        if let Some(had) = priority.needed_there() {
            worked.had = had;
            goes_first = had == Had::RealTime;
            late = clock::wake_ups(TRIES, TRY_FOR);
        }
    }
    (calls::margin(&mut late), goes_first)
}

/// When the next frame is due, from the start.
fn next_due(compiled: &Compiled) -> u64 {
    let lanes = (0..compiled.lanes as u32).map(|l| layout::LANES + l * layout::LANE + lane::DUE);
    lanes.map(|at| compiled.state.load(at as usize)).min().unwrap_or(u64::MAX)
}

/// Lets the calling thread run wherever the process may: its core is the sending thread's now.
fn step_aside() {
    // The process's first thread was not pinned to a core.
    let process = rustix::process::getpid();
    if let Ok(all) = rustix::thread::sched_getaffinity(Some(process)) {
        let _ = rustix::thread::sched_setaffinity(None, &all);
    }
}

fn nothing(started_ns: u64, ended: Ended) -> Sent {
    Sent {
        counters: TxCounters::default(),
        ports: Vec::new(),
        started_ns,
        duration_ns: 0,
        taken: 0,
        scheduled_ns: None,
        exhausted: true,
        looked_ns: 0,
        overdue: None,
        punctuality: None,
        departures: None,
        cpu_ns: 0,
        ended,
    }
}

impl Live {
    fn fault(&self, what: &'static str, source: io::Error) -> TxError {
        let interface = self.way.target.name.clone();
        match Errno::from_io_error(&source) {
            Some(Errno::NODEV) => TxError::Gone(interface),
            Some(Errno::NETDOWN) => TxError::Down(interface),
            Some(Errno::PERM | Errno::ACCESS) => TxError::Permission(interface),
            _ => TxError::Io { what, interface, source },
        }
    }

    /// Starts the run and looks on until it has ended or must end. The start, and a fault of the interface.
    fn watch<T>(
        &self,
        compiled: &Compiled,
        worker: &JoinHandle<T>,
        control: &Control,
    ) -> (u64, Option<TxError>) {
        let word = |at: u32| compiled.state.load(at as usize);
        while word(layout::ARRIVED) == 0 && !control.stopped() && !worker.is_finished() {
            std::thread::sleep(Duration::from_micros(100));
        }
        let start = control.gate.pass(&control.stop);
        control.started.store(start, Relaxed);
        // Too late for a given start, or ended before it: nothing may leave.
        if control.stopped() {
            return (start, None);
        }
        compiled.state.store(layout::START as usize, start);
        let mut looked = Instant::now();
        let mut course = Course::default();
        while word(layout::DONE) == 0 && !control.stopped() && !worker.is_finished() {
            if control.throttle.version() != course.version {
                course = control.throttle.course();
                let paused = course.paused_ns(clock::now().saturating_sub(start));
                let begun = if course.paused { 0 } else { start + paused };
                compiled.state.store(layout::START as usize, begun);
            }
            self.publish(compiled, control);
            if looked.elapsed() >= LOOK_AT_LINK {
                looked = Instant::now();
                let name = || self.way.target.name.clone();
                match self.way.is_up() {
                    Some(true) => {}
                    Some(false) => return (start, Some(TxError::Down(name()))),
                    None => return (start, Some(TxError::Gone(name()))),
                }
            }
            std::thread::sleep(LOOK);
        }
        (start, None)
    }

    fn publish(&self, compiled: &Compiled, control: &Control) {
        let counters = counters(compiled);
        control.frames.store(counters.frames, Relaxed);
        control.bytes.store(counters.bytes, Relaxed);
        control.late.store(compiled.state.load(layout::LATE as usize), Relaxed);
        if compiled.paced {
            control.lateness.answer(|| punctuality(compiled).lateness);
        }
    }

    /// What the run did, from its words.
    fn sent(
        &self,
        compiled: &Compiled,
        control: &Control,
        (start, stopped_ns): (u64, u64),
        duration: u64,
        cpu_ns: u64,
        ended: Ended,
    ) -> Sent {
        let word = |at: u32| compiled.state.load(at as usize);
        self.publish(compiled, control);
        let counters = counters(compiled);
        let lanes = (0..compiled.lanes as u32).map(|l| layout::LANES + l * layout::LANE);
        let due = lanes.clone().map(|at| word(at + lane::DUE)).min().unwrap_or(u64::MAX);
        let over = due == u64::MAX;
        let next = if over { lanes.map(|at| word(at + lane::END)).max().unwrap_or(0) } else { due };
        let exhausted = word(layout::LEFT) == 0 || over;
        let put_off = word(layout::PUT_OFF);
        // Nothing leaves later than the grace after the end; that its thread noticed that so late is told as a stall.
        let last = duration.saturating_add(GRACE_NS);
        let mut active = (word(layout::NOW) + put_off).min(last);
        if word(layout::DONE) == 0 {
            // It may have slept since the program looked at the clock last.
            let lasted = stopped_ns.saturating_sub(start);
            let paused = control.throttle.course().paused_ns(lasted);
            active = active.max(lasted.saturating_sub(paused)).min(duration);
        }
        let ended = match ended {
            Ended::Done if control.stopped() && !exhausted && active < duration => Ended::Stopped,
            ended => ended,
        };
        // The program's time stands still in a pause.
        let paused = control.throttle.course().paused_ns(clock::now().saturating_sub(start));
        let reached = next.saturating_add(put_off).min(duration);
        let (scheduled, elapsed) = (reached.saturating_add(paused), active + paused);
        let mut kept = compiled.paced.then(|| punctuality(compiled));
        // The program's clock when it ended, and before: it ended while it was held up.
        let late = word(layout::NOW).saturating_sub(due.max(word(layout::PACED_AT)));
        if let Some(kept) = kept.as_mut().filter(|_| !exhausted && due < duration && late > LATE_NS) {
            kept.stalls += 1;
            kept.longest_stall_ns = kept.longest_stall_ns.max(late);
        }
        Sent {
            counters,
            ports: Vec::new(),
            started_ns: start,
            duration_ns: match ended {
                Ended::Done if compiled.paced => elapsed.max(scheduled),
                _ => elapsed,
            },
            taken: counters.frames,
            scheduled_ns: compiled.paced.then_some(scheduled),
            exhausted,
            looked_ns: elapsed,
            overdue: None,
            punctuality: kept,
            departures: None,
            cpu_ns,
            ended,
        }
    }
}

/// What the program handed to the driver.
fn counters(compiled: &Compiled) -> TxCounters {
    let word = |at: u32| compiled.state.load(at as usize);
    // At top speed a batch is counted when it begins.
    let frames = word(layout::SENT).saturating_sub(word(layout::QUOTA));
    let bytes = compiled.length.map_or_else(|| word(layout::BYTES), |length| frames * u64::from(length));
    TxCounters { frames, bytes, ..TxCounters::default() }
}

fn punctuality(compiled: &Compiled) -> Punctuality {
    let word = |at: u32| compiled.state.load(at as usize);
    let mut counts = [0u64; BUCKETS];
    for (i, count) in counts.iter_mut().enumerate() {
        *count = word(layout::HISTOGRAM + 8 * i as u32);
    }
    // The least is known to the width of its bucket.
    let least =
        Histogram::from_counts(&counts, 0, 0, u64::MAX).buckets().next().map_or(0, |bucket| bucket.from);
    let sum = u128::from(word(layout::LATE_SUM_ROUNDS)) << 64 | u128::from(word(layout::LATE_SUM));
    Punctuality {
        lateness: Histogram::from_counts(&counts, sum, least, word(layout::LATE_MAX)),
        late: word(layout::LATE),
        first_late_ns: word(layout::FIRST_LATE).checked_sub(1),
        last_late_ns: word(layout::LAST_LATE),
        stalls: word(layout::STALLS),
        longest_stall_ns: word(layout::LONGEST_STALL),
        catch_up_frames: word(layout::CATCH_UP),
        most_in_1ms: None,
        had: Had::Ordinary,
        taken: 0,
        spun_ns: word(layout::LINGERED),
        others_ns: None,
        waits: None,
        put_off_ns: word(layout::PUT_OFF),
        starved_ns: 0,
    }
}

/// What happens to pages behind an interface: a NIC only reads them, and so does our own meter at a veth's peer.
pub fn pages(is_virtual: bool, our_meter_at_the_peer: bool) -> Pages {
    if is_virtual && !our_meter_at_the_peer { Pages::Touched } else { Pages::Kept }
}
