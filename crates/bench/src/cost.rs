//! Cases "cpu" and "memory": what a slow stream costs, what a large capture takes, and how soon it starts.

use crate::bench::{Bench, Tool};
use crate::document::{Section, Table};
use crate::fixtures::{Fixtures, argument};
use crate::stats::Sample;
use crate::topspeed::plainly;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// 100 Mbit/s of frames of 1514 bytes: the share of a core.
pub fn cpu(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "CPU",
        "User and system time of the whole process over its life, at 100 Mbit/s of frames of 1514 bytes \
         (8,256 frames/s): what waiting for the next frame costs. Receiving happens on the same core and is in it.",
    );
    let files = Fixtures::new()?;
    let frames = if bench.quick { 8_256 } else { 16_512 };
    let file = argument(&files.flows("udp1514.pcap", 1514, frames)?);
    let lines = [
        (Tool::Netdyno, words(&format!("replay {file} --on tx0 --preload --engine packet --rate 100mbps"))),
        (Tool::Tcpreplay, words(&format!("-i tx0 -K --mbps 100 {file}"))),
    ];
    let tools = bench.tools();
    let mut shares = [Sample::default(), Sample::default()];
    for _ in 0..bench.runs {
        for ((tool, arguments), share) in lines.iter().zip(&mut shares).take(tools.len()) {
            let mut counter = bench.far_counter()?;
            let ran = bench.run_plainly(*tool, arguments)?;
            let arrived = counter.look()?;
            if ran.said != Some(arrived) || arrived != frames {
                section.notes.push(format!(
                    "{}: asked {frames}, said {:?}, arrived {arrived}",
                    tool.name(),
                    ran.said
                ));
            }
            share.push(ran.cpu_share() * 100.0);
        }
    }
    let percent = |v: f64| format!("{v:.1}%");
    let title = format!("Share of a core, median of {} runs [lowest–highest]", bench.runs);
    let mut table = Table::new(title, &["sender", "CPU"]);
    for ((tool, arguments), share) in lines.iter().zip(&shares).take(tools.len()) {
        table.rows.push(vec![tool.name().to_owned(), share.cell(percent)]);
        section.command(plainly(&bench.command_line(*tool, arguments)));
    }
    section.tables.push(table);
    if bench.peer {
        let half = shares[1].median() / 2.0;
        section.at_most("netdyno, against half of the peer's", half, shares[0].median(), percent);
    }
    Ok(section)
}

/// Peak memory of a process and when its first frame arrived.
#[derive(Debug, Default)]
struct Started {
    /// Megabytes.
    peak: Sample,
    /// Seconds.
    first_frame: Sample,
}

const MB: f64 = 1e6;

pub fn memory(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Memory and start",
        "Peak resident memory (VmHWM, so without what the bench itself holds) and the time from starting the process \
         to the first frame's arrival, captures being in the page cache. The process is ended once it has sent for \
         a moment. Megabytes are 10^6 bytes.",
    );
    let megabytes = match (bench.quick, available_megabytes()) {
        (false, 14_000..) => 1000,
        (false, _) => {
            section.notes.push("less than 14 GB are free: captures of 300 MB instead of 1 GB".to_owned());
            300
        }
        _ => 300,
    };
    let files = Fixtures::new()?;
    let mut table = Table::new(
        "Preloaded",
        &["capture", "sender", "runs", "peak MB", "x file", "first frame after, s", "s/GB"],
    );
    for bytes in [1514_u32, 60] {
        for tool in bench.tools() {
            // tcpreplay takes 8 GB and half a minute for a GB of small frames: a smaller file, once, shows it.
            let slow = *tool == Tool::Tcpreplay && bytes == 60;
            let (runs, megabytes) = if slow { (1, 300) } else { (bench.runs, megabytes) };
            let (path, size) = cached(&files, bytes, megabytes)?;
            let arguments = preloading(*tool, &path);
            let mut seen = Started::default();
            for _ in 0..runs {
                start(bench, *tool, &arguments, &mut seen)?;
            }
            table.rows.push(vec![
                format!("{:.0} MB of {bytes} B frames", size / MB),
                tool.name().to_owned(),
                runs.to_string(),
                seen.peak.short(|v| format!("{v:.0}")),
                seen.peak.short(|v| format!("{:.2}x", v * MB / size)),
                seen.first_frame.cell(|v| format!("{v:.2}")),
                seen.first_frame.short(|v| format!("{:.2}", v * 1e9 / size)),
            ]);
            section.command(plainly(&bench.command_line(*tool, &arguments)));
            if *tool == Tool::Netdyno {
                let what = format!("preloading {bytes} B frames");
                let peak = seen.peak.median() * MB / size;
                section
                    .at_most(format!("{what}: peak over the file's size"), 1.1, peak, |v| format!("{v:.2}x"));
                let per_gigabyte = seen.first_frame.median() * 1e9 / size;
                section.at_most(format!("{what}: start"), 1.0, per_gigabyte, |v| format!("{v:.2} s/GB"));
            }
        }
        if bytes == 1514 {
            let passes = if bench.quick { 3 } else { 10 };
            streamed(bench, &cached(&files, bytes, megabytes)?.0, passes, &mut section)?;
        }
    }
    section.tables.insert(0, table);
    Ok(section)
}

/// A capture of that size, made if it is not there, in the page cache.
fn cached(files: &Fixtures, bytes: u32, megabytes: u64) -> Result<(PathBuf, f64)> {
    let name = format!("{megabytes}MB-{bytes}B.pcap");
    let path = match files.made(&name) {
        Some(path) => path,
        None => files.flows(&name, bytes, megabytes * 1_000_000 / (u64::from(bytes) + 16))?,
    };
    let size = std::io::copy(&mut std::fs::File::open(&path)?, &mut std::io::sink())?;
    Ok((path, size as f64))
}

fn preloading(tool: Tool, path: &Path) -> Vec<String> {
    let file = argument(path);
    words(&match tool {
        Tool::Netdyno => format!("replay {file} --on tx0 --preload --engine packet --rate 10kpps"),
        _ => format!("-i tx0 -K --pps 10000 {file}"),
    })
}

/// Runs until a moment after the first frame has arrived.
fn start(bench: &Bench, tool: Tool, arguments: &[String], seen: &mut Started) -> Result<()> {
    let mut counter = bench.far_counter()?;
    let mut peak = 0.0_f64;
    let mut first = None;
    let mut failed = None;
    bench.run(tool, arguments, Duration::from_millis(1), |pid, elapsed| {
        peak = peak.max(peak_megabytes(pid).unwrap_or(0.0));
        match counter.look() {
            Ok(0) => true,
            Ok(_) => elapsed < *first.get_or_insert(elapsed) + Duration::from_millis(100),
            Err(error) => {
                failed = Some(error);
                false
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    seen.peak.push(peak);
    seen.first_frame.push(first.map_or(f64::NAN, |first| first.as_secs_f64()));
    Ok(())
}

/// A capture read while it is sent, again and again: memory must not grow with it.
fn streamed(bench: &Bench, path: &Path, passes: u64, section: &mut Section) -> Result<()> {
    let size = std::fs::metadata(path)?.len() as f64;
    let file = argument(path);
    let lines = [
        (Tool::Netdyno, passes, format!("replay {file} --stream --topspeed --engine null --loop {passes}")),
        (Tool::Tcpreplay, 1, format!("-i tx0 -t {file}")),
    ];
    let mut table = Table::new("Streamed", &["read", "sender", "peak MB", "GB/s"]);
    for (tool, passes, text) in lines.into_iter().take(bench.tools().len()) {
        let arguments = words(&text);
        let mut peak = 0.0_f64;
        let ran = bench.run(tool, &arguments, Duration::from_millis(5), |pid, _| {
            peak = peak.max(peak_megabytes(pid).unwrap_or(0.0));
            true
        })?;
        let read = size * passes as f64 / 1e9;
        let to = if tool == Tool::Netdyno { "nowhere" } else { "tx0" };
        table.rows.push(vec![
            format!("{read:.1} GB to {to}"),
            tool.name().to_owned(),
            format!("{peak:.0}"),
            format!("{:.2}", read / ran.wall.as_secs_f64()),
        ]);
        section.command(plainly(&bench.command_line(tool, &arguments)));
        if tool == Tool::Netdyno {
            section.at_most(format!("streaming {read:.1} GB: peak"), 64.0, peak, |v| format!("{v:.0} MB"));
        }
    }
    section.tables.push(table);
    Ok(())
}

/// The most that a living process has had resident, of what it is now: rusage would count what it was before exec.
pub fn peak_megabytes(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0 / MB)
}

fn available_megabytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1000
}
