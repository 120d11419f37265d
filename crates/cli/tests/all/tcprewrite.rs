//! `netdyno tcprewrite` and `netdyno edit`, held to Debian's tcprewrite 4.4.3.
//!
//! 4.4.3 sets the length and computes the checksums of every IP packet whatever it was asked for; 4.5.5 does not, and
//! neither do we. So that the outputs can be compared, both get `--fixcsum` and ours `--fixhdrlen`, too. It also writes
//! a group's address into the Ethernet header of every IPv6 packet and a wrong one for IPv4 groups; those bytes are
//! left out of the comparison. docs/compat.md tells all differences.

use crate::common::{
    Folder, assert_same_frames, command, folder, frames, join_pcap, listing, path, pcap_header, pcap_record,
    run, start, tshark_complaints,
};
use std::fs::{read, write};

/// One's complement sum, written as plainly as can be.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let bytes = parts.concat();
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

pub fn ether(source: u8, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 3 - source, 2, 0, 0, 0, 0, source];
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An IPv4 packet; `flags` is the word with the fragment's offset.
fn ipv4(addresses: [[u8; 4]; 2], protocol: u8, flags: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = (20 + options.len() + payload.len()) as u16;
    let mut header = vec![0x45 + options.len() as u8 / 4, 0];
    header.extend(length.to_be_bytes());
    header.extend([0, 7]);
    header.extend(flags.to_be_bytes());
    header.extend([64, protocol, 0, 0]);
    header.extend(addresses.concat());
    header.extend(options);
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    [header, payload.to_vec()].concat()
}

fn ipv6(from: u8, to: u8, protocol: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((extensions.len() + payload.len()) as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    for host in [from, to] {
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, host, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, host]);
    }
    packet.extend(extensions);
    packet.extend(payload);
    packet
}

/// A TCP segment or UDP datagram with its checksum over the addresses, which stand in `pseudo`.
fn upper(pseudo: &[u8], protocol: u8, ports: [u16; 2], size: usize) -> Vec<u8> {
    let mut bytes = [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat();
    let at = if protocol == 6 {
        bytes.extend([0, 0, 0, 9, 0, 0, 0, 8, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        16
    } else {
        bytes.extend([((8 + size) as u16).to_be_bytes(), [0, 0]].concat());
        6
    };
    bytes.extend((0..size).map(|i| (i * 7) as u8));
    let length = (bytes.len() as u16).to_be_bytes();
    let sum = checksum(&[pseudo, &[0, protocol], &length, &bytes]);
    bytes[at..at + 2].copy_from_slice(&sum);
    bytes
}

pub const A: [u8; 4] = [10, 1, 2, 3];
pub const B: [u8; 4] = [192, 168, 9, 77];

pub fn v4_of(addresses: [[u8; 4]; 2], protocol: u8, ports: [u16; 2], size: usize) -> Vec<u8> {
    ipv4(addresses, protocol, 0x4000, &[], &upper(&addresses.concat(), protocol, ports, size))
}

pub fn v6_of(protocol: u8, ports: [u16; 2], size: usize) -> Vec<u8> {
    let plain = ipv6(1, 2, protocol, &[], &[]);
    ipv6(1, 2, protocol, &[], &upper(&plain[8..40], protocol, ports, size))
}

/// One frame of each kind that is edited.
pub fn crafted() -> Vec<Vec<u8>> {
    let tagged = |tags: &[u16], kind: u16, packet: &[u8]| {
        let mut payload = Vec::new();
        for (n, tag) in tags.iter().enumerate() {
            let next = if n + 1 == tags.len() { kind } else { 0x8100 };
            payload.extend([tag.to_be_bytes(), next.to_be_bytes()].concat());
        }
        payload.extend(packet);
        ether(1, 0x8100, &payload)
    };
    let mut padded = ether(1, 0x0800, &v4_of([A, B], 6, [1024, 80], 0));
    padded.resize(60, 0);
    let mut options = upper(&[A, B].concat(), 6, [1024, 443], 12);
    // Header of 32 bytes: the first 12 of its payload are options now.
    options[12] = 0x80;
    options[16..18].copy_from_slice(&[0, 0]);
    let length = (options.len() as u16).to_be_bytes();
    let sum = checksum(&[&A, &B, &[0, 6], &length, &options]);
    options[16..18].copy_from_slice(&sum);
    let mut no_checksum = v4_of([A, B], 17, [53, 5353], 21);
    no_checksum[26..28].copy_from_slice(&[0, 0]);
    let mut echo = vec![8, 0, 0, 0, 0, 1, 0, 2, 9, 9, 9];
    let sum = checksum(&[&echo]);
    echo[2..4].copy_from_slice(&sum);
    let arp = |operation: u8| {
        let mut arp = vec![0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 1];
        arp.extend(A);
        arp.extend([2, 0, 0, 0, 0, 2]);
        arp.extend(B);
        ether(1, 0x0806, &arp)
    };
    vec![
        padded,
        ether(1, 0x0800, &v4_of([A, B], 6, [1024, 80], 700)),
        ether(2, 0x0800, &v4_of([B, A], 6, [80, 1024], 1460)),
        ether(1, 0x0800, &v4_of([A, B], 17, [53, 8000], 33)),
        ether(1, 0x0800, &no_checksum),
        ether(1, 0x0800, &ipv4([A, B], 6, 0, &[], &options)),
        ether(1, 0x0800, &ipv4([A, B], 17, 0, &[1, 1, 1, 0], &upper(&[A, B].concat(), 17, [7, 80], 50))),
        ether(1, 0x0800, &ipv4([A, B], 1, 0, &[], &echo)),
        ether(1, 0x0800, &ipv4([A, B], 17, 0x2000, &[], &upper(&[A, B].concat(), 17, [7, 80], 472))),
        ether(1, 0x0800, &ipv4([A, B], 17, 60, &[], &[0xaa; 200])),
        ether(1, 0x0800, &ipv4([A, B], 47, 0, &[], &[0x5a; 40])),
        tagged(&[0x6005], 0x0800, &v4_of([A, B], 6, [1, 443], 30)),
        tagged(&[0x3005, 7], 0x0800, &v4_of([A, B], 17, [443, 1], 31)),
        tagged(&[9], 0x0806, &arp(1)[14..]),
        ether(1, 0x8847, &[&[0, 1, 0x01, 64][..], &v4_of([A, B], 17, [80, 90], 41)].concat()),
        ether(1, 0x86dd, &v6_of(6, [1024, 80], 301)),
        ether(1, 0x86dd, &v6_of(17, [80, 2000], 77)),
        tagged(&[0xe009], 0x86dd, &v6_of(17, [80, 2000], 90)),
        arp(1),
        arp(2),
        ether(1, 0x88cc, &[2; 50]),
        vec![2; 10],
        vec![3; 14],
    ]
}

/// Bytes 16 on of a pcap file with each record's two lengths and its frame; those bytes of 4.4.3's that are wrong by
/// the rule above are taken from ours.
fn compare(ours: &str, theirs: &str, options: &str) {
    let (ours_raw, mut theirs_raw) = (read(ours).unwrap(), read(theirs).unwrap());
    let same_length = ours_raw.len() == theirs_raw.len();
    let mut at = 24;
    while same_length && at + 16 < theirs_raw.len() {
        let captured = u32::from_le_bytes(theirs_raw[at + 8..at + 12].try_into().unwrap()) as usize;
        let frame = at + 16;
        let mut kind = frame + 12;
        while kind + 6 < frame + captured && matches!(theirs_raw[kind..kind + 2], [0x81, 0] | [0x88, 0xa8]) {
            kind += 4;
        }
        let group = |at: usize| theirs_raw.get(at).is_some_and(|byte| byte >> 4 == 0xe);
        let wrong = match theirs_raw.get(kind..kind + 2) {
            Some([0x86, 0xdd]) => 12,
            Some([0x08, 0x00]) if group(kind + 18) => 6,
            _ => 0,
        };
        let wrong = wrong.min(captured);
        theirs_raw[frame..frame + wrong].copy_from_slice(&ours_raw[frame..frame + wrong]);
        at = frame + captured;
    }
    if ours_raw != theirs_raw {
        assert_same_frames(&frames(ours), &frames(theirs));
        panic!("{options}: headers of file or records differ");
    }
}

fn alike(dir: &Folder, input: &str, options: &str) {
    let (ours, theirs) = (path(dir, "ours.pcap"), path(dir, "theirs.pcap"));
    run(format!("tcprewrite -i {input} -o {theirs} --fixcsum {options}")).ok();
    run(format!("netdyno tcprewrite -w -i {input} -o {ours} --fixcsum --fixhdrlen {options}")).ok();
    println!("{options}");
    compare(&ours, &theirs, options);
}

/// Each option alone, then together. The seeds are such that no address becomes a group, where 4.4.3 differs.
const OPTIONS: [&str; 41] = [
    "",
    "--enet-smac=00:11:22:33:44:55",
    "--enet-dmac=00:11:22:33:44:55",
    "--enet-dmac=00:11:22:33:44:55 --enet-smac=00:99:88:77:66:55 --skipl2broadcast",
    "--enet-subsmac=02:00:00:00:00:01,00:aa:00:00:00:01 --enet-subsmac=02:00:00:00:00:02,00:aa:00:00:00:02",
    "--enet-mac-seed=42",
    "--enet-mac-seed=7 --enet-mac-seed-keep-bytes=3",
    "--enet-vlan=add --enet-vlan-tag=45 --enet-vlan-cfi=1 --enet-vlan-pri=5",
    "--enet-vlan=add --enet-vlan-tag=45 --enet-vlan-cfi=0 --enet-vlan-pri=0 --enet-vlan-proto=802.1ad",
    "--enet-vlan=del",
    "--tos=50",
    "--ttl=58",
    "--ttl=+200",
    "--ttl=-200",
    "--tclass=33",
    "--flowlabel=70000",
    "-r 80:8080",
    "-r 1-100:49148",
    "-r 80+443:9,8000:8001",
    "-r 80:8080 -r 1024:99",
    "-s 57",
    "--seed=18",
    "-N 10.0.0.0/8:172.16.0.0/12",
    "-N 10.1.2.3:1.2.3.4,192.168.0.0/16:5.0.0.0/8",
    "-N 10.0.0.0/8:1.0.0.0/8 -N 192.168.0.0/16:2.2.0.0/16",
    "-N [2001:db8::/32]:[dead::/16]",
    "-N 0.0.0.0/0:10.9.0.0/16",
    "-S 10.0.0.0/8:11.0.0.0/8",
    "-D 192.168.0.0/16:11.12.0.0/16",
    "-S 10.0.0.0/8:11.0.0.0/8 -D 192.168.9.77:8.8.8.8",
    "--tcp-sequence=42",
    "--efcs",
    "--mtu-trunc --mtu=300",
    "-m 100 --mtu-trunc --ttl=9",
    "-N 10.0.0.0/8:1.0.0.0/8 -r 80:8080 --ttl=+1 --tos=4 --enet-vlan=del --enet-smac=00:01:02:03:04:05",
    "-s 10 --tcp-sequence=3 --enet-vlan=add --enet-vlan-tag=1 --enet-vlan-cfi=0 --enet-vlan-pri=3",
    "--enet-mac-seed=1 -s 3 -r 1-1024:1025 --ttl=-3 --tclass=1 --flowlabel=2 --mtu-trunc",
    "--dlt=hdlc --hdlc-control=0 --hdlc-address=0x0F",
    "--dlt=user --user-dlink=0x0f,0x00,0x08,0x00 --user-dlt=104",
    "--dlt=user --user-dlink=00,50,da,5d,46,55,0,7,eb,30,a4,c3,08,0",
    "-b -N 10.0.0.0/8:1.0.0.0/8 --efcs --skip-soft-errors",
];

#[test]
fn crafted_frames_come_out_as_tcprewrites() {
    let dir = folder();
    let input = path(&dir, "crafted.pcap");
    crate::common::write_pcap(&input, 1, &crafted());
    for options in OPTIONS {
        alike(&dir, &input, options);
    }
}

#[test]
fn a_whole_capture_comes_out_as_tcprewrites() {
    let dir = folder();
    let input = path(&dir, "small.pcap");
    run(format!("netdyno synth --profile smallflows -w {input}")).ok();
    for options in OPTIONS.iter().step_by(3) {
        alike(&dir, &input, options);
    }
}

#[test]
fn a_seed_damages_the_bytes_that_it_damages_in_tcprewrite() {
    let dir = folder();
    let input = path(&dir, "small.pcap");
    run(format!("netdyno synth --profile smallflows -w {input}")).ok();
    let options = [
        "--fuzz-seed=42 --fuzz-factor=2",
        "--fuzz-seed=7 --fuzz-factor=1 --skip-soft-errors",
        "--fuzz-seed=1234",
        "--fuzz-seed=3 --fuzz-factor=1 --tos=9",
    ];
    for options in options {
        alike(&dir, &input, options);
    }
    // Each edit is done once; 4.4.3 adds two tags.
    let output = path(&dir, "out.pcap");
    run(format!("netdyno tcprewrite -i {input} -o {output} --fuzz-seed=1 --enet-vlan=add --enet-vlan-tag=5"))
        .ok();
    let twice = frames(&output).iter().filter(|frame| frame.get(16..18) == Some(&[0x81, 0])).count();
    assert_eq!(twice, 0);
}

#[test]
fn frames_cut_by_the_capture_are_padded_and_truncated_alike() {
    let dir = folder();
    let input = path(&dir, "cut.pcap");
    let mut bytes = pcap_header(1);
    for (n, frame) in crafted().iter().enumerate() {
        let kept = &frame[..frame.len().min(90)];
        bytes.extend(pcap_record(5, n as u32, frame.len() as u32, kept));
    }
    write(&input, bytes).unwrap();
    for options in ["", "-F pad", "-F trunc", "-F pad -N 10.0.0.0/8:1.0.0.0/8 -r 80:81", "--ttl=7 -F trunc"] {
        alike(&dir, &input, options);
    }
    // 4.4.3 gives up at the first such frame.
    let output = path(&dir, "deleted.pcap");
    run(format!("netdyno tcprewrite -w -i {input} -o {output} -F del")).ok();
    let whole = crafted().into_iter().filter(|frame| frame.len() <= 90 || frame[12..14] == [0x88, 0xcc]);
    assert_same_frames(&frames(&output), &whole.collect::<Vec<_>>());
}

#[test]
fn nothing_changes_that_was_not_asked_for() {
    let dir = folder();
    let (input, output) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    let mut all = crafted();
    // A wrong checksum and a wrong length are the capture's own.
    all[1][24] ^= 0x55;
    all[2][17] ^= 1;
    crate::common::write_pcap(&input, 1, &all);
    run(format!("netdyno edit {input} -w {output}")).ok();
    assert_same_frames(&frames(&output), &all);
}

#[test]
fn edit_says_the_same_in_its_own_words() {
    let dir = folder();
    let input = path(&dir, "in.pcap");
    crate::common::write_pcap(&input, 1, &crafted());
    for (ours, theirs) in [
        (
            "--src-mac 00:01:02:03:04:05 --map-ip 10.0.0.0/8=1.0.0.0/8",
            "--enet-smac=00:01:02:03:04:05 -N 10.0.0.0/8:1.0.0.0/8",
        ),
        ("--map-port 80=8080 --ttl -3 --tos 4", "-r 80:8080 --ttl=-3 --tos=4"),
        (
            "--vlan-add 5 --vlan-priority 2 --scramble-ip 9",
            "--enet-vlan=add --enet-vlan-tag=5 --enet-vlan-pri=2 -s 9",
        ),
    ] {
        let (one, other) = (path(&dir, "one.pcap.gz"), path(&dir, "other.pcap"));
        run(format!("netdyno edit {input} -w {one} {ours}")).ok();
        run(format!("netdyno tcprewrite -w -i {input} -o {other} {theirs}")).ok();
        let unpacked = path(&dir, "unpacked.pcap");
        run(format!("netdyno edit {one} -w {unpacked}")).ok();
        assert_same_frames(&frames(&unpacked), &frames(&other));
    }
}

#[test]
fn sctps_checksum_follows_edits_and_is_computed_when_asked_for() {
    let dir = folder();
    let (input, output) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    let (all, mut edited, mut wrong) = (path(&dir, "all.pcap"), Vec::new(), Vec::new());
    // Scapy's own checksum: of what it reads without one.
    let scapy = |file: &str| {
        let script = "import sys; from scapy.all import *\n\
                      for p in rdpcap(sys.argv[1]):\n \
                      s = p[SCTP]; was = s.chksum; b = bytearray(bytes(s)); b[8:12] = b'\\0' * 4\n \
                      from scapy.layers.sctp import crc32c\n \
                      print(s.sport, s.dport, was == crc32c(bytes(b)))";
        let mut scapy = command("/usr/bin/python3 -c");
        scapy.args([script, file]);
        start(scapy).wait().ok().stdout
    };
    for (ip, pnat) in [("ipv4", "10.0.0.0/8"), ("ipv6", "2001:2::/64")] {
        let (to, source) = if ip == "ipv4" {
            ("11.0.0.0/8", "src=10.0.0.0/24")
        } else {
            ("2001:3::/64", "src=2001:2::/112")
        };
        let craft = |fields: &str| {
            run(format!(
                "netdyno craft {ip}({source})/sctp(sport=1000,dport=80,tag=random(){fields})/sctpdata(tsn=1..9)/raw(\"odd\") --count 20 -w {input}"
            ))
            .ok();
        };
        let brackets = |net: &str| if net.contains(':') { format!("[{net}]") } else { net.to_owned() };
        craft("");
        for edit in [
            format!("edit {input} -w {output} --map-port 80=8080"),
            format!("edit {input} -w {output} --map-port 80=8080 --map-ip {pnat}={to} --fix-checksums"),
            format!("tcprewrite -i {input} -o {output} -r 80:8080"),
            format!("tcprewrite -i {input} -o {output} -r 80:8080 -C -N {}:{}", brackets(pnat), brackets(to)),
        ] {
            run(format!("netdyno {edit}")).ok();
            join_pcap(&mut edited, &output);
        }
        craft(",chksum=0xdeadbeef");
        join_pcap(&mut wrong, &input);
        run(format!("netdyno tcprewrite -i {input} -o {output} --fixcsum")).ok();
        join_pcap(&mut edited, &output);
    }
    std::fs::write(&all, wrong).expect("a capture");
    assert_eq!(tshark_complaints(&all).lines().count(), 2 * 20);
    std::fs::write(&all, edited).expect("a capture");
    assert_eq!(tshark_complaints(&all), "");
    // Of each version of IP what four edits of the port made, and what was only mended.
    let wanted = ["1000 8080 True\n".repeat(4 * 20), "1000 80 True\n".repeat(20)].concat();
    assert_eq!(scapy(&all), wanted.repeat(2));
}

#[test]
fn raw_ip_becomes_ethernet() {
    let dir = folder();
    let (input, output) = (path(&dir, "raw.pcap"), path(&dir, "ether.pcap"));
    let packets = [v4_of([A, B], 6, [1, 2], 9), v6_of(17, [3, 4], 9)];
    crate::common::write_pcap(&input, 101, &packets);
    let macs = "--enet-smac=02:00:00:00:00:01 --enet-dmac=02:00:00:00:00:02";
    run(format!("netdyno tcprewrite -i {input} -o {output} --dlt=enet {macs}")).ok();
    let wanted = [ether(1, 0x0800, &packets[0]), ether(1, 0x86dd, &packets[1])];
    assert_same_frames(&frames(&output), &wanted);
    run(format!("netdyno tcprewrite -i {input} -o {output}.2 --dlt=enet"))
        .refused(&["destination address", "source address"]);
}

#[test]
fn wrong_values_are_named_and_nothing_is_written() {
    let dir = folder();
    let input = path(&dir, "in.pcap");
    crate::common::write_pcap(&input, 1, &crafted());
    let output = path(&dir, "out.pcap");
    for (options, says) in [
        ("-N 10.0.0.0/8:[::1]", "one IP version"),
        ("-r 80", "maps no ports"),
        ("--ttl=300", "no TTL"),
        ("--enet-smac=1:2", "no Ethernet address"),
        ("--fragroute=x", "--fragroute"),
        ("--dlt=atm", "--dlt=atm"),
        ("--load-opts=nowhere", "nowhere"),
        ("--dlt=hdlc", "--hdlc-address"),
        ("--enet-vlan=add", "--enet-vlan-tag"),
    ] {
        run(format!("netdyno tcprewrite -i {input} -o {output} {options}")).refused(&[says]);
    }
    run(format!("netdyno tcprewrite -i {input} -o {input}")).refused(&["read and written at once"]);
    assert_eq!(listing(dir.path()), ["in.pcap"]);
}

#[test]
fn options_are_saved_and_read_again_by_either() {
    let dir = folder();
    let (input, options) = (path(&dir, "in.pcap"), path(&dir, "options"));
    crate::common::write_pcap(&input, 1, &crafted());
    let words = "--ttl=7 -r 80:8080 -N 10.0.0.0/8:1.0.0.0/8 --fixcsum --fixlen=pad";
    for saver in ["netdyno tcprewrite", "tcprewrite"] {
        run(format!("{saver} {words} --save-opts={options}")).ok();
        alike(&dir, &input, &format!("--load-opts={options}"));
        assert_ne!(frames(path(&dir, "ours.pcap")), crafted(), "the options had an effect");
    }
    // Options in words go before those of the file; the file's may be repeated as they may.
    let text = "[TCPPREP]\nbogus\n[TCPREWRITE]\nenet-subsmac 02:00:00:00:00:01,00:aa:00:00:00:01\n\
                enet-subsmac = 02:00:00:00:00:02,00:aa:00:00:00:02\nttl 9\n";
    write(&options, text).unwrap();
    alike(&dir, &input, &format!("--load-opts={options} --ttl=11"));
    write(&options, "[tcprewrite]\nttl 9\nbogus 5\n").unwrap();
    let output = path(&dir, "none.pcap");
    run(format!("netdyno tcprewrite -i {input} -o {output} --load-opts={options}"))
        .refused(&["line 3", "bogus"]);
}

#[test]
fn fuzzing_our_way_keeps_headers_and_right_checksums() {
    let dir = folder();
    let (input, output) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    let sent: Vec<_> = (0..400).map(|n| ether(1, 0x0800, &v4_of([A, B], 17, [n, 80], 100))).collect();
    crate::common::write_pcap(&input, 1, &sent);
    run(format!(
        "netdyno edit {input} -w {output} --fuzz-seed 5 --fuzz-factor 2 --fix-header-length --drop-unsupported"
    ))
    .ok();
    let got = frames(&output);
    let dropped = sent.len() - got.len();
    assert!((5..50).contains(&dropped), "{dropped}");
    let fields = "-T fields -E separator=; -e ip.checksum.status -e ip.src -e udp.dstport";
    let shown = run(format!("tshark -n -r {output} -o ip.check_checksum:TRUE {fields}")).ok().stdout;
    assert!(shown.lines().all(|line| line == "1;10.1.2.3;80"), "{shown}");
    let unchanged = got.iter().filter(|frame| sent.contains(frame)).count();
    assert!((150..280).contains(&unchanged), "{unchanged}");
}

#[test]
fn a_cache_of_another_capture_is_refused_with_both_counts() {
    let dir = folder();
    let [short, long] = ["short.pcap", "long.pcap"].map(|name| path(&dir, name));
    crate::common::write_pcap(&short, 1, &crafted()[..20]);
    crate::common::write_pcap(&long, 1, &crafted());
    let output = path(&dir, "out.pcap");
    for (of, with, says) in [
        (&short, &long, ["20 frames", "long.pcap has 23"]),
        (&long, &short, ["23 frames", "short.pcap has 20"]),
    ] {
        let cache = path(&dir, "cache");
        run(format!("netdyno tcpprep -a first -i {of} -o {cache}")).ok();
        run(format!("netdyno tcprewrite -c {cache} -i {with} -o {output}")).refused(&says);
        run(format!("netdyno edit --sides {cache} {with} -w {output}")).refused(&says);
        run(format!("netdyno edit --sides {cache} {of} -w {output}")).ok();
        std::fs::remove_file(&output).unwrap();
    }
}

#[test]
fn a_damaged_capture_is_edited_as_far_as_it_is_sound_if_asked_to() {
    let dir = folder();
    let (input, output) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    crate::common::write_pcap(&input, 1, &crafted());
    let bytes = read(&input).unwrap();
    write(&input, &bytes[..bytes.len() - 5]).unwrap();
    for line in [
        format!("netdyno tcprewrite -i {input} -o {output} --ttl=9"),
        format!("netdyno edit {input} -w {output} --ttl 9"),
    ] {
        run(&line).refused(&["record 23", "--skip-corrupt"]);
        assert_eq!(listing(dir.path()), ["in.pcap"]);
        run(format!("{line} --skip-corrupt")).with(1).says(&["as far as it is sound", "record 23"]);
        assert_eq!(frames(&output).len(), 22);
        std::fs::remove_file(&output).unwrap();
    }
}

#[test]
fn tcpdump_shows_what_was_written() {
    let dir = folder();
    let (input, output) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    crate::common::write_pcap(&input, 1, &[ether(1, 0x0800, &v4_of([A, B], 17, [7, 80], 9))]);
    let line = format!("netdyno tcprewrite -v -i {input} -o {output} -r 80:8080");
    let shown = run(&line).ok().stdout;
    assert!(shown.contains("10.1.2.3.7 > 192.168.9.77.8080: UDP, length 9"), "{shown}");
    assert!(!shown.contains("0x0010"), "{shown}");
    assert!(run(format!("{line} -A -xx")).ok().stdout.contains("0x0010"));
    let shown = run(format!("netdyno tcpprep -v -p -i {input} -o {output}")).ok().stdout;
    assert!(shown.contains("192.168.9.77.80: UDP"), "{shown}");
}

#[test]
fn defects_of_4_5_5_come_only_when_asked_for() {
    let dir = folder();
    let [input, ours, theirs] = ["in.pcap", "ours", "theirs"].map(|name| path(&dir, name));
    let hosts = |frame: Vec<u8>| [&frame[..22], &frame[38..54], &frame[22..38], &frame[54..]].concat();
    let mut syn = v6_of(6, [1024, 80], 0);
    syn[40 + 13] = 0x02;
    let mut reply = v6_of(6, [80, 1024], 0);
    reply[40 + 13] = 0x12;
    let sent = [
        ether(1, 0x86dd, &syn),
        hosts(ether(2, 0x86dd, &reply)),
        ether(1, 0x0806, &[0; 46]),
        ether(1, 0x0800, &v4_of([A, B], 17, [7, 80], 9)),
    ];
    crate::common::write_pcap(&input, 1, &sent);
    let asked = "env NETDYNO_COMPAT=4.5.5 netdyno";
    run(format!("tcpprep -a client -i {input} -o {theirs} --no-arg-comment")).ok();
    for (program, same) in [(asked, true), ("netdyno", false)] {
        run(format!("{program} tcpprep -a client -i {input} -o {ours} --no-arg-comment")).ok();
        assert_eq!(read(&ours).unwrap() == read(&theirs).unwrap(), same);
        run(format!("{program} tcpreplay -w {ours} -t -l 2 --unique-ip {input}")).ok();
        // ARP is left out of the second pass; microseconds are promised, and nanoseconds written.
        assert_eq!(frames(&ours).len(), if same { 7 } else { 8 });
        let magic: [u8; 4] = if same { [0xd4, 0xc3, 0xb2, 0xa1] } else { [0x4d, 0x3c, 0xb2, 0xa1] };
        assert_eq!(read(&ours).unwrap()[..4], magic);
    }
    let other = "env NETDYNO_COMPAT=4.4.3 netdyno";
    run(format!("{other} tcprewrite -i {input} -o {ours}.2"))
        .refused(&["NETDYNO_COMPAT=4.4.3", "only 4.5.5"]);
    run(format!("{other} tcpprep -p -i {input} -o {ours}.2")).refused(&["only 4.5.5"]);
    run(format!("{other} tcpreplay -w {ours}.2 {input}")).with(1).says(&["only 4.5.5"]);
}
