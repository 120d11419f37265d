//! How long frames took, how that varies, by which clock, and how they followed each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, figures, within};
use crate::data::model::Report;

/// How the delay varies from frame to frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayVariation {
    /// Interarrival jitter (RFC 3550, 6.4.1) at the end: of several streams the greatest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// The 99.9th percentile of the delay over its minimum (RFC 8219, 7.3.1).
    pub pdv_ns: u64,
    /// Difference between the delays of one frame of a stream and the next that arrived, without sign (RFC 8219, 7.3.2).
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
    /// Estimated error of the clock (adjtimex(2): esterror).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_error_ns: Option<u64>,
    /// The most by which delays may be wrong because the clocks of both hosts are compared by exchanges of time stamps, which take time; 0: it is one
    /// host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison_error_ns: Option<u64>,
    /// Whether a daemon (PTP, NTP) keeps the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronised: Option<bool>,
    /// Amount by which the clock was set during the run: delays before and after cannot be compared.
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
    /// Amount by which its clock was set during the run.
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

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
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
