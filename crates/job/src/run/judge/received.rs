//! What is to be known of what arrived, before its figures are trusted.

use report::{Code, Report, Sentence, Totals, units};

use crate::run::counters::another_run;
use crate::run::fill::Outcome;
use crate::run::fill::measured::MOST_STREAMS;
use crate::run::fill::received::{Received, sent_whole};

/// What is to be known of what arrived at a run's meters.
pub fn received(report: &mut Report, run: &Outcome<'_>, measured: &meter::Measurement, received: &Received) {
    self::measured(report, measured);
    let (frames, totals) = (run.sent().counters.frames, &measured.totals);
    if run.setup.round_trip && received.known < frames && sent_whole(run) {
        report.warnings.add(Code::NotSigned, format!(
            "{} could not be signed: whether they came back is not known, and they are in no figure of loss",
            units::counted(frames - received.known, "frame")
        ));
    }
    // At a sending interface others' frames are nothing to be warned of.
    if received.foreign > 0 && !run.setup.round_trip {
        warn_of_foreign(report, received.foreign, received.certain, run.setup.beside_jobs());
    }
    if received.refused_unknown {
        report.warnings.add(Code::RefusedUnknown,
            "whose frames were refused is not known: they are among those that the streams are said to have lost"
                .to_owned(),
        );
    }
    let hidden = another_run(report, totals.duplicates + totals.late);
    report.warnings.extend(hidden.map(|said| Code::AnotherRun.says(said)));
    streams(report, received.unlisted);
}

/// What is to be known of a measurement before its figures are trusted: of a run as of `netdyno measure`.
pub fn measured(report: &mut Report, measured: &meter::Measurement) {
    let totals = &measured.totals;
    let arrived = &Totals::over(totals.frames, totals.bytes, 0);
    if measured.tags_unseen
        && let Some(said) = tags(report.result.tx.as_ref().map(|tx| &tx.totals), arrived)
    {
        report.warnings.add(Code::TagsTakenOut, said);
    }
    if measured.old_stamps {
        let said = "frames carry time stamps of before this run, such as those of a file that was signed earlier: they tell no latency, and \
                    none is given";
        report.warnings.add(Code::LatencyUnknown, (said, "have frames signed as they leave (`.sign`)"));
    }
    if totals.negative_latencies > 0 {
        report.warnings.add(Code::LatencyUnknown, format!(
            "{} carry a time stamp of the future: the sender's clock is not this host's, and no latency can be given",
            units::counted(totals.negative_latencies, "frame")
        ));
    }
    if totals.unplaced > 0 {
        report.warnings.add(
            Code::StreamsBeyond,
            (
                format!(
                    "{} belong to streams beyond the number that can be distinguished",
                    units::counted(totals.unplaced, "frame")
                ),
                "raise `.streams`",
            ),
        );
    }
    if totals.contended > 0 {
        let frames = units::counted(totals.contended, "frame");
        report.warnings.add(
            Code::StreamsContended,
            (
                format!("{frames} are in no stream, because several CPUs had frames of the same one at once"),
                "send fewer streams: below some thousands each CPU has records of its own",
            ),
        );
    }
    if totals.astray > 0 {
        report.warnings.add(
            Code::StreamsAstray,
            format!(
                "{} are in no stream, because their number is so far ahead that it must be damaged",
                units::counted(totals.astray, "frame")
            ),
        );
    }
    let renewed = measured.streams.iter().filter(|stream| stream.renewed > 0).count();
    if renewed > 0 {
        report.warnings.add(
            Code::StreamsRenewed,
            format!(
                "a sender restarted the numbers of {}: loss, copies and order there are not known",
                units::counted(renewed as u64, "stream")
            ),
        );
    }
    if totals.meter_dropped > 0 {
        report.warnings.add(
            Code::MeterMissed,
            (
                format!(
                    "the meter itself missed {}: the packet socket is too slow for this rate",
                    units::counted(totals.meter_dropped, "frame")
                ),
                "lower the rate, or measure by XDP (`.how`)",
            ),
        );
    }
    if totals.late > 0 {
        report.warnings.add(Code::CopiesUnknown, format!(
            "{} came so late that duplicates among them cannot be distinguished from reordered ones: up to as many more may be lost",
            units::counted(totals.late, "frame")
        ));
    }
    let twice: u64 = measured.streams.iter().map(|s| s.unsure.saturating_sub(s.late + s.renewed)).sum();
    if twice > 0 {
        report.warnings.add(Code::CopiesUnknown, format!(
            "streams came to both interfaces, where copies cannot be distinguished from other frames: up to {} may be copies, and as \
             many more lost than is said",
            units::counted(twice, "frame")
        ));
    }
}

/// `unlisted`: how many streams there are, if they are too many to list.
pub fn streams(report: &mut Report, unlisted: Option<u64>) {
    if let Some(all) = unlisted {
        report.warnings.add(Code::StreamsNotListed, format!(
            "{} are too many to list: the report has {}, those with losses and the like first; its sums are over all",
            units::counted(all, "stream"),
            units::count(MOST_STREAMS as u64)
        ));
    }
}

/// Warns of frames that this run did not send. `certain`: no lost frame is among them; `beside`: other jobs of the same file run beside it.
fn warn_of_foreign(report: &mut Report, foreign: u64, certain: bool, beside: bool) {
    let known = report.result.rx.as_ref().and_then(|rx| rx.background_frames).unwrap_or(0);
    const TELL: Option<&str> = Some("sign frames (`.sign`), to tell them apart");
    let (but, remedy) = match (certain, known) {
        (true, _) => (String::new(), None),
        (false, known) if known == foreign => {
            (" (ARP, neighbour discovery and the like), and are not counted as its own".to_owned(), None)
        }
        (false, 0) => (": loss may be larger than it says".to_owned(), TELL),
        (false, known) => {
            let known = units::count(known);
            let but = ", {} of them ARP, neighbour discovery and the like: loss may be larger than it says";
            (but.replace("{}", &known), TELL)
        }
    };
    let counted = units::counted(foreign, "frame");
    let who =
        if beside { "job did not send (another job of the same file may have)" } else { "run did not send" };
    let said = format!("{counted} arrived that this {who}{but}");
    report.warnings.add(Code::ForeignFrames, Sentence::new(said, remedy));
}

/// Whether what a NIC takes out of frames before they are counted matters here, for a person.
fn tags(sent: Option<&Totals>, received: &Totals) -> Option<Sentence> {
    const WHY: &str = "the receiving interface takes VLAN tags out before XDP sees a frame, so that sizes, bytes and bit \
                       rates miss 4 bytes of each that had one";
    const REMEDY: &str = "have them counted by `ethtool -K IFACE rxvlan off`, or by `.how` packet";
    let said = |what: &str| Sentence::new(format!("{what}: {WHY}"), Some(REMEDY));
    let Some(sent) = sent else {
        return (received.frames > 0).then(|| said("whether frames came with VLAN tags is not known here"));
    };
    if sent.frames == received.frames {
        let missing = sent
            .bytes
            .checked_sub(received.bytes)
            .filter(|missing| *missing > 0 && missing.is_multiple_of(4))?;
        let frames = units::counted(missing / 4, "frame");
        return Some(said(&format!("{frames} arrived 4 bytes shorter than sent")));
    }
    // Of frames that were lost nobody knows how long they were: the mean tells, unless only some had a tag.
    let mean = |of: &Totals| of.bytes as f64 / of.frames.max(1) as f64;
    let shorter = received.frames > 0 && mean(sent) - mean(received) >= 1.0;
    shorter.then(|| said("frames arrived shorter than sent, at the mean"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_was_taken_out_is_said_where_it_matters() {
        let totals = |frames, bytes| Totals::over(frames, bytes, 1_000_000);
        let said = |sent: Option<(u64, u64)>, received: (u64, u64)| {
            tags(sent.map(|(frames, bytes)| totals(frames, bytes)).as_ref(), &totals(received.0, received.1))
                .map(|said| said.to_string())
        };
        assert_eq!(said(Some((300, 37_200)), (300, 37_200)), None);
        let all = said(Some((300, 37_200)), (300, 36_000)).expect("all had one");
        assert!(all.starts_with("300 frames arrived 4 bytes shorter") && all.contains("rxvlan off"), "{all}");
        let some = said(Some((300, 37_200)), (300, 37_160)).expect("ten had one");
        assert!(some.starts_with("10 frames"), "{some}");
        // Lost frames, and a device that adds a trailer.
        assert!(said(Some((300, 37_200)), (299, 35_880)).is_some_and(|said| said.contains("at the mean")));
        assert_eq!(said(Some((300, 37_200)), (299, 37_076)), None);
        assert_eq!(said(Some((300, 37_200)), (300, 40_000)), None);
        assert_eq!((said(None, (0, 0)), said(Some((3, 300)), (0, 0))), (None, None));
        assert!(said(None, (5, 600)).is_some_and(|said| said.contains("is not known here")));
    }
}
