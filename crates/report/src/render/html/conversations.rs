//! The plots of TCP connections that were played against a server: requests and other answers over time, how long each
//! answer took beside the captured one, and by percentile.

use super::charts::{self, Chart};
use super::escape::Esc;
use super::grid::{DASH, Grid};
use super::nines;
use super::timeline::{self, Axis, Dot, Line, Pane, Stretch};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::conversations::{Conversation, Exchange, Outcome};
use crate::data::units;
use crate::render::sections::conversations;

/// Stretches that time is cut into at most.
const MOST_STRETCHES: u64 = 100;
/// Connections and exchanges of each that are listed at most.
const MOST_CONNECTIONS: usize = 100;
const MOST_EXCHANGES: usize = 50;
/// Exchanges that have a mark of their own at most; of more, percentiles of each stretch are drawn.
const MOST_DOTS: usize = 1500;

/// All of them, as HTML.
pub(super) fn plots(report: &Report) -> String {
    let all = &report.result.conversations;
    let mut out = over_time(all).map(|chart| chart.html()).unwrap_or_default();
    let times = |get: fn(&Exchange) -> Option<u64>| {
        let mut values: Vec<u64> = all.iter().flat_map(|c| &c.exchanges).filter_map(get).collect();
        Distribution::from_samples(&mut values)
    };
    let now = times(|e| e.first_byte_ns);
    let then = times(|e| e.captured_first_byte_ns);
    let known: Vec<_> = [("now", now.as_ref()), ("in the capture", then.as_ref())]
        .into_iter()
        .filter_map(|(n, d)| Some((n, d?)))
        .collect();
    out += &nines::answers(&known).map(|chart| chart.html()).unwrap_or_default();
    if out.is_empty() { out } else { format!("<h2>Plots</h2>\n{out}") }
}

/// Each connection with its exchanges, those that differ first where not all have room, and what differs.
pub(super) fn cards(all: &[Conversation]) -> String {
    let mut out = "<h2>Connections</h2>\n".to_owned();
    for c in all.iter().take(MOST_CONNECTIONS) {
        let sentence =
            if c.outcome == Outcome::Failed { String::new() } else { conversations::what_went(c) + "." };
        out += &format!(
            "<div class=\"card\"><h3>{}</h3><p>{}</p></div>\n",
            Esc(&conversations::heading(c)),
            Esc(&sentence)
        );
        let mut grid = Grid::new(conversations::EXCHANGES);
        let mut numbered: Vec<(usize, &Exchange)> = c.exchanges.iter().enumerate().collect();
        numbered.sort_by_key(|(_, e)| e.difference.is_none());
        numbered.truncate(MOST_EXCHANGES);
        numbered.sort_by_key(|(n, _)| *n);
        let time = |ns: Option<u64>| ns.map_or(DASH.into(), units::time);
        for (n, e) in &numbered {
            let (class, verdict) = match &e.difference {
                None => ("", "equal".to_owned()),
                Some(d) => {
                    let seen = |hex: &str| conversations::readable(hex);
                    let at = units::count(d.offset);
                    let said = format!(
                        "differs at byte {at}; from byte {} captured {}, now {}",
                        units::count(d.shown_from),
                        seen(&d.captured),
                        seen(&d.live)
                    );
                    ("fault", said)
                }
            };
            let cells = [
                units::count(e.client_bytes),
                units::count(e.expected_bytes),
                units::count(e.received_bytes),
                time(e.first_byte_ns),
                time(e.captured_first_byte_ns),
                time(e.last_byte_ns),
                time(e.captured_last_byte_ns),
                verdict,
            ];
            grid.marked_row(class, &(n + 1).to_string(), cells);
        }
        let some = match c.exchanges.len() {
            all if all > MOST_EXCHANGES => format!(
                "{MOST_EXCHANGES} of {}, first those that differ; the data has all",
                units::counted(all as u64, "exchange")
            ),
            _ => "Exchanges".to_owned(),
        };
        out += &grid.card(&some, true);
    }
    if all.len() > MOST_CONNECTIONS {
        let more = units::count((all.len() - MOST_CONNECTIONS) as u64);
        out += &format!("<p class=\"small\">And {more} more; the data has all.</p>\n");
    }
    out
}

/// An exchange and when it was asked.
struct Asked<'r> {
    at: u64,
    exchange: &'r Exchange,
}

impl Asked<'_> {
    /// Did the answer differ, or not come?
    fn is_other(&self) -> bool {
        let e = self.exchange;
        e.difference.is_some() || (e.expected_bytes > 0 && e.received_bytes == 0)
    }
}

fn over_time(all: &[Conversation]) -> Option<Chart> {
    let mut asked: Vec<Asked<'_>> = all
        .iter()
        .flat_map(|c| &c.exchanges)
        .filter_map(|exchange| Some(Asked { at: exchange.asked_at_ns?, exchange }))
        .collect();
    asked.sort_by_key(|a| a.at);
    let answered = |a: &Asked<'_>| a.at.saturating_add(a.exchange.last_byte_ns.unwrap_or(0));
    let end = asked.iter().map(answered).max()?.max(1);
    // Two requests a stretch, so that a few do not look like a rate.
    let stretches = (asked.len() as u64 / 2).clamp(1, MOST_STRETCHES).min(end);
    let edge = |n: u64| (u128::from(end) * u128::from(n) / u128::from(stretches)) as u64;
    let mut rows: Vec<(u64, u64, Vec<&Asked<'_>>)> =
        (0..stretches).map(|n| (edge(n), edge(n + 1), Vec::new())).collect();
    for a in &asked {
        let n = rows.partition_point(|(_, to, _)| *to <= a.at).min(rows.len().saturating_sub(1));
        if let Some((.., of)) = rows.get_mut(n) {
            of.push(a);
        }
    }
    let line = |class: &'static str, value: &dyn Fn(u64, &[&Asked<'_>]) -> Option<f64>| Line {
        class,
        steps: rows.iter().map(|(from, to, of)| (*from, *to, value(to - from, of))).collect(),
    };
    let requests = vec![line("sent", &|lasted, of| Some(of.len() as f64 / (lasted.max(1) as f64 / 1e9)))];
    let others = vec![line("lost", &|_, of| Some(of.iter().filter(|a| a.is_other()).count() as f64))];
    let first = |a: &Asked<'_>| a.exchange.first_byte_ns.map(|ns| ns.max(1) as f64);
    let then = |a: &Asked<'_>| a.exchange.captured_first_byte_ns.map(|ns| ns.max(1) as f64);
    let is_few = asked.len() <= MOST_DOTS;
    let mut dots = Vec::new();
    let mut lines = Vec::new();
    if is_few {
        dots.extend(asked.iter().filter_map(|a| Some(Dot { class: "captured", at: a.at, value: then(a)? })));
        let class = |a: &Asked<'_>| if a.is_other() { "other" } else { "asked" };
        dots.extend(asked.iter().filter_map(|a| Some(Dot { class: class(a), at: a.at, value: first(a)? })));
    } else {
        let percentile = |share: f64| {
            move |_: u64, of: &[&Asked<'_>]| {
                let mut times: Vec<u64> = of.iter().filter_map(|a| a.exchange.first_byte_ns).collect();
                times.sort_unstable();
                let last = times.len().checked_sub(1)?;
                times.get((last as f64 * share).ceil() as usize).map(|ns| (*ns).max(1) as f64)
            }
        };
        lines.push(line("half", &percentile(0.5)));
        lines.push(line("most", &percentile(0.99)));
        lines.push(line("longest", &percentile(1.0)));
    }
    let values = || {
        let drawn = lines.iter().flat_map(|line| &line.steps).filter_map(|(_, _, value)| *value);
        dots.iter().map(|dot| dot.value).chain(drawn)
    };
    let range = values().reduce(f64::min).zip(values().reduce(f64::max));
    let most = charts::greatest(&requests)?;
    let (factor, prefix) = units::prefix(most);
    let mut panes = vec![
        Pane {
            title: format!("requests a second, {prefix}/s").trim_end_matches(", /s").to_owned(),
            height: 100.0,
            y: Axis::linear(most / factor, 3),
            lines: charts::scaled(requests, factor),
            ..Pane::default()
        },
        Pane {
            title: "other answers than captured, or none".to_owned(),
            height: 60.0,
            y: Axis::whole(charts::greatest(&others)?.max(1.0), 2),
            lines: others,
            ..Pane::default()
        },
    ];
    if let Some((least, longest)) = range {
        let (y, unit) = Axis::times(least, longest, 4);
        panes.push(Pane {
            title: format!("to the first byte of the answer, {unit}"),
            height: 150.0,
            y,
            lines,
            dots,
            ..Pane::default()
        });
    }
    let tips: Vec<Stretch> = rows.iter().map(|(from, to, of)| (*from, *to, tip(*from, *to, of))).collect();
    let others = asked.iter().filter(|a| a.is_other()).count() as u64;
    let of = units::counted(asked.len() as u64, "request");
    let mut note = match others {
        0 => format!("{of}, each answered as captured."),
        n => format!("{} of {of} had another answer than captured, or none.", units::count(n)),
    };
    let legend = legend(range.is_some(), is_few);
    if all.len() > 1 {
        note += &format!(" Of {}.", units::counted(all.len() as u64, "connection"));
    }
    let svg = timeline::draw(&panes, &tips, "Requests, other answers and times to the first byte over time")?;
    Some(Chart { heading: "Requests over time".to_owned(), svg, legend, note })
}

/// What is drawn of requests: single answers, or percentiles of many.
fn legend(is_timed: bool, is_few: bool) -> Vec<(&'static str, String)> {
    let mut legend = vec![("sent", "requests".to_owned()), ("lost", "other answers, or none".to_owned())];
    if is_timed && is_few {
        legend.push(("event asked", "an answer as captured".to_owned()));
        legend.push(("event other", "another answer".to_owned()));
        legend.push(("event captured", "in the capture".to_owned()));
    } else if is_timed {
        legend.push(("half", "half of the answers within (p50)".to_owned()));
        legend.push(("most", "99 % within (p99)".to_owned()));
        legend.push(("longest", "longest".to_owned()));
    }
    legend
}

/// What a reader sees who points at a stretch.
fn tip(from: u64, to: u64, of: &[&Asked<'_>]) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut parts = vec![
        format!("{:.3} s to {:.3} s", seconds(from), seconds(to)),
        units::counted(of.len() as u64, "request"),
    ];
    let others = of.iter().filter(|a| a.is_other()).count() as u64;
    if others > 0 {
        parts.push(units::counted(others, "other answer"));
    }
    let mut times: Vec<u64> = of.iter().filter_map(|a| a.exchange.first_byte_ns).collect();
    times.sort_unstable();
    if let (Some(half), Some(longest)) = (times.get(times.len().saturating_sub(1) / 2), times.last()) {
        parts.push(format!("first byte p50 {}, longest {}", units::time(*half), units::time(*longest)));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sections::conversations::Difference;

    fn played(requests: u64) -> Report {
        let exchange = |n: u64| Exchange {
            asked_at_ns: Some(n * 10_000_000),
            expected_bytes: 100,
            received_bytes: 100,
            difference: (n % 10 == 3).then(Difference::default),
            first_byte_ns: Some(200_000 + n * 1_000),
            captured_first_byte_ns: Some(150_000),
            last_byte_ns: Some(300_000 + n * 1_000),
            ..Exchange::default()
        };
        let mut report = Report::new("live");
        report.result.conversations = vec![Conversation {
            exchanges: (0..requests).map(exchange).collect(),
            ..Conversation::default()
        }];
        report
    }

    #[test]
    fn requests_other_answers_and_latency_stand_on_one_axis() {
        let page = plots(&played(20));
        for says in [
            "2 of 20 requests had another answer",
            "Requests over time",
            "Latency by percentile",
            "in the capture",
        ] {
            assert!(page.contains(says), "{says}: {page}");
        }
        let dots = |class: &str| page.matches(&format!("line event {class}\"")).count();
        assert_eq!([dots("asked"), dots("other"), dots("captured")], [18, 2, 20]);
        // Many are drawn by percentile, within bounds.
        let page = plots(&played(20_000));
        assert!(page.contains("line longest") && !page.contains("line event"), "{page}");
        assert!(page.len() < 100_000, "{}", page.len());
        for none in [plots(&played(0)), plots(&Report::new("live"))] {
            assert_eq!(none, "");
        }
    }
}
