//! Both sides over loopback, and clients that mean no good, by counts. The real iperf3 is the judge of the end-to-end tests.

use super::Show;
use super::client::{Client, Failure};
use super::open::Local;
use super::server::{Limits, Server};
use endpoint::iperf3::params::Params;
use endpoint::iperf3::summary::{End, Interval, Start, Sum};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Tells how a test ended.
struct Tells(Sender<End>);

impl Show for Tells {
    fn connected(&mut self, _: &Start, _: bool) {}
    fn start(&mut self, _: &Start) {}
    fn interval(&mut self, _: &Start, _: &Interval) {}
    fn end(&mut self, _: &Start, end: &End) {
        let _ = self.0.send(end.clone());
    }
    fn error(&mut self, _: &str) {}
}

/// A server for as long as `with` lasts.
fn served(limits: Limits, with: impl FnOnce(SocketAddr)) {
    let stop = Arc::new(AtomicBool::new(false));
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("an address");
    let server = Server {
        bind: Some(free.ip()),
        family: None,
        port: free.port(),
        device: None,
        mptcp: false,
        one_off: false,
        idle_timeout: None,
        limits,
        interval: 0.0,
        core: None,
        file: None,
        send_timeout: None,
        keep_alive: None,
        system: String::new(),
        check: None,
        stop: Arc::clone(&stop),
        tally: Arc::default(),
    };
    struct Ends(Arc<AtomicBool>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let ends = Ends(stop);
        let (tells, told) = channel();
        let tells = Mutex::new(tells);
        scope.spawn(move || {
            let news = move || -> Box<dyn Show> { Box::new(Tells(channel().0)) };
            let bound = || tells.lock().expect("one").send(()).expect("told");
            server.serve(&news, &bound, &|_| {}).expect("serves");
        });
        told.recv_timeout(Duration::from_secs(60)).expect("listens");
        with(free);
        drop(ends);
    });
}

/// One test; how it ended at the client.
fn ask(at: SocketAddr, params: Params) -> Result<End, Failure> {
    let (tells, told) = channel();
    let client = Client {
        host: at.ip().to_string(),
        port: at.port(),
        family: None,
        local: Local::default(),
        params,
        interval: 0.0,
        core: None,
        file: None,
        receive_timeout: Duration::from_secs(120),
        system: String::new(),
        stop: Arc::default(),
    };
    client.run(&mut Tells(tells))?;
    Ok(told.try_recv().expect("an end"))
}

fn cookie(n: u32) -> [u8; 37] {
    let mut cookie = *b"abcdefghijklmnopqrstuvwxyz2345672345\0";
    for (place, digit) in cookie.iter_mut().zip(format!("{n:08}").bytes()) {
        *place = b'a' + (digit - b'0');
    }
    cookie
}

fn dial(at: SocketAddr, n: u32) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    stream.write_all(&cookie(n)).expect("written");
    stream
}

fn hear<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).expect("an answer");
    bytes
}

/// A client whose parameters are said, and which may open its streams.
fn asking(at: SocketAddr, n: u32, params: &str) -> TcpStream {
    let mut control = dial(at, n);
    assert_eq!(hear(&mut control), [9]);
    let len = u32::try_from(params.len()).expect("short").to_be_bytes();
    control.write_all(&[&len, params.as_bytes()].concat()).expect("written");
    control
}

/// iperf3 3.12's client makes its sockets blocking at the end and reads whole blocks of 128 KiB until it hears of the results: it hangs in that
/// read where the server does not close.
#[test]
fn the_data_ends_before_the_results_are_asked_for() {
    served(Limits::default(), |at| {
        let mut control = asking(at, 1, r#"{"tcp":true,"parallel":1,"time":5,"reverse":true}"#);
        assert_eq!(hear(&mut control), [10]);
        let mut data = dial(at, 1);
        assert_eq!(hear(&mut control), [1, 2]);
        let mut block = vec![0; 128 << 10];
        data.read_exact(&mut block).expect("data");
        control.write_all(&[4]).expect("written");
        let rest = std::io::copy(&mut data, &mut std::io::sink());
        assert!(rest.is_ok(), "the end of the data: {rest:?}");
        assert_eq!(hear(&mut control), [13]);
    });
}

#[test]
fn an_amount_is_counted_alike_at_both_sides() {
    served(Limits::default(), |at| {
        for (blocks, parallel) in [(80, 1), (80, 3)] {
            let params = Params { blocks, parallel, ..Params::default() };
            let end = ask(at, params).expect("a test");
            let sum = Sum::of(&end.streams, true);
            let [sent, received] = [sum.sent, sum.received].map(|side| side.expect("known").bytes);
            assert_eq!((sent, received), (blocks * 128 * 1024, blocks * 128 * 1024));
            assert_eq!(end.unread, 0);
        }
    });
}

#[test]
fn hundreds_of_silent_clients_keep_nobody_out() {
    served(Limits { sessions: 2, ..Limits::default() }, |at| {
        // As many that say no cookie, that say nothing after it, and that open no streams.
        let mut held: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(at).expect("connects")).collect();
        held.extend((0..400).map(|n| dial(at, 1000 + n)));
        held.extend((0..40).map(|n| asking(at, 2000 + n, r#"{"tcp":true,"parallel":1,"time":1}"#)));
        let end = ask(at, Params { blocks: 2, parallel: 1, ..Params::default() }).expect("served");
        assert_eq!(Sum::of(&end.streams, true).received.map(|side| side.bytes), Some(256 << 10));
        drop(held);
    });
}

#[test]
fn memory_and_tests_are_those_of_all_clients_together() {
    let limits = Limits { sessions: 1, memory: 4 << 20, ..Limits::default() };
    served(limits, |at| {
        // 128 blocks of a burst of 1 MiB are asked for, and there are 4 MiB.
        let mut large =
            asking(at, 1, r#"{"tcp":true,"parallel":4,"time":1,"len":1048576,"burst":60,"reverse":true}"#);
        assert_eq!(hear(&mut large), [0xfe, 0, 0, 0, 201, 0, 0, 0, 12]);
        // One test runs; the next is told that the server is busy when it would begin.
        let open = |n: u32| {
            let mut control = asking(at, n, r#"{"tcp":true,"parallel":1,"time":30}"#);
            assert_eq!(hear(&mut control), [10]);
            let data = dial(at, n);
            (control, data)
        };
        let mut first = open(2);
        assert_eq!(hear(&mut first.0), [1, 2]);
        let mut second = open(3);
        assert_eq!(hear(&mut second.0), [0xff]);
        drop(first);
        let by = Instant::now() + Duration::from_secs(60);
        let params = Params { blocks: 1, parallel: 1, ..Params::default() };
        while let Err(error) = ask(at, params.clone()) {
            assert!(Instant::now() < by, "{error:?}");
        }
    });
}
