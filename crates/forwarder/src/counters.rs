//! What the forwarder counts: as the kernel lays it out, and as a user sees the sum.

/// What went in one direction up to now. Bytes are layer 2 without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// All that arrived: the sum of `forwarded`, `over_limit`, `too_long` and `failed`.
    pub frames: u64,
    /// Bytes of those, layer 2 without FCS.
    pub bytes: u64,
    /// Handed to the other interface.
    pub forwarded: u64,
    /// Bytes of those.
    pub forwarded_bytes: u64,
    /// Came after the last frame that was asked for.
    pub over_limit: u64,
    /// Longer than the other interface allows.
    pub too_long: u64,
    /// The other interface was not there.
    pub failed: u64,
    /// The forwarded, each super-frame counted once: what the other interface may count.
    pub buffers: u64,
    /// Bytes of those: the headers of a super-frame are in them once.
    pub buffer_bytes: u64,
    /// Among the forwarded: left with a checksum that had been left to hardware.
    pub completed: u64,
    /// When the first and the last frame arrived, to within a clock tick (1 to 10 ms).
    pub first_ns: Option<u64>,
    /// See `first_ns`.
    pub last_ns: Option<u64>,
}

/// One CPU's share of one direction: `programs/bpf/include/bridge.h`, field by field.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passage {
    pub frames: u64,
    pub bytes: u64,
    pub forwarded: u64,
    pub forwarded_bytes: u64,
    pub over_limit: u64,
    pub too_long: u64,
    pub failed: u64,
    pub buffers: u64,
    pub completed: u64,
    /// `CLOCK_MONOTONIC`; 0: nothing yet.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The kernel's own.
    pub tick: u64,
    pub buffer_bytes: u64,
}

impl Passed {
    /// The sum with one CPU's share.
    pub(crate) fn with(self, share: &Passage) -> Passed {
        let time = |ns: u64| (ns > 0).then_some(ns);
        Passed {
            frames: self.frames + share.frames,
            bytes: self.bytes + share.bytes,
            forwarded: self.forwarded + share.forwarded,
            forwarded_bytes: self.forwarded_bytes + share.forwarded_bytes,
            over_limit: self.over_limit + share.over_limit,
            too_long: self.too_long + share.too_long,
            failed: self.failed + share.failed,
            buffers: self.buffers + share.buffers,
            buffer_bytes: self.buffer_bytes + share.buffer_bytes,
            completed: self.completed + share.completed,
            first_ns: self.first_ns.into_iter().chain(time(share.first_ns)).min(),
            last_ns: self.last_ns.max(time(share.last_ns)),
        }
    }

    /// From the first to the last arrival; 0 with fewer than two frames.
    pub fn duration_ns(&self) -> u64 {
        match (self.first_ns, self.last_ns) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        }
    }
}

mod words {
    #![allow(unsafe_code, reason = "a promise of how a type is laid out; nothing is done here")]

    // SAFETY: repr(C), only u64 fields, tail padding to 64 bytes.
    unsafe impl bpf::Words for super::Passage {}
}
