//! Series of like with like: results of the same job at the same place, in the order of their times, and what changed.

use crate::change::{FEWEST, Group, groups};
use crate::entry::Declared;
use crate::failed::{NotDone, newest};
use crate::read::{Folder, Kept, LeftOut};
use crate::time::show;
use report::compare::{Better, Unit};
use report::get::Wanted;
use serde::Serialize;
use std::collections::BTreeMap;

/// Results written in another order than they began in: files were copied then, or a clock went back by more than this.
const OUT_OF_ORDER_NS: i128 = 60_000_000_000;

/// Figures that are named at once.
const MOST_NAMED: usize = 5;

/// What is asked of a folder.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// These figures alone; all if there are none.
    pub figures: Vec<Wanted>,
    /// Changes of a smaller share count as none.
    pub least: f64,
    /// Results of before this count for nothing, in seconds since 1970.
    pub since: Option<u64>,
    /// Results of different hosts are put beside each other.
    pub any_host: bool,
}

/// A folder of results over time, `netdyno.trend/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Trend {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// The folder.
    pub folder: String,
    /// `worse` if any figure is, else `better` if any is, else `same`; `not_judged` where there was nothing to judge.
    pub outcome: Outcome,
    /// Results in all series.
    pub results: usize,
    /// Results of before the time that was asked for.
    pub before_since: usize,
    /// Jobs whose newest run was not done: a check fails for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<NotDone>,
    /// Files that are in no series.
    pub left_out: Vec<LeftOut>,
    /// JSON files that are no results.
    pub other_files: usize,
    /// What to know before trusting this.
    pub notes: Vec<String>,
    /// Those that became worse first.
    pub series: Vec<Series>,
}

/// Results that are alike.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What was asked for, and at which interfaces.
    pub name: String,
    /// Where; left out where hosts are put beside each other.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// In the order in which they began.
    pub results: Vec<Past>,
    /// Where conditions changed.
    pub marks: Vec<Mark>,
    /// Those that became worse first.
    pub figures: Vec<Line>,
}

/// A result of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Past {
    /// Its file, within the folder.
    pub path: String,
    /// When its run began, RFC 3339, UTC.
    pub started: String,
    /// It fell short of what was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub short: bool,
    /// The same in seconds since 1970.
    #[serde(skip)]
    pub at: u64,
    /// Under what conditions it came about: `kernel`, `MTU (send)`, ...
    #[serde(skip)]
    pub conditions: Vec<(String, String)>,
}

/// Conditions that changed between two results that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Index of the first result under the new ones.
    pub at: usize,
    /// What changed.
    pub changed: Vec<Changed>,
}

/// A condition that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// `kernel`, `MTU (send)`, ...
    pub name: String,
    /// Left out where it was not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Left out where it is not said any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A figure over time.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// As `--get` takes it.
    pub key: String,
    /// With what it is of.
    pub name: String,
    /// What its values are in.
    pub unit: Unit,
    /// Which direction is for the better.
    pub better: Better,
    /// What became of it with the group of the newest result.
    pub outcome: Outcome,
    /// Its values, one for each result of the series; null where a result does not have it.
    pub values: Vec<Option<f64>>,
    /// Stretches with one mean; indices are of results.
    pub groups: Vec<Group>,
    /// Indices of results that stand apart alone, and belong to no group.
    pub exceptions: Vec<usize>,
    /// How the newest group differs from the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<Shift>,
}

/// The change with which the newest group began.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// Index of the last result before it.
    pub after: usize,
    /// Index of its first result.
    pub since: usize,
    /// Mean of the group before.
    pub before: f64,
    /// Mean of the newest group.
    pub now: f64,
    /// Of the mean before; left out where that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What else changed between the two groups.
    pub changed: Vec<Changed>,
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The newest result lies in a worse group than the one before.
    Worse,
    /// In a better one.
    Better,
    /// There is no other group, or it differs by less than was asked for.
    Same,
    /// The newest result does not have the figure, or there are too few.
    NotJudged,
}

impl Trend {
    /// 1 when something is worse, or the newest run of a job was not done; else 0.
    pub fn exit_status(&self) -> u8 {
        u8::from(self.outcome == Outcome::Worse || !self.not_done.is_empty())
    }

    /// All lines, with their series.
    pub fn lines(&self) -> impl Iterator<Item = (&Series, &Line)> {
        self.series.iter().flat_map(|series| series.figures.iter().map(move |line| (series, line)))
    }

    /// Lines that became worse, with their series.
    pub fn worse(&self) -> impl Iterator<Item = (&Series, &Line)> {
        self.lines().filter(|(_, line)| line.outcome == Outcome::Worse)
    }
}

/// Puts results of a folder into series and looks for changes in each.
pub fn judge(folder: &Folder, wish: &Wish) -> Trend {
    let mut of: BTreeMap<(&str, &str), Vec<&Kept>> = BTreeMap::new();
    let (mut results, mut before_since) = (0, 0);
    for kept in &folder.results {
        let Ok(entry) = &kept.what else { continue };
        if entry.started < wish.since {
            before_since += 1;
            continue;
        }
        results += 1;
        let host = if wish.any_host { "" } else { entry.host.as_str() };
        of.entry((entry.series.as_str(), host)).or_default().push(kept);
    }
    let mut notes = folder.notes.clone();
    let mut series: Vec<Series> =
        of.into_iter().map(|((_, host), kept)| one(host, kept, wish, &mut notes)).collect();
    series.retain(|series| wish.figures.is_empty() || !series.figures.is_empty());
    let outcome = |series: &Series| series.figures.iter().map(|line| line.outcome).min();
    // The worse first, then those with the most results.
    series.sort_by_key(|series| {
        (
            outcome(series) != Some(Outcome::Worse),
            std::cmp::Reverse(series.results.len()),
            series.name.clone(),
        )
    });
    Trend {
        schema: "netdyno.trend/1",
        folder: folder.path.display().to_string(),
        outcome: series.iter().filter_map(outcome).min().unwrap_or(Outcome::NotJudged),
        results,
        before_since,
        not_done: newest(folder, wish),
        left_out: folder.left_out.clone(),
        other_files: folder.foreign,
        notes,
        series,
    }
}

fn one(host: &str, mut kept: Vec<&Kept>, wish: &Wish, notes: &mut Vec<String>) -> Series {
    let entries = |kept: &&Kept| kept.what.as_ref().ok().and_then(|entry| entry.started);
    // Of runs that began within a second, the file that was written first.
    kept.sort_by_key(|kept| (entries(kept), kept.seen.modified_ns));
    let name = kept.first().and_then(|kept| kept.what.as_ref().ok()).map(|entry| entry.label.clone());
    let name = name.unwrap_or_default();
    let turned = out_of_order(&kept);
    if turned > 0 {
        notes.push(format!(
            "{name}: {turned} of {} results were written before others that began earlier: files were copied, or a clock went \
             back; results stand in the order in which they say they began",
            kept.len()
        ));
    }
    let conditions: Vec<Vec<(String, String)>> = kept
        .iter()
        .filter_map(|kept| kept.what.as_ref().ok())
        .map(|entry| {
            let host = wish.any_host.then(|| ("host".to_owned(), entry.host.clone()));
            host.into_iter().chain(entry.conditions.iter().cloned()).collect()
        })
        .collect();
    let marks = conditions.windows(2).enumerate().filter_map(|(before, pair)| {
        let [one, other] = pair else { return None };
        let changed = differing(one, other);
        (!changed.is_empty()).then_some(Mark { at: before + 1, changed })
    });
    let marks = marks.collect();
    let mut figures = lines(&kept, &conditions, wish);
    figures.sort_by_key(|line| line.outcome != Outcome::Worse);
    if let (Some(newest), Some(said)) = (kept.last(), vanished(&figures)) {
        notes.push(format!("{name}: the newest result ({}) {said}", shown(newest)));
    }
    let results = kept.iter().zip(conditions).filter_map(|(kept, conditions)| {
        let entry = kept.what.as_ref().ok()?;
        let at = entry.started.unwrap_or(0);
        Some(Past { path: shown(kept), started: show(at), short: entry.short, at, conditions })
    });
    Series { name, host: host.to_owned(), results: results.collect(), marks, figures }
}

/// Figures that the newest result lacks, of those that earlier ones have: a run that failed in part is no better for it.
fn vanished(figures: &[Line]) -> Option<String> {
    let is_gone = |line: &&Line| {
        matches!(line.values.last(), Some(None)) && line.values.iter().flatten().count() >= FEWEST
    };
    let gone: Vec<&str> = figures.iter().filter(is_gone).map(|line| line.name.as_str()).collect();
    let more = match gone.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = gone.get(..MOST_NAMED).unwrap_or(&gone).join(", ");
    (!gone.is_empty()).then(|| {
        let count = report::units::counted(gone.len() as u64, "figure");
        format!("does not have {count} that earlier ones have, and nothing is judged of them: {named}{more}")
    })
}

/// A result's folder; of a file by another name that.
pub(crate) fn shown(kept: &Kept) -> String {
    let is_usual = kept.name.file_name().is_some_and(|name| name == crate::walk::RESULT);
    let folder = kept.name.parent().filter(|folder| is_usual && !folder.as_os_str().is_empty());
    folder.unwrap_or(&kept.name).display().to_string()
}

/// Results whose files were written clearly before those of results that began earlier.
fn out_of_order(kept: &[&Kept]) -> usize {
    let mut latest = i128::MIN;
    let mut turned = 0;
    for kept in kept {
        turned += usize::from(kept.seen.modified_ns < latest.saturating_sub(OUT_OF_ORDER_NS));
        latest = latest.max(kept.seen.modified_ns);
    }
    turned
}

/// All figures that any of the results has, in the order in which they come.
fn lines(kept: &[&Kept], conditions: &[Vec<(String, String)>], wish: &Wish) -> Vec<Line> {
    let mut declared: Vec<(&Declared, Vec<Option<f64>>)> = Vec::new();
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (number, kept) in kept.iter().enumerate() {
        let figures = kept.what.as_ref().map(|entry| entry.figures.as_slice()).unwrap_or_default();
        for figure in figures {
            let of = (figure.of.key.as_str(), figure.of.name.as_str());
            if !wish.figures.is_empty() && !wish.figures.iter().any(|wanted| wanted.means(of.0, of.1)) {
                continue;
            }
            let at = *known.entry(of).or_insert_with(|| {
                declared.push((&figure.of, vec![None; conditions.len()]));
                declared.len() - 1
            });
            if let Some(value) = declared.get_mut(at).and_then(|(_, values)| values.get_mut(number)) {
                *value = Some(figure.value);
            }
        }
    }
    declared.into_iter().map(|(of, values)| line(of, values, conditions, wish.least)).collect()
}

fn line(of: &Declared, values: Vec<Option<f64>>, conditions: &[Vec<(String, String)>], least: f64) -> Line {
    let (at, there): (Vec<usize>, Vec<f64>) =
        values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).unzip();
    let found = groups(&there);
    let of_result = |index: usize| at.get(index).copied().unwrap_or(index);
    let groups: Vec<Group> = found
        .groups
        .iter()
        .map(|group| Group { first: of_result(group.first), last: of_result(group.last), ..*group })
        .collect();
    let exceptions: Vec<usize> = found.exceptions.into_iter().map(of_result).collect();
    let newest_has_it = values.last().is_some_and(Option::is_some);
    let shift = shift(&groups, &values, conditions).filter(|_| newest_has_it);
    let outcome = match &shift {
        _ if !newest_has_it || there.len() < FEWEST => Outcome::NotJudged,
        None => Outcome::Same,
        // The newest is an exception as there have been: it belongs to no group.
        Some(_) if exceptions.last() == values.len().checked_sub(1).as_ref() => Outcome::Same,
        Some(shift) if (shift.now - shift.before).abs() < least * shift.before.abs() => Outcome::Same,
        Some(shift) if (shift.now > shift.before) == (of.better == Better::Higher) => Outcome::Better,
        Some(_) => Outcome::Worse,
    };
    Line {
        key: of.key.clone(),
        name: of.name.clone(),
        unit: of.unit,
        better: of.better,
        outcome,
        values,
        groups,
        exceptions,
        shift,
    }
}

/// The newest group beside the one before it.
fn shift(groups: &[Group], values: &[Option<f64>], conditions: &[Vec<(String, String)>]) -> Option<Shift> {
    let [.., before, now] = groups else { return None };
    // A value that is there last before the group began may be an exception.
    let after = values.iter().take(now.first).rposition(Option::is_some)?;
    let differ = conditions.get(before.last).zip(conditions.get(now.first));
    let difference = now.mean - before.mean;
    Some(Shift {
        after,
        since: now.first,
        before: before.mean,
        now: now.mean,
        ratio: (before.mean != 0.0).then(|| difference / before.mean.abs()),
        changed: differ.map(|(one, other)| differing(one, other)).unwrap_or_default(),
    })
}

/// What differs between the conditions of two results.
fn differing(one: &[(String, String)], other: &[(String, String)]) -> Vec<Changed> {
    let of = |side: &[(String, String)], name: &str| {
        side.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let mut names: Vec<&String> = one.iter().map(|(name, _)| name).collect();
    names.extend(other.iter().map(|(name, _)| name).filter(|name| of(one, name).is_none()));
    let changed = names.into_iter().filter_map(|name| {
        let (before, after) = (of(one, name), of(other, name));
        (before != after).then(|| Changed { name: name.clone(), before, after })
    });
    changed.collect()
}

impl Changed {
    /// `kernel 6.1.0 -> 6.12.0`; of lists what came and what went.
    pub fn words(&self) -> String {
        let of = |side: &Option<String>| side.clone().unwrap_or_else(|| "not said".to_owned());
        if let (Some(before), Some(after), true) =
            (&self.before, &self.after, self.name.starts_with("offloads"))
        {
            let (one, other): (Vec<&str>, Vec<&str>) =
                (before.split(' ').collect(), after.split(' ').collect());
            let came = other.iter().filter(|name| !one.contains(name)).map(|name| format!("+{name}"));
            let went = one.iter().filter(|name| !other.contains(name)).map(|name| format!("-{name}"));
            let both: Vec<String> = came.chain(went).collect();
            return format!("{} {}", self.name, both.join(" "));
        }
        format!("{} {} -> {}", self.name, of(&self.before), of(&self.after))
    }
}

impl Series {
    /// The result of this index, as a sentence names it: by its path and time, if that is not its name already.
    pub fn named(&self, at: usize) -> String {
        let Some(past) = self.results.get(at) else { return String::new() };
        let own = past.path.rsplit('/').next().unwrap_or_default();
        let by_time = own.starts_with(&past.started.replace(':', "-"));
        if by_time { past.path.clone() } else { format!("{} ({})", past.path, past.started) }
    }
}

impl Shift {
    /// Where it is, and what else changed there.
    pub(crate) fn place(&self, series: &Series) -> (String, String) {
        let changed = match self.changed.as_slice() {
            [] => "nothing else that results tell changed there".to_owned(),
            changed => {
                let words: Vec<String> = changed.iter().map(Changed::words).collect();
                format!("changed there: {}", words.join("; "))
            }
        };
        (format!("after {}, since {}", series.named(self.after), series.named(self.since)), changed)
    }
}

impl Line {
    /// Its newest value.
    pub fn newest(&self) -> Option<f64> {
        self.values.iter().rev().flatten().next().copied()
    }

    /// From what to what, in words: "539 ns in 40 results before, 702 ns in 19 results since (+30.2 %)".
    pub fn moved(&self) -> Option<String> {
        let shift = self.shift.as_ref()?;
        let [.., before, now] = self.groups.as_slice() else { return None };
        let of = |mean: f64, group: &Group| {
            format!("{} in {}", self.unit.show(mean), report::units::counted(group.values as u64, "result"))
        };
        let ratio = shift.ratio.map(|ratio| {
            let sign = if ratio > 0.0 { "+" } else { "" };
            format!(" ({sign}{})", report::units::percent(ratio))
        });
        let (was, is) = (of(shift.before, before), of(shift.now, now));
        Some(format!("{was} before, {is} since{}", ratio.unwrap_or_default()))
    }

    /// What became of it, in words: from what to what, since when, and what else changed.
    pub fn told(&self, series: &Series) -> Option<String> {
        let (place, changed) = self.shift.as_ref()?.place(series);
        Some(format!("{} {place}: {}; {changed}", self.name, self.moved()?))
    }
}
