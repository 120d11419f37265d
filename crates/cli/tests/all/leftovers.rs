//! Killed with SIGKILL, netdyno leaves no namespace, device, program or process behind.
//!
//! Other tests make namespaces and load programs at the same time, so what is looked for is told apart: a namespace
//! by a probe, a veth end of ours that was put into it and goes with it; a program by the number the killed process
//! held.

use crate::common::*;
use ::lab::Namespace;
use std::collections::BTreeSet;
use std::process::Command;

/// A veth pair with one end here and one in the namespace behind `path`.
struct Probe {
    home: Namespace,
}

impl Probe {
    fn in_namespace(path: &str) -> Probe {
        let probe = Probe { home: Namespace::new().expect("a namespace (as root)") };
        let mut add = probe.ip("link add probe0 type veth peer name probe1 netns");
        add.arg(path);
        start(add).wait().ok();
        assert!(!probe.is_gone());
        probe
    }

    fn ip(&self, words: &str) -> Command {
        let mut command = self.home.command("ip").expect("a command");
        command.args(words.split_whitespace());
        command
    }

    /// The other end went, so its namespace did.
    fn is_gone(&self) -> bool {
        start(self.ip("link show probe0")).wait().status != 0
    }
}

/// The network namespaces a process is in or holds, apart from ours.
fn namespaces_of(pid: u32) -> Vec<String> {
    let own = std::fs::read_link("/proc/self/ns/net").expect("our namespace");
    let mut seen = BTreeSet::from([own]);
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors");
    let candidates = fds.flatten().map(|entry| entry.path()).chain([format!("/proc/{pid}/ns/net").into()]);
    candidates
        .filter(|path| {
            std::fs::read_link(path)
                .is_ok_and(|target| target.to_string_lossy().starts_with("net:[") && seen.insert(target))
        })
        .map(|path| path.display().to_string())
        .collect()
}

/// The numbers of the BPF programs a process holds, directly or by a link.
pub fn programs_of(pid: u32) -> BTreeSet<u32> {
    let infos = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("its descriptors");
    infos
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
        .filter_map(|info| info.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok()))
        .collect()
}

pub fn is_loaded(program: u32) -> bool {
    libbpf_rs::query::ProgInfoIter::default().any(|info| info.id == program)
}

#[track_caller]
fn assert_gone(probes: &[Probe], programs: &BTreeSet<u32>) {
    eventually("its namespaces went", || probes.iter().all(Probe::is_gone));
    eventually("its programs went", || !programs.iter().any(|program| is_loaded(*program)));
    let links = run("ip -o link").ok().stdout;
    assert!(!links.contains("tx0") && !links.contains("rx0"), "{links}");
}

fn kill(running: Running) {
    running.signal("KILL");
    running.wait().with(128 + 9);
}

#[test]
fn a_killed_lab() {
    let dir = folder();
    let pids = path(&dir, "pids");
    let mut lab = command("netdyno lab -- sh -c");
    // A grandchild in a session of its own is what a signal to the child would miss.
    lab.arg(format!("setsid sleep 600 & readlink /proc/self/ns/net >{pids}; echo ready >&2; sleep 600"));
    let mut lab = start(lab);
    lab.until_it_says("ready");
    let probes: Vec<Probe> = namespaces_of(lab.pid()).iter().map(|path| Probe::in_namespace(path)).collect();
    assert_eq!(probes.len(), 2);
    let inside = std::fs::read_to_string(pids).expect("the namespace's name");
    kill(lab);
    assert_gone(&probes, &BTreeSet::new());
    let listed = run("lsns -n -t net -o NS").ok().stdout;
    let number = inside.trim().trim_start_matches("net:[").trim_end_matches(']');
    assert!(!listed.lines().any(|line| line.trim() == number), "{inside} in {listed}");
}

#[test]
fn a_killed_demo() {
    let dir = folder();
    let mut demo =
        command(format!("netdyno demo --duration 60s --rate 1mbps --report {}", path(&dir, "report")));
    demo.env("XDG_CACHE_HOME", dir.path()).env("TMPDIR", dir.path());
    let mut demo = start(demo);
    // It says this after the lab and before the meter stands; the program is loaded when frames arrive.
    demo.until_it_says("replay: ");
    eventually("its meter stands", || !programs_of(demo.pid()).is_empty());
    let probes: Vec<Probe> = namespaces_of(demo.pid()).iter().map(|path| Probe::in_namespace(path)).collect();
    assert!(
        (2..=3).contains(&probes.len()),
        "two hosts, and the spare veth of live frames: {}",
        probes.len()
    );
    let programs = programs_of(demo.pid());
    assert!(programs.iter().all(|program| is_loaded(*program)));
    kill(demo);
    assert_gone(&probes, &programs);
    // Its capture had no name.
    let left = listing(dir.path());
    assert!(left.iter().all(|name| name == "report"), "{left:?}");
}

#[test]
fn a_killed_replay_and_its_meter() {
    let net = Net::new();
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --count 100 --rate 1kpps -w {file}")).ok();
    let replay = net.start(format!("netdyno replay {file} --on tx0 --measure rx0 --duration 60s"));
    eventually("its meter stands", || {
        net.run_there("ip -d link show rx0").ok().stdout.contains("prog/xdp")
            && !programs_of(replay.pid()).is_empty()
    });
    let programs = programs_of(replay.pid());
    kill(replay);
    assert_gone(&[], &programs);
    assert!(!net.run_there("ip -d link show rx0").ok().stdout.contains("prog/xdp"));
    // And the next run starts as if nothing had been.
    net.run("netdyno send ipv4/udp --on tx0 --measure rx0 --meter xdp --topspeed --count 10").ok();
}

#[test]
fn killed_live_frames() {
    for pace in ["--topspeed", "--rate 1kpps"] {
        let net = Net::new();
        let send = net.start(format!(
            "netdyno send ipv4/udp --on tx0 --measure rx0 {pace} --duration 60s --engine xdp"
        ));
        net.until_frames_leave();
        let programs = programs_of(send.pid());
        assert!(programs.len() >= 2, "the meter's and the sender's: {programs:?}");
        kill(send);
        assert_gone(&[], &programs);
        let sent = || number(&net.run("ip -s -j link show tx0").ok().json()[0]["stats64"]["tx"]["packets"]);
        let before = sent();
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(sent(), before, "frames still leave");
        for link in [net.run("ip -d link show tx0"), net.run_there("ip -d link show rx0")] {
            assert!(!link.ok().stdout.contains("prog/xdp"));
        }
    }
}

#[test]
fn a_killed_measurement() {
    let net = Net::new();
    for how in ["xdp", "xdp-generic"] {
        let mut meter = net.start_there(format!("netdyno measure --on rx0 --meter {how}"));
        meter.until_it_says("measuring on rx0");
        let programs = programs_of(meter.pid());
        assert_eq!(programs.len(), 1);
        kill(meter);
        assert_gone(&[], &programs);
        let link = net.run_there("ip -d link show rx0").ok().stdout;
        // Promiscuity is given back as well.
        assert!(!link.contains("prog/xdp") && link.contains("promiscuity 0 "), "{link}");
    }
}

#[test]
fn a_killed_reflector() {
    let net = Net::new();
    for how in ["", "--generic", "--stamp", "--stamp --generic"] {
        let mut reflector = net.start_there(format!("netdyno reflect --on rx0 {how}"));
        reflector.until_it_says("reflecting on rx0");
        let programs = programs_of(reflector.pid());
        assert_eq!(programs.len(), 1);
        kill(reflector);
        assert_gone(&[], &programs);
        let link = net.run_there("ip -d link show rx0").ok().stdout;
        assert!(!link.contains("prog/xdp") && link.contains("promiscuity 0 "), "{link}");
    }
}

#[test]
fn a_killed_search() {
    let search = start(command(
        "netdyno search soak --lab --lab-loss 1% --rate 5kpps --max 5kpps --trial-duration 60s",
    ));
    eventually("its meter stands", || !programs_of(search.pid()).is_empty());
    let probes: Vec<Probe> =
        namespaces_of(search.pid()).iter().map(|path| Probe::in_namespace(path)).collect();
    // Where the programs of live frames are known to the kernel is a fourth, as soon as there are some.
    assert!((3..=4).contains(&probes.len()), "two hosts and a device: {}", probes.len());
    let programs = programs_of(search.pid());
    kill(search);
    assert_gone(&probes, &programs);
}

#[test]
fn a_run_that_ends_by_itself() {
    let net = Net::new();
    let links = || net.run("ip -d link").ok().stdout + &net.run_there("ip -d link").ok().stdout;
    let before = links();
    net.run("netdyno send ipv4/udp --on tx0 --measure rx0 --topspeed --count 100").ok();
    net.run_there("netdyno measure --on rx0 --duration 100ms --meter packet").ok();
    assert_eq!(links(), before);
}
