//! Connections to the target: one for each copy, each a socket that never waits, all of a thread in one epoll. What is said and when,
//! `clone::replica` decides.
//!
//! An error is that connection's alone. What a copy could not say is counted by why.

use clone::addresses::{Addresses, Taken};
use clone::exchange::Comparison;
use clone::funnel::{Copies as Counted, Said};
use clone::replica::{MOST_HELD, OFFER_NS, Pace, Replica, Step};
use clone::slab::Slab;
use clone::table::{Event, Id};
use port::socket::polled;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, bind, connect, recv, send,
    shutdown, socket_with, sockopt,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// A connection has so long to come about.
const CONNECT_NS: u64 = 5_000_000_000;
/// A reset is put off until the target has what was said, so long at most.
const RESET_NS: u64 = 1_000_000_000;
/// And is tried again after so long.
const RESET_AGAIN_NS: u64 = 2_000_000;
/// Bytes that are read at once.
const AT_ONCE: usize = 256 << 10;
/// Addresses that are tried when the kernel does not take one: an old connection may linger there.
const TRIES: u32 = 8;
/// Memory for bytes that wait for the target, of all copies of a thread.
const MOST_HELD_BY_ALL: u64 = 512 << 20;
const NONE: u32 = u32::MAX;
/// The number of what is not a copy, in epoll.
pub const RING: u64 = u64::MAX;

/// What a copy is from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Open,
    /// There is no connection: what is still to be said is counted there.
    Dead(Why),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Unconnected,
    Closed,
    Overfull,
    Reset,
}

/// A copy of a session.
#[derive(Debug)]
struct Copy {
    replica: Replica,
    socket: Option<OwnedFd>,
    /// The next copy of the same session.
    next: u32,
    /// Numbers are used again: events of an earlier one are not this one's.
    generation: u32,
    taken: Option<Taken>,
    /// When it is looked at next, if nothing happens before.
    due_ns: u64,
    state: State,
    /// Since the session is over: when the target last took something of what waits.
    offered_ns: u64,
    /// The session is over, and no event comes any more.
    alone: bool,
    /// It is the second target's.
    second: bool,
}

/// A target, and what became of its copies.
#[derive(Debug)]
pub struct Side {
    to: SocketAddr,
    /// Of connections.
    pub counted: Counted,
    /// Of bytes.
    pub said: Said,
    /// Of answers.
    pub comparison: Comparison,
}

impl Side {
    fn new(to: SocketAddr) -> Side {
        Side { to, counted: Counted::default(), said: Said::default(), comparison: Comparison::default() }
    }
}

/// One of both.
fn of(sides: &mut [Side; 2], second: bool) -> &mut Side {
    let [first, other] = sides;
    if second { other } else { first }
}

/// Which addresses copies come from.
#[derive(Debug)]
pub enum Sources {
    /// The host's own, and any port.
    Host,
    /// Those of a prefix.
    Prefix(Addresses),
    /// Their clients' own, and their ports: the thread is where every address is its own.
    Clients,
}

impl Sources {
    /// Those of a prefix, where there is one.
    fn prefix(&mut self) -> Option<&mut Addresses> {
        match self {
            Sources::Prefix(addresses) => Some(addresses),
            _ => None,
        }
    }
}

/// All copies of a thread.
#[derive(Debug)]
pub struct Copies {
    pace: Pace,
    sources: Sources,
    copies: Slab<Copy>,
    /// The first copy of each session.
    heads: Vec<u32>,
    epoll: OwnedFd,
    timers: BinaryHeap<Reverse<(u64, u32, u32)>>,
    generation: u32,
    buffer: Vec<u8>,
    held: u64,
    dry: bool,
    /// There is a second target.
    both: bool,
    /// The target and the second one.
    pub sides: [Side; 2],
}

impl Copies {
    /// None yet. `dry`: nothing is connected, and everything is counted as if it were unfinished.
    pub fn new(
        (target, second): (SocketAddr, Option<SocketAddr>),
        pace: Pace,
        sources: Sources,
        dry: bool,
    ) -> rustix::io::Result<Copies> {
        Ok(Copies {
            pace,
            sources,
            copies: Slab::default(),
            heads: Vec::new(),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            timers: BinaryHeap::new(),
            generation: 0,
            buffer: vec![0; AT_ONCE],
            held: 0,
            dry,
            both: second.is_some(),
            sides: [Side::new(target), Side::new(second.unwrap_or(target))],
        })
    }

    /// Where everything is waited for.
    pub fn epoll(&self) -> &OwnedFd {
        &self.epoll
    }

    /// Copies whose connections are not closed yet.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// Something of a session.
    pub fn event(&mut self, id: Id, event: Event<'_>, now_ns: u64) {
        if let Event::Opened { flow, copies } = event {
            return self.open(id, (flow.source(), flow.source_port()), copies);
        }
        let mut shared: Option<Arc<[u8]>> = None;
        let mut number = self.heads.get(id as usize).copied().unwrap_or(NONE);
        while number != NONE {
            let Some(copy) = self.copies.get_mut(number) else { break };
            let next = copy.next;
            let replica = &mut copy.replica;
            let side = of(&mut self.sides, copy.second);
            match event {
                Event::Opened { .. } => {}
                Event::Said { bytes, answers, thought_ns, asked } => {
                    self.say(number, (bytes, &mut shared), (answers, thought_ns, asked), now_ns);
                }
                // What is asked now is not said, because there is no connection any more, and it is counted.
                Event::Asked { .. } | Event::Greets if matches!(copy.state, State::Dead(_)) => {
                    replica.asked_in_vain(&mut side.comparison);
                }
                Event::Asked { number, line, protocol } => {
                    replica.asked(number, line, protocol, &mut side.comparison);
                }
                Event::Greets => replica.greets(now_ns, &mut side.comparison),
                Event::AskedWhole { number, bodyless } => replica.asked_whole(number, bodyless, now_ns),
                Event::Holds { number, part } => replica.online_holds(number, part, &mut side.comparison),
                Event::Answered { number, bytes, line, ended } => {
                    replica.online((number, bytes, line, ended), now_ns, &mut side.comparison);
                }
                Event::Unframed => replica.unframed(&mut side.comparison),
                Event::Unread => replica.unread(&mut side.comparison),
                Event::ServerFinished => replica.server_finished(),
                Event::Finished { answers } => {
                    replica.finish(answers, now_ns);
                    self.pump(number);
                }
                Event::Cut { answers } => {
                    replica.cut(answers, now_ns);
                    self.pump(number);
                }
                Event::Reset { answers } => {
                    replica.reset(answers, now_ns);
                    self.pump(number);
                }
                Event::Over { answers } => {
                    replica.over(answers, now_ns);
                    copy.alone = true;
                    copy.next = NONE;
                    match copy.state {
                        State::Dead(_) => {
                            replica.settle_all(now_ns, &mut side.comparison);
                            self.copies.remove(number);
                        }
                        _ => self.pump(number),
                    }
                }
            }
            number = next;
        }
        if matches!(event, Event::Over { .. })
            && let Some(head) = self.heads.get_mut(id as usize)
        {
            *head = NONE;
        }
    }

    fn open(&mut self, id: Id, client: (IpAddr, u16), copies: u32) {
        let mut head = NONE;
        // The second target has one copy of each session, behind all others.
        let second = if self.both { Some((copies, true)) } else { None };
        for (nth, second) in second.into_iter().chain((0..copies).rev().map(|nth| (nth, false))) {
            of(&mut self.sides, second).counted.wanted += 1;
            self.generation = self.generation.wrapping_add(1);
            let copy = Copy {
                replica: Replica::new(nth == 0 || second),
                socket: None,
                next: head,
                generation: self.generation,
                taken: None,
                due_ns: u64::MAX,
                state: State::Connecting,
                offered_ns: 0,
                alone: false,
                second,
            };
            head = self.copies.insert(copy);
            if self.dry {
                of(&mut self.sides, second).counted.unfinished += 1;
                self.set_dead(head, Why::Unconnected);
                continue;
            }
            if let Err(errno) = self.connect(head, client, nth) {
                self.unconnected(head, errno);
            }
        }
        let at = id as usize;
        if self.heads.len() <= at {
            self.heads.resize(at + 1, NONE);
        }
        if let Some(place) = self.heads.get_mut(at) {
            *place = head;
        }
    }

    fn connect(&mut self, number: u32, (client, port): (IpAddr, u16), nth: u32) -> Result<(), Errno> {
        let mut lingering: Vec<Taken> = Vec::new();
        let mut done = Err(Errno::ADDRNOTAVAIL);
        for _ in 0..TRIES {
            let (taken, from) = match &mut self.sources {
                Sources::Host => (None, None),
                Sources::Clients => (None, Some(SocketAddr::new(client, port))),
                Sources::Prefix(addresses) => {
                    let taken = addresses.take(client, port, nth).ok_or(Errno::ADDRNOTAVAIL)?;
                    (Some(taken), Some(SocketAddr::new(addresses.address(taken), taken.port)))
                }
            };
            let second = self.copies.get(number).is_some_and(|copy| copy.second);
            match begin(of(&mut self.sides, second).to, from) {
                Ok(socket) => {
                    let Some(copy) = self.copies.get_mut(number) else { break };
                    let data =
                        epoll::EventData::new_u64(u64::from(copy.generation) << 32 | u64::from(number));
                    use epoll::EventFlags as On;
                    done = epoll::add(&self.epoll, &socket, data, On::IN | On::OUT | On::RDHUP | On::ET);
                    copy.socket = Some(socket);
                    copy.taken = taken;
                    break;
                }
                // The same pair may linger in the kernel (TIME_WAIT): the next one, and this one is free again afterwards.
                Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) if taken.is_some() => lingering.extend(taken),
                Err(errno) => {
                    lingering.extend(taken);
                    done = Err(errno);
                    break;
                }
            }
        }
        if let Some(addresses) = self.sources.prefix() {
            lingering.into_iter().for_each(|taken| addresses.give_back(taken));
        }
        // It begins now, however late the frame is looked at.
        done.map(|()| self.time(number, now_real() + CONNECT_NS))
    }

    /// A connection was not established.
    fn unconnected(&mut self, number: u32, errno: Errno) {
        let second = self.copies.get(number).is_some_and(|copy| copy.second);
        let counted = &mut of(&mut self.sides, second).counted;
        match errno {
            Errno::CONNREFUSED => counted.refused += 1,
            Errno::TIMEDOUT | Errno::HOSTUNREACH => counted.timed_out += 1,
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => counted.no_address += 1,
            _ => counted.failed += 1,
        }
        self.set_dead(number, Why::Unconnected);
    }

    /// There is no connection any more: what waits is not said.
    fn set_dead(&mut self, number: u32, why: Why) {
        let Some(copy) = self.copies.get_mut(number) else { return };
        copy.state = State::Dead(why);
        copy.socket = None;
        self.held = self.held.saturating_sub(copy.replica.held() as u64);
        let left = copy.replica.give_up();
        let side = of(&mut self.sides, copy.second);
        // Else the server may still answer what the target has answered already.
        if copy.alone {
            copy.replica.settle_all(now_real(), &mut side.comparison);
        }
        *unsaid(&mut side.said, why) += left;
        side.counted.closed_early += u64::from(copy.replica.was_closed_early());
        side.counted.impatient += u64::from(copy.replica.was_impatient());
        side.counted.held_ends += u64::from(copy.replica.was_held());
        side.counted.unanswered_ends += u64::from(copy.replica.was_unanswered());
        if let (Some(addresses), Some(taken)) = (self.sources.prefix(), copy.taken.take()) {
            addresses.give_back(taken);
        }
        if copy.alone {
            self.copies.remove(number);
        }
    }

    fn say(
        &mut self,
        number: u32,
        (bytes, shared): (&[u8], &mut Option<Arc<[u8]>>),
        (answers, thought_ns, asked): (u32, u64, u32),
        now_ns: u64,
    ) {
        let Some(copy) = self.copies.get_mut(number) else { return };
        let side = of(&mut self.sides, copy.second);
        side.said.due += bytes.len() as u64;
        if let State::Dead(why) = copy.state {
            *unsaid(&mut side.said, why) += bytes.len() as u64;
            return;
        }
        let mut written = 0;
        if copy.replica.is_due(self.pace, answers)
            && let Some(socket) = &copy.socket
        {
            match write(socket, bytes) {
                Ok(count) => written = count,
                Err(_) => {
                    let rest = bytes.len() as u64;
                    *unsaid(&mut side.said, Why::Closed) += rest;
                    self.broke(number);
                    return;
                }
            }
            side.said.sent += written as u64;
        }
        let before = copy.replica.held();
        let said_ns = if written == bytes.len() { now_real() } else { now_ns };
        copy.replica.say((bytes, written), shared, (answers, thought_ns, asked), (now_ns, said_ns));
        let held = copy.replica.held();
        self.held += (held - before) as u64;
        // One that waits for nothing is not given up because others do.
        if held > MOST_HELD || held > before && self.held > MOST_HELD_BY_ALL {
            side.counted.overfull += 1;
            self.tear(number, Why::Overfull);
        } else if written < bytes.len() && copy.state == State::Open {
            self.pump(number);
        }
    }

    /// The target reset the connection, or it broke otherwise.
    fn broke(&mut self, number: u32) {
        let Some(copy) = self.copies.get_mut(number) else { return };
        of(&mut self.sides, copy.second).counted.reset_early += u64::from(copy.replica.is_open());
        self.set_dead(number, Why::Closed);
    }

    /// Closes it with a RST.
    fn tear(&mut self, number: u32, why: Why) {
        let Some(copy) = self.copies.get_mut(number) else { return };
        if let Some(socket) = &copy.socket {
            let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
        if copy.state == State::Connecting {
            of(&mut self.sides, copy.second).counted.unfinished += 1;
        }
        self.set_dead(number, why);
    }

    /// Does what is due of a copy by now: frames may be looked at long after they came.
    fn pump(&mut self, number: u32) {
        let now_ns = now_real();
        loop {
            let Some(copy) = self.copies.get_mut(number) else { return };
            if copy.state != State::Open {
                return;
            }
            let Some(socket) = &copy.socket else { return };
            let side = of(&mut self.sides, copy.second);
            match copy.replica.next(self.pace, now_ns) {
                Step::Wait => return,
                Step::Until(at) => return self.time(number, at),
                Step::Write(bytes) => {
                    let whole = bytes.len();
                    match write(socket, bytes) {
                        Ok(count) => {
                            let before = copy.replica.held();
                            copy.replica.wrote(count, now_real());
                            side.said.sent += count as u64;
                            self.held = self.held.saturating_sub((before - copy.replica.held()) as u64);
                            if count == whole {
                                continue;
                            }
                            // The kernel says when there is room again. A target that never has any is not waited for for ever.
                            if !copy.alone {
                                return;
                            }
                            if count > 0 || copy.offered_ns == 0 {
                                copy.offered_ns = now_ns;
                            }
                            let until = copy.offered_ns + OFFER_NS;
                            if now_ns < until {
                                return self.time(number, until);
                            }
                            side.counted.overfull += 1;
                            return self.tear(number, Why::Overfull);
                        }
                        Err(_) => return self.broke(number),
                    }
                }
                Step::Shutdown => {
                    let _ = shutdown(socket, Shutdown::Write);
                    copy.replica.done(now_ns);
                }
                Step::Reset => {
                    let waits = port::socket::unacknowledged(socket).unwrap_or(0) > 0;
                    if waits && now_ns < copy.replica.ended_ns() + RESET_NS {
                        return self.time(number, now_ns + RESET_AGAIN_NS);
                    }
                    return self.tear(number, Why::Reset);
                }
                Step::Close => return self.set_dead(number, Why::Closed),
            }
        }
    }

    fn time(&mut self, number: u32, at_ns: u64) {
        let Some(copy) = self.copies.get_mut(number) else { return };
        if at_ns < copy.due_ns {
            copy.due_ns = at_ns;
            self.timers.push(Reverse((at_ns, number, copy.generation)));
        }
    }

    /// Does what is due by now; when something is due next.
    pub fn timers(&mut self, now_ns: u64) -> Option<u64> {
        while let Some(Reverse((at_ns, number, generation))) = self.timers.peek().copied() {
            if at_ns > now_ns {
                return Some(at_ns);
            }
            self.timers.pop();
            let Some(copy) = self.copies.get_mut(number) else { continue };
            if copy.generation != generation || copy.due_ns != at_ns {
                continue;
            }
            copy.due_ns = u64::MAX;
            match copy.state {
                // A thread that did not run for long hears of its connections after their time.
                State::Connecting if copy.socket.as_ref().is_some_and(has_answer) => {
                    self.ready(number, generation, epoll::EventFlags::OUT, now_ns);
                }
                State::Connecting => self.unconnected(number, Errno::TIMEDOUT),
                State::Open => self.pump(number),
                State::Dead(_) => {}
            }
        }
        None
    }

    /// Waits for sockets, no longer than this, and does what they are ready for. Is what else is waited for ready?
    pub fn wait(&mut self, events: &mut Vec<epoll::Event>, patience: Duration) -> bool {
        events.clear();
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        // An interruption is as good as quiet.
        let _ = epoll::wait(&self.epoll, spare_capacity(events), Some(&patience));
        let mut other = false;
        if events.is_empty() {
            return false;
        }
        let now_ns = now_real();
        for event in events.iter() {
            match event.data.u64() {
                RING => other = true,
                data => self.ready(data as u32, (data >> 32) as u32, event.flags, now_ns),
            }
        }
        other
    }

    fn ready(&mut self, number: u32, generation: u32, flags: epoll::EventFlags, now_ns: u64) {
        use epoll::EventFlags as On;
        let Some(copy) = self.copies.get_mut(number).filter(|copy| copy.generation == generation) else {
            return;
        };
        let Some(socket) = &copy.socket else { return };
        if copy.state == State::Connecting {
            if !flags.intersects(On::OUT | On::ERR | On::HUP) {
                return;
            }
            match sockopt::socket_error(socket) {
                Ok(Ok(())) => {}
                Ok(Err(errno)) | Err(errno) => return self.unconnected(number, errno),
            }
            copy.state = State::Open;
            copy.due_ns = u64::MAX;
            copy.replica.connected(now_ns);
            of(&mut self.sides, copy.second).counted.connected += 1;
        }
        let ended = flags.intersects(On::RDHUP | On::HUP | On::ERR);
        if (ended || flags.contains(On::IN)) && !self.read(number, ended, now_ns) {
            return;
        }
        self.pump(number);
    }

    /// Reads all that is there: what is ready is reported once, and so is that it has `ended`. Is the connection still there?
    fn read(&mut self, number: u32, ended: bool, now_ns: u64) -> bool {
        loop {
            let Some(copy) = self.copies.get_mut(number) else { return false };
            let Some(socket) = &copy.socket else { return false };
            match recv(socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => {
                    let side = of(&mut self.sides, copy.second);
                    copy.replica.target_closed(&mut side.comparison);
                    return true;
                }
                Ok((_, count)) => {
                    let side = of(&mut self.sides, copy.second);
                    side.said.received += count as u64;
                    let bytes = self.buffer.get(..count).unwrap_or_default();
                    copy.replica.received(bytes, now_ns, &mut side.comparison);
                    // A short read emptied the socket: what comes later is told again.
                    if count < self.buffer.len() && !ended {
                        return true;
                    }
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.broke(number);
                    return false;
                }
            }
        }
    }

    /// Ends all that is left.
    pub fn end(&mut self) {
        for number in self.copies.numbers() {
            let Some(copy) = self.copies.get_mut(number) else { continue };
            copy.alone = true;
            copy.replica.stop();
            self.held = self.held.saturating_sub(copy.replica.held() as u64);
            let left = copy.replica.give_up();
            let side = of(&mut self.sides, copy.second);
            side.said.unfinished += left;
            match copy.state {
                State::Connecting => {
                    side.counted.unfinished += 1;
                    self.set_dead(number, Why::Unconnected);
                }
                State::Open => self.set_dead(number, Why::Closed),
                State::Dead(_) => {
                    copy.replica.settle_all(now_real(), &mut side.comparison);
                    self.copies.remove(number);
                }
            }
        }
    }
}

/// Where bytes are counted that are not said.
fn unsaid(said: &mut Said, why: Why) -> &mut u64 {
    match why {
        Why::Unconnected => &mut said.unconnected,
        Why::Closed => &mut said.after_close,
        Why::Overfull => &mut said.overfull,
        Why::Reset => &mut said.reset,
    }
}

/// CLOCK_REALTIME, which frames are stamped by.
pub fn now_real() -> u64 {
    clocks::now(clocks::Clock::Realtime)
}

/// Is it known whether the connection was established?
fn has_answer(socket: &OwnedFd) -> bool {
    polled(socket, PollFlags::OUT, Duration::ZERO).is_ok_and(|flags| !flags.is_empty())
}

/// Begins to connect, from this address and port if one is given.
pub fn begin(to: SocketAddr, from: Option<SocketAddr>) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    if from.is_some_and(|from| from.is_ipv4() != to.is_ipv4()) {
        return Err(Errno::ADDRNOTAVAIL);
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    // An end that is gone without a word is found out.
    sockopt::set_socket_keepalive(&socket, true)?;
    if let Some(from) = from {
        sockopt::set_socket_reuseaddr(&socket, true)?;
        match from {
            SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
            SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true)?,
        }
        bind(&socket, &from)?;
    }
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// Writes what there is room for.
fn write(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    let mut written = 0;
    while written < bytes.len() {
        let rest = bytes.get(written..).unwrap_or_default();
        match send(socket, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => written += count,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            // What was taken before is told first.
            Err(_) if written > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(written)
}
