//! The arguments of `netdyno clone`.

use super::declared::{Asked, Declared, LeavesOut};
use super::search::said;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// What else there is to do with a clone.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Say of each step of a clone whether it is there: clients' SYN and ACK, the server's SYN-ACK, and those of one connection to the
    /// target; what is missing where, and what to type next. Copies nothing. Exits with 1 if something is missing.
    Doctor(Box<Doctor>),
    /// Only capture, and forward what is captured to a `netdyno clone --listen` on another host, which copies. One connection, encrypted;
    /// whole sessions or none of them; nothing here waits for it. Exits with 1 if sessions were given up.
    Capture(Box<Capture>),
    /// Make the key that a clone and its captures on other hosts have, in a new file that its owner alone may read.
    Key {
        /// The new file.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Run on the target of `netdyno clone --client-addresses`: take copies out of the tunnel, and steer the target's answers to them back into
    /// it, so that none reaches a client. Changes no route, no sysctl, and has no tunnel device. Runs until it is interrupted.
    Return(Box<Return>),
}

/// The arguments of `netdyno clone capture`.
#[derive(Debug, Args)]
#[command(mut_arg("from", |from| from.required(true)))]
#[command(mut_arg("server", |server| server.required(false).hide(true)))]
pub struct Capture {
    #[command(flatten)]
    pub declared: Declared<spec::Forwarding>,
}

/// The arguments of `netdyno clone return`.
#[derive(Debug, Args)]
#[command(mut_arg("on", |on| alone(on)))]
#[command(mut_arg("server", |server| alone(server)))]
#[command(mut_arg("engine", |engine| alone(engine)))]
pub struct Return {
    #[command(flatten)]
    pub declared: Declared<spec::ReturnAgent>,
    /// End the sockets of flows that an agent left behind, and take its filters away. For an agent that was killed together with the
    /// process that cleans up behind it.
    #[arg(long)]
    pub clean: bool,
    /// With --clean: take filters away although sockets of copies may be left, whose answers then reach clients.
    #[arg(long, requires = "clean")]
    pub force: bool,
    /// Begin when standard input ends.
    #[arg(long, hide = true, requires = "clean")]
    pub when_alone: bool,
}

/// Needed, unless what an agent left is taken away.
fn alone(arg: clap::Arg) -> clap::Arg {
    arg.required(false).required_unless_present("clean").conflicts_with("clean")
}

/// The arguments of `netdyno clone doctor`: those of `netdyno clone` that say who talks to whom, which mean the same and do something
/// else here.
#[derive(Debug, Args)]
#[command(mut_arg("from", |from| said(from, "The interface where the server's traffic is seen, and the server's port: eth0:80, eth0:10.0.0.1:80").required_unless_present("listen")))]
#[command(mut_arg("listen", |listen| said(listen, "Or the address that captures on other hosts would connect to")))]
#[command(mut_arg("key", |key| said(key, "The key that those captures have as well")))]
#[command(mut_arg("server", |server| said(server, "The server of captures on other hosts").required(false)))]
#[command(mut_arg("to", |to| said(to, "The target")))]
#[command(mut_arg("source-prefix", |prefix| said(prefix, "The prefix that copies would come from. It is local to this host while the connection is tried")))]
#[command(mut_arg("client-addresses", |own| said(own, "Copies would come from clients' own addresses: the tunnel, the return agent at its end, and a connection through it are tried")))]
#[command(mut_arg("test-address", |address| said(address, "The address that the connection through the tunnel comes from: one that the target has a route to. Default: 198.18.0.1")))]
#[command(mut_arg("tunnel-port", |port| said(port, "The tunnel's UDP port, as given to `netdyno clone return`. Default: 4789")))]
#[command(mut_arg("vni", |vni| said(vni, "The tunnel's network identifier, as given to `netdyno clone return`")))]
#[command(mut_arg("allow-public-target", |public| said(public, "Allow a target that is no private address")))]
#[command(mut_arg("duration", |time| said(time, "Listen at most so long; a whole handshake ends it earlier. Default: 5s")))]
pub struct Doctor {
    #[command(flatten)]
    pub asked: Asked<spec::Cloning, OfDoctor>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// It copies nothing: of a clone's options it has those that say who talks to whom.
#[derive(Debug, Clone)]
pub struct OfDoctor;

impl LeavesOut for OfDoctor {
    const OPTIONS: &'static [&'static str] = &[];

    fn has(option: &str) -> bool {
        let of_whom = ["from", "listen", "key", "server", "to", "allow-public-target", "duration"];
        let of_addresses = ["source-prefix", "client-addresses", "test-address", "vni", "tunnel-port"];
        of_whom.contains(&option) || of_addresses.contains(&option)
    }
}

/// The server of an interface is said with it (`--from`).
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(mut_arg("server", |server| server.required(false).help("The server in captures, or of captures on other hosts")))]
#[command(mut_arg("captures", |captures| captures.required_unless_present_any(["from", "listen"])))]
pub struct Clone {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    #[command(flatten)]
    pub declared: Declared<spec::Cloning>,
}

#[cfg(test)]
mod tests {
    use crate::cli::job::Typed;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use spec::Cloning;

    fn typed(line: &str) -> Result<spec::Job, String> {
        match Cli::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?.command {
            Command::Job(Typed::Clone(clone)) => Ok(clone.declared.job().0),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_the_return_agent_does_unless_told_is_what_its_help_says() {
        use spec::setting::{Settings as _, named};
        let said = |name| named(spec::ReturnAgent::MEMBERS, name).and_then(|setting| setting.default);
        let (vni, port) = (steer::VNI.to_string(), steer::PORT.to_string());
        assert_eq!((said("vni"), said("tunnel_port")), (Some(&*vni), Some(&*port)));
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
