//! Numbers in bytes from outside, most significant byte first, by offset. What is not there reads as `None`.

/// `N` bytes from `at` on.
#[inline(always)]
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// 16 bits at `at`.
#[inline(always)]
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(|two| u16::from_be_bytes(*two))
}

/// 32 bits at `at`.
#[inline(always)]
pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|four| u32::from_be_bytes(*four))
}

/// 128 bits at `at`.
#[inline(always)]
pub fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    array(bytes, at).map(|all| u128::from_be_bytes(*all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_where_all_of_its_bytes_are() {
        let bytes: Vec<u8> = (1..=18).collect();
        assert_eq!((be16(&bytes, 0), be16(&bytes, 16), be16(&bytes, 17)), (Some(0x0102), Some(0x1112), None));
        assert_eq!((be32(&bytes, 14), be32(&bytes, 15)), (Some(0x0f10_1112), None));
        assert_eq!(be128(&bytes, 2), Some(0x0304_0506_0708_090a_0b0c_0d0e_0f10_1112));
        assert_eq!((be128(&bytes, 3), be16(&bytes, usize::MAX), be16(&[], 0)), (None, None, None));
    }
}
