//! What was captured where frames were measured, in a line of the summary.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::captured::Capture;
use crate::data::units::{bytes, count, counted, printable};

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
