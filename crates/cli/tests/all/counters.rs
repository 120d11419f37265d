//! `netdyno counters` and `beforeafter`, held to what the kernel counts and to what other tools print of it.

use crate::common::{Net, number};
use serde_json::Value;
use std::path::Path;

fn script(net: &Net, name: &str, text: &str) -> String {
    let file = net.file(name);
    std::fs::write(&file, text).expect("a script");
    file
}

/// Sends datagrams to a port of loopback that nobody listens at.
fn to_nobody(net: &Net, count: u32) {
    let file = script(
        net,
        "nobody.py",
        "import socket, sys\nfor _ in range(int(sys.argv[1])):\n    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))\n",
    );
    net.run(format!("python3 {file} {count}")).ok();
}

/// By how much a counter rose.
fn risen(found: &Value, name: &str) -> u64 {
    let groups = found["groups"].as_array().expect("groups");
    let mut changes = groups.iter().flat_map(|group| group["changes"].as_array().expect("changes"));
    changes.find(|change| change["name"] == name).map_or(0, |change| number(&change["by"]))
}

/// The rules that its notes are of, but for those of counters of the whole machine, which other programs make rise.
fn rules(found: &Value) -> Vec<&str> {
    let notes = found["notes"].as_array().into_iter().flatten();
    notes.filter_map(|note| note["rule"].as_str()).filter(|rule| !rule.starts_with("softnet-")).collect()
}

#[test]
fn what_other_tools_print_is_subtracted_by_name() {
    let net = Net::new();
    // What netstat hides as long as it is zero comes before what is looked at: ICMP messages by type, for one.
    let listings = [
        ("netstat -s", "    3 packets to unknown port received\n"),
        ("nstat -az", "UdpNoPorts                      3                  0.0\n"),
        ("nstat --json -az", "\"UdpNoPorts\":3,"),
        ("cat /proc/net/snmp", "\nUdp: 0 3 0 3 0 0 0 0 0\n"),
        ("cat /proc/net/netstat", "TcpExt: SyncookiesSent "),
        ("cat /proc/net/dev", ""),
        ("cat /proc/net/softnet_stat", ""),
        ("ip -s -j link", "\"ifname\":\"tx0\""),
        ("ethtool -S tx0", "     peer_ifindex: "),
    ];
    let take = |ending: &str| {
        for (n, (command, _)) in listings.iter().enumerate() {
            std::fs::write(net.file(&format!("{n}.{ending}")), net.run(command).ok().stdout).expect("a file");
        }
    };
    take("before");
    to_nobody(&net, 3);
    take("after");
    for (n, (command, line)) in listings.iter().enumerate() {
        let [before, after] = ["before", "after"].map(|ending| net.file(&format!("{n}.{ending}")));
        let ran = net.run(format!("netdyno beforeafter {before} {after}")).ok();
        assert!(ran.stdout.contains(line), "{command}:\n{}", ran.stdout);
        let lines = |text: &str| text.lines().count();
        assert_eq!(lines(&ran.stdout), lines(&std::fs::read_to_string(&after).expect("a file")), "{command}");
        // Nothing changes from a file to itself.
        let same = net.run(format!("netdyno beforeafter {after} {after}")).ok();
        if *command == "nstat -az" {
            let words =
                same.stdout.lines().skip(1).map(|line| line.split_whitespace().nth(1).expect("a number"));
            let moved = words.filter(|word| *word != "0").count();
            // Its gauges: TcpRtoMin and the like stand in no list of nstat's.
            assert_eq!(moved, 0, "{}", same.stdout);
        }
    }
}

#[test]
fn datagrams_that_a_slow_receiver_lost_are_told_as_the_receivers() {
    let net = Net::new();
    let file = script(
        &net,
        "slow.py",
        "import socket, sys\n\
         a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(('127.0.0.1', 0))\n\
         a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)\n\
         b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         for _ in range(200): b.sendto(bytes(500), a.getsockname())\n\
         a.setblocking(False)\n\
         n = 0\n\
         try:\n    while a.recv(500): n += 1\n\
         except BlockingIOError: pass\n\
         print(n, file=sys.stderr)\n",
    );
    let ran = net.run(format!("netdyno counters --json -- python3 {file}")).ok();
    let (found, read): (Value, u64) = (ran.json(), ran.stderr.trim().parse().expect("how many it read"));
    assert!(read > 0 && read < 200, "{read}");
    assert_eq!((risen(&found, "Udp.RcvbufErrors"), risen(&found, "Udp.InDatagrams")), (200 - read, read));
    assert_eq!(rules(&found), ["udp-receiver-too-slow"]);
    let text = net.run(format!("netdyno counters -- python3 {file}")).ok().stdout;
    assert!(
        text.contains("the receiving program was too slow, not the network") && text.contains("\nUDP\n"),
        "{text}"
    );
}

#[test]
fn segments_that_had_to_be_sent_again_are_counted_and_explained() {
    let net = Net::new();
    let rules_file = script(
        &net,
        "rules.nft",
        "table ip t {\n chain in {\n  type filter hook input priority 0;\n  tcp dport 7777 drop\n }\n}\n",
    );
    net.run(format!("nft -f {rules_file}")).ok();
    // A SYN is sent again after a second.
    let file = script(
        &net,
        "connect.py",
        "import socket\ns = socket.socket(); s.settimeout(1.6)\ntry:\n    s.connect(('127.0.0.1', 7777))\nexcept TimeoutError:\n    pass\n",
    );
    let found = net.run(format!("netdyno counters --json -- python3 {file}")).ok().json();
    assert!(risen(&found, "TcpExt.TCPSynRetrans") >= 1, "{found}");
    assert_eq!(risen(&found, "Tcp.RetransSegs"), risen(&found, "TcpExt.TCPSynRetrans"), "{found}");
    assert_eq!(rules(&found), ["tcp-retransmission", "tcp-timeouts-without-probes"]);
    let share = found["retransmitted_share"].as_f64().expect("a share");
    assert_eq!(share, risen(&found, "Tcp.RetransSegs") as f64 / risen(&found, "Tcp.OutSegs") as f64);
}

#[test]
fn snapshots_are_files_and_of_one_namespace_each() {
    let net = Net::new();
    let [a, b, there] = ["a.json", "b.json", "there.json"].map(|name| net.file(name));
    net.run(format!("netdyno counters --on tx0 -w {a}")).ok();
    to_nobody(&net, 4);
    net.run(format!("netdyno counters --on tx0 -w {b}")).ok();
    net.run(format!("netdyno counters --on rx0 -w {there}")).ok();
    let found = net.run(format!("netdyno counters {a} {b} --json")).ok().json();
    assert_eq!(found["schema"], "netdyno.counters-difference/1");
    assert_eq!(risen(&found, "Udp.NoPorts"), 4);
    assert_eq!(rules(&found), ["udp-nobody-listens"]);
    let snapshot: Value = serde_json::from_str(&std::fs::read_to_string(&a).expect("a file")).expect("JSON");
    assert_eq!(snapshot["schema"], "netdyno.counters/1");
    assert!(snapshot["gauges"]["ethtool.tx0.peer_ifindex"].is_u64(), "what veth's driver counts: {snapshot}");
    net.run(format!("netdyno counters {b} {a}")).refused(&["taken before the first"]);
    net.run(format!("netdyno counters {a} {there}")).refused(&["different network namespaces"]);
    net.run(format!("netdyno counters {a}")).refused(&["give two"]);
    net.run(format!("netdyno counters {a} {}", net.file("slow.py"))).refused(&["slow.py", "No such file"]);
    net.run("netdyno counters --on tx0 --on rx0").refused(&["different network namespaces"]);
    net.run("netdyno counters sleep 1").refused(&["netdyno counters -- sleep 1"]);
    net.run("netdyno counters ls a b").with(2).says(&["netdyno counters -- ls a b"]);
    net.run("netdyno counters --on nothing0").refused(&["nothing0"]);
    net.run("netdyno counters -- /no/such/program").refused(&["/no/such/program"]);
    net.run("netdyno counters -- false").with(1).says(&["the command failed: exit status: 1"]);
    let text = net.run("netdyno counters").ok().stdout;
    assert!(text.contains("  Udp.NoPorts ") && text.contains("\nGauges\n"), "{text}");
    // Snapshots are listings, too.
    let ran = net.run(format!("netdyno beforeafter {a} {b}")).ok();
    assert_eq!(ran.json()["counters"]["Udp.NoPorts"], 4);
    assert!(!Path::new(&net.file("c.json")).exists());
}

#[test]
fn changes_are_shown_again_and_again_until_a_signal() {
    let net = Net::new();
    let mut watching = net.start("netdyno counters --interval 200ms --json");
    watching.until_it_prints("\n");
    to_nobody(&net, 5);
    watching.until_it_prints("udp-nobody-listens");
    watching.signal("INT");
    let ran = watching.wait().ok();
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.iter().map(|line| risen(line, "Udp.NoPorts")).sum::<u64>(), 5);
}

#[test]
fn what_is_no_listing_is_refused_and_what_does_not_fit_is_told() {
    let net = Net::new();
    let [text, words, bytes, list, other, less] = [
        ("text", "frames 10 lost 1\nsent 5 to x\n"),
        ("words", "no numbers\n"),
        ("bytes", "a 1\0"),
        ("list", "a 1\nb 2\n"),
        ("other", "frames 30 lost 4\ngot 9 from y\n"),
        ("less", "a 4\nb 1\n"),
    ]
    .map(|(name, text)| script(&net, name, text));
    let ran =
        net.run(format!("netdyno beforeafter {text} {other}")).with(1).says(&["line 2", "left as it is"]);
    assert_eq!(ran.stdout, "frames 20 lost 3\ngot 9 from y\n");
    let ran = net.run(format!("netdyno beforeafter {list} {less}")).with(1).says(&["`b` fell from 2 to 1"]);
    assert_eq!(ran.stdout, "a 3\nb -1\n");
    net.run(format!("netdyno beforeafter {list} {words}")).refused(&["the second file has no numbers"]);
    net.run(format!("netdyno beforeafter {bytes} {list}")).refused(&["bytes is no text"]);
    net.run(format!("netdyno beforeafter {text} {list}")).refused(&["no known listing", "a list of names"]);
    net.run(format!("netdyno beforeafter {list} /nowhere")).refused(&["/nowhere"]);
    net.run("netdyno beforeafter - -").refused(&["one of them may be -"]);
}
