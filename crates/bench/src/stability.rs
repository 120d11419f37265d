//! Case "stability": a thousand million frames at top speed. Memory must not grow, and every frame must be accounted for.

use crate::bench::{Bench, Tool};
use crate::cost::peak_megabytes;
use crate::document::{Section, Table};
use crate::topspeed::plainly;
use anyhow::{Context, Result};
use std::time::Duration;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Stability",
        "One run through XDP live frames at top speed: address, port and both checksums change, every frame is signed, \
         and its arrival is accounted for by netdyno's meter. Memory is the peak of the sending process (VmHWM), once \
         a tenth of the frames has arrived and at the end; what the kernel holds for it does not grow while it runs, \
         since all of it is made before. The far interface's own counter is read beside the meter.",
    );
    let frames: u64 = if bench.quick { 20_000_000 } else { 1_000_000_000 };
    let far = bench.far_interface();
    let text = format!(
        "send ipv4(src=10.0.0.0/16,dst=198.18.0.2)/udp(sport=1024..65535,dport=9) --size 64 --on tx0 --topspeed \
         --count {frames} --engine xdp --measure {far} --sign"
    );
    let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let mut counter = bench.far_counter()?;
    let (mut early, mut late) = (None, None);
    let mut failed = None;
    // At a fifth of a million frames a second something else is wrong.
    let limit = Duration::from_secs(60 + frames / 200_000);
    let ran = bench.run_within(limit, Tool::Netdyno, &arguments, Duration::from_millis(100), |pid, _| {
        match counter.look() {
            Ok(arrived) if arrived >= frames / 10 => {
                if let Some(peak) = peak_megabytes(pid) {
                    early.get_or_insert(peak);
                    late = Some(peak);
                }
            }
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
        failed.is_none()
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let counted = counter.look()?;
    let report = ran.report.context("netdyno gave no result")?;
    let result = &report.result;
    let tx = result.tx.as_ref().context("the result has no sender")?;
    let rx = result.rx.as_ref().context("the result has no receiver")?;
    let stream = report.streams.first().context("the result has no stream")?;
    let (sent, received) = (tx.totals.frames, rx.totals.frames);
    let lost = result.loss.as_ref().map_or(0, |loss| loss.frames);
    let (early, late) = (early.unwrap_or(f64::NAN), late.unwrap_or(f64::NAN));
    let title = format!("{frames} frames in {:.0} s", tx.totals.duration_ns as f64 / 1e9);
    let mut table = Table::new(title, &["", "frames"]);
    let rows = [
        ("sent", sent),
        ("received by the meter", received),
        ("lost", lost),
        ("lost, by sequence number", stream.lost_frames),
        ("duplicated", stream.duplicated_frames),
        ("reordered", stream.reordered_frames),
        ("received, by the far interface's counter", counted),
    ];
    table.rows.extend(rows.map(|(name, value)| vec![name.to_owned(), value.to_string()]));
    section.tables.push(table);
    let whole = |v: f64| format!("{v:.0}");
    section.at_most("frames sent that differ from those asked for", 0.0, sent.abs_diff(frames) as f64, whole);
    let apart = sent.abs_diff(received + lost);
    section.at_most("sent less received and lost", 0.0, apart as f64, whole);
    let apart = counted.abs_diff(received) + lost.abs_diff(stream.lost_frames);
    section.at_most("counts of the meter, its streams and the interface apart", 0.0, apart as f64, whole);
    // The result's course in time takes some hundred bytes for each tenth of a second.
    section.at_most(format!("memory grown since the first tenth ({early:.1} MB)"), 1.0, late - early, |v| {
        format!("{v:.1} MB")
    });
    section.command(plainly(&bench.command_line(Tool::Netdyno, &arguments)));
    Ok(section)
}
