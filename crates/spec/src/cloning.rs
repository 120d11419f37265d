//! A clone: what clients say to a server is said to another one, over connections of our own.

use crate::check::{Contradiction, hold};
use crate::consent::Consent;
use crate::kind::Kind;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::{Quantity, Ratio, Written};
use settings::settings;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::Rate;
use traffic::schedule::Speed;

/// What a bound of traffic is in.
const BITS: &str = "give bits a second: 100mbps";
/// How a server is written.
const SERVER: &str = "give the server's port, or its address and port: 80, 10.0.0.1:80, [2001:db8::1]:80";

words! {
    /// When a client's bytes are said to the target.
    ClonePace {
        /// When they come.
        Wallclock = "wallclock",
        /// Not before the target has answered what the server had answered when the client said them.
        Causal = "causal",
        /// And as much later as the client took.
        CausalThink = "causal+think",
    }
}

words! {
    /// Which sessions that are open at the start are copied from somewhere in between.
    Adopt {
        /// None: only sessions whose SYN is seen.
        SynOnly = "syn-only",
        /// At the first segment after a silence in which all was acknowledged.
        Idle = "idle",
        /// At a segment that begins with an HTTP/1 request, behind an answer.
        HttpBoundary = "http-boundary",
    }
}

words! {
    /// How frames come from an interface.
    CloneCapture {
        /// By a packet socket, with any kernel.
        PacketSocket = "packet-socket",
        /// By programs at traffic control (tcx, Linux 6.6) and a BPF ring buffer: what is not copied costs nearly nothing.
        RingBuffer = "ring-buffer",
    }
}

/// What clients say to a server is said to another one.
#[settings]
pub struct Cloning {
    /// The interface where the server's traffic is captured, both directions (IFACE, or IFACE@NAMESPACE).
    #[setting(
        unnamed,
        value = "IFACE",
        reads = "Written<CloneSource>",
        shorthand(
            option = "from",
            value = "IFACE:[ADDR:]PORT",
            means = "{}",
            rest = "server",
            text = "Capture the traffic of a server: the interface where it is seen, both directions, and the server's port: eth0:80, eth0:10.0.0.1:80.",
            excludes("captures", "listen", "server")
        )
    )]
    pub on: Option<String>,
    /// How frames come from the interface: packet-socket (with any kernel), ring-buffer (programs at traffic control and a BPF ring
    /// buffer, Linux 6.6: sessions are chosen before anything is copied).
    #[setting(value = "HOW", default = "packet-socket", excludes("captures", "listen"))]
    #[serde(default)]
    pub capture: CloneCapture,
    /// Captures whose clients are copied, in this order, as one.
    #[setting(typed_by_place, value = "FILE", needs("server"))]
    pub captures: Vec<PathBuf>,
    /// Copy what captures on other hosts say (`netdyno clone capture`), which connect to this address and port: 0.0.0.0:7117.
    #[setting(value = "ADDR:PORT", excludes("captures"), needs("key", "server"))]
    pub listen: Option<String>,
    /// The key that those captures have as well: `netdyno clone key` makes one.
    #[setting(value = "FILE", needs("listen"))]
    pub key: Option<PathBuf>,
    /// The server whose clients are copied: 80, 10.0.0.1:80, [2001:db8::1]:80. Without an address, any with that port.
    #[setting(value = "[ADDR:]PORT")]
    pub server: String,
    /// The target: what clients say to the server is said to it, too.
    #[setting(value = "HOST:PORT")]
    pub to: String,
    /// Copies come from addresses of this prefix (10.99.0.0/16), and keep clients' ports. The prefix is local to this host as long as
    /// it runs; the target needs a route to it. Default: from this host's own address.
    #[setting(value = "PREFIX")]
    pub source_prefix: Option<String>,
    /// Copies come from their clients' own addresses and ports, through a tunnel (VXLAN) to the target, where `netdyno clone return` runs
    /// and sends the answers back through it.
    #[setting(excludes("source_prefix"))]
    pub client_addresses: bool,
    /// The address that the connection comes from which is tried through the tunnel first: one that the target has a route to, such as a
    /// client's. Default: 198.18.0.1, which a default route leads to.
    #[setting(value = "ADDRESS", needs("client_addresses"), expert)]
    pub test_address: Option<IpAddr>,
    /// The tunnel's network identifier, as given to `netdyno clone return`. Default: 28260.
    #[setting(value = "NUMBER", needs("client_addresses"), expert)]
    pub vni: Option<u32>,
    /// The tunnel's UDP port, as given to `netdyno clone return`. Default: 4789.
    #[setting(value = "PORT", least = 1, most = 65535, needs("client_addresses"), expert)]
    pub tunnel_port: Option<u16>,
    /// Connections to the target for each session: 4, 1.3 (a second one for three in ten). Default: 1.
    #[setting(value = "NUMBER")]
    pub copies: Option<f64>,
    /// Copy a share of the sessions, each whole: 10%.
    #[setting(value = "SHARE")]
    pub sample: Option<Written<Ratio>>,
    /// Which sessions those are: the same number chooses the same ones. Default: drawn, and printed with the result.
    #[setting(value = "NUMBER")]
    pub seed: Option<u64>,
    /// When a client's bytes are said: wallclock (when they come), causal (not before the target has answered what the server had),
    /// causal+think (and as much later as the client took).
    #[setting(value = "WHEN", default = "wallclock")]
    #[serde(default)]
    pub pace: ClonePace,
    /// Sessions that are open at the start: syn-only (none), idle (after a silence in which all was acknowledged), http-boundary (at a
    /// segment that begins with an HTTP/1 request).
    #[setting(value = "WHICH", default = "syn-only", expert)]
    #[serde(default)]
    pub adopt: Adopt,
    /// Play captures this many times as fast as they were captured. Default: 1x.
    #[setting(value = "FACTOR", needs("captures"))]
    pub speed: Option<Written<Speed>>,
    /// Copy at most this many sessions at once. Default: 100000.
    #[setting(value = "SESSIONS", heading = "Limits")]
    pub max_sessions: Option<Written<u64>>,
    /// Copy at most this many new sessions a second.
    #[setting(value = "SESSIONS", heading = "Limits")]
    pub max_new: Option<Written<u64>>,
    /// Copy no new session while clients say more than this: 100mbps.
    #[setting(value = "RATE", heading = "Limits")]
    pub max_rate: Option<Written<Rate>>,
    /// Let the share of sessions that are copied grow from none to all in this time.
    #[setting(value = "TIME", heading = "Limits")]
    pub ramp: Option<Written<Duration>>,
    /// Copy no new session while a thread takes more of a processor than this, in half a second; give sessions up, whole, when it is far
    /// more: 30%.
    #[setting(value = "SHARE", heading = "Limits")]
    pub max_cpu: Option<Written<Ratio>>,
    /// The same of the memory that netdyno has, in bytes: 500M.
    #[setting(value = "BYTES", heading = "Limits")]
    pub max_memory: Option<Written<u64>>,
    /// End as soon as there is a file of this name.
    #[setting(value = "FILE", heading = "Limits")]
    pub stop_file: Option<PathBuf>,
    /// A second target, with the version that the server has: in what it answers otherwise than the server, differences are noise.
    #[setting(value = "HOST:PORT", heading = "Limits")]
    pub noise_target: Option<String>,
    /// The silence after which `.adopt` idle adopts. Default: 200ms.
    #[setting(value = "TIME", heading = "Limits")]
    pub idle_time: Option<Written<Duration>>,
    /// A gap in what a client sent ends its copies after this time. Default: 3s.
    #[setting(value = "TIME", heading = "Limits")]
    pub gap_time: Option<Written<Duration>>,
    /// A session without traffic for this long is over. Default: 1h.
    #[setting(value = "TIME", heading = "Limits")]
    pub forget_after: Option<Written<Duration>>,
    /// Copy by N threads, each with sessions of its own. Default: 1.
    #[setting(value = "N", least = 1, most = 64, heading = "Limits")]
    pub threads: Option<u32>,
    /// Do not compare what answers have under this name: a field of HTTP's heads, or what stands behind a key in JSON. Once for each.
    /// Dates, cookies, ETag and what is of a connection are never compared.
    #[setting(value = "NAME", expert)]
    pub ignore: Vec<String>,
    /// Fall short (exit status 1) if more answers than this differ from the server's or are missing, or most were not compared: 0, 100.
    /// Default: that is a warning.
    #[setting(value = "ANSWERS", heading = "Limits")]
    pub max_differing: Option<u64>,
    /// Allow targets that are no private addresses.
    #[setting(option = "allow-public-target", expert)]
    pub public_target: bool,
    /// Capture and count, and connect to nobody.
    pub dry_run: bool,
    /// Copy for this long. Default: until interrupted, or until the captures end.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
}

impl Cloning {
    /// The server's address, if there is one, and its port.
    pub fn server(&self) -> Option<(Option<IpAddr>, u16)> {
        server(&self.server)
    }

    /// The prefix that copies come from: its first address and its length.
    pub fn prefix(&self) -> Option<(IpAddr, u8)> {
        let (address, bits) = self.source_prefix.as_ref()?.split_once('/')?;
        let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
        let first = match address {
            IpAddr::V4(address) => {
                let kept = u32::MAX.checked_shl(32u32.checked_sub(bits.into())?).unwrap_or(0);
                IpAddr::from((address.to_bits() & kept).to_be_bytes())
            }
            IpAddr::V6(address) => {
                let kept = u128::MAX.checked_shl(128u32.checked_sub(bits.into())?).unwrap_or(0);
                IpAddr::from((address.to_bits() & kept).to_be_bytes())
            }
        };
        Some((first, bits))
    }
}

/// A server as people write it: PORT, ADDR:PORT.
fn server(text: &str) -> Option<(Option<IpAddr>, u16)> {
    let (address, port) = match text.rsplit_once(':') {
        None => (None, text),
        Some((address, port)) => {
            (Some(address.trim_start_matches('[').trim_end_matches(']').parse().ok()?), port)
        }
    };
    port.parse().ok().filter(|port| *port > 0).map(|port| (address, port))
}

/// Where the traffic of a server is captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloneSource {
    /// The interface where it is seen, both directions.
    pub on: String,
    /// The server: PORT, or ADDR:PORT.
    pub server: String,
}

impl Quantity for CloneSource {
    const NAME: &'static str = "CloneSource";
    const WRITTEN: &'static str =
        "An interface and the port of a server behind it: eth0:80, eth0:10.0.0.1:80.";
    const EXAMPLES: &'static [&'static str] = &["eth0:80", "eth0:10.0.0.1:80"];

    fn read(text: &str) -> Result<CloneSource, String> {
        let parts = text.split_once(':').filter(|(on, at)| !on.is_empty() && server(at).is_some());
        let (on, server) = parts.ok_or(
            "give an interface and the server's port: eth0:80, eth0:10.0.0.1:80 or eth0:[2001:db8::1]:80",
        )?;
        Ok(CloneSource { on: on.to_owned(), server: server.to_owned() })
    }
}

/// Only captured, and forwarded to a clone on another host, which copies (`netdyno clone capture`).
#[settings]
pub struct Forwarding {
    /// The interface where the server's traffic is captured, both directions (IFACE, or IFACE@NAMESPACE).
    #[setting(
        unnamed,
        value = "IFACE",
        reads = "Written<CloneSource>",
        shorthand(
            option = "from",
            value = "IFACE:[ADDR:]PORT",
            means = "{}",
            rest = "server",
            text = "The interface where the server's traffic is seen, and the server's port: eth0:80, eth0:10.0.0.1:80.",
            excludes("server")
        )
    )]
    pub on: String,
    /// The server whose clients are captured: 80, 10.0.0.1:80, [2001:db8::1]:80. Without an address, any with that port.
    #[setting(value = "[ADDR:]PORT")]
    pub server: String,
    /// The host of `netdyno clone --listen`.
    #[setting(value = "HOST:PORT", consent)]
    pub send_to: String,
    /// The key that it has as well: `netdyno clone key` makes one.
    #[setting(value = "FILE", consent)]
    pub key: PathBuf,
    /// Forward a share of the sessions, each whole: 10%.
    #[setting(value = "SHARE")]
    pub sample: Option<Written<Ratio>>,
    /// Which sessions those are: the same number chooses the same ones. Default: drawn, and printed with the result.
    #[setting(value = "NUMBER", needs("sample"))]
    pub seed: Option<u64>,
    /// Forward at most this many sessions at once. Default: 100000.
    #[setting(value = "SESSIONS", heading = "Limits")]
    pub max_sessions: Option<Written<u64>>,
    /// Begin no session while more than this is forwarded: 100mbps.
    #[setting(value = "RATE", heading = "Limits")]
    pub max_rate: Option<Written<Rate>>,
    /// Begin no session while it takes more of a processor than this, in half a second; give sessions up, whole, when it is far more: 10%.
    #[setting(value = "SHARE", heading = "Limits")]
    pub max_cpu: Option<Written<Ratio>>,
    /// The same of the memory that it has, in bytes: 200M.
    #[setting(value = "BYTES", heading = "Limits")]
    pub max_memory: Option<Written<u64>>,
    /// Forward for this long. Default: until interrupted.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
}

impl Forwarding {
    /// The server's address, if there is one, and its port.
    pub fn server(&self) -> Option<(Option<IpAddr>, u16)> {
        server(&self.server)
    }
}

impl Kind for Forwarding {
    fn settings() -> &'static [Member] {
        Forwarding::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        // It takes nothing from anybody.
        &[]
    }

    fn asks(&self) -> Consent {
        Consent { addresses: vec![self.send_to.clone()], read: vec![self.key.clone()], ..Consent::default() }
    }

    fn draw(&mut self, seed: u64) {
        if self.sample.is_some() {
            self.seed.get_or_insert(seed);
        }
    }

    fn check(&self) -> Result<(), Contradiction> {
        let bits = self.max_rate.as_deref().is_some_and(|rate| !matches!(rate, Rate::Bits { .. }));
        hold(
            "",
            &[
                ("server", self.server().is_none(), SERVER),
                ("max_rate", bits, BITS),
                (
                    "seed",
                    self.seed.is_some() && self.sample.is_none(),
                    "it says which sessions `.sample` takes; leave it out, or give that",
                ),
            ],
        )
    }
}

/// The address and port that a return agent steers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// The address; without one, any of the host.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

impl Quantity for Served {
    const NAME: &'static str = "Served";
    const WRITTEN: &'static str =
        "A server: its address, if one is meant, and its port: :80, 10.0.0.2:80, [2001:db8::2]:80.";
    const EXAMPLES: &'static [&'static str] = &[":80", "10.0.0.2:80", "[2001:db8::2]:80"];

    fn read(text: &str) -> Result<Served, String> {
        let wrong = || {
            "give the server's port, or its address and port: :80, 10.0.0.2:80, [2001:db8::2]:80".to_owned()
        };
        let (address, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let address = match address.trim_start_matches('[').trim_end_matches(']') {
            "" => None,
            address => Some(address.parse().map_err(|_| wrong())?),
        };
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        Ok(Served { address, port })
    }
}

/// At a clone's target: copies come out of a tunnel, and the target's answers to them go back into it (`netdyno clone return`).
#[settings]
pub struct ReturnAgent {
    /// The interface where the tunnel's packets come in and leave: that of the route to the engine.
    #[setting(value = "IFACE")]
    pub on: String,
    /// The server that copies are for: :80, 10.0.0.2:80, [2001:db8::2]:80. Without an address, any of this host.
    #[setting(value = "[ADDR]:PORT")]
    pub server: Written<Served>,
    /// The host of `netdyno clone`, by the address that its packets come from. Nobody else's are taken in.
    #[setting(value = "ADDRESS", needed, consent)]
    pub engine: Option<IpAddr>,
    /// The tunnel's network identifier, as given to `netdyno clone`.
    #[setting(value = "NUMBER", default = "28260", least = 1, most = 16777215, expert)]
    pub vni: Option<u32>,
    /// The tunnel's UDP port, as given to `netdyno clone`.
    #[setting(value = "PORT", default = "4789", least = 1, most = 65535, expert)]
    pub tunnel_port: Option<u16>,
    /// Learn at most this many flows at once; further ones are refused. Each takes some 150 bytes of the kernel's memory.
    #[setting(value = "FLOWS", default = "131072", least = 1, most = 16777216, expert)]
    pub max_flows: Option<u32>,
}

impl Kind for ReturnAgent {
    fn settings() -> &'static [Member] {
        ReturnAgent::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        // What it takes are a clone's copies alone.
        &[]
    }

    fn asks(&self) -> Consent {
        // Whoever is let in speaks to the server with any client's address.
        let addresses = self.engine.iter().map(IpAddr::to_string).collect();
        Consent { addresses, ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        hold(
            "",
            &[
                ("engine", self.engine.is_none(), "give the address that the clone's packets come from"),
                (
                    "vni",
                    self.vni.is_some_and(|vni| vni == 0 || vni >= 1 << 24),
                    "give a number from 1 to 16777215",
                ),
                ("tunnel_port", self.tunnel_port == Some(0), "give a UDP port"),
                (
                    "max_flows",
                    self.max_flows.is_some_and(|flows| flows == 0 || flows > 1 << 24),
                    "give a number from 1 to 16777216",
                ),
            ],
        )
    }
}

/// Of a prefix that becomes this host's own.
fn least_bits(first: IpAddr) -> u8 {
    if first.is_ipv4() { 12 } else { 48 }
}

impl Kind for Cloning {
    fn settings() -> &'static [Member] {
        Cloning::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        // It takes nothing from anybody.
        &[]
    }

    fn asks(&self) -> Consent {
        let targets = [Some(&self.to), self.noise_target.as_ref()].into_iter().flatten();
        // Whoever allows a public address allows it to be connected to.
        let (public_targets, addresses) = match self.public_target {
            true => (targets.cloned().collect(), Vec::new()),
            false => (Vec::new(), targets.cloned().collect()),
        };
        let own_prefixes = self.source_prefix.iter().cloned().collect();
        Consent {
            public_targets,
            own_prefixes,
            addresses,
            read: self.key.iter().cloned().collect(),
            ..Consent::default()
        }
    }

    fn draw(&mut self, seed: u64) {
        self.seed.get_or_insert(seed);
    }

    fn check(&self) -> Result<(), Contradiction> {
        self.check_source()?;
        self.check_addresses()?;
        self.check_amounts()
    }
}

impl Cloning {
    /// What is copied, and where it is captured.
    fn check_source(&self) -> Result<(), Contradiction> {
        let (live, listens) = (self.on.is_some(), self.listen.is_some());
        let captures = !self.captures.is_empty();
        hold(
            "",
            &[
                (
                    "on",
                    !live && !listens && !captures,
                    "there is nothing to copy; give the interface where the server's traffic is seen, or captures",
                ),
                (
                    "capture",
                    self.capture != CloneCapture::PacketSocket && self.on.is_none(),
                    "it says how an interface's frames are had, and there is none; leave it out",
                ),
                ("captures", captures && live, "it copies what arrives at `.on`, or captures; leave out one"),
                (
                    "listen",
                    listens && (live || captures),
                    "it copies what captures on other hosts say, or what it captures itself; leave out one",
                ),
                (
                    "key",
                    listens && self.key.is_none(),
                    "captures on other hosts have to show a key: make one with `netdyno clone key FILE`",
                ),
                (
                    "key",
                    !listens && self.key.is_some(),
                    "only captures on other hosts show a key; leave it out, or give `.listen`",
                ),
                ("server", self.server().is_none(), SERVER),
            ],
        )
    }

    /// Where copies come from and go to.
    fn check_addresses(&self) -> Result<(), Contradiction> {
        hold(
            "",
            &[
                (
                    "source_prefix",
                    self.source_prefix.is_some() && self.prefix().is_none(),
                    "give a prefix that is routed to this host: 10.99.0.0/16, fd00:99::/64",
                ),
                (
                    "client_addresses",
                    self.client_addresses && self.source_prefix.is_some(),
                    "copies come from their clients' addresses or from `.source_prefix`; leave out one",
                ),
                (
                    "test_address",
                    self.test_address.is_some() && !self.client_addresses,
                    "only with `.client_addresses` a connection is tried through a tunnel: leave it out",
                ),
                (
                    "source_prefix",
                    self.prefix().is_some_and(|(first, bits)| bits < least_bits(first)),
                    "all of it becomes this host's own: give one of 12 bits at least, of IPv6 48: 10.99.0.0/16, fd00:99::/64",
                ),
                (
                    "copies",
                    self.client_addresses && self.copies.is_some_and(|copies| copies > 1.0),
                    "with `.client_addresses` a client's address and port are one copy's: leave it out, or give at most 1",
                ),
                (
                    "noise_target",
                    self.client_addresses && self.noise_target.is_some(),
                    "with `.client_addresses` there is a tunnel to one target: leave it out",
                ),
                (
                    "vni",
                    self.vni.is_some_and(|vni| !self.client_addresses || vni == 0 || vni >= 1 << 24),
                    "give a number from 1 to 16777215, with `.client_addresses`",
                ),
                (
                    "tunnel_port",
                    self.tunnel_port.is_some_and(|port| !self.client_addresses || port == 0),
                    "give a UDP port, with `.client_addresses`",
                ),
            ],
        )
    }

    /// How many copies there are, when, and by how much of the machine.
    fn check_amounts(&self) -> Result<(), Contradiction> {
        let (live, listens) = (self.on.is_some(), self.listen.is_some());
        let copies = self.copies.is_some_and(|copies| !(copies > 0.0 && copies <= 1000.0));
        let bits = self.max_rate.as_deref().is_some_and(|rate| !matches!(rate, Rate::Bits { .. }));
        let zero = |time: &Option<Written<Duration>>| time.as_deref().is_some_and(Duration::is_zero);
        hold(
            "",
            &[
                ("copies", copies, "give a number of copies above 0, at most 1000: 4, 1.3, 0.5"),
                (
                    "speed",
                    self.speed.is_some() && (live || listens),
                    "what arrives comes at its own time; leave it out",
                ),
                (
                    "idle_time",
                    self.idle_time.is_some() && self.adopt != Adopt::Idle,
                    "only `.adopt` idle waits for silence; leave it out, or give `.adopt` idle",
                ),
                ("gap_time", zero(&self.gap_time), "segments come out of order: give it more, such as 3s"),
                (
                    "threads",
                    self.threads == Some(0),
                    "one thread at least has to work: leave it out, or give 1",
                ),
                (
                    "threads",
                    self.threads.is_some_and(|threads| threads > 64),
                    "more than 64 threads are not used: give fewer",
                ),
                ("max_rate", bits, BITS),
                (
                    "max_differing",
                    self.max_differing.is_some() && self.dry_run,
                    "with `.dry_run` nobody answers: leave one of them out",
                ),
                (
                    "ignore",
                    self.ignore.iter().any(|name| name.is_empty() || name.len() > 64),
                    "give the name of a field or of a key, at most 64 bytes: X-Trace, request_id",
                ),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(server: &str, from: &str) -> Cloning {
        Cloning { server: server.to_owned(), source_prefix: Some(from.to_owned()), ..Cloning::default() }
    }

    #[test]
    fn a_source_is_an_interface_and_a_server_that_has_a_port() {
        for (text, on, server) in [
            ("eth0:80", "eth0", "80"),
            ("eth0@dut:10.0.0.1:80", "eth0@dut", "10.0.0.1:80"),
            ("eth0:[2001:db8::1]:80", "eth0", "[2001:db8::1]:80"),
        ] {
            let source = CloneSource { on: on.to_owned(), server: server.to_owned() };
            assert_eq!(CloneSource::read(text), Ok(source), "{text}");
        }
        for text in
            ["eth0", ":80", "eth0:", "eth0:x", "eth0:0", "eth0:70000", "eth0:10.0.0.1", "eth0:host:80"]
        {
            let said = CloneSource::read(text).expect_err(text);
            assert!(said.starts_with("give an interface and the server's port: eth0:80"), "{text}: {said}");
        }
    }

    #[test]
    fn clients_addresses_are_one_copys_of_one_target() {
        let of = |change: &dyn Fn(&mut Cloning)| {
            let mut job = Cloning { on: Some("eth0".to_owned()), client_addresses: true, ..job("80", "") };
            job.source_prefix = None;
            change(&mut job);
            job.check().err().map(|error| error.to_string())
        };
        assert_eq!(of(&|_| {}), None);
        assert_eq!(of(&|job| job.copies = Some(0.5)), None);
        assert_eq!(of(&|job| (job.vni, job.tunnel_port) = (Some(7), Some(4790))), None);
        for (change, what) in [
            (&(|job: &mut Cloning| job.copies = Some(1.5)) as &dyn Fn(&mut Cloning), "copies"),
            (&|job| job.source_prefix = Some("10.99.0.0/16".to_owned()), "client_addresses"),
            (&|job| job.noise_target = Some("10.0.0.1:80".to_owned()), "noise_target"),
            (&|job| job.vni = Some(1 << 24), "vni"),
            (
                &|job| (job.test_address, job.client_addresses) = ("10.0.0.9".parse().ok(), false),
                "test_address",
            ),
            (&|job| (job.vni, job.client_addresses) = (Some(7), false), "vni"),
            (&|job| job.tunnel_port = Some(0), "tunnel_port"),
        ] {
            assert!(of(change).is_some_and(|said| said.contains(what)), "{what}");
        }
    }

    #[test]
    fn a_prefix_is_bounded_and_a_file_cannot_consent_to_it() {
        let of = |prefix: &str| {
            let job = Cloning { on: Some("eth0".to_owned()), ..job("80", prefix) };
            (
                job.check().is_err_and(|error| error.to_string().contains("12 bits at least")),
                job.asks().own_prefixes,
            )
        };
        for (prefix, refused) in [
            ("128.0.0.0/1", true),
            ("10.0.0.0/8", true),
            ("10.96.0.0/12", false),
            ("fd00::/32", true),
            ("fd00:99::/48", false),
        ] {
            assert_eq!(of(prefix), (refused, vec![prefix.to_owned()]));
        }
    }

    #[test]
    fn servers_and_prefixes_are_read() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (text, server) in [
            ("80", Some((None, 80))),
            ("10.0.0.1:8080", Some((Some(ip("10.0.0.1")), 8080))),
            ("[2001:db8::1]:80", Some((Some(ip("2001:db8::1")), 80))),
            ("0", None),
            ("host:80", None),
            ("70000", None),
        ] {
            assert_eq!(job(text, "").server(), server, "{text}");
        }
        for (text, prefix) in [
            ("10.99.7.1/16", Some((ip("10.99.0.0"), 16))),
            ("10.9.0.1/32", Some((ip("10.9.0.1"), 32))),
            ("fd00:99::5/64", Some((ip("fd00:99::"), 64))),
            ("10.0.0.0/33", None),
            ("10.0.0.0", None),
        ] {
            assert_eq!(job("80", text).prefix(), prefix, "{text}");
        }
    }
}
