//! What a configuration does: runs that send, runs that measure, and how flows are started, paused and stopped.
//!
//! ```text
//!   start: a meter at each port (one `measure` run each), then a `send` run for each gang of flows, held until all are ready
//!   a flow's numbers: tx of its runs; rx of the meters' streams by the numbers in its signatures
//! ```
//!
//! Runs share their interfaces (`among.beside`). Counters of a start are those of an [`Attempt`]: its runs and the meters of its time are kept, so
//! that what was counted stays readable after the end.

use super::answer::Refused;
use super::config::{Capture, Config, RUNS};
use super::emulated::{Emulated, Gateways};
use crate::hand::Hand;
use crate::runs::{Run, State};
use axum::http::StatusCode;
use futures_util::future::join_all;
use scenario::{Context, Sign};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use traffic::Program;

/// Numbers that the meters tell apart.
const NUMBERS: u32 = 4096;
/// Parts that an agent knows.
const PARTS: u32 = 4096;
/// Meters look five times a second.
const METERS_EVERY_NS: u64 = 200_000_000;
/// A run that is stopped ends within this.
const ENDS: Duration = Duration::from_secs(20);
/// Until a run is ready, or has begun.
const BEGINS: Duration = Duration::from_secs(30);
/// All start so long after they were told, and so much later for each of them.
const AHEAD_OF_EACH: Duration = Duration::from_millis(10);
const AHEAD: Duration = Duration::from_millis(50);
/// Counters that differ are looked at so many times, because both are not read at the same moment.
const COMPARES: usize = 4;
/// Links are looked at so often at most.
const LOOKS: Duration = Duration::from_secs(1);
/// Two looks at the meters are told within this after the end, unless they are gone: the second was taken after it, and after what was on its way.
const SETTLES: Duration = Duration::from_secs(4);
/// Up to this rate frames leave by an engine that can be paused.
const PAUSABLE_PPS: f64 = 100_000.0;

/// The meters of one time, by ports.
pub(crate) type Meters = Arc<BTreeMap<usize, Arc<Run>>>;

/// Flows that were started together.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub run: Arc<Run>,
    pub meters: Meters,
    /// Stream s of its scenario has the number `s * of + slot`.
    pub slot: u32,
    pub of: u32,
    /// The rate that it was started with.
    pub pps: f64,
    /// What several flows send together: how many of so many frames are each one's.
    pub program: Option<Arc<Program>>,
}

impl Attempt {
    /// In signatures, of the stream at this place of its scenario.
    pub fn number(&self, place: usize) -> u64 {
        place as u64 * u64::from(self.of) + u64::from(self.slot)
    }

    /// Is it over, and have the meters been looked at since? What was sent last is counted by then.
    pub fn is_settled(&self) -> bool {
        self.run.is_over() && (self.meters.values().all(|meter| self.is_seen(meter)) || self.has_waited())
    }

    /// Has this meter been looked at since it is over?
    fn is_seen(&self, meter: &Run) -> bool {
        meter.is_over() || meter.looked_before_at() > self.run.over_at()
    }

    /// For meters nobody waits longer.
    fn has_waited(&self) -> bool {
        clocks::monotonic() > self.run.over_at().saturating_add(SETTLES.as_nanos() as u64)
    }

    /// Nobody has looked at this meter since it is over, and nobody waits for it any more: what came last is in no count.
    pub fn is_unseen(&self, meter: &Run) -> bool {
        self.run.is_over() && self.has_waited() && !self.is_seen(meter)
    }

    /// Of so many frames of the run those of each of its streams, by the streams' numbers.
    pub fn shares(&self, frames: u64) -> HashMap<u64, u64> {
        let all = self.program.iter().flat_map(|program| program.signed_among(frames));
        all.map(|(place, frames)| (self.number(place as usize), frames)).collect()
    }
}

/// Flows that are one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gang {
    /// Places of flows.
    pub flows: Vec<usize>,
    /// Since the counters were cleared.
    pub attempts: Vec<Attempt>,
}

impl Gang {
    /// The run that goes on, if one does.
    fn going(&self) -> Option<&Arc<Run>> {
        self.attempts.last().map(|attempt| &attempt.run).filter(|run| !run.is_over())
    }

    pub fn transmit(&self) -> &'static str {
        match self.attempts.last().map(|attempt| attempt.run.state()) {
            Some(State::Paused) => "paused",
            // So that who reads `stopped` reads all that arrived.
            Some(_) if self.attempts.last().is_some_and(|attempt| !attempt.is_settled()) => "started",
            _ => "stopped",
        }
    }
}

/// What is configured, and what of it goes on.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    /// As it was sent.
    pub value: Value,
    pub config: Config,
    pub gangs: Vec<Gang>,
    pub meters: Meters,
    /// Numbers that this time's meters know already.
    next_slot: u32,
    pub captures: BTreeMap<usize, Arc<Run>>,
    /// Of each port whether it was up when it was looked at last.
    pub links: BTreeMap<usize, bool>,
    looked: Option<Instant>,
    /// Devices that are there, by ports.
    pub emulated: BTreeMap<usize, Emulated>,
    /// Ports whose links were set down.
    down: BTreeSet<usize>,
    /// Ports whose meters were ended when all flows had been stopped: what they counted is all there was.
    pub ended: BTreeSet<usize>,
    /// What each port's interface had received before its meter began, and when all of them did.
    begun_at: BTreeMap<usize, [u64; 2]>,
    /// What flows sent that were started anew since the meters began, by ports: frames and bytes. `None`: some of it is not known.
    pub sent_before: BTreeMap<usize, Option<(u64, u64)>>,
}

impl Setup {
    /// Of how many parts each gang is one, so that all numbers are known to the meters.
    fn parts(&self) -> u32 {
        parts_of(&self.config)
    }

    /// Ports whose meters counted otherwise than their interfaces, which have received so many frames by now.
    fn differing(&self, now: &BTreeMap<usize, u64>) -> Vec<String> {
        let mut differing = Vec::new();
        for (at, run) in self.meters.iter().filter(|(_, run)| !run.is_over()) {
            let (Some([before, after]), Some(now)) = (self.begun_at.get(at), now.get(at)) else { continue };
            let counted = super::metrics::received_by(run);
            let (least, most) = (now.saturating_sub(*after), now.saturating_sub(*before));
            // Some drivers do not count what XDP takes.
            let cannot_tell = most == 0 && counted > 0;
            if !cannot_tell && !(least..=most).contains(&counted) {
                let name = self.config.ports.get(*at).map_or("?", |port| port.name.as_str());
                differing.push(format!(
                    "port `{name}`: {counted} frames were counted as they arrived, and its interface counted {least}"
                ));
            }
        }
        differing
    }

    fn goes_on(&self) -> bool {
        self.gangs.iter().any(|gang| gang.going().is_some())
    }

    /// Takes what a gang has counted, of which the ports' counters keep what is of this time's meters.
    fn cleared(&mut self, gang: usize) -> Vec<Attempt> {
        let Some(gang) = self.gangs.get_mut(gang) else { return Vec::new() };
        let attempts = std::mem::take(&mut gang.attempts);
        let port = gang.flows.first().and_then(|flow| self.config.flows.get(*flow)).map(|flow| flow.tx);
        for attempt in attempts.iter().filter(|attempt| Arc::ptr_eq(&attempt.meters, &self.meters)) {
            let sent = super::metrics::sent_by(&attempt.run);
            let sum = self.sent_before.entry(port.unwrap_or(usize::MAX)).or_insert(Some((0, 0)));
            *sum = sum.zip(sent).map(|(sum, sent)| (sum.0 + sent.0, sum.1 + sent.1));
        }
        attempts
    }

    /// For the runs of these flows the percent of their own rates that come nearest to the new ones; and where they do not come to them.
    fn new_rates(
        &self,
        new: &Config,
        names: &[String],
        errors: &mut Vec<String>,
    ) -> (Vec<(String, u64)>, Vec<String>) {
        let (mut rates, mut not_exact) = (Vec::new(), Vec::new());
        for gang in &self.gangs {
            let (Some(run), Some(attempt)) = (gang.going(), gang.attempts.last()) else { continue };
            let flows = gang
                .flows
                .iter()
                .filter_map(|flow| Some((self.config.flows.get(*flow)?, new.flows.get(*flow)?)));
            let changed: Vec<_> = flows
                .filter(|(old, new)| names.contains(&old.name) && old.pps.to_bits() != new.pps.to_bits())
                .collect();
            let [(_, flow)] = changed[..] else {
                if !changed.is_empty() {
                    errors.push("flows.flows: of more than 8 flows those of one port are sent as one: stop them, then change their rates".to_owned());
                }
                continue;
            };
            let percent = flow.pps / attempt.pps * 100.0;
            let whole = percent.round();
            if gang.flows.len() > 1
                || flow.pps >= f64::MAX
                || attempt.pps >= f64::MAX
                || !(10.0..=1000.0).contains(&whole)
            {
                errors.push(format!(
                    "flows.flows: while `{}` is sent its rate can be changed to 10 to 1000 % of what it was started with: stop it first",
                    flow.name
                ));
                continue;
            }
            if (percent - whole).abs() > 1e-6 {
                let sent = attempt.pps * whole / 100.0;
                not_exact.push(format!("flows.flows: `{}` is sent at {sent} frames/s until it is started anew: whole percents of what it was started with", flow.name));
            }
            rates.push((run.name.clone(), whole as u64));
        }
        (rates, not_exact)
    }

    /// The runs of these gangs that go on.
    fn going(&self, gangs: &[usize]) -> Vec<Arc<Run>> {
        gangs.iter().filter_map(|gang| self.gangs.get(*gang)?.going().cloned()).collect()
    }

    /// The gangs of these flows, which must be whole.
    fn gangs_of(&self, names: &[String]) -> Result<Vec<usize>, Refused> {
        if names.is_empty() {
            return Ok((0..self.gangs.len()).collect());
        }
        let mut errors = Vec::new();
        let mut wanted = Vec::new();
        for name in names {
            match self.config.flows.iter().position(|flow| flow.name == *name) {
                Some(flow) => wanted.push(flow),
                None => {
                    errors.push(format!("flow_names: there is no flow `{}`", report::units::printable(name)))
                }
            }
        }
        let mut gangs = Vec::new();
        for (at, gang) in self.gangs.iter().enumerate() {
            match gang.flows.iter().filter(|flow| wanted.contains(flow)).count() {
                0 => {}
                count if count == gang.flows.len() => gangs.push(at),
                _ => errors.push(format!(
                    "flow_names: of more than 8 flows those of one port are sent as one: name all {} flows of port `{}`, or none",
                    gang.flows.len(),
                    gang.flows.first().and_then(|flow| self.config.flows.get(*flow)).and_then(|flow| self.config.ports.get(flow.tx)).map_or("?", |port| port.name.as_str()),
                )),
            }
        }
        if errors.is_empty() { Ok(gangs) } else { Err(Refused::of(errors)) }
    }

    /// The ports of these names; all, where none is named.
    pub fn ports_of(&self, names: &[String]) -> Result<Vec<usize>, Refused> {
        if names.is_empty() {
            return Ok((0..self.config.ports.len()).collect());
        }
        let mut errors = Vec::new();
        let mut ports = Vec::new();
        for name in names {
            match self.config.port(name) {
                Some(port) => ports.push(port),
                None => {
                    errors.push(format!("port_names: there is no port `{}`", report::units::printable(name)))
                }
            }
        }
        if errors.is_empty() { Ok(ports) } else { Err(Refused::of(errors)) }
    }
}

/// What OTG's clients drive.
#[derive(Debug, Clone)]
pub(crate) struct Tester {
    pub(super) hand: Hand,
    /// Who changes something has this from beginning to end; who only reads needs `setup` alone.
    pub(super) turn: Arc<Mutex<()>>,
    pub setup: Arc<Mutex<Setup>>,
}

impl Tester {
    pub fn new(hand: Hand) -> Tester {
        Tester { hand, turn: Arc::default(), setup: Arc::default() }
    }

    /// Replaces all.
    pub async fn set_config(&self, value: Value) -> Result<Vec<String>, Refused> {
        let _turn = self.turn.lock().await;
        self.replace(value).await
    }

    async fn replace(&self, value: Value) -> Result<Vec<String>, Refused> {
        let (config, findings) = Config::read(&value);
        let offences = findings.offences();
        if !offences.is_empty() {
            return Err(Refused::of(offences));
        }
        if config.gangs.len() + config.lookers() > RUNS {
            let what = format!(
                "{} senders beside {} meters and captures are more than this server carries out at once, {RUNS} of all",
                config.gangs.len(),
                config.lookers()
            );
            return Err(Refused::one(what));
        }
        let parts = parts_of(&config);
        if config.gangs.len() > parts as usize {
            let what = format!(
                "flows: so many of one port leave numbers for {parts} senders, and there are {}",
                config.gangs.len()
            );
            return Err(Refused::one(what));
        }
        self.look_at_ports(&config).await?;
        let mut setup = self.setup.lock().await;
        self.clear(&mut setup).await;
        let gangs =
            config.gangs.iter().map(|flows| Gang { flows: flows.clone(), attempts: Vec::new() }).collect();
        *setup = Setup { value, config, gangs, ..Setup::default() };
        Ok(findings.warnings())
    }

    /// Interfaces that are not there, or not granted, are told now.
    async fn look_at_ports(&self, config: &Config) -> Result<(), Refused> {
        let mut errors = Vec::new();
        for (at, port) in config.ports.iter().enumerate() {
            let asked = json!({"interfaces": [port.location], "diagnosis": false});
            if let Err(fault) = self.hand.call("host", asked).await {
                errors.push(format!("ports[{at}].location: {}", Refused::from(fault).errors.join(": ")));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Refused::of(errors)) }
    }

    /// Ends all that goes on.
    async fn clear(&self, setup: &mut Setup) {
        self.stop_devices(setup).await;
        for port in std::mem::take(&mut setup.down) {
            let Some(port) = setup.config.ports.get(port) else { continue };
            let _ = self.hand.call("link.set", json!({"on": port.location, "up": true})).await;
        }
        let runs: Vec<Arc<Run>> = setup.gangs.iter().flat_map(|gang| gang.going().cloned()).collect();
        self.stop_all(&runs).await;
        let rest: Vec<Arc<Run>> = setup.meters.values().chain(setup.captures.values()).cloned().collect();
        self.stop_all(&rest).await;
        for run in setup.gangs.iter().flat_map(|gang| &gang.attempts).map(|attempt| &attempt.run) {
            self.hand.forget(run).await;
        }
        for run in &rest {
            self.hand.forget(run).await;
        }
        *setup = Setup::default();
    }

    async fn stop_all(&self, runs: &[Arc<Run>]) {
        for run in runs.iter().filter(|run| !run.is_over()) {
            let _ = self.hand.call("job.stop", json!({"run": run.name})).await;
        }
        for run in runs {
            let _ = tokio::time::timeout(ENDS, run.await_over()).await;
        }
    }

    /// Warns of what others counted otherwise.
    pub async fn transmit(&self, state: &str, names: &[String]) -> Result<Vec<String>, Refused> {
        let _turn = self.turn.lock().await;
        let mut setup = self.setup.lock().await;
        let gangs = setup.gangs_of(names)?;
        match state {
            "start" => {
                let gateways = self.gateways(&setup, &gangs).await?;
                self.stop_all(&setup.going(&gangs)).await;
                for gang in &gangs {
                    for attempt in setup.cleared(*gang) {
                        self.hand.forget(&attempt.run).await;
                    }
                }
                self.begin(&mut setup, &gangs, &gateways).await.map(|()| Vec::new())
            }
            "stop" => {
                self.stop_all(&setup.going(&gangs)).await;
                let last = gangs.iter().filter_map(|gang| setup.gangs.get(*gang)?.attempts.last().cloned());
                settle(last.collect()).await;
                let doubts = self.doubts(&setup, &gangs).await;
                self.end_meters(&mut setup).await;
                Ok(doubts)
            }
            "pause" => self.pause(&setup, &gangs).await.map(|()| Vec::new()),
            "resume" => {
                let mut anew = Vec::new();
                for gang in gangs {
                    match setup.gangs.get(gang).and_then(Gang::going).cloned() {
                        Some(run) if run.state() == State::Paused => {
                            self.hand.call("job.resume", json!({"run": run.name})).await?;
                            in_time(&run, "go on", |run| run.state() != State::Paused).await?;
                        }
                        Some(_) => {}
                        None => anew.push(gang),
                    }
                }
                let gateways = self.gateways(&setup, &anew).await?;
                self.begin(&mut setup, &anew, &gateways).await.map(|()| Vec::new())
            }
            _ => Err(Refused::one("traffic.flow_transmit.state: must be start, stop, pause or resume")),
        }
    }

    /// What arrives now is nobody's any more, and the interfaces are others' again; unless something is sent, or was not looked at to its end.
    async fn end_meters(&self, setup: &mut Setup) {
        let mut attempts = setup.gangs.iter().flat_map(|gang| &gang.attempts);
        let is_unseen = attempts.any(|attempt| attempt.meters.values().any(|meter| attempt.is_unseen(meter)));
        if setup.goes_on() || is_unseen {
            return;
        }
        let going = setup.meters.iter().filter(|(_, meter)| !meter.is_over());
        let (ports, meters): (Vec<usize>, Vec<Arc<Run>>) =
            going.map(|(at, run)| (*at, Arc::clone(run))).unzip();
        self.stop_all(&meters).await;
        setup.ended.extend(ports);
    }

    async fn pause(&self, setup: &Setup, gangs: &[usize]) -> Result<(), Refused> {
        let mut errors = Vec::new();
        for run in gangs.iter().filter_map(|gang| setup.gangs.get(*gang)?.going()) {
            // Before its first snapshot nothing can be done to a run.
            in_time(run, "begin", |run| run.newest().0.is_some()).await?;
            if let Err(fault) = self.hand.call("job.pause", json!({"run": run.name})).await {
                errors.extend(Refused::from(fault).errors);
                continue;
            }
            in_time(run, "pause", |run| run.state() == State::Paused).await?;
        }
        if errors.is_empty() { Ok(()) } else { Err(Refused::of(errors)) }
    }

    /// Starts meters where nothing goes on, then the gangs, all at once.
    async fn begin(&self, setup: &mut Setup, gangs: &[usize], known: &Gateways) -> Result<(), Refused> {
        if gangs.is_empty() {
            return Ok(());
        }
        let parts = setup.parts();
        let wanted = u32::try_from(gangs.len()).unwrap_or(u32::MAX);
        let is_full = setup.next_slot.saturating_add(wanted) > parts;
        if setup.goes_on() {
            if is_full {
                let what =
                    format!("flows were started {parts} times while others went on: stop all flows once");
                return Err(Refused::one(what));
            }
            // What goes on is counted by these meters: they are not replaced meanwhile.
            if let Some(port) = setup.meters.iter().find(|(_, run)| run.is_over()).map(|(port, _)| *port) {
                let name = setup.config.ports.get(port).map_or("?", |port| port.name.as_str());
                let what =
                    format!("what arrives at port `{name}` is not counted any more: stop all flows once");
                return Err(Refused::one(what));
            }
        } else {
            self.measure_anew(setup).await?;
            if is_full {
                setup.next_slot = 0;
            }
        }
        let (mut started, mut runs) = (Vec::new(), Vec::new());
        let mut went = Ok(());
        for gang in gangs {
            match self.prepare(setup, *gang, parts, known).await {
                Ok(attempt) => {
                    runs.push(Arc::clone(&attempt.run));
                    started.push((*gang, attempt));
                }
                Err(refused) => {
                    went = Err(refused);
                    break;
                }
            }
        }
        if went.is_ok() {
            went = self.go(&runs).await;
        }
        // All or none.
        if let Err(refused) = went {
            self.abort_all(&runs).await;
            return Err(refused);
        }
        for (gang, attempt) in started {
            if let Some(gang) = setup.gangs.get_mut(gang) {
                gang.attempts.push(attempt);
            }
        }
        Ok(())
    }

    async fn abort_all(&self, runs: &[Arc<Run>]) {
        for run in runs {
            let _ = self.hand.call("job.abort", json!({"run": run.name})).await;
        }
        for run in runs {
            let _ = tokio::time::timeout(ENDS, run.await_over()).await;
            self.hand.forget(run).await;
        }
    }

    /// All are ready, and begin at one time.
    async fn go(&self, runs: &[Arc<Run>]) -> Result<(), Refused> {
        for run in runs {
            in_time(run, "get ready", |run| run.state() == State::Ready).await?;
        }
        let ahead = AHEAD + AHEAD_OF_EACH * u32::try_from(runs.len()).unwrap_or(1);
        let at = clocks::now(clocks::Clock::Tai) + ahead.as_nanos() as u64;
        let told = runs.iter().map(|run| self.hand.call("job.go", json!({"run": run.name, "start_at": at})));
        for answered in join_all(told).await {
            answered?;
        }
        // What goes wrong at the start is an error of the start.
        for run in runs {
            in_time(run, "begin", |run| run.newest().0.is_some()).await?;
        }
        Ok(())
    }

    /// A meter at each port.
    async fn measure_anew(&self, setup: &mut Setup) -> Result<(), Refused> {
        // What was sent to the end is counted to the end.
        let last = setup.gangs.iter().filter_map(|gang| gang.attempts.last().cloned());
        settle(last.collect()).await;
        let old: Vec<Arc<Run>> = setup.meters.values().cloned().collect();
        self.stop_all(&old).await;
        // What they counted may be told of flows that were stopped.
        let is_needed = |run: &Arc<Run>| {
            let attempts = setup.gangs.iter().flat_map(|gang| &gang.attempts);
            attempts.into_iter().any(|attempt| attempt.meters.values().any(|meter| Arc::ptr_eq(meter, run)))
        };
        for run in old.iter().filter(|run| !is_needed(run)) {
            self.hand.forget(run).await;
        }
        setup.meters = Meters::default();
        setup.sent_before.clear();
        setup.begun_at.clear();
        setup.ended.clear();
        let before = self.received(&setup.config).await;
        let mut meters = BTreeMap::new();
        for (at, port) in setup.config.ports.iter().enumerate() {
            let job = json!({"kind": "measure", "on": port.location, "streams": NUMBERS});
            let params = json!({
                "job": job, "closely": true, "snapshots_every_ns": METERS_EVERY_NS, "among": {"beside": true},
            });
            let begun = self.begin_meter(params).await;
            match begun {
                Ok(run) => drop(meters.insert(at, run)),
                Err(refused) => {
                    let runs: Vec<Arc<Run>> = meters.values().cloned().collect();
                    self.abort_all(&runs).await;
                    let errors = refused
                        .errors
                        .iter()
                        .map(|text| format!("ports[{at}] ({}): {text}", port.name))
                        .collect();
                    return Err(Refused { status: refused.status, errors });
                }
            }
        }
        setup.meters = Arc::new(meters);
        let after = self.received(&setup.config).await;
        let both = |(port, before): (usize, u64)| Some((port, [before, *after.get(&port)?]));
        setup.begun_at = before.into_iter().filter_map(both).collect();
        Ok(())
    }

    /// Frames that the ports' interfaces have received, by their own counters.
    async fn received(&self, config: &Config) -> BTreeMap<usize, u64> {
        let names: Vec<&str> = config.ports.iter().map(|port| port.location.as_str()).collect();
        let asked = json!({"interfaces": names, "diagnosis": false});
        let host = self.hand.call("host", asked).await.unwrap_or_default();
        let told = host["named"].as_array().cloned().unwrap_or_default();
        let counted = |interface: &Value| interface.pointer("/counters/rx_frames")?.as_u64();
        told.iter().enumerate().filter_map(|(at, interface)| Some((at, counted(interface)?))).collect()
    }

    /// What others counted otherwise, once nothing is sent any more: the sending runs' own comparisons, and the interfaces' counters of what arrived.
    async fn doubts(&self, setup: &Setup, gangs: &[usize]) -> Vec<String> {
        let mut doubts = Vec::new();
        for gang in gangs.iter().filter_map(|gang| setup.gangs.get(*gang)) {
            let names = gang.flows.iter().filter_map(|flow| setup.config.flows.get(*flow));
            let name = names.map(|flow| flow.name.as_str()).next().unwrap_or("?");
            let more = if gang.flows.len() > 1 { " and those sent with it" } else { "" };
            for report in gang.attempts.iter().filter_map(|attempt| attempt.run.report()) {
                let reasons = report["result"]["verdict"]["reasons"].as_array().cloned().unwrap_or_default();
                let texts = reasons.iter().filter_map(Value::as_str);
                doubts.extend(texts.map(|text| format!("flow `{name}`{more}: {text}")));
            }
        }
        if setup.goes_on() {
            return doubts;
        }
        let mut differing = Vec::new();
        for _ in 0..COMPARES {
            let now = self.received(&setup.config).await;
            differing = setup.differing(&now);
            if differing.is_empty() {
                break;
            }
            // What arrived between the two looks is seen by both the next time.
            tokio::time::sleep(Duration::from_nanos(2 * METERS_EVERY_NS)).await;
        }
        doubts.extend(differing);
        doubts
    }

    /// Starts a run that looks on, and waits until it does.
    async fn begin_meter(&self, params: Value) -> Result<Arc<Run>, Refused> {
        let run = self.hand.start(params).await?;
        let begun = in_time(&run, "begin", Run::has_begun).await;
        if let Err(refused) = begun {
            self.abort_all(std::slice::from_ref(&run)).await;
            return Err(refused);
        }
        Ok(run)
    }

    /// A run for a gang, which is held.
    async fn prepare(
        &self,
        setup: &mut Setup,
        gang: usize,
        parts: u32,
        known: &Gateways,
    ) -> Result<Attempt, Refused> {
        let flows: Vec<_> = setup
            .gangs
            .get(gang)
            .into_iter()
            .flat_map(|gang| &gang.flows)
            .filter_map(|flow| setup.config.flows.get(*flow))
            .collect();
        let port = flows.first().and_then(|flow| setup.config.ports.get(flow.tx));
        let port = port.ok_or_else(|| internal("a gang without flows"))?;
        let streams: Vec<Value> =
            flows.iter().map(|flow| known.stream(&setup.config, flow)).collect::<Result<_, _>>()?;
        let pps: f64 = flows.iter().map(|flow| flow.pps).sum();
        let text = json!({ "streams": streams }).to_string();
        let program = if streams.len() > 1 && pps < f64::MAX { compiled(&text) } else { None };
        let content = self.hand.content("flows.yaml", text.as_bytes()).await?;
        let mut job = json!({
            "kind": "send",
            "what": "flows.yaml",
            "links": [{"on": port.location}],
        });
        if pps <= PAUSABLE_PPS {
            job["engine"] = "packet".into();
        }
        let slot = setup.next_slot;
        setup.next_slot += 1;
        let params = json!({
            "job": job,
            "contents": {"flows.yaml": content["content"]},
            "among": {"hold": true, "measured": true, "beside": true, "part": [slot, parts]},
        });
        let started = self.hand.start(params).await;
        // The run has its own by now.
        let _ = self.hand.call("content.forget", json!({"content": content["content"]})).await;
        let run = started?;
        Ok(Attempt { run, meters: Arc::clone(&setup.meters), slot, of: parts, pps, program })
    }

    pub async fn capture(&self, state: &str, names: &[String]) -> Result<(), Refused> {
        let _turn = self.turn.lock().await;
        let mut setup = self.setup.lock().await;
        let ports = setup.ports_of(names)?;
        let ports: Vec<usize> = match names.is_empty() {
            true => ports.into_iter().filter(|port| capture_of(&setup, *port).is_some()).collect(),
            false => ports,
        };
        for at in ports {
            match state {
                "start" => {
                    let Some(capture) = capture_of(&setup, at) else {
                        let name = setup.config.ports.get(at).map_or("?", |port| port.name.as_str());
                        return Err(Refused::one(format!(
                            "port_names: no `captures` of the configuration names `{name}`"
                        )));
                    };
                    if let Some(old) = setup.captures.remove(&at) {
                        self.stop_all(std::slice::from_ref(&old)).await;
                        self.hand.forget(&old).await;
                    }
                    let Some(port) = setup.config.ports.get(at) else { continue };
                    let mut file = json!({"file": "captured.pcapng"});
                    if let Some(snap) = capture.snap {
                        file["snap"] = snap.into();
                    }
                    // By a packet socket, beside the meter that counts.
                    let job =
                        json!({"kind": "measure", "on": port.location, "how": "packet", "capture": file});
                    let params = json!({"job": job, "among": {"beside": true}});
                    let run = self.begin_meter(params).await?;
                    setup.captures.insert(at, run);
                }
                "stop" => {
                    if let Some(run) = setup.captures.get(&at) {
                        self.stop_all(std::slice::from_ref(run)).await;
                    }
                }
                _ => return Err(Refused::one("port.capture.state: must be start or stop")),
            }
        }
        Ok(())
    }

    /// The bytes of a capture, which this ends.
    pub async fn captured(&self, name: &str) -> Result<Vec<u8>, Refused> {
        let _turn = self.turn.lock().await;
        let setup = self.setup.lock().await;
        let port = setup.ports_of(&[name.to_owned()])?;
        let port = port.first().copied().unwrap_or(usize::MAX);
        let capture = capture_of(&setup, port).ok_or_else(|| {
            Refused::one(format!("port_name: no `captures` of the configuration names `{name}`"))
        })?;
        let run = setup.captures.get(&port).cloned();
        let run = run.ok_or_else(|| {
            Refused::one(format!("port_name: nothing was captured at `{name}`: start it first"))
        })?;
        drop(setup);
        self.stop_all(std::slice::from_ref(&run)).await;
        if let Some(fault) = run.error() {
            return Err(fault.into());
        }
        let bytes = self.hand.file(&run.name, "captured.pcapng").await?;
        let made = tokio::task::spawn_blocking(move || super::captured::with_fcs(bytes, capture.pcapng));
        made.await.map_err(|error| internal(error.to_string()))?.map_err(internal)
    }

    /// Sets links up or down.
    pub async fn link(&self, state: &str, names: &[String]) -> Result<(), Refused> {
        let _turn = self.turn.lock().await;
        let mut setup = self.setup.lock().await;
        let up = match state {
            "up" => true,
            "down" => false,
            _ => return Err(Refused::one("port.link.state: must be up or down")),
        };
        let mut errors = Vec::new();
        for at in setup.ports_of(names)? {
            let Some(port) = setup.config.ports.get(at).cloned() else { continue };
            match self.hand.call("link.set", json!({"on": port.location, "up": up})).await {
                Ok(_) if up => drop(setup.down.remove(&at)),
                Ok(_) => drop(setup.down.insert(at)),
                Err(fault) => {
                    let told = Refused::from(fault).errors.join(": ");
                    errors.push(format!("port.link.port_names: `{}`: {told}", port.name));
                }
            }
        }
        setup.looked = None;
        if errors.is_empty() { Ok(()) } else { Err(Refused::of(errors)) }
    }

    /// Looks whether the ports are up, if nobody did within the last second.
    pub async fn look_at_links(&self) {
        let mut setup = self.setup.lock().await;
        if setup.looked.is_some_and(|at| at.elapsed() < LOOKS) || setup.config.ports.is_empty() {
            return;
        }
        setup.looked = Some(Instant::now());
        let names: Vec<&str> = setup.config.ports.iter().map(|port| port.location.as_str()).collect();
        let asked = json!({"interfaces": names, "diagnosis": false});
        let Ok(host) = self.hand.call("host", asked).await else {
            setup.links.clear();
            return;
        };
        let told = host["named"].as_array().cloned().unwrap_or_default();
        setup.links = told
            .iter()
            .enumerate()
            .filter_map(|(at, interface)| Some((at, interface.get("running")?.as_bool()?)))
            .collect();
    }

    /// Ports whose capture goes on.
    pub fn capturing(setup: &Setup, port: usize) -> bool {
        setup.captures.get(&port).is_some_and(|run| !run.is_over())
    }

    /// Changes rates and sizes of flows.
    pub async fn update(&self, changes: Vec<Change>) -> Result<Vec<String>, Refused> {
        let _turn = self.turn.lock().await;
        let mut value = self.setup.lock().await.value.clone();
        let mut errors = Vec::new();
        let mut sized = Vec::new();
        for (name, parts) in &changes {
            let mut flows = value["flows"].as_array_mut().into_iter().flatten();
            let Some(flow) = flows.find(|flow| flow["name"] == name.as_str()) else {
                errors.push(format!("flows.flows: there is no flow `{}`", report::units::printable(name)));
                continue;
            };
            for (property, new) in parts {
                flow[property] = new.clone();
                if property == "size" {
                    sized.push(name.clone());
                }
            }
        }
        let (config, findings) = Config::read(&value);
        errors.extend(findings.offences());
        let mut setup = self.setup.lock().await;
        let goes_on = |name: &String| {
            let mut gangs = setup.gangs.iter().filter(|gang| gang.going().is_some());
            gangs.any(|gang| {
                gang.flows.iter().any(|at| setup.config.flows.get(*at).is_some_and(|flow| flow.name == *name))
            })
        };
        if let Some(name) = sized.iter().find(|name| goes_on(name)) {
            errors.push(format!(
                "flows.flows: the size of `{name}` cannot be changed while it is sent: stop it first"
            ));
        }
        let names: Vec<String> = changes.into_iter().map(|(name, _)| name).collect();
        let (rates, not_exact) = setup.new_rates(&config, &names, &mut errors);
        if !errors.is_empty() {
            return Err(Refused::of(errors));
        }
        for (run, percent) in rates {
            self.hand.call("job.rate", json!({"run": run, "percent": percent})).await?;
        }
        let gangs = std::mem::take(&mut setup.config.gangs);
        (setup.value, setup.config) = (value, config);
        setup.config.gangs = gangs;
        Ok(findings.warnings().into_iter().chain(not_exact).collect())
    }

    /// Adds to the lists of the configuration.
    pub async fn append(&self, more: Vec<(&str, Value)>) -> Result<Vec<String>, Refused> {
        let _turn = self.turn.lock().await;
        let mut value = self.quiet_value().await?;
        for (list, item) in more {
            match value[list].as_array_mut() {
                Some(items) => items.push(item),
                None => value[list] = json!([item]),
            }
        }
        self.replace(value).await
    }

    /// Takes flows out of the configuration.
    pub async fn delete(&self, names: &[String]) -> Result<Vec<String>, Refused> {
        let _turn = self.turn.lock().await;
        let mut value = self.quiet_value().await?;
        let there = |name: &String, value: &Value| {
            value["flows"].as_array().into_iter().flatten().any(|flow| flow["name"] == name.as_str())
        };
        let errors: Vec<String> = names
            .iter()
            .filter(|name| !there(name, &value))
            .map(|name| format!("config_delete_list: there is no flow `{}`", report::units::printable(name)))
            .collect();
        if !errors.is_empty() {
            return Err(Refused::of(errors));
        }
        if let Some(flows) = value["flows"].as_array_mut() {
            flows.retain(|flow| !names.iter().any(|name| flow["name"] == name.as_str()));
        }
        self.replace(value).await
    }

    /// The configuration, where nothing of it is sent.
    async fn quiet_value(&self) -> Result<Value, Refused> {
        let setup = self.setup.lock().await;
        if setup.goes_on() {
            return Err(Refused::one("flows are sent: stop them before the configuration gets others"));
        }
        Ok(if setup.value.is_null() { json!({}) } else { setup.value.clone() })
    }
}

fn compiled(text: &str) -> Option<Arc<Program>> {
    let context = Context { sign: Sign::WhereRoom, ..Context::default() };
    Some(Arc::new(scenario::parse(text, "flows").ok()?.compile(&context).ok()?.program))
}

/// What is added to a list of the configuration, or changed in a flow.
pub(crate) type Change = (String, Vec<(String, Value)>);

/// Waits until what these sent is counted.
async fn settle(attempts: Vec<Attempt>) {
    let until = Instant::now() + SETTLES;
    while !attempts.iter().all(Attempt::is_settled) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a run is as wanted. An error if it fails before, or does not come to it.
async fn in_time(run: &Run, to: &str, is: impl Fn(&Run) -> bool) -> Result<(), Refused> {
    let came = tokio::time::timeout(BEGINS, run.await_until(is)).await.is_ok();
    match run.error() {
        Some(fault) => Err(fault.into()),
        None if !came => Err(internal(format!("{} did not {to} within {} s", run.name, BEGINS.as_secs()))),
        None => Ok(()),
    }
}

fn parts_of(config: &Config) -> u32 {
    let longest = config.gangs.iter().map(Vec::len).max().unwrap_or(1).max(1);
    (NUMBERS / u32::try_from(longest).unwrap_or(NUMBERS)).clamp(1, PARTS)
}

fn capture_of(setup: &Setup, port: usize) -> Option<Capture> {
    setup.config.ports.get(port)?.capture.clone()
}

pub(super) fn internal(what: impl Into<String>) -> Refused {
    Refused { status: StatusCode::INTERNAL_SERVER_ERROR, errors: vec![what.into()] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counters_that_cannot_both_be_right_are_named() {
        let meter = Run::new("r1".to_owned(), json!({}), &json!({}), json!([]), None);
        meter.moment(1, json!({"phase": "running", "rx": {"frames": 90, "bytes": 5400}}));
        // Before its meter began its interface had 10 frames, and when all of them had begun 12.
        let begun_at = [(0, [10, 12])].into();
        let setup = Setup { meters: Arc::new([(0, Arc::new(meter))].into()), begun_at, ..Setup::default() };
        let named = |now: u64| setup.differing(&[(0, now)].into()).len();
        assert_eq!([named(100), named(102)], [0, 0]);
        assert_eq!([named(99), named(103)], [1, 1]);
        assert_eq!(named(10), 0, "a driver that does not count what XDP takes");
        assert!(setup.differing(&[].into()).is_empty());
    }
}
