//! A very small HTTP/1.1 server: GET and HEAD of /metrics, one request a connection.
//!
//! Its own, because a request is one line that matters and an answer is a page of text. What comes in is bounded in
//! size, time and number; whoever sends something else is told so in a line.

use super::head::HttpRequest;
use super::text::{Format, render};
use crate::GaugesError;
use rustix::event::{PollFd, PollFlags, poll};
use snapshot::Board;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A request's head has at most so many bytes.
const MOST_BYTES: usize = 8192;
/// Clients at a time; others are sent away.
const MOST_CLIENTS: usize = 8;
/// A client that needs longer than this for its request, or for taking the answer, is left.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long nobody is let in after one was sent away.
const BREATH: Duration = Duration::from_millis(4);

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    thread: Option<JoinHandle<()>>,
    /// Closing it ends the thread.
    end: Option<OwnedFd>,
}

impl Server {
    /// Listens on `at` in the calling thread's network namespace. `names` are others of this host, besides those it knows of.
    ///
    /// # Errors
    /// That the address cannot be listened on, or no thread can be started.
    pub fn start(at: SocketAddr, names: &[String], board: Arc<Board>) -> Result<Server, GaugesError> {
        let listen = |error: io::Error| {
            let mend = match error.kind() {
                ErrorKind::AddrInUse => ": another program listens there; give another port",
                ErrorKind::AddrNotAvailable => {
                    ": this host has no such address; 0.0.0.0 or [::] is all it has"
                }
                ErrorKind::PermissionDenied => ": ports below 1024 are root's; give another port",
                _ => "",
            };
            GaugesError::Listen(at, error, mend)
        };
        let listener = TcpListener::bind(at).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let pipe = |error: rustix::io::Errno| GaugesError::Io("making a pipe", error.into());
        let (over, end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(pipe)?;
        let shown = Arc::new(Shown { board, names: super::names::own(names) });
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || serve(&listener, &over, &shown))
            .map_err(|error| GaugesError::Io("starting a thread", error))?;
        Ok(Server { thread: Some(thread), end: Some(end) })
    }
}

/// What is shown, and to whom.
#[derive(Debug)]
struct Shown {
    board: Arc<Board>,
    /// What this host is called.
    names: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, over: &OwnedFd, shown: &Arc<Shown>) {
    crate::give_way();
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(over, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                if !take(stream, &clients, shown) {
                    // A flood is slowed down to some hundred a second; the others wait in the kernel, or are not let in.
                    std::thread::sleep(BREATH);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Out of descriptors, or a client that is gone again: not so fast.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Answers a client in a thread of his own, so that a slow one holds up no other. False if there were too many.
fn take(mut stream: TcpStream, clients: &Arc<AtomicUsize>, shown: &Arc<Shown>) -> bool {
    // What accept() gives does not block either, on some systems.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_write_timeout(Some(PATIENCE));
    if clients.fetch_add(1, Relaxed) >= MOST_CLIENTS {
        clients.fetch_sub(1, Relaxed);
        let _ = stream.write_all(
            &Answer::plain("503 Service Unavailable", "too many requests at a time\n").bytes(true),
        );
        return false;
    }
    let (own, shown) = (Arc::clone(clients), Arc::clone(shown));
    let started = std::thread::Builder::new().name("metrics client".to_owned()).spawn(move || {
        let _ = converse(&mut stream, &shown);
        own.fetch_sub(1, Relaxed);
    });
    if started.is_err() {
        clients.fetch_sub(1, Relaxed);
    }
    started.is_ok()
}

fn converse(stream: &mut TcpStream, shown: &Shown) -> io::Result<()> {
    let (answer, body) = match head(stream)? {
        Some(head) => (answer(&head, shown), !head.starts_with(b"HEAD ")),
        None => {
            (Answer::plain("431 Request Header Fields Too Large", "a request has at most 8192 bytes\n"), true)
        }
    };
    tell(stream, &answer.bytes(body))?;
    // Closing with unread input would reset the connection, and the client might lose the answer.
    stream.shutdown(std::net::Shutdown::Write)?;
    let end = Instant::now() + Duration::from_millis(200);
    let mut rest = [0; 1024];
    while Instant::now() < end {
        stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        match stream.read(&mut rest) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

/// Writes all, but not for longer than [`PATIENCE`], however little a client takes at a time.
fn tell(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The request's head, up to the empty line; `None` if it is too long.
fn head(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut chunk)?;
        head.extend_from_slice(&chunk[..count]);
        let whole = head.windows(4).any(|w| w == b"\r\n\r\n") || head.windows(2).any(|w| w == b"\n\n");
        if whole || count == 0 {
            return Ok(Some(head));
        }
        if head.len() > MOST_BYTES {
            return Ok(None);
        }
    }
}

#[derive(Debug)]
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn plain(status: &'static str, body: &str) -> Answer {
        Answer { status, content_type: "text/plain; charset=utf-8", body: body.to_owned() }
    }

    fn bytes(&self, with_body: bool) -> Vec<u8> {
        let Answer { status, content_type, body } = self;
        let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
        let mut text = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
            body.len()
        );
        if with_body {
            text += body;
        }
        text.into_bytes()
    }
}

/// What a request's head is answered.
fn answer(head: &[u8], shown: &Shown) -> Answer {
    let format = match HttpRequest::read(head, &shown.names) {
        HttpRequest::Nothing => return Answer::plain("400 Bad Request", "not an HTTP request\n"),
        HttpRequest::ToChange => return Answer::plain("405 Method Not Allowed", "only GET and HEAD\n"),
        HttpRequest::Another => {
            let mend = "ask for this host by its address or its own name, or tell netdyno of the name \
                        when it begins: another name may lead a browser here\n";
            return Answer::plain("421 Misdirected Request", mend);
        }
        HttpRequest::Root => {
            return Answer::plain("200 OK", "netdyno: metrics of this run are at /metrics\n");
        }
        HttpRequest::Elsewhere => return Answer::plain("404 Not Found", "metrics are at /metrics\n"),
        HttpRequest::Metrics { open: true } => Format::OpenMetrics,
        HttpRequest::Metrics { open: false } => Format::Prometheus,
    };
    // Before the run has begun there is nothing to tell, which is no error.
    let body = match shown.board.latest() {
        Some(moment) => render(&moment, format),
        None if format == Format::OpenMetrics => "# EOF\n".to_owned(),
        None => String::new(),
    };
    Answer { status: "200 OK", content_type: format.content_type(), body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use snapshot::Snapshot;

    fn status(request: &str) -> &'static str {
        let names = vec!["vm.lab.example.com".to_owned()];
        answer(request.as_bytes(), &Shown { board: Arc::default(), names }).status
    }

    #[test]
    fn only_what_is_there_is_given() {
        for (request, wanted) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\n\r\n", "200"),
            ("GET /metric HTTP/1.1\r\n\r\n", "404"),
            ("GET /../etc/passwd HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET metrics HTTP/1.1\r\n\r\n", "400"),
            ("GET /metrics HTTP/2\r\n\r\n", "400"),
            ("GET  /metrics HTTP/1.1\r\n\r\n", "400"),
            ("", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", "200"),
            ("GET /metrics HTTP/1.1\r\nhost:\tLOCALHOST:9464\r\n\r\n", "200"),
            ("GET /metrics HTTP/1.1\r\nHost: [::1]:9464\r\n\r\n", "200"),
            ("GET /metrics HTTP/1.1\r\nHost: tester.local\r\n\r\n", "200"),
            ("GET /metrics HTTP/1.1\r\nHost: rebound.example.com:9464\r\n\r\n", "421"),
            ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.example.com\r\n\r\n", "421"),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: example.com\r\n\r\n", "421"),
            ("GET / HTTP/1.1\r\nHost: example.com.\r\n\r\n", "421"),
            ("GET / HTTP/1.1\r\nHost: VM.lab.example.com.:9464\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\nHost: vm.example.com\r\n\r\n", "421"),
            ("\u{16}\u{3}\u{1}", "400"),
        ] {
            assert!(status(request).starts_with(wanted), "{request:?}: {}", status(request));
        }
    }

    fn threads(name: &str) -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").expect("tasks").flatten();
        let named = |task: &std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
        };
        tasks.filter(named).count()
    }

    #[test]
    fn a_flood_of_clients_that_stall_or_read_slowly_is_bounded_and_passes() {
        let board = Arc::new(Board::default());
        let stream = |number| snapshot::Stream { number, ..snapshot::Stream::default() };
        // An answer that no socket takes at once.
        board.publish(Snapshot {
            percent: 100,
            streams: (0..256).map(stream).collect(),
            ..Snapshot::default()
        });
        let at = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
        let server = Server::start(at, &[], board).expect("a server");
        let started = Instant::now();
        let mut flood = Vec::new();
        for n in 0..600 {
            // As many as the kernel lets in; it keeps the rest out.
            let Ok(mut client) = TcpStream::connect_timeout(&at, Duration::from_millis(20)) else { continue };
            if n % 2 == 0 {
                let _ = client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
            }
            flood.push(client);
        }
        assert!(threads("metrics client") <= MOST_CLIENTS);
        assert!(flood.len() > MOST_CLIENTS && started.elapsed() < Duration::from_secs(300));
        // None of them reads or ends, and still others are served soon.
        let begun = Instant::now();
        let request = b"GET /metrics HTTP/1.1\r\n\r\n";
        while !ask(at, request).starts_with("HTTP/1.1 200") {
            assert!(begun.elapsed() < 100 * PATIENCE, "nobody is served any more");
        }
        drop((server, flood));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_answered(head in proptest::collection::vec(any::<u8>(), 0..200)) {
            let shown = Shown { board: Arc::default(), names: Vec::new() };
            let answer = answer(&head, &shown);
            prop_assert!(answer.bytes(true).starts_with(b"HTTP/1.1 "));
        }
    }

    fn ask(at: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(at).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
        // The server may have answered and closed before all of it was sent.
        let _ = stream.write_all(request);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    #[test]
    fn clients_that_stall_or_talk_too_much_hold_up_nobody_and_the_port_is_free_afterwards() {
        let board = Arc::new(Board::default());
        // A port that was free a moment ago; tests here share no fixed one.
        let at = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
        let server = Server::start(at, &[], Arc::clone(&board)).expect("a server");
        let error = Server::start(at, &[], Arc::clone(&board)).expect_err("in use").to_string();
        assert!(error.contains("give another port"), "{error}");
        let silent: Vec<_> =
            (0..MOST_CLIENTS - 3).map(|_| TcpStream::connect(at).expect("a connection")).collect();
        board.publish(Snapshot { percent: 100, ..Snapshot::default() });
        let page = ask(at, b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
        assert!(
            page.contains("Content-Type: application/openmetrics-text") && page.ends_with("# EOF\n"),
            "{page}"
        );
        let head = ask(at, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(at, &vec![b'x'; 3 * MOST_BYTES]).starts_with("HTTP/1.1 431"));
        drop((silent, server));
        Server::start(at, &[], board).expect("the port is free");
    }
}
