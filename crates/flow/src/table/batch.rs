//! Packets that are counted together: a large table stands in memory that takes long to come, so it is asked for some packets
//! before each is counted. A function of its own, because who has one packet at a time gains nothing.
//!
//! ```text
//!   packet i + 2 AHEAD: its slot of the index is asked for
//!   packet i + AHEAD:   the slot is there, and says which entry to ask for
//!   packet i:           both are there
//! ```

use super::{Entry, Over, Table};
use crate::ahead::ask_for;
use crate::packet::Packet;

/// So many packets are between one step and the next: half as many as a core has lines of memory under way, about.
const AHEAD: usize = 12;
/// Words of the index that are looked at: those of a line.
const NEAR: usize = 8;
/// Packets of which hashes are kept.
const BATCH: usize = 256;

impl Table {
    /// Counts packets, in their order. What has to make room for them goes to `over`.
    pub fn add_all(&mut self, packets: &[Packet], over: &mut impl FnMut(&Over)) {
        for packets in packets.chunks(BATCH) {
            let mut hashes = [0; BATCH];
            let hashes = &mut hashes[..packets.len()];
            for at in 0..packets.len() + 2 * AHEAD {
                if let (Some(packet), Some(hash)) = (packets.get(at), hashes.get_mut(at)) {
                    *hash = self.hash(&packet.key);
                    self.index.get(self.home(*hash) as usize).into_iter().for_each(ask_for);
                }
                if let Some(hash) = at.checked_sub(AHEAD).and_then(|at| hashes.get(at)) {
                    self.likely(*hash).into_iter().for_each(ask_for);
                }
                let now = at.checked_sub(2 * AHEAD);
                if let Some((packet, hash)) = now.and_then(|at| packets.get(at).zip(hashes.get(at))) {
                    self.add_hashed(*hash, packet, over);
                }
            }
        }
    }

    /// The entry that a flow of this hash most likely has: of the first words from its home on, the one with its tag.
    #[inline]
    fn likely(&self, hash: u32) -> Option<&Entry> {
        let words = self.index.get(self.home(hash) as usize..)?.iter().take(NEAR);
        let word = words.take_while(|word| **word != 0).find(|word| (**word >> 32) as u32 == hash)?;
        self.entries.get((*word as u32).wrapping_sub(1) as usize)
    }
}
