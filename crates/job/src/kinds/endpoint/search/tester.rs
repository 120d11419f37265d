//! A search's trials between two endpoints: what a load means, the test, its row, its verdict.

use super::{CLOSED_LOOP, Tested, sweep};
use crate::kinds::endpoint::Bench;
use crate::kinds::endpoint::outcome::Round;
use crate::kinds::endpoint::parts::{Part, Parts};
use crate::panel::Panel;
use crate::trials::course::{Course, Row, Tester, ahead_said};
use crate::trials::nanos;
use ::transport::native::Results;
use anyhow::{Result, bail};
use histogram::Histogram;
use report::search::TrialLatency;
use report::{Code, EndpointStage, EndpointTrial, EndpointVerdict, units};
use spec::{Endpoint, EndpointFind, EndpointRate, EndpointSearch, Written};
use trial::{Outcome, Remaining, Search, Stage, Wanted};

/// In an open loop: as many as wait within the bound, and more.
const OPEN_LOOP: u32 = 1024;
/// Of the transactions that were due, such a share may be left over by the end: those that were due in the last moment.
const LEFT_OVER: f64 = 0.001;
/// A rate that is reached to this share is carried.
const CARRIED: f64 = 0.995;

/// Both ends, and the trials so far.
pub struct Between<'a> {
    pub tested: &'a Tested<'a>,
    pub bench: &'a Bench<'a>,
    pub panel: Panel,
    pub course: Course<EndpointTrial>,
    /// What the ends of the last trial came to.
    pub last: Option<Round>,
}

impl Row for EndpointTrial {
    fn number(&self) -> u32 {
        self.number
    }

    /// Its verdict is what a search for a rate goes by, its result what a sweep does.
    fn outcome(&self) -> Outcome {
        let passed = self.verdict == EndpointVerdict::Passed;
        Outcome { result: Some(self.per_second), ..Outcome::judged(passed) }
    }

    /// Bounds are of rates, and stand in what was found.
    fn learned(&mut self, number: u32, _: Vec<(Option<f64>, Option<f64>)>) {
        self.number = number;
    }
}

/// The rate that is offered; none where it is not by time.
fn rate(wanted: &Wanted) -> Option<u64> {
    matches!(wanted.stage, Stage::Search | Stage::Confirm).then_some(wanted.load as u64)
}

fn stage(wanted: &Wanted) -> EndpointStage {
    match wanted.stage {
        Stage::Estimate => EndpointStage::Estimate,
        Stage::Search => EndpointStage::Search,
        Stage::Confirm => EndpointStage::Confirm,
        Stage::Measure | Stage::WarmUp => EndpointStage::Sweep,
    }
}

impl<S: Search + ?Sized> Tester<S> for Between<'_> {
    type Row = EndpointTrial;

    fn course(&mut self) -> &mut Course<EndpointTrial> {
        &mut self.course
    }

    fn is_of(&self, row: &EndpointTrial, wanted: &Wanted) -> bool {
        let sweeps = wanted.stage == Stage::Measure;
        let buffer = sweeps.then(|| sweep::size(wanted.load)).flatten();
        let same_rate = row.intended_per_second == rate(wanted).map(|rate| rate as f64);
        row.stage == stage(wanted) && row.buffer_bytes == buffer && (same_rate || sweeps)
    }

    fn is_stopped(&self) -> bool {
        self.bench.session.is_stopped()
    }

    fn attempt(&mut self, wanted: &Wanted, _: &S) -> Result<Option<(EndpointTrial, Outcome)>> {
        let Some((row, round)) = attempt(self.bench, self.tested, wanted, &mut self.panel)? else {
            return Ok(None);
        };
        self.last = Some(round);
        let outcome = row.outcome();
        Ok(Some((row, outcome)))
    }

    fn over(&mut self, _: &S, left: Option<Remaining>) {
        if let Some(row) = self.course.rows.last() {
            self.bench.session.say(Code::Trial, said(row, left, self.tested.job));
        }
    }
}

/// The test with what is varied.
fn varied(tested: &Tested<'_>, wanted: &Wanted) -> Endpoint {
    let mut args = tested.args.clone();
    if wanted.stage == Stage::Measure {
        if let Some(bytes) = sweep::size(wanted.load) {
            let size = bytes.to_string().parse::<Written<u64>>().ok();
            args.send_buffer.clone_from(&size);
            args.receive_buffer.clone_from(&size);
            args.remote_send_buffer.clone_from(&size);
            args.remote_receive_buffer = size;
        }
        return args;
    }
    let rate = rate(wanted);
    let in_flight = if rate.is_some() { OPEN_LOOP } else { CLOSED_LOOP };
    args.burst = args.burst.or(Some(in_flight));
    args.rate = rate.and_then(|rate| format!("{rate}tps").parse().ok());
    args
}

/// One trial. None: it was ended by who looks on.
fn attempt(
    bench: &Bench<'_>,
    tested: &Tested<'_>,
    wanted: &Wanted,
    panel: &mut Panel,
) -> Result<Option<(EndpointTrial, Round)>> {
    let args = varied(tested, wanted);
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
    if let Some(said) = round.disagrees() {
        bail!("{said}");
    }
    let mut row = row(&round);
    row.stage = stage(wanted);
    row.buffer_bytes = (wanted.stage == Stage::Measure).then(|| sweep::size(wanted.load)).flatten();
    row.intended_per_second = match args.rate.as_deref() {
        Some(EndpointRate::Transactions(rate)) => Some(*rate as f64),
        _ => None,
    };
    let arrived = row.per_second > 0.0;
    row.verdict = if arrived { EndpointVerdict::Done } else { EndpointVerdict::NothingArrived };
    if let EndpointFind::Transactions(find) = &tested.job.find {
        let mut latency = Histogram::new();
        round.outcomes.iter().for_each(|(_, outcome)| latency.merge(&outcome.latency));
        row.at_percentile_ns = (!latency.is_empty()).then(|| latency.quantile(find.percentile() / 100.0));
        if let Some(rate) = rate(wanted) {
            let lasts = parts.lasts().as_secs_f64();
            row.verdict = verdict(&row, rate as f64, nanos(find.below()), lasts);
        }
    }
    Ok(Some((row, round)))
}

/// What both ends of all parts came to, as a row.
fn row(round: &Round) -> EndpointTrial {
    let mut row = EndpointTrial { per_second: round.result().unwrap_or(0.0), ..EndpointTrial::default() };
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
fn said(row: &EndpointTrial, left: Option<Remaining>, job: &EndpointSearch) -> String {
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
    text + &ahead_said(left)
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
