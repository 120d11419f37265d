//! What went through the bridge, as a result.

use super::Settings;
use super::pieces::{Handed, Lost};
use super::ways::Counts;
use crate::impaired::impaired;
use crate::place::Place;
use crate::run::counters::{self, COUNTERS_SETTLE, Leaving, Seen, Told};
use anyhow::Result;
use forwarder::Way;
use histogram::Histogram;
use port::qdisc;
use report::{Code, Interval, Passage, QueueCounters, Report, Rx, Sentence, Totals, Tx, units};
use std::time::{Duration, Instant};

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
            forwarded_buffers: (c.buffers < c.forwarded).then_some(c.buffers),
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
            (
                c.too_long,
                format!("from {from} were longer than {to} allows (its MTU) and were dropped").into(),
            ),
            (c.refused, format!("from {from} were not taken by {to}").into()),
            (
                c.uncut,
                format!("from {from} were super-frames that could not be cut, and were dropped").into(),
            ),
            (c.missed, format!("on {from} came faster than they could be taken, and were dropped").into()),
            (
                c.did.map_or(0, |did| did.full),
                Sentence::from((
                    format!("from {from} found no room among those that waited, and were lost"),
                    "raise `.buffer`",
                )),
            ),
        ] {
            if count > 0 {
                let of = units::counted(count, "frame");
                verdict.fall_short(Code::FramesNotForwarded, what.behind(&format!("{of} ")));
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

/// Where frames leave.
pub struct Exit {
    spec: String,
    name: String,
    leaving: Leaving,
    /// The discipline in front of it, where there is one that counts, and what it had counted.
    queue: Option<(qdisc::Reader, qdisc::Counted)>,
}

impl Exit {
    /// From now on.
    pub fn begin(place: &Place) -> Result<Exit> {
        let index = place.interface.index;
        // A kernel without traffic control has no disciplines.
        let queue = place.run_in(|| {
            let mut reader = qdisc::Reader::open(index).ok()?;
            let before = reader.read().ok()??;
            Some((reader, before))
        })?;
        let (spec, name) = (place.spec.clone(), place.interface.name.clone());
        Ok(Exit { spec, name, leaving: Leaving::begin(place)?, queue })
    }

    /// What went through the discipline since, if that is still the same one.
    fn queued(&mut self) -> Option<qdisc::Counted> {
        let (reader, before) = self.queue.as_mut()?;
        reader.read().ok()??.since(before)
    }
}

/// Whoever hands a frame over does not learn what became of it: the interfaces' own counters tell, and what is between.
pub fn compare(report: &mut Report, counts: &[Counts; 2], exits: &mut [Exit], way: &str, one_way: bool) {
    let start = Instant::now();
    // What came from the first interface left by the second.
    for (direction, to) in [1, 0].into_iter().enumerate().take(if one_way { 1 } else { 2 }) {
        let exit = &mut exits[to];
        let c = &counts[direction];
        // What was sent back where it came from left by the same interface.
        let back = counts[1 - direction].did.map_or(0, |did| did.returned);
        let handed = Handed {
            frames: c.forwarded + back,
            buffers: c.buffers + back,
            frame_bytes: c.forwarded_bytes,
            buffer_bytes: c.buffer_bytes,
        };
        // Others go past the disciplines.
        let by_queue = way == Way::Tc.name();
        let (moved, queue, lost) = loop {
            let Some(moved) = exit.leaving.moved() else {
                report.warnings.add(
                    Code::CountersUnreadable,
                    format!("the counters of {} can no longer be read", exit.spec),
                );
                return;
            };
            let queue = exit.queued().filter(|_| by_queue);
            let lost = handed.lost(moved.tx_packets, moved.tx_bytes, queue.as_ref());
            if lost == Lost::None || start.elapsed() > COUNTERS_SETTLE {
                break (moved, queue, lost);
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut compared = counters::compare(&exit.spec, handed.frames, &moved);
        compared.missing_frames = lost.frames();
        if handed.frames > handed.buffers {
            compared.sent_buffers = Some(handed.buffers);
        }
        compared.queue = queue.as_ref().map(|queue| QueueCounters {
            kind: queue.kind.clone(),
            passed_frames: queue.frames,
            dropped: queue.dropped.into(),
            waiting: queue.waiting.into(),
        });
        let natively = way == Way::XdpNative.name();
        let seen = exit.leaving.seen(handed.frames, &moved, natively);
        let on = &exit.spec;
        let frames = units::counted(handed.frames, "frame");
        match (lost, &queue) {
            (Lost::InQueue(lost), Some(queue)) => report.result.verdict.fall_short(Code::FramesUnaccounted, format!(
                "{} of {frames} for {on} did not get through its queueing discipline ({}): it let {} pass and dropped \
                 {}{}; `tc -s qdisc show dev {}` has more",
                units::count(lost),
                queue.kind,
                units::count(queue.frames),
                units::count(queue.dropped.into()),
                match queue.waiting {
                    0 => String::new(),
                    waiting => format!(", {} still waited", units::count(waiting.into())),
                },
                exit.name,
            )),
            (Lost::Bytes { about, bytes }, _) => report.result.verdict.fall_short(Code::FramesUnaccounted, format!(
                "about {} of {frames} handed to {on} were not transmitted: it counts {} in {}, which is {bytes} bytes of \
                 payload less than it was handed in {} pieces (super-frames count once or by their frames)",
                units::count(about),
                units::counted(moved.tx_packets, "packet"),
                units::bytes(moved.tx_bytes),
                units::count(handed.buffers),
            )),
            (Lost::Pieces { about, pieces }, _) => report.result.verdict.fall_short(Code::FramesUnaccounted, format!(
                "about {} of {frames} handed to {on} were not transmitted: it counts {}, {} fewer than the pieces it was \
                 handed ({}, super-frames counted once)",
                units::count(about),
                units::counted(moved.tx_packets, "packet"),
                units::count(pieces),
                units::count(handed.buffers),
            )),
            _ => {}
        }
        if matches!(lost, Lost::InQueue(_) | Lost::Bytes { .. } | Lost::Pieces { .. }) {
            // Said with its cause.
            if let Some(tx) = &mut report.result.tx {
                tx.interface_counters.push(compared);
            }
            continue;
        }
        // What counts a super-frame once knows all of its frames.
        let seen = match lost {
            Lost::None => Seen { interface: moved.tx_packets.max(handed.frames), ..seen },
            _ => seen,
        };
        let told = Told {
            unaccounted: "; its queue was full, they were too long for its MTU, or the other end of a veth takes none",
            remedy: None,
            nobody: "use `.engine` tc or packet",
            completions: None,
        };
        counters::account(report, compared, &moved, &seen, &told);
    }
}
