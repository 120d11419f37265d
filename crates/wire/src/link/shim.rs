//! What may stand between the link header and the network layer, one header at a time: VLAN tags, MPLS labels, PPPoE, a
//! provider's backbone tag, LLC. [`crate::layers`] follows all of them, `edit::rewrite` those that it can edit behind.

use super::after_ppp;
use crate::bytes::{array, be16};
use crate::numbers::ethertype;

const MAX_MPLS_LABELS: u8 = 16;
/// The label that announces a generic associated channel (RFC 5586): what follows is no user's packet.
const MPLS_CHANNEL: u32 = 13;

/// A place in a frame where a header starts, and the EtherType that announced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where the header starts, in bytes from the frame's first.
    pub at: usize,
    /// What it is.
    pub kind: u16,
}

/// A header between the link header and the network layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shim {
    /// A VLAN tag of any kind, with its control word.
    Tag(u16),
    /// An MPLS label stack of so many labels.
    Labels(u8),
    /// A PPPoE session header.
    Session,
    /// A backbone service instance tag, and the customer's Ethernet header.
    Backbone,
    /// LLC behind an 802.3 length.
    Llc,
}

/// A header that was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Which it was.
    pub shim: Shim,
    /// What follows it; `None` where the header is cut off, or does not lead on to anything that has an EtherType.
    pub next: Option<Place>,
    /// Where the Ethernet header that it ends with starts, if it does.
    pub ethernet: Option<usize>,
}

impl Place {
    /// Passes the header that starts here. `None` where none of these does: at the network layer.
    #[inline]
    pub fn step(self, frame: &[u8]) -> Option<Step> {
        match self.kind {
            ethertype::IPV4 | ethertype::IPV6 | ethertype::ARP => None,
            _ => self.pass(frame),
        }
    }

    fn pass(self, frame: &[u8]) -> Option<Step> {
        let at = self.at;
        let plain = |shim, next| Some(Step { shim, next, ethernet: None });
        let ethernet = |shim, start: usize, next| Some(Step { shim, next, ethernet: Some(start) });
        match self.kind {
            ethertype::VLAN | ethertype::QINQ | ethertype::QINQ_OLD => {
                let next = be16(frame, at + 2).map(|kind| Place { at: at + 4, kind });
                plain(Shim::Tag(be16(frame, at).unwrap_or(0)), next)
            }
            ethertype::MPLS | ethertype::MPLS_UPSTREAM => Some(labels(frame, at)),
            ethertype::PPPOE_SESSION => {
                let next = after_ppp(frame, at + 6)
                    .and_then(|(at, next)| Some(Place { at, kind: next.ether_type()? }));
                plain(Shim::Session, next)
            }
            // IEEE 802.1ah: four bytes of I-TAG, then the customer's Ethernet header.
            ethertype::PBB => ethernet(Shim::Backbone, at + 4, behind_ethernet(frame, at + 4)),
            0..ethertype::FIRST => plain(Shim::Llc, after_llc(frame, at)),
            _ => None,
        }
    }
}

/// What the Ethernet header at `start` announces.
fn behind_ethernet(frame: &[u8], start: usize) -> Option<Place> {
    be16(frame, start + 12).map(|kind| Place { at: start + 14, kind })
}

/// RFC 3032. What a label stack carries is not written in it: labels 0 and 2 say (section 2.1), otherwise the
/// first nibble is taken for the IP version, as routers do (RFC 4928); two zero bytes start a pseudowire
/// control word before Ethernet (RFC 4448 section 4.6).
fn labels(frame: &[u8], mut at: usize) -> Step {
    let mut count = 0;
    let mut last = || loop {
        let entry = u32::from_be_bytes(*array(frame, at)?);
        at += 4;
        count += 1;
        if entry >> 12 == MPLS_CHANNEL {
            return None;
        }
        if entry & 0x100 != 0 {
            return Some(entry >> 12);
        }
        if count >= MAX_MPLS_LABELS {
            return None;
        }
    };
    let label = last();
    let shim = Shim::Labels(count);
    let (Some(label), Some(first)) = (label, be16(frame, at)) else {
        return Step { shim, next: None, ethernet: None };
    };
    let ip = |kind| Step { shim, next: Some(Place { at, kind }), ethernet: None };
    let ethernet =
        |start, next: Option<Place>| Step { shim, next, ethernet: next.is_some().then_some(start) };
    match (label, first >> 12) {
        // One that contradicts what follows it leads nowhere.
        (0, version) if version != 4 => Step { shim, next: None, ethernet: None },
        (2, version) if version != 6 => Step { shim, next: None, ethernet: None },
        (_, 4) => ip(ethertype::IPV4),
        (_, 6) => ip(ethertype::IPV6),
        _ if first == 0 => ethernet(at + 4, behind_ethernet(frame, at + 4)),
        // Ethernet without a control word: believed only if it then names a protocol known here.
        _ => ethernet(
            at,
            behind_ethernet(frame, at).filter(|place| {
                matches!(
                    place.kind,
                    ethertype::IPV4 | ethertype::IPV6 | ethertype::ARP | ethertype::VLAN | ethertype::QINQ
                )
            }),
        ),
    }
}

/// LLC with SNAP of OUI 00-00-00 or 00-00-f8 carries an EtherType (RFC 1042, IEEE 802.1H); SAP 06 is IPv4.
pub(super) fn after_llc(frame: &[u8], at: usize) -> Option<Place> {
    match *array::<3>(frame, at)? {
        [0xaa, 0xaa, 0x03] => match *array::<5>(frame, at + 3)? {
            [0, 0, 0 | 0xf8, high, low] => {
                let kind = u16::from_be_bytes([high, low]);
                (kind >= ethertype::FIRST).then_some(Place { at: at + 8, kind })
            }
            _ => None,
        },
        [0x06, 0x06, 0x03] => Some(Place { at: at + 3, kind: ethertype::IPV4 }),
        _ => None,
    }
}
