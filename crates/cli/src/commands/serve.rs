//! `netdyno serve`: jobs over HTTP.

use crate::cli::serve::Serve;
use crate::client::Signals;
use crate::output::note;
use anyhow::{Context, Result, anyhow};
use report::Report;
use serve::{Listen, Options, Tls, Token, Watched, Watching};
use snapshot::Board;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(args: Serve) -> Result<u8> {
    let Serve { listen, token_file, cert, key, host_name, allowed } = args;
    let mut allowed = allowed.with_file()?;
    let listen: Listen = listen.parse().map_err(|wrong| anyhow!("--listen: {wrong}"))?;
    let token = token_file.as_deref().map(|file| {
        Token::read(file).with_context(|| {
            format!("--token-file {}", report::units::printable(&file.display().to_string()))
        })
    });
    if allowed.allow_interface.is_empty() {
        note(
            "jobs may use every interface that carries neither the default route nor a login; --allow-interface says which alone",
        );
        allowed.allow_interface = vec!["*".to_owned(), "*@*".to_owned()];
    }
    clocks::pretend(allowed.clock_ahead);
    let options = Options {
        listen,
        names: host_name,
        token: token.transpose()?,
        tls: cert.zip(key).map(|(cert, key)| Tls { cert, key }),
        agent: super::agent::options(allowed)?,
        say: |at| note(&format!("serving at {at}")),
    };
    let signals = Signals::at_once()?;
    serve::serve(options, &signals.stop)?;
    Ok(0)
}

/// Serves the page of the run that this board is of.
pub fn watch(at: &str, board: Arc<Board>, stop: Arc<AtomicBool>) -> Result<Watching> {
    let listen: Listen = at.parse().map_err(|wrong| anyhow!("--watch: {wrong}"))?;
    let command = crate::output::command_line().join(" ");
    let watching = Watching::start(&listen, None, Watched { board, stop, command })?;
    note(&format!("watch it at {}", watching.at()));
    Ok(watching)
}

/// The run is over.
pub fn watched(watching: Watching, came: Result<&Report, String>) {
    watching.over(came);
}
