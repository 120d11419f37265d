//! Where a trial may go: not so near what is measured, or so near an end of the range, that it would tell nothing.

/// Moves `load` to where a trial helps a search of `width` between bounds that are measured (or none); `None` where there
/// is no such place. Loads run from 0 to `top`; ends of the range that are not measured may be tried themselves.
pub fn fit(load: i64, width: i64, lower: Option<i64>, upper: Option<i64>, top: i64) -> Option<i64> {
    if lower.is_some_and(|lower| load <= lower) || upper.is_some_and(|upper| load >= upper) {
        return None;
    }
    let (least, most) = (lower.unwrap_or(0), upper.unwrap_or(top));
    let interval = most - least;
    if interval <= width {
        return match (lower, upper) {
            (Some(_), Some(_)) => None,
            (None, Some(_)) => Some(0),
            (Some(_), None) => Some(top),
            (None, None) => Some(if load < top / 2 { 0 } else { top }),
        };
    }
    if interval < 2 * width {
        let middle = least + split(interval, width);
        return Some(match (lower, upper) {
            (None, _) if load < middle => 0,
            (_, None) if load > middle => top,
            _ => middle,
        });
    }
    let load = match lower {
        Some(lower) => load.max(lower + width),
        None if load < width => 0,
        None => load,
    };
    Some(match upper {
        Some(upper) => load.min(upper - width),
        None if load > top - width => top,
        None => load,
    })
}

/// Splits `width` (more than `goal`) so that as few halvings as possible lead to parts no wider than `goal`; the lower part
/// is no greater than the upper, because more is known about where a device passes. Returns the lower part.
pub fn split(width: i64, goal: i64) -> i64 {
    if width < 2 * goal {
        // Half a goal, if what is left then is no more than one; an odd goal has no half.
        return if goal % 2 == 0 { (goal / 2).max(width - goal) } else { width / 2 };
    }
    // One part a goal times a power of two, the more even the better.
    let mut part = goal;
    let (mut best, mut product) = (goal, 0);
    while part < width {
        let lower = part.min(width - part);
        if lower * (width - lower) > product {
            product = lower * (width - lower);
            best = lower;
        }
        part *= 2;
    }
    best
}
