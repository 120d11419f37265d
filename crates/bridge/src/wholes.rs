//! Frames as they are on the wire, of what the kernel hands over: a VLAN tag that was taken out goes back to its place,
//! a checksum that was left to hardware is computed, a super-frame of TCP or UDP is cut into the frames that the
//! hardware would have sent.

use port::rx::{Frame, SegmentKind};
use wire::LinkType;
use wire::checksum::{finish, finish_udp, sum};
use wire::crc;
use wire::ends::Ends;
use wire::layers::{L3, Layers};
use wire::proto::sctp;

/// The addresses of an Ethernet header; a tag stands behind them.
const ADDRESSES: usize = 12;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Why something that was received does not become frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It was not had whole: no room in the socket's queue.
    Cut,
    /// A super-frame of a kind that is not cut here (tunnels, SCTP).
    Unknown,
}

/// Hands each frame of `received` to `each`. `buffer` is for the frames, and keeps its memory.
///
/// # Errors
/// That it cannot be cut into frames that fit the other end.
pub fn frames(received: &Frame<'_>, buffer: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> Result<(), Unfit> {
    if received.bytes.len() < received.length {
        return Err(Unfit::Cut);
    }
    let offload = received.offload;
    if received.tag.is_none() && offload.checksum.is_none() && offload.segment.is_none() {
        each(received.bytes);
        return Ok(());
    }
    buffer.clear();
    buffer.extend_from_slice(received.bytes);
    let mut moved = 0;
    if let Some((kind, control)) = received.tag
        && buffer.len() >= ADDRESSES
    {
        let [a, b, c, d] = (u32::from(kind) << 16 | u32::from(control)).to_be_bytes();
        buffer.splice(ADDRESSES..ADDRESSES, [a, b, c, d]);
        moved = 4;
    }
    if let Some(segment) = offload.segment {
        return cut(buffer, segment.kind, segment.size.into(), each);
    }
    if let Some((start, offset)) = offload.checksum {
        complete(buffer, usize::from(start) + moved, offset.into());
    }
    each(buffer);
    Ok(())
}

/// The checksum from `start` on, put `offset` bytes behind it. What points outside of the frame changes nothing.
fn complete(frame: &mut [u8], start: usize, offset: usize) {
    // SCTP's is a CRC (include/linux/skbuff.h, csum_not_inet), which this offset alone tells: TCP's stands at 16, UDP's at 6.
    if offset == sctp::CHECKSUM {
        return frame.get_mut(start..).map_or((), crc::fix_sctp);
    }
    let Some(covered) = frame.get(start..) else { return };
    let checksum = finish_udp(sum(covered));
    if let Some(field) = frame.get_mut(start + offset..).and_then(<[u8]>::first_chunk_mut) {
        *field = checksum.to_be_bytes();
    }
}

/// Cuts a super-frame into frames with `size` bytes of payload each.
fn cut(whole: &[u8], kind: SegmentKind, size: usize, mut each: impl FnMut(&[u8])) -> Result<(), Unfit> {
    let layers = Layers::parse(LinkType::ETHERNET, whole);
    let ip = layers.l3_offset;
    let transport = layers.l4_offset.ok_or(Unfit::Unknown)?;
    let header = match (kind, layers.ip_protocol) {
        (SegmentKind::Tcp, Some(TCP)) => {
            let words = whole.get(transport + 12).ok_or(Unfit::Unknown)? >> 4;
            usize::from(words.max(5)) * 4
        }
        (SegmentKind::Udp, Some(UDP)) => 8,
        _ => return Err(Unfit::Unknown),
    };
    let (head, payload) = whole.split_at_checked(transport + header).ok_or(Unfit::Unknown)?;
    if size == 0 || payload.is_empty() || ip + 20 > transport {
        return Err(Unfit::Unknown);
    }
    let parts = payload.len().div_ceil(size);
    let mut frame = Vec::with_capacity(head.len() + size);
    for (number, part) in payload.chunks(size).enumerate() {
        frame.clear();
        frame.extend_from_slice(head);
        frame.extend_from_slice(part);
        if layers.l3 == L3::V4 {
            v4_header(&mut frame[ip..transport], header + part.len(), number);
        } else {
            let length = (transport + header + part.len()).saturating_sub(ip + 40);
            frame[ip + 4..ip + 6].copy_from_slice(&(length as u16).to_be_bytes());
        }
        let (protocol, field) = match kind {
            SegmentKind::Tcp => {
                tcp_header(&mut frame[transport..], number * size, number == 0, number + 1 == parts);
                (TCP, transport + 16)
            }
            _ => {
                let length = (8 + part.len()) as u16;
                frame[transport + 4..transport + 6].copy_from_slice(&length.to_be_bytes());
                (UDP, transport + 6)
            }
        };
        frame[field..field + 2].fill(0);
        let length = frame.len() - transport;
        let pseudo = pseudo(&frame[ip..], protocol, length).ok_or(Unfit::Unknown)?;
        let checksum = finish_udp(pseudo + sum(&frame[transport..]));
        frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        each(&frame);
    }
    Ok(())
}

/// Length, identification (one more for each part) and checksum.
fn v4_header(header: &mut [u8], payload: usize, number: usize) {
    let length = (header.len() + payload) as u16;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    let id = u16::from_be_bytes([header[4], header[5]]).wrapping_add(number as u16);
    header[4..6].copy_from_slice(&id.to_be_bytes());
    header[10..12].fill(0);
    let checksum = finish(sum(header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Sequence number and flags: FIN and PSH are the last part's, CWR the first one's (RFC 3168 section 6.1.2).
fn tcp_header(header: &mut [u8], before: usize, first: bool, last: bool) {
    const FIN_PSH: u8 = 0x01 | 0x08;
    const CWR: u8 = 0x80;
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    header[4..8].copy_from_slice(&sequence.wrapping_add(before as u32).to_be_bytes());
    if !last {
        header[13] &= !FIN_PSH;
    }
    if !first {
        header[13] &= !CWR;
    }
}

/// The sum of the pseudo header, with the addresses at the ends of the packet's way.
fn pseudo(packet: &[u8], protocol: u8, length: usize) -> Option<u64> {
    let addresses = Ends::of(packet)?.sum(packet)?;
    Some(addresses + u64::from(protocol) + length as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::rx::{Offload, Segment, Stamp, StampedBy};
    use proptest::prelude::*;

    /// An IPv4 frame with a TCP or UDP header in front of `payload`; all checksums 0.
    fn frame(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let header = if protocol == TCP { 20 } else { 8 };
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0]);
        frame.extend(((20 + header + payload.len()) as u16).to_be_bytes());
        frame.extend([0xff, 0xff, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2]);
        if protocol == TCP {
            frame.extend([0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9, 0x50, 0x99, 0, 0, 0, 0, 0, 0]);
        } else {
            frame.extend([0; 4]);
        }
        frame.extend(payload);
        frame
    }

    fn all(received: &Frame<'_>) -> Result<Vec<Vec<u8>>, Unfit> {
        let mut out = Vec::new();
        frames(received, &mut Vec::new(), |frame| out.push(frame.to_vec())).map(|()| out)
    }

    fn received(data: &[u8], tag: Option<(u16, u16)>, offload: Offload) -> Frame<'_> {
        Frame { tag, offload, ..Frame::bare(data, Stamp { ns: 0, by: StampedBy::Socket }) }
    }

    fn segments(kind: SegmentKind, size: u16) -> Offload {
        Offload { checksum: Some((34, 16)), segment: Some(Segment { kind, size }) }
    }

    fn sums_are_right(frame: &[u8], ip: usize) -> bool {
        let (l4, length) = (ip + 20, frame.len() - ip - 20);
        let pseudo = pseudo(&frame[ip..], frame[ip + 9], length).unwrap();
        finish(sum(&frame[ip..l4])) == 0 && finish(pseudo + sum(&frame[l4..])) == 0
    }

    #[test]
    fn a_super_frame_becomes_the_frames_that_hardware_would_send() {
        let payload: Vec<u8> = (0..2500).map(|n| (n % 251) as u8).collect();
        for (kind, protocol, header) in [(SegmentKind::Tcp, TCP, 20), (SegmentKind::Udp, UDP, 8)] {
            let whole = frame(protocol, &payload);
            let parts = all(&received(&whole, Some((0x8100, 7)), segments(kind, 1000))).expect("cut");
            let sizes: Vec<usize> = parts.iter().map(|part| part.len() - 18 - 20 - header).collect();
            assert_eq!(sizes, [1000, 1000, 500]);
            let joined: Vec<u8> = parts.iter().flat_map(|part| part[18 + 20 + header..].to_vec()).collect();
            assert_eq!(joined, payload);
            for (number, part) in parts.iter().enumerate() {
                assert_eq!(part[12..16], [0x81, 0, 0, 7]);
                assert!(sums_are_right(part, 18));
                let id = u16::from_be_bytes([part[22], part[23]]);
                assert_eq!(id, 0xffffu16.wrapping_add(number as u16));
                if protocol == TCP {
                    let sequence = u32::from_be_bytes(part[42..46].try_into().expect("four bytes"));
                    assert_eq!(sequence, 0xffff_fff0u32.wrapping_add(1000 * number as u32));
                    assert_eq!(part[51], [0x90, 0x10, 0x19][number], "flags");
                }
            }
        }
    }

    #[test]
    fn a_checksum_left_to_hardware_is_computed_behind_a_tag_too() {
        let mut unfinished = frame(UDP, b"hello");
        let length = unfinished.len() - 34;
        let partial = !finish(pseudo(&unfinished[14..], UDP, length).unwrap());
        unfinished[40..42].copy_from_slice(&partial.to_be_bytes());
        let v4 = finish(sum(&unfinished[14..34]));
        unfinished[24..26].copy_from_slice(&v4.to_be_bytes());
        let offload = Offload { checksum: Some((34, 6)), segment: None };
        let plain = all(&received(&unfinished, None, offload)).expect("whole");
        assert!(sums_are_right(&plain[0], 14));
        let tagged = all(&received(&unfinished, Some((0x88a8, 0x6005)), offload)).expect("whole");
        assert_eq!(tagged[0][12..16], [0x88, 0xa8, 0x60, 5]);
        assert!(sums_are_right(&tagged[0], 18));
    }

    #[test]
    fn sctps_checksum_left_to_hardware_is_its_crc() {
        let mut unfinished = frame(132, b"");
        unfinished.extend([0, 0, 0, 0, 0x0b, 0, 0, 4]);
        let offload = Offload { checksum: Some((34, 8)), segment: None };
        let done = all(&received(&unfinished, Some((0x8100, 7)), offload)).expect("whole").remove(0);
        let right = crc::sctp(&unfinished[34..]).expect("a header");
        assert_eq!(
            (&done[46..50], &done[38..46], &done[50..]),
            (&right[..], &unfinished[34..42], &unfinished[46..])
        );
    }

    #[test]
    fn what_was_not_had_whole_or_is_no_tcp_or_udp_is_told() {
        let whole = frame(TCP, &[0; 3000]);
        let cut = Frame { length: whole.len() + 1, ..received(&whole, None, Offload::default()) };
        assert_eq!(all(&cut), Err(Unfit::Cut));
        let other = received(&whole, None, segments(SegmentKind::Other, 1000));
        assert_eq!(all(&other), Err(Unfit::Unknown));
        let wrong = received(&whole, None, segments(SegmentKind::Udp, 1000));
        assert_eq!(all(&wrong), Err(Unfit::Unknown));
    }

    proptest! {
        #[test]
        fn no_bytes_and_no_offsets_make_it_panic(
            data in proptest::collection::vec(any::<u8>(), 0..200),
            tcp in any::<bool>(),
            start in 0u16..300, offset in any::<u16>(),
            size in 0u16..100, segmented in any::<bool>(), tagged in any::<bool>(), plausible in any::<bool>(),
        ) {
            let data = if plausible { frame(if tcp { TCP } else { UDP }, &data) } else { data };
            let kind = if tcp { SegmentKind::Tcp } else { SegmentKind::Udp };
            let offload = Offload {
                checksum: Some((start, offset)),
                segment: segmented.then_some(Segment { kind, size }),
            };
            let _ = all(&received(&data, tagged.then_some((0x8100, 1)), offload));
        }
    }
}
