//! The report as JSON: what `--json` prints and `result.json` holds. Members stand in the model's order.

use serde::{Deserialize, Serialize};

use crate::data::model::{Report, SCHEMA};

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

/// What `--json-lines` prints of how a run stands, in one line, which it ends.
pub fn line(told: &impl Serialize) -> String {
    let mut text = serde_json::to_string(told).unwrap_or_default();
    text.push('\n');
    text
}

/// The same of a report, which is the last. Made of [`to_string`]: all that writes a report is compiled once, for one way of
/// writing it.
pub fn in_one_line(report: &Report) -> String {
    let (text, mut line) = (to_string(report), String::new());
    let (mut in_text, mut escaped) = (false, false);
    for letter in text.chars() {
        // Between texts blanks and line breaks mean nothing.
        if in_text || !letter.is_ascii_whitespace() {
            line.push(letter);
        }
        in_text ^= letter == '"' && !escaped;
        escaped = in_text && letter == '\\' && !escaped;
    }
    line.push('\n');
    line
}

fn read(report: Result<Report, serde_json::Error>) -> Result<Report, ReadError> {
    let mut report = report.map_err(ReadError::Damaged)?;
    report.know_codes();
    Ok(report)
}

/// Reads what [`to_string`] wrote.
///
/// # Errors
/// That the text is no JSON, is no report, or is one of another version; each with where.
pub fn from_str(text: &str) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    let head: Head = serde_json::from_str(text).map_err(ReadError::NotJson)?;
    match head.schema {
        Some(schema) if schema == SCHEMA => read(serde_json::from_str(text)),
        Some(found) if found.starts_with("netdyno.report/") => {
            Err(ReadError::OtherVersion { found: crate::data::units::printable(&found) })
        }
        _ => Err(ReadError::NotAReport),
    }
}

/// The same of what was read as JSON already.
///
/// # Errors
/// That it is no report of this version.
pub fn from_value(value: serde_json::Value) -> Result<Report, ReadError> {
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(schema) if schema == SCHEMA => read(serde_json::from_value(value)),
        Some(found) => Err(ReadError::OtherVersion { found: crate::data::units::printable(found) }),
        None => Err(ReadError::NotAReport),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_same_report_without_what_means_nothing() {
        let mut report = Report::new("send");
        report.command_line =
            vec!["netdyno".to_owned(), r#"a "b" \\ c:  d, {"#.to_owned(), "\\\"".to_owned()];
        let line = in_one_line(&report);
        assert_eq!(line, serde_json::to_string(&report).expect("JSON") + "\n");
    }
}
