//! The link layer: where the network layer starts, and edits of Ethernet headers.

use wire::link::{ETHERNET_HEADER as ETHERNET, JUNIPER_HEADER, LinkHeader, PPP_IPV4, PPP_IPV6, Shim};
use wire::numbers::ethertype::{IPV4, IPV6};
use wire::{LinkType, Mac};

use super::bytes::{read16, write, write16};
use super::plan::{MacScramble, NewHeader, Plan, Side, Vlan};

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

/// Whether frames of this type tell their sender's Ethernet address.
pub(super) fn has_sender(link: LinkType) -> bool {
    matches!(link, LinkType::LINUX_SLL | LinkType::LINUX_SLL2) || has_receiver(link)
}

/// Whether frames of this type tell their receiver's Ethernet address.
pub(super) fn has_receiver(link: LinkType) -> bool {
    link == LinkType::JUNIPER_ETHERNET || link.is_wifi()
}

/// Finds the network layer. `None` for what is not edited: too short, 802.3 with a length, unknown.
#[inline(always)]
pub(super) fn decode(link: LinkType, frame: &[u8]) -> Option<Link> {
    let header = LinkHeader::parse(link, frame)?;
    match header.ethernet {
        Some(start) => ethernet(frame, start, &header),
        // Juniper's header before a bare packet: what is written would be another one.
        None if link == LinkType::JUNIPER_ETHERNET => None,
        None => Some(Link {
            protocol: header.announced.number(),
            header: header.len,
            ethernet: None,
            tagged: false,
            sender: header.sender,
            receiver: header.receiver,
            trailer: header.trailer,
        }),
    }
}

/// Where the IP header of a frame starts.
pub(super) fn network(link: LinkType, frame: &[u8]) -> Option<usize> {
    decode(link, frame).filter(|link| matches!(link.protocol, IPV4 | IPV6)).map(|link| link.header)
}

/// Goes behind VLAN tags and MPLS labels. PPPoE and backbone tags count as the network layer: they have lengths and addresses
/// of their own, which are not edited.
#[inline(always)]
fn ethernet(frame: &[u8], mut start: usize, header: &LinkHeader) -> Option<Link> {
    // Shorter frames hold nothing to edit; tcprewrite 4.5 leaves them alone, too.
    if frame.len() <= start + ETHERNET + 4 {
        return None;
    }
    let mut place = header.place()?;
    let mut tag = None;
    while let Some(step) = place.step(frame) {
        match step.shim {
            Shim::Tag(_) => _ = tag.get_or_insert(place.at),
            Shim::Labels(_) => start = step.ethernet.unwrap_or(start),
            Shim::Session | Shim::Backbone => break,
            Shim::Llc => return None,
        }
        place = step.next?;
    }
    // A tag elsewhere than behind the Ethernet header that is edited.
    if tag.is_some_and(|tag| tag != start + ETHERNET) {
        return None;
    }
    Some(Link {
        protocol: place.kind,
        header: place.at,
        ethernet: Some(start),
        tagged: tag.is_some(),
        sender: None,
        receiver: None,
        trailer: 0,
    })
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
            frame.splice(..0, JUNIPER_HEADER);
            link.header += JUNIPER_HEADER.len();
            link.ethernet = Some(start + JUNIPER_HEADER.len());
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
