//! Where frames of the test were dropped by this host's kernel: the loss as the sum of its causes and of what nobody saw.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::drops::{Dropped, DropsTraced};
use crate::data::units::{self, printable};
use crate::render::drops::{from_to, meanings, table, witnesses};
use crate::render::html::grid::Grid;
use crate::render::text::Options;

/// Causes in the summary's line, and rows of its table.
const IN_A_LINE: usize = 6;
const ROWS: usize = 24;

pub(super) struct OfDrops;

impl Section for OfDrops {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(traced) = &report.result.drops_traced else { return Vec::new() };
        let facts = facts(report, traced);
        // Where no loss is known, as of a receiver alone, what was dropped is said all the same.
        let nothing = report.result.loss.map_or(facts.is_empty(), |loss| loss.frames == 0);
        vec![Line::facts("dropped", facts).unless(nothing)]
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let drops = &report.result.drops;
        let witnesses = witnesses(drops.iter().take(ROWS));
        if drops.is_empty() || !options.verbose && tests(drops).count() < 2 {
            return Vec::new();
        }
        let mut text = format!("Dropped by this kernel\n{}", table(drops, ROWS, is_followed(report)));
        for line in witnesses {
            text += &format!("  {line}\n");
        }
        for line in meanings(tests(drops)) {
            text += &format!("  {line}\n");
        }
        vec![text]
    }

    fn cards(&self, report: &Report) -> String {
        let header = [
            "function",
            "reason",
            "at",
            "frames",
            "streams",
            "first",
            "last",
            "sequence numbers",
            "counted by",
        ];
        let mut grid = Grid::new(header);
        for one in tests(&report.result.drops) {
            let streams: Vec<String> = one.streams.iter().take(8).map(|s| s.stream.to_string()).collect();
            let more = if one.streams.len() > streams.len() { ", ..." } else { "" };
            let least = one.streams.iter().map(|s| s.lowest_sequence).min();
            let most = one.streams.iter().map(|s| s.highest_sequence).max();
            let numbers = least
                .zip(most)
                .map(|(least, most)| format!("{} to {}", units::count(least), units::count(most)));
            grid.row(
                &one.function,
                [
                    one.reason.clone(),
                    one.interface.clone().unwrap_or_default(),
                    units::count(one.frames),
                    streams.join(", ") + more,
                    units::time(one.first_ns),
                    units::time(one.last_ns),
                    numbers.unwrap_or_default(),
                    one.witnesses().join("; "),
                ],
            );
        }
        grid.card("Where this kernel dropped frames of the test", false)
    }
}

/// Those of the loss.
pub(crate) fn tests(drops: &[Dropped]) -> impl Iterator<Item = &Dropped> {
    drops.iter().filter(|one| one.is_loss() && one.frames > 0)
}

/// Whether times count from the first frame on.
fn is_followed(report: &Report) -> bool {
    report.result.drops_traced.as_ref().is_some_and(|traced| traced.over_time.is_some())
}

/// "12,000 at nf_hook_slow, NETFILTER_DROP", and what is left.
fn facts(report: &Report, traced: &DropsTraced) -> Vec<String> {
    let drops = &report.result.drops;
    let followed = is_followed(report);
    let said = |one: &Dropped| {
        let at = one.interface.as_deref().map(|name| format!(" ({})", printable(name))).unwrap_or_default();
        let when = if followed { format!(" from {}", from_to(one)) } else { String::new() };
        format!("{} at {}{at}{when}", units::count(one.frames), printable(&one.cause()))
    };
    let mut facts: Vec<String> = tests(drops).take(IN_A_LINE).map(said).collect();
    let rest: u64 = tests(drops).skip(IN_A_LINE).map(|one| one.frames).sum();
    if rest > 0 {
        facts.push(format!("{} at other places", units::count(rest)));
    }
    match traced.not_seen_frames {
        Some(0) if facts.is_empty() => facts.push("none by this kernel".to_owned()),
        Some(0) | None => {}
        Some(unseen) => facts.push(format!("{} not seen by this kernel", units::count(unseen))),
    }
    let refused = drops.iter().filter(|one| one.refused).map(|one| one.frames).fold(0, u64::saturating_add);
    if refused > 0 {
        facts.push(format!(
            "{} refused to the sender, which are no frames that were sent",
            units::counted(refused, "attempt")
        ));
    }
    if traced.unlisted_frames > 0 {
        facts.push(format!("{} of which no more is known", units::count(traced.unlisted_frames)));
    }
    facts.extend(traced.notes.iter().map(|note| printable(note)));
    facts
}
