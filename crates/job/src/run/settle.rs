//! What a run came to when its last frame was sent: waits for what is on its way, and says who is believed about what left.

use super::attempt::{Attempt, Run};
use super::counters::{self, Seen};
use super::fill::due::Due;
use super::fill::measured::WatchedClock;
use super::losses::Mark;
use super::meters::Meters;
use super::together::Stage;
use super::{fill, intended, stragglers, trust};
use crate::carrier::Lasted;
use anyhow::{Context as _, Result};
use engine::{Counts, Engine, Merged, Sent};
use port::interface::Counters;
use report::Witness;
use std::sync::atomic::Ordering::Relaxed;

/// What the meters are not needed for any more.
pub struct Settled {
    pub engine: String,
    pub counts: Counts,
    pub merged: Merged,
    pub due: Due,
    /// Of each port: what its interface counted, and who saw its frames.
    pub moved: Vec<(Option<Counters>, Seen)>,
    pub marks: Vec<Mark>,
    pub clock: Option<WatchedClock>,
    /// Kept to the end, as [`Attempt`] says.
    pub workers: Vec<Box<dyn Engine>>,
}

impl<'m> Run<'m> {
    /// Waits until nothing is on its way any more, and adds up what was sent.
    pub fn settle(&mut self, attempt: Attempt<'m>) -> Result<Settled> {
        let Attempt { mut watch, engine, counts, mut counters, mut counting, clock, following, .. } = attempt;
        let mut merged = self.merged(attempt.sent, |end| watch.course().time_of(end))?;
        if let Some(began_ns) = &self.setup.began_ns {
            began_ns.store(merged.whole.started_ns, Relaxed);
        }
        let alone = self.witness().filter(|_| counters.len() == 1);
        let mut moved = Vec::new();
        for (port, (reader, before)) in counters.iter_mut().enumerate() {
            let ours = fill::sent_by(&merged.whole, port).frames;
            let counted = counters::moved(reader, before, ours, self.setup.hurry());
            let seen = Seen {
                ours,
                interface: counted.map_or(0, |counted| counted.tx_packets),
                driver: counting.get_mut(port).and_then(|(_, watch)| counters::xdp_sent(&watch.rises())),
                arrived: alone.map(|alone| self.arrived(alone)).or_else(|| self.arrived_from(port)),
                counts,
            };
            moved.push((counted, seen));
        }
        if let Some(meter) = self.meters {
            let expected =
                moved.iter().map(|moved| left(moved).unwrap_or(moved.1.ours).min(moved.1.ours)).sum();
            stragglers::wait(meter, &self.setup, self.jobs(), expected);
        }
        // Now all that was on its way has arrived; who saw most of it is believed.
        if let (Some(meter), [(_, seen)]) = (alone, &mut moved[..]) {
            seen.arrived = Some(self.arrived(meter));
        }
        for (port, moved) in moved.iter_mut().enumerate() {
            moved.1.arrived = moved.1.arrived.max(self.arrived_from(port));
            if let Some(left) = left(moved) {
                counters::believe(&mut merged.whole, port, left);
            }
        }
        // Before the meter is detached, which may take a link down.
        let lasted = Lasted::of(&merged.whole, self.all_arrived(&merged.whole));
        following.end(Some(lasted), &mut self.report);
        let due = watch.finish(&merged.whole);
        self.report.intervals = watch.intervals();
        let marks = watch.marks();
        self.report.result.adjustments = std::mem::take(&mut watch.adjustments);
        drop(watch);
        self.setup.session.board.end();
        self.report.result.counters = counters::counted(counting);
        self.setup.meet(Stage::Measured);
        Ok(Settled { engine, counts, merged, due, moved, marks, clock, workers: attempt.workers })
    }

    /// What all workers sent together. `time_of`: when that was due by the course that the run took.
    fn merged(&self, sent: Vec<Sent>, time_of: impl FnOnce(u64) -> u64) -> Result<Merged> {
        let taken = sent.iter().map(|sent| sent.taken).sum();
        // One worker knows it by itself.
        let end = if self.own.is_empty() { None } else { intended::time_of(&self.setup.job, taken) };
        let mut merged = Merged::of(sent, end.map(time_of)).context("no worker was started")?;
        if let Some(per_port) = &self.setup.per_port {
            per_port.add_up(&mut merged);
        }
        Ok(merged)
    }

    fn arrived(&self, witness: &Meters) -> u64 {
        trust::arrived(witness, self.signs)
    }

    /// Frames of one port that arrived, where its frames are known by their streams.
    fn arrived_from(&self, port: usize) -> Option<u64> {
        let (per_port, meters) = (self.setup.per_port.as_ref()?, self.witness().filter(|_| self.signs)?);
        let jobs = self.own.chunks(per_port.workers.max(1)).nth(port)?;
        meters.arrived_of(jobs)
    }

    fn all_arrived(&self, sent: &Sent) -> bool {
        match &self.setup.per_port {
            // Copies at other ports make nothing good.
            Some(per_port) => (0..per_port.ports)
                .all(|port| self.arrived_from(port) >= Some(fill::sent_by(sent, port).frames)),
            None => self.meters.is_some_and(|meter| self.arrived(meter) >= sent.counters.frames),
        }
    }
}

/// How many frames left by a port, where that is for its counters to say.
fn left((counted, seen): &(Option<Counters>, Seen)) -> Option<u64> {
    match (counted, seen.counts, seen.judge()) {
        (Some(_), Counts::HandedOver, (Witness::Interface | Witness::Driver, left)) => Some(left),
        _ => None,
    }
}
