//! Under what conditions a result came about: what was asked for, and on what. Where they differ the figures may differ
//! for that reason, so these differences are told first.

use crate::data::model::{Interface, Report, Source};
use crate::data::units;

/// Conditions with their values as text, in the order they are told.
pub fn of(report: &Report) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            all.push((name.to_owned(), value));
        }
    };
    let e = &report.environment;
    add("host", e.hostname.clone());
    add("kernel", e.kernel.clone());
    add("CPU", e.cpu_model.clone());
    add("CPUs", e.cpus.map(|n| n.to_string()));
    add("frequency governor", e.governor.clone());
    add("clock source", e.clocksource.clone());
    for (name, value) in &e.tuning {
        add(name, Some(value.clone()));
    }
    add("netdyno", Some(e.netdyno_version.clone()));
    add("commit", e.netdyno_commit.clone());
    add("engine", e.engine.as_ref().map(|c| c.name.clone()));
    add("meter", e.meter.as_ref().map(|c| format!("{}: {}", c.name, c.reason)));
    for (n, interface) in e.interfaces.iter().enumerate() {
        let role = interface.role.clone().unwrap_or_else(|| format!("interface {}", n + 1));
        for (what, value) in traits(interface) {
            add(&format!("{what} ({role})"), value);
        }
    }
    let r = &report.resolved;
    add("frames", r.source.as_ref().map(source));
    add("rate asked for", r.rate.as_ref().map(|rate| rate.text.clone()));
    add("duration asked for", r.duration_ns.map(units::time));
    add("frames asked for", r.count.map(units::count));
    add("loops", r.loops.map(|n| n.to_string()));
    add("unique addresses", r.unique_ip.map(|yes| if yes { "yes" } else { "no" }.to_owned()));
    add("sending cores", report.result.tx.as_ref().map(|tx| tx.cores.len().max(1).to_string()));
    // Results of before this was said may be either, so that only what is marked is known.
    let counted = report.result.loss.filter(|loss| loss.by_count_only);
    add("loss is known", counted.map(|_| "by count only".to_owned()));
    if let Some(search) = &report.result.search {
        add("method", search.method.clone().map(String::from));
        add(
            "frame sizes",
            Some(search.sizes.iter().map(|s| s.frame_size.as_str()).collect::<Vec<_>>().join(", ")),
        );
        let longest = report.result.trials.iter().map(|t| t.duration_ns).max();
        add("longest trial", longest.map(units::time));
        add("came to its end", Some(if search.complete { "yes" } else { "no" }.to_owned()));
    }
    all
}

fn traits(i: &Interface) -> [(&'static str, Option<String>); 7] {
    let queues = i.tx_queues.zip(i.rx_queues).map(|(tx, rx)| format!("{tx}/{rx}"));
    [
        ("interface", Some(i.name.clone())),
        ("driver", i.driver.clone()),
        ("MTU", i.mtu.map(|n| n.to_string())),
        ("link speed", i.speed_bits_per_second.map(|s| units::bit_rate(s as f64))),
        ("queues tx/rx", queues),
        ("qdisc", i.qdisc.clone()),
        ("offloads", (!i.offloads.is_empty()).then(|| i.offloads.join(" "))),
    ]
}

fn source(source: &Source) -> String {
    match source {
        Source::Expression { expression } => expression.clone(),
        Source::Scenario { file, name } => format!("{name} ({file})"),
        Source::Plugin { name, version, sha256, .. } => {
            let module = sha256.as_ref().map_or(String::new(), |sha256| format!(", SHA-256 {sha256}"));
            format!("plugin {name} {version}{module}")
        }
        Source::Files { files } => files.join(" "),
        Source::Synthetic { description } => description.clone(),
    }
}
