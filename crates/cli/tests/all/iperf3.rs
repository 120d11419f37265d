//! `netdyno iperf3` beside the real iperf3, in both roles; what its server does with hostile clients.

use crate::common::{Net, Ran, Running, eventually, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

const PORT: u16 = 5201;
const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";

/// A server on the sending host's loopback.
fn server(net: &Net, line: &str) -> Running {
    let running = net.start(line);
    eventually("a server listens", || !net.run("ss -ltnH sport = :5201").ok().stdout.is_empty());
    running
}

fn ours(net: &Net, options: &str) -> Running {
    server(net, &format!("netdyno iperf3 -s {options}"))
}

fn ask(net: &Net, program: &str, options: &str) -> Ran {
    net.run(format!("{program} -c 127.0.0.1 {options}"))
}

/// Small tests of every kind. All datagrams of one have room in the receiver's socket, however late it is; of streams
/// there is more than a socket keeps, so that something has been received when all is sent.
const KINDS: [&str; 9] = [
    "-n 8M",
    "-n 8M -R",
    "-n 24M -P 3",
    // By time: an amount may be sent before anything has come back.
    "-t 1 -b 20M --bidir",
    "-n 8M -Z -N -M 1400 -S 0x20",
    "-u -n 80K -l 1400 -b 100M",
    "-u -n 80K -l 1400 -b 100M -R --udp-counters-64bit",
    "-u -t 1 -l 1400 -b 1M --bidir",
    "-u -n 80K -l 1400 -b 100M -P 2 --udp-counters-64bit --repeating-payload",
];

/// What a client's JSON says must agree on both sides.
#[track_caller]
fn both_sides_agree(kind: &str, report: &Value) {
    let end = &report["end"];
    for direction in ["", "_bidir_reverse"] {
        let (sent, received) =
            (&end[format!("sum_sent{direction}")], &end[format!("sum_received{direction}")]);
        if !direction.is_empty() && !kind.contains("--bidir") {
            assert!(sent.is_null(), "{kind}");
            continue;
        }
        let count = |side: &Value| side["bytes"].as_u64().expect("bytes");
        let (sent_bytes, received_bytes) = (count(sent), count(received));
        assert!(sent_bytes > 0 && received_bytes > 0, "{kind}: {end}");
        // What is on its way when the test ends is sent and not received.
        assert!(received_bytes <= sent_bytes, "{kind}: {sent} {received}");
        if kind.starts_with("-u") {
            assert_eq!(received["lost_packets"], 0, "{kind}: {end}");
        }
    }
}

#[test]
fn our_server_serves_iperf3s_clients() {
    let net = Net::new();
    let server = ours(&net, "");
    for kind in KINDS {
        both_sides_agree(kind, &ask(&net, "iperf3", &format!("{kind} -J")).ok().json());
    }
    let text = ask(&net, "iperf3", "-n 1M --get-server-output").ok().stdout;
    assert!(text.contains("Server output:\nAccepted connection from 127.0.0.1"), "{text}");
    assert!(text.contains("1.00 MBytes"), "{text}");
    server.signal("INT");
    let ran = server.wait().ok().says(&["the server has terminated"]);
    assert_eq!(ran.stdout.matches("Accepted connection from").count(), KINDS.len() + 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("Server listening on 5201 (test #1)"), "{}", ran.stdout);
}

#[test]
fn iperf3s_server_serves_our_client() {
    let net = Net::new();
    let _server = server(&net, "iperf3 -s");
    for kind in KINDS {
        both_sides_agree(kind, &ask(&net, "netdyno iperf3", &format!("{kind} -J")).ok().json());
    }
    let text = ask(&net, "netdyno iperf3", "-t 1 -O 1 -b 20M -P 2 -i 0.5 -V --get-server-output").ok().stdout;
    for words in [
        "Connecting to host 127.0.0.1, port 5201\n",
        "(omitted)\n",
        "[SUM]   0.00-0.",
        "Test Complete. Summary Results:\n[ ID] Interval           Transfer     Bitrate         Retr\n",
        "CPU Utilization: local/sender ",
        "Server output:\n",
        "\niperf Done.\n",
    ] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

/// All members of a document and their types. A list's elements are one.
fn members(value: &Value, path: &str, into: &mut BTreeMap<String, &'static str>) {
    match value {
        Value::Object(all) => {
            all.iter().for_each(|(name, value)| members(value, &format!("{path}.{name}"), into))
        }
        Value::Array(all) => all.iter().for_each(|value| members(value, &format!("{path}[]"), into)),
        Value::String(_) => drop(into.insert(path.to_owned(), "string")),
        Value::Number(_) => drop(into.insert(path.to_owned(), "number")),
        Value::Bool(_) => drop(into.insert(path.to_owned(), "bool")),
        Value::Null => drop(into.insert(path.to_owned(), "null")),
    }
}

/// Members that are in ours and not in theirs, where theirs is 3.12: 3.13 to 3.21 have them. A server of ours knows the client's side.
const NEWER: [&str; 9] = [
    ".start.timestamp.timemillisecs",
    ".start.fq_rate",
    ".start.test_start.bidir",
    ".start.test_start.fqrate",
    ".start.test_start.interval",
    ".start.test_start.gso",
    ".start.test_start.gro",
    ".intervals[].streams[].reorder",
    ".end.streams[].sender.reorder",
];
const SERVERS: [&str; 4] = [
    ".end.streams[].sender.retransmits",
    ".end.sum_sent.retransmits",
    ".end.sender_tcp_congestion",
    ".end.receiver_tcp_congestion",
];

#[track_caller]
fn same_members(kind: &str, theirs: &Value, own: &Value, more: &[&str]) {
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    members(theirs, "", &mut expected);
    members(own, "", &mut found);
    for (path, kind_of) in &expected {
        assert_eq!(found.get(path), Some(kind_of), "{kind}: {path}");
    }
    for path in found.keys().filter(|path| !expected.contains_key(*path)) {
        let end = path.split(".server_output_json").last().unwrap_or(path);
        assert!(NEWER.contains(&end) || more.contains(&end), "{kind}: {path} is ours alone");
    }
}

#[test]
fn json_has_iperf3s_members_with_its_types() {
    let net = Net::new();
    let serving = |program: &str| server(&net, &format!("{program} -s -1 -J"));
    for kind in [
        "-n 1M -b 100M --bidir -T title",
        "-u -n 100K -l 1400 -b 50M -P 2 -R",
        "-n 1M -b 100M --get-server-output",
    ] {
        let kind = format!("{kind} -J");
        let theirs = serving("iperf3");
        let reference = ask(&net, "iperf3", &kind).ok().json();
        let reference_server = theirs.wait().ok();
        let theirs = serving("iperf3");
        same_members(&kind, &reference, &ask(&net, "netdyno iperf3", &kind).ok().json(), &[]);
        theirs.wait().ok();
        let own = serving("netdyno iperf3");
        same_members(&kind, &reference, &ask(&net, "iperf3", &kind).ok().json(), &SERVERS);
        same_members(&kind, &reference_server.json(), &own.wait().ok().json(), &SERVERS);
    }
}

#[test]
fn a_stream_of_json_has_a_line_for_each_event() {
    let net = Net::new();
    let _server = ours(&net, "");
    let ran = ask(&net, "netdyno iperf3", "-t 1 -b 10M -i 0.5 --json-stream").ok();
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!((names[0], names[1], names[names.len() - 1]), ("start", "interval", "end"), "{names:?}");
    let bytes = |event: &Value| event["data"]["sum"]["bytes"].as_u64().unwrap_or(0);
    let end = &events[events.len() - 1]["data"]["sum_sent"]["bytes"];
    assert_eq!(events.iter().map(bytes).sum::<u64>(), end.as_u64().expect("bytes"), "{}", ran.stdout);
    let failed = net.run("netdyno iperf3 -c 127.0.0.1 -p 5999 --json-stream").with(1);
    assert!(
        failed.stdout.contains(r#"{"event":"error","data":"unable to connect to server"#),
        "{}",
        failed.stdout
    );
}

#[test]
fn several_clients_at_once_are_served() {
    let net = Net::new();
    let _server = ours(&net, "");
    let lines = [
        "iperf3 -c 127.0.0.1 -t 1 -b 10M -P 2 -J",
        "iperf3 -c 127.0.0.1 -t 1 -b 10M -u -l 1000 --bidir -J",
        "iperf3 -c 127.0.0.1 -t 1 -b 5M -u -l 1000 -R --udp-counters-64bit -J",
        "netdyno iperf3 -c 127.0.0.1 -t 1 -b 10M -R -J",
    ];
    let all = lines.map(|line| (line, net.start(line)));
    for (line, running) in all {
        let report = running.wait().ok().json();
        let kind = line.split("-b").last().unwrap_or(line).to_owned();
        both_sides_agree(
            if line.contains(" -u ") { "-u --bidir" } else { &kind },
            &with_both_directions(report),
        );
    }
}

/// A test of one direction, as if it had gone in both.
fn with_both_directions(mut report: Value) -> Value {
    for name in ["sum_sent", "sum_received"] {
        let (of, reverse) = (report["end"][name].clone(), format!("{name}_bidir_reverse"));
        if report["start"]["test_start"]["protocol"] == "UDP" && report["end"][&reverse].is_null() {
            report["end"][reverse] = of;
        }
    }
    report
}

/// A connection to the server inside the namespace.
fn dial(net: &Net) -> TcpStream {
    let dialled = net.lab.sender.namespace.run_in(|| TcpStream::connect(("127.0.0.1", PORT)));
    let stream = dialled.expect("a namespace").expect("a server");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

fn hear(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).expect("an answer");
    bytes
}

/// Parameters as they go over the wire, of a client whose cookie was taken.
fn asking(net: &Net, cookie: &[u8; 37], params: &str) -> TcpStream {
    let mut stream = dial(net);
    stream.write_all(cookie).expect("written");
    assert_eq!(hear(&mut stream, 1), [9]);
    let len = u32::try_from(params.len()).expect("short").to_be_bytes();
    stream.write_all(&[&len, params.as_bytes()].concat()).expect("written");
    stream
}

/// A server that takes one stream over TCP, and then says this of it. `GOT` stands for the bytes that it got.
fn says(net: &Net, results: &str) -> std::thread::JoinHandle<()> {
    let (namespace, results) =
        (net.lab.sender.namespace.try_clone().expect("a namespace"), results.to_owned());
    let (ready, listening) = std::sync::mpsc::channel();
    let serving = std::thread::spawn(move || {
        namespace.enter_current_thread().expect("a namespace");
        // (A process that another test is just starting holds the last listener until it is another program.)
        let mut tries = 0;
        let listener = loop {
            match std::net::TcpListener::bind(("127.0.0.1", PORT)) {
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && tries < 100 => {
                    tries += 1;
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                bound => break bound.expect("a port"),
            }
        };
        ready.send(()).expect("somebody waits");
        let mut control = listener.accept().expect("a client").0;
        let len =
            |control: &mut TcpStream| u32::from_be_bytes(hear(control, 4).try_into().expect("four")) as usize;
        hear(&mut control, 37);
        control.write_all(&[9]).expect("written");
        let params = len(&mut control);
        hear(&mut control, params);
        control.write_all(&[10]).expect("written");
        let mut data = listener.accept().expect("a stream").0;
        hear(&mut data, 37);
        control.write_all(&[1, 2]).expect("written");
        let got = std::thread::spawn(move || std::io::copy(&mut data, &mut std::io::sink()).unwrap_or(0));
        hear(&mut control, 1);
        control.write_all(&[13]).expect("written");
        let theirs = len(&mut control);
        hear(&mut control, theirs);
        let results = results.replace("GOT", "8388608");
        control.write_all(&(results.len() as u32).to_be_bytes()).expect("written");
        control.write_all(results.as_bytes()).expect("written");
        // Who does not believe it says no more.
        let _ = control.write_all(&[14]);
        let _ = control.read(&mut [0; 9]);
        drop(control);
        let _ = got.join();
    });
    listening.recv().expect("a server");
    serving
}

#[test]
fn figures_of_a_server_that_cannot_be_are_refused() {
    let net = Net::new();
    let of = |stream: &str| format!("{{\"cpu_util_total\":1,\"streams\":[{stream}]}}");
    let of_it = |options: &str, stream: &str, status: i32, said: &str| {
        let server = says(&net, &of(stream));
        let ran = ask(&net, "netdyno iperf3", options).with(status);
        assert!(ran.stderr.contains(said) && !ran.stdout.contains("inf "), "{options} {stream}: {ran:?}");
        server.join().expect("a server");
    };
    // It sent nothing: what one buffer holds may be on its way, and no more than that.
    of_it(
        "-R -t 1",
        r#"{"id":1,"bytes":3000000000,"end_time":1.0}"#,
        1,
        "sent 3000000000 bytes, and 0 arrived",
    );
    for (stream, status, said) in [
        (r#"{"id":1,"bytes":GOT,"end_time":1.0}"#, 0, ""),
        // More than was sent.
        (r#"{"id":1,"bytes":18446744073709551615,"end_time":1.0}"#, 1, "what was received is not known"),
        (r#"{"id":1,"bytes":GOT,"end_time":-5}"#, 1, "end_time is -5e0 seconds"),
        (r#"{"id":1,"bytes":GOT,"end_time":1e300}"#, 1, "end_time is 1e300 seconds"),
        (r#"{"id":1,"bytes":GOT,"end_time":1.0,"jitter":-1}"#, 1, "jitter is -1e0 seconds"),
        (r#"{"id":1,"bytes":GOT,"end_time":1.0,"errors":9}"#, 1, "lost 9 of 0 datagrams"),
        (r#"{"id":7,"bytes":GOT,"end_time":1.0}"#, 1, "stream 1 is missing"),
        (r#"{"id":1,"bytes":GOT,"end_time":500000}"#, 1, "a stream took 500000 seconds"),
        // A time of which there is no rate is none.
        (r#"{"id":1,"bytes":GOT,"end_time":1e-300}"#, 0, ""),
    ] {
        of_it("-n 8M", stream, status, said);
    }
}

/// Debian's iperf3 is killed while data flows, at either end: who is left ends soon, says what it has and that it is not whole, and
/// the server serves the next.
#[test]
fn an_iperf3_that_is_killed_in_the_middle_is_no_test_that_was_done() {
    let net = Net::new();
    for options in ["-t 9", "-t 9 -R", "-t 9 -u -b 5M -R", "-t 9 --bidir"] {
        let theirs = server(&net, "iperf3 -s");
        let running = net.start(format!("netdyno iperf3 -c 127.0.0.1 {options} -J"));
        std::thread::sleep(Duration::from_millis(1500));
        let began = Instant::now();
        theirs.signal("KILL");
        theirs.wait();
        let ran = running.wait().with(1);
        assert!(began.elapsed() < Duration::from_secs(20), "{options}: {:?}", began.elapsed());
        let end = ran.json();
        assert!(end["error"].as_str().is_some_and(|said| said.contains("closed")), "{options}: {end}");
    }
    let serving = server(&net, "netdyno iperf3 -s");
    for options in ["-t 9", "-t 9 -R", "-t 9 -u -b 5M", "-t 9 --bidir"] {
        let theirs = net.start(format!("iperf3 -c 127.0.0.1 {options}"));
        std::thread::sleep(Duration::from_millis(1000));
        theirs.signal("KILL");
        theirs.wait();
        // Its end is seen when its connections close; until then the server is busy with it.
        eventually("the next client is served", || ask(&net, "iperf3", "-n 100K").status == 0);
    }
    serving.signal("INT");
    let said = serving.wait();
    let said = format!("{}{}", said.stdout, said.stderr);
    assert_eq!(said.matches("closed unexpectedly").count(), 4, "{said}");
}

#[test]
fn hostile_clients_are_told_what_is_wrong_and_the_next_is_served() {
    let net = Net::new();
    let server = ours(&net, "");
    let cookie = |n: u8| {
        let mut cookie = *COOKIE;
        cookie[0] = b'a' + n;
        cookie
    };
    // Garbage for a cookie: closed without a word.
    let mut garbage = dial(&net);
    garbage.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").expect("written");
    assert_eq!(garbage.read(&mut [0; 9]).unwrap_or(0), 0);
    // Parameters that cannot be: SERVER_ERROR, 114, no errno.
    for (n, params) in [
        r#"{"tcp":true,"parallel":1000000000}"#,
        r#"{"tcp":true,"len":9223372036854775808}"#,
        r#"{"udp":true,"len":1}"#,
        r#"{"time":5}"#,
        "{",
        "[]",
    ]
    .iter()
    .enumerate()
    {
        let mut stream = asking(&net, &cookie(n as u8), params);
        assert_eq!(hear(&mut stream, 9), [0xfe, 0, 0, 0, 114, 0, 0, 0, 0], "{params}");
    }
    let mut long = dial(&net);
    long.write_all(&cookie(10)).expect("written");
    assert_eq!(hear(&mut long, 1), [9]);
    long.write_all(&[0x80, 0, 0, 0, b'{']).expect("written");
    assert_eq!(hear(&mut long, 9)[..5], [0xfe, 0, 0, 0, 114]);
    // Clients that vanish after each step, in the midst of one too.
    drop(dial(&net));
    let mut vanishing = dial(&net);
    vanishing.write_all(&COOKIE[..20]).expect("written");
    drop(vanishing);
    drop(asking(&net, &cookie(11), r#"{"tcp":true,"parallel":1,"time":1}"#));
    let mut opened = asking(&net, &cookie(12), r#"{"tcp":true,"parallel":1,"time":1}"#);
    assert_eq!(hear(&mut opened, 1), [10]);
    let mut data = dial(&net);
    data.write_all(&cookie(12)).expect("written");
    assert_eq!(hear(&mut opened, 2), [1, 2]);
    // A second connection with a cookie whose streams are all there.
    let mut more = dial(&net);
    more.write_all(&cookie(12)).expect("written");
    assert_eq!(hear(&mut more, 1), [0xff]);
    drop((opened, data));
    // One that waits for its streams while others are served.
    let mut waiting = asking(&net, &cookie(13), r#"{"udp":true,"parallel":1,"time":1}"#);
    assert_eq!(hear(&mut waiting, 1), [10]);
    both_sides_agree("-n", &ask(&net, "iperf3", "-n 1M -J").ok().json());
    drop(waiting);
    both_sides_agree("-u", &ask(&net, "iperf3", "-u -n 100K -l 1000 -b 50M -J").ok().json());
    server.signal("TERM");
    server.wait().ok().says(&["parallel is 1000000000", "2147483648 bytes of them are announced"]);
}

#[test]
fn nobody_is_sent_datagrams_who_did_not_ask_over_tcp() {
    let net = Net::new();
    let _server = ours(&net, "");
    let hello = 0x3637_3839u32.to_le_bytes();
    let socket = net.lab.sender.namespace.run_in(|| UdpSocket::bind("127.0.0.1:0")).expect("a namespace");
    let socket = socket.expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let mut answer = [0; 100];
    socket.send_to(&hello, ("127.0.0.1", PORT)).expect("sent");
    assert!(socket.recv(&mut answer).is_err(), "an answer to nobody's client");
    // A session over TCP waits for streams of TCP: neither.
    let mut tcp = asking(&net, COOKIE, r#"{"tcp":true,"parallel":1,"time":1}"#);
    assert_eq!(hear(&mut tcp, 1), [10]);
    socket.send_to(&hello, ("127.0.0.1", PORT)).expect("sent");
    assert!(socket.recv(&mut answer).is_err(), "an answer to a client of TCP");
    drop(tcp);
    let mut other = *COOKIE;
    other[0] = b'z';
    let mut udp = asking(&net, &other, r#"{"udp":true,"parallel":1,"time":1}"#);
    assert_eq!(hear(&mut udp, 1), [10]);
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    socket.send_to(&hello, ("127.0.0.1", PORT)).expect("sent");
    // As long as what was sent.
    assert_eq!(socket.recv(&mut answer).expect("an answer"), hello.len());
}

#[test]
fn whoever_is_not_known_does_not_test() {
    let net = Net::new();
    let (key, public, users) = (net.file("key.pem"), net.file("public.pem"), net.file("users"));
    net.run(format!("openssl genrsa -out {key} 2048")).ok();
    net.run(format!("openssl rsa -in {key} -pubout -out {public}")).ok();
    // SHA-256 of "{mario}rossi".
    let hash = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";
    std::fs::write(&users, format!("# name,hash\nmario,{hash}\n")).expect("written");
    let with = |program: &str, password: &str, padding: &str| {
        let mut command = net.command(format!(
            "{program} -c 127.0.0.1 -n 100K --username mario --rsa-public-key-path {public} {padding}"
        ));
        command.env("IPERF3_PASSWORD", password);
        crate::common::start(command).wait()
    };
    let keys = format!("--rsa-private-key-path {key} --authorized-users-path {users}");
    let server = ours(&net, &keys);
    with("netdyno iperf3", "rossi", "").ok();
    with("netdyno iperf3", "verdi", "").with(1).says(&["test authorization failed"]);
    ask(&net, "iperf3", "-n 100K").with(1).says(&["authorization failed"]);
    server.signal("INT");
    server.wait().ok().says(&["unknown user or wrong password", "the client sent no token"]);
    // Debian's 3.12 has the older padding; what is newer takes ours.
    let _server = ours(&net, &format!("{keys} --use-pkcs1-padding"));
    let older = net.run("iperf3 -v").ok().stdout.starts_with("iperf 3.1");
    with("iperf3", "rossi", if older { "" } else { "--use-pkcs1-padding" }).ok();
}

#[test]
fn a_servers_limits_hold() {
    let net = Net::new();
    let server = ours(&net, "--server-max-duration 5 --server-bitrate-limit 10M");
    ask(&net, "netdyno iperf3", "-t 6").with(1).says(&["maximum permitted limit"]);
    ask(&net, "netdyno iperf3", "-t 1 -b 6M -P 2").with(1).says(&["larger than server limit"]);
    ask(&net, "iperf3", "-n 100K -b 6M").ok();
    server.signal("INT");
    server.wait().ok();
}

#[test]
fn a_client_that_is_ended_shows_what_it_has_and_says_so() {
    let net = Net::new();
    let server = ours(&net, "-1");
    let log = net.file("client.log");
    let client = net.start(format!("netdyno iperf3 -c 127.0.0.1 -t 600 -b 10M -i 0.1 --logfile {log}"));
    eventually("intervals", || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("0.10-")));
    client.signal("INT");
    client.wait().ok().says(&["interrupt - the client has terminated"]);
    let text = std::fs::read_to_string(&log).expect("a log");
    assert!(text.contains("sender\n") && !text.contains("iperf Done"), "{text}");
    server.wait().with(1).says(&["the client has terminated"]);
}

#[test]
fn files_go_from_client_to_server() {
    let net = Net::new();
    let (from, to) = (net.file("from"), net.file("to"));
    let content: Vec<u8> = (0..300_007u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&from, &content).expect("written");
    let server = ours(&net, &format!("-1 -F {to}"));
    let line = ask(&net, "netdyno iperf3", &format!("-F {from} -n 10M")).ok().stdout;
    let share = |text: &str| text.lines().find(|line| line.starts_with("        Sent ")).map(str::to_owned);
    server.wait().ok().says(&["it stays root: -F"]);
    assert_eq!(std::fs::read(&to).expect("a file"), content);
    // As iperf3 says it.
    let theirs = ours(&net, "-1");
    let reference = ask(&net, "iperf3", &format!("-F {from} -t 1")).ok().stdout;
    theirs.wait().ok();
    assert!(share(&line).is_some(), "{line}");
    assert_eq!(share(&line), share(&reference), "{reference}");
    let own = ours(&net, "-1");
    let report = ask(&net, "netdyno iperf3", &format!("-F {from} -n 10M -J")).ok().json();
    own.wait().ok();
    let file = &report["end"]["streams"][0]["diskfile"];
    assert_eq!((&file["sent"], &file["size"]), (&300_007.into(), &300_007.into()), "{file}");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    for (line, words) in [
        ("-c h --sctp", "--sctp is not supported"),
        ("-c h -L 1048576", "a flow label is 1 to 1048575"),
        ("-c h --cntl-ka=5/5/3", "IDLE is longer than INTV times CNT"),
        ("-c h -u -Z", "-Z is not supported"),
        ("-s -R", "-R is an option of the client"),
        ("-c h -1", "-1 is an option of the server"),
        ("-c h -i 0.01", "-i 0.01"),
        ("-c h -l 2M", "-l 2M"),
        ("-c h -u -l 8", "a datagram has 16 bytes at least"),
        ("-c h -b fast", "-b fast"),
        ("-c h --dscp af44", "--dscp af44"),
        ("-c h -S 256", "-S 256"),
    ] {
        run(format!("netdyno iperf3 {line}")).refused(&[words]);
    }
    for line in ["-s -c h", "", "-c h -t 1 -n 1", "-c h -R --bidir", "-c h -P 129"] {
        run(format!("netdyno iperf3 {line}")).with(2);
    }
}

/// iperf3 itself is the judge of both roles.
#[test]
fn jobs_of_a_file_test_with_iperf3_and_serve_it() {
    let net = Net::new();
    let job = |name: &str, members: &str| {
        let path = net.dir.path().join(name);
        std::fs::write(&path, format!("schema: netdyno.job/1\n{members}\n")).expect("written");
        path.display().to_string()
    };
    let bytes = |of: &Value, name: &str| of[name].as_u64().expect("bytes");
    let asks = job("asks.yaml", "kind: iperf3\nhost: 127.0.0.1\nbytes: 8M\ninterval: 0");
    net.run(format!("netdyno run {asks} --json -q")).refused(&["127.0.0.1"]);
    let theirs = server(&net, "iperf3 -s");
    let report = net.run(format!("netdyno run {asks} --allow-address 127.0.0.1 --json -q")).ok().json();
    let stream = &report["result"]["endpoint"]["streams"][0];
    assert_eq!((&stream["from_client"], &report["command"]), (&true.into(), &"iperf3".into()), "{report}");
    assert_eq!((bytes(stream, "sent_bytes"), bytes(stream, "received_bytes")), (8_000_000, 8_000_000));
    assert_eq!(
        (&report["requested"]["kind"], &report["requested"]["bytes"]),
        (&"iperf3".into(), &"8M".into())
    );
    theirs.signal("TERM");
    theirs.wait();
    let serves = job("serves.yaml", "kind: iperf3-server\none_off: true");
    let ours = server(&net, &format!("netdyno run {serves} --json -q"));
    let asked = ask(&net, "iperf3", "-n 8M -J").ok().json();
    let served = ours.wait().ok().json()["result"]["served"].clone();
    let received = bytes(&asked["end"]["sum_received"], "bytes");
    assert_eq!((bytes(&served, "tests"), bytes(&served, "bytes")), (1, received), "{served}");
    assert_eq!((bytes(&served, "broken_tests"), bytes(&served, "refused_connections")), (0, 0), "{served}");
}
