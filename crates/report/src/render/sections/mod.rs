//! How the parts of a result (`data::sections`) are shown, a file each: lines and tables of the summary, facts and tables of the
//! page.

mod agents;
mod bridge;
mod by_hand;
mod captured;
mod cloning;
mod collection;
pub(crate) mod conversations;
mod counters;
mod drops;
mod endpoint;
pub(crate) mod endpoint_search;
pub(crate) mod environment;
mod flows;
mod forwarding;
pub(crate) mod intervals;
pub(crate) mod latency;
pub(crate) mod mesh;
mod metering;
mod pacing;
mod ports;
mod received;
mod reflection;
pub(crate) mod requested;
mod sent;
mod sessions;
pub(crate) mod sessions_search;
mod stamp;
mod streams;
pub(crate) mod totals;
mod xdp;

use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::render::html::grid::Facts;
use crate::render::text::Options;

/// How a part of a result is shown. One that was not measured says nothing anywhere.
pub(crate) trait Section: Sync {
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
pub(crate) const ALL: [&dyn Section; 28] = [
    &sent::Sent,
    &requested::Made,
    &ports::Ports,
    &agents::Agents,
    &environment::Machine,
    &received::Received,
    &drops::OfDrops,
    &xdp::OfXdp,
    &captured::Captured,
    &latency::Latency,
    &reflection::Reflected,
    &bridge::Bridge,
    &flows::OfFlows,
    &metering::Metered,
    &collection::Collected,
    &forwarding::CapturedThere,
    &cloning::Copied,
    &forwarding::SentBack,
    &endpoint::Tested,
    &stamp::OfStamp,
    &mesh::OfMesh,
    &endpoint_search::Searched,
    &sessions::OfSessions,
    &sessions_search::Searched,
    &pacing::Pace,
    &by_hand::ByHand,
    &counters::Counted,
    &streams::Streams,
];

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
