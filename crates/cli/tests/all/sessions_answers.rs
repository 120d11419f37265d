//! What `netdyno sessions` says of answers that are cut short, come piecemeal, are announced by answers of 1xx, or say no length. The truth
//! is what the server sends.

use crate::clone::ends::{count, serve};
use crate::common::{Net, number, reasons};
use crate::sessions::hosts;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

const PAUSE: &str = "|";

/// Answers each request with these parts, a segment each, and closes if the request or `closes` says so.
fn answers(net: &Net, port: u16, parts: &'static str, closes: bool) {
    serve(&net.lab.receiver.namespace, &format!("0.0.0.0:{port}"), move |mut socket| {
        let _ = socket.set_nodelay(true);
        let (mut buffer, mut heard) = ([0; 4000], Vec::new());
        loop {
            let Some(end) = heard.windows(4).position(|four| four == b"\r\n\r\n") else {
                match socket.read(&mut buffer) {
                    Ok(count @ 1..) => heard.extend_from_slice(&buffer[..count]),
                    _ => return,
                }
                continue;
            };
            let request: Vec<u8> = heard.drain(..end + 4).collect();
            for part in parts.split(PAUSE) {
                if socket.write_all(part.as_bytes()).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(3));
            }
            if closes || request.windows(5).any(|word| word == b"close") {
                let _ = socket.shutdown(Shutdown::Write);
                while matches!(socket.read(&mut buffer), Ok(1..)) {}
                return;
            }
        }
    });
}

#[test]
fn what_comes_behind_an_answer_while_its_connection_is_held_is_seen() {
    let net = hosts();
    answers(&net, 8000, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello||||||, wor|ld", false);
    let line = "netdyno sessions --on tx0 --to 198.18.0.2:8000 --connections 10 --hold 500ms --rto 2s --json";
    let report = net.run(line).with(1).json();
    let s = &report["result"]["sessions"];
    let seen = ["finished", "answers", "overlong_answers", "unexpected"].map(|name| number(&s[name]));
    assert_eq!(seen, [10, 10, 10, 20], "{s}");
    let said = reasons(&report).join("; ");
    assert!(said.contains("10 answers had more bytes than announced"), "{said}");
}

struct Case {
    parts: &'static str,
    closes: bool,
    words: &'static str,
    /// Of 20 connections.
    told: &'static [(&'static str, u64)],
    /// What the verdict says, if it is short.
    said: &'static str,
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn an_answer_is_whole_when_all_came_that_its_head_announces() {
    let closed = "20 closed before the answer was whole";
    let cases = [
        Case { parts: OK, closes: false, words: "", told: &[("finished", 20), ("status_2xx", 20)], said: "" },
        // Cut short, in the head's segment and in a later one.
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("finished", 0), ("unanswered", 20), ("answers", 0)],
            said: closed,
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\ncontent-length:  50\r\n\r\n|hello",
            closes: false,
            words: "",
            told: &[("unanswered", 20), ("answers", 0)],
            said: closed,
        },
        // Lengths that contradict each other, or are none: the last one is no truth.
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 50\r\nContent-Length: 5\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("misframed_answers", 20), ("answers_to_the_close", 20)],
            said: "20 answers had a Content-Length that is no number or contradicts another one",
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5, 50\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("misframed_answers", 20)],
            said: "contradicts another one",
        },
        // A list of equal numbers is one.
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5, 5,5 \r\n\r\nhello",
            closes: false,
            words: "--requests 2",
            told: &[("finished", 20), ("answers", 40), ("misframed_answers", 0), ("unframed_answers", 0)],
            said: "",
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("misframed_answers", 20)],
            said: "contradicts another one",
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello",
            closes: false,
            words: "--requests 2 --timeout 1s",
            told: &[("finished", 0), ("misframed_answers", 20), ("unframed_answers", 20), ("answers", 0)],
            said: "contradicts another one",
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length:\t5 \r\nContent-Length: 5\r\n\r\nhello",
            closes: false,
            words: "--requests 2",
            told: &[("finished", 20), ("answers", 40), ("misframed_answers", 0)],
            said: "",
        },
        // Long ones are cut short as others are.
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("unanswered", 20), ("answers", 0)],
            said: closed,
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("unanswered", 20), ("answers", 0)],
            said: closed,
        },
        // More than is announced, at once or behind it.
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world",
            closes: false,
            words: "--requests 2",
            told: &[("answers", 40), ("overlong_answers", 40), ("unexpected", 40)],
            said: "40 answers had more bytes than announced",
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello|, wor|ld",
            closes: false,
            words: "",
            told: &[("answers", 20), ("overlong_answers", 20), ("unexpected", 40)],
            said: "20 answers had more bytes",
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello|, wor|ld",
            closes: false,
            words: "--close fin",
            told: &[("answers", 20), ("overlong_answers", 20), ("unexpected", 40)],
            said: "20 answers had more bytes",
        },
        // Nothing but the close tells that these are whole.
        Case {
            parts: "HTTP/1.1 200 OK\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("finished", 20), ("answers_to_the_close", 20)],
            said: "",
        },
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            closes: false,
            words: "",
            told: &[("finished", 20), ("answers_to_the_close", 20)],
            said: "",
        },
        // The encoding of what is inside is none of the answer.
        Case {
            parts: "HTTP/1.1 200 OK\r\nContent-Transfer-Encoding: binary\r\nContent-Length: 5\r\n\r\nhello",
            closes: false,
            words: "--requests 2",
            told: &[("finished", 20), ("answers", 40), ("status_2xx", 40), ("unframed_answers", 0)],
            said: "",
        },
        // Announced in segments of their own, or in one.
        Case {
            parts: "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n\
                    HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            closes: false,
            words: "--requests 2",
            told: &[("answers", 40), ("status_2xx", 40), ("status_1xx", 0), ("interim_answers", 120)],
            said: "",
        },
        Case {
            parts: "HTTP/1.1 100 Continue\r\n\r\n|HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n|HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
            closes: false,
            words: "",
            told: &[
                ("finished", 20),
                ("answers", 20),
                ("status_5xx", 20),
                ("status_1xx", 0),
                ("interim_answers", 40),
            ],
            said: "of 20 answers 20 had status 5xx",
        },
        Case {
            parts: "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            closes: false,
            words: "--requests 3",
            told: &[("requests", 60), ("answers", 60), ("status_2xx", 60), ("interim_answers", 60)],
            said: "",
        },
        Case {
            parts: "HTTP/1.1 100 Continue\r\n\r\n|HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            closes: false,
            words: "--requests 3 --close rst",
            told: &[("requests", 60), ("answers", 60), ("status_2xx", 60), ("interim_answers", 60)],
            said: "",
        },
        // Nothing but that.
        Case {
            parts: "HTTP/1.1 100 Continue\r\n\r\n",
            closes: true,
            words: "",
            told: &[("unanswered", 20), ("answers", 0), ("interim_answers", 20)],
            said: closed,
        },
        // It is HTTP/1.1, and the first segment does not tell.
        Case {
            parts: "HTTP/1.|1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            closes: false,
            words: "",
            told: &[("finished", 20), ("not_http", 0), ("status_unread", 20), ("answers", 20)],
            said: "20 had a status that was not read",
        },
        Case {
            parts: "no\n",
            closes: true,
            words: "",
            told: &[("finished", 20), ("not_http", 20), ("status_unread", 0)],
            said: "20 had no status of HTTP/1.1",
        },
        Case {
            parts: "SSH-2.0-server\r\n",
            closes: false,
            words: "",
            told: &[("finished", 20), ("not_http", 20), ("status_unread", 0)],
            said: "20 had no status of HTTP/1.1",
        },
    ];
    let net = hosts();
    for (port, case) in (8000..).zip(&cases) {
        answers(&net, port, case.parts, case.closes);
        let line = format!(
            "netdyno sessions --on tx0 --to 198.18.0.2:{port} --count 20 --in-flight 5 --rto 2s {} --json",
            case.words
        );
        let report = net.run(line).with(i32::from(!case.said.is_empty())).json();
        let s = &report["result"]["sessions"];
        let seen: Vec<_> = case.told.iter().map(|(name, _)| (*name, count(&s[*name]))).collect();
        assert_eq!(seen, case.told, "{}: {s}", case.parts);
        let said = reasons(&report).join("; ");
        assert!(
            said.contains(case.said) && said.is_empty() == case.said.is_empty(),
            "{}: {said}",
            case.parts
        );
        // What cannot be told is said.
        let untold = number(&s["answers_to_the_close"]);
        let warned = report["warnings"].as_array().into_iter().flatten().any(|warning| {
            warning.as_str().is_some_and(|warning| warning.contains("whether any was cut short is not known"))
        });
        assert_eq!(warned, untold > 0, "{}: {}", case.parts, report["warnings"]);
        let classes = [
            "status_1xx",
            "status_2xx",
            "status_3xx",
            "status_4xx",
            "status_5xx",
            "not_http",
            "status_unread",
        ];
        let sum = classes.map(|name| number(&s[name])).iter().sum::<u64>();
        assert_eq!(&Value::from(sum), &s["answers"], "{s}");
    }
}
