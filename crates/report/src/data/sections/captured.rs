//! What was captured where frames were measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section, is_zero};
use crate::data::model::Report;
use crate::data::units::{bytes, count, counted, printable};

/// A capture of what arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// The file, or what names of several begin with.
    pub file: String,
    /// Frames that the meter counted.
    pub arrived_frames: u64,
    /// Frames in the capture.
    pub frames: u64,
    /// Bytes of them there.
    pub bytes: u64,
    /// Frames that were to be captured and were not: there was no room for them in memory, or the file could not be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_frames: u64,
    /// No more frames than these were wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_frames: Option<u64>,
    /// Where only frames were captured that something befell, with their neighbours: how often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Files that were begun.
    pub files_begun: u32,
    /// Of several the ones that are there, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

pub(super) struct Captured;

impl Section for Captured {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let facts = report.result.capture.as_ref().map(facts);
        vec![Line::facts("captured", facts.unwrap_or_default())]
    }
}

fn facts(of: &Capture) -> Vec<String> {
    let file = match of.file.as_str() {
        "-" => "standard output".to_owned(),
        file => printable(file),
    };
    let what = match of.events {
        Some(events) => format!("{} around {}", counted(of.frames, "frame"), counted(events, "event")),
        None if of.wanted_frames == Some(of.frames) && of.frames < of.arrived_frames => {
            format!("the first {} of {}", count(of.frames), counted(of.arrived_frames, "frame"))
        }
        None if of.frames == of.arrived_frames => format!("all {}", counted(of.frames, "frame")),
        None => format!("{} of {}", count(of.frames), counted(of.arrived_frames, "frame")),
    };
    let mut facts = vec![format!("{what} ({}) into {file}", bytes(of.bytes))];
    if of.files_begun > 1 {
        facts.push(format!("{} files, of which {} are there", of.files_begun, of.files.len()));
    }
    if of.missed_frames > 0 {
        facts.push(format!("{} not captured", counted(of.missed_frames, "frame")));
    }
    facts
}
