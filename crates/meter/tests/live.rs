//! The meter on real (virtual) cables: two silent hosts of a lab, so that every frame that arrives was sent here.
//! Needs root.
#![allow(unsafe_code, reason = "a packet socket to send on, which neither std nor rustix can open")]

use lab::{Lab, Namespace};
use netdyno_meter::{
    Action, Comparison, Hardware, Measurement, Meter, MeterError, Mode, Options, ProgramError,
};
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use wire::signature::{LEN, Signature, TIME_MASK};

const WAYS: [Mode; 3] = [Mode::XdpNative, Mode::XdpGeneric, Mode::PacketSocket];

fn two_hosts(mtu: u32) -> Lab {
    Lab::two_hosts(&lab::Options { mtu, ..Default::default() }).expect("a lab (as root)")
}

fn attach(lab: &Lab, options: &Options) -> Meter {
    try_attach(lab, "rx0", options).expect("a meter on rx0 (as root)")
}

fn try_attach(lab: &Lab, interface: &str, options: &Options) -> Result<Meter, MeterError> {
    lab.receiver.namespace.run_in(|| Meter::attach(interface, options)).expect("the receiver's namespace")
}

fn finish(meter: Meter, expected: u64) -> Measurement {
    meter.settle(Some(expected), Duration::from_secs(1), Duration::from_secs(5));
    meter.finish()
}

/// A socket that sends whole frames on an interface of `namespace`.
fn sender(namespace: &Namespace, interface: &str) -> OwnedFd {
    let index = namespace.index_of(interface).expect("the namespace").expect("the interface");
    let open = || {
        // SAFETY: plain system calls; the address is initialised and outlives the call that reads it; the descriptor
        // is new and nobody else's.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "a packet socket (as root)");
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = index as i32;
            let length = size_of::<libc::sockaddr_ll>() as u32;
            assert_eq!(libc::bind(fd, (&raw const address).cast(), length), 0, "bound to {interface}");
            OwnedFd::from_raw_fd(fd)
        }
    };
    namespace.run_in(open).expect("the sender's namespace")
}

fn transmit(socket: &OwnedFd, frame: &[u8]) {
    assert_eq!(send(socket, frame, SendFlags::empty()).expect("sent"), frame.len());
}

/// A frame of `length` bytes for nobody, of an Ethernet type for experiments (IEEE 802).
fn frame(length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.resize(length, 0x55);
    frame
}

fn signed(length: usize, stream: u32, sequence: u64) -> Vec<u8> {
    let time = clock_gettime(ClockId::Monotonic);
    let time = (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) & TIME_MASK;
    let mut frame = frame(length);
    frame[length - LEN..].copy_from_slice(&Signature { stream, sequence, time }.to_bytes());
    frame
}

#[test]
fn every_way_counts_every_frame_byte_and_size() {
    for mode in WAYS {
        let lab = two_hosts(9000);
        let meter = attach(&lab, &Options { mode, latency: false, ..Options::default() });
        let socket = sender(&lab.sender.namespace, "tx0");
        let lengths = [60, 61, 123, 124, 252, 508, 1020, 1514, 1515, 9014];
        for length in lengths.iter().cycle().take(2000) {
            transmit(&socket, &frame(*length));
        }
        // A VLAN tag, which the kernel takes out of the frame before a packet socket sees it.
        let mut tagged = frame(60);
        tagged.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
        transmit(&socket, &tagged);

        let measured = finish(meter, 2001);
        assert_eq!(measured.mode, mode);
        assert_eq!(measured.totals.frames, 2001, "{mode:?}");
        assert_eq!(measured.totals.bytes, lengths.iter().sum::<usize>() as u64 * 200 + 64, "{mode:?}");
        assert_eq!(measured.totals.sizes, [0, 200, 401, 200, 200, 200, 400, 400], "{mode:?}");
        assert_eq!(
            (measured.totals.signed, measured.streams.len(), measured.totals.meter_dropped),
            (0, 0, 0)
        );
        assert!(measured.totals.duration_ns() < 10_000_000_000);
    }
}

/// A program of TC that gives frames a tag, attached for as long as this lives.
struct Tagging(OwnedFd);

impl Drop for Tagging {
    /// Closing the descriptor would not do: a process that another test starts has it too until it runs its program.
    fn drop(&mut self) {
        // BPF_LINK_DETACH (Linux 5.9).
        bpf(34, &[self.0.as_raw_fd() as u64]);
    }
}

/// bpf(2): what it gives for `command`, which is no error.
fn bpf(command: i64, words: &[u64]) -> i32 {
    // SAFETY: the call reads as many bytes of `words` as it is told, which live until it returns.
    let given = unsafe { libc::syscall(libc::SYS_bpf, command, words.as_ptr(), size_of_val(words)) };
    assert!(given >= 0, "bpf({command}): {}", std::io::Error::last_os_error());
    given as i32
}

/// Gives every frame that leaves `interface` a VLAN tag beside its bytes, where a NIC leaves those that it takes out, for as
/// long as what it returns lives: by a program of TC (Linux 6.6) that calls bpf_skb_vlan_push.
fn tagging(namespace: &Namespace, interface: &str) -> Tagging {
    let index = namespace.index_of(interface).expect("the namespace").expect("the interface");
    const ETH_P_8021Q: u64 = 0x8100u16.to_be() as u64;
    // r2 = ETH_P_8021Q; r3 = 5; call bpf_skb_vlan_push; r0 = TCX_NEXT; exit. Code, registers, offset, value.
    let code = [
        0xb7 | 2 << 8 | ETH_P_8021Q << 32,
        0xb7 | 3 << 8 | 5 << 32,
        0x85 | 18 << 32,
        0xb7 | 0xffff_ffff << 32,
        0x95,
    ];
    // SAFETY: the descriptor that these commands give is new and nobody else's.
    let call = |command: i64, words: &[u64]| unsafe { OwnedFd::from_raw_fd(bpf(command, words)) };
    // BPF_PROG_LOAD: type (BPF_PROG_TYPE_SCHED_CLS) and number of instructions, instructions, licence.
    let program = call(5, &[3 | (code.len() as u64) << 32, code.as_ptr() as u64, c"MIT".as_ptr() as u64]);
    // BPF_LINK_CREATE: program and interface, BPF_TCX_EGRESS.
    let attach = || call(28, &[program.as_raw_fd() as u64 | u64::from(index) << 32, 47]);
    Tagging(namespace.run_in(attach).expect("the sender's namespace"))
}

/// A veth's driver tells programs of a tag that is beside the frame's bytes.
#[test]
fn a_tag_that_was_taken_out_is_counted_where_the_driver_tells_of_it() {
    let lab = two_hosts(1500);
    let socket = sender(&lab.sender.namespace, "tx0");
    for told in [true, false] {
        for mode in WAYS {
            let options = Options { mode, tags_taken_out: true, tags_told: told, ..Options::default() };
            let meter = attach(&lab, &options);
            let tags = tagging(&lab.sender.namespace, "tx0");
            (0..100).for_each(|sequence| transmit(&socket, &signed(60, 0, sequence)));
            drop(tags);
            (0..100).for_each(|sequence| transmit(&socket, &signed(60, 1, sequence)));
            let measured = finish(meter, 200);
            let seen = mode == Mode::PacketSocket || told && mode == Mode::XdpNative;
            let with_tags = if seen { 6400 } else { 6000 };
            let bytes: Vec<u64> = measured.streams.iter().map(|stream| stream.bytes).collect();
            assert_eq!(bytes, [with_tags, 6000], "{mode:?} {told}");
            assert_eq!(
                (measured.totals.bytes, measured.tags_unseen),
                (with_tags + 6000, !seen),
                "{mode:?} {told}"
            );
            assert_eq!(measured.totals.sizes[1], if seen { 100 } else { 200 }, "{mode:?} {told}");
            assert_eq!(measured.totals.latency.count(), 200);
        }
    }
}

/// A process that another thread starts holds every descriptor until it runs its program.
#[test]
fn an_interface_is_free_as_soon_as_the_meter_is_done_whoever_else_holds_its_descriptors() {
    let lab = two_hosts(1500);
    for mode in WAYS {
        let meter = attach(&lab, &Options { mode, ..Options::default() });
        let links: Vec<File> = fs::read_dir("/proc/self/fd")
            .expect("descriptors")
            .filter_map(|entry| {
                let fd = entry.ok()?;
                let link = fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:bpf_link");
                let fd = fd.file_name().to_str()?.parse().ok().filter(|_| link)?;
                // SAFETY: a number is all that is given, and the descriptor it gives is new and nobody else's.
                unsafe { File::from_raw_fd(Some(libc::dup(fd)).filter(|fd| *fd >= 0)?) }.into()
            })
            .collect();
        assert!(mode == Mode::PacketSocket || !links.is_empty(), "{mode:?}");
        finish(meter, 0);
        finish(attach(&lab, &Options { mode, ..Options::default() }), 0);
    }
}

/// A clock of hardware that is this host's own.
fn hardware(required: bool) -> Option<Hardware> {
    let now = || {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let compare = move || Ok(Comparison { before_ns: now(), device_ns: now(), after_ns: now() });
    Some(Hardware { compare: Arc::new(compare), to_xdp: true, required })
}

/// A veth's driver gives the stamps of the hardware that a frame came through; through a cable of the lab it came through
/// none.
#[test]
fn frames_that_no_hardware_stamped_are_timed_by_software_and_counted() {
    let lab = two_hosts(1500);
    let meter = attach(&lab, &Options { hardware: hardware(true), ..Options::default() });
    assert!(meter.reason().contains("time stamps of the hardware"), "{}", meter.reason());
    let socket = sender(&lab.sender.namespace, "tx0");
    (0..500).for_each(|sequence| transmit(&socket, &signed(60, 0, sequence)));
    let measured = finish(meter, 500);
    let stamps = measured.stamps.expect("it was asked for");
    assert_eq!((measured.mode, measured.totals.frames, stamps.frames), (Mode::XdpNative, 500, 0));
    assert_eq!((measured.totals.latency.count(), measured.totals.negative_latencies), (500, 0));
    assert!(measured.totals.latency.max() < 1_000_000_000);
    assert_eq!((stamps.lost, stamps.set_ns), (None, None));
}

#[test]
fn hardware_stamps_that_cannot_be_had_are_refused_or_done_without() {
    let lab = two_hosts(1500);
    let failing = |required| {
        let compare = || Err(std::io::Error::other("it has stopped"));
        Some(Hardware { compare: Arc::new(compare), to_xdp: true, required })
    };
    let said = |options| try_attach(&lab, "rx0", &options).expect_err("refused").to_string();
    let stopped = said(Options { hardware: failing(true), ..Options::default() });
    assert!(stopped.contains("rx0") && stopped.contains("it has stopped"), "{stopped}");
    let generic = Options { hardware: hardware(true), mode: Mode::XdpGeneric, ..Options::default() };
    assert!(said(generic).contains("generic XDP sees none"));
    let without = attach(&lab, &Options { hardware: failing(false), ..Options::default() });
    assert_eq!((without.mode(), without.stamps()), (Mode::XdpNative, None));
    assert!(without.reason().contains("it has stopped"), "{}", without.reason());
}

/// A packet socket's frames have the hardware's stamps of every driver; through a cable of the lab they have none.
#[test]
fn a_packet_socket_takes_the_hardwares_stamps_where_xdp_programs_get_none() {
    let lab = two_hosts(1500);
    let sockets_only = |required| {
        let hardware = hardware(required).map(|hardware| Hardware { to_xdp: false, ..hardware });
        Options { hardware, ..Options::default() }
    };
    let meter = attach(&lab, &sockets_only(true));
    assert!(meter.reason().contains("to sockets, and not to XDP programs"), "{}", meter.reason());
    assert!(meter.reason().contains("arrivals by time stamps of the hardware"), "{}", meter.reason());
    let socket = sender(&lab.sender.namespace, "tx0");
    (0..500).for_each(|sequence| transmit(&socket, &signed(60, 0, sequence)));
    let measured = finish(meter, 500);
    let stamps = measured.stamps.expect("it was asked for");
    assert_eq!((measured.mode, measured.totals.frames, stamps.frames), (Mode::PacketSocket, 500, 0));
    assert_eq!((measured.totals.latency.count(), measured.totals.negative_latencies), (500, 0));
    assert_eq!((stamps.lost, stamps.set_ns), (None, None));

    // Not required, they are no reason to give up XDP; and a packet socket that was asked for takes them.
    let native = attach(&lab, &sockets_only(false));
    assert_eq!((native.mode(), native.stamps()), (Mode::XdpNative, None));
    assert_eq!(native.reason(), "native XDP");
    let asked = attach(&lab, &Options { mode: Mode::PacketSocket, ..sockets_only(false) });
    assert_eq!((asked.mode(), asked.stamps().map(|stamps| stamps.frames)), (Mode::PacketSocket, Some(0)));
}

#[test]
fn every_way_finds_the_same_loss_order_and_duplicates() {
    for mode in WAYS {
        let lab = two_hosts(1500);
        let meter = attach(&lab, &Options { mode, streams: 2, ..Options::default() });
        let socket = sender(&lab.sender.namespace, "tx0");
        // Stream 0: numbers 100 to 149 and every one that ends in 7 are left out of 0 to 999.
        let kept: Vec<u64> = (0..1000).filter(|n| !(100..150).contains(n) && n % 10 != 7).collect();
        kept.iter().for_each(|sequence| transmit(&socket, &signed(60, 0, *sequence)));
        // Stream 1: 3 overtakes 2; 4 comes twice. Stream 2 is beyond the table.
        [0, 1, 3, 2, 4, 5, 4, 6].iter().for_each(|sequence| transmit(&socket, &signed(200, 1, *sequence)));
        transmit(&socket, &signed(60, 2, 0));

        let sent = kept.len() as u64 + 8 + 1;
        let measured = finish(meter, sent);
        assert_eq!(
            (measured.totals.frames, measured.totals.signed, measured.totals.unplaced),
            (sent, sent, 1),
            "{mode:?}"
        );
        let [first, second] = &measured.streams[..] else { panic!("two streams: {:?}", measured.streams) };
        assert_eq!((first.stream, first.frames, first.highest_sequence), (0, 855, 999), "{mode:?}");
        assert_eq!((first.lost, first.reordered, first.duplicates, first.late), (145, 0, 0, 0), "{mode:?}");
        assert_eq!((second.frames, second.bytes, second.highest_sequence), (8, 1600, 6), "{mode:?}");
        assert_eq!((second.lost, second.reordered, second.duplicates), (0, 1, 1), "{mode:?}");
        assert_eq!(second.lost_of(10), 3);

        let latency = &measured.totals.latency;
        assert_eq!((latency.count(), measured.totals.negative_latencies), (sent, 0), "{mode:?}: {latency:?}");
        assert!(
            latency.min() > 100 && latency.p50() < 5_000_000 && latency.max() < 2_000_000_000,
            "{mode:?}: {latency:?}"
        );
        let stream = first.latency.expect("stream 0 was stamped");
        assert!(stream.count == 855 && stream.min_ns >= latency.min() && stream.max_ns <= latency.max());
    }
}

#[test]
fn every_way_records_the_arrivals_in_order() {
    for mode in WAYS {
        let lab = two_hosts(1500);
        let meter = attach(&lab, &Options { mode, arrivals: 30, latency: false, ..Options::default() });
        let socket = sender(&lab.sender.namespace, "tx0");
        for _ in 0..40 {
            transmit(&socket, &frame(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        let measured = finish(meter, 40);
        assert_eq!(measured.arrivals.len(), 30, "{mode:?}");
        assert_eq!((measured.totals.arrivals, measured.totals.arrivals_missed), (30, 10), "{mode:?}");
        assert_eq!(measured.totals.first_ns, measured.arrivals.first().copied(), "{mode:?}");
        // A sleep is never shorter than asked; a stalled machine may make it longer.
        let gaps: Vec<u64> = measured.arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let slept = gaps.iter().filter(|gap| (900_000..50_000_000).contains(*gap)).count();
        assert!(slept >= 25, "{mode:?}: {gaps:?}");
    }
}

#[test]
fn a_dropping_meter_keeps_frames_from_the_host_and_a_passing_one_does_not() {
    for (action, seen) in [(Action::Drop, 0), (Action::Pass, 100)] {
        let lab = two_hosts(1500);
        let meter = attach(&lab, &Options { action, mode: Mode::XdpNative, ..Options::default() });
        let behind = attach(&lab, &Options { mode: Mode::PacketSocket, ..Options::default() });
        let socket = sender(&lab.sender.namespace, "tx0");
        (0..100).for_each(|sequence| transmit(&socket, &signed(60, 0, sequence)));
        assert_eq!(finish(meter, 100).totals.frames, 100);
        assert_eq!(finish(behind, seen.max(1)).totals.frames, seen, "{action:?}");
    }
}

#[test]
fn a_packet_socket_says_that_frames_reach_the_host() {
    let lab = two_hosts(1500);
    let meter = attach(&lab, &Options { mode: Mode::PacketSocket, ..Options::default() });
    assert!(meter.reason().contains("also reach the host's own stack"), "{}", meter.reason());
}

#[test]
fn auto_takes_native_xdp_on_veth_and_generic_on_loopback_and_says_why() {
    let lab = two_hosts(1500);
    let meter = attach(&lab, &Options::default());
    assert_eq!((meter.mode(), meter.reason()), (Mode::XdpNative, "native XDP"));

    let meter = try_attach(&lab, "lo", &Options::default()).expect("generic XDP on lo");
    assert_eq!(meter.mode(), Mode::XdpGeneric);
    let said = "native XDP not possible on lo: the driver has no XDP support (EOPNOTSUPP)";
    assert!(meter.reason().starts_with(said), "{}", meter.reason());
    assert!(meter.reason().contains("generic XDP: expect about half the rate"), "{}", meter.reason());
}

#[test]
fn a_program_that_is_there_already_is_left_alone_and_named() {
    let lab = two_hosts(1500);
    let first = attach(&lab, &Options { action: Action::Pass, ..Options::default() });
    let second = attach(&lab, &Options::default());
    assert_eq!(second.mode(), Mode::PacketSocket);
    assert!(second.reason().contains("(meter) is attached already and is left alone"), "{}", second.reason());
    let native = Options { mode: Mode::XdpNative, ..Options::default() };
    let refused = try_attach(&lab, "rx0", &native).expect_err("no second program");
    assert!(matches!(refused, MeterError::Program(ProgramError::NotPossible { .. })), "{refused}");

    transmit(&sender(&lab.sender.namespace, "tx0"), &frame(60));
    assert_eq!((finish(first, 1).totals.frames, finish(second, 1).totals.frames), (1, 1));
}

#[test]
fn finishing_detaches_so_that_the_next_meter_starts_from_nothing() {
    let lab = two_hosts(1500);
    let socket = sender(&lab.sender.namespace, "tx0");
    for _ in 0..3 {
        let meter = attach(&lab, &Options { mode: Mode::XdpNative, ..Options::default() });
        transmit(&socket, &frame(60));
        assert_eq!(finish(meter, 1).totals.frames, 1);
    }
}

#[test]
fn a_meter_works_from_any_thread_and_can_be_polled_while_it_counts() {
    let lab = two_hosts(1500);
    let meter = attach(&lab, &Options::default());
    let socket = sender(&lab.sender.namespace, "tx0");
    let frames = std::thread::scope(|scope| {
        let polled = scope.spawn(|| {
            let mut last = 0;
            while last < 20_000 {
                let now = meter.snapshot();
                assert!(now.frames >= last && now.frames <= 20_000);
                last = now.frames;
            }
            last
        });
        (0..20_000).for_each(|sequence| transmit(&socket, &signed(60, 5, sequence)));
        polled.join().expect("the polling thread")
    });
    assert_eq!((frames, meter.stream(5).map(|stream| stream.lost)), (20_000, Some(0)));
}

#[test]
fn an_unknown_interface_and_senseless_options_are_refused_by_name() {
    let lab = two_hosts(1500);
    let refused = |interface, options| match try_attach(&lab, interface, &options) {
        Err(error) => error.to_string(),
        Ok(meter) => panic!("{interface} with {options:?}: {meter:?}"),
    };
    assert!(refused("nic9", Options::default()).contains("no interface `nic9`"));
    assert!(refused("rx0", Options { streams: 0, ..Options::default() }).contains("0 streams"));
    assert!(
        refused("rx0", Options { streams: (1 << 24) + 1, ..Options::default() }).contains("1 to 16777216")
    );
    assert!(
        refused("rx0", Options { arrivals: 1 << 32, ..Options::default() }).contains("4294967296 arrivals")
    );
}

#[test]
fn every_way_notices_that_its_interface_is_gone_and_keeps_what_it_counted() {
    for mode in WAYS {
        let lab = two_hosts(1500);
        let meter = attach(&lab, &Options { mode, ..Options::default() });
        transmit(&sender(&lab.sender.namespace, "tx0"), &frame(60));
        meter.settle(Some(1), Duration::from_secs(1), Duration::from_secs(1));
        assert!(meter.is_attached(), "{mode:?}");
        let remove =
            lab.sender.namespace.command("ip").expect("the namespace").args(["link", "del", "tx0"]).status();
        assert!(remove.expect("ip, of iproute2").success());
        let noticed = (0..6_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            !meter.is_attached()
        });
        assert!(noticed, "{mode:?}");
        assert_eq!(meter.finish().totals.frames, 1, "{mode:?}");
    }
}

#[test]
fn without_rights_the_error_names_the_capabilities_to_give() {
    let lab = two_hosts(1500);
    for mode in [Mode::Auto, Mode::XdpNative, Mode::PacketSocket] {
        let attach = || {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, sets).expect("a thread may always give up its rights");
            Meter::attach("rx0", &Options { mode, ..Options::default() })
        };
        let refused = lab.receiver.namespace.run_in(attach).expect("the namespace").expect_err("no rights");
        let said = refused.to_string();
        assert!(
            said.contains("not permitted: run with sudo") && said.contains("CAP_NET_RAW"),
            "{mode:?}: {said}"
        );
    }
}

#[test]
fn nothing_stays_attached_after_sigkill() {
    const CHILD: &str = "NETDYNO_TEST_HOLD_METER";
    let native = Options { mode: Mode::XdpNative, ..Options::default() };
    if std::env::var_os(CHILD).is_some() {
        // The child's part: hold a meter until killed.
        let _meter = Meter::attach("rx0", &native).expect("a meter on rx0");
        println!("attached");
        std::thread::sleep(Duration::from_secs(900));
        return;
    }
    let lab = two_hosts(1500);
    let me = std::env::current_exe().expect("this test's program");
    let mut child = lab.receiver.namespace.command(me).expect("the receiver's namespace");
    child.args(["--exact", "nothing_stays_attached_after_sigkill", "--nocapture"]).env(CHILD, "1");
    let mut child = child.stdout(Stdio::piped()).spawn().expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("attached")), "the child attached");
    assert!(try_attach(&lab, "rx0", &native).is_err(), "the child holds the interface");

    kill_process(Pid::from_child(&child), Signal::KILL).expect("killed");
    child.wait().expect("reaped");
    // The kernel closes a dead process's descriptors before its parent hears of it, and links a moment later.
    let attached = (0..6_000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        try_attach(&lab, "rx0", &native).ok()
    });
    assert!(attached.is_some(), "the interface is free again");
}
