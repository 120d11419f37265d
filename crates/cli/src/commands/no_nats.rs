//! Without NATS.

use crate::cli::agents::ReachAgent;
use crate::cli::nats::AtServer;
use anyhow::{Result, anyhow};
use std::ffi::OsString;
use std::time::Duration;

fn absent() -> anyhow::Error {
    anyhow!("--nats: {}", report::absent("NATS", "nats"))
}

pub fn serve(_: &str, _: Duration, _: &[String], _: AtServer, _: Vec<OsString>) -> Result<u8> {
    Err(absent())
}

pub fn reach(_: ReachAgent) -> Result<u8> {
    Err(absent())
}
