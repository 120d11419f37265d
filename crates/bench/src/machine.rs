//! What figures depend on: the machine, its kernel, and who else was busy.

use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;

/// One line for each thing worth knowing.
pub fn fingerprint(netdyno: &Path) -> Vec<(&'static str, String)> {
    let cpus = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = cpus.lines().find(|line| line.split(':').next().map(str::trim) == Some(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processors = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let virtual_machine = if field("flags").is_some_and(|flags| flags.contains(" hypervisor")) {
        ", a virtual machine"
    } else {
        ""
    };
    let memory = read("/proc/meminfo").lines().next().map(|line| {
        let kilobytes: f64 = line.split_whitespace().nth(1).and_then(|k| k.parse().ok()).unwrap_or(0.0);
        format!("{:.0} GB", kilobytes * 1024.0 / 1e9)
    });
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let governor = if governor.is_empty() { "not shown to us".to_owned() } else { governor };
    vec![
        (
            "CPU",
            format!("{}, {processors} logical{virtual_machine}", field("model name").unwrap_or_default()),
        ),
        ("memory", memory.unwrap_or_default()),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("mitigations", mitigations()),
        ("clock source", clock),
        ("frequency governor", governor),
        ("load average at the start", read("/proc/loadavg")),
        ("netdyno", said(&netdyno.display().to_string(), "--version").unwrap_or_default()),
        ("commit", said("git", "rev-parse --short HEAD").unwrap_or_else(|| "unknown".to_owned())),
        ("tcpreplay", peer().unwrap_or_else(not_installed)),
        ("trafgen", said("trafgen", "--version").unwrap_or_else(not_installed)),
        ("xdp-trafficgen", said("xdp-trafficgen", "udp --version").unwrap_or_else(not_installed)),
    ]
}

fn not_installed() -> String {
    "not installed".to_owned()
}

/// The peer's version, if it runs.
pub fn peer() -> Option<String> {
    let text = said("tcpreplay", "--version")?;
    Some(text.trim_start_matches("tcpreplay version: ").to_owned())
}

/// Can this program be run?
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What the kernel does against flaws of the CPU costs system calls dearly, so it is part of the machine.
fn mitigations() -> String {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten().flatten();
    let mut active: Vec<String> = folder
        .filter(|entry| read(entry.path()).starts_with("Mitigation"))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    active.sort();
    if active.is_empty() { "none".to_owned() } else { active.join(", ") }
}

/// Time that all tasks of the machine got, in clock ticks: busy, and taken by the hypervisor.
pub fn busy_and_stolen() -> (u64, u64) {
    let stat = read("/proc/stat");
    let fields: Vec<u64> =
        stat.lines().next().unwrap_or("").split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
    // proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
    let at = |i: usize| fields.get(i).copied().unwrap_or(0);
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7))
}

fn read(path: impl AsRef<Path>) -> String {
    read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The first line that a program says.
fn said(program: &str, arguments: &str) -> Option<String> {
    let output = Command::new(program).args(arguments.split_whitespace()).output().ok()?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8_lossy(&text);
    output.status.success().then(|| text.lines().next().unwrap_or("").trim().to_owned())
}
