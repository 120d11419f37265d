//! Payload, and headers that netdyno has no table for: bytes in order, some of which vary.
//!
//! ```
//! use plugin_sdk::packet::*;
//! use plugin_sdk::payload::bytes;
//! use plugin_sdk::value::{any, counted};
//! // A DNS query whose transaction number is of chance.
//! let query = bytes().vary(16, any()).u16(0x0100).u16(1).u16(0).u16(0).u16(0).put(b"\x04test\x00").u16(1).u16(1);
//! assert_eq!(query.len(), 22);
//! let packet = udp().dport(53) / query;
//! assert!(packet.to_string().starts_with("udp(dport=53)/raw(hex=\"0000010000010000000000000474657374000001"));
//! assert!(packet.to_string().ends_with("fields=[field(0, 16, random())])"));
//! // A PPPoE session header, which says how much follows it.
//! let pppoe = bytes().u8(0x11).u8(0).vary(16, counted(1, 1000)).length().u16(0x0021);
//! assert_eq!((pppoe / ipv4()).to_string(),
//!     "raw(hex=\"1100000000000021\", fields=[field(2, 16, 1..1000), length(4, 6)])/ipv4");
//! ```

use crate::value::Value;
use std::fmt;

/// Bytes, some of which vary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not written yet.
    open: u8,
    fields: Vec<String>,
    room: Option<String>,
    fill: Option<u8>,
}

/// No bytes yet.
#[must_use]
pub fn bytes() -> Payload {
    Payload::default()
}

/// Text.
#[must_use]
pub fn text(text: &str) -> Payload {
    bytes().put(text.as_bytes())
}

/// `length` bytes of zero; the length may vary.
pub fn zeros(length: impl Into<Value>) -> Payload {
    Payload { room: Some(length.into().to_string()), ..Payload::default() }
}

impl Payload {
    /// Number of bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends bytes.
    #[must_use]
    pub fn put(mut self, bytes: &[u8]) -> Payload {
        self.open = 0;
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends a byte.
    #[must_use]
    pub fn u8(self, value: u8) -> Payload {
        self.put(&[value])
    }

    /// Appends 16 bits, most significant first.
    #[must_use]
    pub fn u16(self, value: u16) -> Payload {
        self.put(&value.to_be_bytes())
    }

    /// Appends 32 bits, most significant first.
    #[must_use]
    pub fn u32(self, value: u32) -> Payload {
        self.put(&value.to_be_bytes())
    }

    /// Appends 64 bits, most significant first.
    #[must_use]
    pub fn u64(self, value: u64) -> Payload {
        self.put(&value.to_be_bytes())
    }

    /// Appends text.
    #[must_use]
    pub fn text(self, text: &str) -> Payload {
        self.put(text.as_bytes())
    }

    /// Appends other payload, with what of it varies. Its lengths go on counting from where they did.
    #[must_use]
    pub fn append(mut self, other: &Payload) -> Payload {
        let before = self.len();
        for field in &other.fields {
            self.fields.push(moved(field, before));
        }
        self.put(&other.bytes)
    }

    /// Appends `bits` bits (1 to 64) that take these values. What is varied next begins at the next bit, all else at the next
    /// byte.
    #[must_use]
    pub fn vary(mut self, bits: u32, value: impl Into<Value>) -> Payload {
        let at = self.bytes.len() * 8 - usize::from(self.open);
        let end = at + bits as usize;
        self.bytes.resize(end.div_ceil(8), 0);
        self.open = (self.bytes.len() * 8 - end) as u8;
        let place = match at % 8 {
            0 => (at / 8).to_string(),
            bit => format!("{}.{bit}", at / 8),
        };
        self.fields.push(format!("field({place}, {bits}, {})", value.into()));
        self
    }

    /// Lets `bits` bits from byte `byte` on, which were appended before, take these values.
    #[must_use]
    pub fn vary_at(mut self, byte: usize, bits: u32, value: impl Into<Value>) -> Payload {
        self.fields.push(format!("field({byte}, {bits}, {})", value.into()));
        self
    }

    /// Appends 16 bits that say how many bytes there are from byte `from` of the payload to the frame's end.
    #[must_use]
    pub fn length_from(mut self, from: usize) -> Payload {
        self.fields.push(format!("length({}, {from})", self.bytes.len()));
        self.u16(0)
    }

    /// Appends 16 bits that say how many bytes follow them to the frame's end.
    #[must_use]
    pub fn length(self) -> Payload {
        let from = self.bytes.len() + 2;
        self.length_from(from)
    }

    /// Appends a number of so many decimal digits (18 at most) that counts the stream's frames from 0, with leading zeros.
    #[must_use]
    pub fn digits(mut self, count: u32) -> Payload {
        let count = count.min(18);
        for digit in (0..count).rev() {
            self = self.vary(8, Value::from(48..=57).every(10u64.pow(digit)));
        }
        self
    }

    /// Fills up to so many bytes; the length may vary.
    #[must_use]
    pub fn fill(mut self, length: impl Into<Value>, with: u8) -> Payload {
        self.room = Some(length.into().to_string());
        self.fill = Some(with);
        self
    }
}

/// A field's text with its place (and, of lengths, their begin) that many bytes later.
fn moved(field: &str, by: usize) -> String {
    let shift = |number: &str| -> String {
        let (byte, bit) = number.split_once('.').map_or((number, None), |(byte, bit)| (byte, Some(bit)));
        let byte = byte.trim().parse::<usize>().unwrap_or(0) + by;
        bit.map_or_else(|| byte.to_string(), |bit| format!("{byte}.{bit}"))
    };
    let Some((name, rest)) = field.split_once('(') else { return field.to_owned() };
    let Some((place, rest)) = rest.split_once(',') else { return field.to_owned() };
    match name {
        "length" => format!("length({}, {})", shift(place), shift(rest.trim_end_matches(')'))),
        _ => format!("{name}({},{rest}", shift(place)),
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.bytes.is_empty() {
            let digits: String = self.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            parts.push(format!("hex=\"{digits}\""));
        }
        parts.extend(self.room.iter().map(|room| format!("len={room}")));
        parts.extend(self.fill.iter().map(|fill| format!("fill={fill}")));
        if !self.fields.is_empty() {
            parts.push(format!("fields=[{}]", self.fields.join(", ")));
        }
        write!(f, "raw")?;
        if parts.is_empty() { Ok(()) } else { write!(f, "({})", parts.join(", ")) }
    }
}
