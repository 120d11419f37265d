//! What became of sessions that were copied to another server, from the frames that were captured to the answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section};
use crate::distribution::Distribution;
use crate::figure::{Measured, figures};
use crate::html::grid::Facts;
use crate::model::Report;
use crate::units;

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
    SENT = "cloned_bytes", "bytes said to the target", Count;
    /// Bytes that were to be said to the target and were not.
    UNSENT = "clone_unsent_bytes", "bytes not said", Count, Lower;
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

fn there<const N: usize>(all: [(&'static str, u64); N]) -> impl Iterator<Item = String> {
    all.into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{} {what}", units::count(count)))
}

/// The answers of both servers beside each other, and when they came.
fn answer_lines(c: &Cloned, a: &ClonedAnswers, lines: &mut Vec<Line>) {
    let mut answers = vec![
        units::counted(a.compared, "answer"),
        format!("{} alike", units::count(a.same)),
        format!("{} differ", units::count(a.differing())),
    ];
    answers.extend(there([
        ("unanswered by the target", a.target_unanswered),
        ("unanswered by the server", a.online_unanswered),
        ("cut", a.cut),
        ("compared in part", a.in_part),
        ("never asked of the target", a.unsaid),
        ("sessions not followed", a.unframed_sessions),
        ("sessions not read (HTTP/2)", a.unread_sessions),
    ]));
    lines.push(Line::facts("answers", answers));
    for (label, of) in [
        ("server", [&a.online_first_byte_ns, &a.online_last_byte_ns]),
        ("target", [&a.target_first_byte_ns, &a.target_last_byte_ns]),
    ] {
        let times = ["first byte", "last byte"].into_iter().zip(of).filter_map(|(what, of)| {
            let of = of.as_ref()?;
            Some(format!("{what} {} (99 %: {})", units::time(of.p50), units::time(of.p99)))
        });
        lines.push(Line::facts(label, times.collect()));
    }
    if let Some(delay) = &a.delay_ns {
        let facts = [("median", delay.p50), ("99 %", delay.p99), ("max", delay.max)];
        let facts = facts.map(|(what, ns)| format!("{what} {}", units::time(ns))).to_vec();
        lines.push(Line::facts("delay", facts));
    }
    if let Some(noise) = &c.noise {
        lines.push(Line::facts("noise", noise.facts()));
    }
    for difference in a.differences.iter().take(MOST_LINES) {
        lines.push(Line::text("differ", difference.sentence()));
    }
}

pub(super) struct Copied;

impl Section for Copied {
    fn figures(&self, report: &Report) -> Vec<Measured> {
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

    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(c) = &report.result.cloned else { return Vec::new() };
        let f = &c.frames;
        let mut captured = vec![
            units::counted(f.captured, "frame"),
            format!("{} from clients", units::count(f.from_clients)),
            format!("{} from the server", units::count(f.from_server)),
            format!("{} dropped", units::count(c.dropped_frames)),
        ];
        captured.extend(there([
            ("of other flows", f.other_flows),
            ("of other protocols", f.other_protocols),
            ("fragments of packets that never became whole", f.fragments),
            ("further fragments put together", f.joined),
            ("malformed", f.malformed),
            ("cut off", f.truncated),
        ]));
        let s = &c.sessions;
        let mut sessions = vec![
            units::counted(s.seen, "session"),
            format!("{} copied", units::count(s.copied)),
            format!("{} adopted", units::count(s.adopted)),
        ];
        sessions.extend(there(s.left()));
        let mut cut: Vec<String> = there([
            ("with a gap", s.gaps),
            ("with bytes that only the server has", s.missed),
            ("with a segment captured in part", s.truncated),
            ("with too much out of order", s.too_early),
            ("given up, beyond max-cpu or max-memory", s.shed),
            ("given up by their capture", s.unforwarded),
        ])
        .collect();
        if c.bytes.different > 0 {
            cut.push(format!("{} came again and differ", units::counted(c.bytes.different, "byte")));
        }
        let n = &c.connections;
        let mut connections = vec![
            units::counted(n.wanted, "connection"),
            format!("{} established", units::count(n.connected)),
        ];
        connections.extend(there(n.failures()));
        connections.extend(there([
            ("closed early by the target", n.closed_early),
            ("reset by the target", n.reset_early),
            ("given up, too much waited", n.overfull),
            ("no longer held", n.impatient),
            ("ends put off until answered", n.held_ends),
            ("ended unanswered", n.unanswered_ends),
        ]));
        let b = &c.sent;
        let mut sent = vec![
            format!("{} of {}", units::bytes(b.sent), units::bytes(b.due)),
            format!("{} answered", units::bytes(b.received)),
        ];
        sent.extend(there([
            ("bytes without a connection", b.unconnected),
            ("bytes after the target closed", b.after_close),
            ("bytes given up", b.overfull),
            ("bytes before a reset", b.reset),
            ("bytes unfinished", b.unfinished),
        ]));
        let mut lines = vec![
            Line::facts("captured", captured),
            Line::facts("sessions", sessions),
            Line::facts("cut", cut),
            Line::facts("target", connections),
            Line::facts("sent", sent),
        ];
        if let Some(answers) = &c.answers {
            answer_lines(c, answers, &mut lines);
        }
        lines
    }

    fn times<'r>(&self, report: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        let Some(a) = report.result.cloned.as_ref().and_then(|c| c.answers.as_ref()) else {
            return Vec::new();
        };
        let all = [
            ("server's first byte", &a.online_first_byte_ns),
            ("target's first byte", &a.target_first_byte_ns),
            ("server's last byte", &a.online_last_byte_ns),
            ("target's last byte", &a.target_last_byte_ns),
            ("delay until said", &a.delay_ns),
        ];
        all.into_iter().filter_map(|(name, of)| Some((name, of.as_ref()?))).collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(c) = &report.result.cloned else { return };
        facts.add("sessions seen", &units::count(c.sessions.seen));
        facts.add("sessions copied", &units::count(c.sessions.taken()));
        facts.add("sessions cut", &units::count(c.sessions.cut()));
        facts.add("connections to the target", &units::count(c.connections.connected));
        facts.add("bytes said to the target", &units::bytes(c.sent.sent));
        facts.add("frames dropped", &units::count(c.dropped_frames));
        if let Some(a) = &c.answers {
            facts.add("answers compared", &units::count(a.compared));
            facts.add("answers that differ", &units::count(a.different()));
        }
        if let Some(noise) = &c.noise {
            facts.add("second target", &noise.facts().join(", "));
        }
        for difference in c.answers.iter().flat_map(|a| &a.differences).take(MOST_LINES) {
            facts.add("difference", &difference.sentence());
        }
    }
}

impl Cloned {
    /// Not a session was copied, or no connection came about: it is the set-up that is wrong.
    pub(crate) fn reached_nobody(&self) -> bool {
        self.sessions.taken() == 0 || self.connections.connected == 0
    }

    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let (s, c) = (&self.sessions, &self.connections);
        let mut text = format!("Copied {} of {}", units::count(s.taken()), units::counted(s.seen, "session"));
        match &self.answers {
            None => text += "; connected to nobody, as asked",
            Some(answers) => {
                text += &format!(
                    ": {} to the target, {} of {} said",
                    units::counted(c.connected, "connection"),
                    units::bytes(self.sent.sent),
                    units::bytes(self.sent.due)
                );
                let differ = answers.differing();
                text += &match (answers.compared, answers.different()) {
                    (0, 0) => "; no answer could be compared".to_owned(),
                    (compared, 0) => {
                        format!("; all of {} are the server's", units::counted(compared, "answer"))
                    }
                    (compared, _) => format!(
                        "; {} of {} differ from the server's, {} more are missing",
                        units::count(differ),
                        units::counted(compared, "answer"),
                        units::count(answers.target_unanswered)
                    ),
                };
            }
        }
        text
    }
}

/// Differences that the summary lists; the result has more.
const MOST_LINES: usize = 8;

impl ClonedNoise {
    fn facts(&self) -> Vec<String> {
        let a = &self.answers;
        let mut facts = vec![
            format!("{}: {}", units::printable(&self.target), units::counted(a.compared, "answer")),
            format!("{} differ", units::count(a.differing())),
        ];
        facts.extend(there([
            ("unanswered", a.target_unanswered),
            (
                "connections that failed",
                self.connections.wanted - self.connections.connected.min(self.connections.wanted),
            ),
        ]));
        facts
    }
}

impl ClonedDifference {
    fn sentence(&self) -> String {
        let example = match self.example.as_str() {
            "" => String::new(),
            example => format!(", such as {}", units::printable(example)),
        };
        let [online, target] = [&self.online, &self.target].map(|text| units::printable(text));
        let noise = match self.noise {
            None => String::new(),
            Some(0) => "; the second target has none of it".to_owned(),
            Some(noise) => format!("; of the second target {} differ in the same", units::count(noise)),
        };
        let first = match &self.first {
            None => String::new(),
            Some(ClonedPlace { offset, online, target }) => {
                let [online, target] = [online, target].map(|text| units::printable(text));
                format!(" (first at byte {offset}: `{online}`, `{target}`)")
            }
        };
        format!("{}: {online} became {target}{first}{example}{noise}", units::count(self.count))
    }
}
