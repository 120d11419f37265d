//! The heat map of a mesh of endpoint tests: a row for each client, a column for each server, the worse the redder.

use super::escape::Esc;
use crate::data::model::Report;
use crate::data::sections::mesh::{Mesh, MeshOutcome, MeshPair};
use crate::data::units;
use crate::render::sections::mesh::{Short, cell};
use crate::render::table::cut;
use std::fmt::Write;

/// Shades from the best to the worst.
const SHADES: usize = 8;
/// A cell with its value; and one without, where there are many.
const WIDE: f64 = 62.0;
const SMALL: f64 = 16.0;
const HIGH: f64 = 30.0;
/// Of more hosts no cell has room for its value.
const VALUED: usize = 24;
/// Of more hosts there is no map.
const MAPPED: usize = 64;
/// Letters of a host's name beside the map.
const LETTERS: usize = 18;

/// The figure with heading and legend; empty where there is no mesh.
pub(super) fn plots(report: &Report) -> String {
    let Some(mesh) = report.result.mesh.as_ref().filter(|mesh| !mesh.pairs.is_empty()) else {
        return String::new();
    };
    if mesh.hosts.len() > MAPPED {
        let said = format!(
            "Of {} there is no map ({MAPPED} at most): the table of pairs on this page has the worst ones, and pairs.csv all of them.",
            units::counted(mesh.hosts.len() as u64, "host")
        );
        return format!("<h2>Plots</h2>\n<p>{}</p>\n", Esc(&said));
    }
    let short = Short::of(mesh);
    let note = format!(
        "{} in {}. Rows are clients, columns are servers; {}. The redder, the slower.",
        capital(mesh.compared_by.name()),
        short.name(),
        mesh.scheduled(),
    );
    format!(
        "<h2>Plots</h2>\n<figure class=\"plot\"><figcaption><h3>Who is slow to whom</h3><output></output><p>{}</p></figcaption><div class=\"scroll heat\">{}</div></figure>\n",
        Esc(&note),
        map(mesh, &short),
    )
}

/// What everybody asks for: name, value, what stands below it.
pub(super) fn tiles(report: &Report) -> Vec<(&'static str, String, String)> {
    let Some(mesh) = &report.result.mesh else { return Vec::new() };
    let of = format!("of {}", units::counted(mesh.tests, "pair"));
    let mut tiles = vec![("Done", units::count(mesh.done), of)];
    tiles.extend(
        mesh.median.map(|median| ("Median of all pairs", median.show(), mesh.compared_by.name().to_owned())),
    );
    tiles.extend(
        mesh.worst
            .as_ref()
            .map(|worst| ("Worst pair", worst.value.show(), format!("{} to {}", worst.from, worst.to))),
    );
    tiles.extend(mesh.slowest_host.as_ref().map(|slowest| {
        (
            "Slowest host",
            slowest.host.clone(),
            format!("median {}, others {}", slowest.median.show(), slowest.others.show()),
        )
    }));
    tiles
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// From the best value to the worst by ratios: twice as slow is as far from one as four times from two.
struct Shade {
    best: f64,
    worst: f64,
}

impl Shade {
    fn of(mesh: &Mesh) -> Shade {
        let values = || {
            mesh.pairs.iter().filter_map(|pair| pair.number(mesh.compared_by)).filter(|value| *value > 0.0)
        };
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        match mesh.compared_by.more_is_better() {
            true => Shade { best: most, worst: least },
            false => Shade { best: least, worst: most },
        }
    }

    /// 0 is the best. Values that differ by less than a tenth are not made to look far apart.
    fn at(&self, value: f64) -> usize {
        let whole = (self.worst / self.best).ln().abs().max(1.1f64.ln() * (SHADES - 1) as f64);
        if value <= 0.0 {
            return SHADES - 1;
        }
        let share = (value / self.best).ln().abs() / whole;
        ((share * (SHADES - 1) as f64).round() as usize).min(SHADES - 1)
    }
}

fn map(mesh: &Mesh, short: &Short) -> String {
    let names: Vec<&str> = mesh.hosts.iter().map(|host| &*host.name).collect();
    let clients: Vec<&str> = mesh.hosts.iter().filter(|host| host.agent).map(|host| &*host.name).collect();
    let longest = names.iter().map(|name| name.chars().count().min(LETTERS)).max().unwrap_or(0) as f64;
    let valued = names.len() <= VALUED;
    let (across, high) = if valued { (WIDE, HIGH) } else { (SMALL, SMALL) };
    let left = 7.2 * longest + 12.0;
    // Names of columns stand upright only where they fit above their cells.
    let upright = longest * 7.2 <= across - 4.0;
    let top = if upright { 22.0 } else { 7.2 * longest + 12.0 };
    let (width, height) = (left + across * names.len() as f64 + 2.0, top + high * clients.len() as f64 + 2.0);
    let mut out = format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" style=\"width:{width:.0}px;min-width:{width:.0}px\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
        Esc(&mesh.sentence())
    );
    // Writing to a String cannot fail, here and below.
    for (column, name) in names.iter().enumerate() {
        let (x, y) = (left + across * (column as f64 + 0.5), top - 7.0);
        let shown = cut(&units::printable(name), LETTERS);
        let turned =
            if upright { String::new() } else { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") };
        let (class, x) = if upright { ("mid", x) } else { ("", x + 4.0) };
        write!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{turned}>{}</text>", Esc(&shown))
            .unwrap_or_default();
    }
    let shade = Shade::of(mesh);
    for (row, from) in clients.iter().enumerate() {
        let y = top + high * row as f64;
        let shown = cut(&units::printable(from), LETTERS);
        write!(
            out,
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left - 7.0,
            y + high / 2.0 + 4.0,
            Esc(&shown)
        )
        .unwrap_or_default();
        for (column, to) in names.iter().enumerate() {
            let x = left + across * column as f64;
            let Some(pair) = mesh.pair(from, to) else {
                // A host is no client of itself.
                write!(
                    out,
                    "<rect class=\"self\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    across - 1.0,
                    high - 1.0
                )
                .unwrap_or_default();
                continue;
            };
            out += &drawn(pair, mesh, (short, &shade), [x, y, across - 1.0, high - 1.0], valued);
        }
    }
    out + "</svg>"
}

/// A cell; what it says who points at it hears in full.
fn drawn(
    pair: &MeshPair,
    mesh: &Mesh,
    (short, shade): (&Short, &Shade),
    [x, y, across, high]: [f64; 4],
    valued: bool,
) -> String {
    let value = pair.number(mesh.compared_by);
    let class = match value {
        Some(value) => format!("h{}", shade.at(value)),
        None => "gone".to_owned(),
    };
    let text = cell(pair, mesh.compared_by, short);
    let (mx, my) = (x + across / 2.0, y + high / 2.0 + 4.0);
    let words = if valued {
        format!("<text class=\"mid value\" x=\"{mx:.1}\" y=\"{my:.1}\">{}</text>", Esc(&text))
    } else {
        String::new()
    };
    format!(
        "<rect class=\"cell {class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{across:.1}\" height=\"{high:.1}\"/>{words}\
         <rect class=\"hit\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{across:.1}\" height=\"{high:.1}\"><title>{}</title></rect>",
        Esc(&tip(pair, mesh))
    )
}

fn tip(pair: &MeshPair, mesh: &Mesh) -> String {
    let mut facts = Vec::new();
    facts.extend(pair.bits_per_second.map(units::bit_rate));
    facts.extend(pair.p50_ns.map(|ns| format!("p50 {}", units::time(ns))));
    facts.extend(pair.p99_ns.map(|ns| format!("p99 {}", units::time(ns))));
    facts
        .extend(pair.transactions_per_second.map(|rate| format!("{} transactions", units::event_rate(rate))));
    facts.extend(pair.loss_ratio.map(|ratio| format!("{} lost", units::percent(ratio))));
    let dropped = pair.dropped_by_receiver.filter(|dropped| *dropped > 0);
    facts.extend(dropped.map(|count| format!("{} had no room at the receiver", units::count(count))));
    if pair.outcome != MeshOutcome::Done {
        facts.push(pair.outcome.name().to_owned());
    }
    facts.extend(pair.reason.as_deref().map(units::printable));
    if mesh.schedule == crate::data::sections::mesh::MeshSchedule::Rounds {
        facts.push(format!("round {}", pair.round));
    }
    format!("{}: {}", units::printable(&pair.name()), facts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sections::mesh::tests::mesh;

    #[test]
    fn each_pair_has_a_cell_with_its_value_and_what_it_says_in_full() {
        let mut report = Report::new("endpoint");
        report.result.mesh = Some(mesh(&["a", "b", "c<"], &[&[0, 50, 900], &[51, 0, 0], &[50, 49, 0]]));
        let page = plots(&report);
        assert_eq!(page.matches("class=\"cell ").count(), 6, "{page}");
        assert_eq!(page.matches("class=\"self\"").count(), 3);
        for words in [
            "cell h7",
            "cell h0",
            "cell gone",
            ">900<",
            "b to c&lt;: failed, connection refused",
            "p99 2.70 ms",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!page.contains("c<\""), "names are escaped");
        assert_eq!(plots(&Report::new("endpoint")), "");
    }

    #[test]
    fn of_very_many_hosts_there_is_no_map() {
        let mut report = Report::new("endpoint");
        for (hosts, maps) in [(64, true), (65, false)] {
            let names: Vec<String> = (0..hosts).map(|n| format!("h{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            report.result.mesh = Some(mesh(&names, &[&[0, 50]]));
            let page = plots(&report);
            assert_eq!((page.contains("<svg"), page.contains("Of 65 hosts there is no map")), (maps, !maps));
        }
    }

    #[test]
    fn values_that_are_nearly_equal_look_so() {
        let near = mesh(&["a", "b", "c"], &[&[0, 50, 51], &[50, 0, 52], &[50, 51, 0]]);
        let shade = Shade::of(&near);
        assert!(
            near.pairs
                .iter()
                .filter_map(|pair| pair.number(near.compared_by))
                .all(|value| shade.at(value) <= 1)
        );
    }
}
