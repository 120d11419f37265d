//! TCP connections that were made or served without the host's TCP.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::sessions::{HeldSessions, NatCounts, Sessions, SessionsServed};
use crate::data::units;
use crate::render::html::grid::Facts;

impl Sessions {
    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let server = units::printable(&self.server);
        let what = if self.application == "udp" { "UDP session" } else { "connection" };
        let opened = units::counted(self.opened, what);
        let mut text = format!(
            "Opened {opened} to {server} at {}; {} finished",
            units::event_rate(self.opened_per_second),
            units::count(self.finished)
        );
        text += &match self.failed {
            0 => ", none failed".to_owned(),
            failed => format!(", {} failed ({})", units::count(failed), units::percent(self.failed_ratio())),
        };
        if let Some((name, d)) = self.delays().next() {
            text += &format!("; {name} p50 {}, p99 {}", units::time(d.p50), units::time(d.p99));
        }
        text
    }

    fn failed_ratio(&self) -> f64 {
        if self.opened == 0 { 0.0 } else { self.failed as f64 / self.opened as f64 }
    }

    fn connections(&self) -> Vec<String> {
        shown([
            ("opened", self.opened, true),
            ("finished", self.finished, true),
            ("failed", self.failed, true),
            ("reset", self.reset, false),
            ("timed out", self.timed_out, false),
            ("closed before the answer was whole", self.unanswered, false),
            ("closed early", self.closed_early, false),
            ("refused for their MSS", self.refused, false),
            ("abandoned", self.abandoned, false),
            ("still open", self.open, false),
            ("opened late", self.late, false),
            ("times a tuple was still in use", self.tuples_in_use, false),
            ("relays refused", self.relays_refused, false),
        ])
    }

    fn answered(&self) -> Vec<String> {
        shown([
            ("requests", self.requests, true),
            ("answers", self.answers, true),
            ("status 1xx", self.status_1xx, false),
            ("status 2xx", self.status_2xx, false),
            ("status 3xx", self.status_3xx, false),
            ("status 4xx", self.status_4xx, false),
            ("status 5xx", self.status_5xx, false),
            ("without a status", self.not_http, false),
            ("status not read", self.status_unread, false),
            ("with their numbers", self.numbered_answers, false),
            ("interim, of 1xx", self.interim_answers, false),
            ("without a length", self.unframed_answers, false),
            ("ended by the close alone", self.answers_to_the_close, false),
            ("with lengths that contradict each other", self.misframed_answers, false),
            ("longer than announced", self.overlong_answers, false),
        ])
    }

    fn segments(&self) -> Vec<String> {
        shown([
            ("sent again", self.retransmitted, true),
            ("of them SYNs", self.retransmitted_syns, false),
            ("requests", self.retransmitted_requests, false),
            ("acknowledgements", self.retransmitted_acks, false),
            ("FINs", self.retransmitted_fins, false),
            ("duplicates", self.duplicates, false),
            ("out of order", self.out_of_order, false),
            ("unexpected", self.unexpected, false),
            ("malformed", self.malformed, false),
            ("RSTs sent", self.resets_sent, false),
            ("requests deferred", self.deferred_requests, false),
            ("requests left to be sent again", self.undeferred_requests, false),
            ("without room", self.without_room, false),
            ("ARP replies", self.arp_replies, false),
            ("neighbour advertisements", self.neighbour_advertisements, false),
        ])
    }

    fn delays(&self) -> impl Iterator<Item = (&'static str, &Distribution)> {
        let all = [("handshake", &self.handshake_ns), ("answer", &self.answer_ns)];
        all.into_iter().filter_map(|(name, d)| Some((name, d.as_ref()?)))
    }
}

impl HeldSessions {
    fn facts(&self) -> Vec<String> {
        let mut facts = vec![format!("{} of {}", units::count(self.held), units::count(self.asked))];
        if self.used_again > 0 {
            facts.push(format!(
                "{} of {} {}",
                units::count(self.answered_again),
                units::count(self.used_again),
                match self.from_server {
                    true => "reached from the server's side",
                    false => "answered when used again",
                }
            ));
        }
        for (what, ns) in
            [("opening", self.opening_ns), ("using again", self.using_ns), ("closing", self.closing_ns)]
        {
            if ns > 0 {
                facts.push(format!("{what} took {}", units::time(ns)));
            }
        }
        facts
    }
}

impl NatCounts {
    /// For a person.
    pub fn facts(&self) -> Vec<String> {
        shown([
            ("connections translated", self.translated, true),
            ("entries at the end", self.entries, true),
            ("packets dropped for one connection too many", self.over_connections, false),
            ("packets dropped for their rate", self.over_rate, false),
            ("packets of no connection dropped", self.invalid, false),
            ("connections without a place", self.insert_failed, false),
            ("packets dropped by a full table", self.table_full, false),
            ("entries given up for new ones", self.early_dropped, false),
        ])
    }

    /// Packets and connections that it did not take.
    pub(crate) fn refused(&self) -> u64 {
        let all = [self.over_connections, self.over_rate, self.insert_failed, self.table_full];
        all.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl SessionsServed {
    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        // UDP has no SYNs.
        let syns =
            if self.syns > 0 { format!("{} and ", units::counted(self.syns, "SYN")) } else { String::new() };
        format!(
            "Answered {syns}{} at {}",
            units::counted(self.requests, "request"),
            units::printable(&self.listen)
        )
    }

    fn facts(&self) -> Vec<String> {
        shown([
            ("SYNs", self.syns, self.finished > 0),
            ("requests", self.requests, true),
            ("FINs after the whole answer", self.finished, self.syns > 0),
            ("datagrams sent for other sessions", self.relayed, false),
            ("RSTs received", self.resets, false),
            ("acknowledged what was never said", self.bad_cookies, false),
            ("unexpected", self.unexpected, false),
            ("malformed", self.malformed, false),
            ("without room", self.without_room, false),
            ("ARP replies", self.arp_replies, false),
            ("neighbour advertisements", self.neighbour_advertisements, false),
        ])
    }
}

/// Those that are always of interest, and what else there was.
fn shown<const N: usize>(all: [(&'static str, u64, bool); N]) -> Vec<String> {
    let of_interest = all.into_iter().filter(|(_, count, always)| *always || *count > 0);
    of_interest.map(|(what, count, _)| format!("{} {what}", units::count(count))).collect()
}

pub(super) struct OfSessions;

impl Section for OfSessions {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(s) = &report.result.sessions {
            lines.push(Line::facts("connections", s.connections()));
            lines.push(Line::facts("answers", s.answered()));
            lines.extend(s.held.iter().map(|held| Line::facts("held", held.facts())));
            lines.push(Line::facts("segments", s.segments()));
            lines.extend(s.nat.iter().map(|nat| Line::facts("nat", nat.facts())));
            lines.extend(s.delays().map(|(name, d)| Line::facts(name, delay_facts(d))));
        }
        lines.extend(report.result.sessions_served.iter().map(|s| Line::facts("served", s.facts())));
        lines
    }

    fn times<'r>(&self, report: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        report.result.sessions.iter().flat_map(Sessions::delays).collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        if let Some(s) = &report.result.sessions {
            facts.add("server", &units::printable(&s.server));
            facts.add("connections", &s.connections().join(", "));
            facts.add("answers", &s.answered().join(", "));
            s.held.iter().for_each(|held| facts.add("held", &held.facts().join(", ")));
            facts.add("segments", &s.segments().join(", "));
            s.nat.iter().for_each(|nat| facts.add("nat", &nat.facts().join(", ")));
        }
        if let Some(s) = &report.result.sessions_served {
            facts.add("served", &s.facts().join(", "));
        }
    }
}

fn delay_facts(d: &Distribution) -> Vec<String> {
    let mut facts =
        vec![format!("min {}", units::time(d.min)), format!("mean {}", units::time(d.mean as u64))];
    facts.extend(d.far_percentiles().map(|(name, value)| format!("{name} {}", units::time(value))));
    facts
}
