//! Numbers beside a slow model that keeps each number that came, and knows from the sender which exporter began when.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A message as the sender has it, and what becomes of it on its way.
#[derive(Debug, Clone)]
struct Sent {
    count: u32,
    lost: bool,
    /// By how many messages it is overtaken, and its duplicate, if it has one.
    late: usize,
    twice: Option<usize>,
}

fn sent() -> impl Strategy<Value = Sent> {
    (1u32..30, 0u8..10, 0usize..6, prop_oneof![4 => Just(None), 1 => (0usize..6).prop_map(Some)]).prop_map(
        |(count, lost, late, twice)| Sent {
            count,
            lost: lost < 2,
            late: if late < 3 { 0 } else { late },
            twice,
        },
    )
}

/// A life of an exporter: the number that it begins with, and what it sends.
fn life() -> impl Strategy<Value = (u32, Vec<Sent>)> {
    let first = prop_oneof![Just(0), any::<u32>(), Just(u32::MAX - 40)];
    (first, proptest::collection::vec(sent(), 1..60))
}

/// What arrives: which life's, its number, and how much it holds; in the order of arrival.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    life: usize,
    /// Counted on from the life's first number.
    from: u64,
    number: u32,
    count: u32,
    stamp: Stamp,
    print: u32,
}

/// Which counts there are: those of flows, or of messages.
fn arrivals(lives: &[(u32, Vec<Sent>)], by_message: bool, uptime: bool) -> Vec<Arrival> {
    let mut all = Vec::new();
    let (mut at, mut now_ms, mut print) = (0usize, 1_700_000_000_000u64, 0u32);
    for (life, (first, messages)) in lives.iter().enumerate() {
        let began_ms = now_ms;
        let mut from = 0u64;
        for message in messages {
            let count = if by_message { 1 } else { message.count };
            print += 1;
            let stamp = Stamp {
                exported_s: Some((now_ms / 1000) as u32),
                uptime_ms: uptime.then_some((now_ms - began_ms) as u32),
                arrived_ms: Some(now_ms as u32),
            };
            let number = first.wrapping_add(from as u32);
            let arrival = Arrival { life, from, number, count, stamp, print };
            if !message.lost {
                all.push((2 * (at + message.late), all.len(), arrival));
                if let Some(later) = message.twice {
                    all.push((2 * (at + message.late + later) + 1, all.len(), arrival));
                }
            }
            from += u64::from(count);
            at += 1;
            now_ms += 300;
        }
        // It takes some time to begin anew.
        now_ms += 20_000;
        at += 12;
    }
    all.sort_by_key(|(at, order, _)| (*at, *order));
    // Nothing comes before it was sent, nor before what came before it.
    let mut now_ms = 0;
    all.into_iter()
        .map(|(_, _, mut arrival)| {
            now_ms = arrival.stamp.arrived_ms.map_or(now_ms, |sent_ms| now_ms.max(sent_ms));
            arrival.stamp.arrived_ms = Some(now_ms);
            arrival
        })
        .collect()
}

/// By the sets of all numbers that came, life by life.
fn model(arrivals: &[Arrival]) -> Tally {
    let mut tally = Tally::default();
    let lives: BTreeSet<usize> = arrivals.iter().map(|arrival| arrival.life).collect();
    tally.restarts = lives.len().saturating_sub(1) as u64;
    for life in lives {
        let mut came = BTreeSet::new();
        let (mut first, mut end) = (None, 0);
        for arrival in arrivals.iter().filter(|arrival| arrival.life == life) {
            let numbers = arrival.from..arrival.from + u64::from(arrival.count);
            first.get_or_insert(arrival.from);
            if numbers.clone().all(|number| came.contains(&number)) {
                tally.duplicates += 1;
                tally.duplicate_records += u64::from(arrival.count);
            } else if arrival.from < end {
                tally.late += 1;
            }
            came.extend(numbers);
            end = end.max(arrival.from + u64::from(arrival.count));
        }
        // What was sent before the first that came is nobody's to judge.
        let begin = first.unwrap_or(0);
        tally.missing += (begin..end).filter(|number| !came.contains(number)).count() as u64;
    }
    tally
}

/// Does the first message of a life differ from what would have come next of the life before?
fn is_told(all: &[Arrival], life: usize) -> bool {
    let Some(at) = all.iter().position(|of| of.life == life) else { return true };
    let (first, before) = (&all[at], all[..at].iter().filter(|of| of.life < life));
    let Some(last) = before.clone().map(|of| of.life).max() else { return true };
    let mut of_last = before.filter(|of| of.life == last);
    let next = of_last.clone().max_by_key(|of| of.from).map(|of| of.number.wrapping_add(of.count));
    next != Some(first.number) && of_last.all(|of| of.stamp.uptime_ms != first.stamp.uptime_ms)
}

fn count(arrivals: &[Arrival], many_ways: bool) -> Tally {
    let mut sequence = Sequence::default();
    for arrival in arrivals {
        let holds =
            Holds { stamp: arrival.stamp, print: arrival.print | 1 << 31, ..Holds::of(arrival.count) };
        sequence.arrive(arrival.number, &holds, many_ways);
        sequence.held(arrival.count.into());
    }
    sequence.tally()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn loss_duplicates_late_ones_and_restarts_are_told_apart_by_uptime(
        lives in proptest::collection::vec(life(), 1..4),
        by_message in any::<bool>(),
    ) {
        let all = arrivals(&lives, by_message, true);
        // What goes on from the last number is of the same exporter to everybody, and so is what is seen at no other uptime.
        prop_assume!((1..lives.len()).all(|life| is_told(&all, life)));
        prop_assert_eq!(count(&all, false), model(&all), "{:?}", all);
    }

    #[test]
    fn they_are_told_apart_without_an_uptime_where_numbers_begin_at_zero_again(
        lives in proptest::collection::vec(life(), 1..4),
    ) {
        // Each life begins behind where the one before ended: ahead of it nothing would tell a restart from a loss.
        let ends = |messages: &[Sent]| messages.iter().map(|sent| sent.count).sum::<u32>();
        let mut before = None;
        let lives: Vec<(u32, Vec<Sent>)> = lives
            .into_iter()
            .map(|(first, messages)| {
                let first = if before.is_some() { 0 } else { first % 1_000_000 + 5_000 };
                before = Some(first + ends(&messages));
                (first, messages)
            })
            .collect();
        // Whole lives that are shorter than the life before it; else numbers meet.
        prop_assume!(lives.windows(2).skip(1).all(|two| ends(&two[1].1) < ends(&two[0].1)));
        let all = arrivals(&lives, false, false);
        // The first that comes of a life says by its number that it is not what comes next.
        let met = |life: usize| {
            let next = all.iter().filter(|of| of.life == life).map(|of| of.number + of.count).max().unwrap_or(0);
            let first = all.iter().find(|of| of.life == life + 1).map_or(0, |of| of.number);
            all.iter().any(|of| of.life == life + 1) && first >= next
        };
        prop_assume!((0..lives.len()).all(|life| !met(life)));
        prop_assert_eq!(count(&all, false), model(&all), "{:?}", all);
    }
}

fn holds(count: u32, at_s: u32) -> Holds {
    Holds::of(count).exported(at_s)
}

#[test]
fn a_restart_that_begins_with_any_number_erases_nothing() {
    for first in [0u32, 1, 999_999, 5_000, u32::MAX - 3] {
        let mut sequence = Sequence::default();
        let mut at = |number: u32, uptime: u32, at_s: u32| {
            sequence.arrive(number, &Holds::of(30).up(uptime).exported(at_s), false)
        };
        at(5_000, 600_000, 10_000);
        assert_eq!(at(6_020, 601_000, 10_001), Verdict::Next);
        // 990 are missing. The exporter begins anew, and sends in order.
        assert_eq!(at(first, 1_000, 10_030), Verdict::Anew, "{first}");
        for step in 1..200u32 {
            assert_eq!(at(first.wrapping_add(30 * step), 1_000 + step, 10_030), Verdict::Next);
        }
        let tally = sequence.tally();
        assert_eq!((tally.missing, tally.late, tally.duplicates, tally.restarts), (990, 0, 0, 1), "{first}");
    }
}

#[test]
fn one_that_comes_twice_is_not_one_that_is_missing() {
    let mut sequence = Sequence::default();
    for number in [0, 30, 90, 90, 30, 120] {
        sequence.arrive(number, &holds(30, 100), false);
    }
    let tally = sequence.tally();
    assert_eq!((tally.missing, tally.late, tally.duplicates), (30, 0, 2));
    // And the one that was missing is, when it comes.
    assert_eq!(sequence.arrive(60, &holds(30, 100), false), Verdict::Late);
    assert_eq!((sequence.tally().missing, sequence.tally().late), (0, 1));
    assert_eq!(sequence.arrive(60, &holds(30, 100), false), Verdict::Duplicate);
}

#[test]
fn many_in_a_row_that_were_seen_are_a_restart_within_the_same_second() {
    let mut sequence = Sequence::default();
    for number in 0..40 {
        sequence.arrive(number * 10, &holds(10, 100), true);
    }
    sequence.arrive(420, &holds(10, 100), true);
    for number in 0..ROW {
        sequence.arrive(number * 10, &holds(10, 100), true);
    }
    let tally = sequence.tally();
    assert_eq!((tally.missing, tally.duplicates, tally.restarts), (20, 0, 1));
    // What comes then is of the new one.
    assert_eq!(sequence.arrive(ROW * 10 + 5, &holds(10, 101), true), Verdict::Next);
    assert_eq!(sequence.tally().missing, 25);
}

#[test]
fn a_hole_of_before_a_restart_is_not_filled_by_its_number_of_after_it() {
    let mut sequence = Sequence::default();
    let mut at = |number: u32, uptime: u32| sequence.arrive(number, &Holds::of(1).up(uptime), false);
    // 3 is lost, and the agent begins anew, as one of sFlow, which says no time. 2 and 4 are lost then.
    for (number, uptime) in [(1, 100_000), (2, 101_000), (4, 103_000), (1, 500), (3, 1_500), (5, 2_500)] {
        at(number, uptime);
    }
    // What was overtaken by the restart still belongs to before it.
    assert_eq!(at(3, 102_000), Verdict::Late);
    let tally = sequence.tally();
    assert_eq!((tally.missing, tally.late, tally.duplicates, tally.restarts), (2, 1, 0, 1));
}

#[test]
fn where_a_life_comes_to_what_the_one_before_ended_with_it_is_still_its_own() {
    // sFlow: no time but the uptime, and numbers that always begin at 1.
    let mut sequence = Sequence::default();
    let mut at = |number: u32, uptime: u32| sequence.arrive(number, &Holds::of(1).up(uptime), false);
    for number in 1..=20 {
        at(number, number * 1000);
    }
    assert_eq!(at(1, 500), Verdict::Anew);
    (2..=19).for_each(|number| assert_eq!(at(number, 500 + number * 600), Verdict::Next));
    // 20 was lost. By number and uptime this goes on from the life before, which has been over for long.
    assert_eq!(at(21, 20_500), Verdict::Next);
    assert_eq!(sequence.tally(), Tally { missing: 1, restarts: 1, ..Tally::default() });
    // Right behind a restart it is of the life before.
    let mut at = |number: u32, uptime: u32| sequence.arrive(number, &Holds::of(1).up(uptime), false);
    assert_eq!([at(1, 500), at(22, 21_000)], [Verdict::Anew, Verdict::Late]);
}

#[test]
fn an_uptime_that_wraps_and_a_clock_that_is_set_are_no_restart() {
    let mut sequence = Sequence::default();
    let mut at = |number: u32, uptime: u32, at_s: u32| {
        sequence.arrive(number, &Holds::of(1).up(uptime).exported(at_s), false)
    };
    at(0, u32::MAX - 400, 1_000_000);
    assert_eq!(at(1, 599, 1_000_001), Verdict::Next);
    // A gap at the wrap is a gap.
    assert_eq!(at(3, 1_599, 1_000_002), Verdict::Next);
    // The clock is set back by a day, and nothing is lost.
    assert_eq!(at(4, 2_000, 1_000_002 - 86_400), Verdict::Next);
    assert_eq!((sequence.tally().missing, sequence.tally().restarts), (1, 0));
}

#[test]
fn a_clock_that_is_set_where_something_is_lost_is_no_restart() {
    // With uptimes, by a day back, an hour and some minutes on; the exporter had been up for an hour.
    for set_s in [-86_400i64, -3_600, 3_000, 600] {
        let mut sequence = Sequence::default();
        let mut at = |number: u32, uptime: u32, at_s: i64| {
            sequence.arrive(number, &Holds::of(1).up(uptime).exported(at_s as u32), false)
        };
        at(0, 3_600_000, 1_000_000);
        assert_eq!(at(3, 3_601_000, 1_000_001 + set_s), Verdict::Next, "{set_s}");
        // One of before that was overtaken by the clock.
        if set_s > 0 {
            assert_eq!(at(2, 3_598_000, 999_998), Verdict::Late);
        }
        let tally = sequence.tally();
        let missing = if set_s > 0 { 1 } else { 2 };
        assert_eq!((tally.missing, tally.restarts, tally.duplicates), (missing, 0, 0), "{set_s}");
    }
    // IPFIX says no uptime: its numbers go on.
    let mut sequence = Sequence::default();
    sequence.arrive(0, &holds(10, 1_000_000), true);
    assert_eq!(sequence.arrive(30, &holds(10, 1_000_000 - 86_400), true), Verdict::Next);
    assert_eq!((sequence.tally().missing, sequence.tally().restarts), (20, 0));
    // And who begins anew without a clock (it is 1970) does, whatever its number.
    let mut sequence = Sequence::default();
    let mut at = |number: u32, uptime: u32, at_s: u32| {
        sequence.arrive(number, &Holds::of(1).up(uptime).exported(at_s), false)
    };
    at(10, 3_600_000, 1_700_000_000);
    assert_eq!([at(0, 20_000, 20), at(1, 21_000, 21)], [Verdict::Anew, Verdict::Next]);
}

/// A message, when it came: number, records, uptime if it says one, time of export, and what of it is new.
fn come(
    sequence: &mut Sequence,
    number: u32,
    count: u32,
    up: Option<u32>,
    at_s: i64,
    came_ms: u32,
) -> Verdict {
    let stamp = Stamp { exported_s: Some(at_s as u32), uptime_ms: up, arrived_ms: Some(came_ms) };
    let print = (number + 1) | 1 << 31;
    sequence.arrive(number, &Holds { stamp, print, ..Holds::of(count) }, up.is_none())
}

#[test]
fn what_a_clock_that_is_set_overtook_is_late_or_came_twice() {
    const HOUR_MS: u32 = 3_600_000;
    let at_s = 1_700_000_000;
    for set_s in [-86_400i64, -7_200, -10, -3, 3, 600, 86_400] {
        // With uptimes (v5, v9) and without (IPFIX); one that is overtaken, and one that comes twice.
        for (has_uptime, is_twice) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut sequence = Sequence::default();
            let mut came_ms = 0;
            let mut at = |message: u32, set_s: i64| {
                let up = has_uptime.then_some(HOUR_MS + message * 1_100);
                came_ms += 3;
                come(&mut sequence, message * 10, 10, up, at_s + i64::from(message) + set_s, came_ms)
            };
            at(0, 0);
            at(1, 0);
            let held = if is_twice { 1 } else { 2 };
            assert_eq!(at(3 - u32::from(is_twice), set_s), Verdict::Next, "{set_s}");
            let wanted = if is_twice { Verdict::Duplicate } else { Verdict::Late };
            assert_eq!(at(held, 0), wanted, "{set_s} {has_uptime}");
            for message in 4 - u32::from(is_twice)..104 {
                assert_eq!(at(message, set_s), Verdict::Next, "{set_s} {has_uptime} {message}");
            }
            let tally = sequence.tally();
            let wanted = (0, 0, u64::from(!is_twice), u64::from(is_twice));
            let found = (tally.missing, tally.restarts, tally.late, tally.duplicates);
            assert_eq!(found, wanted, "{set_s} {has_uptime}");
        }
    }
}

#[test]
fn a_clock_that_is_set_on_by_more_than_the_uptime_erases_no_loss() {
    // A router boots in 1970, and its clock is set; and one that was up for an hour is set on by a day.
    for (up_ms, from_s, to_s) in [(60_000, 60, 1_700_000_000), (3_600_000, 1_700_000_000, 1_700_086_400)] {
        let mut sequence = Sequence::default();
        let mut at = |message: u32, began_s: i64| {
            come(
                &mut sequence,
                message,
                1,
                Some(up_ms + message * 1_000),
                began_s + i64::from(message),
                message * 1_000,
            )
        };
        (0..10).for_each(|message| {
            at(message, from_s);
        });
        for message in 15..50 {
            assert_eq!(at(message, to_s), Verdict::Next);
        }
        assert_eq!((sequence.tally().missing, sequence.tally().restarts), (5, 0));
    }
    // Who was away for as long as it says that it is up did begin anew, at a number that is ahead, too.
    let mut sequence = Sequence::default();
    come(&mut sequence, 0, 1, Some(60_000), 1_700_000_000, 1_000);
    assert_eq!(come(&mut sequence, 15, 1, Some(70_000), 1_700_000_080, 81_000), Verdict::Anew);
}

#[test]
fn holes_of_messages_that_wait_are_not_forgotten_before_their_records_are_counted() {
    let mut sequence = Sequence::default();
    // 200 messages of ten records each, of which nobody can count any until the template comes; and 200 numbers that are lost.
    for message in 1..=200u32 {
        let holds = Holds { unread: message, ..Holds::default().exported(100) };
        sequence.arrive((message - 1) * 10, &holds, true);
    }
    for number in 0..200u32 {
        sequence.arrive(2_000 + number * 2, &holds(1, 100), true);
    }
    assert_eq!((sequence.tally().uncounted, sequence.tally().missing), (2_000, 199));
    for message in 1..=200u32 {
        sequence.counted(message, &Holds::of(if message == 7 { 4 } else { 10 }), true);
    }
    assert_eq!((sequence.tally().uncounted, sequence.tally().missing), (0, 199 + 6));
}

#[test]
fn what_holds_nothing_and_is_overtaken_tells_nothing_of_how_is_counted() {
    let mut sequence = Sequence::default();
    sequence.arrive(46, &holds(11, 100), true);
    assert_eq!(sequence.arrive(46, &holds(0, 99), true), Verdict::Late);
    assert_eq!((sequence.tally().late, sequence.tally().missing), (1, 0));
}

#[test]
fn the_same_number_on_other_content_is_no_duplicate() {
    let mut sequence = Sequence::default();
    let of = |print: u32| Holds { print, ..holds(30, 100) };
    for (number, print) in [(0, 11), (30, 12), (0, 13), (30, 14), (30, 14)] {
        sequence.arrive(number, &of(print), false);
    }
    let tally = sequence.tally();
    assert_eq!((tally.restarts, tally.duplicates, tally.missing), (1, 1, 0));
}

#[test]
fn holes_are_bounded_and_stay_missing() {
    let mut sequence = Sequence::default();
    for number in 0..10_000u32 {
        sequence.arrive(number * 2, &holds(1, 100), true);
    }
    assert_eq!(sequence.tally().missing, 9_999);
    assert!(sequence.bytes() <= 4 * 2 * MOST_HOLES * size_of::<Hole>(), "{}", sequence.bytes());
    assert_eq!(sequence.arrive(1, &holds(1, 100), true), Verdict::Late);
    assert_eq!(sequence.tally().missing, 9_999);
    sequence.shrink();
    assert_eq!((sequence.bytes(), sequence.tally().missing), (0, 9_999));
}
