//! `netdyno reflect`: the far end of a round trip.

use super::Run;
use super::{passive, shared};
use crate::carrier::{self, Ends};
use crate::panel::Names;
use crate::place::Place;
use crate::run::counters::{self, Leaving, Told};
use crate::session::{Looked, Session};
use anyhow::{Context, Result};
use port::interface::xdp_features;
use reflector::{Mode, Options, Reflected, Reflector, stamp};
use report::{Choice, Code, Interval, Reflection, Report, Rx, Sentence, StampReflection, Totals, Tx};
use snapshot::{Count, Snapshot, Title};
use spec::Reflect;

impl Run for spec::Reflect {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Reflect, session: &Session) -> Result<Report> {
    let (duration, count) = (args.duration.as_deref().copied(), args.count.as_deref().copied());
    let place = Place::find(&args.on)?;
    // All else goes on to the host.
    match args.only_signed || args.stamp.is_some() {
        true => place.guard(&session.consent.yes_disrupt)?,
        false => place.guard_taking(
            &session.consent.yes_disrupt,
            Some("send back what is signed only, by `.only_signed`"),
        )?,
    }
    shared::measurable(&place)?;
    let options = Options {
        mode: if args.generic { Mode::XdpGeneric } else { Mode::Auto },
        only_signed: args.only_signed,
        mac_only: args.mac_only,
        stamp: args.stamp.as_ref().map(stamp_options),
        ..Options::default()
    };
    session.stop_in_order();
    let mut leaving = Leaving::begin(&place)?;
    let name = &place.interface.name;
    let mut ends = Ends::none();
    ends.optional(&place, "reflect")?;
    let attached = place.run_in(|| Reflector::attach(name, &options))?;
    let reflector = attached.with_context(|| format!("reflecting on {}", place.spec))?;
    let mut report = passive::report("reflect", &place, (count, duration));
    report.environment.engine = Some(choice(&reflector));
    report.warnings.extend(tags(&place, &reflector).map(|said| Code::TagsTakenOut.says(said)));
    let following = ends.wait(session, &mut report)?;

    session.meet()?;
    let by = reflector.reason();
    session.say(Code::Begun, format!("reflecting on {} by {by}; Ctrl-C ends and reports", place.spec));
    if let Some(obstacle) = obstacle(&place, &reflector) {
        session.say(Code::Begun, obstacle);
    }
    session.warn(&report.warnings);
    let title = Title {
        engine: Some(mode_name(reflector.mode()).to_owned()),
        tx: Some(place.spec.clone()),
        rx: Some(place.spec.clone()),
        ..passive::title("reflect")
    };
    let one = std::slice::from_ref(&place);
    let mut panel = passive::panel(session, title, &report, one, Names::unknown(0))?;
    let watched = session.watch(&mut panel, duration, |_| look(&reflector, count));
    session.board.end();
    let (detached, mode) = (!reflector.is_attached(), reflector.mode());
    following.end(None, &mut report);
    carrier::warn(&mut report);
    let done = reflector.finish();
    fill(&mut report, &done, mode);
    report.intervals = watched.samples.intervals().map(interval).collect();
    let verdict = &mut report.result.verdict;
    if detached {
        verdict.fall_short(Code::InterfaceGone, place.why_ended("the reflector"));
    } else {
        compare(&mut report, &place, mode, &done, &mut leaving);
    }
    watched.judge(&mut report);
    passive::judge_count(&mut report, count, done.reflected, ("frames", "were sent back"));
    Ok(report)
}

fn stamp_options(asked: &spec::Stamp) -> stamp::Options {
    let usual = stamp::Options::default();
    stamp::Options {
        port: asked.port.unwrap_or(usual.port),
        stateless: asked.stateless,
        sessions: asked.sessions.unwrap_or(usual.sessions),
        rate: asked.rate,
        sources: asked.sources(),
    }
}

/// How it stands.
fn look(reflector: &Reflector, count: Option<u64>) -> Looked<'static, Reflected> {
    let now = reflector.snapshot();
    let snapshot = Snapshot {
        rx: Some(Count { frames: now.frames, bytes: now.bytes }),
        tx: Some(Count { frames: now.reflected, bytes: now.reflected_bytes }),
        ..Snapshot::default()
    };
    let over = count.is_some_and(|count| now.reflected >= count) || !reflector.is_attached();
    Looked::of(now, over, snapshot)
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

/// What needs no program at the other end.
const WITHOUT: &str = "do without one by `.generic`";

/// What would keep frames from leaving although they are sent back, if it can be seen from here.
fn obstacle(place: &Place, reflector: &Reflector) -> Option<Sentence> {
    if reflector.mode() != Mode::XdpNative {
        return None;
    }
    let index = place.interface.index;
    let features = place.run_in(|| xdp_features(index)).ok()?.ok()??;
    // Of a veth this says whether the peer takes them now. (It is also said of a peer with GRO and without a program;
    // that one takes what is redirected to it, but what is sent back waits there for something to wake it.)
    (place.is_veth() && !features.transmit).then(|| {
        let said = format!(
            "the other end of {} takes no frames from XDP yet: it does while it has an XDP program of its own, such as \
             the meter of a `.round_trip`",
            place.spec
        );
        (said, WITHOUT).into()
    })
}

/// That frames go back without the VLAN tags they came with, if they do. In the kernel's receive path a tag that was taken
/// out stays with its frame.
fn tags(place: &Place, reflector: &Reflector) -> Option<Sentence> {
    (reflector.mode() == Mode::XdpNative && shared::takes_tags_out(place)).then(|| {
        let said = format!(
            "frames with a VLAN tag go back without it: {} takes tags out before XDP sees a frame",
            place.spec
        );
        let name = &place.interface.name;
        (said, format!("keep them by `ethtool -K {name} rxvlan off`, or by `.generic`")).into()
    })
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
        stamp: done.stamp.map(stamp_reflection),
    });
}

fn stamp_reflection(done: stamp::Stamped) -> StampReflection {
    StampReflection {
        sessions: done.sessions,
        without_room_packets: done.without_room,
        limited_packets: done.limited,
        too_short_packets: done.too_short,
        malformed_packets: done.malformed,
        fragments: done.fragments,
        answers_of_others: done.answers,
        not_allowed_packets: done.not_allowed,
        other_frames: done.others,
    }
}

/// The program hands frames to the driver and never learns what became of them: the interface's own counter tells, or its
/// driver's.
fn compare(report: &mut Report, place: &Place, mode: Mode, done: &Reflected, leaving: &mut Leaving) {
    let Some(moved) = leaving.settled(done.reflected) else {
        report
            .warnings
            .add(Code::CountersUnreadable, format!("the counters of {} can no longer be read", place.spec));
        return;
    };
    let natively = mode == Mode::XdpNative;
    let seen = leaving.seen(done.reflected, &moved, natively);
    let told = Told {
        remedy: (natively && place.is_veth()).then_some(WITHOUT),
        unaccounted: match natively && place.is_veth() {
            true => {
                "; the other end of a veth takes them only while it has an XDP program of its own, such as the meter of \
                 a `.round_trip`"
            }
            false => "",
        },
        nobody: "have them sent by the kernel, which counts them (`.generic`), or look at what came back where they were sent",
        completions: None,
    };
    counters::account(report, counters::compare(&place.spec, done.reflected, &moved), &moved, &seen, &told);
}
