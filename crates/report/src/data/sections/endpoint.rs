//! What came of a test between two endpoints (`netdyno endpoint`): streams, transactions, and both ends' hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, Within, figures};
use crate::data::model::Report;

/// What came of a test between two endpoints. Bytes and bits are payload: without any headers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// The test: `tcp-stream`, `udp-rr`, ...
    pub test: String,
    /// Address of the server.
    pub server: String,
    /// Own address on the control connection; left out over a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Connections at once in each direction, or flows of datagrams.
    pub connections: u64,
    /// What came in so long before was not measured.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub warm_up_ns: u64,
    /// Largest difference between the measured times of both ends: with a warm-up, each end begins to measure when it is over
    /// by its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_apart_ns: Option<u64>,
    /// Bytes that went, a direction each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<EndpointStream>,
    /// Requests that were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Transactions>,
    /// Connections that were to be opened, and what failed of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Opening>,
    /// Transactions by themselves and beside streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_load: Option<UnderLoad>,
    /// Repetitions, and how sure the result is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Repeated>,
    /// The end on this host.
    pub local: End,
    /// The server's; left out where it could not be asked any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<End>,
    /// The test over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<EndpointInterval>,
}

/// Bytes in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointStream {
    /// The client sent, else the server.
    pub from_client: bool,
    /// Bytes that the sender handed to its kernel in the measured time; of datagrams those whose own time lies in it.
    pub sent_bytes: u64,
    /// Length of the sender's measured time.
    #[serde(default)]
    pub sent_ns: u64,
    /// Bits per second that the sender handed to its kernel.
    pub sent_bits_per_second: f64,
    /// The sender could not be asked: it sent what was received, at least.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub sent_at_least: bool,
    /// Bytes that the receiver got in its own measured time; of datagrams of those that `sent_bytes` counts. Left out where it could not be
    /// asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// How long that was: the time that was asked for, or longer if bytes still came, by its clock from the first to the last. Until an amount
    /// was done, the latter alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ns: Option<u64>,
    /// Bits a second that it got: the throughput. Left out where all came at one moment, of which there is no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bits_per_second: Option<f64>,
    /// Counts of datagrams; left out for streams of TCP, and where an end could not be asked: what was lost is known of both together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
}

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Datagrams {
    /// Bytes of payload of each.
    pub size_bytes: u64,
    /// Handed to the sender's kernel in the measured time, by the time that each has in it.
    pub sent: u64,
    /// Datagrams that were received, duplicates among them.
    pub received: u64,
    /// Datagrams received per second; left out where all came at one moment, which has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_per_second: Option<f64>,
    /// Sent and not received: `sent`, less `received`, duplicates not counted.
    pub lost: u64,
    /// Lost datagrams over those sent (0 to 1).
    pub loss_ratio: f64,
    /// Lost datagrams that reached the receiver's host and found no room in its socket: no loss of the network. Where its kernel joins
    /// datagrams (UDP_GRO) it counts several as one: there were as many at least.
    /// Left out where the end that received cannot be asked (a server of iperf3's or netperf's protocol).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_by_receiver: Option<u64>,
    /// Refused by the sender's own host (ENOBUFS): not among those sent. Left out where the end that sent cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_by_sender: Option<u64>,
    /// Arrived after one that was sent later. Left out where the end that received cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Datagrams that arrived again. Left out where the result does not tell them apart: there each may hide a datagram that was
    /// lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    /// Interarrival jitter (RFC 3550, 6.4.1). Left out where it is not measured (netperf's protocol).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
}

/// Requests that were answered; or connections that were made, if both sizes are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transactions {
    /// Number of transactions.
    pub count: u64,
    /// Transactions per second of the measured time.
    pub per_second: f64,
    /// How long that was: the time that was asked for, or longer if the last one was answered later; until an amount was done; or, of
    /// connections that are opened to be held and no more, until the last one was open. Of repetitions the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ns: Option<u64>,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a response.
    pub response_bytes: u64,
    /// Under way over each connection at once, at most.
    pub in_flight: u64,
    /// The load that was asked for (open loop): latency counts from when a request was due. Left out in a closed loop, where a
    /// request leaves when the one before was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_per_second: Option<f64>,
    /// Requests that were due and not sent: the load was not offered.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unsent: u64,
    /// Requests that were not answered within a second (UDP). Up to `in_flight` over each connection, which were sent later, are neither
    /// answered nor lost when the test ends.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub lost: u64,
    /// Time that transactions took. One that was not answered when the test ended counts as it stands if it had waited longer than all others
    /// took, or in an open loop than 99 % of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
}

/// What became of connections that were to be opened (`connection-rate`), of the whole test, its warm-up included. How many a second, and
/// how long the handshake took, stands in the counts of transactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Opening {
    /// Connections that were tried.
    pub attempts: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Not opened, or broken while they were used: the sum of the reasons.
    pub failed: u64,
    /// Connections that were refused because nothing listened (ECONNREFUSED).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub refused: u64,
    /// Connections that were not open in time.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub timed_out: u64,
    /// This host had no free port (EADDRNOTAVAIL).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub no_port: u64,
    /// Connections that were reset (ECONNRESET).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub reset: u64,
    /// This process may open no more files (EMFILE).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub no_file: u64,
    /// No way there (EHOSTUNREACH, ENETUNREACH).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unreachable: u64,
    /// Connections that failed for another reason.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub other: u64,
    /// The first failure, in the kernel's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Neither open nor failed when the test ended.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unfinished: u64,
    /// Open at the same time, at most.
    pub most_open: u64,
    /// To be held. 0: each was closed at once.
    pub hold: u64,
    /// Connections open at the end.
    pub held: u64,
    /// Held connections that broke.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub broken: u64,
}

impl Opening {
    /// How many failed, by their reasons: what users know them as.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("refused", self.refused),
            ("not open in time", self.timed_out),
            ("without a free port here", self.no_port),
            ("reset", self.reset),
            ("beyond the files that this process may open", self.no_file),
            ("without a way there", self.unreachable),
            ("for another reason", self.other),
        ];
        all.into_iter().filter(|(_, count)| *count > 0)
    }
}

/// What an end's connections took of memory, with all of them open: what was in use then, less what was before them. The kernel's is of the
/// whole host: of both ends where they are on one, and of what other programs did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointMemory {
    /// Connections that were open.
    pub connections: u64,
    /// Resident memory of netdyno's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_bytes: Option<i64>,
    /// The kernel's slab memory: sockets, files, entries of epoll (Slab in /proc/meminfo).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_slab_bytes: Option<i64>,
    /// Memory of TCP's buffers (mem of TCP in /proc/net/sockstat).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_buffer_bytes: Option<i64>,
}

/// Latency of transactions by themselves and beside streams that fill the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnderLoad {
    /// Latency without other traffic.
    pub idle_ns: Distribution,
    /// Latency beside streams in both directions.
    pub loaded_ns: Distribution,
    /// Rise of the median latency; 0 if it fell.
    pub increase_ns: u64,
    /// Transactions a minute beside streams, from the mean latency: RPM, as the responsiveness drafts (draft-ietf-ippm-responsiveness) call it.
    pub round_trips_per_minute: f64,
    /// A+ to F; left out where latency was lower beside streams than without them, because that does not show how much they add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<String>,
    /// The rule that the grade follows.
    pub rule: String,
}

/// A test that was repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeated {
    /// The result of each repetition that has one: bits or transactions a second. Bytes that all came at one moment have no rate.
    pub results: Vec<f64>,
    /// How sure it was to be: 0.99.
    pub level: f64,
    /// The whole width of the confidence interval that was asked for, as a share of the mean.
    pub wanted_width_ratio: f64,
    /// The whole width of the confidence interval that was reached, as a share of the mean; left out of fewer than two results, which
    /// have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_ratio: Option<f64>,
    /// Whether the interval is as narrow as was asked.
    pub reached: bool,
}

/// One end: its host, its sockets, and what it spent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Version of netdyno at this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Release of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The host's settings that bear on connections (net.ipv4.tcp_rmem, ...), by name.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub settings: std::collections::BTreeMap<String, String>,
    /// Congestion control of its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Send buffer of the first socket when the test was over, as the kernel has it (SO_SNDBUF): the kernel counts its own use in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// Size of its receive buffer (SO_RCVBUF).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// Largest segment of TCP (MSS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u64>,
    /// Whether Multipath TCP was used; left out where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<bool>,
    /// Number of the host's processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// What of them was in use, by all programs and interrupts, in cores (1.0: one core all the time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_cores: Option<f64>,
    /// Processors of the host that were in use for soft interrupts, where the network's work is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softirq_cores: Option<f64>,
    /// Used by the process of this end's program alone, in cores: without interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cores: Option<f64>,
    /// Use of the busiest processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_core_ratio: Option<f64>,
    /// CPU time of the whole host for 1,024 bytes of payload, in ns (netperf's service demand): of streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_demand_ns_per_kib: Option<f64>,
    /// CPU time of the host per transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_demand_ns_per_transaction: Option<f64>,
    /// Mean smoothed round-trip time of its connections at the end of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
    /// Least round-trip time of its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Sum of the congestion windows of its connections at the end of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<u64>,
    /// Segments that this end retransmitted in the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Calls with MSG_ZEROCOPY that completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zerocopy_calls: Option<u64>,
    /// Calls with MSG_ZEROCOPY whose data the kernel copied after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zerocopy_copied: Option<u64>,
    /// What its connections took of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<EndpointMemory>,
    /// Other clients' tests ran at this end meanwhile.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub shared: bool,
    /// What the kernel counted there in the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<counters::Difference>,
}

/// A stretch of the test. Times count from its start; the warm-up is among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointInterval {
    /// When it begins.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// Bytes of payload that this end sent and received, or the bytes of its transactions.
    pub bytes: u64,
    /// Transactions that were answered, or datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Mean smoothed round-trip time at its end, as the sender's kernel has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
    /// Sum of congestion windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<u64>,
    /// Segments that were sent again in this stretch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Rate at which data arrived, as the sender's kernel reckons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_bits_per_second: Option<f64>,
    /// Median latency of the transactions that were answered in this stretch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p50_ns: Option<u64>,
    /// The 99th percentile of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p99_ns: Option<u64>,
}

/// What a server of endpoint tests did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Served {
    /// Tests that are over.
    pub tests: u64,
    /// Tests of those that broke off.
    pub broken_tests: u64,
    /// Connections that were refused, or meant nothing.
    pub refused_connections: u64,
    /// Bytes of payload, both ways.
    pub bytes: u64,
}

figures! {
    /// Bits of payload a second that the receiver got, of all directions together.
    THROUGHPUT = "endpoint_throughput", "throughput" as "throughput between the endpoints", BitsPerSecond, Higher;
    /// Transactions a second.
    TRANSACTION_RATE = "endpoint_transactions_per_second", "transactions a second", PerSecond, Higher;
    /// Latency that half of the transactions had at most.
    LATENCY_P50 = "endpoint_latency_p50", "transaction latency, p50", Ns, Lower;
    /// Latency that 99 % of the transactions had at most.
    LATENCY_P99 = "endpoint_latency_p99", "transaction latency, p99", Ns, Lower;
    /// Latency that 99.9 % of the transactions had at most.
    LATENCY_P999 = "endpoint_latency_p999", "transaction latency, p99.9", Ns, Lower;
    /// By how much the median latency of transactions rose beside streams that fill the path.
    INCREASE = "endpoint_latency_increase", "latency increase under load", Ns, Lower;
    /// Datagrams that were sent and not received.
    DATAGRAMS_LOST = "endpoint_lost_datagrams", "datagrams lost", Count, Lower;
    /// Datagrams a second that were received.
    DATAGRAM_RATE = "endpoint_datagrams_per_second", "datagrams a second", PerSecond, Higher;
    /// Connections that were to be opened and failed.
    FAILED = "endpoint_failed_connections", "connections failed", Count, Lower;
    /// Segments that this end sent again.
    RETRANSMITS = "endpoint_retransmits", "segments sent again", Count, Lower;
    /// Processors of this host that were in use.
    BUSY = "endpoint_busy_ratio", "CPU use here", Ratio, Lower;
}

impl Endpoint {
    fn throughput(&self) -> Option<f64> {
        let all: Option<Vec<f64>> =
            self.streams.iter().map(|stream| stream.received_bits_per_second).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    }
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(e) = &report.result.endpoint else { return Vec::new() };
    let mut figures = Vec::new();
    let repeated = || match &e.confidence {
        Some(repeated) => Within::Intervals(repeated.results.clone()),
        None => Within::Nothing,
    };
    figures.extend(e.throughput().map(|rate| THROUGHPUT.is(rate).with(repeated())));
    if let Some(t) = &e.transactions {
        figures.push(TRANSACTION_RATE.is(t.per_second).with(if e.streams.is_empty() {
            repeated()
        } else {
            Within::Nothing
        }));
        if let Some(d) = &t.latency_ns {
            figures.extend([LATENCY_P50.count(d.p50), LATENCY_P99.count(d.p99), LATENCY_P999.count(d.p999)]);
        }
    }
    figures.extend(e.opening.as_ref().map(|opening| FAILED.count(opening.failed).of(opening.attempts)));
    figures.extend(e.under_load.as_ref().map(|under| INCREASE.count(under.increase_ns)));
    let datagrams: Vec<Datagrams> = e.streams.iter().filter_map(|stream| stream.datagrams).collect();
    if !datagrams.is_empty() {
        figures.push(
            DATAGRAMS_LOST
                .count(datagrams.iter().map(|d| d.lost).sum())
                .of(datagrams.iter().map(|d| d.sent).sum()),
        );
        let rate: Option<f64> = datagrams.iter().map(|d| d.received_per_second).sum();
        figures.extend(rate.map(|rate| DATAGRAM_RATE.is(rate)));
    }
    figures.extend(e.local.retransmits.map(|count| RETRANSMITS.count(count)));
    figures
        .extend(e.local.busy_cores.zip(e.local.cores).map(|(busy, all)| BUSY.is(busy / all.max(1) as f64)));
    figures
}
