//! Where things stand in the memory that a running program shares with its engine: 64-bit words, by byte offset.
//!
//! What the engine writes and what the program writes are cache lines apart, so that looking on costs nothing.

use histogram::BUCKETS;

/// Written by the engine: CLOCK_MONOTONIC of the run's start, and of pauses so much later as they lasted; 0 holds all
/// frames.
pub const START: u32 = 0;
/// Written by the engine: 1 ends the run.
pub const STOP: u32 = 8;
/// Written by the engine: frames due at or after this many nanoseconds are not sent.
pub const DURATION: u32 = 16;
/// Written by the engine: frames due at or after this many nanoseconds are not waited for within a run, because the call
/// is to end.
pub const LINGER: u32 = 24;
/// Written by the engine: nor are frames that are so many nanoseconds away, because it would rather sleep.
pub const STAY: u32 = 32;

/// 1 as soon as the program runs and waits for its start.
pub const ARRIVED: u32 = 64;
/// 1 when there is nothing more to send.
pub const DONE: u32 = 72;
/// Frames that may still be sent.
pub const LEFT: u32 = 80;
/// Frames that may leave in the present batch (top speed).
pub const QUOTA: u32 = 88;
/// Runs of the present batch that send nothing (top speed), or are to come (paced).
pub const ROOM: u32 = 96;
/// Frames sent; at top speed those of a whole batch are counted when it begins.
pub const SENT: u32 = 104;
/// Bytes of those, where frames differ in length.
pub const BYTES: u32 = 112;
/// Nanoseconds after the start when the clock was read last.
pub const NOW: u32 = 120;

/// Frames due before this may leave: the pacer's position and one.
pub const RELEASE: u32 = 128;
/// When the pacer moved last.
pub const PACED_AT: u32 = 136;
/// 1 while the run is behind its schedule.
pub const BEHIND: u32 = 144;
/// Frames later than [`engine::LATE_NS`].
pub const LATE: u32 = 152;
/// How late the last frame was.
pub const LAST_LATE: u32 = 160;
/// Times that the run was held up.
pub const STALLS: u32 = 168;
/// The longest of those.
pub const LONGEST_STALL: u32 = 176;
/// When the clock was read last before [`PACED_AT`].
pub const LOOKED: u32 = 184;
/// Frames sent while behind.
pub const CATCH_UP: u32 = 192;
/// Sum of all latenesses.
pub const LATE_SUM: u32 = 200;
/// The greatest lateness.
pub const LATE_MAX: u32 = 208;
/// Which lane is due first, of several, and when: only for the verifier, which forgets here how they were found.
pub const FIRST_LANE: u32 = 216;
/// As above.
pub const FIRST_DUE: u32 = 224;
/// By how much the schedule was put off in all, where nothing is caught up.
pub const PUT_OFF: u32 = 232;
/// How often `LATE_SUM` has come round: a million frames a second, each a minute late, fill it in five minutes.
pub const LATE_SUM_ROUNDS: u32 = 240;

/// When the frames so far would have left at the link's bound for catching up (`engine::pacer::Budget`).
pub const FREE_AT: u32 = 248;
/// How many nanoseconds runs waited for frames' times.
pub const LINGERED: u32 = 256;
/// How late the first frame was, and one: 0 before it.
pub const FIRST_LATE: u32 = 264;
/// The time that the frames of a bulk carry at top speed; 0 before the first of them that has one.
pub const STAMP: u32 = 272;
/// What [`QUOTA`] is at the first frame of the next bulk.
pub const STAMP_UNTIL: u32 = 280;

/// The lanes: before the histogram, because offsets in instructions have 16 bits.
pub const LANES: u32 = 512;
/// Bytes for each lane.
pub const LANE: u32 = 64;
/// Most lanes: what one run of the program looks through before each frame.
pub const MAX_LANES: usize = 64;
/// A log-linear histogram of lateness.
pub const HISTOGRAM: u32 = LANES + LANE * MAX_LANES as u32;
/// The streams' own words.
pub const STREAMS: u32 = HISTOGRAM + 8 * BUCKETS as u32;

/// A lane's words.
pub mod lane {
    /// When the lane's next frame is due; all ones when it has ended.
    pub const DUE: u32 = 0;
    /// Fraction of a nanosecond beyond it.
    pub const REMAINDER: u32 = 8;
    /// Place in the order of streams.
    pub const PLACE: u32 = 16;
    /// Frames left.
    pub const LEFT: u32 = 24;
    /// Frame in the burst, step of the staircase, or frame of the capture.
    pub const TURN: u32 = 32;
    /// Start of the burst or pass.
    pub const BASE: u32 = 40;
    /// Fraction of the pass's start.
    pub const BASE_REMAINDER: u32 = 48;
    /// Where an ended lane's next frame would have been due.
    pub const END: u32 = 56;
}

/// Words of a stream; its fields' follow.
pub mod stream {
    /// Number of its next frame.
    pub const NUMBER: u32 = 0;
    /// State of its law of lengths; of a capture, the next template.
    pub const LENGTH: u32 = 8;
    /// Pass over the templates.
    pub const PASS: u32 = 16;
    /// What the signature adds to sums.
    pub const SIGNATURE: u32 = 24;
    /// First field.
    pub const FIELDS: u32 = 32;
    /// Bytes for each field.
    pub const FIELD: u32 = 40;
}

/// Words of a field.
pub mod field {
    /// Present value.
    pub const VALUE: u32 = 0;
    /// Step number, modulo the period.
    pub const TURN: u32 = 8;
    /// Step number.
    pub const STEP: u32 = 16;
    /// Frames that had the present value.
    pub const PHASE: u32 = 24;
    /// The value as it stands in the frame, for the sums.
    pub const PLACED: u32 = 32;
}
