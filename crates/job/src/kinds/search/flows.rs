//! `netdyno search flows`: the highest rate of new flows that a probe records without loss (RFC 6645), or what it records at
//! given ones.

use super::throughput::{known, not_determined, tried};
use super::{Common, Look, Within, unfinished};
use crate::trials::goal::excuse;
use crate::trials::{Goal, How, Offer, Series, nanos, rows_of};
use anyhow::{Result, bail};
use report::search::{FlowsFound, Part, SearchAxis, SearchMethod, SizeResult, Trial, TrialVerdict};
use report::{Code, units};
use spec::{Find, Flows, Search};
use std::time::Duration;
use traffic::Rate;
use traffic::expr::Size;
use trial::{
    BisectPlan, Bounded, Confirmed, ConfirmedPlan, Direction, Repeated, RepeatedPlan, Resolution,
    Search as _, Stage, Wanted, bounded,
};

/// What `load` counts.
const AXIS: &SearchAxis = &SearchAxis::FlowsPerSecond;
/// The parts of such a search.
const SEARCH: &Part = &Part::Flows;
const CONFIRM: &Part = &Part::Confirm;
const SUSTAINED: &Part = &Part::Sustained;
/// So often a rate that failed when it was confirmed is searched again below.
const TIMES: u32 = 5;
const IN_A_LAB: Duration = Duration::from_secs(4);

/// New flows per second.
pub fn flows_per_second(rate: Rate, packets_per_flow: u32) -> Result<f64> {
    Ok(match rate {
        Rate::Flows(flows) => flows.as_f64(),
        Rate::Frames(frames) => frames.as_f64() / f64::from(packets_per_flow),
        other => bail!("{other}: give new flows per second here: 100kflows/s"),
    })
}

/// How long a trial is: RFC 6645, 5.2: at least twice the idle timeout.
fn duration(flows: &Flows, common: &Common<'_>) -> Duration {
    let in_a_lab = common.in_a_lab();
    let usual = if in_a_lab { IN_A_LAB } else { Duration::from_secs(60) };
    common.asked_duration().unwrap_or(usual.max(2 * flows.idle(in_a_lab)))
}

impl Look for Flows {
    fn check(&self, job: &Search) -> Result<()> {
        #[cfg(not(feature = "netflow"))]
        crate::kinds::no_netflow::refuse::<()>()?;
        if self.precision() <= 0.0 || self.precision() >= 1.0 {
            bail!("`.precision`: give more than 0 and less than 100%");
        }
        let idle = self.idle(job.bench.lab.is_some());
        if job.trial_duration.as_deref().is_some_and(|trial| *trial < 2 * idle) {
            bail!(
                "`.trial_duration`: a trial is at least twice the idle timeout (`.idle_timeout`, {}), or nothing ends while it is sent (RFC 6645, 5.2)",
                units::time(nanos(idle))
            );
        }
        Ok(())
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        within.search.axis = AXIS.clone();
        let trial = duration(self, within.common);
        let whole = match self.rates.is_empty() {
            true => search(self, trial, within)?,
            false => sustained(self, trial, within)?,
        };
        let rows = &within.series.course.rows;
        describe(self, within.common, &mut within.sized.result, rows);
        Ok(whole)
    }
}

/// The loads that can be tried, where they are given.
pub fn given(find: &Find) -> Result<Option<(f64, f64)>> {
    let Find::Flows(flows) = find else { return Ok(None) };
    let rates: Vec<f64> = flows
        .rates
        .iter()
        .map(|rate| flows_per_second(**rate, flows.packets_per_flow()))
        .collect::<Result<_>>()?;
    let (least, greatest) =
        rates.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), rate| (lo.min(*rate), hi.max(*rate)));
    Ok((greatest > 0.0).then_some((least, greatest)))
}

fn offered<'a>(flows: &Flows, size: &'a Size) -> impl Fn(&Wanted) -> Offer + 'a {
    let each = f64::from(flows.packets_per_flow());
    move |wanted| Offer::steady(wanted.load * each, wanted.duration_ns, size)
}

/// One trial at each rate.
fn sustained(flows: &Flows, trial: Duration, within: &mut Within<'_, '_>) -> Result<bool> {
    let Within { series, sized, notes, .. } = within;
    let each = flows.packets_per_flow();
    let loads: Vec<f64> =
        flows.rates.iter().map(|rate| flows_per_second(**rate, each)).collect::<Result<_>>()?;
    let wanted = loads.len() as u64;
    let plan = RepeatedPlan { loads, trial_ns: nanos(trial), then: None, repetitions: 1 };
    let (offer, goal) = (offered(flows, &sized.size), Goal::no_loss());
    let known = |_: &Repeated, _: &Series| String::new();
    let how = How { part: SUSTAINED, again: None, goal: &goal, offer: &offer, known: &known, of_rate: false };
    let whole = series.drive(&mut Repeated::new(plan), &how)?;
    if !whole {
        sized.result.unfinished.push(unfinished::trials(series, SUSTAINED, &sized.name, Some(wanted)));
    }
    let rows = rows_of(&series.course.rows, SUSTAINED, &sized.name);
    let unjudged = rows.filter(|row| row.verdict.is_the_testers()).count();
    if unjudged > 0 {
        notes.warnings.add(
            Code::SenderTooSlow,
            format!(
                "{} say nothing of the probe: the tester itself did not keep to the rate, or lost records",
                units::counted(unjudged as u64, "trial")
            ),
        );
    }
    Ok(whole)
}

/// Halving, and what was found tried again.
fn search(flows: &Flows, trial: Duration, within: &mut Within<'_, '_>) -> Result<bool> {
    let Within { series, sized, search, notes, .. } = within;
    let goal = Goal::no_loss();
    series.goals = vec![goal];
    search.method = Some(SearchMethod::Bisect);
    let show = |rate: f64| units::flow_rate(rate);
    let least = sized.result.least;
    let mut confirmed = Confirmed::new(ConfirmedPlan {
        bisect: BisectPlan {
            least,
            greatest: sized.result.greatest,
            resolution: Resolution::Relative(flows.precision()),
            direction: Direction::Greatest,
            limits: goal.limits,
            trial_ns: nanos(trial),
            short_ns: nanos(trial),
            retries: 0,
            retry_loss_ratio: 0.0,
            in_parts: true,
            enough: 0.0,
        },
        apart: flows.precision(),
        confirm: flows.confirm(),
        stage: Stage::Measure,
        all: true,
        times: TIMES,
        whole: false,
        raise: None,
    })?;
    let name = sized.name.clone();
    let known = |confirmed: &Confirmed, series: &Series| {
        let tried = tried(series, SEARCH, &name, &goal);
        let bounds = confirmed.bounds().first().copied().unwrap_or_default();
        known(bounds, tried, Direction::Greatest, &show)
    };
    let offer = offered(flows, &sized.size);
    let how =
        How { part: SEARCH, again: Some(CONFIRM), goal: &goal, offer: &offer, known: &known, of_rate: false };
    let whole = series.drive(&mut confirmed, &how)?;
    for rate in confirmed.inconsistent() {
        let said = format!(
            "{} passed once and failed when it was tried again: the probe, or this machine, does not do the same each time",
            show(*rate)
        );
        notes.warnings.add(Code::DeviceInconsistent, said);
    }
    if !whole {
        let of = (SEARCH, sized.name.as_str());
        sized.result.unfinished.push(unfinished::bound(series, of, &goal, AXIS, Direction::Greatest));
        return Ok(false);
    }
    let (passed, failed) = (confirmed.found(), confirmed.failed());
    let excuse = excuse(rows_of(&series.course.rows, SEARCH, &sized.name).map(|row| &row.verdict));
    let bound = failed.map(|failed| {
        let parts = [SEARCH, CONFIRM];
        let tried = parts.iter().flat_map(|part| tried(series, part, &sized.name, &goal));
        bounded(passed, failed, tried.collect::<Vec<_>>())
    });
    let mut reached = true;
    let failed = match bound {
        Some(Bounded::NotDetermined(least)) => {
            notes.shortfalls.push(not_determined(passed, least, &excuse, &show));
            reached = false;
            least
        }
        Some(Bounded::ByDevice(failed)) => Some(failed),
        None => None,
    };
    if let (Some(failed), None) = (failed, passed) {
        notes.shortfalls.push(format!("nothing passed, not even {}", show(failed.min(least))).into());
    }
    sized.result.found = passed;
    sized.result.flows =
        passed.map(|rate| FlowsFound { failed_flows_per_second: failed, reached, ..FlowsFound::at(rate) });
    Ok(true)
}

/// What RFC 6645 (appendix A) asks to be reported beside the rate.
fn describe(flows: &Flows, common: &Common<'_>, result: &mut SizeResult, rows: &[Trial]) {
    let in_a_lab = common.in_a_lab();
    let Some(found) = &mut result.flows else { return };
    found.probe = match (&flows.command, flows.probe, in_a_lab) {
        (Some(command), ..) => command.clone(),
        (None, probe, true) => probe.unwrap_or_default().to_string(),
        (None, _, false) => "elsewhere".to_owned(),
    };
    found.key_order = flows.order.to_string();
    found.packets_per_flow = flows.packets_per_flow();
    found.idle_timeout_ns = nanos(flows.idle(in_a_lab));
    found.active_timeout_ns = nanos(flows.active(in_a_lab));
    found.cache_size_flows = flows.cache(in_a_lab);
    let last = rows
        .iter()
        .rev()
        .filter(|row| row.load == found.flows_per_second && row.verdict == TrialVerdict::Passed);
    let Some(trial) = last.filter_map(|row| row.flows).next() else { return };
    found.created_flows = trial.sent_flows;
    found.cache_flows = trial.cache_flows;
    found.export_records_per_second = trial.export_records_per_second;
    found.records_per_message = trial.records_per_message();
    found.bytes_per_record = trial.message_bytes as f64 / trial.records.max(1) as f64;
    found.control_records = trial.control_records;
}
