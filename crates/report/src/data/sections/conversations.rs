//! TCP connections that were played against a server (`netdyno live`): what was said, and how its answers differ from the
//! captured ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Bytes of those sent that the server acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes that the server said in the capture, and now.
    pub expected_bytes: u64,
    /// Bytes that the server said now.
    pub received_bytes: u64,
    /// Who ended it, in the capture and now: `client`, `server`, `reset by client`, `reset by server`, `open`.
    pub captured_end: String,
    /// Who ended the connection in this run.
    pub end: String,
    /// Time from the first segment to the last.
    pub duration_ns: u64,
    /// Segments that the client sent, retransmissions counted.
    pub segments_sent: u64,
    /// Segments that came from the server.
    pub segments_received: u64,
    /// Segments of those sent that were retransmissions.
    pub retransmitted_segments: u64,
    /// Times that nothing was acknowledged in time (RFC 6298).
    pub retransmission_timeouts: u64,
    /// Times that a closed window was asked whether it has opened.
    pub window_probes: u64,
    /// Segments of the server that came out of order, or brought bytes again.
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
    /// The shortest time.
    pub min: u64,
    /// The mean time.
    pub mean: u64,
    /// The longest time.
    pub max: u64,
}

/// Words of the client, and the server's answer to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// When the last byte of the request was sent, from the start of the run. Left out where the server speaks first, or
    /// nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at_ns: Option<u64>,
    /// Bytes that the client says.
    pub client_bytes: u64,
    /// Bytes of the answer in the capture.
    pub expected_bytes: u64,
    /// Bytes of the answer in this run.
    pub received_bytes: u64,
    /// Bytes that the capture does not have, and that were taken as they came.
    pub not_compared_bytes: u64,
    /// The first place where the answer is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Time from the last byte of the request to the first byte of the answer in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// Time from the last byte of the request to the first byte of the answer in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_first_byte_ns: Option<u64>,
    /// Time from the last byte of the request to the last byte of the answer in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_byte_ns: Option<u64>,
    /// Time from the last byte of the request to the last byte of the answer in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_last_byte_ns: Option<u64>,
}

/// Where an answer begins to differ, with some bytes of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Offset of the difference in the captured answer, from 0.
    pub offset: u64,
    /// Offset of the first byte that is shown.
    pub shown_from: u64,
    /// Bytes of the captured answer, in hexadecimal.
    pub captured: String,
    /// Bytes of the answer in this run, in hexadecimal.
    pub live: String,
}
