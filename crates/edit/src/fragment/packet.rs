//! A whole IP packet, and where its parts are.

use wire::bytes::be16;
use wire::checksum::{finish, finish_udp, sum};
use wire::ends::Ends;

use wire::numbers::protocol::{DESTINATION, HOP_BY_HOP, ICMPV6};
pub(crate) use wire::numbers::protocol::{FRAGMENT, ICMP, ROUTING, SCTP, TCP, UDP};

/// An IP packet, from its header to its end as its header says, and not farther. What edits it keeps the header's
/// length field true with [`Packet::finish`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
}

/// Where things are in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) v6: bool,
    /// Where the part starts that may be split: behind IPv4's header, and behind IPv6's with what routers read
    /// (RFC 8200 section 4.5).
    pub(crate) payload: usize,
    /// Where the number of that part's protocol stands.
    pub(crate) next_at: usize,
    /// Where the upper layer starts, and what it is. In fragments that is what stands behind the fragment header.
    pub(crate) upper: usize,
    pub(crate) protocol: u8,
    pub(crate) fragment: bool,
}

/// The link header, and the packet behind it, if all of it was captured.
pub(crate) fn split(frame: &[u8], network: usize) -> Option<(&[u8], Packet)> {
    let (link, rest) = frame.split_at_checked(network)?;
    let length = match rest.first()? >> 4 {
        4 => usize::from(be16(rest, 2)?),
        6 => 40 + usize::from(be16(rest, 4)?),
        _ => return None,
    };
    let packet = Packet { bytes: rest.get(..length)?.to_vec() };
    packet.layout().map(|_| (link, packet))
}

pub(crate) fn set(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(field) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..value.len())) {
        field.copy_from_slice(value);
    }
}

impl Packet {
    pub(crate) fn layout(&self) -> Option<Layout> {
        let bytes = self.bytes.as_slice();
        match bytes.first()? >> 4 {
            4 => {
                let header = usize::from(bytes.first()? & 0xf) * 4;
                let protocol = *bytes.get(9)?;
                if bytes.len() < 20 || !(20..=bytes.len()).contains(&header) {
                    return None;
                }
                let fragment = be16(bytes, 6)? & 0x3fff != 0;
                Some(Layout { v6: false, payload: header, next_at: 9, upper: header, protocol, fragment })
            }
            6 if bytes.len() >= 40 => {
                let mut layout = Layout {
                    v6: true,
                    payload: 40,
                    next_at: 6,
                    upper: 40,
                    protocol: *bytes.get(6)?,
                    fragment: false,
                };
                let mut next_at = 6;
                loop {
                    let (units, routers) = match layout.protocol {
                        HOP_BY_HOP | ROUTING => (8 * usize::from(*bytes.get(layout.upper + 1)?) + 8, true),
                        DESTINATION => (8 * usize::from(*bytes.get(layout.upper + 1)?) + 8, false),
                        FRAGMENT => {
                            layout.fragment = true;
                            (8, false)
                        }
                        _ => return Some(layout),
                    };
                    next_at = if units > 0 { layout.upper } else { next_at };
                    layout.protocol = *bytes.get(layout.upper)?;
                    layout.upper = Some(layout.upper + units).filter(|end| *end <= bytes.len())?;
                    if routers && !layout.fragment {
                        (layout.payload, layout.next_at) = (layout.upper, next_at);
                    }
                    // Behind the header of a later fragment there is no other.
                    if layout.fragment {
                        return Some(layout);
                    }
                }
            }
            _ => None,
        }
    }

    /// Where TCP's payload starts, if this is a whole TCP packet.
    pub(crate) fn tcp(&self) -> Option<(Layout, usize)> {
        let layout = self.layout().filter(|layout| layout.protocol == TCP && !layout.fragment)?;
        let header = usize::from(self.bytes.get(layout.upper + 12)? >> 4) * 4;
        let payload = layout.upper + header;
        (header >= 20 && payload <= self.bytes.len()).then_some((layout, payload))
    }

    /// The length of the upper layer's header, as far as it is known.
    pub(crate) fn upper_header(&self, layout: &Layout) -> usize {
        match layout.protocol {
            TCP => self.tcp().map_or(0, |(_, payload)| payload - layout.upper),
            UDP | ICMP | ICMPV6 => 8,
            SCTP => wire::proto::sctp::HEADER,
            _ => 0,
        }
    }

    /// Makes the header's length, and IPv4's checksum, true.
    pub(crate) fn finish(&mut self) {
        let Some(layout) = self.layout() else { return };
        let length = self.bytes.len();
        if layout.v6 {
            set(&mut self.bytes, 4, &((length - 40) as u16).to_be_bytes());
            return;
        }
        set(&mut self.bytes, 2, &(length as u16).to_be_bytes());
        set(&mut self.bytes, 10, &[0, 0]);
        let checksum = finish(sum(self.bytes.get(..layout.upper).unwrap_or(&[])));
        set(&mut self.bytes, 10, &checksum.to_be_bytes());
    }

    /// As [`finish`](Self::finish), with the checksum of TCP, UDP or SCTP.
    pub(crate) fn finish_upper(&mut self) {
        self.finish();
        let Some(layout) = self.layout().filter(|layout| !layout.fragment) else { return };
        let at = layout.upper
            + match layout.protocol {
                TCP => 16,
                UDP => 6,
                SCTP => return self.bytes.get_mut(layout.upper..).map_or((), wire::crc::fix_sctp),
                _ => return,
            };
        // Behind a route of which nothing is known it cannot be made right: it stays.
        let Some(addresses) = Ends::of(&self.bytes).and_then(|ends| ends.sum(&self.bytes)) else { return };
        set(&mut self.bytes, at, &[0, 0]);
        let Some(upper) = self.bytes.get(layout.upper..) else { return };
        let total = addresses + u64::from(layout.protocol) + upper.len() as u64 + sum(upper);
        let checksum = if layout.protocol == UDP { finish_udp(total) } else { finish(total) };
        set(&mut self.bytes, at, &checksum.to_be_bytes());
    }
}
