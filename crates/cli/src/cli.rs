//! The command line, declared once: parsing, `--help`, man pages and completions come from here.
//!
//! Parsing only collects; what the words mean together is decided by the commands.

pub mod agent;
pub mod agents;
pub mod bridge;
pub mod clone;
pub mod compare;
pub mod counters;
pub mod declared;
pub mod drops;
pub mod edit;
pub mod endpoint;
mod foreign;
mod grants;
pub mod help;
pub mod job;
pub mod lab;
pub mod mistyped;
pub mod nats;
pub mod plugin;
pub mod search;
pub mod search_between;
pub mod search_sessions;
pub mod serve;
pub mod sessions;
pub mod trend;
pub mod xdp;

use self::declared::{Asked, LeavesOut};
use ::job::sides::Sides;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use spec::{Word, Written};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::{parse_count, parse_duration};
use traffic::{Rate, Shape};

/// Takes one of a choice's words.
fn word<T: Word + std::marker::Send + Sync>() -> impl TypedValueParser<Value = T> {
    of_words(T::ALL.iter().map(|(_, name, _)| PossibleValue::new(*name)))
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
    /// Carry out jobs for another program, which speaks netdyno.agent/1 over standard input and output (docs/agent.md): jobs in,
    /// snapshots, notes and reports out, as lines of JSON. When its end is closed, all that goes on ends in an orderly way. Without
    /// further options it does jobs in labs of their own alone.
    Agent(agent::Agent),
    /// Agents on other machines: look at them before they are used, reach those that dial out (docs/many-machines.md).
    Agents(agents::Agents),
    /// Serve jobs over HTTP: a native API with events (docs/http.md), Open Traffic Generator (docs/otg.md), and a page to watch
    /// (docs/watching.md).
    Serve(Box<serve::Serve>),
    /// Show the result of an earlier run again.
    Report(ReportCommand),
    /// Compare results: what differs, and whether by more than the noise.
    Compare(compare::Compare),
    /// Look at a folder of results over time: what changed, after which result, and what else changed there (docs/trend.md).
    Trend(trend::Trend),
    /// Show the kernel's protocol and interface counters, or what changed between two looks at them (docs/counters.md).
    Counters(counters::Counters),
    /// Say which frames the kernel drops, where and why, while a command runs or until Ctrl-C (docs/why-lost.md).
    Drops(drops::Drops),
    /// Test XDP programs: run one over the frames of a capture (docs/xdp.md).
    Xdp(xdp::Xdp),
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

/// A table to print as CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Csv {
    /// The run over time; of a search or trial its trials, of a mesh its pairs.
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
#[command(next_help_heading = "Output")]
pub struct Output {
    #[arg(
        long,
        help = "Print the result as one JSON object",
        long_help = "Print the result as one JSON object (docs/report.schema.json) on standard output"
    )]
    pub json: bool,
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "series",
        conflicts_with = "json",
        help = "Print CSV: intervals, trials or pairs, or the results (--csv=figures)",
        long_help = "Print CSV on standard output: the intervals of the run, of a search or trial its trials, of a mesh of endpoint tests its pairs; or what is named, --csv=figures, the results with their units and meanings"
    )]
    pub csv: Option<Csv>,
    #[arg(
        long,
        value_name = "FIGURE",
        value_parser = FigureKey,
        hide_possible_values = true,
        conflicts_with_all = ["json", "csv"],
        help = "Print nothing but this figure's value: latency_p99, throughput:64",
        long_help = "Print nothing but the value of this figure, such as latency_p99, without a unit: ns, frames or bits a second, a share of 1 (--csv=figures lists all that a result has). May be given more than once, a line each. A search has a value for each frame size, and prints them all; throughput:64 is that whose name begins with 64. Exit status 2 if the result does not have it"
    )]
    pub get: Vec<report::get::Wanted>,
    #[arg(
        long,
        conflicts_with_all = ["json", "csv", "get"],
        help = "Print how the run stands as a line of JSON each second",
        long_help = "Print how the run stands as a line of JSON each second (docs/snapshot.schema.json), and in the end the result as one"
    )]
    pub json_lines: bool,
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        help = "Write a page with plots, report.html, result.json and CSV into this folder",
        long_help = "Write result.json, figures.csv, intervals.csv and report.html into this folder, of a search also trials.csv, of a mesh of endpoint tests pairs.csv"
    )]
    pub report: Option<PathBuf>,
    /// No progress line.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print all that is known of a run: why this engine, how exactly frames kept their times, what the interfaces counted,
    /// every stream and core. Without it that is left out as far as it is as expected.
    #[arg(long, short)]
    pub verbose: bool,
    #[arg(
        long,
        conflicts_with_all = ["json", "csv", "get", "json_lines"],
        help = "Do nothing but print the job, a file for `netdyno run`",
        long_help = "Do nothing but print what would be done, as a job that `netdyno run` takes (docs/jobs.md)"
    )]
    pub print_job: bool,
    #[command(flatten)]
    pub gauges: Gauges,
    #[command(flatten)]
    pub elsewhere: agents::Elsewhere,
}

/// What shows a run while it lasts (docs/screen.md).
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Gauges {
    #[arg(
        long,
        help = "Show the run full-screen while it lasts (docs/screen.md)",
        long_help = "Show the run full-screen while it lasts: rates, loss, latency, streams or trials, queues, cores. Keys end it and, where frames are sent at a rate, pause it and change the rate; ? lists them"
    )]
    pub tui: bool,
    #[arg(
        long,
        value_name = "ADDR:PORT",
        help = "Serve metrics for Prometheus while the run lasts (127.0.0.1:9100)",
        long_help = "Serve metrics for Prometheus at http://ADDR:PORT/metrics while the run lasts (127.0.0.1:9100, [::]:9100)"
    )]
    pub metrics: Option<std::net::SocketAddr>,
    /// Another name that metrics are asked for by, such as this host's in DNS; may be given more than once.
    #[arg(long, value_name = "NAME", requires = "metrics", hide_short_help = true)]
    pub metrics_name: Vec<String>,
    /// Serve a page that shows the run while it lasts, and steers it (docs/watching.md): at ADDR:PORT, or at a free port of 127.0.0.1.
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0", hide_short_help = true)]
    pub watch: Option<String>,
}

impl Output {
    /// What shows it while it lasts.
    pub fn gauges_wanted(&self) -> ::gauges::Wanted {
        let Gauges { tui, metrics, metrics_name, watch: _ } = self.gauges.clone();
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
    /// Send like any other program, as `netdyno replay --no-real-time` does.
    #[arg(long)]
    pub no_real_time: bool,
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

/// `send`: its settings, and the options of a plugin.
#[derive(Debug, Args)]
#[command(mut_arg("what", |what| what.required_unless_present("plugin")))]
#[command(mut_arg("mesh", |mesh| mesh.requires("on").conflicts_with("measure")))]
#[command(mut_arg("round-trip", |returns| returns.conflicts_with("measure")))]
#[command(mut_arg("resolve", |resolve| resolve.requires("on")))]
pub struct Send {
    #[command(flatten)]
    pub asked: Asked<spec::Send, TwoHosts>,
    #[command(flatten)]
    pub plugin: plugin::Given,
    #[command(flatten)]
    pub output: Output,
}

/// A lab between two hosts has one cable.
#[derive(Debug, Clone)]
pub struct TwoHosts;

impl LeavesOut for TwoHosts {
    const OPTIONS: &'static [&'static str] = &["ports"];
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Traffic")]
#[command(mut_arg("plugin", |plugin| plugin.conflicts_with("what").long_help(
    "Have a plugin say what to build, in place of WHAT: its name (`netdyno plugin list`), or the path of a module, FILE.wasm (docs/plugins.md). `netdyno plugin info NAME` lists its options"
)))]
pub struct Craft {
    #[arg(
        value_name = "WHAT",
        value_hint = ValueHint::FilePath,
        required_unless_present = "plugin",
        help_heading = None::<&str>,
        help = "A packet, such as 'ipv4(src=10.0.0.0/16)/udp(dport=53)' (docs/expressions.md), or a scenario FILE.yaml",
        long_help = "What to build: a packet expression (docs/expressions.md) or a scenario file (docs/scenarios.md)"
    )]
    pub what: Option<String>,
    #[command(flatten)]
    pub named: Asked<spec::Plugin>,
    #[command(flatten)]
    pub plugin: plugin::Given,
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
    pub shape: Asked<spec::Shape>,
    /// Time stamps at this rate, from 0. Default: a microsecond apart; the times that a scenario states.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Time stamps of a load that varies about this rate, as `send --shape`: poisson, sine:period=10s,amplitude=50%, ...
    #[arg(long = "shape", value_name = "SHAPE", requires = "rate")]
    pub load: Option<Shape>,
    /// End each frame with an 18-byte signature.
    #[arg(long)]
    pub sign: bool,
}

/// `replay`: its settings.
#[derive(Debug, Args)]
#[command(mut_arg("round-trip", |returns| returns.conflicts_with("measure")))]
#[command(mut_arg("sides", |sides| sides.value_parser(sides_of)))]
#[command(mut_arg("write", |write| write.conflicts_with_all(["tui", "metrics"])))]
pub struct Replay {
    #[command(flatten)]
    pub asked: Asked<spec::Replay, TwoHosts>,
    #[command(flatten)]
    pub output: Output,
}

/// How sides are told apart, as it was typed: crate `job` knows the words, which crate `spec` keeps as they are.
fn sides_of(text: &str) -> Result<OsString, String> {
    text.parse::<Sides>().map(|_| text.into()).map_err(|bad| bad.to_string())
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
    #[arg(long, value_name = "IFACE", requires = "calibrate", help_heading = "Expert")]
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
    /// Run it again and again; each run begins this long after the one before: 1h. Results go into --keep; runs never overlap. Ctrl-C ends.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "keep", help_heading = "Again and again")]
    pub every: Option<Duration>,
    /// Keep the result in a folder of its own within this one, named by the time (docs/trend.md).
    #[arg(
        long,
        value_name = "FOLDER",
        value_hint = ValueHint::DirPath,
        help_heading = "Again and again",
        conflicts_with_all = ["report", "json", "csv", "get", "json_lines", "print_job", "tui"]
    )]
    pub keep: Option<PathBuf>,
    /// With --every: end after this many runs.
    #[arg(
        long,
        value_name = "N",
        requires = "every",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Again and again"
    )]
    pub times: Option<u64>,
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
    #[arg(long, value_name = "IFACE", help_heading = "Expert")]
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
#[command(next_help_heading = "Output")]
pub struct ReportCommand {
    /// A folder that --report wrote, or its result.json or report.html.
    #[arg(value_hint = ValueHint::AnyPath, help_heading = None::<&str>)]
    pub path: PathBuf,
    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print CSV: its intervals, of a search or trial its trials, of a mesh its pairs; or what is named, --csv=figures, the results with their
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
