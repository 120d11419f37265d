//! What an end tells of a test: how it stands, and what it came to.

use crate::cpu::Use;
use crate::crowd::calls::Opened;
use crate::memory::Added;
use crate::phase::Zerocopy;
use crate::socket::Actual;
use crate::tcp_info::TcpInfo;
use serde::{Deserialize, Serialize};

/// What an end's host is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// `netdyno 0.1.0`.
    pub program: String,
    /// The kernel's release.
    pub kernel: String,
    /// Processors.
    pub cores: u32,
    /// What new connections have (net.ipv4.tcp_congestion_control).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// net.ipv4.tcp_rmem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_rmem: Option<String>,
    /// net.ipv4.tcp_wmem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_wmem: Option<String>,
    /// net.core.rmem_max.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmem_max: Option<String>,
    /// net.core.wmem_max.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wmem_max: Option<String>,
    /// net.core.somaxconn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub somaxconn: Option<String>,
    /// net.core.default_qdisc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_qdisc: Option<String>,
}

impl Host {
    /// This one.
    pub fn here() -> Host {
        let setting = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/{name}")).ok()?;
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        Host {
            program: concat!("netdyno ", env!("CARGO_PKG_VERSION")).to_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            cores: std::thread::available_parallelism()
                .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
            congestion: setting("ipv4/tcp_congestion_control"),
            tcp_rmem: setting("ipv4/tcp_rmem"),
            tcp_wmem: setting("ipv4/tcp_wmem"),
            rmem_max: setting("core/rmem_max"),
            wmem_max: setting("core/wmem_max"),
            somaxconn: setting("core/somaxconn"),
            default_qdisc: setting("core/default_qdisc"),
        }
    }
}

/// `TCP_INFO` of all of an end's connections together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpNow {
    /// Connections.
    pub connections: u32,
    /// Mean of their smoothed round-trip times, in us.
    pub rtt_us: f64,
    /// Least round-trip time, in us.
    pub min_rtt_us: Option<u32>,
    /// Sum of their congestion windows, in bytes.
    pub cwnd_bytes: u64,
    /// Sum of segments that were sent again, since the beginning.
    pub retransmits: u64,
    /// Sum of their delivery rates, bytes per second.
    pub delivery_rate: Option<u64>,
    /// Connections whose delivery rate the application limited, not the path.
    pub app_limited: u32,
}

impl TcpNow {
    /// Of these. None without any.
    pub fn of<'i>(all: impl IntoIterator<Item = &'i TcpInfo>) -> Option<TcpNow> {
        let mut now = TcpNow::default();
        for info in all {
            now.connections += 1;
            now.rtt_us += f64::from(info.rtt_us.unwrap_or(0));
            now.min_rtt_us = now.min_rtt_us.into_iter().chain(info.min_rtt_us).min();
            now.cwnd_bytes += u64::from(info.cwnd.unwrap_or(0)) * u64::from(info.mss.unwrap_or(0));
            now.retransmits += u64::from(info.total_retrans.unwrap_or(0));
            if let Some(rate) = info.delivery_rate {
                now.delivery_rate = Some(now.delivery_rate.unwrap_or(0).saturating_add(rate));
            }
            now.app_limited += u32::from(info.app_limited == Some(true));
        }
        now.rtt_us /= f64::from(now.connections.max(1));
        (now.connections > 0).then_some(now)
    }
}

/// How an end stands. Counts are since the test's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Since this end's start.
    pub elapsed_ns: u64,
    /// Bytes of payload that it sent or received.
    pub bytes: u64,
    /// Datagrams, or transactions.
    pub count: u64,
    /// Datagrams that are missing.
    pub lost: u64,
    /// Its connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpNow>,
}

/// What a flow came to at one end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowResult {
    /// Bytes of payload, warm-up included.
    pub bytes: u64,
    /// Datagrams, or transactions.
    pub count: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The socket, as the kernel made it.
    pub socket: Actual,
    /// The connection, at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpInfo>,
}

/// What an end came to. Counts are of the time that is measured: without the warm-up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// Bytes of payload that it sent or received.
    pub bytes: u64,
    /// Calls, datagrams, or transactions.
    pub count: u64,
    /// From the beginning of what is measured (of a receiver: its first byte) until the last byte. Whoever knows for how long it was to be
    /// measured, and that it was, divides by that.
    pub seconds: f64,
    /// Of a receiver without a warm-up: how long an amount took to come, what was there when the first bytes were read counted in; 0 where that is
    /// not known. It is not the time of a test that lasts as long as it was asked to. `None` from earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_seconds: Option<f64>,
    /// Datagrams that were sent up to the last that arrived, and did not arrive.
    pub lost: u64,
    /// Datagrams that arrived after one that was sent later.
    pub reordered: u64,
    /// Datagrams that arrived again.
    pub duplicates: u64,
    /// Interarrival jitter, mean of the flows, in ns.
    pub jitter_ns: u64,
    /// Datagrams that arrived at this end's host and found no room in the socket; or that it was asked to send, and refused.
    pub dropped: u64,
    /// Requests that were due and not asked.
    pub unsent: u64,
    /// By how much the schedule of what is sent was moved because this end was late, in ns: the most of any flow.
    pub moved_ns: u64,
    /// How far this end was behind the schedule at most, in ns. 0 from earlier versions.
    pub late_ns: u64,
    /// What processors were used for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Use>,
    /// What became of sends with MSG_ZEROCOPY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zerocopy: Option<Zerocopy>,
    /// Flows that failed.
    pub failed_flows: u64,
    /// The first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Other tests ran at this end meanwhile.
    pub shared: bool,
    /// All connections together, at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpNow>,
    /// Segments that they sent again in the measured time. None over other sockets, and from earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Of connections that were to be opened, the warm-up included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<Opened>,
    /// What its connections took of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Added>,
    /// What the kernel counted in the measured time, in this end's network namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<counters::Difference>,
    /// The first flows, at most 64.
    pub flows: Vec<FlowResult>,
}
