//! The words of `edit` and of `tcprewrite`, which do the same.

use super::declared::Asked;
use clap::{Args, ValueEnum, ValueHint};
use spec::VlanKind;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Edit {
    /// The capture to edit: pcap or pcapng, plain, gzip or zstd; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input: PathBuf,
    /// The capture to write: pcap, or pcapng if it is named so; .gz and .zst compress; - is standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: PathBuf,
    /// Which side sent each frame: a cache file of tcpprep. Where two values may be given, the first is for frames of
    /// the client, the second for those of the server. Without it all are the client's.
    #[arg(long, value_name = "CACHE", value_hint = ValueHint::FilePath)]
    pub sides: Option<PathBuf>,
    /// Of a damaged capture edit what is sound before the damage.
    #[arg(long)]
    pub skip_corrupt: bool,
    /// Make frames of this link type. hdlc is Cisco's, ppp is in HDLC-like framing, juniper is Ethernet behind
    /// Juniper's header; ppp and raw take IP packets only. Link headers that are replaced are not edited.
    #[arg(long, value_name = "TYPE", conflicts_with = "to-ethernet")]
    pub link: Option<LinkChoice>,
    /// After all edits make fragments, segments, overlaps, chaff, losses or another order of each frame, by the rules
    /// in this file: fragroute's, one to a line. See docs/fragments.md.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub fragroute: Option<PathBuf>,
    /// Whose frames those rules are for.
    #[arg(long, value_name = "SIDE", requires_all = ["fragroute", "sides"], default_value = "both")]
    pub fragroute_sides: FragmentSides,
    /// Key of all that is random in those rules: the same seed gives the same capture.
    #[arg(long, value_name = "SEED", requires = "fragroute", default_value_t = 1)]
    pub fragroute_seed: u64,
    #[command(flatten)]
    pub edits: Asked<spec::Edits>,
}

/// Whose frames are fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FragmentSides {
    #[value(name = "client", alias = "c2s")]
    Client,
    #[value(name = "server", alias = "s2c")]
    Server,
    #[value(name = "both")]
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkChoice {
    Ethernet,
    Hdlc,
    Ppp,
    Juniper,
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FixLengthChoice {
    #[value(name = "pad")]
    Pad,
    #[value(name = "truncate", alias = "trunc")]
    Truncate,
    #[value(name = "delete", alias = "del")]
    Delete,
}

/// tcprewrite's options, as they are. Long names may be cut short. docs/compat.md says what differs.
#[derive(Debug, Args)]
#[command(infer_long_args = true)]
pub struct Tcprewrite {
    /// The capture to edit.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub infile: PathBuf,
    /// The capture to write.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub outfile: PathBuf,
    /// tcpprep's cache file: which side sent each frame.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cachefile: Option<PathBuf>,
    /// Make several frames of one, by fragroute's rules.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub fragroute: Option<PathBuf>,
    /// Whose frames those rules are for: c2s, s2c or both.
    #[arg(long, value_name = "DIR", requires = "cachefile")]
    pub fragdir: Option<FragmentSides>,
    /// Key of all that is random in those rules.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub fragroute_seed: u64,
    /// No warnings.
    #[arg(short = 'w', long)]
    pub suppress_warnings: bool,
    /// Have tcpdump print the frames that were written.
    #[arg(short, long)]
    pub verbose: bool,
    /// Further options for that tcpdump.
    #[arg(short = 'A', long, value_name = "ARGS", requires = "verbose")]
    pub decode: Option<String>,
    /// Read options from a file, too: its section [TCPREWRITE].
    #[arg(long, value_name = "FILE")]
    pub load_opts: Option<String>,
    /// Write the options into a file, and do nothing else.
    #[arg(long, value_name = "FILE")]
    pub save_opts: Option<String>,
    /// Of a damaged capture edit what is sound before the damage.
    #[arg(long)]
    pub skip_corrupt: bool,
    #[command(flatten)]
    pub edits: TcprewriteEdits,
}

/// Those of tcprewrite's options that say what is done to each frame; tcpreplay-edit and tcpbridge have them, too.
#[derive(Debug, Clone, Args)]
pub struct TcprewriteEdits {
    /// Map ports: 80:8080, 8000-8999:80, 20+21:2121.
    #[arg(short = 'r', long, value_name = "FROM:TO")]
    pub portmap: Vec<String>,
    /// Scramble IP addresses.
    #[arg(short, long, value_name = "SEED")]
    pub seed: Option<u32>,
    /// Map addresses by prefix; given twice, the second is the server's.
    #[arg(short = 'N', long, value_name = "FROM:TO")]
    pub pnat: Vec<String>,
    /// Map source addresses.
    #[arg(short = 'S', long, value_name = "FROM:TO", conflicts_with = "pnat")]
    pub srcipmap: Option<String>,
    /// Map destination addresses.
    #[arg(short = 'D', long, value_name = "FROM:TO", conflicts_with = "pnat")]
    pub dstipmap: Option<String>,
    /// All addresses of the client and of the server.
    #[arg(short, long, value_name = "IP:IP")]
    pub endpoints: Option<String>,
    /// Shift TCP sequence numbers.
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u32).range(1..))]
    pub tcp_sequence: Option<u32>,
    /// Keep IP multicast addresses.
    #[arg(short = 'b', long)]
    pub skipbroadcast: bool,
    /// Compute checksums afresh.
    #[arg(short = 'C', long)]
    pub fixcsum: bool,
    /// Set the lengths in IP headers.
    #[arg(long)]
    pub fixhdrlen: bool,
    /// The MTU of --mtu-trunc.
    #[arg(short, long, value_name = "BYTES", default_value_t = 1500)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=262_144))]
    pub mtu: u32,
    /// Cut frames to the MTU.
    #[arg(long)]
    pub mtu_trunc: bool,
    /// Take the last four bytes off each frame.
    #[arg(short = 'E', long)]
    pub efcs: bool,
    /// Set, raise or lower TTL and hop limit.
    #[arg(long, value_name = "N|+N|-N", allow_hyphen_values = true)]
    pub ttl: Option<String>,
    /// IPv4 TOS byte.
    #[arg(long, value_name = "BYTE")]
    pub tos: Option<u8>,
    /// IPv6 traffic class.
    #[arg(long, value_name = "BYTE")]
    pub tclass: Option<u8>,
    /// IPv6 flow label.
    #[arg(long, value_name = "LABEL", value_parser = clap::value_parser!(u32).range(0..=0xf_ffff))]
    pub flowlabel: Option<u32>,
    /// Frames captured in part: pad, trunc or del.
    #[arg(short = 'F', long, value_name = "HOW")]
    pub fixlen: Option<FixLengthChoice>,
    /// Damage payloads at random, of one in --fuzz-factor frames.
    #[arg(long, value_name = "SEED")]
    pub fuzz_seed: Option<u32>,
    /// Damage one in this many frames (8).
    #[arg(long, value_name = "N", requires = "fuzz_seed", value_parser = clap::value_parser!(u32).range(1..))]
    pub fuzz_factor: Option<u32>,
    /// Keep Ethernet broadcast and multicast addresses.
    #[arg(long)]
    pub skipl2broadcast: bool,
    /// Output link type: enet, hdlc, jnpr_eth, pppserial, raw or user.
    #[arg(long, value_name = "TYPE")]
    pub dlt: Option<String>,
    /// Destination Ethernet address, of the client's frames and of the server's.
    #[arg(long, value_name = "MAC[,MAC]")]
    pub enet_dmac: Option<String>,
    /// Source Ethernet address, of the client's frames and of the server's.
    #[arg(long, value_name = "MAC[,MAC]")]
    pub enet_smac: Option<String>,
    /// Replace an Ethernet address wherever it stands.
    #[arg(long, value_name = "OLD,NEW")]
    pub enet_subsmac: Vec<String>,
    /// Scramble Ethernet addresses.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["enet_smac", "enet_dmac", "enet_subsmac"])]
    pub enet_mac_seed: Option<u32>,
    /// Keep the first bytes of scrambled addresses.
    #[arg(long, value_name = "BYTES", requires = "enet_mac_seed")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    pub enet_mac_seed_keep_bytes: Option<u8>,
    /// add or del.
    #[arg(long, value_name = "MODE")]
    pub enet_vlan: Option<VlanMode>,
    /// Identifier of the tag to add.
    #[arg(long, value_name = "ID", requires = "enet_vlan", value_parser = clap::value_parser!(u16).range(0..=4095))]
    pub enet_vlan_tag: Option<u16>,
    /// CFI of the tag to add.
    #[arg(long, value_name = "0|1", requires = "enet_vlan", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub enet_vlan_cfi: Option<u8>,
    /// Priority of the tag to add.
    #[arg(long, value_name = "0-7", requires = "enet_vlan", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub enet_vlan_pri: Option<u8>,
    /// Kind of the tag to add.
    #[arg(long, value_name = "KIND", default_value = "802.1q", value_parser = super::word::<VlanKind>())]
    pub enet_vlan_proto: VlanKind,
    /// Control byte of --dlt=hdlc.
    #[arg(long, value_name = "BYTE", value_parser = byte)]
    pub hdlc_control: Option<u8>,
    /// Address byte of --dlt=hdlc.
    #[arg(long, value_name = "BYTE", value_parser = byte)]
    pub hdlc_address: Option<u8>,
    /// Link type of --dlt=user; default: the input's.
    #[arg(long, value_name = "DLT")]
    pub user_dlt: Option<u16>,
    /// Link header of --dlt=user, hexadecimal; given twice, the second is the client's.
    #[arg(long, value_name = "BYTES")]
    pub user_dlink: Vec<String>,
    /// Leave out frames that cannot be edited.
    #[arg(long)]
    pub skip_soft_errors: bool,
}

/// Decimal, or hexadecimal behind 0x.
fn byte(text: &str) -> Result<u8, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    read.map_err(|_| "write 0 to 255, or 0x00 to 0xff".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VlanMode {
    Add,
    Del,
}
