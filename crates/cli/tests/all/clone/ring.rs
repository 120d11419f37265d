//! Clones whose frames come from programs at traffic control, by a BPF ring buffer: the same as by a packet socket, of the same
//! sessions; nothing is left of the programs when the clone is killed.

use super::faults::assert_honest;
use super::oracle::{self, Load, Server};
use super::{LOAD, Three, assert_copied, cloned, ended};
use crate::common::{eventually, folder, inside, number, reasons, start};
use ::lab::Namespace;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

const BY_RING: &str = "--capture ring-buffer";

/// Programs at both sides of traffic control (tcx) of an interface.
fn programs_on(namespace: &Namespace, interface: &str) -> usize {
    use libbpf_rs::libbpf_sys as sys;
    let query = || {
        let index = namespace.index_of(interface).expect("the namespace").expect("the interface");
        let of = |hook| {
            let mut options = sys::bpf_prog_query_opts {
                sz: size_of::<sys::bpf_prog_query_opts>() as sys::size_t,
                ..Default::default()
            };
            // SAFETY: `options` states its size and outlives the call.
            #[allow(unsafe_code, reason = "libbpf's query has no safe wrapper for tcx")]
            let result = unsafe { sys::bpf_prog_query_opts(index as i32, hook, &raw mut options) };
            assert_eq!(result, 0, "the kernel tells what is attached");
            // SAFETY: the kernel has written it.
            #[allow(unsafe_code, reason = "a union of counts")]
            let count = unsafe { options.__bindgen_anon_1.count };
            count as usize
        };
        of(sys::BPF_TCX_INGRESS) + of(sys::BPF_TCX_EGRESS)
    };
    namespace.run_in(query).expect("the namespace")
}

#[test]
fn by_a_ring_buffer_each_request_is_copied_once_and_the_clients_see_nothing_of_it() {
    for (words, load) in [
        ("", LOAD),
        ("--threads 3", LOAD),
        ("", Load { connections: 8, requests: 600, per_second: 1500, body: 0, short: true }),
    ] {
        let (three, dir) = (Three::new(), folder());
        let [online, target] = three.servers(128);
        let (tcpdump, seen) = three.watch(&dir);
        let clone = three.clone(&format!("{BY_RING} {words}"));
        assert_eq!(programs_on(&three.online, "o0"), 2);
        oracle::run(&three.clients, "10.77.1.1:80", load);
        let (_, report) = ended(clone);
        tcpdump.signal("INT");
        tcpdump.wait().ok();
        assert_copied(&report, &online.seen(), &target.seen(), 1);
        assert_eq!(crate::common::frames(&seen).len(), 0, "frames of the copy on the clients' link");
        assert_eq!(programs_on(&three.online, "o0"), 0);
    }
}

#[test]
fn by_a_ring_buffer_ipv6_and_what_passes_a_loopback_is_copied() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone(BY_RING);
    oracle::run(&three.clients, "[fd77:1::1]:80", Load { requests: 400, ..LOAD });
    let (_, report) = ended(clone);
    assert_copied(&report, &online.seen(), &target.seen(), 1);

    let [online, target] = three.servers(128);
    let line = format!("netdyno clone --from lo:127.0.0.1:80 --to 10.77.2.2:80 --json {BY_RING}");
    let mut clone = start(inside(&three.online, &line));
    clone.until_it_says("Ctrl-C ends");
    oracle::run(&three.online, "127.0.0.1:80", Load { requests: 400, ..LOAD });
    let (_, report) = ended(clone);
    assert_copied(&report, &online.seen(), &target.seen(), 1);
}

#[test]
fn both_captures_choose_the_same_sessions_by_the_same_seed() {
    for words in ["--sample 40% --seed 7", "--copies 0.5 --seed 8"] {
        let three = Three::new();
        let online = Server::start(&three.online, "[::]:80", 128);
        let targets = ["[::]:80", "[::]:81"].map(|at| Server::start(&three.target, at, 128));
        let clones = [("80", ""), ("81", BY_RING)].map(|(port, how)| {
            let line = format!("netdyno clone --from o0:80 --to 10.77.2.2:{port} --json {words} {how}");
            let mut clone = start(inside(&three.online, &line));
            clone.until_it_says("Ctrl-C ends");
            clone
        });
        let load = Load { connections: 300, requests: 3000, per_second: 6000, ..LOAD };
        oracle::run(&three.clients, "10.77.1.1:80", load);
        let reports = clones.map(|clone| ended(clone).1);
        assert_eq!(online.seen().counts().len(), 3000);
        let [by_socket, by_ring] = targets.map(Server::seen);
        for (seen, report) in [(&by_socket, &reports[0]), (&by_ring, &reports[1])] {
            let sessions = &cloned(report)["sessions"];
            assert_eq!((seen.bad, seen.disordered()), (0, 0));
            assert_eq!(number(&sessions["copied"]), seen.connections.len() as u64);
            assert_eq!(number(&sessions["copied"]) + number(&sessions["sampled_out"]), 300, "{sessions}");
            assert!(reasons(report).is_empty(), "{:?}", reasons(report));
        }
        let chosen = [&by_socket, &by_ring]
            .map(|seen| seen.connections.iter().map(|(_, ids)| ids.clone()).collect::<BTreeSet<Vec<u64>>>());
        assert_eq!(chosen[0], chosen[1]);
        assert!((60..240).contains(&chosen[0].len()), "{}", chosen[0].len());
        // Of the sessions that were left out nothing else was copied out of the kernel than their beginnings and ends.
        let frames = reports.map(|report| number(&cloned(&report)["frames"]["captured"]));
        assert!(frames[1] < frames[0] * 3 / 4, "{frames:?}");
    }
}

#[test]
fn by_a_ring_buffer_super_packets_come_whole() {
    let three = Three::new();
    let [online, target] = three.servers(60_000);
    let clone = three.clone(BY_RING);
    let load = Load { connections: 6, requests: 240, per_second: 400, body: 200_000, short: false };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    let (_, report) = ended(clone);
    let frames = number(&cloned(&report)["frames"]["from_clients"]);
    let online = online.seen();
    assert!(frames * 1500 < online.bytes, "there were no super-packets: {frames} for {} bytes", online.bytes);
    assert_copied(&report, &online, &target.seen(), 1);
}

#[test]
fn a_ring_buffer_that_overflows_counts_what_it_lost_and_cuts_those_sessions() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone(BY_RING);
    clone.signal("STOP");
    // More than the ring has room for.
    let load = Load { connections: 6, requests: 3000, per_second: 4000, body: 60_000, short: false };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    clone.signal("CONT");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let (ran, report) = ended(clone);
    ran.with(1);
    assert!(number(&cloned(&report)["dropped_frames"]) > 0, "{report}");
    let (online, target) = (online.seen(), target.seen());
    assert_eq!(online.bad, 0);
    assert!(assert_honest(&report, &online, &target) > 0, "nothing was lost: {report}");
    let said = reasons(&report).join("\n");
    assert!(said.contains("lost before they could be looked at"), "{said}");
}

#[test]
fn after_a_kill_no_program_is_left_at_the_interface() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone(BY_RING);
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    eventually("some are copied", || target.requests.load(Relaxed) > 0);
    assert_eq!(programs_on(&three.online, "o0"), 2);
    clone.signal("KILL");
    drop(clone.wait());
    eventually("nothing is left", || programs_on(&three.online, "o0") == 0);
    // The server's clients know nothing of it.
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    assert_eq!(online.seen().bad, 0);
    drop(target.seen());
}
