//! The words of `netdyno live`.

use super::{Output, word};
use clap::{Args, ValueHint};
use spec::{Answers, Flow, Port, Server, Timing, Written};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct Live {
    /// The capture: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The server to play against: 10.0.0.2:80, [2001:db8::2]:80; without a port, the captured one. Nothing is ever sent
    /// to anybody else.
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub to: Written<Server>,
    /// Through this interface (IFACE, or IFACE@NAMESPACE).
    #[arg(long = "on", value_name = "IFACE")]
    pub interface: String,
    /// Which connection: its number, from 0 as Wireshark's tcp.stream counts, or CLIENT:PORT-SERVER:PORT. Default: the
    /// first that begins with a SYN.
    #[arg(long, value_name = "N|CLIENT-SERVER", conflicts_with = "all")]
    pub flow: Option<Written<Flow>>,
    /// All connections, each when it began in the capture; with --timing fast up to 32 side by side.
    #[arg(long)]
    pub all: bool,
    /// The address to play from. One that is none of this host's is answered for (ARP, neighbour discovery), so an unused
    /// one of the server's network will do. Default: the host's own.
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<IpAddr>,
    /// The port to play from: a number, random, or captured (the captured client's).
    #[arg(long, value_name = "PORT", default_value = "random")]
    pub port: Written<Port>,
    /// The Ethernet address to send to. Default: the next hop's, which is asked for.
    #[arg(long, value_name = "MAC")]
    pub mac: Option<Written<wire::Mac>>,
    /// When the client speaks: captured waits as long as it did, fast as soon as it has heard what it waited for.
    #[arg(long, value_name = "HOW", default_value = "captured", value_parser = word::<Timing>())]
    pub timing: Timing,
    /// Other answers than the captured ones: same takes them for a shortfall (exit status 1), any does not.
    #[arg(long, value_name = "WHICH", default_value = "same", value_parser = word::<Answers>())]
    pub answers: Answers,
    /// Parts of answers that may differ: a regular expression over bytes, where ^ and $ are bounds of lines, as in
    /// '^Date: .*$'. May be given several times.
    #[arg(long, value_name = "REGEX")]
    pub ignore: Vec<String>,
    /// Give up when the server takes or says nothing for so long. An answer that took longer in the capture may take twice
    /// as long.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub timeout: Written<Duration>,
    /// An answer shorter than the captured one is over when the server says nothing more for so long (or for twice the
    /// longest pause that it made in the capture).
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub quiet_time: Written<Duration>,
    /// Send a segment again so often before the server is given up.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub retries: u32,
    /// Yes, play on this interface although it carries the default route or your login.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    /// Where the capture lacks some of what the client said, play up to there. Default: refuse the connection.
    #[arg(long)]
    pub until_gap: bool,
    /// Of a damaged capture take what is sound before the damage.
    #[arg(long)]
    pub skip_corrupt: bool,
    /// Write what is sent and heard into a capture file: pcap, or pcapng if it is named so; .gz and .zst compress.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}
