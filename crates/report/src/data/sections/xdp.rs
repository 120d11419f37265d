//! What an XDP program under test said of frames, and how long it took: of the device of a lab (`lab --dut-xdp`), and of a capture
//! (`netdyno xdp test`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

/// The value of [`XdpTest::schema`].
pub const XDP_TEST_SCHEMA: &str = "netdyno.xdp-test/1";

figures! {
    /// Time for each frame in the XDP program of the lab's device, by the kernel's statistics of its runs, less what counting its verdicts took.
    XDP_NS_PER_FRAME = "xdp_ns_per_frame", "in the device's XDP program", Ns, Lower;
}

/// The XDP program that is the lab's device, while this run lasted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct XdpProgram {
    /// The object's file.
    pub object: String,
    /// The name of its function.
    pub program: String,
    /// Frames that it was run on, by the kernel's statistics, in both directions.
    pub frames: u64,
    /// Nanoseconds for each of them, less what counting its verdicts took. What is left of that are some ten nanoseconds, the same
    /// with every program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_frame: Option<f64>,
    /// Nanoseconds for each frame that counting its verdicts took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counting_ns_per_frame: Option<f64>,
    /// What it said of them, by interface and stream. Left out where verdicts could not be counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<XdpVerdict>,
    /// Frames that stand in no row of `verdicts`: there were too many streams.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted_frames: u64,
    /// What the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Frames that an XDP program said the same of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct XdpVerdict {
    /// `pass`, `drop`, `tx`, `redirect`, `aborted`; `(verdict N)` of what is none.
    pub verdict: String,
    /// The device's interface that they came in by; a number where it has no name any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The stream, of frames that bear a signature when the program is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// They lay in several buffers, whose end is not looked at: of which stream they are is not known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_several_buffers: bool,
    /// How many.
    pub frames: u64,
}

/// What an XDP program said of the frames of a capture, `netdyno.xdp-test/1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct XdpTest {
    /// `netdyno.xdp-test/1`.
    pub schema: String,
    /// The object's file.
    pub object: String,
    /// The name of the program's function.
    pub program: String,
    /// The section that it stands in.
    pub section: String,
    /// The capture.
    pub capture: String,
    /// The kernel that ran it.
    pub kernel: String,
    /// Frames of the capture.
    pub frames: u64,
    /// What it said of them, the most frequent first.
    pub verdicts: Vec<XdpTestVerdict>,
    /// Nanoseconds for each frame that was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_frame: Option<f64>,
    /// So many frames were timed, evenly from the capture.
    pub timed_frames: u64,
    /// Each so often.
    pub repeat: u32,
    /// Of those the ones that the program changes: timed by single runs, which the reading of the clock is part of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_singly_frames: u64,
    /// Frames that the program changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed_frames: u64,
    /// Frames of which the capture holds the beginning alone, which is what was run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_frames: u64,
    /// The verdict that was expected of every frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Frames with another one, or none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub differing_frames: u64,
    /// Which these are, at most a thousand ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<XdpRange>,
    /// Frames that the kernel did not run the program on: they are shorter than an Ethernet header, or longer than it takes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run_frames: u64,
    /// Which these are, at most a thousand ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<XdpRange>,
    /// The file that frames were written into that went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

/// A verdict over a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct XdpTestVerdict {
    /// `pass`, `drop`, `tx`, `redirect`, `aborted`; `(verdict N)` of what is none.
    pub verdict: String,
    /// How many frames.
    pub frames: u64,
    /// Nanoseconds for each of those that were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_frame: Option<f64>,
}

/// Frames of a capture that follow each other, with one verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct XdpRange {
    /// The number of the first one, from 1, as Wireshark counts.
    pub first: u64,
    /// Of the last one.
    pub last: u64,
    /// What was said of them, or why nothing was.
    pub verdict: String,
}

/// More ranges are not listed.
const RANGES: usize = 1_000;

impl XdpTest {
    /// JSON, indented.
    ///
    /// # Errors
    /// None that is known: what it consists of can be written.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Whether all frames had the verdict that was expected, if any was.
    pub fn holds(&self) -> bool {
        self.differing_frames == 0
    }
}

impl XdpRange {
    /// Adds a frame to a list of ranges.
    pub fn add(ranges: &mut Vec<XdpRange>, number: u64, verdict: &str) {
        let listed = ranges.len();
        match ranges.last_mut() {
            Some(range) if range.last + 1 == number && range.verdict == verdict => range.last = number,
            _ if listed < RANGES => {
                ranges.push(XdpRange { first: number, last: number, verdict: verdict.to_owned() });
            }
            _ => {}
        }
    }
}

/// Its figures.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let ns = report.result.xdp.as_ref().and_then(|xdp| xdp.ns_per_frame);
    ns.map(|ns| XDP_NS_PER_FRAME.is(ns)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_follow_each_other_are_one_range() {
        let mut ranges = Vec::new();
        for (number, verdict) in [(3, "drop"), (7, "drop"), (8, "drop"), (9, "tx"), (10, "drop")] {
            XdpRange::add(&mut ranges, number, verdict);
        }
        let told: Vec<_> = ranges.iter().map(|range| (range.first, range.last, &*range.verdict)).collect();
        assert_eq!(told, [(3, 3, "drop"), (7, 8, "drop"), (9, 9, "tx"), (10, 10, "drop")]);
        for number in 0..3_000 {
            XdpRange::add(&mut ranges, 20 + 2 * number, "drop");
        }
        assert_eq!(ranges.len(), RANGES);
    }
}
