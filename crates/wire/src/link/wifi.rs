//! 802.11 frames, alone or behind what a receiver says about the radio: where the network layer starts, who sent it to
//! whom. Encrypted frames, fragments but the first and aggregates hold nothing that can be read.

use super::shim::after_llc;
use super::{Announced, LinkHeader, LinkType};
use crate::Mac;
use crate::bytes::{be16, be32};

/// Whether frames of this type are 802.11.
pub(super) fn is(link: LinkType) -> bool {
    let kinds = [
        LinkType::IEEE802_11,
        LinkType::PRISM,
        LinkType::IEEE802_11_RADIOTAP,
        LinkType::IEEE802_11_AVS,
        LinkType::PPI,
    ];
    kinds.contains(&link)
}

pub(super) fn parse(link: LinkType, frame: &[u8]) -> Option<LinkHeader> {
    let radio = match link {
        LinkType::IEEE802_11 => Radio { length: 0, fcs: false, padded: false },
        LinkType::IEEE802_11_RADIOTAP => radiotap(frame)?,
        LinkType::PPI => ppi(frame)?,
        // Their second word is their length: big-endian in AVS, the driver's order in Prism, of which there is one.
        LinkType::IEEE802_11_AVS => plain(be32(frame, 4)?)?,
        LinkType::PRISM => plain(be32(frame, 4).map(|length| length.min(length.swap_bytes()))?)?,
        _ => return None,
    };
    let mut found = behind(frame.get(radio.length..)?, radio.padded)?;
    found.len += radio.length;
    found.trailer = if radio.fcs { 4 } else { 0 };
    (found.len + found.trailer <= frame.len()).then_some(found)
}

/// What stands before the 802.11 header.
struct Radio {
    length: usize,
    /// The frame check sequence was captured.
    fcs: bool,
    /// The payload starts at a multiple of four bytes.
    padded: bool,
}

fn plain(length: u32) -> Option<Radio> {
    Some(Radio { length: usize::try_from(length).ok()?, fcs: false, padded: false })
}

/// www.radiotap.org: words of bits that say which fields there are, then the fields, each at a multiple of its size.
fn radiotap(frame: &[u8]) -> Option<Radio> {
    const MORE: u32 = 1 << 31;
    let length = usize::from(be16(frame, 2)?.swap_bytes());
    let head = frame.get(..length)?;
    let present = be32(head, 4)?.swap_bytes();
    let (mut at, mut word) = (8, present);
    while word & MORE != 0 {
        word = be32(head, at)?.swap_bytes();
        at += 4;
    }
    // TSFT is the first field, flags the second.
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & 2 != 0 { *head.get(at)? } else { 0 };
    Some(Radio { length, fcs: flags & 0x10 != 0, padded: flags & 0x20 != 0 })
}

/// Per-Packet Information (CACE, 2007): a length and the inner link type, little-endian, then fields.
fn ppi(frame: &[u8]) -> Option<Radio> {
    let length = usize::from(be16(frame, 2)?.swap_bytes());
    let head = frame.get(..length)?;
    if be32(head, 4)?.swap_bytes() != u32::from(LinkType::IEEE802_11.0) {
        return None;
    }
    let (mut at, mut fcs) = (8, false);
    while let (Some(kind), Some(size)) = (be16(head, at), be16(head, at + 2)) {
        // 802.11-Common: the time, then flags.
        if kind.swap_bytes() == 2 {
            fcs = be16(head, at + 12).is_some_and(|flags| flags.swap_bytes() & 1 != 0);
        }
        at += 4 + usize::from(size.swap_bytes());
    }
    Some(Radio { length, fcs, padded: false })
}

/// IEEE 802.11-2020, 9.2.4 and 9.3.2.1.
fn behind(frame: &[u8], padded: bool) -> Option<LinkHeader> {
    let (&control, &flags) = (frame.first()?, frame.get(1)?);
    let (to_ds, from_ds, protected, order) =
        (flags & 1 != 0, flags & 2 != 0, flags & 0x40 != 0, flags & 0x80 != 0);
    let (data, empty, qos) = (control & 0x0c == 0x08, control & 0x40 != 0, control & 0x80 != 0);
    if control & 3 != 0 || !data || empty || protected || be16(frame, 22)? & 0x0f00 != 0 {
        return None;
    }
    let mut header = 24;
    let address = |at: usize| frame.get(at..)?.first_chunk().map(|bytes| Mac(*bytes));
    let (receiver, sender) = match (to_ds, from_ds) {
        (false, false) => (address(4)?, address(10)?),
        (true, false) => (address(16)?, address(10)?),
        (false, true) => (address(4)?, address(16)?),
        (true, true) => {
            header += 6;
            (address(16)?, address(24)?)
        }
    };
    if qos {
        // An aggregate (A-MSDU) holds several packets.
        if frame.get(header)? & 0x80 != 0 {
            return None;
        }
        header += if order { 6 } else { 2 };
    }
    if padded {
        header = header.next_multiple_of(4);
    }
    let place = after_llc(frame, header)?;
    Some(LinkHeader {
        sender: Some(sender),
        receiver: Some(receiver),
        ..LinkHeader::plain(place.at, Announced::EtherType(place.kind))
    })
}
