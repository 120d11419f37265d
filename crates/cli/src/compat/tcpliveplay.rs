//! `netdyno tcpliveplay`: tcpliveplay's command line, played by `netdyno live`.
//!
//! What differs from tcpliveplay stands in docs/compat.md.

use super::autoopts::{self, Spec};
use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{conclude, print};
use anyhow::{Result, anyhow, bail};
use spec::{Answers, Job, Live, Timing};
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;

const SPECS: [Spec; 8] = [
    Spec { name: "dbug", short: Some('d'), value: Some("LEVEL") },
    Spec { name: "version", short: Some('V'), value: None },
    Spec { name: "less-help", short: Some('h'), value: None },
    Spec { name: "help", short: Some('H'), value: None },
    Spec { name: "more-help", short: Some('!'), value: None },
    Spec { name: "save-opts", short: None, value: Some("FILE") },
    Spec { name: "load-opts", short: None, value: Some("FILE") },
    Spec { name: "yes-disrupt", short: None, value: Some("IFACE") },
];

const HELP: &str = "\
Plays the client's side of the first TCP connection of a capture against a server, as tcpliveplay does. No firewall rule is
needed. `netdyno live` does the same and more: IPv6, any connection or all of them, other ports, reports.

Usage: netdyno tcpliveplay [-d LEVEL] [--yes-disrupt IFACE] IFACE FILE ADDRESS MAC random|PORT

  IFACE        the interface
  FILE         the capture
  ADDRESS      the server's IPv4 address
  MAC          the server's Ethernet address, or that of the next hop to it
  random|PORT  the port to play from; the server's is the captured one

  --yes-disrupt IFACE: yes, on this interface, although it carries the default route or your login
";

/// Runs `netdyno tcpliveplay` with the words that follow its name; returns the exit status.
pub fn run(words: &[OsString]) -> Result<u8> {
    let parsed = autoopts::parse(&SPECS, words)?;
    if ["less-help", "help", "more-help"].iter().any(|name| parsed.has(name)) {
        print(HELP)?;
        return Ok(0);
    }
    if parsed.has("version") {
        print(&format!("netdyno {}, for tcpliveplay 4.4.3 to 4.5.5\n", env!("CARGO_PKG_VERSION")))?;
        return Ok(0);
    }
    for name in ["save-opts", "load-opts"] {
        if parsed.has(name) {
            bail!("--{name} is not supported: write the words on the command line");
        }
    }
    let [interface, file, address, mac, port] = parsed.files.as_slice() else {
        bail!("five words are needed: IFACE FILE ADDRESS MAC random|PORT (--help explains them)");
    };
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let Ok(address) = text(address).parse::<Ipv4Addr>() else {
        bail!("`{}` is not an IPv4 address (`netdyno live` plays over IPv6, too)", text(address));
    };
    let Ok(mac) = text(mac).parse::<wire::Mac>() else {
        bail!("`{}` is not an Ethernet address, as 02:00:00:00:00:01", text(mac));
    };
    let port = match text(port).as_str() {
        "captured" => bail!("`captured` is neither a port from 1 to 65535 nor `random`"),
        word => {
            word.parse().map_err(|_| anyhow!("`{word}` is neither a port from 1 to 65535 nor `random`"))?
        }
    };
    let own = |what: &str| anyhow!("{what} is not understood: this is a defect of netdyno");
    let job = Live {
        capture: PathBuf::from(file),
        to: address.to_string().parse().map_err(|_| own("the address"))?,
        on: text(interface),
        flow: None,
        all: false,
        from: None,
        port: Some(port),
        mac: mac.to_string().parse().ok(),
        timing: Timing::Fast,
        answers: Answers::Same,
        ignore: Vec::new(),
        timeout: None,
        quiet_time: None,
        retries: Some(3),
        yes_disrupt: parsed.value("yes-disrupt").map(str::to_owned).into_iter().collect(),
        until_gap: false,
        skip_corrupt: false,
        no_real_time: false,
        write: None,
    };
    let output = Output::default();
    let consent = Job::Live(Box::new(job.clone())).asks();
    let session = Signals::handle(false)?.session(consent, None);
    let mut report = attend(&output, Line::Not, session, |session| job::start(job.into(), session))?;
    report.command_line = crate::output::command_line();
    conclude(&report, &output, false)
}
