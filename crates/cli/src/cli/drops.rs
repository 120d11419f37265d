//! The words of `netdyno drops`.

use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::parse_duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Frames are counted that this kernel drops, in any of its network namespaces. What a NIC or another machine drops is not seen.\n\
    Exit status: 0 done, 1 the command failed, 2 not done."
)]
pub struct Drops {
    /// Show only frames that are dropped at this interface (IFACE, or IFACE@NAMESPACE).
    #[arg(long, value_name = "IFACE")]
    pub on: Option<String>,
    /// Show only frames for which all these words are true: udp, tcp, icmp, arp, ipv4, ipv6, signed, port N, reason NAME,
    /// function NAME, stream N, as in 'udp and port 53'.
    #[arg(long, value_name = "WORDS")]
    pub filter: Option<job::dropped::Filter>,
    /// Write examples of the frames into this capture (pcapng), some of each function and reason, which are their comment.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub capture: Option<PathBuf>,
    /// Trace for this long. Default: until the command ends, or Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "command")]
    pub duration: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Run this command, and print what the kernel dropped while it ran.
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
