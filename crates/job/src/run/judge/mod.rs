//! The second step after a run: what its counts mean, as verdict and warnings, each with a code. Nothing is measured, read or
//! waited for here.

pub mod departures;
pub mod pace;
pub mod received;
pub mod sent;
pub mod surplus;

use engine::{Counts, Ended};
use port::tx::TxError;
use report::{Code, HostCounter, Report, Sentence, units};

use crate::carrier;
use crate::run::counters::where_they_went;
use crate::run::fill::Outcome;
use crate::run::fill::sent::is_unpaced;
use crate::run::{Setup, ports};

/// Why frames are too long, and what to do about it.
pub struct TooLong {
    pub said: String,
    pub remedy: String,
}

/// Frames that an end of the run has no room for, although the sending interface does: told before any is sent.
pub fn too_long(setup: &Setup) -> Option<TooLong> {
    // A VLAN tag may stand on top of the MTU.
    const TAG: usize = 4;
    const FCS: usize = traffic::expr::FCS as usize;
    // Else `setup.longest` is how long its buffers are: frames are seen as they are read, and held to the sending interface.
    setup.job.source.facts().longest?;
    let ends = setup.rx.iter().map(|(place, _)| place).chain(&setup.tx);
    let short = ends.min_by_key(|place| place.interface.mtu)?;
    let most = short.interface.max_frame();
    (setup.longest > most + TAG).then(|| TooLong {
        said: format!(
            "frames of up to {} bytes (with FCS) are sent, and {}, whose MTU is {}, takes no more than {}",
            setup.longest + FCS,
            short.spec,
            short.interface.mtu,
            most + FCS,
        ),
        remedy: format!(
            "do `ip link set {} mtu {}` there, or give a smaller `.size`",
            short.interface.name,
            setup.longest.saturating_sub(14)
        ),
    })
}

/// Why an interface took no frame any more, where its counter says that it dropped them: at a veth's other end they were too long,
/// or that end is down. A queue that is full drops nothing.
fn why_stuck(counters: &[HostCounter], setup: &Setup, fault: &TxError) -> Option<Sentence> {
    let TxError::Stuck(name, waited_ms) = fault else { return None };
    let place = setup.tx.iter().find(|place| place.interface.name == *name)?;
    let dropped = counters
        .iter()
        .find(|counter| counter.place == place.spec && counter.name == "tx_dropped" && counter.rise > 0)?;
    let what = format!(
        "{} accepted no frame for {waited_ms} ms, and dropped what it was given (tx_dropped rose by {})",
        place.spec,
        units::count(dropped.rise)
    );
    Some(match too_long(setup) {
        Some(TooLong { said, remedy }) => Sentence::new(format!("{what}: {said}"), Some(remedy)),
        None => Sentence::new(
            format!("{what}: its other end takes no frames of this length, or is down"),
            Some("compare the MTU of both ends (`ip link`), or give a smaller `.size`"),
        ),
    })
}

/// Did the run do what was asked?
pub fn judge(report: &mut Report, run: &Outcome<'_>) {
    let (setup, sent) = (run.setup, run.sent());
    let verdict = &mut report.result.verdict;
    let frames = sent.counters.frames;
    match &sent.ended {
        Ended::Done => {}
        Ended::Stopped if setup.endless => {}
        Ended::Stopped => verdict.fall_short(
            Code::Stopped,
            format!("stopped after {}, before all was sent", units::time(sent.duration_ns)),
        ),
        Ended::Fault(fault) => {
            let why =
                why_stuck(&report.result.counters, setup, fault).unwrap_or_else(|| fault.to_string().into());
            let why = why.behind(&run.ended_where());
            match frames {
                0 => verdict.fail(Code::SenderFailed, why),
                _ => verdict.fall_short(Code::SenderFailed, why),
            }
        }
        Ended::SourceFault(fault) if frames == 0 => {
            verdict.fail(Code::SourceFailed, run.ended_where() + &fault.to_string())
        }
        Ended::SourceFault(fault) => {
            verdict.fall_short(Code::SourceFailed, run.ended_where() + &fault.to_string())
        }
    }
    if sent.counters.failed > 0 {
        let why = match run.counts {
            Counts::HandedOver if !report.result.link_events.is_empty() => {
                ("the link was down for a while".to_owned(), None)
            }
            Counts::HandedOver => match too_long(setup) {
                Some(TooLong { said, remedy }) => (said, Some(remedy)),
                None => (
                    "its ring was full, or this core has none".to_owned(),
                    Some("lower `.rate`, or take other `.cores`".to_owned()),
                ),
            },
            Counts::Accepted | Counts::Completed => {
                ("too long for its MTU, or malformed for its driver".to_owned(), None)
            }
        };
        let (why, remedy) = why;
        let said = format!("the interface refused {} ({why})", units::counted(sent.counters.failed, "frame"));
        verdict.fall_short(Code::FramesRefused, Sentence::new(said, remedy));
    }
    if let Some(corrupted) = report.result.rx.as_ref().and_then(|rx| rx.corrupted_frames)
        && corrupted > 0
    {
        verdict.fall_short(
            Code::ContentChanged,
            format!("{} arrived with other content than was sent", units::counted(corrupted, "frame")),
        );
    }
    let lost = report.result.loss.is_some_and(|loss| loss.frames > 0);
    if let Some(said) = carrier::told(&report.result.link_events) {
        let for_good = report.result.link_events.iter().any(|event| event.duration_ns.is_none());
        if lost || for_good || sent.counters.failed > 0 {
            verdict.fall_short(
                Code::LinkLost,
                format!("{said}: what was sent meanwhile was lost there, not by the device"),
            );
        } else {
            report.warnings.add(Code::LinkLost, said);
        }
    }
    if let Some(loss) = report.result.loss
        && loss.frames > 0
    {
        let arrive = if setup.round_trip { "come back" } else { "arrive" };
        let whose = ports::whose_loss(&report.result.ports);
        if setup.round_trip && loss.ratio == 1.0 {
            let remedy = "have the other end send frames back, as `.reflect` does (docs/reflecting.md)";
            verdict.fall_short(Code::FramesLost, ("nothing came back", remedy));
        } else {
            let was = if loss.frames == 1 { "was" } else { "were" };
            let (lost, share) = (units::counted(loss.frames, "frame"), units::percent(loss.ratio));
            let said = format!("{lost} that {was} sent did not {arrive} ({share}){whose}");
            verdict.fall_short(Code::FramesLost, said);
        }
        if let Some(told) = where_they_went(&report.result.counters) {
            verdict.fall_short(Code::FramesExplained, told);
        }
    }
    if let Some(said) = ports::misdirected(&report.result.ports) {
        report.result.verdict.fall_short(Code::FramesMisdirected, said);
    }
    let missing = report.result.tx.as_ref().and_then(|tx| tx.due_not_sent_frames);
    match pace::too_slow(sent, missing).filter(|_| !is_unpaced(report)) {
        Some(reason) if setup.best_effort => report.warnings.add(Code::RateNotReached, reason),
        Some(reason) => report.result.verdict.fall_short(Code::RateNotReached, reason),
        None => {}
    }
}
