//! `send` and `replay` with interfaces at agents: what one sends another measures, several share a load, and whoever is lost is named.

use crate::agents::program;
use crate::common::{
    Net, Ran, assert_same_frames, eventually, frames, handle, number, reasons, start, write_pcap,
};
use ::lab::{Device, Kind, Loss, Namespace, Options, lost_by_rule};
use serde_json::Value;
use std::process::Command;

const WHAT: &str = "ipv4(src=10.0.0.0/24)/udp(dport=9)";

/// A command that reaches an agent on a host that is a namespace.
pub fn agent(host: &Namespace, words: &str) -> String {
    format!("exec nsenter --net={} {} agent --stdio {words}", handle(host), program())
}

/// From the sending host's agent to the receiving one's.
fn near_to_far<'a>(how: &[&'a str]) -> Vec<&'a str> {
    [&["send", WHAT, "--on", "tx0@near", "--measure", "rx0@far"], how].concat()
}

/// A job with agents; each of their answers may take as long as a busy machine needs.
pub fn command(words: &[&str], agents: &[(&str, String)]) -> Command {
    let mut command = crate::common::command("netdyno");
    command.args(words);
    if !words.contains(&"--agents-timeout") {
        command.args(["--agents-timeout", "120s"]);
    }
    for (name, reach) in agents {
        command.args(["--agent", &format!("{name}={reach}")]);
    }
    command
}

pub fn run(words: &[&str], agents: &[(&str, String)]) -> Ran {
    start(command(words, agents)).wait()
}

/// The result, of which counts are right however slow the machine is: that is all that it may fall short of.
#[track_caller]
pub fn counted(ran: &Ran) -> Value {
    let result = ran.json();
    let reasons = reasons(&result);
    assert!(reasons.iter().all(|said| said.contains("the rate was not reached")), "{reasons:?}");
    assert_eq!(ran.status, i32::from(!reasons.is_empty()), "{reasons:?}");
    result
}

/// The sending host's agent and the receiving one's.
pub fn both(net: &Net) -> [(&'static str, String); 2] {
    [
        ("near", agent(&net.lab.sender.namespace, "--allow-interface tx0")),
        ("far", agent(&net.lab.receiver.namespace, "--allow-interface rx0")),
    ]
}

pub fn of<'a>(result: &'a Value, name: &str) -> &'a Value {
    let agents = result["result"]["agents"].as_array().expect("agents");
    agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("no {name} in {result}"))
}

/// Packets that an interface has sent, by the kernel.
fn left(net: &Net, interface: &str) -> u64 {
    let link = net.run(format!("ip -s -j link show {interface}")).ok().json();
    number(&link[0]["stats64"]["tx"]["packets"])
}

#[test]
fn what_leaves_at_one_agent_is_measured_at_another() {
    let net = Net::new();
    let words = near_to_far(&["--rate", "5kpps", "--count", "5000", "--json"]);
    let result = counted(&run(&words, &both(&net)));
    let [tx, rx] = ["tx", "rx"].map(|end| number(&result["result"][end]["frames"]));
    assert_eq!((tx, rx, number(&result["result"]["loss"]["frames"])), (5_000, 5_000, 0), "{result}");
    assert!(left(&net, "tx0") >= 5_000);
    let stream = &result["streams"][0];
    assert_eq!((number(&stream["tx_frames"]), number(&stream["rx_frames"])), (5_000, 5_000), "{stream}");
    // Both are this host's, whose clock has no error.
    assert_eq!(number(&result["result"]["latency_clock"]["comparison_error_ns"]), 0);
    assert_eq!(number(&result["result"]["latency_ns"]["count"]), 5_000);
    for (name, end) in [("near", "sends_on"), ("far", "measures_on")] {
        let agent = of(&result, name);
        assert_eq!(agent[end].as_array().map(Vec::len), Some(1), "{agent}");
        assert!(agent["error"].is_null() && agent["clock"]["same_host"] == true, "{agent}");
        assert_eq!(agent["report"]["schema"], "netdyno.report/2");
    }
    assert!(of(&result, "near")["began_late_ns"].is_u64(), "{result}");
    // Over time it adds up to the same.
    for (member, all) in [("tx_frames", tx), ("rx_frames", rx)] {
        let each = result["intervals"].as_array().expect("intervals").iter();
        assert_eq!(each.map(|interval| interval[member].as_u64().unwrap_or(0)).sum::<u64>(), all, "{member}");
    }
    assert_eq!(result["requested"]["links"][0]["on"], "tx0@near", "it can be run again");
}

#[test]
fn a_load_that_agents_share_is_the_one_that_was_asked_for() {
    let options = Options { cables: 2, ..Options::default() };
    let net = Net::with(&options);
    let near = &net.lab.sender.namespace;
    let agents = [
        ("a", agent(near, "--allow-interface tx0")),
        ("b", agent(near, "--allow-interface tx1")),
        ("far", agent(&net.lab.receiver.namespace, "--allow-interface rx0 --allow-interface rx1")),
    ];
    let files = ["rx0", "rx1"].map(|rx| net.file(&format!("{rx}.pcap")));
    let mut tcpdumps: Vec<_> = ["rx0", "rx1"]
        .iter()
        .zip(&files)
        .map(|(rx, file)| {
            let mut tcpdump =
                net.start_there(format!("tcpdump -Z root -n -U -B 16384 -Q in -i {rx} -w {file}"));
            tcpdump.until_it_says("listening on");
            tcpdump
        })
        .collect();
    let from_both = |how: &[&'static str]| -> Vec<&str> {
        let ends = ["--on", "tx0@a", "--on", "tx1@b", "--measure", "rx0@far", "--measure", "rx1@far"];
        [&["send", WHAT], &ends[..], &["--rate", "2kpps", "--count", "1001", "--json"], how].concat()
    };
    let words = from_both(&["--share", "--no-sign", "--pass", "--meter", "packet"]);
    let result = counted(&run(&words, &agents));
    let shares = ["a", "b"].map(|name| number(&of(&result, name)["report"]["result"]["tx"]["frames"]));
    assert_eq!(shares, [501, 500], "{result}");
    assert_eq!(
        (number(&result["result"]["tx"]["frames"]), number(&result["result"]["loss"]["frames"])),
        (1001, 0)
    );
    assert_eq!(number(&result["result"]["flows"]["flows"]), 256, "flows that both sent are counted once");
    // Every frame left once: together they are the frames that one sender sends.
    let whole = net.file("whole.pcap");
    net.run(format!("netdyno craft {WHAT} --count 1001 -w {whole}")).ok();
    eventually("all are captured", || files.iter().map(|file| frames(file).len()).sum::<usize>() >= 1001);
    tcpdumps.iter().for_each(|tcpdump| tcpdump.signal("INT"));
    tcpdumps.drain(..).for_each(|tcpdump| drop(tcpdump.wait().ok()));
    let mut got: Vec<Vec<u8>> = files.iter().flat_map(frames).collect();
    let mut wanted = frames(&whole);
    // Of the same program the Ethernet addresses are the interfaces' own.
    for frame in got.iter_mut().chain(&mut wanted) {
        frame[..12].fill(0);
    }
    got.sort();
    wanted.sort();
    assert_same_frames(&got, &wanted);
    // Signed, each frame is counted by its number, whichever core of whichever agent sent it.
    let signed = ["--cores", "2", "--engine", "packet"];
    let words = from_both(&[&["--share"], &signed[..]].concat());
    let result = counted(&run(&words, &agents));
    let streams = result["streams"].as_array().expect("streams");
    let counts = ["tx_frames", "rx_frames", "lost_frames"].map(|name| number(&streams[0][name]));
    assert_eq!((streams.len(), counts), (1, [1001, 1001, 0]), "{}", result["streams"]);
    assert!(result["result"]["rx"]["foreign_frames"].is_null(), "{}", result["result"]["rx"]);
    // Each by itself, all of it: twice the frames, as two streams.
    let words = from_both(&signed);
    let result = counted(&run(&words, &agents));
    let streams = result["streams"].as_array().expect("streams");
    let counts = streams.iter().map(|stream| (number(&stream["tx_frames"]), number(&stream["rx_frames"])));
    assert_eq!(counts.collect::<Vec<_>>(), [(1001, 1001), (1001, 1001)], "{}", result["streams"]);
    let names: Vec<&str> = streams.iter().filter_map(|stream| stream["name"].as_str()).collect();
    assert!(names[0].ends_with(" by a") && names[1].ends_with(" by b"), "{names:?}");
    // Two meters have no one file.
    run(&[&words[..], &["--capture", "got.pcapng"]].concat(), &agents)
        .refused(&["--capture", "measure at one"]);
}

#[test]
fn signed_streams_of_a_shared_load_are_counted_by_their_numbers_and_what_a_device_lost_is_lost() {
    let device = Device { kind: Kind::Bridge, bottleneck: None, loss: Some(Loss { frames: 1, of: 50 }) };
    let net = Net::with(&Options { device: Some(device), ..Options::default() });
    let words = near_to_far(&["--rate", "4kpps", "--count", "4000", "--json", "--cores", "1"]);
    let ran = run(&words, &both(&net)).with(1);
    let result = ran.json();
    let truth =
        lost_by_rule(&net.lab.device.as_ref().expect("a device")[0]).expect("nftables").expect("a rule");
    let lost = number(&result["result"]["loss"]["frames"]);
    // The device's rule counts what else came there, too: some frames of the bridge's own.
    assert!(lost.abs_diff(truth) <= 1 && lost >= 79, "{lost} of {truth}: {result}");
    assert_eq!(number(&result["streams"][0]["lost_frames"]), lost);
    assert_eq!(number(&result["result"]["rx"]["frames"]) + lost, 4_000, "{result}");
    assert!(reasons(&result).iter().any(|said| said.contains("did not arrive")), "{result}");
    assert_eq!(result["result"]["verdict"]["codes"][0], "frames-lost");
}

#[test]
fn captures_go_to_an_agent_by_content_and_what_is_captured_comes_back() {
    let net = Net::new();
    let made = net.file("made.pcap");
    net.run(format!("netdyno craft {WHAT} --count 300 -w {made}")).ok();
    let sent: Vec<Vec<u8>> = frames(&made);
    let (own, got) = (net.file("own.pcap"), net.file("got.pcapng"));
    write_pcap(&own, 1, &sent);
    let words = [
        "replay",
        &own,
        "--on",
        "tx0@near",
        "--measure",
        "rx0@far",
        "--rate",
        "1kpps",
        "--capture",
        &got,
        "--json",
    ];
    let result = counted(&run(&words, &both(&net)));
    assert_eq!(number(&result["result"]["rx"]["frames"]), 300, "{result}");
    let back = net.file("back.pcap");
    net.run(format!("tcpdump -r {got} -w {back}")).ok();
    assert_same_frames(&frames(&back), &sent);
    let folder = net.dir.path().read_dir().expect("a folder");
    let parts = folder.filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains(".part"))
    });
    assert_eq!(parts.count(), 0, "nothing half-written is left");
}

#[test]
fn whoever_refuses_ends_all_before_anything_is_sent() {
    let net = Net::new();
    let before = left(&net, "tx0");
    let send = |on: &str, measure: &str, what: &str| {
        run(
            &["send", what, "--on", on, "--measure", measure, "--rate", "1kpps", "--count", "100"],
            &both(&net),
        )
    };
    send("tx0@near", "lo@far", WHAT).refused(&[
        "far:",
        "lo is not granted",
        "--allow-interface lo",
        "nothing was sent",
    ]);
    send("tx0@near", "rx0@fa", WHAT).refused(&["--measure", "rx0@fa", "there is no agent `fa`", "near, far"]);
    send("tx0@near", "rx0", WHAT).refused(&["--measure", "rx0: it is at no agent", "rx0@near"]);
    send("tx0", "rx0", WHAT).refused(&["tx0@near"]);
    send("tx0@near", "rx0@far", "ipv4/udp(sport=99999)").refused(&["sport"]);
    let [near, far] = both(&net);
    let gone = ("far", "echo no route >&2; exit 7".to_owned());
    let words = near_to_far(&["--rate", "1kpps", "--count", "100"]);
    run(&words, &[near.clone(), gone]).refused(&[
        "far: its command ended (exit status: 7)",
        "no route",
        "nothing was sent",
    ]);
    // Another controller has the interface there.
    let mut other =
        start(command(&["measure", "--on", "rx0@far", "--duration", "60s"], std::slice::from_ref(&far)));
    other.until_it_says("measuring on rx0");
    run(&words, &[near, far]).refused(&["far:", "rx0 is held by run r1 of the agent", "nothing was sent"]);
    other.signal("INT");
    let other = other.wait().with(1);
    assert!(other.stdout.contains("`netdyno agents check`"), "{}", other.stdout);
    assert_eq!(left(&net, "tx0"), before, "nothing was sent");
    run(&["impair", "--between", "tx0@near", "rx0@far"], &both(&net))
        .refused(&["`impair` is carried out by one agent", "near and far"]);
    net.run("netdyno send ipv4/udp --on tx0 --rate 1kpps --count 5 --share").refused(&["--share"]);
    net.run("netdyno send ipv4/udp --on tx0 --rate 1kpps --count 5 --agents-timeout 5s")
        .refused(&["no agent is named"]);
}

/// The process that has all of these among its words, and no shell.
fn process(words: &[&str]) -> Option<String> {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let line = String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        let is_it = line.starts_with(&format!("{} agent --stdio", program()))
            && words.iter().all(|word| line.contains(word));
        is_it.then(|| path.file_name()?.to_str().map(str::to_owned))?
    };
    std::fs::read_dir("/proc").expect("/proc").find_map(of)
}

#[test]
fn an_agent_that_is_lost_in_the_run_is_named_and_the_others_tell_what_they_saw() {
    let net = Net::new();
    for (lost, signal, status) in
        [("far", "KILL", 1), ("near", "KILL", 2), ("far", "STOP", 1), ("far", "TERM", 1)]
    {
        let mark = net.file(&format!("{lost}-{signal}"));
        std::fs::create_dir(&mark).expect("a folder");
        let mut agents = both(&net);
        for (name, reach) in &mut agents {
            if *name == lost {
                reach.push_str(&format!(" --folder {mark}"));
            }
        }
        // One that is frozen is lost when it does not answer in time.
        let answer = if signal == "STOP" { "3s" } else { "120s" };
        let words =
            near_to_far(&["--rate", "1kpps", "--duration", "8s", "--json", "--agents-timeout", answer]);
        let command = command(&words, &agents);
        let before = left(&net, "tx0");
        let running = start(command);
        eventually("frames leave", || left(&net, "tx0") > before + 100);
        let pid = process(&[&mark]).expect("an agent");
        net.run(format!("kill -{signal} {pid}")).ok();
        let ran = running.wait().with(status);
        if status == 1 {
            let result = ran.json();
            let agent = of(&result, lost);
            // One that ends in order tells what it saw until then, which is not all.
            let told = signal == "TERM";
            assert!(agent["error"].is_null() == told && agent["report"].is_null() != told, "{lost} {signal}");
            assert_eq!(result["result"]["verdict"]["codes"][0], "agent-lost", "{result}");
            assert!(result["result"]["loss"].is_null(), "of what nobody measured nothing is known");
            // A veth refuses live frames once no meter stands at its other end.
            let tx = &result["result"]["tx"];
            assert!(number(&tx["duration_ns"]) > 7_000_000_000, "the sender went on to its end: {tx}");
        } else {
            ran.says(&["near:", "what was sent and what arrived is not known"]);
        }
        if signal == "STOP" {
            // It was ended with all that its command started.
            eventually("it is ended", || net.run(format!("kill -CONT {pid}")).status == 1);
        }
        eventually("nothing is left", || process(&[&mark]).is_none());
    }
    // Of a job that one agent alone carries out nobody knows any more either: it is not said that nothing was sent.
    let mark = net.file("whole");
    std::fs::create_dir(&mark).expect("a folder");
    let near = agent(&net.lab.sender.namespace, &format!("--allow-interface tx0 --folder {mark}"));
    let before = left(&net, "tx0");
    let words =
        ["send", WHAT, "--on", "tx0@near", "--rate", "1kpps", "--duration", "60s", "--engine", "packet"];
    let running = start(command(&words, &[("near", near)]));
    eventually("frames leave", || left(&net, "tx0") > before + 100);
    net.run(format!("kill -KILL {}", process(&[&mark]).expect("an agent"))).ok();
    let ran = running.wait().with(2).says(&["near:", "what was sent and what arrived is not known"]);
    assert!(!ran.stderr.contains("nothing was sent"), "{}", ran.stderr);
}

#[test]
fn an_interrupt_ends_all_in_order_and_a_controller_that_is_killed_leaves_nothing() {
    let net = Net::new();
    let words = near_to_far(&["--rate", "1kpps", "--duration", "100s", "--json"]);
    for signal in ["INT", "KILL"] {
        let mark = net.file(signal);
        std::fs::create_dir(&mark).expect("a folder");
        let agents = both(&net).map(|(name, reach)| (name, format!("{reach} --folder {mark}")));
        let before = left(&net, "tx0");
        let running = start(command(&words, &agents));
        eventually("frames leave", || left(&net, "tx0") > before + 100);
        running.signal(signal);
        if signal == "INT" {
            let result = running.wait().with(1).json();
            let [tx, rx] = ["tx", "rx"].map(|end| number(&result["result"][end]["frames"]));
            assert!(tx >= 100 && rx == tx, "{result}");
            assert!(reasons(&result).iter().all(|said| said.starts_with("near: ")), "{result}");
        } else {
            drop(running.wait());
        }
        eventually("no agent is left", || process(&[&mark]).is_none());
        let programs = net.run_there("ip -d link show rx0").ok();
        assert!(!programs.stdout.contains("prog/xdp"), "{}", programs.stdout);
    }
}

#[test]
fn an_agent_writes_down_who_asked_for_what_and_does_nothing_that_it_cannot_write_down() {
    let net = Net::new();
    let log = net.file("agent.log");
    let far = agent(&net.lab.receiver.namespace, "--allow-interface rx0");
    let near = |words: &str| [("near", agent(&net.lab.sender.namespace, words)), ("far", far.clone())];
    let words = near_to_far(&["--rate", "1kpps", "--count", "10", "--json"]);
    let logged = format!("--allow-interface tx0 --log {log}");
    counted(&run(&words, &near(&logged)));
    let not_granted = logged.replace("tx0", "lo");
    run(&words, &near(&not_granted)).refused(&["near: ", "nothing was sent"]);
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["client", "started", "over", "gone", "client", "refused", "gone"], "{text}");
    assert!(lines[0]["says"]["user"].as_str().is_some_and(|user| user.contains('@')), "{text}");
    assert_eq!(lines[0]["came"]["uid"], 0, "{text}");
    assert_eq!(
        (&lines[1]["kind"], &lines[1]["what"], &lines[1]["rate"]),
        (&"send".into(), &WHAT.into(), &"1kpps".into())
    );
    assert!(lines[1]["interfaces"].to_string().contains("tx0"), "{text}");
    assert!(lines[2]["run"] == lines[1]["run"] && lines[2]["outcome"].is_string(), "{text}");
    assert!(lines[5]["why"].as_str().is_some_and(|why| why.contains("tx0")), "{text}");
    assert_eq!(number(&lines[6]["refused"]), 1, "{text}");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&log).expect("a file").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let before = left(&net, "tx0");
    run(&words, &near("--allow-interface tx0 --log /dev/full"))
        .refused(&["near: the agent's log cannot be written", "make room"]);
    let folder = run(&words, &near("--allow-interface tx0 --log /"));
    folder.with(2).says(&["near: its command ended", "--log /: Is a directory"]);
    assert!(left(&net, "tx0") - before < 10, "nothing was sent");
}

#[test]
fn a_clock_that_is_ahead_is_found_within_its_error_and_no_delay_is_negative() {
    let net = Net::new();
    let ahead = 5_000_000i64;
    let far = ("far", agent(&net.lab.receiver.namespace, "--allow-interface rx0"));
    for sign in [1, -1] {
        let words = format!("--allow-interface tx0 --clock-ahead={}", sign * ahead);
        let agents = [("near", agent(&net.lab.sender.namespace, &words)), far.clone()];
        let words = near_to_far(&["--rate", "2kpps", "--count", "1000", "--json"]);
        let result = counted(&run(&words, &agents));
        let clock = &of(&result, "near")["clock"];
        let found = clock["offset_ns"].as_i64().expect("an offset");
        assert!(found.abs_diff(sign * ahead) <= number(&clock["error_ns"]), "{clock}");
        assert!(number(&clock["error_ns"]) < 5_000_000 || crate::common::was_held_up(&result), "{clock}");
        let error = number(&result["result"]["latency_clock"]["comparison_error_ns"]);
        assert!(error > 0, "{result}");
        // What takes less than the clocks are compared within is not told.
        let told = &result["result"]["latency_ns"];
        assert!(told.is_null() || number(&told["p50"]) > error, "{result}");
        let withheld =
            result["notes"].as_array().into_iter().flatten().any(|note| note["code"] == "latency-unknown");
        assert_eq!(told.is_null(), withheld, "{result}");
    }
}

/// Keys of both ends, and who may log in, in a folder that stands where root's home is.
fn home(net: &Net) -> String {
    let home = net.file("home");
    std::fs::create_dir_all(format!("{home}/.ssh")).expect("a folder");
    let mut keygen = crate::common::command("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &format!("{home}/.ssh/key")]);
    start(keygen).wait().ok();
    net.run(format!("dropbearkey -t ed25519 -f {home}/host")).ok();
    std::fs::copy(format!("{home}/.ssh/key.pub"), format!("{home}/.ssh/authorized_keys")).expect("copied");
    net.run(format!("chmod -R go-rwx {home}")).ok();
    home
}

#[test]
fn agents_are_reached_by_a_real_ssh() {
    let net = Net::with(&Options { cables: 2, addresses: true, ..Options::default() });
    let (home, address) = (home(&net), net.lab.receiver.address);
    let mut server = ::lab::Namespace::command(&net.lab.receiver.namespace, "unshare").expect("a command");
    let serve = format!(
        "mount --bind {home} /root && exec dropbear -F -E -s -r {home}/host -P {home}/pid -p {address}:2222"
    );
    server.args(["-m", "--propagation", "private", "sh", "-c", &serve]);
    let mut server = start(server);
    server.until_it_says("Not backgrounding");
    let ssh = format!(
        "exec nsenter --net={} ssh -F none -i {home}/.ssh/key -p 2222 -o BatchMode=yes -o StrictHostKeyChecking=no \
         -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR root@{address}",
        handle(&net.lab.sender.namespace)
    );
    // The session goes over the first cable, which no test traffic takes.
    let far = |words: &str| format!("{ssh} {} agent --stdio {words}", program());
    let agents = [
        ("near", agent(&net.lab.sender.namespace, "--allow-interface tx1")),
        ("far", far("--allow-interface rx1")),
    ];
    let words = [
        "send",
        WHAT,
        "--on",
        "tx1@near",
        "--measure",
        "rx1@far",
        "--rate",
        "2kpps",
        "--count",
        "2000",
        "--json",
    ];
    let result = counted(&run(&words, &agents));
    let [tx, rx] = ["tx", "rx"].map(|end| number(&result["result"][end]["frames"]));
    assert_eq!((tx, rx, number(&result["result"]["loss"]["frames"])), (2_000, 2_000, 0));
    assert!(number(&of(&result, "far")["clock"]["round_trip_ns"]) > 0);
    // Where it is not installed it is copied by the same ssh.
    let lacks = [agents[0].clone(), ("far", format!("{ssh} netdyno agent --stdio --allow-interface rx1"))];
    run(&words, &lacks).with(2).says(&["far: its command ended", "not found", "--agents-copy copies it"]);
    let inventory = net.file("lab.yaml");
    let far = serde_json::json!({ "command": lacks[1].1, "copy": true });
    let listed = serde_json::json!({ "schema": "netdyno.inventory/1", "agents": { "far": far } });
    std::fs::write(&inventory, listed.to_string()).expect("written");
    let result = counted(&run(&[&words[..], &["--inventory", &inventory]].concat(), &agents[..1]));
    assert_eq!(number(&result["result"]["rx"]["frames"]), 2_000);
    let cache = std::fs::read_dir(format!("{home}/.cache/netdyno")).expect("a copy");
    assert_eq!(cache.count(), 1);
    // A login that is refused says so, and nothing is sent.
    let refused = [agents[0].clone(), ("far", agents[1].1.replace(".ssh/key", ".ssh/none"))];
    run(&words, &refused).refused(&["far: its command ended", "Permission denied", "nothing was sent"]);
    server.signal("TERM");
    drop(server.wait());
}
