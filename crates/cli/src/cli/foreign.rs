//! Words of other tools, typed at our verbs: what they are called here. A tip comes as the whole line, to be typed as it stands.

mod endpoint;
pub mod fields;
mod options;

use super::mistyped::{BARE, everyday, line};
use clap::{Arg, ArgAction, Command};
pub use endpoint::{conflict, in_tests_place as test};
use options::{Foreign, OPTIONS, Value};
use report::units::shell_word;

/// Words in a verb's place: what was meant, and a line that does it.
const VERBS: &[(&[&str], &str, &str)] = &[
    (
        &[
            "start",
            "load",
            "generate",
            "generator",
            "gen",
            "blast",
            "flood",
            "traffic",
            "tx",
            "transmit",
            "pktgen",
            "trex",
            "t-rex",
            "stl",
            "moongen",
            "mz",
            "mausezahn",
            "ostinato",
            "packeth",
            "bittwist",
            "nping",
            "scapy",
            "xdp-trafficgen",
            "trafgen",
            "pkt-gen",
            "dpdk-pktgen",
            "cisco-trex",
            "ixnetwork",
            "ixia",
            "spirent",
            "packetsender",
            "craft-and-send",
            "udp",
            "tcp",
            "ipv4",
            "ipv6",
            "ether",
            "raw",
        ],
        "frames are sent by",
        "netdyno send ipv4/udp --lab --rate 1kpps --count 100",
    ),
    (
        &["hping", "hping3"],
        "frames are sent by",
        "netdyno send 'ipv4/tcp(flags=S)' --lab --rate 100pps --count 100",
    ),
    (
        &["play", "pcap", "udpreplay", "bittwiste"],
        "captures are sent by",
        "netdyno replay small.pcap --lab --topspeed",
    ),
    (
        &[
            "sniff",
            "dump",
            "tcpdump",
            "tshark",
            "wireshark",
            "dumpcap",
            "netsniff-ng",
            "record",
            "capture",
            "rx",
            "receive",
            "listen",
            "sink",
        ],
        "what arrives is counted and captured by",
        "netdyno measure --on eth0 --capture arrived.pcapng --duration 10s",
    ),
    (
        &["xdp-bench", "ifpps", "iftop", "nload", "bmon"],
        "what arrives is counted by",
        "netdyno measure --on eth0 --duration 10s",
    ),
    (
        &["traceroute", "tracepath", "tracert", "mtr"],
        "no path is traced; round trips to a host where `netdyno endpoint serve` runs are timed by",
        "netdyno endpoint tcp-rr HOST",
    ),
    (
        &["ping", "arping", "fping", "smokeping", "latency", "rtt", "qperf", "sockperf"],
        "round trips to a host where `netdyno endpoint serve` runs are timed by",
        "netdyno endpoint tcp-rr HOST",
    ),
    (&["server", "daemon"], "the far end of tests is", "netdyno endpoint serve"),
    (
        &[
            "client",
            "stream",
            "nuttcp",
            "ethr",
            "iperf2",
            "speedtest",
            "bandwidth",
            "uperf",
            "ntttcp",
            "ntttcp-for-linux",
            "nttcp",
            "ttcp",
            "netcat",
            "nc",
            "ncat",
            "socat",
        ],
        "TCP and UDP between two hosts are measured by",
        "netdyno endpoint tcp-stream HOST",
    ),
    (
        &["flent", "rrul", "crusader", "netsurf"],
        "latency under load is measured, to a host where `netdyno endpoint serve` runs, by",
        "netdyno endpoint latency-under-load HOST",
    ),
    (
        &["bench", "benchmark", "rfc2544", "rfc9004", "ndr", "mlrsearch", "throughput", "test", "y1564"],
        "the highest rate without loss is found by",
        "netdyno search throughput --lab",
    ),
    (&["rewrite", "modify", "editcap"], "captures are edited by", "netdyno edit small.pcap -w edited.pcap"),
    (
        &["mergecap", "merge", "joincap"],
        "captures are not merged here (Wireshark's mergecap does that); several are sent one after another by",
        "netdyno replay small.pcap --lab --topspeed",
    ),
    (
        &["capinfos", "inspect", "stat", "stats", "analyze", "analyse"],
        "what a capture holds is said by",
        "netdyno info small.pcap",
    ),
    (&["version"], "the version is printed by", "netdyno --version"),
    (
        &["list", "interfaces", "ifaces", "devices", "nics", "check", "status"],
        "what this machine and its interfaces can do is said by",
        "netdyno doctor",
    ),
    (
        &["echo", "loopback", "reflector", "testpmd", "dpdk-testpmd", "l2fwd", "macswap"],
        "frames are sent back by",
        "netdyno reflect --on eth0",
    ),
    (
        &["stamp", "twamp"],
        "test packets of STAMP and TWAMP Light are answered by `netdyno reflect --on eth0 --stamp`, and sent by",
        "netdyno endpoint stamp HOST",
    ),
    (
        &["gor", "goreplay", "copy", "shadow"],
        "live sessions are copied by",
        "netdyno clone --from eth0:80 --to HOST:80",
    ),
    (
        &["collector", "nfcapd", "nfdump", "goflow2", "vflow", "netflow", "ipfix"],
        "flow records are collected by",
        "netdyno collect --listen 127.0.0.1:2055",
    ),
    (
        &["exporter", "fprobe", "pmacct", "pmacctd", "flowprobe", "ipt-netflow"],
        "flows are metered by",
        "netdyno probe --on eth0 --export HOST:2055",
    ),
    (
        &["netem", "tc", "delay", "wanem", "chaos", "comcast", "toxiproxy"],
        "faults are made between two interfaces by",
        "netdyno impair --between eth0 eth1 --delay 10ms",
    ),
    (
        &["ethtool", "nstat", "netstat", "ss", "ip", "ifconfig", "ifstat", "sar", "proc"],
        "what the kernel counts, and what an interface does, is shown by",
        "netdyno counters --on eth0",
    ),
    (
        &["install", "setup", "update", "upgrade", "config", "configure", "init"],
        "netdyno is one file, and has no set-up; what this machine can do is said by",
        "netdyno doctor",
    ),
    (&["show", "open", "view", "result", "results"], "an earlier result is shown by", "netdyno report DIR"),
    (&["diff"], "results are compared by", "netdyno compare BEFORE AFTER"),
    (
        &["trends", "history", "regression", "regressions", "over-time"],
        "results over time are looked at by",
        "netdyno trend FOLDER",
    ),
    (
        &[
            "dropwatch",
            "retis",
            "pwru",
            "bpftrace",
            "bpftool",
            "dropmonitor",
            "skbtracer",
            "perf",
            "dropped",
            "why-lost",
            "loss",
            "losses",
        ],
        "which frames this kernel drops, where and why, is said by",
        "netdyno drops --duration 5s",
    ),
    (
        &["api", "rest", "web", "ui", "gui", "webui", "dashboard", "snappi", "otg", "ixia-c"],
        "jobs over HTTP, a page and Open Traffic Generator are served by",
        "netdyno serve",
    ),
    (
        &["nodes", "fleet", "hosts", "cluster", "remote", "inventory"],
        "agents on other machines are looked at by",
        "netdyno agents check --inventory FILE",
    ),
    (
        &[
            "cps",
            "connections",
            "conns",
            "astf",
            "tcp-sessions",
            "dperf",
            "warp17",
            "tcpkali",
            "wrk",
            "wrk2",
            "ab",
            "hey",
            "bombardier",
            "http",
            "curl",
            "siege",
            "h2load",
            "vegeta",
            "k6",
            "locust",
            "jmeter",
            "fortio",
            "oha",
            "autocannon",
            "httperf",
            "gatling",
            "artillery",
        ],
        "requests over TCP connections of their own, up to millions, are sent to a server by",
        "netdyno sessions --on eth1 --to 10.0.0.2:80 --rate 10kcps --duration 5s",
    ),
    (&["xdperf"], "its plugins are", "netdyno send --plugin simpleudp --lab --rate 1kpps --count 100"),
];

/// Those of them that read captures, too.
const READERS: [&str; 3] = ["tcpdump", "tshark", "wireshark"];

/// Goals of searches by other names.
const GOALS: &[(&[&str], &str)] = &[
    (
        &["rfc2544", "ndr", "pdr", "mlrsearch", "rate", "ndrpdr", "bandwidth"],
        "netdyno search throughput --lab",
    ),
    (&["frame-loss", "drops"], "netdyno search loss --lab"),
    (&["back-to-back", "b2b", "bursts", "buffer"], "netdyno search burst --lab"),
    (&["delay", "jitter", "pdv"], "netdyno search latency --lab"),
    (&["rfc6645"], "netdyno search flows --lab"),
];

/// What is meant by a word where a verb of `under` should be.
pub fn verb(under: &str, word: &str, rest: &[String]) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let is = |typed: &&[&str]| typed.contains(&lower.as_str());
    match under {
        "" if is_capture(word) => {
            let word = shell_word(word);
            Some(format!("what it holds: netdyno info {word}; sent: netdyno replay {word} --lab --topspeed"))
        }
        "" if lower == "iperf" => {
            let rest: Vec<_> = rest.iter().map(|word| report::units::shell_word(word)).collect();
            Some(format!(
                "iperf 2 speaks another protocol; iperf3's is there: netdyno iperf3 {}",
                rest.join(" ")
            ))
        }
        "" if word.contains('/')
            && traffic::expr::compile(word, &traffic::expr::Options::default()).is_ok() =>
        {
            let word = shell_word(word);
            Some(format!("frames are sent by `send`: netdyno send {word} --lab --rate 1kpps --count 100"))
        }
        "" if READERS.contains(&&*lower) && rest.iter().any(|word| word == "-r") => {
            let file = rest.iter().skip_while(|word| *word != "-r").nth(1)?;
            Some(format!("what a capture holds is said by: netdyno info {}", shell_word(file)))
        }
        "" => {
            let (_, says, example) = VERBS.iter().find(|(typed, ..)| is(typed))?;
            Some(format!("{says}: {}", everyday::of_example(example, &without_threads(&lower, rest))))
        }
        "search" => {
            let (_, example) = GOALS.iter().find(|(typed, _)| is(typed))?;
            Some(format!("such as {}", everyday::of_example(example, rest)))
        }
        _ => None,
    }
}

/// The words of a tool without its threads, whose option is a time to others of its kind: here one thread opens all connections.
fn without_threads(tool: &str, words: &[String]) -> Vec<String> {
    if !["wrk", "wrk2", "h2load"].contains(&tool) {
        return words.to_vec();
    }
    let mut words = words.iter();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-t" | "--threads" => _ = words.next(),
            _ if word.starts_with("-t") || word.starts_with("--threads=") => {}
            _ => kept.push(word.clone()),
        }
    }
    kept
}

pub(super) fn is_capture(word: &str) -> bool {
    [".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcap.zst"].iter().any(|end| word.ends_with(end))
}

/// What an option is called here, with the whole line as it would be. None for what no other tool calls so.
pub fn option(verb: &str, command: &Command, typed: &str, words: &[String], at: usize) -> Option<String> {
    let typed = typed.split('=').next().unwrap_or(typed);
    if let Some(tip) = endpoint::option(verb, command, typed, words, at) {
        return Some(tip);
    }
    if let ("clone", "-x") = (verb, typed) {
        return copied(words);
    }
    let found = foreign(verb, command, typed, value_behind(words, typed).as_deref());
    let takes_packets = command.get_positionals().any(|arg| arg.get_id() == "what");
    let whole = everyday::mended(verb, command, words.get(at..)?);
    // A verb's own tools come before words that any of them may have.
    if let Some(field) =
        fields::by_name(typed).filter(|_| takes_packets && found.is_none_or(|(found, _)| found.at.is_empty()))
    {
        return Some(match whole {
            Some(line) => format!("fields of a packet stand in it: {line}"),
            None => format!("fields of a packet stand in it: such as '{}'", field.example),
        });
    }
    if command.get_name() == "search" && typed.starts_with('-') {
        // The options are those of what is searched for, which comes first.
        let mut words = words.get(at..)?.to_vec();
        let named = words.iter().position(|word| command.find_subcommand(word).is_some());
        let named = named.map_or_else(|| "throughput".to_owned(), |at| words.remove(at));
        let goal = command.find_subcommand(&named)?;
        let verb = format!("search {named}");
        let line = line(&[], &["search", named.as_str()], &translated(&verb, goal, &words));
        return Some(format!("say first what is searched for: {line}"));
    }
    if is_bare(verb, typed) {
        return Some(format!("it stands without an option: {}", whole?));
    }
    let ours = found?.1;
    let whole = whole.or_else(|| {
        let mut told = words.get(1..at)?.to_vec();
        told.extend(translated(verb, command, words.get(at..)?));
        everyday::can_be_typed(&told).then(|| line(&told, &[], &[]))
    });
    // A line in which something else is wrong would be refused again.
    Some(
        whole.map_or_else(
            || format!("here it is `--{ours}`"),
            |line| format!("here it is `--{ours}`: {line}"),
        ),
    )
}

/// Whether what stands behind another tool's option stands without one here.
fn is_bare(verb: &str, typed: &str) -> bool {
    BARE.iter().any(|(verbs, options)| verbs.contains(&verb) && options.contains(&typed))
}

/// What stands behind an option.
fn value_behind(words: &[String], typed: &str) -> Option<String> {
    let at = words.iter().position(|word| word.starts_with(typed))?;
    let own = words.get(at)?.strip_prefix(typed)?;
    let own = own.strip_prefix('=').unwrap_or(own);
    if own.is_empty() { words.get(at + 1).cloned() } else { Some(own.to_owned()) }
}

/// An option of another tool, and ours that the verb has.
fn foreign(
    verb: &str,
    command: &Command,
    typed: &str,
    value: Option<&str>,
) -> Option<(&'static Foreign, &'static str)> {
    let below =
        |of: &&str| verb.strip_prefix(*of).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let is_number = || value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit()));
    let all = OPTIONS.iter().filter(|foreign| {
        foreign.typed.contains(&typed)
            && (foreign.at.is_empty() || foreign.at.iter().any(below))
            && (foreign.value != Value::Number || is_number())
    });
    all.filter_map(|foreign| {
        let ours = foreign.ours.iter().find(|ours| has(command, &format!("--{ours}")))?;
        Some((foreign, *ours))
    })
    .next()
}

/// tcpcopy's `-x 80-HOST:8080`.
fn copied(words: &[String]) -> Option<String> {
    let value = value_behind(words, "-x")?;
    let (server, target) = value.split(',').next()?.split_once('-')?;
    let line =
        ["netdyno", "clone", "--from", &format!("eth0:{server}"), "--to", target].map(shell_word).join(" ");
    Some(format!(
        "the server's interface and port are --from IFACE:[ADDR:]PORT, the target --to HOST:PORT: {line}"
    ))
}

/// A word that is one of the verb's options, but for its dashes, its case or its underscores: as it is written.
pub fn nearly(command: &Command, word: &str) -> Option<String> {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let plain = |name: &str| name.trim_start_matches('-').replace('_', "-").to_ascii_lowercase();
    let name = plain(name);
    let long = command.get_arguments().filter(|arg| !arg.is_hide_set()).find_map(|arg| {
        let mut names = arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default());
        names.find(|long| **long == *name).map(|_| arg.get_long().unwrap_or_default().to_owned())
    })?;
    let value = value.map(|value| format!(" {}", shell_word(value))).unwrap_or_default();
    Some(format!("an option is written so: --{long}{value}"))
}

/// Scapy's arguments of `sendp`, such as `iface="eth0"`.
pub fn scapy(command: &Command, word: &str) -> Option<String> {
    let (name, value) = word.split_once('=')?;
    let value = value.trim_matches(['"', '\'']);
    let option = match name {
        "iface" => format!("--on {}", shell_word(value)),
        "inter" => {
            let seconds = value.parse::<f64>().ok().filter(|seconds| *seconds > 0.0)?;
            format!("--rate {}pps", (1.0 / seconds * 1e3).round() / 1e3)
        }
        "pps" => format!("--rate {}pps", shell_word(value)),
        "mbps" => format!("--rate {}mbps", shell_word(value)),
        "loop" if has(command, "--loop") => format!("--loop {}", if value == "1" { "0" } else { "1" }),
        "loop" => "--duration TIME".to_owned(),
        "verbose" => "--quiet".to_owned(),
        _ => return None,
    };
    let known = option.split(' ').next().is_some_and(|option| has(command, option));
    known.then(|| format!("here it is: {option}"))
}

fn has(command: &Command, option: &str) -> bool {
    named(command, option).is_some()
}

pub(super) fn named<'a>(command: &'a Command, option: &str) -> Option<&'a Arg> {
    let (long, short) = (option.strip_prefix("--"), option.strip_prefix('-'));
    // -V is nProbe's, too, with a value, and never one of ours in a line that was refused.
    let mut own = command.get_arguments().filter(|arg| !matches!(arg.get_action(), ArgAction::Version));
    own.find(|arg| match (long, short) {
        (Some(long), _) => {
            arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        (None, Some(short)) => arg.get_short().is_some_and(|own| short.starts_with(own)),
        _ => false,
    })
}

/// The words behind a verb with what other tools call otherwise by its name here.
pub(super) fn translated(verb: &str, command: &Command, words: &[String]) -> Vec<String> {
    let mut line = Vec::with_capacity(words.len());
    let mut words = words.iter().cloned().peekable();
    while let Some(word) = words.next() {
        // A command is another program's.
        if word == "--" {
            line.push(word);
            line.extend(words.by_ref());
            break;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            // `-b10M`
            _ if !word.starts_with("--")
                && word.starts_with('-')
                && word.is_char_boundary(2)
                && word.len() > 2 =>
            {
                let (name, value) = word.split_at(2);
                (name, Some(value.to_owned()))
            }
            _ => (word.as_str(), None),
        };
        if is_bare(verb, name) {
            line.extend(value);
            continue;
        }
        let own = named(command, name);
        let behind = value.clone().or_else(|| words.peek().cloned());
        let found = own.is_none().then(|| foreign(verb, command, name, behind.as_deref())).flatten();
        let Some((foreign, ours)) = found else {
            line.push(word);
            // The value of one of ours is no option.
            if own.is_some_and(|own| own.get_action().takes_values()) && value.is_none() {
                line.extend(words.next_if(|next| !next.starts_with("--")));
            }
            continue;
        };
        line.push(format!("--{ours}"));
        match foreign.value {
            Value::None => {}
            Value::Is(value) => line.push(value.to_owned()),
            with => {
                let value = value.or_else(|| words.next_if(|next| !next.starts_with('-')));
                line.extend(value.map(|value| with.of(value)));
            }
        }
    }
    line
}

impl Value {
    /// The value as it is here.
    fn of(self, value: String) -> String {
        let is_bare = |value: &str| value.chars().all(|c| c.is_ascii_digit() || c == '.');
        match self {
            Value::Unit(unit) if is_bare(&value) => value + unit,
            Value::Before(before) if is_bare(value.trim_start_matches(':')) => {
                before.to_owned() + value.trim_start_matches(':')
            }
            Value::Host => everyday::address(&value).to_owned(),
            Value::NetFlow if value == "10" => "ipfix".to_owned(),
            _ => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mistyped::told;
    use super::*;

    #[test]
    fn options_of_other_tools_are_told_by_their_names_here() {
        for (line, said) in [
            ("netdyno search --lab latency -t3", "for: netdyno search latency --lab --trial-duration 3s"),
            ("netdyno probe -i eth0 -n host:2055", "`--on`: netdyno probe --on eth0 --export host:2055"),
            ("netdyno send ipv4/udp -ieth0 -b10M", "`--on`: netdyno send ipv4/udp --on eth0 --rate 10M"),
            (
                "netdyno send ipv4/udp -i eth0 --pps 1000",
                "`--on`: netdyno send ipv4/udp --on eth0 --rate 1000pps",
            ),
            (
                "netdyno send ipv4/udp --lab --pps=1000 -t 5",
                "`--rate`: netdyno send ipv4/udp --lab --rate 1000pps --duration 5s",
            ),
            (
                "netdyno send ipv4/udp --lab -b 10M -n 10",
                "`--rate`: netdyno send ipv4/udp --lab --rate 10M --count 10",
            ),
            (
                "netdyno send ipv4/udp --lab --rate 10M --len 100",
                "`--size`: netdyno send ipv4/udp --lab --rate 10M --size 100",
            ),
            (
                "netdyno send ipv4/udp -P 2 --on eth0 --topspeed",
                "`--cores`: netdyno send ipv4/udp --cores 2 --on eth0 --topspeed",
            ),
            (
                "netdyno replay a.pcap --intf1 eth7 -K --mbps 7000 -l 50",
                "netdyno replay a.pcap --on eth7 --preload --rate 7000mbps --loop 50",
            ),
            (
                "netdyno replay a.pcap --on eth7 -x 2.5",
                "`--speed`: netdyno replay a.pcap --on eth7 --speed 2.5",
            ),
            (
                "netdyno measure --interface eth7 -w got.pcapng",
                "`--on`: netdyno measure --on eth7 --capture got.pcapng",
            ),
            (
                "netdyno trial --lab --rate 1kpps --seconds 3",
                "`--duration`: netdyno trial --lab --rate 1kpps --duration 3s",
            ),
            (
                "netdyno search throughput --lab -t 3",
                "`--trial-duration`: netdyno search throughput --lab --trial-duration 3s",
            ),
            (
                "netdyno send ipv4/udp --lab --dst-ip 10.0.0.1",
                "fields of a packet stand in it: netdyno send 'ipv4(dst=10.0.0.1)/udp' --lab --rate 1kpps",
            ),
            ("netdyno trial ipv4/udp --lab -p 80", "netdyno trial 'ipv4/udp(dport=80)' --lab --rate 1kpps"),
        ] {
            let told = told(line);
            assert!(told.contains(said), "{line}: {told}");
        }
        // What nobody calls so, or what the verb has nothing for, gets no advice.
        for line in [
            "netdyno send ipv4/udp --lab --loops 5",
            "netdyno send ipv4/udp --lab -Z",
            "netdyno info a.pcap --dst 1.2.3.4",
            "netdyno info a.pcap -b 3",
        ] {
            assert!(!told(line).contains("here it is"), "{line}");
            assert!(!told(line).contains("fields of"), "{line}");
        }
    }

    /// iperf3's, netperf's, tcpreplay's, tcprewrite's, tcpcopy's, GoReplay's, nfcapd's, tcpdump's and Scapy's words at the verbs where
    /// their users type them.
    #[test]
    fn hints_know_the_verb_and_the_tool_that_is_meant() {
        for (line, said) in [
            ("endpoint tcp-stream H -P 4", "`--parallel`: netdyno endpoint tcp-stream H --parallel 4"),
            ("endpoint -s", "the far end is: netdyno endpoint serve"),
            ("endpoint tcp H", "the test is called: netdyno endpoint tcp-stream H"),
            ("endpoint TCP_STREAM H", "the test is called: netdyno endpoint tcp-stream H"),
            ("endpoint UDP_RR H", "netdyno endpoint udp-rr H"),
            ("endpoint ping H", "netdyno endpoint tcp-rr H"),
            ("endpoint bufferbloat H", "netdyno endpoint latency-under-load H"),
            (
                "endpoint 10.0.0.1",
                "the test stands before the host, such as netdyno endpoint tcp-stream 10.0.0.1",
            ),
            ("endpoint H tcp-rr -d 5s", "the test stands before the host: netdyno endpoint tcp-rr H -d 5s"),
            ("endpoint tcp-stream H -i 1", "--csv=intervals"),
            (
                "endpoint tcp-rr H -l 10",
                "netperf's -l is the duration: netdyno endpoint tcp-rr H --duration 10s",
            ),
            (
                "endpoint tcp-stream H -l 10",
                "--duration 10s; iperf3's is the size of a message: netdyno endpoint tcp-stream H --size 10",
            ),
            ("endpoint tcp-stream H -l 128K", "`--size`: netdyno endpoint tcp-stream H --size 128K"),
            (
                "endpoint -c 10.0.0.1 -u -b 10M -t 5",
                "netdyno endpoint udp-stream 10.0.0.1 --rate 10M --duration 5s",
            ),
            ("endpoint -H 10.0.0.1 -t TCP_RR -l 5", "netdyno endpoint tcp-rr 10.0.0.1 --duration 5s"),
            ("endpoint tcp-stream H -R", "here it is: netdyno endpoint tcp-maerts H"),
            ("endpoint tcp-stream H -w 256K", "--send-buffer BYTES"),
            ("endpoint tcp-stream H -s 64K", "--send-buffer BYTES"),
            ("endpoint tcp-stream H -Z -O 2", "netdyno endpoint tcp-stream H --method sendfile --warm-up 2s"),
            ("endpoint serve -p 5201", "netdyno endpoint serve --listen '[::]:5201'"),
            ("replay a.pcap -i eth0 -p 1000", "netdyno replay a.pcap --on eth0 --rate 1000pps"),
            ("replay a.pcap -i eth0 -t", "netdyno replay a.pcap --on eth0 --topspeed"),
            ("replay a.pcap -c a.cache --on eth0", "netdyno replay a.pcap --sides a.cache --on eth0"),
            ("replay a.pcap --on eth0 --pnat 10.0.0.0/8:192.168.0.0/16", "--map-ip FROM=TO"),
            ("edit a.pcap -o b.pcap --fixcsum", "netdyno edit a.pcap --write b.pcap --fix-checksums"),
            ("clone -x 80-10.0.0.2:8080", "netdyno clone --from eth0:80 --to 10.0.0.2:8080"),
            ("clone --input-raw :80 --to h:80", "netdyno clone --from eth0:80 --to h:80"),
            ("clone -s 10.0.0.9 --to h:80", "nothing is needed of an intercept"),
            ("collect -t 300 -p 2055", "here it is `--rotate`"),
            ("collect -t 300 -p 2055 -l x", "netdyno collect --rotate 300s --listen '[::]:2055' --write x"),
            ("measure -i eth0 -w x.pcapng -s 96", "--on eth0 --capture x.pcapng --capture-snap 96"),
            ("measure --on eth0 -n", "unexpected argument '-n'"),
            ("doctor -i eth0", "netdyno doctor eth0"),
            ("search throughput --lab --resume r.json", "--continue FILE"),
            ("search throughput --lab --pdr 0.1", "--goal loss=SHARE"),
            ("send ipv4/udp iface=eth0", "here it is: --on eth0"),
            ("send ipv4/udp --on eth0 inter=0.01", "here it is: --rate 100pps"),
            ("send ipv4/udp -rate 1kpps", "a long option has two dashes: --rate"),
            ("send ipv4/udp rate=1kpps", "netdyno send ipv4/udp --rate 1kpps --lab"),
            ("send ipv4/udp --lab_loss 1%", "an option is written so: --lab-loss"),
            ("impair --between a b delay 10ms", "netdyno impair --between a b --delay 10ms"),
            ("SEND ipv4/udp", "it is written so: netdyno send ipv4/udp"),
            ("send ipv4/udp --lab --engine XDP", "it is written so: xdp"),
            ("plugin new mine", "netdyno plugin new mine --rust"),
        ] {
            let told = told(&format!("netdyno {line}"));
            assert!(told.contains(said), "{line}: {told}");
            assert!(!told.contains("a similar"), "{line}: {told}");
        }
    }

    #[test]
    fn words_of_other_tools_in_a_verbs_place_are_answered_with_a_line() {
        for (line, said) in [
            ("netdyno trex", "frames are sent by: netdyno send"),
            ("netdyno big.pcap", "netdyno info big.pcap; sent: netdyno replay big.pcap --lab --topspeed"),
            ("netdyno ipv4/udp(dport=53)", "netdyno send 'ipv4/udp(dport=53)' --lab"),
            ("netdyno iperf -c host -t 1", "netdyno iperf3 -c host -t 1"),
            ("netdyno RFC2544 --lab", "netdyno search throughput --lab"),
            ("netdyno search ndr", "such as netdyno search throughput --lab"),
            ("netdyno sniff", "netdyno measure --on eth0 --capture"),
            ("netdyno server", "netdyno endpoint serve"),
        ] {
            let told = told(line);
            assert!(told.contains(said), "{line}: {told}");
            assert!(!told.contains("similar"), "{line}: {told}");
        }
        // A verb that is nearly one of ours is that.
        assert!(told("netdyno sned").contains("'send'"));
        assert!(!told("netdyno big.txt").contains("tip:"));
    }

    #[test]
    fn every_line_that_is_told_can_be_typed() {
        let lines = VERBS.iter().map(|(_, _, line)| *line).chain(GOALS.iter().map(|(_, line)| *line));
        for line in lines.filter(|line| !line.ends_with("--help") && !line.ends_with("--version")) {
            let words = line.split(' ').map(|word| word.trim_matches('\'').into()).collect();
            assert!(crate::cli::help::parse(words).is_ok(), "{line}");
        }
        for field in fields::FIELDS {
            let example = field.example;
            assert!(traffic::expr::compile(example, &traffic::expr::Options::default()).is_ok(), "{example}");
        }
        // No word is ours: it would never be asked for.
        for word in VERBS.iter().flat_map(|(words, ..)| *words) {
            assert!(!crate::cli::help::is_verb(word), "{word}");
            assert!(told(&format!("netdyno {word}")).contains("netdyno "), "{word}");
        }
    }
}
