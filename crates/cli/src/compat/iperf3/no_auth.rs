//! Without RSA.

use anyhow::{Result, anyhow};
use std::path::Path;
use transport::iperf3::server::Check;

fn absent(option: &str) -> anyhow::Error {
    anyhow!("{option}: {}", report::absent("iperf3's authentication", "iperf3-auth"))
}

pub fn token(_: &str, _: &Path, _: bool) -> Result<String> {
    Err(absent("--rsa-public-key-path"))
}

pub fn check(_: &Path, _: &Path, _: u64, _: bool) -> Result<Box<Check>> {
    Err(absent("--rsa-private-key-path"))
}
