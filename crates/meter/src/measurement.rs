//! What the meter says: sums over the CPUs (or the one thread of a packet socket), in the words of the standards.
//!
//! No I/O here. Times are nanoseconds of `CLOCK_MONOTONIC`, the clock senders stamp frames with.

use crate::hardware::Stamps;
use crate::layout::{self, Buckets, CLASSES, FineBuckets, LatencySums, Totals, ZERO};
use crate::meter::Mode;
use histogram::Histogram;
use wire::signature::SEQUENCES;

/// The frame sizes, FCS included, of each place in [`Snapshot::sizes`]: etherStats (RFC 2819, section 5). The first is
/// below the least that Ethernet allows, the last above 1,518 (which a VLAN tag makes legal).
pub const SIZE_CLASSES: [(u32, u32); CLASSES] =
    [(0, 63), (64, 64), (65, 127), (128, 255), (256, 511), (512, 1023), (1024, 1518), (1519, u32::MAX)];

/// Everything that was counted up to now, over all streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub frames: u64,
    /// Layer 2 without FCS.
    pub bytes: u64,
    /// Frames by [`SIZE_CLASSES`].
    pub sizes: [u64; CLASSES],
    /// Frames with a signature.
    pub signed: u64,
    /// Signed frames of streams beyond [`Options::streams`](crate::Options::streams): in `signed` and in the
    /// latencies, in no stream.
    pub unplaced: u64,
    /// Arrival of the first and the last frame; `None` if there was none. If neither latency nor arrivals were
    /// asked for, the last may be up to a clock tick (1 to 10 ms) later than this says.
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
    /// Frames that came after one with a higher sequence number, of all streams; `late` ones included.
    pub reordered: u64,
    /// Frames that had come before, of all streams.
    pub duplicates: u64,
    /// Frames whose bytes before the signature are not those that were sent, where that was asked for.
    pub corrupted: u64,
    /// Signed frames with bytes behind the signature.
    pub trailed: u64,
    /// Frames whose time of arrival the hardware told.
    pub by_hardware: u64,
    /// Signed frames that are in no stream because another CPU held its record for too long.
    pub contended: u64,
    /// See [`StreamStats::late`].
    pub late: u64,
    /// Latency of all signed frames with a time stamp.
    pub latency: Histogram,
    /// How much longer or shorter each frame was under way than the one of its stream that came before, without sign
    /// (RFC 3393 over arrivals).
    pub variation: Histogram,
    /// Time between one arrival and the next, by CPU (so by receive queue), where the clock is read for each frame.
    pub gaps: Histogram,
    /// Frames stamped in the future of this clock: the clocks of sender and meter differ. Not in `latency`.
    pub negative_latencies: u64,
    /// Arrival times kept, and those there was no room for.
    pub arrivals: u64,
    pub arrivals_missed: u64,
    /// Frames that reached the interface but not the meter (packet socket only: the ring was full).
    pub meter_dropped: u64,
}

/// Latency of one stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Frames it was measured on.
    pub count: u64,
    pub min_ns: u64,
    pub mean_ns: f64,
    pub max_ns: u64,
}

/// What arrived of one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamStats {
    pub stream: u32,
    /// Frames that arrived, duplicates included.
    pub frames: u64,
    /// Layer 2 without FCS.
    pub bytes: u64,
    pub lowest_sequence: u64,
    /// They go on where the 40 bits of the signature come round.
    pub highest_sequence: u64,
    /// Sequence numbers up to the highest that did not arrive; from 0 on, or from the lowest that arrived if the
    /// meter joined in midstream. What is lost *after* the highest only the sender knows: see
    /// [`lost_of`](Self::lost_of).
    pub lost: u64,
    /// Frames that came after one with a higher sequence number, `late` ones included.
    pub reordered: u64,
    /// Frames that had come before.
    pub duplicates: u64,
    /// Frames that came 449 or more sequence numbers too late, so that nobody remembers whether they came before.
    /// They are taken as reordered. If some were duplicates after all, up to that many more were lost than is said;
    /// with `late` = 0 every figure is exact.
    pub late: u64,
    /// Frames whose bytes before the signature are not those that were sent, where that was asked for.
    pub corrupted: u64,
    /// How many frames came between the first with a higher number and a reordered one, this included: its extent (RFC
    /// 4737, section 4.2.2), the greatest and the mean. At least that, where numbers were left out more than three times
    /// in between.
    pub extent_max: u64,
    pub extent_mean: f64,
    /// `None` if nothing was measured.
    pub latency: Option<Latency>,
    /// How the latencies spread, of the first streams.
    pub latencies: Option<Histogram>,
    /// Interarrival jitter (RFC 3550, section 6.4.1) at the end.
    pub jitter_ns: Option<f64>,
    /// The longest time between two arrivals, where the clock is read for each frame.
    pub gap_max_ns: Option<u64>,
    /// From the first arrival to the last, where the clock is read for each frame.
    pub duration_ns: Option<u64>,
    /// Frames stamped in the future of this clock.
    pub negative_latencies: u64,
}

impl StreamStats {
    /// How many different sequence numbers arrived.
    pub fn distinct(&self) -> u64 {
        self.frames.saturating_sub(self.duplicates)
    }

    /// How many of the `sent` frames of this stream did not arrive, those at its end included.
    pub fn lost_of(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.distinct())
    }

    /// Adds what arrived of the stream elsewhere.
    fn add(&mut self, other: &StreamStats) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.duplicates += other.duplicates;
        self.lowest_sequence = self.lowest_sequence.min(other.lowest_sequence);
        self.highest_sequence = self.highest_sequence.max(other.highest_sequence);
        // What each takes for lost may have come to the other.
        let missing = (self.highest_sequence + 1).saturating_sub(self.distinct());
        self.lost = missing.min(self.lost + other.lost);
        self.reordered += other.reordered;
        self.late += other.late;
        self.latency = match (self.latency, other.latency) {
            (Some(a), Some(b)) => Some(Latency {
                count: a.count + b.count,
                min_ns: a.min_ns.min(b.min_ns),
                mean_ns: (a.mean_ns * a.count as f64 + b.mean_ns * b.count as f64)
                    / (a.count + b.count) as f64,
                max_ns: a.max_ns.max(b.max_ns),
            }),
            (a, b) => a.or(b),
        };
        self.latencies = match (self.latencies.take(), &other.latencies) {
            (Some(mut own), Some(more)) => {
                own.merge(more);
                Some(own)
            }
            (own, more) => own.or_else(|| more.clone()),
        };
        self.negative_latencies += other.negative_latencies;
    }

    /// `base` is the first sequence number that could have arrived, if it is known.
    pub(crate) fn from_sum(
        stream: u32,
        sum: &layout::Stream,
        buckets: Option<&Buckets>,
        base: Option<u64>,
    ) -> Option<StreamStats> {
        let highest = sum.next.checked_sub(1)?;
        // A meter that joined in just behind the number where they come round saw some from before that.
        let zero = if sum.lowest < ZERO { ZERO - SEQUENCES } else { ZERO };
        let distinct = sum.frames.saturating_sub(sum.duplicates);
        let behind = sum.reordered + sum.late;
        let timed = sum.latency.count + sum.latency.negative;
        let from = base.map_or(sum.lowest, |base| base + ZERO);
        Some(StreamStats {
            stream,
            frames: sum.frames,
            bytes: sum.bytes,
            lowest_sequence: sum.lowest.saturating_sub(zero),
            highest_sequence: highest.saturating_sub(zero),
            lost: sum.next.saturating_sub(from).saturating_sub(distinct),
            reordered: sum.reordered + sum.late,
            duplicates: sum.duplicates,
            late: sum.late,
            corrupted: sum.corrupted,
            extent_max: sum.extent_max,
            extent_mean: if behind == 0 { 0.0 } else { sum.extent_sum.get() as f64 / behind as f64 },
            latency: Latency::from_sums(&sum.latency),
            jitter_ns: (timed > 1).then_some(sum.jitter as f64 / 16.0),
            gap_max_ns: (sum.first_ns > 0 && sum.frames > 1).then_some(sum.gap_max),
            duration_ns: (sum.first_ns > 0).then(|| sum.last_ns.saturating_sub(sum.first_ns)),
            latencies: buckets.filter(|_| sum.latency.count > 0).map(|b| histogram(b, &sum.latency)),
            negative_latencies: sum.latency.negative,
        })
    }
}

impl Latency {
    fn from_sums(sums: &LatencySums) -> Option<Latency> {
        (sums.count > 0).then(|| Latency {
            count: sums.count,
            min_ns: sums.min,
            mean_ns: sums.sum.get() as f64 / sums.count as f64,
            max_ns: sums.max,
        })
    }
}

fn histogram(buckets: &Buckets, sums: &LatencySums) -> Histogram {
    Histogram::from_counts(&buckets.0, sums.sum.get(), sums.min, sums.max)
}

fn fine_histogram(buckets: &FineBuckets, sums: &LatencySums) -> Histogram {
    Histogram::from_fine_counts(&buckets.0, sums.sum.get(), sums.min, sums.max)
}

/// Of sums that do not have the least: it is known to the width of its bucket.
fn spread(buckets: &Buckets, sums: &LatencySums) -> Histogram {
    let least = Histogram::from_counts(&buckets.0, sums.sum.get(), 0, sums.max).buckets().next();
    Histogram::from_counts(&buckets.0, sums.sum.get(), least.map_or(0, |bucket| bucket.from), sums.max)
}

impl Snapshot {
    /// `seen` frames were asked for their arrival, of which there was room for `room`.
    pub(crate) fn from_sum(sum: &Totals, seen: u64, room: u64, meter_dropped: u64) -> Snapshot {
        let frames = sum.sizes.iter().sum();
        Snapshot {
            frames,
            bytes: sum.bytes,
            sizes: sum.sizes,
            signed: sum.signed_frames,
            unplaced: sum.unplaced,
            first_ns: (frames > 0).then_some(sum.first_ns),
            last_ns: (frames > 0).then_some(sum.last_ns),
            reordered: sum.reordered + sum.late,
            duplicates: sum.duplicates,
            late: sum.late,
            corrupted: sum.corrupted,
            trailed: sum.trailed,
            by_hardware: sum.by_hardware,
            contended: sum.contended,
            latency: fine_histogram(&sum.latencies, &sum.latency),
            variation: spread(&sum.variations, &sum.variation),
            gaps: spread(&sum.gaps, &sum.gap),
            negative_latencies: sum.latency.negative,
            arrivals: seen.min(room),
            arrivals_missed: seen.saturating_sub(room),
            meter_dropped,
        }
    }

    /// Adds what was counted at another interface by the same clock.
    pub fn add(&mut self, other: &Snapshot) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        for (sum, size) in self.sizes.iter_mut().zip(other.sizes) {
            *sum += size;
        }
        self.signed += other.signed;
        self.unplaced += other.unplaced;
        self.first_ns = [self.first_ns, other.first_ns].into_iter().flatten().min();
        self.last_ns = self.last_ns.max(other.last_ns);
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.late += other.late;
        self.corrupted += other.corrupted;
        self.trailed += other.trailed;
        self.contended += other.contended;
        self.by_hardware += other.by_hardware;
        self.latency.merge(&other.latency);
        self.negative_latencies += other.negative_latencies;
        self.arrivals += other.arrivals;
        self.arrivals_missed += other.arrivals_missed;
        self.meter_dropped += other.meter_dropped;
    }

    /// From the first to the last arrival; 0 with fewer than two frames.
    pub fn duration_ns(&self) -> u64 {
        match (self.first_ns, self.last_ns) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        }
    }
}

/// A finished measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// How it was measured, and why so.
    pub mode: Mode,
    pub reason: String,
    pub totals: Snapshot,
    /// The streams of which something arrived, by number.
    pub streams: Vec<StreamStats>,
    /// Arrival times in order, as far as they were asked for.
    pub arrivals: Vec<u64>,
    /// What the hardware's time stamps are worth, if arrivals were timed by them.
    pub stamps: Option<Stamps>,
    /// VLAN tags were taken out of frames before they were counted ([`Options::tags_taken_out`](crate::Options::tags_taken_out)):
    /// a frame that came with one is 4 bytes shorter here.
    pub tags_unseen: bool,
}

impl Measurement {
    /// Adds what was measured at another interface by the same clock. Of a stream that arrived at both, what came there
    /// is added up; frames that overtook one another on different ways are not seen.
    pub fn add(&mut self, other: Measurement) {
        self.totals.add(&other.totals);
        for stats in other.streams {
            match self.streams.binary_search_by_key(&stats.stream, |own| own.stream) {
                Ok(at) => self.streams[at].add(&stats),
                Err(at) => self.streams.insert(at, stats),
            }
        }
        match (&mut self.stamps, other.stamps) {
            (Some(own), Some(other)) => own.add(&other),
            (own, other) => *own = own.take().or(other),
        }
        self.tags_unseen |= other.tags_unseen;
        self.arrivals.extend(other.arrivals);
        self.arrivals.sort_unstable();
    }

    /// Sequence numbers that did not arrive, over all streams; see [`StreamStats::lost`].
    pub fn lost(&self) -> u64 {
        self.streams.iter().map(|stream| stream.lost).sum()
    }
}
