//! How far a search has come: what is tried now, between which loads the answer lies, and the trials that are over.

use super::{Manner, label};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use report::search::TrialVerdict;
use report::units::{self, count, percent, printable, time};
use snapshot::{Bound, Search, Snapshot};

fn load(search: &Search, load: f64) -> String {
    if search.of_rate { units::frame_rate(load) } else { count(load as u64) }
}

/// Of several goals, or sizes, no more lines than that.
const MOST: usize = 4;

pub fn progress(now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let Some(search) = now.search.as_deref() else { return Vec::new() };
    let line = |name: &str, text: String| Line::from(vec![label(name, manner), printable(&text).into()]);
    let size = match search.size {
        (number, of) if of > 1 => format!(" ({number} of {of} sizes)"),
        _ => String::new(),
    };
    let of = format!("frames of {} bytes{size}", search.frame_size);
    // A trial by itself is no search.
    let mut lines = vec![match search.part.as_str() {
        "trial" => line("trials", of),
        part => line("search", format!("{part}, {of}")),
    }];
    if search.trial_ns > 0 {
        let done = now.at_ns.saturating_sub(search.trial_began_ns).min(search.trial_ns);
        let part = done as f64 / search.trial_ns as f64;
        lines.push(line(
            "trial",
            format!(
                "{}: {} for {}, {:.0} % of it over",
                search.trials + 1,
                load(search, search.load),
                time(search.trial_ns),
                part * 100.0
            ),
        ));
    }
    lines.extend(search.bounds.iter().take(MOST).map(|bound| line("known", told(search, bound))));
    if !search.known.is_empty() {
        lines.push(line("known", search.known.clone()));
    }
    let over = match search.trials {
        1 => "1 trial is over".to_owned(),
        n => format!("{} are over", units::counted(n, "trial")),
    };
    lines.push(line("done", format!("{over}, {} passed", count(search.passed))));
    lines
}

fn told(search: &Search, bound: &Bound) -> String {
    let known = match (bound.lower, bound.upper) {
        (Some(lower), Some(upper)) => {
            let apart = if upper > 0.0 { (upper - lower).abs() / upper } else { 0.0 };
            format!(
                "{} passed, {} failed ({} apart)",
                load(search, lower),
                load(search, upper),
                percent(apart)
            )
        }
        (Some(lower), None) => format!("{} passed", load(search, lower)),
        (None, Some(upper)) => format!("{} failed", load(search, upper)),
        (None, None) => "nothing yet".to_owned(),
    };
    if bound.goal.is_empty() { known } else { format!("{}: {known}", bound.goal) }
}

/// The latest trials: a header, and what there is room for.
pub fn table(search: &Search, manner: Manner, room: usize) -> Vec<Line<'static>> {
    let head =
        format!("{:<8} {:>13} {:>10} {:>10} {:>10}  {}", "trial", "load", "for", "lost", "p99", "verdict");
    let mut lines = vec![Line::styled(head, manner.label())];
    for row in search.rows.iter().take(room.saturating_sub(1)) {
        let text = format!(
            "{:<8} {:>13} {:>10} {:>10} {:>10}  {}",
            row.number,
            load(search, row.load),
            time(row.duration_ns),
            percent(row.loss_ratio),
            row.p99_ns.map_or_else(|| "-".to_owned(), time),
            row.verdict
        );
        let style = if row.verdict == TrialVerdict::Passed { Style::new() } else { manner.alarm() };
        lines.push(Line::from(Span::styled(text, style)));
    }
    lines
}
