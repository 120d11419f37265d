//! One direction of a captured connection, put in order: retransmissions, overlaps, segments out of order, and what the
//! capture does not have.

use std::collections::BTreeMap;
use std::ops::Range;

/// A segment that lies further ahead than this belongs to no window.
const FAR: i64 = 16 << 20;
/// All that is missing of a stream: a small file must not fill the memory.
const MOST_UNKNOWN: u64 = 64 << 20;

/// Bytes that are new at the end of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    pub end: u64,
    /// Which captured segment brought them.
    pub index: usize,
}

#[derive(Debug)]
struct Early {
    bytes: Vec<u8>,
    missing: usize,
    index: usize,
}

/// Offsets count from the first byte.
#[derive(Debug, Default)]
pub struct Stream {
    base: Option<u32>,
    pub bytes: Vec<u8>,
    /// Bytes that there were but were not captured; zero in `bytes`.
    pub unknown: Vec<Range<u64>>,
    /// What came before what precedes it.
    early: BTreeMap<u64, Early>,
    /// Where the FIN stands.
    pub fin: Option<u64>,
    missing: u64,
    /// Segments with nothing new, and segments that fit nowhere.
    pub repeated: u64,
    pub wild: u64,
}

impl Stream {
    /// The first byte has this sequence number, unless it is known already.
    pub fn begin(&mut self, seq: u32) {
        self.base.get_or_insert(seq);
    }

    pub fn has_begun(&self) -> bool {
        self.base.is_some()
    }

    pub fn next(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Where a sequence number is, seen from what is expected next.
    pub fn offset(&self, seq: u32) -> i64 {
        let next = self.next();
        let expected = self.base.unwrap_or(seq).wrapping_add(next as u32);
        next as i64 + i64::from(seq.wrapping_sub(expected) as i32)
    }

    /// A segment's bytes; what is new is listed piece by piece.
    pub fn add(&mut self, seq: u32, bytes: &[u8], missing: usize, index: usize, new: &mut Vec<New>) {
        let at = self.offset(seq);
        let next = self.next() as i64;
        let end = at + (bytes.len() + missing) as i64;
        if end <= next || at < -FAR {
            self.repeated += 1;
            return;
        }
        self.missing += missing as u64;
        if at > next + FAR || self.missing > MOST_UNKNOWN {
            self.wild += 1;
            return;
        }
        if at > next {
            let longer = |early: &Early| early.bytes.len() + early.missing < bytes.len() + missing;
            if self.early.get(&(at as u64)).is_none_or(longer) {
                self.early.insert(at as u64, Early { bytes: bytes.to_vec(), missing, index });
            }
            return;
        }
        self.append((next - at) as usize, bytes, missing, index, new);
        self.follow(new);
    }

    /// Appends what lies behind the first `known` bytes.
    fn append(&mut self, known: usize, bytes: &[u8], missing: usize, index: usize, new: &mut Vec<New>) {
        self.bytes.extend_from_slice(bytes.get(known.min(bytes.len())..).unwrap_or_default());
        let missing = missing - known.saturating_sub(bytes.len()).min(missing);
        self.skip(missing as u64);
        new.push(New { end: self.next(), index });
    }

    fn skip(&mut self, length: u64) {
        if length > 0 {
            let start = self.next();
            self.unknown.push(start..start + length);
            self.bytes.resize((start + length) as usize, 0);
        }
    }

    /// Appends what came early and fits now.
    fn follow(&mut self, new: &mut Vec<New>) {
        while let Some(entry) = self.early.first_entry() {
            let (at, next) = (*entry.key(), self.bytes.len() as u64);
            if at > next {
                break;
            }
            let early = entry.remove();
            if at + (early.bytes.len() + early.missing) as u64 > next {
                self.append((next - at) as usize, &early.bytes, early.missing, early.index, new);
            } else {
                self.repeated += 1;
            }
        }
    }

    /// The capture is over: gaps stay gaps, their bytes unknown.
    pub fn close_gaps(&mut self, new: &mut Vec<New>) {
        while let Some((&at, _)) = self.early.first_key_value() {
            self.missing += at.saturating_sub(self.next());
            if self.missing > MOST_UNKNOWN {
                self.wild += self.early.len() as u64;
                self.early.clear();
                return;
            }
            self.skip(at.saturating_sub(self.next()));
            self.follow(new);
        }
        if let Some(fin) = self.fin
            && fin > self.next()
            && fin - self.next() < FAR as u64
        {
            self.skip(fin - self.next());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_order_and_overlap_yields_the_stream(
            stream in proptest::collection::vec(any::<u8>(), 1..200),
            base in any::<u32>(),
            cuts in proptest::collection::vec((any::<u16>(), 1usize..40), 0..60),
        ) {
            let mut assembled = Stream::default();
            assembled.begin(base);
            let length = stream.len();
            let all = (0..length).step_by(9).map(|at| (at, 9));
            let mut new = Vec::new();
            for (at, len) in cuts.into_iter().map(|(at, len)| (usize::from(at) % length, len)).chain(all) {
                let end = (at + len).min(length);
                assembled.add(base.wrapping_add(at as u32), &stream[at..end], 0, 0, &mut new);
            }
            prop_assert_eq!(&assembled.bytes, &stream);
            prop_assert!(new.windows(2).all(|pair| pair[0].end < pair[1].end));
            prop_assert_eq!(new.last().map(|new| new.end), Some(length as u64));
        }
    }

    #[test]
    fn what_was_not_captured_is_unknown() {
        let (mut stream, mut new) = (Stream::default(), Vec::new());
        stream.begin(100);
        stream.add(100, b"abc", 2, 0, &mut new);
        stream.add(110, b"xyz", 0, 1, &mut new);
        assert_eq!((stream.next(), &stream.unknown[..]), (5, std::slice::from_ref(&(3..5))));
        stream.close_gaps(&mut new);
        assert_eq!(stream.bytes, b"abc\0\0\0\0\0\0\0xyz");
        assert_eq!(stream.unknown, [3..5, 5..10]);
        stream.add(100 + (1 << 30), b"?", 0, 2, &mut new);
        assert_eq!(stream.wild, 1);
    }
}
