//! The machine, the software, and the choices they led to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine, the software and the choices they led to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Version of the netdyno that ran.
    pub netdyno_version: String,
    /// The commit it was built from, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netdyno_commit: Option<String>,
    /// When the run began, as RFC 3339 writes it, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The machine's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The kernel's release, as of `uname -r`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Model of the CPU, as /proc/cpuinfo has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// CPUs this process may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// The frequency governor, `performance` when figures are to be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The kernel's clock source: `tsc`, `kvm-clock`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    /// Settings of the kernel's network stack that figures depend on, by the names of sysctl(8) (`net.ipv4.tcp_rmem`), as
    /// netdyno's own network namespace has them. Those that cannot be read are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tuning: BTreeMap<String, String>,
    /// The interfaces that took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// The engine that sent, and why it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Choice>,
    /// How the receiver measured (`xdp`, `xdp-generic`, `packet`), and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<Choice>,
}

/// Something netdyno chose, with the reason it gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What was chosen: `xdp`, `packet`, ...
    pub name: String,
    /// Why it was chosen, in words.
    pub reason: String,
    /// What would have been taken rather, and why it was not possible; best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<NotTaken>,
}

/// Something netdyno would have chosen, and why it could not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotTaken {
    /// What would have been chosen.
    pub name: String,
    /// Why it could not, for people.
    pub reason: String,
}

/// A network interface that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Its name, in its network namespace.
    pub name: String,
    /// `send`, `measure`, `reflect`, `send and measure`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Name of the driver, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The longest packet that it carries, in bytes without the Ethernet header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The link's speed; left out where the driver has none (veth).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_bits_per_second: Option<u64>,
    /// Transmit queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_queues: Option<u32>,
    /// Receive queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_queues: Option<u32>,
    /// How long its carrier was waited for before the run began, because the driver took the link down when a program
    /// was attached, or because it was down before; left out where it was always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier_wait_ns: Option<u64>,
    /// Its queueing disciplines, the root first: `fq_codel`, `mq fq_codel`, `noqueue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<String>,
    /// Offloads that are on, by ethtool's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offloads: Vec<String>,
}
