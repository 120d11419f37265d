//! The meter in Rust: what `bpf/meter.bpf.c` does for one frame, without any I/O or clock.
//!
//! The packet-socket fallback runs it on every frame; the property tests run it beside the kernel's program. When one
//! of the two changes, so must the other.

use crate::layout::{Buckets, FCS_LEN, HISTOGRAMS, LatencySums, Stream, Totals, WINDOW_WORDS};
use histogram::bucket_of;
use wire::signature::{self, Signature};

/// Counts the frames it is shown, as one CPU running the kernel's program would.
#[derive(Debug)]
pub struct Tracker {
    pub(crate) totals: Box<Totals>,
    pub(crate) streams: Vec<Stream>,
    /// Of the latencies of the first streams.
    pub(crate) histograms: Vec<Buckets>,
    pub(crate) arrivals: Vec<u64>,
    /// Frames that an arrival was asked for, those beyond the limit included.
    pub(crate) arrivals_seen: u64,
    /// See [`Options::ignore_icmp_errors`](crate::Options::ignore_icmp_errors).
    pub(crate) ignore_icmp_errors: bool,
    arrivals_limit: usize,
    latency: bool,
}

impl Tracker {
    /// For streams 0 to `streams` - 1; `arrivals` is how many arrival times to keep.
    pub fn new(streams: u32, latency: bool, arrivals: usize) -> Self {
        Tracker {
            totals: Box::default(),
            streams: vec![Stream::default(); streams as usize],
            histograms: vec![Buckets::default(); if latency { streams.min(HISTOGRAMS) as usize } else { 0 }],
            arrivals: Vec::new(),
            arrivals_seen: 0,
            ignore_icmp_errors: false,
            arrivals_limit: arrivals,
            latency,
        }
    }

    /// One frame of `length` bytes (without FCS) that arrived at `now`, nanoseconds of `CLOCK_MONOTONIC`.
    ///
    /// `bytes` must end where the frame ends; give none of it if the end was not captured. The two lengths differ
    /// where the kernel has taken a VLAN tag out of the frame.
    pub fn frame(&mut self, bytes: &[u8], length: u64, now: u64) {
        let totals = &mut *self.totals;
        totals.sizes[size_class(length)] += 1;
        totals.bytes += length;
        if totals.first_ns == 0 {
            totals.first_ns = now;
        }
        totals.last_ns = now;
        if self.arrivals_limit > 0 {
            self.arrivals_seen += 1;
            if self.arrivals.len() < self.arrivals_limit {
                self.arrivals.push(now);
            }
        }
        let Some(signature) = Signature::at_end_of(bytes) else { return };
        if self.ignore_icmp_errors && is_icmp_error(bytes) {
            return;
        }
        totals.signed_frames += 1;
        let mut stream = self.streams.get_mut(signature.stream as usize);
        match &mut stream {
            Some(stream) => {
                stream.frames += 1;
                stream.bytes += length;
                sequence_seen(totals, stream, signature.sequence);
            }
            None => totals.unplaced += 1,
        }
        // A sender that spares itself the clock writes 0.
        if self.latency && signature.time != 0 {
            let elapsed = signature::elapsed(signature.time, now);
            add_latency(&mut totals.latency, elapsed);
            if let Some(stream) = stream {
                add_latency(&mut stream.latency, elapsed);
            }
            if let Ok(latency) = u64::try_from(elapsed) {
                let bucket = bucket_of(latency);
                totals.histogram[bucket] += 1;
                if let Some(own) = self.histograms.get_mut(signature.stream as usize) {
                    own.0[bucket] += 1;
                }
            }
        }
    }
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

fn add_latency(sums: &mut LatencySums, elapsed: i64) {
    let Ok(latency) = u64::try_from(elapsed) else {
        sums.negative += 1;
        return;
    };
    if sums.count == 0 || latency < sums.min {
        sums.min = latency;
    }
    sums.max = sums.max.max(latency);
    sums.count += 1;
    sums.sum += latency;
}

/// In order, reordered, duplicate, or too late to tell; see `bpf/include/sequence.h`.
fn sequence_seen(totals: &mut Totals, stream: &mut Stream, sequence: u64) {
    let word = sequence / 64;
    let slot = word as usize % WINDOW_WORDS;
    let bit = 1 << (sequence % 64);
    if stream.next == 0 {
        stream.lowest = sequence;
    } else if sequence >= stream.next {
        let top = (stream.next - 1) / 64;
        for entered in (top + 1..=word).take(WINDOW_WORDS) {
            stream.window[entered as usize % WINDOW_WORDS] = 0;
        }
    } else {
        stream.lowest = stream.lowest.min(sequence);
        if (stream.next - 1) / 64 - word >= WINDOW_WORDS as u64 {
            stream.late += 1;
            totals.late += 1;
        } else if stream.window[slot] & bit != 0 {
            stream.duplicates += 1;
            totals.duplicates += 1;
        } else {
            stream.window[slot] |= bit;
            stream.reordered += 1;
            totals.reordered += 1;
        }
        return;
    }
    stream.window[slot] |= bit;
    stream.next = sequence + 1;
}
