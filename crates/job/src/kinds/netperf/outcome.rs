//! What a test of netperf's protocol came to, as a result.

use crate::kinds::endpoint::sound::{self, ns, per_second, told};
use ::endpoint::netperf::confidence::{Goal, Series};
use ::endpoint::netperf::omni::{Cpu, flag};
use ::transport::native::Host;
use ::transport::netperf::client::{Kind, Outcome, Test};
use histogram::Histogram;
use report::{
    Code, Datagrams, Distribution, Endpoint as Tested, EndpointEnd, EndpointInterval, EndpointStream,
    Repeated, Report, Transactions, units,
};
use spec::Netperf;
use std::net::SocketAddr;

fn transacts(test: &Test) -> bool {
    !matches!(test.kind, Kind::Send | Kind::Receive)
}

/// The server's use of processors, if it was measured.
fn remote_cpu(run: &Outcome) -> Option<Cpu> {
    (run.response.flags & flag::MEASURE_CPU != 0).then_some(run.results.cpu)
}

/// Of one repetition: its result (bits or transactions a second), and both ends' use of processors, -1 where it was not measured.
pub fn of(test: &Test, run: &Outcome) -> [f64; 3] {
    let result = match test.kind {
        Kind::Send => 8.0 * per_second(run.results.bytes_received, run.elapsed),
        Kind::Receive => 8.0 * per_second(run.received.0, run.elapsed),
        _ => per_second(run.transactions, run.elapsed),
    };
    let util = |cpu: Option<Cpu>| cpu.map_or(-1.0, |cpu| f64::from(cpu.util));
    [result, util(run.cpu), util(remote_cpu(run))]
}

/// Counts of all repetitions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sum {
    bytes: u64,
    count: u64,
    seconds: f64,
}

fn sum(runs: &[Outcome], of: impl Fn(&Outcome) -> Sum) -> Sum {
    runs.iter().map(of).fold(Sum::default(), |all, one| Sum {
        bytes: all.bytes.saturating_add(one.bytes),
        count: all.count.saturating_add(one.count),
        seconds: all.seconds + one.seconds,
    })
}

/// Of a server's time of fewer seconds there is no rate.
const LEAST_TIME: f64 = 1e-3;

/// This end's count of a stream.
fn ours(run: &Outcome, sends: bool) -> Sum {
    let (bytes, count) = if sends { run.sent } else { run.received };
    Sum { bytes, count, seconds: run.elapsed }
}

/// The server's.
fn theirs(run: &Outcome, sends: bool, datagrams: bool) -> Sum {
    let (results, seconds) = (&run.results, f64::from(run.results.elapsed));
    let (bytes, count) = if sends {
        (results.bytes_received, results.recv_calls)
    } else {
        (results.bytes_sent, results.send_calls)
    };
    // The protocol's number ends at 2^32 - 1, which datagrams reach within an hour; their bytes do not.
    let size = if sends { run.sizes.0 } else { run.sizes.1 };
    let count = match count {
        u32::MAX if datagrams => bytes / u64::from(size.max(1)),
        count => count.into(),
    };
    // Older servers' times of some tests are none.
    let seconds = told(seconds).filter(|seconds| *seconds >= LEAST_TIME).unwrap_or(run.elapsed);
    Sum { bytes, count, seconds }
}

fn stream(test: &Test, runs: &[Outcome]) -> EndpointStream {
    let sends = test.kind == Kind::Send;
    let ours = sum(runs, |run| ours(run, sends));
    let theirs = sum(runs, |run| theirs(run, sends, test.datagrams));
    let (sent, received) = if sends { (ours, theirs) } else { (theirs, ours) };
    EndpointStream {
        from_client: sends,
        sent_bytes: sent.bytes,
        sent_ns: ns(sent.seconds),
        sent_bits_per_second: 8.0 * per_second(sent.bytes, sent.seconds),
        sent_at_least: false,
        received_bytes: Some(received.bytes),
        received_ns: Some(ns(received.seconds)),
        received_bits_per_second: (received.seconds > 0.0 || received.bytes == 0)
            .then(|| 8.0 * per_second(received.bytes, received.seconds)),
        datagrams: test.datagrams.then(|| datagrams(runs, sends, sent, received)),
    }
}

/// netperf's datagrams have no numbers: what came twice hides what was lost, and nobody knows what came late.
fn datagrams(runs: &[Outcome], sends: bool, sent: Sum, received: Sum) -> Datagrams {
    let lost = sent.count.saturating_sub(received.count);
    let size = |run: &Outcome| if sends { run.sizes.0 } else { run.sizes.1 };
    Datagrams {
        size_bytes: runs.last().map_or(0, size).into(),
        sent: sent.count,
        received: received.count,
        received_per_second: Some(per_second(received.count, received.seconds)),
        lost,
        loss_ratio: if sent.count > 0 { lost as f64 / sent.count as f64 } else { 0.0 },
        dropped_by_receiver: None,
        refused_by_sender: sends.then(|| runs.iter().map(|run| run.failed_sends).sum()),
        reordered: None,
        duplicated: None,
        jitter_ns: None,
    }
}

fn transactions(test: &Test, runs: &[Outcome]) -> Transactions {
    let all = sum(runs, |run| Sum { bytes: 0, count: run.transactions, seconds: run.elapsed });
    let mut latency = Histogram::new();
    runs.iter().for_each(|run| latency.merge(&run.latency));
    let size = |size: u32| if test.kind == Kind::ConnectEach { 0 } else { u64::from(size) };
    Transactions {
        count: all.count,
        per_second: per_second(all.count, all.seconds),
        measured_ns: Some(ns(all.seconds)),
        request_bytes: size(test.request_size),
        response_bytes: size(test.response_size),
        in_flight: u64::from(test.burst) + 1,
        intended_per_second: None,
        unsent: 0,
        lost: runs.iter().map(|run| run.lost).sum(),
        latency_ns: Distribution::whole(&latency),
    }
}

/// What an end's processors were used for in the last repetition.
fn spent(end: &mut EndpointEnd, cpu: Option<Cpu>) {
    let Some(cpu) = cpu else { return };
    let all = f64::from(cpu.count.max(0));
    end.cores = u64::try_from(cpu.count).ok().filter(|count| *count > 0);
    end.busy_cores = end.cores.and_then(|_| told(f64::from(cpu.util) / 100.0 * all));
    // Whose method is not ours may not say these.
    end.peak_core_ratio = told(f64::from(cpu.peak) / 100.0).filter(|peak| *peak > 0.0);
}

/// What the repetitions came to; ends are told of the last one.
pub fn fill(
    report: &mut Report,
    job: &Netperf,
    test: &Test,
    runs: &[Outcome],
    intervals: Vec<EndpointInterval>,
    server: SocketAddr,
) {
    let host = Host::here();
    let mut tested = Tested {
        test: job.test.to_string(),
        server: server.to_string(),
        connections: 1,
        local: EndpointEnd {
            program: Some(host.program),
            kernel: Some(host.kernel),
            ..EndpointEnd::default()
        },
        intervals,
        ..Tested::default()
    };
    if transacts(test) {
        tested.transactions = Some(transactions(test, runs));
    } else {
        tested.streams.push(stream(test, runs));
    }
    if let Some(last) = runs.last() {
        let local = &mut tested.local;
        local.congestion = last.ended.congestion.clone().filter(|_| !test.datagrams);
        local.send_buffer_bytes = last.ended.send_buffer.map(u64::from);
        local.receive_buffer_bytes = last.ended.receive_buffer.map(u64::from);
        local.mss_bytes = last.mss.map(u64::from);
        local.retransmits = last.retransmits.map(u64::from).filter(|_| !test.datagrams);
        spent(local, last.cpu);
        let positive = |size: i32| u64::try_from(size).ok().filter(|size| *size > 0);
        let mut remote = EndpointEnd {
            congestion: Some(last.results.congestion.clone()).filter(|name| !name.is_empty()),
            send_buffer_bytes: positive(last.results.send_buffer),
            receive_buffer_bytes: positive(last.results.recv_buffer),
            retransmits: u64::try_from(last.results.retransmits).ok().filter(|_| !test.datagrams),
            ..EndpointEnd::default()
        };
        spent(&mut remote, remote_cpu(last));
        tested.remote = Some(remote);
    }
    judge(report, test, &tested, runs);
    report.result.endpoint = Some(tested);
}

/// What is to be known of the figures, and whether both ends agree.
fn judge(report: &mut Report, test: &Test, tested: &Tested, runs: &[Outcome]) {
    if test.avoid_copies && test.kind == Kind::Receive {
        sound::never_touched(report, "splice(2) to nowhere");
    }
    if test.sendfile {
        sound::never_made(report);
    }
    for d in tested.streams.iter().filter_map(|stream| stream.datagrams) {
        sound::datagrams(report, d, false, "offer less by `.pacing`");
    }
    sound::streams_add_up(report, tested, true);
    // Servers that do not count them say none.
    let answered: u64 = runs.iter().map(|run| u64::from(run.results.transactions)).sum();
    let count = tested.transactions.as_ref().map_or(0, |t| t.count);
    if answered > 0 && count > answered {
        let said = format!(
            "this host counts {}, and the server answered {}: how many there were is not known",
            units::counted(count, "transaction"),
            units::count(answered)
        );
        report.result.verdict.fall_short(Code::CountersDisagree, said);
    }
    sound::is_of_something(report, tested);
}

/// Whether the mean is as sure as was asked for.
pub fn judge_mean(report: &mut Report, goal: &Goal, series: &Series, results: Vec<f64>) {
    let width = series.widths(goal.level).map(|widths| widths[0]);
    let reached = series.reached(goal);
    if let Some(tested) = &mut report.result.endpoint {
        tested.confidence = Some(Repeated {
            results,
            level: f64::from(goal.level) / 100.0,
            wanted_width_ratio: goal.interval,
            width_ratio: width,
            reached,
        });
    }
    if !reached {
        let known = width.map(|width| format!("known within +/- {} only", units::percent(width / 2.0)));
        let of = if goal.result_only { "" } else { ", or of the use of processors," };
        let said = format!(
            "the mean of {}{of} is {}, and +/- {} was asked for",
            units::counted(series.len().into(), "repetition"),
            known.as_deref().unwrap_or("not known within any bounds"),
            units::percent(goal.interval / 2.0)
        );
        report.result.verdict.fall_short(Code::ConfidenceNotReached, said);
    }
}
