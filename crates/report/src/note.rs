//! What a job has to say beside its result, in words for a person and by a code for a program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub code: Code,
    pub severity: Severity,
    /// One sentence or two, without the code.
    pub text: String,
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// How it goes. Who wants quiet does not want it.
    Info,
    /// To be known before the figures are trusted.
    Warning,
}

/// What a note is about. A code never changes its meaning; new ones may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// What the job does from now on, and through what.
    Begun,
    /// An interface had no carrier, and it was waited for.
    CarrierWaited,
    /// The next hop's Ethernet address was found out.
    NextHopFound,
    /// Captures were read, and how long that took.
    CaptureRead,
    /// Of what a capture holds, only a part is used.
    PartOfCapture,
    /// What a search will try.
    SearchRange,
    /// A trial begins, or came to this.
    Trial,
    /// Something is to be done by hand now, or the job cannot do what it was asked for.
    ActNow,
    /// A command that was asked for could not be run.
    CommandFailed,
    /// A warning of the result, said before it.
    Warning,
}

impl Note {
    pub fn info(code: Code, text: impl Into<String>) -> Note {
        Note { code, severity: Severity::Info, text: text.into() }
    }

    pub fn warning(code: Code, text: impl Into<String>) -> Note {
        Note { code, severity: Severity::Warning, text: text.into() }
    }
}
