//! What is to be known of what was sent.

use engine::Job;
use engine::source::Oddities;
use report::{Code, Report, Warnings, units};

use crate::run::fill::Outcome;

/// What is to be known of what was sent.
pub fn sent(report: &mut Report, run: &Outcome<'_>) {
    let (setup, sent) = (run.setup, run.sent());
    let starved = sent.punctuality.as_ref().map_or(0, |kept| kept.starved_ns);
    if starved > 0 {
        report.warnings.add(
            Code::SourceRanDry,
            format!(
                "nothing more came to be sent in the last {} of the run's time: what had come was sent",
                units::time(starved)
            ),
        );
    }
    let unsigned: u64 = run.jobs.iter().filter_map(|job| job.source.seen()).map(|seen| seen.unsigned).sum();
    // Of a round trip it is said with what came back.
    if unsigned > 0 && !setup.round_trip {
        report.warnings.add(
            Code::NotSigned,
            format!(
                "{} had no room for a signature: order and latency are not measured there",
                units::counted(unsigned, "frame")
            ),
        );
    }
    for why in &setup.damage {
        report.result.verdict.fall_short(Code::CaptureDamaged, why);
    }
    stream_notes(&setup.job, report);
}

/// What a source showed while it was read.
pub fn stream_notes(job: &Job, report: &mut Report) {
    let Some(seen) = job.source.seen() else { return };
    oddities(&seen.odd, &mut report.warnings);
    if seen.lost > 0 {
        let lost = units::counted(seen.lost, "frame");
        report
            .warnings
            .add(Code::LostOnPurpose, format!("{lost} lost on purpose, as `.loss` asks: not sent"));
    }
    // What of a capture is sound was sent; that is not all of it.
    for why in &seen.odd.cut_short {
        report.result.verdict.fall_short(Code::CaptureDamaged, why);
    }
}

/// What was odd about the frames of captures, in words.
pub fn oddities(odd: &Oddities, warnings: &mut Warnings) {
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            warnings.add(Code::FramesOdd, format!("{} {what}", units::counted(count, "frame")));
        }
    };
    note(odd.oversized, "longer than the interface takes: left out");
    note(odd.empty, "without a byte: left out");
    note(odd.left, "left out by the edits that were asked for");
    note(odd.foreign, "that could not be made Ethernet frames: left out");
    note(odd.unedited, "sent unedited: their headers cannot be read");
    note(odd.truncated.iter().sum(), "captured shorter than they were (snap length): sent as captured");
    note(odd.backwards, "captured earlier than the one before: sent directly behind it");
    warnings.extend(odd.surplus.iter().map(|said| Code::FramesOdd.says(said)));
}
