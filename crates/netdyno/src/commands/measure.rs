//! `netdyno measure`: what arrives on an interface.

use super::jobs::With;
use super::samples::{SAMPLE, Samples, Spreads};
use super::shared;
use crate::carrier::{self, Ends};
use crate::output;
use crate::panel::{Names, Panel};
use crate::place::Place;
use crate::run::together::Stage;
use crate::{environment, run};
use anyhow::{Context, Result, bail};
use gauges::{Count, Moment, Title};
use meter::{Action, Meter};
use report::live::{Pace, Progress};
use report::{Interval, Report, Requested, Totals};
use spec::{How, Measure};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Streams that are told apart, of who names no number.
const STREAMS: u32 = 1024;

pub fn run(args: &Measure, with: With<'_>) -> Result<Report> {
    let With { consent, output, together } = with;
    let (duration, count) = (args.duration.as_deref().copied(), args.count.as_deref().copied());
    let streams = args.streams.unwrap_or(STREAMS);
    let stream_histograms = args.stream_histograms.unwrap_or(shared::STREAM_HISTOGRAMS);
    if let Some(dir) = &output.report {
        report::prepare_dir(dir)?;
    }
    let mut panel = Panel::prepare(output)?;
    let place = Place::find(&args.on)?;
    // Attaching a program alone takes the link down for a moment, with some drivers. A packet socket only looks on.
    if args.how != How::Packet || args.drop {
        place.guard(&consent.yes_disrupt)?;
    }
    shared::measurable(&place)?;
    let options = meter::Options {
        action: if args.drop { Action::Drop } else { Action::Pass },
        mode: shared::meter_mode(args.how),
        hardware: shared::hardware(&place, args.timestamps, args.how)?,
        streams,
        stream_histograms,
        clock: shared::stamp_clock(args.clock),
        midstream: true,
        tags_taken_out: shared::takes_tags_out(&place),
        tags_told: shared::tells_tags(&place),
        // What is to be dropped only XDP can keep from the host.
        not_by_xdp: run::not_by_xdp(&place, place.interface.mtu as usize + 14).filter(|_| !args.drop),
        ..meter::Options::default()
    };
    let takes =
        u64::from(streams) * meter::STREAM_BYTES + u64::from(stream_histograms) * meter::HISTOGRAM_BYTES;
    let available = engine::memory::available();
    if takes > available {
        bail!(
            "--streams {streams} and their percentiles take {} of memory, and {} are available: give fewer",
            report::units::bytes(takes),
            report::units::bytes(available)
        );
    }
    let name = &place.interface.name;
    let mut ends = Ends::none();
    ends.optional(&place, "measure")?;
    let attached = place.run_in(|| Meter::attach(name, &options))?;
    let meter = attached.with_context(|| format!("measuring on {}", place.spec))?;
    let stop = run::stop_on_signals_with(output)?;
    let mut report = Report::new("measure");
    report.requested = Requested {
        command_line: shared::command_line(),
        count,
        duration_ns: duration.map(|d| d.as_nanos() as u64),
        interfaces: vec![place.spec.clone()],
        ..Requested::default()
    };
    report.environment = environment::collect();
    report.environment.interfaces.push(place.describe("measure"));
    report.environment.meter = Some(run::mode(&meter));
    report.warnings.extend(run::blind(&meter, &place));
    let following = ends.wait(&stop, &mut report, output.quiet || output.gauges.tui)?;

    let clock = run::WatchedClock::start(options.clock);
    if let Some(together) = &together {
        together.meet(Stage::Attached, &stop);
        together.meet(Stage::Ready, &stop);
    }
    let start = Instant::now();
    if !output.quiet && !output.gauges.tui {
        output::note(&format!("measuring on {} by {}; Ctrl-C ends and reports", place.spec, meter.reason()));
    }
    let mut live = output::live(output);
    if let Some(panel) = &mut panel {
        let title = Title {
            command: "measure".to_owned(),
            meter: report.environment.meter.as_ref().map(|meter| meter.name.clone()),
            rx: Some(place.spec.clone()),
            hands: shared::no_hands(),
            ..Title::default()
        };
        let end = place.run_in(|| port::watch::Watch::begin(name, true))?;
        let ends = vec![(place.spec.clone(), end)];
        panel.begin(title, &report.warnings, ends, Names::unknown(streams), &stop)?;
    }
    // Frames and bytes since the start.
    let mut samples: Samples<(u64, u64)> = Samples::new();
    let mut spreads = Spreads::new();
    // The time, too.
    let mut shown = (0u64, 0u64, 0u64);
    loop {
        let left = duration.map(|d| d.saturating_sub(start.elapsed()));
        std::thread::sleep(left.map_or(SAMPLE, |left| left.min(SAMPLE)));
        let seen = meter.snapshot();
        let now = (start.elapsed().as_nanos() as u64, seen.frames, seen.bytes);
        let over = stop.load(Relaxed)
            || duration.is_some_and(|d| start.elapsed() >= d)
            || count.is_some_and(|count| seen.frames >= count)
            || !meter.is_attached();
        let kept = samples.push(now.0, (now.1, now.2), over);
        spreads.follow(kept, &seen.latency);
        if let Some(panel) = &mut panel {
            let signed = seen.signed > 0;
            let moment = Moment {
                at_ns: now.0,
                remaining_ns: left.map(|left| left.as_nanos() as u64),
                rx: Some(Count { frames: now.1, bytes: now.2 }),
                reordered: signed.then_some(seen.reordered),
                duplicated: signed.then_some(seen.duplicates),
                latency: (!seen.latency.is_empty()).then(|| Arc::new(seen.latency.clone())),
                ..Moment::default()
            };
            panel.show(moment, (signed || meter.drops()).then_some(&meter));
        }
        if let Some(live) = &mut live
            && now.0 - shown.0 >= 2 * SAMPLE.as_nanos() as u64
        {
            let rate = Totals::over(now.1 - shown.1, now.2 - shown.2, now.0 - shown.0);
            shown = now;
            let _ = live.update(&Progress {
                elapsed: Duration::from_nanos(now.0),
                remaining: left,
                received: Some(Pace {
                    frames: now.1,
                    frames_per_second: rate.frames_per_second,
                    bits_per_second: rate.bits_per_second,
                }),
                ..Progress::default()
            });
        }
        if over {
            break;
        }
    }
    drop(panel);
    if let Some(live) = &mut live {
        let _ = live.clear();
    }
    if !meter.is_attached() {
        let what = format!("{} was removed, or the meter detached from it by force", place.spec);
        report.result.verdict.fall_short(what);
    }
    following.end(None, &mut report);
    carrier::warn(&mut report);
    let measured = meter.finish();
    run::fill_measured(&mut report, &measured);
    clock.tell(&mut report, &measured);
    let streams = measured.streams.iter().map(|s| run::stream(s, s.lost, false)).collect();
    run::list_streams(&mut report, streams);
    // Where a sender began anew it is not known.
    if !measured.streams.is_empty() && measured.streams.iter().all(|stream| stream.renewed == 0) {
        // Between the first and the last sequence number that arrived; what came before or after nobody here knows.
        let lost = measured.lost();
        let arrived: u64 = measured.streams.iter().map(|s| s.distinct()).sum();
        report.result.loss = Some(report::Loss::of(lost, arrived + lost));
    }
    report.intervals = samples
        .intervals()
        .enumerate()
        .map(|(number, [(start_ns, before), (end_ns, now)])| {
            let mut interval = Interval {
                start_ns,
                end_ns,
                rx_frames: Some(now.0 - before.0),
                rx_bytes: Some(now.1 - before.1),
                ..Interval::default()
            };
            spreads.fill(number + 1, &mut interval);
            interval
        })
        .collect();
    if stop.load(Relaxed) && duration.is_some_and(|duration| start.elapsed() < duration) {
        report.result.verdict.fall_short("stopped by a signal before its time was over");
    }
    if let Some(count) = count
        && measured.totals.frames < count
    {
        report
            .result
            .verdict
            .fall_short(format!("{} of the {count} frames waited for arrived", measured.totals.frames));
    }
    Ok(report)
}
