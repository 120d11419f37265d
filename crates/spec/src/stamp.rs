//! The rules of `netdyno endpoint stamp`: the one endpoint test whose far end is no netdyno server, but any reflector of STAMP.

use crate::check::{Contradiction, hold};
use crate::endpoint::{Endpoint, EndpointRate, ReceiveMethod, SendMethod};
use std::time::Duration;

/// Packets of a session at most: what is kept of each is kept to the end.
const MOST_PACKETS: u128 = 4_000_000;
/// Without TLVs; and with the least of them (RFC 8972).
const BASE: u64 = 44;
const WITH_TLV: u64 = 48;

impl Endpoint {
    /// Packets of `stamp` a second.
    pub fn stamp_rate(&self) -> u64 {
        match self.rate.as_deref() {
            Some(EndpointRate::Datagrams(rate)) => *rate,
            _ => 10,
        }
    }

    /// For how long `stamp` sends.
    pub fn stamp_duration(&self) -> Duration {
        self.duration.as_deref().copied().unwrap_or(Duration::from_secs(10))
    }

    /// Packets of `stamp`: those that are due before that time is over.
    pub fn stamp_packets(&self) -> u128 {
        (self.stamp_duration().as_nanos() * u128::from(self.stamp_rate())).div_ceil(1_000_000_000)
    }
}

/// What contradicts itself in a test `stamp`.
pub(crate) fn check(job: &Endpoint) -> Result<(), Contradiction> {
    foreign(job)?;
    let size = job.size.as_deref().copied().unwrap_or(BASE);
    let rate = job.rate.as_deref();
    hold(
        "",
        &[
            ("host", job.host.is_empty(), "where is the reflector? Name HOST or HOST:PORT"),
            ("host", job.host.starts_with("unix:"), "STAMP goes over UDP: name HOST or HOST:PORT"),
            (
                "rate",
                rate.is_some_and(|rate| !matches!(rate, EndpointRate::Datagrams(1..))),
                "stamp has packets a second, at least 1: 10pps",
            ),
            ("duration", job.duration.as_deref().is_some_and(Duration::is_zero), "it is longer than 0"),
            (
                "duration",
                job.stamp_packets() > MOST_PACKETS,
                "stamp sends 4000000 packets at most: a shorter time, or a lower `.rate`",
            ),
            (
                "size",
                size != BASE && !(WITH_TLV..=65_507).contains(&size),
                "a packet of stamp has 44 bytes, or 48 to 65507 with an Extra Padding TLV",
            ),
            ("wait", job.wait.as_deref().is_some_and(Duration::is_zero), "it is longer than 0"),
            (
                "wait",
                job.wait.as_deref().is_some_and(|wait| *wait > Duration::from_secs(3600)),
                "it is an hour at most",
            ),
            ("ssid", job.ssid.is_some_and(|id| !(1..=65_535).contains(&id)), "it is 1 to 65535"),
            (
                "dscp",
                job.dscp.is_some() && job.dscp_number().is_none(),
                "it is 0 to 63 or a name: ef, le, cs0 to cs7, af11 to af43",
            ),
        ],
    )
}

/// Settings of tests that have streams, transactions, connections, or a netdyno server.
fn foreign(job: &Endpoint) -> Result<(), Contradiction> {
    let none = "stamp has no use for it; leave it out";
    let server = "a reflector is no netdyno server; leave it out";
    hold(
        "",
        &[
            ("bytes", job.bytes.is_some(), none),
            ("transactions", job.transactions.is_some(), none),
            ("parallel", job.parallel.is_some(), none),
            ("threads", job.threads.is_some(), none),
            ("hold", job.hold.is_some(), none),
            ("request", job.request.is_some(), none),
            ("response", job.response.is_some(), none),
            ("burst", job.burst.is_some(), none),
            ("token_file", job.token_file.is_some(), server),
            ("warm_up", job.warm_up.is_some(), none),
            ("confidence", job.confidence.is_some(), none),
            ("iterations", job.iterations.is_some(), none),
            ("connect_timeout", job.connect_timeout.is_some(), none),
            ("send_buffer", job.send_buffer.is_some(), none),
            ("receive_buffer", job.receive_buffer.is_some(), none),
            ("remote_send_buffer", job.remote_send_buffer.is_some(), server),
            ("remote_receive_buffer", job.remote_receive_buffer.is_some(), server),
            ("nodelay", job.nodelay, none),
            ("cork", job.cork, none),
            ("congestion", job.congestion.is_some(), none),
            ("pacing", job.pacing.is_some(), none),
            ("mptcp", job.mptcp, none),
            ("method", job.method != SendMethod::Write, none),
            ("receive_method", job.receive_method != ReceiveMethod::Read, none),
            ("busy_poll", job.busy_poll.is_some(), none),
            ("spin", job.spin, none),
            ("gso", job.gso, none),
            ("gro", job.gro, none),
            ("batch", job.batch.is_some(), none),
            ("cores", job.cores.is_some(), none),
            ("remote_cores", job.remote_cores.is_some(), server),
        ],
    )
}
