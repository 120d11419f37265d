//! `netdyno serve`: jobs over HTTP.

use crate::cli::serve::Serve;
use crate::client::Signals;
use crate::output::note;
use anyhow::{Context, Result, anyhow};
use serve::{Listen, Options, Tls, Token};

pub fn run(args: Serve) -> Result<u8> {
    let Serve { listen, token_file, cert, key, host_name, mut allowed } = args;
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
