//! Change points of a series, by minimal description length.
//!
//! A series is cut into groups of one mean each. A cut is worth its place if the series is described in fewer bits with it than
//! without, the place and the further mean included. Values are described by a mixture over the means of groups and over the noise that all
//! groups share (Zellner's prior with one value's weight), so that neither a threshold nor the noise must be said, and neither
//! unit nor level of the values matters.
//!
//! Such a description obeys the rule that no code can beat chance often: values without a change save b bits in at most one
//! of 2^b series. So each cut has to save `PRICE` bits more, and false alarms are bounded by that, however short the series is.
//!
//! Old cuts are looked for coarsely in a very long series, and then moved to their best places.

/// What each cut must save beyond its own description: at 6.64 bits (log2 of 100) chance does that in one of a hundred series of
/// normally distributed values.
const PRICE: f64 = 6.643_856;
/// Fewer values tell no change from chance.
pub const FEWEST: usize = 4;
/// Places at which a cut may be, in a long series; the newest results are places each.
const PLACES: usize = 256;
/// So many of the newest.
const NEWEST: usize = 96;
/// Groups that are found at once. Each is then looked at by itself.
const MOST_GROUPS: usize = 16;
/// A spread below this share of the greatest value is rounding.
const ROUNDING: f64 = 1e-12;

/// A stretch of a series with one mean.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Group {
    /// Index of its first value.
    pub first: usize,
    /// Index of its last value.
    pub last: usize,
    /// Values in it, without exceptions.
    pub values: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; 0 of a single value.
    pub deviation: f64,
}

/// A series cut into groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// In their order; no value is in two of them.
    pub groups: Vec<Group>,
    /// Indices of single values that stand apart from those before and after them, and that belong to no group.
    pub exceptions: Vec<usize>,
}

/// The groups of a series. Values must be finite.
pub fn groups(values: &[f64]) -> Groups {
    let mut found = Groups::default();
    let mut kept: Vec<usize> = (0..values.len()).collect();
    let mut starts = cut(values);
    // A single value between others is an exception. Without it those on both sides of it may be one group.
    loop {
        let alone: Vec<usize> = alone(&starts, kept.len());
        if alone.is_empty() {
            break;
        }
        found.exceptions.extend(alone.iter().filter_map(|at| kept.get(*at)));
        let mut number = 0..;
        kept.retain(|_| number.next().is_none_or(|n| !alone.contains(&n)));
        starts = cut(&picked(values, &kept));
    }
    found.exceptions.sort_unstable();
    if let Some(newest) = newest_is_no_news(values, &kept, &starts, &found.exceptions) {
        kept.pop();
        starts.pop();
        found.exceptions.push(newest);
    }
    let of_kept = picked(values, &kept);
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(kept.len());
        let (Some(first), Some(last)) = (kept.get(*start), end.checked_sub(1).and_then(|end| kept.get(end)))
        else {
            continue;
        };
        let (mean, deviation) = spread(of_kept.get(*start..end).unwrap_or_default());
        found.groups.push(Group { first: *first, last: *last, values: end - start, mean, deviation });
    }
    found
}

/// Positions of groups of one value that others follow and precede.
fn alone(starts: &[usize], len: usize) -> Vec<usize> {
    let ends = starts.iter().skip(1).copied().chain([len]);
    let single =
        starts.iter().zip(ends).filter(|(start, end)| **start > 0 && *end < len && end - *start == 1);
    single.map(|(start, _)| *start).collect()
}

fn picked(values: &[f64], at: &[usize]) -> Vec<f64> {
    at.iter().filter_map(|at| values.get(*at)).copied().collect()
}

/// The newest value, if it alone stands apart and no further than an exception before did: such ones happen here.
fn newest_is_no_news(
    values: &[f64],
    kept: &[usize],
    starts: &[usize],
    exceptions: &[usize],
) -> Option<usize> {
    let [.., before, last] = starts else { return None };
    let newest = *kept.last()?;
    if *last + 1 != kept.len() {
        return None;
    }
    let of_before = kept.get(*before..*last)?;
    let (mean, _) = spread(&picked(values, of_before));
    let far = values.get(newest)? - mean;
    let since = *of_before.first()?;
    let as_far = |at: &&usize| {
        let was = values.get(**at).copied().unwrap_or(mean) - mean;
        **at >= since && was.signum() == far.signum() && was.abs() >= far.abs()
    };
    exceptions.iter().find(as_far).map(|_| newest)
}

/// Mean and standard deviation.
fn spread(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|v| v / count).sum::<f64>();
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

/// Where groups begin, the first at 0. Each group that is found is looked at once more by itself: beside a great change a small
/// one is no part of the noise.
fn cut(values: &[f64]) -> Vec<usize> {
    let mut starts = Vec::new();
    // Stretches still to be looked at, the oldest last.
    let mut open = vec![(0, values.len())];
    while let Some((first, end)) = open.pop() {
        let found = values.get(first..end).map(cut_once).unwrap_or_default();
        if found.len() < 2 {
            starts.push(first);
            continue;
        }
        let ends = found.iter().skip(1).copied().chain([end - first]);
        let parts: Vec<_> = found.iter().zip(ends).map(|(start, end)| (first + start, first + end)).collect();
        open.extend(parts.into_iter().rev());
    }
    starts
}

/// Sums of squares around the mean, of any stretch.
struct Squares {
    sums: Vec<(f64, f64)>,
}

impl Squares {
    /// Of values that have been brought to mean 0 and deviation 1: then nothing is lost by subtracting sums.
    fn of(values: &[f64]) -> Option<Squares> {
        let (mean, deviation) = spread(values);
        let greatest = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        if !deviation.is_finite() || deviation <= ROUNDING * greatest {
            return None;
        }
        let mut sums = vec![(0.0, 0.0)];
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in values {
            let value = (value - mean) / deviation;
            sum += value;
            squares += value * value;
            sums.push((sum, squares));
        }
        Some(Squares { sums })
    }

    /// From the value at `first` to that before `end`.
    fn between(&self, first: usize, end: usize) -> f64 {
        let (Some(from), Some(to)) = (self.sums.get(first), self.sums.get(end)) else { return 0.0 };
        let (sum, squares) = (to.0 - from.0, to.1 - from.1);
        (squares - sum * sum / (end - first).max(1) as f64).max(0.0)
    }

    fn of_groups(&self, starts: &[usize], end: usize) -> f64 {
        let ends = starts.iter().skip(1).copied().chain([end]);
        starts.iter().zip(ends).map(|(start, end)| self.between(*start, end)).sum()
    }
}

/// The cuts that make the description shortest, of those that are found at once.
fn cut_once(values: &[f64]) -> Vec<usize> {
    let len = values.len();
    let Some(squares) = Squares::of(values).filter(|_| len >= FEWEST) else { return vec![0] };
    let whole = squares.between(0, len);
    let mut best = (0.0, vec![0]);
    for mut starts in by_number_of_groups(&squares, &places(len)) {
        move_to_best(&squares, &mut starts, len);
        let left = (squares.of_groups(&starts, len) / whole).max(0.0);
        let saved = saved(len, starts.len(), left) - described(&starts, len);
        if saved > best.0 {
            best = (saved, starts);
        }
    }
    best.1
}

/// Bits by which `len` values are described shorter as `groups` groups that leave this share of the squares.
fn saved(len: usize, groups: usize, left: f64) -> f64 {
    let weight = len as f64;
    let shorter = (weight - groups as f64) / 2.0 * (1.0 + weight).log2();
    shorter - (weight - 1.0) / 2.0 * (1.0 + weight * left).log2()
}

/// Bits that say where groups begin, and what each cut must save. A place is said by its distance from the newest value: the
/// nearer, the fewer bits, since the question is always what has changed of late.
fn described(starts: &[usize], len: usize) -> f64 {
    let harmonic: f64 = (1..len).map(|d| 1.0 / d as f64).sum();
    let places = starts.iter().skip(1).map(|at| (harmonic * (len - at) as f64).log2());
    // In which order places are said tells nothing.
    let orders: f64 = (2..starts.len()).map(|n| (n as f64).log2()).sum();
    places.map(|place| place + PRICE).sum::<f64>() - orders
}

/// Where groups may begin, with both ends.
fn places(len: usize) -> Vec<usize> {
    let old = len.saturating_sub(NEWEST);
    let step = if len <= PLACES { 1 } else { old.div_ceil(PLACES - NEWEST).max(1) };
    (0..old).step_by(step).chain(old..=len).collect()
}

/// For each number of groups from 2 on, where they begin if as little of the squares as possible is to be left.
fn by_number_of_groups(squares: &Squares, places: &[usize]) -> Vec<Vec<usize>> {
    let count = places.len();
    let between = |from: usize, to: usize| match (places.get(from), places.get(to)) {
        (Some(from), Some(to)) => squares.between(*from, *to),
        _ => f64::INFINITY,
    };
    // What is left of the values before each place.
    let mut left: Vec<f64> = (0..count).map(|to| between(0, to)).collect();
    // For each number of groups and each place, where the last group before it begins.
    let mut begun: Vec<Vec<usize>> = Vec::new();
    let mut all = Vec::new();
    for groups in 2..=MOST_GROUPS.min(count.saturating_sub(1)) {
        let mut next = vec![f64::INFINITY; count];
        let mut from = vec![0; count];
        for to in groups..count {
            for at in groups - 1..to {
                let sum = left.get(at).copied().unwrap_or(f64::INFINITY) + between(at, to);
                if let (Some(next), Some(from)) = (next.get_mut(to), from.get_mut(to))
                    && sum < *next
                {
                    (*next, *from) = (sum, at);
                }
            }
        }
        begun.push(from);
        left = next;
        let mut at = count - 1;
        let mut starts = vec![0];
        for from in begun.iter().rev() {
            at = from.get(at).copied().unwrap_or(0);
            starts.insert(1, places.get(at).copied().unwrap_or(0));
        }
        all.push(starts);
    }
    all
}

/// Moves each cut to the best place between its neighbours: in a long series not each is a place.
fn move_to_best(squares: &Squares, starts: &mut [usize], len: usize) {
    if len <= PLACES {
        return;
    }
    for number in 1..starts.len() {
        let before = starts.get(number - 1).copied().unwrap_or(0);
        let after = starts.get(number + 1).copied().unwrap_or(len);
        let left = |at: &usize| squares.between(before, *at) + squares.between(*at, after);
        let best = (before + 1..after).min_by(|a, b| left(a).total_cmp(&left(b)));
        if let (Some(start), Some(best)) = (starts.get_mut(number), best) {
            *start = best;
        }
    }
}

#[cfg(test)]
mod tests;
