//! Juniper's header before Ethernet frames, as its routers capture them.
//!
//! ```text
//!  0       3      4                6
//!  "MGC"   flags  extensions' len  extensions: type u8, length u8, value, little-endian
//! ```

use crate::bytes::be16;

const MAGIC: &[u8] = b"MGC";
/// In the flags: extensions follow; there is no link header.
const EXTENDED: u8 = 0x80;
const NO_LINK_HEADER: u8 = 0x02;
/// Extensions: the medium, as a link type, and the encapsulation on it.
const MEDIUM: u8 = 3;
const ENCAPSULATION: u8 = 7;
const ETHERNET_MEDIUM: u8 = 1;
const ETHERNET_ENCAPSULATION: u8 = 14;

/// The header before an Ethernet frame, as a router writes it.
pub const HEADER: [u8; 12] =
    [b'M', b'G', b'C', EXTENDED, 0, 6, MEDIUM, 1, ETHERNET_MEDIUM, ENCAPSULATION, 1, ETHERNET_ENCAPSULATION];

/// What stands behind the header, and where.
pub(super) enum Before {
    Ethernet(usize),
    Ip(usize),
}

pub(super) fn parse(frame: &[u8]) -> Option<Before> {
    let flags = *frame.get(3)?;
    if !frame.starts_with(MAGIC) {
        return None;
    }
    let length = if flags & EXTENDED == 0 { 4 } else { 6 + usize::from(be16(frame, 4)?) };
    if flags & NO_LINK_HEADER != 0 {
        return Some(Before::Ip(length));
    }
    let mut extensions = frame.get(6..length).unwrap_or_default();
    while let [kind, size, rest @ ..] = extensions {
        // One that does not end says nothing more; where the frame starts is known.
        let Some((value, rest)) = rest.split_at_checked(usize::from(*size)) else { break };
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
        extensions = rest;
    }
    Some(Before::Ethernet(length))
}
