//! What captures hold.

use crate::errors::{Place, usage};
use capture::{CaptureError, Reader, info::summarise};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::path::{Path, PathBuf};

fn open(path: &Path, lenient: bool) -> Result<Reader, CaptureError> {
    let reader = Reader::open(path)?;
    Ok(if lenient { reader.lenient() } else { reader })
}

fn summary(path: &Path, lenient: bool) -> Result<capture::info::Info, CaptureError> {
    summarise(&mut open(path, lenient)?)
}

/// What a capture holds, as JSON (as `netdyno info --json`).
#[pyfunction]
pub(crate) fn info(py: Python<'_>, path: PathBuf, lenient: bool) -> PyResult<String> {
    let found = py.detach(|| summary(&path, lenient));
    let found = found.map_err(|error| usage(py, &error.to_string(), Place::default()))?;
    Ok(serde_json::to_string(&found).unwrap_or_default())
}

/// The same as text for people.
#[pyfunction]
pub(crate) fn info_text(py: Python<'_>, path: PathBuf, lenient: bool) -> PyResult<String> {
    let found = py.detach(|| summary(&path, lenient));
    Ok(found.map_err(|error| usage(py, &error.to_string(), Place::default()))?.text())
}

/// The frames of a capture: when each was captured, in nanoseconds since 1970, and its bytes. At most `limit`.
#[pyfunction]
pub(crate) fn frames<'py>(
    py: Python<'py>,
    path: PathBuf,
    limit: u64,
    lenient: bool,
) -> PyResult<Bound<'py, PyList>> {
    let bad = |error: CaptureError| usage(py, &error.to_string(), Place::default());
    let mut reader = open(&path, lenient).map_err(bad)?;
    let found = PyList::empty(py);
    for number in 0..limit {
        let Some(record) = reader.next_record().map_err(bad)? else { break };
        found.append((record.time_ns, PyBytes::new(py, record.data)))?;
        if number % 4096 == 0 {
            py.check_signals()?;
        }
    }
    Ok(found)
}
