//! Case "files": what is done to captures before they are sent, and replay under tcpreplay's name, beside
//! tcpreplay's own suite. Both tools of a pair do the same work on the same file and the same core.

use crate::bench::{Bench, Far, Tool};
use crate::cost::peak_megabytes;
use crate::document::{Section, Table};
use crate::fixtures::{Fixtures, argument};
use crate::stats::Sample;
use crate::sys;
use anyhow::{Context, Result, ensure};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A pair: the same words for both tools.
struct Pair {
    name: String,
    tool: &'static str,
    arguments: String,
    frames: u64,
    wanted: Option<f64>,
    ours: Seen,
    theirs: Seen,
}

/// Frames for each second of CPU time, and memory.
#[derive(Default)]
struct Seen {
    rate: Sample,
    peak: Sample,
}

const MACS: &str = "--enet-smac=02:00:00:00:00:01 --enet-dmac=02:00:00:00:00:02";

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Captures and drop-ins",
        "netdyno under the names of tcpreplay's suite, beside Debian's tools, with the same words. Millions of frames \
         for each second of CPU time (user and system, start included) on one core; files in memory (/dev/shm), \
         `x peer` the median of the ratios round by round. Peak memory is VmHWM, watched every 2 ms. *dd* copies the \
         same file in pieces of 256 KiB, which is what reading and writing it alone costs. Replay is counted at the far \
         end of the veth, see line rate: *drop*, an XDP program of two instructions; *measure --drop* and *measure*, \
         netdyno's meter, which drops what it has counted or lets the host have it; *stack*, none, so that there are no \
         live frames.",
    );
    ensure!(bench.peer, "tcpreplay's suite is not installed: nothing to compare with");
    let files = Fixtures::in_memory()?;
    let (mixed, mixed_frames) = mixed(bench, &files)?;
    let small_frames = if bench.quick { 500_000 } else { 4_000_000 };
    let runs = if bench.quick { 1 } else { bench.runs.min(3) };
    let small = files.flows("small.pcap", 60, small_frames)?;
    let output = argument(&files.path("output"));
    let mut pairs = Vec::new();
    let mut pair = |name: String, tool, arguments, frames, wanted| {
        let (ours, theirs) = (Seen::default(), Seen::default());
        pairs.push(Pair { name, tool, arguments, frames, wanted, ours, theirs });
    };
    for (what, path, frames) in [("mixed", &mixed, mixed_frames), ("60 B", &small, small_frames)] {
        let file = argument(path);
        let edits = format!("-C {MACS} --pnat=10.0.0.0/8:172.16.0.0/12 -i {file} -o {output}");
        pair(format!("{what}: checksums, MACs, pnat"), "tcprewrite", edits, frames, Some(5.0));
    }
    for mode in ["bridge", "client", "router", "first"] {
        let arguments = format!("--auto={mode} -i {} -o {output}", argument(&mixed));
        pair(format!("mixed: --auto={mode}"), "tcpprep", arguments, mixed_frames, Some(5.0));
    }
    pair("mixed: listing".to_owned(), "tcpcapinfo", argument(&mixed), mixed_frames, None);
    let mut copies = Seen::default();
    for _ in 0..runs {
        let copy = format!("if={} bs=256k of={output}", argument(&mixed));
        once(bench, "dd", false, &copy, mixed_frames, &mut copies)?;
        for pair in &mut pairs {
            for (ours, seen) in [(true, &mut pair.ours), (false, &mut pair.theirs)] {
                once(bench, pair.tool, ours, &pair.arguments, pair.frames, seen)
                    .with_context(|| format!("{}, {}", pair.tool, pair.name))?;
            }
        }
    }
    let (mfps, times) = (|v: f64| format!("{:.2}", v / 1e6), |v: f64| format!("{v:.2}x"));
    let title = format!("Million frames per CPU second, median of {runs} runs [lowest–highest]");
    let mut table = Table::new(title, &["", "work", "netdyno", "peer", "x peer", "MB", "peer's MB"]);
    let dash = || "–".to_owned();
    let cells = ["dd".to_owned(), "mixed: copied".to_owned(), dash(), copies.rate.cell(mfps)];
    table.rows.push(cells.into_iter().chain([dash(), dash(), dash()]).collect());
    for pair in &pairs {
        let ratio = pair.ours.rate.over(&pair.theirs.rate);
        table.rows.push(vec![
            pair.tool.to_owned(),
            pair.name.clone(),
            pair.ours.rate.cell(mfps),
            pair.theirs.rate.cell(mfps),
            ratio.short(times),
            pair.ours.peak.short(|v| format!("{v:.0}")),
            pair.theirs.peak.short(|v| format!("{v:.0}")),
        ]);
        let what = format!("{}, {}", pair.tool, pair.name);
        if let Some(wanted) = pair.wanted {
            section.at_least(format!("{what}: over the peer"), wanted, ratio.median(), times);
        }
        section.at_most(format!("{what}: peak"), 64.0, pair.ours.peak.max(), |v| format!("{v:.0} MB"));
        section.command(format!("netdyno {} {}", pair.tool, pair.arguments));
    }
    section.tables.push(table);
    let flows = files.flows("flows.pcap", 60, 64_000)?;
    replay(bench, runs, &flows, &mut section)?;
    Ok(section)
}

/// A synthesised capture with the totals of bigFlows.pcap, three times over: about 1 GB. How many frames it has.
fn mixed(bench: &Bench, files: &Fixtures) -> Result<(PathBuf, u64)> {
    const FRAMES: u64 = 791_615;
    let path = files.path("mixed.pcap");
    let made = Command::new(&bench.netdyno).args(["synth", "--write"]).arg(&path).output()?;
    ensure!(made.status.success(), "netdyno synth: {}", String::from_utf8_lossy(&made.stderr));
    let length = path.metadata()?.len();
    let copies = if bench.quick { 1 } else { 3 };
    for _ in 1..copies {
        let mut from = File::open(&path)?;
        // Behind the file's header.
        from.seek(SeekFrom::Start(24))?;
        std::io::copy(&mut from.take(length - 24), &mut OpenOptions::new().append(true).open(&path)?)?;
    }
    Ok((path, FRAMES * copies))
}

fn once(bench: &Bench, tool: &str, ours: bool, arguments: &str, frames: u64, seen: &mut Seen) -> Result<()> {
    bench.check()?;
    // What is there of an earlier run is nobody's to clear away: netdyno keeps it until its own is whole, tcprewrite does
    // not, and memory that nobody has used for a while costs a virtual machine much.
    let written = arguments.split_whitespace().next_back().map(|word| word.trim_start_matches("of="));
    if let Some(output) = written.map(Path::new).filter(|path| path.ends_with("output") && path.exists()) {
        std::fs::remove_file(output)?;
    }
    let core = bench.core.to_string();
    let mut command = Command::new("nice");
    command.args(["-n", "-20", "taskset", "-c", &core]);
    match ours {
        true => command.arg(&bench.netdyno).arg(tool),
        false => command.arg(tool),
    };
    let mut complained = tempfile::tempfile()?;
    let child = command
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(complained.try_clone()?)
        .spawn()?;
    let pid = child.id();
    let ended = std::sync::atomic::AtomicBool::new(false);
    let (usage, peak) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut peak = 0.0_f64;
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                peak = peak.max(peak_megabytes(pid).unwrap_or(0.0));
                std::thread::sleep(Duration::from_millis(2));
            }
            peak
        });
        let usage = sys::wait(pid);
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        (usage, watching.join().unwrap_or(f64::NAN))
    });
    let usage = usage?;
    if usage.status != 0 {
        let mut text = String::new();
        complained.rewind()?;
        complained.read_to_string(&mut text)?;
        anyhow::bail!("failed: {}", text.trim());
    }
    seen.rate.push(frames as f64 / (usage.user + usage.system).as_secs_f64());
    seen.peak.push(peak);
    Ok(())
}

/// `netdyno tcpreplay` beside tcpreplay: top speed, preloaded, other addresses in each pass.
fn replay(bench: &Bench, runs: usize, capture: &Path, section: &mut Section) -> Result<()> {
    const TICK: Duration = Duration::from_millis(1);
    let lines = |tool| {
        // As long as it takes each about a second.
        let passes = if tool == Tool::DropIn { 50 } else { 8 };
        let text = format!("-i tx0 -K --topspeed --unique-ip --loop {passes} {}", argument(capture));
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let mfps = |v: f64| format!("{:.2}", v / 1e6);
    let times = |v: f64| format!("{v:.2}x");
    let title = format!("Replay, 64 B: million frames/s, median of {runs} runs [lowest–highest]");
    let mut table = Table::new(title, &["-K --topspeed --unique-ip", "received by", "rate", "x peer"]);
    for (far, by, wanted) in [
        (Far::Drop, "drop", Some(8.0)),
        (Far::Time, "measure --drop", Some(8.0)),
        (Far::Pass, "measure", None),
        (Far::Stack, "stack", None),
    ] {
        let mut rates = [Sample::default(), Sample::default()];
        for _ in 0..runs {
            for (tool, rate) in [Tool::DropIn, Tool::Tcpreplay].into_iter().zip(&mut rates) {
                let _receiver = bench.receiver(far)?;
                let mut counter = bench.far_counter()?;
                let mut failed = None;
                let ran = bench.run(tool, &lines(tool), TICK, |_, _| {
                    failed = counter.look().err();
                    failed.is_none()
                })?;
                if let Some(error) = failed {
                    return Err(error);
                }
                rate.push(counter.rate().unwrap_or(f64::NAN));
                let arrived = counter.arrived_bytes()?.0;
                if ran.said != Some(arrived) {
                    let note = format!("{}, by {by}: said {:?}, arrived {arrived}", tool.name(), ran.said);
                    section.notes.push(note);
                }
            }
        }
        let [ours, theirs] = &rates;
        let ratio = ours.over(theirs);
        let cells = [(Tool::DropIn, ours, ratio.short(times)), (Tool::Tcpreplay, theirs, "–".to_owned())];
        for (tool, rate, ratio) in cells {
            table.rows.push(vec![tool.name().to_owned(), by.to_owned(), rate.cell(mfps), ratio]);
            section.command(bench.command_line(tool, &lines(tool)).join(" "));
        }
        if let Some(wanted) = wanted {
            section.at_least(
                format!("netdyno tcpreplay, by {by}: over tcpreplay"),
                wanted,
                ratio.median(),
                times,
            );
        }
    }
    section.tables.push(table);
    Ok(())
}
