//! What the forwarder counts.

/// What went in one direction up to now: of one CPU, as the kernel lays it out (`programs/bpf/include/bridge.h`, field by
/// field), or of all together. Bytes are layer 2 without FCS.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// All that arrived: the sum of `forwarded`, `over_limit`, `too_long` and `failed`.
    pub frames: u64,
    /// Bytes of those.
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
    /// Among the forwarded: left with a checksum that had been left to hardware.
    pub completed: u64,
    /// When the first frame arrived, to within a clock tick (1 to 10 ms), by `CLOCK_MONOTONIC`; 0: none did.
    pub first_ns: u64,
    /// When the last frame arrived, likewise.
    pub last_ns: u64,
    /// The kernel's own.
    pub(crate) tick: u64,
    /// Bytes of the buffers: the headers of a super-frame are in them once.
    pub buffer_bytes: u64,
}

impl Counters {
    /// The sum with another CPU's.
    pub(crate) fn with(self, other: &Counters) -> Counters {
        let first = [self.first_ns, other.first_ns].into_iter().filter(|ns| *ns > 0).min();
        Counters {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
            forwarded: self.forwarded + other.forwarded,
            forwarded_bytes: self.forwarded_bytes + other.forwarded_bytes,
            over_limit: self.over_limit + other.over_limit,
            too_long: self.too_long + other.too_long,
            failed: self.failed + other.failed,
            buffers: self.buffers + other.buffers,
            completed: self.completed + other.completed,
            first_ns: first.unwrap_or(0),
            last_ns: self.last_ns.max(other.last_ns),
            tick: 0,
            buffer_bytes: self.buffer_bytes + other.buffer_bytes,
        }
    }

    /// From the first to the last arrival; 0 with fewer than two frames.
    pub fn duration_ns(&self) -> u64 {
        if self.first_ns == 0 { 0 } else { self.last_ns.saturating_sub(self.first_ns) }
    }
}

mod words {
    #![allow(unsafe_code, reason = "a promise of how a type is laid out; nothing is done here")]

    // SAFETY: repr(C), only u64 fields, tail padding to 64 bytes.
    unsafe impl bpf::Words for super::Counters {}
}
