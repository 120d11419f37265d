//! The parts of a result, a file each: what is known (the data, with its names in JSON), which figures that makes, and how
//! it reads on the terminal and on the page. A part that was not measured says nothing anywhere.
//!
//! Who adds a part adds a file here, its place in `ALL`, and a member of [`crate::data::model::Achieved`]. Who adds a figure declares
//! it in its part: from there it reaches the summary, the page, figures.csv, `compare` and Prometheus.

pub mod bridge;
pub mod by_hand;
pub mod captured;
pub mod cloning;
pub mod collection;
pub mod conversations;
pub mod counters;
pub mod endpoint;
pub mod endpoint_search;
pub mod environment;
pub mod flows;
pub mod intervals;
pub mod latency;
pub mod links;
pub mod metering;
pub mod pacing;
pub mod ports;
pub mod received;
pub mod reflection;
pub mod requested;
pub mod search;
pub mod sent;
pub mod streams;
pub mod totals;
pub mod verdict;

use crate::data::distribution::Distribution;
use crate::data::figure::{Figure, Measured};
use crate::data::model::Report;
use crate::render::html::grid::Facts;
use crate::render::text::Options;

/// A part of a result, and how it is shown.
pub(crate) trait Section: Sync {
    /// Its figures, as far as they are known.
    fn figures(&self, _: &Report) -> Vec<Measured> {
        Vec::new()
    }

    /// Lines of the summary.
    fn lines(&self, _: &Report) -> Vec<Line> {
        Vec::new()
    }

    /// Tables of the summary, behind all lines.
    fn tables(&self, _: &Report, _: Options<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Times that the page shows as percentiles.
    fn times<'r>(&self, _: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        Vec::new()
    }

    /// Single facts on the page.
    fn facts(&self, _: &Report, _: &mut Facts) {}

    /// Tables on the page.
    fn cards(&self, _: &Report) -> String {
        String::new()
    }

    /// Long tables on the page, behind those of all others.
    fn appendix(&self, _: &Report) -> String {
        String::new()
    }
}

/// All parts, in the order they are shown.
pub(crate) const ALL: [&dyn Section; 20] = [
    &sent::Sent,
    &requested::Made,
    &ports::Ports,
    &environment::Machine,
    &received::Received,
    &captured::Captured,
    &latency::Latency,
    &reflection::Reflected,
    &bridge::Bridge,
    &flows::OfFlows,
    &metering::Metered,
    &collection::Collected,
    &cloning::Copied,
    &endpoint::Tested,
    &endpoint_search::Searched,
    &pacing::Pace,
    &by_hand::ByHand,
    &counters::Counted,
    &streams::Streams,
    &search::Searched,
];

/// Jobs whose results are of frames; those of a search are of its trials.
const FRAMES: &[&str] =
    &["send", "replay", "measure", "reflect", "bridge", "impair", "probe", "live", "trial"];

/// The figures that parts declare, and the kinds of jobs (`netdyno_spec::Job::KINDS`) whose results can have them.
static DECLARED: [(&[&Figure], &[&str]); 11] = [
    (sent::DECLARED, FRAMES),
    (received::DECLARED, FRAMES),
    (latency::DECLARED, FRAMES),
    (pacing::DECLARED, FRAMES),
    (flows::DECLARED, FRAMES),
    (search::DECLARED, &["search", "trial"]),
    (endpoint::DECLARED, &["endpoint", "endpoint-server", "endpoint-search"]),
    (endpoint_search::DECLARED, &["endpoint-search"]),
    (metering::DECLARED, &["probe"]),
    (collection::DECLARED, &["collect"]),
    (cloning::DECLARED, &["clone"]),
];

/// All figures that there are.
pub(crate) fn declared() -> impl Iterator<Item = &'static Figure> {
    DECLARED.iter().flat_map(|(figures, _)| *figures).copied()
}

/// The kinds of jobs whose results can have a figure.
pub(crate) fn kinds_of(key: &str) -> &'static [&'static str] {
    let of = DECLARED.iter().find(|(figures, _)| figures.iter().any(|figure| figure.key == key));
    of.map_or(&[], |(_, kinds)| kinds)
}

/// A line of the summary, with its label in front.
pub(crate) struct Line {
    pub label: &'static str,
    pub says: Says,
    /// What is left of it where not all is asked for.
    pub brief: Option<Says>,
    /// It says nothing that one would not expect: left out where not all is asked for.
    pub expected: bool,
}

pub(crate) enum Says {
    /// Facts with commas between, as many in a line as fit; without any there is no line.
    Facts(Vec<String>),
    /// A sentence, folded between words.
    Text(String),
}

impl Line {
    fn facts(label: &'static str, facts: Vec<String>) -> Line {
        Line { label, says: Says::Facts(facts), brief: None, expected: false }
    }

    fn text(label: &'static str, text: String) -> Line {
        Line { label, says: Says::Text(text), brief: None, expected: false }
    }

    /// See [`Line::expected`] and `crate::render::expected`.
    fn unless(self, expected: bool) -> Line {
        Line { expected, ..self }
    }

    /// See [`Line::brief`].
    fn brief(self, facts: Vec<String>) -> Line {
        Line { brief: Some(Says::Facts(facts)), ..self }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
