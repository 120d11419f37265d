//! `netdyno netserver`: netserver's command lines, as they are. What differs stands in docs/from-netperf.md.

use super::netperf::words::{Getopt, family, pair_explicit, size};
use super::netperf::{help, texts};
use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{note, print};
use anyhow::{Context, Result, bail};
use endpoint::netperf::PORT;
use endpoint::netperf::plan::{Plan, Shape, Transport};
use job::Session;
use job::kinds::netserver::{self, Beside, TESTS};
use report::units::printable;
use spec::{Consent, Netserver};
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use transport::netperf::server::Event;

const OPTIONS: &str = "DdfhL:n:Np:v:VZ:46";

/// Runs `netdyno netserver` with the words that follow its name; returns the exit status.
pub fn run(words: &[OsString]) -> Result<u8> {
    let mut getopt = Getopt::new("netserver", OPTIONS, texts(words)?);
    let (mut port, mut host, mut v6, mut level) = (PORT, None, None, 0);
    let (mut serial, mut passphrase, mut foreground) = (false, None, false);
    while let Some((letter, value)) = getopt.next()? {
        let text = value.as_deref().unwrap_or_default();
        match letter {
            'h' => return print(help::SERVER).map(|()| 0),
            'V' => {
                print(&format!("netdyno {}, for netserver 2.6 to 2.7.1\n", env!("CARGO_PKG_VERSION")))?;
                return Ok(0);
            }
            'p' => port = size("p", text, 65_535)? as u16,
            'L' => {
                let (name, of) = pair_explicit(text);
                host = name.map(str::to_owned);
                v6 = of.map(|of| family("L", of)).transpose()?.flatten().or(v6);
            }
            '4' => v6 = Some(false),
            '6' => v6 = Some(true),
            'f' => serial = true,
            'Z' => passphrase = Some(text.as_bytes().to_vec()),
            'v' => level = size("v", text, 9)?,
            'D' => foreground = true,
            // What is served is said on standard error (-v), not in files of debugging.
            'd' | 'N' => {}
            'n' => bail!("-n: a number of processors is not supported: leave it out, they are counted"),
            _ => bail!("-{letter} is not supported: leave it out"),
        }
    }
    if passphrase.as_ref().is_some_and(|text| text.is_empty() || text.len() > 600) {
        bail!("-Z: a passphrase has 1 to 600 bytes");
    }
    if !foreground {
        note("it stays in the foreground: run it by systemd, or with & behind it");
    }
    let job = Netserver {
        listen: addresses(host.as_deref(), port, v6)?.iter().map(ToString::to_string).collect(),
        family: v6.into(),
        serial,
        ..Netserver::default()
    };
    super::check(&job, called)?;
    let beside = Beside {
        passphrase,
        bound: Box::new(|| super::leave_root(None)),
        tell: Box::new(move |event| tell(event, level)),
    };
    // Nothing of what a job says is printed but what netserver prints.
    let silent = Output { quiet: true, ..Output::default() };
    let session = Signals::at_once()?.session(Consent::default(), None);
    let run = move |session: Session| netserver::serve(&job, beside, &session);
    attend(&silent, Line::Not, session, |session| job::spawn(session, run))?;
    Ok(0)
}

/// netserver's option for a setting of its.
pub fn called(setting: &str) -> Option<String> {
    (setting == "listen").then(|| "-L".to_owned())
}

fn addresses(host: Option<&str>, port: u16, v6: Option<bool>) -> Result<Vec<SocketAddr>> {
    let Some(host) = host else {
        // [::] takes IPv4 as well, where there is IPv6.
        let has_v6 = std::path::Path::new("/proc/net/if_inet6").exists();
        let any = if v6 == Some(false) || v6.is_none() && !has_v6 {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        return Ok(vec![SocketAddr::new(any, port)]);
    };
    let found =
        (host, port).to_socket_addrs().with_context(|| format!("{}: no such host", printable(host)))?;
    let found: Vec<_> = found.filter(|at| v6.is_none_or(|v6| at.is_ipv6() == v6)).collect();
    if found.is_empty() {
        bail!("{}: it has no address of that family", printable(host));
    }
    Ok(found)
}

fn tell(event: &Event<'_>, level: u32) {
    match event {
        Event::Listening(at) => note(&format!("serving netperf at {at}")),
        Event::Full(peer) => note(&format!("{peer}: its test was refused: {TESTS} tests run")),
        Event::Failed(peer, why) => note(&format!("{peer}: {}", printable(why))),
        Event::Began(peer, plan) if level > 0 => note(&format!("{peer}: {}", named(plan))),
        Event::Ended(peer, results) if level > 0 => note(&format!(
            "{peer}: done in {:.2} s: {} bytes received, {} sent, {} transactions",
            results.elapsed, results.bytes_received, results.bytes_sent, results.transactions
        )),
        Event::Began(..) | Event::Ended(..) => {}
    }
}

fn named(plan: &Plan) -> String {
    let protocol = if plan.transport == Transport::Tcp { "TCP" } else { "UDP" };
    let what = match plan.shape {
        Shape::Receive => "receives a stream",
        Shape::Send => "sends a stream",
        Shape::Answer => "answers requests",
        Shape::AnswerEach => "answers requests over a connection for each",
        Shape::AcceptEach => "accepts connections",
    };
    format!("{what} over {protocol}")
}
