//! A flow collector: records of NetFlow, IPFIX and sFlow are received, checked and written.

use crate::check::{self, Contradiction};
use crate::kind::Kind;
use crate::words::words;
use crate::{Consent, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

words! {
    /// What folders of files are by.
    PartitionBy {
        /// `date=2026-11-24/hour=01`.
        Hour = "hour",
        /// `date=2026-11-24`.
        Day = "day",
    }
}

words! {
    /// What messages are keyed by, and with it which partition they go to.
    KafkaKey {
        /// No key: batches go to partitions by chance.
        None = "none",
        /// The exporter's address: its records stay in order, in one partition.
        Sampler = "sampler",
    }
}

/// Records of NetFlow v5 and v9, IPFIX and sFlow v5 are received, checked and written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    /// Addresses and ports that messages come to: over UDP (ADDR:PORT) of any of the protocols, over TCP (tcp://ADDR:PORT) of IPFIX.
    pub listen: Vec<String>,
    /// Files that the records are written to, by their endings: .csv, .jsonl (one JSON object a line), .pb (goflow2's protocol
    /// buffers, each behind its length), .parquet. `-.pb` and the like: standard output in that form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// A new file when so much time has begun, counted from 1970: at least a second. Their names have the time behind that of
    /// `write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Written<Duration>>,
    /// A new file when one has so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_size: Option<Written<u64>>,
    /// Files are in folders by when records came (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionBy>,
    /// A ClickHouse that gets the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clickhouse: Option<ClickHouse>,
    /// Kafka brokers that get the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kafka: Option<Kafka>,
    /// Share the ports with other collectors that do: each gets the messages of some exporters. Default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub share_port: bool,
    /// Threads that receive, among which the kernel shares out exporters. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// For so long. Default: until it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// Until so many records came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Written<u64>>,
}

/// A ClickHouse, by its HTTP interface. The table is made where there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClickHouse {
    /// `http://HOST:8123`
    pub url: String,
    /// `TABLE` or `DATABASE.TABLE`. Default: `flows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Who inserts. Default: ClickHouse's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A file with the password: its first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
}

/// A Kafka cluster, which gets a message for each record: goflow2's `FlowMessage` behind its length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kafka {
    /// Brokers to ask for the cluster (`HOST:PORT`); it says itself where the others are.
    pub brokers: Vec<String>,
    /// Default: `flows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KafkaKey>,
}

impl Collect {
    /// Do records go to standard output? Nothing else should, then.
    pub fn writes_to_stdout(&self) -> bool {
        self.write.iter().any(|path| is_stdout(path))
    }
}

/// `-.csv`, `-.jsonl`, `-.pb`, `-.parquet`
fn is_stdout(path: &Path) -> bool {
    path.parent() == Some(Path::new("")) && path.file_stem().is_some_and(|stem| stem == "-")
}

impl Kind for Collect {
    fn yes_disrupt(&self) -> &[String] {
        // It takes nothing from anybody.
        &[]
    }

    fn asks(&self) -> Consent {
        // Standard output is whoever runs it's own.
        let files = self.write.iter().filter(|path| !is_stdout(path)).cloned().collect();
        let mut addresses: Vec<String> =
            self.clickhouse.iter().map(|database| database.url.clone()).collect();
        addresses.extend(self.kafka.iter().flat_map(|kafka| kafka.brokers.iter().cloned()));
        let read = self.clickhouse.iter().filter_map(|database| database.password_file.clone()).collect();
        Consent { write: files, read, addresses, ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::collect(self)
    }
}
