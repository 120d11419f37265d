//! Settings as data: what `#[settings]` makes of the structs that hold jobs. There is nothing of any client here; each words a setting
//! in its own way.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;

/// What is known of a setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in its struct.
    pub name: &'static str,
    /// Its name on a command line; none of what stands there by its place.
    pub option: Option<&'static str>,
    /// Its letter there.
    pub short: Option<char>,
    /// Other names there.
    pub aliases: &'static [&'static str],
    /// What its value is called.
    pub value: &'static str,
    /// What it does. Other settings are named by their paths, as `` `.rate` ``.
    pub text: &'static str,
    /// The same in few words, where the first sentence does not serve.
    pub brief: Option<&'static str>,
    /// The heading that it stands under.
    pub heading: Option<&'static str>,
    /// Whether it is wanted seldom, whatever stands beside it under its heading.
    pub rare: bool,
    /// What it is if nothing is said.
    pub default: Option<&'static str>,
    /// What a list has if nothing is said of it: a client puts it in as if it had been said.
    pub initial: Option<&'static str>,
    /// The least and the most that it may be.
    pub bounds: (Option<u64>, Option<u64>),
    /// What it does not go with, by paths in the job or the ends of these.
    pub excludes: &'static [&'static str],
    /// What it means nothing without.
    pub needs: &'static [&'static str],
    /// Whether its value may look like an option.
    pub hyphens: bool,
    /// Whether several values may stand in one text, with commas between.
    pub comma: bool,
    /// Other ways to write some of its values.
    pub other_words: &'static [(&'static str, &'static str)],
    /// Whether there is no job without it.
    pub required: bool,
    /// How many values it takes.
    pub shape: Shape,
    /// Whether its value is the name of a file.
    pub is_path: bool,
    /// The words that it may be; none if it is not one of a few words.
    pub words: fn() -> Vec<&'static str>,
    /// What each of them means, where help says so.
    pub meanings: fn() -> Vec<&'static str>,
    /// Whether a text is one of its values.
    pub reads: fn(&OsStr) -> Result<(), String>,
    /// Other options on a command line. One without a name of its own there (`option`) has but these; without them, it stands by itself.
    pub shorthands: &'static [Shorthand],
    /// Whether a job has it only if whoever runs the job says so, too: an earlier result never brings it by itself.
    pub consent: bool,
}

/// An option that stands for one of a setting's values.
#[derive(Debug, Clone, Copy)]
pub struct Shorthand {
    /// Its name.
    pub option: &'static str,
    /// What its own value is called, if it takes one.
    pub value: Option<&'static str>,
    /// The setting's value that it stands for; `{}` is its own.
    pub means: &'static str,
    /// What it does.
    pub text: &'static str,
    /// The same in few words.
    pub brief: Option<&'static str>,
    /// The heading that it stands under.
    pub heading: Option<&'static str>,
    /// What it does not go with, beside what the setting does not.
    pub excludes: &'static [&'static str],
    /// The options that it means nothing without.
    pub needs: &'static [&'static str],
    /// The setting that the rest of its value is for, behind the first colon.
    pub rest: Option<&'static str>,
}

impl Setting {
    /// The value that a text stands for.
    pub fn meant<'t>(&self, text: &'t str) -> &'t str {
        self.other_words.iter().find(|(other, _)| *other == text).map_or(text, |(_, value)| value)
    }

    /// Whether a command line has it as an option, or by its place, beside its shorthands.
    pub fn is_typed(&self) -> bool {
        self.option.is_some() || self.shorthands.is_empty()
    }

    /// Whether a text is one of its values, within its bounds.
    ///
    /// # Errors
    /// Why it is none.
    pub fn takes(&self, text: &OsStr) -> Result<(), String> {
        // First, because a number without room in its type is read as none.
        let number = text.to_str().and_then(|text| text.parse::<u64>().ok());
        let (least, most) = self.bounds;
        let outside = |number: &u64| {
            least.is_some_and(|least| *number < least) || most.is_some_and(|most| *number > most)
        };
        match number.filter(outside) {
            None => (self.reads)(text),
            Some(number) => Err(match (least, most) {
                (least, Some(most)) => format!("{number} is not in {}..={most}", least.unwrap_or(0)),
                (least, None) => format!("{number} is not in {}..", least.unwrap_or(0)),
            }),
        }
    }
}

/// How many values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// None: it is said or not.
    Flag,
    /// One.
    One,
    /// As many as are given.
    Many,
    /// Two at once.
    Pair,
}

/// A member of a struct of settings.
#[derive(Debug, Clone, Copy)]
pub enum Member {
    /// A setting.
    One(&'static Setting),
    /// A struct of its own, by its name: paths of its settings begin with that.
    Within(&'static str, &'static [Member]),
}

/// A struct of settings.
pub trait Settings: Default {
    /// What it holds, in the order in which it is shown.
    const MEMBERS: &'static [Member];

    /// Puts a text into the setting at `path`; nothing if it has none there.
    fn put(&mut self, path: &str, text: &OsStr) -> Option<Result<(), String>>;
}

/// Calls `see` with each setting, and its path.
pub fn each(members: &'static [Member], see: &mut dyn FnMut(&str, &'static Setting)) {
    fn below(members: &'static [Member], path: &str, see: &mut dyn FnMut(&str, &'static Setting)) {
        for member in members {
            match member {
                Member::One(setting) => see(&format!("{path}{}", setting.name), setting),
                Member::Within(name, members) => below(members, &format!("{path}{name}."), see),
            }
        }
    }
    below(members, "", see);
}

/// The setting that `path`, or else the end of one, names.
pub fn named(members: &'static [Member], path: &str) -> Option<&'static Setting> {
    let (mut whole, mut end) = (None, None);
    each(members, &mut |at, setting| match at.strip_suffix(path) {
        Some("") => whole = whole.or(Some(setting)),
        Some(before) if before.ends_with('.') => end = end.or(Some(setting)),
        _ => {}
    });
    whole.or(end)
}

/// The setting that an option of this name says, and its path.
pub fn typed(members: &'static [Member], option: &str) -> Option<(String, &'static Setting)> {
    let mut found = None;
    each(members, &mut |path, setting| {
        if setting.option == Some(option) || setting.aliases.contains(&option) {
            found.get_or_insert((path.to_owned(), setting));
        }
    });
    found
}

/// What holds a struct of settings: itself, or perhaps one. (`#[settings]` makes the first.)
pub trait Holder {
    /// The struct's.
    const HELD: &'static [Member];
    /// The struct.
    type Held: Settings;

    /// The struct, to put something into.
    fn held(&mut self) -> &mut Self::Held;
}

impl<T: Settings> Holder for Option<T> {
    const HELD: &'static [Member] = <T as Settings>::MEMBERS;
    type Held = T;

    fn held(&mut self) -> &mut T {
        self.get_or_insert_default()
    }
}

/// What a setting may hold.
pub trait Value {
    /// How many values.
    const SHAPE: Shape;
    /// Whether they are names of files.
    const IS_PATH: bool = false;
    /// The words that there are.
    const WORDS: fn() -> Vec<&'static str> = Vec::new;
    /// What they mean.
    const MEANINGS: fn() -> Vec<&'static str> = Vec::new;

    /// Whether a text is one.
    ///
    /// # Errors
    /// Why it is none.
    fn reads(text: &OsStr) -> Result<(), String>;

    /// Puts it in.
    ///
    /// # Errors
    /// Why it is no value.
    fn put(&mut self, text: &OsStr) -> Result<(), String>;
}

/// One value, in whatever it is held.
pub trait OneValue: Sized {
    /// Whether it is the name of a file.
    const IS_PATH: bool = false;
    /// The words that there are.
    const WORDS: fn() -> Vec<&'static str> = Vec::new;
    /// What they mean.
    const MEANINGS: fn() -> Vec<&'static str> = Vec::new;

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn of(text: &OsStr) -> Result<Self, String>;
}

/// A member that holds one value, or perhaps one, or some.
macro_rules! held {
    ($([$($generic:tt)*] $kind:ty, $shape:ident, $one:ty, |$place:ident, $value:ident| $put:expr;)+) => {$(
        impl<$($generic)*> crate::setting::Value for $kind {
            const SHAPE: crate::setting::Shape = crate::setting::Shape::$shape;
            const IS_PATH: bool = <$one as crate::setting::OneValue>::IS_PATH;
            const WORDS: fn() -> Vec<&'static str> = <$one as crate::setting::OneValue>::WORDS;
            const MEANINGS: fn() -> Vec<&'static str> = <$one as crate::setting::OneValue>::MEANINGS;

            fn reads(text: &std::ffi::OsStr) -> Result<(), String> {
                <$one as crate::setting::OneValue>::of(text).map(|_| ())
            }

            fn put(&mut self, text: &std::ffi::OsStr) -> Result<(), String> {
                let ($place, $value) = (self, <$one as crate::setting::OneValue>::of(text)?);
                $put;
                Ok(())
            }
        }
    )+};
}

pub(crate) use held;

held! {
    [T: OneValue] Option<T>, One, T, |place, value| *place = Some(value);
    [T: OneValue] Vec<T>, Many, T, |place, value| place.push(value);
    // The first is put where there is none yet.
    [] [String; 2], Pair, String, |place, value| {
        let [first, second] = place;
        *(if first.is_empty() { first } else { second }) = value;
    };
    [] PathBuf, One, PathBuf, |place, value| *place = value;
    [T: crate::Quantity] crate::Written<T>, One, crate::Written<T>, |place, value| *place = value;
}

impl Value for bool {
    const SHAPE: Shape = Shape::Flag;

    fn reads(_: &OsStr) -> Result<(), String> {
        Ok(())
    }

    /// A shorthand may say that it is not so.
    fn put(&mut self, text: &OsStr) -> Result<(), String> {
        *self = text != "false";
        Ok(())
    }
}

impl OneValue for bool {
    fn of(given: &OsStr) -> Result<bool, String> {
        text(given)?.parse().map_err(|bad| format!("{bad}"))
    }
}

impl OneValue for PathBuf {
    const IS_PATH: bool = true;

    fn of(text: &OsStr) -> Result<PathBuf, String> {
        Ok(PathBuf::from(text))
    }
}

/// A text that can be read.
pub(crate) fn text(text: &OsStr) -> Result<&str, String> {
    text.to_str().ok_or_else(|| "it is not UTF-8".to_owned())
}

/// Whether a `T` can be read from a text, of a setting that is kept as text.
pub(crate) fn reads_as<T: std::str::FromStr<Err: std::fmt::Display>>(given: &OsStr) -> Result<(), String> {
    text(given)?.parse::<T>().map(|_| ()).map_err(|bad| bad.to_string())
}

macro_rules! parsed {
    ($($kind:ty)+) => {$(
        impl OneValue for $kind {
            fn of(given: &OsStr) -> Result<$kind, String> {
                text(given)?.parse().map_err(|bad| format!("{bad}"))
            }
        }

        held! { [] $kind, One, $kind, |place, value| *place = value; }
    )+};
}

parsed! { String u8 u16 u32 u64 f64 IpAddr }

impl<T: crate::Quantity> OneValue for crate::Written<T> {
    fn of(given: &OsStr) -> Result<crate::Written<T>, String> {
        text(given)?.parse()
    }
}

/// Whether a member is as if nothing was said of it.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;
    use std::collections::BTreeSet;

    fn all(members: &'static [Member]) -> Vec<(String, &'static Setting)> {
        let mut all = Vec::new();
        each(members, &mut |path, setting| all.push((path.to_owned(), setting)));
        all
    }

    #[test]
    fn settings_name_others_that_there_are() {
        for (kind, members) in Job::SETTINGS {
            for (path, setting) in all(members()) {
                let of_shorthands = setting
                    .shorthands
                    .iter()
                    .flat_map(|shorthand| shorthand.excludes.iter().chain(&shorthand.rest));
                let mut others = setting.excludes.iter().chain(setting.needs).chain(of_shorthands);
                assert!(others.all(|other| named(members(), other).is_some()), "{kind}: {path}");
            }
        }
    }

    #[test]
    fn shorthands_need_options_that_there_are() {
        let mut needed = 0;
        for (kind, members) in Job::SETTINGS {
            let all = all(members());
            let is_option = |name: &str| {
                all.iter().any(|(_, setting)| {
                    setting.option == Some(name)
                        || setting.shorthands.iter().any(|short| short.option == name)
                })
            };
            for shorthand in all.iter().flat_map(|(_, setting)| setting.shorthands) {
                for name in shorthand.needs {
                    assert!(is_option(name), "{kind}: {}: {name}", shorthand.option);
                    needed += 1;
                }
            }
        }
        assert!(needed > 1, "{needed}");
    }

    #[test]
    fn of_two_settings_of_a_kind_none_is_typed_alike() {
        for (kind, members) in Job::SETTINGS {
            let mut typed = BTreeSet::new();
            for (path, setting) in all(members()) {
                let names = setting.option.into_iter().chain(setting.aliases.iter().copied());
                for name in names.chain(setting.shorthands.iter().map(|shorthand| shorthand.option)) {
                    assert!(typed.insert(name), "{kind}: {path}: {name} is another one's");
                }
            }
        }
    }

    #[test]
    fn what_is_said_to_be_the_default_is_a_value() {
        let mut defaults = 0;
        for (kind, members) in Job::SETTINGS {
            for (path, setting) in all(members()) {
                for default in setting.default.into_iter().chain(setting.initial) {
                    defaults += 1;
                    assert_eq!(setting.takes(OsStr::new(default)), Ok(()), "{kind}: {path}");
                }
            }
        }
        assert!(defaults > 5, "{defaults}");
    }

    #[test]
    fn what_a_shorthand_or_another_word_means_is_a_value() {
        let mut meanings = 0;
        for (kind, members) in Job::SETTINGS {
            for (path, setting) in all(members()) {
                let shorthands =
                    setting.shorthands.iter().map(|shorthand| shorthand.means.replace("{}", "3"));
                let others = setting.other_words.iter().map(|(other, _)| setting.meant(other).to_owned());
                // Of one whose value is for two settings nothing but both together is a value.
                let shorthands = shorthands.filter(|_| setting.shorthands.iter().all(|of| of.rest.is_none()));
                for means in shorthands.chain(others) {
                    meanings += 1;
                    // The device's faults are words of their own.
                    let means = if path.ends_with("lab.impair") { "loss 3%" } else { &means };
                    assert_eq!(setting.takes(OsStr::new(means)), Ok(()), "{kind}: {path}: {means}");
                }
            }
        }
        assert!(meanings > 10, "{meanings}");
    }

    #[test]
    fn texts_go_where_their_paths_say() {
        let mut job = crate::Bridge::default();
        for (path, text) in [
            ("between", "a"),
            ("between", "b"),
            ("one_way", ""),
            ("edits.vlan_add", "7"),
            ("edits.map_ip", "a=b"),
            ("edits.map_ip", "c=d"),
        ] {
            assert_eq!(job.put(path, OsStr::new(text)), Some(Ok(())), "{path}");
        }
        let edits = crate::Edits {
            vlan_add: Some(7),
            map_ip: vec!["a=b".into(), "c=d".into()],
            ..Default::default()
        };
        let wanted = crate::Bridge {
            between: ["a".into(), "b".into()],
            one_way: true,
            edits: Some(edits),
            ..Default::default()
        };
        assert_eq!(job, wanted);
        assert_eq!(job.put("edits.nothing", OsStr::new("")), None);
        assert!(job.put("edits.vlan_add", OsStr::new("x")).is_some_and(|put| put.is_err()));
        let vlan = named(crate::Bridge::MEMBERS, "edits.vlan_add").expect("a setting");
        assert_eq!(vlan.takes(OsStr::new("4096")), Err("4096 is not in 0..=4095".to_owned()));
    }
}
