//! A probe at one agent that exports to a collector at another: records sent are those received and those missing.

use crate::agents_send::{agent, command, of, run};
use crate::common::{Net, number, reasons, start};
use ::lab::{Namespace, Options};
use serde_json::Value;

/// The receiving host has a probe at rx0 and a way to the collector's host: 10.78.0.1 -- 10.78.0.2.
struct Hosts {
    net: Net,
    collector: Namespace,
}

impl Hosts {
    fn new() -> Hosts {
        let hosts =
            Hosts { net: Net::with(&Options::default()), collector: Namespace::new().expect("a host") };
        let there = crate::common::handle(&hosts.collector);
        hosts.net.run_there(format!("ip link add p0 type veth peer name k0 netns {there}")).ok();
        hosts.net.run_there("ip addr add 10.78.0.1/24 dev p0").ok();
        hosts.net.run_there("ip link set p0 up").ok();
        for line in ["ip addr add 10.78.0.2/24 dev k0", "ip link set k0 up", "ip link set lo up"] {
            hosts.at(line);
        }
        hosts
    }

    fn at(&self, line: &str) {
        start(crate::common::inside(&self.collector, line)).wait().ok();
    }

    fn agents(&self) -> [(&'static str, String); 2] {
        let probe = agent(
            &self.net.lab.receiver.namespace,
            "--allow-interface rx0 --allow-address 10.78.0.2:2055 --allow-address tcp://10.78.0.2:2055",
        );
        [("probe", probe), ("coll", agent(&self.collector, "--allow-listen *10.78.0.2:2055"))]
    }

    /// 2,000 flows of a frame, metered until these are all.
    fn metered(&self, to: &str, words: &[&str]) -> crate::common::Ran {
        let export = format!("{to}10.78.0.2:2055@coll");
        let all = ["probe", "--on", "rx0@probe", "--export", &export, "--count", "2000", "--json"];
        let mut running = start(command(&[&all[..], words].concat(), &self.agents()));
        running.until_it_says("probe: metering");
        let what = "ipv4(src=10.0.0.0/24)/udp(sport=1000..2999,dport=9)";
        self.net.run(format!("netdyno send {what} --on tx0 --rate 4kpps --count 2000")).ok();
        running.wait()
    }
}

/// As people read it.
fn grouped(count: u64) -> String {
    if count < 1000 { count.to_string() } else { format!("{},{:03}", count / 1000, count % 1000) }
}

fn collected(result: &Value) -> u64 {
    number(&result["result"]["collection"]["records"])
}

#[test]
fn records_of_a_probe_at_one_agent_are_counted_by_a_collector_at_another() {
    let hosts = Hosts::new();
    for (to, words) in [("", &[][..]), ("", &["--format", "9"]), ("tcp://", &[])] {
        let result = hosts.metered(to, words).ok().json();
        let metering = &result["result"]["metering"];
        let sent = number(&metering["sent_records"]);
        assert_eq!((number(&metering["packets"]), sent), (2_000, 2_000), "{to} {words:?} {metering}");
        assert_eq!((number(&metering["arrived_records"]), number(&metering["missing_records"])), (sent, 0));
        assert_eq!(collected(&result), sent);
        assert_eq!(number(&result["result"]["collection"]["packets"]), 2_000);
        assert_eq!(of(&result, "coll")["report"]["command"], "collect", "{result}");
        assert_eq!(
            result["requested"]["export"][0],
            format!("{to}10.78.0.2:2055@coll"),
            "it can be run again"
        );
    }
    let left = start(crate::common::inside(&hosts.collector, "ss -Huan")).wait().ok().stdout;
    assert!(left.trim().is_empty(), "{left}");
}

#[test]
fn records_that_are_lost_on_the_way_are_missing_by_both_ends_counts() {
    let hosts = Hosts::new();
    // Every third datagram, by the kernel of the collector's host, which counts them.
    hosts.at("nft add table ip t");
    hosts.at("nft add chain ip t in { type filter hook input priority 0 ; }");
    hosts.at("nft add rule ip t in udp dport 2055 numgen inc mod 3 == 1 counter drop");
    let ran = hosts.metered("", &[]);
    let result = ran.json();
    let metering = &result["result"]["metering"];
    let [sent, arrived, missing] =
        ["sent_records", "arrived_records", "missing_records"].map(|what| number(&metering[what]));
    assert_eq!((sent, arrived + missing), (2_000, 2_000), "{metering}");
    assert_eq!(collected(&result), arrived);
    let rules =
        start(crate::common::inside(&hosts.collector, "nft -j list chain ip t in")).wait().ok().json();
    let dropped = rules.to_string().split("\"packets\":").nth(1).map(str::to_owned).unwrap_or_default();
    let dropped: u64 =
        dropped.split([',', '}']).next().and_then(|n| n.trim().parse().ok()).expect("a counter");
    assert!(dropped > 0 && missing > 0 && arrived > 0, "{dropped} {metering}");
    let said = reasons(&result).join("\n");
    assert_eq!(ran.status, 1, "{said}");
    let wanted = format!(
        "probe sent 2,000 records to coll, which received {}: {missing} are missing",
        grouped(arrived)
    );
    assert!(said.contains(&wanted), "{said}");
}

#[test]
fn who_may_not_collect_or_is_no_agent_is_named_before_anything_is_metered() {
    let hosts = Hosts::new();
    let words = |to: &'static str| ["probe", "--on", "rx0@probe", "--export", to, "--count", "1"];
    let mut agents = hosts.agents();
    agents[1].1 = agent(&hosts.collector, "");
    run(&words("10.78.0.2:2055@coll"), &agents).refused(&["coll", "--allow-listen '10.78.0.2:2055'"]);
    run(&words("10.78.0.2:2055@nobody"), &hosts.agents()).refused(&["no agent `nobody`", "--export"]);
    let mut agents = hosts.agents();
    agents[0].1 = agent(&hosts.net.lab.receiver.namespace, "--allow-interface rx0");
    run(&words("10.78.0.2:2055@coll"), &agents).refused(&["probe", "--allow-address '10.78.0.2:2055'"]);
}
