//! Whether an interface has its carrier: waiting for it before frames are sent, and noticing when it is lost.
//!
//! A driver may take its link down when a program is attached, a queue or an offload changed: at once, or from a work
//! queue a moment later. So a [`Link`] is opened before anything is attached, and [`wait`] looks at the kernel's
//! counter of carrier changes besides the carrier itself. A [`Watcher`] then notes each loss until it is ended.
//!
//! ```text
//!   Link::open (in the interface's namespace) -> attach -> wait(&mut links) -> Watcher::start(links) -> end() -> losses
//! ```
//!
//! The kernel tells of a lost carrier up to a second late (`linkwatch_urgent_event` in net/core/link_watch.c: no
//! more than one message a second where nothing is urgent), and joins what happened meanwhile. So messages wake the
//! watcher, and it looks by itself besides; what came and went between two looks moved the counter.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::interface::Interface;
use crate::netlink::{Attributes, Message, NetlinkError, REQUEST, Socket, read_u32};

/// `IFLA_CARRIER_CHANGES` and `RTEXT_FILTER_SKIP_STATS` of `linux/if_link.h`, `linux/rtnetlink.h`.
const IFLA_CARRIER_CHANGES: u16 = 35;
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;
const IFINFOMSG: usize = 16;

/// A link that comes back takes seconds where a PHY negotiates, with spanning tree or optics more.
const LIMIT: Duration = Duration::from_secs(10);
/// Where no PHY is, nothing has to be waited for but a work queue.
const LIMIT_IN_MEMORY: Duration = Duration::from_secs(1);
/// A real link must have been up for so long: a driver may reset itself from a work queue after it has returned.
const SETTLE: Duration = Duration::from_millis(100);
/// The carrier is there before the kernel has hooked up the queues (`IFF_RUNNING`). An interface that never gets there
/// (dormant, as with 802.1X) is not waited for longer.
const RUNNING: Duration = Duration::from_secs(2);
/// How often is looked while waiting, and while a run lasts.
const STEP: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(50);

/// Kinds of devices without a cable: their carrier is that of this machine, and no driver resets them.
const IN_MEMORY: [&str; 7] = ["veth", "dummy", "tun", "ifb", "netkit", "nlmon", "loopback"];

/// Does what leaves by `interface` stay on this machine?
pub fn in_memory(interface: &Interface) -> bool {
    interface.loopback || interface.kind.as_deref().is_some_and(|kind| IN_MEMORY.contains(&kind))
}

/// Why frames cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// No carrier came in time.
    #[error(
        "{interface} has no carrier, and did not get one within {waited} s: plug its cable in, or set the other end up"
    )]
    NoCarrier {
        /// Where.
        interface: String,
        /// Seconds that it was waited for.
        waited: u64,
    },
    /// It is down, and stays so.
    #[error("{0} was set down while its carrier was waited for")]
    Down(String),
    /// It was removed.
    #[error("{0} was removed while its carrier was waited for")]
    Gone(String),
    /// The kernel does not tell.
    #[error("cannot look at the carrier of '{interface}': {source}")]
    Netlink {
        /// Of which interface.
        interface: String,
        /// Why.
        source: NetlinkError,
    },
}

/// What a look at an interface shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// Set up by the administrator.
    up: bool,
    carrier: bool,
    running: bool,
    /// How often the carrier came or went since the interface exists.
    changes: u32,
}

impl State {
    fn parse(message: &[u8]) -> Option<State> {
        let flags = read_u32(message, 8)?;
        let is = |flag: i32| flags & flag as u32 != 0;
        let attributes = Attributes::after(message, IFINFOMSG);
        Some(State {
            up: is(libc::IFF_UP),
            carrier: attributes.u8(libc::IFLA_CARRIER) == Some(1),
            running: is(libc::IFF_RUNNING),
            changes: attributes.u32(IFLA_CARRIER_CHANGES)?,
        })
    }

    fn can_send(&self) -> bool {
        self.up && self.carrier
    }
}

/// What became of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The cable, or the other end.
    CarrierLost,
    /// By the administrator.
    SetDown,
    /// The interface went away.
    Removed,
}

/// A time without a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// What happened.
    pub what: What,
    /// When it was noticed, by `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// `None`: it had not come back when the watcher was ended.
    pub duration_ns: Option<u64>,
    /// It came and went between two looks: `at_ns` and `duration_ns` are those of the time between them.
    pub between_looks: bool,
}

/// The carrier of one interface, from now on.
#[derive(Debug)]
pub struct Link {
    name: String,
    index: u32,
    in_memory: bool,
    needed: bool,
    /// Sends requests.
    socket: Socket,
    /// Receives notifications of changes.
    events: Socket,
    /// `None`: it is gone.
    state: Option<State>,
    /// As it was when this was opened.
    at_first: State,
    losses: Losses,
}

/// How long an interface had to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    /// Until it could send; zero where it always could.
    pub ns: u64,
    /// Its carrier went, or was away when this began.
    pub was_down: bool,
    /// It has none now: of an optional one only.
    pub is_down: bool,
}

impl Link {
    /// Looks at an interface of the calling thread's network namespace, before anything is done to it.
    ///
    /// # Errors
    /// That the interface is not there, or the kernel does not say how it is.
    pub fn open(interface: &Interface) -> Result<Link, CarrierError> {
        let failed = |source| CarrierError::Netlink { interface: interface.name.clone(), source };
        // First the messages, then the look: nothing may happen unseen in between.
        let events = Socket::links().map_err(failed)?;
        let mut socket = Socket::route().map_err(failed)?;
        let Some(state) = ask(&mut socket, interface.index).map_err(failed)? else {
            return Err(CarrierError::Gone(interface.name.clone()));
        };
        Ok(Link {
            name: interface.name.clone(),
            index: interface.index,
            in_memory: in_memory(interface),
            needed: true,
            socket,
            events,
            state: Some(state),
            at_first: state,
            losses: Losses::new(clocks::monotonic(), Some(state)),
        })
    }

    /// Where there is no carrier at first, waiting for it may be in vain: what only receives can begin before its cable
    /// is plugged in.
    pub fn optional(self) -> Link {
        Link { needed: false, ..self }
    }

    fn limit(&self) -> Duration {
        if self.in_memory { LIMIT_IN_MEMORY } else { LIMIT }
    }

    /// Looks now. What cannot be seen is taken for unchanged.
    fn look(&mut self) {
        if let Ok(state) = ask(&mut self.socket, self.index) {
            self.state = state;
        }
    }

    /// Notes what the kernel reported meanwhile, and how it is now.
    fn follow(&mut self) {
        while let Ok(Some(messages)) = self.events.told() {
            let now = clocks::monotonic();
            for (kind, body) in messages {
                if read_u32(&body, 4) != Some(self.index) {
                    continue;
                }
                match kind {
                    // A bridge's ports are told by messages of the same kind, which have no counter.
                    libc::RTM_NEWLINK => {
                        if let Some(state) = State::parse(&body) {
                            self.losses.saw(now, Some(state));
                        }
                    }
                    libc::RTM_DELLINK if body.first() == Some(&0) => self.losses.saw(now, None),
                    _ => {}
                }
            }
        }
        self.look();
        self.losses.saw(clocks::monotonic(), self.state);
    }
}

/// `None`: there is no such interface any more.
fn ask(socket: &mut Socket, index: u32) -> Result<Option<State>, NetlinkError> {
    // Statistics are left out: some drivers ask their hardware for them.
    let ask = Message::new(libc::RTM_GETLINK, REQUEST)
        .link(index, 0, 0)
        .attr_u32(libc::IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    match socket.request(ask) {
        Ok(answers) => {
            let state = answers.first().and_then(|answer| State::parse(answer));
            state.map(Some).ok_or(NetlinkError::Malformed("not a link"))
        }
        Err(error) if error.errno() == Some(Errno::NODEV) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits until all can send; the answer is in the order of `links`. Ends early when `stop` is set.
///
/// # Errors
/// That an interface went away, or the kernel does not say how it is.
pub fn wait(links: &mut [Link], stop: &AtomicBool) -> Result<Vec<Waited>, CarrierError> {
    let start = Instant::now();
    let mut ends: Vec<Waiting> = links.iter().map(|link| Waiting::new(link, start)).collect();
    loop {
        let mut ready = true;
        for (link, end) in links.iter_mut().zip(&mut ends) {
            link.look();
            ready &= end.look(link, Instant::now())?;
        }
        if ready || stop.load(Relaxed) {
            // Losses are noted from here on.
            for link in links.iter_mut() {
                while let Ok(Some(_)) = link.events.told() {}
                link.look();
                link.losses = Losses::new(clocks::monotonic(), link.state);
            }
            return Ok(ends.iter().map(|end| end.waited(start)).collect());
        }
        std::thread::sleep(STEP);
    }
}

/// One end that is waited for.
struct Waiting {
    start: Instant,
    /// Since when it can send.
    since: Option<Instant>,
    changes: u32,
    was_down: bool,
}

impl Waiting {
    fn new(link: &Link, start: Instant) -> Waiting {
        Waiting {
            start,
            since: link.at_first.can_send().then_some(start),
            changes: link.at_first.changes,
            was_down: !link.at_first.can_send(),
        }
    }

    /// Can frames be sent there?
    fn look(&mut self, link: &Link, now: Instant) -> Result<bool, CarrierError> {
        let Some(state) = link.state else { return Err(CarrierError::Gone(link.name.clone())) };
        if !state.up {
            return Err(CarrierError::Down(link.name.clone()));
        }
        if !state.carrier {
            (self.since, self.was_down) = (None, true);
        } else if state.changes != self.changes {
            (self.since, self.was_down) = (Some(now), true);
        } else {
            self.since.get_or_insert(now);
        }
        self.changes = state.changes;
        let waited = now.saturating_duration_since(self.start);
        let settled =
            self.since.is_some_and(|since| link.in_memory || now.saturating_duration_since(since) >= SETTLE);
        if settled && (state.running || waited >= RUNNING) {
            return Ok(true);
        }
        if !settled && waited >= link.limit() {
            if !link.needed && !link.at_first.carrier {
                return Ok(true);
            }
            let interface = link.name.clone();
            return Err(CarrierError::NoCarrier { interface, waited: waited.as_secs() });
        }
        Ok(false)
    }

    fn waited(&self, start: Instant) -> Waited {
        let since = self.since.unwrap_or(start).saturating_duration_since(start);
        Waited {
            ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            was_down: self.was_down,
            is_down: self.since.is_none(),
        }
    }
}

/// Makes losses of what was seen, in order. No clock, no socket.
#[derive(Debug)]
struct Losses {
    looked_ns: u64,
    latest: Option<State>,
    open: Option<Loss>,
    done: Vec<Loss>,
}

/// So many are kept: a link that flaps for hours must not fill the memory.
const MOST_LOSSES: usize = 1000;

impl Losses {
    fn new(now_ns: u64, state: Option<State>) -> Losses {
        Losses { looked_ns: now_ns, latest: state, open: None, done: Vec::new() }
    }

    fn saw(&mut self, now_ns: u64, state: Option<State>) {
        let could = self.latest.is_some_and(|state| state.can_send());
        let can = state.is_some_and(|state| state.can_send());
        let what = match state {
            None => What::Removed,
            Some(state) if !state.up => What::SetDown,
            Some(_) => What::CarrierLost,
        };
        let moved = match (self.latest, state) {
            // A message may be older than the look before it: then its counter is behind, and it says nothing new.
            (Some(before), Some(now)) => now.changes.wrapping_sub(before.changes) as i32,
            _ => 0,
        };
        if moved < 0 {
            return;
        }
        match (could, can) {
            (true, true) if moved > 0 => self.note(Loss {
                what: What::CarrierLost,
                at_ns: self.looked_ns,
                duration_ns: Some(now_ns.saturating_sub(self.looked_ns)),
                between_looks: true,
            }),
            (true, false) => {
                self.open = Some(Loss { what, at_ns: now_ns, duration_ns: None, between_looks: false });
            }
            (false, true) => {
                if let Some(loss) = self.open.take() {
                    self.note(Loss { duration_ns: Some(now_ns.saturating_sub(loss.at_ns)), ..loss });
                }
            }
            // An interface goes down before it goes away.
            (false, false) if what == What::Removed => {
                if let Some(open) = &mut self.open {
                    open.what = what;
                }
            }
            _ => {}
        }
        (self.looked_ns, self.latest) = (now_ns, state);
    }

    fn note(&mut self, loss: Loss) {
        if self.done.len() < MOST_LOSSES {
            self.done.push(loss);
        }
    }

    fn end(self) -> Vec<Loss> {
        self.done.into_iter().chain(self.open).collect()
    }
}

/// Follows links in a thread of its own until it is ended.
#[derive(Debug)]
pub struct Watcher {
    thread: Option<JoinHandle<Vec<Vec<Loss>>>>,
    /// Closed to end it.
    bell: Option<OwnedFd>,
}

impl Watcher {
    /// Begins.
    ///
    /// # Errors
    /// That no thread can be started.
    pub fn start(links: Vec<Link>) -> std::io::Result<Watcher> {
        let (ended, bell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let work = move || watch(links, &ended);
        let thread = std::thread::Builder::new().name("carrier".to_owned()).spawn(work)?;
        Ok(Watcher { thread: Some(thread), bell: Some(bell) })
    }

    /// What happened to each link, in the order they were given.
    pub fn end(mut self) -> Vec<Vec<Loss>> {
        drop(self.bell.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.bell.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(mut links: Vec<Link>, ended: &OwnedFd) -> Vec<Vec<Loss>> {
    let time = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
    loop {
        let over = {
            let sockets = links.iter().map(|link| PollFd::new(&link.events, PollFlags::IN));
            let mut all: Vec<PollFd<'_>> =
                std::iter::once(PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN))
                    .chain(sockets)
                    .collect();
            if poll(&mut all, Some(&time)).is_err_and(|error| error != Errno::INTR) {
                // Without messages it still looks.
                std::thread::sleep(LOOK);
            }
            all.first().is_some_and(|bell| !bell.revents().is_empty())
        };
        links.iter_mut().for_each(Link::follow);
        if over {
            return links.into_iter().map(|link| link.losses.end()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: State = State { up: true, carrier: true, running: true, changes: 2 };

    fn losses(seen: &[(u64, Option<State>)]) -> Vec<Loss> {
        let mut losses = Losses::new(0, Some(UP));
        seen.iter().for_each(|&(at, state)| losses.saw(at, state));
        losses.end()
    }

    #[test]
    fn a_loss_lasts_from_the_look_that_missed_the_carrier_to_the_one_that_found_it() {
        let gone = Some(State { carrier: false, changes: 3, ..UP });
        let back = Some(State { changes: 4, ..UP });
        let lost = Loss { what: What::CarrierLost, at_ns: 10, duration_ns: Some(20), between_looks: false };
        assert_eq!(losses(&[(5, Some(UP)), (10, gone), (20, gone), (30, back), (40, back)]), [lost]);
        assert_eq!(losses(&[(10, gone), (20, gone)]), [Loss { duration_ns: None, ..lost }]);
        assert_eq!(losses(&[(10, Some(UP))]), []);
    }

    #[test]
    fn what_came_and_went_between_two_looks_moved_the_counter() {
        let flapped = Some(State { changes: 4, ..UP });
        let loss = Loss { what: What::CarrierLost, at_ns: 5, duration_ns: Some(7), between_looks: true };
        assert_eq!(losses(&[(5, Some(UP)), (12, flapped), (20, flapped)]), [loss]);
        // A message that was made before the latest look says nothing new.
        let old = Some(State { carrier: false, changes: 3, ..UP });
        assert_eq!(losses(&[(5, Some(UP)), (12, flapped), (13, old), (20, flapped)]), [loss]);
    }

    #[test]
    fn who_took_a_link_down_is_told_apart() {
        let down = Some(State { up: false, ..UP });
        let what =
            |seen: &[_]| losses(seen).iter().map(|loss| (loss.what, loss.duration_ns)).collect::<Vec<_>>();
        assert_eq!(what(&[(5, down), (9, Some(UP))]), [(What::SetDown, Some(4))]);
        // Down, then away.
        assert_eq!(what(&[(5, down), (6, None), (9, None)]), [(What::Removed, None)]);
    }
}
