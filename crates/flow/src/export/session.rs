//! What one collector gets over UDP: templates and sequence numbers of its own (RFC 7011, 3.1 and 10.3.6; RFC 3954, 9).
//!
//! The messages of one [`Exporter`] without templates go to several sessions. Each numbers what goes to its collector, so that
//! messages that another one got are no gap, and says when templates are due: at first, after so many messages and so long, and
//! once it is known that nobody listened.

use super::{Counters, Exporter, Message, Opening, Settings, Status};
use crate::template::{BadTemplate, Version};

/// Templates that are due by the number of messages come no more often than this.
const LEAST_NS: u64 = 1_000_000_000;
/// A host says at most so often that nobody listens (Linux: once a second to each address), with some time on top.
const SILENT_NS: u64 = 3_000_000_000;

/// A transport session.
#[derive(Debug)]
pub struct Session {
    /// Writes templates and options, and has the session's number.
    exporter: Exporter,
    /// Messages since the templates were sent, and when that was.
    since: Option<(u32, u64)>,
    /// It was said that nobody listens, and the templates were not sent since.
    refused: bool,
    /// When that was said last.
    refused_ns: Option<u64>,
}

impl Session {
    /// Nothing was sent yet.
    ///
    /// # Errors
    /// What of the template is none.
    pub fn new(settings: Settings) -> Result<Session, BadTemplate> {
        let exporter = Exporter::new(settings)?.without_templates();
        Ok(Session { exporter, since: None, refused: false, refused_ns: None })
    }

    /// The collector may have had no templates yet: none were sent, or lately nobody listened.
    pub fn is_new(&self, now_ns: u64) -> bool {
        self.exporter.settings.version != Version::V5
            && (self.since.is_none() || self.refused || self.is_unsure(now_ns))
    }

    /// Somebody may have begun to listen since it was said that nobody does, without a word.
    fn is_unsure(&self, now_ns: u64) -> bool {
        self.refused_ns.is_some_and(|at_ns| now_ns.saturating_sub(at_ns) < SILENT_NS)
    }

    /// Templates are to go ahead of the next message.
    pub fn is_opening_due(&self, now_ns: u64) -> bool {
        let settings = &self.exporter.settings;
        let Some((messages, at_ns)) = self.since.filter(|_| settings.version != Version::V5) else {
            return settings.version != Version::V5;
        };
        let passed_ns = now_ns.saturating_sub(at_ns);
        self.refused
            || passed_ns >= settings.refresh_ns
            || passed_ns >= LEAST_NS && (self.is_unsure(now_ns) || messages >= settings.refresh_messages)
    }

    /// The message that tells templates and how packets were selected, with the times of the message that it goes ahead of. It is
    /// none of the session's before [`opened`](Session::opened).
    pub fn opening(&mut self, ahead_of: &[u8]) -> Opening {
        let (counters, sequence) = (self.exporter.counters, self.exporter.sequence);
        let mut opening = self.exporter.opening(0);
        (self.exporter.counters, self.exporter.sequence) = (counters, sequence);
        let times = if self.exporter.settings.version == Version::V9 { 4..12 } else { 4..8 };
        if let (Some(place), Some(times)) = (opening.bytes.get_mut(times.clone()), ahead_of.get(times)) {
            place.copy_from_slice(times);
        }
        opening
    }

    /// It went.
    pub fn opened(&mut self, opening: &Opening, now_ns: u64) {
        (self.since, self.refused) = (Some((0, now_ns)), false);
        self.exporter.sequence = self.exporter.sequence.wrapping_add(opening.numbers);
    }

    /// The number of the session's next message, which raises it by so many.
    pub fn number(&mut self, numbers: u32) -> u32 {
        if let Some((messages, _)) = &mut self.since {
            *messages = messages.saturating_add(1);
        }
        let number = self.exporter.sequence;
        self.exporter.sequence = number.wrapping_add(numbers);
        number
    }

    /// Writes the number that the session's next message has into it.
    pub fn put_next(&self, message: &mut [u8]) {
        let at = match self.exporter.settings.version {
            Version::V5 => 16,
            Version::V9 => 12,
            Version::Ipfix => 8,
        };
        if let Some(place) = message.get_mut(at..at + 4) {
            place.copy_from_slice(&self.exporter.sequence.to_be_bytes());
        }
    }

    /// Writes what the probe says of itself, and what of its messages went to this collector; with each message, by how much it
    /// raises the number once it is sent. `began_ns`: the exporter's start.
    pub fn status(
        &mut self,
        status: &Status,
        (now_ns, began_ns): (u64, u64),
        send: &mut impl FnMut(&[u8], u32),
    ) {
        self.exporter.begin_at(began_ns);
        let (counters, sequence) = (self.exporter.counters, self.exporter.sequence);
        let mut send = |message: Message<'_>| send(message.bytes, message.numbers);
        self.exporter.status(status, now_ns, &mut send);
        self.exporter.flush(now_ns, &mut send);
        (self.exporter.counters, self.exporter.sequence) = (counters, sequence);
    }

    /// A message went.
    pub fn went(&mut self, octets: u64, records: u64) {
        let Counters { messages, octets: all, records: flows, .. } = &mut self.exporter.counters;
        *messages += 1;
        *all += octets;
        *flows += records;
    }

    /// The collector's host said that nobody listens: who comes later has no template.
    pub fn was_refused(&mut self, now_ns: u64) {
        (self.refused, self.refused_ns) = (true, Some(now_ns));
    }
}

#[cfg(test)]
mod tests;
