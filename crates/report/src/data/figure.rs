//! A figure is declared once, where it belongs (`sections`): its name, unit, meaning, and which direction is for the better.
//! From the declaration it reaches the summary, the page, figures.csv, `compare` and Prometheus.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::compare::noise::Sample;
use crate::data::model::{Interval, Report};
use crate::data::sections;
use crate::data::units;

/// What the values of a figure are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Frames per second.
    FramesPerSecond,
    /// Bits per second.
    BitsPerSecond,
    /// Flows per second.
    FlowsPerSecond,
    /// Other events per second: transactions, datagrams, flow records.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Ns,
    /// Seconds.
    Seconds,
    /// 0 to 1.
    Ratio,
    /// A number of things.
    Count,
}

impl Unit {
    /// A value for people.
    pub fn show(self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "" };
        let size = value.abs();
        let text = match self {
            Unit::FramesPerSecond => units::frame_rate(size),
            Unit::BitsPerSecond => units::bit_rate(size),
            Unit::FlowsPerSecond => units::flow_rate(size),
            Unit::PerSecond => units::event_rate(size),
            // In full: a frame of 1,518 bytes is not one of 1.52 kB.
            Unit::Bytes => format!("{} B", units::count(size.round() as u64)),
            Unit::Ns => units::time(size.round() as u64),
            Unit::Seconds => units::time((size * 1e9).round() as u64),
            Unit::Ratio => units::percent(size),
            Unit::Count => units::count(size.round() as u64),
        };
        format!("{sign}{text}")
    }

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unit::FramesPerSecond => "frames_per_second",
            Unit::BitsPerSecond => "bits_per_second",
            Unit::FlowsPerSecond => "flows_per_second",
            Unit::PerSecond => "per_second",
            Unit::Bytes => "bytes",
            Unit::Ns => "ns",
            Unit::Seconds => "seconds",
            Unit::Ratio => "ratio",
            Unit::Count => "count",
        }
    }
}

/// Which direction is for the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// How a metric of that name behaves while a job lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It never falls.
    Counter,
    /// It may.
    Gauge,
}

/// The declaration of a figure.
#[derive(Debug, PartialEq)]
pub struct Figure {
    /// For programs: in figures.csv, and in Prometheus behind `netdyno_`. It never changes its meaning.
    pub key: &'static str,
    /// For people, behind its value or as a heading: "duplicated".
    pub name: &'static str,
    /// For people, where it stands by itself: "frames duplicated".
    pub label: &'static str,
    /// What its values are in.
    pub unit: Unit,
    /// How its metric behaves.
    pub kind: Kind,
    /// `None`: neither is better, and `compare` passes it over.
    pub better: Option<Better>,
    /// One sentence.
    pub meaning: &'static str,
}

/// Declares figures: the doc comment is the meaning. A name that is no whole phrase has its label behind `as`. `Gauge` is a count
/// that may fall, `Size` a number of bytes that may.
macro_rules! figures {
    ($($(#[doc = $meaning:literal])+
    $figure:ident = $key:literal, $name:literal $(as $label:literal)?, $unit:ident $(, $better:ident)?;)+) => {
        $($(#[doc = $meaning])+
        pub static $figure: $crate::data::figure::Figure = $crate::data::figure::Figure {
            key: $key,
            name: $name,
            label: $crate::data::figure::figures!(@label $name $($label)?),
            unit: $crate::data::figure::figures!(@unit $unit),
            kind: $crate::data::figure::figures!(@kind $unit),
            better: $crate::data::figure::figures!(@better $($better)?),
            meaning: concat!($($meaning),+).trim_ascii_start(),
        };)+
        /// All of them; [`crate::data::sections::declared`] has those of all parts.
        pub(crate) static DECLARED: &[&$crate::data::figure::Figure] = &[$(&$figure),+];
    };
    (@label $name:literal) => { $name };
    (@label $name:literal $label:literal) => { $label };
    (@unit Gauge) => { $crate::data::figure::Unit::Count };
    (@unit Size) => { $crate::data::figure::Unit::Bytes };
    (@unit $unit:ident) => { $crate::data::figure::Unit::$unit };
    (@kind Count) => { $crate::data::figure::Kind::Counter };
    (@kind Bytes) => { $crate::data::figure::Kind::Counter };
    (@kind $unit:ident) => { $crate::data::figure::Kind::Gauge };
    (@better) => { None };
    (@better $better:ident) => { Some($crate::data::figure::Better::$better) };
}
pub(crate) use figures;

impl Figure {
    /// Its value in a result.
    pub(crate) fn is(&'static self, value: f64) -> Measured {
        let unit = self.unit;
        Measured { figure: self, name: None, unit, value, within: Within::Nothing, of: None, listed: false }
    }

    /// The same of a count, or of nanoseconds.
    pub(crate) fn count(&'static self, value: u64) -> Measured {
        self.is(value as f64)
    }
}

/// What a single result says of how a figure varies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Within {
    Nothing,
    /// Its value in each interval of the run.
    Intervals(Vec<f64>),
    /// In each trial of the search.
    Trials(Sample),
    /// It lies between these: what passed, and what did not.
    Bounds(f64, Option<f64>),
}

/// A figure of one result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub figure: &'static Figure,
    /// Where a result may have several of them: "64 bytes: lost at 10 kpps".
    pub name: Option<String>,
    /// That of the declaration, unless the result says what the value is in.
    pub unit: Unit,
    pub value: f64,
    pub within: Within,
    /// Compared as a share of so many.
    pub of: Option<u64>,
    /// It stands among the single facts of the summary and of the page.
    pub listed: bool,
}

impl Measured {
    pub fn with(self, within: Within) -> Measured {
        Measured { within, ..self }
    }

    pub fn of(self, all: u64) -> Measured {
        Measured { of: Some(all), ..self }
    }

    pub fn listed(self) -> Measured {
        Measured { listed: true, ..self }
    }

    pub fn named(self, name: String) -> Measured {
        Measured { name: Some(name), ..self }
    }

    /// In another unit than the one that is declared.
    pub fn in_unit(self, unit: Unit) -> Measured {
        Measured { unit, ..self }
    }

    /// "3 duplicated", if it is listed.
    pub fn fact(&self) -> Option<String> {
        self.listed.then(|| format!("{} {}", self.unit.show(self.value), self.figure.name))
    }

    /// For people.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.figure.name)
    }

    /// For people, where it stands by itself, as in figures.csv.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.figure.label.to_owned())
    }
}

/// A figure in each interval of a run but the first and the last, which hold its start and its end.
pub(crate) fn within(report: &Report, get: impl Fn(&Interval) -> Option<f64>) -> Within {
    let all = report.intervals.get(1..report.intervals.len().saturating_sub(1)).unwrap_or_default();
    let values: Vec<f64> =
        all.iter().filter(|i| i.duration_ns() > 0).filter_map(get).filter(|v| v.is_finite()).collect();
    if values.is_empty() { Within::Nothing } else { Within::Intervals(values) }
}

/// All figures that a result has.
pub(crate) fn of(report: &Report) -> Vec<Measured> {
    sections::figures(report).filter(|figure| figure.value.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sections::received::{DUPLICATED, LOST_FRAMES};
    use crate::data::sections::sent::RETRIED_EAGAIN;
    use std::collections::BTreeSet;

    #[test]
    fn a_key_is_of_one_figure() {
        let all: Vec<&str> = crate::data::sections::declared().map(|figure| figure.key).collect();
        assert!(all.len() > 80, "{}", all.len());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        assert!(all.iter().all(|key| !key.contains([',', ':', ' '])), "{all:?}");
    }

    #[test]
    fn a_figure_has_the_unit_that_its_key_says() {
        let said = [
            ("frames_per_second", Unit::FramesPerSecond),
            ("bits_per_second", Unit::BitsPerSecond),
            ("flows_per_second", Unit::FlowsPerSecond),
            ("_per_second", Unit::PerSecond),
            ("_bytes", Unit::Bytes),
            ("_frame_size", Unit::Bytes),
            ("_ratio", Unit::Ratio),
            ("_ns", Unit::Ns),
            ("_frames", Unit::Count),
        ];
        for figure in crate::data::sections::declared() {
            if let Some((_, unit)) = said.iter().find(|(end, _)| figure.key.ends_with(end)) {
                assert_eq!(figure.unit, *unit, "{}", figure.key);
            }
            // What is per second may fall.
            let rate = matches!(
                figure.unit,
                Unit::FramesPerSecond | Unit::BitsPerSecond | Unit::FlowsPerSecond | Unit::PerSecond
            );
            assert!(!rate || figure.kind == Kind::Gauge, "{}", figure.key);
            assert!(!rate || figure.key.ends_with("_per_second") || figure.key.ends_with("throughput"));
        }
        assert_eq!(Unit::Bytes.show(1518.0), "1,518 B");
        assert_eq!(
            (Unit::PerSecond.show(9512.4), Unit::PerSecond.name()),
            ("9,512/s".to_owned(), "per_second")
        );
    }

    #[test]
    fn a_label_is_a_whole_phrase_and_of_one_figure() {
        let mut seen = BTreeSet::new();
        for figure in crate::data::sections::declared() {
            let words: Vec<&str> = figure.label.split_whitespace().collect();
            let twice = words.windows(2).any(|pair| pair.first() == pair.last());
            assert!(!twice, "{}: {}", figure.key, figure.label);
            assert!(seen.insert(figure.label), "{}: {}", figure.key, figure.label);
            // What is counted is said: a participle alone is none.
            let participle =
                |word: &str| ["sent", "lost", "received", "found", "late", "failed"].contains(&word);
            assert!(words.first().is_some_and(|word| !participle(word)), "{}: {}", figure.key, figure.label);
            let of_frames = figure.key.ends_with("_frames");
            assert!(!of_frames || words.contains(&"frames"), "{}: {}", figure.key, figure.label);
        }
    }

    #[test]
    fn a_declaration_has_all_that_others_show() {
        assert_eq!((DUPLICATED.key, DUPLICATED.kind), ("duplicated_frames", Kind::Counter));
        assert_eq!((DUPLICATED.better, DUPLICATED.unit), (Some(Better::Lower), Unit::Count));
        assert_eq!(DUPLICATED.meaning, "Signed frames that had come before.");
        assert_eq!(DUPLICATED.label, "frames duplicated");
        assert_eq!((LOST_FRAMES.kind, LOST_FRAMES.better), (Kind::Gauge, None));
        assert_eq!(RETRIED_EAGAIN.label, "sends retried (EAGAIN)");
        assert_eq!(DUPLICATED.count(3).listed().fact().as_deref(), Some("3 duplicated"));
        assert_eq!(DUPLICATED.count(3).fact(), None);
    }
}
