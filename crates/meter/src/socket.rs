//! The meter where XDP is not possible: a thread that reads a packet socket's ring and runs [`Tracker`] on each frame.
//!
//! It sees frames later than XDP would (after the driver and after merging by GRO), loses some above about 1 to 2
//! million a second (the kernel counts them) and cannot keep frames from the host's own stack. No unsafe code here:
//! `ring.rs` hands out blocks as plain bytes.

use crate::hardware::{Compare, Following, Line, Stamps};
use crate::meter::Clock;
use crate::ring::{RETIRE, Ring};
use crate::tracker::Tracker;
use std::collections::VecDeque;
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// A running packet-socket meter.
#[derive(Debug)]
pub struct Socket {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The clock of the hardware's time stamps, if frames are timed by them.
    following: Option<Following>,
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
        ifindex: u32,
        promiscuous: bool,
        clock: Clock,
        hardware: Option<&Compare>,
        tracker: Tracker,
    ) -> io::Result<Socket> {
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
        let following = following.map_err(|error| {
            io::Error::other(format!("the clock of the hardware's time stamps cannot be read: {error}"))
        })?;
        let ring = Ring::open(ifindex, promiscuous, following.is_some())?;
        let tracker = Mutex::new(tracker);
        let shared = Arc::new(Shared { tracker, dropped: 0.into(), down: false.into(), stop: false.into() });
        let theirs = Arc::clone(&shared);
        let lines = following.is_some().then_some(lines);
        let thread = Builder::new()
            .name("netdyno-meter".to_owned())
            .spawn(move || run(ring, clock, lines.as_ref(), &theirs))?;
        Ok(Socket { shared, thread: Some(thread), following })
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

fn run(mut ring: Ring, clock: Clock, lines: Option<&Lines>, shared: &Shared) {
    // The kernel keeps a block that is not full for RETIRE: what arrived before the stop is there twice that later.
    let mut until: Option<Instant> = None;
    while until.is_none_or(|end| Instant::now() < end) {
        while ring.with_block(|block| {
            // Ring times are CLOCK_REALTIME, taken as the frame entered the socket; senders stamp CLOCK_MONOTONIC.
            // Both run at the same speed (the kernel disciplines them together), so their difference changes only
            // when somebody sets the clock. It is read anew for each block, to within some 50 ns; a step spoils the
            // one block it falls into.
            let offset = realtime_ahead_of(Clock::Monotonic);
            let stamps = if clock == Clock::Monotonic { offset } else { realtime_ahead_of(clock) };
            // How far the stamps' clock is ahead of CLOCK_MONOTONIC.
            let ahead = offset.wrapping_sub(stamps);
            let lines = lines.map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner).clone());
            shared.down.store(false, Ordering::Relaxed);
            let mut tracker = shared.tracker();
            for frame in frames(block) {
                let by_hardware = lines.as_ref().filter(|_| frame.by_hardware);
                let now = match by_hardware.and_then(|lines| in_force(lines, frame.stamp_ns)) {
                    Some(line) => {
                        tracker.totals.by_hardware += 1;
                        line.monotonic(frame.stamp_ns)
                    }
                    None => frame.stamp_ns.wrapping_sub_signed(offset),
                };
                tracker.frame(frame.bytes, frame.length, now, now.wrapping_add_signed(ahead));
            }
        }) {}
        if let Ok(dropped) = ring.dropped() {
            shared.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        if until.is_none() && shared.stop.load(Ordering::Relaxed) {
            until = Some(Instant::now() + 2 * RETIRE);
        }
        // The interface may go down or away (ENETDOWN): then there is nothing to count until it is back.
        if ring.wait(RETIRE).is_err() {
            shared.down.store(true, Ordering::Relaxed);
            std::thread::sleep(RETIRE);
        }
    }
}

/// The line that was in force when the hardware's clock showed `stamp`: as with XDP, whose program applies it at once.
fn in_force(lines: &VecDeque<Line>, stamp: u64) -> Option<Line> {
    // A clock that was set back shows some times twice: the later line is right then.
    let at_the_time = |line: &&Line| stamp.wrapping_sub(line.at) as i64 >= 0;
    lines.iter().rev().find(at_the_time).or_else(|| lines.front()).copied()
}

/// How far CLOCK_REALTIME is ahead of another.
fn realtime_ahead_of(other: Clock) -> i64 {
    let other = match other {
        Clock::Monotonic => clocks::Clock::Monotonic,
        Clock::Tai => clocks::Clock::Tai,
    };
    clocks::ahead(clocks::Clock::Realtime, other).ns
}

/// A frame in a block.
#[derive(Debug, PartialEq)]
struct Frame<'a> {
    /// To the frame's end, or nothing if the end was cut off.
    bytes: &'a [u8],
    /// On the wire, without FCS.
    length: u64,
    /// By CLOCK_REALTIME, or by the hardware's own clock.
    stamp_ns: u64,
    by_hardware: bool,
}

/// `TP_STATUS_TS_RAW_HARDWARE` (linux/if_packet.h).
const RAW_HARDWARE: u32 = 1 << 31;

/// The frames in a block, by struct tpacket3_hdr. An offset that points outside ends the block.
fn frames(block: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    use libc::{tpacket_block_desc as desc, tpacket_hdr_v1 as head, tpacket3_hdr as packet};
    let u32_at = |at: usize| block.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
    let mut left = u32_at(offset_of!(desc, hdr) + offset_of!(head, num_pkts)).unwrap_or(0);
    let mut at = u32_at(offset_of!(desc, hdr) + offset_of!(head, offset_to_first_pkt)).unwrap_or(0) as usize;
    std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let header = block.get(at..)?;
        let captured = u32_at(at + offset_of!(packet, tp_snaplen))? as usize;
        let length = u64::from(u32_at(at + offset_of!(packet, tp_len))?);
        let status = u32_at(at + offset_of!(packet, tp_status))?;
        let start = u16::from_ne_bytes(*header.get(offset_of!(packet, tp_mac)..)?.first_chunk()?) as usize;
        let seconds = u64::from(u32_at(at + offset_of!(packet, tp_sec))?);
        let nanoseconds = u64::from(u32_at(at + offset_of!(packet, tp_nsec))?);
        let bytes = header.get(start..start + captured)?;
        // A VLAN tag that the kernel has taken out was on the wire all the same.
        let tag = if status & libc::TP_STATUS_VLAN_VALID != 0 { 4 } else { 0 };
        at += u32_at(at + offset_of!(packet, tp_next_offset))? as usize;
        Some(Frame {
            bytes: if captured as u64 == length { bytes } else { &[] },
            length: length + tag,
            stamp_ns: seconds * 1_000_000_000 + nanoseconds,
            by_hardware: status & RAW_HARDWARE != 0,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracker::Wanted;

    /// A block as the kernel lays it out, with one header for each of `packets`: length, captured, status.
    fn block(packets: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut block = vec![0u8; 8192];
        let put = |block: &mut Vec<u8>, at: usize, value: u32| {
            block[at..at + 4].copy_from_slice(&value.to_ne_bytes())
        };
        put(&mut block, 12, packets.len() as u32);
        put(&mut block, 16, 48);
        for (number, (length, captured, status)) in packets.iter().enumerate() {
            let at = 48 + number * 1024;
            for (field, value) in
                [1024, 7, 5 + number as u32, *captured, *length, *status].into_iter().enumerate()
            {
                put(&mut block, at + field * 4, value);
            }
            block[at + 24..at + 26].copy_from_slice(&82u16.to_ne_bytes());
            block[at + 82..][..*captured as usize].fill(number as u8 + 1);
        }
        block
    }

    #[test]
    fn a_block_yields_its_frames_with_their_times() {
        let block = block(&[(60, 60, 1), (100, 100, 1)]);
        let frames: Vec<_> = frames(&block).collect();
        assert_eq!(frames.len(), 2);
        assert_eq!(frames[0], software(&[1; 60], 7_000_000_005));
        assert_eq!(frames[1], software(&[2; 100], 7_000_000_006));
    }

    fn software(bytes: &[u8], stamp_ns: u64) -> Frame<'_> {
        Frame { bytes, length: bytes.len() as u64, stamp_ns, by_hardware: false }
    }

    #[test]
    fn a_stamp_of_the_hardware_is_told_from_the_kernels() {
        let block = block(&[(60, 60, 1 | RAW_HARDWARE), (60, 60, 1 | 1 << 29)]);
        let by_hardware: Vec<_> = frames(&block).map(|frame| frame.by_hardware).collect();
        assert_eq!(by_hardware, [true, false]);
    }

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
        let block = block(&[(60, 60, 1 | libc::TP_STATUS_VLAN_VALID), (3000, 200, 1)]);
        let frames: Vec<_> = frames(&block).collect();
        assert_eq!((frames[0].length, frames[0].bytes.len()), (64, 60));
        assert_eq!((frames[1].length, frames[1].bytes.len()), (3000, 0));
    }

    #[test]
    fn offsets_outside_the_block_end_it() {
        let mut cut = block(&[(60, 60, 1), (60, 60, 1)]);
        cut[48..52].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(frames(&cut).count(), 1);
        assert_eq!(frames(&cut[..100]).count(), 0);
        assert_eq!(frames(&[]).count(), 0);
    }

    /// Needs root, for the lab.
    #[test]
    fn frames_that_find_the_ring_full_are_counted_as_dropped_by_the_meter() {
        let lab = lab::Lab::two_hosts(&lab::Options { addresses: true, ..Default::default() })
            .expect("a lab (as root)");
        let index = lab.receiver.namespace.index_of("rx0").expect("the namespace").expect("rx0");
        let tracker = || Tracker::new(Wanted { streams: 1, ..Wanted::default() });
        let open = || Socket::open(index, true, Clock::Monotonic, None, tracker()).expect("a packet socket");
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
