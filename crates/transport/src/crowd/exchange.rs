//! Requests and responses over each of many connections, in a closed or an open loop. Streams only: of datagrams each flow has a thread.

use super::{Crowd, Flags, failed, longest};
use crate::exchange::{Exchange, record_waiting};
use crate::pace::Rate;
use crate::phase::{self, Done, End, Latency, Progress, Until};
use crate::stream::{content, ended};
use histogram::Histogram;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Bytes that one call is given room for, whatever a message is.
const ROOM: usize = 64 << 10;

/// Where an asker stands.
#[derive(Default)]
struct Asker {
    /// Requests that were begun, and that were due.
    begun: u64,
    due: u64,
    /// Bytes of the request that is next that were sent, of the response that is next that arrived.
    at: usize,
    part: usize,
    /// Of those in flight: when they left, or in an open loop when they were due.
    since: VecDeque<Instant>,
    blocked: bool,
}

/// Asks over all until it is over. `exchange.rate` is that of each.
pub fn ask(
    sockets: &[OwnedFd],
    exchange: &Exchange,
    until: &Until,
    progress: &Progress,
    latency: &Latency,
) -> Vec<Done> {
    let crowd = match Crowd::new(sockets, Flags::IN) {
        Ok(crowd) => crowd,
        Err(error) => return failed(sockets.len(), &error),
    };
    let (request, response) = exchange.sizes();
    let most = exchange.most_in_flight();
    let states = sockets.iter().map(|_| Asker::default()).collect();
    // All of them take turns: request k of the thread's schedule is connection k's, modulo their number.
    let count = sockets.len() as u64;
    let schedule = exchange.rate.map(|rate| Rate { count: rate.count.saturating_mul(count), ..rate });
    let asked = content(request);
    let room = vec![0; response.saturating_mul(most).min(ROOM).max(response.min(ROOM))];
    let start = Instant::now();
    Asks { sockets, exchange, until, progress, latency, crowd, states, schedule, start, asked, room, most }
        .run()
}

struct Asks<'a> {
    sockets: &'a [OwnedFd],
    exchange: &'a Exchange,
    until: &'a Until,
    progress: &'a Progress,
    latency: &'a Latency,
    crowd: Crowd,
    states: Vec<Asker>,
    schedule: Option<Rate>,
    start: Instant,
    asked: Vec<u8>,
    room: Vec<u8>,
    most: usize,
}

impl Asks<'_> {
    fn run(mut self) -> Vec<Done> {
        let count = self.sockets.len();
        if self.schedule.is_none() {
            (0..count).for_each(|at| self.fill(at));
        }
        let mut next = 0_u64;
        let end = loop {
            let now = Instant::now();
            let over = self.until.over(now);
            if self.crowd.are_over() {
                break over.unwrap_or(End::Amount);
            }
            let mut wait = longest(self.until, now);
            if let Some(rate) = self.schedule.filter(|_| !matches!(over, Some(End::Stopped))) {
                // What was due by the end is asked, if the thread is in time. One that was late looks at its sockets in between.
                let by = self.until.deadline.map_or(now, |end| end.min(now));
                for _ in 0..1024 {
                    let due = self.start.checked_add(rate.due(next)).unwrap_or(now);
                    if due > by {
                        wait = wait.min(due.saturating_duration_since(now));
                        break;
                    }
                    wait = Duration::ZERO;
                    let at = usize::try_from(next % (count as u64).max(1)).unwrap_or(0);
                    next += 1;
                    if let Some(state) = self.states.get_mut(at) {
                        state.due += 1;
                    }
                    self.fill(at);
                }
            }
            if let Some(end) = over {
                break end;
            }
            if self.exchange.spin {
                wait = Duration::ZERO;
            }
            let events = match self.crowd.poll.wait(wait) {
                Ok(events) => events,
                Err(error) => break End::Failed(error),
            };
            for event in 0..events {
                let Some((key, _)) = self.crowd.poll.event(event) else { break };
                let Ok(at) = usize::try_from(key) else { continue };
                self.take(at);
                self.fill(at);
            }
        };
        self.account(&end);
        self.crowd.end_all(&end);
        self.crowd.done
    }

    /// What waits long at the end, and what an open loop did not offer.
    fn account(&mut self, end: &End) {
        let since = self.states.iter().flat_map(|state| state.since.iter().copied());
        let than = if self.schedule.is_some() { Histogram::p99 } else { Histogram::max };
        record_waiting(self.latency, since, end, than);
        let Some(rate) = self.schedule else { return };
        let by = self
            .until
            .deadline
            .map_or_else(|| self.start.elapsed(), |end| end.saturating_duration_since(self.start));
        let due = rate.due_by(by.min(self.start.elapsed()));
        let due =
            self.until.count.map_or(due, |count| due.min(count.saturating_mul(self.sockets.len() as u64)));
        let begun: u64 = self.states.iter().map(|state| state.begun).sum();
        if let Some(first) = self.crowd.done.first_mut() {
            first.unsent = due.saturating_sub(begun);
        }
    }

    /// Sends requests of `at` as far as there is room in flight, and they are due.
    fn fill(&mut self, at: usize) {
        let (Some(state), Some(socket)) = (self.states.get_mut(at), self.sockets.get(at)) else { return };
        if self.crowd.is_over(at) {
            return;
        }
        let request = self.asked.len();
        let number = at as u64;
        let count = self.sockets.len() as u64;
        let mut blocked = false;
        while state.since.len() < self.most
            && self.until.count.is_none_or(|most| state.begun < most)
            && (self.schedule.is_none() || state.begun < state.due)
        {
            let now = Instant::now();
            let left = self.asked.get(state.at..).unwrap_or_default();
            match rustix::net::send(socket, left, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    state.at += sent;
                    if state.at >= request {
                        state.at = 0;
                        let due = self.schedule.and_then(|rate| {
                            self.start.checked_add(
                                rate.due(state.begun.saturating_mul(count).saturating_add(number)),
                            )
                        });
                        state.since.push_back(due.unwrap_or(now));
                        state.begun += 1;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    blocked = true;
                    break;
                }
                Err(error) => return self.crowd.end(at, socket, ended(error.into())),
            }
        }
        if blocked != state.blocked {
            state.blocked = blocked;
            let flags = if blocked { Flags::IN | Flags::OUT } else { Flags::IN };
            if let Err(error) = self.crowd.poll.set(socket, number, flags) {
                return self.crowd.end(at, socket, End::Failed(error));
            }
        }
        if state.since.is_empty() && self.until.count.is_some_and(|most| state.begun >= most) {
            self.crowd.end(at, socket, End::Amount);
        }
    }

    /// Takes what has arrived over `at`.
    fn take(&mut self, at: usize) {
        let (Some(state), Some(socket)) = (self.states.get_mut(at), self.sockets.get(at)) else { return };
        if self.crowd.is_over(at) {
            return;
        }
        let (request, response) = self.exchange.sizes();
        let wanted =
            response.saturating_mul(state.since.len()).saturating_sub(state.part).clamp(1, self.room.len());
        let got =
            rustix::net::recv(socket, self.room.get_mut(..wanted).unwrap_or_default(), RecvFlags::empty());
        match got {
            Ok((_, 0)) => self.crowd.end(at, socket, End::Closed),
            // Who answers what was not asked is no server of ours.
            Ok(_) if state.since.is_empty() => {
                let said = "the other end said more than it was asked";
                self.crowd.end(at, socket, End::Failed(io::Error::new(io::ErrorKind::InvalidData, said)));
            }
            Ok((_, count)) => {
                state.part += count;
                let now = Instant::now();
                while state.part >= response {
                    state.part -= response;
                    let Some(since) = state.since.pop_front() else { break };
                    self.latency.record(now.saturating_duration_since(since));
                    if let Some(done) = self.crowd.done.get_mut(at) {
                        done.add(request + response, now);
                    }
                    self.progress.add(request + response);
                }
            }
            Err(error) if phase::is_again(&error.into()) => {}
            Err(error) => self.crowd.end(at, socket, End::Failed(error.into())),
        }
    }
}

/// Where an answerer stands.
#[derive(Clone, Copy, Default)]
struct Answerer {
    /// Bytes of the request that is next that arrived,
    part: usize,
    /// and bytes of responses that are to be sent.
    owed: usize,
    blocked: bool,
}

/// Answers over all until their peers close, or it is over.
pub fn answer(sockets: &[OwnedFd], exchange: &Exchange, until: &Until, progress: &Progress) -> Vec<Done> {
    let mut crowd = match Crowd::new(sockets, Flags::IN) {
        Ok(crowd) => crowd,
        Err(error) => return failed(sockets.len(), &error),
    };
    let (request, response) = exchange.sizes();
    let said = content(response);
    let mut room = vec![0; ROOM];
    let mut states = vec![Answerer::default(); sockets.len()];
    let end = loop {
        let now = Instant::now();
        if let Some(end) = until.over(now) {
            break end;
        }
        if crowd.are_over() {
            break End::Closed;
        }
        let wait = if exchange.spin { Duration::ZERO } else { longest(until, now) };
        let events = match crowd.poll.wait(wait) {
            Ok(events) => events,
            Err(error) => break End::Failed(error),
        };
        for event in 0..events {
            let Some((key, _)) = crowd.poll.event(event) else { break };
            let Ok(at) = usize::try_from(key) else { continue };
            let (Some(state), Some(socket)) = (states.get_mut(at), sockets.get(at)) else { continue };
            // Who does not take its responses is not heard until it does: what is owed stays a number.
            if state.owed == 0 {
                match rustix::net::recv(socket, &mut room[..], RecvFlags::empty()) {
                    Ok((_, 0)) => {
                        crowd.end(at, socket, End::Closed);
                        continue;
                    }
                    Ok((_, count)) => {
                        state.part += count;
                        let whole = state.part / request;
                        state.part %= request;
                        state.owed = whole * response;
                    }
                    Err(error) if phase::is_again(&error.into()) => {}
                    Err(error) => {
                        crowd.end(at, socket, End::Failed(error.into()));
                        continue;
                    }
                }
            }
            let mut end = None;
            let mut blocked = false;
            while state.owed > 0 {
                // A response each: not several in one segment that the asker would wait for.
                let left = (state.owed - 1) % response + 1;
                match rustix::net::send(
                    socket,
                    said.get(response - left..).unwrap_or_default(),
                    SendFlags::NOSIGNAL,
                ) {
                    Ok(sent) => {
                        let sent = sent.min(left);
                        state.owed -= sent;
                        if sent == left {
                            if let Some(done) = crowd.done.get_mut(at) {
                                done.add(request + response, Instant::now());
                            }
                            progress.add(request + response);
                        }
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(rustix::io::Errno::AGAIN) => {
                        blocked = true;
                        break;
                    }
                    Err(error) => {
                        end = Some(ended(error.into()));
                        break;
                    }
                }
            }
            if blocked != state.blocked {
                state.blocked = blocked;
                let flags = if blocked { Flags::OUT } else { Flags::IN };
                if let Err(error) = crowd.poll.set(socket, key, flags) {
                    end = Some(End::Failed(error));
                }
            }
            if let Some(end) = end {
                crowd.end(at, socket, end);
            }
        }
    };
    crowd.end_all(&end);
    crowd.done
}
