//! The line that moves while a run goes on: one line that is redrawn on a terminal, a plain line every few
//! seconds elsewhere. Rendering is a pure function of a [`Progress`]; [`Live`] only moves the cursor. It reads
//! no clock: time comes with the snapshot.

use std::io::{self, Write};
use std::time::Duration;

use crate::data::model::Loss;
use crate::data::units;

/// A snapshot of a run. Rates are of the last stretch, counts and loss since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Left out when the run has no set end.
    pub remaining: Option<Duration>,
    /// It may be less, and not more.
    pub at_most: bool,
    /// What was sent; left out where nothing is.
    pub sent: Option<Pace>,
    /// What the schedule asks for now; left out at top speed.
    pub intended_frames_per_second: Option<f64>,
    /// What arrived; left out where nothing is measured.
    pub received: Option<Pace>,
    /// Left out while it is not known.
    pub loss: Option<Loss>,
    /// Of an endpoint test; left out elsewhere.
    pub endpoint: Option<EndpointPace>,
    /// Warnings so far.
    pub warnings: usize,
}

/// An endpoint test, in the last stretch. What is not part of it is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointPace {
    /// Payload that left.
    pub sent_bits_per_second: Option<f64>,
    /// Payload that arrived.
    pub received_bits_per_second: Option<f64>,
    /// Transactions that were answered.
    pub transactions_per_second: Option<f64>,
    /// Their median latency so far.
    pub latency_p50_ns: Option<u64>,
    /// Their 99th percentile so far.
    pub latency_p99_ns: Option<u64>,
    /// Round-trip time of what is sent.
    pub rtt_ns: Option<u64>,
    /// Segments that were sent again, so far.
    pub retransmits: Option<u64>,
    /// Of a server: clients now.
    pub clients: Option<u64>,
    /// Of a server and of a mesh: tests that are over.
    pub tests: Option<u64>,
    /// Of a mesh: all of its tests.
    pub all_tests: Option<u64>,
    /// Of a mesh: the round that goes on, of how many.
    pub round: Option<(u64, u64)>,
}

impl EndpointPace {
    /// Its facts, each with its weight.
    fn facts(&self) -> Vec<(u8, String)> {
        let rate = |name: &str, rate: Option<f64>| {
            rate.map(|rate| (10, format!("{name} {:>11}", units::bit_rate(rate))))
        };
        let time = |weight, name: &str, ns: Option<u64>| {
            ns.map(|ns| (weight, format!("{name} {}", units::time(ns))))
        };
        let transactions = self
            .transactions_per_second
            .map(|rate| (10, format!("{} transactions/s", units::count(rate.round() as u64))));
        let again = self.retransmits.map(|count| (4, format!("{} sent again", units::count(count))));
        let all = [
            rate("sent", self.sent_bits_per_second),
            rate("got", self.received_bits_per_second),
            transactions,
            time(7, "p50", self.latency_p50_ns),
            time(8, "p99", self.latency_p99_ns),
            time(5, "rtt", self.rtt_ns),
            again,
            self.clients.map(|count| (10, units::counted(count, "client"))),
            self.round.map(|(round, of)| (9, format!("round {round} of {of}"))),
            self.tests.map(|count| (9, tests(count, self.all_tests))),
        ];
        all.into_iter().flatten().collect()
    }
}

/// Tests that are over, of all where these are known.
fn tests(over: u64, all: Option<u64>) -> String {
    match all {
        Some(all) => format!("{} of {}", units::count(over), units::counted(all, "test")),
        None => format!("{} over", units::counted(over, "test")),
    }
}

/// How much so far, how fast now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Since the start.
    pub frames: u64,
    /// Of the last stretch.
    pub frames_per_second: f64,
    /// Layer 2 without FCS.
    pub bits_per_second: f64,
}

impl Progress {
    fn done_ratio(&self) -> Option<f64> {
        let total = (self.elapsed + self.remaining?).as_secs_f64();
        Some(if total > 0.0 { self.elapsed.as_secs_f64() / total } else { 1.0 })
    }
}

/// One line of at most `width` columns. What matters least is left out first; figures keep their columns from
/// one snapshot to the next so that the line does not jump.
pub fn line(p: &Progress, width: usize) -> String {
    // Each piece with its weight; the lightest goes first when space is short.
    let mut pieces: Vec<(u8, String)> = Vec::new();
    let mut piece = |weight, text: String| pieces.push((weight, text));
    if let Some(done) = p.done_ratio() {
        // What still runs is not done.
        piece(3, format!("{:>3.0}%", (done * 100.0).floor().min(99.0)));
    }
    piece(9, format!("{:>3}", units::clock(nanos(p.elapsed))));
    if let Some(left) = p.remaining {
        piece(6, ahead(left, p.at_most));
    }
    if let Some(sent) = &p.sent {
        piece(10, format!("sent {:>9}", units::frame_rate(sent.frames_per_second)));
        if let Some(asked) = p.intended_frames_per_second {
            piece(4, format!("of {:>9}", units::frame_rate(asked)));
        }
        piece(2, format!("{:>11}", units::bit_rate(sent.bits_per_second)));
    }
    if let Some(received) = &p.received {
        piece(7, format!("got {:>9}", units::frame_rate(received.frames_per_second)));
        if p.sent.is_none() {
            piece(2, format!("{:>11}", units::bit_rate(received.bits_per_second)));
        }
    }
    for (weight, text) in p.endpoint.iter().flat_map(EndpointPace::facts) {
        piece(weight, text);
    }
    if let Some(loss) = &p.loss {
        let how = if loss.by_count_only { " by count" } else { "" };
        piece(8, format!("lost {}{how}", units::percent(loss.ratio)));
    }
    if p.warnings > 0 {
        piece(5, units::counted(p.warnings as u64, "warning"));
    }
    let length = |pieces: &[(u8, String)]| {
        pieces.iter().map(|(_, text)| text.len() + 2).sum::<usize>().saturating_sub(2)
    };
    while pieces.len() > 1 && length(&pieces) > width {
        let lightest = pieces.iter().enumerate().min_by_key(|(_, (weight, _))| *weight);
        let Some((index, _)) = lightest else { break };
        pieces.remove(index);
    }
    let texts: Vec<String> = pieces.into_iter().map(|(_, text)| text).collect();
    texts.join("  ").chars().take(width).collect()
}

/// How long it still lasts: what is over its time waits for the last frames.
pub fn ahead(left: Duration, at_most: bool) -> String {
    match (left, at_most) {
        (Duration::ZERO, _) => "  ending".to_owned(),
        (left, false) => format!("{:>3} left", units::ahead(nanos(left))),
        (left, true) => format!("at most {:>3} left", units::ahead(nanos(left))),
    }
}

/// The same for a log: a sentence with counts, of any length.
pub fn sentence(p: &Progress) -> String {
    let mut out = units::clock(nanos(p.elapsed));
    if let Some(left) = p.remaining {
        out += &format!(" ({})", ahead(left, p.at_most).trim_start());
    }
    let mut facts = Vec::new();
    let pace = |verb: &str, pace: &Pace| {
        let (pps, bps) = (units::frame_rate(pace.frames_per_second), units::bit_rate(pace.bits_per_second));
        format!("{verb} {}, now {pps}, {bps}", units::counted(pace.frames, "frame"))
    };
    if let Some(sent) = &p.sent {
        let asked =
            p.intended_frames_per_second.map(|f| format!(" of {}", units::frame_rate(f))).unwrap_or_default();
        facts.push(pace("sent", sent) + &asked);
    }
    facts.extend(p.received.as_ref().map(|received| pace("received", received)));
    facts.extend(p.endpoint.iter().flat_map(EndpointPace::facts).map(|(_, text)| text));
    facts.extend(p.loss.map(|l| {
        let how = if l.by_count_only { ", by count only" } else { "" };
        format!("lost {} ({}{how})", units::counted(l.frames, "frame"), units::percent(l.ratio))
    }));
    if p.warnings > 0 {
        facts.push(units::counted(p.warnings as u64, "warning"));
    }
    if facts.is_empty() { out } else { format!("{out}: {}", facts.join("; ")) }
}

/// Draws progress onto a terminal or into a log. The caller passes on window-size changes and decides which of
/// the two its output is.
#[derive(Debug)]
pub struct Live<W: Write> {
    out: W,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Terminal { width: usize, drawn: bool },
    Log { every: Duration, next: Duration },
}

/// Back to the line's start, and clear to its end (ECMA-48 EL).
const CLEAR: &str = "\r\x1b[K";

impl<W: Write> Live<W> {
    /// Redraws one line on a terminal `width` columns wide.
    pub fn terminal(out: W, width: usize) -> Self {
        Self { out, mode: Mode::Terminal { width, drawn: false } }
    }

    /// Writes a plain line every so often, by the snapshots' own time.
    pub fn log(out: W, every: Duration) -> Self {
        Self { out, mode: Mode::Log { every, next: every } }
    }

    /// Shows a snapshot. Call it as often as the line should move (5 to 10 times a second).
    ///
    /// # Errors
    /// That standard error cannot be written to.
    pub fn update(&mut self, progress: &Progress) -> io::Result<()> {
        match &mut self.mode {
            Mode::Terminal { width, drawn } => {
                *drawn = true;
                // One column stays free: a character in the last one makes some terminals wrap.
                write!(self.out, "{CLEAR}{}", line(progress, width.saturating_sub(1)))?;
            }
            Mode::Log { every, next } => {
                if progress.elapsed < *next {
                    return Ok(());
                }
                *next = progress.elapsed.saturating_add(*every);
                writeln!(self.out, "{}", sentence(progress))?;
            }
        }
        self.out.flush()
    }

    /// Writes a message on a line of its own; the moving line comes back with the next update.
    ///
    /// # Errors
    /// That standard error cannot be written to.
    pub fn message(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        writeln!(self.out, "{}", units::printable(text))?;
        self.out.flush()
    }

    /// Removes the moving line so that other output can follow. Safe to call twice.
    ///
    /// # Errors
    /// That standard error cannot be written to.
    pub fn clear(&mut self) -> io::Result<()> {
        if let Mode::Terminal { drawn, .. } = &mut self.mode
            && std::mem::take(drawn)
        {
            write!(self.out, "{CLEAR}")?;
            self.out.flush()?;
        }
        Ok(())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
