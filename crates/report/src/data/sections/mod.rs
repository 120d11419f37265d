//! The parts of a result, a file each: what is known, with its names in JSON, and which figures that makes. How it reads on the
//! terminal and on the page stands in a file of the same name in `render::sections`.
//!
//! Who adds a part adds a file here and one there, their places in `PARTS` and `ALL`, and a member of [`crate::Achieved`]. Who
//! adds a figure declares it in its part: from there it reaches the summary, the page, figures.csv, `compare` and Prometheus.

pub mod agents;
pub mod bridge;
pub mod by_hand;
pub mod captured;
pub mod cloning;
pub mod collection;
pub mod conversations;
pub mod counters;
pub mod drops;
pub mod endpoint;
pub mod endpoint_search;
pub mod environment;
pub mod flows;
pub mod forwarding;
pub mod intervals;
pub mod latency;
pub mod links;
pub mod mesh;
pub mod metering;
pub mod pacing;
pub mod ports;
pub mod received;
pub mod reflection;
pub mod requested;
pub mod search;
pub mod sent;
pub mod sessions;
pub mod sessions_search;
pub mod stamp;
pub mod streams;
pub mod totals;
pub mod verdict;
pub mod xdp;

use crate::data::figure::{Figure, Measured};
use crate::data::model::Report;

/// Jobs whose results are of frames; those of a search are of its trials.
const FRAMES: &[&str] = &[
    "send",
    "replay",
    "measure",
    "reflect",
    "bridge",
    "impair",
    "probe",
    "live",
    "trial",
    "sessions",
    "sessions-server",
];

/// A part with figures.
struct Part {
    /// Those that it declares.
    declared: &'static [&'static Figure],
    /// The kinds of jobs (`netdyno_spec::Job::KINDS`) whose results can have them.
    kinds: &'static [&'static str],
    /// Their values in a result.
    figures: fn(&Report) -> Vec<Measured>,
}

/// All parts with figures, in the order of figures.csv.
static PARTS: [Part; 16] = [
    Part { declared: sent::DECLARED, kinds: FRAMES, figures: sent::figures },
    Part { declared: received::DECLARED, kinds: FRAMES, figures: received::figures },
    Part { declared: latency::DECLARED, kinds: FRAMES, figures: latency::figures },
    Part { declared: flows::DECLARED, kinds: FRAMES, figures: flows::figures },
    Part { declared: metering::DECLARED, kinds: &["probe"], figures: metering::figures },
    // Of a probe, where its collector is a part of the same job.
    Part { declared: collection::DECLARED, kinds: &["collect", "probe"], figures: collection::figures },
    Part { declared: cloning::DECLARED, kinds: &["clone"], figures: cloning::figures },
    Part {
        declared: endpoint::DECLARED,
        kinds: &[
            "endpoint",
            "endpoint-server",
            "endpoint-search",
            "iperf3",
            "iperf3-server",
            "netperf",
            "netserver",
        ],
        figures: endpoint::figures,
    },
    Part { declared: mesh::DECLARED, kinds: &["endpoint"], figures: mesh::figures },
    Part { declared: stamp::DECLARED, kinds: &["endpoint"], figures: stamp::figures },
    Part {
        declared: endpoint_search::DECLARED,
        kinds: &["endpoint-search"],
        figures: endpoint_search::figures,
    },
    Part { declared: sessions::DECLARED, kinds: &["sessions"], figures: sessions::figures },
    Part {
        declared: sessions_search::DECLARED,
        kinds: &["sessions-search"],
        figures: sessions_search::figures,
    },
    Part { declared: xdp::DECLARED, kinds: FRAMES, figures: xdp::figures },
    Part { declared: pacing::DECLARED, kinds: FRAMES, figures: pacing::figures },
    Part { declared: search::DECLARED, kinds: &["search", "trial"], figures: search::figures },
];

/// All figures of a result.
pub(crate) fn figures(report: &Report) -> impl Iterator<Item = Measured> {
    PARTS.iter().flat_map(|part| (part.figures)(report))
}

/// All figures that there are.
pub(crate) fn declared() -> impl Iterator<Item = &'static Figure> {
    PARTS.iter().flat_map(|part| part.declared).copied()
}

/// The kinds of jobs whose results can have a figure.
pub(crate) fn kinds_of(key: &str) -> &'static [&'static str] {
    let of = PARTS.iter().find(|part| part.declared.iter().any(|figure| figure.key == key));
    of.map_or(&[], |part| part.kinds)
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
