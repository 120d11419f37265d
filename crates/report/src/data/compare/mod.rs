//! Two results, or two groups of repetitions, beside each other: what differs in their conditions, how each figure
//! differs, and whether that is more than it varies by itself.
//!
//! ```text
//!   reports of A, of B --> may they be compared at all?      --> conditions that differ
//!                      '-> figures that both have (figures) --> noise::judge --> Comparison --> text, JSON
//! ```
//!
//! docs/compare.md says how each figure is judged, and what that supposes.

mod conditions;
mod figures;
pub(crate) mod load;
pub(crate) mod noise;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::figure::Within;
pub use crate::data::figure::{Better, Unit};
use crate::data::model::{Report, Verdict};
use crate::data::sections::received;
use crate::data::units;
pub use conditions::of as conditions;
use figures::Figure;
pub use figures::{Judgeable, judgeable};
pub use histogram::student::interval_width;
pub use load::OfferedLoad;
pub use noise::Method;
use noise::Sample;

/// The value of [`Comparison::schema`].
pub const SCHEMA: &str = "netdyno.compare/1";

/// A difference that chance would make less often than this counts.
const SIGNIFICANT: f64 = 0.05;
/// Batches that the intervals of a run are joined into, and the fewest to judge by.
const BATCHES: [usize; 2] = [20, 10];
const FEWEST_BATCHES: usize = 8;
/// Batches whose neighbours go together more than this are not independent.
const CORRELATED: f64 = 0.35;
/// By this share of itself a figure's difference may miss the interval of the values that were tested: the first and the last
/// interval of a run are in the whole only.
const APART: f64 = 0.1;
/// By what a figure was not judged whose parts say something else than it does.
pub(crate) const DISAGREE: &str = "the whole and its parts disagree";

/// A result with the name it goes by (its path).
#[derive(Clone, Debug)]
pub struct Named<'a> {
    /// What it is called in the comparison: its path.
    pub name: String,
    /// The result.
    pub report: &'a Report,
}

/// Why results cannot be compared.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Incomparable {
    /// Their commands are not the same.
    #[error(
        "{first} is of `netdyno {one}`, {second} of `netdyno {other}`: their figures do not mean the same; compare results of one command"
    )]
    Commands {
        /// One result.
        first: String,
        /// Its command.
        one: String,
        /// Another result.
        second: String,
        /// Its command.
        other: String,
    },
    /// They searched for other things.
    #[error("{first} searched for {one}, {second} for {other}: compare searches for the same")]
    Searches {
        /// One result.
        first: String,
        /// What it searched for.
        one: String,
        /// Another result.
        second: String,
        /// What that searched for.
        other: String,
    },
    /// One measured there and back, the other one way.
    #[error(
        "{first} measured {one}, {second} {other}: times and losses of the one are not those of the other"
    )]
    Ways {
        /// One result.
        first: String,
        /// What it measured.
        one: &'static str,
        /// Another result.
        second: String,
        /// What that measured.
        other: &'static str,
    },
    /// A result is of a run that was not done.
    #[error("{name} was not done ({why}): it has no figures to compare")]
    NotDone {
        /// Which one.
        name: String,
        /// Why it was not.
        why: String,
    },
    /// No figure is in all of them.
    #[error("the results have no figure in common{hint}")]
    NothingInCommon {
        /// Why, perhaps.
        hint: String,
    },
}

/// The comparison, `netdyno.compare/1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name and version of this layout: `netdyno.compare/1`.
    pub schema: String,
    /// Of the results.
    pub command: String,
    /// The results of side A.
    pub a: Vec<Side>,
    /// The results of side B.
    pub b: Vec<Side>,
    /// `worse` if any figure is, else `better` if any is, else `same`; `not_judged` if none could be judged, or if what could
    /// be judged is the same and the offered loads differ.
    pub outcome: Change,
    /// What was sent, where it is known of all results. Where a load differs, nothing that depends on it is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered_loads: Vec<OfferedLoad>,
    /// Conditions that are not the same on both sides, or not within a side.
    pub conditions: Vec<Condition>,
    /// Figures that all results have.
    pub figures: Vec<Compared>,
    /// Figures that only some of the results have.
    pub not_in_all: Vec<String>,
    /// What to know before trusting this.
    pub notes: Vec<String>,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Where it was read.
    pub path: String,
    /// When its run began, RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// `done` or `short` of what was asked.
    pub outcome: String,
}

/// A condition, with all values that it has on each side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// What it is: `kernel`, `rate asked for`, ...
    pub name: String,
    /// Its values on side A, each once.
    pub a: Vec<String>,
    /// Its values on side B, each once.
    pub b: Vec<String>,
}

/// A figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The figure, with what it is of: `64 bytes: throughput with loss 0 %`.
    pub name: String,
    /// What `a` and `b` are in.
    pub unit: Unit,
    /// Which direction is for the better.
    pub better: Better,
    /// Value on side A: of several results the mean, or the median where they were tested by their ranks.
    pub a: f64,
    /// Value on side B: of several results the mean, or the median where they were tested by their ranks.
    pub b: f64,
    /// `b` less `a`.
    pub difference: f64,
    /// Of `a`; left out where that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_ratio: Option<f64>,
    /// What it comes to.
    pub change: Change,
    /// What it was judged by: `repetitions`, `intervals`, `trials`, `bounds`; or why it was not.
    pub by: String,
    /// The test, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Values on each side that were tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<(u32, u32)>,
    /// The difference with 95 % confidence, in the figure's unit. `difference` lies within it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_95: Option<(f64, f64)>,
    /// Probability of such a difference if there were none, of the test alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// After Holm, for all figures that were tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_adjusted: Option<f64>,
    /// Cliff's delta, from -1 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cliffs_delta: Option<f64>,
    /// Hedges' g: the difference in standard deviations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedges_g: Option<f64>,
}

/// What became of a figure from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// No more than it varies by itself, or less than what was asked to be ignored.
    Same,
    /// It went to the better, by more than that.
    Better,
    /// It went to the worse, by more than that.
    Worse,
    /// Nothing is known of how it varies.
    NotJudged,
}

impl Comparison {
    /// 1 when something is worse, else 0.
    pub fn exit_status(&self) -> u8 {
        u8::from(self.outcome == Change::Worse)
    }
}

/// Compares; differences of a smaller ratio than `least` count as none.
///
/// # Errors
/// That the results are of two kinds, or of nothing that both measured.
pub fn compare(a: &[Named<'_>], b: &[Named<'_>], least: f64) -> Result<Comparison, Incomparable> {
    let all: Vec<&Named<'_>> = a.iter().chain(b).collect();
    check(&all)?;
    let (of_a, of_b): (Vec<_>, Vec<_>) = (of_all(a), of_all(b));
    let mut names: Vec<&Figure> = Vec::new();
    for figure in of_a.iter().chain(&of_b).flatten() {
        if !names.iter().any(|known| known.name == figure.name) {
            names.push(figure);
        }
    }
    let named = |side: &[Vec<Figure>], name: &str| -> Option<Vec<Figure>> {
        side.iter().map(|figures| figures.iter().find(|f| f.name == name).cloned()).collect()
    };
    let (mut compared, mut not_in_all, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut waves: Vec<(String, f64)> = Vec::new();
    for first in &names {
        match (named(&of_a, &first.name), named(&of_b, &first.name)) {
            (Some(a), Some(b)) => compared.push(one(first, &a, &b, &mut waves)),
            _ => not_in_all.push(first.name.clone()),
        }
    }
    if compared.is_empty() {
        let hint = match names.is_empty() {
            true => ": none of them measured anything".to_owned(),
            false => format!(" ({} only in some)", not_in_all.join(", ")),
        };
        return Err(Incomparable::NothingInCommon { hint });
    }
    let offered_loads = load::of(a, b, least);
    for c in &mut compared {
        if let Some(why) = load::why_not(&c.name, &offered_loads) {
            c.withhold(why);
        }
    }
    decide(&mut compared, least);
    // Bits say nothing of their own where the frames are as long on both sides.
    let rate = |name: &str| compared.iter().find(|c| c.name == name).and_then(|c| c.difference_ratio);
    let redundant: Vec<String> = ["sent", "received"]
        .into_iter()
        .filter(|name| {
            rate(name).zip(rate(&format!("{name}, layer 2"))).is_some_and(|(f, b)| (f - b).abs() < 1e-3)
        })
        .map(|name| format!("{name}, layer 2"))
        .collect();
    compared.retain(|c| !redundant.contains(&c.name));
    let single = a.len() == 1 && b.len() == 1;
    if single {
        notes.push("One result a side: it is known how unsteady each was in itself, not how much it would differ when done again. Give several (`.against`) to know.".to_owned());
    }
    waves.retain(|(name, _)| !redundant.contains(name));
    // What is not judged needs no words on how well it was.
    waves.retain(|(name, _)| compared.iter().any(|c| c.name == *name && c.method.is_some()));
    if !waves.is_empty() {
        let most = waves.iter().map(|(_, wave)| *wave).fold(0.0, f64::max);
        let names: Vec<_> = waves.into_iter().map(|(name, _)| name).collect();
        notes.push(format!(
            "{}: parts of a run that follow each other are alike (correlation up to {most:.2}), so that its unsteadiness is underestimated; longer runs, or several, tell more.",
            names.join("; ")
        ));
    }
    notes.extend(of_two_bases(&all, &compared));
    let changes = |wanted| compared.iter().any(|c| c.change == wanted);
    let outcome = match () {
        () if changes(Change::Worse) => Change::Worse,
        () if changes(Change::Better) => Change::Better,
        () if changes(Change::Same) && !offered_loads.iter().any(|load| load.differ) => Change::Same,
        () => Change::NotJudged,
    };
    for named in &all {
        if let Verdict::Short { reasons } = &named.report.result.verdict {
            let more = match reasons.len().saturating_sub(1) {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            let why = reasons.first().map_or("", |reason| reason);
            let note = format!("{} fell short of what was asked: {why}{more}", named.name);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    Ok(Comparison {
        schema: SCHEMA.to_owned(),
        command: all.first().map(|n| n.report.command.clone()).unwrap_or_default(),
        a: a.iter().map(side).collect(),
        b: b.iter().map(side).collect(),
        outcome,
        offered_loads,
        conditions: differing(a, b),
        figures: compared,
        not_in_all,
        notes,
    })
}

/// Says of which results received rates are over another time than of the others: those of 0.1 are over arrivals always, and so
/// are those of runs whose arrivals clearly lasted longer.
fn of_two_bases(all: &[&Named<'_>], compared: &[Compared]) -> Option<String> {
    let (arrivals, sending): (Vec<&Named<'_>>, Vec<_>) = all.iter().partition(|named| {
        let (tx, rx) = (named.report.result.tx.as_ref(), named.report.result.rx.as_ref());
        tx.zip(rx).is_some_and(|(tx, rx)| rx.is_over_arrivals(&tx.totals))
    });
    let is_compared = compared.iter().any(|c| c.name == received::RECEIVED.name);
    if !is_compared || arrivals.is_empty() || sending.is_empty() {
        return None;
    }
    let names = arrivals.iter().map(|named| named.name.as_str()).collect::<Vec<_>>().join(", ");
    Some(format!(
        "{names}: received rates are over the time from the first arrival to the last; those of the others are over the time that was sent in."
    ))
}

/// What a result has of the figure of this name.
pub(crate) fn value(report: &Report, name: &str) -> Option<f64> {
    figures::of(report).into_iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

fn side(named: &Named<'_>) -> Side {
    let outcome = match named.report.result.verdict {
        Verdict::Done => "done",
        Verdict::Short { .. } => "short",
        Verdict::Failed { .. } => "failed",
    };
    Side {
        path: named.name.clone(),
        started: named.report.environment.started.clone(),
        outcome: outcome.to_owned(),
    }
}

fn of_all(side: &[Named<'_>]) -> Vec<Vec<Figure>> {
    side.iter().map(|named| figures::of(named.report)).collect()
}

/// Refuses what does not mean the same.
fn check(all: &[&Named<'_>]) -> Result<(), Incomparable> {
    let Some((first, rest)) = all.split_first() else { return Ok(()) };
    for named in all {
        if let Verdict::Failed { reasons } = &named.report.result.verdict {
            return Err(Incomparable::NotDone {
                name: named.name.clone(),
                why: units::printable(&reasons.join("; ")),
            });
        }
    }
    let way = |named: &Named<'_>| if named.report.result.round_trip { "there and back" } else { "one way" };
    for named in rest {
        let (one, other) = (&first.report.command, &named.report.command);
        if one != other {
            return Err(Incomparable::Commands {
                first: first.name.clone(),
                one: units::printable(one),
                second: named.name.clone(),
                other: units::printable(other),
            });
        }
        let searched = |named: &Named<'_>| {
            let search = named.report.result.search.as_ref();
            search.map_or_else(|| "nothing".to_owned(), |s| format!("{} by {}", s.kind, s.axis.in_words()))
        };
        if searched(first) != searched(named) {
            return Err(Incomparable::Searches {
                first: first.name.clone(),
                one: searched(first),
                second: named.name.clone(),
                other: searched(named),
            });
        }
        if way(first) != way(named) {
            return Err(Incomparable::Ways {
                first: first.name.clone(),
                one: way(first),
                second: named.name.clone(),
                other: way(named),
            });
        }
    }
    Ok(())
}

fn differing(a: &[Named<'_>], b: &[Named<'_>]) -> Vec<Condition> {
    let of = |side: &[Named<'_>]| -> Vec<Vec<(String, String)>> {
        side.iter().map(|n| conditions::of(n.report)).collect()
    };
    let (of_a, of_b) = (of(a), of(b));
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in of_a.iter().chain(&of_b).flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let values = |side: &[Vec<(String, String)>], name: &str| {
        let mut values: Vec<String> = Vec::new();
        for result in side {
            let value = result.iter().find(|(n, _)| n == name).map_or("-", |(_, v)| v).to_owned();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let conditions = names.into_iter().map(|name| Condition {
        name: name.clone(),
        a: values(&of_a, name),
        b: values(&of_b, name),
    });
    conditions.filter(|c| c.a != c.b || c.a.len() > 1).collect()
}

/// Compares one figure; what it comes to is decided with all of them ([`decide`]).
fn one(first: &Figure, a: &[Figure], b: &[Figure], waves: &mut Vec<(String, f64)>) -> Compared {
    let values = |side: &[Figure]| Sample::Values(side.iter().map(|f| f.value).collect());
    let (values_a, values_b) = (values(a), values(b));
    // What ranks are compared of is not moved by one value that lies far out, as the mean is.
    let typical = |values: &Sample| match noise::are_ranked(&values_a, &values_b) {
        true => values.median(),
        false => values.mean(),
    };
    let (typical_a, typical_b) = (typical(&values_a), typical(&values_b));
    let difference = typical_b - typical_a;
    let mut compared = Compared {
        name: first.name.clone(),
        unit: first.unit,
        better: first.better,
        a: typical_a,
        b: typical_b,
        difference,
        difference_ratio: (typical_a != 0.0).then(|| difference / typical_a.abs()),
        change: Change::NotJudged,
        by: String::new(),
        method: None,
        values: None,
        interval_95: None,
        p: None,
        p_adjusted: None,
        cliffs_delta: None,
        hedges_g: None,
    };
    if a.len() + b.len() > 2 {
        compared.test("repetitions", (&values_a, &values_b));
        return compared;
    }
    let (Some(a), Some(b)) = (a.first(), b.first()) else { return compared };
    match (&a.within, &b.within) {
        (Within::Intervals(x), Within::Intervals(y)) => {
            let ((x, wave_x), (y, wave_y)) = (steady(x), steady(y));
            if x.len().min(y.len()) < FEWEST_BATCHES {
                "too short to tell".clone_into(&mut compared.by);
                return compared;
            }
            let (x, y) = (Sample::Values(x), Sample::Values(y));
            compared.test("intervals", (&x, &y));
            let wave = wave_x.max(wave_y);
            if wave > CORRELATED && compared.p.is_some() {
                waves.push((first.name.clone(), wave));
            }
        }
        (Within::Trials(x), Within::Trials(y)) => compared.test("trials", (x, y)),
        (Within::Bounds(low_a, high_a), Within::Bounds(low_b, high_b)) => {
            let above = |low: f64, high: Option<f64>| high.is_some_and(|high| low >= high);
            compared.by = "bounds".to_owned();
            compared.method = Some(Method::Bounds);
            compared.change = Change::Same;
            if above(*low_b, *high_a) || above(*low_a, *high_b) {
                compared.change = compared.direction(difference);
            }
            let least = high_a.map_or(f64::NEG_INFINITY, |high| low_b - high);
            let most = high_b.map_or(f64::INFINITY, |high| high - low_a);
            compared.interval_95 = (least.is_finite() && most.is_finite()).then_some((least, most));
        }
        _ => "one value a side".clone_into(&mut compared.by),
    }
    compared
}

/// Batches of intervals, as many as are independent of each other, and how much neighbours still go together.
fn steady(values: &[f64]) -> (Vec<f64>, f64) {
    let mut last = (Vec::new(), 0.0);
    for wanted in BATCHES {
        last = noise::batches(values, wanted);
        if last.1 <= CORRELATED {
            break;
        }
    }
    last
}

impl Compared {
    /// Takes back what was found of it.
    fn withhold(&mut self, why: &str) {
        why.clone_into(&mut self.by);
        self.change = Change::NotJudged;
        (self.method, self.values, self.interval_95, self.p) = (None, None, None, None);
        (self.cliffs_delta, self.hedges_g) = (None, None);
    }

    fn direction(&self, difference: f64) -> Change {
        match (difference > 0.0) == (self.better == Better::Higher) {
            true => Change::Better,
            false => Change::Worse,
        }
    }

    /// Tests whether the values of the sides differ. They must be of what is compared: values whose difference is another than
    /// the figure's (a run's p99 that one bad moment made, when most parts of the run had none) say nothing of the figure.
    fn test(&mut self, by: &str, (a, b): (&Sample, &Sample)) {
        let Some(judged) = noise::judge(a, b) else {
            "one value a side".clone_into(&mut self.by);
            return;
        };
        let (low, high) = judged.interval;
        let missed = (low - self.difference).max(self.difference - high).max(0.0);
        // Rounding of the figure and of the mean of its values is no difference.
        let rounding = self.a.abs().max(self.b.abs()) * 1e-12;
        let far = |(side, values): (f64, &Sample)| values.misses(side) > self.difference.abs() + rounding;
        if missed > APART * self.difference.abs() + rounding
            || judged.p < SIGNIFICANT && [(self.a, a), (self.b, b)].into_iter().any(far)
        {
            self.by = match by {
                "intervals" => DISAGREE.to_owned(),
                by => format!("the figure and its {by} disagree"),
            };
            return;
        }
        self.by = by.to_owned();
        self.method = Some(judged.method);
        self.values = Some((a.count(), b.count()));
        let interval = (low.min(self.difference), high.max(self.difference));
        self.interval_95 = Some(interval).filter(|(low, high)| low.is_finite() && high.is_finite());
        self.p = Some(judged.p);
        self.cliffs_delta = judged.cliffs_delta;
        self.hedges_g = judged.hedges_g;
    }
}

/// What each figure comes to, seeing that many were tested at once.
fn decide(compared: &mut [Compared], least: f64) {
    // Bits follow frames: they are no test of their own. Nor is what never differs (no loss on either side).
    let tested: Vec<usize> = (0..compared.len())
        .filter(|&i| compared[i].p.is_some_and(|p| p < 1.0) && !compared[i].name.ends_with("layer 2"))
        .collect();
    let adjusted = noise::holm(&tested.iter().filter_map(|&i| compared[i].p).collect::<Vec<_>>());
    for (&i, p) in tested.iter().zip(adjusted) {
        compared[i].p_adjusted = Some(p);
    }
    for c in compared.iter_mut() {
        if let Some(p) = c.p {
            let p = *c.p_adjusted.get_or_insert(p);
            c.change = match p < SIGNIFICANT && c.difference != 0.0 {
                false => Change::Same,
                true => c.direction(c.difference),
            };
        }
        let small = c.difference_ratio.is_some_and(|ratio| ratio.abs() < least);
        if small && matches!(c.change, Change::Better | Change::Worse) {
            c.change = Change::Same;
        }
    }
}
