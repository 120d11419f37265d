//! `netdyno edit`, where no other tool's edits are the model: link headers that are not Ethernet's, frame check sequences, and records
//! that contradict themselves. tshark is the judge.

use crate::common::*;

/// An IPv4 packet with a UDP datagram of so many bytes of payload.
fn packet(payload: usize) -> Vec<u8> {
    let length = |bytes: usize| ((bytes + payload) as u16).to_be_bytes();
    let header =
        [&[0x45, 0][..], &length(28), &[0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2]].concat();
    let mut packet = [&header[..], &[3, 232, 3, 232], &length(8), &[0, 0], &vec![b'q'; payload]].concat();
    let sum = packet[..20].chunks(2).map(|word| u32::from(word[0]) * 256 + u32::from(word[1])).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet
}

/// The same behind a Linux cooked header of version 1 or 2, and a tag if there is one.
fn cooked(version: u8, tag: Option<u16>) -> Vec<u8> {
    let kind = if tag.is_some() { [0x81, 0] } else { [8, 0] };
    let address = [2, 0, 0, 0, 0, 0xaa, 0, 0];
    let head = match version {
        1 => [&[0, 0, 0, 1, 0, 6][..], &address, &kind].concat(),
        _ => [&kind[..], &[0, 0, 0, 0, 0, 2, 0, 1, 0, 6], &address].concat(),
    };
    let tag = tag.map(|id| [id.to_be_bytes(), [8, 0]].concat()).unwrap_or_default();
    [head, tag, packet(40)].concat()
}

#[test]
fn cooked_captures_are_edited_as_tshark_reads_them() {
    let dir = folder();
    let out = path(&dir, "out.pcap");
    for (version, link, sender) in [(1, 113, "sll.src.eth"), (2, 276, "sll.src.eth")] {
        let name = format!("cooked{version}.pcap");
        let input = path(&dir, &name);
        write_pcap(&input, link, &[cooked(version, Some(100)), cooked(version, None)]);
        let edited = |options: &str| run(format!("netdyno edit {input} -w {out} {options}")).ok();
        let read = |fields: &[&str]| tshark_rows(&out, fields);
        edited("--vlan-del");
        assert_eq!(read(&["vlan.id", "udp.port"]), [["", "1000,1000"]; 2]);
        edited("--vlan-add 5");
        assert_eq!(read(&["vlan.id", "ip.src"]), [["5,100", "10.1.0.1"], ["5", "10.1.0.1"]]);
        for options in ["--src-mac 02:00:00:00:00:77", "--replace-mac 02:00:00:00:00:aa=02:00:00:00:00:77"] {
            edited(options);
            assert_eq!(read(&[sender]), [["02:00:00:00:00:77"]; 2], "{options}");
        }
        edited("--scramble-mac 3");
        let scrambled = read(&[sender]);
        assert!(!scrambled.concat().contains(&"02:00:00:00:00:aa".to_owned()), "{scrambled:?}");
        edited("--map-ip 10.0.0.0/8=11.0.0.0/8 --map-port 1000=1001");
        assert_eq!(read(&["ip.dst", "udp.dstport"]), [["11.1.0.2", "1001"]; 2]);
        edited("--to-ethernet --dst-mac 02:00:00:00:00:09");
        assert_eq!(read(&["vlan.id"]), [["100"], [""]]);
        edited("--to-ethernet --dst-mac 02:00:00:00:00:09 --vlan-del");
        assert_eq!(read(&["vlan.id", "eth.src"]), [["", "02:00:00:00:00:aa"]; 2]);
        assert_eq!(tshark_complaints(&out), "");
    }
}

#[test]
fn what_link_headers_do_not_have_is_told() {
    let dir = folder();
    let (input, out) = (path(&dir, "raw.pcap"), path(&dir, "out.pcap"));
    write_pcap(&input, 101, &[packet(40), packet(41)]);
    let all = "--vlan-add 5 --src-mac 02:00:00:00:00:01 --dst-mac 02:00:00:00:00:02";
    let ran = run(format!("netdyno edit {input} -w {out} {all}")).ok();
    let said = unfolded(&ran.stderr);
    let ran = run(format!("netdyno edit {input} -w {out} --scramble-mac 3")).ok();
    let said = said + &unfolded(&ran.stderr);
    for words in [
        "2 frames no source address to set",
        "2 frames no destination",
        "2 frames no Ethernet address",
        "2 frames no place for a VLAN tag",
    ] {
        assert!(said.contains(words), "no `{words}`: {said}");
    }
    assert_same_frames(&frames(&out), &frames(&input));
    // What was not asked for is not told, nor what others have.
    let ran = run(format!("netdyno edit {input} -w {out} --ttl 3")).ok();
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let ran = run(format!("netdyno edit {input} -w {out} --to-ethernet {all}")).ok();
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    // 802.11 has addresses, which would stay.
    write_pcap(
        &input,
        105,
        &[vec![0x08, 1, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0, 0]],
    );
    std::fs::remove_file(&out).expect("written before");
    run(format!("netdyno edit {input} -w {out} --scramble-mac 3")).refused(&["802.11", "not edited there"]);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn no_side_is_told_of_frames_that_cannot_be_read() {
    let dir = folder();
    let (input, cache) = (path(&dir, "unknown.pcap"), path(&dir, "out.cache"));
    write_pcap(&input, 147, &[vec![7; 60]]);
    for mode in ["-a bridge", "-c 10.0.0.0/8", "-p"] {
        run(format!("netdyno tcpprep -i {input} -o {cache} {mode}")).refused(&["packet 1", "link type 147"]);
    }
    assert!(!std::path::Path::new(&cache).exists());
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn fcs(frame: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for byte in frame {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    (!crc).to_le_bytes()
}

#[test]
fn a_frame_check_sequence_is_no_payload_and_follows_edits() {
    let net = Net::new();
    let frame = [&[2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa, 8, 0][..], &packet(44)].concat();
    let whole = [&frame[..], &fcs(&frame)].concat();
    let mut wrong = whole.clone();
    wrong[86] ^= 1;
    // Bit 26 says that the length is told, from bit 28 on, in units of two bytes; and pcapng's if_fcslen.
    let mut pcap = pcap_header(1 | 0x0400_0000 | 2 << 28);
    for bytes in [&whole, &whole, &wrong] {
        pcap.extend(pcap_record(1, 0, bytes.len() as u32, bytes));
    }
    // The last is captured without its end.
    pcap.extend(pcap_record(1, 0, whole.len() as u32, &whole[..80]));
    let input = net.file("fcs.pcap");
    std::fs::write(&input, pcap).expect("a written capture");
    let info = run(format!("netdyno info {input} --json")).ok().json();
    assert_eq!((number(&info["bytes"]), number(&info["captured_bytes"])), (4 * 86, 3 * 86 + 80), "{info}");
    for (name, options) in [("same.pcap", ""), ("same.pcapng", "")] {
        let out = net.file(name);
        run(format!("netdyno edit {input} -w {out} {options}")).ok();
        // Both formats say it, and tshark judges what is there.
        let judged =
            run(format!("tshark -n -o eth.check_fcs:TRUE -r {out} -T fields -e eth.fcs.status")).ok();
        assert_eq!(judged.stdout.lines().collect::<Vec<_>>(), ["1", "1", "0", ""], "{name}");
        assert_eq!(tshark_field(&out, "frame.len"), ["90"; 4]);
    }
    let out = net.file("mapped.pcapng");
    run(format!("netdyno edit {input} -w {out} --map-ip 10.0.0.0/8=11.0.0.0/8 --vlan-add 7")).ok();
    let judged =
        run(format!("tshark -n -o eth.check_fcs:TRUE -r {out} -T fields -e eth.fcs.status -e ip.src")).ok();
    assert_eq!(
        judged.stdout.lines().collect::<Vec<_>>(),
        ["1\t11.1.0.1", "1\t11.1.0.1", "0\t11.1.0.1", "\t11.1.0.1"]
    );
    for options in ["--strip-fcs", "--link raw"] {
        let out = net.file("stripped.pcap");
        run(format!("netdyno edit {input} -w {out} {options}")).ok();
        let bytes = if options == "--strip-fcs" { frame.clone() } else { packet(44) };
        assert_same_frames(&frames(&out)[..3], &vec![bytes; 3]);
    }
    let report = net.run(format!("netdyno replay {input} --on tx0 --measure rx0 --topspeed --json")).json();
    let (sent, arrived) = (&report["result"]["tx"], &report["result"]["rx"]);
    assert_eq!((number(&sent["frames"]), number(&sent["bytes"])), (4, 3 * 86 + 80), "{report}");
    assert_eq!(number(&arrived["bytes"]), 3 * 86 + 80, "{report}");
}

#[test]
fn what_a_record_has_beyond_its_frame_is_neither_counted_nor_kept() {
    let dir = folder();
    let frame = [&[2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa, 8, 0][..], &packet(100)].concat();
    let mut pcap = pcap_header(1);
    let length = frame.len() as u32;
    for surplus in [16, 0, 1] {
        pcap.extend(pcap_record(1, 0, length, &[&frame[..], &vec![0xee; surplus]].concat()));
    }
    let (input, out) = (path(&dir, "surplus.pcap"), path(&dir, "out.pcap"));
    std::fs::write(&input, pcap).expect("a written capture");
    let info = run(format!("netdyno info {input}")).ok().stdout;
    assert!(
        info.contains("2 frames with more bytes captured than they had")
            && !info.contains("of them captured"),
        "{info}"
    );
    run(format!("netdyno edit {input} -w {out}")).ok();
    assert_same_frames(&frames(&out), &vec![frame; 3]);
    let theirs = path(&dir, "theirs.pcap");
    run(format!("tcprewrite -i {input} -o {theirs}")).ok();
    assert_eq!(tshark_field(&theirs, "frame.len"), tshark_field(&out, "frame.len"));
}

/// pcapng counts 64 bits of time units; pcap's seconds end in 2106.
#[test]
fn times_after_2106_are_kept_by_pcapng_and_refused_by_pcap() {
    let dir = folder();
    let (input, same, pcap) = (path(&dir, "late.pcapng"), path(&dir, "same.pcapng"), path(&dir, "late.pcap"));
    let block = |kind: u32, body: Vec<u8>| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let micros = ((1u64 << 32) + 5) * 1_000_000;
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &packet(46)].concat();
    let packet = [words(&[0, (micros >> 32) as u32, micros as u32, 88, 88]), frame].concat();
    let section = block(0x0a0d_0d0a, words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let file = [section, block(1, words(&[1, 262_144])), block(6, packet)].concat();
    std::fs::write(&input, file).expect("a written capture");
    let info = run(format!("netdyno info {input}")).ok().stdout;
    assert!(info.contains("2106-02-07"), "{info}");
    run(format!("netdyno edit {input} -w {same} --ttl 3")).ok();
    assert_eq!(tshark_field(&same, "frame.time_epoch"), tshark_field(&input, "frame.time_epoch"));
    for verb in ["edit", "tcprewrite -i"] {
        let write = if verb == "edit" { "-w" } else { "-o" };
        run(format!("netdyno {verb} {input} {write} {pcap}")).refused(&["2106", "pcapng"]);
        assert!(!std::path::Path::new(&pcap).exists());
    }
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_what_killed_runs_left_goes() {
    let dir = folder();
    let (input, out) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"));
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &packet(1400)].concat();
    write_pcap(&input, 1, &vec![frame; 1000]);
    // No process has a number beyond the kernel's greatest (2^22).
    std::fs::write(path(&dir, ".out.pcap.4194305-3.part"), "half").expect("what a killed run left");
    let script = path(&dir, "limited.sh");
    std::fs::write(
        &script,
        format!("ulimit -f 100\n{} edit {input} -w {out}\n", env!("CARGO_BIN_EXE_netdyno")),
    )
    .expect("a script");
    run(format!("sh {script}")).refused(&["out.pcap", "too large"]);
    assert_eq!(listing(dir.path()), ["in.pcap", "limited.sh"]);
    run(format!("netdyno edit {input} -w {out}")).ok();
    assert_eq!(listing(dir.path()), ["in.pcap", "limited.sh", "out.pcap"]);
}
