//! What netdyno's plugins are written with.
//!
//! A plugin is a WebAssembly module (or a module linked into netdyno) that turns options into traffic. Two worlds:
//!
//! * *compile* ([`Compile`]): options in, a [`Scenario`] out, once before the run. netdyno compiles the scenario to a
//!   packet program, so such a plugin costs nothing per frame, on every engine.
//! * *frames* ([`Frames`]): options in, then frame *n* for any *n*. For what a scenario cannot say.
//!
//! * [`description`]: what a plugin says about itself.
//! * [`scenario`]: the document a compile-world plugin yields.
//! * [`plugin`]: the traits, and plugins that are linked natively.
//!
//! The interface below the traits (exports of the module, layout of its memory) is in the documentation of
//! docs/writing-plugins.md.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod description;
pub mod plugin;
pub mod scenario;

pub use description::{Description, Example, Fault, World};
pub use plugin::{Compile, Frame, Frames, Input, Native, Run};
pub use scenario::Scenario;

#[doc(hidden)]
pub use {schemars, serde, serde_json};

/// Version of the interface between netdyno and a plugin.
pub const ABI: u32 = 1;
