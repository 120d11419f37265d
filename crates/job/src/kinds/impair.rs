//! `netdyno impair`: a bridge that does to frames what a bad device does, as far as it was told to and no further.

use super::Run;
use super::bridge::{Settings, bridge};
use crate::session::Session;
use anyhow::Result;
use report::Report;
pub use spec::Impair;

impl Run for spec::Impair {
    fn run(&self, session: Session) -> Result<Report> {
        run(self.clone(), &session)
    }
}

fn run(job: Impair, session: &Session) -> Result<Report> {
    let settings = Settings {
        duration: job.duration.as_deref().copied(),
        faults: Some(job.faults),
        ..Settings::of_two("impair", job.between)
    };
    bridge(&settings, session)
}
