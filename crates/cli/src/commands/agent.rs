//! `netdyno agent`: jobs for another program.

use crate::cli::agent::{Agent, Allowed};
use crate::client::Signals;
use agent::{Ended, Grants, Log, Options};
use anyhow::{Context, Result};
use std::fs::File;
use std::os::fd::AsFd;

/// Nobody reads the answers any more.
const UNREAD: u8 = 2;

pub fn run(args: Agent) -> Result<u8> {
    let allowed = args.allowed.with_file()?;
    let words = allowed.words();
    clocks::pretend(allowed.clock_ahead);
    let options = options(allowed)?;
    if let Some(id) = args.id {
        return super::nats::serve(&id, args.lease, &args.nats, args.at_server, words);
    }
    let signals = Signals::at_once()?;
    // Nothing else may come between its lines.
    let to = std::io::stdout().as_fd().try_clone_to_owned().context("standard output")?;
    let from = std::io::stdin();
    let ended = agent::serve(from.as_fd(), File::from(to), options, &signals.stop)?;
    Ok(if ended == Ended::Unread { UNREAD } else { 0 })
}

pub fn options(allowed: Allowed) -> Result<Options> {
    let grants = Grants {
        interfaces: allowed.allow_interface,
        max_rate: allowed.max_rate,
        folders: allowed.folder,
        yes_disrupt: allowed.yes_disrupt,
        commands: allowed.allow_command,
        read: allowed.allow_read,
        addresses: allowed.allow_address,
        listen: allowed.allow_listen,
        public_targets: allowed.allow_public_target,
        source_prefixes: allowed.allow_source_prefix,
        kinds: allowed.allow_kind,
        guardian: Some(super::clone::guardian()),
    };
    let log = allowed.log.as_deref().map(|file| {
        let open = Log::open(file);
        open.with_context(|| format!("--log {}", report::units::printable(&file.display().to_string())))
    });
    Ok(Options { grants: grants.checked()?, contents_bytes: *allowed.max_contents, log: log.transpose()? })
}
