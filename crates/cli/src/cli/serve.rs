//! The arguments of `netdyno serve`.

use super::agent::Allowed;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Serve {
    /// Listen here: 127.0.0.1:8443, [::1]:8443, or unix:/run/netdyno.sock. At an address that others reach, --token-file is needed.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8443")]
    pub listen: String,
    /// Requests must have the token that this file holds: as a bearer's, or as the password of http://user:TOKEN@host. Only its owner may
    /// read the file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Speak TLS with this certificate, a PEM file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key")]
    pub cert: Option<PathBuf>,
    /// The certificate's key, a PEM file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    pub key: Option<PathBuf>,
    /// A name by which clients reach this server, beside addresses and localhost. May be given more than once.
    #[arg(long, value_name = "NAME")]
    pub host_name: Vec<String>,
    #[command(flatten)]
    pub allowed: Allowed,
}
