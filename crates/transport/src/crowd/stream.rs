//! Bytes in one direction over each of many connections.

use super::{Crowd, Flags, failed, longest};
use crate::pace::Pacer;
use crate::phase::{self, Done, End, Progress, Until};
use crate::stream::receive::{begin as begin_to_receive, waiting};
use crate::stream::send::{Way, begin as begin_to_send, permit_zerocopy};
use crate::stream::{MOST, Receiving, Sending, ended};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Where a sender stands.
#[derive(Clone, Copy, Default)]
struct Sender {
    /// Bytes of its message that were sent.
    at: usize,
    /// Messages that are due and not sent, with a schedule.
    due: u32,
    /// It waits for room.
    blocked: bool,
}

/// Sends over all until it is over; `sending.rate` is that of each. Who is done sends no more (shutdown).
pub fn send(sockets: &[OwnedFd], sending: &Sending, until: &Until, progress: &Progress) -> Vec<Done> {
    let paced = sending.rate.is_some();
    let begun = sockets.first().map(|socket| begin_to_send(socket, sending)).transpose();
    let flags = if paced { Flags::empty() } else { Flags::OUT };
    match (begun, Crowd::new(sockets, flags)) {
        (Ok(Some(way)), Ok(crowd)) => {
            let states = vec![Sender::default(); sockets.len()];
            Sends { sockets, sending, until, progress, way, crowd, states, moved: Duration::ZERO }.run()
        }
        (Ok(None), Ok(_)) => Vec::new(),
        (Err(error), _) | (_, Err(error)) => failed(sockets.len(), &error),
    }
}

struct Sends<'a> {
    sockets: &'a [OwnedFd],
    sending: &'a Sending,
    until: &'a Until,
    progress: &'a Progress,
    way: Way,
    crowd: Crowd,
    states: Vec<Sender>,
    moved: Duration,
}

impl Sends<'_> {
    fn run(mut self) -> Vec<Done> {
        let count = self.sockets.len();
        if self.sending.method == crate::stream::Send::Zerocopy
            && let Err(error) = self.sockets.iter().try_for_each(permit_zerocopy)
        {
            return failed(count, &error);
        }
        // All of them take turns: message k of the thread's schedule is connection k's, modulo their number.
        let mut pacer = self.sending.rate.map(|rate| {
            let rate = crate::pace::Rate { count: rate.count.saturating_mul(count as u64), ..rate };
            Pacer::new(rate, Instant::now(), self.sending.bound, self.sending.spin)
        });
        let mut turn = 0;
        let end = loop {
            let now = Instant::now();
            if let Some(end) = self.until.over(now) {
                break end;
            }
            if self.crowd.are_over() {
                break End::Amount;
            }
            let mut wait = longest(self.until, now);
            if let Some(pacer) = &mut pacer {
                let ready = pacer.ready(now, 1024);
                for _ in 0..ready {
                    self.is_due(turn);
                    turn = (turn + 1) % count;
                }
                pacer.sent(ready);
                wait = if self.sending.spin {
                    Duration::ZERO
                } else {
                    wait.min(pacer.due().saturating_duration_since(now))
                };
            }
            let events = match self.crowd.poll.wait(wait) {
                Ok(events) => events,
                Err(error) => break End::Failed(error),
            };
            for event in 0..events {
                let Some((key, flags)) = self.crowd.poll.event(event) else { break };
                let Ok(at) = usize::try_from(key) else { continue };
                if flags.contains(Flags::ERR)
                    && let Some(socket) = self.sockets.get(at)
                {
                    // Completions of zerocopy sends; what else it is the next call says.
                    let _ = self.way.gather(socket);
                }
                self.one(at);
            }
        };
        self.crowd.end_all(&end);
        let mut done = std::mem::take(&mut self.crowd.done);
        for (done, socket) in done.iter_mut().zip(self.sockets) {
            if done.bytes > 0 {
                done.last = Some(done.ended);
            }
            // The other end then reads to the end.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
        }
        if let Some(first) = done.first_mut() {
            let (moved, late) = pacer.map_or_else(Default::default, |pacer| (pacer.moved(), pacer.latest()));
            // A connection that does not take what is due is behind by the bound when more is left out.
            let blocked = if self.moved.is_zero() { Duration::ZERO } else { self.sending.bound };
            (first.moved, first.late) = (moved + self.moved, late.max(blocked));
            first.zerocopy = self.way.settle_all(self.sockets);
        }
        done
    }

    /// A message of `at` is due.
    fn is_due(&mut self, at: usize) {
        let Some(rate) = self.sending.rate else { return };
        if self.crowd.is_over(at) {
            return;
        }
        let each = rate.due(1);
        let most =
            1 + u32::try_from(self.sending.bound.as_nanos() / each.as_nanos().max(1)).unwrap_or(u32::MAX - 1);
        let Some(state) = self.states.get_mut(at) else { return };
        if state.due >= most {
            // Who is later than the bound does not catch up.
            self.moved = self.moved.saturating_add(each);
            return;
        }
        state.due += 1;
        if !state.blocked {
            self.one(at);
        }
    }

    /// Sends over connection `at`: a message, or without a schedule what one call takes.
    fn one(&mut self, at: usize) {
        let size = self.sending.size.clamp(1, MOST);
        let paced = self.sending.rate.is_some();
        let (Some(state), Some(socket)) = (self.states.get_mut(at), self.sockets.get(at)) else { return };
        if self.crowd.is_over(at) {
            return;
        }
        loop {
            let Some(done) = self.crowd.done.get_mut(at) else { return };
            let most = self.until.room(done.bytes, size - state.at);
            if most == 0 || (state.at == 0 && self.until.counted(done.count)) {
                let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
                return self.crowd.end(at, socket, End::Amount);
            }
            let blocked = match self.way.send(socket, state.at, most) {
                Ok(0) => return self.crowd.end(at, socket, End::Failed(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    state.at += count;
                    done.bytes += count as u64;
                    done.first.get_or_insert_with(Instant::now);
                    self.progress.bytes.fetch_add(count as u64, Relaxed);
                    if state.at == size || self.until.room(done.bytes, size) == 0 {
                        state.at = 0;
                        state.due = state.due.saturating_sub(1);
                        done.count += 1;
                        self.progress.add(0);
                    }
                    false
                }
                Err(error) if phase::is_again(&error) => true,
                Err(error) => return self.crowd.end(at, socket, ended(error)),
            };
            if !paced {
                return;
            }
            let waits = blocked && (state.due > 0 || state.at > 0);
            if waits != state.blocked {
                state.blocked = waits;
                let flags = if waits { Flags::OUT } else { Flags::empty() };
                if let Err(error) = self.crowd.poll.set(socket, at as u64, flags) {
                    return self.crowd.end(at, socket, End::Failed(error));
                }
            }
            if blocked || (state.due == 0 && state.at == 0) {
                return;
            }
        }
    }
}

/// Receives over all until their peers close, or until it is over; `receiving.rate` is that of each.
pub fn receive(sockets: &[OwnedFd], receiving: &Receiving, until: &Until, progress: &Progress) -> Vec<Done> {
    let begun = sockets.first().map(|socket| begin_to_receive(socket, receiving)).transpose();
    let (mut way, mut crowd) = match (begun, Crowd::new(sockets, Flags::IN)) {
        (Ok(Some(way)), Ok(crowd)) => (way, crowd),
        (Ok(None), Ok(_)) => return Vec::new(),
        (Err(error), _) | (_, Err(error)) => return failed(sockets.len(), &error),
    };
    let size = receiving.size.clamp(1, MOST);
    let mut pacer = receiving.rate.map(|rate| {
        let rate = crate::pace::Rate { count: rate.count.saturating_mul(sockets.len() as u64), ..rate };
        Pacer::new(rate, Instant::now(), Duration::from_millis(10), false)
    });
    let end = loop {
        let now = Instant::now();
        if let Some(end) = until.over(now) {
            break end;
        }
        if crowd.are_over() {
            break End::Closed;
        }
        let mut calls = u64::MAX;
        if let Some(pacer) = &mut pacer {
            calls = pacer.ready(now, u64::MAX);
            if calls == 0 {
                pacer.wait(phase::LOOK);
                continue;
            }
        }
        let events = match crowd.poll.wait(longest(until, now)) {
            Ok(events) => events,
            Err(error) => break End::Failed(error),
        };
        // What is not read this time is ready the next time.
        let events = events.min(usize::try_from(calls).unwrap_or(usize::MAX));
        if let Some(pacer) = &mut pacer {
            pacer.sent(events as u64);
        }
        for event in 0..events {
            let Some((key, _)) = crowd.poll.event(event) else { break };
            let Ok(at) = usize::try_from(key) else { continue };
            let (Some(socket), Some(done)) = (sockets.get(at), crowd.done.get_mut(at)) else { continue };
            let most = until.room(done.bytes, size);
            if most == 0 || until.counted(done.count) {
                crowd.end(at, socket, End::Amount);
                continue;
            }
            match way.receive(socket, most) {
                Ok(0) => crowd.end(at, socket, End::Closed),
                Ok(count) => {
                    if done.first.is_none() {
                        done.by_first = (count as u64).saturating_add(waiting(socket));
                    }
                    done.add(count, Instant::now());
                    progress.add(count);
                    if until.room(done.bytes, size) == 0 {
                        crowd.end(at, socket, End::Amount);
                    }
                }
                Err(error) if phase::is_again(&error) => {}
                Err(error) => crowd.end(at, socket, End::Failed(error)),
            }
        }
    };
    crowd.end_all(&end);
    crowd.done
}
