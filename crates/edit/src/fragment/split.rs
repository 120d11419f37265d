//! IP fragments (RFC 791 section 3.2, RFC 8200 section 4.5) and TCP segments, with or without overlaps.
//!
//! An overlap is made of two neighbours: the second leaves first, then the first, made as long as both. Which of the
//! two has the data for the bytes that both hold, and which random ones, is [`Favour`]. The last piece overlaps none.

use super::packet::{FRAGMENT, Layout, Packet, set};
use super::random::Random;
use super::{Favour, Queue, TooMany};
use wire::bytes::be16;

/// A piece: where it starts in the data, what it carries, and whether that is to the end of the data.
struct Piece {
    start: usize,
    data: Vec<u8>,
    last: bool,
}

/// Cuts `data`, the first piece `first` bytes long, the others `size`. `pairs` says whether the piece with that
/// number, at that place, overlaps the one behind it.
fn pieces(
    data: &[u8],
    (first, size): (usize, usize),
    overlap: Option<Favour>,
    pairs: impl Fn(usize, usize) -> bool,
    random: &mut Random,
    mut emit: impl FnMut(Piece) -> Result<(), TooMany>,
) -> Result<(), TooMany> {
    let (mut start, mut index) = (0, 0);
    while start < data.len() {
        let length = if index == 0 { first } else { size };
        let end = (start + length).min(data.len());
        let Some(piece) = data.get(start..end) else { break };
        let behind = data.get(end..end + size).filter(|_| end + size < data.len() && pairs(index, start));
        let last = end == data.len();
        let (Some(favour), Some(behind)) = (overlap, behind) else {
            emit(Piece { start, data: piece.to_vec(), last })?;
            (start, index) = (end, index + 1);
            continue;
        };
        let mut junk = vec![0; size];
        random.letters(&mut junk);
        let (early, late) = match favour {
            Favour::Old => (behind.to_vec(), junk),
            Favour::New => (junk, behind.to_vec()),
        };
        emit(Piece { start: end, data: early, last: false })?;
        emit(Piece { start, data: [piece, &late].concat(), last: false })?;
        (start, index) = (end + size, index + 2);
    }
    Ok(())
}

/// Fragments of `size` bytes, a multiple of 8. The first is larger where the upper layer's header is: it stays whole
/// (for IPv6 RFC 7112 demands it).
pub(super) fn fragment(
    packet: &Packet,
    size: usize,
    overlap: Option<Favour>,
    to: &mut Queue,
    random: &mut Random,
) -> Result<(), TooMany> {
    let Some(layout) = packet.layout().filter(|layout| !layout.fragment) else {
        return to.push(packet.clone());
    };
    let head = (layout.upper - layout.payload + packet.upper_header(&layout)).next_multiple_of(8);
    let first = size.max(head);
    let Some(data) = packet.bytes.get(layout.payload..).filter(|data| data.len() > first) else {
        return to.push(packet.clone());
    };
    let header = Header::of(packet, &layout, random);
    // An IPv6 packet whose length is the greatest that there is leaves no room for the fragment header; IPv4's header is
    // part of its length, so that its fragments are never longer than it was.
    let room = (40 + usize::from(u16::MAX)).saturating_sub(header.first.len()) / 8 * 8;
    let (first, size) = (first.min(room), size.min(room));
    // Where a fragment's offset in units of 8 is odd, as tcprewrite has it; with sizes that make it even everywhere,
    // where its number is (there, tcprewrite overlaps nothing).
    let odd = size / 8 % 2 == 1;
    let pairs = |index: usize, start: usize| if odd { start / 8 % 2 == 1 } else { index % 2 == 1 };
    pieces(data, (first, size), overlap, pairs, random, |piece| to.push(header.fragment(&piece)))
}

/// What stands before each fragment's data.
struct Header {
    v6: bool,
    first: Vec<u8>,
    /// IPv4: without the options that stay with the first (RFC 791 section 3.1).
    others: Vec<u8>,
}

impl Header {
    fn of(packet: &Packet, layout: &Layout, random: &mut Random) -> Header {
        let mut first = packet.bytes.get(..layout.payload).unwrap_or(&[]).to_vec();
        if layout.v6 {
            let next = first.get(layout.next_at).copied().unwrap_or(0);
            set(&mut first, layout.next_at, &[FRAGMENT]);
            let [a, b, c, d, ..] = random.next().to_be_bytes();
            first.extend([next, 0, 0, 0, a, b, c, d]);
            let others = first.clone();
            return Header { v6: true, first, others };
        }
        let mut others = first.get(..20).unwrap_or(&[]).to_vec();
        let mut options = first.get(20..).unwrap_or(&[]);
        while let [kind, rest @ ..] = options {
            let length = match (kind, rest.first()) {
                (0, _) => break,
                (1, _) => 1,
                (_, Some(length @ 2..)) => usize::from(*length),
                _ => break,
            };
            let Some((option, behind)) = options.split_at_checked(length) else { break };
            if kind & 0x80 != 0 {
                others.extend(option);
            }
            options = behind;
        }
        others.resize(others.len().next_multiple_of(4), 0);
        let words = (others.len() / 4) as u8;
        set(&mut others, 0, &[0x40 | words]);
        Header { v6: false, first, others }
    }

    fn fragment(&self, piece: &Piece) -> Packet {
        let header = if piece.start == 0 { &self.first } else { &self.others };
        let mut packet = Packet { bytes: [header.as_slice(), &piece.data].concat() };
        if self.v6 {
            let word = piece.start as u16 | u16::from(!piece.last);
            set(&mut packet.bytes, header.len() - 6, &word.to_be_bytes());
        } else {
            // The reserved bit stays; do-not-fragment does not.
            let reserved = be16(header, 6).unwrap_or(0) & 0x8000;
            let word = reserved | u16::from(!piece.last) << 13 | (piece.start / 8) as u16;
            set(&mut packet.bytes, 6, &word.to_be_bytes());
        }
        packet.finish();
        packet
    }
}

/// TCP segments of `size` bytes of payload. FIN stays with the last, SYN with the first.
pub(super) fn segment(
    packet: &Packet,
    size: usize,
    overlap: Option<Favour>,
    to: &mut Queue,
    random: &mut Random,
) -> Result<(), TooMany> {
    let Some((layout, payload)) = packet.tcp() else { return to.push(packet.clone()) };
    let Some((header, data)) = packet.bytes.split_at_checked(payload).filter(|(_, data)| data.len() > size)
    else {
        return to.push(packet.clone());
    };
    let flags = header.get(layout.upper + 13).copied().unwrap_or(0);
    let sequence =
        header.get(layout.upper + 4..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_be_bytes(*b));
    let mut identification = be16(header, 4).unwrap_or(0);
    let step = (random.next() | 1) as u16;
    pieces(
        data,
        (size, size),
        overlap,
        |index, _| index % 2 == 0,
        random,
        |piece| {
            let mut segment = Packet { bytes: [header, &piece.data].concat() };
            let syn = flags & 0x02;
            let offset = piece.start as u32 + u32::from(syn != 0 && piece.start > 0);
            set(&mut segment.bytes, layout.upper + 4, &sequence.wrapping_add(offset).to_be_bytes());
            let fin = if piece.last { 0 } else { 0x01 };
            let syn = if piece.start == 0 { 0 } else { syn };
            set(&mut segment.bytes, layout.upper + 13, &[flags & !fin & !syn]);
            if !layout.v6 {
                // Packets that may be fragmented on their way must not share an identification.
                set(&mut segment.bytes, 4, &identification.to_be_bytes());
                identification = identification.wrapping_add(step);
            }
            segment.finish_upper();
            to.push(segment)
        },
    )
}
