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
    /// CPU time of the threads that copied, in nanoseconds.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub cpu_ns: u64,
}

/// Frames, and the segments in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedFrames {
    /// Frames that came from the capture.
    pub captured: u64,
    /// TCP segments from a client to the server,
    pub from_clients: u64,
    /// and back.
    pub from_server: u64,
    /// TCP of others.
    pub other_flows: u64,
    /// Other protocols.
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
    /// SYNs, without ACK, among the segments from clients,
    pub syns: u64,
    /// SYNs with ACK among those from the server,
    pub syn_acks: u64,
    /// and those of them whose SYN was not seen.
    pub syn_acks_alone: u64,
    /// Segments of no session: what comes behind its end, or without a beginning that could be one.
    pub strays: u64,
}

/// Sessions by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedSessions {
    /// Seen on the wire.
    pub seen: u64,
    /// SYNs whose connection never came about.
    pub half_open: u64,
    /// The server refused them.
    pub refused: u64,
    /// Open before the start, and waiting for a moment to be adopted.
    pub waiting: u64,
    /// Open before the start, and never adopted.
    pub midstream: u64,
    /// Not chosen.
    pub sampled_out: u64,
    /// Not taken, because there were too many at once,
    pub over_sessions: u64,
    /// too many new ones a second,
    pub over_rate: u64,
    /// because copies were to become more slowly,
    pub ramped_out: u64,
    /// or because copying took more of the machine than it may.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub over_ceiling: u64,
    /// The way from a capture on another host had no room, or was not there.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub over_link: u64,
    /// Of copies of ours that came back: from our addresses, or from the target.
    pub own: u64,
    /// Speaking TLS from their first byte, which the target has other keys for.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub tls: u64,
    /// Copied from their beginning,
    pub copied: u64,
    /// or from somewhere in between.
    pub adopted: u64,
    /// Of those that are copied: ended with a gap, because a segment was neither captured nor sent again,
    pub gaps: u64,
    /// with bytes that the server has and the capture has not,
    pub missed: u64,
    /// with a segment that was captured in part,
    pub truncated: u64,
    /// with more out of order than there is room for,
    pub too_early: u64,
    /// turned to TLS (STARTTLS),
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub turned_tls: u64,
    /// given up, because copying took far more of the machine than it may,
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub shed: u64,
    /// or given up by a capture on another host: the way from it had no room for a segment, or broke.
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
    /// Captured, each once.
    pub captured: u64,
    /// In order, and handed on to be said again.
    pub delivered: u64,
    /// Never in order: behind a gap.
    pub behind_gaps: u64,
    /// Captured again.
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
    /// Established.
    pub connected: u64,
    /// The target refused.
    pub refused: u64,
    /// The target did not answer in time.
    pub timed_out: u64,
    /// No address and port were free.
    pub no_address: u64,
    /// The kernel had another reason.
    pub failed: u64,
    /// The copying ended before.
    pub unfinished: u64,
    /// Among the established: the target closed, while its client still spoke,
    pub closed_early: u64,
    /// or reset,
    pub reset_early: u64,
    /// or they were given up, because too much waited for the target.
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
    /// Taken by the sockets.
    pub sent: u64,
    /// Not sent, because the connection did not come about,
    pub unconnected: u64,
    /// because the target closed or reset it,
    pub after_close: u64,
    /// because too much waited,
    pub overfull: u64,
    /// because the client reset its connection,
    pub reset: u64,
    /// or because the copying ended.
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
    /// And alike: of HTTP/1 in status line, body and fields of the head that do not differ by nature; of any other protocol byte by byte.
    pub same: u64,
    /// They begin differently: the first of these four that holds is counted.
    pub lines_differ: u64,
    /// They begin alike, and their bodies' sizes differ.
    pub sizes_differ: u64,
    /// Their bodies are of one size, and differ.
    #[serde(default)]
    pub bodies_differ: u64,
    /// Their bodies are alike, and fields of their heads differ.
    #[serde(default)]
    pub fields_differ: u64,
    /// Among those compared: not all of the server's body was captured; what was is compared, and its size.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub in_part: u64,
    /// Requests that the server did not answer, as far as the capture shows.
    pub online_unanswered: u64,
    /// Requests that the target did not answer, though the server did.
    pub target_unanswered: u64,
    /// An answer had not ended when copying did, or when its client went away: it is not compared.
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
    /// Sessions of which nothing is compared, because their messages cannot be told apart: HTTP/2.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unread_sessions: u64,
    /// From the request's last byte to the answer's first, at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_first_byte_ns: Option<Distribution>,
    /// And to its last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_last_byte_ns: Option<Distribution>,
    /// The same of the target, from when the request was said to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_first_byte_ns: Option<Distribution>,
    /// And to its last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_last_byte_ns: Option<Distribution>,
    /// From when a request was captured until it was said to the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Distribution>,
    /// In what answers differ, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<ClonedDifference>,
    /// Differences of kinds that are not listed.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub other_differences: u64,
}

/// What became of copies to the second target: one of each session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedNoise {
    /// Its address and port.
    pub target: String,
    /// Connections to it.
    pub connections: ClonedConnections,
    /// Bytes that were to be said to it.
    pub sent: ClonedSent,
    /// Its answers beside the server's.
    pub answers: ClonedAnswers,
}

/// In what answers differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClonedDifference {
    /// `first_line`, `size` (of bodies), `body` or `field` (of heads).
    pub kind: String,
    /// The server's.
    pub online: String,
    /// The target's.
    pub target: String,
    /// How often.
    pub count: u64,
    /// How often the second target's answers differ from the server's in the same respect (first lines, sizes, bodies, or the same field)
    /// where the server's began like this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<u64>,
    /// What one of these requests began with; empty where that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    /// Where the bodies of the answers to that request begin to differ, if that is within what is kept of them.
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
    /// What the target's has.
    pub target: String,
}

figures! {
    /// Sessions that were copied, from their beginning or adopted.
    SESSIONS = "cloned_sessions", "sessions copied", Count;
    /// Connections to the target that came about.
    CONNECTED = "cloned_connections", "connections to the target", Count;
    /// Connections to the target that did not come about.
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
    /// Connections that did not come about, with the reasons.
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
        self.lines_differ + self.sizes_differ + self.bodies_differ + self.fields_differ
    }

    /// Answers that differ, or are missing.
    pub fn different(&self) -> u64 {
        self.differing() + self.target_unanswered
    }
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(c) = &report.result.cloned else { return Vec::new() };
    let mut all = vec![
        SESSIONS.count(c.sessions.taken()),
        CONNECTED.count(c.connections.connected),
        UNCONNECTED.count(c.connections.wanted - c.connections.connected.min(c.connections.wanted)),
        SENT.count(c.sent.sent),
        UNSENT.count(c.sent.due - c.sent.sent.min(c.sent.due)),
        DROPPED.count(c.dropped_frames),
    ];
    if let Some(a) = &c.answers {
        all.push(DIFFERENT.count(a.different()).of(a.compared));
        all.extend(a.delay_ns.iter().flat_map(|d| [DELAY.count(d.p50), DELAY_P99.count(d.p99)]));
        all.extend(a.target_first_byte_ns.iter().map(|d| TARGET_FIRST.count(d.p50)));
        all.extend(a.online_first_byte_ns.iter().map(|d| ONLINE_FIRST.count(d.p50)));
    }
    all
}
