//! Rules that make several frames of one, held to Debian's tcprewrite 4.4.3 where it follows the standards, and to
//! tshark, which puts fragments and segments together again. docs/compat.md tells where they differ.

use crate::common::{assert_same_frames, folder, frames, listing, path, run, write_pcap};
use crate::tcprewrite::{A, B, crafted, ether, v4_of, v6_of};
use std::fs::write;

/// IPv4's identification (4.4.3 makes each segment's a random one) and header checksum, the identification of IPv6
/// fragments, and IPv6's Ethernet addresses, which 4.4.3 overwrites whatever it is asked for.
fn without_identification(mut frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for frame in &mut frames {
        if frame[12] == 0x08 {
            frame[18..20].fill(0);
            frame[24..26].fill(0);
        } else {
            frame[..12].fill(0);
            if frame[20] == 44 {
                frame[58..62].fill(0);
            }
        }
    }
    frames
}

/// Random data differs: what is left are lengths, offsets and flags.
fn headers(frames: Vec<Vec<u8>>) -> Vec<(usize, Vec<u8>)> {
    frames.iter().map(|frame| (frame.len(), frame[..34].to_vec())).collect()
}

#[test]
fn rules_give_tcprewrites_frames() {
    let dir = folder();
    let (ours, theirs, rules) = (path(&dir, "ours.pcap"), path(&dir, "theirs.pcap"), path(&dir, "rules"));
    let [udp4, tcp4, udp6, tcp6] = [
        ether(1, 0x0800, &v4_of([A, B], 17, [7, 80], 300)),
        ether(1, 0x0800, &v4_of([A, B], 6, [7, 80], 300)),
        ether(1, 0x86dd, &v6_of(17, [7, 80], 300)),
        ether(1, 0x86dd, &v6_of(6, [7, 80], 300)),
    ];
    let all = [udp4.clone(), tcp4.clone(), udp6.clone(), tcp6.clone()];
    let only_tcp = [tcp4.clone(), tcp6];
    let only_4 = [udp4, tcp4];
    let both = |text: &str, input: &[Vec<u8>]| {
        let file = path(&dir, "in.pcap");
        write_pcap(&file, 1, input);
        write(&rules, text).unwrap();
        run(format!("tcprewrite --fragroute={rules} -i {file} -o {theirs}")).ok();
        run(format!("netdyno tcprewrite --fragroute={rules} -i {file} -o {ours}")).ok();
        (frames(&ours), frames(&theirs))
    };
    for (text, input) in [
        ("ip_frag 24", &all[..]),
        ("ip_frag 296", &all),
        ("ip_frag 1480", &all),
        ("ip_frag 8", &only_4),
        ("tcp_seg 24", &all),
        ("tcp_seg 299\nip_ttl 7", &all),
        ("ip_frag 64\norder reverse", &all),
        ("ip_frag 64\ndrop first 100", &all),
        ("ip_frag 64\ndrop last 100\ndup last 100", &all),
        ("ip_frag 64\ndup first 100", &all),
        ("tcp_seg 100\nip_frag 64\nip_tos 0x10", &all),
        ("ip_ttl 9\nip_tos 16\nip6_qos 1f 2abcd", &all),
        ("ip_opt lsrr 4 10.0.0.9", &all),
        ("ip_opt ssrr 8 10.0.0.9 10.0.0.8\nip_opt lsrr 4 10.0.0.7", &all),
        ("ip_frag 64\nip_opt lsrr 4 10.0.0.9", &all),
        ("tcp_opt mss 1300", &only_tcp),
        ("ip6_opt route 1 2001:db8::5", &all),
        ("# nothing else\n\nip6_opt route 2 2001:db8::5 2001:db8::6\nip_frag 104", &only_4),
    ] {
        println!("{text}");
        let (ours, theirs) = both(text, input);
        assert!(ours.len() >= input.len() || text.contains("drop"));
        assert_same_frames(&without_identification(ours), &without_identification(theirs));
    }
    for text in ["ip_frag 24 old", "ip_frag 8 new", "tcp_seg 24 new", "tcp_seg 40 old"] {
        println!("{text}");
        let (ours, theirs) = both(text, &only_4);
        assert_eq!(headers(without_identification(ours)), headers(without_identification(theirs)));
    }
}

#[test]
fn tshark_puts_fragments_and_segments_together_again() {
    let dir = folder();
    let (input, output, rules) = (path(&dir, "in.pcap"), path(&dir, "out.pcap"), path(&dir, "rules"));
    // With a VLAN tag, at which 4.4.3 gives up, and an ARP frame.
    let mut tagged = ether(1, 0x8100, &[0, 5, 8, 0]);
    tagged.extend(v4_of([A, B], 17, [7, 80], 300));
    let arp = crafted().into_iter().find(|frame| frame[12..14] == [8, 6]).unwrap();
    let whole = [
        ether(1, 0x0800, &v4_of([A, B], 17, [7, 80], 1400)),
        ether(1, 0x86dd, &v6_of(17, [7, 80], 1400)),
        tagged,
        arp.clone(),
    ];
    write_pcap(&input, 1, &whole);
    write(&rules, "ip_frag 64\norder random\ndup random 100").unwrap();
    run(format!("netdyno edit {input} -w {output} --fragroute {rules}")).ok().says(&["wrote"]);
    let out = frames(&output);
    assert!(out.len() > 48 && out.contains(&arp));
    let fields = "-T fields -e udp.length -e udp.checksum.status -o udp.check_checksum:TRUE";
    let seen = run(format!("tshark -r {output} -Y udp&&!icmp -d udp.port==80,data {fields}")).ok();
    let mut datagrams: Vec<&str> = seen.stdout.lines().collect();
    datagrams.sort_unstable();
    assert_eq!(datagrams, ["1408\t1", "1408\t1", "308\t1"]);
}

#[test]
fn sides_and_seeds_decide() {
    let dir = folder();
    let (input, cache, rules) = (path(&dir, "in.pcap"), path(&dir, "cache"), path(&dir, "rules"));
    let client = ether(1, 0x0800, &v4_of([A, B], 17, [7, 80], 300));
    let server = ether(2, 0x0800, &v4_of([B, A], 17, [80, 7], 300));
    write_pcap(&input, 1, &[client.clone(), server.clone()]);
    run(format!("netdyno tcpprep --cidr=10.0.0.0/8 -i {input} -o {cache}")).ok();
    write(&rules, "ip_frag 104\nip_chaff dup").unwrap();
    let out = |options: &str| {
        let output = path(&dir, "out.pcap");
        run(format!("netdyno tcprewrite --fragroute={rules} -c {cache} -i {input} -o {output} {options}"))
            .ok();
        frames(&output)
    };
    let (c2s, s2c, both) = (out("--fragdir=c2s"), out("--fragdir=s2c"), out("--fragdir=both"));
    assert!(c2s.len() == 7 && c2s.last() == Some(&server));
    assert!(s2c.len() == 7 && s2c.first() == Some(&client));
    assert_eq!(both.len(), 12);
    assert_same_frames(&out(""), &both);
    assert_ne!(out("--fragroute-seed=2"), both);
}

#[test]
fn wrong_rules_are_named_with_their_line_and_nothing_is_written() {
    let dir = folder();
    let (input, rules) = (path(&dir, "in.pcap"), path(&dir, "rules"));
    write_pcap(&input, 1, &[ether(1, 0x0800, &v4_of([A, B], 6, [7, 80], 1400))]);
    let before = listing(dir.path());
    assert_eq!(before, ["in.pcap"]);
    let refused = |text: &str, says: &[&str]| {
        write(&rules, text).unwrap();
        run(format!("netdyno edit {input} -w {} --fragroute {rules}", path(&dir, "out.pcap"))).refused(says);
    };
    refused("ip_ttl 5\nip_frag 20", &["rules", "line 2", "multiple of 8"]);
    refused("delay first 10", &["line 1", "captured time"]);
    refused(&format!("tcp_seg 1\n{}", "ip_chaff dup\n".repeat(12)), &["record 1", "65536 frames"]);
    refused("tcp_seg -8", &["rules", "line 1", "must be between 1 and 65535"]);
    run(format!("netdyno edit {input} -w {0} --fragroute {0}.none", path(&dir, "out.pcap")))
        .refused(&["out.pcap.none"]);
    run(format!(
        "netdyno tcprewrite -i {input} -o {0} --fragroute={rules} --fragdir=c2s",
        path(&dir, "out.pcap")
    ))
    .with(2)
    .says(&["--cachefile"]);
    assert_eq!(listing(dir.path()), ["in.pcap", "rules"]);
}
