//! A result as data: what was asked, on what machine, and what came of it; figures, causes, notes, and results beside each
//! other. Names and types of its members are a promise (docs/report.md).
//!
//! Sentences that stand in a result (notes, causes) are made here; how they are laid out is not. No module here uses one of
//! `render`.

pub(crate) mod absent;
pub mod causes;
pub mod compare;
pub mod distribution;
pub mod figure;
pub mod get;
pub mod json;
pub mod model;
pub(crate) mod note;
#[cfg(not(feature = "without-schemas"))]
pub(crate) mod schema;
pub mod search;
pub mod sections;
pub(crate) mod setting;
pub mod units;
mod words;
