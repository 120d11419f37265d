//! Why an agent cannot be had, in one sentence, with what to do about it.

use agent::{Fault, FaultKind};
use report::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why an agent cannot be had, or was lost.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The shell cannot be started.
    #[error("its command cannot be started: {0}")]
    NotStarted(#[from] std::io::Error),
    /// The command ended, or closed its output.
    #[error("its command {how}{}", said_last(.said))]
    Ended {
        /// `ended (exit status: 255)`.
        how: String,
        /// The last that it wrote to standard error.
        said: String,
    },
    /// Nothing comes.
    #[error("no answer to `{to}` within {}{}", time(.within), said_last(.said))]
    Silent {
        /// The request.
        to: &'static str,
        /// How long it was waited.
        within: Duration,
        /// The last that its command wrote to standard error.
        said: String,
    },
    /// What comes is no answer.
    #[error("it answers what is no line of {}: {what}", agent::PROTOCOL)]
    Nonsense {
        /// What came.
        what: String,
    },
    /// It is another netdyno.
    #[error("it is netdyno {there}, and this is netdyno {here}")]
    OtherVersion {
        /// Its version.
        there: String,
        /// This one's.
        here: &'static str,
    },
    /// This program cannot be copied to its host.
    #[error("netdyno is not copied there: {why}")]
    NotCopied {
        /// Why.
        why: String,
    },
    /// It refuses a request.
    #[error("{}", shown(&.0.message))]
    Refused(Box<Fault>),
    /// Its clock says nothing.
    #[error("its clock cannot be compared: {0}")]
    Clock(#[from] crate::offset::NoOffset),
    /// A signal came.
    #[error("it was not waited for")]
    Stopped,
}

/// The same for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostKind {
    /// Its command cannot be started.
    NotStarted,
    /// Its command ended.
    Ended,
    /// It does not answer in time.
    Silent,
    /// What it answers is no line of the protocol.
    Nonsense,
    /// It is of another version.
    Version,
    /// The program cannot be copied to its host.
    NotCopied,
    /// It refuses what it was asked.
    Refused,
    /// Its clock was set, or its time stamps contradict each other.
    Clock,
    /// The command was stopped before it answered.
    Stopped,
}

/// Characters of what a command said last, and of one thing that an agent says.
const LAST: usize = 300;

/// What an agent says, in a message or a line for people: a line of its own may have a megabyte.
pub(crate) fn shown(said: &str) -> String {
    let all = units::printable(said);
    let mut shown: String = all.chars().take(LAST).collect();
    if shown.len() < all.len() {
        shown.push_str("...");
    }
    shown
}

fn said_last(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return String::new();
    }
    let all = units::printable(&lines.join(" / "));
    let skipped = all.chars().count().saturating_sub(LAST);
    let dots = if skipped > 0 { "..." } else { "" };
    format!(", and said: {dots}{}", all.chars().skip(skipped).collect::<String>())
}

fn time(of: &Duration) -> String {
    units::time(u64::try_from(of.as_nanos()).unwrap_or(u64::MAX))
}

impl Lost {
    /// What came instead of an answer, cut to what a message has room for.
    pub(crate) fn nonsense(line: &[u8]) -> Lost {
        const SHOWN: usize = 80;
        let text = String::from_utf8_lossy(line.get(..4 * SHOWN).unwrap_or(line)).into_owned();
        let shown: String = units::printable(text.trim()).chars().take(SHOWN).collect();
        let dots = if shown.len() < text.trim().len() || line.len() > 4 * SHOWN { "..." } else { "" };
        Lost::Nonsense { what: format!("`{shown}{dots}`") }
    }

    /// For programs.
    pub fn kind(&self) -> LostKind {
        match self {
            Lost::NotStarted(_) => LostKind::NotStarted,
            Lost::Ended { .. } => LostKind::Ended,
            Lost::Silent { .. } => LostKind::Silent,
            Lost::Nonsense { .. } => LostKind::Nonsense,
            Lost::OtherVersion { .. } => LostKind::Version,
            Lost::NotCopied { .. } => LostKind::NotCopied,
            // Of `hello` nothing but the protocol can be wrong.
            Lost::Refused(fault) if is_of_hello(fault) => LostKind::Version,
            Lost::Refused(_) => LostKind::Refused,
            Lost::Clock(_) => LostKind::Clock,
            Lost::Stopped => LostKind::Stopped,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<String> {
        const STDIO: &str = "the command must start `netdyno agent --stdio` and print nothing else";
        let said = match self {
            // EMFILE: of each agent there are three pipes and what starts it.
            Lost::NotStarted(error)
                if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) =>
            {
                "allow this process more open files (ulimit -n), or look at fewer agents at once"
            }
            Lost::NotStarted(_) | Lost::Stopped => return None,
            Lost::Ended { .. } => {
                "type the command by itself: it must start `netdyno agent --stdio` without asking for anything (where netdyno is missing, `.agents_copy` copies it)"
            }
            Lost::Silent { to: "hello", .. } => {
                "type the command by itself: if it asks for a password, use a key; if it only is slow, give a longer `.agents_timeout`"
            }
            Lost::Silent { .. } => "give a longer `.agents_timeout`",
            Lost::Nonsense { .. } => STDIO,
            Lost::OtherVersion { here, .. } => {
                return Some(format!(
                    "install netdyno {here} there, or have this one copied there (`.agents_copy`)"
                ));
            }
            Lost::NotCopied { .. } => {
                "install netdyno there, and leave out `.agents_copy` (in an inventory `copy`) for it"
            }
            Lost::Refused(fault) => return fault.data.remedy.as_deref().map(shown),
            Lost::Clock(_) => "let one daemon keep each host's clock, and try again",
        };
        Some(said.to_owned())
    }
}

fn is_of_hello(fault: &Fault) -> bool {
    fault.data.kind == FaultKind::Usage && fault.message.starts_with("hello:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_open_no_more_files_is_told_what_to_raise() {
        let lost = |errno: rustix::io::Errno| Lost::NotStarted(errno.into());
        assert!(lost(rustix::io::Errno::MFILE).remedy().is_some_and(|remedy| remedy.contains("ulimit -n")));
        assert_eq!(lost(rustix::io::Errno::NOENT).remedy(), None);
    }

    #[test]
    fn what_an_agent_says_has_an_end() {
        let long = "x".repeat(1 << 20);
        let fault =
            serde_json::json!({ "code": 1, "message": long, "data": { "kind": "usage", "remedy": long } });
        let refused = Lost::Refused(Box::new(serde_json::from_value(fault).expect("a fault")));
        for said in [refused.to_string(), refused.remedy().expect("a remedy")] {
            assert!(said.len() == LAST + 3 && said.ends_with("x..."), "{}", said.len());
        }
        assert_eq!(shown("short"), "short");
    }
}
