//! Results over time: `nd.trend`.

use crate::errors::{Place, usage};
use pyo3::prelude::*;
use report::get::Wanted;
use report::text::Options;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use trend::Wish;

/// What changed in a folder of results, and since when: as JSON, as text, as a page, as JUnit's XML and as Markdown.
#[pyfunction]
#[pyo3(name = "trend")]
pub(crate) fn over_time(
    py: Python<'_>,
    folder: PathBuf,
    figures: Vec<String>,
    least: f64,
    since: Option<&str>,
    any_host: bool,
) -> PyResult<(String, String, String, String, String)> {
    let wrong = |setting: &'static str, what: String| {
        usage(py, &what, Place { setting: Some(setting), ..Place::default() })
    };
    let read = |figure: &String| figure.parse::<Wanted>().map_err(|error| wrong("figure", error.to_string()));
    let figures = figures.iter().map(read).collect::<PyResult<Vec<Wanted>>>()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let since = since.map(|text| from(text, now).ok_or(text)).transpose().map_err(|text| {
        let what =
            format!("`{text}` is no day (2026-11-28), time in UTC (2026-11-28T23:00:00Z) or age (30d, 12h)");
        wrong("since", what)
    })?;
    let wish = Wish { figures, least, since, any_host };
    let judged = py.detach(|| trend::read(&folder, now).map(|folder| trend::judge(&folder, &wish)));
    let judged = judged.map_err(|error| wrong("folder", error.to_string()))?;
    let is_there = |wanted: &&Wanted| judged.lines().any(|(_, line)| wanted.means(&line.key, &line.name));
    if let Some(missing) = wish.figures.iter().find(|wanted| !is_there(wanted)) {
        let what = format!("no result has {}, or neither direction of it is better", missing.text());
        return Err(wrong("figure", what));
    }
    Ok((
        trend::json(&judged),
        trend::text(&judged, Options::default()),
        trend::page(&judged),
        trend::junit(&judged),
        trend::markdown(&judged),
    ))
}

/// In seconds since 1970.
fn from(text: &str, now: u64) -> Option<u64> {
    let ago = || traffic::rate::parse_duration(text).ok().map(|age| now.saturating_sub(age.as_secs()));
    trend::parse_time(text).or_else(ago)
}
