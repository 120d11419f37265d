//! The random numbers of the tcpreplay suite, so that a seed gives the same result here as there.
//!
//! It is the linear congruential generator of the C standard's example (`rand()`), of which three steps make one
//! number of 31 bits.

/// Three steps: the next state and the number.
pub(crate) fn next(state: u32) -> (u32, u32) {
    let step = |state: u32| state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
    let (first, second) = (step(state), step(step(state)));
    let third = step(second);
    let number = (first >> 16) % 2048;
    let number = (number << 10) ^ ((second >> 16) % 1024);
    (third, (number << 10) ^ ((third >> 16) % 1024))
}

/// The generator's state and last number after five numbers, which is how seeds are stirred.
pub(crate) fn stirred(seed: u32) -> (u32, u32) {
    (0..5).fold((seed, 0), |(state, _), _| next(state))
}

/// The mask that tcprewrite's `--seed` scrambles addresses with.
pub fn ip_seed(seed: u32) -> u32 {
    stirred(seed).0
}

/// What tcprewrite's `--tcp-sequence` adds to sequence numbers.
pub fn tcp_shift(seed: u32) -> u32 {
    stirred(seed).1
}

/// Six bytes, no two the same.
pub(crate) fn distinct_bytes(seed: u32) -> [u8; 6] {
    let mut bytes = [0; 6];
    let mut state = seed;
    let mut filled = 0;
    while filled < bytes.len() {
        let number;
        (state, number) = next(state);
        let byte = number as u8;
        let (before, rest) = bytes.split_at_mut(filled);
        if before.contains(&byte) {
            continue;
        }
        if let Some(slot) = rest.first_mut() {
            *slot = byte;
        }
        filled += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_never_repeat_a_byte() {
        for seed in 0..1000 {
            let mut bytes = distinct_bytes(seed).to_vec();
            bytes.sort_unstable();
            bytes.dedup();
            assert_eq!(bytes.len(), 6, "seed {seed}");
        }
    }

    #[test]
    fn numbers_have_31_bits() {
        let mut state = 1;
        let mut seen = 0;
        for _ in 0..1000 {
            let number;
            (state, number) = next(state);
            seen |= number;
        }
        assert_eq!(seen, 0x7fff_ffff);
    }
}
