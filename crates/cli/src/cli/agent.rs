//! The arguments of `netdyno agent`.

use clap::{Args, ValueHint};
use spec::Written;
use std::path::PathBuf;
use traffic::Rate;

#[derive(Debug, Args)]
pub struct Agent {
    /// Speak over standard input and output.
    #[arg(long, required = true)]
    pub stdio: bool,
    /// Jobs may use interfaces of these names: eth1, 'veth*', rx0@receiver. A pattern without @ is of the agent's own network
    /// namespace. May be given more than once, as the others below.
    #[arg(long, value_name = "PATTERN")]
    pub allow_interface: Vec<String>,
    /// Jobs may send at up to this rate: 10mpps, 1gbps.
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Written<Rate>>,
    /// Jobs may read files below this folder by their paths; others have to be sent.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: Vec<PathBuf>,
    /// Jobs may use this interface although it carries the default route or a login.
    #[arg(long, value_name = "IFACE")]
    pub yes_disrupt: Vec<String>,
    /// Jobs may connect or send to these addresses, as they write them: 192.0.2.1:2055, '198.18.*'.
    #[arg(long, value_name = "PATTERN")]
    pub allow_address: Vec<String>,
    /// Jobs may wait for peers at these addresses, as they write them; any: at those of a server that names none.
    #[arg(long, value_name = "PATTERN")]
    pub allow_listen: Vec<String>,
    /// Jobs may run this command, word for word.
    #[arg(long, value_name = "CMD", help_heading = "Expert")]
    pub allow_command: Vec<String>,
    /// Jobs may read this file with a password, token or key by its path.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Expert")]
    pub allow_read: Vec<PathBuf>,
    /// Jobs may copy what clients say to this public address.
    #[arg(long, value_name = "HOST:PORT", help_heading = "Expert")]
    pub allow_public_target: Vec<String>,
    /// Jobs may make this prefix the host's own.
    #[arg(long, value_name = "PREFIX", help_heading = "Expert")]
    pub allow_source_prefix: Vec<String>,
    /// For trying out whether distances of clocks are found: answer by a clock, and stamp frames by it, that is so many nanoseconds
    /// ahead of this host's (behind: -5000). Arrivals are timed by this host's own all the same.
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 0,
        allow_negative_numbers = true,
        help_heading = "Expert"
    )]
    pub clock_ahead: i64,
    /// Keep so many bytes of files, in memory: what is sent, and what jobs write.
    #[arg(long, value_name = "SIZE", default_value = "1G", help_heading = "Expert")]
    pub max_contents: Written<u64>,
}
