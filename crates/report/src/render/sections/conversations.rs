//! TCP connections that were played against a server: each with its exchanges and where answers differ.

use crate::data::sections::conversations::{Conversation, Outcome};
use crate::data::units::{self, printable};
use crate::render::table::{Less, Table};
use crate::render::text::{Options, fold};

/// Exchanges that the summary lists of each connection.
const LISTED: usize = 8;

/// The part of the summary: for each connection a line, its exchanges, its differences.
pub(crate) fn text(conversations: &[Conversation], options: Options<'_>) -> String {
    let mut out = String::new();
    for (nth, conversation) in conversations.iter().enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        out += &one(conversation, options);
    }
    out
}

/// How many were as captured.
pub(crate) fn sentence(conversations: &[Conversation]) -> String {
    let of = |outcome| conversations.iter().filter(|c| c.outcome == outcome).count() as u64;
    format!(
        "Played {}: {} as captured, {} with other answers, {} not to the end, {} not connected",
        units::counted(conversations.len() as u64, "connection"),
        units::count(of(Outcome::Equal)),
        units::count(of(Outcome::Differs)),
        units::count(of(Outcome::Broken)),
        units::count(of(Outcome::Failed))
    )
}

/// Which connection it was, and how it went.
pub(crate) fn heading(c: &Conversation) -> String {
    let outcome = match c.outcome {
        Outcome::Equal => "as captured",
        Outcome::Differs => "differs",
        Outcome::Broken => "not played to its end",
        Outcome::Failed => "no connection",
    };
    format!(
        "connection {}: {} > {}, played {} > {}: {outcome}{}",
        c.flow,
        printable(&c.captured_client),
        printable(&c.captured_server),
        printable(&c.from),
        printable(&c.to),
        c.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", printable(reason)))
    )
}

/// What was said and heard, and how.
pub(crate) fn what_went(c: &Conversation) -> String {
    let rtt = c.rtt_ns.map_or_else(String::new, |rtt| {
        format!(", round trip {} (up to {})", units::time(rtt.mean), units::time(rtt.max))
    });
    format!(
        "said {} of {} bytes, heard {} where {} were captured, in {}{rtt}; {} sent, {} received, {} retransmitted; \
         ended: {} (captured: {})",
        units::count(c.acknowledged_bytes),
        units::count(c.client_bytes),
        units::count(c.received_bytes),
        units::count(c.expected_bytes),
        units::time(c.duration_ns),
        units::counted(c.segments_sent, "segment"),
        units::count(c.segments_received),
        units::count(c.retransmitted_segments),
        printable(&c.end),
        printable(&c.captured_end),
    )
}

/// Columns of a table of exchanges; the last says whether the answers were equal.
pub(crate) const EXCHANGES: [&str; 9] =
    ["exchange", "said", "captured answer", "answer", "first byte", "captured", "last byte", "captured", ""];

fn one(c: &Conversation, options: Options<'_>) -> String {
    let mut out = fold(&heading(c), 2, options.width);
    if c.outcome == Outcome::Failed {
        return out;
    }
    out += &fold(&what_went(c), 2, options.width);
    let mut table = Table::with_header(EXCHANGES);
    let time = |ns: Option<u64>| ns.map(units::time);
    for (nth, exchange) in c.exchanges.iter().enumerate().take(LISTED) {
        let verdict = match &exchange.difference {
            None => "equal".to_owned(),
            Some(difference) => format!("differs at byte {}", units::count(difference.offset)),
        };
        table.row(
            &(nth + 1).to_string(),
            [
                Some(units::count(exchange.client_bytes)),
                Some(units::count(exchange.expected_bytes)),
                Some(units::count(exchange.received_bytes)),
                time(exchange.first_byte_ns),
                time(exchange.captured_first_byte_ns),
                time(exchange.last_byte_ns),
                time(exchange.captured_last_byte_ns),
                Some(verdict),
            ],
        );
    }
    let less = [
        Less::Shorter("captured answer", "captured"),
        Less::Shorter("exchange", "#"),
        // What the server needed to begin with its answer tells more than what the network needed to carry it.
        Less::Without(&["last byte", "captured#2"]),
        Less::Without(&["said"]),
    ];
    out += &table.within(options, &less);
    let more = c.exchanges.len().saturating_sub(LISTED);
    if more > 0 {
        out += &format!("... and {}; the JSON has all\n", units::counted(more as u64, "more exchange"));
    }
    let different =
        c.exchanges.iter().enumerate().filter_map(|(nth, e)| Some((nth + 1, e.difference.as_ref()?)));
    for (nth, difference) in different.take(LISTED) {
        out +=
            &format!("exchange {nth}, from byte {} of the answer on:\n", units::count(difference.shown_from));
        for (name, hex) in [("captured", &difference.captured), ("live", &difference.live)] {
            out += &format!("  {name:<9}{}\n", readable(hex));
        }
    }
    out
}

/// Hexadecimal bytes as text, what is no text escaped.
pub(crate) fn readable(hex: &str) -> String {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.as_chunks::<2>().0.iter().map(|[a, b]| (a * 16 + b) as u8).collect();
    if bytes.is_empty() { "(nothing)".to_owned() } else { format!("\"{}\"", bytes.escape_ascii()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sections::conversations::{Difference, Exchange};

    #[test]
    fn a_difference_is_shown_with_what_stood_there() {
        let difference =
            Difference { offset: 4, shown_from: 0, captured: "61620d0a".into(), live: "1b5b".into() };
        let exchange = Exchange {
            expected_bytes: 9,
            received_bytes: 9,
            difference: Some(difference),
            ..Exchange::default()
        };
        let conversation = Conversation {
            captured_client: "\u{1b}[2J".into(),
            outcome: Outcome::Differs,
            exchanges: vec![exchange],
            ..Conversation::default()
        };
        let text = text(&[conversation], Options::default());
        assert!(text.contains("differs at byte 4"), "{text}");
        assert!(text.contains(r#""ab\r\n""#) && text.contains(r#""\x1b[""#), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
