//! The omni test's output: columns for people, CSV, lines of NAME=VALUE.

use crate::netperf::figures::Figures;
use crate::netperf::selectors::Selection;

/// The lines of a column's header, and its value.
type Column = ([&'static str; 4], String);

/// Columns under four lines of header, a block for each row of selectors.
pub fn human(selection: &Selection, of: &Figures, headers: bool) -> String {
    let mut text = String::new();
    for (n, block) in selection.0.iter().enumerate() {
        if n > 0 {
            text.push('\n');
        }
        let columns: Vec<Column> = block.iter().map(|one| (one.labels(), one.value(of))).collect();
        let width = |(labels, value): &Column| {
            // One blank more than a value has, as its terminating zero has room in netperf's.
            labels.iter().map(|label| label.len()).max().unwrap_or(0).max(value.chars().count() + 1)
        };
        let mut line = |cell: &dyn Fn(&Column) -> String| {
            for column in &columns {
                text.push_str(&format!("{:<width$} ", cell(column), width = width(column)));
            }
            text.push('\n');
        };
        if headers {
            for row in 0..4 {
                line(&|(labels, _)| labels[row].to_owned());
            }
        }
        line(&|(_, value)| value.clone());
    }
    text
}

/// One line of header, one of values.
pub fn csv(selection: &Selection, of: &Figures, headers: bool) -> String {
    let row = |cells: Vec<String>| cells.join(",") + "\n";
    let header = if headers { row(selection.iter().map(|one| one.title()).collect()) } else { String::new() };
    header + &row(selection.iter().map(|one| one.value(of)).collect())
}

/// A line for each.
pub fn keyvals(selection: &Selection, of: &Figures) -> String {
    selection.iter().map(|one| format!("{}={}\n", one.name(), one.value(of))).collect()
}
