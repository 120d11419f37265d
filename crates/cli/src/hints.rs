//! What people type in place of a packet and mean otherwise: a plugin's name, a capture, another tool's test or script.
//! Each is told the command that does it, made of what was typed.

use anyhow::{Result, bail};
use report::units::shell_word;
use std::path::Path;
use wire::proto::Protocol;

/// Endings of captures, behind which `.gz` and `.zst` may stand.
const CAPTURES: [&str; 5] = ["pcap", "pcapng", "cap", "dmp", "erf"];
/// Tests of netperf begin so.
const NETPERF: [&str; 3] = ["TCP_", "UDP_", "OMNI"];

/// Refuses a word that is no packet expression and no scenario, with what to type instead.
///
/// # Errors
/// It is such a word.
pub fn check(what: Option<&str>) -> Result<()> {
    let Some(word) = what else { return Ok(()) };
    // Another word may be a path that is no text.
    let typed: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match advice(word, Path::new(word).exists(), &typed) {
        Some(advice) => bail!(advice),
        None => Ok(()),
    }
}

fn advice(word: &str, there: bool, typed: &[String]) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let ending = |text: &str| Path::new(text).extension().map(|end| end.to_string_lossy().into_owned());
    let stem = |text: &str| Path::new(text).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let plain = lower.strip_suffix(".gz").or_else(|| lower.strip_suffix(".zst")).unwrap_or(&lower);
    let end = ending(plain).unwrap_or_default();
    if CAPTURES.contains(&end.as_str()) && !word.contains('(') {
        let command = mended(typed, word, &[word], Some("replay"));
        let made = stem(plain).and_then(|stem| {
            let plugin =
                ["tcp_port_scan", "udp_port_scan"].into_iter().find(|name| stem.starts_with(*name))?;
            Some(format!(
                "; the frames of that article are made without it: {}",
                mended(typed, word, &["--plugin", plugin], None)
            ))
        });
        return Some(if there {
            format!("{word} is a capture: {command}")
        } else {
            format!("there is no file {word}; a capture is sent by {command}{}", made.unwrap_or_default())
        });
    }
    if matches!(end.as_str(), "py" | "lua" | "ipynb") && !word.contains('(') {
        return Some(format!(
            "{word} is a script: profiles of TRex, Scapy and MoonGen are not run. One packet of it, in Scapy's own spelling, is an \
             expression: netdyno craft 'Ether()/IP(dst=\"198.18.0.1\")/UDP(dport=53)' --show; several with rates and sizes are a \
             scenario (docs/scenarios.md), a program that makes frames is a plugin: netdyno plugin new NAME"
        ));
    }
    let name = lower.replace('-', "_");
    let name = name.strip_suffix(".go").or_else(|| name.strip_suffix(".wasm")).unwrap_or(&name);
    if there || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    if NETPERF.iter().any(|test| word.starts_with(test)) && word == word.to_ascii_uppercase() {
        return Some(format!(
            "{word} is a test of netperf, between two hosts: netdyno netserver on the other, netdyno netperf -H HOST -t {word} here"
        ));
    }
    plugin::find(name).is_ok().then(|| {
        let other = if name == "imix" {
            "; as sizes of other frames: --size imix"
        } else if Protocol::by_name(name).is_some() {
            "; a layer of that name stands behind others (docs/expressions.md)"
        } else {
            ""
        };
        format!("{word} is a plugin: {}{other}", mended(typed, word, &["--plugin", name], None))
    })
}

/// The command line as it was typed, with other words in place of one, and perhaps another verb.
fn mended(typed: &[String], word: &str, instead: &[&str], verb: Option<&str>) -> String {
    let mut words = vec!["netdyno".to_owned()];
    for (i, typed) in typed.iter().enumerate().skip(1) {
        if typed == word {
            words.extend(instead.iter().map(|word| shell_word(word)));
        } else if let (1, Some(verb)) = (i, verb) {
            words.push(verb.to_owned());
        } else {
            words.push(shell_word(typed));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_articles_and_other_tools_are_told_the_command() {
        for (line, there, said) in [
            (
                "send tcp_port_scan --on eth0 --rate 1G",
                false,
                "tcp_port_scan is a plugin: netdyno send --plugin tcp_port_scan --on eth0 --rate 1G",
            ),
            ("craft udp-port-scan -w x.pcap", false, "netdyno craft --plugin udp_port_scan -w x.pcap"),
            ("send simpleudp.go --on eth0", false, "netdyno send --plugin simpleudp --on eth0"),
            ("send imix --on eth0", false, "--size imix"),
            ("send dns --on eth0", false, "netdyno send --plugin dns --on eth0"),
            (
                "send bigFlows.pcap --on eth0",
                true,
                "bigFlows.pcap is a capture: netdyno replay bigFlows.pcap --on eth0",
            ),
            (
                "send tcp_port_scan_64.pcap --on eth0",
                false,
                "there is no file tcp_port_scan_64.pcap; a capture is sent by netdyno replay tcp_port_scan_64.pcap --on eth0; the frames of that article are made without it: netdyno send --plugin tcp_port_scan --on eth0",
            ),
            ("send a.pcap.gz --on eth0", true, "netdyno replay a.pcap.gz --on eth0"),
            ("send stl/imix.py --on eth0", true, "scenario"),
            ("send TCP_STREAM --on eth0", false, "netdyno netperf -H HOST -t TCP_STREAM"),
        ] {
            let typed: Vec<String> =
                std::iter::once("netdyno").chain(line.split(' ')).map(str::to_owned).collect();
            let advice = advice(&typed[2], there, &typed).unwrap_or_default();
            assert!(advice.contains(said), "{line}: {advice}");
        }
    }

    #[test]
    fn packets_and_scenarios_are_left_alone() {
        for word in
            ["ipv4/udp", "arp", "ether", "tcp_port_scn", "-", "load.yaml", "raw(\"x.pcap\")", "IP()/UDP()"]
        {
            assert_eq!(advice(word, false, &[]), None, "{word}");
        }
        assert_eq!(advice("imix", true, &[]), None, "a file of that name");
    }
}
