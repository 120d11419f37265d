//! A clone of sessions in lines: from the frames that were captured to the answers of the target.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::cloning::{Cloned, ClonedAnswers, ClonedDifference, ClonedNoise, ClonedPlace};
use crate::data::units;
use crate::render::html::grid::Facts;

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
            ("with urgent data", f.urgent),
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
            None => text += "; made no connections, as asked",
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
