//! A table, described once: its columns, each with a header, a unit and the value of a row, and its rows. It is drawn as text for
//! the terminal, and as a card of the page.

use super::html::grid;
use super::table::{Less, Table};
use super::text::Options;
use crate::data::figure::Unit;
use crate::data::units::{self, printable};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Everywhere,
    OnTerminal,
    OnPage,
}

/// A column, the value of each row in it; `None` where a row has none.
pub(crate) struct Column<R> {
    header: &'static str,
    /// Above it on the terminal, where that is another.
    on_terminal: Option<&'static str>,
    shown: Shown,
    value: Value<R>,
}

enum Value<R> {
    Number(Unit, fn(&R) -> Option<f64>),
    Whole(Unit, fn(&R) -> Option<u64>),
    Text(fn(&R) -> Option<String>),
}

/// A column of numbers.
pub(crate) fn number<R>(header: &'static str, unit: Unit, value: fn(&R) -> Option<f64>) -> Column<R> {
    Column { header, on_terminal: None, shown: Shown::Everywhere, value: Value::Number(unit, value) }
}

/// A column of counts.
pub(crate) fn count<R>(header: &'static str, value: fn(&R) -> Option<u64>) -> Column<R> {
    Column { header, on_terminal: None, shown: Shown::Everywhere, value: Value::Whole(Unit::Count, value) }
}

/// A column of times in nanoseconds.
pub(crate) fn time<R>(header: &'static str, value: fn(&R) -> Option<u64>) -> Column<R> {
    Column { header, on_terminal: None, shown: Shown::Everywhere, value: Value::Whole(Unit::Ns, value) }
}

/// A column of anything else.
pub(crate) fn text<R>(header: &'static str, value: fn(&R) -> Option<String>) -> Column<R> {
    Column { header, on_terminal: None, shown: Shown::Everywhere, value: Value::Text(value) }
}

/// A column with another header on the terminal.
pub(crate) fn called<R>(on_terminal: &'static str, column: Column<R>) -> Column<R> {
    Column { on_terminal: Some(on_terminal), ..column }
}

pub(crate) fn only_on_terminal<R>(column: Column<R>) -> Column<R> {
    Column { shown: Shown::OnTerminal, ..column }
}

pub(crate) fn only_on_page<R>(column: Column<R>) -> Column<R> {
    Column { shown: Shown::OnPage, ..column }
}

impl<R> Column<R> {
    fn cell(&self, row: &R) -> Option<String> {
        match self.value {
            Value::Number(unit, value) => value(row).map(|value| unit.show(value)),
            Value::Whole(Unit::Count, value) => value(row).map(units::count),
            Value::Whole(Unit::Ns, value) => value(row).map(units::time),
            Value::Whole(unit, value) => value(row).map(|value| unit.show(value as f64)),
            Value::Text(value) => value(row),
        }
    }
}

/// A table. Its first column names the rows.
pub(crate) struct Tabular<R> {
    columns: Vec<Column<R>>,
    /// A class of the style sheet (empty for a row like the others), and the row.
    rows: Vec<(&'static str, R)>,
    /// What is done where the terminal is too narrow.
    less: &'static [Less<'static>],
}

impl<R> Tabular<R> {
    pub fn new<const N: usize>(columns: [Column<R>; N], less: &'static [Less<'static>]) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), less }
    }

    /// With a row for each, like all others.
    pub fn of(self, rows: impl IntoIterator<Item = R>) -> Self {
        self.marked(rows, |_| "")
    }

    /// With a row for each, which the page shows by its class.
    pub fn marked(mut self, rows: impl IntoIterator<Item = R>, class: fn(&R) -> &'static str) -> Self {
        self.rows.extend(rows.into_iter().map(|row| (class(&row), row)));
        self
    }

    /// For the terminal; empty without rows.
    pub fn text(&self, options: Options<'_>) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let shown: Vec<&Column<R>> = self.columns.iter().filter(|c| c.shown != Shown::OnPage).collect();
        let mut table = Table::with_columns(shown.iter().map(|c| c.on_terminal.unwrap_or(c.header)));
        for (_, row) in &self.rows {
            let mut cells = shown.iter().map(|column| column.cell(row));
            let label = cells.next().flatten().unwrap_or_default();
            table.cells(&label, cells.map(|cell| cell.map(|cell| printable(&cell))));
        }
        table.within(options, self.less)
    }

    /// For the page; empty without rows. A long one may be cut when printed.
    pub fn card(&self, heading: &str, long: bool) -> String {
        let shown: Vec<&Column<R>> = self.columns.iter().filter(|c| c.shown != Shown::OnTerminal).collect();
        let header: Vec<&str> = shown.iter().map(|column| column.header).collect();
        let row = |(class, row): &(&'static str, R)| {
            let mut cells = shown.iter().map(|column| column.cell(row));
            let label = cells.next().flatten().unwrap_or_default();
            (*class, label, cells.map(|cell| cell.unwrap_or_else(|| grid::DASH.to_owned())).collect())
        };
        let rows: Vec<grid::Row> = self.rows.iter().map(row).collect();
        grid::drawn(&header, &rows, heading, long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Found {
        size: &'static str,
        rate: Option<f64>,
        trials: u64,
    }

    fn table(found: Vec<Found>) -> Tabular<Found> {
        let columns: [Column<Found>; 5] = [
            text("frame size", |found| Some(found.size.to_owned())),
            called("rate", number("frames/s", Unit::FramesPerSecond, |found| found.rate)),
            count("trials", |found| Some(found.trials)),
            only_on_page(text("near enough", |_| Some("yes".to_owned()))),
            only_on_terminal(text("more", |_| Some("in the JSON".to_owned()))),
        ];
        let less = &[Less::Without(&["more"])];
        let class = |found: &Found| if found.rate.is_none() { "fault" } else { "" };
        Tabular::new(columns, less).marked(found, class)
    }

    #[test]
    fn one_description_is_drawn_for_the_terminal_and_for_the_page() {
        let found = || {
            vec![
                Found { size: "64", rate: Some(1e6), trials: 1200 },
                Found { size: "\u{1b}[2J", rate: None, trials: 3 },
            ]
        };
        let text = table(found()).text(Options::default());
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert_eq!(
            lines,
            ["frame size rate trials more", "64 1.00 Mpps 1,200 in the JSON", "\\u{1b}[2J - 3 in the JSON"]
        );
        let narrow = table(found()).text(Options { width: 35, ..Options::default() });
        assert!(narrow.contains("not shown, for the width: more"), "{narrow}");
        let card = table(found()).card("What was found", false);
        for part in [
            "<h3>What was found</h3>",
            "<th scope=\"col\">frames/s</th>",
            "<th scope=\"col\">near enough</th>",
            "<tr><td>64</td><td>1.00 Mpps</td><td>1,200</td><td>yes</td></tr>",
            "<tr class=\"fault\">",
            "<td>-</td><td>3</td>",
        ] {
            assert!(card.contains(part), "{part}: {card}");
        }
        assert!(!card.contains("rate<") && !card.contains("more") && !card.contains('\u{1b}'), "{card}");
        assert_eq!(table(Vec::new()).text(Options::default()) + &table(Vec::new()).card("x", true), "");
    }
}
