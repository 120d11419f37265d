//! A clone as one job of agents on several hosts: the capture at the server's, the clone on a host of its own, the return agent at the
//! target's. What each counted is compared, whoever is lost is named, and the server's clients notice nothing.

use super::oracle::{self, Load, Server};
use super::steered::{Leaks, assert_clean, assert_no_sockets, clients_of};
use super::{LOAD, Three, assert_copied, cloned};
use crate::agents_send::{agent, command, of};
use crate::common::{Ran, Running, eventually, folder, handle, inside, number, reasons, start};
use ::lab::Namespace;
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Three hosts and one for the clone: 10.77.3.1 at the server's, 10.77.3.2 and 10.77.4.1 its own, 10.77.4.2 at the target's.
struct Four {
    three: Three,
    copies: Namespace,
}

impl Four {
    fn new() -> Four {
        let four = Four { three: super::steered::leaky(), copies: Namespace::new().expect("a host") };
        let (three, copies) = (&four.three, handle(&four.copies));
        three.ip(&three.online, &format!("link add o3 type veth peer name e0 netns {copies}"));
        three.ip(&three.target, &format!("link add t3 type veth peer name e1 netns {copies}"));
        for (namespace, interface, address) in [
            (&three.online, "o3", "10.77.3.1/24"),
            (&four.copies, "e0", "10.77.3.2/24"),
            (&four.copies, "e1", "10.77.4.1/24"),
            (&three.target, "t3", "10.77.4.2/24"),
        ] {
            three.ip(namespace, &format!("address add {address} dev {interface}"));
            three.ip(namespace, &format!("link set {interface} up"));
        }
        three.ip(&four.copies, "link set lo up");
        // The clone finds its way to the server by the link that it shares with its host.
        three.ip(&four.copies, "route add 10.77.1.0/24 via 10.77.3.1");
        four
    }

    /// Each grants its own part alone.
    fn agents(&self) -> Vec<(&'static str, String)> {
        let three = &self.three;
        let copy = "--allow-kind clone --allow-listen 10.77.3.2:7117 --allow-address 10.77.4.2:80";
        vec![
            (
                "prod",
                agent(
                    &three.online,
                    "--allow-kind clone-capture --allow-interface o0 --allow-address 10.77.3.2:7117",
                ),
            ),
            ("copy", agent(&self.copies, copy)),
            (
                "dut",
                agent(
                    &three.target,
                    "--allow-kind clone-return --allow-interface t3 --allow-address 10.77.4.1",
                ),
            ),
        ]
    }

    fn begin(&self, words: &[&str], agents: &[(&str, String)]) -> Running {
        let mut running = start(command(words, agents));
        running.until_it_says("prod: forwarding: sessions of port 80");
        running
    }

    fn servers(&self) -> [Server; 2] {
        self.three.servers(128)
    }

    fn nothing_is_left(&self) {
        assert_clean(&self.three);
        assert_no_sockets(&self.three);
        for host in [&self.three.online, &self.copies] {
            let links = start(inside(host, "ip -o link show")).wait().ok().stdout;
            assert!(!links.contains("vxlan") && !links.contains("netdyno"), "{links}");
            let listen = start(inside(host, "ss -Htln sport = 7117")).wait().ok().stdout;
            assert!(listen.trim().is_empty(), "{listen}");
        }
    }
}

const FROM: &str = "o0@prod:10.77.1.1:80";
const WHOLE: [&str; 9] =
    ["clone", "--from", FROM, "--to", "10.77.4.2:80@dut", "--client-addresses", "--at", "copy", "--json"];

fn ended(running: Running) -> (Ran, Value) {
    std::thread::sleep(Duration::from_millis(500));
    running.signal("INT");
    let ran = running.wait();
    let report = ran.json();
    (ran, report)
}

fn is_copied(target: &Server, requests: u64) {
    eventually("all is copied", || target.requests.load(Relaxed) >= requests);
}

#[test]
fn capture_clone_and_return_are_one_job_whose_counts_agree() {
    let (four, dir) = (Four::new(), folder());
    let [online, target] = four.servers();
    let leaks = Leaks::watch(&four.three, &dir);
    let running = four.begin(&WHOLE, &four.agents());
    oracle::run(&four.three.clients, "10.77.1.1:80", LOAD);
    is_copied(&target, LOAD.requests);
    let (ran, report) = ended(running);
    ran.ok();
    let (online, target) = (online.seen(), target.seen());
    assert_copied(&report, &online, &target, 1);
    assert_eq!(clients_of(&target), clients_of(&online), "each copy has its client's address");
    let sessions = online.connections.len() as u64;
    let forwarded = &report["result"]["forwarded"];
    assert_eq!(number(&forwarded["sessions"]["forwarded"]), sessions, "{forwarded}");
    assert_eq!(number(&forwarded["arrived_sessions"]), sessions, "{forwarded}");
    assert_eq!(number(&forwarded["frames"]), number(&cloned(&report)["frames"]["captured"]));
    let returned = &report["result"]["returned"];
    // One more is tried before the first copy.
    assert_eq!(number(&returned["connections"]), sessions + 1, "{returned}");
    assert!(number(&returned["steered_packets"]) > sessions);
    for (name, section) in [("prod", "forwarded"), ("copy", "cloned"), ("dut", "returned")] {
        let row = of(&report, name);
        assert!(row["error"].is_null() && row["report"]["result"][section].is_object(), "{row}");
    }
    assert_eq!(report["requested"]["on"], "o0@prod", "it can be run again");
    assert_eq!(report["requested_at"], "copy", "and copies where it did");
    leaks.none();
    four.nothing_is_left();
}

#[test]
fn a_duration_ends_all_parts_and_a_share_is_chosen_where_it_is_captured() {
    let four = Four::new();
    let [online, target] = four.servers();
    let words = [
        &["clone", "--from", FROM, "--to", "10.77.4.2:80", "--at", "10.77.3.2@copy", "--json"][..],
        &["--duration", "4s", "--sample", "50%", "--seed", "7"],
    ];
    let running = four.begin(&words.concat(), &four.agents());
    oracle::run(&four.three.clients, "10.77.1.1:80", Load { connections: 60, ..LOAD });
    let ran = running.wait().ok();
    let report = ran.json();
    let (online, target) = (online.seen(), target.seen());
    let forwarded = &report["result"]["forwarded"]["sessions"];
    let (chosen, left) = (number(&forwarded["forwarded"]), number(&forwarded["sampled_out"]));
    assert_eq!(chosen + left, online.connections.len() as u64, "{forwarded}");
    assert!(chosen > 10 && left > 10, "{forwarded}");
    assert_eq!(target.connections.len() as u64, chosen);
    assert_eq!(number(&report["resolved"]["duration_ns"]), 4_000_000_000);
    assert_eq!(number(&cloned(&report)["sessions"]["sampled_out"]), left, "the clone was told of them");
    // Once more: where it was captured nothing is copied then either.
    let dir = folder();
    let path = dir.path().join("result.json");
    std::fs::write(&path, &ran.stdout).expect("a file");
    let path = path.display().to_string();
    let words = ["rerun", &path, "--allow-address", "10.77.4.2:80", "--json"];
    start(command(&words, &[])).wait().refused(&["--at 10.77.3.2@copy", "--agent"]);
    let _servers = four.servers();
    let again = start(command(&words, &four.agents())).wait().json();
    assert_eq!(again["requested_at"], "10.77.3.2@copy");
    for (name, kind) in [("prod", "clone capture"), ("copy", "clone")] {
        assert_eq!(of(&again, name)["report"]["command"], kind, "{again}");
    }
    four.nothing_is_left();
}

#[test]
fn a_part_that_is_refused_ends_all_before_anything_is_copied() {
    let four = Four::new();
    let [_online, target] = four.servers();
    let refused = |words: &[&str], agents: &[(&str, String)], says: &[&str]| {
        start(command(words, agents)).wait().refused(says);
    };
    let mut agents = four.agents();
    // Whoever grants an interface has not granted that its server's clients are captured.
    agents[0].1 = agent(&four.three.online, "--allow-interface o0 --allow-address 10.77.3.2:7117");
    refused(&WHOLE, &agents, &["prod", "clone-capture is not granted", "--allow-kind clone-capture"]);
    let mut agents = four.agents();
    agents[2].1 = agent(&four.three.target, "--allow-kind measure --allow-interface t3");
    refused(&WHOLE, &agents, &["dut", "clone-return is not granted"]);
    let mut agents = four.agents();
    agents[2].1 =
        agent(&four.three.target, "--allow-kind clone-return --allow-interface t0 --allow-interface t3");
    refused(&WHOLE, &agents, &["dut: 2 interfaces might have its return agent", "inventory"]);
    // Nor is a host let in as a clone because a job says so.
    let mut agents = four.agents();
    agents[2].1 = agent(&four.three.target, "--allow-kind clone-return --allow-interface t3");
    refused(&WHOLE, &agents, &["dut", "10.77.4.1 is not granted", "--allow-address '10.77.4.1'"]);
    // A target's only interface is used by who starts its agent, not by who sends it a job.
    four.three.ip(&four.three.target, "route add default via 10.77.4.1 dev t3 metric 500");
    refused(&WHOLE, &four.agents(), &["dut", "default route", "--yes-disrupt t3"]);
    four.three.ip(&four.three.target, "route del default via 10.77.4.1 dev t3 metric 500");
    let mut agents = four.agents();
    agents[1].1 = agent(&four.copies, "--allow-listen 10.77.3.2:7117");
    refused(&WHOLE, &agents, &["copy", "10.77.4.2:80 is not granted", "--allow-address"]);
    let of = |words: &[&'static str]| [&["clone", "--from", FROM], words].concat();
    let agents = four.agents();
    let plain = of(&["--to", "10.77.4.2:80@dut", "--at", "copy"]);
    refused(&plain, &agents, &["--to", "--client-addresses", "leave out @AGENT"]);
    refused(&of(&["--to", "10.77.4.2:80@nobody", "--at", "copy"]), &agents, &["no agent `nobody`", "prod"]);
    let nowhere = ["clone", "--from", "o0@prod:80", "--to", "10.77.4.2:80", "--at", "copy"];
    refused(&nowhere, &agents, &["--at", "ADDRESS@AGENT"]);
    // The server itself may not be the target, whoever copies.
    let own = of(&["--to", "10.77.1.1:80", "--at", "copy"]);
    let mut lenient = four.agents();
    lenient[1].1 = agent(&four.copies, "--allow-listen 10.77.3.2:7117 --allow-address 10.77.*");
    refused(&own, &lenient, &["is the server"]);
    assert_eq!(target.seen().connections.iter().filter(|(_, ids)| !ids.is_empty()).count(), 0);
    four.nothing_is_left();
}

#[test]
fn an_agent_that_is_lost_ends_the_clone_in_order_and_what_is_known_is_said() {
    for lost in ["prod", "copy", "dut"] {
        let four = Four::new();
        let [online, target] = four.servers();
        let running = four.begin(&WHOLE, &four.agents());
        let first = Load { connections: 10, requests: 200, ..LOAD };
        oracle::run(&four.three.clients, "10.77.1.1:80", first);
        is_copied(&target, 200);
        let host = match lost {
            "prod" => &four.three.online,
            "copy" => &four.copies,
            _ => &four.three.target,
        };
        let inode = start(inside(host, "readlink /proc/self/ns/net")).wait().ok().stdout;
        let kill = format!(
            "for p in /proc/[0-9]*; do [ \"$(readlink $p/ns/net)\" = '{}' ] && [ \"$(basename $(readlink $p/exe))\" = netdyno ] && \
             grep -qz -- --stdio $p/cmdline && kill -9 ${{p#/proc/}}; done; true",
            inode.trim()
        );
        let mut bash = inside(host, "bash -c");
        bash.arg(&kill);
        start(bash).wait().ok();
        // It ends by itself.
        let ran = running.wait();
        let report = ran.json();
        let said = reasons(&report).join("\n");
        assert!(said.contains(&format!("{lost} was lost")), "{lost}: {said}");
        assert_eq!(ran.status, 1, "{lost}: {said}");
        assert!(of(&report, lost)["error"].is_string() && of(&report, lost)["report"].is_null());
        let others: Vec<&str> = ["prod", "copy", "dut"].into_iter().filter(|name| *name != lost).collect();
        for name in &others {
            assert!(of(&report, name)["report"].is_object(), "{lost}: {name} has told");
        }
        if lost != "copy" {
            assert_eq!(number(&cloned(&report)["answers"]["compared"]), 200, "{lost}: {said}");
        }
        // Production goes on as before.
        oracle::run(&four.three.clients, "10.77.1.1:80", first);
        let online = online.seen();
        assert_eq!((online.bad, online.counts().values().sum::<u64>()), (0, 400), "{lost}");
        if lost == "dut" {
            // The second process takes away what the first one left.
            eventually("nothing is left", || {
                let said = start(inside(host, "tc filter show dev t3 ingress")).wait().ok().stdout;
                !said.contains("bpf")
            });
        }
        four.nothing_is_left();
    }
}
