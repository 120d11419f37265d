//! What was captured where frames were measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_zero;

/// A capture of what arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// The file, or what names of several begin with.
    pub file: String,
    /// Frames that the meter counted.
    pub arrived_frames: u64,
    /// Frames in the capture.
    pub frames: u64,
    /// Bytes of the frames in the capture.
    pub bytes: u64,
    /// Frames that were to be captured and were not: there was no room for them in memory, or the file could not be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_frames: u64,
    /// Number of frames after which the capture was to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_frames: Option<u64>,
    /// Number of events (a lost, reordered or duplicated frame) around which frames were captured, where only these were
    /// asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Files that were begun.
    pub files_begun: u32,
    /// Names of the files that exist, where there are several; the latest is last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}
