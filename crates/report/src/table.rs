//! Columns of text for a terminal: the first left-aligned, the others right-aligned, as wide as they need.

use std::fmt;

#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn with_header<const N: usize>(header: [&str; N]) -> Self {
        Self { rows: vec![header.map(str::to_owned).to_vec()] }
    }

    /// Adds a row; a cell that is `None` is a dash.
    pub fn row<const N: usize>(&mut self, label: &str, cells: [Option<String>; N]) {
        let mut row = vec![crate::units::printable(label)];
        row.extend(cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| self.rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                line += &if i == 0 { format!("{cell}{padding}") } else { format!("  {padding}{cell}") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
