//! What a device does to frames: settings, as data.

use std::time::Duration;
use traffic::faults::{Cycle, Share, Shift};

/// What happens to the frames of one direction. `Plan::default()` sends each on as it came, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// From a frame's arrival to its departure.
    pub delay: Duration,
    /// As much more or less, evenly drawn. Frames overtake each other, unless `keep_order`.
    pub jitter: Duration,
    /// With `jitter`: no frame leaves before one that came before it.
    pub keep_order: bool,
    /// The share of frames that is lost.
    pub loss: Option<Share>,
    /// The share of frames that is duplicated.
    pub duplicate: Option<Share>,
    /// Copies of a duplicated frame, besides itself.
    pub copies: u32,
    /// The share of frames that leaves behind later ones.
    pub reorder: Option<Share>,
    /// How far a reordered frame is put back.
    pub shift: Shift,
    /// The share of frames in which one bit flips.
    pub corrupt: Option<Share>,
    /// Corrupted frames get a right checksum of the transport layer.
    pub mend: bool,
    /// Forwards, then loses everything.
    pub flap: Option<Cycle>,
    /// Forwards, then holds everything.
    pub freeze: Option<Cycle>,
    /// Copies of each frame that go back where it came from.
    pub come_back: u32,
    /// Shares are drawn, rather than evenly spread.
    pub random: bool,
    /// Key of all that is drawn.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            keep_order: false,
            loss: None,
            duplicate: None,
            copies: 1,
            reorder: None,
            shift: Shift::Frames(3),
            corrupt: None,
            mend: false,
            flap: None,
            freeze: None,
            come_back: 0,
            random: false,
            seed: 0,
        }
    }
}

/// A time in the state machine's unit.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
