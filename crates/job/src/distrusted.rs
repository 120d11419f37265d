//! Engines that were seen to send nothing.

use crate::place::{Identity, Place};
use report::NotTaken;
use std::sync::{Arc, Mutex, PoisonError};

/// Which engines were seen to send nothing by which interfaces, in the runs of one session (a search's trials), so that of
/// many only the first waits in vain. A handle: clones are of the same session.
#[derive(Debug, Clone, Default)]
pub struct Distrusted(Arc<Mutex<Vec<(Identity, NotTaken)>>>);

impl Distrusted {
    /// Engines whose frames nobody saw leave by `place`.
    pub fn at(&self, place: &Place) -> Vec<NotTaken> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(here) = place.identity().filter(|_| !all.is_empty()) else { return Vec::new() };
        all.iter().filter(|(at, _)| *at == here).map(|(_, why)| why.clone()).collect()
    }

    /// Remembers one.
    pub fn add(&self, place: &Place, why: &NotTaken) {
        if let Some(here) = place.identity() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((here, why.clone()));
        }
    }
}
