//! netperf's protocol: messages of 656 bytes over a control connection, what is said in them, and what netperf prints.
//!
//! ```text
//!   bytes --> message::Reader --> server::Server --> server::Step (reply, run this test, close)
//!                                 client::Client --> client::Step (send, run the data phase, done)
//!   what a test came to: figures::Figures --> selectors, layout (text), confidence
//! ```
//!
//! No sockets, no clock, no files: `transport::netperf` has them. Speaks what netperf 2.6, 2.7.0 and 2.7.1 say: the omni test, and
//! as a server the older requests of builds without it. Releases before 2.6 have messages of 256 bytes and are not understood.

pub mod client;
pub mod confidence;
pub mod figures;
pub mod layout;
pub mod legacy;
pub mod message;
pub mod omni;
pub mod plan;
pub mod selectors;
pub mod server;

/// The port of netserver's control connections.
pub const PORT: u16 = 12865;
