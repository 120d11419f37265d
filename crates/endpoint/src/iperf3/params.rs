//! What a client asks for: the JSON that it sends first.

use super::error::{Code, Error};
use super::limits;
use serde_json::{Map, Value, json};

/// What data is sent over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// A stream of blocks.
    #[default]
    Tcp,
    /// Datagrams with time and number.
    Udp,
}

impl Protocol {
    /// As iperf3 writes it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        }
    }
}

/// A test, as the client describes it to the server. Zero is "not given" where iperf3 has it so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Seconds at the start that do not count.
    pub omit: u32,
    /// Seconds that do; 0: until bytes or blocks are sent, or for ever.
    pub seconds: u32,
    /// Bytes to send.
    pub bytes: u64,
    /// Blocks to send.
    pub blocks: u64,
    /// Streams in one direction.
    pub parallel: u32,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidir: bool,
    /// Bytes of a block or datagram; 0: the server's default.
    pub len: u64,
    /// Bits a second and stream; 0: as fast as it goes.
    pub rate: u64,
    /// Blocks sent at once.
    pub burst: u32,
    /// Bits a second by the kernel's pacing.
    pub fq_rate: u64,
    /// Bytes of socket buffers.
    pub window: u64,
    /// Largest segment.
    pub mss: u32,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// MPTCP, data connections only.
    pub mptcp: bool,
    /// IP's type of service.
    pub tos: u8,
    /// IPv6's flow label.
    pub flow_label: u32,
    /// The server's core.
    pub server_affinity: Option<u32>,
    /// The server's congestion control.
    pub congestion: Option<String>,
    /// A word before each line.
    pub title: Option<String>,
    /// Of the user, for the JSON.
    pub extra_data: Option<String>,
    /// The client wants the server's output.
    pub server_output: bool,
    /// Numbers of datagrams have 64 bits.
    pub counters_64bit: bool,
    /// The payload is digits, no noise.
    pub repeating: bool,
    /// Send without a copy.
    pub zerocopy: bool,
    /// IP's bit "do not fragment".
    pub dont_fragment: bool,
    /// Receivers leave data in the kernel.
    pub skip_rx_copy: bool,
    /// Segmentation offload for datagrams, and receive offload.
    pub gsro: bool,
    /// Who the client says to be, encrypted.
    pub auth_token: Option<String>,
    /// The client's release.
    pub client_version: Option<String>,
}

impl Params {
    /// As sent.
    pub fn json(&self) -> Value {
        let mut all = Map::new();
        let mut put = |name: &str, value: Value| {
            all.insert(name.into(), value);
        };
        put(if self.protocol == Protocol::Udp { "udp" } else { "tcp" }, true.into());
        put("omit", self.omit.into());
        if let Some(core) = self.server_affinity {
            put("server_affinity", core.into());
        }
        put("time", self.seconds.into());
        put("num", self.bytes.into());
        put("blockcount", self.blocks.into());
        put("parallel", self.parallel.into());
        for (name, given) in [
            ("nodelay", self.nodelay),
            ("reverse", self.reverse),
            ("bidirectional", self.bidir),
            ("mptcp", self.mptcp),
        ] {
            if given {
                put(name, true.into());
            }
        }
        for (name, number) in [
            ("MSS", self.mss.into()),
            ("window", self.window),
            ("len", self.len),
            ("bandwidth", self.rate),
            ("fqrate", self.fq_rate),
            ("burst", self.burst.into()),
            ("TOS", self.tos.into()),
            ("flowlabel", self.flow_label.into()),
            ("get_server_output", self.server_output.into()),
            ("udp_counters_64bit", self.counters_64bit.into()),
            ("repeating_payload", self.repeating.into()),
            ("zerocopy", self.zerocopy.into()),
            ("dont_fragment", self.dont_fragment.into()),
            ("skip_rx_copy", self.skip_rx_copy.into()),
        ] {
            if number != 0 {
                put(name, number.into());
            }
        }
        // Old servers pace by a timer of so many microseconds.
        put("pacing_timer", 1000.into());
        if self.protocol == Protocol::Udp && self.gsro {
            let datagram = self.len;
            let together = (65_507 / datagram.max(1)).clamp(1, 64) * datagram;
            for (name, number) in [
                ("gso", 1),
                ("gso_dg_size", datagram),
                ("gso_bf_size", together),
                ("gro", 1),
                ("gro_bf_size", 65_507),
            ] {
                put(name, number.into());
            }
        }
        for (name, text) in [
            ("congestion", &self.congestion),
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("authtoken", &self.auth_token),
            ("client_version", &self.client_version),
        ] {
            if let Some(text) = text {
                put(name, json!(text));
            }
        }
        Value::Object(all)
    }

    /// As received. What is out of bounds is refused, and so is what is of another type than it must be.
    ///
    /// # Errors
    /// What member cannot be, and why.
    pub fn of(value: &Value) -> Result<Params, Error> {
        let Value::Object(all) = value else { return Err(Error::Params("they are no object".into())) };
        let number = |name: &str, most: u64| -> Result<u64, Error> {
            let Some(value) = all.get(name) else { return Ok(0) };
            let wrong = || Error::Params(format!("{name} is {}: 0 to {most} are allowed", short(value)));
            // cJSON has floating-point numbers only, and may write large ones as such.
            let number = match (value.as_u64(), value.as_f64()) {
                (Some(number), _) => number,
                (None, Some(float)) if float >= 0.0 && float <= most as f64 => float as u64,
                _ => return Err(wrong()),
            };
            if number > most { Err(wrong()) } else { Ok(number) }
        };
        let small = |name: &str, most: u32| {
            number(name, most.into()).map(|number| u32::try_from(number).unwrap_or(most))
        };
        let flag = |name: &str| match all.get(name) {
            None => false,
            Some(Value::Bool(given)) => *given,
            Some(other) => other.as_f64().is_some_and(|number| number != 0.0),
        };
        let text = |name: &str| all.get(name).and_then(Value::as_str).map(str::to_owned);
        if flag("sctp") {
            return Err(Error::Params("SCTP is not supported".into()));
        }
        let protocol = match (flag("tcp"), flag("udp")) {
            (_, true) => Protocol::Udp,
            (true, false) => Protocol::Tcp,
            (false, false) => return Err(Error::Params("neither tcp nor udp is said".into())),
        };
        let len = match protocol {
            Protocol::Tcp => number("len", limits::TCP_BLOCK)?,
            Protocol::Udp => number("len", *limits::UDP_BLOCK.end())?,
        };
        if protocol == Protocol::Udp && len != 0 && !limits::UDP_BLOCK.contains(&len) {
            return Err(Error::Params(format!("len is {len}: 16 to 65507 are allowed")));
        }
        let parallel = small("parallel", limits::STREAMS)?.max(1);
        let params = Params {
            protocol,
            omit: small("omit", limits::OMIT)?,
            seconds: small("time", limits::SECONDS)?,
            bytes: number("num", u64::MAX)?,
            blocks: number("blockcount", u64::MAX)?,
            parallel,
            reverse: flag("reverse"),
            bidir: flag("bidirectional"),
            len,
            rate: number("bandwidth", u64::MAX)?,
            burst: small("burst", limits::BURST)?,
            fq_rate: number("fqrate", u64::MAX)?,
            window: number("window", limits::WINDOW)?,
            mss: small("MSS", limits::MSS)?,
            nodelay: flag("nodelay"),
            mptcp: flag("mptcp"),
            tos: u8::try_from(small("TOS", 255)?).unwrap_or(0),
            flow_label: small("flowlabel", (1 << 20) - 1)?,
            server_affinity: all
                .contains_key("server_affinity")
                .then(|| small("server_affinity", 1 << 20))
                .transpose()?,
            congestion: text("congestion"),
            title: text("title"),
            extra_data: text("extra_data"),
            server_output: flag("get_server_output"),
            counters_64bit: flag("udp_counters_64bit"),
            repeating: flag("repeating_payload"),
            zerocopy: flag("zerocopy"),
            dont_fragment: flag("dont_fragment"),
            skip_rx_copy: flag("skip_rx_copy"),
            gsro: flag("gso"),
            auth_token: text("authtoken"),
            client_version: text("client_version"),
        };
        if params.reverse && params.bidir {
            return Err(Error::Params("both reverse and bidirectional are said".into()));
        }
        params.burst_fits().map_err(Error::Params)?;
        Ok(params)
    }

    /// A burst over TCP leaves in one call: one that does not is refused, and not made smaller.
    ///
    /// # Errors
    /// Its blocks are more than that.
    pub fn burst_fits(&self) -> Result<(), String> {
        let block = if self.len == 0 { super::TCP_BLOCK } else { self.len };
        let together = block.saturating_mul(self.burst.max(1).into());
        if self.protocol == Protocol::Tcp && together > limits::TCP_BURST {
            let most = limits::TCP_BURST / block;
            return Err(format!(
                "a burst of {} blocks of {block} bytes: {most} of them leave at once at most",
                self.burst
            ));
        }
        Ok(())
    }

    /// The directions of the streams as the client opens them: whether the client sends on each.
    pub fn client_sends(&self) -> Vec<bool> {
        let count = self.parallel as usize;
        match (self.bidir, self.reverse) {
            (true, _) => [vec![true; count], vec![false; count]].concat(),
            (false, reverse) => vec![!reverse; count],
        }
    }

    /// All rates together, in bits a second: what a server's limit is held against.
    pub fn total_rate(&self) -> u64 {
        self.rate.saturating_mul(self.parallel.into()).saturating_mul(if self.bidir { 2 } else { 1 })
    }

    /// The number that a server tells the client for these errors.
    pub fn code(error: &Error) -> Code {
        match error {
            Error::Refused(code, _) => *code,
            Error::NoRoom(_) => Code::InitStream,
            _ => Code::Params,
        }
    }
}

/// A value of a peer's in a message: no longer than it takes to know it again.
fn short(value: &Value) -> String {
    value.to_string().chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,9}".prop_map(Value::from),
            Just(Value::Null),
            Just(json!([1])),
        ]
    }

    proptest! {
        #[test]
        fn hostile_values_are_refused_or_bounded(
            udp: bool,
            values in proptest::collection::vec(any_value(), 8),
        ) {
            let mut all = Map::new();
            all.insert(if udp { "udp" } else { "tcp" }.into(), true.into());
            let names = ["parallel", "len", "time", "omit", "window", "TOS", "burst", "title"];
            all.extend(names.iter().map(|name| (*name).to_owned()).zip(values));
            if let Ok(params) = Params::of(&Value::Object(all)) {
                prop_assert!((1..=limits::STREAMS).contains(&params.parallel));
                prop_assert!(params.len <= limits::TCP_BLOCK && params.seconds <= limits::SECONDS);
                prop_assert!(!udp || params.len == 0 || limits::UDP_BLOCK.contains(&params.len));
                prop_assert!(params.client_sends().len() <= 2 * limits::STREAMS as usize);
            }
        }

        #[test]
        fn what_is_written_is_read(
            udp: bool, omit in 0..=600u32, seconds in 0..=86_400u32, bytes: u64, parallel in 1..=128u32,
            direction in 0..3u8, len in 16..=65_507u64, rate: u64, tos: u8, title in proptest::option::of(".{0,20}"),
            flags: [bool; 8],
        ) {
            let [nodelay, mptcp, server_output, counters_64bit, repeating, zerocopy, dont_fragment, skip_rx_copy] = flags;
            let params = Params {
                protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
                omit, seconds, bytes, parallel, len, rate, tos, title,
                reverse: direction == 1, bidir: direction == 2,
                nodelay, mptcp, server_output, counters_64bit, repeating, zerocopy, dont_fragment, skip_rx_copy,
                gsro: udp && nodelay,
                server_affinity: mptcp.then_some(3),
                congestion: nodelay.then(|| "cubic".to_owned()),
                client_version: Some("3.21".to_owned()),
                ..Params::default()
            };
            prop_assert_eq!(Params::of(&params.json()), Ok(params));
        }
    }

    #[test]
    fn absurd_tests_are_refused_by_name() {
        for (given, name) in [
            (json!({"tcp": true, "parallel": 1_000_000_000}), "parallel"),
            (json!({"tcp": true, "len": 9_223_372_036_854_775_808u64}), "len"),
            (json!({"tcp": true, "len": 9.3e18}), "len"),
            (json!({"udp": true, "len": 15}), "len"),
            (json!({"tcp": true, "time": -1}), "time"),
            (json!({"tcp": true, "window": "much"}), "window"),
            (json!({"sctp": true}), "SCTP"),
            (json!({"time": 1}), "neither"),
            (json!([]), "object"),
            (json!({"tcp": true, "reverse": true, "bidirectional": true}), "both"),
        ] {
            let error = Params::of(&given).unwrap_err();
            assert!(error.to_string().contains(name), "{given}: {error}");
        }
    }

    /// As captured from iperf3 3.12's client, `-P 2 -R -l 1000`.
    #[test]
    fn a_clients_own_words_are_understood() {
        let sent = r#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":2,"reverse":true,"len":1000,"pacing_timer":1000,"client_version":"3.12"}"#;
        let params = Params::of(&serde_json::from_str(sent).unwrap()).unwrap();
        assert_eq!((params.seconds, params.parallel, params.len, params.rate), (10, 2, 1000, 0));
        assert_eq!(params.client_sends(), [false, false]);
    }
}
