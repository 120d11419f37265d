//! By which way frames are taken over: in the kernel where nothing but forwarding is asked for, else in user space.

use super::super::shared::takes_tags_out;
use super::Settings;
use crate::impaired::Device;
use crate::place::Place;
use ::bridge::{Budget, Job, Relay, RelayError, Relayed, relay};
use ::edit::rewrite::Side;
use ::impair::Did;
use anyhow::{Result, bail};
use forwarder::{Counters, Forwarder, Hold, Options, ProgramError, Way};
use histogram::Histogram;
use port::interface::xdp_features;
use report::{Choice, NotTaken};
use spec::{BridgeEngine, Word};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What went in one direction, whichever way it took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub frames: u64,
    pub bytes: u64,
    pub forwarded: u64,
    pub forwarded_bytes: u64,
    /// The forwarded, each super-frame counted once, and their bytes with the headers of each once.
    pub buffers: u64,
    pub buffer_bytes: u64,
    pub unedited: u64,
    pub completed: u64,
    pub filtered: u64,
    pub left: u64,
    pub too_long: u64,
    pub over_limit: u64,
    pub refused: u64,
    pub uncut: u64,
    pub missed: u64,
    pub duration_ns: u64,
    /// What a device with faults did.
    pub did: Option<Did>,
}

impl Counts {
    /// Both directions together, as far as is shown while it runs.
    pub fn plus(&self, other: &Counts) -> Counts {
        Counts {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
            forwarded: self.forwarded + other.forwarded,
            forwarded_bytes: self.forwarded_bytes + other.forwarded_bytes,
            refused: self.refused + other.refused,
            duration_ns: self.duration_ns.max(other.duration_ns),
            ..Counts::default()
        }
    }
}

impl From<&Counters> for Counts {
    fn from(p: &Counters) -> Counts {
        Counts {
            frames: p.frames,
            bytes: p.bytes,
            forwarded: p.forwarded,
            forwarded_bytes: p.forwarded_bytes,
            buffers: p.buffers,
            buffer_bytes: p.buffer_bytes,
            completed: p.completed,
            over_limit: p.over_limit,
            too_long: p.too_long,
            refused: p.failed,
            duration_ns: p.duration_ns(),
            ..Counts::default()
        }
    }
}

impl From<&Relayed> for Counts {
    fn from(r: &Relayed) -> Counts {
        Counts {
            frames: r.frames,
            bytes: r.bytes,
            forwarded: r.sent,
            forwarded_bytes: r.sent_bytes,
            buffers: r.sent,
            buffer_bytes: r.sent_bytes,
            unedited: r.unedited,
            filtered: r.filtered,
            left: r.left,
            too_long: r.too_long,
            over_limit: r.over_limit,
            refused: r.refused,
            uncut: r.unfit,
            missed: r.missed,
            duration_ns: r.duration_ns(),
            ..Counts::default()
        }
    }
}

impl From<Did> for Counts {
    fn from(d: Did) -> Counts {
        Counts {
            frames: d.frames,
            bytes: d.bytes,
            forwarded: d.forwarded,
            forwarded_bytes: d.forwarded_bytes,
            buffers: d.forwarded,
            buffer_bytes: d.forwarded_bytes,
            too_long: d.too_long,
            refused: d.refused,
            uncut: d.unfit,
            missed: d.missed,
            duration_ns: d.duration_ns(),
            did: Some(d),
            ..Counts::default()
        }
    }
}

/// A bridge at work.
pub enum Running {
    Kernel { forwarder: Forwarder, way: Way },
    User(User),
    Impaired(Device),
}

/// What went through, how late each direction of a device with faults sent it, and why it had ended before its end.
pub type Finished = ([Counts; 2], [Option<Histogram>; 2], Option<String>);

/// In user space: a thread for each direction.
pub struct User {
    threads: Vec<JoinHandle<Result<(), RelayError>>>,
    counts: Vec<Arc<Mutex<Relayed>>>,
    stop: Arc<AtomicBool>,
    holds: Vec<Hold>,
}

impl Running {
    pub fn name(&self) -> &'static str {
        match self {
            Running::Kernel { way, .. } => way.name(),
            Running::User(_) | Running::Impaired(_) => "packet",
        }
    }

    /// From the first interface to the second, and back.
    pub fn snapshot(&self) -> [Counts; 2] {
        match self {
            Running::Kernel { forwarder, .. } => forwarder.snapshot().each_ref().map(Counts::from),
            Running::User(user) => user.snapshot(),
            Running::Impaired(device) => device.snapshot().map(Counts::from),
        }
    }

    /// Why it works no more, if it does not.
    pub fn ended(&self) -> Option<String> {
        match self {
            Running::Kernel { forwarder, .. } => (!forwarder.is_attached())
                .then(|| "an interface was removed, or the bridge detached from it by force".to_owned()),
            Running::User(user) => user.ended(),
            Running::Impaired(device) => device.ended(),
        }
    }

    /// Ends it: the last word.
    pub fn finish(self) -> Finished {
        match self {
            Running::Kernel { forwarder, .. } => {
                (forwarder.finish().each_ref().map(Counts::from), [None, None], None)
            }
            Running::Impaired(device) => {
                let done = device.finish();
                (done.did.map(Counts::from), done.lateness, done.why)
            }
            Running::User(mut user) => {
                user.stop.store(true, Relaxed);
                let mut why = None;
                for thread in user.threads.drain(..) {
                    let ended = thread.join().unwrap_or(Ok(()));
                    // Frames that wait for room when the end comes are not forwarded, and are counted nowhere.
                    if let Err(error) = ended
                        && !matches!(error, RelayError::Send(port::tx::TxError::Stopped(_)))
                    {
                        why.get_or_insert(error.to_string());
                    }
                }
                (user.snapshot(), [None, None], why)
            }
        }
    }
}

impl User {
    fn snapshot(&self) -> [Counts; 2] {
        [0, 1].map(|direction| match self.counts.get(direction) {
            Some(counts) => Counts::from(&*counts.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Counts::default(),
        })
    }

    fn ended(&self) -> Option<String> {
        if self.holds.iter().any(|hold| !hold.is_attached()) {
            return Some("an interface was removed, or the bridge detached from it by force".to_owned());
        }
        // Why, it says when it is joined.
        self.threads.iter().any(JoinHandle::is_finished).then(|| "a direction ended".to_owned())
    }
}

/// Starts the fastest way that does what is asked for.
pub fn start(places: &[Place; 2], settings: &Settings) -> Result<(Running, Choice)> {
    if let Some(faults) = &settings.faults {
        let device = Device::start(places, faults)?;
        let mut reason = "packet sockets, because what leaves when is decided frame by frame".to_owned();
        reason += &leaks(device.leaks.as_deref());
        let choice = Choice { name: "packet".to_owned(), reason, not_taken: Vec::new() };
        return Ok((Running::Impaired(device), choice));
    }
    let inspects = match (&settings.plan, &settings.filter) {
        (Some(_), _) => Some("frames are edited"),
        (None, Some(_)) => Some("frames are chosen"),
        (None, None) => None,
    };
    let ways: &[Way] = match (settings.engine, inspects) {
        (BridgeEngine::Packet, _) | (BridgeEngine::Auto, Some(_)) => &[],
        (_, Some(why)) => {
            bail!("`.engine` {}: {why}, which only `.engine` packet does", settings.engine.name())
        }
        (BridgeEngine::Auto, None) => &[Way::XdpNative, Way::Tc, Way::XdpGeneric],
        (BridgeEngine::Xdp, None) => &[Way::XdpNative],
        (BridgeEngine::Tc, None) => &[Way::Tc],
        (BridgeEngine::XdpGeneric, None) => &[Way::XdpGeneric],
    };
    let mut not_taken = Vec::new();
    for way in ways {
        match kernel(places, settings, *way)? {
            Ok(forwarder) => {
                let reason = match way {
                    Way::XdpNative => "native XDP",
                    Way::Tc => "the kernel's receive path (tcx)",
                    Way::XdpGeneric => {
                        "generic XDP; super-frames (TSO, GRO) do not go through, switch them off"
                    }
                };
                let name = way.name().to_owned();
                let mut reason = reasoned(reason, &not_taken);
                if let Some(refused) = forwarder.refused() {
                    reason += &format!("; {refused}");
                }
                let choice = Choice { name, reason, not_taken };
                return Ok((Running::Kernel { forwarder, way: *way }, choice));
            }
            Err(reason) => not_taken.push(NotTaken { name: way.name().to_owned(), reason }),
        }
    }
    if !matches!(settings.engine, BridgeEngine::Auto | BridgeEngine::Packet) {
        let reasons: Vec<_> = not_taken.into_iter().map(|not| not.reason).collect();
        bail!("`.engine` {} is not possible: {}", settings.engine.name(), reasons.join("; "));
    }
    let (user, held) = user_space(places, settings)?;
    let mut reason = match inspects {
        Some(why) => format!("packet sockets, because {why}"),
        None => reasoned("packet sockets", &not_taken),
    };
    reason += &leaks(held.as_deref());
    Ok((Running::User(user), Choice { name: "packet".to_owned(), reason, not_taken }))
}

fn leaks(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!("; this host's own stack gets the frames as well ({why})"))
}

fn reasoned(reason: &str, not_taken: &[NotTaken]) -> String {
    match not_taken.first() {
        Some(not) => format!("{reason} (not {}: {})", not.name, not.reason),
        None => reason.to_owned(),
    }
}

/// One of the kernel's ways. The inner error says why not, for a person.
fn kernel(places: &[Place; 2], settings: &Settings, way: Way) -> Result<Result<Forwarder, String>> {
    let (inward, outward) =
        if settings.one_way { (&places[..1], &places[1..]) } else { (&places[..], &places[..]) };
    if way == Way::XdpNative {
        // Whether a veth transmits is its other end's affair, which attaching here does not change.
        let veths = outward.iter().filter(|place| place.is_veth());
        let obstacle =
            veths.filter_map(takes_no_frames).next().or_else(|| inward.iter().find_map(takes_tags));
        if let Some(obstacle) = obstacle {
            return Ok(Err(obstacle));
        }
    }
    let options = Options {
        one_way: settings.one_way,
        limit: settings.count,
        mtu: [places[1].interface.mtu, places[0].interface.mtu],
        // A veth's far end has no hardware that would compute checksums, and leaves them all the same.
        complete: places.each_ref().map(|place| way == Way::XdpNative && place.is_veth()),
        needs_program: !places[1].is_veth(),
    };
    let [a, b] = places;
    let names = [a.interface.name.as_str(), b.interface.name.as_str()];
    match a.run_in(|| Forwarder::attach(names, way, &options))? {
        Ok(forwarder) => {
            // Drivers say that they transmit for XDP only while they have a program: now they do, or never will.
            let natively = if way == Way::XdpNative { outward } else { &[] };
            Ok(natively.iter().find_map(takes_no_frames).map_or(Ok(forwarder), Err))
        }
        Err(error @ ProgramError::Permission { .. }) => Err(error.into()),
        Err(ProgramError::NotPossible { reasons, .. }) => Ok(Err(reasons)),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Why frames that XDP redirects to it would not leave.
fn takes_no_frames(place: &Place) -> Option<String> {
    let index = place.interface.index;
    let features = place.run_in(|| xdp_features(index)).ok()?.ok()??;
    if features.transmit {
        return None;
    }
    Some(if place.is_veth() {
        format!("the other end of {} takes frames from XDP only with GRO on, or an XDP program", place.spec)
    } else {
        format!("the driver of {} sends no frames for XDP", place.spec)
    })
}

/// Why frames would lose their VLAN tags.
fn takes_tags(place: &Place) -> Option<String> {
    takes_tags_out(place).then(|| {
        format!(
            "{} takes VLAN tags out before XDP sees a frame (`ethtool -K {} rxvlan off`)",
            place.spec, place.interface.name
        )
    })
}

/// Packet sockets and a thread for each direction; and why the host's own stack sees the frames as well, if it does.
fn user_space(places: &[Place; 2], settings: &Settings) -> Result<(User, Option<String>)> {
    let [a, b] = places;
    let budget = Arc::new(Budget::new(settings.count));
    let mut user = User { threads: Vec::new(), counts: Vec::new(), stop: Arc::default(), holds: Vec::new() };
    let mut why = None;
    let directions = [(a, b, Side::Client), (b, a, Side::Server)];
    let mut relays = Vec::new();
    for (from, to, side) in directions.into_iter().take(if settings.one_way { 1 } else { 2 }) {
        let name = &from.interface.name;
        match from.run_in(|| Hold::attach(name))? {
            Ok(hold) => user.holds.push(hold),
            Err(error) => why = Some(error.to_string()),
        }
        let relay = from.run_in(|| Relay::open(&from.target(), &to.target()))??;
        user.counts.push(relay.counts());
        let job = Job {
            filter: settings.filter.clone(),
            plan: settings.plan.clone(),
            side,
            budget: budget.clone(),
            stop: user.stop.clone(),
        };
        relays.push((relay, job));
    }
    for (opened, job) in relays {
        user.threads.push(std::thread::spawn(move || relay(opened, &job)));
    }
    Ok((user, why))
}
