//! The subjects of messages, and the names in them.
//!
//! ```text
//!   PREFIX.agent.ID.open            a client asks for a session; the answer goes to its `out`
//!   PREFIX.agent.ID.in.SESSION      from the client
//!   PREFIX.up.ID.out.SESSION        from the agent
//!   PREFIX.up.ID.hello              the agent is there, each second
//! ```
//!
//! So an agent may be permitted to publish `PREFIX.up.ID.>` and to subscribe to `PREFIX.agent.ID.>`, and nothing else; no inbox is used, which
//! others could read.

use report::units::printable;
use std::fmt;
use std::str::FromStr;

/// Bytes of an agent's id, and of a word of the prefix.
const LENGTH: usize = 64;
/// Words of the prefix.
const WORDS: usize = 8;

/// What is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Of an agent.
    #[error("`{}` is no id of an agent: write up to 64 letters, digits, `-` and `_`", printable(.0))]
    Id(String),
    /// Of a prefix.
    #[error("`{}` is no prefix: write up to 8 words of letters, digits, `-` and `_`, with dots between them", printable(.0))]
    Prefix(String),
}

fn is_word(word: &str) -> bool {
    (1..=LENGTH).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// An agent's name at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(String);

impl FromStr for Id {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Id, BadName> {
        if is_word(text) { Ok(Id(text.to_owned())) } else { Err(BadName::Id(text.to_owned())) }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What all subjects begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl FromStr for Prefix {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Prefix, BadName> {
        let is_good = text.split('.').count() <= WORDS && text.split('.').all(is_word);
        if is_good { Ok(Prefix(text.to_owned())) } else { Err(BadName::Prefix(text.to_owned())) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The subjects of one agent.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    /// `PREFIX.agent.ID`
    down: String,
    /// `PREFIX.up.ID`
    up: String,
}

impl Subjects {
    pub fn new(prefix: &Prefix, id: &Id) -> Subjects {
        Subjects { down: format!("{prefix}.agent.{id}"), up: format!("{prefix}.up.{id}") }
    }

    /// All that is for the agent.
    pub fn for_agent(&self) -> String {
        format!("{}.>", self.down)
    }

    pub fn open(&self) -> String {
        format!("{}.open", self.down)
    }

    pub fn for_session(&self, session: Session) -> String {
        format!("{}.in.{session}", self.down)
    }

    pub fn by_agent(&self, session: Session) -> String {
        format!("{}.out.{session}", self.up)
    }

    pub fn hello(&self) -> String {
        format!("{}.hello", self.up)
    }

    /// What a message to the agent is, by its subject.
    pub fn of(&self, subject: &str) -> Option<For> {
        let rest = subject.strip_prefix(&self.down)?.strip_prefix('.')?;
        if rest == "open" {
            return Some(For::Open);
        }
        rest.strip_prefix("in.")?.parse().ok().map(For::Session)
    }
}

/// What a message to an agent is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum For {
    Open,
    Session(Session),
}

/// A session's name: the client draws it, so that nobody else knows where its answers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Session(pub u128);

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Session {
    type Err = ();

    fn from_str(text: &str) -> Result<Session, ()> {
        // `from_str_radix` takes a sign, too.
        if text.len() != 32 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(Session).map_err(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_words_that_no_server_reads_as_something_else() {
        for good in ["lab1", "rack-2_left", "A"] {
            assert_eq!(good.parse::<Id>().unwrap().to_string(), good);
        }
        for bad in ["", "a.b", "*", ">", "a b", "a\r\nPUB x", "é", &"a".repeat(65)] {
            assert!(bad.parse::<Id>().is_err() && bad.parse::<Prefix>().is_err() != (bad == "a.b"), "{bad}");
        }
        for bad in [".", "nd.", "a..b", "a.*", "a.b.c.d.e.f.g.h.i"] {
            let said = bad.parse::<Prefix>().unwrap_err().to_string();
            assert!(said.contains("is no prefix: write up to 8 words"), "{said}");
        }
    }

    #[test]
    fn what_is_for_an_agent_is_known_by_its_subject() {
        let subjects = Subjects::new(&"lab.nd".parse().unwrap(), &"a1".parse().unwrap());
        let session = Session(0xab);
        assert_eq!(subjects.by_agent(session), "lab.nd.up.a1.out.000000000000000000000000000000ab");
        assert_eq!(subjects.of(&subjects.open()), Some(For::Open));
        assert_eq!(subjects.of(&subjects.for_session(session)), Some(For::Session(session)));
        for other in
            ["lab.nd.agent.a12.open", "lab.nd.agent.a1.in.x", "lab.nd.agent.a1.in.+0", "nd.agent.a1.open", ""]
        {
            assert_eq!(subjects.of(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_subject_is_taken(text in ".{0,80}") {
            let subjects = Subjects::new(&"nd".parse().unwrap(), &"a1".parse().unwrap());
            let _ = subjects.of(&text);
            let _ = subjects.of(&format!("nd.agent.a1.in.{text}"));
        }
    }
}
