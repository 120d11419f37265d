//! The page a person opens, prints and hands on: one file, no network, no library. Plots are SVG made here; a
//! few lines of script only show what is pointed at, and nothing is lost without them. The report's JSON is
//! inside, so the page alone can be read again ([`embedded_report`]).
//!
//! Everything that came from outside goes through `escape`; the content security policy forbids the page to
//! fetch anything at all.

mod boxes;
mod charts;
mod compare;
mod conversations;
mod endpoint;
mod endpoint_search;
pub(crate) mod escape;
pub(crate) mod grid;
mod marks;
mod mesh;
mod nines;
mod parts;
mod plot;
mod search;
mod stamp;
mod tables;
mod timeline;

use std::fmt::Write;

pub use compare::comparison;

use crate::data::json::{self, ReadError};
use crate::data::model::{Report, Verdict};
use crate::data::note::Said;
use crate::data::units;
use crate::render::conclusion;
use crate::render::sections::{environment, intervals, requested};
use escape::{Esc, json_in_script};

/// Stands near the top of every page; [`crate::store`] knows our files by it.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"netdyno\">";

/// The page fetches nothing, whatever stands in it.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Behind the page's data.
const FOOT: &str = "<script>\nSCRIPT</script>\n</body>\n</html>\n";

const DATA_BEGIN: &str = "<script type=\"application/json\" id=\"netdyno-report\">";
const DATA_END: &str = "</script>";

/// The whole page.
pub fn render(report: &Report) -> String {
    let title = format!("netdyno {}: {}", report.command, conclusion::verdict(report));
    let mut out = head(&title);
    out += &header(report);
    out += &drawings(report);
    out += &tables::figures(report);
    out += &requested::card(report);
    out += &environment::card(report);
    out += &intervals::card(report);
    out += &search::trials(report);
    let version = match report.environment.netdyno_version.as_str() {
        "" => String::new(),
        version => format!(" {version}"),
    };
    // Writing to a String cannot fail.
    write!(
        out,
        "<footer>Made by netdyno{}. This page holds its data, <code>{}</code>, and reads nothing from the network.</footer>\n</main>\n\
         {DATA_BEGIN}\n{}{DATA_END}\n{}",
        Esc(&version),
        Esc(&report.schema),
        json_in_script(&json::to_string(report)),
        FOOT.replace("SCRIPT", include_str!("script.js")),
    )
    .unwrap_or_default();
    out
}

/// What is drawn of it.
fn drawings(report: &Report) -> String {
    let mut out = String::new();
    let searched = report.result.search.is_some() || !report.result.trials.is_empty();
    if searched {
        out += &search::sections(report);
    }
    if report.result.endpoint.is_some() || report.result.served.is_some() {
        out += &endpoint::plots(report);
    } else if report.result.stamp.is_some() {
        out += &stamp::plots(report);
    } else if report.result.mesh.is_some() {
        out += &mesh::plots(report);
    } else if report.result.endpoint_search.is_some() {
        out += &endpoint_search::plots(report);
    } else if report.result.sessions_search.is_some() {
        // Its trials are a table.
    } else if report.result.conversations.is_empty() {
        // Of a search only the trials count; the plots of a run would all be absent.
        if !searched || !report.intervals.is_empty() {
            out += &plots(report);
        }
    } else {
        out += &conversations::plots(report);
        out += &conversations::cards(&report.result.conversations);
    }
    out
}

/// The part of the page that a notebook shows below a cell: verdict, plots and figures. It has no script, which notebooks and whoever
/// shows them elsewhere take away, and its style holds within its own element alone. Where that is taken away, too, text and lines stay.
pub fn fragment(report: &Report) -> String {
    // Nested rules are those of the element (CSS Nesting).
    let style = include_str!("style.css").replace(":root {", "& {").replace("body {", "& {");
    format!(
        "<div class=\"netdyno-report\">\n<style>\n.netdyno-report {{\n{style}}}\n</style>\n{}{}{}</div>\n",
        header(report),
        drawings(report),
        tables::figures(report),
    )
}

/// A page of other contents in the same style, which has no script and may run none.
pub fn page(title: &str, style: &str, contents: &str) -> String {
    let head = head_with(title, "default-src 'none'; style-src 'unsafe-inline'", style);
    format!("{head}{contents}</main>\n</body>\n</html>\n")
}

/// A text from outside as text in HTML and SVG.
pub fn escaped(text: &str) -> String {
    Esc(text).to_string()
}

/// Up to where the page's contents begin.
fn head(title: &str) -> String {
    head_with(title, CONTENT_POLICY, "")
}

/// The same with rules of its own, behind those of all pages.
fn head_with(title: &str, policy: &str, style: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{GENERATOR}\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>\n{}{style}</style>\n</head>\n<body>\n<main>\n",
        Esc(title),
        include_str!("style.css"),
    )
}

/// The report a page was made from.
///
/// # Errors
/// That there is none in the page, or as [`crate::data::json::from_str`].
pub fn embedded_report(page: &str) -> Result<Report, ReadError> {
    let data = page.split_once(DATA_BEGIN).and_then(|(_, rest)| rest.split_once(DATA_END));
    json::from_str(data.ok_or(ReadError::NoDataInPage)?.0)
}

/// Verdict, the figures everybody asks for, warnings.
fn header(report: &Report) -> String {
    let verdict = &report.result.verdict;
    let class = match verdict {
        Verdict::Done => "done",
        Verdict::Short { .. } => "short",
        Verdict::Failed { .. } => "failed",
    };
    let list = |items: &[Said]| match items {
        [] => String::new(),
        items => {
            format!("<ul>{}</ul>", items.iter().map(|i| format!("<li>{}</li>", Esc(i))).collect::<String>())
        }
    };
    let facts: Vec<&str> = [report.environment.hostname.as_deref(), report.environment.started.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    let mut out = format!(
        "<div class=\"eyebrow\"><span><b>netdyno</b> {}</span><span>{}</span></div>\n\
         <section class=\"verdict {class}\"><h1>{}</h1><p>{}</p>{}{}</section>\n",
        Esc(&report.command),
        Esc(&facts.join(" · ")),
        conclusion::verdict(report),
        Esc(&conclusion::sentence(report)),
        list(verdict.reasons()),
        cause(report),
    );
    out += &tiles(report);
    if !report.warnings.is_empty() {
        out += &format!(
            "<section class=\"warnings\"><h3>Before you trust these figures</h3>{}</section>\n",
            list(&report.warnings)
        );
    }
    out
}

/// Why it fell short, and what to type next.
fn cause(report: &Report) -> String {
    let cause = conclusion::cause(report);
    let paragraphs = [cause, conclusion::remedy(report)];
    let shown = paragraphs.iter().filter(|text| !text.is_empty());
    shown.map(|text| format!("<p class=\"cause\">{}</p>", Esc(text))).collect()
}

fn tiles(report: &Report) -> String {
    let result = &report.result;
    let mut tiles: Vec<(&str, String, String)> = Vec::new();
    let tx = result.tx.as_ref();
    let asked = report.resolved.rate.as_ref();
    match (tx.and_then(|tx| tx.intended_frames_per_second), asked) {
        (Some(pps), asked) => tiles.push((
            "Intended",
            units::frame_rate(pps),
            asked.map(|r| r.text.clone()).unwrap_or_default(),
        )),
        (None, Some(asked)) => tiles.push(("Asked for", asked.text.clone(), String::new())),
        (None, None) => {}
    }
    let pair = |t: &crate::data::model::Totals| match t.duration_ns {
        0 => ("-".to_owned(), units::counted(t.frames, "frame")),
        _ => (units::frame_rate(t.frames_per_second), units::bit_rate(t.bits_per_second)),
    };
    if let Some(tx) = tx {
        let (pps, bps) = pair(&tx.totals);
        tiles.push((if result.reflection.is_some() { "Sent back" } else { "Sent" }, pps, bps));
    }
    if let Some(rx) = &result.rx {
        let (pps, bps) = pair(&rx.totals);
        tiles.push((if result.round_trip { "Came back" } else { "Received" }, pps, bps));
    }
    if let Some(loss) = result.loss {
        let frames = units::counted(loss.frames, "frame") + &conclusion::by_count(report);
        tiles.push(("Lost", units::percent(loss.ratio), frames));
    }
    if let Some(d) = &result.latency_ns {
        let name = if result.round_trip { "Round trip, median" } else { "Latency, median" };
        tiles.push((name, units::time(d.p50), format!("p99 {}", units::time(d.p99))));
    }
    if let Some(f) = &result.flows {
        tiles.push(("Flows", units::count(f.flows), units::flow_rate(f.flows_per_second)));
    }
    if let Some(d) = result.pacing.as_ref().and_then(|p| p.gap_error_ns.as_ref()) {
        tiles.push(("Gap error, median", units::time(d.p50), format!("p99 {}", units::time(d.p99))));
    }
    if let Some(s) = &result.sessions {
        let failed = format!("{} opened, {} failed", units::count(s.opened), units::count(s.failed));
        tiles.push(("Connections", units::event_rate(s.opened_per_second), failed));
    }
    if let Some(d) = result.sessions.as_ref().and_then(|s| s.handshake_ns.as_ref()) {
        tiles.push(("Handshake, median", units::time(d.p50), format!("p99 {}", units::time(d.p99))));
    }
    tiles.extend(endpoint::tiles(report));
    tiles.extend(stamp::tiles(report));
    tiles.extend(mesh::tiles(report));
    tiles.extend(endpoint_search::tiles(report));
    tiles.extend(crate::render::sections::sessions_search::tiles(report));
    let mut tiles: Vec<(String, String, String)> =
        tiles.into_iter().map(|(name, value, more)| (name.to_owned(), value, more)).collect();
    tiles.extend(search::tiles(report));
    let tile = |(name, value, more): &(String, String, String)| {
        format!(
            "<div class=\"tile\"><span>{}</span><b>{}</b><span>{}</span></div>",
            Esc(name),
            Esc(value),
            Esc(more)
        )
    };
    match tiles.as_slice() {
        [] => String::new(),
        tiles => {
            format!("<section class=\"tiles\">{}</section>\n", tiles.iter().map(tile).collect::<String>())
        }
    }
}

fn plots(report: &Report) -> String {
    let absent = |what: &str| format!("<p class=\"absent\">{what}</p>\n");
    let mut out = "<h2>Plots</h2>\n".to_owned();
    // These are what the page is for: their absence is said. The others just stay away.
    let no_latency = match report.result.latency_ns {
        Some(_) => "No histogram of latency was kept; its percentiles stand below.",
        None => "Latency was not measured: only frames that carry netdyno's signature tell it.",
    };
    let no_loss = "Loss over time was not measured: it takes counts where frames leave and where they arrive (a meter there).";
    // Connections have both among their figures: segments sent again, and the times of handshakes and answers.
    let of_sessions = report.result.sessions.is_some() || report.result.sessions_served.is_some();
    // A probe and a collector count flows: nobody looks for loss and latency there.
    let of_others = of_sessions || report.result.collection.is_some() || report.result.metering.is_some();
    let counted = if report.result.collection.is_some() { "messages" } else { "frames" };
    match charts::over_time(report, counted, of_sessions) {
        Some(chart) => {
            out += &chart.html();
            if !of_others && report.intervals.iter().all(|i| i.lost_frames.is_none()) {
                out += &absent(no_loss);
            }
        }
        None => out += &absent("Rates over time were not measured: this run has no intervals."),
    }
    match charts::latency(report) {
        Some(chart) => {
            out += &chart.html();
            let together = report.result.tx.as_ref().and_then(super::sections::latency::together);
            out.extend(together.map(|said| absent(&format!("Delays were measured by {said}."))));
        }
        None if of_others => {}
        None => out += &absent(no_latency),
    }
    let more = [
        nines::run(report),
        charts::apart(report),
        nines::apart(report),
        charts::pacing(report),
        charts::sizes(report),
    ];
    out.extend(more.into_iter().flatten().map(|chart| chart.html()));
    out
}
