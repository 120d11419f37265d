//! A job that plays the clients of captured TCP connections.

use crate::check::{self, Contradiction};
use crate::consent::{self, Consent};
use crate::kind::Kind;
use crate::parts::priority;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::written::{Quantity, Written};
use settings::settings;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use wire::Mac;

words! {
    /// When the client speaks.
    Timing {
        /// It waits as long as it did.
        Captured = "captured",
        /// As soon as it has heard what it waited for.
        Fast = "fast",
    }
}

words! {
    /// What other answers than the captured ones are.
    Answers {
        /// A shortfall.
        Same = "same",
        /// No shortfall.
        Any = "any",
    }
}

/// The clients of captured TCP connections, against a real server.
#[settings]
pub struct Live {
    /// The capture: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[setting(typed_by_place, value = "FILE")]
    pub capture: PathBuf,
    /// The server to play against: 10.0.0.2:80, [2001:db8::2]:80; without a port, the captured one. Nothing is ever sent
    /// to anybody else.
    #[setting(value = "ADDRESS[:PORT]")]
    pub to: Written<Server>,
    /// Through this interface (IFACE, or IFACE@NAMESPACE).
    #[setting(value = "IFACE")]
    pub on: String,
    /// Which connection: its number, from 0 as Wireshark's tcp.stream counts, or CLIENT:PORT-SERVER:PORT. Default: the
    /// first that begins with a SYN.
    #[setting(value = "N|CLIENT-SERVER", excludes("all"))]
    pub flow: Option<Written<Flow>>,
    /// All connections, each when it began in the capture; with `.timing` fast up to 32 side by side.
    pub all: bool,
    /// The address to play from. One that is none of this host's is answered for (ARP, neighbour discovery), so an unused
    /// one of the server's network will do. Default: the host's own.
    #[setting(value = "ADDRESS")]
    pub from: Option<IpAddr>,
    /// The port to play from: a number, random, or captured (the captured client's).
    #[setting(value = "PORT", default = "random")]
    pub port: Option<Written<Port>>,
    /// The Ethernet address to send to. Default: the next hop's, which is asked for.
    #[setting(value = "MAC")]
    pub mac: Option<Written<Mac>>,
    /// When the client speaks: captured waits as long as it did, fast as soon as it has heard what it waited for.
    #[setting(value = "HOW", default = "captured")]
    #[serde(default)]
    pub timing: Timing,
    /// Other answers than the captured ones: same takes them for a shortfall (exit status 1), any does not.
    #[setting(value = "WHICH", default = "same")]
    #[serde(default)]
    pub answers: Answers,
    /// Parts of answers that may differ: a regular expression over bytes, where ^ and $ are bounds of lines, as in
    /// '^Date: .*$'. May be given several times.
    #[setting(value = "REGEX")]
    pub ignore: Vec<String>,
    /// Give up when the server takes or says nothing for this long. An answer that took longer in the capture may take twice
    /// as long.
    #[setting(value = "TIME", default = "10s")]
    pub timeout: Option<Written<Duration>>,
    /// An answer shorter than the captured one is over when the server says nothing more for this long (or for twice the
    /// longest pause that it made in the capture).
    #[setting(value = "TIME", default = "1s")]
    pub quiet_time: Option<Written<Duration>>,
    /// Send a segment again so often before the server is given up.
    #[setting(value = "N", default = "5")]
    pub retries: Option<u32>,
    /// Where the capture lacks some of what the client said, play up to there. Default: refuse the connection.
    pub until_gap: bool,
    /// Of a damaged capture take what is sound before the damage.
    pub skip_corrupt: bool,
    #[part]
    priority: priority!(),
    /// Write what is sent and heard into a capture file: pcap, or pcapng if it is named so; .gz and .zst compress.
    #[setting(short = 'w', value = "FILE")]
    pub write: Option<PathBuf>,
    /// Yes, play on this interface although it carries the default route or your login.
    #[setting(value = "IFACE", expert)]
    pub yes_disrupt: Vec<String>,
}

/// The server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Its address.
    pub address: IpAddr,
    /// Its port; without one, the captured one.
    pub port: Option<u16>,
}

/// None, before one is named.
impl Default for Written<Server> {
    fn default() -> Self {
        Written::of(String::new(), Server { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: None })
    }
}

impl Quantity for Server {
    const NAME: &'static str = "Server";
    const WRITTEN: &'static str = "An address, and a port: 10.0.0.2:80, [2001:db8::2]:80.";
    const EXAMPLES: &'static [&'static str] = &["10.0.0.2:80", "[2001:db8::2]:80"];

    fn read(text: &str) -> Result<Server, String> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let server = match (text.parse::<SocketAddr>(), bare.parse::<IpAddr>()) {
            (Ok(both), _) => Server { address: both.ip(), port: Some(both.port()) },
            (_, Ok(address)) => Server { address, port: None },
            _ => return Err("write an address and a port, as 10.0.0.2:80 or [2001:db8::2]:80".to_owned()),
        };
        let ip = server.address;
        let broadcast = matches!(ip, IpAddr::V4(address) if address.is_broadcast());
        if ip.is_multicast() || ip.is_unspecified() || broadcast || server.port == Some(0) {
            return Err("TCP needs the address and port of one host".to_owned());
        }
        Ok(server)
    }
}

/// A connection of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Its number, from 0 as Wireshark's tcp.stream counts.
    Number(u64),
    /// From the first to the second.
    Between(SocketAddr, SocketAddr),
}

impl Quantity for Flow {
    const NAME: &'static str = "Flow";
    const WRITTEN: &'static str = "A connection: its number, or CLIENT:PORT-SERVER:PORT.";
    const EXAMPLES: &'static [&'static str] = &["0", "10.1.1.1:1234-10.9.9.9:80"];

    fn read(text: &str) -> Result<Flow, String> {
        if let Ok(number) = text.parse() {
            return Ok(Flow::Number(number));
        }
        let pair = text.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (client, server) =
            pair.ok_or("write a number, or CLIENT:PORT-SERVER:PORT as in 10.1.1.1:1234-10.9.9.9:80")?;
        Ok(Flow::Between(client, server))
    }
}

/// Where it is played from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// This port.
    Number(u16),
    /// Any.
    Random,
    /// The captured client's.
    Captured,
}

impl Quantity for Port {
    const NAME: &'static str = "Port";
    const WRITTEN: &'static str = "A port from 1 to 65535, random, or captured.";
    const EXAMPLES: &'static [&'static str] = &["random", "captured", "40000"];

    fn read(text: &str) -> Result<Port, String> {
        match text {
            "random" => Ok(Port::Random),
            "captured" => Ok(Port::Captured),
            number => match number.parse() {
                Ok(0) | Err(_) => Err("give a port from 1 to 65535, random, or captured".to_owned()),
                Ok(number) => Ok(Port::Number(number)),
            },
        }
    }
}

impl Kind for Live {
    fn settings() -> &'static [Member] {
        Live::MEMBERS
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::live(self)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn asks(&self) -> Consent {
        let addresses = vec![self.to.to_string()];
        Consent { write: consent::written(self.write.as_deref()), addresses, ..Consent::default() }
    }
}
