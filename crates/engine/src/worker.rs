//! The sending loop: takes frames that are due, hands them over, keeps the times.
//!
//! With several ports there is still one loop, one schedule and one source: each run of frames of one port goes to that
//! port's sender before the next frame is made, so that the order across all is the source's at any speed.

use crate::Pacing;
use crate::pacer::{self, Budget, Densest, Pacer};
use crate::priority::Had;
use crate::source::{Frames, Kind, ProgramSource, SourceError};
use crate::{
    Control, Course, Departures, Ended, GRACE_NS, Job, LATE_NS, MOST_OVERDUE, Overdue, Priority, Punctuality,
    READ_ON, Sent, clock,
};
use port::tx::{Tx, TxCounters, TxError};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use traffic::executor::{BATCH, Buffers};

/// Runs `job` on the calling thread over `txs`, one sender for each port; of a single one, it takes those of all. With
/// `wait` false, frames keep their times but nobody waits for them.
pub fn run<T: Tx + ?Sized>(txs: &mut [&mut T], job: &mut Job, control: &Control, wait: bool) -> Sent {
    let limits = Limits {
        count: job.count.unwrap_or(u64::MAX),
        duration: job.duration.map_or(u64::MAX, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
        pacing: job.pacing,
        wait,
    };
    match job.source.kind() {
        Kind::Program(program) => match ProgramSource::new(program, job.stamps) {
            Ok(mut frames) => send(txs, &mut frames, &limits, control),
            Err(fault) => nothing(fault),
        },
        // A call by pointer for each batch is nothing beside reading its frames.
        Kind::Frames(frames) => {
            frames.stamp_by(job.stamps);
            send(txs, frames.as_mut(), &limits, control)
        }
    }
}

/// How often a paused run looks whether it may go on.
const PAUSED_LOOK: Duration = Duration::from_millis(1);

struct Limits {
    count: u64,
    duration: u64,
    pacing: Pacing,
    wait: bool,
}

/// A run that could not begin.
fn nothing(fault: SourceError) -> Sent {
    Sent {
        counters: TxCounters::default(),
        ports: Vec::new(),
        started_ns: clock::now(),
        duration_ns: 0,
        taken: 0,
        scheduled_ns: None,
        exhausted: false,
        looked_ns: 0,
        overdue: None,
        punctuality: None,
        departures: None,
        cpu_ns: 0,
        ended: Ended::SourceFault(fault),
    }
}

fn send<T: Tx + ?Sized, F: Frames + ?Sized>(
    txs: &mut [&mut T],
    frames: &mut F,
    limits: &Limits,
    control: &Control,
) -> Sent {
    let cpu = clock::thread_cpu();
    let had = control.priority.take();
    let mut waiter = clock::Waiter::for_this_thread(limits.pacing.spin, crate::priority::is_real_time());
    let paced = frames.facts().paced;
    let start = control.gate.pass(&control.stop);
    control.thread.store(clock::thread_number(), Relaxed);
    control.started.store(start, Relaxed);
    // It is looked up once more at the end: what others had of the CPU before the start is no part of the run.
    let waited = clock::thread_waited();
    let mut run = Run {
        budget: limits.pacing.catch_up.link().filter(|_| paced && limits.wait).map(Budget::new),
        punctuality: Punctuality { had, ..Punctuality::default() },
        waited,
        ..Run::new(limits, control, start, paced)
    };
    run.bound(txs, frames);
    let mut ended = if paced && limits.wait {
        run.paced(txs, frames, &mut waiter)
    } else {
        run.unpaced(txs, frames, &mut waiter)
    };
    let looked = clock::now() - start;
    run.punctuality.spun_ns = waiter.spun_ns();
    run.punctuality.others_ns =
        waited.and_then(|before| Some(clock::thread_waited()?.saturating_sub(before)));
    run.punctuality.most_in_1ms = Some(run.densest.most());
    let bounded = ended_by(&ended, paced && limits.wait, &run, looked);
    // Only what the kernel is done with counts as sent.
    for tx in txs.iter_mut() {
        if let Err(fault) = tx.drain()
            && matches!(ended, Ended::Done | Ended::Stopped)
        {
            ended = Ended::Fault(fault);
        }
    }
    let drained = clock::now() - start;
    // Nothing leaves later than the grace after the end, and the run has lasted no longer: that its thread, which had no
    // core, noticed so late is told as a stall.
    let elapsed = drained.min(bounded.saturating_add(drained - looked));
    run.last_departures(txs);
    let counters = all(txs);
    publish(control, &counters);
    let ports = if txs.len() > 1 { txs.iter().map(|tx| tx.counters()).collect() } else { Vec::new() };
    // Of what was handed over when the run ended, some may have left while the kernel was waited for.
    let taken =
        if run.given_back.is_empty() { run.given } else { run.given.max(counters.frames + counters.failed) };
    let left_late = usize::try_from(taken - run.given).unwrap_or(usize::MAX);
    frames.give_back(run.given_back.len().saturating_sub(left_late));
    // A paced run lasts until the time of the frame that would come next: ten frames at 10 frames/s take a second.
    let next = frames.next_due().ok().flatten();
    let next = run.given_back.first().copied().or(next);
    let exhausted = next.is_none() || run.given >= limits.count;
    let course = run.course;
    // In schedule's time, whatever was put off.
    let last = course.end(limits.duration).saturating_sub(1);
    if let Some(next) = next.filter(|next| paced && limits.wait && !exhausted && *next <= last) {
        run.held_up(looked, next);
    }
    let until = match ended {
        Ended::Done => Some(last),
        _ => course.overdue_by(looked).map(|until| until.min(last)),
    };
    let reached = course.time_of(next.unwrap_or_else(|| frames.end())).saturating_add(run.put_off);
    let scheduled = reached.min(course.time_of_end(limits.duration));
    if run.gave_up {
        let busy = scheduled.saturating_add(run.punctuality.last_late_ns);
        run.punctuality.starved_ns = elapsed.saturating_sub(busy);
    }
    let duration_ns = match ended {
        Ended::Done if paced && limits.wait => elapsed.max(scheduled),
        Ended::Done if paced => scheduled,
        _ => elapsed,
    };
    let back = run.given_back.iter().filter(|due| Some(**due) <= until).count() as u64;
    let left = limits.count.saturating_sub(run.given).saturating_sub(run.given_back.len() as u64);
    let most = if until.is_some() { left.min(MOST_OVERDUE) } else { 0 };
    let deadline = Instant::now() + READ_ON;
    let overdue =
        if paced && limits.wait { frames.overdue(until.unwrap_or(0), most, deadline) } else { None };
    Sent {
        counters,
        ports,
        started_ns: start,
        duration_ns,
        taken,
        scheduled_ns: paced.then_some(scheduled),
        exhausted,
        looked_ns: looked,
        overdue: overdue.map(|seen| Overdue {
            frames: (seen.frames + back).saturating_sub(taken - run.given),
            at_least: seen.at_least || seen.frames >= MOST_OVERDUE,
        }),
        punctuality: (paced && limits.wait).then_some(run.punctuality),
        departures: run.departures,
        cpu_ns: clock::thread_cpu() - cpu,
        ended,
    }
}

/// The time by which a run that noticed its end at `looked` was over: no later than the grace after it, or than its last frames.
fn ended_by(ended: &Ended, paced: bool, run: &Run<'_>, looked: u64) -> u64 {
    match ended {
        Ended::Done if paced => {
            let end = run.course.time_of_end(run.limits.duration).saturating_add(GRACE_NS);
            looked.min(end.max(run.left))
        }
        _ => looked,
    }
}

/// What the senders counted together.
fn all<T: Tx + ?Sized>(txs: &[&mut T]) -> TxCounters {
    let mut sum = TxCounters::default();
    txs.iter().for_each(|tx| sum.add(&tx.counters()));
    sum
}

fn publish(control: &Control, counters: &port::tx::TxCounters) {
    control.frames.store(counters.frames, Relaxed);
    control.bytes.store(counters.bytes, Relaxed);
}

struct Run<'a> {
    limits: &'a Limits,
    control: &'a Control,
    start: u64,
    /// Frames have times.
    is_paced: bool,
    /// By how much all that was still to come was put off, where nothing is caught up.
    put_off: u64,
    /// How the schedule's time passes.
    course: Course,
    pacer: Pacer,
    /// What is overdue may leave as this has it, where the pacer alone would keep it longer.
    budget: Option<Budget>,
    densest: Densest,
    punctuality: Punctuality,
    /// Frames given to the sender.
    given: u64,
    /// When those were due that it still had when the run ended, and gave back.
    given_back: Vec<u64>,
    /// When it looked whether frames are due, or had waited for a time, and when it handed over the last ones; after the start.
    looked: u64,
    left: u64,
    /// For how long others had its CPU, when that was looked up.
    waited: Option<u64>,
    /// When frames really left, of senders that ask.
    departures: Option<Departures>,
    /// The run's time was over while its source was waited for.
    gave_up: bool,
}

impl<'a> Run<'a> {
    /// One that gave nothing so far.
    fn new(limits: &'a Limits, control: &'a Control, start: u64, is_paced: bool) -> Run<'a> {
        Run {
            limits,
            control,
            start,
            is_paced,
            put_off: 0,
            course: Course::default(),
            pacer: Pacer::new(limits.pacing.catch_up.times()),
            budget: None,
            densest: Densest::default(),
            punctuality: Punctuality::default(),
            given: 0,
            given_back: Vec::new(),
            looked: 0,
            left: 0,
            waited: None,
            departures: None,
            gave_up: false,
        }
    }
}

impl Run<'_> {
    /// Tells the source and the senders when the run's time is over.
    fn bound<T: Tx + ?Sized, F: Frames + ?Sized>(&self, txs: &mut [&mut T], frames: &mut F) {
        let end = self.start.saturating_add(self.course.time_of_end(self.limits.duration));
        let left = end.saturating_add(GRACE_NS).saturating_sub(clock::now());
        let timed = self.limits.wait && self.limits.duration != u64::MAX;
        if timed {
            frames.until(end);
        }
        let deadline = timed.then(|| Instant::now().checked_add(Duration::from_nanos(left))).flatten();
        for tx in txs.iter_mut() {
            tx.bound(Arc::clone(&self.control.stop), deadline);
        }
    }

    /// Follows the throttle. Returns when the run is not paused, or no longer; false when it was stopped.
    fn follow<T: Tx + ?Sized, F: Frames + ?Sized>(&mut self, txs: &mut [&mut T], frames: &mut F) -> bool {
        while !self.control.stopped() {
            if self.control.throttle.version() != self.course.version {
                self.course = self.control.throttle.course();
                self.bound(txs, frames);
            }
            if !self.course.paused {
                return true;
            }
            std::thread::sleep(PAUSED_LOOK);
        }
        false
    }

    /// Each frame at its time.
    fn paced<T: Tx + ?Sized, F: Frames + ?Sized>(
        &mut self,
        txs: &mut [&mut T],
        frames: &mut F,
        waiter: &mut clock::Waiter,
    ) -> Ended {
        let mut due = [0u64; BATCH];
        loop {
            if !self.follow(txs, frames) {
                return Ended::Stopped;
            }
            let course = self.course;
            let end = course.end(self.limits.duration.saturating_sub(self.put_off));
            let next = match frames.next_due() {
                Ok(Some(next)) if self.given < self.limits.count && next < end => next,
                Ok(_) => return Ended::Done,
                Err(fault) => return self.without(fault),
            };
            let clock = clock::now().saturating_sub(self.start + self.put_off);
            if course.active(clock) > self.limits.duration.saturating_add(GRACE_NS) {
                return Ended::Done;
            }
            // From here on by the schedule's time.
            let now = course.position(clock);
            if self.budget.is_some() && next > now {
                self.pacer.met(now);
            }
            let position = self.pacer.advance(now, next);
            // What the pacer keeps may leave if the link's bound lets it.
            let room = match &self.budget {
                Some(budget) if next > position && next <= now => budget.room(clock),
                _ => 0,
            };
            if next > position && room == 0 {
                let release = course.time_of(self.pacer.release_time(next));
                let release = match &self.budget {
                    Some(budget) if next <= now => release.min(budget.free_at()),
                    _ => release,
                };
                waiter.wait(
                    (self.start + self.put_off).saturating_add(release),
                    self.control,
                    course.version,
                );
                self.looked = release.max(clock);
                self.held_up_by_others(waiter);
                continue;
            }
            let late = course.lasts(now - next);
            // What was kept by the pacer was not held up; nor does a frame that comes behind others wait for its core.
            self.stalled(late.min(clock.saturating_sub(self.looked)), clock, waiter);
            self.looked = clock;
            let kept = &mut self.punctuality;
            let put_off = if self.limits.pacing.catch_up.is_never() { pacer::put_off(late, 0) } else { 0 };
            if put_off > 0 {
                self.put_off += put_off;
                kept.put_off_ns = self.put_off;
                self.looked = clock - put_off;
                // Where the schedule is now, it is on time.
                self.pacer = Pacer::at(self.limits.pacing.catch_up.times(), next);
                continue;
            }
            let (until, most) = if next > position { (now, room) } else { (position, BATCH) };
            match self.batch(txs, frames, (until.min(end - 1), most), &mut due) {
                Ok(0) => return Ended::Done,
                Ok(count) => {
                    self.note(&due[..count], now, position < now);
                    self.densest.note(clock, count as u64);
                    self.left = clock + self.put_off;
                }
                Err(ended) => return ended,
            }
            if position < now {
                // Who catches up does not wait.
                waiter.rest();
            }
        }
    }

    /// As fast as it goes.
    fn unpaced<T: Tx + ?Sized, F: Frames + ?Sized>(
        &mut self,
        txs: &mut [&mut T],
        frames: &mut F,
        waiter: &mut clock::Waiter,
    ) -> Ended {
        let mut due = [0u64; BATCH];
        loop {
            if self.given >= self.limits.count {
                return Ended::Done;
            }
            if !self.follow(txs, frames) {
                return Ended::Stopped;
            }
            waiter.rest();
            let timed = self.limits.wait && self.limits.duration != u64::MAX;
            if timed && self.course.active(clock::now() - self.start) >= self.limits.duration {
                return Ended::Done;
            }
            match self.batch(txs, frames, (self.limits.duration.saturating_sub(1), BATCH), &mut due) {
                Ok(0) => return Ended::Done,
                Ok(_) => {}
                Err(ended) => return ended,
            }
        }
    }

    /// One batch of at most so many frames due by `until`, all of one port; 0 when the source has no more.
    fn batch<T: Tx + ?Sized, F: Frames + ?Sized>(
        &mut self,
        txs: &mut [&mut T],
        frames: &mut F,
        (until, most): (u64, usize),
        due: &mut [u64; BATCH],
    ) -> Result<usize, Ended> {
        let port = if txs.len() > 1 { usize::from(frames.port()) } else { 0 };
        let Some(tx) = txs.get_mut(port) else { return Ok(0) };
        let left = self.limits.count - self.given;
        let max = usize::try_from(left).unwrap_or(BATCH).min(tx.batch()).min(most);
        let lent = tx.buffers();
        let mut buffers =
            Buffers { bytes: lent.bytes, stride: lent.stride, held: lent.held, lengths: lent.lengths };
        let count = frames.fill(&mut buffers, max, until, due).map_err(|fault| self.without(fault))?;
        if count > 0 {
            if let Some(budget) = &mut self.budget {
                let bits =
                    buffers.lengths[..count].iter().map(|length| pacer::wire_bits((*length).into())).sum();
                budget.take(self.looked, count, bits);
            }
            if let Some(departures) = tx.departures() {
                while let Some(departed) = departures.take() {
                    self.departures.get_or_insert_default().note(departed);
                }
                if let Some(nth) = departures.choose(count) {
                    let at = |due| self.start + self.put_off + self.course.time_of(due);
                    departures.mark(nth, self.is_paced.then(|| at(due[nth])));
                }
            }
            let sent: Result<(), TxError> = tx.send(count, &due[..count]);
            self.given += count as u64;
            let counters = all(txs);
            publish(self.control, &counters);
            match sent {
                Ok(()) => {}
                // Frames that waited for room when the run ended were neither sent nor refused.
                Err(TxError::Stopped(_)) => {
                    let kept = counters.frames + counters.failed;
                    let back = usize::try_from(self.given.saturating_sub(kept)).unwrap_or(usize::MAX);
                    self.given_back = due[count.saturating_sub(back)..count].to_vec();
                    self.given = kept;
                    return Err(if self.control.stopped() { Ended::Stopped } else { Ended::Done });
                }
                Err(fault) => return Err(Ended::Fault(fault)),
            }
        }
        Ok(count)
    }

    /// The source has no more. One that was given up at a stop, or because the run's time is over, has no fault. A source may
    /// hear of the stop before its worker does.
    fn without(&mut self, fault: SourceError) -> Ended {
        match fault {
            SourceError::Capture(capture::CaptureError::GivenUp { stopped, .. })
                if stopped || self.control.stopped() =>
            {
                Ended::Stopped
            }
            SourceError::Capture(capture::CaptureError::GivenUp { .. }) => {
                self.gave_up = true;
                Ended::Done
            }
            fault => Ended::SourceFault(fault),
        }
    }

    /// At the end of a run: what came back late, and the senders' counts.
    fn last_departures<T: Tx + ?Sized>(&mut self, txs: &mut [&mut T]) {
        for departures in txs.iter_mut().filter_map(|tx| tx.departures()) {
            let kept = self.departures.get_or_insert_default();
            if let Some(departed) = departures.take_last() {
                kept.note(departed);
            }
            kept.by_hardware = departures.by_hardware();
            let (asked, stamped) = departures.counts();
            kept.asked += asked;
            kept.stamped += stamped;
            kept.error_ns = kept.error_ns.max(departures.error_ns());
        }
    }

    /// The run ended with a frame unsent that is due at `next`: where nothing left for long by then, something held it up.
    fn held_up(&mut self, ended: u64, next: u64) {
        let clock = ended.saturating_sub(self.put_off);
        let late = self.course.lasts(self.course.position(clock).saturating_sub(next));
        let idle = late.min(clock.saturating_sub(self.looked));
        if idle > LATE_NS {
            self.punctuality.stalls += 1;
            self.punctuality.longest_stall_ns = self.punctuality.longest_stall_ns.max(idle);
        }
    }

    /// Nothing left for so long although something was due: the thread did not run, or the interface took nothing.
    fn stalled(&mut self, idle: u64, clock: u64, waiter: &mut clock::Waiter) {
        if idle > LATE_NS {
            self.punctuality.stalls += 1;
            self.punctuality.longest_stall_ns = self.punctuality.longest_stall_ns.max(idle);
            waiter.held_up(self.start + self.put_off + clock, idle);
            self.held_up_by_others(waiter);
        }
    }

    /// Goes before others from now on, if it is they who had its core, and that is wanted.
    fn held_up_by_others(&mut self, waiter: &mut clock::Waiter) {
        if self.control.priority != Priority::AsNeeded || waiter.taken() == self.punctuality.taken {
            return;
        }
        self.punctuality.taken = waiter.taken();
        let waited = clock::thread_waited();
        let others =
            waited.zip(self.waited).is_none_or(|(waited, before)| waited - before.min(waited) > LATE_NS);
        self.waited = waited;
        if others && let Some(had) = self.control.priority.needed() {
            self.punctuality.had = had;
            if had == Had::RealTime {
                waiter.goes_first_now();
            }
        }
    }

    /// Takes down how late the frames of a batch were, handed over at `now`.
    fn note(&mut self, due: &[u64], now: u64, behind: bool) {
        let kept = &mut self.punctuality;
        let mut late = 0;
        for &due in due {
            let by = self.course.lasts(now.saturating_sub(due));
            kept.lateness.record(by);
            late += u64::from(by > LATE_NS);
            kept.first_late_ns.get_or_insert(by);
            kept.last_late_ns = by;
        }
        if behind {
            kept.catch_up_frames += due.len() as u64;
        }
        if late > 0 {
            kept.late += late;
            self.control.late.store(kept.late, Relaxed);
        }
        self.control.lateness.answer(|| kept.lateness.clone());
    }
}
