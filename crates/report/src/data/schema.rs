//! The JSON Schemas of a report and of a comparison, kept in `docs/report.schema.json` and `docs/compare.schema.json` for
//! those who read them by program. A test fails when a file is stale; `NETDYNO_BLESS=1 cargo test -p netdyno-report`
//! writes them anew.

/// That of a report, pretty-printed, with a newline at the end.
pub fn schema() -> String {
    pretty(&schemars::schema_for!(crate::data::model::Report))
}

/// That of a comparison.
pub fn comparison_schema() -> String {
    pretty(&schemars::schema_for!(crate::data::compare::Comparison))
}

/// As it stands in docs.
pub fn pretty(schema: &schemars::Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}
