//! One message of the control connection: 164 words of 32 bits, big-endian, both ways.
//!
//! Word 0 says what it is, word 1 is an error number in answers and the CPU to be bound to in requests, 162 words of data follow.
//! Texts lie in the words of data as bytes.

use std::fmt;

/// Bytes of a message.
pub const LENGTH: usize = 656;
/// Words of data in it.
pub const WORDS: usize = 162;

/// What messages are.
pub mod kind {
    /// More, or fewer, words in the server's log.
    pub const DEBUG_ON: u32 = 1;
    /// The opposite.
    pub const DEBUG_OFF: u32 = 2;
    /// The answer to both.
    pub const DEBUG_OK: u32 = 3;
    /// Which machine is this?
    pub const NODE_IDENTIFY: u32 = 4;
    /// What is the rate of the looper that CPU use is measured with? And how many processors are there?
    pub const CPU_CALIBRATE: u32 = 5;
    /// The passphrase, as text; no answer.
    pub const PASSPHRASE: u32 = 6;
    /// Request, response and results have numbers in a row.
    pub const TCP_STREAM: u32 = 10;
    /// As above.
    pub const TCP_RR: u32 = 13;
    /// As above.
    pub const UDP_STREAM: u32 = 16;
    /// As above.
    pub const UDP_RR: u32 = 19;
    /// As above.
    pub const TCP_CRR: u32 = 34;
    /// As above.
    pub const TCP_MAERTS: u32 = 94;
    /// The request that can ask for each test.
    pub const OMNI: u32 = 97;
    /// Its answer.
    pub const OMNI_RESPONSE: u32 = 98;
    /// Connections opened and closed.
    pub const TCP_CC: u32 = 300;
    /// What system is this?
    pub const SYSINFO: u32 = 600;
}

/// The error number for requests that are not known.
pub const UNKNOWN: u32 = 998;

/// One message.
#[derive(Clone, PartialEq, Eq)]
pub struct Message([u8; LENGTH]);

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message {{ kind: {}, second: {:#x}, .. }}", self.kind(), self.second())
    }
}

impl Message {
    /// With all words of data zero.
    pub fn new(kind: u32, second: u32) -> Message {
        let mut message = Message([0; LENGTH]);
        message.put(0, kind);
        message.put(1, second);
        message
    }

    /// Any bytes are a message.
    pub fn from_bytes(bytes: &[u8; LENGTH]) -> Message {
        Message(*bytes)
    }

    /// As it is sent.
    pub fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    fn get(&self, word: usize) -> u32 {
        let bytes = self.0.get(word * 4..word * 4 + 4);
        bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
    }

    fn put(&mut self, word: usize, value: u32) {
        if let Some(bytes) = self.0.get_mut(word * 4..word * 4 + 4) {
            bytes.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// What it is.
    pub fn kind(&self) -> u32 {
        self.get(0)
    }

    /// The CPU asked for, or the error number.
    pub fn second(&self) -> u32 {
        self.get(1)
    }

    /// A word of data; zero beyond the end.
    pub fn word(&self, n: usize) -> u32 {
        self.get(n + 2)
    }

    /// The same, with a sign.
    pub fn signed(&self, n: usize) -> i32 {
        self.word(n) as i32
    }

    /// A single-precision number.
    pub fn float(&self, n: usize) -> f32 {
        f32::from_bits(self.word(n))
    }

    /// Sets a word of data.
    pub fn set(&mut self, n: usize, value: u32) {
        self.put(n + 2, value);
    }

    /// The same, with a sign.
    pub fn set_signed(&mut self, n: usize, value: i32) {
        self.set(n, value as u32);
    }

    /// A single-precision number.
    pub fn set_float(&mut self, n: usize, value: f32) {
        self.set(n, value.to_bits());
    }

    /// `length` bytes from the byte `from` of the data on, up to the first zero; unprintable ones as question marks.
    pub fn text(&self, from: usize, length: usize) -> String {
        let data = self.0.get(8..).unwrap_or_default();
        let field = data.get(from..).unwrap_or_default();
        let field = field.get(..length).unwrap_or(field);
        let text = field.iter().take_while(|byte| **byte != 0);
        text.map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '?' })
            .collect()
    }

    /// The bytes of the data up to the first zero, as they are.
    pub fn data(&self) -> &[u8] {
        let data = self.0.get(8..).unwrap_or_default();
        let length = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
        data.get(..length).unwrap_or_default()
    }

    /// Puts text there, cut so that a zero follows within `length` bytes.
    pub fn set_text(&mut self, from: usize, length: usize, text: &str) {
        let text = text.as_bytes();
        let fits = text.len().min(length.saturating_sub(1));
        let start = 8 + from;
        if let (Some(field), Some(text)) = (self.0.get_mut(start..start + fits), text.get(..fits)) {
            field.copy_from_slice(text);
        }
    }
}

/// Cuts a stream of bytes into messages. Holds no more than one.
#[derive(Debug, Default)]
pub struct Reader {
    held: Vec<u8>,
}

impl Reader {
    /// Takes bytes off `bytes` until a message is whole.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Option<Message> {
        let missing = LENGTH - self.held.len();
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.held.extend_from_slice(taken);
        *bytes = rest;
        let whole: [u8; LENGTH] = self.held.as_slice().try_into().ok()?;
        self.held.clear();
        Some(Message(whole))
    }

    /// How many bytes of a message are here.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_of_a_stream_however_it_is_cut() {
        let messages = [Message::new(4, 0), Message::new(97, u32::MAX)];
        let stream: Vec<u8> = messages.iter().flat_map(|message| *message.as_bytes()).collect();
        for step in [1, 7, 655, 656, 657, 1312] {
            let (mut reader, mut got) = (Reader::default(), Vec::new());
            for mut piece in stream.chunks(step) {
                while let Some(message) = reader.take(&mut piece) {
                    got.push(message);
                }
            }
            assert_eq!(got, messages, "{step}");
            assert_eq!(reader.held(), 0);
        }
    }

    #[test]
    fn text_is_cut_at_its_field_and_at_zeros() {
        let mut message = Message::new(0, 0);
        message.set_text(38 * 4, 4, "cubic");
        assert_eq!(message.text(38 * 4, 16), "cub");
        message.set_text(640, 100, "beyond the end");
        assert_eq!(message.text(646, 4), "");
        assert_eq!(message.text(100_000, 4), "");
    }
}
