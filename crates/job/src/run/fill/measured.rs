//! What a meter measured, as the result has it: the same of a run and of `netdyno measure`.

use clocks::ClockState;
use meter::clock::StepWatch;
use meter::{Snapshot, StreamStats};
use report::{
    Bucket, Code, DelayVariation, Distribution, HardwareStamps, LatencyClock, Report, Rx, Stream, Totals,
    units,
};

/// Streams that a report lists at most; sums are over all.
pub const MOST_STREAMS: usize = 65_536;

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

/// Takes out what is not measurable of frames that share a time stamp: how the delays of one frame and the next differ. And what is
/// not known of the times between arrivals, if those were `asked` for; `dealt` is as in [`judge_inter_arrival`].
pub fn withhold(report: &mut Report, asked: bool, dealt: bool) {
    judge_inter_arrival(report, asked, dealt);
    if report.result.tx.as_ref().is_none_or(|tx| tx.stamped_together.is_none()) {
        return;
    }
    if let Some(variation) = &mut report.result.delay_variation {
        (variation.ipdv_ns, variation.jitter_ns) = (None, None);
    }
    report.streams.iter_mut().for_each(|stream| stream.jitter_ns = None);
}

/// What both kinds of run say of a measurement.
pub fn fill_measured(report: &mut Report, measured: &meter::Measurement) {
    let totals = &measured.totals;
    let mut rx = received(totals);
    // Frames of a sender that restarted its numbers look like copies of those that came before, and are none.
    if measured.streams.iter().any(|stream| stream.renewed > 0) {
        (rx.duplicated_frames, rx.reordered_frames) = (None, None);
    }
    report.result.rx = Some(rx);
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
}

/// A stream of which this many frames were lost.
pub fn stream(stats: &StreamStats, lost: u64, checked: bool) -> Stream {
    let mean_gap = |ns: u64| ns.checked_div(stats.frames.saturating_sub(1));
    Stream {
        stream: stats.stream,
        rx_frames: stats.frames,
        rx_bytes: stats.bytes,
        restarted: stats.renewed > 0,
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
        inter_arrival_ns: stats.gaps.as_ref().and_then(Distribution::whole),
        ..Stream::default()
    }
}

/// Says why nothing is known of the times between the arrivals of streams, where that was asked for. `dealt`: each stream was sent
/// by several cores, under numbers of their own.
pub fn judge_inter_arrival(report: &mut Report, asked: bool, dealt: bool) {
    if !asked {
        return;
    }
    let clock = report.result.latency_clock.as_ref().and_then(|clock| clock.hardware.as_ref());
    if clock.is_some_and(|hardware| hardware.set_ns.is_some()) {
        report.streams.iter_mut().for_each(|stream| stream.inter_arrival_ns = None);
        report.warnings.add(
            Code::ClockSet,
            "times between arrivals are left out: the clock of the hardware's time stamps was set during the run",
        );
    } else if dealt && !report.streams.is_empty() {
        report.streams.iter_mut().for_each(|stream| stream.inter_arrival_ns = None);
        report.warnings.add(
            Code::NoInterArrival,
            (
                "times between arrivals are left out: several cores sent each stream, each a part that is numbered by itself, and nobody \
                 looked how the parts came after each other",
                "send from one core: `.cores: 1`",
            ),
        );
    } else if report.result.rx.as_ref().is_some_and(|rx| rx.totals.frames > 1) && report.streams.is_empty() {
        report.warnings.add(
            Code::NoInterArrival,
            (
                "times between arrivals are not known: no frame that arrived carries a signature, by which streams are told apart",
                "let frames be signed (`.sign`), and large enough for it",
            ),
        );
    } else {
        let lacks = |stream: &&Stream| stream.rx_frames > 1 && stream.inter_arrival_ns.is_none();
        let lacking = report.streams.iter().filter(lacks).count() as u64;
        if lacking > 0 {
            let said = format!(
                "times between arrivals are not known of {}: it came to several interfaces, or there is no room for histograms of more",
                report::units::counted(lacking, "stream")
            );
            report.warnings.add(
                Code::NoInterArrival,
                (said, "measure a stream at one interface, and give room for as many streams (`.stream_histograms`)"),
            );
        }
    }
}

/// Puts the streams into the report: of very many those that something happened to come first, and not all. Returns how many there
/// are then.
pub fn list_streams(report: &mut Report, mut streams: Vec<Stream>) -> Option<u64> {
    if let [only] = &mut streams[..]
        && only.rx_frames > 0
    {
        only.latency_ns = report.result.latency_ns.clone();
    }
    let unlisted = (streams.len() > MOST_STREAMS).then_some(streams.len() as u64);
    if unlisted.is_some() {
        let harmed = |s: &Stream| {
            s.lost_frames + s.duplicated_frames + s.reordered_frames + s.corrupted_frames.unwrap_or(0)
        };
        streams.sort_by_key(|stream| (harmed(stream) == 0, stream.stream));
        streams.truncate(MOST_STREAMS);
        streams.sort_by_key(|stream| stream.stream);
    }
    report.streams = streams;
    unlisted
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
            comparison_error_ns: None,
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
                    "this host's kernel does not know the offset of TAI from UTC, so that its CLOCK_TAI shows UTC, and \
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
