//! Who asks, in an open loop: requests are due by a schedule.

use super::ask::{tag, tagged};
use super::{Exchange, take};
use crate::pace::Rate;
use crate::phase::{self, Done, End, Latency, Progress, Until};
use crate::stream::content;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// In flight: number, when it was due, when it was sent.
type Asked = (u64, Instant, Instant);

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
    let mut since: VecDeque<Asked> = VecDeque::with_capacity(most.min(1024));
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
        let due = start.checked_add(rate.due(next)).unwrap_or(now);
        let wants = since.len() < most && due <= now && until.count.is_none_or(|count| next < count);
        let mut blocked = false;
        if wants {
            if at == 0 && exchange.is_tagged() {
                tag(&mut asked, next);
            }
            let left = asked.get(at..).unwrap_or_default();
            match rustix::net::send(socket, left, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => {
                    at += count;
                    if at >= request {
                        at = 0;
                        since.push_back((next, due, now));
                        next += 1;
                    }
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => {
                    blocked = true
                }
                Err(error) => break End::Failed(error.into()),
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
                let mut answered = |asked: Option<Asked>| {
                    if let Some((_, due, _)) = asked {
                        latency.record(now - due);
                        done.add(request + response, now);
                        progress.add(request + response);
                    }
                };
                if exchange.datagrams {
                    let number = if exchange.is_tagged() {
                        tagged(&room)
                    } else {
                        since.front().map(|oldest| oldest.0)
                    };
                    let place = since.iter().position(|oldest| Some(oldest.0) == number);
                    if count == response {
                        answered(place.and_then(|place| since.remove(place)));
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
        if let Some((_, _, sent)) = since.front()
            && exchange.datagrams
            && now.saturating_duration_since(*sent) >= exchange.patience
        {
            since.pop_front();
            progress.lost.fetch_add(1, Relaxed);
        }
        if exchange.spin || (wants && !blocked) {
            continue;
        }
        let sleeps_until = start.checked_add(rate.due(next)).filter(|_| since.len() < most && !blocked);
        let longest =
            sleeps_until.map_or(phase::LOOK, |due| due.saturating_duration_since(now).min(phase::LOOK));
        let longest = until.deadline.map_or(longest, |end| longest.min(end.saturating_duration_since(now)));
        wait(socket, blocked, longest);
    };
    // Who was due and not even asked: the load that was intended was not offered.
    let by =
        until.deadline.map_or(done.began.elapsed(), |deadline| deadline.saturating_duration_since(start));
    let due = rate.due_by(by.min(start.elapsed()));
    let due = until.count.map_or(due, |count| due.min(count));
    done.unsent = due.saturating_sub(next);
    // Of those in flight at the end, the ones that have waited long count as they stand: left out, they would be what the
    // schedule was to show.
    let now = Instant::now();
    if matches!(end, End::Time | End::Closed | End::Failed(_)) {
        let typical = Duration::from_nanos(latency.so_far().p99());
        for (_, due, _) in since.iter().filter(|asked| now.saturating_duration_since(asked.1) > typical) {
            latency.record(now - *due);
        }
    }
    done.end(end)
}

fn wait(socket: &impl AsFd, writable: bool, longest: Duration) {
    let flags = if writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    if let Ok(timeout) = Timespec::try_from(longest) {
        // What went wrong the next call says.
        let _ = poll(&mut [PollFd::new(socket, flags)], Some(&timeout));
    }
}
