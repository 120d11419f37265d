//! What a meter measured, as the result tells it: what both a run and `netdyno measure` say of it.

use meter::clock::{ClockState, StepWatch};
use meter::{Snapshot, StreamStats};
use report::{
    Bucket, Code, DelayVariation, Distribution, HardwareStamps, LatencyClock, Report, Rx, Sentence, Stream,
    Totals, units,
};

/// Streams that a report lists at most; sums are over all.
const MOST_STREAMS: usize = 65_536;

/// What arrived, without knowing what was sent.
fn received(totals: &Snapshot) -> Rx {
    // n frames span n - 1 gaps; the rate is over n of them.
    let span = u128::from(totals.duration_ns());
    let duration = match totals.frames {
        0 | 1 => span,
        n => span * u128::from(n) / u128::from(n - 1),
    };
    Rx {
        totals: Totals::over(totals.frames, totals.bytes, duration as u64),
        duplicated_frames: (totals.signed > 0).then_some(totals.duplicates),
        reordered_frames: (totals.signed > 0).then_some(totals.reordered),
        dropped_frames: (totals.meter_dropped > 0).then_some(totals.meter_dropped),
        trailed_frames: (totals.trailed > 0).then_some(totals.trailed),
        ..Rx::default()
    }
}

/// What both kinds of run say of a measurement.
pub fn fill_measured(report: &mut Report, measured: &meter::Measurement) {
    let totals = &measured.totals;
    report.result.rx = Some(received(totals));
    report.result.latency_ns = Distribution::whole(&totals.latency);
    report.result.delay_variation = report.result.latency_ns.as_ref().map(|latency| DelayVariation {
        jitter_ns: measured.streams.iter().filter_map(|stream| stream.jitter_ns).max_by(f64::total_cmp),
        pdv_ns: latency.p999 - latency.min,
        ipdv_ns: Distribution::whole(&totals.variation),
    });
    report.result.arrival_gap_ns = Distribution::whole(&totals.gaps);
    report.result.frame_sizes = meter::SIZE_CLASSES
        .iter()
        .zip(totals.sizes)
        .filter(|(_, count)| *count > 0)
        .map(|(&(from, to), count)| Bucket { from: from.into(), to: to.into(), count })
        .collect();
    if measured.tags_unseen
        && let Some(rx) = &report.result.rx
        && let Some(said) = tags(report.result.tx.as_ref().map(|tx| &tx.totals), &rx.totals)
    {
        report.warnings.add(Code::TagsTakenOut, said);
    }
    if measured.old_stamps {
        let said = "frames carry time stamps of before this run, such as those of a file that was signed earlier: they tell no latency, and \
                    none is given";
        report.warnings.add(Code::LatencyUnknown, (said, "have frames signed as they leave (`.sign`)"));
    }
    if totals.negative_latencies > 0 {
        report.warnings.add(Code::LatencyUnknown, format!(
            "{} carry a time stamp of the future: the sender's clock is not this host's, and no latency can be given",
            units::counted(totals.negative_latencies, "frame")
        ));
    }
    warn_of_streams(report, measured);
}

/// What is not known of streams, or of frames that belong to one.
fn warn_of_streams(report: &mut Report, measured: &meter::Measurement) {
    let totals = &measured.totals;
    if totals.unplaced > 0 {
        report.warnings.add(
            Code::StreamsBeyond,
            (
                format!(
                    "{} belong to streams beyond the number that is told apart",
                    units::counted(totals.unplaced, "frame")
                ),
                "raise `.streams`",
            ),
        );
    }
    if totals.contended > 0 {
        let frames = units::counted(totals.contended, "frame");
        report.warnings.add(
            Code::StreamsContended,
            (
                format!("{frames} are in no stream, because several CPUs had frames of the same one at once"),
                "send fewer streams: below some thousands each CPU has records of its own",
            ),
        );
    }
    if totals.astray > 0 {
        report.warnings.add(
            Code::StreamsAstray,
            format!(
                "{} are in no stream, because their number is so far ahead that it must be damaged",
                units::counted(totals.astray, "frame")
            ),
        );
    }
    let renewed = measured.streams.iter().filter(|stream| stream.renewed > 0).count();
    if renewed > 0 {
        report.warnings.add(
            Code::StreamsRenewed,
            format!(
                "a sender began anew in {}: loss, copies and order there are not known",
                units::counted(renewed as u64, "stream")
            ),
        );
    }
    if totals.meter_dropped > 0 {
        report.warnings.add(
            Code::MeterMissed,
            (
                format!(
                    "the meter itself missed {}: the packet socket is too slow for this rate",
                    units::counted(totals.meter_dropped, "frame")
                ),
                "lower the rate, or measure by XDP (`.how`)",
            ),
        );
    }
    if totals.late > 0 {
        report.warnings.add(Code::CopiesUnknown, format!(
            "{} came so late that duplicates among them cannot be told from reordered ones: up to as many more may be lost",
            units::counted(totals.late, "frame")
        ));
    }
    let twice: u64 = measured.streams.iter().map(|s| s.unsure.saturating_sub(s.late + s.renewed)).sum();
    if twice > 0 {
        report.warnings.add(Code::CopiesUnknown, format!(
            "streams came to both interfaces, where copies are not told from other frames: up to {} may be copies, and as \
             many more lost than is said",
            units::counted(twice, "frame")
        ));
    }
}

/// Whether what a NIC takes out of frames before they are counted matters here, for a person.
fn tags(sent: Option<&Totals>, received: &Totals) -> Option<Sentence> {
    const WHY: &str = "the receiving interface takes VLAN tags out before XDP sees a frame, so that sizes, bytes and bit \
                       rates miss 4 bytes of each that had one";
    const REMEDY: &str = "have them counted by `ethtool -K IFACE rxvlan off`, or by `.how` packet";
    let said = |what: &str| Sentence::new(format!("{what}: {WHY}"), Some(REMEDY));
    let Some(sent) = sent else {
        return (received.frames > 0)
            .then(|| said("if frames came with VLAN tags, that cannot be seen here"));
    };
    if sent.frames == received.frames {
        let missing = sent
            .bytes
            .checked_sub(received.bytes)
            .filter(|missing| *missing > 0 && missing.is_multiple_of(4))?;
        let frames = units::counted(missing / 4, "frame");
        return Some(said(&format!("{frames} arrived 4 bytes shorter than sent")));
    }
    // Of frames that were lost nobody knows how long they were: the mean tells, unless only some had a tag.
    let mean = |of: &Totals| of.bytes as f64 / of.frames.max(1) as f64;
    let shorter = received.frames > 0 && mean(sent) - mean(received) >= 1.0;
    shorter.then(|| said("frames arrived shorter than sent, at the mean"))
}

/// A stream of which this many frames were lost.
pub fn stream(stats: &StreamStats, lost: u64, checked: bool) -> Stream {
    let mean_gap = |ns: u64| ns.checked_div(stats.frames.saturating_sub(1));
    Stream {
        stream: stats.stream,
        rx_frames: stats.frames,
        rx_bytes: stats.bytes,
        lost_frames: lost,
        duplicated_frames: stats.duplicates,
        reordered_frames: stats.reordered,
        reorder_extent_max: (stats.reordered > 0).then_some(stats.extent_max),
        reorder_extent_mean: (stats.reordered > 0).then_some(stats.extent_mean),
        corrupted_frames: checked.then_some(stats.corrupted),
        latency_ns: stats.latencies.as_ref().and_then(Distribution::whole),
        latency_min_ns: stats.latency.map(|l| l.min_ns),
        latency_mean_ns: stats.latency.map(|l| l.mean_ns),
        latency_max_ns: stats.latency.map(|l| l.max_ns),
        jitter_ns: stats.jitter_ns,
        gap_mean_ns: stats.duration_ns.and_then(mean_gap),
        gap_max_ns: stats.gap_max_ns,
        ..Stream::default()
    }
}

/// Adds the part of a stream that another core sent. Between arrivals of different parts nobody looked.
pub fn add(sum: &mut Stream, part: Stream) {
    let weighted = |a: Option<f64>, m: u64, b: Option<f64>, n: u64| match (a, b) {
        (Some(a), Some(b)) if m + n > 0 => Some((a * m as f64 + b * n as f64) / (m + n) as f64),
        (a, b) => a.or(b),
    };
    sum.reorder_extent_mean = weighted(
        sum.reorder_extent_mean,
        sum.reordered_frames,
        part.reorder_extent_mean,
        part.reordered_frames,
    );
    sum.latency_mean_ns = weighted(sum.latency_mean_ns, sum.rx_frames, part.latency_mean_ns, part.rx_frames);
    sum.reorder_extent_max = sum.reorder_extent_max.max(part.reorder_extent_max);
    sum.corrupted_frames = sum.corrupted_frames.zip(part.corrupted_frames).map(|(a, b)| a + b);
    sum.latency_min_ns = match (sum.latency_min_ns, part.latency_min_ns) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    sum.latency_max_ns = sum.latency_max_ns.max(part.latency_max_ns);
    sum.jitter_ns = [sum.jitter_ns, part.jitter_ns].into_iter().flatten().max_by(f64::total_cmp);
    (sum.gap_mean_ns, sum.gap_max_ns) = (None, None);
    sum.rx_frames += part.rx_frames;
    sum.rx_bytes += part.rx_bytes;
    sum.lost_frames += part.lost_frames;
    sum.lost_at_end_frames += part.lost_at_end_frames;
    sum.duplicated_frames += part.duplicated_frames;
    sum.reordered_frames += part.reordered_frames;
}

/// Puts the streams into the report: of very many those that something happened to come first, and not all.
pub fn list_streams(report: &mut Report, mut streams: Vec<Stream>) {
    if let [only] = &mut streams[..]
        && only.rx_frames > 0
    {
        only.latency_ns = report.result.latency_ns.clone();
    }
    if streams.len() > MOST_STREAMS {
        let harmed = |s: &Stream| {
            s.lost_frames + s.duplicated_frames + s.reordered_frames + s.corrupted_frames.unwrap_or(0)
        };
        report.warnings.add(Code::StreamsNotListed, format!(
            "{} are too many to list: the report has {}, those with losses and the like first; its sums are over all",
            units::counted(streams.len() as u64, "stream"),
            units::count(MOST_STREAMS as u64)
        ));
        streams.sort_by_key(|stream| (harmed(stream) == 0, stream.stream));
        streams.truncate(MOST_STREAMS);
        streams.sort_by_key(|stream| stream.stream);
    }
    report.streams = streams;
}

/// The clock of the stamps, watched during a run.
pub struct WatchedClock {
    clock: clocks::Clock,
    steps: Option<StepWatch>,
}

impl WatchedClock {
    pub fn start(clock: clocks::Clock) -> WatchedClock {
        WatchedClock { clock, steps: (clock == clocks::Clock::Tai).then(StepWatch::start) }
    }

    /// Says how far the delays may be wrong.
    pub fn tell(self, report: &mut Report, measured: &meter::Measurement) {
        let timed = report.result.latency_ns.is_some() || report.result.delay_variation.is_some();
        if !timed && measured.stamps.is_none() {
            return;
        }
        let hardware = measured.stamps.as_ref().map(|stamps| hardware(report, stamps, &measured.totals));
        let stamped = hardware.as_ref().is_some_and(|hardware| hardware.frames > 0);
        let arrivals = Some(if stamped { "hardware" } else { "software" }.to_owned());
        if self.clock == clocks::Clock::Monotonic {
            let name = "monotonic".to_owned();
            let clock = LatencyClock { name, arrivals, hardware, ..LatencyClock::default() };
            report.result.latency_clock = Some(clock);
            return;
        }
        let state = ClockState::read();
        let clock = LatencyClock {
            name: "tai".to_owned(),
            arrivals,
            max_error_ns: state.map(|state| state.max_error_ns),
            estimated_error_ns: state.map(|state| state.estimated_error_ns),
            synchronised: state.map(|state| state.synchronised),
            stepped_ns: self.steps.and_then(|steps| steps.stepped_ns()),
            hardware,
        };
        if let Some(state) = state.filter(|state| !state.synchronised) {
            let said = format!(
                "no daemon keeps this host's clock (adjtimex says that it may be off by {}): delays between hosts are \
                 right only as far as both clocks are",
                units::time(state.max_error_ns)
            );
            report.warnings.add(Code::ClockUnkept, (said, "start PTP or NTP on both hosts"));
        }
        if state.is_some_and(|state| state.tai_offset_s == 0) {
            report.warnings.add(
                Code::ClockUnkept,
                (
                    "nobody has told this host's kernel what TAI is ahead of UTC by, so that its CLOCK_TAI shows UTC, and \
                     delays are off by some 37 s unless the other host's does, too",
                    "let what keeps the clock tell the kernel the offset (chrony: `leapsectz right/UTC`)",
                ),
            );
        }
        if let Some(stepped) = clock.stepped_ns {
            report.warnings.add(
                Code::ClockSet,
                format!(
                    "the clock was set by {} during the run: delays before and after do not compare",
                    units::signed_time(stepped)
                ),
            );
        }
        report.result.latency_clock = Some(clock);
    }
}

/// What the hardware's time stamps are worth; what is wrong with them is warned of.
fn hardware(report: &mut Report, stamps: &meter::Stamps, totals: &Snapshot) -> HardwareStamps {
    let software_frames = totals.frames.saturating_sub(stamps.frames);
    if software_frames > 0 {
        report.warnings.add(Code::SoftwareStamps, format!(
            "{} came without a time stamp of the hardware, and were timed by software, some microseconds later",
            units::counted(software_frames, "frame")
        ));
    }
    // What nothing was timed by is not spoken of.
    if let Some(set) = stamps.set_ns.filter(|_| stamps.frames > 0) {
        report.warnings.add(Code::ClockSet, format!(
            "the clock of the hardware's time stamps was set by {} during the run: times of arrival are wrong for up \
             to 50 ms after that, and gaps across it",
            units::signed_time(set)
        ));
    }
    if let Some(why) = stamps.lost.as_ref().filter(|_| stamps.frames > 0) {
        report.warnings.add(Code::ClockUnread, format!(
            "the clock of the hardware's time stamps could not be read at times ({why}): its error is not known then"
        ));
    }
    HardwareStamps {
        frames: stamps.frames,
        software_frames,
        max_error_ns: stamps.error_ns,
        set_ns: stamps.set_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_was_taken_out_is_said_where_it_matters() {
        let totals = |frames, bytes| Totals::over(frames, bytes, 1_000_000);
        let said = |sent: Option<(u64, u64)>, received: (u64, u64)| {
            tags(sent.map(|(frames, bytes)| totals(frames, bytes)).as_ref(), &totals(received.0, received.1))
                .map(|said| said.to_string())
        };
        assert_eq!(said(Some((300, 37_200)), (300, 37_200)), None);
        let all = said(Some((300, 37_200)), (300, 36_000)).expect("all had one");
        assert!(all.starts_with("300 frames arrived 4 bytes shorter") && all.contains("rxvlan off"), "{all}");
        let some = said(Some((300, 37_200)), (300, 37_160)).expect("ten had one");
        assert!(some.starts_with("10 frames"), "{some}");
        // Lost frames, and a device that adds a trailer.
        assert!(said(Some((300, 37_200)), (299, 35_880)).is_some_and(|said| said.contains("at the mean")));
        assert_eq!(said(Some((300, 37_200)), (299, 37_076)), None);
        assert_eq!(said(Some((300, 37_200)), (300, 40_000)), None);
        assert_eq!((said(None, (0, 0)), said(Some((3, 300)), (0, 0))), (None, None));
        assert!(said(None, (5, 600)).is_some_and(|said| said.contains("cannot be seen")));
    }

    #[test]
    fn parts_of_a_stream_are_added_by_their_weight() {
        let mut sum = Stream {
            rx_frames: 30,
            reordered_frames: 1,
            reorder_extent_max: Some(5),
            reorder_extent_mean: Some(5.0),
            latency_mean_ns: Some(100.0),
            latency_min_ns: Some(10),
            jitter_ns: Some(3.0),
            ..Stream::default()
        };
        let part = Stream {
            rx_frames: 10,
            reordered_frames: 3,
            reorder_extent_max: Some(2),
            reorder_extent_mean: Some(1.0),
            latency_mean_ns: Some(200.0),
            latency_min_ns: Some(20),
            jitter_ns: Some(4.0),
            ..Stream::default()
        };
        add(&mut sum, part);
        assert_eq!(
            (sum.rx_frames, sum.reorder_extent_max, sum.reorder_extent_mean),
            (40, Some(5), Some(2.0))
        );
        assert_eq!(
            (sum.latency_mean_ns, sum.latency_min_ns, sum.jitter_ns),
            (Some(125.0), Some(10), Some(4.0))
        );
    }
}
