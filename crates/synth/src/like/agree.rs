//! How far two profiles agree: a capture's and its look-alike's.

use std::collections::BTreeMap;

use serde::Serialize;
use wire::numbers::protocol;

use super::distribution::Distribution;
use super::profile::{FlowProfile, Kind, What};

/// One quantity of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub what: &'static str,
    /// Its unit, after the value.
    pub unit: &'static str,
    /// Of the original.
    pub original: f64,
    /// Of the look-alike.
    pub look_alike: f64,
    /// Their difference relative to the original; 0 where both are 0, nothing where only the original is.
    pub difference: Option<f64>,
}

/// A comparison of two profiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Single quantities.
    pub totals: Vec<Row>,
    /// The largest difference of a share, by what the frames (or conversations) are divided.
    pub shares: Vec<Share>,
}

/// How differently frames or conversations are divided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// By what.
    pub what: &'static str,
    /// The largest difference between a part's shares: 0 to 1. Of values with an order it is that of the shares up to a value
    /// (Kolmogorov and Smirnov's distance).
    pub difference: f64,
    /// Where it is, in words.
    pub at: String,
}

impl Agreement {
    /// Compares `look_alike` with `original`.
    pub fn of(original: &FlowProfile, look_alike: &FlowProfile) -> Agreement {
        let (a, b) = (Totals::of(original), Totals::of(look_alike));
        let row = |what, unit, of: fn(&Totals) -> f64| {
            let (original, look_alike) = (of(&a), of(&b));
            let difference = match original {
                0.0 if look_alike == 0.0 => Some(0.0),
                0.0 => None,
                _ => Some((look_alike - original) / original),
            };
            Row { what, unit, original, look_alike, difference }
        };
        let totals = vec![
            row("frames", "", |t| t.frames),
            row("bytes", "", |t| t.sizes.sum() as f64 - 4.0 * t.frames),
            row("duration", "s", |t| t.seconds),
            row("one-way flows", "", |t| t.flows),
            row("conversations", "", |t| t.conversations),
            row("conversations at once, mean", "", |t| t.at_once),
            row("frames of no flow", "", |t| t.others),
            row("IPv4 clients", "", |t| t.hosts[0]),
            row("IPv4 servers", "", |t| t.hosts[1]),
            row("IPv6 clients", "", |t| t.hosts[2]),
            row("IPv6 servers", "", |t| t.hosts[3]),
            row("VLANs", "", |t| t.vlans),
            row("gap between frames, median", "ns", |t| t.gaps.quantile(0.5) as f64),
            row("gap between frames, 99th percentile", "ns", |t| t.gaps.quantile(0.99) as f64),
        ];
        let shares = vec![
            parts("frames by size class", &a.classes, &b.classes),
            parts("frames by network layer", &a.networks, &b.networks),
            parts("frames by transport", &a.transports, &b.transports),
            parts("frames by server port", &a.ports, &b.ports),
            parts("frames by tags", &a.tags, &b.tags),
            ordered("sizes", "bytes with FCS", &a.sizes, &b.sizes),
            ordered("frames of a conversation", "frames", &a.lengths, &b.lengths),
            ordered("durations of conversations", "ns", &a.durations, &b.durations),
            ordered("gaps between frames", "ns", &a.gaps, &b.gaps),
        ];
        Agreement { totals, shares }
    }
}

/// What is compared.
#[derive(Debug, Default)]
struct Totals {
    frames: f64,
    seconds: f64,
    flows: f64,
    conversations: f64,
    at_once: f64,
    others: f64,
    hosts: [f64; 4],
    vlans: f64,
    sizes: Distribution,
    lengths: Distribution,
    durations: Distribution,
    gaps: Distribution,
    classes: BTreeMap<String, f64>,
    networks: BTreeMap<String, f64>,
    transports: BTreeMap<String, f64>,
    ports: BTreeMap<String, f64>,
    tags: BTreeMap<String, f64>,
}

impl Totals {
    fn of(profile: &FlowProfile) -> Totals {
        let bounds = profile.bounds();
        let mut t = Totals {
            frames: bounds.frames as f64,
            seconds: profile.duration_ns as f64 / 1e9,
            flows: bounds.flows as f64,
            conversations: bounds.conversations as f64,
            hosts: [profile.ipv4.clients, profile.ipv4.servers, profile.ipv6.clients, profile.ipv6.servers]
                .map(|count| count as f64),
            vlans: profile.vlans as f64,
            ..Totals::default()
        };
        for kind in &profile.kinds {
            t.kind(kind);
        }
        for other in &profile.others {
            let frames = other.sizes.count() as f64;
            t.others += frames;
            t.sizes.merge(&other.sizes);
            let network = match other.what {
                What::EtherType(kind) => format!("EtherType {kind:#06x}"),
                What::Llc => "LLC".to_owned(),
                What::Unknown => "neither".to_owned(),
                What::Fragment { ip, .. } | What::CutOff { ip, .. } => format!("IPv{ip}"),
            };
            *t.networks.entry(network).or_default() += frames;
            *t.tags.entry(format!("{:?}", other.tags)).or_default() += frames;
        }
        for part in &profile.intervals {
            t.gaps.merge(&part.gaps_ns);
            t.gaps.merge(&part.starts_ns);
        }
        if profile.duration_ns > 0 {
            t.at_once = t.durations.sum() as f64 / profile.duration_ns as f64;
        }
        let bounds = [63u64, 64, 127, 255, 511, 1023, 1518];
        for (&size, &count) in &t.sizes.0 {
            let class = bounds.iter().position(|bound| size <= *bound);
            let name = class
                .and_then(|class| bounds.get(class))
                .map_or_else(|| "over 1518".to_owned(), |b| format!("up to {b}"));
            *t.classes.entry(name).or_default() += count as f64;
        }
        t
    }

    fn kind(&mut self, kind: &Kind) {
        let mut frames = 0.0;
        for sizes in kind.sizes.client.iter().chain(&kind.sizes.server) {
            frames += sizes.count() as f64;
            self.sizes.merge(sizes);
        }
        for shape in &kind.shapes {
            // Both directions of a conversation by their means: exact where a shape has one length.
            let n = shape.conversations.max(1);
            let length = (shape.client.sum() + shape.server.sum()) / u128::from(n);
            *self.lengths.0.entry(length as u64).or_insert(0) += shape.conversations;
            self.durations.merge(&shape.duration_ns);
        }
        *self.networks.entry(format!("IPv{}", kind.ip)).or_default() += frames;
        *self.transports.entry(format!("protocol {}", kind.protocol)).or_default() += frames;
        *self.tags.entry(format!("{:?}", kind.tags)).or_default() += frames;
        let name = match (kind.protocol, kind.port, kind.ports) {
            (protocol::ICMP | protocol::ICMPV6, Some(port), _) => format!("ICMP type {}", port >> 8),
            (number, Some(port), _) if kind.has_ports() => format!("protocol {number} port {port}"),
            (number, None, Some([least, most, _])) => format!("protocol {number} ports {least} to {most}"),
            (number, ..) => format!("protocol {number}"),
        };
        *self.ports.entry(name).or_default() += frames;
    }
}

fn parts(what: &'static str, a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> Share {
    let total = |of: &BTreeMap<String, f64>| of.values().sum::<f64>().max(1.0);
    let (all_a, all_b) = (total(a), total(b));
    let share = |of: &BTreeMap<String, f64>, all: f64, name: &str| of.get(name).copied().unwrap_or(0.0) / all;
    let mut most = Share { what, difference: 0.0, at: String::new() };
    for name in a.keys().chain(b.keys()) {
        let difference = (share(a, all_a, name) - share(b, all_b, name)).abs();
        if difference > most.difference {
            most = Share { what, difference, at: name.clone() };
        }
    }
    most
}

fn ordered(what: &'static str, unit: &str, a: &Distribution, b: &Distribution) -> Share {
    let mut values: Vec<u64> = a.0.keys().chain(b.0.keys()).copied().collect();
    values.sort_unstable();
    values.dedup();
    let (all_a, all_b) = (a.count().max(1) as f64, b.count().max(1) as f64);
    let (mut upto_a, mut upto_b) = (0.0, 0.0);
    let mut most = Share { what, difference: 0.0, at: String::new() };
    for value in values {
        upto_a += a.0.get(&value).copied().unwrap_or(0) as f64 / all_a;
        upto_b += b.0.get(&value).copied().unwrap_or(0) as f64 / all_b;
        // What is lost in adding many shares is no difference.
        if (upto_a - upto_b).abs() > most.difference + 1e-9 {
            most = Share { what, difference: (upto_a - upto_b).abs(), at: format!("up to {value} {unit}") };
        }
    }
    most
}
