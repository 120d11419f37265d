//! The local time by a format of strftime(3), for `--timestamps`.
#![allow(unsafe_code, reason = "the C library alone knows the local time zone, and takes pointers")]

use std::ffi::CString;
use std::mem::zeroed;

/// Of a line's prefix.
const MOST: usize = 256;

/// Now, by this format. `None`: it holds a zero byte, or yields more than 256 bytes.
pub fn local(format: &str) -> Option<String> {
    let format = CString::new(format).ok()?;
    let now = libc::time_t::try_from(super::client::unix_ms() / 1000).ok()?;
    // SAFETY: all zeroes are a valid tm.
    let mut parts: libc::tm = unsafe { zeroed() };
    // SAFETY: both pointers are to values that live until the call returns.
    if unsafe { libc::localtime_r(&raw const now, &raw mut parts) }.is_null() {
        return None;
    }
    let mut bytes = [0_u8; MOST];
    // SAFETY: `bytes` has room for MOST bytes, `format` ends with a zero, `parts` was filled in.
    let len = unsafe { libc::strftime(bytes.as_mut_ptr().cast(), MOST, format.as_ptr(), &raw const parts) };
    String::from_utf8(bytes.get(..len)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn formats_are_strftimes() {
        let year = super::local("%Y %%").expect("a time");
        assert!(year.len() == 6 && year.ends_with(" %") && year.starts_with("20"), "{year}");
        assert_eq!(super::local("a\0b"), None);
        assert_eq!(super::local(&"%c".repeat(100)).as_deref(), Some(""));
    }
}
