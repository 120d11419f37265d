//! bpf(2), as far as this project needs it: load bytecode, keep programs, attach them, run them on a frame, and share
//! memory with them ([`Memory`], [`Mapping`]). What programs do, and which objects are made of C, is their crates' own affair;
//! what their loaders do alike stands in [`object`] and [`attach`].
//!
//! Everything that is attached hangs on a descriptor: it goes with its process, however that ends. Callers: `meter`,
//! `reflector`, `forwarder` and `live`, whose programs libbpf loads; `xdp`, which makes bytecode; `port`, which has drivers
//! set up their rings and frames redirected to its sockets.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod attach;
mod error;
pub mod kernel;
mod mapping;
mod memory;
pub mod object;
pub mod pass;
mod perf;
mod program;
mod quiet;
pub mod redirect;
mod ring;

pub use error::ProgramError;
pub use mapping::{Mapping, Words, zeroed};
pub use memory::Memory;
pub use perf::PerfRings;
pub use program::{
    Hook, Insn, Link, Program, Ran, Refused, Run, Runs, Statistics, at_egress, at_ingress, without_pins,
};
pub use quiet::Quiet;
pub use ring::Ring;
