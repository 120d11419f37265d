//! What a search for flows found (RFC 6645), in words for the terminal and the page.

use crate::data::search::{FlowsFound, SearchAxis, SearchResult};
use crate::data::units;

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
    search.axis == SearchAxis::FlowsPerSecond
}
