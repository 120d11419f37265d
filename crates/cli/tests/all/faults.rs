//! Bad input and faults: one clear error, or a condition that is counted and reported; never a panic, a hang, or half
//! of a file.

use crate::common::*;
use std::os::unix::fs::PermissionsExt;

fn crafted(net: &Net, name: &str, options: &str) -> String {
    let file = net.file(name);
    run(format!("netdyno craft ipv4(src=10.0.0.0/16)/udp {options} -w {file}")).ok();
    file
}

#[test]
fn an_unknown_interface_is_answered_with_the_near_one() {
    let net = Net::new();
    let file = crafted(&net, "x.pcap", "");
    let near = "there is no interface 'tx1' (did you mean 'tx0'?)";
    net.run(format!("netdyno replay {file} --on tx1")).refused(&[near]);
    net.run("netdyno send ipv4/udp --rate 1kpps --on tx1").refused(&[near]);
    net.run("netdyno measure --on tx1").refused(&[near]);
    net.run("netdyno send ipv4/udp --rate 1kpps --on tx0 --measure rx9").refused(&["'rx9'"]);
    net.run("netdyno send ipv4/udp --rate 1kpps --on tx0@nowhere").refused(&["'nowhere'"]);
    net.run("netdyno send ipv4/udp --rate 1kpps").refused(&["where to? Add --lab (", "--on IFACE"]);
    net.run(format!("netdyno replay {file}")).refused(&["where to? Add --lab ("]);
    net.run("netdyno trial --rate 1kpps").refused(&["Add --lab ("]);
    net.run("netdyno search throughput").refused(&["Add --lab ("]);
}

#[test]
fn an_interface_of_a_lab_is_told_apart_outside_of_one() {
    let dir = folder();
    let file = path(&dir, "x.pcap");
    run(format!("netdyno craft ipv4/udp -w {file}")).ok();
    for line in [
        "netdyno doctor tx7".to_owned(),
        "netdyno send ipv4/udp --rate 1kpps --on tx7".to_owned(),
        format!("netdyno replay {file} --on tx7"),
        "netdyno measure --on tx7".to_owned(),
    ] {
        run(&line).refused(&[
            "tx7 exists in a lab only: netdyno lab -- COMMAND, or --lab where the command has it",
        ]);
    }
}

#[test]
fn a_packet_that_is_none_is_told_before_what_else_is_lacking() {
    for line in [
        "send ipv4/upd --lab",
        "send ipv4/upd",
        "trial ipv4/upd --lab",
        "trial ipv4/upd --rate 1kpps",
        "search throughput ipv4/upd",
        "craft ipv4/upd",
        "send ipv4/upd --on nothing0 --count 1",
    ] {
        run(format!("netdyno {line}")).refused(&["unknown layer `upd`", "did you mean `udp`?"]);
    }
}

#[test]
fn what_is_no_job_is_told_its_verb() {
    let dir = folder();
    let file = path(&dir, "dns.pcap");
    run(format!("netdyno craft ipv4/udp -w {file}")).ok();
    run(format!("netdyno run {file}"))
        .refused(&[&format!("{file} is a capture, not a job: netdyno replay {file} --on IFACE (or --lab)")]);
    let report = path(&dir, "report");
    run(format!("netdyno send ipv4/udp --engine null --topspeed --count 10 --report {report} -q")).ok();
    for result in [report.clone(), format!("{report}/result.json"), format!("{report}/report.html")] {
        run(format!("netdyno run {result}")).refused(&[&format!("not a job: netdyno rerun {result}")]);
        run(format!("netdyno rerun {result}")).ok();
    }
    let bytes = path(&dir, "bytes");
    std::fs::write(&bytes, [0xff, 0xfe, 0]).expect("a file");
    run(format!("netdyno run {bytes}")).refused(&["no file of jobs"]);
}

#[test]
fn pairs_are_told_as_the_option_that_was_typed_writes_them() {
    let dir = folder();
    let (file, out) = (path(&dir, "x.pcap"), path(&dir, "y.pcap"));
    run(format!("netdyno craft ipv4/udp -w {file}")).ok();
    for (option, said) in [
        ("--map-ip 10.0.0.0/8", "write 10.0.0.0/8=192.168.0.0/16"),
        ("--map-src-ip 10.0.0.1", "write 10.0.0.0/8=192.168.0.0/16"),
        ("--map-port 80", "write 80=8080"),
        ("--replace-mac 02:00:00:00:00:01", "write OLD=NEW"),
    ] {
        run(format!("netdyno edit {file} -w {out} {option}")).refused(&[said]);
    }
    for (option, said) in [
        ("--pnat=10.0.0.0/8", "write 10.0.0.0/8:192.168.0.0/16"),
        ("--portmap=80", "write 80:8080"),
        ("--enet-subsmac=02:00:00:00:00:01", "write OLD,NEW"),
    ] {
        run(format!("netdyno tcprewrite -i {file} -o {out} {option}")).refused(&[said]);
    }
}

#[test]
fn without_permission_it_says_how_to_get_it() {
    let net = Net::new();
    let file = crafted(&net, "x.pcap", "");
    // Where nobody may read and run it.
    let program = net.file("netdyno");
    // By a process of its own: a child that another test starts meanwhile would hold the copy open for writing, and then it cannot be run.
    run(format!("cp {} {program}", env!("CARGO_BIN_EXE_netdyno"))).ok();
    for path in [program.as_ref(), net.dir.path(), file.as_ref()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    let as_nobody = format!("setpriv --reuid 65534 --regid 65534 --clear-groups {program}");
    for verb in [
        format!("replay {file} --on tx0"),
        "send ipv4/udp --on tx0 --rate 1kpps --count 1".to_owned(),
        "measure --on tx0 --duration 1s".to_owned(),
        "lab -- true".to_owned(),
        format!("demo --report {}", net.file("report")),
    ] {
        net.run(format!("{as_nobody} {verb}")).refused(&["sudo"]);
    }
    // What needs no rights works without.
    net.run(format!("{as_nobody} info {file}")).ok();
    net.run(format!("{as_nobody} craft ipv4/udp --show")).ok();
    net.run(format!("{as_nobody} doctor")).ok();
    net.run(format!("{as_nobody} send ipv4/udp --engine null --topspeed --count 1000")).ok();
}

#[test]
fn an_interface_that_is_down_is_refused_with_the_mend() {
    let net = Net::new();
    net.run("ip link set tx0 down").ok();
    let mend = "ip link set tx0 up";
    net.run("netdyno send ipv4/udp --on tx0 --rate 1kpps --count 5").refused(&["tx0 is down", mend]);
    net.run("netdyno measure --on tx0 --duration 1s").refused(&["tx0 is down", mend]);
    net.run("netdyno replay x.pcap --on tx0").refused(&["tx0 is down", mend]);
}

#[test]
fn an_interface_that_goes_down_or_away_ends_the_run_with_its_statistics() {
    // An interface goes down before it goes away, and a frame may meet it then.
    for (fault, words) in [
        ("ip link set tx0 down", &["tx0 went down"][..]),
        ("ip link delete tx0", &["tx0 disappeared", "tx0 went down"]),
    ] {
        for pace in ["--rate 1kpps", "--topspeed"] {
            let net = Net::new();
            let dir = net.file("report");
            let sender = net
                .start(format!("netdyno send ipv4/udp --on tx0 {pace} --duration 60s --json --report {dir}"));
            net.until_frames_leave();
            net.run(fault).ok();
            let ran = sender.wait().with(1);
            let report = ran.json();
            assert!(number(&report["result"]["tx"]["frames"]) > 20, "{fault} {pace}");
            let reason = &reasons(&report)[0];
            assert!(words.iter().any(|words| reason.starts_with(words)), "{fault} {pace}: {reason}");
            assert_eq!(listing(dir), ["figures.csv", "intervals.csv", "report.html", "result.json"]);
        }
    }
}

#[test]
fn a_receiver_that_goes_down_is_loss() {
    let net = Net::new();
    let sender = net.start("netdyno send ipv4/udp --on tx0 --rate 1kpps --duration 60s --measure rx0 --json");
    net.until_frames_leave();
    net.run_there("ip link set rx0 down").ok();
    // The cable has no carrier now; veth drops what is sent, and says so in its counters.
    std::thread::sleep(std::time::Duration::from_millis(300));
    sender.signal("INT");
    let report = sender.wait().with(1).json();
    let result = &report["result"];
    let [sent, arrived, lost] =
        [&result["tx"]["frames"], &result["rx"]["frames"], &result["loss"]["frames"]].map(number);
    assert_eq!(sent, arrived + lost);
    assert!(!reasons(&report).is_empty());
}

#[test]
fn a_cable_that_takes_nothing_more_is_an_error_and_no_hang() {
    let net = Net::new();
    // The other end refuses what is longer than its MTU, and this end asks for a retry, for ever.
    net.run_there("ip link set rx0 mtu 500").ok();
    let ran =
        net.run("netdyno send ipv4/udp --size 64,64,64,1000 --on tx0 --topspeed --count 40 --json").with(1);
    let report = ran.json();
    assert_eq!(number(&report["result"]["tx"]["frames"]), 3);
    assert!(reasons(&report)[0].starts_with("tx0 accepted no frame for 2000 ms"), "{:?}", reasons(&report));
}

#[test]
fn frames_longer_than_the_mtu_are_refused_or_skipped_and_counted() {
    let net = Net::new();
    net.run("ip link set tx0 mtu 500").ok();
    let file = crafted(&net, "long.pcap", "--size 64,64,1000 --count 30");
    for how in ["--preload", "--stream"] {
        let replay = format!("netdyno replay {file} --on tx0 --measure rx0 --topspeed {how}");
        let report = net.run(format!("{replay} --oversize skip --json")).ok().json();
        let result = &report["result"];
        assert_eq!([&result["tx"]["frames"], &result["rx"]["frames"]].map(number), [20, 20], "{how}");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("10 frames longer than the interface takes"), "{how}: {warnings}");
    }
    let replay = format!("netdyno replay {file} --on tx0 --topspeed --preload");
    net.run(replay).refused(&["long.pcap", "MTU", "996 bytes", "--oversize skip"]);
    net.run("netdyno send ipv4/udp --size 1000 --on tx0 --rate 1kpps")
        .refused(&["1000 bytes", "ip link set tx0 mtu 982"]);
    // One byte more than fits, and just as much as fits: with a VLAN tag four bytes more.
    net.run("netdyno send ipv4/udp --size 519 --on tx0 --topspeed --count 1").refused(&["MTU is 500"]);
    net.run("netdyno send ipv4/udp --size 518 --on tx0 --topspeed --count 1").ok();
}

#[test]
fn the_longest_frame_of_an_interface_arrives_whole() {
    let net = Net::with(&::lab::Options { mtu: 9000, ..Default::default() });
    let got = net.received(3, || {
        net.run("netdyno send ipv4/udp --size 9018 --on tx0 --topspeed --count 3").ok();
    });
    assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [9014; 3]);
}

/// Ways to spoil a capture of 100 frames, and words of the error that must follow.
fn spoilt(net: &Net) -> Vec<(String, &'static str)> {
    let read = |options: &str, name: &str| {
        let file = crafted(net, name, &format!("--count 100 --size 100 --seed 1 {options}"));
        std::fs::read(file).expect("a file")
    };
    let (pcap, pcapng) = (read("", "sound.pcap"), read("", "sound.pcapng"));
    let (gzip, zstd) = (read("", "sound.pcap.gz"), read("", "sound.pcap.zst"));
    // Records of 16 + 96 bytes behind a header of 24; the length stands 8 bytes into the record.
    let second = 24 + 112;
    let patched = |bytes: &[u8], at: usize, with: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    let cut = |bytes: &[u8], length: usize| bytes[..length].to_vec();
    let files = [
        ("empty.pcap", Vec::new(), "is empty"),
        ("header.pcap", cut(&pcap, 20), "file header"),
        ("record-head.pcap", cut(&pcap, second + 7), "record 2"),
        ("record-data.pcap", cut(&pcap, second + 50), "record 2"),
        ("long.pcap", patched(&pcap, second + 8, &[0xff; 4]), "record 2"),
        ("version.pcap", patched(&pcap, 4, &[9, 0]), "version 9.4"),
        ("noise.pcap", (0..5000u32).map(|n| ((n * n) >> 5) as u8).collect(), "not a capture"),
        ("text.pcap", b"frame,length\n1,64\n".to_vec(), "it is text"),
        ("cut.pcap.gz", cut(&gzip, gzip.len() / 2), "gzip stream ends"),
        ("bad.pcap.gz", patched(&gzip, gzip.len() / 2, &[0xff; 8]), "gzip stream is corrupt"),
        ("cut.pcap.zst", cut(&zstd, zstd.len() / 2), "zstd stream ends"),
        ("cut.pcapng", cut(&pcapng, pcapng.len() - 30), "cut off"),
        ("length.pcapng", patched(&pcapng, 4, &[1, 0, 0, 0]), "corrupt"),
        ("order.pcapng", patched(&pcapng, 8, &[7, 7, 7, 7]), "byte order mark"),
    ];
    files
        .into_iter()
        .map(|(name, bytes, words)| {
            let file = net.file(name);
            std::fs::write(&file, bytes).expect("a written file");
            (file, words)
        })
        .collect()
}

#[test]
fn a_spoilt_capture_is_one_clear_error_for_every_verb() {
    let net = Net::new();
    for (file, words) in spoilt(&net) {
        run(format!("netdyno info {file}")).refused(&[&file, words]);
        net.run(format!("netdyno replay {file} --on tx0 --topspeed --preload")).refused(&[&file, words]);
        net.run(format!("netdyno replay {file} -w {}", net.file("out.pcap"))).refused(&[&file, words]);
        let ran = net.run(format!("netdyno replay {file} --on tx0 --topspeed --stream --json"));
        assert!(matches!(ran.status, 1 | 2), "{file}: {}", ran.status);
        assert!((ran.stderr + &ran.stdout).contains(words), "{file}: {}", ran.stdout);
    }
    assert!(!listing(net.dir.path()).contains(&"out.pcap".to_owned()), "{:?}", listing(net.dir.path()));
    let link = net.run("ip -s -j link show tx0").ok().json();
    assert!(number(&link[0]["stats64"]["tx"]["packets"]) < 1000);
}

#[test]
fn the_sound_part_of_a_cut_off_capture_is_sent_if_wished() {
    let net = Net::new();
    let file = net.file("record-data.pcap");
    spoilt(&net);
    for how in ["--preload", "--stream"] {
        let ran =
            net.run(format!("netdyno replay {file} --on tx0 --topspeed --skip-corrupt --json {how}")).with(1);
        assert_eq!(number(&ran.json()["result"]["tx"]["frames"]), 1);
        assert!(reasons(&ran.json())[0].contains("record 2"), "{}", ran.stdout);
        // However the capture is read, a program finds out by the same code.
        let notes = ran.json()["notes"].clone();
        assert_eq!(notes[0]["code"], "capture-damaged", "{how}: {notes}");
        assert_eq!(ran.json()["result"]["verdict"]["codes"], serde_json::json!(["capture-damaged"]), "{how}");
    }
}

#[test]
fn zero_length_and_cut_packets_are_counted() {
    let net = Net::new();
    let whole = frames(crafted(&net, "whole.pcap", "--count 4 --size 200"));
    let file = net.file("odd.pcap");
    let mut bytes = pcap_header(1);
    for frame in &whole {
        // An empty record; one of 196 bytes of which 100 were captured; one that is whole.
        bytes.extend(pcap_record(1, 0, 0, &[]));
        bytes.extend(pcap_record(1, 0, 196, &frame[..100]));
        bytes.extend(pcap_record(1, 0, 196, frame));
    }
    std::fs::write(&file, bytes).expect("a written file");
    let info = run(format!("netdyno info --json {file}")).ok().json();
    assert_eq!(
        [&info["frames"], &info["bytes"], &info["captured_bytes"]].map(number),
        [12, 8 * 196, 4 * 296]
    );
    assert_eq!([&info["notes"]["zero_length"], &info["notes"]["truncated"]].map(number), [4, 4]);
    for how in ["--preload", "--stream"] {
        let ran =
            net.run(format!("netdyno replay {file} --on tx0 --measure rx0 --topspeed --json {how}")).ok();
        let report = ran.json();
        let result = &report["result"];
        assert_eq!([&result["tx"]["frames"], &result["rx"]["bytes"]].map(number), [8, 4 * 296], "{how}");
        assert_eq!(number(&result["tx"]["truncated"]), 4, "{how}");
        assert!(
            report["warnings"].to_string().contains("4 frames without a byte"),
            "{how}: {}",
            report["warnings"]
        );
    }
}

#[test]
fn frames_that_the_kernel_refuses_are_counted_failed() {
    let net = Net::new();
    let file = net.file("short.pcap");
    let good = frames(crafted(&net, "whole.pcap", "--count 2 --size 64"));
    // Shorter than an Ethernet header.
    write_pcap(&file, 1, &[good[0].clone(), vec![2; 9], good[1].clone()]);
    let report = net
        .run(format!("netdyno replay {file} --on tx0 --measure rx0 --topspeed --engine packet --json"))
        .with(1)
        .json();
    let result = &report["result"];
    assert_eq!(
        [&result["tx"]["frames"], &result["rx"]["frames"], &result["tx"]["failed"]].map(number),
        [2, 2, 1]
    );
    assert!(reasons(&report)[0].starts_with("the interface refused 1 frame"), "{:?}", reasons(&report));
}

#[test]
fn a_link_type_that_is_not_ethernet_is_refused_by_name() {
    let net = Net::new();
    let (ethernet, raw, both) = (net.file("ethernet.pcap"), net.file("raw.pcap"), net.file("both.pcapng"));
    let whole = frames(crafted(&net, "ethernet.pcap", "--count 3 --size 64"));
    // 101 is LINKTYPE_RAW: IP without an Ethernet header.
    write_pcap(&raw, 101, &whole.iter().map(|frame| frame[14..].to_vec()).collect::<Vec<_>>());
    run(format!("mergecap -a -F pcapng -w {both} {ethernet} {raw}")).ok();
    net.run(format!("netdyno replay {raw} --on tx0")).refused(&["raw.pcap", "frame 1", "raw IP"]);
    net.run(format!("netdyno replay {both} --on tx0")).refused(&["both.pcapng", "frame 4", "raw IP"]);
    let info = run(format!("netdyno info --json {both}")).ok().json();
    let links: Vec<u64> = info["interfaces"]
        .as_array()
        .expect("interfaces")
        .iter()
        .map(|i| number(&i["link_number"]))
        .collect();
    assert_eq!((number(&info["frames"]), links), (6, vec![1, 101]));
}

#[test]
fn a_rate_of_zero_or_beyond_any_interface_is_refused() {
    let net = Net::new();
    let file = crafted(&net, "x.pcap", "--count 10");
    for (rate, words) in [
        ("0pps", "is zero"),
        ("0mbps", "is zero"),
        ("0%", "is zero"),
        ("0kfps", "is zero"),
        ("0", "is zero"),
        ("-1kpps", "-1"),
        ("1000%", "1000%"),
        ("99999tbps", "more than any interface can do"),
        ("9gpps", "more than any interface can do"),
        ("nanpps", "nanpps"),
    ] {
        net.run(format!("netdyno replay {file} --on tx0 --rate {rate}")).with(2).says(&[words]);
        net.run(format!("netdyno send ipv4/udp --on tx0 --rate {rate} --count 1")).with(2).says(&[words]);
    }
    net.run("netdyno send ipv4/udp --on tx0").refused(&["--rate"]);
    // What this machine cannot do is tried, and reported as not reached.
    let ran = net.run("netdyno send ipv4/udp --on tx0 --rate 1gpps --count 20000 --json").with(1);
    assert!(reasons(&ran.json())[0].starts_with("the rate was not reached"), "{}", ran.stdout);
    assert_eq!(number(&ran.json()["result"]["tx"]["frames"]), 20_000);
}

#[test]
fn a_full_disk_leaves_no_half_of_a_report() {
    let net = Net::new();
    let dir = net.file("small-disk");
    std::fs::create_dir(&dir).expect("a folder");
    let script = net.file("script");
    let send = format!(
        "{} send ipv4/udp --on tx0 --topspeed --count 500 --report {dir} --json",
        env!("CARGO_BIN_EXE_netdyno")
    );
    let text = format!(
        "set -u
        mount -t tmpfs -o size=2m none {dir}
        {send} >/dev/null || exit 11
        before=$(cat {dir}/*.* | cksum)
        dd if=/dev/zero of={dir}/filler bs=1k 2>/dev/null
        {send}
        [ $? = 2 ] || exit 12
        [ \"$before\" = \"$(cat {dir}/*.* | cksum)\" ] || exit 13
        rm {dir}/*.*
        dd if=/dev/zero of={dir}/more bs=1k 2>/dev/null
        {send} >/dev/null 2>&1
        [ $? = 2 ] || exit 14
        [ \"$(ls -A {dir})\" = \"$(printf 'filler\\nmore')\" ] || exit 15"
    );
    std::fs::write(&script, text).expect("a script");
    // The mount is in a mount namespace of the script's own.
    let ran = net.run(format!("unshare -m sh {script}")).ok();
    ran.json();
    ran.says(&["No space left on device", "nothing was replaced"]);
}

#[test]
fn a_capture_file_that_does_not_fit_leaves_none() {
    let net = Net::new();
    let dir = net.file("small-disk");
    std::fs::create_dir(&dir).expect("a folder");
    let script = net.file("script");
    let text = format!(
        "mount -t tmpfs -o size=64k none {dir}
        {} craft ipv4/udp --count 100k -w {dir}/x.pcap
        [ $? = 2 ] || exit 11
        [ -z \"$(ls -A {dir})\" ] || exit 12",
        env!("CARGO_BIN_EXE_netdyno")
    );
    std::fs::write(&script, text).expect("a script");
    net.run(format!("unshare -m sh {script}")).ok().says(&["x.pcap", "No space left on device"]);
}

#[test]
fn the_interface_of_the_default_route_is_refused_unless_named() {
    let net = Net::new();
    for line in ["ip address add 192.0.2.1/24 dev tx0", "ip route add default via 192.0.2.2"] {
        net.run(line).ok();
    }
    for line in ["ip address add 192.0.2.2/24 dev rx0", "ip route add default via 192.0.2.1"] {
        net.run_there(line).ok();
    }
    let file = crafted(&net, "x.pcap", "--count 10");
    let words = ["tx0 carries the default route", "--yes-disrupt tx0", "netdyno lab"];
    let send = "netdyno send ipv4/udp --on tx0 --topspeed --count 10";
    net.run(send).refused(&words);
    net.run(format!("netdyno replay {file} --on tx0")).refused(&words);
    net.run(format!("{send} --yes-disrupt rx0")).refused(&words);
    net.run(format!("{send} --yes-disrupt tx0")).ok();
    // Dropping what arrives would cut the user off as well, and so does attaching a program, with some drivers; looking on
    // does not.
    for how in ["--drop", "", "--meter xdp", "--meter packet --drop"] {
        let measure = format!("netdyno measure --on tx0 --duration 1s {how}");
        net.run(measure).refused(&["tx0 carries the default route"]);
    }
    net.run(format!("netdyno live {file} --on tx0 --to 192.0.2.2:80"))
        .refused(&["tx0 carries the default route"]);
    net.run(format!("{send} --yes-disrupt tx0 --measure rx0")).refused(&["rx0 carries the default route"]);
    net.run("netdyno measure --on tx0 --meter packet --duration 100ms").ok();
}

/// A container's own way out is not this host's.
#[test]
fn a_cable_out_of_another_namespace_may_be_loaded_although_that_namespaces_default_goes_through_it() {
    let net = Net::new();
    for line in ["ip address add 192.0.2.2/24 dev rx0", "ip route add default via 192.0.2.1"] {
        net.run_there(line).ok();
    }
    let there = handle(&net.lab.receiver.namespace);
    let send = "netdyno send ipv4/udp --topspeed --count 10";
    net.run(format!("{send} --on rx0@{there}")).ok();
    // Inside it is one's own, and what arrives there is not taken from it either way.
    let words = ["rx0 carries the default route", "--yes-disrupt rx0"];
    net.run_there(format!("{send} --on rx0")).refused(&words);
    net.run(format!("{send} --on tx0 --measure rx0@{there}")).refused(&words);
}

#[test]
fn an_interrupt_ends_a_run_with_statistics_and_report() {
    // As timeout(1) does, which signals a process and then its group: both are one request.
    for signals in [&["INT"][..], &["TERM"], &["TERM", "TERM"], &["INT", "INT", "TERM"]] {
        let net = Net::new();
        let file = crafted(&net, "x.pcap", "--count 100 --rate 1kpps");
        let dir = net.file("report");
        let replay = net.start(format!(
            "netdyno replay {file} --on tx0 --measure rx0 --duration 60s --json --report {dir}"
        ));
        net.until_frames_leave();
        replay.signals(signals);
        let report = replay.wait().with(1).json();
        let result = &report["result"];
        assert!(number(&result["tx"]["frames"]) > 20);
        assert_eq!(result["tx"]["frames"], result["rx"]["frames"]);
        assert!(reasons(&report)[0].starts_with("stopped after"), "{:?}", reasons(&report));
        assert_eq!(listing(dir), ["figures.csv", "intervals.csv", "report.html", "result.json"]);
    }
}

/// A run that takes long to end (its frames are under way for seconds) is ended at once by a second signal.
#[test]
fn a_second_signal_ends_at_once() {
    let net = Net::new();
    let file = crafted(&net, "x.pcap", "--count 100 --rate 1kpps");
    let replay = net.start(format!("netdyno replay {file} --on tx0 --duration 60s --rate 100pps"));
    net.until_frames_leave();
    replay.signal("STOP");
    replay.signal("INT");
    replay.signal("CONT");
    // What ends within the time that makes two signals one needs no second.
    std::thread::sleep(std::time::Duration::from_millis(500));
    replay.signal("INT");
    let ran = replay.wait();
    assert!([1, 130].contains(&ran.status), "{}: {}", ran.status, ran.stderr);
}

#[test]
fn a_hangup_ends_a_run_unless_it_was_ignored_from_the_start() {
    // What nohup does; and the opposite, should these tests run under it.
    for (how, goes_on) in [("ignore", true), ("default", false)] {
        let net = Net::new();
        let line = "netdyno send ipv4/udp --on tx0 --rate 1kpps --duration 3s --json --engine packet";
        let send = net.start(format!("env --{how}-signal=HUP {line}"));
        net.until_frames_leave();
        send.signal("HUP");
        let report = send.wait().json();
        let stopped = reasons(&report).iter().any(|why| why.starts_with("stopped after"));
        assert_eq!(stopped, !goes_on, "{how}: {report}");
    }
}

#[test]
fn an_interrupt_is_the_proper_end_of_an_endless_run() {
    let net = Net::new();
    let file = crafted(&net, "x.pcap", "--count 100 --rate 1kpps");
    let replay = net.start(format!("netdyno replay {file} --on tx0 --measure rx0 --loop 0 -v"));
    net.until_frames_leave();
    replay.signal("INT");
    let ran = replay.wait();
    // Where other work held the sender up when it was to end, that is said.
    let ended = if ran.status == 1 { "the rate was not reached" } else { "Done as asked" };
    for words in ["Actual: ", "Rated: ", "Statistics for network device: tx0", ended] {
        assert!(ran.stdout.contains(words), "no `{words}` in {}", ran.stdout);
    }
}

#[test]
fn a_core_or_option_that_cannot_be_is_refused() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --on tx0 --topspeed --count 1";
    net.run(format!("{send} --core 1023")).refused(&["CPU 1023 cannot send"]);
    net.run(format!("{send} --catch-up 0.5")).refused(&["--catch-up"]);
    net.run("netdyno send ipv4/udp --on lo --rate 40% --count 1")
        .refused(&["the speed of this interface is not known"]);
    net.run("netdyno lab --mtu 7 -- true").refused(&["--mtu 7"]);
    net.run("netdyno measure --on tx0 --streams 0 --duration 1s").refused(&["0 streams"]);
}
