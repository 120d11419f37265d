//! Whether a job did what was asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::note::{Code, Said, Sentence};

/// Whether the run did what was asked. Decides the exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Verdict {
    /// As asked: exit status 0.
    #[default]
    Done,
    /// It ran, but short of what was asked (a rate not reached, frames unaccounted): exit status 1.
    Short {
        /// What was not as asked, in the order in which it was found.
        reasons: Vec<Said>,
    },
    /// It was not done: exit status 2.
    Failed {
        /// Why: what ended it first, then what was short before.
        reasons: Vec<Said>,
    },
}

impl Verdict {
    /// The exit status that scripts rely on.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Short { .. } => 1,
            Self::Failed { .. } => 2,
        }
    }

    /// Why it is not `Done`; empty when it is.
    pub fn reasons(&self) -> &[Said] {
        match self {
            Self::Done => &[],
            Self::Short { reasons } | Self::Failed { reasons } => reasons,
        }
    }

    /// Adds a shortfall. A failed run stays failed.
    pub fn fall_short(&mut self, code: Code, reason: impl Into<Sentence>) {
        match self {
            Self::Done => *self = Self::Short { reasons: vec![code.says(reason)] },
            Self::Short { reasons } | Self::Failed { reasons } => reasons.push(code.says(reason)),
        }
    }

    /// Marks the run as not done; earlier shortfalls stay listed after the new reason.
    pub fn fail(&mut self, code: Code, reason: impl Into<Sentence>) {
        let mut reasons = vec![code.says(reason)];
        reasons.extend(self.reasons().iter().cloned());
        *self = Self::Failed { reasons };
    }
}
