//! `netdyno tcpcopy`, `netdyno intercept` and `netdyno mirror`: the article's command lines between namespaces, and what is refused.

use crate::clone::oracle::{self, Load, Server};
use crate::clone::{LOAD, Three, steered};
use crate::common::{Running, command, eventually, folder, inside, path, run, start};
use std::time::Duration;

/// Ends it in an orderly way: what it wrote.
fn ended(running: Running) -> crate::common::Ran {
    std::thread::sleep(Duration::from_millis(300));
    running.signal("INT");
    running.wait()
}

#[test]
fn the_articles_line_copies_everything_without_an_assistant() {
    let (three, dir) = (Three::new(), folder());
    let [online, target] = three.servers(128);
    let (log, pid) = (path(&dir, "tcpcopy.log"), path(&dir, "pid"));
    let line = format!(
        "netdyno tcpcopy -x 80@00:11:22:33:44:55-10.77.2.2:80@00:11:22:33:44:56 -l {log} -s 10.77.2.3 -C 16 \
         -o o1 -i o0 -c 10.99.1.x -n 2 -P {pid}"
    );
    let mut command = inside(&three.online, &line);
    command.args(["-F", "tcp and dst port 80"]);
    let mut tcpcopy = start(command);
    tcpcopy.until_it_says(
        "the same as: netdyno clone --from o0:80 --to 10.77.2.2:80 --source-prefix 10.99.1.0/24 --copies 2",
    );
    let logged = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("it begins", || logged().contains("Ctrl-C ends"));
    assert!(std::fs::read_to_string(&pid).expect("the process's number").trim().parse::<u32>().is_ok());
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 800, ..LOAD });
    let ran = ended(tcpcopy).with(0);
    let said =
        ["no intercept is needed", "not needed here: @MAC, -C, -o", "ip route replace 10.99.1.0/24 via"];
    let ran = ran.says(&said);
    let (online, target) = (online.seen(), target.seen());
    assert_eq!(
        (target.counts().len(), online.counts().len(), target.bad, target.disordered()),
        (800, 800, 0, 0)
    );
    assert!(target.counts().values().all(|count| *count == 2), "{}", ran.stdout);
    assert_eq!(target.connections.len(), 2 * online.connections.len());
    assert!(target.connections.iter().all(|(client, _)| client.ip().to_string().contains("10.99.1.")));
    assert!(!std::path::Path::new(&pid).exists());
}

#[test]
fn without_an_interface_the_one_that_clients_come_in_by_is_found() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let mut tcpcopy =
        start(inside(&three.online, "netdyno tcpcopy -x 80-10.77.2.2:80 -s 10.77.2.3 -r 100 -W -O -d"));
    tcpcopy.until_it_says("captured at o0");
    tcpcopy.until_it_says("Ctrl-C ends");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 400, ..LOAD });
    ended(tcpcopy).with(0).says(&["stays in the foreground", "--pace wallclock --adopt syn-only"]);
    let (online, target) = (online.seen(), target.seen());
    assert_eq!((target.counts().len(), online.counts().len()), (400, 400));
}

#[test]
fn a_capture_is_copied_offline_and_faster() {
    let (three, dir) = (Three::new(), folder());
    let file = path(&dir, "online.pcap");
    let online = Server::start(&three.online, "[::]:80", 128);
    let line = format!("tcpdump -Z root -n -U --immediate-mode -B 16384 -s 0 -i o0 -w {file} tcp port 80");
    let mut tcpdump = start(inside(&three.online, &line));
    tcpdump.until_it_says("listening on");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 400, ..LOAD });
    std::thread::sleep(Duration::from_millis(300));
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    let target = Server::start(&three.target, "[::]:80", 128);
    let line = format!("netdyno tcpcopy --offline -i {file} -x 10.77.1.1:80-10.77.2.2:80 -s 10.77.2.3 -a 4");
    start(inside(&three.online, &line)).wait().with(0).says(&["--server 10.77.1.1:80", "--speed 4x"]);
    assert_eq!((online.seen().counts().len(), target.seen().counts().len()), (400, 400));
}

#[test]
fn what_cannot_be_is_refused_by_name_with_what_to_do() {
    let with = |words: &str| run(format!("netdyno tcpcopy -x 80-10.77.2.2:80 {words}"));
    with("-i x -I 10").refused(&["-I is not supported", "-a TIMES"]);
    with("-i x -T 3").refused(&["-T is not supported", "run it again"]);
    with("-i eth0,eth1").refused(&["-i with several interfaces is not supported"]);
    with("-i eth0 -c 10.0.0.1,10.0.0.2").refused(&["-c with several addresses", "--source-prefix"]);
    let filtered = |filter: &str| {
        let mut command = command("netdyno tcpcopy -x 80-10.77.2.2:80 -i eth0 -F");
        command.arg(filter);
        start(command).wait()
    };
    filtered("tcp port 81").refused(&["-F 'tcp port 81' is not supported", "another port"]);
    filtered("vlan and tcp port 80").refused(&["`vlan` is not understood", "netdyno clone"]);
    with("-i eth0 -a 2").refused(&["-a is of captures"]);
    run("netdyno tcpcopy -x 80-10.0.0.2:80,81-10.0.0.2:81 -s 10.0.0.3").refused(&["-x with several servers"]);
    run("netdyno tcpcopy -x 80 -s 10.0.0.3").refused(&["-x 80", "80-192.0.2.2:80"]);
    run("netdyno tcpcopy -s 10.0.0.3").with(2).says(&["-x"]);
    run("netdyno tcpcopy -x 80-10.77.2.2:80 -z").with(2).says(&["-z"]);
    assert!(run("netdyno tcpcopy -v").ok().stdout.contains("tcpcopy's options"));
}

#[test]
fn a_pool_of_this_hosts_own_network_is_refused() {
    let three = Three::new();
    let line = "netdyno tcpcopy -x 80-10.77.2.2:80 -i o0 -s 10.77.2.3 -c 10.77.1.x";
    start(inside(&three.online, line))
        .wait()
        .refused(&["-c 10.77.1.x is not supported", "10.77.1.1 is this host's"]);
}

#[test]
fn intercept_ends_at_once_and_mirror_names_the_native_command() {
    let with = |line: &str| {
        let mut command = command(line);
        command.args(["-F", "tcp and port 80"]);
        start(command).wait()
    };
    let ran = with("netdyno intercept -i bond0 -l intercept.log -d").ok();
    let ran = ran.says(&["nothing is needed on this host", "netdyno clone doctor"]);
    assert_eq!(ran.stdout, "");
    assert!(!std::path::Path::new("intercept.log").exists());
    let line = "netdyno mirror -s 00:11:22:33:44:55 -t 00:11:22:33:44:56 -o bond0 -i bond1 -x 192.168.50.50 -l mirror.log";
    with(line).refused(&[
        "mirror is not supported",
        "192.168.50.50",
        "netdyno clone --from bond1:80 --to TARGET:PORT",
        "netdyno clone capture --from bond1:80 --send-to COPYHOST:7117 --key FILE",
    ]);
}

/// What the doctor says of each step, and its exit status.
fn doctor(three: &Three, words: &str) -> (i32, serde_json::Value) {
    let ran = start(inside(&three.online, &format!("netdyno clone doctor {words} --json"))).wait();
    let found = ran.json();
    (ran.status, found["steps"].clone())
}

#[track_caller]
fn assert_step(steps: &serde_json::Value, name: &str, state: &str, words: &str) {
    let all = steps.as_array().expect("steps");
    let step = all.iter().find(|step| step["step"] == name).unwrap_or_else(|| panic!("no {name}: {steps:#}"));
    assert_eq!(step["state"], state, "{steps:#}");
    assert!(step.to_string().contains(words), "no `{words}`: {step:#}");
}

#[test]
fn the_doctor_says_which_segment_is_missing_where() {
    let three = Three::new();
    let servers = three.servers(128);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let load = Load { connections: 1, requests: 1, per_second: 1000, ..LOAD };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                oracle::run(&three.clients, "10.77.1.1:80", load);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // The loop ends whatever is asserted.
        let _end = End(&stop);
        let online = ["SYN of clients", "SYN-ACK of the server", "ACK of clients"];
        let at_target = ["SYN to the target", "SYN-ACK of the target", "ACK to the target"];

        // As it should be, from this host's address and from a prefix.
        for words in ["", "--source-prefix 10.99.0.0/16"] {
            let (code, steps) = doctor(&three, &format!("--from o0:80 --to 10.77.2.2:80 {words}"));
            for step in ["interface", "target"].iter().chain(&online).chain(&at_target) {
                assert_step(&steps, step, "good", "");
            }
            assert_eq!(code, 0, "{steps:#}");
        }
        let routes = start(inside(&three.online, "ip route show table local")).wait().ok();
        assert!(!routes.stdout.contains("10.99"), "{}", routes.stdout);

        // No route back for the prefix.
        let words = "--from o0:80 --to 10.77.2.2:80 --source-prefix 10.98.0.0/16";
        let (code, steps) = doctor(&three, words);
        assert_step(&steps, at_target[0], "good", "10.98.");
        assert_step(&steps, at_target[1], "bad", "ip route add 10.98.0.0/16 via 10.77.2.1");
        assert_step(&steps, at_target[2], "unknown", "");
        assert_eq!(code, 1);

        // Nobody listens at the target; the interface is not the clients'.
        let (code, steps) = doctor(&three, "--from o1:80 --to 10.77.2.2:81 --duration 500ms");
        assert_step(&steps, online[0], "bad", "tcpdump -ni o1 'tcp and port 80'");
        assert_step(&steps, at_target[1], "bad", "on the target: ss -ltn 'sport = :81'");
        assert_eq!(code, 1);

        // This host drops what the target answers.
        let dir = folder();
        let rules = path(&dir, "rules");
        let drop =
            "table ip t {\nchain c {\ntype filter hook input priority 0\nip saddr 10.77.2.2 drop\n}\n}\n";
        std::fs::write(&rules, drop).expect("a file");
        start(inside(&three.online, &format!("nft -f {rules}"))).wait().ok();
        let (code, steps) = doctor(&three, "--from o0:80 --to 10.77.2.2:80");
        assert_step(&steps, at_target[1], "good", "came back");
        assert_step(&steps, at_target[2], "bad", "nft list ruleset");
        assert_eq!(code, 1);

        // The server's own address is no target.
        let (code, steps) = doctor(&three, "--from o0:10.77.1.1:80 --to 10.77.1.1:80");
        assert_step(&steps, "target", "bad", "is the server that is copied");
        assert_eq!(code, 1);
    });
    drop(servers);
}

struct End<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn the_doctor_looks_through_the_tunnel_and_at_the_address_to_listen_at() {
    let (three, dir) = (steered::leaky(), folder());
    let _servers = three.servers(128);
    let at_target = ["SYN to the target", "SYN-ACK of the target", "ACK to the target"];
    let words = "--from o0:80 --to 10.77.2.2:80 --client-addresses --duration 300ms";

    let (code, steps) = doctor(&three, words);
    assert_step(&steps, "tunnel", "good", "");
    let agent = "on the target: `netdyno clone return --on IFACE --server :PORT --engine ADDRESS`, with PORT 80 and ADDRESS 10.77.2.1";
    assert_step(&steps, "return agent", "bad", agent);
    assert_eq!(code, 1);

    // The agent lets packets in; the target's stack has no way back to clients.
    let _agent = steered::agent(&three, "10.77.2.1", "");
    start(inside(&three.target, "ip route del default")).wait().ok();
    let (code, steps) = doctor(&three, words);
    assert_step(&steps, "return agent", "good", "every length");
    assert_step(&steps, at_target[0], "good", "198.18.0.1");
    assert_step(&steps, at_target[1], "bad", "ip route get 198.18.0.1");
    assert_eq!(code, 1);

    start(inside(&three.target, "ip route add default via 10.77.2.1")).wait().ok();
    let (_, steps) = doctor(&three, words);
    for step in ["tunnel", "return agent"].iter().chain(&at_target) {
        assert_step(&steps, step, "good", "");
    }

    // A capture on another host connects to this one.
    let key = path(&dir, "key");
    start(inside(&three.online, &format!("netdyno clone key {key}"))).wait().ok();
    let words = format!("--server 80 --to 10.77.2.2:80 --key {key}");
    let (code, steps) = doctor(&three, &format!("--listen 10.77.1.1:7117 {words}"));
    for step in ["address to listen at", "key", "target"].iter().chain(&at_target) {
        assert_step(&steps, step, "good", "");
    }
    assert_step(
        &steps,
        "captures",
        "note",
        "`netdyno clone doctor --from IFACE:PORT --to TARGET`, with PORT 80",
    );
    assert_eq!(code, 0, "{steps:#}");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("a mode");
    let (code, steps) = doctor(&three, &format!("--listen 10.77.9.9:7117 {words}"));
    assert_step(&steps, "address to listen at", "bad", "cannot be listened at");
    assert_step(&steps, "key", "bad", "chmod 600");
    assert_eq!(code, 1);
}
