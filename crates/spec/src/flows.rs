//! The search for the highest rate of new flows that a probe records without loss (RFC 6645).

use crate::probe::ExportFormat;
use crate::words::words;
use crate::written::{Ratio, Written};
use settings::settings;
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
        /// Each key once, in a random order, which the seed repeats: as real traffic has it.
        Random = "random",
        /// One after the other: easier for a cache.
        Linear = "linear",
    }
}

/// The highest rate of new flows that a probe records without loss.
#[settings(heading = "Search")]
pub struct Flows {
    /// The probe in the lab, started anew for each trial: netdyno (its own), softflowd or pmacct. Default: netdyno.
    #[setting(value = "NAME")]
    pub probe: Option<UnderTest>,
    /// Another probe in the lab, run by sh -c in the foreground: {interface}, {collector}, {host}, {port}, {format} (5, 9, 10), {idle},
    /// {active} (in seconds) and {flows} are replaced.
    #[setting(value = "CMD", heading = "Traffic", excludes("probe"), consent)]
    pub command: Option<String>,
    /// Where the probe sends its records: they are received here, on this machine.
    #[setting(value = "ADDR:PORT", heading = "Traffic")]
    pub collect: Option<String>,
    /// How a probe in the lab writes records: ipfix, 9, 5.
    #[setting(value = "FORMAT", default = "ipfix", heading = "Traffic")]
    #[serde(default)]
    pub format: ExportFormat,
    /// The probe's idle timeout; in the lab the probe gets it. Default: 1s in the lab, else 15s.
    #[setting(value = "TIME")]
    pub idle_timeout: Option<Written<Duration>>,
    /// The probe's active timeout; in the lab the probe gets it. Default: 1m in the lab, else 30m.
    #[setting(value = "TIME")]
    pub active_timeout: Option<Written<Duration>>,
    /// Flows that the probe's cache has room for; in the lab the probe gets such a cache. Default: 4194304 in the lab, else not known.
    #[setting(value = "N")]
    pub cache: Option<Written<u64>>,
    /// Packets of each flow, one after the other. RFC 6645 has 1.
    #[setting(value = "N", default = "1", least = 1, most = 10_000, heading = "Traffic")]
    pub packets_per_flow: Option<u32>,
    /// The order of the flows' keys: random (each once; the seed repeats it) or linear (one after the other).
    #[setting(value = "ORDER", default = "random", heading = "Traffic")]
    #[serde(default)]
    pub order: KeyOrder,
    /// Try these rates of new flows (50kfps,100kfps), one trial each, instead of searching: the graph of flows recorded against
    /// flows offered.
    #[setting(alias = "rate", value = "RATES", comma)]
    pub rates: Vec<Written<Rate>>,
    /// How near the highest rate that passes and the lowest that fails must come, relative to the rate.
    #[setting(value = "SHARE", default = "2%")]
    pub precision: Option<Written<Ratio>>,
    /// Trials that must pass at the rate that was found.
    #[setting(value = "N", default = "2", least = 1)]
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
