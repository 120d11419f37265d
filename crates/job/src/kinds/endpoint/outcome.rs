//! What the ends of all parts came to, as a result.

mod opening;

use super::parts::{Part, Parts};
use super::sound::{self, ns, per_second};
use ::endpoint::native::Work;
use ::transport::cpu::Use;
use ::transport::native::{Host, Outcome, Place, Results};
use histogram::Histogram;
use report::{
    Code, Datagrams, Distribution, Endpoint as Tested, EndpointEnd, EndpointInterval, EndpointMemory,
    EndpointStream, Repeated, Report, Transactions, UnderLoad, units,
};
use spec::{Endpoint, EndpointRate, EndpointTest, ReceiveMethod, SendMethod};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// All parts, once.
pub struct Round {
    pub outcomes: Vec<(Part, Outcome)>,
    pub intervals: Vec<EndpointInterval>,
    /// For so long it was measured. None: until an amount was done.
    pub asked: Option<Duration>,
}

/// Seconds that an end's counts are of: those that were asked for, and more if bytes came later still. From the first to the last of what came
/// it is less, by as much as nothing came in: then a rate of few would be one of more.
fn seconds(part: &Part, results: &Results, asked: Option<Duration>) -> f64 {
    // Connections that are to be held and no more are opened as fast as it goes: their rate is of that time.
    let opens_some = part.test.plan.hold > 0 && part.test.exchange.rate.is_none();
    if let (None, Some(seconds)) = (asked, results.amount_seconds) {
        return seconds;
    }
    let asked = asked.filter(|_| !opens_some).map_or(0.0, |asked| asked.as_secs_f64());
    results.seconds.max(asked)
}

impl Round {
    /// The ends lost each other.
    pub fn is_broken(&self) -> bool {
        self.outcomes.iter().any(|(_, outcome)| outcome.error.is_some())
    }

    /// Its result: bits that were received, or transactions, a second. None: of a part it is not known.
    pub fn result(&self) -> Option<f64> {
        let one = |(part, outcome): &(Part, Outcome)| {
            if part.is_transactions() {
                return Some(per_second(outcome.ours.count, seconds(part, &outcome.ours, self.asked)));
            }
            let receiver = receiver(part, outcome).filter(|_| has_rate(part, outcome, self.asked))?;
            Some(8.0 * per_second(receiver.bytes, seconds(part, receiver, self.asked)))
        };
        self.outcomes.iter().map(one).sum()
    }
}

/// Bytes of one moment have no rate.
fn has_rate(part: &Part, outcome: &Outcome, asked: Option<Duration>) -> bool {
    receiver(part, outcome).is_none_or(|got| got.bytes == 0 || seconds(part, got, asked) > 0.0)
}

fn sender<'o>(part: &Part, outcome: &'o Outcome) -> Option<&'o Results> {
    if part.sends() { Some(&outcome.ours) } else { outcome.theirs.as_deref() }
}

fn receiver<'o>(part: &Part, outcome: &'o Outcome) -> Option<&'o Results> {
    if part.sends() { outcome.theirs.as_deref() } else { Some(&outcome.ours) }
}

/// A repetition in words: its result, and those of all that have one.
pub fn iteration(
    number: u32,
    test: EndpointTest,
    result: Option<f64>,
    results: &[f64],
    width: Option<f64>,
) -> String {
    let show = |value: f64| match test.transacts() {
        true => format!("{} a second", units::count(value.round() as u64)),
        false => units::bit_rate(value),
    };
    let mean = results.iter().sum::<f64>() / results.len().max(1) as f64;
    let width = width.map_or_else(String::new, |width| {
        format!(", mean {} +/- {}", show(mean), units::percent(width / 2.0))
    });
    let result = result.map_or_else(|| "no rate, all came at one moment".to_owned(), show);
    format!("repetition {number}: {result}{width}")
}

/// Settings of a host, by name.
pub fn settings(host: &Host) -> BTreeMap<String, String> {
    let all = [
        ("net.ipv4.tcp_congestion_control", &host.congestion),
        ("net.ipv4.tcp_rmem", &host.tcp_rmem),
        ("net.ipv4.tcp_wmem", &host.tcp_wmem),
        ("net.core.rmem_max", &host.rmem_max),
        ("net.core.wmem_max", &host.wmem_max),
        ("net.core.somaxconn", &host.somaxconn),
        ("net.core.default_qdisc", &host.default_qdisc),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
}

/// What came of a part, and for how long it was measured.
type PartOutcome<'r> = (&'r Part, &'r Outcome, Option<Duration>);

/// Of the same part in all repetitions: counts and times summed.
fn all_of(rounds: &[Round], at: usize) -> impl Iterator<Item = PartOutcome<'_>> {
    rounds.iter().filter_map(move |round| {
        let (part, outcome) = round.outcomes.get(at)?;
        Some((part, outcome, round.asked))
    })
}

pub fn fill(
    report: &mut Report,
    args: &Endpoint,
    parts: &Parts,
    rounds: &[Round],
    idle: Option<&Round>,
    host: &Host,
) {
    let warm_up = parts.lasts().saturating_sub(parts.measured());
    let apart = rounds.iter().flat_map(|round| &round.outcomes).map(|(_, outcome)| outcome.apart).max();
    let mut tested = Tested {
        test: args.test.to_string(),
        warm_up_ns: warm_up.as_nanos() as u64,
        windows_apart_ns: apart.filter(|_| !warm_up.is_zero()).map(|apart| apart.as_nanos() as u64),
        connections: parts
            .all
            .iter()
            .map(|part| u64::from(part.test.plan.flows).max(part.test.plan.hold))
            .max()
            .unwrap_or(0),
        ..Tested::default()
    };
    for (at, part) in parts.all.iter().enumerate() {
        let of: Vec<PartOutcome<'_>> = all_of(rounds, at).collect();
        if of.is_empty() {
            continue;
        }
        if part.is_transactions() {
            tested.transactions = Some(transactions(args, part, &of));
            tested.opening = opening::of(part, &of);
        } else {
            tested.streams.push(stream(part, &of));
        }
    }
    if let Some(idle) = idle {
        tested.under_load = under_load(idle, rounds);
        if tested.transactions.is_none() {
            let of: Vec<PartOutcome<'_>> =
                idle.outcomes.iter().map(|(part, outcome)| (part, outcome, idle.asked)).collect();
            tested.transactions = of.first().map(|(part, ..)| transactions(args, part, &of));
        }
    }
    if let Some(confidence) = args.confidence.as_deref() {
        let results: Vec<f64> = rounds.iter().filter_map(Round::result).collect();
        let width = report::compare::interval_width(&results, confidence.level);
        tested.confidence = Some(Repeated {
            level: confidence.level,
            wanted_width_ratio: confidence.width,
            width_ratio: width,
            reached: results.len() >= 3 && width.is_some_and(|width| width <= confidence.width),
            results,
        });
    }
    // Ends are told of the last repetition: buffers and windows are states, not sums.
    if let Some(last) = rounds.last().or(idle) {
        tested.local = end(last, |outcome| Some(&outcome.ours));
        tested.local.program = Some(Host::here().program);
        tested.local.kernel = report.environment.kernel.clone();
        let theirs = last.outcomes.iter().any(|(_, outcome)| outcome.theirs.is_some());
        tested.remote = theirs.then(|| EndpointEnd {
            program: Some(host.program.clone()),
            kernel: Some(host.kernel.clone()),
            settings: settings(host),
            ..end(last, |outcome| outcome.theirs.as_deref())
        });
        tested.intervals = last.intervals.clone();
    }
    report.result.endpoint = Some(tested);
}

fn stream(part: &Part, of: &[PartOutcome<'_>]) -> EndpointStream {
    // What has no time would be bytes within that of other repetitions: unless there is no other, it is left out of counts and times.
    let timed: Vec<PartOutcome<'_>> =
        of.iter().copied().filter(|(part, outcome, asked)| has_rate(part, outcome, *asked)).collect();
    let of = if timed.is_empty() { of } else { &timed };
    let sum = |end: for<'o> fn(&Part, &'o Outcome) -> Option<&'o Results>| -> Option<Sum> {
        of.iter().try_fold(Sum::default(), |sum, (part, outcome, asked)| {
            let results = end(part, outcome)?;
            Some(sum.plus(results, seconds(part, results, *asked)))
        })
    };
    let received = sum(receiver);
    // Who sent is asked for what it sent; if it is gone, what was received was sent at least.
    let told = sum(sender);
    let sent = told.or(received).unwrap_or_default();
    // What was lost is known of both ends together: of one alone it would be nothing, or all.
    let both = told.zip(received).filter(|_| part.test.plan.datagrams);
    EndpointStream {
        from_client: part.sends(),
        sent_bytes: sent.bytes,
        sent_ns: ns(sent.seconds),
        sent_bits_per_second: 8.0 * per_second(sent.bytes, sent.seconds),
        sent_at_least: told.is_none(),
        received_bytes: received.map(|received| received.bytes),
        received_ns: received.map(|received| ns(received.seconds)),
        // Bytes of one moment have no rate.
        received_bits_per_second: received
            .filter(|received| received.seconds > 0.0 || received.bytes == 0)
            .map(|received| 8.0 * per_second(received.bytes, received.seconds)),
        datagrams: both.map(|(sent, got)| fate(part.test.plan.size, &sent, &got)),
    }
}

/// What became of datagrams, by what both ends counted.
fn fate(size: u64, sent: &Sum, got: &Sum) -> Datagrams {
    let lost = sent.count.saturating_sub(got.count.saturating_sub(got.duplicates));
    Datagrams {
        size_bytes: size,
        sent: sent.count,
        received: got.count,
        received_per_second: (got.count == 0 || got.seconds > 0.0)
            .then(|| per_second(got.count, got.seconds)),
        lost,
        loss_ratio: if sent.count > 0 { lost as f64 / sent.count as f64 } else { 0.0 },
        dropped_by_receiver: Some(got.dropped),
        refused_by_sender: Some(sent.dropped),
        reordered: Some(got.reordered),
        duplicated: Some(got.duplicates),
        jitter_ns: Some(got.jitter_ns),
    }
}

/// Results of several repetitions.
#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    count: u64,
    seconds: f64,
    lost: u64,
    reordered: u64,
    duplicates: u64,
    dropped: u64,
    unsent: u64,
    jitter_ns: u64,
}

impl Sum {
    fn plus(self, one: &Results, seconds: f64) -> Sum {
        Sum {
            bytes: self.bytes.saturating_add(one.bytes),
            count: self.count.saturating_add(one.count),
            seconds: self.seconds + seconds,
            lost: self.lost.saturating_add(one.lost),
            reordered: self.reordered.saturating_add(one.reordered),
            duplicates: self.duplicates.saturating_add(one.duplicates),
            dropped: self.dropped.saturating_add(one.dropped),
            unsent: self.unsent.saturating_add(one.unsent),
            jitter_ns: self.jitter_ns.max(one.jitter_ns),
        }
    }
}

fn transactions(args: &Endpoint, part: &Part, of: &[PartOutcome<'_>]) -> Transactions {
    let sum = of.iter().fold(Sum::default(), |sum, (part, outcome, asked)| {
        sum.plus(&outcome.ours, seconds(part, &outcome.ours, *asked))
    });
    let mut latency = Histogram::new();
    of.iter().for_each(|(_, outcome, _)| latency.merge(&outcome.latency));
    let plan = &part.test.plan;
    let intended = match (args.rate.as_deref(), &part.test.exchange.rate) {
        (Some(EndpointRate::Transactions(rate) | EndpointRate::Connections(rate)), _) => Some(*rate as f64),
        (_, Some(rate)) => Some(rate.count as f64 * 1e9 / rate.per_ns as f64),
        _ => None,
    };
    Transactions {
        count: sum.count,
        per_second: per_second(sum.count, sum.seconds),
        measured_ns: Some(ns(sum.seconds)),
        request_bytes: plan.request,
        response_bytes: plan.response,
        in_flight: u64::from(part.test.exchange.in_flight),
        intended_per_second: intended,
        unsent: sum.unsent,
        lost: sum.lost,
        latency_ns: Distribution::whole(&latency),
    }
}

/// By the rise of the median: what a conversation feels. The bounds are those in common use among bufferbloat tests.
const GRADES: [(&str, u64); 5] =
    [("A+", 5_000_000), ("A", 30_000_000), ("B", 60_000_000), ("C", 200_000_000), ("D", 400_000_000)];
const RULE: &str = "by the rise of the median latency beside streams in both directions: A+ below 5 ms, A below 30 ms, B below 60 ms, \
                    C below 200 ms, D below 400 ms, else F";

/// `None` where latency fell by more than a histogram's own error: then something other than the streams made the difference (a host
/// that sleeps while it is idle, streams that did not fill the path), and how much they add is not known.
fn grade(idle_ns: u64, loaded_ns: u64) -> Option<&'static str> {
    let increase_ns = loaded_ns.saturating_sub(idle_ns);
    if loaded_ns < idle_ns - idle_ns / 32 {
        return None;
    }
    Some(GRADES.iter().find(|(_, below)| increase_ns < *below).map_or("F", |(grade, _)| grade))
}

fn under_load(idle: &Round, loaded: &[Round]) -> Option<UnderLoad> {
    let latency = |rounds: &mut dyn Iterator<Item = &Round>| {
        let mut all = Histogram::new();
        for (_, outcome) in
            rounds.flat_map(|round| &round.outcomes).filter(|(part, _)| part.is_transactions())
        {
            all.merge(&outcome.latency);
        }
        Distribution::whole(&all)
    };
    let idle_ns = latency(&mut std::iter::once(idle))?;
    let loaded_ns = latency(&mut loaded.iter())?;
    let increase_ns = loaded_ns.p50.saturating_sub(idle_ns.p50);
    let mean = loaded_ns.mean;
    Some(UnderLoad {
        increase_ns,
        round_trips_per_minute: if mean > 0.0 { 60e9 / mean } else { 0.0 },
        grade: grade(idle_ns.p50, loaded_ns.p50).map(str::to_owned),
        rule: RULE.to_owned(),
        idle_ns,
        loaded_ns,
    })
}

fn end(round: &Round, which: impl Fn(&Outcome) -> Option<&Results>) -> EndpointEnd {
    let all: Vec<(&Part, &Results)> =
        round.outcomes.iter().filter_map(|(part, outcome)| Some((part, which(outcome)?))).collect();
    let mut end = EndpointEnd::default();
    // All parts were measured at the same time: the first one's reading is of the whole host.
    if let Some(cpu) = all.iter().find_map(|(_, results)| results.cpu.as_ref()) {
        spent(&mut end, cpu, &all);
    }
    if let Some(flow) = all.iter().flat_map(|(_, results)| &results.flows).next() {
        end.send_buffer_bytes = flow.socket.send_buffer.map(u64::from);
        end.receive_buffer_bytes = flow.socket.receive_buffer.map(u64::from);
        end.congestion.clone_from(&flow.socket.congestion);
        end.mss_bytes = flow.socket.mss.map(u64::from);
        end.mptcp = flow.socket.mptcp;
    }
    let tcp: Vec<_> = all.iter().filter_map(|(_, results)| results.tcp).collect();
    if !tcp.is_empty() {
        let connections: u32 = tcp.iter().map(|tcp| tcp.connections).sum();
        let rtt: f64 = tcp.iter().map(|tcp| tcp.rtt_us * f64::from(tcp.connections)).sum();
        end.rtt_ns = Some((rtt * 1e3 / f64::from(connections.max(1))) as u64);
        end.min_rtt_ns = tcp.iter().filter_map(|tcp| tcp.min_rtt_us).min().map(|us| u64::from(us) * 1000);
        end.cwnd_bytes = Some(tcp.iter().map(|tcp| tcp.cwnd_bytes).sum());
        // An earlier version of the server counts from the connection's beginning.
        let of = |results: &Results| Some(results.retransmits.unwrap_or(results.tcp?.retransmits));
        end.retransmits = Some(all.iter().filter_map(|(_, results)| of(results)).sum());
    }
    for zerocopy in all.iter().filter_map(|(_, results)| results.zerocopy) {
        end.zerocopy_calls = Some(end.zerocopy_calls.unwrap_or(0) + zerocopy.completed);
        end.zerocopy_copied = Some(end.zerocopy_copied.unwrap_or(0) + zerocopy.copied);
    }
    end.memory = all.iter().find_map(|(_, results)| results.memory).map(|added| EndpointMemory {
        connections: added.connections,
        process_bytes: added.process,
        kernel_slab_bytes: added.slab,
        kernel_buffer_bytes: added.buffers,
    });
    end.shared = all.iter().any(|(_, results)| results.shared);
    end.counters = all.iter().find_map(|(_, results)| results.counters.clone());
    end
}

fn spent(end: &mut EndpointEnd, cpu: &Use, all: &[(&Part, &Results)]) {
    end.process_cores = Some(cpu.process_user_cores + cpu.process_system_cores);
    let Some(machine) = &cpu.machine else { return };
    end.cores = Some(u64::from(machine.cores));
    end.busy_cores = Some(machine.busy_cores);
    end.softirq_cores = Some(machine.softirq_cores);
    end.peak_core_ratio = Some(machine.peak);
    let spent_ns = machine.busy_cores * cpu.seconds * 1e9;
    let streams: u64 =
        all.iter().filter(|(part, _)| !part.is_transactions()).map(|(_, results)| results.bytes).sum();
    let transactions: u64 =
        all.iter().filter(|(part, _)| part.is_transactions()).map(|(_, results)| results.count).sum();
    // Of both at once nobody can say which took what.
    if streams > 0 {
        end.service_demand_ns_per_kib = Some(spent_ns / (streams as f64 / 1024.0));
    } else if transactions > 0 {
        end.service_demand_ns_per_transaction = Some(spent_ns / transactions as f64);
    }
}

/// A load that is smaller by no more than this is what was asked for: 2 ms of 2 s.
const UNSEEN_RATIO: f64 = 0.001;

/// Whether the load is the one that was asked for although the sender left out `moved` ns of it, and what to say of that. `lasts`: how long
/// it was to be offered, which of a test by amount nobody said.
fn unoffered(moved: u64, late: u64, lasts: Option<Duration>) -> (bool, String) {
    // What left is counted, and is what was sent. A shortfall is what somebody who asked for a rate would see in it.
    let whole = lasts.is_some_and(|lasts| moved as f64 <= lasts.as_nanos() as f64 * UNSEEN_RATIO);
    // Earlier versions of the server do not say how far it was behind.
    let behind = |late: u64| format!("was up to {} behind its schedule, and ", units::time(late));
    let late = if late > 0 { behind(late) } else { String::new() };
    let moved = units::time(moved);
    let said = match whole {
        true => format!(
            "the load was offered but for {moved} of it in all, no more than a thousandth: the sender {late}left that out rather than catch up"
        ),
        false => format!(
            "the load was not offered: the sender {late}left out {moved} of it in all rather than catch up"
        ),
    };
    (whole, said)
}

/// What is to be known of the figures, and whether it was done as asked.
pub fn judge(
    report: &mut Report,
    args: &Endpoint,
    parts: &Parts,
    rounds: &[Round],
    idle: Option<&Round>,
    place: &Place,
    ends: Option<[SocketAddr; 2]>,
) {
    let all = || rounds.iter().chain(idle).flat_map(|round| &round.outcomes);
    faults(report, all());
    untouched(report, args, parts, all());
    let here = matches!(place, Place::Unix(_)) || ends.is_some_and(|[own, peer]| own.ip() == peer.ip());
    if here {
        sound::on_one_host(report);
    }
    if all().any(|(_, outcome)| outcome.theirs.as_deref().is_some_and(|theirs| theirs.shared)) {
        let said = "other clients' tests ran at the server meanwhile: they had their share of its processors and of the path";
        report.warnings.add(Code::ServerShared, (said, "test again when nobody else does"));
    }
    if args.mptcp
        && all().flat_map(|(_, outcome)| &outcome.ours.flows).any(|flow| flow.socket.mptcp == Some(false))
    {
        let said = "the server or the path has no Multipath TCP: the connections went on as TCP";
        report.warnings.add(Code::WentWithout, (said, "start the server with `.mptcp`"));
    }
    let most = |of: fn(&Results) -> u64| {
        all().filter_map(|(part, outcome)| sender(part, outcome)).map(of).max().unwrap_or(0)
    };
    let [moved, late] = [most(|results| results.moved_ns), most(|results| results.late_ns)];
    // At the server's bound nobody asked for that rate.
    if moved > 0 && args.rate.is_some() && all().all(|(part, _)| !part.is_transactions()) {
        let (whole, said) = unoffered(moved, late, (!parts.by_amount()).then(|| parts.measured()));
        if whole {
            report.warnings.add(Code::RateNotReached, said);
        } else {
            report.result.verdict.fall_short(Code::RateNotReached, said);
        }
    }
    let Some(tested) = report.result.endpoint.clone() else { return };
    if let Some(opening) = &tested.opening {
        opening::judge(report, opening, tested.transactions.as_ref().map_or(0, |t| t.unsent));
    } else if let Some(t) = tested.transactions.as_ref().filter(|t| t.unsent > 0) {
        let said = format!(
            "the load was not offered: {} were due and not asked within the test",
            units::counted(t.unsent, "request")
        );
        report.result.verdict.fall_short(
            Code::RateNotReached,
            (said, "permit more of them in flight by `.burst`, or offer less"),
        );
    }
    if let Some(c) = tested.confidence.as_ref().filter(|c| !c.reached) {
        let known =
            c.width_ratio.map(|width| format!("known within +/- {} only", units::percent(width / 2.0)));
        let said = format!(
            "the mean of {} is {}, and +/- {} was asked for",
            units::counted(c.results.len() as u64, "repetition"),
            known.as_deref().unwrap_or("not known within any bounds"),
            units::percent(c.wanted_width_ratio / 2.0)
        );
        report.result.verdict.fall_short(Code::ConfidenceNotReached, said);
    }
    for d in tested.streams.iter().filter_map(|stream| stream.datagrams) {
        sound::datagrams(report, d, args.gro, TOO_SLOW);
    }
    let failed = |results: &Results| results.failed_flows > 0;
    let is_sound = all().all(|(_, outcome)| {
        outcome.error.is_none() && !failed(&outcome.ours) && !outcome.theirs.as_deref().is_some_and(failed)
    });
    add_up(report, &tested, is_sound, all());
    sound::is_of_something(report, &tested);
}

/// What helps a receiver of datagrams.
const TOO_SLOW: &str =
    "give it a larger receive buffer, let it take several at once (`.gro`), or offer less (`.rate`)";

fn faults<'r>(report: &mut Report, all: impl Iterator<Item = &'r (Part, Outcome)>) {
    for (_, outcome) in all {
        if let Some(error) = &outcome.error {
            report.result.verdict.fall_short(Code::EndpointFailed, format!("the test broke off: {error}"));
        }
        let ends = [("here", Some(&outcome.ours)), ("at the server", outcome.theirs.as_deref())];
        for (place, results) in ends {
            let Some(results) = results else { continue };
            if let Some(error) = results.error.as_ref().filter(|_| results.failed_flows > 0) {
                let flows = units::counted(results.failed_flows, "connection");
                let said = format!("{flows} failed {place}: {}", units::printable(error));
                report.result.verdict.fall_short(Code::EndpointFailed, said);
            }
        }
    }
}

/// What must add up between the ends: nothing is received that was not sent, and nothing answered that was not asked. `is_sound`: no
/// connection failed, which explains what is missing.
fn add_up<'r>(
    report: &mut Report,
    tested: &Tested,
    is_sound: bool,
    all: impl Iterator<Item = &'r (Part, Outcome)>,
) {
    sound::streams_add_up(report, tested, is_sound);
    for (part, outcome) in all {
        let said = numbers_disagree(part, outcome).filter(|_| tested.warm_up_ns == 0);
        if let Some(said) = said {
            report.result.verdict.fall_short(Code::CountersDisagree, said);
        }
        if !matches!(part.test.plan.work, Work::Exchange | Work::Each) {
            continue;
        }
        let answered = outcome.theirs.as_ref().map(|theirs| theirs.count).filter(|_| tested.warm_up_ns == 0);
        if let Some(answered) = answered.filter(|answered| outcome.ours.count > *answered) {
            let said = format!(
                "this host counts {}, and the server answered {}: how many there were is not known",
                units::counted(outcome.ours.count, "transaction"),
                units::count(answered)
            );
            report.result.verdict.fall_short(Code::CountersDisagree, said);
        }
    }
}

/// Datagrams of each flow that leave when its time is over: they are not among those sent, though they have numbers.
const BEHIND_THE_END: u64 = 256;

/// What was lost is what was sent and did not arrive; by the numbers up to the last that came the receiver misses no more than that.
fn numbers_disagree(part: &Part, outcome: &Outcome) -> Option<String> {
    let (sent, got) = sender(part, outcome).zip(receiver(part, outcome))?;
    let lost = sent.count.saturating_sub(got.count.saturating_sub(got.duplicates));
    let others = sent.dropped.saturating_add(u64::from(part.test.plan.flows).saturating_mul(BEHIND_THE_END));
    (part.test.plan.datagrams && got.lost > lost.saturating_add(others)).then(|| {
        format!(
            "the receiver misses {} by their numbers, and {} of those sent did not arrive: what was lost is not known",
            units::counted(got.lost, "datagram"),
            units::count(lost)
        )
    })
}

impl Round {
    /// Nothing arrives that was not sent, and nothing is answered that was not asked. Where an end counts more, a trial says nothing, and least
    /// of all that nothing was lost.
    pub fn disagrees(&self) -> Option<String> {
        let streams = self.outcomes.iter().filter(|(part, _)| !part.is_transactions());
        let tested = Tested {
            warm_up_ns: self.outcomes.iter().map(|(part, _)| part.test.plan.warm_up_ns).max().unwrap_or(0),
            streams: streams.map(|(part, outcome)| stream(part, &[(part, outcome, self.asked)])).collect(),
            ..Tested::default()
        };
        let mut report = Report::new("endpoint");
        add_up(&mut report, &tested, false, self.outcomes.iter());
        report.result.verdict.reasons().first().map(|reason| format!("the ends disagree: {reason}"))
    }
}

/// Where a technique makes a figure that no program with the data could have.
pub fn untouched<'r>(
    report: &mut Report,
    args: &Endpoint,
    parts: &Parts,
    all: impl Iterator<Item = &'r (Part, Outcome)>,
) {
    if parts.all.iter().all(Part::is_transactions) {
        return;
    }
    let how = match args.receive_method {
        ReceiveMethod::Read => None,
        ReceiveMethod::Trunc => Some("MSG_TRUNC, by which the kernel drops it"),
        ReceiveMethod::Splice => Some("splice(2) to /dev/null"),
    };
    if let Some(how) = how {
        sound::never_touched(report, how);
    }
    if matches!(args.method, SendMethod::Sendfile | SendMethod::Splice) {
        sound::never_made(report);
    }
    let copied = all
        .filter_map(|(part, outcome)| sender(part, outcome)?.zerocopy)
        .fold((0, 0), |(copied, calls), zerocopy| (copied + zerocopy.copied, calls + zerocopy.completed));
    if copied.0 > 0 {
        let said = format!(
            "of {} sends with MSG_ZEROCOPY the kernel copied {} after all, as it has to on loopback and veth",
            units::count(copied.1),
            units::count(copied.0)
        );
        report.warnings.add(Code::CopiedAfterAll, said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::endpoint::native::{End, From as Sender, Plan};
    use ::transport::exchange::Exchange;
    use ::transport::native::Test;
    use ::transport::socket::Options;

    #[test]
    fn grades_are_as_the_rule_says() {
        let of = |ms: u64| grade(2_000_000, 2_000_000 + ms * 1_000_000).expect("latency rose");
        assert_eq!(
            [0, 4, 5, 29, 30, 59, 60, 199, 200, 399, 400, 9999].map(of),
            ["A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F", "F"]
        );
        for (grade, below) in GRADES {
            assert!(RULE.contains(&format!("{grade} below {} ms", below / 1_000_000)), "{grade}");
        }
    }

    #[test]
    fn a_thousandth_of_a_load_that_was_left_out_is_told_and_is_no_shortfall() {
        let lasts = Some(Duration::from_secs(2));
        let (whole, said) = unoffered(2_000_000, 12_000_000, lasts);
        assert!(whole && said.starts_with("the load was offered but for 2.00 ms of it in all"), "{said}");
        assert!(
            said.contains("the sender was up to 12.0 ms behind its schedule, and left that out"),
            "{said}"
        );
        let (whole, said) = unoffered(2_000_001, 0, lasts);
        assert!(!whole && said.starts_with("the load was not offered: the sender left out"), "{said}");
        let (whole, said) = unoffered(1, 0, None);
        assert!(!whole && said.starts_with("the load was not offered"), "{said}");
    }

    #[test]
    fn less_latency_under_load_than_without_is_no_grade() {
        assert_eq!(grade(12_000_000, 6_000_000), None);
        assert_eq!(grade(80_000, 75_000), None);
        assert_eq!(grade(80_000, 79_000), Some("A+"), "the histogram cannot tell them apart");
        assert_eq!((grade(0, 0), grade(80_000, 80_000)), (Some("A+"), Some("A+")));
    }

    fn part(work: Work, datagrams: bool) -> Part {
        let plan = Plan {
            work,
            datagrams,
            flows: 1,
            duration_ns: 1_000_000_000,
            warm_up_ns: 0,
            size: 1000,
            request: 1,
            response: 1,
            hold: 0,
            interval_ns: 0,
            end: End::default(),
        };
        let test = Test {
            plan,
            end: End::default(),
            exchange: Exchange::new(1, 1),
            bytes: None,
            count: None,
            threads: None,
            handshake: Duration::from_secs(1),
            own: Options::default(),
        };
        Part { test, alone: true }
    }

    fn outcome(ours: Results, theirs: Option<Results>) -> Outcome {
        let (latency, apart) = (Histogram::new(), Duration::ZERO);
        Outcome { ours, theirs: theirs.map(Box::new), latency, apart, error: None, client: None }
    }

    fn results(bytes: u64, count: u64) -> Results {
        Results { bytes, count, seconds: 1.0, ..Results::default() }
    }

    const FROM_US: Work = Work::Stream { from: Sender::Client };
    const FROM_SERVER: Work = Work::Stream { from: Sender::Server };

    fn told(work: Work, datagrams: bool, ours: Results, theirs: Option<Results>) -> EndpointStream {
        let (part, outcome) = (part(work, datagrams), outcome(ours, theirs));
        stream(&part, &[(&part, &outcome, Some(Duration::from_secs(1)))])
    }

    #[test]
    fn what_became_of_datagrams_is_known_of_both_ends_or_not_at_all() {
        // The receiver is gone: not all was lost.
        let gone = told(FROM_US, true, results(1_000_000, 1000), None);
        assert_eq!((gone.sent_bytes, gone.received_bytes, gone.datagrams), (1_000_000, None, None));
        assert!(!gone.sent_at_least);
        // The sender is gone: not nothing was lost, and what it sent is not known.
        let gone = told(FROM_SERVER, true, Results { lost: 400, ..results(600_000, 600) }, None);
        assert_eq!((gone.sent_bytes, gone.received_bytes, gone.datagrams), (600_000, Some(600_000), None));
        assert!(gone.sent_at_least);
        let both = told(FROM_US, true, results(1_000_000, 1000), Some(results(600_000, 600)));
        let datagrams = both.datagrams.expect("both ends were asked");
        assert_eq!((datagrams.sent, datagrams.received, datagrams.lost), (1000, 600, 400));
    }

    #[test]
    fn bytes_that_came_at_one_moment_have_no_rate() {
        let (part, ours) = (part(FROM_US, false), results(1000, 1));
        let theirs = Results { seconds: 0.0, ..results(1000, 1) };
        let outcome = outcome(ours, Some(theirs));
        let told = stream(&part, &[(&part, &outcome, None)]);
        assert_eq!((told.received_bytes, told.received_bits_per_second), (Some(1000), None));
        // Nor have datagrams, and a repetition without a rate is in none of the others' figures.
        let at_once = Results { seconds: 0.0, ..results(1000, 1) };
        let round = |theirs: Results| {
            let outcome = self::outcome(results(1000, 1), Some(theirs));
            Round { outcomes: vec![(self::part(FROM_US, true), outcome)], intervals: Vec::new(), asked: None }
        };
        let rounds = [round(results(1000, 1)), round(at_once), round(results(1000, 1))];
        assert_eq!(rounds.each_ref().map(Round::result), [Some(8000.0), None, Some(8000.0)]);
        let of =
            |rounds: &[Round]| stream(&self::part(FROM_US, true), &all_of(rounds, 0).collect::<Vec<_>>());
        let all = of(&rounds);
        assert_eq!((all.received_bytes, all.received_bits_per_second), (Some(2000), Some(8000.0)));
        let alone = of(rounds.get(1..2).expect("one"));
        assert_eq!((alone.received_bytes, alone.received_bits_per_second), (Some(1000), None));
        assert_eq!(alone.datagrams.expect("of both").received_per_second, None);
    }

    #[test]
    fn ends_that_contradict_each_other_are_told() {
        let codes = |work: Work, datagrams: bool, ours: Results, theirs: Results| {
            let (part, outcome) = (part(work, datagrams), outcome(ours, Some(theirs)));
            let of = (&part, &outcome, Some(Duration::from_secs(1)));
            let mut tested = Tested::default();
            if matches!(work, Work::Stream { .. }) {
                tested.streams.push(stream(&part, &[of]));
            }
            let mut report = Report::new("endpoint");
            let all = vec![(part.clone(), outcome)];
            add_up(&mut report, &tested, true, all.iter());
            let round = Round { outcomes: all, intervals: Vec::new(), asked: Some(Duration::from_secs(1)) };
            assert_eq!(round.disagrees().is_some(), !matches!(report.result.verdict, report::Verdict::Done));
            (!matches!(report.result.verdict, report::Verdict::Done), report.warnings.len())
        };
        let fine = (false, 0);
        assert_eq!(codes(FROM_US, false, results(5000, 5), results(5000, 9)), fine);
        assert_eq!(codes(FROM_US, false, results(5000, 5), results(5001, 9)), (true, 0));
        assert_eq!(codes(FROM_US, false, results(5000, 5), results(4000, 9)), (false, 1));
        assert_eq!(codes(FROM_SERVER, false, results(5001, 5), results(5000, 9)), (true, 0));
        assert_eq!(codes(FROM_US, true, results(5000, 5), results(4000, 4)), fine);
        assert_eq!(codes(FROM_US, true, results(5000, 5), results(6000, 6)), (true, 0));
        let twice = Results { duplicates: 2, ..results(6000, 6) };
        assert_eq!(codes(FROM_US, true, results(5000, 5), twice), fine);
        // No room was in the socket for more than were lost; by their numbers more are missing.
        let dropped = |dropped| Results { dropped, ..results(4000, 4) };
        assert_eq!(codes(FROM_US, true, results(5000, 5), dropped(1)), fine);
        assert_eq!(codes(FROM_US, true, results(5000, 5), dropped(2)), (true, 0));
        let missed = |lost| Results { lost, ..results(4000, 4) };
        assert_eq!(codes(FROM_US, true, results(5000, 5), missed(1)), fine);
        assert_eq!(codes(FROM_US, true, results(5000, 5), missed(2 + BEHIND_THE_END)), (true, 0));
        assert_eq!(codes(Work::Exchange, false, results(20, 10), results(22, 11)), fine);
        assert_eq!(codes(Work::Exchange, false, results(22, 11), results(20, 10)), (true, 0));
    }
}
