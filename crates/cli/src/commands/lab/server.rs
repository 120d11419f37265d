//! `netdyno lab --server`: what listens at the receiver while the command runs: any command, or a small HTTP server of our own, so
//! that what needs a server can be tried where there is no other.

use anyhow::{Context as _, Result, bail};
use endpoint::iperf3::units::http_date;
use lab::{Lab, Running};
use port::interface::Interface;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _, stderr};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The server that netdyno has.
const OWN: &str = "http";
/// Where it listens: two, so that one can be the copy of the other.
const PORTS: [u16; 2] = [80, 8080];
/// What takes longer to listen is no server.
const PATIENCE: Duration = Duration::from_secs(10);
/// A client of the own server that is silent for so long is left.
const SILENCE: Duration = Duration::from_secs(5);
/// A request's head has at most so many bytes.
const MOST_BYTES: usize = 8192;

/// A server at the receiver, until it is dropped. The own one ends with this process.
#[derive(Debug)]
pub struct Server {
    command: Option<Running>,
}

impl Server {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, ends, or listens at no port and no interface.
    pub fn start(lab: &Lab, server: &str) -> Result<Server> {
        if server == OWN {
            let listen = || PORTS.map(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
            for listener in lab.receiver.namespace.run_in(listen)? {
                let listener = listener.context("--server http: listening at the receiver")?;
                let serve = move || listener.incoming().flatten().for_each(answered);
                std::thread::Builder::new().name(OWN.to_owned()).spawn(serve)?;
            }
            return Ok(Server { command: None });
        }
        let output = File::from(stderr().as_fd().try_clone_to_owned()?);
        let words = ["sh", "-c", server].map(OsString::from);
        let before = lab.receiver.namespace.run_in(programs)?;
        let mut command = lab::start(lab, &lab.receiver, &words, &output, &[])?;
        let begun = Instant::now();
        // One that serves by XDP has no socket: its program at an interface is what waits for others.
        let is_ready = || listens() || programs().iter().any(|program| !before.contains(program));
        while !lab.receiver.namespace.run_in(is_ready)? {
            if let Some(status) = command.ended() {
                bail!(
                    "--server '{server}': it ended with status {status} before it listened at a port or an interface"
                );
            }
            if begun.elapsed() > PATIENCE {
                bail!(
                    "--server '{server}': after {} s it listens at no port, and has no XDP program at an interface: give a command that serves until it is ended, or {OWN}",
                    PATIENCE.as_secs()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Server { command: Some(command) })
    }

    /// Its status, if it has ended by itself.
    pub fn ended(&mut self) -> Option<i32> {
        self.command.as_mut()?.ended()
    }
}

/// The XDP programs at interfaces of the calling thread's network namespace. Those that cannot be read are none.
fn programs() -> Vec<u32> {
    let interfaces = Interface::list().unwrap_or_default();
    interfaces.into_iter().filter_map(|interface| Some(interface.xdp?.program_id)).collect()
}

/// Whether any socket of the calling thread's network namespace waits for others: of TCP in the state LISTEN, of UDP any.
fn listens() -> bool {
    let rows =
        |file: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    let waits = |row: &str| row.split_whitespace().nth(3) == Some("0A");
    ["tcp", "tcp6"].iter().any(|file| rows(file).lines().skip(1).any(waits))
        || ["udp", "udp6"].iter().any(|file| rows(file).lines().nth(1).is_some())
}

/// Answers one request in a thread of its own, so that a slow client holds up no other.
fn answered(stream: TcpStream) {
    // A client that cannot have a thread sees its connection closed.
    let _ = std::thread::Builder::new().spawn(move || answer(stream));
}

fn answer(mut stream: TcpStream) -> Option<()> {
    stream.set_read_timeout(Some(SILENCE)).ok()?;
    stream.set_write_timeout(Some(SILENCE)).ok()?;
    let (mut head, mut more) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MOST_BYTES {
        match stream.read(&mut more).ok()? {
            0 => return None,
            read => head.extend_from_slice(more.get(..read)?),
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    stream.write_all(page(&head, now).as_bytes()).ok()
}

/// The whole answer to a request.
fn page(head: &[u8], unix_seconds: u64) -> String {
    let head = String::from_utf8_lossy(head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let numbers = || (1..=2000).map(|n| format!("{n}\n")).collect::<String>();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/") => ("200 OK", "This is netdyno's HTTP server.\n".to_owned()),
        ("GET" | "HEAD", "/numbers") => ("200 OK", numbers()),
        ("GET" | "HEAD", _) => ("404 Not Found", "There are / and /numbers.\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET and HEAD are answered.\n".to_owned()),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nDate: {}\r\n{allow}Content-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        http_date(unix_seconds),
        body.len(),
        if method == "HEAD" { "" } else { &body }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_with_a_page_its_head_or_what_there_is() {
        let page = |line: &str| page(format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes(), 0);
        let numbers = page("GET /numbers");
        let (head, body) = numbers.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"), "{head}");
        assert!(
            head.contains(&format!("Content-Length: {}\r\n", body.len())) && body.ends_with("\n2000\n"),
            "{head}"
        );
        assert_eq!(page("HEAD /numbers"), format!("{head}\r\n\r\n"));
        assert!(page("GET /no").starts_with("HTTP/1.1 404 ") && page("GET /no").ends_with("/numbers.\n"));
        assert!(
            page("POST /").starts_with("HTTP/1.1 405 ")
                && page("POST /").contains("\r\nAllow: GET, HEAD\r\n")
        );
        assert!(super::page(b"\xff\r\n\r\n", 0).starts_with("HTTP/1.1 405 "));
    }
}
