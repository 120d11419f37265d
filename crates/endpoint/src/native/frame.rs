//! Messages on a connection: four bytes of length, big-endian, and so many bytes.

use serde::Serialize;

/// Bytes of a message to the server, at most.
pub const MOST_TO_SERVER: usize = 64 << 10;
/// Bytes of a message to the client, at most.
pub const MOST_TO_CLIENT: usize = 4 << 20;
const LENGTH: usize = 4;

/// What is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It announces more than is possible.
    #[error(
        "a message of {length} bytes was announced, and {most} are possible: the other end is no netdyno endpoint"
    )]
    TooLong {
        /// As announced.
        length: u32,
        /// At most.
        most: usize,
    },
}

/// Puts messages together out of bytes as they come. Holds no more than one message and what came behind it in one piece.
#[derive(Debug)]
pub struct Decoder {
    most: usize,
    held: Vec<u8>,
}

impl Decoder {
    /// Of messages of at most `most` bytes.
    pub fn new(most: usize) -> Decoder {
        Decoder { most, held: Vec::new() }
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next whole message, if it is there.
    ///
    /// # Errors
    /// A length that is not possible. What comes behind it means nothing.
    pub fn message(&mut self) -> Result<Option<Vec<u8>>, BadFrame> {
        let Some(length) = self.held.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        if length as usize > self.most {
            return Err(BadFrame::TooLong { length, most: self.most });
        }
        let end = LENGTH + length as usize;
        if self.held.len() < end {
            return Ok(None);
        }
        let message = self.held.drain(..end).skip(LENGTH).collect();
        Ok(Some(message))
    }
}

/// A message as bytes.
pub fn frame(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    // What cannot be written as JSON is not in these types: maps have text as keys, numbers are finite or null.
    if serde_json::to_writer(&mut bytes, message).is_err() {
        bytes.truncate(LENGTH);
    }
    let length = u32::try_from(bytes.len() - LENGTH).unwrap_or(u32::MAX);
    if let Some(place) = bytes.first_chunk_mut::<LENGTH>() {
        *place = length.to_be_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_absurd_length_is_refused_before_anything_is_kept_for_it() {
        let mut decoder = Decoder::new(MOST_TO_SERVER);
        decoder.push(b"GET / HTTP/1.1\r\n");
        assert!(matches!(decoder.message(), Err(BadFrame::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_they_are_cut(
            texts in proptest::collection::vec(".{0,40}", 1..10),
            cut in 1_usize..50,
        ) {
            let all: Vec<u8> = texts.iter().flat_map(frame).collect();
            let (mut decoder, mut got) = (Decoder::new(1000), Vec::new());
            for piece in all.chunks(cut) {
                decoder.push(piece);
                while let Some(message) = decoder.message().expect("short") {
                    got.push(serde_json::from_slice::<String>(&message).expect("text"));
                }
            }
            prop_assert_eq!(got, texts);
        }

        #[test]
        fn whatever_comes_is_refused_or_waited_for(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = Decoder::new(100);
            decoder.push(&bytes);
            while let Ok(Some(message)) = decoder.message() {
                prop_assert!(message.len() <= 100);
            }
        }
    }
}
