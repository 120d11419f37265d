//! `netdyno measure`: what arrives on an interface.

use super::Run;
use super::{passive, shared};
use crate::carrier::{self, Ends};
use crate::dropped::{Trace, Tracing};
use crate::panel::Names;
use crate::place::Place;
use crate::recorder::Recorder;
use crate::run;
use crate::session::{Looked, Session, Watched};
use anyhow::{Context, Result, bail};
use meter::{Action, Measurement, Meter};
use report::{Code, Interval, Report};
use snapshot::{Count, Snapshot, Title};
use spec::{How, Measure};
use std::sync::Arc;

/// Streams that are told apart, of who names no number.
const STREAMS: u32 = 1024;

impl Run for spec::Measure {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

/// How it is measured, as far as this machine and the interface can.
fn options(args: &Measure, place: &Place) -> Result<meter::Options> {
    let streams = args.streams.unwrap_or(STREAMS);
    let stream_histograms = args.stream_histograms.unwrap_or(shared::STREAM_HISTOGRAMS);
    let options = meter::Options {
        action: if args.drop { Action::Drop } else { Action::Pass },
        mode: shared::meter_mode(args.how),
        hardware: shared::hardware(place, args.timestamps, args.how)?,
        streams,
        stream_histograms,
        inter_arrival: args.inter_arrival,
        clock: shared::stamp_clock(args.clock),
        midstream: true,
        tags_taken_out: shared::takes_tags_out(place),
        tags_told: shared::tells_tags(place),
        // What is to be dropped only XDP can keep from the host.
        not_by_xdp: run::not_by_xdp(place, place.interface.mtu as usize + 14)
            .or_else(|| run::on_loopback(place))
            .filter(|_| !args.drop),
        ..meter::Options::default()
    };
    let histograms = stream_histograms.saturating_mul(1 + u32::from(args.inter_arrival));
    let takes = u64::from(streams) * meter::STREAM_BYTES + u64::from(histograms) * meter::HISTOGRAM_BYTES;
    let available = engine::memory::available();
    if takes > available {
        bail!(
            "`.streams` {streams} and their percentiles take {} of memory, and {} are available: give fewer",
            report::units::bytes(takes),
            report::units::bytes(available)
        );
    }
    Ok(options)
}

/// How it stands: frames and bytes since the start.
fn look(meter: &Meter, count: Option<u64>) -> Looked<'_, (u64, u64)> {
    let seen = meter.snapshot();
    let signed = seen.signed > 0;
    let snapshot = Snapshot {
        rx: Some(Count { frames: seen.frames, bytes: seen.bytes }),
        reordered: signed.then_some(seen.reordered),
        trailed: (seen.trailed > 0).then_some(seen.trailed),
        duplicated: signed.then_some(seen.duplicates),
        latency: (!seen.latency.is_empty()).then(|| Arc::new(seen.latency.clone())),
        ..Snapshot::default()
    };
    Looked {
        counts: (seen.frames, seen.bytes),
        over: count.is_some_and(|count| seen.frames >= count) || !meter.is_attached(),
        snapshot,
        meter: (signed || meter.drops()).then_some(meter),
        delays: seen.latency,
        again: None,
    }
}

/// The streams, and the loss that they show.
fn fill_streams(report: &mut Report, measured: &Measurement) {
    let streams = measured.streams.iter().map(|s| run::stream(s, s.lost, false)).collect();
    let unlisted = run::list_streams(report, streams);
    run::judge::received::streams(report, unlisted);
    // Where a sender began anew it is not known.
    if !measured.streams.is_empty() && measured.streams.iter().all(|stream| stream.renewed == 0) {
        // Between the first and the last sequence number that arrived; what came before or after nobody here knows.
        let lost = measured.lost();
        let arrived: u64 = measured.streams.iter().map(|s| s.distinct()).sum();
        report.result.loss = Some(report::Loss::of(lost, arrived + lost));
    }
}

fn run(args: &Measure, session: &Session) -> Result<Report> {
    let (duration, count) = (args.duration.as_deref().copied(), args.count.as_deref().copied());
    let place = Place::find(&args.on)?;
    // Attaching a program alone takes the link down for a moment, with some drivers. A packet socket only looks on.
    match args.drop {
        true => place.guard_taking(&session.consent.yes_disrupt, Some("leave out `.drop`"))?,
        false if args.how != How::Packet => place.guard(&session.consent.yes_disrupt)?,
        false => {}
    }
    shared::measurable(&place)?;
    let options = options(args, &place)?;
    let name = &place.interface.name;
    session.stop_in_order();
    let mut ends = Ends::none();
    ends.optional(&place, "measure")?;
    let recorder = args.capture.as_ref();
    let recorder =
        recorder.map(|asked| Recorder::begin(asked, ("measure", std::slice::from_ref(&place.spec)), false));
    let recorder = recorder.transpose()?;
    let capture = recorder.as_ref().zip(args.capture.as_ref()).map(|(recorder, asked)| recorder.of(asked, 0));
    let options = meter::Options { capture, ..options };
    let wanted = Trace::of(args.trace_drops, args.no_trace_drops, false);
    let tracing = Tracing::begin(wanted, options.clock, &[], &[&place]);
    let attached = place.run_in(|| Meter::attach(name, &options))?;
    let meter = attached.with_context(|| format!("measuring on {}", place.spec))?;
    let mut report = passive::report("measure", &place, (count, duration));
    report.environment.meter = Some(run::mode(&meter));
    let blind = run::blind(&meter, &place);
    report.warnings.extend(blind.clone().map(|said| Code::MeterBlind.says(said)));
    let following = ends.wait(session, &mut report)?;

    let clock = run::WatchedClock::start(options.clock);
    let counting = place.run_in(|| port::watch::Watch::begin(name, true))?;
    session.meet()?;
    session.say(
        Code::Begun,
        format!("measuring on {} by {}; Ctrl-C ends and reports", place.spec, meter.reason()),
    );
    let title = Title {
        meter: report.environment.meter.as_ref().map(|meter| meter.name.clone()),
        rx: Some(place.spec.clone()),
        ..passive::title("measure")
    };
    let one = std::slice::from_ref(&place);
    let mut panel = passive::panel(session, title, &report, one, Names::unknown(options.streams))?;
    let started_ns = clocks::monotonic();
    let mut drops = tracing.follow().map(|follow| follow.begin());
    let keep = |kept| _ = drops.as_mut().map(|drops| drops.follow(kept));
    let watched = session.watch_from(&mut panel, duration, None, keep, |_| look(&meter, count));
    session.board.end();
    if !meter.is_attached() {
        report.result.verdict.fall_short(Code::InterfaceGone, place.why_ended("the meter"));
    }
    following.end(None, &mut report);
    report.result.counters = run::counters::counted(vec![(place.spec.clone(), counting)]);
    carrier::warn(&mut report);
    let measured = meter.finish();
    if let Some(recorder) = &recorder {
        recorder.finish(&[(measured.totals.frames, measured.captured)], &mut report);
    }
    run::fill_measured(&mut report, &measured);
    if let Some(rx) = &mut report.result.rx {
        rx.blind_because = blind;
    }
    run::judge::received::measured(&mut report, &measured);
    clock.tell(&mut report, &measured);
    fill_streams(&mut report, &measured);
    run::judge_inter_arrival(&mut report, args.inter_arrival, false);
    report.intervals = intervals(&watched);
    if let Some(drops) = drops {
        drops.leave(started_ns, std::iter::repeat(true));
    }
    tracing.finish(&mut report);
    watched.judge(&mut report);
    passive::judge_count(&mut report, count, measured.totals.frames, ("frames", "arrived"));
    Ok(report)
}

fn intervals(watched: &Watched<(u64, u64)>) -> Vec<Interval> {
    let pairs = watched.samples.intervals().enumerate();
    pairs
        .map(|(number, [(start_ns, before), (end_ns, now)])| {
            let mut interval = Interval {
                start_ns,
                end_ns,
                rx_frames: Some(now.0 - before.0),
                rx_bytes: Some(now.1 - before.1),
                ..Interval::default()
            };
            watched.spreads.fill(number + 1, &mut interval);
            interval
        })
        .collect()
}
