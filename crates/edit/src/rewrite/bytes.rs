//! Fields of frames, by offset. What is not there reads as `None` and is not written.

pub(super) use wire::bytes::{be16, be32, be128};

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
