//! What a lab leaves behind: nothing, however it ends. The lab here is the example `in_lab`, which
//! `cargo test` builds. Needs root; without it these tests fail.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netdyno_lab::NamespaceRef;

fn example(name: &str) -> PathBuf {
    // target/debug/deps/nothing_left-... -> target/debug/examples/in_lab
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: build it with --examples", path.display());
    path
}

fn in_lab(script: &str) -> Command {
    let mut command = Command::new(example("in_lab"));
    command.args(["sh", "-c", script]).stdout(Stdio::piped());
    command
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

/// The network namespaces that a process is in or holds a descriptor of, by `lsns`' way of finding them.
fn namespaces() -> BTreeSet<PathBuf> {
    let links = |folder: PathBuf| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok())
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .flat_map(|process| links(process.path().join("ns")).chain(links(process.path().join("fd"))))
        .filter(|target| target.to_string_lossy().starts_with("net:["))
        .collect()
}

fn waits_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(300), "{what}: not within five minutes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Processes whose command line contains `mark`.
fn processes(mark: &str) -> Vec<i32> {
    let mut found: Vec<i32> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn sigkill_of_the_holder_leaves_no_namespace_device_or_process() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    // Grandchildren in a session of their own are what a parent-death signal would miss.
    let mut child = in_lab("sleep 4711.1 & setsid sleep 4711.2 & readlink /proc/self/ns/net; sleep 4711.3")
        .spawn()
        .unwrap();
    let theirs = PathBuf::from(first_line(&mut child));
    assert!(namespaces().contains(&theirs), "the lab's namespace {theirs:?} was not seen");
    waits_for("three sleeps", || processes("sleep\x004711.").len() == 3);
    let members = processes("4711.");
    child.kill().unwrap();
    child.wait().unwrap();
    waits_for("the end of all its processes", || !members.iter().any(|pid| alive(*pid)));
    waits_for("the end of its namespaces", || !namespaces().contains(&theirs));
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
    let links = Command::new("ip").args(["-o", "link"]).output().expect("the tests need iproute2's ip");
    let links = String::from_utf8(links.stdout).unwrap();
    assert!(!links.contains("tx0") && !links.contains("rx0"), "{links}");
}

#[test]
fn processes_in_the_background_end_with_the_command() {
    let status = in_lab("setsid sleep 4712 & exit 7").status().unwrap();
    assert_eq!(status.code(), Some(7));
    waits_for("the end of the background process", || processes("sleep\x004712").is_empty());
}

#[test]
fn signals_reach_the_command_and_its_status_comes_back() {
    let mut child = in_lab("trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done").spawn().unwrap();
    assert_eq!(first_line(&mut child), "ready");
    let term = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(term, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
    assert_eq!(in_lab("kill -KILL $$").status().unwrap().code(), Some(128 + 9));
}

#[test]
fn no_signal_is_blocked_for_the_command() {
    let output = in_lab("grep SigBlk /proc/self/status").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "SigBlk:\t0000000000000000");
}

#[test]
fn a_command_sees_both_hosts() {
    let mut child = in_lab(
        "ls /sys/class/net | tr '\\n' ' '; ip -n receiver -o link show $NETDYNO_LAB_RX | grep -c rx0; \
         nsenter --net=$NETDYNO_LAB_RECEIVER_NS readlink /proc/self/ns/net; echo pid $$ of $(ls /proc | grep -c '^[0-9]')",
    )
    .spawn()
    .unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "lo tx0 1");
    assert!(lines[1].starts_with("net:["), "{text}");
    // Process 1 supervises; 2 is the shell. Nobody from outside is seen.
    assert!(lines[2].starts_with("pid 2 of "), "{text}");
    assert!(lines[2].ends_with(['4', '5', '6']), "{text}");
}

#[test]
fn inside_a_lab_a_bare_name_of_the_receivers_is_enough() {
    let resolve = example("resolve");
    let script = format!("for spec in tx0 rx0 rx0@receiver tx0@sender; do {} $spec; done", resolve.display());
    let output = in_lab(&script).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text,
        "tx0: here, index 2\nrx0: elsewhere, index 2\nrx0: elsewhere, index 2\ntx0: elsewhere, index 2\n"
    );
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let argv = ["/no/such/command".into()];
    let hosts = netdyno_lab::Lab::two_hosts(&netdyno_lab::Options::default()).unwrap();
    let error = netdyno_lab::run_command(&hosts, &argv).unwrap_err().to_string();
    assert!(error.contains("'/no/such/command'") && error.contains("No such file"), "{error}");
    assert!(netdyno_lab::run_command(&hosts, &[]).unwrap_err().to_string().contains("--"));
    assert!(!NamespaceRef::parse("receiver").unwrap().path().exists(), "the lab's names leaked out");
}
