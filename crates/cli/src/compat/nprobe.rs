//! `netdyno nprobe`: nProbe's everyday command lines, metered by `netdyno probe`. What differs stands in docs/from-nprobe.md.

use super::refuse;
use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{note, print};
use anyhow::{Context, Result, bail};
use clap::{ArgAction, Args};
use report::{Report, units};
use snapshot::{Board, Snapshot};
use spec::{ExportFormat, FlowDirection, Job, Probe};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// From one block of statistics to the next, as nProbe has it.
const EACH: Duration = Duration::from_secs(30);
/// What NetFlow v5 can say of sampling.
pub const MOST_SAMPLING_V5: u32 = 0x3fff;
/// nProbe's port of collectors.
const PORT: u16 = 2055;

/// nProbe's options, as they are. docs/from-nprobe.md says what differs.
#[derive(Debug, Args)]
pub struct Nprobe {
    /// The interface, or a capture file.
    #[arg(short, long, value_name = "IFACE|FILE")]
    pub interface: String,
    /// Collectors, with commas between them (udp://HOST:PORT too; with -V 10 tcp://HOST:PORT); none: to nobody. Default:
    /// 127.0.0.1:2055.
    #[arg(short = 'n', long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub collector: Vec<String>,
    /// Each message goes to all collectors. Default: to one in turn.
    #[arg(short, long)]
    pub all_collectors: bool,
    /// What records hold.
    #[arg(short = 'T', long, value_name = "NAMES", allow_hyphen_values = true)]
    pub flow_templ: Option<String>,
    /// The number of the template.
    #[arg(short = 'U', long, value_name = "N", value_parser = clap::value_parser!(u16).range(256..))]
    pub flow_templ_id: Option<u16>,
    /// 5, 9 or 10 (IPFIX).
    #[arg(short = 'V', long, value_name = "VERSION", default_value = "9")]
    pub flow_version: String,
    /// Seconds that a record lasts at most.
    #[arg(short = 't', long, value_name = "SECONDS", default_value_t = 120)]
    pub lifetime_timeout: u64,
    /// Seconds without a packet that end it.
    #[arg(short = 'd', long, value_name = "SECONDS", default_value_t = 30)]
    pub idle_timeout: u64,
    /// Seconds that a record waits in a message: here no more than 0.2.
    #[arg(short = 'l', long, value_name = "SECONDS")]
    pub queue_timeout: Option<u64>,
    /// Bytes of a packet that are looked at: here all headers.
    #[arg(short, long, value_name = "BYTES")]
    pub snaplen: Option<u32>,
    /// Places in the hash: here as many as flows need.
    #[arg(short = 'w', long, value_name = "N")]
    pub hash_size: Option<u32>,
    /// Flows at once.
    #[arg(short = 'M', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_num_flows: Option<u32>,
    /// One packet in N is looked at.
    #[arg(short = 'S', long, value_name = "N")]
    pub sample_rate: Option<String>,
    /// 0, or 1 and 2: statistics each 30 seconds and at the end.
    #[arg(short = 'b', long, value_name = "LEVEL", default_value_t = 0)]
    pub verbose: u8,
    /// The number of the interface that packets arrive at, in records.
    #[arg(short = 'u', long, value_name = "N")]
    pub in_iface_idx: Option<u32>,
    /// The number of the interface that they leave by.
    #[arg(short = 'Q', long, value_name = "N")]
    pub out_iface_idx: Option<u32>,
    /// Type and number of the engine.
    #[arg(short = 'E', long, value_name = "TYPE:ID")]
    pub netflow_engine: Option<String>,
    /// Which frames are metered: 0 (all), 1 (those that arrive), 2 (those that leave).
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=2))]
    pub capture_direction: u8,
    /// What tunnels carry is metered.
    #[arg(long)]
    pub tunnel: bool,
    /// Where the process's number is written.
    #[arg(short = 'g', long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// What else is written on the command line of nProbe, and is not there.
    #[command(flatten)]
    pub others: Others,
}

/// Options that are refused by their names.
#[derive(Debug, Args)]
pub struct Others {
    #[arg(short = 'G', long, hide = true)]
    daemon_mode: bool,
    #[arg(short = 'f', long, hide = true, value_name = "FILTER")]
    bpf_filter: Option<String>,
    #[arg(short = 'p', long, hide = true, value_name = "KEYS")]
    aggregation: Option<String>,
    #[arg(short = 'W', long, hide = true)]
    discard_ipv6: bool,
    #[arg(short = 'e', long, hide = true, value_name = "MS")]
    flow_delay: Option<String>,
    #[arg(short = 'B', long, hide = true, value_name = "N")]
    packet_flow_count: Option<String>,
    #[arg(short = 'P', long, hide = true, value_name = "FOLDER")]
    dump_path: Option<String>,
    #[arg(short = 'o', long, hide = true, value_name = "N")]
    v9_template_packets: Option<String>,
    #[arg(short = 'q', long, hide = true, value_name = "HOST:PORT")]
    sender_address: Option<String>,
    #[arg(short = 'z', long, hide = true, value_name = "SIZES")]
    min_flow_size: Option<String>,
    #[arg(short = 'm', long, hide = true, value_name = "N")]
    min_num_flows: Option<String>,
    #[arg(short = 'A', long, hide = true, value_name = "FILE")]
    as_list: Option<String>,
    #[arg(short = 'L', long, hide = true, value_name = "NETWORKS")]
    local_networks: Option<String>,
    #[arg(long, hide = true, value_name = "PORT")]
    collector_port: Option<String>,
    #[arg(long, hide = true, value_name = "ENDPOINT")]
    zmq: Option<String>,
    #[arg(long, hide = true, value_name = "OPTIONS")]
    kafka: Option<String>,
    #[arg(hide = true, value_name = "WORDS", action = ArgAction::Append)]
    words: Vec<String>,
}

impl Others {
    fn refuse(&self) -> Result<()> {
        refuse(&[
            ("-G", self.daemon_mode, "run it by systemd, or with & behind it"),
            ("-f", self.bpf_filter.is_some(), "filter a capture by tcpdump first, or an interface by tc"),
            ("-p", self.aggregation.is_some(), "flows have all of the key; leave it out"),
            ("-W", self.discard_ipv6, "IPv6 flows have a template of their own: leave it out"),
            ("-e", self.flow_delay.is_some(), "`netdyno probe --export-rate` keeps records to a rate"),
            ("-B", self.packet_flow_count.is_some(), "`netdyno probe --export-rate` keeps records to a rate"),
            ("-P", self.dump_path.is_some(), "`netdyno collect --write FILE` writes records"),
            (
                "-o",
                self.v9_template_packets.is_some(),
                "`netdyno probe --template-refresh` has a time for it",
            ),
            ("-q", self.sender_address.is_some(), "the route to the collector decides"),
            ("-z", self.min_flow_size.is_some(), "all flows are exported; leave it out"),
            ("-m", self.min_num_flows.is_some(), "messages go out when they are full, or after 0.2 s"),
            ("-A", self.as_list.is_some(), "autonomous systems are not known here: they are zero"),
            ("-L", self.local_networks.is_some(), "flows have no local end here; leave it out"),
            (
                "--collector-port",
                self.collector_port.is_some(),
                "that is `netdyno collect --listen ADDR:PORT`",
            ),
            ("--zmq", self.zmq.is_some(), "records leave as NetFlow or IPFIX: -n HOST:PORT"),
            ("--kafka", self.kafka.is_some(), "records leave as NetFlow or IPFIX: -n HOST:PORT"),
            ("a word without an option", !self.words.is_empty(), "nProbe takes none"),
        ])
    }
}

impl Nprobe {
    fn job(&self) -> Result<Probe> {
        self.others.refuse()?;
        let format = version(&self.flow_version)?;
        let export = collectors(&self.collector, format)?;
        let sample = self.sample_rate.as_deref().map(sampling).transpose()?;
        if let (ExportFormat::V5, Some(Some(rate))) = (format, sample)
            && rate > MOST_SAMPLING_V5
        {
            bail!("-S {rate}: NetFlow v5 has 14 bits for it: give up to {MOST_SAMPLING_V5}, or -V 9");
        }
        let capture = Path::new(&self.interface).is_file();
        let seconds = |seconds: u64| format!("{seconds}s").parse().ok();
        Ok(Probe {
            on: (!capture).then(|| self.interface.clone()),
            direction: match self.capture_direction {
                // A capture says nothing of it.
                _ if capture => FlowDirection::In,
                0 => FlowDirection::Both,
                1 => FlowDirection::In,
                _ => FlowDirection::Out,
            },
            captures: if capture { vec![PathBuf::from(&self.interface)] } else { Vec::new() },
            balance: export.len() > 1 && !self.all_collectors,
            export,
            format,
            template: self.flow_templ.clone(),
            template_id: self.flow_templ_id,
            domain: self.netflow_engine.as_deref().map(|text| engine(text, format)).transpose()?,
            idle_timeout: seconds(self.idle_timeout),
            active_timeout: seconds(self.lifetime_timeout),
            max_flows: self.max_num_flows.and_then(|flows| flows.to_string().parse().ok()),
            inner: self.tunnel,
            sample: sample.flatten(),
            input_index: self.in_iface_idx,
            output_index: self.out_iface_idx,
            ..Probe::default()
        })
    }
}

/// The version of NetFlow, as both probes write it.
pub fn version(text: &str) -> Result<ExportFormat> {
    Ok(match text {
        "5" => ExportFormat::V5,
        "9" => ExportFormat::V9,
        "10" => ExportFormat::Ipfix,
        other => bail!("version {}: 5, 9 and 10 (IPFIX) are there", units::printable(other)),
    })
}

fn collectors(given: &[String], format: ExportFormat) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for one in given {
        let (scheme, place) = match one.strip_prefix(spec::TCP) {
            Some(_) if format != ExportFormat::Ipfix => {
                bail!("-n {}: only IPFIX goes over TCP: add -V 10", units::printable(one))
            }
            Some(place) => (spec::TCP, place),
            None => ("", one.strip_prefix("udp://").unwrap_or(one)),
        };
        if place == "none" {
            return Ok(Vec::new());
        }
        if place.contains("://") {
            bail!("-n {}: records leave by UDP or TCP: give HOST:PORT", units::printable(one));
        }
        let has_port = place.rsplit_once(':').is_some_and(|(host, port)| {
            port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        });
        all.push(if has_port { format!("{scheme}{place}") } else { format!("{scheme}{place}:{PORT}") });
    }
    if all.is_empty() {
        all.push(format!("127.0.0.1:{PORT}"));
    }
    Ok(all)
}

/// Of packets; of flows there is none.
fn sampling(text: &str) -> Result<Option<u32>> {
    let mut rates = text.split(':');
    let packets = rates.next().unwrap_or_default();
    if packets.starts_with('@') || rates.any(|rate| rate != "1" && rate != "0") {
        bail!(
            "-S {}: packets are sampled, flows are not, and nothing is scaled up: give -S N",
            units::printable(text)
        );
    }
    match packets.parse::<u32>() {
        Ok(0 | 1) => Ok(None),
        Ok(rate) => Ok(Some(rate)),
        Err(_) => bail!("-S {}: give -S N, one packet in N", units::printable(text)),
    }
}

fn engine(text: &str, format: ExportFormat) -> Result<u32> {
    let parts =
        text.split_once(':').and_then(|(kind, id)| Some((kind.parse::<u8>().ok()?, id.parse::<u8>().ok()?)));
    let (kind, id) =
        parts.with_context(|| format!("-E {}: give TYPE:ID, each 0 to 255", units::printable(text)))?;
    if format == ExportFormat::V5 && kind > 0 {
        bail!("-E {}: of NetFlow v5 the type is 0 here: give -E 0:ID", units::printable(text));
    }
    Ok(u32::from(kind) << 8 | u32::from(id))
}

/// Runs `netdyno nprobe`; returns the exit status.
pub fn run(args: &Nprobe) -> Result<u8> {
    let job = Job::from(args.job()?);
    job.check()?;
    let _pid = args.pid_file.as_deref().map(super::Pid::write).transpose()?;
    let session = Signals::handle(false)?.session(job.asks(), None);
    let board = Arc::clone(&session.board);
    let verbose = args.verbose > 0;
    let output = Output::default();
    let mut report = std::thread::scope(|scope| {
        if verbose {
            scope.spawn(|| tell(&board));
        }
        let attended = attend(&output, Line::Not, session, |session| job::start(job, session));
        // One that did not begin has no end of its own.
        board.end();
        attended
    })?;
    report.command_line = crate::output::command_line();
    if verbose {
        print(&last(&report))?;
    }
    for reason in report.result.verdict.reasons() {
        note(&format!("Warning: {reason}"));
    }
    Ok(report.result.verdict.exit_status())
}

/// Prints statistics now and then, until it is over.
fn tell(board: &Board) {
    let mut before: Option<Arc<Snapshot>> = None;
    while !board.await_end(EACH, u64::MAX) {
        let Some(now) = board.latest() else { continue };
        if print(&block(&now, before.as_deref())).is_err() {
            return;
        }
        before = Some(now);
    }
}

/// A rate as nProbe writes it.
fn bits(bytes: u64, ns: u64) -> String {
    let bits = bytes as f64 * 8e9 / ns.max(1) as f64;
    let (value, unit) = match bits {
        b if b >= 1e9 => (b / 1e9, "Gb"),
        b if b >= 1e6 => (b / 1e6, "Mb"),
        b if b >= 1e3 => (b / 1e3, "Kb"),
        b => (b, "b"),
    };
    format!("{value:.2} {unit}/sec")
}

fn per_second(count: u64, ns: u64) -> f64 {
    count as f64 * 1e9 / ns.max(1) as f64
}

fn traffic(out: &mut String, name: &str, frames: u64, bytes: u64, ns: u64) {
    let _ = writeln!(out, "{name} traffic: [{:.2} pps][{}]", per_second(frames, ns), bits(bytes, ns));
}

/// How it stands, and what came since `before`.
fn block(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let (rx, flows) = (now.rx.unwrap_or_default(), now.flows.unwrap_or_default());
    let earlier =
        before.map(|before| (before.rx.unwrap_or_default(), before.flows.unwrap_or_default(), before.at_ns));
    let (rx0, flows0, at0) = earlier.unwrap_or_default();
    let since = now.at_ns.saturating_sub(at0);
    let mut out = String::new();
    traffic(&mut out, "Average", rx.frames, rx.bytes, now.at_ns);
    traffic(
        &mut out,
        "Current",
        rx.frames.saturating_sub(rx0.frames),
        rx.bytes.saturating_sub(rx0.bytes),
        since,
    );
    let rate = per_second(flows.sent.saturating_sub(flows0.sent), since);
    let _ = writeln!(out, "Current flow export rate: [{rate:.1} flows/sec]");
    let _ = writeln!(out, "Flow drops: [export queue too long={}]", flows.unsent);
    let waiting = flows.ended.saturating_sub(flows.sent + flows.unsent);
    let _ = writeln!(out, "Flow Buckets: [active={}][toBeExported={waiting}]", flows.active);
    let _ = writeln!(out, "Processed packets: {}", rx.frames);
    let _ = writeln!(out, "{} pkts rcvd/{} pkts dropped", rx.frames + flows.dropped, flows.dropped);
    out
}

/// What it came to.
fn last(report: &Report) -> String {
    let mut out = String::new();
    let (Some(rx), Some(met)) = (&report.result.rx, &report.result.metering) else { return out };
    let totals = &rx.totals;
    traffic(&mut out, "Average", totals.frames, totals.bytes, totals.duration_ns);
    let rate = per_second(met.sent_records, totals.duration_ns);
    let _ = writeln!(out, "Average flow export rate: [{rate:.1} flows/sec]");
    let _ = writeln!(
        out,
        "Flow drops: [export queue too long={}][too many flows={}]",
        met.unsent_records, met.displaced_records
    );
    let _ = writeln!(out, "Flow Buckets: [active=0][most={}][toBeExported=0]", met.most_flows);
    let _ = writeln!(out, "Processed packets: {} (max bucket search: {})", met.packets, met.longest_search);
    let _ = writeln!(
        out,
        "Flow export stats: [{} bytes/{} pkts][{} flows/{} pkts sent]",
        met.octets, met.packets, met.sent_records, met.sent_messages
    );
    let _ = writeln!(out, "Flow export drop stats: [{} flows]", met.unsent_records);
    let received = totals.frames + met.dropped_frames;
    let _ = writeln!(out, "{received} pkts rcvd/{} pkts dropped", met.dropped_frames);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_are_named_as_nprobe_has_it() {
        let by = |format, given: &[&str]| {
            let given: Vec<String> = given.iter().map(|one| (*one).to_owned()).collect();
            collectors(&given, format).map_err(|error| error.to_string())
        };
        let of = |given: &[&str]| by(ExportFormat::V9, given);
        assert_eq!(of(&[]), Ok(vec!["127.0.0.1:2055".to_owned()]));
        assert_eq!(of(&["none"]), Ok(Vec::new()));
        let many = ["192.0.2.1", "udp://192.0.2.2:9995", "[2001:db8::1]:2055", "[2001:db8::2]", "host"];
        let all =
            ["192.0.2.1:2055", "192.0.2.2:9995", "[2001:db8::1]:2055", "[2001:db8::2]:2055", "host:2055"];
        assert_eq!(of(&many), Ok(all.map(str::to_owned).to_vec()));
        assert!(of(&["tcp://192.0.2.1:4739"]).is_err_and(|error| error.contains("-V 10")));
        assert!(of(&["sctp://192.0.2.1:4739"]).is_err_and(|error| error.contains("UDP or TCP")));
        let connected = by(ExportFormat::Ipfix, &["tcp://192.0.2.1:4739", "tcp://host"]);
        assert_eq!(connected, Ok(vec!["tcp://192.0.2.1:4739".to_owned(), "tcp://host:2055".to_owned()]));
    }

    #[test]
    fn rates_and_engines_are_read_or_refused() {
        assert_eq!([sampling("100").ok(), sampling("1:1:1").ok()], [Some(Some(100)), Some(None)]);
        assert!(["@100", "1:1:10", "x", ""].iter().all(|text| sampling(text).is_err()));
        assert_eq!(engine("1:2", ExportFormat::V9).ok(), Some(258));
        assert_eq!(engine("0:2", ExportFormat::V5).ok(), Some(2));
        assert!(engine("1:2", ExportFormat::V5).is_err_and(|error| error.to_string().contains("-E 0:ID")));
        assert!(["1", "256:1", "1:x"].iter().all(|text| engine(text, ExportFormat::V9).is_err()));
    }
}
