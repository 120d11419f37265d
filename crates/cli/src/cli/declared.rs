//! Arguments that crate `spec` declares: of each setting of a kind of job an option is made, and what is typed goes into the job.

use super::Output;
use crate::wording;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, ValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use spec::setting::{Member, Setting, Settings, Shape, Shorthand, each, named};
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

/// A job of this kind, and where its result goes.
#[derive(Debug, Args)]
pub struct Declared<T: Settings> {
    #[command(flatten)]
    pub asked: Asked<T>,
    #[command(flatten)]
    pub output: Output,
}

impl<T: Settings + Into<spec::Job>> Declared<T> {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        (self.asked.0.into(), self.output)
    }
}

/// What is typed of a struct of settings, but for the options that `L` leaves out.
#[derive(Debug, Clone)]
pub struct Asked<T, L = Nothing>(pub T, PhantomData<L>);

/// Options of a struct of settings that a verb does not have, because the rules of crate `spec` refuse them there anyway: a test holds
/// that they do.
pub trait LeavesOut {
    /// Their names; of what is typed by its place, the setting's.
    const OPTIONS: &'static [&'static str];

    /// Whether the verb has an option of that name. One that makes no job says which it has.
    fn has(option: &str) -> bool {
        !Self::OPTIONS.contains(&option)
    }
}

/// A verb that has all of them.
#[derive(Debug, Clone)]
pub struct Nothing;

impl LeavesOut for Nothing {
    const OPTIONS: &'static [&'static str] = &[];
}

/// What clap calls a setting.
fn id(setting: &Setting) -> &'static str {
    setting.option.unwrap_or(setting.name)
}

/// What clap calls all that says a setting.
fn ids(setting: &Setting) -> impl Iterator<Item = &'static str> {
    let shorthands = setting.shorthands.iter().map(|shorthand| shorthand.option);
    setting.is_typed().then(|| id(setting)).into_iter().chain(shorthands)
}

impl<T: Settings, L: LeavesOut> Args for Asked<T, L> {
    fn augment_args(command: Command) -> Command {
        let is_there = |id: &&str| L::has(id);
        // Others are named by their paths.
        let others = |paths: &'static [&'static str]| paths.iter().filter_map(|path| named(T::MEMBERS, path));
        let excluded = |paths| others(paths).flat_map(ids).filter(is_there);
        let mut all = Vec::new();
        each(T::MEMBERS, &mut |_, setting| {
            if setting.is_typed() && is_there(&id(setting)) {
                let arg = argument(setting, T::MEMBERS).conflicts_with_all(excluded(setting.excludes));
                all.push(others(setting.needs).map(id).filter(is_there).fold(arg, Arg::requires));
            }
            for shorthand in setting.shorthands.iter().filter(|shorthand| is_there(&shorthand.option)) {
                let arg = stands_for(shorthand, setting, T::MEMBERS);
                // Of a list each says a part.
                let same = ids(setting).filter(|id| *id != shorthand.option && setting.shape != Shape::Many);
                let arg = arg.conflicts_with_all(same.filter(is_there));
                let arg =
                    arg.conflicts_with_all(excluded(setting.excludes).chain(excluded(shorthand.excludes)));
                all.push(shorthand.needs.iter().copied().filter(is_there).fold(arg, Arg::requires));
            }
        });
        command.args(all)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Its help: what it does, and in few words, if those are declared.
fn helped(arg: Arg, text: &'static str, brief: Option<&'static str>, all: &'static [Member]) -> Arg {
    let text = wording::in_help(text, all).into_owned();
    let text = text.strip_suffix('.').filter(|text| !text.ends_with('.')).map(str::to_owned).unwrap_or(text);
    match brief {
        Some(brief) => arg.help(wording::in_help(brief, all).into_owned()).long_help(text),
        None => arg.help(text),
    }
}

/// The option that stands for one of a setting's values.
fn stands_for(shorthand: &'static Shorthand, of: &'static Setting, all: &'static [Member]) -> Arg {
    let arg = Arg::new(shorthand.option).long(shorthand.option);
    let arg = helped(arg, shorthand.text, shorthand.brief, all);
    let arg = shorthand.heading.into_iter().fold(arg, Arg::help_heading);
    let Some(value) = shorthand.value else { return arg.action(ArgAction::SetTrue) };
    let several = of.comma && of.shape == Shape::Many;
    let arg = if several { arg.action(ArgAction::Append).value_delimiter(',') } else { arg };
    arg.value_name(value).value_parser(move |text: &str| {
        let meant = shorthand.means.replace("{}", text);
        let read = taken(of, OsStr::new(&meant)).map_err(|bad| bad.replace(&meant, text));
        read.map(|()| OsString::from(meant))
    })
}

/// Whether a setting takes a text; if not, why, in the words of the command line.
fn taken(setting: &Setting, text: &OsStr) -> Result<(), String> {
    setting.takes(text).map_err(|bad| wording::typed(&bad).into_owned())
}

/// The option of a setting.
fn argument(setting: &'static Setting, all: &'static [Member]) -> Arg {
    let arg = helped(Arg::new(id(setting)), setting.text, setting.brief, all);
    let arg = match setting.option {
        Some(option) => arg.long(option).aliases(setting.aliases),
        None => arg,
    };
    let arg = setting.short.into_iter().fold(arg, Arg::short);
    // What stands by itself stands above all headings.
    let heading = setting.heading.filter(|_| setting.option.is_some());
    let arg = heading.into_iter().fold(arg, Arg::help_heading);
    let arg =
        arg.hide_short_help(setting.rare).allow_hyphen_values(setting.hyphens).required(setting.required);
    let arg = if setting.is_path { arg.value_hint(ValueHint::FilePath) } else { arg };
    let arg = match setting.shape {
        Shape::Flag => return arg.action(ArgAction::SetTrue),
        Shape::Pair => arg.num_args(2).value_names([setting.value, setting.value]),
        Shape::One => arg.value_name(setting.value),
        Shape::Many if setting.option.is_none() => {
            arg.action(ArgAction::Append).num_args(1..).value_name(setting.value)
        }
        Shape::Many => arg.action(ArgAction::Append).value_name(setting.value),
    };
    let arg = if setting.comma { arg.value_delimiter(',') } else { arg };
    let arg = arg.value_parser(parser(setting));
    // What a list has if nothing is said stands in its text.
    let arg = setting
        .initial
        .into_iter()
        .fold(arg, |arg, initial| arg.default_value(initial).hide_default_value(true));
    setting.default.into_iter().fold(arg, Arg::default_value)
}

/// Takes what the setting takes, as it was typed.
fn parser(setting: &'static Setting) -> ValueParser {
    let words = (setting.words)();
    if !words.is_empty() {
        let mut meanings = (setting.meanings)().into_iter();
        let word = move |word: &'static str| {
            let others = setting.other_words.iter().filter(|(_, means)| *means == word);
            let value = PossibleValue::new(word).aliases(others.map(|(other, _)| *other));
            let meaning = meanings.next().map(|meaning| meaning.trim_end_matches('.'));
            meaning.into_iter().fold(value, PossibleValue::help)
        };
        use clap::builder::TypedValueParser as _;
        return ValueParser::new(
            PossibleValuesParser::new(words.into_iter().map(word))
                .map(|typed| OsString::from(setting.meant(&typed))),
        );
    }
    if setting.is_path {
        return ValueParser::new(OsStringValueParser::new());
    }
    ValueParser::new(move |text: &str| {
        let text = OsString::from(setting.meant(text));
        taken(setting, &text).map(|()| text)
    })
}

/// What was typed of a setting, and as which option. What was not typed is left to the job's own defaults.
fn typed(setting: &'static Setting, matches: &ArgMatches) -> Vec<(&'static str, OsString)> {
    // A verb may leave it out.
    let source = |id: &str| matches.try_contains_id(id).is_ok().then(|| matches.value_source(id)).flatten();
    let given = |id: &str| source(id) == Some(ValueSource::CommandLine);
    // A default that is declared is the job's own; one that a verb gives an argument is as if it was typed.
    let by_verb = |id: &str| {
        source(id) == Some(ValueSource::DefaultValue)
            && setting.default.is_none()
            && setting.shape != Shape::Flag
    };
    let values = |id: &str| matches.get_many::<OsString>(id).into_iter().flatten().cloned();
    let own = Some(id(setting)).filter(|id| setting.is_typed() && (given(id) || by_verb(id)));
    let mut all = Vec::new();
    match own {
        Some(id) if setting.shape == Shape::Flag => all.push((id, OsString::new())),
        Some(id) => all.extend(values(id).map(|value| (id, value))),
        None => {}
    }
    for Shorthand { option, value, means, .. } in setting.shorthands {
        match value {
            _ if !given(option) => {}
            Some(_) => all.extend(values(option).map(|value| (*option, value))),
            None => all.push((*option, OsString::from(means))),
        }
    }
    all
}

/// What was typed as an option that says two settings: the value of this one, and that of the other with its path.
fn parted(setting: &Setting, id: &str, value: OsString) -> (OsString, Option<(&'static str, OsString)>) {
    let shorthand = setting.shorthands.iter().find(|shorthand| shorthand.option == id);
    let Some(of_rest) = shorthand.and_then(|shorthand| shorthand.rest) else { return (value, None) };
    match value.to_str().and_then(|text| text.split_once(':')) {
        Some((own, rest)) => (own.into(), Some((of_rest, rest.into()))),
        None => (value, None),
    }
}

impl<T: Settings, L: LeavesOut> FromArgMatches for Asked<T, L> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut asked = Asked(T::default(), PhantomData);
        asked.update_from_arg_matches(matches)?;
        Ok(asked)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let mut wrong = None;
        each(T::MEMBERS, &mut |path, setting| {
            for (id, value) in typed(setting, matches) {
                let (value, rest) = parted(setting, id, value);
                for (path, value) in std::iter::once((path, value)).chain(rest) {
                    if let Some(Err(bad)) = self.0.put(path, &value) {
                        wrong.get_or_insert_with(|| {
                            Error::raw(ErrorKind::ValueValidation, format!("{id}: {bad}\n"))
                        });
                    }
                }
            }
        });
        wrong.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::TwoHosts;
    use crate::cli::search::OfFlows;
    use crate::cli::search_between::{OfBuffers, OfTransactions};
    use crate::cli::search_sessions::{OfCapacity, OfRates};
    use spec::{EndpointFind, EndpointTest, Find, Job, Lab, Link};

    /// The path of the setting that an option says, and one of its values that is not its default.
    fn value<T: Settings>(option: &str) -> (String, OsString) {
        let mut found = None;
        each(T::MEMBERS, &mut |path, setting| {
            let shorthand = setting.shorthands.iter().find(|shorthand| shorthand.option == option);
            let usual = ["1", "1s", "1kpps", "50%", "95%,5%", "a", "loss 1%"].map(str::to_owned);
            let words = (setting.words)().into_iter().rev().map(str::to_owned).chain(usual);
            let mut values = match shorthand {
                Some(shorthand) => {
                    vec![shorthand.means.replace("{}", "loss 1%"), shorthand.means.replace("{}", "a")]
                }
                None if id(setting) == option && setting.is_typed() => words.collect(),
                None => return,
            }
            .into_iter();
            let value = values.find(|value| setting.takes(OsStr::new(value)).is_ok());
            found = Some((path.to_owned(), value.expect(option).into()));
        });
        found.unwrap_or_else(|| panic!("there is no {option}"))
    }

    fn each_is_refused<T: Settings + Clone + Into<Job>, L: LeavesOut>(job: T) {
        let whole: Job = job.clone().into();
        assert_eq!(whole.check(), Ok(()), "{whole:?}");
        for option in L::OPTIONS {
            let (path, value) = value::<T>(option);
            let mut job = job.clone();
            assert_eq!(job.put(&path, &value), Some(Ok(())), "{option}");
            assert!(job.into().check().is_err(), "a file may say {path}: {}", value.display());
        }
    }

    #[test]
    fn what_a_verb_leaves_out_is_refused_in_a_file_too() {
        let lab = || Some(Lab::default());
        each_is_refused::<_, TwoHosts>(spec::Send { what: "ipv4".into(), lab: lab(), ..Default::default() });
        each_is_refused::<_, TwoHosts>(spec::Replay {
            captures: vec!["a.pcap".into()],
            lab: lab(),
            ..Default::default()
        });
        let links = vec![Link { on: Some("a".into()), measure: None }];
        each_is_refused::<_, OfFlows>(spec::Search {
            find: Find::Flows(spec::Flows { collect: Some("0.0.0.0:2055".into()), ..Default::default() }),
            bench: spec::Bench { links, ..Default::default() },
            ..Default::default()
        });
        each_is_refused::<_, OfBuffers>(spec::EndpointSearch { lab: lab(), ..Default::default() });
        let below = Some("200us".parse().expect("a time"));
        each_is_refused::<_, OfTransactions>(spec::EndpointSearch {
            find: EndpointFind::Transactions(spec::MostTransactions { below, ..Default::default() }),
            endpoint: spec::Endpoint { test: EndpointTest::TcpRr, ..Default::default() },
            lab: lab(),
        });
        let sessions = spec::Sessions {
            on: "a".into(),
            to: "10.0.0.2".parse().expect("a server"),
            ..Default::default()
        };
        each_is_refused::<_, OfRates>(spec::SessionsSearch {
            sessions: sessions.clone(),
            ..Default::default()
        });
        each_is_refused::<_, OfCapacity>(spec::SessionsSearch {
            find: spec::SessionsFind::SessionCapacity(spec::SessionCapacity::default()),
            sessions,
            lab: None,
        });
    }
}
