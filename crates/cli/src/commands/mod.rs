//! One file for each verb: what its words mean together, then the libraries that do it.

mod agent;
mod agents;
mod beforeafter;
mod calibrate;
pub mod clone;
mod compare;
mod completions;
mod consent;
mod counters;
mod craft;
mod demo;
mod doctor;
mod drops;
pub mod edit;
mod every;
mod info;
pub mod jobs;
pub mod lab;
mod man;
#[cfg(feature = "nats")]
mod nats;
#[cfg(not(feature = "nats"))]
#[path = "no_nats.rs"]
mod nats;
pub mod pages;
mod plugin;
mod resume;
#[cfg(test)]
mod rules;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(not(feature = "serve"))]
#[path = "no_serve.rs"]
pub mod serve;
mod synth;
mod trend;
mod xdp;

use crate::cli::job::Typed;
use crate::cli::{Cli, Command};
use crate::compat::tcpreplay::Tool;
use crate::hints::Kind;
use anyhow::Result;

/// Runs what was asked for; returns the exit status.
pub fn dispatch(cli: Cli) -> Result<u8> {
    match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Job(Typed::Clone(clone)) => clone::run(*clone),
        Command::Job(mut args) => {
            args.captures().iter().try_for_each(|path| crate::hints::check_file(path, Kind::Capture))?;
            crate::hints::check(args.what())?;
            crate::hints::check(args.back())?;
            args.ask_plugin()?;
            jobs::typed(args.job())
        }
        Command::Plugin(args) => plugin::run(args.command),
        Command::Craft(args) => {
            crate::hints::check(args.what.as_deref())?;
            craft::run(args)
        }
        Command::Tcpreplay { words } => Ok(crate::compat::tcpreplay::run(Tool::Tcpreplay, &words)),
        Command::TcpreplayEdit { words } => Ok(crate::compat::tcpreplay::run(Tool::TcpreplayEdit, &words)),
        Command::Tcpprep { words } => crate::compat::tcpprep::run(&words),
        Command::Tcpcapinfo { words } => crate::compat::tcpcapinfo::run(&words),
        Command::Edit(args) => {
            crate::hints::check_file(&args.input, Kind::Capture)?;
            edit::run(*args)
        }
        Command::Tcprewrite(args) => crate::compat::tcprewrite::run(*args),
        Command::Tcpliveplay { words } => crate::compat::tcpliveplay::run(&words),
        Command::Tcpbridge(args) => crate::compat::tcpbridge::run(*args),
        Command::Netperf { words } => crate::compat::netperf::run(&words),
        Command::Netserver { words } => crate::compat::netserver::run(&words),
        Command::Nprobe(args) => crate::compat::nprobe::run(&args),
        Command::Softflowd(args) => crate::compat::softflowd::run(&args),
        Command::Tcpcopy(args) => crate::compat::tcpcopy::run(&args),
        Command::Intercept(args) => crate::compat::tcpcopy::intercept(&args),
        Command::Mirror(args) => crate::compat::tcpcopy::mirror(&args),
        Command::Iperf3(args) => crate::compat::iperf3::run(&args),
        Command::Info(args) => {
            args.files.iter().try_for_each(|path| crate::hints::check_file(path, Kind::Capture))?;
            info::run(args)
        }
        Command::Synth(args) => synth::run(args),
        Command::Search(mut args) => {
            if let Some(common) = args.kind.common() {
                let bench = &mut common.asked.0.bench;
                crate::hints::check(bench.what.as_deref())?;
                crate::hints::check(bench.back.as_deref())?;
                common.plugin.ask(bench.plugin.as_mut())?;
            }
            jobs::search(args.kind)
        }
        Command::Run(args) => jobs::run_file(&args),
        Command::Rerun(args) => jobs::rerun(&args),
        Command::Lab(args) => lab::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Agent(args) => agent::run(args),
        Command::Agents(args) => agents::run(args.command),
        Command::Serve(args) => serve::run(*args),
        Command::Report(args) => {
            crate::hints::check_file(&args.path, Kind::Result)?;
            let report = report::read(&args.path)?;
            let output = crate::cli::Output {
                json: args.json,
                csv: args.csv,
                get: args.get,
                verbose: args.verbose,
                ..Default::default()
            };
            crate::output::conclude_kept(&report, &output, &args.path)
        }
        Command::Compare(args) => compare::run(args),
        Command::Trend(args) => trend::run(&args),
        Command::Counters(args) => counters::run(&args),
        Command::Drops(args) => drops::run(&args),
        Command::Xdp(args) => xdp::run(&args),
        Command::Beforeafter(args) => beforeafter::run(&args),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { folder } => man::run(&folder),
    }
}
