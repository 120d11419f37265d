//! Sends with each engine that there is, to find out which is the fastest here: `netdyno doctor --calibrate`.

use crate::calibration::{Calibration, Way};
use crate::engines;
use crate::kinds::shared::{self, Through};
use crate::place::Place;
use crate::run::{self, Open, Setup};
use crate::session::Session;
use anyhow::{Context as _, Result, bail};
use engine::Job;
use report::{Report, Witness};
use spec::{How, Timestamps};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use traffic::expr::{Options, compile};
use traffic::{Program, Schedule};

/// What is to be calibrated.
#[derive(Debug, Clone)]
pub struct Calibrate {
    /// The interface that sends.
    pub interface: String,
    /// The one that counts what arrives, if any does.
    pub measure: Option<String>,
    /// So long with each engine.
    pub duration: Duration,
    /// An interface that may be used although it carries the default route or a login.
    pub yes_disrupt: Option<String>,
}

impl Calibrate {
    /// Sends with each engine at top speed, one after the other, until all were tried. `begins` is called before each with its
    /// name and the interface. Whoever sets `stop` ends it.
    ///
    /// # Errors
    /// There is no such interface, it may not be used, or it was stopped: nothing was calibrated. That an engine cannot send is no
    /// error: its row says why.
    pub fn run(&self, stop: &Arc<AtomicBool>, begins: impl Fn(&str, &str)) -> Result<Calibration> {
        let yes_disrupt = self.yes_disrupt.clone().into_iter().collect();
        let through = Through { yes_disrupt, ..Through::default() };
        let find = || -> Result<Place> {
            shared::sending_place(Some(&self.interface), &through)?.context("calibrate which interface?")
        };
        let place = find()?;
        let cpus = shared::cpus(&through, std::slice::from_ref(&place))?;
        let size = "64".parse().map_err(|error| anyhow::anyhow!("{error}"))?;
        let options = Options { size: Some(size), seed: 0, signature: None, name: String::new() };
        let program = Arc::new(compile("ipv4/udp", &options)?.with_schedule(Schedule::TopSpeed));
        let mut ways = Vec::new();
        for (name, engine, open) in engines::ways() {
            if stop.load(Relaxed) {
                break;
            }
            begins(name, &place.spec);
            // Looked at again: the way before may have had a program attached.
            let (tx, rx) = (find()?, self.receiver()?);
            let measured = self.measure((tx, rx), (&program, &cpus), open, stop);
            let way = Way { name: name.to_owned(), engine, ..Way::default() };
            ways.push(match measured {
                Ok(report) => judged(way, &report),
                Err(error) => Way { why_not: Some(crate::in_full(&error)), ..way },
            });
        }
        if stop.load(Relaxed) {
            bail!("stopped by a signal: nothing was calibrated");
        }
        Ok(Calibration::of(&place, self.measure.as_deref(), self.duration.as_nanos() as u64, ways))
    }

    fn receiver(&self) -> Result<Option<(Place, meter::Options)>> {
        let Some(spec) = &self.measure else { return Ok(None) };
        let place = Place::find(spec)?;
        place.guard_taking(self.yes_disrupt.as_slice(), None)?;
        shared::with_meter(place, (How::Auto, Timestamps::Software), false).map(Some)
    }

    /// Sends one way.
    fn measure(
        &self,
        (tx, rx): (Place, Option<(Place, meter::Options)>),
        (program, cpus): (&Arc<Program>, &[Option<usize>]),
        open: Open,
        stop: &Arc<AtomicBool>,
    ) -> Result<Report> {
        let job = Job { duration: Some(self.duration), ..Job::program(Arc::clone(program)) };
        run::run(Setup {
            tx: vec![tx],
            rx: rx.into_iter().collect(),
            best_effort: true,
            cpus: cpus.to_vec(),
            session: Session { stop: Arc::clone(stop), ..Session::default() },
            ..Setup::of("doctor", open, job, program.longest() as usize)
        })
    }
}

/// The figures of a run, as far as somebody saw its frames leave.
fn judged(way: Way, report: &Report) -> Way {
    let Some(tx) = &report.result.tx else { return way };
    let counted = tx.interface_counters.first();
    let confirmed_by = counted.and_then(|counted| counted.confirmed_by);
    let sent = tx.totals.frames_per_second;
    let rx = report.result.rx.as_ref().filter(|_| tx.totals.duration_ns > 0);
    let received = rx.map(|rx| rx.totals.frames as f64 * 1e9 / tx.totals.duration_ns as f64);
    let why_not = match confirmed_by {
        None | Some(Witness::Nobody) => Some(match report.result.verdict.reasons().first() {
            Some(reason) => reason.to_string(),
            None => "nobody saw a frame leave".to_owned(),
        }),
        Some(_) => None,
    };
    let sent = Some(sent).filter(|_| why_not.is_none());
    Way { sent_frames_per_second: sent, received_frames_per_second: received, confirmed_by, why_not, ..way }
}
