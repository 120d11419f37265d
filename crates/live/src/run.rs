//! The loop: frames and the clock on one side, connections on the other. The only place where something is sent, and only
//! to the one server.

use crate::connection::Nanos;
use crate::error::LiveError;
use crate::guard::Guard;
use crate::link::{Checksum, Link};
use crate::packet::{self, Ends, Mac};
use crate::play::{Compared, Outcome, Play, Work};
use crate::{neighbours, segment::Segment};
use capture::FileWriter;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::LinkType;

/// Frames taken before anything is answered: so acknowledgements are one for many.
const BATCH: usize = 64;
/// The longest sleep, so that a signal is noticed.
const NAP: Duration = Duration::from_millis(100);
/// At full speed no more connections than this run side by side.
const SIDE_BY_SIDE: usize = 32;

/// Where it is played.
#[derive(Debug, Clone)]
pub struct Wire {
    /// The interface's name.
    pub interface: String,
    /// Its number in the network namespace.
    pub ifindex: u32,
    /// Its Ethernet address.
    pub own_mac: Mac,
    /// The Ethernet address that leads to the server.
    pub next_hop: Mac,
    /// Our address and the server.
    pub from: IpAddr,
    /// The server.
    pub to: SocketAddr,
    /// Our address is none of this host's: we answer for it.
    pub borrowed: bool,
}

/// What went over the wire so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames that were sent.
    pub sent_frames: u64,
    /// Bytes of those, layer 2 without FCS.
    pub sent_bytes: u64,
    /// Of the server's.
    pub received_frames: u64,
    /// Bytes of those, layer 2 without FCS.
    pub received_bytes: u64,
}

/// Called with the time since the start and the state of all connections: at the start, ten times a second, and at the end.
pub type Onlooker<'a> = &'a mut dyn FnMut(Nanos, &Traffic, &[(Option<Nanos>, Play)]);

/// Runs all of `plays`, each from its time on (`None`: as soon as there is room for it). Frames are also written to
/// `record`. Ends early once `stop` is set.
///
/// # Errors
/// That frames cannot be sent or received any more.
pub fn run(
    wire: &Wire,
    plays: &mut [(Option<Nanos>, Play)],
    record: Option<&mut FileWriter>,
    stop: &AtomicBool,
    onlooker: Onlooker<'_>,
) -> Result<Vec<Outcome>, LiveError> {
    let failed = |what: &'static str| {
        move |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => LiveError::Permission { what },
            _ => LiveError::Io { what, interface: wire.interface.clone(), source },
        }
    };
    // In place before the first SYN: its answer must not reach the stack.
    let guard = match Guard::attach(wire.ifindex, plays.len()) {
        Ok(guard) => Some(guard),
        // Nobody's address is nobody's to reset for.
        Err(LiveError::NoGuard { .. }) if wire.borrowed => None,
        Err(error) => return Err(error),
    };
    for (_, play) in plays.iter() {
        if let Some(guard) = &guard {
            guard.add(play.ends())?;
        }
    }
    let link = Link::open(wire.ifindex, wire.to.ip()).map_err(failed("opening a packet socket"))?;
    let clock = Instant::now();
    let mut hub = Hub { wire, link, record, id: 0, frame: Vec::new(), traffic: Traffic::default() };
    let mut aside = Aside::new();
    let mut look: Nanos = 0;
    let mut stopping = false;
    loop {
        let now = clock.elapsed().as_nanos() as Nanos;
        if now >= look {
            look = now + NAP.as_nanos() as Nanos;
            onlooker(now, &hub.traffic, plays);
        }
        if stop.load(Ordering::Relaxed) && !stopping {
            stopping = true;
            plays.iter_mut().for_each(|(_, play)| play.stop(now));
        }
        begin_what_is_due(plays, now, stopping);
        for (_, play) in plays.iter_mut() {
            if play.deadline().is_some_and(|deadline| deadline <= now) {
                play.on_time(now);
            }
            while let Some(segment) = play.poll(now) {
                hub.send(play.ends(), &segment).map_err(failed("sending"))?;
            }
        }
        aside.take(plays);
        if plays.iter().all(|(_, play)| play.is_done()) {
            break;
        }
        let soon = plays.iter().filter_map(|(at, play)| play.deadline().or(at.filter(|at| *at > now))).min();
        let nap = soon.map_or(NAP, |at| Duration::from_nanos(at.saturating_sub(now)).min(NAP));
        if !hub.link.wait(nap).map_err(failed("receiving"))? {
            continue;
        }
        let now = clock.elapsed().as_nanos() as Nanos;
        for _ in 0..BATCH {
            if !hub.receive(plays, now).map_err(failed("receiving"))? {
                break;
            }
        }
    }
    onlooker(clock.elapsed().as_nanos() as Nanos, &hub.traffic, plays);
    aside.finish(plays);
    Ok(plays.iter_mut().map(|(_, play)| play.outcome()).collect())
}

/// The way to the thread and back; each piece has the number of its connection.
type Ways = (Sender<(usize, Work)>, Receiver<(usize, Compared)>);

/// A thread for what takes longer than a server should wait for an acknowledgement.
struct Aside(Option<Ways>);

impl Aside {
    fn new() -> Aside {
        Aside(None)
    }

    /// Takes what there is to do. Where there can be no thread, it is done at the end.
    fn take(&mut self, plays: &mut [(Option<Nanos>, Play)]) {
        for (n, (_, play)) in plays.iter_mut().enumerate() {
            while play.has_work() {
                let Some((to, _)) = self.thread() else { return };
                let Some(work) = play.work() else { break };
                // It ends only after us.
                let _ = to.send((n, work));
            }
        }
    }

    fn thread(&mut self) -> Option<&Ways> {
        if self.0.is_none() {
            let ((to, jobs), (out, done)) = (channel::<(usize, Work)>(), channel());
            let compare = move || {
                for (n, work) in jobs {
                    let _ = out.send((n, work.compare()));
                }
            };
            std::thread::Builder::new().name("compare".to_owned()).spawn(compare).ok()?;
            self.0 = Some((to, done));
        }
        self.0.as_ref()
    }

    /// Waits until all is done.
    fn finish(self, plays: &mut [(Option<Nanos>, Play)]) {
        let Some((to, done)) = self.0 else { return };
        drop(to);
        for (n, compared) in done {
            if let Some((_, play)) = plays.get_mut(n) {
                play.compared(compared);
            }
        }
    }
}

fn begin_what_is_due(plays: &mut [(Option<Nanos>, Play)], now: Nanos, stopping: bool) {
    let waiting = |play: &Play| !play.has_begun() && !play.is_done();
    let mut running = plays.iter().filter(|(_, play)| play.has_begun() && !play.is_over()).count();
    for (at, play) in plays.iter_mut().filter(|(_, play)| waiting(play)) {
        if stopping || !at.map_or(running < SIDE_BY_SIDE, |at| at <= now) {
            continue;
        }
        play.start(now);
        running += 1;
    }
}

struct Hub<'a> {
    wire: &'a Wire,
    link: Link,
    record: Option<&'a mut FileWriter>,
    id: u16,
    frame: Vec<u8>,
    traffic: Traffic,
}

impl Hub<'_> {
    fn send(&mut self, ends: &Ends, segment: &Segment<'_>) -> io::Result<()> {
        // Nothing is ever sent to anybody else, whoever built `ends`.
        if ends.to != self.wire.to || ends.from.ip() != self.wire.from {
            return Err(io::Error::other("a segment to somebody else than the server"));
        }
        self.id = self.id.wrapping_add(1);
        let macs = (self.wire.own_mac, self.wire.next_hop);
        packet::write(ends, macs, self.id, segment, &mut self.frame);
        keep(&mut self.record, &self.frame)?;
        self.link.send(&self.frame)?;
        self.traffic.sent_frames += 1;
        self.traffic.sent_bytes += self.frame.len() as u64;
        Ok(())
    }

    /// Takes one frame; false if there is none.
    fn receive(&mut self, plays: &mut [(Option<Nanos>, Play)], now: Nanos) -> io::Result<bool> {
        let Some((frame, checksum)) = self.link.receive()? else { return Ok(false) };
        if let Ok(found) = packet::read(LinkType::ETHERNET, frame, frame.len() as u32) {
            let ends = Ends { from: found.destination, to: found.source };
            let ours = plays.iter().position(|(_, play)| play.has_begun() && *play.ends() == ends);
            let Some(ours) = ours else { return Ok(true) };
            match checksum {
                Checksum::Unknown if !packet::sound(frame) => return Ok(true),
                Checksum::Unknown | Checksum::Valid => {}
                Checksum::Unfilled => packet::complete(frame),
            }
            keep(&mut self.record, frame)?;
            self.traffic.received_frames += 1;
            self.traffic.received_bytes += frame.len() as u64;
            if let Some((_, play)) = plays.get_mut(ours)
                && let Ok(found) = packet::read(LinkType::ETHERNET, frame, frame.len() as u32)
            {
                play.receive(&found.segment, now);
            }
            return Ok(true);
        }
        if self.wire.borrowed
            && let Some(reply) = neighbours::answer(frame, self.wire.from, self.wire.own_mac)
        {
            self.link.send(&reply)?;
            return Ok(true);
        }
        let any = Ends { from: SocketAddr::new(self.wire.from, 0), to: self.wire.to };
        if let Some((port, mtu)) = neighbours::too_long(frame, &any) {
            let named = plays.iter_mut().filter(|(_, play)| play.ends().from.port() == port);
            named.for_each(|(_, play)| play.limit_path(mtu));
        }
        Ok(true)
    }
}

fn keep(record: &mut Option<&mut FileWriter>, frame: &[u8]) -> io::Result<()> {
    let Some(record) = record else { return Ok(()) };
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    record.write(time, frame, frame.len() as u32).map_err(io::Error::other)
}
