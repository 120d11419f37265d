//! What a clone may take and do, and how it is ended by a file; packets in pieces; a second target that tells noise; floods; its screen.

use super::oracle::{self, Load, Server};
use super::{LOAD, Three, assert_copied, cloned, ended};
use crate::common::{eventually, folder, inside, number, path, reasons, start};
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What tcpdump takes of a load at the server's interface.
fn captured(three: &Three, file: &str, load: Load) -> oracle::Seen {
    let online = Server::start(&three.online, "[::]:80", 128);
    let line = format!("tcpdump -Z root -n -U --immediate-mode -B 16384 -s 0 -i o0 -w {file} tcp port 80");
    let mut tcpdump = start(inside(&three.online, &line));
    tcpdump.until_it_says("listening on");
    oracle::run(&three.clients, "10.77.1.1:80", load);
    std::thread::sleep(Duration::from_millis(300));
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    online.seen()
}

#[test]
fn fragments_are_put_together_in_any_order_and_what_lacks_one_is_told() {
    let (three, dir) = (Three::new(), folder());
    let [whole, pieces, rules] = ["whole.pcap", "pieces.pcap", "rules"].map(|name| path(&dir, name));
    let seen = captured(
        &three,
        &whole,
        Load { connections: 10, requests: 100, per_second: 500, body: 1000, ..LOAD },
    );
    // Of segments of 1,000 bytes four pieces each, the last one first; small ones are a piece or two.
    std::fs::write(&rules, "ip_frag 264\norder reverse\n").expect("a file");
    start(crate::common::command(format!("netdyno edit {whole} --fragroute {rules} -w {pieces}")))
        .wait()
        .ok();
    let captured = crate::common::frames(&pieces);
    let in_pieces = captured.iter().filter(|frame| frame[20] & 0x3f != 0 || frame[21] != 0).count() as u64;
    assert!(in_pieces > 300, "{in_pieces}");
    let target = Server::start(&three.target, "[::]:80", 128);
    let line = |file: &str| format!("netdyno clone {file} --server 10.77.1.1:80 --to 10.77.2.2:80 --json");
    let report = start(inside(&three.online, line(&pieces).as_str())).wait().ok().json();
    assert_copied(&report, &seen, &target.seen(), 1);
    let frames = &cloned(&report)["frames"];
    assert_eq!((number(&frames["captured"]), number(&frames["fragments"])), (captured.len() as u64, 0));
    assert!((in_pieces / 2..in_pieces).contains(&number(&frames["joined"])), "{frames}");

    // A first piece alone.
    let lone = path(&dir, "lone.pcap");
    let first = captured.iter().find(|frame| frame[20] & 0x20 != 0).expect("a piece that is not the last");
    crate::common::write_pcap(&lone, 1, std::slice::from_ref(first));
    let _target = Server::start(&three.target, "[::]:80", 128);
    let report = start(inside(&three.online, line(&lone).as_str())).wait().json();
    let frames = &cloned(&report)["frames"];
    assert_eq!((number(&frames["captured"]), number(&frames["fragments"])), (1, 1), "{report}");
    assert!(report.to_string().contains("of which others were never captured"), "{report}");
}

#[test]
fn a_second_target_tells_which_differences_are_noise() {
    let three = Three::new();
    // Each of them has another size, the second one at a port of its own.
    let online = Server::start(&three.online, "[::]:80", 128);
    let [target, second] =
        [80, 81].map(|port| Server::start(&three.target, &format!("[::]:{port}"), 128 + port));
    let clone = three.clone("--noise-target 10.77.2.2:81 --copies 2");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    let (ran, report) = ended(clone);
    ran.with(0);
    let (online, target, second) = (online.seen(), target.seen(), second.seen());
    let wanted = online.counts();
    // The second one has each session once.
    assert_eq!((wanted.len(), second.bad, second.disordered()), (200, 0, 0));
    assert_eq!(second.counts(), wanted);
    assert!(target.counts().values().all(|count| *count == 2));
    let c = cloned(&report);
    let first = &c["answers"]["differences"][0];
    assert_eq!((number(&first["count"]), number(&first["noise"])), (200, 200), "{first}");
    let noise = &c["noise"];
    assert_eq!(noise["target"].as_str(), Some("10.77.2.2:81"));
    assert_eq!(
        (number(&noise["connections"]["connected"]), number(&noise["answers"]["sizes_differ"])),
        (40, 200)
    );
    assert_eq!(number(&noise["sent"]["sent"]), second.bytes);
    assert_eq!(number(&c["sent"]["sent"]), target.bytes);

    // One that is as the server: what differs is no noise. And one that goes away is told.
    let online = Server::start(&three.online, "[::]:80", 128);
    let [_target, second] = [(80, 200), (81, 128)]
        .map(|(port, answer)| Server::start(&three.target, &format!("[::]:{port}"), answer));
    let clone = three.clone("--noise-target 10.77.2.2:81");
    let load = Load { requests: 40, ..LOAD };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    eventually("the second target has all", || second.requests.load(Relaxed) == 40);
    drop(second.seen());
    oracle::run(&three.clients, "10.77.1.1:80", load);
    let (_, report) = ended(clone);
    let c = cloned(&report);
    let first = &c["answers"]["differences"][0];
    assert_eq!((number(&first["count"]), number(&first["noise"])), (80, 0), "{first}");
    assert!(report.to_string().contains("did not hear everything: 40 of 80 connections"), "{report}");
    assert!(c["contradictions"].is_null() && number(&c["connections"]["connected"]) == 80, "{report}");
    drop(online.seen());
    let refused = "netdyno clone --from o0:80 --to 10.77.2.2:80 --noise-target 10.77.2.2:80";
    start(inside(&three.online, refused)).wait().refused(&["--noise-target", "a server of its own"]);
    let refused = "netdyno clone --from o0:80 --to 10.77.2.2:80 --noise-target 8.8.8.8:80";
    start(inside(&three.online, refused)).wait().refused(&["8.8.8.8", "public address"]);
}

#[test]
fn above_a_ceiling_whole_sessions_are_left_out_and_given_up() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    // More than any process may have: after the first look nobody new is copied, and those that are become fewer.
    let clone = three.clone("--max-memory 1M");
    let load = Load { connections: 40, requests: 20_000, per_second: 5000, ..LOAD };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 80, ..load });
    let (ran, report) = ended(clone);
    ran.with(1);
    let (online, target) = (online.seen(), target.seen());
    let s = &cloned(&report)["sessions"];
    assert_eq!(number(&s["over_ceiling"]) + number(&s["copied"]), 80, "{s}");
    assert!(number(&s["over_ceiling"]) >= 40 && number(&s["shed"]) > 0, "{s}");
    assert_eq!((online.bad, online.connections.len()), (0, 80));
    // A copy is its session's beginning, and what was said is what came.
    for (_, ids) in &target.connections {
        assert!(online.connections.iter().any(|(_, of)| of.starts_with(ids)), "{ids:?}");
    }
    let c = cloned(&report);
    assert_eq!(number(&c["sent"]["sent"]), target.bytes);
    assert!(c["contradictions"].is_null(), "{report}");
    assert!(reasons(&report).join("\n").contains("were given up"), "{:?}", reasons(&report));
}

#[test]
fn a_file_ends_it_and_one_that_is_there_begins_nothing() {
    let (three, dir) = (Three::new(), folder());
    let [online, target] = three.servers(128);
    let file = path(&dir, "stop");
    let clone = three.clone(&format!("--stop-file {file}"));
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(&file, "").expect("a file");
    let report = clone.wait().with(0).json();
    assert_copied(&report, &online.seen(), &target.seen(), 1);
    assert!(report.to_string().contains(&format!("ended because there is a file {file}")), "{report}");
    let again = format!("netdyno clone --from o0:80 --to 10.77.2.2:80 --stop-file {file}");
    start(inside(&three.online, &again)).wait().refused(&["--stop-file", "remove it first"]);
}

#[test]
fn a_file_of_jobs_cannot_give_its_own_consent_to_a_public_target() {
    let (three, dir) = (Three::new(), folder());
    let file = path(&dir, "job.json");
    let job = json!({"schema": "netdyno.job/1", "kind": "clone", "on": "o0", "server": "80", "to": "8.8.8.8:80",
        "pace": "wallclock", "adopt": "syn-only", "public_target": true, "dry_run": true, "duration": "200ms"});
    std::fs::write(&file, job.to_string()).expect("a file");
    let run = |words: &str| start(inside(&three.online, &format!("netdyno run {file} {words}"))).wait();
    run("").refused(&["8.8.8.8:80", "--allow-public-target '8.8.8.8:80'"]);
    run("--allow-public-target 9.9.9.9:80").refused(&["8.8.8.8:80"]);
    // With it nothing is in the way, and a dry run says so. Nobody spoke there.
    run("--allow-public-target 8.8.8.8:80 --json").with(1).json();
}

#[test]
fn a_file_of_jobs_cannot_make_a_prefix_this_hosts_own() {
    let (three, dir) = (Three::new(), folder());
    let file = path(&dir, "job.json");
    let job = json!({"schema": "netdyno.job/1", "kind": "clone", "on": "o0", "server": "80", "to": "10.77.2.2:80",
        "pace": "wallclock", "adopt": "syn-only", "source_prefix": "10.99.0.0/16", "dry_run": true, "duration": "200ms"});
    std::fs::write(&file, job.to_string()).expect("a file");
    let run = |words: &str| start(inside(&three.online, &format!("netdyno run {file} {words}"))).wait();
    run("--allow-address 10.77.2.2:80").refused(&["10.99.0.0/16", "--allow-source-prefix '10.99.0.0/16'"]);
    run("--allow-source-prefix 10.99.0.0/16").refused(&["10.77.2.2:80", "--allow-address '10.77.2.2:80'"]);
    run("--allow-source-prefix 10.99.0.0/16 --allow-address 10.77.2.2:80 --json").with(1).json();
}

#[test]
fn a_flood_of_syns_costs_the_target_nothing_and_disturbs_no_session() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("");
    let what = "ether(dst=PEER)/ipv4(src=10.77.1.0/24,dst=10.77.1.1)/tcp(sport=1024..65000,dport=80,flags=S)";
    let flood = format!("netdyno send {what} --on c0 --rate 20kpps --count 30000 --quiet --json");
    let link = start(inside(&three.online, "ip -o link show o0")).wait().ok().stdout;
    let peer = link.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
    let sender = start(inside(&three.clients, &flood.replace("PEER", peer)));
    oracle::run(&three.clients, "10.77.1.1:80", LOAD);
    sender.wait().result();
    let (_, report) = ended(clone);
    let (online, target) = (online.seen(), target.seen());
    assert_copied(&report, &online, &target, 1);
    let c = cloned(&report);
    assert!(number(&c["frames"]["syns"]) >= 30_000 && number(&c["sessions"]["half_open"]) > 20_000, "{c}");
    assert_eq!(number(&c["connections"]["wanted"]), 40);
}
