//! `netdyno search socket-buffer` and `netdyno search transactions`: one endpoint test, done again and again with another
//! setting, by a plan that says what is tried next.
//!
//! ```text
//!   sweep | climb   -- what is tried next -->  trial: the endpoint test  -->  one row of the result
//!        ^                                                                        |
//!        '------------------------------ told -------------------------------------'
//! ```
//!
//! A plan is a function of the rows it was told: whoever has them goes on where they end.

mod climb;
mod lab;
mod sweep;

use super::outcome::{self, Round};
use super::parts::{Part, Parts};
use super::{Bench, token};
use crate::kinds::{Run, passive};
use crate::panel::{Names, Panel};
use crate::session::Session;
use ::transport::native::{Host, Place, Results};
use anyhow::{Context as _, Result, bail};
use histogram::Histogram;
use report::search::TrialLatency;
use report::{
    Code, EndpointSearch as Found, EndpointStage, EndpointTrial, EndpointVerdict, Report, Resolved, units,
};
use snapshot::Title;
use spec::{Endpoint, EndpointFind, EndpointRate, EndpointSearch, EndpointTest, Family, Written};
use std::time::{Duration, Instant};

/// A trial is measured for so long, unless said; in a lab
const LASTS: Duration = Duration::from_secs(5);
/// for so long.
const IN_A_LAB: Duration = Duration::from_secs(1);
/// What comes before is not: connections find their pace.
const WARM_UP: Duration = Duration::from_millis(200);
/// In flight in a closed loop that shows what can be done, over each connection.
const CLOSED_LOOP: u32 = 16;
/// In an open loop: as many as wait within the bound, and more.
const OPEN_LOOP: u32 = 1024;
/// Of the transactions that were due, such a share may be left over by the end: those that were due in the last moment.
const LEFT_OVER: f64 = 0.001;
/// A rate that is reached to this share is carried.
const CARRIED: f64 = 0.995;
/// A percentile says little of fewer transactions beyond it.
const BEYOND: f64 = 10.0;

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    /// What for.
    pub stage: EndpointStage,
    /// Socket buffers; None: as the kernel tunes.
    pub buffer: Option<u64>,
    /// Transactions a second; None: as fast as they go.
    pub rate: Option<u64>,
}

impl Try {
    fn is(&self, done: &EndpointTrial) -> bool {
        let rate = self.rate.map(|rate| rate as f64);
        self.stage == done.stage
            && self.buffer == done.buffer_bytes
            && (rate == done.intended_per_second || !self.offers())
    }

    /// The rate is what is varied.
    fn offers(&self) -> bool {
        self.stage != EndpointStage::Sweep
    }
}

/// Says what is tried next.
trait Plan {
    /// None: it is over.
    fn next(&self) -> Option<Try>;
    /// What came of it.
    fn tell(&mut self, trial: &EndpointTrial);
    /// Trials that are still to come, at a guess.
    fn left(&self) -> usize;
}

/// One of the plans.
enum Plans {
    Sweep(sweep::Sweep),
    Climb(Box<climb::Climb>),
}

impl Plans {
    fn of(job: &EndpointSearch) -> Plans {
        match &job.find {
            EndpointFind::SocketBuffer(find) => {
                let most = job.endpoint.iterations.unwrap_or(super::ITERATIONS.1);
                let confidence = job.endpoint.confidence.as_deref().copied();
                Plans::Sweep(sweep::Sweep::new(&find.sizes(), find.repetitions(), confidence, most))
            }
            EndpointFind::Transactions(find) => Plans::Climb(Box::new(climb::Climb::new(find))),
        }
    }

    /// Goes on behind trials that an earlier result has.
    fn resume(&mut self, trials: &[EndpointTrial]) -> Result<()> {
        for done in trials {
            let wanted = self.plan().next();
            if !wanted.is_some_and(|wanted| wanted.is(done)) {
                bail!(
                    "`.continue`: its trial {} is not the one that this search would do there: it is of another one",
                    done.number
                );
            }
            self.plan().tell(done);
        }
        Ok(())
    }

    /// What the trials come to.
    fn judge(
        &self,
        report: &mut Report,
        found: &mut Found,
        (job, args, parts): (&EndpointSearch, &Endpoint, &Parts),
        server: Host,
    ) {
        let complete = found.complete;
        match (self, &job.find) {
            (Plans::Sweep(sweep), EndpointFind::SocketBuffer(find)) => {
                let is_stream = matches!(args.test, EndpointTest::TcpStream | EndpointTest::TcpMaerts);
                let found =
                    found.socket_buffer.insert(sweep::found(&found.trials, sweep, find.enough(), is_stream));
                // Of transactions this end sends first, and the server receives.
                let [sender, receiver] =
                    match parts.all.first().is_some_and(|part| part.is_transactions() || part.sends()) {
                        true => [Host::here(), server],
                        false => [server, Host::here()],
                    };
                buffers_judged(report, found, complete, sweep.unsure());
                limits_told(report, found, &sender, &receiver);
            }
            (Plans::Climb(climb), EndpointFind::Transactions(find)) => {
                let in_flight = args.burst.unwrap_or(CLOSED_LOOP);
                let of = found.transactions.insert(climb::found(&found.trials, climb, find, in_flight));
                rates_judged(report, of, complete, &climb.inconsistent);
                few_beyond(report, of, &found.trials);
            }
            _ => {}
        }
    }

    fn plan(&mut self) -> &mut dyn Plan {
        match self {
            Plans::Sweep(sweep) => sweep,
            Plans::Climb(climb) => &mut **climb,
        }
    }
}

impl Run for EndpointSearch {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, None, &session)
    }
}

/// Searches, or goes on with what an earlier result of the same search has.
///
/// # Errors
/// What was asked for that cannot be, or that the earlier result is of another search.
pub fn run(job: &EndpointSearch, earlier: Option<Report>, session: &Session) -> Result<Report> {
    passive::check(job)?;
    match &job.lab {
        None => {
            let v6 = match job.endpoint.family {
                Family::Any => None,
                Family::V4 => Some(false),
                Family::V6 => Some(true),
            };
            let host = &job.endpoint.host;
            let place = Place::find(host, v6).with_context(|| format!("looking up {host}"))?;
            search(job, earlier, session, place)
        }
        Some(asked) => lab::within(asked, |place| search(job, earlier, session, place)),
    }
}

/// The test of all trials: what is asked for, with the defaults of searches.
fn tested(job: &EndpointSearch) -> Endpoint {
    let mut args = job.endpoint.clone();
    let lasts = if job.lab.is_some() { IN_A_LAB } else { LASTS };
    let written = |time: Duration| format!("{}ms", time.as_millis()).parse::<Written<Duration>>().ok();
    args.duration = args.duration.or_else(|| written(lasts));
    args.warm_up = args.warm_up.or_else(|| written(WARM_UP));
    (args.confidence, args.iterations) = (None, None);
    args
}

fn search(job: &EndpointSearch, earlier: Option<Report>, session: &Session, place: Place) -> Result<Report> {
    let args = tested(job);
    let token = args.token_file.as_deref().map(token).transpose()?;
    let run = format!("{}-{}", clocks::now(clocks::Clock::Realtime), std::process::id());
    session.stop_in_order();
    let mut bench = Bench { args: &args, session, place, token, run };
    let parts = Parts::of(&args, &bench.place)?;
    let mut report = Report::new("search");
    report.resolved = Resolved { duration_ns: Some(nanos(parts.measured())), ..Resolved::default() };
    report.environment = crate::environment::collect();
    // Who is not there is known before anything is said to begin.
    let client = bench.connect(&parts)?;
    let (ends, host) = (client.ends(), client.host().clone());
    client.bye();
    session.meet();
    let mut plans = Plans::of(job);
    let kept = earlier.and_then(|report| report.result.endpoint_search).map(|search| search.trials);
    let mut trials = kept.unwrap_or_default();
    plans.resume(&trials)?;
    session.say(Code::Begun, begun(&bench, job, &parts, &host, plans.plan().left()));
    let title = Title {
        engine: Some("sockets".to_owned()),
        tx: Some(bench.place.to_string()),
        ..passive::title("search")
    };
    let mut panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;
    let began = Instant::now();
    let mut fault = None;
    let mut rounds = Vec::new();
    while let Some(wanted) = plans.plan().next() {
        let tried = attempt(&mut bench, job, &args, &wanted, &mut panel);
        let (mut row, round) = match tried {
            Ok(Some(done)) => done,
            Ok(None) => break,
            // Nothing is known yet that would be lost.
            Err(error) if trials.is_empty() => return Err(error),
            Err(error) => {
                fault = Some(crate::in_full(&error));
                break;
            }
        };
        row.number = trials.len() as u32 + 1;
        plans.plan().tell(&row);
        session.say(Code::Trial, said(&row, plans.plan().left(), job));
        trials.push(row);
        rounds = vec![round];
    }
    session.board.end();
    let complete = plans.plan().next().is_none();
    let mut found = Found {
        kind: job.find.name().to_owned(),
        test: args.test.to_string(),
        server: bench.place.to_string(),
        complete,
        connections: u64::from(args.parallel.unwrap_or(1)),
        trial_ns: nanos(parts.measured()),
        warm_up_ns: nanos(parts.lasts().saturating_sub(parts.measured())),
        elapsed_ns: nanos(began.elapsed()),
        counts: if args.test.transacts() { "transactions" } else { "bits" }.to_owned(),
        local_settings: outcome::settings(&Host::here()),
        remote_settings: outcome::settings(&host),
        trials,
        ..Found::default()
    };
    outcome::untouched(&mut report, &args, &parts, rounds.iter().flat_map(|round| &round.outcomes));
    let here = ends.is_some_and(|[own, peer]| own.ip() == peer.ip());
    if here || job.lab.is_some() {
        let said =
            "both ends are on this host: they share its processors, and no network of its own lies between";
        report.warnings.add(Code::EndsShared, said);
    }
    plans.judge(&mut report, &mut found, (job, &args, &parts), host);
    if !complete {
        incomplete(&mut report, found.trials.len(), fault);
    }
    report.result.endpoint_search = Some(found);
    Ok(report)
}

/// What is said as a search begins, with about so many trials before it.
fn begun(bench: &Bench<'_>, job: &EndpointSearch, parts: &Parts, server: &Host, left: usize) -> String {
    let took = if parts.all.iter().any(Part::is_transactions) { "" } else { ", each as fast as it goes" };
    format!(
        "{} by {} with {} ({}, Linux {}): about {} of {}{took}; Ctrl-C ends and reports",
        job.find.name(),
        bench.args.test,
        bench.place,
        server.program,
        server.kernel,
        units::counted(left as u64, "trial"),
        units::time(nanos(parts.lasts())),
    )
}

/// A search ended before its last trial.
fn incomplete(report: &mut Report, trials: usize, fault: Option<String>) {
    let after = units::counted(trials as u64, "trial");
    let ended = match fault {
        Some(why) => format!("ended after {after}, because the next could not be carried out ({why})"),
        None => format!("interrupted after {after}"),
    };
    report.result.verdict.fall_short(
        Code::SearchIncomplete,
        (
            format!("{ended}: what is known so far stands above"),
            "go on with `.continue` from a written result (`.report`, or `.json` to a file)",
        ),
    );
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// One trial. None: it was ended by who looks on.
fn attempt(
    bench: &mut Bench<'_>,
    job: &EndpointSearch,
    args: &Endpoint,
    wanted: &Try,
    panel: &mut Panel,
) -> Result<Option<(EndpointTrial, Round)>> {
    let mut args = args.clone();
    if let Some(bytes) = wanted.buffer {
        let size = bytes.to_string().parse::<Written<u64>>().ok();
        args.send_buffer.clone_from(&size);
        args.receive_buffer.clone_from(&size);
        args.remote_send_buffer.clone_from(&size);
        args.remote_receive_buffer = size;
    }
    if wanted.offers() {
        let in_flight = if wanted.rate.is_some() { OPEN_LOOP } else { CLOSED_LOOP };
        args.burst = args.burst.or(Some(in_flight));
        args.rate = wanted.rate.and_then(|rate| format!("{rate}tps").parse().ok());
    }
    let parts = Parts::of(&args, &bench.place)?;
    let bench = Bench {
        args: &args,
        session: bench.session,
        place: bench.place.clone(),
        token: bench.token.clone(),
        run: bench.run.clone(),
    };
    let all: Vec<&Part> = parts.all.iter().collect();
    let round = bench.round(&parts, &all, panel)?;
    if bench.session.is_stopped() {
        return Ok(None);
    }
    if let Some(error) = round.outcomes.iter().find_map(|(_, outcome)| outcome.error.as_ref()) {
        bail!("the test broke off: {error}");
    }
    for (_, outcome) in &round.outcomes {
        let ends = [("here", Some(&outcome.ours)), ("at the server", outcome.theirs.as_deref())];
        for (place, results) in ends {
            if let Some(error) = results.and_then(|results| results.error.as_ref()) {
                bail!("a connection failed {place}: {}", units::printable(error));
            }
        }
    }
    let mut row = row(&round);
    row.stage = wanted.stage.clone();
    row.buffer_bytes = wanted.buffer;
    row.intended_per_second = match args.rate.as_deref() {
        Some(EndpointRate::Transactions(rate)) => Some(*rate as f64),
        _ => None,
    };
    let arrived = row.per_second > 0.0;
    row.verdict = if arrived { EndpointVerdict::Done } else { EndpointVerdict::NothingArrived };
    if let EndpointFind::Transactions(find) = &job.find {
        let mut latency = Histogram::new();
        round.outcomes.iter().for_each(|(_, outcome)| latency.merge(&outcome.latency));
        row.at_percentile_ns = (!latency.is_empty()).then(|| latency.quantile(find.percentile() / 100.0));
        if let Some(rate) = wanted.rate {
            let lasts = parts.lasts().as_secs_f64();
            row.verdict = verdict(&row, rate as f64, nanos(find.below()), lasts);
        }
    }
    Ok(Some((row, round)))
}

/// What both ends of all parts came to, as a row.
fn row(round: &Round) -> EndpointTrial {
    let mut row = EndpointTrial { per_second: round.result(), ..EndpointTrial::default() };
    let Some((part, outcome)) = round.outcomes.first() else { return row };
    // Of transactions this end's requests and the server's end are looked at.
    let theirs = outcome.theirs.as_deref();
    let (sender, receiver) = match part.is_transactions() || part.sends() {
        true => (Some(&outcome.ours), theirs),
        false => (theirs, Some(&outcome.ours)),
    };
    let socket =
        |end: Option<&Results>| end.and_then(|end| end.flows.first()).map(|flow| flow.socket.clone());
    row.send_buffer_bytes = socket(sender).and_then(|socket| socket.send_buffer).map(u64::from);
    row.receive_buffer_bytes = socket(receiver).and_then(|socket| socket.receive_buffer).map(u64::from);
    if let Some(tcp) = sender.and_then(|sender| sender.tcp) {
        row.rtt_ns = Some((tcp.rtt_us * 1e3) as u64);
        row.min_rtt_ns = tcp.min_rtt_us.map(|us| u64::from(us) * 1000);
        row.retransmits = sender.and_then(|sender| sender.retransmits).or(Some(tcp.retransmits));
    }
    if part.is_transactions() {
        row.lost = outcome.ours.lost;
        row.unsent = outcome.ours.unsent;
        let latency = &outcome.latency;
        row.latency_ns = (!latency.is_empty()).then(|| TrialLatency {
            count: latency.count(),
            min: latency.min(),
            mean: latency.mean(),
            p50: latency.p50(),
            p90: latency.p90(),
            p99: latency.p99(),
            p999: latency.p999(),
            max: latency.max(),
            ..TrialLatency::default()
        });
    } else if part.test.plan.datagrams
        && let Some((sender, receiver)) = sender.zip(receiver)
    {
        row.sent = sender.count;
        row.lost = sender.count.saturating_sub(receiver.count.saturating_sub(receiver.duplicates));
    }
    row
}

/// Whether a rate was carried within the bound; of what is not kept, the first.
fn verdict(row: &EndpointTrial, rate: f64, below_ns: u64, lasts_s: f64) -> EndpointVerdict {
    // A request more or less is at the edges of the measured time.
    let edges = 2.0 / lasts_s.max(1e-3);
    // Who was due within the bound before the end may still be asked in time.
    let last_ones = (rate * lasts_s * LEFT_OVER).max(rate * below_ns as f64 / 1e9).max(1.0);
    let left_over = row.unsent as f64 > last_ones;
    match row.at_percentile_ns {
        _ if row.lost > 0 => EndpointVerdict::Lost,
        _ if left_over || row.per_second + edges < rate * CARRIED => EndpointVerdict::NotCarried,
        Some(ns) if ns > below_ns => EndpointVerdict::Latency,
        Some(_) => EndpointVerdict::Passed,
        None => EndpointVerdict::NotCarried,
    }
}

/// A trial in words.
fn said(row: &EndpointTrial, left: usize, job: &EndpointSearch) -> String {
    let bits = !job.endpoint.test.transacts();
    let show = |rate: f64| match bits {
        true => units::bit_rate(rate),
        false => format!("{}/s", units::count(rate.round() as u64)),
    };
    let what = match (&row.stage, row.buffer_bytes, row.intended_per_second) {
        (EndpointStage::Sweep, Some(bytes), _) => format!("buffers of {}", units::buffer(bytes)),
        (EndpointStage::Sweep, None, _) => "as the kernel tunes".to_owned(),
        (_, _, None) => "a closed loop".to_owned(),
        (_, _, Some(rate)) => show(rate),
    };
    let mut text = format!("trial {}, {what}: {}", row.number, show(row.per_second));
    if let EndpointFind::Transactions(find) = &job.find {
        let of = find.percentile();
        let name = if of >= 100.0 { "longest".to_owned() } else { format!("p{of}") };
        text += &row.at_percentile_ns.map_or_else(String::new, |ns| format!(", {name} {}", units::time(ns)));
        if row.intended_per_second.is_some() {
            text += &format!(", {}", row.verdict);
        }
    } else if row.verdict != EndpointVerdict::Done {
        text += &format!(", {}", row.verdict);
    }
    if left > 0 {
        text += &format!("; about {left} to go");
    }
    text
}

fn buffers_judged(report: &mut Report, found: &report::SocketBufferFound, complete: bool, unsure: usize) {
    if unsure > 0 && complete {
        let said = match unsure {
            1 => "the mean of 1 size is not as sure as was asked for".to_owned(),
            n => format!("the means of {n} sizes are not as sure as was asked for"),
        };
        let mend = "permit more repetitions (`.iterations`)";
        report.result.verdict.fall_short(Code::ConfidenceNotReached, (said, mend));
    }
    if complete && found.found_bytes.is_none() {
        let said = format!(
            "no size that was tried reaches {} of the best, which the kernel's own tuning has",
            units::percent(found.enough_ratio)
        );
        report.result.verdict.fall_short(Code::GoalNotReached, (said, "try larger ones (`.buffers`)"));
    }
    // Where the intervals of the answer and of its neighbours overlap the bar, another run may say another size.
    let bar = found.best_per_second * found.enough_ratio;
    let straddles = |point: &&report::BufferPoint| {
        let half = point.width_ratio.unwrap_or(0.0) / 2.0;
        let (low, high) = (point.per_second * (1.0 - half), point.per_second * (1.0 + half));
        point.buffer_bytes.is_some_and(|bytes| Some(bytes) <= found.found_bytes) && low < bar && bar < high
    };
    let unsure: Vec<u64> =
        found.points.iter().filter(straddles).filter_map(|point| point.buffer_bytes).collect();
    if complete && !unsure.is_empty() {
        let sizes: Vec<String> = unsure.iter().map(|bytes| units::buffer(*bytes)).collect();
        let said = format!(
            "whether {} is enough is not sure: the interval of the mean reaches to both sides of {} of the best",
            sizes.join(" or "),
            units::percent(found.enough_ratio)
        );
        report.warnings.add(Code::ConfidenceNotReached, (said, "repeat more often (`.repetitions`)"));
    }
}

/// What the kernel does not grant, or grants to the privileged only.
fn limits_told(report: &mut Report, found: &report::SocketBufferFound, sender: &Host, receiver: &Host) {
    type Get = fn(&report::BufferPoint) -> (Option<u64>, bool);
    let sides: [(&str, &Option<String>, Get); 2] = [
        ("net.core.wmem_max of the sender", &sender.wmem_max, |point| {
            (point.send_buffer_bytes, point.send_capped)
        }),
        ("net.core.rmem_max of the receiver", &receiver.rmem_max, |point| {
            (point.receive_buffer_bytes, point.receive_capped)
        }),
    ];
    for (name, limit, get) in sides {
        let limit = limit.as_ref().and_then(|limit| limit.parse::<u64>().ok());
        let shown = limit.map_or_else(String::new, |limit| format!(" ({})", units::buffer(limit)));
        let sized = || found.points.iter().filter_map(|point| Some((point.buffer_bytes?, get(point))));
        if let Some((asked, (granted, _))) = sized().find(|(_, (_, capped))| *capped) {
            let said = format!(
                "asked for {} the kernel granted {}, not twice that: sizes above {name}{shown} are one and the same",
                units::buffer(asked),
                units::buffer(granted.unwrap_or(0)),
            );
            report.warnings.add(
                Code::WentWithout,
                (said, "raise that; the kernel's own tuning has limits of its own (tcp_rmem, tcp_wmem)"),
            );
        } else if let Some(limit) = limit
            && let Some((asked, _)) = sized().find(|(asked, _)| *asked > limit)
        {
            let said = format!(
                "{} and more, above {name}{shown}, were granted because netdyno runs with CAP_NET_ADMIN there: other programs get no \
                 more than that",
                units::buffer(asked)
            );
            report.warnings.add(Code::WentWithout, said);
        }
    }
}

fn rates_judged(
    report: &mut Report,
    found: &report::TransactionsFound,
    complete: bool,
    inconsistent: &[u64],
) {
    for rate in inconsistent {
        let said = format!(
            "{} a second passed once and failed when it was tried again: the server, the path or this machine does not do the same \
             each time",
            units::count(*rate)
        );
        report.warnings.add(Code::DeviceInconsistent, said);
    }
    if !complete {
        return;
    }
    if found.per_second.is_none() {
        let said = match found.failed_per_second {
            Some(rate) if inconsistent.is_empty() => {
                format!("no rate passed, not even {} transactions a second", units::count(rate as u64))
            }
            _ => "no rate passed as often as was asked for".to_owned(),
        };
        report.result.verdict.fall_short(Code::GoalNotReached, said);
    } else if found.failed_per_second.is_none() {
        let said = "the highest rate that was to be tried passed: what can be done is more, and not known";
        report.warnings.add(Code::SearchRange, (said, "raise `.max`"));
    }
}

/// A percentile of too few.
fn few_beyond(report: &mut Report, found: &report::TransactionsFound, trials: &[EndpointTrial]) {
    let Some(rate) = found.per_second else { return };
    let at = trials.iter().filter(|trial| trial.intended_per_second == Some(rate));
    let Some(count) = at.filter_map(|trial| Some(trial.latency_ns.as_ref()?.count)).min() else { return };
    let beyond = count as f64 * (1.0 - found.percentile / 100.0);
    if found.percentile < 100.0 && beyond < BEYOND {
        let said = format!(
            "a trial has {} at the rate that was found, of which fewer than {BEYOND} lie beyond the percentile: it says little",
            units::counted(count, "transaction")
        );
        report.warnings.add(Code::ConfidenceNotReached, (said, "make trials longer (`.trial_duration`)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_passes_if_it_is_carried_whole_and_in_time() {
        let row = |per_second: f64, unsent: u64, lost: u64, ns: Option<u64>| EndpointTrial {
            per_second,
            unsent,
            lost,
            at_percentile_ns: ns,
            ..EndpointTrial::default()
        };
        let of = |row: EndpointTrial| verdict(&row, 1000.0, 200_000, 2.0).to_string();
        assert_eq!(of(row(1000.0, 0, 0, Some(200_000))), "passed");
        // The last moment's.
        assert_eq!(of(row(999.0, 2, 0, Some(1))), "passed");
        assert_eq!(of(row(1000.0, 0, 0, Some(200_001))), "latency");
        assert_eq!(of(row(1000.0, 0, 1, Some(1))), "lost");
        assert_eq!(of(row(990.0, 0, 0, Some(1))), "not carried");
        assert_eq!(of(row(1000.0, 50, 0, Some(1))), "not carried");
        assert_eq!(of(row(0.0, 0, 0, None)), "not carried");
    }
}
