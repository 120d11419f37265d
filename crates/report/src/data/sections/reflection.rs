//! What became of the frames that arrived at a reflector.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames that a reflector got, by what it did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reflection {
    /// Frames sent back.
    pub reflected_frames: u64,
    /// Echo requests (ping) among the frames sent back, as replies.
    pub echo_replies: u64,
    /// Frames to broadcast or multicast addresses, passed to the host.
    pub group_frames: u64,
    /// Frames of ARP and IPv6 neighbour discovery, passed to the host.
    pub resolution_frames: u64,
    /// Frames without the signature that was asked for, passed to the host.
    pub unsigned_frames: u64,
    /// Frames that are cut short or have headers that contradict themselves, dropped.
    pub malformed_frames: u64,
    /// What became of STAMP test packets, if those are answered. Then the frames sent back are answers, and of the other counts
    /// here there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<StampReflection>,
}

/// STAMP test packets that a reflector answered or did not. The sum of all packets here but those without room, and of answers, is
/// that of the frames that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampReflection {
    /// Sessions that began: packets of one source address and port, destination address, session identifier and VLAN.
    pub sessions: u64,
    /// Packets answered with the sender's number, because there was no room for another session.
    pub without_room_packets: u64,
    /// Packets above the rate, dropped.
    pub limited_packets: u64,
    /// Packets shorter than an answer, passed to the host.
    pub too_short_packets: u64,
    /// Packets with lengths, addresses or ports that contradict themselves, passed to the host.
    pub malformed_packets: u64,
    /// First fragments of packets, passed to the host.
    pub fragments: u64,
    /// Packets that are answers of other reflectors, passed to the host.
    pub answers_of_others: u64,
    /// Packets from addresses that are not allowed, passed to the host.
    pub not_allowed_packets: u64,
    /// Frames that are no test packets to this reflector, passed to the host.
    pub other_frames: u64,
}
