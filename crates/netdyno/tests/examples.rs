//! Each example runs, as root, and says what it should. They need no set-up: each makes a lab of its own.

use std::path::PathBuf;
use std::process::Command;

/// What an example prints. `cargo test` builds them beside this test.
fn printed(example: &str) -> String {
    let here = std::env::current_exe().expect("this test");
    let folder: PathBuf = here.ancestors().nth(2).expect("target/PROFILE/deps").join("examples");
    let program = folder.join(example);
    let done = Command::new(&program).output().unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo test -p netdyno` builds it, `--test examples` alone does not",
            program.display()
        )
    });
    let [said, wrong] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(done.status.success(), "{example}: {wrong}{said}");
    assert_eq!(wrong, "", "a library prints nothing of its own");
    said
}

#[test]
fn send_and_measure() {
    let said = printed("send_and_measure");
    for words in ["sent", "received"] {
        let line = said.lines().find(|line| line.starts_with(words)).unwrap_or_default();
        assert!(line.contains(" 10,000 "), "{words}: {said}");
    }
}

/// The router forwards 20 Mbit/s of 1514 bytes, and what it saved up: 1651 frames/s and a few more. On a busy machine it may
/// not be determined, and then it is no more than that.
#[test]
fn search() {
    let said = printed("search");
    let rate = said.split_whitespace().find_map(|word| word.parse::<f64>().ok());
    assert!(said.starts_with("throughput: "), "{said}");
    assert!(rate.is_none_or(|rate| rate < 1760.0), "{said}");
    assert!(said.contains("not determined") || rate.is_some_and(|rate| rate > 1500.0), "{said}");
}

#[test]
fn custom_source() {
    let bytes: u64 = (0..200).map(|n| 60 + n).sum();
    assert_eq!(
        printed("custom_source"),
        format!("sent: 200 frames, {bytes} bytes\nreceived: 200 frames, {bytes} bytes\n")
    );
}

#[test]
fn observer() {
    assert_eq!(
        printed("observer"),
        "more than 1,000 frames were sent\npaused\ngoes on at 50 %\nchanges by hand: 3\nlost: 0\n"
    );
}

#[test]
fn two_jobs() {
    assert_eq!(printed("two_jobs"), "sent: 2000 frames\nstream 0: 2000 arrived, 0 lost\n");
}

#[test]
fn iperf3() {
    assert_eq!(
        printed("iperf3"),
        "sent: 8000000 bytes, received: Some(8000000)\nthe server: 1 test, 8000000 bytes, 0 broken\n"
    );
}

#[test]
fn edit_capture() {
    assert_eq!(printed("edit_capture"), "VLAN 7\nfrom 172.16.0.1\n100 packets\n");
}
