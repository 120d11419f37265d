//! The two addresses of an IP packet that TCP's, UDP's and ICMPv6's checksums cover. They are those of the IP header, but
//! where the packet takes a route of its own (RFC 8200 section 8.1: the final destination) or comes from a host that is
//! not at home (RFC 6275 section 11.3.1: the home address).
//!
//! For packets as captured; `traffic::expr` knows the same of the headers that it writes.

use std::ops::Range;

use crate::proto::{ext, ipv4};

/// Where the covered addresses stand in the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// Of the source address.
    pub source: Range<usize>,
    /// `None` where it cannot be known: a route of a type that this does not know, or one that contradicts itself.
    pub destination: Option<Range<usize>>,
}

impl Ends {
    /// The addresses of IPv4's or IPv6's own header.
    pub const fn of_header(v6: bool) -> Ends {
        if v6 {
            Ends { source: 8..24, destination: Some(24..40) }
        } else {
            Ends { source: 12..16, destination: Some(16..20) }
        }
    }

    /// Of a packet, from its IP header on. `None` where neither can be known, with headers cut off.
    pub fn of(packet: &[u8]) -> Option<Ends> {
        match packet.first()? >> 4 {
            4 => {
                let length = usize::from(packet.first()? & 0xf) * 4;
                let destination = ipv4::final_destination(packet.get(..length)?);
                Some(Ends { destination: Some(destination..destination + 4), ..Ends::of_header(false) })
            }
            6 => v6(packet),
            _ => None,
        }
    }

    /// The pseudo header's partial sum of both addresses, where both are known.
    pub fn sum(&self, packet: &[u8]) -> Option<u64> {
        let sum = |range: &Range<usize>| packet.get(range.clone()).map(crate::checksum::sum);
        Some(sum(&self.source)? + sum(self.destination.as_ref()?)?)
    }
}

/// Walks over extension headers up to the upper layer.
fn v6(packet: &[u8]) -> Option<Ends> {
    let mut ends = Ends::of_header(true);
    let (mut next, mut at) = (*packet.get(6)?, 40);
    loop {
        let rest = packet.get(at..)?;
        let length = match next {
            0 | 43 | 60 | 135 | 139 | 140 => usize::from(*rest.get(1)?) * 8 + 8,
            // An authentication header counts words of 32 bits (RFC 4302).
            51 => usize::from(*rest.get(1)?) * 4 + 8,
            44 => 8,
            _ => return Some(ends),
        };
        let header = rest.get(..length)?;
        match next {
            43 => match end_of_route(header) {
                Some(Some(place)) if ends.destination.is_some() => {
                    ends.destination = Some(at + place..at + place + 16);
                }
                Some(_) => {}
                None => ends.destination = None,
            },
            60 => {
                if let Some(place) = ext::home_address(header) {
                    ends.source = at + place..at + place + 16;
                }
            }
            // Behind the header of a later fragment stands the middle of something.
            44 if u16::from_be_bytes([*header.get(2)?, *header.get(3)?]) >> 3 != 0 => return Some(ends),
            _ => {}
        }
        next = *header.first()?;
        at += length;
    }
}

/// Where the final destination stands in a routing header; `Some(None)` if its route is used up, `None` if it cannot be
/// told.
fn end_of_route(header: &[u8]) -> Option<Option<usize>> {
    let left = usize::from(*header.get(3)?);
    if left == 0 {
        return Some(None);
    }
    match *header.get(2)? {
        // A segment routing header has the path's last segment first (RFC 8754 section 2).
        4 => (header.len() >= 24 && left <= usize::from(*header.get(4)?) + 1).then_some(Some(8)),
        kind => {
            // Source routes (RFC 2460 section 4.4), mobile hosts (RFC 6275), experiments; RPL's (RFC 6554) if no address
            // is shortened. Others have no list of addresses that we know of.
            let whole = match kind {
                0 | 2 | 253 | 254 => true,
                3 => *header.get(4)? == 0 && *header.get(5)? >> 4 == 0,
                _ => false,
            };
            let count = (header.len() - 8) / 16;
            let listed = whole && left <= count && header.len() == 8 + 16 * count;
            // Not worked out before that is known: there may be no address at all.
            listed.then(|| Some(8 + 16 * (count - 1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(headers: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, headers.first().map_or(17, |(number, _)| *number), 64];
        packet.extend([1; 16]);
        packet.extend([2; 16]);
        for (n, (_, body)) in headers.iter().enumerate() {
            packet.push(headers.get(n + 1).map_or(17, |(number, _)| *number));
            packet.push((body.len() / 8) as u8);
            packet.extend(body);
        }
        packet.extend([0; 8]);
        packet
    }

    fn route(kind: u8, left: u8, addresses: u8) -> Vec<u8> {
        let mut body = vec![kind, left, 0, 0, 0, 0];
        if kind == 4 {
            body[2] = addresses - 1;
        }
        body.extend((0..addresses).flat_map(|n| [n + 3; 16]));
        body
    }

    fn destination(headers: &[(u8, Vec<u8>)]) -> Option<u8> {
        let packet = packet(headers);
        let ends = Ends::of(&packet).unwrap();
        assert_eq!(ends.source, 8..24, "whatever the route");
        assert_eq!(ends.sum(&packet).is_some(), ends.destination.is_some());
        ends.destination.map(|place| packet[place.start])
    }

    #[test]
    fn the_final_destination_counts_while_segments_are_left() {
        for (kind, last) in [(0, 5), (2, 5), (3, 5), (4, 3)] {
            assert_eq!(destination(&[(43, route(kind, 2, 3))]), Some(last), "type {kind}");
            assert_eq!(destination(&[(43, route(kind, 0, 3))]), Some(2), "type {kind}, used up");
            assert_eq!(
                destination(&[(43, route(kind, 4, 3))]),
                None,
                "type {kind}: more left than there are"
            );
            for body in [vec![kind, 1, 0, 0, 0, 0], [&[kind, 1, 0, 0, 0, 0][..], &[7; 8]].concat()] {
                assert_eq!(destination(&[(43, body)]), None, "type {kind}: segments left, and no address");
            }
        }
        let options = vec![1, 4, 0, 0, 0, 0];
        assert_eq!(destination(&[(0, options.clone()), (43, route(0, 1, 1)), (60, options)]), Some(3));
        assert_eq!(destination(&[(43, route(5, 1, 2))]), None, "a type that has other contents");
        assert_eq!(
            destination(&[(43, route(5, 1, 2)), (43, route(0, 1, 2))]),
            None,
            "a route behind one unknown"
        );
        assert_eq!(destination(&[]), Some(2));
    }

    #[test]
    fn a_home_address_counts_as_source() {
        let mut body = vec![1, 2, 0, 0, 0xc9, 16];
        body.extend([9; 16]);
        let packet = packet(&[(60, body)]);
        let ends = Ends::of(&packet).unwrap();
        assert_eq!((packet[ends.source.start], ends.destination), (9, Some(24..40)));
        for cut in 0..packet.len() - 8 {
            assert!(Ends::of(&packet[..cut]).is_none(), "{cut}");
        }
    }
}
