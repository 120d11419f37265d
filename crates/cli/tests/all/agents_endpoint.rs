//! Endpoint tests between two agents: the server is started at one, and the test begins at the other.

use crate::agents::program;
use crate::agents_send::{counted, of, run};
use crate::common::{Net, eventually, handle, number, reasons};
use ::lab::{Namespace, Options};
use std::process::Command;

/// The sending host's agent and the receiving one's, and where that serves.
fn both(net: &Net) -> ([(&'static str, String); 2], String) {
    let address = net.lab.receiver.address;
    let agent = |host: &Namespace, words: &str| {
        format!("exec nsenter --net={} {} agent --stdio {words}", handle(host), program())
    };
    let near = agent(&net.lab.sender.namespace, &format!("--allow-address {address}"));
    let far = agent(&net.lab.receiver.namespace, &format!("--allow-listen {address}:12866"));
    ([("near", near), ("far", far)], address.to_string())
}

fn with_addresses() -> Net {
    Net::with(&Options { addresses: true, ..Options::default() })
}

#[test]
fn a_test_between_two_agents_starts_its_server_at_one_and_begins_at_the_other() {
    let net = with_addresses();
    let (agents, address) = both(&net);
    let server = format!("{address}@far");
    let words = ["endpoint", "tcp-rr", &server, "--at", "near", "--transactions", "500", "--json"];
    let result = run(&words, &agents).ok().json();
    let transactions = &result["result"]["endpoint"]["transactions"];
    assert_eq!(number(&transactions["count"]), 500, "{result}");
    assert_eq!(result["result"]["endpoint"]["server"], format!("{address}:12866"));
    // What the server counted is the same: 500 requests and answers of a byte.
    let served = &of(&result, "far")["report"]["result"]["served"];
    assert_eq!((number(&served["tests"]), number(&served["bytes"])), (1, 1_000), "{served}");
    assert_eq!(of(&result, "near")["report"]["result"]["endpoint"]["transactions"]["count"], 500, "{result}");
    assert_eq!(result["requested"]["host"], server, "it can be run again");
    // The kernel of the far host saw the data come: nobody else speaks there.
    let segments = net.run_there("nstat -az TcpInSegs").ok().stdout;
    let seen: u64 = segments
        .split_whitespace()
        .skip_while(|word| *word != "TcpInSegs")
        .nth(1)
        .expect("a count")
        .parse()
        .expect("a number");
    assert!(seen >= 500, "{segments}");
    assert!(net.run_there("ss -Htln").ok().stdout.trim().is_empty(), "the server is gone");

    // Without a server at an agent: any job at one by name.
    let lab = run(
        &["send", "ipv4/udp", "--lab", "--count", "5", "--rate", "1kpps", "--at", "near", "--json"],
        &agents,
    );
    assert_eq!(number(&counted(&lab)["result"]["tx"]["frames"]), 5);
    for (words, said) in [
        (
            &["endpoint", "tcp-rr", &*server][..],
            "--at: the test's server is at far; say at which agent it begins, such as --at near",
        ),
        (&["endpoint", "tcp-rr", &server, "--at", "none"], "--at none: there is no agent `none`"),
        (
            &["endpoint", "tcp-rr", "192.0.2.1@none", "--at", "near"],
            "192.0.2.1@none: there is no agent `none`",
        ),
        (&["send", "ipv4", "--on", "tx0@near", "--at", "near"], "--at: the job's interfaces say where it is"),
        (
            &["endpoint", "tcp-rr", "192.0.2.1@far", "--at", "near"],
            "far: listen[0]: 192.0.2.1:12866 is not granted",
        ),
    ] {
        run(words, &agents).refused(&[said]);
    }
}

#[test]
fn a_server_at_an_agent_that_is_lost_in_the_test_is_named() {
    let net = with_addresses();
    let (mut agents, address) = both(&net);
    let pid = net.file("pid");
    agents[1].1 = format!("echo $$ > {pid}; {}", agents[1].1);
    let server = format!("{address}@far");
    let mut command = crate::common::command("netdyno");
    command.args([
        "endpoint",
        "tcp-rr",
        &server,
        "--at",
        "near",
        "--duration",
        "20s",
        "--json",
        "--agents-timeout",
        "120s",
    ]);
    for (name, reach) in &agents {
        command.args(["--agent", &format!("{name}={reach}")]);
    }
    let mut test = crate::common::start(command);
    test.until_it_says("near: tcp-rr with");
    let pid = std::fs::read_to_string(&pid).expect("a process");
    let killed = Command::new("kill").args(["-9", pid.trim()]).status().expect("kill");
    assert!(killed.success());
    let ran = test.wait();
    assert!(ran.status != 0, "{}", ran.stdout);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("far was lost") || told.contains("far: "), "{told}");
    if !ran.stdout.is_empty() {
        let said = reasons(&ran.json());
        assert!(said.iter().any(|said| said.contains("far was lost")), "{said:?}");
    }
    eventually("no server is left", || net.run_there("ss -Htln").ok().stdout.trim().is_empty());
}
