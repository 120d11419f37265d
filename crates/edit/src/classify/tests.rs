//! What tcpprep's modes decide, on frames made here.

use super::*;
use capture::{FileFormat, Writer};

/// An IPv4 packet in Ethernet.
fn v4(ends: [[u8; 4]; 2], protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, ends[0][3], 8, 0, 0x45, 0];
    frame.extend((20 + transport.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend(ends.as_flattened());
    frame.extend(transport);
    frame
}

fn v6(ends: [u8; 2], protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((transport.len() as u16).to_be_bytes());
    frame.extend([protocol, 64]);
    for end in ends {
        frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    frame.extend(transport);
    frame
}

fn tcp(ports: [u16; 2], flags: u8) -> Vec<u8> {
    let mut header = vec![0; 20];
    header[..2].copy_from_slice(&ports[0].to_be_bytes());
    header[2..4].copy_from_slice(&ports[1].to_be_bytes());
    (header[12], header[13]) = (0x50, flags);
    header
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut header = [ports[0], ports[1], 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    header.extend(payload);
    header
}

fn arp() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 8, 6]);
    frame.extend([0; 28]);
    frame
}

fn reader(link: LinkType, frames: &[Vec<u8>]) -> Reader {
    let mut writer = Writer::new(Vec::new(), FileFormat::PcapMicroseconds, link);
    for frame in frames {
        writer.write(0, frame, frame.len() as u32).unwrap();
    }
    let bytes = writer.into_inner().unwrap();
    Reader::from_read(Box::new(std::io::Cursor::new(bytes)), "made here").unwrap()
}

/// A letter for each packet: primary, secondary, skipped.
fn ways(frames: &[Vec<u8>], rules: &Rules) -> String {
    let cache = classify(&mut reader(LinkType::ETHERNET, frames), rules).unwrap();
    let letter = |way| match way {
        Way::Primary => 'P',
        Way::Secondary => 's',
        Way::Skip => '-',
    };
    cache.ways().map(letter).collect()
}

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [192, 0, 2, 2];
const C: [u8; 4] = [192, 0, 2, 3];

/// A asks B by TCP, C only talks, and there is ARP.
fn conversation() -> Vec<Vec<u8>> {
    vec![
        v4([A, B], 6, &tcp([40000, 80], 0x02)),
        v4([B, A], 6, &tcp([80, 40000], 0x12)),
        v4([A, B], 6, &tcp([40000, 80], 0x10)),
        v4([C, A], 17, &udp([5000, 5001], b"")),
        arp(),
    ]
}

#[test]
fn hosts_that_gave_nothing_away_go_where_the_mode_says() {
    let frames = conversation();
    let of = |kind| ways(&frames, &Rules::new(Mode::Auto(kind)));
    assert_eq!(of(Auto::Bridge), "PsPss");
    assert_eq!(of(Auto::Server), "PsPss");
    assert_eq!(of(Auto::Client), "PsPPs");
    assert_eq!(of(Auto::Router), "PsPPs");
    assert_eq!(of(Auto::First), "PsPPs");
    let nonip = Rules { nonip_primary: true, ..Rules::new(Mode::Auto(Auto::Router)) };
    assert_eq!(ways(&frames, &nonip), "PsPsP");
}

#[test]
fn each_ipv6_host_is_known_by_itself() {
    let frames = [
        v6([1, 2], 6, &tcp([1000, 80], 0x02)),
        v6([2, 1], 6, &tcp([80, 1000], 0x12)),
        v6([3, 2], 17, &[0; 8]),
    ];
    assert_eq!(ways(&frames, &Rules::new(Mode::Auto(Auto::Bridge))), "Pss");
    assert_eq!(ways(&frames, &Rules::new(Mode::Auto(Auto::First))), "PsP");
    let as_tcpprep = Rules { one_ipv6_host: true, ..Rules::new(Mode::Auto(Auto::Bridge)) };
    assert_eq!(ways(&frames, &as_tcpprep), "PPP");
}

#[test]
fn the_ratio_weighs_deeds() {
    let once = v4([A, B], 6, &tcp([1, 2], 0x02));
    let answer = v4([A, B], 6, &tcp([1, 2], 0x12));
    let frames = [once, answer.clone(), answer];
    for (ratio, expected) in [(2.0, "sss"), (2.1, "PPP"), (0.0, "sss")] {
        let rules = Rules { ratio, ..Rules::new(Mode::Auto(Auto::Bridge)) };
        assert_eq!(ways(&frames, &rules), expected, "ratio {ratio}");
    }
}

#[test]
fn names_and_closed_ports_give_servers_away() {
    let dns = |flags: u8| [0, 1, flags, 0x80, 0, 1, 0, 0, 0, 0, 0, 0];
    let port_unreachable = [3, 3, 0, 0, 0, 0, 0, 0];
    let role_of = |frame: Vec<u8>| ways(&[frame], &Rules::new(Mode::Auto(Auto::Client)));
    assert_eq!(role_of(v4([A, B], 17, &udp([53, 1000], &dns(0x81)))), "s");
    assert_eq!(role_of(v4([A, B], 17, &udp([1000, 53], &dns(0x01)))), "P");
    assert_eq!(role_of(v4([A, B], 1, &port_unreachable)), "s");
    assert_eq!(role_of(v4([A, B], 1, &[3, 1, 0, 0])), "P");
    // A data connection of FTP is opened by its server; cut headers say nothing.
    assert_eq!(role_of(v4([A, B], 6, &tcp([20, 1000], 0x12))), "P");
    assert_eq!(role_of(v4([A, B], 6, &tcp([80, 1000], 0x12)[..14])), "P");
    assert_eq!(role_of(v4([A, B], 17, &udp([53, 1000], &[]))), "P");
}

#[test]
fn networks_addresses_and_patterns_name_the_primary_side() {
    let frames = conversation();
    let cidr = Rules::new(Mode::Cidr("192.0.2.0/31,10.9.0.0/16".parse().unwrap()));
    assert_eq!(ways(&frames, &cidr), "sssss");
    let cidr = Rules::new(Mode::Cidr("192.0.2.2/31".parse().unwrap()));
    assert_eq!(ways(&frames, &cidr), "sPsPs");
    assert_eq!(ways(&frames, &Rules { reverse: true, ..cidr }), "PsPss");
    let mac = Rules::new(Mode::Mac(vec!["02:00:00:00:00:01".parse().unwrap()]));
    assert_eq!(ways(&frames, &mac), "PsPss");
    assert_eq!(ways(&frames, &Rules { reverse: true, ..mac }), "sPsPP");
    let regex = Rules::new(Mode::Regex(Regex::new(r"^192\..*2$").unwrap()));
    assert_eq!(ways(&frames, &regex), "sPsss");
    assert_eq!(ways(&frames, &Rules { reverse: true, ..regex }), "sssss");
    let port = Rules::new(Mode::Port(Services::default()));
    assert_eq!(ways(&frames, &port), "PsPss");
}

#[test]
fn packets_are_chosen_by_number_and_by_address() {
    let frames = conversation();
    let with = |selection: Result<Selection, BadSelection>| {
        let mode = Mode::Cidr("10.0.0.0/8".parse().unwrap());
        ways(&frames, &Rules { selection: Some(selection.unwrap()), ..Rules::new(mode) })
    };
    assert_eq!(with(Selection::include("P:1-2,4-")), "Ps-ss");
    assert_eq!(with(Selection::exclude("P:1-2,4-")), "--P--");
    assert_eq!(with(Selection::include("P:0-2,9-0")), "Ps---");
    assert_eq!(with(Selection::include("S:10.0.0.0/8")), "P-P-s");
    assert_eq!(with(Selection::include("D:10.0.0.0/8")), "-s-ss");
    assert_eq!(with(Selection::exclude("E:192.0.2.2")), "---ss");
    assert_eq!(with(Selection::exclude("B:192.0.2.2,10.0.0.1")), "---ss");
    // Hosts are learnt from what is sent; what is left out has its entry all the same.
    let rules =
        Rules { selection: Some(Selection::exclude("P:2").unwrap()), ..Rules::new(Mode::Auto(Auto::Bridge)) };
    assert_eq!(ways(&frames, &rules), "P-Pss");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for bad in
        ["", "S", "S:", "S:10.0.0.0/33", "P:", "P:1--2", "P:x", "P:1,,2", "Q:1", "P:-3", "F:tcp", "S:1.2.3"]
    {
        assert!(Selection::include(bad).is_err(), "{bad}");
    }
    for bad in ["", "10.0.0.0/", "10.0.0.0/+8", "[::1", "::1/129", "10.0.0.0/8,"] {
        assert!(bad.parse::<Nets>().is_err(), "{bad}");
    }
    assert!("[2001:db8::/32],::/0,0.0.0.0/0,10.0.0.1".parse::<Nets>().is_ok());
}

#[test]
fn prefixes_need_not_be_whole_bytes() {
    let net: Net = "[2001:db8:8000::/33]".parse().unwrap();
    assert!(net.contains("2001:db8:ffff::1".parse().unwrap()));
    assert!(!net.contains("2001:db8:7fff::1".parse().unwrap()));
    assert!(!net.contains("10.0.0.1".parse().unwrap()));
    let all: Net = "0.0.0.0/0".parse().unwrap();
    assert!(all.contains("203.0.113.9".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
}

#[test]
fn services_are_read_as_etc_services_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("services");
    std::fs::write(&path, "# web\nhttp\t8080/tcp www # 81/tcp\nx 53/udp\nbad 70000/tcp\n7/sctp\n").unwrap();
    let services = Services::open(&path).unwrap();
    assert_eq!(
        [services.tcp(8080), services.tcp(81), services.tcp(80), services.tcp(53)],
        [true, false, false, false]
    );
    assert!(services.udp(53) && !services.udp(8080));
    std::fs::write(&path, "nothing\n").unwrap();
    assert!(Services::open(&path).unwrap_err().to_string().contains("names no service"));
}

#[test]
fn faults_are_told_and_odd_frames_are_not_fatal() {
    let frames = [vec![], vec![0; 5], arp()];
    assert_eq!(ways(&frames, &Rules::new(Mode::Auto(Auto::Bridge))), "sss");
    assert_eq!(ways(&frames, &Rules::new(Mode::Mac(vec![Mac([0; 6])]))), "sss");
    let error =
        classify(&mut reader(LinkType::ETHERNET, &[]), &Rules::new(Mode::Auto(Auto::First))).unwrap_err();
    assert!(error.to_string().contains("holds no packets"), "{error}");
    let mac = Rules::new(Mode::Mac(vec![Mac([0; 6])]));
    let error = classify(&mut reader(LinkType::RAW, &frames), &mac).unwrap_err();
    assert!(error.to_string().contains("only Ethernet frames"), "{error}");
}
