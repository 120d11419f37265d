//! The kinds of jobs: one module for each, and what several of them do alike.

use crate::Session;
use anyhow::Result;
use report::Report;

pub mod bridge;
pub(crate) mod clone;
#[cfg(feature = "netflow")]
pub(crate) mod collect;
pub mod edits;
pub(crate) mod endpoint;
pub mod given;
mod held_up;
pub mod impair;
pub mod iperf3;
pub mod lab;
pub mod live;
pub mod measure;
pub mod netperf;
pub mod netserver;
#[cfg(not(feature = "netflow"))]
pub(crate) mod no_netflow;
pub(crate) mod passive;
#[cfg(feature = "netflow")]
pub(crate) mod probe;
pub mod reflect;
pub mod replay;
pub(crate) mod resolve;
pub mod search;
pub mod send;
pub mod sessions;
pub mod shared;
pub mod trial;
pub mod what;

/// A kind of job that can be carried out.
pub(crate) trait Run: spec::Kind {
    /// To its end, in this thread.
    fn run(&self, session: Session) -> Result<Report>;
}
