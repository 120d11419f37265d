//! The result of a run as data, and every way of showing it.
//!
//! [`Report`] is the model: what was asked, on what machine, what was achieved, with units in the names. The
//! other modules are renderings of it and hold no state of their own. Nothing here knows engines, interfaces or
//! clocks: crate `job` fills a `Report` and hands it over.
//!
//! ```text
//!                 .-- json, csv, html -- store (a folder)
//!                 |-- get                (figures, bare)
//!   sections -----+-- text, classic        (after the run)
//!   Progress ------- live                  (during the run)
//!                 '-- schema               (docs/report.schema.json, docs/compare.schema.json)
//! ```

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "without-schemas")]
extern crate no_schema as schemars;

pub mod causes;
pub mod classic;
pub mod compare;
pub mod conclusion;
pub mod csv;
pub mod distribution;
mod expected;
pub mod figure;
pub mod floor;
pub mod get;
pub mod html;
pub mod json;
pub mod kernel_counters;
pub mod live;
pub mod model;
mod note;
pub mod place;
#[cfg(not(feature = "without-schemas"))]
mod schema;
pub mod search;
mod search_flows;
mod search_text;
pub mod sections;
mod setting;
pub mod store;
mod table;
pub mod text;
pub mod units;

pub use distribution::{Bucket, Distribution, Exact};
pub use model::*;
pub use note::{Code, Note, Said, Sentence, Severity, Warnings};
#[cfg(not(feature = "without-schemas"))]
pub use schema::{comparison_schema, pretty as pretty_schema, schema};
pub use sections::conversations;
pub use setting::{Words, worded};
pub use store::{prepare_dir, read, write_comparison_in, write_dir, write_dir_in};
