//! `netdyno live`: captured sessions played against nginx and against servers that misbehave.

use crate::common::*;
use serde_json::Value;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

/// Two hosts, nginx on the far one, over IPv4 and IPv6.
struct Site {
    net: Net,
    _nginx: Running,
}

fn addressed(net: &Net) {
    net.run("ip addr add 198.18.0.1/24 dev tx0").ok();
    net.run_there("ip addr add 198.18.0.2/24 dev rx0").ok();
    net.run("ip addr add 2001:db8::1/64 dev tx0 nodad").ok();
    net.run_there("ip addr add 2001:db8::2/64 dev rx0 nodad").ok();
}

impl Site {
    fn new() -> Site {
        let net = Net::new();
        addressed(&net);
        let dir = net.dir.path().display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {dir}/{name}; "))
            .collect();
        // One process: workers would outlive a master that is killed, and keep the lab's namespaces.
        let config = format!(
            "user root; daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log; events {{}}
             http {{ access_log off; client_max_body_size 100m; {temporary}
             server {{ listen 198.18.0.2:80; listen [2001:db8::2]:80; root {dir};
             location /up {{ client_body_buffer_size 16m; proxy_pass http://198.18.0.2:80/sink; }}
             location /sink {{ return 200 \"taken\\n\"; }} }} }}"
        );
        std::fs::write(net.file("nginx.conf"), config).expect("a written file");
        net.run_there("ip link set lo up").ok();
        let nginx = net.start_there(format!("nginx -c {dir}/nginx.conf"));
        let site = Site { net, _nginx: nginx };
        site.write("small.txt", b"a few words\n");
        eventually("nginx answers", || site.net.run("curl -s http://198.18.0.2/small.txt").status == 0);
        site
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.net.file(name), bytes).expect("a written file");
    }

    /// What tcpdump sees of a command's connections.
    fn captured(&self, name: &str, line: &str) -> String {
        let file = self.net.file(name);
        let mut tcpdump = self.net.start(format!("tcpdump -Z root -n -U -B 32768 -i tx0 -w {file} tcp"));
        tcpdump.until_it_says("listening on");
        self.net.run(line).ok();
        // The last acknowledgement of the last connection.
        eventually("the connections are closed", || {
            let flags = tshark_field(&file, "tcp.flags");
            let with = |bit: u16| {
                let has = |flag: &&String| {
                    u16::from_str_radix(flag.trim_start_matches("0x"), 16).is_ok_and(|flag| flag & bit != 0)
                };
                flags.iter().filter(has).count()
            };
            with(0x02) > 0 && with(0x02) == with(0x01) && flags.last().is_some_and(|last| last == "0x0010")
        });
        tcpdump.signal("INT");
        tcpdump.wait().ok().says(&["\n0 packets dropped by kernel"]);
        file
    }

    fn live(&self, words: &str) -> Ran {
        self.net.run(format!("netdyno live --on tx0 --json --timing fast -q {words}"))
    }
}

/// nginx says the time; a test does not wait for that of its capture.
const DATE: &str = "--ignore ^Date:.*$";

fn connections(ran: &Ran) -> Vec<Value> {
    ran.json()["result"]["conversations"].as_array().expect("connections").clone()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| b"0123456789abcdefghijklmnopqrstuvwxyz\n"[(at * at / 7 + at) % 37]).collect()
}

#[test]
fn a_session_with_nginx_is_answered_as_captured_and_reset_by_nobody() {
    let site = Site::new();
    site.write("large.txt", &bytes(300_000));
    let url = "http://198.18.0.2";
    let null = "-o /dev/null";
    let file = site.captured(
        "session.pcap",
        &format!("curl -s {url}/small.txt {null} {url}/large.txt {null} {url}/none {null}"),
    );
    let dialogue = site.net.file("dialogue.pcapng");
    let resets = |there: bool| {
        let line = "nstat -asz TcpOutRsts";
        let ran = if there { site.net.run_there(line) } else { site.net.run(line) }.ok();
        ran.stdout
            .lines()
            .find_map(|line| line.strip_prefix("TcpOutRsts"))
            .expect("the counter")
            .trim()
            .to_owned()
    };
    let before = [resets(false), resets(true)];
    let ran = site.live(&format!("{file} --to 198.18.0.2:80 {DATE} -w {dialogue}")).ok();
    assert_eq!([resets(false), resets(true)], before);
    let [connection] = connections(&ran).try_into().expect("one connection");
    assert_eq!((&connection["outcome"], &connection["end"]), (&"equal".into(), &"client".into()));
    assert_eq!(connection["captured_end"], "client");
    let exchanges = connection["exchanges"].as_array().expect("exchanges");
    assert_eq!(exchanges.len(), 3);
    assert!(number(&exchanges[1]["received_bytes"]) > 300_000);
    assert_eq!(connection["acknowledged_bytes"], connection["client_bytes"]);
    // What was sent is sound, and nobody but the server was spoken to.
    let checks = "-o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -T fields -e ip.checksum.status -e tcp.checksum.status";
    let sums = run(format!("tshark -n -r {dialogue} {checks}")).ok().stdout;
    assert!(sums.lines().count() > 10 && sums.lines().all(|sums| sums == "1\t1"), "{sums}");
    let flags = tshark_field(&dialogue, "tcp.flags.reset");
    assert!(flags.len() > 10 && flags.iter().all(|reset| reset == "0" || reset == "False"), "{flags:?}");
    let said = tshark_field(&dialogue, "http.request.uri");
    let said: Vec<_> = said.iter().filter(|uri| !uri.is_empty()).collect();
    assert_eq!(said, ["/small.txt", "/large.txt", "/none"]);
    // The same over again as its own capture, as slowly as the client was, from the same port.
    let report = site.net.file("report");
    let options = format!("{DATE} --port 45678 --report {report}");
    let again = site.net.run(format!("netdyno live {dialogue} --to 198.18.0.2 --on tx0 {options}")).ok();
    let page = std::fs::read_to_string(format!("{report}/report.html")).expect("the page");
    for says in ["Requests over time", "3 requests, each answered as captured", "Latency by percentile"] {
        assert!(page.contains(says), "{says}");
    }
    assert!(
        unfolded(&again.stdout).contains("198.18.0.1:45678 > 198.18.0.2:80: as captured"),
        "{}",
        again.stdout
    );
}

#[test]
fn a_changed_file_differs_at_its_byte() {
    let site = Site::new();
    let mut content = bytes(50_000);
    site.write("page.txt", &content);
    let file = site.captured("page.pcap", "curl -g -s http://[2001:db8::2]/page.txt -o /dev/null");
    let may_differ = "--ignore ^(Date|ETag|Last-Modified):.*$";
    let to = "--to [2001:db8::2]:80";
    let ran = site.live(&format!("{file} {to} {may_differ}")).ok();
    let heard = number(&connections(&ran)[0]["exchanges"][0]["received_bytes"]);
    content[31_000] ^= 1;
    site.write("page.txt", &content);
    let ran = site.live(&format!("{file} {to} {may_differ}")).with(1);
    let exchange = connections(&ran)[0]["exchanges"][0].clone();
    assert_eq!(number(&exchange["difference"]["offset"]), heard - 50_000 + 31_000);
    assert!(reasons(&ran.json())[0].contains("another answer than captured in exchange 1"));
    // Without leaving anything out: the date or the ETag differs first. Where any answer will do it is no shortfall.
    let ran = site.live(&format!("{file} {to} --answers any")).ok();
    assert!(number(&connections(&ran)[0]["exchanges"][0]["difference"]["offset"]) < heard - 50_000);
    // Shorter and longer.
    for (length, quiet) in [(40_000, "--quiet-time 200ms"), (60_000, "--quiet-time 200ms")] {
        site.write("page.txt", &bytes(length));
        let ran = site.live(&format!("{file} {to} {quiet}")).with(1);
        let connection = connections(&ran)[0].clone();
        assert_eq!(connection["outcome"], "differs", "{length}");
        assert_eq!(number(&connection["exchanges"][0]["received_bytes"]), heard - 50_000 + length as u64);
    }
}

/// Loses one frame in twenty, by its own dice.
const LOSES: &str = r#"
static unsigned (*dice)(void) = (void *)7;
__attribute__((section("xdp"), used)) int lose(void *frame) { return dice() % 20 ? 2 : 1; }
char gpl[] __attribute__((section("license"), used)) = "GPL";
"#;

#[test]
fn large_uploads_and_downloads_come_through_a_cable_that_loses() {
    let site = Site::new();
    site.write("large", &bytes(400_000));
    site.write("upload", &bytes(3_000_000));
    let upload = site.net.file("upload");
    let up = site
        .captured("up.pcap", &format!("curl -s --data-binary @{upload} http://198.18.0.2/up -o /dev/null"));
    let down = site.captured("down.pcap", "curl -s http://198.18.0.2/large -o /dev/null");
    let ran = site.live(&format!("{up} --to 198.18.0.2:80 {DATE}")).ok();
    assert_eq!(number(&connections(&ran)[0]["acknowledged_bytes"]) / 1_000_000, 3);
    let (source, object) = (site.net.file("lose.c"), site.net.file("lose.o"));
    std::fs::write(&source, LOSES).expect("a written file");
    run(format!("clang -O2 -target bpf -c {source} -o {object}")).ok();
    // Both ways.
    site.net.run_there(format!("ip link set dev rx0 xdpgeneric obj {object} sec xdp")).ok();
    site.net.run(format!("ip link set dev tx0 xdpgeneric obj {object} sec xdp")).ok();
    let ran = site.live(&format!("{up} --to 198.18.0.2:80 {DATE} --retries 10")).ok();
    let connection = connections(&ran)[0].clone();
    assert_eq!(connection["outcome"], "equal");
    assert!(number(&connection["retransmitted_segments"]) > 10, "{connection}");
    let ran = site.live(&format!("{down} --to 198.18.0.2:80 {DATE} --retries 10")).ok();
    assert_eq!(connections(&ran)[0]["outcome"], "equal");
}

#[test]
fn several_connections_are_played_also_from_an_address_that_nobody_has() {
    let site = Site::new();
    let url = "http://198.18.0.2/small.txt -o /dev/null";
    let next = "--next -s";
    let file = site
        .captured("several.pcap", &format!("curl -s {url} {next} {url} -H Connection:close {next} {url}"));
    let streams = tshark_field(&file, "tcp.stream");
    let last: u64 = streams.last().expect("a stream").parse().expect("a number");
    let ran = site.live(&format!("{file} --to 198.18.0.2:80 --all {DATE} --from 198.18.0.99")).ok();
    let connections = connections(&ran);
    assert_eq!(connections.len() as u64, last + 1);
    assert!(connections.iter().all(|c| c["outcome"] == "equal"));
    assert!(connections[0]["from"].as_str().expect("text").starts_with("198.18.0.99:"));
    // Those that there are can be named; others cannot.
    site.live(&format!("{file} --to 198.18.0.2:80 --flow {last} {DATE}")).ok();
    site.live(&format!("{file} --to 198.18.0.2:80 --flow 77"))
        .refused(&["no TCP connection 77", "tcp.stream"]);
}

/// A listener on the far host that treats each connection so.
fn misbehaving(net: &Net, port: u16, treat: fn(TcpStream)) {
    let listen = || TcpListener::bind(("198.18.0.2", port)).expect("a listener");
    let listener = net.lab.receiver.namespace.run_in(listen).expect("the namespace");
    std::thread::spawn(move || listener.incoming().flatten().for_each(treat));
}

fn until_spoken_to(stream: &TcpStream) {
    let _ = stream.peek(&mut [0; 10]);
}

#[test]
fn servers_that_refuse_reset_close_or_fall_silent_are_named() {
    let site = Site::new();
    site.write("upload", &bytes(3_000_000));
    let upload = site.net.file("upload");
    let up = site.captured(
        "up.pcap",
        &format!("curl -s -H Expect: --data-binary @{upload} http://198.18.0.2/up -o /dev/null"),
    );
    let file = site.captured("one.pcap", "curl -s http://198.18.0.2/small.txt -o /dev/null");
    // Dropped with something unread: a reset.
    misbehaving(&site.net, 81, |stream| until_spoken_to(&stream));
    misbehaving(&site.net, 82, |mut stream| drop(stream.read(&mut [0; 2000])));
    misbehaving(&site.net, 83, std::mem::forget);
    // Where there is much memory, the kernel of a server that reads nothing would take the whole upload.
    let small = || std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 131072");
    site.net.lab.receiver.namespace.run_in(small).expect("the namespace").expect("a setting");
    let play =
        |file: &str, port: u16, words: &str| site.live(&format!("{file} --to 198.18.0.2:{port} {words}"));
    let says = |ran: &Ran, words: &str| {
        let reasons = reasons(&ran.json());
        assert!(reasons.iter().any(|reason| reason.contains(words)), "{words}: {reasons:?}");
    };
    play(&file, 80, "--answers any").ok();
    says(&play(&file, 84, "").with(2), "refused the connection");
    says(&play(&file, 81, "").with(1), "reset the connection in exchange 1");
    let closed = play(&file, 82, "").with(1);
    assert_eq!(connections(&closed)[0]["end"], "server");
    says(&play(&file, 83, "--timeout 300ms").with(1), "did not answer in exchange 1");
    says(&play(&up, 83, "--timeout 500ms").with(1), "window stayed closed");
    // Nobody there: by ARP, and by a cable that ends.
    site.live(&format!("{file} --to 198.18.0.9:80 --mac 02:00:00:00:00:02 --retries 0")).with(2);
    site.live(&format!("{file} --to 2001:db8::2 --from 198.18.0.1"))
        .refused(&["one is IPv4, the other IPv6"]);
    // A signal ends it in good order, with what there is.
    let silent = format!("netdyno live {file} --to 198.18.0.2:83 --on tx0 --json");
    let mut running = site.net.start(&silent);
    running.until_it_says("Ctrl-C ends");
    running.signal("INT");
    let ran = running.wait().with(1);
    assert!(reasons(&ran.json()).iter().any(|reason| reason.contains("stopped before all")));
}

#[test]
fn what_cannot_be_played_is_refused() {
    let site = Site::new();
    let upload = site.net.file("upload");
    site.write("upload", &bytes(20_000));
    let file = site.captured(
        "up.pcap",
        &format!("curl -s -H Expect: --data-binary @{upload} http://198.18.0.2/up -o /dev/null"),
    );
    let (cut, lost, none) =
        (site.net.file("cut.pcap"), site.net.file("lost.pcap"), site.net.file("none.pcap"));
    run(format!("editcap -s 1000 {file} {cut}")).ok();
    let data = tshark_field(&file, "tcp.len")
        .iter()
        .position(|length| length.parse::<u32>().is_ok_and(|l| l > 1000));
    run(format!("editcap {file} {lost} {}", data.expect("a segment of data") + 1)).ok();
    write_pcap(&none, 1, &[vec![0; 60]]);
    let to = "--to 198.18.0.2:80";
    site.live(&format!("{cut} {to}")).refused(&["cut off by the capture's snap length", "--until-gap"]);
    site.live(&format!("{lost} {to}")).refused(&["are missing from the capture", "--until-gap"]);
    site.live(&format!("{none} {to}")).refused(&["no TCP connection"]);
    site.live(&format!("{} {to}", site.net.file("absent.pcap"))).refused(&["absent.pcap"]);
    site.net.run(format!("netdyno live {file} {to} --on tx7")).refused(&["tx7"]);
    site.live(&format!("{file} --to 224.0.0.1:80")).with(2).says(&["one host"]);
    site.live(&format!("{file} {to} --ignore (")).refused(&["--ignore ("]);
    // Up to the gap it can be.
    let ran = site.live(&format!("{lost} {to} --until-gap --answers any --timeout 2s")).ok();
    let connection = connections(&ran)[0].clone();
    assert_eq!(connection["acknowledged_bytes"], connection["client_bytes"]);
    assert!(number(&connection["client_bytes"]) < 20_000);
    assert!(ran.json()["warnings"][0].as_str().expect("text").contains("played up to there"));
    // The program that keeps segments from the stack goes with its process.
    misbehaving(&site.net, 83, std::mem::forget);
    let mut running = site.net.start(format!("netdyno live {file} --to 198.18.0.2:83 --on tx0 --timeout 1m"));
    running.until_it_says("Ctrl-C ends");
    let ours = || guards_on(&site.net);
    eventually("the guard is there", || ours() == 1);
    running.signal("KILL");
    running.wait().with(137);
    eventually("the guard is gone", || ours() == 0);
}

/// Programs at the ingress of tx0.
fn guards_on(net: &Net) -> usize {
    use libbpf_rs::libbpf_sys as sys;
    let query = || {
        let index = net.lab.sender.namespace.index_of("tx0").expect("the namespace").expect("tx0");
        let mut options = sys::bpf_prog_query_opts {
            sz: size_of::<sys::bpf_prog_query_opts>() as sys::size_t,
            ..Default::default()
        };
        // SAFETY: `options` states its size and outlives the call.
        #[allow(unsafe_code, reason = "libbpf's query has no safe wrapper for tcx")]
        let result =
            unsafe { sys::bpf_prog_query_opts(index as i32, sys::BPF_TCX_INGRESS, &raw mut options) };
        assert_eq!(result, 0, "the kernel tells what is attached");
        // SAFETY: the kernel has written it.
        #[allow(unsafe_code, reason = "a union of counts")]
        let count = unsafe { options.__bindgen_anon_1.count };
        count as usize
    };
    net.lab.sender.namespace.run_in(query).expect("the namespace")
}

#[test]
fn tcpliveplays_command_line_plays_the_first_connection() {
    let site = Site::new();
    let file = site.captured("one.pcap", "curl -s http://198.18.0.2/small.txt -o /dev/null");
    let mac = "02:00:00:00:00:02";
    let ran = site.net.run(format!("netdyno tcpliveplay tx0 {file} 198.18.0.2 {mac} 45454"));
    assert!(
        unfolded(&ran.stdout).contains("played 198.18.0.1:45454 > 198.18.0.2:80"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(unfolded(&ran.stdout).contains("ended: client (captured: client)"), "{}", ran.stdout);
    site.net
        .run(format!("netdyno tcpliveplay tx0 {file} 198.18.0.2 {mac} random"))
        .says(&["playing 1 connection"]);
    for (words, says) in [
        (format!("tx0 {file} 198.18.0.2 {mac}"), "five words"),
        (format!("tx0 {file} 198.18.0 {mac} random"), "not an IPv4 address"),
        (format!("tx0 {file} 198.18.0.2 02:00 random"), "not an Ethernet address"),
        (format!("tx0 {file} 198.18.0.2 {mac} 0"), "neither a port"),
    ] {
        site.net.run(format!("netdyno tcpliveplay {words}")).refused(&[says]);
    }
    // Its own program needs a firewall rule, or this host resets the connection before anything is said.
    let theirs = site.captured_peer(&file, mac);
    assert!(theirs.iter().any(|flags| flags == "0x0004"), "tcpliveplay was not reset: {theirs:?}");
}

impl Site {
    /// The flags of what tcpliveplay and its host send, until that host has reset the connection.
    fn captured_peer(&self, file: &str, mac: &str) -> Vec<String> {
        let seen = self.net.file("peer.pcap");
        let mut tcpdump = self.net.start(format!("tcpdump -Z root -n -U -Q out -i tx0 -w {seen} tcp"));
        tcpdump.until_it_says("listening on");
        let mut command = self.net.command(format!("tcpliveplay tx0 {file} 198.18.0.2 {mac} random"));
        // It writes a file where it stands.
        command.current_dir(self.net.dir.path());
        let running = start(command);
        eventually("tcpliveplay's host answers", || tshark_field(&seen, "tcp.flags").len() >= 2);
        running.signal("KILL");
        running.wait();
        tcpdump.signal("INT");
        tcpdump.wait().ok();
        tshark_field(&seen, "tcp.flags")
    }
}

#[test]
fn a_session_in_captured_time_says_before_whom_it_goes() {
    let site = Site::new();
    let get = |close: &str| format!("printf 'GET /small.txt HTTP/1.1\\r\\nHost: a\\r\\n{close}\\r\\n' >&3");
    let (first, last) = (get(""), get("Connection: close\\r\\n"));
    let script = site.net.file("slow.sh");
    let text = format!("exec 3<>/dev/tcp/198.18.0.2/80; {first}; sleep 0.3; {last}; cat <&3");
    std::fs::write(&script, text).expect("written");
    let line = format!("bash {script}");
    let file = site.captured("slow.pcap", &line);
    for (options, wanted) in [
        ("--timing captured", &["ordinary", "real-time"][..]),
        ("--timing captured --no-real-time", &["ordinary"]),
        ("--timing fast", &["ordinary"]),
    ] {
        let ran =
            site.net.run(format!("netdyno live {file} --to 198.18.0.2 --on tx0 --json -q {DATE} {options}"));
        let report: Value = serde_json::from_str(&ran.ok().stdout).expect("a result");
        let priority = report["result"]["pacing"]["priority"].as_str().expect("a priority");
        assert!(wanted.contains(&priority), "{options}: {priority}");
    }
}
