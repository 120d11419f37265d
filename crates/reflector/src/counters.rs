//! What the reflector counts: as the kernel lays it out, and as a user sees the sum.

use crate::stamp::Stamped;

/// What was reflected up to now. Bytes are layer 2 without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reflected {
    /// All that arrived: the sum of `reflected`, `group`, `resolution`, `without_signature` and `malformed`.
    pub frames: u64,
    /// Bytes of those, layer 2 without FCS.
    pub bytes: u64,
    /// Handed to the driver to be sent back.
    pub reflected: u64,
    /// Bytes of those.
    pub reflected_bytes: u64,
    /// Echo requests among them, which became replies.
    pub echoes: u64,
    /// To a broadcast or multicast address: passed to the host.
    pub group: u64,
    /// ARP and IPv6 neighbour discovery: passed to the host.
    pub resolution: u64,
    /// Without the signature that was asked for: passed to the host.
    pub without_signature: u64,
    /// Cut short, or with headers that contradict themselves: dropped.
    pub malformed: u64,
    /// When the first and the last frame arrived, to within a clock tick (1 to 10 ms).
    pub first_ns: Option<u64>,
    /// See `first_ns`.
    pub last_ns: Option<u64>,
    /// What became of STAMP test packets, if those are answered; then `frames` is the sum of `reflected` and what stands there.
    pub stamp: Option<Stamped>,
}

/// One CPU's share: `programs/bpf/include/reflector.h`, field by field.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub frames: u64,
    pub bytes: u64,
    pub reflected: u64,
    pub reflected_bytes: u64,
    pub echoes: u64,
    pub group: u64,
    pub resolution: u64,
    pub unsigned_frames: u64,
    pub malformed: u64,
    /// `CLOCK_MONOTONIC`; 0: nothing yet.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The kernel's own.
    pub tick: u64,
}

impl Reflected {
    /// The sum with one CPU's share.
    pub(crate) fn with(self, share: &Counters) -> Reflected {
        let time = |ns: u64| (ns > 0).then_some(ns);
        Reflected {
            frames: self.frames + share.frames,
            bytes: self.bytes + share.bytes,
            reflected: self.reflected + share.reflected,
            reflected_bytes: self.reflected_bytes + share.reflected_bytes,
            echoes: self.echoes + share.echoes,
            group: self.group + share.group,
            resolution: self.resolution + share.resolution,
            without_signature: self.without_signature + share.unsigned_frames,
            malformed: self.malformed + share.malformed,
            first_ns: self.first_ns.into_iter().chain(time(share.first_ns)).min(),
            last_ns: self.last_ns.max(time(share.last_ns)),
            stamp: self.stamp,
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
    unsafe impl bpf::Words for super::Counters {}
}
