//! Agents on several machines, which speak netdyno.agent/1 (docs/agent.md): how they are reached, what they can do, how their clocks differ.
//!
//! ```text
//!   NAME='COMMAND', inventory --> Reach --> Client: a child, lines of JSON --> agent
//!                                             |
//!                                   check, offset, run
//! ```
//!
//! Whatever comes from an agent is from outside: it is bounded, and what is wrong with it is one error of that agent ([`Lost`]).

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "without-schemas")]
extern crate no_schema as schemars;

mod chain;
mod check;
mod client;
mod copy;
mod files;
mod grid;
mod joint;
mod lost;
mod merge;
mod mesh;
mod moment;
mod offset;
mod plan;
mod reach;
mod run;
#[cfg(not(feature = "without-schemas"))]
mod schema;
mod text;
mod trials;

pub use check::{Checked, Entry, Failure, Finding, HostClock, Interface, InterfaceTold, SCHEMA, check};
pub use client::{Client, Patience};
pub use joint::{Asked, NotDone, carry_out};
pub use lost::{Lost, LostKind};
pub use offset::{Exchange, NoOffset, Offset};
pub use plan::Unplanned;
pub use reach::{BadInventory, BadName, BadReach, INVENTORY, MOST, Name, Reach, inventory};
pub use run::Told;
#[cfg(not(feature = "without-schemas"))]
pub use schema::{checked_schema, inventory_schema};
pub use text::{compared, render};
