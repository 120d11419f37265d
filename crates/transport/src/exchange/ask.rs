//! Who asks, in a closed loop.

use super::{Exchange, TAG, open, record_waiting, take};
use crate::phase::{self, Done, End, Latency, Progress, Until};
use crate::stream::content;
use histogram::Histogram;
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Asks until it is over. Counts transactions that were answered, and their bytes both ways.
pub fn ask(
    socket: &impl AsFd,
    exchange: &Exchange,
    until: &Until,
    progress: &Progress,
    latency: &Latency,
) -> Done {
    let done = Done::new();
    if let Err(error) = phase::look_up_often(socket) {
        return done.end(End::Failed(error));
    }
    match (exchange.rate, exchange.datagrams) {
        (Some(rate), _) => open::ask(socket, exchange, rate, until, progress, latency, done),
        (None, true) => datagrams(socket, exchange, until, progress, latency, done),
        (None, false) => stream(socket, exchange, until, progress, latency, done),
    }
}

fn stream(
    socket: &impl AsFd,
    exchange: &Exchange,
    until: &Until,
    progress: &Progress,
    latency: &Latency,
    mut done: Done,
) -> Done {
    let (request, response) = exchange.sizes();
    let most = exchange.most_in_flight();
    let asked = content(request);
    // Several responses may come at once.
    let mut room = vec![0; response.saturating_mul(most).min(1 << 20).max(response)];
    let mut since: VecDeque<Instant> = VecDeque::with_capacity(most);
    let mut begun = 0_u64;
    // Bytes that arrived of the response that is next.
    let mut part = 0;
    let end = 'all: loop {
        while since.len() < most && until.count.is_none_or(|count| begun < count) {
            let now = Instant::now();
            match whole(socket, &asked, SendFlags::empty(), until) {
                Ok(true) => {}
                Ok(false) => break 'all until.over(Instant::now()).unwrap_or(End::Stopped),
                Err(error) => break 'all End::Failed(error),
            }
            since.push_back(now);
            begun += 1;
        }
        if since.is_empty() {
            break End::Amount;
        }
        let wanted = (response * since.len() - part).min(room.len());
        match take(socket, room.get_mut(..wanted).unwrap_or_default(), exchange.spin) {
            Ok(0) => break End::Closed,
            Ok(count) => part += count,
            Err(error) if phase::is_again(&error) => match until.over(Instant::now()) {
                Some(end) => break end,
                None => continue,
            },
            Err(error) => break End::Failed(error),
        }
        let now = Instant::now();
        while part >= response {
            part -= response;
            let Some(asked_at) = since.pop_front() else { break };
            latency.record(now - asked_at);
            done.add(request + response, now);
            progress.add(request + response);
        }
        if let Some(end) = until.over(now) {
            break end;
        }
    };
    record_waiting(latency, since, &end, Histogram::max);
    done.end(end)
}

/// Sends all of `bytes`. False: it is over before that.
pub(super) fn whole(socket: &impl AsFd, bytes: &[u8], flags: SendFlags, until: &Until) -> io::Result<bool> {
    let mut left = bytes;
    while !left.is_empty() {
        match rustix::net::send(socket, left, flags | SendFlags::NOSIGNAL) {
            Ok(count) => left = left.get(count..).unwrap_or_default(),
            Err(error) => {
                let error = io::Error::from(error);
                if !phase::is_again(&error) {
                    return Err(error);
                }
                if until.over(Instant::now()).is_some() {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// A number in a datagram.
pub(super) fn tag(bytes: &mut [u8], number: u64) {
    if let Some(place) = bytes.first_chunk_mut::<TAG>() {
        *place = number.to_be_bytes();
    }
}

/// The number in a datagram.
pub(super) fn tagged(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<TAG>().map(|bytes| u64::from_be_bytes(*bytes))
}

fn datagrams(
    socket: &impl AsFd,
    exchange: &Exchange,
    until: &Until,
    progress: &Progress,
    latency: &Latency,
    mut done: Done,
) -> Done {
    let (request, response) = exchange.sizes();
    let most = exchange.most_in_flight();
    let mut asked = content(request);
    // One byte more than is due, so that a longer one is no response.
    let mut room = vec![0; response + 1];
    let mut since: VecDeque<(u64, Instant)> = VecDeque::with_capacity(most);
    let mut begun = 0_u64;
    let end = 'all: loop {
        while since.len() < most && until.count.is_none_or(|count| begun < count) {
            if exchange.is_tagged() {
                tag(&mut asked, begun);
            }
            let now = Instant::now();
            match rustix::net::send(socket, &asked, SendFlags::NOSIGNAL) {
                Ok(_) => {}
                Err(error) => {
                    let error = io::Error::from(error);
                    if !phase::is_again(&error) && error.raw_os_error() != Some(libc::ENOBUFS) {
                        break 'all End::Failed(error);
                    }
                    if let Some(end) = until.over(now) {
                        break 'all end;
                    }
                    continue;
                }
            }
            since.push_back((begun, now));
            begun += 1;
        }
        let Some((oldest, _)) = since.front().copied() else { break End::Amount };
        match take(socket, &mut room, exchange.spin) {
            Ok(length) if length == response => {
                let now = Instant::now();
                let number = if exchange.is_tagged() { tagged(&room) } else { Some(oldest) };
                let place = since.iter().position(|(asked, _)| Some(*asked) == number);
                if let Some((_, asked_at)) = place.and_then(|place| since.remove(place)) {
                    latency.record(now - asked_at);
                    done.add(request + response, now);
                    progress.add(request + response);
                }
                // Answers to others do not keep a lost one in flight.
                give_up(&mut since, now, exchange.patience, progress);
                if let Some(end) = until.over(now) {
                    break end;
                }
            }
            // Another's, or cut short on its way: no response.
            Ok(_) => {}
            Err(error) if phase::is_again(&error) => {
                let now = Instant::now();
                give_up(&mut since, now, exchange.patience, progress);
                if let Some(end) = until.over(now) {
                    break end;
                }
            }
            Err(error) => break End::Failed(error),
        }
    };
    let waiting = since.into_iter().map(|(_, asked_at)| asked_at);
    record_waiting(latency, waiting, &end, Histogram::max);
    done.end(end)
}

/// Requests that were waited for long enough are lost, and make room for others.
fn give_up(since: &mut VecDeque<(u64, Instant)>, now: Instant, patience: Duration, progress: &Progress) {
    while since.front().is_some_and(|(_, asked_at)| now.saturating_duration_since(*asked_at) >= patience) {
        since.pop_front();
        progress.lost.fetch_add(1, Relaxed);
    }
}
