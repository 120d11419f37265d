//! Messages: those of a session, and the few words by which one is opened.
//!
//! A message of a session has 36 bytes before its payload, all numbers with the highest byte first:
//!
//! | Bytes | What they are |
//! |---|---|
//! | 0 to 1 | `nd` |
//! | 2 | 1, the version of this layout |
//! | 3 | the kind: 0 data, 1 end, 2 bye; and 128: send again what I do not have |
//! | 4 to 11 | the epoch, which the agent drew when the session was opened: messages of another one are not this session's |
//! | 12 to 19 | where in its stream the payload begins |
//! | 20 to 27 | where in the other stream nothing is missing up to |
//! | 28 to 35 | how far the other end may send |
//!
//! The end of a stream counts as one byte of it. Data without a payload only tells where its sender stands. What opens a session is JSON, because other
//! versions are to understand it.

use crate::subject::Session;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes before the payload.
pub(crate) const HEADER: usize = 36;
/// The protocol of sessions.
pub(crate) const SCHEMA: &str = "netdyno.nats/1";
/// Bytes of a request for a session, and of its answer.
const WORDS_BYTES: usize = 4096;
/// Of a reason or a name so many are shown.
const SHOWN: usize = 300;
const AGAIN: u8 = 128;

/// What a message of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The payload is a piece of the stream.
    Data,
    /// The stream ends here.
    End,
    /// The session is over; the payload says why.
    Bye,
}

/// A message of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub kind: Kind,
    /// Its sender may have missed something: it is to be sent again.
    pub again: bool,
    pub epoch: u64,
    pub offset: u64,
    pub received: u64,
    pub limit: u64,
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// Reads a message, which is from outside.
    pub fn read(bytes: &[u8]) -> Option<Message<'_>> {
        let (header, payload) = bytes.split_at_checked(HEADER)?;
        let (first, numbers) = header.split_first_chunk::<4>()?;
        let [b'n', b'd', 1, kind] = *first else { return None };
        let mut numbers = numbers.chunks_exact(8).filter_map(|number| number.try_into().ok());
        let mut number = || numbers.next().map(u64::from_be_bytes);
        let again = kind & AGAIN != 0;
        let kind = match kind & !AGAIN {
            0 => Kind::Data,
            1 => Kind::End,
            2 => Kind::Bye,
            _ => return None,
        };
        Some(Message {
            kind,
            again,
            epoch: number()?,
            offset: number()?,
            received: number()?,
            limit: number()?,
            payload,
        })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Data => 0,
            Kind::End => 1,
            Kind::Bye => 2,
        };
        let mut bytes = Vec::with_capacity(HEADER + self.payload.len());
        bytes.extend([b'n', b'd', 1, kind | if self.again { AGAIN } else { 0 }]);
        for number in [self.epoch, self.offset, self.received, self.limit] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.payload);
        bytes
    }

    /// The session of this epoch is over.
    pub fn bye(epoch: u64, why: &str) -> Vec<u8> {
        let payload = why.as_bytes();
        Message { kind: Kind::Bye, again: false, epoch, offset: 0, received: 0, limit: 0, payload }.bytes()
    }
}

/// Words of others, for people: one line without what a terminal would take for commands.
pub(crate) fn shown(text: &str) -> String {
    let text: String = text.chars().take(SHOWN).collect();
    report::units::printable(&text)
}

/// Who asks for a session, by what it says of itself: for the agent's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Caller {
    pub user: String,
    pub host: String,
    pub process: u32,
    pub version: String,
}

/// A request for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub schema: String,
    /// As [`Session`] is written.
    pub session: String,
    pub client: Caller,
}

/// The answer to it: an epoch, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub schema: String,
    pub session: String,
    pub version: String,
    /// In hexadecimal digits: a number would have more than others read exactly.
    #[serde(default)]
    pub epoch: Option<String>,
    /// Who is not heard for so long is gone.
    #[serde(default)]
    pub lease_ms: Option<u64>,
    #[serde(default)]
    pub error: Option<String>,
}

/// The agent is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub schema: String,
    pub id: String,
    /// Of the host's kernel.
    pub boot_id: String,
    /// Drawn when the agent started.
    pub instance: String,
    pub version: String,
    /// Sessions that go on.
    pub sessions: usize,
}

/// Reads words, which are from outside.
pub(crate) fn read_words<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    (bytes.len() <= WORDS_BYTES).then(|| serde_json::from_slice(bytes).ok())?
}

pub(crate) fn words(told: &impl Serialize) -> Vec<u8> {
    // These structures have nothing that could not be written.
    serde_json::to_vec(told).unwrap_or_default()
}

impl Open {
    pub fn session(&self) -> Option<Session> {
        self.session.parse().ok()
    }
}

impl Opened {
    pub fn epoch(&self) -> Option<u64> {
        u64::from_str_radix(self.epoch.as_deref()?, 16).ok()
    }

    pub fn lease(&self) -> Duration {
        let [least, most] = crate::LEASES;
        self.lease_ms.map_or(crate::LEASE, Duration::from_millis).clamp(least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(
            kind in prop::sample::select(vec![Kind::Data, Kind::End, Kind::Bye]),
            again: bool, epoch: u64, offset: u64, received: u64, limit: u64, payload: Vec<u8>,
        ) {
            let message = Message { kind, again, epoch, offset, received, limit, payload: &payload };
            let bytes = message.bytes();
            prop_assert_eq!(Message::read(&bytes), Some(message));
        }

        #[test]
        fn any_bytes_are_a_message_or_none(bytes in prop::collection::vec(any::<u8>(), 0..80), good: bool) {
            let mut bytes = bytes;
            if good && bytes.len() >= 4 {
                bytes[..3].copy_from_slice(b"nd\x01");
            }
            if let Some(message) = Message::read(&bytes) {
                prop_assert_eq!(message.bytes(), bytes);
            }
        }

        #[test]
        fn any_words_are_a_request_or_none(
            text in ".{0,60}", nested in prop::sample::select(vec!["", "[", "{\"a\":"]), times in 0usize..3000,
        ) {
            let text = nested.repeat(times) + &text;
            let _ = read_words::<Open>(text.as_bytes());
            let _ = read_words::<Opened>(text.as_bytes());
            let open = format!(r#"{{"schema":"netdyno.nats/1","session":{text:?},"client":{{}},"x":{text}}}"#);
            let _ = read_words::<Open>(open.as_bytes());
        }
    }

    #[test]
    fn words_are_read_as_they_were_written_and_long_ones_not_at_all() {
        let session = Session(7).to_string();
        let client = Caller { user: "a".into(), host: "b".into(), process: 1, version: "0".into() };
        let open = Open { schema: SCHEMA.into(), session: session.clone(), client };
        let read = read_words::<Open>(&words(&open)).expect("a request");
        assert_eq!((read.session(), read), (Some(Session(7)), open.clone()));
        let mut long = open;
        long.client.user = "a".repeat(5000);
        assert_eq!(read_words::<Open>(&words(&long)), None);
        let opened = Opened {
            schema: SCHEMA.into(),
            session,
            version: "0".into(),
            epoch: Some("ffffffffffffffff".into()),
            lease_ms: Some(10_000),
            error: None,
        };
        assert_eq!(opened.epoch(), Some(u64::MAX));
        assert_eq!(opened.lease(), crate::LEASE);
        assert_eq!(Opened { lease_ms: Some(u64::MAX), ..opened.clone() }.lease(), crate::LEASES[1]);
        assert_eq!(Opened { epoch: Some("-1".into()), ..opened.clone() }.epoch(), None);
        assert_eq!(Opened { epoch: None, ..opened }.epoch(), None);
        assert_eq!(
            shown(&format!("a\x1b[2J\n{}", "x".repeat(1000))).chars().filter(|c| c.is_control()).count(),
            0
        );
    }
}
