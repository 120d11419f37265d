//! netdyno's own endpoint tests, over sockets: [`Client`] and [`serve`]. What is said is `endpoint::native`'s.

mod channel;
mod client;
mod flows;
mod join;
mod opening;
mod results;
mod server;
#[cfg(test)]
mod tests;

pub use channel::{ChannelError, Place};
pub use client::{Client, ClientError, Outcome, Prepared, Running, Test};
pub use results::{FlowResult, Host, Results, Sample, TcpNow};
pub use server::{Server, ServerOptions, Standing, serve};

/// What was sent arrives at the server within this after the client said that the test is over. Until then the server may be silent.
const ARRIVES: std::time::Duration = std::time::Duration::from_secs(5);

/// What a server says.
pub(crate) type FromServer = endpoint::native::ToClient<Sample, Box<Results>, Host>;
