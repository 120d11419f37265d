//! The plugins that netdyno comes with, one module each.

use plugin_sdk::Native;

/// All of them.
pub const ALL: &[Native] = &[];
