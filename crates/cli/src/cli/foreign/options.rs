//! Options of other tools, and what they are called here. Whose words they are depends on the verb: `-t` is a time to iperf3 and
//! top speed to tcpreplay.

/// What becomes of the value behind an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// It stays.
    Same,
    /// It stays if it is a number; without one the option is another.
    Number,
    /// A unit goes behind a bare number.
    Unit(&'static str),
    /// Something goes before a bare number.
    Before(&'static str),
    /// There is none.
    None,
    /// There is none there, and this one here.
    Is(&'static str),
    /// A host, of which no URL is left.
    Host,
    /// A version of NetFlow: 10 is IPFIX.
    NetFlow,
}

/// Options of other tools, and the first of ours that the verb has.
pub(super) struct Foreign {
    /// The verbs (and those below them) whose users come from such a tool; none: all.
    pub at: &'static [&'static str],
    pub typed: &'static [&'static str],
    pub ours: &'static [&'static str],
    pub value: Value,
}

const fn of(
    at: &'static [&'static str],
    typed: &'static [&'static str],
    ours: &'static [&'static str],
    value: Value,
) -> Foreign {
    Foreign { at, typed, ours, value }
}

const ANY: &[&str] = &[];
const ENDPOINT: &[&str] = &["endpoint", "search transactions", "search socket-buffer"];
const SERVE: &[&str] = &["endpoint serve"];
const REPLAY: &[&str] = &["replay"];
const EDITING: &[&str] = &["edit", "replay", "bridge"];

/// The first that fits is taken.
pub(super) const OPTIONS: &[Foreign] = &[
    // iperf3's and netperf's.
    of(SERVE, &["-p", "--port"], &["listen"], Value::Before("[::]:")),
    of(SERVE, &["-B", "--bind", "-L"], &["listen"], Value::Same),
    of(ENDPOINT, &["-n", "--bytes"], &["bytes"], Value::Same),
    of(ENDPOINT, &["-O", "--omit"], &["warm-up"], Value::Unit("s")),
    of(ENDPOINT, &["-B", "--bind", "-L"], &["from"], Value::Same),
    of(ENDPOINT, &["--bind-dev", "-I", "--interface"], &["device"], Value::Same),
    of(ENDPOINT, &["-A", "-T", "--affinity"], &["cores"], Value::Same),
    of(ENDPOINT, &["-C", "-K", "--linux-congestion"], &["congestion"], Value::Same),
    of(ENDPOINT, &["-Z", "--zerocopy"], &["method"], Value::Is("sendfile")),
    of(ENDPOINT, &["-N", "-D", "--no-delay"], &["nodelay"], Value::None),
    of(ENDPOINT, &["-m"], &["mptcp"], Value::None),
    of(ENDPOINT, &["-4", "--version4", "--ipv4"], &["family"], Value::Is("4")),
    of(ENDPOINT, &["-6", "--version6", "--ipv6"], &["family"], Value::Is("6")),
    of(ENDPOINT, &["-l", "--len", "--length"], &["size"], Value::Same),
    of(ANY, &["-P", "--num-streams", "--parallel"], &["parallel"], Value::Same),
    // tcpreplay's.
    of(REPLAY, &["-p"], &["rate"], Value::Unit("pps")),
    of(REPLAY, &["-t"], &["topspeed"], Value::None),
    of(REPLAY, &["-c", "--cachefile"], &["sides"], Value::Same),
    of(REPLAY, &["-l"], &["loop"], Value::Same),
    // tcprewrite's.
    of(EDITING, &["--enet-smac"], &["src-mac"], Value::Same),
    of(EDITING, &["--enet-dmac"], &["dst-mac"], Value::Same),
    of(EDITING, &["--dst-ip", "--dip", "--dst"], &["map-dst-ip"], Value::Before("0.0.0.0/0=")),
    of(EDITING, &["--src-ip", "--sip", "--src"], &["map-src-ip"], Value::Before("0.0.0.0/0=")),
    of(EDITING, &["--enet-subsmac"], &["replace-mac"], Value::Same),
    of(EDITING, &["--enet-vlan-tag"], &["vlan-add"], Value::Same),
    of(EDITING, &["-C", "--fixcsum"], &["fix-checksums"], Value::None),
    of(EDITING, &["--fixhdrlen"], &["fix-header-length"], Value::None),
    of(EDITING, &["--mtu-trunc"], &["cut-to-mtu"], Value::Same),
    of(EDITING, &["-E", "--efcs"], &["strip-fcs"], Value::None),
    of(EDITING, &["-s", "--seed"], &["scramble-ip"], Value::Same),
    of(EDITING, &["-b", "--skipbroadcast"], &["keep-group-ips"], Value::None),
    of(EDITING, &["--tclass"], &["traffic-class"], Value::Same),
    of(EDITING, &["--flowlabel"], &["flow-label"], Value::Same),
    of(EDITING, &["--tcp-sequence"], &["tcp-shift"], Value::Same),
    of(&["edit"], &["-o", "--outfile", "--output", "--out"], &["write"], Value::Same),
    of(&["edit"], &["-c", "--cachefile"], &["sides"], Value::Same),
    // tcpdump's and dumpcap's.
    of(&["measure"], &["-s", "--snaplen", "--snapshot-length"], &["capture-snap"], Value::Same),
    of(&["measure"], &["-G"], &["capture-rotate"], Value::Unit("s")),
    of(&["measure"], &["-C"], &["capture-rotate-size"], Value::Unit("M")),
    of(&["measure"], &["-W"], &["capture-files"], Value::Same),
    // tcpcopy's and GoReplay's.
    of(&["clone"], &["-n"], &["copies"], Value::Same),
    of(&["clone"], &["-r"], &["sample"], Value::Unit("%")),
    of(&["clone"], &["-a"], &["speed"], Value::Same),
    of(&["clone"], &["--input-raw"], &["from"], Value::Before("eth0:")),
    of(&["clone"], &["--output-http", "--output-tcp"], &["to"], Value::Host),
    // nProbe's and softflowd's.
    of(&["probe"], &["-n", "--collector"], &["export"], Value::Same),
    of(&["probe"], &["-V", "--flow-version"], &["format"], Value::NetFlow),
    of(&["probe"], &["-t", "--lifetime-timeout"], &["active-timeout"], Value::Unit("s")),
    of(&["probe"], &["-d"], &["idle-timeout"], Value::Unit("s")),
    of(&["probe"], &["-S", "-s", "--sample-rate"], &["sample"], Value::Same),
    of(&["probe"], &["-m"], &["max-flows"], Value::Same),
    // nfcapd's and goflow2's.
    of(&["collect"], &["-p", "--port"], &["listen"], Value::Before("[::]:")),
    of(&["collect"], &["-t"], &["rotate"], Value::Unit("s")),
    of(&["collect"], &["-l"], &["write"], Value::Same),
    // Web servers'.
    of(&["serve"], &["-p", "--port"], &["listen"], Value::Before("127.0.0.1:")),
    of(&["serve"], &["--bind", "-b", "-B", "-l", "-L", "--addr", "--address"], &["listen"], Value::Same),
    of(&["serve"], &["--tls-cert", "--certificate", "--ssl-cert"], &["cert"], Value::Same),
    of(&["serve"], &["--tls-key", "--private-key", "--ssl-key"], &["key"], Value::Same),
    // Those of wrk, ab, hey and others that load servers of HTTP.
    of(&["sessions"], &["-c", "--concurrency", "--conns", "--clones"], &["in-flight"], Value::Number),
    of(&["sessions"], &["-n", "--number", "--num-conns"], &["count"], Value::Number),
    of(&["sessions"], &["--cps", "--conn-rate", "--rps", "-q", "-R"], &["rate"], Value::Unit("cps")),
    of(&["sessions"], &["-H", "--host", "--target", "--dst", "--server-address"], &["to"], Value::Host),
    of(&["sessions"], &["--source", "--src", "--src-ip", "--sources", "--pool"], &["clients"], Value::Same),
    of(&["sessions"], &["--url", "--uri"], &["path"], Value::Same),
    // Those of what keeps results over time.
    of(&["trend"], &["--get", "--metric", "-m", "--key", "-f"], &["figure"], Value::Same),
    of(&["trend"], &["--threshold", "--tolerance", "--min-change"], &["least"], Value::Unit("%")),
    of(&["trend"], &["--html", "-o", "--output"], &["page"], Value::Same),
    // TRex's and MLRsearch's.
    of(&["search"], &["--frame-sizes", "--frame-size", "--packet-sizes"], &["size"], Value::Same),
    // Of all generators.
    of(
        ANY,
        &["-i", "--intf1", "--interface", "--iface", "--intf", "--dev", "--device", "--nic"],
        &["on"],
        Value::Same,
    ),
    of(ANY, &["-I", "--intf2"], &["on2"], Value::Same),
    of(ANY, &["--pps", "--packets-per-second"], &["rate"], Value::Unit("pps")),
    of(ANY, &["--mbps"], &["rate"], Value::Unit("mbps")),
    of(REPLAY, &["-M"], &["rate"], Value::Unit("mbps")),
    of(ANY, &["-b", "--bandwidth", "--bw", "--bitrate"], &["rate", "target-rate"], Value::Same),
    of(ANY, &["-x", "--multiplier"], &["speed"], Value::Same),
    of(&["send"], &["-m", "--mult"], &["rate"], Value::Same),
    of(ANY, &["-t", "-d", "--time", "--seconds"], &["duration", "trial-duration"], Value::Unit("s")),
    of(
        ANY,
        &["-n", "-c", "-L", "--number", "--limit", "--packets", "--num", "--pkts", "--frames"],
        &["count"],
        Value::Number,
    ),
    of(ANY, &["--loops"], &["loop"], Value::Same),
    of(ANY, &["-l"], &["loop", "size"], Value::Number),
    of(
        ANY,
        &["-s", "--len", "--length", "--packet-size", "--pkt-size", "--frame-size"],
        &["size"],
        Value::Number,
    ),
    of(ANY, &["-P", "-j", "--threads", "--parallel", "--workers", "--cpus"], &["cores"], Value::Same),
    of(ANY, &["-K", "--preload-pcap"], &["preload"], Value::None),
    of(ANY, &["-R", "--top-speed", "--flood"], &["topspeed"], Value::None),
    of(ANY, &["-J"], &["json"], Value::None),
    of(ANY, &["-w", "--pcap"], &["write", "capture"], Value::Same),
    of(ANY, &["-o", "--output", "--out"], &["write", "report"], Value::Same),
];
