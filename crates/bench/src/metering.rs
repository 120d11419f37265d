//! Case "metering": what the meter leaves of the rate of a program that only counts, by number of streams.

use crate::bench::{Bench, Far};
use crate::document::{Section, Table};
use crate::floors::{self, Signed};
use crate::stats::Sample;
use anyhow::Result;
use std::time::Duration;

/// The one to compare with: its sender's frames, counted.
const COUNTING: &str = "bare counting program";

struct Contender {
    /// Which frames: their sender is the same for all receivers.
    signed: Signed,
    receiver: &'static str,
    far: Far,
    wanted: Option<f64>,
    rate: Sample,
}

fn contenders() -> Vec<Contender> {
    let row =
        |signed, receiver, far, wanted| Contender { signed, receiver, far, wanted, rate: Sample::default() };
    let mut list = Vec::new();
    for (streams, stamped) in [(1, false), (1, true), (1 << 20, false), (1 << 20, true)] {
        let signed = Signed { streams, stamped };
        let wanted = if streams == 1 { 0.75 } else { 0.6 };
        list.push(row(signed, COUNTING, Far::Bare, None));
        let meter = |latency| Far::Streams { streams, latency };
        list.push(if stamped {
            row(signed, "meter: loss, order, latency, variation, gaps", meter(true), Some(wanted))
        } else {
            row(signed, "meter: loss, order", meter(false), Some(wanted))
        });
    }
    list
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Metering",
        "Million frames a second of 64 B arriving at the far end of a veth pair, whose whole work is done on the sending \
         core. The frames are live frames that end with a signature, its time read for each where they are stamped; \
         streams take turns frame by frame. They are counted by a program that adds up frames and bytes and drops them, \
         or by netdyno's meter. The rate is that of the far interface's counter for both. Ratios are medians of the \
         ratios round by round.",
    );
    let mut list = contenders();
    let length = Duration::from_millis(if bench.quick { 400 } else { 1000 });
    let count = list.len();
    for round in 0..bench.runs {
        for turn in 0..count {
            let contender = &mut list[(turn + 2 * round) % count];
            bench.check()?;
            let _receiver = bench.receiver(contender.far)?;
            let mut counter = bench.far_counter()?;
            let tick = Duration::from_millis(20);
            floors::signed_live_frames(bench, contender.signed, length, tick, || counter.look().map(|_| ()))?;
            contender.rate.push(counter.rate().unwrap_or(f64::NAN));
        }
    }
    let title = format!("Million frames/s, median of {} runs [lowest–highest]", bench.runs);
    let mut table = Table::new(title, &["frames", "received by", "rate", "of counting"]);
    let percent = |v: f64| format!("{:.0}%", v * 100.0);
    for pair in list.chunks_exact(2) {
        let [counting, meter] = pair else { continue };
        let Signed { streams, stamped } = meter.signed;
        let stamps = if stamped { "with time stamps" } else { "without time stamps" };
        let what = if streams == 1 {
            format!("one stream, {stamps}")
        } else {
            format!("{streams} streams in turn, {stamps}")
        };
        let ratio = meter.rate.over(&counting.rate);
        for (contender, ratio) in [(counting, &Sample::default()), (meter, &ratio)] {
            table.rows.push(vec![
                what.clone(),
                contender.receiver.to_owned(),
                contender.rate.cell(|v| format!("{:.2}", v / 1e6)),
                ratio.short(percent),
            ]);
        }
        if let Some(wanted) = meter.wanted {
            section.at_least(
                format!("{what}, {}: of counting", meter.receiver),
                wanted,
                ratio.median(),
                percent,
            );
        }
    }
    section.tables.push(table);
    Ok(section)
}
