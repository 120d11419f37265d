//! Captures on another host: the server's host only captures and forwards (`netdyno clone capture`), the clone runs on the target's. The
//! oracle says what is true, whatever happens to either of them or to the way between them.

use super::oracle::{self, Load, Seen};
use super::{LOAD, Three, assert_copied, cloned, ended};
use crate::common::{Folder, Ran, Running, eventually, folder, inside, path, reasons, run, start};
use serde_json::Value;
use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A count; it is left out where there is nothing to count.
fn number(value: &Value) -> u64 {
    if value.is_null() { 0 } else { crate::common::number(value) }
}

fn key(dir: &Folder, name: &str) -> String {
    let file = path(dir, name);
    run(format!("netdyno clone key {file}")).ok();
    file
}

impl Three {
    /// A clone on the target's host that waits for captures.
    fn listening(&self, key: &str, words: &str) -> Running {
        let line = format!(
            "netdyno clone --listen 10.77.2.2:7117 --key {key} --server 80 --to 10.77.2.2:80 --json {words}"
        );
        let mut clone = start(inside(&self.target, &line));
        clone.until_it_says("Ctrl-C ends");
        clone
    }

    /// The line of a capture on the server's host.
    fn line(key: &str, words: &str) -> String {
        format!("netdyno clone capture --from o0:80 --send-to 10.77.2.2:7117 --key {key} --json {words}")
    }

    fn agent(&self, key: &str, words: &str) -> Running {
        let mut agent = start(inside(&self.online, &Three::line(key, words)));
        agent.until_it_says("Ctrl-C ends");
        agent
    }

    /// Runs clients beside whatever else is done.
    fn beside<T>(&self, to: &str, load: Load, meanwhile: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            let clients = scope.spawn(|| oracle::run(&self.clients, to, load));
            let done = meanwhile();
            clients.join().expect("clients that were served");
            done
        })
    }
}

/// Ends an agent in an orderly way: its result.
fn stopped(agent: Running) -> (Ran, Value) {
    std::thread::sleep(Duration::from_millis(300));
    agent.signal("INT");
    let ran = agent.wait();
    let forwarded = ran.json()["result"]["forwarded"].clone();
    (ran, forwarded)
}

/// No copy is anything else than its session's beginning, and what lacks something was counted. How many lack something.
#[track_caller]
fn assert_prefixes(report: &Value, online: &Seen, target: &Seen) -> u64 {
    let c = cloned(report);
    assert!(c["contradictions"].is_null(), "{report}");
    assert_eq!(online.bad, 0, "the originals were touched");
    let mut lacking = 0;
    for (_, ids) in &online.connections {
        let mut copies = target.connections.iter().filter(|(_, of)| of[0] == ids[0]);
        let Some((_, copy)) = copies.next() else { continue };
        assert!(copies.next().is_none(), "a session was copied twice");
        assert!(ids.starts_with(copy), "{} requests are not the beginning of their session", copy.len());
        lacking += u64::from(copy.len() < ids.len());
    }
    assert_eq!(number(&c["sent"]["sent"]), target.bytes, "bytes that were said");
    lacking
}

#[test]
fn every_request_is_copied_once_by_a_clone_on_another_host() {
    let dir = folder();
    let key = key(&dir, "key");
    for (load, words, to) in [
        (LOAD, "", "10.77.1.1:80"),
        (
            Load { connections: 8, requests: 600, per_second: 1500, body: 0, short: true },
            "--threads 2",
            "10.77.1.1:80",
        ),
        (
            Load { connections: 6, requests: 120, per_second: 300, body: 60_000, short: false },
            "--threads 2",
            "10.77.1.1:80",
        ),
        (Load { requests: 400, ..LOAD }, "--pace causal", "[fd77:1::1]:80"),
    ] {
        let three = Three::new();
        let [online, target] = three.servers(2000);
        let clone = three.listening(&key, words);
        let agent = three.agent(&key, "");
        oracle::run(&three.clients, to, load);
        let (ran, forwarded) = stopped(agent);
        ran.ok();
        let (_, report) = ended(clone);
        let (online, target) = (online.seen(), target.seen());
        assert_copied(&report, &online, &target, 1);
        let sessions = &forwarded["sessions"];
        assert_eq!(number(&sessions["forwarded"]), online.connections.len() as u64, "{forwarded}");
        assert_eq!(number(&forwarded["frames"]), number(&cloned(&report)["frames"]["captured"]));
        assert_eq!(number(&forwarded["connections"]), 1);
        assert!(number(&cloned(&report)["answers"]["delay_ns"]["p50"]) > 0);
    }
}

#[test]
fn who_has_not_the_key_is_refused_by_both_ends_and_nothing_is_copied() {
    let (three, dir) = (Three::new(), folder());
    let [online, target] = three.servers(128);
    let [ours, other] = [key(&dir, "ours"), key(&dir, "other")];
    let refused = |line: String, words: &[&str]| {
        start(inside(&three.online, &line)).wait().refused(words);
    };
    refused(Three::line(&ours, ""), &["--send-to 10.77.2.2:7117", "Connection refused", "nothing was begun"]);
    let mut clone = three.listening(&ours, "");
    refused(Three::line(&other, ""), &["has another key", "--key", "nothing was begun"]);
    clone.until_it_says("was refused: the other end has another key");
    let line = Three::line(&ours, "").replace("o0:80", "o0:81");
    refused(line, &["it captures port 81, the clone copies port 80"]);
    clone.until_it_says("it captures port 81, the clone copies port 80");
    run(format!("chmod 640 {other}")).ok();
    refused(Three::line(&other, ""), &["others than its owner", "chmod 600"]);
    run(format!("netdyno clone key {other}")).refused(&["never over one"]);
    run("netdyno clone --listen 127.0.0.1:7117 --server 80 --to 127.0.0.1:80").with(2).says(&["--key"]);
    // Who says anything else than a greeting hears nothing and costs nothing.
    for said in ["GET / HTTP/1.1\\r\\n\\r\\n", "\\x00\\x30", "\\xff\\xff", ""] {
        let line = format!("printf '{said}' > /dev/tcp/10.77.2.2/7117");
        let mut bash = inside(&three.online, "bash -c");
        bash.arg(&line);
        start(bash).wait().ok();
    }
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    let (ran, report) = ended(clone);
    ran.with(1);
    let c = cloned(&report);
    assert_eq!((number(&c["frames"]["captured"]), number(&c["sessions"]["seen"])), (0, 0), "{report}");
    assert!(reasons(&report)[0].contains("netdyno clone capture"), "{:?}", reasons(&report));
    assert_eq!((online.seen().counts().len(), target.seen().connections.len()), (200, 0));
}

/// Strangers hold more connections than there are seats, say random bytes and half of a greeting, and come and go by the thousand: the one with
/// the key is let in meanwhile, and all others are counted.
#[test]
fn strangers_at_the_port_of_captures_are_bounded_and_counted_and_shut_nobody_out() {
    let (three, dir) = (Three::new(), folder());
    let key = key(&dir, "key");
    let [online, target] = three.servers(2000);
    let clone = three.listening(&key, "");
    let pid = clone.pid();
    let connect = || std::net::TcpStream::connect("10.77.2.2:7117").expect("it listens");
    let held = three.online.run_in(|| {
        let noise: Vec<u8> = (0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let said = [&[][..], &noise[..], &noise[..3], &[0, 0, 0, 40, 1, 2, 3], &[0xff; 64]];
        for number in 0..2000 {
            let _ = connect().write_all(said[number % said.len()]);
        }
        (0..100).map(|_| connect()).collect::<Vec<_>>()
    });
    let held = held.expect("a namespace");
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").count();
    assert!(threads < 64, "{threads} threads");
    let agent = three.agent(&key, "");
    oracle::run(&three.clients, "10.77.1.1:80", LOAD);
    drop(held);
    stopped(agent).0.ok();
    let (_, report) = ended(clone);
    assert_copied(&report, &online.seen(), &target.seen(), 1);
    assert_eq!(number(&cloned(&report)["turned_away"]), 2100, "{report}");
    assert!(
        report["warnings"].to_string().contains("2,100 connections to 10.77.2.2:7117 were not let in"),
        "{report}"
    );
}

#[test]
fn who_listens_in_between_reads_nothing_of_what_is_copied() {
    let (three, dir) = (Three::new(), folder());
    let key = key(&dir, "key");
    let [online, target] = three.servers(128);
    let file = path(&dir, "between.pcap");
    let mut tcpdump = start(inside(
        &three.online,
        &format!("tcpdump -Z root -n -U --immediate-mode -s 0 -B 16384 -i o1 -w {file}"),
    ));
    tcpdump.until_it_says("listening on");
    let clone = three.listening(&key, "");
    let agent = three.agent(&key, "");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 400, ..LOAD });
    let (_, forwarded) = stopped(agent);
    let (_, report) = ended(clone);
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    let (online, target) = (online.seen(), target.seen());
    assert_copied(&report, &online, &target, 1);
    let seen = std::fs::read(&file).expect("a capture");
    assert!(seen.len() as u64 > online.bytes && number(&forwarded["sent_bytes"]) > online.bytes);
    for plain in [&b"GET /"[..], b"Host: oracle", b"HTTP/1.1"] {
        assert!(!seen.windows(plain.len()).any(|part| part == plain), "{}", plain.escape_ascii());
    }
}

#[test]
fn a_clone_that_is_killed_and_started_again_costs_clients_nothing_and_has_new_sessions() {
    let (three, dir) = (Three::new(), folder());
    let key = key(&dir, "key");
    let [online, target] = three.servers(128);
    let first = three.listening(&key, "");
    let mut agent = three.agent(&key, "");
    let load = Load { connections: 20, requests: 3000, per_second: 2000, ..LOAD };
    three.beside("10.77.1.1:80", load, || {
        eventually("some are copied", || target.requests.load(Relaxed) > 100);
        first.signal("KILL");
        drop(first.wait());
        agent.until_it_says("is gone");
    });
    let before = target.requests.load(Relaxed);
    assert!(before < 3000);
    // There is nobody.
    oracle::run(&three.clients, "10.77.1.1:80", Load { connections: 5, requests: 50, ..LOAD });
    let second = three.listening(&key, "");
    agent.until_it_says("connected to 10.77.2.2:7117 again");
    oracle::run(&three.clients, "10.77.1.1:80", Load { connections: 30, requests: 600, ..LOAD });
    let (ran, forwarded) = stopped(agent);
    ran.with(1);
    let (_, report) = ended(second);
    let (online, target) = (online.seen(), target.seen());
    assert_eq!((online.bad, target.bad, online.connections.len()), (0, 0, 55));
    let s = &forwarded["sessions"];
    assert_eq!(
        (number(&s["forwarded"]), number(&s["lost"]), number(&s["over_link"])),
        (50, 20, 5),
        "{forwarded}"
    );
    // The second clone tells of what was since it is there.
    assert!(reasons(&report).is_empty(), "{report}");
    let c = cloned(&report);
    assert_eq!(
        (number(&c["sessions"]["copied"]), number(&c["sessions"]["unforwarded"])),
        (30, 0),
        "{report}"
    );
    assert_eq!(number(&c["answers"]["same"]), 600);
    assert!(number(&c["frames"]["captured"]) < number(&forwarded["frames"]));
    assert_eq!(target.disordered(), 0);
}

#[test]
fn an_agent_that_is_killed_or_falls_silent_is_told_and_its_sessions_end_as_they_stand() {
    for (signal, said) in [("KILL", "it closed its connection"), ("STOP", "it says nothing any more")] {
        let (three, dir) = (Three::new(), folder());
        let key = key(&dir, "key");
        let [online, target] = three.servers(128);
        let mut clone = three.listening(&key, "");
        let mut agent = three.agent(&key, "");
        let load = Load { connections: 20, requests: 3000, per_second: 1000, ..LOAD };
        three.beside("10.77.1.1:80", load, || {
            eventually("some are copied", || target.requests.load(Relaxed) > 500);
            agent.signal(signal);
            clone.until_it_says(said);
            assert!(clone.said().contains("its sessions end here"), "{}", clone.said());
        });
        // Its clone waits, and takes it or another one.
        let agent = match signal {
            "KILL" => {
                drop(agent.wait());
                three.agent(&key, "")
            }
            _ => {
                agent.signal("CONT");
                agent.until_it_says("connected to 10.77.2.2:7117 again");
                agent
            }
        };
        oracle::run(&three.clients, "10.77.1.1:80", Load { connections: 30, requests: 600, ..LOAD });
        stopped(agent);
        let (ran, report) = ended(clone);
        ran.with(1);
        let (online, target) = (online.seen(), target.seen());
        assert_eq!((online.bad, target.bad, target.disordered()), (0, 0, 0));
        let c = cloned(&report);
        assert!(c["contradictions"].is_null(), "{report}");
        assert_eq!(
            (number(&c["sessions"]["copied"]), number(&c["sessions"]["unforwarded"])),
            (50, 20),
            "{report}"
        );
        assert_eq!(target.connections.len(), 50);
        let copied: usize = target.connections.iter().map(|(_, ids)| ids.len()).sum();
        assert!((1100..3600).contains(&copied), "{copied}");
        assert_eq!(number(&c["sent"]["sent"]), target.bytes);
        assert!(number(&c["frames"]["captured"]) > 0);
        let said = reasons(&report).join("\n");
        assert!(said.contains("20 sessions were copied up to where the capture"), "{said}");
    }
}

#[test]
fn a_way_that_is_choked_sheds_whole_sessions_and_clients_notice_nothing() {
    for stops in [true, false] {
        let (three, dir) = (Three::new(), folder());
        let key = key(&dir, "key");
        let [online, target] = three.servers(128);
        if !stops {
            three.ip(&three.online, "link set o1 up");
            start(inside(&three.online, "tc qdisc add dev o1 root tbf rate 20mbit burst 64kb limit 300kb"))
                .wait()
                .ok();
        }
        let clone = three.listening(&key, "");
        let agent = three.agent(&key, "");
        // More than the queue and both sockets hold.
        let load = Load { connections: 16, requests: 1600, per_second: 600, body: 60_000, short: false };
        if stops {
            clone.signal("STOP");
        }
        oracle::run(&three.clients, "10.77.1.1:80", load);
        if stops {
            clone.signal("CONT");
        } else {
            start(inside(&three.online, "tc qdisc del dev o1 root")).wait().ok();
        }
        // What waits is sent, and then there is room again.
        std::thread::sleep(Duration::from_millis(1500));
        let before = target.requests.load(Relaxed);
        let small = Load { connections: 40, requests: 400, per_second: 2000, body: 0, short: false };
        oracle::run(&three.clients, "[fd77:1::1]:80", small);
        eventually("new sessions are copied", || target.requests.load(Relaxed) >= before + 400);
        let (ran, forwarded) = stopped(agent);
        ran.with(1);
        let (ran, report) = ended(clone);
        ran.with(1);
        let (online, target) = (online.seen(), target.seen());
        let s = &cloned(&report)["sessions"];
        let f = &forwarded["sessions"];
        let shed = number(&f["shed"]);
        assert!(shed > 0, "nothing was shed: {forwarded}");
        let gone = shed + number(&f["lost"]);
        let whole = number(&forwarded["connections"]) == 1;
        if whole {
            assert_eq!(gone, number(&s["unforwarded"]), "{forwarded}\n{report}");
            assert_eq!(number(&f["forwarded"]), number(&s["copied"]));
            assert_eq!(number(&s["copied"]) + number(&f["over_link"]), online.connections.len() as u64);
        } else {
            // On a busy machine the one that stopped is given up, and what was on its way to it with it: sessions that were shed.
            assert!(
                gone >= number(&s["unforwarded"]) && number(&forwarded["lost_bytes"]) > 0,
                "{forwarded}\n{report}"
            );
            assert!(number(&f["forwarded"]) - number(&s["copied"]) <= shed, "{forwarded}\n{report}");
        }
        assert_eq!(number(&forwarded["dropped_frames"]), 0, "the ring was not read");
        // Of the first load's sessions each is a beginning of what its client said.
        let c = cloned(&report);
        assert!(c["contradictions"].is_null(), "{report}");
        assert_eq!(online.bad, 0, "the originals were touched");
        assert_eq!(target.disordered(), 0, "a copy is not its session's beginning");
        assert_eq!(number(&c["sent"]["sent"]), target.bytes, "bytes that were said");
        // A session that was given up ends within a request, and in no other way is a request bad.
        assert!(target.bad <= number(&s["unforwarded"]), "{} {report}", target.bad);
        assert!(number(&s["gaps"]) + number(&s["missed"]) + number(&s["truncated"]) == 0, "{report}");
    }
}

#[test]
fn shares_and_a_flood_of_syns_cost_the_way_nothing() {
    let (three, dir) = (Three::new(), folder());
    let key = key(&dir, "key");
    let [online, target] = three.servers(128);
    let clone = three.listening(&key, "");
    let agent = three.agent(&key, "--sample 50% --seed 7");
    let link = start(inside(&three.online, "ip -br link show o0")).wait().ok().stdout;
    let mac = link.split_whitespace().nth(2).expect("an address");
    let flood = format!(
        "netdyno send eth(dst={})/ipv4(src=random(10.88.0.0/16),dst=10.77.1.1)/tcp(sport=random(1024..65535),dport=80,flags=S) \
         --on c0 --rate 20kpps --count 20000 --json",
        mac
    );
    start(inside(&three.clients, &flood)).wait().result();
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 400, ..LOAD });
    let (ran, forwarded) = stopped(agent);
    ran.ok();
    let (ran, report) = ended(clone);
    ran.ok();
    let (online, target) = (online.seen(), target.seen());
    let (f, s) = (&forwarded["sessions"], &cloned(&report)["sessions"]);
    assert!(number(&f["half_open"]) + number(&f["refused"]) > 15_000, "{forwarded}");
    // Bytes of the flood would be half a megabyte.
    assert!(number(&forwarded["sent_bytes"]) < 300_000, "{forwarded}");
    assert_eq!(number(&f["forwarded"]) + number(&f["sampled_out"]), 40);
    assert_eq!(
        (number(&s["copied"]), number(&s["sampled_out"])),
        (number(&f["forwarded"]), number(&f["sampled_out"]))
    );
    assert_eq!(number(&s["half_open"]), number(&f["half_open"]));
    assert!((5..36).contains(&target.connections.len()), "{}", target.connections.len());
    assert_eq!(assert_prefixes(&report, &online, &target), 0);
}

#[test]
fn a_clone_whose_target_is_the_captured_server_gets_nothing() {
    let dir = folder();
    let key = key(&dir, "key");
    let three = Three::new();
    let [online, _target] = three.servers(128);
    let line =
        format!("netdyno clone --listen 10.77.2.2:7117 --key {key} --server 80 --to 10.77.2.1:80 --json");
    let mut clone = start(inside(&three.target, &line));
    clone.until_it_says("Ctrl-C ends");
    start(inside(&three.online, &Three::line(&key, ""))).wait().refused(&[
        "--send-to",
        "its target 10.77.2.1:80 is the server that is captured here",
        "nothing was begun",
    ]);
    clone.until_it_says("is the server that is captured here");
    clone.signal("INT");
    clone.wait();
    assert_eq!(online.seen().counts().len(), 0);
}
