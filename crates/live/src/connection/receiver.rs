//! What the peer sends, put in order: overlaps, duplicates and gaps (RFC 9293 section 3.10.7.4).

use crate::segment::{MAX_SACKS, Sacks};
use std::collections::BTreeMap;

/// Offsets in the peer's sequence space: its SYN is 0, its first byte 1.
#[derive(Debug, Default)]
pub struct Receiver {
    /// The next byte that is missing.
    next: u64,
    /// What came beyond a gap, by its first byte. Pieces neither touch nor overlap.
    beyond: BTreeMap<u64, Vec<u8>>,
    /// Where the peer's FIN stands, once one was seen.
    fin: Option<u64>,
    /// The piece that grew last: it is reported first (RFC 2018 section 4).
    latest: u64,
    /// In order, not yet taken.
    ready: Vec<u8>,
    pub duplicate_bytes: u64,
    pub out_of_order: u64,
}

impl Receiver {
    /// Nothing but the peer's SYN was received.
    pub fn after_syn(&mut self) {
        self.next = 1;
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    /// All that the peer had to say has arrived, its FIN included.
    pub fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Takes what was received in order.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ready)
    }

    /// A segment's payload at `start`, and whether a FIN follows it; at most `window` bytes beyond what is missing are
    /// kept. True if it was in order.
    pub fn receive(&mut self, start: u64, payload: &[u8], fin: bool, window: u64) -> bool {
        let end = start + payload.len() as u64;
        if fin && self.fin.is_none() && end >= self.next {
            self.fin = Some(end);
        }
        let limit = (self.next + window).min(self.fin.unwrap_or(u64::MAX));
        let in_order = start <= self.next;
        if !payload.is_empty() {
            let from = start.max(self.next);
            let to = end.min(limit);
            self.duplicate_bytes += from.min(end) - start;
            if from < to {
                let piece = payload.get((from - start) as usize..(to - start) as usize).unwrap_or_default();
                if from == self.next {
                    self.append(piece);
                } else {
                    self.out_of_order += 1;
                    self.keep(from, piece);
                }
            }
        }
        if self.fin == Some(self.next) {
            self.next += 1;
            self.beyond.clear();
        }
        in_order
    }

    /// In order at last; and what lay behind it.
    fn append(&mut self, piece: &[u8]) {
        self.ready.extend_from_slice(piece);
        self.next += piece.len() as u64;
        while let Some(entry) = self.beyond.first_entry() {
            let start = *entry.key();
            if start > self.next {
                break;
            }
            let kept = entry.remove();
            let known = (self.next - start) as usize;
            self.duplicate_bytes += known.min(kept.len()) as u64;
            let new = kept.get(known..).unwrap_or_default();
            self.ready.extend_from_slice(new);
            self.next += new.len() as u64;
        }
    }

    /// Keeps a piece beyond the gap. Where it overlaps others, the first that came stays.
    fn keep(&mut self, start: u64, piece: &[u8]) {
        let end = start + piece.len() as u64;
        let (mut start, mut bytes) = (start, piece.to_vec());
        // The one before may reach into or up to it.
        if let Some((&before, kept)) = self.beyond.range_mut(..=start).next_back() {
            let reach = before + kept.len() as u64;
            if reach >= start {
                let known = (reach - start).min(bytes.len() as u64);
                self.duplicate_bytes += known;
                let mut joined = std::mem::take(kept);
                joined.extend_from_slice(bytes.get(known as usize..).unwrap_or_default());
                self.beyond.remove(&before);
                (start, bytes) = (before, joined);
            }
        }
        let end = end.max(start + bytes.len() as u64);
        // Those after may be covered, or touched.
        while let Some((&after, _)) = self.beyond.range(start..=end).next() {
            let Some(kept) = self.beyond.remove(&after) else { break };
            let mine = (after - start) as usize;
            let covered = bytes.len().saturating_sub(mine).min(kept.len());
            self.duplicate_bytes += covered as u64;
            bytes.extend_from_slice(kept.get(covered..).unwrap_or_default());
        }
        self.latest = start;
        self.beyond.insert(start, bytes);
    }

    /// The pieces beyond gaps as selective acknowledgements, the latest first; `wire` gives a sequence number.
    pub fn sacks(&self, wire: impl Fn(u64) -> u32) -> Sacks {
        let mut sacks = Sacks::default();
        let latest = self.beyond.get_key_value(&self.latest);
        let others = self.beyond.iter().rev().filter(|(start, _)| **start != self.latest);
        for (start, bytes) in latest.into_iter().chain(others).take(MAX_SACKS) {
            sacks.push((wire(*start), wire(start + bytes.len() as u64)));
        }
        sacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any cutting, order, repetition and overlap of a stream yields the stream.
        #[test]
        fn a_stream_comes_out_whole(
            stream in proptest::collection::vec(any::<u8>(), 1..300),
            cuts in proptest::collection::vec((any::<u16>(), 1usize..60), 0..80),
        ) {
            let mut receiver = Receiver::default();
            receiver.after_syn();
            let length = stream.len();
            let mut got = Vec::new();
            let everything = (0..length).step_by(7).map(|at| (at, 7));
            for (at, len) in cuts.into_iter().map(|(at, len)| (usize::from(at) % length, len)).chain(everything) {
                let end = (at + len).min(length);
                receiver.receive(1 + at as u64, &stream[at..end], end == length, 1 << 20);
                got.extend(receiver.take());
                prop_assert_eq!(&got[..], &stream[..got.len()]);
                let mut last = receiver.next();
                for (start, bytes) in &receiver.beyond {
                    prop_assert!(*start > last && !bytes.is_empty());
                    prop_assert_eq!(&bytes[..], &stream[*start as usize - 1..][..bytes.len()]);
                    last = start + bytes.len() as u64;
                }
            }
            prop_assert_eq!(got, stream);
            prop_assert!(receiver.finished());
        }
    }
}
