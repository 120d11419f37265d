//! Expressions judged by others: tshark dissects what they make, Scapy makes the same packets.
//!
//! Needs `tshark` and Debian's `python3-scapy`; without them these tests fail, and say so.

use netdyno_traffic::executor;
use netdyno_traffic::expr::{self, Options};
use std::io::Write;
use std::process::{Command, Stdio};

/// The first `count` frames of an expression.
fn frames(text: &str, size: Option<&str>, count: u64) -> Vec<Vec<u8>> {
    let size = size.map(|size| size.parse().expect("a size"));
    let options = Options { size, seed: 7, ..Options::default() };
    let program = expr::compile(text, &options).unwrap_or_else(|error| panic!("{error}"));
    (0..count).map(|n| executor::frame(&program, n, 0).expect("a frame")).collect()
}

/// A classic pcap file (draft-ietf-opsawg-pcap), link type Ethernet, one frame a second.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 262_144, 1] {
        out.extend(word.to_le_bytes());
    }
    for (second, frame) in frames.iter().enumerate() {
        for word in [second as u32, 0, frame.len() as u32, frame.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}

/// Runs a program with that input; its output. A program that is missing or fails fails the test.
fn run(command: &mut Command, input: &[u8]) -> String {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap_or_else(
            |error| panic!("cannot run {command:?}: {error}; install tshark and python3-scapy"),
        );
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("its output");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    feeder.join().expect("the feeder").expect("all input was read");
    String::from_utf8(output.stdout).expect("text")
}

/// What tshark says of each frame: its protocols, then one column for each status.
fn dissect(frames: &[Vec<u8>]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-T", "fields", "-E", "occurrence=a", "-E", "separator=|"]);
    for name in ["ip", "udp", "tcp"] {
        command.args(["-o", &format!("{name}.check_checksum:TRUE")]);
    }
    command.args(["-o", "sctp.checksum:CRC 32c"]);
    // Frames of one flow are not segments of one stream here: sequence analysis would only find fault.
    command.args(["-o", "tcp.analyze_sequence_numbers:FALSE"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let text = run(&mut command, &pcap(frames));
    let rows: Vec<Vec<String>> =
        text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect();
    assert_eq!(rows.len(), frames.len());
    rows
}

const FIELDS: [&str; 12] = [
    "frame.protocols",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
    "gre.checksum.status",
    "sctp.checksum.status",
    "igmp.checksum.status",
];
/// Severity from which an expert item means a broken packet (PI_ERROR); connection notes lie below.
const ERROR: u32 = 0x0080_0000;
const GOOD: &str = "1";

/// One line for every protocol of the language: expression, size, and the layers tshark must find. Ports are those
/// that no dissector claims: zeros are no sound DHCP message.
const CASES: &[(&str, Option<&str>, &str)] = &[
    ("ether(src=02:00:00:00:00:00/32)/raw(\"x\")", None, "eth:ethertype"),
    ("vlan(id=1..4094)/ipv4/udp(sport=49152..65535)", Some("64..200"), "eth:ethertype:vlan:ethertype:ip:udp"),
    (
        "qinq(id=100)/vlan(id=1..9 every=7)/ipv6(src=2001:db8::/64)/tcp",
        Some("90,91,92"),
        "ieee8021ad:ethertype:vlan:ethertype:ipv6:tcp",
    ),
    (
        "mpls(label=16..999)/mpls(label=random(16..999), ttl=1..255)/ipv4(dst=10.0.0.0/8 step=257)/udp",
        Some("random(64..900)"),
        "mpls:ip:udp",
    ),
    ("arp(op=who-has, psrc=10.0.0.0/24, pdst=10.0.1.0/24)", Some("64"), "eth:ethertype:arp"),
    ("arp(op=is-at, hwsrc=random())", None, "eth:ethertype:arp"),
    (
        "ipv4(src=random(), dst=10.0.0.0/16, ttl=1..255, tos=random(), id=0..65535)/udp(sport=random(40000..49999))",
        Some("imix"),
        "eth:ethertype:ip:udp",
    ),
    (
        "ipv4(options=[rr(3), nop, ra(0)], src=10.0.0.0/16)/udp(dport=[9, 19])",
        Some("random(80..300)"),
        "eth:ethertype:ip:udp",
    ),
    ("ipv4(options=[ts(2), lsrr(10.0.0.1, 10.0.0.2)])/tcp", None, "eth:ethertype:ip:tcp"),
    (
        "ipv6(fl=random(), tc=0..255, src=random(2001:db8::/32))/udp(sport=random(40000..49999), dport=random(20000..20099))",
        Some("random(66..1518)"),
        "eth:ethertype:ipv6:udp",
    ),
    ("ipv6/hopopts(options=[ra(0)])/udp(sport=40000..40999)", Some("80..300"), "ipv6:ipv6.hopopts:udp"),
    (
        "ipv6/dstopts(options=[tunnel_limit(4), padn(3), home(2001:db8::7)])/tcp(seq=random())",
        Some("random(120..300)"),
        "ipv6:ipv6.dstopts:tcp",
    ),
    (
        "ipv6/routing(type=2, segments=[2001:db8::3])/udp(sport=40000..40999)",
        Some("random(120..300)"),
        "ipv6:ipv6.routing:udp",
    ),
    ("ipv6/frag(id=random())/udp(sport=40000..40999)", Some("random(80..300)"), "ipv6:ipv6.fraghdr:udp"),
    ("ipv6/frag(offset=0..99, more=1, id=random())/raw", Some("206"), "ipv6:ipv6.fraghdr"),
    (
        "ipv6/srv6(segments=[2001:db8::3, 2001:db8::2, 2001:db8::1], left=2, tag=random())/udp(sport=40000..40999)",
        Some("random(150..300)"),
        "ipv6:ipv6.routing:udp",
    ),
    (
        "ipv6/srv6(segments=[2001:db8::3, 2001:db8::2], left=0)/ipv4(src=10.0.0.0/16)/tcp",
        Some("random(150..300)"),
        "ipv6:ipv6.routing:ip:tcp",
    ),
    (
        "ipv4(src=10.0.0.0/8 step=65537)/tcp(sport=49152..65535, flags=[S, SA, A, FA], seq=random(), window=random())",
        Some("random(64..1518)"),
        "eth:ethertype:ip:tcp",
    ),
    (
        "ipv4/tcp(options=[mss(1460), nop, wscale(7), sackok, timestamp(1, 0)], sport=40000..40999)",
        None,
        "eth:ethertype:ip:tcp",
    ),
    (
        "ipv4/tcp(flags=A, options=[nop, nop, sack(1, 2, 5, 9)], dport=20001)/raw(\"odd\")",
        None,
        "eth:ethertype:ip:tcp",
    ),
    (
        "ipv4(dst=10.0.0.0/24)/icmp(id=random(), seq=0..65535)",
        Some("random(64..300)"),
        "eth:ethertype:ip:icmp",
    ),
    (
        "ipv4/icmp(type=unreachable, code=1)/ipv4(src=10.0.0.0/16)/udp(dport=40000..40099)",
        Some("random(80..120)"),
        "ip:icmp:ip:udp",
    ),
    ("ipv4/icmp(type=redirect, code=1, gw=10.0.0.0/24)/ipv4/udp", None, "ip:icmp:ip:udp"),
    ("ipv6/icmpv6(id=random(), seq=0..65535)", Some("random(70..300)"), "eth:ethertype:ipv6:icmpv6"),
    (
        "ipv6(hlim=255)/icmpv6(type=neighbor-solicit, target=2001:db8::/112, options=[slla(02:00:00:00:00:01)])",
        None,
        "ipv6:icmpv6",
    ),
    (
        "ipv6(hlim=255)/icmpv6(type=router-advert, rest=0x40000708, options=[mtu(0, 1500)], reachable=0..99)",
        None,
        "ipv6:icmpv6",
    ),
    ("ipv6/icmpv6(type=too-big, mtu=1280..1500)/ipv6/udp", None, "ipv6:icmpv6:ipv6:udp"),
    (
        "ipv4/gre(key=random(), seq=0..65535, chksum_present=1)/ipv4(src=10.0.0.0/16)/udp(sport=40000..40999)",
        Some("random(100..300)"),
        "ip:gre:ip:udp",
    ),
    (
        "ipv6/gre/ether(src=random())/vlan(id=1..99)/ipv6(dst=random(::/0))/icmpv6",
        Some("random(150..300)"),
        "ipv6:gre:eth:ethertype:vlan:ethertype:ipv6:icmpv6",
    ),
    (
        "ipv4(src=10.0.0.0/16)/udp(sport=49152..65535)/vxlan(vni=random())/ether(src=random())/ipv4(src=192.168.0.0/16, ttl=1..9)/udp(sport=40000..40999)",
        Some("128:7,594:4,1518:1"),
        "udp:vxlan:eth:ethertype:ip:udp",
    ),
    (
        "ipv6/udp(sport=49152..65535)/vxlan/ether/ipv6(src=random(2001:db8::/64))/tcp(seq=random())/raw(\"odd\")",
        Some("random(200..400)"),
        "udp:vxlan:eth:ethertype:ipv6:tcp",
    ),
    (
        "ipv4/udp(sport=2152)/gtpu(teid=random())/ipv4(src=10.45.0.0/16)/tcp(sport=40000..40999)",
        Some("random(120..300)"),
        "udp:gtp:ip:tcp",
    ),
    (
        "ipv4/udp(sport=2152)/gtpu(seq=0..65535, ext=[psc(1, 9)])/ipv6(src=random(2001:db8::/32))/udp(sport=40000..40999)",
        Some("random(150..300)"),
        "udp:gtp:ipv6:udp",
    ),
    ("ipv4(src=10.0.0.0/16)/ipv4(src=10.1.0.0/16)/udp", Some("random(100..300)"), "ip:ip:udp"),
    (
        "ipv4(src=10.0.0.0/16)/sctp(sport=49152..65535, dport=49151, tag=random())/sctpdata(tsn=0..4294967295, sid=random())",
        Some("66:1,70:2,600:3,1518:1"),
        "eth:ethertype:ip:sctp",
    ),
    ("ipv6(src=2001:db8::/64)/sctp(dport=40000..40999)/sctpdata/raw(\"odd\")", None, "ipv6:sctp"),
    (
        "vlan(id=1..9)/ipv4(ttl=1..255)/sctp(dport=40000)/sctpdata(ppid=0)/raw(\"the same\")",
        None,
        "vlan:ethertype:ip:sctp",
    ),
    ("ipv6/dstopts/sctp(tag=random())/raw(hex=\"0b 00 00 04\")", None, "ipv6:ipv6.dstopts:sctp"),
    (
        "ipv4/udp(sport=2152)/gtpu(teid=random())/ipv4(src=10.45.0.0/16)/sctp(sport=40000..40999)/sctpdata(tsn=random())",
        Some("110:1,202:1"),
        "udp:gtp:ip:sctp",
    ),
    (
        "ipv4(dst=239.255.0.0/24, ttl=1)/igmp(type=[query, report, leave], group=239.255.0.0/24)",
        None,
        "eth:ethertype:ip:igmp",
    ),
    (
        "ipv4(dst=224.0.0.22, ttl=1, options=[ra(0)])/igmpv3(records=[to_exclude(239.1.0.0/16), allow(232.0.0.1, 10.0.0.0/24)])",
        None,
        "eth:ethertype:ip:igmp",
    ),
    (
        "ipv4(ttl=1)/igmpv3(type=query, group=232.0.0.0/24, sources=[10.0.0.1, 10.0.0.2], qqic=1..127)",
        None,
        "eth:ethertype:ip:igmp",
    ),
    (
        "ipv4(src=10.0.0.0/16)/udp(sport=49152..65535)/dns(id=random(), qname=[\"a.example\", \"longer.example\", \"x.y.z.example\"], qclass=IN)",
        None,
        "eth:ethertype:ip:udp:dns",
    ),
    (
        "ipv6(src=2001:db8::/64)/udp(dport=49152..65535)/dns(id=0..65535, rcode=0, answers=[a(random(10.0.0.0/8)), aaaa(2001:db8::/64), mx(10, \"m.example\"), cname(\"c.example\"), txt(\"hello\")], edns=512..4096)",
        Some("random(240..300)"),
        "eth:ethertype:ipv6:udp:dns",
    ),
    (
        "ether(src=02:00:00:00:00:00/32, dst=ff:ff:ff:ff:ff:ff)/ipv4(src=0.0.0.0, dst=255.255.255.255)/udp/dhcp(type=[discover, request, inform], xid=random(), client_id=02:00:00:00:00:00/32, requested=10.0.0.0/8, hostname=[\"pc\", \"printer\"], params=[1, 3, 6, 15], vendor=\"test\", options=[opt(57, hex=\"05dc\")])",
        None,
        "eth:ethertype:ip:udp:dhcp",
    ),
    (
        "vlan(id=1..9)/ipv4/udp/dhcp(type=ack, xid=random(), yiaddr=10.0.0.0/8, server=10.0.0.1, lease=60..3600, mask=255.0.0.0, router=10.0.0.1, dns=10.0.0.2, domain=\"example.org\")",
        None,
        "vlan:ethertype:ip:udp:dhcp",
    ),
    ("ipv4/udp(sport=49152..65535)/ntp(sent=random())", None, "eth:ethertype:ip:udp:ntp"),
    (
        "ipv4(src=10.0.0.0/16)/tcp(sport=49152..65535, seq=random())/http(path=[\"/\", \"/index.html\", \"/a/longer/path\"], host=[\"a.example\", \"b.example\", \"ccc.example\"], headers=[\"Accept: */*\"])",
        None,
        "eth:ethertype:ip:tcp:http",
    ),
    (
        "ipv6/tcp(dport=49152..65535, seq=1..9)/http(status=[\"200 OK\", \"404 Not Found\"], body=[\"hello\", \"no\"])",
        None,
        "ipv6:tcp:http",
    ),
    ("ipv4/payload(len=0..99, fill=\"ab\")", None, "eth:ethertype:ip"),
];

#[test]
fn tshark_finds_no_fault_in_any_protocol_while_fields_and_lengths_vary() {
    // One run for all: most of tshark's time is its start.
    const EACH: usize = 120;
    let made: Vec<Vec<u8>> =
        CASES.iter().flat_map(|(text, size, _)| frames(text, *size, EACH as u64)).collect();
    let rows = dissect(&made);
    for ((text, _, layers), rows) in CASES.iter().zip(rows.chunks(EACH)) {
        for (n, row) in rows.iter().enumerate() {
            let at = || format!("{text}, frame {n}: {row:?}");
            let [protocols, malformed, severities, _, sums @ ..] = row.as_slice() else { panic!("{}", at()) };
            assert!(protocols.contains(layers), "{}", at());
            assert!(malformed.is_empty(), "{}", at());
            for severity in severities.split(',').filter(|s| !s.is_empty()) {
                assert!(severity.parse::<u32>().expect("a number") < ERROR, "{}", at());
            }
            for sum in sums.iter().flat_map(|list| list.split(',')).filter(|sum| !sum.is_empty()) {
                assert_eq!(sum, GOOD, "{}", at());
            }
            assert_eq!(sums[5].is_empty(), !text.contains("chksum_present=1"), "{}", at());
            // Every layer that has a checksum was judged, at least once for each time it stands there.
            for (name, column) in [("ip", 0), ("udp", 1), ("tcp", 2), ("icmp", 3), ("icmpv6", 4), ("sctp", 6)]
            {
                let stands = protocols.split(':').filter(|layer| *layer == name).count();
                // What stands in an ICMP error is a quotation: tshark does not judge its transport checksum.
                let quoted = protocols.contains("icmp:ip:") || protocols.contains("icmpv6:ipv6:");
                let judged = sums[column].split(',').filter(|sum| !sum.is_empty()).count();
                assert!(judged >= stands || quoted && name == "udp", "{name}: {}", at());
            }
        }
    }
}

/// What tshark reads in a message: expression, frame, field, value.
const READ: &[(&str, u64, &str, &str)] = &[
    ("ipv4/udp/dns(id=0x1234, qname=\"www.example.com\", qtype=AAAA)", 0, "dns.id", "0x1234"),
    ("ipv4/udp/dns(qname=[\"a.example\", \"longer.example\"])", 1, "dns.qry.name", "longer.example"),
    ("ipv4/udp/dns(qname=[\"a.example\", \"longer.example\"])", 0, "dns.opt.len", "5"),
    ("ipv4/udp/dns(qtype=[A, MX, ANY])", 2, "dns.qry.type", "255"),
    ("ipv4/udp/dns(qclass=CH, qtype=TXT)", 0, "dns.qry.class", "0x0003"),
    ("ipv4/udp/dns(answers=192.0.2.0/24)", 77, "dns.a", "192.0.2.77"),
    ("ipv4/udp/dns(answers=[192.0.2.1, 2001:db8::9])", 0, "dns.aaaa", "2001:db8::9"),
    ("ipv4/udp/dns(answers=[mx(10, \"m.example\")])", 0, "dns.mx.mail_exchange", "m.example"),
    ("ipv4/udp/dns(answers=192.0.2.1, ttl=60)", 0, "dns.resp.ttl", "60"),
    ("ipv4/udp/dns(answers=192.0.2.1, qr=1, rcode=nxdomain)", 0, "dns.flags.rcode", "3"),
    ("ipv4/udp/dns(edns=1400)", 0, "dns.rr.udp_payload_size", "1400"),
    ("ether(src=02:00:00:00:00:00/40)/ipv4/udp/dhcp", 9, "dhcp.hw.mac_addr", "02:00:00:00:00:09"),
    ("ipv4/udp/dhcp(type=[discover, request])", 1, "dhcp.option.dhcp", "3"),
    ("ipv4/udp/dhcp(xid=0xdeadbeef, hostname=[\"a\", \"bcd\"])", 1, "dhcp.option.hostname", "bcd"),
    ("ipv4/udp/dhcp(requested=10.0.0.0/24)", 3, "dhcp.option.requested_ip_address", "10.0.0.3"),
    ("ipv4/udp/dhcp(params=[1, 3, 6])", 0, "dhcp.option.request_list_item", "1,3,6"),
    ("ipv4/udp/dhcp(type=offer, lease=7200, server=10.0.0.1)", 0, "dhcp.option.dhcp_server_id", "10.0.0.1"),
    (
        "ipv4/igmpv3(records=[to_exclude(239.1.0.0/16), block(232.0.0.1, 10.0.0.7)])",
        5,
        "igmp.maddr",
        "239.1.0.5,232.0.0.1",
    ),
    (
        "ipv4/igmpv3(records=[to_exclude(239.1.0.0/16), block(232.0.0.1, 10.0.0.7)])",
        5,
        "igmp.record_type",
        "4,6",
    ),
    ("ipv4/igmpv3(type=query, sources=[10.0.0.1, 10.0.0.2])", 0, "igmp.num_src", "2"),
    ("ipv4/udp/ntp(mode=server, stratum=2)", 0, "ntp.stratum", "2"),
    (
        "ipv4/tcp(sport=5001)/http(method=PUT, path=[\"/\", \"/b\"], body=\"abc\")",
        1,
        "http.request.uri",
        "/b",
    ),
    ("ipv4/tcp(sport=5002)/http(host=[\"a.example\", \"bb.example\"])", 0, "http.host", "a.example"),
    ("ipv4/tcp(dport=5003)/http(status=404, body=\"gone\")", 0, "http.response.code", "404"),
    ("ipv4/tcp(dport=5004)/http(status=200, body=\"hello\")", 0, "http.content_length", "5"),
];

#[test]
fn tshark_reads_in_messages_what_was_written() {
    let made: Vec<Vec<u8>> =
        READ.iter().map(|(text, n, ..)| frames(text, None, n + 1).pop().expect("a frame")).collect();
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-T", "fields", "-E", "occurrence=a", "-E", "separator=|"]);
    // Each frame by itself: they are not of one conversation.
    command.args(["-o", "tcp.desegment_tcp_streams:FALSE", "-e", "_ws.malformed"]);
    for (_, _, field, _) in READ {
        command.args(["-e", field]);
    }
    let text = run(&mut command, &pcap(&made));
    assert_eq!(text.lines().count(), READ.len());
    for (i, (row, (expression, _, field, value))) in text.lines().zip(READ).enumerate() {
        let columns: Vec<&str> = row.split('|').collect();
        assert_eq!((columns[0], columns[i + 1]), ("", *value), "{expression}: {field} in {row}");
    }
}

#[test]
fn tshark_sees_the_faults_that_were_asked_for() {
    let cases = [
        ("ipv4(chksum=bad, src=10.0.0.0/16)/udp", 4),
        ("ipv4/udp(chksum=bad, sport=40000..40999)/raw(\"x\")", 5),
        ("ipv6/tcp(chksum=bad, seq=random())", 6),
        ("ipv4/icmp(chksum=bad, seq=0..999)", 7),
        ("ipv6/icmpv6(cksum=0x1234)", 8),
        ("ipv4/gre(chksum=bad)/ipv4(id=0..65535)/udp", 9),
        ("ipv4/sctp(chksum=bad, tag=random())/sctpdata", 10),
        ("ipv6(src=2001:db8::/64)/sctp(chksum=bad)/sctpdata/raw(\"x\")", 10),
    ];
    let mut made: Vec<Vec<u8>> = cases.iter().flat_map(|(text, _)| frames(text, None, 100)).collect();
    made.extend(frames("ipv4/udp(chksum=0)", None, 1));
    let rows = dissect(&made);
    for ((text, column), rows) in cases.iter().zip(rows.chunks(100)) {
        for row in rows {
            assert_eq!(row[*column], "0", "{text}: {row:?}");
        }
    }
    assert_eq!(rows.last().expect("the last frame")[5], "3", "no checksum: {rows:?}");
}

/// The same packet for us and for Scapy. Where defaults differ, both sides say the value.
const SAME: &[(&str, &str)] = &[
    ("ipv4/udp(dport=53)/raw(\"hi\")", "IP(src=A,dst=B)/UDP(sport=1024,dport=53)/b'hi'"),
    (
        "ipv4(tos=0xb8, id=77, flags=DF, ttl=3)/tcp(flags=SA, seq=1, ack=2, window=99, urgptr=4)",
        "IP(src=A,dst=B,tos=0xb8,id=77,flags='DF',ttl=3)/TCP(sport=1024,dport=80,flags='SA',seq=1,ack=2,window=99,urgptr=4)",
    ),
    (
        "ipv4/tcp(options=[mss(1460), sackok, timestamp(1, 0), nop, wscale(7)])",
        "IP(src=A,dst=B)/TCP(sport=1024,dport=80,options=[('MSS',1460),('SAckOK',b''),('Timestamp',(1,0)),('NOP',None),('WScale',7)])",
    ),
    (
        "ipv4(options=[rr(3), nop, ra(0)])/udp",
        "IP(src=A,dst=B,options=[IPOption_RR(routers=['0.0.0.0']*3),IPOption_NOP(),IPOption_Router_Alert()])/UDP(sport=1024,dport=9)",
    ),
    (
        "vlan(prio=5, id=7)/ipv4/icmp(id=1, seq=2)/raw(\"abc\")",
        "Dot1Q(prio=5,vlan=7)/IP(src=A,dst=B)/ICMP(id=1,seq=2)/b'abc'",
    ),
    (
        "qinq(id=100)/vlan(id=5)/ipv6/udp",
        "Dot1AD(vlan=100)/Dot1Q(vlan=5)/IPv6(src=C,dst=D)/UDP(sport=1024,dport=9)",
    ),
    (
        "mpls(label=100, tc=2)/mpls(label=200, ttl=9)/ipv4/udp",
        "MPLS(label=100,cos=2,s=0,ttl=64)/MPLS(label=200,s=1,ttl=9)/IP(src=A,dst=B)/UDP(sport=1024,dport=9)",
    ),
    (
        "arp(op=is-at, hwdst=02:00:00:00:00:02)",
        "ARP(op=2,hwsrc='02:00:00:00:00:01',psrc=A,hwdst='02:00:00:00:00:02',pdst=B)",
    ),
    (
        "ipv6(tc=3, fl=0x12345, hlim=9)/icmpv6(id=4, seq=5)/raw(\"odd\")",
        "IPv6(src=C,dst=D,tc=3,fl=0x12345,hlim=9)/ICMPv6EchoRequest(id=4,seq=5,data=b'odd')",
    ),
    (
        "ipv6(hlim=255)/icmpv6(type=135, target=2001:db8::9, options=[slla(02:00:00:00:00:01)])",
        "IPv6(src=C,dst=D,hlim=255)/ICMPv6ND_NS(tgt='2001:db8::9')/ICMPv6NDOptSrcLLAddr(lladdr='02:00:00:00:00:01')",
    ),
    (
        "ipv6/hopopts(options=[ra(0)])/udp",
        "IPv6(src=C,dst=D)/IPv6ExtHdrHopByHop(options=[RouterAlert(value=0)])/UDP(sport=1024,dport=9)",
    ),
    (
        "ipv6/frag(offset=3, more=1, id=5)/raw(\"12345678\")",
        "IPv6(src=C,dst=D)/IPv6ExtHdrFragment(nh=59,offset=3,m=1,id=5)/b'12345678'",
    ),
    (
        "ipv6/routing(type=0, segments=[2001:db8::3])/udp",
        "IPv6(src=C,dst=D)/IPv6ExtHdrRouting(type=0,addresses=['2001:db8::3'])/UDP(sport=1024,dport=9)",
    ),
    (
        "ipv6(dst=2001:db8::1)/srv6(segments=[2001:db8::3, 2001:db8::2, 2001:db8::1], left=2, tag=9)/tcp",
        "IPv6(src=C,dst='2001:db8::1')/IPv6ExtHdrSegmentRouting(addresses=['2001:db8::3','2001:db8::2','2001:db8::1'],segleft=2,lastentry=2,tag=9)/TCP(sport=1024,dport=80)",
    ),
    (
        "ipv4/gre(key=7, seq=9, chksum_present=1)/ipv4(src=10.0.0.1, dst=10.0.0.2)/udp/raw(\"x\")",
        "IP(src=A,dst=B)/GRE(chksum_present=1,key_present=1,key=7,seqnum_present=1,seqence_number=9)/IP(src='10.0.0.1',dst='10.0.0.2')/UDP(sport=1024,dport=9)/b'x'",
    ),
    (
        "ipv4/udp(sport=5000)/vxlan(vni=42)/ether/ipv6/tcp(flags=FPU)",
        "IP(src=A,dst=B)/UDP(sport=5000,dport=4789)/VXLAN(flags=8,vni=42)/E/IPv6(src=C,dst=D)/TCP(sport=1024,dport=80,flags='FPU')",
    ),
    (
        "ipv4/udp(sport=2152)/gtpu(teid=9)/ipv4(src=10.0.0.1, dst=10.0.0.2)/udp",
        "IP(src=A,dst=B)/UDP(sport=2152,dport=2152)/GTP_U_Header(teid=9,gtp_type=255)/IP(src='10.0.0.1',dst='10.0.0.2')/UDP(sport=1024,dport=9)",
    ),
    (
        "ipv4/udp(sport=2152)/gtpu(teid=9, seq=5)/ipv6/udp",
        "IP(src=A,dst=B)/UDP(sport=2152,dport=2152)/GTP_U_Header(teid=9,gtp_type=255,S=1,seq=5)/IPv6(src=C,dst=D)/UDP(sport=1024,dport=9)",
    ),
    ("ipv4/ipv6/udp(chksum=0)", "IP(src=A,dst=B)/IPv6(src=C,dst=D)/UDP(sport=1024,dport=9,chksum=0)"),
    (
        "ipv4(chksum=0x1234, len=99, ihl=7)/udp(len=3, chksum=0xabcd)",
        "IP(src=A,dst=B,chksum=0x1234,len=99,ihl=7)/UDP(sport=1024,dport=9,len=3,chksum=0xabcd)",
    ),
    (
        "ipv4/sctp(sport=5000, dport=2905, tag=0x01020304)/sctpdata(tsn=7, stream_id=2, stream_seq=3, proto_id=46)/raw(\"hello\")",
        "IP(src=A,dst=B)/SCTP(sport=5000,dport=2905,tag=0x01020304)/SCTPChunkData(beginning=1,ending=1,tsn=7,stream_id=2,stream_seq=3,proto_id=46,data=b'hello')",
    ),
    (
        "ipv6/sctp(tag=9)/sctpdata(flags=U, sid=1, ssn=1, tsn=1, ppid=60)/raw(\"four\")",
        "IPv6(src=C,dst=D)/SCTP(sport=1024,dport=9,tag=9)/SCTPChunkData(unordered=1,tsn=1,stream_id=1,stream_seq=1,proto_id=60,data=b'four')",
    ),
    (
        "ipv4/udp(sport=2152)/gtpu(teid=9)/ipv4/sctp(chksum=0x01020304)/raw(hex=\"0b000004\")",
        "IP(src=A,dst=B)/UDP(sport=2152,dport=2152)/GTP_U_Header(teid=9,gtp_type=255)/IP(src=A,dst=B)/SCTP(sport=1024,dport=9,chksum=0x01020304)/SCTPChunkCookieAck()",
    ),
    (
        "ipv4/icmp(type=3, code=4, mtu=1400)/ipv4/udp",
        "IP(src=A,dst=B)/ICMP(type=3,code=4,nexthopmtu=1400)/IP(src=A,dst=B)/UDP(sport=1024,dport=9)",
    ),
];

#[test]
fn scapy_makes_the_same_bytes() {
    let mut script = String::from(
        "from scapy.all import *\nfrom scapy.contrib.mpls import MPLS\nfrom scapy.contrib.gtp import GTP_U_Header\n\
         A='198.18.0.1'; B='198.19.0.1'; C='2001:2::1'; D='2001:2:0:1::1'\n\
         E=Ether(src='02:00:00:00:00:01',dst='02:00:00:00:00:02')\n",
    );
    for (_, scapy) in SAME {
        script.push_str(&format!("print(bytes(E/{scapy}).hex())\n"));
    }
    // The distribution's Python: the only one that has the distribution's Scapy.
    let output = run(Command::new("/usr/bin/python3").arg("-"), script.as_bytes());
    let theirs: Vec<&str> = output.lines().collect();
    assert_eq!(theirs.len(), SAME.len(), "{output}");
    for ((ours, scapy), theirs) in SAME.iter().zip(theirs) {
        let bytes = frames(ours, None, 1).remove(0);
        let ours_hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            ours_hex,
            theirs,
            "{ours}\n{scapy}\n{}",
            wire::show::show(wire::LinkType::ETHERNET, &bytes)
        );
    }
}
