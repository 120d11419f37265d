//! Arguments that crate `spec` declares: of each setting of a kind of job an option is made, and what is typed goes into the job.

use super::Output;
use crate::wording;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, ValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use spec::setting::{Member, Setting, Settings, Shape, each, named};
use std::ffi::OsString;

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

impl<T: Settings> Args for Asked<T> {
    fn augment_args(command: Command) -> Command {
        // Others are named by their paths.
        let ids = |paths: &'static [&'static str]| {
            let others = paths.iter().filter_map(|path| named(T::MEMBERS, path));
            others.filter(|other| other.typed).map(id)
        };
        let mut all = Vec::new();
        each(T::MEMBERS, &mut |_, setting| {
            if !setting.typed {
                return;
            }
            let arg = argument(setting, T::MEMBERS);
            let arg = arg.conflicts_with_all(ids(setting.excludes));
            all.push(ids(setting.needs).fold(arg, Arg::requires));
        });
        command.args(all)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The option of a setting.
fn argument(setting: &'static Setting, all: &'static [Member]) -> Arg {
    let text = wording::in_help(setting.text, all).into_owned();
    let text = text.strip_suffix('.').map(str::to_owned).unwrap_or(text);
    let arg = match setting.brief {
        Some(brief) => Arg::new(id(setting)).help(brief).long_help(text),
        None => Arg::new(id(setting)).help(text),
    };
    let arg = match setting.option {
        Some(option) => arg.long(option).aliases(setting.aliases),
        None => arg,
    };
    let arg = setting.short.into_iter().fold(arg, Arg::short);
    let arg = setting.heading.into_iter().fold(arg, Arg::help_heading);
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
    let (words, meanings) = ((setting.words)(), (setting.meanings)());
    if !words.is_empty() {
        let word = |(at, word): (usize, &'static str)| {
            let others = setting.other_words.iter().filter(|(_, means)| *means == word);
            let value = PossibleValue::new(word).aliases(others.map(|(other, _)| *other));
            meanings.get(at).into_iter().fold(value, |value, means| value.help(means.trim_end_matches('.')))
        };
        use clap::builder::TypedValueParser as _;
        return ValueParser::new(PossibleValuesParser::new(words.into_iter().enumerate().map(word)).map(
            |typed| {
                let means = setting.other_words.iter().find(|(other, _)| *other == typed);
                OsString::from(means.map_or(typed.as_str(), |(_, word)| word))
            },
        ));
    }
    if setting.is_path {
        return ValueParser::new(OsStringValueParser::new());
    }
    ValueParser::new(move |text: &str| {
        let text = OsString::from(text);
        setting.takes(&text).map(|()| text)
    })
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
            let id = id(setting);
            // What was not typed is left to the job's own defaults.
            if !setting.typed || matches.value_source(id) != Some(ValueSource::CommandLine) {
                return;
            }
            let values: Vec<OsString> = match setting.shape {
                Shape::Flag => vec![OsString::new()],
                _ => matches.get_many::<OsString>(id).into_iter().flatten().cloned().collect(),
            };
            for value in values {
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
