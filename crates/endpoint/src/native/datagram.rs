//! How a flow of datagrams is joined: the server sends nothing but one short answer to an address until that address has proved that
//! what is sent there arrives.
//!
//! ```text
//!   join  key flow           ->        40 bytes, as all of them: the answer is no longer than the question
//!                            <-  cookie key cookie
//!   proof key cookie         ->        again and again, until the server says `joined` on the control connection
//! ```
//!
//! Who does not know the key gets no answer, and the key was said over TCP to the same address.

use super::preamble::{KEY, Key};

/// Bytes of a cookie, which the server draws for each join.
pub const COOKIE: usize = 16;
/// What it proves with.
pub type Cookie = [u8; COOKIE];
/// Bytes of each of these datagrams.
pub const LENGTH: usize = 8 + KEY + COOKIE;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// The client's first.
    Join(Key, u32),
    /// The server's answer.
    Cookie(Key, Cookie),
    /// The client's second.
    Proof(Key, Cookie),
}

impl Joining {
    /// As bytes.
    pub fn bytes(&self) -> [u8; LENGTH] {
        let (kind, key, rest) = match self {
            Joining::Join(key, flow) => {
                let mut rest = [0; COOKIE];
                if let Some(place) = rest.first_chunk_mut::<4>() {
                    *place = flow.to_be_bytes();
                }
                (b'J', key, rest)
            }
            Joining::Cookie(key, cookie) => (b'C', key, *cookie),
            Joining::Proof(key, cookie) => (b'P', key, *cookie),
        };
        let mut bytes = [0; LENGTH];
        let parts = b"NDYNUDP".iter().chain([&kind]).chain(key).chain(&rest);
        for (place, byte) in bytes.iter_mut().zip(parts) {
            *place = *byte;
        }
        bytes
    }

    /// Reads one. None: it is something else.
    pub fn read(bytes: &[u8]) -> Option<Joining> {
        if bytes.len() != LENGTH {
            return None;
        }
        let (kind, rest) = bytes.strip_prefix(b"NDYNUDP")?.split_first()?;
        let (key, rest) = rest.split_first_chunk::<KEY>()?;
        let rest = rest.first_chunk::<COOKIE>()?;
        match kind {
            b'J' => rest.first_chunk::<4>().map(|flow| Joining::Join(*key, u32::from_be_bytes(*flow))),
            b'C' => Some(Joining::Cookie(*key, *rest)),
            b'P' => Some(Joining::Proof(*key, *rest)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_back_and_nothing_else_is() {
        let (key, cookie) = ([1; KEY], [2; COOKIE]);
        let all = [Joining::Join(key, 77), Joining::Cookie(key, cookie), Joining::Proof(key, cookie)];
        for joining in all {
            assert_eq!(Joining::read(&joining.bytes()), Some(joining));
            assert_eq!(Joining::read(&joining.bytes()[1..]), None);
        }
        assert_eq!(Joining::read(&[0; LENGTH]), None);
    }
}
