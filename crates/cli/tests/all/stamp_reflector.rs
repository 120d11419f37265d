//! `netdyno reflect --stamp`, by a sender that was written from RFC 8762, by sockets of the host, and by tshark.

use crate::common::*;
use serde_json::Value;

/// Sends test packets, checks each answer against the RFC, and prints its number, the sender's, and its time to live.
///
/// Arguments: HOST PORT, then settings of this script: `numbers=0,1,2 octets=44 ssid=0 source=0 ptp=0 fill=0 ttl=64 answers=1`.
const SENDER: &str = r#"
import select, socket, struct, sys, time
host, port = sys.argv[1], int(sys.argv[2])
said = dict(numbers="0", octets="44", ssid="0", source="0", ptp="0", fill="0", ttl="64", answers="1")
said.update(word.split("=") for word in sys.argv[3:])
numbers = [int(n) for n in said.pop("numbers").split(",")]
octets, ssid, source, ptp, fill, ttl, answers = (int(said[key]) for key in ("octets", "ssid", "source", "ptp", "fill", "ttl", "answers"))
v6 = ":" in host
s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("::" if v6 else "0.0.0.0", source))
s.setsockopt(*((socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) if v6 else (socket.IPPROTO_IP, socket.IP_TTL)), ttl)
s.setsockopt(*((socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT) if v6 else (socket.IPPROTO_IP, 12)), 1)   # IP_RECVTTL
s.settimeout(10)
clock = 11 if ptp else time.CLOCK_REALTIME   # CLOCK_TAI
def stamp(ns):
    seconds, rest = divmod(ns, 10**9)
    return struct.pack("!II", *((seconds, rest) if ptp else ((seconds + 2208988800) % 2**32, (rest << 32) // 10**9)))
def read(octets):
    seconds, rest = struct.unpack("!II", octets)
    return seconds * 10**9 + rest if ptp else (seconds - 2208988800) * 10**9 + -(-rest * 10**9 >> 32)
for number in numbers:
    t1 = time.clock_gettime_ns(clock)
    estimate = 0x8a01 | (0x4000 if ptp else 0)
    packet = struct.pack("!I8sHH", number, stamp(t1), estimate, ssid)
    packet += bytes([fill]) * (octets - len(packet))
    s.sendto(packet[:octets], (host, port))
    if not answers:
        # Nothing, or what the host's own stack says of a port where nobody listens.
        s.settimeout(0.3)
        try:
            raise SystemExit(f"an answer: {s.recv(9999).hex()}")
        except (TimeoutError, ConnectionRefusedError):
            print("nothing")
            continue
    answer, control, _, peer = s.recvmsg(9999, 999)
    t4 = time.clock_gettime_ns(clock)
    assert peer[:2] == (host, port), peer
    assert len(answer) == octets, (len(answer), octets)
    own, sent, error, theirs, received, echoed, echoed_stamp, echoed_error, zero, sender_ttl = struct.unpack("!I8sHH8sI8sHHB", answer[:41])
    assert (echoed, echoed_stamp, echoed_error) == (number, packet[4:12], estimate), answer.hex()
    assert theirs == (0 if fill else ssid) and zero == 0, answer.hex()
    if octets >= 44:
        assert answer[41:44] == bytes(3) and answer[44:] == packet[44:], answer.hex()
    else:
        assert answer[41:] == packet[41:], answer.hex()
    t2, t3 = read(received), read(sent)
    assert t1 <= t2 <= t3 <= t4, (t1, t2, t3, t4)
    assert t3 - t2 < 10**8, (t2, t3)
    assert (error >> 14 & 1) == ptp and error & 0xff, hex(error)
    arrived = [data[0] for _, kind, data in control if kind in (socket.IP_TTL, socket.IPV6_HOPLIMIT)]
    assert sender_ttl == ttl and arrived == [255], (sender_ttl, arrived)
    print(own, echoed, sender_ttl)
print("done")
"#;

/// Two hosts with addresses of both protocols, of which the sender's host knows the other's without asking, and the script.
fn hosts() -> (Net, String) {
    let net = Net::with(&::lab::Options { addresses: true, ..Default::default() });
    let there: Value = net.run_there("ip -j link show rx0").ok().json();
    let here: Value = net.run("ip -j link show tx0").ok().json();
    let [there, here] = [there, here].map(|link| link[0]["address"].as_str().expect("an address").to_owned());
    for line in [
        "ip addr add 2001:db8::1/64 dev tx0 nodad",
        &format!("ip neigh replace 2001:db8::2 lladdr {there} nud permanent dev tx0"),
    ] {
        net.run(line).ok();
    }
    for line in [
        "ip addr add 2001:db8::2/64 dev rx0 nodad",
        &format!("ip neigh replace 2001:db8::1 lladdr {here} nud permanent dev rx0"),
    ] {
        net.run_there(line).ok();
    }
    let script = net.file("sender.py");
    std::fs::write(&script, SENDER).expect("a script");
    (net, script)
}

fn reflector(net: &Net, options: &str) -> Running {
    let mut reflector = net.start_there(format!("netdyno reflect --on rx0 --stamp --json {options}"));
    reflector.until_it_says("reflecting on rx0");
    reflector
}

/// An XDP program on tx0 that lets everything pass: without one, that end of a veth takes nothing that XDP sends back.
fn program_at_tx0(net: &Net) -> Running {
    let mut meter = net.start("netdyno measure --on tx0 --meter xdp");
    meter.until_it_says("measuring on tx0");
    meter
}

/// Ends it and gives its result.
fn interrupted(reflector: Running) -> Value {
    reflector.signal("INT");
    reflector.wait().ok().json()
}

/// What the sender saw: the answers' own numbers.
fn numbers(net: &Net, script: &str, arguments: &str) -> Vec<u64> {
    let said = net.run(format!("/usr/bin/python3 {script} {arguments}")).ok().stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.last(), Some(&"done"), "{said}");
    let own = |line: &&str| line.split(' ').next().and_then(|number| number.parse().ok());
    lines[..lines.len() - 1].iter().map(|line| own(line).expect("a number")).collect()
}

fn stamp<'v>(report: &'v Value, key: &str) -> &'v Value {
    &report["result"]["reflection"]["stamp"][key]
}

fn answered(report: &Value) -> u64 {
    number(&report["result"]["reflection"]["reflected_frames"])
}

#[test]
fn test_packets_are_answered_over_both_protocols_and_stamped_by_this_hosts_clock() {
    let (net, script) = hosts();
    for options in ["", "--generic"] {
        // In a packet of this host the checksum is yet to be computed, unless it is done before the packet is handed on.
        for offload in ["on", "off"] {
            net.run(format!("ethtool -K tx0 tx {offload}")).ok();
            let _program = options.is_empty().then(|| program_at_tx0(&net));
            let reflector = reflector(&net, options);
            let file = net.file("answers.pcap");
            let mut tcpdump = net.start(format!("tcpdump -Z root -n -U -B 16384 -Q in -i tx0 -w {file} udp"));
            tcpdump.until_it_says("listening on");
            for (arguments, count) in [
                ("198.18.0.2 862 numbers=7,8,9", 3),
                ("2001:db8::2 862 numbers=7,8,9 ttl=1", 3),
                ("198.18.0.2 862 numbers=1,2 ptp=1 ssid=9", 2),
                ("2001:db8::2 862 numbers=1,2 ptp=1 octets=45", 2),
                ("198.18.0.2 862 numbers=5,6 octets=1472 ttl=200", 2),
                ("2001:db8::2 862 numbers=5,6 octets=1451", 2),
                // Senders of TWAMP Light, of which padding may be anything.
                ("198.18.0.2 862 numbers=5,6 octets=41", 2),
                ("198.18.0.2 862 numbers=5,6 octets=43 fill=90", 2),
                ("2001:db8::2 862 numbers=5,6 octets=300 fill=200", 2),
            ] {
                let expected: Vec<u64> = (0..count).collect();
                assert_eq!(numbers(&net, &script, arguments), expected, "{options} {offload} {arguments}");
            }
            eventually("all answers were seen", || frames(&file).len() >= 20);
            tcpdump.signal("INT");
            tcpdump.wait().ok();
            let report = interrupted(reflector);
            assert_eq!(
                (answered(&report), number(stamp(&report, "sessions"))),
                (20, 9),
                "{options} {offload}"
            );
            // With an offload a virtual cable hands over packets whose checksum nobody has computed.
            if options.is_empty() || offload == "off" {
                assert_eq!(tshark_complaints(&file), "");
            }
            let mut tshark = command("tshark -n -d udp.port==862,twamp.test -T fields -E separator=|");
            for field in ["seq_number", "sender_seq_number", "sender_ttl", "error_estimate.z"] {
                tshark.args(["-e", &format!("twamp.test.{field}")]);
            }
            tshark.args(["-r", &file]);
            let rows = start(tshark).wait().ok().stdout;
            let first: Vec<&str> = rows.lines().take(7).collect();
            // Of both error estimates, the answer's and the sender's.
            assert_eq!(first[..4], ["0|7|64|0,0", "1|8|64|0,0", "2|9|64|0,0", "0|7|1|0,0"], "{rows}");
            assert_eq!(first[6], "0|1|64|1,1", "{rows}");
        }
    }
}

/// Kernels need not have VLAN interfaces, so these are frames.
#[test]
fn tagged_test_packets_are_answered_with_their_tags() {
    let (net, _) = hosts();
    let to = "ether(src=02:00:00:00:00:01,dst=02:00:00:00:00:02)";
    for options in ["", "--generic"] {
        let _program = options.is_empty().then(|| program_at_tx0(&net));
        let reflector = reflector(&net, options);
        let file = net.file("answers.pcap");
        let mut tcpdump = net.start(format!("tcpdump -Z root -n -U -B 16384 -Q in -i tx0 -w {file}"));
        tcpdump.until_it_says("listening on");
        for frames in [
            "vlan(vid=7)/ipv4(src=198.18.0.1,dst=198.18.0.2)/udp(sport=5000,dport=862)",
            "vlan(vid=8)/ipv4(src=198.18.0.1,dst=198.18.0.2)/udp(sport=5000,dport=862)",
            "qinq(vid=5)/vlan(vid=7)/ipv6(src=2001:db8::1,dst=2001:db8::2)/udp(sport=5000,dport=862)",
        ] {
            net.run(format!(
                "netdyno send {to}/{frames} --size 120 --engine packet --on tx0 --topspeed --count 3"
            ))
            .ok();
        }
        eventually("all answers were seen", || {
            frames(&file).iter().filter(|frame| frame.len() == 116).count() >= 9
        });
        tcpdump.signal("INT");
        tcpdump.wait().ok();
        let report = interrupted(reflector);
        assert_eq!((answered(&report), number(stamp(&report, "sessions"))), (9, 3), "{options}");
        assert_eq!(tshark_complaints(&file), "");
        let mut tshark = command("tshark -n -d udp.port==862,twamp.test -T fields -E separator=|");
        for field in
            ["ieee8021ad.id", "vlan.id", "udp.srcport", "udp.dstport", "twamp.test.seq_number", "frame.len"]
        {
            tshark.args(["-e", field]);
        }
        // The hosts have something to say to each other, too.
        tshark.args(["-Y", "twamp.test", "-r", &file]);
        let rows = start(tshark).wait().ok().stdout;
        let expected: Vec<String> = ["|7", "|8", "5|7"]
            .iter()
            .flat_map(|tags| (0..3).map(move |number| format!("{tags}|862|5000|{number}|116")))
            .collect();
        assert_eq!(rows.lines().collect::<Vec<_>>(), expected, "{options}");
    }
}

#[test]
fn each_session_has_numbers_of_its_own_so_that_loss_there_and_back_are_told_apart() {
    let (net, script) = hosts();
    let numbered = |arguments: &str| numbers(&net, &script, &format!("198.18.0.2 862 {arguments}"));
    let reflector_of_2 = reflector(&net, "--generic --stamp-sessions 2");
    // 2 and 5 are lost on the way there.
    assert_eq!(numbered("source=7001 numbers=0,1,3,4,6"), [0, 1, 2, 3, 4]);
    assert_eq!(numbered("source=7001 ssid=5 numbers=100,101"), [0, 1]);
    assert_eq!(numbered("source=7001 numbers=7,8"), [5, 6]);
    // There is no room for a third.
    assert_eq!(numbered("source=7002 numbers=40,41"), [40, 41]);
    assert_eq!(numbered("source=7001 ssid=5 numbers=102"), [2]);
    let report = interrupted(reflector_of_2);
    assert_eq!(answered(&report), 12);
    assert_eq!(["sessions", "without_room_packets"].map(|key| number(stamp(&report, key))), [2, 2]);

    let stateless = reflector(&net, "--generic --stamp-stateless");
    assert_eq!(numbered("numbers=0,1,3"), [0, 1, 3]);
    assert_eq!(number(stamp(&interrupted(stateless), "sessions")), 0);
}

#[test]
fn what_is_no_test_packet_passes_to_the_host_and_short_ones_are_counted() {
    let (net, script) = hosts();
    let to = "ether(dst=02:00:00:00:00:02)";
    let there: Value = net.run_there("ip -j link show rx0").ok().json();
    assert_eq!(there[0]["address"], "02:00:00:00:00:02", "the lab's own address");
    let reflector_of_some = reflector(&net, "--generic");
    for frames in [
        format!("{to}/ipv4(src=198.18.0.1,dst=198.18.0.2)/udp(sport=5000,dport=863)"),
        format!("{to}/ipv4(src=198.18.0.1,dst=198.18.0.2)/tcp(dport=862)"),
        // A router passes these on.
        format!("{to}/ipv4(src=198.18.0.1,dst=198.18.7.2)/udp(sport=5000,dport=862)"),
        format!("{to}/ipv6(src=2001:db8::1,dst=2001:db8:7::2)/udp(sport=5000,dport=862)"),
        format!("{to}/ipv6(src=2001:db8::1,dst=2001:db8::2)/udp(sport=5000,dport=861)"),
        "ether(dst=ff:ff:ff:ff:ff:ff)/ipv4(dst=198.18.0.2)/udp(dport=862)".to_owned(),
        "ether(dst=02:00:00:00:00:09)/ipv4(dst=198.18.0.2)/udp(dport=862)".to_owned(),
        "arp(op=who-has)".to_owned(),
    ] {
        let send = format!("netdyno send {frames} --size 120 --engine packet --on tx0 --topspeed --count 5");
        let got = net.received(5, || {
            net.run(send).ok();
        });
        // The hosts have something to say to each other, too.
        assert_eq!(got.iter().filter(|frame| frame.len() == 116).count(), 5, "{frames}");
    }
    for octets in [0, 1, 13, 14, 40] {
        let short = format!("/usr/bin/python3 {script} 198.18.0.2 862 octets={octets} answers=0");
        assert_eq!(net.run(short).ok().stdout, "nothing\ndone\n", "{octets}");
    }
    assert_eq!(numbers(&net, &script, "198.18.0.2 862 octets=41"), [0]);
    let report = interrupted(reflector_of_some);
    assert_eq!(answered(&report), 1);
    let others = number(stamp(&report, "other_frames"));
    assert_eq!(number(stamp(&report, "too_short_packets")), 5);
    let all = number(&report["result"]["rx"]["frames"]);
    assert!(others >= 40 && all == others + 6, "{report:#}");
}

#[test]
fn sources_that_are_not_listed_get_nothing_and_more_than_the_rate_neither() {
    let (net, script) = hosts();
    let listed = reflector(&net, "--generic --stamp-port 8620 --stamp-from 198.18.0.0/24,2001:db8:9::/48");
    assert_eq!(numbers(&net, &script, "198.18.0.2 8620 numbers=4"), [0]);
    let other = format!("/usr/bin/python3 {script} 2001:db8::2 8620 answers=0");
    assert_eq!(net.run(other).ok().stdout, "nothing\ndone\n");
    let report = interrupted(listed);
    assert_eq!((answered(&report), number(stamp(&report, "not_allowed_packets"))), (1, 1));

    let slow = reflector(&net, "--generic --stamp-rate 1");
    let size = "--size 100 --engine packet --on tx0 --topspeed --count 500";
    net.run(format!(
        "netdyno send ether(dst=02:00:00:00:00:02)/ipv4(src=198.18.0.1,dst=198.18.0.2)/udp(sport=5000,dport=862) {size}"
    ))
    .ok();
    eventually("all arrived", || {
        let link: Value = net.run_there("ip -s -j link show rx0").ok().json();
        number(&link[0]["stats64"]["rx"]["packets"]) >= 500
    });
    let report = interrupted(slow);
    let (few, limited) = (answered(&report), number(stamp(&report, "limited_packets")));
    assert!(few >= 1 && few + limited == 500 && limited > 250, "{few} {limited}");
}

/// Frames around a test packet with lengths and octets of any kind, to rx0.
const HOSTILE: &str = r#"
import random, socket, struct, sys
random.seed(8762)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("tx0", 0))
for n in range(3000):
    payload = bytes(random.choice((0, 13, 14, 40, 41, 43, 44, 60, 400)))
    udp = struct.pack("!4H", 5000, 862, 8 + len(payload), 0x1234) + payload
    if n % 2:
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, bytes((198, 18, 0, 1)), bytes((198, 18, 0, 2)))
    else:
        ip = struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + socket.inet_pton(socket.AF_INET6, "2001:db8::1") + socket.inet_pton(socket.AF_INET6, "2001:db8::2")
    frame = bytearray(bytes((2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1)) + (b"\x08\x00" if n % 2 else b"\x86\xdd") + ip + udp)
    for _ in range(random.choice((0, 1, 1, 2, 8))):
        frame[random.randrange(12, min(len(frame), 90))] = random.choice((0, 1, 0x45, 0x4f, 0x60, 0x7f, 0x81, 0xff, random.randrange(256)))
    s.send(frame[: random.choice((len(frame), len(frame), random.randrange(14, len(frame) + 1)))])
"#;

#[test]
fn hostile_lengths_are_counted_and_no_answer_is_longer_than_what_it_answers() {
    let (net, script) = hosts();
    let hostile = net.file("hostile.py");
    std::fs::write(&hostile, HOSTILE).expect("a script");
    let _program = program_at_tx0(&net);
    let reflector = reflector(&net, "");
    let before = counters_of(&net);
    net.run(format!("/usr/bin/python3 {hostile}")).ok();
    assert_eq!(numbers(&net, &script, "198.18.0.2 862 source=9999"), [0]);
    let after = counters_of(&net);
    let report = interrupted(reflector);
    let kinds =
        ["limited_packets", "too_short_packets", "malformed_packets", "fragments", "answers_of_others"];
    let kinds = kinds.map(|key| number(stamp(&report, key)));
    let others = number(stamp(&report, "other_frames")) + number(stamp(&report, "not_allowed_packets"));
    let all = number(&report["result"]["rx"]["frames"]);
    assert_eq!(all, answered(&report) + kinds.iter().sum::<u64>() + others, "{report:#}");
    assert!(all >= 3001 && answered(&report) > 500 && kinds[1] > 200 && kinds[2] > 100, "{report:#}");
    assert!(after - before <= number(&report["result"]["rx"]["bytes"]), "{before} {after}");
}

/// Sees what passes tx0, and says to either end what nobody asked for: each kind of one packet of twenty.
///
/// Arguments: a handle of the receiving host's network, and how many packets are sent.
const FORGER: &str = r#"
import ctypes, os, socket, struct, sys, time
there, packets = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
def raw(interface):
    # All protocols: a socket of one protocol sees nothing that leaves.
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((interface, 3))
    return s
# What is sent out of tx0 arrives at the reflector, and out of rx0 at the sender.
to_reflector = raw("tx0")
if libc.setns(os.open(there, os.O_RDONLY), 0):
    sys.exit(os.strerror(ctypes.get_errno()))
to_sender = raw("rx0")
print("forging", file=sys.stderr, flush=True)
def whole(frame, payload, sport=None):
    """The same frame with another payload; without a checksum of UDP."""
    ip, udp = bytearray(frame[14:34]), bytearray(frame[34:42])
    ip[2:4] = struct.pack("!H", 28 + len(payload))
    ip[10:12] = b"\0\0"
    total = sum(struct.unpack("!10H", ip))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    ip[10:12] = struct.pack("!H", ~total & 0xffff)
    if sport is not None:
        udp[0:2] = struct.pack("!H", sport)
    udp[4:8] = struct.pack("!HH", 8 + len(payload), 0)
    return frame[:14] + bytes(ip) + bytes(udp) + payload
done, last = set(), time.time()
to_reflector.settimeout(0.5)
while time.time() - last < 3:
    try:
        frame, (_, _, way, *_) = to_reflector.recvfrom(2048)
    except TimeoutError:
        continue
    ports = struct.unpack("!HH", frame[34:38]) if len(frame) >= 42 + 44 and frame[12:14] == b"\x08\x00" and frame[23] == 17 else (0, 0)
    if 862 not in ports:
        continue
    payload = frame[42:]
    answer = ports[0] == 862
    number = struct.unpack("!I", payload[24:28] if answer else payload[:4])[0]
    if (answer, number) in done or number >= packets:
        continue
    done.add((answer, number))
    last = time.time()
    kind = number % 20
    if not answer:
        if kind == 1:
            to_reflector.send(whole(frame, payload))
        elif kind == 3:
            to_reflector.send(whole(frame, payload[:20]))
        elif kind == 5:
            to_reflector.send(whole(frame, payload[:14] + b"\x12\x34" + payload[16:], 5555))
    elif kind == 7:
        to_sender.send(whole(frame, payload))
    elif kind == 9:
        to_sender.send(whole(frame, payload[:28] + bytes(8) + payload[36:]))
    elif kind == 11:
        to_sender.send(whole(frame, payload[:24] + struct.pack("!I", number + 1_000_000) + payload[28:]))
    elif kind == 13:
        to_sender.send(whole(frame, payload[:14] + bytes([payload[14] ^ 0x55, payload[15]]) + payload[16:]))
    elif kind == 15:
        to_sender.send(whole(frame, payload[:20]))
    elif kind == 17:
        to_sender.send(whole(frame, payload, 863))
"#;

/// Packets of others, repeated ones, ones that are cut off and ones of other sessions, to either end: each is counted as what it is, and
/// no figure of the session is another.
#[test]
fn what_is_forged_and_repeated_changes_no_count_of_sender_or_reflector() {
    let (net, _) = hosts();
    let forger = net.file("forger.py");
    std::fs::write(&forger, FORGER).expect("a script");
    let _program = program_at_tx0(&net);
    let reflector = reflector(&net, "");
    let mut forging =
        net.start(format!("/usr/bin/python3 {forger} {} 200", handle(&net.lab.receiver.namespace)));
    forging.until_it_says("forging");
    let report = net
        .run("netdyno endpoint stamp 198.18.0.2 --rate 100pps -d 2s --ssid 4711 --json --quiet")
        .ok()
        .json();
    forging.wait().ok();
    let theirs = interrupted(reflector);
    let s = &report["result"]["stamp"];
    let of = |name: &str| number(&s[name]);
    assert_eq!([of("sent"), of("answered"), of("lost"), of("late")], [200, 200, 0, 0], "{s:#}");
    // Ten were repeated to the reflector, which answered them again, and the answers of ten others were repeated.
    assert_eq!([of("duplicates"), of("forward_lost"), of("return_lost")], [20, 0, 0], "{s:#} {theirs:#}");
    let kinds = ["other_source", "too_short", "other_session", "unknown_number", "other_time"];
    assert_eq!(kinds.map(|kind| number(&s["strangers"][kind])), [10; 5], "{s:#}");
    assert_eq!(answered(&theirs), 220, "{theirs:#}");
    assert_eq!(
        ["sessions", "too_short_packets"].map(|key| number(stamp(&theirs, key))),
        [2, 10],
        "{theirs:#}"
    );
}

/// Bytes that rx0 sent by XDP.
fn counters_of(net: &Net) -> u64 {
    let link: Value = net.run_there("ip -s -j link show rx0").ok().json();
    number(&link[0]["stats64"]["tx"]["bytes"])
}

#[test]
fn what_was_done_stands_in_the_summary_and_what_contradicts_itself_is_refused() {
    let (net, script) = hosts();
    let mut reflector = net.start_there("netdyno reflect --on rx0 --stamp --generic");
    reflector.until_it_says("reflecting on rx0");
    assert_eq!(numbers(&net, &script, "198.18.0.2 862 numbers=0,1"), [0, 1]);
    reflector.signal("INT");
    let said = unfolded(&reflector.wait().ok().stdout);
    assert!(said.contains("2 answered") && said.contains("1 sessions"), "{said}");
    for (options, words) in [
        ("--stamp --only-signed", &["--only-signed", "--stamp"][..]),
        ("--stamp --mac-only", &["--mac-only", "--stamp"]),
        ("--stamp-port 863", &["--stamp"]),
        ("--stamp --stamp-port 0", &["--stamp-port", "1"]),
        ("--stamp --stamp-rate 0", &["--stamp-rate", "1"]),
        ("--stamp --stamp-sessions 2000000", &["--stamp-sessions", "1048576"]),
        ("--stamp --stamp-stateless --stamp-sessions 5", &["--stamp-stateless", "--stamp-sessions"]),
        ("--stamp --stamp-from 10.0.0.0/33", &["--stamp-from", "give prefixes"]),
    ] {
        net.run_there(format!("netdyno reflect --on rx0 {options}")).with(2).says(words);
    }
}
