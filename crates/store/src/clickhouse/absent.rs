//! Without the client.

use super::{Refused, Server};
use crate::{Kept, Row, Sink};
use std::convert::Infallible;

/// There is none.
#[derive(Debug)]
pub struct ClickHouse(Infallible);

impl ClickHouse {
    /// Says what is wrong with the server's address or table, or that there is no client.
    ///
    /// # Errors
    /// Always.
    pub fn open(server: Server, _run: String) -> Result<ClickHouse, Refused> {
        server.check()?;
        Err(Refused::Absent)
    }

    /// No table is ever made.
    pub fn has_made_table(&self) -> bool {
        match self.0 {}
    }
}

impl Sink for ClickHouse {
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
        let said = |url: &str| {
            let server = Server {
                url: url.to_owned(),
                table: "flows".to_owned(),
                user: String::new(),
                password: String::new(),
            };
            ClickHouse::open(server, String::new()).expect_err("there is none").to_string()
        };
        assert!(said("https://host").contains("http://HOST:8123"));
        assert!(said("http://host:8123").contains("without ClickHouse (Cargo feature `clickhouse`)"));
    }
}
