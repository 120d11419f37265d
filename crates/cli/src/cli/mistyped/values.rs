//! Values that are refused in the words of Rust's library, and those that are another tool's.

use std::error::Error as _;

/// What to write in a value's place, where the error itself does not say it. `option` is as clap shows it: `--loop <TIMES>`.
pub(super) fn tip(verb: &str, option: &str, value: &str, error: &clap::Error) -> Option<String> {
    let name = option.split(' ').next()?;
    if let ("--get", Some((first, _))) = (name, value.split_once(',')) {
        return Some(format!("one figure each: --get {first}, and --get again for another"));
    }
    match (verb, name, value) {
        ("trend", "--format", "html") => return Some("a page is written by --page FILE".to_owned()),
        ("trend", "--format", "json") => return Some("that is --json".to_owned()),
        ("trend", "--format", "csv") => return Some("--json has each value of each result".to_owned()),
        ("trend", "--prune", age) if is_number(age) => return Some(format!("in days: --prune {age}d")),
        _ => {}
    }
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    let endless = ["inf", "infinite", "infinity", "forever", "endless", "unlimited", "-1"];
    if name == "--loop" && endless.contains(&value.to_ascii_lowercase().as_str()) {
        return Some("without end, until Ctrl-C, is --loop 0".to_owned());
    }
    if said.contains("invalid digit found in string")
        || said.contains("cannot parse integer from empty string")
    {
        return Some(format!("a whole number is meant, such as {name} 1"));
    }
    if said.contains("invalid socket address") {
        let port = value.trim_start_matches(':');
        let port = if is_number(port) { port } else { "9100" };
        return Some(format!("an address and a port are meant, such as {name} 127.0.0.1:{port}"));
    }
    None
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A version of NetFlow as it is often written: `v9`, `netflow9`, `netflow-v5`, `v10`.
pub(super) fn netflow<'a>(valid: &'a [String], typed: &str) -> Option<&'a str> {
    let bare = typed.strip_prefix("netflow").unwrap_or(typed).trim_start_matches('-');
    let bare = bare.strip_prefix('v').unwrap_or(bare);
    let bare = if bare == "10" { "ipfix" } else { bare };
    // Only where versions are what is chosen from.
    valid.iter().any(|valid| valid == "ipfix").then_some(())?;
    valid.iter().find(|valid| *valid == bare).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn a_value_that_is_refused_is_told_how_it_is_written() {
        for (line, said) in [
            ("replay a.pcap --lab --loop inf", "without end, until Ctrl-C, is --loop 0"),
            ("replay a.pcap --lab --loop two", "a whole number is meant, such as --loop 1"),
            ("send ipv4/udp --lab --seed abc", "a whole number is meant, such as --seed 1"),
            ("send ipv4/udp --lab --metrics 9100", "such as --metrics 127.0.0.1:9100"),
            ("send ipv4/udp --lab --metrics :9200", "such as --metrics 127.0.0.1:9200"),
            ("send ipv4/udp --lab --metrics host", "such as --metrics 127.0.0.1:9100"),
            ("trend . --format html", "a page is written by --page FILE"),
            ("trend . --format json", "that is --json"),
            ("trend . --prune 90", "in days: --prune 90d"),
            ("probe a.pcap --export h:1 --format v9", "it is written so: 9"),
            ("probe a.pcap --export h:1 --format netflow-v5", "it is written so: 5"),
            ("probe a.pcap --export h:1 --format 10", "it is written so: ipfix"),
            (
                "send ipv4/udp --lab --get latency_p50,latency_p99",
                "one figure each: --get latency_p50, and --get again",
            ),
        ] {
            let told = told(&format!("netdyno {line}"));
            assert!(told.contains(said), "{line}: {told}");
        }
    }
}
