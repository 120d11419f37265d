//! Tables: which verb stands in which group of the overview, in which order headings are shown, and what to read on. Which option stands
//! under which heading is declared with the option.

/// The verbs as `netdyno --help` lists them.
pub const VERBS: &[(&str, &[(&str, &str)])] = &[
    (
        "Begin here",
        &[
            ("demo", "watch it work, in a lab of its own: no set-up, no hardware"),
            ("doctor", "what this machine and an interface can do, and what to change"),
            ("lab", "run a command between two hosts with a cable or a device"),
        ],
    ),
    (
        "Traffic",
        &[
            ("send", "send frames of a packet expression, a scenario or a plugin"),
            ("replay", "send captures: as captured, faster, at a rate, looped"),
            ("live", "play a capture's client against a real server"),
            ("plugin", "plugins that say traffic: list, describe, begin, test"),
        ],
    ),
    (
        "Captures",
        &[
            ("craft", "build frames into a capture file, or show them layer by layer"),
            ("edit", "edit a capture: addresses, tags, ports, lengths, checksums"),
            ("info", "what captures hold: rates, sizes, protocols, flows"),
            ("synth", "make a capture that looks like an Internet access link"),
        ],
    ),
    (
        "Devices under test",
        &[
            ("trial", "one load: sent, measured, passed or not"),
            ("search", "the highest rate without loss, latency, bursts (RFC 2544)"),
            ("measure", "count what arrives: frames, loss, order, latency"),
            ("reflect", "send frames back: far end of `send --round-trip` and STAMP"),
            ("bridge", "pass frames between two interfaces, edited on the way"),
            ("impair", "be a device with faults: delay, loss, reordering"),
            ("xdp", "run an XDP program over a capture: verdicts, ns a frame"),
        ],
    ),
    (
        "Hosts, servers and flows",
        &[
            ("endpoint", "TCP and UDP between two hosts: streams, transactions"),
            ("sessions", "TCP connections by the million, without the host's TCP"),
            ("clone", "copy live TCP sessions onto a test server"),
            ("probe", "meter flows and export NetFlow v5, v9 or IPFIX"),
            ("collect", "receive flow records, check what is missing, write them"),
            ("counters", "what the kernel counted, or what changed meanwhile"),
            ("drops", "which frames the kernel drops, where and why"),
            ("beforeafter", "subtract two listings of counters (netstat -s, ethtool -S)"),
        ],
    ),
    (
        "Jobs and results",
        &[
            ("run", "run the job in a file, or several side by side"),
            ("rerun", "run an earlier result's job again, and compare"),
            ("report", "show an earlier result again; as JSON, CSV, bare numbers"),
            ("compare", "what differs between results, and whether beyond the noise"),
            ("trend", "a folder of results over time: what changed, and since when"),
            ("agent", "carry out jobs for another program: lines of JSON over a pipe"),
            ("agents", "look at agents on other machines, reach those that dial out"),
            ("serve", "jobs over HTTP, a page to watch, Open Traffic Generator"),
        ],
    ),
    (
        "Command lines of other tools, as they are",
        &[
            ("tcpreplay", "replay captures"),
            ("tcpreplay-edit", "replay captures, edited by tcprewrite's options"),
            ("tcprewrite", "edit captures"),
            ("tcpprep", "say which side sent each packet of a capture"),
            ("tcpbridge", "bridge two interfaces"),
            ("tcpliveplay", "play a capture's client against a real server"),
            ("tcpcapinfo", "list the records of damaged captures"),
            ("iperf3", "TCP and UDP, as client or server, with any iperf3"),
            ("netperf", "against any netserver"),
            ("netserver", "for any netperf"),
            ("nprobe", "meter flows with nProbe's options"),
            ("softflowd", "meter flows with softflowd's options"),
            ("tcpcopy", "copy live TCP sessions"),
            ("intercept", "not needed: says so"),
            ("mirror", "not needed: names the command that copies without it"),
        ],
    ),
    (
        "For the shell",
        &[
            ("help", "help send; help docs lists documents, help docs/lab.md"),
            ("completions", "print a completion script for a shell"),
            ("man", "write the manual pages into a folder"),
        ],
    ),
];

/// The headings of options, in the order they are shown in; options of no heading come first.
pub const ORDER: [&str; 11] = [
    "Options", "Traffic", "Lab", "Search", "Rate", "Measure", "Limits", "Output", "Agents", "Edits", "Expert",
];

/// What to read on, of each verb: pages of docs, then other verbs.
const SEE: &[(&str, &str, &str)] = &[
    ("demo", "screen measuring", "lab send report"),
    ("doctor", "engines", "send"),
    ("lab", "lab recipes", "send trial impair"),
    ("send", "recipes expressions scenarios engines measuring", "craft replay trial doctor"),
    ("replay", "replay recipes from-tcpreplay measuring", "edit info synth send"),
    ("live", "live", "replay endpoint"),
    ("plugin", "plugins writing-plugins from-xdperf", "send craft"),
    ("craft", "expressions scenarios recipes", "send info"),
    ("edit", "editing from-tcpreplay", "replay craft info"),
    ("info", "replay", "edit synth"),
    ("synth", "synth", "info replay"),
    ("trial", "method measuring", "search lab send"),
    ("search", "method flows-at-scale endpoint", "trial compare"),
    ("measure", "measuring", "send reflect"),
    ("reflect", "reflecting", "send measure"),
    ("bridge", "bridging", "impair edit"),
    ("impair", "impair", "bridge lab"),
    ("endpoint", "endpoint from-iperf3 from-netperf", "counters search iperf3 netperf"),
    ("sessions", "sessions", "endpoint send reflect"),
    ("clone", "clone from-tcpcopy from-goreplay", "live"),
    ("probe", "flows from-nprobe from-softflowd", "collect search"),
    ("collect", "flows", "probe"),
    ("counters", "counters", "beforeafter endpoint"),
    ("drops", "why-lost", "counters send"),
    ("beforeafter", "counters", "counters"),
    ("xdp", "xdp", "lab compare drops"),
    ("xdp test", "xdp", "lab compare drops"),
    ("run", "jobs trend", "rerun report trend"),
    ("rerun", "jobs compare", "run compare"),
    ("report", "report", "compare rerun"),
    ("compare", "compare", "rerun report trend"),
    ("trend", "trend compare", "run compare report"),
    ("agent", "agent jobs", "agents run lab"),
    ("agents", "many-machines agent", "agent doctor"),
    ("serve", "http otg watching", "agent run"),
    ("tcprewrite", "from-tcpreplay", "edit"),
    ("tcpbridge", "from-tcpreplay bridging", "bridge"),
    ("iperf3", "from-iperf3", "endpoint"),
    ("nprobe", "from-nprobe", "probe"),
    ("softflowd", "from-softflowd", "probe"),
    ("tcpcopy", "from-tcpcopy", "clone"),
    ("intercept", "from-tcpcopy", "clone"),
    ("mirror", "from-tcpcopy", "clone"),
    ("man", "installing", "completions"),
    ("completions", "installing", "man"),
];

/// Variables that change what the program does.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "not empty: no colours, neither in help nor on the screen of --tui"),
    ("TERM", "dumb or not set: no colours, no progress line that is written over"),
    ("COLUMNS", "the width that text is folded to where no terminal has one"),
    (
        "XDG_CACHE_HOME",
        "where compiled plugins and the capture of demo --keep are kept, in a folder netdyno; else ~/.cache",
    ),
    ("XDG_DATA_HOME", "where plugins are looked for by their names, in netdyno/plugins; else ~/.local/share"),
    (
        "NETDYNO_COMPAT",
        "4.5.5: the drop-ins of the tcpreplay suite make that version's mistakes, too (docs/compat.md)",
    ),
    ("IPERF3_PASSWORD", "the password of netdyno iperf3 --username"),
];

/// Whether a verb is no other tool's.
pub fn is_ours(path: &str) -> bool {
    let verb = path.split(' ').next().unwrap_or_default();
    let theirs = VERBS.iter().find(|(heading, _)| heading.starts_with("Command lines"));
    !theirs.is_some_and(|(_, verbs)| verbs.iter().any(|(name, _)| *name == verb))
}

/// Where a heading stands among the others.
pub fn rank(heading: Option<&str>) -> usize {
    heading.map_or(0, |heading| ORDER.iter().position(|each| *each == heading).unwrap_or(0))
}

/// Whether `-h` leaves out what stands under a heading.
pub fn is_rare(verb: &str, heading: Option<&str>) -> bool {
    heading == Some("Expert") || heading == Some("Edits") && verb != "edit"
}

fn seen(path: &str) -> (&'static str, &'static str) {
    let verb = path.split(' ').next().unwrap_or_default();
    SEE.iter().find(|(name, _, _)| *name == verb).map_or(("", ""), |(_, pages, verbs)| (pages, verbs))
}

/// The pages to read on.
pub fn docs(path: &str) -> Vec<&'static str> {
    seen(path).0.split_whitespace().collect()
}

/// The verbs to read on.
pub fn related(path: &str) -> Vec<&'static str> {
    seen(path).1.split_whitespace().collect()
}
