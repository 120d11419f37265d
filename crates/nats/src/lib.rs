//! Agents that dial out, for hosts behind a NAT or a firewall and for agents that stay for months: both ends connect to a NATS server, which
//! carries what standard input and output carry elsewhere.
//!
//! ```text
//!   client -- pipe --> reach -- Link --.                        .-- Link -- serve -- pipe --> `netdyno agent --stdio`
//!                                       '--> Bus --> server <--'
//! ```
//!
//! The protocol inside is netdyno.agent/1 as it stands; this crate knows nothing of it. A *session* is one client at one agent: two streams of
//! bytes, each in order and exactly once (module `link`), and a lease: who does not hear the other end ends it. Of the server it asks for
//! nothing but messages (core NATS): what is on its way is kept by the end that sent it until the other one has it, so that a
//! server may be restarted in the middle and needs no disk.
//!
//! All that comes is from outside: messages are bounded and spoiled ones are dropped (module `message`).

#![deny(missing_docs, clippy::missing_errors_doc)]

mod bus;
mod carry;
mod ends;
mod files;
mod link;
mod message;
mod reach;
mod serve;
mod subject;

pub use bus::{Login, Options, Server};
pub use reach::reach;
pub use serve::{Served, serve};
pub use subject::{BadName, Id, Prefix};

use std::time::Duration;

/// Who is not heard for so long is gone, unless the agent says otherwise: a server that is restarted must fit in.
pub const LEASE: Duration = Duration::from_secs(10);
/// A lease is between these two: both ends speak once a second.
pub const LEASES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(3600)];
/// Sessions of one agent at once.
pub const SESSIONS: usize = 8;

/// Why an agent is not reached, or is no longer.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An option, or a file that it names.
    #[error("{0}")]
    Option(String),
    /// The connection to the server.
    #[error("{0}")]
    Server(String),
    /// The agent, or the session with it.
    #[error("{0}")]
    Agent(String),
    /// This host has no more of something.
    #[error("{0}")]
    Host(#[from] std::io::Error),
}

/// A number that nobody guesses.
fn draw() -> std::io::Result<u128> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(u128::from_ne_bytes(bytes))
}
