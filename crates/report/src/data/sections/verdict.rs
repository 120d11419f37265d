//! Whether a job did what was asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::note::{Code, Said, Sentence};

/// Whether the run did what was asked. Decides the exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
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

/// Whether the run did what was asked. Decides the exit status.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[schemars(rename = "Verdict")]
enum Written {
    /// As asked: exit status 0.
    Done,
    /// It ran, but short of what was asked (a rate not reached, frames unaccounted): exit status 1.
    Short {
        /// What was not as asked, in the order in which it was found.
        reasons: Vec<Said>,
        /// What each of the reasons is about: loss is `frames-lost`, a rate not reached `rate-not-reached`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        codes: Vec<Code>,
    },
    /// It was not done: exit status 2.
    Failed {
        /// Why: what ended it first, then what was short before.
        reasons: Vec<Said>,
        /// What each of the reasons is about.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        codes: Vec<Code>,
    },
}

#[cfg(not(feature = "without-schemas"))]
impl JsonSchema for Verdict {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Written::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        Written::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::json_schema(generator)
    }
}

impl From<Verdict> for Written {
    fn from(verdict: Verdict) -> Written {
        let codes = |reasons: &[Said]| reasons.iter().map(|said| said.code).collect();
        match verdict {
            Verdict::Done => Written::Done,
            Verdict::Short { reasons } => Written::Short { codes: codes(&reasons), reasons },
            Verdict::Failed { reasons } => Written::Failed { codes: codes(&reasons), reasons },
        }
    }
}

impl From<Written> for Verdict {
    fn from(written: Written) -> Verdict {
        // Those of notes are known better: they say where the remedy begins.
        match written {
            Written::Done => Verdict::Done,
            Written::Short { reasons, .. } => Verdict::Short { reasons },
            Written::Failed { reasons, .. } => Verdict::Failed { reasons },
        }
    }
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
