//! Metrics for Prometheus: [`text`] renders a moment, [`Server`] answers requests for it.

mod head;
mod names;
mod server;
pub mod text;

pub use server::Server;
