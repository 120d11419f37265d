//! What clap refuses, with the mend that only we know: the command line as it should have been, or an example.

pub mod everyday;
mod misplaced;
mod services;
mod values;

use super::foreign;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
pub(super) use everyday::BARE;
use report::units::shell_word;
use std::ffi::OsString;

/// Verbs that run a command behind `--`.
const RUNNING: [&str; 3] = ["lab", "counters", "drops"];
/// Verbs that read captures.
const OF_CAPTURES: [&str; 4] = ["replay", "info", "edit", "live"];
/// In a lab, the far end and a test with it.
const ENDPOINT_LAB: &str = "netdyno lab --addresses -- sh -c 'ip netns exec receiver netdyno endpoint serve --quiet & sleep 0.3; netdyno \
    endpoint TEST 198.18.0.2 --duration 1s; kill $!'";

const GOAL: &str = "what a trial has to keep to pass is --goal loss=SHARE";
const SEARCH_LASTS: &str = "a search ends when it has found what it looks for; one that is interrupted sooner goes on from its result by \
    --continue FILE; the length of a trial is --trial-duration TIME";
const ANONYMOUS: &str =
    "addresses are scrambled by --scramble-ip SEED and --scramble-mac SEED (docs/editing.md); payloads stay";
const MANY_FLOWS: &str = "how many flows and frames it has is its profile's; so many of one kind are written by `netdyno craft \
    'ipv4(src=10.0.0.0/8)/udp' --count 10000 --size imix --write flows.pcap`";

/// Verbs, what is typed at them, and what to say.
type Called = (&'static [&'static str], &'static str, &'static str);

/// Options of one verb that are called otherwise at others, or have no place there: the verbs where that is so (and all below
/// them), what is typed there, and what to say. No table of settings can have them: they are what a verb does not have, and what its
/// user meant. A test holds that none is one of its options, and that each option they name is one.
const CALLED: &[Called] = &[
    (
        &["search"],
        "--duration",
        "a search takes as long as its trials do; the length of one is --trial-duration TIME",
    ),
    (&["search"], "--max-duration", SEARCH_LASTS),
    (&["search"], "--max-time", SEARCH_LASTS),
    (&["search"], "--timeout", SEARCH_LASTS),
    (
        &["search loss", "search burst", "search recovery", "search transactions"],
        "--rate",
        "a search goes from --max RATE to --min RATE",
    ),
    (&["search latency"], "--rates", "give --rate RATE once for each load"),
    (
        &["trial"],
        "--max",
        "a trial has one load: --rate RATE; `netdyno search throughput --max RATE` looks for it",
    ),
    (
        &["trial"],
        "--min",
        "a trial has one load: --rate RATE; `netdyno search throughput --min RATE` looks for it",
    ),
    (&["trial"], "--count", "a trial lasts for --duration TIME; `netdyno send --count FRAMES` counts frames"),
    (
        &["search"],
        "--count",
        "a trial lasts for --trial-duration TIME; `netdyno send --count FRAMES` counts frames",
    ),
    (&["endpoint"], "--count", "an end by what was done: --transactions N, or --bytes BYTES"),
    (&["measure", "probe", "reflect", "live"], "--measure", "the interface is --on IFACE"),
    (&["bridge", "impair"], "--on", "both interfaces are --between IFACE IFACE"),
    (&["send", "trial", "search"], "--on2", "give --on IFACE once for each port"),
    (&["send", "trial", "search"], "--measure2", "give --measure IFACE once for each port"),
    (
        &["endpoint", "search transactions", "search socket-buffer"],
        "--on",
        "an interface is --device IFACE; an own address, --from ADDR",
    ),
    (&["endpoint serve"], "--on", "where it listens is --listen ADDR"),
    (
        &["collect"],
        "--on",
        "records come to an address: --listen ADDR; a probe has `netdyno probe --on IFACE`",
    ),
    (&["collect"], "--export", "where records come to is --listen ADDR"),
    (&["probe"], "--collect", "where records go to is --export ADDR"),
    (&["probe"], "--listen", "where records go to is --export ADDR"),
    (&["probe"], "--cache", "how many flows there is room for is --max-flows N"),
    (
        &["search flows"],
        "--max-flows",
        "how many flows the probe has room for is --cache N; the most to offer, --max RATE",
    ),
    (
        &["probe"],
        "--write",
        "records are written by `netdyno collect --write FILE`; they go there by --export ADDR",
    ),
    (&["measure"], "--write", "what arrives is written by --capture FILE, and the result by --report DIR"),
    (
        &["send"],
        "--write",
        "what arrives is written by --capture FILE, what would be sent by `netdyno craft --write FILE`, the result by --report DIR",
    ),
    (
        &["trial", "search", "reflect", "bridge", "impair", "endpoint"],
        "--write",
        "the result is written by --report DIR",
    ),
    (&["craft", "edit", "synth"], "--report", "frames are written by --write FILE"),
    (&["craft", "edit", "synth"], "--capture", "frames are written by --write FILE"),
    (&["craft"], "--duration", "how many frames is --count FRAMES"),
    (&["clone"], "--on", "where sessions are captured is --from IFACE:PORT"),
    (&["clone"], "--idle-timeout", "the silence after which a session is adopted is --idle-time TIME"),
    (&["send", "replay", "trial", "search"], "--threads", "a thread each for several CPUs is --cores CORES"),
    (&["collect", "clone"], "--cores", "how many threads is --threads N"),
    (&["impair"], "--queue", "what waits in the device is --buffer"),
    (&["lab"], "--buffer", "what waits before the bottleneck is --queue BYTES"),
    (
        &["send"],
        "--gateway",
        "the next hop's address stands in WHAT: ether(dst=MAC), or is asked for by --resolve",
    ),
    (&["search"], "--resume", "a search goes on from its result by --continue FILE"),
    (&["search"], "--restart", "a search goes on from its result by --continue FILE"),
    (
        &["send", "replay", "trial", "endpoint", "measure", "bridge", "impair", "probe", "collect", "clone"],
        "--resume",
        "what was ended is not gone on with: `netdyno rerun` runs the job of a result again",
    ),
    (
        &["edit"],
        "--duration",
        "a part of a capture is written by `netdyno replay small.pcap --write part.pcap --duration TIME`",
    ),
    (
        &["edit"],
        "--count",
        "a part of a capture is written by `netdyno replay small.pcap --write part.pcap --count FRAMES`",
    ),
    (
        &["edit"],
        "--limit",
        "a part of a capture is written by `netdyno replay small.pcap --write part.pcap --count FRAMES`",
    ),
    (&["edit"], "--anonymise", ANONYMOUS),
    (&["edit"], "--anonymize", ANONYMOUS),
    (&["edit"], "--anon", ANONYMOUS),
    (&["edit"], "--randomize", ANONYMOUS),
    (&["synth"], "--flows", MANY_FLOWS),
    (&["synth"], "--count", MANY_FLOWS),
    (&["synth"], "--size", MANY_FLOWS),
    (
        &["synth"],
        "--duration",
        "how long it lasts is its profile's; `netdyno replay small.pcap --write part.pcap --duration TIME` keeps a part",
    ),
    (&["search throughput"], "--loss-tolerance", GOAL),
    (&["search throughput"], "--tolerance", GOAL),
    (&["search throughput"], "--allowed-loss", GOAL),
    (&["search throughput"], "--loss-ratio", GOAL),
    (&["search throughput"], "--frame-loss", GOAL),
    (&["search throughput"], "--resolution", "how near it has to come is --precision SHARE"),
    (&["search throughput"], "--accuracy", "how near it has to come is --precision SHARE"),
    (&["search throughput"], "--loss", GOAL),
    (&["search throughput"], "--acceptable-loss", GOAL),
    (&["search throughput"], "--pdr", GOAL),
    (&["search throughput"], "--max-loss", GOAL),
    (
        &["search", "trial"],
        "--port",
        "ports are interfaces: --on IFACE and --measure IFACE; fields of packets stand in WHAT",
    ),
    (&["report"], "--html", "the page is report.html in the folder of the result"),
    (&["report"], "--latency", "one figure alone is --get latency_p99"),
    (&["report"], "--loss", "one figure alone is --get lost_frames"),
    (&["report"], "--throughput", "one figure alone is --get throughput"),
    (&["report"], "--format", "it is printed by --json, --csv or --get FIGURE"),
    // iperf3's and netperf's.
    (
        &["endpoint"],
        "-i",
        "results have a row a second: --csv=intervals prints them, --json-lines each second's as it comes; netperf's -i is --iterations N",
    ),
    (
        &["endpoint"],
        "--interval",
        "results have a row a second: --csv=intervals prints them, --json-lines each second's as it comes",
    ),
    (&["endpoint"], "-I", "netperf's -I 99,5 is --confidence 99%,5%; an interface is --device IFACE"),
    (&["endpoint"], "-r", "netperf's -r 100,200 is --request 100 --response 200"),
    (&["endpoint"], "-k", "an end by what was carried is --bytes BYTES"),
    (
        &["endpoint"],
        "-w",
        "socket buffers are --send-buffer BYTES and --receive-buffer BYTES; the result is written by --report DIR",
    ),
    (&["endpoint"], "--window", "socket buffers are --send-buffer BYTES and --receive-buffer BYTES"),
    (&["endpoint"], "--tos", "the code point of what is sent is --dscp DSCP"),
    (&["endpoint"], "-S", "the code point of what is sent is --dscp DSCP"),
    (&["endpoint serve"], "-D", "it stays in the foreground: put `&` behind it"),
    (&["endpoint serve"], "--daemon", "it stays in the foreground: put `&` behind it"),
    (&["endpoint serve"], "-1", "it serves for --duration TIME, or until it is interrupted"),
    (&["endpoint serve"], "--one-off", "it serves for --duration TIME, or until it is interrupted"),
    // tcpreplay's and tcprewrite's.
    (&["replay"], "-T", "frames leave at their times anyway; --spin never sleeps in between"),
    (&["replay"], "--timer", "frames leave at their times anyway; --spin never sleeps in between"),
    (&["replay"], "--oneatatime", "--tui pauses and goes on by keys"),
    (
        &["replay"],
        "-o",
        "--tui pauses and goes on by keys (-o of tcpreplay); frames are written by --write FILE",
    ),
    (&["replay", "edit", "bridge"], "--pnat", "addresses are mapped by --map-ip FROM=TO"),
    (&["replay", "edit", "bridge"], "-N", "addresses are mapped by --map-ip FROM=TO"),
    (&["replay", "edit", "bridge"], "--srcipmap", "source addresses are mapped by --map-src-ip FROM=TO"),
    (&["replay", "edit", "bridge"], "--dstipmap", "destination addresses are mapped by --map-dst-ip FROM=TO"),
    (&["replay", "edit", "bridge"], "--portmap", "ports are mapped by --map-port FROM=TO"),
    (&["replay", "edit", "bridge"], "-r", "ports are mapped by --map-port FROM=TO"),
    (
        &["replay", "edit", "bridge"],
        "--enet-vlan",
        "a tag is put in by --vlan-add ID, and taken out by --vlan-del",
    ),
    (&["replay", "edit", "bridge"], "--dlt", "frames get an Ethernet header by --to-ethernet"),
    (&["replay", "edit", "bridge"], "--fixlen", "lengths are put right by --fix-length pad|truncate|delete"),
    (&["replay", "edit", "bridge"], "-F", "lengths are put right by --fix-length pad|truncate|delete"),
    (&["bridge", "impair"], "-i", "both interfaces are --between IFACE IFACE"),
    (&["bridge", "impair"], "--intf1", "both interfaces are --between IFACE IFACE"),
    (&["bridge", "impair"], "--interface", "both interfaces are --between IFACE IFACE"),
    // Generators'.
    (&["send"], "--interval", "the time between frames follows from the rate: --rate 100pps is 10 ms"),
    (&["send"], "--gap", "the time between frames follows from the rate: --rate 100pps is 10 ms"),
    (&["send"], "--inter", "the time between frames follows from the rate: --rate 100pps is 10 ms"),
    // tcpcopy's and GoReplay's.
    (&["clone"], "-s", "nothing is needed of an intercept: leave it out"),
    (
        &["clone"],
        "-c",
        "copies come from clients' addresses by --client-addresses, from others by --source-prefix PREFIX",
    ),
    (&["clone"], "-d", "it stays in the foreground: put `&` behind it"),
    // nfcapd's.
    (&["collect"], "-b", "where records come to is --listen ADDR:PORT"),
    (
        &["collect"],
        "-i",
        "records come to an address: --listen ADDR:PORT; a probe has `netdyno probe --on IFACE`",
    ),
    (&["trial", "search"], "--resolve", "the router's Ethernet address is --gateway MAC"),
];

/// The error with tips of ours, and without those that mislead.
pub fn mended(error: clap::Error, words: &[OsString], root: &Command) -> clap::Error {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (verb, command, at) = verb(&words, root);
    let mut error =
        misplaced::no_version(&error, &verb, command, words.get(at..).unwrap_or_default()).unwrap_or(error);
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
    let (mut tip, mut begun) = (None, None);
    match (error.kind(), typed.first()) {
        (ErrorKind::UnknownArgument, Some(typed)) => {
            tip = services::option(&verb, command, typed, &words, at)
                .or_else(|| unknown(&verb, typed, &words, at))
                .or_else(|| misplaced::layers(&verb, typed, &words, at))
                .or_else(|| everyday::word(&verb, command, typed, &words, at))
                .or_else(|| called(&verb, typed).map(str::to_owned))
                .or_else(|| one_dash(command, words.get(at..).unwrap_or_default()))
                .or_else(|| foreign::option(&verb, command, typed, &words, at))
                .or_else(|| foreign::scapy(command, typed))
                .or_else(|| foreign::nearly(command, typed));
            begun = beginning(typed, command).or_else(|| ending(typed, command)).filter(|_| tip.is_none());
        }
        (ErrorKind::TooManyValues, _) => {
            if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
                tip = unknown(&verb, value, &words, at);
            }
        }
        (ErrorKind::InvalidSubcommand, Some(typed)) => {
            let rest = words.iter().skip_while(|word| *word != typed).skip(1).cloned().collect::<Vec<_>>();
            tip = lower_case(command, typed, &words)
                .or_else(|| foreign::verb(&verb, typed, &rest))
                .or_else(|| everyday::below(&verb, command, typed, &words, at))
                .or_else(|| services::below(&verb, typed))
                .or_else(|| {
                    documents(typed).filter(|_| verb.is_empty() && rest.iter().any(|word| word == "--help"))
                });
        }
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, Some(option)) => {
            let value = match error.get(ContextKind::InvalidValue) {
                Some(ContextValue::String(value)) => value.clone(),
                _ => String::new(),
            };
            tip = one_dash(command, words.get(at..).unwrap_or_default())
                .or_else(|| {
                    (verb == "endpoint" && option == "<TEST>").then(|| foreign::test(&value, &words, at))?
                })
                .or_else(|| same_value(&error, &value))
                .or_else(|| values::tip(&verb, option, &value, &error));
        }
        (ErrorKind::ArgumentConflict, typed) => {
            tip = typed
                .and_then(|typed| one_only(&verb, typed, &error))
                .or_else(|| foreign::conflict(&verb, command, &words, at))
                .or_else(|| everyday::moved(&verb, command, words.get(at..).unwrap_or_default()));
        }
        (ErrorKind::MissingRequiredArgument, _) => {
            tip = everyday::moved(&verb, command, words.get(at..).unwrap_or_default())
                .or_else(|| lacking(&verb, &typed, &words, at));
        }
        _ => {}
    }
    if tip.is_some() || begun.is_some() {
        // What merely looks alike was not meant; nor is it to stand in the usage.
        let alike =
            [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
        if alike.into_iter().filter(|alike| error.remove(*alike).is_some()).count() > 0 {
            error.remove(ContextKind::Usage);
        }
    }
    let all: Vec<_> = kept.into_iter().chain(tip.into_iter().chain(begun).map(Into::into)).collect();
    if !all.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(all));
    }
    error
}

/// A long option behind a single dash, which is read as short ones.
fn one_dash(command: &Command, words: &[String]) -> Option<String> {
    let own = words.iter().take_while(|word| *word != "--");
    let long =
        own.filter_map(|word| word.strip_prefix('-')).filter(|name| name.len() > 1 && !name.starts_with('-'));
    let named = |name: &&str| {
        let name = name.split('=').next().unwrap_or(name);
        command.get_arguments().any(|arg| arg.get_long() == Some(name))
    };
    long.into_iter().find(named).map(|name| format!("a long option has two dashes: --{name}"))
}

/// A verb that was not typed in lower case, or with an underscore.
fn lower_case(command: &Command, typed: &str, words: &[String]) -> Option<String> {
    let plain = typed.to_ascii_lowercase().replace('_', "-");
    let found = command.find_subcommand(&plain).filter(|_| plain != typed)?.get_name().to_owned();
    let own = words.iter().skip(1).map(|word| if word == typed { found.clone() } else { word.clone() });
    Some(format!("it is written so: {}", line(&[], &[], &own.collect::<Vec<_>>())))
}

/// What is asked for by `netdyno help WORD`, and is no verb.
fn documents(word: &str) -> Option<String> {
    let pages = crate::commands::pages::about(word);
    (!pages.is_empty()).then(|| {
        let lines: Vec<String> = pages.iter().map(|page| format!("`netdyno help {page}`")).collect();
        format!("documents that speak of it: {}", lines.join(", "))
    })
}

/// A value that is one of those that there are, but for its case or its underscores.
fn same_value(error: &clap::Error, typed: &str) -> Option<String> {
    let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else { return None };
    let plain = |word: &str| word.to_ascii_lowercase().replace('_', "-");
    let found = valid.iter().find(|valid| plain(valid) == plain(typed));
    let found = found.map(String::as_str).or_else(|| values::netflow(valid, &plain(typed)))?;
    Some(format!("it is written so: {found}"))
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
        let (before, behind) = (words.get(1..from)?, words.get(from..)?);
        let said = everyday::no_command(verb, before, behind);
        return said
            .or_else(|| Some(format!("put `--` before the command: {}", line(before, &["--"], behind))));
    }
    if verb.is_empty() && typed.starts_with('-') {
        // Other tools' command lines, without their names.
        let tool = match typed {
            "-c" | "-s" => "iperf3",
            "-i" | "--intf1" => "tcpreplay",
            "-H" => "netperf",
            _ => "",
        };
        let told = [vec![tool.to_owned()], words.get(1..)?.to_vec()].concat();
        if !tool.is_empty() && everyday::can_be_typed(&told) {
            return Some(format!("the tool comes first: {}", line(&told, &[], &[])));
        }
    }
    if (verb, typed) == ("", "-v") {
        return Some("the version is printed by: netdyno --version".to_owned());
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
    let mut behind: Vec<String> = words.get(at..)?.to_vec();
    // `lab --`, which its example has as well.
    behind.pop_if(|word| word == "--");
    behind.extend(last);
    let line = line(words.get(1..at)?, &first, &behind);
    // An interface that is there wherever netdyno is.
    let line = if missing.iter().any(|missing| missing.starts_with("--on ")) {
        line.replacen("netdyno ", &format!("netdyno lab{} -- netdyno ", services::far_end(verb)), 1)
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
        ("trial" | "replay", "--rate <RATE>") => ("", &[], &["--rate", "1kpps"]),
        ("replay", "--shape <SHAPE>") => (
            "a seed is that of a --shape; addresses are scrambled by --scramble-ip SEED",
            &[],
            &["--shape", "poisson"],
        ),
        ("measure" | "reflect", "--on <IFACE>") => {
            ("`ip -br link` lists interfaces; without hardware", &[], &["--on", "rx0"])
        }
        ("live", "--on <IFACE>") => ("`ip -br link` lists interfaces", &[], &["--on", "tx0"]),
        ("lab", missing) if missing.starts_with("<CMD>") => ("", &[], &["--", "netdyno", "doctor", "tx0"]),
        ("plugin new", missing) if missing.contains("--rust") => {
            ("in which language: --rust, --go or --c", &[], &["--rust"])
        }
        ("plugin new", missing) if missing.starts_with("<DIR") => {
            ("a folder, which is made; the plugin is called as it is", &["myplugin"], &[])
        }
        ("plugin info", _) => ("`netdyno plugin list` lists them", &["dns"], &[]),
        ("plugin check" | "plugin test", _) => ("a module that was built", &["myplugin.wasm"], &[]),
        ("clone", missing) if missing.starts_with("--to") => {
            ("--to names the test server", &[], &["--to", "HOST:PORT"])
        }
        ("clone" | "clone capture" | "clone doctor", missing) if missing.starts_with("--from") => {
            ("the interface and port of the server", &[], &["--from", "eth0:80"])
        }
        ("sessions", "--on <IFACE>") => ("`ip -br link` lists interfaces; in a lab", &[], &["--on", "tx0"]),
        ("sessions", missing) if missing.starts_with("--to") => ("", &[], &["--to", "198.18.0.2"]),
        ("sessions serve", "--on <IFACE>") => ("`ip -br link` lists interfaces", &[], &["--on", "rx0"]),
        ("agent", "<--stdio|--nats <URL>>") => {
            ("over a pipe, such as ssh has it; an agent that dials out has --nats URL", &["--stdio"], &[])
        }
        ("agent", "--id <NAME>") => ("the name that clients ask for", &[], &["--id", "lab1"]),
        ("agents reach", "--nats <URL>") => ("the server of both", &[], &["--nats", "tls://server:4222"]),
        ("agents reach", "<NAME>") => ("the agent's name there (--id)", &["lab1"], &[]),
        ("trend", _) => ("a folder that holds results", &["FOLDER"], &[]),
        ("beforeafter", "<BEFORE>") => ("two listings, such as `netstat -s` writes", &["BEFORE"], &[]),
        ("beforeafter", _) => ("", &["AFTER"], &[]),
        ("iperf3", _) => ("a server is `netdyno iperf3 -s`; a client", &[], &["-c", "HOST"]),
        ("compare", _) => ("folders that --report wrote", &["BEFORE", "AFTER"], &[]),
        ("search", _) => ("what is searched for", &["throughput", "--lab"], &[]),
        ("completions", _) => ("bash, zsh or fish", &["bash"], &[]),
        ("synth", _) => ("", &[], &["-w", "small.pcap"]),
        ("probe", _) => ("an interface, or captures", &["small.pcap"], &[]),
        ("bridge" | "impair", "--between <IFACE> <IFACE>") => {
            ("`ip -br link` lists interfaces", &[], &["--between", "IFACE1", "IFACE2"])
        }
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

/// The long options that begin with what was typed.
fn beginning(typed: &str, command: &Command) -> Option<String> {
    let begun = typed.strip_prefix("--").filter(|begun| begun.len() > 1)?;
    said_of(command, "begin", |long| long.starts_with(begun))
}

/// Those that end with what was typed, as `--lab-loss` does with `--loss`; or with which that ends.
fn ending(typed: &str, command: &Command) -> Option<String> {
    let typed = typed.strip_prefix("--").filter(|typed| typed.len() > 2)?;
    let ends = |long: &str, with: &str| long.strip_suffix(with).is_some_and(|rest| rest.ends_with('-'));
    // The opposite is not meant.
    let opposite = |long: &str, with: &str| long.strip_suffix(with).is_some_and(|rest| rest == "no-");
    said_of(command, "end", |long| ends(long, typed) && !opposite(long, typed))
        .or_else(|| said_of(command, "end", |long| ends(typed, long) && !opposite(typed, long)))
}

/// What to say of the options that are meant: those that take a value first.
fn said_of(command: &Command, how: &str, meant: impl Fn(&str) -> bool) -> Option<String> {
    let meant = |arg: &&Arg| !arg.is_hide_set() && arg.get_long().is_some_and(&meant);
    let takes = |arg: &Arg| arg.get_action().takes_values();
    let mut found: Vec<&Arg> = command.get_arguments().filter(meant).collect();
    found.sort_by_key(|arg| !takes(arg));
    let said = found.into_iter().filter_map(|arg| {
        let value = arg.get_value_names().and_then(<[_]>::first).filter(|_| takes(arg));
        Some(format!("--{}{}", arg.get_long()?, value.map_or_else(String::new, |value| format!(" {value}"))))
    });
    match &said.collect::<Vec<_>>()[..] {
        [] => None,
        [one] => Some(format!("an option that {how}s so: {one}")),
        several => Some(format!("options that {how} so: {}", several.join(", "))),
    }
}

fn every_called() -> impl Iterator<Item = &'static Called> {
    CALLED.iter().chain(services::CALLED)
}

/// How an option of another verb is called at this one.
fn called(verb: &str, typed: &str) -> Option<&'static str> {
    let is_of =
        |of: &&str| verb.strip_prefix(*of).is_some_and(|below| below.is_empty() || below.starts_with(' '));
    // The nearest verb above has the word.
    let nearest = |typed: &str| {
        let all = every_called().filter(|(_, option, _)| *option == typed);
        let known = all.filter_map(|(verbs, _, says)| {
            verbs.iter().filter(|of| is_of(of)).map(|of| of.len()).max().map(|length| (length, *says))
        });
        known.max_by_key(|(length, _)| *length).map(|(_, says)| says)
    };
    nearest(typed).or_else(|| nearest("--write").filter(|_| typed == "-w"))
}

/// What to give instead of an option a second time.
fn one_only(verb: &str, typed: &str, error: &clap::Error) -> Option<String> {
    // What it conflicts with is itself.
    let itself = match error.get(ContextKind::PriorArg)? {
        ContextValue::String(prior) => prior == typed,
        _ => false,
    };
    let name = typed.split(' ').next()?;
    let second = match (verb, name) {
        ("replay", "--on") => "the second interface is --on2 IFACE",
        ("replay", "--measure") => "the second interface is --measure2 IFACE",
        _ => return None,
    };
    itself.then(|| second.to_owned())
}

/// A command line of ours.
pub(super) fn line(before: &[String], between: &[&str], behind: &[String]) -> String {
    let words = before.iter().map(String::as_str).chain(between.iter().copied());
    let words = words.chain(behind.iter().map(String::as_str)).map(shell_word);
    std::iter::once("netdyno".into()).chain(words).collect::<Vec<String>>().join(" ")
}

/// What a command line that is refused is answered. Each line that the answer has is one that can be typed.
#[cfg(test)]
pub(super) fn told(line: &str) -> String {
    let words = line.split(' ').map(OsString::from).collect();
    let told = super::help::parse(words).expect_err("refused").to_string();
    for tip in told.lines().filter_map(|line| line.trim().strip_prefix("tip: ")) {
        for suggested in everyday::lines(tip) {
            assert!(everyday::can_be_typed(&suggested), "{line}: {tip}: {suggested:?}");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_comes_with_the_line_that_is_not() {
        for (line, said) in [
            (
                "netdyno lab netdyno doctor tx0",
                "put `--` before the command: netdyno lab -- netdyno doctor tx0",
            ),
            ("netdyno lab --mtu 9000 ls -l", "netdyno lab --mtu 9000 -- ls -l"),
            ("netdyno counters netdyno doctor tx0", "netdyno counters -- netdyno doctor tx0"),
            ("netdyno counters --on tx0 ls b c", "netdyno counters --on tx0 -- ls b c"),
            ("netdyno counters --json ls b c", "netdyno counters --json -- ls b c"),
            ("netdyno counters nosuch1 b c", "there is no command nosuch1; an interface is --on IFACE"),
            ("netdyno lab nosuch1", "there is no command nosuch1: such as netdyno lab -- bash"),
            (
                "netdyno drops nosuch1",
                "there is no command nosuch1; the interface is an option: netdyno drops --on nosuch1",
            ),
            ("netdyno drops --json udp port 53", "netdyno drops --json --filter 'udp port 53'"),
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
            ("netdyno help bufferbloat", "documents that speak of it: `netdyno help docs/endpoint.md`"),
            ("netdyno -v", "the version is printed by: netdyno --version"),
            (
                "netdyno edit a.pcap -w b.pcap --duration 100s",
                "netdyno replay small.pcap --write part.pcap --duration TIME",
            ),
            ("netdyno edit a.pcap -w b.pcap --anonymise", "--scramble-ip SEED"),
            (
                "netdyno synth --flows 10000 -w f.pcap",
                "netdyno craft 'ipv4(src=10.0.0.0/8)/udp' --count 10000",
            ),
            ("netdyno search throughput --lab --loss-tolerance 0.1", "--goal loss=SHARE"),
            ("netdyno search throughput --lab --duration 5s", "the length of one is --trial-duration TIME"),
            ("netdyno search loss --lab --rate 5kpps", "from --max RATE to --min RATE"),
            ("netdyno bridge --on a", "--between IFACE IFACE"),
            ("netdyno send ipv4/udp --lab -w x.pcap", "written by --capture FILE"),
            ("netdyno search flows --lab --write x", "written by --report DIR"),
            ("netdyno replay a.pcap --on a --on b", "--on2 IFACE"),
            ("netdyno endpoint serve --on eth0", "--listen ADDR"),
            ("netdyno endpoint tcp-rr host --on eth0", "--device IFACE"),
            ("netdyno lab --lab-bottleneck 1mbps -- true", "an option that ends so: --bottleneck RATE"),
            (
                "netdyno trial --lab --rate 1kpps --bottleneck 1mbps",
                "an option that ends so: --lab-bottleneck RATE",
            ),
            ("netdyno bridge --between a b --seed 3", "here it is `--scramble-ip`"),
            (
                "netdyno replay a.pcap --seed 3",
                "addresses are scrambled by --scramble-ip SEED: netdyno replay a.pcap",
            ),
            ("netdyno send ipv4/udp --lab-bott=1gbps", "an option that begins so: --lab-bottleneck RATE"),
        ] {
            let told = told(line);
            assert!(told.contains(said), "{line}: {told}");
            assert!(!told.contains("as a value"), "{line}: {told}");
        }
    }

    fn below<'a>(root: &'a Command, verb: &str) -> &'a Command {
        verb.split(' ').fold(root, |command, name| command.find_subcommand(name).expect(name))
    }

    fn has(command: &Command, option: &str) -> bool {
        command.get_arguments().any(|arg| arg.get_long().is_some_and(|long| option == format!("--{long}")))
    }

    /// It, or a verb below it.
    fn knows(command: &Command, option: &str) -> bool {
        has(command, option) || command.get_subcommands().any(|below| has(below, option))
    }

    #[test]
    fn what_an_option_is_called_elsewhere_is_an_option_there_and_no_other_is() {
        let root = crate::cli::help::command();
        for (verbs, typed, says) in every_called() {
            for verb in *verbs {
                let command = below(&root, verb);
                assert!(!has(command, typed), "{verb} has {typed}");
                assert_eq!(called(verb, typed), Some(*says), "{verb} {typed}");
                for (at, part) in says.split('`').enumerate() {
                    for option in part.split([' ', ',', ';', ':', '=']).filter(|word| word.starts_with("--"))
                    {
                        // Behind a verb may stand a file.
                        let is_verb = |word: &&str| !word.starts_with('-') && !word.contains('.');
                        let line: Vec<&str> = part.split(' ').skip(1).take_while(is_verb).collect();
                        // Between marks is a line with a verb of its own.
                        let command = if at % 2 == 0 { command } else { below(&root, &line.join(" ")) };
                        assert!(knows(command, option), "{verb} {typed}: there is no {option}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_thing_has_its_other_verbs_name_too() {
        for line in [
            "netdyno trial --lab --rate 1kpps --trial-duration 5s",
            "netdyno search flows --lab --rate 50kflows/s",
            "netdyno impair --between a b --seed 3",
            "netdyno probe --on a --sample-flows 2 --seed 3",
        ] {
            let words = line.split(' ').map(std::ffi::OsString::from).collect();
            assert!(crate::cli::help::parse(words).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_a_lab_cannot_have_is_refused() {
        for (line, said) in [
            (
                "netdyno trial --lab --mesh --rate 1kpps --lab-impair delay=1ms",
                "'--mesh' cannot be used with '--lab-impair",
            ),
            ("netdyno search throughput --lab --lab-impair delay=1ms --mesh", "'--mesh'"),
            ("netdyno send ipv4/udp --lab --mesh", "'--lab' cannot be used with '--mesh'"),
            ("netdyno send ipv4/udp --lab --resolve", "'--lab' cannot be used with '--resolve'"),
            ("netdyno replay a.pcap --lab --round-trip", "'--lab' cannot be used with '--round-trip'"),
        ] {
            let told = told(line);
            assert!(told.contains(said), "{line}: {told}");
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
