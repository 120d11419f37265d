//! Ports that each send for themselves: a row for each, beside the sums.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one of several ports sent, and what arrived where its link ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortResult {
    /// Where it sends.
    pub interface: String,
    /// Frames that it sent.
    pub tx_frames: u64,
    /// Layer 2 bytes without FCS.
    pub tx_bytes: u64,
    /// Frames given up after retries.
    #[serde(default)]
    pub failed_frames: u64,
    /// Interface where they were measured: in a mesh the port itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// Frames that arrived there and were sent there: in a mesh those of all other ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_frames: Option<u64>,
    /// Layer 2 bytes of those, without FCS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_bytes: Option<u64>,
    /// Frames that this port sent and that did not arrive where they were sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_frames: Option<u64>,
    /// Frames of this run that arrived where this port measures and were sent to another: flooded or misdirected ones, in
    /// `rx_frames` of no port. Left out where frames have no signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misdirected_frames: Option<u64>,
}
