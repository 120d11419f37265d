//! TCP connections and UDP sessions that were made without the host's stack (`netdyno sessions`), and those that were served so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

/// What became of TCP connections, or of UDP sessions, which are called connections here, too. `opened` is the sum of `finished`, `failed` and `open`, and `failed` that of `reset`, `timed_out`,
/// `unanswered`, `closed_early`, `refused` and `abandoned`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// Address and port of the server.
    pub server: String,
    /// What was spoken: http (over TCP) or udp.
    #[serde(default = "http")]
    pub application: String,
    /// The first address of the clients, and how many there are.
    pub first_client: String,
    /// Number of addresses of clients.
    pub client_addresses: u64,
    /// Tuples of address and port that were there to be used.
    pub tuples: u64,
    /// Tuples from which a connection was opened, or several one after the other.
    #[serde(default)]
    pub tuples_used: u64,
    /// Connections of which a SYN was sent; of UDP sessions of which a request was sent.
    pub opened: u64,
    /// Connections that the server accepted (SYN-ACK); of UDP sessions that had a first answer.
    pub established: u64,
    /// Connections that went to their end: each request had a whole answer, whatever its status, and either side closed and had that
    /// acknowledged; or the client ended it by a RST, where that was asked for. A session of UDP is over when all is answered and it is not held any more.
    pub finished: u64,
    /// Connections that did not.
    pub failed: u64,
    /// Connections that a RST ended.
    pub reset: u64,
    /// Connections that were not over in time.
    pub timed_out: u64,
    /// Connections that the server closed before the answer at hand was whole.
    pub unanswered: u64,
    /// Connections that the server closed after a whole answer, though more was to be asked or they were to be held.
    #[serde(default)]
    pub closed_early: u64,
    /// Connections that were ended by a RST from here, because the server takes no segment as long as the request (its MSS).
    #[serde(default)]
    pub refused: u64,
    /// Connections that were ended by a RST from here, because the run was ended before its time.
    pub abandoned: u64,
    /// Connections that were still open at the end, as their slots say: none, unless the run broke off.
    #[serde(default)]
    pub open: u64,
    /// Requests, without those that were sent again.
    #[serde(default)]
    pub requests: u64,
    /// Whole answers: the sum of the next eight. An answer is whole when as many bytes came as its head announces, and, where the server is to
    /// close, it has closed; of `answers_to_the_close` the close alone tells.
    #[serde(default)]
    pub answers: u64,
    /// Whole answers with a status of 100 to 199 after which no other answer came, or whose end was not found.
    #[serde(default)]
    pub status_1xx: u64,
    /// Whole answers with a status of 200 to 299.
    #[serde(default)]
    pub status_2xx: u64,
    /// Whole answers with a status of 300 to 399.
    #[serde(default)]
    pub status_3xx: u64,
    /// Whole answers with a status of 400 to 499.
    #[serde(default)]
    pub status_4xx: u64,
    /// Whole answers with a status of 500 to 599.
    #[serde(default)]
    pub status_5xx: u64,
    /// Whole answers that do not begin with a status of HTTP/1.1.
    #[serde(default)]
    pub not_http: u64,
    /// Whole answers whose status was not read: their first segment ends within it. Whether they are errors is not known.
    #[serde(default)]
    pub status_unread: u64,
    /// Datagrams that the server refused to send to other sessions: it was not started to do so, or it is another one than gave their cookies.
    #[serde(default)]
    pub relays_refused: u64,
    /// Answers over UDP: datagrams with the number of the request that was to be answered.
    #[serde(default)]
    pub numbered_answers: u64,
    /// Answers with a status of 100 to 199 that announced another one. They are no answers of their own, and not in `answers`.
    #[serde(default)]
    pub interim_answers: u64,
    /// Answers whose length their first segment does not say, where the client needs it: it waits for the server to close.
    #[serde(default)]
    pub unframed_answers: u64,
    /// Whole answers whose length their first segment does not say, and which the close of the server ended: one that was cut short looks the
    /// same.
    #[serde(default)]
    pub answers_to_the_close: u64,
    /// Answers whose Content-Length is no number or contradicts another one (RFC 9112, section 6.3): where they end is not known, and those that the
    /// close ended are among `answers`.
    #[serde(default)]
    pub misframed_answers: u64,
    /// Answers with more bytes behind them than their heads announce. The further bytes are no answer.
    #[serde(default)]
    pub overlong_answers: u64,
    /// Of connections that were held open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldSessions>,
    /// Segments that were sent again, because nothing came back in time: the sum of the next four.
    pub retransmitted: u64,
    /// SYNs that were sent again.
    pub retransmitted_syns: u64,
    /// Requests that were sent again.
    pub retransmitted_requests: u64,
    /// Acknowledgements that were sent again within an answer that did not go on.
    pub retransmitted_acks: u64,
    /// FINs that were sent again.
    pub retransmitted_fins: u64,
    /// Segments of the server that came again; of UDP answers to requests that had been answered.
    pub duplicates: u64,
    /// Segments of the server that came before their turn.
    pub out_of_order: u64,
    /// Segments that no connection in that state expects.
    pub unexpected: u64,
    /// Segments whose lengths contradict themselves.
    pub malformed: u64,
    /// RSTs that were sent.
    pub resets_sent: u64,
    /// Requests that had no room in the frame that asked for them, and left by the next frame of the sending thread.
    pub deferred_requests: u64,
    /// Those of them for which there was no place to wait in: they were sent when their time was over.
    #[serde(default)]
    pub undeferred_requests: u64,
    /// Segments that had no room in the frame that asked for them, and were not sent.
    pub without_room: u64,
    /// ARP requests for addresses of clients that were answered.
    pub arp_replies: u64,
    /// Neighbour solicitations for addresses of clients that were answered.
    #[serde(default)]
    pub neighbour_advertisements: u64,
    /// Bytes of answers, with their headers of HTTP.
    pub answer_bytes: u64,
    /// New connections a second that were asked for. Left out where none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_per_second: Option<f64>,
    /// Time in which connections were opened; by a rate no less than it has for as many.
    pub opening_ns: u64,
    /// New connections a second in that time.
    pub opened_per_second: f64,
    /// Time until all were over.
    pub duration_ns: u64,
    /// Connections that were finished, a second of that time, or of `opening_ns` where that is longer.
    pub finished_per_second: f64,
    /// Connections that were opened more than a millisecond after they were due.
    pub late: u64,
    /// Times that a tuple was passed over because its last connection was not over.
    pub tuples_in_use: u64,
    /// CPU time of the thread that sent; frames that arrived on its core are answered in it.
    pub cpu_ns: u64,
    /// From the first SYN to the SYN-ACK; a SYN that was lost is part of it. Left out of UDP, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_ns: Option<Distribution>,
    /// From the first sending of the request to the end of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_ns: Option<Distribution>,
    /// What the lab's NAT counted meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<NatCounts>,
}

/// What the NAT of a lab counted (nftables, and the kernel's connection tracking): the device's own word, beside that of the tester.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NatCounts {
    /// Connections that were given an address and a port.
    pub translated: u64,
    /// Entries that its table had at the end, those of closed connections among them, which it keeps for a time.
    pub entries: u64,
    /// Packets dropped because they would have begun one connection more than it holds.
    pub over_connections: u64,
    /// Packets dropped because they would have begun more connections a second than it takes.
    pub over_rate: u64,
    /// Packets dropped because they belong to no connection and begin none.
    pub invalid: u64,
    /// Connections that found no free place, as where no port is left (`insert_failed`).
    pub insert_failed: u64,
    /// Packets dropped because the kernel's table was full (`drop`).
    pub table_full: u64,
    /// Entries that the kernel's table gave up for new ones (`early_drop`).
    pub early_dropped: u64,
}

/// Connections that were held open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldSessions {
    /// So many were to be held.
    pub asked: u64,
    /// So many were when all had been opened: answered, and neither side had closed.
    pub held: u64,
    /// How long it took until then.
    pub opening_ns: u64,
    /// Those that were asked once more at the end.
    pub used_again: u64,
    /// Those of them that had a whole answer.
    pub answered_again: u64,
    /// They were used again from the other side: those that were answered are those to which a datagram came that the server sent to the
    /// address and port that it had seen.
    #[serde(default)]
    pub from_server: bool,
    /// How long that took.
    pub using_ns: u64,
    /// How long it took to close those that were left.
    pub closing_ns: u64,
}

/// TCP connections or UDP sessions that a server without state answered: it knows segments, and not which of them are of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsServed {
    /// Address and port that it listened at.
    pub listen: String,
    /// SYNs that were answered, those that came again among them.
    pub syns: u64,
    /// Requests that were answered, those that came again among them.
    pub requests: u64,
    /// FINs of clients that had the whole answer, those that came again among them.
    pub finished: u64,
    /// Segments of answers that were sent.
    pub answer_segments: u64,
    /// RSTs that came.
    pub resets: u64,
    /// Segments that acknowledge what was never said; each was answered by a RST.
    pub bad_cookies: u64,
    /// Segments that no client of this server sends.
    pub unexpected: u64,
    /// Segments whose lengths contradict themselves.
    pub malformed: u64,
    /// Segments that had no room in the frame that asked for them, and were not sent.
    pub without_room: u64,
    /// ARP requests for its address that were answered.
    pub arp_replies: u64,
    /// Neighbour solicitations for its address that were answered.
    #[serde(default)]
    pub neighbour_advertisements: u64,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of answers.
    pub answer_bytes: u64,
    /// Of UDP: datagrams that were sent to the address and port of an earlier request, because a client asked for that through another session.
    #[serde(default)]
    pub relayed: u64,
}

/// Earlier results are all of that.
fn http() -> String {
    "http".to_owned()
}

figures! {
    /// TCP connections or UDP sessions opened per second.
    OPENED_RATE = "sessions_opened_per_second", "connections opened a second", PerSecond, Higher;
    /// TCP connections or UDP sessions that failed: reset, timed out, unanswered or abandoned.
    FAILED = "sessions_failed", "sessions failed", Count, Lower;
    /// Segments or datagrams of connections that were sent again.
    RETRANSMITTED = "sessions_retransmitted_segments", "segments retransmitted", Count, Lower;
    /// Time until half of the TCP connections stood, at most.
    HANDSHAKE_P50 = "sessions_handshake_p50", "handshake, p50", Ns, Lower;
    /// Time until 99 % of the TCP connections stood, at most.
    HANDSHAKE_P99 = "sessions_handshake_p99", "handshake, p99", Ns, Lower;
    /// Time from a request to the end of its answer that half of the connections had, at most.
    ANSWER_P50 = "sessions_answer_p50", "answer, p50", Ns, Lower;
    /// Time from a request to the end of its answer that 99 % of the connections had, at most.
    ANSWER_P99 = "sessions_answer_p99", "answer, p99", Ns, Lower;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(s) = &report.result.sessions else { return Vec::new() };
    let mut figures = vec![
        OPENED_RATE.is(s.opened_per_second),
        FAILED.count(s.failed).of(s.opened),
        RETRANSMITTED.count(s.retransmitted),
    ];
    for (times, p50, p99) in
        [(&s.handshake_ns, &HANDSHAKE_P50, &HANDSHAKE_P99), (&s.answer_ns, &ANSWER_P50, &ANSWER_P99)]
    {
        figures.extend(times.iter().flat_map(|d| [p50.count(d.p50), p99.count(d.p99)]));
    }
    figures
}
