//! What a source counts of the frames that it yields.

use super::expiry::Expiry;
use super::reading::Oddities;
use wire::background::is_background;
use wire::flow::{FlowKey, FlowOf, FlowSet};
use wire::layers::Layers;

/// Counted while frames are yielded. Frames that were not sent in the end are taken out again.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// What was odd about the frames that were read.
    pub odd: Oddities,
    /// Frames that got lost on purpose.
    pub lost: u64,
    /// Signed frames of each side.
    pub signed: [u64; 2],
    /// Frames that were to be signed and have no room for it, where they are made one by one.
    pub unsigned: u64,
    /// Frames that are such as others send on most networks ([`wire::background`]).
    pub background: u64,
    /// Frames of each side that belong to a flow, if flows are counted.
    pub flow_frames: [u64; 2],
    /// Flows by the side on which each was first seen. Those that expired count again.
    pub flows: [u64; 2],
    /// Those whose addresses are this pass's.
    known: FlowSet,
    expiry: Option<Expiry>,
    /// What was counted before each frame of the batch that was filled in last, and the side of that.
    before: Vec<(u8, Counts)>,
}

/// Of a side: signed frames, those such as others send, those that belong to a flow, flows, truncated frames, and frames without
/// room for a signature.
type Counts = [u64; 6];

impl Seen {
    /// Nothing as yet. A flow that was silent for more than `flow_expiry_s` seconds counts as another.
    pub(super) fn expiring(flow_expiry_s: Option<u64>) -> Seen {
        Seen { expiry: flow_expiry_s.map(Expiry::after), ..Seen::default() }
    }

    /// Flows that were seen again after they had expired, if they do.
    pub fn expired(&self) -> Option<u64> {
        self.expiry.as_ref().map(|expiry| expiry.expired)
    }

    /// Another batch begins: what was counted of the one before stays.
    pub(super) fn begin(&mut self) {
        self.before.clear();
    }

    /// A frame of the batch, as yet without a signature.
    pub(super) fn frame(&mut self, side: u8, frame: &[u8]) {
        let at = usize::from(side);
        let counts = [
            self.signed[at],
            self.background,
            self.flow_frames[at],
            self.flows[at],
            self.odd.truncated[at],
            self.unsigned,
        ];
        self.before.push((side, counts));
        self.background += u64::from(is_background(frame));
    }

    /// It may belong to a flow; it was captured at `time_ns`.
    pub(super) fn flow(&mut self, side: u8, layers: &Layers, frame: &[u8], time_ns: u64) {
        let FlowOf::Flow(key) = FlowKey::of(layers, frame) else { return };
        let side = usize::from(side);
        self.flows[side] += u64::from(self.known.insert(key));
        self.flow_frames[side] += 1;
        if let Some(expiry) = &mut self.expiry {
            let before = expiry.expired;
            expiry.see(key, time_ns);
            self.flows[side] += expiry.expired - before;
        }
    }

    /// What follows are other flows.
    pub(super) fn other_flows(&mut self) {
        self.known.clear();
        if let Some(expiry) = &mut self.expiry {
            expiry.forget();
        }
    }

    /// The last `frames` of the batch were not sent.
    pub(super) fn give_back(&mut self, frames: usize) {
        let first = self.before.len().saturating_sub(frames);
        let Some(&(side, counts)) = self.before.get(first) else { return };
        let side = usize::from(side);
        [
            self.signed[side],
            self.background,
            self.flow_frames[side],
            self.flows[side],
            self.odd.truncated[side],
            self.unsigned,
        ] = counts;
        self.before.truncate(first);
    }
}
