//! What is done to captures between being recorded and being sent.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod cache;
pub mod classify;
pub mod fragment;
pub mod rewrite;
