//! Scenario files from end to end: every published example is crafted and sent, and every stream's frames arrive.

use crate::common::*;
use crate::judged::judged;
use ::lab::Options;
use scenario::{Compiled, Context, Sign, parse};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    all.sort();
    assert!(all.len() >= 11, "{}", all.len());
    all
}

fn example(name: &str) -> String {
    let path = examples().into_iter().find(|path| path.ends_with(name)).expect("the example");
    path.display().to_string()
}

fn compiled(path: &Path) -> Compiled {
    let text = std::fs::read_to_string(path).expect("an example");
    let context = Context { sign: Sign::WhereRoom, ..Context::default() };
    parse(&text, "example").and_then(|scenario| scenario.compile(&context)).expect("a program")
}

/// When the frames of each stream are due before `end`: each lane walked by itself.
fn due_before(compiled: &Compiled, end: u64) -> Vec<Vec<u64>> {
    let program = &compiled.program;
    let mut all = vec![Vec::new(); program.streams.len()];
    for lane in &program.lanes {
        let mut cursor = lane.schedule.cursor();
        for i in 0..lane.frames.unwrap_or(u64::MAX) {
            let stream = lane.order[(i % lane.order.len() as u64) as usize] as usize;
            let due = lane.start_ns + cursor.due();
            if cursor.at_end() || due >= end {
                break;
            }
            let k = all[stream].len() as u64;
            all[stream].push(due);
            cursor.advance(program.streams[stream].lengths.at(k, 0));
        }
    }
    all
}

/// What tshark finds wrong, with payload taken for payload whatever the ports, which walk over those of protocols.
fn complaints(file: &str) -> String {
    let mut tshark = command("tshark -n -r");
    tshark.arg(file);
    for ports in ["udp.port==1-2151", "udp.port==2153-65535", "tcp.port==1-65535"] {
        tshark.args(["-d", &format!("{ports},data")]);
    }
    for protocol in ["ip", "tcp", "udp"] {
        tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    tshark.args(["-o", "tcp.analyze_sequence_numbers:FALSE"]);
    let bad = ["ip", "tcp", "udp", "icmp", "icmpv6"].map(|p| format!("{p}.checksum.status == \"Bad\""));
    tshark.args(["-Y", &format!("_ws.malformed || {}", bad.join(" || "))]);
    start(tshark).wait().ok().stdout
}

#[test]
fn every_example_is_crafted_without_a_fault() {
    let dir = folder();
    let file = path(&dir, "x.pcap");
    for example in examples() {
        run(format!("netdyno craft {} --count 600 -w {file}", example.display())).ok();
        assert_eq!(frames(&file).len(), 600, "{}", example.display());
        assert_eq!(complaints(&file), "", "{}", example.display());
    }
}

#[test]
fn every_example_is_sent_and_every_streams_frames_arrive() {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    for example in examples() {
        let compiled = compiled(&example);
        // As many frames as are due in the first 600 ms: those come first, whatever comes after.
        let wanted: Vec<u64> =
            due_before(&compiled, 600_000_000).iter().map(|times| times.len() as u64).collect();
        let count: u64 = wanted.iter().sum();
        let name = example.display().to_string();
        let line = format!("netdyno send {name} --on tx0 --measure rx0 --count {count} --json --quiet");
        let report = net.run(line).result();
        assert_eq!(report["resolved"]["source"]["kind"], "scenario");
        assert_eq!(report["resolved"]["source"]["file"], name.as_str());
        let streams: HashMap<&str, &serde_json::Value> = report["streams"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|stream| (stream["name"].as_str().expect("a name"), stream))
            .collect();
        for (stream, wanted) in compiled.program.streams.iter().zip(&wanted) {
            let Some(got) = streams.get(stream.name.as_str()) else {
                assert_eq!(*wanted, 0, "{name}: {} is not in the result", stream.name);
                continue;
            };
            for key in ["tx_frames", "rx_frames"] {
                assert_eq!(number(&got[key]), *wanted, "{name}: {} {key}", stream.name);
            }
            assert_eq!(number(&got["lost_frames"]), 0, "{name}: {}", stream.name);
        }
        assert_eq!(number(&report["result"]["tx"]["frames"]), count, "{name}");
    }
}

#[test]
fn crafted_frames_have_the_times_and_the_order_of_the_file() {
    let dir = folder();
    let file = path(&dir, "x.pcap");
    for name in ["bursts.yaml", "ramp.yaml", "chained.yaml", "weights.yaml"] {
        let example = example(name);
        let compiled = compiled(Path::new(&example));
        let due = due_before(&compiled, 700_000_000);
        let count: usize = due.iter().map(Vec::len).sum();
        run(format!("netdyno craft {example} --count {count} -w {file}")).ok();
        // What leaves at which time, and of which stream: the lane's number settles ties.
        let lane_of = |stream: usize| {
            compiled
                .program
                .lanes
                .iter()
                .position(|lane| lane.order.contains(&(stream as u32)))
                .expect("a lane")
        };
        let mut wanted: Vec<(u64, usize, usize)> = Vec::new();
        for (stream, times) in due.iter().enumerate() {
            wanted.extend(times.iter().map(|time| (*time, lane_of(stream), stream)));
        }
        wanted.sort();
        let times = tshark_field(&file, "frame.time_epoch");
        let ports = tshark_field(&file, "udp.dstport");
        assert_eq!(times.len(), wanted.len(), "{name}");
        for (n, (due, _, stream)) in wanted.iter().enumerate() {
            let ns: u64 = times[n].replace('.', "").parse().expect("a time");
            assert_eq!(ns, *due, "{name}: frame {n}");
            // The examples tell their streams apart by the UDP destination; ARP has none.
            let template = compiled.program.streams[*stream].templates.get(0);
            let port = (template[12..14] == [8, 0]).then(|| u16::from_be_bytes([template[36], template[37]]));
            assert_eq!(ports[n], port.map_or_else(String::new, |port| port.to_string()), "{name}: frame {n}");
        }
    }
}

#[test]
fn bursts_and_chains_arrive_at_their_times() {
    alone();
    for (name, until) in [("bursts.yaml", 500), ("chained.yaml", 900)] {
        let example = example(name);
        let due = due_before(&compiled(Path::new(&example)), until * 1_000_000);
        let mut wanted: Vec<u64> = due.concat();
        wanted.sort();
        let net = Net::new();
        let mut report = Value::Null;
        let times = arrivals(&net, wanted.len(), || {
            let count = wanted.len();
            report =
                net.run(format!("netdyno send {example} --on tx0 --count {count} --quiet --json")).result();
        });
        assert_eq!(times.len(), wanted.len(), "{name}");
        // From a start that most frames agree on.
        let mut starts: Vec<i128> =
            times.iter().zip(&wanted).map(|(got, due)| i128::from(*got) - i128::from(*due)).collect();
        starts.sort();
        let start = starts[starts.len() / 2];
        let near = starts.iter().filter(|at| (*at - start).abs() < 2_000_000).count();
        if judged(late_share(&report) < 0.05) {
            assert!(near * 10 >= wanted.len() * 9, "{name}: {near} of {} within 2 ms", wanted.len());
        }
    }
}

/// When each frame arrived at rx0 while `send` ran, by tcpdump, in nanoseconds.
pub fn arrivals(net: &Net, count: usize, send: impl FnOnce()) -> Vec<u64> {
    let file = net.file("times.pcap");
    let mut tcpdump = net.start_there(format!("tcpdump -Z root -n -U -B 16384 -Q in -i rx0 -w {file}"));
    tcpdump.until_it_says("listening on");
    send();
    eventually(&format!("{count} frames arrived"), || frames(&file).len() >= count);
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    let bytes = std::fs::read(&file).expect("the capture");
    let mut times = Vec::new();
    let mut rest = &bytes[24..];
    while let Some(head) = rest.first_chunk::<16>() {
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        times.push(u64::from(word(0)) * 1_000_000_000 + u64::from(word(4)) * 1_000);
        rest = rest.get(16 + word(8) as usize..).unwrap_or_default();
    }
    times
}

#[test]
fn addresses_are_asked_for_before_the_run() {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    let file = example("arp-resolve.yaml");
    let got = net.received(20, || {
        // Of 20 frames nobody keeps a rate whose machine has something else to do at their end.
        let report = net.run(format!("netdyno send {file} --on tx0 --count 20 --json")).json();
        let said = reasons(&report);
        assert!(said.iter().all(|reason| reason.starts_with("the rate was not reached")), "{said:?}");
    });
    let (near, far) = (net.lab.sender.mac, net.lab.receiver.mac);
    for frame in got {
        assert_eq!((&frame[..6], &frame[6..12]), (&far[..], &near[..]));
    }
    // Nobody has that address.
    let nobody = net.file("nobody.yaml");
    std::fs::write(
        &nobody,
        "streams: [{frame: ipv4(dst=198.18.0.77)/udp, rate: 1kpps, count: 5, resolve: true}]",
    )
    .expect("a file");
    net.run(format!("netdyno send {nobody} --on tx0")).refused(&["198.18.0.77", "`stream 1`"]);
}

#[test]
fn what_a_scenario_gets_wrong_is_told_with_its_place() {
    let dir = folder();
    let file = path(&dir, "wrong.yaml");
    let craft = format!("netdyno craft {file} -w {}", path(&dir, "x.pcap"));
    for (text, words) in [
        (
            "streams:\n  - frame: ipv4/udp\n    rat: 1kpps\n",
            &["wrong.yaml:3:5: unknown key `rat`", "did you mean `rate`?", "    |     ^^^"][..],
        ),
        (
            "streams:\n  - frame: ipv4(tll=1)/udp\n    rate: 1kpps\n",
            &["wrong.yaml:2:17: unknown field `tll`"],
        ),
        ("streams: [{frame: ipv4/udp, rate: 1kpps}]", &["does not end: give --count"]),
        ("streams: [{frame: ipv4/udp, rate: 10%, count: 5}]", &["wrong.yaml:1:35: ", "percentage"]),
        ("\u{feff}streams: 5", &["expected a list"]),
    ] {
        std::fs::write(&file, text).expect("a file");
        run(&craft).refused(words);
    }
    std::fs::write(&file, b"\xff\xfe\x00").expect("a file");
    run(&craft).refused(&["not text in UTF-8"]);
    run(format!("netdyno craft {} --show", path(&dir, "none.yaml")))
        .refused(&["reading the scenario", "No such file"]);
    assert_eq!(listing(dir.path()), ["wrong.yaml"], "nothing was written");
}

#[test]
fn the_command_line_overrides_what_holds_for_the_whole_file() {
    let dir = folder();
    let (file, out) = (path(&dir, "s.yaml"), path(&dir, "x.pcap"));
    let text = "seed: 3\nrate: 1kpps\ncount: 9\nstreams: [{frame: ipv4(src=random())/udp}, {frame: ipv6/udp, size: 100}]";
    std::fs::write(&file, text).expect("a file");
    let craft = |words: &str| {
        run(format!("netdyno craft {file} -w {out} {words}")).ok();
        (frames(&out), tshark_field(&out, "frame.time_epoch"))
    };
    let (plain, times) = craft("");
    assert_eq!((plain.len(), times[8].as_str()), (9, "0.008000000"));
    assert_eq!(craft("--seed 3").0, plain);
    assert_ne!(craft("--seed 4").0, plain);
    assert_eq!(craft("--count 4").0, plain[..4]);
    assert_eq!(craft("--rate 100pps").1[8], "0.080000000");
    let sizes: Vec<usize> = craft("--size 64 --count 2").0.iter().map(Vec::len).collect();
    assert_eq!(sizes, [60, 96], "what states a size keeps it");
    // From standard input the file has no name, and is the same.
    let mut piped = command(format!("netdyno craft - -w {out}"));
    piped.stdin(std::fs::File::open(&file).expect("the file"));
    let output = piped.output().expect("a run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(frames(&out), plain);
}
