//! How long frames took, how that varies, and by which clock.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::model::Tx;
use crate::data::sections::latency::LatencyClock;
use crate::data::units::{self, printable};

pub(super) struct Latency;

impl Section for Latency {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let result = &report.result;
        let mut lines = Vec::new();
        if let Some(d) = &result.latency_ns {
            let mut facts =
                vec![format!("min {}", units::time(d.min)), format!("mean {}", units::time(d.mean as u64))];
            facts.extend(d.far_percentiles().map(|(name, value)| format!("{name} {}", units::time(value))));
            let brief = [("min", d.min), ("p50", d.p50), ("p99", d.p99), ("p99.9", d.p999), ("max", d.max)];
            let brief = brief.map(|(name, value)| format!("{name} {}", units::time(value)));
            lines.push(Line::facts(name(report), facts).brief(brief.into()));
            let mut facts = result.latency_clock.as_ref().map(clock).unwrap_or_default();
            facts.extend(result.tx.as_ref().and_then(together));
            lines.push(Line::facts("clock", facts));
        }
        if let Some(v) = &result.delay_variation {
            let mut facts = vec![format!("PDV {}", units::time(v.pdv_ns))];
            facts.extend(v.jitter_ns.map(|ns| format!("jitter {}", units::time(ns as u64))));
            if let Some(d) = &v.ipdv_ns {
                facts.push(format!("from frame to frame mean {}", units::time(d.mean as u64)));
                facts.extend(d.in_words());
            }
            lines.push(Line::facts("variation", facts).unless(true));
        }
        if let Some(d) = &result.arrival_gap_ns {
            let mut facts = vec![format!("between arrivals mean {}", units::time(d.mean as u64))];
            facts.extend(d.in_words());
            lines.push(Line::facts("gaps", facts).unless(true));
        }
        lines
    }

    fn times<'r>(&self, report: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        let result = &report.result;
        let variation = result.delay_variation.as_ref().and_then(|v| v.ipdv_ns.as_ref());
        let all = [
            (name(report), result.latency_ns.as_ref()),
            ("from frame to frame (IPDV)", variation),
            ("between arrivals", result.arrival_gap_ns.as_ref()),
        ];
        all.into_iter().filter_map(|(name, d)| Some((name, d?))).collect()
    }
}

fn name(report: &Report) -> &'static str {
    if report.result.round_trip { "round trip" } else { "latency" }
}

/// Delays count from when the first of frames that leave together was made.
pub fn together(tx: &Tx) -> Option<String> {
    let within =
        tx.stamped_early_ns().map(|ns| format!(", made within {} of it on average", units::time(ns)));
    let frames = tx.stamped_together?;
    Some(format!(
        "one time stamp for {frames} frames that leave together{}; jitter and differences from frame to frame are left out",
        within.unwrap_or_default()
    ))
}

/// What a delay may be wrong by; nothing is said of a clock that sender and meter have in common.
fn clock(clock: &LatencyClock) -> Vec<String> {
    if clock.name == "monotonic" && clock.stepped_ns.is_none() && clock.hardware.is_none() {
        return Vec::new();
    }
    let mut facts = vec![printable(&clock.name).to_uppercase()];
    if let Some(hardware) = &clock.hardware {
        let frames = units::counted(hardware.frames, "arrival");
        facts.push(format!("{frames} timed by the hardware, within {}", units::time(hardware.max_error_ns)));
        if hardware.software_frames > 0 {
            facts.push(format!("{} by software", units::count(hardware.software_frames)));
        }
        let set = hardware.set_ns.map(|ns| format!("the hardware's clock set by {}", units::signed_time(ns)));
        facts.extend(set);
    }
    facts.extend(clock.comparison_error_ns.map(|ns| match ns {
        0 => "of one host".to_owned(),
        ns => format!("delays right within {}", units::time(ns)),
    }));
    facts.extend(clock.max_error_ns.map(|ns| format!("here right within {}", units::time(ns))));
    facts.extend(clock.estimated_error_ns.map(|ns| format!("probably within {}", units::time(ns))));
    match clock.synchronised {
        Some(true) => facts.push("kept by a daemon (PTP, NTP)".to_owned()),
        Some(false) => facts.push("kept by no daemon".to_owned()),
        None => {}
    }
    facts.extend(clock.stepped_ns.map(|ns| format!("set by {} during the run", units::signed_time(ns))));
    facts
}
