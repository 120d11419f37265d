//! Jobs: the table of their settings, and whether one makes sense.

use crate::errors::{Place, usage};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;
use spec::setting::{Member, Setting, Shape, each};
use spec::{BadFile, EndpointFind, File, Find, Job, SessionsFind};
use std::ffi::OsStr;

/// What Python needs to know of a setting to make an argument of it.
#[derive(Serialize)]
struct Row {
    /// Its path in the job: `meter.check_content`.
    path: String,
    /// Its option on the command line, in words of Python: `check_content`. That is the argument's name.
    argument: String,
    text: &'static str,
    value: &'static str,
    shape: &'static str,
    required: bool,
    is_path: bool,
    consent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<&'static str>,
    /// Other words that mean one of its values.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    other_words: &'static [(&'static str, &'static str)],
    /// Its values are true and false.
    switch: bool,
    /// It takes a number.
    number: bool,
    /// What a bare number of Python's is in: frames per second, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    /// It stands by its place, without a name.
    by_place: bool,
}

impl Row {
    fn of(path: &str, setting: &'static Setting) -> Row {
        let takes = |text: &str| (setting.reads)(OsStr::new(text)).is_ok();
        let named = setting.option.unwrap_or(setting.name);
        let switch = setting.shape == Shape::Flag || (takes("true") && takes("false") && !takes("x"));
        let number = ["1", "64", "0.5", "1000"].into_iter().any(takes);
        // (A load of endpoints may be in three units: there a number says nothing.)
        let unit = match () {
            () if number => None,
            () if takes("1pps") && !takes("1tps") => Some("pps"),
            () if takes("1s") => Some("s"),
            () => None,
        };
        Row {
            path: path.to_owned(),
            argument: named.replace('-', "_"),
            text: setting.text,
            value: setting.value,
            shape: match setting.shape {
                Shape::Flag => "flag",
                Shape::One => "one",
                Shape::Many => "many",
                Shape::Pair => "pair",
            },
            required: setting.required,
            is_path: setting.is_path,
            consent: setting.consent,
            default: setting.default,
            least: setting.bounds.0,
            most: setting.bounds.1,
            words: (setting.words)(),
            other_words: setting.other_words,
            switch,
            // Any text is a name, and so are digits.
            number: number && !takes("no such value, surely"),
            unit: unit.filter(|_| !takes("no such value, surely")),
            by_place: setting.option.is_none() && setting.shorthands.is_empty(),
        }
    }
}

fn rows(members: &'static [Member]) -> Vec<Row> {
    let mut rows = Vec::new();
    each(members, &mut |path, setting| rows.push(Row::of(path, setting)));
    rows
}

/// The settings of each kind of job as JSON: `{"send": [{path, argument, text, ...}, ...], ...}`. A search has those of what it
/// looks for besides, as `search throughput`.
#[pyfunction]
pub(crate) fn settings() -> String {
    let mut table = serde_json::Map::new();
    let mut put = |name: String, rows: Vec<Row>| {
        table.insert(name, serde_json::to_value(rows).unwrap_or_default());
    };
    for (kind, members) in Job::SETTINGS {
        put((*kind).to_owned(), rows(members()));
    }
    for (find, members) in Find::SETTINGS {
        put(format!("search {find}"), rows(members));
    }
    // Of each search between endpoints and by sessions those that are its own.
    for (kind, finds) in
        [("endpoint-search", EndpointFind::SETTINGS), ("sessions-search", SessionsFind::SETTINGS)]
    {
        for (find, members) in finds {
            put(format!("{kind} {find}"), rows(members));
        }
    }
    Value::Object(table).to_string()
}

/// A job (JSON, with `schema` and `kind`) as it is written in full, and what it needs to be allowed.
///
/// Raises `netdyno.UsageError`, which names the setting.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, job: &str) -> PyResult<(String, String)> {
    let value: Value =
        serde_json::from_str(job).map_err(|error| usage(py, &error.to_string(), Place::default()))?;
    let file = File::of(value).map_err(|error| match &error {
        BadFile::Member { path, what } => usage(py, what, Place { setting: Some(path), ..Place::default() }),
        BadFile::Yaml(_) => usage(py, &error.to_string(), Place::default()),
    })?;
    let Some(job) = file.jobs.into_iter().next() else {
        return Err(usage(py, "it holds no job", Place::default()));
    };
    let asks = job.asks();
    let asks = serde_json::json!({
        "yes_disrupt": asks.yes_disrupt,
        "command": asks.command,
        "write": asks.write,
        "read": asks.read,
        "addresses": asks.addresses,
        "public_targets": asks.public_targets,
        "own_prefixes": asks.own_prefixes,
    });
    let written = job.to_value().map_err(|error| usage(py, &error.to_string(), Place::default()))?;
    Ok((written.to_string(), asks.to_string()))
}
