//! `netdyno._core`: the part of the Python package `netdyno` (python/netdyno) that is compiled.
//!
//! It does what needs no rights and no waiting: it checks jobs, makes frames, describes captures, and shows and compares results. Jobs
//! are carried out by a child of the interpreter, `netdyno agent --stdio`, for which this crate has nothing: an interpreter that
//! crashes, forks or is killed is no part of a measurement, and a notebook need not be root.
//!
//! Jobs and results cross the border as JSON. The classes that people see are Python's.

mod captures;
mod clock;
mod craft;
mod errors;
mod over_time;
mod results;
mod settings;

use pyo3::prelude::*;

/// What stands in `netdyno._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("JOB", spec::SCHEMA)?;
    module.add("REPORT", report::model::SCHEMA)?;
    module.add_function(wrap_pyfunction!(settings::settings, module)?)?;
    module.add_function(wrap_pyfunction!(settings::check, module)?)?;
    module.add_function(wrap_pyfunction!(clock::exchange_clocks, module)?)?;
    module.add_function(wrap_pyfunction!(craft::craft_expression, module)?)?;
    module.add_function(wrap_pyfunction!(craft::craft_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(captures::info, module)?)?;
    module.add_function(wrap_pyfunction!(captures::info_text, module)?)?;
    module.add_function(wrap_pyfunction!(captures::frames, module)?)?;
    module.add_function(wrap_pyfunction!(results::normal, module)?)?;
    module.add_function(wrap_pyfunction!(results::read, module)?)?;
    module.add_function(wrap_pyfunction!(results::save, module)?)?;
    module.add_function(wrap_pyfunction!(results::text, module)?)?;
    module.add_function(wrap_pyfunction!(results::page, module)?)?;
    module.add_function(wrap_pyfunction!(results::fragment, module)?)?;
    module.add_function(wrap_pyfunction!(results::figures, module)?)?;
    module.add_function(wrap_pyfunction!(results::compare, module)?)?;
    module.add_function(wrap_pyfunction!(over_time::over_time, module)?)?;
    Ok(())
}
