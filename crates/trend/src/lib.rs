//! Results over time: a folder of results as they are, read into series of like with like, and what changed in each.
//!
//! ```text
//!   folder --> walk: files --> entry: what counts of a result --> series --> change: groups --> text, JSON, JUnit, Markdown, page, Parquet
//!                 '---- index: what was read before ----'
//! ```
//!
//! - `entry` says which results are alike: what was asked for, and where. Kernel, versions, MTU and offloads are no part of that; where
//!   they change is marked.
//! - `change` finds change points of a series of numbers. It knows nothing of results.
//! - `index` keeps what was read, beside the results. It is never trusted over the files, and can be removed at any time.
//!
//! Nothing here knows a clock: who calls says what time it is.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod change;
mod entry;
mod failed;
mod index;
mod markdown;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "parquet/absent.rs"]
mod parquet;
mod prune;
mod read;
mod series;
mod text;
mod time;
mod walk;

pub use failed::NotDone;
pub use markdown::{junit, markdown};
pub use page::page;
pub use parquet::{HERE as PARQUET_HERE, is_table, parquet};
pub use prune::{Pruned, prune};
pub use read::{Folder, LeftOut, Unread, Why, read};
pub use series::{Changed, Line, Mark, Outcome, Past, Series, Shift, Trend, Wish, judge};
pub use text::{json, text};
pub use time::{parse as parse_time, show as show_time};
