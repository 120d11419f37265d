//! Arguments that crate `spec` declares: of each setting of a kind of job an option is made, and what is typed goes into the job.

use super::Output;
use crate::wording;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, ValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use spec::setting::{Member, Setting, Settings, Shape, Shorthand, each, named};
use std::ffi::{OsStr, OsString};

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

/// What is typed of a struct of settings.
#[derive(Debug, Clone)]
pub struct Asked<T>(pub T);

/// What clap calls a setting.
fn id(setting: &Setting) -> &'static str {
    setting.option.unwrap_or(setting.name)
}

/// What clap calls all that says a setting.
fn ids(setting: &Setting) -> impl Iterator<Item = &'static str> {
    let shorthands = setting.shorthands.iter().map(|shorthand| shorthand.option);
    setting.is_typed().then(|| id(setting)).into_iter().chain(shorthands)
}

impl<T: Settings> Args for Asked<T> {
    fn augment_args(command: Command) -> Command {
        // Others are named by their paths.
        let others = |paths: &'static [&'static str]| paths.iter().filter_map(|path| named(T::MEMBERS, path));
        let mut all = Vec::new();
        each(T::MEMBERS, &mut |_, setting| {
            if setting.is_typed() {
                let arg = argument(setting, T::MEMBERS);
                let arg = arg.conflicts_with_all(others(setting.excludes).flat_map(ids));
                all.push(others(setting.needs).map(id).fold(arg, Arg::requires));
            }
            for shorthand in setting.shorthands {
                let arg = stands_for(shorthand, setting, T::MEMBERS);
                let same = ids(setting).filter(|id| *id != shorthand.option);
                let excluded = setting.excludes.iter().chain(shorthand.excludes);
                let excluded = excluded.filter_map(|path| named(T::MEMBERS, path)).flat_map(ids);
                all.push(arg.conflicts_with_all(same.chain(excluded)));
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
    arg.value_name(value).value_parser(move |text: &str| {
        let meant = shorthand.means.replace("{}", text);
        let read = of.takes(OsStr::new(&meant)).map_err(|bad| bad.replace(&meant, text));
        read.map(|()| OsString::from(meant))
    })
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
    setting.default.into_iter().fold(arg.value_parser(parser(setting)), Arg::default_value)
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
        setting.takes(&text).map(|()| text)
    })
}

/// What was typed of a setting, and as which option. What was not typed is left to the job's own defaults.
fn typed(setting: &'static Setting, matches: &ArgMatches) -> Vec<(&'static str, OsString)> {
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let values = |id: &str| matches.get_many::<OsString>(id).into_iter().flatten().cloned();
    let own = Some(id(setting)).filter(|id| setting.is_typed() && given(id));
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

impl<T: Settings> FromArgMatches for Asked<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut asked = Asked(T::default());
        asked.update_from_arg_matches(matches)?;
        Ok(asked)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let mut wrong = None;
        each(T::MEMBERS, &mut |path, setting| {
            for (id, value) in typed(setting, matches) {
                if let Some(Err(bad)) = self.0.put(path, &value) {
                    wrong.get_or_insert_with(|| {
                        Error::raw(ErrorKind::ValueValidation, format!("{id}: {bad}\n"))
                    });
                }
            }
        });
        wrong.map_or(Ok(()), Err)
    }
}
