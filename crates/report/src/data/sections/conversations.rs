//! TCP connections that were played against a server (`netdyno live`): what was said, and how its answers differ from the
//! captured ones. The model, and its part of the summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::units::{self, printable};
use crate::render::table::{Less, Table};
use crate::render::text::{Options, fold};

/// Exchanges that the summary lists of each connection.
const LISTED: usize = 8;

/// A played connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// Its number in the capture, from 0, as Wireshark's tcp.stream.
    pub flow: u64,
    /// Address and port of the captured client and server.
    pub captured_client: String,
    /// Address and port of the captured server.
    pub captured_server: String,
    /// Address and port that it was played from, and to.
    pub from: String,
    /// Address and port that it was played to.
    pub to: String,
    /// How it went.
    pub outcome: Outcome,
    /// What stopped it before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bytes that the client says, and how many of them the server acknowledged.
    pub client_bytes: u64,
    /// Of those, bytes that the server acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes that the server said in the capture, and now.
    pub expected_bytes: u64,
    /// Bytes that the server said now.
    pub received_bytes: u64,
    /// Who ended it, in the capture and now: `client`, `server`, `reset by client`, `reset by server`, `open`.
    pub captured_end: String,
    /// Who ended it now.
    pub end: String,
    /// From the first segment to the last.
    pub duration_ns: u64,
    /// Segments that the client sent, retransmissions counted.
    pub segments_sent: u64,
    /// Segments that came from the server.
    pub segments_received: u64,
    /// Of those that were sent: segments that were sent again.
    pub retransmitted_segments: u64,
    /// Times that nothing was acknowledged in time (RFC 6298).
    pub retransmission_timeouts: u64,
    /// Times that a closed window was asked whether it has opened.
    pub window_probes: u64,
    /// Of the server's: segments that came before their turn, and bytes that came again.
    pub out_of_order_segments: u64,
    /// Bytes of the server that came again.
    pub duplicate_bytes: u64,
    /// Left out where nothing was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<RoundTrip>,
    /// Words of the client with the answers to them, in order.
    pub exchanges: Vec<Exchange>,
}

/// How a connection went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All was said, and the answers are the captured ones.
    #[default]
    Equal,
    /// All was said, and an answer is another.
    Differs,
    /// It was not played to its end.
    Broken,
    /// There was no connection.
    Failed,
}

/// Round trips of segments and their acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrip {
    /// The shortest, in nanoseconds.
    pub min: u64,
    /// The mean.
    pub mean: u64,
    /// The longest.
    pub max: u64,
}

/// Words of the client, and the server's answer to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// When its last word was said, from the start of the run. Left out where the server speaks first, or nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at_ns: Option<u64>,
    /// Bytes that the client says.
    pub client_bytes: u64,
    /// Bytes of the answer in the capture.
    pub expected_bytes: u64,
    /// Bytes of the answer now.
    pub received_bytes: u64,
    /// Bytes that the capture does not have, and that were taken as they came.
    pub not_compared_bytes: u64,
    /// The first place where the answer is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// From the last word to the first and the last byte of the answer: now, and in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// The same in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_first_byte_ns: Option<u64>,
    /// To the last byte of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_byte_ns: Option<u64>,
    /// The same in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_last_byte_ns: Option<u64>,
}

/// Where an answer begins to differ, with some bytes of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// In the captured answer, from 0.
    pub offset: u64,
    /// Where what is shown begins.
    pub shown_from: u64,
    /// Hexadecimal.
    pub captured: String,
    /// The same of the answer now.
    pub live: String,
}

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
