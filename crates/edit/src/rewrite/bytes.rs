//! Fields of frames, by offset. What is not there reads as `None` and is not written.

#[inline(always)]
pub(super) fn read16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_be_bytes(*chunk))
}

#[inline(always)]
pub(super) fn read32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_be_bytes(*chunk))
}

#[inline(always)]
pub(super) fn read128(bytes: &[u8], at: usize) -> Option<u128> {
    bytes.get(at..)?.first_chunk().map(|chunk| u128::from_be_bytes(*chunk))
}

#[inline(always)]
pub(super) fn write(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(field) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..value.len())) {
        field.copy_from_slice(value);
    }
}

#[inline(always)]
pub(super) fn write16(bytes: &mut [u8], at: usize, value: u16) {
    write(bytes, at, &value.to_be_bytes());
}
