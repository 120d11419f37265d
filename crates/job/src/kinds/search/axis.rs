//! `netdyno search throughput --axis`: the most flows, the hardest frame size or the longest bursts that pass at a rate.

use super::throughput::{goals, known, not_determined, open_verdicts, tried};
use super::{Common, Notes, Sized, unfinished};
use crate::trials::goal::excuse;
use crate::trials::{How, Offer, Series, frames_per_second, nanos, rows_of};
use anyhow::{Result, bail};
use report::search::{Part, SearchAxis, SearchResult};
use report::units;
use spec::{Axis, Throughput};
use std::time::Duration;
use traffic::expr::Size;
use traffic::{Rate, Schedule};
use trial::{Bisect, BisectPlan, Direction, Resolution, Wanted};

/// A trial has so many bursts of the longest that are tried.
const BURSTS: f64 = 10.0;

pub fn search(
    series: &mut Series,
    args: &Throughput,
    common: &Common<'_>,
    sized: &mut Sized,
    search: &mut SearchResult,
    notes: &mut Notes,
) -> Result<bool> {
    let goals = goals(&args.finding)?;
    let [goal] = goals[..] else { bail!("`.axis`: one `.goal` at a time") };
    let goal = goal.by_one_trial().unwrap_or(goal);
    let Some(rate) = args.rate.as_deref().copied() else { bail!("`.axis`: at which rate? Give `.rate`") };
    let link = series.rig.bits_per_second()?;
    let duration = common.trial_duration();
    let (size, mean) = (sized.size.clone(), sized.result.mean_frame_bytes);
    // Checked here, so that the closure need not fail.
    let load = frames_per_second(rate, mean, link)?;
    let most = sized.result.greatest;
    let axis = args.axis;
    // Bits in smaller frames are more frames.
    let of_sizes = if matches!(rate, Rate::Frames(_)) { Direction::Greatest } else { Direction::Least };
    let (name, least, greatest, direction) = match axis {
        Axis::Flows => (SearchAxis::Flows, 1.0, args.max_flows() as f64, Direction::Greatest),
        Axis::Burst => {
            let longest = longest_burst(args, (rate, load), most, duration)?;
            (SearchAxis::BurstFrames, 1.0, longest, Direction::Greatest)
        }
        Axis::Size | Axis::Rate => (SearchAxis::FrameSize, 64.0, 1518.0, of_sizes),
    };
    search.axis = name;
    (sized.result.least, sized.result.greatest) = (least, greatest);
    sized.result.burst_frames_per_second = (axis == Axis::Burst).then_some(most);
    let trial_ns = nanos(duration);
    let mut bisect = Bisect::new(BisectPlan {
        least,
        greatest,
        resolution: Resolution::Units(1.0),
        direction,
        limits: goal.limits,
        trial_ns,
        short_ns: trial_ns,
        retries: 0,
        retry_loss_ratio: 0.0,
        in_parts: false,
        enough: 0.0,
    })?;
    let offer = |wanted: &Wanted| {
        let value = wanted.load.round().max(1.0);
        match axis {
            Axis::Flows => {
                Offer { flows: Some(value as u64), ..Offer::steady(load, wanted.duration_ns, &size) }
            }
            Axis::Burst => Offer {
                schedule: bursts(value, most, load),
                ..Offer::steady(load, wanted.duration_ns, &size)
            },
            Axis::Size | Axis::Rate => {
                let load = frames_per_second(rate, value, link).unwrap_or(1.0);
                Offer::steady(load, wanted.duration_ns, &Size::Fixed(value as u32))
            }
        }
    };
    series.goals = vec![goal];
    let part = &Part::Throughput;
    let name = sized.name.clone();
    let known = |bisect: &Bisect, series: &Series| {
        let tried = tried(series, part, &name, &goal);
        known((bisect.passed(), bisect.failed()), tried, direction, &|value| units::count(value as u64))
    };
    let how = How { part, again: None, goal: &goal, offer: &offer, known: &known, of_rate: false };
    let whole = series.drive(&mut bisect, &how)?;
    if !whole {
        let of = (part, sized.name.as_str());
        sized.result.unfinished.push(unfinished::bound(series, of, &goal, &search.axis, direction));
        return Ok(false);
    }
    sized.result.found = bisect.passed();
    let show = |value: f64| units::count(value as u64);
    if !bisect.is_reached() {
        let rows: Vec<_> = rows_of(&series.course.rows, part, &sized.name).collect();
        let axis = |value: f64| if direction == Direction::Least { -value } else { value };
        let tried = rows.iter().map(|row| (axis(row.load), &row.verdict));
        let bounds = (bisect.passed().map(axis), bisect.failed().map(axis));
        let excuse = excuse(open_verdicts(tried, bounds));
        notes.shortfalls.push(not_determined(bisect.passed(), bisect.failed(), &excuse, &show));
    } else if bisect.passed().is_none() {
        notes.shortfalls.push(
            format!(
                "nothing passed, not even {} {}",
                search.axis.in_words(),
                units::count(bisect.failed().unwrap_or(least) as u64)
            )
            .into(),
        );
    }
    Ok(true)
}

/// The most frames of a burst that are tried, where bursts leave at the rate `most` and the average is `load`.
fn longest_burst(args: &Throughput, (rate, load): (Rate, f64), most: f64, duration: Duration) -> Result<f64> {
    if load >= most {
        bail!(
            "`.rate` {rate}: bursts at {}, the greatest rate there is, need an average below it: lower `.rate` or raise `.max`",
            units::frame_rate(most)
        );
    }
    let longest = args.max_burst.as_deref().copied();
    Ok(longest.unwrap_or((load * duration.as_secs_f64() / BURSTS) as u64).max(1) as f64)
}

/// Bursts of so many frames at the rate `most`, `load` frames a second on average.
fn bursts(frames: f64, most: f64, load: f64) -> Schedule {
    let gap = 1e9 / most;
    let period = (frames * 1e9 / load).max(frames * gap);
    Schedule::Bursts { frames: frames as u64, gap_ns: gap as u64, period_ns: period.ceil() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_keep_the_average_and_the_greatest_rate() {
        let Schedule::Bursts { frames, gap_ns, period_ns } = bursts(50.0, 1e6, 1e5) else {
            panic!("no bursts");
        };
        assert_eq!((frames, gap_ns, period_ns), (50, 1_000, 500_000));
    }
}
