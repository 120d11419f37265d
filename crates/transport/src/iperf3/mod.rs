//! Clients and servers that speak iperf3's protocol over this crate's sockets and data phases.
//!
//! ```text
//!   client  one thread: control connection, timers          --> streams, a thread each
//!   server  accepts, reads cookies, answers first datagrams --> session (a thread for each client) --> streams, a thread each
//! ```
//!
//! What is said is `endpoint::iperf3`'s; what is shown is up to whoever implements [`Show`].

pub mod client;
mod control;
mod data;
mod file;
mod open;
pub mod server;
mod session;
#[cfg(test)]
mod tests;
pub mod time;
mod udp;

pub use client::{Client, Failure};
pub use open::{KeepAlive, Local};
pub use server::{Limits, Server, Tally};

use endpoint::iperf3::results::Output;
use endpoint::iperf3::summary::{End, Interval, Start};

/// Told what happens in one test.
pub trait Show: Send {
    /// The control connection is there, and the parameters are known. `dynamic`: the length of datagrams was made from its segment
    /// size.
    fn connected(&mut self, start: &Start, dynamic: bool);
    /// The streams are there.
    fn start(&mut self, start: &Start);
    /// Data flows: payload that was sent and received so far, in bytes, what is left out of the results among it. Of a client only; told
    /// often.
    fn look(&mut self, sent: u64, received: u64) {
        let _ = (sent, received);
    }
    /// An interval is over.
    fn interval(&mut self, start: &Start, interval: &Interval);
    /// The test is over, or as much of it as there was.
    fn end(&mut self, start: &Start, end: &End);
    /// It did not come to its end.
    fn error(&mut self, error: &str);
    /// What a server's client gets, if it asked for the server's output.
    fn output(&mut self) -> Option<Output> {
        None
    }
}
