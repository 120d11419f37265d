//! Runs a command inside a two-host lab, as `netdyno lab` does: `sudo in_lab ping -c 1 198.18.0.2`.
//! The crate's own tests start it, too, to see that nothing outlives it.

use std::process::ExitCode;

use netdyno_lab as lab;

fn main() -> ExitCode {
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    let run = || {
        if !lab::is_privileged() {
            lab::enter_user_namespace()?;
        }
        let hosts = lab::Lab::two_hosts(&lab::Options { addresses: true, ..Default::default() })?;
        lab::run_command(&hosts, &argv)
    };
    match run() {
        Ok(status) => ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)),
        Err(error) => {
            eprintln!("in_lab: {error}");
            ExitCode::from(2)
        }
    }
}
