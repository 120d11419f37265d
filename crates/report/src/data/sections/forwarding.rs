//! What the far parts of a clone did: the capture at the server's host, and the return agent at the target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of sessions that were captured for a clone on another host (`netdyno clone capture`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forwarded {
    /// The interface where they were captured.
    pub on: String,
    /// The clone that they went to.
    pub send_to: String,
    /// The seed by which sessions were chosen; left out where all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Frames that were captured.
    pub frames: u64,
    /// Segments among the frames that came from clients.
    pub from_clients: u64,
    /// Segments among the frames that came from the server.
    pub from_server: u64,
    /// Frames that the kernel had no room for.
    pub dropped_frames: u64,
    /// Sessions by what became of them.
    pub sessions: ForwardedSessions,
    /// Forwarded sessions that the clone had of it. Left out where the clone was no part of the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_sessions: Option<u64>,
    /// Bytes of records, before encryption, that were put in the queue to the clone.
    pub queued_bytes: u64,
    /// Bytes of records that were thrown away, because the connection broke.
    pub lost_bytes: u64,
    /// Bytes that the connection took, encrypted.
    pub sent_bytes: u64,
    /// Connections to the clone that were established.
    pub connections: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// How long it ran, in nanoseconds.
    pub duration_ns: u64,
}

/// Captured sessions by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardedSessions {
    /// Sessions that were forwarded from their beginning.
    pub forwarded: u64,
    /// Forwarded sessions that were given up, because there was no room for a segment, or because they took too much of the machine.
    pub shed: u64,
    /// Forwarded sessions that were given up, because the connection to the clone broke.
    pub lost: u64,
    /// Not forwarded: SYNs whose connection was never established.
    pub half_open: u64,
    /// Not forwarded: sessions that the server refused.
    pub refused: u64,
    /// Not forwarded: sessions that were open before the start.
    pub midstream: u64,
    /// Not forwarded: sessions that the sampling did not choose.
    pub sampled_out: u64,
    /// Not forwarded: sessions beyond the number that may be open at once.
    pub over_sessions: u64,
    /// Not forwarded: sessions beyond the rate.
    pub over_rate: u64,
    /// Not forwarded: sessions beyond what may be taken of the machine.
    pub over_ceiling: u64,
    /// Not forwarded: sessions for which there was no room on the way to the clone, or no clone.
    pub over_link: u64,
}

impl ForwardedSessions {
    /// Sessions that were seen and not forwarded.
    pub fn not_forwarded(&self) -> u64 {
        let all = [self.half_open, self.refused, self.midstream, self.sampled_out];
        let limits = [self.over_sessions, self.over_rate, self.over_ceiling, self.over_link];
        all.into_iter().chain(limits).fold(0, u64::saturating_add)
    }
}

/// What the return agent at a clone's target did (`netdyno clone return`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Returned {
    /// Connections of copies that were let in.
    pub connections: u64,
    /// Packets of copies that were let in.
    pub packets: u64,
    /// Answers that were steered back to the clone, in packets.
    pub steered_packets: u64,
    /// ICMP errors about copies that were kept from clients.
    pub kept_icmp_errors: u64,
    /// Fragments of the server's TCP segments that were kept from clients.
    pub kept_fragments: u64,
    /// Answers to copies that the tunnel did not take and that were kept from clients.
    pub kept_answers: u64,
    /// Connections of copies that were refused, because there was no room for them.
    pub refused_connections: u64,
    /// Packets of the tunnel of connections that were not let in, dropped.
    pub unknown_packets: u64,
    /// Packets of the tunnel that came while the agent was not at work, dropped.
    pub closed_packets: u64,
    /// Packets of the tunnel that are none for the server, dropped.
    pub malformed_packets: u64,
    /// Packets with addresses and ports of copies that came by another way, dropped.
    pub foreign_packets: u64,
    /// Sockets of copies that were ended at the end.
    pub ended_sockets: u64,
    /// Filters that were taken away at the end.
    pub removed_filters: u64,
}
