//! Options of what reaches a NATS server: agents that dial out, and those who reach them.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// How a NATS server is reached.
#[derive(Debug, Clone, Default, Args)]
pub struct AtServer {
    /// What all subjects at the server begin with.
    #[arg(long, value_name = "WORDS", default_value = "nd", help_heading = "NATS")]
    pub prefix: String,
    /// Log in with this file of credentials.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "NATS")]
    pub creds: Option<PathBuf>,
    /// Log in with the key whose seed is in this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "creds", help_heading = "NATS")]
    pub nkey: Option<PathBuf>,
    /// Log in with this name and the password of --password-file.
    #[arg(long, value_name = "NAME", requires = "password_file", conflicts_with_all = ["creds", "nkey"], help_heading = "NATS")]
    pub user: Option<String>,
    /// The first line of this file is the password.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "user", help_heading = "NATS")]
    pub password_file: Option<PathBuf>,
    /// Believe servers for which the certificates in this file vouch, instead of those that the system trusts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "NATS")]
    pub ca: Option<PathBuf>,
    /// Show the server this certificate.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key", help_heading = "NATS")]
    pub cert: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert", help_heading = "NATS")]
    pub key: Option<PathBuf>,
    /// Let everybody on the way to another host read and change jobs and results (nats:// instead of tls://).
    #[arg(long, help_heading = "NATS")]
    pub yes_plaintext: bool,
}
