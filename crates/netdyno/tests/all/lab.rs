//! `netdyno lab -- CMD`: two hosts for any command, and its exit status.

use crate::common::*;

fn in_lab(options: &str, script: &str) -> Ran {
    let mut lab = command(format!("netdyno lab {options} -- sh -c"));
    lab.arg(script);
    start(lab).wait()
}

#[test]
fn the_exit_status_and_output_are_the_commands() {
    let ran = in_lab("", "echo out; echo err >&2; exit 7").with(7);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
    in_lab("", "true").ok();
    in_lab("", "kill -KILL $$").with(128 + 9);
    run("netdyno lab -- /no/such/program").refused(&["/no/such/program"]);
}

#[test]
fn both_interfaces_are_there_and_up() {
    let script = "ip -br link show tx0; ip -br -n receiver link show rx0; ls /sys/class/net";
    let said = in_lab("", script).ok().stdout;
    let words: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((words[0][1], words[1][1]), ("UP", "UP"), "{said}");
    assert!(said.contains("tx0@") && said.contains("rx0@") && said.ends_with("lo\ntx0\n"), "{said}");
}

#[test]
fn options_make_the_cable() {
    let show = "ip -d -j link show tx0";
    let link = in_lab("--mtu 9000 --queues 2", show).ok().json();
    assert_eq!([&link[0]["mtu"], &link[0]["num_tx_queues"]].map(number), [9000, 2]);
    // Nobody listens there, but somebody is there to say so.
    let ran = in_lab("--addresses", "ip -br address show tx0; exec bash -c 'exec 3<>/dev/tcp/198.18.0.2/9'")
        .with(1);
    assert!(ran.stdout.contains("198.18.0.1/24"), "{}", ran.stdout);
    ran.says(&["Connection refused"]);
}

#[test]
fn netdyno_finds_the_receiver_by_its_interface() {
    let binary = env!("CARGO_BIN_EXE_netdyno");
    for receiver in ["rx0", "rx0@receiver"] {
        let send =
            format!("{binary} send ipv4/udp --on tx0 --measure {receiver} --topspeed --count 500 --json");
        let report = in_lab("", &send).ok().json();
        assert_eq!(number(&report["result"]["rx"]["frames"]), 500);
    }
}

#[test]
fn signals_are_passed_on() {
    let mut lab = command("netdyno lab -- sh -c");
    lab.arg("trap 'exit 9' TERM; echo ready >&2; while :; do sleep 0.05; done");
    let mut lab = start(lab);
    lab.until_it_says("ready");
    lab.signal("TERM");
    lab.wait().with(9);
}
