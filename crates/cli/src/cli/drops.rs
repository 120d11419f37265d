//! The words of `netdyno drops`.

use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::time::Duration;
use traffic::rate::parse_duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Counted is what this kernel drops in all its network namespaces, not what a NIC or another machine does.\n\
    Exit status: 0 done, 1 the command failed, 2 not done."
)]
pub struct Drops {
    /// Only what is dropped at this interface (IFACE, or IFACE@NAMESPACE).
    #[arg(long, value_name = "IFACE")]
    pub on: Option<String>,
    /// Show only what all these words are true of: udp, tcp, icmp, arp, port N, reason NAME, function NAME, stream N, as in
    /// 'udp and port 53'.
    #[arg(long, value_name = "WORDS")]
    pub filter: Option<job::dropped::Filter>,
    /// Look for this long. Default: until the command ends, or Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "command")]
    pub duration: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Run this command here, and print what was dropped meanwhile.
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
