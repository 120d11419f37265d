//! Who asks, in an open loop: requests are due by a schedule.

use super::ask::{tag, tagged};
use super::{Exchange, record_waiting, take};
use crate::pace::Rate;
use crate::phase::{self, Done, End, Latency, Progress, Until};
use crate::stream::content;
use histogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// In flight: number, when it was due, when it was sent.
type InFlight = (u64, Instant, Instant);

pub(super) fn ask(
    socket: &impl AsFd,
    exchange: &Exchange,
    rate: Rate,
    until: &Until,
    progress: &Progress,
    latency: &Latency,
    mut done: Done,
) -> Done {
    let (request, response) = exchange.sizes();
    let most = exchange.most_in_flight();
    let mut asked = content(request);
    let mut room = vec![0; response.saturating_mul(most).min(1 << 20).max(response) + 1];
    let mut since: VecDeque<InFlight> = VecDeque::with_capacity(most.min(1024));
    let start = done.began;
    // The next request, how much of it is sent, how much of the next response is here.
    let (mut next, mut at, mut part) = (0_u64, 0, 0);
    let end = loop {
        let now = Instant::now();
        if let Some(end) = until.over(now) {
            break end;
        }
        if until.counted(done.count) {
            break End::Amount;
        }
        // Looked at each time: where answers to others always are there, nothing is ever waited for.
        while exchange.datagrams && is_lost(&since, exchange.patience, now) {
            since.pop_front();
            progress.lost.fetch_add(1, Relaxed);
        }
        let due = start.checked_add(rate.due(next)).unwrap_or(now);
        let wants = since.len() < most && due <= now && until.count.is_none_or(|count| next < count);
        let mut blocked = false;
        if wants {
            if at == 0 && exchange.is_tagged() {
                tag(&mut asked, next);
            }
            let left = asked.get(at..).unwrap_or_default();
            match send(socket, left) {
                Ok(Some(count)) => {
                    at += count;
                    if at >= request {
                        at = 0;
                        since.push_back((next, due, now));
                        next += 1;
                    }
                }
                Ok(None) => blocked = true,
                Err(error) => break End::Failed(error),
            }
        }
        let wanted =
            if exchange.datagrams { response + 1 } else { (response * since.len()).saturating_sub(part) };
        let wanted = wanted.min(room.len());
        let got = if wanted == 0 || since.is_empty() {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            take(socket, room.get_mut(..wanted).unwrap_or_default(), true)
        };
        match got {
            Ok(0) if !exchange.datagrams => break End::Closed,
            Ok(count) => {
                let now = Instant::now();
                let mut answered = |asked: Option<InFlight>| {
                    if let Some((_, due, _)) = asked {
                        latency.record(now - due);
                        done.add(request + response, now);
                        progress.add(request + response);
                    }
                };
                if exchange.datagrams {
                    if count == response {
                        answered(taken(&mut since, exchange, &room));
                    }
                } else {
                    part += count;
                    while part >= response {
                        part -= response;
                        answered(since.pop_front());
                    }
                }
                continue;
            }
            Err(error) if phase::is_again(&error) => {}
            Err(error) => break End::Failed(error),
        }
        if exchange.spin || (wants && !blocked) {
            continue;
        }
        let asks_at = start.checked_add(rate.due(next)).filter(|_| since.len() < most && !blocked);
        let soonest = [asks_at, until.deadline].into_iter().flatten().min();
        let longest = soonest.map_or(phase::LOOK, |at| at.saturating_duration_since(now).min(phase::LOOK));
        wait(socket, blocked, longest);
    };
    done.unsent = due_by_now(rate, until, start).saturating_sub(next);
    record_waiting(latency, since.into_iter().map(|(_, due, _)| due), &end, Histogram::p99);
    done.end(end)
}

/// Sends what the socket takes of a request; `None` where it has no room now.
fn send(socket: &impl AsFd, left: &[u8]) -> io::Result<Option<usize>> {
    use rustix::io::Errno;
    match rustix::net::send(socket, left, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes the request that a datagram answers out of those that are in flight.
fn taken(since: &mut VecDeque<InFlight>, exchange: &Exchange, datagram: &[u8]) -> Option<InFlight> {
    let oldest = since.front().map(|asked| asked.0);
    let number = if exchange.is_tagged() { tagged(datagram) } else { oldest };
    let place = since.iter().position(|asked| Some(asked.0) == number)?;
    since.remove(place)
}

/// Whether the oldest request in flight was waited for long enough.
fn is_lost(since: &VecDeque<InFlight>, patience: Duration, now: Instant) -> bool {
    since.front().is_some_and(|(_, _, sent)| now.saturating_duration_since(*sent) >= patience)
}

/// Requests that were due: the load that was intended. Of those that were not even sent it was not offered.
fn due_by_now(rate: Rate, until: &Until, start: Instant) -> u64 {
    let elapsed = start.elapsed();
    let by = until.deadline.map_or(elapsed, |deadline| deadline.saturating_duration_since(start));
    let due = rate.due_by(by.min(elapsed));
    until.count.map_or(due, |count| due.min(count))
}

fn wait(socket: &impl AsFd, writable: bool, longest: Duration) {
    let flags = if writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    if let Ok(timeout) = Timespec::try_from(longest) {
        // What went wrong the next call says.
        let _ = poll(&mut [PollFd::new(socket, flags)], Some(&timeout));
    }
}
