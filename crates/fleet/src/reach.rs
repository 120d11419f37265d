//! How agents are called, and the commands that reach them: an option `NAME=COMMAND`, or a file that lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The layout's name and version.
pub const INVENTORY: &str = "netdyno.inventory/1";

/// Letters of an agent's name, at most.
const NAME_BYTES: usize = 64;
/// Bytes of a command, at most: a shell takes more, and nobody types as much.
const COMMAND_BYTES: usize = 16 << 10;
/// More agents than one host can attend to.
pub const MOST: usize = 1024;
/// Interfaces and tags of one agent, at most.
const MOST_WORDS: usize = 256;

/// What an agent is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

/// A word that is no agent's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no name of an agent: write up to 64 letters, digits, `-`, `_` and `.`", report::units::printable(.0))]
pub struct BadName(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Name, BadName> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = (1..=NAME_BYTES).contains(&text.len()) && text.chars().all(fits);
        // `.` and `..` are folders, and a word that begins with `-` is an option.
        let is_name = is_name && text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if is_name { Ok(Name(text.to_owned())) } else { Err(BadName(text.to_owned())) }
    }
}

/// An agent, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// What it is called.
    pub name: Name,
    /// A shell's command whose standard input and output reach it.
    pub command: String,
    /// Its interfaces that are of interest; none: those that it grants.
    pub interfaces: Vec<String>,
    /// Words by which agents are chosen.
    pub tags: Vec<String>,
    /// Where servers of endpoint tests listen on its host, for a mesh.
    pub address: Option<String>,
    /// The program that runs there is this one: it is copied to the host, if it is not there yet.
    pub copies: bool,
}

/// An option that names no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadReach {
    /// Its name is none.
    #[error(transparent)]
    Name(#[from] BadName),
    /// It has no command.
    #[error("`{}` has no command: write NAME='COMMAND', such as lab1='ssh lab1 netdyno agent --stdio'", report::units::printable(.0))]
    NoCommand(String),
    /// Its command is none.
    #[error("{name}: {what}")]
    Command {
        /// Which agent.
        name: Name,
        /// What is wrong.
        what: &'static str,
    },
}

/// What is wrong with a command, if anything is.
fn bad_command(command: &str) -> Option<&'static str> {
    match command {
        command if command.trim().is_empty() => Some("the command is empty"),
        command if command.len() > COMMAND_BYTES => Some("the command has more than 16384 bytes"),
        command if command.contains('\0') => Some("the command has a byte 0"),
        _ => None,
    }
}

impl FromStr for Reach {
    type Err = BadReach;

    fn from_str(text: &str) -> Result<Reach, BadReach> {
        let Some((name, command)) = text.split_once('=') else {
            return Err(BadReach::NoCommand(text.to_owned()));
        };
        let name: Name = name.parse()?;
        if command.trim().is_empty() {
            return Err(BadReach::NoCommand(text.to_owned()));
        }
        match bad_command(command) {
            Some(what) => Err(BadReach::Command { name, what }),
            None => Ok(Reach {
                name,
                command: command.to_owned(),
                interfaces: Vec::new(),
                tags: Vec::new(),
                address: None,
                copies: false,
            }),
        }
    }
}

/// A file that lists agents, as it is written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Inventory {
    /// Name and major version of this layout.
    #[schemars(extend("const" = INVENTORY))]
    #[expect(dead_code, reason = "it was looked at before")]
    schema: String,
    /// The agents by their names: up to 64 letters, digits, `-`, `_` and `.`.
    agents: BTreeMap<String, Entry>,
}

/// One agent of such a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// A shell's command whose standard input and output reach the agent.
    command: String,
    /// Its interfaces that are of interest; none: those that it grants.
    #[serde(default)]
    interfaces: Vec<String>,
    /// Words by which agents are chosen.
    #[serde(default)]
    tags: Vec<String>,
    /// Address of its host at which servers of endpoint tests listen: a mesh names the agent alone then (`@lab1`).
    #[serde(default)]
    address: Option<String>,
    /// Copy netdyno to the host, and run it there. Default: what the command names is there.
    #[serde(default)]
    copy: bool,
}

/// Why a file is none of agents.
#[derive(Debug, thiserror::Error)]
pub enum BadInventory {
    /// It is no YAML.
    #[error(transparent)]
    Yaml(#[from] Box<scenario::ScenarioError>),
    /// A member is wrong.
    #[error("{file}: {path}: {what}")]
    Member {
        /// The file's name.
        file: String,
        /// Where: `agents.lab1.command`.
        path: String,
        /// What is wrong, and the mend.
        what: String,
    },
}

/// Reads a file of agents, YAML or JSON; `name` is the file's, for messages.
///
/// # Errors
/// What is wrong, where, and the mend.
pub fn inventory(text: &str, name: &str) -> Result<Vec<Reach>, BadInventory> {
    let bad = |path: &str, what: String| BadInventory::Member {
        file: name.to_owned(),
        path: report::units::printable(path),
        what,
    };
    let value = scenario::value(text, name).map_err(Box::new)?;
    match value.get("schema") {
        Some(Value::String(schema)) if schema == INVENTORY => {}
        Some(other) => {
            let other = report::units::printable(&other.to_string());
            return Err(bad("schema", format!("{other} is not {INVENTORY}, which this netdyno reads")));
        }
        None => return Err(bad("schema", format!("it is missing: write `schema: {INVENTORY}`"))),
    }
    let read: Inventory = serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        bad(
            if path == "." { "the file" } else { &path },
            report::units::printable(&error.inner().to_string()),
        )
    })?;
    if read.agents.is_empty() || read.agents.len() > MOST {
        return Err(bad("agents", format!("{} agents: there must be 1 to {MOST}", read.agents.len())));
    }
    let reach = |(name, entry): (String, Entry)| {
        let path = format!("agents.{name}");
        let name: Name = name.parse().map_err(|error: BadName| bad(&path, error.to_string()))?;
        if entry.address.as_deref().is_some_and(|address| address.is_empty() || address.contains([',', '@']))
        {
            return Err(bad(&format!("{path}.address"), "write one address, such as 10.0.0.1".to_owned()));
        }
        if let Some(what) = bad_command(&entry.command) {
            return Err(bad(&format!("{path}.command"), what.to_owned()));
        }
        for (member, words) in [("interfaces", &entry.interfaces), ("tags", &entry.tags)] {
            if words.len() > MOST_WORDS || words.iter().any(String::is_empty) {
                let what = format!("there may be up to {MOST_WORDS}, and none is empty");
                return Err(bad(&format!("{path}.{member}"), what));
            }
        }
        Ok(Reach {
            name,
            command: entry.command,
            interfaces: entry.interfaces,
            tags: entry.tags,
            address: entry.address,
            copies: entry.copy,
        })
    };
    read.agents.into_iter().map(reach).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_names_an_agent_and_its_command() {
        let reach: Reach = "lab1=ssh -o A=b lab1 netdyno agent --stdio".parse().unwrap();
        assert_eq!((reach.name.as_str(), &*reach.command), ("lab1", "ssh -o A=b lab1 netdyno agent --stdio"));
        for (text, says) in [
            ("lab1", "`lab1` has no command: write NAME='COMMAND'"),
            ("lab1=  ", "has no command"),
            ("=ssh", "`` is no name of an agent"),
            ("a@b=ssh", "`a@b` is no name of an agent: write up to 64 letters"),
            ("../x=ssh", "is no name of an agent"),
            ("-x=ssh", "is no name of an agent"),
            ("a=b\0c", "a: the command has a byte 0"),
        ] {
            let said = text.parse::<Reach>().unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
        assert!(format!("{}=x", "a".repeat(65)).parse::<Reach>().is_err());
        assert!(format!("a={}", "x".repeat(17_000)).parse::<Reach>().is_err());
    }

    #[test]
    fn a_file_lists_agents_and_what_is_wrong_is_named_by_its_path() {
        let text = "schema: netdyno.inventory/1\nagents:\n  lab2:\n    command: ssh lab2 netdyno agent --stdio\n    interfaces: [eth1]\n    tags: [rack-2]\n  lab1:\n    command: netdyno agent --stdio\n";
        let found = inventory(text, "lab.yaml").unwrap();
        let names: Vec<&str> = found.iter().map(|reach| reach.name.as_str()).collect();
        assert_eq!(names, ["lab1", "lab2"]);
        assert_eq!(
            (&found[1].interfaces[..], &found[1].tags[..]),
            (&["eth1".to_owned()][..], &["rack-2".to_owned()][..])
        );
        for (text, says) in [
            ("agents: {}", "lab.yaml: schema: it is missing: write `schema: netdyno.inventory/1`"),
            ("schema: netdyno.job/1", "lab.yaml: schema: \"netdyno.job/1\" is not netdyno.inventory/1"),
            ("schema: netdyno.inventory/1", "agents"),
            ("schema: netdyno.inventory/1\nagents: {}", "agents: 0 agents: there must be 1 to 1024"),
            ("schema: netdyno.inventory/1\nagents: {a: {}}", "agents.a: missing field `command`"),
            (
                "schema: netdyno.inventory/1\nagents: {a: {command: x, host: y}}",
                "agents.a.host: unknown field `host`",
            ),
            (
                "schema: netdyno.inventory/1\nagents: {a: {command: ' '}}",
                "agents.a.command: the command is empty",
            ),
            (
                "schema: netdyno.inventory/1\nagents: {'a@b': {command: x}}",
                "agents.a@b: `a@b` is no name of an agent",
            ),
            (
                "schema: netdyno.inventory/1\nagents: {a: {command: x, tags: ['']}}",
                "agents.a.tags: there may be up to 256, and none is empty",
            ),
            ("agents: [", "lab.yaml"),
            ("", "lab.yaml"),
        ] {
            let said = inventory(text, "lab.yaml").unwrap_err().to_string();
            assert!(said.contains(says), "{said}\nfor {says}");
        }
    }
}
