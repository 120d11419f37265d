//! A session of STAMP: packets, delays, directions, clocks.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::stamp::{Stamp, StampClocks, StampStrangers};
use crate::data::units;
use crate::render::html::grid::Facts;

impl Stamp {
    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let reflector = units::printable(&self.reflector);
        let sent = units::counted(self.sent, "packet");
        if self.answered == 0 {
            return format!("Sent {sent} to {reflector}; none was answered");
        }
        let lost = match self.loss_ratio.filter(|_| self.lost > 0) {
            Some(ratio) => format!("{} lost ({})", units::count(self.lost), units::percent(ratio)),
            None => "none lost".to_owned(),
        };
        let mut text =
            format!("Sent {sent} to {reflector}, {} answered, {lost}", units::count(self.answered));
        if let Some(d) = &self.round_trip_ns {
            text += &format!("; round trip p50 {}, p99 {}", units::time(d.p50), units::time(d.p99));
        }
        text
    }

    fn packets(&self) -> Vec<String> {
        let mut facts = vec![
            format!("{} of {} B sent", units::counted(self.sent, "packet"), self.size_bytes),
            format!("{} answered", units::count(self.answered)),
        ];
        let ratio = self.loss_ratio.map_or_else(String::new, |ratio| format!(" ({})", units::percent(ratio)));
        facts.push(format!("{} lost{ratio}", units::count(self.lost)));
        let some = [
            ("answered too late", self.late),
            ("due and not sent", self.unsent),
            ("refused by this host", self.refused),
            ("duplicated", self.duplicates),
            ("reordered", self.reordered),
            ("answered with impossible times", self.implausible_times),
            ("dropped by this host's socket", self.dropped_by_receiver),
            ("answers of another length", self.other_length),
        ];
        facts.extend(
            some.iter()
                .filter(|(_, count)| *count > 0)
                .map(|(what, count)| format!("{} {what}", units::count(*count))),
        );
        facts
    }

    /// In which direction packets were lost.
    fn directions(&self) -> String {
        match (self.forward_lost, self.return_lost) {
            (Some(forward), Some(back)) => {
                let mut text = format!(
                    "{} lost on the way there, {} on the way back",
                    units::count(forward),
                    units::count(back)
                );
                if let Some(unknown) = self.unknown_direction_lost.filter(|lost| *lost > 0) {
                    text += &format!(", {} after the last answer: cannot tell", units::count(unknown));
                }
                if self.late > 0 {
                    text += &format!(", {} answered too late", units::count(self.late));
                }
                text
            }
            _ => {
                let why = self.no_direction.as_deref().unwrap_or("the reflector does not tell");
                format!("cannot tell: {}", units::printable(why))
            }
        }
    }

    fn reflector_facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        facts.extend(self.stateful.filter(|is| *is).map(|_| "stateful: it counts what it sends".to_owned()));
        facts.extend(self.ssid_returned.map(|is| {
            if is { "returns session identifiers (RFC 8972)" } else { "returns no session identifier" }
                .to_owned()
        }));
        facts.extend(
            self.padding_recognised.map(|is| {
                if is { "knows the padding TLV" } else { "does not know the padding TLV" }.to_owned()
            }),
        );
        let ttl = self.least_ttl.map(|ttl| match self.forward_hops {
            Some(hops) => format!("{} on the way there (TTL {ttl})", units::counted(hops, "router")),
            None => format!("TTL {ttl} there: hops not known"),
        });
        facts.extend(ttl);
        facts
    }

    /// Delays with their labels in the summary and their names on the page.
    fn delays(&self) -> impl Iterator<Item = ([&'static str; 2], &Distribution)> {
        let all = [
            (["rtt", "round trip"], &self.round_trip_ns),
            (["variation", "variation of the round trip"], &self.round_trip_variation_ns),
            (["var there", "variation, way there"], &self.forward_variation_ns),
            (["var back", "variation, way back"], &self.return_variation_ns),
            (["reflector", "time at the reflector"], &self.residence_ns),
            (["there", "one way, there"], &self.forward_delay_ns),
            (["back", "one way, back"], &self.return_delay_ns),
        ];
        all.into_iter().filter_map(|(names, d)| Some((names, d.as_ref()?)))
    }

    /// What one-way delays are worth, or why they are not told.
    fn one_way(&self) -> Vec<String> {
        let withheld = |way: &str, why: &Option<String>| {
            why.as_ref().map(|why| format!("{way} withheld: {}", units::printable(why)))
        };
        let error =
            self.one_way_error_ns.map(|ns| format!("both clocks together may be off by {}", units::time(ns)));
        if self.forward_withheld.is_some() && self.forward_withheld == self.return_withheld {
            return withheld("both ways", &self.forward_withheld).into_iter().collect();
        }
        error
            .into_iter()
            .chain(withheld("there", &self.forward_withheld))
            .chain(withheld("back", &self.return_withheld))
            .collect()
    }
}

impl StampStrangers {
    fn facts(&self) -> Vec<String> {
        let source = self.first_source.as_deref().map(units::printable);
        let from = source.map_or_else(String::new, |source| format!(" ({source})"));
        let all = [
            (format!("from another address or port{from}"), self.other_source),
            ("too short".to_owned(), self.too_short),
            ("of another session".to_owned(), self.other_session),
            ("to packets never sent".to_owned(), self.unknown_number),
            ("with another time of departure".to_owned(), self.other_time),
        ];
        let some = all.into_iter().filter(|(_, count)| *count > 0);
        some.map(|(what, count)| format!("{} {what}", units::count(count))).collect()
    }
}

impl StampClocks {
    fn facts(&self) -> Vec<String> {
        let mut facts = vec![
            format!("T1 by the {}", units::printable(&self.t1)),
            format!("T4 by the {}", units::printable(&self.t4)),
        ];
        if self.t4_by_program > 0 {
            facts.push(format!("{} of them by the program", units::count(self.t4_by_program)));
        }
        facts.push(self.own_error_ns.map_or("this host's clock not kept".to_owned(), |ns| {
            format!("this host's clock within {}", units::time(ns))
        }));
        if let Some(is) = self.reflector_synchronised {
            let kept = if is { "kept" } else { "not kept" };
            let error = self.reflector_error_ns.filter(|_| is);
            let within = error.map_or_else(String::new, |ns| format!(" within {}", units::time(ns)));
            let format = self.reflector_format.as_deref().unwrap_or_default().to_uppercase();
            facts.push(format!("the reflector's says {kept}{within}, {}", units::printable(&format)));
        }
        facts.extend(self.stepped_ns.map(|ns| format!("set by {} meanwhile", units::time(ns))));
        facts
    }
}

pub(super) struct OfStamp;

impl Section for OfStamp {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(s) = &report.result.stamp else { return Vec::new() };
        let mut lines = vec![Line::facts("packets", s.packets())];
        if s.answered > 0 && s.lost > 0 {
            lines.push(Line::text("direction", s.directions()));
        }
        lines.extend(s.delays().map(|([label, _], d)| Line::facts(label, delay_facts(d))));
        if s.answered > 0 {
            lines.push(Line::facts("one-way", s.one_way()));
            lines.push(Line::facts("clocks", s.clocks.facts()));
            lines.push(Line::facts("answers", s.reflector_facts()));
        }
        lines.push(Line::facts("strangers", s.strangers.facts()));
        lines.extend(s.errors.iter().map(|error| Line::text("came back", error.sentence())));
        lines
    }

    fn times<'r>(&self, report: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        report.result.stamp.iter().flat_map(Stamp::delays).map(|([_, name], d)| (name, d)).collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(s) = &report.result.stamp else { return };
        facts.add("reflector", &units::printable(&s.reflector));
        facts.add("packets", &s.packets().join(", "));
        if s.answered > 0 {
            facts.add("lost by direction", &s.directions());
            facts.add("one-way delays", &s.one_way().join(", "));
            facts.add("clocks", &s.clocks.facts().join(", "));
            facts.add("answers", &s.reflector_facts().join(", "));
        }
        if s.strangers.all > 0 {
            facts.add("no answers", &s.strangers.facts().join(", "));
        }
    }
}

impl crate::data::sections::stamp::StampError {
    fn sentence(&self) -> String {
        let by = self.by.as_deref().map_or_else(String::new, |by| format!(" from {}", units::printable(by)));
        format!("{} {}{by}", units::count(self.count), units::printable(&self.what))
    }
}

fn delay_facts(d: &Distribution) -> Vec<String> {
    let mut facts =
        vec![format!("min {}", units::time(d.min)), format!("mean {}", units::time(d.mean as u64))];
    facts.extend(d.far_percentiles().map(|(name, value)| format!("{name} {}", units::time(value))));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(stamp: Stamp) -> String {
        let mut report = Report::new("endpoint");
        report.result.stamp = Some(stamp);
        let lines = OfStamp.lines(&report).into_iter();
        let text = |line: Line| match line.says {
            super::super::Says::Facts(facts) => format!("{}: {}", line.label, facts.join(", ")),
            super::super::Says::Text(text) => format!("{}: {text}", line.label),
        };
        lines.map(text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_direction_that_is_not_known_is_never_a_number() {
        let lossy = Stamp { sent: 10, answered: 8, lost: 2, loss_ratio: Some(0.2), ..Stamp::default() };
        let why = Some("it is stateless".to_owned());
        let text = said(Stamp { no_direction: why, ..lossy.clone() });
        assert!(text.contains("direction: cannot tell: it is stateless"), "{text}");
        let known = Stamp { forward_lost: Some(0), return_lost: Some(1), ..lossy };
        let text = said(Stamp { unknown_direction_lost: Some(1), ..known });
        let words =
            "direction: 0 lost on the way there, 1 on the way back, 1 after the last answer: cannot tell";
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn what_a_stranger_sends_is_printed_as_text() {
        let strangers = StampStrangers {
            all: 1,
            other_source: 1,
            first_source: Some("\u{1b}[2J".into()),
            ..Default::default()
        };
        let text = said(Stamp { strangers, ..Stamp::default() });
        assert!(text.contains("1 from another address or port") && !text.contains('\u{1b}'), "{text}");
    }
}
