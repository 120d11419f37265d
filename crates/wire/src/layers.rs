//! Finding the network and transport headers of a frame, whatever link layer it was captured on.
//!
//! This is the walk that runs for every frame of a capture (`capture::info`, replay's address changes, flow
//! keys), so it allocates nothing, cannot panic, and is bounded on hostile input. It stops at the *outermost* IP
//! header: what a tunnel carries is not its business, and it judges no checksums. It decodes as little as it can;
//! `proto` knows the fields. Ethernet with plain IPv4 costs about 2 ns inlined, the general walk about 10.

use crate::LinkType;
use crate::bytes::{array, be16};
use crate::link::{LinkHeader, Place, Shim};
use crate::numbers::{ethertype, protocol};

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

/// IPv4's EtherType, and the first byte of a header without options.
const IPV4_20: [u8; 3] = [(ethertype::IPV4 >> 8) as u8, ethertype::IPV4 as u8, 0x45];
/// Tags, label stacks and encapsulated link headers that are followed; real frames have three or four.
const MAX_LINK_STEPS: usize = 16;
/// IPv6 extension headers that are followed. RFC 8200 section 4.1 foresees six.
const MAX_EXTENSION_HEADERS: usize = 16;

impl Layers {
    /// Walks `frame`, whose first byte is a header of type `link`.
    #[inline]
    pub fn parse(link: LinkType, frame: &[u8]) -> Layers {
        // Nearly every frame: Ethernet, IPv4 without options, not a fragment. A test holds it to the general walk.
        if link == LinkType::ETHERNET
            && let Some(head) = frame.first_chunk::<34>()
            && [head[12], head[13], head[14]] == IPV4_20
            && [head[20] & 0xbf, head[21]] == [0, 0]
            && head[23] != protocol::AUTHENTICATION
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
        if let Some(place) = LinkHeader::parse(link, frame).and_then(|header| header.place()) {
            layers.walk(frame, place);
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

    /// Follows EtherTypes from `place` to the network layer.
    fn walk(&mut self, frame: &[u8], mut place: Place) {
        for _ in 0..MAX_LINK_STEPS {
            let Some(step) = place.step(frame) else {
                return match place.kind {
                    ethertype::IPV4 => self.ipv4(frame, place.at),
                    ethertype::IPV6 => self.ipv6(frame, place.at),
                    ethertype::ARP => self.found(L3::Arp, frame, place.at),
                    other => self.found(L3::Other(other), frame, place.at),
                };
            };
            match step.shim {
                Shim::Tag(control) if step.next.is_some() => {
                    self.vlan_tags += 1;
                    self.vlan.get_or_insert(control & 0x0fff);
                }
                Shim::Labels(labels) => self.mpls_labels += labels,
                Shim::Session => self.pppoe = true,
                Shim::Tag(_) | Shim::Backbone | Shim::Llc => {}
            }
            match step.next {
                Some(next) => place = next,
                None if step.shim == Shim::Llc => return self.found(L3::Llc, frame, place.at),
                None => break,
            }
        }
        self.found(L3::Unknown, frame, place.at);
    }

    fn found(&mut self, l3: L3, frame: &[u8], at: usize) {
        self.l3 = l3;
        self.l3_offset = at.min(frame.len());
    }

    /// RFC 791.
    #[inline]
    fn ipv4(&mut self, frame: &[u8], at: usize) {
        self.found(L3::Other(ethertype::IPV4), frame, at);
        let Some(header) = array::<20>(frame, at) else { return };
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
            if header[9] == protocol::AUTHENTICATION {
                self.extension_headers(frame, at + header_len, protocol::AUTHENTICATION);
            }
        }
    }

    /// RFC 8200.
    fn ipv6(&mut self, frame: &[u8], at: usize) {
        self.found(L3::Other(ethertype::IPV6), frame, at);
        let Some(header) = array::<40>(frame, at) else { return };
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
            let Some(&[following, length]) = array::<2>(frame, at) else { return };
            let length = match next {
                protocol::FRAGMENT => {
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
                protocol::AUTHENTICATION => (usize::from(length) + 2) * 4,
                // Mobility, protocol::HIP and Shim6 messages end their packets: they are then the protocol themselves.
                protocol::MOBILITY | protocol::HIP | protocol::SHIM6
                    if following == protocol::NO_NEXT_HEADER =>
                {
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

/// Hop-by-hop options, routing, fragment, authentication, destination options, mobility, protocol::HIP, Shim6. ESP (50) hides
/// what follows and so counts as the transport.
fn is_extension(number: u8) -> bool {
    matches!(
        number,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTHENTICATION
            | protocol::DESTINATION
            | protocol::MOBILITY
            | protocol::HIP
            | protocol::SHIM6
    )
}

#[cfg(test)]
mod tests;
