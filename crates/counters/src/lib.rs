//! The kernel's protocol and interface counters: snapshots of them, and what changed between two.
//!
//! ```text
//!   /proc/thread-self/net/* --> parse --> Snapshot --.
//!                                                     difference --> Difference (groups of changes, notes by rules)
//!   file, the other end's message ------> Snapshot --'
//!
//!   netstat -s, ethtool -S, nstat, ... before and after --> listing --> the same text, with differences
//! ```
//!
//! A counter only rises, and is subtracted. A gauge is a state (established connections, pages of memory, a limit): it is
//! shown before and after, and never subtracted. Both belong to a network namespace, and with it to all that happens in there:
//! a change between two snapshots is not only what one program did.
//!
//! This crate reads /proc and nothing else. Counters of drivers and queueing disciplines are added by whoever has them
//! ([`Snapshot::add`]). Rendering with units is crate `report`'s. Callers: `netdyno counters`, `netdyno beforeafter`, and
//! endpoints, which take snapshots at both ends of a test.
//!
//! ```
//! use netdyno_counters::{Snapshot, difference};
//!
//! let before = Snapshot::here()?;
//! // What is to be measured comes here.
//! let after = Snapshot::here()?;
//! let found = difference(&before, &after)?;
//! assert!(found.seconds >= 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "without-schemas")]
extern crate no_schema as schemars;

mod difference;
mod kind;
pub mod listing;
mod parse;
mod rules;
mod snapshot;

pub use difference::{Change, Difference, Group, Incomparable, Irregular, State, difference};
pub use kind::{Kind, Topic, kind, meaning, topic};
pub use rules::{Note, Weight};
pub use snapshot::{SCHEMA, Snapshot, SnapshotError};
