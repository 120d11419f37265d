//! Captures as literal bytes, and readers over them.

#![allow(dead_code, reason = "each test binary uses a part")]

use netdyno_capture::{CaptureError, Notes, Reader};

pub fn reader(bytes: &[u8]) -> Result<Reader, CaptureError> {
    Reader::from_read(Box::new(std::io::Cursor::new(bytes.to_vec())), "x.pcap")
}

/// A record with its data kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub time_ns: u64,
    pub data: Vec<u8>,
    pub wire_len: u32,
    pub link: u16,
    pub interface: u32,
}

/// Everything up to the end or the error.
pub fn read_all(bytes: &[u8]) -> (Vec<Kept>, Option<CaptureError>, Notes) {
    match reader(bytes) {
        Ok(reader) => drain(reader),
        Err(error) => (vec![], Some(error), Notes::default()),
    }
}

pub fn drain(mut reader: Reader) -> (Vec<Kept>, Option<CaptureError>, Notes) {
    let mut records = vec![];
    let error = loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert_eq!(record.number, records.len() as u64 + 1);
                records.push(Kept {
                    time_ns: record.time_ns,
                    data: record.data.to_vec(),
                    wire_len: record.wire_len,
                    link: record.link.0,
                    interface: record.interface,
                });
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(reader.next_record(), Ok(None)), "there is nothing behind the end or an error");
    (records, error, reader.notes().clone())
}

/// The sound records, and what the error says.
pub fn fault(bytes: &[u8]) -> (usize, String) {
    let (records, error, _) = read_all(bytes);
    (records.len(), error.map(|error| error.to_string()).unwrap_or_default())
}

/// Numbers in one byte order.
#[derive(Clone, Copy)]
pub struct Order {
    pub big: bool,
}

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| self.u32(*word)).collect()
    }

    pub fn pcap_header(self, magic: u32, snaplen: u32, link: u32) -> Vec<u8> {
        let version = [self.u16(2), self.u16(4)].concat();
        [self.u32(magic).to_vec(), version, self.words(&[0, 0, snaplen, link])].concat()
    }

    pub fn pcap_record(self, seconds: u32, fraction: u32, data: &[u8], wire_len: u32) -> Vec<u8> {
        [self.words(&[seconds, fraction, data.len() as u32, wire_len]), data.to_vec()].concat()
    }

    /// A pcapng block around `body`, padded.
    pub fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut padded = body.to_vec();
        padded.resize(body.len().next_multiple_of(4), 0);
        let length = padded.len() as u32 + 12;
        [self.words(&[kind, length]), padded, self.u32(length).to_vec()].concat()
    }

    pub fn section(self) -> Vec<u8> {
        let body = [self.u32(0x1a2b_3c4d).to_vec(), [self.u16(1), self.u16(0)].concat(), vec![0xff; 8]];
        self.block(0x0a0d_0d0a, &body.concat())
    }

    pub fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.u16(code), self.u16(value.len() as u16)].concat();
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    pub fn interface(self, link: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
        let head = [self.u16(link), [0; 2]].concat();
        self.block(1, &[head, self.u32(snaplen).to_vec(), options.to_vec()].concat())
    }

    pub fn enhanced(self, interface: u32, ticks: u64, data: &[u8], wire_len: u32) -> Vec<u8> {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, wire_len];
        self.block(6, &[self.words(&words), data.to_vec()].concat())
    }
}

pub const LITTLE: Order = Order { big: false };
pub const BIG: Order = Order { big: true };
