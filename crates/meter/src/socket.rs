//! The meter where XDP is not possible: a thread that reads a packet socket's ring and runs [`Tracker`] on each frame.
//!
//! It sees frames later than XDP would (after the driver and after merging by GRO), loses some above about 1 to 2
//! million a second (the kernel counts them) and cannot keep frames from the host's own stack. Frames come by
//! [`port::rx::Blocks`].

use crate::frames::{Capture, Captured, Copied, Copies, Queue};
use crate::hardware::{Compare, Following, Line, Stamps};
use crate::tracker::Tracker;
use clocks::Clock;
use port::packet::Target;
use port::rx::{Blocks, Frame, RETIRE, Rx, RxError, StampedBy};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A running packet-socket meter.
#[derive(Debug)]
pub struct Socket {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The clock of the hardware's time stamps, if frames are timed by them.
    following: Option<Following>,
    /// Who gets copies of the frames.
    copies: Option<Arc<Queue>>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Nothing comes in.
    #[error(transparent)]
    Receive(#[from] RxError),
    /// Arrivals cannot be timed by the hardware.
    #[error("the clock of the hardware's time stamps cannot be read: {0}")]
    Clock(String),
    /// Nobody to count.
    #[error("starting a thread: {0}")]
    Thread(io::Error),
}

/// How the hardware's clock stood lately, the latest last.
type Lines = Arc<Mutex<VecDeque<Line>>>;

/// So many lines are 0.3 s or more: longer than a frame waits for this thread, unless it waits very long.
const LINES: usize = 64;

#[derive(Debug)]
struct Shared {
    tracker: Mutex<Tracker>,
    dropped: AtomicU64,
    down: AtomicBool,
    stop: AtomicBool,
}

impl Socket {
    /// Starts to count, with a tracker that has seen nothing yet; by the hardware's time stamps if their clock is given.
    pub fn open(
        target: &Target,
        promiscuous: bool,
        clock: Clock,
        hardware: Option<&Compare>,
        tracker: Tracker,
        capture: Option<&Capture>,
    ) -> Result<Socket, SocketError> {
        let lines = Lines::default();
        let told = Arc::clone(&lines);
        let tell = move |_, line: &Line| {
            let mut lines = told.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push_back(*line);
            if lines.len() > LINES {
                lines.pop_front();
            }
            Ok(())
        };
        let following = hardware.map(|compare| Following::start(compare, tell)).transpose();
        let following = following.map_err(|error| SocketError::Clock(error.to_string()))?;
        let frames = Blocks::open(target, promiscuous, following.is_some())?;
        let tracker = Mutex::new(tracker);
        let shared = Arc::new(Shared { tracker, dropped: 0.into(), down: false.into(), stop: false.into() });
        let theirs = Arc::clone(&shared);
        let lines = following.is_some().then_some(lines);
        let copies = capture.map(Queue::start).transpose().map_err(SocketError::Thread)?.map(Arc::new);
        let counting = Counting { clock, lines, copies: copies.clone() };
        let thread = Builder::new()
            .name("netdyno-meter".to_owned())
            .spawn(move || run(frames, &counting, &theirs))
            .map_err(SocketError::Thread)?;
        Ok(Socket { shared, thread: Some(thread), following, copies })
    }

    /// What the hardware's time stamps are worth, if frames are timed by them.
    pub fn stamps(&self) -> Option<Stamps> {
        let following = self.following.as_ref()?;
        Some(following.stamps(self.tracker().totals.by_hardware))
    }

    /// What was counted; counting waits while the guard lives.
    pub fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.shared.tracker()
    }

    /// How many were copied, of those that were counted; once it has stopped.
    pub fn captured(&self) -> Option<Captured> {
        self.copies.as_ref().map(|copies| copies.finish())
    }

    /// Frames that found the ring full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Whether the interface went down or away and nothing has arrived since.
    pub fn is_down(&self) -> bool {
        self.shared.down.load(Ordering::Relaxed)
    }

    /// Counts what has arrived by now, then no more.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, what it counted is still there.
            let _ = thread.join();
        }
        self.following.iter_mut().for_each(Following::conclude);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How frames are counted.
struct Counting {
    clock: Clock,
    /// Of the hardware's clock, if frames are timed by it.
    lines: Option<Lines>,
    copies: Option<Arc<Queue>>,
}

fn run(mut receiver: Blocks, counting: &Counting, shared: &Shared) {
    // The kernel keeps a block that is not full for RETIRE: what arrived before the stop is there twice that later.
    let mut until: Option<Instant> = None;
    let mut patience = Duration::ZERO;
    while until.is_none_or(|end| Instant::now() < end) {
        match receiver.receive(patience) {
            // Only what is told to be lost, and a stop, are waited behind.
            Ok([]) => patience = RETIRE,
            Ok(frames) => {
                shared.down.store(false, Ordering::Relaxed);
                count(frames, counting, shared);
                patience = Duration::ZERO;
                continue;
            }
            // The interface may go down or away: then there is nothing to count until it is back.
            Err(_) => {
                shared.down.store(true, Ordering::Relaxed);
                std::thread::sleep(RETIRE);
            }
        }
        shared.dropped.store(receiver.counters().dropped, Ordering::Relaxed);
        if until.is_none() && shared.stop.load(Ordering::Relaxed) {
            until = Some(Instant::now() + 2 * RETIRE);
        }
    }
}

fn count(frames: &[Frame<'_>], counting: &Counting, shared: &Shared) {
    let Counting { clock, lines, copies } = counting;
    let copies = copies.as_ref().filter(|copies| copies.wants_more());
    let clock = *clock;
    let mut copied = Copies::default();
    // Ring times are CLOCK_REALTIME, taken as the frame entered the socket; senders stamp CLOCK_MONOTONIC.
    // Both run at the same speed (the kernel disciplines them together), so their difference changes only
    // when somebody sets the clock. It is read anew for each batch, to within some 50 ns; a step spoils the
    // one batch it falls into.
    let offset = realtime_ahead_of(Clock::Monotonic);
    let stamps = if clock == Clock::Monotonic { offset } else { realtime_ahead_of(clock) };
    // How far the stamps' clock is ahead of CLOCK_MONOTONIC.
    let ahead = offset.wrapping_sub(stamps);
    let lines = lines.as_ref().map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner).clone());
    let mut tracker = shared.tracker();
    for frame in frames {
        let stamp = frame.stamp.ns;
        let by_hardware = lines.as_ref().filter(|_| frame.stamp.by == StampedBy::Hardware);
        let now = match by_hardware.and_then(|lines| in_force(lines, stamp)) {
            Some(line) => {
                tracker.totals.by_hardware += 1;
                line.monotonic(stamp)
            }
            None => stamp.wrapping_sub_signed(offset),
        };
        let (bytes, length) = on_the_wire(frame);
        tracker.frame(bytes, length, now, now.wrapping_add_signed(ahead));
        if let Some(copies) = copies {
            copied.push(&Copied {
                time: now,
                bytes: frame.bytes.get(..copies.bytes()).unwrap_or(frame.bytes),
                length: frame.length as u32,
                tag: frame.tag,
                signed: tracker.signature_of(bytes),
            });
        }
    }
    drop(tracker);
    if let Some(copies) = copies {
        copies.put(copied);
    }
}

/// The bytes to a frame's end, or nothing if the end was cut off, and its length without FCS: a VLAN tag that the kernel
/// has taken out was on the wire all the same.
fn on_the_wire<'a>(frame: &Frame<'a>) -> (&'a [u8], u64) {
    let tag = if frame.tag.is_some() { 4 } else { 0 };
    (if frame.bytes.len() == frame.length { frame.bytes } else { &[] }, frame.length as u64 + tag)
}

/// The line that was in force when the hardware's clock showed `stamp`: as with XDP, whose program applies it at once.
fn in_force(lines: &VecDeque<Line>, stamp: u64) -> Option<Line> {
    // A clock that was set back shows some times twice: the later line is right then.
    let at_the_time = |line: &&Line| stamp.wrapping_sub(line.at) as i64 >= 0;
    lines.iter().rev().find(at_the_time).or_else(|| lines.front()).copied()
}

/// How far CLOCK_REALTIME is ahead of another.
fn realtime_ahead_of(other: Clock) -> i64 {
    clocks::ahead(Clock::Realtime, other).ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracker::Wanted;
    use port::rx::Stamp;

    #[test]
    fn a_stamp_is_told_by_the_line_that_was_in_force_when_it_was_taken() {
        let line = |at, ahead| Line { at, ahead, slope: 0, tai: 0 };
        let lines: VecDeque<_> = [line(1000, 1), line(2000, 2), line(3000, 3)].into();
        let told = |stamp| in_force(&lines, stamp).map(|line| line.ahead);
        assert_eq!([500, 1000, 1999, 2000, 9000].map(told), [Some(1), Some(1), Some(1), Some(2), Some(3)]);
        // The clock was set back: what it shows twice was later.
        let lines: VecDeque<_> = [line(5000, 1), line(2000, 2)].into();
        assert_eq!(in_force(&lines, 6000).map(|line| line.ahead), Some(2));
        assert_eq!(in_force(&VecDeque::new(), 1), None);
    }

    #[test]
    fn a_tag_taken_out_counts_as_length_and_a_cut_frame_shows_no_end() {
        let whole = Frame::bare(&[1; 60], Stamp { ns: 0, by: StampedBy::Socket });
        assert_eq!(on_the_wire(&whole), (&[1; 60][..], 60));
        assert_eq!(on_the_wire(&Frame { tag: Some((0x8100, 7)), ..whole }), (&[1; 60][..], 64));
        assert_eq!(on_the_wire(&Frame { length: 3000, ..whole }), (&[][..], 3000));
    }

    /// Needs root, for the lab.
    #[test]
    fn frames_that_find_the_ring_full_are_counted_as_dropped_by_the_meter() {
        let lab = lab::Lab::two_hosts(&lab::Options { addresses: true, ..Default::default() })
            .expect("a lab (as root)");
        let index = lab.receiver.namespace.index_of("rx0").expect("the namespace").expect("rx0");
        let tracker = || Tracker::new(Wanted { streams: 1, ..Wanted::default() });
        let target = Target { name: "rx0".to_owned(), index, mtu: 1500 };
        let open =
            || Socket::open(&target, true, Clock::Monotonic, None, tracker(), None).expect("a packet socket");
        let mut socket = lab.receiver.namespace.run_in(open).expect("the receiver's namespace");
        let sender =
            lab.sender.namespace.run_in(|| std::net::UdpSocket::bind("198.18.0.1:0").expect("a socket"));
        let sender = sender.expect("the sender's namespace");
        const SENT: u64 = 30_000;
        let counting = socket.tracker();
        // Counting waits for this guard; 40 MB do not fit the ring.
        for _ in 0..SENT {
            sender.send_to(&[0; 1400], "198.18.0.2:9").expect("sent");
        }
        drop(counting);
        socket.stop();
        let counted: u64 = socket.tracker().totals.sizes.iter().sum();
        assert!(socket.dropped() > 0 && counted > 0);
        assert_eq!(counted + socket.dropped(), SENT);
    }
}
