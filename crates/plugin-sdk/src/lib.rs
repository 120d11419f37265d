//! What netdyno's plugins are written with.
//!
//! A plugin is a WebAssembly module (or a module linked into netdyno) that turns options into traffic. Two worlds:
//!
//! * *compile* ([`Compile`]): options in, a [`Scenario`] out, once before the run. netdyno compiles the scenario to a
//!   packet program, so such a plugin costs nothing per frame, on every engine.
//! * *frames* ([`Frames`]): options in, then frame *n* for any *n*. For what a scenario cannot say.
//!
//! * [`packet`], [`payload`], [`value`]: packets, as pleasant as the expression language.
//! * [`options`]: types of options that many plugins take.
//! * [`testing`]: runs a plugin in its own tests.
//! * [`description`]: what a plugin says about itself.
//! * [`scenario`]: the document a compile-world plugin yields.
//! * [`plugin`]: the traits, and plugins that are linked natively.
//!
//! A whole plugin:
//!
//! ```
//! use plugin_sdk::packet::*;
//! use plugin_sdk::options::Addresses;
//! use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! /// What may be set.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! struct Options {
//!     /// Who asks.
//!     clients: Addresses,
//!     /// Which port is asked.
//!     #[schemars(range(min = 1, max = 65535))]
//!     port: u16,
//! }
//!
//! impl Default for Options {
//!     fn default() -> Options {
//!         Options { clients: "10.0.0.0/16".parse().expect("a prefix"), port: 7 }
//!     }
//! }
//!
//! struct Echo;
//!
//! impl Compile for Echo {
//!     type Options = Options;
//!     const NAME: &'static str = "echo";
//!     const VERSION: &'static str = "1.0.0";
//!     const ABOUT: &'static str = "Requests to an echo server, from many clients.";
//!
//!     fn examples() -> Vec<Example> {
//!         vec![Example::new("The discard port instead", serde_json::json!({ "port": 9 }))]
//!     }
//!
//!     fn compile(options: Options, _: &Run) -> Result<Scenario, Fault> {
//!         let request = ipv4().src(&options.clients).dst("198.18.0.1") / udp().sport(1024..=65535).dport(options.port);
//!         Ok(Scenario::of(Stream::new(request)))
//!     }
//! }
//!
//! // In a module of its own: plugin_sdk::export_compile!(Echo);
//!
//! plugin_sdk::testing::check::<Echo>();
//! let scenario = plugin_sdk::testing::compile::<Echo>(&serde_json::json!({ "port": 9 }));
//! assert_eq!(scenario.streams[0].frame, "ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535, dport=9)");
//! ```
//!
//! The interface below the traits (exports of the module, layout of its memory) is described in docs/writing-plugins.md.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod description;
pub mod guest;
pub mod options;
pub mod packet;
pub mod payload;
pub mod plugin;
pub mod scenario;
#[cfg(feature = "templates")]
pub mod templates;
pub mod testing;
pub mod value;

pub use description::{Description, Example, Fault, World};
pub use plugin::{Compile, Frame, Frames, Input, Native, Run};
pub use scenario::{Scenario, Stream};

#[doc(hidden)]
pub use {schemars, serde, serde_json};

/// Version of the interface between netdyno and a plugin.
pub const ABI: u32 = 1;
