//! On the running kernel. Needs root.

use crate::{Counted, Kind, Names, Row, Settings, Tracer, namespace_of_this_thread};
use lab::{Lab, Options};
use std::net::UdpSocket;

/// Datagrams to each of so many ports that nobody listens at.
const PORTS: u16 = 100;
const EACH: u64 = 3;

/// What is counted of them, with room for so many causes; and the receiver's namespace.
fn to_closed_ports(entries: usize) -> (Counted, u32) {
    let lab =
        Lab::two_hosts(&Options { addresses: true, ..Options::default() }).expect("these tests need root");
    let receiver = lab.receiver.namespace.run_in(namespace_of_this_thread).expect("entered");
    let tracer = Tracer::start(&Settings { entries, ..Settings::default() }).expect("a kernel with BTF");
    let socket = lab.sender.namespace.run_in(|| UdpSocket::bind((lab.sender.address, 0)));
    let socket = socket.expect("entered").expect("a socket");
    for _ in 0..EACH {
        for port in 9_000..9_000 + PORTS {
            socket.send_to(&[0; 20], (lab.receiver.address, port)).expect("sent");
        }
    }
    // The receiver works for them in a soft interrupt, perhaps on another CPU.
    std::thread::sleep(std::time::Duration::from_millis(200));
    (tracer.read().expect("its tables"), receiver)
}

#[test]
fn what_finds_no_place_in_a_table_is_counted_by_function_and_reason() {
    let names = Names::read();
    // Again where the kernel kept BPF from the task that a soft interrupt came in above.
    let exact = (0..8).any(|_| {
        let (counted, receiver) = to_closed_ports(8);
        let there: Vec<&Row> =
            counted.rows.iter().filter(|row| row.netns == receiver && row.kind == Kind::Ordinary).collect();
        let udp = there.into_iter().filter(|row| names.of(row).reason == "NO_SOCKET");
        let (told_apart, coarse): (Vec<&Row>, Vec<&Row>) = udp.partition(|row| !row.coarse);
        let frames = |rows: &[&Row]| rows.iter().map(|row| row.frames).sum::<u64>();
        assert!(told_apart.len() <= 8 && told_apart.iter().all(|row| row.port >= 9_000), "{told_apart:?}");
        assert!(coarse.len() <= 1 && coarse.iter().all(|row| row.port == 0), "{coarse:?}");
        let all = frames(&told_apart) + frames(&coarse);
        assert!(all <= u64::from(PORTS) * EACH && counted.unlisted == 0, "{counted:?}");
        all == u64::from(PORTS) * EACH && !coarse.is_empty()
    });
    assert!(exact, "not all were counted in any of eight tries");
}

#[test]
fn what_comes_after_forgetting_has_counts_and_times_of_its_own() {
    let lab =
        Lab::two_hosts(&Options { addresses: true, ..Options::default() }).expect("these tests need root");
    let receiver = lab.receiver.namespace.run_in(namespace_of_this_thread).expect("entered");
    let tracer = Tracer::start(&Settings::default()).expect("a kernel with BTF");
    let socket = lab.sender.namespace.run_in(|| UdpSocket::bind((lab.sender.address, 0)));
    let socket = socket.expect("entered").expect("a socket");
    // Again where the kernel kept BPF from the task that a soft interrupt came in.
    let dropped = || {
        (0..8).find_map(|_| {
            socket.send_to(&[0; 20], (lab.receiver.address, 9_000)).expect("sent");
            std::thread::sleep(std::time::Duration::from_millis(200));
            let counted = tracer.read().expect("its tables");
            counted.rows.into_iter().find(|row| row.netns == receiver && row.port == 9_000)
        })
    };
    let first = dropped().expect("a closed port");
    tracer.forget().expect("its tables");
    let second = dropped().expect("a closed port");
    assert_eq!((first.frames, second.frames), (1, 1));
    assert!(second.first_ns > first.last_ns, "{first:?} {second:?}");
}

#[test]
fn with_room_each_port_is_told_apart() {
    let exact = (0..8).any(|_| {
        let (counted, receiver) = to_closed_ports(0);
        let there = counted.rows.iter().filter(|row| row.netns == receiver && row.port >= 9_000);
        let each: Vec<u64> = there.map(|row| row.frames).collect();
        each.len() == usize::from(PORTS) && each.iter().all(|frames| *frames == EACH)
    });
    assert!(exact, "not all were counted in any of eight tries");
}

/// What a look at the test's frames costs (docs/why-lost.md), with as many rows of other frames: each port is one.
#[test]
#[ignore = "measures: by hand"]
fn what_looking_costs() {
    let lab =
        Lab::two_hosts(&Options { addresses: true, ..Options::default() }).expect("these tests need root");
    let tracer = Tracer::start(&Settings::default()).expect("a kernel with BTF");
    let socket = lab.sender.namespace.run_in(|| UdpSocket::bind((lab.sender.address, 0)));
    let socket = socket.expect("entered").expect("a socket");
    let mut port = 9_000_u16;
    for rows in [10, 100, 1_000] {
        while port < 9_000 + rows {
            socket.send_to(&[0; 20], (lab.receiver.address, port)).expect("sent");
            port += 1;
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        let mut each: Vec<_> = (0..7)
            .map(|_| {
                let began = std::time::Instant::now();
                tracer.signed(usize::MAX).expect("its tables");
                let signed = began.elapsed();
                let began = std::time::Instant::now();
                let rows = tracer.read().expect("its tables").rows.len();
                (signed, began.elapsed(), rows)
            })
            .collect();
        each.sort();
        println!("{} rows: {:?} by `signed`, {:?} by `read`", each[3].2, each[3].0, each[3].1);
    }
}
