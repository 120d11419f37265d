//! Jobs that wait for what comes: a meter, a reflector.

use crate::kind::Kind;
use crate::no;
use crate::words::words;
use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

words! {
    /// By what frames are measured.
    How {
        /// The best that is possible.
        Auto = "auto",
        /// Native XDP.
        Xdp = "xdp",
        /// Generic XDP.
        XdpGeneric = "xdp-generic",
        /// A packet socket.
        Packet = "packet",
    }
}

words! {
    /// Who times arrivals.
    Timestamps {
        /// The hardware, where the meter that is taken anyway sees its stamps.
        Auto = "auto",
        /// The hardware.
        Hardware = "hardware",
        /// Software.
        Software = "software",
    }
}

words! {
    /// The clock of time stamps in frames.
    Clock {
        /// This host's own.
        Monotonic = "monotonic",
        /// International atomic time, which PTP or NTP keep alike on several hosts.
        Tai = "tai",
    }
}

/// What arrives is counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// On this interface (IFACE, or IFACE@NAMESPACE).
    pub on: String,
    /// For so long. Default: until it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// Until so many frames have arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Written<u64>>,
    /// What was counted is dropped, and the host gets nothing.
    #[serde(default, skip_serializing_if = "no")]
    pub drop: bool,
    /// By what.
    #[serde(default)]
    pub how: How,
    /// Who times arrivals.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// The clock that the sender stamps frames with.
    #[serde(default)]
    pub clock: Clock,
    /// Streams to tell apart by their signatures. Default: 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// So many of them, from the first on, get percentiles of their latency. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_histograms: Option<u32>,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
}

/// What arrives is sent back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reflect {
    /// On this interface (IFACE, or IFACE@NAMESPACE).
    pub on: String,
    /// For so long. Default: until it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// Until so many frames were sent back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Written<u64>>,
    /// Only frames with a signature; the host gets the others.
    #[serde(default, skip_serializing_if = "no")]
    pub only_signed: bool,
    /// Only the Ethernet addresses change places.
    #[serde(default, skip_serializing_if = "no")]
    pub mac_only: bool,
    /// By generic XDP, although the driver could do native.
    #[serde(default, skip_serializing_if = "no")]
    pub generic: bool,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
}

impl Kind for Measure {
    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}

impl Kind for Reflect {
    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}
