//! Plugins: what traffic looks like, said by a program instead of an expression.
//!
//! ```text
//!   name or path --find--> Plugin --describe--> Description: options, world
//!                            |
//!   options --options--------|-- checked against the plugin's own schema
//!                            |
//!   world compile:           '--compile--> scenario --> traffic::Program    nothing of the plugin runs while frames leave
//!   world frames:            '--open-----> engine::source::Row              batches of frames, an instance for each core
//! ```
//!
//! Plugins are built in (crate `plugins`, native) or WebAssembly modules. A module reaches nothing of this host: no files, no
//! network, no clock, no randomness; memory, time and what it returns are bounded (`abi`, [`Limits`]). What it returns is
//! checked as if it came from the network.
//!
//! * `abi`: the boundary, as functions over bytes. * `options`: settings by words, `schema`: what they are checked by. * `judge`: where frames go, for
//!   plugins that may send to private addresses only. * `find`: names, folders. * `guest`, `wasi`, `cache`, `frames`:
//!   modules; with the feature `wasm` only.

#![deny(missing_docs, clippy::missing_errors_doc)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod abi;
#[cfg(feature = "wasm")]
mod cache;
mod description;
mod error;
mod find;
#[cfg(feature = "wasm")]
mod frames;
#[cfg(feature = "wasm")]
mod guest;
pub mod judge;
pub mod options;
mod schema;
#[cfg(feature = "wasm")]
mod wasi;

pub use description::read as read_description;
pub use error::{Invalid, PluginError};
pub use find::{Listed, Origin, Plugin, find, folders, list, load};
#[cfg(feature = "wasm")]
pub use guest::Limits;
pub use plugin_sdk::{Description, Example, Fault, World, templates};

use engine::source::{Frames as _, Row, SourceError};
use traffic::Slab;

/// Hands the first `most` frames of a plugin to `take`, all of them if there are fewer. Returns how many.
///
/// # Errors
/// The plugin cannot make one.
pub fn each_frame(frames: &mut Row, most: u64, mut take: impl FnMut(&[u8])) -> Result<u64, SourceError> {
    let mut slab = Slab::new(abi::MOST_IN_A_BATCH, frames.facts().longest.unwrap_or_default());
    let (mut due, mut taken) = ([0; abi::MOST_IN_A_BATCH], 0);
    while taken < most {
        let count = usize::try_from(most - taken).unwrap_or(usize::MAX).min(abi::MOST_IN_A_BATCH);
        let count = frames.fill(&mut slab.buffers(), count, u64::MAX, &mut due)?;
        if count == 0 {
            break;
        }
        (0..count).for_each(|i| take(slab.frame(i)));
        taken += count as u64;
    }
    Ok(taken)
}

#[cfg(all(test, feature = "wasm"))]
mod tests;
