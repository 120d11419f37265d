//! What went in each direction through a bridge, or through a device with known faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_zero;
use super::totals::Totals;
use crate::data::distribution::Distribution;

/// One direction through a bridge: what arrived, what was sent on, and what became of the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    /// The interface that frames arrived on.
    pub from: String,
    /// The one they were sent on by.
    pub to: String,
    /// What arrived on `from`.
    pub received: Totals,
    /// What `to` accepted of it.
    pub forwarded: Totals,
    /// The forwarded, each super-frame (GSO, GRO) counted once; left out where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_buffers: Option<u64>,
    /// Forwarded frames that were examined from link to transport layer, and edited where that was asked for. Left out where
    /// nothing was to be edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_frames: Option<u64>,
    /// Forwarded frames with headers that no edit can be made in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unedited_frames: Option<u64>,
    /// Forwarded frames whose checksum the sender had left to hardware, and which was computed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completed_checksums: u64,
    /// Frames that the rules did not choose.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub filtered_frames: u64,
    /// Frames that the edits left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_frames: u64,
    /// Arrived after the last frame that was asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub over_limit_frames: u64,
    /// Longer than the MTU they would have had to leave by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_long_frames: u64,
    /// Not taken by the interface they should have left by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_frames: u64,
    /// Super-frames of the host's that could not be cut into frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncut_frames: u64,
    /// Arrived when there was no room for them; not among the received.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_frames: u64,
    /// What a device with faults did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<Impaired>,
}

/// What a device with known faults did to the frames of one direction, besides what it forwarded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Impaired {
    /// Frames lost, as was asked.
    pub lost_frames: u64,
    /// Lost in the times in which it was to lose everything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flapped_frames: u64,
    /// Copies, among the forwarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied_frames: u64,
    /// Put back behind others, or by a time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reordered_frames: u64,
    /// Frames with a bit that was flipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrupted_frames: u64,
    /// Held in the times in which it was to hold everything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frozen_frames: u64,
    /// Copies that went back where they came from; not among the forwarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returned_frames: u64,
    /// Lost because too many waited already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub full_frames: u64,
    /// Still waiting when the device ended, and lost with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inside_frames: u64,
    /// How long after the time they were due frames left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
}
