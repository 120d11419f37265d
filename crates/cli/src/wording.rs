//! The settings that libraries speak of, in the words of the command line.

use clap::CommandFactory as _;
use report::worded;
use spec::setting::{self, Member};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What libraries speak of as of settings and crate `spec` cannot declare as such: options of verbs that are no jobs, verbs, several options
/// at once, and a setting of which a word alone (`password_file`) would be another one's.
const OTHERWISE: &[(&str, &str)] = &[
    ("agents_copy", "--agents-copy"),
    ("at", "--at"),
    ("agents_timeout", "--agents-timeout"),
    ("calibrate", "`netdyno doctor IFACE --calibrate --save FILE`"),
    ("json", "`--json`"),
    ("keep", "`--keep FOLDER`"),
    ("lab.queues", "--queues"),
    ("links", "--on and --measure"),
    ("links: [{on: eth1}]", "--on eth1"),
    ("links: [{on: eth1, measure: eth2}]", "--on eth1 --measure eth2"),
    ("links[1].measure", "--measure2"),
    ("links[1].on", "--on2"),
    ("password_file", "--clickhouse-password-file"),
    ("reflect", "`netdyno reflect --on IFACE`"),
    ("clean", "`netdyno clone return --clean`"),
    ("doctor_there", "`netdyno clone doctor --from IFACE:PORT --to TARGET`"),
    ("return_agent", "`netdyno clone return --on IFACE --server :PORT --engine ADDRESS`"),
    ("report", "`--report DIR`"),
    ("since", "--since"),
    ("to_ethernet", "`netdyno replay --to-ethernet --src-mac MAC --dst-mac MAC`"),
];

/// Jobs of a file are spoken of in the words of the file.
static OF_A_FILE: AtomicBool = AtomicBool::new(false);

/// Options are those of another tool, which has none of most settings.
static OF_A_DROP_IN: AtomicBool = AtomicBool::new(false);

/// The verb that was typed.
static VERB: OnceLock<Verb> = OnceLock::new();

/// A verb of ours that makes a job: what its options are called there, where one setting has other names with other verbs.
#[derive(Debug)]
pub struct Verb {
    words: Vec<&'static str>,
    of_job: &'static [Member],
    /// What is searched for, and its settings.
    find: Option<(&'static str, &'static [Member])>,
}

impl Verb {
    /// The one that makes such a job.
    pub fn of(job: &spec::Job) -> Verb {
        let find = match job {
            spec::Job::Search(search) => Some(search.find.name()),
            spec::Job::EndpointSearch(search) => Some(search.find.name()),
            spec::Job::SessionsSearch(search) => Some(search.find.name()),
            _ => None,
        };
        Verb::named(job.kind(), find)
    }

    /// The one for jobs of this kind, and of a search for what is searched for.
    pub fn named(kind: &'static str, find: Option<&'static str>) -> Verb {
        let words = match (kind, find) {
            ("endpoint-server", _) => vec!["endpoint", "serve"],
            ("sessions-server", _) => vec!["sessions", "serve"],
            ("clone-capture", _) => vec!["clone", "capture"],
            ("clone-return", _) => vec!["clone", "return"],
            (_, Some(find)) => vec!["search", find],
            (kind, None) => vec![kind],
        };
        let of_job = spec::Job::SETTINGS.iter().find(|(word, _)| *word == kind);
        let find = find.and_then(|find| searches().find(|(search, _)| *search == find));
        Verb { words, of_job: of_job.map_or(&[], |(_, members)| members()), find }
    }

    /// Its words.
    #[cfg(test)]
    pub fn words(&self) -> &[&'static str] {
        &self.words
    }

    /// Its command line, if it is one of ours: other tools' verbs have their own names for everything.
    pub fn command(&self) -> Option<&'static clap::Command> {
        let ours = crate::cli::help::is_ours(&self.words.join(" "));
        let mut words = self.words.iter().filter(|_| ours);
        let first = root().find_subcommand(words.next()?);
        words.try_fold(first?, |above, word| above.find_subcommand(word))
    }

    /// How interfaces are typed there: by one option, where the verb has no other.
    fn links(&self, path: &str) -> Option<String> {
        let command = self.command().filter(|_| path == "links" || path.ends_with(".links"))?;
        let is_there = |name: &&str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
        let all = ["on", "measure"].into_iter().filter(is_there).map(|name| format!("--{name}"));
        Some(all.collect::<Vec<_>>().join(" and ")).filter(|typed| !typed.is_empty())
    }

    /// The option that said a setting of this job together with another one: `--from eth0:80` says `on` and `server`.
    fn with_another(&self, job: &spec::Job, path: &str) -> Option<String> {
        let (mut typed, value) = (None, job.to_value().ok()?);
        setting::each(self.of_job, &mut |own, setting| {
            let both = setting.shorthands.iter().find(|shorthand| shorthand.rest == Some(path));
            let is_said = value.get(own).is_some_and(|value| !value.is_null());
            typed = typed.take().or(both.filter(|_| is_said).map(|both| format!("--{}", both.option)));
        });
        typed
    }

    /// How a setting is typed there.
    fn option(&self, path: &str) -> Option<String> {
        let of_find = self.find.and_then(|(name, members)| {
            let own = path.strip_prefix("find.").and_then(|path| path.strip_prefix(name)?.strip_prefix('.'));
            self.among(own.unwrap_or(path), members)
        });
        let prefixed = path.starts_with("find.");
        if prefixed { of_find } else { self.among(path, self.of_job).or(of_find) }
    }

    /// How a setting among these is typed there.
    fn among(&self, path: &str, members: &'static [Member]) -> Option<String> {
        let (name, value) = path.split_once(": ").map_or((path, None), |(path, value)| (path, Some(value)));
        let setting = setting_of(name, members)?;
        let id = setting.option.unwrap_or(setting.name);
        let command = self.command()?;
        let arg = command.get_arguments().find(|arg| arg.get_id().as_str() == id);
        // What its shorthands alone say has no option of its own.
        let own = arg.filter(|_| setting.is_typed()).and_then(clap::Arg::get_long);
        let renamed = own.filter(|long| setting.option != Some(*long));
        match renamed {
            None => declared(path, members),
            Some(long) => {
                Some(format!("--{long}{}", value.map_or_else(String::new, |value| format!(" {value}"))))
            }
        }
    }
}

/// From now on settings are called as the verb calls them that makes such a job.
pub fn as_typed(job: &spec::Job) {
    // The first one: who runs an earlier result's job typed another verb, and has no other words for it.
    let _ = VERB.set(Verb::of(job));
}

/// From now on no option is named that the drop-in for tcpreplay would refuse: they are those of our own verb.
pub fn as_a_drop_in() {
    OF_A_DROP_IN.store(true, Relaxed);
}

/// From now on settings are called as a file of jobs calls them.
pub fn as_in_a_file() {
    OF_A_FILE.store(true, Relaxed);
}

/// What a library says, in the words of who asked for the job.
pub fn said(text: &str) -> Cow<'_, str> {
    match (OF_A_FILE.load(Relaxed), OF_A_DROP_IN.load(Relaxed)) {
        (true, _) => worded(text, beside_a_file),
        (false, true) => worded(text, of_the_drop_in),
        (false, false) => typed(text),
    }
}

/// What is no member of a job, but an option of the verb that runs its file.
fn beside_a_file(setting: &str) -> Option<String> {
    const OF_THE_VERB: [&str; 3] = ["continue", "json", "report"];
    OF_THE_VERB.contains(&setting).then(|| option(setting))?
}

/// How a setting is typed beside the drop-in for tcpreplay.
fn of_the_drop_in(setting: &str) -> Option<String> {
    if let Some((_, own)) = crate::compat::tcpreplay::CALLED.iter().find(|(name, _)| *name == setting) {
        return Some((*own).to_owned());
    }
    let typed = option(setting)?;
    Some(if typed.contains('`') { typed } else { format!("{typed} of `netdyno replay`") })
}

/// In the words of the command line.
pub fn typed(text: &str) -> Cow<'_, str> {
    worded(text, option)
}

/// The setting that a path names, or the first of those that a path to a struct of settings holds: that one is typed to have the others.
fn setting_of(path: &str, members: &'static [Member]) -> Option<&'static setting::Setting> {
    let within = || {
        let mut first = None;
        setting::each(members, &mut |at, setting| {
            let below = at.rsplit_once('.').map_or("", |(above, _)| above);
            let is_it = below.strip_suffix(path).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
            first = first.or(is_it.then_some(setting));
        });
        first
    };
    setting::named(members, path).or_else(within)
}

/// How a setting among these is typed; with a value (`rate: top`), how that is.
fn declared(path: &str, members: &'static [Member]) -> Option<String> {
    let (path, value) = path.split_once(": ").map_or((path, None), |(path, value)| (path, Some(value)));
    let setting = setting_of(path, members)?;
    let shorthand = setting.shorthands.iter().find(|shorthand| Some(shorthand.means) == value);
    let first = setting.shorthands.first().filter(|_| value.is_none());
    match (shorthand, setting.option, value) {
        (Some(shorthand), ..) => Some(format!("--{}", shorthand.option)),
        (None, Some(option), Some(value)) if setting.shape == setting::Shape::One => {
            Some(format!("--{option} {value}"))
        }
        (None, Some(option), _) => Some(format!("--{option}")),
        (None, None, _) => match first {
            Some(shorthand) => Some(format!("--{}", shorthand.option)),
            // By its place.
            None => value.is_none().then(|| setting.value.to_owned()).filter(|_| setting.is_typed()),
        },
    }
}

/// How a setting of any kind of job, or of a search, is typed.
fn declared_anywhere(path: &str) -> Option<String> {
    let of_kinds = spec::Job::SETTINGS.iter().map(|(_, members)| members());
    let mut all = of_kinds.chain(searches().map(|(_, members)| members));
    of_search(path).or_else(|| all.find_map(|members| declared(path, members)))
}

/// Of each search its name and its settings.
fn searches() -> impl Iterator<Item = (&'static str, &'static [Member])> {
    let between = spec::EndpointFind::SETTINGS.iter().chain(spec::SessionsFind::SETTINGS);
    spec::Find::SETTINGS.iter().chain(between).copied()
}

/// A setting of a search by its path in the job: `find.loss.step`.
fn of_search(path: &str) -> Option<String> {
    let (name, path) = path.strip_prefix("find.")?.split_once('.')?;
    let (_, members) = searches().find(|(search, _)| *search == name)?;
    declared(path, members)
}

/// What contradicts itself in a job that was typed, in the words that were typed.
pub fn contradiction(job: &spec::Job, wrong: &spec::Contradiction) -> String {
    let verb = Verb::of(job);
    let what = worded(&wrong.what, |setting| option_of(Some(&verb), setting));
    format!("{}: {what}", path(job, &verb, &wrong.member))
}

/// What contradicts itself in a job that was typed as another tool's command line; `called` knows that tool's options by the settings that
/// they make.
pub fn contradiction_of_another(
    wrong: &spec::Contradiction,
    called: impl Fn(&str) -> Option<String>,
) -> String {
    let member = called(&wrong.member).unwrap_or_else(|| format!("`.{}`", wrong.member));
    format!("{member}: {}", worded(&wrong.what, called))
}

/// How the setting at a path of this job is typed; the path, where it is not.
fn path(job: &spec::Job, verb: &Verb, path: &str) -> String {
    let end = || {
        let (link, end) = path.rsplit_once("].")?;
        let second = matches!(job, spec::Job::Replay(_)) && link.ends_with("[1");
        Some(format!("--{end}{}", if second { "2" } else { "" }))
    };
    end()
        .or_else(|| verb.with_another(job, path))
        .or_else(|| verb.links(path))
        .or_else(|| verb.option(path))
        .or_else(|| listed(path.rsplit('.').next().unwrap_or(path)))
        .or_else(|| option_of(Some(verb), path))
        .unwrap_or_else(|| format!("`.{path}`"))
}

/// What a declaration says of a setting, beside these. Which options there are must not be asked here: they are made of it. A test
/// holds that they exist.
pub fn in_help<'t>(text: &'t str, members: &'static [Member]) -> Cow<'t, str> {
    worded(text, |setting| {
        let elsewhere =
            || if setting.contains('.') { declared_anywhere(setting) } else { Some(alike(setting)) };
        declared(setting, members).or_else(|| listed(setting)).or_else(elsewhere)
    })
}

/// How a setting of the table above is typed.
fn listed(setting: &str) -> Option<String> {
    OTHERWISE.iter().find(|(name, _)| *name == setting).map(|(_, typed)| (*typed).to_owned())
}

/// As it is called.
fn alike(setting: &str) -> String {
    format!("--{}", setting.replace('_', "-"))
}

/// How a setting is typed with this verb.
#[cfg(test)]
pub fn called(verb: &Verb, setting: &str) -> Option<String> {
    option_of(Some(verb), setting)
}

/// How a setting is typed.
fn option(setting: &str) -> Option<String> {
    option_of(VERB.get(), setting)
}

/// How a setting is typed with this verb, or else with any.
fn option_of(verb: Option<&Verb>, setting: &str) -> Option<String> {
    verb.and_then(|verb| verb.links(setting))
        .or_else(|| listed(setting))
        .or_else(|| verb?.option(setting))
        .or_else(|| member(setting))
        .or_else(|| declared_anywhere(setting))
}

/// What is typed as it is called.
fn member(setting: &str) -> Option<String> {
    let name = setting.strip_prefix("endpoint.").unwrap_or(setting);
    // What is typed by its place.
    if ["host", "what"].contains(&name) {
        return Some(name.to_uppercase());
    }
    Some(alike(name)).filter(|typed| options().contains(typed))
}

/// The command line as it is declared.
pub fn root() -> &'static clap::Command {
    static ROOT: OnceLock<clap::Command> = OnceLock::new();
    ROOT.get_or_init(crate::cli::Cli::command)
}

/// The long options of all commands.
fn options() -> &'static BTreeSet<String> {
    fn gather(command: &clap::Command, found: &mut BTreeSet<String>) {
        found.extend(command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))));
        command.get_subcommands().for_each(|below| gather(below, found));
    }
    static OPTIONS: OnceLock<BTreeSet<String>> = OnceLock::new();
    OPTIONS.get_or_init(|| {
        let mut found = BTreeSet::new();
        gather(root(), &mut found);
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    /// What is typed on a command line is known here and nowhere else; an agent's client is not its user, who is told how to start
    /// it and how it reaches a server.
    const CLIENTS: [&str; 5] = ["cli", "bench", "agent", "nats", "serve"];
    /// Options of other programs, and how an agent is started somewhere else.
    const OF_OTHERS: [&str; 4] = [
        "ss --xdp",
        "mount --bind",
        "cargo build --release --target wasm32-unknown-unknown",
        "netdyno agent --stdio",
    ];

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// The lines of all libraries that are neither comments nor tests, with where they stand.
    fn lines_of_libraries() -> Vec<(String, String)> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates");
        let mut files = Vec::new();
        for entry in std::fs::read_dir(crates).expect("the folder of crates") {
            let path = entry.expect("an entry").path();
            if !CLIENTS.iter().any(|client| path.ends_with(client)) && path.join("src").is_dir() {
                sources(&path.join("src"), &mut files);
            }
        }
        assert!(files.len() > 200, "{} files", files.len());
        files.retain(|file| !file.ends_with("tests.rs"));
        let lines = files.iter().flat_map(|file| {
            let text = std::fs::read_to_string(file).expect("a source");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let numbered = code.lines().enumerate();
            let said = numbered.filter(|(_, line)| !line.trim_start().starts_with("//"));
            said.map(|(at, line)| (format!("{}:{}", file.display(), at + 1), line.to_owned()))
                .collect::<Vec<_>>()
        });
        lines.collect()
    }

    #[test]
    fn a_file_of_jobs_has_its_own_words_and_options_where_it_has_no_member() {
        let told = worded("lower `.rate`, or add `.report`", beside_a_file);
        assert_eq!(told, "lower `.rate`, or add `--report DIR`");
    }

    #[test]
    fn every_setting_is_typed_as_an_option_that_there_is() {
        for (setting, typed) in OTHERWISE {
            let words = typed.split([' ', '`']).filter(|word| word.starts_with("--"));
            assert!(words.clone().count() > 0, "{setting}");
            words.for_each(|word| assert!(options().contains(word), "{setting}: there is no {word}"));
        }
    }

    #[test]
    fn what_libraries_say_of_settings_can_be_typed() {
        let mut spoken_of = BTreeSet::new();
        for (place, line) in lines_of_libraries() {
            for named in line.split("`.").skip(1).filter_map(|behind| behind.split_once('`')) {
                let (setting, name) =
                    (named.0, |c: char| c.is_ascii_lowercase() || "_.[]{},: 0123456789".contains(c));
                if setting.starts_with(|c: char| c.is_ascii_lowercase()) && setting.chars().all(name) {
                    // Ends of file names.
                    assert!(
                        option(setting).is_some() || ["gz", "zst", "pcapng", "ntar"].contains(&setting),
                        "{place}: {setting}"
                    );
                    spoken_of.insert(setting.to_owned());
                }
            }
        }
        for (setting, _) in OTHERWISE {
            assert!(spoken_of.contains(*setting), "no library speaks of {setting}");
        }
    }

    /// Rules between settings stand in crate `spec`. Without the dot a client cannot tell the setting that they name from any other word.
    #[test]
    fn rules_name_settings_so_that_each_client_can_word_them() {
        const RULES: [&str; 4] = ["check.rs", "cloning.rs", "endpoint.rs", "endpoint_search.rs"];
        let schema = include_str!("../../../docs/job.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
        let kinds = schema["$defs"].as_object().expect("definitions").values();
        let members: BTreeSet<&String> = kinds
            .filter_map(|kind| kind["properties"].as_object())
            .flat_map(|members| members.keys())
            .collect();
        assert!(members.len() > 150, "{}", members.len());
        let mut seen = 0;
        for (place, line) in lines_of_libraries() {
            if !RULES.iter().any(|file| place.contains(&format!("/spec/src/{file}:"))) {
                continue;
            }
            for quoted in line.split('`').skip(1).step_by(2) {
                let name = quoted.split(':').next().unwrap_or(quoted);
                assert!(!members.contains(&name.to_owned()), "{place}: write `.{quoted}`");
                seen += 1;
            }
        }
        assert!(seen > 80, "{seen} names");
    }

    #[test]
    fn declarations_name_settings_that_can_be_typed() {
        let mut named = 0;
        let of_kinds = spec::Job::SETTINGS.iter().map(|(kind, members)| (*kind, members()));
        for (kind, members) in of_kinds.chain(searches()) {
            setting::each(members, &mut |path, setting| {
                let of_shorthands = setting.shorthands.iter().flat_map(|of| [Some(of.text), of.brief]);
                let texts = [Some(setting.text), setting.brief].into_iter().chain(of_shorthands).flatten();
                let all = texts.collect::<Vec<_>>().join(" ");
                let text = in_help(&all, members);
                // What stands between two quotes, not what stands behind the second.
                let quoted = |text: &str| -> Vec<String> {
                    let inside = text.split('`').skip(1).step_by(2);
                    inside.filter_map(|inside| inside.strip_prefix('.')).map(str::to_owned).collect()
                };
                assert_eq!(quoted(&text), [""; 0], "{kind}: {path}: {text}");
                for other in quoted(&all) {
                    assert!(option(&other).is_some(), "{kind}: {path}: {other}");
                    named += 1;
                }
                let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                for word in words.filter(|word| word.starts_with("--")) {
                    assert!(options().contains(word), "{kind}: {path}: there is no {word}");
                }
            });
        }
        assert!(named > 5, "{named}");
    }

    #[test]
    fn no_library_names_an_option() {
        for (place, line) in lines_of_libraries() {
            let line = OF_OTHERS.iter().fold(line, |line, other| line.replace(other, ""));
            let mut dashes = line.match_indices("--").map(|(at, _)| &line[at + 2..]);
            let named = dashes.find(|behind| behind.starts_with(|c: char| c.is_ascii_lowercase()));
            assert_eq!(named, None, "{place}: name the setting, as `.rate` (report::setting)");
        }
    }

    #[test]
    fn jobs_of_a_file_are_spoken_of_as_in_the_file() {
        assert_eq!(typed("lower `.rate`, or `.preload: false`"), "lower --rate, or --stream");
        assert_eq!(said("lower `.rate`"), "lower --rate");
        // Members that only contradictions name.
        assert_eq!(typed("`.receive_method`: no"), "--receive-method: no");
        assert_eq!(typed("`.endpoint.host`: where?"), "HOST: where?");
        assert_eq!(typed("`.gz` and `.nothing_like_it`"), "`.gz` and `.nothing_like_it`");
        let beside = worded("give it `.cores`, or `.no_real_time`", of_the_drop_in);
        assert_eq!(beside, "give it --cores of `netdyno replay`, or --no-real-time");
        as_in_a_file();
        assert_eq!(said("lower `.rate`"), "lower `.rate`");
    }
}
