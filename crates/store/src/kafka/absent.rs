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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_first_and_then_which_feature_is_missing() {
        let said = |topic: &str| {
            let addresses = vec!["host:9092".to_owned()];
            let brokers = Brokers { addresses, topic: topic.to_owned(), key: crate::Key::None };
            Kafka::open(brokers).expect_err("there is none").to_string()
        };
        assert!(said("a topic").contains("no name of a topic"));
        assert!(said("flows").contains("without Kafka (Cargo feature `kafka`)"));
    }
}
