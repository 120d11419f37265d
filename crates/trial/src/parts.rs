//! A trial in parts, where the device shares the tester's machine: what was lost while that machine was held up, and what was
//! lost while all were in time.
//!
//! In a lab the device is this machine's kernel. Beside other work its packet threads wait for a processor, or a hypervisor takes
//! one away; a short queue overflows meanwhile, and a whole trial would say nothing for the sake of some milliseconds. So the
//! meter is looked at every few milliseconds, beside what the scheduler says of the same time:
//!
//! ```text
//!   numbers that arrived  |1000 |1250 |1500 |1510 |2000 |2250 |2500 |   a look every 5 ms
//!   of them missing       |   0 |   0 |   0 |   0 | 180 | 180 | 180 |
//!   threads waited, ms    |   0 |   0 |   0 |   4 |   4 |   4 |   4 |
//!                                      '--- held up ---'
//! ```
//!
//! Two questions, each answered on the safe side. *Did the device lose frames?* is answered by parts in which nothing at all was
//! out of the ordinary, and only where it lost in several of them: what an unnoticed stall costs is in one place. *Did it lose
//! nothing?* is answered by excusing parts of which the scheduler itself says that the machine was held up, and no others. A
//! device that has a queue is no better off in the rest of the trial than without the stall, for its queue is full after it. So
//! if it loses nothing there, it would have lost nothing without the stall.

/// What was seen at one moment; all since the trial's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// When.
    pub at_ns: u64,
    /// The highest number that has arrived, and one: so many frames have arrived or are missing.
    pub reached: u64,
    /// Of those, the ones that are missing (yet).
    pub missing: u64,
    /// So long those waited for a processor in all who move frames on this machine, each wait told when it is over.
    pub waited_ns: u64,
    /// So much later than it was to be the look was taken.
    pub late_ns: u64,
}

/// What the parts of a trial say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// The machine was held up for so long, with what follows from it.
    pub held_up_ns: u64,
    /// All that was looked at.
    pub whole_ns: u64,
    /// Frames lost in parts in which it was.
    pub excused: u64,
    /// Frames lost in parts in which nothing was out of the ordinary, here and there.
    pub sure: u64,
}

/// Waits that are longer than this hold a device up; a quiet machine has shorter ones all the time.
const MOMENT_NS: u64 = 300_000;
/// Losses in fewer parts than this, or in less than this share of them, may come from stalls that nobody noticed, and so may the
/// most of any losses in so many parts.
const FEW: usize = 8;
const FEW_OF_ALL: f64 = 0.05;
const UNNOTICED: usize = 2;
/// Frames come as evenly as this in a part in which nothing is out of the ordinary, and not by more frames than a few.
const EVEN: f64 = 0.25;
const FEW_FRAMES: f64 = 3.0;
/// Excused is no more than this part of a trial: of one that was held up for longer nothing is said.
const MOST_HELD_UP: f64 = 0.6;

/// What these looks at a trial say that lost `lost` frames of a load of `per_second`. `drains_ns`: a full queue of the device is
/// empty after so long; frames behind a gap stand in it before the gap is seen.
pub fn parts(looks: &[Look], lost: u64, per_second: f64, drains_ns: u64) -> Parts {
    let looks = while_they_came(looks);
    let (Some(first), Some(last)) = (looks.first(), looks.last()) else { return Parts::default() };
    // What is missing and comes later was not lost.
    let mut least = lost;
    let mut gone: Vec<u64> = looks
        .iter()
        .rev()
        .map(|look| {
            least = least.min(look.missing);
            least
        })
        .collect();
    gone.reverse();
    // Behind the last that arrived.
    let at_end = lost - gone.last().copied().unwrap_or(0);
    let mut slices: Vec<Slice> = looks
        .windows(2)
        .zip(gone.windows(2))
        .map(|(looks, gone)| {
            let (from, to) = (looks[0], looks[1]);
            let took = to.at_ns.saturating_sub(from.at_ns);
            let came = to.reached.saturating_sub(from.reached) as f64;
            let due = per_second * took as f64 / 1e9;
            Slice {
                from_ns: from.at_ns,
                to_ns: to.at_ns,
                lost: gone[1] - gone[0],
                odd: (came - due).abs() > due * EVEN + FEW_FRAMES,
                held_up: false,
            }
        })
        .collect();
    let mut held_up: Vec<(u64, u64)> = Vec::new();
    for pair in looks.windows(2) {
        let waited = pair[1].waited_ns.saturating_sub(pair[0].waited_ns).max(pair[1].late_ns);
        if waited > MOMENT_NS {
            // It may have ended as soon as this part began.
            held_up.push((pair[0].at_ns.saturating_sub(waited), pair[1].at_ns.saturating_add(drains_ns)));
        }
    }
    // What is held up shows: fewer frames come, then more. Where they come evenly, nobody waited who moves them.
    let odd: Vec<(u64, u64)> = slices
        .iter()
        .filter(|slice| slice.odd)
        .map(|slice| (slice.from_ns.saturating_sub(1), slice.to_ns.saturating_add(drains_ns + 1)))
        .collect();
    for slice in &mut slices {
        let within =
            |of: &[(u64, u64)]| of.iter().any(|(from, to)| slice.from_ns < *to && *from < slice.to_ns);
        slice.held_up = within(&held_up) && within(&odd);
    }
    let took = |slice: &Slice| slice.to_ns - slice.from_ns;
    let held_up_ns = slices.iter().filter(|slice| slice.held_up).map(took).sum();
    let whole_ns = last.at_ns.saturating_sub(first.at_ns);
    let excused = excused(&slices, at_end, per_second);
    let usable = held_up_ns as f64 <= whole_ns as f64 * MOST_HELD_UP;
    // Near a part that is out of the ordinary a loss may be that one's: what is missing is seen when the queue behind the gap has
    // drained.
    let plain = |slice: &Slice| {
        let took = slice.to_ns - slice.from_ns;
        let near = (slice.from_ns.saturating_sub(took + 2 * drains_ns), slice.to_ns + took);
        !slices.iter().any(|other| other.odd && other.from_ns < near.1 && near.0 < other.to_ns)
    };
    let mut sure: Vec<u64> =
        slices.iter().filter(|slice| slice.lost > 0 && plain(slice)).map(|slice| slice.lost).collect();
    sure.sort_unstable();
    let few = (slices.iter().filter(|slice| plain(slice)).count() as f64 * FEW_OF_ALL).ceil() as usize;
    let kept = if sure.len() < few.max(FEW) { 0 } else { sure.len() - UNNOTICED };
    Parts { held_up_ns, whole_ns, excused: if usable { excused } else { 0 }, sure: sure[..kept].iter().sum() }
}

/// From the last look before the first frame came to the first one behind the last.
fn while_they_came(looks: &[Look]) -> &[Look] {
    let reached = looks.last().map_or(0, |last| last.reached);
    let from = looks.iter().rposition(|look| look.reached == 0).unwrap_or(0);
    let to = looks.iter().position(|look| look.reached == reached).map_or(looks.len(), |at| at + 1);
    looks.get(from..to).unwrap_or_default()
}

/// What was lost while the machine was held up: each time no more than was due meanwhile. `at_end` is missing behind the last that
/// arrived.
fn excused(slices: &[Slice], at_end: u64, per_second: f64) -> u64 {
    let mut excused = 0;
    for together in slices.chunk_by(|a, b| a.held_up == b.held_up) {
        let (Some(first), Some(last)) = (together.first(), together.last()) else { continue };
        if !first.held_up {
            continue;
        }
        let is_last = slices.last().is_some_and(|slice| slice.to_ns == last.to_ns);
        let lost: u64 = together.iter().map(|slice| slice.lost).sum();
        let due = per_second * (last.to_ns - first.from_ns) as f64 / 1e9;
        excused += (lost + if is_last { at_end } else { 0 }).min(due.ceil() as u64);
    }
    excused
}

/// Between two looks.
#[derive(Debug, Clone, Copy)]
struct Slice {
    from_ns: u64,
    to_ns: u64,
    lost: u64,
    /// Other than so many frames came as were due.
    odd: bool,
    held_up: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Looks every 5 ms at 10,000 frames a second, each with what was lost and waited until then.
    fn looks(of: &[(u64, u64)]) -> Vec<Look> {
        let look = |(number, (missing, waited_ms)): (usize, &(u64, u64))| Look {
            at_ns: number as u64 * 5 * MS,
            // Half of a part's frames come in the next one where something was waited for.
            reached: number as u64 * 50 - if number > 0 && of[number - 1].1 < *waited_ms { 25 } else { 0 },
            missing: *missing,
            waited_ns: waited_ms * MS,
            late_ns: 0,
        };
        of.iter().enumerate().map(look).collect()
    }

    #[test]
    fn what_is_lost_while_the_machine_is_held_up_is_excused_and_nothing_else() {
        let mut of = vec![(0, 0); 40];
        of[20..].fill((30, 4));
        let all = parts(&looks(&of), 30, 10_000.0, 0);
        assert_eq!((all.excused, all.sure, all.whole_ns), (30, 0, 195 * MS));
        assert_eq!(all.held_up_ns, 10 * MS);
        // They waited, and the frames came evenly all the same: nothing is excused, and what is lost again and again is sure.
        let mut seen = looks(&(0..100).map(|number| (number, 0)).collect::<Vec<_>>());
        seen.iter_mut().enumerate().for_each(|(number, look)| look.waited_ns = number as u64 * 4 * MS);
        let all = parts(&seen, 99, 10_000.0, 0);
        assert_eq!((all.excused, all.held_up_ns), (0, 0));
        assert!(all.sure > 90, "{all:?}");
        // Lost, and nobody was held up.
        of[20..].fill((30, 0));
        let all = parts(&looks(&of), 30, 10_000.0, 0);
        assert_eq!((all.excused, all.sure), (0, 0));
        // Held up, and lost later: behind a queue it may be the same.
        of[20..].fill((0, 4));
        of[23..].fill((30, 4));
        assert_eq!(parts(&looks(&of), 30, 10_000.0, 0).excused, 0);
        assert_eq!(parts(&looks(&of), 30, 10_000.0, 20 * MS).excused, 30);
        // What came later was not lost.
        of[10..15].fill((9, 0));
        assert_eq!(parts(&looks(&of), 30, 10_000.0, 20 * MS).excused, 30);
    }

    #[test]
    fn what_is_lost_again_and_again_is_the_devices_whatever_happens_beside() {
        let mut of: Vec<(u64, u64)> = (0..100).map(|number| (number, 0)).collect();
        for (number, look) in of.iter_mut().enumerate() {
            // Each tenth part 4 ms are waited, and 40 frames lost.
            let stalls = number as u64 / 10;
            *look = (number as u64 + 40 * stalls, 4 * stalls);
        }
        let lost = of[99].0;
        let all = parts(&looks(&of), lost, 10_000.0, 0);
        assert!(all.excused >= 360 && all.excused < 400, "{all:?}");
        assert!(all.sure > 40 && all.excused + all.sure <= lost, "{all:?}");
    }

    #[test]
    fn a_trial_that_was_held_up_for_most_of_its_time_excuses_nothing() {
        let of: Vec<(u64, u64)> = (0..100).map(|number| (number, 4 * (number / 2))).collect();
        let all = parts(&looks(&of), 99, 10_000.0, 0);
        assert_eq!(all.excused, 0, "{all:?}");
    }

    #[test]
    fn a_device_that_is_dead_is_not_excused_by_a_machine_that_is_held_up_for_a_moment() {
        let mut seen = looks(&[(0, 0); 100]);
        for (number, look) in seen.iter_mut().enumerate() {
            look.reached = 0;
            look.waited_ns = if number > 97 { 4 * MS } else { 0 };
        }
        assert!(parts(&seen, 4950, 10_000.0, 0).excused <= 150);
        // Nor is an outage within which there was such a moment.
        let mut of = vec![(0, 0); 100];
        of[60..].fill((2000, 4));
        assert!(parts(&looks(&of), 2000, 10_000.0, 0).excused <= 150);
    }

    #[test]
    fn losses_among_frames_that_come_unevenly_are_no_proof() {
        let mut seen = looks(&(0..100).map(|number| (number, 0)).collect::<Vec<_>>());
        assert!(parts(&seen, 99, 10_000.0, 0).sure > 90);
        for (number, look) in seen.iter_mut().enumerate() {
            look.reached += 20 * (number as u64 % 2);
        }
        assert_eq!(parts(&seen, 99, 10_000.0, 0).sure, 0);
        assert_eq!(parts(&[], 9, 10_000.0, 0), Parts::default());
    }
}
