//! A TCP segment in a captured frame: where its numbers and its payload are. Headers are found by `wire`; this reads TCP's own
//! fixed header, and says why a frame has no segment.
//!
//! A super-packet (GRO, TSO, BIG TCP) is a segment like any other, however long it is.

use wire::flow::{FlowKey, FlowOf};
use wire::layers::{Fragment, L3, Layers};
use wire::{LinkType, numbers::protocol};

/// No more comes from the sender.
pub const FIN: u8 = 0x01;
/// Numbers begin.
pub const SYN: u8 = 0x02;
/// The connection is torn down.
pub const RST: u8 = 0x04;
/// `ack` means something.
pub const ACK: u8 = 0x10;

/// Its urgent pointer means something: a byte that the receiver's program may get apart from the others (RFC 9293, 3.8.5).
pub const URG: u8 = 0x20;

/// A segment as captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Who sent it to whom.
    pub flow: FlowKey,
    /// The number of its first byte.
    pub seq: u32,
    /// The number of the byte that its sender awaits next.
    pub ack: u32,
    /// Bits: [`FIN`] and the others.
    pub flags: u8,
    /// What was captured of its payload.
    pub payload: &'a [u8],
    /// Bytes of payload behind that, which were not captured.
    pub missing: usize,
}

impl Segment<'_> {
    /// Is this bit set?
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Does it hold, or announce, urgent data?
    pub fn is_urgent(&self) -> bool {
        self.has(URG) && self.length() > 0
    }

    /// Bytes of payload, captured or not.
    pub fn length(&self) -> usize {
        self.payload.len() + self.missing
    }
}

/// Why a frame is no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSegment {
    /// Another protocol.
    Other,
    /// A piece of an IP packet.
    Fragment,
    /// Its headers are cut off, or contradict themselves.
    Malformed,
}

/// Reads the segment in a frame that was `length` bytes long on its link.
///
/// # Errors
/// Why there is none.
#[inline]
pub fn read(link: LinkType, frame: &[u8], length: usize) -> Result<Segment<'_>, NoSegment> {
    let layers = Layers::parse(link, frame);
    match layers.ip_protocol {
        Some(protocol::TCP) => {}
        None if layers.is_ip() => return Err(NoSegment::Malformed),
        _ => return Err(NoSegment::Other),
    }
    if layers.fragment != Fragment::Whole {
        return Err(NoSegment::Fragment);
    }
    let FlowOf::Flow(flow) = FlowKey::of(&layers, frame) else { return Err(NoSegment::Malformed) };
    segment(&layers, frame, length, flow).ok_or(NoSegment::Malformed)
}

/// RFC 9293 section 3.1.
fn segment<'a>(layers: &Layers, frame: &'a [u8], length: usize, flow: FlowKey) -> Option<Segment<'a>> {
    let at = layers.l4_offset?;
    let head: &[u8; 20] = frame.get(at..layers.l3_end)?.first_chunk()?;
    let header = usize::from(head[12] >> 4) * 4;
    if header < 20 {
        return None;
    }
    let payload = frame.get(at + header..layers.l3_end)?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    Some(Segment {
        flow,
        seq: word(4),
        ack: word(8),
        flags: head[13],
        payload,
        missing: ends(layers, frame, length)?.saturating_sub(frame.len()),
    })
}

/// Where the packet ends by its own length, which may lie behind what was captured. Where the header does not say (segmentation
/// offload, RFC 2675 jumbograms), the frame's length does.
fn ends(layers: &Layers, frame: &[u8], length: usize) -> Option<usize> {
    let ip = frame.get(layers.l3_offset..)?;
    let half = |at: usize| wire::bytes::be16(ip, at).map(usize::from);
    let (stated, own) = match layers.l3 {
        L3::V4 => (half(2)?, 0),
        L3::V6 => (half(4)?, 40),
        _ => return None,
    };
    Some(if stated == 0 { length.max(frame.len()) } else { layers.l3_offset + own + stated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::IpAddr;

    /// Ethernet, IPv4 of this total length, and TCP with these flags.
    fn v4(total: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
        frame.extend(total.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, flags, 0, 1, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }

    fn flow(from: &str, to: &str) -> FlowKey {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        FlowKey::new(ip(from), ip(to), 6, 40_000, 80).unwrap()
    }

    #[test]
    fn a_segment_is_read_and_padding_is_no_payload() {
        let mut frame = v4(43, ACK, b"abc");
        frame.extend([0; 6]);
        let wanted = Segment {
            flow: flow("10.0.0.1", "10.0.0.2"),
            seq: 7,
            ack: 9,
            flags: ACK,
            payload: b"abc",
            missing: 0,
        };
        assert_eq!(read(LinkType::ETHERNET, &frame, frame.len()), Ok(wanted));
    }

    #[test]
    fn a_tag_and_extension_headers_are_passed() {
        let mut frame = v4(43, ACK, b"abc");
        frame.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(read(LinkType::ETHERNET, &frame, frame.len()).map(|s| s.payload), Ok(&b"abc"[..]));
        let mut six = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 31, 0, 64];
        for last in [1u8, 2] {
            six.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        six.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        six.extend(&frame[38..]);
        let read = read(LinkType::ETHERNET, &six, six.len()).unwrap();
        assert_eq!((read.payload, read.flow), (&b"abc"[..], flow("2001:db8::1", "2001:db8::2")));
    }

    #[test]
    fn a_super_packet_without_a_length_ends_with_its_frame() {
        let payload = vec![7; 100_000];
        let frame = v4(0, ACK, &payload);
        assert_eq!(read(LinkType::ETHERNET, &frame, frame.len()).map(|s| s.payload.len()), Ok(100_000));
        let cut = &frame[..1000];
        let segment = read(LinkType::ETHERNET, cut, frame.len()).unwrap();
        assert_eq!((segment.length(), segment.missing), (100_000, frame.len() - 1000));
    }

    #[test]
    fn what_is_no_segment_has_a_reason() {
        let whole = v4(43, ACK, b"abc");
        let changed = |at: usize, byte: u8| {
            let mut frame = whole.clone();
            frame[at] = byte;
            read(LinkType::ETHERNET, &frame, frame.len()).unwrap_err()
        };
        assert_eq!(changed(23, 17), NoSegment::Other);
        assert_eq!(changed(20, 0x20), NoSegment::Fragment);
        assert_eq!(changed(21, 3), NoSegment::Fragment);
        assert_eq!(changed(46, 0x40), NoSegment::Malformed);
        assert_eq!(read(LinkType::ETHERNET, &whole[..50], 57), Err(NoSegment::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), length in 0usize..200) {
            let _ = read(LinkType::ETHERNET, &bytes, length);
        }
    }
}
