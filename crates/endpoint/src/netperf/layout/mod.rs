//! What netperf prints, as text: banner, classic tables, the omni test's three forms, interim results.
//!
//! Columns, blanks and line ends are netperf's, byte for byte: programs read them.

mod classic;
mod omni;

pub use classic::{brief, table, wider};
pub use omni::{csv, human, keyvals};

use super::confidence::{Goal, Series};
use super::figures::{Figures, Flow, Unit};
use super::plan::Transport;
use std::fmt::Write as _;
use std::net::IpAddr;

/// One end in the banner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// As it was typed.
    pub name: String,
    /// What it came to.
    pub address: IpAddr,
    /// The port for data, 0: any.
    pub port: u16,
}

impl End {
    fn text(&self) -> String {
        let family = if self.address.is_ipv6() { "AF_INET6" } else { "AF_INET" };
        format!("{} ({}) port {} {family}", self.name, self.address, self.port)
    }
}

/// The first line.
#[derive(Debug, Clone, PartialEq)]
pub struct Banner {
    /// The test's name in it: `MIGRATED TCP STREAM TEST`.
    pub title: String,
    /// This side.
    pub from: End,
    /// The server's.
    pub to: End,
    /// If the test is repeated.
    pub confidence: Option<Goal>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Copies are avoided.
    pub avoids_copies: bool,
    /// Requests in flight beside the first, where it says so.
    pub burst: Option<u32>,
    /// Processors were asked for.
    pub cpu_bind: bool,
}

impl Banner {
    /// The line, with its end.
    pub fn text(&self) -> String {
        let mut line = format!("{} from {} to {}", self.title, self.from.text(), self.to.text());
        if let Some(goal) = &self.confidence {
            let only = if goal.result_only { " on result only" } else { "" };
            let _ = write!(line, " : +/-{:.3}% @ {}% conf. {only}", goal.interval * 50.0, goal.level);
        }
        for (is, word) in [(self.nodelay, "nodelay"), (self.avoids_copies, "copy avoidance"), (true, "demo")]
        {
            if is {
                let _ = write!(line, " : {word}");
            }
        }
        if let Some(burst) = self.burst {
            let _ = write!(line, " : first burst {burst}");
        }
        if self.cpu_bind {
            line.push_str(" : cpu bind");
        }
        line.push('\n');
        line
    }
}

/// The test's name in the banner, of those that have one.
pub fn title(test: &str, flow: Flow, transport: Transport) -> String {
    let protocol = if transport == Transport::Tcp { "TCP" } else { "UDP" };
    match (test, flow) {
        ("OMNI", _) => format!("OMNI {} TEST", flow.word()),
        ("TCP_SENDFILE", _) => "TCP SENDFILE TEST".to_owned(),
        (_, Flow::Send) => format!("MIGRATED {protocol} STREAM TEST"),
        (_, Flow::Receive) => format!("MIGRATED {protocol} MAERTS TEST"),
        (_, Flow::Transact) => format!("MIGRATED {protocol} REQUEST/RESPONSE TEST"),
        (_, Flow::TransactEach) => format!("MIGRATED {protocol} Connect/Request/Response TEST"),
        (_, Flow::ConnectEach) => format!("{protocol} Connect/Close TEST"),
    }
}

/// What is said where the interval asked for was not reached.
pub fn not_confident(series: &Series, level: u32) -> String {
    let [result, local, remote] = series.widths(level).unwrap_or_default().map(|width| width * 100.0);
    format!(
        "!!! WARNING\n\
         !!! Desired confidence was not achieved within the specified iterations.\n\
         !!! This implies that there was variability in the test environment that\n\
         !!! must be investigated before going further.\n\
         !!! Confidence intervals: Throughput      : {result:4.3}%\n\
         !!!                       Local CPU util  : {local:4.3}%\n\
         !!!                       Remote CPU util : {remote:4.3}%\n\n"
    )
}

/// In which form results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The test's own table.
    Classic,
    /// `-O`.
    Human,
    /// `-o`.
    Csv,
    /// `-k`.
    Keyvals,
}

/// How it goes, while it goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interim {
    /// From 0 on.
    pub number: u32,
    /// In `unit`.
    pub rate: f64,
    /// Of what.
    pub unit: Unit,
    /// s.
    pub seconds: f64,
    /// When it ended, in ms since 1970.
    pub ending_ms: u128,
}

impl Interim {
    /// A line, or four.
    pub fn text(&self, form: Form) -> String {
        let Interim { number, rate, seconds, .. } = self;
        let unit = self.unit.word();
        let ending = format!("{}.{:03}", self.ending_ms / 1000, self.ending_ms % 1000);
        match form {
            Form::Csv => format!("{rate:7.2},{unit}/s,{seconds:.3},{ending}\n"),
            Form::Keyvals => format!(
                "NETPERF_INTERIM_RESULT[{number}]={rate:.2}\n\
                 NETPERF_UNITS[{number}]={unit}/s\n\
                 NETPERF_INTERVAL[{number}]={seconds:.3}\n\
                 NETPERF_ENDING[{number}]={ending}\n"
            ),
            _ => {
                format!("Interim result: {rate:7.2} {unit}/s over {seconds:.3} seconds ending at {ending}\n")
            }
        }
    }
}

/// Results in a form other than the classic one.
pub fn selected(form: Form, selection: &super::selectors::Selection, of: &Figures, headers: bool) -> String {
    match form {
        Form::Csv => csv(selection, of, headers),
        Form::Keyvals => keyvals(selection, of),
        _ => human(selection, of, headers),
    }
}
