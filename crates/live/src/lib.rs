//! Plays the client's side of captured TCP connections against a real server, and compares its answers.
//!
//! ```text
//!  capture --> dialogue::collect --> dialogue::understand --> Dialogue
//!                                                                |
//!                      words, and what they wait for             v
//!   Connection  <------------------------------------------->  Play --> Outcome
//!   (TCP: a state machine)    what the server says            (compare: answers)
//!        ^
//!        | segments, times            guard: this host's stack does not see them
//!        v                              |
//!      run: the loop  <--> link: a packet socket  <--> server
//! ```
//!
//! Everything above the line of `run` is pure: bytes and times in, bytes and times out.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod compare;
pub mod connection;
pub mod dialogue;
mod error;
pub mod guard;
mod link;
mod neighbours;
pub mod packet;
pub mod play;
pub mod run;
pub mod segment;

pub use dialogue::collect::{Collected, Conversation, Which, collect};
pub use dialogue::{Dialogue, Ended, Gap, understand};
pub use error::LiveError;
pub use play::{Outcome, Play, Settings, Standing};
