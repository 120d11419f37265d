//! Waiting for frames that are still under way when all have been sent.
//!
//! A device may hold frames for longer than any pause between them: so the first arrival is waited for, and then pauses
//! twice as long as the slowest frame so far. Copies, and what arrives late of an earlier run, are none of those waited
//! for.

use super::meters::Meters;
use super::{Setup, background};
use engine::Job;
use meter::{Snapshot, settle};
use std::cell::OnceCell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Until none came for so long, where frames are under way for half of it at most.
const QUIET: Duration = Duration::from_millis(200);
/// But no longer than this (RFC 2544, 23).
const MOST: Duration = Duration::from_secs(2);
/// Of so many streams each is looked at.
const FEW: usize = 64;

/// Waits for what is left of `sent` frames.
pub fn wait(meter: &Meters, setup: &Setup, jobs: &[Job], sent: u64) {
    let streams = streams(jobs).filter(|_| meter.tells_streams());
    let hurry = setup.hurry();
    // Others' must not end the wait; how many of their kind were sent takes long to count, and seldom matters.
    let ours = OnceCell::new();
    let others = |seen: &Snapshot| match seen.background {
        0 => 0,
        all => {
            // How often each of several workers got round its part is not known here.
            let of_one = || match jobs {
                [job] => background::sent(job, sent).unwrap_or(u64::MAX),
                _ => u64::MAX,
            };
            all.saturating_sub(*ours.get_or_init(of_one))
        }
    };
    let arrived = || match &streams {
        // What is thrown away is not waited for.
        _ if hurry.is_some_and(|hurry| hurry.load(Relaxed)) => u64::MAX,
        Some(streams) => {
            let of = |&number: &u32| meter.stream(number);
            streams.iter().filter_map(of).map(|s| s.frames.saturating_sub(s.duplicates)).sum()
        }
        _ => {
            let seen = meter.snapshot();
            // Other frames than ours arrive where ours come back to.
            if setup.round_trip {
                own(seen.signed, 0, seen.duplicates)
            } else {
                own(seen.frames, others(&seen), seen.duplicates)
            }
        }
    };
    let start = Instant::now();
    settle(arrived, Some(sent.min(1)), if setup.patient { MOST } else { QUIET }, MOST);
    let slowest = Duration::from_nanos(meter.snapshot().latency.max());
    let quiet = QUIET.max(slowest.saturating_mul(2));
    settle(arrived, Some(sent), quiet, MOST.saturating_sub(start.elapsed()));
}

/// Frames of ours among `frames`. The three were read one after the other while frames arrived, so that each may be ahead of
/// the one before.
fn own(frames: u64, others: u64, duplicates: u64) -> u64 {
    frames.saturating_sub(others).saturating_sub(duplicates)
}

/// The numbers in the signatures, if each frame has one and they are few.
fn streams(jobs: &[Job]) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for job in jobs {
        // Of a capture only some frames may have one.
        let facts = job.source.facts();
        numbers.extend(facts.all_signed.then_some(facts.streams)?);
    }
    (numbers.len() <= FEW).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_were_read_while_frames_arrived_are_no_defect() {
        assert_eq!(own(10, 3, 2), 5);
        assert_eq!([own(3, 4, 0), own(3, 0, 4), own(3, 2, 2)], [0; 3]);
    }
}
