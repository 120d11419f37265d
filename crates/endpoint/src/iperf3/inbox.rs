//! Bytes that came, until a message of theirs is whole; never more of them than a message may have.

use super::error::Error;

/// Received, and not yet taken.
#[derive(Debug, Default)]
pub struct Inbox(Vec<u8>);

impl Inbox {
    /// More came. The driver reads at most some KiB at once, and nothing is read while a message is answered.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// So many bytes, if they are there.
    pub fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        if self.0.len() < len {
            return None;
        }
        let rest = self.0.split_off(len);
        Some(std::mem::replace(&mut self.0, rest))
    }

    /// A number, and as many bytes of JSON. One that is too long is refused by its number alone.
    pub fn json(
        &mut self,
        most: usize,
        wrong: impl Fn(String) -> Error,
    ) -> Result<Option<serde_json::Value>, Error> {
        let Some(head) = self.0.first_chunk::<4>() else { return Ok(None) };
        let len = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if len == 0 || len > most {
            return Err(wrong(format!("{len} bytes of them are announced, and 1 to {most} are allowed")));
        }
        if self.0.len() < 4 + len {
            return Ok(None);
        }
        let message = self.take(4 + len).unwrap_or_default();
        serde_json::from_slice(&message[4..]).map(Some).map_err(|error| wrong(error.to_string()))
    }
}

/// A message of JSON as it is sent.
pub fn framed(value: &serde_json::Value) -> Vec<u8> {
    let text = value.to_string();
    let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
    [&len.to_be_bytes(), text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Option<serde_json::Value>, Error> {
        let mut inbox = Inbox::default();
        inbox.push(bytes);
        inbox.json(100, Error::Params)
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error_or_too_few(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_anything_is_kept() {
        for len in [0u32, 101, 1 << 31, u32::MAX] {
            assert!(matches!(read(&len.to_be_bytes()), Err(Error::Params(_))), "{len}");
        }
        assert_eq!(read(&[0, 0, 0]), Ok(None));
        assert_eq!(read(&framed(&serde_json::json!({"a": 1}))), Ok(Some(serde_json::json!({"a": 1}))));
        let cut = framed(&serde_json::json!({"a": 1}));
        assert_eq!(read(&cut[..cut.len() - 1]), Ok(None));
    }
}
