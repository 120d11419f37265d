//! `netdyno reflect`: the far end of a round trip.

use super::jobs::With;
use super::samples::{SAMPLE, Samples, pace};
use super::shared;
use crate::carrier::{self, Ends};
use crate::output;
use crate::panel::{Names, Panel};
use crate::place::Place;
use crate::run::counters::{self, Leaving, Told};
use crate::run::together::Stage;
use crate::{environment, run};
use anyhow::{Context, Result};
use gauges::{Count, Moment, Title};
use meter::Mode;
use meter::reflector::{Options, ReflectMode, Reflected, Reflector};
use port::interface::xdp_features;
use report::live::Progress;
use report::{Choice, Interval, Reflection, Report, Requested, Rx, Totals, Tx};
use spec::Reflect;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

pub fn run(args: &Reflect, with: With<'_>) -> Result<Report> {
    let With { consent, output, together } = with;
    let (duration, count) = (args.duration.as_deref().copied(), args.count.as_deref().copied());
    if let Some(dir) = &output.report {
        report::prepare_dir(dir)?;
    }
    let mut panel = Panel::prepare(output)?;
    let place = Place::find(&args.on)?;
    place.guard(&consent.yes_disrupt)?;
    shared::measurable(&place)?;
    let options = Options {
        mode: if args.generic { ReflectMode::XdpGeneric } else { ReflectMode::Auto },
        only_signed: args.only_signed,
        mac_only: args.mac_only,
        ..Options::default()
    };
    let stop = run::stop_on_signals_with(output)?;
    let mut leaving = Leaving::begin(&place)?;
    let name = &place.interface.name;
    let mut ends = Ends::none();
    ends.optional(&place, "reflect")?;
    let attached = place.run_in(|| Reflector::attach(name, &options))?;
    let reflector = attached.with_context(|| format!("reflecting on {}", place.spec))?;
    let mut report = Report::new("reflect");
    report.requested = Requested {
        command_line: shared::command_line(),
        count,
        duration_ns: duration.map(|d| d.as_nanos() as u64),
        interfaces: vec![place.spec.clone()],
        ..Requested::default()
    };
    report.environment = environment::collect();
    report.environment.interfaces.push(place.describe("reflect"));
    report.environment.engine = Some(choice(&reflector));
    report.warnings.extend(tags(&place, &reflector));
    let following = ends.wait(&stop, &mut report, output.quiet || output.gauges.tui)?;

    if let Some(together) = &together {
        together.meet(Stage::Attached, &stop);
        together.meet(Stage::Ready, &stop);
    }
    let start = Instant::now();
    if !output.quiet && !output.gauges.tui {
        output::note(&format!(
            "reflecting on {} by {}; Ctrl-C ends and reports",
            place.spec,
            reflector.reason()
        ));
        if let Some(obstacle) = obstacle(&place, &reflector) {
            output::note(&obstacle);
        }
        report.warnings.iter().for_each(|warning| output::note(&format!("Warning: {warning}")));
    }
    let mut live = output::live(output);
    if let Some(panel) = &mut panel {
        let title = Title {
            command: "reflect".to_owned(),
            engine: Some(mode_name(reflector.mode()).to_owned()),
            tx: Some(place.spec.clone()),
            rx: Some(place.spec.clone()),
            hands: shared::no_hands(),
            ..Title::default()
        };
        let end = place.run_in(|| port::watch::Watch::begin(name, true))?;
        let ends = vec![(place.spec.clone(), end)];
        panel.begin(title, &report.warnings, ends, Names::unknown(0), &stop)?;
    }
    let mut samples: Samples<Reflected> = Samples::new();
    let mut shown = (0u64, Reflected::default());
    loop {
        let left = duration.map(|d| d.saturating_sub(start.elapsed()));
        std::thread::sleep(left.map_or(SAMPLE, |left| left.min(SAMPLE)));
        let (at, now) = (start.elapsed().as_nanos() as u64, reflector.snapshot());
        let over = stop.load(Relaxed)
            || duration.is_some_and(|d| start.elapsed() >= d)
            || count.is_some_and(|count| now.reflected >= count)
            || !reflector.is_attached();
        samples.push(at, now, over);
        if let Some(panel) = &mut panel {
            let moment = Moment {
                at_ns: at,
                remaining_ns: left.map(|left| left.as_nanos() as u64),
                rx: Some(Count { frames: now.frames, bytes: now.bytes }),
                tx: Some(Count { frames: now.reflected, bytes: now.reflected_bytes }),
                ..Moment::default()
            };
            panel.show(moment, None);
        }
        if let Some(live) = &mut live
            && at - shown.0 >= 2 * SAMPLE.as_nanos() as u64
        {
            let _ = live.update(&progress((at, now), shown, left));
            shown = (at, now);
        }
        if over {
            break;
        }
    }
    drop(panel);
    if let Some(live) = &mut live {
        let _ = live.clear();
    }
    let (detached, mode) = (!reflector.is_attached(), reflector.mode());
    following.end(None, &mut report);
    carrier::warn(&mut report);
    let done = reflector.finish();
    fill(&mut report, &done, mode);
    report.intervals = samples.intervals().map(interval).collect();
    let verdict = &mut report.result.verdict;
    if detached {
        verdict.fall_short(format!("{} was removed, or the reflector detached from it by force", place.spec));
    } else {
        compare(&mut report, &place, mode, &done, &mut leaving);
    }
    let verdict = &mut report.result.verdict;
    if stop.load(Relaxed) && duration.is_some_and(|duration| start.elapsed() < duration) {
        verdict.fall_short("stopped by a signal before its time was over");
    }
    if let Some(count) = count
        && done.reflected < count
    {
        verdict.fall_short(format!("{} of the {count} frames waited for were sent back", done.reflected));
    }
    Ok(report)
}

fn choice(reflector: &Reflector) -> Choice {
    Choice {
        name: mode_name(reflector.mode()).to_owned(),
        reason: reflector.reason().to_owned(),
        ..Choice::default()
    }
}

fn mode_name(mode: Mode) -> &'static str {
    if mode == Mode::XdpGeneric { "xdp-generic" } else { "xdp" }
}

/// What would keep frames from leaving although they are sent back, if it can be seen from here.
fn obstacle(place: &Place, reflector: &Reflector) -> Option<String> {
    if reflector.mode() != Mode::XdpNative {
        return None;
    }
    let index = place.interface.index;
    let features = place.run_in(|| xdp_features(index)).ok()?.ok()??;
    // Of a veth this says whether the peer takes them now. (It is also said of a peer with GRO and without a program;
    // that one takes what is redirected to it, but what is sent back waits there for something to wake it.)
    (is_veth(place) && !features.transmit).then(|| {
        format!(
            "the other end of {} takes no frames from XDP yet: it does while it has an XDP program of its own, such as \
             the meter of `netdyno send --round-trip`; --generic does without",
            place.spec
        )
    })
}

/// That frames go back without the VLAN tags they came with, if they do. In the kernel's receive path a tag that was taken
/// out stays with its frame.
fn tags(place: &Place, reflector: &Reflector) -> Option<String> {
    (reflector.mode() == Mode::XdpNative && shared::takes_tags_out(place)).then(|| {
        format!(
            "frames with a VLAN tag go back without it: {} takes tags out before XDP sees a frame (`ethtool -K {} rxvlan \
             off`, or --generic, keeps them)",
            place.spec, place.interface.name
        )
    })
}

fn is_veth(place: &Place) -> bool {
    place.interface.kind.as_deref() == Some("veth")
}

fn progress(now: (u64, Reflected), before: (u64, Reflected), left: Option<Duration>) -> Progress {
    let span = now.0 - before.0;
    let pace = |of: fn(&Reflected) -> [u64; 2]| Some(pace(of(&now.1), of(&before.1), span));
    Progress {
        elapsed: Duration::from_nanos(now.0),
        remaining: left,
        received: pace(|r| [r.frames, r.bytes]),
        sent: pace(|r| [r.reflected, r.reflected_bytes]),
        ..Progress::default()
    }
}

fn interval([(start_ns, before), (end_ns, now)]: [(u64, Reflected); 2]) -> Interval {
    Interval {
        start_ns,
        end_ns,
        rx_frames: Some(now.frames - before.frames),
        rx_bytes: Some(now.bytes - before.bytes),
        tx_frames: Some(now.reflected - before.reflected),
        tx_bytes: Some(now.reflected_bytes - before.reflected_bytes),
        ..Interval::default()
    }
}

fn fill(report: &mut Report, done: &Reflected, mode: Mode) {
    let span = done.duration_ns();
    report.result.rx = Some(Rx { totals: Totals::over(done.frames, done.bytes, span), ..Rx::default() });
    report.result.tx = Some(Tx {
        totals: Totals::over(done.reflected, done.reflected_bytes, span),
        engine: mode_name(mode).to_owned(),
        ..Tx::default()
    });
    report.result.reflection = Some(Reflection {
        reflected_frames: done.reflected,
        echo_replies: done.echoes,
        group_frames: done.group,
        resolution_frames: done.resolution,
        unsigned_frames: done.without_signature,
        malformed_frames: done.malformed,
    });
}

/// The program hands frames to the driver and never learns what became of them: the interface's own counter tells, or its
/// driver's.
fn compare(report: &mut Report, place: &Place, mode: Mode, done: &Reflected, leaving: &mut Leaving) {
    let Some(moved) = leaving.settled(done.reflected) else {
        report.warnings.push(format!("the counters of {} can no longer be read", place.spec));
        return;
    };
    let natively = mode == Mode::XdpNative;
    let seen = leaving.seen(done.reflected, &moved, natively);
    let told = Told {
        unaccounted: match natively && is_veth(place) {
            true => {
                "; the other end of a veth takes them only while it has an XDP program of its own, such as the meter of \
                 `netdyno send --round-trip`; --generic does without"
            }
            false => "",
        },
        nobody: "--generic sends them by the kernel, which counts them; whoever sent them sees what came back",
        completions: "",
    };
    counters::account(report, counters::compare(&place.spec, done.reflected, &moved), &moved, &seen, &told);
}
