//! The words of `tcpbridge`.

use super::edit::TcprewriteEdits;
use clap::Args;

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
    /// Send this many packets at most.
    #[arg(short = 'L', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Of no effect: what is sent is distinguished from what arrives without addresses.
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
