//! `netdyno info`: what captures hold, told to people and programs.

use crate::common::*;

fn crafted(dir: &Folder, name: &str) -> String {
    let file = path(dir, name);
    run(format!(
        "netdyno craft ipv4(src=10.0.0.0/24)/udp(dport=53) --count 1000 --size 128 --rate 1kpps -w {file}"
    ))
    .ok();
    file
}

#[test]
fn json_counts_frames_bytes_duration_and_flows() {
    let dir = folder();
    let info = run(format!("netdyno info --json {}", crafted(&dir, "a.pcap"))).ok().json();
    assert_eq!([&info["frames"], &info["bytes"], &info["flows"]].map(number), [1000, 124_000, 256]);
    assert_eq!(number(&info["duration_ns"]), 999_000_000);
}

#[test]
fn ports_of_sctp_tell_flows_apart() {
    let dir = folder();
    let file = path(&dir, "sctp.pcap");
    run(format!("netdyno craft ipv4/sctp(sport=1..40)/sctpdata --count 200 --size 130 -w {file}")).ok();
    assert_eq!(number(&run(format!("netdyno info --json {file}")).ok().json()["flows"]), 40);
}

#[test]
fn it_agrees_with_capinfos_about_a_synthesised_capture() {
    let dir = folder();
    let file = path(&dir, "small.pcap");
    run(format!("netdyno synth --profile smallflows -w {file}")).ok();
    let info = run(format!("netdyno info --json {file}")).ok().json();
    let table = run(format!("capinfos -T -m -c -d -u -M {file}")).ok().stdout;
    let values: Vec<&str> = table.lines().nth(1).expect("a line of values").split(',').collect();
    assert_eq!(number(&info["frames"]), values[1].parse::<u64>().expect("frames"), "{table}");
    assert_eq!(number(&info["bytes"]), values[2].parse::<u64>().expect("bytes"), "{table}");
    let seconds: f64 = values[3].parse().expect("seconds");
    assert!((number(&info["duration_ns"]) as f64 / 1e9 - seconds).abs() < 1e-6, "{table}");
    // The published totals of smallFlows.pcap.
    assert_eq!((number(&info["frames"]), number(&info["flows"])), (14_261, 1_209));
}

#[test]
fn people_read_the_same_figures() {
    let dir = folder();
    let ran = run(format!("netdyno info {}", crafted(&dir, "a.pcap"))).ok();
    for words in ["a.pcap", "Ethernet", "1,000", "124,000", "0.999000000 s", "256 one-way", "UDP", "udp 53"] {
        assert!(ran.stdout.contains(words), "no `{words}` in:\n{}", ran.stdout);
    }
}

#[test]
fn several_files_make_an_array_in_their_order() {
    let dir = folder();
    let (first, second) = (crafted(&dir, "a.pcapng"), path(&dir, "b.pcap.gz"));
    run(format!("netdyno craft ipv6/tcp --count 7 -w {second}")).ok();
    let infos = run(format!("netdyno info --json {first} {second}")).ok().json();
    let counts: Vec<u64> =
        infos.as_array().expect("an array").iter().map(|info| number(&info["frames"])).collect();
    assert_eq!(counts, [1000, 7]);
}

#[test]
fn a_cut_off_capture_names_the_record_and_is_read_up_to_there_if_wished() {
    let dir = folder();
    let whole = std::fs::read(crafted(&dir, "whole.pcap")).expect("a file");
    let file = path(&dir, "cut.pcap");
    std::fs::write(&file, &whole[..whole.len() - 10]).expect("a written file");
    run(format!("netdyno info {file}")).refused(&[
        "cut.pcap, record 1000 at byte",
        "cut off",
        "--skip-corrupt",
    ]);
    let info = run(format!("netdyno info --json --skip-corrupt {file}")).ok().json();
    assert_eq!(number(&info["frames"]), 999);
    assert!(info["warnings"][0].as_str().expect("a warning").contains("record 1000"));
}

#[test]
fn a_capture_comes_through_a_pipe_as_well() {
    let dir = folder();
    let file = crafted(&dir, "a.pcap.zst");
    let mut shell = command("sh -c");
    shell.arg(format!("{} info --json - < {file}", env!("CARGO_BIN_EXE_netdyno")));
    assert_eq!(number(&start(shell).wait().ok().json()["frames"]), 1000);
}
