//! `make bench`: netdyno beside its peer and beside the machine's own limits, in the same run.
//!
//! Every figure is measured here and now: contenders take turns round by round, frames are counted at the other end
//! of a cable between two network namespaces, and what a tool says of itself is only compared with that. Prints
//! tables; a full run also writes `docs/benchmarks/RESULTS.md` and its plots. It judges nothing: a target missed is
//! shown as missed and is no error.

mod bench;
mod busy;
mod cores;
mod cost;
mod document;
mod executor;
mod files;
mod fixtures;
mod floors;
mod linerate;
mod machine;
mod metering;
mod pacing;
mod plot;
mod plugins;
mod search;
mod stability;
mod stats;
mod sys;
mod topspeed;
mod watching;

use anyhow::{Context, Result, ensure};
use bench::{Bench, Settings};
use capture::AtomicFile;
use clap::{Parser, ValueEnum};
use document::Section;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Measure netdyno beside its peers and beside the machine's own limits.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each measurement; medians are of these.
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// A first look: three shorter rounds, smaller captures. Writes no file.
    #[arg(long)]
    quick: bool,
    /// Measure only this; may be repeated. Writes no file.
    #[arg(long, value_name = "CASE")]
    only: Vec<Case>,
    /// The core that sends; the bench keeps to the others. The last one unless given.
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// The netdyno to measure; the one beside this program unless given.
    #[arg(long, value_name = "PATH")]
    netdyno: Option<PathBuf>,
    /// Run senders as real-time tasks: on a busy machine nearer to a core of their own, but Linux takes the core from
    /// them for up to 50 ms a second as soon as any other task is waiting for it.
    #[arg(long)]
    realtime: bool,
    /// Where a full run writes its results.
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Case {
    /// What making a frame costs.
    Executor,
    /// Replay as fast as it goes.
    Topspeed,
    /// Every engine at top speed, beside its floor and its peers.
    LineRate,
    /// Plugins beside expressions, and XDPerf's way of making frames beside ours.
    Plugins,
    /// Two sending cores beside one.
    Cores,
    /// What the meter leaves of the rate of a program that only counts.
    Metering,
    /// What the live screen and metrics cost.
    Screen,
    /// How exactly frames keep their times.
    Pacing,
    /// The same for live frames, at higher rates.
    LivePacing,
    /// What is sent on a machine that does something else, too.
    Busy,
    /// The share of a core that a slow stream takes.
    Cpu,
    /// Memory of large captures, and how soon they start.
    Memory,
    /// Editing and sorting captures, and replay, beside tcpreplay's suite under its names.
    Files,
    /// Throughput searches against a rate that is known.
    Search,
    /// A thousand million frames, every one accounted for.
    Stability,
}

impl Case {
    fn run(self, bench: &Bench) -> Result<Section> {
        match self {
            Case::Executor => executor::run(bench),
            Case::Topspeed => topspeed::run(bench),
            Case::LineRate => linerate::run(bench),
            Case::Plugins => plugins::run(bench),
            Case::Cores => cores::run(bench),
            Case::Metering => metering::run(bench),
            Case::Screen => watching::run(bench),
            Case::Pacing => pacing::run(bench),
            Case::LivePacing => pacing::live(bench),
            Case::Busy => busy::run(bench),
            Case::Cpu => cost::cpu(bench),
            Case::Memory => cost::memory(bench),
            Case::Files => files::run(bench),
            Case::Search => search::run(bench),
            Case::Stability => stability::run(bench),
        }
    }
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("netdyno-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(lab::is_privileged(), "the bench makes network namespaces and pins cores: run it as root (sudo)");
    let netdyno = match &arguments.netdyno {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("netdyno"),
    };
    let netdyno = netdyno.canonicalize().with_context(|| {
        format!(
            "no netdyno at {}: build it (cargo build --release -p netdyno-cli) or give --netdyno",
            netdyno.display()
        )
    })?;
    let cores = std::thread::available_parallelism()?.get();
    let core = arguments.core.unwrap_or(cores - 1);
    let runs = arguments.runs.unwrap_or(if arguments.quick { 3 } else { 5 }).max(1);
    let fingerprint = machine::fingerprint(&netdyno);
    let peer = machine::peer().is_some();
    if !peer {
        println!("tcpreplay is not installed (apt-get install tcpreplay): measuring without the peer");
    }
    keep_away_from(core, cores)?;
    let bench = Bench::new(Settings {
        runs,
        quick: arguments.quick,
        realtime: arguments.realtime,
        core,
        cores,
        netdyno,
        peer,
    })?;
    for (name, value) in &fingerprint {
        println!("{name}: {value}");
    }
    let start = Instant::now();
    let (busy, stolen) = machine::busy_and_stolen();
    let cases: Vec<Case> = Case::value_variants()
        .iter()
        .copied()
        .filter(|c| arguments.only.is_empty() || arguments.only.contains(c))
        .collect();
    let mut sections = Vec::new();
    for case in cases {
        let section = case.run(&bench)?;
        print!("{}", section.text());
        std::io::stdout().flush()?;
        sections.push(section);
    }
    let priority = if arguments.realtime { "as real-time tasks" } else { "at nice -20" };
    let seconds = start.elapsed().as_secs();
    let (busy_now, stolen_now) = machine::busy_and_stolen();
    // USER_HZ is 100 on every architecture Linux runs on today (time(7)).
    let per_core = |ticks: u64| ticks as f64 / (seconds.max(1) * 100 * cores as u64) as f64 * 100.0;
    let surroundings = format!(
        "{seconds} s in all; the {cores} cores were {:.0} % busy meanwhile (this bench included), and the hypervisor \
         took {:.1} %.",
        per_core(busy_now - busy),
        per_core(stolen_now - stolen)
    );
    println!("\n{surroundings}");
    if arguments.quick || !arguments.only.is_empty() {
        return Ok(());
    }
    write(&arguments.output, &fingerprint, &surroundings, core, priority, &sections)?;
    println!("written: {}", arguments.output.join("RESULTS.md").display());
    Ok(())
}

/// Leaves the sending core to the senders, if there is another.
fn keep_away_from(core: usize, cores: usize) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    (0..cores).filter(|&c| c != core || cores == 1).for_each(|c| set.set(c));
    rustix::thread::sched_setaffinity(None, &set).context("cannot leave the sending core")
}

fn write(
    folder: &Path,
    fingerprint: &[(&str, String)],
    surroundings: &str,
    core: usize,
    priority: &str,
    sections: &[Section],
) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let unix = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut page = format!(
        "# Benchmark results\n\nWritten by `make bench` on {}; [README.md](README.md) says how to read it.\n\n| | |\n|---|---|\n",
        report::units::rfc3339(unix)
    );
    fingerprint.iter().for_each(|(name, value)| page += &format!("| {name} | {value} |\n"));
    page += &format!("\n{surroundings} Senders ran on core {core} {priority}, the bench on the others.\n\n");
    let missed: Vec<&document::Target> =
        sections.iter().flat_map(|s| &s.targets).filter(|t| !t.met).collect();
    let all = sections.iter().map(|s| s.targets.len()).sum::<usize>();
    page += &format!("{} of {all} targets were met.", all - missed.len());
    if !missed.is_empty() {
        page += " Missed:\n\n";
        missed
            .iter()
            .for_each(|t| page += &format!("- {}: wanted {}, measured {}\n", t.what, t.wanted, t.found));
    }
    page += "\n\n";
    sections.iter().for_each(|section| page += &section.markdown());
    let save = |name: &str, text: &str| -> Result<()> {
        let path = folder.join(name);
        let mut file =
            AtomicFile::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        file.write_all(text.as_bytes())?;
        file.finish().with_context(|| format!("cannot write {}", path.display()))
    };
    for (name, svg) in sections.iter().filter_map(|section| section.plot.as_ref()) {
        save(name, svg)?;
    }
    save("RESULTS.md", page.trim_end())
}
