//! A flow collector: records of NetFlow, IPFIX and sFlow are received, checked and written.

use crate::check::{self, Contradiction};
use crate::kind::Kind;
use crate::setting::{Member, Settings as _};
use crate::words::words;
use crate::{Consent, Written};
use settings::settings;
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
#[settings]
pub struct Collect {
    /// Where messages come to, of any of the protocols, or, as tcp://ADDR:PORT, of IPFIX over TCP; may be given more than once.
    /// Default: 0.0.0.0:2055 (IPv4).
    #[setting(value = "ADDR:PORT", initial = "0.0.0.0:2055")]
    pub listen: Vec<String>,
    /// Write the records to this file: .csv, .jsonl (a JSON object a line), .pb (goflow2's messages) or .parquet; may be
    /// given more than once. It appears when all is written. -.pb, -.csv, -.jsonl: standard output.
    #[setting(short = 'w', value = "FILE", hyphens, consent)]
    pub write: Vec<PathBuf>,
    /// Begin a new file at each multiple of this time: names then begin with FILE (flows-20261124T013000Z.parquet).
    #[setting(value = "TIME", needs("write"))]
    pub rotate: Option<Written<Duration>>,
    /// Begin a new file when one has this many bytes: 128M.
    #[setting(value = "BYTES", needs("write"))]
    pub rotate_size: Option<Written<u64>>,
    /// Put files into folders by when records came: date=2026-11-24/hour=01 (hour), or without the hour (day). UTC.
    #[setting(value = "BY", needs("write"))]
    pub partition: Option<PartitionBy>,
    /// A ClickHouse that gets the records.
    #[setting(within)]
    pub clickhouse: Option<ClickHouse>,
    /// Kafka brokers that get the records.
    #[setting(within)]
    pub kafka: Option<Kafka>,
    /// Share the port with other collectors that share it, too: each gets the messages of some exporters. Without it a port that
    /// somebody has is refused.
    pub share_port: bool,
    /// Receive by N threads, among which the kernel shares out exporters. Default: 1.
    #[setting(value = "N", least = 1, most = 256)]
    pub threads: Option<u32>,
    /// Collect for this long. Default: until interrupted.
    #[setting(value = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End when this many records have come.
    #[setting(value = "RECORDS")]
    pub count: Option<Written<u64>>,
}

/// A ClickHouse, by its HTTP interface. The table is made where there is none.
#[settings(perhaps)]
pub struct ClickHouse {
    /// Insert the records into a ClickHouse by HTTP (http://HOST:8123).
    #[setting(option = "clickhouse", value = "URL", consent)]
    pub url: String,
    /// Its table (TABLE or DATABASE.TABLE), which is made where there is none. Default: flows.
    #[setting(option = "clickhouse-table", value = "TABLE", needs("url"))]
    pub table: Option<String>,
    /// The user who inserts. Default: ClickHouse's own default.
    #[setting(option = "clickhouse-user", value = "NAME", needs("url"))]
    pub user: Option<String>,
    /// A file whose first line is the user's password.
    #[setting(option = "clickhouse-password-file", value = "FILE", needs("url"), consent)]
    pub password_file: Option<PathBuf>,
}

/// A Kafka cluster, which gets a message for each record: goflow2's `FlowMessage` behind its length.
#[settings(perhaps)]
pub struct Kafka {
    /// Produce the records to Kafka: brokers of the cluster, HOST:PORT[,HOST:PORT]. A message for each, goflow2's FlowMessage behind
    /// its length.
    #[setting(option = "kafka", value = "HOST:PORT", comma, always, consent)]
    pub brokers: Vec<String>,
    /// Kafka's topic. Default: flows.
    #[setting(option = "kafka-topic", value = "TOPIC", needs("brokers"))]
    pub topic: Option<String>,
    /// What messages are keyed by: none (spread over partitions), or sampler (the exporter's address: its records stay in order).
    #[setting(option = "kafka-key", value = "KEY", needs("brokers"))]
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
    fn settings() -> &'static [Member] {
        Collect::MEMBERS
    }

    fn yes_disrupt(&self) -> &[String] {
        // It takes nothing from anybody.
        &[]
    }

    fn asks(&self) -> Consent {
        // Standard output is whoever runs it's own.
        let files = self.write.iter().filter(|path| !is_stdout(path)).cloned().collect();
        let mut addresses: Vec<String> = self
            .clickhouse
            .iter()
            .map(|database| database.url.clone())
            .filter(|url| !url.is_empty())
            .collect();
        addresses.extend(self.kafka.iter().flat_map(|kafka| kafka.brokers.iter().cloned()));
        let read = self.clickhouse.iter().filter_map(|database| database.password_file.clone()).collect();
        Consent { write: files, read, addresses, ..Consent::default() }
    }

    fn check(&self) -> Result<(), Contradiction> {
        check::collect(self)
    }
}
