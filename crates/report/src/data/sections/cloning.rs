//! What became of sessions that were copied to another server, from the frames that were captured to the answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

/// What became of sessions that were copied (`netdyno clone`), stage by stage: the parts of each stage add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cloned {
    /// Frames that were captured.
    pub frames: ClonedFrames,
    /// Frames that the kernel had no room for, or that never reached us: what was in them is not known.
    pub dropped_frames: u64,
    /// Sessions.
    pub sessions: ClonedSessions,
    /// Of the sessions that were seen, those that captures on other hosts said they did not forward. Left out where there are no such captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_forwarded_sessions: Option<u64>,
    /// Bytes that clients said in sessions that were copied.
    pub bytes: ClonedBytes,
    /// Connections to the target.
    pub connections: ClonedConnections,
    /// Bytes that were to be said to the target.
    pub sent: ClonedSent,
    /// The answers of both servers beside each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<ClonedAnswers>,
    /// A second target, with what the server has: in what it answers otherwise, differences are noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<ClonedNoise>,
    /// What does not add up. There must be none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// Connections to the port for captures on other hosts that were not let in: they did not show the key within three seconds or
    /// before too many others came, capture something else, speak another version, or found no room.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub turned_away: u64,
    /// CPU time of the threads that copied, in nanoseconds.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub cpu_ns: u64,
}

/// Frames, and the segments in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedFrames {
    /// Frames that came from the capture.
    pub captured: u64,
    /// TCP segments from a client to the server.
    pub from_clients: u64,
    /// TCP segments from the server to a client.
    pub from_server: u64,
    /// TCP segments of other flows.
    pub other_flows: u64,
    /// Frames of other protocols.
    pub other_protocols: u64,
    /// Pieces of IP packets that never became whole.
    pub fragments: u64,
    /// Frames that held nothing but further pieces of packets that became whole: each packet is counted once, by what it is.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub joined: u64,
    /// Frames whose headers cannot be read.
    pub malformed: u64,
    /// Segments from clients of which a part was not captured: they are among the segments.
    pub truncated: u64,
    /// Segments with urgent data of copied sessions, which is sent as ordinary data: they are among those from clients.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub urgent: u64,
    /// SYN segments without ACK among those from clients.
    pub syns: u64,
    /// SYN segments with ACK among those from the server.
    pub syn_acks: u64,
    /// SYN segments with ACK from the server whose SYN was not seen.
    pub syn_acks_alone: u64,
    /// Segments of no session: what comes behind its end, or without a beginning that could be one.
    pub strays: u64,
}

/// Sessions by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedSessions {
    /// Sessions that were seen on the wire.
    pub seen: u64,
    /// SYNs whose connection was never established.
    pub half_open: u64,
    /// Sessions that the server refused.
    pub refused: u64,
    /// Open before the start, and waiting for a moment to be adopted.
    pub waiting: u64,
    /// Open before the start, and never adopted.
    pub midstream: u64,
    /// Sessions not copied, because the sampling did not choose them.
    pub sampled_out: u64,
    /// Sessions not copied, because there were too many at once.
    pub over_sessions: u64,
    /// Sessions not copied, because there were too many new ones per second.
    pub over_rate: u64,
    /// Sessions not copied, because the number of copies is raised gradually, as was asked.
    pub ramped_out: u64,
    /// Sessions not copied, because copying took more of the machine than it may.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub over_ceiling: u64,
    /// The way from a capture on another host had no room, or was not there.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub over_link: u64,
    /// Sessions that are our copies come back: from our addresses, or from the target.
    pub own: u64,
    /// Speaking TLS from their first byte, which the target has other keys for.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub tls: u64,
    /// Sessions that are copied from their beginning.
    pub copied: u64,
    /// Sessions that are copied from somewhere in between.
    pub adopted: u64,
    /// Copied sessions that ended with a gap, because a segment was neither captured nor retransmitted.
    pub gaps: u64,
    /// Copied sessions that ended, because the server has bytes that the capture does not have.
    pub missed: u64,
    /// Copied sessions that ended, because a segment was captured in part.
    pub truncated: u64,
    /// Copied sessions that ended, because more segments were out of order than there is room for.
    pub too_early: u64,
    /// Copied sessions that ended, because they turned to TLS (STARTTLS).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub turned_tls: u64,
    /// Copied sessions that were given up, because copying took far more of the machine than it may.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub shed: u64,
    /// Copied sessions that were given up by a capture on another host: the connection from it had no room for a segment, or
    /// broke.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unforwarded: u64,
    /// Ended because nothing came for long.
    pub idle: u64,
    /// Ended by a new one of the same addresses and ports.
    pub replaced: u64,
}

/// Bytes that clients said in sessions that are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedBytes {
    /// Bytes that were captured, each counted once.
    pub captured: u64,
    /// Bytes that were put in order and handed on to be sent to the target.
    pub delivered: u64,
    /// Never in order: behind a gap.
    pub behind_gaps: u64,
    /// Bytes that were captured again (retransmissions).
    pub repeated: u64,
    /// Captured again, and different.
    pub different: u64,
    /// Too far ahead to belong to their connection.
    pub wild: u64,
}

/// Connections to the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedConnections {
    /// Wanted: sessions times copies.
    pub wanted: u64,
    /// Connections that were established.
    pub connected: u64,
    /// Connections that the target refused.
    pub refused: u64,
    /// The target did not answer in time.
    pub timed_out: u64,
    /// No address and port were free.
    pub no_address: u64,
    /// The kernel had another reason.
    pub failed: u64,
    /// The copying ended before.
    pub unfinished: u64,
    /// Established connections that the target closed while the client still sent.
    pub closed_early: u64,
    /// Established connections that the target reset while the client still sent.
    pub reset_early: u64,
    /// Established connections that were given up, because too many bytes waited for the target.
    pub overfull: u64,
    /// Requests that were not held until their answer any more, because it did not come.
    pub impatient: u64,
    /// Ends (FIN or RST) that were put off until the target had answered as the server had when the client ended.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub held_ends: u64,
    /// Ends among those that were put off no longer: the target had not answered after 10 s.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unanswered_ends: u64,
}

/// Bytes that were to be said to the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedSent {
    /// Delivered bytes times copies.
    pub due: u64,
    /// Bytes that the sockets accepted.
    pub sent: u64,
    /// Bytes not sent, because the connection was not established.
    pub unconnected: u64,
    /// Bytes not sent, because the target closed or reset the connection.
    pub after_close: u64,
    /// Bytes not sent, because too many bytes waited.
    pub overfull: u64,
    /// Bytes not sent, because the client reset its connection.
    pub reset: u64,
    /// Bytes not sent, because the run ended.
    pub unfinished: u64,
    /// Bytes that the target answered.
    pub received: u64,
}

/// The answers of the server and of the target beside each other, request by request; of each session's first copy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedAnswers {
    /// Requests, and greetings of servers that speak first. What became of each is one of: compared, unanswered by the server or the target,
    /// cut, unsaid, unfollowed.
    #[serde(default)]
    pub requests: u64,
    /// Requests that both answered.
    pub compared: u64,
    /// Answers of those compared that are equal: in HTTP/1 the status line, the body and the header fields that do not differ
    /// by nature; in any other protocol every byte.
    pub same: u64,
    /// They begin differently: the first of these six that holds is counted.
    pub lines_differ: u64,
    /// Answers of the target that break the rules by which a client finds their ends (chunk sizes that do not fit, lengths that contradict each other, more
    /// than was asked for), where the server's do not.
    #[serde(default)]
    pub malformed: u64,
    /// They begin alike, and their bodies' sizes differ.
    pub sizes_differ: u64,
    /// Answers whose bodies have the same size and differ.
    #[serde(default)]
    pub bodies_differ: u64,
    /// Answers of the target whose bodies are equal to the server's, and less than their heads announce: the target closed or reset the
    /// connection before they were whole.
    #[serde(default)]
    pub cut_short: u64,
    /// Answers whose bodies are equal and whose header fields differ.
    #[serde(default)]
    pub fields_differ: u64,
    /// Answers of those compared whose body at the server was captured in part: what was captured is compared, and its size.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub in_part: u64,
    /// Requests that the server did not answer, as far as the capture shows.
    pub online_unanswered: u64,
    /// Requests that the target did not answer, though the server did.
    pub target_unanswered: u64,
    /// An answer had not ended when copying did, or when its client or, in the midst of it, its server went away: it is not compared.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub cut: u64,
    /// Requests that were never said to the target, because its connection was over.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unsaid: u64,
    /// Requests of sessions that could not be followed to their end, whose answers are not known.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unfollowed: u64,
    /// Sessions whose requests or answers could not be followed to their end.
    pub unframed_sessions: u64,
    /// Sessions of which nothing is compared, because their messages cannot be separated (HTTP/2).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unread_sessions: u64,
    /// Time from the last byte of a request to the first byte of the answer, at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_first_byte_ns: Option<Distribution>,
    /// Time from the last byte of a request to the last byte of the answer, at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_last_byte_ns: Option<Distribution>,
    /// Time from when a request was sent to the target to the first byte of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_first_byte_ns: Option<Distribution>,
    /// Time from when a request was sent to the target to the last byte of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_last_byte_ns: Option<Distribution>,
    /// Time from the capture of a request to when it was sent to the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Distribution>,
    /// What differs in answers, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<ClonedDifference>,
    /// Differences of kinds that are not listed.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub other_differences: u64,
}

/// What became of copies to the second target: one of each session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedNoise {
    /// Address and port of the second target.
    pub target: String,
    /// Connections to the second target.
    pub connections: ClonedConnections,
    /// Bytes that were to be said to it.
    pub sent: ClonedSent,
    /// Its answers compared with the server's.
    pub answers: ClonedAnswers,
}

/// In what answers differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedDifference {
    /// `first_line`, `malformed`, `size` (of bodies), `body`, `cut_short` or `field` (of heads, trailers among them).
    pub kind: String,
    /// What the server's answer has.
    pub online: String,
    /// What the target's answer has.
    pub target: String,
    /// Number of answers that differ in this way.
    pub count: u64,
    /// How often the second target's answers differ from the server's in the same respect (first lines, sizes, bodies, or the same field)
    /// where the server's began like this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<u64>,
    /// What one of these requests began with; empty where that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    /// Where the bodies of the first such pair of answers begin to differ, if that is within what is kept of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<ClonedPlace>,
}

/// Where two bodies begin to differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedPlace {
    /// The byte's number, from 0.
    pub offset: u64,
    /// What the server's body has there, with some bytes before, escaped.
    pub online: String,
    /// What the target's body has there.
    pub target: String,
}

figures! {
    /// Sessions that were copied, from their beginning or adopted.
    SESSIONS = "cloned_sessions", "sessions copied", Count;
    /// Connections to the target that were established.
    CONNECTED = "cloned_connections", "connections to the target", Count;
    /// Connections to the target that were not established.
    UNCONNECTED = "clone_failed_connections", "connections that failed", Count, Lower;
    /// Bytes that were said to the target.
    SENT = "cloned_bytes", "bytes said to the target", Bytes;
    /// Bytes that were to be said to the target and were not.
    UNSENT = "clone_unsent_bytes", "bytes not said", Bytes, Lower;
    /// Frames that were lost before they could be looked at.
    DROPPED = "clone_dropped_frames", "frames dropped while capturing", Count, Lower;
    /// Answers of the target that differ from the server's.
    DIFFERENT = "clone_different_answers", "answers that differ", Count, Lower;
    /// Median time from the capture of a request until it was said to the target.
    DELAY = "clone_delay_p50_ns", "delay until said, median", Ns, Lower;
    /// Its 99th percentile.
    DELAY_P99 = "clone_delay_p99_ns", "delay until said, 99 %", Ns, Lower;
    /// Median time to the first byte of the target's answer.
    TARGET_FIRST = "clone_target_first_byte_p50_ns", "target's first byte, median", Ns, Lower;
    /// Median time to the first byte of the server's answer.
    ONLINE_FIRST = "clone_online_first_byte_p50_ns", "server's first byte, median", Ns;
}

impl ClonedSessions {
    /// Sessions that are copied.
    pub fn taken(&self) -> u64 {
        self.copied + self.adopted
    }

    /// Those that ended before their clients did.
    pub fn cut(&self) -> u64 {
        self.gaps
            + self.missed
            + self.truncated
            + self.too_early
            + self.turned_tls
            + self.shed
            + self.unforwarded
    }

    /// Those that were not copied, with the reasons.
    pub fn left(&self) -> [(&'static str, u64); 12] {
        [
            ("half open", self.half_open),
            ("refused by the server", self.refused),
            ("open before the start", self.midstream + self.waiting),
            ("sampled out", self.sampled_out),
            ("beyond max-sessions", self.over_sessions),
            ("beyond max-new or max-rate", self.over_rate),
            ("beyond the ramp", self.ramped_out),
            ("beyond max-cpu or max-memory", self.over_ceiling),
            ("without room on the way here", self.over_link),
            ("copies that came back", self.own),
            ("TLS", self.tls),
            ("forgotten", self.idle),
        ]
    }
}

impl ClonedConnections {
    /// Connections that were not established, with the reasons.
    pub fn failures(&self) -> [(&'static str, u64); 5] {
        [
            ("refused", self.refused),
            ("timed out", self.timed_out),
            ("without a free address", self.no_address),
            ("failed otherwise", self.failed),
            ("unfinished at the end", self.unfinished),
        ]
    }
}

impl ClonedAnswers {
    /// Answers that differ.
    pub fn differing(&self) -> u64 {
        self.lines_differ
            + self.malformed
            + self.sizes_differ
            + self.bodies_differ
            + self.cut_short
            + self.fields_differ
    }

    /// Answers that differ, or are missing.
    pub fn different(&self) -> u64 {
        self.differing() + self.target_unanswered
    }
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(c) = &report.result.cloned else { return Vec::new() };
    let (sessions, dropped) = (SESSIONS.count(c.sessions.taken()), DROPPED.count(c.dropped_frames));
    // Where nobody was connected to, no connection failed and nothing was left unsaid.
    let Some(a) = &c.answers else { return vec![sessions, dropped] };
    let mut all = vec![
        sessions,
        CONNECTED.count(c.connections.connected),
        UNCONNECTED.count(c.connections.wanted - c.connections.connected.min(c.connections.wanted)),
        SENT.count(c.sent.sent),
        UNSENT.count(c.sent.due - c.sent.sent.min(c.sent.due)),
        dropped,
    ];
    all.push(DIFFERENT.count(a.different()).of(a.compared));
    all.extend(a.delay_ns.iter().flat_map(|d| [DELAY.count(d.p50), DELAY_P99.count(d.p99)]));
    all.extend(a.target_first_byte_ns.iter().map(|d| TARGET_FIRST.count(d.p50)));
    all.extend(a.online_first_byte_ns.iter().map(|d| ONLINE_FIRST.count(d.p50)));
    all
}
