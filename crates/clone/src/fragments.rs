//! IP packets in pieces (RFC 791 section 3.2, RFC 8200 section 4.5), put together again. Called with frames that
//! [`crate::packet::read`] found to be pieces; a packet that is whole is read like any other frame.
//!
//! Pieces that overlap and say different things end their packet (RFC 5722), and so does everything that is too much: a flood of
//! pieces must not fill the memory.

use std::collections::{HashMap, VecDeque};
use wire::LinkType;
use wire::bytes::be16;
use wire::layers::{L3, Layers};
use wire::numbers::{ethertype, protocol};

/// Packets that wait for their pieces, at most; the oldest one goes first.
const MOST_PACKETS: usize = 1024;
/// Bytes of a packet, at most.
const MOST_BYTES: usize = 65_535;
/// Pieces of a packet, at most.
const MOST_PIECES: usize = 256;
/// And of all that wait, at most.
const MOST_HELD: usize = 8 << 20;
/// A packet's pieces come within so long (RFC 8200 says 60 s, RFC 1122 60 to 120 s; of a network that works, it is far less).
const WAIT_NS: u64 = 15_000_000_000;
/// The length of an Ethernet header.
const ETHERNET: usize = 14;

/// What belongs to the same packet: addresses, protocol, identification.
type Key = ([u8; 32], u8, u32);

/// A packet that waits.
#[derive(Debug)]
struct Packet {
    since_ns: u64,
    /// Headers of the first piece, up to what the pieces are of.
    head: Option<Vec<u8>>,
    /// Where each begins, and its bytes; in order, without overlaps.
    pieces: Vec<(usize, Vec<u8>)>,
    /// Where the packet ends, once the last piece is here.
    end: Option<usize>,
    /// Frames that were taken.
    frames: u64,
}

/// A piece in a frame.
struct Piece<'a> {
    key: Key,
    from: usize,
    more: bool,
    /// IP's headers without what says that it is a piece.
    head: Vec<u8>,
    bytes: &'a [u8],
}

/// A packet that is whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// An Ethernet frame with it.
    pub frame: Vec<u8>,
    /// How many frames it was in.
    pub frames: u64,
}

/// All packets that wait.
#[derive(Debug, Default)]
pub struct Fragments {
    packets: HashMap<Key, Packet>,
    order: VecDeque<(u64, Key)>,
    held: usize,
}

impl Fragments {
    /// Takes a piece; the packet, if that was its last one.
    pub fn take(&mut self, link: LinkType, frame: &[u8], now_ns: u64) -> Option<Whole> {
        let piece = piece(link, frame)?;
        self.drop_old(now_ns);
        let key = piece.key;
        let end = piece.from + piece.bytes.len();
        // All but the last are of eight bytes each, and none is empty.
        if end > MOST_BYTES || piece.bytes.is_empty() || piece.more && !piece.bytes.len().is_multiple_of(8) {
            self.forget(&key);
            return None;
        }
        if !self.packets.contains_key(&key) {
            self.order.push_back((now_ns, key));
        }
        let packet = self.packets.entry(key).or_insert_with(|| Packet {
            since_ns: now_ns,
            head: None,
            pieces: Vec::new(),
            end: None,
            frames: 0,
        });
        let at = packet.pieces.partition_point(|(from, _)| *from < piece.from);
        let before = at
            .checked_sub(1)
            .and_then(|at| packet.pieces.get(at))
            .map_or(0, |(from, bytes)| from + bytes.len());
        let behind = packet.pieces.get(at);
        // Two captures of the same frame are one.
        if behind.is_some_and(|(from, bytes)| *from == piece.from && bytes == piece.bytes) {
            packet.frames += 1;
            return None;
        }
        let overlaps = before > piece.from || behind.is_some_and(|(from, _)| *from < end);
        let beyond = packet.end.is_some_and(|last| end > last || !piece.more && end != last)
            || !piece.more && packet.pieces.last().is_some_and(|(from, bytes)| from + bytes.len() > end);
        if overlaps || beyond || packet.pieces.len() >= MOST_PIECES {
            self.forget(&key);
            return None;
        }
        packet.frames += 1;
        if !piece.more {
            packet.end = Some(end);
        }
        if piece.from == 0 {
            packet.head = Some(piece.head);
        }
        packet.pieces.insert(at, (piece.from, piece.bytes.to_vec()));
        self.held += piece.bytes.len();
        let length: usize = packet.pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        if packet.end == Some(length) {
            return self.whole(&key);
        }
        while self.held > MOST_HELD || self.packets.len() > MOST_PACKETS {
            let Some((_, oldest)) = self.order.pop_front() else { break };
            self.forget(&oldest);
        }
        None
    }

    fn whole(&mut self, key: &Key) -> Option<Whole> {
        let packet = self.forget(key)?;
        let mut frame = packet.head?;
        let ip = ETHERNET;
        let (header, four) = (frame.len() - ip, frame.get(12..14) == Some(&ethertype::IPV4.to_be_bytes()));
        packet.pieces.iter().for_each(|(_, bytes)| frame.extend_from_slice(bytes));
        let length = frame.len() - ip - if four { 0 } else { 40.min(header) };
        let place = if four { ip + 2 } else { ip + 4 };
        // What does not fit in 16 bits is none: pieces end before.
        let length = u16::try_from(length).ok()?.to_be_bytes();
        frame.get_mut(place..place + 2)?.copy_from_slice(&length);
        Some(Whole { frame, frames: packet.frames })
    }

    fn forget(&mut self, key: &Key) -> Option<Packet> {
        let packet = self.packets.remove(key)?;
        self.held -= packet.pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        Some(packet)
    }

    fn drop_old(&mut self, now_ns: u64) {
        while let Some((since, key)) = self.order.front().copied() {
            let packet = self.packets.get(&key).filter(|packet| packet.since_ns == since);
            if packet.is_some() && now_ns.saturating_sub(since) <= WAIT_NS {
                break;
            }
            self.order.pop_front();
            if packet.is_some() {
                self.forget(&key);
            }
        }
    }
}

fn piece(link: LinkType, frame: &[u8]) -> Option<Piece<'_>> {
    let layers = Layers::parse(link, frame);
    let at = layers.l3_offset;
    let bytes = frame.get(at..layers.l3_end)?;
    let half = |at: usize| be16(bytes, at);
    // What is cut off has no end.
    let stated = usize::from(half(if layers.l3 == L3::V4 { 2 } else { 4 })?);
    let mut head = vec![0; ETHERNET];
    let mut addresses = [0; 32];
    match layers.l3 {
        L3::V4 => {
            let length = usize::from(bytes.first()? & 0xf) * 4;
            let word = half(6)?;
            if stated != bytes.len() {
                return None;
            }
            addresses.get_mut(..8)?.copy_from_slice(bytes.get(12..20)?);
            head.get_mut(12..)?.copy_from_slice(&ethertype::IPV4.to_be_bytes());
            head.extend_from_slice(bytes.get(..length)?);
            head.get_mut(ETHERNET + 6..ETHERNET + 8)?.copy_from_slice(&(word & 0x4000).to_be_bytes());
            Some(Piece {
                key: (addresses, *bytes.get(9)?, half(4)?.into()),
                from: usize::from(word & 0x1fff) * 8,
                more: word & 0x2000 != 0,
                head,
                bytes: bytes.get(length..)?,
            })
        }
        L3::V6 => {
            if stated + 40 != bytes.len() {
                return None;
            }
            addresses.copy_from_slice(bytes.get(8..40)?);
            // What may stand before the header of a piece (RFC 8200 section 4.5).
            let (mut from, mut at) = (6, 40);
            let mut next = *bytes.get(from)?;
            while matches!(next, protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION) {
                (from, at) = (at, at + (usize::from(*bytes.get(at + 1)?) + 1) * 8);
                next = *bytes.get(from)?;
            }
            if next != protocol::FRAGMENT {
                return None;
            }
            let of = *bytes.get(at)?;
            let word = half(at + 2)?;
            let id = u32::from_be_bytes(*bytes.get(at + 4..)?.first_chunk()?);
            head.get_mut(12..)?.copy_from_slice(&ethertype::IPV6.to_be_bytes());
            head.extend_from_slice(bytes.get(..at)?);
            *head.get_mut(ETHERNET + from)? = of;
            Some(Piece {
                key: (addresses, of, id),
                from: usize::from(word & 0xfff8),
                more: word & 1 != 0,
                head,
                bytes: bytes.get(at + 8..)?,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{NoSegment, read};
    use proptest::prelude::*;

    /// A packet in pieces of these lengths (of eight bytes each), as frames in order.
    fn pieces(six: bool, payload: &[u8], lengths: &[usize], id: u16) -> Vec<Vec<u8>> {
        let mut tcp = vec![0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x10, 0, 1, 0, 0, 0, 0];
        tcp.extend(payload);
        let mut frames = Vec::new();
        let (mut at, mut lengths) = (0, lengths.iter());
        while at < tcp.len() {
            let count = lengths.next().map_or(usize::MAX, |length| length * 8).min(tcp.len() - at);
            let more = u16::from(at + count < tcp.len());
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
            match six {
                false => {
                    frame.extend([8, 0, 0x45, 0]);
                    frame.extend((20 + count as u16).to_be_bytes());
                    frame.extend(id.to_be_bytes());
                    frame.extend((more << 13 | (at / 8) as u16).to_be_bytes());
                    frame.extend([64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
                }
                true => {
                    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                    // A header with options before that of the piece.
                    frame.extend((16 + count as u16).to_be_bytes());
                    frame.extend([0, 64]);
                    (1..3u8).for_each(|last| {
                        frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
                    });
                    frame.extend([44, 0, 1, 4, 0, 0, 0, 0, 6, 0]);
                    frame.extend((at as u16 | more).to_be_bytes());
                    frame.extend(u32::from(id).to_be_bytes());
                }
            }
            frame.extend(&tcp[at..at + count]);
            at += count;
            frames.push(frame);
        }
        frames
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_make_the_packet_once(
            six in any::<bool>(), payload in proptest::collection::vec(any::<u8>(), 1..3000),
            lengths in proptest::collection::vec(1usize..40, 1..8), seed in any::<u64>(),
        ) {
            let mut frames = pieces(six, &payload, &lengths, 7);
            let count = frames.len() as u64;
            prop_assume!(count > 1);
            let mut random = seed;
            frames.sort_by_cached_key(|_| { random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1); random });
            let mut fragments = Fragments::default();
            let mut made = Vec::new();
            for frame in &frames {
                prop_assert_eq!(read(LinkType::ETHERNET, frame, frame.len()), Err(NoSegment::Fragment));
                made.extend(fragments.take(LinkType::ETHERNET, frame, 5));
            }
            prop_assert_eq!(made.len(), 1);
            prop_assert_eq!(made[0].frames, count);
            let whole = &made[0].frame;
            let segment = read(LinkType::ETHERNET, whole, whole.len()).unwrap();
            prop_assert_eq!((segment.seq, segment.payload, segment.missing), (7, &payload[..], 0));
            prop_assert_eq!((fragments.held, fragments.packets.len()), (0, 0));
        }

        #[test]
        fn whatever_comes_is_bounded_and_makes_no_panic(
            changes in proptest::collection::vec((0usize..90, any::<u8>(), 0u64..4_000_000_000), 0..60), six in any::<bool>(),
        ) {
            let frames = pieces(six, &[9; 200], &[3, 5, 1, 2], 7);
            let mut fragments = Fragments::default();
            for (nth, (at, byte, passed)) in changes.into_iter().enumerate() {
                let mut frame = frames[nth % frames.len()].clone();
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
                let _ = fragments.take(LinkType::ETHERNET, &frame, nth as u64 * passed);
                let held: usize = fragments.packets.values().flat_map(|p| &p.pieces).map(|(_, b)| b.len()).sum();
                prop_assert_eq!(held, fragments.held);
            }
        }
    }

    #[test]
    fn pieces_that_contradict_each_other_or_never_end_make_nothing() {
        let frames = pieces(false, &[1; 100], &[4, 4, 4], 7);
        let mut fragments = Fragments::default();
        let mut take = |frame: &[u8], at| fragments.take(LinkType::ETHERNET, frame, at).is_some();
        // The second piece says something else where it overlaps the first.
        let mut other = frames[1].clone();
        other[21] = 2;
        assert!(!take(&frames[0], 1) && !take(&other, 2) && !take(&frames[1], 3) && !take(&frames[2], 4));
        assert!(!take(&frames[3], 5), "the first piece is gone");
        // The same frame twice is no contradiction; what comes too late is.
        let frames = pieces(false, &[1; 100], &[4, 4, 4], 8);
        assert!(!take(&frames[0], 6) && !take(&frames[0], 6) && !take(&frames[2], 6) && !take(&frames[1], 6));
        assert!(!take(&frames[3], 7 + WAIT_NS));
        // Of many packets the oldest go.
        for id in 0..3000u16 {
            assert!(!take(&pieces(false, &[1; 100], &[4], id)[0], 8 + WAIT_NS));
        }
        let last = pieces(false, &[1; 100], &[4], 2999);
        assert!(take(&last[1], 9 + WAIT_NS));
        assert_eq!(fragments.packets.len(), MOST_PACKETS - 1);
    }
}
