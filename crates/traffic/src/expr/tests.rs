//! Expressions end to end, judged by the dump of [`wire::show`] and by literal bytes; `tests/expr_tshark.rs` asks
//! tshark and Scapy.

use super::*;
use crate::executor;
use proptest::prelude::*;
use wire::LinkType;
use wire::proto::Protocol;

fn program(text: &str) -> Program {
    compile(text, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn frame(text: &str, n: u64) -> Vec<u8> {
    executor::frame(&program(text), n, 0).unwrap()
}

fn shown(text: &str) -> String {
    wire::show::show(LinkType::ETHERNET, &frame(text, 0))
}

fn error(text: &str) -> ExprError {
    compile(text, &Options::default()).unwrap_err()
}

/// The first frames' value of a field at `at..at + width`.
fn column(text: &str, at: usize, width: usize, frames: u64) -> Vec<u64> {
    let value = |n| frame(text, n)[at..at + width].iter().fold(0, |v, b| v << 8 | u64::from(*b));
    (0..frames).map(value).collect()
}

#[test]
fn a_plain_packet_is_right_to_the_byte() {
    let expected: Vec<u8> = [
        &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..],
        &[0x45, 0, 0, 30, 0, 1, 0, 0, 64, 17, 0xee, 0xa6, 198, 18, 0, 1, 198, 19, 0, 1],
        &[4, 0, 0, 53, 0, 10, 0x07, 0x14, b'h', b'i'],
    ]
    .concat();
    assert_eq!(frame("ipv4/udp(dport=53)/raw(\"hi\")", 0), expected);
    assert_eq!(frame("Ether()/IP()/UDP(dport=53)/Raw(load=\"hi\")", 7), expected);
}

/// The lines of a dump that say these fields.
fn said(text: &str, n: u64, names: &[&str]) -> Vec<String> {
    let dump = wire::show::show(LinkType::ETHERNET, &frame(text, n));
    assert!(!dump.contains("malformed") && !dump.contains("bad, should"), "{dump}");
    let lines = dump.lines().filter_map(|line| line.trim().split_once(" = "));
    lines
        .filter(|(name, _)| names.contains(&name.trim()))
        .map(|(name, value)| format!("{}={value}", name.trim()))
        .collect()
}

#[test]
fn messages_are_told_by_their_ports_and_dumped_as_they_are_written() {
    assert_eq!(
        said(
            "ipv4/udp/dns(qname=\"a.example\", qtype=MX, answers=[mx(10, \"m.example\"), 192.0.2.1, 2001:db8::1, txt(\"hi\")], edns=4096)",
            0,
            &["sport", "dport", "qr", "ancount", "question", "answer", "additional"]
        ),
        [
            "sport=53",
            "dport=1024",
            "qr=1",
            "ancount=4",
            "question=a.example MX IN",
            "answer=a.example MX IN 300 10 m.example",
            "answer=a.example A IN 300 192.0.2.1",
            "answer=a.example AAAA IN 300 2001:db8::1",
            "answer=a.example TXT IN 300 \"hi\"",
            "additional=OPT (EDNS), datagrams of 4096 bytes"
        ]
    );
    assert_eq!(
        said(
            "ether(src=02:00:00:00:00:00/40)/ipv4/udp/dhcp(type=request, requested=10.0.0.0/24, hostname=\"pc\", params=[1, 3])",
            5,
            &["sport", "dport", "op", "chaddr", "type", "requested", "hostname", "params"]
        ),
        [
            "type=0x0800 (IPv4)",
            "sport=68",
            "dport=67",
            "op=1",
            "chaddr=02:00:00:00:00:05",
            "type=3 (request)",
            "requested=10.0.0.5",
            "params=[1, 3]",
            "hostname=\"pc\""
        ]
    );
    assert_eq!(
        said("ipv4/udp/dhcp(type=ack, chaddr=02:00:00:00:00:09)", 0, &["sport", "dport", "op"]),
        ["sport=67", "dport=68", "op=2"]
    );
    assert_eq!(said("ipv4/udp/ntp", 0, &["dport", "mode"]), ["dport=123", "mode=3 (client)"]);
    assert_eq!(
        said(
            "ipv4/tcp/http(path=\"/x\", host=h, headers=[\"A: b\"], body=\"hi\")",
            0,
            &["dport", "flags", "start", "header", "body"]
        ),
        [
            "flags=0 (0x0)",
            "dport=80",
            "flags=PA (0x18)",
            "start=GET /x HTTP/1.1",
            "header=Host: h",
            "header=User-Agent: netdyno",
            "header=A: b",
            "header=Content-Length: 2",
            "body=2 bytes, \"hi\""
        ]
    );
    assert_eq!(
        said("ipv4/tcp/http(status=404)", 0, &["sport", "start"]),
        ["sport=80", "start=HTTP/1.1 404 Not Found"]
    );
    assert_eq!(
        said(
            "ipv4/igmpv3(records=[to_exclude(239.1.0.0/16), allow(232.0.0.1, 10.0.0.0/24)])",
            258,
            &["nrecords", "record"]
        ),
        ["nrecords=2", "record=to_exclude(239.1.1.2)", "record=allow(232.0.0.1, 10.0.0.2)"]
    );
    assert_eq!(
        said("ipv4/igmpv3(type=query, group=232.0.0.1, sources=10.0.0.1)", 0, &["nsources", "sources"]),
        ["nsources=1", "sources=[10.0.0.1]"]
    );
}

#[test]
fn texts_take_turns_at_one_length() {
    let names = "ipv4/udp/dns(id=0..65535, qname=[\"a.example\", \"longer.example\", \"b.c.d.example\"])";
    let lengths: Vec<usize> = (0..4).map(|n| frame(names, n).len()).collect();
    assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
    let asked: Vec<String> = (0..4).flat_map(|n| said(names, n, &["question"])).collect();
    assert_eq!(
        asked,
        [
            "question=a.example A IN",
            "question=longer.example A IN",
            "question=b.c.d.example A IN",
            "question=a.example A IN"
        ]
    );
    let paths = "ipv4/tcp(seq=random())/http(path=[\"/\", \"/longer\"] every=2, host=[\"one.example\", \"b.example\"])";
    let got: Vec<String> = (0..5).flat_map(|n| said(paths, n, &["start"])).collect();
    assert_eq!(got[0], "start=GET / HTTP/1.1");
    assert_eq!((&got[1], &got[2]), (&got[0], &"start=GET /longer HTTP/1.1".to_owned()));
    assert_eq!(got[4], got[0]);
    // Drawn by chance: all come, each with its own bytes only.
    let drawn = "ipv4/udp/dns(qname=random([\"aaaaaaaa.example\", \"bbbbbbbb.example\"]))";
    let seen: std::collections::BTreeSet<String> =
        (0..50).flat_map(|n| said(drawn, n, &["question"])).collect();
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        ["question=aaaaaaaa.example A IN", "question=bbbbbbbb.example A IN"]
    );
    // A number behind a name of one length varies beside it.
    let both = "ipv4/udp/dns(qname=[\"ab.example\", \"cd.example\"], qtype=[A, AAAA, MX])";
    assert_eq!(said(both, 3, &["question"]), ["question=cd.example A IN"]);
}

#[test]
fn what_is_wrong_in_a_message_on_purpose_is_sent() {
    let bytes = frame("ipv4/udp(len=99, dport=5353)/dns(qdcount=7, qr=0, answers=192.0.2.1)", 0);
    assert_eq!((&bytes[36..40], &bytes[44..48]), (&[0x14, 0xe9, 0, 99][..], &[1, 0x80, 0, 7][..]));
    assert!(shown("ipv4/igmpv3(chksum=bad)").contains("bad, should be"));
}

#[test]
fn scapys_spelling_is_read() {
    for (scapy, ours) in [
        ("IP(dst=\"10.0.0.1\")/UDP(dport=53)/Raw(load=\"x\")", "ipv4(dst=10.0.0.1)/udp(dport=53)/raw(\"x\")"),
        (
            "Ether(src='02:00:00:00:00:07')/IP(dst='10.0.0.0/24')/TCP(dport=(1,1024), flags='SA')",
            "ether(src=02:00:00:00:00:07)/ipv4(dst=10.0.0.0/24)/tcp(dport=1..1024, flags=SA)",
        ),
        (
            "IP(dst=[\"10.0.0.1\", \"10.0.0.9\"])/UDP()/\"hello\"",
            "ipv4(dst=[10.0.0.1, 10.0.0.9])/udp/raw(\"hello\")",
        ),
        (
            "IP(dst=\u{201c}10.0.0.1\u{201d})/UDP()/Raw(load=\u{2018}x\u{2019})",
            "ipv4(dst=10.0.0.1)/udp/raw(\"x\")",
        ),
        (
            "Dot1Q(vlan=5)/IPv6(dst=\"2001:db8::1\")/ICMPv6(type=128)",
            "vlan(id=5)/ipv6(dst=2001:db8::1)/icmpv6(type=128)",
        ),
        ("IP()/UDP()/Raw(b\"ab\\x00\"*3)", "ipv4/udp/raw(\"ab\\0ab\\0ab\\0\")"),
        (
            "IP()/UDP()/DNS(rd=1, qd=DNSQR(qname=\"a.example\", qtype=\"AAAA\"))",
            "ipv4/udp/dns(qname=\"a.example\", qtype=AAAA)",
        ),
        ("IP(version=4, ihl=None, len=None, chksum=None, options=b'')/GRE(key=None)/IP()", "ipv4/gre/ipv4"),
        ("IP(src=RandIP(\"10.0.0.0/8\"))/UDP()", "ipv4(src=random(10.0.0.0/8))/udp"),
        ("IP()/UDP(sport=RandShort(), dport=RandNum(1, 9))", "ipv4/udp(sport=random(), dport=random(1..9))"),
        (
            "IP()/TCP(options=[(\"MSS\", 1460), (\"SAckOK\", \"\"), ('Timestamp', (1, 0)), ('NOP', None), ('WScale', 7)])",
            "ipv4/tcp(options=[mss(1460), sackok, timestamp(1, 0), nop, wscale(7)])",
        ),
        (
            "IP(proto=\"udp\")/UDP()/VXLAN(vni=5)/Ether()/ARP(op=\"who-has\", pdst=\"10.0.0.1\")",
            "ipv4(proto=17)/udp/vxlan(vni=5)/ether/arp(op=who-has, pdst=10.0.0.1)",
        ),
    ] {
        for n in [0, 1, 7] {
            assert_eq!(frame(scapy, n), frame(ours, n), "{scapy}");
        }
    }
    for (text, part) in [
        (
            "Ether()/IP()/UDP()/BOOTP(chaddr=mac)/DHCP(options=[(\"message-type\",\"discover\"),\"end\"])",
            "dhcp(type=discover",
        ),
        ("sendp(IP()/UDP())", "write only the packet"),
        ("IP(dst=\"10.0.0.300\")", "`10.0.0.300` does not suit"),
        ("IP(ttl=(1,2,3))", "(a, b) is a range"),
        ("IP()/\"abc", "no closing `\"`"),
        ("raw(\"ab\" * 99999)", "65535 bytes at most"),
    ] {
        assert!(error(text).message.contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn every_layer_says_what_follows_and_sums_are_right() {
    for text in [
        "ipv4/tcp",
        "vlan(id=5)/ipv4/udp/raw(\"odd\")",
        "qinq(id=100)/vlan(id=5)/ipv6/tcp/raw(\"x\")",
        "mpls(label=100)/mpls(label=200)/ipv4/icmp/raw(\"abc\")",
        "mpls/ether/ipv4/udp",
        "ipv6/icmpv6(type=neighbor-solicit, target=2001:db8::1, options=[slla(02:00:00:00:00:09)])",
        "ipv6/hopopts(options=[ra(0)])/dstopts/frag(id=9)/udp/raw(\"x\")",
        "ipv6/srv6(segments=[2001:db8::3, 2001:db8::2, 2001:db8::1], left=2)/tcp",
        "ipv6/routing(segments=[2001:db8::3])/udp/raw(\"x\")",
        "ipv4/gre(key=7, seq=1, chksum_present=1)/ether/ipv6/udp/raw(\"odd\")",
        "ipv4/udp/vxlan(vni=42)/ether/vlan/ipv4/udp/raw(\"odd\")",
        "ipv6/udp/gtpu(teid=9, ext=[psc(1, 9)])/ipv4/tcp/raw(\"x\")",
        "ipv4(options=[rr(3), nop, ra(0)])/tcp(options=[mss(1460), nop, wscale(7), sackok, timestamp(1, 0)])",
        "ipv4/ipv6/ipv4/udp",
        "ipv4/icmp(type=unreachable, code=1)/ipv4/udp",
        "arp(op=is-at)",
    ] {
        let text = shown(text);
        assert!(!text.contains("bad, should") && !text.contains("malformed"), "{text}");
        assert!(!text.contains("Missing") && !text.contains("Padding"), "{text}");
    }
}

#[test]
fn names_in_a_dump_are_the_names_of_the_language() {
    let text =
        shown("ipv4/udp/gtpu(seq=5, ext=[psc(0, 9), pdcp(7)])/ipv4/tcp(flags=SA, options=[sack(1, 2)])");
    for part in ["ext            = [psc(0, 9), pdcp(7)]", "flags          = SA (0x12)", "[sack(1, 2), eol]"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_the_user_gives_is_sent_as_given() {
    let text = shown("ipv4(chksum=0x1234, len=999, ihl=5)/udp(chksum=bad, len=3)");
    assert!(text.contains("0x1234 (bad, should be"), "{text}");
    assert!(text.contains("len            = 999"), "{text}");
    let udp = frame("ipv4/udp(chksum=bad)/raw(\"x\")", 0);
    let right = frame("ipv4/udp(chksum=auto)/raw(\"x\")", 0);
    assert_ne!(udp[40..42], right[40..42]);
    assert_eq!(udp[..40], right[..40]);
    assert_eq!(frame("ipv4/udp(chksum=0)", 0)[40..42], [0, 0]);
    assert!(shown("ipv4(chksum=bad)/tcp(chksum=bad)").matches("bad, should be").count() == 2);
    assert!(shown("ether(type=0x1234)/ipv4/udp").contains("0x1234"));
    assert!(shown("ipv4(proto=99)/udp").contains("proto          = 99"));
}

#[test]
fn values_walk_wrap_and_nest() {
    assert_eq!(column("ipv4/udp(sport=10..13)", 34, 2, 6), [10, 11, 12, 13, 10, 11]);
    assert_eq!(column("ipv4/udp(sport=13..10 step=2)", 34, 2, 4), [13, 11, 13, 11]);
    assert_eq!(column("ipv4/udp(sport=[5, 9, 7])", 34, 2, 4), [5, 9, 7, 5]);
    assert_eq!(column("ipv4(src=10.0.0.0/31)/udp", 26, 4, 3), [0x0a00_0000, 0x0a00_0001, 0x0a00_0000]);
    assert_eq!(
        column("ipv4/udp(sport=1..2, dport=[7, 8, 9] every=sport)", 36, 2, 8),
        [7, 7, 8, 8, 9, 9, 7, 7]
    );
    assert_eq!(
        column("ipv4(ttl=1..3 every=udp.sport)/udp(sport=1..2 every=2)", 22, 1, 9),
        [1, 1, 1, 1, 2, 2, 2, 2, 3]
    );
    assert_eq!(column("ipv4/tcp(flags=[S, SA, A])", 47, 1, 3), [2, 0x12, 0x10]);
    assert_eq!(column("vlan(id=1..3)/ipv4", 14, 2, 4), [1, 2, 3, 1]);
    assert_eq!(
        column("ether(src=02:00:00:00:00:fe..02:00:00:00:01:01)/raw", 6, 6, 3).last(),
        Some(&0x0200_0000_0100)
    );
    // Addresses of IPv6 vary in both halves.
    let low = column("ipv6(src=[2001:db8:1::1, 2001:db8:2::2])", 30, 8, 3);
    let high = column("ipv6(src=[2001:db8:1::1, 2001:db8:2::2])", 22, 8, 3);
    assert_eq!((low, high[0], high[1]), (vec![1, 2, 1], 0x2001_0db8_0001_0000, 0x2001_0db8_0002_0000));
    assert_eq!(column("ipv6(dst=2001:db8::/32)", 46, 8, 3), [0, 1, 2]);
}

#[test]
fn random_values_stay_inside_and_depend_on_the_seed() {
    let text = "ipv6(src=random(2001:db8::/32), dst=random([2001:db8:1::1, 2001:db8:2::2]))/udp(sport=random(100..109))";
    for n in 0..200 {
        let bytes = frame(text, n);
        assert_eq!(bytes[22..26], [0x20, 0x01, 0x0d, 0xb8]);
        assert_eq!(bytes[43], bytes[53], "both halves of a list are picked together");
        assert!((100..110).contains(&u16::from_be_bytes([bytes[54], bytes[55]])));
    }
    let with = |seed| compile(text, &Options { seed, ..Options::default() }).unwrap();
    assert_ne!(executor::frame(&with(1), 0, 0), executor::frame(&with(2), 0, 0));
    assert_eq!(executor::frame(&with(1), 5, 0), executor::frame(&with(1), 5, 0));
}

#[test]
fn sums_stay_right_while_fields_and_lengths_vary() {
    for (text, size) in [
        ("ipv4(src=10.0.0.0/16, ttl=1..255)/udp(sport=1024..65535 step=7)", "64..300"),
        ("ipv6(src=random(2001:db8::/32))/tcp(seq=random(), flags=[S, SA])", "random(90..200)"),
        (
            "ipv4/udp(sport=random())/vxlan(vni=0..9)/ether(src=random())/ipv6(dst=random(::/0))/udp(dport=1..9)/raw(\"a\")",
            "imix",
        ),
        (
            "ipv4(src=random())/gre(chksum_present=1, key=1..99)/ipv4(dst=random())/icmp(seq=0..999)",
            "99,100,101",
        ),
        ("ipv6/srv6(segments=[2001:db8::3, 2001:db8::2], tag=1..99)/udp(sport=1..77)", "random(110..400)"),
    ] {
        let size = Some(size.parse().unwrap());
        let size = match size {
            Some(Size::Mix(_)) => Some("128:7,594:4,1518:1".parse().unwrap()),
            size => size,
        };
        let program =
            compile(text, &Options { size, ..Options::default() }).unwrap_or_else(|error| panic!("{error}"));
        for n in 0..120 {
            let dump = wire::show::show(LinkType::ETHERNET, &executor::frame(&program, n, 0).unwrap());
            assert!(
                !dump.contains("bad, should") && !dump.contains("Missing") && !dump.contains("Padding"),
                "{n} {dump}"
            );
        }
    }
}

#[test]
fn payload_text_bytes_length_and_fill() {
    let of = |text: &str| frame(text, 0)[14..].to_vec();
    assert_eq!(of("raw(\"a\\x00\\n\")"), b"a\0\n");
    assert_eq!(of("raw(hex=\"de ad:be-ef\")"), [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(of("raw(hex(\"00\"))"), [0]);
    assert_eq!(of("payload(len=3, fill=0x5a)"), [0x5a; 3]);
    assert_eq!(of("raw(\"x\", len=6, fill=\"ab\")"), b"xababa");
    assert_eq!(of("raw(\"a\")/raw(\"b\")"), b"ab");
    let lengths: Vec<usize> = (0..4).map(|n| frame("ipv4/udp/payload(len=1..3)", n).len() - 42).collect();
    assert_eq!(lengths, [1, 2, 3, 1]);
    assert_eq!(frame("raw", 0).len(), 14);
}

#[test]
fn parts_of_payload_vary() {
    let of = |fields: &str, n| {
        frame(&format!("raw(hex=\"0011 2233 4455 6677\", fields=[{fields}])"), n)[14..].to_vec()
    };
    assert_eq!(of("field(0, 16, 7)", 5), [0, 7, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77]);
    assert_eq!(of("field(1, 8, 1..3)", 4), [0, 2, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77]);
    assert_eq!(of("field(2.4, 8, [0xab, 0xcd] every=2)", 3)[2..4], [0x2c, 0xd3]);
    assert_eq!(of("field(2, 48, 02:00:00:00:00:00/40)", 9)[2..], [2, 0, 0, 0, 0, 9]);
    assert_eq!(of("field(3, 32, 10.0.0.0/16)", 258)[3..7], [10, 0, 1, 2]);
    assert_eq!(of("field(0, 64, 0x0102030405060708)", 0), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(of("length(6, 2), field(0, 8, 1..9)", 1), [2, 0x11, 0x22, 0x33, 0x44, 0x55, 0, 6]);
    assert_eq!(frame("raw(\"abc\", len=6, fields=[field(5, 8, 65..90)])", 1)[14..], *b"abc\0\0B");
    // Nested with a header's field, and in front of a header.
    let text = "ipv4/udp(sport=1..2)/raw(\"ab\", fields=[field(0, 8, 1..9 every=sport)])/ipv4(ttl=1..9)";
    assert_eq!((frame(text, 5)[42], frame(text, 5)[43], frame(text, 5)[52]), (3, b'b', 6));
}

/// A frame without its Ethernet header, as text.
fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_frame_given_as_bytes_with_its_lengths_and_checksums_is_what_its_layers_make() {
    let layers = |n| format!("ipv4(src=10.0.0.0/24, ttl=1..9)/udp(sport=1..1000, dport={n})/raw(\"odd\")");
    let fields = "field(26, 32, 10.0.0.0/24), field(22, 8, 1..9), field(34, 16, 1..1000), length(16, 14), \
        length(38, 34), checksum(24, 14..33), checksum(40, 34, pseudo=[26..33], protocol=17)";
    for (size, signature) in
        [(None, None), (None, Some(1)), (Some("100..105"), Some(1)), (Some("64,1518"), None)]
    {
        let size = size.map(|size: &str| size.parse().unwrap());
        let options = Options { size, signature, ..Options::default() };
        let reference = compile(&layers(53), &options).unwrap();
        let bytes = executor::frame(&compile(&layers(53), &Options::default()).unwrap(), 0, 0).unwrap();
        let text = format!("frame(hex=\"{}\", fields=[{fields}])", hex_of(&bytes));
        let program = compile(&text, &options).unwrap();
        for n in [0, 1, 255, 256, 12_345] {
            assert_eq!(executor::frame(&program, n, 7).unwrap(), executor::frame(&reference, n, 7).unwrap());
        }
    }
}

#[test]
fn checksums_of_bytes_are_those_of_rfc_1071_and_inner_ones_come_first() {
    // A sum within another's range, the outer one written first; `add` is a part of a pseudo header that never varies.
    let text = "frame(hex=\"00112233445566778899aabb 88b5 00000000 01020304 0506\", \
        fields=[checksum(14, 14), field(18, 16, 1..3), checksum(16, 16..19), field(22, 16, 5)])";
    let frame = frame(text, 2);
    let inner = !3u16;
    assert_eq!(frame[16..18], inner.to_be_bytes());
    let sum = |words: &[u16]| words.iter().fold(0u32, |sum, word| sum + u32::from(*word));
    let total = sum(&[inner, 3, 0x0304, 5]);
    let outer = !((total & 0xffff) + (total >> 16)) as u16;
    assert_eq!(frame[14..16], outer.to_be_bytes());
    let with = |more: &str| {
        let text = format!(
            "frame(hex=\"00112233445566778899aabb 88b5 0000 ffff\", fields=[checksum(14, 14..17{more})])"
        );
        u16::from_be_bytes(self::frame(&text, 0)[14..16].try_into().unwrap())
    };
    assert_eq!((with(""), with(", add=1")), (0, 0xfffe));
    assert_eq!(with(", protocol=6"), !10);
    assert_eq!(with(", protocol=17, add=0xffea"), 0xffff, "UDP's zero");
    assert_eq!(with(", pseudo=[0..1, 4..5]"), !(0x0011 + 0x4455));
}

#[test]
fn sums_follow_parts_of_payload_at_any_place() {
    let fields =
        "fields=[field(1, 8, 0..255), field(2, 64, random()), field(11.3, 9, 0..511), length(15, 3)]";
    for below in [
        "ipv4/udp",
        "ipv6/udp",
        "ipv4/tcp",
        "ipv6/icmpv6",
        "ipv4/gre(chksum_present=1)",
        "ipv4/udp/gtpu/ipv6/udp",
    ] {
        let text = format!("{below}/raw(\"twenty odd bytes here\", {fields})");
        for (size, signature) in
            [(None, None), (None, Some(1)), (Some("200..205"), Some(1)), (Some("200,594,1518"), None)]
        {
            let size = size.map(|size| size.parse().expect("a size"));
            let program = compile(&text, &Options { size, signature, ..Options::default() }).unwrap();
            for n in [0, 1, 2, 300, 12_345] {
                let bytes = executor::frame(&program, n, 77).unwrap();
                let dump = wire::show::show(LinkType::ETHERNET, &bytes);
                assert!(!dump.contains("bad, should") && !dump.contains("malformed"), "{text} {n}\n{dump}");
                let start = frame(&format!("{below}/raw"), 0).len();
                assert_eq!(bytes[start + 1], n as u8, "{text}");
                let rest = (bytes.len() - start - 3) as u16;
                assert_eq!(bytes[start + 15..start + 17], rest.to_be_bytes(), "{text}");
                if signature.is_some() {
                    assert_eq!(wire::signature::Signature::at_end_of(&bytes).map(|s| s.sequence), Some(n));
                }
            }
        }
    }
}

#[test]
fn sizes_count_the_frame_check_sequence_and_pad_the_payload() {
    let sized =
        |text, size: u32| compile(text, &Options { size: Some(Size::Fixed(size)), ..Options::default() });
    let program = sized("ipv4/udp/raw(\"ab\", fill=\"xy\")", 64).unwrap();
    let bytes = executor::frame(&program, 0, 0).unwrap();
    assert_eq!((bytes.len(), &bytes[42..47]), (60, &b"abxyx"[..]));
    assert_eq!(u16::from_be_bytes([bytes[16], bytes[17]]), 46);
    let error = sized("ipv4/udp", 45).unwrap_err();
    assert!(error.message.contains("need 46 at least"), "{error}");
    let error = sized("ipv4/udp", 66_000).unwrap_err();
    assert!(error.message.contains("65535 are the most"), "{error}");
}

#[test]
fn a_signature_gets_its_room() {
    let signed = |text, size| compile(text, &Options { size, signature: Some(3), ..Options::default() });
    for text in ["ipv4/udp", "ipv4/udp/raw(\"hello\")", "ipv6/tcp/payload(len=30)"] {
        let program = signed(text, None).unwrap();
        let bytes = executor::frame(&program, 9, 1234).unwrap();
        let found = wire::signature::Signature::at_end_of(&bytes).unwrap();
        assert_eq!((found.stream, found.sequence, found.time), (3, 9, 1234));
        let dump = wire::show::show(LinkType::ETHERNET, &bytes);
        assert!(!dump.contains("bad, should"), "{dump}");
    }
    assert!(signed("ipv4/udp", Some(Size::Fixed(64))).is_ok(), "18 bytes fit the smallest UDP frame");
    assert!(signed("ipv4/tcp", Some(Size::Fixed(64))).unwrap_err().message.contains("signature"));
}

#[test]
fn the_final_destination_is_covered_and_the_active_segment_addressed() {
    let bytes = frame("ipv6/srv6(segments=[2001:db8::3, 2001:db8::2, 2001:db8::1], left=1)/udp", 0);
    assert_eq!(bytes[38 + 15], 2, "the destination is segments[left]");
    assert_eq!(bytes[54 + 3..54 + 5], [1, 2], "segments left, last entry");
}

#[test]
fn errors_point_at_the_word_and_name_what_was_expected() {
    for (text, column, part) in [
        ("ether/ipv4(tll=3)", 12, "unknown field `tll` of ipv4; did you mean `ttl`? fields: version"),
        (
            "ipv4/tcp(mss=1460)",
            10,
            "unknown field `mss` of tcp, but an option: options=[mss(N)]; fields: sport",
        ),
        ("ipv4/tcp(tfo=1)", 10, "urgptr, options, such as options=[mss(1460), wscale(7)]"),
        ("ipv4(ra=0)/udp", 6, "unknown field `ra` of ipv4, but an option: options=[ra(N)]"),
        (
            "ipv4/tcp(options=[mss=1460])",
            22,
            "but found `=`: what `mss` takes stands in brackets behind it, such as options=[mss(1460), wscale(7)]",
        ),
        ("ipv4/tcp(flags=SYM)", 16, "`SYM` does not suit; did you mean `SYN`?"),
        ("ipv4/udp(chksum=bda)", 17, "did you mean `bad`?"),
        ("ipv4(len=atuo)/udp", 10, "did you mean `auto`?"),
        ("ipv4/tcp(options=[otp(9)])", 19, "did you mean `opt`?"),
        ("ipv4/udp/dns(answers=cnam(\"a\"))", 22, "there is no `cnam` here; did you mean `cname`?"),
        ("ipv4/udp/dns(answers=cname())", 22, "an answer is an address"),
        ("ipv4/udp/dns(qname=rnadom([a, b]))", 20, "did you mean `random`? `qname` takes"),
        ("ipv4/udp/dns(qtype=AAA)", 20, "did you mean `AAAA`?"),
        ("ipv4/udp/dhcp(type=discovre)", 20, "did you mean `discover`?"),
        ("ipv4/udp/dhcp(options=[otp(43, \"x\")])", 24, "did you mean `opt`?"),
        ("ipv4/igmpv3(records=to_exclud(239.1.1.1))", 21, "did you mean `to_exclude`?"),
        ("ipv4/udp/gtpu(ext=[pcs(0, 9)])/ipv4", 20, "did you mean `psc`?"),
        ("raw(hxe(\"ab\"))", 5, "did you mean `hex`?"),
        ("raw(\"ab\", fields=[lenght(0, 1)])", 19, "did you mean `length`?"),
        ("ipv4(src=10.0.0.0/24 every=sprot)/udp(sport=1..9)", 28, "did you mean `sport`? give a number"),
        ("ipv4(src=10.0.0.0/24 every=upd.sport)/udp(sport=1..9)", 28, "did you mean `udp`?"),
        ("ipv4/udp(sport=1..9 every=sprot)", 27, "varies; give a number of frames"),
        ("ethre/ipv4", 1, "unknown layer `ethre`; did you mean `ether`?"),
        ("ipv4/udp(sport=70000)", 16, "70000 does not fit `sport`: it has 16 bits, 0 to 65535"),
        ("ipv4/icmpv6", 6, "icmpv6 cannot follow ipv4"),
        ("ipv4/vlan", 6, "give `proto` of ipv4"),
        ("tcp/ipv4", 1, "tcp cannot follow ether; write ipv4/tcp or ipv6/tcp; to send"),
        ("ipv4/udp/ipv4", 10, "give `dport` of udp"),
        ("ipv4(ttl=1, ttl=2)", 13, "given twice"),
        ("ipv4(5)", 6, "expected field=value"),
        ("ipv4/gre(key=1, key_present=0)", 14, "no `key` as it stands"),
        ("ipv4/icmp(gw=10.0.0.1)", 14, "Gateway (type 5)"),
        ("ipv4/tcp(options=[msss(1)])", 19, "did you mean `mss`?"),
        ("ipv4/tcp(options=[mss])", 19, "mss(N)"),
        ("ipv4/tcp(options=[mss(70000)])", 23, "0 to 65535"),
        ("ipv4(options=hex(\"0\"))", 18, "odd number"),
        ("ipv4/udp(sport=1..2 every=dport)", 27, "no field of that name varies"),
        ("ipv4/udp(sport=1..2 every=dport, dport=1..2 every=sport)", 0, "wait for each other"),
        ("ipv4/udp(sport=random(), dport=1..2 every=sport)", 43, "never starts over"),
        ("ipv6(src=2001:db8::1..2001:db9::1)", 10, "within one /64"),
        ("raw(len=70000)", 9, "0 to 65535"),
        ("raw(\"abc\", len=2)", 16, "cannot be less"),
        ("payload(len=1..2)/raw(\"x\")", 13, "only the last"),
        ("raw(\"ab\", fields=[field(1, 16, 1..2)])", 19, "outside of the payload, which has 2 bytes"),
        ("raw(\"ab\", fields=[field(0, 9, 1), field(1, 8, 2)])", 35, "shares bits"),
        ("raw(\"ab\", fields=[length(0, 3)])", 19, "counts from a byte"),
        ("raw(\"ab\", fields=[field(0, 65, 1)])", 28, "1 to 64 bits"),
        ("raw(\"ab\", fields=[field(0.8, 1, 1)])", 25, "BYTE.BIT"),
        ("raw(len=99, fields=[field(1.1, 64, 1)])", 21, "touches 8 bytes"),
        ("raw(\"ab\", fields=[field(0, 8, 300)])", 31, "300 does not fit `field`"),
        ("raw(\"ab\", fields=[field(0, 8)])", 19, "write field(OFFSET, BITS, VALUE)"),
        ("raw(\"ab\", fields=7)", 18, "write field(OFFSET, BITS, VALUE)"),
        ("raw(\"abcd\", fields=[checksum(1, 0)])", 21, "at an even distance"),
        ("raw(\"abcd\", fields=[checksum(0, 2)])", 21, "within what it covers"),
        ("raw(\"abcd\", fields=[checksum(0, 0..4)])", 21, "does not have"),
        ("raw(\"abcd\", fields=[checksum(0, 0, pseudo=[1..3])])", 21, "even number of bytes"),
        ("raw(\"abcd\", fields=[checksum(0, 0, proto=1)])", 21, "write checksum(OFFSET, FROM)"),
        ("raw(\"abcd\", fields=[checksum(0, 0), checksum(2, 0)])", 21, "cover each other"),
        ("raw(\"abcd\", fields=[checksum(0, 0, pseudo=7)])", 43, "FROM..LAST"),
        ("raw(\"abcdef\", fields=[checksum(0, 0..3), field(3, 16, 1..9)])", 1, "divide it into two"),
        ("ipv4/frame(hex=\"00\")", 6, "nothing stands in front"),
        ("frame(hex=\"00\")", 1, "has 14 bytes; these are 1"),
        ("raw(\"ab\", fields=[field(0, 8, 1..9 every=x)])", 42, "no field of that name varies"),
        ("udp(chksum=good)/raw", 12, "`good` does not suit"),
        ("ipv6/dstopts/hopopts", 14, "hopopts cannot follow dstopts"),
        ("ipv4(options=[rr(9), rr(9)])", 1, "options take 40"),
        ("ipv4/udp/dns(qnam=x)", 14, "did you mean `qname`?"),
        ("ipv4/udp/dns(qname=\"a..b\")", 20, "labels between dots"),
        ("ipv4/udp/dns(answers=soa(1))", 22, "an answer is an address"),
        ("ipv4/udp/dns(qname=[a, bcd], qtype=[A, MX])", 20, "texts of different lengths"),
        ("ipv4/udp/dns(qname=[a, b] step=2)", 27, "there is every="),
        ("ipv4/tcp/http(status=200, path=\"/\")", 32, "no method, path or host"),
        ("ipv4/tcp/http(path=[\"/a\", \"/b\"], host=[a, b, c])", 39, "take turns together"),
        ("ipv4/igmpv3(sources=10.0.0.1)", 21, "belongs to a query"),
        ("ipv4/igmpv3(records=join(239.1.1.1))", 21, "is_include"),
        ("ipv4/udp/http", 10, "http cannot follow udp"),
    ] {
        let error = error(text);
        assert!(error.message.contains(part), "{text}: {error}");
        assert!(column == 0 || error.column == column, "{text}: {error}");
    }
}

#[test]
fn large_demands_are_refused_or_bounded() {
    assert!(error(&"ipv4/".repeat(100)).message.contains("more than 32 layers"));
    assert!(error(&"x".repeat(2 << 20)).message.contains("are the most"));
    assert!(error(&format!("raw(\"{}\")", "y".repeat(70_000))).message.contains("65535 are the most"));
    let _ = program("ipv6(src=::/0, dst=random(::/0))/udp(sport=random(), dport=0..65535)");
    let _ = program("ipv4/udp(sport=0..65535 every=18446744073709551615)");
    let repeated = format!("ipv4/tcp/http(body=[{}\"x\"])", "\"y\"*60000, ".repeat(1000));
    assert!(error(&repeated).message.contains("all together"));
    let paths = format!("ipv4/tcp/http(path=[{}a], body=\"y\"*60000)", "ab, ".repeat(1000));
    assert!(error(&paths).message.contains("8 MB are the most"));
    let names = format!("ipv4/udp/dns(qname=[{}a])", "ab, ".repeat(5000));
    assert!(error(&names).message.contains("4096 texts"));
    let chain = "ipv4(tos=0..9 every=src, src=0.0.0.0/0 every=dst, dst=0.0.0.0/0 every=id, id=0..65535)/udp";
    assert!(error(chain).message.contains("never starts over"), "{}", error(chain));
}

#[test]
fn every_protocol_and_alias_is_a_layer() {
    for protocol in Protocol::ALL {
        let spec = protocol.spec();
        for name in [spec.name].iter().chain(spec.aliases) {
            let unknown =
                compile(name, &Options::default()).err().is_some_and(|e| e.message.contains("unknown"));
            assert!(!unknown, "{name}");
        }
    }
}

#[test]
fn the_reference_in_the_docs_is_what_the_tables_say() {
    let docs = include_str!("../../../../docs/expressions.md");
    let start = "<!-- generated from the protocol tables -->\n";
    let (_, found) = docs.split_once(start).expect("docs/expressions.md has a generated part");
    let expected = wire::proto::reference();
    if std::env::var_os("NETDYNO_WRITE_DOCS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/expressions.md");
        let head = docs.split_once(start).map_or(docs, |(head, _)| head);
        std::fs::write(path, format!("{head}{start}{}", expected.trim_end().to_owned() + "\n")).unwrap();
        return;
    }
    assert!(
        found.trim() == expected.trim(),
        "docs/expressions.md is stale: run NETDYNO_WRITE_DOCS=1 cargo test -p netdyno-traffic the_reference"
    );
}

#[test]
fn the_examples_in_the_docs_compile() {
    let docs = include_str!("../../../../docs/expressions.md");
    let mut count = 0;
    for line in docs.lines().filter_map(|line| line.trim().strip_prefix("netdyno craft '")) {
        let (text, rest) = line.split_once('\'').expect("an expression in quotes");
        let size =
            rest.split_once("--size ").map(|(_, s)| s.split_whitespace().next().unwrap().trim_matches('\''));
        let size = size.map(|size| size.parse().unwrap());
        compile(text, &Options { size, ..Options::default() }).unwrap_or_else(|error| panic!("{error}"));
        count += 1;
    }
    assert!(count >= 10, "{count} examples");
}

/// Whether two seeds make two programs of a text, and whether its program says so.
fn seed_matters(text: &str, size: Option<&str>) -> Option<(bool, bool)> {
    let size = size.map(|size| size.parse().unwrap());
    let [one, other] =
        [1, 2].map(|seed| compile(text, &Options { size: size.clone(), seed, ..Options::default() }));
    let (one, other) = (one.ok()?, other.ok()?);
    // Compared in whole, by members that nobody had to list.
    Some((format!("{one:?}") != format!("{other:?}"), one.uses_seed()))
}

#[test]
fn a_seed_is_used_by_every_word_that_draws_and_by_no_other() {
    for (text, size, matters) in [
        ("ipv4(src=random(10.0.0.0/8))/udp", None, true),
        ("ipv4(src=shuffled(10.0.0.0/24))/udp", None, true),
        ("ipv4(ttl=random([1, 5, 9]))/udp", None, true),
        ("ipv4/udp(sport=random([1..79, 81..442]))", None, true),
        ("ipv4/udp(sport=random())", None, true),
        ("ipv4/udp", Some("random(100..200)"), true),
        ("ipv4(src=10.0.0.0/8)/udp(sport=[1..79, 81..442])", Some("100,200"), false),
        ("ipv4(ttl=[1, 5, 9])/udp", Some("64:7,594:4"), false),
    ] {
        assert_eq!(seed_matters(text, size), Some((matters, matters)), "{text} {size:?}");
    }
}

/// Something that is nearly an expression.
fn nearly() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("ether"),
        Just("vlan"),
        Just("mpls"),
        Just("ipv4"),
        Just("ipv6"),
        Just("tcp"),
        Just("udp"),
        Just("gre"),
        Just("vxlan"),
        Just("gtpu"),
        Just("srv6"),
        Just("raw"),
        Just("icmpv6"),
        Just("hopopts"),
        Just("frag"),
        Just("src"),
        Just("dst"),
        Just("type"),
        Just("len"),
        Just("chksum"),
        Just("options"),
        Just("segments"),
        Just("ext"),
        Just("fill"),
        Just("fields"),
        Just("field"),
        Just("length"),
        Just("every"),
        Just("step"),
        Just("random"),
        Just("shuffled"),
        Just("range"),
        Just("hex"),
        Just("key"),
        Just("psc"),
        Just("rr"),
        Just("padn"),
        Just("opt"),
        Just("bad"),
        Just("auto"),
        Just("::/0"),
        Just("10.0.0.0/8"),
        Just("340282366920938463463374607431768211455"),
        Just("0xffff"),
        Just("0"),
        Just("1"),
        Just("255"),
        Just("\"ab\""),
        Just("2001:db8::1"),
        Just("02:00:00:00:00:01"),
        Just(".."),
        Just("("),
        Just(")"),
        Just("/"),
        Just(","),
        Just("="),
        Just("["),
        Just("]"),
        Just(" "),
        Just("é"),
    ];
    proptest::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

/// Well-formed layers with odd values: gets past the parser every time.
fn odd() -> impl Strategy<Value = String> {
    let protocols = proptest::sample::select(Protocol::ALL.to_vec());
    let value = prop_oneof![
        Just("0".to_owned()),
        Just("1..9 every=3".into()),
        Just("random()".into()),
        Just("[1, 2]".into()),
        Just("255".into()),
        Just("0xffffffffffffffffffffffffffffffff".into()),
        Just("::/0 step=340282366920938463463374607431768211455".into()),
        Just("10.0.0.0/8 step=18446744073709551616".into()),
        Just("bad".into()),
        Just("0x0..0xff".into()),
        Just("[nop, opt(3, hex=\"00\")]".into()),
        Just("hex(\"0102\")".into()),
        Just("[::1, ::2]".into()),
        Just("random(::/3) every=src".into()),
        Just("[field(0.4, 60, random()), length(9, 1)]".into()),
        Just("[checksum(2, 0), checksum(4, 4..9, pseudo=[0..1], protocol=17, add=1)]".into()),
        Just("\"text\"".into()),
        Just("[\"a\", bc, \"def.g\"] every=2".into()),
        Just("[10.0.0.1, a(10.0.0.0/8), mx(1, x), txt(\"y\")]".into()),
        Just("[to_exclude(239.0.0.0/16, 10.0.0.0/24), block(1.2.3.4)]".into()),
        Just("(1, 9)".into()),
    ];
    let field = proptest::sample::Index::arbitrary();
    let layer =
        (protocols, proptest::collection::vec((field, value), 0..5)).prop_map(|(protocol, fields)| {
            let spec = protocol.spec();
            let names: Vec<&str> = spec
                .fields
                .iter()
                .map(|f| f.name)
                .chain(spec.list_names().iter().copied())
                .chain(spec.parts().iter().map(|part| part.name))
                .chain(["len", "fields"])
                .collect();
            let list: Vec<String> =
                fields.iter().map(|(i, value)| format!("{}={value}", names[i.index(names.len())])).collect();
            format!("{}({})", spec.name, list.join(", "))
        });
    proptest::collection::vec(layer, 1..5).prop_map(|layers| layers.join("/"))
}

fn survives(text: &str, size: Option<u32>, signature: Option<u32>) {
    let options = Options { size: size.map(Size::Fixed), signature, ..Options::default() };
    match compile(text, &options) {
        Ok(program) => {
            for n in [0, 1, 1000, u64::MAX / 2] {
                executor::frame(&program, n, 0).unwrap();
            }
        }
        Err(error) => {
            let printed = error.to_string();
            assert!(error.column >= 1 && printed.contains('^'), "{printed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_upsets_the_compiler(text in "\\PC{0,100}") {
        survives(&text, None, None);
    }

    #[test]
    fn no_nearly_right_text_upsets_the_compiler(text in nearly(), size in proptest::option::of(1u32..2000)) {
        survives(&text, size, None);
    }

    #[test]
    fn a_program_uses_its_seed_exactly_when_another_seed_makes_another_program(text in odd()) {
        if let Some((matters, said)) = seed_matters(&text, None) {
            prop_assert_eq!(matters, said, "{}", text);
        }
    }

    #[test]
    fn no_odd_value_upsets_the_compiler(text in odd(), size in proptest::option::of(60u32..2000), signature in proptest::option::of(0u32..9)) {
        survives(&text, size, signature);
    }
}

/// Whether the SCTP packet at `at` has the CRC-32C that belongs there.
fn crc_is_right(frame: &[u8], at: usize) -> bool {
    wire::crc::sctp(&frame[at..]).is_some_and(|right| frame[at + 8..at + 12] == right)
}

#[test]
fn sctps_crc_is_right_in_every_frame_and_outer_checksums_cover_it() {
    let cases = [
        ("ipv4(src=10.0.0.0/16)/sctp(sport=1..60000, tag=random())/sctpdata(tsn=0..9)", 34),
        ("vlan/ipv6/sctp(dport=[1, 2, 3] every=5)/raw(\"odd\")", 58),
        ("ipv4(id=0..999)/udp/gtpu(teid=random())/ipv4(src=10.0.0.0/8)/sctp(sport=1..9)/sctpdata", 70),
        ("ipv4(ttl=1..9)/sctp/sctpdata(flags=[E, B, BE])/raw(\"abc\")", 34),
    ];
    for (text, at) in cases {
        for size in [None, Some("200"), Some("128..700"), Some("120:1,594:4"), Some("random(130..1518)")] {
            for signature in [None, Some(5)] {
                let size = size.map(|size| size.parse().unwrap());
                let options = Options { size, seed: 3, signature, ..Options::default() };
                let program = compile(text, &options).unwrap_or_else(|error| panic!("{error}"));
                let mut making = executor::Executor::new(&program).unwrap();
                let mut slab = executor::Slab::new(7, program.longest() as usize);
                for batch in 0..30 {
                    let made = making.render(&mut slab.buffers(), 7, || batch << 33 | 77);
                    for i in 0..made {
                        let frame = slab.frame(i);
                        assert!(
                            crc_is_right(frame, at),
                            "{text}, {:?}: {frame:02x?}",
                            program.streams[0].lengths
                        );
                        if at == 70 {
                            let pseudo = wire::checksum::sum(&frame[26..34]) + 17 + (frame.len() - 34) as u64;
                            assert_eq!(
                                wire::checksum::fold(pseudo + wire::checksum::sum(&frame[34..])),
                                0xffff
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_crc_under_which_nothing_varies_stands_in_the_template() {
    let crc = |text: &str, size: Option<&str>, signature| {
        let size = size.map(|size| size.parse().unwrap());
        let options = Options { size, signature, ..Options::default() };
        compile(text, &options).unwrap().streams.remove(0).crc.is_some()
    };
    let fixed = "ipv4(src=10.0.0.0/8)/sctp/sctpdata";
    assert!(!crc(fixed, Some("130"), None));
    assert!(!crc("ipv4/sctp(chksum=0x1234, sport=1..9)", None, None), "one that was given");
    assert!(crc(fixed, Some("130,140"), None) && crc(fixed, Some("130"), Some(0)));
    assert!(crc("ipv4/sctp(sport=1..9)/sctpdata", None, None));
    let wrong = frame("ipv4/sctp(chksum=bad)/sctpdata", 0);
    assert!(!crc_is_right(&wrong, 34) && crc_is_right(&frame("ipv4/sctp/sctpdata", 0), 34));
}

#[test]
fn a_data_chunk_is_padded_to_words_and_its_length_does_not_say_so() {
    let five = frame("ipv4/sctp/sctpdata/raw(\"hello\")", 0);
    assert_eq!(
        (five.len(), &five[48..50], &five[62..]),
        (14 + 20 + 12 + 24, &[0, 21][..], &b"hello\0\0\0"[..])
    );
    let options = Options { signature: Some(0), ..Options::default() };
    let program = compile("ipv4/sctp/sctpdata/raw(\"hello\")", &options).unwrap();
    let signed = executor::frame(&program, 0, 0).unwrap();
    // Five bytes and the signature's 18 are 23: one more, and all of it counts.
    assert_eq!((signed.len(), &signed[48..50]), (14 + 20 + 12 + 16 + 24, &[0, 40][..]));
    // A size that was asked for is kept.
    let options = Options { size: Some("64".parse().unwrap()), ..Options::default() };
    let program = compile("ipv4/sctp/raw", &options).unwrap();
    assert_eq!(executor::frame(&program, 0, 0).unwrap().len(), 60);
}

#[test]
fn frames_to_groups_have_the_groups_ethernet_address_unless_one_is_given() {
    let to = |text: &str, n| frame(text, n)[..6].to_vec();
    for (text, n, address) in [
        ("ipv4(dst=224.0.0.22, ttl=1, options=[ra(0)])/igmpv3", 0, [1, 0, 0x5e, 0, 0, 22]),
        ("ipv4(dst=239.129.2.3)/udp", 0, [1, 0, 0x5e, 1, 2, 3]),
        ("ipv6(dst=ff02::1:ff00:7)/udp", 0, [0x33, 0x33, 0xff, 0, 0, 7]),
        ("ipv4(dst=255.255.255.255)/udp", 0, [0xff; 6]),
        ("vlan(id=5)/ipv4(dst=239.1.0.1..239.1.0.9 every=2)/udp", 5, [1, 0, 0x5e, 1, 0, 3]),
        ("ipv4(dst=[224.0.0.1..224.0.0.3, 239.0.0.9])/udp", 3, [1, 0, 0x5e, 0, 0, 9]),
        ("ipv6(dst=ff0e::1:0/112)/udp", 7, [0x33, 0x33, 0, 1, 0, 7]),
        ("ether(dst=02:00:00:00:00:09)/ipv4(dst=224.0.0.22)/udp", 0, [2, 0, 0, 0, 0, 9]),
        // Not all of them are groups.
        ("ipv4(dst=[224.0.0.1, 10.0.0.1])/udp", 0, [2, 0, 0, 0, 0, 2]),
        ("ipv4(dst=223.255.255.255..224.0.0.1)/udp", 1, [2, 0, 0, 0, 0, 2]),
    ] {
        assert_eq!(to(text, n), address, "{text}");
    }
}
