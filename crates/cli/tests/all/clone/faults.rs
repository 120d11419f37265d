//! Clones when something goes wrong, or is unusual: ends of connections, sessions that were open before, targets that do not read or go
//! away, frames that are lost, floods, an interface that goes down, SIGKILL. The oracle's servers say what is true.

use super::oracle::{self, Load, Seen, Server, request};
use super::{LOAD, Three, assert_copied, cloned, ended};
use crate::common::{eventually, inside, number, reasons, start};
use ::lab::Namespace;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A server that speaks first, hears one connection to its end, and says what came and whether it ended with a reset.
fn speaks_first(namespace: &Namespace, connections: usize) -> std::thread::JoinHandle<Vec<(String, bool)>> {
    let namespace = namespace.try_clone().expect("a namespace");
    let (ready, listening) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        namespace.enter_current_thread().expect("a namespace");
        let listener = TcpListener::bind("[::]:80").expect("an address");
        ready.send(()).expect("somebody waits");
        let mut ends = Vec::new();
        // The canary's connection says nothing.
        while ends.len() < connections {
            let (mut socket, _) = listener.accept().expect("a connection");
            socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
            let _ = socket.write_all(b"220 ready\r\n");
            let (mut heard, mut buffer, mut reset) = (String::new(), [0; 1000], false);
            loop {
                match socket.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => heard.push_str(&String::from_utf8_lossy(&buffer[..count])),
                    Err(error) => {
                        reset = error.kind() == std::io::ErrorKind::ConnectionReset;
                        break;
                    }
                }
            }
            // Behind the client's FIN, the server may still speak.
            let _ = socket.write_all(b"221 bye\r\n");
            if !heard.is_empty() {
                ends.push((heard, reset));
            }
        }
        ends
    });
    listening.recv().expect("a server");
    thread
}

#[test]
fn who_speaks_first_half_closes_or_resets_is_the_same_at_the_target() {
    let three = Three::new();
    let [online, target] = [&three.online, &three.target].map(|namespace| speaks_first(namespace, 3));
    let clone = three.clone("");
    let heard = three.clients.run_in(|| {
        ["fin", "rst", "fin again"].map(|how| {
            let mut socket = TcpStream::connect("10.77.1.1:80").expect("a connection");
            let mut heard = [0; 11];
            socket.read_exact(&mut heard).expect("a greeting");
            socket.write_all(how.as_bytes()).expect("a socket");
            if how == "rst" {
                std::thread::sleep(Duration::from_millis(50));
                rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).expect("a socket");
                return String::new();
            }
            socket.shutdown(std::net::Shutdown::Write).expect("a socket");
            let mut rest = String::new();
            socket.read_to_string(&mut rest).expect("its end");
            rest
        })
    });
    assert_eq!(heard.expect("a namespace"), ["221 bye\r\n", "", "221 bye\r\n"]);
    let [online, target] = [online, target].map(|ends| ends.join().expect("a server"));
    assert_eq!(
        online,
        [("fin".to_owned(), false), ("rst".to_owned(), true), ("fin again".to_owned(), false)]
    );
    assert_eq!(online, target);
    let (_, report) = ended(clone);
    assert!(reasons(&report).is_empty(), "{:?}\n{report}", reasons(&report));
    assert_eq!(number(&cloned(&report)["sent"]["sent"]), 15);
}

/// Connections that said one request before the clone began, and say four more.
fn open_before(three: &Three, words: &str) -> (Seen, Seen, serde_json::Value) {
    let [online, target] = three.servers(128);
    let ask = |sockets: &mut Vec<TcpStream>, number: u64| {
        for (client, socket) in (0..).zip(sockets) {
            socket.write_all(&request(client << 24 | number, 0)).expect("a socket");
            let (mut answer, mut heard) = ([0; 1000], 0);
            while heard < 128 + 40 {
                heard += socket.read(&mut answer).expect("an answer");
            }
        }
        std::thread::sleep(Duration::from_millis(150));
    };
    let connect = || (0..3).map(|_| TcpStream::connect("10.77.1.1:80").expect("a connection")).collect();
    let mut sockets: Vec<TcpStream> = three.clients.run_in(connect).expect("a namespace");
    ask(&mut sockets, 0);
    let clone = three.clone(words);
    (1..5).for_each(|number| ask(&mut sockets, number));
    drop(sockets);
    let (_, report) = ended(clone);
    (online.seen(), target.seen(), report)
}

#[test]
fn sessions_that_were_open_are_adopted_as_the_policy_says() {
    for (words, first) in [
        ("--adopt syn-only", None),
        ("--adopt idle --idle-time 50ms", Some(2)),
        ("--adopt http-boundary", Some(1)),
    ] {
        let three = Three::new();
        let (online, target, report) = open_before(&three, words);
        assert_eq!((online.bad, target.bad), (0, 0));
        let wanted =
            |client: u64| first.map(|first| (first..5).map(|n| client << 24 | n).collect::<Vec<_>>());
        let mut came: Vec<Vec<u64>> = target.connections.into_iter().map(|(_, ids)| ids).collect();
        came.sort();
        assert_eq!(came, (0..3).filter_map(wanted).collect::<Vec<_>>(), "{words}");
        let sessions = &cloned(&report)["sessions"];
        let adopted = if first.is_some() { 3 } else { 0 };
        assert_eq!((number(&sessions["adopted"]), number(&sessions["midstream"])), (adopted, 3 - adopted));
    }
}

#[test]
fn a_target_that_does_not_read_one_connection_holds_up_no_other() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    target.holds.store(true, Relaxed);
    let clone = three.clone("");
    let load = Load { connections: 8, requests: 160, per_second: 200, body: 60_000, short: false };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    eventually("all others are served", || target.requests.load(Relaxed) >= 140);
    std::thread::sleep(Duration::from_millis(100));
    let before = target.requests.load(Relaxed);
    target.holds.store(false, Relaxed);
    eventually("the one is served, too", || target.requests.load(Relaxed) == 160);
    let (_, report) = ended(clone);
    assert!(before < 160, "nothing was held up: {before}");
    assert_copied(&report, &online.seen(), &target.seen(), 1);
}

#[test]
fn a_clone_that_did_not_run_for_long_copies_what_began_meanwhile() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("");
    clone.signal("STOP");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    // Longer than a connection may take to come about.
    std::thread::sleep(Duration::from_millis(5500));
    clone.signal("CONT");
    eventually("all is copied", || target.requests.load(Relaxed) == 200);
    let (_, report) = ended(clone);
    assert_copied(&report, &online.seen(), &target.seen(), 1);
}

#[test]
fn a_target_that_starts_again_has_new_sessions_and_the_others_are_counted() {
    let three = Three::new();
    let [online, first] = three.servers(128);
    let clone = three.clone("");
    let load = Load { connections: 10, requests: 100, per_second: 2000, ..LOAD };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    eventually("all is there", || first.requests.load(Relaxed) == 100);
    drop(first.seen());
    oracle::run(&three.clients, "10.77.1.1:80", load);
    let second = Server::start(&three.target, "[::]:80", 128);
    oracle::run(&three.clients, "10.77.1.1:80", load);
    let (ran, report) = ended(clone);
    ran.with(1);
    let (online, second) = (online.seen(), second.seen());
    assert_eq!((online.bad, online.connections.len()), (0, 30), "the originals were touched");
    assert_eq!((second.bad, second.disordered(), second.counts().len()), (0, 0, 100));
    let c = cloned(&report);
    assert_eq!((number(&c["connections"]["connected"]), number(&c["connections"]["refused"])), (20, 10));
    assert_eq!(number(&c["sent"]["unconnected"]), online.bytes / 3);
    assert!(c["contradictions"].is_null(), "{report}");
}

/// What the clone says that it lost is what the target lacks: cut sessions, and bytes.
#[track_caller]
pub fn assert_honest(report: &serde_json::Value, online: &Seen, target: &Seen) -> u64 {
    let c = cloned(report);
    assert!(c["contradictions"].is_null(), "{report}");
    let mut lacking = 0;
    for (_, ids) in &online.connections {
        let copy = target.connections.iter().find(|(_, of)| of[0] == ids[0]).map_or(&[][..], |(_, of)| of);
        // Never anything else than what the client said, from its beginning.
        assert!(ids.starts_with(copy), "a copy of {} requests is not a part of its session", copy.len());
        lacking += u64::from(copy.len() < ids.len());
    }
    let s = &c["sessions"];
    let cut: u64 = ["gaps", "missed", "truncated", "too_early"].map(|reason| number(&s[reason])).iter().sum();
    assert_eq!(cut, lacking, "sessions that lack something\n{report}");
    assert_eq!(number(&c["sent"]["sent"]), target.bytes, "bytes that were said");
    lacking
}

#[test]
fn a_ring_that_overflows_ends_the_sessions_that_lost_something_and_says_so() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("--threads 64");
    // Each thread has a 64th of the memory; all of them stop for a moment.
    oracle::run(&three.clients, "10.77.1.1:80", Load { connections: 16, requests: 160, ..LOAD });
    clone.signal("STOP");
    oracle::run(
        &three.clients,
        "10.77.1.1:80",
        Load { connections: 16, requests: 9600, per_second: 20_000, ..LOAD },
    );
    clone.signal("CONT");
    oracle::run(&three.clients, "10.77.1.1:80", Load { connections: 16, requests: 160, ..LOAD });
    std::thread::sleep(Duration::from_millis(300));
    let (ran, report) = ended(clone);
    ran.with(1);
    assert!(number(&cloned(&report)["dropped_frames"]) > 0, "{report}");
    let (online, target) = (online.seen(), target.seen());
    assert_eq!(online.bad, 0);
    let c = cloned(&report);
    assert_eq!(number(&c["sent"]["sent"]), target.bytes);
    assert!(c["contradictions"].is_null(), "{report}");
    let said = reasons(&report).join("\n");
    assert!(said.contains("lost before they could be looked at"), "{said}");
}

#[test]
fn super_packets_that_find_no_room_cut_their_sessions_and_no_others() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("");
    clone.signal("STOP");
    // More than the socket's queue holds.
    let load = Load { connections: 6, requests: 1600, per_second: 4000, body: 60_000, short: false };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    clone.signal("CONT");
    std::thread::sleep(Duration::from_millis(500));
    let (ran, report) = ended(clone);
    ran.with(1);
    let frames = number(&cloned(&report)["frames"]["from_clients"]);
    let (online, target) = (online.seen(), target.seen());
    assert_eq!(online.bad, 0);
    assert!(frames * 1500 < online.bytes, "there were no super-packets: {frames} for {} bytes", online.bytes);
    assert!(assert_honest(&report, &online, &target) > 0, "nothing was lost: {report}");
}

#[test]
fn after_a_kill_no_route_and_no_interface_is_left() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("--source-prefix 10.99.0.0/16");
    let shows = |what: &str| start(inside(&three.online, &format!("ip {what}"))).wait().ok().stdout;
    assert!(shows("route show table local").contains("local 10.99.0.0/16 dev netdyno"));
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    eventually("some are copied", || target.requests.load(Relaxed) > 0);
    clone.signal("KILL");
    drop(clone.wait());
    eventually("nothing is left", || {
        !shows("route show table local").contains("10.99") && !shows("link").contains("netdyno")
    });
    // The server's clients know nothing of it.
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    assert_eq!(online.seen().bad, 0);
    drop(target.seen());
}

#[test]
fn an_interface_that_goes_down_is_told_and_costs_nothing() {
    let three = Three::new();
    let _servers = three.servers(128);
    let clone = three.clone("");
    three.ip(&three.online, "link set o0 down");
    let used = || {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", clone.pid())).expect("its state");
        let fields: Vec<&str> = text.rsplit(')').next().expect("fields").split_whitespace().collect();
        fields[11].parse::<u64>().expect("ticks") + fields[12].parse::<u64>().expect("ticks")
    };
    let before = used();
    std::thread::sleep(Duration::from_millis(1000));
    let ticks = used() - before;
    let (ran, report) = ended(clone);
    ran.with(1);
    assert!(reasons(&report).iter().any(|said| said.contains("capturing was interrupted")), "{report}");
    // A hundred ticks are a second: it did not spin.
    assert!(ticks < 50, "{ticks} ticks in a second");
}

#[test]
fn prometheus_has_what_the_result_says() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("--metrics 127.0.0.1:9119");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 400, ..LOAD });
    let page = || {
        start(inside(&three.online, "curl -s --max-time 5 http://127.0.0.1:9119/metrics")).wait().ok().stdout
    };
    let value = |page: &str, name: &str| {
        let line = page.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
        line.and_then(|line| line.split(' ').next_back()?.parse::<f64>().ok()).map(|value| value as u64)
    };
    eventually("all is served", || value(&page(), "netdyno_clone_compared_answers_total") == Some(400));
    let page = page();
    let (_, report) = ended(clone);
    assert_copied(&report, &online.seen(), &target.seen(), 1);
    let c = cloned(&report);
    for (name, of) in [
        ("netdyno_clone_sent_bytes_total", &c["sent"]["sent"]),
        ("netdyno_clone_copied_sessions_total", &c["sessions"]["copied"]),
    ] {
        assert_eq!(value(&page, name), Some(number(of)), "{name} in {page}");
    }
}
