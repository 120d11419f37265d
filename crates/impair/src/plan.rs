//! What a device does to frames: settings, as data.

use crate::Share;
use std::str::FromStr;
use std::time::Duration;

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

/// How far a frame is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// Behind so many later ones.
    Frames(u32),
    /// By so much time.
    Time(Duration),
}

/// One state, then another, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycle {
    /// How long all is well.
    pub well: Duration,
    /// How long it is not.
    pub ill: Duration,
}

impl Cycle {
    /// When the bad time ends, if this is one.
    pub fn ill_until(&self, at_ns: u64) -> Option<u64> {
        let (well, ill) = (nanos(self.well), nanos(self.ill));
        let whole = well.saturating_add(ill).max(1);
        let phase = at_ns % whole;
        (phase >= well && ill > 0).then(|| at_ns - phase + whole)
    }
}

/// Why a text is no cycle.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` are no two times: write 2s/500ms, how long all is well and how long it is not")]
pub struct BadCycle(pub String);

/// Reads a cycle, of which `time` reads the times.
///
/// # Errors
/// What of the text cannot be read.
pub fn parse_cycle(text: &str, time: impl Fn(&str) -> Option<Duration>) -> Result<Cycle, BadCycle> {
    let bad = || BadCycle(text.to_owned());
    let (well, ill) = text.split_once('/').ok_or_else(bad)?;
    let well = if well == "0" { Duration::ZERO } else { time(well).ok_or_else(bad)? };
    let ill = time(ill).filter(|ill| !ill.is_zero()).ok_or_else(bad)?;
    Ok(Cycle { well, ill })
}

/// Why a text is no shift.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no distance: write 3 (behind so many later frames) or 200us")]
pub struct BadShift(pub String);

/// Reads a shift, of which `time` reads times.
///
/// # Errors
/// What of the text cannot be read.
pub fn parse_shift(text: &str, time: impl Fn(&str) -> Option<Duration>) -> Result<Shift, BadShift> {
    match u32::from_str(text) {
        Ok(0) => Err(BadShift(text.to_owned())),
        Ok(frames) => Ok(Shift::Frames(frames)),
        Err(_) => time(text)
            .filter(|time| !time.is_zero())
            .map(Shift::Time)
            .ok_or_else(|| BadShift(text.to_owned())),
    }
}

/// A time in the state machine's unit.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(text: &str) -> Option<Duration> {
        text.strip_suffix("ms")?.parse().ok().map(Duration::from_millis)
    }

    #[test]
    fn cycles_begin_well_and_repeat() {
        let cycle = parse_cycle("20ms/5ms", milliseconds).expect("a cycle");
        let ms = |at: u64| cycle.ill_until(at * 1_000_000).map(|ns| ns / 1_000_000);
        assert_eq!(
            [0, 19, 20, 24, 25, 44, 45].map(ms),
            [None, None, Some(25), Some(25), None, None, Some(50)]
        );
        let always = parse_cycle("0/5ms", milliseconds).expect("a cycle");
        assert_eq!(always.ill_until(7_000_000), Some(10_000_000));
        for bad in ["", "5ms", "5ms/", "/5ms", "5ms/0ms", "5ms/5"] {
            assert!(parse_cycle(bad, milliseconds).is_err(), "{bad}");
        }
    }

    #[test]
    fn shifts_are_frames_or_times() {
        assert_eq!(parse_shift("3", milliseconds).ok(), Some(Shift::Frames(3)));
        assert_eq!(parse_shift("3ms", milliseconds).ok(), Some(Shift::Time(Duration::from_millis(3))));
        for bad in ["", "0", "-1", "0ms", "x"] {
            assert!(parse_shift(bad, milliseconds).is_err(), "{bad}");
        }
    }
}
