//! A test as either side sees it: how it began, each interval, how it ended. `text` and `json` show it; the drivers fill it in.

use super::params::{Params, Protocol};
use super::results::{Cpu, Output};
use std::net::SocketAddr;

/// Which side shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Who asked for the test.
    Client,
    /// Who was asked.
    Server,
}

/// A data connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// What it is called in the output: its descriptor.
    pub socket: i32,
    /// This side sends on it.
    pub sender: bool,
    /// This side's address.
    pub local: SocketAddr,
    /// The other's.
    pub remote: SocketAddr,
}

/// How a test began.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Which side this is.
    pub role: Role,
    /// What the client asked for; `len` is filled in.
    pub params: Params,
    /// Of a client: the server as it was named. Of a server: the client's address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The client's cookie.
    pub cookie: String,
    /// When, in milliseconds of Unix time.
    pub unix_ms: u64,
    /// The kernel: name, host, release, version, machine.
    pub system: String,
    /// The control connection's largest segment; for TCP where none was asked for.
    pub mss: u32,
    /// SO_SNDBUF as the kernel made it.
    pub send_buffer: u64,
    /// SO_RCVBUF.
    pub receive_buffer: u64,
    /// Seconds of an interval; 0: only one.
    pub interval: f64,
    /// Its data connections.
    pub streams: Vec<Stream>,
}

impl Start {
    /// What data goes over.
    pub fn protocol(&self) -> Protocol {
        self.params.protocol
    }
}

/// What TCP_INFO said when a slice of a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tcp {
    /// Segments sent again in this slice.
    pub retransmits: u64,
    /// Congestion window in bytes.
    pub snd_cwnd: u64,
    /// The peer's window in bytes.
    pub snd_wnd: u64,
    /// Microseconds.
    pub rtt: u64,
    /// Microseconds.
    pub rttvar: u64,
    /// Path MTU.
    pub pmtu: u64,
    /// Reordering events, since the start.
    pub reorder: u64,
}

/// Datagrams of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Datagrams {
    /// Sent, or those that should have arrived.
    pub packets: u64,
    /// Of a receiver: seconds.
    pub jitter: f64,
    /// Of a receiver.
    pub lost: i64,
    /// Of a receiver.
    pub out_of_order: u64,
}

/// One stream in one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Its name.
    pub socket: i32,
    /// This side sends.
    pub sender: bool,
    /// Bytes in it.
    pub bytes: u64,
    /// Of a sender over TCP.
    pub tcp: Option<Tcp>,
    /// Over UDP.
    pub udp: Option<Datagrams>,
}

/// All streams in one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Seconds since what counts began; while it is left out, since the start.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// It does not count.
    pub omitted: bool,
    /// In the order of the connections.
    pub streams: Vec<Slice>,
}

impl Interval {
    /// How long it was.
    pub fn seconds(&self) -> f64 {
        (self.end - self.start).max(0.0)
    }
}

/// One side of one stream over the whole test.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Side {
    /// Seconds.
    pub seconds: f64,
    /// Bytes sent or received.
    pub bytes: u64,
    /// Of a sender over TCP.
    pub retransmits: Option<u64>,
    /// Over UDP.
    pub udp: Datagrams,
}

impl Side {
    /// Bits per second.
    pub fn rate(&self) -> f64 {
        rate(self.bytes, self.seconds)
    }
}

/// Bits per second; 0 of no time.
pub fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// The extremes of TCP_INFO at the ends of intervals, as this side's socket had them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extremes {
    /// Reordering events.
    pub reorder: u64,
    /// Bytes.
    pub max_snd_cwnd: u64,
    /// Bytes.
    pub max_snd_wnd: u64,
    /// Microseconds.
    pub max_rtt: u64,
    /// Microseconds.
    pub min_rtt: u64,
    /// Microseconds.
    pub mean_rtt: u64,
}

/// One stream over the whole test. What a side does not know of the other is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// Its name.
    pub socket: i32,
    /// This side sends.
    pub sender: bool,
    /// As its sender has it.
    pub sent: Option<Side>,
    /// As its receiver has it.
    pub received: Option<Side>,
    /// Over TCP.
    pub tcp: Option<Extremes>,
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct End {
    /// The streams, in the order of the connections.
    pub streams: Vec<Total>,
    /// This side's CPU use in percent of a core.
    pub cpu: Cpu,
    /// The other's.
    pub remote_cpu: Option<Cpu>,
    /// This side's congestion control.
    pub congestion: Option<String>,
    /// The other's.
    pub remote_congestion: Option<String>,
    /// What the server printed.
    pub server_output: Option<Output>,
    /// Datagrams that this host's own sockets had no room for. Not lost by the network.
    pub receiver_drops: u64,
    /// Of a client that sent an amount: bytes that arrived at the server's host and that the server did not count.
    pub unread: u64,
    /// The file that this side sent or wrote (`-F`), and its size.
    pub file: Option<(String, u64)>,
}

/// How much of a file went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Bytes.
    pub size: u64,
    /// Of it that were sent, and that were received, in whole percent. An empty file is sent whole.
    pub percent: [u64; 2],
}

impl Share {
    /// Of a file of so many bytes.
    pub fn of(size: u64, sent: u64, received: u64) -> Share {
        let of = |bytes: u64| {
            if size == 0 {
                100
            } else {
                u64::try_from(u128::from(bytes) * 100 / u128::from(size)).unwrap_or(u64::MAX)
            }
        };
        Share { size, percent: [sent, received].map(of) }
    }
}

/// Sums of the streams in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sum {
    /// As senders have it.
    pub sent: Option<Side>,
    /// As receivers have it.
    pub received: Option<Side>,
    /// How many streams.
    pub count: usize,
}

impl Sum {
    /// Of the streams on which this side sends, or does not.
    pub fn of(streams: &[Total], sender: bool) -> Sum {
        let mut sum = Sum::default();
        for stream in streams.iter().filter(|stream| stream.sender == sender) {
            add(&mut sum.sent, stream.sent);
            add(&mut sum.received, stream.received);
            sum.count += 1;
        }
        // The mean of what every receiver saw.
        if let Some(received) = &mut sum.received {
            received.udp.jitter /= sum.count.max(1) as f64;
        }
        sum
    }
}

fn add(sum: &mut Option<Side>, side: Option<Side>) {
    let Some(side) = side else { return };
    let sum = sum.get_or_insert_default();
    sum.seconds = sum.seconds.max(side.seconds);
    sum.bytes = sum.bytes.saturating_add(side.bytes);
    if let Some(retransmits) = side.retransmits {
        let so_far = sum.retransmits.get_or_insert(0);
        *so_far = so_far.saturating_add(retransmits);
    }
    sum.udp.packets = sum.udp.packets.saturating_add(side.udp.packets);
    sum.udp.lost = sum.udp.lost.saturating_add(side.udp.lost);
    sum.udp.out_of_order = sum.udp.out_of_order.saturating_add(side.udp.out_of_order);
    sum.udp.jitter += side.udp.jitter;
}

/// Sum of an interval's streams in one direction.
pub fn slices(interval: &Interval, sender: bool) -> Option<Slice> {
    let mut all = interval.streams.iter().filter(|slice| slice.sender == sender);
    let mut sum = *all.next()?;
    let mut count = 1.0;
    for slice in all {
        count += 1.0;
        sum.bytes = sum.bytes.saturating_add(slice.bytes);
        if let (Some(sum), Some(one)) = (&mut sum.tcp, slice.tcp) {
            sum.retransmits = sum.retransmits.saturating_add(one.retransmits);
        }
        if let (Some(sum), Some(one)) = (&mut sum.udp, slice.udp) {
            sum.packets = sum.packets.saturating_add(one.packets);
            sum.lost = sum.lost.saturating_add(one.lost);
            sum.out_of_order = sum.out_of_order.saturating_add(one.out_of_order);
            sum.jitter += one.jitter;
        }
    }
    if let Some(udp) = &mut sum.udp {
        udp.jitter /= count;
    }
    Some(sum)
}

/// Datagrams lost in percent of those that should have arrived.
pub fn lost_percent(udp: &Datagrams) -> f64 {
    if udp.packets == 0 { 0.0 } else { 100.0 * udp.lost as f64 / udp.packets as f64 }
}
