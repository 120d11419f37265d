//! Requests and responses: over one connection ([`ask`], [`answer`]), over a connection each ([`ask_each`], [`answer_each`]).
//!
//! Who asks times each transaction. In a closed loop a request leaves when a response arrived, and its time runs from then. In an
//! open loop ([`Exchange::rate`]) requests are due by a schedule, and time runs from when one was due, sent or not: a server
//! that stalls is charged for all that it kept waiting (no coordinated omission).

mod answer;
mod ask;
mod each;
mod open;
#[cfg(test)]
mod tests;

pub use answer::answer;
pub use ask::ask;
pub use each::{Answering, Closing, Connecting, answer_each, ask_each};

use crate::pace::Rate;
use crate::phase::{End, Latency};
use histogram::Histogram;
use rustix::net::RecvFlags;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Requests and responses, as both ends have to know them.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Requests that are asked and not answered, at most: 1 is one after the other. (netperf's `-b N` is N + 1.)
    pub in_flight: u32,
    /// Requests are due on this schedule (open loop). None: when there is room in flight (closed loop).
    pub rate: Option<Rate>,
    /// Each message is a datagram.
    pub datagrams: bool,
    /// Receives without ever sleeping: a core is taken whole.
    pub spin: bool,
    /// A datagram that is not answered by then is lost, and the next one is asked. No use for streams.
    pub patience: Duration,
}

impl Exchange {
    /// One after the other, over a stream.
    pub fn new(request: usize, response: usize) -> Exchange {
        Exchange {
            request,
            response,
            in_flight: 1,
            rate: None,
            datagrams: false,
            spin: false,
            patience: Duration::from_secs(1),
        }
    }

    pub(crate) fn sizes(&self) -> (usize, usize) {
        // Whoever is asked for more than is possible has refused it: less would be another test, and nobody would know.
        (self.request.max(1), self.response.max(1))
    }

    pub(crate) fn most_in_flight(&self) -> usize {
        (self.in_flight as usize).clamp(1, MOST_IN_FLIGHT)
    }

    /// Datagrams that are large enough begin with their number, and the response has the request's: a late one is known.
    fn is_tagged(&self) -> bool {
        self.datagrams && self.request >= TAG && self.response >= TAG
    }
}

/// Most transactions in flight over one connection.
pub const MOST_IN_FLIGHT: usize = 65_536;
const TAG: usize = 8;

/// Of requests in flight at the end, those that have waited longer than `than` of the others count as they stand, since they were sent or,
/// in an open loop, due: left out, a server that stalled until the end would seem as fast as it was before. Where an amount was done,
/// nothing is in flight.
pub(crate) fn record_waiting(
    latency: &Latency,
    since: impl IntoIterator<Item = Instant>,
    end: &End,
    than: impl Fn(&Histogram) -> u64,
) {
    if matches!(end, End::Amount) {
        return;
    }
    let (now, others) = (Instant::now(), Duration::from_nanos(than(&latency.so_far())));
    let waited = since.into_iter().map(|since| now.saturating_duration_since(since));
    waited.filter(|waited| *waited > others).for_each(|waited| latency.record(waited));
}

/// Receives; without sleeping, if it is to spin.
fn take(socket: &impl AsFd, into: &mut [u8], spin: bool) -> io::Result<usize> {
    let flags = if spin { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
    Ok(rustix::net::recv(socket, into, flags)?.1)
}
