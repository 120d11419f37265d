//! How closely frames kept their times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;
use crate::data::units::{self, printable};
use crate::render::html::grid::Facts;

/// When frames left, as the interface stamped them: some of them, one at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Departures {
    /// Who stamped them: `hardware`, or `driver` (when it handed a frame to the hardware).
    pub stamped_by: String,
    /// Frames whose stamps were asked for.
    pub asked_frames: u64,
    /// Of those, stamped.
    pub stamped_frames: u64,
    /// How long after its time a frame left; one that was early counts as 0. Left out at top speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
    /// From when a frame was handed to the kernel until it left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handing_ns: Option<Distribution>,
    /// By how much these times may be wrong, because the stamps are of another clock.
    pub clock_error_ns: u64,
}

/// How closely frames left, or arrived, at their times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// Where the gaps were measured: `sender` or `receiver`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// How far a gap between two frames was from the scheduled one, without sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_error_ns: Option<Distribution>,
    /// How long after its time a frame left; a frame on time counts as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
    /// How late the last frame was: the drift over the whole run. Negative is early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_frame_late_ns: Option<i64>,
    /// Frames later than `late_threshold_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_frames: Option<u64>,
    /// See `late_frames`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_threshold_ns: Option<u64>,
    /// Frames that left or arrived directly after the one before although the schedule left a gap, over all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_to_back_ratio: Option<f64>,
    /// Whether an engine that can do both slept in the gaps between frames or kept its core busy: `slept`, `spun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// How late the machine woke a sleeping thread in 99 of 100 trials before the run: where gaps are not longer than
    /// that by a margin, the sender spins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up_p99_ns: Option<u64>,
    /// What the sending threads had at the end: `ordinary`; `real-time`: they went before all ordinary tasks, because others had held
    /// them up; or where that is not permitted the best nice value that is: `nice -5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// What happened after the sender was held up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
}

/// What happened after the sender was held up (a stall) and had frames overdue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatchUp {
    /// How often nothing left for more than 100 us although a frame was due and nothing kept it on purpose. How late frames are is
    /// something else: that adds up.
    pub stalls: u64,
    /// The longest of them.
    pub longest_stall_ns: u64,
    /// Frames sent above the asked rate to catch up.
    pub frames: u64,
    /// The bound on the rate while catching up, over any millisecond, as a multiple of the rate asked for.
    pub rate_limit_ratio: f64,
    /// The bound by the link, over any millisecond, in bits on the wire (24 bytes more a frame): it holds where it is the higher one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bits_per_second: Option<u64>,
    /// Frames of a burst at most, by that bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_burst_frames: Option<u64>,
    /// The most frames that were handed over within any millisecond of the run; of several sending threads at most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_in_1ms: Option<u64>,
    /// The most frames that arrived within any millisecond, where all arrivals were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_received_in_1ms: Option<u64>,
    /// Schedule time given up because it could not be caught up within the bound.
    pub abandoned_ns: u64,
}

figures! {
    /// How far a gap was from the scheduled one, without sign: half of them at most this.
    GAP_P50 = "gap_error_p50", "gap error, p50", Ns, Lower;
    /// The same of 99 %.
    GAP_P99 = "gap_error_p99", "gap error, p99", Ns, Lower;
    /// How long after its time a frame left: 99 % at most this.
    LATENESS_P99 = "lateness_p99", "lateness, p99", Ns, Lower;
    /// How long after its time each frame was handed to the interface.
    LATENESS = "lateness", "lateness", Ns;
    /// Frames that left more than 100 us late.
    LATE = "late_frames", "late" as "frames late", Count;
    /// Frames without the gap that the schedule left before them, of all.
    BACK_TO_BACK = "back_to_back_ratio", "back to back" as "share of frames back to back", Ratio;
}

pub(super) struct Pace;

impl Section for Pace {
    fn figures(&self, report: &Report) -> Vec<Measured> {
        let Some(p) = &report.result.pacing else { return Vec::new() };
        let mut figures = Vec::new();
        if let Some(d) = &p.gap_error_ns {
            figures.extend([GAP_P50.count(d.p50), GAP_P99.count(d.p99)]);
        }
        figures.extend(p.lateness_ns.as_ref().map(|d| LATENESS_P99.count(d.p99)));
        figures.extend(p.late_frames.map(|n| LATE.count(n)));
        figures.extend(p.back_to_back_ratio.map(|ratio| BACK_TO_BACK.is(ratio)));
        figures
    }

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
