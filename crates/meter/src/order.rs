//! Holds what the tracker says of loss, order, duplicates and jitter to what a list of everything that arrived says. (The
//! kernel's program is held to the tracker, in `twin.rs`.)

use crate::measurement::StreamStats;
use crate::tracker::{Tracker, Wanted};
use proptest::prelude::*;
use std::collections::HashSet;
use wire::signature::{MAX_SEQUENCE, SEQUENCES, Signature};

/// One stream, nothing else.
pub fn plain() -> Tracker {
    Tracker::new(Wanted { streams: 1, ..Wanted::default() })
}

/// What a list of everything that arrived says.
#[derive(Debug, Default, PartialEq)]
struct Naive {
    reordered: u64,
    duplicates: u64,
    extents: Vec<u64>,
    lost: u64,
}

fn naive(arrived: &[u64]) -> Naive {
    let mut told = Naive::default();
    for (i, sequence) in arrived.iter().enumerate() {
        let before = &arrived[..i];
        if before.contains(sequence) {
            told.duplicates += 1;
        } else if let Some(first) = before.iter().position(|other| other > sequence) {
            told.reordered += 1;
            told.extents.push((i - first) as u64);
        }
    }
    let distinct: HashSet<u64> = arrived.iter().copied().collect();
    told.lost = arrived.iter().max().map_or(0, |highest| highest + 1) - distinct.len() as u64;
    told
}

/// Numbers of frames as they arrive when some are lost, some come twice and some late.
fn disorder(most_late: i64) -> impl Strategy<Value = Vec<u64>> {
    let fate = (prop_oneof![12 => Just(1u32), 1 => Just(0u32), 1 => Just(2u32)], 0i64..most_late);
    let fate = (fate, prop::bool::weighted(0.1));
    prop::collection::vec(fate, 1..400).prop_map(|fates| {
        let mut order = Vec::new();
        for (sequence, ((copies, delay), late)) in (0i64..).zip(&fates) {
            let delay = if *late { *delay } else { 0 };
            order.extend((0..*copies).map(|copy| (sequence + delay + i64::from(copy) * 2, sequence as u64)));
        }
        order.sort();
        order.into_iter().map(|(_, sequence)| sequence).collect()
    })
}

proptest! {
    #[test]
    fn order_and_loss_are_those_of_a_list_of_all_that_arrived(arrived in disorder(100)) {
        let told = naive(&arrived);
        let Some(stats) = stats_of_all(arrived, Some(0)) else { return Ok(()) };
        prop_assert_eq!((stats.reordered, stats.duplicates), (told.reordered, told.duplicates));
        prop_assert_eq!((stats.lost, stats.late), (told.lost, 0));
        // At least: more holes than are remembered may have been left since.
        let most = told.extents.iter().max().copied().unwrap_or(0);
        prop_assert!(stats.extent_max <= most && (stats.extent_max > 0) == (most > 0));
    }

    #[test]
    fn how_far_frames_are_reordered_is_exact_while_few_holes_are_open(
        groups in prop::collection::vec((1u64..30, 1usize..3, 1usize..20), 1..20),
    ) {
        // Some in order; then one or two that come late by some places.
        let (mut arrived, mut next) = (Vec::new(), 0);
        for (in_order, late, by) in groups {
            arrived.extend(next..next + in_order);
            next += in_order;
            let held: Vec<u64> = (0..late as u64).map(|n| next + 2 * n).collect();
            let last = next + 2 * late as u64 + by as u64;
            arrived.extend((next..last).filter(|n| !held.contains(n)));
            arrived.extend(held);
            next = last;
        }
        let told = naive(&arrived);
        let stats = stats_of(arrived, Some(0));
        prop_assert_eq!(stats.extent_max, told.extents.iter().max().copied().unwrap_or(0));
        let mean = told.extents.iter().sum::<u64>() as f64 / told.extents.len() as f64;
        prop_assert!((stats.extent_mean - mean).abs() < 1e-9, "{} for {mean}", stats.extent_mean);
        prop_assert_eq!(stats.lost, 0);
    }
}

/// From the first frame with a higher number to the frame itself, as RFC 4737 has it in section 4.2.2.
#[test]
fn extents_are_counted_from_the_first_frame_with_a_higher_number() {
    for (arrived, extent) in [
        (vec![1u64, 2, 3, 5, 6, 7, 8, 4, 9, 10], 4),
        (vec![1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 6], 5),
        (vec![1, 4, 2, 3, 5], 2),
    ] {
        assert_eq!(stats_of(arrived.iter().copied(), None).extent_max, extent, "{arrived:?}");
    }
}

/// Interarrival jitter by RFC 3550, appendix A.8, in floating point.
#[test]
fn jitter_is_the_rfcs() {
    let mut tracker = Tracker::new(Wanted { streams: 1, latency: true, ..Wanted::default() });
    let (mut jitter, mut before) = (0.0f64, None);
    for sequence in 0..2000u64 {
        let (sent, under_way) = (1_000_000 + sequence * 10_000, 5_000 + sequence * sequence * 7919 % 3001);
        let now = sent + under_way;
        tracker.frame(&Signature { stream: 0, sequence, time: sent }.to_bytes(), 60, now, now);
        if let Some(before) = before.replace(under_way) {
            jitter += (under_way.abs_diff(before) as f64 - jitter) / 16.0;
        }
    }
    let stats = StreamStats::from_sum(0, &tracker.streams[0], None, Some(0)).expect("frames arrived");
    let told = stats.jitter_ns.expect("stamped frames");
    assert!((told - jitter).abs() <= 1.0, "{told} for {jitter}");
}

proptest! {
    /// A meter that joins in shortly before sequence numbers come round, or just after that.
    #[test]
    fn numbers_that_come_round_change_no_figure(
        arrived in disorder(100),
        before in 0u64..300,
        rounds in 1u64..3,
    ) {
        let start = rounds * SEQUENCES - before;
        let written = arrived.iter().map(|sequence| (start + sequence) & MAX_SEQUENCE);
        let plain = stats_of_all(arrived.iter().copied(), None);
        let round = stats_of_all(written, None);
        prop_assert_eq!(plain.is_some(), round.is_some());
        let (Some(plain), Some(mut round)) = (plain, round) else { return Ok(()) };
        prop_assert_eq!(round.highest_sequence - round.lowest_sequence, plain.highest_sequence - plain.lowest_sequence);
        (round.lowest_sequence, round.highest_sequence) = (plain.lowest_sequence, plain.highest_sequence);
        prop_assert_eq!(plain, round);
    }
}

/// The first that is seen is the first of a round, and two of the round before it come later.
#[test]
fn extents_are_counted_across_the_beginning_of_a_round() {
    let numbers =
        [SEQUENCES, SEQUENCES - 2, SEQUENCES - 1, SEQUENCES + 1].map(|number| number & MAX_SEQUENCE);
    let stats = stats_of(numbers, None);
    assert_eq!((stats.reordered, stats.extent_max, stats.extent_mean, stats.lost), (2, 2, 1.5, 0));
}

#[test]
fn extents_are_exact_long_after_the_last_hole() {
    const LATER: u64 = 3 << 31;
    let mut tracker = plain();
    let mut see = |sequence| tracker.frame(&Signature { stream: 0, sequence, time: 0 }.to_bytes(), 60, 1, 1);
    [0, 2, 1].into_iter().for_each(&mut see);
    // As after so many frames in order, of which the last came just now.
    tracker.streams[0].next += LATER;
    tracker.streams[0].frames += LATER;
    let mut see = |sequence| tracker.frame(&Signature { stream: 0, sequence, time: 0 }.to_bytes(), 60, 1, 1);
    [LATER + 4, LATER + 5, LATER + 3].into_iter().for_each(&mut see);
    let stats = StreamStats::from_sum(0, &tracker.streams[0], None, Some(0)).expect("frames arrived");
    assert_eq!((stats.reordered, stats.extent_max, stats.extent_mean, stats.lost), (2, 2, 1.5, 0));
}

#[test]
fn sums_of_latencies_have_more_than_64_bits() {
    let mut tracker = Tracker::new(Wanted { streams: 1, histograms: 1, latency: true, ..Wanted::default() });
    const LATENCY: u64 = 1 << 46;
    for sequence in 0..300_000u64 {
        let frame = Signature { stream: 0, sequence, time: 5 }.to_bytes();
        tracker.frame(&frame, 60, 9, 5 + LATENCY);
    }
    let stats =
        StreamStats::from_sum(0, &tracker.streams[0], tracker.histograms.first(), Some(0)).expect("frames");
    assert_eq!(stats.latency.map(|latency| latency.mean_ns), Some(LATENCY as f64));
    assert_eq!(stats.latencies.map(|own| own.sum()), Some(300_000 * u128::from(LATENCY)));
    // What another CPU counted has a carry of its own.
    let mut sums = tracker.totals.latency;
    sums.add(&tracker.totals.latency);
    assert_eq!(sums.sum.get(), 600_000 * u128::from(LATENCY));
}

/// Lets one stream with these sequence numbers arrive on one CPU.
fn stats_of(sequences: impl IntoIterator<Item = u64>, base: Option<u64>) -> StreamStats {
    stats_of_all(sequences, base).expect("frames arrived")
}

fn stats_of_all(sequences: impl IntoIterator<Item = u64>, base: Option<u64>) -> Option<StreamStats> {
    let mut tracker = plain();
    for sequence in sequences {
        tracker.frame(&Signature { stream: 0, sequence, time: 0 }.to_bytes(), 60, 1, 1);
    }
    StreamStats::from_sum(0, &tracker.streams[0], None, base)
}

#[test]
fn a_frame_449_behind_is_remembered_and_one_512_behind_is_late() {
    let remembered = stats_of([0, 1, 450, 1], Some(0));
    assert_eq!((remembered.duplicates, remembered.late, remembered.lost), (1, 0, 448));
    let late = stats_of((0..1).chain(2..514).chain([1]), Some(0));
    assert_eq!((late.duplicates, late.reordered, late.late, late.lost), (0, 1, 1, 0));
}

#[test]
fn a_meter_that_joins_in_midstream_counts_loss_from_the_lowest_it_saw() {
    assert_eq!(stats_of([500, 502, 499, 503], Some(0)).lost, 500);
    assert_eq!(stats_of([500, 502, 499, 503], None).lost, 1);
}
