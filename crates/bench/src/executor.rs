//! Case "executor": what making a frame costs, in this process, with nothing sent.

use crate::bench::{Bench, Tool};
use crate::document::{Section, Table};
use crate::fixtures::{FLOWS, frames};
use crate::stats::Sample;
use crate::topspeed::plainly;
use anyhow::{Context, Result};
use std::hint::black_box;
use std::time::Instant;
use traffic::executor::BATCH;
use traffic::expr::{self, Size};
use traffic::{Executor, Program, Schedule, Slab, Stream, Templates};
use wire::LinkType;

/// Batches in one short run: some 65,000 frames, half a millisecond.
const BATCHES: usize = 1024;

struct Shape {
    name: &'static str,
    program: Program,
    /// The clock is read for each signature, as when sending; else a constant is stamped.
    clock: bool,
}

const VARYING: &str = "ipv4(src=10.0.0.0/16, dst=198.18.0.2)/udp(sport=1024..65535, dport=9)";

fn compile(text: &str, size: Size, signature: Option<u32>) -> Result<Program> {
    let options = expr::Options { size: Some(size), signature, ..expr::Options::default() };
    Ok(expr::compile(text, &options)?)
}

fn without_sums(mut program: Program) -> Program {
    program.streams.iter_mut().for_each(|stream| stream.sums.clear());
    program
}

fn captured(unique_addresses: bool) -> Result<Program> {
    let program = frames(60)?;
    let mut executor = Executor::new(&program)?;
    let mut slab = Slab::new(1, 60);
    let mut templates = Templates::new();
    for _ in 0..FLOWS {
        executor.render(&mut slab.buffers(), 1, || 0);
        templates.push(LinkType::ETHERNET, slab.frame(0))?;
    }
    Ok(Program::single(Stream { templates, unique_addresses, ..Stream::of("capture", &[0; 60]) }))
}

fn shapes() -> Result<Vec<Shape>> {
    let small = || Size::Fixed(64);
    let imix = || Size::Mix(vec![(64, 7), (594, 4), (1518, 1)]);
    let eight = || -> Result<Program> {
        let streams = (0..8)
            .map(|n| {
                let text = format!("ipv4(src=10.{n}.0.0/16, dst=198.18.0.2)/udp(sport=1024..65535)");
                Ok(compile(&text, small(), None)?.streams.remove(0))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Program::interleaved(streams, [0, 1, 2, 3, 4, 5, 6, 7], Schedule::TopSpeed))
    };
    let shape = |name, program| Shape { name, program, clock: false };
    Ok(vec![
        shape("one frame that does not vary (the loop itself)", compile("ipv4/udp", small(), None)?),
        shape("source address and port vary, no checksum", without_sums(compile(VARYING, small(), None)?)),
        shape("source address and port vary, both checksums", compile(VARYING, small(), None)?),
        shape("same, signed, a constant as time stamp", compile(VARYING, small(), Some(1))?),
        Shape {
            clock: true,
            ..shape("same, signed, the clock read for each frame", compile(VARYING, small(), Some(1))?)
        },
        shape("same in the Internet mix of sizes (354 B mean)", compile(VARYING, imix(), None)?),
        shape("eight such streams, frame by frame in turn", eight()?),
        shape("capture of 64,511 frames of 60 B", captured(false)?),
        shape("same with unique addresses each pass", captured(true)?),
    ])
}

const BARE: usize = 1;
const SUMMED: usize = 2;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Executor",
        "Nanoseconds to make a frame in a buffer that holds the one before, in this process, nothing sent: UDP over \
         IPv4, 64 B with FCS unless said otherwise, 64 buffers in turn. Many short runs of 65,536 frames, the shapes \
         interleaved, on one pinned core.",
    );
    let rounds = if bench.quick { 60 } else { 250 };
    let shapes = shapes()?;
    let times = bench.on_sending_core(|| measure(&shapes, rounds))?;
    let ns = |v: f64| format!("{v:.1}");
    let title = format!("ns a frame, {rounds} short runs each");
    let mut table = Table::new(title, &["frames", "median", "minimum", "million frames/s"]);
    for (shape, sample) in shapes.iter().zip(&times) {
        let rate = format!("{:.0}", 1e3 / sample.median());
        table.rows.push(vec![shape.name.to_owned(), ns(sample.median()), ns(sample.min()), rate]);
    }
    section.tables.push(table);
    let unit = |v: f64| format!("{v:.1} ns");
    // Of work that needs nothing but the core the fastest run is what the code costs; the median holds what the
    // machine's other tenants did to it, too.
    let title = format!("fastest of {rounds} runs");
    section.at_most(format!("address, port and both checksums, {title}"), 12.0, times[SUMMED].min(), unit);
    through_null(bench, &mut section)?;
    let sums = times[SUMMED].min() - times[BARE].min();
    section.at_most(format!("of that checksum work, {title}"), 2.0, sums, unit);
    Ok(section)
}

/// The same through the whole of netdyno and out to nowhere: what is left for a driver.
fn through_null(bench: &Bench, section: &mut Section) -> Result<()> {
    let ms = if bench.quick { 300 } else { 1000 };
    let what = VARYING.replace(' ', "");
    let text = format!("send {what} --size 64 --engine null --topspeed --duration {ms}ms");
    let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let mut cost = Sample::default();
    for _ in 0..bench.runs {
        let ran = bench.run_plainly(Tool::Netdyno, &arguments)?;
        let tx = ran.report.and_then(|report| report.result.tx).context("netdyno gave no result")?;
        cost.push(tx.totals.duration_ns as f64 / tx.totals.frames.max(1) as f64);
    }
    let ns = |v: f64| format!("{v:.1} ns");
    let title = format!("netdyno --engine null, ns a frame, {} runs", bench.runs);
    let mut table = Table::new(title, &["frames", "median", "fastest"]);
    let name = "source address and port vary, both checksums".to_owned();
    table.rows.push(vec![name, cost.cell(ns), ns(cost.min())]);
    section.tables.push(table);
    section.at_most("netdyno --engine null, the same frames, fastest run", 7.0, cost.min(), ns);
    section.command(plainly(&bench.command_line(Tool::Netdyno, &arguments)));
    Ok(())
}

fn measure(shapes: &[Shape], rounds: usize) -> Result<Vec<Sample>> {
    let mut ready = Vec::new();
    for shape in shapes {
        let slab = Slab::new(BATCH, shape.program.longest() as usize);
        ready.push((Executor::new(&shape.program)?, slab));
    }
    let mut times = vec![Sample::default(); shapes.len()];
    // The first round fills buffers and caches and is not kept.
    for round in 0..=rounds {
        for (((executor, slab), shape), sample) in ready.iter_mut().zip(shapes).zip(&mut times) {
            let mut buffers = slab.buffers();
            let start = Instant::now();
            for _ in 0..BATCHES {
                let made = match shape.clock {
                    true => executor.render(&mut buffers, BATCH, engine_clock),
                    false => executor.render(&mut buffers, BATCH, || 1),
                };
                black_box(made);
                black_box(&mut buffers);
            }
            let ns = start.elapsed().as_nanos() as f64 / (BATCHES * BATCH) as f64;
            if round > 0 {
                sample.push(ns);
            }
        }
    }
    Ok(times)
}

/// The clock that senders stamp with.
fn engine_clock() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
