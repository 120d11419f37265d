//! The far parts of a clone in lines: the capture at the server's host, and the return agent at the target.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::forwarding::{Forwarded, Returned};
use crate::data::units;
use crate::render::html::grid::Facts;

fn there(all: &[(&str, u64)]) -> impl Iterator<Item = String> {
    all.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{} {what}", units::count(*count)))
}

impl Forwarded {
    fn captured(&self) -> Vec<String> {
        vec![
            units::counted(self.frames, "frame"),
            format!("{} from clients", units::count(self.from_clients)),
            format!("{} from the server", units::count(self.from_server)),
            format!("{} dropped", units::count(self.dropped_frames)),
        ]
    }

    fn of_sessions(&self) -> Vec<String> {
        let s = &self.sessions;
        let others = [
            ("given up for want of room", s.shed),
            ("given up with the connection", s.lost),
            ("half open", s.half_open),
            ("refused by the server", s.refused),
            ("open before the start", s.midstream),
            ("sampled out", s.sampled_out),
            ("beyond max-sessions", s.over_sessions),
            ("beyond max-rate", s.over_rate),
            ("beyond max-cpu or max-memory", s.over_ceiling),
            ("without room on the way", s.over_link),
        ];
        let forwarded = format!("{} forwarded", units::counted(s.forwarded, "session"));
        let arrived =
            self.arrived_sessions.map(|count| format!("{} arrived at the clone", units::count(count)));
        std::iter::once(forwarded).chain(arrived).chain(there(&others)).collect()
    }

    fn sent(&self) -> Vec<String> {
        let share = self.cpu_ns as f64 * 100.0 / self.duration_ns.max(1) as f64;
        vec![
            format!("{} to {}", units::bytes(self.sent_bytes), units::printable(&self.send_to)),
            units::counted(self.connections, "connection"),
            format!("{share:.1} % of a core"),
        ]
    }
}

impl Returned {
    fn facts(&self) -> Vec<String> {
        let first = [
            format!("{} of copies let in", units::counted(self.connections, "connection")),
            units::counted(self.packets, "packet"),
            format!("{} steered back", units::counted(self.steered_packets, "answer")),
        ];
        let others = [
            ("ICMP errors kept from clients", self.kept_icmp_errors),
            ("fragments kept from clients", self.kept_fragments),
            ("answers that the tunnel did not take, kept from clients", self.kept_answers),
            ("connections refused for want of room", self.refused_connections),
            ("packets of unknown connections", self.unknown_packets),
            ("packets while not at work", self.closed_packets),
            ("packets that are none for the server", self.malformed_packets),
            ("packets of copies' addresses that came by another way", self.foreign_packets),
            ("sockets of copies ended", self.ended_sockets),
            ("filters taken away", self.removed_filters),
        ];
        first.into_iter().chain(there(&others)).collect()
    }
}

/// What a part did: labels, and facts behind each.
type Labelled = Vec<(&'static str, Vec<String>)>;

fn lines(of: Labelled) -> Vec<Line> {
    of.into_iter().map(|(label, facts)| Line::facts(label, facts)).collect()
}

fn add(of: Labelled, facts: &mut Facts) {
    of.iter().for_each(|(label, all)| facts.add(label, &all.join(", ")));
}

pub(super) struct CapturedThere;

impl CapturedThere {
    fn labelled(report: &Report) -> Labelled {
        // Beside what the clone had of it, it says that it was captured elsewhere.
        let label = if report.result.cloned.is_some() { "there" } else { "captured" };
        let all = report.result.forwarded.iter();
        all.flat_map(|of| [(label, of.captured()), ("forwarded", of.of_sessions()), ("sent to", of.sent())])
            .collect()
    }
}

impl Section for CapturedThere {
    fn lines(&self, report: &Report) -> Vec<Line> {
        lines(Self::labelled(report))
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        add(Self::labelled(report), facts);
    }
}

pub(super) struct SentBack;

impl SentBack {
    fn labelled(report: &Report) -> Labelled {
        report.result.returned.iter().map(|of| ("returned", of.facts())).collect()
    }
}

impl Section for SentBack {
    fn lines(&self, report: &Report) -> Vec<Line> {
        lines(Self::labelled(report))
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        add(Self::labelled(report), facts);
    }
}
