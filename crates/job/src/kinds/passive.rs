//! What jobs that send nothing of their own do alike: measure, reflect, bridge, live.

use crate::environment;
use crate::panel::{Names, Panel};
use crate::place::Place;
use crate::session::Session;
use anyhow::Result;
use port::watch::Watch;
use report::{Code, Report, Resolved};
use snapshot::{ManualControl, Title};
use std::time::Duration;

/// What can be done to them by hand: nothing but to end them.
fn no_manual_control() -> ManualControl {
    let why = || {
        Some("nothing is sent from here at a rate of its own: there is nothing to pause or change".to_owned())
    };
    ManualControl { no_pause: why(), no_rate: why() }
}

/// What contradicts itself in a job of a library's user, who need not have checked it.
pub fn check(job: &impl spec::Kind) -> Result<()> {
    job.check().map_err(|wrong| anyhow::anyhow!("`.{}`: {}", wrong.member, wrong.what))
}

/// What a screen says of them.
pub fn title(command: &str) -> Title {
    Title { command: command.to_owned(), manual: no_manual_control(), ..Title::default() }
}

/// The report of a job at one interface, with its limits.
pub fn report(command: &'static str, place: &Place, limits: (Option<u64>, Option<Duration>)) -> Report {
    let (count, duration) = limits;
    let mut report = Report::new(command);
    report.resolved = Resolved {
        count,
        duration_ns: duration.map(|d| d.as_nanos() as u64),
        interfaces: vec![place.spec.clone()],
        ..Resolved::default()
    };
    report.environment = environment::collect();
    report.environment.interfaces.push(place.describe(command));
    report
}

/// Says that fewer came than were waited for: what they are ("frames"), and what became of them ("arrived").
pub fn judge_count(report: &mut Report, wanted: Option<u64>, came: u64, (things, what): (&str, &str)) {
    if let Some(wanted) = wanted.filter(|wanted| came < *wanted) {
        let said = format!("{came} of the {wanted} {things} waited for {what}");
        report.result.verdict.fall_short(Code::FewerFrames, said);
    }
}

/// The panel of a job at these places, of which the first is where its cores are looked at.
pub fn panel(
    session: &Session,
    title: Title,
    report: &Report,
    places: &[Place],
    names: Names,
) -> Result<Panel> {
    let end = |(n, place): (usize, &Place)| {
        let name = &place.interface.name;
        Ok((place.spec.clone(), place.run_in(|| Watch::begin(name, n == 0))?))
    };
    let mut panel = Panel::of(&session.board);
    let ends = || places.iter().enumerate().map(end).collect();
    panel.begin(title, &report.warnings, ends, names)?;
    Ok(panel)
}
