//! What people write of faults: shares of frames, times well and ill, and how far a frame is put back.

use crate::rate::parse_duration;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// So many of so many frames, as written: `1%`, `0.5%`, `1/1000`; more than none and at most all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    frames: u32,
    of: u32,
}

/// Why a text is none.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no share of frames: write 1%, 0.5% or 1/1000, more than none and at most all")]
pub struct BadShare(String);

impl Share {
    /// All frames.
    pub const ALL: Share = Share { frames: 1, of: 1 };

    /// How many frames of how many, as written: 5 of 1000 for 0.5%.
    pub fn parts(self) -> (u32, u32) {
        (self.frames, self.of)
    }

    /// Is frame `n` (from 0) among them? Evenly spread, the first one being among them: `frames` of each `of`.
    pub fn takes(self, n: u64) -> bool {
        u128::from(n) * u128::from(self.frames) % u128::from(self.of) < u128::from(self.frames)
    }

    /// Is the frame with this random number among them?
    pub fn draws(self, random: u64) -> bool {
        u128::from(random) * u128::from(self.of) < u128::from(self.frames) << 64
    }
}

impl FromStr for Share {
    type Err = BadShare;

    fn from_str(text: &str) -> Result<Share, BadShare> {
        let (frames, of) = share(text).ok_or_else(|| BadShare(text.to_owned()))?;
        Ok(Share { frames, of })
    }
}

fn share(text: &str) -> Option<(u32, u32)> {
    let (frames, of) = match text.split_once('/') {
        Some((frames, of)) => (frames.to_owned(), of.parse().ok()?),
        None => {
            let percent = text.strip_suffix('%')?;
            let (whole, decimals) = percent.split_once('.').unwrap_or((percent, ""));
            let places = u32::try_from(decimals.len()).ok()?;
            (format!("{whole}{decimals}"), 10_u32.checked_pow(places)?.checked_mul(100)?)
        }
    };
    let digits = !frames.is_empty() && frames.bytes().all(|c| c.is_ascii_digit());
    let frames: u32 = frames.parse().ok().filter(|_| digits)?;
    (frames > 0 && frames <= of).then_some((frames, of))
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            1 => f.write_str("100%"),
            100 => write!(f, "{}%", self.frames),
            of => write!(f, "{}/{of}", self.frames),
        }
    }
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
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (well, ill) = (nanos(self.well), nanos(self.ill));
        let whole = well.saturating_add(ill).max(1);
        let phase = at_ns % whole;
        (phase >= well && ill > 0).then(|| at_ns - phase + whole)
    }
}

/// Why a text is no cycle.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` are no two times: write 2s/500ms, how long all is well and how long it is not")]
pub struct BadCycle(String);

impl FromStr for Cycle {
    type Err = BadCycle;

    fn from_str(text: &str) -> Result<Cycle, BadCycle> {
        let bad = || BadCycle(text.to_owned());
        let time = |text: &str| parse_duration(text).map_err(|_| bad());
        let (well, ill) = text.split_once('/').ok_or_else(bad)?;
        let well = if well == "0" { Duration::ZERO } else { time(well)? };
        Ok(Cycle { well, ill: time(ill)? })
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

/// Why a text is no shift.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no distance: write 3 (behind so many later frames) or 200us")]
pub struct BadShift(String);

impl FromStr for Shift {
    type Err = BadShift;

    fn from_str(text: &str) -> Result<Shift, BadShift> {
        let bad = || BadShift(text.to_owned());
        match text.parse() {
            Ok(0) => Err(bad()),
            Ok(frames) => Ok(Shift::Frames(frames)),
            Err(_) => parse_duration(text).map(Shift::Time).map_err(|_| bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(text: &str) -> Share {
        text.parse().expect(text)
    }

    #[test]
    fn shares_are_read_as_written_and_nothing_else_is() {
        assert_eq!(
            (share("1%"), share("2.5%"), share("3/7")),
            (Share { frames: 1, of: 100 }, Share { frames: 25, of: 1000 }, Share { frames: 3, of: 7 })
        );
        assert_eq!([share("7%"), share("3/7"), Share::ALL].map(|s| s.to_string()), ["7%", "3/7", "100%"]);
        for bad in
            ["", "%", "0%", "101%", "1", "0.01", "1/0", "0/0", "-1%", "+1%", "1e3%", "1%%", "0.0000000001%"]
        {
            assert!(bad.parse::<Share>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn an_even_share_is_exact_at_any_moment(frames in 1..1000u32, more in 0..1000u32, n in 0..5000u64) {
            let share = Share { frames, of: frames + more };
            let taken = (0..n).filter(|&i| share.takes(i)).count() as u64;
            let exactly = n as f64 * f64::from(frames) / f64::from(frames + more);
            prop_assert!((taken as f64 - exactly).abs() <= 1.0 - 1e-9, "{} {}", taken, exactly);
            let of = u64::from(frames + more);
            let in_each = (n * of..n * of + of).filter(|&i| share.takes(i)).count();
            prop_assert_eq!(in_each, frames as usize);
        }
    }

    #[test]
    fn cycles_begin_well_and_repeat() {
        let cycle: Cycle = "20ms/5ms".parse().expect("a cycle");
        let ms = |at: u64| cycle.ill_until(at * 1_000_000).map(|ns| ns / 1_000_000);
        assert_eq!(
            [0, 19, 20, 24, 25, 44, 45].map(ms),
            [None, None, Some(25), Some(25), None, None, Some(50)]
        );
        let always: Cycle = "0/5ms".parse().expect("a cycle");
        assert_eq!(always.ill_until(7_000_000), Some(10_000_000));
        for bad in ["", "5ms", "5ms/", "/5ms", "5ms/0ms", "5ms/0", "5ms/5"] {
            assert!(bad.parse::<Cycle>().is_err(), "{bad}");
        }
    }

    #[test]
    fn shifts_are_frames_or_times() {
        assert_eq!("3".parse().ok(), Some(Shift::Frames(3)));
        assert_eq!("3ms".parse().ok(), Some(Shift::Time(Duration::from_millis(3))));
        for bad in ["", "0", "-1", "0ms", "x"] {
            assert!(bad.parse::<Shift>().is_err(), "{bad}");
        }
    }
}
