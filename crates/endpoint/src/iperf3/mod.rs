//! iperf3's protocol (3.12 to 3.21): a control connection with states as single bytes and JSON behind a length, and what
//! datagrams carry; and iperf3's two ways to show results, text and JSON.
//!
//! No sockets, no clock, nothing printed: `transport::iperf3` has the sockets, the drop-in `netdyno iperf3` the command line.
//!
//! ```text
//!   client                                          server
//!   cookie                      -->
//!                               <--  PARAM_EXCHANGE (or ACCESS_DENIED)
//!   parameters                  -->
//!                               <--  CREATE_STREAMS (or SERVER_ERROR and two numbers)
//!   data connections: a cookie, or a datagram that is answered
//!                               <--  TEST_START, TEST_RUNNING
//!   ... data ...
//!   TEST_END                    -->
//!                               <--  EXCHANGE_RESULTS
//!   results                     -->
//!                               <--  results, DISPLAY_RESULTS
//!   IPERF_DONE                  -->
//! ```

pub mod auth;
pub mod client;
pub mod cookie;
pub mod datagram;
pub mod error;
mod inbox;
pub mod json;
pub mod params;
pub mod results;
pub mod server;
pub mod state;
pub mod summary;
pub mod text;
pub mod units;

pub use cookie::Cookie;
pub use error::{Code, Error};
pub use params::{Params, Protocol};
pub use results::Results;
pub use state::State;

/// The port of servers, for control and data.
pub const PORT: u16 = 5201;
/// Length of a TCP block unless one is asked for.
pub const TCP_BLOCK: u64 = 128 * 1024;
/// Length of a datagram where the control connection's segment size is not known.
pub const UDP_BLOCK: u64 = 1460;
/// Rate of UDP unless one is asked for: 1 Mbit/s with 1024 for a thousand, as iperf3 has it.
pub const UDP_RATE: u64 = 1024 * 1024;
/// The release whose protocol and output these are.
pub const VERSION: &str = "3.21";
/// What iperf3 limits.
pub mod limits {
    /// Streams in one direction.
    pub const STREAMS: u32 = 128;
    /// Seconds of a test.
    pub const SECONDS: u32 = 86_400;
    /// Seconds left out at the start.
    pub const OMIT: u32 = 600;
    /// Blocks sent at once.
    pub const BURST: u32 = 1000;
    /// Bytes of a block of TCP.
    pub const TCP_BLOCK: u64 = 1 << 20;
    /// Bytes of the blocks of a burst together, over TCP: ours, they leave in one call.
    pub const TCP_BURST: u64 = 64 << 20;
    /// Bytes of a datagram: room for time and number, and what IPv4 allows.
    pub const UDP_BLOCK: std::ops::RangeInclusive<u64> = 16..=65_507;
    /// Bytes of a socket's buffer.
    pub const WINDOW: u64 = 512 << 20;
    /// The largest segment.
    pub const MSS: u32 = 32_767;
    /// Bytes of the parameters' JSON.
    pub const PARAMS: usize = 8 << 10;
    /// Bytes of the results' JSON: output of a server of a day with many streams among them.
    pub const RESULTS: usize = 16 << 20;
}
