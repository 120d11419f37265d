//! The standards' graphs: throughput by frame size with what the link carries (RFC 2544, 26.1), loss by load (26.3),
//! the way each search went, and bursts.

use super::super::charts::{Chart, FRAME};
use super::super::marks;
use super::super::plot::{Frame, Labels, Scale, Svg, rates_scale, round_up, tick_number};
use crate::data::search::{
    Bounds, LossAt, Part, SearchAxis, SearchResult, SizeResult, Throughput, Trial, TrialVerdict,
};
use crate::data::units;
use crate::render::search_tables::Lost;

/// Values that are written beside their points at most.
const MOST_LABELS: usize = 24;

/// Sizes whose search is drawn at most.
const MOST_PATHS: usize = 16;

/// Bytes on the wire beside a frame with its FCS: preamble and gap.
const BETWEEN_FRAMES: f64 = 20.0;

/// The goals of which any size has a throughput, or of which nothing passed, in their order.
fn goal_names<'a>(sizes: &[&'a SizeResult]) -> Vec<&'a str> {
    let entered: Vec<&str> =
        sizes.iter().flat_map(|size| size.by_goal().filter_map(|(goal, _)| goal)).collect();
    let asked = sizes.iter().flat_map(|size| size.goals.iter().map(|goal| goal.goal.as_str()));
    let asked = asked.filter(|goal| entered.contains(goal));
    let mut names = Vec::new();
    for goal in asked.chain(entered.iter().copied()) {
        if !names.contains(&goal) {
            names.push(goal);
        }
    }
    names
}

/// The name of the first goal, if it is known.
fn first_goal(size: &SizeResult) -> Option<&str> {
    let asked = size.goals.first().map(|goal| goal.goal.as_str());
    asked.or_else(|| size.throughput.first()?.as_ref().map(|found| found.goal.as_str()))
}

/// `NDR` of `NDR: loss 0 %, but in 50 % of the time`; else the goal.
pub(super) fn short_goal(goal: &str) -> &str {
    goal.split_once(": ").map_or(goal, |(name, _)| name)
}

/// Throughput by frame size, a series for each goal.
pub(super) fn throughput(search: &SearchResult) -> Option<Chart> {
    let sizes: Vec<&SizeResult> =
        search.sizes.iter().filter(|s| !s.throughput.is_empty() && s.mean_frame_bytes > 0.0).collect();
    let names = goal_names(&sizes);
    // Of one size a goal may have been left open, so that another stands in its place.
    let found = |s: &SizeResult, goal: usize| {
        let mut of = s.throughput.iter().flatten();
        of.find(|t| Some(&t.goal.as_str()) == names.get(goal)).map(|t| t.frames_per_second)
    };
    let goals = sizes.iter().map(|s| s.throughput.len()).max()?.max(names.len());
    let link = sizes
        .iter()
        .find_map(|s| Some(s.theoretical_frames_per_second? * (s.mean_frame_bytes + BETWEEN_FRAMES) * 8.0));
    let link = link.filter(|bits| bits.is_finite() && *bits > 0.0);
    let theory = |bytes: f64| link.map(|bits| bits / ((bytes + BETWEEN_FRAMES) * 8.0));
    let (least, most) = sizes.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), s| {
        (lo.min(s.mean_frame_bytes), hi.max(s.mean_frame_bytes))
    });
    let (from, to) = if least < most { (least * 0.88, most * 1.1) } else { (least * 0.5, most * 2.0) };
    let rates: Vec<f64> = sizes
        .iter()
        .flat_map(|s| (0..goals).filter_map(move |goal| found(s, goal)))
        .chain(sizes.iter().filter_map(|s| theory(s.mean_frame_bytes)))
        .chain(sizes.iter().filter_map(|s| s.bottleneck_frames_per_second))
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .collect();
    let hi = rates.iter().copied().reduce(f64::max)?;
    let lo = rates.iter().copied().fold(hi, f64::min);
    let mut svg = Svg::new(330.0, FRAME);
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let (x, y) = (Scale::log(from, to, x0, x1), rates_scale(lo, hi, y0, y1));
    let unit = rate_axis(&mut svg, &y, hi);
    svg.x_axis(&x, &size_ticks(&sizes, &x), "frame size in bytes, FCS counted", true);
    let mut legend = Vec::new();
    if let Some(bits) = link {
        let curve = (0..=80).map(|i| from * (to / from).powf(f64::from(i) / 80.0));
        let curve = curve.filter_map(|bytes| Some((bytes, theory(bytes)?))).filter(|(_, rate)| *rate <= y.hi);
        svg.polyline(
            "line intended",
            curve.map(|(bytes, rate)| (x.at(bytes), y.at(rate))).collect::<Vec<_>>(),
        );
        legend.push(("intended", format!("what the link carries ({})", units::bit_rate(bits))));
    }
    // Of a bottleneck it is known what comes through of each size.
    let bottleneck =
        |s: &SizeResult| s.bottleneck_frames_per_second.filter(|rate| rate.is_finite() && *rate > 0.0);
    let mut known: Vec<_> = sizes.iter().filter_map(|s| Some((s.mean_frame_bytes, bottleneck(s)?))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    if link.is_none() && !known.is_empty() {
        // A single size has a point for a line.
        let line = known.iter().map(|(bytes, rate)| (x.at(*bytes), y.at(*rate)));
        let ends = known.first().zip(known.last()).filter(|_| known.len() == 1);
        let ends = ends.map(|(one, _)| [(x0, y.at(one.1)), (x1, y.at(one.1))]);
        svg.polyline("line intended", ends.map_or_else(|| line.collect(), |ends| ends.to_vec()));
        legend.push(("intended", "what the lab's bottleneck lets through".to_owned()));
    }
    // Goals stand beside each other, because what they find may be the same.
    let aside = |goal: usize| (goal as f64 - (goals as f64 - 1.0) / 2.0) * 13.0;
    let mut labels = Labels::default();
    let mut named: Vec<(f64, f64, String)> = Vec::new();
    for goal in 0..goals {
        let class = marks::goal(goal);
        let name = names.get(goal).map(|name| (*name).to_owned());
        let mut points: Vec<_> =
            sizes.iter().filter_map(|s| Some((s.mean_frame_bytes, found(s, goal)?, *s))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        svg.polyline(
            &format!("line {class}"),
            points.iter().map(|(bytes, rate, _)| (x.at(*bytes) + aside(goal), y.at(*rate))),
        );
        let short = name.as_deref().map(short_goal).unwrap_or_default();
        for (bytes, rate, size) in &points {
            let (px, py) = (x.at(*bytes) + aside(goal), y.at(*rate));
            let of = theory(*bytes)
                .map(|most| format!(", {} of the link", units::percent(rate / most)))
                .or_else(|| {
                    let most = bottleneck(size)?;
                    Some(format!(", {} of the bottleneck", units::percent(rate / most)))
                })
                .unwrap_or_default();
            let goal = if goals > 1 { format!("{short} · ") } else { String::new() };
            let tip = format!("{goal}{} bytes · {}{of}", size.frame_size, units::frame_rate(*rate));
            svg.point(class, px, py, 4.6, &tip);
            labels.keep(px, py, 4.6);
            let said = if goals > 1 { format!("{short} ") } else { String::new() };
            named.push((px, py, said + &units::frame_rate(*rate)));
        }
        let name = name.unwrap_or_else(|| format!("goal {}", goal + 1));
        legend.push((class, if points.is_empty() { format!("{name}: nothing passed") } else { name }));
    }
    // The table below has what finds no room.
    for (px, py, text) in named.iter().take(MOST_LABELS) {
        svg.label(&mut labels, *px, *py, 4.6, text);
    }
    for size in sizes.iter().filter(|s| s.throughput.iter().all(Option::is_none)) {
        svg.text("value mid", x.at(size.mean_frame_bytes), y0 - 6.0, "nothing passed");
    }
    let note = throughput_note(link.is_some(), !known.is_empty());
    let svg = svg.finish(&format!("Throughput by frame size, in {unit}; the table below has the values"));
    Some(Chart { heading: "Throughput by frame size".to_owned(), svg, legend, note: note.to_owned() })
}

/// The throughput of two searches, A and B: the first goal's of each size, as a series each.
pub(in super::super) fn beside(a: &SearchResult, b: &SearchResult) -> Option<Chart> {
    let renamed = |of: &SearchResult, name: &str| {
        let found =
            |size: &SizeResult| Some(Throughput { goal: name.to_owned(), ..size.of_first_goal()?.clone() });
        of.sizes.iter().map(|size| (size.clone(), found(size))).collect::<Vec<_>>()
    };
    let mut both = SearchResult { sizes: Vec::new(), ..a.clone() };
    let of_b = renamed(b, "B");
    for (mut size, found) in renamed(a, "A") {
        let other = of_b.iter().find(|(other, _)| other.frame_size == size.frame_size);
        size.throughput = vec![found, other.and_then(|(_, found)| found.clone())];
        // They are no goals any more, but sides.
        size.goals.clear();
        both.sizes.push(size);
    }
    let mut chart = throughput(&both)?;
    "The first goal's of each size, of the first result of each side.".clone_into(&mut chart.note);
    Some(chart)
}

/// A mark for each size.
fn size_ticks(sizes: &[&SizeResult], x: &Scale) -> Vec<(f64, String)> {
    let mut right = f64::NEG_INFINITY;
    let mut ticks: Vec<_> = sizes.iter().map(|s| (s.mean_frame_bytes, s.frame_size.clone())).collect();
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (bytes, name) in &mut ticks {
        // A label only where it has room.
        let half = 4.0 * name.chars().count() as f64;
        let middle = x.at(*bytes);
        match middle - half > right {
            true if !name.is_empty() => right = middle + half + 6.0,
            true => {}
            false => name.clear(),
        }
    }
    ticks
}

/// What the highest loads stand beside: what a link carries, what is known to come through, or nothing.
fn throughput_note(link: bool, bottleneck: bool) -> &'static str {
    match (link, bottleneck) {
        (true, _) => {
            "The highest load of each sending port that was forwarded within the goal (RFC 2544, 26.1)."
        }
        (false, true) => {
            "The highest load of each sending port that was forwarded within the goal (RFC 2544, 26.1), beside what is known to come through in the long run; trials are short, and a queue and saved tokens let through a little more."
        }
        (false, false) => {
            "The highest load of each sending port that was forwarded within the goal (RFC 2544, 26.1). The link states no speed, so there is no theoretical line."
        }
    }
}

/// A vertical axis of rates; returns its unit.
fn rate_axis(svg: &mut Svg, y: &Scale, hi: f64) -> String {
    let (factor, prefix) = units::prefix(hi);
    let ticks = y.ticks(5);
    let scaled: Vec<f64> = ticks.iter().map(|v| v / factor).collect();
    let by_decades = y.is_log();
    let label = |v: f64| if by_decades { short(v) } else { tick_number(v / factor, &scaled) };
    let labels: Vec<_> = ticks.iter().map(|v| (*v, label(*v))).collect();
    let unit = if by_decades { "pps".to_owned() } else { format!("{prefix}pps") };
    svg.y_axis(y, &labels, &unit);
    unit
}

/// `200k`, `1M`.
fn short(value: f64) -> String {
    let (factor, prefix) = units::prefix(value);
    let digits = format!("{:.2}", value / factor);
    format!("{}{prefix}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Loss by load, a series for each frame size.
pub(super) fn loss(search: &SearchResult, trials: &[Trial]) -> Option<Chart> {
    let sizes: Vec<&SizeResult> = search.sizes.iter().filter(|s| !s.loss_curve.is_empty()).collect();
    let own = |size: &SizeResult, at: &LossAt| Lost::at(trials, &size.frame_size, at);
    let most =
        sizes.iter().flat_map(|s| s.loss_curve.iter().map(|at| own(s, at).by_device)).reduce(f64::max)?;
    let mut any_short = false;
    let mut taken = Labels::default();
    let mut svg = Svg::new(300.0, FRAME);
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let (x, y) = (Scale::linear(0.0, 100.0, x0, x1), Scale::linear(0.0, round_up(most * 104.0), y0, y1));
    let labels = |ticks: Vec<f64>| ticks.iter().map(|v| (*v, tick_number(*v, &ticks))).collect::<Vec<_>>();
    svg.y_axis(&y, &labels(y.ticks(5)), "% lost");
    let is_link = |s: &SizeResult| {
        s.theoretical_frames_per_second.is_some_and(|t| (s.greatest / t - 1.0).abs() < 0.002)
    };
    let of = if sizes.iter().all(|s| is_link(s)) {
        "load in % of what the link carries"
    } else {
        "load in % of the greatest that was tried"
    };
    svg.x_axis(&x, &labels(x.ticks(10)), of, false);
    let mut legend = Vec::new();
    for (n, size) in sizes.iter().enumerate() {
        let class = marks::class(n);
        let mut points = size.loss_curve.clone();
        points.sort_by(|a, b| a.load_ratio.total_cmp(&b.load_ratio));
        let place = |at: &LossAt| (x.at(at.load_ratio * 100.0), y.at(own(size, at).by_device * 100.0));
        svg.polyline(&format!("line {class}"), points.iter().map(place));
        for at in &points {
            let lost = own(size, at);
            let short = match lost.by_sender {
                0.0 => String::new(),
                ratio => format!(" · the sender fell short by {}", units::percent(ratio)),
            };
            let tip = format!(
                "{} bytes · {} ({}) · lost {}{short}",
                size.frame_size,
                units::percent(at.load_ratio),
                units::frame_rate(at.frames_per_second),
                units::percent(lost.by_device)
            );
            let (px, py) = place(at);
            svg.point(class, px, py, 4.2, &tip);
            taken.keep(px, py, 4.2);
            if lost.by_sender > 0.0 {
                any_short = true;
                svg.label(&mut taken, px, py, 4.2, "short");
            }
        }
        legend.push((class, format!("{} bytes", size.frame_size)));
    }
    let mut note = "Of the frames sent, from the greatest load downwards until two trials in a row lost nothing (RFC 2544, 26.3).".to_owned();
    if any_short {
        note += " Where it says short the sender sent less than the load: the device was not tried with it.";
    }
    let svg = svg.finish("Frame loss by load; the table below has the values");
    Some(Chart { heading: "Loss by load".to_owned(), svg, legend, note })
}

/// Flows recorded against flows offered, a series for each frame size: on the straight line nothing was lost.
pub(super) fn flows(search: &SearchResult, trials: &[Trial]) -> Option<Chart> {
    let judged = |t: &&Trial| !t.verdict.is_the_testers();
    // (offered, recorded), per second.
    let of = |size: &SizeResult| -> Vec<(f64, f64)> {
        let own = trials.iter().filter(|t| t.frame_size == size.frame_size).filter(judged);
        let mut points: Vec<_> = own
            .filter_map(|t| {
                let flows = t.flows?;
                let share = flows.recorded_flows as f64 / flows.sent_flows.max(1) as f64;
                (t.load > 0.0 && t.load.is_finite()).then_some((t.load, t.load * share))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        points
    };
    let series: Vec<(&SizeResult, Vec<(f64, f64)>)> =
        search.sizes.iter().map(|size| (size, of(size))).filter(|(_, points)| !points.is_empty()).collect();
    let hi = series.iter().flat_map(|(_, points)| points).map(|(offered, _)| *offered).reduce(f64::max)?;
    let mut svg = Svg::new(330.0, FRAME);
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let (x, y) = (Scale::linear(0.0, hi * 1.05, x0, x1), Scale::linear(0.0, hi * 1.05, y0, y1));
    let labels =
        |scale: &Scale, ticks| scale.ticks(ticks).into_iter().map(|v| (v, short(v))).collect::<Vec<_>>();
    svg.y_axis(&y, &labels(&y, 5), "recorded a second");
    svg.x_axis(&x, &labels(&x, 8), "new flows offered a second", false);
    svg.polyline("line intended", [(x.at(0.0), y.at(0.0)), (x.at(hi), y.at(hi))]);
    let mut legend = vec![("intended", "all that are offered".to_owned())];
    for (n, (size, points)) in series.iter().enumerate() {
        let class = marks::class(n);
        svg.polyline(&format!("line {class}"), points.iter().map(|(a, b)| (x.at(*a), y.at(*b))));
        for (offered, recorded) in points {
            let lost = 1.0 - recorded / offered;
            let tip = format!(
                "{} bytes · {} offered · lost {}",
                size.frame_size,
                units::flow_rate(*offered),
                units::percent(lost)
            );
            svg.point(class, x.at(*offered), y.at(*recorded), 4.6, &tip);
        }
        legend.push((class, format!("{} bytes", size.frame_size)));
    }
    let note = "A flow is recorded if the records have all of its packets. Trials in which the tester itself fell short are left out.".to_owned();
    let svg = svg.finish("Flows recorded against flows offered; the table of trials has the values");
    Some(Chart { heading: "Flows recorded against flows offered".to_owned(), svg, legend, note })
}

/// The way the search for each frame size's throughput went: every trial's load, and the bounds closing in.
pub(super) fn paths(search: &SearchResult, trials: &[Trial]) -> Vec<Chart> {
    let of_rate = search.axis == SearchAxis::FramesPerSecond;
    let path = |size: &SizeResult| {
        let rows: Vec<&Trial> = trials
            .iter()
            .filter(|t| {
                matches!(t.part, Part::Throughput | Part::Flows)
                    && t.frame_size == size.frame_size
                    && t.load > 0.0
            })
            .collect();
        (rows.len() > 1).then(|| self::path(size, &rows, of_rate)).flatten()
    };
    search.sizes.iter().take(MOST_PATHS).filter_map(path).collect()
}

/// Each trial as a point, a larger one if none lasted longer. Says which of these there are: trials that passed, those with a load
/// of at most `most` that did not, others that did not, and those that the tester fell short of.
fn points(
    svg: &mut Svg,
    rows: &[&Trial],
    (x, y): (&Scale, &Scale),
    most: f64,
    value: &dyn Fn(f64) -> String,
) -> [bool; 4] {
    let longest = rows.iter().map(|t| t.duration_ns).max().unwrap_or(0);
    let mut seen = [false; 4];
    for (i, t) in rows.iter().enumerate() {
        let (kind, class) = match &t.verdict {
            TrialVerdict::Passed => (0, "s2"),
            verdict if verdict.is_the_testers() => (3, "s5"),
            _ if t.load <= most => (1, "s3"),
            _ => (2, "s4"),
        };
        if let Some(seen) = seen.get_mut(kind) {
            *seen = true;
        }
        let tip = format!(
            "trial {} · {} for {} · lost {} · {}",
            t.number,
            value(t.load),
            units::time(t.duration_ns),
            units::percent(t.lost_ratio()),
            t.verdict
        );
        svg.point(
            class,
            x.at(i as f64 + 1.0),
            y.at(t.load),
            if t.duration_ns == longest { 5.6 } else { 4.0 },
            &tip,
        );
    }
    seen
}

fn path(size: &SizeResult, rows: &[&Trial], of_rate: bool) -> Option<Chart> {
    let lo = rows.iter().map(|t| t.load).reduce(f64::min)?;
    let hi = rows.iter().map(|t| t.load).reduce(f64::max)?;
    let goals: Vec<_> = size.numbered().collect();
    // Each line's goal is named at its end.
    let ends: Vec<String> = match size.throughput.len().max(size.goals.len()) {
        0 | 1 => Vec::new(),
        _ => goals.iter().map(|(_, found)| short_goal(&found.goal).chars().take(12).collect()).collect(),
    };
    let right = ends.iter().map(|name| Labels::width(name) + 14.0).fold(FRAME.right, f64::max);
    let mut svg = Svg::new(240.0, Frame { left: 74.0, right, ..FRAME });
    let mut labels = Labels::default();
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let x = Scale::linear(0.5, rows.len() as f64 + 0.5, x0, x1);
    // The end of a search is where it gets narrow: no zero is needed, and far-off first trials get no room.
    let y = if hi / lo > 3.0 {
        Scale::log(lo / 1.2, hi * 1.2, y0, y1)
    } else {
        let air = ((hi - lo) * 0.12).max(hi * 0.002);
        Scale::linear((lo - air).max(0.0), hi + air, y0, y1)
    };
    if of_rate {
        rate_axis(&mut svg, &y, hi);
    } else {
        let labels: Vec<_> = y.ticks(5).into_iter().map(|v| (v, short(v))).collect();
        svg.y_axis(&y, &labels, "tried");
    }
    let every = rows.len().div_ceil(20).max(1);
    let ticks: Vec<_> =
        rows.iter().enumerate().step_by(every).map(|(i, t)| (i as f64 + 1.0, t.number.to_string())).collect();
    svg.x_axis(&x, &ticks, "trial", false);
    let value = |load: f64| if of_rate { units::frame_rate(load) } else { short(load) };
    let mut legend: Vec<(&'static str, String)> = Vec::new();
    let stepwise = rows.iter().any(|t| !t.bounds.is_empty());
    if stepwise {
        closing_in(&mut svg, rows, &x, &y);
    }
    // What was found, of each goal.
    for (nth, (goal, found)) in goals.iter().enumerate() {
        let class = marks::goal(*goal);
        if let Some(name) = ends.get(nth) {
            svg.label_right(&mut labels, x1, y.at(found.frames_per_second), name);
        }
        if !stepwise {
            let at = y.at(found.frames_per_second);
            svg.line(&format!("line {class}"), x0, at, x1, at);
        }
        if let Some(failed) = found.failed_frames_per_second.filter(|_| !stepwise) {
            let at = y.at(failed);
            svg.line(&format!("line bound {class}"), x0, at, x1, at);
        }
        legend.push((
            marks::goal_line(*goal),
            format!("found: {} ({})", value(found.frames_per_second), found.goal),
        ));
    }
    let longest = rows.iter().map(|t| t.duration_ns).max().unwrap_or(0);
    // Of several goals a verdict is the first one's; a load may still be within what another allows.
    let within: Vec<_> = goals.iter().filter(|(goal, _)| *goal > 0).map(|(_, found)| *found).collect();
    let most = within.iter().map(|found| found.frames_per_second).fold(0.0, f64::max);
    let partly = format!(
        "not {}, but within what {} allows",
        first_goal(size).map_or("the first goal", short_goal),
        within.iter().map(|found| short_goal(&found.goal)).collect::<Vec<_>>().join(" or "),
    );
    let seen = points(&mut svg, rows, (&x, &y), most, &value);
    let names = [
        ("s2 alone", "passed"),
        ("s3 alone", partly.as_str()),
        ("s4 alone", "did not pass"),
        ("s5 alone", "not judged: the tester itself fell short"),
    ];
    legend.extend(
        names
            .into_iter()
            .zip(seen)
            .filter(|(_, seen)| *seen)
            .map(|((class, name), _)| (class, name.to_owned())),
    );
    let shorter = rows.iter().any(|t| t.duration_ns < longest);
    let note = format!(
        "Each trial's load, in the order they were done{}; the lines are {}the highest load that met the goal and, dotted, the lowest that did not.",
        if shorter { "; small marks are of shorter trials" } else { "" },
        if stepwise { "what was known after each: " } else { "" }
    );
    let heading = format!("The search with frames of {} bytes", size.frame_size);
    let svg = svg.finish(&format!(
        "{heading}: {}; the table of trials has the values",
        units::counted(rows.len() as u64, "trial")
    ));
    Some(Chart { heading, svg, legend, note })
}

/// What was known of each goal after each trial: its bounds, in steps.
fn closing_in(svg: &mut Svg, rows: &[&Trial], x: &Scale, y: &Scale) {
    let goals = rows.iter().map(|t| t.bounds.len()).max().unwrap_or(0);
    for goal in 0..goals {
        for (style, of) in
            [("line", (|b| b.passed) as fn(&Bounds) -> Option<f64>), ("line bound", |b| b.failed)]
        {
            let mut steps: Vec<(f64, f64)> = Vec::new();
            let class = format!("{style} {}", marks::goal(goal));
            for (i, t) in rows.iter().enumerate() {
                let from = i as f64 + 1.0;
                match t.bounds.get(goal).and_then(of).filter(|bound| bound.is_finite() && *bound > 0.0) {
                    Some(bound) => steps.extend([
                        (x.at(from), y.at(bound)),
                        (x.at((from + 1.0).min(rows.len() as f64 + 0.5)), y.at(bound)),
                    ]),
                    // A bound may be taken back: a longer trial there went otherwise.
                    None => svg.polyline(&class, std::mem::take(&mut steps)),
                }
            }
            svg.polyline(&class, steps);
        }
    }
}

/// Lengths of bursts that were tried, and which passed.
pub(super) fn bursts(search: &SearchResult, trials: &[Trial]) -> Option<Chart> {
    search.sizes.iter().find(|s| s.burst.is_some())?;
    let rows: Vec<&Trial> = trials.iter().filter(|t| t.part == Part::Burst && t.load > 0.0).collect();
    let lo = rows.iter().map(|t| t.load).reduce(f64::min)?;
    let hi = rows.iter().map(|t| t.load).reduce(f64::max)?;
    let mut svg = Svg::new(240.0, Frame { left: 74.0, ..FRAME });
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let (x, y) = (Scale::linear(0.5, rows.len() as f64 + 0.5, x0, x1), rates_scale(lo, hi, y0, y1));
    let labels: Vec<_> = y.ticks(5).into_iter().map(|v| (v, short(v))).collect();
    svg.y_axis(&y, &labels, "frames in a burst");
    let every = rows.len().div_ceil(20).max(1);
    let ticks: Vec<_> =
        rows.iter().enumerate().step_by(every).map(|(i, t)| (i as f64 + 1.0, t.number.to_string())).collect();
    svg.x_axis(&x, &ticks, "trial", false);
    for (i, t) in rows.iter().enumerate() {
        let (class, what) =
            if t.verdict == TrialVerdict::Passed { ("s2", "forwarded whole") } else { ("s4", "not whole") };
        let tip = format!(
            "trial {} · {} bytes · {} · {what}",
            t.number,
            t.frame_size,
            units::counted(t.load as u64, "frame")
        );
        svg.point(class, x.at(i as f64 + 1.0), y.at(t.load), 4.2, &tip);
    }
    let legend =
        vec![("s2 alone", "forwarded whole".to_owned()), ("s4 alone", "not forwarded whole".to_owned())];
    let note = "Bursts at the highest rate, in the order they were sent (RFC 9004).".to_owned();
    let svg = svg.finish("Lengths of bursts tried; the table below has what was found");
    Some(Chart { heading: "Bursts".to_owned(), svg, legend, note })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::search::Throughput;

    #[test]
    fn a_goal_that_was_left_open_for_one_size_leaves_its_line_to_no_other() {
        let goal = |goal: &str| Some(Throughput { goal: goal.to_owned(), ..Throughput::of(1_000.0, 64.0) });
        let size = |throughput| SizeResult { mean_frame_bytes: 64.0, throughput, ..SizeResult::default() };
        let sizes = [size(vec![goal("pdr")]), size(vec![goal("ndr"), goal("pdr")]), size(vec![None, None])];
        assert_eq!(goal_names(&sizes.iter().collect::<Vec<_>>()), ["pdr", "ndr"]);
        let search = SearchResult { sizes: sizes.to_vec(), ..SearchResult::default() };
        let legend = throughput(&search).expect("a chart").legend;
        let of = |name: &str| legend.iter().filter(|(_, said)| said == name).count();
        assert_eq!([of("ndr"), of("pdr")], [1, 1], "{legend:?}");
    }
}
