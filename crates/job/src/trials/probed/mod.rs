//! Trials of a probe (RFC 6645): flows of known keys are sent to it, and its records are held to them.
//!
//! ```text
//!   run::run --> port --> probe under test --UDP--> collector --> truth: which flows, packets, bytes are there
//! ```
//!
//! After the last frame come those of a sentinel, a flow of its own: probes may take frames from their ring in whole blocks only
//! (softflowd 1.1.0 does: libpcap's timeout of 0), and would never look at the last one otherwise.

mod collector;
mod truth;
mod under_test;

use super::ports::Ports;
use super::rig::Rig;
use super::{Offer, nanos, schedule};
use crate::kinds::shared;
use crate::place::Place;
use crate::run::{self, Setup};
use anyhow::{Context, Result, bail};
use collector::Collector;
use flow::collect::Counters;
use port::interface::Counters as PortCounters;
use report::search::FlowTrial;
use report::{Code, Loss, Report, Rx, Totals};
use spec::{Bench, Engine as EngineName, Flows, KeyOrder};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};
use traffic::Program;
use truth::{Keys, SENTINEL, Truth};
use under_test::{Probe, Wanted};
use wire::Mac;

/// Of nobody: a mirror port's probe takes frames for anybody, and its host has nothing to do with them.
const NOBODY: Mac = Mac([0x02, 0, 0, 0, 0xff, 0x06]);
/// After a stall of this machine the rate is at most so much higher, over any millisecond, until it is made up for: a flow rate
/// is one over seconds, and what is put off would be another rate.
const CATCH_UP: engine::CatchUp = engine::CatchUp::Times(1.5);
/// Above so many frames a second they leave in short bursts: one by one, waking the receiver's side for each limits a sender on
/// a virtual cable to less than probes take.
const ONE_BY_ONE: f64 = 500_000.0;
/// Frames of a burst.
const BURST: u64 = 32;
/// Frames a second of the sentinel: libpcap's blocks have some 1000.
const SENTINELS: f64 = 3000.0;
/// Probes look for what is over each second.
const SCAN: Duration = Duration::from_secs(1);
/// So long after the last record nothing more is waited for, once all should have come.
const QUIET: Duration = Duration::from_millis(1500);
/// Behind the timeouts, records are waited for no longer than this.
const LONGEST: Duration = Duration::from_secs(60);
/// What a probe sends when it ends comes within this.
const LAST: Duration = Duration::from_millis(300);

/// The probe under test and the collector of its records.
#[derive(Debug)]
pub struct Probed {
    flows: Flows,
    in_a_lab: bool,
    to: Mac,
    at: std::net::SocketAddr,
    collector: Collector,
    /// Where the probe may run.
    cpus: Vec<usize>,
    /// The collector has no CPU of its own.
    shares: bool,
    /// What the trial that was done last came to.
    found: std::sync::Mutex<Option<FlowTrial>>,
}

impl Probed {
    /// Begins to collect. `sends_on`: the CPUs of the sender.
    pub fn new(bench: &Bench, flows: &Flows, ports: &Ports, sends_on: &[usize]) -> Result<Probed> {
        let (socket, at) = match (&ports.lab, &flows.collect) {
            (Some(lab), _) => under_test::collector(lab)?,
            (None, Some(collect)) => {
                use std::net::ToSocketAddrs;
                let wrong =
                    || format!("`.collect` {collect}: give ADDR:PORT, such as 0.0.0.0:2055 or [::]:4739");
                let at = collect.to_socket_addrs().with_context(wrong)?.next().with_context(wrong)?;
                let socket = collector::socket(at).context("`.collect`")?;
                (socket, at)
            }
            (None, None) => bail!("where does the probe send its records? Give `.collect` ADDR:PORT"),
        };
        let allowed = crate::environment::allowed_cpus().unwrap_or_default();
        let mut others: Vec<usize> = allowed.iter().copied().filter(|cpu| !sends_on.contains(cpu)).collect();
        // The probe keeps what is left to itself; the collector has a CPU of its own only where there are three.
        let shares = others.len() < 2;
        let collects_on: Vec<usize> =
            if shares || ports.lab.is_none() { Vec::new() } else { others.pop().into_iter().collect() };
        let collector = Collector::start(socket, &collects_on)?;
        let to = bench.gateway.first().map_or(NOBODY, |mac| **mac);
        let (flows, in_a_lab) = (flows.clone(), ports.lab.is_some());
        let found = std::sync::Mutex::default();
        Ok(Probed { flows, in_a_lab, to, at, collector, cpus: others, shares, found })
    }

    fn keys(&self, trial: u32) -> Keys {
        Keys {
            trial,
            packets_per_flow: self.flows.packets_per_flow(),
            random: self.flows.order == KeyOrder::Random,
        }
    }

    /// What is sent, as an expression.
    pub fn expression(&self) -> String {
        self.keys(0).expression(self.to)
    }

    /// What the trial that was done last came to.
    pub fn take_found(&self) -> Option<FlowTrial> {
        self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    /// Waits until all records came, or none can come any more.
    fn drain(&self, sent: u64, stop: &AtomicBool) {
        let start = Instant::now();
        let timeouts = self.flows.idle(self.in_a_lab) + 2 * SCAN;
        while !stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
            let (packets, last) = self.collector.progress();
            let waited = start.elapsed();
            let quiet = last.is_none_or(|last| last > QUIET);
            let in_vain = waited > timeouts + QUIET && quiet || waited > timeouts + LONGEST;
            if packets >= sent || in_vain {
                break;
            }
        }
    }
}

/// A probe that runs, and what its interface had counted before.
struct Under {
    probe: Option<Probe>,
    before: Option<PortCounters>,
}

impl Rig {
    /// One trial: flows are sent to the probe, and its records are waited for. Its report, and the frames that were due.
    pub(super) fn send_to_probe(
        &self,
        probed: &Probed,
        offer: &Offer,
        stop: &Arc<AtomicBool>,
        onlooker: Option<run::Onlooker>,
    ) -> Result<(Report, Option<u64>)> {
        let keys = probed.keys(self.begun());
        let program = self.program(&keys.expression(probed.to), &offer.size, None, None)?;
        let program = program.with_schedule(in_bursts(offer));
        let due = offer.duration.and_then(|time| program.frames_due_by(nanos(time).checked_sub(1)?));
        let way = self.ports.ways.first().context("there is no port")?;
        let tx = way.senders()?;
        for place in &tx {
            shared::check_mtu(&program, place)?;
        }
        if offer.tried {
            // With the probe, whose share of the way is the sender's work in a lab.
            let under = self.start_probe(probed, stop)?;
            let (report, _) = self.send_flows(program, offer, tx, stop, onlooker)?;
            drop(under);
            return Ok((with_recorded(report, None), due));
        }
        let frames = due.context("a trial of flows has a rate")?;
        let flows = frames / u64::from(keys.packets_per_flow) + 1;
        if flows > Keys::most() {
            bail!("{flows} flows in one trial: up to {} are possible: lower `.trial_duration`", Keys::most());
        }
        let octets = u64::from(program.longest()).saturating_sub(14);
        let under = self.start_probe(probed, stop)?;
        let begins_ns = clocks::now(clocks::Clock::Realtime);
        probed.collector.begin(Truth::new(keys, octets, flows, begins_ns), begins_ns);
        probed.collector.hold(probed.shares);
        let sending = self.send_flows(program.clone(), offer, tx, stop, onlooker);
        probed.collector.hold(false);
        probed.collector.sent(clocks::now(clocks::Clock::Realtime));
        let (report, began_ns) = sending?;
        let sent = report.result.tx.as_ref().map_or(0, |tx| tx.totals.frames);
        let (dropped, missed_at_port) = self.await_records(probed, under, sent, stop)?;
        // RFC 6645, 5.2: records that came while it was sent, over the time in which records could end. Both end with the last
        // frame's time, and nothing is left to do or to wait for behind it.
        let sent_ns = report.result.tx.as_ref().map_or(0, |tx| tx.totals.duration_ns);
        let (came, truth) = probed.collector.end(began_ns.saturating_add(sent_ns));
        if let Some(fault) = probed.collector.fault() {
            bail!("the collector: {fault}");
        }
        let mut truth = truth.context("the collector forgot the trial")?;
        let mut found = truth.settle(&program, sent);
        let counters = &came.counters;
        found.messages = counters.messages;
        found.message_bytes = counters.bytes;
        found.control_records = counters.options + counters.templates;
        found.collector_lost_messages = came.dropped_messages;
        found.unread_sets = counters.waiting_sets + counters.lost_sets;
        let rate = offer_rate(offer) / f64::from(keys.packets_per_flow);
        let idle_ns = nanos(probed.flows.idle(probed.in_a_lab));
        let fills_ns =
            probed.flows.cache(probed.in_a_lab).map_or(u64::MAX, |cache| (cache as f64 / rate * 1e9) as u64);
        found.measured_ns = sent_ns.saturating_sub(idle_ns.min(fills_ns));
        found.export_records_per_second = (came.in_time_records > 0 && found.measured_ns > 0)
            .then(|| Totals::over(came.in_time_records, 0, found.measured_ns).frames_per_second);
        found.cache_flows = (rate * idle_ns as f64 / 1e9) as u64;
        split(&mut found, counters, dropped, missed_at_port);
        let report = with_recorded(report, Some(&found));
        *probed.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(found);
        Ok((report, due))
    }

    /// In a lab, the probe anew: its cache is empty.
    fn start_probe(&self, probed: &Probed, stop: &AtomicBool) -> Result<Under> {
        let Some(lab) = &self.ports.lab else { return Ok(Under { probe: None, before: None }) };
        let wanted = Wanted { flows: &probed.flows, lab, collector: probed.at, cpus: &probed.cpus };
        let probe = wanted.start(stop)?;
        let before = Place::find(&lab.receiver.spec())?.counters()?.read()?;
        Ok(Under { probe: Some(probe), before: Some(before) })
    }

    /// Sends the flows of a trial, and says when that began, in nanoseconds since 1970.
    fn send_flows(
        &self,
        program: Program,
        offer: &Offer,
        tx: Vec<Place>,
        stop: &Arc<AtomicBool>,
        onlooker: Option<run::Onlooker>,
    ) -> Result<(Report, u64)> {
        let began_ns = Arc::new(AtomicU64::new(0));
        let mut setup = Setup {
            tx,
            began_ns: Some(Arc::clone(&began_ns)),
            cpus: self.cpus(0)?,
            open: shared::open_by(&self.through, false, None)?,
            onlooker,
            ..self.setup(program, offer.count, offer.duration, (Arc::clone(stop), None))
        };
        setup.job.pacing.catch_up = CATCH_UP;
        let report = run::run(setup)?;
        let ahead_ns = clocks::ahead(clocks::Clock::Realtime, clocks::Clock::Monotonic).ns;
        Ok((report, began_ns.load(Relaxed).saturating_add_signed(ahead_ns)))
    }

    /// Keeps the probe looking until its records came, and ends it. What it dropped, and frames that its port did not take, where
    /// that is known.
    fn await_records(
        &self,
        probed: &Probed,
        under: Under,
        sent: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Option<u64>, Option<u64>)> {
        let over = Arc::new(AtomicBool::new(false));
        let mut sentinels = 0;
        std::thread::scope(|scope| -> Result<()> {
            let sentinel = std::thread::Builder::new()
                .name("sentinel".to_owned())
                .spawn_scoped(scope, || self.sentinel(probed, &over))?;
            probed.drain(sent, stop);
            over.store(true, Relaxed);
            sentinels = sentinel.join().unwrap_or(Ok(0)).unwrap_or(0);
            Ok(())
        })?;
        let (Some(mut probe), Some(lab)) = (under.probe, &self.ports.lab) else { return Ok((None, None)) };
        let counted = Place::find(&lab.receiver.spec())?.counters()?.read()?;
        let arrived = under.before.map(|before| counted.since(&before).rx_packets.saturating_sub(sentinels));
        probe.check()?;
        let dropped = probe.dropped(&lab.receiver);
        if probed.collector.progress().0 < sent {
            // What it has left it may send now; else there is nothing.
            probe.end()?;
        }
        std::thread::sleep(LAST);
        Ok((dropped, arrived.map(|arrived| sent.saturating_sub(arrived))))
    }

    /// Frames of a flow that counts for nothing, until it is over. How many.
    fn sentinel(&self, probed: &Probed, over: &Arc<AtomicBool>) -> Result<u64> {
        let what =
            format!("ether(dst={})/ipv4(src={SENTINEL}, dst=198.18.0.98)/udp(sport=9, dport=9)", probed.to);
        let program = self.program(&what, &traffic::expr::Size::Fixed(64), None, None)?;
        let way = self.ports.ways.first().context("there is no port")?;
        let setup = Setup {
            tx: way.senders()?,
            open: shared::open_engines(EngineName::Packet),
            endless: true,
            priority: engine::Priority::Ordinary,
            ..self.setup(program.with_schedule(schedule(SENTINELS)), None, None, (Arc::clone(over), None))
        };
        let report = run::run(setup)?;
        Ok(report.result.tx.map_or(0, |tx| tx.totals.frames))
    }

    /// What the records of a trial say that no loss says.
    pub(super) fn warn_of_records(&mut self, found: &FlowTrial) {
        let counted = report::units::counted;
        let wrong = [
            (found.wrong_octets_records, "say other bytes of IP than were sent"),
            (found.wrong_fields_records, "say another type of service"),
            (
                found.wrong_times_records,
                "say times that are not the trial's: the probe's clock is another, or it states them wrong",
            ),
            (found.surplus_packets, "more packets are in records than were sent of their flows"),
            (found.foreign_records, "are of what was not sent"),
            (found.late_records, "came when their trial was over"),
            (
                found.unread_sets,
                "came in sets whose template did not: what they hold counts as lost in the cache",
            ),
        ];
        for (records, what) in wrong.into_iter().filter(|(records, _)| *records > 0) {
            if !self.warnings.iter().any(|warning| warning.to_string().contains(what)) {
                self.warnings
                    .add(Code::RecordsWrong, format!("in a trial {}: {what}", counted(records, "record")));
            }
        }
    }
}

/// Frames a second that an offer has.
fn offer_rate(offer: &Offer) -> f64 {
    match offer.schedule {
        traffic::Schedule::Frames { frames, per_ns } => frames as f64 * 1e9 / per_ns.max(1) as f64,
        _ => f64::INFINITY,
    }
}

/// When frames leave: evenly, and from [`ONE_BY_ONE`] on in bursts that are even.
fn in_bursts(offer: &Offer) -> traffic::Schedule {
    let rate = offer_rate(offer);
    if !rate.is_finite() || rate <= ONE_BY_ONE {
        return offer.schedule.clone();
    }
    // Of whole nanoseconds: the rate is exact to 1 in 20,000 at 1 Mpps.
    let period_ns = (BURST as f64 * 1e9 / rate).round() as u64;
    traffic::Schedule::Bursts { frames: BURST, gap_ns: 0, period_ns: period_ns.max(1) }
}

/// Packets that records have stand for what was received.
fn with_recorded(mut report: Report, found: Option<&FlowTrial>) -> Report {
    let Some(tx) = &report.result.tx else { return report };
    let sent = tx.totals.frames;
    let recorded = found.map_or(sent, |found| found.recorded_packets);
    let duplicated_frames = found.map(|found| found.surplus_packets);
    report.result.rx = Some(Rx {
        totals: Totals::over(recorded, 0, tx.totals.duration_ns),
        duplicated_frames,
        ..Rx::default()
    });
    report.result.loss = Some(Loss::of(sent.saturating_sub(recorded), sent));
    report
}

/// Where what is missing was lost: at the probe's port, on its way out, and else in its cache.
fn split(found: &mut FlowTrial, counters: &Counters, dropped: Option<u64>, missed_at_port: Option<u64>) {
    let mut packets = found.sent_packets.saturating_sub(found.recorded_packets);
    let mut flows = found.sent_flows.saturating_sub(found.recorded_flows);
    // What a probe says of itself (RFC 7011, 4.2) is known of those that say it.
    let said = (counters.ignored_packets > 0).then_some(counters.ignored_packets);
    let at_port = match (dropped, missed_at_port) {
        (None, None) => said,
        (a, b) => Some(a.unwrap_or(0).max(said.unwrap_or(0)) + b.unwrap_or(0)),
    };
    found.port_lost_packets = at_port.map(|at_port| at_port.min(packets));
    let at_port = found.port_lost_packets.unwrap_or(0);
    packets -= at_port;
    flows = flows.saturating_sub(at_port).min(packets);
    // Records are numbered in v5 and IPFIX; in v9 messages are, which have as many records as others at a guess.
    let each = found.records.checked_div(found.messages).unwrap_or(0).max(1);
    let missing = counters.missing_records + counters.missing_messages * each;
    found.export_lost_records = (missing + counters.unsent[0]).min(flows);
    found.cache_lost_flows = flows - found.export_lost_records;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_split_by_what_is_known_of_it() {
        let of = |dropped, missed_at_port, counters: Counters, recorded| {
            let mut found = FlowTrial {
                sent_flows: 100,
                sent_packets: 100,
                recorded_flows: recorded,
                recorded_packets: recorded,
                records: recorded,
                messages: 10,
                ..FlowTrial::default()
            };
            split(&mut found, &counters, dropped, missed_at_port);
            (found.port_lost_packets, found.cache_lost_flows, found.export_lost_records)
        };
        let gaps = |missing_records, missing_messages| Counters {
            missing_records,
            missing_messages,
            ..Counters::default()
        };
        assert_eq!(of(Some(0), Some(0), gaps(0, 0), 100), (Some(0), 0, 0));
        assert_eq!(of(Some(7), Some(3), gaps(0, 0), 80), (Some(10), 10, 0));
        assert_eq!(of(Some(0), Some(0), gaps(15, 0), 80), (Some(0), 5, 15));
        // Messages of v9 have as many records as others.
        assert_eq!(of(None, None, gaps(0, 2), 80), (None, 4, 16));
        // A probe that says what it ignored.
        let said = Counters { ignored_packets: 12, ..Counters::default() };
        assert_eq!(of(None, None, said, 80), (Some(12), 8, 0));
        // What is counted beyond what is missing explains no more than that.
        assert_eq!(of(Some(50), Some(50), gaps(50, 0), 95), (Some(5), 0, 0));
    }
}
