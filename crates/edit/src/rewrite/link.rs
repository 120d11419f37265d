//! The link layer: where the network layer starts, and edits of the addresses and tags that link headers have.

use wire::link::{ETHERNET_HEADER as ETHERNET, JUNIPER_HEADER, LinkHeader, PPP_IPV4, PPP_IPV6, Shim};
use wire::numbers::ethertype::{IPV4, IPV6};
use wire::{LinkType, Mac};

use super::bytes::{be16, write, write16};
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
    /// Where the EtherType stands that a VLAN tag would change, of headers that tags can follow: Ethernet's, Linux' cooked ones.
    kind_at: Option<usize>,
    /// Where what that announces starts: a tag, or the network layer.
    first: usize,
    /// Whether a VLAN tag stands there.
    tagged: bool,
    /// Where the one address stands that a Linux cooked header has: its sender's.
    sender_at: Option<usize>,
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
        None => {
            let (mut protocol, mut behind, mut tagged) = (header.announced.number(), header.len, false);
            let cooked = cooked(link);
            let mut place = header.place().filter(|_| cooked.is_some());
            while let Some(step) = place.and_then(|place| place.step(frame)) {
                let (Shim::Tag(_), Some(next)) = (step.shim, step.next) else { break };
                (protocol, behind, tagged) = (next.kind, next.at, true);
                place = Some(next);
            }
            Some(Link {
                protocol,
                header: behind,
                ethernet: None,
                kind_at: cooked.map(|(kind, _)| kind),
                first: header.len,
                tagged,
                sender_at: cooked.map(|(_, sender)| sender).filter(|_| header.sender.is_some()),
                sender: header.sender,
                receiver: header.receiver,
                trailer: header.trailer,
            })
        }
    }
}

/// Where Linux' cooked headers have the EtherType and the sender's address.
fn cooked(link: LinkType) -> Option<(usize, usize)> {
    match link {
        LinkType::LINUX_SLL => Some((14, 6)),
        LinkType::LINUX_SLL2 => Some((0, 12)),
        _ => None,
    }
}

/// What a plan asks of link headers and a frame's header does not have: nothing was changed there, which is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lacking {
    /// A source address to set.
    pub source: bool,
    /// A destination address to set.
    pub destination: bool,
    /// Any Ethernet address to replace or scramble.
    pub addresses: bool,
    /// A place for VLAN tags.
    pub tag: bool,
}

/// What of the plan cannot be done to a header as it is now.
pub(super) fn lacking(link: &Link, plan: &Plan, side: Side) -> Lacking {
    let (destination, source) =
        (link.ethernet.is_some(), link.ethernet.is_some() || link.sender_at.is_some());
    Lacking {
        source: plan.source_mac.of(side).is_some() && !source,
        destination: plan.destination_mac.of(side).is_some() && !destination,
        addresses: (!plan.replace_mac.is_empty() || plan.scramble_mac.is_some()) && !source,
        tag: plan.vlan.is_some() && link.kind_at.is_none(),
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
        kind_at: Some(start + 12),
        first: start + ETHERNET,
        tagged: tag.is_some(),
        sender_at: None,
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
            let before = link.ethernet.and_then(|start| be16(frame, start + 12));
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
            link.becomes_ethernet(start + JUNIPER_HEADER.len());
            return true;
        }
        (NewHeader::Bytes { client, .. }, Side::Client) => client,
        (NewHeader::Bytes { server, .. }, Side::Server) => server,
    };
    frame.splice(..link.header.min(frame.len()), bytes.iter().copied());
    (link.header, link.ethernet) = (bytes.len(), None);
    (link.kind_at, link.sender_at, link.tagged) = (None, None, false);
    true
}

impl Link {
    /// An Ethernet header starts there now, before what the header before announced.
    fn becomes_ethernet(&mut self, start: usize) {
        (self.ethernet, self.sender_at) = (Some(start), None);
        (self.kind_at, self.first) = (Some(start + 12), start + ETHERNET);
    }
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
        link.header -= start;
        link.becomes_ethernet(0);
        return true;
    }
    let source = plan.source_mac.of(side).or(link.sender);
    let destination = plan.destination_mac.of(side).or(link.receiver);
    let (Some(source), Some(destination)) = (source, destination) else { return false };
    let mut header = [0; ETHERNET];
    write(&mut header, 0, &destination.0);
    write(&mut header, 6, &source.0);
    // A tag stays, so that its EtherType does.
    let kind = link.kind_at.filter(|_| link.tagged).and_then(|at| be16(frame, at));
    write16(&mut header, 12, kind.unwrap_or(link.protocol));
    frame.splice(..link.first, header);
    link.header = ETHERNET + (link.header - link.first);
    link.becomes_ethernet(0);
    true
}

/// Edits the header: tags, then the addresses it has. `false` where there is no room.
pub(super) fn edit(frame: &mut Vec<u8>, link: &mut Link, plan: &Plan, side: Side) -> bool {
    if !tags(frame, link, plan) {
        return false;
    }
    let Some(start) = link.ethernet else { return cooked_sender(frame, link, plan, side) };
    let Some(header) = frame.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<12>()) else {
        return false;
    };
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = *header;
    let destination = address(Mac([d0, d1, d2, d3, d4, d5]), plan.destination_mac.of(side), plan);
    let source = address(Mac([s0, s1, s2, s3, s4, s5]), plan.source_mac.of(side), plan);
    write(header, 0, &destination.0);
    write(header, 6, &source.0);
    true
}

/// The sender's address in a Linux cooked header, where it is an Ethernet address.
fn cooked_sender(frame: &mut [u8], link: &Link, plan: &Plan, side: Side) -> bool {
    let Some(at) = link.sender_at else { return true };
    let Some(field) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<6>()) else { return false };
    *field = address(Mac(*field), plan.source_mac.of(side), plan).0;
    true
}

/// What becomes of an address: set, then replaced, then scrambled.
fn address(old: Mac, given: Option<Mac>, plan: &Plan) -> Mac {
    let mut new = match given {
        Some(given) if !plan.skip_l2_broadcast || is_unicast(old) => given,
        _ => old,
    };
    for (from, to) in &plan.replace_mac {
        if new == *from {
            new = *to;
        }
    }
    plan.scramble_mac.as_ref().map_or(new, |scramble| scrambled(new, scramble))
}

/// Adds or takes off the outermost tag, where the header has a place for one.
fn tags(frame: &mut Vec<u8>, link: &mut Link, plan: &Plan) -> bool {
    let (Some(kind_at), at) = (link.kind_at, link.first) else { return true };
    match plan.vlan {
        Some(Vlan::Add { id, priority, cfi, ether_type }) => {
            let before = be16(frame, at).filter(|_| link.tagged).unwrap_or(0);
            let priority = priority.map_or(before & 0xe000, |priority| u16::from(priority & 7) << 13);
            let cfi = cfi.map_or(before & 0x1000, |cfi| u16::from(cfi) << 12);
            let Some(kind) = be16(frame, kind_at).filter(|_| frame.len() >= at) else { return false };
            let mut tag = [0; 4];
            write16(&mut tag, 0, priority | cfi | id & 0x0fff);
            write16(&mut tag, 2, kind);
            write16(frame, kind_at, ether_type);
            frame.splice(at..at, tag);
            link.header += 4;
            true
        }
        Some(Vlan::Delete) if link.tagged => {
            let Some(kind) = be16(frame, at + 2) else { return false };
            write16(frame, kind_at, kind);
            frame.drain(at..at + 4);
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
