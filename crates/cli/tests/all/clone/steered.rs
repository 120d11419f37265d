//! Copies with their clients' own addresses, through a tunnel, and the return agent at the target: what the target saw is what clients
//! said, address by address, and nothing of a copy reaches a client, whoever dies.

use super::oracle::{self, Load, Seen, Server};
use super::{LOAD, Three, assert_copied, cloned, ended};
use crate::common::{
    Folder, Running, eventually, folder, frames, handle, inside, number, path, reasons, run, start,
};
use ::lab::Namespace;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Three hosts of which the target would answer clients through the online one, which forwards.
pub fn leaky() -> Three {
    let three = Three::new();
    three.ip(&three.target, "route add default via 10.77.2.1");
    three.ip(&three.target, "-6 route add default via fd77:2::1");
    three
        .online
        .run_in(|| {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("a setting");
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").expect("a setting");
        })
        .expect("a namespace");
    three
}

pub fn agent(three: &Three, engine: &str, words: &str) -> Running {
    let line = format!("netdyno clone return --on t0 --server :80 --engine {engine} {words}");
    let mut running = start(inside(&three.target, &line));
    running.until_it_says("Ctrl-C ends");
    running
}

/// What would be a copy's on its way to a client: on the clients' link, and on each link of the target.
pub struct Leaks(Vec<(Running, String)>);

impl Leaks {
    pub fn watch(three: &Three, dir: &Folder) -> Leaks {
        let at = |namespace: &Namespace, interface: &str, filter: &str| {
            let file = path(dir, &format!("{interface}.pcap"));
            let line = format!("tcpdump -Z root -n -U --immediate-mode -i {interface} -w {file} {filter}");
            let mut tcpdump = start(inside(namespace, &line));
            tcpdump.until_it_says("listening on");
            (tcpdump, file)
        };
        let clients = "net 10.77.2.0/24 or net fd77:2::/64 or net 198.18.0.0/15";
        // Through the tunnel everything is UDP.
        let target = "tcp or dst net 10.77.1.0/24 or dst net fd77:1::/64 or net 198.18.0.0/15";
        Leaks(vec![at(&three.clients, "c0", clients), at(&three.target, "t0", target)])
    }

    #[track_caller]
    pub fn none(self) {
        // What is said last is on its way.
        std::thread::sleep(Duration::from_millis(300));
        for (tcpdump, file) in self.0 {
            tcpdump.signal("INT");
            tcpdump.wait().ok();
            let seen = frames(&file);
            assert!(seen.is_empty(), "{} frames in {file}, the first: {:x?}", seen.len(), seen[0]);
        }
    }
}

/// Nothing of an agent is left at the target.
#[track_caller]
pub fn assert_clean(three: &Three) {
    for line in ["tc filter show dev t0 ingress", "tc filter show dev t0 egress", "tc qdisc show dev t0"] {
        let said = start(inside(&three.target, line)).wait().ok().stdout;
        assert!(!said.contains("bpf") && !said.contains("clsact"), "{line}: {said}");
    }
}

/// No socket of a copy is left at the target, in whichever state it would say something.
pub fn assert_no_sockets(three: &Three) {
    eventually("no socket is left at the target", || {
        let states = "state connected exclude time-wait exclude fin-wait-2";
        let said = start(inside(&three.target, &format!("ss -Htn {states}"))).wait().ok().stdout;
        !said.contains(":80")
    });
}

fn filters(three: &Three) -> usize {
    ["ingress", "egress"]
        .map(|side| {
            let said =
                start(inside(&three.target, &format!("tc filter show dev t0 {side}"))).wait().ok().stdout;
            said.matches("direct-action").count()
        })
        .iter()
        .sum()
}

pub fn clients_of(seen: &Seen) -> Vec<String> {
    let mut all: Vec<String> = seen
        .connections
        .iter()
        .map(|(client, ids)| format!("{} {} {:?}", client.ip().to_canonical(), client.port(), ids))
        .collect();
    all.sort();
    all
}

#[test]
fn the_watch_sees_what_a_target_sends_to_a_client() {
    let (three, dir) = (leaky(), folder());
    let Leaks(watched) = Leaks::watch(&three, &dir);
    // Nobody answers there: what leaves is enough.
    let client = std::net::SocketAddr::from(([10, 77, 1, 2], 9));
    let patience = Duration::from_millis(1500);
    let connected = three.target.run_in(|| std::net::TcpStream::connect_timeout(&client, patience).is_ok());
    assert!(!connected.expect("a namespace"));
    std::thread::sleep(Duration::from_millis(300));
    for (tcpdump, file) in watched {
        tcpdump.signal("INT");
        tcpdump.wait().ok();
        assert!(frames(&file).len() >= 2, "{file}");
    }
}

#[test]
fn copies_have_their_clients_addresses_and_ports_and_nothing_reaches_a_client() {
    for (load, answer) in [
        (LOAD, 128),
        (Load { connections: 8, requests: 400, per_second: 1000, body: 0, short: true }, 128),
        (Load { connections: 6, requests: 120, per_second: 300, body: 60_000, short: false }, 60_000),
    ] {
        let (three, dir) = (leaky(), folder());
        let [online, target] = three.servers(answer);
        let leaks = Leaks::watch(&three, &dir);
        let agent = agent(&three, "10.77.2.1", "");
        let clone = three.clone("--client-addresses");
        oracle::run(&three.clients, "10.77.1.1:80", load);
        let (_, report) = ended(clone);
        let (online, target) = (online.seen(), target.seen());
        assert_copied(&report, &online, &target, 1);
        assert_eq!(clients_of(&target), clients_of(&online));
        agent.signal("INT");
        let ran = agent.wait().ok();
        assert!(ran.stdout.contains("answers steered back"), "{}", ran.stdout);
        leaks.none();
        assert_clean(&three);
    }
}

#[test]
fn ipv6_is_copied_the_same_way() {
    let (three, dir) = (leaky(), folder());
    let [online, target] = three.servers(20_000);
    let leaks = Leaks::watch(&three, &dir);
    let agent = agent(&three, "fd77:2::1", "");
    let line = "netdyno clone --from o0:80 --to [fd77:2::2]:80 --json --client-addresses";
    let mut clone = start(inside(&three.online, line));
    clone.until_it_says("Ctrl-C ends");
    oracle::run(&three.clients, "[fd77:1::1]:80", Load { requests: 400, ..LOAD });
    let (_, report) = ended(clone);
    let (online, target) = (online.seen(), target.seen());
    assert_copied(&report, &online, &target, 1);
    assert_eq!(clients_of(&target), clients_of(&online));
    agent.signal("INT");
    agent.wait().ok();
    leaks.none();
    assert_clean(&three);
}

#[test]
fn answers_are_steered_whichever_interface_they_would_leave_by() {
    let (three, dir) = (leaky(), folder());
    three.ip(&three.target, "route del default");
    let [online, target] = three.servers(2000);
    let agent = agent(&three, "10.77.2.1", "");
    // It comes up while the agent runs.
    three.ip(&three.online, &format!("link add o2 type veth peer name t1 netns {}", handle(&three.target)));
    for (namespace, words) in [
        (&three.online, "address add 10.77.3.1/24 dev o2"),
        (&three.target, "address add 10.77.3.2/24 dev t1"),
        (&three.online, "link set o2 up"),
        (&three.target, "link set t1 up"),
        (&three.target, "route add default via 10.77.3.1"),
    ] {
        three.ip(namespace, words);
    }
    let leaks = Leaks::watch(&three, &dir);
    let file = path(&dir, "t1.pcap");
    let mut other = start(inside(
        &three.target,
        &format!("tcpdump -Z root -n -U --immediate-mode -i t1 -w {file} ip and not net 224.0.0.0/4"),
    ));
    other.until_it_says("listening on");
    let clone = three.clone("--client-addresses");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 400, ..LOAD });
    let (_, report) = ended(clone);
    assert_copied(&report, &online.seen(), &target.seen(), 1);
    agent.signal("INT");
    agent.wait().ok();
    leaks.none();
    other.signal("INT");
    other.wait().ok();
    assert_eq!(frames(&file).len(), 0, "answers at the other interface");
    assert_clean(&three);
}

/// Runs clients for as long as `breaks` takes and a while longer: what the clone said, and how long after the break it ended.
fn broken(
    three: &Three,
    words: &str,
    breaks: impl FnOnce(&Running),
) -> (serde_json::Value, Duration, [Server; 2]) {
    let [online, target] = three.servers(60_000);
    let clone = three.clone(&format!("--client-addresses {words}"));
    let clients = three.clients.try_clone().expect("a namespace");
    let load = Load { connections: 20, requests: 4000, per_second: 800, body: 0, short: false };
    let running = std::thread::spawn(move || oracle::run(&clients, "10.77.1.1:80", load));
    eventually("the target has requests", || target.requests.load(Relaxed) > 200);
    let began = Instant::now();
    breaks(&clone);
    let ran = clone.wait().with(1);
    let took = began.elapsed();
    running.join().expect("clients");
    (ran.json(), took, [online, target])
}

#[track_caller]
fn assert_lost(report: &serde_json::Value, took: Duration) {
    let said = reasons(report).join("\n");
    assert!(said.contains("return agent") && said.contains("did not answer"), "{said}");
    // Within two seconds; the rest is for a machine that is busy with the tests.
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert!(number(&cloned(report)["sent"]["sent"]) > 0);
}

#[test]
fn when_the_agent_is_killed_nothing_reaches_a_client_and_its_guardian_leaves_nothing() {
    let (three, dir) = (leaky(), folder());
    let leaks = Leaks::watch(&three, &dir);
    let agent = agent(&three, "10.77.2.1", "");
    let (report, took, _servers) = broken(&three, "", |_| {
        agent.signal("KILL");
    });
    assert_lost(&report, took);
    eventually("the filters are gone", || filters(&three) == 0);
    assert_no_sockets(&three);
    // Whatever the target still had to say would come now.
    std::thread::sleep(Duration::from_secs(2));
    leaks.none();
    assert_clean(&three);
    agent.wait();
}

#[test]
fn when_agent_and_guardian_are_killed_the_filters_stay_closed_until_they_are_cleaned() {
    let (three, dir) = (leaky(), folder());
    let leaks = Leaks::watch(&three, &dir);
    let agent = agent(&three, "10.77.2.1", "");
    let tasks = std::fs::read_dir(format!("/proc/{}/task", agent.pid())).expect("threads").flatten();
    let children: String =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok()).collect();
    let guardian = children.trim().to_owned();
    assert!(!guardian.is_empty() && !guardian.contains(' '), "{children}");
    let (report, took, _servers) = broken(&three, "", |_| {
        run(format!("kill -KILL {guardian}")).ok();
        agent.signal("KILL");
    });
    assert_lost(&report, took);
    std::thread::sleep(Duration::from_secs(2));
    assert!(filters(&three) >= 2, "the filters stay");
    // Another agent does not begin there.
    let line = "netdyno clone return --on t0 --server :80 --engine 10.77.2.1";
    start(inside(&three.target, line)).wait().with(2).says(&["--clean"]);
    let cleaned = start(inside(&three.target, "netdyno clone return --clean")).wait().ok();
    // Connections were open when both were killed, and no program has closed them.
    assert!(cleaned.stdout.contains("taken away, 2"), "{}", cleaned.stdout);
    assert_no_sockets(&three);
    std::thread::sleep(Duration::from_secs(1));
    leaks.none();
    assert_clean(&three);
    agent.wait();
}

#[test]
fn when_the_tunnel_is_gone_the_clone_stops_and_says_so() {
    let (three, dir) = (leaky(), folder());
    let leaks = Leaks::watch(&three, &dir);
    let mut agent = agent(&three, "10.77.2.1", "");
    let (report, took, _servers) = broken(&three, "", |clone| {
        // The device is in a namespace that only the clone's threads are in.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", clone.pid())).expect("threads");
        let own = std::fs::read_link(format!("/proc/{}/ns/net", clone.pid())).expect("a namespace");
        let inside = tasks.flatten().map(|task| task.path().join("ns/net"));
        let copies = inside.into_iter().find(|file| std::fs::read_link(file).is_ok_and(|there| there != own));
        let copies = copies.expect("a namespace of its own");
        let copies = Namespace::open(&copies).expect("a namespace");
        start(crate::common::inside(&copies, "ip link del copies")).wait().ok();
    });
    assert_lost(&report, took);
    agent.until_it_says("the engine is gone");
    leaks.none();
    agent.signal("INT");
    agent.wait().ok();
    assert_clean(&three);
}

#[test]
fn when_the_clone_is_killed_its_namespace_goes_and_the_targets_sockets_are_ended() {
    let (three, dir) = (leaky(), folder());
    let [_online, target] = three.servers(60_000);
    let leaks = Leaks::watch(&three, &dir);
    let mut agent = agent(&three, "10.77.2.1", "");
    let clone = three.clone("--client-addresses");
    let clients = three.clients.try_clone().expect("a namespace");
    let load = Load { connections: 20, requests: 1600, per_second: 800, body: 0, short: false };
    let running = std::thread::spawn(move || oracle::run(&clients, "10.77.1.1:80", load));
    eventually("the target has requests", || target.requests.load(Relaxed) > 200);
    clone.signal("KILL");
    clone.wait();
    running.join().expect("clients");
    agent.until_it_says("the engine is gone");
    assert_no_sockets(&three);
    // A new one begins: the tunnel's UDP port is free again.
    let again = three.clone("--client-addresses");
    let (_, report) = ended(again);
    assert_eq!(number(&cloned(&report)["sessions"]["copied"]), 0);
    leaks.none();
    agent.signal("INT");
    agent.wait().ok();
    assert_clean(&three);
}

#[test]
fn without_an_agent_nothing_begins_and_contradictions_are_refused() {
    let (three, dir) = (leaky(), folder());
    let [_online, target] = three.servers(128);
    let leaks = Leaks::watch(&three, &dir);
    let clone = "netdyno clone --from o0:80 --to 10.77.2.2:80 --client-addresses";
    start(inside(&three.online, clone)).wait().refused(&["netdyno clone return", "10.77.2.1"]);
    start(inside(&three.online, &format!("{clone} --copies 2"))).wait().refused(&["--client-addresses"]);
    start(inside(&three.online, &format!("{clone} --noise-target 10.77.2.9:80"))).wait().refused(&["tunnel"]);
    let line = "netdyno clone return --on t0 --server :80 --engine";
    start(inside(&three.target, &format!("{line} 10.77.2.2"))).wait().with(2).says(&["own address"]);
    start(inside(&three.target, &format!("{line} 203.0.113.9 --vni 0"))).wait().with(2).says(&["--vni"]);
    start(inside(&three.target, "netdyno clone return --on nosuch --server :80 --engine 10.77.2.1"))
        .wait()
        .with(2)
        .says(&["nosuch"]);
    assert!(target.seen().connections.is_empty());
    leaks.none();
    assert_clean(&three);
}

#[test]
fn filters_of_others_and_the_qdisc_that_they_hang_on_stay_however_the_agent_ends() {
    let three = leaky();
    let [_online, _target] = three.servers(128);
    let tc = |words: &str| start(inside(&three.target, &format!("tc {words}"))).wait().ok().stdout;
    for how in ["INT", "KILL"] {
        let ending = agent(&three, "10.77.2.1", "");
        assert!(tc("qdisc show dev t0").contains("clsact"));
        assert!(!tc("qdisc show dev lo").contains("clsact"), "nothing leaves there");
        // Somebody else finds the qdisc there that the agent made.
        tc("filter add dev t0 egress protocol ip prio 7 u32 match u32 0 0");
        tc("filter add dev t0 ingress protocol ip prio 7 u32 match u32 0 0");
        ending.signal(how);
        if how == "INT" {
            ending.wait().ok();
        } else {
            ending.wait();
        }
        eventually("the agent's filters are gone", || filters(&three) == 0);
        for side in ["ingress", "egress"] {
            assert!(tc(&format!("filter show dev t0 {side}")).contains("u32"), "{how}, {side}");
        }
        tc("qdisc del dev t0 clsact");
    }
    // One that somebody else made stays, empty as it is.
    tc("qdisc add dev t0 clsact");
    let last = agent(&three, "10.77.2.1", "");
    last.signal("INT");
    last.wait().ok();
    assert!(tc("qdisc show dev t0").contains("clsact"));
    start(inside(&three.target, "netdyno clone return --clean")).wait().ok();
    assert!(tc("qdisc show dev t0").contains("clsact"));
}

#[test]
fn a_target_with_routes_to_its_clients_alone_is_tried_by_an_address_of_theirs() {
    let three = Three::new();
    three.ip(&three.target, "route add 10.77.1.0/24 via 10.77.2.1");
    let [online, target] = three.servers(128);
    let agent = agent(&three, "10.77.2.1", "");
    let line = "netdyno clone --from o0:80 --to 10.77.2.2:80 --client-addresses";
    start(inside(&three.online, line)).wait().refused(&["--test-address", "a default route"]);
    let clone = three.clone("--client-addresses --test-address 10.77.1.250");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    let (_, report) = ended(clone);
    let (online, target) = (online.seen(), target.seen());
    assert_copied(&report, &online, &target, 1);
    assert_eq!(clients_of(&target), clients_of(&online));
    agent.signal("INT");
    agent.wait().ok();
}
