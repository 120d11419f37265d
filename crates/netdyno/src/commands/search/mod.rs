//! `netdyno search`: what a device can do, found by trials.

mod axis;
mod measure;
mod resume;
mod throughput;
mod unfinished;

use super::shared;
use crate::cli::search::{Axis, Bench, Common, Kind, Search};
use crate::output::{conclude, note};
use crate::run;
use crate::trials::{Offer, Rig, Session, frame_sizes, frames_per_second, mean_bytes, nanos};
use anyhow::{Result, bail};
use report::search::{SearchResult, SizeResult};
use report::{Report, units};
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

pub fn run(args: Search) -> Result<u8> {
    let mut kind = args.kind;
    let mut earlier = None;
    let mut command_line = shared::command_line();
    if let Some(file) = kind.common().resume.clone() {
        let report = resume::read(&file)?;
        command_line.clone_from(&report.requested.command_line);
        kind = resume::again(&report, &file, &kind)?;
        earlier = Some(report);
    }
    let common = kind.common().clone();
    if let Some(dir) = &common.output.report {
        report::prepare_dir(dir)?;
    }
    let sizes = frame_sizes(&common.bench.size)?;
    check(&kind)?;
    let own_lengths = own_lengths(&kind)?;
    let mut bench = common.bench.clone();
    bench.seed =
        bench.seed.or_else(|| earlier.as_ref()?.requested.seed).or_else(|| Some(shared::draw_seed()));
    flows_by_default(&kind, &mut bench);
    let mut rig = Rig::new(&bench, run::stop_on_signals_with(&common.output)?)?;
    rig.show(&format!("search {}", kind.name()), &common.output)?;
    let before = earlier.as_ref().and_then(|report| report.result.search.clone()).unwrap_or_default();
    let kept = earlier.map(|report| report.result.trials).unwrap_or_default();
    let mut session = Session::new(rig, kept, common.output.quiet || common.output.gauges.tui);
    let mut report = Report::new("search");
    report.requested.command_line = command_line;
    report.requested.seed = bench.seed;
    let mut search = SearchResult {
        kind: kind.name().to_owned(),
        axis: "frames_per_second".to_owned(),
        complete: true,
        ..Default::default()
    };
    let mut notes = Notes::default();
    notes.warnings.extend(own_lengths);
    let many = sizes.len();
    let names: Vec<String> = sizes.iter().map(|(name, _)| name.clone()).collect();
    for (number, (name, size)) in sizes.into_iter().enumerate() {
        session.size_number = (number + 1, many);
        session.size_name.clone_from(&name);
        session.size = size.clone();
        let ranged = before.sizes.get(number).map(|size| (size.least, size.greatest));
        let Some(mut sized) = range(&mut session, &common, name, size, ranged, &mut notes)? else {
            search.complete = false;
            search.untried_sizes = names[number..].to_vec();
            break;
        };
        let whole = match &kind {
            Kind::Throughput(args) if args.axis == Axis::Rate => throughput::find(
                &mut session,
                &args.finding,
                trial_duration(&common),
                &mut sized,
                &mut notes,
            )?,
            Kind::Throughput(args) => axis::search(&mut session, args, &mut sized, &mut search, &mut notes)?,
            Kind::Latency(args) => measure::latency(&mut session, args, &mut sized, &mut notes)?,
            Kind::Loss(args) => measure::loss(&mut session, args, &mut sized, &mut notes)?,
            Kind::Burst(args) => measure::burst(&mut session, args, &mut sized, &mut notes)?,
            Kind::Recovery(args) => measure::recovery(&mut session, args, &mut sized, &mut notes)?,
            Kind::Reset(args) => measure::reset(&mut session, args, &mut sized, &mut notes)?,
            Kind::Soak(args) => measure::soak(&mut session, args, &mut sized, &mut notes)?,
        };
        search.method = method(&kind);
        search.sizes.push(sized.result);
        if !whole {
            search.complete = false;
            search.untried_sizes = names[number + 1..].to_vec();
            break;
        }
    }
    if session.left_over() > 0 && search.complete {
        bail!(
            "--continue: that result has {} more than this search: it is of another one",
            units::counted(session.left_over() as u64, "trial")
        );
    }
    finish(report, session, search, notes, &common)
}

/// What is to be told at the end.
#[derive(Default)]
struct Notes {
    warnings: Vec<String>,
    shortfalls: Vec<String>,
}

fn finish(
    mut report: Report,
    mut session: Session,
    mut search: SearchResult,
    notes: Notes,
    common: &Common,
) -> Result<u8> {
    // Gives the terminal back.
    session.rig.show = None;
    search.sending_ns = session.sending_ns();
    search.elapsed_ns = nanos(session.elapsed());
    if let Some(environment) = session.rig.environment.take() {
        report.environment = environment;
    } else {
        report.environment = crate::environment::collect();
    }
    let ways = &session.rig.ports.ways;
    report.requested.interfaces =
        ways.iter().flat_map(|way| [way.from_name.clone(), way.to_name.clone()]).collect();
    report.requested.source =
        ways.first().map(|way| report::Source::Expression { expression: way.what.clone() });
    report.warnings = std::mem::take(&mut session.rig.warnings);
    report.warnings.extend(notes.warnings);
    let throughput = search.sizes.iter().find_map(|size| size.throughput.iter().flatten().next().cloned());
    report.result.throughput = throughput.map(|mut found| {
        found.trials = session.rows.clone();
        found
    });
    for reason in notes.shortfalls {
        report.result.verdict.fall_short(reason);
    }
    if !search.complete {
        let after = units::counted(session.rows.len() as u64, "trial");
        let ended = match (session.port_lost.take(), session.fault.take()) {
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
    let disturbed: u64 = session.rows.iter().map(|row| u64::from(row.repeated)).sum();
    if disturbed > 0 {
        report.warnings.push(format!(
            "{} done again, because frames were lost or unsent that a moment's stall of this machine could explain",
            match disturbed { 1 => "1 trial was".to_owned(), n => format!("{n} trials were") }
        ));
    }
    report.result.trials = std::mem::take(&mut session.rows);
    report.result.search = Some(search);
    conclude(&report, &common.output, false)
}

/// What cannot be, before anything is sent.
fn check(kind: &Kind) -> Result<()> {
    if kind.common().trial_duration.is_some_and(|duration| duration < Duration::from_millis(10)) {
        bail!("--trial-duration: a trial of less than 10 ms says nothing; give 10ms or more");
    }
    match kind {
        Kind::Throughput(args) => throughput::check(args),
        Kind::Latency(args) => {
            throughput::goals(&args.finding)?;
            let sizes = frame_sizes(&args.common.bench.size)?;
            let names: Vec<&str> = sizes.iter().map(|(name, _)| name.as_str()).collect();
            crate::trials::floor::check(args.floor.as_ref(), &args.common.bench, &names)
        }
        Kind::Burst(args) => throughput::goals(&args.finding).map(drop),
        Kind::Recovery(args) => throughput::goals(&args.finding).map(drop),
        Kind::Reset(args) => throughput::goals(&args.finding).map(drop),
        Kind::Soak(args) => crate::trials::Goal::parse(&args.goal).map(drop),
        Kind::Loss(_) => Ok(()),
    }
}

/// See [`throughput::own_lengths`]. A throughput that was given is not searched for.
fn own_lengths(kind: &Kind) -> Result<Option<String>> {
    let (finding, measures) = match kind {
        Kind::Throughput(args) if args.axis == Axis::Rate => (&args.finding, false),
        Kind::Latency(args) if args.rate.is_empty() => (&args.finding, true),
        Kind::Burst(args) if args.throughput.is_none() => (&args.finding, false),
        Kind::Recovery(args) if args.throughput.is_none() => (&args.finding, true),
        Kind::Reset(args) if args.rate.is_none() => (&args.finding, true),
        _ => return Ok(None),
    };
    throughput::own_lengths(finding, kind.common().trial_duration, measures)
}

fn method(kind: &Kind) -> Option<String> {
    use crate::cli::search::Method;
    let finding = match kind {
        Kind::Throughput(args) => &args.finding,
        Kind::Latency(args) if args.rate.is_empty() => &args.finding,
        Kind::Burst(args) if args.throughput.is_none() => &args.finding,
        Kind::Recovery(args) if args.throughput.is_none() => &args.finding,
        Kind::Reset(args) if args.rate.is_none() => &args.finding,
        _ => return None,
    };
    Some(match finding.method {
        Method::Mlrsearch => "mlrsearch".to_owned(),
        Method::Bisect => "bisect".to_owned(),
    })
}

/// With the number of flows as the axis, the frames that are sent by default have so many.
fn flows_by_default(kind: &Kind, bench: &mut Bench) {
    if let Kind::Throughput(args) = kind
        && args.axis == Axis::Flows
        && bench.what.is_none()
    {
        bench.what = Some("ipv4(src=198.18.0.1, dst=198.18.0.2)/udp(sport=1024..{last}, dport=7)".to_owned());
    }
}

/// How long a trial is.
fn trial_duration(common: &Common) -> Duration {
    common.trial_duration.unwrap_or(if common.bench.lab { IN_A_LAB } else { STANDARD })
}

/// The loads that can be tried: what was asked for, what the link carries, and what the sender can do. `None` when
/// interrupted.
fn range(
    session: &mut Session,
    common: &Common,
    name: String,
    size: Size,
    known: Option<(f64, f64)>,
    notes: &mut Notes,
) -> Result<Option<Sized>> {
    let mean = mean_bytes(&size);
    let link = session.rig.bits_per_second()?;
    let theoretical = link.map(|link| link as f64 / ((mean + trial::ethernet::BETWEEN_FRAMES as f64) * 8.0));
    let mut result = SizeResult {
        frame_size: name.clone(),
        mean_frame_bytes: mean,
        theoretical_frames_per_second: theoretical,
        bottleneck_frames_per_second: common
            .bench
            .lab_bottleneck
            .map(|rate| frames_per_second(rate, mean, link))
            .transpose()?,
        ..SizeResult::default()
    };
    if let Some((least, greatest)) = known {
        (result.least, result.greatest) = (least, greatest);
        return Ok(Some(Sized { name, size, result }));
    }
    let asked = common.max.map(|rate| frames_per_second(rate, mean, link)).transpose()?;
    let least = |greatest: f64| match common.min {
        Some(rate) => frames_per_second(rate, mean, link),
        None => Ok((greatest / 1000.0).max(1.0)),
    };
    // A lab's device has a limit that is known: what the sender can do through it says nothing.
    if let (None, Some(bottleneck)) = (common.max, common.bench.lab_bottleneck) {
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
        let Some(ran) = session.run(&offer, &|_| None)? else { return Ok(None) };
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
    if !session.quiet {
        let most = units::frame_rate(result.greatest);
        note(&format!("frames of {name} bytes: loads from {} to {most}", units::frame_rate(result.least)));
    }
    Ok(Some(Sized { name, size, result }))
}
