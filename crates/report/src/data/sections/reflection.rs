//! What became of the frames that arrived at a reflector.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames that a reflector got, by what it did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reflection {
    /// Sent back.
    pub reflected_frames: u64,
    /// Echo requests (ping) among them, sent back as replies.
    pub echo_replies: u64,
    /// To broadcast or multicast addresses, passed to the host.
    pub group_frames: u64,
    /// ARP and IPv6 neighbour discovery, passed to the host.
    pub resolution_frames: u64,
    /// Without the signature that was asked for, passed to the host.
    pub unsigned_frames: u64,
    /// Cut short or with headers that contradict themselves, dropped.
    pub malformed_frames: u64,
}
