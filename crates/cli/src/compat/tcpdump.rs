//! Packets shown by tcpdump, as tcprewrite and tcpprep have them shown (`--verbose`, `--decode`).

use anyhow::{Context, Result, bail};
use port::outside::program;
use std::path::Path;
use std::process::Stdio;

/// Whether tcpdump can be called; asked before anything is written.
pub fn check() -> Result<()> {
    let called = program("tcpdump").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    called.map(|_| ()).context("--verbose needs tcpdump, which cannot be called: install it")
}

/// Has tcpdump print the packets of a capture, with further options if any.
pub fn show(capture: &Path, decode: Option<&str>) -> Result<()> {
    let options = decode.unwrap_or_default().split_whitespace();
    let status = program("tcpdump")
        .args(["-n", "-l", "-r"])
        .arg(capture)
        .args(options)
        .stdin(Stdio::null())
        .status()
        .context("calling tcpdump")?;
    match status.success() {
        true => Ok(()),
        false => bail!("tcpdump -n -l -r {} {}: {status}", capture.display(), decode.unwrap_or_default()),
    }
}
