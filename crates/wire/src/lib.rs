//! Headers, layers, checksums and the test signature, in place over byte slices. No I/O, no allocation on hot paths.
//!
//! Everything here takes bytes from outside and must not panic on any of them.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod background;
pub mod bytes;
pub mod checksum;
pub mod crc;
pub mod ends;
pub mod flow;
pub mod hex;
pub mod layers;
pub mod link;
pub mod mac;
pub mod numbers;
pub mod proto;
pub mod show;
pub mod signature;

pub use link::LinkType;
pub use mac::Mac;
