//! What a client said, in order: captured segments come in as they were seen, bytes go out as the server's TCP handed them to its
//! program. What is there twice is cut off, and of two versions of a byte the first one counts; what is not there is never made up.
//!
//! Positions count from the first byte that is copied, in 64 bits, so that sequence numbers may wrap any number of times.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A segment that lies further ahead than this belongs to no window (RFC 7323 allows 1 GiB; nobody uses it).
pub const FAR: i64 = 64 << 20;
/// Bytes of a stream that wait for what precedes them, at most.
pub const MOST_EARLY: usize = 8 << 20;
/// And so many pieces of them.
const MOST_PIECES: usize = 4096;
/// Bytes that the server has not acknowledged, of which a second version is compared with the first.
const MOST_KEPT: usize = 64 << 10;

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct Stream {
    /// The sequence number of the byte at `delivered`.
    next: u32,
    delivered: u64,
    /// The last bytes that were delivered and that the server has not acknowledged, as far as the capture shows.
    /// In a box: between two requests there are none, and this stands in every session.
    #[allow(clippy::box_collection, reason = "most are empty, and their size counts in each session")]
    kept: Option<Box<Vec<u8>>>,
    early: Option<Box<Early>>,
}

/// What came before what precedes it: pieces that do not overlap.
#[derive(Debug, Default)]
struct Early {
    pieces: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
}

/// What segments were found to hold. All are bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// New ones, which are delivered now or later.
    pub new: u64,
    /// Those that had come before,
    pub repeated: u64,
    /// and those of them that differ from what had come.
    pub different: u64,
    /// Too far ahead to belong to the connection.
    pub wild: u64,
}

/// There is no room for what waits for a gap to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

impl Stream {
    /// The first byte has this number.
    pub fn begin(seq: u32) -> Stream {
        Stream { next: seq, ..Stream::default() }
    }

    /// How many bytes were delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The number of the byte that is awaited.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Bytes that wait for a gap to be filled.
    pub fn early(&self) -> usize {
        self.early.as_ref().map_or(0, |early| early.bytes)
    }

    /// Where a number is; negative: before the first byte.
    pub fn position(&self, seq: u32) -> i64 {
        self.delivered as i64 + i64::from(seq.wrapping_sub(self.next) as i32)
    }

    /// Takes a segment's bytes, and delivers what is in order now, piece by piece.
    ///
    /// # Errors
    /// That too much waits already: the stream has a gap that is not filled.
    pub fn add(
        &mut self,
        seq: u32,
        mut bytes: &[u8],
        found: &mut Found,
        mut deliver: impl FnMut(&[u8]),
    ) -> Result<(), TooMuch> {
        let mut at = self.position(seq);
        // The usual case: what is awaited, and nothing else there.
        if at == self.delivered as i64 && self.early.is_none() {
            found.new += bytes.len() as u64;
            self.hand_out(bytes, &mut deliver);
            return Ok(());
        }
        if at > self.delivered as i64 + FAR {
            found.wild += bytes.len() as u64;
            return Ok(());
        }
        if at < self.delivered as i64 {
            let old = (self.delivered as i64 - at).min(bytes.len() as i64) as usize;
            let (known, rest) = bytes.split_at(old);
            found.repeated += old as u64;
            found.different += self.differing(at, known);
            (bytes, at) = (rest, at + old as i64);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let at = at as u64;
        if at > self.delivered || self.early.is_some() {
            let early = self.early.get_or_insert_default();
            early.insert(at, bytes, self.delivered, found)?;
            while let Some(entry) = early.pieces.first_entry().filter(|entry| *entry.key() == self.delivered)
            {
                let piece = entry.remove();
                early.bytes -= piece.len();
                keep(self.kept.get_or_insert_default(), &piece);
                self.delivered += piece.len() as u64;
                self.next = self.next.wrapping_add(piece.len() as u32);
                deliver(&piece);
            }
            if early.pieces.is_empty() {
                self.early = None;
            }
            return Ok(());
        }
        found.new += bytes.len() as u64;
        self.hand_out(bytes, &mut deliver);
        Ok(())
    }

    fn hand_out(&mut self, bytes: &[u8], deliver: &mut impl FnMut(&[u8])) {
        if !bytes.is_empty() {
            keep(self.kept.get_or_insert_default(), bytes);
            self.delivered += bytes.len() as u64;
            self.next = self.next.wrapping_add(bytes.len() as u32);
            deliver(bytes);
        }
    }

    /// Of bytes that were delivered before, how many differ from what is kept.
    fn differing(&self, at: i64, bytes: &[u8]) -> u64 {
        let Some(kept) = &self.kept else { return 0 };
        let start = self.delivered as i64 - kept.len() as i64;
        let skip = (start - at).clamp(0, bytes.len() as i64);
        let from = usize::try_from(at + skip - start).unwrap_or(0);
        let kept = kept.get(from..).unwrap_or_default();
        let again = bytes.get(skip as usize..).unwrap_or_default();
        kept.iter().zip(again).filter(|(first, second)| first != second).count() as u64
    }

    /// The server acknowledged all before this number: how many bytes it has that are not delivered, because the capture does not
    /// have them, or not yet.
    pub fn acknowledged(&mut self, ack: u32) -> u64 {
        let at = self.position(ack);
        let unacknowledged = self.delivered as i64 - at;
        if unacknowledged <= 0 {
            self.kept = None;
        } else if let Some(kept) = self.kept.as_mut().filter(|kept| unacknowledged < kept.len() as i64) {
            kept.drain(..kept.len() - unacknowledged as usize);
        }
        // A number that is far off is no acknowledgement of this connection.
        u64::try_from(-unacknowledged).ok().filter(|ahead| *ahead < FAR as u64).unwrap_or(0)
    }

    /// What waits is given up: how many bytes there were of it.
    pub fn give_up(&mut self) -> u64 {
        self.early.take().map_or(0, |early| early.bytes as u64)
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let last = bytes.get(bytes.len().saturating_sub(MOST_KEPT)..).unwrap_or_default();
    let beyond = (kept.len() + last.len()).saturating_sub(MOST_KEPT);
    kept.drain(..beyond.min(kept.len()));
    kept.extend_from_slice(last);
}

impl Early {
    /// Puts bytes where nothing is yet. What is awaited has room in any case: it fills the gap.
    fn insert(&mut self, at: u64, bytes: &[u8], awaited: u64, found: &mut Found) -> Result<(), TooMuch> {
        let mut before: Option<(u64, usize)> = None;
        if let Some((start, piece)) = self.pieces.range(..=at).next_back() {
            before = Some((*start, piece.len()));
        }
        let mut at = at;
        let mut rest = bytes;
        // What the piece before covers.
        if let Some((start, length)) = before
            && start + length as u64 > at
        {
            let covered = ((start + length as u64 - at) as usize).min(rest.len());
            let (again, new) = rest.split_at(covered);
            self.compare(start, (at - start) as usize, again, found);
            (rest, at) = (new, at + covered as u64);
        }
        while !rest.is_empty() {
            let next = self.pieces.range(at..).next().map(|(start, piece)| (*start, piece.len()));
            let room = next.map_or(rest.len(), |(start, _)| ((start - at) as usize).min(rest.len()));
            let (new, behind) = rest.split_at(room);
            if !new.is_empty() {
                let full = self.bytes + new.len() > MOST_EARLY || self.pieces.len() >= MOST_PIECES;
                if full && at != awaited {
                    return Err(TooMuch);
                }
                self.bytes += new.len();
                found.new += new.len() as u64;
                if let Entry::Vacant(place) = self.pieces.entry(at) {
                    place.insert(new.to_vec());
                }
            }
            at += room as u64;
            rest = behind;
            if let Some((start, length)) = next.filter(|_| !rest.is_empty()) {
                let covered = length.min(rest.len());
                let (again, behind) = rest.split_at(covered);
                self.compare(start, 0, again, found);
                (rest, at) = (behind, at + covered as u64);
            }
        }
        Ok(())
    }

    fn compare(&self, start: u64, from: usize, again: &[u8], found: &mut Found) {
        let piece = self.pieces.get(&start).and_then(|piece| piece.get(from..)).unwrap_or_default();
        found.repeated += again.len() as u64;
        found.different += piece.iter().zip(again).filter(|(first, second)| first != second).count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The plainest reassembler that there can be: each byte as it came first.
    #[derive(Default)]
    struct Reference {
        bytes: Vec<Option<u8>>,
        out: usize,
        found: Found,
    }

    impl Reference {
        fn add(&mut self, at: usize, bytes: &[u8]) -> Vec<u8> {
            for (at, byte) in (at..).zip(bytes) {
                if self.bytes.len() <= at {
                    self.bytes.resize(at + 1, None);
                }
                match self.bytes[at] {
                    Some(first) => {
                        self.found.repeated += 1;
                        self.found.different += u64::from(first != *byte);
                    }
                    None => {
                        self.found.new += 1;
                        self.bytes[at] = Some(*byte);
                    }
                }
            }
            let from = self.out;
            while self.bytes.get(self.out).is_some_and(Option::is_some) {
                self.out += 1;
            }
            self.bytes[from..self.out].iter().map(|byte| byte.expect("a byte")).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn any_segmentation_overlap_and_order_is_as_the_reference_has_it(
            base in prop_oneof![any::<u32>(), (u32::MAX - 300)..=u32::MAX],
            segments in proptest::collection::vec((0usize..400, proptest::collection::vec(0u8..3, 0..60)), 1..60),
        ) {
            let (mut stream, mut reference, mut found) = (Stream::begin(base), Reference::default(), Found::default());
            for (at, bytes) in segments {
                let mut out = Vec::new();
                let seq = base.wrapping_add(at as u32);
                prop_assert_eq!(stream.add(seq, &bytes, &mut found, |piece| out.extend_from_slice(piece)), Ok(()));
                prop_assert_eq!(out, reference.add(at, &bytes));
                prop_assert_eq!(found, reference.found);
                prop_assert_eq!(stream.delivered(), reference.out as u64);
                let there = reference.bytes.iter().flatten().count();
                prop_assert_eq!(stream.early(), there - reference.out);
            }
        }

        #[test]
        fn what_is_acknowledged_is_kept_no_longer_and_nothing_else_changes(
            base in any::<u32>(),
            steps in proptest::collection::vec((0usize..200, proptest::collection::vec(0u8..3, 0..40), 0usize..300), 1..40),
        ) {
            let (mut with, mut without) = (Stream::begin(base), Stream::begin(base));
            for (at, bytes, ack) in steps {
                let seq = base.wrapping_add(at as u32);
                let mut outs = [Vec::new(), Vec::new()];
                let mut found = Found::default();
                let _ = with.add(seq, &bytes, &mut found, |piece| outs[0].extend_from_slice(piece));
                let _ = without.add(seq, &bytes, &mut found, |piece| outs[1].extend_from_slice(piece));
                prop_assert_eq!(&outs[0], &outs[1]);
                let beyond = with.acknowledged(base.wrapping_add(ack as u32));
                prop_assert_eq!(beyond, (ack as u64).saturating_sub(with.delivered()));
                prop_assert!(with.kept.as_ref().map_or(0, |kept| kept.len()) as u64 <= with.delivered().saturating_sub(ack as u64));
            }
        }
    }

    #[test]
    fn numbers_wrap_as_often_as_they_like() {
        let mut stream = Stream::begin(u32::MAX - 1000);
        let (mut found, mut delivered) = (Found::default(), 0u64);
        let piece = vec![1; 1 << 20];
        for turn in 0..9000u64 {
            let seq = (u32::MAX - 1000).wrapping_add((turn << 20) as u32);
            stream.add(seq, &piece, &mut found, |bytes| delivered += bytes.len() as u64).unwrap();
        }
        assert_eq!((delivered, found.new, found.repeated), (9000 << 20, 9000 << 20, 0));
    }

    #[test]
    fn a_gap_that_is_not_filled_has_a_bound() {
        let (mut stream, mut found) = (Stream::begin(0), Found::default());
        let piece = vec![0; 64 << 10];
        let mut at = 1;
        let refused = loop {
            match stream.add(at, &piece, &mut found, |_| panic!("nothing is in order")) {
                Ok(()) => at += 64 << 10,
                Err(too_much) => break too_much,
            }
        };
        assert_eq!((refused, stream.early()), (TooMuch, MOST_EARLY));
        assert_eq!((stream.give_up(), stream.early()), (MOST_EARLY as u64, 0));
        stream.add(FAR as u32 + 2, b"x", &mut found, |_| panic!("far away")).unwrap();
        assert_eq!(found.wild, 1);
    }

    #[test]
    fn the_server_has_what_the_capture_has_not() {
        let (mut stream, mut found) = (Stream::begin(100), Found::default());
        stream.add(100, b"abc", &mut found, |_| ()).unwrap();
        assert_eq!(stream.acknowledged(103), 0);
        assert_eq!(stream.acknowledged(110), 7);
        assert_eq!(stream.acknowledged(90), 0);
    }
}
