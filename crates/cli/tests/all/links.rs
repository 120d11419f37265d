//! Captures of every link type that can be read, judged by tshark: what goes in is what comes out of edits and of
//! conversions, and what cannot be converted is left out or refused.

use crate::common::{folder, join_pcap, path, run, write_pcap};

/// A UDP datagram of 10.1.2.3 to port 80 of 192.168.9.77, with right checksums.
const IP: [u8; 32] = [
    0x45, 0, 0, 32, 0, 7, 0, 0, 64, 17, 0xa4, 0xcd, 10, 1, 2, 3, 192, 168, 9, 77, 3, 232, 0, 80, 0, 12, 0x21,
    0x9f, 1, 2, 3, 4,
];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const RELAY: [u8; 6] = [2, 0, 0, 0, 0, 11];

/// An 802.11 data frame from HOST to PEER.
fn wifi(flags: u8, qos: &[u8]) -> Vec<u8> {
    let addresses = match flags & 3 {
        0 => [PEER, HOST, RELAY],
        1 => [RELAY, HOST, PEER],
        2 => [PEER, RELAY, HOST],
        _ => [RELAY, RELAY, PEER],
    };
    let mut frame = vec![if qos.is_empty() { 0x08 } else { 0x88 }, flags, 0, 0];
    frame.extend(addresses.concat());
    frame.extend([0x10, 0]);
    if flags & 3 == 3 {
        frame.extend(HOST);
    }
    frame.extend(qos);
    frame.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    frame.extend(IP);
    frame
}

/// In every direction, with QoS; then what cannot be edited: encrypted, empty, a beacon, a clear-to-send.
fn wifis(before: &[u8], behind: &[u8]) -> Vec<Vec<u8>> {
    let mut beacon = vec![0x80, 0];
    beacon.resize(60, 0);
    let mut empty = wifi(1, &[]);
    empty[0] = 0x48;
    empty.truncate(24);
    let sound = [wifi(0, &[]), wifi(1, &[]), wifi(2, &[]), wifi(3, &[]), wifi(2, &[0, 0])];
    let other = [wifi(0x41, &[]), empty, beacon, vec![0xc4, 0, 0, 0, 2, 0, 0, 0, 0, 1]];
    sound.into_iter().chain(other).map(|frame| [before, &frame, behind].concat()).collect()
}

/// A link type, frames of it with an IP packet each, and how many of them hold none that can be read.
fn kinds() -> Vec<(u16, Vec<Vec<u8>>, usize)> {
    let behind =
        |headers: &[&[u8]]| headers.iter().map(|header| [header, &IP[..]].concat()).collect::<Vec<_>>();
    let ether = [&PEER[..], &HOST, &[8, 0]].concat();
    let juniper = |head: &[u8]| [head, &ether].concat();
    let cooked = [&[0, 0, 0, 1, 0, 6][..], &HOST, &[0, 0, 8, 0]].concat();
    let cooked2 = [&[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6][..], &HOST, &[0, 0]].concat();
    let padded = |head: &[u8], size: usize| [head, &vec![0; size - head.len()]].concat();
    let prism = padded(&[0x44, 0, 0, 0, 144, 0, 0, 0], 144);
    let avs = padded(&[0x80, 0x21, 0x10, 0x01, 0, 0, 0, 64], 64);
    // A time stamp and flags, which say that the frame check sequence is there.
    let radiotap = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[0; 8], &[0x10]].concat();
    vec![
        (0, behind(&[&[2, 0, 0, 0], &[0, 0, 0, 2]]), 0),
        (1, behind(&[&ether]), 0),
        (9, behind(&[&[0xff, 3, 0, 0x21], &[0, 0x21]]), 0),
        (12, behind(&[&[]]), 0),
        (50, behind(&[&[0xff, 3, 0, 0x21]]), 0),
        (101, behind(&[&[]]), 0),
        (104, behind(&[&[0x0f, 0, 8, 0]]), 0),
        (105, wifis(&[], &[]), 4),
        (108, behind(&[&[0, 0, 0, 2]]), 0),
        (113, behind(&[&cooked]), 0),
        (119, wifis(&prism, &[]), 4),
        (127, wifis(&radiotap, &[9, 9, 9, 9]), 4),
        (163, wifis(&avs, &[]), 4),
        (
            178,
            behind(&[
                &juniper(b"MGC\x80\0\x06\x03\x01\x01\x07\x01\x0e"),
                &juniper(b"MGC\0"),
                b"MGC\x02\x02\0\0\0",
            ]),
            1,
        ),
        (192, wifis(&[0, 0, 8, 0, 105, 0, 0, 0], &[]), 4),
        (228, behind(&[&[]]), 0),
        (276, behind(&[&cooked2]), 0),
    ]
}

/// What tshark reads: an IPv4 header with its checksum, a UDP datagram with its own.
fn read(capture: &str, field: &str) -> Vec<String> {
    let shown = run(format!(
        "tshark -n -r {capture} -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -T fields -E separator=; \
         -e ip.checksum.status -e udp.checksum.status -e ip.src -e {field}"
    ));
    shown.ok().stdout.lines().filter(|line| *line != ";;;").map(str::to_owned).collect()
}

#[test]
fn frames_of_every_link_type_are_edited_where_they_are() {
    let dir = folder();
    let (input, all) = (path(&dir, "in.pcap"), path(&dir, "all.pcapng"));
    let mut outputs = Vec::new();
    for (n, (link, frames, _)) in kinds().into_iter().enumerate() {
        let output = path(&dir, &format!("{n}.pcap"));
        write_pcap(&input, link.into(), &frames);
        run(format!("netdyno edit {input} -w {output} --map-ip 10.0.0.0/8=11.0.0.0/8 --map-port 80=8080"))
            .ok();
        outputs.push(output);
    }
    // Each with an interface of its own.
    run(format!("mergecap -a -I none -F pcapng -w {all} {}", outputs.join(" "))).ok();
    let lines = read(&all, "udp.dstport -e frame.interface_id");
    for (n, (link, frames, unreadable)) in kinds().into_iter().enumerate() {
        let right = lines.iter().filter(|line| **line == format!("1;1;11.1.2.3;8080;{n}")).count();
        assert_eq!(right, frames.len() - unreadable, "link type {link}: {lines:?}");
    }
}

#[test]
fn frames_of_every_link_type_become_ethernet_frames() {
    let dir = folder();
    let (input, output, all) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"), path(&dir, "all.pcap"));
    let (mut joined, mut count) = (Vec::new(), 0);
    for (link, frames, unreadable) in kinds() {
        write_pcap(&input, link.into(), &frames);
        // Those that tell addresses keep them.
        let macs = match link {
            105 | 119 | 127 | 163 | 178 | 192 => "",
            113 | 276 => "--enet-dmac=02:00:00:00:00:02",
            _ => "--enet-dmac=02:00:00:00:00:02 --enet-smac=02:00:00:00:00:01",
        };
        run(format!("netdyno tcprewrite -i {input} -o {output} --dlt=enet {macs}")).ok();
        let wanted = frames.len() - unreadable;
        let bytes = std::fs::read(&output).expect("a capture");
        assert_eq!(bytes.len(), 24 + wanted * (16 + 14 + IP.len()), "link type {link}: nothing else is left");
        join_pcap(&mut joined, &output);
        count += wanted;
        if !macs.is_empty() && link != 1 {
            run(format!("netdyno tcprewrite -i {input} -o {output} --dlt=enet"))
                .refused(&["destination address"]);
        }
    }
    std::fs::write(&all, joined).expect("a capture");
    let wanted = vec!["1;1;10.1.2.3;02:00:00:00:00:02,02:00:00:00:00:01"; count];
    assert_eq!(read(&all, "eth.addr"), wanted);
}

#[test]
fn ethernet_frames_become_frames_of_other_link_types() {
    let dir = folder();
    let (input, output) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    let head = [&PEER[..], &HOST].concat();
    let frames = [
        [&head[..], &[8, 0], &IP].concat(),
        [&head[..], &[0x81, 0, 0, 5, 8, 0], &IP].concat(),
        [&head[..], &[8, 6], &[0; 40]].concat(),
    ];
    write_pcap(&input, 1, &frames);
    for (native, theirs, link, kept) in [
        ("hdlc", "hdlc --hdlc-address=0x0f --hdlc-control=0", 104, 3),
        ("ppp", "pppserial", 50, 2),
        ("raw", "raw", 101, 2),
        ("juniper", "jnpr_eth", 178, 3),
    ] {
        let mut made = Vec::new();
        for line in [
            format!("netdyno edit {input} -w {output} --link {native}"),
            format!("netdyno tcprewrite -i {input} -o {output} --dlt={theirs}"),
        ] {
            run(line).ok();
            let bytes = std::fs::read(&output).expect("a capture");
            assert_eq!(bytes[20..22], u16::to_le_bytes(link), "{native}");
            made.push(crate::common::frames(&output));
        }
        assert_eq!(made[0], made[1], "{native}");
        assert_eq!(made[0].len(), kept, "{native}");
        // tcprewrite's HDLC header names the tag that is gone; that result is published.
        let readable = if native == "hdlc" { 1 } else { 2 };
        let right = read(&output, "udp.dstport").iter().filter(|line| *line == "1;1;10.1.2.3;80").count();
        assert_eq!(right, readable, "{native}");
        // And back.
        let again = path(&dir, "again.pcap");
        let macs = "--src-mac 02:00:00:00:00:01 --dst-mac 02:00:00:00:00:02";
        run(format!("netdyno edit {output} -w {again} --link ethernet {macs}")).ok();
        assert_eq!(crate::common::frames(&again)[0], frames[0], "{native}");
    }
}

#[test]
fn other_link_types_are_refused_by_name() {
    let dir = folder();
    let (input, output) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    write_pcap(&input, 147, &[IP.to_vec()]);
    for line in [
        format!("netdyno edit {input} -w {output} --ttl 5"),
        format!("netdyno tcprewrite -i {input} -o {output} --ttl=5"),
        format!("netdyno replay {input} -w {output}"),
        format!("netdyno tcpprep -a client -i {input} -o {output}"),
    ] {
        run(line).refused(&["link type 147"]);
        assert!(!std::path::Path::new(&output).exists());
    }
    // What describes captures takes them for something else than IP.
    run(format!("netdyno info {input}")).ok();
}
