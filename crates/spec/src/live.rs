//! A job that plays the clients of captured TCP connections.

use crate::no;
use crate::words::words;
use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

words! {
    /// When the client speaks.
    Timing {
        /// It waits as long as it did.
        #[default]
        Captured = "captured",
        /// As soon as it has heard what it waited for.
        Fast = "fast",
    }
}

words! {
    /// What other answers than the captured ones are.
    Answers {
        /// A shortfall.
        #[default]
        Same = "same",
        /// No shortfall.
        Any = "any",
    }
}

/// The clients of captured TCP connections, against a real server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// The capture.
    pub capture: PathBuf,
    /// The server: 10.0.0.2:80, [2001:db8::2]:80; without a port, the captured one.
    pub to: String,
    /// Through this interface (IFACE, or IFACE@NAMESPACE).
    pub on: String,
    /// Which connection: its number from 0, or CLIENT:PORT-SERVER:PORT. Default: the first that begins with a SYN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// All connections.
    #[serde(default, skip_serializing_if = "no")]
    pub all: bool,
    /// The address to play from. Default: the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// The port to play from: a number, random, or captured. Default: random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The Ethernet address to send to. Default: the next hop's, which is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// When the client speaks.
    #[serde(default)]
    pub timing: Timing,
    /// What other answers than the captured ones are.
    #[serde(default)]
    pub answers: Answers,
    /// Parts of answers that may differ, as regular expressions over bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Give up when the server takes or says nothing for so long. Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Written<Duration>>,
    /// A short answer is over after so long a silence. Default: 1s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_time: Option<Written<Duration>>,
    /// Send a segment again so often. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Where the capture lacks some of what the client said, play up to there.
    #[serde(default, skip_serializing_if = "no")]
    pub until_gap: bool,
    /// Of a damaged capture take what is sound before the damage.
    #[serde(default, skip_serializing_if = "no")]
    pub skip_corrupt: bool,
    /// Write what is sent and heard into this capture file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<PathBuf>,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
}
