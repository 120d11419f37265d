//! Loads whose trials could not be judged, and where else a search may look.
//!
//! A trial whose sender was held up, or in which the machine that a device shares was, may say nothing of the device at its load.
//! Whoever took that for a failure would find the sender, and whoever tried the same load until it can be judged may never end.
//! So a search goes on where trials may say more: nearer to the load that failed, where a device loses more than can be
//! excused, and nearer to the one that passed, where it loses nothing. What it knows stays bounded by trials that were judged.

/// Where to look between two bounds, as parts of the way from the lower to the upper.
const PLACES: [f64; 7] = [0.5, 0.75, 0.25, 0.875, 0.125, 0.625, 0.375];
/// A load is tried so often at most, besides what its trials are repeated.
const TIMES: u32 = 3;
/// A search ends after so many trials that could not be judged.
const MOST: u32 = 24;
/// What a search came to is enough only after so many: one may be chance.
const SOME: u32 = 3;

/// A load, and trials of what length there could not be judged, so often.
#[derive(Debug, Clone, Copy)]
struct At {
    place: f64,
    length: f64,
    times: u32,
}

/// What could not be judged so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unjudged {
    at: Vec<At>,
    all: u32,
}

impl Unjudged {
    /// A trial of this length could not be judged at this place. Places nearer to each other than `apart` are the same.
    pub fn note(&mut self, place: f64, length: f64, apart: f64) {
        self.all += 1;
        let same = |at: &&mut At| at.length == length && (at.place - place).abs() < apart;
        match self.at.iter_mut().find(same) {
            Some(at) => at.times += 1,
            None => self.at.push(At { place, length, times: 1 }),
        }
    }

    /// How often trials of this length could not be judged there.
    pub fn times(&self, place: f64, length: f64, apart: f64) -> u32 {
        let same = |at: &&At| at.length == length && (at.place - place).abs() < apart;
        self.at.iter().filter(same).map(|at| at.times).sum()
    }

    /// Was it often enough to take what is known for all that can be known?
    pub fn is_some(&self) -> bool {
        self.all >= SOME
    }

    /// Is it of no use to try any other load?
    pub fn is_over(&self) -> bool {
        self.all >= MOST
    }

    /// May this place be tried (again)?
    pub fn may(&self, place: f64, length: f64, apart: f64) -> bool {
        !self.is_over() && self.times(place, length, apart) < TIMES
    }

    /// Where to look between `low` and `high`: first in their middle, and next where the fewest trials could not be judged.
    /// `None` when that is nowhere. `round` makes a load of a place.
    pub fn elsewhere(
        &self,
        (low, high): (f64, f64),
        length: f64,
        apart: f64,
        round: impl Fn(f64) -> f64,
    ) -> Option<f64> {
        let places = PLACES.iter().map(|part| round(low + (high - low) * part));
        let inside = places.filter(|place| *place > low && *place < high);
        let open = inside.filter(|place| self.may(*place, length, apart));
        open.min_by_key(|place| self.times(*place, length, apart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_load_could_not_be_judged_others_are_tried_and_in_the_end_none() {
        let mut unjudged = Unjudged::default();
        let mut tried = Vec::new();
        while let Some(place) = unjudged.elsewhere((100.0, 200.0), 1.0, 0.5, |place| place) {
            tried.push(place);
            unjudged.note(place, 1.0, 0.5);
        }
        assert_eq!(tried[..8], [150.0, 175.0, 125.0, 187.5, 112.5, 162.5, 137.5, 150.0]);
        assert_eq!(tried.len(), 21);
        // Trials of another length may say more.
        assert_eq!(unjudged.elsewhere((100.0, 200.0), 3.0, 0.5, |place| place), Some(150.0));
        assert!(unjudged.is_some() && !unjudged.is_over());
        // Between neighbours there is nothing.
        assert_eq!(unjudged.elsewhere((1.0, 2.0), 1.0, 0.5, f64::round), None);
    }
}
