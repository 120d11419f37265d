//! Words of other tools, typed at our verbs: what they are called here. A tip comes as the whole line, to be typed as it stands.

use super::mistyped::line;
use clap::{Arg, Command};
use report::units::shell_word;

/// What becomes of the value behind an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// It stays.
    Same,
    /// A unit goes behind a bare number.
    Unit(&'static str),
    /// There is none.
    None,
}

/// Options of other tools, and the first of ours that the verb has.
struct Foreign {
    typed: &'static [&'static str],
    ours: &'static [&'static str],
    value: Value,
}

const OPTIONS: &[Foreign] = &[
    Foreign {
        typed: &["-i", "--intf1", "--interface", "--iface", "--intf", "--dev", "--device", "--nic"],
        ours: &["on", "from"],
        value: Value::Same,
    },
    Foreign { typed: &["-I", "--intf2"], ours: &["on2"], value: Value::Same },
    Foreign { typed: &["--pps"], ours: &["rate"], value: Value::Unit("pps") },
    Foreign { typed: &["--mbps", "-M"], ours: &["rate"], value: Value::Unit("mbps") },
    Foreign {
        typed: &["-b", "--bandwidth", "--bw", "--bitrate"],
        ours: &["rate", "target-rate"],
        value: Value::Same,
    },
    Foreign { typed: &["-x", "--multiplier"], ours: &["speed"], value: Value::Same },
    Foreign {
        typed: &["-t", "-d", "--time", "--seconds"],
        ours: &["duration", "trial-duration"],
        value: Value::Unit("s"),
    },
    // Flow exporters' collector; else a number.
    Foreign { typed: &["-n"], ours: &["export"], value: Value::Same },
    Foreign {
        typed: &["-n", "-c", "-L", "--number", "--limit", "--packets", "--num", "--pkts", "--frames"],
        ours: &["count"],
        value: Value::Same,
    },
    Foreign { typed: &["--loops"], ours: &["loop"], value: Value::Same },
    Foreign { typed: &["-l"], ours: &["loop", "size"], value: Value::Same },
    Foreign {
        typed: &["-s", "--len", "--length", "--packet-size", "--pkt-size", "--frame-size"],
        ours: &["size"],
        value: Value::Same,
    },
    Foreign {
        typed: &["-P", "-j", "--threads", "--parallel", "--workers", "--cpus"],
        ours: &["cores", "parallel"],
        value: Value::Same,
    },
    Foreign { typed: &["-K", "--preload-pcap"], ours: &["preload"], value: Value::None },
    Foreign { typed: &["-R", "--top-speed", "--flood"], ours: &["topspeed"], value: Value::None },
    Foreign { typed: &["-J"], ours: &["json"], value: Value::None },
    Foreign { typed: &["-w", "--pcap"], ours: &["write", "capture"], value: Value::Same },
    Foreign { typed: &["-o", "--output", "--out"], ours: &["write", "report"], value: Value::Same },
];

/// What other tools have options for, and we have fields of packets.
const FIELDS: &[(&[&str], &str)] = &[
    (&["--dst", "--dst-ip", "--dip", "--dest", "--daddr", "--dst_ip"], "ipv4(dst=198.18.0.2)/udp"),
    (&["--src", "--src-ip", "--sip", "--saddr", "--src_ip"], "ipv4(src=198.18.0.1)/udp"),
    (&["--dport", "--dst-port", "--port", "-p"], "ipv4/udp(dport=53)"),
    (&["--sport", "--src-port"], "ipv4/udp(sport=1000..1999)"),
    (&["--dst-mac", "--dmac"], "ether(dst=02:00:00:00:00:02)/ipv4/udp"),
    (&["--src-mac", "--smac"], "ether(src=02:00:00:00:00:01)/ipv4/udp"),
    (&["--vlan", "--vlan-id"], "vlan(id=100)/ipv4/udp"),
    (&["--ttl"], "ipv4(ttl=64)/udp"),
    (&["--tos", "-Q"], "ipv4(tos=0xb8)/udp"),
    (&["--dscp"], "ipv4(dscp=46)/udp"),
    (&["--tcp", "-S", "--syn"], "ipv4/tcp(flags=S)"),
    (&["--udp", "-u"], "ipv4/udp"),
    (&["--icmp"], "ipv4/icmp"),
    (&["--ipv6", "-6"], "ipv6/udp"),
];

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
            "sniff", "dump", "tcpdump", "tshark", "dumpcap", "record", "capture", "rx", "receive", "listen",
            "sink",
        ],
        "what arrives is counted and captured by",
        "netdyno measure --on eth0 --capture arrived.pcapng --duration 10s",
    ),
    (
        &["ping", "arping", "rtt", "qperf", "sockperf"],
        "round trips to a server are timed by",
        "netdyno endpoint tcp-rr HOST",
    ),
    (&["serve", "server", "daemon"], "the far end of tests is", "netdyno endpoint serve"),
    (
        &["client", "stream", "nuttcp", "ethr", "iperf2"],
        "TCP and UDP between two hosts are measured by",
        "netdyno endpoint tcp-stream HOST",
    ),
    (
        &["wrk", "ab", "hey", "http"],
        "new connections are measured by",
        "netdyno endpoint connection-rate HOST",
    ),
    (
        &["bench", "benchmark", "rfc2544", "rfc9004", "ndr", "mlrsearch", "throughput", "test", "y1564"],
        "the highest rate without loss is found by",
        "netdyno search throughput --lab",
    ),
    (&["rewrite", "modify", "editcap"], "captures are edited by", "netdyno edit small.pcap -w edited.pcap"),
    (
        &["capinfos", "inspect", "stat", "stats", "analyze", "analyse"],
        "what a capture holds is said by",
        "netdyno info small.pcap",
    ),
    (&["version"], "the version is told by", "netdyno --version"),
    (
        &["list", "interfaces", "ifaces", "devices", "nics", "check", "status"],
        "what this machine and its interfaces can do is said by",
        "netdyno doctor",
    ),
    (&["echo", "loopback", "reflector", "twamp"], "frames are sent back by", "netdyno reflect --on eth0"),
    (
        &["gor", "goreplay", "copy", "shadow"],
        "live sessions are copied by",
        "netdyno clone --from eth0:80 --to HOST:80",
    ),
    (
        &["collector", "nfcapd", "nfdump", "netflow", "ipfix"],
        "flow records are collected by",
        "netdyno collect --listen 127.0.0.1:2055",
    ),
    (
        &["exporter", "fprobe", "pmacctd", "flowprobe"],
        "flows are metered by",
        "netdyno probe --on eth0 --export HOST:2055",
    ),
    (&["netem", "tc", "delay", "wanem", "chaos"], "faults are made by", "netdyno impair --help"),
    (&["show", "open", "view", "result", "results"], "an earlier result is shown by", "netdyno report DIR"),
    (&["diff"], "results are compared by", "netdyno compare BEFORE AFTER"),
    (&["xdperf"], "its plugins are", "netdyno send --plugin simpleudp --lab --rate 1kpps --count 100"),
];

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
        "" => VERBS.iter().find(|(typed, ..)| is(typed)).map(|(_, says, line)| format!("{says}: {line}")),
        "search" => GOALS.iter().find(|(typed, _)| is(typed)).map(|(_, line)| format!("such as {line}")),
        _ => None,
    }
}

fn is_capture(word: &str) -> bool {
    [".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcap.zst"].iter().any(|end| word.ends_with(end))
}

/// What an option is called here, with the whole line as it would be. None for what no other tool calls so.
pub fn option(command: &Command, typed: &str, words: &[String], at: usize) -> Option<String> {
    let typed = typed.split('=').next().unwrap_or(typed);
    if let Some((_, example)) = FIELDS.iter().find(|(names, _)| names.contains(&typed)) {
        let takes_packets = command.get_positionals().any(|arg| arg.get_id() == "what");
        return takes_packets.then(|| format!("fields of a packet stand in it: such as '{example}'"));
    }
    if command.get_name() == "search" && typed.starts_with('-') {
        // The options are those of what is searched for, which comes first.
        let mut words = words.get(at..)?.to_vec();
        let named = words.iter().position(|word| command.find_subcommand(word).is_some());
        let named = named.map_or_else(|| "throughput".to_owned(), |at| words.remove(at));
        let goal = command.find_subcommand(&named)?;
        let line = line(&[], &["search", named.as_str()], &translated(goal, &words));
        return Some(format!("say first what is searched for: {line}"));
    }
    let ours = foreign(command, typed)?.1;
    let line = line(words.get(1..at)?, &[], &translated(command, words.get(at..)?));
    Some(format!("here it is `--{ours}`: {line}"))
}

/// An option of another tool, and ours that the verb has.
fn foreign(command: &Command, typed: &str) -> Option<(&'static Foreign, &'static str)> {
    let all = OPTIONS.iter().filter(|foreign| foreign.typed.contains(&typed));
    all.filter_map(|foreign| {
        let ours = foreign.ours.iter().find(|ours| has(command, &format!("--{ours}")))?;
        Some((foreign, *ours))
    })
    .next()
}

fn has(command: &Command, option: &str) -> bool {
    named(command, option).is_some()
}

fn named<'a>(command: &'a Command, option: &str) -> Option<&'a Arg> {
    let (long, short) = (option.strip_prefix("--"), option.strip_prefix('-'));
    command.get_arguments().find(|arg| match (long, short) {
        (Some(long), _) => {
            arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        (None, Some(short)) => arg.get_short().is_some_and(|own| short.starts_with(own)),
        _ => false,
    })
}

/// The words behind a verb with what other tools call otherwise by its name here.
fn translated(command: &Command, words: &[String]) -> Vec<String> {
    let mut line = Vec::with_capacity(words.len());
    let mut words = words.iter().cloned().peekable();
    while let Some(word) = words.next() {
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
        let own = named(command, name);
        let found = own.is_none().then(|| foreign(command, name)).flatten();
        let Some((foreign, ours)) = found else {
            line.push(word);
            // The value of one of ours is no option.
            if own.is_some_and(|own| own.get_action().takes_values()) && value.is_none() {
                line.extend(words.next_if(|next| !next.starts_with("--")));
            }
            continue;
        };
        line.push(format!("--{ours}"));
        if foreign.value != Value::None {
            let value = value.or_else(|| words.next_if(|next| !next.starts_with('-')));
            let bare = |value: &str| value.chars().all(|c| c.is_ascii_digit() || c == '.');
            line.extend(value.map(|value| match foreign.value {
                Value::Unit(unit) if bare(&value) => value + unit,
                _ => value,
            }));
        }
    }
    line
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
                "fields of a packet stand in it: such as 'ipv4(dst=",
            ),
            ("netdyno trial ipv4/udp --lab -p 80", "such as 'ipv4/udp(dport=53)'"),
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
        for (_, example) in FIELDS {
            assert!(traffic::expr::compile(example, &traffic::expr::Options::default()).is_ok(), "{example}");
        }
        // No word is ours: it would never be asked for.
        for word in VERBS.iter().flat_map(|(words, ..)| *words) {
            assert!(!crate::cli::help::is_verb(word), "{word}");
            assert!(told(&format!("netdyno {word}")).contains("netdyno "), "{word}");
        }
    }
}
