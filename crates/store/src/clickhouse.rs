//! ClickHouse, by its HTTP interface: rows are inserted in blocks, as `RowBinary`.
//!
//! A block goes when it has enough rows or is a second old. A server that does not answer, or says that it cannot now, gets the
//! same block again, with the same token, so that a block that did arrive is not there twice; meanwhile some more blocks wait,
//! and what then has no room is lost, and counted. A block that a server refuses for what it is, is lost at once.
//!
//! What was learned of servers: an error that comes late stands in the body of an answer with status 200, which is empty
//! otherwise (<https://clickhouse.com/docs/interfaces/http>).

#[cfg(any(test, not(feature = "clickhouse")))]
#[cfg_attr(feature = "clickhouse", allow(dead_code, reason = "it is compiled for its test"))]
mod absent;
#[cfg(feature = "clickhouse")]
mod client;

#[cfg(not(feature = "clickhouse"))]
pub use absent::ClickHouse;
#[cfg(feature = "clickhouse")]
pub use client::ClickHouse;

/// Where the database is.
#[derive(Clone)]
pub struct Server {
    /// `http://HOST:8123`
    pub url: String,
    /// `TABLE` or `DATABASE.TABLE`.
    pub table: String,
    /// Empty: ClickHouse's default one.
    pub user: String,
    /// Empty: none.
    pub password: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Passwords are in no output.
        write!(f, "{} {}", self.url, self.table)
    }
}

/// Why rows cannot go there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nobody would know what that is.
    #[error("`{0}` is no address of a server: give http://HOST:8123 (https:// is not spoken)")]
    Url(String),
    /// Other characters than letters, digits and `_`.
    #[error("`{0}` is no name of a table: give TABLE or DATABASE.TABLE, of letters, digits and _")]
    Table(String),
    /// A netdyno without its client.
    #[error("{}", report::absent("ClickHouse", "clickhouse"))]
    Absent,
    /// No answer, or not the one of a ClickHouse.
    #[error("{url} does not answer: {why}")]
    Silent {
        /// The server.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// The server said no.
    #[error("{url} says: {said}")]
    Said {
        /// The server.
        url: String,
        /// In its words.
        said: String,
    },
}

impl Server {
    fn check(&self) -> Result<(), Refused> {
        let rest = self.url.strip_prefix("http://").unwrap_or_default();
        let host = rest.trim_end_matches('/');
        if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
            return Err(Refused::Url(self.url.clone()));
        }
        let parts: Vec<&str> = self.table.split('.').collect();
        let is_name = |part: &&str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if parts.len() > 2 || !parts.iter().all(is_name) {
            return Err(Refused::Table(self.table.clone()));
        }
        Ok(())
    }
}
