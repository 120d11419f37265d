//! Without the full-screen view.

use crate::GaugesError;
use snapshot::Board;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Is the terminal drawn on now? It never is.
pub fn is_drawn() -> bool {
    false
}

/// Can there be a screen?
///
/// # Errors
/// Always: this build has none.
pub fn check() -> Result<(), GaugesError> {
    Err(GaugesError::Absent)
}

/// There is none.
#[derive(Debug)]
pub struct Screen(#[allow(dead_code, reason = "that there can be no value is what it says")] Infallible);

impl Screen {
    /// Says that there is none.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: Arc<Board>, _: Arc<AtomicBool>) -> Result<Screen, GaugesError> {
        Err(GaugesError::Absent)
    }
}
