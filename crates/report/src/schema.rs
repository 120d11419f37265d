//! The JSON Schema of a report, kept in `docs/report.schema.json` for those who read results by program. A test
//! fails when that file is stale; `NETDYNO_BLESS=1 cargo test -p netdyno-report` writes it anew.

/// The schema, pretty-printed, with a newline at the end.
pub fn schema() -> String {
    let schema = schemars::schema_for!(crate::model::Report);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
