//! netperf's options: what is typed, and what it means. What is not there is refused by its name.

use super::words::{Getopt, family, number, pair, pair_explicit, seconds, size, tos};
use anyhow::{Context, Result, bail};
use endpoint::netperf::confidence::Goal;
use endpoint::netperf::figures::{Flow, Unit};
use endpoint::netperf::layout::Form;
use endpoint::netperf::omni::{Request, flag};
use endpoint::netperf::plan::{LARGEST, LARGEST_DATAGRAM, LONGEST, Length};
use endpoint::netperf::selectors::Selection;
use report::units::printable;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

const GLOBAL: &str = "A:a:b:B:CcdD:f:F:H:hi:I:jk:K:l:L:n:NO:o:P:p:rSs:t:T:v:VW:w:y:Y:Z:46";
const TEST: &str = "aBb:cCd:De:fFgG:hH:i:Ij:kK:l:L:m:M:nNoOp:P:q:r:R:s:S:t:T:u:UVw:W:46";

/// What is to be done.
#[derive(Debug)]
pub enum Wanted {
    /// A test.
    Test(Box<Options>),
    /// `-h`.
    Help,
    /// `-V`.
    Version,
    /// `-k ?` and the like: on one line, or a line each.
    Selectors { one_line: bool },
    /// `-t UUID`.
    Uuid,
}

/// A place: a name or an address, its family and port.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    pub host: Option<String>,
    pub v6: Option<bool>,
    pub port: Option<u16>,
}

/// A test.
#[derive(Debug, Clone)]
pub struct Options {
    pub test: String,
    pub flow: Flow,
    pub datagrams: bool,
    pub control: Place,
    pub own: Place,
    pub data: Place,
    pub own_data: Place,
    pub passphrase: Option<String>,
    pub length: i32,
    pub headers: bool,
    pub verbosity: u32,
    pub unit: Option<Unit>,
    pub brand: String,
    pub uuid: Option<String>,
    pub form: Form,
    pub selection: Option<String>,
    pub interim: Option<Duration>,
    pub confidence: Option<Goal>,
    pub local_cpu: bool,
    pub fill: Option<PathBuf>,
    pub wait: Duration,
    pub core: Option<u32>,
    pub cpu_bind: bool,
    pub keepalive: bool,
    pub own_buffers: [Option<u32>; 2],
    pub own_sizes: [u32; 2],
    pub request_size: u32,
    pub response_size: u32,
    pub burst: u32,
    pub nodelay: bool,
    pub cork: bool,
    pub congestion: Option<String>,
    pub pacing: Option<u64>,
    pub mss: Option<u32>,
    pub priority: Option<u32>,
    pub tos: Option<u8>,
    pub dont_fragment: bool,
    pub fast_open: bool,
    pub avoid_copies: bool,
    pub sendfile: bool,
    pub ports: Option<(u16, u16)>,
    pub loses_after: Option<Duration>,
    pub dont_route: bool,
    pub align: [i32; 2],
    pub offset: [i32; 2],
    /// What the server is asked for.
    pub request: Request,
}

impl Options {
    fn new() -> Options {
        Options {
            test: "TCP_STREAM".to_owned(),
            flow: Flow::Send,
            datagrams: false,
            control: Place::default(),
            own: Place::default(),
            data: Place::default(),
            own_data: Place::default(),
            passphrase: None,
            length: 10,
            headers: true,
            verbosity: 1,
            unit: None,
            brand: String::new(),
            uuid: None,
            form: Form::Classic,
            selection: None,
            interim: None,
            confidence: None,
            local_cpu: false,
            fill: None,
            wait: Duration::ZERO,
            core: None,
            cpu_bind: false,
            keepalive: false,
            own_buffers: [None; 2],
            own_sizes: [0; 2],
            request_size: 1,
            response_size: 1,
            burst: 0,
            nodelay: false,
            cork: false,
            congestion: None,
            pacing: None,
            mss: None,
            priority: None,
            tos: None,
            dont_fragment: false,
            fast_open: false,
            avoid_copies: false,
            sendfile: false,
            ports: None,
            loses_after: None,
            dont_route: false,
            align: [8; 2],
            offset: [0; 2],
            request: Request { flags: 0, ..Request::default() },
        }
    }

    /// How long.
    pub fn length(&self) -> Length {
        Length::of(self.length)
    }

    /// The unit of the result.
    pub fn unit(&self) -> Unit {
        match self.unit {
            Some(Unit::Transactions) | None if self.flow.is_transactions() => Unit::Transactions,
            Some(Unit::Transactions) | None => Unit::Megabits,
            Some(unit) => unit,
        }
    }

    /// What is printed, where it is no table; and names that are not known.
    pub fn selection(&self) -> Result<Option<(Selection, Vec<String>)>> {
        if self.form == Form::Classic {
            return Ok(None);
        }
        let cpu = self.local_cpu || self.request.flags & flag::MEASURE_CPU != 0;
        let Some(text) = &self.selection else {
            return Ok(Some((Selection::usual(self.flow, cpu), Vec::new())));
        };
        if text.eq_ignore_ascii_case("all") {
            return Ok(Some((Selection::all(), Vec::new())));
        }
        let (direct, unknown) = Selection::parse(text);
        if !direct.0.is_empty() || text.contains([',', ';']) {
            if direct.0.is_empty() {
                bail!("{}: none of these is an output selector; `-k ?` lists them", printable(text));
            }
            return Ok(Some((direct, unknown)));
        }
        // A file with such a list.
        let file = std::fs::metadata(text).and_then(|about| {
            if about.len() > 65_536 {
                Err(std::io::ErrorKind::FileTooLarge.into())
            } else {
                std::fs::read_to_string(text)
            }
        });
        let list = file.with_context(|| {
            format!(
                "{}: neither an output selector (`-k ?` lists them) nor a file with a list of them",
                printable(text)
            )
        })?;
        let (found, unknown) = Selection::parse(&list);
        if found.0.is_empty() {
            bail!("{}: no output selector is in this file", printable(text));
        }
        Ok(Some((found, unknown)))
    }
}

fn port(option: &str, text: &str) -> Result<u16> {
    text.parse()
        .ok()
        .with_context(|| format!("-{option} {}: a port from 0 to 65535 is expected", printable(text)))
}

/// The host and the family of addresses at one end.
pub(super) fn place(option: &str, text: &str, into: &mut Place) -> Result<()> {
    let (host, of) = pair_explicit(text);
    if let Some(host) = host {
        if host.contains('/') {
            bail!(
                "-{option} {}: random addresses (with a mask) are not supported: run one test for each address",
                printable(text)
            );
        }
        into.host = Some(host.to_owned());
    }
    if let Some(of) = of {
        into.v6 = family(option, of)?;
    }
    Ok(())
}

/// Reads a command line.
pub fn read(words: VecDeque<String>) -> Result<Wanted> {
    let mut o = Options::new();
    let mut getopt = Getopt::new("netperf", GLOBAL, words);
    let mut iterations = None;
    let mut interval = None;
    let mut result_only = false;
    while let Some((letter, value)) = getopt.next()? {
        let text = value.as_deref().unwrap_or_default();
        match letter {
            'h' => return Ok(Wanted::Help),
            'V' => return Ok(Wanted::Version),
            '4' | '6' => (o.control.v6, o.own.v6) = (Some(letter == '6'), Some(letter == '6')),
            'H' => place("H", text, &mut o.control)?,
            'L' => place("L", text, &mut o.own)?,
            'p' => {
                let (to, own) = pair_explicit(text);
                o.control.port = to.map(|to| port("p", to)).transpose()?.or(o.control.port);
                o.own.port = own.map(|own| port("p", own)).transpose()?.or(o.own.port);
            }
            't' => o.test = text.to_ascii_uppercase(),
            'l' => o.length = length(text)?,
            'P' => o.headers = number("P", text)? != 0,
            'v' => o.verbosity = size("v", text, 9)?,
            'f' => o.unit = Some(unit(text)?),
            'B' => o.brand = printable(text),
            'Z' => {
                // As much of it as a message has room for would be another one.
                if text.is_empty() || text.len() > 600 {
                    bail!("-Z: a passphrase has 1 to 600 bytes");
                }
                o.passphrase = Some(text.to_owned());
            }
            // More is not said than is said anyway.
            'd' => {}
            'D' => o.interim = Some(interim(text)?),
            'i' => iterations = Some(text.to_owned()),
            'I' => interval = Some(text.to_owned()),
            'r' => result_only = true,
            // Transactions are timed in any case.
            'j' => {}
            // A rate may follow, which another way of measuring would need.
            'c' | 'C' => {
                let _ = getopt.take_if(|word| word.starts_with(|first: char| first.is_ascii_digit()));
                if letter == 'c' { o.local_cpu = true } else { o.request.flags |= flag::MEASURE_CPU }
            }
            'F' => {
                let (own, theirs) = pair_explicit(text);
                o.fill = own.map(PathBuf::from);
                o.request.fill_file = theirs.unwrap_or_default().to_owned();
                if o.request.fill_file.len() > 31 {
                    bail!("-F {}: the name of the server's file has room for 31 bytes", printable(text));
                }
            }
            's' => o.wait = Duration::from_secs(size("s", text, 86_400)?.into()),
            'S' => o.keepalive = true,
            'T' => {
                let (own, theirs) = pair(text);
                o.core = own.map(|core| size("T", core, 65_535)).transpose()?;
                o.request.cpu =
                    theirs.map(|core| size("T", core, 65_535)).transpose()?.map_or(-1, |core| core as i32);
                o.cpu_bind = true;
            }
            'y' => {
                let (own, theirs) = pair(text);
                o.priority = own.map(|value| size("y", value, i32::MAX as u32)).transpose()?;
                o.request.priority = theirs
                    .map(|value| size("y", value, i32::MAX as u32))
                    .transpose()?
                    .map_or(-1, |value| value as i32);
            }
            'Y' => {
                let (own, theirs) = pair(text);
                o.tos = own.map(tos).transpose()?;
                o.request.tos = theirs.map(tos).transpose()?.map_or(-1, i32::from);
            }
            // One buffer serves, aligned to pages; the server is told.
            'a' | 'o' | 'A' | 'O' | 'W' => buffers(letter, text, &mut o)?,
            _ => bail!(refused_global(letter)),
        }
    }
    confidence(&mut o, iterations.as_deref(), interval.as_deref(), result_only)?;
    by_name(&mut o)?;
    if o.test == "UUID" {
        return Ok(Wanted::Uuid);
    }
    super::specific::read(o, Getopt::new("netperf", TEST, getopt.rest()))
}

fn buffers(letter: char, text: &str, o: &mut Options) -> Result<()> {
    let (first, second) = pair(text);
    let option = letter.to_string();
    let values = [first, second].map(|value| value.map(|value| size(&option, value, 1 << 24)).transpose());
    for (at, value) in values.into_iter().enumerate() {
        let Some(value) = value? else { continue };
        let value = value as i32;
        let place = match (letter, at) {
            ('a', at) => o.align.get_mut(at),
            ('o', at) => o.offset.get_mut(at),
            ('A', 0) => Some(&mut o.request.send_align),
            ('A', _) => Some(&mut o.request.recv_align),
            ('O', 0) => Some(&mut o.request.send_offset),
            ('O', _) => Some(&mut o.request.recv_offset),
            (_, 0) => Some(&mut o.request.send_width),
            _ => Some(&mut o.request.recv_width),
        };
        if let Some(place) = place {
            *place = value;
        }
    }
    Ok(())
}

fn refused_global(letter: char) -> String {
    let (what, mend) = match letter {
        'N' => (
            "a test without a control connection",
            "nobody there would have agreed to it: start `netdyno netserver`, or use `netdyno send`",
        ),
        'w' | 'b' => (
            "sends in intervals",
            "give a rate: -q BYTES_PER_SECOND after --, or `netdyno endpoint udp-stream --rate`",
        ),
        'k' | 'K' => ("dirty and clean buffers", "leave it out: buffers are left as they are"),
        'n' => ("a number of processors", "leave it out: they are counted"),
        _ => ("this", "leave it out"),
    };
    format!("-{letter}: {what} is not supported: {mend}")
}

fn length(text: &str) -> Result<i32> {
    let (text, factor) = match text.chars().last() {
        Some('s') => (text.trim_end_matches('s'), 1),
        Some('h') => (text.trim_end_matches('h'), 3600),
        _ => (text, 1),
    };
    let length = number("l", text)?.checked_mul(factor).and_then(|length| i32::try_from(length).ok());
    // What is longer than the longest would end before it is due, and nobody would be told.
    let day = i32::try_from(LONGEST.as_secs()).unwrap_or(i32::MAX);
    length.filter(|length| (-i32::MAX..=day).contains(length)).with_context(|| {
        format!("-l {}: from -2147483647 (bytes, transactions) to 86400 (seconds)", printable(text))
    })
}

fn unit(text: &str) -> Result<Unit> {
    let unit = text.chars().next().and_then(Unit::of);
    unit.with_context(|| {
        format!("-f {}: there are G, M, K (bytes), g, m, k (bits) and x (transactions)", printable(text))
    })
}

fn interim(text: &str) -> Result<Duration> {
    // Behind a comma stands a guess of how many units a second come, which is not needed; and time is always looked at.
    let (each, _) = pair_explicit(text);
    let each = seconds("D", each.unwrap_or("1"))?.abs();
    if each < 0.01 {
        bail!("-D {}: 0.01 s is the least", printable(text));
    }
    Ok(Duration::from_secs_f64(each))
}

fn confidence(
    o: &mut Options,
    iterations: Option<&str>,
    interval: Option<&str>,
    result_only: bool,
) -> Result<()> {
    if iterations.is_none() && interval.is_none() {
        return Ok(());
    }
    let mut goal = Goal { level: 99, interval: 0.05, min: 3, max: 10, result_only };
    if let Some((most, least)) = iterations.map(pair) {
        let read = |text: Option<&str>| text.map(|text| size("i", text, i32::MAX as u32)).transpose();
        goal.max = read(most)?.unwrap_or(1);
        goal.min = read(least)?.unwrap_or(1);
        let (max, min) = (goal.max.max(goal.min), goal.min);
        (goal.max, goal.min) = (max.clamp(3, 30), min.clamp(3, 30));
        if most.is_some() && (goal.max != max || least.is_some() && goal.min != min) {
            crate::output::note(&format!(
                "-i: as netperf, {} to {} tests: it takes 3 to 30",
                goal.min, goal.max
            ));
        }
    }
    if let Some(text) = interval {
        // As netperf reads it: a number alone is the level, and the width as well. `-I 99` is an interval 99 % wide.
        let (level, width) = pair(text);
        match level {
            Some("95") => goal.level = 95,
            Some("99") | None => goal.level = 99,
            Some(other) => bail!("-I {}: only 95 and 99 % are there", printable(other)),
        }
        if let Some(width) = width {
            let width = seconds("I", width)?;
            if !(0.0..=200.0).contains(&width) || width == 0.0 {
                bail!("-I {}: the width is a percentage above 0", printable(text));
            }
            goal.interval = width / 100.0;
        }
    }
    o.confidence = Some(goal);
    Ok(())
}

/// What a test's name says.
fn by_name(o: &mut Options) -> Result<()> {
    (o.flow, o.datagrams) = match o.test.as_str() {
        "TCP_STREAM" | "OMNI" | "UUID" => (Flow::Send, false),
        "TCP_SENDFILE" => (Flow::Send, false),
        "TCP_MAERTS" => (Flow::Receive, false),
        "TCP_RR" => (Flow::Transact, false),
        "TCP_CRR" => (Flow::TransactEach, false),
        "TCP_CC" => (Flow::ConnectEach, false),
        "UDP_STREAM" => (Flow::Send, true),
        "UDP_RR" => (Flow::Transact, true),
        other => {
            let mend = match other {
                "LOC_CPU" | "REM_CPU" => {
                    "CPU use is read from /proc/stat, which needs no calibration: leave it out"
                }
                "TCP_MSS" => "give `-t TCP_STREAM -- -k TRANSPORT_MSS`",
                _ if other.starts_with("SCTP") || other.starts_with("DCCP") => {
                    "TCP_* and UDP_* tests are there"
                }
                _ if other.starts_with("STREAM_") || other.starts_with("DG_") => {
                    "`netdyno endpoint` has Unix sockets"
                }
                _ => {
                    "there are TCP_STREAM, TCP_MAERTS, TCP_SENDFILE, TCP_RR, TCP_CRR, TCP_CC, UDP_STREAM, UDP_RR and OMNI"
                }
            };
            bail!("the test {} is not supported: {mend}", printable(other));
        }
    };
    o.sendfile = o.test == "TCP_SENDFILE";
    // Who floods datagrams by mistake does not flood others' networks.
    o.dont_route = o.test == "UDP_STREAM";
    if o.test == "OMNI" {
        o.form = Form::Human;
    }
    Ok(())
}

/// The largest message of a test.
pub fn largest(datagrams: bool) -> u32 {
    if datagrams { LARGEST_DATAGRAM } else { LARGEST }
}
