//! What the meter keeps, as the kernel lays it out: `programs/bpf/include/meter.h` in Rust, field by field.
//!
//! The loader compares sizes and offsets when it is compiled, and a property test holds every value together. All
//! fields are 64 bits wide: whoever reads mapped memory while a CPU writes it never sees half a number.

use histogram::{BUCKETS, FINE_BUCKETS};
use wire::signature::SEQUENCES;

/// Bytes of the frame check sequence, which no program sees and the standards count.
pub const FCS_LEN: u64 = 4;
/// Words of a stream's duplicate window.
pub const WINDOW_WORDS: usize = 8;
/// Memory that a stream takes, in bytes.
pub const STREAM_BYTES: u64 = 320;
/// Memory that a histogram of a stream's latencies, or of the times between its arrivals, takes, in bytes.
pub const HISTOGRAM_BYTES: u64 = size_of::<Buckets>() as u64;
/// Number of etherStats size classes, undersize and oversize included.
pub const CLASSES: usize = 8;
/// The last so many times that a stream left out sequence numbers are remembered.
pub const HOLES: usize = 3;

/// Each CPU has its own records of the streams while they take no more than this in all, histograms not counted; of
/// more streams there is one record each.
const OWN_RECORDS: u64 = 8 << 20;
/// The same for the streams' histograms.
const OWN_HISTOGRAMS: u64 = 32 << 20;

/// Whether all CPUs share the records of `streams` streams, of which `histograms` have a histogram.
pub fn is_shared(cpus: u32, streams: u32, histograms: u32) -> bool {
    let of = |count: u32, size: usize| u64::from(cpus) * u64::from(count) * size as u64;
    cpus > 1
        && (of(streams, size_of::<Stream>()) > OWN_RECORDS
            || of(histograms, size_of::<Buckets>()) > OWN_HISTOGRAMS)
}

/// The rings of numbers that were seen take no more than this for all streams.
const RINGS: u64 = 8 << 20;

/// So many bits of `streams` streams' sequence numbers are remembered, where each CPU has records of its own: a number takes
/// two bits, and more than 2^16 no queues are apart.
pub fn seen_bits(streams: u32) -> u32 {
    (8..=16).rev().find(|bits| u64::from(streams) << (bits - 2) <= RINGS).unwrap_or(8)
}

/// How many values are in each bucket: of one stream's latencies, or of a CPU's share of them; or of the times between its arrivals.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets<const N: usize = BUCKETS>(pub [u64; N]);

/// Of all latencies: three significant digits.
pub type FineBuckets = Buckets<FINE_BUCKETS>;

impl<const N: usize> Default for Buckets<N> {
    fn default() -> Self {
        Buckets([0; N])
    }
}

impl<const N: usize> Buckets<N> {
    /// Adds another CPU's share.
    pub fn add(&mut self, other: &Buckets<N>) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// A sum of 128 bits.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub low: u64,
    pub high: u64,
}

impl Sum {
    pub fn get(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }

    pub fn add(&mut self, value: impl Into<u128>) {
        // Read while a CPU writes it, the halves may be of different times: no reason to panic.
        let sum = self.get().wrapping_add(value.into());
        (self.low, self.high) = (sum as u64, (sum >> 64) as u64);
    }
}

/// Nanoseconds under way, without buckets.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencySums {
    pub count: u64,
    pub sum: Sum,
    /// Meaningful once `count` is not 0.
    pub min: u64,
    pub max: u64,
    /// Stamped in the meter's future; in none of the others.
    pub negative: u64,
}

/// One CPU's share of everything that arrived. Half a megabyte: it stays in a box ([`bpf::zeroed`]).
#[repr(C, align(64))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    pub sizes: [u64; CLASSES],
    pub bytes: u64,
    /// `CLOCK_MONOTONIC`; 0: nothing yet.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The kernel's own: when it last read the clock, if not for each frame.
    pub tick: u64,
    pub signed_frames: u64,
    /// Signed, of a stream beyond the table.
    pub unplaced: u64,
    /// Signed, but another CPU held the stream's record for too long.
    pub contended: u64,
    pub reordered: u64,
    pub duplicates: u64,
    pub late: u64,
    pub corrupted: u64,
    /// Signed, but with bytes behind the signature.
    pub trailed: u64,
    /// Frames whose time of arrival the hardware stamped.
    pub by_hardware: u64,
    /// Unsigned frames that most networks carry ([`wire::background`]).
    pub background: u64,
    /// Signed, with a number that is so far ahead that it must be damaged.
    pub astray: u64,
    /// Frames that were not copied, because whoever takes copies wants no more.
    pub unwanted: u64,
    pub latency: LatencySums,
    /// From one frame of a stream to the next, without sign; only sum and greatest.
    pub variation: LatencySums,
    /// From one arrival on this CPU to the next; only sum and greatest.
    pub gap: LatencySums,
    pub latencies: FineBuckets,
    pub variations: Buckets,
    pub gaps: Buckets,
}

/// A frame that left out the numbers before its own.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hole {
    /// Its own; 0: there was none.
    pub number: u64,
    /// That had come before it.
    pub frames: u64,
}

/// What stands for sequence number 0: numbers go on where the 40 bits of a signature come round, and those before the first
/// that arrived are told, too.
pub const ZERO: u64 = SEQUENCES;

/// One stream, or one CPU's share of it. Sequence numbers are wide: see [`ZERO`].
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stream {
    /// The kernel's own: 1 while a CPU works on it, if they share it.
    pub busy: u64,
    /// Highest sequence number seen + 1; 0: none yet.
    pub next: u64,
    pub frames: u64,
    pub bytes: u64,
    /// Latest arrival, if the clock is read for each frame.
    pub last_ns: u64,
    pub gap_max: u64,
    /// Time under way of the last frame with a stamp, in two's complement.
    pub transit: u64,
    /// RFC 3550, appendix A.8: nanoseconds, times 16.
    pub jitter: u64,
    pub latency: LatencySums,
    pub first_ns: u64,
    /// Stamp of the frame with the highest number; without stamps the last number behind it + 1.
    pub newest: u64,
    pub window: [u64; WINDOW_WORDS],
    /// Below the highest, in the window, not seen before.
    pub reordered: u64,
    /// In the window, seen before.
    pub duplicates: u64,
    /// So far below the highest that nobody remembers whether it was seen.
    pub late: u64,
    pub corrupted: u64,
    /// Of the reordered and late ones: frames that came since the first with a higher number.
    pub extent_max: u64,
    pub extent_sum: Sum,
    /// The latest last.
    pub holes: [Hole; HOLES],
    pub lowest: u64,
    /// The kernel's own: frames in a row that are not where they should be.
    pub run: u64,
    /// Frames of a sender that began anew, but for the first ones.
    pub renewed: u64,
}

const _: () = assert!(size_of::<Stream>() as u64 == STREAM_BYTES);

/// What a stream's frames must have before the signature.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content {
    /// Of the frames this is about, in the low 32 bits; of the bytes to look at, in the high ones.
    pub length: u64,
    pub hash: u64,
}

impl LatencySums {
    /// Adds another CPU's share.
    pub fn add(&mut self, other: &LatencySums) {
        self.min = match (self.count, other.count) {
            (_, 0) => self.min,
            (0, _) => other.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum.add(other.sum.get());
        self.negative += other.negative;
    }
}

impl Totals {
    /// Adds another CPU's share.
    pub fn add(&mut self, other: &Totals) {
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(mine, theirs)| *mine += theirs);
        self.bytes += other.bytes;
        self.first_ns = match (self.first_ns, other.first_ns) {
            (0, only) | (only, 0) => only,
            (mine, theirs) => mine.min(theirs),
        };
        self.last_ns = self.last_ns.max(other.last_ns);
        self.signed_frames += other.signed_frames;
        self.unplaced += other.unplaced;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.late += other.late;
        self.contended += other.contended;
        self.corrupted += other.corrupted;
        self.trailed += other.trailed;
        self.by_hardware += other.by_hardware;
        self.background += other.background;
        self.astray += other.astray;
        self.unwanted += other.unwanted;
        for (mine, theirs) in [
            (&mut self.latency, &other.latency),
            (&mut self.variation, &other.variation),
            (&mut self.gap, &other.gap),
        ] {
            mine.add(theirs);
        }
        self.latencies.add(&other.latencies);
        for (mine, theirs) in [(&mut self.variations, &other.variations), (&mut self.gaps, &other.gaps)] {
            mine.add(theirs);
        }
    }
}

impl Stream {
    /// Adds another CPU's share of the same stream.
    ///
    /// Why the sum is exact although each CPU saw only part of the stream: every frame was counted by exactly one
    /// CPU, so the frames add up. Whether a frame had come before, all CPUs tell together (`programs/bpf/include/seen.h`): a device
    /// that changes headers, or a driver that deals frames out, sends copies to other queues than the frames. So
    /// frames - duplicates, added over the CPUs, is the number of *different* sequence numbers that arrived, and the
    /// highest of all is the greatest of the CPUs' highest. Loss needs no more. (Order is another matter: a CPU sees
    /// only its own part overtake, so reordering *between* queues is not counted. No receiver can tell it from the
    /// queues being served in turn.)
    pub fn add(&mut self, other: &Stream) {
        if other.next == 0 {
            return;
        }
        self.lowest = if self.next == 0 { other.lowest } else { self.lowest.min(other.lowest) };
        self.next = self.next.max(other.next);
        // Each CPU has a jitter of its own; of them the one that most frames were in is taken.
        if other.frames > self.frames {
            self.jitter = other.jitter;
        }
        self.gap_max = self.gap_max.max(other.gap_max);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (0, only) | (only, 0) => only,
            (mine, theirs) => mine.min(theirs),
        };
        self.last_ns = self.last_ns.max(other.last_ns);
        self.extent_max = self.extent_max.max(other.extent_max);
        self.extent_sum.add(other.extent_sum.get());
        self.corrupted += other.corrupted;
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.late += other.late;
        self.renewed += other.renewed;
        self.latency.add(&other.latency);
    }
}

mod words {
    #![allow(unsafe_code, reason = "promises of how types are laid out; nothing is done here")]

    use super::{Buckets, Content, Stream, Totals};
    use bpf::Words;

    // SAFETY: repr(C), only u64 fields, tail padding to 64 bytes.
    unsafe impl Words for Totals {}
    // SAFETY: repr(C), only u64 fields, tail padding to 64 bytes.
    unsafe impl Words for Stream {}
    // SAFETY: repr(C), an array of u64.
    unsafe impl<const N: usize> Words for Buckets<N> {}
    // SAFETY: repr(C), two u64.
    unsafe impl Words for Content {}
}
