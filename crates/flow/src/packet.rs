//! What a frame counts for: its flow, its IP length, and what else records tell.

use crate::key::Key;
use wire::LinkType;
use wire::layers::{Fragment, L3, Layers};
use wire::numbers::{ethertype, port, protocol};
use wire::signature::Signature;

pub mod fragments;

use fragments::Fragments;

/// A frame, and what is known beside its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The first byte is a header of this type.
    pub link: LinkType,
    /// Its bytes; fewer than `length` if it was captured in part.
    pub bytes: &'a [u8],
    /// How long it was.
    pub length: usize,
    /// When it arrived, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The VLAN that was taken out of it.
    pub vlan: Option<u16>,
    /// It is several frames of one flow that were joined, with so many bytes of payload each.
    pub segment: Option<u16>,
    /// It leaves by the interface; else it arrived there.
    pub egress: bool,
}

impl<'a> Frame<'a> {
    /// A whole Ethernet frame.
    pub fn ethernet(bytes: &'a [u8], at_ns: u64) -> Frame<'a> {
        Frame {
            link: LinkType::ETHERNET,
            bytes,
            length: bytes.len(),
            at_ns,
            vlan: None,
            segment: None,
            egress: false,
        }
    }
}

/// What a packet counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The flow it belongs to.
    pub key: Key,
    /// When it arrived, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Bytes of IP packets: headers and payload, without link headers, padding and FCS (`octetDeltaCount`).
    pub octets: u64,
    /// How many packets it is: more than one if they were joined.
    pub packets: u32,
    /// Of TCP (RFC 9293): nine bits.
    pub tcp_flags: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Source and destination, where the link layer is Ethernet.
    pub macs: [[u8; 6]; 2],
    /// The uppermost MPLS label stack entry, without its time to live; zero without one.
    pub mpls: [u8; 3],
    /// It leaves by the interface.
    pub egress: bool,
    /// What its test signature says, where that is looked for and there is one: the stream, and the number within it.
    pub sign: Option<(u32, u64)>,
}

/// Why a frame counts for no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPacket {
    /// It is not IP.
    NotIp,
    /// It ends before its ports do, or its headers contradict each other.
    Malformed,
}

/// Which headers make the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    /// Those inside of GTP-U, VXLAN, GRE, ERSPAN and IP in IP, where a packet has such.
    pub inner: bool,
    /// What leaves by the interface is another flow than what arrives there.
    pub directions: bool,
    /// Test signatures are read, at the end of frames.
    pub signatures: bool,
    /// Packets are samples of others: the first fragment of a later one's packet is not looked for, because the one that has its number
    /// is as likely another packet's.
    pub samples: bool,
}

/// Reads packets. It remembers the ports of fragmented ones, because later fragments have none.
#[derive(Debug)]
pub struct Walk {
    choice: Choice,
    fragments: Fragments,
}

/// Tunnels within tunnels that are followed.
const MOST_TUNNELS: usize = 4;

impl Walk {
    /// Nothing was seen yet.
    pub fn new(choice: Choice) -> Walk {
        Walk { choice, fragments: Fragments::default() }
    }

    /// Later fragments whose packet's first one is not known: it came after them, did not come, or came before
    /// [`fragments::MOST`] others. They are in flows whose ports are 0.
    pub fn unattributed(&self) -> u64 {
        self.fragments.unattributed()
    }

    /// What the frame counts for.
    ///
    /// # Errors
    /// That it counts for no flow, and why.
    #[inline]
    pub fn packet(&mut self, frame: &Frame<'_>) -> Result<Packet, NoPacket> {
        let layers = Layers::parse(frame.link, frame.bytes);
        if self.choice.inner
            && let Some(packet) = self.inner(frame, &layers, 0)
        {
            return Ok(packet);
        }
        self.outer(frame, &layers)
    }

    #[inline]
    fn outer(&mut self, frame: &Frame<'_>, layers: &Layers) -> Result<Packet, NoPacket> {
        let packet = frame.bytes.get(layers.l3_offset..).unwrap_or_default();
        let head = match layers.l3 {
            L3::V4 => Head::v4(packet),
            L3::V6 => Head::v6(packet),
            // An IP header that is cut off or unsound.
            L3::Other(ethertype::IPV4 | ethertype::IPV6) => return Err(NoPacket::Malformed),
            _ => return Err(NoPacket::NotIp),
        };
        let head = head.ok_or(NoPacket::Malformed)?;
        let protocol = layers.ip_protocol.ok_or(NoPacket::Malformed)?;
        let transport = match layers.l4_offset {
            // Bytes behind the packet's own end are padding.
            Some(at) => frame.bytes.get(at..layers.l3_end.max(at)).unwrap_or_default(),
            None if layers.fragment == Fragment::Later => &[],
            None => return Err(NoPacket::Malformed),
        };
        let ports = match (layers.fragment, ports(protocol, transport)) {
            (Fragment::Later, _) => [0, 0],
            (_, Some(ports)) => ports,
            (_, None) => return Err(NoPacket::Malformed),
        };
        let vlan = frame.vlan.or(layers.vlan);
        let mut key = Key::of_words(head.addresses, head.v6, ports, (protocol, head.tos), vlan);
        if layers.fragment != Fragment::Whole && !self.choice.samples {
            let identification = identification(layers, frame.bytes);
            key = match layers.fragment {
                Fragment::First => self.fragments.first(key, identification, frame.at_ns),
                _ => self.fragments.later(key, identification, frame.at_ns),
            };
        }
        if self.choice.directions && frame.egress {
            key = key.leaving();
        }
        let whole = frame.length.saturating_sub(layers.l3_offset) as u64;
        let octets = if head.octets == 0 { whole } else { head.octets };
        let (packets, octets) = match frame.segment {
            Some(size) if size > 0 => {
                let added = if head.v6 { added_when_joined(packet) } else { 0 };
                several(layers, protocol, transport, (octets, added), u64::from(size))
            }
            _ => (1, octets),
        };
        Ok(Packet {
            key,
            at_ns: frame.at_ns,
            octets,
            packets,
            tcp_flags: tcp_flags(protocol, transport),
            ttl: head.ttl,
            macs: macs(frame),
            mpls: if layers.mpls_labels > 0 { mpls(frame.bytes, layers) } else { [0; 3] },
            egress: frame.egress,
            sign: if self.choice.signatures { sign(frame) } else { None },
        })
    }

    /// What a tunnel carries, if it is one and what it carries is IP.
    #[inline(never)]
    fn inner(&mut self, frame: &Frame<'_>, layers: &Layers, depth: usize) -> Option<Packet> {
        let at = layers.l4_offset.filter(|_| layers.fragment == Fragment::Whole && depth < MOST_TUNNELS)?;
        let transport = frame.bytes.get(at..layers.l3_end)?;
        let (link, skip) = tunnel(layers.ip_protocol?, transport)?;
        let start = at + skip;
        let inside = Frame {
            link,
            bytes: frame.bytes.get(start..layers.l3_end)?,
            length: frame.length.checked_sub(start)?,
            vlan: None,
            segment: None,
            ..*frame
        };
        let layers = Layers::parse(link, inside.bytes);
        self.inner(&inside, &layers, depth + 1).or_else(|| self.outer(&inside, &layers).ok())
    }
}

/// What is read of an IP header.
struct Head {
    addresses: [[u64; 2]; 2],
    v6: bool,
    tos: u8,
    ttl: u8,
    /// Of the whole packet; zero if the header does not say.
    octets: u64,
}

impl Head {
    #[inline]
    fn v4(packet: &[u8]) -> Option<Head> {
        let header: &[u8; 20] = packet.first_chunk()?;
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            [0, u64::from(u32::from_be_bytes(bytes))]
        };
        let total = u16::from_be_bytes([header[2], header[3]]);
        Some(Head {
            addresses: [word(12), word(16)],
            v6: false,
            tos: header[1],
            ttl: header[8],
            octets: if total >= 20 { total.into() } else { 0 },
        })
    }

    #[inline]
    fn v6(packet: &[u8]) -> Option<Head> {
        let header: &[u8; 40] = packet.first_chunk()?;
        let &[_, a, b, c, d] = header.as_chunks::<8>().0 else { return None };
        let payload = u16::from_be_bytes([header[4], header[5]]);
        Some(Head {
            addresses: [[a, b].map(u64::from_be_bytes), [c, d].map(u64::from_be_bytes)],
            v6: true,
            tos: header[0] << 4 | header[1] >> 4,
            ttl: header[7],
            octets: if payload > 0 { 40 + u64::from(payload) } else { 0 },
        })
    }
}

/// `None` if the packet ends before them.
#[inline]
fn ports(number: u8, transport: &[u8]) -> Option<[u16; 2]> {
    match number {
        protocol::TCP | protocol::UDP | protocol::SCTP | protocol::UDPLITE | protocol::DCCP => {
            let &[a, b, c, d] = transport.first_chunk()?;
            Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
        }
        protocol::ICMP | protocol::ICMPV6 => Some([0, u16::from_be_bytes(*transport.first_chunk()?)]),
        _ => Some([0, 0]),
    }
}

#[inline]
fn tcp_flags(number: u8, transport: &[u8]) -> u16 {
    match transport {
        [_, _, _, _, _, _, _, _, _, _, _, _, high, low, ..] if number == protocol::TCP => {
            u16::from_be_bytes([high & 1, *low])
        }
        _ => 0,
    }
}

/// Ethernet's addresses, source first.
#[inline]
pub(crate) fn macs(frame: &Frame<'_>) -> [[u8; 6]; 2] {
    match frame.bytes.first_chunk::<12>() {
        Some(&[a, b, c, d, e, f, g, h, i, j, k, l]) if frame.link == LinkType::ETHERNET => {
            [[g, h, i, j, k, l], [a, b, c, d, e, f]]
        }
        _ => [[0; 6]; 2],
    }
}

/// The stack ends where IP begins: four bytes for each entry.
fn mpls(bytes: &[u8], layers: &Layers) -> [u8; 3] {
    let top = layers.l3_offset.checked_sub(4 * usize::from(layers.mpls_labels));
    let top = top.and_then(|at| bytes.get(at..)?.first_chunk::<3>());
    top.copied().unwrap_or_default()
}

/// Of a whole frame that is one: of a beginning the end is missing, and of several that were joined there is but the last one's.
#[cold]
fn sign(frame: &Frame<'_>) -> Option<(u32, u64)> {
    let whole = frame.segment.is_none() && frame.bytes.len() == frame.length;
    let signature = Signature::at_end_of(frame.bytes).filter(|_| whole)?;
    Some((signature.stream, signature.sequence))
}

/// The number that a packet's fragments share.
fn identification(layers: &Layers, bytes: &[u8]) -> u32 {
    let packet = bytes.get(layers.l3_offset..).unwrap_or_default();
    match layers.l3 {
        L3::V4 => packet.get(4..6).map_or(0, |id| u32::from(u16::from_be_bytes([id[0], id[1]]))),
        _ => fragment_header(packet).unwrap_or(0),
    }
}

/// The identification in the fragment header of IPv6 (RFC 8200, 4.5).
fn fragment_header(packet: &[u8]) -> Option<u32> {
    let mut next = *packet.get(6)?;
    let mut at = 40usize;
    for _ in 0..8 {
        let rest = packet.get(at..)?;
        match next {
            protocol::FRAGMENT => return Some(u32::from_be_bytes(*rest.get(4..)?.first_chunk()?)),
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION => {
                let &[after, words] = rest.first_chunk()?;
                next = after;
                at += 8 + 8 * usize::from(words);
            }
            _ => return None,
        }
    }
    None
}

/// Bytes that none of the packets had that were joined into this one: a Hop-by-Hop header with the jumbo payload option (RFC 2675), which
/// Linux (5.19 and later) puts behind the header of IPv6 where its length has no room for a BIG TCP packet, and takes out again before the
/// packets leave (`ipv6_hopopt_jumbo_remove`).
#[cold]
fn added_when_joined(packet: &[u8]) -> u64 {
    const JUMBO: u8 = 0xc2;
    let has_no_length = packet.get(4..7) == Some(&[0, 0, 0]);
    let is_jumbo = packet.get(41) == Some(&0) && packet.get(42..44) == Some(&[JUMBO, 4]);
    if has_no_length && is_jumbo { 8 } else { 0 }
}

/// How many packets were joined into one of so many octets, `added` of which none of them had, and how many octets they had.
#[cold]
fn several(
    layers: &Layers,
    number: u8,
    transport: &[u8],
    (octets, added): (u64, u64),
    size: u64,
) -> (u32, u64) {
    let header = match number {
        protocol::TCP => transport.get(12).map_or(20, |offset| 4 * u64::from(offset >> 4)),
        _ => 8,
    };
    let before = layers.l4_offset.unwrap_or(layers.l3_offset).saturating_sub(layers.l3_offset) as u64;
    let headers = (before + header).saturating_sub(added);
    let octets = octets.saturating_sub(added);
    let parts = octets.saturating_sub(headers).div_ceil(size).max(1);
    (u32::try_from(parts).unwrap_or(u32::MAX), octets + (parts - 1) * headers)
}

/// What is inside of a packet with this transport: of which type, and so many bytes into the transport.
fn tunnel(number: u8, transport: &[u8]) -> Option<(LinkType, usize)> {
    match number {
        protocol::UDP => {
            let destination = u16::from_be_bytes(*transport.get(2..)?.first_chunk()?);
            match destination {
                port::GTPU => gtpu(transport.get(8..)?).map(|skip| (LinkType::RAW, 8 + skip)),
                port::VXLAN => Some((LinkType::ETHERNET, 16)),
                _ => None,
            }
        }
        protocol::GRE => gre(transport),
        protocol::IPV4 | protocol::IPV6 => Some((LinkType::RAW, 0)),
        _ => None,
    }
}

/// A G-PDU (3GPP TS 29.281, 5.1): how long its header is.
fn gtpu(header: &[u8]) -> Option<usize> {
    let &[flags, kind, ..] = header.first_chunk::<8>()?;
    if flags >> 5 != 1 || kind != 255 {
        return None;
    }
    if flags & 7 == 0 {
        return Some(8);
    }
    let mut at = 12usize;
    let mut next = *header.get(11)?;
    // Extension headers: their length in words of four bytes first, the type of the next last.
    for _ in 0..8 {
        if next == 0 {
            return Some(at);
        }
        let words = usize::from(*header.get(at)?);
        if words == 0 {
            return None;
        }
        at += 4 * words;
        next = *header.get(at - 1)?;
    }
    None
}

/// The protocol types of ERSPAN's types I and II, and of type III (draft-foschiano-erspan-03).
const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
/// The bit of GRE's flags that announces a sequence number.
const SEQUENCE: u8 = 0x10;

/// RFC 2784 and 2890.
fn gre(header: &[u8]) -> Option<(LinkType, usize)> {
    let &[flags, version, a, b] = header.first_chunk()?;
    if version & 7 != 0 {
        return None;
    }
    let optional = [0x80, 0x20, SEQUENCE].iter().filter(|bit| flags & **bit != 0).count();
    let skip = 4 + 4 * optional;
    match u16::from_be_bytes([a, b]) {
        ethertype::IPV4 | ethertype::IPV6 => Some((LinkType::RAW, skip)),
        ethertype::BRIDGING => Some((LinkType::ETHERNET, skip)),
        // Type I has no header of its own, and no sequence number: that tells it from type II.
        ERSPAN_II if flags & SEQUENCE == 0 => Some((LinkType::ETHERNET, skip)),
        ERSPAN_II | ERSPAN_III => {
            let (link, more) = erspan(header.get(skip..)?)?;
            Some((link, skip + more))
        }
        _ => None,
    }
}

/// The header of ERSPAN: what stands behind it, and how long it is. Its version is 1 of type II, and 2 of type III.
fn erspan(header: &[u8]) -> Option<(LinkType, usize)> {
    match header.first()? >> 4 {
        1 => Some((LinkType::ETHERNET, 8)),
        2 => {
            let last = u16::from_be_bytes(*header.get(10..)?.first_chunk()?);
            // With the last bit (O) eight bytes of the platform's follow.
            let length = if last & 1 == 0 { 12 } else { 20 };
            // FT: the frame's type; 2 is an IP packet without a link header.
            let link = if last >> 10 & 0x1f == 2 { LinkType::RAW } else { LinkType::ETHERNET };
            Some((link, length))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
