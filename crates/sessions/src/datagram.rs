//! The datagrams of UDP sessions, byte for byte, but for their marks (`struct mark`), which the kernel's programs write.

/// Bytes of a mark: with an address of IPv4, or of IPv6.
const MARK: usize = 16;
const MARK_IPV6: usize = 28;

/// The shortest datagram.
pub fn least(v6: bool) -> usize {
    if v6 { MARK_IPV6 } else { MARK }
}

/// A datagram of `size` bytes, or of the fewest that there can be: zeros, so that a part of it has the sum of the whole.
pub fn datagram(size: usize, v6: bool) -> Vec<u8> {
    vec![0; size.max(least(v6))]
}
