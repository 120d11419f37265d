//! `netdyno search`: what a device can do, found by trials.

mod axis;
mod measure;
mod throughput;
mod unfinished;

use super::shared;
use crate::session::Session;
use crate::trials::{Offer, Rig, Series, frame_sizes, frames_per_second, mean_bytes, nanos};
use anyhow::{Result, bail};
use report::search::{SearchResult, SizeResult};
use report::{Code, Note, Report, units};
use spec::{Axis, Find, Finding, Search};
use std::time::Duration;
use traffic::Schedule;
use traffic::expr::Size;

/// RFC 2544, 24: trials of at least a minute.
const STANDARD: Duration = Duration::from_secs(60);
/// In a lab, to try it out.
const IN_A_LAB: Duration = Duration::from_secs(3);
/// How long the sender is tried before a search.
const PROBE_NS: u64 = 200_000_000;
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

/// Searches, or goes on with what an earlier result of the same search has.
pub fn run(job: &Search, earlier: Option<Report>, session: &Session) -> Result<Report> {
    let (find, common) = (&job.find, Common { job, session });
    let sizes = frame_sizes(job.bench.size())?;
    check(job)?;
    let own_lengths = own_lengths(job)?;
    let mut bench = job.bench.clone();
    bench.seed =
        bench.seed.or_else(|| earlier.as_ref()?.requested.seed).or_else(|| Some(shared::draw_seed()));
    flows_by_default(find, &mut bench);
    session.heed();
    let mut rig = Rig::new(&bench, session)?;
    rig.show(&format!("search {}", find.name()))?;
    let before = earlier.as_ref().and_then(|report| report.result.search.clone()).unwrap_or_default();
    let kept = earlier.map(|report| report.result.trials).unwrap_or_default();
    let mut series = Series::new(rig, kept);
    let mut report = Report::new("search");
    report.requested.seed = bench.seed;
    let mut search = SearchResult {
        kind: find.name().to_owned(),
        axis: "frames_per_second".to_owned(),
        complete: true,
        ..Default::default()
    };
    let mut notes = Notes::default();
    notes.warnings.extend(own_lengths);
    let many = sizes.len();
    let names: Vec<String> = sizes.iter().map(|(name, _)| name.clone()).collect();
    for (number, (name, size)) in sizes.into_iter().enumerate() {
        series.size_number = (number + 1, many);
        series.size_name.clone_from(&name);
        series.size = size.clone();
        let ranged = before.sizes.get(number).map(|size| (size.least, size.greatest));
        let Some(mut sized) = range(&mut series, &common, name, size, ranged, &mut notes)? else {
            search.complete = false;
            search.untried_sizes = names[number..].to_vec();
            break;
        };
        let (known, sized_now) = (&common, &mut sized);
        let whole = match find {
            Find::Throughput(args) if args.axis == Axis::Rate => {
                throughput::find(&mut series, &args.finding, common.trial_duration(), sized_now, &mut notes)?
            }
            Find::Throughput(args) => {
                axis::search(&mut series, args, known, sized_now, &mut search, &mut notes)?
            }
            Find::Latency(args) => measure::latency(&mut series, args, known, sized_now, &mut notes)?,
            Find::Loss(args) => measure::loss(&mut series, args, known, sized_now, &mut notes)?,
            Find::Burst(args) => measure::burst(&mut series, args, known, sized_now, &mut notes)?,
            Find::Recovery(args) => measure::recovery(&mut series, args, known, sized_now, &mut notes)?,
            Find::Reset(args) => measure::reset(&mut series, args, known, sized_now, &mut notes)?,
            Find::Soak(args) => measure::soak(&mut series, args, known, sized_now, &mut notes)?,
        };
        search.method = method(find);
        search.sizes.push(sized.result);
        if !whole {
            search.complete = false;
            search.untried_sizes = names[number + 1..].to_vec();
            break;
        }
    }
    if series.left_over() > 0 && search.complete {
        bail!(
            "--continue: that result has {} more than this search: it is of another one",
            units::counted(series.left_over() as u64, "trial")
        );
    }
    session.board.end();
    Ok(finish(report, series, search, notes))
}

/// What is to be told at the end.
#[derive(Default)]
struct Notes {
    warnings: Vec<String>,
    shortfalls: Vec<String>,
}

fn finish(mut report: Report, mut series: Series, mut search: SearchResult, notes: Notes) -> Report {
    search.sending_ns = series.sending_ns();
    search.elapsed_ns = nanos(series.elapsed());
    if let Some(environment) = series.rig.environment.take() {
        report.environment = environment;
    } else {
        report.environment = crate::environment::collect();
    }
    let ways = &series.rig.ports.ways;
    report.requested.interfaces =
        ways.iter().flat_map(|way| [way.from_name.clone(), way.to_name.clone()]).collect();
    report.requested.source =
        ways.first().map(|way| report::Source::Expression { expression: way.what.clone() });
    report.warnings = std::mem::take(&mut series.rig.warnings);
    report.warnings.extend(notes.warnings);
    let throughput = search.sizes.iter().find_map(|size| size.throughput.iter().flatten().next().cloned());
    report.result.throughput = throughput.map(|mut found| {
        found.trials = series.rows.clone();
        found
    });
    for reason in notes.shortfalls {
        report.result.verdict.fall_short(reason);
    }
    if !search.complete {
        let after = units::counted(series.rows.len() as u64, "trial");
        let ended = match (series.port_lost.take(), series.fault.take()) {
            (Some(why), _) => {
                format!("ended after {after}, because a port of the tester had no link ({why})")
            }
            (None, Some(why)) => {
                format!("ended after {after}, because the next could not be carried out ({why})")
            }
            (None, None) => format!("interrupted after {after}"),
        };
        report.result.verdict.fall_short(format!(
            "{ended}: what is known so far stands above; --continue goes on from a written result (--report DIR, or --json to a file)"
        ));
    }
    let disturbed: u64 = series.rows.iter().map(|row| u64::from(row.repeated)).sum();
    if disturbed > 0 {
        report.warnings.push(format!(
            "{} done again, because frames were lost or unsent that a moment's stall of this machine could explain",
            match disturbed { 1 => "1 trial was".to_owned(), n => format!("{n} trials were") }
        ));
    }
    report.result.trials = std::mem::take(&mut series.rows);
    report.result.search = Some(search);
    report
}

/// What cannot be, before anything is sent.
fn check(job: &Search) -> Result<()> {
    if job.trial_duration.as_deref().is_some_and(|duration| *duration < Duration::from_millis(10)) {
        bail!("--trial-duration: a trial of less than 10 ms says nothing; give 10ms or more");
    }
    match &job.find {
        Find::Throughput(args) => throughput::check(args),
        Find::Latency(args) => {
            throughput::goals(&args.finding)?;
            let sizes = frame_sizes(job.bench.size())?;
            let names: Vec<&str> = sizes.iter().map(|(name, _)| name.as_str()).collect();
            crate::trials::floor::check(args.floor.as_deref(), &job.bench, &names)
        }
        Find::Burst(args) => throughput::goals(&args.finding).map(drop),
        Find::Recovery(args) => throughput::goals(&args.finding).map(drop),
        Find::Reset(args) => throughput::goals(&args.finding).map(drop),
        Find::Soak(args) => crate::trials::Goal::parse(args.goal()).map(drop),
        Find::Loss(_) => Ok(()),
    }
}

/// How the throughput is found, where it is; and whether something is measured at it afterwards.
fn finding(find: &Find) -> Option<(&Finding, bool)> {
    match find {
        Find::Throughput(args) => Some((&args.finding, false)),
        Find::Latency(args) => args.rates.is_empty().then_some((&args.finding, true)),
        Find::Burst(args) => args.throughput.is_none().then_some((&args.finding, false)),
        Find::Recovery(args) => args.throughput.is_none().then_some((&args.finding, true)),
        Find::Reset(args) => args.rate.is_none().then_some((&args.finding, true)),
        Find::Loss(_) | Find::Soak(_) => None,
    }
}

/// See [`throughput::own_lengths`]. A throughput that was given is not searched for.
fn own_lengths(job: &Search) -> Result<Option<String>> {
    let other_axis = matches!(&job.find, Find::Throughput(args) if args.axis != Axis::Rate);
    let Some((finding, measures)) = finding(&job.find).filter(|_| !other_axis) else { return Ok(None) };
    throughput::own_lengths(finding, job.trial_duration.as_deref().copied(), measures)
}

fn method(find: &Find) -> Option<String> {
    finding(find).map(|(finding, _)| finding.method.to_string())
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

/// The loads that can be tried: what was asked for, what the link carries, and what the sender can do. `None` when
/// interrupted.
fn range(
    series: &mut Series,
    common: &Common<'_>,
    name: String,
    size: Size,
    known: Option<(f64, f64)>,
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
    if let Some((least, greatest)) = known {
        (result.least, result.greatest) = (least, greatest);
        return Ok(Some(Sized { name, size, result }));
    }
    let asked = job.max.as_deref().map(|rate| frames_per_second(*rate, mean, link)).transpose()?;
    let least = |greatest: f64| match job.min.as_deref() {
        Some(rate) => frames_per_second(*rate, mean, link),
        None => Ok((greatest / 1000.0).max(1.0)),
    };
    // A lab's device has a limit that is known: what the sender can do through it says nothing.
    if let (None, Some(bottleneck)) = (&job.max, bottleneck) {
        result.greatest = 2.0 * frames_per_second(bottleneck, mean, link)?;
        result.least = least(result.greatest)?;
        return Ok(Some(Sized { name, size, result }));
    }
    let flows = Some(1u64);
    let wanted = asked.or(theoretical);
    let schedule = wanted.map_or(Schedule::TopSpeed, crate::trials::schedule);
    let offer = Offer { schedule, flows, ..Offer::steady(1.0, PROBE_NS, &size) };
    let mut can = 0.0f64;
    for _ in 0..PROBES {
        let Some(ran) = series.run(&offer, &|_| None)? else { return Ok(None) };
        can = can.max(ran.frames_per_second);
        // What it reached once it can do; that it did not may be a moment's stall.
        if wanted.is_none_or(|wanted| can >= wanted * REACHED) {
            break;
        }
    }
    result.greatest = match wanted {
        Some(wanted) if can >= wanted * REACHED => wanted,
        Some(wanted) => {
            let most = (can * SURE).floor();
            notes.warnings.push(format!(
                "frames of {name} bytes: the sender reaches {} of the {} that were to be the most: loads up to {} are tried",
                units::frame_rate(can),
                units::frame_rate(wanted),
                units::frame_rate(most)
            ));
            most
        }
        None => (can * SURE).floor(),
    };
    result.least = least(result.greatest)?;
    if result.least >= result.greatest {
        bail!(
            "frames of {name} bytes: from {} to {} there is nothing to search: lower --min or raise --max",
            units::frame_rate(result.least),
            units::frame_rate(result.greatest)
        );
    }
    let most = units::frame_rate(result.greatest);
    let said = format!("frames of {name} bytes: loads from {} to {most}", units::frame_rate(result.least));
    series.rig.say(Note::info(Code::SearchRange, said));
    Ok(Some(Sized { name, size, result }))
}
