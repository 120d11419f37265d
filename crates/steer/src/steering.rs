//! The agent: attaches the programs, keeps them fed, forgets flows that are over.

use crate::filters::{self, Link, Side};
use crate::flows::{Counts, Flow, State};
use crate::options::Options;
use crate::programs::{Loaded, load};
use crate::sockets::Sockets;
use bpf::{Program, ProgramError};
use port::netlink::{NetlinkError, Socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// Flows are learned so long after the last turn, and packets of the tunnel are let in.
pub const LEASE_NS: u64 = 1_000_000_000;
/// From one turn to the next at most.
const TURN: Duration = Duration::from_millis(200);
const SWEEP_NS: u64 = 1_000_000_000;
/// A flow without a socket is forgotten when nothing of it was seen for so long.
const QUIET_NS: u64 = 2_000_000_000;
/// The same of a closed one whose socket is in another network namespace: longer than any retransmission waits.
pub const QUIET_ELSEWHERE_NS: u64 = 300_000_000_000;
/// The engine is gone when it was not heard for so long.
const ENGINE_GONE_NS: u64 = 5_000_000_000;

/// What keeps answers from being steered.
#[derive(Debug)]
pub enum SteerError {
    /// The programs are not at work.
    Program(ProgramError),
    /// Something else is in the way; the sentence says what, where and how to mend it.
    Refused(String),
}

impl std::fmt::Display for SteerError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SteerError::Program(error) => error.fmt(to),
            SteerError::Refused(said) => to.write_str(said),
        }
    }
}

impl std::error::Error for SteerError {}

impl From<ProgramError> for SteerError {
    fn from(error: ProgramError) -> SteerError {
        SteerError::Program(error)
    }
}

impl From<io::Error> for SteerError {
    fn from(error: io::Error) -> SteerError {
        SteerError::Refused(error.to_string())
    }
}

/// How it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// What the programs counted.
    pub counts: Counts,
    /// Flows that are learned.
    pub flows: u64,
    /// The engine was heard lately.
    pub engine: bool,
    /// Why packets of the tunnel are not let in now.
    pub closed: Option<String>,
    /// Sockets of learned flows are in another network namespace: flows are forgotten late.
    pub elsewhere: bool,
}

/// The programs at work. Dropping it leaves the filters where they are: [`crate::clean`] takes them away.
#[derive(Debug)]
pub struct Steering {
    options: Options,
    is_v6: bool,
    underlay: u32,
    here: IpAddr,
    loaded: Loaded,
    /// The numbers of our programs, by where they hang.
    attached: HashMap<(u32, Side), u32>,
    changes: Socket,
    route: Socket,
    sockets: Sockets,
    swept_ns: u64,
    flows: u64,
    elsewhere: bool,
}

impl Steering {
    /// Attaches the programs, in the calling thread's network namespace. Nothing is let in before the first [`Steering::turn`].
    ///
    /// # Errors
    /// That it is not permitted or the kernel too old, that there is no way to the engine by the interface, that filters of another
    /// agent are there, or programs that would keep ours from seeing answers.
    pub fn start(options: Options) -> Result<Steering, SteerError> {
        let engine = options.engine.to_canonical();
        let on = filters::by_name(&options.on)?;
        if let Some(address) = options.server.0.filter(|address| address.is_ipv4() != engine.is_ipv4()) {
            return Err(SteerError::Refused(format!(
                "the server {address} and the engine {engine} are not of one family: copies are of the tunnel's"
            )));
        }
        let own = port::local::addresses().map_err(io::Error::other)?;
        if own.contains(&engine) || engine.is_loopback() || engine.is_unspecified() {
            return Err(SteerError::Refused(format!(
                "the engine {engine} is this host's own address: give that of the host where copies are made"
            )));
        }
        let way = port::resolve::way_out(engine).map_err(io::Error::other)?;
        if way.as_deref() != Some(&options.on) {
            let goes = way.map_or_else(|| "nowhere".to_owned(), |way| format!("by {way}"));
            return Err(SteerError::Refused(format!(
                "packets to the engine {engine} leave {goes}, not by {}: give the interface of its route (ip route get {engine})",
                options.on
            )));
        }
        let here = port::resolve::source(&options.on, engine).map_err(io::Error::other)?;
        let here = here.ok_or_else(|| {
            SteerError::Refused(format!("{} has no address to reach the engine {engine} from", options.on))
        })?;
        let is_v6 = engine.is_ipv6();
        let mut route = Socket::route().map_err(io::Error::other)?;
        for link in filters::links(&mut route)? {
            refuse_others(link, is_v6)?;
        }
        let changes = Socket::links().map_err(io::Error::other)?;
        let mut sockets = Sockets::open().map_err(io::Error::other)?;
        // Whoever cannot look at sockets does not know when flows end, and could never end in an orderly way.
        sockets.of(options.server.1).map_err(|error| match error {
            NetlinkError::Refused(Errno::NOENT) => SteerError::Refused(
                "this kernel lists no TCP sockets, by which flows are known to have ended: modprobe tcp_diag"
                    .to_owned(),
            ),
            other => SteerError::Refused(format!("TCP sockets cannot be listed: {other}")),
        })?;
        let loaded = load(&options, on.index, here)?;
        let mut steering = Steering {
            options,
            is_v6,
            underlay: on.index,
            here,
            loaded,
            attached: HashMap::new(),
            changes,
            route,
            sockets,
            swept_ns: 0,
            flows: 0,
            elsewhere: false,
        };
        if let Err(said) = steering.attach_all() {
            steering.take_away();
            return Err(SteerError::Refused(said));
        }
        Ok(steering)
    }

    /// This host's address in the tunnel's outer headers.
    pub fn here(&self) -> IpAddr {
        self.here
    }

    /// Sees to it that the programs are at every interface, answers first; what is missing where, if it cannot.
    fn attach_all(&mut self) -> Result<(), String> {
        let links = filters::links(&mut self.route).map_err(|error| error.to_string())?;
        self.attached.retain(|(index, _), _| links.iter().any(|link| link.index == *index));
        // What leaves by the loopback leaves to nobody.
        for link in links.iter().filter(|link| !link.is_loopback) {
            refuse_before(link.index)?;
            let program = if link.is_ethernet { &self.loaded.depart } else { &self.loaded.steal };
            hang(&mut self.attached, &self.loaded, program, (link.index, Side::Egress), self.is_v6)?;
        }
        let at = (self.underlay, Side::Ingress);
        if !links.iter().any(|link| link.index == self.underlay) {
            return Err(format!("{} is gone", self.options.on));
        }
        hang(&mut self.attached, &self.loaded, &self.loaded.arrive, at, self.is_v6)
    }

    /// Takes away what was attached, when nothing was learned yet.
    fn take_away(&mut self) {
        for ((index, side), _) in self.attached.drain() {
            filters::detach(index, side, self.is_v6);
        }
        if let Ok(links) = filters::links(&mut self.route) {
            links
                .iter()
                .filter(|link| self.loaded.maps.was_made(link.index))
                .for_each(|link| filters::remove_qdisc(link.index));
        }
    }

    /// Looks after everything, renews the lease, and waits for a moment, less if an interface changes. Has to be called again at once.
    ///
    /// # Errors
    /// That the lease cannot be written.
    pub fn turn(&mut self) -> io::Result<Standing> {
        while let Ok(Some(_)) = self.changes.told() {}
        let closed = self.attach_all().err();
        let now_ns = now();
        // Without all programs in place nothing is let in.
        self.loaded.maps.set_lease(if closed.is_none() { now_ns + LEASE_NS } else { 0 })?;
        let counts = self.loaded.maps.read_counts();
        let engine = counts.heard_ns > 0 && now_ns.saturating_sub(counts.heard_ns) < ENGINE_GONE_NS;
        if now_ns.saturating_sub(self.swept_ns) >= SWEEP_NS {
            self.swept_ns = now_ns;
            self.sweep(now_ns, engine);
        }
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(TURN.subsec_nanos()) };
        let _ = poll(&mut [PollFd::new(&self.changes, PollFlags::IN)], Some(&wait));
        Ok(Standing { counts, flows: self.flows, engine, closed, elsewhere: self.elsewhere })
    }

    /// Forgets flows that have no socket any more. Which are to be forgotten is marked first, so that no packet of them is let in, and
    /// looked at once more by the next sweep.
    fn sweep(&mut self, now_ns: u64, engine: bool) {
        let learned = self.loaded.maps.learned();
        self.flows = learned.len() as u64;
        if learned.is_empty() {
            return;
        }
        let Ok(found) = self.sockets.of(self.options.server.1) else { return };
        let maps = &self.loaded.maps;
        let active = |state: &State| !state.is_closed() && now_ns.saturating_sub(state.last_ns()) < SWEEP_NS;
        if found.listening && !self.elsewhere {
            // A flow that is being answered, and has no socket here, before and afterwards.
            let suspects = learned
                .iter()
                .filter(|(flow, state)| active(state) && state.was_answered() && !found.flows.contains(flow));
            let again: HashMap<Flow, State> = if suspects.clone().next().is_some() {
                maps.learned().into_iter().collect()
            } else {
                HashMap::new()
            };
            self.elsewhere = suspects.into_iter().any(|(flow, _)| again.get(flow).is_some_and(active));
            if self.elsewhere {
                maps.note_elsewhere();
            }
        }
        let known = found.listening && !self.elsewhere;
        for (flow, state) in learned {
            if !engine && found.flows.contains(&flow) {
                // The engine is gone without a word: its connections end here as well.
                let _ = self.sockets.destroy(&flow);
                continue;
            }
            let quiet_ns = now_ns.saturating_sub(state.last_ns());
            let gone = match known {
                true => !found.flows.contains(&flow) && quiet_ns >= QUIET_NS,
                false => state.is_closed() && quiet_ns >= QUIET_ELSEWHERE_NS,
            };
            match (state.is_forgotten(), gone) {
                (true, true) => maps.forget(&flow),
                (was, gone) if was != gone => maps.mark(&flow, state, gone),
                _ => {}
            }
        }
    }
}

/// Nothing of ours is there, nor what would keep ours from seeing answers.
fn refuse_others(link: Link, is_v6: bool) -> Result<(), SteerError> {
    let name = || name_of(link.index);
    for side in [Side::Ingress, Side::Egress] {
        if filters::attached(link.index, side, is_v6).is_some() {
            return Err(SteerError::Refused(format!(
                "filters of a return agent are at {} already: one agent steers for one engine of a family; if none runs any more, \
                 take them away by `.clean`",
                name()
            )));
        }
    }
    if link.is_loopback {
        return Ok(());
    }
    refuse_before(link.index).map_err(SteerError::Refused)
}

/// Filters of clsact do not see what a program of tcx lets pass.
fn refuse_before(index: u32) -> Result<(), String> {
    match bpf::at_egress(index).first() {
        None => Ok(()),
        Some(program) => Err(format!(
            "the BPF program {program} (tcx) at the egress of {} comes before filters of clsact, and could let an answer pass to a \
             client: run the agent where answers pass first (in the server's network namespace), or without that program",
            name_of(index)
        )),
    }
}

fn name_of(index: u32) -> String {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0));
    let name = socket.ok().and_then(|socket| rustix::net::netdevice::index_to_name(socket, index).ok());
    name.unwrap_or_else(|| format!("interface {index}"))
}

/// Sees to it that a program of ours hangs there.
fn hang(
    attached: &mut HashMap<(u32, Side), u32>,
    loaded: &Loaded,
    program: &Program,
    (index, side): (u32, Side),
    is_v6: bool,
) -> Result<(), String> {
    let there = filters::attached(index, side, is_v6);
    if there.is_some() && there == attached.get(&(index, side)).copied() {
        return Ok(());
    }
    if there.is_some() {
        // Another agent's, or the number belongs to another interface now.
        filters::detach(index, side, is_v6);
    }
    let failed = |error| format!("a filter at {} cannot be attached: {error}", name_of(index));
    if filters::attach(program, index, side, is_v6).map_err(failed)? {
        loaded.maps.note_made(index);
    }
    let id = filters::attached(index, side, is_v6)
        .ok_or_else(|| format!("the filter at {} is gone as soon as it was attached", name_of(index)))?;
    attached.insert((index, side), id);
    Ok(())
}

/// CLOCK_MONOTONIC, which the programs go by.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
