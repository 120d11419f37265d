//! A trend for machines that build: Markdown for a summary, JUnit's XML for a list of tests.

use crate::series::{Line, Outcome, Series, Trend};
use crate::text::{counts, left_out};
use report::html::escaped;
use report::units::printable;

/// A table of what changed, and what was looked at.
pub fn markdown(trend: &Trend) -> String {
    let title = match trend.outcome {
        _ if !trend.not_done.is_empty() => "The newest run was not done",
        Outcome::Worse => "Worse than before",
        Outcome::Better => "Better than before",
        Outcome::Same => "No change",
        Outcome::NotJudged => "Nothing to judge yet",
    };
    let mut out = format!("## netdyno trend: {title}\n\n{}\n", cell(&counts(trend)));
    let changed: Vec<(&Series, &Line)> =
        trend.lines().filter(|(_, line)| matches!(line.outcome, Outcome::Worse | Outcome::Better)).collect();
    if !changed.is_empty() {
        out += "\n| figure | change | before | now | began after | what else changed there |\n|---|---|---|---|---|---|\n";
    }
    for (series, line) in changed {
        let Some(shift) = &line.shift else { continue };
        let word = if line.outcome == Outcome::Worse { "**worse**" } else { "better" };
        let ratio = shift.ratio.map(|ratio| format!(" {}", report::units::percent(ratio)));
        let changed: Vec<String> = shift.changed.iter().map(crate::Changed::words).collect();
        out += &format!(
            "| {}<br>{} | {word}{} | {} | {} | {} | {} |\n",
            cell(&line.name),
            cell(&series.name),
            ratio.unwrap_or_default(),
            cell(&line.unit.show(shift.before)),
            cell(&line.unit.show(shift.now)),
            cell(&series.named(shift.after)),
            cell(&changed.join("; ")),
        );
    }
    for run in &trend.not_done {
        out += &format!("\n**{}**\n", cell(&run.told()));
    }
    for text in left_out(trend).into_iter().chain(trend.notes.clone()) {
        out += &format!("\n- {}", cell(&text));
    }
    out.trim_end().to_owned() + "\n"
}

/// A text that ends no cell, and is no markup.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in escaped(text).chars() {
        if "|\\`*_[]".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A test for each figure of each series: one that is worse has failed.
pub fn junit(trend: &Trend) -> String {
    let failed = trend.worse().count() + trend.not_done.len();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"netdyno trend\" tests=\"{}\" failures=\"{failed}\">\n",
        trend.lines().count() + trend.not_done.len()
    );
    for series in &trend.series {
        let worse = series.figures.iter().filter(|line| line.outcome == Outcome::Worse).count();
        let skipped = series.figures.iter().filter(|line| line.outcome == Outcome::NotJudged).count();
        out += &format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{worse}\" skipped=\"{skipped}\">\n",
            escaped(&series.name),
            series.figures.len()
        );
        for line in &series.figures {
            out += &case(series, line);
        }
        out += "  </testsuite>\n";
    }
    for run in &trend.not_done {
        out += &format!(
            "  <testsuite name=\"{0}\" tests=\"1\" failures=\"1\" skipped=\"0\">\n    <testcase name=\"the newest run is done\" classname=\"{0}\">\n      \
             <failure message=\"{1}\"/>\n    </testcase>\n  </testsuite>\n",
            escaped(&run.name),
            escaped(&printable(&run.told()))
        );
    }
    out + "</testsuites>\n"
}

fn case(series: &Series, line: &Line) -> String {
    let class = match series.host.as_str() {
        "" => series.name.clone(),
        host => format!("{} on {host}", series.name),
    };
    let head = format!("    <testcase name=\"{}\" classname=\"{}\"", escaped(&line.name), escaped(&class));
    match line.outcome {
        Outcome::Worse => {
            let told = line.told(series).map(|told| printable(&told)).unwrap_or_default();
            format!("{head}>\n      <failure message=\"{}\"/>\n    </testcase>\n", escaped(&told))
        }
        Outcome::NotJudged => format!(
            "{head}>\n      <skipped message=\"too few results, or the newest does not have it\"/>\n    </testcase>\n"
        ),
        _ => format!("{head}/>\n"),
    }
}
