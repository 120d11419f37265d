//! A file of jobs: YAML or JSON, one job or several.
//!
//! What is wrong is named by its path in the file, `jobs[1].rate`.

use crate::Job;
use crate::kind::Kind;
use crate::setting::{Member, each};
#[cfg(not(feature = "without-schemas"))]
use schemars::Schema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The layout's name and version.
pub const SCHEMA: &str = "netdyno.job/1";

/// More jobs than anybody runs side by side on one machine.
const MOST: usize = 256;

/// Why a file is none of jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFile {
    /// It is no YAML.
    #[error(transparent)]
    Yaml(#[from] Box<scenario::ScenarioError>),
    /// A member is wrong.
    #[error("{path}: {what}")]
    Member {
        /// Where: `jobs[1].rate`.
        path: String,
        /// What is wrong, and the mend.
        what: String,
    },
}

/// A job with a path that no text can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a path in the job is not text in UTF-8, so that no file can hold it: rename what it names")]
pub struct NotText;

impl Job {
    /// As it stands in a result: the members of a file of one job.
    ///
    /// # Errors
    /// A path in it is not text in UTF-8.
    pub fn to_value(&self) -> Result<Value, NotText> {
        serde_json::to_value(One { schema: SCHEMA, job: self }).map_err(|_| NotText)
    }
}

fn bad(path: impl Into<String>, what: impl Into<String>) -> BadFile {
    BadFile::Member { path: path.into(), what: what.into() }
}

/// One or several jobs, run side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// In the order of the file.
    pub jobs: Vec<Job>,
}

/// As it is written when there is one job: its members beside the layout's name.
#[derive(Serialize)]
struct One<'a> {
    schema: &'static str,
    #[serde(flatten)]
    job: &'a Job,
}

#[derive(Serialize)]
struct Several<'a> {
    schema: &'static str,
    jobs: &'a [Job],
}

impl File {
    /// As JSON, which is YAML, too; a newline at its end.
    ///
    /// # Errors
    /// A path in it is not text in UTF-8.
    pub fn to_text(&self) -> Result<String, NotText> {
        let written = match &self.jobs[..] {
            [job] => serde_json::to_string_pretty(&One { schema: SCHEMA, job }),
            jobs => serde_json::to_string_pretty(&Several { schema: SCHEMA, jobs }),
        };
        written.map(|text| text + "\n").map_err(|_| NotText)
    }

    /// Reads YAML or JSON; `name` is the file's, for messages.
    ///
    /// # Errors
    /// What is wrong, where, and the mend.
    pub fn read(text: &str, name: &str) -> Result<File, BadFile> {
        File::of(scenario::value(text, name).map_err(Box::new)?)
    }

    /// From JSON that was read already.
    ///
    /// # Errors
    /// What is wrong, where, and the mend.
    pub fn of(value: Value) -> Result<File, BadFile> {
        let Value::Object(mut members) = value else {
            return Err(bad("the file", format!("it holds no members: begin with `schema: {SCHEMA}`")));
        };
        match members.remove("schema") {
            Some(Value::String(schema)) if schema == SCHEMA => {}
            Some(Value::String(schema)) if schema.starts_with("netdyno.job/") => {
                let what = format!("`{schema}` is of another version; this one reads {SCHEMA}");
                return Err(bad("schema", what));
            }
            Some(other) => return Err(bad("schema", format!("{other} is not `{SCHEMA}`"))),
            None => return Err(bad("schema", format!("it is missing: write `schema: {SCHEMA}`"))),
        }
        let Some(jobs) = members.remove("jobs") else {
            return Ok(File { jobs: vec![checked(members, "")?] });
        };
        if let Some(other) = members.keys().next() {
            let what = "there is no such member beside `jobs`: put it into one of the jobs";
            return Err(bad(other, what));
        }
        let Value::Array(jobs) = jobs else { return Err(bad("jobs", "it must be a list of jobs")) };
        if jobs.is_empty() || jobs.len() > MOST {
            return Err(bad("jobs", format!("{} jobs: there must be 1 to {MOST}", jobs.len())));
        }
        let jobs = jobs.into_iter().enumerate().map(|(number, value)| {
            let path = format!("jobs[{number}]");
            let Value::Object(members) = value else { return Err(bad(path, "a job has members")) };
            checked(members, &format!("{path}."))
        });
        Ok(File { jobs: jobs.collect::<Result<_, _>>()? })
    }
}

/// The kinds there are, in words.
fn kinds() -> String {
    let [others @ .., last] = Job::KINDS else { return String::new() };
    format!("{} or {last}", others.join(", "))
}

/// The same, if it makes sense.
fn checked(members: Map<String, Value>, path: &str) -> Result<Job, BadFile> {
    let job = job(members, path)?;
    job.check().map_err(|found| bad(format!("{path}{}", found.member), found.what))?;
    Ok(job)
}

/// A job of its members, which stand at `path`.
fn job(mut members: Map<String, Value>, path: &str) -> Result<Job, BadFile> {
    let at = |member: &str| format!("{path}{member}");
    let kind = match members.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(other) => return Err(bad(at("kind"), format!("{other} is no kind of job: write {}", kinds()))),
        None => return Err(bad(at("kind"), format!("it is missing: write {}", kinds()))),
    };
    if let Some(find) = members.get_mut("find") {
        plain(find);
    }
    Job::of_members(&kind, Value::Object(members), path)
        .unwrap_or_else(|| Err(bad(at("kind"), format!("`{kind}` is no kind of job: write {}", kinds()))))
}

/// A search of which nothing is said but its name: `find: throughput`, `find: {throughput: }`.
fn plain(find: &mut Value) {
    match find {
        Value::String(name) => {
            let name = std::mem::take(name);
            *find = serde_json::json!({ name: {} });
        }
        Value::Object(members) => {
            for member in members.values_mut().filter(|member| member.is_null()) {
                *member = Value::Object(Map::new());
            }
        }
        _ => {}
    }
}

/// What holds a kind of job, out of its members, which stand at `path`.
pub(crate) fn members<T: DeserializeOwned + Kind>(members: Value, path: &str) -> Result<T, BadFile> {
    serde_path_to_error::deserialize(members).map_err(|error| {
        let within = error.path().to_string();
        let what = error.inner().to_string();
        // Of the whole job the path has no name.
        let path = match within.as_str() {
            "." => path.trim_end_matches('.').to_owned(),
            within => format!("{path}{within}"),
        };
        let what = match unknown(&what, &within, T::settings()) {
            Some(mend) => mend,
            None => what,
        };
        bad(if path.is_empty() { "the job".to_owned() } else { path }, what)
    })
}

/// What serde says of a member that there is not, in our words; `at`: its path within the job, `bench.rate`.
fn unknown(said: &str, at: &str, settings: &'static [Member]) -> Option<String> {
    let rest = said.strip_prefix("unknown field `")?;
    let (name, rest) = rest.split_once('`')?;
    let there = rest.split_once("expected ").map_or("", |(_, there)| there).replace("one of ", "");
    let names = there.split(", ").map(|name| name.trim_matches('`'));
    let within = at.strip_suffix(name).map_or(at, |before| before.trim_end_matches('.'));
    if let Some(meant) = by_its_option(name, within, settings) {
        let here = if within.is_empty() { String::new() } else { format!(" in `{within}`") };
        return Some(format!("there is no member `{name}`{here}; {meant}"));
    }
    let near = traffic::expr::did_you_mean(name, names);
    Some(format!("there is no member `{name}`{near}there are {}", there.replace('`', "")))
}

/// What a file says instead of a member that is called as an option of the command line is, or that stands elsewhere in the job than in
/// `here`.
fn by_its_option(name: &str, here: &str, settings: &'static [Member]) -> Option<String> {
    let is_it = |option: &str| option.replace('-', "_") == name;
    let mut meant = None;
    each(settings, &mut |path, setting| {
        let (within, own) = path.rsplit_once('.').unwrap_or(("", path));
        let place = match within {
            "" if here.is_empty() => String::new(),
            "" => " beside `kind`".to_owned(),
            within => format!(" in `{within}`"),
        };
        if own == name && setting.option.is_some_and(is_it) {
            // Where it stands rightly it would not be unknown.
            if within != here {
                meant.get_or_insert(format!("it stands{place}"));
            }
            return;
        }
        let shorthand = setting.shorthands.iter().find(|shorthand| is_it(shorthand.option));
        let said = match shorthand {
            Some(_) if own == "links" => {
                format!("interfaces are said by `links`{place}: [{{on: IFACE, measure: IFACE}}]")
            }
            Some(shorthand) if shorthand.means.contains("{}") => match shorthand.rest {
                Some(rest) => format!("write `{own}` and `{rest}`{place}"),
                None => format!("write `{own}`{place}"),
            },
            Some(shorthand) => format!("write `{own}: {}`{place}", shorthand.means),
            None if setting.option.is_some_and(is_it) || setting.aliases.iter().any(|alias| is_it(alias)) => {
                format!("write `{own}`{place}")
            }
            None => return,
        };
        meant.get_or_insert(said);
    });
    meant
}

impl<'de> Deserialize<'de> for Job {
    /// A job as it stands in a file or a result, with its kind.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Job, D::Error> {
        let members = Map::deserialize(deserializer)?;
        job(members, "").map_err(serde::de::Error::custom)
    }
}

/// The JSON Schema of a file of jobs.
#[cfg(not(feature = "without-schemas"))]
pub fn schema() -> Schema {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let job = generator.subschema_for::<Job>();
    let mut definitions = generator.take_definitions(true);
    // In a file of one job the layout's name stands among the job's own members, and each kind of job refuses others.
    let mut one = definitions.get("Job").cloned().unwrap_or_default();
    for kind in one.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(members) = kind.get_mut("properties").and_then(Value::as_object_mut) {
            members.insert("schema".to_owned(), serde_json::json!({ "const": SCHEMA }));
        }
    }
    definitions.insert("OneJob".to_owned(), one);
    let mut schema = schemars::json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "What netdyno is to do: one job, or several that run side by side.",
        "type": "object",
        "required": ["schema"],
        "anyOf": [
            {
                "required": ["jobs"],
                "properties": {
                    "schema": { "const": SCHEMA },
                    "jobs": { "type": "array", "minItems": 1, "maxItems": MOST, "items": job },
                },
                "additionalProperties": false,
            },
            { "$ref": "#/$defs/OneJob" },
        ],
    });
    schema.insert("$defs".to_owned(), Value::Object(definitions));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(text: &str) -> String {
        File::read(text, "job.yaml").expect_err(text).to_string()
    }

    #[test]
    fn a_file_holds_one_job_or_several() {
        let one = File::read("schema: netdyno.job/1\nkind: measure\non: rx0\nduration: 5s\n", "job.yaml")
            .expect("one");
        let [Job::Measure(job)] = &one.jobs[..] else { panic!("{one:?}") };
        assert_eq!((&*job.on, job.duration.as_ref().map(|time| time.text())), ("rx0", Some("5s")));
        let several = File::read(
            "{schema: netdyno.job/1, jobs: [{kind: reflect, on: a}, {kind: send, what: ipv4/udp, rate: top, size: 64}]}",
            "job.yaml",
        );
        let several = several.expect("several");
        assert_eq!(several.jobs.iter().map(Job::kind).collect::<Vec<_>>(), ["reflect", "send"]);
        for file in [one, several] {
            let text = file.to_text().expect("text");
            assert!(text.starts_with("{\n  \"schema\": \"netdyno.job/1\",\n"), "{text}");
            assert_eq!(File::read(&text, "job.json").expect("what was written"), file);
            let json: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(File::of(json).expect("the same"), file);
        }
    }

    /// docs/jobs.md: a row for each kind, in their order, whose example is a whole job.
    #[test]
    fn the_documents_list_each_kind_with_an_example_that_is_read() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/jobs.md"))
            .expect("the page");
        let rows = page.lines().skip_while(|line| !line.starts_with("| `kind` |")).skip(2);
        let mut listed = Vec::new();
        for row in rows.take_while(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
            let [kind, _, _, example] = cells[..] else { panic!("{row}") };
            let kind = kind.trim_matches('`');
            let members: Vec<&str> = example.split('`').skip(1).step_by(2).collect();
            let text = format!("{{schema: netdyno.job/1, kind: {kind}, {}}}", members.join(", "));
            let file = File::read(&text, "docs/jobs.md").unwrap_or_else(|error| panic!("{row}: {error}"));
            assert_eq!(file.jobs[0].kind(), kind);
            listed.push(kind);
        }
        assert_eq!(listed, Job::KINDS);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        let jobs =
            |second: &str| format!("schema: netdyno.job/1\njobs:\n- {{kind: reflect, on: a}}\n- {second}\n");
        for (second, says) in [
            ("{kind: send, what: ipv4, rate: 5}", "jobs[1].rate: `5` has no unit"),
            ("{kind: send, what: ipv4, rate: fast}", "jobs[1].rate: `fast` is not a rate"),
            ("{kind: send, what: ipv4, duration: 5}", "jobs[1].duration: `5` is not a duration: write 5s"),
            ("{kind: send, rate: top}", "jobs[1].what: what is to be sent?"),
            (
                "{kind: send, what: ipv4, plugin: {name: x}}",
                "jobs[1].plugin: it says what is sent, and so does",
            ),
            ("{kind: send, plugin: {nmae: x}}", "jobs[1].plugin"),
            (
                "{kind: send, what: ipv4, ratte: top}",
                "there is no member `ratte`; did you mean `rate`? there are what, plugin, links",
            ),
            ("{kind: send, what: ipv4, links: [{on: a, mesure: b}]}", "jobs[1].links[0]"),
            // As the command line calls it.
            (
                "{kind: send, what: ipv4, measure: b}",
                "there is no member `measure`; interfaces are said by `links`: [{on: IFACE, measure: IFACE}]",
            ),
            (
                "{kind: trial, rate: top, measure: b}",
                "there is no member `measure`; interfaces are said by `links` in `bench`: [{on: IFACE",
            ),
            ("{kind: send, what: ipv4, topspeed: true}", "`topspeed`; write `rate: top`"),
            ("{kind: send, what: ipv4, lab_bottleneck: 5mbps}", "write `bottleneck` in `lab`"),
            // It is one, in another place.
            (
                "{kind: trial, rate: 5pps, bench: {lab: {}, rate: 5pps}}",
                "jobs[1].bench.rate: there is no member `rate` in `bench`; it stands beside `kind`",
            ),
            (
                "{kind: clone, from: 'eth0:80', to: 'b:1'}",
                "there is no member `from`; write `on` and `server`",
            ),
            ("{kind: measure, on: a, meter: xdp}", "there is no member `meter`; write `how`"),
            ("{kind: send, what: ipv4, engine: dpdk}", "jobs[1].engine: unknown variant `dpdk`"),
            (
                "{kind: search, find: {throughput: {finding: {method: guess}}}}",
                "jobs[1].find.throughput.finding.method",
            ),
            ("{kind: sned}", "jobs[1].kind: `sned` is no kind of job"),
            ("{on: a}", "jobs[1].kind: it is missing"),
            ("5", "jobs[1]: a job has members"),
        ] {
            let error = error(&jobs(second));
            assert!(error.contains(says), "{second}: {error}");
        }
        for (file, says) in [
            ("kind: measure\non: a\n", "schema: it is missing: write `schema: netdyno.job/1`"),
            ("schema: netdyno.job/2\n", "`netdyno.job/2` is of another version"),
            ("schema: netdyno.report/2\n", "is not `netdyno.job/1`"),
            ("schema: netdyno.job/1\njobs: []\n", "jobs: 0 jobs"),
            ("schema: netdyno.job/1\njobs: 5\n", "jobs: it must be a list"),
            ("schema: netdyno.job/1\nrate: 5\njobs: [5]\n", "rate: there is no such member beside `jobs`"),
            ("[1]", "the file: it holds no members"),
            ("schema: [", "job.yaml:1:"),
        ] {
            let error = error(file);
            assert!(error.contains(says), "{file}: {error}");
        }
    }

    /// Kept in the repository, so that a change of the layout is seen: `NETDYNO_BLESS=1 cargo test -p netdyno-spec`.
    #[test]
    fn the_published_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/job.schema.json");
        let made = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
        if std::env::var_os("NETDYNO_BLESS").is_some() {
            std::fs::write(path, &made).expect("written");
        }
        assert_eq!(made, std::fs::read_to_string(path).unwrap_or_default(), "see the comment above");
    }

    #[test]
    fn a_job_reads_as_it_is_written() {
        let job = json!({"kind": "replay", "captures": ["a.pcap"], "links": [{"on": "tx0", "measure": "rx0"}],
            "loop": 3, "loss": {"share": "1%"}, "edits": {"vlan_add": 5}});
        let read: Job = serde_json::from_value(job).expect("a job");
        let again: Job =
            serde_json::from_value(serde_json::to_value(&read).expect("JSON")).expect("the same");
        assert_eq!(read, again);
    }
}
