//! That every rule between settings is worded for who breaks it: each job of `spec`'s rules.txt is read from a file and typed as a command
//! line, and rules.txt here has what both are told. Jobs whose command lines are those of another tool are told in its words.

use crate::cli::{Cli, Command};
use crate::compat;
use crate::wording::{self, Verb};
use clap::FromArgMatches as _;
use serde_json::Value;
use spec::setting::{Member, Setting, Shape, each};
use std::fmt::Write as _;
use std::path::Path;

/// What a command line is made of.
struct Line {
    verb: Verb,
    command: clap::Command,
    words: Vec<String>,
}

/// A member of a job by its path; nothing where none is.
fn at<'v>(job: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(job, |value, name| value.get(name))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Faults of a device as they are typed: `loss=1%,keep-order`.
fn faults(value: &Value) -> String {
    let all = value.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::Bool(_) => name.replace('_', "-"),
        value => format!("{}={}", name.replace('_', "-"), text(value)),
    });
    all.collect::<Vec<_>>().join(",")
}

impl Line {
    /// The command line that makes such a job, as far as its settings can be typed; why not, if they cannot.
    fn of(job: &Value) -> Result<Line, String> {
        let kind = job["kind"].as_str().unwrap_or_default();
        let (kind, members) = spec::Job::SETTINGS.iter().find(|(name, _)| *name == kind).expect("a kind");
        let find = job.get("find").map(|find| match find {
            Value::String(name) => name.as_str(),
            find => find.as_object().and_then(|find| find.keys().next()).expect("what is searched for"),
        });
        let between = || spec::EndpointFind::SETTINGS.iter().chain(spec::SessionsFind::SETTINGS);
        let searches = || spec::Find::SETTINGS.iter().chain(between());
        let find = find.map(|find| searches().find(|(name, _)| *name == find).expect("a search"));
        let verb = Verb::named(kind, find.map(|(name, _)| *name));
        let command = verb.command().ok_or("its verb has other options, those of another tool")?.clone();
        let words = verb.words().iter().map(|word| (*word).to_owned()).collect();
        let mut line = Line { verb, command, words };
        line.add(job, members())?;
        if let Some((name, members)) = find {
            line.add(job["find"].get(*name).unwrap_or(&Value::Null), members)?;
        }
        Ok(line)
    }

    fn add(&mut self, job: &Value, members: &'static [Member]) -> Result<(), String> {
        let mut done = Ok(());
        each(members, &mut |path, setting| {
            if let Some(value) = at(job, path)
                && done.is_ok()
            {
                done = self.typed(path, setting, value, job);
            }
        });
        done
    }

    /// Types a setting.
    fn typed(&mut self, path: &str, setting: &Setting, value: &Value, job: &Value) -> Result<(), String> {
        if path.ends_with("links") {
            return self.links(job["kind"] == "replay", value);
        }
        let id = setting.option.unwrap_or(setting.name);
        let means = text(value);
        let by_shorthand = setting.shorthands.iter().find(|shorthand| shorthand.means == means);
        // A command line says both at once.
        let from = setting.shorthands.iter().find(|shorthand| shorthand.rest.is_some());
        if let Some(from) = from {
            self.words.extend([format!("--{}", from.option), format!("{means}:{}", text(&job["server"]))]);
            return Ok(());
        }
        if matches!(job["kind"].as_str(), Some("clone" | "clone-capture"))
            && path == "server"
            && job.get("on").is_some()
        {
            return Ok(());
        }
        let words = match value {
            Value::Array(values) => values.iter().map(text).collect(),
            Value::Object(_) if setting.shape != Shape::Flag => vec![faults(value)],
            _ => vec![means],
        };
        let arg = self.command.get_arguments().find(|arg| arg.get_id().as_str() == id);
        let flag = setting.shape == Shape::Flag && *value != Value::Bool(false);
        match (arg.map(|arg| arg.get_long()), by_shorthand) {
            (_, Some(shorthand)) => self.words.push(format!("--{}", shorthand.option)),
            (Some(Some(long)), _) if flag => self.words.push(format!("--{long}")),
            (Some(Some(long)), _) if setting.shape == Shape::Pair => {
                self.words.push(format!("--{long}"));
                self.words.extend(words);
            }
            (Some(Some(long)), _) => {
                self.words.extend(words.into_iter().flat_map(|word| [format!("--{long}"), word]));
            }
            (Some(None), _) => self.words.extend(words),
            // Of the device's faults there is one option.
            (None, _) => match setting.shorthands.first() {
                Some(shorthand) if shorthand.means == "{}" => {
                    self.words.extend([format!("--{}", shorthand.option), words.join(",")]);
                }
                _ => return Err(format!("the verb has no option for `{path}`")),
            },
        }
        Ok(())
    }

    fn links(&mut self, of_two_sides: bool, links: &Value) -> Result<(), String> {
        let links = links.as_array().map(Vec::as_slice).unwrap_or_default();
        let gap =
            |end: &str| links.windows(2).any(|two| two[0].get(end).is_none() && two[1].get(end).is_some());
        if !of_two_sides && (gap("on") || gap("measure")) {
            return Err("the nth --measure is of the nth --on".to_owned());
        }
        for (number, link) in links.iter().enumerate() {
            let second = if of_two_sides && number == 1 { "2" } else { "" };
            for end in ["on", "measure"] {
                if let Some(interface) = link.get(end) {
                    self.words.extend([format!("--{end}{second}"), text(interface)]);
                }
            }
        }
        Ok(())
    }
}

/// What who types it is told; nothing if it fits.
fn told(line: &Line) -> Option<String> {
    let words = std::iter::once("netdyno").chain(line.words.iter().map(String::as_str));
    let typed = wording::root().clone().try_get_matches_from(words);
    let job = match typed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Err(error) => {
            let whole = error.to_string();
            let first = whole.split("\n\n").next().unwrap_or_default();
            let lines = first.lines().map(str::trim).collect::<Vec<_>>();
            return Some(lines.join(" ").trim_start_matches("error: ").to_owned());
        }
        Ok(cli) => match cli.command {
            Command::Job(typed) => typed.job().0,
            Command::Search(search) => search.kind.job().0,
            other => panic!("{other:?}"),
        },
    };
    super::jobs::check(&job).err().map(|error| error.to_string())
}

/// What who types such a job as another tool's command line is told: that tool, and its words.
fn told_by_another(job: &Value) -> Option<(&'static str, String)> {
    let (tool, called): (_, fn(&str) -> Option<String>) = match job["kind"].as_str()? {
        "iperf3" | "iperf3-server" => ("iperf3", compat::iperf3::called),
        "netperf" => ("netperf", compat::netperf::called),
        "netserver" => ("netserver", compat::netserver::called),
        _ => return None,
    };
    let mut members = job.as_object()?.clone();
    members.retain(|name, _| name != "schema");
    let job: spec::Job = serde_json::from_value(Value::Object(members)).expect("a job");
    let wrong = job.check().expect_err("it breaks a rule");
    Some((tool, wording::contradiction_of_another(&wrong, called)))
}

/// Words as a shell takes them.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:,./%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

/// The options that a text names, beside those of whole commands in backquotes.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let outside = text.split('`').step_by(2);
    let words = outside.flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '-'));
    words.filter_map(|word| word.strip_prefix("--")).filter(|name| !name.is_empty())
}

#[test]
fn who_breaks_a_rule_is_told_in_the_words_that_were_typed() {
    let jobs = include_str!("../../../spec/src/rules.txt").lines().filter(|line| line.starts_with("kind: "));
    let (mut said, mut typed, mut others, mut wrong) = (String::new(), 0, 0, String::new());
    for job in jobs {
        let value = scenario::value(&format!("{{schema: netdyno.job/1, {job}}}"), "job").expect(job);
        let in_a_file = spec::File::of(value.clone()).expect_err(job);
        let _ = writeln!(said, "{job}\n  file   {in_a_file}");
        if let Some((tool, told)) = told_by_another(&value) {
            others += 1;
            let _ = writeln!(said, "  {tool:<6} {told}");
            if told.contains("`.") || !told.starts_with('-') {
                let _ = writeln!(wrong, "{job}: a setting has no option of {tool}: {told}");
            }
            continue;
        }
        let line = match Line::of(&value) {
            Ok(line) => line,
            Err(why) => {
                let _ = writeln!(said, "  -      {why}");
                continue;
            }
        };
        let words = line.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let _ = writeln!(said, "  typed  netdyno {words}");
        let Some(told) = told(&line) else {
            let _ = writeln!(said, "  -      that is another job, which fits");
            continue;
        };
        typed += 1;
        let _ = writeln!(said, "         {told}");
        let names_a_setting = |from: &str| from.starts_with(|c: char| c.is_ascii_lowercase());
        if told.split("`.").skip(1).any(names_a_setting) {
            let _ = writeln!(wrong, "{words}: a setting has no name there: {told}");
        }
        for option in options(&told) {
            let known = |arg: &clap::Arg| {
                arg.get_long() == Some(option)
                    || arg.get_all_aliases().is_some_and(|all| all.contains(&option))
            };
            let typed = line.words.iter().any(|word| word.strip_prefix("--") == Some(option));
            if !typed && !line.command.get_arguments().any(known) {
                let verb = line.verb.words().join(" ");
                let _ = writeln!(wrong, "{words}: netdyno {verb} has no --{option}: {told}");
            }
        }
    }
    assert!(typed > 200 && others > 50, "{typed}, {others}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/rules.txt");
    if std::env::var_os("NETDYNO_BLESS").is_some() {
        std::fs::write(&path, &said).expect("written");
    }
    assert!(wrong.is_empty(), "{wrong}");
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = golden.lines().zip(said.lines()).find(|(was, is)| was != is);
    assert!(golden == said, "{differs:?}: look at the difference, then NETDYNO_BLESS=1");
}

#[test]
fn a_setting_is_called_as_the_verb_calls_it() {
    let search = Verb::named("endpoint-search", Some("transactions"));
    let stream = Verb::named("endpoint", None);
    for (verb, path, typed) in [
        (&search, "endpoint.duration", "--trial-duration"),
        (&search, "duration", "--trial-duration"),
        (&search, "endpoint.test", "--test"),
        (&search, "find.transactions.max", "--max"),
        (&stream, "duration", "--duration"),
        (&stream, "test", "TEST"),
    ] {
        assert_eq!(wording::called(verb, path).as_deref(), Some(typed), "{path}");
    }
}
