//! Case "busy": what is sent at which times on a machine that does something else, too: as many busy loops as CPUs, twice. Senders
//! are started as a user starts them, take turns, and are counted at the far end.

use crate::bench::{Bench, Tool};
use crate::document::{Section, Table};
use crate::fixtures::Fixtures;
use crate::pacing::{Frames, Load, MS, NETDYNO, Sender, TCPREPLAY};
use crate::stats::{Sample, densest, quantile};
use crate::topspeed::plainly;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// It may not go before others.
const ORDINARY: Sender =
    Sender { name: "netdyno --no-real-time", tool: Tool::Netdyno, options: "--engine packet --no-real-time" };

/// What one tool did with one load, over all runs.
#[derive(Default)]
struct Kept {
    /// Frames that came within the schedule's time and a hundredth of it, of those that were due.
    share: Sample,
    /// Gap errors in microseconds, of runs whose frames came all.
    p50: Sample,
    p99: Sample,
    /// Most frames in 1 ms.
    most: Sample,
    cpu: Sample,
}

/// Busy loops, which end when this is dropped.
struct Loops(Arc<AtomicBool>);

impl Loops {
    fn begin(count: usize) -> Loops {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..count {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                // The bench keeps off the sending core; what is to be in its way does not.
                let mut all = rustix::thread::CpuSet::new();
                (0..rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
                let _ = rustix::thread::sched_setaffinity(None, &all);
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Loops(over)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "A busy machine",
        "Frames of 60 bytes beside twice as many busy loops as there are CPUs. `in time`: frames that came within the time of the \
         schedule and a hundredth, of those that were due. `most in 1 ms`: what a device sees of the catching up; netdyno \
         promises at most half of what the link carries.",
    );
    let files = Fixtures::new()?;
    let seconds = if bench.quick { 2 } else { 5 };
    let mut loads = Vec::new();
    for (name, rate) in [("10,000 frames/s", 10_000), ("100,000 frames/s", 100_000), ("100 Mbit/s", 208_333)]
    {
        let count = rate * seconds;
        let file = files.flows(&format!("busy-{rate}.pcap"), 60, count)?;
        let times = (0..count).map(|n| n * 1_000_000_000 / rate).collect();
        loads.push(Load { name, frames: Frames::Capture(file), times, constant: Some(rate) });
    }
    let senders: Vec<Sender> = [NETDYNO, ORDINARY, TCPREPLAY]
        .into_iter()
        .filter(|s| s.tool != Tool::Tcpreplay || bench.peer)
        .collect();
    let mut kept: Vec<Vec<Kept>> =
        loads.iter().map(|_| senders.iter().map(|_| Kept::default()).collect()).collect();
    // All but the sending core.
    let cpus = std::thread::available_parallelism()?.get() + 1;
    bench.as_users_do(true);
    for _ in 0..bench.runs {
        for (load, kept) in loads.iter().zip(&mut kept) {
            for (sender, kept) in senders.iter().zip(kept) {
                let loops = Loops::begin(2 * cpus);
                let done = once(bench, load, *sender, kept);
                drop(loops);
                done?;
            }
        }
    }
    bench.as_users_do(false);
    let mut table = Table::new(
        "Beside busy loops",
        &["load", "sender", "in time", "gap p50, us", "p99, us", "most in 1 ms", "CPU"],
    );
    for (load, kept) in loads.iter().zip(&kept) {
        for (sender, kept) in senders.iter().zip(kept) {
            let us = |v: f64| format!("{v:.1}");
            table.rows.push(vec![
                load.name.to_owned(),
                sender.name.to_owned(),
                kept.share.cell(|v| format!("{v:.2}%")),
                kept.p50.cell(us),
                kept.p99.cell(us),
                kept.most.cell(|v| format!("{v:.0}")),
                kept.cpu.short(|v| format!("{v:.0}%")),
            ]);
            section.command(plainly(&bench.command_line(sender.tool, &load.arguments(*sender))));
        }
        if let [ours, .., theirs] = &kept[..]
            && bench.peer
        {
            let what = format!("{}: in time, median (tcpreplay {:.2}%)", load.name, theirs.share.median());
            section
                .at_least(what, theirs.share.median().min(99.9), ours.share.median(), |v| format!("{v:.2}%"));
            // Half of the 10 Gbit/s that a veth states, for frames of 84 bytes on the wire.
            let most = 5e9 / 1e3 / (84.0 * 8.0);
            section.at_most(format!("{}: most in 1 ms", load.name), most, ours.most.max(), |v| {
                format!("{v:.0}")
            });
        }
    }
    section.tables.push(table);
    Ok(section)
}

fn once(bench: &Bench, load: &Load, sender: Sender, kept: &mut Kept) -> Result<()> {
    let meter = bench.arrival_meter(load.times.len() + 1000)?;
    let ran = bench.run(sender.tool, &load.arguments(sender), Duration::from_millis(50), |_, _| true)?;
    meter.settle(Some(load.times.len() as u64), Duration::from_millis(50), Duration::from_secs(1));
    let arrivals = meter.finish().arrivals;
    let first = arrivals.first().copied().unwrap_or(0);
    let lasts = load.times.last().map_or(0, |last| last + last / 100);
    let in_time = arrivals.iter().filter(|at| *at - first <= lasts).count();
    kept.share.push(in_time as f64 / load.times.len() as f64 * 100.0);
    kept.most.push(densest(&arrivals, MS) as f64);
    kept.cpu.push(ran.cpu_share() * 100.0);
    if arrivals.len() == load.times.len() {
        let gaps = load.times.windows(2).zip(arrivals.windows(2));
        let mut errors: Vec<f64> =
            gaps.map(|(asked, got)| (asked[1] - asked[0]).abs_diff(got[1] - got[0]) as f64 / 1e3).collect();
        errors.sort_by(f64::total_cmp);
        kept.p50.push(quantile(&errors, 0.5));
        kept.p99.push(quantile(&errors, 0.99));
    }
    Ok(())
}
