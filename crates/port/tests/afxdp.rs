//! AF_XDP on the cable of a lab: what arrives is what was written, and as many. Needs root; without it these tests
//! fail.
#![allow(unsafe_code, reason = "a packet socket to receive on, which rustix cannot open")]

use lab::{Host, Lab, Options as LabOptions};
use netdyno_port::afxdp::{self, Afxdp, AfxdpError, Mode, Options};
use netdyno_port::interface::{CounterReader, Counters, Interface};
use netdyno_port::packet::Target;
use netdyno_port::tx::{Tx, TxCounters, TxError};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn two_hosts(mtu: u32, queues: u32) -> Lab {
    Lab::two_hosts(&LabOptions { mtu, queues, ..LabOptions::default() }).expect("a lab (as root)")
}

fn open(lab: &Lab, longest: usize, queues: &[u32], options: &Options) -> Result<Vec<Afxdp>, AfxdpError> {
    open_on(lab, "tx0", longest, queues, options)
}

fn open_on(
    lab: &Lab,
    interface: &str,
    longest: usize,
    queues: &[u32],
    options: &Options,
) -> Result<Vec<Afxdp>, AfxdpError> {
    let open = || {
        let found = Interface::by_name(interface).expect("the interface");
        let target = Target { name: found.name, index: found.index, mtu: found.mtu };
        afxdp::open(&target, longest, queues, options)
    };
    lab.sender.namespace.run_in(open).expect("the sender's namespace")
}

fn one(lab: &Lab, longest: usize) -> Afxdp {
    open(lab, longest, &[0], &Options::default()).expect("an AF_XDP socket").remove(0)
}

/// Frame `n` of `length` bytes for nobody, of an Ethernet type for experiments (IEEE 802), unlike all others.
fn frame(n: u64, length: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend(n.to_be_bytes());
    frame.extend((frame.len()..length).map(|at| (n as usize * 31 + at * 7) as u8));
    frame
}

/// Sends frames `from..to`, each of the length that `length` tells, a batch at a time.
fn send(tx: &mut Afxdp, from: u64, to: u64, length: impl Fn(u64) -> usize) -> Result<(), TxError> {
    let mut n = from;
    while n < to {
        let buffers = tx.buffers();
        let count = buffers.held.len().min((to - n) as usize);
        assert!(count > 0, "a buffer");
        for i in 0..count {
            let bytes = frame(n, length(n));
            buffers.bytes[i * buffers.stride..][..bytes.len()].copy_from_slice(&bytes);
            buffers.lengths[i] = bytes.len() as u32;
            n += 1;
        }
        tx.send(count, &vec![0; count])?;
    }
    Ok(())
}

/// A socket that receives all frames of an interface.
fn receiver(host: &Host) -> OwnedFd {
    let index = host.namespace.index_of(host.interface).expect("the namespace").expect("the interface");
    let open = || {
        // SAFETY: plain system calls; what they read is initialised and outlives them; the descriptor is new and
        // nobody else's.
        unsafe {
            let all = (libc::ETH_P_ALL as u16).to_be();
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(all));
            assert!(fd >= 0, "a packet socket (as root)");
            let room: libc::c_int = 256 << 20;
            let size = size_of::<libc::c_int>() as u32;
            let set =
                libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (&raw const room).cast(), size);
            assert_eq!(set, 0);
            let patience = libc::timeval { tv_sec: 60, tv_usec: 0 };
            let size = size_of::<libc::timeval>() as u32;
            let set =
                libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const patience).cast(), size);
            assert_eq!(set, 0);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = all;
            address.sll_ifindex = index as i32;
            let size = size_of::<libc::sockaddr_ll>() as u32;
            assert_eq!(libc::bind(fd, (&raw const address).cast(), size), 0);
            OwnedFd::from_raw_fd(fd)
        }
    };
    host.namespace.run_in(open).expect("the receiver's namespace")
}

/// The next frame of ours that arrives; `None` when none did for a minute. Hosts say things of their own accord.
fn receive(socket: &OwnedFd) -> Option<Vec<u8>> {
    loop {
        let mut bytes = vec![0; 1 << 17];
        // SAFETY: the buffer is live and as long as it says.
        let length = unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        bytes.truncate(usize::try_from(length).ok()?);
        if bytes.get(..12) == Some(&frame(0, 60)[..12]) {
            return Some(bytes);
        }
    }
}

/// What an interface counts, read from anywhere.
fn counters(host: &Host) -> impl FnMut() -> Counters + use<> {
    let name = host.interface;
    let mut reader = host.namespace.run_in(|| CounterReader::open(name)).unwrap().unwrap();
    move || reader.read().unwrap()
}

fn ip(host: &Host, words: &str) {
    let mut command = host.namespace.command("ip").unwrap();
    assert!(command.args(words.split(' ')).status().expect("the tests need iproute2's ip").success());
}

fn accepted(frames: u64, bytes: u64) -> TxCounters {
    TxCounters { frames, bytes, ..TxCounters::default() }
}

/// The counters without what was tried again, which depends on who else runs.
fn settled(tx: &Afxdp) -> TxCounters {
    TxCounters { retried_enobufs: 0, retried_eagain: 0, ..tx.counters() }
}

#[test]
fn frames_arrive_byte_for_byte_and_in_order() {
    const COUNT: u64 = 500;
    for (mtu, length) in
        [(1500, 60), (1500, 1514), (9000, 9014), (9000, 4096), (9000, 4097), (65_535, 65_549)]
    {
        let lab = two_hosts(mtu, 1);
        let socket = receiver(&lab.receiver);
        let mut tx = one(&lab, length);
        let sender = std::thread::spawn(move || {
            send(&mut tx, 0, COUNT, |_| length).unwrap();
            tx.drain().unwrap();
            settled(&tx)
        });
        for n in 0..COUNT {
            let arrived = receive(&socket);
            assert!(arrived == Some(frame(n, length)), "frame {n} of {length} bytes: {arrived:x?}");
        }
        assert_eq!(sender.join().unwrap(), accepted(COUNT, COUNT * length as u64));
    }
}

#[test]
fn lengths_may_change_from_frame_to_frame() {
    let lab = two_hosts(9000, 1);
    let socket = receiver(&lab.receiver);
    let mut tx = one(&lab, 9014);
    let length = |n: u64| 60 + (n * 7919 % 8955) as usize;
    send(&mut tx, 0, 1000, length).unwrap();
    tx.drain().unwrap();
    for n in 0..1000 {
        assert!(receive(&socket) == Some(frame(n, length(n))), "frame {n}");
    }
}

#[test]
fn a_frame_stays_in_its_slot_with_its_note() {
    let lab = two_hosts(1500, 1);
    let mut tx = one(&lab, 60);
    let buffers = tx.buffers();
    assert!(buffers.held.iter().all(|held| *held == 0), "nothing is known of new slots");
    buffers.bytes[..60].copy_from_slice(&frame(7, 60));
    (buffers.lengths[0], buffers.held[0]) = (60, 4711);
    for _ in 0..100 {
        tx.send(1, &[0]).unwrap();
        // A veth's peer is done with a frame before the call returns, so the same slot is lent again.
        let buffers = tx.buffers();
        assert_eq!((&buffers.bytes[..60], buffers.held[0]), (&frame(7, 60)[..], 4711));
    }
    assert_eq!(tx.counters().frames, 100);
}

#[test]
fn no_frame_is_lost_or_doubled_over_many_turns_of_the_rings() {
    const COUNT: u64 = 200_000;
    for (length, slots) in [(60, 64), (1514, 2048)] {
        let lab = two_hosts(1500, 1);
        let (mut sent, mut arrived) = (counters(&lab.sender), counters(&lab.receiver));
        let before = (sent(), arrived());
        let options = Options { slots, ..Options::default() };
        let mut tx = open(&lab, length, &[0], &options).unwrap().remove(0);
        send(&mut tx, 0, COUNT, |_| length).unwrap();
        tx.drain().unwrap();
        assert_eq!(settled(&tx), accepted(COUNT, COUNT * length as u64));
        let sent = sent().since(&before.0);
        let arrived = arrived().since(&before.1);
        assert_eq!((sent.tx_packets, sent.tx_bytes), (COUNT, COUNT * length as u64));
        assert_eq!((arrived.rx_packets, arrived.rx_bytes), (COUNT, COUNT * length as u64));
    }
}

#[test]
fn frames_that_find_the_peers_ring_full_are_sent_in_their_turn() {
    const COUNT: u64 = 200_000;
    // With GRO a veth's peer receives from a ring of 256 frames, at its own pace, and drops what does not fit.
    let lab = Lab::two_hosts(&LabOptions { gro: true, ..LabOptions::default() }).expect("a lab (as root)");
    let socket = receiver(&lab.receiver);
    let mut arrived = counters(&lab.receiver);
    let before = arrived();
    let mut tx = one(&lab, 60);
    let sender = std::thread::spawn(move || {
        send(&mut tx, 0, COUNT, |_| 60).unwrap();
        tx.drain().unwrap();
        settled(&tx)
    });
    for n in 0..COUNT {
        assert!(receive(&socket) == Some(frame(n, 60)), "frame {n}");
    }
    assert_eq!(sender.join().unwrap(), accepted(COUNT, COUNT * 60));
    assert_eq!(arrived().since(&before).rx_packets, COUNT);
}

#[test]
fn jumbo_frames_are_counted_as_frames_over_many_turns_of_the_rings() {
    const COUNT: u64 = 20_000;
    let lab = two_hosts(9000, 1);
    let mut arrived = counters(&lab.receiver);
    let before = arrived();
    let mut tx = open(&lab, 9014, &[0], &Options { slots: 64, ..Options::default() }).unwrap().remove(0);
    assert_eq!(tx.describe().segments, 3);
    send(&mut tx, 0, COUNT, |_| 9014).unwrap();
    tx.drain().unwrap();
    assert_eq!(settled(&tx), accepted(COUNT, COUNT * 9014));
    assert_eq!(arrived().since(&before).rx_packets, COUNT);
}

#[test]
fn two_queues_share_their_memory_and_nothing_else() {
    const COUNT: u64 = 50_000;
    let lab = two_hosts(1500, 2);
    let socket = receiver(&lab.receiver);
    let mut arrived = counters(&lab.receiver);
    let before = arrived();
    let senders = open(&lab, 200, &[1, 0], &Options::default()).unwrap();
    assert_eq!(senders.iter().map(|tx| tx.describe().queue).collect::<Vec<_>>(), [1, 0]);
    let threads: Vec<_> = (0_u64..)
        .zip(senders)
        .map(|(i, mut tx)| {
            std::thread::spawn(move || {
                // Numbers with a top bit of their own tell the senders apart.
                send(&mut tx, i << 40, (i << 40) + COUNT, |_| 200).unwrap();
                tx.drain().unwrap();
                settled(&tx)
            })
        })
        .collect();
    let mut next = HashMap::from([(0, 0), (1, 0)]);
    for _ in 0..2 * COUNT {
        let bytes = receive(&socket).expect("all frames");
        let n = u64::from_be_bytes(bytes[14..22].try_into().unwrap());
        assert!(bytes == frame(n, 200), "frame {n:x}");
        let next = next.get_mut(&(n >> 40)).expect("one of the two senders");
        assert_eq!(n & 0xff_ffff_ffff, *next, "in order");
        *next += 1;
    }
    for thread in threads {
        assert_eq!(thread.join().unwrap(), accepted(COUNT, COUNT * 200));
    }
    assert_eq!(arrived().since(&before).rx_packets, 2 * COUNT);
}

#[test]
fn frames_longer_than_the_mtu_are_passed_over_and_counted() {
    let lab = two_hosts(1500, 1);
    let socket = receiver(&lab.receiver);
    let mut arrived = counters(&lab.receiver);
    let before = arrived();
    let mut tx = one(&lab, 2000);
    let length = |n| [60, 1515, 1514, 2000][n as usize % 4];
    send(&mut tx, 0, 400, length).unwrap();
    tx.drain().unwrap();
    let failed = TxCounters { failed: 200, failed_bytes: 100 * 3515, ..accepted(200, 100 * 1574) };
    assert_eq!(settled(&tx), failed);
    for n in (0..400).step_by(2) {
        assert!(receive(&socket) == Some(frame(n, length(n))), "frame {n}");
    }
    assert_eq!(arrived().since(&before).rx_packets, 200);
}

#[test]
fn a_vlan_tag_comes_on_top_of_the_mtu() {
    let lab = two_hosts(1500, 1);
    let socket = receiver(&lab.receiver);
    let mut tx = one(&lab, 1519);
    let mut tagged = frame(0, 1519);
    tagged[12..16].copy_from_slice(&[0x81, 0x00, 0, 5]);
    for length in [1518, 1519] {
        let buffers = tx.buffers();
        buffers.bytes[..length].copy_from_slice(&tagged[..length]);
        buffers.lengths[0] = length as u32;
        tx.send(1, &[0]).unwrap();
    }
    tx.drain().unwrap();
    assert_eq!((tx.counters().frames, tx.counters().failed), (1, 1));
    // The receiving kernel takes the tag out of the frame.
    assert_eq!(receive(&socket).unwrap().len(), 1514);
}

#[test]
fn a_frame_that_the_peer_does_not_take_is_tried_again_and_ends_as_a_stuck_queue() {
    let lab = two_hosts(1500, 1);
    ip(&lab.receiver, "link set rx0 mtu 1000");
    let mut arrived = counters(&lab.receiver);
    let before = arrived();
    let mut tx = one(&lab, 1514);
    let start = Instant::now();
    let fault = send(&mut tx, 0, 64, |n| if n < 10 { 60 } else { 1514 }).unwrap_err();
    assert!(matches!(&fault, TxError::Stuck(name, _) if name == "tx0"), "{fault}");
    assert!(start.elapsed() < Duration::from_secs(300));
    tx.drain().unwrap();
    assert_eq!(settled(&tx), accepted(10, 600));
    assert!(tx.counters().retried_enobufs > 0);
    assert_eq!(arrived().since(&before).rx_packets, 10);
}

#[test]
fn a_frame_that_the_peer_drops_for_a_while_is_sent_in_its_turn() {
    let lab = two_hosts(9000, 1);
    ip(&lab.receiver, "link set rx0 mtu 1000");
    let socket = receiver(&lab.receiver);
    let mut tx = one(&lab, 9014);
    let mut dropped = {
        let mut read = counters(&lab.sender);
        let before = read();
        move || read().since(&before).tx_dropped
    };
    // Short ones go, the first long one is dropped, everything behind it waits.
    let length = |n| if n % 10 == 5 { 9014 } else { 60 };
    let sender = std::thread::spawn(move || {
        send(&mut tx, 0, 200, length).unwrap();
        tx.drain().unwrap();
        tx.counters()
    });
    let since = Instant::now();
    while dropped() < 100 {
        assert!(since.elapsed() < Duration::from_secs(300), "the long frame is dropped again and again");
    }
    ip(&lab.receiver, "link set rx0 mtu 9000");
    let counters = sender.join().unwrap();
    assert_eq!((counters.frames, counters.failed), (200, 0));
    assert!(counters.retried_enobufs >= 100);
    for n in 0..200 {
        assert!(receive(&socket) == Some(frame(n, length(n))), "frame {n}");
    }
}

/// Sends until something ends it, while `meanwhile` happens; gives the end and what was counted.
fn send_while(lab: &Lab, meanwhile: impl FnOnce(&Lab)) -> (TxError, TxCounters) {
    let mut tx = one(lab, 60);
    let sending = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&sending);
    let thread = std::thread::spawn(move || {
        let mut n = 0;
        let fault = loop {
            match send(&mut tx, n, n + 64, |_| 60) {
                Ok(()) => n += 64,
                Err(fault) => break fault,
            }
            flag.store(true, Ordering::Relaxed);
        };
        tx.drain().unwrap();
        (fault, tx.counters())
    });
    while !sending.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    meanwhile(lab);
    thread.join().unwrap()
}

#[test]
fn a_link_set_down_ends_the_run_with_an_exact_count() {
    let lab = two_hosts(1500, 1);
    let mut arrived = counters(&lab.receiver);
    let before = arrived();
    let (fault, counters) = send_while(&lab, |lab| ip(&lab.sender, "link set tx0 down"));
    assert!(matches!(&fault, TxError::Down(name) if name == "tx0"), "{fault}");
    assert_eq!(counters.frames, arrived().since(&before).rx_packets);
}

#[test]
fn a_peer_set_down_is_a_stuck_queue_with_an_exact_count() {
    let lab = two_hosts(1500, 1);
    let mut arrived = counters(&lab.receiver);
    let before = arrived();
    let (fault, counters) = send_while(&lab, |lab| ip(&lab.receiver, "link set rx0 down"));
    assert!(matches!(&fault, TxError::Stuck(name, _) if name == "tx0"), "{fault}");
    assert_eq!(counters.frames, arrived().since(&before).rx_packets);
}

#[test]
fn an_interface_that_is_taken_away_is_gone() {
    let lab = two_hosts(1500, 1);
    let (fault, _) = send_while(&lab, |lab| ip(&lab.sender, "link del tx0"));
    assert!(matches!(&fault, TxError::Gone(name) if name == "tx0"), "{fault}");
}

#[test]
fn a_wait_ends_when_it_is_told_to() {
    let lab = two_hosts(1500, 1);
    ip(&lab.receiver, "link set rx0 mtu 1000");
    for by_deadline in [false, true] {
        let mut tx = one(&lab, 1514);
        let stop = Arc::new(AtomicBool::new(!by_deadline));
        tx.bound(stop, by_deadline.then(|| Instant::now() + Duration::from_millis(50)));
        let start = Instant::now();
        let fault = send(&mut tx, 0, 64, |n| if n < 3 { 60 } else { 1514 }).unwrap_err();
        assert!(matches!(fault, TxError::Stopped(_)), "{fault}");
        assert!(start.elapsed() < Duration::from_secs(300));
        tx.drain().unwrap();
        assert_eq!(settled(&tx), accepted(3, 180));
    }
}

#[test]
fn a_queue_that_is_not_there_is_named_with_how_many_there_are() {
    let lab = two_hosts(1500, 2);
    let error = open(&lab, 60, &[0, 1, 2], &Options::default()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, AfxdpError::NoQueue { queue: 2, there: 2, .. }), "{text}");
    assert!(text.contains("ethtool -l tx0"), "{text}");
    let error = open(&lab, 60, &[1, 1], &Options::default()).unwrap_err();
    assert!(matches!(error, AfxdpError::Twice { queue: 1, .. }), "{error}");
}

#[test]
fn a_queue_in_use_is_an_error_and_free_again_when_its_sender_is_dropped() {
    let lab = two_hosts(1500, 2);
    let holder = open(&lab, 60, &[1], &Options::default()).unwrap();
    let error = open(&lab, 60, &[0, 1], &Options::default()).unwrap_err();
    assert!(matches!(error, AfxdpError::InUse { queue: 1, .. }), "{error}");
    drop(holder);
    for _ in 0..3 {
        let mut senders = open(&lab, 60, &[0, 1], &Options::default()).unwrap();
        for tx in &mut senders {
            send(tx, 0, 100, |_| 60).unwrap();
        }
    }
}

#[test]
fn a_driver_without_zero_copy_is_said_to_have_none() {
    let lab = two_hosts(1500, 1);
    let options = Options { mode: Mode::ZeroCopy, ..Options::default() };
    let error = open(&lab, 60, &[0], &options).unwrap_err();
    assert!(matches!(error, AfxdpError::NoZeroCopy { .. }), "{error}");
    let chosen = one(&lab, 60).describe().to_string();
    assert!(chosen.starts_with("AF_XDP, copy mode (veth has no zero-copy)"), "{chosen}");
    let options = Options { mode: Mode::Copy("asked for"), huge_pages: false, ..Options::default() };
    let asked = afxdp::describe(&open(&lab, 60, &[0], &options).unwrap());
    assert_eq!(asked, "AF_XDP, copy mode (asked for), queue 0");
}

#[test]
fn frames_too_long_for_the_kernels_buffers_are_refused() {
    let lab = two_hosts(1500, 1);
    let error = open(&lab, 70_000, &[0], &Options::default()).unwrap_err();
    assert!(matches!(error, AfxdpError::TooLong { segments: 18, most: 17, .. }), "{error}");
}

#[test]
fn without_the_capability_it_says_so() {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let lab = two_hosts(1500, 1);
    let target = Target {
        name: "tx0".to_owned(),
        index: lab.sender.namespace.index_of("tx0").unwrap().unwrap(),
        mtu: 1500,
    };
    let keep = |kept: CapabilitySet| {
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        let target = target.clone();
        // Capabilities are a thread's own; the limit is the whole process's, whose other threads need not keep it.
        let unprivileged = move || {
            set_capabilities(None, sets).unwrap();
            rustix::process::setrlimit(
                rustix::process::Resource::Memlock,
                rustix::process::Rlimit {
                    current: Some(65_536),
                    ..rustix::process::getrlimit(rustix::process::Resource::Memlock)
                },
            )
            .unwrap();
            afxdp::open(&target, 1514, &[0], &Options::default()).unwrap_err()
        };
        lab.sender.namespace.run_in(unprivileged).unwrap()
    };
    let error = keep(CapabilitySet::empty());
    assert!(matches!(error, AfxdpError::Permission(_)), "{error}");
    let error = keep(CapabilitySet::NET_RAW);
    assert!(matches!(error, AfxdpError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("ulimit -l 4096"), "{error}");
}

#[test]
fn loopback_carries_frames_too() {
    let lab = two_hosts(1500, 1);
    ip(&lab.sender, "link set lo up");
    let mut tx = open_on(&lab, "lo", 60, &[0], &Options::default()).unwrap().remove(0);
    let mut reader = lab.sender.namespace.run_in(|| CounterReader::open("lo")).unwrap().unwrap();
    send(&mut tx, 0, 100, |_| 60).unwrap();
    tx.drain().unwrap();
    assert_eq!(settled(&tx), accepted(100, 6000));
    assert_eq!(reader.read().unwrap().rx_packets, 100);
}
