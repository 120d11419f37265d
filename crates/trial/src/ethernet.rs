//! What a link carries at most, and the frame sizes that the standards test.

/// Preamble, start of frame delimiter and the gap between frames, in bytes (IEEE 802.3).
pub const BETWEEN_FRAMES: u64 = 20;

/// Frame sizes for Ethernet, the FCS counted (RFC 2544, 9.1).
pub const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_is_rfc_2544s() {
        // RFC 2544, appendix B.
        let rates = SIZES.map(|size| 10_000_000 / ((u64::from(size) + BETWEEN_FRAMES) * 8));
        assert_eq!(rates, [14880, 8445, 4528, 2349, 1197, 961, 812]);
    }
}
