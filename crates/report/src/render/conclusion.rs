//! The run in words: one sentence that says what happened, and what to do next. Shared by the terminal summary
//! and the HTML page, so that both say the same.

use crate::data::causes;
use crate::data::model::{Loss, Report, Verdict};
use crate::data::search::TrialVerdict;
use crate::data::units;

/// The verdict in two to five words.
pub fn headline(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Done => "Done as asked",
        Verdict::Short { .. } => "Short of what was asked",
        Verdict::Failed { .. } => "Not done",
    }
}

/// The same of a whole result, whose counts may have been all there was to go by.
pub fn verdict(report: &Report) -> String {
    let headline = headline(&report.result.verdict);
    match report.result.verdict {
        Verdict::Done => headline.to_owned() + &by_count(report),
        _ => headline.to_owned(),
    }
}

/// `, by count only`, where loss is known in no other way.
pub fn by_count(report: &Report) -> String {
    match report.result.loss {
        Some(Loss { by_count_only: true, unsigned_frames: Some(frames), .. }) => {
            format!(", {} by count only", units::counted(frames, "frame"))
        }
        Some(Loss { by_count_only: true, .. }) => ", by count only".to_owned(),
        _ => String::new(),
    }
}

/// Is loss known by count only?
pub fn is_by_count(report: &Report) -> bool {
    report.result.loss.is_some_and(|loss| loss.by_count_only)
}

/// What that means, where it may hide something.
pub const BY_COUNT: &str =
    "not all frames were signed, so that others' may stand in for lost ones (`.sign` signs what can be)";

/// What a result is about that has a section of its own.
fn of_a_section(report: &Report) -> Option<String> {
    let result = &report.result;
    if let Some(search) = &result.search {
        return Some(crate::render::search_text::sentence(report, search));
    }
    let others = [
        result.endpoint.as_ref().map(|of| of.sentence()),
        result.stamp.as_ref().map(|of| of.sentence()),
        result.mesh.as_ref().map(|of| of.sentence()),
        result.endpoint_search.as_ref().map(|of| of.sentence()),
        result.sessions.as_ref().map(|of| of.sentence()),
        result.sessions_search.as_ref().map(|of| of.sentence()),
        result.sessions_served.as_ref().map(|of| of.sentence()),
        result.served.as_ref().map(|of| of.sentence()),
        result.cloned.as_ref().map(|of| of.sentence()),
    ];
    others.into_iter().flatten().next()
}

/// What happened, in one plain sentence made of measured figures only.
pub fn sentence(report: &Report) -> String {
    let result = &report.result;
    if let Some(sentence) = of_a_section(report) {
        return sentence + ".";
    }
    let volume = |t: &crate::data::model::Totals| {
        let mut text = format!("{} ({})", units::counted(t.frames, "frame"), units::bytes(t.bytes));
        if t.duration_ns > 0 && t.frames > 0 {
            let (pps, bps) = (units::frame_rate(t.frames_per_second), units::bit_rate(t.bits_per_second));
            text += &format!(" in {} at {pps} ({bps})", units::time(t.duration_ns));
        }
        text
    };
    let there = if result.round_trip { "came back" } else { "arrived" };
    let mut text = match (&result.tx, &result.rx) {
        (Some(tx), Some(rx)) if result.reflection.is_some() => {
            format!(
                "Received {}; sent {} back",
                volume(&rx.totals),
                units::counted(tx.totals.frames, "frame")
            )
        }
        (Some(tx), Some(rx)) if !result.passages.is_empty() => {
            format!(
                "Received {}; forwarded {}",
                volume(&rx.totals),
                units::counted(tx.totals.frames, "frame")
            )
        }
        (Some(tx), None) => format!("Sent {}; what arrived was not measured", volume(&tx.totals)),
        (Some(tx), Some(rx)) => {
            let sent = format!("Sent {}", volume(&tx.totals));
            match result.loss {
                _ if tx.totals.frames == 0 => format!("{sent}; {} {there}", rx.totals.frames),
                Some(loss) if loss.frames == 0 && loss.by_count_only => {
                    format!(
                        "{sent}; {} {there}, none missing{}",
                        units::count(rx.totals.frames),
                        by_count(report)
                    )
                }
                Some(loss) if loss.frames == 0 => format!("{sent}; every frame {there}"),
                Some(loss) => format!(
                    "{sent}; {} of them ({}) were lost{}",
                    units::count(loss.frames),
                    units::percent(loss.ratio),
                    by_count(report)
                ),
                None => format!("{sent}; {} {there}", units::count(rx.totals.frames)),
            }
        }
        (None, Some(rx)) => match &result.metering {
            Some(metering) => format!(
                "Metered {}; {}",
                volume(&rx.totals),
                units::counted(metering.records(), "flow record")
            ),
            None => format!("Received {}", volume(&rx.totals)),
        },
        (None, None) if !result.trials.is_empty() => {
            let passed = result.trials.iter().filter(|t| t.verdict == TrialVerdict::Passed).count();
            format!("{passed} of {} passed", units::counted(result.trials.len() as u64, "trial"))
        }
        (None, None) if !result.conversations.is_empty() => {
            crate::render::sections::conversations::sentence(&result.conversations)
        }
        (None, None) => match &result.collection {
            Some(collection) => format!(
                "Received {} of {}",
                units::counted(collection.all.records, "flow record"),
                units::counted(collection.exporters, "exporter")
            ),
            None => "Nothing was sent or received".to_owned(),
        },
    };
    if let Some(latency) = result.latency_ns.as_ref().filter(|d| d.count > 0) {
        let (half, most) = (units::time(latency.p50), units::time(latency.p99));
        let way = if result.round_trip { " there and back" } else { "" };
        text += &format!("; half of the frames measured took at most {half}{way}, 99 % at most {most}");
    }
    text + "."
}

/// Why, as far as the result tells: `Likely cause: ...`, or of a search `What stopped it: ...`. Empty where it was done as asked,
/// or the verdict says all.
pub fn cause(report: &Report) -> String {
    if let Some((said, _)) = causes::said(report) {
        return format!("What stopped it: {said}.");
    }
    let said = |cause: causes::Cause| match cause.by {
        // The kernel said so itself.
        causes::By::Dropped => format!("Cause: {}.", cause.said),
        _ => format!("Likely cause: {}.", cause.said),
    };
    causes::of(report).map(said).unwrap_or_default()
}

/// What to type next by the cause; empty where nothing follows from it.
pub(crate) fn remedy(report: &Report) -> String {
    let next = match causes::said(report) {
        Some((_, next)) => next,
        None => causes::of(report).map(|cause| cause.next),
    };
    next.filter(|next| !next.is_empty()).map(|next| format!("Next: {next}.")).unwrap_or_default()
}

/// What to do about a search that was interrupted, where agents carried it out: its trials are not taken from a result.
pub const BEGINS_ANEW: &str = "run it again: a search that agents carry out begins anew";

/// The line that goes on with a search that was interrupted, if its result was written and can be gone on with.
fn going_on(report: &Report, kind: &str, page: &str) -> Option<String> {
    if !report.result.agents.is_empty() {
        return None;
    }
    let folder = units::shell_word(page.strip_suffix("/report.html")?);
    let kind = units::printable(&kind.replace('_', "-"));
    let again = given_again(report);
    Some(format!("Next: go on by netdyno search {kind} `.continue` {folder}{again}."))
}

/// What lifts a guard or runs a program is not taken from a result: who goes on gives it again.
fn given_again(report: &Report) -> String {
    let Some(job) = &report.requested else { return String::new() };
    let interfaces = job["yes_disrupt"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
    let finds = job["find"].as_object().into_iter().flat_map(|find| find.values());
    let commands = finds.filter_map(|find| find["command"].as_str());
    let interfaces = interfaces.map(|name| ("yes_disrupt", name));
    let all = interfaces.chain(commands.map(|command| ("command", command)));
    all.map(|(setting, word)| format!(" `.{setting}` {}", units::shell_word(&units::printable(word))))
        .collect()
}

/// What the user may want to do now; `page` is the written report.html, if any.
pub fn next_step(report: &Report, page: Option<&str>) -> String {
    let interface = report.resolved.interfaces.first().map(|i| units::printable(i)).unwrap_or_default();
    let doctor = || causes::Where::of(report).doctor_command(&interface);
    let result = &report.result;
    let advice = match &result.verdict {
        Verdict::Done if page.is_some() => None,
        Verdict::Done | Verdict::Short { .. } if !result.conversations.is_empty() => None,
        Verdict::Done => Some("Add `.report` to keep this result with plots.".to_owned()),
        // The verdict has named the mend.
        Verdict::Short { .. } if result.round_trip && result.loss.is_some_and(|l| l.ratio == 1.0) => None,
        Verdict::Short { .. } if result.search.is_some() || !result.trials.is_empty() => {
            let open = result.search.as_ref().filter(|search| !search.complete);
            open.and_then(|search| going_on(report, search.kind.as_str(), page?))
                .or_else(|| Some(remedy(report)).filter(|next| !next.is_empty()))
        }
        Verdict::Short { .. } if result.endpoint_search.is_some() => {
            let open = result.endpoint_search.as_ref().filter(|search| !search.complete);
            open.and_then(|search| going_on(report, search.kind.as_str(), page?))
        }
        // Who goes on says again to whom connections are opened, which the search itself says.
        Verdict::Short { .. }
            if result.stamp.is_some() || result.mesh.is_some() || result.sessions_search.is_some() =>
        {
            None
        }
        Verdict::Short { .. } if result.cloned.as_ref().is_some_and(|cloned| cloned.reached_nobody()) => {
            Some("`netdyno clone doctor`, with the same `.from` and `.to`, says which step of a connection is missing.".to_owned())
        }
        Verdict::Short { .. } if result.cloned.is_some() => None,
        Verdict::Short { .. } if result.loss.is_some_and(|l| l.learnt_frames.is_some()) => Some(
            "Send each side by an interface of its own (`.links[1].on` IFACE `.sides` auto), or one side (`.only_side` first)."
                .to_owned(),
        ),
        Verdict::Short { .. } if !remedy(report).is_empty() => Some(remedy(report)),
        // The cause says what to look at.
        Verdict::Short { .. } if causes::of(report).is_some_and(|c| c.by == causes::By::Dropped) => None,
        Verdict::Short { .. } if result.loss.is_some_and(|l| l.frames > 0) => {
            Some("Lower `.rate` to find where loss begins.".to_owned())
        }
        Verdict::Short { .. } => {
            Some(format!("{} says what this machine can reach and what to change.", doctor()))
        }
        Verdict::Failed { .. } => {
            Some(format!("Mend that and run again; {} checks this machine.", doctor()))
        }
    };
    let open = page.map(|page| format!("Open {} for the plots.", units::printable(page)));
    [advice, open].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How far the mean rate was from the one the schedule asked for: `0.0012 % below the rate asked`. Nothing where frames that
/// were due were not sent: how many is said, and the mean over a time that is not the schedule's would be a second share of
/// the same shortfall.
pub fn rate_error(report: &Report) -> Option<String> {
    let tx = report.result.tx.as_ref().filter(|tx| tx.totals.duration_ns > 0)?;
    let asked = tx.intended_frames_per_second.filter(|asked| *asked > 0.0)?;
    if tx.due_not_sent_frames.is_some_and(|missing| missing > 0) {
        return None;
    }
    let error = tx.totals.frames_per_second / asked - 1.0;
    // Below a millionth of a percent it is the rounding of the figures themselves.
    Some(if error.abs() < 1e-8 {
        "mean rate as asked".to_owned()
    } else {
        format!(
            "mean rate {} {} the one asked",
            units::percent(error.abs()),
            if error < 0.0 { "below" } else { "above" }
        )
    })
}

/// Reasons as one clause, each without its full stop.
pub fn reasons(verdict: &Verdict) -> String {
    let plain = |reason: &'_ str| match reason.trim_end() {
        // "8, 9, ..." goes on.
        more if more.ends_with("...") => more.to_owned(),
        sentence => sentence.trim_end_matches('.').to_owned(),
    };
    let clauses: Vec<_> = verdict.reasons().iter().map(|reason| plain(reason)).collect();
    clauses.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::model::{Totals, Tx};

    #[test]
    fn a_search_that_was_interrupted_names_the_line_that_goes_on() {
        let mut report = Report::new("search");
        report.result.search = Some(crate::data::search::SearchResult {
            kind: crate::data::search::SearchKind::Throughput,
            complete: false,
            ..Default::default()
        });
        report.result.verdict.fall_short(crate::Code::SearchIncomplete, "interrupted");
        let next = next_step(&report, Some("found/report.html"));
        let begins = "Next: go on by netdyno search throughput `.continue` found. Open found/report.html";
        assert!(next.starts_with(begins), "{next}");
        assert!(!next_step(&report, None).contains(".continue"), "nothing is kept");
        // What is not taken from the result is given again.
        report.requested = Some(serde_json::json!({
            "kind": "search", "find": {"reset": {"command": "reboot now"}}, "yes_disrupt": ["eth0", "eth1"]
        }));
        let next = next_step(&report, Some("found/report.html"));
        let again = "`.continue` found `.yes_disrupt` eth0 `.yes_disrupt` eth1 `.command` 'reboot now'. Open";
        assert!(next.contains(again), "{next}");
        // One that agents carried out begins anew.
        report.result.agents = vec![crate::data::sections::agents::AgentPart::default()];
        assert!(!next_step(&report, Some("found/report.html")).contains(".continue"));
        report.result.agents.clear();
        report.requested = None;
        // One between two ends likewise.
        report.result.search = None;
        report.result.endpoint_search = Some(crate::data::model::EndpointSearch {
            kind: crate::data::model::EndpointSearchKind::SocketBuffer,
            complete: false,
            ..Default::default()
        });
        let next = next_step(&report, Some("my tests/report.html"));
        assert!(
            next.starts_with("Next: go on by netdyno search socket-buffer `.continue` 'my tests'."),
            "{next}"
        );
        assert!(!next_step(&report, None).contains(".continue"), "nothing is kept");
    }

    #[test]
    fn a_shortfall_is_told_by_one_share() {
        let mut report = Report::new("send");
        let tx = Tx {
            intended_frames_per_second: Some(1000.0),
            due_not_sent_frames: Some(0),
            totals: Totals::over(999, 999 * 60, 1_000_000_000),
            ..Tx::default()
        };
        report.result.tx = Some(tx.clone());
        assert_eq!(rate_error(&report).as_deref(), Some("mean rate 0.10 % below the one asked"));
        // How many of them is said, and the verdict has their share.
        report.result.tx = Some(Tx { due_not_sent_frames: Some(1), ..tx });
        assert_eq!(rate_error(&report), None);
    }
}
