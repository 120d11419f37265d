//! Other programs that copy sessions, under the same load, for whoever measures: no distribution has packages of tcpcopy and
//! intercept, so their executables are named by `NETDYNO_CLONE_PEERS="TCPCOPY INTERCEPT"`. No test runs them.

use super::Three;
use super::oracle::{self, Load, Server};
use crate::common::{Running, inside, start};
use std::time::Duration;

/// tcpcopy on the server's host. intercept is at the target, behind an interface whose far end nobody answers at: what the target says
/// to clients goes there, as it would to an assistant's host, and no further.
pub struct Peers([Running; 2]);

impl Peers {
    pub fn start(three: &Three, options: &str) -> Peers {
        let named = std::env::var("NETDYNO_CLONE_PEERS").expect("NETDYNO_CLONE_PEERS=\"TCPCOPY INTERCEPT\"");
        let (tcpcopy, intercept) = named.split_once(' ').expect("two executables");
        for words in [
            "link add sink0 type veth peer name sink1",
            "address add 10.78.0.1/24 dev sink0",
            "link set sink0 up",
            "link set sink1 up",
            "neighbor add 10.78.0.2 lladdr 02:00:00:00:78:02 dev sink0",
            "route del default",
            "route add 10.77.1.0/24 via 10.78.0.2",
            "route replace 10.99.0.0/16 via 10.78.0.2",
        ] {
            three.ip(&three.target, words);
        }
        for namespace in [&three.online, &three.target] {
            super::set(namespace, "ipv4/conf/all/rp_filter", "0");
        }
        // Nothing that has been captured may be routed on to clients by the server's host.
        super::set(&three.online, "ipv4/ip_forward", "0");
        let log =
            |name: &str| format!("{}/{name}-{}.log", std::env::temp_dir().display(), std::process::id());
        let mut second = inside(&three.target, &format!("{intercept} -i sink1 -l {}", log("intercept")));
        second.args(["-F", "tcp and src port 80"]);
        let second = start(second);
        std::thread::sleep(Duration::from_millis(500));
        let line = format!("{tcpcopy} -x 80-10.77.2.2:80 -s 10.77.2.2 -l {} {options}", log("tcpcopy"));
        let first = start(inside(&three.online, &line));
        std::thread::sleep(Duration::from_millis(1000));
        Peers([first, second])
    }

    /// CPU time of each so far, what its system calls did in their context included.
    pub fn cpu(&mut self) -> [Duration; 2] {
        self.0.each_mut().map(|running| {
            running.must_run();
            let stat =
                std::fs::read_to_string(format!("/proc/{}/schedstat", running.pid())).expect("a process");
            let all = std::fs::read_dir(format!("/proc/{}/task", running.pid())).expect("its threads");
            let of = |text: &str| text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
            let threads = all
                .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
                .map(|text| of(&text))
                .sum::<u64>();
            Duration::from_nanos(threads.max(of(&stat)))
        })
    }
}

/// Prints what they cost under a load, and how much of it they copied.
pub fn measured(three: &Three, target: &Server, load: Load, copies: u64, options: &str) {
    let mut peers = Peers::start(three, options);
    let before = peers.cpu();
    let began = std::time::Instant::now();
    let mut took = oracle::run(&three.clients, "10.77.1.1:80", load);
    let seconds = began.elapsed().as_secs_f64();
    took.sort_unstable();
    // What they still have to say is of the same cost.
    std::thread::sleep(Duration::from_secs(2));
    let after = peers.cpu();
    let share = |n: usize| (after[n] - before[n]).as_secs_f64() / seconds * 100.0;
    println!(
        "{:.0} requests/s for {seconds:.2} s; clients p50 {} p99 {} us; copied {} of {}; clone's CPU {:.1} % of a core \
         ({:.1} tcpcopy, {:.1} intercept)",
        load.requests as f64 / seconds,
        took[took.len() / 2] / 1000,
        took[took.len() * 99 / 100] / 1000,
        target.requests.load(std::sync::atomic::Ordering::Relaxed),
        load.requests * copies,
        share(0) + share(1),
        share(0),
        share(1),
    );
    assert_eq!(target.requests.load(std::sync::atomic::Ordering::Relaxed), load.requests * copies);
}
