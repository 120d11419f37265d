//! The words of `bridge` and of `tcpbridge`, which do the same.

use super::edit::{Edits, TcprewriteEdits};
use super::{Output, word};
use clap::Args;
use spec::{BridgeEngine, Written};
use std::time::Duration;

#[derive(Debug, Args)]
pub struct Bridge {
    /// The two interfaces. Of edits with two values the first is for what arrives on the first one (the client's side),
    /// the second for what arrives on the second one (the server's).
    #[arg(long, num_args = 2, required = true, value_names = ["IFACE", "IFACE"])]
    pub between: Vec<String>,
    /// Forward only from the first interface to the second.
    #[arg(long)]
    pub one_way: bool,
    /// End when this many frames have been forwarded, both directions together; not one more is.
    #[arg(long, value_name = "FRAMES")]
    pub count: Option<Written<u64>>,
    /// Bridge for this long. Default: until interrupted.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// Forward only these frames: S:, D:, B: or E:NETWORKS (source, destination, both, either), P:1-5,9,72- (the
    /// number of the frame, both directions together), F:EXPRESSION (a BPF filter as tcpdump's, which compiles it).
    #[arg(long, value_name = "RULE", conflicts_with = "exclude")]
    pub include: Option<String>,
    /// Forward all frames but these: S:, D:, B:, E: or P:, as above.
    #[arg(long, value_name = "RULE")]
    pub exclude: Option<String>,
    /// How frames are forwarded: xdp (in the drivers), tc (in the kernel's receive path, as traffic control does;
    /// Linux 6.6), xdp-generic (there, too, by XDP), packet (packet sockets and user space, which edits and chooses),
    /// or auto: the fastest that the interfaces and what is asked for allow.
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = word::<BridgeEngine>())]
    pub engine: BridgeEngine,
    /// Yes, bridge this interface although it carries the default route or your login: nothing that arrives on it
    /// reaches this host any more. Once for each.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub edits: Edits,
}

/// tcpbridge's options, as they are. Long names may be cut short. docs/compat.md says what differs.
#[derive(Debug, Args)]
#[command(infer_long_args = true)]
pub struct Tcpbridge {
    /// The first interface; with --unidir the one that is listened on.
    #[arg(short = 'i', long, value_name = "IFACE", required_unless_present = "listnics")]
    pub intf1: Option<String>,
    /// The second interface; with --unidir the one that is sent on.
    #[arg(short = 'I', long, value_name = "IFACE", required_unless_present = "listnics")]
    pub intf2: Option<String>,
    /// Only from the first to the second.
    #[arg(short, long)]
    pub unidir: bool,
    /// List the interfaces.
    #[arg(long)]
    pub listnics: bool,
    /// Send so many packets at most.
    #[arg(short = 'L', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Of no effect: what is sent is told apart from what arrives without addresses.
    #[arg(short = 'M', long, value_name = "MAC")]
    pub mac: Vec<String>,
    /// Only these packets: S:, D:, B:, E:NETWORKS, P:LIST, F:FILTER.
    #[arg(short = 'x', long, value_name = "RULE", conflicts_with = "exclude")]
    pub include: Option<String>,
    /// All packets but these: S:, D:, B:, E:NETWORKS, P:LIST.
    #[arg(short = 'X', long, value_name = "RULE")]
    pub exclude: Option<String>,
    /// Print the process's number on standard error.
    #[arg(short = 'P', long)]
    pub pid: bool,
    /// Of no effect.
    #[arg(short = 'd', long, value_name = "LEVEL")]
    pub dbug: Option<u8>,
    /// Not supported: tcpdump shows frames.
    #[arg(short, long)]
    pub verbose: bool,
    /// Not supported.
    #[arg(short = 'A', long, value_name = "ARGS", requires = "verbose")]
    pub decode: Option<String>,
    /// Not supported.
    #[arg(long, value_name = "FILE")]
    pub load_opts: Option<String>,
    /// Not supported.
    #[arg(long, value_name = "FILE")]
    pub save_opts: Option<String>,
    /// Yes, bridge this interface although it carries the default route or your login. Ours.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    #[command(flatten)]
    pub edits: TcprewriteEdits,
}
