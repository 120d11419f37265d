//! Where a run puts how it stands, and finds what its user wants.

use crate::Moment;
use std::sync::{Arc, Mutex, PoisonError};

/// What the user wants of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Pause, or go on.
    Pause,
    /// A step faster.
    Faster,
    /// A step slower.
    Slower,
    /// As fast as the command line says.
    AsAsked,
}

/// Shared by the run and those who look on.
#[derive(Debug, Default)]
pub struct Board {
    moment: Mutex<Option<Arc<Moment>>>,
    requests: Mutex<Vec<Request>>,
}

/// Requests that wait to be taken; further ones are dropped.
const MOST: usize = 64;

impl Board {
    pub fn publish(&self, moment: Moment) {
        *self.moment.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(moment));
    }

    /// The latest moment; `None` before the first.
    pub fn latest(&self) -> Option<Arc<Moment>> {
        self.moment.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn request(&self, request: Request) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() < MOST {
            requests.push(request);
        }
    }

    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
