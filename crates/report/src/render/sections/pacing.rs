//! How closely frames kept their times, in lines and facts.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::pacing::{CatchUp, Departures, Pacing};
use crate::data::units::{self, printable};
use crate::render::html::grid::Facts;

pub(super) struct Pace;

impl Section for Pace {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let departed = report.result.tx.as_ref().and_then(|tx| tx.departures.as_ref());
        let frames = report.result.tx.as_ref().map_or(0, |tx| tx.totals.frames);
        let pace = report.result.pacing.iter();
        let pace = pace.map(|p| {
            let mut facts = pacing(p);
            facts.extend(others(report));
            Line::facts("pacing", facts).unless(crate::render::expected::pacing(p, frames))
        });
        pace.chain(departed.map(|d| Line::facts("departed", departures(d)))).collect()
    }

    fn times<'r>(&self, report: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        let Some(p) = &report.result.pacing else { return Vec::new() };
        let all = [("gap error", p.gap_error_ns.as_ref()), ("lateness", p.lateness_ns.as_ref())];
        all.into_iter().filter_map(|(name, d)| Some((name, d?))).collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(p) = &report.result.pacing else { return };
        facts.maybe("last frame late by", p.last_frame_late_ns.map(units::signed_time));
        let than =
            p.late_threshold_ns.map(|ns| format!(" by more than {}", units::time(ns))).unwrap_or_default();
        facts.maybe("frames late", p.late_frames.map(|n| format!("{}{than}", units::count(n))));
        facts.maybe("frames back to back", p.back_to_back_ratio.map(units::percent));
        facts.maybe("priority", p.priority.as_deref().map(printable));
        if let Some(c) = p.catch_up {
            let (stalls, longest) = (units::count(c.stalls), units::time(c.longest_stall_ns));
            facts.add("stalls", &format!("{stalls}, the longest {longest}"));
            let frames = units::counted(c.frames, "frame");
            facts.add("caught up", &format!("{frames}, {}", bound(&c)));
            facts.maybe("most frames in 1 ms", most(&c));
            facts.add("schedule given up", &units::time(c.abandoned_ns));
        }
    }
}

/// How long others had a sending CPU, if that is worth a word.
fn others(report: &Report) -> Option<String> {
    let cores = report.result.tx.iter().flat_map(|tx| &tx.cores);
    let most = cores.filter_map(|core| core.others_ratio).fold(0.0, f64::max);
    (most >= 0.01)
        .then(|| format!("other programs had the sender's CPU for {} of the time", units::percent(most)))
}

/// "at no more than 5.00 Gbit/s on the wire, or 2.0 times the rate".
fn bound(c: &CatchUp) -> String {
    if c.rate_limit_ratio <= 1.0 {
        // Trials: more than that is put off.
        return "by at most 0.4 ms each".to_owned();
    }
    let times = format!("{:.1} times the rate", c.rate_limit_ratio);
    match c.limit_bits_per_second {
        None => format!("at no more than {times}"),
        Some(bits) => {
            format!(
                "at no more than {} on the wire, or {times} if that is more",
                units::bit_rate(bits as f64)
            )
        }
    }
}

/// What a device saw, as far as it is known.
fn most(c: &CatchUp) -> Option<String> {
    let received = c.most_received_in_1ms.map(|n| format!("{} received", units::count(n)));
    received.or_else(|| c.most_in_1ms.map(|n| format!("{} sent", units::count(n))))
}

fn pacing(p: &Pacing) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(d) = &p.gap_error_ns {
        let mut all = d.in_words();
        facts.push(format!("gap error {}", all.next().unwrap_or_default()));
        facts.extend(all);
    }
    if let Some(late) = p.last_frame_late_ns {
        facts.push(format!("last frame late by {}", units::signed_time(late)));
    }
    if let Some(late) = p.late_frames {
        let than =
            p.late_threshold_ns.map(|ns| format!(" by more than {}", units::time(ns))).unwrap_or_default();
        facts.push(format!("{} late{than}", units::count(late)));
    }
    if let Some(ratio) = p.back_to_back_ratio {
        facts.push(format!("{} back to back", units::percent(ratio)));
    }
    if let Some(priority) = p.priority.as_deref().filter(|priority| *priority != "ordinary") {
        facts.push(format!("priority {}", printable(priority)));
    }
    if let Some(c) = p.catch_up.filter(|c| c.stalls > 0) {
        let (stalls, longest) = (units::counted(c.stalls, "stall"), units::time(c.longest_stall_ns));
        facts.push(format!("{stalls} of up to {longest}, caught up {}", bound(&c)));
        facts.extend(most(&c).map(|most| format!("most frames in 1 ms: {most}")));
        if c.abandoned_ns > 0 {
            facts.push(format!("{} given up", units::time(c.abandoned_ns)));
        }
    }
    facts
}

/// "stamped by the hardware: 998 of 1,000 asked for", and how late these were.
fn departures(d: &Departures) -> Vec<String> {
    let mut facts = vec![format!(
        "stamped by the {}: {} of {} asked for",
        printable(&d.stamped_by),
        units::count(d.stamped_frames),
        units::count(d.asked_frames)
    )];
    for (what, of) in [("late", &d.lateness_ns), ("in kernel and driver", &d.handing_ns)] {
        let Some(of) = of else { continue };
        let mut all = of.in_words();
        facts.push(format!("{what} {}", all.next().unwrap_or_default()));
        facts.extend(all);
    }
    facts.push(format!("right within {}", units::time(d.clock_error_ns)));
    facts
}
