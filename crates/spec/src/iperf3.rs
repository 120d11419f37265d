//! Tests with a server of iperf3's protocol, and such a server. Their settings have the names of iperf3's long options.

use crate::check::{Contradiction, hold};
use crate::consent::Consent;
use crate::endpoint::EndpointRate;
use crate::kind::Kind;
use crate::parts::iperf3_side;
use crate::setting::{Member, Settings as _};
use crate::written::{Quantity, Written};
use settings::settings;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A time, or none of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeOrZero(pub Duration);

impl Quantity for TimeOrZero {
    const NAME: &'static str = "TimeOrZero";
    const WRITTEN: &'static str = "A time: 5s, 200ms, 1m30s; or 0.";
    const EXAMPLES: &'static [&'static str] = &["5s", "200ms", "0"];

    fn read(text: &str) -> Result<TimeOrZero, String> {
        match text.trim() {
            "0" | "0s" => Ok(TimeOrZero::default()),
            text => Duration::read(text).map(TimeOrZero),
        }
    }
}

/// Bits per second, or 0 where there is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BitRate(pub u64);

impl Quantity for BitRate {
    const NAME: &'static str = "BitRate";
    const WRITTEN: &'static str = "Bits of payload per second: 500M or 500mbps; 0: without a bound.";
    const EXAMPLES: &'static [&'static str] = &["500mbps", "0"];

    fn read(text: &str) -> Result<BitRate, String> {
        // However high: `From` writes it so.
        let plain = match text.trim() {
            "0" => Some("0"),
            text => text.strip_suffix("bps"),
        };
        if let Some(Ok(bits)) = plain.map(str::parse) {
            return Ok(BitRate(bits));
        }
        match EndpointRate::read(text) {
            Ok(EndpointRate::Bits(bits)) => Ok(BitRate(bits)),
            Err(why) if why.contains("count bytes") => Err(why),
            _ => Err(format!("`{text}` is no rate of bits: write 500M or 500mbps, or 0 for no bound")),
        }
    }
}

/// How a control connection's peer is asked whether it is still there (SO_KEEPALIVE). What is left out is as the kernel has it
/// (net.ipv4.tcp_keepalive_*).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Seconds without a word until it is asked (TCP_KEEPIDLE).
    pub idle: Option<u32>,
    /// Seconds until it is asked again (TCP_KEEPINTVL).
    pub interval: Option<u32>,
    /// How often it is asked (TCP_KEEPCNT).
    pub count: Option<u32>,
}

impl Quantity for KeepAlive {
    const NAME: &'static str = "KeepAlive";
    const WRITTEN: &'static str =
        "IDLE/INTV/CNT, seconds and tries, such as 10/5/3; what is left out is the kernel's own: //.";
    const EXAMPLES: &'static [&'static str] = &["10/5/3", "//"];

    fn read(text: &str) -> Result<KeepAlive, String> {
        let wrong = || "give IDLE/INTV/CNT, seconds and tries, such as 10/5/3".to_owned();
        let mut parts = Vec::new();
        for part in text.split('/') {
            let number = match part {
                "" => None,
                // What the kernel takes.
                digits => Some(digits.parse().ok().filter(|n| (1..=32_767).contains(n)).ok_or_else(wrong)?),
            };
            parts.push(number);
        }
        if parts.len() > 3 || parts.get(2).copied().flatten().is_some_and(|count: u32| count > 127) {
            return Err(wrong());
        }
        let at = |n: usize| parts.get(n).copied().flatten();
        if let (Some(idle), Some(interval), Some(count)) = (at(0), at(1), at(2))
            && idle <= interval.saturating_mul(count)
        {
            return Err("as iperf3 has it, IDLE is longer than INTV times CNT".to_owned());
        }
        Ok(KeepAlive { idle: at(0), interval: at(1), count: at(2) })
    }
}

/// A test with a server of iperf3's protocol.
#[settings]
pub struct Iperf3 {
    /// The server: a name or an address.
    #[setting(typed_by_place, value = "HOST", consent)]
    #[serde(default)]
    pub host: String,
    #[part]
    pub side: iperf3_side!(),
    /// Datagrams of UDP instead of streams of TCP.
    #[setting(heading = "Traffic")]
    pub udp: bool,
    /// Rate of each stream: 100mbps; 0: as fast as it goes. Default: 0, and 1048576bps with `.udp`.
    #[setting(value = "RATE", heading = "Traffic")]
    pub bitrate: Option<Written<BitRate>>,
    /// Blocks that leave at once where there is a rate.
    #[setting(value = "N", least = 1, most = 1000, heading = "Traffic")]
    pub burst: Option<u32>,
    /// The kernel paces each connection that sends (SO_MAX_PACING_RATE): 500mbps.
    #[setting(value = "RATE", expert)]
    pub fq_rate: Option<Written<BitRate>>,
    /// The control connection must be there within this time.
    #[setting(value = "TIME", expert)]
    pub connect_timeout: Option<Written<TimeOrZero>>,
    /// Measure for this long, in whole seconds; 0: until it is stopped. Default: 10s, or until an amount is done.
    #[setting(value = "TIME", heading = "Traffic")]
    pub time: Option<Written<TimeOrZero>>,
    /// End when this many bytes were sent, or received.
    #[setting(value = "BYTES", heading = "Traffic")]
    pub bytes: Option<Written<u64>>,
    /// End when this many blocks were sent, or received.
    #[setting(value = "N", heading = "Traffic")]
    pub blockcount: Option<Written<u64>>,
    /// Bytes of a block, or of a datagram. Default: 131072; datagrams as long as the path takes them whole.
    #[setting(value = "BYTES", heading = "Traffic")]
    pub length: Option<Written<u64>>,
    /// Own port of the first data connection; the next ones follow.
    #[setting(value = "PORT", least = 1, expert)]
    pub cport: Option<u16>,
    /// Streams in one direction. Default: 1.
    #[setting(value = "N", least = 1, most = 128, heading = "Traffic")]
    pub parallel: Option<u32>,
    /// The server sends.
    #[setting(heading = "Traffic")]
    pub reverse: bool,
    /// Both ends send.
    #[setting(heading = "Traffic")]
    pub bidir: bool,
    /// Socket buffers of both ends, in bytes.
    #[setting(value = "BYTES", expert)]
    pub window: Option<Written<u64>>,
    /// Congestion control at both ends: cubic, bbr, reno, ...
    #[setting(value = "NAME", expert)]
    pub congestion: Option<String>,
    /// Largest segment of TCP.
    #[setting(value = "BYTES", least = 88, most = 32767, expert)]
    pub set_mss: Option<u32>,
    /// TCP_NODELAY.
    #[setting(expert)]
    pub no_delay: bool,
    /// IP's type of service: 0 to 255.
    #[setting(value = "N", expert)]
    pub tos: Option<u8>,
    /// IPv6's flow label.
    #[setting(value = "N", least = 1, most = 1048575, expert)]
    pub flowlabel: Option<u32>,
    /// The server's core for this test.
    #[setting(value = "CPU", expert)]
    pub server_affinity: Option<u32>,
    /// Send without a copy (sendfile).
    #[setting(expert)]
    pub zerocopy: bool,
    /// Run for this long before anything counts, in whole seconds.
    #[setting(value = "TIME", heading = "Measure")]
    pub omit: Option<Written<Duration>>,
    /// Numbers of 64 bits in datagrams.
    #[setting(expert)]
    pub udp_counters_64bit: bool,
    /// Digits for payload, which can be compressed.
    #[setting(expert)]
    pub repeating_payload: bool,
    /// IP's "do not fragment".
    #[setting(expert)]
    pub dont_fragment: bool,
    /// Receivers leave the data in the kernel (MSG_TRUNC): faster than any program that reads it.
    #[setting(expert)]
    pub skip_rx_copy: bool,
    /// The kernel cuts large buffers into datagrams (UDP_SEGMENT).
    #[setting(expert)]
    pub gsro: bool,
}

/// A server of iperf3's protocol.
#[settings]
pub struct Iperf3Server {
    #[part]
    pub side: iperf3_side!(),
    /// End after one test.
    pub one_off: bool,
    /// With `.one_off`, end when no client has come for this long.
    #[setting(value = "TIME", needs("one_off"))]
    pub idle_timeout: Option<Written<Duration>>,
    /// Refuse or end a test that asks for or takes more than this, of all its streams together: 500mbps.
    #[setting(value = "RATE")]
    pub server_bitrate_limit: Option<Written<BitRate>>,
    /// That bound holds for the mean over this many whole seconds. Default: 5s.
    #[setting(value = "TIME", needs("server_bitrate_limit"), expert)]
    pub averaged_over: Option<Written<Duration>>,
    /// Refuse or end a test that lasts longer, in whole seconds.
    #[setting(value = "TIME")]
    pub server_max_duration: Option<Written<Duration>>,
}

/// A time that the protocol counts in seconds.
fn is_broken(time: Option<Duration>) -> bool {
    time.is_some_and(|time| time.subsec_nanos() > 0)
}

/// What the two have alike.
fn side(
    interval: Option<&Written<TimeOrZero>>,
    received: Option<&Written<Duration>>,
) -> Result<(), Contradiction> {
    let interval = interval.map_or(1.0, |interval| interval.0.as_secs_f64());
    hold(
        "",
        &[
            (
                "interval",
                interval != 0.0 && !(0.1..=60.0).contains(&interval),
                "an interval lasts 0.1 to 60 seconds, or 0 for none",
            ),
            (
                "rcv_timeout",
                received.is_some_and(|time| **time < Duration::from_millis(100)),
                "it is 100ms at least",
            ),
        ],
    )
}

/// How much, and how long.
fn amounts(job: &Iperf3) -> Result<(), Contradiction> {
    let time = job.time.as_ref().map(|time| time.0);
    let length = job.length.as_deref().copied();
    let ends = [time.is_some_and(|time| !time.is_zero()), job.bytes.is_some(), job.blockcount.is_some()];
    let in_seconds = "the protocol counts whole seconds";
    hold(
        "",
        &[
            ("host", job.host.is_empty(), "where is the server? Name HOST"),
            ("bidir", job.bidir && job.reverse, "either the server sends, or both do; leave out `.reverse`"),
            (
                "bytes",
                ends.iter().filter(|given| **given).count() > 1,
                "a test ends by `.time`, `.bytes` or `.blockcount`; give one of them",
            ),
            (
                "time",
                time.is_some_and(|time| time > Duration::from_secs(86_400)),
                "a test lasts a day at most, or without end with 0",
            ),
            ("time", is_broken(time), in_seconds),
            (
                "omit",
                job.omit.as_deref().is_some_and(|time| *time > Duration::from_secs(600)),
                "it is 600s at most",
            ),
            ("omit", is_broken(job.omit.as_deref().copied()), in_seconds),
            (
                "length",
                job.udp && length.is_some_and(|length| !(16..=65_507).contains(&length)),
                "a datagram has 16 bytes at least, for its time and number, and at most 65507",
            ),
            ("length", length.is_some_and(|length| length > 1 << 20), "it is at most 1 MiB"),
            (
                "window",
                job.window.as_deref().is_some_and(|window| *window > 512 << 20),
                "it is at most 512 MiB",
            ),
        ],
    )
}

/// Numbers that the protocol has no room for, or no meaning.
fn numbers(job: &Iperf3) -> Result<(), Contradiction> {
    let outside = |number: Option<u32>, least: u32, most: u32| {
        number.is_some_and(|number| !(least..=most).contains(&number))
    };
    hold(
        "",
        &[
            ("port", job.port == Some(0), "it is 1 to 65535"),
            ("cport", job.cport == Some(0), "it is 1 to 65535"),
            ("parallel", outside(job.parallel, 1, 128), "it is 1 to 128"),
            ("burst", outside(job.burst, 1, 1000), "it is 1 to 1000"),
            ("set_mss", outside(job.set_mss, 88, 32_767), "it is 88 to 32767"),
            ("flowlabel", outside(job.flowlabel, 1, 1_048_575), "it is 1 to 1048575"),
        ],
    )
}

/// What is of TCP alone, or of UDP.
fn transports(job: &Iperf3) -> Result<(), Contradiction> {
    hold(
        "",
        &[
            ("zerocopy", job.zerocopy && job.udp, "datagrams are sent with `.gsro`"),
            ("no_delay", job.no_delay && job.udp, "it is of TCP only"),
            ("gsro", job.gsro && !job.udp, "TCP has it by itself; leave it out"),
            ("file", job.file.is_some() && job.udp, "a file is sent over TCP; leave out `.udp`"),
        ],
    )
}

impl Kind for Iperf3 {
    fn settings() -> &'static [Member] {
        Iperf3::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &[]
    }

    fn asks(&self) -> Consent {
        let files = || self.file.iter().cloned().collect();
        let [sends, receives] = [self.bidir || !self.reverse, self.bidir || self.reverse];
        Consent {
            addresses: (!self.host.is_empty()).then(|| self.host.clone()).into_iter().collect(),
            // Its words go to the server; what the server sends is put in their place.
            read: if sends { files() } else { Vec::new() },
            write: if receives { files() } else { Vec::new() },
            ..Consent::default()
        }
    }

    fn check(&self) -> Result<(), Contradiction> {
        amounts(self)?;
        numbers(self)?;
        transports(self)?;
        side(self.interval.as_ref(), self.rcv_timeout.as_ref())
    }
}

impl Kind for Iperf3Server {
    fn settings() -> &'static [Member] {
        Iperf3Server::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        &[]
    }

    fn asks(&self) -> Consent {
        // A client says whether it is sent or written.
        let files: Vec<PathBuf> = self.file.as_deref().map(Path::to_owned).into_iter().collect();
        Consent { read: files.clone(), write: files, ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        let averaged = self.averaged_over.as_deref().map_or(5, Duration::as_secs);
        let in_seconds = "the protocol counts whole seconds";
        hold(
            "",
            &[
                ("port", self.port == Some(0), "it is 1 to 65535"),
                (
                    "idle_timeout",
                    self.idle_timeout.is_some() && !self.one_off,
                    "it goes with `.one_off` only",
                ),
                ("averaged_over", !(1..=60).contains(&averaged), "it is 1s to 60s"),
                ("averaged_over", is_broken(self.averaged_over.as_deref().copied()), in_seconds),
                ("server_max_duration", is_broken(self.server_max_duration.as_deref().copied()), in_seconds),
                (
                    "server_max_duration",
                    self.server_max_duration
                        .as_deref()
                        .is_some_and(|most| *most > Duration::from_secs(86_400)),
                    "it is a day at most",
                ),
            ],
        )?;
        side(self.interval.as_ref(), self.rcv_timeout.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{File, Job};

    fn job(members: &str) -> Result<Job, String> {
        let text = format!("{{schema: netdyno.job/1, {members}}}");
        File::read(&text, "job").map(|mut file| file.jobs.remove(0)).map_err(|bad| bad.to_string())
    }

    #[test]
    fn a_test_ends_once_and_its_settings_fit_each_other() {
        assert!(job("kind: iperf3, host: a, bytes: 10M, udp: true, bitrate: 0, interval: 0").is_ok());
        for (members, wrong) in [
            ("host: ''", "host"),
            ("host: a, bytes: 5, blockcount: 5", "bytes"),
            ("host: a, bytes: 5, time: 5s", "bytes"),
            ("host: a, time: 2d", "time"),
            ("host: a, time: 1500ms", "time"),
            ("host: a, omit: 100ms", "omit"),
            ("host: a, zerocopy: true, udp: true", "zerocopy"),
            ("host: a, gsro: true", "gsro"),
            ("host: a, parallel: 0", "parallel"),
            ("host: a, burst: 1001", "burst"),
            ("host: a, port: 0", "port"),
            ("host: a, interval: 10ms", "interval"),
            ("host: a, udp: true, length: 15", "length"),
            ("host: a, file: x, udp: true", "file"),
            ("host: a, bitrate: 5", "bitrate"),
            ("host: a, bitrate: 5kpps", "bitrate"),
        ] {
            let said = job(&format!("kind: iperf3, {members}")).expect_err(members);
            assert!(said.starts_with(&format!("{wrong}: ")), "{members}: {said}");
        }
        for (members, wrong) in [
            ("idle_timeout: 5s", "idle_timeout"),
            ("server_bitrate_limit: 5mbps, averaged_over: 61s", "averaged_over"),
            ("server_max_duration: 10ms", "server_max_duration"),
        ] {
            let said = job(&format!("kind: iperf3-server, {members}")).expect_err(members);
            assert!(said.starts_with(&format!("{wrong}: ")), "{members}: {said}");
        }
    }

    #[test]
    fn a_file_is_sent_or_written_as_the_direction_says() {
        let asks = |members: &str| {
            let asks = job(members).expect(members).asks();
            (asks.addresses.len(), asks.read.len(), asks.write.len())
        };
        assert_eq!(asks("kind: iperf3, host: a, file: /etc/shadow"), (1, 1, 0));
        assert_eq!(asks("kind: iperf3, host: a, file: /etc/shadow, reverse: true"), (1, 0, 1));
        assert_eq!(asks("kind: iperf3, host: a, file: /etc/shadow, bidir: true"), (1, 1, 1));
        assert_eq!(asks("kind: iperf3-server, file: /etc/shadow"), (0, 1, 1));
    }

    #[test]
    fn quantities_of_numbers_are_read_as_they_were_made() {
        for bits in [0, 1, 1_048_576, u64::MAX] {
            let made = Written::from(BitRate(bits));
            assert_eq!(made.text().parse::<Written<BitRate>>().as_ref(), Ok(&made));
        }
        assert_eq!(BitRate::read("1.5 Gbit/s"), Ok(BitRate(1_500_000_000)));
        assert!(BitRate::read("5MB/s").is_err_and(|why| why.contains("count bytes")));
        for time in [0, 1, 1_000, 90_000_000_000, 1_500_000_000].map(Duration::from_nanos) {
            let made = Written::from(TimeOrZero(time));
            assert_eq!(made.text().parse::<Written<TimeOrZero>>().as_ref(), Ok(&made));
        }
        assert_eq!(Written::from(Duration::from_millis(1500)).text(), "1500ms");
        assert_eq!(
            KeepAlive::read("10//3"),
            Ok(KeepAlive { idle: Some(10), interval: None, count: Some(3) })
        );
        assert_eq!(KeepAlive::read("//"), Ok(KeepAlive::default()));
        assert!(KeepAlive::read("10/5/2").is_err() && KeepAlive::read("1/2/3/4").is_err());
    }
}
