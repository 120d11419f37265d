//! What has been counted: of ports and of flows. What was not measured is left out.

use super::config::Flow;
use super::tester::{Attempt, Gang, Setup, Tester};
use crate::runs::Run;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Bytes of a frame check sequence, which sizes of the model count.
const FCS: u64 = 4;

/// Frames, bytes, and frames a second.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    frames: u64,
    bytes: u64,
    rate: f64,
    bytes_rate: f64,
}

impl Sum {
    fn plus(&self, more: &Sum) -> Sum {
        Sum {
            frames: self.frames + more.frames,
            bytes: self.bytes + more.bytes,
            rate: self.rate + more.rate,
            bytes_rate: self.bytes_rate + more.bytes_rate,
        }
    }
}

fn count(of: &Value, name: &str) -> u64 {
    of.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// What a member of a run's snapshots counts, `tx` or `rx`.
fn counted(run: &Run, member: &str) -> Option<Sum> {
    let (newest, before) = run.newest();
    let newest = newest?;
    let of = |snapshot: &Value| snapshot.get(member).map(|sum| (count(sum, "frames"), count(sum, "bytes")));
    let (frames, bytes) = of(&newest)?;
    let mut sum = Sum { frames, bytes: bytes + FCS * frames, ..Sum::default() };
    if run.is_over() && run.report().is_none() {
        return Some(sum);
    }
    // The whole of it, which the last snapshot may not have.
    if let Some(report) = run.report() {
        let whole = &report["result"][member];
        if whole.is_object() {
            (sum.frames, sum.bytes) =
                (count(whole, "frames"), count(whole, "bytes") + FCS * count(whole, "frames"));
        }
        return Some(sum);
    }
    if let Some(before) = before {
        let took = count(&newest, "elapsed_ns").saturating_sub(count(&before, "elapsed_ns")) as f64 / 1e9;
        let (earlier, earlier_bytes) = of(&before).unwrap_or_default();
        if took > 0.0 {
            let frames = frames.saturating_sub(earlier) as f64;
            let bytes = bytes.saturating_sub(earlier_bytes) as f64;
            sum.rate = frames / took;
            sum.bytes_rate = (bytes + FCS as f64 * frames) / took;
        }
    }
    Some(sum)
}

/// Whether it is known what a run has sent: it goes on, or has told its result. Of one that broke off the last snapshot is older than its end.
fn is_known(run: &Run) -> bool {
    !run.is_over() || run.report().is_some()
}

/// Frames and bytes that a run has sent, if that is known.
pub(crate) fn sent_by(run: &Run) -> Option<(u64, u64)> {
    is_known(run).then(|| counted(run, "tx").map_or((0, 0), |sum| (sum.frames, sum.bytes)))
}

/// Frames that a meter has counted.
pub(crate) fn received_by(run: &Run) -> u64 {
    counted(run, "rx").map_or(0, |sum| sum.frames)
}

/// The streams of a meter's newest snapshot, by their numbers; and with what distance they were looked at, and before.
struct Arrived {
    streams: HashMap<u64, Value>,
    before: HashMap<u64, (u64, u64)>,
    took: f64,
    over: bool,
}

impl Arrived {
    fn of(run: &Run) -> Arrived {
        let (newest, before) = run.newest();
        let streams =
            |snapshot: &Value| -> Vec<Value> { snapshot["streams"].as_array().cloned().unwrap_or_default() };
        let at = |snapshot: &Value| count(snapshot, "streams_elapsed_ns");
        let mut arrived =
            Arrived { streams: HashMap::new(), before: HashMap::new(), took: 0.0, over: run.is_over() };
        if let (Some(newest), Some(before)) = (&newest, &before) {
            arrived.took = at(newest).saturating_sub(at(before)) as f64 / 1e9;
        }
        for stream in newest.iter().flat_map(|newest| streams(newest)) {
            arrived.streams.insert(count(&stream, "stream"), stream);
        }
        for stream in before.iter().flat_map(|before| streams(before)) {
            let received = &stream["received"];
            let counts = (count(received, "frames"), count(received, "bytes"));
            arrived.before.insert(count(&stream, "stream"), counts);
        }
        arrived
    }
}

/// Each meter is read once for one answer.
#[derive(Default)]
struct Meters(BTreeMap<String, Arrived>);

impl Meters {
    fn of(&mut self, run: &Arc<Run>) -> &Arrived {
        self.0.entry(run.name.clone()).or_insert_with(|| Arrived::of(run))
    }
}

/// What arrived of a flow.
#[derive(Debug, Clone, Default)]
struct Received {
    sum: Sum,
    distinct: u64,
    missing: u64,
    /// Ports where some arrived.
    ports: BTreeSet<usize>,
    least: Option<u64>,
    greatest: Option<u64>,
    latencies: f64,
    timed: u64,
    first: Option<u64>,
    last: Option<u64>,
}

impl Received {
    fn add(&mut self, arrived: &Arrived, (port, number): (usize, u64)) {
        let Some(stream) = arrived.streams.get(&number) else { return };
        let frames = count(&stream["received"], "frames");
        if frames > 0 {
            self.ports.insert(port);
        }
        let bytes = count(&stream["received"], "bytes") + FCS * frames;
        self.sum.frames += frames;
        self.sum.bytes += bytes;
        self.distinct += frames.saturating_sub(count(stream, "duplicated_frames"));
        self.missing += count(stream, "lost_frames");
        if arrived.took > 0.0 && !arrived.over {
            let (before, before_bytes) = arrived.before.get(&number).copied().unwrap_or_default();
            let new = frames.saturating_sub(before) as f64;
            self.sum.rate += new / arrived.took;
            let new_bytes = (bytes - FCS * frames).saturating_sub(before_bytes) as f64 + FCS as f64 * new;
            self.sum.bytes_rate += new_bytes / arrived.took;
        }
        let of = |name: &str| stream.get(name).and_then(Value::as_u64);
        self.least = [self.least, of("latency_min_ns")].into_iter().flatten().min();
        self.greatest = self.greatest.max(of("latency_max_ns"));
        if let Some(mean) = stream.get("latency_mean_ns").and_then(Value::as_f64) {
            self.latencies += mean * frames as f64;
            self.timed += frames;
        }
        self.first = [self.first, of("first_arrival_ns")].into_iter().flatten().min();
        self.last = self.last.max(of("last_arrival_ns"));
    }
}

/// What the runs of several flows sent of each, looked at once for one answer.
#[derive(Default)]
struct Sent(HashMap<String, HashMap<u64, u64>>);

impl Sent {
    fn of(&mut self, attempt: &Attempt, place: usize) -> Option<u64> {
        let all = self.0.entry(attempt.run.name.clone()).or_insert_with(|| match attempt.run.report() {
            Some(report) => {
                let signed = report["result"]["tx"]["signed"].as_array();
                let row = |row: &Value| Some((count(row, "number"), row.get("frames")?.as_u64()?));
                signed.into_iter().flatten().filter_map(row).collect()
            }
            None => {
                let all = counted(&attempt.run, "tx").unwrap_or_default();
                attempt.shares(all.frames)
            }
        });
        all.get(&attempt.number(place)).copied()
    }
}

/// What a run sent of the stream at this place of its scenario; `None`: that is not known yet.
fn sent(attempt: &Attempt, place: usize, alone: bool, flow: &Flow, known: &mut Sent) -> Option<Sum> {
    let run = &attempt.run;
    if !is_known(run) {
        return None;
    }
    if alone {
        return Some(counted(run, "tx").unwrap_or_default());
    }
    let frames = known.of(attempt, place)?;
    let size = flow.size.unwrap_or(0);
    let all = counted(run, "tx").unwrap_or_default();
    // Of each stream the same share of what the run sends, but for what begins and ends meanwhile.
    let rate = match (run.is_over(), all.frames) {
        (true, _) | (_, 0) => 0.0,
        (false, whole) => all.rate * frames as f64 / whole as f64,
    };
    Some(Sum { frames, bytes: frames * size, rate, bytes_rate: rate * size as f64 })
}

fn wanted<'n>(names: &'n [&str]) -> impl Fn(&str) -> bool + 'n {
    move |name| names.is_empty() || names.contains(&name)
}

/// Only the columns that were asked for, and the names.
fn columns(row: &mut Map<String, Value>, asked: &[&str]) {
    if !asked.is_empty() {
        row.retain(|name, _| {
            matches!(name.as_str(), "name" | "port_tx" | "port_rx") || asked.contains(&name.as_str())
        });
    }
}

/// A row for each port.
pub(crate) fn ports(setup: &Setup, names: &[&str], asked: &[&str]) -> Value {
    let wants = wanted(names);
    let mut rows = Vec::new();
    for (at, port) in setup.config.ports.iter().enumerate().filter(|(_, port)| wants(&port.name)) {
        let gangs = setup.gangs.iter().filter(|gang| sends_at(setup, gang, at));
        // Of the time of the meters that count what arrives.
        let before = setup.sent_before.get(&at).copied().unwrap_or(Some((0, 0)));
        let mut tx = before.map(|(frames, bytes)| Sum { frames, bytes, ..Sum::default() });
        let mut started = false;
        for gang in gangs {
            started |= gang.transmit() != "stopped";
            let of_now = gang.attempts.iter().filter(|attempt| Arc::ptr_eq(&attempt.meters, &setup.meters));
            for attempt in of_now {
                let more = is_known(&attempt.run).then(|| counted(&attempt.run, "tx").unwrap_or_default());
                tx = tx.zip(more).map(|(all, more)| all.plus(&more));
            }
        }
        let mut row = Map::new();
        let mut put = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
        put("name", port.name.clone().into());
        put("location", port.location.clone().into());
        if let Some(up) = setup.links.get(&at).copied() {
            put("link", if up { "up" } else { "down" }.into());
        }
        put("capture", if Tester::capturing(setup, at) { "started" } else { "stopped" }.into());
        put("transmit", if started { "started" } else { "stopped" }.into());
        if let Some(tx) = tx {
            put("frames_tx", tx.frames.to_string().into());
            put("bytes_tx", tx.bytes.to_string().into());
            put("frames_tx_rate", tx.rate.into());
            put("bytes_tx_rate", tx.bytes_rate.into());
        }
        // A meter that ended by itself: what came later nobody counted.
        let meter = setup.meters.get(&at).filter(|run| !run.is_over() || setup.ended.contains(&at));
        if let Some(rx) = meter.map(|run| counted(run, "rx").unwrap_or_default()) {
            put("frames_rx", rx.frames.to_string().into());
            put("bytes_rx", rx.bytes.to_string().into());
            put("frames_rx_rate", rx.rate.into());
            put("bytes_rx_rate", rx.bytes_rate.into());
        }
        columns(&mut row, asked);
        rows.push(Value::Object(row));
    }
    json!({"choice": "port_metrics", "port_metrics": rows})
}

fn sends_at(setup: &Setup, gang: &Gang, port: usize) -> bool {
    gang.flows.first().and_then(|flow| setup.config.flows.get(*flow)).is_some_and(|flow| flow.tx == port)
}

/// A row for each flow that has metrics.
pub(crate) fn flows(setup: &Setup, names: &[&str], asked: &[&str]) -> Value {
    let wants = wanted(names);
    let (mut meters, mut known) = (Meters::default(), Sent::default());
    let mut rows: BTreeMap<usize, Value> = BTreeMap::new();
    for gang in &setup.gangs {
        for (place, at) in gang.flows.iter().enumerate() {
            let Some(flow) = setup.config.flows.get(*at) else { continue };
            if flow.metrics.enable && wants(&flow.name) {
                let mut row = row(setup, gang, place, flow, (&mut meters, &mut known));
                columns(&mut row, asked);
                rows.insert(*at, Value::Object(row));
            }
        }
    }
    json!({"choice": "flow_metrics", "flow_metrics": rows.into_values().collect::<Vec<_>>()})
}

fn row(
    setup: &Setup,
    gang: &Gang,
    place: usize,
    flow: &Flow,
    (meters, known): (&mut Meters, &mut Sent),
) -> Map<String, Value> {
    let name = |port: usize| setup.config.ports.get(port).map_or("", |port| port.name.as_str());
    let alone = gang.flows.len() == 1;
    let mut tx = Some(Sum::default());
    let (mut rx, mut blind) = (Received::default(), false);
    for attempt in &gang.attempts {
        tx = tx.zip(sent(attempt, place, alone, flow, known)).map(|(all, more)| Sum {
            frames: all.frames + more.frames,
            bytes: all.bytes + more.bytes,
            rate: more.rate,
            bytes_rate: more.bytes_rate,
        });
        for (port, meter) in flow.rx.iter().filter_map(|port| Some((*port, attempt.meters.get(port)?))) {
            rx.add(meters.of(meter), (port, attempt.number(place)));
            // It ended while frames were sent: what came later nobody counted. Nor is known what came to a meter that was not looked at since.
            blind |= meter.is_over() && (!attempt.run.is_over() || meter.over_at() < attempt.run.over_at());
            blind |= attempt.is_unseen(meter);
        }
    }
    let mut row = Map::new();
    let mut put = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
    put("name", flow.name.clone().into());
    put("port_tx", name(flow.tx).into());
    if let [only] = flow.rx[..] {
        put("port_rx", name(only).into());
    }
    let transmit = gang.transmit();
    put("transmit", transmit.into());
    let knows_bytes = alone || flow.size.is_some();
    if let Some(tx) = tx {
        put("frames_tx", tx.frames.to_string().into());
        put("frames_tx_rate", tx.rate.into());
        if knows_bytes {
            put("bytes_tx", tx.bytes.to_string().into());
            rates("tx", tx, &mut put);
        }
    }
    if flow.signed && !flow.rx.is_empty() && !blind {
        put("frames_rx", rx.sum.frames.to_string().into());
        put("bytes_rx", rx.sum.bytes.to_string().into());
        put("frames_rx_rate", rx.sum.rate.into());
        rates("rx", rx.sum, &mut put);
        told_of_arrivals(flow, &rx, (transmit, tx), &mut put);
    }
    row
}

fn rates(way: &str, sum: Sum, put: &mut impl FnMut(&str, Value)) {
    let bits = sum.bytes_rate * 8.0;
    put(&format!("{way}_l1_rate_bps"), (bits + sum.rate * 160.0).into());
    put(&format!("{way}_rate_bytes"), sum.bytes_rate.into());
    put(&format!("{way}_rate_bps"), bits.into());
    put(&format!("{way}_rate_kbps"), (bits / 1e3).into());
    put(&format!("{way}_rate_mbps"), (bits / 1e6).into());
}

fn told_of_arrivals(
    flow: &Flow,
    rx: &Received,
    (transmit, tx): (&str, Option<Sum>),
    put: &mut impl FnMut(&str, Value),
) {
    let ratio = match (transmit, tx) {
        // Each port knows its own frames alone: one that came to two of them would stand for one that was lost, and one that went to
        // another is a gap.
        _ if rx.ports.len() > 1 => None,
        // More arrived than was sent.
        ("stopped", Some(tx)) if rx.distinct > tx.frames => None,
        ("stopped", Some(tx)) if tx.frames > 0 => Some((tx.frames - rx.distinct) as f64 / tx.frames as f64),
        // Gaps do not tell what was lost behind the last that arrived.
        ("stopped", None) => None,
        // While frames are on their way only gaps tell of a loss.
        _ if rx.distinct + rx.missing > 0 => Some(rx.missing as f64 / (rx.distinct + rx.missing) as f64),
        _ => Some(0.0),
    };
    if let (true, Some(ratio)) = (flow.metrics.loss, ratio) {
        put("loss", (ratio * 100.0).into());
    }
    if let (true, Some(least), Some(greatest)) = (flow.metrics.latency, rx.least, rx.greatest) {
        let mean = rx.latencies / rx.timed.max(1) as f64;
        put(
            "latency",
            json!({"minimum_ns": least as f64, "maximum_ns": greatest as f64, "average_ns": mean}),
        );
    }
    if let (true, Some(first), Some(last)) = (flow.metrics.timestamps, rx.first, rx.last) {
        put("timestamps", json!({"first_timestamp_ns": first, "last_timestamp_ns": last}));
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use agent::{Fault, FaultData, FaultKind};

    const PORTS: &str = r#"{"name": "p", "location": "eth1"}, {"name": "q", "location": "eth2"}, {"name": "r", "location": "eth3"}"#;

    fn run(name: &str, member: &str, frames: u64) -> Arc<Run> {
        let run = Run::new(name.to_owned(), json!({}), &json!({}), json!([]), None);
        run.moment(1, json!({"phase": "running", member: {"frames": frames, "bytes": 60 * frames}}));
        Arc::new(run)
    }

    fn broke_off() -> Result<Value, Fault> {
        let data = FaultData { kind: FaultKind::Engine, setting: None, remedy: None };
        Err(Fault { code: -32_004, message: "it broke off".to_owned(), data })
    }

    /// Of a flow from the first port to the others.
    fn setup(sends: &Arc<Run>, at: &[&Arc<Run>]) -> Setup {
        let names = ["\"q\"", "\"r\""][..at.len()].join(", ");
        let flow = format!(
            r#"{{"name": "f", "tx_rx": {{"choice": "port", "port": {{"tx_name": "p", "rx_names": [{names}]}}}},
            "packet": [{{"choice": "ethernet"}}], "metrics": {{"enable": true, "loss": true}}}}"#
        );
        let text = format!(r#"{{"ports": [{PORTS}], "flows": [{flow}]}}"#);
        let (config, findings) = Config::read(&serde_json::from_str(&text).expect("JSON"));
        assert!(findings.offences().is_empty(), "{:?}", findings.offences());
        let meters: super::super::tester::Meters =
            Arc::new(at.iter().enumerate().map(|(at, meter)| (at + 1, Arc::clone(meter))).collect());
        let run = Arc::clone(sends);
        let attempt = Attempt { run, meters: Arc::clone(&meters), slot: 0, of: 1, pps: 1.0, program: None };
        let gangs = vec![Gang { flows: vec![0], attempts: vec![attempt] }];
        let mut setup = Setup::default();
        (setup.config, setup.gangs, setup.meters) = (config, gangs, meters);
        setup
    }

    /// The first port sends, and what arrives is counted at the second.
    fn has(rows: &Value, of: &str, name: &str) -> bool {
        let at = usize::from(of == "port_metrics" && name.ends_with("_rx"));
        rows[of][at].get(name).is_some()
    }

    #[test]
    fn what_a_run_sent_that_broke_off_is_not_known() {
        let (sends, meter) = (run("r1", "tx", 100), run("r2", "rx", 90));
        let setup = setup(&sends, &[&meter]);
        assert!(has(&ports(&setup, &[], &[]), "port_metrics", "frames_tx"));
        assert!(has(&flows(&setup, &[], &[]), "flow_metrics", "frames_tx"));
        sends.over(broke_off());
        // The meter has been looked at since.
        meter.moment(2, json!({"rx": {"frames": 90}}));
        meter.moment(3, json!({"rx": {"frames": 90}}));
        let (of_ports, of_flows) = (ports(&setup, &[], &[]), flows(&setup, &[], &[]));
        for (rows, of) in [(&of_ports, "port_metrics"), (&of_flows, "flow_metrics")] {
            assert!(!has(rows, of, "frames_tx") && !has(rows, of, "bytes_tx"), "{rows}");
            assert!(has(rows, of, "frames_rx"), "{rows}");
        }
        assert!(!has(&of_flows, "flow_metrics", "loss"), "{of_flows}");
    }

    #[test]
    fn what_arrives_at_several_ports_hides_no_loss() {
        for (arrived, loss) in [([60, 0], Some(40.0)), ([60, 40], None), ([50, 30], None)] {
            let (sends, q, r) = (run("r1", "tx", 100), run("r2", "rx", 0), run("r3", "rx", 0));
            let setup = setup(&sends, &[&q, &r]);
            sends.over(Ok(json!({"result": {"tx": {"frames": 100, "bytes": 6000}}})));
            for (meter, frames) in [(&q, arrived[0]), (&r, arrived[1])] {
                let rx = json!({"frames": frames, "bytes": 60 * frames});
                let stream = json!({"stream": setup.gangs[0].attempts[0].number(0), "received": rx});
                for moment in [2, 3] {
                    meter.moment(moment, json!({"phase": "running", "rx": rx, "streams": [stream]}));
                }
            }
            let rows = flows(&setup, &[], &[]);
            let row = &rows["flow_metrics"][0];
            assert_eq!(row["frames_rx"], (arrived[0] + arrived[1]).to_string(), "{row}");
            assert_eq!(row.get("loss").and_then(Value::as_f64), loss, "{row}");
        }
    }

    #[test]
    fn of_a_port_whose_meter_is_over_nothing_arrives_that_anybody_counts() {
        let (sends, meter) = (run("r1", "tx", 100), run("r2", "rx", 90));
        let setup = setup(&sends, &[&meter]);
        assert!(has(&ports(&setup, &[], &[]), "port_metrics", "frames_rx"));
        meter.over(Ok(json!({"result": {"rx": {"frames": 90, "bytes": 5400}}})));
        let (of_ports, of_flows) = (ports(&setup, &[], &[]), flows(&setup, &[], &[]));
        assert!(!has(&of_ports, "port_metrics", "frames_rx") && has(&of_ports, "port_metrics", "frames_tx"));
        assert!(!has(&of_flows, "flow_metrics", "frames_rx"), "{of_flows}");
    }
}
