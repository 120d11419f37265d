//! The packet expression language: `ipv4(src=10.0.0.0/16)/udp(sport=1024..65535)` to a [`Program`].
//!
//! ```text
//!   text --syntax--> layers --header, value, lists--> bytes of each header --compile--> Program
//! ```
//!
//! Users read about it in `docs/expressions.md`. The protocols are tables in [`wire::proto`]; nothing here knows
//! a field that is not there. Whatever is typed, compiling it neither panics nor takes unbounded memory.

mod compile;
mod error;
mod header;
mod lists;
mod messages;
mod patches;
mod size;
mod syntax;
mod value;

pub use error::ExprError;
pub use error::did_you_mean;
pub use size::{BadSize, FCS, MAX_SIZE, Size};

use crate::program::Program;

/// What a program needs that an expression does not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Frame sizes, with their frame check sequence; payload is added to fit. `None`: as long as the layers are.
    pub size: Option<Size>,
    /// Selects the random values: the same seed, the same frames.
    pub seed: u64,
    /// Reserve the last 18 bytes of payload for a signature with this stream number.
    pub signature: Option<u32>,
    /// The stream's name in results; the expression itself if empty.
    pub name: String,
}

/// Compiles an expression to a program of one stream, sent as fast as it goes.
///
/// # Errors
/// Where the expression is wrong, and what is meant instead.
pub fn compile(text: &str, options: &Options) -> Result<Program, ExprError> {
    syntax::parse(text)
        .and_then(|layers| compile::compile(text, &layers, options))
        .map_err(|fault| ExprError::new(text, fault))
}

#[cfg(test)]
mod tests;
