//! `netdyno tcpcopy`: tcpcopy's command lines, done by `netdyno clone`; `netdyno intercept` and `netdyno mirror`, whose work is not
//! needed any more. What differs stands in docs/from-tcpcopy.md.
//!
//! Each option becomes one of the clone's, or is taken because it has no meaning here, or is refused by its name. What became of them is
//! said on standard error, with the command line of `netdyno clone`.

use super::refuse;
use crate::cli::Output;
use crate::client::{Line, Signals, attend};
use crate::output::{conclude, note, print};
use anyhow::{Context, Result, bail};
use clap::Args;
use report::units;
use spec::{Adopt, ClonePace, Cloning, Job};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};

/// tcpcopy's options, as they are. docs/from-tcpcopy.md says what differs.
#[derive(Debug, Args)]
pub struct Tcpcopy {
    /// The server's port (and address), and the target: 80-192.0.2.2:80.
    #[arg(
        short = 'x',
        value_name = "[ADDR:]PORT[@MAC]-ADDR:PORT[@MAC]",
        required_unless_present = "version"
    )]
    pub transfer: Option<String>,
    /// Hosts of intercept: not needed.
    #[arg(short = 's', value_name = "ADDR[:PORT],...")]
    pub intercepts: Option<String>,
    /// Addresses that copies come from: 192.0.2.x, or one.
    #[arg(short = 'c', value_name = "ADDR")]
    pub sources: Option<String>,
    /// Copies of each session.
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub copies: Option<u32>,
    /// Percent of the sessions.
    #[arg(short = 'r', value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..))]
    pub share: Option<u32>,
    /// Begin with no session, one percent more each second.
    #[arg(short = 'g')]
    pub gradually: bool,
    /// Do not wait for the target's answer before the next request.
    #[arg(short = 'W')]
    pub not_waiting: bool,
    /// Only sessions whose SYN is seen.
    #[arg(short = 'O')]
    pub only_whole: bool,
    /// A session without traffic for this long is over.
    #[arg(short = 't', value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub idle: Option<u32>,
    /// The interface where clients' packets arrive, or a capture.
    #[arg(short = 'i', value_name = "IFACE|FILE")]
    pub input: Option<String>,
    /// libpcap's filter: the server's port and address.
    #[arg(short = 'F', value_name = "FILTER")]
    pub filter: Option<String>,
    /// Replay a capture (-i), as a tcpcopy does that was built so.
    #[arg(long = "offline", requires = "input")]
    pub offline: bool,
    /// A capture this many times as fast.
    #[arg(short = 'a', value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..))]
    pub times: Option<u32>,
    /// What would be said on standard error goes to the end of this file.
    #[arg(short = 'l', value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Where the process's number is written.
    #[arg(short = 'P', value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Go into the background: it stays in the foreground.
    #[arg(short = 'd')]
    pub daemon: bool,
    /// Say the version.
    #[arg(short = 'v')]
    pub version: bool,
    #[command(flatten)]
    others: Others,
}

/// Options that have no meaning here, and those that are refused.
#[derive(Debug, Args)]
struct Others {
    #[arg(short = 'H', hide = true, value_name = "ADDR")]
    local_source: Option<String>,
    #[arg(short = 'f', hide = true, value_name = "N")]
    shift: Option<String>,
    #[arg(short = 'L', hide = true)]
    lonely: bool,
    #[arg(short = 'C', hide = true, value_name = "N")]
    connections: Option<String>,
    #[arg(short = 'k', hide = true, value_name = "SECONDS")]
    keepalive: Option<String>,
    #[arg(short = 'R', hide = true, value_name = "MS")]
    round_trip: Option<String>,
    #[arg(short = 'M', hide = true, value_name = "BYTES")]
    mtu: Option<String>,
    #[arg(short = 'D', hide = true, value_name = "BYTES")]
    mss: Option<String>,
    #[arg(short = 'm', hide = true, value_name = "MB")]
    memory: Option<String>,
    #[arg(short = 'U', hide = true, value_name = "KB")]
    pool: Option<String>,
    #[arg(short = 'p', hide = true, value_name = "PORT")]
    port: Option<String>,
    #[arg(short = 'o', hide = true, value_name = "IFACE")]
    output: Option<String>,
    #[arg(short = 'B', hide = true, value_name = "MB")]
    buffer: Option<String>,
    #[arg(short = 'S', hide = true, value_name = "BYTES")]
    snaplen: Option<String>,
    #[arg(short = 'I', hide = true, value_name = "MS")]
    most_gap: Option<String>,
    #[arg(short = 'T', hide = true, value_name = "N")]
    repeat: Option<u32>,
}

/// What `-x` says.
#[derive(Debug, PartialEq, Eq)]
struct Transfer {
    server: Option<Ipv4Addr>,
    port: u16,
    target: String,
    with_macs: bool,
}

fn transfer(text: &str) -> Result<Transfer> {
    let wrong =
        || format!("-x {}: give [ADDR:]PORT-ADDR:PORT, such as 80-192.0.2.2:80", units::printable(text));
    if text.contains(',') {
        bail!(
            "-x with several servers is not supported: run one `netdyno tcpcopy` for each ({})",
            units::printable(&text.replace(',', ", "))
        );
    }
    let (from, to) = text.split_once('-').with_context(wrong)?;
    let bare = |part: &str| part.split('@').next().unwrap_or_default().to_owned();
    let (from, to) = (bare(from), bare(to));
    let (server, port) = match from.rsplit_once(':') {
        Some((server, port)) => (Some(server.parse().with_context(wrong)?), port.to_owned()),
        None => (None, from),
    };
    let number = |port: &str| port.parse::<u16>().ok().filter(|port| *port > 0);
    let port = number(&port).with_context(wrong)?;
    let (target, to_port) = to.rsplit_once(':').with_context(wrong)?;
    number(to_port).with_context(wrong)?;
    if target.is_empty() {
        bail!("{}", wrong());
    }
    Ok(Transfer { server, port, with_macs: text.contains('@'), target: to })
}

/// What `-F` says of the server, and whether it takes the server's answers alone.
fn filter(text: &str, of: &Transfer) -> Result<(Option<Ipv4Addr>, bool)> {
    let cannot = |what: &str| {
        format!(
            "-F '{}' is not supported: {what}; clones take all TCP of one server, given by -x [ADDR:]{}-... (`netdyno clone \
             --from IFACE:[ADDR:]PORT`)",
            units::printable(text),
            of.port
        )
    };
    let text_ = text.to_lowercase().replace(['(', ')'], " ").replace("&&", " and ");
    let mut words = text_.split_whitespace().peekable();
    let (mut address, mut answers) = (None, false);
    let mut side = "";
    while let Some(word) = words.next() {
        match word {
            "tcp" | "ip" | "and" => side = "",
            "src" | "dst" => side = word,
            "port" => {
                let port = words.next().and_then(|port| port.parse::<u16>().ok());
                if port != Some(of.port) {
                    bail!("{}", cannot("it names another port than -x"));
                }
                answers |= side == "src";
            }
            "host" => {
                let host = words.next().and_then(|host| host.parse::<Ipv4Addr>().ok());
                let host = host.with_context(|| cannot("its host is no IPv4 address"))?;
                if side != "dst" && of.server != Some(host) {
                    bail!("{}", cannot("only the server's address is understood (dst host ADDR)"));
                }
                address = Some(host);
            }
            other => bail!("{}", cannot(&format!("`{}` is not understood", units::printable(other)))),
        }
    }
    Ok((address, answers))
}

/// What `-c` becomes: a prefix, or nothing for this host's own address.
fn sources(text: &str) -> Result<Option<String>> {
    if text.contains(',') {
        bail!(
            "-c with several addresses is not supported: give one prefix of your own, as -c 192.0.2.x or `netdyno clone --source-prefix \
             PREFIX`"
        );
    }
    let wrong = || format!("-c {}: give one address, or 192.0.2.x for 254", units::printable(text));
    let Some(net) = text.strip_suffix(".x") else {
        let address: Ipv4Addr = text.parse().ok().with_context(wrong)?;
        return Ok((!is_own(address)).then(|| format!("{address}/32")));
    };
    let first: Ipv4Addr = format!("{net}.0").parse().ok().with_context(wrong)?;
    let all = (1..=254u32).filter_map(|host| Some(Ipv4Addr::from(first.to_bits().checked_add(host)?)));
    let own: Vec<Ipv4Addr> = all.filter(|address| is_own(*address)).collect();
    // All of them: a clone that was killed left its route there.
    if let Some(address) = own.first().filter(|_| own.len() < 254) {
        bail!(
            "-c {text} is not supported: {address} is this host's, and while copies come from {first}/24 no other host of that network \
             could be reached; give a prefix that is nobody's, such as -c 198.18.0.x"
        );
    }
    Ok(Some(format!("{first}/24")))
}

fn is_own(address: Ipv4Addr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The interface to capture at, where none is given: of the default route, or the only one that is not the target's.
fn interface(target: &str) -> Result<String> {
    // Any address of the Internet's; nothing is sent.
    let outside = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
    if let Ok(Some(name)) = port::resolve::way_out(outside) {
        return Ok(name);
    }
    let text = std::fs::read_to_string("/proc/net/dev").context("reading /proc/net/dev")?;
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let up = |name: &String| port::interface::Interface::by_name(name).is_ok_and(|found| found.up);
    let mut names: Vec<String> = names.filter(|name| name != "lo" && up(name)).collect();
    if names.len() > 1 {
        let address = target.rsplit_once(':').and_then(|(host, _)| host.parse::<IpAddr>().ok());
        let leads = address.and_then(|address| port::resolve::way_out(address).ok().flatten());
        names.retain(|name| Some(name) != leads.as_ref());
    }
    match names.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!("no interface is up: give -i IFACE, where clients' packets arrive"),
        several => bail!("-i is needed: clients' packets may arrive at any of {}", several.join(", ")),
    }
}

impl Tcpcopy {
    /// The clone, and what is to be said of options.
    fn job(&self) -> Result<(Cloning, Vec<String>)> {
        let others = &self.others;
        refuse(&[
            ("-I", others.most_gap.is_some(), "a capture's pauses are kept; -a TIMES shortens them all"),
            ("-T", others.repeat.is_some_and(|times| times > 1), "a capture is copied once; run it again"),
            (
                "-i with several interfaces",
                self.input.as_deref().is_some_and(|input| input.contains(',')),
                "run one `netdyno tcpcopy` for each, or capture at their bond or bridge",
            ),
        ])?;
        let x = transfer(self.transfer.as_deref().unwrap_or_default())?;
        let (mut server, mut said) = (x.server, Vec::new());
        if let Some(text) = &self.filter {
            let (address, answers) = filter(text, &x)?;
            server = server.or(address);
            said.push(match answers {
                true => format!(
                    "-F '{}' takes the server's answers, not what clients say; both directions of port {} are captured instead",
                    units::printable(text),
                    x.port
                ),
                false => format!("-F: both directions of port {} are captured, whatever its direction", x.port),
            });
        }
        let is_file = self.input.as_deref().is_some_and(|input| self.offline || Path::new(input).is_file());
        if self.times.is_some() && !is_file {
            bail!("-a is of captures: give -i FILE, or leave it out");
        }
        let on = match (&self.input, is_file) {
            (_, true) => None,
            (Some(name), false) => Some(name.clone()),
            (None, false) => {
                let name = interface(&x.target)?;
                said.push(format!("captured at {name}: -i IFACE says another interface"));
                Some(name)
            }
        };
        let prefix = self.sources.as_deref().map(sources).transpose()?.flatten();
        said.push(match &prefix {
            Some(prefix) => format!(
                "copies come from {prefix}: the target's route for it leads to this host (on the target: ip route replace {prefix} via \
                 THIS-HOST), no longer to an assistant"
            ),
            None => "copies come from this host's own address, not from clients'; -c 192.0.2.x gives them a prefix".to_owned(),
        });
        if let Some(at) = &self.intercepts {
            said.push(format!(
                "-s {}: no intercept is needed, thank you; netdyno ends the target's answers itself, and that host and the route to it can \
                 be released",
                units::printable(at)
            ));
        }
        let needless = self.needless(x.with_macs);
        if !needless.is_empty() {
            said.push(format!("not needed here: {}", needless.join(", ")));
        }
        let job = Cloning {
            on,
            captures: self.input.iter().filter(|_| is_file).map(PathBuf::from).collect(),
            server: match server {
                Some(server) => format!("{server}:{}", x.port),
                None => x.port.to_string(),
            },
            to: x.target,
            source_prefix: prefix,
            client_addresses: false,
            vni: None,
            tunnel_port: None,
            copies: self.copies.map(f64::from),
            sample: self
                .share
                .filter(|share| *share < 100)
                .and_then(|share| format!("{share}%").parse().ok()),
            pace: if self.not_waiting { ClonePace::Wallclock } else { ClonePace::Causal },
            adopt: if self.only_whole { Adopt::SynOnly } else { Adopt::Idle },
            // tcpcopy's own default.
            forget_after: format!("{}s", self.idle.unwrap_or(600)).parse().ok(),
            speed: self.times.and_then(|times| format!("{times}x").parse().ok()),
            ramp: self.gradually.then(|| "100s".parse().ok()).flatten(),
            ..Cloning::default()
        };
        Ok((job, said))
    }

    /// Options that were given and have no meaning here.
    fn needless(&self, with_macs: bool) -> Vec<&'static str> {
        let o = &self.others;
        let all = [
            ("@MAC", with_macs),
            ("-H", o.local_source.is_some()),
            ("-f", o.shift.is_some()),
            ("-L", o.lonely),
            ("-C", o.connections.is_some()),
            ("-k", o.keepalive.is_some()),
            ("-R", o.round_trip.is_some()),
            ("-M", o.mtu.is_some()),
            ("-D", o.mss.is_some()),
            ("-m", o.memory.is_some()),
            ("-U", o.pool.is_some()),
            ("-p", o.port.is_some()),
            ("-o", o.output.is_some()),
            ("-B", o.buffer.is_some()),
            ("-S", o.snaplen.is_some()),
            ("-T", o.repeat.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

/// The same as a command line of `netdyno clone`.
fn native(job: &Cloning) -> String {
    let mut words = vec!["netdyno clone".to_owned()];
    match &job.on {
        Some(on) => words.push(format!("--from {on}:{}", job.server)),
        None => {
            words.extend(job.captures.iter().map(|path| path.display().to_string()));
            words.push(format!("--server {}", job.server));
        }
    }
    words.push(format!("--to {}", job.to));
    let mut put =
        |name: &str, value: Option<String>| words.extend(value.map(|value| format!("{name} {value}")));
    put("--source-prefix", job.source_prefix.clone());
    put("--copies", job.copies.map(|copies| copies.to_string()));
    put("--sample", job.sample.as_ref().map(ToString::to_string));
    put("--pace", Some(job.pace.to_string()));
    put("--adopt", Some(job.adopt.to_string()));
    put("--forget-after", job.forget_after.as_ref().map(ToString::to_string));
    put("--speed", job.speed.as_ref().map(ToString::to_string));
    put("--ramp", job.ramp.as_ref().map(ToString::to_string));
    words.join(" ")
}

/// Standard error goes to the end of a file.
fn log_to(path: &Path) -> Result<()> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let file = file.with_context(|| format!("-l {}: opening it", path.display()))?;
    rustix::stdio::dup2_stderr(&file).with_context(|| format!("-l {}", path.display()))
}

/// Runs `netdyno tcpcopy`; returns the exit status.
pub fn run(args: &Tcpcopy) -> Result<u8> {
    if args.version {
        print(concat!("netdyno ", env!("CARGO_PKG_VERSION"), ", with tcpcopy's options\n"))?;
        return Ok(0);
    }
    let (cloning, said) = args.job()?;
    let as_clone = native(&cloning);
    let job = Job::from(cloning);
    job.check()?;
    said.iter().for_each(|said| note(said));
    note(&format!("the same as: {as_clone}"));
    if args.daemon {
        note("-d: it stays in the foreground: run it by systemd, or with & behind it");
    }
    let _pid = args.pid_file.as_deref().map(super::Pid::write).transpose()?;
    if let Some(log) = &args.log {
        log_to(log)?;
    }
    let output = Output::default();
    let session = Signals::handle(false)?.session(job.asks(), None);
    let mut report = attend(&output, Line::Shown, session, |session| job::start(job, session))?;
    report.command_line = crate::output::command_line();
    conclude(&report, &output, false)
}

/// intercept's options, as they are. Nothing is needed of it: it says so and ends.
#[derive(Debug, Args)]
pub struct Intercept {
    /// Interfaces.
    #[arg(short = 'i', value_name = "IFACE,...")]
    pub interfaces: Option<String>,
    /// libpcap's filter.
    #[arg(short = 'F', value_name = "FILTER")]
    pub filter: Option<String>,
    #[arg(short = 'n', hide = true, value_name = "N")]
    combined: Option<String>,
    #[arg(short = 'p', hide = true, value_name = "PORT")]
    port: Option<String>,
    #[arg(short = 's', hide = true, value_name = "N")]
    hash: Option<String>,
    #[arg(short = 'b', hide = true, value_name = "ADDR")]
    bind: Option<String>,
    #[arg(short = 'D', hide = true, value_name = "ADDR-ADDR")]
    docker: Option<String>,
    #[arg(short = 'x', hide = true, value_name = "LIST")]
    passlist: Option<String>,
    #[arg(short = 'q', hide = true, value_name = "N")]
    queue: Option<String>,
    #[arg(short = 'l', hide = true, value_name = "FILE")]
    log: Option<PathBuf>,
    #[arg(short = 'P', hide = true, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    #[arg(short = 'd', hide = true)]
    daemon: bool,
    #[arg(short = 'c', hide = true)]
    protect: bool,
    #[arg(short = 'v', hide = true)]
    version: bool,
}

/// Runs `netdyno intercept`; returns the exit status.
pub fn intercept(_args: &Intercept) -> Result<u8> {
    note(
        "nothing is needed on this host, thank you: `netdyno tcpcopy` and `netdyno clone` end the target's answers themselves. Nothing was \
         captured, and this ends now",
    );
    note(
        "a route on the target that leads clients' addresses to this host can be taken back; with -c 192.0.2.x (--source-prefix) the \
         target's route for that prefix leads to the host of `netdyno tcpcopy`; `netdyno clone doctor` says whether it does",
    );
    Ok(0)
}

/// mirror's options, as they are. It is refused, with the command that copies without it.
#[derive(Debug, Args)]
pub struct Mirror {
    /// The interface where clients' packets arrive.
    #[arg(short = 'i', value_name = "IFACE,...")]
    pub input: Option<String>,
    /// The interface that they would leave by.
    #[arg(short = 'o', value_name = "IFACE")]
    pub output: Option<String>,
    /// The host that they would be sent to.
    #[arg(short = 'x', value_name = "ADDR")]
    pub to: Option<String>,
    /// libpcap's filter.
    #[arg(short = 'F', value_name = "FILTER")]
    pub filter: Option<String>,
    #[arg(short = 's', hide = true, value_name = "MAC")]
    source: Option<String>,
    #[arg(short = 't', hide = true, value_name = "MAC")]
    destination: Option<String>,
    #[arg(short = 'l', hide = true, value_name = "FILE")]
    log: Option<PathBuf>,
    #[arg(short = 'P', hide = true, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    #[arg(short = 'd', hide = true)]
    daemon: bool,
}

/// Refuses `netdyno mirror`.
pub fn mirror(args: &Mirror) -> Result<u8> {
    let on = args.input.as_deref().and_then(|input| input.split(',').next()).unwrap_or("IFACE");
    let words = args.filter.as_deref().unwrap_or_default().split_whitespace();
    let port = words.skip_while(|word| *word != "port").nth(1).unwrap_or("PORT");
    let to = args.to.as_deref().map_or_else(String::new, |to| format!(" to {}", units::printable(to)));
    bail!(
        "mirror is not supported: sending packets on{to} is not needed; to capture on this host and copy from another one: `netdyno clone \
         capture --from {on}:{port} --send-to COPYHOST:7117 --key FILE` here, and there `netdyno clone --listen 0.0.0.0:7117 --key FILE \
         --server {port} --to TARGET:PORT` (`netdyno clone key FILE` makes the key); to copy from this host: `netdyno clone --from \
         {on}:{port} --to TARGET:PORT`; or behind a switch's mirror port, with both directions: the same command on that host",
        on = units::printable(on),
        port = units::printable(port)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transfer_is_read_with_addresses_and_macs() {
        let plain = transfer("80-192.168.50.52:8080").expect("a transfer");
        assert_eq!((plain.server, plain.port, plain.target.as_str()), (None, 80, "192.168.50.52:8080"));
        let full =
            transfer("10.0.0.1:80@00:11:22:33:44:55-10.0.0.2:81@00:11:22:33:44:56").expect("a transfer");
        let server = Some(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(
            (full.server, full.port, full.target.as_str(), full.with_macs),
            (server, 80, "10.0.0.2:81", true)
        );
        for wrong in ["", "80", "80-10.0.0.2", "0-10.0.0.2:80", "x-10.0.0.2:80", "80-:80", "80-10.0.0.2:0"] {
            assert!(transfer(wrong).is_err(), "{wrong}");
        }
        assert!(
            transfer("80-10.0.0.2:80,81-10.0.0.2:81").unwrap_err().to_string().contains("several servers")
        );
    }

    #[test]
    fn a_filter_names_the_server_or_is_refused() {
        let x = transfer("80-10.0.0.2:80").expect("a transfer");
        let read = |text: &str| filter(text, &x).map_err(|error| error.to_string());
        assert_eq!(read("tcp and dst port 80"), Ok((None, false)));
        assert_eq!(read("tcp port 80"), Ok((None, false)));
        assert_eq!(read("tcp and src port 80"), Ok((None, true)));
        let server = Some(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(read("tcp and ((dst host 10.0.0.1) and (dst port 80))"), Ok((server, false)));
        for wrong in
            ["tcp port 81", "tcp port 80 or tcp port 81", "vlan and tcp port 80", "src host 10.0.0.9"]
        {
            assert!(read(wrong).is_err_and(|said| said.contains("is not supported")), "{wrong}");
        }
    }

    #[test]
    fn a_pool_of_sources_becomes_a_prefix() {
        assert_eq!(sources("198.18.7.x").expect("a pool"), Some("198.18.7.0/24".to_owned()));
        assert_eq!(sources("203.0.113.9").expect("one"), Some("203.0.113.9/32".to_owned()));
        assert_eq!(sources("127.0.0.1").expect("this host's own"), None);
        assert!(["10.0.0.1,10.0.0.2", "10.0.x", "x", ""].iter().all(|text| sources(text).is_err()));
    }
}
