//! What all kinds of jobs have in common, and the list of them.

use crate::setting::Member;
use crate::{Consent, Contradiction, Job};

/// A kind of job: the data that says what is to be done. [`Job`] has one variant for each.
pub trait Kind: Into<Job> {
    /// Its settings.
    fn settings() -> &'static [Member];

    /// Does it make sense, as far as that is seen without looking at the machine?
    ///
    /// # Errors
    /// What does not, and the mend.
    fn check(&self) -> Result<(), Contradiction> {
        Ok(())
    }

    /// Interfaces that it asks to use although they carry the default route or a login.
    fn yes_disrupt(&self) -> &[String];

    /// What it needs to be allowed, beside those interfaces.
    fn asks(&self) -> Consent {
        Consent::default()
    }

    /// Makes `seed` the one of its random choices, if it says none.
    fn draw(&mut self, seed: u64) {
        let _ = seed;
    }

    /// Does it need the tester for itself, so that nothing runs beside it?
    fn runs_alone(&self) -> bool {
        false
    }
}

/// Declares [`Job`]: one line for each kind, with the word that a file says and the type that holds it.
macro_rules! kinds {
    (($d:tt) $($(#[doc = $about:literal])+ $word:literal $kind:ident,)+) => {
        /// What is to be done: one variant for each kind of job, named like the command that does it.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        pub enum Job {
            $($(#[doc = $about])+ #[serde(rename = $word)] $kind(Box<$kind>),)+
        }

        $(impl From<$kind> for Job {
            fn from(job: $kind) -> Job {
                Job::$kind(Box::new(job))
            }
        })+

        impl Job {
            /// The words for all kinds.
            pub const KINDS: &'static [&'static str] = &[$($word),+];

            /// Of each kind its word and its settings.
            pub const SETTINGS: &'static [(&'static str, fn() -> &'static [crate::setting::Member])] =
                &[$(($word, <$kind as crate::Kind>::settings)),+];

            /// The kind, as it is written.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Job::$kind(_) => $word,)+
                }
            }

            /// A job of the kind that `word` names, out of its members, which stand at `path`; `None` if there is no such kind.
            pub(crate) fn of_members(
                word: &str,
                members: serde_json::Value,
                path: &str,
            ) -> Option<Result<Job, crate::BadFile>> {
                match word {
                    $($word => Some(crate::file::members::<$kind>(members, path).map(Job::from)),)+
                    _ => None,
                }
            }
        }

        /// Does something with what a [`Job`](crate::Job) holds, of whichever kind: `of_kind!(job, kind => kind.run())`.
        #[macro_export]
        macro_rules! of_kind {
            ($d job:expr, $d held:ident => $d done:expr) => {
                match $d job {
                    $($d crate::Job::$kind($d held) => $d done,)+
                }
            };
        }
    };
}

pub(crate) use kinds;
