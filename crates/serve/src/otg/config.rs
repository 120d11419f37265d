//! A configuration: ports and flows as they are sent. What cannot be done is refused by its path, all of it at once.

use super::devices::{self, Devices, Ends, Fill};
use super::frames;
use super::read::{At, Findings};
use scenario::{Context, Sign};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Flows of a configuration.
const FLOWS: usize = 4096;
/// Ports: each has a meter.
const PORTS: usize = 15;
/// Up to so many flows each one is a run of its own, which is started, paused and stopped alone.
const APART: usize = 8;
/// Runs of all sorts that an agent carries out at once.
pub(crate) const RUNS: usize = 16;
/// Streams of a scenario.
const STREAMS: usize = 1024;
/// Bytes that a frame takes on the wire beside itself: preamble and the least gap.
const WIRE: u64 = 20;

/// A port.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Port {
    pub name: String,
    /// The interface.
    pub location: String,
    /// Of `layer1`, where a link's speed is said.
    pub bits_per_second: Option<u64>,
    pub capture: Option<Capture>,
}

/// How a port captures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Capture {
    pub pcapng: bool,
    pub snap: Option<u64>,
}

/// What of a flow is asked for in metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub enable: bool,
    pub loss: bool,
    pub latency: bool,
    pub timestamps: bool,
}

/// A flow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flow {
    pub name: String,
    /// Places of ports.
    pub tx: usize,
    pub rx: Vec<usize>,
    /// A stream of a scenario. Between devices whose gateways are not known yet it stands for one of the same length.
    pub stream: Value,
    /// Which devices it is between, and its frame with a place for the gateways' addresses.
    pub between: Option<(Ends, String)>,
    pub metrics: Metrics,
    /// Frames per second, all together.
    pub pps: f64,
    /// Its frames have a signature.
    pub signed: bool,
    /// The bytes of each frame, FCS included, where all have the same.
    pub size: Option<u64>,
}

/// A configuration that can be carried out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    pub ports: Vec<Port>,
    pub devices: Devices,
    pub flows: Vec<Flow>,
    /// Flows that are one run: those of a port together, or each alone where they are few.
    pub gangs: Vec<Vec<usize>>,
}

const NOT_HERE: &str = "netdyno does not emulate this: leave it out";

impl Config {
    /// Reads it.
    pub fn read(value: &Value) -> (Config, Findings) {
        let findings = Findings::default();
        let mut config = Config::default();
        if value.is_null() {
            return (config, findings);
        }
        let at = At::root(value, &findings);
        at.only(&[
            "ports",
            "lags",
            "layer1",
            "captures",
            "devices",
            "flows",
            "events",
            "options",
            "lldp",
            "stateful_flows",
            "egress_only_tracking",
        ]);
        at.not(&[
            ("lags", NOT_HERE),
            ("events", NOT_HERE),
            ("lldp", NOT_HERE),
            ("stateful_flows", NOT_HERE),
            ("egress_only_tracking", NOT_HERE),
        ]);
        config.read_ports(&at.get("ports"));
        config.read_layer1(&at.get("layer1"));
        config.read_captures(&at.get("captures"));
        config.devices = Devices::read(&at.get("devices"), &config.ports);
        read_options(&at.get("options"));
        config.read_flows(&at.get("flows"));
        (config, findings)
    }

    fn read_ports(&mut self, of: &At<'_>) {
        let mut places = BTreeMap::new();
        if of.count() > PORTS {
            of.wrong(&format!("at most {PORTS} ports"));
            return;
        }
        for port in of.each() {
            port.only(&["name", "location"]);
            let Some(name) = port.get("name").name() else { continue };
            if self.port(name).is_some() {
                port.get("name").wrong(&format!("there are two ports `{}`", report::units::printable(name)));
                continue;
            }
            let location = port.get("location").text().unwrap_or_default().trim();
            if location.is_empty() {
                port.get("location").wrong("is needed: the interface, such as eth1, or veth0@namespace");
                continue;
            }
            if let Some(other) = places.insert(location.to_owned(), name.to_owned()) {
                port.get("location").wrong(&format!("port `{other}` has this interface already"));
                continue;
            }
            self.ports.push(Port {
                name: name.to_owned(),
                location: location.to_owned(),
                bits_per_second: None,
                capture: None,
            });
        }
    }

    pub fn port(&self, name: &str) -> Option<usize> {
        self.ports.iter().position(|port| port.name == name)
    }

    /// The ports that a list names; each that there is not is an offence.
    fn named(&self, of: &At<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        for name in of.each() {
            let Some(text) = name.name() else { continue };
            match self.port(text) {
                Some(port) => found.push(port),
                None => name.wrong(&format!("there is no port `{}`", report::units::printable(text))),
            }
        }
        found
    }

    fn read_layer1(&mut self, of: &At<'_>) {
        for layer in of.each() {
            layer.only(&[
                "port_names",
                "name",
                "speed",
                "media",
                "promiscuous",
                "mtu",
                "ieee_media_defaults",
                "auto_negotiate",
                "auto_negotiation",
                "flow_control",
            ]);
            let ports = self.named(&layer.get("port_names"));
            for setting in
                ["media", "ieee_media_defaults", "auto_negotiate", "auto_negotiation", "flow_control", "mtu"]
            {
                if layer.get(setting).is_there() {
                    layer.get(setting).warn("the interface stays as it is: set it with ip or ethtool");
                }
            }
            let speed = layer.get("speed");
            let Some(text) = speed.text() else { continue };
            let Some(bits) = speed_of(text) else {
                speed.wrong("must be such as speed_10_gbps");
                continue;
            };
            for port in ports {
                if let Some(port) = self.ports.get_mut(port) {
                    port.bits_per_second = Some(bits);
                }
            }
            speed.warn("rates in percent are of this; the interface's own speed stays as it is");
        }
    }

    fn read_captures(&mut self, of: &At<'_>) {
        for capture in of.each() {
            capture.only(&["port_names", "name", "filters", "overwrite", "packet_size", "format"]);
            capture.get("name").name();
            capture.not(&[("filters", "filters are not offered: filter what get_capture returns")]);
            let format = capture.get("format");
            let pcapng = match format.text() {
                Some("pcapng") => true,
                None | Some("pcap") => false,
                Some(_) => {
                    format.wrong("must be pcap or pcapng");
                    false
                }
            };
            let snap = capture.get("packet_size").whole();
            for port in self.named(&capture.get("port_names")) {
                if let Some(port) = self.ports.get_mut(port) {
                    port.capture = Some(Capture { pcapng, snap });
                }
            }
        }
    }

    fn read_flows(&mut self, of: &At<'_>) {
        if of.count() > FLOWS {
            of.wrong(&format!("at most {FLOWS} flows"));
            return;
        }
        let flows = of.each();
        let (mut names, mut whole) = (BTreeSet::new(), Vec::new());
        for flow in flows {
            let name = flow.get("name").name();
            if let Some(name) = name.filter(|name| !names.insert((*name).to_owned())) {
                flow.get("name").wrong(&format!("there are two flows `{}`", report::units::printable(name)));
            }
            let read = self.read_flow(&flow, name.unwrap_or_default());
            let Some(read) = read else { continue };
            whole.push(flow);
            self.flows.push(read);
        }
        self.gang();
        self.sign(&whole);
    }

    /// Can the flows be sent as they are said, those that are one run together, and which of them have room for signatures?
    fn sign(&mut self, at: &[At<'_>]) {
        for gang in &self.gangs {
            let streams: Vec<&Value> =
                gang.iter().filter_map(|flow| Some(&self.flows.get(*flow)?.stream)).collect();
            let unsigned = match room(&streams) {
                Ok(unsigned) => unsigned,
                Err(together) => {
                    let mut found = false;
                    for (stream, flow) in streams.iter().zip(gang) {
                        if let (Err(error), Some(at)) = (room(&[stream]), at.get(*flow)) {
                            found = true;
                            at.wrong(&plain(&error.to_string()));
                        }
                    }
                    if let (false, Some(at)) = (found, gang.first().and_then(|flow| at.get(*flow))) {
                        at.wrong(&format!(
                            "together with the other flows of its port: {}",
                            plain(&together.to_string())
                        ));
                    }
                    continue;
                }
            };
            for flow in gang {
                let (Some(own), Some(at)) = (self.flows.get_mut(*flow), at.get(*flow)) else { continue };
                if unsigned.contains(&own.name) {
                    own.signed = false;
                    if own.metrics.enable {
                        at.get("size").warn(NO_ROOM);
                    }
                }
            }
        }
    }

    fn read_flow(&self, flow: &At<'_>, name: &str) -> Option<Flow> {
        flow.only(&[
            "name",
            "tx_rx",
            "packet",
            "egress_packet",
            "size",
            "rate",
            "duration",
            "metrics",
            "payload",
        ]);
        flow.not(&[("egress_packet", NOT_HERE)]);
        let (ends, between) = self.ends(&flow.get("tx_rx"), &flow.get("packet"));
        let fill = between.as_ref().map_or_else(Fill::default, |between| self.devices.fill(between));
        let frame = frames::expression(&flow.get("packet"), &fill);
        let payload = payload(&flow.get("payload"));
        let size = size(&flow.get("size"));
        let bits = ends.as_ref().and_then(|(tx, _)| self.ports.get(*tx)?.bits_per_second);
        let rate = size.as_ref().and_then(|size| rate(&flow.get("rate"), size, bits));
        let mut stream = Map::new();
        stream.insert("name".to_owned(), name.into());
        let timed = rate.as_ref().and_then(|rate| duration(&flow.get("duration"), rate, bits, &mut stream));
        let metrics = metrics(&flow.get("metrics"));
        let ((tx, rx), frame, size, pps, ()) = (ends?, frame?, size?, rate?, timed?);
        let frame = format!("{frame}{payload}");
        stream.insert("frame".to_owned(), devices::unresolved(&frame).into());
        stream.insert("size".to_owned(), size.law.clone());
        if !stream.contains_key("burst") {
            stream.insert("rate".to_owned(), pps.text.clone().into());
        }
        let stream = Value::Object(stream);
        Some(Flow {
            name: name.to_owned(),
            tx,
            rx,
            stream,
            between: between.map(|between| (between, frame)),
            metrics,
            pps: pps.pps,
            signed: true,
            size: size.fixed,
        })
    }

    /// The port that sends and those that receive; and which devices, if they are those of some.
    fn ends(&self, of: &At<'_>, packet: &At<'_>) -> (Option<(usize, Vec<usize>)>, Option<Ends>) {
        if !of.is_there() {
            of.wrong("is needed: which port or device sends, and which receives");
            return (None, None);
        }
        of.only(&["choice", "port", "device"]);
        if of.choice("port", &["port", "device"]) != "device" {
            return (self.port_ends(of), None);
        }
        let device = of.get("device");
        let Some(ends) = self.devices.ends(&device, packet) else { return (None, None) };
        let (tx, rx) = self.devices.ports(&ends);
        if rx.contains(&tx) {
            device.wrong("these devices are at one port, where a flow's frames do not arrive: name receivers at another");
            return (None, None);
        }
        (Some((tx, rx)), Some(ends))
    }

    fn port_ends(&self, of: &At<'_>) -> Option<(usize, Vec<usize>)> {
        let port = of.get("port");
        port.only(&["tx_name", "rx_name", "rx_names"]);
        let tx_name = port.get("tx_name").name()?;
        let Some(tx) = self.port(tx_name) else {
            port.get("tx_name").wrong(&format!("there is no port `{}`", report::units::printable(tx_name)));
            return None;
        };
        let mut rx = self.named(&port.get("rx_names"));
        if let Some(name) = port.get("rx_name").text().filter(|name| !name.is_empty()) {
            match self.port(name) {
                Some(found) => rx.push(found),
                None => port
                    .get("rx_name")
                    .wrong(&format!("there is no port `{}`", report::units::printable(name))),
            }
        }
        rx.sort_unstable();
        rx.dedup();
        if rx.contains(&tx) {
            port.wrong("a flow's frames do not arrive at the port that sends them: name another `rx_names`");
            return None;
        }
        Some((tx, rx))
    }

    /// Runs that look on: a meter at each port, and captures.
    pub fn lookers(&self) -> usize {
        self.ports.len() + self.ports.iter().filter(|port| port.capture.is_some()).count()
    }

    fn gang(&mut self) {
        if self.flows.len() <= APART && self.flows.len() + self.lookers() <= RUNS {
            self.gangs = (0..self.flows.len()).map(|flow| vec![flow]).collect();
            return;
        }
        let mut by_port: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, flow) in self.flows.iter().enumerate() {
            by_port.entry(flow.tx).or_default().push(at);
        }
        // What has an end of its own and what goes on for ever may stand side by side in a scenario.
        self.gangs = by_port
            .into_values()
            .flat_map(|flows| flows.chunks(STREAMS).map(<[usize]>::to_vec).collect::<Vec<_>>())
            .collect();
    }
}

fn read_options(of: &At<'_>) {
    of.only(&["port_options", "protocol_options", "per_port_options", "flow_options"]);
    of.not(&[("protocol_options", NOT_HERE), ("per_port_options", NOT_HERE), ("flow_options", NOT_HERE)]);
    let ports = of.get("port_options");
    ports.only(&["location_preemption", "data_integrity", "frame_ordering_mode"]);
    if ports.get("location_preemption").flag() {
        ports.get("location_preemption").warn("a port that another run holds is not taken from it");
    }
    if ports.get("data_integrity").flag() {
        ports
            .get("data_integrity")
            .warn("payloads are not compared here: `netdyno send --check-content` does that");
    }
    if ports.get("frame_ordering_mode").is_there() {
        ports.get("frame_ordering_mode").warn("order is always measured, by the signatures' numbers");
    }
}

fn speed_of(text: &str) -> Option<u64> {
    let (number, unit) = text.strip_prefix("speed_")?.split_once('_')?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "gbps" => number.checked_mul(1_000_000_000),
        "fd_mbps" | "hd_mbps" | "mbps" => number.checked_mul(1_000_000),
        _ => None,
    }
}

fn payload(of: &At<'_>) -> String {
    if !of.is_there() {
        return String::new();
    }
    of.only(&["choice", "fixed"]);
    if of.choice("fixed", &["fixed"]).is_empty() || !of.get("fixed").is_there() {
        return String::new();
    }
    let fixed = of.get("fixed");
    fixed.only(&["pattern", "repeat"]);
    let pattern = fixed.get("pattern").text().unwrap_or_default();
    let bytes: String = pattern.chars().filter(|c| !c.is_whitespace()).collect();
    if bytes.is_empty() || bytes.len() % 2 == 1 || !bytes.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        fixed.get("pattern").wrong("must be bytes in hexadecimal");
        return String::new();
    }
    let repeats = !fixed.get("repeat").is_there() || fixed.get("repeat").flag();
    if repeats { format!("/payload(fill=hex(\"{bytes}\"))") } else { format!("/raw(hex=\"{bytes}\")") }
}

/// Frame sizes, FCS included.
struct Size {
    law: Value,
    fixed: Option<u64>,
    mean: f64,
}

fn bounded(of: &At<'_>, default: u64) -> Option<u64> {
    let size = if of.is_there() { of.whole()? } else { default };
    if !(18..=16_384).contains(&size) {
        of.wrong("frames have 18 to 16384 bytes, the FCS counted");
        return None;
    }
    Some(size)
}

fn size(of: &At<'_>) -> Option<Size> {
    of.only(&["choice", "fixed", "increment", "random", "weight_pairs"]);
    match of.choice("fixed", &["fixed", "increment", "random", "weight_pairs"]) {
        "fixed" => {
            let fixed = bounded(&of.get("fixed"), 64)?;
            Some(Size { law: fixed.into(), fixed: Some(fixed), mean: fixed as f64 })
        }
        "increment" => {
            let of = of.get("increment");
            of.only(&["start", "end", "step"]);
            let (start, end) = (bounded(&of.get("start"), 64)?, bounded(&of.get("end"), 1518)?);
            let step = of.get("step").whole().unwrap_or(1).max(1);
            if start > end {
                of.wrong("`start` is greater than `end`");
                return None;
            }
            let all: Vec<u64> = (start..=end).step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect();
            let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
            Some(Size { law: all.into(), fixed: None, mean })
        }
        "random" => {
            let of = of.get("random");
            of.only(&["min", "max"]);
            let (least, most) = (bounded(&of.get("min"), 64)?, bounded(&of.get("max"), 1518)?);
            if least > most {
                of.wrong("`min` is greater than `max`");
                return None;
            }
            let mean = (least + most) as f64 / 2.0;
            Some(Size { law: format!("random({least}..{most})").into(), fixed: None, mean })
        }
        "weight_pairs" => weights(&of.get("weight_pairs")),
        _ => None,
    }
}

fn weights(of: &At<'_>) -> Option<Size> {
    of.only(&["choice", "predefined", "custom"]);
    let pairs: Vec<(u64, f64)> = match of.choice("predefined", &["predefined", "custom"]) {
        "custom" => {
            let mut pairs = Vec::new();
            for pair in of.get("custom").each() {
                pair.only(&["size", "weight"]);
                let weight = if pair.get("weight").is_there() { pair.get("weight").number()? } else { 1.0 };
                if weight <= 0.0 {
                    pair.get("weight").wrong("must be more than 0");
                    return None;
                }
                pairs.push((bounded(&pair.get("size"), 64)?, weight));
            }
            pairs
        }
        "predefined" => match of.get("predefined").text().unwrap_or("imix") {
            "imix" => vec![(64, 7.0), (570, 4.0), (1518, 1.0)],
            _ => {
                let what = "netdyno has imix alone: give others as `custom`";
                of.get("predefined").wrong(what);
                return None;
            }
        },
        _ => return None,
    };
    if pairs.is_empty() {
        of.get("custom").wrong("is empty");
        return None;
    }
    let mut sum: BTreeMap<u64, f64> = BTreeMap::new();
    pairs.iter().for_each(|(size, weight)| *sum.entry(*size).or_default() += weight);
    // Whole weights, as near as 1 to 10,000.
    let least = sum.values().copied().fold(f64::MAX, f64::min);
    let whole = sum.values().all(|weight| (weight / least).fract() < 1e-9 && weight / least < 10_000.0);
    let total: f64 = sum.values().sum();
    let scaled = |weight: f64| {
        if whole { (weight / least).round() } else { (weight / total * 10_000.0).round().max(1.0) }
    };
    let law: Map<String, Value> =
        sum.iter().map(|(size, weight)| (size.to_string(), json!(scaled(*weight) as u64))).collect();
    let mean = sum.iter().map(|(size, weight)| *size as f64 * weight).sum::<f64>() / total;
    Some(Size { law: Value::Object(law), fixed: None, mean })
}

/// A rate in frames, of which a frame of mean size makes those bits.
struct Pace {
    text: String,
    pps: f64,
}

fn rate(of: &At<'_>, size: &Size, link: Option<u64>) -> Option<Pace> {
    let all = ["pps", "bps", "kbps", "mbps", "gbps", "percentage"];
    of.only(&["choice", "pps", "bps", "kbps", "mbps", "gbps", "percentage"]);
    let choice = of.choice("pps", &all);
    let given = of.get(choice);
    let unit = match choice {
        "pps" => {
            let pps = if given.is_there() { given.number()? } else { 1000.0 };
            return positive(&given, pps);
        }
        "bps" => 1.0,
        "kbps" => 1e3,
        "mbps" => 1e6,
        "gbps" => 1e9,
        "percentage" => {
            let percent = if given.is_there() { given.number()? } else { 100.0 };
            if percent > 100.0 {
                given.wrong("is more than 100 % of the line");
                return None;
            }
            if let Some(link) = link {
                return positive(&given, link as f64 * percent / 100.0 / (8.0 * (size.mean + WIRE as f64)));
            }
            // Of the interface's own speed, which the run finds out.
            return Some(Pace { text: format!("{percent}%"), pps: f64::MAX });
        }
        _ => return None,
    };
    let bits = if given.is_there() { given.number()? * unit } else { 1e9 };
    positive(&given, bits / (8.0 * size.mean))
}

fn positive(of: &At<'_>, pps: f64) -> Option<Pace> {
    if !(0.001..=1e10).contains(&pps) {
        of.wrong("must be more than 0");
        return None;
    }
    // Nine digits behind the point: a frame in a thousand million.
    let text = format!("{pps:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    Some(Pace { text: format!("{text}pps"), pps })
}

fn duration(of: &At<'_>, pace: &Pace, link: Option<u64>, stream: &mut Map<String, Value>) -> Option<()> {
    let all = ["continuous", "fixed_packets", "fixed_seconds", "burst"];
    of.only(&["choice", "continuous", "fixed_packets", "fixed_seconds", "burst"]);
    let choice = of.choice("continuous", &all);
    let given = of.get(choice);
    let mut put = |name: &str, value: Value| drop(stream.insert(name.to_owned(), value));
    match choice {
        "continuous" => given.only(&["gap", "delay"]),
        "fixed_packets" => {
            given.only(&["packets", "gap", "delay"]);
            let packets = given.get("packets").whole().unwrap_or(1);
            if packets == 0 {
                given.get("packets").wrong("must be at least 1");
                return None;
            }
            put("count", packets.into());
        }
        "fixed_seconds" => {
            given.only(&["seconds", "gap", "delay"]);
            let seconds = if given.get("seconds").is_there() { given.get("seconds").number()? } else { 1.0 };
            if !(1e-6..=1e9).contains(&seconds) {
                given.get("seconds").wrong("must be more than 0");
                return None;
            }
            put("duration", format!("{}ns", (seconds * 1e9).round() as u64).into());
        }
        "burst" => {
            given.only(&["bursts", "packets", "gap", "inter_burst_gap"]);
            let packets = given.get("packets").whole().unwrap_or(1).max(1);
            if pace.pps >= f64::MAX {
                of.wrong("bursts of a rate in percent need the port's speed in `layer1`");
                return None;
            }
            let bursts = given.get("bursts").whole().unwrap_or(0);
            let gap = (1e9 / pace.pps).round().max(1.0) as u64;
            let between = time(&given.get("inter_burst_gap"), link)?;
            let mut burst = json!({
                "frames": packets,
                "gap": format!("{gap}ns"),
                "every": format!("{}ns", gap.saturating_mul(packets).saturating_add(between)),
            });
            if bursts > 0 {
                burst["count"] = bursts.into();
            }
            put("burst", burst);
            return Some(());
        }
        _ => return None,
    }
    if given.get("gap").whole().is_some_and(|gap| gap != 12) {
        given.get("gap").warn("frames leave by their rate; a least gap between them is not kept beside it");
    }
    let delay = time(&given.get("delay"), link)?;
    if delay > 0 {
        put("start", format!("{delay}ns").into());
    }
    Some(())
}

/// A time as the model has it, in nanoseconds.
fn time(of: &At<'_>, link: Option<u64>) -> Option<u64> {
    if !of.is_there() {
        return Some(0);
    }
    of.only(&["choice", "bytes", "nanoseconds", "microseconds"]);
    match of.choice("bytes", &["bytes", "nanoseconds", "microseconds"]) {
        "bytes" => {
            let bytes = of.get("bytes").number().unwrap_or(0.0);
            if bytes == 0.0 {
                return Some(0);
            }
            let Some(link) = link else {
                of.get("bytes").wrong("needs a speed in `layer1`: give nanoseconds instead");
                return None;
            };
            Some((bytes * 8e9 / link as f64).round() as u64)
        }
        "nanoseconds" => Some(of.get("nanoseconds").number()?.max(0.0).round() as u64),
        "microseconds" => Some((of.get("microseconds").number()?.max(0.0) * 1e3).round() as u64),
        _ => None,
    }
}

fn metrics(of: &At<'_>) -> Metrics {
    of.only(&["enable", "loss", "rx_tx_ratio", "timestamps", "latency", "predefined_metric_tags"]);
    of.not(&[
        ("predefined_metric_tags", "metric tags are not offered"),
        ("rx_tx_ratio", "not offered: leave it out"),
    ]);
    let latency = of.get("latency");
    latency.only(&["enable", "mode"]);
    match latency.get("mode").text() {
        None | Some("store_forward") => {}
        Some("cut_through") => {
            latency.get("mode").warn("stamps are taken by software: last bit in to last bit out")
        }
        Some(_) => latency.get("mode").wrong("must be store_forward or cut_through"),
    }
    Metrics {
        enable: of.get("enable").flag(),
        loss: of.get("loss").flag(),
        latency: latency.get("enable").flag(),
        timestamps: of.get("timestamps").flag(),
    }
}

const NO_ROOM: &str = "these frames have no room for a signature of 18 bytes: what of this flow arrives is not counted, and neither are loss and latency";

/// The names of those streams whose frames have no room for a signature.
fn room(streams: &[&Value]) -> Result<BTreeSet<String>, scenario::ScenarioError> {
    let text = json!({ "streams": streams }).to_string();
    let context =
        Context { sign: Sign::WhereRoom, link_bits_per_second: Some(1_000_000_000), ..Context::default() };
    let made = scenario::parse(&text, "flows")?.compile(&context)?;
    Ok(made.unsigned.into_iter().collect())
}

/// An error of a scenario without the place in a file that nobody wrote.
fn plain(text: &str) -> String {
    let first = text.lines().next().unwrap_or(text);
    match first.splitn(4, ':').collect::<Vec<_>>()[..] {
        [_, line, column, rest] if line.parse::<u32>().is_ok() && column.parse::<u32>().is_ok() => {
            rest.trim().to_owned()
        }
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(more: Value) -> Value {
        let mut flow = json!({
            "name": "f",
            "tx_rx": {"port": {"tx_name": "a", "rx_names": ["b"]}},
            "packet": [{"choice": "ethernet", "ethernet": {}}, {"choice": "ipv4", "ipv4": {}}, {"choice": "udp", "udp": {}}],
        });
        for (name, value) in more.as_object().expect("members") {
            flow[name] = value.clone();
        }
        json!({
            "ports": [{"name": "a", "location": "x"}, {"name": "b", "location": "y"}],
            "layer1": [{"name": "l", "port_names": ["a"], "speed": "speed_10_gbps"}],
            "flows": [flow],
        })
    }

    #[track_caller]
    fn stream(more: Value) -> Value {
        let (config, findings) = Config::read(&flow(more));
        assert_eq!(findings.offences(), Vec::<String>::new());
        config.flows.first().expect("a flow").stream.clone()
    }

    #[test]
    fn rates_sizes_and_durations_are_those_of_the_model() {
        for (more, member, wanted) in [
            (json!({}), "rate", json!("1000pps")),
            (json!({"rate": {"choice": "pps", "pps": "25"}}), "rate", json!("25pps")),
            // 10 Gbit/s of frames of 64 bytes with preamble and gap.
            (json!({"rate": {"percentage": 100}}), "rate", json!("14880952.380952381pps")),
            (
                json!({"rate": {"percentage": 50}, "size": {"fixed": 1518}}),
                "rate",
                json!("406371.911573472pps"),
            ),
            (json!({"rate": {"mbps": 8}, "size": {"fixed": 1000}}), "rate", json!("1000pps")),
            (json!({"size": {"fixed": "128"}}), "size", json!(128)),
            (
                json!({"size": {"increment": {"start": 64, "end": 70, "step": 3}}}),
                "size",
                json!([64, 67, 70]),
            ),
            (
                json!({"size": {"choice": "random", "random": {"min": 64, "max": 65}}}),
                "size",
                json!("random(64..65)"),
            ),
            (
                json!({"size": {"weight_pairs": {"predefined": "imix"}}}),
                "size",
                json!({"64": 7, "570": 4, "1518": 1}),
            ),
            (
                json!({"size": {"weight_pairs": {"custom": [{"size": 64, "weight": 1.5}, {"size": 128, "weight": 0.5}]}}}),
                "size",
                json!({"64": 3, "128": 1}),
            ),
            (json!({"duration": {"fixed_packets": {"packets": 7}}}), "count", json!(7)),
            (json!({"duration": {"fixed_seconds": {"seconds": 1.5}}}), "duration", json!("1500000000ns")),
            (
                json!({"duration": {"fixed_packets": {"packets": 7, "delay": {"microseconds": 2.5}}}}),
                "start",
                json!("2500ns"),
            ),
            (
                json!({"rate": {"pps": 1_000_000}, "duration": {"burst": {"bursts": 4, "packets": 10, "inter_burst_gap": {"nanoseconds": 5000}}}}),
                "burst",
                json!({"frames": 10, "gap": "1000ns", "every": "15000ns", "count": 4}),
            ),
        ] {
            assert_eq!(stream(more.clone())[member], wanted, "{more}");
        }
    }

    #[test]
    fn few_flows_are_runs_of_their_own_and_many_are_one_for_each_port() {
        let mut value = flow(json!({}));
        let one = value["flows"][0].clone();
        for count in [8, 9] {
            let flows: Vec<Value> = (0..count)
                .map(|number| {
                    let mut flow = one.clone();
                    flow["name"] = format!("f{number}").into();
                    flow
                })
                .collect();
            value["flows"] = flows.into();
            let (config, findings) = Config::read(&value);
            assert!(findings.offences().is_empty());
            assert_eq!(config.gangs.len(), if count == 8 { 8 } else { 1 });
        }
    }

    /// Values that look like the model's, and others.
    fn anything() -> impl Strategy<Value = Value> {
        const WORDS: [&str; 24] = [
            "choice",
            "ports",
            "flows",
            "name",
            "location",
            "packet",
            "ipv4",
            "src",
            "increment",
            "start",
            "step",
            "count",
            "size",
            "rate",
            "pps",
            "duration",
            "tx_rx",
            "port",
            "tx_name",
            "random",
            "min",
            "max",
            "bytes",
            "1.2.3.4",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            prop::sample::select(&WORDS[..]).prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((prop::sample::select(&WORDS[..]), inner), 0..6).prop_map(|members| {
                    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_configuration_is_read_or_refused(value in anything(), part in anything(), at in 0..6_usize) {
            let _ = Config::read(&value);
            let names = ["packet", "size", "rate", "duration", "metrics", "tx_rx"];
            let mut with = flow(json!({}));
            with["flows"][0][names[at]] = part;
            let (config, findings) = Config::read(&with);
            prop_assert!(config.flows.len() == 1 || !findings.offences().is_empty());
        }
    }
}
