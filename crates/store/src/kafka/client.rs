//! The client: librdkafka's.

use super::{Brokers, Key, Unusable};
use crate::{Kept, Row, Sink, protobuf};
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, PurgeConfig, ThreadedProducer};
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Messages that wait for a broker, at most: with what librdkafka keeps of each, some 100 MB.
const WAITING: u64 = 262_144;
/// A broker that takes messages, though slowly, is waited for; one that has taken none for so long is not.
const PATIENCE: Duration = Duration::from_secs(1);
/// At the end brokers have so long.
const LAST: Duration = Duration::from_secs(5);

/// What the client's thread learns.
#[derive(Debug, Default)]
struct Told {
    confirmed: AtomicU64,
    refused: AtomicU64,
    /// What went wrong first.
    fault: Mutex<Option<String>>,
}

impl Told {
    fn fault(&self, said: impl FnOnce() -> String) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(said);
    }
}

/// Called by the client's thread.
struct Context {
    told: Arc<Told>,
}

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    fn error(&self, _: KafkaError, reason: &str) {
        self.told.fault(|| short(reason));
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = ();

    fn delivery(&self, delivered: &DeliveryResult<'_>, (): ()) {
        match delivered {
            Ok(_) => {
                self.told.confirmed.fetch_add(1, Relaxed);
            }
            Err((error, _)) => {
                self.told.refused.fetch_add(1, Relaxed);
                let given_up = error.rdkafka_error_code() == Some(RDKafkaErrorCode::PurgeQueue)
                    || error.rdkafka_error_code() == Some(RDKafkaErrorCode::PurgeInflight);
                if !given_up {
                    self.told.fault(|| short(&error.to_string()));
                }
            }
        }
    }
}

/// What is reported of a client's words.
fn short(said: &str) -> String {
    said.chars().take(300).filter(|c| !c.is_control()).collect()
}

/// Produces messages.
pub struct Kafka {
    brokers: Brokers,
    producer: ThreadedProducer<Context>,
    told: Arc<Told>,
    /// Messages that the client took.
    given: u64,
    /// Those for which it had no room.
    without_room: u64,
    /// How many were confirmed when that was looked at, and since when it are no more.
    seen: (u64, Instant),
    last: Duration,
    message: Vec<u8>,
    scratch: Vec<u8>,
    kept: Kept,
}

impl std::fmt::Debug for Kafka {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kafka")
            .field("brokers", &self.brokers)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

impl Kafka {
    /// Prepares the client. Brokers are looked for by and by: one that is away now may come.
    ///
    /// # Errors
    /// That an address or the topic's name is none.
    pub fn open(brokers: Brokers) -> Result<Kafka, Unusable> {
        brokers.check()?;
        let told = Arc::new(Told::default());
        let mut config = ClientConfig::new();
        let settings = [
            ("bootstrap.servers", brokers.addresses.join(",")),
            ("client.id", "netdyno".to_owned()),
            ("enable.idempotence", "true".to_owned()),
            ("acks", "all".to_owned()),
            ("compression.type", "lz4".to_owned()),
            // As long as it takes: what waits is bounded by its number, not by its age.
            ("message.timeout.ms", "0".to_owned()),
            ("queue.buffering.max.messages", WAITING.to_string()),
            ("queue.buffering.max.kbytes", "131072".to_owned()),
            ("linger.ms", "100".to_owned()),
            ("reconnect.backoff.max.ms", "1000".to_owned()),
            // The same partition for a key as goflow2's client chooses.
            ("partitioner", "fnv1a_random".to_owned()),
        ];
        for (name, value) in settings {
            config.set(name, value);
        }
        let context = Context { told: Arc::clone(&told) };
        let producer = ThreadedProducer::from_config_and_context(&config, context)
            .map_err(|error| Unusable::Client(error.to_string()))?;
        Ok(Kafka {
            brokers,
            producer,
            told,
            given: 0,
            without_room: 0,
            seen: (0, Instant::now()),
            last: LAST,
            message: Vec::new(),
            scratch: Vec::new(),
            kept: Kept::default(),
        })
    }

    /// Gives the message that is made to the client, if it has room or will have some soon.
    fn give(&mut self, key: &[u8]) -> Result<(), KafkaError> {
        loop {
            let mut record = BaseRecord::<[u8], [u8]>::to(&self.brokers.topic).payload(&self.message[..]);
            if !key.is_empty() {
                record = record.key(key);
            }
            let Err((error, _)) = self.producer.send(record) else { return Ok(()) };
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) || !self.gets_on() {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether messages were confirmed lately.
    fn gets_on(&mut self) -> bool {
        let confirmed = self.told.confirmed.load(Relaxed);
        if confirmed != self.seen.0 {
            self.seen = (confirmed, Instant::now());
        }
        confirmed > 0 && self.seen.1.elapsed() < PATIENCE
    }

    fn account(&mut self) {
        self.kept.records = self.told.confirmed.load(Relaxed);
        self.kept.lost = self.without_room + self.told.refused.load(Relaxed);
        let fault = self.told.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(said) = fault.filter(|_| self.kept.fault.is_none()) {
            let Brokers { addresses, topic, .. } = &self.brokers;
            self.kept.faults = 1;
            self.kept.fault = Some(format!(
                "producing to topic {topic} of Kafka at {}: {said}; is a broker there, and can this host reach what it names as its \
                 address (advertised.listeners)?",
                addresses.join(",")
            ));
        }
    }
}

impl Sink for Kafka {
    fn take(&mut self, rows: &[Row]) {
        for row in rows {
            self.message.clear();
            protobuf::write(row, &mut self.scratch, &mut self.message);
            let sampler = row.from.to_canonical();
            let key: &[u8] = match (self.brokers.key, &sampler) {
                (Key::None, _) => &[],
                (Key::Sampler, IpAddr::V4(v4)) => &v4.octets(),
                (Key::Sampler, IpAddr::V6(v6)) => &v6.octets(),
            };
            match self.give(key) {
                Ok(()) => self.given += 1,
                Err(error) => {
                    self.without_room += 1;
                    // That there is no room follows from a broker that does not answer, of which the client tells itself.
                    let full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
                    let said = if full {
                        "messages that wait fill the client's room".to_owned()
                    } else {
                        error.to_string()
                    };
                    self.told.fault(|| short(&said));
                }
            }
        }
        self.account();
    }

    fn look(&mut self) {
        self.account();
    }

    fn finish(&mut self) {
        if self.producer.flush(self.last).is_err() {
            self.told.fault(|| "brokers did not confirm all messages in time".to_owned());
            // What was on its way may have arrived: nobody knows, and it is told as lost.
            self.producer.purge(PurgeConfig::default().queue().inflight());
            let _ = self.producer.flush(Duration::from_millis(500));
        }
        self.account();
        self.kept.lost = (self.without_room + self.given).saturating_sub(self.kept.records);
        if self.kept.lost == 0 {
            // A broker that was away and came again is no fault of the result.
            self.kept.fault = None;
        }
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
