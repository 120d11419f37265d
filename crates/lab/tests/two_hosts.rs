//! The two hosts, from inside the process that made them. Needs root; without it these tests fail.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use netdyno_lab::{Host, Lab, LabError, Namespace, NamespaceRef, Options, resolve};

/// Frames received and sent by the host's interface since it exists.
fn frames(host: &Host) -> (u64, u64) {
    let table = host.namespace.run_in(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    let line = table.lines().find(|line| line.trim_start().starts_with(host.interface)).unwrap();
    let (_, values) = line.split_once(':').unwrap();
    let values: Vec<u64> = values.split_whitespace().map(|value| value.parse().unwrap()).collect();
    (values[1], values[9])
}

/// A file under `/sys/class/net` cannot be used: `/sys` shows the namespace it was mounted in.
fn ip_link(host: &Host) -> String {
    let output = host.namespace.command("ip").unwrap().args(["-d", "link", "show", host.interface]).output();
    String::from_utf8(output.expect("the tests need iproute2's ip").stdout).unwrap()
}

fn socket(host: &Host) -> UdpSocket {
    let socket = host.namespace.run_in(|| UdpSocket::bind((host.address, 7000))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

fn with_addresses() -> Lab {
    Lab::two_hosts(&Options { addresses: true, ..Options::default() }).unwrap()
}

#[test]
fn hosts_reach_each_other_by_address() {
    let lab = with_addresses();
    let (near, far) = (socket(&lab.sender), socket(&lab.receiver));
    let mut buffer = [0; 16];
    near.send_to(b"there", (lab.receiver.address, 7000)).unwrap();
    let (length, from) = far.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from.ip()), (&b"there"[..], lab.sender.address.into()));
    far.send_to(b"and back", from).unwrap();
    let length = near.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"and back");
}

#[test]
fn every_frame_on_the_cable_was_sent_on_purpose() {
    let lab = with_addresses();
    let near = socket(&lab.sender);
    // Bound, so that no ICMP "port unreachable" comes back.
    let _far = socket(&lab.receiver);
    for number in 0..1000_u32 {
        near.send_to(&number.to_be_bytes(), (lab.receiver.address, 7000)).unwrap();
    }
    assert_eq!((frames(&lab.sender), frames(&lab.receiver)), ((0, 1000), (1000, 0)));
}

#[test]
fn nothing_is_heard_in_five_seconds_of_silence() {
    let labs = [Lab::two_hosts(&Options::default()).unwrap(), with_addresses()];
    // IPv6 leaves an interface of so short an MTU, and comes back.
    let receiver = &labs[0].receiver;
    for mtu in ["1000", "1500"] {
        let mut ip = receiver.namespace.command("ip").unwrap();
        assert!(ip.args(["link", "set", receiver.interface, "mtu", mtu]).status().unwrap().success());
    }
    std::thread::sleep(Duration::from_secs(5));
    for lab in &labs {
        assert_eq!((frames(&lab.sender), frames(&lab.receiver)), ((0, 0), (0, 0)));
    }
}

#[test]
fn options_reach_both_ends() {
    let lab = Lab::two_hosts(&Options { mtu: 9000, queues: 2, gro: true, ..Options::default() }).unwrap();
    for host in [&lab.sender, &lab.receiver] {
        let link = ip_link(host);
        for expected in ["mtu 9000", "numtxqueues 2", "numrxqueues 2", "LOWER_UP", "veth"] {
            assert!(link.contains(expected), "{expected} not in {link}");
        }
        assert!(link.contains(&host.mac.map(|byte| format!("{byte:02x}")).join(":")), "{link}");
        let ethtool = |name: &str| port::ethtool::Ethtool::open(name)?.offload(port::ethtool::Offload::Gro);
        assert_eq!(host.namespace.run_in(|| ethtool(host.interface)).unwrap(), Ok(true));
    }
}

#[test]
fn an_impossible_mtu_is_refused_with_what_was_asked() {
    let error = Lab::two_hosts(&Options { mtu: 10, ..Options::default() }).unwrap_err().to_string();
    assert!(error.contains("tx0 - rx0 (MTU 10, 1 queues)"), "{error}");
}

#[test]
fn the_callers_own_namespace_never_sees_a_device() {
    let before = fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
    let _lab = with_addresses();
    assert_eq!(fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count(), before);
}

#[test]
fn names_resolve_here_first_and_elsewhere_when_told() {
    let here = resolve("lo").unwrap();
    assert_eq!((here.name.as_str(), here.namespace.is_none()), ("lo", true));
    let lab = with_addresses();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&lab.receiver.namespace));
    let there = resolve(&format!("rx0@/proc/self/fd/{fd}")).unwrap();
    assert_eq!(there.name, "rx0");
    assert!(there.namespace.unwrap().index_of("rx0").unwrap().is_some());
    // No interface of that name anywhere: said by whoever opens it.
    assert!(resolve("nowhere0").unwrap().namespace.is_none());
}

#[test]
fn bad_names_say_what_is_expected() {
    for spec in ["", "@receiver", "eth0@", "a b", "eth0/1@/proc/self/ns/net", "..", "eth0@.."] {
        assert!(matches!(resolve(spec), Err(LabError::Spec { .. })), "{spec:?}");
    }
    let error = resolve("eth0@no-such-namespace").unwrap_err().to_string();
    assert!(error.contains("/run/netns/no-such-namespace") && error.contains("ip netns list"), "{error}");
    for path in ["/proc/self/status", "/proc/self/ns/mnt"] {
        let opened = NamespaceRef::parse(path).unwrap().open().and_then(|namespace| namespace.run_in(|| ()));
        assert!(matches!(opened, Err(LabError::NotANamespace { .. })), "{path}: {opened:?}");
    }
}

#[test]
fn work_in_a_namespace_leaves_the_caller_where_it_was() {
    let own = || fs::read_link("/proc/thread-self/ns/net").unwrap();
    let before = own();
    let namespace = Namespace::new().unwrap();
    assert_ne!(namespace.run_in(own).unwrap(), before);
    assert_eq!(own(), before);
}

#[test]
fn a_devices_work_is_done_by_the_cpus_it_is_given() {
    let device = netdyno_lab::Device { kind: netdyno_lab::Kind::Router, bottleneck: None, loss: None };
    for (cpus, mask) in [(vec![0, 70], 1), (vec![], 0)] {
        let options = Options { device: Some(device), device_cpus: cpus, queues: 2, ..Options::default() };
        let lab = Lab::two_hosts(&options).unwrap();
        for port in lab.device.as_ref().unwrap() {
            // sysfs shows the namespace of whoever mounted it.
            let show = format!(
                "mount -t sysfs none /sys && cat /sys/class/net/{0}/queues/rx-[01]/rps_cpus",
                port.interface
            );
            let mut command = port.namespace.command("unshare").unwrap();
            let output = command.args(["--mount", "sh", "-c", &show]).output().unwrap();
            let masks = String::from_utf8(output.stdout).unwrap();
            let masks: Vec<u32> = masks.lines().map(|mask| u32::from_str_radix(mask, 16).unwrap()).collect();
            assert_eq!(masks, [mask, mask], "{}", port.interface);
        }
    }
}
