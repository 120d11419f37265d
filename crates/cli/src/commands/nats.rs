//! Agents through a NATS server: `netdyno agent --nats`, and `netdyno agents reach`.

use crate::cli::agents::ReachAgent;
use crate::cli::nats::AtServer;
use crate::client::Signals;
use crate::output::note;
use anyhow::{Context, Result, anyhow, bail};
use nats::{Login, Options, Served, Server};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

pub fn serve(
    id: &str,
    lease: Duration,
    servers: &[String],
    at: AtServer,
    allowed: Vec<OsString>,
) -> Result<u8> {
    let id = id.parse().context("--id")?;
    let options = options(servers, at)?;
    let [least, most] = nats::LEASES;
    if lease < least || lease > most {
        bail!("--lease: it must be 3s to 1h");
    }
    // It is the same one, whatever has been installed meanwhile.
    let program = || {
        let mut command = Command::new("/proc/self/exe");
        if let Some(name) = std::env::args_os().next() {
            command.arg0(name);
        }
        command.args(["agent", "--stdio"]).args(&allowed);
        command
    };
    let signals = Signals::at_once()?;
    nats::serve(&options, &Served { id: &id, lease, program: &program, say: note }, &signals.stop)?;
    Ok(0)
}

pub fn reach(args: ReachAgent) -> Result<u8> {
    let id = args.id.parse()?;
    if args.timeout < Duration::from_millis(100) || args.timeout > Duration::from_secs(86_400) {
        bail!("--timeout: it must be 100ms to 24h");
    }
    let options = options(&args.nats, args.at_server)?;
    let signals = Signals::at_once()?;
    // Nothing else may come between lines of the agent.
    let ends =
        [std::io::stdin().as_fd().try_clone_to_owned(), std::io::stdout().as_fd().try_clone_to_owned()];
    let [from, to] = ends.map(|end| end.context("standard input and output"));
    nats::reach(&options, &id, args.timeout, File::from(from?), File::from(to?), &signals.stop)?;
    Ok(0)
}

fn options(servers: &[String], at: AtServer) -> Result<Options> {
    let server = |text: &String| text.trim().parse::<Server>().map_err(|wrong| anyhow!("--nats: {wrong}"));
    let login = match (at.creds, at.nkey, at.user, at.password_file) {
        (Some(file), ..) => Login::Credentials(file),
        (_, Some(file), ..) => Login::Key(file),
        (_, _, Some(user), Some(file)) => Login::Password { user, file },
        _ => Login::None,
    };
    Ok(Options {
        servers: servers.iter().map(server).collect::<Result<_>>()?,
        prefix: at.prefix.parse().context("--prefix")?,
        login,
        ca: at.ca,
        certificate: at.cert.zip(at.key),
        plaintext: at.yes_plaintext,
    })
}
