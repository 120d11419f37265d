//! The first step after a run: its counts are put into the result. What they mean is `judge`'s, and how that reads the renderings'.

pub mod departures;
pub mod due;
pub mod measured;
pub mod received;
pub mod sent;

use engine::{Counts, Job, Merged, Sent};
use port::tx::TxCounters;

use crate::run::Setup;

/// A run that ended.
pub struct Outcome<'a> {
    pub setup: &'a Setup,
    /// What each worker was to send.
    pub jobs: &'a [Job],
    pub engine: String,
    pub counts: Counts,
    /// What they did.
    pub merged: Merged,
}

impl Outcome<'_> {
    pub fn sent(&self) -> &Sent {
        &self.merged.whole
    }

    /// Was the meter told what frames are to have before their signatures?
    fn checks_content(&self) -> bool {
        self.setup.rx.first().is_some_and(|(_, options)| options.content.slots() > 0)
    }

    /// Words that say which worker it was, where there were several.
    pub fn ended_where(&self) -> String {
        let cpus = &self.setup.cpus;
        match (cpus.len(), cpus.get(self.merged.ended_by)) {
            (0 | 1, _) | (_, None) => String::new(),
            (_, Some(Some(cpu))) => format!("the worker on core {cpu} ended all: "),
            (_, Some(None)) => format!("worker {} ended all: ", self.merged.ended_by),
        }
    }
}

/// What one port of the run was handed: of a single one that is all.
pub fn sent_by(sent: &Sent, port: usize) -> TxCounters {
    sent.ports.get(port).copied().unwrap_or(sent.counters)
}
