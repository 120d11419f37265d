//! Without the client.

use super::{Brokers, Unusable};
use crate::{Kept, Row, Sink};
use std::convert::Infallible;

/// There is none.
#[derive(Debug)]
pub struct Kafka(Infallible);

impl Kafka {
    /// Says what is wrong with the brokers, or that there is no client.
    ///
    /// # Errors
    /// Always.
    pub fn open(brokers: Brokers) -> Result<Kafka, Unusable> {
        brokers.check()?;
        Err(Unusable::Absent)
    }
}

impl Sink for Kafka {
    fn take(&mut self, _: &[Row]) {
        match self.0 {}
    }

    fn look(&mut self) {
        match self.0 {}
    }

    fn finish(&mut self) {
        match self.0 {}
    }

    fn kept(&self) -> &Kept {
        match self.0 {}
    }
}
