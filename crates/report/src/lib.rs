//! The result of a run as data, and every way of showing it: two things, a folder each.
//!
//! - `data`: [`Report`] and its parts, with units in the names; figures, causes, notes, comparisons; JSON and its schema. It
//!   knows no rendering (a test reads its `use` lines).
//! - `render`: text, HTML, CSV, tcpreplay's block. Made from `data` alone, without state of its own.
//!
//! [`store`] puts both on disk, at places that [`place`] has looked at. Nothing here knows engines, interfaces or clocks: crate
//! `job` fills a `Report` and hands it over.
//!
//! ```text
//!                        .-- csv, html, text, classic     (after the run)
//!   data --- sections ---+-- live                         (during the run)
//!    |                   '-- json, get                    (the data itself, figures of it)
//!    '-- schema                                           (docs/report.schema.json, docs/compare.schema.json)
//! ```

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "without-schemas")]
extern crate no_schema as schemars;

mod data;
pub mod place;
mod render;
pub mod store;

pub use data::absent::absent;
pub use data::distribution::{self, Bucket, Distribution, Exact};
pub use data::model::{self, *};
pub use data::note::{Code, Note, Said, Sentence, Severity, Warnings};
#[cfg(not(feature = "without-schemas"))]
pub use data::schema::{comparison_schema, pretty as pretty_schema, schema};
pub use data::sections::{self, conversations};
pub use data::setting::{Words, worded};
pub use data::{causes, figure, get, json, search, units};
pub use render::{classic, conclusion, csv, drops, html, kernel_counters, live, text, xdp};
pub use store::{prepare_dir, read, write_comparison_in, write_dir, write_dir_in};

/// Results beside each other.
pub mod compare {
    pub use crate::data::compare::*;
    pub use crate::render::compare::render;
}
