//! The summary a person reads on the terminal when a run has ended. Plain text without colour, so that it reads
//! the same in a log; nothing in it is meant for programs (that is [`crate::json`]).

use crate::conclusion;
use crate::model::Report;
use crate::search_text;
use crate::sections::{ALL, Line, Says, conversations, totals};
use crate::units::printable;

/// How much to show, and where the page is.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Streams to list at most.
    pub streams: usize,
    /// The written report.html, named in the last line.
    pub page: Option<&'a str>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { streams: 8, page: None }
    }
}

/// Columns that lines of facts are folded to; tables take what they need.
const WIDTH: usize = 100;

/// The whole summary, ending with the verdict and what to do next.
pub fn render(report: &Report, options: Options<'_>) -> String {
    let lines = ALL.iter().flat_map(|section| section.lines(report)).map(|line| line.to_string()).collect();
    let mut parts = vec![totals::text(report), search_text::render(report), lines];
    parts.extend(ALL.iter().flat_map(|section| section.tables(report, options)));
    parts.push(conversations::text(&report.result.conversations));
    parts.push(warnings(report));
    let mut out = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        out += &part;
        out.push('\n');
    }
    out + &ending(report, options)
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match &self.says {
            Says::Facts(facts) => wrapped(self.label, facts),
            Says::Text(text) => folded(self.label, &printable(text)),
        })
    }
}

/// The label, then the facts with commas between, on as many lines as they need. Empty without facts.
fn wrapped(label: &str, facts: &[String]) -> String {
    let mut out = String::new();
    let mut line = format!("{label:<9}");
    for (i, fact) in facts.iter().enumerate() {
        let comma = if i + 1 < facts.len() { "," } else { "" };
        if i > 0 && line.chars().count() + fact.chars().count() + 2 > WIDTH {
            out += &format!("{line}\n");
            line = " ".repeat(9);
        }
        line += &format!(" {fact}{comma}");
    }
    if facts.is_empty() { out } else { format!("{out}{line}\n") }
}

/// The label, then the text on as many lines as it needs.
fn folded(label: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = format!("{label:<9}");
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() + 1 > WIDTH {
            out += &format!("{line}\n");
            line = " ".repeat(9);
        }
        line += &format!(" {word}");
    }
    format!("{out}{line}\n")
}

fn warnings(report: &Report) -> String {
    report.warnings.iter().map(|w| format!("warning: {}\n", printable(w))).collect()
}

/// The verdict with its reasons, then what to do next.
fn ending(report: &Report, options: Options<'_>) -> String {
    let verdict = &report.result.verdict;
    let mut out = conclusion::verdict(report);
    if verdict.reasons().is_empty() && conclusion::is_by_count(report) {
        out += &format!(": {}", conclusion::BY_COUNT);
    }
    if !verdict.reasons().is_empty() {
        out += &format!(": {}", printable(&conclusion::reasons(verdict)));
    }
    out += if out.ends_with('?') || out.ends_with("...") { "\n" } else { ".\n" };
    let cause = conclusion::cause(report);
    if !cause.is_empty() {
        out += &format!("{}\n", printable(&cause));
    }
    let next = conclusion::next_step(report, options.page);
    if next.is_empty() { out } else { out + &next + "\n" }
}
