//! Shapes of load: rates that vary, by a law or by chance, as schedules that are functions of the frame's number.
//!
//! Two functions stand one behind the other. The first says when frame *n* of an even load comes, or one of a Poisson process; the
//! second stretches this time where the load is low and shortens it where it is high. Both are in integers, found
//! without walking there, and so are their inverses. A worker has some of the whole's frames (`share`), each at the very time that
//! it has in the whole.

mod fixed;
mod poisson;
mod warp;

pub use poisson::EXACT_AFTER_BITS;
pub use warp::CYCLES_BITS;

use crate::program::Program;
use crate::rate::{Exact, number, parse_duration};
use crate::schedule::{Schedule, Speed};
use crate::values::hash;
use poisson::Process;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use warp::Warp;

/// How a load varies, as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    curve: Curve,
    random: bool,
    text: String,
}

/// How the rate varies. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curve {
    /// It does not.
    Constant,
    /// About the rate, by so many millionths of it.
    Sine { period: u64, amplitude: u64 },
    /// The rate for `high` of each period, and so many millionths of it for the rest.
    Square { period: u64, high: u64, low: u64 },
    /// Once up to `peak` thousandths of the rate, and back.
    Flash { after: u64, rise: u64, hold: u64, fall: u64, peak: u64 },
    /// The rate and nothing, by turns; means, and the shape of their distribution in thousandths.
    OnOff { on: u64, off: u64, alpha: u64 },
}

/// Why a text is no shape: what it is, and how to write one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadShape(String);

/// All that may be written.
pub const WRITTEN: &str = "poisson, sine:period=10s,amplitude=50%, square:period=1s,high=20%,low=10%, flash:after=10s,rise=2s,peak=10x,hold=5s,fall=20s or onoff:on=100ms,off=900ms,alpha=1.5; with arrivals=poisson behind any but the first";

/// Longest time in a shape: a day.
const LONGEST: u64 = 86_400_000_000_000;
/// Shortest: below, the knots of a curve would be less than some nanoseconds apart.
const SHORTEST: u64 = 10_000;

/// What stands behind the name, taken out one by one.
struct Given<'a> {
    name: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Given<'a> {
    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let at = self.pairs.iter().position(|(own, _)| *own == key)?;
        Some(self.pairs.remove(at).1)
    }

    fn wrong(&self, key: &str, value: &str, need: &str) -> BadShape {
        BadShape(format!("`{key}={value}` of the shape `{}`: {need}", self.name))
    }

    /// A time; without a default it must be given.
    fn time(&mut self, key: &'static str, example: &str, otherwise: Option<u64>) -> Result<u64, BadShape> {
        let Some(text) = self.take(key) else {
            return otherwise.ok_or_else(|| {
                BadShape(format!("the shape `{}` needs `{key}`, such as {key}={example}", self.name))
            });
        };
        let ns = parse_duration(text).map_err(|bad| self.wrong(key, text, &bad.to_string()))?.as_nanos();
        match u64::try_from(ns) {
            Ok(ns) if (SHORTEST..=LONGEST).contains(&ns) => Ok(ns),
            _ => Err(self.wrong(key, text, "give a time from 10us to 1d")),
        }
    }

    /// A number between bounds, in parts of one, with one of these units behind it.
    fn number(
        &mut self,
        key: &'static str,
        (unit, per_unit): (&str, u64),
        range: (u64, u64),
        need: &str,
        otherwise: u64,
    ) -> Result<u64, BadShape> {
        let Some(text) = self.take(key) else { return Ok(otherwise) };
        let read = number(text).and_then(|(Exact { numerator, denominator }, rest)| {
            let parts = u128::from(numerator) * u128::from(per_unit);
            let whole = parts.is_multiple_of(denominator.into()).then(|| parts / u128::from(denominator))?;
            u64::try_from(whole).ok().filter(|_| rest.trim().eq_ignore_ascii_case(unit))
        });
        read.filter(|parts| (range.0..=range.1).contains(parts)).ok_or_else(|| self.wrong(key, text, need))
    }

    fn percent(
        &mut self,
        key: &'static str,
        range: (u64, u64),
        need: &str,
        otherwise: u64,
    ) -> Result<u64, BadShape> {
        self.number(key, ("%", 10_000), range, need, otherwise)
    }

    fn end(self) -> Result<(), BadShape> {
        let Some((key, _)) = self.pairs.first() else { return Ok(()) };
        let twice = self.known.contains(key);
        Err(BadShape(match (twice, &self.known[..]) {
            (true, _) => format!("the shape `{}` has `{key}` twice: give it once", self.name),
            (false, []) => format!("the shape `{}` takes no `{key}`: write `{}` alone", self.name, self.name),
            (false, known) => {
                format!("the shape `{}` has no `{key}`: it has {}", self.name, known.join(", "))
            }
        }))
    }
}

impl FromStr for Shape {
    type Err = BadShape;

    fn from_str(text: &str) -> Result<Shape, BadShape> {
        let text = text.trim();
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let pairs = rest.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                BadShape(format!("`{pair}` in the shape `{text}` is not KEY=VALUE: write {WRITTEN}"))
            })?;
            Ok((key.trim(), value.trim()))
        });
        let mut given =
            Given { name: name.trim(), pairs: pairs.collect::<Result<_, _>>()?, known: Vec::new() };
        let curve = curve(&mut given)?;
        let mut random = curve == Curve::Constant;
        if !random {
            random = match given.take("arrivals") {
                None | Some("even") => false,
                Some("poisson") => true,
                Some(other) => return Err(given.wrong("arrivals", other, "write even or poisson")),
            };
        }
        given.end()?;
        Ok(Shape { curve, random, text: text.to_owned() })
    }
}

/// What a name and its parameters mean.
fn curve(given: &mut Given<'_>) -> Result<Curve, BadShape> {
    const WHOLE: u64 = 1_000_000;
    Ok(match given.name {
        "poisson" => Curve::Constant,
        "sine" => Curve::Sine {
            period: given.time("period", "10s", None)?,
            amplitude: given.percent(
                "amplitude",
                (1, WHOLE),
                "give how far the rate goes up and down, above 0% and at most 100%",
                WHOLE / 2,
            )?,
        },
        "square" => {
            let period = given.time("period", "1s", None)?;
            let share = given.percent(
                "high",
                (1, WHOLE - 1),
                "give the share of the period for which the rate is high, above 0% and below 100%",
                WHOLE / 2,
            )?;
            let low = given.percent(
                "low",
                (0, WHOLE - 1),
                "give the low rate as a share of the high one, from 0% and below 100%",
                0,
            )?;
            let high = (u128::from(period) * u128::from(share) / u128::from(WHOLE)) as u64;
            Curve::Square { period, high: high.clamp(1, period - 1), low }
        }
        "flash" => Curve::Flash {
            after: given.time("after", "10s", Some(0))?,
            rise: given.time("rise", "2s", None)?,
            peak: given.number(
                "peak",
                ("x", 1000),
                (1001, 1_000_000),
                "give how many times the rate the peak is, above 1x and at most 1000x",
                10_000,
            )?,
            hold: given.time("hold", "5s", Some(0))?,
            fall: given.time("fall", "20s", None)?,
        },
        "onoff" => Curve::OnOff {
            on: given.time("on", "100ms", None)?,
            off: given.time("off", "900ms", None)?,
            alpha: given.number(
                "alpha",
                ("", 1000),
                (1050, 2000),
                "give the shape of the Pareto distribution, from 1.05 (the heaviest tail) to 2, with at most three decimals",
                1500,
            )?,
        },
        other => {
            return Err(BadShape(format!("`{other}` is not a shape of load: write {WRITTEN}")));
        }
    })
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Shape {
    /// The highest rate in percent of that which it varies; `None`: frames come by chance, and any number of them together.
    pub fn highest_percent(&self) -> Option<u32> {
        let percent = match self.curve {
            _ if self.random => return None,
            Curve::Constant | Curve::Square { .. } | Curve::OnOff { .. } => 100,
            Curve::Sine { amplitude, .. } => 100 + amplitude.div_ceil(10_000),
            Curve::Flash { peak, .. } => peak.div_ceil(10),
        };
        u32::try_from(percent).ok()
    }

    /// The schedule of this shape, where an even load has `frames` in `per_ns`; `seed` is the key of what is left to chance.
    pub fn schedule(&self, frames: u64, per_ns: u64, seed: u64) -> Schedule {
        // Not the numbers that frames' values are made of.
        let key = hash(seed, 0x0073_6861_7065);
        let warp = match self.curve {
            Curve::Constant => None,
            Curve::Sine { period, amplitude } => Some(Warp::sine(period, amplitude)),
            Curve::Square { period, high, low } => Some(Warp::square(period, high, low)),
            Curve::Flash { after, rise, hold, fall, peak } => {
                Some(Warp::flash(after, rise, hold, fall, peak))
            }
            Curve::OnOff { on, off, alpha } => Some(Warp::on_off(on, off, alpha, hash(key, 1))),
        };
        let random = self.random.then_some(key);
        let keyed = (self.random || matches!(self.curve, Curve::OnOff { .. })).then_some(key);
        Schedule::Shaped(Arc::new(Shaped { frames, per_ns, random, warp, keyed, dealt: Vec::new() }))
    }
}

/// A load of some shape, or a worker's part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaped {
    /// An even load of this shape has so many frames ...
    pub frames: u64,
    /// ... in so many nanoseconds.
    pub per_ns: u64,
    /// Frames of a Poisson process instead, by this key.
    random: Option<u64>,
    warp: Option<Warp>,
    keyed: Option<u64>,
    /// The frames that are left after each time the whole was dealt out.
    dealt: Vec<Dealt>,
}

/// Of every `period` frames those at these places.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dealt {
    period: u64,
    places: Arc<[u32]>,
}

impl Shaped {
    /// The key that chance has.
    pub(crate) fn key(&self) -> Option<u64> {
        self.keyed
    }

    /// What would divide by zero.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let empty = self.dealt.iter().any(|dealt| dealt.places.is_empty() || dealt.period == 0);
        match self.frames == 0 || self.per_ns == 0 || empty {
            true => Err("a rate must be more than zero and finite"),
            false => Ok(()),
        }
    }

    /// Of every `period` frames of this those at these places.
    pub(crate) fn part(&self, period: u64, places: Arc<[u32]>) -> Shaped {
        let mut part = self.clone();
        part.dealt.push(Dealt { period, places });
        part
    }

    /// The frames per second at the highest, of Poisson the mean there.
    pub fn highest(&self) -> f64 {
        self.even_rate() * self.warp.as_ref().map_or(1.0, Warp::highest)
    }

    /// The mean over a long time; `None`: it varies once only.
    pub fn mean(&self) -> Option<f64> {
        let mean = self.warp.as_ref().map_or(Some(1.0), Warp::mean);
        mean.map(|mean| self.even_rate() * mean)
    }

    fn even_rate(&self) -> f64 {
        let part = |dealt: &Dealt| dealt.places.len() as f64 / dealt.period.max(1) as f64;
        let own: f64 = self.dealt.iter().map(part).product();
        self.frames as f64 * 1e9 / self.per_ns.max(1) as f64 * own
    }

    /// The number in the whole of its frame `n`.
    fn in_whole(&self, n: u64) -> u64 {
        self.dealt.iter().rev().fold(n, |n, Dealt { period, places }| {
            let own = places.len() as u64;
            (n / own).saturating_mul(*period).saturating_add(u64::from(places[(n % own) as usize]))
        })
    }

    /// How many of the whole's first `n` frames it has.
    fn among(&self, n: u64) -> u64 {
        self.dealt.iter().fold(n, |n, Dealt { period, places }| {
            let within = places.partition_point(|&place| u64::from(place) < n % period);
            (n / period).saturating_mul(places.len() as u64).saturating_add(within as u64)
        })
    }

    /// How many of its frames are due within `ns`.
    pub(crate) fn due_by(&self, ns: u64) -> u64 {
        let even = match &self.warp {
            None => Some(ns),
            Some(warp) => warp.passed(ns).checked_sub(1),
        };
        let Some(even) = even else { return 0 };
        let whole = match self.random {
            Some(seed) => Process::new(seed, self.frames, self.per_ns).by(even),
            None => Schedule::Frames { frames: self.frames, per_ns: self.per_ns }
                .frames_due_by(even)
                .unwrap_or(u64::MAX),
        };
        self.among(whole)
    }

    pub(crate) fn walker(&self) -> Walker {
        let process = self.random.map(|seed| Box::new(Process::new(seed, self.frames, self.per_ns)));
        Walker { process, line: 0 }
    }
}

impl Program {
    /// The same with the times of shapes stated one by one, for who can add up but not find times: those of all frames of a run of
    /// `count` frames or of `ns`. `None`: these are more than `most`.
    #[must_use]
    pub fn with_stated_times(&self, count: Option<u64>, ns: Option<u64>, most: u64) -> Option<Program> {
        let mut program = self.clone();
        let mut left = most;
        for lane in &mut program.lanes {
            let Schedule::Shaped(shaped) = &lane.schedule else { continue };
            let within = ns.map(|ns| ns.checked_sub(lane.start_ns + 1).map_or(0, |ns| shaped.due_by(ns)));
            let frames = [count, within, lane.frames].into_iter().flatten().min()?.max(1);
            left = left.checked_sub(frames)?;
            let mut walker = shaped.walker();
            let offsets: Arc<[u64]> = (0..frames).map(|n| walker.at(shaped, n)).collect();
            let period_ns = walker.at(shaped, frames) - offsets.first().copied().unwrap_or(0);
            lane.schedule = Schedule::Times { offsets, period_ns, speed: Speed::ONE };
        }
        Some(program)
    }
}

/// Finds times; those next to each other fast.
#[derive(Debug, Clone)]
pub(crate) struct Walker {
    process: Option<Box<Process>>,
    /// Of the load's curve, the line that the last frame was on.
    line: usize,
}

impl Walker {
    /// When frame `n` is due.
    pub(crate) fn at(&mut self, of: &Shaped, n: u64) -> u64 {
        let n = of.in_whole(n);
        let even = match &mut self.process {
            Some(process) => process.at(n),
            None => {
                let at = u128::from(n) * u128::from(of.per_ns) / u128::from(of.frames.max(1));
                u64::try_from(at).unwrap_or(u64::MAX)
            }
        };
        of.warp.as_ref().map_or(even, |warp| warp.time_near(even, &mut self.line))
    }
}

/// The times of a shape's frames one after the other, for who owns the schedule that a cursor would borrow.
#[derive(Debug, Clone)]
pub struct Onward {
    shaped: Arc<Shaped>,
    walker: Walker,
    n: u64,
}

impl Onward {
    /// From the first frame on.
    pub fn new(shaped: Arc<Shaped>) -> Onward {
        let walker = shaped.walker();
        Onward { shaped, walker, n: 0 }
    }
}

impl Iterator for Onward {
    type Item = u64;

    /// When the next frame is due; there is always one more.
    fn next(&mut self) -> Option<u64> {
        let due = self.walker.at(&self.shaped, self.n);
        self.n += 1;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Lane, Stream};
    use proptest::prelude::*;

    const ALL: [&str; 8] = [
        "poisson",
        "sine:period=10ms,amplitude=100%",
        "sine:period=1s,arrivals=poisson",
        "square:period=7ms,high=20%",
        "square:period=1s,high=90%,low=12.5%,arrivals=poisson",
        "flash:after=2ms,rise=1ms,peak=10x,hold=3ms,fall=5ms",
        "onoff:on=100us,off=900us,alpha=1.2",
        "onoff:on=10ms,off=30ms,arrivals=poisson",
    ];

    fn schedule(which: usize, frames: u64, per_ns: u64, seed: u64) -> Schedule {
        ALL[which % ALL.len()].parse::<Shape>().expect("a shape").schedule(frames, per_ns, seed)
    }

    fn due(schedule: &Schedule, n: u64) -> u64 {
        let mut cursor = schedule.cursor();
        cursor.seek(n, |_| 0);
        cursor.due()
    }

    proptest! {
        #[test]
        fn times_and_counts_are_inverse(
            which in 0usize..8, frames in 1u64..10_000_000, per_ns in 1u64..10_000_000_000, n in 0u64..1 << 40, seed: u64,
        ) {
            let schedule = schedule(which, frames, per_ns, seed);
            let at = due(&schedule, n);
            prop_assume!(at < u64::MAX >> 8);
            let by = |ns| schedule.frames_due_by(ns).unwrap();
            prop_assert!(by(at) > n, "{} of {} at {}", by(at), n, at);
            prop_assert!(at == 0 || by(at - 1) <= n, "{} of {} before {}", by(at - 1), n, at);
            prop_assert!(due(&schedule, n + 1) >= at);
        }

        #[test]
        fn walking_leads_where_seeking_does(which in 0usize..8, rate in 1u64..10_000_000, from in 0u64..1 << 30, seed: u64) {
            let schedule = schedule(which, rate, 1_000_000_000, seed);
            let mut cursor = schedule.cursor();
            cursor.seek(from, |_| 0);
            let Schedule::Shaped(shaped) = &schedule else { panic!("a shape") };
            let onward: Vec<u64> = Onward::new(shaped.clone()).take(20).collect();
            prop_assert_eq!(onward, (0..20).map(|n| due(&schedule, n)).collect::<Vec<_>>());
            for n in from..from + 200 {
                prop_assert_eq!(cursor.due(), due(&schedule, n));
                cursor.advance(60);
            }
        }

        #[test]
        fn workers_have_the_frames_of_the_whole_at_their_very_times(
            which in 0usize..8, of in 1u32..6, again in 1u32..4, orders in 0usize..3, seed: u64,
        ) {
            let stream = |name: &str| Stream::of(name, &[0u8; 60]);
            let order: Vec<u32> = [vec![0], vec![0, 1], vec![0, 1, 1, 0, 2]][orders].clone();
            let streams = ["a", "b", "c"].map(stream).into_iter().take(orders + 1).collect();
            let lane = Lane { frames: Some(3000), ..Lane::new(order, schedule(which, 1_000_000, 1_000_000_000, seed)) };
            let whole = Program { streams, lanes: vec![lane] };
            let all: Vec<u64> = crate::Walk::new(&whole).unwrap().map(|turn| turn.due).collect();
            let mut parts = Vec::new();
            for worker in 0..of {
                let part = whole.share(worker, of);
                for k in 0..again {
                    let own = part.share(k, again);
                    let times: Vec<u64> = crate::Walk::new(&own).unwrap().map(|turn| turn.due).collect();
                    // What is due by a moment is told of a part as it is walked.
                    if let Some(&middle) = times.get(times.len() / 2) {
                        let walked = times.iter().filter(|&&at| at <= middle).count() as u64;
                        prop_assert_eq!(own.frames_due_by(middle), Some(walked));
                    }
                    parts.extend(times);
                }
            }
            parts.sort_unstable();
            prop_assert_eq!(parts, all);
        }

        #[test]
        fn stated_times_are_those_of_the_shape(which in 0usize..8, rate in 1u64..10_000_000, ns in 1u64..3_000_000, start_ns in 0u64..1000, seed: u64) {
            let lane = Lane { start_ns, ..Lane::new([0], schedule(which, rate, 1_000_000_000, seed)) };
            let shaped = Program { streams: vec![Stream::of("a", &[0u8; 60])], lanes: vec![lane] };
            let due = |program: &Program| -> Vec<u64> {
                crate::Walk::new(program).unwrap().map(|turn| turn.due).take_while(|due| *due < ns).collect()
            };
            let stated = shaped.with_stated_times(None, Some(ns), 1 << 22).unwrap();
            let is_stated = matches!(stated.lanes[0].schedule, Schedule::Times { .. });
            prop_assert!(is_stated);
            prop_assert_eq!(due(&stated), due(&shaped));
            prop_assert!(shaped.with_stated_times(Some(1001), None, 1000).is_none());
            prop_assert!(shaped.with_stated_times(None, None, 1000).is_none());
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a-z]{0,8}:?([a-z]{0,8}=?[0-9.xsm%]{0,24},?){0,4}") {
            if let Ok(shape) = text.parse::<Shape>() {
                shape.schedule(1, 1, 0);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_remedy() {
        for (text, said) in [
            ("", "`` is not a shape of load: write poisson, sine:"),
            ("sin:period=1s", "`sin` is not a shape of load: write poisson"),
            ("sine", "the shape `sine` needs `period`, such as period=10s"),
            ("sine:period", "`period` in the shape `sine:period` is not KEY=VALUE"),
            ("sine:period=10", "`period=10` of the shape `sine`: `10` is not a duration: write 10s"),
            ("sine:period=1ns", "give a time from 10us to 1d"),
            ("sine:period=1s,amplitude=101%", "above 0% and at most 100%"),
            ("sine:period=1s,amplitude=0.5", "above 0% and at most 100%"),
            ("sine:period=1s,period=2s", "has `period` twice: give it once"),
            ("sine:period=1s,high=20%", "the shape `sine` has no `high`: it has period, amplitude, arrivals"),
            ("sine:period=1s,arrivals=odd", "write even or poisson"),
            ("square:period=1s,high=100%", "above 0% and below 100%"),
            ("flash:rise=1s,fall=1s,peak=1x", "above 1x and at most 1000x"),
            ("onoff:on=1s,off=1s,alpha=1", "from 1.05 (the heaviest tail) to 2"),
            ("poisson:rate=5", "the shape `poisson` takes no `rate`: write `poisson` alone"),
        ] {
            let bad = text.parse::<Shape>().expect_err(text).to_string();
            assert!(bad.contains(said), "{text}: {bad}");
        }
    }

    #[test]
    fn only_what_is_left_to_chance_has_a_key() {
        let keyed = ALL.map(|text| text.parse::<Shape>().unwrap().schedule(1, 1, 9).key().is_some());
        assert_eq!(keyed, [true, false, true, false, true, false, true, true]);
    }
}
