//! How long frames took, how that varies, by which clock, and how they followed each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, figures, within};
use crate::data::model::Report;
use crate::data::units::{self, printable};

/// How the delay varies from frame to frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayVariation {
    /// Interarrival jitter (RFC 3550, 6.4.1) at the end: of several streams the greatest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// The 99.9th percentile of the delay over its minimum (RFC 8219, 7.3.1).
    pub pdv_ns: u64,
    /// From one frame of a stream to the next that arrived, without sign (RFC 8219, 7.3.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipdv_ns: Option<Distribution>,
}

/// The clock of time stamps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyClock {
    /// `monotonic`: one host's own, without error between sender and meter; `tai`: one that hosts share.
    pub name: String,
    /// The most by which this host's clock may be off, as the kernel knows it (adjtimex(2): maxerror). That of the other
    /// host comes on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_error_ns: Option<u64>,
    /// By how much it probably is (adjtimex(2): esterror).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_error_ns: Option<u64>,
    /// Does a daemon (PTP, NTP) keep it?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronised: Option<bool>,
    /// By how much it was set during the run: delays before and after cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stepped_ns: Option<i64>,
    /// Who timed the arrivals: `hardware` or `software`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    /// What the hardware's time stamps are worth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareStamps>,
}

/// Times of arrival that the hardware took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HardwareStamps {
    /// Frames that it stamped.
    pub frames: u64,
    /// Frames that came without a stamp and were timed by software.
    pub software_frames: u64,
    /// Most by which its clock was off from what comparisons with this host's had led to expect, their own error included.
    pub max_error_ns: u64,
    /// By how much its clock was set during the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_ns: Option<i64>,
}

figures! {
    /// The delay that half of the measured frames had at most.
    P50 = "latency_p50", "latency, p50", Ns, Lower;
    /// The delay that 99 % of the measured frames had at most.
    P99 = "latency_p99", "latency, p99", Ns, Lower;
    /// The delay that 99.9 % of the measured frames had at most.
    P999 = "latency_p999", "latency, p99.9", Ns, Lower;
    /// From the time stamp in each signed frame to its arrival.
    HISTOGRAM = "latency", "latency", Ns;
    /// The least delay.
    MIN = "latency_min", "latency, least", Ns;
    /// The greatest delay.
    MAX = "latency_max", "latency, greatest", Ns;
    /// Packet delay variation: the 99.9th percentile of the delay over its minimum (RFC 8219, section 7.3.1).
    PDV = "pdv", "PDV", Ns;
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1).
    JITTER = "jitter", "jitter", Ns;
}

pub(super) struct Latency;

impl Section for Latency {
    fn figures(&self, report: &Report) -> Vec<Measured> {
        let mut figures = Vec::new();
        if let Some(d) = report.result.latency_ns.as_ref().filter(|d| d.count > 0) {
            let p50 = within(report, |i| i.latency_p50_ns.map(|ns| ns as f64));
            let p99 = within(report, |i| i.latency_p99_ns.map(|ns| ns as f64));
            figures.push(P50.count(d.p50).with(p50));
            figures.push(P99.count(d.p99).with(p99));
            figures.extend([P999.count(d.p999), MIN.count(d.min), MAX.count(d.max)]);
        }
        if let Some(v) = &report.result.delay_variation {
            figures.push(PDV.count(v.pdv_ns));
            figures.extend(v.jitter_ns.map(|ns| JITTER.is(ns)));
        }
        figures
    }

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
            lines.extend(result.latency_clock.as_ref().map(|c| Line::facts("clock", clock(c))));
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
