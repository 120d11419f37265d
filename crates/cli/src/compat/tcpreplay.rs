//! `netdyno tcpreplay`: the command lines of tcpreplay 4.4 and 4.5, run by netdyno's own replay.
//!
//! This only translates: [`translate`] turns words into the [`Settings`] of a replay, and [`run`] prints what came of
//! it as that tool does. docs/from-tcpreplay.md says what each option does here, and docs/compat.md what is different.
//!
//! Exit status as tcpreplay's: 0 done; 1 wrong usage, or frames were refused or lost; 255 not done.

mod options;
#[cfg(test)]
mod tests;

use super::autoopts::{self, Parsed, Spec};
use super::{presets, tcpreplay_edit, watching};
use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{aside, note, print};
use anyhow::{Context, Error, Result, bail};
use engine::source::{Loss, Seam, Selection};
use job::kinds::replay::{self, Settings, TwoSides};
use job::kinds::shared::{Pace, Through};
use job::run::Interim;
use job::sides::Sides;
use options::{Here, Known, OPTIONS};
use port::interface::Interface;
use report::{Report, Totals, classic};
use spec::Consent;
use spec::Oversize;
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use traffic::Rate;
use traffic::rate::parse_speed;
use traffic::schedule::Speed;

/// Wrong usage, and a run that fell short.
const USAGE: u8 = 1;
/// Nothing was done.
const FAILED: u8 = 255;

/// Which of the two tools is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    Tcpreplay,
    /// It has tcprewrite's options, too.
    TcpreplayEdit,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Tcpreplay => "tcpreplay",
            Tool::TcpreplayEdit => "tcpreplay-edit",
        }
    }

    /// The options that it takes.
    fn specs(self) -> Vec<Spec> {
        let mut specs: Vec<Spec> = OPTIONS.iter().map(|known| known.spec).collect();
        if self == Tool::TcpreplayEdit {
            let edits: Vec<Spec> = tcpreplay_edit::options().map(|(spec, _)| spec).collect();
            specs.retain(|spec| edits.iter().all(|edit| edit.name != spec.name));
            specs.extend(edits);
        }
        specs
    }
}

/// Settings of a replay that have an option of tcpreplay's, or one that netdyno added to those.
pub const CALLED: &[(&str, &str)] = &[
    ("count", "--limit"),
    ("duration", "--duration"),
    ("loops", "--loop"),
    ("loss", "--loss"),
    ("no_real_time", "--no-real-time"),
    ("preload", "--preload-pcap"),
    ("rate", "--mbps or --pps"),
    ("speed", "--multiplier"),
    ("unique_ip", "--unique-ip"),
    ("write", "--write"),
    ("yes_disrupt", "--yes-disrupt"),
];

/// What a command line asks for.
#[derive(Debug)]
enum Wanted {
    Help,
    Version,
    Interfaces,
    /// The options are written.
    Saved,
    Replay(Box<Plan>),
}

/// A replay, and how to print what came of it.
#[derive(Debug)]
struct Plan {
    settings: Settings,
    stats: bool,
    /// Which loop begins, where that is told.
    loops: String,
    flows: bool,
    quiet: bool,
    pid: bool,
    given: Parsed,
}

/// Does what `words` ask for; returns the exit status.
pub fn run(tool: Tool, words: &[OsString]) -> u8 {
    crate::wording::as_a_drop_in();
    let mut plan = match translate(tool, words) {
        Ok(Wanted::Replay(plan)) => plan,
        Ok(other) => return told(tool, tell(tool, &other)),
        Err(error) => {
            note(&format!("netdyno {}: {}", tool.name(), job::in_full(&error)));
            return USAGE;
        }
    };
    if plan.pid {
        note(&format!("PID: {}", std::process::id()));
    }
    if plan.stats {
        let _ = print(&(plan.loops.clone() + &format!("Test start: {} ...\n", now())));
    }
    let device = plan.given.value("intf1").or(plan.given.value("write")).unwrap_or_default();
    match watching::hooks(&plan.given, device, plan.settings.loops.unwrap_or(1)) {
        Ok(hooks) => plan.settings.hooks = hooks,
        Err(error) => {
            note(&format!("netdyno {}: {}", tool.name(), job::in_full(&error)));
            return FAILED;
        }
    }
    let (stats, flows, quiet, write) = (plan.stats, plan.flows, plan.quiet, plan.settings.write.clone());
    let by_device = flows && !plan.settings.preload;
    let settings = plan.settings;
    let output = Output { quiet: true, ..Output::default() };
    let run = move |session| replay::find_and_replay(tool.name(), settings, session);
    let start = |session| job::spawn(session, run);
    let done = Signals::handle(false)
        .and_then(|signals| attend(&output, Line::Not, signals.session(Consent::default(), None), start));
    let mut report = match done {
        Ok(report) => report,
        Err(error) => {
            note(&format!("netdyno {}: {}", tool.name(), job::in_full(&error)));
            return FAILED;
        }
    };
    if !by_device {
        // As that tool, which counts flows of a preloaded capture before it knows where they leave.
        for device in report.result.tx.iter_mut().flat_map(|tx| &mut tx.interfaces) {
            (device.flows, device.flow_frames) = (None, None);
        }
    }
    conclude(tool, report, stats, flows, quiet, write.as_deref())
}

/// Prints the closing block.
fn conclude(
    tool: Tool,
    mut report: Report,
    stats: bool,
    flows: bool,
    quiet: bool,
    write: Option<&Path>,
) -> u8 {
    if !flows {
        report.result.flows = None;
    }
    if let Some(file) = write {
        report.resolved.interfaces = vec![file.display().to_string()];
    }
    if !quiet {
        for warning in &report.warnings {
            note(&format!("Warning: {warning}"));
        }
    }
    let verdict = &report.result.verdict;
    for reason in verdict.reasons() {
        note(&format!("netdyno {}: {reason}", tool.name()));
    }
    let complete = if stats { format!("Test complete: {}\n", now()) } else { String::new() };
    let block = complete + &classic::render(&report);
    if write.is_some_and(|file| file.as_os_str() == "-") {
        // The capture went there.
        aside(&block);
    } else if told(tool, print(&block)) != 0 {
        return FAILED;
    }
    match verdict.exit_status() {
        0 => 0,
        1 => USAGE,
        _ => FAILED,
    }
}

/// 0 if it was printed, or nobody wanted to read on.
fn told(tool: Tool, printed: Result<()>) -> u8 {
    match printed {
        Err(error) if !crate::output::reader_left(&error) => {
            note(&format!("netdyno {}: {}", tool.name(), job::in_full(&error)));
            FAILED
        }
        _ => 0,
    }
}

fn tell(tool: Tool, wanted: &Wanted) -> Result<()> {
    match wanted {
        Wanted::Version => print(&format!(
            "netdyno {} as {tool}: takes the command lines of {tool} 4.4.3 and 4.5\n",
            env!("CARGO_PKG_VERSION"),
            tool = tool.name()
        )),
        Wanted::Interfaces => {
            let names = Interface::list()?.into_iter().map(|interface| interface.name + "\n");
            print(&format!("Available network interfaces:\n{}", names.collect::<String>()))
        }
        Wanted::Saved => Ok(()),
        Wanted::Help | Wanted::Replay(_) => print(&help(tool)),
    }
}

fn help(tool: Tool) -> String {
    let name = tool.name();
    let mut text = format!(
        "netdyno in {name}'s place: sends captures.\n\
        Usage: netdyno {name} [OPTION]... FILE|FOLDER|-...\n\n"
    );
    let described = |spec: Spec, help: &str| {
        let short = spec.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
        let value = spec.value.map_or(String::new(), |value| format!("={value}"));
        format!("  {short}{:<26} {help}", format!("--{}{value}", spec.name))
    };
    let line = |known: &Known| described(known.spec, known.help);
    let listed = |here: fn(Here) -> bool| {
        OPTIONS
            .iter()
            .filter(|known| here(known.here))
            .map(|known| line(known).trim_end().to_owned() + "\n")
            .collect::<String>()
    };
    text += &listed(|here| here == Here::Works);
    if tool == Tool::TcpreplayEdit {
        text += "\nEdits of each packet, as tcprewrite does them:\n";
        for (spec, help) in tcpreplay_edit::options() {
            text += &(described(spec, &help) + "\n");
        }
    }
    text += "\nTaken, and without effect here:\n";
    text += &listed(|here| here == Here::Nothing);
    text += "\nRefused, with the reason:\n";
    text += &listed(|here| matches!(here, Here::Refused(_)));
    text += "\ndocs/from-tcpreplay.md describes all of them; `netdyno replay --help` does more.\n";
    text
}

/// The time as that tool prints it; in UTC.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let date = report::units::rfc3339(now.as_secs()).replace('T', " ");
    format!("{}.{:06}", date.trim_end_matches('Z'), now.subsec_micros())
}

/// What is asked for in the place of a replay.
fn instead(tool: Tool, given: &Parsed) -> Result<Option<Wanted>> {
    if let Some(file) = given.value("save-opts") {
        presets::save(Path::new(file), tool.name(), given)?;
        return Ok(Some(Wanted::Saved));
    }
    if ["help", "less-help", "more-help"].iter().any(|help| given.has(help)) {
        return Ok(Some(Wanted::Help));
    }
    if given.has("version") {
        return Ok(Some(Wanted::Version));
    }
    if given.has("listnics") {
        return Ok(Some(Wanted::Interfaces));
    }
    Ok(None)
}

fn translate(tool: Tool, words: &[OsString]) -> Result<Wanted> {
    let specs = tool.specs();
    let mut given = autoopts::parse_repeated(&specs, tcpreplay_edit::is_repeated, words)?;
    if let Some(file) = given.value("load-opts").map(PathBuf::from) {
        presets::load(&file, "TCPREPLAY", &specs, &mut given)?;
    }
    if let Some(wanted) = instead(tool, &given)? {
        return Ok(wanted);
    }
    for known in &OPTIONS {
        if let Here::Refused(reason) = known.here
            && given.has(known.spec.name)
        {
            bail!("--{} is not supported: {reason}", known.spec.name);
        }
    }
    check(&given)?;
    let rate = rate(&given)?;
    let loops = number::<u64>(&given, "loop", 0)?.unwrap_or(1);
    let pause = match (number::<u64>(&given, "loopdelay-ms", 0)?, number::<u64>(&given, "loopdelay-ns", 0)?) {
        (Some(ms), _) => Duration::from_millis(ms),
        (None, ns) => Duration::from_nanos(ns.unwrap_or(0)),
    };
    let files = files(&given.files)?;
    let preload = given.has("preload-pcap");
    if loops != 1 && !preload && files.iter().any(|file| file.as_os_str() == "-") {
        bail!("standard input cannot be read a second time for a loop: add --preload-pcap, or give a file");
    }
    let stats = number::<u64>(&given, "stats", 0)?;
    let interim = stats.filter(|seconds| *seconds > 0).map(|seconds| Interim {
        every: Duration::from_secs(seconds),
        tell: |totals: &Totals| {
            // Whoever does not read on is no reason to end the run.
            let _ = print(&classic::totals(totals));
        },
    });
    if (watching::wanted(&given) || given.has("loss") || given.has("flow-expiry"))
        && loops != 1
        && files.iter().any(|file| file.as_os_str() == "-")
    {
        bail!(
            "standard input cannot be read a second time for a loop, and these options read captures while sending: give a file"
        );
    }
    let settings = Settings {
        // Called by these names where netmap is to be used.
        interface: given.value("intf1").map(|name| name.strip_prefix("netmap:").unwrap_or(name).to_owned()),
        two: TwoSides {
            on2: given.value("intf2").map(|name| name.strip_prefix("netmap:").unwrap_or(name).to_owned()),
            sides: match given.value("cachefile") {
                Some(file) => Some(Sides::Cache(PathBuf::from(file))),
                None => given.has("dualfile").then_some(Sides::Files),
            },
            ..TwoSides::default()
        },
        write: given.value("write").map(PathBuf::from),
        speed: speed(&given)?,
        pace: Pace {
            rate,
            duration: number::<u64>(&given, "duration", 1)?.map(Duration::from_secs),
            count: number::<u64>(&given, "limit", 1)?,
            no_real_time: given.has("no-real-time"),
            ..Pace::default()
        },
        loops: Some(loops),
        preload,
        unique_every: unique_every(&given)?,
        oversize: Oversize::Skip,
        skip_corrupt: true,
        through: Through {
            yes_disrupt: given.value("yes-disrupt").map(str::to_owned).into_iter().collect(),
            ..Through::default()
        },
        packets: packets(&given)?,
        seam: Seam::Nothing,
        longest_gap: number::<u64>(&given, "maxsleep", 0)?.filter(|ms| *ms > 0).map(Duration::from_millis),
        whole_length: given.has("pktlen"),
        pause,
        together: NonZeroU64::new(number::<u64>(&given, "pps-multi", 1)?.unwrap_or(1))
            .unwrap_or(NonZeroU64::MIN),
        count_flows: !given.has("no-flow-stats"),
        best_effort: true,
        stamps: !given.has("departure-times"),
        interim,
        edits: tcpreplay_edit::plan(&given, given.has("cachefile") || given.has("dualfile"))?.map(Arc::new),
        defects: super::defects()?,
        loss: loss(&given)?,
        flow_expiry_s: number::<u64>(&given, "flow-expiry", 0)?.filter(|seconds| *seconds > 0),
        ..Settings::of(files)
    };
    Ok(Wanted::Replay(Box::new(Plan {
        settings,
        stats: stats.is_some(),
        loops: if stats == Some(0) { watching::loop_line(1, loops) } else { String::new() },
        flows: !given.has("no-flow-stats"),
        quiet: given.has("quiet") || given.has("suppress-warnings"),
        pid: given.has("pid"),
        given,
    })))
}

/// What goes together, and what does not.
fn check(given: &Parsed) -> Result<()> {
    let exclusive: [&[&str]; 6] = [
        &["multiplier", "pps", "mbps", "topspeed", "oneatatime"],
        &["include", "exclude"],
        &["loopdelay-ms", "loopdelay-ns"],
        &["intf1", "write"],
        &["intf2", "write"],
        &["cachefile", "dualfile"],
    ];
    for names in exclusive {
        let mut both = names.iter().filter(|name| given.has(name));
        if let (Some(one), Some(other)) = (both.next(), both.next()) {
            bail!("--{one} and --{other} exclude each other: leave one out");
        }
    }
    for (name, needs) in [
        ("unique-ip", "loop"),
        ("unique-ip-loops", "unique-ip"),
        ("loopdelay-ms", "loop"),
        ("loopdelay-ns", "loop"),
        ("pps-multi", "pps"),
        ("decode", "verbose"),
        ("loss-seed", "loss"),
    ] {
        if given.has(name) && !given.has(needs) {
            bail!("--{name} needs --{needs}: add it");
        }
    }
    if !given.has("intf1") && !given.has("write") {
        bail!("where to? Name an interface with --intf1 (-i); --listnics lists them");
    }
    let sided = given.has("cachefile") || given.has("dualfile");
    if given.has("intf2") && !sided {
        bail!(
            "--intf2 needs --cachefile or --dualfile, to know what it is to send: make a cache file with tcpprep, and name it with --cachefile"
        );
    }
    if sided && !given.has("intf2") && !given.has("write") {
        let option = if given.has("cachefile") { "cachefile" } else { "dualfile" };
        bail!("--{option} needs --intf2: name the interface of the second side");
    }
    if given.files.is_empty() {
        bail!("which captures? Name at least one file");
    }
    if let Some(timer) = given.value("timer")
        && !["gtod", "nano", "select", "ioport", "abstime", "rdtsc"].contains(&timer)
    {
        bail!("--timer={timer}: there are gtod, nano, select and ioport (all are the same here)");
    }
    for name in ["sleep-accel", "nm-delay", "xdp-batch-size", "dbug"] {
        number::<u64>(given, name, 0)?;
    }
    if number::<u64>(given, "maxsleep", 0)?.is_some_and(|ms| ms > 0)
        && (given.has("pps") || given.has("mbps"))
    {
        bail!(
            "--maxsleep cuts the capture's own pauses, and a rate has none: leave it out, or give a higher rate"
        );
    }
    Ok(())
}

/// The rate that is asked for; `None`: the capture's own timing.
fn rate(given: &Parsed) -> Result<Option<Rate>> {
    if given.has("topspeed") || given.has("oneatatime") {
        return Ok(Some(Rate::TopSpeed));
    }
    for (name, unit) in [("pps", "pps"), ("mbps", "mbps")] {
        if !given.has(name) {
            continue;
        }
        let text = exact(given, name)?;
        let nothing = text.bytes().all(|c| matches!(c, b'0' | b'.'));
        return match Rate::from_str(&format!("{text}{unit}")) {
            Ok(rate) => Ok(Some(rate)),
            Err(_) if nothing && name == "mbps" => Ok(Some(Rate::TopSpeed)),
            Err(error) => Err(error).with_context(|| format!("--{name}={text}")),
        };
    }
    Ok(None)
}

/// How many times as fast as captured. Zero is as captured in that tool, and what Scapy's `sendpfast` passes where it
/// was given no rate (`--multiplier=0.000000`).
fn speed(given: &Parsed) -> Result<Option<Speed>> {
    if !given.has("multiplier") {
        return Ok(None);
    }
    let text = exact(given, "multiplier")?;
    if text.bytes().all(|c| matches!(c, b'0' | b'.')) {
        return Ok(Some(Speed::ONE));
    }
    Ok(Some(parse_speed(&text)?))
}

/// The share of packets that is not sent.
fn loss(given: &Parsed) -> Result<Option<Loss>> {
    let Some(text) = given.value("loss") else { return Ok(None) };
    let spec::Share(percent) =
        spec::Quantity::read(text).map_err(Error::msg).with_context(|| format!("--loss={text}"))?;
    replay::loss(percent, number::<u64>(given, "loss-seed", 0)?.unwrap_or(1))
}

/// The decimal number that an option has, as it is written.
fn exact(given: &Parsed, name: &str) -> Result<String> {
    let text = given.value(name).unwrap_or_default();
    let digits = text.bytes().any(|c| c.is_ascii_digit());
    if !digits || text.bytes().any(|c| !(c.is_ascii_digit() || c == b'.')) {
        bail!("--{name}={text}: give a number, such as 1000 or 2.5");
    }
    Ok(text.to_owned())
}

/// The whole number that an option has, if it was given.
fn number<T: FromStr + PartialOrd + std::fmt::Display>(
    given: &Parsed,
    name: &str,
    least: T,
) -> Result<Option<T>> {
    let Some(text) = given.value(name) else { return Ok(None) };
    match text.parse::<T>() {
        Ok(number) if number >= least => Ok(Some(number)),
        _ => bail!("--{name}={text}: give a whole number, {least} or more"),
    }
}

/// Every how many loops there are other addresses.
fn unique_every(given: &Parsed) -> Result<Option<NonZeroU64>> {
    if !given.has("unique-ip") {
        return Ok(None);
    }
    let Some(text) = given.value("unique-ip-loops") else { return Ok(Some(NonZeroU64::MIN)) };
    // It may be written as 2.0, too.
    let whole = text.split_once('.').map_or(
        text,
        |(whole, rest)| {
            if rest.bytes().all(|c| c == b'0') { whole } else { text }
        },
    );
    let every = whole.parse::<NonZeroU64>();
    every
        .map(Some)
        .with_context(|| format!("--unique-ip-loops={text}: give a whole number of loops, 1 or more"))
}

fn packets(given: &Parsed) -> Result<Option<Selection>> {
    for (name, excluded) in [("include", false), ("exclude", true)] {
        if let Some(text) = given.value(name) {
            let ranges = text.split(',').map(range).collect::<Option<Vec<_>>>();
            let ranges = ranges.with_context(|| {
                format!("--{name}={text}: give packet numbers from 1 and ranges of them, such as 1-5,9,72-")
            })?;
            return Ok(Some(Selection { ranges, excluded }));
        }
    }
    Ok(None)
}

/// `5`, `1-5`, `72-`.
fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (from, to) = match text.split_once('-') {
        None => (text.parse().ok()?, text.parse().ok()?),
        Some((from, "")) => (from.parse().ok()?, u64::MAX),
        Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
    };
    (1 <= from && from <= to).then_some(from..=to)
}

/// The captures: a folder stands for all files in it and below, in the order of their names.
fn files(given: &[OsString]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in given {
        let path = PathBuf::from(name);
        if path.is_dir() {
            let before = files.len();
            walk(&path, &mut files).with_context(|| format!("reading the folder {}", path.display()))?;
            if files.len() == before {
                bail!("there is no file in the folder {}", path.display());
            }
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // Links to folders may lead in circles.
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else if entry.path().is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
