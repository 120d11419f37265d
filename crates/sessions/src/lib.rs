//! TCP connections and UDP sessions by the million through a device, without the host's stack: clients ([`Clients`]) and a server
//! ([`Server`]) in XDP.
//!
//! ```text
//!   run: live frames -- SYN or request, what is sent again --> interface --> device under test --> server (real, or serve.bpf.c)
//!    |                                                  |                                      |
//!    |  what timed out          next segment, in place  |  sessions_client <-------------------'
//!   sweep <----------- slots of 32 bytes, mapped <------'
//! ```
//!
//! The clients' program changes slots and answers in the frame that arrived; user space only looks for slots where nothing came back in
//! time (`sweep`), and has them sent again. `programs/bpf/sessions.bpf.c` and `serve.bpf.c` say what is answered, and how.
//! `job` calls this crate for `netdyno sessions`.

#![deny(missing_docs, clippy::missing_errors_doc)]

mod attach;
mod clients;
mod datagram;
mod http;
mod layout;
mod loader;
mod server;
mod sweep;
#[cfg(test)]
mod tests;
mod turn;

pub use clients::{Clients, Close, Course, Load, Options, Ran};
pub use datagram::{datagram, least as least_datagram};
pub use http::{answer, request};
pub use layout::{Counts, Served};
pub use server::{Longer, Server, ServerOptions};

use rustix::io::Errno;

/// Why sessions cannot be made or served.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// A program of the kernel's.
    #[error(transparent)]
    Program(#[from] bpf::ProgramError),
    /// The way out of the interface.
    #[error(transparent)]
    Way(#[from] xdp::XdpError),
    /// The interface was set down or removed while connections were opened.
    #[error("{0} went down or was removed")]
    Gone(String),
    /// A call that should not fail.
    #[error("{what}: {error}")]
    System {
        /// The call.
        what: &'static str,
        /// What the kernel said.
        error: Errno,
    },
}
