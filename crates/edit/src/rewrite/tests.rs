//! Whole frames through plans: what no other tool can be the judge of, and that nothing panics.

use proptest::prelude::*;
use wire::checksum::{finish, pseudo_v6, sum};
use wire::{LinkType, Mac};

use super::*;

const ETHERNET: LinkType = LinkType::ETHERNET;

fn edited(data: &[u8], plan: &Plan) -> (Vec<u8>, Verdict) {
    let mut frame = Frame { data: data.to_vec(), wire_len: data.len() as u32, ..Frame::default() };
    let verdict = edit(&mut frame, plan, ETHERNET, ETHERNET, Side::Client);
    assert_eq!(frame.wire_len as usize, frame.data.len());
    (frame.data, verdict)
}

fn ether(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), payload].concat()
}

fn host(n: u8) -> [u8; 16] {
    [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]
}

/// An IPv6 packet from host 1 to host 2.
fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0][..], &length, &[protocol, 9], &host(1), &host(2), payload].concat()
}

fn with_checksum(protocol: u8, mut upper: Vec<u8>, at: usize, hosts: [[u8; 16]; 2]) -> Vec<u8> {
    let total = pseudo_v6(hosts[0], hosts[1], protocol, upper.len()) + sum(&upper);
    upper[at..at + 2].copy_from_slice(&finish(total).to_be_bytes());
    upper
}

fn maps_and_ports() -> Plan {
    let mut ports = PortMap::default();
    port_map("80:8080", &mut ports).unwrap();
    let map_client = address_map("2001:db8::/32=fd00::/16,10.0.0.0/8=11.0.0.0/8").unwrap();
    Plan { map_server: map_client.clone(), map_client, ports, ..Plan::default() }
}

/// Bytes of a TCP segment to port 80 without a checksum.
fn tcp() -> Vec<u8> {
    let mut tcp = vec![4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
    tcp.extend([7; 30]);
    tcp
}

#[test]
fn ports_behind_extension_headers_are_mapped() {
    let upper = with_checksum(6, tcp(), 16, [host(1), host(2)]);
    // Hop-by-hop options of 16 bytes, then destination options of 8.
    let extensions = [[60, 1], [1, 12]].concat();
    let mut headers = [&extensions[..], &[0; 12], &[6, 0, 1, 4, 0, 0, 0, 0]].concat();
    headers.extend(&upper);
    let (out, verdict) = edited(&ether(0x86dd, &ipv6(0, &headers)), &maps_and_ports());
    assert_eq!(verdict, Verdict::Edited);
    let segment = &out[14 + 40 + 24..];
    assert_eq!(segment[2..4], 8080u16.to_be_bytes());
    let addresses: Vec<[u8; 16]> = out[22..54].chunks(16).map(|a| a.try_into().unwrap()).collect();
    assert_eq!(addresses[0][..2], [0xfd, 0]);
    assert_eq!(finish(pseudo_v6(addresses[0], addresses[1], 6, segment.len()) + sum(segment)), 0);
}

/// Hop-by-hop options, then a route over two hosts whose last is host 9, with `left` segments left.
fn on_a_route(kind: u8, left: u8, upper: u8, payload: &[u8]) -> Vec<u8> {
    let hosts = if kind == 4 { [host(9), host(8)] } else { [host(8), host(9)] };
    let last_entry = if kind == 4 { 1 } else { 0 };
    let options = [43, 0, 1, 4, 0, 0, 0, 0];
    [&options[..], &[upper, 4, kind, left, last_entry, 0, 0, 0], hosts.as_flattened(), payload].concat()
}

#[test]
fn checksums_behind_a_route_cover_its_end() {
    for (kind, left) in [(0, 1), (0, 2), (2, 1), (4, 1), (4, 2), (0, 0), (4, 0)] {
        let end = if left == 0 { host(2) } else { host(9) };
        for (protocol, at, upper) in
            [(6, 16, tcp()), (17, 6, [&[0, 80, 0, 80, 0, 12, 0, 0][..], &[7; 4]].concat())]
        {
            let right = with_checksum(protocol, upper, at, [host(1), end]);
            let whole = ether(0x86dd, &ipv6(0, &on_a_route(kind, left, protocol, &right)));
            let fix = Plan { fix_checksums: true, ..Plan::default() };
            assert_eq!(edited(&whole, &fix).0, whole, "type {kind}, {left} left: right sums stay");
            let mut wrong = whole.clone();
            let field = whole.len() - right.len() + at;
            wrong[field] ^= 0x5a;
            assert_eq!(edited(&wrong, &fix).0, whole, "type {kind}, {left} left: wrong sums become right");

            // Mapping the header's addresses, with sums computed afresh and with sums corrected.
            for fix_checksums in [false, true] {
                let (out, _) = edited(&whole, &Plan { fix_checksums, ..maps_and_ports() });
                let source: [u8; 16] = out[22..38].try_into().unwrap();
                let end = if left == 0 { out[38..54].try_into().unwrap() } else { end };
                let upper = &out[out.len() - right.len()..];
                assert_ne!((source, &out[38..54]), (host(1), &host(2)[..]));
                let total = pseudo_v6(source, end, protocol, upper.len()) + sum(upper);
                assert_eq!(finish(total), 0, "type {kind}, {left} left, mapped");
            }
        }
    }
}

#[test]
fn checksums_behind_a_route_that_cannot_be_read_are_left() {
    let upper =
        with_checksum(17, [&[0, 80, 0, 80, 0, 12, 0, 0][..], &[7; 4]].concat(), 6, [host(1), host(7)]);
    let whole = ether(0x86dd, &ipv6(0, &on_a_route(5, 1, 17, &upper)));
    assert_eq!(edited(&whole, &Plan { fix_checksums: true, ..Plan::default() }).0, whole);
    // They cover the header's source all the same: a type not known, one that is listed in short, and no address at all.
    let in_short = [17, 1, 3, 1, 0x80, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0];
    for route in [&[17, 4, 5, 1, 0, 0, 0, 0][..], &in_short, &[17, 0, 0, 1, 0, 0, 0, 0]] {
        let missing = (8 * (usize::from(route[1]) + 1)).saturating_sub(route.len());
        let whole = ether(0x86dd, &ipv6(43, &[route, &vec![8; missing], &upper].concat()));
        for fix_checksums in [false, true] {
            let (out, _) = edited(&whole, &Plan { fix_checksums, ..maps_and_ports() });
            let source: [u8; 16] = out[22..38].try_into().unwrap();
            assert_ne!((source, &out[38..54]), (host(1), &host(2)[..]));
            let upper = &out[out.len() - upper.len()..];
            assert_eq!(finish(pseudo_v6(source, host(7), 17, upper.len()) + sum(upper)), 0, "{route:?}");
        }
    }
}

#[test]
fn checksums_behind_an_ipv4_source_route_cover_its_end() {
    let segment = [0, 80, 0, 80, 0, 12, 0, 0, 7, 7, 7, 7];
    let mut packet = vec![0x47, 0, 0, 40, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([131, 7, 4, 10, 0, 0, 9, 1]);
    packet.extend(segment);
    let whole = ether(0x0800, &packet);
    let plan = Plan {
        fix_checksums: true,
        map_destination: address_map("10.0.0.2=10.5.5.5").unwrap(),
        ..Plan::default()
    };
    let right = |frame: &[u8], source: [u8; 4]| {
        let pseudo = wire::checksum::pseudo_v4(source, [10, 0, 0, 9], 17, 12);
        finish(sum(&frame[14..42])) == 0 && finish(pseudo + sum(&frame[42..])) == 0
    };
    // One without a checksum keeps having none.
    assert_eq!(edited(&whole, &plan).0[42..], segment);
    let mut summed = whole;
    summed[48] = 1;
    let (out, _) = edited(&summed, &plan);
    assert_eq!(out[30..34], [10, 5, 5, 5]);
    assert!(right(&out, [10, 0, 0, 1]));
    let (again, _) =
        edited(&out, &Plan { map_source: address_map("10.0.0.1=10.6.6.6").unwrap(), ..Plan::default() });
    assert!(right(&again, [10, 6, 6, 6]));
}

#[test]
fn a_quoted_packet_is_edited_and_the_messages_checksum_stays_right() {
    let inner = ipv6(6, &with_checksum(6, tcp(), 16, [host(1), host(2)]));
    let message = with_checksum(58, [&[1, 4, 0, 0, 0, 0, 0, 0], &inner[..]].concat(), 2, [host(1), host(2)]);
    let (out, _) = edited(&ether(0x86dd, &ipv6(58, &message)), &maps_and_ports());
    let (source, message) = (&out[22..38], &out[54..]);
    assert_eq!(message[16..32], *source);
    let pseudo = pseudo_v6(source.try_into().unwrap(), out[38..54].try_into().unwrap(), 58, message.len());
    assert_eq!(finish(pseudo + sum(message)), 0);
}

#[test]
fn a_later_fragments_payload_is_not_taken_for_ports() {
    let packet = |flags: u8| {
        let mut packet = vec![0x45, 0, 0, 40, 0, 1, 0, flags, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 80, 0, 80, 0, 20, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        ether(0x0800, &packet)
    };
    let payload = |out: Vec<u8>| out[34..].to_vec();
    let plan = maps_and_ports();
    assert_eq!(payload(edited(&packet(5), &plan).0), packet(5)[34..]);
    assert_eq!(payload(edited(&packet(0), &plan).0)[..4], [0x1f, 0x90, 0x1f, 0x90]);
}

#[test]
fn what_is_no_ethernet_ii_frame_is_kept_or_left_out() {
    let spanning_tree = ether(38, &[0x42; 46]);
    let mut plan = Plan { source_mac: PerSide::both(Mac([9; 6])), ..Plan::default() };
    assert_eq!(edited(&spanning_tree, &plan), (spanning_tree.clone(), Verdict::Unsupported));
    plan.drop_unsupported = true;
    assert_eq!(edited(&spanning_tree, &plan).1, Verdict::Left);
}

#[test]
fn virtual_routers_addresses_are_scrambled_and_groups_are_not() {
    let plan = Plan { scramble_mac: Some(MacScramble::new(42, 0)), ..Plan::default() };
    let packet = [0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    for (address, stays) in [
        ([0, 0, 0x5e, 0, 1, 7], false),
        ([0, 0, 0x5e, 0, 2, 9], false),
        ([1, 0, 0x5e, 1, 2, 3], true),
        ([0x33, 0x33, 0, 0, 0, 1], true),
        ([0xff; 6], true),
    ] {
        let mut frame = ether(0x0800, &packet);
        frame[..6].copy_from_slice(&address);
        frame[6..12].copy_from_slice(&address);
        let (out, _) = edited(&frame, &plan);
        assert_eq!((out[..6] == address, out[6..12] == address), (stays, stays), "{address:02x?}");
    }
}

#[test]
fn a_group_gets_its_ethernet_address_only_where_an_edit_made_it() {
    let mut packet = vec![0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 239, 129, 2, 3];
    let group = ether(0x0800, &packet);
    assert_eq!(edited(&group, &Plan::default()).0, group);
    let (out, _) = edited(&group, &Plan { always_group_mac: true, ..Plan::default() });
    assert_eq!(out[..6], [1, 0, 0x5e, 1, 2, 3]);
    packet[16..20].copy_from_slice(&[10, 0, 0, 9]);
    let map_destination = address_map("10.0.0.9=224.0.0.9").unwrap();
    let (out, _) = edited(&ether(0x0800, &packet), &Plan { map_destination, ..Plan::default() });
    assert_eq!(out[..6], [1, 0, 0x5e, 0, 0, 9]);
}

#[test]
fn cooked_frames_become_ethernet_with_their_senders_address() {
    let packet = ipv6(17, &[0; 8]);
    let cooked = [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 7, 0, 0, 0x86, 0xdd][..], &packet].concat();
    let plan = Plan { destination_mac: PerSide::both(Mac([2, 0, 0, 0, 0, 8])), ..Plan::default() };
    let mut frame = Frame { wire_len: cooked.len() as u32, data: cooked, ..Frame::default() };
    assert_eq!(edit(&mut frame, &plan, LinkType::LINUX_SLL, ETHERNET, Side::Client), Verdict::Edited);
    let header = [&[2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 7, 0x86, 0xdd][..], &packet].concat();
    assert_eq!((frame.wire_len, frame.data), (62, header));
}

/// All edits at once.
fn everything(fix: Option<FixLength>) -> Plan {
    Plan {
        strip_fcs: true,
        replace_mac: vec![(Mac([2, 0, 0, 0, 0, 1]), Mac([4; 6]))],
        scramble_mac: Some(MacScramble::new(5, 0)),
        vlan: Some(Vlan::Add { id: 5, priority: None, cfi: None, ether_type: 0x88a8 }),
        tos: Some(3),
        ttl: Some(Ttl::Add(3)),
        traffic_class: Some(4),
        flow_label: Some(5),
        tcp_shift: Some(6),
        fix_length: fix,
        cut_to_mtu: Some(100),
        scramble_ip: Some(7),
        fix_header_length: true,
        fix_checksums: true,
        always_group_mac: true,
        ..maps_and_ports()
    }
}

/// A new header, by number, and the type of frames with it.
fn headers(number: u8, input: LinkType) -> (Option<NewHeader>, LinkType) {
    match number {
        0 => (Some(NewHeader::Hdlc { address: 15, control: 0 }), LinkType::C_HDLC),
        1 => (Some(NewHeader::PppSerial), LinkType::PPP_SERIAL),
        2 => (Some(NewHeader::Raw), LinkType::RAW),
        3 => (Some(NewHeader::JuniperEthernet), LinkType::JUNIPER_ETHERNET),
        4 => (None, ETHERNET),
        _ => (None, input),
    }
}

/// A link type, with the header before an IPv4 packet.
fn linked() -> Vec<(u16, Vec<u8>)> {
    let macs = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let wifi = [&[8, 1, 0, 0][..], &macs, &macs[..6], &[0x10, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
    vec![
        (0, vec![2, 0, 0, 0]),
        (1, [&macs[..], &[8, 0]].concat()),
        (1, [&macs[..], &[0x81, 0, 0, 5, 8, 0]].concat()),
        (1, [&macs[..], &[0x88, 0x47, 0, 1, 1, 64]].concat()),
        (9, vec![0x21]),
        (50, vec![0xff, 3, 0, 0x21]),
        (101, vec![]),
        (104, vec![15, 0, 8, 0]),
        (105, wifi.clone()),
        (113, [&[0, 0, 0, 1, 0, 6][..], &macs[6..], &[0, 0, 8, 0]].concat()),
        (127, [&[0, 0, 8, 0, 0, 0, 0, 0][..], &wifi].concat()),
        (178, [&b"MGC\0"[..], &macs, &[8, 0]].concat()),
    ]
}

/// An IPv4 packet with a UDP datagram or a TCP segment, all checksums right.
fn packet(protocol: u8, addresses: [[u8; 4]; 2], ttl: u8, payload: &[u8]) -> Vec<u8> {
    let (mut upper, at) = if protocol == 6 { (tcp(), 16) } else { (vec![0, 7, 0, 80, 0, 0, 0, 0], 6) };
    upper.extend(payload);
    if protocol == 17 {
        let length = (upper.len() as u16).to_be_bytes();
        upper[4..6].copy_from_slice(&length);
    }
    let pseudo = wire::checksum::pseudo_v4(addresses[0], addresses[1], protocol, upper.len());
    let checksum = wire::checksum::finish_udp(pseudo + sum(&upper));
    upper[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    let length = (20 + upper.len() as u16).to_be_bytes();
    let mut head =
        [&[0x45, 0][..], &length, &[0, 1, 0, 0, ttl, protocol, 0, 0], &addresses.concat()].concat();
    let checksum = finish(sum(&head));
    head[10..12].copy_from_slice(&checksum.to_be_bytes());
    [head, upper].concat()
}

/// The checksums of the IPv4 packet with which a frame ends; padding there is none.
fn sound(packet: &[u8]) -> bool {
    let address = |at: usize| packet[at..at + 4].try_into().unwrap();
    let upper = &packet[20..];
    let pseudo = wire::checksum::pseudo_v4(address(12), address(16), packet[9], upper.len());
    let no_checksum = packet[9] == 17 && upper[6..8] == [0, 0];
    finish(sum(&packet[..20])) == 0 && (no_checksum || finish(pseudo + sum(upper)) == 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn right_checksums_stay_right_whatever_is_edited(
        (link, before) in prop::sample::select(linked()),
        into in 0u8..6,
        protocol in prop::sample::select(vec![6u8, 17]),
        addresses in any::<[[u8; 4]; 2]>(),
        ttl in any::<u8>(),
        payload in prop::collection::vec(any::<u8>(), 0..120),
        edits in any::<[bool; 10]>(),
        seed in 1u32..,
    ) {
        let [ports, shift, scramble, maps, tos, raise, fuzz, lengths, checksums, vlan] = edits;
        let (header, output) = headers(into, LinkType(link));
        let mut plan = if maps { maps_and_ports() } else { Plan::default() };
        plan.map_source = address_map("0.0.0.0/1=64.0.0.0/3").unwrap();
        if ports {
            port_map("0-9:9999", &mut plan.ports).unwrap();
        }
        plan = Plan {
            header,
            source_mac: PerSide::both(Mac([2; 6])),
            destination_mac: PerSide::both(Mac([4; 6])),
            tcp_shift: shift.then_some(seed),
            scramble_ip: scramble.then_some(seed),
            tos: tos.then_some(seed as u8),
            ttl: raise.then_some(Ttl::Add(seed as u8)),
            fuzz: fuzz.then(|| Fuzz::new(seed, 1).whole_payloads()),
            fix_header_length: lengths || fuzz,
            fix_checksums: checksums,
            vlan: vlan.then_some(Vlan::Add { id: 5, priority: None, cfi: None, ether_type: 0x8100 }),
            ..plan
        };
        let packet = packet(protocol, addresses, ttl, &payload);
        prop_assert!(sound(&packet));
        let data = [before, packet].concat();
        let mut frame = Frame { wire_len: data.len() as u32, data, ..Frame::default() };
        match edit(&mut frame, &plan, LinkType(link), output, Side::Client) {
            Verdict::Edited => {
                // A header without options, wherever it begins: the last one.
                let at = match output {
                    LinkType::RAW => 0,
                    LinkType::C_HDLC | LinkType::PPP_SERIAL => 4,
                    _ => (0..frame.data.len() - 27)
                        .find(|at| frame.data[at + 9] == protocol && frame.data[*at] == 0x45
                            && frame.data[at + 2..at + 4] == ((frame.data.len() - at) as u16).to_be_bytes())
                        .unwrap(),
                };
                prop_assert!(sound(&frame.data[at..]), "{:02x?}", frame.data);
            }
            Verdict::Left => prop_assert!(fuzz),
            // Juniper's header belongs before an Ethernet header.
            Verdict::Unsupported => prop_assert!(false, "an IP packet can be edited"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_an_edit_panic(
        kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x8847, 20]),
        head in prop::sample::select(vec![0x45u8, 0x40, 0x4f, 0x60, 0x00]),
        protocol in prop::sample::select(vec![0u8, 1, 6, 17, 41, 43, 44, 50, 51, 58, 60]),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        longer in 0u32..2000,
        link in prop::sample::select(vec![
            0u16, 1, 9, 50, 101, 104, 105, 108, 113, 119, 127, 163, 178, 192, 228, 229, 276,
        ]),
        into in prop::sample::select(vec![0, 1, 2, 3, 4, 5]),
        fix in prop::sample::select(vec![None, Some(FixLength::Pad), Some(FixLength::Truncate), Some(FixLength::Delete)]),
    ) {
        for (at, byte) in [(0, head), (6, protocol), (9, protocol)] {
            if let Some(old) = bytes.get_mut(at) {
                *old = byte;
            }
        }
        let data = if link == 1 { ether(kind, &bytes) } else { bytes };
        let wire_len = data.len() as u32 + longer;
        let mut frame = Frame { data, wire_len, ..Frame::default() };
        let (header, output) = headers(into, LinkType(link));
        let plan = Plan { header, fuzz: Some(Fuzz::new(longer, 2)), ..everything(fix) };
        edit(&mut frame, &plan, LinkType(link), output, Side::Server);
        prop_assert!(frame.data.len() <= frame.wire_len as usize);
    }

    #[test]
    fn an_empty_plan_changes_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let frame = ether(0x0800, &bytes);
        prop_assert_eq!(edited(&frame, &Plan::default()).0, frame);
    }
}

/// An SCTP packet with a DATA chunk, from port 80 to port 81, with a right CRC.
fn sctp_packet() -> Vec<u8> {
    let mut packet = vec![0, 80, 0, 81, 0, 0, 0, 7, 0, 0, 0, 0];
    packet.extend([0, 3, 0, 21, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0]);
    wire::crc::fix_sctp(&mut packet);
    packet
}

fn ipv4(protocol: u8, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 1]);
    packet.extend(flags.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = finish(sum(&packet));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&packet[..], payload].concat()
}

fn crc_is_right(packet: &[u8]) -> bool {
    wire::crc::sctp(packet).is_some_and(|right| packet[8..12] == right)
}

#[test]
fn sctps_crc_is_computed_afresh_in_both_versions_and_behind_routes() {
    let fix = Plan { fix_checksums: true, ..Plan::default() };
    let mut wrong = sctp_packet();
    wrong[8..12].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    // A route of a type of which nothing is known: which addresses TCP's checksum would cover does not matter.
    let route = [&[132, 0, 99, 1, 0, 0, 0, 0][..], &wrong].concat();
    for (kind, packet) in
        [(0x0800, ipv4(132, 0, &wrong)), (0x86dd, ipv6(132, &wrong)), (0x86dd, ipv6(43, &route))]
    {
        let (out, _) = edited(&ether(kind, &packet), &fix);
        let at = out.len() - wrong.len();
        assert_eq!(out[at..], sctp_packet(), "{kind:04x}");
        assert_eq!(edited(&ether(kind, &packet), &Plan::default()).0, ether(kind, &packet), "nobody asked");
    }
    // Fragments, and a header that is cut off, have no checksum that could be computed.
    for packet in [ipv4(132, 0x2000, &wrong), ipv4(132, 0x4000, &wrong[..11])] {
        assert_eq!(edited(&ether(0x0800, &packet), &fix).0, ether(0x0800, &packet));
    }
}

#[test]
fn sctps_crc_follows_ports_and_covers_no_address() {
    let plan = maps_and_ports();
    for (kind, packet) in [(0x0800, ipv4(132, 0, &sctp_packet())), (0x86dd, ipv6(132, &sctp_packet()))] {
        let whole = ether(kind, &packet);
        let at = whole.len() - sctp_packet().len();
        let (out, _) = edited(&whole, &plan);
        assert_eq!(out[at..at + 4], [0x1f, 0x90, 0, 81], "{kind:04x}");
        assert!(crc_is_right(&out[at..]) && out[at + 12..] == whole[at + 12..], "{out:02x?}");
        // What the capture cut off is counted by the header's length: the CRC is the same.
        let mut cut =
            Frame { data: whole[..at + 14].to_vec(), wire_len: whole.len() as u32, ..Frame::default() };
        edit(&mut cut, &plan, ETHERNET, ETHERNET, Side::Client);
        assert_eq!(cut.data, out[..at + 14]);
        // A wrong one is as wrong as before.
        let mut wrong = whole.clone();
        wrong[at + 9] ^= 0x40;
        let mut mended = edited(&wrong, &plan).0;
        mended[at + 9] ^= 0x40;
        assert_eq!(mended, out);
    }
    let addresses = Plan { map_source: address_map("10.0.0.1=10.5.5.5").unwrap(), ..Plan::default() };
    let (out, _) = edited(&ether(0x0800, &ipv4(132, 0, &sctp_packet())), &addresses);
    assert!(out[26..30] == [10, 5, 5, 5] && finish(sum(&out[14..34])) == 0 && out[34..] == sctp_packet());
    // Of a fragment it is not known how many bytes the CRC covers: its ports stay.
    let first = ether(0x0800, &ipv4(132, 0x2000, &sctp_packet()));
    assert_eq!(edited(&first, &plan).0[34..], sctp_packet());
}

/// A frame of this link type with `tags` before an IPv4 packet; and what edits make of it.
fn cooked(link: LinkType, tags: &[[u8; 4]]) -> Vec<u8> {
    let kind = |n: usize| tags.get(n).map_or([8, 0], |tag| [tag[0], tag[1]]);
    let sender = [2, 0, 0, 0, 0, 0xaa];
    let mut frame = match link {
        LinkType::LINUX_SLL => [&[0, 0, 0, 1, 0, 6][..], &sender, &[0, 0], &kind(0)].concat(),
        _ => [&kind(0)[..], &[0, 0, 0, 0, 0, 2, 0, 1, 0, 6], &sender, &[0, 0]].concat(),
    };
    for (n, tag) in tags.iter().enumerate() {
        frame.extend([tag[2], tag[3]]);
        frame.extend(kind(n + 1));
    }
    let packet =
        [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 53, 0, 8, 0, 0];
    frame.extend(packet);
    frame
}

const TAG: [u8; 4] = [0x81, 0, 0x60, 100];

#[test]
fn cooked_headers_are_edited_where_they_have_the_field() {
    let delete = Plan { vlan: Some(Vlan::Delete), ..Plan::default() };
    let add = Vlan::Add { id: 100, priority: Some(3), cfi: None, ether_type: 0x8100 };
    let add = Plan { vlan: Some(add), ..Plan::default() };
    let outer: [u8; 4] = [0x88, 0xa8, 0, 7];
    for link in [LinkType::LINUX_SLL, LinkType::LINUX_SLL2] {
        let edited = |data: Vec<u8>, plan: &Plan, output: LinkType| {
            let mut frame = Frame { wire_len: data.len() as u32, data, ..Frame::default() };
            assert_eq!(edit(&mut frame, plan, link, output, Side::Client), Verdict::Edited);
            assert_eq!(frame.wire_len as usize, frame.data.len());
            frame
        };
        assert_eq!(edited(cooked(link, &[TAG]), &delete, link).data, cooked(link, &[]));
        assert_eq!(edited(cooked(link, &[outer, TAG]), &delete, link).data, cooked(link, &[TAG]));
        assert_eq!(edited(cooked(link, &[]), &delete, link).data, cooked(link, &[]));
        assert_eq!(edited(cooked(link, &[]), &add, link).data, cooked(link, &[TAG]));
        // Behind a tag the packet is edited as any other.
        let mut ports = PortMap::default();
        port_map("53:54", &mut ports).unwrap();
        let mapped = edited(cooked(link, &[TAG]), &Plan { ports, ..Plan::default() }, link).data;
        assert!(mapped.ends_with(&[0, 54, 0, 54, 0, 8, 0, 0]), "{mapped:?}");
        // The sender's address is set, replaced, scrambled; there is no receiver's.
        let mac = Mac([2, 0, 0, 0, 0, 0x77]);
        let at = if link == LinkType::LINUX_SLL { 6 } else { 12 };
        let plans = [
            Plan { source_mac: PerSide::both(mac), ..Plan::default() },
            Plan { replace_mac: vec![(Mac([2, 0, 0, 0, 0, 0xaa]), mac)], ..Plan::default() },
        ];
        for plan in &plans {
            let frame = edited(cooked(link, &[]), plan, link);
            assert_eq!((&frame.data[at..at + 6], frame.lacking), (&mac.0[..], Lacking::default()));
        }
        let scramble = Plan { scramble_mac: Some(MacScramble::new(3, 0)), ..Plan::default() };
        assert_ne!(edited(cooked(link, &[]), &scramble, link).data[at..at + 6], [2, 0, 0, 0, 0, 0xaa]);
        let receiver = Plan { destination_mac: PerSide::both(mac), ..Plan::default() };
        let frame = edited(cooked(link, &[]), &receiver, link);
        assert_eq!(frame.data, cooked(link, &[]));
        assert_eq!(frame.lacking, Lacking { destination: true, ..Lacking::default() });
        // As Ethernet the tag stays, or goes if it is to go.
        let ip = cooked(link, &[]).split_off(if link == LinkType::LINUX_SLL { 16 } else { 20 });
        let head = |kind: &[u8]| [&mac.0[..], &[2, 0, 0, 0, 0, 0xaa], kind, &ip].concat();
        let tagged = edited(cooked(link, &[TAG]), &receiver, ETHERNET);
        assert_eq!(tagged.data, head(&[0x81, 0, 0x60, 100, 8, 0]));
        let untagged = Plan { vlan: Some(Vlan::Delete), ..receiver.clone() };
        assert_eq!(edited(cooked(link, &[TAG]), &untagged, ETHERNET).data, head(&[8, 0]));
    }
}

#[test]
fn what_a_header_does_not_have_is_told() {
    let packet = cooked(LinkType::LINUX_SLL, &[]).split_off(16);
    let everything = Plan {
        source_mac: PerSide::both(Mac([2; 6])),
        destination_mac: PerSide::both(Mac([2; 6])),
        scramble_mac: Some(MacScramble::new(1, 0)),
        vlan: Some(Vlan::Delete),
        ..Plan::default()
    };
    let all = Lacking { source: true, destination: true, addresses: true, tag: true };
    let raw = |plan: &Plan, header: Option<NewHeader>, output| {
        let mut frame = Frame { wire_len: packet.len() as u32, data: packet.clone(), ..Frame::default() };
        let plan = Plan { header, ..plan.clone() };
        assert_eq!(edit(&mut frame, &plan, LinkType::RAW, output, Side::Client), Verdict::Edited);
        frame.lacking
    };
    assert_eq!(raw(&everything, None, LinkType::RAW), all);
    assert_eq!(raw(&everything, None, ETHERNET), Lacking::default());
    assert_eq!(raw(&Plan::default(), None, LinkType::RAW), Lacking::default());
    // A header in the place of Ethernet's has none of it either.
    let mut frame = Frame { data: ether(0x0800, &packet), ..Frame::default() };
    frame.wire_len = frame.data.len() as u32;
    let plan = Plan { header: Some(NewHeader::Raw), ..everything };
    assert_eq!(edit(&mut frame, &plan, ETHERNET, LinkType::RAW, Side::Client), Verdict::Edited);
    assert_eq!((frame.data, frame.lacking), (packet, all));
}

#[test]
fn fields_that_were_captured_are_edited_whatever_else_was() {
    let header = [0x45, 0, 0, 60, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let plan = Plan { tcp_shift: Some(1), ..maps_and_ports() };
    let whole = ether(0x0800, &[&header[..], &tcp()[..40]].concat());
    let right = edited(&whole, &plan).0;
    for captured in 0..=40 {
        let mut frame =
            Frame { data: whole[..34 + captured].to_vec(), wire_len: whole.len() as u32, ..Frame::default() };
        edit(&mut frame, &plan, ETHERNET, ETHERNET, Side::Client);
        // A port, or a number, of which not all was captured stays.
        let cut = match captured {
            0..4 => 34,
            4..8 => 38,
            8..12 => 42,
            17 => 50,
            _ => 34 + captured,
        };
        assert_eq!(frame.data[14..cut], right[14..cut], "{captured}");
        assert_eq!(frame.data[cut..], whole[cut..34 + captured], "{captured}");
    }
    // Padding is no header: of eight bytes of TCP in a frame of 60 the checksum's place is not the packet's.
    let mut short = header;
    short[3] = 28;
    let padded = ether(0x0800, &[&short[..], &tcp()[..8], &[0xee; 18]].concat());
    let out = edited(&padded, &plan).0;
    assert_eq!((&out[36..38], &out[42..]), (&8080u16.to_be_bytes()[..], &[0xee; 18][..]));
}

#[test]
fn a_udp_checksum_covers_what_udp_says() {
    let fix = Plan { fix_checksums: true, ..Plan::default() };
    let data = [3, 232, 7, 208, 0, 12, 0x11, 0x11, 1, 2, 3, 4];
    let behind = [9; 8];
    let six = edited(&ether(0x86dd, &ipv6(17, &[&data[..], &behind].concat())), &fix).0;
    let datagram = &six[54..66];
    assert_eq!(finish(pseudo_v6(host(1), host(2), 17, 12) + sum(datagram)), 0);
    assert_eq!(six[66..], behind);
    // More than there is, or less than its header, cannot be: all there is counts.
    for length in [0, 7, 21] {
        let mut wrong = data;
        wrong[5] = length;
        let whole = ether(0x86dd, &ipv6(17, &[&wrong[..], &behind].concat()));
        let out = edited(&whole, &fix).0;
        assert_eq!(finish(pseudo_v6(host(1), host(2), 17, 20) + sum(&out[54..])), 0, "{length}");
    }
}

#[test]
fn what_maps_found_is_counted_for_each_entry_and_hosts_that_became_one_are_known() {
    let map = |text| address_map(text).expect("a map");
    let map_client = map("10.1.0.0/16=192.0.2.1,10.0.0.0/8=172.16.0.0/12,11.0.0.0/8=12.0.0.0/8");
    let mut ports = PortMap::default();
    port_map("80:8080", &mut ports).expect("a map");
    let plan = Plan {
        map_server: map_client.clone(),
        map_client,
        map_source: map("10.9.9.9=1.1.1.1"),
        ports,
        ..Plan::default()
    };
    let packet = |source: [u8; 4], destination: [u8; 4]| {
        let mut bytes = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
        bytes.extend([source, destination].concat());
        bytes.extend([0, 80, 0, 53, 0, 8, 0, 0]);
        ether(0x0800, &bytes)
    };
    let mut uses = Uses::default();
    let mut pass = |frame: Vec<u8>, side| {
        let before = uses::Ends::of(ETHERNET, &frame).expect("ends");
        let mut edited = Frame { wire_len: frame.len() as u32, data: frame, ..Frame::default() };
        edit(&mut edited, &plan, ETHERNET, ETHERNET, side);
        uses.count(&plan, side, before, || uses::Ends::of(ETHERNET, &edited.data));
    };
    pass(packet([10, 1, 0, 1], [10, 1, 0, 2]), Side::Client);
    pass(packet([10, 2, 0, 1], [10, 1, 0, 3]), Side::Server);
    pass(packet([9, 9, 9, 9], [8, 8, 8, 8]), Side::Client);
    // A request of ARP for 10.1.0.1, by 10.2.0.1.
    let arp = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 2, 0, 1, 0, 0, 0, 0, 0, 0, 10, 1, 0, 1];
    pass(ether(0x0806, &arp), Side::Client);
    let both: Vec<u64> = uses.client.iter().zip(&uses.server).map(|(a, b)| a + b).collect();
    assert_eq!(both, [4, 2, 0]);
    assert_eq!(uses.source, [0]);
    assert_eq!((uses.ports(|port| port == 80), uses.ports(|port| port == 81)), (3, 0));
    let merged = uses.merged().expect("few addresses");
    let told: Vec<String> = merged.iter().map(|(new, old)| format!("{new}: {old:?}")).collect();
    assert_eq!(told, ["192.0.2.1: [10.1.0.1, 10.1.0.2, 10.1.0.3]"]);
}
