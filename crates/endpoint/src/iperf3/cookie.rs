//! What tells one client from another: 36 characters and a zero byte, sent first on each of its TCP connections.

/// Bytes of a cookie on the wire.
pub const LEN: usize = 37;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A client's cookie.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; LEN]);

impl Cookie {
    /// Of random bytes.
    pub fn new(random: [u8; LEN - 1]) -> Cookie {
        let mut bytes = [0; LEN];
        for (byte, random) in bytes.iter_mut().zip(random) {
            *byte = ALPHABET[usize::from(random % 32)];
        }
        Cookie(bytes)
    }

    /// As received: visible ASCII, and a zero at its end. Other clients of the protocol use other letters.
    pub fn read(bytes: [u8; LEN]) -> Option<Cookie> {
        let (end, text) = bytes.split_last()?;
        (*end == 0 && text.iter().all(u8::is_ascii_graphic)).then_some(Cookie(bytes))
    }

    /// As it goes over the wire.
    pub fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }

    /// Without the zero.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0[..LEN - 1]).unwrap_or_default()
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cookie({})", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_made_can_be_read(low: [u8; 32], high: [u8; 4]) {
            let mut random = [0; 36];
            random[..32].copy_from_slice(&low);
            random[32..].copy_from_slice(&high);
            let cookie = Cookie::new(random);
            prop_assert_eq!(Cookie::read(*cookie.bytes()), Some(cookie));
            prop_assert!(cookie.text().bytes().all(|c| ALPHABET.contains(&c)));
        }
    }

    #[test]
    fn garbage_is_no_cookie() {
        assert_eq!(Cookie::read([0; LEN]), None);
        assert_eq!(Cookie::read([b'a'; LEN]), None);
        let mut line = *b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
        assert_eq!(Cookie::read(line), None);
        line[36] = 0;
        assert_eq!(Cookie::read(line), None);
    }
}
