//! Where flow records are kept that a collector received.
//!
//! ```text
//!   rows -+-> Files       .csv .jsonl .pb .parquet, one file or many (rotated, in folders by day and hour)
//!        |-> ClickHouse  inserts by HTTP, in blocks
//!        '-> Kafka       a message of protocol buffers for each row, in batches
//! ```
//!
//! A [`Sink`] takes rows from one thread, and says what became of them: kept, or lost and why. It has no queue and no thread;
//! who must not wait for it has both. Columns have the names of goflow2's flows, which dashboards know, in every form.
//! `bytes` are bytes of IP.
//!
//! Parquet, Kafka and ClickHouse are Cargo features: what the first two need takes minutes to build. Without them they are errors that
//! say so.

mod clickhouse;
mod columns;
mod files;
mod ground;
mod kafka;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "parquet/absent.rs"]
mod parquet;
mod protobuf;
mod text;

pub use clickhouse::{ClickHouse, Refused, Server};
pub use files::{Files, Form, Partition, Plan};
pub use kafka::{Brokers, Kafka, Key, Unusable};

use flow::element;
use flow::record::{Format, Other, Record};
use std::net::IpAddr;

/// Bytes of fields without a column that a row keeps; what does not fit is left out ([`Row::is_trimmed`]). A single one may have 65,535.
pub const MOST_OTHERS: usize = 1024;

/// A record, and what is known beside it.
#[derive(Debug, Clone)]
pub struct Row {
    record: Record,
    from: IpAddr,
    received_ns: u64,
    /// Fields that have no column.
    others: Vec<(element::Number, Vec<u8>)>,
    /// Some of these had no room.
    trimmed: bool,
}

impl Row {
    /// A record that came from an exporter at a time (nanoseconds since 1970), with fields that [`Record`] has no place for.
    pub fn of(record: &Record, others: &[Other<'_>], from: IpAddr, received_ns: u64) -> Row {
        // Agents of sFlow say their own address; their datagrams may come through another's.
        let is_agent =
            |other: &&Other<'_>| record.format == Format::Sflow && element::EXPORTER.contains(&other.number);
        let agent = others.iter().find(is_agent).and_then(|agent| address(agent.bytes));
        let from = agent.unwrap_or(from);
        let (mut left, mut trimmed) = (MOST_OTHERS, false);
        let fits = others.iter().filter(|other| !is_agent(other)).filter(|other| {
            let fits = left.checked_sub(other.bytes.len());
            left = fits.unwrap_or(left);
            trimmed |= fits.is_none();
            fits.is_some()
        });
        let others = fits.map(|other| (other.number, other.bytes.to_vec())).collect();
        Row { record: *record, from, received_ns, others, trimmed }
    }

    /// Were fields left out, because they had no room?
    pub fn is_trimmed(&self) -> bool {
        self.trimmed
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|v4| IpAddr::from(*v4)),
        16 => bytes.first_chunk::<16>().map(|v6| IpAddr::from(*v6)),
        _ => None,
    }
}

/// What became of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Written, and whole: a file has its name, a database has confirmed them, a pipe that ended has taken them.
    pub records: u64,
    /// Taken and not written.
    pub lost: u64,
    /// What went wrong first.
    pub fault: Option<String>,
    /// What went wrong, how often.
    pub faults: u64,
}

impl Kept {
    fn fail(&mut self, lost: u64, fault: impl FnOnce() -> String) {
        self.lost += lost;
        self.faults += 1;
        self.fault.get_or_insert_with(fault);
    }
}

/// Where rows go.
pub trait Sink: Send + std::fmt::Debug {
    /// Takes rows. What cannot be written is counted, and does not keep it from taking the next.
    fn take(&mut self, rows: &[Row]);

    /// Does what is due: to be called about once a second.
    fn look(&mut self);

    /// Writes what waits: nothing is taken after it.
    fn finish(&mut self);

    /// What became of the rows so far.
    fn kept(&self) -> &Kept;
}
