//! A collector that gets messages over UDP: a transport session of its own, and what its host says of them.
//!
//! UDP has one answer: a host may say that nobody listens on the port. It comes after the message that it is about, and the kernel
//! gives it to whatever is sent next. So the message that was sent last is not counted before the next one has gone, or some time
//! has passed.

use super::sender::{Tally, Waiting};
use flow::export::{Session, Status};
use report::Collector;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A host that refuses says it within this, or it is not known of which message.
const ANSWERS: Duration = Duration::from_secs(1);
/// After the first templates that somebody may read nothing is sent for so long: goflow2 reads datagrams by several workers, and drops the records that one
/// of them reads before another one has read their template (up to 97 of 1,209 in trials).
const TAKES_IN: Duration = Duration::from_millis(20);
/// A message is tried so often: what is refused first may be one that went before it.
const TRIES: u32 = 4;

/// A collector at the other end of a socket.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    session: Session,
    began: Instant,
    last: Option<Last>,
    /// When nothing was sent for a while after templates.
    paused: Option<Instant>,
    /// The message with the session's number.
    numbered: Vec<u8>,
    pub collector: Collector,
}

/// What was sent last. `None`: templates, or what the probe says of itself.
#[derive(Debug)]
struct Last {
    message: Option<Arc<Waiting>>,
    octets: u64,
    at: Instant,
}

/// What became of one that was given to the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    /// It is on its way.
    Sent,
    /// An earlier one was refused, and this one did not leave.
    Refused,
    /// It cannot be sent.
    Failed,
}

impl Datagrams {
    pub fn new(socket: UdpSocket, session: Session, to: String) -> Datagrams {
        let collector = Collector { to, ..Collector::default() };
        let (last, paused, numbered) = (None, None, Vec::new());
        Datagrams { socket, session, began: Instant::now(), last, paused, numbered, collector }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Sends a message, and templates ahead of it where these are due.
    pub fn take(&mut self, message: &Arc<Waiting>, tally: &mut Tally) {
        self.send(&message.bytes, message.numbers, Some(message), tally);
    }

    /// Sends what the probe says of itself.
    pub fn status(&mut self, status: &Status, times: (u64, u64), tally: &mut Tally) {
        let mut messages = Vec::new();
        self.session
            .status(status, times, &mut |message, numbers| messages.push((message.to_vec(), numbers)));
        for (bytes, numbers) in messages {
            self.send(&bytes, numbers, None, tally);
        }
    }

    fn send(&mut self, bytes: &[u8], numbers: u32, message: Option<&Arc<Waiting>>, tally: &mut Tally) {
        let mut numbered = std::mem::take(&mut self.numbered);
        let (mut told, mut gone) = (false, Gone::Refused);
        for _ in 0..TRIES {
            // Once for each message: where nobody listens, what is said of the templates is heard by the message behind them.
            if !told && self.session.is_opening_due(self.now_ns()) {
                let is_first = self.session.is_new(self.now_ns());
                let mut opening = self.session.opening(bytes);
                self.session.put_next(&mut opening.bytes);
                match self.push(&opening.bytes, None, tally) {
                    Gone::Refused => continue,
                    Gone::Sent => {
                        self.session.opened(&opening, self.now_ns());
                        if is_first {
                            self.pause(tally);
                        }
                    }
                    Gone::Failed => {}
                }
                told = true;
            }
            numbered.clear();
            numbered.extend(bytes);
            self.session.put_next(&mut numbered);
            gone = self.push(&numbered, message, tally);
            if gone != Gone::Refused {
                break;
            }
        }
        if gone != Gone::Sent {
            self.collector.refused_messages += 1;
        }
        // One that did not leave is a gap in the numbers, as one is that got lost.
        self.session.number(numbers);
        self.numbered = numbered;
    }

    /// Lets the collector take in its first templates, unless its host says meanwhile that nobody listens. Where that is not known for
    /// long, it is once a second at most: other collectors wait as long.
    fn pause(&mut self, tally: &mut Tally) {
        if self.paused.is_some_and(|at| at.elapsed() < ANSWERS) {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < TAKES_IN {
            self.hear(tally);
            if self.last.is_none() {
                return;
            }
            std::thread::sleep(TAKES_IN / 20);
        }
        self.paused = Some(Instant::now());
    }

    fn push(&mut self, bytes: &[u8], message: Option<&Arc<Waiting>>, tally: &mut Tally) -> Gone {
        loop {
            match self.socket.send(bytes) {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.refused(tally);
                    return Gone::Refused;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Gone::Failed,
            }
        }
        self.settle(tally);
        self.collector.messages += 1;
        let octets = bytes.len() as u64;
        self.last = Some(Last { message: message.map(Arc::clone), octets, at: Instant::now() });
        Gone::Sent
    }

    /// One that was sent was not taken.
    fn refused(&mut self, tally: &mut Tally) {
        self.session.was_refused(self.now_ns());
        self.collector.messages = self.collector.messages.saturating_sub(1);
        self.collector.refused_messages += 1;
        if let Some(message) = self.last.take().and_then(|last| last.message) {
            tally.settle(message);
        }
    }

    /// The one that was sent last is not known to be refused.
    fn settle(&mut self, tally: &mut Tally) {
        let Some(last) = self.last.take() else { return };
        self.session.went(last.octets, last.message.as_ref().map_or(0, |message| message.counts[0]));
        if let Some(message) = last.message {
            message.taken.store(true, Relaxed);
            tally.settle(message);
        }
    }

    /// Hears what its host says of the message that was sent last, where nothing is sent meanwhile.
    pub fn hear(&mut self, tally: &mut Tally) {
        if let Ok(Some(error)) = self.socket.take_error()
            && error.kind() == ErrorKind::ConnectionRefused
        {
            self.refused(tally);
        } else if self.last.as_ref().is_some_and(|last| last.at.elapsed() > ANSWERS) {
            self.settle(tally);
        }
    }

    /// Nothing more is sent.
    pub fn end(mut self, tally: &mut Tally) -> Collector {
        self.hear(tally);
        self.settle(tally);
        self.collector
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::export::{LONGEST, Settings};
    use flow::sampling::Flows;
    use flow::template::{Context, Version, usual};

    fn settings() -> Settings {
        Settings {
            version: Version::V9,
            template: usual(Version::V9),
            first_template: 257,
            both_ways: false,
            signed: false,
            domain: 0,
            longest: LONGEST,
            refresh_messages: 20,
            refresh_ns: 60_000_000_000,
            context: Context {
                began_ns: 0,
                interfaces: [[1, 0], [0, 1]],
                sampling: 1,
                random: false,
                flows: Flows::all(),
            },
        }
    }

    #[test]
    fn a_collector_that_starts_late_has_time_for_its_first_templates_and_none_is_waited_for_without_one() {
        let gone = UdpSocket::bind("127.77.3.1:0").expect("a port");
        let at = gone.local_addr().expect("an address");
        drop(gone);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(at).expect("connected");
        let session = Session::new(settings()).expect("a template");
        let (mut to, mut tally) = (Datagrams::new(socket, session, at.to_string()), Tally::default());
        let message = Arc::new(Waiting::of_the_probe(vec![0; 24], 1));
        // Its host refuses the templates at once.
        for _ in 0..3 {
            to.take(&message, &mut tally);
            assert!(to.paused.is_none() && to.collector.refused_messages > 0);
        }
        let collector = UdpSocket::bind(at).expect("the same port");
        let began = Instant::now();
        to.take(&message, &mut tally);
        assert!(began.elapsed() >= TAKES_IN && to.paused.is_some());
        let paused = to.paused;
        to.take(&message, &mut tally);
        assert_eq!(to.paused, paused);
        collector.set_read_timeout(Some(ANSWERS)).expect("set");
        let mut buffer = [0; 2048];
        let mut lengths = [0; 3].map(|_: usize| collector.recv(&mut buffer).expect("a message"));
        assert!(lengths[0] > 24, "templates come first: {lengths:?}");
        lengths[0] = 24;
        assert_eq!(lengths, [24; 3]);
    }
}
