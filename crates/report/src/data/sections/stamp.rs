//! What came of a session of STAMP (`netdyno endpoint stamp`): packets, their delays, and where they were lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

/// What came of a session of STAMP (RFC 8762). T1 is when this host sent a packet, T2 and T3 when the reflector received it and sent its
/// answer, T4 when this host received that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stamp {
    /// Address and port of the reflector.
    pub reflector: String,
    /// Own address and port.
    pub client: String,
    /// Session identifier of the packets (SSID, RFC 8972).
    pub ssid: u64,
    /// Octets of a packet: the payload of UDP.
    pub size_bytes: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that were answered in time.
    pub answered: u64,
    /// Packets that were not: `sent`, less `answered`.
    pub lost: u64,
    /// Lost packets over those sent (0 to 1); left out where none was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Lost packets whose answer came after all, but later than answers are waited for.
    pub late: u64,
    /// How long an answer is waited for, from its packet on.
    pub wait_ns: u64,
    /// Packets that were due and not sent.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unsent: u64,
    /// Packets that this host's kernel refused: not among those sent.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub refused: u64,
    /// Longest time by which a packet left after it was due.
    pub latest_departure_ns: u64,
    /// Whether the reflector is stateful: its own sequence numbers are its count of this session. Left out where that cannot be known, which
    /// is so of each stateless one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful: Option<bool>,
    /// Packets that were lost on the way to the reflector. Left out where that cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_lost: Option<u64>,
    /// Packets whose answer was lost on the way back. Left out where that cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_lost: Option<u64>,
    /// Packets that were lost after the last one that was answered: in which direction is not known. Left out where that is so of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_direction_lost: Option<u64>,
    /// Why losses have no direction; left out where they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_direction: Option<String>,
    /// Further answers to packets that were answered already.
    pub duplicates: u64,
    /// Answers that came after one to a packet that was sent later.
    pub reordered: u64,
    /// Answers whose time stamps cannot be: none, or longer at the reflector than the whole way. Their packets are answered, and have no delay.
    pub implausible_times: u64,
    /// Datagrams that arrived and are no answers of this session.
    pub strangers: StampStrangers,
    /// Datagrams that the socket had no room for.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub dropped_by_receiver: u64,
    /// Errors that came back for packets (ICMP).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<StampError>,
    /// Round-trip delay: (T4 - T1) - (T3 - T2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<Distribution>,
    /// Difference between the round trips of two packets that were sent one after the other, without sign (RFC 3393).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_variation_ns: Option<Distribution>,
    /// Variation of the delay to the reflector, likewise: the clocks need not agree for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_variation_ns: Option<Distribution>,
    /// Variation of the delay back, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_variation_ns: Option<Distribution>,
    /// How long packets were at the reflector: T3 - T2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residence_ns: Option<Distribution>,
    /// Delay to the reflector, T2 - T1; left out where the clocks do not tell it (`forward_withheld`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_delay_ns: Option<Distribution>,
    /// Delay back, T4 - T3; left out where the clocks do not tell it (`return_withheld`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_delay_ns: Option<Distribution>,
    /// By how much delays of one way may be off: the errors of both clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_error_ns: Option<u64>,
    /// Why the delay to the reflector is withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_withheld: Option<String>,
    /// Why the delay back is withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_withheld: Option<String>,
    /// How T1 and T4 were taken, and what is known of the clocks.
    pub clocks: StampClocks,
    /// Least TTL or hop limit with which the reflector received packets, as it says; they leave with 255.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_ttl: Option<u64>,
    /// Routers on the way to the reflector, by the TTL that the reflector reports; left out where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_hops: Option<u64>,
    /// Whether answers carried the session identifier (RFC 8972); left out where some did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssid_returned: Option<bool>,
    /// Whether the reflector recognised the Extra Padding TLV (RFC 8972); left out where none came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub padding_recognised: Option<bool>,
    /// Answers that were not as long as the packet.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub other_length: u64,
}

/// Counts of datagrams that arrived and are no answers of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampStrangers {
    /// All of them.
    pub all: u64,
    /// From another address or port than the reflector's.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub other_source: u64,
    /// The first such address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_source: Option<String>,
    /// Shorter than the 38 octets that an answer has at least: up to the error estimate of the packet.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub too_short: u64,
    /// With another session identifier.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub other_session: u64,
    /// To packets that were never sent.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unknown_number: u64,
    /// To packets that were sent at another time than they say.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub other_time: u64,
}

/// An error that came back for packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampError {
    /// What it says: `port unreachable`.
    pub what: String,
    /// Who sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How often it came.
    pub count: u64,
}

/// How times were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampClocks {
    /// How T1 was taken: `program`, by CLOCK_REALTIME right before the packet was handed to the kernel.
    pub t1: String,
    /// How T4 was taken: `kernel`, by CLOCK_REALTIME when its stack received the answer (SO_TIMESTAMPNS).
    pub t4: String,
    /// Answers whose T4 the program took after all, because the kernel gave none.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub t4_by_program: u64,
    /// By how much this host's clock may be off UTC, as who keeps it says (adjtimex(2)). Left out where no daemon keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_error_ns: Option<u64>,
    /// By how much the reflector's may be, as it says; the most of all answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflector_error_ns: Option<u64>,
    /// Whether the reflector says that its clock is kept to UTC (the S bit), in all answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflector_synchronised: Option<bool>,
    /// How it writes times: `ntp`, or `ptp` (the Z bit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflector_format: Option<String>,
    /// By how much the reflector's times were set back, because PTP counts TAI.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub tai_offset_ns: u64,
    /// By how much this host's clock was set while it lasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped_ns: Option<u64>,
}

figures! {
    /// STAMP packets that were not answered in time.
    LOST = "stamp_lost_packets", "packets lost" as "STAMP packets lost", Count, Lower;
    /// STAMP packets that were lost on the way to the reflector.
    FORWARD_LOST = "stamp_forward_lost_packets", "packets lost on the way there", Count, Lower;
    /// STAMP packets whose answers were lost on the way back.
    RETURN_LOST = "stamp_return_lost_packets", "packets lost on the way back", Count, Lower;
    /// Round-trip delay that half of the STAMP packets had at most, without the reflector's residence time.
    ROUND_TRIP_P50 = "stamp_round_trip_p50", "round-trip delay, p50", Ns, Lower;
    /// Round-trip delay that 99 % of the STAMP packets had at most.
    ROUND_TRIP_P99 = "stamp_round_trip_p99", "round-trip delay, p99", Ns, Lower;
    /// Difference of consecutive round trips that half of them had at most.
    VARIATION_P50 = "stamp_round_trip_variation_p50", "round-trip variation, p50", Ns, Lower;
    /// Time that half of the packets were at the reflector at most.
    RESIDENCE_P50 = "stamp_residence_p50", "time at the reflector, p50", Ns, Lower;
    /// Delay to the reflector that half of the packets had at most, by two clocks.
    FORWARD_P50 = "stamp_forward_delay_p50", "delay to the reflector, p50", Ns, Lower;
    /// Delay back that half of the answers had at most, by two clocks.
    RETURN_P50 = "stamp_return_delay_p50", "delay back, p50", Ns, Lower;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(s) = &report.result.stamp else { return Vec::new() };
    let mut figures = vec![LOST.count(s.lost).of(s.sent)];
    figures.extend(s.forward_lost.map(|lost| FORWARD_LOST.count(lost).of(s.sent)));
    figures.extend(s.return_lost.map(|lost| RETURN_LOST.count(lost).of(s.sent)));
    let half = |d: &Option<Distribution>| d.as_ref().map(|d| d.p50);
    figures.extend(half(&s.round_trip_ns).map(|ns| ROUND_TRIP_P50.count(ns)));
    figures.extend(s.round_trip_ns.as_ref().map(|d| ROUND_TRIP_P99.count(d.p99)));
    figures.extend(half(&s.round_trip_variation_ns).map(|ns| VARIATION_P50.count(ns)));
    figures.extend(half(&s.residence_ns).map(|ns| RESIDENCE_P50.count(ns)));
    figures.extend(half(&s.forward_delay_ns).map(|ns| FORWARD_P50.count(ns)));
    figures.extend(half(&s.return_delay_ns).map(|ns| RETURN_P50.count(ns)));
    figures
}
