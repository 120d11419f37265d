//! Jobs as plain data, `netdyno.job/1`: what a user wants done.
//!
//! A [`Job`] holds nothing but values: no closures, no open files, no command line. Whoever has one can print it, keep it,
//! send it elsewhere and run it again; the command line, a file of jobs and a result's `requested` are three ways to get one.
//! Quantities keep the words they were written in ([`Written`]).
//!
//! What a job may not decide alone is its [`Consent`]: a file states what it needs, and whoever runs it has to give the same.

#![deny(missing_docs)]

mod bench;
mod check;
mod consent;
mod cores;
mod edits;
mod file;
mod listen;
mod live;
mod middle;
mod transmit;
mod words;
mod written;

pub use bench::{
    Axis, Bench, Burst, Dut, Find, Finding, Lab, Latency, LossCurve, Method, Recovery, Reset, Search, Soak,
    Throughput, Trial,
};
pub use check::Contradiction;
pub use consent::{Consent, Needless, NotGiven};
pub use cores::{Cores, ranges};
pub use edits::{Edits, FixLength, VlanKind};
pub use file::{BadFile, File, NotText, SCHEMA, schema};
pub use listen::{Clock, How, Measure, Reflect, Timestamps};
pub use live::{Answers, Flow, Live, Port, Server, Timing};
pub use middle::{Bridge, BridgeEngine, Direction, Faults, Impair};
pub use transmit::{Engine, Link, Loss, Meter, Oversize, Pace, Replay, Send, Side, Sign, Stamps, Through};
pub use words::Word;
pub use written::{Quantity, Ratio, Share, Written};

use schemars::JsonSchema;
use serde::Serialize;

/// What is to be done: one variant for each kind of job, named like the command that does it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Job {
    /// Frames of an expression or a scenario.
    Send(Box<Send>),
    /// Captures.
    Replay(Box<Replay>),
    /// What arrives is counted.
    Measure(Measure),
    /// What arrives is sent back.
    Reflect(Reflect),
    /// Two interfaces become one cable.
    Bridge(Box<Bridge>),
    /// Two interfaces become a device with known faults.
    Impair(Box<Impair>),
    /// The clients of captured TCP connections, against a real server.
    Live(Box<Live>),
    /// One load, and whether the device keeps to a goal.
    Trial(Box<Trial>),
    /// What the device can do.
    Search(Box<Search>),
}

impl Job {
    /// The kind, as it is written.
    pub fn kind(&self) -> &'static str {
        match self {
            Job::Send(_) => "send",
            Job::Replay(_) => "replay",
            Job::Measure(_) => "measure",
            Job::Reflect(_) => "reflect",
            Job::Bridge(_) => "bridge",
            Job::Impair(_) => "impair",
            Job::Live(_) => "live",
            Job::Trial(_) => "trial",
            Job::Search(_) => "search",
        }
    }
}

/// A job of each kind.
macro_rules! kinds {
    ($($kind:ident $(($boxed:ident))?),+ $(,)?) => {
        $(impl From<$kind> for Job {
            fn from(job: $kind) -> Job {
                Job::$kind($($boxed::new)?(job))
            }
        })+
    };
}

kinds!(
    Send(Box),
    Replay(Box),
    Measure,
    Reflect,
    Bridge(Box),
    Impair(Box),
    Live(Box),
    Trial(Box),
    Search(Box)
);

/// Whether a member that says no by default is left out.
fn no(given: &bool) -> bool {
    !given
}
