//! What arrived, and what did not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_false;
use super::totals::Totals;
use crate::data::figure::{Measured, figures, within};
use crate::data::model::Report;

/// What arrived at one of two interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RxInterface {
    /// Where it arrived.
    pub interface: String,
    /// The interface whose frames were to arrive here.
    pub from: String,
    /// Frames that arrived.
    pub frames: u64,
    /// Layer 2 bytes without FCS.
    pub bytes: u64,
}

/// What arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rx {
    /// Frames and bytes that arrived, and their rates: over the time that was sent in where this run sent the frames and
    /// arrivals did not last clearly (2 %) longer, else from the first arrival to the last. Older results have always the
    /// latter, and no `arrival_span_ns`.
    #[serde(flatten)]
    pub totals: Totals,
    /// Time from the first arrival to the last, and the mean gap after it. Left out where nothing was sent, and where frames
    /// of others came as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_span_ns: Option<u64>,
    /// Frames that arrived more than once, counted from the second time on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated_frames: Option<u64>,
    /// Frames that arrived after a later one of their stream (RFC 4737, 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordered_frames: Option<u64>,
    /// Frames whose bytes are not those that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupted_frames: Option<u64>,
    /// Frames that are none of ours: those that cannot be, where loss is known by count only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_frames: Option<u64>,
    /// Foreign frames that are known by their kind (ARP, IPv6 neighbour and listener discovery, IGMP, LLDP, spanning tree and
    /// the like), beyond those of such kinds that the run sent. Left out where frames are recognised by their signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_frames: Option<u64>,
    /// Frames the receiving machine dropped before the meter saw them (ring full, no buffer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_frames: Option<u64>,
    /// Why nothing follows from frames that are missing here: the meter was detached, or others take frames before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blind_because: Option<String>,
    /// Signed frames that had bytes behind the signature: a device has padded them, or added a trailer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trailed_frames: Option<u64>,
    /// What arrived at each interface, where two were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<RxInterface>,
}

/// Frames sent and never received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Number of lost frames.
    pub frames: u64,
    /// Lost over sent, 0 to 1; 0 when nothing was sent.
    pub ratio: f64,
    /// What arrived was only counted, because not every frame was signed: frames of others may stand in for some that were
    /// lost. Left out when false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_count_only: bool,
    /// Number of frames that are counted only, where the others were signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsigned_frames: Option<u64>,
    /// Lost frames of a capture to addresses that other frames of it came from, sent into the same port. A device that learns
    /// addresses passes none of those on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt_frames: Option<u64>,
}

impl Loss {
    /// `arrived` counts each sent frame at most once (no duplicates, no foreign frames).
    pub fn between(sent: u64, arrived: u64) -> Self {
        Self::of(sent.saturating_sub(arrived), sent)
    }

    /// So many of so many.
    pub fn of(lost: u64, sent: u64) -> Self {
        let ratio = if sent == 0 { 0.0 } else { lost as f64 / sent as f64 };
        Self { frames: lost, ratio, ..Self::default() }
    }
}

impl Rx {
    /// Takes rates over the time that was sent in, as those of what was sent are, unless arrivals clearly lasted longer.
    ///
    /// A device that loses nothing receives at the rate that was offered: throughput is the rate of the offered stream at which
    /// as many frames come as were sent (RFC 2544, 26.1; RFC 1242, 3.17). Over a time of their own, equal counts had rates that
    /// differed by jitter (5,000 and 5,000.10 frames a second), and more seemed to come than was sent; and what came before an
    /// outage seemed to have come at the full rate. But frames that were handed over at once and stood in a queue did not arrive
    /// as fast as they were sent: no path may seem faster than it is.
    pub fn over_sending_time(&mut self, sent: &Totals) {
        if sent.duration_ns > 0 {
            let span = self.totals.duration_ns;
            self.arrival_span_ns = Some(span);
            if !is_longer(span, sent.duration_ns) {
                self.totals = Totals::over(self.totals.frames, self.totals.bytes, sent.duration_ns);
            }
        }
    }

    /// Whether its rates are over the time from the first arrival to the last, which those of older results always are.
    pub(crate) fn is_over_arrivals(&self, sent: &Totals) -> bool {
        self.totals.duration_ns != sent.duration_ns
    }

    /// Frames of others arrived, too, perhaps before the first of ours and after the last: the time of arrivals says nothing.
    pub fn others_came(&mut self, sent: &Totals) {
        if sent.duration_ns > 0 {
            self.arrival_span_ns = None;
            self.totals = Totals::over(self.totals.frames, self.totals.bytes, sent.duration_ns);
        }
    }
}

/// By more than jitter is.
fn is_longer(span_ns: u64, sending_ns: u64) -> bool {
    span_ns > sending_ns.saturating_add(sending_ns / 50)
}

figures! {
    /// Frames received over the time that was sent in, or from the first arrival to the last where that is clearly longer or this
    /// job did not send.
    RECEIVED = "rx_frames_per_second", "received" as "frames received per second", FramesPerSecond, Higher;
    /// Bits received on layer 2 without FCS, over the same time.
    RECEIVED_BITS = "rx_bits_per_second", "received, layer 2" as "bits received per second, layer 2", BitsPerSecond, Higher;
    /// Frames received.
    FRAMES = "rx_frames", "received" as "frames received", Count;
    /// Bytes of frames received, without FCS.
    BYTES = "rx_bytes", "received bytes" as "bytes received", Bytes;
    /// Frames that did not arrive although they had time to; while a job lasts it falls when they still do.
    LOST_FRAMES = "lost_frames", "lost" as "frames lost", Gauge;
    /// Frames sent and never received, of those sent.
    LOST = "loss_ratio", "lost" as "share of frames lost", Ratio, Lower;
    /// The same where what arrived was only counted, and frames of others may stand in for lost ones.
    LOST_BY_COUNT = "loss_by_count_ratio", "lost, by count only" as "share of frames lost, by count only", Ratio, Lower;
    /// Signed frames that had come before.
    DUPLICATED = "duplicated_frames", "duplicated" as "frames duplicated", Count, Lower;
    /// Signed frames that came after one with a higher sequence number (RFC 4737, section 3).
    REORDERED = "reordered_frames", "reordered" as "frames reordered", Count, Lower;
    /// Frames whose bytes are not those that were sent.
    CORRUPTED = "corrupted_frames", "corrupted" as "frames corrupted", Count, Lower;
    /// Signed frames with bytes behind the signature, which a device padded or gave a trailer.
    TRAILED = "trailed_frames", "with bytes behind the signature" as "frames with bytes behind the signature", Count;
    /// Frames received that this job did not send.
    FOREIGN = "foreign_frames", "not ours" as "frames not ours", Count;
    /// Frames that the receiving machine dropped before they were measured.
    DROPPED = "dropped_frames", "dropped by the receiver" as "frames dropped by the receiver", Count;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let mut figures = Vec::new();
    if let Some(rx) = &report.result.rx {
        if rx.totals.duration_ns > 0 {
            let rate = within(report, |i| i.rx().map(|t| t.frames_per_second));
            figures.push(RECEIVED.is(rx.totals.frames_per_second).with(rate));
            let bits = within(report, |i| i.rx_bytes.and(i.rx()).map(|t| t.bits_per_second));
            figures.push(RECEIVED_BITS.is(rx.totals.bits_per_second).with(bits));
        }
        figures.push(FRAMES.count(rx.totals.frames));
        figures.push(BYTES.count(rx.totals.bytes));
    }
    if let Some(loss) = report.result.loss {
        let within = within(report, |i| {
            let lost = i.lost_frames?;
            let of = i.tx_frames.or(Some(i.rx_frames?.saturating_add(lost)))?;
            (of > 0).then(|| lost as f64 / of as f64)
        });
        figures.push(LOST_FRAMES.count(loss.frames));
        // Frames of others may hide some of what was only counted: that is another figure.
        let figure = if loss.by_count_only { &LOST_BY_COUNT } else { &LOST };
        figures.push(figure.is(loss.ratio).with(within));
    }
    let Some(rx) = &report.result.rx else { return figures };
    for (figure, count) in [
        (&DUPLICATED, rx.duplicated_frames),
        (&REORDERED, rx.reordered_frames),
        (&CORRUPTED, rx.corrupted_frames),
        (&TRAILED, rx.trailed_frames),
        (&FOREIGN, rx.foreign_frames),
        (&DROPPED, rx.dropped_frames),
    ] {
        figures.extend(count.map(|count| figure.count(count).listed().of(rx.totals.frames)));
    }
    figures
}
