//! When the frames of one stream leave: its schedule, how many frames it has, and when it has ended.
//!
//! All in integers. A stream *has ended* when the frame after its last would be due (so that one which follows keeps
//! the distance), when its duration is over, or its last burst's period, or its ramp; whichever is first.

use super::error::{Fault, Outcome};
use super::model::{Burst, Count, Ramp, RateText, Stream, Then, Time};
use super::yaml::At;
use traffic::fraction;
use traffic::lengths::Lengths;
use traffic::program;
use traffic::rate::{self, Rate};
use traffic::schedule::{Schedule, Step};

/// Steps of a ramp, unless it says otherwise.
const STEPS: u32 = 100;
/// Steps of a ramp, at most.
const MAX_STEPS: u32 = 10_000;
/// Frames of random sizes looked at to find when bits add up: a fraction of a second's work.
const MAX_LOOK: u64 = 1 << 26;

/// A stream's place in time, counted from its own start.
#[derive(Debug, Clone)]
pub(super) struct Timing {
    pub schedule: Schedule,
    /// How many frames, if it ends.
    pub frames: Option<u64>,
    /// When it has ended, if it does.
    pub end_ns: Option<u64>,
}

/// The timing of a stream that has its own; `own` is its rate, or that of the defaults.
pub(super) fn of(
    stream: &Stream,
    own: Option<&At<RateText>>,
    frames: &program::Stream,
    (link_bits_per_second, seed): (Option<u64>, u64),
) -> Outcome<Timing> {
    let (schedule, own_frames, own_end) = if let Some(burst) = &stream.burst {
        bursts(burst, frames, link_bits_per_second)?
    } else if let Some(ramp) = &stream.ramp {
        self::ramp(ramp, frames, link_bits_per_second)?
    } else if let (Some(shape), Some(rate)) = (&stream.shape, own) {
        let (each, per_ns) = frames_per(rate, frames, link_bits_per_second, "a shape")?;
        (shape.value.0.schedule(each, per_ns, seed), None, None)
    } else if let Some(rate) = own {
        (schedule(rate, link_bits_per_second)?, None, None)
    } else {
        (Schedule::TopSpeed, None, None)
    };
    let lengths = (&frames.lengths, frames.templates.longest());
    let too_long =
        |place| Fault { place, message: "this ends after more than 500 years: give less".to_owned() };
    let mut timing = Timing { schedule, frames: own_frames, end_ns: own_end };
    let sooner = |a: Option<u64>, b: u64| Some(a.map_or(b, |a| a.min(b)));
    if let Some(At { value: Count(count), place }) = stream.count {
        timing.frames = sooner(timing.frames, count);
        if timing.schedule.is_paced() {
            let end = due(&timing.schedule, count, lengths).ok_or_else(|| unknown(place))?;
            if end == u64::MAX {
                return Err(too_long(place));
            }
            timing.end_ns = sooner(timing.end_ns, end);
        }
    }
    if let Some(duration) = &stream.duration {
        let Time(ns) = positive(duration, "a stream's duration")?.value;
        if timing.schedule.is_paced() {
            let frames = due_within(&timing.schedule, ns, lengths).ok_or_else(|| unknown(duration.place))?;
            timing.frames = sooner(timing.frames, frames);
        }
        timing.end_ns = sooner(timing.end_ns, ns);
    }
    Ok(timing)
}

fn unknown(place: super::error::Place) -> Fault {
    Fault {
        place,
        message: "how many frames of random sizes a rate in bits makes takes too long to count here; give the rate in frames per second, or sizes as a list"
            .to_owned(),
    }
}

/// A time above zero.
pub(super) fn positive<'a>(time: &'a At<Time>, what: &str) -> Outcome<&'a At<Time>> {
    if time.value.0 == 0 {
        return Err(Fault { place: time.place, message: format!("{what} must be more than zero") });
    }
    Ok(time)
}

/// The schedule of a rate.
pub(super) fn schedule(rate: &At<RateText>, link_bits_per_second: Option<u64>) -> Outcome<Schedule> {
    let around = rate::Context { link_bits_per_second, flows_per_pass: None };
    rate.value.0.schedule(around).map_err(|bad| Fault { place: rate.place, message: bad.to_string() })
}

type Parts = (Schedule, Option<u64>, Option<u64>);

fn bursts(burst: &At<Burst>, stream: &program::Stream, link_bits_per_second: Option<u64>) -> Outcome<Parts> {
    let Burst { frames, gap, rate, every, count } = &burst.value;
    let (frames, frames_at) = (frames.value.0, frames.place);
    let period = positive(every, "the time from burst to burst")?.value.0;
    let gap = match (gap, rate) {
        (Some(gap), Some(_)) => {
            let message = "`gap` and `rate` both say how close the frames of a burst are: keep one of them";
            return Err(Fault { place: gap.place, message: message.to_owned() });
        }
        (Some(gap), None) => gap.value.0,
        (None, Some(rate)) if rate.value.0 == Rate::TopSpeed => 0,
        (None, Some(rate)) => {
            let (frames, per_ns) = frames_per(rate, stream, link_bits_per_second, "a burst")?;
            per_ns / frames
        }
        (None, None) => 0,
    };
    let lasts = u128::from(frames - 1) * u128::from(gap);
    if lasts >= u128::from(period) {
        let message = format!(
            "{frames} frames {gap} ns apart take {lasts} ns, but the next burst begins after {period} ns: give fewer frames, a smaller gap or a longer `every`",
        );
        return Err(Fault { place: frames_at, message });
    }
    let schedule = Schedule::Bursts { frames, gap_ns: gap, period_ns: period };
    let Some(At { value: Count(bursts), place }) = *count else {
        return Ok((schedule, None, None));
    };
    match (frames.checked_mul(bursts), period.checked_mul(bursts)) {
        (Some(total), Some(end)) => Ok((schedule, Some(total), Some(end))),
        _ => Err(Fault { place, message: "so many bursts never end: give fewer".to_owned() }),
    }
}

fn ramp(ramp: &At<Ramp>, stream: &program::Stream, link_bits_per_second: Option<u64>) -> Outcome<Parts> {
    let Ramp { from, to, over, steps, then } = &ramp.value;
    let over = positive(over, "the time of a ramp")?;
    let (length, over_at) = (over.value.0, over.place);
    let (count, steps_at) = steps.as_ref().map_or((STEPS, ramp.place), |steps| (steps.value, steps.place));
    if !(2..=MAX_STEPS).contains(&count) {
        let message = format!("a ramp has 2 to {MAX_STEPS} steps");
        return Err(Fault { place: steps_at, message });
    }
    if u64::from(count) > length {
        return Err(Fault { place: over_at, message: "this is too short for the ramp's steps".to_owned() });
    }
    let (first, last) = (
        frames_per(from, stream, link_bits_per_second, "a ramp")?,
        frames_per(to, stream, link_bits_per_second, "a ramp")?,
    );
    let (count, length) = (u64::from(count), u128::from(length));
    let stairs: Option<Vec<Step>> = (0..count)
        .map(|j| {
            let (frames, per_ns) = between(first, last, j, count - 1)?;
            let end_ns = (length * u128::from(j + 1) / u128::from(count)) as u64;
            Some(Step { end_ns, frames, per_ns })
        })
        .collect();
    let Some(mut steps) = stairs else {
        let message = "these rates have too many decimals for a ramp: give fewer";
        return Err(Fault { place: ramp.place, message: message.to_owned() });
    };
    if *then == Then::Hold
        && let Some(step) = steps.last_mut()
    {
        step.end_ns = u64::MAX;
        return Ok((Schedule::Steps { steps: steps.into() }, None, None));
    }
    let schedule = Schedule::Steps { steps: steps.into() };
    let total = schedule.total_frames();
    Ok((schedule, total, Some(length as u64)))
}

/// A rate as frames in nanoseconds; one in bits if all frames are of one length.
fn frames_per(
    rate: &At<RateText>,
    stream: &program::Stream,
    link_bits_per_second: Option<u64>,
    what: &str,
) -> Outcome<(u64, u64)> {
    let wrong = |message: String| Fault { place: rate.place, message };
    match schedule(rate, link_bits_per_second)? {
        Schedule::Frames { frames, per_ns } => Ok((frames, per_ns)),
        Schedule::Bits { bits_per_second, overhead_bytes } => {
            let longest = stream.longest();
            let (shortest, _) = stream.lengths.bounds(stream.templates.shortest());
            if shortest != longest {
                return Err(wrong(format!(
                    "the rate of {what} counts frames where sizes vary: give frames per second (100kpps)"
                )));
            }
            let bits = (u64::from(longest) + u64::from(overhead_bytes)) * 8;
            reduced(u128::from(bits_per_second), u128::from(bits) * 1_000_000_000)
                .ok_or_else(|| wrong("this rate has too many digits".to_owned()))
        }
        _ => Err(wrong(format!("the rate of {what} is a number, such as 100kpps"))),
    }
}

/// `a + (b - a) * j / n`, exactly if that fits, of rates as frames in nanoseconds.
fn between(a: (u64, u64), b: (u64, u64), j: u64, n: u64) -> Option<(u64, u64)> {
    let wide = |x: u64| u128::from(x);
    // Over a common denominator: a.0 * b.1 and b.0 * a.1, both over a.1 * b.1.
    let denominator = wide(a.1).checked_mul(wide(b.1))?;
    let (from, to) = (wide(a.0).checked_mul(wide(b.1))?, wide(b.0).checked_mul(wide(a.1))?);
    // 128 bits hold the products of two 64-bit numbers, not those with the number of steps: so some bits go first.
    let surplus = 128 - from.max(to).max(denominator).leading_zeros();
    let shift = (surplus + 15).saturating_sub(128);
    let (from, to, denominator) = (from >> shift, to >> shift, denominator >> shift);
    let numerator = from * wide(n - j) + to * wide(j);
    reduced(numerator, denominator * wide(n))
}

/// So many frames in so many nanoseconds, in lowest terms; `None` where one of both is none.
pub(super) fn reduced(frames: u128, per_ns: u128) -> Option<(u64, u64)> {
    let (frames, per_ns) = fraction::reduced(frames, per_ns);
    (frames > 0 && per_ns > 0).then_some((frames, per_ns))
}

type Law<'a> = (&'a Lengths, u32);

/// When frame `n` is due; `None` if that would take too long to find.
pub(super) fn due(schedule: &Schedule, n: u64, lengths: Law<'_>) -> Option<u64> {
    match schedule {
        Schedule::Bits { bits_per_second, overhead_bytes } => {
            let bits = bits_before(n, lengths, *overhead_bytes)?;
            let ns = bits.checked_mul(1_000_000_000)? / u128::from(*bits_per_second).max(1);
            Some(u64::try_from(ns).unwrap_or(u64::MAX))
        }
        _ => {
            let mut cursor = schedule.cursor();
            cursor.seek(n, |_| 0);
            Some(cursor.due())
        }
    }
}

/// How many frames are due before `ns`; `None` if that would take too long to find.
fn due_within(schedule: &Schedule, ns: u64, lengths: Law<'_>) -> Option<u64> {
    let Schedule::Bits { bits_per_second, overhead_bytes } = schedule else {
        return schedule.frames_due_by(ns.checked_sub(1)?);
    };
    // floor(bits * 10^9 / rate) < ns  <=>  bits < ns * rate / 10^9: the first frame from there on is out.
    let room = (u128::from(ns) * u128::from(*bits_per_second)).div_ceil(1_000_000_000);
    let each = |length: u32| (u128::from(length) + u128::from(*overhead_bytes)) * 8;
    let (law, template) = lengths;
    let (shortest, longest) = law.bounds(template);
    if shortest == longest {
        return u64::try_from(room.div_ceil(each(shortest).max(1))).ok();
    }
    let (mut n, mut bits) = (0u64, 0u128);
    if let Lengths::List(items) = law {
        let cycle: u128 = items.iter().map(|&length| each(length)).sum();
        let cycles = room / cycle.max(1);
        n = u64::try_from(cycles).ok()?.checked_mul(items.len() as u64)?;
        bits = cycles * cycle;
    }
    let end = n.saturating_add(MAX_LOOK);
    while bits < room {
        if n == end {
            return None;
        }
        bits += each(law.at(n, template));
        n += 1;
    }
    Some(n)
}

/// Bits of the first `n` frames; `None` if that would take too long to find.
fn bits_before(n: u64, (law, template): Law<'_>, overhead: u32) -> Option<u128> {
    let each = |length: u32| (u128::from(length) + u128::from(overhead)) * 8;
    let (shortest, longest) = law.bounds(template);
    if shortest == longest {
        return Some(u128::from(n) * each(shortest));
    }
    let (mut bits, mut rest) = (0u128, 0..n);
    if let Lengths::List(items) = law {
        let cycle: u128 = items.iter().map(|&length| each(length)).sum();
        let len = items.len() as u64;
        bits = u128::from(n / len) * cycle;
        rest = n - n % len..n;
    }
    if rest.end - rest.start > MAX_LOOK {
        return None;
    }
    Some(bits + rest.map(|k| each(law.at(k, template))).sum::<u128>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walked(schedule: &Schedule, n: u64, law: &Lengths) -> u64 {
        let mut cursor = schedule.cursor();
        (0..n).for_each(|k| cursor.advance(law.at(k, 60)));
        cursor.due()
    }

    fn law() -> impl Strategy<Value = Lengths> {
        prop_oneof![
            (42u32..1500).prop_map(Lengths::Fixed),
            proptest::collection::vec(42u32..1500, 1..20).prop_map(|sizes| Lengths::List(sizes.into())),
            (any::<u64>(), 42u32..100, 100u32..1500).prop_map(|(key, min, max)| Lengths::Random {
                key,
                min,
                max
            }),
        ]
    }

    proptest! {
        #[test]
        fn bits_are_counted_as_the_schedule_walks(law in law(), bps in 1_000u64..10_000_000_000, n in 0u64..300, layer1: bool) {
            let schedule = Schedule::Bits { bits_per_second: bps, overhead_bytes: if layer1 { 24 } else { 0 } };
            let at = walked(&schedule, n, &law);
            prop_assert_eq!(due(&schedule, n, (&law, 60)), Some(at));
            // Frame n is due at `at`: n frames are due before it, and one more before the next nanosecond.
            prop_assume!(at > 0);
            let before = due_within(&schedule, at, (&law, 60)).unwrap();
            prop_assert!(walked(&schedule, before, &law) >= at);
            prop_assert!(before == 0 || walked(&schedule, before - 1, &law) < at);
        }

        #[test]
        fn steps_of_a_ramp_lie_on_the_line(a in 1u64..2_400_000_000, b in 1u64..2_400_000_000, n in 1u64..10_000, j in 0u64..10_000) {
            let j = j.min(n);
            let second = 1_000_000_000;
            let (frames, per_ns) = between((a, second), (b, second), j, n).unwrap();
            let exact = (a as f64 * (n - j) as f64 + b as f64 * j as f64) / n as f64;
            let got = frames as f64 * second as f64 / per_ns as f64;
            prop_assert!((got / exact - 1.0).abs() < 1e-12, "{got} {exact}");
        }

        #[test]
        fn no_rates_upset_a_ramp(a: u64, b: u64, c: u64, d: u64, n in 1u64..10_000, j in 0u64..10_000) {
            let _ = between((a.max(1), b.max(1)), (c.max(1), d.max(1)), j.min(n), n);
        }
    }
}
