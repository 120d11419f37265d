//! Bytes as hexadecimal digits, and out of them.

use std::fmt::Write as _;

/// Two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Bytes of two digits each, in upper or lower case; `None` of anything else beside them, and of a digit that is alone.
pub fn decode(digits: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_ref().as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"), "{text}");
        assert_eq!(decode(&text).as_deref(), Some(&all[..]));
        assert_eq!(decode(text.to_uppercase()), Some(all));
    }

    #[test]
    fn what_is_no_pair_of_digits_is_nothing() {
        assert_eq!(decode("00ff7A"), Some(vec![0, 255, 0x7a]));
        assert_eq!(decode(""), Some(vec![]));
        for text in ["0", "0g", "+1", " 1", "000", "\u{20ac}0"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
