//! What the kernel's programs share with user space: `programs/bpf/include/sessions.h`, field by field.

use histogram::BUCKETS;
use programs::sessions::types::{session_control, session_counts, session_slot, session_times};
use std::mem::{offset_of, size_of};

/// Nanoseconds of a time stamp in a slot, as a power of two.
pub const TICK_BITS: u32 = 7;
/// Slots that are listed at a time.
pub const LISTED: usize = 4096;

/// Declares a struct of counters, all u64, of which every CPU has one, and their sum.
macro_rules! counted {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[repr(C, align(64))]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$of])* pub $field: u64,)*
        }

        impl $name {
            /// The sum over all CPUs.
            pub(crate) fn over(map: &bpf::Mapping<$name>) -> $name {
                let shares = (0..map.len()).filter_map(|cpu| map.get(cpu));
                shares.fold($name::default(), |sum, share| $name { $($field: sum.$field + share.$field,)* })
            }

            /// What was counted since `earlier`.
            pub fn since(&self, earlier: &$name) -> $name {
                $name { $($field: self.$field.saturating_sub(earlier.$field),)* }
            }
        }
    };
}

counted! {
    /// Clients: sums of all CPUs. Bytes are layer 2 without FCS but for `answer_bytes`.
    Counts {
        /// First SYNs; of UDP first requests.
        opened,
        /// A SYN-ACK came; of UDP a first answer.
        established,
        /// All was answered, and both sides closed, or we by a RST where that was asked for.
        finished,
        /// Ended by a RST.
        reset,
        /// Not over in time.
        timed_out,
        /// Ended by us when all was to end.
        abandoned,
        /// Closed by the peer before the answer at hand was whole.
        unanswered,
        /// Closed by the peer after a whole answer, though more was to come.
        closed_early,
        /// Ended by us: the peer takes no segment as long as a request.
        refused,
        /// Requests, without those that were sent again.
        asked,
        /// Connections that were asked once more when all were used again.
        used_again,
        /// And had a whole answer.
        used_again_answered,
        /// Of those, connections with an answer that is no success or contradicts its length.
        used_again_badly,
        /// Of those that finished, connections with such an answer.
        finished_badly,
        /// Whole answers that are no HTTP.
        not_http,
        /// Whole answers by the first digit of their status.
        status_1xx,
        /// See `status_1xx`.
        status_2xx,
        /// See `status_1xx`.
        status_3xx,
        /// See `status_1xx`.
        status_4xx,
        /// See `status_1xx`.
        status_5xx,
        /// Whole answers whose first segment ends before their status does.
        unread,
        /// Relays that the server refused: it sends none, or did not make the cookie.
        relays_refused,
        /// Answers of UDP, with the number of the request at hand.
        numbered,
        /// Answers of 1xx that announced another one.
        interim,
        /// Answers of which the first segment does not tell how long they are, where the client needs it.
        unframed,
        /// Whole answers of which nothing but the close tells that they are.
        to_the_close,
        /// Answers whose Content-Length is no number, or contradicts another one.
        misframed,
        /// Answers behind whose end more came.
        overlong,
        /// Sent again, by what.
        retransmitted_syns,
        /// See `retransmitted_syns`.
        retransmitted_requests,
        /// See `retransmitted_syns`.
        retransmitted_acks,
        /// See `retransmitted_syns`.
        retransmitted_fins,
        /// Segments that came again.
        duplicates,
        /// Segments that came before their turn.
        out_of_order,
        /// Segments that no such connection expects.
        unexpected,
        /// Segments whose lengths contradict themselves.
        malformed,
        /// RSTs sent.
        resets_sent,
        /// Requests that had no room in the frame that asked for them, and left in the next live frame.
        deferred,
        /// Of those, for which there was no place: they were left to be sent again.
        undeferred,
        /// Segments that had no room and were not sent.
        no_room,
        /// ARP requests answered.
        arp_replies,
        /// Neighbour solicitations answered.
        advertisements,
        /// Bytes of answers, heads and all.
        answer_bytes,
        /// Frames sent.
        tx_frames,
        /// Bytes of those.
        tx_bytes,
        /// Frames of these connections that arrived.
        rx_frames,
        /// Bytes of those.
        rx_bytes,
    }
}

impl Counts {
    /// Segments sent again.
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted_syns
            + self.retransmitted_requests
            + self.retransmitted_acks
            + self.retransmitted_fins
    }

    /// Connections that are over.
    pub fn ended(&self) -> u64 {
        self.finished + self.failed()
    }

    /// Whole answers.
    pub fn answers(&self) -> u64 {
        self.not_http
            + self.status_1xx
            + self.status_2xx
            + self.status_3xx
            + self.status_4xx
            + self.status_5xx
            + self.unread
            + self.numbered
    }

    /// Those that did not finish.
    pub fn failed(&self) -> u64 {
        self.reset + self.timed_out + self.abandoned + self.unanswered + self.closed_early + self.refused
    }
}

counted! {
    /// The server: sums of all CPUs. Bytes are layer 2 without FCS but for `request_bytes` and `answer_bytes`.
    Served {
        /// SYNs answered.
        syns,
        /// Requests answered, those that came again among them.
        requests,
        /// Segments of answers.
        segments,
        /// FINs of clients that had the whole answer.
        finished,
        /// RSTs that came.
        resets,
        /// Segments that acknowledge what was never said, answered by a RST.
        bad_cookies,
        /// Segments that no client of this server sends.
        unexpected,
        /// Segments whose lengths contradict themselves.
        malformed,
        /// Segments that had no room and were not sent.
        no_room,
        /// ARP requests answered.
        arp_replies,
        /// Neighbour solicitations answered.
        advertisements,
        /// Bytes of requests.
        request_bytes,
        /// Bytes of answers.
        answer_bytes,
        /// Datagrams that were sent to where another request had come from, as clients asked.
        relayed,
        /// Frames sent.
        tx_frames,
        /// Bytes of those.
        tx_bytes,
        /// Frames to this server that arrived.
        rx_frames,
        /// Bytes of those.
        rx_bytes,
    }
}

/// Spans of time as the kernel counts them.
#[derive(Debug)]
#[repr(C)]
pub struct Times {
    pub sum: u64,
    pub max: u64,
    pub buckets: [u64; BUCKETS],
}

/// A slot as it lies in memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawSlot(pub [u64; 4]);

/// Byte offsets in the control memory.
pub mod control {
    use super::{offset_of, session_control};

    pub const BYTES: usize = super::size_of::<session_control>();
    pub const LIMIT: usize = offset_of!(session_control, limit);
    pub const IN_FLIGHT: usize = offset_of!(session_control, in_flight);
    pub const GAP_NS: usize = offset_of!(session_control, gap_ns);
    pub const GAP_PART: usize = offset_of!(session_control, gap_part);
    pub const GAP_PARTS: usize = offset_of!(session_control, gap_parts);
    pub const OPENED: usize = offset_of!(session_control, opened);
    pub const DUE_NS: usize = offset_of!(session_control, due_ns);
    pub const SLOT: usize = offset_of!(session_control, slot);
    pub const BUSY: usize = offset_of!(session_control, busy);
    pub const LATE: usize = offset_of!(session_control, late);
    pub const LISTED_AT: usize = offset_of!(session_control, listed_at);
    pub const LISTED_COUNT: usize = offset_of!(session_control, listed_count);
    pub const DEFERRED_AT: usize = offset_of!(session_control, deferred_at);
    pub const NEXT_MAC: usize = offset_of!(session_control, next_mac);
    pub const ENDED: usize = offset_of!(session_control, ended);
    pub const HELD: usize = offset_of!(session_control, held);
    pub const VIA: usize = offset_of!(session_control, via);
    pub const DEFERRED_END: usize = offset_of!(session_control, deferred_end);
    pub const LISTED: usize = offset_of!(session_control, listed);
}

// The kernel's layouts and ours are the same.
const _: () = {
    assert!(size_of::<session_counts>() == size_of::<Counts>());
    assert!(offset_of!(session_counts, unanswered) == offset_of!(Counts, unanswered));
    assert!(offset_of!(session_counts, finished_badly) == offset_of!(Counts, finished_badly));
    assert!(offset_of!(session_counts, classes) == offset_of!(Counts, not_http));
    assert!(offset_of!(session_counts, unframed) == offset_of!(Counts, unframed));
    assert!(offset_of!(session_counts, deferred) == offset_of!(Counts, deferred));
    assert!(offset_of!(session_counts, rx_bytes) == offset_of!(Counts, rx_bytes));
    assert!(size_of::<programs::serve::types::served_counts>() == size_of::<Served>());
    assert!(offset_of!(programs::serve::types::served_counts, rx_bytes) == offset_of!(Served, rx_bytes));
    assert!(
        offset_of!(programs::serve::types::served_counts, bad_cookies) == offset_of!(Served, bad_cookies)
    );
    assert!(size_of::<session_slot>() == size_of::<RawSlot>());
    assert!(offset_of!(session_slot, left) == 12 && offset_of!(session_slot, since) == 16);
    assert!(offset_of!(session_slot, deadline) == 24);
    assert!(size_of::<session_times>() == size_of::<Times>());
    assert!(control::LISTED + 8 * LISTED <= control::BYTES);
};

mod words {
    #![allow(unsafe_code, reason = "promises of how types are laid out; nothing is done here")]

    // SAFETY: repr(C), only u64 fields, tail padding in whole u64s.
    unsafe impl bpf::Words for super::Counts {}
    // SAFETY: as above.
    unsafe impl bpf::Words for super::Served {}
    // SAFETY: as above, with an array of them.
    unsafe impl bpf::Words for super::Times {}
    // SAFETY: as above.
    unsafe impl bpf::Words for super::RawSlot {}
}
