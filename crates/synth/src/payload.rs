//! What conversations say: protocol openings that an analyser reads without complaint, around keyed bytes.

use crate::application::Speech;
use crate::conversation::Conversation;
use crate::random::{For, Key};

/// Writes the payload of the next segment or datagram of `c` from the client, or `back` from the server.
pub fn write(key: Key, c: &Conversation, back: bool, out: &mut [u8]) {
    if out.is_empty() {
        return;
    }
    let side = usize::from(back);
    let place = (u64::from(c.number) << 1 | u64::from(back)) << 31 | c.sent[side];
    match c.application.speech {
        Speech::Dns => dns(key, c.number, back, out),
        Speech::Http if c.sent[side] == 0 => http_opening(key, c, back, place, out),
        Speech::Tls => tls_record(key, place, out),
        Speech::OpaqueTcp | Speech::OpaqueUdp => opaque(key, place, out),
        Speech::Http => key.fill(For::Payload, place, out),
    }
}

/// What begins every opaque payload.
const MARK: &[u8; 8] = b"netdyno\0";

/// Keyed bytes behind a mark. Without it an analyser that guesses protocols from a payload's first bytes would
/// see one now and then, and find it malformed.
fn opaque(key: Key, place: u64, out: &mut [u8]) {
    let (mark, rest) = out.split_at_mut(MARK.len());
    mark.copy_from_slice(MARK);
    key.fill(For::Payload, place, rest);
}

/// A request or response head whose content length makes the message end with the conversation (RFC 9112).
fn http_opening(key: Key, c: &Conversation, back: bool, place: u64, out: &mut [u8]) {
    let total = c.total[usize::from(back)];
    if !back && total == out.len() as u64 {
        // All that the client says is this request: a cookie takes up what the segment has room for.
        let (start, fields, end) = (b"GET /", b" HTTP/1.1\r\nHost: www.example\r\nCookie: id=", b"\r\n\r\n");
        let fields_at = start.len() + 8;
        let end_at = out.len() - end.len();
        key.letters(For::Payload, place, out);
        out[..start.len()].copy_from_slice(start);
        out[fields_at..fields_at + fields.len()].copy_from_slice(fields);
        out[end_at..].copy_from_slice(end);
        return;
    }
    let start = if back { "HTTP/1.1 200 OK\r\n" } else { "POST / HTTP/1.1\r\nHost: www.example\r\n" };
    let fields = "Content-Type: application/octet-stream\r\nContent-Length: ";
    // The number has ten digits always, so that the head's own length does not depend on it.
    let length = start.len() + fields.len() + 10 + 4;
    let head = format!("{start}{fields}{:010}\r\n\r\n", total - length as u64);
    out[..length].copy_from_slice(head.as_bytes());
    key.fill(For::Payload, place, &mut out[length..]);
}

/// One application data record (RFC 8446 section 5.2) that fills the segment.
fn tls_record(key: Key, place: u64, out: &mut [u8]) {
    let [high, low] = ((out.len() - 5) as u16).to_be_bytes();
    out[..5].copy_from_slice(&[23, 3, 3, high, low]);
    key.fill(For::Payload, place, &mut out[5..]);
}

/// What a query of conversation `number` asks for: two label lengths and how many addresses the answer has.
fn dns_shape(key: Key, number: u32) -> (usize, usize, u16) {
    let draw = key.bits(For::Name, u64::from(number) << 2);
    (3 + (draw % 10) as usize, 4 + (draw / 10 % 12) as usize, 1 + (draw / 120 % 4) as u16)
}

/// Lengths of the query and of its answer.
pub fn dns_lengths(key: Key, number: u32) -> (u16, u16) {
    let (first, second, addresses) = dns_shape(key, number);
    // Header, the name as labels ("example" and the root end it), type and class.
    let query = 12 + (1 + first + 1 + second + 1 + 7 + 1) as u16 + 4;
    (query, query + 16 * addresses)
}

/// A query for the address of a host under `.example` (RFC 2606), or its answer (RFC 1035 section 4.1).
fn dns(key: Key, number: u32, back: bool, out: &mut [u8]) {
    let draw = u64::from(number) << 2;
    let (first, second, addresses) = dns_shape(key, number);
    let id = key.bits(For::Name, draw | 1) as u16;
    out[..2].copy_from_slice(&id.to_be_bytes());
    out[2..4].copy_from_slice(if back { &[0x81, 0x80] } else { &[0x01, 0x00] });
    let answers = if back { addresses as u8 } else { 0 };
    out[4..12].copy_from_slice(&[0, 1, 0, answers, 0, 0, 0, 0]);
    let (name, rest) = out[12..].split_at_mut(first + second + 11);
    name[0] = first as u8;
    key.letters(For::Name, draw | 2, &mut name[1..1 + first]);
    name[1 + first] = second as u8;
    key.letters(For::Name, draw | 3, &mut name[2 + first..2 + first + second]);
    name[2 + first + second..].copy_from_slice(b"\x07example\0");
    rest[..4].copy_from_slice(&[0, 1, 0, 1]);
    for (i, record) in rest[4..].as_chunks_mut::<16>().0.iter_mut().enumerate() {
        // The name is a pointer to the question's; an A record that lives for five minutes.
        record[..12].copy_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0x01, 0x2c, 0, 4]);
        let host = key.bits(For::Name, draw | 1) >> 16;
        record[12..].copy_from_slice(&crate::hosts::server_address((host % 100_000) as u32 + i as u32));
    }
}
