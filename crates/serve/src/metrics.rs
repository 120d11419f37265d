//! The runs for Prometheus, each with its name as a label: what `--metrics` has of one run, under the same names, as far as a server with many keeps it.

use crate::runs::Run;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;

/// A family: its name, whether it counts up, what it is, and where a snapshot has it.
type Family = (&'static str, bool, &'static str, &'static str);

const FAMILIES: &[Family] = &[
    ("netdyno_elapsed_nanoseconds", false, "Time since the start of the run.", "/elapsed_ns"),
    ("netdyno_intended_frames", true, "Frames that the schedule had due.", "/intended_frames"),
    ("netdyno_tx_frames", true, "Frames sent.", "/tx/frames"),
    ("netdyno_tx_bytes", true, "Bytes sent, layer 2 without FCS.", "/tx/bytes"),
    ("netdyno_rx_frames", true, "Frames received.", "/rx/frames"),
    ("netdyno_rx_bytes", true, "Bytes received, layer 2 without FCS.", "/rx/bytes"),
    ("netdyno_lost_frames", false, "Frames that have not arrived although they had time to.", "/lost_frames"),
    ("netdyno_late_frames", true, "Frames that left more than 100 us after their time.", "/late_frames"),
    (
        "netdyno_latency_p50_nanoseconds",
        false,
        "Latency that half of the frames had at most.",
        "/latency_ns/p50",
    ),
    (
        "netdyno_latency_p99_nanoseconds",
        false,
        "Latency that 99 of 100 frames had at most.",
        "/latency_ns/p99",
    ),
    ("netdyno_latency_max_nanoseconds", false, "Greatest latency.", "/latency_ns/max"),
];

/// The text format, version 0.0.4.
pub(crate) fn text(runs: &[Arc<Run>]) -> String {
    let mut text = String::new();
    let snapshots: Vec<(&Arc<Run>, Arc<Value>)> =
        runs.iter().filter_map(|run| Some((run, run.newest().0?))).collect();
    text += "# HELP netdyno_run_state 1 for the state that the run is in.\n# TYPE netdyno_run_state gauge\n";
    for run in runs {
        let (name, kind, state) = (&run.name, &run.kind, run.state().name());
        let _ = writeln!(text, "netdyno_run_state{{run=\"{name}\",kind=\"{kind}\",state=\"{state}\"}} 1");
    }
    for (name, counts, help, pointer) in FAMILIES {
        let values: Vec<(&str, &Value)> = snapshots
            .iter()
            .filter_map(|(run, snapshot)| Some((run.name.as_str(), snapshot.pointer(pointer)?)))
            .filter(|(_, value)| value.is_number())
            .collect();
        if values.is_empty() {
            continue;
        }
        let (total, kind) = if *counts { ("_total", "counter") } else { ("", "gauge") };
        let _ = writeln!(text, "# HELP {name}{total} {help}\n# TYPE {name}{total} {kind}");
        for (run, value) in values {
            let _ = writeln!(text, "{name}{total}{{run=\"{run}\"}} {value}");
        }
    }
    text
}
