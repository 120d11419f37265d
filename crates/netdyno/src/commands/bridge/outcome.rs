//! What went through the bridge, as a result.

use super::Settings;
use super::ways::Counts;
use crate::impaired::impaired;
use crate::place::Place;
use histogram::Histogram;
use port::interface::{CounterReader, Counters};
use report::{InterfaceCounters, Interval, Passage, Report, Rx, Totals, Tx, units};
use std::time::{Duration, Instant};

/// Drivers that update their counters now and then do so at least this often.
const COUNTERS_SETTLE: Duration = Duration::from_millis(2500);

pub fn fill(
    report: &mut Report,
    settings: &Settings,
    engine: &str,
    counts: &[Counts; 2],
    lateness: &[Option<Histogram>; 2],
) {
    let sum = counts[0].plus(&counts[1]);
    let span = sum.duration_ns;
    let missed = counts[0].missed + counts[1].missed;
    report.result.rx = Some(Rx {
        totals: Totals::over(sum.frames, sum.bytes, span),
        dropped_frames: (missed > 0).then_some(missed),
        ..Rx::default()
    });
    report.result.tx = Some(Tx {
        totals: Totals::over(sum.forwarded, sum.forwarded_bytes, span),
        engine: engine.to_owned(),
        failed: sum.refused,
        ..Tx::default()
    });
    let [a, b] = &settings.between;
    let directions = [(a, b), (b, a)].into_iter().zip(counts).take(if settings.one_way { 1 } else { 2 });
    for (((from, to), c), late) in directions.zip(lateness) {
        let edits = settings.plan.is_some();
        report.result.passages.push(Passage {
            from: from.clone(),
            to: to.clone(),
            received: Totals::over(c.frames, c.bytes, c.duration_ns),
            forwarded: Totals::over(c.forwarded, c.forwarded_bytes, c.duration_ns),
            edited_frames: edits.then(|| c.forwarded.saturating_sub(c.unedited)),
            unedited_frames: edits.then_some(c.unedited),
            completed_checksums: c.completed,
            filtered_frames: c.filtered,
            left_out_frames: c.left,
            over_limit_frames: c.over_limit,
            too_long_frames: c.too_long,
            refused_frames: c.refused,
            uncut_frames: c.uncut,
            missed_frames: c.missed,
            impaired: c.did.as_ref().map(|did| impaired(did, late.as_ref())),
        });
        let verdict = &mut report.result.verdict;
        for (count, what) in [
            (c.too_long, format!("from {from} were longer than {to} allows (its MTU) and were dropped")),
            (c.refused, format!("from {from} were not taken by {to}")),
            (c.uncut, format!("from {from} were super-frames that could not be cut, and were dropped")),
            (c.missed, format!("on {from} came faster than they could be taken, and were dropped")),
            (
                c.did.map_or(0, |did| did.full),
                format!("from {from} found no room among those that waited, and were lost: raise --buffer"),
            ),
        ] {
            if count > 0 {
                verdict.fall_short(format!("{} {what}", units::counted(count, "frame")));
            }
        }
    }
}

pub fn interval([(start_ns, before), (end_ns, now)]: [(u64, Counts); 2]) -> Interval {
    Interval {
        start_ns,
        end_ns,
        rx_frames: Some(now.frames.saturating_sub(before.frames)),
        rx_bytes: Some(now.bytes.saturating_sub(before.bytes)),
        tx_frames: Some(now.forwarded.saturating_sub(before.forwarded)),
        tx_bytes: Some(now.forwarded_bytes.saturating_sub(before.forwarded_bytes)),
        ..Interval::default()
    }
}

/// Whoever hands a frame over does not learn what became of it: the interfaces' own counters tell.
pub fn compare(
    report: &mut Report,
    places: &[Place; 2],
    counts: &[Counts; 2],
    counters: &mut [(CounterReader, Counters)],
    one_way: bool,
) {
    let start = Instant::now();
    // What came from the first interface left by the second.
    for (direction, to) in [1, 0].into_iter().enumerate().take(if one_way { 1 } else { 2 }) {
        let (place, (reader, before)) = (&places[to], &mut counters[to]);
        let c = &counts[direction];
        // What was sent back where it came from left by the same interface.
        let back = counts[1 - direction].did.map_or(0, |did| did.returned);
        let (forwarded, buffers) = (c.forwarded + back, c.buffers + back);
        let moved = loop {
            let Ok(now) = reader.read() else {
                report.warnings.push(format!("the counters of {} can no longer be read", place.spec));
                return;
            };
            let moved = now.since(before);
            if moved.tx_packets >= buffers || start.elapsed() > COUNTERS_SETTLE {
                break moved;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // A super-frame is one or many to whoever counts it.
        let shown = if moved.tx_packets >= forwarded { forwarded } else { buffers };
        let mut compared = InterfaceCounters::compare(&place.spec, shown, moved.tx_packets);
        compared.tx_bytes = Some(moved.tx_bytes);
        compared.tx_errors = Some(moved.tx_errors);
        compared.tx_dropped = Some(moved.tx_dropped);
        if compared.missing_frames > 0 {
            report.result.verdict.fall_short(format!(
                "{} were handed to {} but it counts only {} as transmitted: its queue was full, they were too long for \
                 its MTU, or the other end of a veth takes none",
                units::counted(shown, "frame"),
                place.spec,
                units::count(moved.tx_packets)
            ));
        }
        if let Some(tx) = &mut report.result.tx {
            tx.interface_counters.push(compared);
        }
    }
}
