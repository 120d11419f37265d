//! `netdyno lab -- CMD`: two hosts for any command, and its exit status.

use crate::common::*;

fn in_lab(options: &str, script: &str) -> Ran {
    let mut lab = command(format!("netdyno lab {options} -- sh -c"));
    lab.arg(script);
    start(lab).wait()
}

#[test]
fn the_exit_status_and_output_are_the_commands() {
    let ran = in_lab("", "echo out; echo err >&2; exit 7").with(7);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
    in_lab("", "true").ok();
    in_lab("", "kill -KILL $$").with(128 + 9);
    run("netdyno lab -- /no/such/program").refused(&["/no/such/program"]);
}

#[test]
fn both_interfaces_are_there_and_up() {
    let script = "ip -br link show tx0; ip -br -n receiver link show rx0; ls /sys/class/net";
    let said = in_lab("", script).ok().stdout;
    let words: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((words[0][1], words[1][1]), ("UP", "UP"), "{said}");
    assert!(said.contains("tx0@") && said.contains("rx0@") && said.ends_with("lo\ntx0\n"), "{said}");
}

#[test]
fn options_make_the_cable() {
    let show = "ip -d -j link show tx0";
    let link = in_lab("--mtu 9000 --queues 2", show).ok().json();
    assert_eq!([&link[0]["mtu"], &link[0]["num_tx_queues"]].map(number), [9000, 2]);
    // Nobody listens there, but somebody is there to say so.
    let ran = in_lab("--addresses", "ip -br address show tx0; exec bash -c 'exec 3<>/dev/tcp/198.18.0.2/9'")
        .with(1);
    assert!(ran.stdout.contains("198.18.0.1/24"), "{}", ran.stdout);
    ran.says(&["Connection refused"]);
}

#[test]
fn netdyno_finds_the_receiver_by_its_interface() {
    let binary = env!("CARGO_BIN_EXE_netdyno");
    for receiver in ["rx0", "rx0@receiver"] {
        let send =
            format!("{binary} send ipv4/udp --on tx0 --measure {receiver} --topspeed --count 500 --json");
        let report = in_lab("", &send).ok().json();
        assert_eq!(number(&report["result"]["rx"]["frames"]), 500);
    }
}

#[test]
fn signals_are_passed_on() {
    let mut lab = command("netdyno lab -- sh -c");
    lab.arg("trap 'exit 9' TERM; echo ready >&2; while :; do sleep 0.05; done");
    let mut lab = start(lab);
    lab.until_it_says("ready");
    lab.signal("TERM");
    lab.wait().with(9);
}

#[test]
fn a_hangup_that_was_ignored_from_the_start_is_not_passed_on() {
    let mut lab = command("env --ignore-signal=HUP netdyno lab -- env --default-signal=HUP sh -c");
    lab.arg("trap 'exit 9' HUP; trap 'exit 7' TERM; echo ready >&2; while :; do sleep 0.05; done");
    let mut lab = start(lab);
    lab.until_it_says("ready");
    lab.signal("HUP");
    std::thread::sleep(std::time::Duration::from_millis(200));
    lab.signal("TERM");
    lab.wait().with(7);
}

/// Sends `frames` of 1018 bytes with FCS through the device; the result, and how many arrived.
fn through(options: &str, expression: &str, rate: &str, frames: u64) -> (Ran, u64) {
    let binary = env!("CARGO_BIN_EXE_netdyno");
    let send = format!(
        "{binary} send '{expression}' --size 1018 --on tx0 --measure rx0 --rate {rate} --count {frames} --json"
    );
    let ran = in_lab(options, &format!("{send}; ip netns exec dut tc -s -j qdisc show dev dut1 >&2"));
    let report = ran.json();
    assert_eq!(number(&report["result"]["tx"]["frames"]), frames, "{report}");
    let received = number(&report["result"]["rx"]["frames"]);
    (ran, received)
}

#[test]
fn a_device_between_the_hosts_bridges_or_routes() {
    assert_eq!(through("--dut bridge", "ipv4/udp", "20kpps", 2_000).1, 2_000);
    let to_the_router = "ether(dst=02:00:00:00:01:01)/ipv4(src=198.18.0.0/16, dst=198.19.0.0/16)/udp";
    assert_eq!(through("--dut router", to_the_router, "20kpps", 2_000).1, 2_000);
    let there_and_back = "ping -c 2 -i 0.2 -W 5";
    in_lab("--dut bridge --addresses", &format!("{there_and_back} 198.18.0.2")).ok();
    // One hop more: the packets were routed.
    let routed = in_lab("--dut router", &format!("{there_and_back} 198.19.0.2")).ok().stdout;
    assert!(routed.contains("ttl=63"), "{routed}");
}

#[test]
fn a_devices_losses_are_exact() {
    assert_eq!(through("--loss 1%", "ipv4/udp", "20kpps", 5_000).1, 4_950);
    assert_eq!(through("--dut bridge --loss 3/1000", "ipv4/udp", "20kpps", 5_000).1, 4_985);
    run("netdyno lab --loss 2 -- true").with(2).says(&["--loss", "1%"]);
    run("netdyno lab --bottleneck 5kpps -- true").refused(&["bits per second"]);
    run("netdyno lab --bottleneck 5mbps --queue 100 -- true").refused(&["--queue 100"]);
}

#[test]
fn a_bottleneck_lets_its_rate_through_and_no_more() {
    let (ran, received) = through("--bottleneck 40mbps --queue 20000 --burst 5000", "ipv4/udp", "top", 2_000);
    // What the token bucket says of itself is the truth that the measurement is held to.
    let line = ran.stderr.lines().find(|line| line.starts_with('[')).expect("tc's statistics");
    let bucket: serde_json::Value = serde_json::from_str(line).expect("tc's statistics");
    let [passed, dropped] = ["packets", "drops"].map(|name| number(&bucket[0][name]));
    assert_eq!((received, 2_000 - received), (passed, dropped), "{line}");
    // 24 frames fit the queue and the saved tokens; top speed is far more than 40 Mbit/s.
    assert!((24..1_500).contains(&received), "{received}");
    // What is less than the rate passes whole.
    assert_eq!(through("--bottleneck 400mbps", "ipv4/udp", "5mbps", 500).1, 500);
}

/// Runs a command on a terminal of its own, as that session's leader, closes the terminal once it has said something, and
/// prints the exit status, or "hangs".
const ON_A_TERMINAL: &str = "
import os, pty, signal, sys, time
pid, terminal = pty.fork()
if pid == 0:
    # Whoever runs these tests may have it ignored (nohup).
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ['TERM'] = 'xterm'
    os.execv(sys.argv[1], sys.argv[1:])
os.read(terminal, 1)
time.sleep(0.5)
os.close(terminal)
for _ in range(1500):
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        print(os.waitstatus_to_exitcode(status))
        break
    time.sleep(0.02)
else:
    print('hangs')
    os.kill(pid, signal.SIGKILL)
";

#[test]
fn a_closed_terminal_ends_what_runs_in_a_lab() {
    let binary = env!("CARGO_BIN_EXE_netdyno");
    for screen in ["", " --tui"] {
        let mut python = command("python3 -c");
        python.arg(ON_A_TERMINAL);
        let send = format!("{binary} lab -- {binary} send ipv4/udp --on tx0 --rate 100pps{screen}");
        python.args(send.split(' '));
        let said = start(python).wait().ok().stdout;
        assert_ne!(said.trim(), "hangs", "with `{screen}`");
    }
}

/// Half of what is sent finds no room; the text says where it was seen last, and what to type next.
#[test]
fn a_loss_in_the_device_is_told_from_one_at_the_ends() {
    let send = "netdyno send ipv4/udp --size 512 --on tx0 --measure rx0 --rate 10mbps --duration 1500ms";
    let ran = run(format!("netdyno lab --bottleneck 5mbps -- {send}")).with(1);
    for words in ["Likely cause: tx0 transmitted all and no counter of losses rose at tx0 or rx0", "Next: "] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    // A lab of the command's own knows its device, and its interfaces are gone with it.
    let own = send.replace("--on tx0 --measure rx0", "--lab --lab-bottleneck 5mbps");
    let ran = run(&own).with(1);
    let said = unfolded(&ran.stdout);
    for words in ["Likely cause: the lab's dut1 dropped", "its tbf_dropped rose", "with the same --lab finds"]
    {
        assert!(said.contains(words), "{words}: {}", ran.stdout);
    }
    let ran = run(format!("netdyno lab --loss 100% -- {send}")).with(1);
    let words = "nothing reached rx0 (its rx_packets rose by";
    assert!(ran.stdout.contains(words) && ran.stdout.contains("`netdyno measure rx0`"), "{}", ran.stdout);
}

#[test]
fn a_server_listens_before_the_command_begins_and_ends_with_it() {
    let ask = "exec 3<>/dev/tcp/198.18.0.2/80; printf 'GET /numbers HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
    let mut lab = command("netdyno lab --server http -- bash -c");
    lab.arg(ask);
    let answer = start(lab).wait().ok().stdout;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\n2000\n"), "{answer}");

    let binary = env!("CARGO_BIN_EXE_netdyno");
    let mut lab = command("netdyno lab --server");
    lab.arg(format!("{binary} endpoint serve --quiet"));
    lab.args(["--", binary, "endpoint", "tcp-stream", "198.18.0.2", "--bytes", "3000007", "--json", "-q"]);
    let report = start(lab).wait().ok().json();
    assert_eq!(number(&report["result"]["endpoint"]["streams"][0]["received_bytes"]), 3_000_007);

    let refused = |server: &str, says: &str| {
        let mut lab = command("netdyno lab --server");
        lab.args([server, "--", "echo", "it ran"]);
        let ran = start(lab).wait().with(2);
        assert!(ran.stderr.contains(says) && ran.stdout.is_empty(), "{}{}", ran.stdout, ran.stderr);
    };
    refused("exit 7", "--server 'exit 7': it ended with status 7 before it listened");
    refused("no-such-server", "ended with status 127");
}

/// `sessions serve` answers by XDP and has no socket: the first connection finds it.
#[test]
fn a_server_without_a_socket_is_ready_when_its_program_is_at_the_interface() {
    let binary = env!("CARGO_BIN_EXE_netdyno");
    let mut lab = command("netdyno lab --server");
    lab.arg(format!("{binary} sessions serve --on rx0 -q"));
    lab.args(["--", binary, "sessions", "--on", "tx0", "--to", "198.18.0.2:80", "--count", "50"]);
    let dir = folder();
    lab.args(["--rate", "500cps", "--json", "-q", "--report", &path(&dir, "out")]);
    let report = start(lab).wait().ok().json();
    let sessions = &report["result"]["sessions"];
    assert_eq!(number(&sessions["opened"]), 50, "{sessions}");
    assert_eq!(number(&sessions["finished"]), 50, "{sessions}");
    // Its page does not take answers for frames that came through, nor speak of loss and latency as if nothing were known.
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).expect("a page");
    assert!(page.contains("50 opened, 0 failed") && page.contains("Handshake, median"));
    assert!(page.contains("own frames, not those sent") && !page.contains("was not measured"));
}

/// Packets of the rule whose text has this in it, as nftables lists them.
fn packets(listed: &str, what: &str) -> u64 {
    let rule = listed.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {listed}"));
    let (_, counted) = rule.split_once("packets ").expect("a counter");
    counted.split(' ').next().and_then(|packets| packets.parse().ok()).expect("a number")
}

#[test]
fn a_nat_translates_and_what_it_says_of_itself_is_what_nftables_and_connection_tracking_say() {
    let dir = folder();
    let binary = env!("CARGO_BIN_EXE_netdyno");
    let served =
        format!("{binary} sessions serve --on rx0 --requests 100 -q --report {}", path(&dir, "served"));
    let (nft, entries, result) = (path(&dir, "nft"), path(&dir, "entries"), path(&dir, "result.json"));
    let script = format!(
        "{binary} sessions --on tx0 --to 198.19.0.2:80 --clients 198.18.1.0/24 --connections 250 --use-again --rate 2kcps --rto 100ms \
         --timeout 1s --json -q > {result}
         ip netns exec dut nft list ruleset > {nft}; ip netns exec dut cat /proc/sys/net/netfilter/nf_conntrack_count > {entries}"
    );
    let mut lab = command("netdyno lab --connections 200");
    lab.args(["--server", &served, "--", "sh", "-c", &script]);
    let said = start(lab).wait().ok().stderr;
    let read = |file: &str| std::fs::read_to_string(file).expect("a file");
    let report: serde_json::Value = serde_json::from_str(&read(&result)).expect("a result");
    let sessions = &report["result"]["sessions"];
    assert_eq!([&sessions["held"]["held"], &sessions["held"]["answered_again"]], [200, 200], "{sessions}");
    let listed = read(&nft);
    let nat = |name: &str| number(&sessions["nat"][name]);
    assert_eq!([nat("translated"), packets(&listed, "masquerade")], [200, 200], "{sessions}: {listed}");
    assert_eq!(nat("over_connections"), packets(&listed, "ct count over 200"), "{sessions}: {listed}");
    assert!(nat("over_connections") >= 50, "{sessions}");
    assert_eq!(nat("invalid"), packets(&listed, "ct state == invalid"), "{sessions}: {listed}");
    let kept: u64 = read(&entries).trim().parse().expect("a number");
    assert_eq!(nat("entries"), kept, "{sessions}");
    assert!(said.contains("device: 200 connections translated, 200 entries at the end"), "{said}");
}

#[test]
fn what_a_nat_counted_is_not_known_where_its_rules_go_away_and_the_rest_of_the_result_stays() {
    let dir = folder();
    let binary = env!("CARGO_BIN_EXE_netdyno");
    let served = format!("{binary} sessions serve --on rx0 -q");
    for (n, gone) in ["flush ruleset", "flush chain ip lab postrouting"].into_iter().enumerate() {
        let result = path(&dir, &format!("result-{n}.json"));
        // (Rules are removed while connections are opened: what those before it had counted goes with them.)
        let script = format!(
            "{binary} sessions --on tx0 --to 198.19.0.2:80 --clients 198.18.1.0/24 --rate 200cps --duration 2s --rto 100ms \
             --timeout 1s --json -q > {result} & run=$!
             until ip netns exec dut nft list ruleset | grep -q 'packets [1-9].*masquerade'; do sleep 0.05; done
             ip netns exec dut nft {gone}; wait $run; test $? -lt 2"
        );
        let mut lab = command("netdyno lab --connections 3000");
        lab.args(["--server", &served, "--", "sh", "-c", &script]);
        start(lab).wait().ok();
        let text = std::fs::read_to_string(&result).expect("a result");
        let report: serde_json::Value = serde_json::from_str(&text).expect("a result");
        let sessions = &report["result"]["sessions"];
        assert!(number(&sessions["opened"]) > 100 && sessions["nat"].is_null(), "{gone}: {sessions}");
        let said = report["warnings"].to_string();
        assert!(said.contains("what the NAT of the lab counted is not known"), "{gone}: {said}");
    }
}

#[test]
fn connections_through_a_nat_come_from_its_address() {
    let peer = "import socket; s = socket.create_server((\"198.19.0.2\", 9)); c, a = s.accept(); print(a[0])";
    let script = format!(
        "ip netns exec receiver timeout 10 python3 -c '{peer}' & \
         for i in $(seq 100); do python3 -c 'import socket; socket.create_connection((\"198.19.0.2\", 9), 1)' 2> /dev/null && break; sleep 0.05; done; wait"
    );
    let said = in_lab("--dut nat --addresses", &script).ok().stdout;
    assert_eq!(said, "198.19.255.254\n");
}

#[test]
fn limits_of_connections_are_a_nats() {
    for (options, says) in [
        ("--dut router --connections 5", "--connections and --new-connections are limits of --dut nat"),
        ("--connections 70k", "--connections 70000: 1 to 65535 are possible"),
        ("--new-connections 5mbps", "--new-connections 5mbps: it is in connections per second"),
        ("--ports 3 --dut nat", "--dut nat: it stands between two hosts; leave out --ports"),
    ] {
        let said = in_lab(options, "true").with(2).stderr;
        assert!(said.contains(says), "{options}: {said}");
    }
}
