//! Who opens connections: many at once, each used once (a request and a response, or nothing) or held, and closed.
//!
//! ```text
//!   due --> connecting --> talking --> closed             each is used once; the other end closes first
//!                  |  \--> held ----------------> held    of `hold` at once; for one more the oldest leaves:
//!                  |         \--> leaving --> closed      it says a byte, and the other end closes
//!                  \--> failed, and counted by its reason
//! ```
//!
//! The end that closes first keeps a port for a minute (TIME_WAIT): it is never this one, which has few.

use super::{Flags, Poll};
use crate::pace::Rate;
use crate::phase::{self, Done, End, Latency, Progress, Until};
use crate::socket::{self, Options};
use crate::stream::content;
use rustix::net::{RecvFlags, SendFlags};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What a connection's time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// Until it is open: the handshake.
    Handshake,
    /// Until it was used and closed.
    Whole,
}

/// Connections of one thread.
#[derive(Debug, Clone)]
pub struct Calling {
    /// To these places in turn.
    pub to: Vec<SocketAddr>,
    /// What each socket is like.
    pub options: Options,
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response. The other end closes behind it.
    pub response: usize,
    /// So many stay open. Without a schedule no more than these are opened. 0: each is used once.
    pub hold: usize,
    /// They are due on this schedule (open loop). None: whenever one less than `at_once` is under way.
    pub rate: Option<Rate>,
    /// The schedule begins so much later: threads take turns.
    pub offset: Duration,
    /// At most so many are being opened or used at once.
    pub at_once: usize,
    /// What is not open, or not answered, by then has failed.
    pub patience: Duration,
    /// What their time is.
    pub timed: Timed,
    /// One that failed is counted, and others follow. Else it ends all.
    pub goes_on: bool,
}

/// What became of connections that were to be opened, of the whole test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Opened {
    /// Tried.
    pub attempts: u64,
    /// Opened.
    pub opened: u64,
    /// Most that were open at the same time.
    pub most: u64,
    /// Held at the end.
    pub held: u64,
    /// Held ones that broke.
    pub broken: u64,
    /// Nobody listened there.
    pub refused: u64,
    /// No answer in time.
    pub timed_out: u64,
    /// This host had no free port.
    pub no_port: u64,
    /// Reset while they were opened or used.
    pub reset: u64,
    /// This process may open no more files.
    pub no_file: u64,
    /// No way there.
    pub unreachable: u64,
    /// Another reason.
    pub other: u64,
    /// Neither open nor failed when the test ended.
    pub unfinished: u64,
    /// The first failure, in the kernel's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Opened {
    /// Those that failed.
    pub fn failed(&self) -> u64 {
        let all = [
            self.refused,
            self.timed_out,
            self.no_port,
            self.reset,
            self.no_file,
            self.unreachable,
            self.other,
        ];
        all.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Each that was tried was opened, failed, or was not finished; one that failed in use was opened before.
    fn adds_up(&self) -> bool {
        let known = self.opened.saturating_add(self.unfinished);
        (known..=known.saturating_add(self.failed())).contains(&self.attempts)
    }

    /// Of both.
    #[must_use]
    pub fn plus(&self, other: &Opened) -> Opened {
        let sum = |of: fn(&Opened) -> u64| of(self).saturating_add(of(other));
        Opened {
            attempts: sum(|o| o.attempts),
            opened: sum(|o| o.opened),
            most: sum(|o| o.most),
            held: sum(|o| o.held),
            broken: sum(|o| o.broken),
            refused: sum(|o| o.refused),
            timed_out: sum(|o| o.timed_out),
            no_port: sum(|o| o.no_port),
            reset: sum(|o| o.reset),
            no_file: sum(|o| o.no_file),
            unreachable: sum(|o| o.unreachable),
            other: sum(|o| o.other),
            unfinished: sum(|o| o.unfinished),
            error: self.error.clone().or_else(|| other.error.clone()),
        }
    }

    fn count(&mut self, error: &io::Error) {
        use io::ErrorKind as Kind;
        let count = match (error.raw_os_error(), error.kind()) {
            (Some(libc::ECONNREFUSED), _) => &mut self.refused,
            (Some(libc::EADDRNOTAVAIL), _) => &mut self.no_port,
            (Some(libc::EMFILE | libc::ENFILE), _) => &mut self.no_file,
            (Some(libc::EHOSTUNREACH | libc::ENETUNREACH), _) => &mut self.unreachable,
            (_, Kind::TimedOut) => &mut self.timed_out,
            (_, Kind::ConnectionReset | Kind::BrokenPipe | Kind::UnexpectedEof) => &mut self.reset,
            _ => &mut self.other,
        };
        *count += 1;
        self.error.get_or_insert_with(|| error.to_string());
    }
}

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Talking { sent: usize, got: usize },
    Held,
    Leaving,
}

struct Call {
    socket: OwnedFd,
    state: State,
    /// When it was due, or tried.
    since: Instant,
    generation: u32,
}

/// Once the test's time is over, what is being opened may take so much longer.
const DRAINS: Duration = Duration::from_secs(1);
/// Who has no port or file waits so long for one.
const RESTS: Duration = Duration::from_millis(20);
/// Who is later than this at the end has not offered what was due.
const LATE: Duration = Duration::from_millis(10);
/// Connections that are begun before events are looked at.
const BEGUN: usize = 64;

/// Opens connections until it is over.
pub fn call(calling: &Calling, until: &Until, progress: &Progress, latency: &Latency) -> Done {
    let mut done = Done::new();
    let poll = match Poll::new() {
        Ok(poll) => poll,
        Err(error) => return done.end(End::Failed(error)),
    };
    let start = done.began.checked_add(calling.offset).unwrap_or(done.began);
    let mut calls = Calls {
        calling,
        progress,
        latency,
        poll,
        slots: Vec::new(),
        free: Vec::new(),
        waiting: VecDeque::new(),
        held: VecDeque::new(),
        under_way: 0,
        open: 0,
        generation: 0,
        opened: Opened::default(),
        asked: content(calling.request),
        room: vec![0; calling.response.clamp(1, 1 << 20) + 1],
        bytes: 0,
        last: None,
    };
    let end = calls.run(start, until);
    if let (Some(rate), true) = (calling.rate, calls.opened.attempts < until.count.unwrap_or(u64::MAX)) {
        let by = until.deadline.map_or_else(|| start.elapsed(), |end| end.saturating_duration_since(start));
        let due = rate.due_by(by.min(start.elapsed()));
        done.unsent = until.count.map_or(due, |count| due.min(count)).saturating_sub(calls.opened.attempts);
    }
    // One that is open and still in use, or leaves, is among the opened.
    let connecting = calls.slots.iter().flatten().filter(|call| call.state == State::Connecting);
    calls.opened.unfinished = connecting.count() as u64;
    debug_assert!(calls.opened.adds_up(), "{:?}", calls.opened);
    done.bytes = calls.bytes;
    done.count = progress.count();
    done.first = calls.last.map(|_| done.began);
    done.last = calls.last;
    done.held = calls
        .slots
        .into_iter()
        .flatten()
        .filter(|call| call.state == State::Held)
        .map(|call| call.socket)
        .collect();
    calls.opened.held = done.held.len() as u64;
    done.opened = Some(calls.opened);
    done.end(end)
}

struct Calls<'a> {
    calling: &'a Calling,
    progress: &'a Progress,
    latency: &'a Latency,
    poll: Poll,
    slots: Vec<Option<Call>>,
    free: Vec<u32>,
    /// Keys of those that are opened or used, in the order of their beginning.
    waiting: VecDeque<(u64, Instant)>,
    /// Keys of those that are held, the oldest first.
    held: VecDeque<u64>,
    /// Opened or used now.
    under_way: usize,
    open: u64,
    generation: u32,
    opened: Opened,
    asked: Vec<u8>,
    room: Vec<u8>,
    bytes: u64,
    last: Option<Instant>,
}

fn key(slot: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(slot)
}

impl Calls<'_> {
    fn run(&mut self, start: Instant, until: &Until) -> End {
        let mut over: Option<(End, Instant)> = None;
        let mut rests = start;
        loop {
            let now = Instant::now();
            if over.is_none() {
                over = until.over(now).map(|end| (end, now));
            }
            if over.is_none()
                && self.calling.hold == 0
                && until.counted(self.opened.attempts)
                && self.under_way == 0
            {
                return End::Amount;
            }
            if let Some((end, at)) = over.take() {
                let patience =
                    if matches!(end, End::Time) { DRAINS.min(self.calling.patience) } else { Duration::ZERO };
                let begins = matches!(end, End::Time)
                    && self.calling.rate.is_some()
                    && now.saturating_duration_since(at) < LATE
                    && matches!(self.due(start, until, now), Due::Now(_));
                if (self.under_way == 0 && !begins) || now.saturating_duration_since(at) >= patience {
                    return end;
                }
                over = Some((end, at));
            }
            let mut wait = super::longest(until, now);
            if over.is_some() {
                wait = wait.max(Duration::from_millis(1));
            }
            let mut begun = 0;
            // What was due by the end is begun, if the thread is in time.
            let begins = match &over {
                None => true,
                Some((End::Time, at)) => {
                    self.calling.rate.is_some() && now.saturating_duration_since(*at) < LATE
                }
                Some(_) => false,
            };
            while begins && now >= rests && begun < BEGUN {
                let due = match self.due(start, until, now) {
                    Due::Now(due) => due,
                    Due::At(due) => {
                        wait = wait.min(due.saturating_duration_since(now));
                        break;
                    }
                    Due::Never => break,
                };
                begun += 1;
                if let Err(error) = self.begin(due) {
                    self.fail(&error);
                    if !self.calling.goes_on {
                        return End::Failed(error);
                    }
                    rests = now + RESTS;
                }
            }
            if begun == BEGUN {
                wait = Duration::ZERO;
            }
            if now < rests {
                wait = wait.min(rests - now);
            }
            if let Some(ended) = self.expire(now) {
                return End::Failed(ended);
            }
            let events = match self.poll.wait(wait) {
                Ok(events) => events,
                Err(error) => return End::Failed(error),
            };
            for event in 0..events {
                let Some((key, _)) = self.poll.event(event) else { break };
                if let Err(error) = self.happens(key) {
                    self.fail(&error);
                    if !self.calling.goes_on {
                        return End::Failed(error);
                    }
                }
            }
        }
    }

    /// When the next is to be begun.
    fn due(&self, start: Instant, until: &Until, now: Instant) -> Due {
        let Calling { hold, rate, at_once, .. } = *self.calling;
        if self.under_way >= at_once.max(1) || until.counted(self.opened.attempts) {
            return Due::Never;
        }
        match rate {
            Some(rate) => {
                let due = start.checked_add(rate.due(self.opened.attempts)).unwrap_or(now);
                if until.deadline.is_some_and(|end| due > end) {
                    return Due::Never;
                }
                if due <= now { Due::Now(due) } else { Due::At(due) }
            }
            None if hold > 0 && self.held.len() + self.under_way >= hold => Due::Never,
            None => Due::Now(now),
        }
    }

    fn begin(&mut self, since: Instant) -> io::Result<()> {
        let to = usize::try_from(self.opened.attempts).unwrap_or(0) % self.calling.to.len().max(1);
        self.opened.attempts += 1;
        let to = self.calling.to.get(to).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let socket = socket::begin(*to, &self.calling.options).map_err(socket::SocketError::into_io)?;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len() - 1).map_err(|_| io::ErrorKind::OutOfMemory)?
            }
        };
        self.generation = self.generation.wrapping_add(1);
        let key = key(slot, self.generation);
        self.poll.add(&socket, key, Flags::OUT)?;
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(Call { socket, state: State::Connecting, since, generation: self.generation });
        }
        self.under_way += 1;
        self.waiting.push_back((key, Instant::now()));
        Ok(())
    }

    fn call(&mut self, of: u64) -> Option<&mut Call> {
        let call = self.slots.get_mut(usize::try_from(of & 0xffff_ffff).ok()?)?.as_mut()?;
        (u64::from(call.generation) == of >> 32).then_some(call)
    }

    /// Closes it.
    fn drop(&mut self, of: u64) {
        let slot = (of & 0xffff_ffff) as u32;
        let Some(call) = self.slots.get_mut(slot as usize).and_then(Option::take) else { return };
        self.free.push(slot);
        self.under_way -= usize::from(call.state != State::Held);
        self.open -= u64::from(call.state != State::Connecting);
    }

    fn fail(&mut self, error: &io::Error) {
        self.opened.count(error);
        self.progress.lost.fetch_add(1, Relaxed);
    }

    /// What took too long has failed.
    fn expire(&mut self, now: Instant) -> Option<io::Error> {
        while let Some((of, began)) = self.waiting.front().copied() {
            let waits = self.call(of).is_some_and(|call| call.state != State::Held);
            if waits && now.saturating_duration_since(began) < self.calling.patience {
                break;
            }
            self.waiting.pop_front();
            if waits {
                let said = format!("no answer within {:.1} s", self.calling.patience.as_secs_f64());
                let error = io::Error::new(io::ErrorKind::TimedOut, said);
                self.drop(of);
                self.fail(&error);
                if !self.calling.goes_on {
                    return Some(error);
                }
            }
        }
        None
    }

    fn happens(&mut self, of: u64) -> io::Result<()> {
        let Some(state) = self.call(of).map(|call| call.state) else { return Ok(()) };
        let result = match state {
            State::Connecting => self.connected(of),
            State::Talking { .. } => self.talk(of),
            State::Held => {
                // The other end says nothing to what is held: it closed, or the connection broke.
                self.drop(of);
                self.held.retain(|held| *held != of);
                self.opened.broken += 1;
                Ok(())
            }
            State::Leaving => {
                self.drop(of);
                Ok(())
            }
        };
        if result.is_err() {
            self.drop(of);
        }
        result
    }

    fn connected(&mut self, of: u64) -> io::Result<()> {
        let now = Instant::now();
        let Calling { hold, timed, .. } = *self.calling;
        let Some(call) = self.call(of) else { return Ok(()) };
        if let Some(error) = socket::error_of(&call.socket)? {
            return Err(error);
        }
        let took = now.saturating_duration_since(call.since);
        call.state = if hold > 0 { State::Held } else { State::Talking { sent: 0, got: 0 } };
        self.open += 1;
        self.opened.opened += 1;
        self.opened.most = self.opened.most.max(self.open);
        if timed == Timed::Handshake {
            self.latency.record(took);
            self.progress.add(0);
            self.last = Some(now);
        }
        if hold == 0 {
            return self.talk(of);
        }
        self.under_way -= 1;
        self.held.push_back(of);
        let slot = usize::try_from(of & 0xffff_ffff).unwrap_or(0);
        if let Some(Some(call)) = self.slots.get(slot) {
            self.poll.set(&call.socket, of, Flags::IN | Flags::RDHUP)?;
        }
        if self.held.len() > hold {
            self.leave();
        }
        Ok(())
    }

    /// The oldest of those that are held leaves.
    fn leave(&mut self) {
        let Some(of) = self.held.pop_front() else { return };
        let Some(call) = self.call(of) else { return };
        let said = rustix::net::send(&call.socket, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        call.state = State::Leaving;
        self.under_way += 1;
        self.waiting.push_back((of, Instant::now()));
        if said.is_err() {
            self.drop(of);
        }
    }

    fn talk(&mut self, of: u64) -> io::Result<()> {
        let Calling { request, response, timed, .. } = *self.calling;
        let slot = usize::try_from(of & 0xffff_ffff).unwrap_or(0);
        let Some(Some(call)) = self.slots.get_mut(slot) else { return Ok(()) };
        let State::Talking { mut sent, mut got } = call.state else { return Ok(()) };
        while sent < request {
            let left = self.asked.get(sent..).unwrap_or_default();
            match rustix::net::send(&call.socket, left, SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        loop {
            match rustix::net::recv(&call.socket, &mut self.room[..], RecvFlags::empty()) {
                Ok((_, 0)) if got == response && sent == request => {
                    let (now, since) = (Instant::now(), call.since);
                    self.bytes += (request + response) as u64;
                    self.drop(of);
                    if timed == Timed::Whole {
                        self.latency.record(now.saturating_duration_since(since));
                        self.progress.add(request + response);
                        self.last = Some(now);
                    }
                    return Ok(());
                }
                Ok((_, 0)) => {
                    let said = format!("the peer closed the connection after {got} of {response} bytes");
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
                }
                Ok((_, count)) => got += count,
                Err(error) if phase::is_again(&error.into()) => break,
                Err(error) => return Err(error.into()),
            }
            if got > response {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer said more than it was to"));
            }
        }
        call.state = State::Talking { sent, got };
        let flags = if sent < request { Flags::IN | Flags::OUT } else { Flags::IN };
        self.poll.set(&call.socket, of, flags)
    }
}

enum Due {
    Now(Instant),
    At(Instant),
    Never,
}
