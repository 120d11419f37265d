//! Columns of text for a terminal: the first left-aligned, the others right-aligned, as wide as they need.

use std::fmt;

use crate::render::text::{Options, fold};

/// What is done to a table that is wider than the terminal. A column is called by the name it was made with; the second of a
/// name is `bytes#2`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Less<'n> {
    /// A column gets a shorter name.
    Shorter(&'n str, &'n str),
    /// Columns are left out, which is said below the table.
    Without(&'n [&'n str]),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// The first row is of names: a column without a value below its name is not shown.
    has_header: bool,
    /// Words behind the last row, which no column is as wide as.
    note: String,
}

impl Table {
    pub fn with_header<const N: usize>(header: [&str; N]) -> Self {
        Self::with_columns(header)
    }

    /// With as many columns as there are names.
    pub fn with_columns<'n>(header: impl IntoIterator<Item = &'n str>) -> Self {
        Self {
            rows: vec![header.into_iter().map(str::to_owned).collect()],
            has_header: true,
            note: String::new(),
        }
    }

    /// Adds a row; a cell that is `None` is a dash.
    pub fn row<const N: usize>(&mut self, label: &str, cells: [Option<String>; N]) {
        self.cells(label, cells);
    }

    /// The same of any number.
    pub fn cells(&mut self, label: &str, cells: impl IntoIterator<Item = Option<String>>) {
        let mut row = vec![crate::data::units::printable(label)];
        row.extend(cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
        self.rows.push(row);
    }

    /// Puts words behind the last row.
    pub fn note(&mut self, text: String) {
        self.note = text;
    }

    /// As text that fits the terminal: columns in which nothing was measured go, then what is said to go, in that order and as
    /// far as it must. Where all is asked for, every column with a value stays.
    pub fn within(mut self, options: Options<'_>, less: &[Less<'_>]) -> String {
        let note = std::mem::take(&mut self.note);
        let (text, gone) = self.reduced(options, less);
        let last = text.lines().last().map_or(0, |line| line.chars().count());
        let text = match last + 2 + note.chars().count() <= options.width {
            _ if note.is_empty() => text,
            true => format!("{}  {note}\n", text.trim_end_matches('\n')),
            false => text + &fold(&format!("  {note}"), 2, options.width),
        };
        text + &gone
    }

    /// Whether it is no wider, perhaps with its labels cut.
    pub fn fits(&self, width: usize) -> bool {
        let bare = Table { rows: self.rows.clone(), has_header: self.has_header, note: String::new() };
        widest(&bare.fitted(width)) <= width
    }

    /// Of a table without a note; and what is said of the columns that were left out.
    fn reduced(mut self, options: Options<'_>, less: &[Less<'_>]) -> (String, String) {
        let names: Vec<String> = self.rows.first().cloned().unwrap_or_default();
        // Where a column of those that are left stood at first.
        let mut left: Vec<usize> = (0..names.len()).collect();
        for at in self.empty().into_iter().rev() {
            self.remove(at);
            left.remove(at);
        }
        if options.verbose || self.fits(options.width) {
            return (self.fitted(options.width), String::new());
        }
        let place = |left: &[usize], name: &str| {
            let (name, nth) =
                name.split_once('#').map_or((name, 1), |(name, nth)| (name, nth.parse().unwrap_or(1)));
            let at = names.iter().enumerate().filter(|(_, is)| *is == name).map(|(at, _)| at).nth(nth - 1)?;
            left.iter().position(|place| *place == at)
        };
        let mut gone: Vec<&str> = Vec::new();
        for step in less {
            if self.fits(options.width) {
                break;
            }
            match step {
                Less::Shorter(name, shorter) => {
                    let at = place(&left, name);
                    if let Some(cell) = at.and_then(|at| self.rows.first_mut()?.get_mut(at)) {
                        *cell = (*shorter).to_owned();
                    }
                }
                Less::Without(columns) => {
                    for name in *columns {
                        let Some(at) = place(&left, name) else { continue };
                        self.remove(at);
                        left.remove(at);
                        let name = name.split('#').next().unwrap_or_default();
                        gone.extend((!gone.contains(&name)).then_some(name));
                    }
                }
            }
        }
        let said = format!("not shown, for the width: {} (`.verbose` shows all)", gone.join(", "));
        let said = (!gone.is_empty()).then(|| fold(&(options.said)(&said), 0, options.width));
        (self.fitted(options.width), said.unwrap_or_default())
    }

    /// Columns without a value: what was not measured is left out, not shown as dashes. Labels stay.
    fn empty(&self) -> Vec<usize> {
        let names = self.rows.first().map_or(0, Vec::len);
        let is_empty = |at: &usize| {
            let cells = self.rows.iter().skip(1).filter_map(|row| row.get(*at));
            cells.clone().all(|cell| matches!(cell.as_str(), "-" | ""))
        };
        if !self.has_header || self.rows.len() < 2 {
            return Vec::new();
        }
        (1..names).filter(is_empty).collect()
    }

    /// Takes a column out.
    fn remove(&mut self, at: usize) {
        for row in self.rows.iter_mut().filter(|row| row.len() > at) {
            row.remove(at);
        }
    }

    /// As text of no more than so many columns, if labels that are cut in their middles make that possible.
    pub fn fitted(mut self, width: usize) -> String {
        let over = widest(&self.to_string()).saturating_sub(width);
        let longest = self.rows.iter().filter_map(|row| row.first()).map(|label| label.chars().count()).max();
        let most = longest.unwrap_or(0).saturating_sub(over).max(SHORTEST);
        for label in self.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *label = cut(label, most);
        }
        self.to_string()
    }
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Labels are not cut to fewer characters.
const SHORTEST: usize = 16;

/// At most so many characters of a text: its begin and its end, and an ellipsis between them.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let behind = most.saturating_sub(1) / 3;
    let before = most.saturating_sub(1 + behind);
    let begin = text.chars().take(before);
    begin.chain(['…']).chain(text.chars().skip(length - behind)).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| self.rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        let empty = self.empty();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            let shown = row.iter().zip(&widths).enumerate().filter(|(i, _)| !empty.contains(i));
            for (i, (cell, &width)) in shown {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                line += &if i == 0 { format!("{cell}{padding}") } else { format!("  {padding}{cell}") };
            }
            if number + 1 == self.rows.len() && !self.note.is_empty() {
                line = format!("{}  {}", line.trim_end(), self.note);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Less::{Shorter, Without};
    use super::*;

    fn table() -> Table {
        let mut table = Table::with_header(["trial", "bytes", "nothing", "sender short", "bytes", "verdict"]);
        for n in 1..3 {
            let cell = |text: &str| Some(text.to_owned());
            table.row(&n.to_string(), [cell("100"), None, cell("1 %"), cell("2,000"), cell("passed")]);
        }
        table
    }

    fn header(width: usize, verbose: bool) -> String {
        let less = [Shorter("sender short", "short"), Without(&["bytes#2"]), Without(&["bytes", "verdict"])];
        let text = table().within(Options { width, verbose, ..Options::default() }, &less);
        let mut lines = text.lines();
        let words = lines.next().expect("a header").split_whitespace().collect::<Vec<_>>().join(" ");
        let below: Vec<&str> = lines.skip(2).collect();
        format!("{words}|{}", below.join(" "))
    }

    #[test]
    fn a_column_without_a_value_is_not_shown_and_its_place_still_counts() {
        let shown = table().to_string();
        assert!(!shown.contains("nothing") && !shown.contains('-'), "{shown}");
        // The second of a name stays the second, where the first is not shown.
        let mut table = Table::with_header(["trial", "bytes", "bytes", "a name as long as it can be"]);
        table.row("1", [None, Some("2,000".to_owned()), Some("passed".to_owned())]);
        let narrow = Options { width: 20, ..Options::default() };
        let text = table.clone().within(narrow, &[Without(&["bytes#2"])]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!words.contains("2,000") && words.contains("not shown, for the width: bytes"), "{text}");
        // Without names a dash is a value: what a gauge was before is not known.
        let mut bare = Table::default();
        bare.row("gauge", [None, Some("->".to_owned()), Some("5".to_owned())]);
        assert_eq!(bare.to_string(), "gauge  -  ->  5\n");
        // Names alone stand as they are.
        assert_eq!(Table::with_header(["a", "b"]).to_string(), "a  b\n");
    }

    #[test]
    fn what_is_of_least_use_goes_first_and_no_further_than_it_must() {
        let whole = "trial bytes sender short bytes verdict|";
        assert_eq!([header(60, false), header(20, true)], [whole, whole]);
        assert_eq!(header(45, false), "trial bytes sender short bytes verdict|");
        assert_eq!(header(40, false), "trial bytes short bytes verdict|");
        assert_eq!(
            header(30, false),
            "trial bytes short verdict|not shown, for the width: bytes (`.verbose` shows all)"
        );
        assert!(header(20, false).starts_with("trial short|not shown, for the width: bytes, verdict "));
    }
}
