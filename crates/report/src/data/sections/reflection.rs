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
}
