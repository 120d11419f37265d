//! The floor of a latency: what the way takes without the device. Measured at the same load, given, or of an earlier result.

use super::{Offer, Rig};
use crate::session::Session;
use anyhow::{Context, Result, anyhow, bail};
use report::Report;
use report::search::{Floor, FloorOf};
use report::units;
use spec::{Bench, Lab, Pattern};
use std::path::{Path, PathBuf};
use std::time::Duration;
use traffic::expr::Size;
use traffic::rate::parse_duration;

/// Time that a floor is measured for, at most.
const ENOUGH: Duration = Duration::from_secs(2);

/// Where the floor is to come from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FloorSource {
    Device,
    Cable,
    Time(Duration),
    Result(PathBuf),
}

impl FloorSource {
    fn of(text: &str) -> FloorSource {
        match (text, parse_duration(text)) {
            ("device", _) => FloorSource::Device,
            ("cable", _) => FloorSource::Cable,
            (_, Ok(time)) => FloorSource::Time(time),
            (path, Err(_)) => FloorSource::Result(path.into()),
        }
    }
}

/// Is the device one of ours, which can be had without its faults?
fn has_device(bench: &Bench) -> bool {
    bench.lab.as_ref().is_some_and(|lab| lab.impair.is_some())
}

/// Knows floors.
pub enum Known {
    /// At no load there is one.
    None,
    Measured(Box<Rig>, FloorOf),
    Given(Floor),
    Result(Box<Report>, PathBuf),
}

impl Known {
    /// Of what was asked; by default the lab's own device without its faults, where it has one of ours.
    pub fn of(asked: Option<&str>, bench: &Bench, session: &Session) -> Result<Known> {
        let own = has_device(bench);
        let measured = |device: bool| -> Result<Known> {
            let impair = device.then(spec::Faults::default);
            let bench = Bench {
                lab: Some(Lab { impair, ..Lab::default() }),
                links: Vec::new(),
                pattern: Pattern::Pairs,
                gateway: Vec::new(),
                what: bench.what.clone().filter(|_| bench.lab.is_some()),
                plugin: bench.plugin.clone().filter(|_| bench.lab.is_some()),
                warm_up: None,
                ..bench.clone()
            };
            let of = if device { FloorOf::Device } else { FloorOf::Cable };
            Ok(Known::Measured(Box::new(Rig::new(&bench, session)?), of))
        };
        match asked.map(FloorSource::of) {
            None if own => measured(true),
            None => Ok(Known::None),
            Some(FloorSource::Device) if own => measured(true),
            Some(FloorSource::Device) => bail!(NO_DEVICE),
            Some(FloorSource::Cable) => measured(false),
            Some(FloorSource::Time(time)) => {
                let ns = super::nanos(time);
                Ok(Known::Given(Floor { of: FloorOf::Given, min_ns: ns, typical_ns: ns }))
            }
            Some(FloorSource::Result(path)) => {
                read(&path).map(|report| Known::Result(Box::new(report), path))
            }
        }
    }

    /// At a load, with frames of this size.
    pub fn at(
        &mut self,
        frames_per_second: f64,
        trial_ns: u64,
        size: &Size,
        name: &str,
    ) -> Result<Option<Floor>> {
        match self {
            Known::None => Ok(None),
            Known::Given(floor) => Ok(Some(*floor)),
            Known::Result(report, path) => {
                let found = nearest(report, frames_per_second, name);
                found.map(Some).with_context(|| not_of(path, name))
            }
            Known::Measured(rig, of) => {
                let offer = Offer::steady(frames_per_second, trial_ns.min(super::nanos(ENOUGH)), size);
                let ran = rig.run(&offer, &|_| None)?;
                let latency = ran.outcome.latency.filter(|_| !ran.stopped);
                Ok(latency.map(|l| Floor { of: *of, min_ns: l.min_ns, typical_ns: l.p50_ns }))
            }
        }
    }
}

const NO_DEVICE: &str = "`.floor` device: only a lab's device of `.lab.impair` can be had without its faults; give cable, a time (12us), or the result of a run with a cable in the device's place";

/// What can be known of a floor before any trial: whether there can be one for frames of each of these sizes.
pub fn check(asked: Option<&str>, bench: &Bench, sizes: &[&str]) -> Result<()> {
    match asked.map(FloorSource::of) {
        Some(FloorSource::Device) if !has_device(bench) => bail!(NO_DEVICE),
        Some(FloorSource::Result(path)) => {
            let report = read(&path)?;
            let missing = sizes.iter().find(|name| nearest(&report, 0.0, name).is_none());
            missing.map_or(Ok(()), |name| Err(anyhow!(not_of(&path, name))))
        }
        _ => Ok(()),
    }
}

fn not_of(path: &Path, size: &str) -> String {
    format!("`.floor` {}: it has no latency of frames of {size} bytes", path.display())
}

fn read(path: &Path) -> Result<Report> {
    let whence =
        || format!("`.floor` {}: neither `cable`, `device`, a time (12us) nor a result", path.display());
    let report = report::read(path).with_context(whence)?;
    let latencies = report.result.trials.iter().any(|trial| trial.latency_ns.is_some());
    if !latencies {
        bail!(
            "`.floor` {}: a result of `netdyno {}` without trials that measured latency",
            path.display(),
            units::printable(&report.command)
        );
    }
    Ok(report)
}

/// Of the trials with frames of this size, those nearest in load: their medians' median.
fn nearest(report: &Report, frames_per_second: f64, name: &str) -> Option<Floor> {
    let known = report.result.trials.iter().filter(|trial| trial.frame_size == name);
    let known: Vec<_> = known.filter_map(|trial| Some((trial.load, trial.latency_ns?))).collect();
    let away = |load: f64| (load - frames_per_second).abs();
    let least = known.iter().map(|(load, _)| away(*load)).min_by(f64::total_cmp)?;
    let at: Vec<_> =
        known.iter().filter(|(load, _)| away(*load) <= least).map(|(_, latency)| latency).collect();
    let mut medians: Vec<u64> = at.iter().map(|latency| latency.p50).collect();
    medians.sort_unstable();
    Some(Floor {
        of: FloorOf::Result,
        min_ns: at.iter().map(|latency| latency.min).min()?,
        typical_ns: *medians.get(medians.len() / 2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::search::{Trial, TrialLatency};

    #[test]
    fn a_floor_that_cannot_be_is_refused_before_any_trial() {
        let bench = Bench { lab: Some(Lab::default()), ..Bench::default() };
        let file = tempfile::NamedTempFile::new().expect("a file");
        let asked = file.path().display().to_string();
        let refused = |asked: &str, sizes: &[&str]| match check(Some(asked), &bench, sizes) {
            Ok(()) => String::new(),
            Err(error) => format!("{error:#}"),
        };
        assert!(refused(&asked, &["64"]).contains("nor a result"), "{}", refused(&asked, &["64"]));
        let mut report = Report::new("search");
        report.result.trials = vec![Trial {
            frame_size: "64".to_owned(),
            latency_ns: Some(TrialLatency::default()),
            ..Trial::default()
        }];
        std::fs::write(file.path(), serde_json::to_vec(&report).expect("json")).expect("written");
        assert_eq!(refused(&asked, &["64"]), "");
        assert!(refused(&asked, &["64", "1518"]).contains("no latency of frames of 1518 bytes"));
        assert!(refused("device", &[]).contains("`.lab.impair`"));
        assert_eq!(refused("cable", &["64"]), "");
    }

    #[test]
    fn the_floor_of_a_result_is_that_of_the_nearest_load_and_the_same_size() {
        let trial = |size: &str, load: f64, p50: u64| Trial {
            frame_size: size.to_owned(),
            load,
            latency_ns: Some(TrialLatency { min: p50 / 2, p50, ..TrialLatency::default() }),
            ..Trial::default()
        };
        let mut report = Report::new("search");
        report.result.trials = vec![
            trial("64", 1000.0, 8),
            trial("64", 1000.0, 4),
            trial("64", 1000.0, 6),
            trial("64", 9000.0, 90),
            trial("512", 1000.0, 70),
        ];
        let floor = nearest(&report, 1500.0, "64").expect("a floor");
        assert_eq!((floor.min_ns, floor.typical_ns, floor.of), (2, 6, FloorOf::Result));
        assert_eq!(nearest(&report, 8000.0, "64").map(|floor| floor.typical_ns), Some(90));
        assert_eq!(nearest(&report, 8000.0, "1518"), None);
    }
}
