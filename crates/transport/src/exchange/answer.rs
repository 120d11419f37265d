//! Who answers.

use super::ask::whole;
use super::{Exchange, TAG, take};
use crate::phase::{self, Done, End, Progress, Until};
use crate::stream::content;
use rustix::net::SendFlags;
use std::os::fd::AsFd;
use std::time::Instant;

/// Answers each request over `socket` until the peer closes, or it is over. Datagrams are answered over a connected socket: nobody
/// else's are heard.
pub fn answer(socket: &impl AsFd, exchange: &Exchange, until: &Until, progress: &Progress) -> Done {
    let done = Done::new();
    if let Err(error) = phase::look_up_often(socket) {
        return done.end(End::Failed(error));
    }
    if exchange.datagrams {
        datagrams(socket, exchange, until, progress, done)
    } else {
        stream(socket, exchange, until, progress, done)
    }
}

fn stream(
    socket: &impl AsFd,
    exchange: &Exchange,
    until: &Until,
    progress: &Progress,
    mut done: Done,
) -> Done {
    let (request, response) = exchange.sizes();
    let said = content(response);
    let mut room = vec![0; request];
    let end = 'all: loop {
        let mut part = 0;
        while part < request {
            match take(socket, room.get_mut(part..).unwrap_or_default(), exchange.spin) {
                Ok(0) => break 'all End::Closed,
                Ok(count) => part += count,
                Err(error) if phase::is_again(&error) => {
                    if let Some(end) = until.over(Instant::now()) {
                        break 'all end;
                    }
                }
                Err(error) => break 'all End::Failed(error),
            }
        }
        match whole(socket, &said, SendFlags::empty(), until) {
            Ok(true) => {}
            Ok(false) => break until.over(Instant::now()).unwrap_or(End::Stopped),
            Err(error) => break crate::stream::ended(error),
        }
        let now = Instant::now();
        done.add(request + response, now);
        progress.add(request + response);
        if let Some(end) = until.over(now) {
            break end;
        }
        if until.counted(done.count) {
            break End::Amount;
        }
    };
    done.end(end)
}

fn datagrams(
    socket: &impl AsFd,
    exchange: &Exchange,
    until: &Until,
    progress: &Progress,
    mut done: Done,
) -> Done {
    let (request, response) = exchange.sizes();
    let mut said = content(response);
    let mut room = vec![0; request + 1];
    let end = loop {
        match take(socket, &mut room, exchange.spin) {
            Ok(length) if length == request => {
                if exchange.is_tagged()
                    && let (Some(into), Some(tag)) =
                        (said.first_chunk_mut::<TAG>(), room.first_chunk::<TAG>())
                {
                    *into = *tag;
                }
                match rustix::net::send(socket, &said, SendFlags::NOSIGNAL) {
                    Ok(_) => {
                        let now = Instant::now();
                        done.add(request + response, now);
                        progress.add(request + response);
                    }
                    // It is lost, and who asked finds out.
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => {}
                    Err(error) => break End::Failed(error.into()),
                }
            }
            Ok(_) => {}
            Err(error) if phase::is_again(&error) => {}
            Err(error) => break End::Failed(error),
        }
        if let Some(end) = until.over(Instant::now()) {
            break end;
        }
        if until.counted(done.count) {
            break End::Amount;
        }
    };
    done.end(end)
}
