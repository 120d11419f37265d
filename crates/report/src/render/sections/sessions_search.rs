//! A search by TCP connections through a device: what was found, and its trials.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::sessions_search::{
    SessionCapacityFound, SessionRateFound, SessionTrial, SessionsSearch,
};
use crate::data::units;
use crate::render::html::grid::{DASH, Facts, Grid, first_of};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

/// Trials in the terminal's table, and rows on the page, at most.
const TABLE: usize = 40;
const MOST_ROWS: usize = 1000;

fn rate(per_second: f64) -> String {
    format!("{} connections/s", units::count(per_second.round() as u64))
}

impl SessionsSearch {
    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let trials = units::counted(self.trials.len() as u64, "trial");
        let server = units::printable(&self.server);
        if let Some(found) = self.capacity.as_ref().filter(|_| self.complete) {
            let answered = "held at once and answered when they were used again";
            return match found.connections {
                Some(most) => format!("{} to {server} {answered}", units::counted(most, "connection")),
                None => format!("No number of connections to {server} was {answered}"),
            };
        }
        let Some(found) = self.rate.as_ref().filter(|_| self.complete) else {
            return format!("Unfinished, by {trials}");
        };
        match found.per_second {
            Some(per_second) => format!("{} to {server} {}", rate(per_second), without(found)),
            None => {
                format!("No rate of new connections to {server} was found that passes {}", without(found))
            }
        }
    }

    fn tested(&self) -> Vec<String> {
        vec![
            format!("connections to {}", units::printable(&self.server)),
            match self.client_addresses {
                1 => format!("from {}", units::printable(&self.first_client)),
                all => {
                    format!(
                        "from {} addresses, {} on",
                        units::count(all),
                        units::printable(&self.first_client)
                    )
                }
            },
            self.of_trials(),
            format!("{} between them", units::time(self.settle_ns)),
            format!("{} in all", units::time(self.elapsed_ns)),
        ]
    }

    fn of_trials(&self) -> String {
        let trials = units::counted(self.trials.len() as u64, "trial");
        match self.trial_ns {
            0 => trials,
            each => format!("{trials} of {}", units::time(each)),
        }
    }

    /// Of the capacity: what was asked for, what was held, and what was answered.
    fn held_table(&self, options: Options<'_>) -> String {
        let mut rows: Vec<_> =
            self.trials.iter().filter_map(|trial| Some((trial.intended_connections?, trial))).collect();
        rows.sort_by_key(|(asked, _)| *asked);
        let header = [
            "asked for",
            "opened",
            "held",
            "answered again",
            "failed",
            "sent again",
            "nat took",
            "nat refused",
            "verdict",
        ];
        let mut table = Table::with_header(header);
        for (asked, t) in rows.iter().take(TABLE) {
            let count = |n: u64| (n > 0).then(|| units::count(n));
            let cells = [
                Some(units::count(t.opened)),
                t.held.map(units::count),
                t.answered_again.map(units::count),
                count(t.failed),
                count(t.retransmitted),
                took(t),
                refused(t),
                Some(t.verdict.to_string()),
            ];
            table.row(&units::count(*asked), cells);
        }
        let mut text = table.within(options, &[Less::Without(&["opened"]), Less::Without(&["sent again"])]);
        if rows.len() > TABLE {
            text += &format!("and {} more in the JSON\n", rows.len() - TABLE);
        }
        text
    }

    /// Those that were offered a rate, from the lowest.
    fn by_rate(&self) -> Vec<(f64, &SessionTrial)> {
        let mut rows: Vec<_> =
            self.trials.iter().filter_map(|trial| Some((trial.intended_per_second?, trial))).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows
    }

    fn table(&self, options: Options<'_>) -> String {
        let rows = self.by_rate();
        let header = [
            "offered/s",
            "opened/s",
            "opened",
            "finished",
            "failed",
            "sent again",
            "late",
            "nat took",
            "nat refused",
            "verdict",
        ];
        let mut table = Table::with_header(header);
        for (offered, t) in rows.iter().take(TABLE) {
            let count = |n: u64| (n > 0).then(|| units::count(n));
            table.row(
                &units::count(offered.round() as u64),
                [
                    Some(units::count(t.opened_per_second.round() as u64)),
                    Some(units::count(t.opened)),
                    Some(units::count(t.finished)),
                    count(t.failed),
                    count(t.retransmitted),
                    count(t.late),
                    took(t),
                    refused(t),
                    Some(t.verdict.to_string()),
                ],
            );
        }
        let less = [Less::Without(&["opened"]), Less::Without(&["late"]), Less::Without(&["opened/s"])];
        let mut text = table.within(options, &less);
        if rows.len() > TABLE {
            text += &format!("and {} more in the JSON\n", rows.len() - TABLE);
        }
        text
    }
}

/// Connections that the lab's NAT translated.
fn took(trial: &SessionTrial) -> Option<String> {
    trial.nat.as_ref().map(|nat| units::count(nat.translated))
}

/// What it did not take, SYNs that were sent again among them.
fn refused(trial: &SessionTrial) -> Option<String> {
    trial.nat.as_ref().map(|nat| units::count(nat.refused()))
}

/// What is said of a search that has found nothing.
fn none(complete: bool, nothing: &str) -> String {
    if complete { nothing.to_owned() } else { "not found yet".to_owned() }
}

fn without(found: &SessionRateFound) -> String {
    match found.max_failed_ratio {
        0.0 => "without failures".to_owned(),
        ratio => format!("with at most {} failed", units::percent(ratio)),
    }
}

impl SessionRateFound {
    fn facts(&self, complete: bool) -> Vec<String> {
        let mut facts = vec![match self.per_second {
            Some(per_second) => format!(
                "{} {} in {}",
                rate(per_second),
                without(self),
                units::counted(self.passed_trials.into(), "trial")
            ),
            None => none(complete, "no rate passed"),
        }];
        facts.extend(self.failed_per_second.map(|failed| format!("failed at {}", rate(failed))));
        facts.extend(
            self.closed_loop_per_second.map(|most| format!("as fast as it goes {} finished", rate(most))),
        );
        if self.undecided_trials > 0 {
            facts.push(format!("{} undecided", units::counted(self.undecided_trials, "trial")));
        }
        facts
    }
}

impl SessionCapacityFound {
    fn facts(&self, complete: bool) -> Vec<String> {
        let mut facts = vec![match self.connections {
            Some(most) => format!(
                "{} held and answered in {}",
                units::counted(most, "connection"),
                units::counted(self.passed_trials.into(), "trial")
            ),
            None => none(complete, "no number passed"),
        }];
        facts.extend(
            self.failed_connections
                .map(|failed| format!("failed with {}", units::counted(failed, "connection"))),
        );
        if self.undecided_trials > 0 {
            facts.push(format!("{} undecided", units::counted(self.undecided_trials, "trial")));
        }
        facts
    }
}

pub(super) struct Searched;

impl Section for Searched {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(s) = &report.result.sessions_search else { return Vec::new() };
        let mut lines = Vec::new();
        lines.extend(s.rate.as_ref().map(|found| Line::facts("rate", found.facts(s.complete))));
        lines.extend(s.capacity.as_ref().map(|found| Line::facts("capacity", found.facts(s.complete))));
        lines.push(Line::facts("tested", s.tested()));
        lines
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let table = |s: &SessionsSearch| match s.capacity {
            Some(_) => s.held_table(options),
            None => s.table(options),
        };
        report.result.sessions_search.iter().map(table).collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(s) = &report.result.sessions_search else { return };
        if let Some(found) = &s.rate {
            facts.add("rate of new connections", &found.facts(s.complete).join(", "));
        }
        if let Some(found) = &s.capacity {
            facts.add("connections held", &found.facts(s.complete).join(", "));
        }
        facts.add("tested", &s.tested().join(", "));
    }

    fn appendix(&self, report: &Report) -> String {
        let Some(s) = &report.result.sessions_search else { return String::new() };
        let header = [
            "trial",
            "stage",
            "offered/s",
            "to be held",
            "held",
            "answered again",
            "opened/s",
            "opened",
            "finished",
            "failed",
            "sent again",
            "came twice",
            "late",
            "undecided before",
            "nat took",
            "nat entries",
            "nat refused",
            "verdict",
        ];
        let mut grid = Grid::new(header);
        for t in s.trials.iter().take(MOST_ROWS) {
            let dash = || DASH.to_owned();
            let some = |n: Option<u64>| n.map_or_else(dash, units::count);
            let cells = [
                t.stage.to_string(),
                t.intended_per_second.map_or(DASH.to_owned(), |rate| units::count(rate.round() as u64)),
                some(t.intended_connections),
                some(t.held),
                some(t.answered_again),
                units::count(t.opened_per_second.round() as u64),
                units::count(t.opened),
                units::count(t.finished),
                units::count(t.failed),
                units::count(t.retransmitted),
                units::count(t.duplicates),
                units::count(t.late),
                units::count(t.undecided_before),
                took(t).unwrap_or_else(dash),
                t.nat.as_ref().map_or_else(dash, |nat| units::count(nat.entries)),
                refused(t).unwrap_or_else(dash),
                t.verdict.to_string(),
            ];
            grid.row(&t.number.to_string(), cells);
        }
        grid.card(&first_of("All trials", MOST_ROWS, s.trials.len()), true)
    }
}

/// The figures everybody asks for: name, value, what stands below it.
pub(crate) fn tiles(report: &Report) -> Vec<(&'static str, String, String)> {
    let Some(s) = &report.result.sessions_search else { return Vec::new() };
    let mut tiles = Vec::new();
    if let Some(found) = &s.rate {
        let value = found.per_second.map_or("none".to_owned(), rate);
        tiles.push(("New connections", value, without(found)));
        let failed = found.failed_per_second.map(|failed| ("Failed at", rate(failed), String::new()));
        tiles.extend(failed);
    }
    if let Some(found) = &s.capacity {
        let value = found.connections.map_or("none".to_owned(), units::count);
        tiles.push(("Connections held", value, "answered when used again".to_owned()));
        let failed =
            found.failed_connections.map(|failed| ("Failed with", units::count(failed), String::new()));
        tiles.extend(failed);
    }
    let each = if s.trial_ns > 0 { format!("each {}", units::time(s.trial_ns)) } else { String::new() };
    tiles.push(("Trials", units::count(s.trials.len() as u64), each));
    tiles
}
