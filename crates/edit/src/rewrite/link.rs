//! The link layer: where the network layer starts, and edits of Ethernet headers.

use wire::{LinkType, Mac};

use super::bytes::{read16, write, write16};
use super::plan::{MacScramble, NewHeader, Plan, Side, Vlan};
use super::{juniper, wifi};

const ETHERNET: usize = 14;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const ARP: u16 = 0x0806;
const VLAN: u16 = 0x8100;
/// PPP's numbers (RFC 1332, RFC 5072) where they are not EtherTypes.
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// What was found before the network layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    /// The EtherType of what follows.
    pub(super) protocol: u16,
    /// Where the network layer starts.
    pub(super) header: usize,
    /// Where the (inner) Ethernet header starts, of Ethernet.
    pub(super) ethernet: Option<usize>,
    /// Whether a VLAN tag stands behind that header.
    tagged: bool,
    /// The addresses where the link layer is not Ethernet but has some.
    sender: Option<Mac>,
    receiver: Option<Mac>,
    /// Bytes behind the network layer that do not belong to it.
    trailer: usize,
}

impl Link {
    fn new(protocol: u16, header: usize) -> Link {
        Link { protocol, header, ethernet: None, tagged: false, sender: None, receiver: None, trailer: 0 }
    }
}

/// Which link types can be read.
pub fn readable(link: LinkType) -> bool {
    let known = [
        LinkType::ETHERNET,
        LinkType::RAW,
        LinkType::IPV4,
        LinkType::IPV6,
        LinkType::NULL,
        LinkType::LOOP,
        LinkType::LINUX_SLL,
        LinkType::LINUX_SLL2,
        LinkType::C_HDLC,
        LinkType::PPP,
        LinkType::PPP_SERIAL,
        LinkType::JUNIPER_ETHERNET,
    ];
    known.contains(&link) || matches!(link.0, 12 | 14) || wifi::is(link)
}

/// Whether frames of this type tell their sender's Ethernet address.
pub(super) fn has_sender(link: LinkType) -> bool {
    matches!(link, LinkType::LINUX_SLL | LinkType::LINUX_SLL2) || has_receiver(link)
}

/// Whether frames of this type tell their receiver's Ethernet address.
pub(super) fn has_receiver(link: LinkType) -> bool {
    link == LinkType::JUNIPER_ETHERNET || wifi::is(link)
}

/// Finds the network layer. `None` for what is not edited: too short, 802.3 with a length, unknown.
#[inline(always)]
pub(super) fn decode(link: LinkType, frame: &[u8]) -> Option<Link> {
    let plain = |header: usize, protocol| Some(Link::new(protocol, header));
    // ARPHRD_ETHER and ARPHRD_LOOPBACK: the address is an Ethernet address.
    let cooked = |header: usize, protocol: usize, kind: usize, address: usize| {
        let kind = read16(frame, kind)?;
        let sender = frame.get(address..)?.first_chunk().map(|bytes| Mac(*bytes));
        let sender = sender.filter(|_| matches!(kind, 1 | 772));
        let protocol = read16(frame, protocol)?;
        (frame.len() >= header).then_some(Link { sender, ..Link::new(protocol, header) })
    };
    match link {
        LinkType::ETHERNET => ethernet(frame),
        LinkType::JUNIPER_ETHERNET => {
            let before = juniper::length(frame)?;
            let inner = ethernet(frame.get(before..)?)?;
            let start = inner.ethernet.map(|start| start + before);
            Some(Link { header: inner.header + before, ethernet: start, ..inner })
        }
        LinkType::C_HDLC => plain(4, read16(frame, 2)?),
        LinkType::PPP_SERIAL => plain(4, of_ppp(read16(frame, 2)?)),
        // Address and control may have been left out, and the first byte of the protocol (RFC 1661 section 6).
        LinkType::PPP => match *frame.first_chunk::<4>()? {
            [0xff, 3, high, low] if high & 1 == 0 => plain(4, of_ppp(u16::from_be_bytes([high, low]))),
            [0xff, 3, short, _] => plain(3, of_ppp(short.into())),
            [high, low, ..] if high & 1 == 0 => plain(2, of_ppp(u16::from_be_bytes([high, low]))),
            [short, ..] => plain(1, of_ppp(short.into())),
        },
        LinkType::LINUX_SLL => cooked(16, 14, 2, 6),
        LinkType::LINUX_SLL2 => cooked(20, 0, 8, 12),
        LinkType::NULL | LinkType::LOOP => {
            // The family's number in the capturing host's byte order: 2 is IPv4 everywhere, IPv6 is 10, 24, 28 or 30.
            match frame.first_chunk::<4>()? {
                [2, 0, 0, 0] | [0, 0, 0, 2] => plain(4, IPV4),
                [10 | 24 | 28 | 30, 0, 0, 0] | [0, 0, 0, 10 | 24 | 28 | 30] => plain(4, IPV6),
                _ => None,
            }
        }
        _ if wifi::is(link) => wifi::decode(link, frame).map(|found| Link {
            sender: Some(found.sender),
            receiver: Some(found.receiver),
            trailer: found.trailer,
            ..Link::new(found.protocol, found.header)
        }),
        _ => match frame.first()? >> 4 {
            4 => plain(0, IPV4),
            6 => plain(0, IPV6),
            _ => None,
        },
    }
}

/// The EtherType of what PPP numbers otherwise.
fn of_ppp(protocol: u16) -> u16 {
    match protocol {
        PPP_IPV4 => IPV4,
        PPP_IPV6 => IPV6,
        other => other,
    }
}

/// Where the IP header of a frame starts.
pub(super) fn network(link: LinkType, frame: &[u8]) -> Option<usize> {
    decode(link, frame).filter(|link| matches!(link.protocol, IPV4 | IPV6)).map(|link| link.header)
}

/// Walks over VLAN tags and MPLS labels.
#[inline(always)]
fn ethernet(frame: &[u8]) -> Option<Link> {
    // Shorter frames hold nothing to edit; tcprewrite 4.5 leaves them alone, too.
    if frame.len() <= ETHERNET + 4 {
        return None;
    }
    let (mut start, mut at) = (0, ETHERNET);
    let mut protocol = read16(frame, 12)?;
    let mut tag = None;
    loop {
        match protocol {
            VLAN | 0x88a8 | 0x9100 => {
                tag.get_or_insert(at);
                protocol = read16(frame, at + 2)?;
                at += 4;
            }
            0x8847 | 0x8848 => {
                loop {
                    let label =
                        frame.get(at..)?.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))?;
                    at += 4;
                    // Label 13 announces a generic associated channel (RFC 5586): no user's packet.
                    if label >> 12 == 13 {
                        return None;
                    }
                    if label & 0x100 != 0 {
                        break;
                    }
                }
                match frame.get(at)? >> 4 {
                    4 => protocol = IPV4,
                    6 => protocol = IPV6,
                    // A control word, then a whole Ethernet frame (RFC 4448).
                    0 => {
                        start = at + 4;
                        at = start + ETHERNET;
                        protocol = read16(frame, start + 12)?;
                    }
                    _ => return None,
                }
            }
            // An 802.3 length, or a value between the two.
            0..1536 => return None,
            _ => break,
        }
    }
    // A tag elsewhere than behind the Ethernet header that is edited.
    if tag.is_some_and(|tag| tag != start + ETHERNET) {
        return None;
    }
    Some(Link { ethernet: Some(start), tagged: tag.is_some(), ..Link::new(protocol, at) })
}

/// Puts another header in the link header's place, or before it. `false` if it cannot stand before this.
pub(super) fn replace(frame: &mut Vec<u8>, link: &mut Link, header: &NewHeader, side: Side) -> bool {
    cut_trailer(frame, link);
    let (hdlc, ppp);
    let bytes = match (header, side) {
        (NewHeader::Hdlc { address, control }, _) => {
            // tcprewrite takes what the Ethernet header says, although tags and labels go with it.
            let before = link.ethernet.and_then(|start| read16(frame, start + 12));
            let [high, low] = before.unwrap_or(link.protocol).to_be_bytes();
            hdlc = [*address, *control, high, low];
            hdlc.as_slice()
        }
        (NewHeader::PppSerial, _) => {
            let number = match link.protocol {
                IPV4 => PPP_IPV4,
                IPV6 => PPP_IPV6,
                _ => return false,
            };
            let [high, low] = number.to_be_bytes();
            // All stations, unnumbered information (RFC 1662 section 3.1).
            ppp = [0xff, 0x03, high, low];
            ppp.as_slice()
        }
        (NewHeader::Raw, _) if !matches!(link.protocol, IPV4 | IPV6) => return false,
        (NewHeader::Raw, _) => &[],
        (NewHeader::JuniperEthernet, _) => {
            let Some(start) = link.ethernet else { return false };
            frame.splice(..0, juniper::HEADER);
            link.header += juniper::HEADER.len();
            link.ethernet = Some(start + juniper::HEADER.len());
            return true;
        }
        (NewHeader::Bytes { client, .. }, Side::Client) => client,
        (NewHeader::Bytes { server, .. }, Side::Server) => server,
    };
    frame.splice(..link.header.min(frame.len()), bytes.iter().copied());
    (link.header, link.ethernet) = (bytes.len(), None);
    true
}

/// Takes off what stands behind the network layer.
fn cut_trailer(frame: &mut Vec<u8>, link: &mut Link) {
    frame.truncate(frame.len().saturating_sub(link.trailer).max(link.header));
    link.trailer = 0;
}

/// Makes an Ethernet header of another link layer's. `false` if an address is missing.
pub(super) fn to_ethernet(frame: &mut Vec<u8>, link: &mut Link, plan: &Plan, side: Side) -> bool {
    cut_trailer(frame, link);
    if let Some(start) = link.ethernet {
        // Only something before it is to go.
        frame.splice(..start, []);
        (link.header, link.ethernet) = (link.header - start, Some(0));
        return true;
    }
    let source = plan.source_mac.of(side).or(link.sender);
    let destination = plan.destination_mac.of(side).or(link.receiver);
    let (Some(source), Some(destination)) = (source, destination) else { return false };
    let mut header = [0; ETHERNET];
    write(&mut header, 0, &destination.0);
    write(&mut header, 6, &source.0);
    write16(&mut header, 12, link.protocol);
    frame.splice(..link.header, header);
    (link.header, link.ethernet) = (ETHERNET, Some(0));
    true
}

/// Edits the Ethernet header: addresses, then tags. `false` where there is no room.
pub(super) fn edit(frame: &mut Vec<u8>, link: &mut Link, plan: &Plan, side: Side) -> bool {
    let Some(start) = link.ethernet else { return true };
    if !tags(frame, link, start, plan) {
        return false;
    }
    let Some(header) = frame.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<12>()) else {
        return false;
    };
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = *header;
    let new = |old: Mac, given: Option<Mac>| match given {
        Some(given) if !plan.skip_l2_broadcast || is_unicast(old) => given,
        _ => old,
    };
    let mut destination = new(Mac([d0, d1, d2, d3, d4, d5]), plan.destination_mac.of(side));
    let mut source = new(Mac([s0, s1, s2, s3, s4, s5]), plan.source_mac.of(side));
    for (from, to) in &plan.replace_mac {
        for address in [&mut destination, &mut source] {
            if address == from {
                *address = *to;
            }
        }
    }
    if let Some(scramble) = &plan.scramble_mac {
        destination = scrambled(destination, scramble);
        source = scrambled(source, scramble);
    }
    write(header, 0, &destination.0);
    write(header, 6, &source.0);
    true
}

fn tags(frame: &mut Vec<u8>, link: &mut Link, start: usize, plan: &Plan) -> bool {
    let at = start + ETHERNET;
    match plan.vlan {
        Some(Vlan::Add { id, priority, cfi, ether_type }) => {
            let before = read16(frame, at).filter(|_| link.tagged).unwrap_or(0);
            let priority = priority.map_or(before & 0xe000, |priority| u16::from(priority & 7) << 13);
            let cfi = cfi.map_or(before & 0x1000, |cfi| u16::from(cfi) << 12);
            let mut tag = [0; 4];
            write16(&mut tag, 0, ether_type);
            write16(&mut tag, 2, priority | cfi | id & 0x0fff);
            if frame.len() < at {
                return false;
            }
            frame.splice(at - 2..at - 2, tag);
            link.header += 4;
            true
        }
        Some(Vlan::Delete) if link.tagged => {
            frame.drain(at - 2..at + 2);
            link.header -= 4;
            true
        }
        _ => true,
    }
}

/// What tcprewrite takes for one host's address: not broadcast, not the groups of IPv4 and IPv6. Those of virtual routers
/// (RFC 9568) are a host's, whichever it is, and tell as much about a network as any.
fn is_unicast(mac: Mac) -> bool {
    !matches!(mac.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] | [0x01, 0x00, 0x5e, ..] | [0x33, 0x33, ..])
}

fn scrambled(mac: Mac, scramble: &MacScramble) -> Mac {
    if !is_unicast(mac) {
        return mac;
    }
    let mut new = mac;
    for (byte, mask) in new.0.iter_mut().zip(scramble.mask).skip(scramble.keep) {
        *byte = (*byte ^ mask).wrapping_sub(*byte & mask);
    }
    if scramble.keep == 0 {
        // One host's address must not become a group's.
        new.0[0] &= 0xfe;
    }
    new
}

/// Writes the Ethernet address of an IP group.
pub(super) fn group_mac(frame: &mut [u8], ethernet: usize, address: Group) {
    match address {
        // RFC 1112 section 6.4: the low 23 bits.
        Group::V4(address) => {
            let [_, b, c, d] = address.to_be_bytes();
            write(frame, ethernet, &[0x01, 0x00, 0x5e, b & 0x7f, c, d]);
        }
        // RFC 2464 section 7: the low 32 bits.
        Group::V6(address) => {
            let [a, b, c, d] = (address as u32).to_be_bytes();
            write(frame, ethernet, &[0x33, 0x33, a, b, c, d]);
        }
    }
}

/// An IP group's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    V4(u32),
    V6(u128),
}
