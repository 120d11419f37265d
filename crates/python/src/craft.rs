//! Frames of expressions and scenarios, as bytes.

use crate::errors::{Place, usage};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use scenario::{Context, Sign};
use traffic::expr::{Options, Size};
use traffic::{Executor, Program, Rate, Slab};

/// All bytes of the frames that one call makes: more is for a file (`netdyno craft -w`).
const MOST_BYTES: u64 = 4 << 30;

/// Frames `first`, `first + 1`, ... of an expression, `count` of them or fewer where it ends, without FCS.
#[pyfunction]
pub(crate) fn craft_expression<'py>(
    py: Python<'py>,
    what: &str,
    first: u64,
    count: u64,
    size: Option<&str>,
    seed: u64,
    sign: bool,
) -> PyResult<Bound<'py, PyList>> {
    let options =
        Options { size: read_size(py, size)?, seed, signature: sign.then_some(0), name: String::new() };
    let program = traffic::expr::compile(what, &options).map_err(|error| {
        usage(py, &error.to_string(), Place { column: Some(error.column), setting: Some("what") })
    })?;
    frames(py, &program, first, count)
}

/// The same of a scenario, as the text of its file; `name` is the file's, for messages.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of nd.craft")]
pub(crate) fn craft_scenario<'py>(
    py: Python<'py>,
    text: &str,
    name: &str,
    first: u64,
    count: u64,
    size: Option<&str>,
    seed: u64,
    sign: bool,
    link_speed: &str,
) -> PyResult<Bound<'py, PyList>> {
    let bad = |error: &scenario::ScenarioError| {
        usage(py, &error.to_string(), Place { column: Some(error.column), setting: Some("what") })
    };
    let scenario = scenario::parse(text, name).map_err(|error| bad(&error))?;
    let rate = scenario.wants_rate().then_some(traffic::Rate::TopSpeed);
    let context = Context {
        seed: scenario.seed().unwrap_or(seed),
        sign: if sign { Sign::All } else { Sign::No },
        rate,
        size: read_size(py, size)?,
        link_bits_per_second: Some(read_speed(py, link_speed)?),
        ..Context::default()
    };
    let compiled = scenario.compile(&context).map_err(|error| bad(&error))?;
    frames(py, &compiled.program, first, count)
}

/// What rates in percent are percent of.
fn read_speed(py: Python<'_>, text: &str) -> PyResult<u64> {
    match text.parse::<Rate>() {
        Ok(Rate::Bits { bits_per_second, .. }) => Ok(bits_per_second),
        _ => {
            let place = Place { setting: Some("link_speed"), ..Place::default() };
            let what = format!("`{text}` is no link's speed: write 10gbps or 100mbps");
            Err(usage(py, &what, place))
        }
    }
}

fn read_size(py: Python<'_>, size: Option<&str>) -> PyResult<Option<Size>> {
    let read = |text: &str| {
        let place = Place { setting: Some("size"), ..Place::default() };
        text.parse::<Size>().map_err(|error| usage(py, &error.to_string(), place))
    };
    size.map(read).transpose()
}

fn frames<'py>(py: Python<'py>, program: &Program, first: u64, count: u64) -> PyResult<Bound<'py, PyList>> {
    let bad = |message: &str| usage(py, message, Place::default());
    let mut executor = Executor::new(program).map_err(|error| bad(&error.to_string()))?;
    executor.seek(first);
    let longest = usize::try_from(program.longest()).unwrap_or(usize::MAX);
    let mut slab = Slab::new(traffic::executor::BATCH, longest);
    let made = PyList::empty(py);
    let (mut left, mut bytes) = (count, 0_u64);
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(traffic::executor::BATCH);
        let rendered = executor.render(&mut slab.buffers(), wanted, || 0);
        if rendered == 0 {
            break;
        }
        for index in 0..rendered {
            let frame = slab.frame(index);
            bytes = bytes.saturating_add(frame.len() as u64);
            made.append(PyBytes::new(py, frame))?;
        }
        if bytes > MOST_BYTES {
            return Err(bad(
                "these frames take more than 4 GiB of memory: craft fewer at a time (first=, count=), or into a file with `netdyno craft -w`",
            ));
        }
        // Ctrl-C ends even this.
        py.check_signals()?;
        left -= rendered as u64;
    }
    Ok(made)
}
