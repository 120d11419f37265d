//! iperf3's JSON, with the members of 3.21: one document at the end, or a line for each event (`--json-stream`).
//!
//! What a side does not know and iperf3 writes as zero is zero here too, because programs expect the member.

use super::params::Protocol;
use super::results::{Cpu, Output};
use super::summary::{
    Datagrams, End, Interval, Role, Share, Side, Slice, Start, Sum, Total, lost_percent, rate, slices,
};
use super::units::http_date;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

/// An object whose members keep their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object(Vec<(&'static str, Node)>);

/// What a member is.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Plain(Value),
    Object(Object),
    List(Vec<Object>),
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, node) in &self.0 {
            match node {
                Node::Plain(value) => map.serialize_entry(name, value)?,
                Node::Object(object) => map.serialize_entry(name, object)?,
                Node::List(list) => map.serialize_entry(name, list)?,
            }
        }
        map.end()
    }
}

impl Object {
    fn put(&mut self, name: &'static str, value: impl Into<Value>) -> &mut Object {
        self.0.push((name, Node::Plain(value.into())));
        self
    }

    fn number(&mut self, name: &'static str, number: f64) -> &mut Object {
        self.put(name, self::number(number))
    }

    fn object(&mut self, name: &'static str, object: Object) -> &mut Object {
        self.0.push((name, Node::Object(object)));
        self
    }

    fn list(&mut self, name: &'static str, list: Vec<Object>) -> &mut Object {
        self.0.push((name, Node::List(list)));
        self
    }

    /// Indented by tabs, as iperf3 has it.
    pub fn document(&self) -> String {
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b"\t");
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        // Nothing in it can fail: no foreign types, and a Vec takes all bytes.
        let _ = self.serialize(&mut serializer);
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// On one line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As a plain value.
    pub fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Whole numbers without a point, as cJSON writes them; never NaN.
fn number(number: f64) -> Value {
    match number {
        _ if !number.is_finite() => json!(0),
        _ if number.fract() == 0.0 && number.abs() < 9e15 => json!(number as i64),
        _ => json!(number),
    }
}

/// The document, as it comes about.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    start: Object,
    intervals: Vec<Object>,
    end: Object,
    title: Option<String>,
    extra_data: Option<String>,
    output: Option<Output>,
    error: Option<String>,
}

impl Document {
    /// Before anything has happened.
    pub fn new(version: &str, system: &str) -> Document {
        let mut start = Object::default();
        start.list("connected", Vec::new()).put("version", version).put("system_info", system);
        Document {
            start,
            intervals: Vec::new(),
            end: Object::default(),
            title: None,
            extra_data: None,
            output: None,
            error: None,
        }
    }

    /// The test begins.
    pub fn start(&mut self, version: &str, start: &Start) {
        self.start = begun(version, start);
        self.title.clone_from(&start.params.title);
        self.extra_data.clone_from(&start.params.extra_data);
    }

    /// An interval is over.
    pub fn interval(&mut self, interval: &Interval) {
        self.intervals.push(sliced(interval));
    }

    /// The test is over.
    pub fn end(&mut self, start: &Start, end: &End) {
        self.end = ended(start, end);
        self.output.clone_from(&end.server_output);
    }

    /// It did not go as it should.
    pub fn error(&mut self, error: &str) {
        self.error = Some(error.to_owned());
    }

    /// All of it.
    pub fn finish(&self) -> Object {
        let mut all = Object::default();
        all.object("start", self.start.clone());
        all.list("intervals", self.intervals.clone());
        all.object("end", self.end.clone());
        match &self.output {
            Some(Output::Text(text)) => all.put("server_output_text", text.as_str()),
            Some(Output::Json(value)) => all.put("server_output_json", value.clone()),
            None => &mut all,
        };
        for (name, text) in [("title", &self.title), ("extra_data", &self.extra_data), ("error", &self.error)]
        {
            if let Some(text) = text {
                all.put(name, text.as_str());
            }
        }
        all
    }
}

/// A line of `--json-stream`: `start`, `interval`, `end`.
fn event(name: &'static str, data: Object) -> String {
    let mut all = Object::default();
    all.put("event", name).object("data", data);
    all.line()
}

/// The line with which a test begins.
pub fn start_event(version: &str, start: &Start) -> String {
    event("start", begun(version, start))
}

/// The line of an interval.
pub fn interval_event(interval: &Interval) -> String {
    event("interval", sliced(interval))
}

/// The line with which a test ends.
pub fn end_event(start: &Start, end: &End) -> String {
    event("end", ended(start, end))
}

/// The line before the end where nothing was measured.
pub fn empty_end_event() -> String {
    event("end", Object::default())
}

/// The line of what the server printed.
pub fn server_output_event(output: &Output) -> String {
    let (name, data) = match output {
        Output::Text(text) => ("server_output_text", json!(text)),
        Output::Json(value) => ("server_output_json", value.clone()),
    };
    json!({"event": name, "data": data}).to_string()
}

/// The line of what went wrong.
pub fn error_event(error: &str) -> String {
    let mut all = Object::default();
    all.put("event", "error").put("data", error);
    all.line()
}

fn begun(version: &str, start: &Start) -> Object {
    let params = &start.params;
    let connected = start.streams.iter().map(|stream| {
        let mut one = Object::default();
        one.put("socket", stream.socket)
            .put("local_host", stream.local.ip().to_canonical().to_string())
            .put("local_port", stream.local.port())
            .put("remote_host", stream.remote.ip().to_canonical().to_string())
            .put("remote_port", stream.remote.port());
        one
    });
    let mut all = Object::default();
    all.list("connected", connected.collect()).put("version", version).put("system_info", &*start.system);
    let mut time = Object::default();
    time.put("time", http_date(start.unix_ms / 1000))
        .put("timesecs", start.unix_ms / 1000)
        .put("timemillisecs", start.unix_ms);
    all.object("timestamp", time);
    let mut other = Object::default();
    other.put("host", &*start.host).put("port", start.port);
    all.object(
        match start.role {
            Role::Client => "connecting_to",
            Role::Server => "accepted_connection",
        },
        other,
    );
    all.put("cookie", &*start.cookie);
    if params.protocol == Protocol::Tcp {
        match params.mss {
            0 => all.put("tcp_mss_default", start.mss),
            mss => all.put("tcp_mss", mss),
        };
    }
    all.put("target_bitrate", params.rate)
        .put("fq_rate", params.fq_rate)
        .put("sock_bufsize", params.window)
        .put("sndbuf_actual", start.send_buffer)
        .put("rcvbuf_actual", start.receive_buffer);
    let mut test = Object::default();
    test.put("protocol", params.protocol.name())
        .put("num_streams", params.parallel)
        .put("blksize", params.len)
        .put("omit", params.omit)
        .put("duration", params.seconds)
        .put("bytes", params.bytes)
        .put("blocks", params.blocks)
        .put("reverse", u8::from(params.reverse))
        .put("tos", params.tos)
        .put("target_bitrate", params.rate)
        .put("bidir", u8::from(params.bidir))
        .put("fqrate", params.fq_rate)
        .number("interval", start.interval)
        .put("gso", u8::from(params.gsro))
        .put("gro", u8::from(params.gsro));
    all.object("test_start", test);
    all
}

fn sliced(interval: &Interval) -> Object {
    let streams = interval.streams.iter().map(|slice| {
        let mut one = Object::default();
        one.put("socket", slice.socket);
        slice_members(&mut one, interval, slice, true);
        one
    });
    let mut all = Object::default();
    all.list("streams", streams.collect());
    let (first, second) = directions(&interval.streams, |slice| slice.sender);
    for (name, sender) in [("sum", first), ("sum_bidir_reverse", second)] {
        if let Some(slice) = sender.and_then(|sender| slices(interval, sender)) {
            let mut sum = Object::default();
            slice_members(&mut sum, interval, &slice, false);
            all.object(name, sum);
        }
    }
    all
}

/// The direction of the first streams, and the other if there is one.
fn directions<T>(streams: &[T], sender: impl Fn(&T) -> bool) -> (Option<bool>, Option<bool>) {
    let first = streams.first().map(&sender);
    let second = streams.iter().map(&sender).find(|one| Some(*one) != first);
    (first, second)
}

fn slice_members(into: &mut Object, interval: &Interval, slice: &Slice, single: bool) {
    into.number("start", interval.start)
        .number("end", interval.end)
        .number("seconds", interval.seconds())
        .put("bytes", slice.bytes)
        .number("bits_per_second", rate(slice.bytes, interval.seconds()));
    if let Some(tcp) = &slice.tcp {
        into.put("retransmits", tcp.retransmits);
        if single {
            into.put("snd_cwnd", tcp.snd_cwnd)
                .put("snd_wnd", tcp.snd_wnd)
                .put("rtt", tcp.rtt)
                .put("rttvar", tcp.rttvar)
                .put("pmtu", tcp.pmtu)
                .put("reorder", tcp.reorder);
        }
    }
    if let Some(udp) = &slice.udp {
        if !slice.sender {
            into.number("jitter_ms", udp.jitter * 1e3).put("lost_packets", udp.lost);
        }
        into.put("packets", udp.packets);
        if !slice.sender {
            into.number("lost_percent", lost_percent(udp));
        }
    }
    into.put("omitted", interval.omitted).put("sender", slice.sender);
}

fn ended(start: &Start, end: &End) -> Object {
    let udp = start.protocol() == Protocol::Udp;
    let mut all = Object::default();
    all.list(
        "streams",
        end.streams
            .iter()
            .map(
                |total| {
                    if udp { udp_stream(total) } else { tcp_stream(total, start.role, end.file.as_ref()) }
                },
            )
            .collect(),
    );
    let (first, second) = directions(&end.streams, |stream| stream.sender);
    let names = [
        ("sum", "sum_sent", "sum_received"),
        ("sum_bidir_reverse", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"),
    ];
    for ((both, sent, received), sender) in names.into_iter().zip([first, second]) {
        let Some(sender) = sender else { continue };
        let sum = Sum::of(&end.streams, sender);
        if udp {
            // Bytes as sent, what became of them as received.
            let mut mixed = sum.sent.unwrap_or(Side { bytes: 0, ..sum.received.unwrap_or_default() });
            mixed.udp = seen(&sum.sent, &sum.received);
            let seconds = sum.received.or(sum.sent).unwrap_or_default().seconds;
            let speed = mixed.rate();
            mixed.seconds = seconds;
            all.object(both, udp_sum(&mixed, speed, sender));
            let of = |side: Option<Side>, sender| {
                let side = side.unwrap_or_default();
                udp_sum(&side, side.rate(), sender)
            };
            all.object(sent, of(sum.sent, true));
            all.object(received, of(sum.received, false));
        } else {
            let retransmits = sum.sent.and_then(|side| side.retransmits);
            all.object(sent, tcp_side(&sum.sent.unwrap_or_default(), retransmits, None, sender));
            all.object(received, tcp_side(&sum.received.unwrap_or_default(), None, None, sender));
        }
    }
    let mut cpu = Object::default();
    let remote = end.remote_cpu.unwrap_or_default();
    for (names, Cpu { total, user, system }) in [
        (["host_total", "host_user", "host_system"], end.cpu),
        (["remote_total", "remote_user", "remote_system"], remote),
    ] {
        cpu.number(names[0], total).number(names[1], user).number(names[2], system);
    }
    all.object("cpu_utilization_percent", cpu);
    if !udp {
        let (sender, receiver) = match first {
            Some(false) => (&end.remote_congestion, &end.congestion),
            _ => (&end.congestion, &end.remote_congestion),
        };
        for (name, congestion) in [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)] {
            if let Some(congestion) = congestion {
                all.put(name, congestion.as_str());
            }
        }
    }
    all
}

fn tcp_side(side: &Side, retransmits: Option<u64>, socket: Option<i32>, sender: bool) -> Object {
    let mut one = Object::default();
    if let Some(socket) = socket {
        one.put("socket", socket);
    }
    one.put("start", 0)
        .number("end", side.seconds)
        .number("seconds", side.seconds)
        .put("bytes", side.bytes)
        .number("bits_per_second", side.rate());
    if let Some(retransmits) = retransmits {
        one.put("retransmits", retransmits);
    }
    one.put("sender", sender);
    one
}

/// What of a file went (`-F`).
fn diskfile(total: &Total, (name, size): &(String, u64)) -> Object {
    let [sent, received] = [total.sent, total.received].map(|side| side.map_or(0, |side| side.bytes));
    let share = Share::of(*size, sent, received);
    let mut file = Object::default();
    file.put("sent", sent)
        .put("received", received)
        .put("size", *size)
        .put("percent_sent", share.percent[0])
        .put("percent_received", share.percent[1])
        .put("filename", name.as_str());
    file
}

fn tcp_stream(total: &Total, role: Role, file: Option<&(String, u64)>) -> Object {
    let sent = total.sent.unwrap_or_default();
    let mut sender = Object::default();
    sender
        .put("socket", total.socket)
        .put("start", 0)
        .number("end", sent.seconds)
        .number("seconds", sent.seconds)
        .put("bytes", sent.bytes)
        .number("bits_per_second", sent.rate());
    if let Some(retransmits) = sent.retransmits {
        sender.put("retransmits", retransmits);
    }
    // iperf3's client has them of its own socket even where that receives.
    let shown = total.sender || role == Role::Client;
    if let Some(tcp) = total.tcp.filter(|_| sent.retransmits.is_some() && shown) {
        sender
            .put("reorder", tcp.reorder)
            .put("max_snd_cwnd", tcp.max_snd_cwnd)
            .put("max_snd_wnd", tcp.max_snd_wnd)
            .put("max_rtt", tcp.max_rtt)
            .put("min_rtt", tcp.min_rtt)
            .put("mean_rtt", tcp.mean_rtt);
    }
    sender.put("sender", total.sender);
    let mut one = Object::default();
    one.object("sender", sender);
    if let Some(file) = file {
        one.object("diskfile", diskfile(total, file));
    }
    one.object(
        "receiver",
        tcp_side(&total.received.unwrap_or_default(), None, Some(total.socket), total.sender),
    );
    one
}

/// What became of datagrams: as the receiver has it, if that is known.
fn seen(sent: &Option<Side>, received: &Option<Side>) -> Datagrams {
    received.or(*sent).unwrap_or_default().udp
}

fn udp_stream(total: &Total) -> Object {
    let side = total.sent.unwrap_or(Side { bytes: 0, ..total.received.unwrap_or_default() });
    let udp = seen(&total.sent, &total.received);
    let mut inner = Object::default();
    inner.put("socket", total.socket);
    udp_members(&mut inner, &side, &udp, side.rate());
    inner.put("out_of_order", udp.out_of_order).put("sender", total.sender);
    let mut one = Object::default();
    one.object("udp", inner);
    one
}

fn udp_sum(side: &Side, speed: f64, sender: bool) -> Object {
    let mut one = Object::default();
    udp_members(&mut one, side, &side.udp, speed);
    one.put("sender", sender);
    one
}

fn udp_members(into: &mut Object, side: &Side, udp: &Datagrams, speed: f64) {
    into.put("start", 0)
        .number("end", side.seconds)
        .number("seconds", side.seconds)
        .put("bytes", side.bytes)
        .number("bits_per_second", speed)
        .number("jitter_ms", udp.jitter * 1e3)
        .put("lost_packets", udp.lost)
        .put("packets", udp.packets)
        .number("lost_percent", lost_percent(udp));
}
