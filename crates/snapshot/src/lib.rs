//! How a job stands while it lasts, as data, and the board where it is put for all who look on.
//!
//! ```text
//!   the job -- publishes a Snapshot ten times a second, says Notes --> Board <-- reads: progress line, screen, metrics, ...
//!      ^                                                                 |
//!      '---------------- takes Requests (pause, another rate) -----------'
//! ```
//!
//! The job never waits for who looks on: a snapshot that nobody has read is replaced by the next one, of notes that nobody
//! takes only the latest are kept, and a panic or an endless loop of a reader touches the reader only.

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "without-schemas")]
extern crate no_schema as schemars;

mod board;
pub mod machine;
mod snapshot;

pub use board::{Board, Request};
#[cfg(not(feature = "without-schemas"))]
pub use snapshot::schema;
pub use snapshot::{
    Bound, Cloned, Collected, Connections, Core, Count, Counter, Endpoint, Flows, ManualControl, Passage,
    Phase, Queue, SCHEMA, Search, Snapshot, Stream, Title, Trial, Worker, line,
};
