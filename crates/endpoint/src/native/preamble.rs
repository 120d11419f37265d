//! What every connection begins with: that it is netdyno's, and what it is for.

/// Bytes of a key.
pub const KEY: usize = 16;
/// Names a test on its data connections and datagrams; drawn by the server.
pub type Key = [u8; KEY];

const MAGIC: &[u8; 8] = b"NETDYNO1";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preamble {
    /// Messages.
    Control,
    /// The data of a test's flow.
    Data {
        /// Of which test.
        key: Key,
        /// Which of its flows, from 0.
        flow: u32,
    },
}

/// What is no preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection does not begin as netdyno's do")]
pub struct BadPreamble;

impl Preamble {
    /// Bytes of the longest.
    pub const MOST: usize = 8 + 1 + KEY + 4;

    /// As bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        match self {
            Preamble::Control => bytes.push(b'C'),
            Preamble::Data { key, flow } => {
                bytes.push(b'D');
                bytes.extend_from_slice(key);
                bytes.extend_from_slice(&flow.to_be_bytes());
            }
        }
        bytes
    }

    /// How many bytes more have to come, by those that did; 0: it is whole, and [`Preamble::read`] reads it. So that not a byte too
    /// many is taken from a connection whose data is counted.
    ///
    /// # Errors
    /// It is none.
    pub fn wants(so_far: &[u8]) -> Result<usize, BadPreamble> {
        if so_far.iter().zip(MAGIC).any(|(is, is_to)| is != is_to) {
            return Err(BadPreamble);
        }
        let whole = match so_far.get(MAGIC.len()) {
            None => MAGIC.len() + 1,
            Some(b'C') => MAGIC.len() + 1,
            Some(b'D') => Preamble::MOST,
            Some(_) => return Err(BadPreamble),
        };
        Ok(whole.saturating_sub(so_far.len()))
    }

    /// Reads a whole one.
    ///
    /// # Errors
    /// It is none.
    pub fn read(bytes: &[u8]) -> Result<Preamble, BadPreamble> {
        match (Preamble::wants(bytes)?, bytes.get(MAGIC.len()), bytes.get(MAGIC.len() + 1..)) {
            (0, Some(b'C'), Some([])) => Ok(Preamble::Control),
            (0, Some(b'D'), Some(rest)) => {
                let (key, flow) = rest.split_first_chunk::<KEY>().ok_or(BadPreamble)?;
                let flow = flow.try_into().map_err(|_| BadPreamble)?;
                Ok(Preamble::Data { key: *key, flow: u32::from_be_bytes(flow) })
            }
            _ => Err(BadPreamble),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_read_byte_by_byte_and_never_beyond_its_end() {
        for preamble in [Preamble::Control, Preamble::Data { key: [7; KEY], flow: 3 }] {
            let bytes = preamble.bytes();
            let mut at = 0;
            loop {
                match Preamble::wants(&bytes[..at]) {
                    Ok(0) => break,
                    Ok(more) => assert!(more <= bytes.len() - at),
                    Err(bad) => panic!("{bad}"),
                }
                at += 1;
            }
            assert_eq!((at, Preamble::read(&bytes)), (bytes.len(), Ok(preamble)));
            assert_eq!(Preamble::read(&bytes[..at - 1]), Err(BadPreamble));
        }
        assert_eq!(Preamble::wants(b"GET"), Err(BadPreamble));
        assert_eq!(Preamble::wants(b"NETDYNO1X"), Err(BadPreamble));
    }
}
