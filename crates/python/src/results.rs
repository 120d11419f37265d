//! Results: read, shown, saved, compared.

use crate::errors::{Place, usage};
use pyo3::prelude::*;
use report::Report;
use report::compare::Named;
use report::text::Options;
use std::path::PathBuf;

/// A result of its JSON, of this version's layout or of an earlier one's.
fn of(py: Python<'_>, text: &str) -> PyResult<Report> {
    report::json::from_str(text).map_err(|error| usage(py, &error.to_string(), Place::default()))
}

/// A result's JSON in this version's layout, in one line.
#[pyfunction]
pub(crate) fn normal(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(report::json::in_one_line(&of(py, text)?))
}

/// The JSON of a result on disk: a folder of `--report`, its result.json or report.html, or what `--json` printed.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let found = py.detach(|| report::read(&path));
    let found = found.map_err(|error| usage(py, &error.to_string(), Place::default()))?;
    Ok(report::json::in_one_line(&found))
}

/// Writes a result into a folder, as `--report` does.
#[pyfunction]
pub(crate) fn save(py: Python<'_>, text: &str, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
    let of = of(py, text)?;
    let written = py.detach(|| report::write_dir(&of, &folder));
    let written = written.map_err(|error| usage(py, &error.to_string(), Place::default()))?;
    let report::store::Written { json, figures, csv, trials, html } = written;
    Ok([Some(json), Some(figures), Some(csv), trials, Some(html)].into_iter().flatten().collect())
}

/// The summary for a terminal.
#[pyfunction]
pub(crate) fn text(py: Python<'_>, text: &str, width: usize, verbose: bool) -> PyResult<String> {
    let of = of(py, text)?;
    Ok(report::text::render(&of, Options { width, verbose, ..Options::default() }))
}

/// The page, which opens offline.
#[pyfunction]
pub(crate) fn page(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(report::html::render(&of(py, text)?))
}

/// What a notebook shows: verdict, figures and plots, without a script.
#[pyfunction]
pub(crate) fn fragment(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(report::html::fragment(&of(py, text)?))
}

/// All figures of a result, as lines of figures.csv.
#[pyfunction]
pub(crate) fn figures(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(report::csv::figures(&of(py, text)?))
}

/// Compares results of side A with those of side B, each with its name: the comparison as JSON, as text and as a page.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    a: Vec<(String, String)>,
    b: Vec<(String, String)>,
    least: f64,
) -> PyResult<(String, String, String)> {
    let read = |side: &[(String, String)]| -> PyResult<Vec<(String, Report)>> {
        side.iter().map(|(name, text)| Ok((name.clone(), of(py, text)?))).collect()
    };
    let (a, b) = (read(&a)?, read(&b)?);
    fn named(side: &[(String, Report)]) -> Vec<Named<'_>> {
        side.iter().map(|(name, report)| Named { name: name.clone(), report }).collect()
    }
    let (a, b) = (named(&a), named(&b));
    let compared = report::compare::compare(&a, &b, least);
    let compared = compared.map_err(|error| usage(py, &error.to_string(), Place::default()))?;
    let text = report::compare::render(&compared, Options::default());
    let page = report::html::comparison(&compared, &a, &b);
    Ok((serde_json::to_string(&compared).unwrap_or_default(), text, page))
}
