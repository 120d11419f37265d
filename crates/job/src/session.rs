//! What all kinds of jobs are run with, and the loop of those that wait until something is over.

use crate::panel::Panel;
use crate::run::together::{Member, Stage};
use crate::samples::{Kept, SAMPLE, Samples, Spreads};
use engine::{Begins, Hold};
use histogram::Histogram;
use meter::Meter;
use report::{Code, Note, Report, Said, Sentence};
use snapshot::{Board, Snapshot};
use spec::Consent;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What a job is allowed, who ends it and who looks on.
#[derive(Debug, Default)]
pub struct Session {
    /// What the job may do to others.
    pub consent: Consent,
    /// Set by whoever ends it.
    pub stop: Arc<AtomicBool>,
    /// Set by whoever may end the process where nobody looks at `stop` yet, and nothing is attached; cleared by the job when it
    /// does.
    pub deaf: Arc<AtomicBool>,
    /// Where it puts how it stands, and takes requests.
    pub board: Arc<Board>,
    /// Other jobs that begin with it.
    pub together: Option<Member>,
    /// When its first frame is due, or its time begins, by CLOCK_TAI in nanoseconds; `None`: as soon as all is ready. Trials and searches, which
    /// are many runs, do not look at it.
    pub start_at: Option<u64>,
    /// What it has to know of jobs on other hosts, where together they are one.
    pub among: Among,
    /// Where its ports are, and who carries out its runs there, if they are at agents of other hosts: of jobs that are many runs.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
    /// A command, word by word, that reads standard input to its end and then takes away what a clone's return agent left; `None`: who
    /// runs jobs is not the program that has one, and no return agent is begun.
    pub guardian: Option<Vec<String>>,
}

/// Carries out runs where ports are at agents of other hosts.
pub trait Elsewhere: std::fmt::Debug + Send + Sync {
    /// What is known of a port, which is called as the job calls it (`eth1@lab1`).
    ///
    /// # Errors
    /// It cannot be looked at.
    fn port(&self, name: &str) -> anyhow::Result<FarPort>;

    /// Carries out a job that is one run; `stop` ends it in order.
    ///
    /// # Errors
    /// It came to no result.
    fn carry_out(&self, job: &spec::Job, stop: &Arc<AtomicBool>) -> anyhow::Result<Report>;
}

/// A port of another host.
#[derive(Debug, Clone, Copy, Default)]
pub struct FarPort {
    /// Its Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// The speed that it states and keeps to.
    pub bits_per_second: Option<u64>,
}

/// What a job has to know that is a part of one on several hosts.
#[derive(Debug, Clone, Default)]
pub struct Among {
    /// Once all is ready, it waits here until it is told when to begin.
    pub hold: Option<Arc<Hold>>,
    /// How far CLOCK_TAI of the host where its frames are measured is ahead of this host's, in nanoseconds: they are stamped by that.
    pub stamps_ahead_ns: i64,
    /// What it sends is measured on another host: it is signed, and counted by its numbers.
    pub measured: bool,
    /// Which it is of how many that send, from 0: their signed streams have numbers of their own.
    pub part: Option<(u32, u32)>,
    /// It is a trial: what is held up once spoils it.
    pub trial: bool,
}

/// The start that was given had passed before all was ready. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "all was ready {} after the start that was given: nothing was sent; give a later start",
    report::units::time(*by_ns)
)]
pub struct Late {
    /// By how much.
    pub by_ns: u64,
}

impl Session {
    /// From now on it ends in an orderly way when `stop` is set.
    pub fn stop_in_order(&self) {
        self.deaf.store(false, Relaxed);
    }

    /// Says how it goes.
    pub fn say(&self, code: Code, sentence: impl Into<Sentence>) {
        self.board.say(Note::info(code, sentence));
    }

    /// Says what a result warns of, where it may be long until then.
    pub fn warn(&self, warnings: &[Said]) {
        for warning in warnings {
            self.board.say(Note::info(warning.code, format!("Warning: {warning}")));
        }
    }

    /// All is attached that will be, and the carriers are there: waits for the jobs that begin with it, and for the start that was given.
    ///
    /// # Errors
    /// That start has passed.
    pub fn meet(&self) -> Result<(), Late> {
        self.others_are_there();
        if let Some(together) = &self.together {
            together.meet(Stage::Ready, &self.stop);
        }
        if let Some(hold) = &self.among.hold {
            hold.wait(&self.stop);
        }
        self.await_start()
    }

    /// When a run of it begins whose workers wait for each other. `again`: an earlier one of it did, and its start is over.
    pub(crate) fn begins(&self, again: bool) -> Begins {
        match (&self.among.hold, self.begins_at()) {
            _ if again => Begins::AtOnce,
            (Some(hold), _) => Begins::Held(Arc::clone(hold)),
            (None, Some(at)) => Begins::At(at),
            (None, None) => Begins::AtOnce,
        }
    }

    /// Others may begin, and this one waits for nobody: it serves, and they may be its clients.
    pub fn serves(&self) {
        if let Some(together) = &self.together {
            together.is_ready();
        }
    }

    /// Waits until all others are there: one of them may be the server that this one is to connect to.
    pub(crate) fn others_are_there(&self) {
        if let Some(together) = &self.together {
            together.meet(Stage::Attached, &self.stop);
        }
    }

    /// Waits for the start that was given.
    fn await_start(&self) -> Result<(), Late> {
        let Some(at) = self.begins_at() else { return Ok(()) };
        match clocks::monotonic().checked_sub(at).filter(|late| *late > 0) {
            Some(by_ns) => Err(Late { by_ns }),
            None => {
                engine::await_start(at, &self.stop);
                Ok(())
            }
        }
    }

    /// When it begins, by CLOCK_MONOTONIC in nanoseconds.
    pub(crate) fn begins_at(&self) -> Option<u64> {
        let ahead = || clocks::ahead(clocks::Clock::Tai, clocks::Clock::Monotonic);
        if let Some(hold) = &self.among.hold {
            return hold.at();
        }
        self.start_at.map(|tai| tai.saturating_add_signed(ahead().ns.saturating_neg()))
    }

    /// Was it asked to end?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Looks ten times a second, until somebody ends it, its time is over, or what is seen says so.
    pub(crate) fn watch<'m, T: Copy + Default>(
        &self,
        panel: &mut Panel,
        duration: Option<Duration>,
        look: impl FnMut(u64) -> Looked<'m, T>,
    ) -> Watched<T> {
        self.watch_from(panel, duration, None, |_| (), look)
    }

    /// The same, for what has to be looked at after `next` already, and then when each look says. `keep` hears what became of each sample.
    pub(crate) fn watch_from<'m, T: Copy + Default>(
        &self,
        panel: &mut Panel,
        duration: Option<Duration>,
        mut next: Option<Duration>,
        mut keep: impl FnMut(Kept),
        mut look: impl FnMut(u64) -> Looked<'m, T>,
    ) -> Watched<T> {
        let start = Instant::now();
        let (mut samples, mut spreads) = (Samples::new(), Spreads::new());
        loop {
            let left = duration.map(|d| d.saturating_sub(start.elapsed()));
            let sleeps = [Some(SAMPLE), left, next].into_iter().flatten().min().unwrap_or(SAMPLE);
            std::thread::sleep(sleeps);
            let at_ns = start.elapsed().as_nanos() as u64;
            let Looked { counts, over, snapshot, meter, delays, again } = look(at_ns);
            next = again;
            let in_time = duration.is_none_or(|duration| start.elapsed() < duration);
            let over = over || !in_time || self.is_stopped();
            let kept = samples.push(at_ns, counts, over);
            spreads.follow(kept, &delays);
            keep(kept);
            let remaining_ns = left.map(|left| left.as_nanos() as u64);
            if over {
                panel.hurry();
            }
            panel.show(Snapshot { at_ns, remaining_ns, ..snapshot }, meter);
            if over {
                return Watched {
                    samples,
                    spreads,
                    early: self.is_stopped() && duration.is_some() && in_time,
                };
            }
        }
    }
}

/// What was seen at one look.
pub(crate) struct Looked<'m, T> {
    /// Since the start.
    pub counts: T,
    /// It is over.
    pub over: bool,
    pub snapshot: Snapshot,
    /// Whose streams are shown.
    pub meter: Option<&'m Meter>,
    /// Of signed frames, since the start.
    pub delays: Histogram,
    /// It is to be looked at again after so long, if that is sooner than usual.
    pub again: Option<Duration>,
}

impl<T> Looked<'_, T> {
    /// Of what nobody times.
    pub fn of(counts: T, over: bool, snapshot: Snapshot) -> Self {
        Looked { counts, over, snapshot, meter: None, delays: Histogram::new(), again: None }
    }
}

/// What was seen until it was over.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    pub samples: Samples<T>,
    pub spreads: Spreads,
    /// Somebody ended it before its time was over.
    early: bool,
}

impl<T> Watched<T> {
    /// Says in the result that it was ended before its time.
    pub fn judge(&self, report: &mut Report) {
        if self.early {
            report.result.verdict.fall_short(Code::Stopped, "stopped before its time was over");
        }
    }
}
