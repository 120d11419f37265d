//! Carries out jobs: a [`spec::Job`] goes in, a [`report::Report`] comes out, and meanwhile there is a [`Handle`].
//!
//! ```text
//!   Job, Session -- start --> Handle: snapshot, pause, resume, set_rate, stop, wait --> Report
//!                     |
//!        kinds: send, replay, measure, reflect, bridge, impair, live, trial, search
//!                     |
//!        run (frames sent, and what became of them), trials (runs that are judged)
//! ```
//!
//! A job is plain data. Frames that it cannot describe come from a source that is given beside it ([`start_with`]).
//!
//! Each job has a thread of its own, and several may run in one process, in one or several network namespaces. Nothing here
//! handles signals, prints, or ends the process: whoever starts a job sees how it goes on its [`snapshot::Board`], and ends it.
//!
//! What takes long to compile, or needs C, is a Cargo feature (`Cargo.toml` has them). A job that needs one that is not there is refused by
//! an error that names it.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod calibrate;
pub mod calibration;
mod carrier;
mod claims;
mod cores;
pub mod counted;
mod denied;
mod device_counters;
pub mod device_nat;
pub mod device_xdp;
mod distrusted;
pub mod doctor;
pub mod dropped;
pub mod engines;
pub mod environment;
mod handle;
pub mod impaired;
pub mod kinds;
mod learning;
mod mesh;
mod panel;
pub mod place;
mod recorder;
pub mod run;
mod samples;
pub mod session;
pub mod sides;
pub mod synthesis;
mod through;
mod timekeeping;
#[cfg(feature = "netflow")]
mod transport;
mod trials;

pub use claims::interface::{Claimed, HeldBy, claim as claim_interface};
pub use engine::Hold;
pub use handle::{
    Failed, Handle, Outcome, carry_out, go_on, go_on_between, go_on_sessions, spawn, start, start_with,
};
pub use kinds::clone::doctor::{Diagnosis as CloneDiagnosis, Step as CloneStep, diagnose as diagnose_clone};
pub use kinds::clone::key::make as make_clone_key;
pub use kinds::send::flows_among;
pub use kinds::shared::draw_seed;
pub use run::more_than_sent;
pub use run::together::Member;
pub use session::{Among, Elsewhere, FarPort, Late, Session};
pub use trials::frame_sizes;

/// The error and its causes, leaving out causes that the words before already told.
pub fn in_full(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}
