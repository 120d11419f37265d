use super::*;
use std::net::Ipv4Addr;

/// An IPv4 packet of this protocol.
fn ip(protocol: u8, source: [u8; 4], destination: [u8; 4], inside: &[u8]) -> Vec<u8> {
    let length = (20 + inside.len() as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    packet.extend(source);
    packet.extend(destination);
    packet.extend(inside);
    packet
}

fn ethernet(kind: u16, inside: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa];
    frame.extend(kind.to_be_bytes());
    frame.extend(inside);
    frame
}

/// What is inside of all tunnels: 37 bytes of IP.
fn carried() -> Vec<u8> {
    let mut udp = vec![0, 7, 0, 9, 0, 17, 0, 0];
    udp.extend(b"innerdata");
    ip(protocol::UDP, [172, 16, 5, 1], [172, 16, 5, 2], &udp)
}

/// A frame with this behind its outer IP header.
fn around(protocol: u8, inside: &[u8]) -> Vec<u8> {
    ethernet(ethertype::IPV4, &ip(protocol, [10, 9, 0, 1], [10, 9, 0, 2], inside))
}

fn metered(frame: &[u8]) -> (Ipv4Addr, [u16; 2], u64) {
    let mut walk = Walk::new(Choice { inner: true, ..Choice::default() });
    let packet = walk.packet(&Frame::ethernet(frame, 0)).expect("a packet");
    let std::net::IpAddr::V4(source) = packet.key.parts().addresses[0] else { panic!("not IPv4") };
    (source, packet.key.ports(), packet.octets)
}

/// As tshark 4.0 decodes them: the mirrored frame is UDP from 172.16.5.1.
#[test]
fn of_mirrored_frames_in_erspan_the_inside_is_metered() {
    let (frame, packet) = (ethernet(ethertype::IPV4, &carried()), carried());
    let of = |header: &[u8], inside: &[u8]| around(protocol::GRE, &[header, inside].concat());
    let sequence = [0, 0, 0, 7];
    let type_ii = [&[0x10, 0, 0x88, 0xbe][..], &sequence, &[0x10, 100, 0, 5, 0, 0, 0, 0]].concat();
    // Version 2, VLAN 100, session 5; a timestamp; security group, and the word that ends it.
    let type_iii = |last: u16| {
        let [a, b] = last.to_be_bytes();
        [&[0x10, 0, 0x22, 0xeb][..], &sequence, &[0x20, 100, 0, 5, 1, 2, 3, 4, 0, 0, a, b]].concat()
    };
    let with_platform = [type_iii(1), vec![0x50, 0, 0, 0, 0, 0, 0, 9]].concat();
    let inner = (Ipv4Addr::new(172, 16, 5, 1), [7, 9], 37);
    for (what, frame) in [
        ("type I", of(&[0, 0, 0x88, 0xbe], &frame)),
        ("type II", of(&type_ii, &frame)),
        ("type III", of(&type_iii(0), &frame)),
        ("type III with what is the platform's", of(&with_platform, &frame)),
        ("type III of an IP packet", of(&type_iii(2 << 10), &packet)),
        ("Ethernet in GRE", of(&[0, 0, 0x65, 0x58], &frame)),
    ] {
        assert_eq!(metered(&frame), inner, "{what}");
    }
}

#[test]
fn what_is_no_erspan_that_is_known_is_metered_as_the_tunnel_it_is() {
    let frame = ethernet(ethertype::IPV4, &carried());
    // A version that nobody has defined, and headers that are cut off.
    let odd = [&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 7, 0x70, 100, 0, 5, 0, 0, 0, 0][..], &frame].concat();
    for inside in [&odd[..], &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 7], &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 7, 0x20, 0]]
    {
        let length = 20 + inside.len() as u64;
        assert_eq!(metered(&around(protocol::GRE, inside)), (Ipv4Addr::new(10, 9, 0, 1), [0; 2], length));
    }
}

#[test]
fn later_fragments_without_their_first_one_are_counted() {
    let mut walk = Walk::new(Choice::default());
    let mut fragment = around(protocol::UDP, &[1, 2, 3, 4, 5, 6, 7, 8]);
    // Offset 8 bytes.
    (fragment[20], fragment[21]) = (0, 1);
    let mut first = around(protocol::UDP, &[0, 7, 0, 9, 0, 16, 0, 0]);
    first[20] = 0x20;
    let mut ports = |frame: &[u8]| walk.packet(&Frame::ethernet(frame, 0)).expect("a packet").key.ports();
    assert_eq!([ports(&fragment), ports(&first), ports(&fragment)], [[0, 0], [7, 9], [7, 9]]);
    assert_eq!(walk.unattributed(), 1);
}

/// 150,000 bytes of BIG TCP over IPv6 leave as segments of 1,428 bytes without the header that Linux puts into the joined packet: counted with
/// it each record was 8 bytes a packet too large (0.5 %, beside iperf3).
#[test]
fn of_joined_packets_only_what_leaves_is_counted() {
    let (payload, size) = (150_000usize, 1428u16);
    let mut tcp = vec![0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 0, 1, 0, 0, 0, 0];
    tcp.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]);
    let jumbo = [&[6, 0, 0xc2, 4][..], &(8 + 32 + payload as u32).to_be_bytes()].concat();
    let of = |next: u8, between: &[u8]| {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        packet.extend([[0xfd; 16], [0xfe; 16]].concat());
        packet.extend(between);
        packet.extend(&tcp);
        ethernet(ethertype::IPV6, &packet)
    };
    let segments = payload.div_ceil(usize::from(size));
    for (next, between) in [(0, &jumbo[..]), (6, &[])] {
        let bytes = of(next, between);
        let frame =
            Frame { length: bytes.len() + payload, segment: Some(size), ..Frame::ethernet(&bytes, 0) };
        let packet = Walk::new(Choice::default()).packet(&frame).expect("a packet");
        assert_eq!(
            (packet.packets as usize, packet.octets as usize),
            (segments, payload + segments * 72),
            "behind {next}"
        );
    }
    // One that was not joined has the header on its way.
    let bytes = of(0, &jumbo);
    let frame = Frame { length: bytes.len() + payload, ..Frame::ethernet(&bytes, 0) };
    let packet = Walk::new(Choice::default()).packet(&frame).expect("a packet");
    assert_eq!((packet.packets, packet.octets as usize), (1, payload + 80));
}
