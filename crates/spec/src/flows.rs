//! The search for the highest rate of new flows that a probe records without loss (RFC 6645).

use crate::probe::ExportFormat;
use crate::words::words;
use crate::written::{Ratio, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use traffic::Rate;

words! {
    /// A probe that a search starts itself, in its lab.
    UnderTest {
        /// This program's own (`netdyno probe`).
        Netdyno = "netdyno",
        /// softflowd.
        Softflowd = "softflowd",
        /// pmacctd with its nfprobe plugin.
        Pmacct = "pmacct",
    }
}

words! {
    /// The order of the flows' keys.
    KeyOrder {
        /// Each key once, in an order of chance that the seed repeats: as traffic has it.
        Random = "random",
        /// One after the other: easier for a cache.
        Linear = "linear",
    }
}

/// The highest rate of new flows that a probe records without loss.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// The probe in the lab, started anew for each trial. Default: netdyno.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<UnderTest>,
    /// Another probe in the lab: run by a shell, in the foreground; {interface}, {collector}, {host}, {port}, {format} (5, 9, 10),
    /// {idle}, {active} (seconds) and {flows} are replaced. It is never run because a file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where a probe that stands elsewhere sends its records (ADDR:PORT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<String>,
    /// How a probe in the lab writes records.
    #[serde(default)]
    pub format: ExportFormat,
    /// The probe's idle timeout. In the lab it is told to the probe. Default: 1s in the lab, else 15s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Written<Duration>>,
    /// The probe's active timeout. Default: 60s in the lab, else 30m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_timeout: Option<Written<Duration>>,
    /// Flows that the probe's cache has room for. In the lab it is told to the probe. Default: 4194304 in the lab, else not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Written<u64>>,
    /// Packets of each flow, one after the other. Default: 1, as RFC 6645 has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_per_flow: Option<u32>,
    /// The order of the keys.
    #[serde(default)]
    pub order: KeyOrder,
    /// At these rates of new flows, one trial each, instead of searching: the graph of flows recorded against flows offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<Written<Rate>>,
    /// How near the highest rate that passes and the lowest that fails must come. Default: 2%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Written<Ratio>>,
    /// Trials that must pass at the rate that was found. Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<u32>,
}

impl Flows {
    /// The probe's idle timeout.
    pub fn idle(&self, in_a_lab: bool) -> Duration {
        let usual = if in_a_lab { Duration::from_secs(1) } else { Duration::from_secs(15) };
        self.idle_timeout.as_deref().copied().unwrap_or(usual)
    }

    /// The probe's active timeout.
    pub fn active(&self, in_a_lab: bool) -> Duration {
        let usual = if in_a_lab { Duration::from_secs(60) } else { Duration::from_secs(1800) };
        self.active_timeout.as_deref().copied().unwrap_or(usual)
    }

    /// Flows that the probe's cache has room for, where that is known.
    pub fn cache(&self, in_a_lab: bool) -> Option<u64> {
        self.cache.as_deref().copied().or(in_a_lab.then_some(1 << 22))
    }

    /// Packets of each flow.
    pub fn packets_per_flow(&self) -> u32 {
        self.packets_per_flow.unwrap_or(1)
    }

    /// How near the bounds must come, relative to the load.
    pub fn precision(&self) -> f64 {
        self.precision.as_ref().map_or(0.02, |precision| precision.0)
    }

    /// Trials that must pass at the rate that was found.
    pub fn confirm(&self) -> u32 {
        self.confirm.unwrap_or(2)
    }
}
