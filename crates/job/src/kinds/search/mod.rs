//! `netdyno search`: what a device can do, found by trials.

mod axis;
mod flows;
mod measure;
mod throughput;
mod unfinished;

use super::Run;
use super::shared;
use crate::session::Session;
use crate::trials::{Offer, Rig, Series, far, frame_sizes, frames_per_second, mean_bytes, nanos};
use anyhow::{Result, bail};
use report::causes::{self, StoppedAt};
use report::search::{SearchAxis, SearchKind, SearchMethod, SearchResult, SizeResult};
use report::{Cause, Code, Note, Report, Sentence, Stopped, Warnings, units};
use spec::{Axis, Find, Finding, Method, Search};
use std::time::Duration;
use traffic::expr::Size;
use traffic::{Rate, Schedule};

/// RFC 2544, 24: trials of at least a minute.
const STANDARD: Duration = Duration::from_secs(60);
/// In a lab, to try it out.
const IN_A_LAB: Duration = Duration::from_secs(3);
/// How long the sender is tried before a search.
const PROBE_NS: u64 = 200_000_000;
/// And with a probe, whose caches are cold at first.
const PROBE_OF_FLOWS_NS: u64 = 1_000_000_000;
/// And how often at most, if it does not reach what is wanted.
const PROBES: u32 = 3;
/// Of what the sender does at top speed, to be kept for minutes.
const SURE: f64 = 0.8;
/// A sender that reaches so much of a load reaches it.
const REACHED: f64 = 0.995;

/// What one frame size's search knows.
struct Sized {
    name: String,
    size: Size,
    result: SizeResult,
}

/// What all searches share.
struct Common<'a> {
    job: &'a Search,
    session: &'a Session,
}

impl Common<'_> {
    fn in_a_lab(&self) -> bool {
        self.job.bench.lab.is_some()
    }

    /// How long a trial is to be, if that was asked for.
    fn asked_duration(&self) -> Option<Duration> {
        self.job.trial_duration.as_deref().copied()
    }

    /// How long a trial is.
    fn trial_duration(&self) -> Duration {
        self.asked_duration().unwrap_or(if self.in_a_lab() { IN_A_LAB } else { STANDARD })
    }
}

/// What is searched for.
trait Look {
    /// What cannot be, before anything is sent.
    fn check(&self, job: &Search) -> Result<()>;

    /// How the throughput is found, where that is looked for; and whether something is measured at it afterwards.
    fn finding(&self) -> Option<(&Finding, bool)> {
        None
    }

    /// Looks for it with frames of one size; false when interrupted.
    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool>;
}

/// What a search with frames of one size has at hand.
struct Within<'a, 'job> {
    series: &'a mut Series,
    common: &'a Common<'job>,
    sized: &'a mut Sized,
    search: &'a mut SearchResult,
    notes: &'a mut Notes,
}

/// All searches that there are.
fn looks(find: &Find) -> &dyn Look {
    match find {
        Find::Throughput(search) => search,
        Find::Latency(search) => search,
        Find::Loss(search) => search,
        Find::Burst(search) => search,
        Find::Recovery(search) => search,
        Find::Reset(search) => search,
        Find::Soak(search) => search,
        Find::Flows(search) => search,
    }
}

impl Run for spec::Search {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, None, &session)
    }
}

/// Searches, or goes on with what an earlier result of the same search has.
///
/// # Errors
/// What was asked for that cannot be, or that the earlier result is of another search.
pub fn run(job: &Search, earlier: Option<Report>, session: &Session) -> Result<Report> {
    let (find, common) = (&job.find, Common { job, session });
    let looks = looks(find);
    let sizes = frame_sizes(job.bench.size())?;
    check(job)?;
    let own_lengths = own_lengths(job)?;
    let mut bench = job.bench.clone();
    bench.seed = bench.seed.or_else(|| earlier.as_ref()?.resolved.seed).or_else(|| Some(shared::draw_seed()));
    flows_by_default(find, &mut bench);
    if session.elsewhere.is_some() {
        far::check_search(find)?;
    }
    session.stop_in_order();
    let mut rig = match find {
        Find::Flows(flows) => Rig::with_probe(&bench, flows, session)?,
        _ => Rig::new(&bench, session)?,
    };
    rig.show(&format!("search {}", find.name()))?;
    let before = earlier.as_ref().and_then(|report| report.result.search.clone()).unwrap_or_default();
    let kept = earlier.map(|report| report.result.trials).unwrap_or_default();
    let mut series = Series::new(rig, kept);
    let mut report = Report::new("search");
    report.resolved.seed = bench.seed;
    let mut search = SearchResult {
        kind: SearchKind::from(find.name()),
        axis: SearchAxis::FramesPerSecond,
        complete: true,
        ..Default::default()
    };
    let mut notes = Notes::default();
    notes.warnings.extend(own_lengths.map(|said| Code::FramesOdd.says(said)));
    let many = sizes.len();
    let names: Vec<String> = sizes.iter().map(|(name, _)| name.clone()).collect();
    for (number, (name, size)) in sizes.into_iter().enumerate() {
        series.course.size_number = (number + 1, many);
        series.course.ahead.size(number + 1, many);
        series.size_name.clone_from(&name);
        series.size = size.clone();
        let ranged = before.sizes.get(number);
        let Some(mut sized) = range(&mut series, &common, name, size, ranged, &mut notes)? else {
            search.complete = false;
            search.untried_sizes = names[number..].to_vec();
            break;
        };
        let whole = looks.look(&mut Within {
            series: &mut series,
            common: &common,
            sized: &mut sized,
            search: &mut search,
            notes: &mut notes,
        })?;
        search.method = looks.finding().map(|(finding, _)| method(finding));
        search.sizes.push(sized.result);
        if !whole {
            search.complete = false;
            search.untried_sizes = names[number + 1..].to_vec();
            break;
        }
    }
    if search.complete {
        series.course.check_used()?;
    }
    session.board.end();
    Ok(finish(report, series, search, notes))
}

/// How a throughput is looked for.
fn method(finding: &Finding) -> SearchMethod {
    match finding.method {
        Method::Mlrsearch => SearchMethod::Mlrsearch,
        Method::Bisect => SearchMethod::Bisect,
    }
}

/// What is reported at the end.
#[derive(Default)]
struct Notes {
    warnings: Warnings,
    shortfalls: Vec<Sentence>,
}

fn finish(mut report: Report, mut series: Series, mut search: SearchResult, notes: Notes) -> Report {
    for size in &mut search.sizes {
        size.stopped = stopped(size, &series.course.rows);
    }
    search.sending_ns = series.course.sending_ns();
    search.elapsed_ns = nanos(series.course.elapsed());
    if let Some(environment) = series.rig.environment.take() {
        report.environment = environment;
    } else {
        report.environment = crate::environment::collect();
    }
    let ways = &series.rig.ports.ways;
    report.resolved.interfaces = ways.iter().flat_map(|way| way.names()).collect();
    report.resolved.source = ways.first().map(|way| way.source());
    report.result.agents = std::mem::take(&mut series.rig.agents);
    report.result.latency_clock = series.rig.latency_clock.take();
    report.warnings = std::mem::take(&mut series.rig.warnings);
    report.warnings.extend(notes.warnings);
    // The first that there is: it names its goal.
    let throughput = search.sizes.iter().find_map(|size| size.throughput.iter().flatten().next().cloned());
    report.result.throughput = throughput.map(|mut found| {
        found.trials = series.course.rows.clone();
        found
    });
    for reason in notes.shortfalls {
        report.result.verdict.fall_short(Code::GoalNotReached, reason);
    }
    if !search.complete {
        let lost = series.port_lost.take().map(|why| format!("a port of the tester had no link ({why})"));
        series.course.judge_incomplete(&mut report, lost);
    }
    let disturbed: u64 = series.course.rows.iter().map(|row| u64::from(row.repeated)).sum();
    if disturbed > 0 {
        report.warnings.add(Code::TrialsRepeated, repeated(series.course.rows.len() as u64, disturbed));
    }
    report.result.trials = std::mem::take(&mut series.course.rows);
    report.result.search = Some(search);
    report
}

/// How many attempts the trials took that are listed.
fn repeated(trials: u64, repeated: u64) -> String {
    format!(
        "{} took {}: {} repeated, because frames were lost or unsent that a moment's stall of this machine could explain",
        units::counted(trials, "trial"),
        units::counted(trials + repeated, "attempt"),
        if repeated == 1 { "1 was".to_owned() } else { format!("{} were", units::count(repeated)) }
    )
}

/// What cannot be, before anything is sent.
fn check(job: &Search) -> Result<()> {
    if job.trial_duration.as_deref().is_some_and(|duration| *duration < Duration::from_millis(10)) {
        bail!("`.trial_duration`: a trial of less than 10 ms says nothing; give 10ms or more");
    }
    looks(&job.find).check(job)
}

/// See [`throughput::own_lengths`]. A throughput that was given is not searched for.
fn own_lengths(job: &Search) -> Result<Option<String>> {
    let other_axis = matches!(&job.find, Find::Throughput(args) if args.axis != Axis::Rate);
    let finding = looks(&job.find).finding();
    let Some((finding, measures)) = finding.filter(|_| !other_axis) else { return Ok(None) };
    throughput::own_lengths(finding, job.trial_duration.as_deref().copied(), measures)
}

/// With the number of flows as the axis, the frames that are sent by default have so many.
fn flows_by_default(find: &Find, bench: &mut spec::Bench) {
    if let Find::Throughput(args) = find
        && args.axis == Axis::Flows
        && bench.what.is_none()
    {
        bench.what = Some("ipv4(src=198.18.0.1, dst=198.18.0.2)/udp(sport=1024..{last}, dport=7)".to_owned());
    }
}

/// What keeps a search from more, as long as no trial does.
fn ends(at: StoppedAt, cause: Option<Cause>) -> Option<Stopped> {
    Some(Stopped { at, cause, ..Stopped::default() })
}

/// What kept the search of a size from more: what its trials say, or if none failed, what ended the loads that were tried.
fn stopped(size: &SizeResult, trials: &[report::search::Trial]) -> Option<Stopped> {
    if !size.unfinished.is_empty() {
        return size.stopped.clone();
    }
    let greatest = || {
        let found = size.of_first_goal().map(|found| found.frames_per_second);
        let found = found.or(size.flows.as_ref().map(|found| found.flows_per_second));
        let all = found.is_some_and(|found| found >= size.greatest * (1.0 - 1e-9));
        size.stopped.clone().filter(|_| all)
    };
    causes::stopped(size, trials).or_else(greatest)
}

/// The loads that can be tried: what was asked for, what the link carries, and what the sender can do. `None` when
/// interrupted.
fn range(
    series: &mut Series,
    common: &Common<'_>,
    name: String,
    size: Size,
    known: Option<&SizeResult>,
    notes: &mut Notes,
) -> Result<Option<Sized>> {
    let mean = mean_bytes(&size);
    let job = common.job;
    let bottleneck = job.bench.lab.as_ref().and_then(|lab| lab.bottleneck.as_deref().copied());
    let link = series.rig.bits_per_second()?;
    let theoretical = link.map(|link| link as f64 / ((mean + trial::ethernet::BETWEEN_FRAMES as f64) * 8.0));
    let mut result = SizeResult {
        frame_size: name.clone(),
        mean_frame_bytes: mean,
        theoretical_frames_per_second: theoretical,
        bottleneck_frames_per_second: bottleneck
            .map(|rate| frames_per_second(rate, mean, link))
            .transpose()?,
        ..SizeResult::default()
    };
    if let Some(known) = known {
        (result.least, result.greatest) = (known.least, known.greatest);
        result.stopped = known.stopped.clone().filter(|stopped| stopped.at != StoppedAt::Trial);
        return Ok(Some(Sized { name, size, result }));
    }
    // Of flows the load is their number.
    let each = match &job.find {
        Find::Flows(flows) => flows.packets_per_flow(),
        _ => 1,
    };
    if let Some((least, greatest)) = flows::given(&job.find)? {
        (result.least, result.greatest) = (least, greatest);
        result.stopped = ends(StoppedAt::Asked, None);
        return Ok(Some(Sized { name, size, result }));
    }
    let of_flows = matches!(job.find, Find::Flows(_));
    let per_second = |rate: Rate| match of_flows {
        true => flows::flows_per_second(rate, each).map(|flows| flows * f64::from(each)),
        false => frames_per_second(rate, mean, link),
    };
    let asked = job.max.as_deref().map(|rate| per_second(*rate)).transpose()?;
    let least = |greatest: f64| match job.min.as_deref() {
        Some(rate) => per_second(*rate),
        None => Ok((greatest / 1000.0).max(1.0)),
    };
    // A lab's device has a limit that is known: what the sender can do through it says nothing.
    if let (None, Some(bottleneck)) = (&job.max, bottleneck) {
        result.greatest = 2.0 * frames_per_second(bottleneck, mean, link)?;
        result.least = least(result.greatest)?;
        return Ok(Some(Sized { name, size, result }));
    }
    let flows = Some(1u64);
    let probe_ns = if of_flows { PROBE_OF_FLOWS_NS } else { PROBE_NS };
    let wanted = asked.or(theoretical);
    let schedule = wanted.map_or(Schedule::TopSpeed, crate::trials::schedule);
    let offer = Offer { schedule, flows, tried: of_flows, ..Offer::steady(1.0, probe_ns, &size) };
    let Some((can, limit)) = reach(series, &offer, wanted)? else { return Ok(None) };
    result.greatest = match wanted {
        Some(wanted) if can >= wanted * REACHED => wanted,
        Some(wanted) => {
            let most = (can * SURE).floor();
            notes.warnings.add(Code::SenderTooSlow, format!(
                "frames of {name} bytes: the sender reaches {} of the {} that were to be the most: loads up to {} are tried",
                units::frame_rate(can),
                units::frame_rate(wanted),
                units::frame_rate(most)
            ));
            most
        }
        None => (can * SURE).floor(),
    };
    result.stopped = match asked {
        _ if wanted.is_none_or(|wanted| result.greatest < wanted) => ends(StoppedAt::Sender, limit),
        Some(_) => ends(StoppedAt::Asked, None),
        None => ends(StoppedAt::Link, None),
    };
    result.least = least(result.greatest)?;
    if result.least >= result.greatest {
        bail!(
            "frames of {name} bytes: from {} to {} there is nothing to search: lower `.min` or raise `.max`",
            units::frame_rate(result.least),
            units::frame_rate(result.greatest)
        );
    }
    if of_flows {
        result.least /= f64::from(each);
        result.greatest /= f64::from(each);
    }
    let show = |load: f64| if of_flows { units::flow_rate(load) } else { units::frame_rate(load) };
    let said =
        format!("frames of {name} bytes: loads from {} to {}", show(result.least), show(result.greatest));
    series.rig.say(Note::info(Code::SearchRange, said));
    Ok(Some(Sized { name, size, result }))
}

/// The most frames a second that the sender reached of what was wanted, and what kept it from more. `None` when interrupted.
fn reach(series: &mut Series, offer: &Offer, wanted: Option<f64>) -> Result<Option<(f64, Option<Cause>)>> {
    let (mut can, mut limit) = (0.0f64, None);
    for _ in 0..PROBES {
        let Some(ran) = series.run(offer, &|_| None)? else { return Ok(None) };
        if ran.frames_per_second > can {
            (can, limit) = (ran.frames_per_second, causes::rate(&ran.report, series.rig.place()));
        }
        // What it reached once it can do; that it did not may be a moment's stall.
        if wanted.is_none_or(|wanted| can >= wanted * REACHED) {
            break;
        }
    }
    Ok(Some((can, limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_trials_are_told_apart() {
        let said = repeated(19, 31);
        assert!(said.starts_with("19 trials took 50 attempts: 31 were repeated, because"), "{said}");
        assert!(repeated(1, 1).starts_with("1 trial took 2 attempts: 1 was repeated"));
    }
}
