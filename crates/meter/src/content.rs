//! What the frames of a stream have directly before their signatures, as a hash: `programs/bpf/include/content.h` in Rust.
//!
//! Bytes are counted from the signature, because a device under test may change headers. The binary makes an
//! [`Expected`] from the program that is sent; the meter looks up its entry for the stream and the frame's length.

use crate::layout::Content;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const PRIME: u64 = 0xd6e8_feb8_6659_fd93;
/// Words that the kernel copies out of a frame at a time.
const CHUNK: usize = 64;
/// Most bytes of a frame that are looked at.
pub const MOST: usize = 9216;
/// Most entries for a stream.
pub const SLOTS: usize = 8;

/// What frames of a stream are to end with, before the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Frames of this length, without FCS; `None`: of any other.
    pub length: Option<u32>,
    /// Directly before the signature, and the same in all those frames.
    pub bytes: Vec<u8>,
}

/// What is expected of the streams.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    slots: usize,
    entries: Vec<Content>,
}

impl Expected {
    /// From each stream's endings, by its number. Of more lengths than there is room for, the rest is looked at as any
    /// other length is.
    pub fn new(streams: &[Vec<Ending>]) -> Expected {
        let most = streams.iter().map(|endings| endings.iter().filter(|e| e.length.is_some()).count()).max();
        let slots = (most.unwrap_or(0) + 1).min(SLOTS);
        let mut entries = vec![Content::default(); slots * streams.len()];
        for (endings, own) in streams.iter().zip(entries.chunks_mut(slots)) {
            let entry = |ending: &Ending| {
                let bytes = &ending.bytes[ending.bytes.len().saturating_sub(MOST)..];
                let length = u64::from(ending.length.unwrap_or(0)) | (bytes.len() as u64) << 32;
                Content { length, hash: hash(bytes) }
            };
            if let Some((any, own)) = own.split_first_mut() {
                *any = endings.iter().find(|e| e.length.is_none()).map(entry).unwrap_or_default();
                let known = endings.iter().filter(|e| e.length.is_some());
                own.iter_mut().zip(known).for_each(|(place, ending)| *place = entry(ending));
            }
        }
        Expected { slots, entries }
    }

    /// Entries for each stream; 0 if nothing is expected.
    pub fn slots(&self) -> u32 {
        if self.entries.is_empty() { 0 } else { self.slots as u32 }
    }

    pub(crate) fn entries(&self) -> &[Content] {
        &self.entries
    }

    /// Do the bytes of a frame of this `stream` up to its signature differ? Nothing is said of streams beyond those
    /// that something is known of.
    pub(crate) fn differs(&self, stream: u32, before: &[u8], length: usize) -> bool {
        let first = stream as usize * self.slots;
        let Some(own) = self.entries.get(first..first + self.slots) else { return false };
        let of_length = own.iter().skip(1).rfind(|entry| entry.length as u32 as usize == length);
        let Some(content) = of_length.or(own.first()) else { return false };
        let bytes = (content.length >> 32) as usize;
        match before.len().checked_sub(bytes) {
            _ if bytes == 0 => false,
            Some(from) => hash(&before[from..]) != content.hash,
            None => true,
        }
    }
}

fn step(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(PRIME);
    hash ^ (hash >> 32)
}

/// Over words of the machine's own order, in whole chunks, of which the last is filled up with zeros.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ bytes.len() as u64;
    for chunk in bytes.chunks(CHUNK) {
        let mut whole = [0; CHUNK];
        whole[..chunk.len()].copy_from_slice(chunk);
        for word in whole.as_chunks::<8>().0 {
            hash = step(hash, u64::from_ne_bytes(*word));
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_changed_byte_always_shows(
            mut bytes in prop::collection::vec(any::<u8>(), 1..300),
            at in any::<prop::sample::Index>(),
            by in 1u8..,
        ) {
            let expected = Expected::new(&[vec![Ending { length: None, bytes: bytes.clone() }]]);
            prop_assert!(!expected.differs(0, &bytes, bytes.len()));
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            prop_assert!(expected.differs(0, &bytes, bytes.len()));
        }
    }

    #[test]
    fn each_length_has_its_own_ending_and_others_the_common_one() {
        let ending = |length, bytes: &[u8]| Ending { length, bytes: bytes.to_vec() };
        let expected = Expected::new(&[
            vec![],
            vec![ending(None, b"z"), ending(Some(60), b"xyz"), ending(Some(70), b"wwz")],
        ]);
        assert_eq!(expected.slots(), 3);
        assert!(!expected.differs(0, b"anything", 60) && !expected.differs(2, b"anything", 60));
        assert!(!expected.differs(1, b"...xyz", 60) && expected.differs(1, b"...wwz", 60));
        assert!(!expected.differs(1, b"...wwz", 70) && !expected.differs(1, b"...wwz", 71));
        assert!(expected.differs(1, b"yz", 60) && expected.differs(1, b"y", 71));
        assert_eq!(Expected::default().slots(), 0);
    }
}
