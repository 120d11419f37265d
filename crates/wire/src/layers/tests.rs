use super::*;
use etherparse::PacketBuilder;
use proptest::prelude::*;

const UDP: [u8; 12] = [0x04, 0xd2, 0x00, 0x35, 0, 12, 0, 0, 1, 2, 3, 4];

fn v4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([0; 32]);
    packet.extend(payload);
    packet
}

/// `head` before `packet`, walked: the network layer, its offset, the transport's offset and number.
fn walk(link: LinkType, head: &[u8], packet: &[u8]) -> (L3, usize, Option<usize>, Option<u8>) {
    let layers = Layers::parse(link, &[head, packet].concat());
    (layers.l3, layers.l3_offset, layers.l4_offset, layers.ip_protocol)
}

fn ether(rest: &[u8]) -> Vec<u8> {
    [&[0x02; 12], rest].concat()
}

#[test]
fn every_link_header_leads_to_the_same_ip_packet() {
    let packet = v4(17, 0, &UDP);
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let data = |control: u8, flags: u8, length: usize| {
        let mut head = vec![0; length];
        (head[0], head[1]) = (control, flags);
        head.extend(snap);
        head
    };
    let mut sll = vec![0; 16];
    sll[14] = 8;
    let mut sll2 = vec![0; 20];
    sll2[0] = 8;
    let cases: Vec<(u16, Vec<u8>)> = vec![
        (1, ether(&[8, 0])),
        (1, ether(&[0x81, 0, 0, 5, 8, 0])),
        (1, ether(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0])),
        (1, ether(&[0x91, 0, 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7, 8, 0])),
        (1, ether(&[0x88, 0x47, 0, 1, 0, 64, 0, 1, 1, 64])),
        (1, ether(&[0x88, 0x47, 0, 0, 1, 64])),
        (1, ether(&[&[0x88, 0x47, 0, 1, 1, 64, 0, 0, 0, 0][..], &ether(&[8, 0])].concat())),
        (1, ether(&[&[0x88, 0x47, 0, 1, 1, 64][..], &ether(&[8, 0])].concat())),
        (1, ether(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 34, 0, 0x21])),
        (1, ether(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 34, 0x21])),
        (1, ether(&[&[0x88, 0xe7, 0, 0, 0, 9][..], &ether(&[8, 0])].concat())),
        (1, ether(&[&[0, 40][..], &snap].concat())),
        (1, ether(&[0, 40, 6, 6, 3])),
        (101, vec![]),
        (228, vec![]),
        (12, vec![]),
        (0, vec![2, 0, 0, 0]),
        (0, vec![0, 0, 0, 2]),
        (108, vec![0, 0, 0, 2]),
        (9, vec![0, 0x21]),
        (9, vec![0xff, 3, 0, 0x21]),
        (50, vec![0xff, 3, 0x21]),
        (50, vec![0x0f, 0, 8, 0]),
        (104, vec![0x0f, 0, 8, 0]),
        (113, sll),
        (276, sll2),
        (105, data(0x08, 0x01, 24)),
        (105, data(0x08, 0x03, 30)),
        (105, data(0x88, 0x02, 26)),
        (105, data(0x88, 0x82, 30)),
        (127, [vec![0, 0, 10, 0, 0, 0, 0, 0, 0, 0], data(0x08, 0x01, 24)].concat()),
        // Behind what a receiver says about the radio: a frame check sequence announced or not, a payload aligned or not.
        (127, [vec![0, 0, 9, 0, 2, 0, 0, 0, 0], data(0x08, 0x01, 24)].concat()),
        (127, [vec![0, 0, 9, 0, 2, 0, 0, 0, 0x20], data(0x88, 0x01, 28)].concat()),
        (119, [vec![0, 0, 0, 0x44, 12, 0, 0, 0, 0, 0, 0, 0], data(0x08, 0x01, 24)].concat()),
        (163, [vec![0x80, 0x21, 0x10, 1, 0, 0, 0, 12, 0, 0, 0, 0], data(0x08, 0x01, 24)].concat()),
        (192, [vec![0, 0, 8, 0, 105, 0, 0, 0], data(0x08, 0x02, 24)].concat()),
        (178, [b"MGC\x80\x00\x06\x03\x01\x01\x07\x01\x0e".to_vec(), ether(&[8, 0])].concat()),
        (178, [b"MGC\x00".to_vec(), ether(&[8, 0])].concat()),
        (178, [b"MGC\x80\x00\x03abc".to_vec(), ether(&[8, 0])].concat()),
        (178, b"MGC\x02".to_vec()),
    ];
    for (link, head) in cases {
        let at = head.len();
        let expected = (L3::V4, at, Some(at + 20), Some(17));
        assert_eq!(walk(LinkType(link), &head, &packet), expected, "{link} {head:02x?}");
        // Cut anywhere in the link header, no IP header may be claimed.
        for cut in 0..at {
            assert!(!Layers::parse(LinkType(link), &head[..cut]).is_ip(), "{link} {cut}");
        }
    }
}

#[test]
fn what_is_no_users_packet_leads_to_no_network_layer() {
    let packet = v4(17, 0, &UDP);
    let l3 = |link, head: &[u8]| walk(LinkType(link), head, &packet).0;
    // A generic associated channel (label 13), and labels that contradict the version of what follows.
    assert_eq!(l3(1, &ether(&[0x88, 0x47, 0, 0, 0xd1, 64])), L3::Unknown);
    assert_eq!(l3(1, &ether(&[0x88, 0x47, 0, 0, 0x21, 64])), L3::Unknown);
    // Juniper's header before a medium that is not Ethernet.
    let serial = [b"MGC\x80\x00\x03\x03\x01\x02".to_vec(), ether(&[8, 0])].concat();
    assert_eq!(l3(178, &serial), L3::Unknown);
    // 802.11: encrypted, a later fragment, an aggregate.
    let mut frame = [0u8; 26];
    (frame[0], frame[1]) = (0x08, 0x41);
    assert_eq!(l3(105, &[&frame[..24], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat()), L3::Unknown);
    (frame[1], frame[22]) = (0x01, 0x01);
    assert_eq!(l3(105, &[&frame[..24], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat()), L3::Unknown);
    (frame[0], frame[22], frame[24]) = (0x88, 0, 0x80);
    assert_eq!(l3(105, &[&frame[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat()), L3::Unknown);
}

#[test]
fn tags_and_labels_are_counted_and_the_outer_vlan_is_named() {
    let head = ether(&[0x88, 0xa8, 0xe0, 5, 0x81, 0, 0, 6, 0x88, 0x47, 0, 1, 0, 64, 0, 1, 1, 64]);
    let layers = Layers::parse(LinkType::ETHERNET, &[head, v4(6, 0, &[])].concat());
    assert_eq!((layers.vlan, layers.vlan_tags, layers.mpls_labels), (Some(5), 2, 2));
    assert_eq!(layers.l3, L3::V4);
}

#[test]
fn extension_headers_are_skipped_to_the_transport() {
    let hop = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    let long = |next| [&[next, 1][..], &[0; 14]].concat();
    let ah = |next| [&[next, 4][..], &[0; 22]].concat();
    let chain = [&hop(60)[..], &long(43), &hop(51), &ah(44), &[17, 0, 0, 0, 0, 0, 0, 1], &UDP].concat();
    let at = 40 + 8 + 16 + 8 + 24 + 8;
    assert_eq!(walk(LinkType::RAW, &[], &v6(0, &chain)), (L3::V6, 0, Some(at), Some(17)));
    // A mobility message is the end of its packet, and so the protocol.
    let mobility = [59, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(walk(LinkType::RAW, &[], &v6(135, &mobility)).3, Some(135));
    // Authentication header in IPv4.
    let packet = v4(51, 0, &[&ah(6)[..], &UDP].concat());
    assert_eq!(walk(LinkType::RAW, &[], &packet), (L3::V4, 0, Some(44), Some(6)));
}

#[test]
fn later_fragments_have_no_transport_header() {
    let parse = |packet: &[u8]| {
        let layers = Layers::parse(LinkType::RAW, packet);
        (layers.fragment, layers.l4_offset, layers.ip_protocol)
    };
    assert_eq!(parse(&v4(17, 0x4000, &UDP)), (Fragment::Whole, Some(20), Some(17)));
    assert_eq!(parse(&v4(17, 0x2000, &UDP)), (Fragment::First, Some(20), Some(17)));
    assert_eq!(parse(&v4(17, 0x2001, &UDP)), (Fragment::Later, None, Some(17)));
    assert_eq!(parse(&v4(17, 0x00b9, &UDP)), (Fragment::Later, None, Some(17)));
    let piece = |low: u8| v6(44, &[&[17, 0, 0, low, 0, 0, 0, 1][..], &UDP].concat());
    assert_eq!(parse(&piece(0)), (Fragment::Whole, Some(48), Some(17)));
    assert_eq!(parse(&piece(1)), (Fragment::First, Some(48), Some(17)));
    assert_eq!(parse(&piece(8)), (Fragment::Later, None, Some(17)));
}

#[test]
fn padding_lies_behind_the_packet_and_a_zero_length_means_all() {
    let end = |packet: &[u8]| Layers::parse(LinkType::RAW, packet).l3_end;
    let mut packet = v4(17, 0, &UDP);
    packet.extend([0; 10]);
    assert_eq!(end(&packet), 32);
    packet[3] = 0;
    assert_eq!(end(&packet), 42, "segmentation offload leaves zero");
    packet[3] = 19;
    assert_eq!(end(&packet), 42, "shorter than its header");
    packet[2] = 0xff;
    assert_eq!(end(&packet), 42, "longer than the frame");
}

#[test]
fn unsound_or_cut_ip_headers_are_not_called_ip() {
    let packet = v4(17, 0, &UDP);
    for first in [0x44, 0x65, 0x05, 0x4f] {
        let mut bad = packet.clone();
        bad[0] = first;
        assert_eq!(walk(LinkType::ETHERNET, &ether(&[8, 0]), &bad).0, L3::Other(0x0800), "{first:x}");
    }
    assert_eq!(walk(LinkType::ETHERNET, &ether(&[8, 0]), &packet[..19]).0, L3::Other(0x0800));
    assert_eq!(walk(LinkType::ETHERNET, &ether(&[0x86, 0xdd]), &v6(17, &[])[..39]).0, L3::Other(0x86dd));
    assert_eq!(walk(LinkType::ETHERNET, &ether(&[8, 6]), &[0; 28]).0, L3::Arp);
    assert_eq!(walk(LinkType::ETHERNET, &ether(&[0, 3]), &[0x42, 0x42, 3]).0, L3::Llc);
    assert_eq!(walk(LinkType::ETHERNET, &ether(&[0x88, 0xcc]), &[]), (L3::Other(0x88cc), 14, None, None));
    assert_eq!(walk(LinkType(147), &[], &packet).0, L3::Unknown);
}

#[test]
fn endless_tags_labels_and_extension_headers_end() {
    let tags = ether(&[0x81, 0, 0, 1].repeat(10_000));
    assert_eq!(walk(LinkType::ETHERNET, &tags, &[]).0, L3::Unknown);
    let labels = [&[0x88, 0x47][..], &[0; 40_000]].concat();
    assert_eq!(walk(LinkType::ETHERNET, &ether(&labels), &[]).0, L3::Unknown);
    assert_eq!(walk(LinkType::RAW, &[], &v6(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(5_000))).2, None);
}

proptest! {
    #[test]
    fn any_bytes_give_offsets_inside_the_frame(
        link in prop_oneof![Just(1u16), Just(101), Just(276), 0u16..300],
        start in prop_oneof![Just(vec![]), Just(ether(&[8, 0])), Just(ether(&[0x86, 0xdd, 0x60])),
            Just(ether(&[0x88, 0x47])), Just(ether(&[0x81, 0])), Just(ether(&[0x88, 0x64]))],
        rest in proptest::collection::vec(prop_oneof![Just(0u8), Just(44), any::<u8>()], 0..200),
    ) {
        let frame = [start, rest].concat();
        let layers = Layers::parse(LinkType(link), &frame);
        prop_assert!(layers.l3_offset <= layers.l3_end && layers.l3_end <= frame.len());
        prop_assert!(layers.l4_offset.is_none_or(|at| layers.l3_offset <= at && at <= frame.len()));
        prop_assert_eq!(layers.ip_protocol.is_some(), layers.is_ip());
        match layers.l3 {
            L3::V4 => prop_assert!(layers.l3_offset + 20 <= frame.len()),
            L3::V6 => prop_assert!(layers.l3_offset + 40 <= frame.len()),
            _ => prop_assert!(layers.l4_offset.is_none() && !layers.is_fragment()),
        }
    }

    #[test]
    fn the_short_way_for_plain_ipv4_gives_what_the_walk_gives(
        first in prop_oneof![Just(0x45u8), any::<u8>()],
        total in prop_oneof![0u16..80, any::<u16>()],
        fragment in prop_oneof![Just(0u16), Just(0x4000), any::<u16>()],
        protocol in prop_oneof![Just(17u8), Just(51), any::<u8>()],
        length in 0usize..80,
    ) {
        let mut frame = ether(&[8, 0, first, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(fragment.to_be_bytes());
        frame.extend([64, protocol]);
        frame.resize(length, 0);
        prop_assert_eq!(
            Layers::parse(LinkType::ETHERNET, &frame),
            Layers::parse_any(LinkType::ETHERNET, &frame)
        );
    }

    #[test]
    fn agrees_with_an_independent_parser(
        tags in 0usize..3, six in any::<bool>(), tcp in any::<bool>(), payload in 0usize..100,
    ) {
        let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let ip = etherparse::IpHeaders::from_slice(&v4(0, 0, &[])).unwrap().0;
        let ip = if six { etherparse::IpHeaders::from_slice(&v6(59, &[])).unwrap().0 } else { ip };
        let (one, two) = (5u16.try_into().unwrap(), 6u16.try_into().unwrap());
        let network = match tags {
            0 => link.ip(ip),
            1 => link.single_vlan(one).ip(ip),
            _ => link.double_vlan(one, two).ip(ip),
        };
        let mut frame = Vec::new();
        let body = vec![7; payload];
        if tcp {
            network.tcp(1, 2, 3, 4).write(&mut frame, &body).unwrap();
        } else {
            network.udp(1, 2).write(&mut frame, &body).unwrap();
        }
        let layers = Layers::parse(LinkType::ETHERNET, &frame);
        let sliced = etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
        let transport = sliced.transport.unwrap();
        let header = match &transport {
            etherparse::TransportSlice::Tcp(slice) => slice.slice(),
            etherparse::TransportSlice::Udp(slice) => slice.slice(),
            _ => unreachable!(),
        };
        let at = header.as_ptr() as usize - frame.as_ptr() as usize;
        prop_assert_eq!(layers.l4_offset, Some(at));
        prop_assert_eq!(layers.ip_protocol, Some(if tcp { 6 } else { 17 }));
        prop_assert_eq!(layers.l3_end, frame.len());
        prop_assert_eq!(usize::from(layers.vlan_tags), tags);
    }
}
