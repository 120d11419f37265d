//! A file of what an agent's jobs may do: the options of the command line as members.

use super::agent::Allowed;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args as _, Command, FromArgMatches as _};
use report::units::printable;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The value of its member `schema`.
const SCHEMA: &str = "netdyno.grants/1";
/// A file has at most so many bytes.
const LARGEST: u64 = 1 << 20;
/// Options that are no members: one names the file, the other is for tests.
const NO_MEMBERS: [&str; 2] = ["grants", "clock-ahead"];

impl Allowed {
    /// With what the file grants that it names. Lists add up; what can be said once must not be said in both.
    ///
    /// # Errors
    /// The file cannot be read, can be written by others, or says what no option does.
    pub fn with_file(mut self) -> Result<Allowed> {
        let Some(file) = self.grants.take() else { return Ok(self) };
        let name = printable(&file.display().to_string());
        let read =
            read(&file).and_then(|text| said(&text, &name)).with_context(|| format!("--grants {name}"))?;
        let both = |member: &str| {
            anyhow!("--grants {name}: {member} is given there and on the command line: leave out one of them")
        };
        if self.max_rate.is_some() && read.max_rate.is_some() {
            return Err(both("max_rate"));
        }
        if self.log.is_some() && read.log.is_some() {
            return Err(both("log"));
        }
        let Allowed {
            grants: _,
            allow_interface,
            max_rate,
            folder,
            yes_disrupt,
            allow_address,
            allow_listen,
            allow_kind,
            allow_command,
            allow_read,
            allow_public_target,
            allow_source_prefix,
            log,
            clock_ahead: _,
            max_contents,
        } = read;
        self.allow_interface.extend(allow_interface);
        self.max_rate = self.max_rate.or(max_rate);
        self.folder.extend(folder);
        self.yes_disrupt.extend(yes_disrupt);
        self.allow_address.extend(allow_address);
        self.allow_listen.extend(allow_listen);
        self.allow_kind.extend(allow_kind);
        self.allow_command.extend(allow_command);
        self.allow_read.extend(allow_read);
        self.allow_public_target.extend(allow_public_target);
        self.allow_source_prefix.extend(allow_source_prefix);
        self.log = self.log.or(log);
        // Of two limits the smaller one holds: which was typed is not known of one that has a default.
        if *max_contents < *self.max_contents {
            self.max_contents = max_contents;
        }
        Ok(self)
    }
}

fn read(file: &Path) -> Result<String> {
    let opened = File::open(file)?;
    let found = opened.metadata()?;
    if !found.is_file() {
        bail!("it is no file");
    }
    if found.mode() & 0o022 != 0 {
        bail!("others than its owner may write it: take that from them (chmod go-w)");
    }
    let mut text = String::new();
    opened.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        bail!("it has more than {}", report::units::bytes(LARGEST));
    }
    Ok(text)
}

/// What a file says, as the options would.
fn said(text: &str, name: &str) -> Result<Allowed> {
    let value = scenario::value(text, name)?;
    let Value::Object(mut members) = value else {
        bail!("it is no list of members: write `schema: {SCHEMA}`")
    };
    match members.remove("schema") {
        Some(Value::String(schema)) if schema == SCHEMA => {}
        Some(other) => {
            bail!("schema: {} is not {SCHEMA}, which this netdyno reads", printable(&other.to_string()))
        }
        None => bail!("schema: it is missing: write `schema: {SCHEMA}`"),
    }
    let command = Allowed::augment_args(Command::new("grants").no_binary_name(true).disable_help_flag(true));
    let known: Vec<String> = command
        .get_arguments()
        .filter_map(|arg| arg.get_long())
        .filter(|option| !NO_MEMBERS.contains(option))
        .map(|option| option.replace('-', "_"))
        .collect();
    let mut words = Vec::new();
    for (member, value) in members {
        if !known.contains(&member) {
            bail!("{}: there is no such member: {}", printable(&member), known.join(", "));
        }
        let values = match value {
            Value::Array(values) => values,
            one => vec![one],
        };
        for value in values {
            let value = match value {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                other => {
                    bail!("{member}: {} is neither a word nor a list of words", printable(&other.to_string()))
                }
            };
            words.push(OsString::from(format!("--{}={value}", member.replace('_', "-"))));
        }
    }
    let matches = command.try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        anyhow!("{}", printable(first.trim_start_matches("error: ")))
    })?;
    Ok(Allowed::from_arg_matches(&matches)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::os::unix::fs::PermissionsExt;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        allowed: Allowed,
    }

    fn granted(text: &str, mode: u32, line: &str) -> Result<Allowed> {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("grants.yaml");
        std::fs::write(&file, text).expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("a mode");
        let line = format!("agent --grants {} {line}", file.display());
        Line::parse_from(line.split_whitespace()).allowed.with_file()
    }

    #[test]
    fn a_file_grants_what_the_same_options_do() {
        let text = "schema: netdyno.grants/1\nallow_interface: [eth1, 'veth*']\nmax_rate: 10mpps\nfolder: /srv\nyes_disrupt: [eth0]\n\
                    allow_address: ['198.18.*']\nallow_listen: any\nallow_kind: [send]\nallow_command: [reboot now]\nallow_read: [/key]\n\
                    allow_public_target: [h:1]\nallow_source_prefix: [198.18.0.0/15]\nlog: /var/log/x\nmax_contents: 7M\n";
        let line = "agent --allow-interface eth1 --allow-interface veth* --max-rate 10mpps --folder /srv --yes-disrupt eth0 \
                    --allow-address 198.18.* --allow-listen any --allow-kind send --allow-read /key --allow-public-target h:1 \
                    --allow-source-prefix 198.18.0.0/15 --log /var/log/x --max-contents 7M";
        let mut typed = Line::parse_from(line.split_whitespace()).allowed;
        typed.allow_command = vec!["reboot now".to_owned()];
        let read = granted(text, 0o600, "").expect("grants");
        assert_eq!(format!("{read:?}"), format!("{typed:?}"));
        // All that a file may have is here, so that none is left out when the two are joined.
        assert_eq!(read.words().len(), text.lines().count());
        let more = granted(text, 0o644, "--allow-interface rx0 --max-contents 1M").expect("grants");
        assert_eq!(more.allow_interface, ["rx0", "eth1", "veth*"]);
        assert_eq!(*more.max_contents, 1_000_000);
    }

    #[test]
    fn what_grants_nothing_clearly_is_refused_with_its_member() {
        let head = "schema: netdyno.grants/1\n";
        for (text, mode, line, says) in [
            (head, 0o622, "", "others than its owner may write it"),
            ("allow_interface: [a]", 0o600, "", "write `schema: netdyno.grants/1`"),
            ("schema: netdyno.job/1", 0o600, "", "is not netdyno.grants/1"),
            ("- a", 0o600, "", "it is no list of members"),
            (
                &format!("{head}allow_interfaces: [a]"),
                0o600,
                "",
                "allow_interfaces: there is no such member: allow_interface, max_rate",
            ),
            (&format!("{head}clock_ahead: 5"), 0o600, "", "clock_ahead: there is no such member"),
            (&format!("{head}grants: x"), 0o600, "", "grants: there is no such member"),
            (&format!("{head}max_rate: fast"), 0o600, "", "fast"),
            (&format!("{head}max_rate: [1mpps, 2mpps]"), 0o600, "", "--max-rate"),
            (&format!("{head}allow_interface: [{{a: 1}}]"), 0o600, "", "neither a word nor a list of words"),
            (&format!("{head}allow_interface: true"), 0o600, "", "neither a word nor a list of words"),
            (
                &format!("{head}max_rate: 1mpps"),
                0o600,
                "--max-rate 2mpps",
                "max_rate is given there and on the command line",
            ),
            (&format!("{head}log: a"), 0o600, "--log b", "log is given there and on the command line"),
            (&format!("{head}folder: [\n"), 0o600, "", "grants.yaml"),
        ] {
            let said = format!("{:#}", granted(text, mode, line).expect_err(text));
            assert!(said.contains(says), "{text}: {said}");
        }
        let missing = Line::parse_from(["agent", "--grants", "/nowhere/grants.yaml"]).allowed.with_file();
        let said = format!("{:#}", missing.expect_err("no file"));
        assert!(said.contains("--grants /nowhere/grants.yaml: No such file"), "{said}");
    }
}
