//! `netdyno iperf3`: iperf3's command lines, as its client or its server. What differs stands in docs/from-iperf3.md.

mod asked;
#[cfg(feature = "iperf3-auth")]
mod auth;
#[cfg(not(feature = "iperf3-auth"))]
#[path = "iperf3/no_auth.rs"]
mod auth;
mod show;

use super::refuse;
use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{note, print};
use anyhow::{Context, Result, bail};
use clap::Args;
use endpoint::iperf3::{PORT, VERSION, text, units::Format};
use job::Session;
use job::kinds::iperf3::{self, Beside};
use report::units;
use show::{Shown, Sink, Style};
use spec::Job;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use transport::iperf3::{Failure, Show};

/// iperf3's options, as they are. docs/from-iperf3.md says what differs.
#[derive(Debug, Args)]
pub struct Iperf3 {
    /// Be the server.
    #[arg(short, long, conflicts_with = "client", required_unless_present_any = ["client", "version"])]
    pub server: bool,
    /// Be the client of this server.
    #[arg(short, long, value_name = "HOST[%DEV]")]
    pub client: Option<String>,
    /// The server's port.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// The unit of rates: k, m, g, t for bits, K, M, G, T for bytes.
    #[arg(short, long, value_name = "UNIT")]
    pub format: Option<String>,
    /// Seconds from report to report, 0.1 to 60; 0: none but the last.
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,
    /// Where the process's number is written.
    #[arg(short = 'I', long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,
    /// Send this file, or write to it.
    #[arg(short = 'F', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The core of this side, and of the server for this test.
    #[arg(short = 'A', long, value_name = "N[,M]")]
    pub affinity: Option<String>,
    /// Own address.
    #[arg(short = 'B', long, value_name = "ADDR[%DEV]")]
    pub bind: Option<String>,
    /// Own interface (SO_BINDTODEVICE).
    #[arg(long, value_name = "DEV")]
    pub bind_dev: Option<String>,
    /// Say more.
    #[arg(short = 'V', long)]
    pub verbose: bool,
    /// JSON at the end.
    #[arg(short = 'J', long)]
    pub json: bool,
    /// A line of JSON for each event.
    #[arg(long)]
    pub json_stream: bool,
    /// And all of it at the end.
    #[arg(long)]
    pub json_stream_full_output: bool,
    /// Append output to this file.
    #[arg(long, value_name = "FILE")]
    pub logfile: Option<PathBuf>,
    /// Flush output at every interval, as it always is here.
    #[arg(long)]
    pub forceflush: bool,
    /// The time before each line, by strftime's format.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "%c ")]
    pub timestamps: Option<String>,
    /// Data must come within this many milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 120_000, value_parser = clap::value_parser!(u64).range(100..=86_400_000))]
    pub rcv_timeout: u64,
    /// Data must be acknowledged within this many milliseconds.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub snd_timeout: Option<u64>,
    /// Multipath TCP.
    #[arg(short, long)]
    pub mptcp: bool,
    /// Debug output: there is none.
    #[arg(short, long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "4")]
    pub debug: Option<String>,
    /// The version of the protocol and the output.
    #[arg(short, long)]
    pub version: bool,
    /// RSA's older padding (PKCS#1 v1.5), as releases before 3.17 have it: others can decrypt tokens by trying.
    #[arg(long)]
    pub use_pkcs1_padding: bool,
    /// Options of a server.
    #[command(flatten, next_help_heading = "Server")]
    pub serving: asked::Serving,
    /// Options of a client.
    #[command(flatten, next_help_heading = "Client")]
    pub asking: asked::Asking,
    /// Ask the control connection's peer whether it is still there (SO_KEEPALIVE): after IDLE seconds, every INTV, CNT times.
    #[arg(long, value_name = "IDLE/INTV/CNT", num_args = 0..=1, require_equals = true)]
    pub cntl_ka: Option<Option<String>>,
    // What else is written on the command line of iperf3, and is not there.
    #[command(flatten)]
    pub others: Others,
}

/// Options that are refused by their names.
#[derive(Debug, Args)]
pub struct Others {
    #[arg(long, hide = true)]
    sctp: bool,
    #[arg(short = 'X', long, hide = true, value_name = "NAME")]
    xbind: Option<String>,
    #[arg(long, hide = true, value_name = "N")]
    nstreams: Option<String>,
}

impl Others {
    fn refuse(&self) -> Result<()> {
        refuse(&[
            ("--sctp", self.sctp, "TCP and UDP (-u) are there"),
            ("-X", self.xbind.is_some(), "it is SCTP's, which is not there"),
            ("--nstreams", self.nstreams.is_some(), "it is SCTP's; -P N has N streams over TCP and UDP"),
        ])
    }
}

/// What `-v` says, and JSON's `version`.
fn version() -> String {
    format!("iperf {VERSION} (netdyno {})", env!("CARGO_PKG_VERSION"))
}

impl Iperf3 {
    fn style(&self) -> Result<Style> {
        let format = match &self.format {
            None => Format::default(),
            Some(text) => Format::read(text).with_context(|| {
                format!("-f {}: k, m, g, t (bits) and K, M, G, T (bytes) are there", units::printable(text))
            })?,
        };
        Ok(match () {
            () if self.json_stream => Style::Stream { full: self.json_stream_full_output },
            () if self.json => Style::Json,
            () => Style::Text { format, verbose: self.verbose },
        })
    }

    fn sink(&self, stop: &Signals) -> Result<Sink> {
        let out: Box<dyn std::io::Write + Send> = match &self.logfile {
            None => Box::new(std::io::stdout()),
            Some(path) => Box::new(
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(path)
                    .with_context(|| format!("--logfile {}", path.display()))?,
            ),
        };
        Ok(Sink::new(out, self.timestamps.clone(), Arc::clone(&stop.stop)))
    }

    fn check(&self) -> Result<()> {
        self.others.refuse()?;
        if self.interval != 0.0 && !(0.1..=60.0).contains(&self.interval) {
            bail!("-i {}: an interval lasts 0.1 to 60 seconds, or 0 for none", self.interval);
        }
        if self.server { self.asking.refuse_on_server() } else { self.serving.refuse_on_client() }
    }
}

/// Runs `netdyno iperf3`; returns the exit status.
pub fn run(args: &Iperf3) -> Result<u8> {
    if args.version {
        print(&format!("{}\n{}\n", version(), iperf3::system()))?;
        return Ok(0);
    }
    args.check()?;
    if args.debug.is_some() {
        note("-d: there is no debug output; -V says more");
    }
    let signals = Signals::at_once()?;
    let style = args.style()?;
    let _pid = args.pidfile.as_deref().map(super::Pid::write).transpose()?;
    let sink = Arc::new(args.sink(&signals)?);
    if args.server { serve(args, style, &sink, &signals) } else { ask(args, style, &sink, &signals) }
}

/// iperf3's option for a setting of its client or server.
pub fn called(setting: &str) -> Option<String> {
    let id = match setting {
        "averaged_over" => "server_bitrate_limit",
        "burst" => "bitrate",
        "host" => "client",
        "keep_alive" => "cntl_ka",
        other => other,
    };
    let command = crate::wording::root().find_subcommand("iperf3")?;
    let option = command.get_arguments().find(|option| option.get_id().as_str() == id)?;
    let long = || option.get_long().map(|long| format!("--{long}"));
    option.get_short().map(|short| format!("-{short}")).or_else(long)
}

/// Nothing of what a job says is printed but what iperf3 prints.
fn silent() -> Output {
    Output { quiet: true, ..Output::default() }
}

/// What both ends counted and cannot both be right.
fn disagree(report: &report::Report) -> impl Iterator<Item = String> + '_ {
    let reasons = report.result.verdict.reasons().iter();
    reasons.filter(|reason| reason.code == report::Code::CountersDisagree).map(ToString::to_string)
}

/// A client: 0 if the test came to its end, or was ended by a signal, as iperf3 has it.
fn ask(args: &Iperf3, style: Style, sink: &Arc<Sink>, signals: &Signals) -> Result<u8> {
    let (job, words) = asked::client(args)?;
    super::check(&job, called)?;
    let (sink, title) = (Arc::clone(sink), words.title.clone());
    let session = signals.session(Job::from(job.clone()).asks(), None);
    let failed = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&failed);
    let run = move |session: Session| {
        let mut shown = Shown::new(Arc::clone(&sink), style, &version(), &iperf3::system());
        let ended = iperf3::test(&job, words, &mut shown, &session)?;
        let is_text = matches!(style, Style::Text { .. });
        match ended.done {
            // iperf3 shows what a server says as it stands.
            Ok(()) if disagree(&ended.report).next().is_some() => {
                let prefix = if is_text { "error - " } else { "" };
                disagree(&ended.report).for_each(|said| shown.error(&format!("{prefix}{said}")));
                fails.store(true, Relaxed);
            }
            Ok(()) if is_text => sink.lines(title.as_deref(), text::Text::done()),
            Ok(()) => {}
            Err(Failure::Interrupted) => shown.error("interrupt - the client has terminated"),
            Err(Failure::Error(error)) => {
                let prefix = if is_text { "error - " } else { "" };
                shown.error(&format!("{prefix}{error}"));
                fails.store(true, Relaxed);
            }
        }
        Ok(ended.report)
    };
    attend(&silent(), Line::Not, session, |session| job::spawn(session, run))?;
    Ok(u8::from(failed.load(Relaxed)))
}

fn serve(args: &Iperf3, style: Style, sink: &Arc<Sink>, signals: &Signals) -> Result<u8> {
    let (job, check) = (asked::server(args)?, asked::check(args)?);
    super::check(&job, called)?;
    let text = match style {
        Style::Text { format, verbose } => Some(text::Text::new(format, verbose)),
        _ => None,
    };
    if args.serving.daemon {
        note("-D: it stays in the foreground: run it by systemd, or with & behind it");
    }
    if let Some(text) = &text {
        sink.write(&text.program(&version(), &iperf3::system()));
    }
    let news = {
        let sink = Arc::clone(sink);
        move || -> Box<dyn Show> {
            Box::new(Shown::new(Arc::clone(&sink), style, &version(), &iperf3::system()))
        }
    };
    let (port, sink) = (args.port, Arc::clone(sink));
    let listening = move |number: u64| {
        if text.is_some() {
            sink.lines(None, &text::listening(port, number));
        }
    };
    // Where a right of root's is needed later it stays root, and says so.
    let stays = if args.file.is_some() {
        Some("-F: the file is opened for each stream")
    } else if args.serving.authorized_users_path.is_some() {
        Some("--authorized-users-path: the file is read anew for each client")
    } else if port < 1024 {
        Some("-p: a port below 1024 is bound again for each stream of datagrams")
    } else {
        None
    };
    let bound = Box::new(move || super::leave_root(stays));
    let beside = Beside { news: Box::new(news), bound, listening: Box::new(listening), check };
    let session = signals.session(Job::from(job.clone()).asks(), None);
    let failed = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&failed);
    let run = move |session: Session| {
        let (report, well) = iperf3::serve(&job, beside, &session)?;
        fails.store(!well, Relaxed);
        Ok(report)
    };
    attend(&silent(), Line::Not, session, |session| job::spawn(session, run))?;
    if signals.stop.load(Relaxed) {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"iperf3: interrupt - the server has terminated\n",
        );
        return Ok(0);
    }
    Ok(u8::from(failed.load(Relaxed)))
}
