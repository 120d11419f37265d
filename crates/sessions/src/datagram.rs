//! The datagrams of UDP sessions, byte for byte, but for their marks (`struct mark`), which the kernel's programs write.

/// Bytes of a mark: with an address of IPv4, or of IPv6.
const MARK: usize = 16;
const MARK_IPV6: usize = 28;

/// The shortest datagram.
pub fn least(v6: bool) -> usize {
    if v6 { MARK_IPV6 } else { MARK }
}

/// A datagram of `size` bytes, or of the fewest that there can be. Where its mark is to stand are zeros.
pub fn datagram(size: usize, v6: bool) -> Vec<u8> {
    let mut whole = vec![0; least(v6)];
    let filled = size.saturating_sub(whole.len());
    whole.extend(b"netdyno\n".iter().cycle().take(filled));
    whole
}
