//! Finding the network and transport headers of a frame, whatever link layer it was captured on.
//!
//! This is the walk that runs for every frame of a capture (`capture::info`, replay's address changes, flow
//! keys), so it allocates nothing, cannot panic, and is bounded on hostile input. It stops at the *outermost* IP
//! header: what a tunnel carries is not its business, and it judges no checksums. It decodes as little as it can;
//! `proto` knows the fields. Ethernet with plain IPv4 costs about 2 ns inlined, the general walk about 10.

use crate::LinkType;

/// EtherTypes (IEEE 802 numbers, IANA "ieee-802-numbers") that the walk knows.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// IEEE 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IEEE 802.1ad service tag.
    pub const QINQ: u16 = 0x88a8;
    /// Pre-standard service tag.
    pub const QINQ_OLD: u16 = 0x9100;
    /// MPLS.
    pub const MPLS: u16 = 0x8847;
    /// MPLS with upstream-assigned label (RFC 5332).
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    /// PPPoE session stage (RFC 2516).
    pub const PPPOE_SESSION: u16 = 0x8864;
    /// IEEE 802.1ah backbone service instance tag.
    pub const PBB: u16 = 0x88e7;
    /// Values below are IEEE 802.3 lengths, not types.
    pub const FIRST: u16 = 0x0600;
}

/// What stands at [`Layers::l3_offset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum L3 {
    /// An IPv4 header: version and IHL are sound and the whole header, options included, lies in the frame.
    V4,
    /// An IPv6 header: the version is 6 and all 40 bytes lie in the frame.
    V6,
    /// ARP.
    Arp,
    /// IEEE 802.2 LLC that carries no EtherType (spanning tree, IS-IS, ...).
    Llc,
    /// Another EtherType. Also 0x0800 and 0x86dd whose header is cut off or unsound.
    Other(u16),
    /// The link header is cut off, or of a kind that is not known here.
    Unknown,
}

/// Whether a frame carries a piece of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// A whole packet. IPv6 "atomic fragments" (RFC 6946) are whole.
    Whole,
    /// The first piece: the transport header is here.
    First,
    /// A later piece: what follows the IP header is payload, *not* a transport header.
    Later,
}

/// Where a frame's headers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// The outermost network layer.
    pub l3: L3,
    /// Where it starts; never beyond the frame's end.
    pub l3_offset: usize,
    /// Where the IP packet ends by its own length, at most the frame's end: Ethernet padding and trailers lie
    /// behind it. The frame's end for anything but IP, and where IP's length is zero (segmentation offload, RFC
    /// 2675 jumbograms) or too small for its header.
    pub l3_end: usize,
    /// Where the transport header starts: behind IPv4 options and IPv6 extension headers. `None` without IP, in a
    /// later fragment, or when it lies beyond the frame. The header itself may still be cut short.
    pub l4_offset: Option<usize>,
    /// The transport's protocol number, behind any extension headers; known in later fragments too.
    pub ip_protocol: Option<u8>,
    /// Whether this is a piece of a packet.
    pub fragment: Fragment,
    /// The outermost VLAN identifier.
    pub vlan: Option<u16>,
    /// How many VLAN tags there are (all kinds).
    pub vlan_tags: u8,
    /// How many MPLS labels there are.
    pub mpls_labels: u8,
    /// Whether a PPPoE session header was passed.
    pub pppoe: bool,
}

/// Tags, label stacks and encapsulated link headers that are followed; real frames have three or four.
const MAX_LINK_STEPS: usize = 16;
const MAX_MPLS_LABELS: u8 = 16;
/// IPv6 extension headers that are followed. RFC 8200 section 4.1 foresees six.
const MAX_EXTENSION_HEADERS: usize = 16;

/// `N` bytes of `frame` from `at` on.
#[inline(always)]
fn bytes<const N: usize>(frame: &[u8], at: usize) -> Option<&[u8; N]> {
    frame.get(at..)?.first_chunk()
}

/// A big-endian 16-bit number at `at`.
#[inline(always)]
fn be16(frame: &[u8], at: usize) -> Option<u16> {
    bytes(frame, at).map(|b| u16::from_be_bytes(*b))
}

impl Layers {
    /// Walks `frame`, whose first byte is a header of type `link`.
    #[inline]
    pub fn parse(link: LinkType, frame: &[u8]) -> Layers {
        // Nearly every frame: Ethernet, IPv4 without options, not a fragment. A test holds it to the general walk.
        if link == LinkType::ETHERNET
            && let Some(head) = frame.first_chunk::<34>()
            && [head[12], head[13], head[14]] == [0x08, 0x00, 0x45]
            && [head[20] & 0xbf, head[21]] == [0, 0]
            && head[23] != AUTHENTICATION
        {
            let total = usize::from(u16::from_be_bytes([head[16], head[17]]));
            return Layers {
                l3: L3::V4,
                l3_offset: 14,
                l3_end: if total >= 20 { frame.len().min(14 + total) } else { frame.len() },
                l4_offset: Some(34),
                ip_protocol: Some(head[23]),
                ..Layers::unknown(frame)
            };
        }
        Layers::parse_any(link, frame)
    }

    #[inline(never)]
    fn parse_any(link: LinkType, frame: &[u8]) -> Layers {
        let mut layers = Layers::unknown(frame);
        if link == LinkType::ETHERNET {
            if let Some(kind) = be16(frame, 12) {
                layers.walk(frame, 14, kind);
            }
        } else if let Some((at, kind)) = after_link_header(link, frame) {
            layers.walk(frame, at, kind);
        }
        layers
    }

    #[inline(always)]
    fn unknown(frame: &[u8]) -> Layers {
        Layers {
            l3: L3::Unknown,
            l3_offset: frame.len(),
            l3_end: frame.len(),
            l4_offset: None,
            ip_protocol: None,
            fragment: Fragment::Whole,
            vlan: None,
            vlan_tags: 0,
            mpls_labels: 0,
            pppoe: false,
        }
    }

    /// True when the frame carries a piece of an IP packet, first or later.
    pub fn is_fragment(&self) -> bool {
        self.fragment != Fragment::Whole
    }

    /// True for IPv4 and IPv6.
    pub fn is_ip(&self) -> bool {
        matches!(self.l3, L3::V4 | L3::V6)
    }

    /// Follows EtherTypes from `at`, where a header of type `kind` starts, to the network layer.
    fn walk(&mut self, frame: &[u8], mut at: usize, mut kind: u16) {
        for _ in 0..MAX_LINK_STEPS {
            let next = match kind {
                ethertype::IPV4 => return self.ipv4(frame, at),
                ethertype::IPV6 => return self.ipv6(frame, at),
                ethertype::ARP => return self.found(L3::Arp, frame, at),
                ethertype::VLAN | ethertype::QINQ | ethertype::QINQ_OLD => {
                    be16(frame, at).zip(be16(frame, at + 2)).map(|(control, kind)| {
                        self.vlan_tags += 1;
                        self.vlan.get_or_insert(control & 0x0fff);
                        (at + 4, kind)
                    })
                }
                ethertype::MPLS | ethertype::MPLS_UPSTREAM => self.mpls(frame, at),
                ethertype::PPPOE_SESSION => {
                    self.pppoe = true;
                    after_ppp(frame, at + 6)
                }
                // IEEE 802.1ah: four bytes of I-TAG, then the customer's Ethernet header.
                ethertype::PBB => be16(frame, at + 16).map(|kind| (at + 18, kind)),
                length if length < ethertype::FIRST => match after_llc(frame, at) {
                    Some(next) => Some(next),
                    None => return self.found(L3::Llc, frame, at),
                },
                other => return self.found(L3::Other(other), frame, at),
            };
            match next {
                Some(next) => (at, kind) = next,
                None => return self.found(L3::Unknown, frame, at),
            }
        }
        self.found(L3::Unknown, frame, at);
    }

    fn found(&mut self, l3: L3, frame: &[u8], at: usize) {
        self.l3 = l3;
        self.l3_offset = at.min(frame.len());
    }

    /// RFC 3032. What a label stack carries is not written in it: labels 0 and 2 say (section 2.1), otherwise the
    /// first nibble is taken for the IP version, as routers do (RFC 4928); two zero bytes start a pseudowire
    /// control word before Ethernet (RFC 4448 section 4.6).
    fn mpls(&mut self, frame: &[u8], mut at: usize) -> Option<(usize, u16)> {
        let label = loop {
            let entry = u32::from_be_bytes(*bytes(frame, at)?);
            at += 4;
            self.mpls_labels += 1;
            if entry & 0x100 != 0 {
                break entry >> 12;
            }
            if self.mpls_labels >= MAX_MPLS_LABELS {
                return None;
            }
        };
        let first = be16(frame, at)?;
        match (label, first >> 12) {
            (0, _) | (_, 4) => Some((at, ethertype::IPV4)),
            (2, _) | (_, 6) => Some((at, ethertype::IPV6)),
            _ if first == 0 => be16(frame, at + 16).map(|kind| (at + 18, kind)),
            // Ethernet without a control word: believed only if it then names a protocol known here.
            _ => match be16(frame, at + 12)? {
                kind @ (ethertype::IPV4
                | ethertype::IPV6
                | ethertype::ARP
                | ethertype::VLAN
                | ethertype::QINQ) => Some((at + 14, kind)),
                _ => None,
            },
        }
    }

    /// RFC 791.
    #[inline]
    fn ipv4(&mut self, frame: &[u8], at: usize) {
        self.found(L3::Other(ethertype::IPV4), frame, at);
        let Some(header) = bytes::<20>(frame, at) else { return };
        let header_len = usize::from(header[0] & 0x0f) * 4;
        if header[0] >> 4 != 4 || header_len < 20 || at + header_len > frame.len() {
            return;
        }
        self.l3 = L3::V4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if total >= header_len {
            self.l3_end = frame.len().min(at + total);
        }
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        self.fragment = match (fragment & 0x1fff, fragment & 0x2000) {
            (0, 0) => Fragment::Whole,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        };
        self.ip_protocol = Some(header[9]);
        if self.fragment != Fragment::Later {
            self.l4_offset = Some(at + header_len);
            if header[9] == AUTHENTICATION {
                self.extension_headers(frame, at + header_len, AUTHENTICATION);
            }
        }
    }

    /// RFC 8200.
    fn ipv6(&mut self, frame: &[u8], at: usize) {
        self.found(L3::Other(ethertype::IPV6), frame, at);
        let Some(header) = bytes::<40>(frame, at) else { return };
        if header[0] >> 4 != 6 {
            return;
        }
        self.l3 = L3::V6;
        let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if payload > 0 {
            self.l3_end = frame.len().min(at + 40 + payload);
        }
        self.extension_headers(frame, at + 40, header[6]);
    }

    /// Skips every extension header (RFC 7045's list) from `at`, where one numbered `next` starts.
    fn extension_headers(&mut self, frame: &[u8], mut at: usize, mut next: u8) {
        self.l4_offset = None;
        for _ in 0..MAX_EXTENSION_HEADERS {
            self.ip_protocol = Some(next);
            if !is_extension(next) {
                if at <= frame.len() {
                    self.l4_offset = Some(at);
                }
                return;
            }
            let Some(&[following, length]) = bytes::<2>(frame, at) else { return };
            let length = match next {
                FRAGMENT => {
                    let Some(word) = be16(frame, at + 2) else { return };
                    if word & 0xfff8 != 0 {
                        // What `following` names started in the first piece.
                        self.ip_protocol = Some(following);
                        self.fragment = Fragment::Later;
                        return;
                    }
                    if word & 1 != 0 {
                        self.fragment = Fragment::First;
                    }
                    8
                }
                // RFC 4302 section 2.2: in 4-byte units, minus two of them; all others in 8-byte units, minus one.
                AUTHENTICATION => (usize::from(length) + 2) * 4,
                // Mobility, HIP and Shim6 messages end their packets: they are then the protocol themselves.
                MOBILITY | HIP | SHIM6 if following == NO_NEXT_HEADER => {
                    self.l4_offset = Some(at);
                    return;
                }
                _ => (usize::from(length) + 1) * 8,
            };
            at += length;
            next = following;
        }
    }
}

const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const NO_NEXT_HEADER: u8 = 59;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// Hop-by-hop options, routing, fragment, authentication, destination options, mobility, HIP, Shim6. ESP (50) hides
/// what follows and so counts as the transport.
fn is_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | FRAGMENT | AUTHENTICATION | 60 | MOBILITY | HIP | SHIM6)
}

/// Where the first header behind the link header starts, and its EtherType. Layouts are those of the tcpdump
/// group's link type pages.
fn after_link_header(link: LinkType, frame: &[u8]) -> Option<(usize, u16)> {
    let first = *frame.first()?;
    match link.0 {
        12 | 14 | 101 | 228 | 229 => by_version(frame, 0),
        // NULL is in the byte order of the capturing host, so either reading may be the right one; address
        // families fit one byte. OpenBSD's LOOP is big-endian, which this covers.
        0 | 108 => {
            let word: [u8; 4] = *bytes(frame, 0)?;
            let family = match word {
                [0, 0, 0, family] | [family, 0, 0, 0] => family,
                _ => return None,
            };
            match family {
                2 => Some((4, ethertype::IPV4)),
                // AF_INET6 is 10 on Linux, 23 on Windows, 24, 28 and 30 on the BSDs and Darwin.
                10 | 23 | 24 | 28 | 30 => Some((4, ethertype::IPV6)),
                _ => None,
            }
        }
        // PPP, PPP in HDLC-like framing (which may also hold Cisco HDLC), Cisco HDLC.
        9 => after_ppp(frame, 0),
        50 if first == 0xff => after_ppp(frame, 0),
        50 | 104 => be16(frame, 2).map(|kind| (4, kind)),
        105 => after_802_11(frame, 0),
        127 => after_802_11(frame, usize::from(u16::from_le_bytes(*bytes(frame, 2)?))),
        113 => be16(frame, 14).map(|kind| (16, cooked(kind))),
        276 => be16(frame, 0).filter(|_| frame.len() >= 20).map(|kind| (20, cooked(kind))),
        // Juniper: "MGC", flags (0x80: extensions follow, 0x02: no link header), then Ethernet.
        178 => {
            let [0x4d, 0x47, 0x43, flags] = *bytes(frame, 0)? else { return None };
            let extensions = if flags & 0x80 != 0 { 2 + usize::from(be16(frame, 4)?) } else { 0 };
            match flags & 0x02 {
                0 => be16(frame, 4 + extensions + 12).map(|kind| (4 + extensions + 14, kind)),
                _ => by_version(frame, 4 + extensions),
            }
        }
        _ => None,
    }
}

/// The Linux cooked header's protocol field: below 1536 it is a Linux code, where 1 is Novell's raw 802.3 and 4
/// is LLC. Both belong to [`L3::Llc`], which any 802.3 length leads to.
fn cooked(kind: u16) -> u16 {
    if kind < ethertype::FIRST { 4 } else { kind }
}

/// IP without a link header tells its version itself.
fn by_version(frame: &[u8], at: usize) -> Option<(usize, u16)> {
    match frame.get(at)? >> 4 {
        4 => Some((at, ethertype::IPV4)),
        6 => Some((at, ethertype::IPV6)),
        _ => None,
    }
}

/// The PPP protocol field (RFC 1661 section 2) behind an optional ff 03, perhaps compressed to one byte (6.5).
fn after_ppp(frame: &[u8], mut at: usize) -> Option<(usize, u16)> {
    if bytes(frame, at) == Some(&[0xff, 0x03]) {
        at += 2;
    }
    let first = *frame.get(at)?;
    let (protocol, at) = if first & 1 == 1 { (u16::from(first), at + 1) } else { (be16(frame, at)?, at + 2) };
    match protocol {
        0x0021 => Some((at, ethertype::IPV4)),
        0x0057 => Some((at, ethertype::IPV6)),
        0x0281 => Some((at, ethertype::MPLS)),
        0x0283 => Some((at, ethertype::MPLS_UPSTREAM)),
        _ => None,
    }
}

/// LLC with SNAP of OUI 00-00-00 or 00-00-f8 carries an EtherType (RFC 1042, IEEE 802.1H); SAP 06 is IPv4.
fn after_llc(frame: &[u8], at: usize) -> Option<(usize, u16)> {
    match *bytes::<3>(frame, at)? {
        [0xaa, 0xaa, 0x03] => match *bytes::<5>(frame, at + 3)? {
            [0, 0, 0 | 0xf8, high, low] => {
                Some((at + 8, u16::from_be_bytes([high, low]))).filter(|(_, kind)| *kind >= ethertype::FIRST)
            }
            _ => None,
        },
        [0x06, 0x06, 0x03] => Some((at + 3, ethertype::IPV4)),
        _ => None,
    }
}

/// IEEE 802.11 data frames that are not encrypted (section 9.2.4.1 of 802.11-2020 for the flags).
fn after_802_11(frame: &[u8], at: usize) -> Option<(usize, u16)> {
    const DATA: u8 = 0x08;
    let [control, flags] = *bytes(frame, at)?;
    let qos = control & 0x80 != 0;
    // Type "data", not one of the subtypes without data, not protected.
    if control & 0x0f != DATA || control & 0x40 != 0 || flags & 0x40 != 0 {
        return None;
    }
    let mut length = 24;
    if flags & 0x03 == 0x03 {
        length += 6;
    }
    if qos {
        length += 2;
        if flags & 0x80 != 0 {
            length += 4;
        }
    }
    after_llc(frame, at + length)
}

#[cfg(test)]
mod tests;
