//! What a user sees of a sending run, and may do to it while it lasts.

use super::Setup;
use crate::panel::Names;
use crate::place::Place;
use engine::{Course, Job, Reach, Throttle};
use report::{Adjustment, Change, Choice};
use snapshot::{ManualControl, Request, Title};

/// A key changes the rate by so many percent of the one asked for.
const STEP: u32 = 10;
/// Changes that are reported; of more, the last ones replace each other.
const MOST: usize = 1000;

/// What stands above the screen.
pub fn title(setup: &Setup, engine: &str, meter: Option<&Choice>, manual: ManualControl) -> Title {
    Title {
        command: setup.command.to_owned(),
        engine: Some(engine.to_owned()),
        meter: meter.map(|meter| meter.name.clone()),
        tx: names_of(setup.tx.iter()),
        rx: names_of(setup.rx.iter().map(|(place, _)| place)),
        manual,
        ..Title::default()
    }
}

/// The names of the ports at one end.
fn names_of<'a>(places: impl Iterator<Item = &'a Place>) -> Option<String> {
    let names: Vec<&str> = places.map(|place| place.spec.as_str()).collect();
    (!names.is_empty()).then(|| names.join("+"))
}

/// What can be changed while such an engine runs.
pub fn manual(reach: Reach, engine: &str, paced: bool) -> ManualControl {
    let no_pause = (reach < Reach::Pause).then(|| format!("the {engine} engine cannot be paused"));
    let no_rate = if !paced {
        Some("this run sends at top speed: there is no rate to change".to_owned())
    } else if reach < Reach::Rate {
        Some(format!(
            "the {engine} engine's times are frozen into its program: `.engine` afxdp or packet can change"
        ))
    } else {
        None
    };
    ManualControl { no_pause, no_rate }
}

/// The streams' names, and how the workers number them.
pub fn names(whole: &Job, jobs: &[Job], workers: usize) -> Names {
    let Some(program) = whole.source.program() else { return Names::unknown(1) };
    let named = program.streams.iter().filter_map(|s| Some((s.signature?, s.name.as_str().into())));
    let numbers = jobs.iter().filter_map(|job| job.source.facts().streams.into_iter().max());
    Names {
        names: named.collect(),
        workers: u32::try_from(workers).unwrap_or(1),
        streams: numbers.max().map_or(0, |most| most.saturating_add(1)),
    }
}

/// Can that be done?
pub fn can(manual: &ManualControl, request: Request) -> bool {
    match request {
        Request::Toggle | Request::Pause | Request::Resume => manual.no_pause.is_none(),
        Request::Faster | Request::Slower | Request::Percent(_) => manual.no_rate.is_none(),
    }
}

/// Does to the run what is asked for at `now`, and takes it down.
pub fn obey(throttle: &Throttle, now: u64, request: Request, done: &mut Vec<Adjustment>) {
    let Course { percent, paused, .. } = throttle.course();
    let (wanted, pausing, change) = match request {
        Request::Resume | Request::Toggle if paused => (percent, false, Change::Resumed),
        Request::Resume => return,
        Request::Pause | Request::Toggle => (percent, true, Change::Paused),
        Request::Faster => (percent + STEP, paused, Change::Rate),
        Request::Slower => (percent.saturating_sub(STEP), paused, Change::Rate),
        Request::Percent(wanted) => (wanted, paused, Change::Rate),
    };
    if throttle.set(now, wanted, pausing) {
        done.truncate(MOST - 1);
        let rate_ratio = f64::from(throttle.course().percent) / 100.0;
        done.push(Adjustment { at_ns: now, change, rate_ratio });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_taken_down_and_what_changes_nothing_is_not() {
        let (throttle, mut done) = (Throttle::default(), Vec::new());
        let mut at = 0;
        for request in [
            Request::Percent(100),
            Request::Resume,
            Request::Faster,
            Request::Toggle,
            Request::Pause,
            Request::Slower,
            Request::Slower,
            Request::Resume,
        ] {
            at += 1_000;
            obey(&throttle, at, request, &mut done);
        }
        let told: Vec<_> = done.iter().map(|a| (a.at_ns, a.change, (a.rate_ratio * 100.0).round())).collect();
        let paused = (4_000, Change::Paused, 110.0);
        assert_eq!(
            told,
            [
                (3_000, Change::Rate, 110.0),
                paused,
                (6_000, Change::Rate, 100.0),
                (7_000, Change::Rate, 90.0),
                (8_000, Change::Resumed, 90.0)
            ]
        );
        (0..100).for_each(|_| obey(&throttle, at, Request::Slower, &mut done));
        assert_eq!(throttle.course().percent, engine::throttle::LEAST);
    }

    #[test]
    fn what_cannot_be_done_has_a_reason() {
        let can = manual(Reach::Rate, "packet", true);
        assert_eq!(can, ManualControl::default());
        let xdp = manual(Reach::Pause, "xdp", true);
        assert!(xdp.no_pause.is_none() && xdp.no_rate.is_some_and(|why| why.contains("`.engine` afxdp")));
        assert!(manual(Reach::Rate, "packet", false).no_rate.is_some_and(|why| why.contains("top speed")));
        assert!(manual(Reach::Stop, "x", true).no_pause.is_some());
    }
}
