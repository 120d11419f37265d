//! The report as JSON: what `--json` prints and `result.json` holds. Members stand in the model's order.

use serde::{Deserialize, Serialize};

use crate::model::{Report, SCHEMA};

/// Why a text is not a report this version reads.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("not a netdyno report: {0}; give the result.json or report.html that `--report DIR` wrote")]
    NotJson(serde_json::Error),
    #[error("not a netdyno report: it has no `schema` member that begins with `netdyno.report/`")]
    NotAReport,
    #[error("the report has the layout `{found}`, this netdyno reads `{SCHEMA}`; use a netdyno of its age")]
    OtherVersion { found: String },
    #[error("the report is damaged: {0}")]
    Damaged(serde_json::Error),
    #[error("the page holds no report data; give a report.html that netdyno wrote")]
    NoDataInPage,
}

/// Pretty-printed, with a newline at the end.
pub fn to_string(report: &Report) -> String {
    // Serialising a Report cannot fail: no map with keys other than strings, no foreign Serialize.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

/// What `--json-lines` prints, in one line, which it ends: a report, which is the last, or how a run stands.
pub fn line(told: &impl Serialize) -> String {
    let mut text = serde_json::to_string(told).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads what [`to_string`] wrote, by this or a later minor version.
pub fn from_str(text: &str) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    let head: Head = serde_json::from_str(text).map_err(ReadError::NotJson)?;
    match head.schema {
        Some(schema) if schema == SCHEMA => serde_json::from_str(text).map_err(ReadError::Damaged),
        Some(found) if found.starts_with("netdyno.report/") => {
            Err(ReadError::OtherVersion { found: crate::units::printable(&found) })
        }
        _ => Err(ReadError::NotAReport),
    }
}
