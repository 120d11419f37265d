//! The report as JSON: what `--json` prints and `result.json` holds. Members stand in the model's order.

use serde::{Deserialize, Serialize};

use crate::model::{Report, SCHEMA};
use crate::version1;

/// Why a text is not a report this version reads.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no JSON.
    #[error("not a netdyno report: {0}; give the result.json or report.html of a report folder")]
    NotJson(serde_json::Error),
    /// It has no member `schema`.
    #[error("not a netdyno report: it has no `schema` member that begins with `netdyno.report/`")]
    NotAReport,
    /// It is of a layout that this netdyno does not know.
    #[error("the report has the layout `{found}`, this netdyno reads `{SCHEMA}`; use a netdyno of its age")]
    OtherVersion {
        /// What it says of itself.
        found: String,
    },
    /// Members are missing, or of other types.
    #[error("the report is damaged: {0}")]
    Damaged(serde_json::Error),
    /// The page is none of ours.
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

fn read(report: Result<Report, serde_json::Error>) -> Result<Report, ReadError> {
    let mut report = report.map_err(ReadError::Damaged)?;
    report.know_codes();
    Ok(report)
}

/// Reads what [`to_string`] wrote, by this version or version 1.
///
/// # Errors
/// That the text is no JSON, is no report, or is one of a version to come; each with where.
pub fn from_str(text: &str) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    let head: Head = serde_json::from_str(text).map_err(ReadError::NotJson)?;
    match head.schema {
        Some(schema) if schema == SCHEMA => read(serde_json::from_str(text)),
        Some(schema) if schema == version1::SCHEMA => {
            let mut value = serde_json::from_str(text).map_err(ReadError::NotJson)?;
            version1::renew(&mut value);
            read(serde_json::from_value(value))
        }
        Some(found) if found.starts_with("netdyno.report/") => {
            Err(ReadError::OtherVersion { found: crate::units::printable(&found) })
        }
        _ => Err(ReadError::NotAReport),
    }
}
