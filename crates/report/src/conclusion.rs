//! The run in words: one sentence that says what happened, and what to do next. Shared by the terminal summary
//! and the HTML page, so that both say the same.

use crate::model::{Loss, Passage, Reflection, Report, Verdict};
use crate::units;

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
    "not all frames were signed, so that others' may stand in for lost ones (--sign signs what can be)";

/// What happened, in one plain sentence made of measured figures only.
pub fn sentence(report: &Report) -> String {
    let result = &report.result;
    if let Some(search) = &result.search {
        return crate::search_text::sentence(report, search) + ".";
    }
    let volume = |t: &crate::model::Totals| {
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
        (None, Some(rx)) => format!("Received {}", volume(&rx.totals)),
        (None, None) if !result.trials.is_empty() => {
            let passed = result.trials.iter().filter(|t| t.verdict == "passed").count();
            format!("{passed} of {} passed", units::counted(result.trials.len() as u64, "trial"))
        }
        (None, None) if !result.conversations.is_empty() => {
            crate::conversations::sentence(&result.conversations)
        }
        (None, None) => "Nothing was sent or received".to_owned(),
    };
    if let Some(latency) = result.latency_ns.as_ref().filter(|d| d.count > 0) {
        let (half, most) = (units::time(latency.p50), units::time(latency.p99));
        let way = if result.round_trip { " there and back" } else { "" };
        text += &format!("; half of the frames measured took at most {half}{way}, 99 % at most {most}");
    }
    text + "."
}

/// What a reflector did, as facts with their counts; those that are always of interest, and what else there was.
pub fn reflection(r: &Reflection) -> Vec<(&'static str, u64)> {
    let all = [
        ("sent back", r.reflected_frames, true),
        ("of them echo replies", r.echo_replies, false),
        ("to groups, passed to the host", r.group_frames, false),
        ("of address resolution, passed to the host", r.resolution_frames, false),
        ("unsigned, passed to the host", r.unsigned_frames, false),
        ("malformed, dropped", r.malformed_frames, false),
    ];
    all.into_iter().filter(|(_, count, always)| *always || *count > 0).map(|(what, n, _)| (what, n)).collect()
}

/// One direction of a bridge or device, in words.
pub fn passage_facts(p: &Passage) -> Vec<String> {
    let way = format!("{} > {}", units::printable(&p.from), units::printable(&p.to));
    let received = units::counted(p.received.frames, "frame");
    let pieces = p.forwarded_buffers.map(|n| format!(" in {} pieces (super-frames)", units::count(n)));
    let pieces = pieces.unwrap_or_default();
    let mut facts = vec![format!("{way}: {received} in, {} out{pieces}", units::count(p.forwarded.frames))];
    facts.extend(passage(p).into_iter().map(|(what, n)| format!("{} {what}", units::count(n))));
    if let Some(late) = p.impaired.as_ref().and_then(|impaired| impaired.lateness_ns.as_ref()) {
        let [half, most, max] = [late.p50, late.p99, late.max].map(units::time);
        facts.push(format!("left after their time by p50 {half}, p99 {most}, max {max}"));
    }
    facts
}

/// What became of frames in one direction of a bridge, as facts with their counts: what there was of it.
pub fn passage(p: &Passage) -> Vec<(&'static str, u64)> {
    let all = [
        ("edited", p.edited_frames.unwrap_or(0), p.edited_frames.is_some()),
        ("without headers to edit", p.unedited_frames.unwrap_or(0), false),
        ("checksums completed", p.completed_checksums, false),
        ("not chosen", p.filtered_frames, false),
        ("left out by the edits", p.left_out_frames, false),
        ("after the last one asked for", p.over_limit_frames, false),
        ("too long", p.too_long_frames, false),
        ("refused", p.refused_frames, false),
        ("super-frames not cut", p.uncut_frames, false),
        ("missed for want of room", p.missed_frames, false),
    ];
    let i = p.impaired.as_ref();
    let faults = i.map(|i| {
        [
            ("lost on purpose", i.lost_frames, false),
            ("lost while flapping", i.flapped_frames, false),
            ("copies", i.copied_frames, false),
            ("reordered", i.reordered_frames, false),
            ("corrupted", i.corrupted_frames, false),
            ("held while frozen", i.frozen_frames, false),
            ("sent back", i.returned_frames, false),
            ("lost for want of memory", i.full_frames, false),
            ("lost with the device's end", i.inside_frames, false),
        ]
    });
    let all = all.into_iter().chain(faults.into_iter().flatten());
    all.filter(|(_, count, always)| *always || *count > 0).map(|(what, n, _)| (what, n)).collect()
}

/// What the user may want to do now; `page` is the written report.html, if any.
pub fn next_step(report: &Report, page: Option<&str>) -> String {
    let interface =
        report.requested.interfaces.first().map(|i| format!(" {}", units::printable(i))).unwrap_or_default();
    let result = &report.result;
    let advice = match &result.verdict {
        Verdict::Done if page.is_some() => None,
        Verdict::Done | Verdict::Short { .. } if !result.conversations.is_empty() => None,
        Verdict::Done => Some("Add `--report DIR` to keep this result with plots.".to_owned()),
        // The verdict has named the mend.
        Verdict::Short { .. } if result.round_trip && result.loss.is_some_and(|l| l.ratio == 1.0) => None,
        Verdict::Short { .. } if result.search.is_some() || !result.trials.is_empty() => None,
        Verdict::Short { .. } if result.loss.is_some_and(|l| l.learnt_frames.is_some()) => Some(
            "Send each side by an interface of its own (`--on2 IFACE --sides auto`), or one side (`--only-side first`)."
                .to_owned(),
        ),
        Verdict::Short { .. } if result.loss.is_some_and(|l| l.frames > 0) => {
            Some("Lower `--rate` to find where loss begins.".to_owned())
        }
        Verdict::Short { .. } => {
            Some(format!("`netdyno doctor{interface}` says what this machine can reach and what to change."))
        }
        Verdict::Failed { .. } => {
            Some(format!("Mend that and run again; `netdyno doctor{interface}` checks this machine."))
        }
    };
    let open = page.map(|page| format!("Open {} for the plots.", units::printable(page)));
    [advice, open].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How far the mean rate was from the one the schedule asked for: `0.0012 % below the rate asked`.
pub fn rate_error(report: &Report) -> Option<String> {
    let tx = report.result.tx.as_ref().filter(|tx| tx.totals.duration_ns > 0)?;
    let asked = tx.offered_frames_per_second.filter(|asked| *asked > 0.0)?;
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
    let clauses: Vec<_> = verdict.reasons().iter().map(|r| r.trim_end().trim_end_matches('.')).collect();
    clauses.join("; ")
}
