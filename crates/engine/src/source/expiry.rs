//! Flows that are new again after a time of silence, as tcpreplay's `--flow-expiry` has it: in whole seconds of the
//! capture's time.

use wire::flow::{FlowKey, FlowMap};

/// When each flow was last seen.
#[derive(Debug, Clone, Default)]
pub struct Expiry {
    after_s: u64,
    last: FlowMap<u64>,
    /// Flows that were seen again after they had expired.
    pub expired: u64,
}

impl Expiry {
    /// Flows expire when they were silent for more than so many seconds.
    pub fn after(seconds: u64) -> Expiry {
        Expiry { after_s: seconds, ..Expiry::default() }
    }

    /// A frame of a flow, captured at `time_ns`.
    pub fn see(&mut self, flow: FlowKey, time_ns: u64) {
        let second = time_ns / 1_000_000_000;
        if let Some(last) = self.last.insert(flow, second)
            && second > last.saturating_add(self.after_s)
        {
            self.expired += 1;
        }
    }

    /// What follows are other flows.
    pub fn forget(&mut self) {
        self.last.clear();
    }
}
