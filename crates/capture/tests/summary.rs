//! What a summary says of small captures whose content is known.

mod common;

use common::{LITTLE, reader};
use netdyno_capture::info::{Info, Summary, summarise};

/// Ethernet, IPv4 from 10.0.0.`host` to 192.0.2.1.
fn ipv4(host: u8, protocol: u8, fragment: u16, transport: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((20 + transport.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, protocol, 0, 0, 10, 0, 0, host, 192, 0, 2, 1]);
    frame.extend(transport);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// UDP or TCP from port `source` to port `destination`.
fn ports(source: u16, destination: u16) -> Vec<u8> {
    [&source.to_be_bytes()[..], &destination.to_be_bytes(), &[0; 16]].concat()
}

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let records =
        frames.iter().zip(0..).map(|(frame, n)| LITTLE.pcap_record(100 + n, 0, frame, frame.len() as u32));
    [vec![LITTLE.pcap_header(0xa1b2_c3d4, 65535, 1)], records.collect()].concat().concat()
}

fn mixed() -> Info {
    let arp = [&[0x02; 12][..], &[0x08, 0x06], &[0; 46]].concat();
    let frames = [
        ipv4(1, 17, 0, &ports(40_000, 53)),
        ipv4(1, 17, 0, &ports(40_000, 53)),
        ipv4(2, 6, 0, &ports(8080, 50_000)),
        ipv4(3, 17, 0x2000, &ports(1, 2)),
        ipv4(3, 17, 0x0003, &[0xff; 1400]),
        ipv4(4, 1, 0, &[8, 0, 0, 0]),
        arp,
    ];
    summarise(&mut reader(&capture(&frames)).unwrap()).unwrap()
}

#[test]
fn every_frame_is_accounted_for() {
    let info = mixed();
    assert_eq!((info.frames, info.bytes, info.duration_ns), (7, 6 * 60 + 1434, 6_000_000_000));
    assert_eq!((info.flows, info.conversations, info.flows_exact), (4, 4, true));
    assert_eq!((info.frames_without_flow.not_ip, info.frames_without_flow.later_fragments), (1, 1));
    assert_eq!((info.addresses.ipv4_sources, info.addresses.ipv4_destinations), (4, 1));
    let sizes: Vec<_> = info.sizes_with_fcs.iter().filter(|class| class.frames > 0).collect();
    assert_eq!((sizes[0].from, sizes[0].frames, sizes[1].from, sizes[1].frames), (64, 6, 1024, 1));
    let protocols: Vec<_> = info.protocols.iter().map(|p| (p.name.as_str(), p.frames)).collect();
    assert_eq!(protocols, [("IPv4", 6), ("ARP", 1), ("UDP", 4), ("ICMP", 1), ("TCP", 1)]);
    let ports: Vec<_> = info.ports.iter().map(|p| (p.transport, p.port, p.frames)).collect();
    assert_eq!(ports, [("udp", 53, 2), ("tcp", 8080, 1), ("udp", 1, 1)]);
}

#[test]
fn json_has_the_names_that_others_rely_on() {
    let json = serde_json::to_value(mixed()).unwrap();
    for (name, value) in [("frames", 7u64), ("bytes", 1794), ("duration_ns", 6_000_000_000), ("flows", 4)] {
        assert_eq!(json[name], value, "{name}");
    }
    assert_eq!(json["first_time"], "1970-01-01T00:01:40.000000000Z");
}

#[test]
fn text_reads_well() {
    let text = mixed().text();
    for line in [
        "  Format          pcap, little-endian, microseconds",
        "  Link type       Ethernet",
        "  Bytes           1,794 (1.79 kB without FCS)",
        "  Average rate    1.17 pps, 2.39 kbit/s",
        "  Flows           4 one-way, 4 both ways; 1.2 frames a flow",
        "  Without a flow  2 frames: 1 not IP, 1 later fragments",
        "  IPv4 addresses  4 sources, 1 destination",
        "  64                                         6      85.7 %",
        "  udp 53 dns                                 2      28.6 %       120 B",
    ] {
        assert!(text.lines().any(|l| l == line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn both_directions_are_two_flows_and_one_conversation() {
    let mut back = ipv4(1, 17, 0, &ports(53, 40_000));
    let (source, destination) = (back[26..30].to_vec(), back[30..34].to_vec());
    back[26..30].copy_from_slice(&destination);
    back[30..34].copy_from_slice(&source);
    let file = capture(&[ipv4(1, 17, 0, &ports(40_000, 53)), back]);
    let info = summarise(&mut reader(&file).unwrap()).unwrap();
    assert_eq!((info.flows, info.conversations), (2, 1));
}

#[test]
fn beyond_the_limit_flows_are_a_lower_bound_and_said_to_be() {
    let frames: Vec<_> = (0..20).map(|host| ipv4(host, 17, 0, &ports(1, 2))).collect();
    let mut reader = reader(&capture(&frames)).unwrap();
    let mut summary = Summary::new(5);
    while let Some(record) = reader.next_record().unwrap() {
        summary.add(&record);
    }
    let info = summary.finish(&reader);
    assert_eq!((info.flows, info.flows_exact, info.frames), (5, false, 20));
    assert!(info.text().contains("at least 5 one-way"), "{}", info.text());
    assert!(info.warnings[0].contains("lower bounds"));
}

#[test]
fn an_empty_capture_has_no_rates() {
    let info = summarise(&mut reader(&capture(&[])).unwrap()).unwrap();
    assert_eq!((info.frames, info.frames_per_second, info.first_time_ns), (0, None, None));
    assert!(info.text().contains("The capture has a header and no frames"));
}
