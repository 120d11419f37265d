//! The arguments of `netdyno collect`.

use super::{Output, word};
use clap::{Args, ValueHint};
use spec::{KafkaKey, PartitionBy, Written};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct Collect {
    /// Where messages come to, of any of the protocols, or, as tcp://ADDR:PORT, of IPFIX over TCP; may be given more than once.
    /// Default: 0.0.0.0:2055 (IPv4).
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<String>,
    /// Write the records to this file: .csv, .jsonl (a JSON object a line), .pb (goflow2's messages) or .parquet; may be
    /// given more than once. It appears when all is written. -.pb, -.csv, -.jsonl: standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, allow_hyphen_values = true)]
    pub write: Vec<PathBuf>,
    /// Begin a new file when so much time has begun: FILE then is what names begin with (flows-20261124T013000Z.parquet).
    #[arg(long, value_name = "TIME", requires = "write")]
    pub rotate: Option<Written<Duration>>,
    /// Begin a new file when one has so many bytes, such as 128M.
    #[arg(long, value_name = "BYTES", requires = "write")]
    pub rotate_size: Option<Written<u64>>,
    /// Put files into folders by when records came: date=2026-11-24/hour=01 (hour), or without the hour (day). UTC.
    #[arg(long, value_name = "BY", requires = "write", value_parser = word::<PartitionBy>())]
    pub partition: Option<PartitionBy>,
    /// Insert the records into a ClickHouse by HTTP (http://HOST:8123).
    #[arg(long, value_name = "URL")]
    pub clickhouse: Option<String>,
    /// Its table (TABLE or DATABASE.TABLE), which is made where there is none. Default: flows.
    #[arg(long, value_name = "TABLE", requires = "clickhouse")]
    pub clickhouse_table: Option<String>,
    /// The user who inserts.
    #[arg(long, value_name = "NAME", requires = "clickhouse")]
    pub clickhouse_user: Option<String>,
    /// A file whose first line is the user's password.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "clickhouse")]
    pub clickhouse_password_file: Option<PathBuf>,
    /// Produce the records to Kafka: brokers of the cluster, HOST:PORT[,HOST:PORT]. A message for each, goflow2's FlowMessage behind
    /// its length.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub kafka: Vec<String>,
    /// Kafka's topic. Default: flows.
    #[arg(long, value_name = "TOPIC", requires = "kafka")]
    pub kafka_topic: Option<String>,
    /// What messages are keyed by: none (spread over partitions), or sampler (the exporter's address: its records stay in order).
    #[arg(long, value_name = "KEY", requires = "kafka", value_parser = word::<KafkaKey>())]
    pub kafka_key: Option<KafkaKey>,
    /// Share the port with other collectors that share it, too: each gets the messages of some exporters. Without it a port that
    /// somebody has is refused.
    #[arg(long)]
    pub share_port: bool,
    /// Receive by N threads, among which the kernel shares out exporters. Default: 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// Collect for this long. Default: until interrupted.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Written<Duration>>,
    /// End when this many records have come.
    #[arg(long, value_name = "RECORDS")]
    pub count: Option<Written<u64>>,
    #[command(flatten)]
    pub output: Output,
}

impl Collect {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let listen = if self.listen.is_empty() { vec!["0.0.0.0:2055".to_owned()] } else { self.listen };
        let clickhouse = self.clickhouse.map(|url| spec::ClickHouse {
            url,
            table: self.clickhouse_table,
            user: self.clickhouse_user,
            password_file: self.clickhouse_password_file,
        });
        let kafka = (!self.kafka.is_empty()).then_some(spec::Kafka {
            brokers: self.kafka,
            topic: self.kafka_topic,
            key: self.kafka_key,
        });
        let job = spec::Collect {
            clickhouse,
            kafka,
            listen,
            write: self.write,
            rotate: self.rotate,
            rotate_size: self.rotate_size,
            partition: self.partition,
            share_port: self.share_port,
            threads: self.threads,
            duration: self.duration,
            count: self.count,
        };
        (job.into(), self.output)
    }
}
