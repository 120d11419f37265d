//! The machine a result was measured on.

use report::{Environment, units};
use std::time::{SystemTime, UNIX_EPOCH};

fn line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let first = text.lines().next()?.trim();
    (!first.is_empty()).then(|| first.to_owned())
}

/// What can be known without privileges.
pub fn collect() -> Environment {
    let uname = rustix::system::uname();
    let commit = env!("NETDYNO_COMMIT");
    let cpu_model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let model = text.lines().find_map(|l| l.strip_prefix("model name"))?;
        Some(model.trim_start_matches([' ', '\t', ':']).to_owned())
    });
    Environment {
        netdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        netdyno_commit: (!commit.is_empty()).then(|| commit.to_owned()),
        started: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|d| units::rfc3339(d.as_secs())),
        hostname: Some(uname.nodename().to_string_lossy().into_owned()),
        kernel: Some(uname.release().to_string_lossy().into_owned()),
        cpu_model,
        cpus: allowed_cpus().map(|cpus| cpus.len() as u32),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clocksource: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ..Environment::default()
    }
}

/// The CPUs this process may run on.
pub fn allowed_cpus() -> Option<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
    (!cpus.is_empty()).then_some(cpus)
}
