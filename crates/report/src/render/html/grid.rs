//! Tables and lists of the page.

use super::escape::Esc;
use crate::data::figure::Measured;
use crate::data::units;

pub(crate) fn first_of(what: &str, limit: usize, all: usize) -> String {
    if all > limit {
        format!("{what} (the first {limit} of {}; the rest is in the data)", units::count(all as u64))
    } else {
        what.to_owned()
    }
}

/// Cells of more characters are sentences or lists.
const LONG: usize = 36;

pub(crate) const DASH: &str = "-";

/// Class of the style sheet, label, the other cells.
pub(crate) type Row = (&'static str, String, Vec<String>);

/// A table with a header; the first column is text. Columns without a value are left out.
pub(crate) struct Grid<const N: usize> {
    header: [&'static str; N],
    rows: Vec<Row>,
}

impl<const N: usize> Grid<N> {
    pub fn new(header: [&'static str; N]) -> Self {
        Self { header, rows: Vec::new() }
    }

    pub fn row<const M: usize>(&mut self, label: &str, cells: [String; M]) {
        self.marked_row("", label, cells);
    }

    /// A row that the style sheet shows by its class; empty for one like the others.
    pub fn marked_row<const M: usize>(&mut self, class: &'static str, label: &str, cells: [String; M]) {
        const { assert!(M + 1 == N, "a row has as many cells as the header") };
        self.rows.push((class, label.to_owned(), cells.into()));
    }

    /// Empty when no row was added. A long one may be cut when printed.
    pub fn card(self, heading: &str, long: bool) -> String {
        drawn(&self.header, &self.rows, heading, long)
    }
}

/// See [`Grid::card`].
pub(crate) fn drawn(header: &[&str], rows: &[Row], heading: &str, long: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let has_value = |at: usize| {
        at == 0
            || rows
                .iter()
                .any(|(_, _, cells)| cells.get(at - 1).is_some_and(|cell| !cell.is_empty() && cell != DASH))
    };
    let shown: Vec<bool> = (0..header.len()).map(has_value).collect();
    let header: String = header
        .iter()
        .zip(&shown)
        .filter(|(_, shown)| **shown)
        .map(|(name, _)| format!("<th scope=\"col\">{}</th>", Esc(name)))
        .collect();
    // A sentence is broken into lines, figures are not.
    let cell = |cell: &String| match cell.chars().count() > LONG {
        true => format!("<td class=\"text\">{}</td>", Esc(cell)),
        false => format!("<td>{}</td>", Esc(cell)),
    };
    let mut body = String::new();
    for (class, label, cells) in rows {
        let kept = cells.iter().zip(shown.iter().skip(1)).filter(|(_, shown)| **shown);
        let cells: String = kept.map(|(text, _)| cell(text)).collect();
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        body += &format!("<tr{class}><td>{}</td>{cells}</tr>\n", Esc(label));
    }
    let table = format!("<table><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table>");
    card(heading, &table, if long { " long" } else { "" })
}

/// Names and values, one a line.
#[derive(Default)]
pub(crate) struct Facts(String);

impl Facts {
    pub fn add(&mut self, name: &str, value: &str) {
        self.0 += &format!("<tr><td>{}</td><td>{}</td></tr>\n", Esc(name), Esc(value));
    }

    pub fn maybe(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.add(name, &value);
        }
    }

    pub fn count(&mut self, name: &str, value: Option<u64>) {
        self.maybe(name, value.map(units::count));
    }

    /// Figures that are listed, each with its meaning for who points at it.
    pub fn figures(&mut self, figures: &[Measured]) {
        for m in figures.iter().filter(|m| m.listed) {
            let (name, meaning) = (m.figure.label, m.figure.meaning);
            let value = m.unit.show(m.value);
            self.0 += &format!(
                "<tr title=\"{}\"><td>{}</td><td>{}</td></tr>\n",
                Esc(meaning),
                Esc(name),
                Esc(&value)
            );
        }
    }

    pub fn card(self, heading: &str) -> String {
        if self.0.is_empty() {
            self.0
        } else {
            card(heading, &format!("<table class=\"facts\"><tbody>\n{}</tbody></table>", self.0), "")
        }
    }
}

fn card(heading: &str, table: &str, class: &str) -> String {
    let heading = if heading.is_empty() { String::new() } else { format!("<h3>{}</h3>", Esc(heading)) };
    format!("<div class=\"card{class}\">{heading}{table}</div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_without_a_value_is_left_out() {
        let mut grid = Grid::new(["of", "known", "never known", "known once"]);
        grid.row("a", ["1".to_owned(), DASH.to_owned(), DASH.to_owned()]);
        grid.marked_row("fault", "b", [DASH.to_owned(), String::new(), "2".to_owned()]);
        let card = grid.card("", false);
        assert!(!card.contains("never known") && card.contains("known once"), "{card}");
        assert_eq!(card.matches("<td>").count(), 6, "{card}");
        assert!(card.contains("<tr class=\"fault\"><td>b</td><td>-</td><td>2</td></tr>"), "{card}");
        assert_eq!(Grid::new(["of", "known"]).card("", false), "");
    }
}
