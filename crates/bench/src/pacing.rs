//! Case "pacing": how exactly frames keep their times, seen in the kernel at the far end, and what happens after the
//! sender was held up. Case "live-pacing": the same for live frames, at rates that only they hold.

use crate::bench::{self, Bench, Ran, Tool};
use crate::document::{Section, Table};
use crate::fixtures::{Fixtures, argument};
use crate::plot;
use crate::stats::{Sample, densest, quantile};
use crate::sys;
use crate::topspeed::plainly;
use anyhow::{Result, ensure};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub const MS: u64 = 1_000_000;

/// Frames and when they are to leave, relative to the first.
pub struct Load {
    pub name: &'static str,
    pub frames: Frames,
    pub times: Vec<u64>,
    /// Frames per second when they are evenly spaced; `None`: the capture's own times.
    pub constant: Option<u64>,
}

/// Where frames come from.
pub enum Frames {
    Capture(PathBuf),
    /// netdyno alone makes them.
    Expression(&'static str),
}

/// A tool, as it is called here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    pub name: &'static str,
    pub tool: Tool,
    pub options: &'static str,
}

pub const NETDYNO: Sender = Sender { name: "netdyno", tool: Tool::Netdyno, options: "--engine packet" };
/// Where gaps are long enough to sleep in, it makes a difference not to.
const SPINNING: Sender =
    Sender { name: "netdyno --spin", tool: Tool::Netdyno, options: "--engine packet --spin" };
pub const TCPREPLAY: Sender = Sender { name: "tcpreplay", tool: Tool::Tcpreplay, options: "" };

fn senders(bench: &Bench, load: &Load) -> Vec<Sender> {
    let frames = load.times.len() as u64;
    let mean_gap = load.times.last().map_or(0, |last| last / frames);
    let all = [NETDYNO, SPINNING, TCPREPLAY].into_iter();
    all.filter(|s| *s != SPINNING || mean_gap > 50_000).filter(|s| *s != TCPREPLAY || bench.peer).collect()
}

/// Where catching up is bounded by the rate.
const TWICE: Sender =
    Sender { name: "netdyno --catch-up 2", tool: Tool::Netdyno, options: "--engine packet --catch-up 2" };

/// A rate in words, if there is one.
fn asked(rate: Option<u64>, before: &str, after: &str) -> String {
    rate.map_or_else(String::new, |rate| format!("{before}{rate}{after}"))
}

impl Load {
    pub fn arguments(&self, sender: Sender) -> Vec<String> {
        let Sender { tool, options, .. } = sender;
        let rate = self.constant;
        let text = match (&self.frames, tool) {
            (Frames::Expression(what), _) => {
                let count = self.times.len();
                format!("send {what} --on tx0 --count {count} {options}{}", asked(rate, " --rate ", "pps"))
            }
            (Frames::Capture(file), Tool::Netdyno) => {
                let rate = asked(rate, " --rate ", "pps");
                format!("replay {} --on tx0 --preload {options}{rate}", argument(file))
            }
            (Frames::Capture(file), _) => {
                format!("-i tx0 -K{} {}", asked(rate, " --pps ", ""), argument(file))
            }
        };
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Frames the schedule has in a window, on average.
    fn asked_in(&self, window: u64) -> Option<f64> {
        self.constant.map(|rate| rate as f64 * window as f64 / 1e9)
    }
}

/// What one tool did with one load, over all runs. Times in microseconds.
#[derive(Default)]
struct Kept {
    p50: Sample,
    p90: Sample,
    p99: Sample,
    p999: Sample,
    max: Sample,
    drift: Sample,
    /// Of the mean rate, in percent.
    rate_error: Sample,
    /// Most frames in 1 and 10 ms over those asked for.
    burst: [Sample; 2],
    cpu: Sample,
    preempted: Sample,
    lost: u64,
}

const WINDOWS: [u64; 2] = [MS, 10 * MS];

impl Kept {
    /// Takes down one run: when frames were to arrive, relative to the first, and when they did.
    fn note(&mut self, load: &Load, arrivals: &[u64], ran: Option<&Ran>) {
        let asked = &load.times;
        if arrivals.len() != asked.len() {
            self.lost += asked.len().abs_diff(arrivals.len()) as u64;
            return;
        }
        let mut errors: Vec<f64> = asked
            .windows(2)
            .zip(arrivals.windows(2))
            .filter_map(|(asked, got)| match (asked, got) {
                ([a, b], [c, d]) => Some((b - a).abs_diff(d - c) as f64 / 1e3),
                _ => None,
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        self.p50.push(quantile(&errors, 0.5));
        self.p90.push(quantile(&errors, 0.9));
        self.p99.push(quantile(&errors, 0.99));
        self.p999.push(quantile(&errors, 0.999));
        self.max.push(quantile(&errors, 1.0));
        let span = |times: &[u64]| match times {
            [first, .., last] => (last - first) as f64,
            _ => 0.0,
        };
        self.drift.push((span(arrivals) - span(asked)) / 1e3);
        self.rate_error.push((span(asked) / span(arrivals) - 1.0) * 100.0);
        for (window, burst) in WINDOWS.into_iter().zip(&mut self.burst) {
            if let Some(asked) = load.asked_in(window) {
                burst.push(densest(arrivals, window) as f64 / asked);
            }
        }
        if let Some(ran) = ran {
            self.cpu.push(ran.cpu_share() * 100.0);
            self.preempted.push(ran.usage.preempted as f64);
        }
    }

    fn cells(&self) -> Vec<String> {
        let us = |v: f64| match v.abs() {
            v_abs if v_abs < 10.0 => format!("{v:.2}"),
            v_abs if v_abs < 100.0 => format!("{v:.1}"),
            _ => format!("{v:.0}"),
        };
        let ratio = |v: f64| format!("{v:.2}x");
        vec![
            self.p50.cell(us),
            self.p90.short(us),
            self.p99.cell(us),
            self.p999.short(us),
            self.max.short(us),
            self.drift.cell(us),
            self.rate_error.short(|v| format!("{v:+.4}%")),
            self.burst[0].cell(ratio),
            self.burst[1].short(ratio),
            self.cpu.short(|v| format!("{v:.0}%")),
            self.preempted.short(|v| format!("{v:.0}")),
        ]
    }
}

const HEAD: [&str; 13] = [
    "load",
    "sender",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "drift",
    "rate",
    "most in 1 ms",
    "in 10 ms",
    "CPU",
    "preempted",
];

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Pacing",
        "Frames of 60 bytes, preloaded; the arrival of each is taken in the kernel at the far end (netdyno's XDP \
         meter, the same for both tools). A gap error is how far the time between two frames is from what was asked, \
         without sign. Drift is how much later the last frame came, counted from the first, than it should have: \
         over a second or so here, over a minute below. `most in 1 ms` is the densest millisecond over what was \
         asked for. The floor is a bare loop that spins on the clock and sends one unchanging frame when it is time, in \
         all else like the tools. CPU is the whole process over its life, `preempted` how often another task took its core.",
    );
    let files = Fixtures::new()?;
    let mut loads = Vec::new();
    let part = if bench.quick { 2 } else { 1 };
    for (name, rate, count) in [
        ("10,000 frames/s", 10_000, 15_000),
        ("100,000 frames/s", 100_000, 100_000),
        ("500,000 frames/s", 500_000, 400_000),
    ] {
        let count = count / part;
        let file = files.flows(&format!("{rate}pps.pcap"), 60, count)?;
        let times = (0..count).map(|n| n * 1_000_000_000 / rate).collect();
        loads.push(Load { name, frames: Frames::Capture(file), times, constant: Some(rate) });
    }
    for (name, mean_us, count) in [
        ("capture, gaps of 10 us on average", 10, 100_000),
        ("capture, gaps of 100 us on average", 100, 10_000),
        ("capture, gaps of 1 ms on average", 1000, 1_500),
    ] {
        let (file, times) =
            files.exponential(&format!("gaps-{mean_us}us.pcap"), count / part, f64::from(mean_us))?;
        loads.push(Load { name, frames: Frames::Capture(file), times, constant: None });
    }
    let mut kept: Vec<Vec<(Sender, Kept)>> = loads
        .iter()
        .map(|load| senders(bench, load).into_iter().map(|s| (s, Kept::default())).collect())
        .collect();
    let mut floors: Vec<Kept> = loads.iter().map(|_| Kept::default()).collect();
    for _ in 0..bench.runs {
        for ((load, kept), floor) in loads.iter().zip(&mut kept).zip(&mut floors) {
            barely(bench, load, floor)?;
            for (sender, kept) in kept {
                once(bench, load, *sender, kept, None)?;
            }
        }
    }
    let table = tabulate(bench, &loads, &kept, &floors, &mut section);
    section.tables.push(table);
    let us = |v: f64| format!("{v:.2} us");
    for ((load, kept), floor) in loads.iter().zip(&kept).zip(&floors) {
        for (sender, ours) in kept.iter().filter(|(sender, _)| sender.tool == Tool::Netdyno) {
            let what = |q: &str, floor: &Sample| {
                format!("{}, {}: gap error {q} (floor {})", load.name, sender.name, us(floor.median()))
            };
            section.at_most(what("p50", &floor.p50), 0.2, ours.p50.median(), us);
            section.at_most(what("p99", &floor.p99), 15.0, ours.p99.median(), us);
        }
    }
    stalls(bench, &files, &mut section)?;
    long(bench, &files, &mut section)?;
    section.plot = Some(("pacing.svg", drawn(&loads, &kept, &floors)));
    Ok(section)
}

const LIVE: Sender = Sender { name: "netdyno, xdp", tool: Tool::Netdyno, options: "--engine xdp" };
const OTHERS: [Sender; 2] = [
    Sender { name: "netdyno, afxdp", tool: Tool::Netdyno, options: "--engine afxdp" },
    Sender { name: "netdyno, packet", tool: Tool::Netdyno, options: "--engine packet" },
];

/// The engines at rates at which a frame every microsecond is due.
pub fn live(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Pacing of live frames",
        "As under Pacing, for frames of 64 B of which address, port and both checksums change, at rates up to one \
         frame each microsecond. The floor is the least that can hold a schedule in the kernel: live frames that \
         nobody touches, and a program that looks at the clock and lets one go when it is due.",
    );
    const WHAT: &str = "ether(dst=02:00:00:00:00:99)/ipv4(src=10.0.0.0/16,dst=198.18.0.2)/udp(sport=1024..65535,dport=9) --size 64";
    let part = if bench.quick { 3 } else { 1 };
    let loads = [("100,000 frames/s", 100_000), ("1,000,000 frames/s", 1_000_000)].map(|(name, rate)| {
        let times = (0..rate / part).map(|n| n * 1_000_000_000 / rate).collect();
        Load { name, frames: Frames::Expression(WHAT), times, constant: Some(rate) }
    });
    let senders = || [LIVE].into_iter().chain(OTHERS).map(|sender| (sender, Kept::default())).collect();
    let mut kept: Vec<Vec<(Sender, Kept)>> = loads.iter().map(|_| senders()).collect();
    let mut floors: Vec<Kept> = loads.iter().map(|_| Kept::default()).collect();
    for _ in 0..bench.runs {
        for ((load, kept), floor) in loads.iter().zip(&mut kept).zip(&mut floors) {
            measured(bench, load, floor, || {
                let gap = load.constant.map_or(0, |rate| 1_000_000_000 / rate);
                crate::floors::paced_live_frames(bench, load.times.len() as u64, gap)
            })?;
            for (sender, kept) in kept {
                once(bench, load, *sender, kept, None)?;
            }
        }
    }
    let table = tabulate(bench, &loads, &kept, &floors, &mut section);
    section.tables.push(table);
    let us = |v: f64| format!("{v:.3} us");
    for ((load, kept), floor) in loads.iter().zip(&kept).zip(&floors) {
        for (sender, ours) in kept.iter().filter(|(sender, _)| *sender == LIVE) {
            let what = |q: &str, floor: &Sample| {
                format!("{}, {}: gap error {q} (floor {})", load.name, sender.name, us(floor.median()))
            };
            section.at_most(what("p50", &floor.p50), 1.0, ours.p50.median(), us);
            section.at_most(what("p99", &floor.p99), 10.0, ours.p99.median(), us);
        }
    }
    // Over a second a first frame that is late by a tenth of a millisecond would be all that a mean rate shows.
    let seconds = if bench.quick { 2 } else { 10 };
    let rate = 1_000_000;
    let load = Load {
        name: "1,000,000 frames/s",
        frames: Frames::Expression(WHAT),
        times: (0..rate * seconds).map(|n| n * 1_000_000_000 / rate).collect(),
        constant: Some(rate),
    };
    let mut long = Kept::default();
    once(bench, &load, LIVE, &mut long, None)?;
    let mut table = Table::new(format!("One run of {seconds} s, {}", LIVE.name), &HEAD);
    table.rows.push([vec![load.name.to_owned(), LIVE.name.to_owned()], long.cells()].concat());
    section.tables.push(table);
    note_lost(&mut section, &load, LIVE, &long);
    let rate_error = long.rate_error.median().abs();
    section.at_most(format!("mean rate off over {seconds} s"), 0.01, rate_error, |v| format!("{v:.5}%"));
    section.plot = Some(("live-pacing.svg", drawn(&loads, &kept, &floors)));
    Ok(section)
}

/// Loads and senders line by line; notes their commands and what they lost.
fn tabulate(
    bench: &Bench,
    loads: &[Load],
    kept: &[Vec<(Sender, Kept)>],
    floors: &[Kept],
    section: &mut Section,
) -> Table {
    let title =
        format!("Gap errors and drift in microseconds, median of {} runs [lowest–highest]", bench.runs);
    let mut table = Table::new(title, &HEAD);
    for ((load, kept), floor) in loads.iter().zip(kept).zip(floors) {
        let mut row = vec![load.name.to_owned(), "floor".to_owned()];
        row.extend(floor.cells());
        table.rows.push(row);
        for (sender, kept) in kept {
            let mut row = vec![load.name.to_owned(), sender.name.to_owned()];
            row.extend(kept.cells());
            table.rows.push(row);
            section.command(plainly(&bench.command_line(sender.tool, &load.arguments(*sender))));
            note_lost(section, load, *sender, kept);
        }
    }
    table
}

fn note_lost(section: &mut Section, load: &Load, sender: Sender, kept: &Kept) {
    if kept.lost > 0 {
        section.notes.push(format!("{}, {}: {} frames lost or too many", load.name, sender.name, kept.lost));
    }
}

fn drawn(loads: &[Load], kept: &[Vec<(Sender, Kept)>], floors: &[Kept]) -> String {
    let mut lines = Vec::new();
    let mut line = |load: &Load, name: &str, colour, kept: &Kept| {
        let points = [&kept.p50, &kept.p90, &kept.p99, &kept.p999, &kept.max];
        lines.push(plot::Dots {
            label: format!("{} · {name}", load.name),
            values: points.iter().map(|sample| sample.median()).collect(),
            colour,
        });
    };
    for ((load, kept), floor) in loads.iter().zip(kept).zip(floors) {
        line(load, "floor", plot::GREY, floor);
        for (sender, kept) in kept {
            let colour = if sender.tool == Tool::Netdyno { plot::OURS } else { plot::THEIRS };
            line(load, sender.name, colour, kept);
        }
    }
    let marks = ["p50", "p90", "p99", "p99.9", "max"];
    plot::dots("Gap error at the receiver", "microseconds", &marks, &lines)
}

/// Holds the sending core for this long, this long after the first frame.
#[derive(Clone, Copy)]
struct Stall {
    after: Duration,
    length: Duration,
}

fn once(bench: &Bench, load: &Load, sender: Sender, kept: &mut Kept, stall: Option<Stall>) -> Result<()> {
    let meter = bench.arrival_meter(load.times.len() + 1000)?;
    let mut holding = None;
    let mut first = None;
    let ran = bench.run(sender.tool, &load.arguments(sender), Duration::from_millis(10), |_, _| {
        if let Some(stall) = stall
            && holding.is_none()
        {
            if first.is_none() && meter.snapshot().frames > 0 {
                first = Some(Instant::now());
            }
            if first.is_some_and(|first| first.elapsed() >= stall.after) {
                let core = bench.core;
                holding = Some(std::thread::spawn(move || hold(core, stall.length)));
            }
        }
        true
    })?;
    if let Some(thread) = holding {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    meter.settle(Some(load.times.len() as u64), Duration::from_millis(50), Duration::from_secs(1));
    let measured = meter.finish();
    ensure!(measured.totals.arrivals_missed == 0, "more frames arrived than asked for");
    kept.note(load, &measured.arrivals, Some(&ran));
    if ran.said != Some(measured.totals.frames) {
        kept.lost += measured.totals.frames.abs_diff(ran.said.unwrap_or(0));
    }
    Ok(())
}

/// The same by a bare loop.
fn barely(bench: &Bench, load: &Load, kept: &mut Kept) -> Result<()> {
    measured(bench, load, kept, || {
        bench.send_barely(60, |index, frame| sys::send_at(index, frame, &load.times), || Ok(())).map(|_| ())
    })
}

/// Takes down what a floor sends.
fn measured(bench: &Bench, load: &Load, kept: &mut Kept, send: impl FnOnce() -> Result<()>) -> Result<()> {
    let meter = bench.arrival_meter(load.times.len() + 1000)?;
    send()?;
    meter.settle(Some(load.times.len() as u64), Duration::from_millis(50), Duration::from_secs(1));
    kept.note(load, &meter.finish().arrivals, None);
    Ok(())
}

/// Takes a core away from everybody else.
fn hold(core: usize, length: Duration) -> Result<()> {
    // In this order: on that core it may never get to run before it is a real-time task.
    sys::become_realtime(50)?;
    bench::pin(core)?;
    let start = Instant::now();
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
    Ok(())
}

/// After the sending core was taken away for 20 ms, how dense is what follows?
fn stalls(bench: &Bench, files: &Fixtures, section: &mut Section) -> Result<()> {
    let (rate, count) = (100_000, 40_000);
    let load = Load {
        name: "100,000 frames/s, core taken for 20 ms",
        frames: Frames::Capture(files.flows("stall.pcap", 60, count)?),
        times: (0..count).map(|n| n * 1_000_000_000 / rate).collect(),
        constant: Some(rate),
    };
    let stall = Stall { after: Duration::from_millis(200), length: Duration::from_millis(20) };
    let mut senders = senders(bench, &load);
    senders.insert(1, TWICE);
    let mut kept: Vec<Kept> = senders.iter().map(|_| Kept::default()).collect();
    for _ in 0..bench.runs {
        for (sender, kept) in senders.iter().zip(&mut kept) {
            once(bench, &load, *sender, kept, Some(stall))?;
        }
    }
    let title = "After a stall of 20 ms (a real-time task on the sending core): frames in a window over those asked for";
    let mut table = Table::new(title, &["sender", "most in 1 ms", "most in 10 ms", "drift, us"]);
    for (sender, kept) in senders.iter().zip(&kept) {
        let ratio = |v: f64| format!("{v:.2}x");
        table.rows.push(vec![
            sender.name.to_owned(),
            kept.burst[0].cell(ratio),
            kept.burst[1].cell(ratio),
            kept.drift.short(|v| format!("{v:.0}")),
        ]);
        note_lost(section, &load, *sender, kept);
    }
    section.tables.push(table);
    // Frames are whole: a window of 1 ms that holds 200 gaps' worth may hold 201 frames.
    let one = 1e9 / rate as f64 / MS as f64;
    // Half of the 10 Gbit/s that a veth states, for frames of 84 bytes on the wire.
    let half = 5e9 / 1e3 / (84.0 * 8.0) * one;
    for (limit, kept, how) in [(half, &kept[0], "half of the link"), (2.0, &kept[1], "--catch-up 2")] {
        let what = format!("most in 1 ms after a stall, highest of all runs ({how})");
        section.at_most(what, limit + one, kept.burst[0].max(), |v| format!("{v:.2}x"));
    }
    Ok(())
}

/// A long run: drift and mean rate need time to show.
fn long(bench: &Bench, files: &Fixtures, section: &mut Section) -> Result<()> {
    let (rate, seconds) = (10_000, if bench.quick { 10 } else { 60 });
    let count = rate * seconds;
    let load = Load {
        name: "10,000 frames/s",
        frames: Frames::Capture(files.flows("long.pcap", 60, count)?),
        times: (0..count).map(|n| n * 1_000_000_000 / rate).collect(),
        constant: Some(rate),
    };
    let mut kept = Kept::default();
    once(bench, &load, NETDYNO, &mut kept, None)?;
    let mut table = Table::new(format!("One run of {seconds} s, netdyno"), &HEAD);
    let mut row = vec![load.name.to_owned(), NETDYNO.name.to_owned()];
    row.extend(kept.cells());
    table.rows.push(row);
    section.tables.push(table);
    let (drift, rate_error) = (kept.drift.median().abs(), kept.rate_error.median().abs());
    section
        .at_most(format!("drift of the last frame after {seconds} s"), 50.0, drift, |v| format!("{v:.1} us"));
    section.at_most(format!("mean rate off over {seconds} s"), 0.005, rate_error, |v| format!("{v:.5}%"));
    section.command(plainly(&bench.command_line(Tool::Netdyno, &load.arguments(NETDYNO))));
    Ok(())
}
