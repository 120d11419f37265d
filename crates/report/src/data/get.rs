//! Figures of a result as bare numbers, for scripts: a figure by its key, and of several values those of a name.

use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;

use crate::data::figure;
use crate::data::model::Report;
use crate::data::sections;
use crate::data::units::printable;

/// Which figure is asked for: `latency_p99`; of one that has several values `throughput:64`, those whose name begins so; of a
/// stream `lost_frames:2`, by its number or by how its name begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    key: String,
    name: Option<String>,
}

impl Wanted {
    /// Whether this figure is meant.
    pub fn means(&self, key: &str, name: &str) -> bool {
        self.key == key && self.name.as_ref().is_none_or(|words| begins(name, words))
    }

    /// As it was asked for.
    pub fn text(&self) -> String {
        self.name.as_ref().map_or_else(|| self.key.clone(), |name| format!("{}:{name}", self.key))
    }
}

/// A key that no figure has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no figure `{}`; {}", printable(.0), near(.0, keys()))]
pub struct Unknown(String);

/// A figure that no result of a kind of job has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Never {
    kind: &'static str,
    sought: Option<&'static str>,
    key: String,
}

impl std::error::Error for Never {}

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no result of {} has a figure `{}`: {}", self.called(), self.key, self.had_by())
    }
}

/// A figure of a frame size that is none of those to be tested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no `{key}` will have a name that begins with `{}`: the frame sizes are {}", printable(.name), .there.join(", "))]
pub struct OfNoSize {
    key: String,
    name: String,
    there: Vec<String>,
}

/// A figure that a result does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Missing {
    /// None of that key.
    #[error("the result has no figure `{key}`{}", of(.there))]
    Figure {
        /// Which was asked for.
        key: String,
        /// Those that it has, in their order.
        there: Vec<String>,
    },
    /// None of that name.
    #[error("no `{key}` of the result has a name that begins with `{}`; they are: {}", printable(.name), .there.join("; "))]
    Name {
        /// Which was asked for.
        key: String,
        /// By which name.
        name: String,
        /// The names that there are.
        there: Vec<String>,
    },
}

fn of(there: &[String]) -> String {
    if there.is_empty() { ", nor any other".to_owned() } else { format!("; it has {}", there.join(", ")) }
}

/// The keys of all figures.
pub fn keys() -> impl Iterator<Item = &'static str> {
    sections::declared().map(|figure| figure.key)
}

/// Whether a result of this kind of job can have the figure; of a search, one for what is `sought`.
fn may_have(kind: &str, sought: Option<&str>, key: &str) -> bool {
    let goal =
        sought.zip(sections::search::sought(key)).is_none_or(|(sought, goals)| goals.contains(&sought));
    sections::kinds_of(key).contains(&kind) && goal
}

impl Never {
    /// The kind of job in words.
    fn called(&self) -> String {
        match self.sought {
            Some(sought) => format!("a search for {sought}"),
            None => format!("a job of the kind `{}`", self.kind),
        }
    }

    /// Which kinds of jobs have the figure, and what this one has instead, as a sentence's end.
    fn had_by(&self) -> String {
        let own = keys().filter(|key| may_have(self.kind, self.sought, key));
        let instead = alike(&self.key, own);
        let near =
            if instead.is_empty() { String::new() } else { format!("; near it are {}", instead.join(", ")) };
        let goals = sections::search::sought(&self.key);
        let kinds = sections::kinds_of(&self.key).iter().flat_map(|kind| match goals {
            Some(goals) if *kind == "search" => goals.iter().map(|goal| format!("search {goal}")).collect(),
            _ => vec![(*kind).to_owned()],
        });
        format!("it is one of {}{near}", kinds.collect::<Vec<_>>().join(", "))
    }
}

/// Whether a result of this kind of job (`netdyno_spec::Job::kind`), and of a search for what is `sought`, can have these figures at
/// all.
///
/// # Errors
/// The first that it cannot have. One that it may have can still be missing in the result: see [`lines`].
pub fn check(kind: &'static str, sought: Option<&'static str>, wanted: &[Wanted]) -> Result<(), Never> {
    match wanted.iter().find(|wanted| !may_have(kind, sought, &wanted.key)) {
        Some(wanted) => Err(Never { kind, sought, key: wanted.key.clone() }),
        None => Ok(()),
    }
}

/// Whether a search or a trial with these frame sizes will have figures of these names, of those that have a value for each size.
///
/// # Errors
/// The first of a size that is not among them.
pub fn check_sizes(sizes: &[String], wanted: &[Wanted]) -> Result<(), OfNoSize> {
    for Wanted { key, name } in wanted {
        let (Some(name), Some(there)) = (name, sections::search::begins(key, sizes)) else { continue };
        let is = |size: &String| begins(&format!("{size}:"), name) || name.starts_with(size.as_str());
        // A trial's names have the unit behind any size.
        let is_mix = |size: &String| name.starts_with(size.as_str());
        if !there.iter().any(is) && !sizes.iter().any(|size| !is_number(size) && is_mix(size)) {
            return Err(OfNoSize { key: key.clone(), name: name.clone(), there });
        }
    }
    Ok(())
}

fn is_number(size: &str) -> bool {
    size.bytes().all(|byte| byte.is_ascii_digit())
}

/// The figures of a result that [`check`] would have refused for its kind of job: none, if it knows what results have.
pub fn unforeseen(kind: &str, sought: Option<&str>, report: &Report) -> Vec<&'static str> {
    let had = figure::of(report).into_iter().map(|measured| measured.figure.key);
    had.filter(|key| !may_have(kind, sought, key)).collect()
}

impl std::str::FromStr for Wanted {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let (key, name) =
            text.split_once(':').map_or((text, None), |(key, name)| (key, Some(name.to_owned())));
        match keys().any(|known| known == key) {
            true => Ok(Wanted { key: key.to_owned(), name }),
            false => Err(Unknown(key.to_owned())),
        }
    }
}

/// The values of these figures, a line each: in the order they are asked for, and of one that has several values in the
/// order of figures.csv.
///
/// # Errors
/// The result does not have one of them.
pub fn lines(report: &Report, wanted: &[Wanted]) -> Result<String, Missing> {
    let all = figure::of(report);
    let streams = sections::streams::figures(report);
    let trials = sections::search::of_one_trial(report);
    let mut out = String::new();
    for Wanted { key, name } in wanted {
        let of_key: Vec<_> =
            all.iter().chain(&trials).filter(|measured| measured.figure.key == key).collect();
        let labels = || of_key.iter().map(|measured| printable(&measured.label()));
        let of_streams: Vec<_> = streams.iter().filter(|(_, measured)| measured.figure.key == key).collect();
        if of_key.is_empty() && (name.is_none() || of_streams.is_empty()) {
            let mut there: Vec<String> = all.iter().map(|measured| measured.figure.key.to_owned()).collect();
            // Of several frame sizes each has the same.
            let mut seen = BTreeSet::new();
            there.retain(|key| seen.insert(key.clone()));
            return Err(Missing::Figure { key: key.clone(), there });
        }
        let before = out.len();
        for (measured, label) in of_key.iter().zip(labels()) {
            if name.as_ref().is_none_or(|name| begins(&label, name)) {
                out += &format!("{}\n", measured.value);
            }
        }
        if let Some(name) = name.as_ref().filter(|_| out.len() == before) {
            for (_, measured) in of_streams.iter().filter(|(stream, _)| is_called(stream, name)) {
                out += &format!("{}\n", measured.value);
            }
        }
        if let Some(name) = name.as_ref().filter(|_| out.len() == before) {
            const MOST: usize = 20;
            let of_streams =
                of_streams.iter().map(|(stream, _)| printable(&sections::streams::label(stream)));
            let there = labels().chain(of_streams).take(MOST).collect();
            let (key, name) = (key.clone(), name.clone());
            return Err(Missing::Name { key, name, there });
        }
    }
    Ok(out)
}

/// Whether a stream is meant: by its number, or by its name's beginning.
fn is_called(stream: &crate::data::model::Stream, name: &str) -> bool {
    match name.parse::<u32>() {
        Ok(number) => stream.stream == number,
        Err(_) => stream.name.as_deref().is_some_and(|own| own == name || begins(own, name)),
    }
}

/// Whether a name begins with these words: `64` is not how `640 bytes: throughput` begins.
fn begins(name: &str, words: &str) -> bool {
    let inside = |rest: &str| {
        let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        word(rest.chars().next()) && word(words.chars().last())
    };
    name.strip_prefix(words).is_some_and(|rest| !inside(rest))
}

/// The keys that are most like this one, as a sentence's end; all of them where none is.
fn near<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.collect();
    let meant: &[&str] = match key.to_ascii_lowercase().as_str() {
        "rate" | "pps" | "speed" => &["rx_frames_per_second", "tx_frames_per_second", "throughput"],
        "bps" | "mbps" | "bandwidth" | "bitrate" | "goodput" => {
            &["rx_bits_per_second", "tx_bits_per_second", "endpoint_throughput"]
        }
        "cps" => &["sessions_opened_per_second"],
        "tps" => &["endpoint_transactions_per_second"],
        _ => &[],
    };
    let meant: Vec<&str> = meant.iter().copied().filter(|key| known.contains(key)).collect();
    let like = if meant.is_empty() { alike(key, known.iter().copied()) } else { meant };
    if like.is_empty() {
        format!("there are {}", known.join(", "))
    } else {
        format!("near it are {}", like.join(", "))
    }
}

/// The words that are most like this one, five at most.
pub fn alike<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    const MOST: usize = 5;
    // Below this share two have less in common than most have by chance.
    const LEAST: f64 = 0.3;
    let mut known: Vec<(f64, &str)> = known.map(|known| (likeness(key, known), known)).collect();
    known.retain(|(like, _)| *like >= LEAST);
    known.sort_by(|a, b| b.0.total_cmp(&a.0));
    known.into_iter().map(|(_, key)| key).take(MOST).collect()
}

/// How much of two words is the same, from 0 to 1: pairs of neighbouring letters (Dice). Unlike a count of edits it finds words
/// in another order, and of which only a part was typed.
fn likeness(a: &str, b: &str) -> f64 {
    let pairs = |text: &str| {
        let letters: Vec<char> =
            text.to_lowercase().chars().map(|c| if c == '-' { '_' } else { c }).collect();
        letters.windows(2).map(<[char]>::to_vec).collect::<Vec<_>>()
    };
    let (a, mut b) = (pairs(a), pairs(b));
    let all = a.len() + b.len();
    let mut same = 0;
    for pair in a {
        if let Some(at) = b.iter().position(|other| *other == pair) {
            b.swap_remove(at);
            same += 2;
        }
    }
    if all == 0 { 0.0 } else { f64::from(same) / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_a_size_that_is_not_tested_is_told_before() {
        let check = |sizes: &[&str], wanted: &str| {
            let sizes: Vec<String> = sizes.iter().map(|size| (*size).to_owned()).collect();
            check_sizes(&sizes, &[wanted.parse().expect("a figure")]).map_err(|error| error.to_string())
        };
        for wanted in
            ["throughput", "throughput:64", "throughput:64 bytes: throughput with no loss", "lost_frames:9"]
        {
            assert_eq!(check(&["64", "imix"], wanted), Ok(()), "{wanted}");
        }
        assert_eq!(check(&["64", "imix"], "throughput:imix"), Ok(()));
        for wanted in
            ["throughput:1518", "throughput:6", "trial_loss_ratio:640", "longest_burst:random(64..128)"]
        {
            let told = check(&["64", "imix"], wanted).expect_err(wanted);
            assert!(told.ends_with("the frame sizes are 64 bytes, imix"), "{told}");
        }
    }

    #[test]
    fn a_key_that_is_none_is_answered_with_those_near_it() {
        let told = |key: &str| key.parse::<Wanted>().expect_err("unknown").to_string();
        assert!(
            told("p99_latency").contains("`p99_latency`; near it are latency_p99, "),
            "{}",
            told("p99_latency")
        );
        assert!(told("latency-p9").contains("latency_p99"), "{}", told("latency-p9"));
        assert!(told("p99").contains(" latency_p99"), "{}", told("p99"));
        assert!(told("thruput:64").contains("throughput"), "{}", told("thruput:64"));
        for odd in ["", "qqq", "\u{1b}[2J", ":"] {
            let told = told(odd);
            assert!(told.contains("there are tx_frames_per_second, ") && !told.contains('\u{1b}'), "{told}");
        }
        for key in keys() {
            assert_eq!(key.parse(), Ok(Wanted { key: key.to_owned(), name: None }));
        }
    }

    #[test]
    fn a_figure_of_another_search_is_refused_before_this_one_begins() {
        let wanted = |key: &str| [key.parse::<Wanted>().expect("a figure")];
        let told = check("search", Some("throughput"), &wanted("trial_loss_ratio"))
            .expect_err("another's")
            .to_string();
        assert!(told.starts_with("no result of a search for throughput has a figure `trial_loss_ratio`: it is one of search loss, trial"), "{told}");
        assert!(check("search", Some("loss"), &wanted("trial_loss_ratio")).is_ok());
        assert!(check("trial", None, &wanted("trial_loss_ratio")).is_ok());
        assert!(check("search", Some("burst"), &wanted("throughput")).is_ok());
        assert!(check("search", Some("loss"), &wanted("trial_latency_p99")).is_err());
        let told = check("send", None, &wanted("trial_loss_ratio")).expect_err("a search's").to_string();
        assert!(told.contains("a job of the kind `send`") && told.contains("search loss, trial"), "{told}");
    }

    #[test]
    fn figures_of_a_stream_are_asked_for_by_its_number_or_name() {
        let mut report = Report::new("send");
        let stream = |stream, name: &str, lost_frames| crate::data::model::Stream {
            stream,
            name: Some(name.to_owned()),
            tx_frames: Some(500),
            rx_frames: 500 - lost_frames,
            lost_frames,
            ..crate::data::model::Stream::default()
        };
        report.streams = vec![stream(1, "voice", 0), stream(2, "video", 500), stream(12, "video two", 5)];
        let get = |wanted: &str| lines(&report, &[wanted.parse().expect("a figure")]);
        assert_eq!(get("lost_frames:2").as_deref(), Ok("500\n"));
        assert_eq!(get("loss_ratio:12").as_deref(), Ok("0.01\n"));
        assert_eq!(get("rx_frames:voice").as_deref(), Ok("500\n"));
        assert_eq!(get("lost_frames:video").as_deref(), Ok("500\n5\n"), "several begin so");
        let told = get("lost_frames:3").expect_err("no such stream").to_string();
        assert!(told.contains("they are: 1 voice; 2 video; 12 video two"), "{told}");
        let told = get("lost_frames").expect_err("none of the whole run").to_string();
        assert!(told.contains("no figure `lost_frames`"), "{told}");
        report.result.loss = Some(crate::data::model::Loss::between(1500, 995));
        let get = |wanted: &str| lines(&report, &[wanted.parse().expect("a figure")]);
        assert_eq!(get("lost_frames").as_deref(), Ok("505\n"), "of all");
        assert_eq!(get("lost_frames:2").as_deref(), Ok("500\n"));
        assert!(get("lost_frames:nosuch").expect_err("none").to_string().contains("2 video"));
    }

    #[test]
    fn a_name_begins_with_whole_words() {
        for (name, words, is) in [
            ("64 bytes: throughput", "64", true),
            ("640 bytes: throughput", "64", false),
            ("64 bytes: throughput", "64 bytes: ", true),
            ("imix: throughput", "imix", true),
            ("64 bytes: throughput", "", true),
            ("64 bytes: throughput", "throughput", false),
        ] {
            assert_eq!(begins(name, words), is, "{name}: {words}");
        }
    }
}
