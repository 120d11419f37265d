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
        tuning: tuning().collect(),
        ..Environment::default()
    }
}

/// Settings of the network stack that rates, losses and times depend on (Documentation/networking/ip-sysctl.rst,
/// admin-guide/sysctl/net.rst).
const TUNING: [&str; 22] = [
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
];

/// Those of the calling thread's network namespace; some are the host's, and there only.
fn tuning() -> impl Iterator<Item = (String, String)> {
    TUNING.iter().filter_map(|name| {
        let value = line(&format!("/proc/sys/{}", name.replace('.', "/")))?;
        // Tabs stand between several.
        Some(((*name).to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
    })
}

/// The CPUs this process may run on.
pub fn allowed_cpus() -> Option<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stacks_settings_are_known() {
        let tuning = collect().tuning;
        assert_eq!(tuning["net.ipv4.tcp_rmem"].split(' ').count(), 3, "{tuning:?}");
        assert!(tuning["net.core.somaxconn"].parse::<u32>().is_ok(), "{tuning:?}");
        assert!(!tuning["net.ipv4.tcp_congestion_control"].is_empty());
    }
}
