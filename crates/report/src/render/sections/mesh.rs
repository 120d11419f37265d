//! A mesh of endpoint tests: the matrix where it fits, else the worst pairs; who is slow, and what came of each pair.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::mesh::{
    Mesh, MeshFigure, MeshHost, MeshOutcome, MeshPair, MeshSchedule, MeshValue,
};
use crate::data::units;
use crate::render::html::grid::first_of;
use crate::render::table::Table;
use crate::render::tabular::{Column, Tabular, count, number, text, time};
use crate::render::text::{Options, fold};

/// Pairs that the terminal lists where the matrix does not fit.
const LISTED: usize = 10;
/// Pairs of the table on the page; all are in the data and in pairs.csv.
const TABLED: usize = 500;

/// A unit that makes the numbers of a matrix short: how many of the smallest it is, and its name.
pub(crate) struct Short(f64, &'static str);

impl Short {
    /// The one in which the median is a number from 1 to 999.
    pub fn of(mesh: &Mesh) -> Short {
        let median = mesh.median.and_then(MeshValue::number).unwrap_or(0.0);
        let steps: [(f64, &str); 4] = match mesh.compared_by {
            MeshFigure::Throughput => [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
            _ => [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
        };
        let fits = steps.into_iter().find(|(unit, _)| median >= *unit);
        let (unit, name) =
            fits.unwrap_or((1.0, if mesh.compared_by == MeshFigure::Throughput { "bit/s" } else { "ns" }));
        Short(unit, name)
    }

    pub fn name(&self) -> &'static str {
        self.1
    }

    /// Three digits, or as many as stand before the point.
    pub fn show(&self, value: f64) -> String {
        let value = value / self.0;
        match value {
            _ if value >= 99.95 || value == 0.0 => format!("{value:.0}"),
            _ if value >= 9.995 => format!("{value:.1}"),
            _ if value >= 0.01 => format!("{value:.2}"),
            _ => "<0.01".to_owned(),
        }
    }
}

/// A cell's text.
pub(crate) fn cell(pair: &MeshPair, by: MeshFigure, short: &Short) -> String {
    match (pair.outcome, pair.number(by)) {
        (_, Some(value)) => {
            let mark = if pair.outcome == MeshOutcome::Short { "*" } else { "" };
            format!("{}{mark}", short.show(value))
        }
        (MeshOutcome::NotBegun, None) => "open".to_owned(),
        (MeshOutcome::Failed, None) => "fail".to_owned(),
        // It was done, or nearly, and nothing was measured of what is compared.
        (MeshOutcome::Done | MeshOutcome::Short, None) => "none".to_owned(),
    }
}

impl MeshOutcome {
    /// In words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MeshOutcome::Done => "done",
            MeshOutcome::Short => "short",
            MeshOutcome::Failed => "failed",
            MeshOutcome::NotBegun => "not begun",
        }
    }
}

impl Mesh {
    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let by = self.compared_by.name();
        let mut text = format!(
            "{} of {}: {}",
            units::printable(&self.test),
            units::counted(self.tests, "pair"),
            self.counts().join(", ")
        );
        if let Some(median) = self.median {
            text += &format!("; median of their {by} {}", median.show());
        }
        text.extend(self.worst_said().map(|said| format!("; {said}")));
        text.extend(self.slowest_said().map(|said| format!("; {said}")));
        text
    }

    fn counts(&self) -> Vec<String> {
        let all = [
            ("done", self.done),
            ("short", self.short),
            ("failed", self.failed),
            ("not begun", self.not_begun),
        ];
        let some = all.into_iter().filter(|(what, count)| *count > 0 || *what == "done");
        some.map(|(what, count)| format!("{} {what}", units::count(count))).collect()
    }

    pub(crate) fn worst_said(&self) -> Option<String> {
        let worst = self.worst.as_ref()?;
        let [from, to] = [&worst.from, &worst.to].map(|name| units::printable(name));
        Some(format!("worst {from} to {to}, {}", worst.value.show()))
    }

    pub(crate) fn slowest_said(&self) -> Option<String> {
        let slowest = self.slowest_host.as_ref()?;
        let host = units::printable(&slowest.host);
        Some(format!(
            "slowest host {host}, median {} (pairs without it {})",
            slowest.median.show(),
            slowest.others.show()
        ))
    }

    fn asymmetry_said(&self) -> Option<String> {
        let most = self.asymmetry.as_ref()?;
        let [from, to] = [&most.from, &most.to].map(|name| units::printable(name));
        Some(format!(
            "{from} to {to} {}, back {}: they differ by {} of the greater, the most of all pairs",
            most.value.show(),
            most.back.show(),
            units::percent(most.ratio)
        ))
    }

    pub(crate) fn scheduled(&self) -> String {
        match self.schedule {
            MeshSchedule::Rounds => format!(
                "{}, at most {} at once: no host was in two tests at the same time",
                units::counted(self.rounds, "round"),
                units::counted(self.at_once, "test")
            ),
            MeshSchedule::AllAtOnce => {
                let apart = self.began_within_ns.map(|ns| format!(", begun within {}", units::time(ns)));
                let loaded = match self.loads_network() {
                    true => ": each value is that of the loaded network",
                    false => ", too far apart for all of them to load the network together",
                };
                let tests = units::counted(self.at_once, "test");
                format!("all {tests} at once{}{loaded}", apart.unwrap_or_default())
            }
        }
    }

    /// Rows are clients, columns servers; by their names, or where these are too long by numbers.
    fn matrix(&self, options: Options<'_>) -> Option<String> {
        // Of more hosts no line has room, whatever they are called.
        if self.hosts.len() > options.width / 4 {
            return None;
        }
        let drawn = [false, true].map(|numbered| self.drawn(numbered));
        let table = drawn.into_iter().find(|table| table.fits(options.width))?;
        Some(table.fitted(options.width) + &fold(&self.legend(), 0, options.width))
    }

    fn drawn(&self, numbered: bool) -> Table {
        let short = Short::of(self);
        let column = |(number, host): (usize, &MeshHost)| {
            if numbered { number.to_string() } else { units::printable(&host.name) }
        };
        let row = |(number, host): (usize, &MeshHost)| {
            if numbered { format!("{number} {}", host.name) } else { host.name.clone() }
        };
        let hosts = || (1..).zip(&self.hosts);
        let header = short.name().to_owned();
        let header: Vec<String> = std::iter::once(header).chain(hosts().map(column)).collect();
        let mut table = Table::with_columns(header.iter().map(String::as_str));
        for from in hosts().filter(|(_, host)| host.agent) {
            let cells = self.hosts.iter().map(|to| match to.name == from.1.name {
                true => Some(".".to_owned()),
                false => self.pair(&from.1.name, &to.name).map(|pair| cell(pair, self.compared_by, &short)),
            });
            table.cells(&row(from), cells);
        }
        table
    }

    fn legend(&self) -> String {
        let by = self.compared_by.name();
        let mut said = vec![format!("{by} of each row's host as client with each column's as server")];
        let has = |is: fn(&MeshPair) -> bool| self.pairs.iter().any(is);
        let is_starred = |pair: &MeshPair| {
            pair.outcome == MeshOutcome::Short && (pair.p50_ns.is_some() || pair.bits_per_second.is_some())
        };
        said.extend(has(is_starred).then(|| "*: short of what was asked".to_owned()));
        said.extend((self.failed > 0).then(|| "fail: it came to no result".to_owned()));
        said.extend((self.not_begun > 0).then(|| "open: not begun".to_owned()));
        let is_empty = |pair: &MeshPair| {
            matches!(pair.outcome, MeshOutcome::Done | MeshOutcome::Short)
                && pair.p50_ns.is_none()
                && pair.bits_per_second.is_none()
        };
        said.extend(has(is_empty).then(|| "none: nothing to compare was measured".to_owned()));
        said.join("; ")
    }

    /// The worst pairs, and before them those without a value.
    fn worst_pairs(&self) -> Vec<&MeshPair> {
        let mut pairs: Vec<&MeshPair> = self.pairs.iter().collect();
        let badness = |pair: &MeshPair| match pair.number(self.compared_by) {
            Some(number) => self.compared_by.badness(number),
            None => f64::INFINITY,
        };
        pairs.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        pairs
    }
}

fn pairs<'m>() -> Tabular<&'m MeshPair> {
    let columns: [Column<&MeshPair>; 11] = [
        text("pair", |pair| Some(pair.name())),
        text("outcome", |pair| Some(pair.outcome.name().to_owned())),
        number("throughput", crate::data::figure::Unit::BitsPerSecond, |pair| pair.bits_per_second),
        time("p50", |pair| pair.p50_ns),
        time("p99", |pair| pair.p99_ns),
        number("transactions", crate::data::figure::Unit::PerSecond, |pair| pair.transactions_per_second),
        count("lost", |pair| pair.lost),
        number("loss", crate::data::figure::Unit::Ratio, |pair| pair.loss_ratio),
        count("no room at the receiver", |pair| pair.dropped_by_receiver.filter(|dropped| *dropped > 0)),
        count("sent again", |pair| pair.retransmits),
        crate::render::tabular::only_on_page(text("why", |pair| pair.reason.clone())),
    ];
    Tabular::new(columns, &[])
}

fn hosts(mesh: &Mesh) -> Tabular<&MeshHost> {
    let columns: [Column<&MeshHost>; 8] = [
        text("host", |host| Some(host.name.clone())),
        text("address", |host| Some(host.address.clone())),
        text("machine", |host| host.host.clone()),
        text("as client", |host| host.as_client.map(MeshValue::show)),
        text("as server", |host| host.as_server.map(MeshValue::show)),
        count("tests served", |host| host.served.and_then(|served| served.tests)),
        count("packets answered", |host| host.served.and_then(|served| served.answered)),
        text("", |host| match (&host.error, host.agent) {
            (Some(error), _) => Some(error.clone()),
            (None, true) => None,
            (None, false) => Some("no agent: a target only".to_owned()),
        }),
    ];
    Tabular::new(columns, &[]).marked(&mesh.hosts, |host| if host.error.is_some() { "fault" } else { "" })
}

pub(super) struct OfMesh;

impl Section for OfMesh {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(mesh) = &report.result.mesh else { return Vec::new() };
        let mut lines = vec![
            Line::facts("pairs", mesh.counts()),
            Line::text("tests", format!("{}, {}", units::printable(&mesh.test), mesh.scheduled())),
        ];
        let by = mesh.compared_by.name();
        lines.extend(
            mesh.median.map(|median| Line::text("median", format!("{} of all pairs' {by}", median.show()))),
        );
        lines.extend(
            mesh.worst_said()
                .map(|said| Line::text("worst", said.strip_prefix("worst ").unwrap_or(&said).to_owned())),
        );
        lines.extend(mesh.slowest_said().map(|said| {
            Line::text("slowest", said.strip_prefix("slowest host ").unwrap_or(&said).to_owned())
        }));
        lines.extend(mesh.asymmetry_said().map(|said| Line::text("two ways", said)));
        let targets: Vec<String> =
            mesh.hosts.iter().filter(|host| !host.agent).map(|host| units::printable(&host.name)).collect();
        if !targets.is_empty() {
            let said = format!("{}: no agent, so that it is a column only", targets.join(", "));
            lines.push(Line::text("targets", said));
        }
        lines
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let Some(mesh) = &report.result.mesh else { return Vec::new() };
        if let Some(matrix) = mesh.matrix(options) {
            return vec![matrix];
        }
        let all = mesh.worst_pairs();
        let valued = || all.iter().copied().filter(|pair| pair.number(mesh.compared_by).is_some());
        let mut listed = pairs().of(valued().take(LISTED)).text(options);
        let said = format!(
            "the worst of {} that have a value; all are on the page (`.report`), in pairs.csv beside it, and printed by `.csv`",
            units::counted(valued().count() as u64, "pair")
        );
        listed += &fold(&(options.said)(&said), 0, options.width);
        vec![listed]
    }

    fn cards(&self, report: &Report) -> String {
        report.result.mesh.as_ref().map_or_else(String::new, |mesh| hosts(mesh).card("Hosts", false))
    }

    fn appendix(&self, report: &Report) -> String {
        let Some(mesh) = &report.result.mesh else { return String::new() };
        let all = mesh.worst_pairs();
        let class = |pair: &&MeshPair| if pair.outcome == MeshOutcome::Done { "" } else { "fault" };
        let table = pairs().marked(all.iter().take(TABLED).copied(), class);
        table.card(&first_of("Pairs, the worst first", TABLED, all.len()), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sections::mesh::tests::mesh;

    fn shown(mesh: Mesh, width: usize) -> String {
        let mut report = Report::new("endpoint");
        report.result.mesh = Some(mesh);
        crate::render::text::render(&report, Options { width, ..Options::default() })
    }

    #[test]
    fn a_small_matrix_stands_in_80_columns_and_of_a_large_one_the_worst_pairs() {
        let rows: &[&[u64]] = &[&[0, 50, 52, 900], &[51, 0, 0, 905], &[50, 49, 0, 910], &[400, 410, 420, 0]];
        let text = shown(mesh(&["a", "b", "c", "d"], rows), 80);
        for words in [
            "us     a",
            "median latency of each row's host as client",
            "  905",
            "fail",
            "slowest   d, median 660 us",
            "a to d 900 us, back 400 us",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // Names that are too long for their columns are numbered.
        let long = ["alpha.example.net", "beta.example.net", "gamma.example.net", "delta.example.net"];
        let text = shown(mesh(&long, rows), 70);
        assert!(
            text.contains("4 delta.example.net   400   410   420")
                && text.lines().all(|line| line.chars().count() <= 70),
            "{text}"
        );
        let names: Vec<String> = (0..30).map(|n| format!("host-{n:02}.example.net")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let row: Vec<u64> = (1..31).map(|n| n * 10).collect();
        let rows: Vec<&[u64]> = names.iter().map(|_| &row[..]).collect();
        let text = shown(mesh(&names, &rows), 80);
        assert!(
            text.contains("the worst of 870 pairs that have a value") && text.contains("300 us"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn names_are_shown_without_control_characters_and_whole() {
        let mut named =
            mesh(&["worst", "b\u{1b}[31m", "c\u{202e}"], &[&[0, 50, 900], &[51, 0, 50], &[50, 49, 0]]);
        named.test = "tcp-rr\u{7}".to_owned();
        named.hosts[2].agent = false;
        for width in [40, 80, 200] {
            let text = shown(named.clone(), width);
            assert!(text.lines().all(|line| !line.contains(units::is_unprintable)), "{text:?}");
        }
        let text = shown(named, 200);
        assert!(text.contains("worst     worst to c") && text.contains("b\\u{1b}[31m"), "{text}");
        let slow = mesh(&["slowest host", "b", "c"], &[&[0, 900, 900], &[900, 0, 50], &[900, 50, 0]]);
        assert!(shown(slow, 200).contains("slowest   slowest host, median"));
    }

    #[test]
    fn tests_all_at_once_are_of_the_loaded_network_only_if_they_began_together() {
        let mut all = mesh(&["a", "b"], &[&[0, 50], &[50, 0]]);
        all.schedule = MeshSchedule::AllAtOnce;
        all.test_duration_ns = Some(1_000_000_000);
        for (apart, loaded) in [(Some(99_999_999), true), (Some(100_000_000), false), (None, false)] {
            all.began_within_ns = apart;
            assert_eq!(all.scheduled().contains("of the loaded network"), loaded, "{}", all.scheduled());
        }
    }

    #[test]
    fn numbers_of_a_matrix_are_short() {
        let short = Short(1e3, "us");
        let all =
            [52_000.0, 910_000.0, 1_234_567.0, 99_960.0, 9_996.0, 1_234.0, 3.0, 0.0].map(|ns| short.show(ns));
        assert_eq!(all, ["52.0", "910", "1235", "100", "10.0", "1.23", "<0.01", "0"]);
    }
}
