//! The sending part of a run: an engine is opened and sends, and another one begins anew if nobody sees its frames leave.

use super::counters::{self, Seen};
use super::fill::measured::WatchedClock;
use super::meters::Meters;
use super::moves::Moves;
use super::together::Stage;
use super::trust::{self, Suspicion};
use super::watch::Watch;
use super::{Observe, Opened, SetAtEnd, Setup, begin_counting, by_hand, links, open, ports, send};
use crate::carrier::{Ends, Following};
use crate::panel::Panel;
use anyhow::{Result, bail};
use engine::{Counts, Ended, Engine, Job, Sent};
use port::interface::{CounterReader, Counters};
use report::{NotTaken, Report};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A run whose meters stand.
pub struct Run<'m> {
    pub setup: Setup,
    /// What each of several workers sends; empty for one, which sends the whole.
    pub own: Vec<Job>,
    pub report: Report,
    pub moves: Moves,
    pub meters: Option<&'m Meters>,
    /// Signatures tell all of its frames from others'.
    pub signs: bool,
    /// Another engine was not trusted.
    again: bool,
}

/// What an engine did that somebody saw sending, or that is the last.
pub struct Attempt<'m> {
    pub watch: Watch<'m>,
    pub engine: String,
    pub counts: Counts,
    pub counters: Vec<(CounterReader, Counters)>,
    pub counting: Vec<(String, port::watch::Watch)>,
    pub clock: Option<WatchedClock>,
    pub following: Following,
    pub sent: Vec<Sent>,
    /// Kept to the end: closing them may detach programs, which takes some links down, with frames still on their way.
    pub workers: Vec<Box<dyn Engine>>,
    /// Another engine can take its place, should nobody see its frames leave.
    doubted: bool,
}

/// The screen of a run, which stays when another engine begins anew.
struct Screen {
    /// Of a part of something larger, that one tells.
    panel: Option<Panel>,
    begun: bool,
}

impl<'m> Run<'m> {
    pub fn of(setup: Setup, own: Vec<Job>, report: Report, meters: Option<&'m Meters>) -> Run<'m> {
        let signs = trust::signs(&setup.job);
        Run { setup, own, report, moves: Moves::default(), meters, signs, again: false }
    }

    /// What each worker sends.
    pub fn jobs(&self) -> &[Job] {
        if self.own.is_empty() { std::slice::from_ref(&self.setup.job) } else { &self.own }
    }

    /// Who sees frames arrive. What comes back to the sender does not say what left.
    pub fn witness(&self) -> Option<&'m Meters> {
        self.meters.filter(|_| !self.setup.round_trip)
    }

    /// Sends, by one engine after the other until somebody sees frames leave.
    pub fn attempts(&mut self, ends: Ends, observe: Option<Observe<'_>>) -> Result<Attempt<'m>> {
        let mut ends = Some(ends);
        let panel = self.setup.onlooker.is_none().then(|| Panel::of(&self.setup.session.board));
        let mut screen = Screen { panel, begun: false };
        let first = self.setup.tx.first();
        let mut distrusted = first.map(|place| self.setup.distrusted.at(place)).unwrap_or_default();
        loop {
            // Another engine may attach programs of its own, which may take links down again.
            let ends = ends.take().map_or_else(|| links(&self.setup), Ok)?;
            let opened = open(&self.setup, &self.own, self.meters.map(Meters::first), &distrusted)?;
            let mut attempt = self.ready(opened, ends, &mut screen)?;
            let Some(seen) = self.carry_out(&mut attempt, observe)? else { return Ok(attempt) };
            let Some(place) = self.setup.tx.first() else {
                bail!("a run without an interface was broken off: this is a defect of netdyno")
            };
            self.again = true;
            let not_taken = NotTaken { name: attempt.engine, reason: trust::reason(place, &seen) };
            self.setup.distrusted.add(place, &not_taken);
            distrusted.push(not_taken);
            attempt.watch.ask_again();
            screen.panel = attempt.watch.panel.take();
        }
    }

    /// Attaches what the engine needs, waits for links and for the runs beside, and begins to count.
    fn ready(&mut self, opened: Opened, ends: Ends, screen: &mut Screen) -> Result<Attempt<'m>> {
        let workers = opened.workers;
        let engine = match self.setup.per_port {
            // They may be several.
            Some(_) => opened.choice.name.clone(),
            None => workers.first().map_or("none", |worker| worker.name()).to_owned(),
        };
        let counts = ports::counts(&workers);
        let doubted = counts == Counts::HandedOver && opened.replaceable && self.setup.tx.len() == 1;
        self.report.environment.engine = Some(opened.choice);
        // All is attached that will be.
        self.setup.meet(Stage::Attached);
        let following = ends.wait(&self.setup.session, &mut self.report)?;
        self.setup.meet(Stage::Ready);
        let mut counters = Vec::new();
        for place in &self.setup.tx {
            let mut reader = place.counters()?;
            let before = reader.read()?;
            counters.push((reader, before));
        }
        let counting = begin_counting(&self.setup)?;
        let clock = self.setup.rx.first().map(|(_, options)| WatchedClock::start(options.clock));
        let watch = self.watch(&workers, &engine, screen)?;
        let sent = Vec::new();
        Ok(Attempt { watch, engine, counts, counters, counting, clock, following, sent, workers, doubted })
    }

    fn watch(&self, workers: &[Box<dyn Engine>], engine: &str, screen: &mut Screen) -> Result<Watch<'m>> {
        let mut watch = Watch::new(&self.setup, self.jobs(), self.meters);
        let reach = workers.iter().map(|worker| worker.reach()).min().unwrap_or(engine::Reach::Stop);
        let manual = watch.manual(reach, engine);
        let meter = self.report.environment.meter.as_ref();
        let title = by_hand::title(&self.setup, engine, meter, manual.clone());
        watch.manual = manual;
        watch.title = Arc::new(title.clone());
        if let Some(mut panel) = screen.panel.take() {
            if !std::mem::replace(&mut screen.begun, true) {
                let names = by_hand::names(&self.setup.job, self.jobs(), self.setup.workers_of_a_stream());
                panel.begin(title, &self.report.warnings, || begin_counting(&self.setup), names)?;
            }
            watch.panel = Some(panel);
        }
        Ok(watch)
    }

    /// Sends. `Some`: nobody saw the frames leave, and another engine can take its place.
    fn carry_out(&mut self, attempt: &mut Attempt<'m>, observe: Option<Observe<'_>>) -> Result<Option<Seen>> {
        let (witness, signs) = (self.witness(), self.signs);
        let suspect = self.setup.tx.first().filter(|_| attempt.doubted);
        let mut suspicion = suspect.map(|place| Suspicion::begin(place, witness, signs)).transpose()?;
        let jobs = match self.own.is_empty() {
            true => std::slice::from_mut(&mut self.setup.job),
            false => &mut self.own[..],
        };
        let over = AtomicBool::new(false);
        let meters = self.meters;
        let sent = std::thread::scope(|scope| {
            if let (Some(observe), Some(meters)) = (observe, meters) {
                for meter in meters.each() {
                    let over = &over;
                    scope.spawn(move || observe(meter, over));
                }
            }
            let _over = SetAtEnd(&over);
            let with = (&self.setup.cpus[..], self.setup.priority, &self.moves);
            let session = &self.setup.session;
            // What begins anew does so at once: its start is over.
            let session = (session, session.begins(self.again));
            send(&mut attempt.workers, jobs, with, session, &mut attempt.watch, suspicion.as_mut())
        })?;
        let Some(sent) = sent else {
            let seen = suspicion.as_ref().map(|suspicion| *suspicion.seen());
            return match seen {
                Some(seen) => Ok(Some(seen)),
                None => bail!("a run was broken off for no reason: this is a defect of netdyno"),
            };
        };
        let gone = match &mut suspicion {
            Some(suspicion) if !suspicion.is_trusted() => self.vanished(attempt, &sent, suspicion),
            _ => None,
        };
        attempt.sent = sent;
        Ok(gone)
    }

    /// A short run may have ended before anybody could see its frames: has any left by now?
    fn vanished(
        &self,
        attempt: &mut Attempt<'m>,
        sent: &[Sent],
        suspicion: &mut Suspicion<'_>,
    ) -> Option<Seen> {
        // Who ended badly says so itself.
        let well = sent.iter().all(|sent| matches!(sent.ended, Ended::Done | Ended::Stopped));
        if !well || self.setup.session.stop.load(Relaxed) {
            return None;
        }
        let (reader, before) = attempt.counters.first_mut()?;
        let ours = sent.iter().map(|sent| sent.counters.frames).sum();
        let moved = counters::moved(reader, before, ours, self.setup.hurry());
        let seen = Seen {
            ours,
            interface: moved.map_or(0, |moved| moved.tx_packets),
            driver: suspicion.driver(),
            arrived: self.witness().map(|witness| trust::arrived(witness, self.signs)),
            counts: attempt.counts,
        };
        (moved.is_some() && seen.vanished()).then_some(seen)
    }
}
