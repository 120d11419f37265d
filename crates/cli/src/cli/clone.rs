//! The arguments of `netdyno clone`.

use super::{Output, word};
use clap::{Args, Subcommand, ValueHint};
use spec::{Adopt, CloneCapture, ClonePace, Ratio, Written};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::Rate;
use traffic::schedule::Speed;

/// What else there is to do with a clone.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Say of each step of a clone whether it is there: clients' SYN and ACK, the server's SYN-ACK, and those of one connection to the
    /// target; what is missing where, and what to type next. Copies nothing. Exits with 1 if something is missing.
    Doctor(Doctor),
    /// Only capture, and forward what is captured to a `netdyno clone --listen` on another host, which copies. One connection, encrypted;
    /// whole sessions or none of them; nothing here waits for it. Exits with 1 if sessions were given up.
    Capture(Capture),
    /// Make the key that a clone and its captures on other hosts have, in a new file that its owner alone may read.
    Key {
        /// The new file.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Run on the target of `netdyno clone --client-addresses`: take copies out of the tunnel, and steer the target's answers to them back into
    /// it, so that none reaches a client. Changes no route, no sysctl, and has no tunnel device. Runs until it is interrupted.
    Return(Return),
}

/// The arguments of `netdyno clone capture`.
#[derive(Debug, Args)]
pub struct Capture {
    /// The interface where the server's traffic is seen, and the server's port: eth0:80, eth0:10.0.0.1:80.
    #[arg(long, value_name = "IFACE:[ADDR:]PORT", value_parser = source)]
    pub from: (String, String),
    /// The host of `netdyno clone --listen`.
    #[arg(long, value_name = "HOST:PORT")]
    pub send_to: String,
    /// The key that it has as well: `netdyno clone key` makes one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: PathBuf,
    /// Forward a share of the sessions, each whole: 10%.
    #[arg(long, value_name = "SHARE")]
    pub sample: Option<Written<Ratio>>,
    /// Which sessions those are: the same number chooses the same ones. Default: drawn, and printed with the result.
    #[arg(long, value_name = "NUMBER", requires = "sample")]
    pub seed: Option<u64>,
    /// Forward at most so many sessions at once. Default: 100000.
    #[arg(long, value_name = "SESSIONS")]
    pub max_sessions: Option<Written<u64>>,
    /// Begin no session while more than this is forwarded: 100mbps.
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Written<Rate>>,
    /// Begin no session while it takes more of a processor than this, in half a second; give sessions up, whole, when it is far more: 10%.
    #[arg(long, value_name = "SHARE")]
    pub max_cpu: Option<Written<Ratio>>,
    /// The same of the memory that it has, in bytes: 200M.
    #[arg(long, value_name = "BYTES")]
    pub max_memory: Option<Written<u64>>,
    /// Forward for this long. Default: until interrupted.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl Capture {
    /// What is captured, and where it goes.
    pub fn forwarding(self) -> anyhow::Result<job::Forwarding> {
        let (on, server) = self.from;
        let max_rate = match self.max_rate.as_deref() {
            None => None,
            Some(Rate::Bits { bits_per_second, .. }) => Some(*bits_per_second),
            Some(_) => anyhow::bail!("--max-rate: give bits a second: 100mbps"),
        };
        Ok(job::Forwarding {
            on,
            server,
            send_to: self.send_to,
            key: self.key,
            sample: self.sample.as_deref().map(|share| share.0),
            seed: self.seed,
            max_sessions: self.max_sessions.as_deref().copied(),
            max_rate,
            max_cpu: self.max_cpu.as_deref().map(|share| share.0),
            max_memory: self.max_memory.as_deref().copied(),
            duration: self.duration.as_deref().copied(),
        })
    }
}

/// The arguments of `netdyno clone return`.
#[derive(Debug, Args)]
pub struct Return {
    /// The interface where the tunnel's packets come in and leave: that of the route to the engine.
    #[arg(long, value_name = "IFACE", required_unless_present = "clean")]
    pub on: Option<String>,
    /// The server that copies are for: :80, 10.0.0.2:80, [2001:db8::2]:80. Without an address, any of this host.
    #[arg(long, value_name = "[ADDR]:PORT", required_unless_present = "clean", value_parser = served)]
    pub server: Option<(Option<IpAddr>, u16)>,
    /// The host of `netdyno clone`, by the address that its packets come from. Nobody else's are taken in.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "clean")]
    pub engine: Option<IpAddr>,
    /// The tunnel's network identifier, as given to `netdyno clone`.
    #[arg(long, value_name = "NUMBER", default_value_t = steer::VNI, value_parser = clap::value_parser!(u32).range(1..1 << 24))]
    pub vni: u32,
    /// The tunnel's UDP port, as given to `netdyno clone`.
    #[arg(long, value_name = "PORT", default_value_t = steer::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub tunnel_port: u16,
    /// Learn at most so many flows at once; further ones are refused. Each takes some 150 bytes of the kernel's memory.
    #[arg(long, value_name = "FLOWS", default_value_t = 131_072, value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub max_flows: u32,
    /// End the sockets of flows that an agent left behind, and take its filters away. For an agent that was killed together with the
    /// process that cleans up behind it.
    #[arg(long, conflicts_with_all = ["on", "server", "engine"])]
    pub clean: bool,
    /// With --clean: take filters away although sockets of copies may be left, whose answers then reach clients.
    #[arg(long, requires = "clean")]
    pub force: bool,
    /// Begin when standard input ends.
    #[arg(long, hide = true, requires = "clean")]
    pub when_alone: bool,
}

/// A server: its address, if one is meant, and its port.
fn served(text: &str) -> Result<(Option<IpAddr>, u16), String> {
    let wrong =
        || "give the server's port, or its address and port: :80, 10.0.0.2:80, [2001:db8::2]:80".to_owned();
    let (address, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let address = match address.trim_start_matches('[').trim_end_matches(']') {
        "" => None,
        address => Some(address.parse().map_err(|_| wrong())?),
    };
    match port.parse() {
        Ok(port @ 1..) => Ok((address, port)),
        _ => Err(wrong()),
    }
}

/// The arguments of `netdyno clone doctor`, as those of `netdyno clone`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The interface where the server's traffic is seen, and the server's port: eth0:80, eth0:10.0.0.1:80.
    #[arg(long, value_name = "IFACE:[ADDR:]PORT", value_parser = source, required_unless_present = "listen")]
    pub from: Option<(String, String)>,
    /// Or the address that captures on other hosts would connect to.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "from", requires_all = ["key", "server"])]
    pub listen: Option<String>,
    /// The key that those captures have as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "listen")]
    pub key: Option<PathBuf>,
    /// The server of captures on other hosts.
    #[arg(long, value_name = "[ADDR:]PORT", conflicts_with = "from")]
    pub server: Option<String>,
    /// The target.
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,
    /// The prefix that copies would come from. It is local to this host while the connection is tried.
    #[arg(long, value_name = "PREFIX")]
    pub source_prefix: Option<String>,
    /// Copies would come from clients' own addresses: the tunnel, the return agent at its end, and a connection through it are tried.
    #[arg(long, conflicts_with = "source_prefix")]
    pub client_addresses: bool,
    /// The address that the connection through the tunnel comes from: one that the target has a route to. Default: 198.18.0.1.
    #[arg(long, value_name = "ADDRESS", requires = "client_addresses")]
    pub test_address: Option<IpAddr>,
    /// The tunnel's network identifier, as given to `netdyno clone return`.
    #[arg(long, value_name = "NUMBER", requires = "client_addresses")]
    pub vni: Option<u32>,
    /// The tunnel's UDP port, as given to `netdyno clone return`. Default: 4789.
    #[arg(long, value_name = "PORT", requires = "client_addresses")]
    pub tunnel_port: Option<u16>,
    /// Allow a target that is no private address.
    #[arg(long)]
    pub allow_public_target: bool,
    /// Listen at most so long; a whole handshake ends it earlier. Default: 5s.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl Doctor {
    /// The clone that is looked at.
    pub fn job(self) -> spec::Cloning {
        let (on, server) = self.from.unzip();
        spec::Cloning {
            on,
            listen: self.listen,
            key: self.key,
            server: server.or(self.server).unwrap_or_default(),
            to: self.to,
            source_prefix: self.source_prefix,
            client_addresses: self.client_addresses,
            test_address: self.test_address,
            vni: self.vni,
            tunnel_port: self.tunnel_port,
            public_target: self.allow_public_target,
            duration: self.duration,
            ..spec::Cloning::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Clone {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Captures whose clients are copied, in this order, as one.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present_any = ["from", "listen"], requires = "server")]
    pub captures: Vec<PathBuf>,
    /// Capture the traffic of a server: the interface where it is seen, both directions, and the server's port: eth0:80,
    /// eth0:10.0.0.1:80.
    #[arg(long, value_name = "IFACE:[ADDR:]PORT", conflicts_with = "captures", value_parser = source)]
    pub from: Option<(String, String)>,
    /// How frames come from the interface: packet-socket (with any kernel), ring-buffer (programs at traffic control and a BPF ring
    /// buffer, Linux 6.6: sessions are chosen before anything is copied).
    #[arg(long, value_name = "HOW", default_value = "packet-socket", conflicts_with_all = ["captures", "listen"], value_parser = word::<CloneCapture>())]
    pub capture: CloneCapture,
    /// Copy what captures on other hosts say (`netdyno clone capture`), which connect to this address and port: 0.0.0.0:7117.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["captures", "from"], requires_all = ["key", "server"])]
    pub listen: Option<String>,
    /// The key that those captures have as well: `netdyno clone key` makes one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "listen")]
    pub key: Option<PathBuf>,
    /// The server in captures, or of captures on other hosts.
    #[arg(long, value_name = "[ADDR:]PORT", conflicts_with = "from")]
    pub server: Option<String>,
    /// The target: what clients say to the server is said to it, too.
    #[arg(long, value_name = "HOST:PORT", required = true)]
    pub to: Option<String>,
    /// Copies come from addresses of this prefix (10.99.0.0/16), and keep clients' ports. The prefix is local to this host as long as
    /// it runs; the target needs a route to it. Default: from this host's own address.
    #[arg(long, value_name = "PREFIX")]
    pub source_prefix: Option<String>,
    /// Copies come from their clients' own addresses and ports, through a tunnel (VXLAN) to the target, where `netdyno clone return` runs
    /// and sends the answers back through it.
    #[arg(long, conflicts_with = "source_prefix")]
    pub client_addresses: bool,
    /// The address that the connection comes from which is tried through the tunnel first: one that the target has a route to, such as a
    /// client's. Default: 198.18.0.1, which a default route leads to.
    #[arg(long, value_name = "ADDRESS", requires = "client_addresses")]
    pub test_address: Option<IpAddr>,
    /// The tunnel's network identifier, as given to `netdyno clone return`. Default: 28260.
    #[arg(long, value_name = "NUMBER", requires = "client_addresses")]
    pub vni: Option<u32>,
    /// The tunnel's UDP port, as given to `netdyno clone return`. Default: 4789.
    #[arg(long, value_name = "PORT", requires = "client_addresses")]
    pub tunnel_port: Option<u16>,
    /// Connections to the target for each session: 4, 1.3 (a second one for three in ten). Default: 1.
    #[arg(long, value_name = "NUMBER")]
    pub copies: Option<f64>,
    /// Copy a share of the sessions, each whole: 10%.
    #[arg(long, value_name = "SHARE")]
    pub sample: Option<Written<Ratio>>,
    /// Which sessions those are: the same number chooses the same ones. Default: drawn, and printed with the result.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// When a client's bytes are said: wallclock (when they come), causal (not before the target has answered what the server had),
    /// causal+think (and as much later as the client took).
    #[arg(long, value_name = "WHEN", default_value = "wallclock", value_parser = word::<ClonePace>())]
    pub pace: ClonePace,
    /// Sessions that are open at the start: syn-only (none), idle (after a silence in which all was acknowledged), http-boundary (at a
    /// segment that begins with an HTTP/1 request).
    #[arg(long, value_name = "WHICH", default_value = "syn-only", value_parser = word::<Adopt>())]
    pub adopt: Adopt,
    /// The silence after which --adopt idle adopts. Default: 200ms.
    #[arg(long, value_name = "TIME")]
    pub idle_time: Option<Written<Duration>>,
    /// A gap in what a client said ends its copies after so long. Default: 3s.
    #[arg(long, value_name = "TIME")]
    pub gap_time: Option<Written<Duration>>,
    /// A session of which nothing was heard for so long is over. Default: 1h.
    #[arg(long, value_name = "TIME")]
    pub forget_after: Option<Written<Duration>>,
    /// Play captures so many times as fast as they were captured. Default: 1x.
    #[arg(long, value_name = "FACTOR", requires = "captures")]
    pub speed: Option<Written<Speed>>,
    /// Copy by N threads, each with sessions of its own. Default: 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// Copy at most so many sessions at once. Default: 100000.
    #[arg(long, value_name = "SESSIONS")]
    pub max_sessions: Option<Written<u64>>,
    /// Copy at most so many new sessions a second.
    #[arg(long, value_name = "SESSIONS")]
    pub max_new: Option<Written<u64>>,
    /// Copy no new session while clients say more than this: 100mbps.
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Written<Rate>>,
    /// Let the share of sessions that are copied grow from none to all in so long.
    #[arg(long, value_name = "TIME")]
    pub ramp: Option<Written<Duration>>,
    /// Copy no new session while a thread takes more of a processor than this, in half a second; give sessions up, whole, when it is far more:
    /// 30%.
    #[arg(long, value_name = "SHARE")]
    pub max_cpu: Option<Written<Ratio>>,
    /// The same of the memory that netdyno has, in bytes: 500M.
    #[arg(long, value_name = "BYTES")]
    pub max_memory: Option<Written<u64>>,
    /// End as soon as there is a file of this name.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub stop_file: Option<PathBuf>,
    /// A second target, with the version that the server has: in what it answers otherwise than the server, differences are noise.
    #[arg(long, value_name = "HOST:PORT")]
    pub noise_target: Option<String>,
    /// Do not compare what answers have under this name: a field of HTTP's heads, or what stands behind a key in JSON. Once for each. Dates,
    /// cookies, ETag and what is of a connection are never compared.
    #[arg(long, value_name = "NAME")]
    pub ignore: Vec<String>,
    /// Allow targets that are no private addresses.
    #[arg(long)]
    pub allow_public_target: bool,
    /// Capture and count, and connect to nobody.
    #[arg(long)]
    pub dry_run: bool,
    /// Copy for this long. Default: until interrupted, or until the captures end.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    #[command(flatten)]
    pub output: Output,
}

/// An interface, and the server behind it.
fn source(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').filter(|(on, server)| !on.is_empty() && !server.is_empty());
    let (on, server) = parts.ok_or("give an interface and the server's port: eth0:80, eth0:10.0.0.1:80")?;
    Ok((on.to_owned(), server.to_owned()))
}

impl Clone {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let (on, server) = self.from.unzip();
        let job = spec::Cloning {
            on,
            capture: self.capture,
            captures: self.captures,
            listen: self.listen,
            key: self.key,
            server: server.or(self.server).unwrap_or_default(),
            to: self.to.unwrap_or_default(),
            source_prefix: self.source_prefix,
            client_addresses: self.client_addresses,
            test_address: self.test_address,
            vni: self.vni,
            tunnel_port: self.tunnel_port,
            copies: self.copies,
            sample: self.sample,
            seed: self.seed,
            pace: self.pace,
            adopt: self.adopt,
            idle_time: self.idle_time,
            gap_time: self.gap_time,
            forget_after: self.forget_after,
            speed: self.speed,
            threads: self.threads,
            max_sessions: self.max_sessions,
            max_new: self.max_new,
            max_rate: self.max_rate,
            ramp: self.ramp,
            max_cpu: self.max_cpu,
            max_memory: self.max_memory,
            stop_file: self.stop_file,
            noise_target: self.noise_target,
            ignore: self.ignore,
            public_target: self.allow_public_target,
            dry_run: self.dry_run,
            duration: self.duration,
        };
        (job.into(), self.output)
    }
}
