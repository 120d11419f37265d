//! From iperf3's options to the job of a client or of a server.

use super::{Iperf3, auth};
use crate::compat::refuse;
use anyhow::{Context, Result, bail};
use clap::Args;
use endpoint::iperf3::auth::SKEW;
use endpoint::iperf3::limits;
use endpoint::iperf3::units::{rate, size};
use job::kinds::iperf3::{self, Words};
use report::units::printable;
use spec::{BitRate, Family, Iperf3 as Job, Iperf3Server as ServerJob, KeepAlive, TimeOrZero, Written};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use transport::iperf3::server::Check;

/// Options of a server.
#[derive(Debug, Args)]
pub struct Serving {
    /// Stay in the foreground, and say so.
    #[arg(short = 'D', long)]
    pub daemon: bool,
    /// One test, then end.
    #[arg(short = '1', long)]
    pub one_off: bool,
    /// Bits a second that a test may have, and over how many seconds they are averaged (5).
    #[arg(long, value_name = "N[KMG][/SECONDS]")]
    pub server_bitrate_limit: Option<String>,
    /// A test lasts no longer.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub server_max_duration: Option<u32>,
    /// With -1: end when no client has come for this long.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub idle_timeout: Option<u64>,
    /// The key that clients' tokens are decrypted with (PEM).
    #[arg(long, value_name = "FILE", requires = "authorized_users_path")]
    pub rsa_private_key_path: Option<PathBuf>,
    /// Who may test: lines of user and hash.
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    pub authorized_users_path: Option<PathBuf>,
    /// Seconds that clients' clocks may be off.
    #[arg(long, value_name = "SECONDS", default_value_t = SKEW, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub time_skew_threshold: u64,
}

impl Serving {
    /// A client has none of them.
    pub fn refuse_on_client(&self) -> Result<()> {
        only(
            "server",
            &[
                ("-D", self.daemon),
                ("-1", self.one_off),
                ("--server-bitrate-limit", self.server_bitrate_limit.is_some()),
                ("--server-max-duration", self.server_max_duration.is_some()),
                ("--idle-timeout", self.idle_timeout.is_some()),
                ("--rsa-private-key-path", self.rsa_private_key_path.is_some()),
            ],
        )
    }
}

fn only(side: &str, options: &[(&str, bool)]) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        Some((name, _)) => bail!("{name} is an option of the {side}: leave it out"),
        None => Ok(()),
    }
}

/// Options of a client.
#[derive(Debug, Args)]
pub struct Asking {
    /// UDP.
    #[arg(short, long)]
    pub udp: bool,
    /// Bits a second and stream, and how many blocks leave at once; 0: as fast as it goes. Default: UDP 1 Mbit/s, TCP 0.
    #[arg(short, long, visible_alias = "bandwidth", value_name = "N[KMG][/N]")]
    pub bitrate: Option<String>,
    /// A timer of old servers: not needed.
    #[arg(long, value_name = "US")]
    pub pacing_timer: Option<String>,
    /// Bits a second by the kernel's pacing.
    #[arg(long, value_name = "N[KMG]")]
    pub fq_rate: Option<String>,
    /// Milliseconds in which the control connection must be there.
    #[arg(long, value_name = "MS")]
    pub connect_timeout: Option<u64>,
    /// Seconds of the test; 0: until it is ended.
    #[arg(short, long, value_name = "SECONDS", conflicts_with_all = ["bytes", "blockcount"])]
    pub time: Option<u32>,
    /// End when this many bytes were sent, or received.
    #[arg(short = 'n', long, value_name = "N[KMG]", conflicts_with = "blockcount")]
    pub bytes: Option<String>,
    /// End when this many blocks were.
    #[arg(short = 'k', long, value_name = "N[KMG]")]
    pub blockcount: Option<String>,
    /// Bytes of a block (128K), or of a datagram (the path's).
    #[arg(short, long, value_name = "N[KMG]")]
    pub length: Option<String>,
    /// Own port of the first data connection; the next follow.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub cport: Option<u16>,
    /// Streams.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub parallel: u32,
    /// The server sends.
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    pub reverse: bool,
    /// Both send.
    #[arg(long)]
    pub bidir: bool,
    /// Bytes of socket buffers.
    #[arg(short, long, value_name = "N[KMG]")]
    pub window: Option<String>,
    /// Congestion control, on both sides.
    #[arg(short = 'C', long, visible_alias = "linux-congestion", value_name = "NAME")]
    pub congestion: Option<String>,
    /// Largest segment of TCP.
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(88..=32_767))]
    pub set_mss: Option<u32>,
    /// TCP_NODELAY.
    #[arg(short = 'N', long)]
    pub no_delay: bool,
    /// IPv4 only.
    #[arg(short = '4', long, conflicts_with = "version6")]
    pub version4: bool,
    /// IPv6 only.
    #[arg(short = '6', long)]
    pub version6: bool,
    /// IP's type of service: 52, 064 and 0x34 are the same.
    #[arg(short = 'S', long, value_name = "N", conflicts_with = "dscp")]
    pub tos: Option<String>,
    /// DSCP by number or name (af11, cs1, ef).
    #[arg(long, value_name = "N|NAME")]
    pub dscp: Option<String>,
    /// IPv6's flow label.
    #[arg(short = 'L', long, value_name = "N")]
    pub flowlabel: Option<String>,
    /// Send without a copy (sendfile).
    #[arg(short = 'Z', long)]
    pub zerocopy: bool,
    /// Seconds at the start that do not count.
    #[arg(short = 'O', long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=600))]
    pub omit: u32,
    /// A word before each line.
    #[arg(short = 'T', long, value_name = "WORD")]
    pub title: Option<String>,
    /// A word for the JSON of both sides.
    #[arg(long, value_name = "WORD")]
    pub extra_data: Option<String>,
    /// Show the server's output as well.
    #[arg(long)]
    pub get_server_output: bool,
    /// Numbers of 64 bits in datagrams.
    #[arg(long)]
    pub udp_counters_64bit: bool,
    /// Digits for payload.
    #[arg(long)]
    pub repeating_payload: bool,
    /// IP's "do not fragment".
    #[arg(long)]
    pub dont_fragment: bool,
    /// Receivers leave the data in the kernel (MSG_TRUNC): faster than any program that reads it.
    #[arg(long)]
    pub skip_rx_copy: bool,
    /// Segmentation offload for datagrams.
    #[arg(long)]
    pub gsro: bool,
    /// Who asks; the password is in IPERF3_PASSWORD, or asked for.
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path")]
    pub username: Option<String>,
    /// The server's public key (PEM).
    #[arg(long, value_name = "FILE", requires = "username")]
    pub rsa_public_key_path: Option<PathBuf>,
}

impl Asking {
    /// In decimal, or as hexadecimal and octal numbers are written, as strtol(3) reads it.
    fn flow_label(&self) -> Result<u32> {
        let Some(text) = &self.flowlabel else { return Ok(0) };
        let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None if text.len() > 1 && text.starts_with('0') => (text.as_str(), 8),
            None => (text.as_str(), 10),
        };
        let label = u32::from_str_radix(digits, radix).ok().filter(|label| (1..1 << 20).contains(label));
        label.with_context(|| format!("-L {}: a flow label is 1 to 1048575 (0xfffff)", printable(text)))
    }

    /// A server has few of them.
    pub fn refuse_on_server(&self) -> Result<()> {
        only(
            "client",
            &[
                ("-u", self.udp),
                ("-b", self.bitrate.is_some()),
                ("--fq-rate", self.fq_rate.is_some()),
                ("--connect-timeout", self.connect_timeout.is_some()),
                ("-t", self.time.is_some()),
                ("-n", self.bytes.is_some()),
                ("-k", self.blockcount.is_some()),
                ("-l", self.length.is_some()),
                ("--cport", self.cport.is_some()),
                ("-P", self.parallel != 1),
                ("-R", self.reverse),
                ("--bidir", self.bidir),
                ("-w", self.window.is_some()),
                ("-C", self.congestion.is_some()),
                ("-M", self.set_mss.is_some()),
                ("-N", self.no_delay),
                ("-S", self.tos.is_some()),
                ("--dscp", self.dscp.is_some()),
                ("-L", self.flowlabel.is_some()),
                ("-Z", self.zerocopy),
                ("-O", self.omit != 0),
                ("-T", self.title.is_some()),
                ("--extra-data", self.extra_data.is_some()),
                ("--get-server-output", self.get_server_output),
                ("--udp-counters-64bit", self.udp_counters_64bit),
                ("--repeating-payload", self.repeating_payload),
                ("--dont-fragment", self.dont_fragment),
                ("--skip-rx-copy", self.skip_rx_copy),
                ("--gsro", self.gsro),
                ("--username", self.username.is_some()),
            ],
        )
    }

    fn family(&self) -> Family {
        match (self.version4, self.version6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        }
    }

    fn tos(&self) -> Result<u8> {
        if let Some(text) = &self.dscp {
            let dscp = match dscp(&text.to_ascii_lowercase()) {
                Some(dscp) => Some(dscp),
                None => number(text).and_then(|dscp| u8::try_from(dscp).ok()).filter(|dscp| *dscp < 64),
            };
            let dscp = dscp.with_context(|| {
                format!("--dscp {}: 0 to 63, af11 to af43, cs0 to cs7, ef and va are there", printable(text))
            })?;
            return Ok(dscp << 2);
        }
        let Some(text) = &self.tos else { return Ok(0) };
        let tos = number(text).and_then(|tos| u8::try_from(tos).ok());
        tos.with_context(|| format!("-S {}: 0 to 255 are possible", printable(text)))
    }

    /// Bits a second, and blocks of a burst.
    fn rate(&self) -> Result<(Option<u64>, Option<u32>)> {
        let Some(text) = &self.bitrate else { return Ok((None, None)) };
        let (bits, burst) = match text.split_once('/') {
            Some((bits, burst)) => {
                let burst = burst.parse().ok().filter(|burst| (1..=limits::BURST).contains(burst));
                (bits, burst.map(Some))
            }
            None => (text.as_str(), Some(None)),
        };
        let (bits, burst) = rate(bits).zip(burst).with_context(|| {
            format!(
                "-b {}: give bits a second, 100M, or 100M/10 for 10 blocks at once (at most 1000)",
                printable(text)
            )
        })?;
        Ok((Some(bits), burst))
    }

    /// The test: what is of the client alone.
    fn test(&self) -> Result<Job> {
        let sized = |option: &str, text: &Option<String>, most: u64| match text {
            None => Ok(0),
            Some(text) => size(text).filter(|size| *size <= most).with_context(|| {
                format!("{option} {}: give a number up to {most}, with K, M, G or T", printable(text))
            }),
        };
        let most = if self.udp { *limits::UDP_BLOCK.end() } else { limits::TCP_BLOCK };
        let len = sized("-l", &self.length, most)?;
        if self.udp && len != 0 && !limits::UDP_BLOCK.contains(&len) {
            bail!("-l {len}: a datagram has 16 bytes at least, for its time and number");
        }
        let (bits, burst) = self.rate()?;
        let (bytes, blocks) = (sized("-n", &self.bytes, u64::MAX)?, sized("-k", &self.blockcount, u64::MAX)?);
        let fq_rate = match &self.fq_rate {
            None => 0,
            Some(text) => endpoint::iperf3::units::rate(text)
                .with_context(|| format!("--fq-rate {}: give bits a second, 100M", printable(text)))?,
        };
        if let Some(seconds) = self.time.filter(|seconds| *seconds > limits::SECONDS) {
            bail!("-t {seconds}: a test lasts a day at most, or for ever with 0");
        }
        refuse(&[
            ("-Z", self.zerocopy && self.udp, "datagrams are sent with --gsro"),
            ("-N", self.no_delay && self.udp, "it is TCP's: leave it out"),
            ("--gsro", self.gsro && !self.udp, "TCP has it by itself (`ethtool -k`): leave it out"),
        ])?;
        let some = |number: u64| (number > 0).then(|| number.into());
        Ok(Job {
            udp: self.udp,
            bitrate: bits.map(|bits| BitRate(bits).into()),
            burst,
            fq_rate: (fq_rate > 0).then(|| BitRate(fq_rate).into()),
            connect_timeout: self.connect_timeout.map(ms),
            time: self.time.map(|seconds| TimeOrZero(Duration::from_secs(seconds.into())).into()),
            bytes: some(bytes),
            blockcount: some(blocks),
            length: some(len),
            cport: self.cport,
            parallel: Some(self.parallel),
            reverse: self.reverse,
            bidir: self.bidir,
            window: some(sized("-w", &self.window, limits::WINDOW)?),
            congestion: self.congestion.clone(),
            set_mss: self.set_mss,
            no_delay: self.no_delay,
            tos: Some(self.tos()?).filter(|tos| *tos > 0),
            flowlabel: Some(self.flow_label()?).filter(|label| *label > 0),
            zerocopy: self.zerocopy,
            omit: (self.omit > 0).then(|| Duration::from_secs(self.omit.into()).into()),
            udp_counters_64bit: self.udp_counters_64bit,
            repeating_payload: self.repeating_payload,
            dont_fragment: self.dont_fragment,
            skip_rx_copy: self.skip_rx_copy,
            gsro: self.gsro,
            ..Job::default()
        })
    }
}

fn ms(milliseconds: u64) -> Written<TimeOrZero> {
    TimeOrZero(Duration::from_millis(milliseconds)).into()
}

/// As C reads it: decimal, octal with 0, hexadecimal with 0x.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

/// RFC 4594's names, and those of the old type of service.
fn dscp(name: &str) -> Option<u8> {
    let digits: Vec<u8> = name.bytes().skip(2).filter_map(|c| c.checked_sub(b'0')).collect();
    match (name.get(..2)?, &*digits) {
        ("af", [class @ 1..=4, drop @ 1..=3]) if name.len() == 4 => Some(class * 8 + drop * 2),
        ("cs", [class @ 0..=7]) if name.len() == 3 => Some(class * 8),
        _ => match name {
            "ef" => Some(46),
            "va" => Some(44),
            "lowdelay" => Some(4),
            "throughput" => Some(2),
            "reliability" => Some(1),
            _ => None,
        },
    }
}

/// `HOST%DEV`: the interface belongs to a link-local address, and is the socket's for others.
fn with_device(text: &str) -> (&str, Option<&str>) {
    match text.split_once('%') {
        Some((host, device)) if !text.starts_with("fe80:") => (host, Some(device)),
        _ => (text, None),
    }
}

/// Own address and interface.
fn own(args: &Iperf3) -> Result<(Option<IpAddr>, Option<String>)> {
    let (mut address, mut device) = (None, args.bind_dev.clone());
    if let Some(text) = &args.bind {
        let (host, of) = with_device(text);
        let found = host.parse().ok().or_else(|| {
            std::net::ToSocketAddrs::to_socket_addrs(&(host, 0)).ok()?.next().map(|found| found.ip())
        });
        address =
            Some(found.with_context(|| format!("-B {}: give an address of this host", printable(text)))?);
        device = device.or(of.map(str::to_owned));
    }
    Ok((address, device))
}

/// Own core, and the server's.
fn cores(args: &Iperf3) -> Result<(Option<u32>, Option<u32>)> {
    let Some(text) = &args.affinity else { return Ok((None, None)) };
    let wrong = || format!("-A {}: give a core of this host, and of the server: 0,1", printable(text));
    let (own, server) =
        text.split_once([',', '/']).map_or((text.as_str(), None), |(own, of)| (own, Some(of)));
    let core = |text: &str| text.parse().ok().map(Some).with_context(wrong);
    Ok((if own.is_empty() { None } else { core(own)? }, server.map_or(Ok(None), core)?))
}

/// `--cntl-ka[=IDLE/INTV/CNT]`; what is left out is as the kernel has it.
fn keep_alive(args: &Iperf3) -> Result<Option<Written<KeepAlive>>> {
    let Some(given) = &args.cntl_ka else { return Ok(None) };
    let text = given.as_deref().unwrap_or("//");
    text.parse().map(Some).map_err(|why| anyhow::anyhow!("--cntl-ka={}: {why}", printable(text)))
}

/// The seconds from report to report.
fn interval(args: &Iperf3) -> Option<Written<TimeOrZero>> {
    Duration::try_from_secs_f64(args.interval).ok().map(|time| TimeOrZero(time).into())
}

/// The client's test, and what it says besides.
pub fn client(args: &Iperf3) -> Result<(Job, Words)> {
    let asking = &args.asking;
    let (host, of) = with_device(args.client.as_deref().unwrap_or_default());
    let (bind, device) = own(args)?;
    let (core, server_core) = cores(args)?;
    if args.file.is_some() && asking.udp {
        bail!("-F is not supported with -u: a file is sent over TCP");
    }
    let job = Job {
        host: host.to_owned(),
        port: Some(args.port),
        bind,
        bind_dev: device.or(of.map(str::to_owned)),
        family: asking.family(),
        mptcp: args.mptcp,
        affinity: core,
        server_affinity: server_core,
        interval: interval(args),
        file: args.file.clone(),
        rcv_timeout: Some(Duration::from_millis(args.rcv_timeout).into()),
        snd_timeout: args.snd_timeout.map(ms),
        cntl_ka: keep_alive(args)?,
        ..asking.test()?
    };
    iperf3::burst_fits(&job).map_err(|said| anyhow::anyhow!("-b: {said}"))?;
    let mut words = Words {
        token: None,
        title: asking.title.clone(),
        extra_data: asking.extra_data.clone(),
        server_output: asking.get_server_output,
    };
    if let (Some(user), Some(key)) = (&asking.username, &asking.rsa_public_key_path) {
        words.token = Some(auth::token(user, key, args.use_pkcs1_padding)?);
    }
    Ok((job, words))
}

/// The server.
pub fn server(args: &Iperf3) -> Result<ServerJob> {
    let serving = &args.serving;
    let (bind, bind_dev) = own(args)?;
    let limit = match &serving.server_bitrate_limit {
        None => None,
        Some(text) => {
            let (bits, over) = text.split_once('/').map_or((text.as_str(), "5"), |(bits, over)| (bits, over));
            let limit = rate(bits).zip(over.parse().ok().filter(|over| (1..=60).contains(over)));
            Some(limit.with_context(|| {
                format!(
                    "--server-bitrate-limit {}: give bits a second, and over how many seconds: 100M/5",
                    printable(text)
                )
            })?)
        }
    };
    let idle = serving.idle_timeout.filter(|_| serving.one_off);
    let longest = serving.server_max_duration;
    Ok(ServerJob {
        port: Some(args.port),
        bind,
        bind_dev,
        family: args.asking.family(),
        mptcp: args.mptcp,
        affinity: cores(args)?.0,
        interval: interval(args),
        file: args.file.clone(),
        rcv_timeout: Some(Duration::from_millis(args.rcv_timeout).into()),
        snd_timeout: args.snd_timeout.map(ms),
        cntl_ka: keep_alive(args)?,
        one_off: serving.one_off,
        idle_timeout: idle.map(|idle| Duration::from_secs(idle).into()),
        server_bitrate_limit: limit.map(|(bits, _)| BitRate(bits).into()),
        averaged_over: limit.map(|(_, over)| Duration::from_secs(over).into()),
        server_max_duration: longest.map(|longest| Duration::from_secs(longest.into()).into()),
    })
}

/// Who may test with the server.
pub fn check(args: &Iperf3) -> Result<Option<Box<Check>>> {
    let serving = &args.serving;
    match (&serving.rsa_private_key_path, &serving.authorized_users_path) {
        (Some(key), Some(users)) => {
            auth::check(key, users, serving.time_skew_threshold, args.use_pkcs1_padding).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(["52", "064", "0x34", "0"].map(number), [Some(52), Some(52), Some(52), Some(0)]);
        assert!(["", "09", "0x", "-1", "ef"].iter().all(|text| number(text).is_none()));
    }

    #[test]
    fn names_of_service_classes_are_numbers() {
        assert_eq!(["af11", "af43", "cs0", "cs7", "ef", "va"].map(dscp), [10, 38, 0, 56, 46, 44].map(Some));
        assert!(["af44", "af1", "cs8", "af111", "é", "x"].iter().all(|name| dscp(name).is_none()));
    }

    #[test]
    fn interfaces_stand_behind_addresses() {
        assert_eq!(with_device("192.0.2.1%eth0"), ("192.0.2.1", Some("eth0")));
        assert_eq!(with_device("fe80::1%eth0"), ("fe80::1%eth0", None));
        assert_eq!(with_device("host"), ("host", None));
    }
}
