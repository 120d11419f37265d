//! The file as it is written. What the values mean together is decided when it is compiled.
//!
//! Comments on fields are what editors show: they go into docs/scenario.schema.json.

use super::profile::Profile;
use super::weighted::{Share, lowest};
use super::yaml::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use traffic::Shape;
use traffic::rate::{Rate, parse_count, parse_duration};

/// Streams of a scenario, at most: what the meter tells apart by default.
pub const MAX_STREAMS: usize = 1024;
/// Flow profiles of a scenario, at most.
const MAX_PROFILES: usize = 64;
/// Bytes of a packet expression in a scenario, at most.
const MAX_FRAME: usize = 1 << 16;
/// Characters of a name, at most.
const MAX_NAME: usize = 200;
/// Sizes of a table, at most.
const MAX_TABLE: usize = 4096;
/// Longest time: 366 days.
const MAX_TIME: u64 = 366 * 86_400 * 1_000_000_000;

/// Streams of frames, and when each leaves. Run it with `netdyno send FILE --on IFACE`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "netdyno scenario", extend("anyOf" = [{ "required": ["streams"] }, { "required": ["flows"] }]))]
pub struct File {
    /// What to call it in results. Default: the file's name.
    pub name: Option<Name>,
    /// What it is for. For people; nothing reads it.
    pub description: Option<String>,
    /// Key of all random values: the same seed gives the same frames. Default: drawn, and named in the result.
    pub seed: Option<u64>,
    /// The whole run ends after this long.
    pub duration: Option<At<Time>>,
    /// The whole run ends after this many frames.
    pub count: Option<At<Count>>,
    /// The rate that all streams without `rate`, `burst` or `ramp` of their own share by their weights.
    pub rate: Option<At<RateText>>,
    /// What holds for each stream that does not say otherwise.
    #[serde(default)]
    pub defaults: Defaults,
    /// What to send: streams of frames.
    #[serde(default)]
    pub streams: Streams,
    /// What to send, beside streams or instead of them: flows that begin and end.
    #[serde(default)]
    pub flows: Profiles,
}

/// What holds for each stream that does not say otherwise.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Frame sizes, the frame check sequence counted.
    pub size: Option<At<SizeText>>,
    /// A rate for each stream by itself, unless it has `weight`, `rate`, `burst` or `ramp`.
    pub rate: Option<At<RateText>>,
    /// End each frame with an 18-byte signature (stream, sequence, time).
    pub sign: Option<At<bool>>,
    /// Ask for the Ethernet address of whom the frames are for, by ARP or neighbour discovery.
    pub resolve: Option<At<Resolve>>,
}

/// Frames that belong together, and when they leave.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Its name in results, and for `after`. Default: `stream 1`, `stream 2`, ... by its place.
    pub name: Option<At<Name>>,
    /// What its frames look like: a packet expression (docs/expressions.md).
    pub frame: At<Frame>,
    /// Frame sizes, the frame check sequence counted. Default: as long as the layers are.
    pub size: Option<At<SizeText>>,
    /// Its part of the common rate, in frames, relative to the other streams that share it. Default: 1.
    #[schemars(range(min = 1))]
    pub weight: Option<At<u32>>,
    /// A rate of its own.
    pub rate: Option<At<RateText>>,
    /// Frames in bursts.
    pub burst: Option<At<Burst>>,
    /// A rate that rises or falls.
    pub ramp: Option<At<Ramp>>,
    /// How the load varies about `rate`: poisson, sine:period=10s,amplitude=50%, square:period=1s,high=20%,low=10%,
    /// flash:after=10s,rise=2s,peak=10x,hold=5s,fall=20s or onoff:on=100ms,off=900ms,alpha=1.5.
    pub shape: Option<At<ShapeText>>,
    /// Begin this long after the run's start.
    pub start: Option<At<Time>>,
    /// Begin when this stream has ended.
    pub after: Option<At<Name>>,
    /// With `after`: wait this long in between.
    pub pause: Option<At<Time>>,
    /// End after this long.
    pub duration: Option<At<Time>>,
    /// End after this many frames.
    pub count: Option<At<Count>>,
    /// End each frame with an 18-byte signature (stream, sequence, time), for loss, order and latency. Default: if the
    /// run is measured and there is room.
    pub sign: Option<At<bool>>,
    /// Ask for the Ethernet address of whom the frames are for, by ARP or neighbour discovery: `true` for the
    /// frame's own IP destination, or the address of the next hop.
    pub resolve: Option<At<Resolve>>,
}

/// Frames close together, then none for a while, again and again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Frames of a burst.
    pub frames: At<Count>,
    /// From the start of one frame to the start of the next within a burst. Default: as fast as it goes.
    pub gap: Option<At<Time>>,
    /// Instead of `gap`: the rate within a burst.
    pub rate: Option<At<RateText>>,
    /// From the start of one burst to the start of the next.
    pub every: At<Time>,
    /// Bursts. Default: without end.
    pub count: Option<At<Count>>,
}

/// A rate that goes from one value to another, in steps of the same length.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// The rate of the first step.
    pub from: At<RateText>,
    /// The rate of the last step.
    pub to: At<RateText>,
    /// How long it takes.
    pub over: At<Time>,
    /// Steps. Default: 100.
    #[schemars(range(min = 2, max = 10_000))]
    pub steps: Option<At<u32>>,
    /// What comes after the last step. Default: hold.
    #[serde(default)]
    pub then: Then,
}

/// What comes after a ramp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// The last rate goes on.
    #[default]
    Hold,
    /// The stream ends.
    Stop,
}

/// Reads a list of `most` items at most.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    what: &'static str,
    most: usize,
) -> Result<Vec<At<T>>, D::Error> {
    struct List<T>(&'static str, usize, PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<At<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of {} (each begins with `- `)", self.0)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<At<T>>, A::Error> {
            let mut all = Vec::new();
            while let Some(item) = items.next_element()? {
                if all.len() == self.1 {
                    return Err(de::Error::custom(format!("more than {} {}", self.1, self.0)));
                }
                all.push(item);
            }
            Ok(all)
        }
    }
    deserializer.deserialize_seq(List(what, most, PhantomData))
}

/// 1 to 1024 streams.
#[derive(Debug, Clone, Default)]
pub struct Streams(pub Vec<At<Stream>>);

impl<'de> Deserialize<'de> for Streams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Streams, D::Error> {
        list(deserializer, "streams", MAX_STREAMS).map(Streams)
    }
}

/// 1 to 64 flow profiles.
#[derive(Debug, Clone, Default)]
pub struct Profiles(pub Vec<At<Profile>>);

impl<'de> Deserialize<'de> for Profiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Profiles, D::Error> {
        list(deserializer, "flow profiles", MAX_PROFILES).map(Profiles)
    }
}

impl JsonSchema for Profiles {
    fn schema_name() -> Cow<'static, str> {
        "Profiles".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let profile = generator.subschema_for::<Profile>();
        json_schema!({ "type": "array", "items": profile, "minItems": 1, "maxItems": MAX_PROFILES })
    }
}

impl JsonSchema for Streams {
    fn schema_name() -> Cow<'static, str> {
        "Streams".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let stream = generator.subschema_for::<Stream>();
        json_schema!({ "type": "array", "items": stream, "minItems": 1, "maxItems": MAX_STREAMS })
    }
}

/// A scalar that is read from its text, as it stands in the file.
pub(super) fn text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    what: &'static str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Text<F>(&'static str, F);
    impl<'de, T, F: FnOnce(&str) -> Result<T, String>> Visitor<'de> for Text<F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Text(what, read))
}

/// Gives a type that is read from its text a schema.
macro_rules! described {
    ($type:ty, $name:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// A name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        text(deserializer, "a name", |text| {
            if text.trim().is_empty() || text.chars().count() > MAX_NAME || text.chars().any(char::is_control)
            {
                return Err(format!("a name has 1 to {MAX_NAME} characters, all on one line"));
            }
            Ok(Name(text.trim().to_owned()))
        })
    }
}

pub(super) use described;

described!(Name, "Name", { "type": ["string", "number", "boolean"] });

/// A packet expression, not yet compiled.
#[derive(Debug, Clone)]
pub struct Frame(pub String);

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Frame, D::Error> {
        text(deserializer, "a packet expression such as ipv4(dst=198.18.0.1)/udp", |text| {
            if text.len() > MAX_FRAME {
                return Err(format!("the expression has {} bytes; {MAX_FRAME} are the most", text.len()));
            }
            Ok(Frame(text.to_owned()))
        })
    }
}

described!(Frame, "Frame", {
    "description": "A packet expression: layers joined by `/`, such as ipv4(src=10.0.0.0/16)/udp(dport=53).",
    "type": "string",
    "examples": ["ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535, dport=53)"]
});

/// A rate as in `--rate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateText(pub Rate);

impl<'de> Deserialize<'de> for RateText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RateText, D::Error> {
        text(deserializer, "a rate such as 1mpps", |text| match text.parse() {
            Ok(Rate::Flows(_)) => Err(format!(
                "`{}`: a scenario has no rate in new flows per second; give frames per second (1mpps)",
                text.trim()
            )),
            Ok(rate) => Ok(RateText(rate)),
            Err(bad) => Err(bad.to_string()),
        })
    }
}

described!(RateText, "Rate", {
    "description": "1.6mpps (frames per second), 500M, 7gbps or 7Gbit/s (bits per second of frames without FCS), 7gbps-l1 (on the wire), 40% (of the link's speed) or top.",
    "type": "string",
    "examples": ["1mpps", "500mbps", "7gbps-l1", "10%", "top"]
});

/// How a load varies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeText(pub Shape);

impl<'de> Deserialize<'de> for ShapeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ShapeText, D::Error> {
        text(deserializer, "a shape such as poisson", |text| {
            text.parse().map(ShapeText).map_err(|bad: traffic::shape::BadShape| bad.to_string())
        })
    }
}

described!(ShapeText, "LoadShape", {
    "description": "A shape of load: poisson, sine:period=10s,amplitude=50%, square:period=1s,high=20%,low=10%, flash:after=10s,rise=2s,peak=10x,hold=5s,fall=20s or onoff:on=100ms,off=900ms,alpha=1.5; with arrivals=poisson behind any but the first.",
    "type": "string",
    "examples": ["poisson", "sine:period=10s,amplitude=50%", "square:period=1s,high=20%", "onoff:on=100ms,off=900ms"]
});

/// Nanoseconds, written 5s, 200ms, 1m30s or 0s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

impl Time {
    /// One that is not too long.
    pub(super) fn of(time: std::time::Duration) -> Option<Time> {
        u64::try_from(time.as_nanos()).ok().filter(|ns| *ns <= MAX_TIME).map(Time)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        text(deserializer, "a time such as 200ms", |text| {
            if matches!(text.trim(), "0" | "0s" | "0ms" | "0us" | "0ns") {
                return Ok(Time(0));
            }
            let time = parse_duration(text).map_err(|bad| bad.to_string())?;
            Time::of(time).ok_or_else(|| format!("`{}` is too long: 366 days are the most", text.trim()))
        })
    }
}

described!(Time, "Time", {
    "description": "A time: 5s, 200ms, 10us, 1m30s, 2h.",
    "type": ["string", "integer"],
    "examples": ["5s", "200ms", "1m30s"]
});

/// How many; 1000, 10k, 2.5M.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Count, D::Error> {
        text(deserializer, "a count such as 1000", |text| {
            parse_count(text).map(Count).map_err(|bad| bad.to_string())
        })
    }
}

described!(Count, "Count", {
    "description": "How many: 1000, 10k, 2.5M.",
    "type": ["integer", "string"],
    "examples": [1000, "10k"]
});

/// Whom to ask an Ethernet address for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// Nobody.
    No,
    /// The frame's IP destination.
    Destination,
    /// This next hop.
    NextHop(IpAddr),
}

impl<'de> Deserialize<'de> for Resolve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Resolve, D::Error> {
        text(deserializer, "true, false or an IP address", |text| {
            match text.trim() {
            "true" | "True" | "yes" | "on" => Ok(Resolve::Destination),
            "false" | "False" | "no" | "off" => Ok(Resolve::No),
            other => other.parse().map(Resolve::NextHop).map_err(|_| {
                format!(
                    "`{}`: write true (ask for the frame's IP destination), the next hop's IP address, or false",
                    other.chars().take(60).collect::<String>()
                )
            }),
        }
        })
    }
}

described!(Resolve, "Resolve", {
    "description": "true (ask for the frame's IP destination), the next hop's IP address, or false.",
    "type": ["boolean", "string"],
    "examples": [true, "198.18.0.254"]
});

/// Frame sizes in the words of `--size`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeText(pub String);

impl<'de> Deserialize<'de> for SizeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SizeText, D::Error> {
        struct Sizes;
        fn table_full<E: de::Error>() -> E {
            E::custom(format!("a table has at most {MAX_TABLE} sizes"))
        }
        impl<'de> Visitor<'de> for Sizes {
            type Value = SizeText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a frame size (64, imix, [64, 1518], {64: 7, 1518: 1}, random(64..1518))")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SizeText, E> {
                if text.len() > 8 * MAX_TABLE {
                    return Err(table_full());
                }
                Ok(SizeText(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, size: u64) -> Result<SizeText, E> {
                Ok(SizeText(size.to_string()))
            }

            fn visit_i64<E: de::Error>(self, size: i64) -> Result<SizeText, E> {
                Ok(SizeText(size.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<SizeText, A::Error> {
                let mut sizes: Vec<String> = Vec::new();
                while let Some(size) = items.next_element::<u32>()? {
                    if sizes.len() == MAX_TABLE {
                        return Err(table_full());
                    }
                    sizes.push(size.to_string());
                }
                Ok(SizeText(sizes.join(",")))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<SizeText, A::Error> {
                let (mut sizes, mut shares) = (Vec::new(), Vec::new());
                while let Some((size, share)) = parts.next_entry::<u32, Share>()? {
                    if sizes.len() == MAX_TABLE {
                        return Err(table_full());
                    }
                    sizes.push(size);
                    shares.push(share);
                }
                let shares = lowest(&shares).map_err(de::Error::custom)?;
                let mix: Vec<String> =
                    sizes.iter().zip(shares).map(|(size, share)| format!("{size}:{share}")).collect();
                Ok(SizeText(mix.join(",")))
            }
        }
        deserializer.deserialize_any(Sizes)
    }
}

described!(SizeText, "Size", {
    "description": "Frame size with its FCS: 64, imix, an RFC 6985 genome such as aaafg, \"64..1518\" (each in turn), random(64..1518), a list [64, 1518], or a table of sizes with weights {64: 7, 594: 4, 1518: 1} or percentages {64: 60%, 1518: 40%}.",
    "anyOf": [
        { "type": "integer", "minimum": 1 },
        { "type": "string" },
        { "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 1 },
        {
            "type": "object",
            "propertyNames": { "pattern": "^[0-9_]+$" },
            "additionalProperties": { "type": ["integer", "string"], "minimum": 0 },
            "minProperties": 1
        }
    ],
    "examples": [64, "imix", { "64": 7, "594": 4, "1518": 1 }]
});
