//! What the STAMP reflector counts: as the kernel lays it out, and as a user sees the sum.

use crate::counters::Reflected;
use bpf::Mapping;

/// What became of test packets that were not answered, and what is said of those that were.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamped {
    /// Frames that were no test packets to this reflector: passed to the host.
    pub others: u64,
    /// Test packets shorter than an answer: passed to the host.
    pub too_short: u64,
    /// With lengths, addresses or ports that contradict themselves: passed to the host.
    pub malformed: u64,
    /// First fragments: passed to the host.
    pub fragments: u64,
    /// Answers of other reflectors: passed to the host.
    pub answers: u64,
    /// From addresses that are not listed: passed to the host.
    pub not_allowed: u64,
    /// Above the rate: dropped.
    pub limited: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Among those that were answered: with the sender's numbers, because there was no room for another session.
    pub without_room: u64,
}

/// One CPU's share: `struct stamped` of `programs/bpf/include/stamp.h`, field by field.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub frames: u64,
    pub bytes: u64,
    pub answered: u64,
    pub answered_bytes: u64,
    pub stamped: Stamped,
    /// `CLOCK_MONOTONIC`; 0: nothing yet.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The kernel's own.
    pub tick: u64,
}

/// The sums up to now.
pub fn counted(counters: &Mapping<Counters>) -> Reflected {
    let none = Reflected { stamp: Some(Stamped::default()), ..Reflected::default() };
    (0..counters.len()).filter_map(|cpu| counters.get(cpu)).fold(none, |sum, share| with(sum, &share))
}

fn with(sum: Reflected, share: &Counters) -> Reflected {
    let time = |ns: u64| (ns > 0).then_some(ns);
    let (before, more) = (sum.stamp.unwrap_or_default(), share.stamped);
    Reflected {
        frames: sum.frames + share.frames,
        bytes: sum.bytes + share.bytes,
        reflected: sum.reflected + share.answered,
        reflected_bytes: sum.reflected_bytes + share.answered_bytes,
        first_ns: sum.first_ns.into_iter().chain(time(share.first_ns)).min(),
        last_ns: sum.last_ns.max(time(share.last_ns)),
        stamp: Some(Stamped {
            others: before.others + more.others,
            too_short: before.too_short + more.too_short,
            malformed: before.malformed + more.malformed,
            fragments: before.fragments + more.fragments,
            answers: before.answers + more.answers,
            not_allowed: before.not_allowed + more.not_allowed,
            limited: before.limited + more.limited,
            sessions: before.sessions + more.sessions,
            without_room: before.without_room + more.without_room,
        }),
        ..sum
    }
}

mod words {
    #![allow(unsafe_code, reason = "a promise of how a type is laid out; nothing is done here")]

    // SAFETY: repr(C), only u64 fields, no padding.
    unsafe impl bpf::Words for super::Counters {}
}
