//! Copies of frames as they arrive, for who keeps them: from the program's rings, or from the packet socket.
//!
//! ```text
//!   meter.bpf.c --a ring for each CPU--> Reader (a thread): merges them by time --.
//!                                                                                  >--> Capture::to
//!   Socket: the blocks it counts --copied, by a bounded queue--> Queue (a thread) -'
//! ```
//!
//! Whoever takes them may be slow: then rings and queue run full, frames are missing among the copies, and how many is known.
//! What is measured never waits for it. Who has enough says so, and no more is copied.

use crate::loader::Switch;
use bpf::PerfRings;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

/// Bytes before a frame's own in a ring: `struct captured`.
pub const HEAD: usize = 32;
/// More of a frame is not copied: a record's length has 16 bits.
pub const MOST: u32 = 65_408;
/// A frame without a signature.
const NO_STREAM: u32 = u32::MAX;
/// Between two looks at rings that had nothing.
const REST: Duration = Duration::from_millis(1);
/// The same when no more is copied.
const LONG_REST: Duration = Duration::from_millis(100);
/// Copies that wait in memory for who takes those of a packet socket.
const WAITING: usize = 64 << 20;

/// What is copied, and who gets it.
#[derive(Clone)]
pub struct Capture {
    /// So many bytes of each frame at most.
    pub bytes: u32,
    /// Is handed what arrived, in a thread of its own, and says whether it wants more. If not, copying ends soon, and it may be
    /// handed some more until then.
    pub to: Arc<dyn Fn(&Copies) -> bool + Send + Sync>,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// How much was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Captured {
    /// Frames that were handed over.
    pub frames: u64,
    /// Frames that were counted, were wanted and not handed over: there was no room for their copies.
    pub missed: u64,
}

/// A frame's copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied<'a> {
    /// When it arrived, in nanoseconds of `CLOCK_MONOTONIC`: the time that latencies are computed from.
    pub time: u64,
    /// How it begins.
    pub bytes: &'a [u8],
    /// How long it is without FCS, and without a tag that was taken out.
    pub length: u32,
    /// A VLAN tag that was taken out: the protocol, and the tag.
    pub tag: Option<(u16, u16)>,
    /// Its stream and the 40 bits of its number, if it is signed.
    pub signed: Option<(u32, u64)>,
}

/// Copies, in the order of their arrival.
#[derive(Debug, Default)]
pub struct Copies {
    bytes: Vec<u8>,
    frames: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    time: u64,
    sequence: u64,
    length: u32,
    stream: u32,
    tag: u32,
    captured: u32,
    begin: usize,
}

impl Copies {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Copied<'_>> {
        self.frames.iter().map(|of| self.copied(of))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Another one, behind the others.
    pub fn push(&mut self, frame: &Copied<'_>) {
        let (stream, sequence) = frame.signed.unwrap_or((NO_STREAM, 0));
        self.frames.push(Entry {
            time: frame.time,
            sequence,
            length: frame.length,
            stream,
            tag: frame.tag.map_or(0, |(kind, tag)| u32::from(kind) << 16 | u32::from(tag)),
            captured: frame.bytes.len() as u32,
            begin: self.bytes.len(),
        });
        self.bytes.extend_from_slice(frame.bytes);
    }

    fn copied(&self, of: &Entry) -> Copied<'_> {
        Copied {
            time: of.time,
            bytes: self.bytes.get(of.begin..of.begin + of.captured as usize).unwrap_or_default(),
            length: of.length,
            tag: (of.tag != 0).then_some(((of.tag >> 16) as u16, of.tag as u16)),
            signed: (of.stream != NO_STREAM).then_some((of.stream, of.sequence)),
        }
    }

    /// A record of a ring.
    fn record(&mut self, record: &[u8]) {
        let Some((head, rest)) = record.split_first_chunk::<HEAD>() else { return };
        let word = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            u32::from_ne_bytes(bytes.unwrap_or_default())
        };
        let long = |at: usize| {
            let bytes = head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            u64::from_ne_bytes(bytes.unwrap_or_default())
        };
        let [length, captured, tag, stream] = [16, 20, 24, 28].map(word);
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(rest.get(..captured as usize).unwrap_or(rest));
        let captured = (self.bytes.len() - begin) as u32;
        self.frames.push(Entry { time: long(0), sequence: long(8), length, stream, tag, captured, begin });
    }

    /// Puts them in order, and takes those away that arrived later than `until`: another CPU may have earlier ones still.
    fn split_off(&mut self, until: u64) -> Copies {
        self.frames.sort_by_key(|frame| frame.time);
        let mut later = Copies::default();
        let from = self.frames.partition_point(|frame| frame.time <= until);
        for of in self.frames.get(from..).unwrap_or_default() {
            later.push(&self.copied(of));
        }
        self.frames.truncate(from);
        later
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}

/// Bytes of a CPU's ring, of which there are so many: a slow disk is waited for some hundredths of a second at 10 Gbit/s.
pub fn room(cpus: u32) -> usize {
    ((256 << 20) / cpus.max(1) as usize).clamp(4 << 20, 32 << 20).next_power_of_two()
}

/// What a thread that hands copies over has in common with who started it.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Whoever takes copies wants no more.
    over: AtomicBool,
    frames: AtomicU64,
    missed: AtomicU64,
    waiting: AtomicUsize,
}

/// Hands over what comes by rings.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// From now on.
    pub fn start(mut rings: PerfRings, switch: Switch, capture: &Capture) -> io::Result<Reader> {
        let shared = Arc::new(Shared::default());
        let (theirs, to) = (Arc::clone(&shared), Arc::clone(&capture.to));
        let thread = Builder::new().name("netdyno-frames".to_owned()).spawn(move || {
            let mut copies = Copies::default();
            loop {
                // Asked before the rings are looked at, so that none is left when it is over.
                let over = theirs.stop.load(Ordering::Acquire);
                let begun = clocks::monotonic();
                // A ring that cannot be read has its frames missing, which is counted.
                let _ = rings.read(|record| copies.record(record));
                // What a CPU has just taken the time of may not be in its ring yet.
                let later = copies.split_off(if over { u64::MAX } else { begun.saturating_sub(100_000) });
                theirs.frames.fetch_add(copies.len() as u64, Ordering::Relaxed);
                if !to(&copies) && !theirs.over.load(Ordering::Relaxed) {
                    // A program that cannot be told goes on copying, and nothing is lost by that.
                    theirs.over.store(switch.off().is_ok(), Ordering::Relaxed);
                }
                let rests = copies.len() < 64;
                copies.clear();
                // In what was used before, whose memory is there.
                later.iter().for_each(|frame| copies.push(&frame));
                if over {
                    break;
                }
                if rests {
                    let ended = theirs.over.load(Ordering::Relaxed) && copies.is_empty();
                    std::thread::park_timeout(if ended { LONG_REST } else { REST });
                }
            }
        })?;
        Ok(Reader { shared, thread: Some(thread) })
    }

    /// Hands over the rest, of so many frames that were counted and wanted.
    pub fn finish(&mut self, counted: u64) -> Captured {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        let frames = self.shared.frames.load(Ordering::Relaxed);
        Captured { frames, missed: counted.saturating_sub(frames) }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.finish(0);
    }
}

/// Takes copies from a thread that must not wait, and hands them over.
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    copies: Mutex<Option<Sender<Copies>>>,
    bytes: u32,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// From now on.
    pub fn start(capture: &Capture) -> io::Result<Queue> {
        let shared = Arc::new(Shared::default());
        let (theirs, to) = (Arc::clone(&shared), Arc::clone(&capture.to));
        let (sender, receiver): (Sender<Copies>, Receiver<Copies>) = channel();
        let thread = Builder::new().name("netdyno-frames".to_owned()).spawn(move || {
            for copies in receiver {
                if !to(&copies) {
                    theirs.over.store(true, Ordering::Relaxed);
                }
                theirs.frames.fetch_add(copies.len() as u64, Ordering::Relaxed);
                theirs.waiting.fetch_sub(copies.bytes.len(), Ordering::Relaxed);
            }
        })?;
        let copies = Mutex::new(Some(sender));
        Ok(Queue { shared, copies, bytes: capture.bytes.clamp(1, MOST), thread: Mutex::new(Some(thread)) })
    }

    /// Of a frame so many bytes are wanted.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Is another frame wanted?
    pub fn wants_more(&self) -> bool {
        !self.shared.over.load(Ordering::Relaxed)
    }

    /// Puts copies at the end, if there is room.
    pub fn put(&self, copies: Copies) {
        let (frames, bytes) = (copies.len() as u64, copies.bytes.len());
        let sent = self.shared.waiting.load(Ordering::Relaxed) < WAITING && {
            self.shared.waiting.fetch_add(bytes, Ordering::Relaxed);
            let sender = self.copies.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            sender.as_ref().is_some_and(|sender| sender.send(copies).is_ok())
        };
        if !sent {
            self.shared.missed.fetch_add(frames, Ordering::Relaxed);
        }
    }

    /// Hands over the rest.
    pub fn finish(&self) -> Captured {
        drop(self.copies.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Captured { frames: of(&self.shared.frames), missed: of(&self.shared.missed) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_several_cpus_come_in_the_order_of_arrival_and_the_latest_wait() {
        let mut copies = Copies::default();
        let times = [(1, b"a"), (4, b"b"), (9, b"c"), (2, b"d"), (3, b"e"), (8, b"f")];
        for (time, bytes) in times {
            copies.push(&Copied { time, bytes, length: 60, tag: None, signed: None });
        }
        let shown =
            |copies: &Copies| copies.iter().map(|frame| (frame.time, frame.bytes[0])).collect::<Vec<_>>();
        let later = copies.split_off(4);
        assert_eq!(shown(&copies), [(1, b'a'), (2, b'd'), (3, b'e'), (4, b'b')]);
        assert_eq!(shown(&later), [(8, b'f'), (9, b'c')]);
    }

    #[test]
    fn who_takes_too_slowly_has_frames_missing_and_nobody_waits() {
        let gate = Arc::new(Mutex::new(()));
        let (theirs, held) = (Arc::clone(&gate), gate.lock().unwrap());
        let to = Arc::new(move |_: &Copies| {
            drop(theirs.lock().unwrap());
            true
        });
        let queue = Queue::start(&Capture { bytes: 2000, to }).unwrap();
        let many = || {
            let mut copies = Copies::default();
            let frame = Copied { time: 1, bytes: &[0; 1000], length: 1000, tag: None, signed: None };
            (0..20_000).for_each(|_| copies.push(&frame));
            copies
        };
        (0..6).for_each(|_| queue.put(many()));
        drop(held);
        // 64 MB have room for the first four of 20 MB each, as nobody looks how long the last one is.
        assert_eq!(queue.finish(), Captured { frames: 80_000, missed: 40_000 });
    }
}
