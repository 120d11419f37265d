//! Edits of frames while they are replayed: `netdyno tcpreplay-edit`, held to tcpreplay-edit 4.4.3 and to our own
//! `tcprewrite`, and the same words of `netdyno replay`.

use crate::common::*;
use crate::tcprewrite::crafted;
use std::os::unix::fs::symlink;

const US: &str = "netdyno tcpreplay-edit";

/// Edits by tcprewrite's names.
const EDITS: [&str; 10] = [
    "--ttl=+3 --tos=46 --tclass=7 --flowlabel=99",
    "-N 10.0.0.0/8:172.16.0.0/12,[2001:db8::/32]:[fd00::/16]",
    "-S 10.0.0.0/8:20.0.0.0/8 -D 192.168.0.0/16:21.1.0.0/16",
    "--seed=7 -b",
    "-r 80:8080,443:4443 --portmap=1024-1030:9",
    "--tcp-sequence=3 --fixcsum",
    "--enet-dmac=02:00:00:00:00:0a --enet-smac=02:00:00:00:00:0b --skipl2broadcast",
    "--enet-vlan=add --enet-vlan-tag=40 --enet-vlan-pri=3",
    "--enet-vlan=del --mtu=200 --mtu-trunc",
    "--enet-mac-seed=9 --enet-mac-seed-keep-bytes=3 -E",
];

#[test]
fn packets_are_edited_as_in_a_file_streamed_and_preloaded() {
    let folder = folder();
    let [file, edited, out] = ["in.pcap", "edited.pcap", "out.pcap"].map(|name| path(&folder, name));
    write_pcap(&file, 1, &crafted());
    for edits in EDITS {
        run(format!("netdyno tcprewrite -i {file} -o {edited} {edits}")).ok();
        let wanted = frames(&edited);
        assert_ne!(wanted, frames(&file), "{edits}");
        // Written with the times of the capture it is streamed; with those of departure, preloaded.
        for how in ["-t", "-K --departure-times -t", "-K --departure-times -p 1000"] {
            run(format!("{US} -w {out} {how} {edits} {file}")).ok();
            assert_same_frames(&frames(&out), &wanted);
            run(format!("{US} -w {out} {how} -l 3 {edits} {file}")).ok();
            assert_same_frames(&frames(&out), &[&wanted[..]; 3].concat());
        }
    }
}

#[test]
fn tcpreplay_edit_sends_the_same() {
    let net = Net::new();
    let file = net.file("x.pcap");
    run(format!(
        "netdyno craft ipv4(src=10.0.0.1,dst=198.18.0.1)/udp(sport=1..10,dport=53) --count 40 --size imix -w {file}"
    ))
    .ok();
    let tool = net.file("tcpreplay-edit");
    symlink(env!("CARGO_BIN_EXE_netdyno"), &tool).expect("a link");
    for edits in [
        "-N 10.0.0.0/8:172.16.0.0/12",
        "-t --seed 7 --fixcsum",
        "--ttl=-3 --tos=46 -r 53:5353",
        "--enet-dmac=02:00:00:00:00:0a --enet-vlan=add --enet-vlan-tag=7 --enet-vlan-pri=1 --enet-vlan-cfi=0",
    ] {
        let sent_by = |tool: &str| {
            net.received(40, || {
                net.run(format!("{tool} -i tx0 -x 10 {edits} {file}").replace("-x 10 -t", "-t")).ok();
            })
        };
        assert_same_frames(&sent_by(&tool), &sent_by("tcpreplay-edit"));
    }
    // What it refuses: edits of a preloaded capture that is looped.
    let refused = net.run(format!("tcpreplay-edit -i tx0 -K -l 2 --seed 7 {file}"));
    assert_ne!(refused.status, 0);
    let looped = net.received(120, || {
        net.run(format!("{tool} -i tx0 -t -K -l 3 --unique-ip --seed 7 {file}")).ok();
    });
    let mut addresses: Vec<_> = looped.iter().map(|frame| &frame[26..34]).collect();
    addresses.dedup();
    assert_eq!(addresses.len(), 3);
}

#[test]
fn captures_of_other_link_types_are_sent_as_ethernet() {
    let net = Net::new();
    let (file, edited) = (net.file("x.pcap"), net.file("edited.pcap"));
    let macs = "--src-mac 02:00:00:00:00:01 --dst-mac 02:00:00:00:00:02";
    let packets = crafted()[1..5].iter().map(|frame| frame[14..].to_vec()).collect::<Vec<_>>();
    // Raw IP; Linux cooked, which tells the sender's address.
    for (link, header, macs) in [
        (101, &[][..], macs),
        (113, &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0][..], "--dst-mac 02:00:00:00:00:02"),
    ] {
        write_pcap(&file, link, &packets.iter().map(|p| [header, p].concat()).collect::<Vec<_>>());
        run(format!("netdyno edit {file} -w {edited} --to-ethernet {macs} --ttl 9")).ok();
        let wanted = frames(&edited);
        assert_eq!(&wanted[0][12..14], [8, 0]);
        for stream in ["", "--stream"] {
            let got = net.received(4, || {
                net.run(format!("netdyno replay {file} --on tx0 --topspeed {stream} {macs} --ttl 9")).ok();
            });
            assert_same_frames(&got, &wanted);
        }
        net.run(format!("netdyno replay {file} --on tx0")).refused(&["frame 1 is of", "--to-ethernet"]);
    }
    write_pcap(&file, 101, &packets);
    net.run(format!("netdyno replay {file} --on tx0 --to-ethernet"))
        .refused(&["give the destination address"]);
}

#[test]
fn edits_by_two_cores_keep_flows_in_order() {
    if !several_cpus() {
        return;
    }
    let net = Net::with(&::lab::Options { queues: 2, ..::lab::Options::default() });
    let (file, edited) = (net.file("x.pcap"), net.file("edited.pcap"));
    run(format!(
        "netdyno craft ipv4(src=10.0.0.0/26,id=0..65535)/udp(sport=5000..5006) --size 64..400 --rate 40kpps --count 3000 -w {file}"
    ))
    .ok();
    let edits = "--map-ip 10.0.0.0/8=172.16.0.0/12 --ttl -1 --vlan-add 12 --map-port 5003=80";
    run(format!("netdyno edit {file} -w {edited} {edits}")).ok();
    let wanted = frames(&edited);
    for pace in ["--topspeed", "--rate 40kpps", ""] {
        let got = net.received(wanted.len(), || {
            net.run(format!("netdyno replay {file} --on tx0 {pace} {edits} --cores 2 --json")).result();
        });
        // Addresses and ports, behind the tag.
        let by_flow = |frames: &[Vec<u8>]| {
            let mut frames = frames.to_vec();
            frames.sort_by_key(|frame| frame[30..42].to_vec());
            frames
        };
        assert_same_frames(&by_flow(&got), &by_flow(&wanted));
    }
}

#[test]
fn sides_of_a_cache_choose_the_edits() {
    let folder = folder();
    let [file, cache, edited, out] =
        ["in.pcap", "cache", "edited.pcap", "out.pcap"].map(|name| path(&folder, name));
    write_pcap(&file, 1, &crafted()[1..3]);
    run(format!("netdyno tcpprep -i {file} -o {cache} --cidr 10.0.0.0/8")).ok();
    let edits =
        format!("--sides {cache} --endpoints 1.1.1.1=2.2.2.2 --dst-mac 02:00:00:00:00:0a,02:00:00:00:00:0b");
    run(format!("netdyno edit {file} -w {edited} {edits}")).ok();
    run(format!("netdyno replay {file} -w {out} {edits}")).ok();
    assert_same_frames(&frames(&out), &frames(&edited));
    assert_eq!([frames(&out)[0][5], frames(&out)[1][5]], [10, 11]);
    // A cache that knows fewer packets.
    write_pcap(&file, 1, &crafted());
    run(format!("netdyno replay {file} -w {out} {edits}")).refused(&["has 2 entries", "another capture"]);
    run(format!("netdyno replay {file} -w {out} --endpoints 1.1.1.1=2.2.2.2")).refused(&["--sides"]);
}

#[test]
fn frames_that_an_edit_makes_too_long_or_leaves_out_are_counted() {
    let net = Net::new();
    let file = net.file("x.pcap");
    let sizes = [1514, 200, 1514, 100];
    let ip = |size: usize| [&[2; 12][..], &[8, 0, 0x45], &vec![0; size - 15]].concat();
    write_pcap(&file, 1, &sizes.map(ip));
    // Two tags do not fit: the interface takes one beyond its MTU.
    let edits = "--enet-vlan=add --enet-vlan-tag=40 --enet-vlan-proto=802.1ad";
    let got = net.received(2, || {
        net.run(format!("{US} -i tx0 -t {edits} {file}"))
            .ok()
            .says(&["2 frames longer than the interface takes"]);
    });
    assert_eq!(got.len(), 2);
    let wrong = net.run(format!("{US} -i tx0 -t --tos=300 {file}")).with(1).says(&["--tos"]);
    assert_eq!((wrong.stdout.as_str(), wrong.stderr.lines().count()), ("", 1), "{}", wrong.stderr);
}
