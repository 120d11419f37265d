//! What the meter says: sums over the CPUs (or the one thread of a packet socket), in the words of the standards.
//!
//! No I/O here. Times are nanoseconds of `CLOCK_MONOTONIC`, the clock senders stamp frames with.

use crate::frames::Captured;
use crate::hardware::Stamps;
use crate::layout::{self, Buckets, CLASSES, FineBuckets, LatencySums, Totals, ZERO};
use crate::options::Mode;
use histogram::Histogram;
use wire::signature::SEQUENCES;

/// The frame sizes, FCS included, of each place in [`Snapshot::sizes`]: etherStats (RFC 2819, section 5). The first is
/// below the least that Ethernet allows, the last above 1,518 (which a VLAN tag makes legal).
pub const SIZE_CLASSES: [(u32, u32); CLASSES] =
    [(0, 63), (64, 64), (65, 127), (128, 255), (256, 511), (512, 1023), (1024, 1518), (1519, u32::MAX)];

/// Everything that was counted up to now, over all streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Frames that arrived.
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
    /// See `first_ns`.
    pub last_ns: Option<u64>,
    /// Frames that came after one with a higher sequence number, of all streams; `late` ones included.
    pub reordered: u64,
    /// Frames that had come before, of all streams.
    pub duplicates: u64,
    /// Frames whose bytes before the signature are not those that were sent, where that was asked for.
    pub corrupted: u64,
    /// Signed frames with bytes behind the signature.
    pub trailed: u64,
    /// Frames whose time of arrival the hardware stamped.
    pub by_hardware: u64,
    /// Unsigned frames that most networks carry ([`wire::background`]), whoever sent them.
    pub background: u64,
    /// Signed frames that are in no stream because their number is so far ahead that it must be damaged.
    pub astray: u64,
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
    /// Arrival times kept.
    pub arrivals: u64,
    /// Arrival times that there was no room for.
    pub arrivals_missed: u64,
    /// Frames that reached the interface but not the meter (packet socket only: the ring was full).
    pub meter_dropped: u64,
}

/// Latency of one stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Frames it was measured on.
    pub count: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// The mean, in nanoseconds.
    pub mean_ns: f64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

/// What arrived of one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamStats {
    /// The stream's number in its signatures.
    pub stream: u32,
    /// Frames that arrived, duplicates included.
    pub frames: u64,
    /// Layer 2 without FCS.
    pub bytes: u64,
    /// The lowest sequence number that arrived.
    pub lowest_sequence: u64,
    /// The highest that arrived. Numbers go on where the 40 bits of the signature come round.
    pub highest_sequence: u64,
    /// Sequence numbers up to the highest that did not arrive; from 0 on, or from the lowest that arrived if the
    /// meter joined in midstream. What is lost *after* the highest only the sender knows: see
    /// [`lost_of`](Self::lost_of).
    pub lost: u64,
    /// Frames that came after one with a higher sequence number, `late` ones included.
    pub reordered: u64,
    /// Frames that had come before.
    pub duplicates: u64,
    /// Frames that came so many sequence numbers too late (449, or some thousands where there are few streams) that nobody
    /// remembers whether they came before. They are taken as reordered. If some were duplicates after all, up to that many
    /// more were lost than is said.
    pub late: u64,
    /// Frames that are taken for different ones and may be copies: the late ones, and where a stream came to two
    /// interfaces as many as may have come to both. Up to so many more were lost than is said; with 0 every figure is
    /// exact.
    pub unsure: u64,
    /// Frames of a sender that began anew, but for the first ones: with any, loss, copies and order are not known.
    pub renewed: u64,
    /// Frames whose bytes before the signature are not those that were sent, where that was asked for.
    pub corrupted: u64,
    /// How many frames came between the first with a higher number and a reordered one, this included: its extent (RFC
    /// 4737, section 4.2.2), the greatest and the mean. At least that, where numbers were left out more than three times
    /// in between.
    pub extent_max: u64,
    /// The mean of that, in frames.
    pub extent_mean: f64,
    /// `None` if nothing was measured.
    pub latency: Option<Latency>,
    /// How the latencies spread, of the first streams.
    pub latencies: Option<Histogram>,
    /// Interarrival jitter (RFC 3550, section 6.4.1) at the end.
    pub jitter_ns: Option<f64>,
    /// The longest time between two arrivals, where the clock is read for each frame.
    pub gap_max_ns: Option<u64>,
    /// How the times from one arrival to the next spread, of the first streams, where that was asked for
    /// ([`Options::inter_arrival`](crate::Options::inter_arrival)): in the order they came in, copies of frames too; one
    /// over frames that were lost is one long time.
    pub gaps: Option<Histogram>,
    /// From the first arrival to the last, where the clock is read for each frame.
    pub duration_ns: Option<u64>,
    /// The first and the last arrival by the meter's clock, where that is read for each frame.
    pub arrivals_ns: Option<(u64, u64)>,
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

    /// Adds what arrived of the stream at another interface. What cannot be known of both together is left out.
    fn add(&mut self, other: StreamStats) {
        // All by name, so that nothing new is forgotten here.
        let StreamStats {
            stream: _,
            frames,
            bytes,
            lowest_sequence,
            highest_sequence,
            lost,
            reordered,
            duplicates,
            late,
            unsure,
            renewed,
            corrupted,
            extent_max,
            extent_mean,
            latency,
            latencies,
            jitter_ns,
            gap_max_ns: _,
            gaps: _,
            duration_ns: _,
            arrivals_ns,
            negative_latencies,
        } = other;
        // Nobody looked at both: what came to one may be copies of what came to the other.
        let both = (self.highest_sequence.min(highest_sequence) + 1)
            .saturating_sub(self.lowest_sequence.max(lowest_sequence));
        self.unsure += unsure + both.min(self.distinct()).min(frames.saturating_sub(duplicates));
        // Of each interface; how far apart two arrivals at different ones were is not kept.
        (self.gap_max_ns, self.gaps, self.duration_ns) = (None, None, None);
        self.jitter_ns =
            if frames > self.frames { jitter_ns.or(self.jitter_ns) } else { self.jitter_ns.or(jitter_ns) };
        let behind = self.reordered + reordered;
        if behind > 0 {
            let weighted = |mean: f64, of: u64| mean * of as f64;
            self.extent_mean = (weighted(self.extent_mean, self.reordered)
                + weighted(extent_mean, reordered))
                / behind as f64;
        }
        self.extent_max = self.extent_max.max(extent_max);
        self.frames += frames;
        self.bytes += bytes;
        self.duplicates += duplicates;
        self.lowest_sequence = self.lowest_sequence.min(lowest_sequence);
        self.highest_sequence = self.highest_sequence.max(highest_sequence);
        // What each takes for lost may have come to the other.
        let missing = (self.highest_sequence + 1).saturating_sub(self.distinct());
        self.lost = missing.min(self.lost + lost);
        self.reordered += reordered;
        self.late += late;
        self.renewed += renewed;
        self.corrupted += corrupted;
        self.latency = match (self.latency, latency) {
            (Some(a), Some(b)) => Some(Latency {
                count: a.count + b.count,
                min_ns: a.min_ns.min(b.min_ns),
                mean_ns: (a.mean_ns * a.count as f64 + b.mean_ns * b.count as f64)
                    / (a.count + b.count) as f64,
                max_ns: a.max_ns.max(b.max_ns),
            }),
            (a, b) => a.or(b),
        };
        self.latencies = match (self.latencies.take(), latencies) {
            (Some(mut own), Some(more)) => {
                own.merge(&more);
                Some(own)
            }
            (own, more) => own.or(more),
        };
        self.arrivals_ns = match (self.arrivals_ns, arrivals_ns) {
            (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
            (own, other) => own.or(other),
        };
        self.negative_latencies += negative_latencies;
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
            unsure: sum.late + sum.renewed,
            renewed: sum.renewed,
            corrupted: sum.corrupted,
            extent_max: sum.extent_max,
            extent_mean: if behind == 0 { 0.0 } else { sum.extent_sum.get() as f64 / behind as f64 },
            latency: Latency::from_sums(&sum.latency),
            jitter_ns: (timed > 1).then_some(sum.jitter as f64 / 16.0),
            gap_max_ns: (sum.first_ns > 0 && sum.frames > 1).then_some(sum.gap_max),
            gaps: None,
            duration_ns: (sum.first_ns > 0).then(|| sum.last_ns.saturating_sub(sum.first_ns)),
            arrivals_ns: (sum.first_ns > 0).then_some((sum.first_ns, sum.last_ns)),
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

/// Times between the arrivals of one stream, which add up to the time from its first to its last.
pub(crate) fn stream_gaps(buckets: &Buckets, sum: &layout::Stream) -> Option<Histogram> {
    let lasted = sum.last_ns.saturating_sub(sum.first_ns);
    let sums =
        LatencySums { max: sum.gap_max, sum: layout::Sum { low: lasted, high: 0 }, ..LatencySums::default() };
    Some(spread(buckets, &sums)).filter(|gaps| !gaps.is_empty())
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
            background: sum.background,
            contended: sum.contended,
            astray: sum.astray,
            latency: fine_histogram(&sum.latencies, &sum.latency),
            variation: spread(&sum.variations, &sum.variation),
            gaps: spread(&sum.gaps, &sum.gap),
            negative_latencies: sum.latency.negative,
            arrivals: seen.min(room),
            arrivals_missed: seen.saturating_sub(room),
            meter_dropped,
        }
    }

    /// A frame was longer under way than the meter has counted: its stamp is of before, as in a capture that was signed earlier.
    pub(crate) fn has_old_stamps(&self, began_ns: u64) -> bool {
        // The hardware's clock is known to some microseconds.
        const SLACK_NS: u64 = 10_000_000;
        let lasted = self.last_ns.map(|last_ns| last_ns.saturating_sub(began_ns));
        lasted.is_some_and(|lasted| self.latency.max() > lasted.saturating_add(SLACK_NS))
    }

    /// Such stamps tell no latency.
    pub(crate) fn forget_latencies(&mut self) {
        (self.latency, self.variation) = (Histogram::default(), Histogram::default());
    }

    /// Adds what was counted at another interface by the same clock.
    pub fn add(&mut self, other: &Snapshot) {
        // All by name, so that nothing new is forgotten here.
        let Snapshot {
            frames,
            bytes,
            sizes,
            signed,
            unplaced,
            first_ns,
            last_ns,
            reordered,
            duplicates,
            corrupted,
            trailed,
            by_hardware,
            contended,
            astray,
            late,
            latency,
            variation,
            gaps,
            negative_latencies,
            arrivals,
            arrivals_missed,
            meter_dropped,
            background,
        } = other;
        self.frames += frames;
        self.bytes += bytes;
        for (sum, size) in self.sizes.iter_mut().zip(sizes) {
            *sum += size;
        }
        self.signed += signed;
        self.unplaced += unplaced;
        self.first_ns = [self.first_ns, *first_ns].into_iter().flatten().min();
        self.last_ns = self.last_ns.max(*last_ns);
        self.reordered += reordered;
        self.duplicates += duplicates;
        self.corrupted += corrupted;
        self.trailed += trailed;
        self.by_hardware += by_hardware;
        self.contended += contended;
        self.astray += astray;
        self.late += late;
        self.latency.merge(latency);
        self.variation.merge(variation);
        // Between arrivals at the same interface, as they are between those at the same CPU.
        self.gaps.merge(gaps);
        self.negative_latencies += negative_latencies;
        self.arrivals += arrivals;
        self.arrivals_missed += arrivals_missed;
        self.meter_dropped += meter_dropped;
        self.background += background;
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
    /// How it was measured.
    pub mode: Mode,
    /// Why so: why faster ways were not possible, for people.
    pub reason: String,
    /// Everything that was counted, over all streams.
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
    /// Frames were stamped before the meter began to count, so that latencies are not known and left out.
    pub old_stamps: bool,
    /// How many frames were copied, if that was asked for.
    pub captured: Option<Captured>,
}

impl StreamStats {
    pub(crate) fn forget_latencies(&mut self) {
        (self.latency, self.latencies, self.jitter_ns) = (None, None, None);
    }
}

impl Measurement {
    /// Adds what was measured at another interface by the same clock. Of a stream that arrived at both, what came there
    /// is added up; frames that overtook one another on different ways are not seen.
    pub fn add(&mut self, other: Measurement) {
        // How each is measured is told of each where it is attached.
        let Measurement {
            mode: _,
            reason: _,
            totals,
            streams,
            arrivals,
            stamps,
            tags_unseen,
            old_stamps,
            captured,
        } = other;
        self.totals.add(&totals);
        for stats in streams {
            match self.streams.binary_search_by_key(&stats.stream, |own| own.stream) {
                Ok(at) => self.streams[at].add(stats),
                Err(at) => self.streams.insert(at, stats),
            }
        }
        match (&mut self.stamps, stamps) {
            (Some(own), Some(other)) => own.add(&other),
            (own, other) => *own = own.take().or(other),
        }
        self.tags_unseen |= tags_unseen;
        self.old_stamps |= old_stamps;
        if let (Some(own), Some(other)) = (&mut self.captured, captured) {
            own.frames += other.frames;
            own.missed += other.missed;
        }
        self.arrivals.extend(arrivals);
        self.arrivals.sort_unstable();
    }

    /// Sequence numbers that did not arrive, over all streams; see [`StreamStats::lost`].
    pub fn lost(&self) -> u64 {
        self.streams.iter().map(|stream| stream.lost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::plain;
    use crate::tracker::{Tracker, Wanted};
    use wire::signature::Signature;

    #[test]
    fn a_frame_that_was_stamped_before_the_meter_began_tells_no_latency() {
        const SECOND: u64 = 1_000_000_000;
        // Three frames from 5 s on, each a second under way.
        let mut totals = measured(&[(0, SECOND), (1, SECOND), (2, SECOND)], 5 * SECOND).totals;
        assert!(!totals.has_old_stamps(4 * SECOND) && !totals.has_old_stamps(0));
        // Stamped at 4 s, where it began after that.
        assert!(totals.has_old_stamps(4_100_000_000));
        totals.forget_latencies();
        assert!(totals.latency.is_empty() && totals.variation.is_empty() && totals.frames == 3);
        assert!(!totals.has_old_stamps(5 * SECOND));
    }

    /// What a meter says of frames of stream 0: their numbers, each 1 us after the one before, under way for so many ns.
    fn measured(frames: &[(u64, u64)], from_ns: u64) -> Measurement {
        let mut tracker = Tracker::new(Wanted {
            streams: 1,
            histograms: 1,
            latency: true,
            arrivals: 9,
            ..Wanted::default()
        });
        for (at, (sequence, under_way)) in (from_ns..).step_by(1000).zip(frames) {
            let signature = Signature { stream: 0, sequence: *sequence, time: at - under_way };
            tracker.frame(&signature.to_bytes(), 60, at, at);
        }
        (tracker.totals.contended, tracker.totals.corrupted, tracker.streams[0].corrupted) = (1, 1, 1);
        let stream = StreamStats::from_sum(0, &tracker.streams[0], tracker.histograms.first(), Some(0));
        Measurement {
            mode: Mode::PacketSocket,
            reason: String::new(),
            totals: Snapshot::from_sum(&tracker.totals, tracker.arrivals_seen, 9, 2),
            streams: stream.into_iter().collect(),
            arrivals: tracker.arrivals.clone(),
            stamps: None,
            tags_unseen: false,
            old_stamps: false,
            captured: None,
        }
    }

    #[test]
    fn times_between_arrivals_are_of_what_came_whatever_its_number() {
        let mut tracker = Tracker::new(Wanted { streams: 2, gaps: 1, ..Wanted::default() });
        // 2 to 4 are lost, 5 comes twice, 1 late, and one that the hardware stamped before it; stream 1 has no histogram.
        let frames = [
            (0, 0, 1000),
            (1, 7, 1500),
            (0, 5, 5000),
            (0, 5, 5200),
            (0, 1, 5300),
            (0, 6, 5250),
            (0, 7, 5400),
        ];
        for (stream, sequence, at) in frames {
            tracker.frame(&Signature { stream, sequence, time: 0 }.to_bytes(), 60, at, at);
        }
        let gaps = stream_gaps(&tracker.stream_gaps[0], &tracker.streams[0]).expect("two frames and more");
        assert_eq!(tracker.stream_gaps.len(), 1);
        // One of 4 us over the lost ones, 200 to the copy, 100, 0 to what came before its time, and 100 from the latest.
        assert_eq!((gaps.count(), gaps.sum(), gaps.min(), gaps.max()), (5, 4400, 0, 4000));
        assert_eq!(gaps.p50(), 100);
    }

    #[test]
    fn what_two_interfaces_counted_is_added_up_or_left_out() {
        // Two sides of one stream: at the first all but 3 and 6 to 8, of which 1 comes after 2; at the other 6 to 8.
        let mut both = measured(&[(0, 100), (2, 200), (1, 400), (4, 300), (5, 300)], 1_000_000);
        both.add(measured(&[(8, 500), (6, 500), (7, 900)], 2_000_000));
        let (totals, stream) = (&both.totals, &both.streams[0]);
        assert_eq!((totals.frames, totals.reordered, totals.meter_dropped, totals.arrivals), (8, 3, 4, 8));
        assert_eq!((totals.contended, totals.corrupted, totals.latency.count()), (2, 2, 8));
        // Of 100, 200, 100, 0; and 0, 400. Gaps: four and two.
        assert_eq!((totals.variation.count(), totals.variation.sum()), (6, 800));
        assert_eq!((totals.gaps.count(), totals.gaps.sum(), totals.duration_ns()), (6, 6000, 1_002_000));
        assert_eq!((stream.frames, stream.distinct(), stream.lost, stream.unsure), (8, 8, 1, 0));
        assert_eq!((stream.extent_max, stream.corrupted), (2, 2));
        // 1, and 1 and 2.
        assert!((stream.extent_mean - 4.0 / 3.0).abs() < 1e-9, "{}", stream.extent_mean);
        assert_eq!((stream.gap_max_ns, stream.duration_ns), (None, None));
        assert_eq!(stream.latencies.as_ref().map(Histogram::count), Some(8));
    }

    #[test]
    fn a_stream_that_came_to_two_interfaces_is_not_sure_to_be_whole() {
        let frames = |numbers: std::ops::Range<u64>| numbers.map(|number| (number, 100)).collect::<Vec<_>>();
        let mut both = measured(&frames(0..6), 1_000_000);
        both.add(measured(&frames(4..10), 2_000_000));
        // 4 and 5 came to both: twelve frames of ten numbers, and nobody saw it.
        let stream = &both.streams[0];
        assert_eq!((stream.distinct(), stream.lost_of(12), stream.unsure), (12, 0, 2));
    }

    #[test]
    fn a_meter_that_saw_no_number_twice_and_none_late_is_sure() {
        let mut tracker = plain();
        for sequence in [0, 1, 600, 600, 2] {
            tracker.frame(&Signature { stream: 0, sequence, time: 0 }.to_bytes(), 60, 1, 1);
        }
        let stats = StreamStats::from_sum(0, &tracker.streams[0], None, Some(0)).expect("frames arrived");
        assert_eq!((stats.duplicates, stats.late, stats.unsure), (1, 1, 1));
    }
}
