//! The Internet checksum (RFC 1071), computed so that parts can be added up in any order.
//!
//! A *partial sum* is an ordinary `u64` holding the sum of big-endian 16-bit words; one's complement
//! arithmetic is arithmetic modulo 0xffff, so partial sums are added with `+` and folded once at the end.
//! That is what lets the executor keep "the sum of all that never changes" and add only what varies.

/// Sum of `bytes` as big-endian 16-bit words, or what is congruent to it modulo 0xffff; zero only if all bytes are.
/// An odd last byte is padded with zero.
pub fn sum(bytes: &[u8]) -> u64 {
    // Adding 32-bit halves is congruent to adding their words, because 2^16 = 1 (mod 0xffff), and the order of bytes
    // may be turned round at the end (RFC 1071, section 2 (B)): so long runs are added as they lie, in lanes that
    // compilers make vectors of.
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut lanes = [0u64; 4];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            let word = u64::from_le_bytes(*word);
            *lane += (word >> 32) + (word & 0xffff_ffff);
        }
    }
    let [a, b, c, d] = lanes;
    let mut total = u64::from(fold(a + b + c + d).swap_bytes());
    let mut chunks = rest.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_be_bytes([
            chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7],
        ]);
        total += (word >> 32) + (word & 0xffff_ffff);
    }
    let mut pairs = chunks.remainder().chunks_exact(2);
    for pair in &mut pairs {
        total += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    if let [last] = pairs.remainder() {
        total += u64::from(*last) << 8;
    }
    total
}

/// Folds a partial sum to 16 bits (not complemented).
pub fn fold(partial: u64) -> u16 {
    let mut x = (partial & 0xffff_ffff) + (partial >> 32);
    x = (x & 0xffff) + (x >> 16);
    x = (x & 0xffff) + (x >> 16);
    x = (x & 0xffff) + (x >> 16);
    x as u16
}

/// The value that goes into a checksum field whose coverage (field itself taken as zero) adds up to `partial`.
pub fn finish(partial: u64) -> u16 {
    !fold(partial)
}

/// As [`finish`], for UDP: a computed zero is sent as 0xffff, because zero means "no checksum" (RFC 768).
pub fn finish_udp(partial: u64) -> u16 {
    match finish(partial) {
        0 => 0xffff,
        value => value,
    }
}

/// Partial sum of the IPv4 pseudo header (RFC 9293 section 3.1, RFC 768); `length` is the upper layer's, in bytes.
pub fn pseudo_v4(source: [u8; 4], destination: [u8; 4], protocol: u8, length: usize) -> u64 {
    sum(&source) + sum(&destination) + u64::from(protocol) + length as u64
}

/// Partial sum of the IPv6 pseudo header (RFC 8200 section 8.1).
pub fn pseudo_v6(source: [u8; 16], destination: [u8; 16], next_header: u8, length: usize) -> u64 {
    let length = length as u64;
    sum(&source) + sum(&destination) + u64::from(next_header) + (length >> 16) + (length & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 section 4.1, written as plainly as can be: the independent implementation.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn rfc_1071_section_3_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_form(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(finish(sum(&bytes)), plain(&bytes));
        }

        #[test]
        fn parts_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..100) {
            let cut = (cut * 2).min(bytes.len() / 2 * 2);
            prop_assert_eq!(finish(sum(&bytes[..cut]) + sum(&bytes[cut..])), plain(&bytes));
        }
    }
}
