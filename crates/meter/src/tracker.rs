//! The meter in Rust: what `programs/bpf/meter.bpf.c` does for one frame, without any I/O or clock.
//!
//! The packet-socket fallback runs it on every frame; the property tests run it beside the kernel's program. When one
//! of the two changes, so must the other.

use crate::content::Expected;
use crate::layout::{Buckets, FCS_LEN, HOLES, Hole, LatencySums, Stream, Totals, WINDOW_WORDS, ZERO};
use crate::seen::{Mark, Seen};
use bpf::zeroed;
use histogram::{bucket_of, fine_bucket_of};
use wire::background::is_background;
use wire::signature::{self, Signature, sequence_near};

/// Most bytes behind a signature that is still found.
const TRAILER: usize = 18;

/// So many frames in a row are no longer damaged ones but a sender's that is elsewhere with its numbers; and where there are
/// no stamps.
const RUN_BITS: u32 = 10;
const RUN_ELSEWHERE: u64 = 16;
const RUN_UNSTAMPED: u64 = (1 << RUN_BITS) - 1;
/// A number so far ahead is damaged.
const ASTRAY_BITS: u32 = 32;

/// What of it is wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Streams 0 to this - 1 are told apart.
    pub streams: u32,
    /// The first so many of them have a histogram of their latencies.
    pub histograms: u32,
    /// The first so many of them have a histogram of the times between their arrivals.
    pub gaps: u32,
    /// So many bits of their sequence numbers are remembered, 8 to 16; 0: the last 449 numbers.
    pub seen_bits: u32,
    /// Compare the time in signatures with that of arrival.
    pub latency: bool,
    /// Arrival times to keep.
    pub arrivals: usize,
    /// The clock is read for each frame, whether or not latency or arrivals are wanted.
    pub exact: bool,
    /// Look for the signature before the frame's end, too.
    pub trailers: bool,
    /// See [`Options::ignore_icmp_errors`](crate::Options::ignore_icmp_errors).
    pub ignore_icmp_errors: bool,
    /// What the bytes before signatures are to be.
    pub content: Expected,
}

/// Counts the frames it is shown, as one CPU running the kernel's program would.
#[derive(Debug)]
pub struct Tracker {
    pub(crate) totals: Box<Totals>,
    pub(crate) streams: Vec<Stream>,
    /// Their numbers that were seen; else each record has a window.
    pub(crate) seen: Option<Seen>,
    /// Of the latencies of the first streams.
    pub(crate) histograms: Vec<Buckets>,
    /// Of the times between arrivals of the first streams.
    pub(crate) stream_gaps: Vec<Buckets>,
    pub(crate) arrivals: Vec<u64>,
    /// Frames that an arrival was asked for, those beyond the limit included.
    pub(crate) arrivals_seen: u64,
    wanted: Wanted,
}

impl Tracker {
    /// One that has seen nothing yet.
    pub fn new(wanted: Wanted) -> Self {
        let histograms = if wanted.latency { wanted.histograms.min(wanted.streams) } else { 0 };
        Tracker {
            totals: zeroed(),
            streams: vec![Stream::default(); wanted.streams as usize],
            seen: (wanted.seen_bits > 0).then(|| Seen::new(wanted.streams, wanted.seen_bits)),
            histograms: vec![Buckets::default(); histograms as usize],
            stream_gaps: vec![Buckets::default(); wanted.gaps.min(wanted.streams) as usize],
            arrivals: Vec::new(),
            arrivals_seen: 0,
            wanted,
        }
    }

    /// Is the clock that says when frames arrive read for each of them?
    fn is_exact(&self) -> bool {
        self.wanted.latency || self.wanted.gaps > 0 || self.wanted.arrivals > 0 || self.wanted.exact
    }

    /// One frame of `length` bytes (without FCS) that arrived at `now`, nanoseconds of `CLOCK_MONOTONIC`, which is
    /// `stamped` by the clock that senders stamp with.
    ///
    /// `bytes` must end where the frame ends; give none of it if the end was not captured. The two lengths differ
    /// where the kernel has taken a VLAN tag out of the frame.
    pub fn frame(&mut self, bytes: &[u8], length: u64, now: u64, stamped: u64) {
        let exact = self.is_exact();
        let totals = &mut *self.totals;
        totals.sizes[size_class(length)] += 1;
        totals.bytes += length;
        if totals.first_ns == 0 {
            totals.first_ns = now;
        } else if exact {
            // Stamps of the hardware need not come in order.
            let gap = now.saturating_sub(totals.last_ns);
            add_spread(&mut totals.gap, gap);
            totals.gaps.0[bucket_of(gap)] += 1;
        }
        totals.last_ns = now;
        if self.wanted.arrivals > 0 {
            self.arrivals_seen += 1;
            if self.arrivals.len() < self.wanted.arrivals {
                self.arrivals.push(now);
            }
        }
        let Some((signature, behind)) = find(bytes, self.wanted.trailers) else {
            totals.background += u64::from(is_background(bytes));
            return;
        };
        if self.wanted.ignore_icmp_errors && is_icmp_error(bytes) {
            return;
        }
        totals.signed_frames += 1;
        totals.trailed += u64::from(behind > 0);
        let which = signature.stream as usize;
        let mut stream = self.streams.get_mut(which);
        // A sender that spares itself the clock writes 0.
        let elapsed =
            (self.wanted.latency && signature.time != 0).then(|| signature::elapsed(signature.time, stamped));
        let before = &bytes[..bytes.len() - behind - signature::LEN];
        let own_length = length as usize - behind;
        let corrupted = stream.is_some() && self.wanted.content.differs(signature.stream, before, own_length);
        let corrupted = u64::from(corrupted);
        totals.corrupted += corrupted;
        totals.unplaced += u64::from(stream.is_none());
        let near = self.seen.as_mut().map(|seen| seen.near(which));
        let number = stream.as_mut().and_then(|stream| number_of(stream, near, signature.sequence));
        totals.astray += u64::from(stream.is_some() && number.is_none());
        let placed = number.is_some() || stream.is_none();
        if let (Some(stream), Some(number)) = (stream, number) {
            let mark = match &mut self.seen {
                Some(seen) => seen.mark(which, number),
                None => window_seen(stream, number),
            };
            sequence_seen(totals, stream, number, signature.time, mark);
            if exact {
                stream_arrived(stream, self.stream_gaps.get_mut(which), now);
            }
            stream.frames += 1;
            stream.bytes += length;
            stream.corrupted += corrupted;
            if let Some(elapsed) = elapsed {
                record_variation(totals, stream, elapsed);
                match u64::try_from(elapsed) {
                    Ok(latency) => add_sums(&mut stream.latency, latency),
                    Err(_) => stream.latency.negative += 1,
                }
            }
        }
        match elapsed.map(u64::try_from) {
            None => {}
            Some(Err(_)) => totals.latency.negative += 1,
            Some(Ok(latency)) => {
                add_sums(&mut totals.latency, latency);
                totals.latencies.0[fine_bucket_of(latency)] += 1;
                if let Some(own) = self.histograms.get_mut(which).filter(|_| placed) {
                    own.0[bucket_of(latency)] += 1;
                }
            }
        }
    }
}

impl Tracker {
    /// The stream and the number of a frame, as it is counted.
    pub(crate) fn signature_of(&self, bytes: &[u8]) -> Option<(u32, u64)> {
        let (signature, _) = find(bytes, self.wanted.trailers)?;
        let quoted = self.wanted.ignore_icmp_errors && is_icmp_error(bytes);
        (!quoted).then_some((signature.stream, signature.sequence))
    }
}

/// The signature, and how many bytes stand behind it.
fn find(bytes: &[u8], trailers: bool) -> Option<(Signature, usize)> {
    if let Some(signature) = Signature::at_end_of(bytes) {
        return Some((signature, 0));
    }
    if !trailers || bytes.len() < signature::LEN + TRAILER {
        return None;
    }
    (1..=TRAILER).find_map(|behind| Some((Signature::at_end_of(&bytes[..bytes.len() - behind])?, behind)))
}

/// Whether a frame is an ICMP error: its last bytes are those of the packet it quotes.
fn is_icmp_error(frame: &[u8]) -> bool {
    let tag_at = |at: usize| {
        let kind = frame.get(at..at + 2);
        kind.is_some_and(|kind| matches!(kind, [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00]))
    };
    let tags = (0..4).take_while(|tag| tag_at(12 + 4 * tag)).count();
    let at = 12 + 4 * tags;
    let Some((kind, packet)) = frame.get(at..).and_then(|rest| rest.split_first_chunk::<2>()) else {
        return false;
    };
    match (kind, packet) {
        // Unreachable, source quench, redirect, time exceeded, parameter problem (RFC 792).
        ([0x08, 0x00], [first @ 0x45..=0x4f, _, _, _, _, _, _, _, _, 1, ..]) if packet.len() >= 20 => {
            let kind = packet.get(usize::from(first & 15) * 4);
            matches!(kind, Some(3 | 4 | 5 | 11 | 12))
        }
        // RFC 4443 section 2.1: errors are the types below 128.
        ([0x86, 0xdd], [0x60..=0x6f, _, _, _, _, _, 58, ..]) => {
            packet.get(40).is_some_and(|kind| *kind < 128)
        }
        _ => false,
    }
}

/// The etherStats class (RFC 2819, section 5) of a frame of `length` bytes without FCS.
fn size_class(length: u64) -> usize {
    match length + FCS_LEN {
        ..64 => 0,
        64 => 1,
        65..128 => 2,
        128..256 => 3,
        256..512 => 4,
        512..1024 => 5,
        1024..1519 => 6,
        1519.. => 7,
    }
}

fn add_sums(sums: &mut LatencySums, value: u64) {
    if sums.count == 0 || value < sums.min {
        sums.min = value;
    }
    sums.max = sums.max.max(value);
    sums.count += 1;
    sums.sum.add(value);
}

/// Of what is kept for all frames only: how many there were and the least of them the buckets tell.
fn add_spread(sums: &mut LatencySums, value: u64) {
    sums.max = sums.max.max(value);
    sums.sum.add(value);
}

/// When a stream's frame arrived. Neither the hardware's queues nor CPUs are served in the order of their frames' times.
fn stream_arrived(stream: &mut Stream, gaps: Option<&mut Buckets>, now: u64) {
    if stream.frames == 0 {
        (stream.first_ns, stream.last_ns) = (now, now);
        return;
    }
    let gap = now.saturating_sub(stream.last_ns);
    stream.gap_max = stream.gap_max.max(gap);
    stream.last_ns = stream.last_ns.max(now);
    if let Some(gaps) = gaps {
        gaps.0[bucket_of(gap)] += 1;
    }
}

/// How the time under way changes from frame to frame of a stream, whatever the clocks' offset.
fn record_variation(totals: &mut Totals, stream: &mut Stream, elapsed: i64) {
    let change = elapsed.abs_diff(stream.transit as i64);
    stream.transit = elapsed as u64;
    if stream.latency.count + stream.latency.negative == 0 {
        return;
    }
    stream.jitter = stream.jitter + change - ((stream.jitter + 8) >> 4);
    add_spread(&mut totals.variation, change);
    totals.variations.0[bucket_of(change)] += 1;
}

/// Whether a frame was seen, by the window of its stream's record, which moves up to it.
fn window_seen(stream: &mut Stream, sequence: u64) -> Mark {
    let word = sequence / 64;
    let slot = word as usize % WINDOW_WORDS;
    let bit = 1 << (sequence % 64);
    if let Some(highest) = stream.next.checked_sub(1) {
        let top = highest / 64;
        if sequence > highest {
            for entered in (top + 1..=word).take(WINDOW_WORDS) {
                stream.window[entered as usize % WINDOW_WORDS] = 0;
            }
        } else if top - word >= WINDOW_WORDS as u64 {
            return Mark::Unknown;
        } else if stream.window[slot] & bit != 0 {
            return Mark::Before;
        }
    }
    stream.window[slot] |= bit;
    Mark::Never
}

/// The wide number of a frame with the 40 bits of `written`, if it can be this stream's; `near` is a recent one of all CPUs.
fn number_of(stream: &mut Stream, near: Option<&mut u64>, written: u64) -> Option<u64> {
    let number = if stream.next == 0 { ZERO + written } else { sequence_near(written, stream.next) };
    if number == stream.next {
        return Some(number);
    }
    let (at, number) = match &near {
        None => (stream.next, number),
        Some(0) => (0, number),
        Some(near) => (**near, sequence_near(written, **near)),
    };
    let sure = at == 0 || number < at || (number - at) >> ASTRAY_BITS == 0;
    if !sure && run(stream) < RUN_ELSEWHERE {
        return None;
    }
    if let Some(near) = near.filter(|near| !sure || **near == 0) {
        *near = number;
    }
    Some(number)
}

/// How many frames in a row, with this one, did not lead the stream on and are not where they should be.
fn run(stream: &mut Stream) -> u64 {
    let here = stream.next << RUN_BITS;
    let before = if (stream.run ^ here) <= RUN_UNSTAMPED { stream.run & RUN_UNSTAMPED } else { 0 };
    let run = RUN_UNSTAMPED.min(before + 1);
    stream.run = here | run;
    run
}

/// Whether a frame behind the highest number is of a sender that began anew.
fn renewed(stream: &mut Stream, sequence: u64, time: u64, seen: Mark) -> bool {
    if time > 0 {
        return signature::elapsed(stream.newest, time) > 0;
    }
    let rises = sequence >= stream.newest;
    stream.newest = sequence + 1;
    if !rises {
        stream.run = 0;
    }
    rises && seen != Mark::Never
}

/// In order, reordered, duplicate, or too late to tell; see `programs/bpf/include/sequence.h`.
fn sequence_seen(totals: &mut Totals, stream: &mut Stream, sequence: u64, time: u64, seen: Mark) {
    let behind = sequence < stream.next;
    if behind {
        if !renewed(stream, sequence, time, seen) {
            stream.lowest = stream.lowest.min(sequence);
        } else if run(stream) >= if time > 0 { RUN_ELSEWHERE } else { RUN_UNSTAMPED } {
            stream.renewed += 1;
        }
    } else {
        if stream.next == 0 {
            stream.lowest = sequence;
        }
        // Any number may be missing before the first, whose own may just have come round.
        if stream.next == 0 || sequence != stream.next {
            left_out(stream, sequence);
        }
        stream.next = sequence + 1;
        if time > 0 {
            stream.newest = time;
        }
    }
    match seen {
        Mark::Before => {
            stream.duplicates += 1;
            totals.duplicates += 1;
            return;
        }
        Mark::Unknown => {
            stream.late += 1;
            totals.late += 1;
        }
        Mark::Never if behind => {
            stream.reordered += 1;
            totals.reordered += 1;
        }
        Mark::Never => {}
    }
    if behind {
        let extent = extent(stream, sequence);
        stream.extent_sum.add(extent);
        stream.extent_max = stream.extent_max.max(extent);
    }
}

/// Numbers before `sequence` were left out by the frame that arrives now.
fn left_out(stream: &mut Stream, sequence: u64) {
    stream.holes.rotate_left(1);
    stream.holes[HOLES - 1] = Hole { number: sequence, frames: stream.frames };
}

/// How many frames came since the first with a higher number (RFC 4737, section 4.2.2), or at least so many if more
/// than [`HOLES`] holes were left since.
fn extent(stream: &Stream, sequence: u64) -> u64 {
    // All behind the oldest one that ends above the number end higher.
    let hole = stream.holes.iter().find(|hole| hole.number > sequence);
    hole.map_or(0, |hole| stream.frames - hole.frames)
}
