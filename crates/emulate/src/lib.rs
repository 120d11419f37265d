//! Emulated devices on an interface: each has an Ethernet address, perhaps VLAN tags, and IP addresses. They answer ARP, neighbour
//! discovery and ping, and find out the Ethernet addresses of their gateways.
//!
//! ```text
//!   packet socket --frames--> Devices (no socket, no clock) --frames--> packet socket
//!                                |
//!                                '--> neighbours, counts
//! ```
//!
//! It is for few frames: a filter in the kernel keeps all others from the socket, and test frames are never answered. The host's own stack
//! does not know the devices. All belongs to one thread and its sockets, so that nothing is left of it, however the process ends.
//! Caller: `agent`, for Open Traffic Generator's `devices`.

#![deny(missing_docs, clippy::missing_errors_doc)]

mod devices;
mod filter;
mod frame;
mod running;

pub use devices::{Counts, Device, Devices, Neighbour, Vlan};
pub use running::{EmulateError, Emulation};
