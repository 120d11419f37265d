use super::*;
use bpf::Run;
use bpf::object::Needs;

fn options(deep: bool) -> Options {
    Options { hook: Hook::XdpNative, promiscuous: false, drop: false, deep, tags_told: false, bytes: 0 }
}

fn heads(options: &Options, needs: Needs) -> Heads {
    let loaded = loader::load_with(options, needs, None).expect("this kernel takes every program");
    let target = Target { name: "none".to_owned(), index: 0, mtu: 1500 };
    Heads::over(&target, options, loaded, None, false)
}

/// A frame of IPv4 (0x0800), IPv6 (0x86dd) or anything else, whose other bytes count up.
fn frame(length: usize, kind: u16) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| at as u8 ^ length as u8).collect();
    for (at, byte) in
        [(12, kind.to_be_bytes()[0]), (13, kind.to_be_bytes()[1]), (14, 0x45), (20, 17), (23, 6)]
    {
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
    }
    bytes
}

const KINDS: [u16; 3] = [0x0800, 0x86dd, 0x8847];

/// Runs the program on a frame, on whatever CPU this is.
fn run(heads: &Heads, frame: &[u8], repeat: u32) -> bpf::Ran {
    heads.loaded.program.run(Run { repeat, ..Run::on(frame) }).expect("it runs")
}

/// All that is there, once it has settled.
fn all(heads: &mut Heads) -> Vec<(Vec<u8>, usize, u64)> {
    std::thread::sleep(Duration::from_nanos(2 * SETTLED_NS));
    let mut found = Vec::new();
    while heads.advance(Duration::ZERO).expect("memory") > 0 {
        found.extend(heads.frames().iter().map(|of| (of.bytes.to_vec(), of.length, of.stamp.ns)));
    }
    found
}

#[test]
fn every_program_copies_what_flows_need_of_frames_of_any_length() {
    for needs in Needs::ALL {
        for deep in [false, true] {
            let mut heads = heads(&options(deep), needs);
            let before = clocks::monotonic();
            // Run a program on a frame of less than 14 bytes the kernel does not.
            let sent: Vec<Vec<u8>> =
                (14..400).flat_map(|length| KINDS.map(|kind| frame(length, kind))).collect();
            sent.iter().for_each(|frame| drop(run(&heads, frame, 1)));
            let found = all(&mut heads);
            assert_eq!((found.len(), heads.dropped()), (sent.len(), 0), "{needs:?}");
            for ((bytes, length, ns), frame) in found.iter().zip(&sent) {
                assert_eq!(*length, frame.len(), "{needs:?}");
                assert_eq!(bytes[..], frame[..bytes.len()], "{needs:?}, {} bytes", frame.len());
                let least = match (deep, frame[12..14] == [8, 0], frame[12..14] == [0x86, 0xdd]) {
                    (true, ..) => 240,
                    (_, true, _) => 48,
                    (_, _, true) => 68,
                    _ => 112,
                };
                assert!(bytes.len() >= least.min(frame.len()), "{} of {}", bytes.len(), frame.len());
                assert!((before..clocks::monotonic()).contains(ns), "{ns}");
            }
        }
    }
}

#[test]
fn a_ring_is_used_again_and_what_finds_it_full_is_counted() {
    for needs in Needs::ALL {
        let mut heads = heads(&options(false), needs);
        let frame = frame(60, 0x8847);
        let room = heads.loaded.bytes / 80;
        // Some CPU's ring is overrun, whichever this thread runs on.
        let cpus = heads.loaded.count;
        for round in 0..5u64 {
            run(&heads, &frame, (2 * cpus * room) as u32);
            let found = all(&mut heads);
            assert!(found.len() > room - 8 && found.len() <= cpus * room, "{} of {room}", found.len());
            assert!(found.iter().all(|(bytes, length, _)| *bytes == frame && *length == 60));
            let sent = (round + 1) * 2 * (cpus * room) as u64;
            assert!(heads.dropped() >= sent - (round + 1) * (cpus * room) as u64, "{}", heads.dropped());
        }
    }
}

/// Attached to an interface that no frame comes to, for as long as this is kept: the kernel prepares each run of a program that is
/// attached nowhere, which takes it milliseconds.
fn attached(heads: &Heads) -> (lab::Lab, Link) {
    let options = lab::Options { mtu: 1500, ..Default::default() };
    let lab = lab::Lab::two_hosts(&options).expect("a lab (as root)");
    let there = &lab.receiver.namespace;
    let program = heads.loaded.program.share().expect("a descriptor");
    let attach = move || {
        let index = there.index_of("rx0").expect("the namespace").expect("rx0");
        program.attach(index, Hook::XdpNative).expect("a free interface")
    };
    let link = there.run_in(attach).expect("the namespace");
    (lab, link)
}

#[test]
fn what_several_cpus_saw_comes_in_the_order_of_its_times() {
    let mut heads = heads(&options(false), Needs::Buffers);
    let _kept = attached(&heads);
    let mut last_ns = 0;
    let mut count = 0;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let program = &heads.loaded.program;
            let frame = frame(60, 0x0800);
            // Another descriptor of the same program.
            let program = program.share().expect("a descriptor");
            scope.spawn(move || {
                for _ in 0..2000 {
                    program.run(Run { repeat: 3, ..Run::on(&frame) }).expect("it runs");
                }
            });
        }
        let start = Instant::now();
        while count + heads.dropped() < 4 * 2000 * 3 && start.elapsed() < Duration::from_secs(60) {
            heads.advance(Duration::from_millis(1)).expect("memory");
            for frame in heads.frames() {
                assert!(frame.stamp.ns >= last_ns, "{} after {last_ns}", frame.stamp.ns);
                last_ns = frame.stamp.ns;
                count += 1;
            }
            assert!(heads.until_ns() <= clocks::monotonic());
        }
    });
    assert_eq!(count + heads.dropped(), 4 * 2000 * 3);
}

/// Keeps the cost in view (`cargo test -p netdyno-meter heads -- --nocapture`); the bound only catches a blunder.
#[test]
fn a_head_costs_little() {
    let mut heads = heads(&options(false), Needs::Buffers);
    for (what, frame) in
        [("IPv4", frame(60, 0x0800)), ("IPv6", frame(80, 0x86dd)), ("other", frame(1514, 0x8847))]
    {
        let cost = (0..20).map(|_| {
            let cost = run(&heads, &frame, 1000).cost_ns;
            while heads.advance(Duration::ZERO).expect("memory") > 0 {}
            cost
        });
        let cost = cost.min().expect("runs");
        println!("{what}: {cost} ns");
        assert!(cost < 2000, "{cost}");
    }
}
