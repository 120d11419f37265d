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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn example(name: &str) -> String {
        let file = format!("{}/../../examples/serve/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// What a server with a run says that has all figures.
    fn full() -> String {
        let mut snapshot = json!({"phase": "running"});
        for (_, _, _, pointer) in FAMILIES {
            let mut at = &mut snapshot;
            for part in pointer.split('/').skip(1) {
                at = &mut at[part];
            }
            *at = 5.into();
        }
        let run = Run::new("r1".to_owned(), json!({}), &json!({"kind": "send"}), json!([]), None);
        run.moment(1, snapshot);
        text(&[Arc::new(run)])
    }

    /// examples/serve/netdyno-serve.json: each of its expressions names a series that is served, with its labels.
    #[test]
    fn the_servers_dashboard_asks_for_what_is_served() {
        let text = full();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples.len(), FAMILIES.len() + 1, "{text}");
        let dashboard: Value = serde_json::from_str(&example("netdyno-serve.json")).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
        let variables = dashboard["templating"]["list"].as_array().expect("variables").iter();
        let queries = variables.filter_map(|variable| variable.pointer("/query/query"));
        let mut asked = std::collections::BTreeSet::new();
        for (expression, legend) in targets
            .map(|target| (&target["expr"], &target["legendFormat"]))
            .chain(queries.map(|query| (query, &Value::Null)))
        {
            let expression = expression.as_str().expect("an expression");
            let from = expression.get(expression.find("netdyno_").expect(expression)..).expect("a name");
            let name = from.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().expect("a name");
            let sample = samples.iter().find(|sample| sample.starts_with(&format!("{name}{{")));
            let sample = sample.unwrap_or_else(|| panic!("{name} is not served"));
            let selected =
                from.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(of, _)| of);
            let selected = selected.split(',').filter_map(|of| Some(of.split_once('=')?.0));
            let shown = legend.as_str().unwrap_or_default().split("{{").skip(1);
            let shown = shown.filter_map(|rest| Some(rest.split_once("}}")?.0));
            for label in selected.chain(shown).filter(|label| !matches!(*label, "job" | "instance")) {
                assert!(sample.contains(&format!("{label}=\"")), "{name} has no label {label}: {sample}");
            }
            asked.insert(name.to_owned());
        }
        let all = FAMILIES.iter().filter(|(name, ..)| *name != "netdyno_elapsed_nanoseconds").count();
        assert_eq!(asked.len(), all + 1, "each figure is shown: {asked:?}");
    }

    /// What the compose file starts is what Prometheus scrapes.
    #[test]
    fn the_compose_file_and_prometheus_name_the_same_address() {
        let (compose, scraped) = (example("compose.yaml"), example("prometheus.yml"));
        let at = compose
            .split("\"--listen\", \"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .expect("an address");
        assert!(scraped.contains(&format!("targets: [\"{at}\"]")), "{at}: {scraped}");
        let prometheus =
            compose.split("--web.listen-address=").nth(1).and_then(|rest| rest.split('"').next());
        let source = example("provisioning/datasources/prometheus.yaml");
        assert!(source.contains(&format!("http://{}", prometheus.expect("an address"))), "{source}");
        for file in ["prometheus.yml", "netdyno-serve.json", "provisioning"] {
            assert!(compose.contains(&format!("./{file}:")), "{file} is mounted");
        }
        assert!(example("provisioning/dashboards/netdyno.yaml").contains("/var/lib/grafana/dashboards"));
    }
}
