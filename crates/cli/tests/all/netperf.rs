//! `netdyno netperf` and `netdyno netserver`: against each other over a cable, against the bytes of netperf's protocol, against
//! peers that mean no good, and under flent.

use crate::common::{Net, Ran, Running, command, folder, path, run, start};
use ::lab::Options;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::time::Duration;

const LENGTH: usize = 656;

/// A server on the loopback interface, on a port that nobody else has, and the port.
fn serving(options: &str) -> (Running, u16) {
    let mut server = start(command(format!("netdyno netserver -D -p 0 -L 127.0.0.1 {options}")));
    server.until_it_says("serving netperf at 127.0.0.1:");
    let said = server.said();
    let (_, at) = said.split_once("127.0.0.1:").expect("an address");
    let port = at.lines().next().expect("a line").trim().parse().expect("a port");
    (server, port)
}

fn netperf(port: u16, options: &str) -> Ran {
    run(format!("netdyno netperf -H 127.0.0.1 -p {port} {options}"))
}

/// What a line of numbers says in this place.
fn value(ran: &Ran, name: &str) -> f64 {
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let line = line.unwrap_or_else(|| panic!("no {name} in {}", ran.stdout));
    line.parse().unwrap_or_else(|_| panic!("{name} is no number: {line}"))
}

/// A message as it is on the wire: words in hexadecimal, bars for the eye; the rest is zero.
fn message(words: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words.split_whitespace().filter(|word| *word != "|")) {
        place.copy_from_slice(&u32::from_str_radix(word, 16).expect("a word").to_be_bytes());
    }
    bytes
}

fn word(message: &[u8], n: usize) -> u32 {
    u32::from_be_bytes(message[4 * n..4 * n + 4].try_into().expect("four bytes"))
}

fn receive(stream: &mut TcpStream) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    stream.read_exact(&mut bytes).expect("a message");
    bytes
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    stream
}

/// What netperf 2.7.1 sends for `netperf -l 1 -- -m 100`, and, built without the omni test, for `-t TCP_RR -l 1 -- -r 64,128`.
const STREAM: &str = "61 ffffffff | ffffffff ffffffff 8 0 a4 ffffffff | ffffffff ffffffff 8 0 0 ffffffff |
    20 0 1 0 0 ffffffff ffffffff ffffffff | 0 4 1 6 4 0 0 0 | 0 0 0 0 0 0 0 0 | ffffffff ffffffff";
const LEGACY_RR: &str = "d ffffffff | ffffffff ffffffff 8 0 8 0 40 80 0 0 0 1 0 0 0 4";

#[test]
fn every_test_runs_between_two_hosts() {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    let mut server = net.start_there("netdyno netserver -D -4");
    server.until_it_says("serving netperf at 0.0.0.0:12865");
    let netperf = |options: &str| net.run(format!("netdyno netperf -H 198.18.0.2 -P 0 {options}")).ok();
    let bytes = "-k LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD,THROUGHPUT";
    for test in ["TCP_STREAM", "TCP_SENDFILE"] {
        let ran = netperf(&format!("-t {test} -l -1000000 -- {bytes}"));
        assert_eq!(value(&ran, "LOCAL_BYTES_SENT"), 1e6, "{test}");
        assert_eq!(value(&ran, "REMOTE_BYTES_RECVD"), 1e6, "{test}");
        assert!(value(&ran, "THROUGHPUT") > 0.0, "{test}");
    }
    let ran = netperf(&format!("-t TCP_MAERTS -l -1000000 -- {bytes}"));
    assert_eq!((value(&ran, "REMOTE_BYTES_SENT"), value(&ran, "LOCAL_BYTES_RECVD")), (1e6, 1e6));
    for test in ["TCP_RR", "TCP_CRR", "UDP_RR"] {
        let ran = netperf(&format!("-t {test} -l -50 -- -r 10,20 {bytes},TRANSACTION_RATE"));
        assert_eq!(
            (value(&ran, "LOCAL_BYTES_SENT"), value(&ran, "LOCAL_BYTES_RECVD")),
            (500.0, 1000.0),
            "{test}"
        );
        assert_eq!(
            (value(&ran, "REMOTE_BYTES_RECVD"), value(&ran, "REMOTE_BYTES_SENT")),
            (500.0, 1000.0),
            "{test}"
        );
        assert!(value(&ran, "TRANSACTION_RATE") > 0.0, "{test}");
    }
    let ran = netperf("-t TCP_CC -l -50");
    assert!(ran.stdout.starts_with("16384  131072 1        1       "), "{}", ran.stdout);
    // Datagrams: all that were counted as received were sent.
    let ran = netperf(&format!(
        "-t UDP_STREAM -l 1 -c -C -- -m 1000 {bytes},LOCAL_CPU_METHOD,REMOTE_CPU_METHOD,LOCAL_SD"
    ));
    let (sent, received) = (value(&ran, "LOCAL_BYTES_SENT"), value(&ran, "REMOTE_BYTES_RECVD"));
    assert!(received > 0.0 && received <= sent && sent % 1000.0 == 0.0, "{sent} {received}");
    assert!(ran.stdout.contains("\nLOCAL_CPU_METHOD=S\nREMOTE_CPU_METHOD=S\n"), "{}", ran.stdout);
    assert!(value(&ran, "LOCAL_SD") >= 0.0);
    // Article D's command lines.
    let ran =
        net.run("netdyno netperf -H 198.18.0.2 -l -1000000 -t TCP_STREAM -- -s 128k -S 128k -C -D").ok();
    assert!(ran.stdout.contains(" AF_INET : nodelay : demo\nRecv   Send    Send "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n256000 256000 256000    "), "{}", ran.stdout);
    let ran =
        net.run("netdyno netperf -H 198.18.0.2 -l -2 -t TCP_RR -- -r 64,64k -s 128k -S 128k -C -D").ok();
    assert!(ran.stdout.contains("\n256000 256000 64       64000   "), "{}", ran.stdout);
    server.signal("TERM");
    server.wait().ok();
}

#[test]
fn a_server_answers_netperfs_own_bytes() {
    let (server, port) = serving("");
    let mut control = connect(port);
    // Twice over one connection, as with -i.
    for bytes in [1000, 250_000] {
        control.write_all(&message(STREAM)).expect("a request");
        let response = receive(&mut control);
        assert_eq!((word(&response, 0), word(&response, 1)), (98, 0));
        // SO_RCVBUF, what each receive asks for, SO_SNDBUF.
        assert!(word(&response, 2) > 0 && word(&response, 3) == word(&response, 2) && word(&response, 5) > 0);
        let mut data = connect(word(&response, 2 + 11) as u16);
        data.write_all(&vec![7; bytes]).expect("data");
        data.shutdown(Shutdown::Write).expect("an end");
        assert_eq!(data.read(&mut [0; 1]).expect("the server's end"), 0);
        let results = receive(&mut control);
        // netserver's header, in a little-endian host's order.
        assert_eq!(results[..8], [0x62, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((word(&results, 2), word(&results, 3)), (0, bytes as u32));
        assert!(f32::from_bits(word(&results, 2 + 10)) > 0.0);
        let name = &results[276..292];
        assert!(name[0].is_ascii_lowercase() && name.contains(&0), "{name:?}");
    }
    control.write_all(&message(LEGACY_RR)).expect("a request");
    let response = receive(&mut control);
    assert_eq!((word(&response, 0), word(&response, 1), word(&response, 2 + 3)), (14, 0, 1));
    let mut data = connect(word(&response, 2 + 5) as u16);
    for _ in 0..3 {
        data.write_all(&[1; 64]).expect("a request");
        data.read_exact(&mut [0; 128]).expect("a response");
    }
    // This one's connection is never closed: it ends by its time, and soon after.
    let results = receive(&mut control);
    assert_eq!((word(&results, 0), word(&results, 1)), (15, 0));
    assert_eq!((word(&results, 2), word(&results, 4)), (192, 3));
    // What is not known.
    control.write_all(&message("1f5 0")).expect("a request");
    assert_eq!(word(&receive(&mut control), 1), 998);
    control.shutdown(Shutdown::Write).expect("an end");
    assert_eq!(control.read(&mut [0; 1]).expect("the server's end"), 0);
    server.signal("INT");
    server.wait().ok();
}

/// A netserver of bytes: tells what it was asked, and answers with these.
fn netserver(
    play: impl FnOnce(TcpStream, TcpListener) + Send + 'static,
) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let data = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let server = std::thread::spawn(move || {
        let (control, _) = listener.accept().expect("a client");
        control.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        play(control, data);
    });
    (port, server)
}

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().expect("an address").port()
}

#[test]
fn a_client_sends_netperfs_own_bytes() {
    let (port, server) = netserver(|mut control, data| {
        let request = receive(&mut control);
        assert_eq!(request, message(STREAM));
        let port = port_of(&data);
        let response =
            format!("62 0 | 20000 20000 2 4000 ffffffff 0 0 0 1 0 0 {port:x} 0 0 0 0 ffffffff ffffffff");
        control.write_all(&message(&response)).expect("a response");
        let (mut data, _) = data.accept().expect("data");
        let bytes = std::io::copy(&mut data, &mut std::io::sink()).expect("an end") as u32;
        assert!(bytes > 0);
        drop(data);
        // 1 s, 2.5 % of the processors, by /proc/stat.
        let results = format!("62000000 0 | 0 {bytes:x} 5 20000 0 0 0 4000 0 0 3f800000");
        control.write_all(&message(&results)).expect("results");
        assert_eq!(control.read(&mut [0; 1]).expect("the client's end"), 0);
    });
    let ran = netperf(port, "-l 1 -P 0 -B mark -- -m 100").ok();
    server.join().expect("a server that was asked what it expected");
    assert!(ran.stdout.starts_with("131072  16384    100    1.0"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("   mark\n"), "{}", ran.stdout);
}

#[test]
fn a_server_without_the_omni_test_is_asked_in_its_own_words() {
    let (port, server) = netserver(|mut control, data| {
        assert_eq!(word(&receive(&mut control), 0), 97);
        control.write_all(&message("61 3e6")).expect("an answer");
        // Sizes of buffers are -1 where they are the system's.
        let wanted = message("d ffffffff | ffffffff ffffffff 8 0 8 0 40 80 0 0 0 fffffffd 0 0 0 4");
        assert_eq!(receive(&mut control), wanted);
        let port = port_of(&data);
        control.write_all(&message(&format!("e 0 | 20000 0 0 fffffffd 4000 {port:x}"))).expect("a response");
        let (mut data, _) = data.accept().expect("data");
        for _ in 0..3 {
            data.read_exact(&mut [0; 64]).expect("a request");
            data.write_all(&[0; 128]).expect("a response");
        }
        assert_eq!(data.read(&mut [0; 1]).expect("the client's end"), 0);
        drop(data);
        control.write_all(&message("f 0 | c0 3 3 3f800000 bf800000 bf800000")).expect("results");
    });
    let ran = netperf(port, "-t TCP_RR -l -3 -P 0 -- -r 64,128 -k REMOTE_BYTES_RECVD,LOCAL_BYTES_RECVD").ok();
    server.join().expect("a server that was asked what it expected");
    assert_eq!(ran.stdout, "REMOTE_BYTES_RECVD=192\nLOCAL_BYTES_RECVD=384\n");
}

#[test]
fn servers_that_mean_no_good_are_told_apart() {
    type Play = fn(TcpStream, TcpListener);
    let cases: [(Play, &str); 7] = [
        (|control, _| drop(control), "closed the control connection"),
        (
            |mut control, _| {
                receive(&mut control);
            },
            "closed the control connection",
        ),
        (
            |mut control, _| {
                receive(&mut control);
                control.write_all(&[1; 100]).expect("half a message");
            },
            "in the middle of a message",
        ),
        (
            |mut control, _| {
                receive(&mut control);
                control.write_all(&[b'H'; LENGTH]).expect("garbage");
                let _ = control.read(&mut [0; 1]);
            },
            "is it a netserver?",
        ),
        (
            |mut control, _| {
                receive(&mut control);
                control.write_all(&message("62 d")).expect("a refusal");
                let _ = control.read(&mut [0; 1]);
            },
            "Permission denied",
        ),
        (
            |mut control, _| {
                receive(&mut control);
                let absurd =
                    "62 0 | 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 0 0 1 0 0 ffffffff";
                control.write_all(&message(absurd)).expect("a response");
                let _ = control.read(&mut [0; 1]);
            },
            "its port is 4294967295",
        ),
        (
            |mut control, data| {
                receive(&mut control);
                let response = format!("62 0 | 20000 20000 2 4000 4000 2 0 0 1 0 0 {:x}", port_of(&data));
                control.write_all(&message(&response)).expect("a response");
                // It takes the data connection and goes away with both.
                let _ = data.accept();
            },
            "netdyno: the ",
        ),
    ];
    for (play, words) in cases {
        let (port, server) = netserver(play);
        netperf(port, "-P 0 -l -100000000").refused(&[words]);
        server.join().expect("a server");
    }
    let free = port_of(&TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener"));
    netperf(free, "-P 0 -l -1").refused(&["are you sure there is a netserver at 127.0.0.1", "refused"]);
}

#[test]
fn clients_that_mean_no_good_keep_nobody_out() {
    let (mut server, port) = serving("-v 1");
    // Garbage, half a message, nothing, and whoever asks for data and never comes: all stay.
    let mut held = Vec::new();
    for bytes in [&[0xff; LENGTH][..], &[0; 100], &[], &message(STREAM)] {
        let mut client = connect(port);
        client.write_all(bytes).expect("bytes");
        held.push(client);
    }
    assert_eq!(word(&receive(&mut held[0]), 1), 998);
    receive(&mut held[3]);
    // Gone in the middle of a message, and with its data connection open.
    connect(port).write_all(&[9; 10]).expect("bytes");
    let mut gone = connect(port);
    gone.write_all(&message(STREAM)).expect("a request");
    let mut data = connect(word(&receive(&mut gone), 13) as u16);
    data.write_all(&[1; 1000]).expect("data");
    drop(gone);
    assert_eq!(
        data.read(&mut [0; 1]).unwrap_or(0),
        0,
        "who has no control connection any more has no data connection"
    );
    // Absurd sizes, numbers of protocols and ports, and files of the server's: by number, and the connection goes on.
    let mut client = connect(port);
    let absurd = [
        (STREAM.replace("1 6 4 0", "1 84 4 0"), 93),
        (
            "61 0 | 0 7fffffff 8 0 0 7fffffff | 0 7fffffff 8 0 0 7fffffff | 0 0 1 0 0 0 0 0 | 0 4 1 6 6 0"
                .to_owned(),
            90,
        ),
        ("61 0 | 0 0 8 0 0 ffffffff | 0 0 8 0 0 ffffffff | 0 0 1 0 0 0 0 0 | 10000 4 1 6 4 0".to_owned(), 22),
        ("10 0 | 0 7fffffff 0 8 0 0 0 0 1 0 0 0 4".to_owned(), 90),
    ];
    for (words, errno) in absurd {
        client.write_all(&message(&words)).expect("a request");
        assert_eq!(word(&receive(&mut client), 1), errno, "{words}");
    }
    let mut file = message(STREAM);
    file[8 + 42 * 4..8 + 42 * 4 + 11].copy_from_slice(b"/etc/passwd");
    client.write_all(&file).expect("a request");
    assert_eq!(word(&receive(&mut client), 1), 13);
    // And whoever comes next is served.
    netperf(port, "-P 0 -l -100000").ok();
    server.until_it_says("in the middle of a message");
    drop(held);
    server.signal("TERM");
    server.wait().ok();
}

#[test]
fn the_passphrase_is_wanted_of_everybody() {
    let (server, port) = serving("-Z secret");
    netperf(port, "-P 0 -l -1000 -Z secret").ok();
    for wrong in ["", "-Z secre", "-Z wrong"] {
        netperf(port, &format!("-P 0 -l -1000 {wrong}")).refused(&["passphrase"]);
    }
    drop(server);
}

#[test]
fn several_clients_are_served_at_once_and_each_repeats_its_test() {
    let (server, port) = serving("");
    let long = start(command(format!("netdyno netperf -H 127.0.0.1 -p {port} -P 0 -l 3 -t TCP_RR")));
    let ran = netperf(
        port,
        "-l -1000 -i 4,3 -I 95,200 -t TCP_RR -- -k CONFIDENCE_ITERATION,CONFIDENCE_LEVEL,THROUGHPUT",
    )
    .ok();
    assert!(ran.stdout.contains(" : +/-100.000% @ 95% conf.  : demo : first burst 0\n"), "{}", ran.stdout);
    assert!((3.0..=4.0).contains(&value(&ran, "CONFIDENCE_ITERATION")));
    // The first one is still at it; a signal ends it with its result.
    long.signal("INT");
    let ran = long.wait().with(1).says(&["a signal ended it before its time"]);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    drop(server);
}

#[test]
fn links_with_their_names_are_netperf_and_netserver_and_flent_takes_them() {
    let dir = folder();
    for name in ["netperf", "netserver"] {
        symlink(env!("CARGO_BIN_EXE_netdyno"), dir.path().join(name)).expect("a link");
    }
    let (server, port) = serving("");
    let mut netperf = command(path(&dir, "netperf"));
    netperf.args(["-p", &port.to_string(), "-P", "0", "-v", "0", "-l", "-1000"]);
    let ran = start(netperf).wait().ok();
    assert!(ran.stdout.trim().parse::<f64>().expect("one number") > 0.0);
    // flent asks whether there is netperf with -D and -e, runs it, and reads interim results and what is selected.
    let places = format!("{}:{}", dir.path().display(), std::env::var("PATH").expect("a path"));
    let mut flent =
        command("flent tcp_1up_noping -l 1 -s 0.2 -f summary -H 127.0.0.1 --netperf-control-port");
    flent.arg(port.to_string()).arg("-D").arg(dir.path()).env("PATH", places);
    let ran = start(flent).wait().ok();
    let line =
        ran.stdout.lines().find(|line| line.contains("TCP upload")).unwrap_or_else(|| panic!("{ran:?}"));
    let average = line.split_whitespace().nth(3).and_then(|word| word.parse::<f64>().ok());
    assert!(average.is_some_and(|average| average > 0.0), "{line}");
    drop(server);
}

#[test]
fn what_is_not_there_is_refused_by_name_and_selectors_are_listed() {
    for (options, words) in [
        ("-N", "-N: a test without a control connection is not supported"),
        ("-w 10 -b 4", "-w: sends in intervals is not supported"),
        ("-t SCTP_STREAM", "the test SCTP_STREAM is not supported: TCP_* and UDP_*"),
        ("-t LOC_CPU", "/proc/stat"),
        ("-f q", "-f q: there are G, M, K"),
        ("-H 127.0.0.1/8", "with a mask"),
        ("-- -l 5", "-l (behind --): multicast is not supported"),
        ("-- -m 1x", "-m 1x: a number is expected"),
        ("-- -Z", "invalid option -- 'Z'"),
        ("-I 90", "only 95 and 99 %"),
        ("-t UDP_STREAM -l -100", "-l -100: datagrams may be lost"),
        ("-t TCP_STREAM -- -b 4", "-b: only TCP_RR and UDP_RR"),
        ("-- -k nosuch", "neither an output selector"),
        ("-F /nosuch", "-F /nosuch"),
        ("extra", "a word without an option"),
    ] {
        run(format!("netdyno netperf -P 0 {options}")).refused(&[words]);
    }
    run("netdyno netserver -D -n 4").refused(&["-n: a number of processors"]);
    let ran = run("netdyno netperf -- -k ?").ok();
    assert!(ran.stdout.starts_with("OUTPUT_NONE,SOCKET_TYPE,PROTOCOL,DIRECTION,"), "{}", ran.stdout);
    assert_eq!(ran.stdout.trim().split(',').count(), 175);
    assert_eq!(run("netdyno netperf -t UUID").ok().stdout.len(), 36);
}

#[test]
fn jobs_of_a_file_test_with_netserver_and_are_one() {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    let file = |name: &str, members: &str| {
        let path = net.dir.path().join(name);
        std::fs::write(&path, format!("schema: netdyno.job/1\n{members}\n")).expect("written");
        path.display().to_string()
    };
    let serves = file("serves.yaml", "kind: netserver\nfamily: '4'");
    let mut server = net.start_there(format!("netdyno run {serves} --json"));
    server.until_it_says("serving netperf's clients at 0.0.0.0:12865");
    // The drop-in is a client of the same server.
    let ran =
        net.run("netdyno netperf -H 198.18.0.2 -P 0 -t TCP_RR -l -50 -- -r 10,20 -k REMOTE_BYTES_SENT").ok();
    assert_eq!(value(&ran, "REMOTE_BYTES_SENT"), 1000.0);
    let run_file = |name: &str, members: &str| {
        let path = file(name, &format!("kind: netperf\nhost: 198.18.0.2\n{members}"));
        let line = format!("netdyno run {path} --allow-address 198.18.0.2 --json -q");
        net.run(line).ok().json()["result"]["endpoint"].clone()
    };
    let stream = run_file("stream.yaml", "bytes: 1M")["streams"][0].clone();
    assert_eq!(
        (stream["sent_bytes"].as_u64(), stream["received_bytes"].as_u64()),
        (Some(1_000_000), Some(1_000_000))
    );
    let exchanged =
        run_file("rr.yaml", "test: udp-rr\ntransactions: 50\nrequest: 10\nresponse: 20\nlost_after: 1s");
    assert_eq!(exchanged["transactions"]["count"], 50, "{exchanged}");
    assert_eq!(exchanged["transactions"]["latency_ns"]["count"], 50, "{exchanged}");
    server.signal("TERM");
    let served = server.wait().ok().json()["result"]["served"].clone();
    // Requests and responses both ways, and the stream.
    assert_eq!(
        (served["tests"].as_u64(), served["bytes"].as_u64()),
        (Some(3), Some(1_000_000 + 2 * 50 * 30))
    );
    assert_eq!((served["broken_tests"].as_u64(), served["refused_connections"].as_u64()), (Some(0), Some(0)));
}
