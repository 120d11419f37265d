//! Answers that a server ends before all came that their heads announce, at the target and in production: by a FIN, and by a RST.

use super::ends::{count, serve};
use super::{Three, cloned, ended};
use crate::common::{eventually, folder, inside, path, reasons, start};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CUT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello";
const CHUNK_CUT: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
const TO_THE_END: &str = "HTTP/1.1 200 OK\r\n\r\nhello";

#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// Waits for its client.
    Waits,
    Fin,
    Rst,
}

/// Answers one request of each connection, and counts them.
fn answers(namespace: &::lab::Namespace, answer: &'static str, then: Then) -> Arc<AtomicU64> {
    let heard = Arc::new(AtomicU64::new(0));
    let counted = heard.clone();
    serve(namespace, "[::]:80", move |mut socket| {
        let mut buffer = [0; 1000];
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            match socket.read(&mut buffer) {
                Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
                _ => return,
            }
        }
        let _ = socket.write_all(answer.as_bytes());
        counted.fetch_add(1, Relaxed);
        if then == Then::Rst {
            // What is sent is to be there before the RST.
            std::thread::sleep(Duration::from_millis(100));
            let _ = resets_at_its_end(&socket);
            return;
        }
        if then == Then::Fin {
            let _ = socket.shutdown(Shutdown::Write);
        }
        while matches!(socket.read(&mut buffer), Ok(1..)) {}
    });
    heard
}

/// A close of this socket resets its connection.
fn resets_at_its_end(socket: &TcpStream) -> rustix::io::Result<()> {
    rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO))
}

#[test]
fn an_answer_that_the_target_cuts_short_is_none_like_the_servers() {
    use Then::{Fin, Rst, Waits};
    // (production's, the target's) -> (alike, cut short by the target, not compared)
    for (online, target, [same, cut_short, cut]) in [
        ((WHOLE, Waits), (WHOLE, Waits), [8, 0, 0]),
        ((WHOLE, Waits), (CUT, Fin), [0, 8, 0]),
        ((WHOLE, Waits), (CUT, Rst), [0, 8, 0]),
        ((WHOLE, Waits), (CHUNK_CUT, Fin), [0, 8, 0]),
        ((TO_THE_END, Fin), (TO_THE_END, Fin), [8, 0, 0]),
        ((TO_THE_END, Fin), (TO_THE_END, Rst), [0, 8, 0]),
        // Nobody knows what else production would have said.
        ((CUT, Fin), (WHOLE, Waits), [0, 0, 8]),
        ((CUT, Fin), (CUT, Fin), [0, 0, 8]),
    ] {
        let three = Three::new();
        let there = [answers(&three.online, online.0, online.1), answers(&three.target, target.0, target.1)];
        let clone = three.clone("");
        for _ in 0..8 {
            let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
            let mut socket = three.clients.run_in(connect).expect("a namespace");
            socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("a socket");
            let mut heard = Vec::new();
            while heard.len() < online.0.len() {
                let mut buffer = [0; 1000];
                let count = socket.read(&mut buffer).expect("an answer");
                assert!(count > 0, "production closed: {}", heard.escape_ascii());
                heard.extend_from_slice(&buffer[..count]);
            }
            // Until production has closed, where it does.
            if online.1 == Fin {
                assert_eq!(socket.read(&mut [0; 10]).expect("an end"), 0);
            }
            // A RST of the target comes before its copy's end.
            std::thread::sleep(Duration::from_millis(if target.1 == Rst { 150 } else { 10 }));
        }
        eventually("the target has answered", || there[1].load(Relaxed) >= 8);
        let (_, report) = ended(clone);
        let c = cloned(&report);
        let a = &c["answers"];
        let told = ["same", "cut_short", "cut"].map(|name| count(&a[name]));
        assert_eq!(
            told,
            [same, cut_short, cut],
            "{online:?} {target:?}: {a}",
            online = online.0,
            target = target.0
        );
        assert_eq!((count(&a["requests"]), there[0].load(Relaxed)), (8, 8), "{a}");
        assert!(c["contradictions"].is_null() && reasons(&report).is_empty(), "{report}");
        if cut_short > 0 {
            assert_eq!(a["differences"][0]["kind"], "cut_short", "{a}");
        }
    }
}

/// Answers every request of each connection with this, and counts them.
fn answers_all(namespace: &::lab::Namespace, answer: &'static str) -> Arc<AtomicU64> {
    let heard = Arc::new(AtomicU64::new(0));
    let counted = heard.clone();
    serve(namespace, "[::]:80", move |mut socket| {
        let mut buffer = [0; 1000];
        while let Ok(count @ 1..) = socket.read(&mut buffer) {
            assert!(buffer[..count].ends_with(b"\r\n\r\n"), "a request in one segment");
            let _ = socket.write_all(answer.as_bytes());
            counted.fetch_add(1, Relaxed);
        }
    });
    heard
}

#[test]
fn an_answer_that_breaks_the_rules_of_its_length_is_none_like_the_servers() {
    const CHUNKS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    const OTHER_CHUNKS: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n";
    const TRAILER: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 2\r\n\r\n";
    const TOO_SHORT: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n";
    const TOO_LONG: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello\r\n0\r\n\r\n";
    const TWO_LENGTHS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\nContent-Length: 5\r\n\r\nhello";
    const MORE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world";
    // (production's, the target's) -> of 4 sessions of 3 requests: alike, malformed, other fields, not followed
    for (online, target, wanted) in [
        (CHUNKS, OTHER_CHUNKS, [12, 0, 0, 0]),
        (CHUNKS, WHOLE, [12, 0, 0, 0]),
        (CHUNKS, TRAILER, [0, 0, 12, 0]),
        (CHUNKS, TOO_SHORT, [0, 4, 0, 8]),
        (CHUNKS, TOO_LONG, [0, 4, 0, 8]),
        (WHOLE, TWO_LENGTHS, [0, 4, 0, 8]),
        // Where production does the same, nobody knows which answer is whose, nor where later requests begin.
        (TWO_LENGTHS, TWO_LENGTHS, [0, 0, 0, 4]),
        (WHOLE, MORE, [0, 4, 0, 8]),
    ] {
        let three = Three::new();
        let there = [answers_all(&three.online, online), answers_all(&three.target, target)];
        let clone = three.clone("");
        let mut asked = 0;
        for _ in 0..4 {
            let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
            let mut socket = three.clients.run_in(connect).expect("a namespace");
            for _ in 0..3 {
                socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("a socket");
                let mut heard = Vec::new();
                while heard.len() < online.len() {
                    let mut buffer = [0; 1000];
                    let count = socket.read(&mut buffer).expect("an answer");
                    assert!(count > 0, "production closed: {}", heard.escape_ascii());
                    heard.extend_from_slice(&buffer[..count]);
                }
                // One after the other, so that each comes in a segment of its own.
                asked += 1;
                eventually("the target has answered", || there[1].load(Relaxed) >= asked);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let (_, report) = ended(clone);
        let c = cloned(&report);
        let a = &c["answers"];
        let told = ["same", "malformed", "fields_differ", "unfollowed"].map(|name| count(&a[name]));
        assert_eq!(told, wanted, "{online:?} {target:?}: {a}");
        assert_eq!(count(&a["unframed_sessions"]), if wanted[3] > 0 { 4 } else { 0 }, "{a}");
        let requests = if online == TWO_LENGTHS { 4 } else { 12 };
        assert_eq!((count(&a["requests"]), there[0].load(Relaxed)), (requests, 12), "{a}");
        assert!(c["contradictions"].is_null() && reasons(&report).is_empty(), "{report}");
        let said = report["warnings"].to_string();
        assert_eq!(said.contains("could not be followed"), count(&a["unfollowed"]) > 0, "{said}");
    }
}

#[test]
fn more_than_was_asked_for_that_comes_behind_an_answer_found_alike_makes_it_another() {
    let three = Three::new();
    for (namespace, more) in [(&three.online, ""), (&three.target, " world")] {
        serve(namespace, "[::]:80", move |mut socket| {
            let mut buffer = [0; 1000];
            let Ok(1..) = socket.read(&mut buffer) else { return };
            let _ = socket.write_all(WHOLE.as_bytes());
            std::thread::sleep(Duration::from_millis(50));
            let _ = socket.write_all(more.as_bytes());
            while matches!(socket.read(&mut buffer), Ok(1..)) {}
        });
    }
    let clone = three.clone("");
    for _ in 0..4 {
        let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
        let mut socket = three.clients.run_in(connect).expect("a namespace");
        socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("a socket");
        std::thread::sleep(Duration::from_millis(300));
    }
    let (_, report) = ended(clone);
    let a = &cloned(&report)["answers"];
    let told = ["requests", "same", "malformed", "unframed_sessions"].map(|name| count(&a[name]));
    assert_eq!(told, [4, 0, 4, 4], "{a}");
    assert!(report["warnings"].to_string().contains("4 of 4 answers differ"), "{report}");
}

#[test]
fn every_request_is_counted_also_where_the_target_refuses_or_has_closed() {
    let three = Three::new();
    let served = Arc::new(AtomicU64::new(0));
    let counted = served.clone();
    // Production answers every request; the target the first one of a connection, and closes.
    for (namespace, requests) in [(&three.online, usize::MAX), (&three.target, 1)] {
        let counted = counted.clone();
        let online = requests > 1;
        serve(namespace, "[::]:80", move |mut socket| {
            let mut buffer = [0; 1000];
            for _ in 0..requests {
                let Ok(count @ 1..) = socket.read(&mut buffer) else { return };
                assert!(buffer[..count].ends_with(b"\r\n\r\n"), "a request in one segment");
                counted.fetch_add(u64::from(online), Relaxed);
                let _ = socket.write_all(WHOLE.as_bytes());
            }
        });
    }
    let ask = |requests: usize| {
        let connect = || TcpStream::connect("10.77.1.1:80").expect("a connection");
        let mut socket = three.clients.run_in(connect).expect("a namespace");
        for _ in 0..requests {
            socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("a socket");
            let mut heard = Vec::new();
            while heard.len() < WHOLE.len() {
                let mut buffer = [0; 1000];
                let count = socket.read(&mut buffer).expect("an answer");
                assert!(count > 0, "production closed");
                heard.extend_from_slice(&buffer[..count]);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    };
    let clone = three.clone("");
    ask(10);
    // From now on the target refuses.
    let rules = "table inet t {\n chain i {\n  type filter hook input priority 0;\n  tcp dport 80 ct state new counter reject with tcp reset\n }\n}\n";
    let dir = folder();
    std::fs::write(path(&dir, "rules"), rules).expect("a file");
    start(inside(&three.target, &format!("nft -f {}", path(&dir, "rules")))).wait().ok();
    (0..5).for_each(|_| ask(2));
    std::thread::sleep(Duration::from_millis(500));
    clone.signal("INT");
    let report = clone.wait().with(1).json();
    let c = cloned(&report);
    let a = &c["answers"];
    assert_eq!((served.load(Relaxed), count(&a["requests"])), (20, 20), "{a}");
    assert_eq!((count(&a["same"]), count(&c["connections"]["refused"])), (1, 5), "{c}");
    // The second one may have been written before the target's end was seen.
    assert!((18..=19).contains(&count(&a["unsaid"])) && c["contradictions"].is_null(), "{c}");
    assert_eq!(count(&a["unsaid"]) + count(&a["target_unanswered"]), 19, "{a}");
}
