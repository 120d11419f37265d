//! `netdyno search sessions` and `netdyno search session-capacity`: searches by TCP connections or UDP sessions through a device. They are those of `netdyno sessions`, and so are the options.

use super::Output;
use super::declared::{Asked, LeavesOut};
use super::search::{Earlier, said};
use clap::{Arg, Args};
use std::path::PathBuf;

const FAR_END: &str = "The server is beyond the device: netdyno sessions serve, or any server of HTTP/1.1. With --lab it is there.";

/// What is needed is not, where a lab has it or an earlier result says it.
fn unless_resumed(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "on" | "to" => {
            arg.required(false).required_unless_present_any(["lab", "resume"]).conflicts_with("lab")
        }
        "mac" => arg.conflicts_with("lab"),
        _ => arg,
    }
}

#[derive(Debug, Args)]
#[command(after_help = FAR_END)]
#[command(mut_args(unless_resumed))]
#[command(mut_arg("duration", |time| said(time, "Open connections for this long in each trial. Default: 5s").long("trial-duration").help_heading("Search")))]
#[command(mut_arg("timeout", |time| said(time, "A connection that has not ended after this time has failed: at most 2m. Default: 2s")))]
#[command(mut_arg("in-flight", |most| said(most, "Connections that are open at once, at most. Default: as many as there are tuples; as fast as it goes 100")))]
pub struct Sessions {
    #[command(flatten)]
    pub find: Asked<spec::MostSessions>,
    #[command(flatten)]
    pub asked: Asked<spec::SessionsSearch, OfRates>,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

impl Sessions {
    /// The job, the result to go on from, and where the result goes.
    pub fn job(self) -> (spec::Job, Option<PathBuf>, Output) {
        let search = spec::SessionsSearch { find: spec::SessionsFind::Sessions(self.find.0), ..self.asked.0 };
        (search.into(), self.earlier.resume, self.output)
    }
}

/// A trial ends by time, and its rate is what is varied.
#[derive(Debug, Clone)]
pub struct OfRates;

impl LeavesOut for OfRates {
    const OPTIONS: &'static [&'static str] =
        &["rate", "count", "connections", "hold", "use-again", "from-server"];
}

/// How many are held at once.
#[derive(Debug, Args)]
#[command(after_help = FAR_END)]
#[command(mut_args(unless_resumed))]
#[command(mut_arg("timeout", |time| said(time, "A connection that has not ended after this time has failed: at most 2m. Default: 2s")))]
pub struct Capacity {
    #[command(flatten)]
    pub find: Asked<spec::SessionCapacity>,
    #[command(flatten)]
    pub asked: Asked<spec::SessionsSearch, OfCapacity>,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

impl Capacity {
    /// The job, the result to go on from, and where the result goes.
    pub fn job(self) -> (spec::Job, Option<PathBuf>, Output) {
        let find = spec::SessionsFind::SessionCapacity(self.find.0);
        let search = spec::SessionsSearch { find, ..self.asked.0 };
        (search.into(), self.earlier.resume, self.output)
    }
}

/// A trial ends when all are held, and their number is what is varied.
#[derive(Debug, Clone)]
pub struct OfCapacity;

impl LeavesOut for OfCapacity {
    const OPTIONS: &'static [&'static str] = &["duration", "count", "connections", "hold", "use-again"];
}
