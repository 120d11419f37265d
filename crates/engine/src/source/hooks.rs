//! What others have a say in while a capture is streamed: who is shown the frames, who lets them go, which get lost.

use std::fmt;
use traffic::values::hash;

/// Takes the time that a frame was captured at, and the frame.
pub type Show = Box<dyn FnMut(u64, &[u8]) + Send>;

/// Each is called by the sending thread, which waits meanwhile.
#[derive(Default)]
pub struct Hooks {
    /// Asked for how many frames may leave, from the one with this number (from 1) on; `None`: no more.
    pub ask: Option<Box<dyn FnMut(u64) -> Option<u64> + Send>>,
    /// Shown each frame that is about to leave, with the time it was captured at.
    pub show: Option<Show>,
    /// Told when a pass is over and another begins.
    pub passed: Option<Box<dyn FnMut(Passed) + Send>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hooks { ask, show, passed } = self;
        let set = [("ask", ask.is_some()), ("show", show.is_some()), ("passed", passed.is_some())];
        f.debug_set().entries(set.iter().filter(|(_, set)| *set).map(|(name, _)| name)).finish()
    }
}

impl Hooks {
    /// Does nobody have a say?
    pub fn is_empty(&self) -> bool {
        self.ask.is_none() && self.show.is_none() && self.passed.is_none()
    }
}

/// Where a run stands at the end of a pass; all from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Passes.
    pub passes: u64,
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time.
    pub elapsed_ns: u64,
}

/// Frames that get lost on purpose: each with the same probability, told by its number, so that a seed loses the same
/// frames each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Of 2^64 hashes those below this are hits.
    below: u64,
    seed: u64,
}

impl Loss {
    /// `numerator` of `denominator` frames get lost; `None` if that would be all, or more.
    pub fn new(numerator: u64, denominator: u64, seed: u64) -> Option<Loss> {
        let below = (u128::from(numerator) << 64) / u128::from(denominator.max(1));
        u64::try_from(below).ok().map(|below| Loss { below, seed: hash(seed, 0x6c6f_7373) })
    }

    /// Does frame `number` of the run get lost?
    pub fn hits(self, number: u64) -> bool {
        hash(self.seed, number) < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_frames_get_lost_as_were_asked_for() {
        for (numerator, denominator) in [(0, 100), (1, 1000), (25, 100), (999, 1000)] {
            let loss = Loss::new(numerator, denominator, 7).unwrap();
            let lost = (0..1_000_000).filter(|&n| loss.hits(n)).count() as f64;
            let wanted = 1e6 * numerator as f64 / denominator as f64;
            // Five standard deviations.
            let off = 5.0 * (wanted * (1.0 - wanted / 1e6)).sqrt();
            assert!((lost - wanted).abs() <= off, "{lost} for {wanted}");
        }
        assert_eq!([Loss::new(1, 1, 7), Loss::new(3, 2, 7)], [None; 2]);
    }

    #[test]
    fn another_seed_loses_others() {
        let lost = |seed| (0..64).filter(|&n| Loss::new(1, 2, seed).unwrap().hits(n)).collect::<Vec<u64>>();
        assert_eq!(lost(1), lost(1));
        assert_ne!(lost(1), lost(2));
    }
}
