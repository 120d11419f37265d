//! The loads that were offered: what was sent to the network or the server. Loss, latency and what was received depend on them,
//! so that figures of two loads tell nothing of what was tested; a difference of loads is told first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Named;
use crate::data::figure::Unit;
use crate::data::model::Report;
use crate::data::sections::{pacing, sent};
use crate::data::units;

/// Loads that differ by less are the same: so far do senders vary by themselves.
const ALIKE: f64 = 0.01;

/// By what a figure was not judged that depends on loads which differ.
pub(crate) const LOADS: &str = "the offered loads differ";
/// By what the sent rate was not judged where another one was asked for.
pub(crate) const ASKED: &str = "another load was asked for";

/// A load that results of both sides offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedLoad {
    /// What was sent: `frames`, `requests`, `datagrams to the server`, ...
    pub name: String,
    /// What the values are in.
    pub unit: Unit,
    /// What side A sent in a second; of several results the mean.
    pub a: f64,
    /// What side B sent in a second; of several results the mean.
    pub b: f64,
    /// What side A was asked to send in a second; left out where no rate was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_asked: Option<f64>,
    /// What side B was asked to send in a second; left out where no rate was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b_asked: Option<f64>,
    /// They differ by more than 1 % (or what was asked to be ignored), and by more than the results of a side do among themselves.
    pub differ: bool,
}

/// A load of one result.
struct Offered {
    name: &'static str,
    unit: Unit,
    value: f64,
    asked: Option<f64>,
}

/// The loads that all results have. Differences of a smaller ratio than `least` count as none.
pub(super) fn of(a: &[Named<'_>], b: &[Named<'_>], least: f64) -> Vec<OfferedLoad> {
    let [of_a, of_b] = [a, b].map(|side| side.iter().map(|n| offered(n.report)).collect::<Vec<_>>());
    let Some(first) = of_a.first() else { return Vec::new() };
    let all = first.iter().filter_map(|load| {
        let named = |side: &[Vec<Offered>]| -> Option<Vec<(f64, Option<f64>)>> {
            let find =
                |of: &Vec<Offered>| of.iter().find(|o| o.name == load.name).map(|o| (o.value, o.asked));
            side.iter().map(find).collect()
        };
        let (x, y) = (named(&of_a)?, named(&of_b)?);
        let (mean_a, mean_b) = (mean(x.iter().map(|v| v.0))?, mean(y.iter().map(|v| v.0))?);
        let asked =
            |of: &[(f64, Option<f64>)]| mean(of.iter().map(|v| v.1).collect::<Option<Vec<_>>>()?.into_iter());
        let within = |value: f64, of: &[(f64, Option<f64>)]| {
            of.len() > 1 && of.iter().any(|v| v.0 <= value) && of.iter().any(|v| v.0 >= value)
        };
        let as_steady = within(mean_a, &y) && within(mean_b, &x);
        Some(OfferedLoad {
            name: load.name.to_owned(),
            unit: load.unit,
            a: mean_a,
            b: mean_b,
            a_asked: asked(&x),
            b_asked: asked(&y),
            differ: differ(mean_a, mean_b, least.max(ALIKE)) && !as_steady,
        })
    });
    all.collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn differ(a: f64, b: f64, ratio: f64) -> bool {
    (a - b).abs() > ratio * a.abs().max(b.abs())
}

/// What a result sent. A search offers many loads, and says for each figure at which it was.
fn offered(report: &Report) -> Vec<Offered> {
    let result = &report.result;
    let mut all = Vec::new();
    // What a reflector sends is its answer, no load.
    let tx = result.tx.as_ref().filter(|tx| tx.totals.duration_ns > 0);
    if let Some(tx) = tx.filter(|_| result.search.is_none() && result.reflection.is_none()) {
        all.push(Offered {
            name: "frames",
            unit: Unit::FramesPerSecond,
            value: tx.totals.frames_per_second,
            asked: tx.intended_frames_per_second,
        });
        all.push(Offered {
            name: "bits on layer 2",
            unit: Unit::BitsPerSecond,
            value: tx.totals.bits_per_second,
            asked: None,
        });
    }
    let Some(endpoint) = &result.endpoint else { return all };
    // In a closed loop the rate of transactions is what is measured, as a TCP stream's is.
    if let Some((t, asked)) =
        endpoint.transactions.as_ref().and_then(|t| t.intended_per_second.map(|r| (t, r)))
    {
        let sent = t.count.saturating_add(t.lost) as f64;
        let due = sent + t.unsent as f64;
        let share = if due > 0.0 { sent / due } else { 1.0 };
        all.push(Offered {
            name: "requests",
            unit: Unit::PerSecond,
            value: asked * share,
            asked: Some(asked),
        });
    }
    for stream in endpoint.streams.iter().filter(|stream| stream.datagrams.is_some()) {
        let name = if stream.from_client { "datagrams to the server" } else { "datagrams from the server" };
        all.push(Offered {
            name,
            unit: Unit::BitsPerSecond,
            value: stream.sent_bits_per_second,
            asked: None,
        });
    }
    all
}

impl OfferedLoad {
    /// As text of a side: "5.47 kpps (54.7 % of the 10.0 kpps asked for)".
    fn side(&self, value: f64, asked: Option<f64>) -> String {
        let show = |value: f64| self.unit.show(value);
        match asked.filter(|asked| *asked > 0.0 && differ(*asked, value, ALIKE)) {
            Some(asked) => {
                format!(
                    "{} ({} of the {} asked for)",
                    show(value),
                    units::percent(value / asked),
                    show(asked)
                )
            }
            None => show(value),
        }
    }

    /// Another rate was asked for, or on one side only.
    fn asked_otherwise(&self) -> bool {
        match (self.a_asked, self.b_asked) {
            (Some(a), Some(b)) => differ(a, b, ALIKE),
            (None, None) => false,
            _ => true,
        }
    }
}

/// Loads that differ, in a sentence.
pub(crate) fn said(loads: &[OfferedLoad]) -> Option<String> {
    let mut differing = loads.iter().filter(|load| load.differ);
    // Bits say nothing of their own where frames differ already.
    let first = differing.next()?;
    let others =
        differing.filter(|load| load.unit != Unit::BitsPerSecond || first.unit != Unit::FramesPerSecond);
    let each = std::iter::once(first).chain(others).map(|load| {
        let (a, b) = (load.side(load.a, load.a_asked), load.side(load.b, load.b_asked));
        format!("{} of A {a}, of B {b}", load.name)
    });
    Some(format!(
        "The offered loads differ: {}. Loss, latency and what was received depend on the load: they are not judged.",
        each.collect::<Vec<_>>().join("; ")
    ))
}

/// Why a figure of this name says nothing about what was tested, seeing these loads.
pub(super) fn why_not(name: &str, loads: &[OfferedLoad]) -> Option<&'static str> {
    let is_of = |declared: &[&'static crate::data::figure::Figure]| declared.iter().any(|f| f.name == name);
    // The sender's own figures are of the sender, whatever it sent.
    if is_of(sent::DECLARED) {
        return loads.iter().any(OfferedLoad::asked_otherwise).then_some(ASKED);
    }
    let differ = loads.iter().any(|load| load.differ) && !is_of(pacing::DECLARED);
    differ.then_some(LOADS)
}
