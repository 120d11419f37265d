//! What is done to captures between being recorded and being sent.

pub mod cache;
pub mod classify;
pub mod fragment;
pub mod rewrite;
