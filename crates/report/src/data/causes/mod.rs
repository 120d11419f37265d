//! What most likely lost frames, or kept the sender from its rate, and what to type next: by what the result has of counters,
//! intervals and latency. Each cause names its evidence; where there is none it says so, because a guess costs a reader more
//! time than no answer.
//!
//! Of a run it is derived when its result is shown. Of a trial it is kept ([`crate::data::search::Trial::cause`]), because a search
//! has hundreds, and keeps the evidence of none; what stopped a search follows from those (module `search`).

mod drops;
mod search;

use crate::data::model::{Core, HostCounter, Interval, Report, Totals, Tx, Verdict};
use crate::data::note::Code;
use crate::data::units::{self, printable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use search::said;
pub use search::{Stopped, StoppedAt, of_flows, stopped};

/// Bytes of each frame on the wire beside those of layer 2 without FCS.
const ON_THE_WIRE: f64 = 24.0;
/// Counters of an end are read one after the other while frames arrive: of so many frames they may differ by this.
fn about(frames: u64) -> u64 {
    (frames / 50).max(8)
}

/// Interfaces of a lab's device are called so in results, because the host has none of these names.
pub const OF_THE_LAB: &str = "the lab's ";

/// A cause with what to do next; both are sentences without their full stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The kind of cause.
    pub by: By,
    /// What is seen, and what follows.
    pub said: String,
    /// The next command to type; left out where nothing is to be done with a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// The counter that rose most, where the cause is `counter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<HostCounter>,
}

/// What frames were lost by, or a sender was limited by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The kernel dropped them, and said where and why.
    Dropped,
    /// A counter of losses rose.
    Counter,
    /// Nothing reached the receiver's interface.
    Nothing,
    /// The receiver's machine, behind its interface.
    Receiver,
    /// Bursts of the sender, after it had been held up.
    Bursts,
    /// A full queue of the device or the way, as what arrived shows.
    Queue,
    /// The device or the way, in an unknown manner.
    Device,
    /// A limit of the goal other than loss: latency, its variation, order.
    Goal,
    /// The sender's link carries no more.
    Link,
    /// The sender's interface took no more.
    Interface,
    /// The sender's cores were busy.
    Cpu,
    /// The sender's machine held it up.
    Machine,
    /// The cause is not known.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Cause {
    fn new(by: By, said: impl Into<String>, next: impl Into<String>) -> Self {
        Self { by, said: said.into(), next: next.into(), counter: None }
    }

    /// In a few words, for a table.
    pub(crate) fn brief(&self) -> String {
        match (&self.counter, self.by) {
            (Some(counter), _) => format!("{}: {}", printable(&counter.place), printable(&counter.name)),
            (None, By::Counter | By::Unknown) => "is not known".to_owned(),
            (None, By::Dropped) => "dropped by this kernel".to_owned(),
            (None, By::Nothing) => "nothing reached the receiver".to_owned(),
            (None, By::Receiver) => "behind the receiver's interface".to_owned(),
            (None, By::Bursts) => "bursts after a stall".to_owned(),
            (None, By::Queue) => "a full queue on the way".to_owned(),
            (None, By::Device) => "the device or the way".to_owned(),
            (None, By::Goal) => "the goal".to_owned(),
            (None, By::Link) => "the sender's link".to_owned(),
            (None, By::Interface) => "the sender's interface".to_owned(),
            (None, By::Cpu) => "the sender's CPU".to_owned(),
            (None, By::Machine) => "the sender was held up".to_owned(),
        }
    }

    /// Is it the same in kind as another one, whatever the figures?
    fn is_like(&self, other: &Cause) -> bool {
        let which = |cause: &Cause| cause.counter.as_ref().map(|c| (c.place.clone(), c.name.clone()));
        self.by == other.by && which(self) == which(other)
    }
}

/// In a lab `netdyno lab -- COMMAND` runs it beside this interface; others are at other hosts of the lab.
const SENDER_OF_A_LAB: &str = "tx0";

/// Where a run was done, as far as what to type next depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Where {
    /// Between interfaces that can be named again.
    #[default]
    Here,
    /// In a lab of its own, whose interfaces are gone with it.
    InALab,
    /// By agents, at interfaces of theirs.
    AtAgents,
}

impl Where {
    /// Of a run, by its job.
    pub(crate) fn of(report: &Report) -> Where {
        let lab = report.requested.as_ref().and_then(|job| job.get("lab"));
        let has_one = report.command == "demo" || lab.is_some_and(|lab| !lab.is_null());
        match has_one {
            true => Where::InALab,
            false if report.result.agents.is_empty() => Where::Here,
            false => Where::AtAgents,
        }
    }

    /// The command that looks at this machine, and at an interface where that can be named: one that works where its reader is.
    pub(crate) fn doctor_command(self, interface: &str) -> String {
        match self {
            Where::Here => format!("`netdyno doctor {interface}`").replace(" `", "`"),
            Where::InALab if interface == SENDER_OF_A_LAB => {
                format!("`netdyno lab -- netdyno doctor {interface}`")
            }
            Where::InALab => "`netdyno doctor`".to_owned(),
            Where::AtAgents => "`netdyno agents check`, with the same agents,".to_owned(),
        }
    }

    fn doctor(self, interface: &str, says: &str) -> String {
        format!("{} says {says}", self.doctor_command(interface))
    }

    fn search(self, from: &str, to: &str) -> String {
        let between = match self {
            Where::Here => format!("`.on` {from} and `.measure` {to}"),
            Where::InALab => "the same `.lab`".to_owned(),
            Where::AtAgents => "the same agents".to_owned(),
        };
        format!("`netdyno search throughput` with {between} finds the load where loss begins")
    }
}

/// Of a run that was short: of its loss, else of its rate. `None` for what was done as asked, and where the verdict's own
/// reasons say all.
pub fn of(report: &Report) -> Option<Cause> {
    let result = &report.result;
    let Verdict::Short { reasons } = &result.verdict else { return None };
    if report.command == "trial" {
        return search::of_trials(&result.trials);
    }
    let is_a_run = result.search.is_none() && result.trials.is_empty() && result.tx.is_some();
    // A link that was down, frames that were refused: those reasons are causes themselves.
    let told = |code: Code| reasons.iter().any(|reason| reason.code == code);
    if !is_a_run || told(Code::LinkLost) {
        return None;
    }
    if told(Code::FramesLost) && result.loss.is_some_and(|loss| loss.learnt_frames.is_none()) {
        return loss(report, Where::of(report));
    }
    match told(Code::RateNotReached) && !told(Code::FramesRefused) {
        true => rate(report, Where::of(report)),
        false => None,
    }
}

/// Of a run's loss.
pub fn loss(report: &Report, place: Where) -> Option<Cause> {
    let result = &report.result;
    let (lost, tx) = (result.loss.filter(|loss| loss.frames > 0)?, result.tx.as_ref()?);
    let (sent, arrived) = (tx.totals.frames, result.rx.as_ref().map_or(0, |rx| rx.totals.frames));
    let (from, to) = ends(report);
    let search = place.search(&from, &to);
    let counter = by_counter(&result.counters, lost.frames, place, &search);
    if let Some(found) = drops::of(result, lost.frames, counter.as_ref()).or(counter) {
        return Some(found);
    }
    if result.round_trip && lost.ratio >= 1.0 {
        // The verdict has named the mend.
        return None;
    }
    if let Some(blind) = result.rx.as_ref().and_then(|rx| rx.blind_because.as_ref()) {
        // Whoever takes frames before the meter explains what is missing there, and nothing behind the interface does.
        return Some(Cause::new(By::Receiver, printable(blind), ""));
    }
    let counted = |name: &str| {
        result
            .counters
            .iter()
            .find(|c| c.place == to && c.source == "interface" && c.name == name)
            .map(|c| c.rise)
    };
    // A counter that did not rise is not listed; where nothing is listed nobody has looked.
    // (Here both ends are looked at together, and each agent looks at its own.)
    let together = place != Where::AtAgents;
    let looked = result.counters.iter().any(|c| c.place == to || together && c.place == from);
    let at_the_end = counted("rx_packets").or(looked.then_some(0));
    let left = tx.interface_counters.iter().all(|c| c.missing_frames == 0);
    // Of several ports' frames it is not known which of them came to which.
    let pair = from != to && result.ports.is_empty();
    let Some(at_the_end) = at_the_end.filter(|_| pair && left) else {
        let said = match result.ports.is_empty() {
            true => "no counter of either end that knows these frames was read",
            false => "they went between several ports, and no counter of losses rose",
        };
        return Some(Cause::new(By::Unknown, format!("which part lost them is not known: {said}"), search));
    };
    if arrived == 0 && at_the_end <= about(sent) {
        let said = format!(
            "nothing reached {to} (its rx_packets rose by {}), though {from} transmitted all: the frames were lost between them, \
             or went elsewhere (the cables, and whether a device passes on these addresses, VLANs and types)",
            units::count(at_the_end)
        );
        let next = match place {
            Where::Here => format!("`netdyno measure {to}` shows what arrives there at all"),
            Where::InALab | Where::AtAgents => String::new(),
        };
        return Some(Cause::new(By::Nothing, said, next));
    }
    if at_the_end.saturating_add(about(sent).min(lost.frames / 2)) >= sent {
        let said = format!(
            "{to} counted them all (rx_packets rose by {}, {} were sent): they were lost behind the interface, in this machine's \
             receiving, or came with other contents than were sent",
            units::count(at_the_end),
            units::counted(sent, "frame")
        );
        return Some(Cause::new(By::Receiver, said, place.doctor(&to, "how to receive faster")));
    }
    if at_the_end.abs_diff(arrived) > about(arrived).max(lost.frames / 10) {
        let said = format!(
            "which part lost them is not known: {} were sent, {to} counted {} and {} were measured, and no counter of losses rose",
            units::counted(sent, "frame"),
            units::count(at_the_end),
            units::count(arrived)
        );
        return Some(Cause::new(By::Unknown, said, search));
    }
    let between = format!(
        "{from} transmitted all and no counter of losses rose at {from} or {to}: the device or the way between them lost them"
    );
    if let Some(apart) = of_streams(report) {
        return Some(Cause::new(By::Device, format!("{between}; {apart}"), ""));
    }
    if let Some(burst) = in_bursts(report) {
        return Some(Cause::new(
            By::Bursts,
            format!("{between}; {burst}"),
            "`netdyno doctor` says how this sender is held up less",
        ));
    }
    Some(of_the_way(report, lost.frames, &between, search))
}

/// What the way between the ends lost, by when and in which order.
fn of_the_way(report: &Report, lost: u64, between: &str, search: String) -> Cause {
    match (drain(report), hurried(report, lost)) {
        (Some(Drain::Queue(why)), _) => Cause::new(By::Queue, format!("{between}; {why}"), search),
        (Some(Drain::Steady(why)), _) => {
            let rate = report
                .result
                .tx
                .as_ref()
                .map_or(0.0, |tx| tx.intended_frames_per_second.unwrap_or(tx.totals.frames_per_second));
            let half = rate / 2.0;
            let again = format!(
                "the same with `.rate` {half:.0}pps distinguishes a limit (no loss then) from loss by chance (the same share)"
            );
            Cause::new(By::Device, format!("{between}; {why}"), again)
        }
        (None, Some(hurried)) => Cause::new(
            By::Unknown,
            format!("{between}, or a queue there was too short for this sender's bursts: {hurried}"),
            "`netdyno trial` sends before all other programs, which distinguishes the two",
        ),
        (None, None) => Cause::new(
            By::Device,
            format!(
                "{between}, and its own counters say why (on Linux: `ip -s link`, `tc -s qdisc`, `ethtool -S` there)"
            ),
            search,
        ),
    }
}

/// A counter that rose by so much that it explains the loss of so many frames.
fn by_counter(counters: &[HostCounter], lost: u64, place: Where, search: &str) -> Option<Cause> {
    let gone = |c: &HostCounter| c.rise.saturating_sub(c.own_frames.unwrap_or(0));
    // What counts a few explains a few.
    let explains = |c: &&HostCounter| c.explains.is_some() && gone(c).saturating_mul(10) >= lost;
    let telling: Vec<&HostCounter> = counters.iter().filter(explains).collect();
    let most = telling.iter().max_by_key(|c| gone(c))?;
    let (end, name) = (printable(&most.place), printable(&most.name));
    // Ports of one device lose alike what goes between all of them.
    let alike = |c: &&&HostCounter| {
        c.place.starts_with(OF_THE_LAB) && (&c.source, &c.name) == (&most.source, &most.name)
    };
    let others = telling.iter().filter(alike).filter(|c| c.place != most.place);
    let (mut frames, mut ends, mut whose) = (gone(most), end.clone(), "its");
    for other in others.filter(|_| end.starts_with(OF_THE_LAB)) {
        frames = frames.saturating_add(gone(other));
        ends += &format!(", {}", printable(&other.place));
        whose = "their";
    }
    let share = (frames as f64 / lost.max(1) as f64).min(1.0);
    let why = most.explains.as_deref().unwrap_or_default();
    let said = format!(
        "{ends} dropped {} ({} of the loss): {whose} {name} rose; {}",
        units::counted(frames, "frame"),
        units::percent(share),
        printable(why)
    );
    let next = match end.as_str() {
        "this machine" => "`netdyno doctor` says what this machine can do better".to_owned(),
        end if end.starts_with(OF_THE_LAB) => search.to_owned(),
        end => place.doctor(end, "what to change there"),
    };
    Some(Cause { counter: Some((*most).clone()), ..Cause::new(By::Counter, said, next) })
}

/// The ends by name: where frames left, where they were measured.
fn ends(report: &Report) -> (String, String) {
    let of = |role: &str| {
        let found = report
            .environment
            .interfaces
            .iter()
            .find(|i| i.role.as_deref().is_some_and(|r| r.contains(role)));
        found.map(|i| printable(&i.name))
    };
    let named = |n: usize| report.resolved.interfaces.get(n).map(|name| printable(name));
    let from = named(0).or_else(|| of("send")).unwrap_or_else(|| "the sender's interface".to_owned());
    let to = named(1).or_else(|| of("measure")).unwrap_or_else(|| from.clone());
    (from, to)
}

/// Did some streams lose all or nearly all of their frames and others none, which no full queue and no chance does?
fn of_streams(report: &Report) -> Option<String> {
    // Of a few frames that can be chance.
    const ENOUGH: u64 = 20;
    let counted: Vec<_> = report.streams.iter().filter_map(|s| Some((s, s.tx_frames?))).collect();
    let (gone, rest): (Vec<_>, Vec<_>) =
        counted.into_iter().partition(|(s, sent)| *sent > 0 && s.lost_frames >= sent - sent / 10);
    let sent: u64 = gone.iter().fold(0, |all, (_, sent)| all.saturating_add(*sent));
    let whole = rest.iter().filter(|(s, sent)| *sent > 0 && s.lost_frames == 0).count();
    let spared = rest.iter().all(|(s, _)| s.lost_frames == 0);
    if sent < ENOUGH || whole == 0 || !spared {
        return None;
    }
    let lost = gone.iter().fold(0, |all: u64, (s, _)| all.saturating_add(s.lost_frames));
    let name = |s: &crate::data::model::Stream| {
        s.name
            .as_ref()
            .map_or_else(|| s.stream.to_string(), |name| format!("{} ({})", s.stream, printable(name)))
    };
    let who = match gone.as_slice() {
        [(one, _)] => format!("stream {}", name(one)),
        [(first, _), more @ ..] => {
            format!("stream {} and {} like it", name(first), units::counted(more.len() as u64, "other"))
        }
        [] => return None,
    };
    Some(format!(
        "{who} lost {} of {}, and {} none: these frames are treated otherwise than the others (their addresses, VLAN, type, ports or size: a \
         filter, a route that lacks, an MTU)",
        units::count(lost),
        units::counted(sent, "frame"),
        units::counted(whole as u64, "other stream"),
    ))
}

/// Were frames lost only where this sender caught up after it had been held up?
fn in_bursts(report: &Report) -> Option<String> {
    let stalls = report.result.pacing.as_ref()?.catch_up.filter(|c| c.stalls > 0 && c.frames > 0)?;
    let late = |i: &&Interval| i.late_frames.is_some_and(|n| n > 0);
    // As floating point: a result is read from a file, and may say anything.
    let count = |i: &Interval| i.lost_frames.map_or(0.0, |n| n as f64);
    let all: f64 = report.intervals.iter().map(count).sum();
    let in_late: f64 = report.intervals.iter().filter(late).map(count).sum();
    // It says something only if there was time that went otherwise.
    let on_time = report.intervals.iter().filter(|i| !late(i) && i.tx_frames.is_some_and(|n| n > 0)).count();
    (all > 0.0 && on_time >= 3 && on_time * 2 >= report.intervals.len() && in_late >= all * 0.9).then(|| {
        format!(
            "{} of the loss was while this sender caught up after {} of up to {}, faster than asked: a queue on the way was too \
             short for that burst",
            units::percent(in_late / all),
            units::counted(stalls.stalls, "stall"),
            units::time(stalls.longest_stall_ns)
        )
    })
}

/// Did this sender send at least as many frames faster than asked as were lost?
fn hurried(report: &Report, lost: u64) -> Option<String> {
    let stalls = report.result.pacing.as_ref()?.catch_up.filter(|c| c.stalls > 0 && c.frames >= lost)?;
    Some(format!(
        "after {} of up to {} it sent {} faster than asked",
        units::counted(stalls.stalls, "stall"),
        units::time(stalls.longest_stall_ns),
        units::counted(stalls.frames, "frame")
    ))
}

/// What a loss looks like from its far end.
enum Drain {
    /// A queue that was full.
    Queue(String),
    /// A steady part of what was sent: what that comes from is not to be seen.
    Steady(String),
}

/// Does what arrived look like the drain of a full queue: steady, and late by much more than the quickest frames?
fn drain(report: &Report) -> Option<Drain> {
    let lossy: Vec<&Interval> =
        report.intervals.iter().filter(|i| i.lost_frames.is_some_and(|n| n > 0)).collect();
    // First and last are of a queue that fills and runs empty.
    let middle = lossy.get(1..lossy.len().checked_sub(1)?)?;
    let rates: Vec<_> = middle.iter().filter_map(|i| i.rx()).collect();
    if rates.len() < 3 {
        return None;
    }
    let mean = |of: fn(&Totals) -> f64| rates.iter().map(of).sum::<f64>() / rates.len() as f64;
    let (frames, bits) = (mean(|t| t.frames_per_second), mean(|t| t.bits_per_second));
    let square = rates.iter().map(|t| (t.frames_per_second - frames).powi(2)).sum::<f64>();
    if frames <= 0.0 || (square / rates.len() as f64).sqrt() > frames * 0.1 {
        return None;
    }
    let steady =
        format!("what arrived came at a steady {} ({})", units::frame_rate(frames), units::bit_rate(bits));
    let least = report.result.latency_ns.as_ref().map(|d| d.min)?;
    let waited = lossy.iter().filter_map(|i| i.latency_p50_ns).max()?;
    if waited <= least.saturating_mul(4).max(least.saturating_add(20_000)) {
        return Some(Drain::Steady(steady));
    }
    Some(Drain::Queue(format!(
        "{steady}, half of it after {} or more, where the quickest took {}: a full queue before a bottleneck of about that rate",
        units::time(waited),
        units::time(least)
    )))
}

/// The share of what was due that did not leave, or not in time.
fn missing(tx: &Tx) -> f64 {
    let due = tx.due_not_sent_frames.unwrap_or(0) as f64;
    let unsent = if due > 0.0 { due / (due + tx.totals.frames as f64) } else { 0.0 };
    let asked = tx.intended_frames_per_second.filter(|asked| *asked > 0.0);
    let slower = asked.map_or(0.0, |asked| 1.0 - tx.totals.frames_per_second / asked);
    unsent.max(slower)
}

/// Of a rate that was not reached.
pub fn rate(report: &Report, place: Where) -> Option<Cause> {
    let tx = report.result.tx.as_ref()?;
    let (from, _) = ends(report);
    let doctor = place.doctor(&from, "what this machine can reach and what to change");
    if let Some(cause) = link(report, tx, &from) {
        return Some(cause);
    }
    // A core that waits awake for frames' times is not busy.
    let busy: Vec<f64> = tx.cores.iter().filter_map(Core::busy_ratio).collect();
    let most = |ratios: &[f64]| ratios.iter().copied().fold(0.0, f64::max);
    let (busiest, others) =
        (most(&busy), most(&tx.cores.iter().filter_map(|core| core.others_ratio).collect::<Vec<_>>()));
    let retried = tx.retried_enobufs.saturating_add(tx.retried_eagain);
    if retried.saturating_mul(100) > tx.totals.frames {
        let said = format!(
            "the interface limits: {from} took frames no faster, its queue was full {}",
            units::counted(retried, "time")
        );
        return Some(Cause::new(By::Interface, said, doctor));
    }
    let stalls = report.result.pacing.as_ref().and_then(|p| p.catch_up);
    // Others explain as much as they took: a core that is busy all the same, and lacks far more, is too slow.
    let too_slow = busiest >= BUSY && others < missing(tx) / 2.0;
    if others >= OTHERS && !too_slow {
        let cores = if tx.cores.len() == 1 { "its CPU" } else { "a CPU of its" };
        let held_up = stalls.filter(|c| c.stalls > 0).map_or_else(String::new, |c| {
            format!(
                "; it was held up {}, up to {}",
                units::counted(c.stalls, "time"),
                units::time(c.longest_stall_ns)
            )
        });
        let said = format!(
            "this machine limits: other programs had {cores} for {} of the time, while the sender was ready to run{held_up}",
            units::percent(others.min(1.0))
        );
        return Some(Cause::new(By::Machine, said, before_others(report, doctor)));
    }
    if busiest >= BUSY {
        let cores = units::counted(tx.cores.len() as u64, "sending core");
        let beside = match others {
            few if few < OTHERS => String::new(),
            others => format!("; other programs had {} of it", units::percent(others.min(1.0))),
        };
        let said = format!(
            "the CPU limits: {cores} busy for {} of the time, with engine {}{beside}",
            units::percent(busiest.min(1.0)),
            printable(&tx.engine)
        );
        return Some(Cause::new(
            By::Cpu,
            said,
            format!("add sending cores (`.cores`), or take another `.engine`; {doctor}"),
        ));
    }
    // Who falls behind once and never catches up may be slow, and not held up: unless most of its CPU was left over.
    let idle = !busy.is_empty() && busiest < 0.5;
    if let Some(stalls) =
        stalls.filter(|c| c.longest_stall_ns >= 1_000_000 && (c.stalls >= 2 || c.stalls == 1 && idle))
    {
        let used = if busy.is_empty() {
            String::new()
        } else {
            format!(", and used {} of its CPU", units::percent(busiest))
        };
        let said = format!(
            "this machine limits: the sender was held up {}, up to {}{used}: other programs take its CPU, or a hypervisor does",
            units::counted(stalls.stalls, "time"),
            units::time(stalls.longest_stall_ns),
        );
        return Some(Cause::new(By::Machine, said, before_others(report, doctor)));
    }
    let stalled = stalls.filter(|c| c.stalls > 0).map_or_else(
        || "nothing held it up".to_owned(),
        |c| {
            format!(
                "and a stall of {} may be its slowness or another program's doing",
                units::time(c.longest_stall_ns)
            )
        },
    );
    Some(Cause::new(
        By::Unknown,
        format!("what limited the sender is not known: no queue was full, no core busy, {stalled}"),
        doctor,
    ))
}

/// Others have had a sender's CPU for long if it was for such a part of the time.
const OTHERS: f64 = 0.03;
/// A core that is busy for so much of the time does no more.
const BUSY: f64 = 0.85;

/// What helps a sender that others hold up.
fn before_others(report: &Report, doctor: String) -> String {
    let asked = |name: &str| report.requested.as_ref().and_then(|job| job.get(name)).filter(|v| !v.is_null());
    let mut helps = Vec::new();
    if asked("catch_up").is_some() {
        helps.push("leave out `.catch_up`, so that it catches up as the link allows");
    }
    let pacing = report.result.pacing.as_ref();
    let first = pacing.and_then(|p| p.priority.as_deref()) == Some("real-time");
    if asked("no_real_time").is_some_and(|no| no == true) {
        helps.push("leave out `.no_real_time`, so that it goes before other programs");
    } else if !first && pacing.is_some_and(|p| p.priority.is_some()) {
        helps.push("run it with CAP_SYS_NICE, so that it goes before other programs");
    }
    helps.push("give it a CPU that nothing else uses (`.cores`)");
    format!("{}; {doctor}", helps.join(", or "))
}

/// Was more asked for than the link carries?
fn link(report: &Report, tx: &Tx, from: &str) -> Option<Cause> {
    let interface = report.environment.interfaces.iter().find(|i| printable(&i.name) == from)?;
    let speed = interface.speed_bits_per_second.filter(|speed| *speed > 0)?;
    // A virtual cable states a speed that nothing keeps it to.
    if interface.driver.as_deref() == Some("veth") || tx.totals.frames == 0 {
        return None;
    }
    let mean = tx.totals.bytes as f64 / tx.totals.frames as f64;
    let asked = tx.intended_frames_per_second? * (mean + ON_THE_WIRE) * 8.0;
    (asked > speed as f64 * 1.001).then(|| {
        let most = speed as f64 / ((mean + ON_THE_WIRE) * 8.0);
        let said = format!(
            "the link limits: {} on the wire were asked for, {from} has {}: {} of such frames",
            units::bit_rate(asked),
            units::bit_rate(speed as f64),
            units::frame_rate(most)
        );
        Cause::new(By::Link, said, format!("ask for no more than `.rate` {most:.0}pps", most = most.floor()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::distribution::Distribution;
    use crate::data::model::{CatchUp, Interface, Loss, Pacing, Rx};

    /// 10,000 frames sent, half of them lost, with these counters at `rx0`.
    fn lossy(arrived: u64, counters: &[(&str, u64, Option<&str>)]) -> Report {
        let mut report = Report::new("send");
        let sent = 10_000;
        report.resolved.interfaces = vec!["tx0".into(), "rx0".into()];
        report.result.tx = Some(Tx { totals: Totals::over(sent, sent * 60, 1_000_000_000), ..Tx::default() });
        report.result.rx =
            Some(Rx { totals: Totals::over(arrived, arrived * 60, 1_000_000_000), ..Rx::default() });
        report.result.loss = Some(Loss::between(sent, arrived));
        let counter = |(name, rise, why): &(&str, u64, Option<&str>)| HostCounter {
            place: "rx0".into(),
            source: "interface".into(),
            name: (*name).into(),
            rise: *rise,
            own_frames: None,
            explains: why.map(str::to_owned),
        };
        report.result.counters = counters.iter().map(counter).collect();
        report.result.verdict.fall_short(Code::FramesLost, "lost");
        report
    }

    fn said(report: &Report) -> (String, String) {
        let cause = of(report).expect("a cause");
        (cause.said, cause.next)
    }

    /// A result is read from a file, and may say anything.
    #[test]
    fn counts_of_any_size_are_added_up() {
        let mut report = lossy(9_000, &[("rx_packets", u64::MAX, None)]);
        assert!(said(&report).0.contains("rx0 counted them all"));
        report = lossy(9_000, &[("rx_packets", 9_000, None)]);
        let interval =
            |late| Interval { tx_frames: Some(10), late_frames: Some(late), ..Interval::default() };
        report.intervals = vec![interval(0); 3];
        let lost = Interval { lost_frames: Some(u64::MAX), ..interval(1) };
        report.intervals.extend([lost, lost]);
        let stalls = CatchUp { stalls: 2, frames: 5, longest_stall_ns: 5_000_000, ..CatchUp::default() };
        report.result.pacing = Some(Pacing { catch_up: Some(stalls), ..Pacing::default() });
        assert!(said(&report).0.contains("100 % of the loss was while this sender caught up"), "{report:?}");
    }

    #[test]
    fn a_counter_that_rose_is_the_cause() {
        let (said, next) =
            said(&lossy(5_000, &[("rx_dropped", 4_000, Some("queue full")), ("rx_packets", 5_000, None)]));
        assert_eq!(said, "rx0 dropped 4,000 frames (80.0 % of the loss): its rx_dropped rose; queue full");
        assert!(next.contains("netdyno doctor rx0"), "{next}");
    }

    #[test]
    fn what_a_labs_device_counted_is_added_up_over_its_ports_and_is_no_interface_of_the_host() {
        let mut report = lossy(5_000, &[("rx_packets", 5_000, None)]);
        let dropped = |place: &str, rise| HostCounter {
            place: format!("{OF_THE_LAB}{place}"),
            source: "rule".into(),
            name: "nft_dropped".into(),
            rise,
            explains: Some("on purpose".into()),
            own_frames: None,
        };
        report.result.counters.extend([dropped("dut0", 2_000), dropped("dut1", 3_000)]);
        let cause = loss(&report, Where::InALab).expect("a cause");
        assert_eq!(
            cause.said,
            "the lab's dut1, the lab's dut0 dropped 5,000 frames (100 % of the loss): their nft_dropped rose; on purpose"
        );
        assert_eq!((cause.by, cause.counter.expect("a counter").rise), (By::Counter, 3_000));
        assert_eq!(
            cause.next,
            "`netdyno search throughput` with the same `.lab` finds the load where loss begins"
        );
        let short = rate(&report, Where::InALab).expect("a cause");
        assert!(short.next.starts_with("`netdyno lab -- netdyno doctor tx0` says"), "{}", short.next);
        // Frames that never left are no loss that a counter tells.
        report.result.loss = Some(Loss::between(10_000, 10_000));
        assert_eq!(loss(&report, Where::InALab), None);
    }

    #[test]
    fn without_one_it_is_said_where_frames_were_last_seen() {
        let begins = |report: &Report, words: &str| {
            let (said, next) = said(report);
            assert!(said.contains(words) && !next.is_empty(), "{words}: {said}");
        };
        begins(&lossy(0, &[("rx_bytes", 0, None)]), "nothing reached rx0");
        begins(&lossy(5_000, &[("rx_packets", 10_001, None)]), "rx0 counted them all");
        begins(&lossy(5_000, &[("rx_packets", 5_003, None)]), "the device or the way between");
        begins(
            &lossy(5_000, &[("rx_packets", 7_500, None)]),
            "is not known: 10,000 frames were sent, rx0 counted 7,500",
        );
        begins(&lossy(5_000, &[]), "is not known: no counter");
        let (_, next) = said(&lossy(5_000, &[]));
        assert!(next.starts_with("`netdyno search throughput` with `.on` tx0 and `.measure` rx0"), "{next}");
    }

    #[test]
    fn a_stream_that_lost_all_where_others_lost_none_is_no_queues_doing() {
        let mut report = lossy(9_500, &[("rx_packets", 9_500, None)]);
        let catch_up = CatchUp { stalls: 9, longest_stall_ns: 5_000_000, frames: 900, ..CatchUp::default() };
        report.result.pacing = Some(Pacing { catch_up: Some(catch_up), ..Pacing::default() });
        let stream = |stream, tx, lost_frames| crate::data::model::Stream {
            stream,
            name: Some(format!("s{stream}")),
            tx_frames: Some(tx),
            lost_frames,
            rx_frames: tx - lost_frames,
            ..crate::data::model::Stream::default()
        };
        assert!(said(&report).0.contains("too short for this sender's bursts"), "without streams");
        report.streams = vec![stream(1, 5_000, 0), stream(2, 500, 500), stream(3, 4_500, 0)];
        let text = of(&report).expect("a cause").said;
        assert!(text.contains("stream 2 (s2) lost 500 of 500 frames, and 2 other streams none"), "{text}");
        assert!(!text.contains("queue"), "{text}");
        // Where others lost some as well it may be a queue.
        report.streams = vec![stream(1, 5_000, 10), stream(2, 490, 490), stream(3, 4_510, 0)];
        assert!(said(&report).0.contains("too short for this sender's bursts"));
        // And one that lost its only frame proves nothing.
        report.streams = vec![stream(1, 9_999, 0), stream(2, 1, 1)];
        assert!(said(&report).0.contains("too short for this sender's bursts"));
    }

    #[test]
    fn a_steady_late_half_is_a_full_queue_and_a_burst_after_a_stall_is_not() {
        let mut report = lossy(5_000, &[("rx_packets", 5_000, None)]);
        report.result.latency_ns = Some(Distribution { min: 2_000, ..Distribution::default() });
        let interval = |n: u64, late: u64, lost: u64| Interval {
            start_ns: n * 100_000_000,
            end_ns: (n + 1) * 100_000_000,
            tx_frames: Some(1_000),
            tx_bytes: Some(60_000),
            rx_frames: Some(1_000 - lost),
            rx_bytes: Some((1_000 - lost) * 60),
            lost_frames: Some(lost),
            late_frames: Some(late),
            latency_p50_ns: Some(5_000_000),
            ..Interval::default()
        };
        report.intervals = (0..10).map(|n| interval(n, 0, 500)).collect();
        report.result.counters.push(HostCounter {
            rise: 3,
            explains: Some("a few".into()),
            ..HostCounter::default()
        });
        let (text, _) = said(&report);
        assert!(
            text.contains("steady 5.00 kpps") && text.contains("a full queue before a bottleneck"),
            "{text}"
        );
        // Without a queue before it nobody can tell a limit from chance.
        report.result.latency_ns = Some(Distribution { min: 4_000_000, ..Distribution::default() });
        let (text, next) = said(&report);
        assert!(text.ends_with("at a steady 5.00 kpps (2.40 Mbit/s)"), "{text}");
        assert!(next.contains("`.rate` 5000pps distinguishes a limit"), "{next}");
        report.intervals =
            (0..10).map(|n| interval(n, u64::from(n == 4) * 50, u64::from(n == 4) * 900)).collect();
        let catch_up = CatchUp { stalls: 1, longest_stall_ns: 50_000_000, frames: 80, ..CatchUp::default() };
        report.result.pacing = Some(Pacing { catch_up: Some(catch_up), ..Pacing::default() });
        let (text, _) = said(&report);
        assert!(
            text.contains("100 % of the loss was while this sender caught up after 1 stall of up to 50.0 ms"),
            "{text}"
        );
    }

    #[test]
    fn a_sender_that_hurried_all_the_time_may_be_what_lost_frames() {
        let counters = [("rx_packets", 9_900, None)];
        let mut report = lossy(9_900, &counters);
        let catch_up =
            |frames| CatchUp { stalls: 106, longest_stall_ns: 104_000_000, frames, ..CatchUp::default() };
        report.result.pacing = Some(Pacing { catch_up: Some(catch_up(99)), ..Pacing::default() });
        assert!(!said(&report).0.contains("faster than asked"), "{}", said(&report).0);
        report.result.pacing = Some(Pacing { catch_up: Some(catch_up(100)), ..Pacing::default() });
        let (text, next) = said(&report);
        assert!(
            text.contains("after 106 stalls of up to 104 ms it sent 100 frames faster than asked"),
            "{text}"
        );
        assert!(next.contains("netdyno trial"), "{next}");
    }

    #[test]
    fn what_kept_the_sender_from_its_rate_is_named_by_its_evidence() {
        let mut report = lossy(10_000, &[]);
        report.result.verdict = Verdict::Done;
        assert_eq!(of(&report), None);
        report.result.loss = Some(Loss::between(10_000, 10_000));
        report.result.verdict.fall_short(Code::RateNotReached, "slow");
        assert!(said(&report).0.contains("is not known"), "nothing is known");
        let set = |report: &mut Report, change: &dyn Fn(&mut Tx)| report.result.tx.as_mut().map(change);
        set(&mut report, &|tx| tx.cores = vec![Core { cpu_ratio: Some(0.99), ..Core::default() }]);
        assert!(said(&report).0.starts_with("the CPU limits: 1 sending core busy for 99.0 %"));
        set(&mut report, &|tx| tx.cores = vec![Core { cpu_ratio: Some(0.4), ..Core::default() }]);
        let once = CatchUp { stalls: 1, longest_stall_ns: 11_000_000, ..CatchUp::default() };
        report.result.pacing = Some(Pacing { catch_up: Some(once), ..Pacing::default() });
        assert!(
            said(&report).0.contains("the sender was held up 1 time, up to 11.0 ms"),
            "{}",
            said(&report).0
        );
        set(&mut report, &|tx| tx.cores = vec![Core { cpu_ratio: Some(0.7), ..Core::default() }]);
        assert!(said(&report).0.contains("a stall of 11.0 ms may be its slowness"), "{}", said(&report).0);
        set(&mut report, &|tx| tx.cores = vec![Core { cpu_ratio: Some(0.4), ..Core::default() }]);
        let catch_up = CatchUp { stalls: 7, longest_stall_ns: 50_000_000, ..CatchUp::default() };
        report.result.pacing = Some(Pacing { catch_up: Some(catch_up), ..Pacing::default() });
        let begins =
            "this machine limits: the sender was held up 7 times, up to 50.0 ms, and used 40.0 % of its CPU";
        assert!(said(&report).0.starts_with(begins), "{}", said(&report).0);
        // A core that spins while it waits is not busy, and who had it instead is known.
        let spun = Core {
            cpu_ratio: Some(0.87),
            waiting_ratio: Some(0.6),
            others_ratio: Some(0.12),
            ..Core::default()
        };
        set(&mut report, &|tx| tx.cores = vec![spun]);
        let (text, next) = said(&report);
        let begins = "this machine limits: other programs had its CPU for 12.0 % of the time, while the sender was ready to run; it \
                      was held up 7 times, up to 50.0 ms";
        assert!(text.starts_with(begins), "{text}");
        assert!(next.starts_with("give it a CPU that nothing else uses (`.cores`)"), "{next}");
        report.requested = Some(serde_json::json!({ "catch_up": 2.0, "no_real_time": true }));
        let next = said(&report).1;
        assert!(
            next.contains("leave out `.catch_up`") && next.contains("leave out `.no_real_time`"),
            "{next}"
        );
        let kept = report.result.tx.clone();
        // What others took explains no more than that: here a third of the frames is lacking.
        let slow = Core { waiting_ratio: None, cpu_ratio: Some(0.93), others_ratio: Some(0.04), ..spun };
        set(&mut report, &|tx| {
            tx.cores = vec![slow];
            (tx.totals.frames, tx.due_not_sent_frames) = (680_000, Some(320_000));
        });
        let begins = "the CPU limits: 1 sending core busy for 93.0 % of the time, with engine ";
        assert!(said(&report).0.starts_with(begins), "{}", said(&report).0);
        assert!(said(&report).0.ends_with("; other programs had 4.00 % of it"), "{}", said(&report).0);
        set(&mut report, &|tx| (tx.totals.frames, tx.due_not_sent_frames) = (980_000, Some(20_000)));
        assert!(said(&report).0.contains("other programs had its CPU for 4.00 %"), "{}", said(&report).0);
        report.result.tx = kept;
        set(&mut report, &|tx| tx.cores = vec![Core { others_ratio: Some(0.0), ..spun }]);
        assert!(said(&report).0.contains("used 27.0 % of its CPU"), "{}", said(&report).0);
        set(&mut report, &|tx| tx.retried_enobufs = 5_000);
        assert!(said(&report).0.starts_with("the interface limits: tx0 took frames no faster"));
        let speed = Some(10_000_000);
        report.environment.interfaces =
            vec![Interface { name: "tx0".into(), speed_bits_per_second: speed, ..Interface::default() }];
        set(&mut report, &|tx| tx.intended_frames_per_second = Some(20_000.0));
        let (text, next) = said(&report);
        assert!(
            text.starts_with("the link limits: 13.4 Mbit/s on the wire were asked for, tx0 has 10.0 Mbit/s"),
            "{text}"
        );
        assert!(next.contains("`.rate` 14880"), "{next}");
    }
}
