//! What counts of a result: which series it belongs to, under what conditions it came about, and its figures.

use report::Report;
use report::compare::{Better, Judgeable, Unit, conditions, judgeable};
use serde_json::{Map, Value, json};

/// What is kept of a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// When its run began, in seconds since 1970, where it says so.
    pub started: Option<u64>,
    /// It fell short of what was asked.
    pub short: bool,
    /// Its run was not done, and why.
    pub failed: Option<String>,
    /// Which series it belongs to, but for the host.
    pub series: String,
    /// The same for people.
    pub label: String,
    /// Where it ran.
    pub host: String,
    /// What else may explain a figure, with values.
    pub conditions: Vec<(String, String)>,
    pub figures: Vec<Figure>,
}

/// A figure of a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub of: Declared,
    pub value: f64,
}

/// Which figure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub key: String,
    pub name: String,
    pub unit: Unit,
    pub better: Better,
}

/// Members of a job that do not change what it measures: keys of random choices, where results go, secrets, what serves metrics.
const NO_MATTER: &[&str] = &["schema", "write", "calibration", "report", "metrics", "stop_file"];
/// The same, by how a member's name ends.
const NO_MATTER_ENDS: &[&str] = &["seed", "token_file", "passphrase_file", "password_file"];
/// Files that are read have these endings. A job is the same wherever such a file lies, so that its name counts without its folder.
const FILES: &[&str] =
    &[".pcap", ".pcapng", ".gz", ".zst", ".yaml", ".yml", ".json", ".wasm", ".o", ".csv", ".cap", ".txt"];
/// Conditions that are what was asked for, or part of where: they are the same within a series.
const OF_SERIES: &[&str] = &[
    "host",
    "frames",
    "rate asked for",
    "duration asked for",
    "frames asked for",
    "loops",
    "unique addresses",
    "method",
    "frame sizes",
    "longest trial",
    "came to its end",
    "loss is known",
];
/// Bits of a rate on layer 2 follow its frames: they are no figure of their own.
const FOLLOWS: &[&str] = &["tx_bits_per_second", "rx_bits_per_second"];
/// A label is cut here.
const LONGEST: usize = 160;

impl Entry {
    pub fn of(report: &Report) -> Entry {
        let environment = &report.environment;
        let asked = asked(report);
        let interfaces: Vec<Value> =
            environment.interfaces.iter().map(|i| json!([i.name, i.role, i.driver])).collect();
        let search = report.result.search.as_ref().map(|search| search.kind.to_string());
        let series = json!([report.command, asked, search, report.result.round_trip, interfaces]);
        Entry {
            started: environment.started.as_deref().and_then(crate::time::parse),
            short: matches!(report.result.verdict, report::Verdict::Short { .. }),
            failed: match &report.result.verdict {
                report::Verdict::Failed { reasons } => {
                    let why = reasons.first().map_or_else(String::new, |reason| reason.to_string());
                    Some(report::units::printable(&why))
                }
                _ => None,
            },
            series: series.to_string(),
            label: label(report, &asked),
            host: environment.hostname.clone().unwrap_or_default(),
            conditions: conditions(report).into_iter().filter(|(name, _)| is_condition(name)).collect(),
            figures: figures(report),
        }
    }

    /// What was asked for, without where: a run that was not done may not have come to its interfaces.
    pub fn job(&self) -> String {
        let series = serde_json::from_str::<Value>(&self.series).unwrap_or_default();
        json!([series.get(0), series.get(1)]).to_string()
    }
}

/// Interfaces and their drivers are part of the series.
fn is_condition(name: &str) -> bool {
    !OF_SERIES.contains(&name) && !name.starts_with("interface (") && !name.starts_with("driver (")
}

fn figures(report: &Report) -> Vec<Figure> {
    let all = judgeable(report).into_iter();
    let own = |f: &Judgeable| f.value.is_finite() && !FOLLOWS.contains(&f.key);
    let kept = all.filter(own).map(|f| Figure {
        of: Declared { key: f.key.to_owned(), name: f.name, unit: f.unit, better: f.better },
        value: f.value,
    });
    kept.collect()
}

/// What was asked for, without what does not matter.
fn asked(report: &Report) -> Value {
    let job = match &report.requested {
        Some(job) => job.clone(),
        // Of a result without its job, what it came to.
        None => serde_json::to_value(&report.resolved).unwrap_or_default(),
    };
    without(job)
}

fn without(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let matters = |name: &String| {
                !NO_MATTER.contains(&name.as_str()) && !NO_MATTER_ENDS.iter().any(|end| name.ends_with(end))
            };
            let kept = members.into_iter().filter(|(name, value)| matters(name) && !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, without(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without).collect()),
        Value::String(text) => Value::String(file_name(&text).to_owned()),
        other => other,
    }
}

/// The name of a file without its folder; any other text as it is. An expression has slashes, too, and brackets or blanks.
fn file_name(text: &str) -> &str {
    let is_file = FILES.iter().any(|end| text.ends_with(end)) && !text.contains(['(', ' ']);
    if is_file { text.rsplit('/').next().unwrap_or(text) } else { text }
}

/// `send ipv4/udp: rate 4kpps, size 100; tx0 send (veth), rx0 measure (veth)`
fn label(report: &Report, asked: &Value) -> String {
    let mut rest = Vec::new();
    let mut what = String::new();
    if let Value::Object(members) = asked {
        for (name, value) in members {
            match (name.as_str(), value) {
                ("kind" | "links" | "on" | "measure" | "interfaces", _) => {}
                ("what" | "host" | "captures" | "server", value) => what = plain(value),
                (name, value) => settings(name, value, &mut rest),
            }
        }
    }
    let mut label = report.command.clone();
    if !what.is_empty() {
        label += &format!(" {what}");
    }
    if !rest.is_empty() {
        label += &format!(": {}", rest.join(", "));
    }
    let interfaces = report.environment.interfaces.iter().map(|i| {
        let role = i.role.as_ref().map(|role| format!(" {role}")).unwrap_or_default();
        let driver = i.driver.as_ref().map(|driver| format!(" ({driver})")).unwrap_or_default();
        format!("{}{role}{driver}", i.name)
    });
    let interfaces: Vec<String> = interfaces.collect();
    if !interfaces.is_empty() {
        label += &format!("; {}", interfaces.join(", "));
    }
    match label.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", label.get(..end).unwrap_or_default()),
        None => label,
    }
}

/// Settings that say something, each with its path in the job.
fn settings(path: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| settings(&format!("{path}.{name}"), value, out));
        }
        Value::Bool(false) | Value::Null => {}
        Value::Bool(true) => out.push(path.to_owned()),
        Value::String(text) if text == "auto" || text.is_empty() => {}
        Value::Array(items) if items.is_empty() => {}
        value => out.push(format!("{path} {}", plain(value))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::model::{Interface, Totals, Tx};

    fn report(job: Value) -> Report {
        let mut report = Report::new("send");
        report.requested = Some(job);
        report.environment.hostname = Some("lab1".to_owned());
        report.environment.interfaces = vec![Interface {
            name: "tx0".to_owned(),
            role: Some("send".to_owned()),
            driver: Some("veth".to_owned()),
            mtu: Some(1500),
            ..Interface::default()
        }];
        report
    }

    #[test]
    fn what_does_not_matter_makes_no_other_series() {
        let series = |job: Value| Entry::of(&report(job)).series;
        let one = series(
            json!({"kind": "send", "what": "/a/s.yaml", "rate": "1kpps", "seed": 1, "captures": ["/tmp/x/a.pcap"]}),
        );
        let same = series(
            json!({"kind": "send", "what": "/b/s.yaml", "rate": "1kpps", "seed": 7, "captures": ["a.pcap"], "write": "/tmp/out", "calibration": "c.json"}),
        );
        assert_eq!(one, same);
        for other in [
            json!({"kind": "send", "what": "/a/s.yaml", "rate": "2kpps", "captures": ["a.pcap"]}),
            json!({"kind": "send", "what": "/a/s.yaml", "rate": "1kpps", "captures": ["b.pcap"]}),
            json!({"kind": "send", "what": "/a/t.yaml", "rate": "1kpps", "captures": ["a.pcap"]}),
        ] {
            assert_ne!(one, series(other));
        }
        // An expression is none of a file.
        assert_ne!(series(json!({"what": "ether/ipv4/raw(\".o\")"})), series(json!({"what": "raw(\".o\")"})));
    }

    #[test]
    fn kernel_version_and_mtu_are_conditions_and_the_driver_is_not() {
        let mut newer = report(json!({"what": "ipv4/udp"}));
        let before = Entry::of(&newer);
        newer.environment.kernel = Some("6.12.0".to_owned());
        newer.environment.netdyno_version = "9.9".to_owned();
        newer.environment.interfaces[0].mtu = Some(9000);
        let after = Entry::of(&newer);
        assert_eq!(before.series, after.series);
        assert!(after.conditions.contains(&("kernel".to_owned(), "6.12.0".to_owned())), "{after:?}");
        assert!(after.conditions.contains(&("MTU (send)".to_owned(), "9000".to_owned())), "{after:?}");
        newer.environment.interfaces[0].driver = Some("mlx5_core".to_owned());
        assert_ne!(before.series, Entry::of(&newer).series);
    }

    #[test]
    fn a_label_says_what_was_asked_for() {
        let job = json!({"kind": "send", "what": "ipv4/udp", "rate": "4kpps", "size": 100, "engine": "auto", "seed": 3,
            "meter": {"clock": "monotonic", "how": "auto"}, "links": [{"on": "tx0"}]});
        let label = Entry::of(&report(job)).label;
        assert_eq!(label, "send ipv4/udp: meter.clock monotonic, rate 4kpps, size 100; tx0 send (veth)");
        let long = Entry::of(&report(json!({"what": "\u{e4}".repeat(500)}))).label;
        assert!(long.chars().count() < 170, "{long}");
    }

    #[test]
    fn bits_that_follow_frames_are_left_out() {
        let mut sent = report(json!({}));
        sent.result.tx = Some(Tx { totals: Totals::over(1000, 60_000, 1_000_000_000), ..Tx::default() });
        let keys: Vec<String> = Entry::of(&sent).figures.into_iter().map(|f| f.of.key).collect();
        assert_eq!(keys, ["tx_frames_per_second"]);
    }
}
