//! The kinds of jobs: one module for each, and what several of them do alike.

pub mod bridge;
pub mod edits;
pub mod impair;
pub mod lab;
pub mod live;
pub mod measure;
pub mod reflect;
pub mod replay;
mod resolve;
pub mod search;
pub mod send;
pub mod shared;
pub mod trial;
pub mod what;
