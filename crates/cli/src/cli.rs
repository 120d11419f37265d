//! The command line, declared once: parsing, `--help`, man pages and completions come from here.
//!
//! Parsing only collects; what the words mean together is decided by the commands.

pub mod bridge;
pub mod clone;
pub mod collect;
pub mod compare;
pub mod counters;
pub mod declared;
pub mod edit;
pub mod endpoint;
mod foreign;
pub mod help;
pub mod impair;
pub mod job;
pub mod lab;
mod mistyped;
pub mod plugin;
pub mod search;
pub mod search_between;

use self::declared::{Asked, Declared};
use ::job::sides::Sides;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use spec::{Clock, Cores, Engine, How, Oversize, Side, Stamps, Timestamps, Word, Written};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use traffic::Rate;
use traffic::expr::Size;
use traffic::rate::{parse_count, parse_duration};
use traffic::schedule::Speed;

/// Takes one of a choice's words.
fn word<T: Word + std::marker::Send + Sync>() -> impl TypedValueParser<Value = T> {
    of_words(T::ALL.iter().map(|(_, name, _)| PossibleValue::new(*name)))
}

/// The same; help says what each means.
fn explained_word<T: Word + std::marker::Send + Sync>() -> impl TypedValueParser<Value = T> {
    let meaning = |about: &'static str| about.trim().trim_end_matches('.');
    of_words(T::ALL.iter().map(move |(_, name, about)| PossibleValue::new(*name).help(meaning(about))))
}

fn of_words<T: Word + std::marker::Send + Sync>(
    words: impl Iterator<Item = PossibleValue>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words).try_map(|word| T::named(&word).ok_or("there is no such word"))
}

/// Takes a figure by its key, and behind a colon the begin of its name. The shell completes the keys; help, which is shown for
/// some forty verbs, does not list them.
#[derive(Debug, Clone, Copy)]
struct FigureKey;

impl TypedValueParser for FigureKey {
    type Value = report::get::Wanted;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let read = |text: &str| text.parse::<report::get::Wanted>();
        TypedValueParser::parse_ref(&read, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(report::get::keys().map(PossibleValue::new)))
    }
}

/// Takes what `T` can be read from, and keeps the words.
fn readable<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|_| text.to_owned()).map_err(|bad| bad.to_string())
}

/// A dynamometer for networks: loads a network, a device or a server with traffic and measures exactly what comes out.
#[derive(Debug, Parser)]
#[command(name = "netdyno", version, propagate_version = true, disable_help_subcommand = true)]
#[command(long_version = crate::features::long_version())]
#[command(
    after_help = "Begin with `netdyno demo`. Everyday tasks, a line each: netdyno help docs/recipes.md\n\
    Exit status: 0 done as asked, 1 done but short of what was asked, 2 not done."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch it work: replay an Internet access link between two hosts in a lab, and measure it.
    Demo(Demo),
    #[command(flatten)]
    Job(job::Typed),
    /// Build frames from a packet expression or a scenario into a capture file, or show them layer by layer.
    Craft(Craft),
    /// Plugins: traffic said by a program. List them, show their options, begin, check and test one (docs/plugins.md).
    Plugin(plugin::Plugin),
    /// tcpreplay's command lines, as they are: `netdyno tcpreplay --help` lists the options (docs/from-tcpreplay.md).
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tcpreplay {
        /// Options and captures, as tcpreplay takes them.
        #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// tcpreplay-edit's command lines: tcpreplay's options, and those of tcprewrite for edits of each packet sent.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    TcpreplayEdit {
        /// Options and captures, as tcpreplay-edit takes them.
        #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// tcpprep's command lines, as they are: says which side sent each packet of a capture.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tcpprep {
        /// Options, as tcpprep takes them; --help lists them.
        #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// tcpcapinfo's command lines: lists the records of perhaps broken pcap files.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tcpcapinfo {
        /// Files.
        #[arg(value_name = "FILE", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Edit a capture: addresses, VLAN tags, ports, lengths, checksums.
    Edit(Box<edit::Edit>),
    /// Edit a capture with tcprewrite's options.
    Tcprewrite(Box<edit::Tcprewrite>),
    /// tcpliveplay's command lines, as they are: `netdyno tcpliveplay --help` lists the options.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tcpliveplay {
        /// Options, interface, capture, address, Ethernet address and port, as tcpliveplay takes them.
        #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Bridge two interfaces with tcpbridge's options.
    Tcpbridge(Box<bridge::Tcpbridge>),
    /// Meter flows with nProbe's everyday options (docs/from-nprobe.md).
    #[command(disable_version_flag = true)]
    Nprobe(Box<crate::compat::nprobe::Nprobe>),
    /// Meter flows with softflowd's everyday options (docs/from-softflowd.md).
    #[command(disable_version_flag = true)]
    Softflowd(Box<crate::compat::softflowd::Softflowd>),
    /// Copy live TCP sessions with tcpcopy's options (docs/from-tcpcopy.md).
    #[command(disable_version_flag = true)]
    Tcpcopy(Box<crate::compat::tcpcopy::Tcpcopy>),
    /// intercept's options: nothing is needed of it; says so and ends (docs/from-tcpcopy.md).
    #[command(disable_version_flag = true)]
    Intercept(Box<crate::compat::tcpcopy::Intercept>),
    /// mirror's options: refused, with the command that copies without it (docs/from-tcpcopy.md).
    #[command(disable_version_flag = true)]
    Mirror(Box<crate::compat::tcpcopy::Mirror>),
    /// Measure TCP and UDP with iperf3's options, as its client or server (docs/from-iperf3.md).
    #[command(disable_version_flag = true, infer_long_args = true)]
    Iperf3(Box<crate::compat::iperf3::Iperf3>),
    /// netperf's command lines, as they are, against any netserver: `netdyno netperf -h` lists the options (docs/from-netperf.md).
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Netperf {
        /// Options, as netperf takes them.
        #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Serve any netperf's tests, as netserver does: `netdyno netserver -h` lists the options (docs/from-netperf.md).
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Netserver {
        /// Options, as netserver takes them.
        #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Say what captures hold: frames, rates, sizes, protocols, flows, addresses.
    Info(Info),
    /// Make a capture that looks like an Internet access link.
    Synth(Synth),
    /// Find out what a device can do: throughput, latency, loss, bursts, recovery, reset (RFC 2544, 8219, 9004, MLRsearch).
    Search(Box<search::Search>),
    /// Run the job in a file, or several side by side (docs/jobs.md). --print-job of another command writes such files.
    Run(Run),
    /// Run the job of an earlier result again, and compare.
    Rerun(Rerun),
    /// Run a command between two hosts joined by a cable or by a device to test, all gone when it ends.
    Lab(lab::Lab),
    /// Say what this machine and an interface can do, and what to change for higher rates.
    Doctor(Doctor),
    /// Show the result of an earlier run again.
    Report(ReportCommand),
    /// Compare results: what differs, and whether by more than the noise.
    Compare(compare::Compare),
    /// Show the kernel's protocol and interface counters, or what changed between two looks at them (docs/counters.md).
    Counters(counters::Counters),
    /// Subtract two listings of counters by name: netstat -s, ethtool -S, nstat, /proc/net files, JSON.
    Beforeafter(counters::Beforeafter),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    Man {
        /// The folder; made if it is not there.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

/// How fast, for how long.
#[derive(Debug, Clone, Args)]
pub struct Pace {
    /// Frames per second (1.6mpps), bits per second of frames without FCS (7gbps) or on the wire (7gbps-l1),
    /// percent of the link's speed (40%), new flows per second (100kfps), or `top`.
    #[arg(long, value_name = "RATE", group = "pace")]
    pub rate: Option<Written<Rate>>,
    /// As fast as it goes.
    #[arg(long, group = "pace")]
    pub topspeed: bool,
    /// Send for this long: 5s, 200ms, 1m30s.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// Send this many frames: 1000, 10k, 2.5M.
    #[arg(long, value_name = "FRAMES")]
    pub count: Option<Written<u64>>,
    /// After a stall, catch up at no more than this many times the rate asked for, over any millisecond; `never`: not at all, as
    /// trials. Default: what is overdue leaves in bursts of at most 32 frames, with at most half of what the link carries over any
    /// millisecond (500 Mbit/s where its speed is not known), or twice the rate, whichever is more.
    #[arg(long, value_name = "TIMES", value_parser = catch_up)]
    pub catch_up: Option<f64>,
    /// Never sleep while waiting for a frame's time: the most exact, and costs a whole core at any rate.
    #[arg(long)]
    pub spin: bool,
    /// Send like any other program. Default: frames that have times are sent before all ordinary tasks of this machine (SCHED_FIFO;
    /// where that is not permitted, by the nicest value that is) as soon as others hold up the sender.
    #[arg(long)]
    pub no_real_time: bool,
}

/// A number, or the word for the one by which nothing is caught up.
fn catch_up(text: &str) -> Result<f64, std::num::ParseFloatError> {
    if text == "never" { Ok(1.0) } else { text.parse() }
}

/// Through what.
#[derive(Debug, Clone, Args)]
pub struct Through {
    /// How frames leave: xdp (made in the kernel, as XDP live frames), afxdp (AF_XDP sockets, one of the interface's
    /// queues for each core; without copying where the driver can), packet (a packet socket with sendmmsg), packet-ring
    /// (PACKET_TX_RING, to compare), null (nowhere, to see what making them costs), or auto: the fastest that the
    /// interface, the kernel and the frames allow.
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = word::<Engine>())]
    pub engine: Engine,
    /// With --engine auto: take what is fastest by this file, which `netdyno doctor IFACE --calibrate --save FILE` wrote
    /// on this machine and kernel for this driver.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub calibration: Option<PathBuf>,
    /// Send with several cores, a worker on each, which share the frames out among them: how many (4), or which CPUs
    /// (0-3,6). Of a number, the last ones that this process may run on, spread over the interface's queues. Default: 1.
    #[arg(long, value_name = "N|LIST")]
    pub cores: Option<Written<Cores>>,
    /// Send with this CPU alone.
    #[arg(long, value_name = "CPU", conflicts_with = "cores")]
    pub core: Option<usize>,
    /// Have frames stamped as they leave, one at a time and up to a thousand a second, and tell how late they really left: by
    /// the hardware (it must be switched on, and its clock readable), or by the driver, which hands them to it. With
    /// --engine packet, which is taken then.
    #[arg(long, value_name = "WHO", value_parser = word::<Stamps>())]
    pub tx_timestamps: Option<Stamps>,
    /// Yes, use this interface, for sending or for --measure, although it carries the default route or your login, or (for
    /// --measure without --pass) connections of this host.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
}

/// What to look at, and how.
#[derive(Debug, Clone, Args)]
pub struct Metering {
    /// The frames come back: a reflector (`netdyno reflect`) is at the other end. Measure them where they are sent,
    /// so that loss and latency are of the way there and back. Signs the frames.
    #[arg(long, conflicts_with_all = ["measure", "lab"])]
    pub round_trip: bool,
    /// So many of the streams, from the first on, get percentiles of their latency; 32 KB of memory each. The others have
    /// minimum, mean and maximum.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub stream_histograms: u32,
    /// The clock of the time stamps in frames: monotonic, this host's own; or tai, which PTP or NTP keep alike on several
    /// hosts, for delays between them. Sender and meter must use the same.
    #[arg(long, value_name = "CLOCK", default_value = "monotonic", value_parser = word::<Clock>())]
    pub clock: Clock,
    /// Check the payload of each frame that arrives against what was sent, as far as it does not vary: frames that
    /// differ are counted as corrupted. Headers may change on the way. Costs the receiver some time for each byte.
    #[arg(long)]
    pub check_content: bool,
    /// How to measure: xdp (native), xdp-generic, packet (a packet socket), or the best that is possible.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = word::<How>())]
    pub meter: How,
    /// Who times arrivals: the hardware (it must stamp all frames; by native XDP where the driver gives its stamps to XDP
    /// programs, else by a packet socket), software, or auto: the hardware where the meter that is taken anyway sees its stamps.
    #[arg(long, value_name = "WHO", default_value = "auto", value_parser = word::<Timestamps>())]
    pub timestamps: Timestamps,
    /// Let frames go on to the host of --measure after they were counted: for a service there that is to get them, or another
    /// program that looks on. Its stack then works for each frame, on the CPU that measures, and may answer. Default: XDP drops
    /// them (a packet socket cannot).
    #[arg(long)]
    pub pass: bool,
    #[command(flatten)]
    pub capture: Asked<spec::Capture>,
}

/// A table to print as CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Csv {
    /// The run over time; of a search or trial its trials.
    Series,
    /// The run over time.
    Intervals,
    /// The trials of a search.
    Trials,
    /// The results: key, value, unit, name, meaning.
    Figures,
}

/// Where results go.
#[derive(Debug, Clone, Default, Args)]
pub struct Output {
    /// Print the result as one JSON object (docs/report.schema.json) on standard output.
    #[arg(long)]
    pub json: bool,
    /// Print CSV on standard output: the intervals of the run, of a search or trial its trials; or what is named,
    /// --csv=figures, the results with their units and meanings.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "series", conflicts_with = "json")]
    pub csv: Option<Csv>,
    /// Print nothing but the value of this figure, such as latency_p99, without a unit: ns, frames or bits a second, a share of 1
    /// (--csv=figures lists all that a result has). May be given more than once, a line each. A search has a value for each
    /// frame size, and prints them all; throughput:64 is that whose name begins with 64. Exit status 2 if the result does not
    /// have it.
    #[arg(long, value_name = "FIGURE", value_parser = FigureKey, hide_possible_values = true, conflicts_with_all = ["json", "csv"])]
    pub get: Vec<report::get::Wanted>,
    /// Print how the run stands as a line of JSON each second (docs/snapshot.schema.json), and in the end the result as one.
    #[arg(long, conflicts_with_all = ["json", "csv", "get"])]
    pub json_lines: bool,
    /// Write result.json, figures.csv, intervals.csv and report.html into this folder, of a search also trials.csv.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub report: Option<PathBuf>,
    /// No progress line.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print all that is known of a run: why this engine, how exactly frames kept their times, what the interfaces counted,
    /// every stream and core. Without it that is left out as far as it is as expected.
    #[arg(long, short)]
    pub verbose: bool,
    /// Do nothing but print what would be done, as a job that `netdyno run` takes (docs/jobs.md).
    #[arg(long, conflicts_with_all = ["json", "csv", "get", "json_lines"])]
    pub print_job: bool,
    #[command(flatten)]
    pub gauges: Gauges,
}

/// What shows a run while it lasts (docs/screen.md).
#[derive(Debug, Clone, Default, Args)]
pub struct Gauges {
    /// Show the run full-screen while it lasts: rates, loss, latency, streams or trials, queues, cores. Keys end it and,
    /// where frames are sent at a rate, pause it and change the rate; ? lists them.
    #[arg(long)]
    pub tui: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics while the run lasts (127.0.0.1:9100, [::]:9100).
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Another name that metrics are asked for by, such as this host's in DNS; may be given more than once.
    #[arg(long, value_name = "NAME", requires = "metrics")]
    pub metrics_name: Vec<String>,
}

impl Output {
    /// What shows it while it lasts.
    pub fn gauges_wanted(&self) -> ::gauges::Wanted {
        let Gauges { tui, metrics, metrics_name } = self.gauges.clone();
        ::gauges::Wanted { screen: tui, metrics, names: metrics_name, lines: self.json_lines }
    }
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Replay this capture instead of a synthesised one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub capture: Option<PathBuf>,
    /// Keep the synthesised capture (339 MB) in ~/.cache/netdyno, or below $XDG_CACHE_HOME, so that the next demo need not make
    /// it. Otherwise it is gone when the demo ends, however it ends.
    #[arg(long, conflicts_with = "capture")]
    pub keep: bool,
    /// Send at this rate, as in `netdyno replay`; if it is not reached, the demo falls short (exit status 1). Without it a second of
    /// sending finds out what this machine carries, and half of that is sent, 1gbps at most: then the demo has done what was asked
    /// when every frame is accounted for.
    #[arg(long)]
    pub rate: Option<Rate>,
    /// Send for this long.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "15s")]
    pub duration: Duration,
    /// Print the result as one JSON object on standard output.
    #[arg(long)]
    pub json: bool,
    /// Write result.json, figures.csv, intervals.csv and report.html into this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "netdyno-demo")]
    pub report: PathBuf,
    /// No progress line.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print all that is known of the run, and not only what was measured and what is worse than expected.
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub gauges: Gauges,
}

#[derive(Debug, Args)]
pub struct Send {
    /// What to send: a packet expression such as 'ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535)' (see
    /// docs/expressions.md), or a scenario file of several streams, FILE.yaml or - for standard input (see
    /// docs/scenarios.md).
    #[arg(value_name = "WHAT", value_hint = ValueHint::FilePath, required_unless_present = "plugin")]
    pub what: Option<String>,
    #[command(flatten)]
    pub by_plugin: plugin::ByPlugin,
    /// Send on this interface (IFACE, or IFACE@NAMESPACE). Given several times, each of these ports sends WHAT, at the rate and
    /// as many frames as are asked for, from one start.
    #[arg(long = "on", value_name = "IFACE", value_delimiter = ',', conflicts_with = "lab")]
    pub interface: Vec<String>,
    /// Measure on this interface what arrives (IFACE, or IFACE@NAMESPACE); of several ports on one for each. What arrives
    /// there is dropped after it was counted, unless --pass says otherwise.
    #[arg(long, value_name = "IFACE", value_delimiter = ',', conflicts_with = "lab")]
    pub measure: Vec<String>,
    #[command(flatten)]
    pub lab: lab::OwnLab,
    /// Fully meshed traffic (RFC 2889): each --on sends to every other, in turns, and measures what is sent to it. Frames get the
    /// ports' Ethernet addresses, unless WHAT gives some; {src_ip} and {dst_ip} in it are addresses of 198.18.0.0/15, in a
    /// network of its own for each port.
    #[arg(long, requires = "interface", conflicts_with_all = ["lab", "measure", "round_trip", "resolve"])]
    pub mesh: bool,
    #[command(flatten)]
    pub shape: Shape,
    #[command(flatten)]
    pub pace: Pace,
    #[command(flatten)]
    pub through: Through,
    #[command(flatten)]
    pub metering: Metering,
    /// End each frame with an 18-byte signature (stream, sequence, time), for loss, order and latency. On by itself
    /// with --measure, where there is room.
    #[arg(long)]
    pub sign: bool,
    /// Sign no frame although it is measured: the receiver then counts, and spends no time on order and latency.
    #[arg(long, conflicts_with_all = ["sign", "round_trip"])]
    pub no_sign: bool,
    /// Find the Ethernet address of the next hop, by the first frame's destination address: from the kernel's tables,
    /// or by ARP and neighbour solicitation. An address given in ether(dst=...) stays.
    #[arg(long, requires = "interface", conflicts_with = "lab")]
    pub resolve: bool,
    #[command(flatten)]
    pub output: Output,
}

/// What an expression does not say.
#[derive(Debug, Clone, Args)]
pub struct Shape {
    /// Frame size, the FCS counted: 64, a list 64,512,1518, 64..1518, random(64..1518), imix, 64:7,1518:1
    /// (size:weight) or an RFC 6985 genome such as aaafg. Default: as long as the layers are.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Written<Size>>,
    /// Key of all random values: the same seed gives the same frames. Default: drawn, and named in the result.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub struct Craft {
    /// What to build: a packet expression (docs/expressions.md) or a scenario file (docs/scenarios.md).
    #[arg(value_name = "WHAT", value_hint = ValueHint::FilePath, required_unless_present = "plugin")]
    pub what: Option<String>,
    #[command(flatten)]
    pub by_plugin: plugin::ByPlugin,
    /// Write a capture file: pcap, or pcapng if it is named so; .gz and .zst compress; - is standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Option<PathBuf>,
    /// Show the frames layer by layer, with a hexadecimal dump.
    #[arg(long)]
    pub show: bool,
    /// How many frames. Default: one of an expression, all of a scenario that ends.
    #[arg(long, value_name = "FRAMES", value_parser = parse_count)]
    pub count: Option<u64>,
    #[command(flatten)]
    pub shape: Shape,
    /// Time stamps at this rate, from 0. Default: a microsecond apart; the times that a scenario states.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// End each frame with an 18-byte signature.
    #[arg(long)]
    pub sign: bool,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// Captures, sent one after the other: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Send on this interface (IFACE, or IFACE@NAMESPACE).
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "lab")]
    pub interface: Option<String>,
    /// Measure on this interface what arrives (IFACE, or IFACE@NAMESPACE). What arrives there is dropped after it
    /// was counted, unless --pass says otherwise.
    #[arg(long, value_name = "IFACE", conflicts_with = "lab")]
    pub measure: Option<String>,
    #[command(flatten)]
    pub lab: lab::OwnLab,
    #[command(flatten)]
    pub two: TwoSides,
    /// Write the frames, with the times they would leave at, into a capture file instead.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["interface", "on2", "measure", "lab", "round_trip", "core", "cores", "tui", "metrics"])]
    pub write: Option<PathBuf>,
    /// Faster or slower than captured: 2x, 0.5x. Default: as captured, 1x.
    #[arg(long, value_name = "SPEED", group = "pace")]
    pub speed: Option<Written<Speed>>,
    #[command(flatten)]
    pub pace: Pace,
    /// Send the captures this many times; 0 is without end. Default: once, or as often as --duration or --count ask.
    #[arg(long = "loop", value_name = "TIMES")]
    pub loops: Option<u64>,
    /// Read the captures into memory first. Small ones (up to 32 MB) always are.
    #[arg(long, conflicts_with = "stream")]
    pub preload: bool,
    /// Read the captures while sending, in bounded memory, even if they are small.
    #[arg(long)]
    pub stream: bool,
    /// New flows with each loop: in pass k (from 0) of each IP packet the lesser address is lowered by k and the
    /// greater raised by k (modulo 2^32 - 1, of IPv6 the low 32 bits), which keeps every checksum right and both
    /// directions of a conversation together. What is not IP is sent as it is.
    #[arg(long)]
    pub unique_ip: bool,
    /// Overwrite the last 18 bytes of TCP and UDP payload, where there are so many, with a signature (stream,
    /// sequence, time) and correct the checksum: --measure then tells loss, order and latency of those frames.
    #[arg(long)]
    pub sign: bool,
    /// Frames longer than the interface's MTU allows: refuse the capture, or skip (and count) them.
    #[arg(long, value_name = "WHAT", default_value = "refuse", value_parser = word::<Oversize>())]
    pub oversize: Oversize,
    /// Of a damaged capture send what is sound before the damage.
    #[arg(long)]
    pub skip_corrupt: bool,
    #[command(flatten)]
    pub through: Through,
    #[command(flatten)]
    pub metering: Metering,
    #[command(flatten)]
    pub output: Output,
    /// Do not send this share of the frames: 1%, 0.5%. Each is lost with the same probability; the captures are then
    /// read while sending.
    #[arg(long, value_name = "PERCENT")]
    pub loss: Option<Written<spec::Share>>,
    /// Which frames get lost: the same seed loses the same ones.
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "loss")]
    pub loss_seed: u64,
    #[command(flatten)]
    pub edits: Asked<spec::Edits>,
}

/// A second interface, for the other side of a capture.
#[derive(Debug, Clone, Default, Args)]
pub struct TwoSides {
    /// Send the frames of the second side on this interface (IFACE, or IFACE@NAMESPACE), those of the first on --on, in
    /// the order and at the times of the capture across both. Which side sent each frame --sides says; default: auto.
    #[arg(long, value_name = "IFACE", conflicts_with = "lab")]
    pub on2: Option<String>,
    /// Which side sent each frame: the first's leave by --on, the second's by --on2, and edits tell them apart. By what hosts do: auto (clients first; what
    /// gives nothing away is a client), server, bridge, router, first (who is seen first is a client); by their addresses:
    /// cidr=10.0.0.0/8,... or mac=02:00:00:00:00:01,... are first; by port; by a cache file of tcpprep (its name); or by
    /// file: `files` takes captures in pairs, one of each side, and merges them by their times. What a cache file leaves
    /// out is not sent.
    #[arg(long, value_name = "HOW", value_hint = ValueHint::FilePath, value_parser = readable::<Sides>)]
    pub sides: Option<String>,
    /// Send this side's frames only, by --on: where what is in between would not pass on both sides' by one port.
    #[arg(long, value_name = "SIDE", requires = "sides", conflicts_with = "on2", value_parser = word::<Side>())]
    pub only_side: Option<Side>,
    /// Measure on this interface what arrives of --on2's frames, and with --measure what arrives of --on's: with a device
    /// in the middle, frames of --on arrive where those of --on2 leave.
    #[arg(long, value_name = "IFACE", requires_all = ["measure", "on2"])]
    pub measure2: Option<String>,
}

/// `measure`: its settings, and what it does anyway, said.
#[derive(Debug, Args)]
pub struct Measure {
    #[command(flatten)]
    pub declared: Declared<spec::Measure>,
    /// Let frames go on to the host: the default, said.
    #[arg(long, conflicts_with = "drop", help_heading = "Measure", display_order = 100)]
    pub pass: bool,
}

#[derive(Debug, Args)]
pub struct Info {
    /// Captures; - is standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Print JSON: an object, for several files an array of them.
    #[arg(long)]
    pub json: bool,
    /// Of a damaged capture count what is sound before the damage.
    #[arg(long)]
    pub skip_corrupt: bool,
}

#[derive(Debug, Args)]
pub struct Synth {
    /// The capture file to write; .gz and .zst compress.
    #[arg(
        short,
        short_alias = 'o',
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        required_unless_present = "write_profile"
    )]
    pub write: Option<PathBuf>,
    /// Make a look-alike of this capture (- is standard input) from its statistics alone: flows, their frames, sizes, durations and
    /// protocols, gaps between frames, hosts, ports and tags. No payload and no address of it is taken. How far both agree is
    /// printed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "profile")]
    pub like: Option<PathBuf>,
    /// What it looks like: bigflows or smallflows (the published totals of bigFlows.pcap and smallFlows.pcap), or a file that
    /// --write-profile wrote.
    #[arg(long, value_name = "NAME|FILE", default_value = "bigflows")]
    pub profile: String,
    /// Write the statistics of --like's capture into this file (JSON), from which --profile makes the same look-alike.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "like")]
    pub write_profile: Option<PathBuf>,
    /// Of a damaged capture imitate what is sound before the damage.
    #[arg(long, requires = "like")]
    pub skip_corrupt: bool,
    /// Print how far both agree as JSON.
    #[arg(long, requires = "write")]
    pub json: bool,
    /// Key of all choices: the same seed gives the same capture.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// The interface; without one only the machine is looked at.
    #[arg(value_name = "IFACE")]
    pub interface: Option<String>,
    /// Measure which engine is the fastest here: send by IFACE with each in turn, 64-byte frames at top speed from
    /// 02:00:00:00:00:01 to 02:00:00:00:00:02, and count what leaves. This loads the interface.
    #[arg(long, requires = "interface")]
    pub calibrate: bool,
    /// Count what arrives on this interface, too (IFACE or IFACE@NAMESPACE): the fastest is then whose frames arrive.
    #[arg(long, value_name = "IFACE", requires = "calibrate")]
    pub measure: Option<String>,
    /// Send with each engine for this long.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s", requires = "calibrate")]
    pub duration: Duration,
    /// Write what was measured into this file, which --calibration reads.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "calibrate")]
    pub save: Option<PathBuf>,
    /// Yes, calibrate this interface, although it carries the default route or your login.
    #[arg(long, value_name = "IFACE", requires = "calibrate")]
    pub yes_disrupt: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The jobs: YAML or JSON, of the layout netdyno.job/1; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    pub allowed: Allowed,
    #[command(flatten)]
    pub output: Output,
}

/// What a job does only if whoever runs it says so, too.
#[derive(Debug, Clone, Default, Args)]
pub struct Allowed {
    /// Yes, use this interface although it carries the default route or your login; it is never used because the job says
    /// so. Once for each.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    /// Yes, run this command, which the job has; it is never run because the job says so.
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,
    /// Yes, write this file, which the job names, whatever it is now. Once for each.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Vec<PathBuf>,
    /// Yes, read this file with a password, token or key, which the job names. Once for each.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub allow_read: Vec<PathBuf>,
    /// Yes, connect or send to this address (a server, collector, broker or database), as the job writes it. Once for each.
    #[arg(long, value_name = "ADDR")]
    pub allow_address: Vec<String>,
    /// Yes, copy clients' data to this public address, which the job names as its target. Once for each.
    #[arg(long, value_name = "HOST:PORT")]
    pub allow_public_target: Vec<String>,
    /// Yes, make this prefix, which the job's copies come from, this host's own. Once for each.
    #[arg(long, value_name = "PREFIX")]
    pub allow_source_prefix: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Rerun {
    /// A folder that --report wrote, or its result.json or report.html.
    #[arg(value_name = "RESULT", value_hint = ValueHint::AnyPath)]
    pub result: PathBuf,
    /// Differences below this share do not count, as in `netdyno compare`.
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub least: Written<spec::Ratio>,
    /// The plugin that the result is of may be another version or module now.
    #[arg(long)]
    pub any_plugin: bool,
    #[command(flatten)]
    pub allowed: Allowed,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ReportCommand {
    /// A folder that --report wrote, or its result.json or report.html.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print CSV: its intervals, of a search or trial its trials; or what is named, --csv=figures, the results with their
    /// units and meanings.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "series", conflicts_with = "json")]
    pub csv: Option<Csv>,
    /// Print nothing but the value of this figure, such as latency_p99, without a unit: ns, frames or bits a second, a share of 1
    /// (--csv=figures lists all that a result has). May be given more than once, a line each. A search has a value for each
    /// frame size, and prints them all; throughput:64 is that whose name begins with 64. Exit status 2 if the result does not
    /// have it.
    #[arg(long, value_name = "FIGURE", value_parser = FigureKey, hide_possible_values = true, conflicts_with_all = ["json", "csv", "verbose"])]
    pub get: Vec<report::get::Wanted>,
    /// Print all that is known of the run.
    #[arg(long, short)]
    pub verbose: bool,
}
