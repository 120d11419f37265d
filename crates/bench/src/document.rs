//! What a bench says: sections of tables and targets, as text for a terminal and as Markdown for the file.

use std::fmt::Write;

/// A table; every cell is already in words.
#[derive(Debug, Default)]
pub struct Table {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: impl Into<String>, head: &[&str]) -> Table {
        Table { title: title.into(), head: head.iter().map(|&h| h.to_owned()).collect(), rows: Vec::new() }
    }

    fn text(&self) -> String {
        let rows = || std::iter::once(&self.head).chain(&self.rows);
        let columns = rows().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| rows().filter_map(|row| row.get(c)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        let mut out = format!("  {}\n", self.title);
        for row in rows() {
            let mut line = String::from("   ");
            for (c, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - cell.chars().count());
                line += &if c == 0 { format!(" {cell}{pad}") } else { format!("  {pad}{cell}") };
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('<', "&lt;"));
        let rule: Vec<&str> =
            self.head.iter().enumerate().map(|(c, _)| if c == 0 { "---" } else { "---:" }).collect();
        let mut out = format!("**{}**\n\n{}|{}|\n", self.title, line(&self.head), rule.join("|"));
        self.rows.iter().for_each(|row| out += &line(row));
        out
    }
}

/// A promise, and what was found.
#[derive(Debug)]
pub struct Target {
    pub what: String,
    pub wanted: String,
    pub found: String,
    pub met: bool,
}

/// One case of the bench.
#[derive(Debug, Default)]
pub struct Section {
    pub title: String,
    /// How it was measured.
    pub method: String,
    pub tables: Vec<Table>,
    pub targets: Vec<Target>,
    /// What a reader must know before trusting the figures.
    pub notes: Vec<String>,
    /// Commands as they were run.
    pub commands: Vec<String>,
    /// File name and content of a plot.
    pub plot: Option<(&'static str, String)>,
}

impl Section {
    pub fn new(title: &str, method: &str) -> Section {
        Section { title: title.to_owned(), method: method.to_owned(), ..Section::default() }
    }

    /// A target that is met when `found` is at most `limit`.
    pub fn at_most(&mut self, what: impl Into<String>, limit: f64, found: f64, show: impl Fn(f64) -> String) {
        self.targets.push(Target {
            what: what.into(),
            wanted: format!("≤ {}", show(limit)),
            found: show(found),
            met: found <= limit,
        });
    }

    /// A target that is met when `found` is at least `limit`.
    pub fn at_least(
        &mut self,
        what: impl Into<String>,
        limit: f64,
        found: f64,
        show: impl Fn(f64) -> String,
    ) {
        self.targets.push(Target {
            what: what.into(),
            wanted: format!("≥ {}", show(limit)),
            found: show(found),
            met: found >= limit,
        });
    }

    /// Notes a command once.
    pub fn command(&mut self, line: String) {
        if !self.commands.contains(&line) {
            self.commands.push(line);
        }
    }

    pub fn text(&self) -> String {
        let mut out = format!("\n{}\n", self.title);
        self.tables.iter().for_each(|table| out += &table.text());
        out += &targets(&self.targets).map_or(String::new(), |table| table.text());
        self.notes.iter().for_each(|note| out += &format!("  note: {note}\n"));
        out
    }

    pub fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n{}\n\n", self.title, self.method);
        if let Some((file, _)) = &self.plot {
            let _ = write!(out, "![{}]({file})\n\n", self.title);
        }
        for table in self.tables.iter().chain(&targets(&self.targets)) {
            out += &table.markdown();
            out.push('\n');
        }
        self.notes.iter().for_each(|note| out += &format!("- {note}\n"));
        if !self.commands.is_empty() {
            let _ = write!(out, "\nCommands, as run:\n\n```sh\n{}\n```\n", self.commands.join("\n"));
        }
        out.push('\n');
        out
    }
}

fn targets(targets: &[Target]) -> Option<Table> {
    let mut table = Table::new("Targets", &["", "wanted", "measured", ""]);
    for target in targets {
        let met = if target.met { "met" } else { "MISSED" };
        table.rows.push(vec![
            target.what.clone(),
            target.wanted.clone(),
            target.found.clone(),
            met.to_owned(),
        ]);
    }
    (!targets.is_empty()).then_some(table)
}
