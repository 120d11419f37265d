//! Random numbers that follow from a seed and a frame's number, so that a capture comes out the same again.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub(crate) struct Random(u64);

/// Chaff is of these, like text, and of one byte each.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Random {
    pub(crate) fn new(seed: u64, number: u64) -> Random {
        let mut mixed = Random(seed);
        Random(mixed.next() ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Less than `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    pub(crate) fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < usize::from(percent)
    }

    pub(crate) fn letters(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let mut bits = self.next();
            for byte in chunk {
                *byte = LETTERS[(bits & 63) as usize];
                bits >>= 6;
            }
        }
    }
}
