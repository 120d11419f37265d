//! `netdyno endpoint`: streams and transactions over this host's TCP and UDP, against a netdyno server.
//!
//! ```text
//!   spec::Endpoint --> plan: parts (a direction, or transactions) --> transport::native, a control connection each
//!                                                                          |
//!        report::Endpoint <-- outcome <-- what both ends of each part came to
//! ```

mod outcome;
mod parts;
pub(crate) mod search;
pub(super) mod server;
pub(super) mod sound;
mod stamp;

use super::{Run, passive};
use crate::panel::{Names, Panel};
use crate::session::{Looked, Session};
use ::transport::native::{Client, Host, Outcome, Place, Running, Sample};
use anyhow::{Context, Result};
use histogram::Histogram;
use outcome::Round;
use parts::{Part, Parts};
use report::{Code, EndpointInterval, Report, Resolved, units};
use snapshot::{Snapshot, Title};
use spec::{Endpoint, EndpointTest, Kind as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server answers within this, or is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// A test is measured for so long, unless said.
const LASTS: Duration = Duration::from_secs(10);
/// A test that ends by amount may last so long.
const LONGEST: Duration = Duration::from_secs(3600);
/// With a confidence, a test is done at least and at most so often.
const ITERATIONS: (u32, u32) = (3, 10);
/// Streams have so long to fill the path, before transactions beside them are measured.
const FILLS: Duration = Duration::from_secs(1);

impl Run for Endpoint {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

/// A test's settings, and what it needs of its surroundings.
struct Bench<'a> {
    args: &'a Endpoint,
    session: &'a Session,
    place: Place,
    token: Option<Vec<u8>>,
    /// The same for all its connections.
    run: String,
}

/// The first line of a file of a token.
fn token(path: &std::path::Path) -> Result<Vec<u8>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("`.token_file` {}", path.display()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    anyhow::ensure!(!line.is_empty(), "`.token_file` {}: its first line is empty", path.display());
    Ok(line.as_bytes().to_vec())
}

fn run(args: &Endpoint, session: &Session) -> Result<Report> {
    args.check().map_err(|wrong| match wrong.member.as_str() {
        // By what was typed: it has no name there.
        "host" if !args.host.is_empty() => {
            anyhow::anyhow!("{}: {}", units::printable(&args.host), wrong.what)
        }
        member => anyhow::anyhow!("`.{member}`: {}", wrong.what),
    })?;
    anyhow::ensure!(!args.mesh, "`.mesh`: its tests begin at agents, and none is named");
    if args.test == EndpointTest::Stamp {
        return stamp::run(args, session);
    }
    let place =
        Place::find(&args.host, args.family.v6()).with_context(|| format!("looking up {}", args.host))?;
    let token = args.token_file.as_deref().map(token).transpose()?;
    let run = format!("{}-{}", clocks::now(clocks::Clock::Realtime), std::process::id());
    let bench = Bench { args, session, place, token, run };
    let parts = Parts::of(args, &bench.place)?;
    let mut report = Report::new("endpoint");
    let duration = (!parts.by_amount()).then(|| parts.measured());
    report.resolved =
        Resolved { duration_ns: duration.map(|lasts| lasts.as_nanos() as u64), ..Resolved::default() };
    report.environment = crate::environment::collect();
    // Who is not there is known before anything is said to begin. Until then a signal ends the process: nothing is lost by that.
    session.others_are_there();
    let client = bench.connect(&parts)?;
    session.stop_in_order();
    let ends = client.ends();
    let host = client.host().clone();
    let limit = client.limits().bits_per_second;
    session.meet()?;
    session.say(
        Code::Begun,
        format!(
            "{} with {} ({}, Linux {}); Ctrl-C ends and reports",
            args.test, bench.place, host.program, host.kernel
        ),
    );
    client.bye();
    let title = Title {
        engine: Some("sockets".to_owned()),
        tx: Some(bench.place.to_string()),
        ..passive::title("endpoint")
    };
    let mut panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let done = bench.rounds(&parts, &mut panel);
    session.board.end();
    let (rounds, idle) = done?;
    outcome::fill(&mut report, args, &parts, &rounds, idle.as_ref(), &host);
    if let Some(endpoint) = &mut report.result.endpoint {
        endpoint.server = bench.place.to_string();
        endpoint.client = ends.map(|[own, _]| own.ip().to_string());
        endpoint.local.settings = outcome::settings(&Host::here());
    }
    outcome::judge(&mut report, args, &parts, &rounds, idle.as_ref(), &bench.place, ends);
    if limit > 0 && parts.all.iter().any(|part| !part.is_transactions()) {
        let said = format!(
            "the server lets a test have {} at most: what is measured may be that",
            units::bit_rate(limit as f64)
        );
        report.warnings.add(Code::WentWithout, said);
    }
    if session.is_stopped() {
        report.result.verdict.fall_short(Code::Stopped, "stopped before its time was over");
    }
    Ok(report)
}

impl Bench<'_> {
    fn connect(&self, parts: &Parts) -> Result<Client> {
        let until = (PATIENCE, Arc::clone(&self.session.stop));
        Ok(Client::connect(&self.place, &parts.own, self.token.as_deref(), &self.run, until)?)
    }

    /// All repetitions; and of transactions under load those by themselves.
    fn rounds(&self, parts: &Parts, panel: &mut Panel) -> Result<(Vec<Round>, Option<Round>)> {
        let mut idle = None;
        if self.args.test == EndpointTest::LatencyUnderLoad {
            self.session.say(Code::Begun, "transactions by themselves");
            let transactions: Vec<&Part> = parts.all.iter().filter(|part| part.is_transactions()).collect();
            idle = Some(self.round(parts, &transactions, panel)?);
            if self.session.is_stopped() {
                return Ok((Vec::new(), idle));
            }
            self.session.say(Code::Begun, "transactions beside streams in both directions");
        }
        let all: Vec<&Part> = parts.all.iter().collect();
        let (least, most) = match &self.args.confidence {
            Some(_) => (ITERATIONS.0, self.args.iterations.unwrap_or(ITERATIONS.1).max(ITERATIONS.0)),
            None => (1, 1),
        };
        let mut rounds: Vec<Round> = Vec::new();
        for number in 1..=most {
            rounds.push(self.round(parts, &all, panel)?);
            let broken = rounds.last().is_some_and(Round::is_broken);
            if self.session.is_stopped() || broken {
                break;
            }
            if let Some(confidence) = self.args.confidence.as_deref() {
                let results: Vec<f64> = rounds.iter().filter_map(Round::result).collect();
                let width = report::compare::interval_width(&results, confidence.level);
                let result = rounds.last().and_then(Round::result);
                let said = outcome::iteration(number, self.args.test, result, &results, width);
                self.session.say(Code::Trial, said);
                if number >= least && width.is_some_and(|width| width <= confidence.width) {
                    break;
                }
            }
        }
        Ok((rounds, idle))
    }

    /// Once, all of `of` at the same time.
    fn round(&self, parts: &Parts, of: &[&Part], panel: &mut Panel) -> Result<Round> {
        let mut prepared = Vec::new();
        for part in of {
            let client = self.connect(parts)?;
            let context = || format!("{} with {}", self.args.test, self.place);
            prepared.push(client.prepare(&part.test).with_context(context)?);
        }
        let began = Instant::now();
        let mut running: Vec<(&Part, Running)> = Vec::new();
        for (part, prepared) in of.iter().zip(prepared) {
            running.push((part, prepared.start()?));
        }
        let whole = (!parts.by_amount()).then(|| parts.lasts());
        let mut timed = Timed::default();
        // Measuring begins when the warm-up is over, and not at the next tenth of a second.
        let first = next_look(&running);
        let watched =
            self.session.watch_from(panel, whole, first, |_| (), |_| look(&mut running, &mut timed));
        // So long was measured of what was asked for: less, if somebody or something ended it before.
        let ran = parts.measured().min(began.elapsed().saturating_sub(parts.warm_up()));
        let asked = (!parts.by_amount()).then_some(ran);
        if self.session.is_stopped() {
            running.iter().for_each(|(_, running)| running.stop());
        }
        let mut intervals: Vec<EndpointInterval> = watched.samples.intervals().map(interval).collect();
        for (number, interval) in intervals.iter_mut().enumerate() {
            let mut within = report::Interval::default();
            watched.spreads.fill(number + 1, &mut within);
            interval.latency_p50_ns = within.latency_p50_ns;
            interval.latency_p99_ns = within.latency_p99_ns;
        }
        // Who looked while nothing went on yet.
        intervals.retain(|interval| interval.end_ns > interval.start_ns);
        // All are stopped at about the same time: each waits for its own end's results only.
        let outcomes = std::thread::scope(|scope| {
            let ending: Vec<_> = running
                .into_iter()
                .map(|(part, running)| (part, scope.spawn(move || running.finish())))
                .collect();
            let join = |(part, thread): (&Part, std::thread::ScopedJoinHandle<'_, Outcome>)| {
                let outcome = thread
                    .join()
                    .map_err(|_| anyhow::anyhow!("a thread panicked: this is a defect of netdyno"))?;
                Ok((part.clone(), outcome))
            };
            ending.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?;
        Ok(Round { outcomes, intervals, asked })
    }
}

/// What is seen of all parts at one look.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    bytes: u64,
    count: Option<u64>,
    rtt_ns: Option<u64>,
    cwnd_bytes: Option<u64>,
    retransmits: Option<u64>,
    delivery: Option<u64>,
}

fn next_look(running: &[(&Part, Running)]) -> Option<Duration> {
    running.iter().filter_map(|(_, running)| running.next_look()).min()
}

/// How long transactions took, from look to look.
#[derive(Default)]
struct Timed {
    measuring: bool,
    /// At the look before, since counting began or began anew.
    before: Histogram,
    /// The warm-up included.
    all: Histogram,
}

impl Timed {
    /// Takes what is counted now; says what is new.
    fn since(&mut self, now: Histogram, measuring: bool) -> Histogram {
        // When measuring begins it is counted anew; of what came between the look before and then nothing is known.
        if measuring && !self.measuring {
            (self.measuring, self.before) = (true, Histogram::new());
        }
        let new = now.since(&self.before);
        self.before = now;
        self.all.merge(&new);
        new
    }
}

fn look(running: &mut [(&Part, Running)], timed: &mut Timed) -> Looked<'static, Seen> {
    let mut over = true;
    let mut now = snapshot::Endpoint::default();
    let mut seen = Seen::default();
    let mut new = Histogram::new();
    for (part, running) in running.iter_mut() {
        // Streams beside transactions end with them.
        over &= running.look();
        let ours = running.ours();
        if part.is_transactions() {
            new = timed.since(running.latency(), running.is_measuring());
            *now.transactions.get_or_insert(0) += ours.count;
            seen.bytes += ours.bytes;
            seen.count = now.transactions;
            if part.alone {
                tcp(&mut now, &mut seen, &ours);
            }
            continue;
        }
        seen.bytes += ours.bytes;
        if part.test.plan.datagrams {
            seen.count = Some(seen.count.unwrap_or(0) + ours.count);
        }
        if part.sends() {
            now.sent_bytes += ours.bytes;
            tcp(&mut now, &mut seen, &ours);
        } else {
            now.received_bytes += ours.bytes;
            tcp(&mut now, &mut seen, &running.theirs());
        }
    }
    if !new.is_empty() {
        now.latency_p50_ns = Some(new.p50());
        now.latency_p99_ns = Some(new.p99());
    }
    let snapshot = Snapshot { endpoint: Some(now), ..Snapshot::default() };
    Looked { delays: timed.all.clone(), again: next_look(running), ..Looked::of(seen, over, snapshot) }
}

/// What the sender's kernel knows of its connections.
fn tcp(now: &mut snapshot::Endpoint, seen: &mut Seen, sender: &Sample) {
    let Some(tcp) = &sender.tcp else { return };
    let rtt = (tcp.rtt_us * 1e3) as u64;
    now.rtt_ns = Some(now.rtt_ns.map_or(rtt, |other| other.max(rtt)));
    now.cwnd_bytes = Some(now.cwnd_bytes.unwrap_or(0) + tcp.cwnd_bytes);
    now.retransmits = Some(now.retransmits.unwrap_or(0) + tcp.retransmits);
    (seen.rtt_ns, seen.cwnd_bytes, seen.retransmits) = (now.rtt_ns, now.cwnd_bytes, now.retransmits);
    if let Some(rate) = tcp.delivery_rate {
        seen.delivery = Some(seen.delivery.unwrap_or(0).saturating_add(rate));
    }
}

fn interval([(start_ns, before), (end_ns, now)]: [(u64, Seen); 2]) -> EndpointInterval {
    EndpointInterval {
        start_ns,
        end_ns,
        bytes: now.bytes.saturating_sub(before.bytes),
        count: now.count.map(|count| count.saturating_sub(before.count.unwrap_or(0))),
        rtt_ns: now.rtt_ns,
        cwnd_bytes: now.cwnd_bytes,
        retransmits: now.retransmits.map(|count| count.saturating_sub(before.retransmits.unwrap_or(0))),
        delivery_bits_per_second: now.delivery.map(|rate| 8.0 * rate as f64),
        latency_p50_ns: None,
        latency_p99_ns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_of_the_time_since_the_look_before_also_when_it_is_counted_anew() {
        let (mut timed, mut now) = (Timed::default(), Histogram::new());
        now.record_n(1000, 10);
        assert_eq!(timed.since(now.clone(), false).count(), 10);
        now.record_n(9000, 2);
        let new = timed.since(now.clone(), false);
        assert!(new.count() == 2 && new.p50() > 8900, "{new:?}");
        // Measuring has begun, and more came than in all of the warm-up.
        let mut now = Histogram::new();
        now.record_n(500, 100);
        assert_eq!(timed.since(now.clone(), true).count(), 100);
        assert_eq!(timed.since(now, true).count(), 0);
        assert_eq!(timed.all.count(), 112);
    }
}
