//! What a search for flows found (RFC 6645), as rows for the terminal and the page.

use crate::data::search::{FlowTrial, FlowsFound, SearchResult, Trial};
use crate::data::units;

/// Heads of the rows of [`found`], behind the frame size.
pub(crate) const FOUND: [&str; 7] =
    ["flows/s", "fails at", "export rate", "records/message", "bytes/record", "in the cache", "near enough"];

/// Heads of the rows of [`trial`], behind the trial's number.
pub(crate) const TRIALS: [&str; 9] = [
    "size",
    "offered",
    "for",
    "flows sent",
    "recorded",
    "lost at the port",
    "in the cache",
    "in export",
    "verdict",
];

/// What was found with a frame size.
pub(crate) fn found(found: &FlowsFound) -> [Option<String>; 7] {
    [
        Some(units::flow_rate(found.flows_per_second)),
        found.failed_flows_per_second.map(units::flow_rate),
        found.export_records_per_second.map(|rate| format!("{}/s", units::counted(rate as u64, "record"))),
        Some(format!("{:.1}", found.records_per_message)),
        Some(format!("{:.1}", found.bytes_per_record)),
        Some(units::counted(found.cache_flows, "flow")),
        Some(if found.reached { "yes" } else { "no" }.to_owned()),
    ]
}

/// A trial, and what became of its flows.
pub(crate) fn trial(trial: &Trial, flows: &FlowTrial) -> [Option<String>; 9] {
    [
        Some(units::printable(&trial.frame_size)),
        Some(units::flow_rate(trial.load)),
        Some(units::time(trial.duration_ns)),
        Some(units::count(flows.sent_flows)),
        Some(units::count(flows.recorded_flows)),
        flows.port_lost_packets.map(units::count),
        Some(units::count(flows.cache_lost_flows)),
        Some(units::count(flows.export_lost_records)),
        Some(trial.verdict.to_string()),
    ]
}

/// Under which circumstances (RFC 6645, appendix A).
pub(crate) fn circumstances(found: &FlowsFound) -> String {
    let cache = match found.cache_size_flows {
        Some(flows) => format!("room for {} in the cache", units::counted(flows, "flow")),
        None => "a cache of unknown size".to_owned(),
    };
    format!(
        "Probe {}: {} a flow, keys in {} order, idle timeout {}, active timeout {}, {cache}.",
        units::printable(&found.probe),
        units::counted(found.packets_per_flow.into(), "packet"),
        units::printable(&found.key_order),
        units::time(found.idle_timeout_ns),
        units::time(found.active_timeout_ns)
    )
}

/// Is it such a search?
pub(crate) fn is_it(search: &SearchResult) -> bool {
    search.axis == "flows_per_second"
}
