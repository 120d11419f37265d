//! Both ends while a run goes on: intervals for the report, and snapshots for who looks on.

use super::fill::due::Due;
use super::intended::{Intended, time_of};
use super::losses::{Mark, Numbers};
use super::meters::Meters;
use super::{Interim, Onlooker, Setup, by_hand, trust};
use crate::dropped::{Follow, OverTime};
use crate::panel::Panel;
use crate::samples::Spreads;
use engine::{Control, Course, Ended, Job, Reach, Sent};
use meter::Snapshot as Measured;
use report::{Adjustment, Interval, Totals};
use snapshot::{Count, ManualControl, Phase, Request, Snapshot, Title, Worker, machine};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// More intervals than this are joined in pairs.
const MOST_INTERVALS: usize = 1200;

/// What was seen at one moment; all counts since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    at_ns: u64,
    tx_frames: u64,
    tx_bytes: u64,
    rx_frames: u64,
    rx_bytes: u64,
    late: u64,
    intended: Option<u64>,
    /// Frames that are surely lost: missing though later ones came, or sent by the sample before and still not here.
    lost: u64,
    /// Frames that arrived, without copies.
    arrived: u64,
    numbers: Option<Numbers>,
}

impl Sample {
    /// What had left at that moment, for who looks on. A sender counts frames a moment after they left, so that some may have
    /// arrived which it has not counted: those have been sent. What came beyond all that can have left is others'.
    fn at_least_sent(&self, total: Option<u64>) -> Count {
        let most = self.intended.or(total).unwrap_or(u64::MAX);
        let ahead = self.arrived > self.tx_frames && self.arrived <= most;
        match ahead {
            true => Count { frames: self.arrived, bytes: self.tx_bytes.max(self.rx_bytes) },
            false => Count { frames: self.tx_frames, bytes: self.tx_bytes },
        }
    }
}

/// Of so many streams each is looked at.
const FEW: usize = 256;

/// Samples both ends while a run goes on.
pub struct Watch<'a> {
    meter: Option<&'a Meters>,
    intended: Intended,
    samples: Vec<Sample>,
    /// Delays between the samples, and those up to the latest look.
    spreads: Spreads,
    delays: histogram::Histogram,
    /// What the kernel had dropped at each sample, where that is traced.
    drops: Option<OverTime>,
    /// Every how many samples one is kept.
    stride: u32,
    skipped: u32,
    latest: Sample,
    /// How long the run may be active, and how long the schedule of all its frames is.
    limit: Option<u64>,
    whole: Option<u64>,
    total: Option<u64>,
    /// Only signed frames are ours.
    round_trip: bool,
    /// The numbers in signatures, if they are few, and whether each frame has one.
    streams: Vec<u32>,
    signs: bool,
    /// Not all have signatures.
    by_count_only: bool,
    started: bool,
    /// What is reported now and then, and when next.
    interim: Option<(Interim, u64)>,
    /// What shows it all, and takes what the user wants.
    pub panel: Option<Panel>,
    onlooker: Option<Onlooker>,
    /// What else the onlooker is given: the engine, the meter and the interfaces of the run.
    pub title: Arc<Title>,
    /// What can be done by hand.
    pub manual: ManualControl,
    /// What was done by hand.
    pub adjustments: Vec<Adjustment>,
    course: Course,
    cpus: Vec<Option<usize>>,
    /// The latest that was shown.
    shown: Option<Snapshot>,
    /// Frames that came late, or again.
    disorder: Option<(u64, u64)>,
    /// Frames with bytes behind their signatures.
    trailed: Option<u64>,
    /// No more frames arrived yet than were sent.
    awaits: bool,
}

/// So long a sender may be held up between the kernel's taking a batch and counting it.
const COUNTED: Duration = Duration::from_millis(100);

/// How long frames that are due and not sent take, at the pace so far: when the schedule is over, they are still to come.
fn behind(intended: Option<u64>, sent: u64, at_ns: u64) -> u64 {
    let overdue = u128::from(intended.unwrap_or(0).saturating_sub(sent));
    let time = (overdue * u128::from(at_ns)).checked_div(u128::from(sent)).unwrap_or(0);
    u64::try_from(time).unwrap_or(u64::MAX)
}

/// Has each stream signatures? Of a capture not every frame may have room for one.
fn is_signed(job: &Job) -> bool {
    match job.source.program() {
        Some(program) => program.streams.iter().all(|stream| stream.signature.is_some()),
        None => job.source.facts().all_signed,
    }
}

impl<'a> Watch<'a> {
    /// For the workers' `jobs`, which are shares of the whole.
    pub fn new(setup: &Setup, jobs: &[Job], meter: Option<&'a Meters>) -> Watch<'a> {
        let limit = setup.job.duration.map(|d| d.as_nanos() as u64);
        // Idle ones have no thread.
        let busy = jobs.iter().zip(&setup.cpus).filter(|(job, _)| jobs.len() == 1 || !super::is_idle(job));
        let whole = setup.total.and_then(|total| time_of(&setup.job, total));
        Watch {
            meter,
            limit,
            whole,
            round_trip: setup.round_trip,
            streams: streams(jobs),
            signs: jobs.iter().all(trust::signs),
            by_count_only: !setup.round_trip && !is_signed(&setup.job),
            total: setup.total,
            intended: Intended::of(jobs),
            samples: vec![Sample::default()],
            spreads: Spreads::new(),
            delays: histogram::Histogram::new(),
            drops: setup.follow.as_ref().map(Follow::begin),
            stride: 1,
            skipped: 0,
            latest: Sample::default(),
            started: false,
            interim: setup.interim.map(|interim| (interim, interim.every.as_nanos() as u64)),
            panel: None,
            onlooker: setup.onlooker.clone(),
            title: Arc::default(),
            manual: ManualControl::default(),
            adjustments: Vec::new(),
            course: Course::default(),
            cpus: busy.map(|(_, cpu)| *cpu).collect(),
            shown: None,
            disorder: None,
            trailed: None,
            awaits: true,
        }
    }

    /// What the user may do to it.
    pub fn manual(&self, reach: Reach, engine: &str) -> ManualControl {
        by_hand::manual(reach, engine, self.intended.is_paced())
    }

    /// How the schedule's time passes now.
    pub fn course(&self) -> Course {
        self.course
    }

    /// The last moment of the schedule that is carried out by `at_ns`: the frame due at the very end belongs to what
    /// comes after.
    fn within(&self, at_ns: u64) -> u64 {
        let end =
            self.limit.map_or(u64::MAX, |limit| self.course.end(limit)).min(self.whole.unwrap_or(u64::MAX));
        self.course.position(at_ns).min(end).saturating_sub(1)
    }

    /// Time to the end, where that is known, if nothing is changed.
    fn remaining(&self, sample: Sample) -> Option<u64> {
        let at = sample.at_ns;
        let limit = self.limit.map(|limit| limit.saturating_sub(self.course.active(at)));
        let behind = behind(sample.intended, sample.tx_frames, at);
        let left = |whole: u64| {
            self.course.lasts(whole.saturating_sub(self.course.position(at))).saturating_add(behind)
        };
        match (limit, self.whole.map(left), self.total) {
            (Some(a), Some(b), _) => Some(a.min(b)),
            (Some(one), None, _) | (None, Some(one), _) => Some(one),
            (None, None, Some(total)) if sample.tx_frames > 0 => {
                let left = u128::from(total.saturating_sub(sample.tx_frames));
                Some((left * u128::from(at) / u128::from(sample.tx_frames)) as u64)
            }
            _ => None,
        }
    }

    fn look(
        &mut self,
        seen: Option<Measured>,
        at_ns: u64,
        (tx_frames, tx_bytes, late): (u64, u64, u64),
    ) -> Sample {
        let frames = |s: &Measured| if self.round_trip { s.signed } else { s.frames };
        let (rx_frames, rx_bytes) = seen.as_ref().map_or((0, 0), |s| (frames(s), s.bytes));
        let arrived = rx_frames.saturating_sub(seen.as_ref().map_or(0, |s| s.duplicates));
        if let Some(seen) = seen {
            self.disorder = (seen.signed > 0).then_some((seen.reordered, seen.duplicates));
            self.trailed = (seen.trailed > 0).then_some(seen.trailed);
            self.delays = seen.latency;
        }
        let numbers = self.meter.filter(|_| !self.streams.is_empty());
        let numbers = numbers.map(|meter| meter.numbers(&self.streams));
        let before = self.latest;
        let absent = before.tx_frames.saturating_sub(arrived);
        let lost = match numbers.filter(|_| self.signs) {
            // Until a later one comes, nobody misses a number.
            Some(numbers) => numbers.missing.max(absent),
            None => before.lost.max(absent),
        };
        Sample {
            at_ns,
            tx_frames,
            tx_bytes,
            rx_frames,
            rx_bytes,
            late,
            intended: self.intended.by(self.within(at_ns)).map(|due| due.min(self.total.unwrap_or(u64::MAX))),
            lost,
            arrived,
            numbers,
        }
    }

    /// A sender counts frames when the kernel has taken all of a batch, and the first of them may have arrived by then: it is
    /// waited for, unless it is others' frames that arrive.
    fn await_count(&mut self, seen: Option<&Measured>, sent: impl Fn() -> u64) {
        let arrived = seen.map_or(0, |s| if self.round_trip || self.signs { s.signed } else { s.frames });
        let until = Instant::now() + COUNTED;
        while self.awaits && sent() < arrived {
            self.awaits = Instant::now() < until;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Looks at both ends while the workers send.
    pub fn sample(&mut self, workers: &[Control]) {
        // All have the same start; those that have not woken since do not say so yet.
        let Some(started) = workers.iter().map(|w| w.started.load(Relaxed)).filter(|&at| at > 0).min() else {
            return;
        };
        if let Some(worker) = workers.first() {
            self.course = worker.throttle.course();
        }
        let sum = |of: fn(&Control) -> &AtomicU64| workers.iter().map(|w| of(w).load(Relaxed)).sum::<u64>();
        // First what arrived, then what was sent: frames that are looked at later must not seem to have arrived before they left.
        let seen = self.meter.map(Meters::snapshot);
        self.await_count(seen.as_ref(), || sum(|w| &w.frames));
        let (frames, bytes, late) = (sum(|w| &w.frames), sum(|w| &w.bytes), sum(|w| &w.late));
        let at = engine::clock::now().saturating_sub(started);
        let sample = self.look(seen, at, (frames, bytes, late));
        self.started = true;
        self.latest = sample;
        if let Some((interim, next)) = &mut self.interim
            && at >= *next
        {
            *next += interim.every.as_nanos() as u64;
            (interim.tell)(&Totals::over(frames, bytes, at));
        }
        self.skipped += 1;
        if self.skipped >= self.stride && sample.at_ns > self.samples.last().map_or(0, |s| s.at_ns) {
            self.skipped = 0;
            self.samples.push(sample);
            self.spreads.push(&self.delays);
            if let Some(drops) = &mut self.drops {
                drops.push();
            }
            if self.samples.len() > MOST_INTERVALS {
                let mut keep = false;
                self.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.spreads.halve();
                if let Some(drops) = &mut self.drops {
                    drops.halve();
                }
                self.stride *= 2;
            }
        }
        self.present(sample, workers);
    }

    /// Does what the user wants. Returns whether that was anything.
    pub fn obey(&mut self, workers: &[Control]) -> bool {
        let Some(panel) = &self.panel else { return false };
        let started = workers.iter().map(|w| w.started.load(Relaxed)).filter(|&at| at > 0).min();
        // What is wanted before the first frame is done with it.
        let (Some(throttle), Some(started)) = (workers.first().map(|w| &w.throttle), started) else {
            return false;
        };
        let requests = panel.requests();
        for request in requests.iter().filter(|request| by_hand::can(&self.manual, **request)) {
            let now = engine::clock::now().saturating_sub(started);
            by_hand::obey(throttle, now, *request, &mut self.adjustments);
        }
        self.course = throttle.course();
        !requests.is_empty()
    }

    /// What was done by hand is wanted of the engine that comes after this one, too.
    pub fn ask_again(&self) {
        let Some(panel) = &self.panel else { return };
        if self.course.percent != engine::throttle::AS_ASKED {
            panel.request(Request::Percent(self.course.percent));
        }
        if self.course.paused {
            panel.request(Request::Pause);
        }
    }

    /// Puts onto the panel how it stands.
    fn present(&mut self, sample: Sample, workers: &[Control]) {
        let remaining_ns = self.remaining(sample);
        // What workers take is looked up in files of the kernel, and for how late they are they stop to copy a histogram.
        let closely = self.onlooker.as_ref().is_some_and(|onlooker| onlooker.closely)
            || self.panel.as_ref().is_some_and(Panel::is_watched_closely);
        let metered = self.meter.is_some();
        let mut lateness: Option<histogram::Histogram> = None;
        for copy in workers.iter().filter(|_| closely).filter_map(|worker| worker.lateness.look()) {
            match &mut lateness {
                Some(all) => all.merge(&copy),
                none => *none = Some(copy),
            }
        }
        let worker = |(n, control): (usize, &Control)| Worker {
            cpu: self.cpus.get(n).copied().flatten(),
            sent: Count { frames: control.frames.load(Relaxed), bytes: control.bytes.load(Relaxed) },
            cpu_ns: closely.then(|| machine::thread_cpu_ns(control.thread.load(Relaxed))).flatten(),
        };
        let moment = Snapshot {
            phase: if self.course.paused { Phase::Paused } else { Phase::Running },
            at_ns: sample.at_ns,
            remaining_ns,
            percent: self.course.percent,
            intended: sample.intended,
            tx: Some(sample.at_least_sent(self.total)),
            rx: metered.then_some(Count { frames: sample.rx_frames, bytes: sample.rx_bytes }),
            lost: metered.then_some(sample.lost),
            lost_by_count_only: metered && self.by_count_only,
            reordered: self.disorder.map(|(reordered, _)| reordered),
            duplicated: self.disorder.map(|(_, duplicates)| duplicates),
            trailed: self.trailed,
            latency: (!self.delays.is_empty()).then(|| Arc::new(self.delays.clone())),
            lateness: lateness.map(Arc::new),
            late: self.intended.is_paced().then_some(sample.late),
            workers: workers.iter().enumerate().map(worker).collect(),
            ..Snapshot::default()
        };
        self.shown = Some(moment.clone());
        self.tell(moment);
    }

    fn tell(&mut self, moment: Snapshot) {
        if let Some(onlooker) = &self.onlooker {
            (onlooker.tell)(Snapshot { title: Arc::clone(&self.title), ..moment.clone() });
        }
        if let Some(panel) = &mut self.panel {
            panel.show(moment, self.meter.and_then(Meters::only));
        }
    }

    /// All was sent; what is still on its way is waited for.
    pub fn settle(&mut self) {
        if let Some(shown) = &mut self.shown {
            (shown.phase, shown.remaining_ns) = (Phase::Settling, None);
            let moment = shown.clone();
            self.tell(moment);
        }
    }

    /// The last sample: what was sent and what arrived in the end.
    pub fn finish(&mut self, sent: &Sent) -> Due {
        let late = sent.punctuality.as_ref().map_or(0, |p| p.late);
        let at = sent.duration_ns.max(self.latest.at_ns.min(sent.duration_ns));
        let seen = self.meter.map(Meters::snapshot);
        let mut last = self.look(seen, at, (sent.counters.frames, sent.counters.bytes, late));
        let due = self.final_offer(sent);
        last.intended = due.intended;
        if self.meter.is_some() {
            last.lost = sent.counters.frames.saturating_sub(last.arrived);
        }
        // A sample taken while the run was ending lies at or behind its end.
        while self.samples.len() > 1 && self.samples.last().is_some_and(|s| s.at_ns >= at) {
            self.samples.pop();
            self.spreads.pop();
            if let Some(drops) = &mut self.drops {
                drops.pop();
            }
        }
        self.samples.push(last);
        self.spreads.push(&self.delays);
        if let Some(mut drops) = self.drops.take() {
            drops.push();
            let is_told = self.samples.windows(2).map(|pair| pair[1].at_ns > pair[0].at_ns);
            drops.leave(sent.started_ns, is_told);
        }
        if let Some(shown) = self.shown.take() {
            let metered = self.meter.is_some();
            if let Some(panel) = &mut self.panel {
                panel.hurry();
            }
            let moment = Snapshot {
                phase: Phase::Ended,
                // Whoever looks on sees no time run backwards: frames were waited for.
                at_ns: last.at_ns.max(shown.at_ns),
                intended: last.intended,
                tx: Some(Count { frames: last.tx_frames, bytes: last.tx_bytes }),
                rx: metered.then_some(Count { frames: last.rx_frames, bytes: last.rx_bytes }),
                lost: metered.then_some(last.lost),
                lost_by_count_only: metered && self.by_count_only,
                reordered: self.disorder.map(|(reordered, _)| reordered),
                duplicated: self.disorder.map(|(_, duplicates)| duplicates),
                trailed: self.trailed,
                latency: (!self.delays.is_empty()).then(|| Arc::new(self.delays.clone())),
                lateness: sent.punctuality.as_ref().map(|p| Arc::new(p.lateness.clone())),
                late: self.intended.is_paced().then_some(last.late),
                ..shown
            };
            self.tell(moment);
        }
        due
    }

    /// Frames that the schedule had due within the run.
    fn final_offer(&mut self, sent: &Sent) -> Due {
        if !self.intended.is_paced() {
            return Due::default();
        }
        // Of a run that sent all there was, just that was intended.
        if sent.exhausted {
            return Due { intended: Some(sent.taken), had_time: Some(sent.taken) };
        }
        let most = self.total.unwrap_or(u64::MAX);
        let intended =
            self.intended.by(self.within(sent.duration_ns)).map(|due| due.max(sent.taken).min(most));
        let had_time = match sent.ended {
            Ended::Done => intended,
            _ => {
                let until = self.course.overdue_by(sent.looked_ns);
                let until = until.map(|until| until.min(self.within(sent.duration_ns)));
                until
                    .map_or(intended.and(Some(0)), |until| self.intended.was_by(until))
                    .map(|due| due.min(most))
            }
        };
        Due { intended, had_time }
    }

    /// What was seen between the intervals, the start and the end included.
    pub fn marks(&self) -> Vec<Mark> {
        let mark = |s: &Sample| Mark { sent: s.tx_frames, arrived: s.arrived, numbers: s.numbers };
        // There is no number before the start.
        let first = self.meter.filter(|_| !self.streams.is_empty()).map(|_| Numbers::default());
        let mut marks: Vec<Mark> = self.samples.iter().map(mark).collect();
        if let Some(start) = marks.first_mut() {
            start.numbers = first;
        }
        marks
    }

    pub fn intervals(&self) -> Vec<Interval> {
        let metered = self.meter.is_some();
        let interval = |pair: &[Sample]| {
            let (a, b) = (pair[0], pair[1]);
            Interval {
                start_ns: a.at_ns,
                end_ns: b.at_ns,
                intended_frames: b.intended.map(|n| n.saturating_sub(a.intended.unwrap_or(0))),
                tx_frames: Some(b.tx_frames - a.tx_frames.min(b.tx_frames)),
                tx_bytes: Some(b.tx_bytes - a.tx_bytes.min(b.tx_bytes)),
                rx_frames: metered.then(|| b.rx_frames - a.rx_frames.min(b.rx_frames)),
                rx_bytes: metered.then(|| b.rx_bytes - a.rx_bytes.min(b.rx_bytes)),
                late_frames: self.intended.is_paced().then(|| b.late.saturating_sub(a.late)),
                ..Interval::default()
            }
        };
        let intervals = self.samples.windows(2).enumerate().map(|(number, pair)| {
            let mut interval = interval(pair);
            self.spreads.fill(number + 1, &mut interval);
            interval
        });
        intervals.filter(|i| i.end_ns > i.start_ns).collect()
    }
}

/// The numbers in the signatures, if they are few.
fn streams(jobs: &[Job]) -> Vec<u32> {
    let all: Vec<u32> = jobs.iter().flat_map(|job| job.source.facts().streams).collect();
    if all.len() <= FEW { all } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::{Count, Sample, behind};

    #[test]
    fn nobody_sees_more_received_than_sent_but_for_what_others_sent() {
        let sample =
            Sample { tx_frames: 90, tx_bytes: 5_400, rx_bytes: 6_000, arrived: 100, ..Sample::default() };
        let sent = |intended, total| Sample { intended, ..sample }.at_least_sent(total);
        let ahead = Count { frames: 100, bytes: 6_000 };
        assert_eq!([sent(Some(100), None), sent(None, Some(100)), sent(None, None)], [ahead; 3]);
        assert_eq!(sent(Some(99), None), Count { frames: 90, bytes: 5_400 });
    }

    #[test]
    fn a_sender_that_is_behind_its_schedule_needs_longer_than_that() {
        // Half the rate: when the schedule of a second is over, half is still to come, and takes another.
        assert_eq!(behind(Some(1_000_000), 500_000, 1_000_000_000), 1_000_000_000);
        assert_eq!(behind(Some(500), 500, 1_000), 0);
        // At top speed nothing is due; before the first frame nobody knows.
        assert_eq!([behind(None, 500, 1_000), behind(Some(9), 0, 1_000)], [0, 0]);
    }
}
