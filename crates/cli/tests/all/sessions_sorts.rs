//! `netdyno sessions` and its server over IPv6 and with VLAN tags: against nginx and curl, the neighbour discovery of a real router, its
//! address translation and its losses, and with tshark on the wire.

use crate::common::*;
use crate::sessions::*;
use serde_json::Value;

/// Two hosts with addresses of IPv6.
pub(super) fn hosts_ipv6() -> Net {
    let net = hosts();
    net.run("ip -6 addr add 2001:db8:5::1/64 dev tx0 nodad").ok();
    net.run_there("ip -6 addr add 2001:db8:5::2/64 dev rx0 nodad").ok();
    net
}

/// Two hosts with a router of IPv6 between them, whose forwarding these rules see; the server is at 2001:db8:6::2.
pub(super) fn through_a_router_of_ipv6(rules: &str) -> Net {
    let net = through_a_router(rules);
    let [near, far] = net.lab.device.as_ref().expect("a device");
    at_router(&net, "sysctl -qw net.ipv6.conf.all.forwarding=1").ok();
    // From the link's own address a router asks for whom it passes packets on to.
    for (port, address) in [(near, "2001:db8:5::ff"), (far, "2001:db8:6::ff")] {
        for address in [address, "fe80::ff"] {
            at_router(&net, &format!("ip -6 addr add {address}/64 dev {} nodad", port.interface)).ok();
        }
    }
    net.run("ip -6 addr add 2001:db8:5::1/64 dev tx0 nodad").ok();
    net.run("ip -6 route add 2001:db8:6::/64 via 2001:db8:5::ff").ok();
    net.run_there("ip -6 addr add 2001:db8:6::2/64 dev rx0 nodad").ok();
    net.run_there("ip -6 route add 2001:db8:5::/64 via 2001:db8:6::ff").ok();
    net
}

/// Frames and bytes of either end are those of the other.
pub(super) fn ends_agree(report: &Value, served: &Value) {
    for (from, out, to, into) in [(report, "tx", served, "rx"), (served, "tx", report, "rx")] {
        for what in ["frames", "bytes"] {
            assert_eq!(from["result"][out][what], to["result"][into][what], "{out} {what}");
        }
    }
}

#[test]
fn over_ipv6_both_ends_tell_the_same_of_every_connection_and_the_searches_work() {
    let net = hosts_ipv6();
    let server = serving(&net, "--listen [2001:db8:5::2]");
    let to = "--on tx0 --to [2001:db8:5::2]:80";
    let report =
        net.run(format!("netdyno sessions {to} --rate 10kcps --count 5000 --rto 2s --json")).ok().json();
    adds_up(&report);
    assert_eq!(["opened", "finished", "failed"].map(|name| count(&report, name)), [5000, 5000, 0]);
    assert_eq!(sessions(&report)["server"], "[2001:db8:5::2]:80");
    assert_eq!(sessions(&report)["first_client"], "2001:db8:5::1");
    let served = interrupted(server);
    assert_eq!(number(&served["result"]["sessions_served"]["finished"]), 5000);
    ends_agree(&report, &served);
    assert_eq!(number(&report["result"]["tx"]["frames"]), 15_000);
    // A SYN of 78 bytes, a request, and a FIN of 74, without FCS.
    let request = "GET / HTTP/1.1\r\nHost: [2001:db8:5::2]:80\r\n";
    let bytes = number(&report["result"]["tx"]["bytes"]);
    assert!(bytes > 5000 * (78 + 74 + request.len() as u64 + 74) && bytes.is_multiple_of(5000), "{bytes}");

    let server = serving(&net, "--listen [2001:db8:5::2] --requests 100");
    let search = "netdyno search session-capacity --max 300 --confirm 1 --settle 100ms --timeout 1s";
    let report = net.run(format!("{search} {to} --json -q")).ok().json();
    let capacity = &report["result"]["sessions_search"]["capacity"];
    assert!(capacity.to_string().contains("300"), "{capacity}");
    interrupted(server);
}

#[test]
fn nginx_and_curl_take_part_over_ipv6_byte_for_byte() {
    for size in [11, 30_000] {
        let net = hosts_ipv6();
        let _nginx = nginx(&net, "[2001:db8:5::2]", size);
        let to = "netdyno sessions --on tx0 --to [2001:db8:5::2] --path /page.txt --rto 2s --json";
        let report = net.run(format!("{to} --count 400 --in-flight 20")).ok().json();
        adds_up(&report);
        assert_eq!([count(&report, "finished"), count(&report, "status_2xx")], [400, 400]);
        let curl = net.run("curl -s -g -i -H Connection:close http://[2001:db8:5::2]/page.txt").ok();
        assert!(curl.stdout.len() > size);
        assert_eq!(count(&report, "answer_bytes"), 400 * curl.stdout.len() as u64);
        eventually("nginx has written all", || {
            let log = std::fs::read_to_string(net.file("access.log")).expect("a log");
            log.lines().filter(|line| line.contains("2001:db8:5::1 ") && line.contains("\" 200 ")).count()
                == 401
        });
        let report = net.run(format!("{to} --connections 200 --hold 100ms --use-again")).ok().json();
        adds_up(&report);
        assert_eq!(number(&sessions(&report)["held"]["answered_again"]), 200);
    }
    let net = hosts_ipv6();
    let server = serving(&net, "--listen [2001:db8:5::2] --response-size 150");
    for _ in 0..5 {
        let page = net.run("curl -s -g --max-time 10 http://[2001:db8:5::2]/").ok();
        assert_eq!(page.stdout, "netdyno\n".repeat(30)[..150]);
    }
    let served = interrupted(server);
    let there = &served["result"]["sessions_served"];
    assert_eq!(number(&there["bad_cookies"]) + number(&there["without_room"]), 0, "{there}");
    // A port where nothing listens.
    let report =
        net.run("netdyno sessions --on tx0 --to [2001:db8:5::2]:81 --count 50 --json").with(1).json();
    adds_up(&report);
    assert_eq!([count(&report, "opened"), count(&report, "reset")], [50, 50]);
}

#[test]
fn clients_and_server_of_ipv6_addresses_that_nobody_has_are_found_by_neighbour_discovery() {
    let net = through_a_router_of_ipv6("table ip6 t {\n}\n");
    let server = serving(&net, "--listen [2001:db8:6::7]:8080");
    let line = "netdyno sessions --on tx0 --to [2001:db8:6::7]:8080 --clients 2001:db8:5:0:1::/121 --count 600 --in-flight 20 \
                --rto 200ms --json";
    let report = net.run(line).ok().json();
    adds_up(&report);
    assert_eq!([count(&report, "finished"), count(&report, "client_addresses")], [600, 127]);
    assert!(count(&report, "neighbour_advertisements") >= 127, "{}", sessions(&report));
    assert_eq!(count(&report, "arp_replies"), 0);
    // The router knows all of them now, by the interface's own address.
    let known = at_router(&net, "ip -6 neigh show").ok().stdout;
    let mac = net.lab.sender.mac.map(|byte| format!("{byte:02x}")).join(":");
    let of_pool = |line: &&str| line.starts_with("2001:db8:5:0:1::") && line.contains(&mac);
    assert_eq!(known.lines().filter(of_pool).count(), 127, "{known}");
    let served = interrupted(server);
    assert!(number(&served["result"]["sessions_served"]["neighbour_advertisements"]) >= 1);
    // The host's own network, whose other hosts may have these addresses, though it has none of them itself.
    net.run("ip -6 addr add 2001:db8:5::aaaa:bbbb:cccc/64 dev tx0 nodad").ok();
    net.run("ip -6 addr del 2001:db8:5::1/64 dev tx0").ok();
    net.run("netdyno sessions --on tx0 --to [2001:db8:6::7]:8080 --clients 2001:db8:5::/64 --count 1")
        .refused(&["--clients", "neighbour discovery", "--yes-disrupt"]);
    // Another host of the link has that address.
    net.run_there("netdyno sessions serve --on rx0 --listen [2001:db8:6::ff]:80")
        .refused(&["--listen", "another host"]);
}

/// Address translation, random ports, and one frame of a hundred lost each way.
const TRANSLATES_AND_LOSES: &str = "table ip6 t {
 chain a { type filter hook forward priority 10; policy accept;
  meta l4proto tcp numgen random mod 100 == 0 counter drop
 }
 chain post { type nat hook postrouting priority 100; policy accept;
  ip6 daddr 2001:db8:6::2 masquerade random,fully-random
 }
}
";

#[test]
fn over_ipv6_all_connections_finish_through_nat_and_loss_and_each_lost_frame_is_one_sent_again() {
    let net = through_a_router_of_ipv6(TRANSLATES_AND_LOSES);
    let server = serving(&net, "--listen [2001:db8:6::2]");
    let line = "netdyno sessions --on tx0 --to [2001:db8:6::2]:80 --rate 2kcps --count 4000 --rto 500ms --timeout 1m --json";
    let report = net.run(line).ok().json();
    adds_up(&report);
    assert_eq!([count(&report, "finished"), count(&report, "failed")], [4000, 0]);
    let (lost, again) = (dropped_of(&net, "ip6"), count(&report, "retransmitted"));
    assert!(lost > 100, "{lost} lost");
    // What was sent again although nothing was lost, because the machine was held up, comes twice.
    let twice = count(&report, "duplicates") + count(&report, "unexpected");
    assert!((lost..=lost + twice).contains(&again), "{lost} lost, {again} again, {twice} twice");
    let served = interrupted(server);
    assert_eq!(number(&served["result"]["sessions_served"]["bad_cookies"]), 0);
}

/// Runs both ends with a capture at this interface of the device, which tshark finds no fault with.
fn tshark_approves(net: &Net, there: &str, here: &str) -> String {
    let server = serving(net, &format!("--response-size 4000 {there}"));
    let file = net.file("both.pcap");
    let [near, _] = net.lab.device.as_ref().expect("a device");
    let dump = format!("tcpdump -Z root -n -U -B 32768 -i {} -w {file}", near.interface);
    let mut tcpdump = start(inside(&near.namespace, &dump));
    tcpdump.until_it_says("listening on");
    let report =
        net.run(format!("netdyno sessions --on tx0 --rate 1kcps {here} --rto 2s --json")).ok().json();
    adds_up(&report);
    let frames_sent = number(&report["result"]["tx"]["frames"]) + number(&report["result"]["rx"]["frames"]);
    let segments =
        || tshark_field(&file, "tcp.stream").iter().filter(|stream| !stream.is_empty()).count() as u64;
    eventually("all frames are captured", || {
        frames(&file).len() as u64 >= frames_sent && segments() >= frames_sent
    });
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    ends_agree(&report, &interrupted(server));
    assert_eq!(segments(), frames_sent);
    assert_eq!(tshark_complaints(&file), "");
    // As tshark follows connections: nothing lost, out of order, sent again or beyond the window.
    let odd = "tcp.analysis.lost_segment || tcp.analysis.retransmission || tcp.analysis.out_of_order || \
               tcp.analysis.ack_lost_segment || tcp.analysis.window_full || tcp.flags.reset == 1";
    let mut tshark = command("tshark -n -r");
    tshark.args([&file, "-Y", odd]);
    assert_eq!(start(tshark).wait().ok().stdout, "");
    file
}

#[test]
fn tshark_finds_no_fault_in_what_either_end_sends_over_ipv6() {
    for (there, here) in [
        ("", "--count 500"),
        ("--requests 100", "--count 200 --requests 3"),
        ("--requests 100", "--connections 200 --use-again"),
    ] {
        let net = through_a_router_of_ipv6("table ip6 t {\n}\n");
        let here = format!("--to [2001:db8:6::2]:80 {here}");
        tshark_approves(&net, &format!("--listen [2001:db8:6::2]:80 {there}"), &here);
    }
}

/// Two hosts with a bridge between them, which passes tags on within frames: on a veth they stand beside the frame else, where XDP does not
/// see them.
pub(super) fn through_a_bridge() -> Net {
    let device = ::lab::Device { kind: ::lab::Kind::Bridge, bottleneck: None, loss: None };
    let net = Net::with(&::lab::Options { device: Some(device), gro: true, ..Default::default() });
    for port in net.lab.device.as_ref().expect("a device") {
        start(inside(&port.namespace, &format!("ethtool -K {} txvlan off", port.interface))).wait().ok();
    }
    net
}

#[test]
fn in_a_vlan_every_frame_has_its_tag_and_tshark_finds_no_fault() {
    for (server, clients, network) in
        [("10.7.0.1:80", "10.7.1.0/24", "ip"), ("[2001:db8:7::1]:80", "2001:db8:7:1::/120", "ipv6")]
    {
        let net = through_a_bridge();
        let mac = net.lab.receiver.mac.map(|byte| format!("{byte:02x}")).join(":");
        let there = format!("--listen {server} --vlan 100 --vlan-priority 5 --vlan-dei 1");
        let to = format!("--to {server} --clients {clients} --mac {mac}");
        let here = format!("{to} --vlan 100 --vlan-priority 3 --count 400");
        let file = tshark_approves(&net, &there, &here);
        let only_ours = |filter: &str| {
            let mut tshark = command("tshark -n -r");
            tshark.args([&file, "-Y", filter]);
            start(tshark).wait().ok().stdout.lines().count()
        };
        let segments = only_ours("tcp");
        let tagged = |port: &str, priority: u8, dei: u8| {
            only_ours(&format!(
                "{network} && tcp.{port} == 80 && vlan.id == 100 && vlan.priority == {priority} && vlan.dei == {dei}"
            ))
        };
        assert_eq!(tagged("dstport", 3, 0) + tagged("srcport", 5, 1), segments);
        assert_eq!(only_ours("tcp && !vlan"), 0);
        // In another VLAN nothing is taken, by either end.
        let serving = serving(&net, &format!("--listen {server} --vlan 101"));
        let line = format!(
            "netdyno sessions --on tx0 {to} --vlan 100 --count 20 --timeout 300ms --rto 100ms --json"
        );
        let report = net.run(line).with(1).json();
        adds_up(&report);
        assert_eq!([count(&report, "timed_out"), number(&report["result"]["rx"]["frames"])], [20, 0]);
        assert!(
            report["warnings"].to_string().contains("ethtool -K PEER txvlan off"),
            "{}",
            report["warnings"]
        );
        assert_eq!(number(&interrupted(serving)["result"]["rx"]["frames"]), 0);
    }
}

/// Asks for the clients' addresses within a VLAN, accepts a connection, answers and closes it, all over a packet socket: a stack of its own.
const FAR_END: &str = r#"
import socket, struct, sys, time
interface, vlan = sys.argv[1], int(sys.argv[2])
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind((interface, 0))
mac = wire.getsockname()[4]
wire.setsockopt(263, 8, 1)  # PACKET_AUXDATA: the kernel takes tags out
wire.settimeout(5)
ours, theirs = socket.inet_pton(socket.AF_INET6, "2001:db8:7::1"), None
tag = struct.pack("!HH", 0x8100, 1 << 13 | vlan)

def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def pseudo(source, destination, length, kind):
    return source + destination + struct.pack("!II", length, kind)

def receive():
    data, extra, _, _ = wire.recvmsg(4096, 256)
    for level, kind, value in extra:
        if (level, kind) == (263, 8):
            status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", value)
            if status & 0x10:
                return data[:12] + struct.pack("!HH", 0x8100, tci) + data[12:]
    return data

def send(to, source, destination, kind, hops, payload):
    at = {58: 2, 6: 16}[kind]
    payload = payload[:at] + struct.pack("!H", checksum(pseudo(source, destination, len(payload), kind) + payload)) + payload[at + 2:]
    ip = struct.pack("!IHBB", 0x60000000, len(payload), kind, hops) + source + destination
    wire.send(to + mac + tag + b"\x86\xdd" + ip + payload)

def segment(to, client, port, sequence, acknowledged, flags, payload=b""):
    tcp = struct.pack("!HHIIBBHHH", 80, port, sequence & 0xffffffff, acknowledged & 0xffffffff, 0x50, flags, 5000, 0, 0)
    send(to, ours, client, 6, 64, tcp + payload)

known, finished, asked, answer = {}, 0, {}, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
print("ready", flush=True)
while finished < int(sys.argv[3]):
    frame = receive()
    if frame[6:12] == mac or frame[12:14] != b"\x81\x00" or frame[16:18] != b"\x86\xdd":
        continue
    (tci,) = struct.unpack("!H", frame[14:16])
    assert tci == 5 << 13 | vlan, hex(tci)
    ip, rest = frame[18:58], frame[58:]
    client = ip[8:24]
    (length,) = struct.unpack("!H", ip[4:6])
    assert len(rest) == length
    # All that comes is checked here.
    assert checksum(pseudo(ip[8:24], ip[24:40], length, ip[6]) + rest) == 0
    if ip[6] == 58 and rest[0] == 136:
        assert ip[7] == 255 and rest[4] == 0x60 and rest[8:24] == client and rest[24:26] == b"\2\1"
        known[client] = rest[26:32]
        first = asked.pop(client)
        segment(known[client], client, first[0], 1000, first[1] + 1, 0x12)
        continue
    if ip[6] != 6 or ip[24:40] != ours:
        continue
    port, to, sequence, acknowledged, offset, flags = struct.unpack("!HHIIBB", rest[:14])
    payload = rest[(offset >> 4) * 4:]
    if flags == 0x02:
        assert rest[20:24] == struct.pack("!HH", 0x0204, 1440)
        # Whom to answer is asked for first.
        asked[client] = (port, sequence)
        group = b"\xff\x02" + b"\0" * 9 + b"\1\xff" + client[13:]
        send(b"\x33\x33\xff" + client[13:], ours, group, 58, 255, struct.pack("!BBHI", 135, 0, 0, 0) + client + b"\1\1" + mac)
    elif payload:
        assert payload.startswith(b"GET / HTTP/1.1\r\n")
        segment(known[client], client, port, 1001, sequence + len(payload), 0x19, answer)
    elif flags == 0x11:
        assert acknowledged == 1001 + len(answer) + 1
        segment(known[client], client, port, acknowledged, sequence + 1, 0x10)
        finished += 1
print("finished", finished, flush=True)
"#;

#[test]
fn a_stack_of_its_own_finds_clients_in_a_vlan_and_serves_them() {
    let net = Net::with(&::lab::Options { gro: true, ..Default::default() });
    std::fs::write(net.file("far.py"), FAR_END).expect("a script");
    let mut far = net.start_there(format!("python3 {} rx0 100 40", net.file("far.py")));
    far.until_it_prints("ready");
    let mac = net.lab.receiver.mac.map(|byte| format!("{byte:02x}")).join(":");
    let line = format!(
        "netdyno sessions --on tx0 --to [2001:db8:7::1]:80 --clients 2001:db8:7:1::/120 --mac {mac} --vlan 100 --vlan-priority 5 \
         --count 40 --in-flight 1 --rto 2s --json"
    );
    let report = net.run(line).ok().json();
    adds_up(&report);
    assert_eq!(
        ["finished", "status_2xx", "neighbour_advertisements"].map(|name| count(&report, name)),
        [40; 3]
    );
    assert_eq!(far.wait().ok().stdout.lines().last(), Some("finished 40"));
}
