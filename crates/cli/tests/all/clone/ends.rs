//! How copies begin and end where answers take time or servers speak first: a reverse proxy that cancels what nobody waits for, servers with
//! greetings, half-closed clients, TLS. What the target's servers log is the truth.

use super::{Three, cloned, ended};
use crate::common::{Folder, Running, eventually, folder, inside, number, path, reasons, start};
use ::lab::Namespace;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A count; it is left out where there is nothing to count.
pub fn count(value: &Value) -> u64 {
    if value.is_null() { 0 } else { number(value) }
}

/// Serves each connection by a thread of its own, for as long as the test's process lives.
pub fn serve(namespace: &Namespace, at: &str, each: impl Fn(TcpStream) + Send + Sync + 'static) {
    let (namespace, at) = (namespace.try_clone().expect("a namespace"), at.to_owned());
    let (ready, listening) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        namespace.enter_current_thread().expect("a namespace");
        let listener = TcpListener::bind(at).expect("an address");
        ready.send(()).expect("somebody waits");
        let each = Arc::new(each);
        for socket in listener.incoming().flatten() {
            let each = each.clone();
            std::thread::spawn(move || each(socket));
        }
    });
    listening.recv().expect("a server");
}

/// A backend whose answers take so many milliseconds, as the number says at that moment.
fn backend(namespace: &Namespace, takes_ms: &Arc<AtomicU64>) {
    let takes_ms = takes_ms.clone();
    serve(namespace, "127.0.0.1:9000", move |mut socket| {
        let mut lines = BufReader::new(socket.try_clone().expect("a socket")).lines();
        while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
        std::thread::sleep(Duration::from_millis(takes_ms.load(Relaxed)));
        let _ = socket.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nan answer");
    });
}

/// nginx in front of the backend, which logs the status of each request: 499 where its client went away.
fn proxy(namespace: &Namespace, dir: &Folder, name: &str) -> (Running, String) {
    let folder = path(dir, name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = format!(
        "user root; daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ \
         log_format status '$status'; access_log {folder}/log status; client_body_temp_path {folder}; proxy_temp_path {folder}; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder}; server {{ listen 80; location / {{ \
         proxy_pass http://127.0.0.1:9000; }} }} }}"
    );
    std::fs::write(format!("{folder}/conf"), config).expect("a file");
    let running = start(inside(namespace, &format!("nginx -c {folder}/conf -p {folder}")));
    super::wait_for(namespace, 80);
    (running, format!("{folder}/log"))
}

/// So many clients at once, each with so many requests, which close as soon as they have the last answer.
fn clients(three: &Three, connections: usize, requests: usize) {
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
                let mut socket = three.clients.run_in(connect).expect("a namespace");
                for _ in 0..requests {
                    socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("a socket");
                    let mut heard = Vec::new();
                    while !heard.ends_with(b"an answer") {
                        let mut buffer = [0; 1000];
                        let count = socket.read(&mut buffer).expect("an answer");
                        assert!(count > 0, "production closed: {}", heard.escape_ascii());
                        heard.extend_from_slice(&buffer[..count]);
                    }
                }
            });
        }
    });
}

fn lines(file: &str) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_reverse_proxy_at_the_target_answers_every_request_however_slow_its_backend_is() {
    let (three, dir) = (Three::new(), folder());
    let (fast, slow) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    backend(&three.online, &fast);
    backend(&three.target, &slow);
    let (_online, online_log) = proxy(&three.online, &dir, "online");
    let (_target, target_log) = proxy(&three.target, &dir, "target");
    let tcpcopy = "netdyno tcpcopy -x 80-10.77.2.2:80 -s 10.77.2.3 -i o0";
    for (takes_ms, connections, requests, words) in [
        (0, 20, 5, "--pace wallclock"),
        (10, 100, 1, "--pace wallclock"),
        (200, 100, 1, "--pace wallclock"),
        (200, 20, 5, "--pace wallclock"),
        (200, 100, 1, "--pace causal"),
        (200, 100, 1, tcpcopy),
    ] {
        slow.store(takes_ms, Relaxed);
        // What connections are tried leave no line; what earlier runs said is passed over.
        let before = [&online_log, &target_log].map(|log| lines(log).len());
        let clone = match words == tcpcopy {
            true => {
                let mut clone = start(inside(&three.online, words));
                clone.until_it_says("Ctrl-C ends");
                clone
            }
            false => three.clone(words),
        };
        clients(&three, connections, requests);
        let all = connections * requests;
        // In wallclock a connection's requests wait at nginx for each other.
        eventually("the target has answered", || lines(&target_log).len() >= before[1] + all);
        if words == tcpcopy {
            std::thread::sleep(Duration::from_millis(300));
            clone.signal("INT");
            clone.wait().ok();
        } else {
            let (_, report) = ended(clone);
            let c = cloned(&report);
            let answers = &c["answers"];
            assert_eq!(
                (count(&answers["compared"]), count(&answers["same"])),
                (all as u64, all as u64),
                "{report}"
            );
            assert!(reasons(&report).is_empty() && c["contradictions"].is_null(), "{report}");
            assert_eq!(count(&c["connections"]["unanswered_ends"]), 0);
            if takes_ms >= 200 {
                assert_eq!(count(&c["connections"]["held_ends"]), connections as u64, "{c}");
            }
        }
        for (log, before) in [&online_log, &target_log].into_iter().zip(before) {
            let statuses = lines(log).split_off(before);
            assert_eq!(statuses, vec!["200"; all], "{words}, {takes_ms} ms, {log}");
        }
    }
}

/// The first message of some bytes, if it is whole: its length, and the answer to it.
type Reply = fn(&[u8]) -> Option<(usize, Vec<u8>)>;

/// A server that greets after so long, and answers each message as `reply` says. How many clients spoke before the greeting, and how many
/// bytes all said.
fn greets(
    namespace: &Namespace,
    greeting: &'static [u8],
    after: Duration,
    reply: Reply,
) -> Arc<(AtomicU64, AtomicU64)> {
    let seen = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let own = seen.clone();
    serve(namespace, "[::]:80", move |mut socket| {
        let mut buffer = [0; 1000];
        std::thread::sleep(after);
        socket.set_nonblocking(true).expect("a socket");
        let early = matches!(socket.peek(&mut buffer), Ok(count) if count > 0);
        socket.set_nonblocking(false).expect("a socket");
        own.0.fetch_add(u64::from(early), Relaxed);
        if socket.write_all(greeting).is_err() {
            return;
        }
        let mut heard = Vec::new();
        while let Ok(count @ 1..) = socket.read(&mut buffer) {
            own.1.fetch_add(count as u64, Relaxed);
            heard.extend_from_slice(&buffer[..count]);
            while let Some((length, answer)) = reply(&heard) {
                heard.drain(..length);
                if socket.write_all(&answer).is_err() {
                    return;
                }
            }
        }
    });
    seen
}

fn in_lines(heard: &[u8]) -> Option<(usize, Vec<u8>)> {
    let length = heard.iter().position(|byte| *byte == b'\n')? + 1;
    Some((length, [b"250 you said ", &heard[..length]].concat()))
}

/// MySQL's packets: how long each is, its number, and what it holds.
fn in_packets(heard: &[u8]) -> Option<(usize, Vec<u8>)> {
    let length = usize::from(*heard.first()?) + 4;
    let number = heard.get(..length)?[3] + 1;
    Some((length, vec![7, 0, 0, number, 0, 0, 0, 2, 0, 0, 0]))
}

fn in_http(heard: &[u8]) -> Option<usize> {
    heard.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

#[test]
fn copies_hear_the_targets_greeting_before_they_speak_and_greetings_are_compared_by_themselves() {
    const HANDSHAKE: &[u8] = b"\x10\0\0\0\x0a8.0.1\0nonce-12\0";
    const OTHER: &[u8] = b"\x10\0\0\0\x0a8.0.1\0nonce-34\0";
    type Case = (&'static [u8], &'static [u8], Reply, [&'static [u8]; 3]);
    let smtp: [&[u8]; 3] = [b"EHLO there\r\n", b"NOOP\r\n", b"QUIT\r\n"];
    let mysql: [&[u8]; 3] = [b"\x03\0\0\x01abc", b"\x02\0\0\0\x03q", b"\x01\0\0\0\x01"];
    let cases: [Case; 2] =
        [(b"220 ready\r\n", b"220 ready\r\n", in_lines, smtp), (HANDSHAKE, OTHER, in_packets, mysql)];
    for (online_greets, target_greets, reply, messages) in cases {
        let three = Three::new();
        let online = greets(&three.online, online_greets, Duration::ZERO, reply);
        let target = greets(&three.target, target_greets, Duration::from_millis(150), reply);
        let clone = three.clone("");
        for _ in 0..20 {
            let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
            let mut socket = three.clients.run_in(connect).expect("a namespace");
            let mut buffer = [0; 1000];
            assert!(socket.read(&mut buffer).expect("a greeting") > 0);
            for message in messages {
                socket.write_all(message).expect("a socket");
                assert!(socket.read(&mut buffer).expect("an answer") > 0);
            }
        }
        eventually("the target has heard everything", || target.1.load(Relaxed) == online.1.load(Relaxed));
        let (_, report) = ended(clone);
        assert_eq!((online.0.load(Relaxed), target.0.load(Relaxed)), (0, 0), "who spoke before the greeting");
        let answers = &cloned(&report)["answers"];
        let differ = if online_greets == target_greets { 0 } else { 20 };
        assert_eq!((count(&answers["compared"]), count(&answers["same"])), (80, 80 - differ), "{report}");
        assert_eq!(count(&answers["bodies_differ"]), differ, "{answers}");
        if differ > 0 {
            let first = &answers["differences"][0];
            assert_eq!(
                (first["kind"].as_str(), first["example"].as_str()),
                (Some("body"), Some("(greeting)"))
            );
            assert_eq!(number(&first["first"]["offset"]), 17, "{first}");
        }
        assert!(reasons(&report).is_empty() && cloned(&report)["contradictions"].is_null(), "{report}");
    }
}

#[test]
fn a_client_that_closed_its_side_is_answered_later_whichever_server_is_first() {
    for (online_ms, target_ms) in [(150, 0), (0, 150)] {
        let three = Three::new();
        let answers_at_the_end = |namespace: &Namespace, takes_ms: u64| {
            serve(namespace, "[::]:80", move |mut socket| {
                let mut heard = Vec::new();
                if socket.read_to_end(&mut heard).is_ok() && !heard.is_empty() {
                    std::thread::sleep(Duration::from_millis(takes_ms));
                    let _ = socket.write_all(&[b"you said ", heard.as_slice()].concat());
                }
            });
        };
        answers_at_the_end(&three.online, online_ms);
        answers_at_the_end(&three.target, target_ms);
        let clone = three.clone("");
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
                    let mut socket = three.clients.run_in(connect).expect("a namespace");
                    socket.write_all(b"something").expect("a socket");
                    socket.shutdown(Shutdown::Write).expect("a socket");
                    let mut heard = String::new();
                    socket.read_to_string(&mut heard).expect("an answer");
                    assert_eq!(heard, "you said something");
                });
            }
        });
        let (_, report) = ended(clone);
        let answers = &cloned(&report)["answers"];
        assert_eq!((count(&answers["compared"]), count(&answers["same"])), (20, 20), "{report}");
    }
}

#[test]
fn tls_is_told_in_one_sentence_and_not_copied() {
    let three = Three::new();
    let heard = [&three.online, &three.target].map(greets_nobody);
    let clone = three.clone("");
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 506]].concat();
    for _ in 0..5 {
        let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
        let mut socket = three.clients.run_in(connect).expect("a namespace");
        socket.write_all(&hello).expect("a socket");
        assert!(socket.read(&mut [0; 100]).expect("an answer") > 0);
    }
    let (ran, report) = ended(clone);
    ran.with(1);
    let c = cloned(&report);
    assert_eq!((count(&c["sessions"]["tls"]), count(&c["sessions"]["copied"])), (5, 0), "{report}");
    assert_eq!(heard.map(|heard| heard.load(Relaxed)), [5 * 517, 0]);
    let said: Vec<String> = reasons(&report).into_iter().filter(|said| said.contains("TLS")).collect();
    assert_eq!(said.len(), 1, "{:?}", reasons(&report));
    assert!(c["contradictions"].is_null() && count(&c["answers"]["compared"]) == 0, "{c}");
}

/// A server that answers whatever it hears, and counts it.
fn greets_nobody(namespace: &Namespace) -> Arc<AtomicU64> {
    let heard = Arc::new(AtomicU64::new(0));
    let own = heard.clone();
    serve(namespace, "[::]:80", move |mut socket| {
        let mut buffer = [0; 1000];
        while let Ok(count @ 1..) = socket.read(&mut buffer) {
            own.fetch_add(count as u64, Relaxed);
            if socket.write_all(b"\x16\x03\x03 hello").is_err() {
                return;
            }
        }
    });
    heard
}

#[test]
fn bodies_of_one_size_that_differ_are_told_with_their_first_difference_unless_that_is_ignored() {
    let answers = |namespace: &Namespace, body: &'static str| {
        serve(namespace, "[::]:80", move |mut socket| {
            let (mut buffer, mut heard) = ([0; 1000], Vec::new());
            while let Ok(count @ 1..) = socket.read(&mut buffer) {
                heard.extend_from_slice(&buffer[..count]);
                while let Some(length) = in_http(&heard) {
                    heard.drain(..length);
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nDate: {body}\r\nServer: x\r\nContent-Length: {}",
                        body.len()
                    );
                    let _ = socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
                }
            }
        });
    };
    for (words, differ, verdict) in [
        ("", 5, ""),
        ("--ignore id --max-differing 0", 0, ""),
        ("--max-differing 5", 5, ""),
        (
            "--max-differing 4",
            5,
            "5 of 5 answers differ from the server's, 0 more are missing: more than the 4 that may",
        ),
    ] {
        let three = Three::new();
        answers(&three.online, r#"{"id": 1, "said": "hello"}"#);
        answers(&three.target, r#"{"id": 2, "said": "hello"}"#);
        let clone = three.clone(words);
        let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
        let mut socket = three.clients.run_in(connect).expect("a namespace");
        for _ in 0..5 {
            socket.write_all(b"GET /x HTTP/1.1\r\nHost: test\r\n\r\n").expect("a socket");
            assert!(socket.read(&mut [0; 1000]).expect("an answer") > 0);
        }
        let (ran, report) = ended(clone);
        let answers = &cloned(&report)["answers"];
        assert_eq!((count(&answers["compared"]), count(&answers["bodies_differ"])), (5, differ), "{report}");
        let reasons = reasons(&report).join(" ");
        assert!(
            ran.status == i32::from(!verdict.is_empty()) && reasons.contains(verdict),
            "{words}: {reasons}"
        );
        assert_eq!(count(&answers["same"]), 5 - differ);
        if differ > 0 {
            let first = &answers["differences"][0]["first"];
            assert_eq!(number(&first["offset"]), 7, "{answers}");
            assert!(first["online"].as_str().is_some_and(|text| text.contains("\\\"id\\\": 1,")), "{first}");
        }
    }
}
