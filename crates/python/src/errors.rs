//! Errors as Python sees them: those of `netdyno.errors`, so that they have their place, hint and remedy as members.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Where an error's setting or character is, as far as it is known.
#[derive(Default)]
pub(crate) struct Place<'a> {
    pub setting: Option<&'a str>,
    pub column: Option<usize>,
}

/// A `netdyno.UsageError`: what was asked makes no sense.
pub(crate) fn usage(py: Python<'_>, message: &str, place: Place<'_>) -> PyErr {
    let made = || {
        let members = PyDict::new(py);
        if let Some(setting) = place.setting {
            members.set_item("setting", setting)?;
        }
        if let Some(column) = place.column {
            members.set_item("column", column)?;
        }
        py.import("netdyno.errors")?.getattr("UsageError")?.call((message,), Some(&members))
    };
    made().map_or_else(|error: PyErr| error, PyErr::from_value)
}
