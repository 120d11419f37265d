//! What is done to captures between being recorded and being sent.

pub mod rewrite;
