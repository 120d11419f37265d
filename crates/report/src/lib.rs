//! The result of a run as data, and every way of showing it.
//!
//! [`Report`] is the model: what was asked, on what machine, what was achieved, with units in the names. The
//! other modules are renderings of it and hold no state of their own. Nothing here knows engines, interfaces or
//! clocks: the `netdyno` binary fills a `Report` and hands it over.
//!
//! ```text
//!                 .-- json, csv, html -- store (folder of three files)
//!   Report -------+-- text, classic        (after the run)
//!   Progress ------- live                  (during the run)
//!                 '-- schema               (docs/report.schema.json, docs/compare.schema.json)
//! ```

pub mod classic;
pub mod compare;
pub mod conclusion;
pub mod conversations;
pub mod csv;
pub mod distribution;
pub mod floor;
pub mod html;
pub mod json;
pub mod live;
pub mod model;
mod note;
pub mod place;
mod schema;
pub mod search;
mod search_text;
pub mod store;
mod table;
pub mod text;
pub mod units;

pub use conversations::Conversation;
pub use distribution::{Bucket, Distribution, Exact};
pub use model::*;
pub use note::{Code, Note, Severity};
pub use schema::{comparison_schema, pretty as pretty_schema, schema};
pub use store::{prepare_dir, read, write_dir};
