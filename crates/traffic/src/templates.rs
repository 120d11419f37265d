//! The bytes of frames that do not vary: one for an expression, hundreds of thousands for a capture.
//!
//! A preloaded capture must cost little more memory than its file, so all bytes stand in one arena and each template
//! has eight bytes of index: where it is, how long, and where its addresses are. Nothing is parsed while sending.

use std::ops::Range;
use std::sync::Arc;
use wire::LinkType;
use wire::ends::Ends;
use wire::layers::{L3, Layers};
use wire::signature;

/// Longest frame taken, as in libpcap.
pub const MAX_LENGTH: usize = 262_144;

/// A sequence of frames.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    /// Shared by those that have some of the same templates.
    arena: Arc<Vec<u8>>,
    index: Vec<Entry>,
    /// For each template the number of signable ones before it; only made when captured frames are to be signed.
    signed_before: Vec<u32>,
    longest: u32,
    shortest: u32,
    captured: bool,
}

/// Where a template is and what is known of it, packed: the arena offset divided by [`ALIGN`], and
/// length (19 bits), offset of the IP header (8 bits), its kind (2 bits), direction (1 bit), signable (1 bit).
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u32,
    facts: u32,
}

/// Templates start at multiples of this, so that 32 bits address 16 GiB.
const ALIGN: usize = 4;
const LENGTH_BITS: u32 = 19;
const KIND_V4: u32 = 1;
const KIND_V6: u32 = 2;

/// Which addresses a template has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// None that we change.
    None,
    /// IPv4 source address at this offset, destination right behind it.
    V4(usize),
    /// IPv6 source address at this offset, destination right behind it.
    V6(usize),
}

/// Why a frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Longer than [`MAX_LENGTH`].
    #[error("a frame of {0} bytes is longer than the 262144 that are possible")]
    TooLong(usize),
    /// The arena is full.
    #[error("more than 16 GiB of frames cannot be held in memory: stream the capture instead")]
    Full,
}

impl Entry {
    fn length(self) -> usize {
        (self.facts & ((1 << LENGTH_BITS) - 1)) as usize
    }
    fn l3(self) -> usize {
        (self.facts >> 19 & 0xff) as usize
    }
    fn kind(self) -> u32 {
        self.facts >> 27 & 3
    }
    fn source_is_less(self) -> bool {
        self.facts >> 29 & 1 != 0
    }
    fn signable(self) -> bool {
        self.facts >> 30 & 1 != 0
    }
}

impl Templates {
    /// No templates yet; captured frames are to be pushed.
    pub fn new() -> Templates {
        Templates { shortest: u32::MAX, captured: true, ..Templates::default() }
    }

    /// One template that is no capture's: nothing is looked for in it.
    pub fn single(bytes: &[u8]) -> Templates {
        let length = bytes.len().min(MAX_LENGTH) as u32;
        Templates {
            arena: Arc::new(bytes[..length as usize].to_vec()),
            index: vec![Entry { at: 0, facts: length }],
            signed_before: Vec::new(),
            longest: length,
            shortest: length,
            captured: false,
        }
    }

    /// Adds a captured frame, and notes where its addresses are.
    ///
    /// # Errors
    /// The frame is too long, or there are too many.
    pub fn push(&mut self, link: LinkType, bytes: &[u8]) -> Result<(), NotTaken> {
        if bytes.len() > MAX_LENGTH {
            return Err(NotTaken::TooLong(bytes.len()));
        }
        let at = u32::try_from(self.arena.len() / ALIGN).map_err(|_| NotTaken::Full)?;
        let layers = Layers::parse(link, bytes);
        let (l3, kind, less) = match (u8::try_from(layers.l3_offset), layers.l3) {
            (Ok(l3), L3::V4) => (l3, KIND_V4, low_words(bytes, l3 as usize + 12, 4)),
            (Ok(l3), L3::V6) => (l3, KIND_V6, low_words(bytes, l3 as usize + 8, 16)),
            _ => (0, 0, None),
        };
        // Addresses that are not all there are not changed.
        let (kind, less) = less.map_or((0, false), |(source, destination)| (kind, source < destination));
        let signable = kind != 0 && link == LinkType::ETHERNET && room_for_signature(&layers, bytes);
        let kind = if changeable(bytes.get(usize::from(l3)..)) { kind } else { 0 };
        let arena = Arc::make_mut(&mut self.arena);
        arena.extend_from_slice(bytes);
        arena.resize(arena.len().next_multiple_of(ALIGN), 0);
        self.index.push(Entry {
            at,
            facts: bytes.len() as u32
                | u32::from(l3) << 19
                | kind << 27
                | u32::from(less) << 29
                | u32::from(signable) << 30,
        });
        let length = bytes.len() as u32;
        self.longest = self.longest.max(length);
        self.shortest = self.shortest.min(length);
        Ok(())
    }

    /// Prepares for signing: numbers the frames that have room for a signature. Returns how many those are.
    pub fn number_signable(&mut self) -> u64 {
        let mut count = 0u32;
        self.signed_before.clear();
        self.signed_before.reserve_exact(self.index.len());
        for entry in &self.index {
            self.signed_before.push(count);
            count += u32::from(entry.signable());
        }
        u64::from(count)
    }

    /// Those of number `i` for which `keep(i)` holds, in the same memory.
    pub fn subset(&self, keep: impl Fn(usize) -> bool) -> Templates {
        let kept = self.index.iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, &entry)| entry);
        let mut subset = Templates { index: kept.collect(), captured: self.captured, ..Templates::new() };
        let lengths = || subset.index.iter().map(|entry| entry.length() as u32);
        (subset.longest, subset.shortest) =
            (lengths().max().unwrap_or(0), lengths().min().unwrap_or(u32::MAX));
        subset.arena = Arc::clone(&self.arena);
        if !self.signed_before.is_empty() {
            subset.number_signable();
        }
        subset
    }

    /// Are these captured frames?
    pub fn is_captured(&self) -> bool {
        self.captured
    }

    /// Is there no template?
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// How many templates there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The longest one's length.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// The shortest one's length.
    pub fn shortest(&self) -> u32 {
        self.shortest
    }

    /// Template `i`; empty when there is none.
    pub fn get(&self, i: usize) -> &[u8] {
        self.index.get(i).map_or(&[], |&entry| &self.arena[self.range(entry)])
    }

    /// Length of template `i`.
    pub fn length(&self, i: usize) -> u32 {
        self.index.get(i).map_or(0, |entry| entry.length() as u32)
    }

    /// Memory that the frames and what is known of them take.
    pub fn held_bytes(&self) -> u64 {
        let known = self.index.len() * size_of::<Entry>() + self.signed_before.len() * size_of::<u32>();
        (self.arena.len() + known) as u64
    }

    /// Bytes of all templates.
    pub fn total_bytes(&self) -> u64 {
        self.index.iter().map(|e| e.length() as u64).sum()
    }

    /// Frames that can be signed in a pass, and the number of signable templates before template `i` when `i` itself
    /// is one. `None` when it is not, or when [`Templates::number_signable`] was not called.
    pub fn signed_rank(&self, i: usize) -> Option<u64> {
        let entry = self.index.get(i)?;
        if !entry.signable() {
            return None;
        }
        self.signed_before.get(i).map(|&rank| u64::from(rank))
    }

    /// How many of the first `i` templates are signed.
    pub fn signed_among(&self, i: usize) -> u64 {
        self.signed_before.get(i).map_or(self.signed_per_pass(), |&before| u64::from(before))
    }

    /// Number of templates that are signed in a pass.
    pub fn signed_per_pass(&self) -> u64 {
        match (self.signed_before.last(), self.index.last()) {
            (Some(&before), Some(last)) => u64::from(before) + u64::from(last.signable()),
            _ => 0,
        }
    }

    /// Where template `i`'s addresses are, and whether its source is the lesser.
    pub fn addresses(&self, i: usize) -> (Addresses, bool) {
        let Some(&entry) = self.index.get(i) else { return (Addresses::None, false) };
        let addresses = match entry.kind() {
            KIND_V4 => Addresses::V4(entry.l3() + 12),
            KIND_V6 => Addresses::V6(entry.l3() + 8),
            _ => Addresses::None,
        };
        (addresses, entry.source_is_less())
    }

    fn range(&self, entry: Entry) -> Range<usize> {
        let start = entry.at as usize * ALIGN;
        start..start + entry.length()
    }
}

/// The low 32 bits of source and destination address, where addresses of `size` bytes start at `at`.
pub fn low_words(frame: &[u8], at: usize, size: usize) -> Option<(u32, u32)> {
    let (source, destination) = frame.get(at..at + 2 * size)?.split_at(size);
    Some((u32::from_be_bytes(*source.last_chunk()?), u32::from_be_bytes(*destination.last_chunk()?)))
}

/// Whether the addresses of an IP packet may be changed by what leaves their sum as it is: the checksum behind them must
/// cover these two, and not the ends of a route.
pub fn changeable(packet: Option<&[u8]>) -> bool {
    let ends = packet.and_then(|packet| Some((Ends::of(packet)?, packet.first()? >> 4 == 6)));
    ends.is_some_and(|(ends, v6)| ends == Ends::of_header(v6))
}

/// A captured frame can be signed when its last 18 bytes are all payload of a whole TCP or UDP packet.
pub fn room_for_signature(layers: &Layers, frame: &[u8]) -> bool {
    if layers.is_fragment() || layers.l3_end != frame.len() {
        return false;
    }
    let Some(l4) = layers.l4_offset else { return false };
    let header = match (layers.ip_protocol, frame.get(l4 + 12)) {
        (Some(17), _) => 8,
        (Some(6), Some(offset)) if offset >> 4 >= 5 => usize::from(offset >> 4) * 4,
        _ => return false,
    };
    l4 + header + signature::LEN <= frame.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet/IPv4/TCP whose header says to have `words` 32-bit words, and 40 bytes behind the first 20.
    fn tcp(words: u8) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 20 + 40];
        frame[12] = 0x08;
        frame[14] = 0x45;
        frame[17] = 80;
        frame[23] = 6;
        frame[14 + 20 + 12] = words << 4;
        frame
    }

    #[test]
    fn packets_on_a_route_keep_their_addresses_in_all_passes() {
        // IPv6 with a routing header of one address and one or no segment left, then UDP; IPv4 with a source route.
        let routed = |left: u8| {
            let mut frame = vec![0; 14 + 40 + 24 + 8];
            frame[12..14].copy_from_slice(&[0x86, 0xdd]);
            (frame[14], frame[19], frame[20], frame[21]) = (0x60, 32, 43, 64);
            (frame[29], frame[45]) = (1, 2);
            frame[54..58].copy_from_slice(&[17, 2, 0, left]);
            frame
        };
        let mut source_routed = tcp(5);
        source_routed.splice(34..34, [131, 7, 4, 10, 0, 0, 9, 0]);
        (source_routed[14], source_routed[17]) = (0x47, 88);
        let mut templates = Templates::new();
        for frame in [routed(1), routed(0), source_routed, tcp(5)] {
            templates.push(LinkType::ETHERNET, &frame).unwrap();
        }
        let changed: Vec<bool> = (0..4).map(|i| templates.addresses(i).0 != Addresses::None).collect();
        assert_eq!(changed, [false, true, false, true]);
    }

    #[test]
    fn only_payload_of_a_sound_tcp_header_is_signed() {
        let room = |frame: &[u8]| room_for_signature(&Layers::parse(LinkType::ETHERNET, frame), frame);
        assert!(room(&tcp(5)) && room(&tcp(10)));
        // 15 words leave no 18 bytes; a header of 16 bytes is none.
        assert!(!room(&tcp(15)) && !room(&tcp(4)) && !room(&tcp(0)));
        let mut padded = tcp(5);
        padded.push(0);
        assert!(!room(&padded), "the end of a padded frame is not payload");
    }
}
