//! The plots of searches between two endpoints: results by socket buffer, latency by rate.

use super::charts::{Chart, FRAME, axis_time};
use super::plot::{Frame, Scale, Svg, round_up, tick_number};
use crate::data::model::{
    EndpointCounts, EndpointSearch, EndpointTrial, EndpointVerdict, Report, SocketBufferFound,
    TransactionsFound,
};
use crate::data::units;
use crate::render::sections::endpoint_search::percentile;

/// All of them, as HTML.
pub(super) fn plots(report: &Report) -> String {
    let Some(search) = &report.result.endpoint_search else { return String::new() };
    let buffers = search.socket_buffer.as_ref().and_then(|found| buffers(search, found));
    let rates = search.transactions.as_ref().and_then(|found| rates(search, found));
    let charts: String = buffers.iter().chain(&rates).map(Chart::html).collect();
    if charts.is_empty() { charts } else { format!("<h2>Plots</h2>\n{charts}") }
}

/// The figures everybody asks for: name, value, what stands below it.
pub(super) fn tiles(report: &Report) -> Vec<(&'static str, String, String)> {
    let Some(search) = &report.result.endpoint_search else { return Vec::new() };
    let mut tiles = Vec::new();
    if let Some(found) = &search.socket_buffer {
        let value = found.found_bytes.map_or("none".to_owned(), units::buffer);
        let enough = format!("smallest that reaches {} of the best", units::percent(found.enough_ratio));
        tiles.push(("Socket buffer", value, enough));
        let with = found.best_buffer_bytes.map_or("the kernel's own tuning".to_owned(), units::buffer);
        tiles.push(("Best", search.show(found.best_per_second), format!("with {with}")));
        if let Some(tuned) = found.tuned() {
            let share = format!("{} of the best", units::percent(tuned.best_ratio));
            tiles.push(("The kernel's own tuning", search.show(tuned.per_second), share));
        }
        if let Some((product, rtt)) = found.bandwidth_delay_product_bytes.zip(found.min_rtt_ns) {
            let rtt = format!("least rtt {}", units::time(rtt));
            tiles.push(("Bandwidth-delay product", units::bytes(product), rtt));
        }
    }
    if let Some(found) = &search.transactions {
        let value = found.per_second.map_or("none".to_owned(), |rate| search.show(rate));
        let bound = format!("{} below {}", percentile(found.percentile), units::time(found.below_ns));
        tiles.push(("In time", value, bound));
        if let Some(ns) = found.at_percentile_ns {
            let trials = format!("worst of {}", units::counted(found.passed_trials.into(), "trial"));
            tiles.push(("Latency there", units::time(ns), trials));
        }
        if let Some(rate) = found.closed_loop_per_second {
            let flight = format!("{} in flight", found.closed_loop_in_flight);
            tiles.push(("Closed loop", search.show(rate), flight));
        }
    }
    let lasted = format!("each {}", units::time(search.trial_ns));
    tiles.push(("Trials", units::count(search.trials.len() as u64), lasted));
    tiles
}

/// The results by size, each with its interval, beside what the kernel's own tuning reaches.
fn buffers(search: &EndpointSearch, found: &SocketBufferFound) -> Option<Chart> {
    let points: Vec<_> =
        found.points.iter().filter_map(|point| Some((point.buffer_bytes? as f64, point))).collect();
    let (least, most) = (points.first()?.0, points.last()?.0);
    let tops = found.points.iter().map(|point| point.interval().map_or(point.per_second, |[_, high]| high));
    // A wide interval of few repetitions must not press the points together.
    let hi = tops.fold(0.0, f64::max).min(found.best_per_second * 1.2);
    let (factor, prefix) = units::prefix(hi);
    let unit = if search.counts == EndpointCounts::Bits { "bit/s" } else { "transactions/s" };
    let mut svg = Svg::new(340.0, Frame { left: 74.0, ..FRAME });
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let (from, to) = if least < most { (least * 0.8, most * 1.25) } else { (least * 0.5, most * 2.0) };
    let (x, y) = (Scale::log(from, to, x0, x1), Scale::linear(0.0, round_up(hi / factor * 1.04), y0, y1));
    let ticks = y.ticks(5);
    svg.y_axis(
        &y,
        &ticks.iter().map(|v| (*v, tick_number(*v, &ticks))).collect::<Vec<_>>(),
        &format!("{prefix}{unit}"),
    );
    let mut right = f64::NEG_INFINITY;
    let labels: Vec<_> = points
        .iter()
        .map(|(bytes, _)| {
            let (name, at) = (units::buffer(*bytes as u64), x.at(*bytes));
            let half = 3.6 * name.chars().count() as f64;
            let fits = at - half > right;
            if fits {
                right = at + half + 4.0;
            }
            (*bytes, if fits { name } else { String::new() })
        })
        .collect();
    svg.x_axis(&x, &labels, "socket buffers as asked for, at both ends", false);
    let at = |value: f64| y.at(value / factor);
    let mut legend = Vec::new();
    let enough = at(found.best_per_second * found.enough_ratio);
    svg.line("line intended", x0, enough, x1, enough);
    legend.push(("intended", format!("{} of the best", units::percent(found.enough_ratio))));
    if let Some(tuned) = found.tuned() {
        let line = at(tuned.per_second);
        svg.line("line s1", x0, line, x1, line);
        legend.push(("found f1", format!("the kernel's own tuning: {}", search.show(tuned.per_second))));
    }
    let product = found.bandwidth_delay_product_bytes.map(|bytes| bytes as f64);
    if let Some(product) = product.filter(|bytes| (from..to).contains(bytes)) {
        let px = x.at(product);
        svg.line("line bound s2", px, y0, px, y1);
        legend.push(("found f2", format!("bandwidth-delay product: {}", units::bytes(product as u64))));
    }
    svg.polyline("line s0", points.iter().map(|(bytes, point)| (x.at(*bytes), at(point.per_second))));
    let mut is_cut = false;
    for (bytes, point) in &points {
        let px = x.at(*bytes);
        if let Some([low, high]) = point.interval() {
            svg.line("line s0", px, at(low), px, at(high));
            for end in [low, high] {
                if y.holds(end / factor) {
                    svg.line("line s0", px - 4.0, at(end), px + 4.0, at(end));
                } else if end > 0.0 {
                    is_cut = true;
                    svg.above("s0", px, at(end));
                }
            }
        }
        let granted = [("send", point.send_buffer_bytes), ("receive", point.receive_buffer_bytes)];
        let granted: String = granted
            .into_iter()
            .filter_map(|(which, bytes)| Some(format!(" · {which} buffer {}", units::buffer(bytes?))))
            .collect();
        let tip = format!(
            "{} · {} · {} of the best{granted}",
            units::buffer(*bytes as u64),
            search.show(point.per_second),
            units::percent(point.best_ratio)
        );
        let is_found = found.found_bytes == point.buffer_bytes;
        svg.point("s0", px, at(point.per_second), if is_found { 6.4 } else { 4.2 }, &tip);
        if is_found {
            let py = at(point.per_second);
            svg.text("value mid", px, if py > y0 - 40.0 { py - 14.0 } else { py + 22.0 }, "enough");
        }
    }
    let level = units::percent(found.level);
    legend.push(("s0", format!("mean of the repetitions, with its interval at {level} confidence")));
    let mut note = "The kernel doubles what it is asked for, and counts its own use in; what it granted stands in the table.".to_owned();
    if is_cut {
        note += " An arrow at the upper edge: the interval goes on beyond the axis.";
    }
    let svg = svg.finish("Result by socket buffer; the table below has the values");
    Some(Chart { heading: "Result by socket buffer".to_owned(), svg, legend, note })
}

/// Latency by the rate that was offered, on a scale of decades.
fn rates(search: &EndpointSearch, found: &TransactionsFound) -> Option<Chart> {
    let mut trials: Vec<(f64, &EndpointTrial)> =
        search.trials.iter().filter_map(|trial| Some((trial.intended_per_second?, trial))).collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = trials.last()?.0;
    let values: Vec<f64> = trials
        .iter()
        .flat_map(|(_, t)| {
            let of = t.latency_ns.as_ref();
            [of.map(|l| l.p50), of.map(|l| l.max), t.at_percentile_ns]
        })
        .flatten()
        .chain([found.below_ns])
        .filter(|ns| *ns > 0)
        .map(|ns| ns as f64)
        .collect();
    let hi = values.iter().copied().reduce(f64::max)?;
    let lo = values.iter().copied().fold(hi, f64::min);
    let (unit_ns, unit) = axis_time(found.below_ns as f64);
    let (rate_factor, prefix) = units::prefix(most);
    let mut svg = Svg::new(360.0, Frame { left: 74.0, ..FRAME });
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let least = trials.first()?.0;
    // Halving tries rates far apart first and near each other at last.
    let x = match most / least.max(1.0) > 4.0 {
        true => Scale::log(least / rate_factor * 0.85, most / rate_factor * 1.15, x0, x1),
        false => Scale::linear(0.0, round_up(most / rate_factor * 1.03), x0, x1),
    };
    let y = Scale::log(lo / unit_ns * 0.8, hi / unit_ns * 1.3, y0, y1);
    let labels = |scale: &Scale, ticks: Vec<f64>| -> Vec<(f64, String)> {
        let name = |v: f64| if scale.is_log() { format!("{v}") } else { tick_number(v, &ticks) };
        ticks.iter().map(|v| (*v, name(*v))).collect()
    };
    let rounded = |v: f64| (v * 1e6).round() / 1e6;
    let y_ticks = y.ticks(6).into_iter().map(rounded).collect();
    svg.y_axis(&y, &labels(&y, y_ticks), unit);
    let x_ticks = x.ticks(8).into_iter().map(rounded).collect();
    svg.x_axis(&x, &labels(&x, x_ticks), &format!("{prefix}transactions/s that were due"), false);
    let px = |rate: f64| x.at(rate / rate_factor);
    let py = |ns: u64| y.at(ns as f64 / unit_ns);
    let bound = py(found.below_ns);
    svg.line("line intended", x0, bound, x1, bound);
    let name = percentile(found.percentile);
    let mut legend = vec![("intended", format!("the bound of {name}: {}", units::time(found.below_ns)))];
    if let Some(rate) = found.per_second {
        svg.line("line bound s1", px(rate), y0, px(rate), y1);
        legend.push(("found f1", format!("found: {}", search.show(rate))));
    }
    // Of several trials at a rate the worst counts.
    type Value = fn(&EndpointTrial) -> Option<u64>;
    let mut rates: Vec<f64> = trials.iter().map(|(rate, _)| *rate).collect();
    rates.dedup();
    let lines: [(&'static str, &'static str, &str, Value); 2] = [
        ("line s0", "found f0", "median", |t| Some(t.latency_ns.as_ref()?.p50)),
        ("line s3", "found f3", "longest", |t| Some(t.latency_ns.as_ref()?.max)),
    ];
    for (class, sign, name, value) in lines {
        let worst =
            |rate: f64| trials.iter().filter(|(of, _)| *of == rate).filter_map(|(_, t)| value(t)).max();
        svg.polyline(class, rates.iter().filter_map(|rate| Some((px(*rate), py(worst(*rate)?)))));
        legend.push((sign, name.to_owned()));
    }
    let mut seen = [false; 2];
    for (rate, t) in &trials {
        let Some(ns) = t.at_percentile_ns else { continue };
        let passed = t.verdict == EndpointVerdict::Passed;
        if let Some(seen) = seen.get_mut(usize::from(!passed)) {
            *seen = true;
        }
        let tip = format!(
            "trial {} ({}) · {} due/s, {} reached · {name} {} · {}",
            t.number,
            t.stage,
            units::count(rate.round() as u64),
            units::count(t.per_second.round() as u64),
            units::time(ns),
            t.verdict
        );
        svg.point(if passed { "s2" } else { "s4" }, px(*rate), py(ns), 5.0, &tip);
    }
    let names = [("s2 alone", format!("{name}: passed")), ("s4 alone", format!("{name}: did not pass"))];
    legend.extend(names.into_iter().zip(seen).filter(|(_, seen)| *seen).map(|(entry, _)| entry));
    let note = "Each mark is a trial. Latency counts from when a request was due, whether or not it could be sent then. The lines are of the worst trial at each rate.";
    let svg = svg.finish("Latency by rate; the table of trials has the values");
    Some(Chart { heading: "Latency by rate of transactions".to_owned(), svg, legend, note: note.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::model::BufferPoint;
    use crate::data::search::TrialLatency;

    fn page(search: EndpointSearch) -> String {
        let mut report = Report::new("search");
        report.result.endpoint_search = Some(search);
        plots(&report)
    }

    #[test]
    fn every_size_stands_with_its_interval_beside_the_kernels_tuning() {
        let point = |bytes: Option<u64>, per_second: f64| BufferPoint {
            buffer_bytes: bytes,
            per_second,
            width_ratio: Some(0.1),
            ..BufferPoint::default()
        };
        let found = SocketBufferFound {
            enough_ratio: 0.95,
            best_per_second: 2e9,
            found_bytes: Some(65_536),
            bandwidth_delay_product_bytes: Some(50_000),
            points: vec![point(None, 1.9e9), point(Some(4096), 1e8), point(Some(65_536), 2e9)],
            ..SocketBufferFound::default()
        };
        let search =
            EndpointSearch { counts: EndpointCounts::Bits, socket_buffer: Some(found), ..Default::default() };
        let page = page(search);
        for says in ["Gbit/s", "4 KiB", "64 KiB", "enough", "own tuning: 1.90 Gbit/s", "product: 50.0 kB"] {
            assert!(page.contains(says), "{says}: {page}");
        }
    }

    #[test]
    fn latency_stands_by_the_rate_with_the_bound() {
        let trial = |rate: f64, ns: u64, verdict: &str| EndpointTrial {
            intended_per_second: Some(rate),
            latency_ns: Some(TrialLatency { p50: ns / 2, max: ns * 2, ..TrialLatency::default() }),
            at_percentile_ns: Some(ns),
            verdict: verdict.into(),
            ..EndpointTrial::default()
        };
        let found = TransactionsFound {
            percentile: 99.9,
            below_ns: 200_000,
            per_second: Some(1e4),
            ..Default::default()
        };
        let trials = vec![trial(2e4, 900_000, "latency"), trial(1e4, 90_000, "passed")];
        let page = page(EndpointSearch { transactions: Some(found), trials, ..Default::default() });
        for says in [
            "ktransactions/s",
            "p99.9: passed",
            "p99.9: did not pass",
            "bound of p99.9: 200 us",
            "median",
            "longest",
        ] {
            assert!(page.contains(says), "{says}: {page}");
        }
        assert_eq!(plots(&Report::new("search")), "");
    }
}
