//! Flow records: which flow a packet belongs to, the table of flows, and how records are written and read: NetFlow v5 and v9,
//! IPFIX.
//!
//! ```text
//!   frame --packet--> key, octets, flags --table--> record that is over --export--> messages
//!   messages --collect--> records
//! ```
//!
//! Messages go as datagrams, or as those of a connection ([`stream`]).
//!
//! No sockets and no clock: bytes and times come in, bytes come out. `octets` are bytes of IP everywhere, headers and payload
//! without link headers, padding and FCS, as `octetDeltaCount` has them (RFC 5102).

#![deny(missing_docs, clippy::missing_errors_doc)]

mod ahead;
pub mod collect;
pub mod element;
pub mod export;
pub mod key;
pub mod packet;
pub mod record;
pub mod sampling;
pub mod stream;
pub mod table;
pub mod template;
