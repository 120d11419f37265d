//! Receivers on the cable of a lab: what they lend is what was sent, in order, and what they lose is counted. Needs root;
//! without it these tests fail.

use lab::{Host, Lab, Options as LabOptions};
use netdyno_port::afxdp::{self, AfxdpError, AfxdpRx, Mode, ReceiveOptions};
use netdyno_port::interface::Interface;
use netdyno_port::packet::{Sendmmsg, Target};
use netdyno_port::rx::{Blocks, Checksum, Frame, Kind, Rx, RxError, Slots, StampedBy, Together};
use netdyno_port::tx::Tx;
use std::net::UdpSocket;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Ends what hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn two_hosts(mtu: u32, queues: u32) -> Lab {
    Lab::two_hosts(&LabOptions { mtu, queues, addresses: true, ..LabOptions::default() })
        .expect("a lab (as root)")
}

fn on<T: Send>(host: &Host, open: impl FnOnce(Target) -> T + Send) -> T {
    let open = || {
        let found = Interface::by_name(host.interface).expect("the interface");
        open(Target { name: found.name, index: found.index, mtu: found.mtu })
    };
    host.namespace.run_in(open).expect("the host's namespace")
}

fn slots(lab: &Lab) -> Slots {
    on(&lab.receiver, |target| Slots::open(&target, 64)).expect("a ring of slots")
}

fn blocks(lab: &Lab) -> Blocks {
    on(&lab.receiver, |target| Blocks::open(&target, true, false)).expect("a ring of blocks")
}

fn afxdp(lab: &Lab, queues: &[u32], options: ReceiveOptions) -> Result<Vec<AfxdpRx>, AfxdpError> {
    on(&lab.receiver, |target| afxdp::receive(&target, queues, &options))
}

type Any = Box<dyn Rx + Send>;
type Opens = fn(&Lab) -> Any;

/// One of each kind. They are opened one after another, each in a lab that nobody else listens in.
const KINDS: [(&str, Opens); 3] = [
    ("slots", |lab| Box::new(slots(lab))),
    ("blocks", |lab| Box::new(blocks(lab))),
    ("AF_XDP", |lab| Box::new(afxdp(lab, &[0], ReceiveOptions::default()).expect("AF_XDP").remove(0))),
];

/// Frame `n` of `length` bytes for nobody, of an Ethernet type for experiments (IEEE 802), unlike all others.
fn frame(n: u64, length: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend(n.to_be_bytes());
    frame.extend((frame.len()..length).map(|at| (n as usize * 31 + at * 7) as u8));
    frame
}

fn is_ours(bytes: &[u8]) -> bool {
    bytes.get(..12) == Some(&frame(0, 60)[..12])
}

/// Sends frames `from..to`, made by `make`.
fn send(tx: &mut impl Tx, from: u64, to: u64, make: impl Fn(u64) -> Vec<u8>) {
    let mut n = from;
    while n < to {
        let buffers = tx.buffers();
        let count = buffers.held.len().min((to - n) as usize);
        for i in 0..count {
            let bytes = make(n);
            buffers.bytes[i * buffers.stride..][..bytes.len()].copy_from_slice(&bytes);
            buffers.lengths[i] = bytes.len() as u32;
            n += 1;
        }
        tx.send(count, &vec![0; count]).expect("sent");
    }
    tx.drain().expect("on its way");
}

fn sender(lab: &Lab, longest: usize) -> Sendmmsg {
    on(&lab.sender, |target| Sendmmsg::open(&target, longest)).expect("a sender")
}

/// Shows each frame of ours to `see` until that says that it was enough. Hosts say things of their own accord.
fn each(rx: &mut (impl Rx + ?Sized), mut see: impl FnMut(&Frame<'_>) -> bool) {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let frames = rx.receive(Duration::from_millis(200)).expect("frames");
        for frame in frames.iter().filter(|frame| is_ours(frame.bytes)) {
            if !see(frame) {
                return;
            }
        }
    }
    panic!("nothing arrived for a minute");
}

/// Until nothing more arrives: how many were ours.
fn rest(rx: &mut (impl Rx + ?Sized)) -> u64 {
    let mut count = 0;
    loop {
        let frames = rx.receive(Duration::from_millis(500)).expect("frames");
        if frames.is_empty() {
            return count;
        }
        count += frames.iter().filter(|frame| is_ours(frame.bytes)).count() as u64;
    }
}

#[test]
fn frames_are_lent_byte_for_byte_and_in_order() {
    for (mtu, length, count) in [(1500, 60, 3000), (1500, 1514, 500), (9000, 9014, 500), (9000, 3841, 500)] {
        for (name, open) in KINDS {
            let lab = two_hosts(mtu, 1);
            let mut rx = open(&lab);
            let mut tx = sender(&lab, length);
            let sending = std::thread::spawn(move || send(&mut tx, 0, count, |n| frame(n, length)));
            let mut n = 0;
            each(&mut *rx, |arrived| {
                assert_eq!(arrived.bytes, frame(n, length), "{name}, frame {n} of {length} bytes");
                assert_eq!((arrived.length, arrived.tag), (length, None));
                n += 1;
                n < count
            });
            sending.join().expect("the sender");
            let counters = rx.counters();
            assert!(counters.frames >= count && counters.dropped == 0, "{name}: {counters:?}");
        }
    }
}

/// They come by the socket's own queue, several in a batch.
#[test]
fn frames_longer_than_a_slot_are_lent_whole() {
    const COUNT: u64 = 50;
    let (mtu, length) = (65_535, 65_549);
    let lab = two_hosts(mtu, 1);
    let mut rx = slots(&lab);
    let mut tx = sender(&lab, length);
    send(&mut tx, 0, COUNT, |n| frame(n, if n % 5 == 4 { 60 } else { length }));
    let mut n = 0;
    each(&mut rx, |arrived| {
        assert_eq!(arrived.bytes, frame(n, if n % 5 == 4 { 60 } else { length }), "frame {n}");
        n += 1;
        n < COUNT
    });
}

#[test]
fn what_finds_no_room_is_counted() {
    // More than 16 MiB hold, in slots of 2 KiB and in blocks.
    const COUNT: u64 = 30_000;
    for (name, open) in KINDS {
        let lab = two_hosts(1500, 1);
        let mut rx = open(&lab);
        // A batch that is lent is no room.
        send(&mut sender(&lab, 1514), 0, COUNT, |n| frame(n, 1514));
        let taken = rest(&mut *rx);
        let counters = rx.counters();
        assert!(counters.dropped > 0 && taken > 0, "{name}");
        // What the hosts said of their own accord is among the lent, and nothing of it can be told among the dropped.
        assert!(taken + counters.dropped >= COUNT, "{name}: {taken} of {COUNT}, {counters:?}");
        assert!(counters.frames >= taken && counters.frames + counters.dropped < COUNT + 100, "{name}");
        // There is room again.
        send(&mut sender(&lab, 60), 0, 10, |n| frame(n, 60));
        assert_eq!(rest(&mut *rx), 10, "{name}");
    }
}

#[test]
fn a_batch_is_no_larger_than_asked_for_and_stays_until_the_next() {
    let lab = two_hosts(1500, 1);
    let mut rx = on(&lab.receiver, |target| Slots::open(&target, 16)).expect("a ring");
    send(&mut sender(&lab, 60), 0, 100, |n| frame(n, 60));
    let mut seen = 0;
    while seen < 100 {
        let lent = rx.advance(PATIENCE).expect("frames");
        assert!(lent <= 16 && lent == rx.frames().len());
        let before: Vec<Vec<u8>> = rx.frames().iter().map(|frame| frame.bytes.to_vec()).collect();
        send(&mut sender(&lab, 60), 1000, 1001, |n| frame(n, 60));
        assert!(rx.frames().iter().zip(&before).all(|(frame, before)| frame.bytes == before));
        seen += rx.frames().iter().filter(|frame| is_ours(frame.bytes)).count();
        rx.give_back();
        assert!(rx.frames().is_empty());
    }
}

#[test]
fn who_waits_is_woken_by_a_frame_and_else_waits_no_longer_than_it_has_patience() {
    for (name, open) in KINDS {
        let lab = two_hosts(1500, 1);
        let mut rx = open(&lab);
        let mut tx = sender(&lab, 60);
        while rx.advance(Duration::from_millis(300)).expect("nothing") > 0 {}
        assert_eq!(rx.advance(Duration::ZERO).expect("nothing"), 0, "{name}");
        let (told, waits) = channel();
        let waiting = std::thread::spawn(move || {
            told.send(()).expect("the test");
            each(&mut *rx, |_| false);
        });
        waits.recv().expect("the waiter");
        send(&mut tx, 0, 1, |n| frame(n, 60));
        waiting.join().expect(name);
    }
}

fn ip(host: &Host, words: &str) {
    let mut command = host.namespace.command("ip").expect("the namespace");
    assert!(command.args(words.split(' ')).status().expect("the tests need iproute2's ip").success());
}

/// The error that ends waiting.
fn waits_in_vain(mut rx: Any) -> (Any, RxError) {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if let Err(error) = rx.advance(Duration::from_millis(100)) {
            return (rx, error);
        }
    }
    panic!("it waited for a minute");
}

#[test]
fn an_interface_that_goes_down_is_told_and_frames_come_when_it_is_back() {
    for (name, open) in KINDS {
        let lab = two_hosts(1500, 1);
        let rx = open(&lab);
        let waiting = std::thread::spawn(move || waits_in_vain(rx));
        ip(&lab.receiver, "link set rx0 down");
        let (mut rx, error) = waiting.join().expect(name);
        assert!(matches!(&error, RxError::Down(which) if which == "rx0"), "{name}: {error:?}");
        // Told once.
        assert_eq!(rx.advance(Duration::from_millis(50)).expect(name), 0);
        ip(&lab.receiver, "link set rx0 up");
        let since = Instant::now();
        let mut tx = sender(&lab, 60);
        // The carrier is there a moment later.
        while since.elapsed() < PATIENCE {
            send(&mut tx, 0, 1, |n| frame(n, 60));
            let frames = rx.receive(Duration::from_millis(50)).expect(name);
            if frames.iter().any(|frame| is_ours(frame.bytes)) {
                break;
            }
        }
        assert!(since.elapsed() < PATIENCE, "{name}");
    }
}

#[test]
fn an_interface_that_is_removed_is_told() {
    for (name, open) in KINDS {
        let lab = two_hosts(1500, 1);
        let rx = open(&lab);
        let waiting = std::thread::spawn(move || waits_in_vain(rx));
        ip(&lab.receiver, "link delete rx0");
        let (_, error) = waiting.join().expect(name);
        // It goes down before it goes away.
        assert!(matches!(error, RxError::Down(_) | RxError::Gone(_)), "{name}: {error:?}");
    }
}

/// The kernel takes tags out before packet sockets see a frame, and after XDP has.
#[test]
fn a_tag_that_was_taken_out_is_told() {
    let tagged = |kind: [u8; 2]| {
        let mut tagged = frame(7, 60);
        tagged.splice(12..12, [kind[0], kind[1], 0x60, 0x2a]);
        tagged
    };
    for (name, open) in KINDS {
        let lab = two_hosts(1500, 1);
        let mut rx = open(&lab);
        send(&mut sender(&lab, 64), 0, 1, |_| tagged([0x81, 0]));
        send(&mut sender(&lab, 64), 0, 1, |_| tagged([0x88, 0xa8]));
        let mut kinds = vec![0x88a8, 0x8100];
        let facts = rx.facts();
        each(&mut *rx, |arrived| {
            let kind: u16 = kinds.pop().expect("two frames");
            if facts.tags {
                assert_eq!((arrived.bytes, arrived.tag), (&frame(7, 60)[..], Some((kind, 0x602a))), "{name}");
                assert_eq!(arrived.length, 60);
            } else {
                assert_eq!((arrived.bytes, arrived.tag), (&tagged(kind.to_be_bytes())[..], None), "{name}");
            }
            !kinds.is_empty()
        });
    }
}

/// On a veth checksums stay with the sum of the pseudo header, which XDP cannot tell from a wrong one.
#[test]
fn checksums_left_to_hardware_and_addressees_are_told_where_the_facts_say_so() {
    for (name, open) in KINDS {
        let lab = two_hosts(1500, 1);
        let mut rx = open(&lab);
        let facts = rx.facts();
        let asking = lab.sender.namespace.run_in(|| UdpSocket::bind("198.18.0.1:0").expect("a socket"));
        asking.expect("the namespace").send_to(&[0x5a; 100], "198.18.0.2:9").expect("sent");
        let since = Instant::now();
        'waiting: loop {
            assert!(since.elapsed() < PATIENCE, "{name}");
            for arrived in rx.receive(Duration::from_millis(200)).expect("frames") {
                if arrived.bytes.get(42..142) == Some(&[0x5a; 100][..]) {
                    let unfinished = if facts.checksums { Checksum::Unfinished } else { Checksum::Unknown };
                    assert_eq!(arrived.checksum, unfinished, "{name}");
                    assert_eq!(arrived.offload.checksum, facts.offloads.then_some((34, 6)), "{name}");
                    assert_eq!(arrived.kind, if facts.kinds { Kind::Host } else { Kind::Unknown }, "{name}");
                    let by_process = arrived.stamp.by == StampedBy::Process;
                    assert!(by_process != facts.stamps && arrived.stamp.ns > 1_500_000_000 * 1_000_000_000);
                    break 'waiting;
                }
            }
        }
    }
}

#[test]
fn each_queue_has_its_receiver_and_together_they_have_all() {
    const EACH: u64 = 200;
    let lab = two_hosts(1500, 2);
    let queues = on(&lab.sender, |target| afxdp::open(&target, 60, &[0, 1], &afxdp::Options::default()));
    let mut senders = queues.expect("two senders");
    let send_all = |senders: &mut Vec<afxdp::Afxdp>| {
        for (queue, tx) in (0u64..).zip(senders) {
            send(tx, queue * EACH, (queue + 1) * EACH, |n| frame(n, 60));
        }
    };
    let number = |frame: &Frame<'_>| u64::from_be_bytes(frame.bytes[14..22].try_into().expect("eight bytes"));
    let mut receivers = afxdp(&lab, &[0, 1], ReceiveOptions::default()).expect("two receivers");
    send_all(&mut senders);
    for (queue, rx) in (0u64..).zip(&mut receivers) {
        let mut next = queue * EACH;
        each(rx, |arrived| {
            assert_eq!(number(arrived), next);
            next += 1;
            next < (queue + 1) * EACH
        });
        assert_eq!(rest(rx), 0, "the other queue's are the other's");
    }
    let mut together = Together::of(receivers).expect("an epoll instance");
    send_all(&mut senders);
    let mut next = [0, EACH];
    each(&mut together, |arrived| {
        let n = number(arrived);
        let queue = (n / EACH) as usize;
        assert_eq!(n, next[queue], "in order within a queue");
        next[queue] += 1;
        next != [EACH, 2 * EACH]
    });
    assert_eq!((together.counters().dropped, together.facts().shared), (0, false));
    assert!(together.counters().frames >= 4 * EACH);
}

#[test]
fn what_cannot_be_received_by_afxdp_is_refused_with_the_reason() {
    let lab = two_hosts(1500, 1);
    let refused = |queues: &[u32], options| afxdp(&lab, queues, options).expect_err("refused").to_string();
    let options = ReceiveOptions::default();
    assert!(refused(&[99], options).contains("rx0 has no receive queue 99"));
    assert!(refused(&[0, 0], options).contains("asked for twice"));
    let only = ReceiveOptions { mode: Mode::ZeroCopy, ..options };
    assert!(refused(&[0], only).contains("veth has no zero-copy"));
    let first = afxdp(&lab, &[0], options).expect("a receiver").remove(0);
    assert!(
        first.describe().to_string().contains("copy mode (veth has no zero-copy)"),
        "{}",
        first.describe()
    );
    assert!(refused(&[0], options).contains("an XDP program is attached to rx0 already"));
    drop(first);
    afxdp(&lab, &[0], options).expect("it is free again");
}
