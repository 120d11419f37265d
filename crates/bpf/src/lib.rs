//! bpf(2), as far as this project needs it: load bytecode, keep programs, attach them, run them on a frame, and share
//! memory with them. What programs do, and which objects are made of C, is their crates' own affair.
//!
//! Everything that is attached hangs on a descriptor: it goes with its process, however that ends. Callers: `meter` and
//! `live`, whose programs libbpf loads; `xdp`, which makes bytecode; `port`, which has drivers set up their rings.

pub mod kernel;
mod memory;
pub mod pass;
mod program;
mod quiet;

pub use memory::Memory;
pub use program::{Hook, Insn, Link, Program, Ran, Refused, Run, at_ingress};
pub use quiet::Quiet;
