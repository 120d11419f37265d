//! Juniper's header before Ethernet frames, as its routers capture them.
//!
//! ```text
//!  0       3      4                6
//!  "MGC"   flags  extensions' len  extensions: type u8, length u8, value, little-endian
//! ```

use super::bytes::read16;

const MAGIC: &[u8] = b"MGC";
/// In the flags: extensions follow; there is no link header.
const EXTENDED: u8 = 0x80;
const NO_LINK_HEADER: u8 = 0x02;
/// Extensions: the medium, as a link type, and the encapsulation on it.
const MEDIUM: u8 = 3;
const ENCAPSULATION: u8 = 7;
const ETHERNET_MEDIUM: u8 = 1;
const ETHERNET_ENCAPSULATION: u8 = 14;

/// A header before an Ethernet frame.
pub(super) const HEADER: [u8; 12] =
    [b'M', b'G', b'C', EXTENDED, 0, 6, MEDIUM, 1, ETHERNET_MEDIUM, ENCAPSULATION, 1, ETHERNET_ENCAPSULATION];

/// Where the Ethernet frame behind the header starts, if one does.
pub(super) fn length(frame: &[u8]) -> Option<usize> {
    let flags = *frame.get(3)?;
    if !frame.starts_with(MAGIC) || flags & NO_LINK_HEADER != 0 {
        return None;
    }
    if flags & EXTENDED == 0 {
        return Some(4);
    }
    let length = 6 + usize::from(read16(frame, 4)?);
    let mut extensions = frame.get(6..length)?;
    while let [kind, size, rest @ ..] = extensions {
        let value = rest.get(..usize::from(*size))?;
        let wanted = match *kind {
            MEDIUM => Some(ETHERNET_MEDIUM),
            ENCAPSULATION => Some(ETHERNET_ENCAPSULATION),
            _ => None,
        };
        if let (Some(wanted), Some(&first)) = (wanted, value.first())
            && wanted != first
        {
            return None;
        }
        extensions = rest.get(usize::from(*size)..)?;
    }
    Some(length)
}
