//! What searches and single trials found, as figures. How they read on the terminal and on the page is `render::search_text`'s
//! and `render::html::search`'s.

use crate::data::compare::noise::Sample;
use crate::data::figure::{Figure, Measured, Unit, Within, figures};
use crate::data::model::Report;
use crate::data::search::{Part, SearchAxis, SizeResult, Spread, Trial, TrialLatency};
use crate::data::units;

figures! {
    /// The highest load that passed within the goal (RFC 2544, section 26.1).
    THROUGHPUT = "throughput", "throughput", FramesPerSecond, Higher;
    /// The most that passed, of what was varied.
    FOUND = "found", "found" as "greatest value that passed", Gauge, Higher;
    /// The shortest frames that passed.
    FRAME_SIZE = "found_frame_size", "frame size" as "smallest frame size that passed", Size, Lower;
    /// The median over trials of the median delay (RFC 8219, section 7.2).
    TYPICAL = "typical_latency", "typical latency", Ns, Lower;
    /// The median over trials of the delay's 99.9th percentile (RFC 8219, section 7.2).
    WORST_CASE = "worst_case_latency", "worst-case latency", Ns, Lower;
    /// The median over trials of the delay's 99.9th percentile over its minimum (RFC 8219, section 7.3.1).
    VARIATION = "delay_variation", "delay variation", Ns, Lower;
    /// Frames lost at a load, of those sent.
    LOST = "trial_loss_ratio", "lost" as "share of frames lost at a load", Ratio, Lower;
    /// Frames that a trial's sender did not send in time, of those intended.
    SENDER_SHORT = "trial_shortfall_ratio", "sender short" as "share of frames that the sender left out", Ratio, Lower;
    /// The longest burst that was forwarded whole, in frames (RFC 2544, section 26.4; RFC 9004).
    BURST = "longest_burst", "longest burst", Gauge, Higher;
    /// The time that the device's buffer holds at its throughput (RFC 9004, section 6.2).
    BUFFER = "buffer", "buffer" as "time that the buffer holds", Seconds, Higher;
    /// From the end of an overload to the last loss (RFC 2544, section 26.5).
    RECOVERY = "recovery", "recovery" as "time to recover from overload", Ns, Lower;
    /// How long nothing was forwarded at a reset (RFC 6201).
    OUTAGE = "outage", "outage" as "time without a frame at a reset", Ns, Lower;
    /// The delay that half of the measured frames of a trial had at most.
    P50 = "trial_latency_p50", "latency, p50" as "latency in a trial, p50", Ns, Lower;
    /// The same of 99 %.
    P99 = "trial_latency_p99", "latency, p99" as "latency in a trial, p99", Ns, Lower;
    /// The same of 99.9 %.
    P999 = "trial_latency_p999", "latency, p99.9" as "latency in a trial, p99.9", Ns, Lower;
}

/// Which searches have a figure, of those that not all have: `None` of the others.
pub(crate) fn sought(key: &str) -> Option<&'static [&'static str]> {
    let of = |figures: &[&Figure]| figures.iter().any(|figure| figure.key == key);
    let known: [(&[&Figure], &'static [&'static str]); 6] = [
        (&[&LOST], &["loss"]),
        (&[&TYPICAL, &WORST_CASE, &VARIATION], &["latency"]),
        (&[&BURST, &BUFFER], &["burst"]),
        (&[&RECOVERY], &["recovery"]),
        (&[&OUTAGE], &["reset"]),
        // A trial alone has them.
        (&[&SENDER_SHORT, &P50, &P99, &P999], &[]),
    ];
    known.into_iter().find(|(figures, _)| of(figures)).map(|(_, goals)| goals)
}

/// How the names of a figure begin that has a value for each of these frame sizes: `None` of one whose names are others.
pub(crate) fn begins(key: &str, sizes: &[String]) -> Option<Vec<String>> {
    let of_sizes = [
        &THROUGHPUT,
        &TYPICAL,
        &WORST_CASE,
        &VARIATION,
        &LOST,
        &SENDER_SHORT,
        &BURST,
        &BUFFER,
        &RECOVERY,
        &OUTAGE,
        &P50,
        &P99,
        &P999,
    ];
    of_sizes.iter().any(|figure| figure.key == key).then(|| sizes.iter().map(|size| in_bytes(size)).collect())
}

fn in_bytes(size: &str) -> String {
    match size.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("{size} bytes"),
        false => size.to_owned(),
    }
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let result = &report.result;
    let mut figures = Vec::new();
    if let Some(search) = &result.search {
        for size in &search.sizes {
            searched(size, &result.trials, &search.axis, &mut figures);
        }
    } else if report.command == "trial" && result.tx.is_none() {
        result.trials.iter().for_each(|t| trial(t, &mut figures));
    }
    figures
}

/// What a trial that was the whole run has by the names that it has among others. They are no figures of the run, whose own say the
/// same, but may be asked for.
pub(crate) fn of_one_trial(report: &Report) -> Vec<Measured> {
    let mut figures = Vec::new();
    if report.command == "trial" && report.result.tx.is_some() {
        report.result.trials.iter().for_each(|t| trial(t, &mut figures));
    }
    figures
}

fn searched(size: &SizeResult, trials: &[Trial], axis: &SearchAxis, figures: &mut Vec<Measured>) {
    let bytes = in_bytes(&size.frame_size);
    let mut add = |measured: Measured, name: String, within| {
        figures.push(measured.named(format!("{bytes}: {name}")).with(within));
    };
    for found in size.throughput.iter().flatten() {
        let rate = found.frames_per_second;
        let bounds = Within::Bounds(rate, found.failed_frames_per_second);
        add(THROUGHPUT.is(rate), format!("throughput with {}", found.goal), bounds);
    }
    if let Some(found) = size.found {
        let figure = if *axis == SearchAxis::FrameSize { &FRAME_SIZE } else { &FOUND };
        let unit = if *axis == SearchAxis::FlowsPerSecond { Unit::FlowsPerSecond } else { figure.unit };
        add(figure.is(found).in_unit(unit), axis.in_words(), Within::Nothing);
    }
    for at in &size.latency {
        let of_load = |t: &&Trial| {
            t.part == Part::Latency && t.frame_size == size.frame_size && t.load == at.frames_per_second
        };
        let each = |get: fn(&TrialLatency) -> f64| {
            let values: Vec<f64> =
                trials.iter().filter(of_load).filter_map(|t| t.latency_ns.as_ref().map(get)).collect();
            Within::Trials(Sample::Values(values))
        };
        // Throughputs that were searched differ a little from each other: the place says which load it is, not its rate.
        let load = units::frame_rate(at.frames_per_second);
        let load =
            if size.throughput.is_empty() { format!("at {load}") } else { "at the throughput".to_owned() };
        add(TYPICAL.count(at.typical_ns), format!("typical latency {load}"), each(|d| d.p50 as f64));
        let worst = each(|d| d.p999 as f64);
        add(WORST_CASE.count(at.worst_case_ns), format!("worst-case latency {load}"), worst);
        let spread = each(|d| d.p999.saturating_sub(d.min) as f64);
        add(VARIATION.count(at.variation_ns), format!("delay variation {load}"), spread);
    }
    for at in size.loss_curve.iter().filter(|at| at.tester_ratio == 0.0) {
        let load = units::frame_rate(at.frames_per_second);
        add(LOST.is(at.loss_ratio), format!("lost at {load}"), Within::Nothing);
    }
    let summary =
        |s: &Spread| Within::Trials(Sample::Summary { count: s.count, mean: s.mean, stddev: s.stddev });
    if let Some(burst) = size.burst.filter(|burst| !burst.at_limit) {
        add(BURST.is(burst.frames.mean), BURST.name.to_owned(), summary(&burst.frames));
        if let Some(s) = burst.corrected_buffer_s {
            add(BUFFER.is(s), BUFFER.name.to_owned(), Within::Nothing);
        }
    }
    for (figure, spread) in [(&RECOVERY, &size.recovery_ns), (&OUTAGE, &size.outage_ns)] {
        if let Some(s) = spread {
            add(figure.is(s.mean), figure.name.to_owned(), summary(s));
        }
    }
}

fn trial(t: &Trial, figures: &mut Vec<Measured>) {
    let mut add = |figure: &'static Figure, value: f64| {
        figures.push(figure.is(value).named(format!("{} bytes: {}", t.frame_size, figure.name)));
    };
    add(&LOST, t.lost_ratio());
    add(&SENDER_SHORT, t.shortfall_ratio);
    if let Some(d) = &t.latency_ns {
        add(&P50, d.p50 as f64);
        add(&P99, d.p99 as f64);
        add(&P999, d.p999 as f64);
    }
}
