//! The secure channel: the Noise protocol (revision 34) with a key that both ends have, pattern NNpsk0. Each frame is its length in two
//! bytes and a Noise message; a frame that was changed, left out, sent again or moved does not decrypt, and ends the channel.
//!
//! ```text
//!   agent                                  clone
//!     | -- psk, e ----------------------->  |   what does not decrypt is another key's: REFUSAL
//!     | <--------------------- e, ee ------ |
//!     | == records, both ways ============= |   nonces count up within snow
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Both ends have to mean the same by what they say.
const PROLOGUE: &[u8] = b"netdyno clone capture, version 1";
/// Of a message's authentication.
const TAG: usize = 16;
/// Bytes of records in one frame, at most.
pub const MOST_PLAIN: usize = u16::MAX as usize - TAG;
/// An ephemeral key and a tag.
const GREETING: usize = 32 + TAG;
/// A frame without bytes instead of the clone's greeting: the agent has another key.
pub const REFUSAL: [u8; 2] = [0, 0];

/// The key that both ends have.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Of 32 bytes.
    pub fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// From 64 hexadecimal digits or Base64, with white space around it.
    pub fn parse(text: &str) -> Option<Key> {
        let text = text.trim();
        let bytes = if text.len() == 64 { wire::hex::decode(text)? } else { STANDARD.decode(text).ok()? };
        let key = Key(bytes.try_into().ok()?);
        // What a file has that was only made room for.
        (key.0 != [0; 32]).then_some(key)
    }

    /// In hexadecimal digits.
    pub fn text(&self) -> String {
        wire::hex::encode(&self.0)
    }
}

/// Why there is no channel, or none any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The other end has another key, or speaks another version.
    OtherKey,
    /// What came is not what the other end sent, or not in its order.
    Forged,
    /// The system's source of random numbers does not give any, or a frame is too long.
    Unable,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Broken::OtherKey => "the other end has another key, or another version of netdyno",
            Broken::Forged => "what came was changed on its way, or is not the other end's",
            Broken::Unable => "encryption is not possible: the system gives no random numbers",
        })
    }
}

fn builder(key: &Key) -> Result<snow::Builder<'_>, Broken> {
    let pattern = PATTERN.parse().map_err(|_| Broken::Unable)?;
    let builder = snow::Builder::new(pattern).prologue(PROLOGUE).map_err(|_| Broken::Unable)?;
    builder.psk(0, &key.0).map_err(|_| Broken::Unable)
}

/// A frame with these bytes.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = (bytes.len() as u16).to_be_bytes().to_vec();
    frame.extend_from_slice(bytes);
    frame
}

/// An agent that has said its greeting.
pub struct Asking(snow::HandshakeState);

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asking(..)")
    }
}

impl Asking {
    /// An agent's beginning, and the frame that it sends.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn begin(key: &Key) -> Result<(Asking, Vec<u8>), Broken> {
        let mut state = builder(key)?.build_initiator().map_err(|_| Broken::Unable)?;
        let mut greeting = [0; GREETING];
        let length = state.write_message(&[], &mut greeting).map_err(|_| Broken::Unable)?;
        Ok((Asking(state), framed(greeting.get(..length).unwrap_or_default())))
    }

    /// What the clone answered.
    ///
    /// # Errors
    /// The clone refused, or is none that has the key.
    pub fn answered(mut self, frame: &[u8]) -> Result<Channel, Broken> {
        self.0.read_message(frame, &mut [0; GREETING]).map_err(|_| Broken::OtherKey)?;
        Channel::of(self.0)
    }
}

/// A clone's channel with the agent that sent this frame, and the frame that it answers.
///
/// # Errors
/// The agent has another key, or is none.
pub fn accept(key: &Key, frame: &[u8]) -> Result<(Channel, Vec<u8>), Broken> {
    let mut state = builder(key)?.build_responder().map_err(|_| Broken::Unable)?;
    state.read_message(frame, &mut [0; GREETING]).map_err(|_| Broken::OtherKey)?;
    let mut greeting = [0; GREETING];
    let length = state.write_message(&[], &mut greeting).map_err(|_| Broken::Unable)?;
    Ok((Channel::of(state)?, framed(greeting.get(..length).unwrap_or_default())))
}

/// Both directions, once both ends have shown that they have the key.
pub struct Channel(snow::TransportState);

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channel(..)")
    }
}

impl Channel {
    fn of(state: snow::HandshakeState) -> Result<Channel, Broken> {
        Ok(Channel(state.into_transport_mode().map_err(|_| Broken::OtherKey)?))
    }

    /// Appends a frame with these bytes, encrypted.
    ///
    /// # Errors
    /// There are more than [`MOST_PLAIN`].
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        let length = plain.len() + TAG;
        let announced = u16::try_from(length).map_err(|_| Broken::Unable)?;
        let from = out.len();
        out.extend_from_slice(&announced.to_be_bytes());
        out.resize(from + 2 + length, 0);
        let room = out.get_mut(from + 2..).ok_or(Broken::Unable)?;
        self.0.write_message(plain, room).map_err(|_| Broken::Unable)?;
        Ok(())
    }

    /// The bytes in a frame, which are put into `plain`.
    ///
    /// # Errors
    /// It is not the frame that the other end sent next.
    pub fn open(&mut self, frame: &[u8], plain: &mut Vec<u8>) -> Result<(), Broken> {
        plain.resize(frame.len(), 0);
        let length = self.0.read_message(frame, plain).map_err(|_| Broken::Forged)?;
        plain.truncate(length);
        Ok(())
    }
}

/// Frames in a stream of bytes, however it is cut.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    at: usize,
}

impl Frames {
    /// Bytes that came. Never more than two frames' are kept, if [`next`](Self::next) is called until there is none.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame that is whole, without its length.
    #[allow(clippy::should_implement_trait, reason = "what it lends is its own")]
    pub fn next(&mut self) -> Option<&[u8]> {
        let length = self.announced()?;
        let from = self.at + 2;
        let frame = self.bytes.get(from..from + length)?;
        self.at = from + length;
        Some(frame)
    }

    /// How long the frame says that it is that is not whole yet.
    pub fn announced(&self) -> Option<usize> {
        wire::bytes::be16(&self.bytes, self.at).map(usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(byte: u8) -> Key {
        Key::new([byte; 32])
    }

    fn both() -> (Channel, Channel) {
        let (asking, greeting) = Asking::begin(&key(7)).unwrap();
        let (clone, answer) = accept(&key(7), &greeting[2..]).unwrap();
        (asking.answered(&answer[2..]).unwrap(), clone)
    }

    fn sealed(channel: &mut Channel, plain: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        channel.seal(plain, &mut frame).unwrap();
        assert_eq!(frame.len(), plain.len() + 18);
        frame.split_off(2)
    }

    #[test]
    fn what_one_end_says_the_other_hears_and_nobody_reads_it_on_its_way() {
        let (mut agent, mut clone) = both();
        let mut plain = Vec::new();
        for said in [&b"GET / HTTP/1.1"[..], b"", &[9; MOST_PLAIN]] {
            let frame = sealed(&mut agent, said);
            assert!(said.is_empty() || !frame.windows(said.len()).any(|part| part == said));
            clone.open(&frame, &mut plain).unwrap();
            assert_eq!(plain, said);
            agent.open(&sealed(&mut clone, said), &mut plain).unwrap();
            assert_eq!(plain, said);
        }
        assert_eq!(agent.seal(&[0; MOST_PLAIN + 1], &mut Vec::new()), Err(Broken::Unable));
    }

    #[test]
    fn another_key_is_found_out_by_both_ends() {
        let (_, greeting) = Asking::begin(&key(7)).unwrap();
        assert_eq!(accept(&key(8), &greeting[2..]).unwrap_err(), Broken::OtherKey);
        // Who answers without the key is found out, too.
        let (asking, _) = Asking::begin(&key(7)).unwrap();
        let (_, other) = Asking::begin(&key(8)).unwrap();
        let (_, answer) = accept(&key(8), &other[2..]).unwrap();
        assert_eq!(asking.answered(&answer[2..]).unwrap_err(), Broken::OtherKey);
        let (asking, _) = Asking::begin(&key(7)).unwrap();
        assert_eq!(asking.answered(&[]).unwrap_err(), Broken::OtherKey);
    }

    #[test]
    fn a_greeting_of_another_time_opens_nothing() {
        let (asking, greeting) = Asking::begin(&key(7)).unwrap();
        let (_, answer) = accept(&key(7), &greeting[2..]).unwrap();
        let mut agent = asking.answered(&answer[2..]).unwrap();
        // Who recorded a greeting and says it again has not the channel's keys.
        let (mut clone, _) = accept(&key(7), &greeting[2..]).unwrap();
        let recorded = sealed(&mut agent, b"records");
        assert_eq!(clone.open(&recorded, &mut Vec::new()), Err(Broken::Forged));
    }

    #[test]
    fn frames_that_are_changed_cut_left_out_moved_or_repeated_are_none() {
        let (mut agent, _) = both();
        let frame = sealed(&mut agent, b"a record");
        for wrong in [&frame[..frame.len() - 1], &frame[..3], &[]] {
            let (_, mut clone) = both();
            assert_eq!(clone.open(wrong, &mut Vec::new()), Err(Broken::Forged));
        }
        for at in 0..frame.len() {
            let (mut agent, mut clone) = both();
            let mut frame = sealed(&mut agent, b"a record");
            frame[at] ^= 1;
            assert_eq!(clone.open(&frame, &mut Vec::new()), Err(Broken::Forged), "byte {at}");
        }
        let (mut agent, mut clone) = both();
        let [first, second] = [sealed(&mut agent, b"one"), sealed(&mut agent, b"two")];
        let mut plain = Vec::new();
        assert_eq!(clone.open(&second, &mut plain), Err(Broken::Forged), "one was left out");
        clone.open(&first, &mut plain).unwrap();
        assert_eq!(clone.open(&first, &mut plain), Err(Broken::Forged), "again");
        // An end's own frames are not taken for the other's.
        let own = sealed(&mut clone, b"x");
        assert_eq!(clone.open(&own, &mut plain), Err(Broken::Forged));
    }

    #[test]
    fn keys_are_read_as_digits_and_as_base64() {
        let bytes: [u8; 32] = std::array::from_fn(|n| n as u8 * 7);
        let key = Key::new(bytes);
        assert_eq!(Key::parse(&format!(" {}\n", key.text())), Some(key.clone()));
        assert_eq!(Key::parse(&key.text().to_uppercase()), Some(key.clone()));
        assert_eq!(Key::parse(&STANDARD.encode(bytes)), Some(key.clone()));
        let short = "00".repeat(32);
        for wrong in ["", "abc", &short, &key.text()[1..], &"g".repeat(64), &STANDARD.encode([1; 31])] {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
            frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20),
            cut in 1usize..50,
        ) {
            let stream: Vec<u8> = frames.iter().flat_map(|frame| framed(frame)).collect();
            let (mut reader, mut out) = (Frames::default(), Vec::new());
            for piece in stream.chunks(cut) {
                reader.push(piece);
                while let Some(frame) = reader.next() {
                    out.push(frame.to_vec());
                }
            }
            prop_assert_eq!(out, frames);
        }

        #[test]
        fn no_bytes_make_a_channel_or_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(accept(&key(1), &bytes).is_err());
            let (asking, _) = Asking::begin(&key(1)).unwrap();
            prop_assert!(asking.answered(&bytes).is_err());
            prop_assert_eq!(both().1.open(&bytes, &mut Vec::new()), Err(Broken::Forged));
        }
    }
}
