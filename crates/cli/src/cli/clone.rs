//! The arguments of `netdyno clone`.

use super::Output;
use super::declared::Declared;
use clap::{Args, Subcommand, ValueHint};
use spec::{Ratio, Written};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::Rate;

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
    #[arg(long, help_heading = "Limits", value_name = "SESSIONS")]
    pub max_sessions: Option<Written<u64>>,
    /// Begin no session while more than this is forwarded: 100mbps.
    #[arg(long, help_heading = "Limits", value_name = "RATE")]
    pub max_rate: Option<Written<Rate>>,
    /// Begin no session while it takes more of a processor than this, in half a second; give sessions up, whole, when it is far more: 10%.
    #[arg(long, help_heading = "Limits", value_name = "SHARE")]
    pub max_cpu: Option<Written<Ratio>>,
    /// The same of the memory that it has, in bytes: 200M.
    #[arg(long, help_heading = "Limits", value_name = "BYTES")]
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
    #[arg(long, help_heading = "Expert", value_name = "NUMBER", default_value_t = steer::VNI, value_parser = clap::value_parser!(u32).range(1..1 << 24))]
    pub vni: u32,
    /// The tunnel's UDP port, as given to `netdyno clone`.
    #[arg(long, help_heading = "Expert", value_name = "PORT", default_value_t = steer::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub tunnel_port: u16,
    /// Learn at most so many flows at once; further ones are refused. Each takes some 150 bytes of the kernel's memory.
    #[arg(long, help_heading = "Expert", value_name = "FLOWS", default_value_t = 131_072, value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
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
    #[arg(long, help_heading = "Expert", value_name = "ADDRESS", requires = "client_addresses")]
    pub test_address: Option<IpAddr>,
    /// The tunnel's network identifier, as given to `netdyno clone return`.
    #[arg(long, help_heading = "Expert", value_name = "NUMBER", requires = "client_addresses")]
    pub vni: Option<u32>,
    /// The tunnel's UDP port, as given to `netdyno clone return`. Default: 4789.
    #[arg(long, help_heading = "Expert", value_name = "PORT", requires = "client_addresses")]
    pub tunnel_port: Option<u16>,
    /// Allow a target that is no private address.
    #[arg(long, help_heading = "Expert")]
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

/// Of a job's two settings, the interface and the server, `--from` is made here; `--server` is left for who has no interface.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(mut_arg("server", |server| server.required(false).help("The server in captures, or of captures on other hosts")))]
#[command(mut_arg("captures", |captures| captures.required_unless_present_any(["from", "listen"])))]
pub struct Clone {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Capture the traffic of a server: the interface where it is seen, both directions, and the server's port: eth0:80,
    /// eth0:10.0.0.1:80.
    #[arg(long, value_name = "IFACE:[ADDR:]PORT", conflicts_with_all = ["captures", "listen", "server"], value_parser = source)]
    pub from: Option<(String, String)>,
    #[command(flatten)]
    pub declared: Declared<spec::Cloning>,
}

/// An interface, and the server behind it.
fn source(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').filter(|(on, server)| !on.is_empty() && !server.is_empty());
    let (on, server) = parts.ok_or("give an interface and the server's port: eth0:80, eth0:10.0.0.1:80")?;
    Ok((on.to_owned(), server.to_owned()))
}

impl Clone {
    /// The job, and where its result goes.
    pub fn job(mut self) -> (spec::Job, Output) {
        if let Some((on, server)) = self.from {
            let job = &mut self.declared.asked.0;
            (job.on, job.server) = (Some(on), server);
        }
        self.declared.job()
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::job::Typed;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use spec::Cloning;

    fn typed(line: &str) -> Result<spec::Job, String> {
        match Cli::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?.command {
            Command::Job(Typed::Clone(clone)) => Ok(clone.job().0),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn where_sessions_are_captured_is_one_option_for_two_settings() {
        let to = || Cloning { to: "h:1".to_owned(), ..Cloning::default() };
        let captures = || vec!["a.pcap".into(), "b.pcap".into()];
        for (line, job) in [
            (
                "netdyno clone --from eth0:10.0.0.1:80 --to h:1",
                Cloning { on: Some("eth0".to_owned()), server: "10.0.0.1:80".to_owned(), ..to() },
            ),
            (
                "netdyno clone a.pcap b.pcap --server 80 --to h:1",
                Cloning { captures: captures(), server: "80".to_owned(), ..to() },
            ),
        ] {
            assert_eq!(typed(line), Ok(job.into()), "{line}");
        }
        for (line, says) in [
            ("netdyno clone --to h:1", "FILE"),
            ("netdyno clone --from eth0:80", "--to"),
            ("netdyno clone a.pcap --to h:1", "--server"),
            ("netdyno clone a.pcap --from eth0:80 --to h:1", "--from"),
            ("netdyno clone --from eth0:80 --server 80 --to h:1", "--server"),
            ("netdyno clone --from eth0:80 --listen 0.0.0.0:1 --to h:1", "--listen"),
            ("netdyno clone --listen 0.0.0.0:1 --server 80 --to h:1", "--key"),
            ("netdyno clone --from eth0:80 --threads 65 --to h:1", "65 is not in 1..=64"),
        ] {
            let error = typed(line).expect_err(line);
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
