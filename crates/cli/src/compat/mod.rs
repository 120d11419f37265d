//! Other tools' command lines, taken as they are and translated into netdyno's own.
//!
//! Called as `netdyno TOOL ...`, or through a link to netdyno that has the tool's name.

mod autoopts;
pub mod edits;
pub mod iperf3;
pub mod netperf;
pub mod netserver;
pub mod nprobe;
mod presets;
pub mod softflowd;
pub mod tcpbridge;
pub mod tcpcapinfo;
pub mod tcpcopy;
mod tcpdump;
pub mod tcpliveplay;
pub mod tcpprep;
pub mod tcpreplay;
mod tcpreplay_edit;
pub mod tcprewrite;
mod watching;

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The tools whose names netdyno answers to.
const TOOLS: [&str; 15] = [
    "intercept",
    "iperf3",
    "mirror",
    "netperf",
    "netserver",
    "nprobe",
    "softflowd",
    "tcpbridge",
    "tcpcapinfo",
    "tcpcopy",
    "tcpliveplay",
    "tcpprep",
    "tcpreplay",
    "tcpreplay-edit",
    "tcprewrite",
];

/// Whether the drop-ins make the mistakes of tcpreplay 4.5.5, too, for scripts and tests that expect its very bytes:
/// `NETDYNO_COMPAT=4.5.5`. docs/compat.md lists them.
pub fn defects() -> anyhow::Result<bool> {
    understood(std::env::var_os("NETDYNO_COMPAT").as_deref())
}

/// Of other tools' verbs that measure: our own verb that does the same, and the page that compares both.
const OURS: [(&str, &str, &str); 10] = [
    ("iperf3", "endpoint", "from-iperf3"),
    ("netperf", "endpoint", "from-netperf"),
    ("netserver", "endpoint serve", "from-netperf"),
    ("nprobe", "probe", "from-nprobe"),
    ("softflowd", "probe", "from-softflowd"),
    ("tcpbridge", "bridge", "bridging"),
    ("tcpcopy", "clone", "from-tcpcopy"),
    ("tcpliveplay", "live", "live"),
    ("tcpreplay", "replay", "from-tcpreplay"),
    ("tcpreplay-edit", "replay", "from-tcpreplay"),
];

/// Refuses `--report` of all other tools' verbs alike: none of the tools has it, and what each would say of an unknown option leads nowhere.
fn check_no_report(words: &[OsString]) -> anyhow::Result<()> {
    let Some(tool) = words.get(1).and_then(|word| TOOLS.into_iter().find(|tool| word == tool)) else {
        return Ok(());
    };
    let is_report = |word: &OsString| word == "--report" || word.as_encoded_bytes().starts_with(b"--report=");
    if !words.iter().skip(2).any(is_report) {
        return Ok(());
    }
    match OURS.into_iter().find(|(name, _, _)| *name == tool) {
        Some((_, verb, page)) => anyhow::bail!(
            "--report: `netdyno {tool}` takes {tool}'s own options and prints what {tool} prints; `netdyno {verb} --report DIR` does the \
             same work and writes a result (docs/{page}.md)"
        ),
        None => anyhow::bail!(
            "--report: `netdyno {tool}` measures nothing, so that there is no result to write: leave it out"
        ),
    }
}

fn understood(value: Option<&OsStr>) -> anyhow::Result<bool> {
    match value.map(OsStr::as_encoded_bytes) {
        None | Some(b"") => Ok(false),
        Some(b"4.5.5") => Ok(true),
        Some(other) => anyhow::bail!(
            "NETDYNO_COMPAT={}: only 4.5.5 is known; unset it for results without that version's defects",
            report::units::printable(&String::from_utf8_lossy(other))
        ),
    }
}

/// The words of our own command line for those we were called with, and with those of option files. `None`: all that was
/// asked for is done.
pub fn arguments(words: Vec<OsString>) -> anyhow::Result<Option<Vec<OsString>>> {
    let mut words = named(words);
    check_no_report(&words)?;
    if words.get(1).is_some_and(|word| word == "tcprewrite") {
        let rest = words.split_off(2);
        match tcprewrite::arguments(rest)? {
            Some(rest) => words.extend(rest),
            None => return Ok(None),
        }
    }
    // A first `--` would be taken for the end of our own options; netperf's own begin behind it.
    if words.get(1).is_some_and(|word| word == "netperf") && words.get(2).is_some_and(|word| word == "--") {
        words.insert(2, "--".into());
    }
    Ok(Some(words))
}

/// Refuses what contradicts itself in a job, in the words of the tool whose options `called` knows.
fn check(job: &impl spec::Kind, called: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
    job.check()
        .map_err(|wrong| anyhow::anyhow!("{}", crate::wording::contradiction_of_another(&wrong, called)))
}

/// What is not there is refused by its name, not passed over: options, whether each was given, and the mend.
fn refuse(options: &[(&str, bool, &str)]) -> anyhow::Result<()> {
    match options.iter().find(|(_, given, _)| *given) {
        Some((name, _, mend)) => anyhow::bail!("{name} is not supported: {mend}"),
        None => Ok(()),
    }
}

/// As whom servers of other tools' protocols go on that were begun as root.
const SERVE_AS: &str = "NETDYNO_SERVE_AS";

/// A server that was begun as root is not root's any more once it listens: it goes on as nobody, or as `NETDYNO_SERVE_AS` says. `stays`: it
/// needs root's rights later, for this reason. What cannot be is said, and it serves all the same, as these tools' own servers do.
fn leave_root(stays: Option<&str>) {
    use crate::output::note;
    use transport::rights::{self, User};
    if !rights::is_root() {
        return;
    }
    let name = std::env::var(SERVE_AS).ok().filter(|name| !name.is_empty());
    // Who says by himself as whom knows what for.
    if let (None, Some(why)) = (&name, stays) {
        return note(&format!("it stays root: {why}. {SERVE_AS}=USER goes on as USER all the same"));
    }
    let name = name.unwrap_or_else(|| "nobody".to_owned());
    let became = User::find(&name).and_then(|user| match user.uid {
        0 => Ok(()),
        _ => rights::become_user(&user),
    });
    if let Err(error) = became {
        note(&format!("it stays root: going on as user {}: {error}", report::units::printable(&name)));
    }
}

/// The file with this process's number, there for as long as this lives.
#[derive(Debug)]
struct Pid(std::path::PathBuf);

impl Pid {
    fn write(path: &Path) -> anyhow::Result<Pid> {
        use anyhow::Context as _;
        if path.exists() && !path.is_file() {
            anyhow::bail!("{}: that is no file to write a process's number to", path.display());
        }
        std::fs::write(path, format!("{}\n", std::process::id()))
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(Pid(path.to_owned()))
    }
}

impl Drop for Pid {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Names the tool whose name we were called by.
fn named(mut words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|word| Path::new(word).file_name()).and_then(OsStr::to_str);
    if let Some(tool) = TOOLS.into_iter().find(|tool| name == Some(tool)) {
        words.insert(1, tool.into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_version_can_be_mistaken_with() {
        let read = |text| understood(Some(OsStr::new(text)));
        assert!(read("4.5.5").unwrap() && !read("").unwrap() && !understood(None).unwrap());
        for text in ["4.4.3", "1", "4.5.5 "] {
            assert!(read(text).unwrap_err().to_string().contains("only 4.5.5 is known"), "{text}");
        }
    }

    #[test]
    fn a_link_with_a_tools_name_is_that_tool() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            named(words("/usr/local/bin/tcpreplay -i eth0")),
            words("/usr/local/bin/tcpreplay tcpreplay -i eth0")
        );
        for same in ["netdyno replay x.pcap", "/opt/tcpreplay/netdyno info x.pcap"] {
            assert_eq!(named(words(same)), words(same));
        }
    }
}
