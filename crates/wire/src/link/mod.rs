//! Link types: what stands at the first byte of a captured frame, and how that header is read.
//!
//! ```text
//!  frame --> LinkHeader (by link type) --> Place --step--> Place --> network layer
//!                                            tags, labels, ... (shim)
//! ```
//!
//! Layouts are those of the tcpdump group's link type pages. Nothing here panics on any bytes.

mod juniper;
mod shim;
mod wifi;

use std::fmt;

use crate::Mac;
use crate::bytes::{array, be16};
use crate::numbers::ethertype;

pub use juniper::HEADER as JUNIPER_HEADER;
pub use shim::{Place, Shim, Step};

/// Bytes of an Ethernet header without tags.
pub const ETHERNET_HEADER: usize = 14;
/// PPP's numbers of IP (RFC 1332, RFC 5072) and MPLS (RFC 3032 section 4.3).
pub const PPP_IPV4: u16 = 0x0021;
/// See [`PPP_IPV4`].
pub const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;
const PPP_MPLS_UPSTREAM: u16 = 0x0283;

/// A link-layer header type, by its number in pcap files (the tcpdump group's LINKTYPE registry).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a 4-byte address family in the capturing host's byte order.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6 without a link header.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco HDLC.
    pub const C_HDLC: LinkType = LinkType(104);
    /// IEEE 802.11 without radio information.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// OpenBSD loopback: as NULL, big-endian.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IEEE 802.11 behind the header of Prism cards.
    pub const PRISM: LinkType = LinkType(119);
    /// IEEE 802.11 behind a radiotap header.
    pub const IEEE802_11_RADIOTAP: LinkType = LinkType(127);
    /// IEEE 802.11 behind an AVS header.
    pub const IEEE802_11_AVS: LinkType = LinkType(163);
    /// Ethernet behind Juniper's header.
    pub const JUNIPER_ETHERNET: LinkType = LinkType(178);
    /// Per-Packet Information before any link type.
    pub const PPI: LinkType = LinkType(192);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: LinkType = LinkType(9);
    /// PPP in HDLC-like framing (RFC 1662).
    pub const PPP_SERIAL: LinkType = LinkType(50);
    /// IPv4 without a link header.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 without a link header.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// Whether frames are IP packets without a link header: as the registry numbers it, and as FreeBSD (12) and OpenBSD (14)
    /// wrote it.
    pub fn is_raw_ip(self) -> bool {
        matches!(self.0, 12 | 14) || [LinkType::RAW, LinkType::IPV4, LinkType::IPV6].contains(&self)
    }

    /// Whether frames are 802.11, alone or behind what a receiver says about the radio.
    pub fn is_wifi(self) -> bool {
        wifi::is(self)
    }

    /// Whether [`LinkHeader::parse`] reads frames of this type.
    pub fn is_readable(self) -> bool {
        let known = [
            LinkType::ETHERNET,
            LinkType::NULL,
            LinkType::LOOP,
            LinkType::LINUX_SLL,
            LinkType::LINUX_SLL2,
            LinkType::C_HDLC,
            LinkType::PPP,
            LinkType::PPP_SERIAL,
            LinkType::JUNIPER_ETHERNET,
        ];
        known.contains(&self) || self.is_raw_ip() || self.is_wifi()
    }

    /// The registry's name, where we know it.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "NULL",
            1 => "Ethernet",
            9 => "PPP",
            12 | 14 | 101 => "raw IP",
            50 => "PPP serial",
            104 => "Cisco HDLC",
            105 => "802.11",
            108 => "LOOP",
            113 => "Linux cooked",
            119 => "802.11 Prism",
            127 => "802.11 radiotap",
            163 => "802.11 AVS",
            178 => "Juniper Ethernet",
            192 => "PPI",
            228 => "raw IPv4",
            229 => "raw IPv6",
            276 => "Linux cooked v2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "link type {}", self.0),
        }
    }
}

/// What a link header says that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// An EtherType, or an 802.3 length.
    EtherType(u16),
    /// A protocol by PPP's numbers.
    Ppp(u16),
    /// An EtherType, or below 0x0600 a code of Linux's own, where 1 is Novell's raw 802.3 and 4 is LLC.
    Cooked(u16),
}

impl Announced {
    /// As an EtherType or an 802.3 length; `None` for what PPP alone has a number for.
    #[inline]
    pub fn ether_type(self) -> Option<u16> {
        Some(match self {
            Announced::EtherType(kind) => kind,
            // Both codes lead to LLC, as any length does.
            Announced::Cooked(kind) => {
                if kind < ethertype::FIRST {
                    4
                } else {
                    kind
                }
            }
            Announced::Ppp(PPP_IPV4) => ethertype::IPV4,
            Announced::Ppp(PPP_IPV6) => ethertype::IPV6,
            Announced::Ppp(PPP_MPLS) => ethertype::MPLS,
            Announced::Ppp(PPP_MPLS_UPSTREAM) => ethertype::MPLS_UPSTREAM,
            Announced::Ppp(_) => return None,
        })
    }

    /// The EtherType where there is one, else the number as it stands in the header.
    #[inline]
    pub fn number(self) -> u16 {
        match self {
            Announced::Cooked(kind) => kind,
            Announced::Ppp(number) => self.ether_type().unwrap_or(number),
            Announced::EtherType(kind) => kind,
        }
    }
}

/// A frame's link header, of any type that [`LinkType::is_readable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkHeader {
    /// Its length: where what it announces starts, in bytes from the frame's first.
    pub len: usize,
    /// What it announces.
    pub announced: Announced,
    /// Where the Ethernet header that it is, or ends with, starts.
    pub ethernet: Option<usize>,
    /// The sender's address, where the header is not Ethernet but tells it.
    pub sender: Option<Mac>,
    /// The receiver's.
    pub receiver: Option<Mac>,
    /// Bytes at the frame's end that belong to the link layer (a frame check sequence), of the types that say so.
    pub trailer: usize,
}

impl LinkHeader {
    #[inline]
    fn plain(len: usize, announced: Announced) -> LinkHeader {
        LinkHeader { len, announced, ethernet: None, sender: None, receiver: None, trailer: 0 }
    }

    /// Reads the header at the start of `frame`. `None` where it is cut off, carries nothing, or is of a type that is not
    /// known here.
    #[inline]
    pub fn parse(link: LinkType, frame: &[u8]) -> Option<LinkHeader> {
        if link == LinkType::ETHERNET {
            return LinkHeader::ethernet(frame, 0);
        }
        LinkHeader::other(link, frame)
    }

    /// Where what it announces starts, by an EtherType.
    #[inline]
    pub fn place(&self) -> Option<Place> {
        Some(Place { at: self.len, kind: self.announced.ether_type()? })
    }

    #[inline]
    fn ethernet(frame: &[u8], start: usize) -> Option<LinkHeader> {
        let kind = be16(frame, start + 12)?;
        Some(LinkHeader {
            ethernet: Some(start),
            ..LinkHeader::plain(start + ETHERNET_HEADER, Announced::EtherType(kind))
        })
    }

    fn other(link: LinkType, frame: &[u8]) -> Option<LinkHeader> {
        let plain = |(len, announced)| LinkHeader::plain(len, announced);
        let hdlc = || be16(frame, 2).map(|kind| (4, Announced::EtherType(kind)));
        match link {
            // In the byte order of the capturing host, so either reading may be the right one; address families fit one
            // byte. OpenBSD's LOOP is big-endian, which this covers.
            LinkType::NULL | LinkType::LOOP => {
                let family = match *array(frame, 0)? {
                    [0, 0, 0, family] | [family, 0, 0, 0] => family,
                    _ => return None,
                };
                let kind = match family {
                    2 => ethertype::IPV4,
                    // AF_INET6 is 10 on Linux, 23 on Windows, 24, 28 and 30 on the BSDs and Darwin.
                    10 | 23 | 24 | 28 | 30 => ethertype::IPV6,
                    _ => return None,
                };
                Some(plain((4, Announced::EtherType(kind))))
            }
            LinkType::PPP => after_ppp(frame, 0).map(plain),
            // PPP in HDLC-like framing; the type is given to Cisco HDLC, too, whose numbers are EtherTypes.
            LinkType::PPP_SERIAL if frame.starts_with(&[0xff, 0x03]) => after_ppp(frame, 0).map(plain),
            LinkType::PPP_SERIAL => match hdlc()? {
                (at, Announced::EtherType(number)) if number < ethertype::FIRST => {
                    Some(plain((at, Announced::Ppp(number))))
                }
                found => Some(plain(found)),
            },
            LinkType::C_HDLC => hdlc().map(plain),
            LinkType::LINUX_SLL => cooked(frame, 16, 14, 2, 6),
            LinkType::LINUX_SLL2 => cooked(frame, 20, 0, 8, 12),
            LinkType::JUNIPER_ETHERNET => match juniper::parse(frame)? {
                juniper::Before::Ethernet(start) => LinkHeader::ethernet(frame, start),
                juniper::Before::Ip(at) => by_version(frame, at).map(plain),
            },
            _ if wifi::is(link) => wifi::parse(link, frame),
            _ if link.is_raw_ip() => by_version(frame, 0).map(plain),
            _ => None,
        }
    }
}

/// Linux' cooked headers, by their length and the offsets of protocol, ARPHRD type and address.
fn cooked(frame: &[u8], len: usize, protocol: usize, kind: usize, address: usize) -> Option<LinkHeader> {
    let announced = Announced::Cooked(be16(frame.get(..len)?, protocol)?);
    // ARPHRD_ETHER and ARPHRD_LOOPBACK: the address is an Ethernet address.
    let ethernet = matches!(be16(frame, kind), Some(1 | 772));
    let sender = array(frame, address).filter(|_| ethernet).map(|bytes| Mac(*bytes));
    Some(LinkHeader { sender, ..LinkHeader::plain(len, announced) })
}

/// IP without a link header tells its version itself.
fn by_version(frame: &[u8], at: usize) -> Option<(usize, Announced)> {
    match frame.get(at)? >> 4 {
        4 => Some((at, Announced::EtherType(ethertype::IPV4))),
        6 => Some((at, Announced::EtherType(ethertype::IPV6))),
        _ => None,
    }
}

/// The PPP protocol field (RFC 1661 section 2) behind an optional ff 03, perhaps compressed to one byte (6.5).
fn after_ppp(frame: &[u8], mut at: usize) -> Option<(usize, Announced)> {
    if array(frame, at) == Some(&[0xff, 0x03]) {
        at += 2;
    }
    let first = *frame.get(at)?;
    let (protocol, at) = if first & 1 == 1 { (u16::from(first), at + 1) } else { (be16(frame, at)?, at + 2) };
    Some((at, Announced::Ppp(protocol)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

    /// A data frame whose three addresses end in 1, 2 and 3.
    fn wifi(flags: u8) -> Vec<u8> {
        let mut frame = vec![0x08, flags, 0, 0];
        (1..=3).for_each(|last| frame.extend([2, 0, 0, 0, 0, last]));
        [&frame[..], &[0, 0], &SNAP].concat()
    }

    #[test]
    fn addresses_of_other_link_layers_are_told() {
        let ends = |link, frame: &[u8]| {
            let header = LinkHeader::parse(link, frame).expect("a whole header");
            (header.sender.map(|mac| mac.0[5]), header.receiver.map(|mac| mac.0[5]))
        };
        // To an access point, from one, and between stations (IEEE 802.11-2020, table 9-30).
        assert_eq!(ends(LinkType::IEEE802_11, &wifi(1)), (Some(2), Some(3)));
        assert_eq!(ends(LinkType::IEEE802_11, &wifi(2)), (Some(3), Some(1)));
        assert_eq!(ends(LinkType::IEEE802_11, &wifi(0)), (Some(2), Some(1)));
        let cooked = |kind| [0, 0, 0, kind, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0];
        assert_eq!(ends(LinkType::LINUX_SLL, &cooked(1)), (Some(9), None));
        assert_eq!(ends(LinkType::LINUX_SLL, &cooked(24)), (None, None), "no Ethernet address");
    }

    #[test]
    fn a_captured_frame_check_sequence_is_told() {
        let of = |flags, rest: &[u8]| {
            let frame = [&[0, 0, 9, 0, 2, 0, 0, 0, flags][..], &wifi(1), rest].concat();
            LinkHeader::parse(LinkType::IEEE802_11_RADIOTAP, &frame).map(|header| header.trailer)
        };
        assert_eq!([of(0x10, &[0; 4]), of(0, &[0; 4]), of(0x10, &[0; 3])], [Some(4), Some(0), None]);
    }

    #[test]
    fn what_ppp_alone_numbers_has_no_ethertype() {
        let header = LinkHeader::parse(LinkType::PPP, &[0xff, 3, 0xc0, 0x21, 1]).expect("LCP");
        assert_eq!((header.place(), header.announced.number(), header.len), (None, 0xc021, 4));
    }

    #[test]
    fn a_step_leads_into_the_ethernet_of_a_pseudowire() {
        let mut frame = vec![2; 12];
        frame.extend([0x88, 0x47, 0, 1, 1, 64, 0, 0, 0, 0]);
        frame.extend([&[4; 12][..], &[0x08, 0x06]].concat());
        let place = LinkHeader::parse(LinkType::ETHERNET, &frame).and_then(|header| header.place());
        let step = place.and_then(|place| place.step(&frame)).expect("labels");
        let inner = Place { at: 36, kind: ethertype::ARP };
        assert_eq!(step, Step { shim: Shim::Labels(1), next: Some(inner), ethernet: Some(22) });
        assert_eq!(inner.step(&frame), None);
    }
}
