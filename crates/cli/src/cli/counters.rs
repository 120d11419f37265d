//! The words of `netdyno counters` and `netdyno beforeafter`.

use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use traffic::rate::parse_duration;

#[derive(Debug, Args)]
#[command(after_help = "Counters are of a whole network namespace, softnet's of the whole host.")]
pub struct Counters {
    /// Two snapshots that -w wrote, the earlier one first: what changed between them.
    #[arg(value_name = "FILE", num_args = 0..=2, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Add what the driver (ethtool -S) and the root queueing discipline of this interface count (IFACE, or IFACE@NAMESPACE,
    /// which takes the snapshot in that namespace). May be given more than once.
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "files")]
    pub interfaces: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the snapshot into this file, as JSON.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["files", "interval", "command"])]
    pub write: Option<PathBuf>,
    /// Print what changed, again and again after this time, until Ctrl-C; with --json lines of JSON.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with_all = ["files", "command"])]
    pub interval: Option<Duration>,
    /// Run this command here, and print what changed meanwhile.
    #[arg(last = true, value_name = "CMD", conflicts_with = "files", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The output is laid out as the second file. Gauges (established connections, limits) keep its value.\n\
    Exit status: 0 all was subtracted, 1 not all (warnings say what), 2 not done."
)]
pub struct Beforeafter {
    /// The listing from before.
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// The listing from after, of the same tool; one of both may be -, standard input.
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
}
