//! What this driver did on a kernel like this one when netdyno was last tried on it: the table of docs/drivers.md.
//!
//! The table is data (`drivers.json`), written by the rig that tries drivers in an emulator (`make test-drivers`), and
//! compiled in. Numbers are frames, never rates.

use serde::Deserialize;

use super::machine::version;
use super::{Area, Finding, State};

const TABLE: &str = include_str!("drivers.json");

#[derive(Debug, Deserialize)]
struct Table {
    /// The day.
    measured: String,
    cells: Vec<Cell>,
}

/// One thing that was tried.
#[derive(Debug, Clone, Deserialize)]
struct Cell {
    /// The series: `6.12`.
    kernel: String,
    driver: String,
    /// What: `xdp`, `afxdp`, `meter`, ...
    cell: String,
    /// Absent where it was refused, as `note` says.
    #[serde(default)]
    sent: Option<u64>,
    #[serde(default)]
    received: Option<u64>,
    #[serde(default)]
    note: String,
}

impl Cell {
    fn is_whole(&self) -> bool {
        self.sent.is_some() && self.sent == self.received
    }

    fn say(&self) -> String {
        let note = if self.note.is_empty() { String::new() } else { format!(" ({})", self.note) };
        match (self.sent, self.received) {
            (Some(sent), Some(received)) => format!("{} {received} of {sent}{note}", self.cell),
            _ => format!("{} refused{note}", self.cell),
        }
    }
}

/// Of an interface with this driver, on the running kernel.
pub fn finding(driver: &str) -> Option<Finding> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    // The table is checked by a test; a damaged one says nothing.
    let table: Table = serde_json::from_str(TABLE).ok()?;
    Some(row(&table, driver, &release))
}

/// `virtio_net` calls itself so, its model in QEMU `virtio-net-pci`.
fn family(driver: &str) -> String {
    let name = driver.replace('-', "_").to_lowercase();
    if name.starts_with("virtio") { "virtio".to_owned() } else { name }
}

fn row(table: &Table, driver: &str, release: &str) -> Finding {
    let finding =
        |state, found: String, means: String| Finding::new(Area::Interface, "tried", state, found, means);
    let not_tried = |what: String| {
        let means = "what this driver does here is not known: count a few frames before you trust a result";
        finding(State::Unknown, what, means.to_owned())
    };
    let of_driver = || table.cells.iter().filter(|cell| family(&cell.driver) == family(driver));
    if driver == "veth" {
        // Every lab is made of it, and the tests run in labs.
        let means = "what it loses is counted; its rates are those of this machine's cores, not of a wire";
        return finding(State::Good, "veth: netdyno's own tests run on it".to_owned(), means.to_owned());
    }
    if of_driver().next().is_none() {
        return not_tried(format!("{driver}: not tried"));
    }
    let Some(running) = version(release) else {
        return not_tried(format!("{driver}: not tried on {release}"));
    };
    let series =
        of_driver().filter_map(|cell| version(&cell.kernel)).filter(|series| *series <= running).max();
    let Some(series) = series else {
        return not_tried(format!("{driver}: not tried on a kernel as old as {}.{}", running.0, running.1));
    };
    let cells = || of_driver().filter(|cell| version(&cell.kernel) == Some(series));
    let whole: Vec<&str> = cells().filter(|cell| cell.is_whole()).map(|cell| cell.cell.as_str()).collect();
    let others: Vec<String> = cells().filter(|cell| !cell.is_whole()).map(Cell::say).collect();
    let mut found = format!("{driver} on Linux {}.{}, {}", series.0, series.1, table.measured);
    if !whole.is_empty() {
        found += &format!(": all frames arrived by {}", whole.join(", "));
    }
    let state = if others.is_empty() && series == running { State::Good } else { State::Note };
    let mut means =
        if others.is_empty() { String::new() } else { format!("not so: {}; ", others.join("; ")) };
    if series != running {
        means += &format!("{}.{} itself was not tried; ", running.0, running.1);
    }
    finding(state, found, means + "docs/drivers.md has the table")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let cell = |kernel: &str, driver: &str, cell: &str, received| Cell {
            kernel: kernel.to_owned(),
            driver: driver.to_owned(),
            cell: cell.to_owned(),
            sent: Some(300),
            received: Some(received),
            note: String::new(),
        };
        let refused = Cell {
            sent: None,
            received: None,
            note: "needs 5.18".to_owned(),
            ..cell("5.10", "igb", "xdp", 0)
        };
        Table {
            measured: "2026-11-22".to_owned(),
            cells: vec![
                cell("5.10", "igb", "packet", 300),
                refused,
                cell("6.12", "igb", "packet", 300),
                cell("6.12", "igb", "xdp", 300),
                cell("7.3", "virtio-net-pci", "afxdp", 299),
            ],
        }
    }

    #[test]
    fn a_cable_of_a_lab_is_what_the_tests_run_on() {
        let finding = row(&table(), "veth", "6.18.44");
        assert!(
            finding.state == State::Good && finding.found.contains("tests run on it"),
            "{}",
            finding.found
        );
    }

    #[test]
    fn the_table_that_is_compiled_in_can_be_read() {
        let table: Table = serde_json::from_str(TABLE).unwrap();
        assert!(!table.cells.is_empty());
        assert!(table.cells.iter().all(|cell| version(&cell.kernel).is_some() && !cell.cell.is_empty()));
    }

    #[test]
    fn the_nearest_series_that_is_not_newer_stands_for_a_kernel() {
        let told = |driver: &str, release: &str| {
            let finding = row(&table(), driver, release);
            (finding.state, finding.found, finding.means)
        };
        let (state, found, means) = told("igb", "6.12.107+deb13-amd64");
        assert_eq!(state, State::Good);
        assert_eq!(found, "igb on Linux 6.12, 2026-11-22: all frames arrived by packet, xdp");
        assert_eq!(means, "docs/drivers.md has the table");
        let (state, found, means) = told("igb", "6.1.0-30");
        assert!(state == State::Note && found.contains("Linux 5.10") && found.ends_with("packet"), "{found}");
        assert!(
            means.contains("xdp refused (needs 5.18)") && means.contains("6.1 itself was not tried"),
            "{means}"
        );
        // The numbers are compared, not the words.
        assert!(told("igb", "6.9.1").1.contains("Linux 5.10"));
        let (state, _, means) = told("virtio_net", "7.4");
        assert!(state == State::Note && means.contains("afxdp 299 of 300"), "{means}");
    }

    #[test]
    fn what_was_not_tried_is_said_and_is_never_good() {
        for (driver, release) in [("ice", "6.12"), ("virtio_net", "6.12"), ("igb", "4.19"), ("igb", "x")] {
            let finding = row(&table(), driver, release);
            assert_eq!(finding.state, State::Unknown, "{driver} {release}");
            assert!(finding.found.contains("not tried"), "{}", finding.found);
        }
    }
}
