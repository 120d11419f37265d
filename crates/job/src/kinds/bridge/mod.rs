//! `netdyno bridge`: two interfaces become one cable, on which frames may be chosen and edited.

mod outcome;
mod pieces;
mod ways;

use super::Run;
use super::{edits, passive};
use crate::carrier::{self, Ends};
use crate::panel::Names;
use crate::place::Place;
use crate::session::{Looked, Session};
use ::bridge::Filter;
use ::edit::rewrite::Plan;
use anyhow::{Context, Result, bail};
use forwarder::Forwarder;
use outcome::Exit;
use report::{Code, Report, Said};
use snapshot::{Count, Passage, Snapshot, Title};
pub use spec::Bridge;
use spec::{BridgeEngine, Faults, Word};
use std::time::Duration;
use ways::Counts;

/// The interfaces are looked at every so many samples.
const LOOK: u32 = 3;

/// What is asked for, by `bridge` or by `tcpbridge`.
#[derive(Debug)]
pub struct Settings {
    /// `bridge`, `tcpbridge`.
    pub command: &'static str,
    /// The two interfaces.
    pub between: [String; 2],
    /// Only from the first to the second.
    pub one_way: bool,
    /// Until so many frames were forwarded.
    pub count: Option<u64>,
    /// For so long.
    pub duration: Option<Duration>,
    /// Which frames are forwarded; all, if there is none.
    pub filter: Option<Filter>,
    /// `None`: frames stay as they are.
    pub plan: Option<Plan>,
    /// By what.
    pub engine: BridgeEngine,
    /// It is a device with these faults.
    pub faults: Option<Faults>,
}

impl Settings {
    /// What is said when it has begun.
    fn begun(&self, reason: &str) -> String {
        let arrow = if self.one_way { "to" } else { "and" };
        let [a, b] = &self.between;
        let doing = if self.faults.is_some() { "between" } else { "bridging" };
        format!("{doing} {a} {arrow} {b} by {reason}; Ctrl-C ends and reports")
    }
}

impl Run for spec::Bridge {
    fn run(&self, session: Session) -> Result<Report> {
        run(self.clone(), &session)
    }
}

fn run(args: Bridge, session: &Session) -> Result<Report> {
    let edits = args.edits.unwrap_or_default();
    if edits.to_ethernet {
        bail!("`.to_ethernet`: what comes from an Ethernet interface is Ethernet already; leave it out");
    }
    let plan = edits::plan(&edits, true)?;
    let settings = Settings {
        command: "bridge",
        between: args.between,
        one_way: args.one_way,
        count: args.count.as_deref().copied(),
        duration: args.duration.as_deref().copied(),
        filter: filter(args.include.as_deref(), args.exclude.as_deref())?,
        plan: (plan != Plan::default()).then_some(plan),
        engine: args.engine,
        faults: None,
    };
    bridge(&settings, session)
}

/// The one rule there may be.
///
/// # Errors
/// That there are two, or that one cannot be read.
pub fn filter(include: Option<&str>, exclude: Option<&str>) -> Result<Option<Filter>> {
    Ok(match (include, exclude) {
        (Some(rule), _) => Some(Filter::include(rule).context("`.include`")?),
        (None, Some(rule)) => Some(Filter::exclude(rule).context("`.exclude`")?),
        (None, None) => None,
    })
}

/// Bridges until it is over, and says what went through.
///
/// # Errors
/// That the bridge cannot be had or was lost, and why.
pub fn bridge(settings: &Settings, session: &Session) -> Result<Report> {
    let places = places(settings, &session.consent.yes_disrupt)?;
    let warnings = warnings(&places, settings.one_way);
    session.stop_in_order();
    let mut leaving = places.iter().map(Exit::begin).collect::<Result<Vec<_>>>()?;
    let mut ends = Ends::none();
    for place in &places {
        ends.optional(place, settings.command)?;
    }
    let (running, choice) = ways::start(&places, settings)?;
    let [a, b] = &places;
    let mut report = passive::report(settings.command, a, (settings.count, settings.duration));
    report.resolved.engine = settings.faults.is_none().then(|| settings.engine.name().to_owned());
    report.resolved.interfaces = settings.between.to_vec();
    report.environment.interfaces.push(b.describe(settings.command));
    let following = ends.wait(session, &mut report)?;
    session.meet()?;
    session.say(Code::Begun, settings.begun(&choice.reason));
    session.warn(&warnings);
    report.environment.engine = Some(choice);
    report.warnings.extend(warnings);

    let title = Title {
        engine: report.environment.engine.as_ref().map(|engine| engine.name.clone()),
        tx: Some(a.spec.clone()),
        rx: Some(b.spec.clone()),
        ..passive::title(settings.command)
    };
    let mut panel = passive::panel(session, title, &report, &places, Names::unknown(0))?;
    let (mut looked, mut ended) = (0, None);
    let watched = session.watch(&mut panel, settings.duration, |_| {
        let ways = running.snapshot();
        let sum = ways[0].plus(&ways[1]);
        looked += 1;
        ended = running.ended().or_else(|| (looked % LOOK == 0).then(|| trouble(&places)).flatten());
        let enough = settings.count.is_some_and(|count| sum.forwarded + sum.refused >= count);
        Looked::of(sum, enough || ended.is_some(), snapshot(settings, &ways, &sum))
    });
    session.board.end();
    let way = running.name();
    following.end(None, &mut report);
    carrier::warn(&mut report);
    let (counts, lateness, said) = running.finish();
    // What happened to an interface says more than what the bridge noticed of it.
    let named = ended.as_ref().and_then(|_| trouble(&places));
    let ended = named.or(said).or(ended);
    outcome::fill(&mut report, settings, way, &counts, &lateness);
    report.intervals = watched.samples.intervals().map(outcome::interval).collect();
    watched.judge(&mut report);
    let forwarded = counts[0].forwarded + counts[1].forwarded;
    passive::judge_count(&mut report, settings.count, forwarded, ("frames", "were forwarded"));
    match ended {
        Some(why) => report.result.verdict.fall_short(Code::InterfaceGone, why),
        None => outcome::compare(&mut report, &counts, &mut leaving, way, settings.one_way),
    }
    Ok(report)
}

/// Finds both interfaces, and refuses what cannot be a bridge or would cut the user off.
fn places(settings: &Settings, yes_disrupt: &[String]) -> Result<[Place; 2]> {
    let [first, second] = settings.between.each_ref().map(|spec| Place::find(spec));
    let places = [first?, second?];
    let [a, b] = &places;
    if !a.shares_namespace(b)? {
        bail!(
            "{} and {} are in different network namespaces: a bridge stands in one, between cables that lead out of it",
            a.spec,
            b.spec
        );
    }
    if a.interface.index == b.interface.index {
        bail!("{} cannot be bridged with itself: name two interfaces", a.spec);
    }
    if a.is_joined_to(b) {
        bail!("{} and {} are the two ends of one cable: frames would go round for ever", a.spec, b.spec);
    }
    if let Some(master) = a.interface.master
        && b.interface.master == Some(master)
    {
        bail!(
            "{} and {} belong to one bridge or bond already, and frames would go round: take one out (`ip link set {} \
             nomaster`)",
            a.spec,
            b.spec,
            b.interface.name
        );
    }
    for place in &places {
        if !place.interface.ethernet || place.interface.loopback {
            bail!("{} is not an Ethernet interface: netdyno bridges Ethernet frames", place.spec);
        }
        // The second of one way only sends.
        match settings.one_way && std::ptr::eq(place, b) {
            true => place.guard(yes_disrupt)?,
            false => place.guard_taking(yes_disrupt, None)?,
        }
        if !place.interface.up {
            bail!("{} is down: bring it up with `ip link set {} up`", place.spec, place.interface.name);
        }
    }
    for place in places.iter().take(if settings.one_way { 1 } else { 2 }) {
        if place.run_in(|| Forwarder::is_at_work(&place.interface.name))?? {
            bail!(
                "{} is bridged already, and one of two bridges would get no frames: end the other one first",
                place.spec
            );
        }
    }
    Ok(places)
}

/// What the user should know before frames go through.
fn warnings(places: &[Place; 2], one_way: bool) -> Vec<Said> {
    let mut said = Vec::new();
    let [a, b] = places;
    for (from, to) in [(a, b), (b, a)].into_iter().take(if one_way { 1 } else { 2 }) {
        if from.interface.mtu > to.interface.mtu {
            said.push(Code::FramesTooLong.says(format!(
                "{} carries packets of up to {} bytes (its MTU) and {} only {}: longer ones from {} are dropped",
                from.spec, from.interface.mtu, to.spec, to.interface.mtu, from.spec
            )));
        }
    }
    said
}

/// Why nothing can go through any more.
fn trouble(places: &[Place; 2]) -> Option<String> {
    places.iter().find_map(|place| match place.now().ok()? {
        None => Some(format!("{} was removed, or moved to another network namespace", place.spec)),
        Some(now) if !now.up => Some(format!("{} went down", place.spec)),
        Some(_) => None,
    })
}

/// How it stands.
fn snapshot(settings: &Settings, ways: &[Counts; 2], sum: &Counts) -> Snapshot {
    let [a, b] = &settings.between;
    let both = [(a, b), (b, a)].into_iter().zip(ways).take(if settings.one_way { 1 } else { 2 });
    let passage = |((from, to), c): ((&String, &String), &Counts)| Passage {
        from: from.clone(),
        to: to.clone(),
        received: Count { frames: c.frames, bytes: c.bytes },
        forwarded: Count { frames: c.forwarded, bytes: c.forwarded_bytes },
    };
    Snapshot {
        rx: Some(Count { frames: sum.frames, bytes: sum.bytes }),
        tx: Some(Count { frames: sum.forwarded, bytes: sum.forwarded_bytes }),
        passages: both.map(passage).collect(),
        ..Snapshot::default()
    }
}

/// The settings that every bridge begins with.
impl Settings {
    /// All frames, both ways, by the fastest engine.
    pub fn of_two(command: &'static str, between: [String; 2]) -> Settings {
        Settings {
            command,
            between,
            one_way: false,
            count: None,
            duration: None,
            filter: None,
            plan: None,
            engine: BridgeEngine::Auto,
            faults: None,
        }
    }
}
