//! Without a server.

use crate::cli::serve::Serve;
use anyhow::{Result, bail};
use report::Report;
use snapshot::Board;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(_: Serve) -> Result<u8> {
    bail!("serve: {}", report::absent("HTTP", "serve"))
}

/// Nothing is watched.
pub enum Watching {}

pub fn watch(_: &str, _: Arc<Board>, _: Arc<AtomicBool>) -> Result<Watching> {
    bail!("--watch: {}", report::absent("HTTP", "serve"))
}

pub fn watched(watching: Watching, _: Result<&Report, String>) {
    match watching {}
}
