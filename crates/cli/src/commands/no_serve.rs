//! Without a server.

use crate::cli::serve::Serve;
use anyhow::{Result, bail};

pub fn run(_: Serve) -> Result<u8> {
    bail!("serve: {}", report::absent("HTTP", "serve"))
}
