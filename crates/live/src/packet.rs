//! Ethernet frames of one TCP connection: written with checksums, read with nothing believed.

use crate::segment::{self, Segment};
use std::net::{IpAddr, SocketAddr};
use wire::bytes::be16;
use wire::checksum::{finish, pseudo_v4, pseudo_v6, sum};
use wire::layers::{Fragment, L3, Layers};
use wire::{LinkType, numbers::protocol};

/// An Ethernet address.
pub type Mac = [u8; 6];

const ETHERNET: usize = 14;
const TTL: u8 = 64;

/// Both ends of a connection: ours and the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The client's end.
    pub from: SocketAddr,
    /// The server's end.
    pub to: SocketAddr,
}

/// Why a frame is not a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSegment {
    /// Something else, or not whole.
    Other,
    /// TCP in a piece of an IP packet.
    Fragment,
}

/// A segment in a frame, between which ends, and whether some of it was not captured.
#[derive(Debug)]
pub struct Found<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// For whom it is.
    pub destination: SocketAddr,
    /// The segment.
    pub segment: Segment<'a>,
    /// Bytes of payload that the packet had and the frame has not.
    pub missing: usize,
}

/// Reads the TCP segment in a frame that had `wire_len` bytes.
///
/// # Errors
/// Why there is none in it that can be read.
pub fn read(link: LinkType, frame: &[u8], wire_len: u32) -> Result<Found<'_>, NoSegment> {
    let layers = Layers::parse(link, frame);
    if layers.ip_protocol != Some(protocol::TCP) {
        return Err(NoSegment::Other);
    }
    if layers.is_fragment() && layers.fragment != Fragment::Whole {
        return Err(NoSegment::Fragment);
    }
    read_at(&layers, frame, wire_len).ok_or(NoSegment::Other)
}

fn read_at<'a>(layers: &Layers, frame: &'a [u8], wire_len: u32) -> Option<Found<'a>> {
    let ip = frame.get(layers.l3_offset..)?;
    // The packet's own length; none with segmentation offload, where it was the frame's.
    let (stated, source, destination): (usize, IpAddr, IpAddr) = match layers.l3 {
        L3::V4 => {
            let stated = usize::from(be16(ip, 2)?);
            (stated, (*ip.get(12..)?.first_chunk::<4>()?).into(), (*ip.get(16..)?.first_chunk::<4>()?).into())
        }
        L3::V6 => {
            let stated = usize::from(be16(ip, 4)?);
            let stated = if stated == 0 { 0 } else { stated + 40 };
            (
                stated,
                (*ip.get(8..)?.first_chunk::<16>()?).into(),
                (*ip.get(24..)?.first_chunk::<16>()?).into(),
            )
        }
        _ => return None,
    };
    let end = if stated == 0 { (wire_len as usize).max(frame.len()) } else { layers.l3_offset + stated };
    let at = layers.l4_offset?;
    let bytes = frame.get(at..end.min(frame.len()))?;
    let segment = segment::parse(bytes)?;
    Some(Found {
        source: SocketAddr::new(source, be16(bytes, 0)?),
        destination: SocketAddr::new(destination, be16(bytes, 2)?),
        segment,
        missing: end.saturating_sub(frame.len()),
    })
}

/// Is the TCP checksum of a whole frame right? (What the network card would have filled in is not, yet.)
pub fn sound(frame: &[u8]) -> bool {
    let layers = Layers::parse(LinkType::ETHERNET, frame);
    pseudo(&layers, frame).is_some_and(|(partial, at, end)| {
        let bytes = frame.get(at..end).unwrap_or_default();
        finish(partial + sum(bytes)) == 0
    })
}

/// Writes the checksum that the sender left to its network card.
pub fn complete(frame: &mut [u8]) {
    let layers = Layers::parse(LinkType::ETHERNET, frame);
    let Some((partial, at, end)) = pseudo(&layers, frame) else { return };
    let Some(bytes) = frame.get_mut(at..end) else { return };
    let Some(field) = bytes.get_mut(16..18) else { return };
    field.fill(0);
    let value = finish(partial + sum(bytes)).to_be_bytes();
    if let Some(field) = bytes.get_mut(16..18) {
        field.copy_from_slice(&value);
    }
}

/// The pseudo header's sum, and where the segment is.
fn pseudo(layers: &Layers, frame: &[u8]) -> Option<(u64, usize, usize)> {
    let (at, end) = (layers.l4_offset?, layers.l3_end);
    let length = end.checked_sub(at)?;
    let ip = frame.get(layers.l3_offset..)?;
    let partial = match layers.l3 {
        L3::V4 => {
            pseudo_v4(*ip.get(12..)?.first_chunk()?, *ip.get(16..)?.first_chunk()?, protocol::TCP, length)
        }
        L3::V6 => {
            pseudo_v6(*ip.get(8..)?.first_chunk()?, *ip.get(24..)?.first_chunk()?, protocol::TCP, length)
        }
        _ => return None,
    };
    Some((partial, at, end))
}

/// Writes a frame from `ends.from` to `ends.to`.
pub fn write(ends: &Ends, macs: (Mac, Mac), id: u16, segment: &Segment<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend(macs.1);
    out.extend(macs.0);
    let partial = match (ends.from.ip(), ends.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend([0x08, 0x00, 0x45, 0, 0, 0]);
            out.extend(id.to_be_bytes());
            // Do not fragment: a path that is too narrow must say so.
            out.extend([0x40, 0, TTL, protocol::TCP, 0, 0]);
            out.extend(from.octets());
            out.extend(to.octets());
            pseudo_v4(from.octets(), to.octets(), protocol::TCP, 0)
        }
        (from, to) => {
            let octets = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            out.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, protocol::TCP, TTL]);
            out.extend(octets(from));
            out.extend(octets(to));
            pseudo_v6(octets(from), octets(to), protocol::TCP, 0)
        }
    };
    let at = out.len();
    segment::emit(segment, (ends.from.port(), ends.to.port()), out);
    let length = out.len() - at;
    let value = finish(partial + length as u64 + out.get(at..).map_or(0, sum)).to_be_bytes();
    put(out, at + 16, value);
    if ends.from.is_ipv4() {
        put(out, ETHERNET + 2, ((length + 20) as u16).to_be_bytes());
        let value = finish(out.get(ETHERNET..at).map_or(0, sum)).to_be_bytes();
        put(out, ETHERNET + 10, value);
    } else {
        put(out, ETHERNET + 4, (length as u16).to_be_bytes());
    }
}

fn put(out: &mut [u8], at: usize, value: [u8; 2]) {
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{ACK, PSH};

    #[test]
    fn frames_are_sound_and_read_as_they_were_written() {
        for (from, to) in [("198.18.0.1:1234", "198.18.0.2:80"), ("[2001:db8::1]:1234", "[2001:db8::2]:80")] {
            let ends = Ends { from: from.parse().unwrap(), to: to.parse().unwrap() };
            let segment = Segment {
                seq: 1,
                ack: 2,
                flags: ACK | PSH,
                window: 9,
                payload: b"odd".into(),
                ..Segment::default()
            };
            let mut frame = Vec::new();
            write(&ends, ([2; 6], [4; 6]), 7, &segment, &mut frame);
            assert!(sound(&frame), "{from}");
            let headers = frame.len() - segment.payload.len();
            let found = read(LinkType::ETHERNET, &frame, frame.len() as u32).unwrap();
            assert_eq!((found.source, found.destination, found.missing), (ends.from, ends.to, 0));
            assert_eq!(found.segment, segment);
            // A cut frame says how much is missing; padding is not payload.
            let cut = read(LinkType::ETHERNET, &frame[..frame.len() - 2], frame.len() as u32).unwrap();
            assert_eq!((cut.missing, &cut.segment.payload[..]), (2, &b"o"[..]));
            let mut spoilt = frame.clone();
            *spoilt.last_mut().unwrap() ^= 1;
            assert!(!sound(&spoilt));
            complete(&mut spoilt);
            assert!(sound(&spoilt));
            frame.extend([0xee; 6]);
            assert_eq!(read(LinkType::ETHERNET, &frame, frame.len() as u32).unwrap().segment, segment);
            // Whatever it is cut to, headers are whole or it is refused, and what is missing is told.
            let padded = frame.len() as u32;
            for cut in 0..frame.len() {
                match read(LinkType::ETHERNET, &frame[..cut], padded) {
                    Ok(found) => {
                        assert!(
                            cut >= headers && segment.payload.starts_with(&found.segment.payload),
                            "{cut}"
                        );
                        let there = found.segment.payload.len() as u32;
                        assert_eq!(found.missing as u32 + there, segment.payload.len() as u32, "{cut}");
                    }
                    Err(_) => assert!(cut < headers, "{cut}"),
                }
            }
        }
    }
}
