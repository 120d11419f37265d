//! Columns of text for a terminal: the first left-aligned, the others right-aligned, as wide as they need.

use std::fmt;

#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Words behind the last row, which no column is as wide as.
    note: String,
}

impl Table {
    pub fn with_header<const N: usize>(header: [&str; N]) -> Self {
        Self::with_columns(header)
    }

    /// With as many columns as there are names.
    pub fn with_columns<'n>(header: impl IntoIterator<Item = &'n str>) -> Self {
        Self { rows: vec![header.into_iter().map(str::to_owned).collect()], note: String::new() }
    }

    /// Adds a row; a cell that is `None` is a dash.
    pub fn row<const N: usize>(&mut self, label: &str, cells: [Option<String>; N]) {
        self.cells(label, cells);
    }

    /// The same of any number.
    pub fn cells(&mut self, label: &str, cells: impl IntoIterator<Item = Option<String>>) {
        let mut row = vec![crate::units::printable(label)];
        row.extend(cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
        self.rows.push(row);
    }

    /// Puts words behind the last row.
    pub fn note(&mut self, text: String) {
        self.note = text;
    }

    /// As text of no more than so many columns, if labels that are cut in their middles make that possible.
    pub fn fitted(mut self, width: usize) -> String {
        let whole = self.to_string().lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let over = whole.saturating_sub(width);
        let longest = self.rows.iter().filter_map(|row| row.first()).map(|label| label.chars().count()).max();
        let most = longest.unwrap_or(0).saturating_sub(over).max(SHORTEST);
        for label in self.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *label = cut(label, most);
        }
        self.to_string()
    }
}

/// Labels are not cut to fewer characters.
const SHORTEST: usize = 16;

/// At most so many characters of a text: its begin and its end, and an ellipsis between them.
fn cut(text: &str, most: usize) -> String {
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
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
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
