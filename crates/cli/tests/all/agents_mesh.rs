//! A mesh of endpoint tests between agents on a bridge: who is slow is named, by counters of the interfaces too; what fails is a cell with its reason.

use crate::agents_send::{agent, command, run};
use crate::common::{Folder, Ran, eventually, folder, in_time, inside, number, path, reasons, start};
use crate::judged::judged;
use ::lab::Namespace;
use serde_json::Value;
use std::process::Command;

/// Hosts that are namespaces on one bridge, each with its agent.
struct Hosts {
    bridge: Namespace,
    hosts: Vec<Namespace>,
    folder: Folder,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl Hosts {
    fn new(count: usize) -> Hosts {
        let folder = folder();
        let bridge = Namespace::new().unwrap_or_else(|error| panic!("these tests need root: {error}"));
        let all =
            Hosts { bridge, hosts: (0..count).map(|_| Namespace::new().expect("a host")).collect(), folder };
        all.at_bridge("ip link add br0 type bridge");
        all.at_bridge("ip link set br0 up");
        for (number, host) in all.hosts.iter().enumerate() {
            let (port, there) = (format!("p{number}"), crate::common::handle(host));
            all.at_bridge(&format!("ip link add {port} type veth peer name eth0 netns {there}"));
            all.at_bridge(&format!("ip link set {port} master br0 up"));
            for line in [
                "ip link set lo up",
                &format!("ip addr add {}/24 dev eth0", address(number)),
                "ip link set eth0 up",
            ] {
                start(inside(host, line)).wait().ok();
            }
        }
        all
    }

    fn at_bridge(&self, line: &str) {
        start(inside(&self.bridge, line)).wait().ok();
    }

    fn at(&self, host: usize, line: &str) -> Ran {
        start(inside(&self.hosts[host], line)).wait().ok()
    }

    /// What a host sends and what is sent to it has this rate at most.
    fn slow(&self, host: usize, rate: &str) {
        let shaped = |interface: &str| {
            format!("tc qdisc add dev {interface} root tbf rate {rate} burst 16k latency 50ms")
        };
        self.at(host, &shaped("eth0"));
        self.at_bridge(&shaped(&format!("p{host}")));
    }

    /// An agent that grants all that a mesh needs.
    fn agent(&self, host: usize) -> (&'static str, String) {
        let words = format!(
            "--allow-interface eth0 --allow-address 10.77.0.* --allow-listen {}:12866",
            address(host)
        );
        (NAMES[host], agent(&self.hosts[host], &words))
    }

    fn agents(&self) -> Vec<(&'static str, String)> {
        (0..self.hosts.len()).map(|host| self.agent(host)).collect()
    }

    /// `10.77.0.1@a,10.77.0.2@b`.
    fn named(&self) -> String {
        let each = (0..self.hosts.len()).map(|host| format!("{}@{}", address(host), NAMES[host]));
        each.collect::<Vec<_>>().join(",")
    }

    /// Bytes that a host's interface has received.
    fn received(&self, host: usize) -> u64 {
        let link = self.at(host, "ip -s -j link show eth0").json();
        number(&link[0]["stats64"]["rx"]["bytes"])
    }

    fn no_server_is_left(&self) {
        for host in 0..self.hosts.len() {
            eventually("no server is left", || self.at(host, "ss -Htln").stdout.trim().is_empty());
            let link = self.at(host, "ip -j link show eth0").json();
            assert!(link[0]["xdp"].is_null(), "{link}");
        }
    }
}

fn address(host: usize) -> String {
    format!("10.77.0.{}", host + 1)
}

fn mesh(result: &Value) -> &Value {
    &result["result"]["mesh"]
}

fn pairs(result: &Value) -> &[Value] {
    mesh(result)["pairs"].as_array().expect("pairs")
}

fn pair<'v>(result: &'v Value, from: &str, to: &str) -> &'v Value {
    let found = pairs(result).iter().find(|pair| pair["from"] == from && pair["to"] == to);
    found.unwrap_or_else(|| panic!("no {from} to {to}"))
}

/// Counts by outcome add up to the pairs, and each host is in one test of a round at most.
#[track_caller]
fn adds_up(result: &Value) {
    let mesh = mesh(result);
    let sum: u64 = ["done", "short", "failed", "not_begun"].iter().map(|what| number(&mesh[*what])).sum();
    assert_eq!((number(&mesh["tests"]), pairs(result).len() as u64), (sum, sum), "{mesh}");
    for round in 1..=number(&mesh["rounds"]) {
        let mut busy = Vec::new();
        let of_round = pairs(result).iter().filter(|pair| number(&pair["round"]) == round);
        of_round.for_each(|pair| busy.extend([&pair["from"], &pair["to"]]));
        busy.sort_by_key(|name| name.to_string());
        assert!(mesh["schedule"] == "all_at_once" || busy.windows(2).all(|two| two[0] != two[1]), "{busy:?}");
    }
}

#[test]
fn the_host_that_is_slow_is_named_and_its_interface_has_carried_what_is_said() {
    let hosts = Hosts::new(4);
    hosts.slow(3, "5mbit");
    let (report, named) = (path(&hosts.folder, "run"), hosts.named());
    let words = [
        "endpoint",
        "tcp-stream",
        &named,
        "--mesh",
        "-d",
        "1s",
        "--send-buffer",
        "65536",
        "--report",
        &report,
        "--json",
    ];
    let is_slow = |pair: &Value| pair["from"] == "d" || pair["to"] == "d";
    let rate = |pair: &Value| pair["bits_per_second"].as_f64().expect("a rate");
    // On a machine that is busy with other programs the others may be as slow.
    let is_calm = |result: &Value| pairs(result).iter().all(|pair| is_slow(pair) || rate(pair) > 8e6);
    let result = in_time(is_calm, || {
        let before: Vec<u64> = (0..4).map(|host| hosts.received(host)).collect();
        let said = &["12 tests in 6 rounds of 1.00 s, 6.00 s at least", "round 1 of 6: ", "round 6 of 6: "];
        let result = run(&words, &hosts.agents()).ok().says(said).json();
        adds_up(&result);
        let of = mesh(&result);
        assert_eq!((number(&of["done"]), number(&of["rounds"]), number(&of["at_once"])), (12, 6, 2), "{of}");
        for (to, name) in NAMES.iter().enumerate() {
            let to_it = || pairs(&result).iter().filter(|pair| pair["to"] == *name);
            assert_eq!(number(&of["hosts"][to]["served"]["tests"]), 3, "{of}");
            // Each test was a second long at least: the kernel's counter of the interface has all that.
            let carried = (to_it().map(rate).sum::<f64>() / 8.0) as u64;
            let seen = hosts.received(to) - before[to];
            assert!(carried > 0 && seen >= carried, "{name}: {seen} of {carried}");
        }
        // The kernel lets 5 Mbit/s through, and what its bucket holds; a receiver that was held up has read the first bytes late.
        assert!(pairs(&result).iter().all(|pair| !is_slow(pair) || rate(pair) < 8e6), "{of}");
        hosts.no_server_is_left();
        result
    });
    if judged(is_calm(&result)) {
        let of = mesh(&result);
        assert_eq!(of["slowest_host"]["host"], "d", "{of}");
        assert!(is_slow(&of["worst"]), "{of}");
    }

    // All renderings have it.
    let table = std::fs::read_to_string(format!("{report}/pairs.csv")).expect("a table");
    assert_eq!(table.lines().count(), 13, "{table}");
    let page = std::fs::read_to_string(format!("{report}/report.html")).expect("a page");
    assert_eq!(page.matches("<rect class=\"cell ").count(), 12);
    let shown = crate::common::run(format!("netdyno report {report}")).ok().stdout;
    assert!(
        shown.contains("throughput of each row's host as client with each column's as server"),
        "{shown}"
    );
    let mut got = crate::common::command("netdyno report");
    got.args([&report, "--get", "mesh_throughput:a to d"]);
    let rate: f64 = start(got).wait().ok().stdout.trim().parse().expect("a number");
    assert_eq!(Some(rate), pair(&result, "a", "d")["bits_per_second"].as_f64());
    crate::common::run(format!("netdyno compare {report} {report}")).ok();
}

#[test]
fn each_test_makes_a_mesh_in_rounds_and_all_at_once() {
    let hosts = Hosts::new(3);
    let (agents, named) = (hosts.agents(), hosts.named());
    // What a veth's XDP program sends back is taken at once only where the other end has such a program, too.
    let mut meters: Vec<_> = (0..3)
        .map(|port| start(inside(&hosts.bridge, &format!("netdyno measure --on p{port} --duration 10m"))))
        .collect();
    meters.iter_mut().for_each(|meter| meter.until_it_says("Ctrl-C ends"));
    for (test, more, member) in [
        ("tcp-rr", &["--transactions", "200"][..], "p50_ns"),
        ("udp-rr", &["--transactions", "200"], "p50_ns"),
        ("tcp-crr", &["--transactions", "50"], "p50_ns"),
        ("udp-stream", &["-d", "300ms", "--rate", "10mbps"], "bits_per_second"),
        ("stamp", &["-d", "300ms", "--rate", "100pps"], "p50_ns"),
        ("tcp-rr", &["-d", "500ms", "--all-at-once"], "p99_ns"),
        ("stamp", &["-d", "300ms", "--rate", "100pps", "--all-at-once"], "p99_ns"),
    ] {
        let words = [&["endpoint", test, &named, "--mesh", "--json"], more].concat();
        let ran = run(&words, &agents);
        let result = ran.json();
        adds_up(&result);
        let of = mesh(&result);
        assert_eq!(
            (number(&of["tests"]), number(&of["failed"])),
            (6, 0),
            "{test}: {:?} {of}",
            reasons(&result)
        );
        for pair in pairs(&result) {
            assert!(pair[member].as_f64().is_some_and(|value| value > 0.0), "{test}: {pair}");
            if words.contains(&"200") {
                // Over UDP one that is not answered within a second is lost.
                let lost = pair["lost"].as_u64().unwrap_or(0);
                assert_eq!(number(&pair["count"]) + lost, 200, "{pair}");
            }
        }
        for host in of["hosts"].as_array().expect("hosts") {
            match test {
                "stamp" => {
                    let to_it = || pairs(&result).iter().filter(|pair| pair["to"] == host["name"]);
                    let sum = |member: &str| to_it().map(|pair| number(&pair[member])).sum::<u64>();
                    let answered = number(&host["served"]["answered"]);
                    assert!(answered <= sum("count") && answered + sum("lost") >= sum("count"), "{host}");
                }
                _ => assert_eq!(number(&host["served"]["tests"]), 2, "{test}: {host}"),
            }
        }
        let at_once = more.contains(&"--all-at-once");
        assert_eq!(
            (number(&of["rounds"]), of["began_within_ns"].is_u64()),
            (if at_once { 1 } else { 6 }, at_once)
        );
        hosts.no_server_is_left();
    }
    for meter in meters {
        meter.signal("INT");
        meter.wait();
    }
}

#[test]
fn an_agent_that_is_lost_in_the_middle_is_named_and_the_others_go_on() {
    let hosts = Hosts::new(4);
    let (mut agents, named) = (hosts.agents(), hosts.named());
    let pid = path(&hosts.folder, "pid");
    agents[3].1 = format!("echo $$ > {pid}; {}", agents[3].1);
    let mut test = start(command(&["endpoint", "tcp-rr", &named, "--mesh", "-d", "2s", "--json"], &agents));
    test.until_it_says("round 2 of 6");
    let pid = std::fs::read_to_string(&pid).expect("a process");
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().expect("kill").success());
    let ran = test.wait().with(1);
    let result = ran.json();
    adds_up(&result);
    assert!(
        reasons(&result).iter().any(|said| said.starts_with("d: its agent was lost")),
        "{:?}",
        reasons(&result)
    );
    for pair in pairs(&result) {
        let with_d = pair["from"] == "d" || pair["to"] == "d";
        if !with_d {
            assert_eq!(pair["outcome"], "done", "{pair}");
        } else if number(&pair["round"]) > 1 {
            assert_eq!(pair["outcome"], "failed", "{pair}");
            assert!(pair["p50_ns"].is_null() && pair["reason"].is_string(), "{pair}");
        }
    }
    assert!(mesh(&result)["hosts"][3]["served"].is_null());
    hosts.no_server_is_left();
}

#[test]
fn who_refuses_is_a_cell_with_its_reason_and_a_host_without_an_agent_a_column() {
    let hosts = Hosts::new(4);
    // `a` may not speak to b, c starts no server, and d is a server that stands already.
    let agents = [
        (
            "a",
            agent(
                &hosts.hosts[0],
                "--allow-address 10.77.0.3 --allow-address 10.77.0.4 --allow-listen 10.77.0.1:12866",
            ),
        ),
        hosts.agent(1),
        ("c", agent(&hosts.hosts[2], "--allow-address 10.77.0.*")),
    ];
    let mut server = start(inside(&hosts.hosts[3], "netdyno endpoint serve --listen 10.77.0.4:12866"));
    server.until_it_says("10.77.0.4:12866");
    let named = "10.77.0.1@a,10.77.0.2@b,10.77.0.3@c,10.77.0.4";
    let ran =
        run(&["endpoint", "tcp-rr", named, "--mesh", "--transactions", "50", "--json"], &agents).with(1);
    let result = ran.json();
    adds_up(&result);
    let of = mesh(&result);
    assert_eq!((number(&of["tests"]), number(&of["done"]), number(&of["failed"])), (9, 6, 3), "{of}");
    for (from, to, why) in [
        ("a", "b", "10.77.0.2 is not granted"),
        ("a", "c", "c: its agent starts no server: listen[0]: 10.77.0.3:12866 is not granted"),
        ("b", "c", "10.77.0.3:12866 is not granted"),
    ] {
        let reason = pair(&result, from, to)["reason"].as_str().expect("a reason");
        assert!(reason.contains(why), "{from} {to}: {reason}");
    }
    assert_eq!(pair(&result, "c", "a")["outcome"], "done");
    assert_eq!((&of["hosts"][3]["name"], &of["hosts"][3]["agent"]), (&"10.77.0.4".into(), &false.into()));
    assert_eq!(pairs(&result).iter().filter(|pair| pair["to"] == "10.77.0.4").count(), 3);
    server.signal("INT");
    server.wait();
    for (words, said) in [
        (&["endpoint", "tcp-rr", "10.77.0.1@a", "--mesh"][..], "--mesh: a mesh has two hosts at least"),
        (
            &["endpoint", "tcp-rr", "10.77.0.1@a,10.77.0.2@z", "--mesh"],
            "there is no agent `z`; there are a, b, c",
        ),
        (
            &["endpoint", "tcp-rr", "10.77.0.1@a,10.77.0.2@b", "--mesh", "--at", "a"],
            "--at: each host of a mesh begins tests",
        ),
        (
            &["endpoint", "tcp-rr", "10.77.0.1@a,10.77.0.1:12866@b", "--mesh"],
            "a and b are both at 10.77.0.1:12866",
        ),
        (
            &["endpoint", "tcp-rr", "10.77.0.1@a,10.77.0.2/24@b", "--mesh"],
            "`10.77.0.2/24` is no address of a host",
        ),
        (&["endpoint", "tcp-rr", "@a,@b", "--mesh"], "the inventory has no `address` of a"),
    ] {
        run(words, &agents).refused(&[said]);
    }
    crate::common::run("netdyno endpoint tcp-rr 10.77.0.1@a,10.77.0.2@b --mesh")
        .refused(&["--mesh: its tests begin at agents: give --inventory FILE"]);
}

#[test]
fn an_agent_whose_port_is_in_use_is_a_client_still() {
    let hosts = Hosts::new(2);
    let mut other = start(inside(&hosts.hosts[1], "netdyno endpoint serve --listen 10.77.0.2:12866"));
    other.until_it_says("10.77.0.2:12866");
    let words = ["endpoint", "tcp-rr", &hosts.named(), "--mesh", "--transactions", "50", "--json"];
    let result = run(&words, &hosts.agents()).with(1).json();
    adds_up(&result);
    let error = mesh(&result)["hosts"][1]["error"].as_str().expect("an error");
    assert!(error.starts_with("its agent starts no server: "), "{error}");
    assert_eq!(pair(&result, "a", "b")["outcome"], "failed");
    assert_eq!(pair(&result, "b", "a")["outcome"], "done");
    let notes = result["notes"].as_array().expect("notes");
    let codes: Vec<_> = notes.iter().map(|note| note["code"].as_str().expect("a code")).collect();
    assert!(codes.contains(&"endpoint-failed") && !codes.contains(&"agent-lost"), "{codes:?}");
    other.signal("INT");
    other.wait();
}

#[test]
fn an_interrupted_mesh_tells_of_what_was_done_and_leaves_no_server() {
    let hosts = Hosts::new(3);
    let inventory = path(&hosts.folder, "lab.yaml");
    let mut text = "schema: netdyno.inventory/1\nagents:\n".to_owned();
    for (host, (name, reach)) in hosts.agents().iter().enumerate() {
        text +=
            &format!("  {name}:\n    command: {reach}\n    address: {}\n    tags: [rack]\n", address(host));
    }
    std::fs::write(&inventory, text).expect("a file");
    // By the tag of the inventory, which has their addresses.
    let words = ["endpoint", "tcp-rr", "@rack", "--mesh", "-d", "1s", "--json", "--inventory", &inventory];
    let mut test = start(command(&words, &[]));
    test.until_it_says("round 3 of 6");
    test.signal("INT");
    let result = test.wait().with(1).json();
    adds_up(&result);
    let of = mesh(&result);
    assert!(number(&of["done"]) >= 2 && number(&of["not_begun"]) >= 3, "{of}");
    assert!(reasons(&result).iter().any(|said| said.contains("stopped before its time was over")), "{of}");
    hosts.no_server_is_left();
}
