//! The summary a person reads on the terminal when a run has ended. Plain text without colour, so that it reads
//! the same in a log; nothing in it is meant for programs (that is [`crate::data::json`]).

use crate::data::model::Report;
use crate::data::units::printable;
use crate::render::conclusion;
use crate::render::search_text;
use crate::render::sections::{ALL, Line, Says, conversations, totals};

/// How much to show, and where the page is.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Streams to list at most.
    pub streams: usize,
    /// The written report.html, named in the last line.
    pub page: Option<&'a str>,
    /// Show everything, and not only what was measured and what is worse than expected.
    pub verbose: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// How settings are spoken of ([`crate::data::setting::worded`]), applied before lines are folded.
    pub said: fn(&str) -> String,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { streams: 8, page: None, verbose: false, width: 80, said: str::to_owned }
    }
}

/// Columns that labels take.
const LABEL: usize = 9;

/// The whole summary, ending with the verdict and what to do next.
pub fn render(report: &Report, options: Options<'_>) -> String {
    let lines = ALL.iter().flat_map(|section| section.lines(report));
    let lines = lines.filter(|line| options.verbose || !line.expected);
    let lines = lines.map(|line| shown(&line, options)).collect();
    let searched = (options.said)(&search_text::render(report, options));
    let mut parts = vec![totals::text(report, options), searched, lines];
    parts.extend(ALL.iter().flat_map(|section| section.tables(report, options)));
    parts.push((options.said)(&conversations::text(&report.result.conversations, options)));
    parts.push(warnings(report, options));
    let mut out = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        out += &part;
        out.push('\n');
    }
    out + &ending(report, options)
}

/// A line of the summary as it is shown, on as many lines as it needs.
fn shown(line: &Line, options: Options<'_>) -> String {
    let says = line.brief.as_ref().filter(|_| !options.verbose).unwrap_or(&line.says);
    match says {
        Says::Facts(facts) => {
            let said: Vec<String> = facts.iter().map(|fact| (options.said)(fact)).collect();
            wrapped(line.label, &said, options.width)
        }
        Says::Text(text) => folded(line.label, &(options.said)(&printable(text)), options.width),
    }
}

/// Stands for a space at which a line does not end; what is shown has no control characters.
const GLUE: &str = "\0";

/// The label, then the facts with commas between, on as many lines as they need. Empty without facts. One that is too long for
/// a line by itself is folded between its words, others stay whole.
fn wrapped(label: &str, facts: &[String], width: usize) -> String {
    let fits = |fact: &str| LABEL + 1 + fact.chars().count() < width;
    let whole = |fact: &String| if fits(fact) { fact.replace(' ', GLUE) } else { fact.clone() };
    match facts.iter().map(whole).collect::<Vec<_>>().join(", ").as_str() {
        "" => String::new(),
        facts => folded(label, facts, width).replace(GLUE, " "),
    }
}

/// The label, then the text on as many lines as it needs.
fn folded(label: &str, text: &str, width: usize) -> String {
    fold(&format!("{label:<LABEL$} {text}"), LABEL + 1, width)
}

/// A text folded between its words, so that no line is longer than `width` if its words are not; all lines but the first begin
/// with so many spaces. Ends with a line's end.
pub fn fold(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    // Spaces in front and between columns stay.
    for word in text.split_inclusive(' ') {
        let full = line.chars().count() + word.trim_end_matches(' ').chars().count() > width;
        if full && !line.trim().is_empty() {
            out += line.trim_end_matches(' ');
            out.push('\n');
            line = " ".repeat(indent);
        }
        line += word;
    }
    out + line.trim_end_matches(' ') + "\n"
}

fn warnings(report: &Report, options: Options<'_>) -> String {
    let warned = report.warnings.iter().map(|w| (options.said)(&format!("warning: {}", printable(w))));
    warned.map(|text| fold(&text, LABEL, options.width)).collect()
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
    if !out.ends_with('?') && !out.ends_with("...") {
        out.push('.');
    }
    let mut out = fold(&(options.said)(&out), 0, options.width);
    let cause = conclusion::cause(report);
    if !cause.is_empty() {
        out += &fold(&(options.said)(&printable(&cause)), 0, options.width);
    }
    let next = (options.said)(&conclusion::next_step(report, options.page));
    let last = out.lines().last().map_or(0, |line| line.chars().count());
    match next.as_str() {
        "" => out,
        // On the last line, if there is room.
        next if last + 1 + next.chars().count() <= options.width => format!("{} {next}\n", out.trim_end()),
        next => out + &fold(next, 0, options.width),
    }
}
