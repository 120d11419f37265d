//! The loads that can be tried: whole numbers on a logarithmic scale between the least and the greatest load.
//!
//! On it widths add up: what was halved can be doubled again and gives the same load, so a load is never missed by a
//! rounding and trials of different goals meet at the same loads.

/// The scale.
#[derive(Debug, Clone)]
pub struct Grid {
    pub least: f64,
    pub greatest: f64,
    /// The number of the greatest load; the least is 0.
    pub top: i64,
    /// ln(greatest / least)
    span: f64,
}

/// A width in units may fall short of a goal's by so much.
const SHORTEST: f64 = 0.99;
/// And must be narrower than it by this at least, so that no rounding makes it wider.
const LONGEST: f64 = 0.999_999;
/// No scale is finer: widths of goals are at least a millionth.
const MOST: i64 = 100_000_000;

impl Grid {
    /// The coarsest scale on which each of the `widths` (relative, 0.005) is a whole number of units, nearly.
    pub fn new(least: f64, greatest: f64, widths: &[f64]) -> Grid {
        let span = (greatest / least).ln();
        let logs: Vec<f64> = widths.iter().map(|width| -(-width).ln_1p()).collect();
        let fits = |units: f64| {
            let whole = units.floor();
            (SHORTEST..=LONGEST).contains(&(whole / units))
        };
        // No fewer units than one for the narrowest.
        let narrowest = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let mut top = ((span / narrowest).floor() as i64).max(1);
        while top < MOST && !logs.iter().all(|log| fits(log * top as f64 / span)) {
            top += 1;
        }
        Grid { least, greatest, top, span }
    }

    /// The load of a number.
    pub fn load(&self, number: i64) -> f64 {
        if number <= 0 {
            self.least
        } else if number >= self.top {
            self.greatest
        } else {
            self.least * (self.span * (number as f64 / self.top as f64)).exp()
        }
    }

    /// The number of the greatest load that is no more than `load`.
    pub fn below(&self, load: f64) -> i64 {
        if load <= self.least {
            return 0;
        }
        if load >= self.greatest {
            return self.top;
        }
        let number = (load / self.least).ln() / self.span * self.top as f64;
        (number.floor() as i64).clamp(0, self.top)
    }

    /// A relative width in whole units, rounded down, and one at least.
    pub fn width(&self, relative: f64) -> i64 {
        let units = -(-relative).ln_1p() / self.span * self.top as f64;
        (units.floor() as i64).max(1)
    }
}
