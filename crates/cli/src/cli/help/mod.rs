//! What `-h`, `--help`, `netdyno help` and the manual pages show beyond the declarations: verbs and options in groups, the
//! options used every day apart from all others, examples, what the exit status means, and where to read on.
//!
//! The declarations stay as they are: what is said here of verbs is laid over them, by tables (`groups`, `examples`).

mod examples;
mod groups;

use super::Cli;
use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::{Arg, ArgAction, ColorChoice, Command, CommandFactory as _, FromArgMatches as _, Parser as _};
pub use examples::{Example, of};
pub use groups::{ENVIRONMENT, docs, is_ours, related};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;

/// What the exit status says, of all verbs that do not say otherwise.
pub const STATUS: [(&str, &str); 3] = [
    ("0", "done as asked"),
    ("1", "done, but short of what was asked"),
    ("2", "not done; an error says why"),
];

/// Columns that nothing of ours goes beyond.
#[cfg(test)]
const WIDTH: usize = 80;

/// The command line, as it is shown.
pub fn command() -> Command {
    let command = arranged(Cli::command(), "").help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        verbs(),
        header("Options:")
    ));
    match gauges::dumb_terminal() {
        // By itself clap colours what goes to such a terminal, too, on machines that build (CI is set).
        Some(_) => command.color(ColorChoice::Never),
        None => command,
    }
}

/// Reads a command line.
///
/// # Errors
/// It is none, or asks for help: clap tells which.
pub fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let words = asking(words);
    // What is shown is laid over the declarations only when something is to be shown, and not at each start.
    match Cli::try_parse_from(&words) {
        Ok(cli) => Ok(cli),
        Err(_) => shown(words),
    }
}

/// Reads it by the command line that is shown, for its help and its errors.
fn shown(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let command = command();
    let matches = command
        .clone()
        .try_get_matches_from(&words)
        .map_err(|error| super::mistyped::mended(error, &words, &command))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command.clone()))
}

/// Whether a word is a verb.
pub fn is_verb(word: &str) -> bool {
    groups::VERBS.iter().any(|(_, verbs)| verbs.iter().any(|(verb, _)| *verb == word))
}

/// `netdyno help VERB` is `netdyno VERB --help`, by whatever name the verb takes that.
fn asking(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|word| word != "help") {
        return words;
    }
    words.remove(1);
    words.retain(|word| word != "help");
    let verb = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let help = if matches!(verb, "netperf" | "netserver") { "-h" } else { "--help" };
    // Verbs come first: nothing that is no verb has help of its own.
    let verbs = words.iter().skip(1).take_while(|word| !word.as_encoded_bytes().starts_with(b"-")).count();
    words.truncate(1 + verbs);
    words.push(help.into());
    words
}

/// The verbs, group by group, a line each.
fn verbs() -> String {
    let mut text = String::new();
    for (heading, verbs) in groups::VERBS {
        let _ = writeln!(text, "{}", header(&format!("{heading}:")));
        for (verb, about) in *verbs {
            let _ = writeln!(text, "  {verb:<15} {about}");
        }
        text.push('\n');
    }
    text
}

fn header(text: &str) -> String {
    let styles = Styles::styled();
    let style = styles.get_header();
    format!("{style}{text}{style:#}")
}

/// A command and those below it with all that the tables have on them; `path` is the words it is called by.
fn arranged(command: Command, path: &str) -> Command {
    let command = command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        arranged(below, path.trim_start())
    });
    let ours = is_ours(path);
    // Other tools' verbs have their own help, most of them.
    if path.is_empty() || command.is_disable_help_flag_set() {
        return command;
    }
    let command = if ours { grouped(command, path.split(' ').next().unwrap_or_default()) } else { command };
    let hidden =
        command.get_arguments().filter(|arg| arg.is_hide_short_help_set() && !arg.is_hide_set()).count();
    let said = command.get_after_help().map(ToString::to_string);
    let all = of(path);
    let mut short = listed(all.get(..2).unwrap_or(all));
    if hidden > 0 {
        let edits = command
            .get_arguments()
            .any(|arg| arg.get_help_heading() == Some("Edits") && arg.is_hide_short_help_set());
        let edits = if edits { " (edits of frames among them)" } else { "" };
        let more = if all.len() > 2 { ", and more examples" } else { "" };
        let options = report::units::counted(hidden as u64, "more option");
        let _ = write!(short, "{options}{edits}{more}: netdyno help {path}");
    }
    let mut long = listed(all);
    if let Some(said) = &said {
        let _ = writeln!(long, "{said}\n");
    }
    // A heading begins behind an empty line: clap folds it with the line before otherwise.
    if ours && !said.as_ref().is_some_and(|said| said.contains("Exit status")) {
        let status: Vec<String> =
            STATUS.iter().map(|(status, means)| format!("  {status}  {means}\n")).collect();
        let _ = writeln!(long, "{}\n{}", header("Exit status:"), status.concat());
    }
    if let Some(see) = see_also(path) {
        let _ = writeln!(long, "{}\n  {see}", header("See also:"));
    }
    let short = [short.trim_end(), said.as_deref().unwrap_or_default()].join("\n");
    command
        .after_help(StyledStr::from(short.trim().to_owned()))
        .after_long_help(StyledStr::from(long.trim_end().to_owned()))
}

/// What the declaration of a verb says behind its options.
pub fn notes(path: &str) -> String {
    let all = Cli::command();
    let verb = path
        .split(' ')
        .filter(|word| !word.is_empty())
        .try_fold(&all, |above, word| above.find_subcommand(word));
    verb.and_then(Command::get_after_help).map(ToString::to_string).unwrap_or_default()
}

fn listed(examples: &[Example]) -> String {
    if examples.is_empty() {
        return String::new();
    }
    let mut text = header("Examples:") + "\n";
    for Example { says, line } in examples {
        let _ = writeln!(text, "  {says}:");
        for line in line.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text + "\n"
}

/// Where to read on.
fn see_also(path: &str) -> Option<String> {
    let verbs = related(path).into_iter().map(|verb| format!("netdyno {verb}"));
    let said: Vec<String> =
        docs(path).into_iter().map(|page| format!("docs/{page}.md")).chain(verbs).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// A verb's options in groups, in the groups' order, with a sentence for `-h` and all for `--help`.
fn grouped(command: Command, verb: &str) -> Command {
    let command = command.mut_args(|arg| {
        let arg = brief(arg);
        if arg.is_positional() {
            return arg;
        }
        let heading = arg
            .get_help_heading()
            .and_then(|heading| groups::ORDER.into_iter().find(|name| *name == heading));
        let rare = groups::is_rare(verb, heading) || arg.is_hide_short_help_set();
        arg.help_heading(heading).hide_short_help(rare)
    });
    // Which group comes first is said by the order of the options: each is taken out and put behind the others.
    let mut options: Vec<(usize, String)> = command
        .get_arguments()
        .filter(|arg| !arg.is_positional())
        .map(|arg| (groups::rank(arg.get_help_heading()), arg.get_id().to_string()))
        .collect();
    options.sort_by_key(|(rank, _)| *rank);
    let command = options.into_iter().fold(command, |command, (_, id)| command.mut_arg(id, |arg| arg));
    let last =
        command.get_arguments().any(|arg| arg.get_help_heading() == Some("Output")).then_some("Output");
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help_heading(last);
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version).hide(true);
    command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(help.help("Print help: -h what is used every day, --help all, with examples").display_order(900))
        .arg(version.help("Print version"))
}

/// What `-h` says of an option: what is declared, or the first sentence and the default.
fn brief(arg: Arg) -> Arg {
    let Some(whole) = arg.get_help().map(ToString::to_string) else { return arg };
    // What is declared with both keeps them.
    if arg.get_long_help().is_some() {
        return arg;
    }
    let said = shortened(&whole);
    if said == whole { arg } else { arg.help(said).long_help(whole) }
}

fn shortened(text: &str) -> String {
    let first = sentence(text);
    let default =
        text.split_once(". Default: ").map(|(_, rest)| sentence(rest)).filter(|default| default.len() <= 30);
    match default {
        Some(default) => format!("{first} (default: {default})"),
        None => first.into_owned(),
    }
}

/// The first sentence. A long one ends where its details begin, or is shown without what stands in parentheses: never with a
/// part of it alone, and never without what follows a parenthesis.
fn sentence(text: &str) -> Cow<'_, str> {
    const LONG: usize = 100;
    // Behind the dot of an abbreviation no sentence begins.
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_uppercase() || c == '-' || c == '`');
    let end = text.match_indices(". ").find(|(at, _)| text.get(at + 2..).is_some_and(begins));
    let first = end.and_then(|(at, _)| text.get(..at)).unwrap_or(text);
    if first.len() <= LONG {
        return first.into();
    }
    let detail = [": ", "; "].iter().find_map(|mark| {
        let before = first.match_indices(mark).filter_map(|(at, _)| first.get(..at));
        before.filter(|before| is_closed(before)).find(|before| (15..=LONG).contains(&before.len()))
    });
    detail.map_or_else(|| without_parentheses(first), Cow::Borrowed)
}

/// Whether each parenthesis that opens in it closes in it.
fn is_closed(text: &str) -> bool {
    text.matches('(').count() == text.matches(')').count()
}

/// A sentence without what stands in parentheses behind a space; one with a parenthesis that does not close stays as it is.
fn without_parentheses(text: &str) -> Cow<'_, str> {
    let mut short = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(" (") {
        let mut open = 1;
        let close = behind.char_indices().find(|(_, c)| {
            open += i32::from(*c == '(') - i32::from(*c == ')');
            open == 0
        });
        let Some((_, after)) = close.and_then(|(at, _)| behind.split_at_checked(at + 1)) else {
            return text.into();
        };
        short.push_str(before);
        rest = after;
    }
    if short.is_empty() { text.into() } else { (short + rest).into() }
}

#[cfg(test)]
mod tests;
