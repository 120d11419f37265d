//! The document that a compile-world plugin yields: netdyno's scenario (docs/scenarios.md), as types.
//!
//! Quantities are written as in a scenario file: rates `"1mpps"`, times `"200ms"`, sizes `"64"`, `"imix"`, `"64:7,1518:1"`.
//! What is left out has the default of docs/scenarios.md. netdyno checks the document; these types only make it easy to
//! write.

use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What to send, and when.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What to call it in results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Key of all random values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The run ends after this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The run ends after this many frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// What streams without times of their own share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// What holds for each stream that does not say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Defaults>,
    /// Streams of frames.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<Stream>,
    /// Flows that begin and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flows>,
}

impl Scenario {
    /// One stream.
    #[must_use]
    pub fn of(stream: Stream) -> Scenario {
        Scenario { streams: vec![stream], ..Scenario::default() }
    }

    /// Several streams.
    pub fn new(streams: impl IntoIterator<Item = Stream>) -> Scenario {
        Scenario { streams: streams.into_iter().collect(), ..Scenario::default() }
    }

    /// Says what it is called.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Scenario {
        Scenario { name: Some(name.into()), ..self }
    }

    /// Frame sizes of all streams that do not say otherwise, as for `--size`.
    #[must_use]
    pub fn size(self, size: impl Into<String>) -> Scenario {
        let defaults = Defaults { size: Some(size.into()), ..self.defaults.unwrap_or_default() };
        Scenario { defaults: Some(defaults), ..self }
    }
}

impl Stream {
    /// A stream of such packets.
    #[must_use]
    pub fn new(packet: impl Into<Packet>) -> Stream {
        Stream { frame: packet.into().to_string(), ..Stream::default() }
    }

    /// Says what it is called in results.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Stream {
        Stream { name: Some(name.into()), ..self }
    }

    /// Frame sizes, the frame check sequence counted, as for `--size`.
    #[must_use]
    pub fn size(self, size: impl Into<String>) -> Stream {
        Stream { size: Some(size.into()), ..self }
    }

    /// Its part of the common rate, in frames.
    #[must_use]
    pub fn weight(self, weight: u32) -> Stream {
        Stream { weight: Some(weight), ..self }
    }

    /// A rate of its own.
    #[must_use]
    pub fn rate(self, rate: impl Into<String>) -> Stream {
        Stream { rate: Some(rate.into()), ..self }
    }

    /// Ends after this many frames.
    #[must_use]
    pub fn count(self, count: u64) -> Stream {
        Stream { count: Some(count), ..self }
    }

    /// Begins when that stream has ended.
    #[must_use]
    pub fn after(self, name: impl Into<String>) -> Stream {
        Stream { after: Some(name.into()), ..self }
    }
}

/// What holds for each stream that does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Frame sizes, the frame check sequence counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// A rate for each stream by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// End each frame with a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<bool>,
}

/// Frames that belong together, and when they leave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Its name in results, and for `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A packet expression (docs/expressions.md).
    pub frame: String,
    /// Frame sizes, the frame check sequence counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Its part of the common rate, in frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// A rate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Frames in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// A rate that rises or falls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,
    /// Begin this long after the run's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Begin when this stream has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// With `after`: wait so long in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<String>,
    /// End after this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// End after this many frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// End each frame with a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<bool>,
    /// Ask for the Ethernet address of whom the frames are for: `true`, or the next hop's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve: Option<Value>,
}

/// Frames close together, then none for a while, again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Frames of a burst.
    pub frames: u64,
    /// From frame to frame within a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Instead of `gap`: the rate within a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// From the start of one burst to the start of the next.
    pub every: String,
    /// Bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// A rate that goes from one value to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// The rate of the first step.
    pub from: String,
    /// The rate of the last step.
    pub to: String,
    /// How long it takes.
    pub over: String,
    /// Steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// `hold` (the last rate goes on) or `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

/// A flow profile. Values with shares are JSON as in a scenario: `4`, `[1, 4]`, `{"1": "60%", "4": "40%"}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// Its name in results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New flows per second: `10kflows/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Instead of `rate`: flows under way at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Flows in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The first flow begins this long after the run's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Packets of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Value>,
    /// From a flow's first packet to its last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Value>,
    /// Frame sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// `tcp`, `udp`, `icmp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Value>,
    /// Source addresses.
    pub source: String,
    /// Destination addresses.
    pub destination: String,
    /// Source ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<String>,
    /// Destination ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<Value>,
    /// End each frame with a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<bool>,
    /// The next hop's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve: Option<Value>,
}
