//! The loss over time as coloured parts: what each cause dropped, and what this host's kernel did not see.

use super::charts::{sent, share, summed};
use super::timeline::Area;
use crate::data::model::{Interval, Report};
use crate::data::units;
use crate::render::drops::labels;

/// Colours of causes, far from the one of the loss itself first.
const CLASSES: [&str; 6] = ["part s0", "part s2", "part s5", "part s4", "part s3", "part s1"];

/// One part.
pub(super) struct Part {
    class: &'static str,
    name: String,
    /// Of each stretch.
    frames: Vec<u64>,
}

/// The parts of a run whose drops were traced.
pub(super) fn of(report: &Report) -> Vec<Part> {
    let traced = report.result.drops_traced.as_ref();
    let Some(over_time) = traced.and_then(|traced| traced.over_time.as_ref()) else { return Vec::new() };
    // A file from elsewhere may have more or fewer.
    let told: Vec<_> = report
        .result
        .drops
        .iter()
        .filter(|one| is_whole(report, &one.by_interval))
        .take(CLASSES.len())
        .collect();
    let causes = CLASSES.iter().zip(labels(&told)).zip(&told);
    let causes = causes.map(|((class, name), one)| (*class, name, &one.by_interval));
    let rest = [
        ("part s6", "other causes", &over_time.others_by_interval),
        ("part unseen", "not seen by this kernel", &over_time.not_seen_by_interval),
    ];
    let rest = rest.map(|(class, name, counted)| (class, name.to_owned(), counted));
    let parts = causes.chain(rest).filter(|(.., counted)| is_whole(report, counted));
    let parts =
        parts.map(|(class, name, counted)| Part { class, name, frames: summed(&report.intervals, counted) });
    parts.filter(|part| part.frames.iter().any(|frames| *frames > 0)).collect()
}

fn is_whole(report: &Report, counted: &[u64]) -> bool {
    !counted.is_empty() && counted.len() == report.intervals.len()
}

/// The parts upon each other, in percent of what was sent in each stretch.
pub(super) fn areas(stretches: &[Interval], parts: &[Part]) -> Vec<Area> {
    let mut below = vec![0_u64; stretches.len()];
    let area = |part: &Part| {
        let mut steps = Vec::new();
        for ((stretch, below), frames) in stretches.iter().zip(&mut below).zip(&part.frames) {
            let low = share(stretch, *below);
            *below = below.saturating_add(*frames);
            if let (Some(low), Some(high)) = (low, share(stretch, *below)) {
                steps.push((stretch.start_ns, stretch.end_ns, [low, high]));
            }
        }
        Area { class: part.class, name: part.name.clone(), steps }
    };
    parts.iter().map(area).collect()
}

/// The parts upon each other, in frames a second, where it is not known what was sent.
pub(super) fn rates(stretches: &[Interval], parts: &[Part]) -> Vec<Area> {
    let mut below = vec![0.0_f64; stretches.len()];
    let area = |part: &Part| {
        let mut steps = Vec::new();
        for ((stretch, below), frames) in stretches.iter().zip(&mut below).zip(&part.frames) {
            let seconds = stretch.end_ns.saturating_sub(stretch.start_ns) as f64 / 1e9;
            if seconds > 0.0 {
                let low = *below;
                *below += *frames as f64 / seconds;
                steps.push((stretch.start_ns, stretch.end_ns, [low, *below]));
            }
        }
        Area { class: part.class, name: part.name.clone(), steps }
    };
    parts.iter().map(area).collect()
}

/// What a reader sees of a stretch besides the rest.
pub(super) fn tip(parts: &[Part], stretch: usize) -> String {
    let frames = |part: &Part| part.frames.get(stretch).copied().filter(|frames| *frames > 0);
    let said = |part: &Part| Some(format!(" · {}: {}", part.name, units::count(frames(part)?)));
    parts.iter().filter_map(said).collect()
}

/// Frames that were dropped in stretches in which none was sent: of nothing there is no share to draw.
fn undrawn(stretches: &[Interval], parts: &[Part]) -> u64 {
    let of = |part: &Part| {
        let counted = stretches.iter().zip(&part.frames);
        counted.filter(|(stretch, _)| share(stretch, 0).is_none()).map(|(_, frames)| *frames).sum::<u64>()
    };
    parts.iter().map(of).fold(0, u64::saturating_add)
}

/// Stretches in which more was dropped than was sent: what had been sent before them.
fn overfull(stretches: &[Interval], parts: &[Part]) -> u64 {
    let dropped = |at: usize| {
        parts.iter().filter_map(|part| part.frames.get(at)).fold(0_u64, |sum, more| sum.saturating_add(*more))
    };
    let is_over =
        |(at, stretch): (usize, &Interval)| sent(stretch).is_some_and(|sent| sent > 0 && dropped(at) > sent);
    stretches.iter().enumerate().filter(|one| is_over(*one)).count() as u64
}

/// What to know of them. `shares`: they are drawn as shares of what was sent.
pub(super) fn note(report: &Report, stretches: &[Interval], parts: &[Part], shares: bool) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let mut note = match shares {
        true => {
            " The colours are its causes: a drop counts where it happened, a loss where the frame was sent."
        }
        false => " What was dropped has its causes as colours; what was sent is not known here.",
    }
    .to_owned();
    let traced = report.result.drops_traced.as_ref();
    let outside = traced.and_then(|traced| traced.over_time.as_ref()).map_or(0, |over| over.outside_frames);
    let more = |frames: u64| match frames {
        1 => "1 more frame was".to_owned(),
        more => format!("{} more frames were", units::count(more)),
    };
    if outside > 0 {
        note += &format!(" {} dropped before the first interval or after the last one.", more(outside));
    }
    if !shares {
        return note;
    }
    let overfull = overfull(stretches, parts);
    if overfull > 0 {
        note += &format!(
            " In {} more was dropped than sent, of what had been sent before: the colours end at 100 % there.",
            units::counted(overfull, "interval")
        );
    }
    let undrawn = undrawn(stretches, parts);
    if undrawn > 0 {
        note += &format!(" {} dropped while none was sent, and shown nowhere here.", more(undrawn));
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_while_nothing_was_sent_is_said_and_not_left_out() {
        let stretch = |sent| Interval {
            tx_frames: Some(sent),
            rx_frames: Some(sent),
            lost_frames: Some(0),
            end_ns: 1,
            ..Interval::default()
        };
        let stretches = [stretch(10), stretch(0), stretch(10)];
        let part = |frames: [u64; 3]| Part { class: "part s0", name: "a".to_owned(), frames: frames.into() };
        let parts = [part([1, 2, 3]), part([1, 5, 0])];
        assert_eq!(areas(&stretches, &parts)[0].steps.len(), 2);
        assert_eq!(undrawn(&stretches, &parts), 7);
        let said = note(&Report::new("send"), &stretches, &parts, true);
        assert!(
            said.ends_with("7 more frames were dropped while none was sent, and shown nowhere here."),
            "{said}"
        );
        assert_eq!(undrawn(&stretches[..1], &parts), 0);
        assert!(!said.contains("100 %"), "{said}");
    }

    #[test]
    fn more_drops_than_frames_are_said_beside_colours_that_end_at_the_top() {
        let stretch = |start_ns, sent| Interval {
            start_ns,
            end_ns: start_ns + 500_000_000,
            tx_frames: sent,
            ..Interval::default()
        };
        let part = |frames: [u64; 2]| Part { class: "part s0", name: "a".to_owned(), frames: frames.into() };
        let parts = [part([4, 8]), part([2, 4])];
        let sent = [stretch(0, Some(10)), stretch(500_000_000, Some(10))];
        let said = note(&Report::new("send"), &sent, &parts, true);
        assert!(said.contains("In 1 interval more was dropped than sent"), "{said}");
        // Where it is not known what was sent they are rates upon each other, and nothing is said of what was sent.
        let unknown = [stretch(0, None), stretch(500_000_000, None)];
        let upper = &rates(&unknown, &parts)[1].steps;
        assert_eq!(upper[..], [(0, 500_000_000, [8.0, 12.0]), (500_000_000, 1_000_000_000, [16.0, 24.0])]);
        let said = note(&Report::new("measure"), &unknown, &parts, false);
        assert!(said.ends_with("what was sent is not known here."), "{said}");
    }
}
