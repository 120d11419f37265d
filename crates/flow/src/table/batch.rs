//! Packets that are counted together: a large table stands in memory that takes long to come, so it is asked for all of them
//! before the first is counted. A function of its own, because who has one packet at a time gains nothing.

use super::{Over, Table};
use crate::packet::Packet;

/// Packets that are looked ahead for: as many as a core has memory accesses under way, and some.
const AHEAD: usize = 32;

impl Table {
    /// Counts packets, in their order. What has to make room for them goes to `over`.
    pub fn add_all(&mut self, packets: &[Packet], over: &mut impl FnMut(&Over)) {
        for packets in packets.chunks(AHEAD) {
            let mut hashes = [0; AHEAD];
            let mut numbers = [0; AHEAD];
            for ((hash, number), packet) in hashes.iter_mut().zip(&mut numbers).zip(packets) {
                *hash = self.hash(&packet.key);
                let word = self.index.get(self.home(*hash) as usize).copied().unwrap_or_default();
                *number = (word as u32).wrapping_sub(1);
            }
            // Loads that do not wait for each other. What they find is found again when it is counted.
            let mut found = 0;
            for number in numbers.iter().take(packets.len()) {
                if let Some(entry) = self.entries.get(*number as usize) {
                    found |= entry.state | entry.flow.times_ns[0] as u16;
                }
            }
            std::hint::black_box(found);
            for (hash, packet) in hashes.iter().zip(packets) {
                self.add_hashed(*hash, packet, over);
            }
        }
    }
}
