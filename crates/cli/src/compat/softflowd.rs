//! `netdyno softflowd`: softflowd's everyday command lines, metered by `netdyno probe`. What differs stands in
//! docs/from-softflowd.md.

use super::nprobe::{MOST_SAMPLING_V5, version};
use super::refuse;
use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{conclude, note};
use anyhow::{Context, Result, bail};
use clap::Args;
#[cfg(feature = "netflow")]
use flow::template::{Version, usual};
use report::units;
use spec::{ExportFormat, FlowDirection, Job, Probe};
use std::path::PathBuf;

/// What records have by default, with times since 1970.
fn since_1970() -> String {
    #[cfg(feature = "netflow")]
    return usual(Version::Ipfix);
    // The job is refused before anybody reads it.
    #[cfg(not(feature = "netflow"))]
    String::new()
}

/// softflowd's options, as they are. docs/from-softflowd.md says what differs.
#[derive(Debug, Args)]
pub struct Softflowd {
    /// The interface.
    #[arg(
        short = 'i',
        value_name = "[INDEX:]IFACE",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    pub interface: Option<String>,
    /// Or a capture.
    #[arg(short = 'r', value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Collectors, with commas between them.
    #[arg(short = 'n', value_name = "HOST:PORT", value_delimiter = ',')]
    pub collectors: Vec<String>,
    /// 5, 9 or 10 (IPFIX).
    #[arg(short = 'v', value_name = "VERSION", default_value = "5")]
    pub version: String,
    /// A timeout: maxlife=7d; general, tcp, udp, icmp: of these the shortest; tcp.fin, tcp.rst: the same; expint is not needed.
    #[arg(short = 't', value_name = "NAME=TIME")]
    pub timeouts: Vec<String>,
    /// Flows at once.
    #[arg(short = 'm', value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_flows: u32,
    /// One packet in N is looked at.
    #[arg(short = 's', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sampling: Option<u32>,
    /// How flows are distinguished: full or vlan.
    #[arg(short = 'T', value_name = "LEVEL", default_value = "full")]
    pub level: String,
    /// Times as sec, milli, micro or nano.
    #[arg(short = 'A', value_name = "FORMAT")]
    pub times: Option<String>,
    /// Each message goes to one collector in turn.
    #[arg(short = 'l')]
    pub balance: bool,
    /// Stay in the foreground, as it always does here.
    #[arg(short = 'd')]
    pub foreground: bool,
    /// Stay in the foreground, and say more.
    #[arg(short = 'D')]
    pub debug: bool,
    /// Meter IPv6 whatever the version can say, as it always does here.
    #[arg(short = '6')]
    pub six: bool,
    /// Times of a capture are its own, as they always are here.
    #[arg(short = 'a')]
    pub adjust: bool,
    /// Where the process's number is written.
    #[arg(short = 'p', value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// The control socket: none.
    #[arg(short = 'c', value_name = "none")]
    pub control: Option<String>,
    /// libpcap's buffer: not needed.
    #[arg(short = 'B', value_name = "BYTES")]
    pub buffer: Option<u64>,
    /// Bytes of a packet: here all headers.
    #[arg(short = 'C', value_name = "BYTES")]
    pub snaplen: Option<u32>,
    /// By which protocol records are sent: udp.
    #[arg(short = 'P', value_name = "PROTOCOL", default_value = "udp")]
    pub protocol: String,
    #[arg(short = 'b', hide = true)]
    bidirectional: bool,
    #[arg(short = 'L', hide = true, value_name = "N")]
    hop_limit: Option<u32>,
    #[arg(short = 'N', hide = true)]
    not_promiscuous: bool,
    #[arg(short = 'R', hide = true, value_name = "PORT")]
    psamp: Option<u32>,
    #[arg(short = 'S', hide = true, value_name = "IFACE")]
    send_by: Option<String>,
    #[arg(short = 'x', hide = true, value_name = "N")]
    labels: Option<u32>,
    #[arg(hide = true, value_name = "FILTER")]
    filter: Vec<String>,
}

/// Seconds, as softflowd has them: 600, 10m, 1h30m.
fn seconds(text: &str) -> Option<u64> {
    let (mut sum, mut number) = (0u64, None::<u64>);
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit.into())?);
            continue;
        }
        let factor = match c.to_ascii_lowercase() {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        sum = sum.checked_add(number.take()?.checked_mul(factor)?)?;
    }
    match (text.is_empty(), number) {
        (true, _) => None,
        (_, rest) => sum.checked_add(rest.unwrap_or(0)),
    }
}

/// Timeouts of the probe, in seconds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Timeouts {
    idle: Option<u64>,
    ended: Option<u64>,
    life: Option<u64>,
}

/// What softflowd has for UDP and ICMP, for TCP's FIN and RST, and a week.
const USUALLY: [u64; 3] = [300, 120, 604_800];

/// Times since the start of the exporter tell flows of up to 2^31 ms, in seconds.
const LONGEST_BY_UPTIME: u64 = (1 << 31) / 1000;

fn timeouts(given: &[String]) -> Result<Timeouts> {
    let mut all = Timeouts::default();
    for one in given {
        let wrong =
            || format!("-t {}: give NAME=TIME, such as udp=30 or maxlife=1h30m", units::printable(one));
        let (name, time) = one.split_once('=').with_context(wrong)?;
        let time = seconds(time).with_context(wrong)?;
        let shortest = |known: &mut Option<u64>| *known = Some(known.map_or(time, |known| known.min(time)));
        match name {
            "general" | "tcp" | "udp" | "icmp" => shortest(&mut all.idle),
            "tcp.fin" | "tcp.rst" => shortest(&mut all.ended),
            "maxlife" => all.life = Some(time),
            // What is over is looked for all the time.
            "expint" => {}
            _ => bail!(
                "-t {}: there are general, tcp, tcp.fin, tcp.rst, udp, icmp, maxlife and expint",
                units::printable(one)
            ),
        }
    }
    Ok(all)
}

impl Softflowd {
    fn refuse(&self) -> Result<()> {
        refuse(&[
            ("-b", self.bidirectional, "records are of one direction; leave it out"),
            ("-L", self.hop_limit.is_some(), "the route to the collector decides"),
            ("-N", self.not_promiscuous, "the interface is promiscuous while it is metered; leave it out"),
            ("-R", self.psamp.is_some(), "PSAMP is not there; `netdyno collect` receives sFlow's samples"),
            ("-S", self.send_by.is_some(), "the route to the collector decides"),
            ("-x", self.labels.is_some(), "labels are passed over and not exported; leave it out"),
            (
                "-c",
                self.control.as_deref().is_some_and(|at| at != "none"),
                "there is no control socket: give -c none; `netdyno probe --metrics` serves figures",
            ),
            ("-P", self.protocol != "udp", "records leave by UDP"),
            (
                "-T",
                !["full", "vlan"].contains(&self.level.as_str()),
                "flows are distinguished by all of full and vlan",
            ),
            (
                "-A",
                self.times.is_some() && self.version == "5",
                "NetFlow v5 has times of its own; leave it out",
            ),
            ("a filter", !self.filter.is_empty(), "filter a capture by tcpdump first, or an interface by tc"),
        ])
    }

    fn job(&self) -> Result<Probe> {
        self.refuse()?;
        let format = version(&self.version).context("-v")?;
        if let (ExportFormat::V5, Some(rate)) = (format, self.sampling)
            && rate > MOST_SAMPLING_V5
        {
            bail!("-s {rate}: NetFlow v5 has 14 bits for it: give up to {MOST_SAMPLING_V5}, or -v 9");
        }
        let timeouts = timeouts(&self.timeouts)?;
        let (mut on, mut index) = (self.interface.clone(), None);
        let indexed = on
            .as_deref()
            .and_then(|on| on.split_once(':'))
            .map(|(index, on)| (index.parse::<u32>(), on.to_owned()));
        if let Some((Ok(number), interface)) = indexed {
            (on, index) = (Some(interface), Some(number));
        }
        let times = match self.times.as_deref() {
            None => None,
            Some("milli") => Some("Milliseconds"),
            Some("sec") => Some("Seconds"),
            Some("micro") => Some("Microseconds"),
            Some("nano") => Some("Nanoseconds"),
            Some(other) => bail!("-A {}: there are sec, milli, micro and nano", units::printable(other)),
        };
        let [idle, ended, life] = USUALLY;
        let seconds = |seconds: u64| format!("{}s", seconds.max(1)).parse().ok();
        // Where times are of 1970 a century is as good; those since the start of the exporter reach 24 days.
        let by_uptime = format == ExportFormat::V5 || format == ExportFormat::V9 && times.is_none();
        let forever = if by_uptime { 24 * 86_400 } else { 3_153_600_000 };
        if by_uptime && timeouts.life.is_some_and(|life| life > LONGEST_BY_UPTIME) {
            let others = if format == ExportFormat::V5 { "-v 10" } else { "-A milli, or -v 10" };
            let typed = self.timeouts.iter().rfind(|one| one.starts_with("maxlife="));
            bail!(
                "-t {}: times that count from the start, as those of -v {} do here, reach 24.8 days \
                 ({LONGEST_BY_UPTIME} s) within a flow: give a shorter one, 0 for 24 days, or {others}",
                units::printable(typed.map_or("maxlife", String::as_str)),
                self.version
            );
        }
        Ok(Probe {
            on: on.clone(),
            // libpcap takes both.
            direction: match on {
                Some(_) => FlowDirection::Both,
                None => FlowDirection::In,
            },
            captures: self.file.clone().into_iter().collect(),
            balance: self.balance && self.collectors.len() > 1,
            export: self.collectors.clone(),
            format,
            template: times
                .filter(|_| format != ExportFormat::V5)
                .map(|times| format!("{} flowDirection", since_1970().replace("Milliseconds", times))),
            idle_timeout: seconds(timeouts.idle.unwrap_or(idle)),
            active_timeout: seconds(
                timeouts.life.map_or(life, |life| if life == 0 { forever } else { life }),
            ),
            end_timeout: seconds(timeouts.ended.unwrap_or(ended)),
            max_flows: self.max_flows.to_string().parse().ok(),
            sample: self.sampling.filter(|rate| *rate > 1),
            // softflowd has it for both.
            input_index: index,
            output_index: index,
            ..Probe::default()
        })
    }
}

/// Runs `netdyno softflowd`; returns the exit status.
pub fn run(args: &Softflowd) -> Result<u8> {
    let job = Job::from(args.job()?);
    job.check()?;
    if !args.foreground && !args.debug && args.file.is_none() {
        note("it stays in the foreground: run it by systemd, or with & behind it");
    }
    let _pid = args.pid_file.as_deref().map(super::Pid::write).transpose()?;
    let output = Output::default();
    let session = Signals::handle(false)?.session(job.asks(), None);
    let mut report = attend(&output, Line::Shown, session, |session| job::start(job, session))?;
    report.command_line = crate::output::command_line();
    conclude(&report, &output, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_that_times_since_the_start_do_not_reach_is_refused_in_the_words_of_softflowd() {
        use clap::Parser as _;
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            line: Softflowd,
        }
        let job = |line: &str| {
            let line = format!("softflowd -r one.pcap -n 192.0.2.1:2055 {line}");
            Line::try_parse_from(line.split(' ')).expect("options of softflowd").line.job()
        };
        for (line, remedies) in
            [("-v 9 -t maxlife=30d", "or -A milli, or -v 10"), ("-v 5 -t maxlife=30d", "24 days, or -v 10")]
        {
            let said = job(line).expect_err("too long").to_string();
            assert!(said.starts_with("-t maxlife=30d: ") && said.ends_with(remedies), "{said}");
        }
        for line in [
            "-v 9 -A milli -t maxlife=30d",
            "-v 10 -t maxlife=30d",
            "-v 9 -t maxlife=2147483",
            "-v 5 -t maxlife=0",
        ] {
            assert!(job(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn times_are_read_as_softflowd_reads_them() {
        let read = ["600", "10m", "1h30m", "2w", "1m5"].map(seconds);
        assert_eq!(read, [Some(600), Some(600), Some(5400), Some(1_209_600), Some(65)]);
        assert!(["", "m", "5x", "-1", "99999999999999999999"].iter().all(|text| seconds(text).is_none()));
    }

    #[test]
    fn of_timeouts_the_shortest_counts() {
        let of = |given: &[&str]| timeouts(&given.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let all =
            of(&["tcp=60", "udp=30s", "tcp.fin=5", "tcp.rst=2", "maxlife=1m", "expint=1"]).expect("timeouts");
        assert_eq!(all, Timeouts { idle: Some(30), ended: Some(2), life: Some(60) });
        assert!(["udp", "sctp=5", "udp=x"].iter().all(|one| of(&[one]).is_err()));
    }
}
