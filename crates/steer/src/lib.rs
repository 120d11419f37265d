//! At a clone's target: copies come with their clients' own addresses through a tunnel, and the answers to them go back through it,
//! never to a client. No tunnel device, no route and no sysctl of the target changes.
//!
//! ```text
//!   engine ==VXLAN==> NIC ingress: arrive -- learns the flow, takes the outer headers off --> the target's stack
//!   engine <==VXLAN== NIC <-- any interface's egress: depart -- answers of learned flows <---------'
//! ```
//!
//! The programs (`programs/bpf/steer.bpf.c`) hang on `clsact` filters, which stay when their loader dies: answers stay away from
//! clients as long as a socket may send any. [`Steering`] keeps them fed, [`clean`] takes them away once no learned flow has a
//! socket. Callers: `netdyno clone return`, which has a second process that cleans up when the first one is gone.
//!
//! A flow is learned only while [`Steering::turn`] is called: it renews a lease that the program looks at. A flow is forgotten only
//! when no socket of this network namespace has it.

#![deny(missing_docs, clippy::missing_errors_doc)]

mod clean;
mod filters;
mod flows;
mod options;
mod programs;
mod sockets;
mod steering;
#[cfg(test)]
mod tests;

pub use bpf::ProgramError;
pub use clean::{Cleaned, clean};
pub use filters::reverse_path;
pub use flows::Counts;
pub use options::{ENGINE_MAC, OWN_MAC, Options, PORT, VNI};
pub use steering::{Standing, SteerError, Steering};
