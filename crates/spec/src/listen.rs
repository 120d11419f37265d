//! Jobs that wait for what comes: a meter, a reflector.

use crate::check::{self, Contradiction};
use crate::consent::{self, Consent};
use crate::kind::Kind;
use crate::no;
use crate::words::words;
use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
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

words! {
    /// What befalls frames.
    Event {
        /// Frames are missing before this one.
        Lost = "lost",
        /// It arrived too late to tell whether it arrived before.
        Late = "late",
        /// It arrived before.
        Duplicated = "duplicated",
        /// It arrived after one with a higher number.
        Reordered = "reordered",
    }
}

/// Frames are captured where they are measured, whatever becomes of them then.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Into this file, NAME.pcapng; - is standard output.
    pub file: PathBuf,
    /// So many bytes of each. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap: Option<Written<u64>>,
    /// The first so many frames, and then no more; measuring goes on. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Written<u64>>,
    /// A new file after so long. Their names have the time at which they begin behind that of `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Written<Duration>>,
    /// A new file when one has so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_size: Option<Written<u64>>,
    /// So many files stay, the latest. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// Only signed frames that this befell, each with a comment, and their neighbours in their streams. Default: all frames.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<Event>,
    /// So many neighbours before and behind each. Default: 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around: Option<u32>,
}

impl Capture {
    /// Does it go to standard output?
    pub fn writes_to_stdout(&self) -> bool {
        self.file == Path::new("-")
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
    /// What arrives is captured, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
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
    fn check(&self) -> Result<(), Contradiction> {
        check::capture("capture.", self.capture.as_ref())
    }

    fn asks(&self) -> Consent {
        Consent {
            write: consent::written(self.capture.as_ref().map(|capture| &*capture.file)),
            ..Consent::default()
        }
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}

impl Kind for Reflect {
    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }
}
