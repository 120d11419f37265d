//! A session-sender of STAMP, the Simple Two-Way Active Measurement Protocol (RFC 8762), in its unauthenticated mode, with the session
//! identifier and the Extra Padding TLV of RFC 8972. Reflectors of TWAMP-Light (RFC 5357, appendix I) answer it, too.
//!
//! ```text
//!   sender (the loop, its clock and its socket) --> session (what was sent, what each answer tells) --> direction (loss by direction)
//!        |                                             |
//!      kernel (datagrams, errors)                     packet, time (what stands on the wire)
//! ```
//!
//! `session` and what is below it are pure: times and bytes go in, packets and figures come out. A reflector may answer anything.

pub mod direction;
pub mod kernel;
pub mod packet;
pub mod sender;
pub mod session;
pub mod time;

/// Where reflectors listen (RFC 8762, section 4.1).
pub const PORT: u16 = 862;
