//! A capture on another host: what is said between the agent that captures and the clone that copies.
//!
//! ```text
//!   agent:  segments --> forward: whole sessions, queue --> record --> channel ==TCP==> channel --> record --> table   :clone
//! ```
//!
//! No sockets and no clock: bytes and times come in, bytes go out.

pub mod channel;
pub mod forward;
pub mod offset;
pub mod record;
