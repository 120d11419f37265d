//! Kafka: a message for each row, as goflow2's own producer has it: its `FlowMessage` behind the message's length, which is what
//! ClickHouse's `kafka_format = 'Protobuf'` and goflow2's enrichers read.
//!
//! librdkafka has threads of its own, makes batches, and sends a batch again until the broker has confirmed it, each once
//! (an idempotent producer, `acks=all`). What waits is bounded, and while no broker answers what has no room there is lost, and
//! counted. At the end brokers have some seconds; what is not confirmed by then counts as lost.

#[cfg(any(test, not(feature = "kafka")))]
#[cfg_attr(feature = "kafka", allow(dead_code, reason = "it is compiled for its test"))]
mod absent;
#[cfg(feature = "kafka")]
mod client;

#[cfg(not(feature = "kafka"))]
pub use absent::Kafka;
#[cfg(feature = "kafka")]
pub use client::Kafka;

/// The cluster, and what goes there.
#[derive(Debug, Clone)]
pub struct Brokers {
    /// `HOST:PORT` of some brokers.
    pub addresses: Vec<String>,
    /// Where messages go.
    pub topic: String,
    /// What they are keyed by.
    pub key: Key,
}

/// What messages are keyed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Nothing: partitions are filled by chance, a batch at a time.
    None,
    /// The exporter's address, 4 or 16 bytes.
    Sampler,
}

/// Why rows cannot go there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nobody would know what that is.
    #[error("`{0}` is no address of a broker: give HOST:PORT, such as kafka:9092 or [2001:db8::1]:9092")]
    Address(String),
    /// Kafka allows letters, digits, `.`, `_`, `-`, and 249 of them.
    #[error("`{0}` is no name of a topic: 1 to 249 letters, digits, `.`, `_` and `-`")]
    Topic(String),
    /// A netdyno without Kafka's client.
    #[error("{}", report::absent("Kafka", "kafka"))]
    Absent,
    /// The client cannot be set up.
    #[error("Kafka's client: {0}")]
    Client(String),
}

impl Brokers {
    /// Can there be such brokers and such a topic?
    fn check(&self) -> Result<(), Unusable> {
        for address in &self.addresses {
            let (host, port) = address.rsplit_once(':').unwrap_or_default();
            // An address of IPv6 stands in brackets, a list is cut at its commas, and a protocol's name is not wanted.
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            let odd = bare.contains(['[', ']', '/', ',', ' ', '\0']) || bare.contains(':') && bare == host;
            if host.is_empty() || bare.is_empty() || odd || !port.parse::<u16>().is_ok_and(|port| port > 0) {
                return Err(Unusable::Address(address.clone()));
            }
        }
        if self.addresses.is_empty() {
            return Err(Unusable::Address(String::new()));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let topic = &self.topic;
        if !(1..=249).contains(&topic.len()) || topic == "." || topic == ".." || !topic.bytes().all(allowed) {
            return Err(Unusable::Topic(topic.clone()));
        }
        Ok(())
    }
}
