//! netdyno's own protocol between two endpoints, version 1.
//!
//! ```text
//!   client                                        server
//!   "NETDYNO1" 'C'                          ->             every connection says what it is ([`Preamble`])
//!   hello {version, nonce}                  ->
//!                                           <-    challenge {nonce, token: true or false}
//!   prove {proof}                           ->             with a token only
//!                                           <-    welcome {proof, host, limits}
//!   test {plan}                             ->
//!                                           <-    ready {key, ports}
//!   "NETDYNO1" 'D' key number               ->             a data connection each (TCP, Unix)
//!   join key number (UDP)                   ->             or a handshake ([`datagram`]): no datagram goes where nobody asked
//!                                           <-    joined
//!   start                                   ->
//!                                           <-    started
//!   ... data ...                            <-    progress, now and then
//!   stop                                    ->
//!                                           <-    results
//!   test {plan} ... or bye                  ->
//! ```
//!
//! Messages are JSON behind their length: four bytes, big-endian. At any place the server may say `refused` with its reason.
//! Members that a reader does not know it passes over.

pub mod auth;
pub mod datagram;
mod frame;
mod message;
mod plan;
mod preamble;
mod session;

pub use frame::{BadFrame, Decoder, MOST_TO_CLIENT, MOST_TO_SERVER, frame};
pub use message::{Limits, Reason, Refused, ToClient, ToServer};
pub use plan::{BadPlan, End, FEW, From, MOST_BYTES, Plan, Work};
pub use preamble::{BadPreamble, KEY, Key, Preamble};
pub use session::{Does, Session};

/// The protocol's version.
pub const VERSION: u32 = 1;
/// The server's port.
pub const PORT: u16 = 12_866;
