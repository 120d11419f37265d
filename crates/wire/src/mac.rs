//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an Ethernet address: write six hexadecimal bytes, such as 02:00:00:00:00:01")]
pub struct BadMac;

impl FromStr for Mac {
    type Err = BadMac;

    /// Reads six bytes of one or two hexadecimal digits, separated by `:` or `-`.
    fn from_str(text: &str) -> Result<Self, BadMac> {
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().ok_or(BadMac)?;
            if part.is_empty() || part.len() > 2 || !part.bytes().all(|c| c.is_ascii_hexdigit()) {
                return Err(BadMac);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| BadMac)?;
        }
        if parts.next().is_some() { Err(BadMac) } else { Ok(Mac(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints_and_refuses_the_rest() {
        let mac: Mac = "00:55-22:af:C6:7".parse().unwrap();
        assert_eq!(mac.to_string(), "00:55:22:af:c6:07");
        for bad in ["", "1:2:3:4:5", "1:2:3:4:5:6:7", "g0:0:0:0:0:0", "001:2:3:4:5:6", "+1:2:3:4:5:6"] {
            assert_eq!(bad.parse::<Mac>(), Err(BadMac), "{bad}");
        }
    }
}
