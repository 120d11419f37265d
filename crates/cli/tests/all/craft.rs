//! `netdyno craft`: what tshark, tcpdump and Scapy read from the files is what was asked for.

use crate::common::*;

/// An expression for every protocol, with fields that vary, and the layers tshark must name.
const PROTOCOLS: &[(&str, &str)] = &[
    ("vlan(id=1..4094,prio=5)/arp(psrc=10.0.0.0/24)", "vlan:ethertype:arp"),
    (
        "qinq(id=100)/vlan(id=1..9)/ipv6(src=2001:db8::/64)/tcp(flags=A)",
        "ieee8021ad:ethertype:vlan:ethertype:ipv6:tcp",
    ),
    ("mpls(label=16..99)/mpls(label=17)/ipv4/udp(sport=40000..40999)", "mpls:ip:udp"),
    (
        "ipv4(src=random(10.0.0.0/8),options=[rr(3),nop])/tcp(options=[mss(1460),sackok,nop,wscale(7)])",
        "ip:tcp",
    ),
    ("ipv4(ttl=1..255)/icmp(type=echo-request,seq=0..9)/raw(\"hello\")", "ip:icmp"),
    ("ipv6/hopopts(options=[ra(0)])/udp(sport=40000..40999)", "ipv6:ipv6.hopopts:udp"),
    ("ipv6(hlim=255)/icmpv6(type=echo-request,seq=0..9)/raw(\"hello\")", "ipv6:icmpv6"),
    ("ipv4/gre(key=1..9)/ipv4(src=10.0.0.0/16)/udp(sport=40000..40999)", "gre:ip:udp"),
    (
        "ipv4/udp(sport=49152..65535)/vxlan(vni=0..15)/ether/ipv4(src=192.168.0.0/24)/udp(sport=40000)",
        "vxlan:eth",
    ),
    (
        "ipv4/udp(sport=2152)/gtpu(teid=1..9,ext=[psc(1,9)])/ipv4(src=10.45.0.0/16)/tcp(dport=443)",
        "gtp:ip:tcp",
    ),
    ("ipv4(src=10.0.0.0/24)/sctp(sport=1..9,dport=40000)/sctpdata(tsn=1..99)", "ip:sctp"),
    (
        "ipv6/srv6(segments=[2001:db8::3,2001:db8::2,2001:db8::1],left=2)/ipv4/udp(sport=40000..40999)",
        "ipv6.routing:ip:udp",
    ),
];

#[test]
fn tshark_finds_no_fault_in_any_protocol() {
    let dir = folder();
    let expressions: Vec<&str> = PROTOCOLS.iter().map(|(expression, _)| *expression).collect();
    let all = crafted(&dir, &expressions, "--count 40 --size random(160..400)");
    assert_eq!(tshark_complaints(&all), "");
    let found = tshark_field(&all, "frame.protocols");
    assert_eq!(found.len(), 40 * PROTOCOLS.len());
    for ((expression, layers), found) in PROTOCOLS.iter().zip(found.chunks(40)) {
        assert!(found.iter().all(|protocols| protocols.contains(layers)), "{expression}: {found:?}");
    }
}

/// The frames of all expressions in one file: tshark takes longer to begin than to read it.
fn crafted(dir: &Folder, expressions: &[&str], options: &str) -> String {
    let (one, all) = (path(dir, "one.pcap"), path(dir, "all.pcap"));
    let mut bytes = Vec::new();
    for expression in expressions {
        run(format!("netdyno craft {expression} {options} -w {one}")).ok();
        join_pcap(&mut bytes, &one);
    }
    std::fs::write(&all, bytes).expect("a file");
    all
}

#[test]
fn a_checksum_is_wrong_only_on_purpose() {
    let dir = folder();
    let expressions = [
        "ipv4(chksum=bad)/udp",
        "ipv4/udp(chksum=bad)",
        "ipv4/tcp(chksum=bad)",
        "ipv6/icmpv6(chksum=bad)",
        "ipv4/sctp(chksum=bad)/sctpdata",
    ];
    // Each frame of each of them.
    let complaints = tshark_complaints(&crafted(&dir, &expressions, "--count 5 --size 90"));
    assert_eq!(complaints.lines().count(), 25, "{complaints}");
}

#[test]
fn every_kind_of_file_holds_the_same_frames() {
    let dir = folder();
    let wanted = path(&dir, "plain.pcap");
    let craft = "netdyno craft ipv4(src=random())/udp(sport=random()) --seed 5 --count 200 --size imix -w";
    run(format!("{craft} {wanted}")).ok();
    for (name, magic) in [
        ("x.pcapng", &[0x0a, 0x0d, 0x0d, 0x0a][..]),
        ("x.pcap.gz", &[0x1f, 0x8b]),
        ("x.pcap.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("x.pcapng.gz", &[0x1f, 0x8b]),
    ] {
        let (file, back) = (path(&dir, name), path(&dir, "back.pcap"));
        run(format!("{craft} {file}")).ok();
        assert!(std::fs::read(&file).expect("the file").starts_with(magic), "{name}");
        // editcap of Wireshark reads all of them.
        run(format!("editcap -F pcap {file} {back}")).ok();
        assert_same_frames(&frames(&back), &frames(&wanted));
    }
    assert_eq!(frames(&wanted).len(), 200);
}

#[test]
fn time_stamps_keep_the_rate_exactly() {
    let dir = folder();
    // (rate, size, nanoseconds from the first frame to the last of 1001). Sizes count the FCS, bits do not; on
    // layer 1 a frame takes 20 bytes more than with its FCS.
    for (rate, size, span) in [
        ("10kpps", 64, "0.100000000"),
        ("3pps", 64, "333.333333333"),
        ("100mbps", 1004, "0.080000000"),
        ("100mbps-l1", 980, "0.080000000"),
    ] {
        let file = path(&dir, "rate.pcap");
        run(format!("netdyno craft ipv4/udp --count 1001 --size {size} --rate {rate} -w {file}")).ok();
        let times = tshark_field(&file, "frame.time_relative");
        assert_eq!(times.last().map(String::as_str), Some(span), "{rate}");
    }
}

#[test]
fn count_and_sizes_are_as_asked() {
    let dir = folder();
    let file = path(&dir, "sizes.pcap");
    let sizes = |size: &str, count: usize| {
        run(format!("netdyno craft ipv4/udp --count {count} --size {size} -w {file}")).ok();
        // Without the four bytes of FCS, which capture files leave out.
        let mut lengths: Vec<usize> = frames(&file).iter().map(|frame| frame.len() + 4).collect();
        assert_eq!(lengths.len(), count);
        lengths.sort();
        lengths
    };
    assert_eq!(sizes("64", 3), [64, 64, 64]);
    assert_eq!(sizes("64..67", 8), [64, 64, 65, 65, 66, 66, 67, 67]);
    let imix = sizes("imix", 1200);
    let of = |size| imix.iter().filter(|length| **length == size).count();
    assert_eq!((of(64), of(594), of(1518)), (700, 400, 100));
    let genome = sizes("aaafg", 5);
    assert_eq!(genome, [64, 64, 64, 1280, 1518]);
}

#[test]
fn addresses_and_ports_walk_as_written() {
    let dir = folder();
    let file = path(&dir, "pairs.pcap");
    let mut craft = command("netdyno craft");
    craft.args(["ipv4(src=10.0.0.0..10.0.0.3 every=sport)/udp(sport=1..3)", "--count", "12", "-w", &file]);
    start(craft).wait().ok();
    let pairs: Vec<String> = tshark_field(&file, "ip.src")
        .into_iter()
        .zip(tshark_field(&file, "udp.srcport"))
        .map(|(a, p)| a + ":" + &p)
        .collect();
    let wanted: Vec<String> = (0..4).flat_map(|a| (1..=3).map(move |p| format!("10.0.0.{a}:{p}"))).collect();
    assert_eq!(pairs, wanted);
}

#[test]
fn the_same_seed_gives_the_same_file_and_another_seed_another() {
    let dir = folder();
    let of_seed = |name: &str, seed: &str| {
        let file = path(&dir, name);
        run(format!(
            "netdyno craft ipv4(src=random())/udp(sport=random()) --count 100 --seed {seed} -w {file}"
        ))
        .ok();
        std::fs::read(file).expect("the file")
    };
    assert_eq!(of_seed("a.pcap", "1"), of_seed("b.pcap", "1"));
    assert_ne!(of_seed("a.pcap", "1"), of_seed("c.pcap", "2"));
}

#[test]
fn a_drawn_seed_is_named_and_makes_the_same_file_again() {
    let dir = folder();
    let (first, again) = (path(&dir, "a.pcap"), path(&dir, "b.pcap"));
    let craft = "netdyno craft ipv4(src=random())/udp --count 10 -w";
    let said = run(format!("{craft} {first}")).ok().stderr;
    let seed = said.trim().rsplit_once("seed ").expect("a seed is named").1;
    run(format!("{craft} {again} --seed {seed}")).ok();
    assert_eq!(std::fs::read(first).expect("a file"), std::fs::read(again).expect("a file"));
}

#[test]
fn show_names_every_layer_its_fields_and_bytes() {
    let ran =
        run("netdyno craft qinq(id=7)/vlan(id=5)/ipv6(hlim=9)/tcp(dport=443,flags=S)/raw(\"GET\") --show")
            .ok();
    let mut rest = ran.stdout.as_str();
    for words in
        ["Ethernet", "7", "5", "IPv6", "hlim", "9", "TCP", "dport", "443", "(correct)", "47 45 54", "GET"]
    {
        rest = rest.split_once(words).unwrap_or_else(|| panic!("no `{words}` in {rest}\n{}", ran.stdout)).1;
    }
}

#[test]
fn show_and_scapy_agree_on_what_a_frame_is() {
    let dir = folder();
    let file = path(&dir, "x.pcap");
    let ran =
        run(format!("netdyno craft ipv4(dst=198.18.0.53)/udp(dport=7)/raw(\"x\") --show -w {file}")).ok();
    let script = "import sys; from scapy.all import rdpcap; p = rdpcap(sys.argv[1])[0]; \
                  print(p['UDP'].dport, p['IP'].dst, hex(p['IP'].chksum), hex(p['UDP'].chksum), bytes(p['UDP'].payload))";
    let mut scapy = command("/usr/bin/python3 -c");
    scapy.args([script, &file]);
    let said = start(scapy).wait().ok().stdout;
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!((words[0], words[1], words[4]), ("7", "198.18.0.53", "b'x'"));
    for checksum in &words[2..4] {
        let value = u16::from_str_radix(&checksum[2..], 16).expect("hexadecimal");
        assert!(ran.stdout.contains(&format!("{value:#06x} (correct)")), "{checksum}\n{}", ran.stdout);
    }
}

#[test]
fn a_signed_frame_ends_with_stream_and_sequence_and_keeps_its_checksum() {
    let dir = folder();
    let file = path(&dir, "signed.pcap");
    for expression in ["ipv4/udp(sport=40000) --size 64", "ipv6/sctp(sport=40000)/sctpdata --size 106"] {
        run(format!("netdyno craft {expression} --sign --count 3 -w {file}")).ok();
        assert_eq!(tshark_complaints(&file), "", "{expression}");
        for (n, frame) in frames(&file).iter().enumerate() {
            // The magic, stream 0 in three bytes, the sequence number in five, and six of time.
            let wanted = [0x9d, 0x1e, 0xd7, 0xa0, 0, 0, 0, 0, 0, 0, 0, n as u8];
            assert_eq!(frame[frame.len() - 18..frame.len() - 6], wanted);
        }
    }
}

#[test]
fn an_error_points_at_the_column_and_names_what_was_expected() {
    for (expression, column, words) in [
        ("ether/ipv4(tll=3)", 12, "unknown field `tll` of ipv4; did you mean `ttl`?"),
        ("ipv4/udp(dport=99999)", 16, "0 to 65535"),
        ("ipx/udp", 1, "unknown layer `ipx`"),
        ("ipv4/udp/", 10, "expected a layer"),
        ("ipv4(dst=1.2.3)/udp", 10, "`1.2.3`"),
        ("ipv4/vlan", 6, "vlan"),
    ] {
        let ran = run(format!("netdyno craft {expression} --show"));
        let ran = ran.refused(&[&format!("column {column}: "), words]);
        let caret = ran.stderr.lines().last().expect("a line of carets").find('^');
        assert_eq!(caret, Some(column + 1), "{expression}: {}", ran.stderr);
    }
}

#[test]
fn frames_without_use_or_place_are_refused() {
    let dir = folder();
    run("netdyno craft ipv4/udp").refused(&["-w FILE", "--show"]);
    run("netdyno craft ipv4/udp --size 20 --show").refused(&["46 at least"]);
    run("netdyno craft ipv4/udp -w /nowhere/x.pcap").refused(&["/nowhere/x.pcap", "No such file"]);
    run(format!("netdyno craft ipv4/udp --rate 40% -w {}", path(&dir, "x.pcap")))
        .refused(&["a file has no link"]);
    assert_eq!(listing(dir.path()), [""; 0]);
}

/// Standard output whose reader has gone.
fn into_nothing(line: &str) -> Ran {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut child = command(line);
    child.stdin(std::process::Stdio::null()).stdout(writer).stderr(std::process::Stdio::piped());
    let out = child.spawn().expect("a child").wait_with_output().expect("its end");
    Ran {
        status: out.status.code().expect("a status"),
        what: line.to_owned(),
        stdout: String::new(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

#[test]
fn a_reader_that_left_is_no_error() {
    let dir = folder();
    let file = path(&dir, "some.pcap");
    run(format!("netdyno craft ipv4/udp --count 5 -w {file}")).ok();
    let cache = path(&dir, "some.cache");
    run(format!("netdyno tcpprep --cidr=10.0.0.0/8 -i {file} -o {cache}")).ok();
    for line in [
        "netdyno craft ipv4/udp --count 5 -w -".to_owned(),
        "netdyno craft ipv4/udp --count 100000 -w -".to_owned(),
        format!("netdyno edit {file} --ttl 9 -w -"),
        format!("netdyno replay {file} -w - --topspeed"),
        "netdyno synth --profile smallflows -w -".to_owned(),
    ] {
        assert_eq!(into_nothing(&line).ok().stderr, "", "{line}");
    }
    // A busy machine's sender may be late, and says so.
    let only_late = |said: &str| {
        let said = unfolded(said);
        said.contains("Short of what was asked: the rate was not reached")
    };
    let ran = into_nothing("netdyno send ipv4/udp --lab --rate 1kpps --count 200 --capture -");
    assert!(
        ran.status == 0 && ran.stderr.is_empty() || ran.status == 1 && only_late(&ran.stderr),
        "{}",
        ran.stderr
    );
    // What is measured beside a capture goes on without its reader.
    let (said, status) = (path(&dir, "said"), path(&dir, "status"));
    let netdyno = env!("CARGO_BIN_EXE_netdyno");
    let send = format!("{netdyno} send ipv4/udp --lab --rate 1kpps --count 2000 --capture - 2>{said}");
    let mut shell = command("sh -c");
    shell.arg(format!("{{ {send}; echo $? >{status}; }} | head -c 300 >/dev/null"));
    start(shell).wait().ok();
    let [said, status] = [said, status].map(|file| std::fs::read_to_string(file).expect("a file"));
    assert!(status.trim() == "0" || status.trim() == "1" && only_late(&said), "{said}");
    assert!(
        said.contains("2,000") && !said.contains("Broken pipe") && !said.contains("not captured"),
        "{said}"
    );
    // As the original says it.
    into_nothing(&format!("netdyno tcpreplay -w - {file}")).with(255).says(&["Broken pipe"]);
    for line in [
        format!("netdyno info --json {file}"),
        format!("netdyno info {file}"),
        format!("netdyno tcpcapinfo {file}"),
        format!("netdyno tcpprep -S {cache}"),
        "netdyno craft ipv4/udp --show".to_owned(),
        "netdyno completions bash".to_owned(),
    ] {
        assert_eq!(into_nothing(&line).ok().stderr, "", "{line}");
    }
}

#[test]
fn an_edit_says_what_its_maps_found() {
    let dir = folder();
    let (input, output) = (path(&dir, "a.pcap"), path(&dir, "b.pcap"));
    run(format!(
        "netdyno craft ipv4(src=10.0.0.1..10.0.0.3,dst=192.0.2.9)/udp(dport=53) --count 6 -w {input}"
    ))
    .ok();
    let edit = format!(
        "netdyno edit {input} -w {output} --map-ip 10.0.0.0/8=172.16.0.1/32,11.0.0.0/8=12.0.0.0/8 --map-port 53=5353 --map-port 80=8080"
    );
    run(edit).ok().says(&[
        "--map-ip 10.0.0.0/8=172.16.0.1/32 found 6 addresses",
        "--map-ip 11.0.0.0/8=12.0.0.0/8 found nothing",
        "--map-port 53=5353 found 6 ports",
        "--map-port 80=8080 found nothing",
        "3 hosts became one, 172.16.0.1: 10.0.0.1, 10.0.0.2, 10.0.0.3",
    ]);
    // tcprewrite's law scrambles some hosts into one.
    run(format!("netdyno craft ipv4(src=10.0.0.1..10.0.0.62,dst=192.0.2.9)/udp --count 62 -w {input}")).ok();
    run(format!("netdyno edit {input} -w {output} --scramble-ip 1"))
        .ok()
        .says(&["2 hosts became one, 111.225.69.14: 10.0.0.14, 10.0.0.62"]);
    let plain = run(format!("netdyno edit {input} -w {output} --ttl 5")).ok();
    assert_eq!(plain.stderr.lines().count(), 1, "{}", plain.stderr);
}

#[test]
fn a_list_of_ranges_yields_each_value_in_turn() {
    let shown = run("netdyno craft ipv4/tcp(dport=[1..2,81,(99,98)]) --count 6 --show").ok().stdout;
    let ports: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.trim().strip_prefix("dport")?.split_whitespace().nth(1))
        .collect();
    assert_eq!(ports, ["1", "2", "81", "99", "98", "1"], "{shown}");
}
