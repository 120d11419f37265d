//! What clap refuses, with the mend that only we know: the command line as it should have been, or an example.

use super::foreign;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use report::units::shell_word;
use std::ffi::OsString;

/// Verbs that run a command behind `--`.
const RUNNING: [&str; 2] = ["lab", "counters"];
/// Verbs that read captures.
const OF_CAPTURES: [&str; 4] = ["replay", "info", "edit", "live"];
/// In a lab, the far end and a test with it.
const ENDPOINT_LAB: &str = "netdyno lab --addresses -- sh -c 'ip netns exec receiver netdyno endpoint serve --quiet & sleep 0.3; netdyno \
    endpoint TEST 198.18.0.2 --duration 1s; kill $!'";

/// The error with tips of ours, and without those that mislead.
pub fn mended(mut error: clap::Error, words: &[OsString], root: &Command) -> clap::Error {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (verb, command, at) = verb(&words, root);
    let kept = match error.remove(ContextKind::Suggested) {
        // An option of ours is no value: nobody meant that.
        Some(ContextValue::StyledStrs(tips)) => {
            tips.into_iter().filter(|tip| !tip.to_string().contains("as a value, use")).collect()
        }
        _ => Vec::new(),
    };
    let of = if error.kind() == ErrorKind::InvalidSubcommand {
        ContextKind::InvalidSubcommand
    } else {
        ContextKind::InvalidArg
    };
    let typed = match error.get(of) {
        Some(ContextValue::String(typed)) => vec![typed.clone()],
        Some(ContextValue::Strings(missing)) => missing.clone(),
        _ => Vec::new(),
    };
    let (mut tip, mut begun) = (None, Vec::new());
    match (error.kind(), typed.first()) {
        (ErrorKind::UnknownArgument, Some(typed)) => {
            tip = unknown(&verb, typed, &words, at).or_else(|| foreign::option(command, typed, &words, at));
            begun = beginning(typed, command);
        }
        (ErrorKind::TooManyValues, _) => {
            if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
                tip = unknown(&verb, value, &words, at);
            }
        }
        (ErrorKind::InvalidSubcommand, Some(typed)) => {
            let rest = words.iter().skip_while(|word| *word != typed).skip(1).cloned().collect::<Vec<_>>();
            tip = foreign::verb(&verb, typed, &rest);
        }
        (ErrorKind::MissingRequiredArgument, _) => tip = lacking(&verb, &typed, &words, at),
        _ => {}
    }
    if tip.is_some() || !begun.is_empty() {
        // What merely looks alike was not meant; nor is it to stand in the usage.
        let alike = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
        if alike.into_iter().filter(|alike| error.remove(*alike).is_some()).count() > 0 {
            error.remove(ContextKind::Usage);
        }
    }
    let begun = (!begun.is_empty()).then(|| match &begun[..] {
        [one] => format!("an option that begins so: {one}"),
        several => format!("options that begin so: {}", several.join(", ")),
    });
    let all: Vec<_> = kept.into_iter().chain(tip.into_iter().chain(begun).map(Into::into)).collect();
    if !all.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(all));
    }
    error
}

/// The verb with those below it, what it takes, and how many words were read for it.
fn verb<'a>(words: &[String], root: &'a Command) -> (String, &'a Command, usize) {
    let (mut path, mut command, mut at) = (Vec::new(), root, 1);
    while let Some(below) = words.get(at).and_then(|word| command.find_subcommand(word)) {
        path.push(below.get_name().to_owned());
        (command, at) = (below, at + 1);
    }
    (path.join(" "), command, at)
}

/// What to type in place of an argument that there is not.
fn unknown(verb: &str, typed: &str, words: &[String], at: usize) -> Option<String> {
    if RUNNING.contains(&verb) && !typed.starts_with('-') && !words.iter().any(|word| word == "--") {
        let mut from = words.iter().skip(at).position(|word| word == typed)? + at;
        // The first two words were taken for files of counters.
        let files = if verb == "counters" { 2 } else { 0 };
        for _ in 0..files {
            let is_word = |word: &String| !word.starts_with('-');
            from -= usize::from(from > at && words.get(from - 1).is_some_and(is_word));
        }
        let line = line(words.get(1..from)?, &["--"], words.get(from..)?);
        return Some(format!("put `--` before the command: {line}"));
    }
    if typed != "--lab" {
        return None;
    }
    let rest: Vec<String> = words.iter().skip(1).filter(|word| *word != "--lab").cloned().collect();
    match verb {
        "endpoint" => {
            let test = words.get(at..)?.iter().find(|word| !word.starts_with('-'));
            let test = test.map_or("tcp-rr", String::as_str);
            Some(format!("in a lab the far end has to be begun, too: {}", ENDPOINT_LAB.replace("TEST", test)))
        }
        "endpoint serve" => Some(format!("in a lab: {}", ENDPOINT_LAB.replace("TEST", "tcp-rr"))),
        "lab" | "search" | "" => None,
        _ if !super::help::is_ours(verb) => None,
        _ => Some(format!("run it in a lab, between tx0 and rx0: netdyno lab -- {}", line(&rest, &[], &[]))),
    }
}

/// What is lacking: what to say of it, and the words of an example.
struct Lacking {
    says: &'static str,
    first: &'static [&'static str],
    last: &'static [&'static str],
}

/// Of all that is lacking what to say, and the line with examples of all.
fn lacking(verb: &str, missing: &[String], words: &[String], at: usize) -> Option<String> {
    let known: Vec<Lacking> = missing.iter().filter_map(|missing| example(verb, missing)).collect();
    let says: Vec<&str> = known.iter().map(|known| known.says).filter(|says| !says.is_empty()).collect();
    let says = says.join("; ");
    if known.is_empty() || known.len() < missing.len() {
        return (!says.is_empty()).then_some(says);
    }
    let first: Vec<&str> = known.iter().flat_map(|known| known.first).copied().collect();
    let last = known.iter().flat_map(|known| known.last).map(|word| (*word).to_owned());
    let behind: Vec<String> = words.get(at..)?.iter().cloned().chain(last).collect();
    let line = line(words.get(1..at)?, &first, &behind);
    // An interface that is there wherever netdyno is.
    let line = if missing.iter().any(|missing| missing.starts_with("--on ")) {
        line.replacen("netdyno ", "netdyno lab -- netdyno ", 1)
    } else {
        line
    };
    Some(if says.is_empty() { format!("such as {line}") } else { format!("{says}: {line}") })
}

fn example(verb: &str, missing: &str) -> Option<Lacking> {
    let (says, first, last): (_, &[&str], &[&str]) = match (verb, missing) {
        ("send" | "craft", "<WHAT>") => ("such as ipv4/udp (docs/expressions.md)", &["ipv4/udp"], &[]),
        (verb, missing) if OF_CAPTURES.contains(&verb) && missing.starts_with("<FILE") => {
            ("a capture; `netdyno synth -w small.pcap` makes one", &["small.pcap"], &[])
        }
        ("edit", "--write <FILE>") => ("", &[], &["-w", "edited.pcap"]),
        ("trial", "--rate <RATE>") => ("", &[], &["--rate", "1kpps"]),
        ("measure" | "reflect", "--on <IFACE>") => {
            ("`ip -br link` lists interfaces; without hardware", &[], &["--on", "rx0"])
        }
        ("live", "--on <IFACE>") => ("`ip -br link` lists interfaces", &[], &["--on", "tx0"]),
        ("lab", missing) if missing.starts_with("<CMD>") => ("", &[], &["--", "netdyno", "doctor", "tx0"]),
        ("endpoint", "<TEST>") => ("", &["tcp-rr"], &[]),
        ("endpoint", "<HOST>") => ("`netdyno endpoint serve` runs there", &[], &["HOST"]),
        ("run", "<FILE>") => (
            "`netdyno send ipv4/udp --lab --rate 1kpps --print-job > job.yaml` makes one",
            &["job.yaml"],
            &[],
        ),
        ("rerun", "<RESULT>") => ("`--report DIR` of another command writes one", &["DIR"], &[]),
        ("report", "<PATH>") => ("`--report DIR` of another command writes one", &["DIR"], &[]),
        _ => return None,
    };
    Some(Lacking { says, first, last })
}

/// The long options that begin with what was typed: those that take a value first.
fn beginning(typed: &str, command: &Command) -> Vec<String> {
    let Some(begun) = typed.strip_prefix("--").filter(|begun| begun.len() > 1) else { return Vec::new() };
    let begins =
        |arg: &&Arg| !arg.is_hide_set() && arg.get_long().is_some_and(|long| long.starts_with(begun));
    let takes = |arg: &Arg| arg.get_action().takes_values();
    let mut found: Vec<&Arg> = command.get_arguments().filter(begins).collect();
    found.sort_by_key(|arg| !takes(arg));
    let said = found.into_iter().filter_map(|arg| {
        let value = arg.get_value_names().and_then(<[_]>::first).filter(|_| takes(arg));
        Some(format!("--{}{}", arg.get_long()?, value.map_or_else(String::new, |value| format!(" {value}"))))
    });
    said.collect()
}

/// A command line of ours.
fn line(before: &[String], between: &[&str], behind: &[String]) -> String {
    let words = before.iter().map(String::as_str).chain(between.iter().copied());
    let words = words.chain(behind.iter().map(String::as_str)).map(shell_word);
    std::iter::once("netdyno".into()).chain(words).collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    fn told(line: &str) -> String {
        let words = line.split(' ').map(std::ffi::OsString::from).collect();
        crate::cli::help::parse(words).expect_err("refused").to_string()
    }

    #[test]
    fn what_is_refused_comes_with_the_line_that_is_not() {
        for (line, said) in [
            (
                "netdyno lab netdyno doctor tx0",
                "put `--` before the command: netdyno lab -- netdyno doctor tx0",
            ),
            ("netdyno lab --mtu 9000 ls -l", "netdyno lab --mtu 9000 -- ls -l"),
            ("netdyno counters netdyno doctor tx0", "netdyno counters -- netdyno doctor tx0"),
            ("netdyno counters --on tx0 a b c", "netdyno counters --on tx0 -- a b c"),
            ("netdyno counters --json a b c", "netdyno counters --json -- a b c"),
            ("netdyno lab", "such as netdyno lab -- netdyno doctor tx0"),
            (
                "netdyno send --lab --count 5",
                "such as ipv4/udp (docs/expressions.md): netdyno send ipv4/udp --lab --count 5",
            ),
            ("netdyno craft --show", "netdyno craft ipv4/udp --show"),
            (
                "netdyno replay --lab",
                "`netdyno synth -w small.pcap` makes one: netdyno replay small.pcap --lab",
            ),
            ("netdyno info", "netdyno synth -w small.pcap"),
            ("netdyno trial --lab", "such as netdyno trial --lab --rate 1kpps"),
            ("netdyno measure --duration 1s", "netdyno lab -- netdyno measure --duration 1s --on rx0"),
            ("netdyno measure --on rx0 --lab", "netdyno lab -- netdyno measure --on rx0"),
            ("netdyno endpoint --lab udp-rr", "netdyno endpoint udp-rr 198.18.0.2 --duration 1s"),
            ("netdyno endpoint tcp-rr host --lab", "netdyno lab --addresses -- sh -c"),
            ("netdyno endpoint", "`netdyno endpoint serve` runs there: netdyno endpoint tcp-rr HOST"),
            ("netdyno live", "`ip -br link` lists interfaces; a capture; `netdyno synth"),
            ("netdyno edit", "netdyno edit small.pcap -w edited.pcap"),
            ("netdyno run", "--print-job"),
            ("netdyno rerun", "--report DIR"),
            (
                "netdyno edit a.pcap -w b.pcap --vlan 5",
                "options that begin so: --vlan-add ID, --vlan-priority 0-7, --vlan-dei 0|1, --vlan-kind KIND, --vlan-del",
            ),
            ("netdyno send ipv4/udp --lab-bott=1gbps", "an option that begins so: --lab-bottleneck RATE"),
        ] {
            let told = told(line);
            assert!(told.contains(said), "{line}: {told}");
            assert!(!told.contains("as a value"), "{line}: {told}");
        }
    }

    #[test]
    fn what_looks_alike_is_still_told_and_no_option_is_taken_for_a_value() {
        let told_of = told("netdyno send ipv4/udp --durration 1s");
        assert!(told_of.contains("'--duration'") && !told_of.contains("begin"), "{told_of}");
        for line in [
            "netdyno endpoint tcp-rr host --nosuch",
            "netdyno lab --nosuch -- true",
            "netdyno sned",
            "netdyno replay x.pcap --nosuch",
            "netdyno iperf3 --nosuch",
        ] {
            let told = told(line);
            assert!(!told.contains("as a value"), "{line}: {told}");
        }
    }
}
