use std::collections::BTreeMap;

use proptest::prelude::*;
use wire::bytes::be16;
use wire::checksum::{finish, pseudo_v4, pseudo_v6, sum};

use super::*;

const LINK: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];

fn packet(v6: bool, protocol: u8, upper: &[u8]) -> Packet {
    let mut bytes = if v6 {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
        bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes
    } else {
        vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
    };
    bytes.extend(upper);
    let mut packet = Packet { bytes };
    packet.finish_upper();
    packet
}

fn tcp(v6: bool, flags: u8, data: &[u8]) -> Packet {
    let mut upper = vec![3, 0xe8, 0, 80, 0, 0, 3, 0xe8, 0, 0, 7, 0xd0, 0x50, flags, 0x20, 0, 0, 0, 0, 0];
    upper.extend(data);
    packet(v6, 6, &upper)
}

fn udp(v6: bool, data: &[u8]) -> Packet {
    let mut upper = vec![3, 0xe8, 0, 53];
    upper.extend((8 + data.len() as u16).to_be_bytes());
    upper.extend([0, 0]);
    upper.extend(data);
    packet(v6, 17, &upper)
}

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|byte| (byte * 7 + byte / 251) as u8).collect()
}

fn apply(rules: &str, packet: &Packet) -> Vec<Packet> {
    let rules = Rules::parse(rules, 7).unwrap();
    let frames = rules.apply(&[&LINK, packet.bytes.as_slice()].concat(), LINK.len(), 3).unwrap();
    frames
        .iter()
        .map(|frame| {
            assert_eq!(frame[..LINK.len()], LINK);
            Packet { bytes: frame[LINK.len()..].to_vec() }
        })
        .collect()
}

/// Puts fragments together; where two overlap, what came first (RFC 815 leaves it open) or last stays.
fn reassembled(fragments: &[Packet], favour: Favour) -> Vec<u8> {
    let mut bytes = BTreeMap::new();
    let mut end = None;
    for fragment in fragments {
        let layout = fragment.layout().unwrap();
        assert!(layout.fragment);
        let at = if layout.v6 { layout.upper - 6 } else { 6 };
        let word = be16(&fragment.bytes, at).unwrap();
        let (offset, more) = if layout.v6 { (word & 0xfff8, word & 1) } else { (word << 3, word & 0x2000) };
        let payload = &fragment.bytes[layout.upper..];
        assert!(more == 0 || payload.len() % 8 == 0);
        if more == 0 {
            assert_eq!(end.replace(usize::from(offset) + payload.len()), None);
        }
        for (at, byte) in payload.iter().enumerate() {
            let at = usize::from(offset) + at;
            match favour {
                Favour::Old => _ = bytes.entry(at).or_insert(*byte),
                Favour::New => _ = bytes.insert(at, *byte),
            }
        }
    }
    let end = end.unwrap();
    assert!(bytes.keys().copied().eq(0..end));
    bytes.into_values().collect()
}

fn checksums_are_right(packet: &Packet) -> bool {
    let layout = packet.layout().unwrap();
    let bytes = &packet.bytes;
    let upper = &bytes[layout.upper..];
    let length_is_right = if layout.v6 {
        usize::from(be16(bytes, 4).unwrap()) + 40 == bytes.len()
    } else {
        usize::from(be16(bytes, 2).unwrap()) == bytes.len() && finish(sum(&bytes[..layout.upper])) == 0
    };
    let pseudo = if layout.v6 {
        pseudo_v6(
            bytes[8..24].try_into().unwrap(),
            bytes[24..40].try_into().unwrap(),
            layout.protocol,
            upper.len(),
        )
    } else {
        pseudo_v4(
            bytes[12..16].try_into().unwrap(),
            bytes[16..20].try_into().unwrap(),
            layout.protocol,
            upper.len(),
        )
    };
    length_is_right && (layout.fragment || finish(pseudo + sum(upper)) == 0)
}

#[test]
fn segments_of_a_packet_on_a_route_have_checksums_of_its_end() {
    let whole = tcp(true, 0x18, &data(40));
    let [routed] = &apply("ip6_opt route 1 2001:db8::9", &whole)[..] else { panic!() };
    let segments = apply("tcp_seg 16", routed);
    assert_eq!(segments.len(), 3);
    for segment in segments {
        let (source, end) =
            (segment.bytes[8..24].try_into().unwrap(), segment.bytes[48..64].try_into().unwrap());
        let upper = &segment.bytes[64..];
        assert_eq!(finish(pseudo_v6(source, end, 6, upper.len()) + sum(upper)), 0);
    }
}

#[test]
fn fragments_are_put_together_again_to_what_was_taken_apart() {
    for v6 in [false, true] {
        for (whole, length) in [(udp(v6, &data(300)), 308), (tcp(v6, 0x18, &data(300)), 320)] {
            for size in [8, 16, 24, 64, 304] {
                for (overlap, favour) in
                    [("", Favour::Old), ("", Favour::New), ("old", Favour::Old), ("new", Favour::New)]
                {
                    let fragments = apply(&format!("ip_frag {size} {overlap}"), &whole);
                    let start = if v6 { 40 } else { 20 };
                    assert_eq!(reassembled(&fragments, favour), whole.bytes[start..], "{size} {overlap}");
                    assert!(fragments.iter().all(checksums_are_right));
                    assert!(fragments.len() >= length / size.max(24) / 2);
                }
            }
        }
    }
}

#[test]
fn sctps_checksum_is_made_right_with_its_header_whole() {
    let mut upper = vec![3, 0xe8, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0];
    upper.extend([0, 3, 0, 116, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    upper.extend(data(100));
    for v6 in [false, true] {
        let whole = packet(v6, packet::SCTP, &upper);
        let start = if v6 { 40 } else { 20 };
        assert_eq!(wire::crc::sctp(&whole.bytes[start..]).unwrap(), whole.bytes[start + 8..start + 12]);
        let fragments = apply("ip_frag 8", &whole);
        assert_eq!(reassembled(&fragments, Favour::Old), whole.bytes[start..]);
        let first = fragments[0].layout().unwrap().upper;
        assert_eq!(
            fragments[0].bytes[first..],
            whole.bytes[start..start + 16],
            "12 bytes are no multiple of 8"
        );
    }
}

#[test]
fn the_longest_packets_are_taken_apart_too() {
    // The data of the longest packets that IPv6 and IPv4 can have, behind UDP's header of 8 bytes.
    for (v6, most) in [(true, 65535), (false, 65515)] {
        let whole = udp(v6, &data(most - 8));
        for size in [65528, 65520, 65512, 65504, 32768, 1480] {
            for overlap in ["", "old", "new"] {
                let fragments = apply(&format!("ip_frag {size} {overlap}"), &whole);
                if size >= most {
                    assert_eq!(fragments, std::slice::from_ref(&whole), "{size} {overlap}");
                    continue;
                }
                let favour = if overlap == "new" { Favour::New } else { Favour::Old };
                let start = if v6 { 40 } else { 20 };
                assert!(fragments.iter().all(checksums_are_right), "{size} {overlap}, IPv6 {v6}");
                assert_eq!(reassembled(&fragments, favour), whole.bytes[start..], "{size} {overlap}");
            }
        }
    }
}

#[test]
fn overlaps_hide_the_data_from_who_favours_the_other() {
    for size in [16, 24] {
        let whole = udp(false, &data(300));
        let fragments = apply(&format!("ip_frag {size} old"), &whole);
        assert_ne!(reassembled(&fragments, Favour::New), whole.bytes[20..]);
    }
}

#[test]
fn segments_carry_the_same_bytes_under_the_same_numbers() {
    for v6 in [false, true] {
        for overlap in ["", "old", "new"] {
            let whole = tcp(v6, 0x19, &data(301));
            let mut bytes = BTreeMap::new();
            let segments = apply(&format!("tcp_seg 24 {overlap}"), &whole);
            for segment in &segments {
                assert!(checksums_are_right(segment));
                let (layout, payload) = segment.tcp().unwrap();
                let header = &segment.bytes[layout.upper..];
                let sequence = u32::from_be_bytes(header[4..8].try_into().unwrap());
                let end = sequence as usize - 1000 + segment.bytes.len() - payload;
                assert_eq!(header[13] & 1 != 0, end == 301, "FIN only at the end");
                for (at, byte) in segment.bytes[payload..].iter().enumerate() {
                    let at = sequence as usize - 1000 + at;
                    match overlap {
                        "new" => _ = bytes.insert(at, *byte),
                        _ => _ = bytes.entry(at).or_insert(*byte),
                    }
                }
            }
            assert!(segments.len() > 10);
            assert_eq!(bytes.into_values().collect::<Vec<_>>(), data(301));
        }
    }
}

#[test]
fn a_syn_with_data_counts_for_one() {
    let segments = apply("tcp_seg 10", &tcp(false, 0x02, &data(25)));
    let numbers: Vec<(u8, u8)> = segments.iter().map(|s| (s.bytes[27], s.bytes[33])).collect();
    assert_eq!(numbers, [(0xe8, 2), (0xe8 + 11, 0), (0xe8 + 21, 0)]);
}

#[test]
fn chaff_has_right_checksums_but_where_it_must_not() {
    for v6 in [false, true] {
        let whole = tcp(v6, 0x18, &data(60));
        for kind in ["cksum", "null", "paws", "rexmit", "seq", "syn", "3"] {
            let both = apply(&format!("tcp_chaff {kind}"), &whole);
            assert_eq!(both.len(), 2, "{kind}");
            let chaff = both.iter().find(|packet| **packet != whole).unwrap();
            assert!(both.contains(&whole));
            assert_eq!(checksums_are_right(chaff), kind != "cksum", "{kind}");
        }
        assert_eq!(
            apply("tcp_chaff seq", &tcp(v6, 0x10, &[])).len(),
            1,
            "an empty segment has no data to hide"
        );
        assert_eq!(apply("tcp_chaff seq", &udp(v6, &data(9))).len(), 1);
        assert_eq!(apply("ip_chaff dup", &whole).len(), 2);
        assert_eq!(apply("ip_chaff opt", &whole).len(), if v6 { 1 } else { 2 });
    }
}

#[test]
fn old_time_stamps_replace_those_that_are_there() {
    let mut upper = vec![3, 0xe8, 0, 80, 0, 0, 3, 0xe8, 0, 0, 7, 0xd0, 0x80, 0x18, 0x20, 0, 0, 0, 0, 0];
    upper.extend([1, 1, 8, 10, 9, 9, 9, 9, 8, 8, 8, 8]);
    upper.extend(data(20));
    let whole = packet(false, 6, &upper);
    let both = apply("tcp_chaff paws", &whole);
    let chaff = both.iter().find(|packet| **packet != whole).unwrap();
    assert_eq!(chaff.bytes[40..52], [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(chaff.bytes.len(), whole.bytes.len());
}

#[test]
fn options_stand_where_they_belong() {
    let whole = tcp(false, 0x18, &data(4));
    let [mss] = &apply("tcp_opt mss 1400", &whole)[..] else { panic!() };
    assert_eq!((mss.bytes[32] >> 4, &mss.bytes[40..44]), (6, &[2, 4, 5, 0x78][..]));
    assert!(checksums_are_right(mss));
    let [route] = &apply("ip_opt lsrr 4 10.0.0.9", &whole)[..] else { panic!() };
    assert_eq!((route.bytes[0], &route.bytes[20..28]), (0x47, &[1, 131, 7, 4, 10, 0, 0, 9][..]));
    assert!(checksums_are_right(route));
    let [routed] = &apply("ip6_opt route 1 2001:db8::9", &tcp(true, 0x18, &data(4)))[..] else { panic!() };
    assert_eq!((routed.bytes[6], &routed.bytes[40..48]), (43, &[6, 2, 0, 1, 0, 0, 0, 0][..]));
    let full = apply(&"tcp_opt raw 01010101\n".repeat(20), &whole);
    assert_eq!(full[0].bytes[32] >> 4, 15, "the header is full, and no longer");
}

/// RFC 791 section 3.1: options without the copied flag stay with the first fragment.
#[test]
fn only_copied_options_go_into_every_fragment() {
    let whole = udp(false, &data(60));
    let fragments = apply("ip_opt raw 44040500\nip_opt lsrr 4 10.0.0.9\nip_frag 24", &whole);
    let headers: Vec<u8> = fragments.iter().map(|fragment| fragment.bytes[0] & 0xf).collect();
    // A time stamp (no copied flag) of one word and a source route of two, which is padded instead of preceded.
    assert_eq!(headers, [8, 7, 7]);
}

#[test]
fn padding_stays_unless_the_packet_changes() {
    let frame = [&LINK[..], &udp(false, b"hello").bytes, &[0; 13]].concat();
    let apply = |rules| Rules::parse(rules, 1).unwrap().apply(&frame, LINK.len(), 1).unwrap();
    assert_eq!(apply("ip_frag 64"), std::slice::from_ref(&frame));
    assert_eq!(apply("ip_ttl 9")[0].len(), frame.len() - 13);
    // Cut off by the capture.
    let cut = &frame[..30];
    assert_eq!(Rules::parse("ip_frag 8", 1).unwrap().apply(cut, LINK.len(), 1).unwrap(), [cut.to_vec()]);
}

#[test]
fn the_same_seed_and_number_give_the_same_frames() {
    let frame = [&LINK[..], &tcp(false, 0x18, &data(500)).bytes].concat();
    let text = "tcp_seg 16 new\nip_chaff dup\norder random\ndup random 50\ndrop random 50";
    let apply = |seed, number| Rules::parse(text, seed).unwrap().apply(&frame, LINK.len(), number).unwrap();
    assert_eq!(apply(1, 1), apply(1, 1));
    assert_ne!(apply(1, 1), apply(2, 1));
    assert_ne!(apply(1, 1), apply(1, 2));
}

#[test]
fn order_and_losses() {
    let whole = tcp(false, 0x18, &data(40));
    let plain = apply("tcp_seg 10", &whole);
    let mut reversed = apply("tcp_seg 10\norder reverse", &whole);
    reversed.reverse();
    assert_eq!(reversed, plain);
    assert_eq!(apply("tcp_seg 10\ndrop first 100", &whole), plain[1..]);
    assert_eq!(apply("tcp_seg 10\ndrop last 100", &whole), plain[..3]);
    assert_eq!(apply("tcp_seg 10\ndup last 100", &whole)[3..], [plain[3].clone(), plain[3].clone()]);
    assert!(apply("drop first 100\norder random\ndup first 100", &whole).is_empty());
}

#[test]
fn one_frame_becomes_only_so_many() {
    let frame = [&LINK[..], &tcp(false, 0x18, &data(60_000)).bytes].concat();
    let rules = Rules::parse(&format!("tcp_seg 1\n{}", "ip_chaff dup\n".repeat(30)), 1).unwrap();
    assert_eq!(rules.apply(&frame, LINK.len(), 1), Err(TooMany));
}

#[test]
fn without_a_rule_that_changes_something_frames_stay_as_they_are() {
    let frame = [&LINK[..], &tcp(false, 0x18, &data(40)).bytes, &[0; 3]].concat();
    for text in ["", "# nothing", "\n\n", &"print\n".repeat(3000)] {
        let rules = Rules::parse(text, 1).unwrap();
        assert_eq!(rules.apply(&frame, LINK.len(), 1), Ok(vec![frame.clone()]), "{text:?}");
    }
}

#[test]
fn what_is_no_rule_is_named_with_its_line() {
    let cases = [
        ("ip_ttl 5\n\nbogus 3", "line 3: bogus is no rule"),
        ("ip_frag 20", "multiple of 8"),
        // The words that tcprewrite 4.5.5's own tests look for.
        ("ip_frag 0", "must be between 1 and 65535"),
        ("ip_frag -8", "must be between 1 and 65535"),
        ("tcp_seg 0", "must be between 1 and 65535"),
        ("ip_frag 65536", "must be between 1 and 65535"),
        ("ip_frag 24 sideways", "old, new or nothing"),
        ("ip_frag", "ip_frag SIZE"),
        ("tcp_seg x", "not \"x\""),
        ("drop first 0", "from 1 to 100"),
        ("ip_chaff foo", "dup, opt or a TTL"),
        ("ip_opt lsrr 4", "lsrr|ssrr"),
        ("ip_opt raw zz", "hexadecimal"),
        ("ip_opt raw 0\u{e9}1", "hexadecimal"),
        ("tcp_opt wscale 300", "from 0 to 255"),
        ("ip6_opt raw 0104", "multiple of 8"),
        ("ip6_opt route 1 10.0.0.1", "not an address"),
        ("delay first 10", "captured time"),
        ("print all", "nothing stands behind it"),
        ("echo hello", "comment"),
    ];
    for (text, wanted) in cases {
        let error = Rules::parse(text, 1).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_rules_panic(
        start in prop_oneof![Just(0x45u8), Just(0x60u8), Just(0x4fu8), any::<u8>()],
        mut bytes in proptest::collection::vec(any::<u8>(), 1..200),
        true_length in any::<bool>(),
        pick in proptest::collection::vec(0..RULES.len(), 1..5),
        number in any::<u64>(),
    ) {
        bytes[0] = start;
        if true_length && bytes.len() >= 40 {
            let length = bytes.len() as u16;
            if start >> 4 == 4 { bytes[2..4].copy_from_slice(&length.to_be_bytes()) }
            else { bytes[4..6].copy_from_slice(&(length - 40).to_be_bytes()) }
        }
        let text: String = pick.iter().map(|index| format!("{}\n", RULES[*index])).collect();
        let rules = Rules::parse(&text, 5).unwrap();
        for frame in rules.apply(&bytes, 0, number).unwrap_or_default() {
            prop_assert!(frame.len() <= 0xffff + 40);
        }
    }
}

const RULES: &[&str] = &[
    "ip_frag 8",
    "ip_frag 16 old",
    "ip_frag 24 new",
    "tcp_seg 1",
    "tcp_seg 7 old",
    "tcp_seg 9 new",
    "ip_chaff dup",
    "ip_chaff opt",
    "ip_chaff 1",
    "tcp_chaff cksum",
    "tcp_chaff null",
    "tcp_chaff paws",
    "tcp_chaff rexmit",
    "tcp_chaff seq",
    "tcp_chaff syn",
    "tcp_chaff 1",
    "dup random 50",
    "drop first 50",
    "order random",
    "order reverse",
    "ip_ttl 3",
    "ip_tos 3",
    "ip_opt lsrr 4 10.0.0.1",
    "ip_opt raw 010101",
    "tcp_opt mss 500",
    "tcp_opt wscale 3",
    "tcp_opt raw 03",
    "ip6_opt route 1 ::1",
    "ip6_opt raw 010400000000",
    "ip6_qos 10 20",
];
