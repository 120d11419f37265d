//! What an XDP program said of frames, as text: of those of a capture, and in a line of those that a lab's device got.

use crate::data::sections::xdp::{XdpProgram, XdpRange, XdpTest};
use crate::data::units::{count, counted, percent, printable};
use crate::render::table::Table;
use std::collections::BTreeMap;

/// Ranges beyond this are in the JSON alone.
const RANGES: usize = 20;

/// For a terminal.
pub fn render(of: &XdpTest) -> String {
    let mut text = format!(
        "{} (section {}) of {} over {}: {}\n\n",
        printable(&of.program),
        printable(&of.section),
        printable(&of.object),
        printable(&of.capture),
        counted(of.frames, "frame")
    );
    let mut table = Table::with_header(["verdict", "frames", "share", "ns a frame"]);
    for one in &of.verdicts {
        let share = percent(one.frames as f64 / of.frames.max(1) as f64);
        let ns = one.ns_per_frame.map(nanoseconds);
        table.row(&one.verdict, [Some(count(one.frames)), Some(share), ns]);
    }
    if of.not_run_frames > 0 {
        table.row("(not run)", [Some(count(of.not_run_frames)), None, None]);
    }
    text += &table.to_string();
    for line in remarks(of) {
        text += &format!("\n{line}\n");
    }
    text
}

/// Tenths say something of a mean: the kernel tells whole ones of each frame.
fn nanoseconds(ns: f64) -> String {
    format!("{ns:.1}")
}

/// "filter of filter.o, 900 pass, 100 drop, 31.2 ns a frame".
pub fn facts(xdp: &XdpProgram) -> Vec<String> {
    let mut facts = vec![format!("{} of {}", printable(&xdp.program), printable(&xdp.object))];
    let mut by_verdict: BTreeMap<&str, u64> = BTreeMap::new();
    for one in &xdp.verdicts {
        *by_verdict.entry(&one.verdict).or_default() += one.frames;
    }
    let mut by_verdict: Vec<_> = by_verdict.into_iter().collect();
    by_verdict.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
    facts.extend(by_verdict.into_iter().map(|(verdict, frames)| format!("{} {verdict}", count(frames))));
    if xdp.unlisted_frames > 0 {
        facts.push(format!("{} in no row", counted(xdp.unlisted_frames, "frame")));
    }
    facts.extend(xdp.ns_per_frame.map(|ns| format!("{} ns a frame", nanoseconds(ns))));
    facts.extend(xdp.notes.iter().map(|note| printable(note)));
    facts
}

fn remarks(of: &XdpTest) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(ns) = of.ns_per_frame {
        let mut line = format!(
            "{} ns a frame: {}, each run {} times by the kernel",
            nanoseconds(ns),
            counted(of.timed_frames, "frame"),
            count(of.repeat.into())
        );
        if of.timed_singly_frames > 0 {
            line += &format!(
                "; {} of them are changed by the program and were run singly, which reading the clock is part of",
                count(of.timed_singly_frames)
            );
        }
        lines.push(line + ".");
    }
    if of.changed_frames > 0 {
        lines.push(format!("The program changed {}.", counted(of.changed_frames, "frame")));
    }
    if of.cut_frames > 0 {
        lines.push(format!(
            "Of {} the capture holds the beginning alone; the program was run on that.",
            counted(of.cut_frames, "frame")
        ));
    }
    if of.not_run_frames > 0 {
        lines.push(format!("Not run by the kernel: {}.", ranges(&of.not_run)));
    }
    if let Some(expected) = &of.expected {
        lines.push(match of.holds() {
            true => format!("All are {expected}, as expected."),
            false => format!(
                "{} not {expected}, as was expected of all: {}.",
                match of.differing_frames {
                    1 => "1 frame is".to_owned(),
                    more => format!("{} frames are", count(more)),
                },
                ranges(&of.differing)
            ),
        });
    }
    if let Some(file) = &of.written {
        lines.push(format!("Frames that went on are in {}.", printable(file)));
    }
    lines
}

/// "3 (drop), 7 to 9 (tx), and more".
fn ranges(of: &[XdpRange]) -> String {
    let said = |range: &XdpRange| match range.first == range.last {
        true => format!("{} ({})", range.first, range.verdict),
        false => format!("{} to {} ({})", range.first, range.last, range.verdict),
    };
    let mut each: Vec<String> = of.iter().take(RANGES).map(said).collect();
    if of.len() > RANGES {
        each.push("and more (the JSON lists up to a thousand ranges)".to_owned());
    }
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sections::xdp::XdpTestVerdict;

    #[test]
    fn verdicts_are_a_table_and_what_differs_is_numbered() {
        let verdict = |name: &str, frames, ns| XdpTestVerdict {
            verdict: name.to_owned(),
            frames,
            ns_per_frame: Some(ns),
        };
        let mut differing = Vec::new();
        [3, 7, 8, 9].into_iter().for_each(|number| XdpRange::add(&mut differing, number, "drop"));
        let test = XdpTest {
            program: "filter".to_owned(),
            section: "xdp".to_owned(),
            object: "filter.o".to_owned(),
            capture: "some.pcap".to_owned(),
            frames: 1_000,
            verdicts: vec![verdict("pass", 996, 23.04), verdict("drop", 4, 12.0)],
            ns_per_frame: Some(23.0),
            timed_frames: 1_000,
            repeat: 1_000,
            expected: Some("pass".to_owned()),
            differing_frames: 4,
            differing,
            ..XdpTest::default()
        };
        let text = render(&test);
        for wanted in [
            "filter (section xdp) of filter.o over some.pcap: 1,000 frames",
            "996",
            "99.6 %",
            "23.0 ns a frame",
            "4 frames are not pass, as was expected of all: 3 (drop), 7 to 9 (drop).",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(!test.holds());
        let all = XdpTest { differing_frames: 0, ..test };
        assert!(all.holds() && render(&all).contains("All are pass, as expected."));
    }
}
