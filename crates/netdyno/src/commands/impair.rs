//! `netdyno impair`: a bridge that does to frames what a bad device does, as far as it was told to and no further.

use super::bridge::{Settings, bridge};
use super::jobs::With;
use anyhow::Result;
use report::Report;
use spec::Impair;

pub fn run(job: Impair, with: With<'_>) -> Result<Report> {
    let With { consent, output, together } = with;
    bridge(Settings {
        duration: job.duration.as_deref().copied(),
        faults: Some(job.faults),
        yes_disrupt: consent.yes_disrupt.clone(),
        output: output.clone(),
        beside: together,
        ..Settings::of_two("impair", job.between)
    })
}
