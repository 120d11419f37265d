//! Shapes of load: what other programs read from captures and see arrive is what the shape's definition says.

use crate::common::*;
use crate::judged::judged;
use crate::scenario::arrivals;
use serde_json::Value;

/// Times in a capture, by tshark, and what Python's own arithmetic makes of them.
const JUDGE: &str = r#"
import math, statistics, subprocess, sys
file, what = sys.argv[1:3]
seen = subprocess.run(["tshark", "-r", file, "-T", "fields", "-e", "frame.time_epoch"], capture_output=True, text=True, check=True)
def ns(text):
    whole, part = text.split(".")
    return int(whole) * 10**9 + int(part.ljust(9, "0")[:9])
times = [ns(line) for line in seen.stdout.split()]
gaps = [b - a for a, b in zip(times, times[1:])]
def by(t):
    return sum(1 for at in times if at < t)
def near(found, wanted, tolerance, of):
    if not abs(found - wanted) <= tolerance:
        sys.exit(f"{what}: {of} is {found}, not {wanted} +- {tolerance}")
MS = 10**6
def dispersion(window):
    counts = [0] * (times[-1] // window + 1)
    for at in times:
        counts[at // window] += 1
    counts.pop()
    return statistics.pvariance(counts) / statistics.mean(counts)
if what == "poisson":
    # 40,000 gaps of 10 us: their mean is within 1.5 %, their variation and the windows' index of dispersion are 1.
    near(statistics.mean(gaps), 10_000, 150, "the mean gap")
    near(statistics.pstdev(gaps) / statistics.mean(gaps), 1, 0.03, "the coefficient of variation")
    near(dispersion(MS // 2), 1, 0.2, "the index of dispersion")
    n = len(gaps)
    mean = statistics.mean(gaps)
    law = [1 - math.exp(-gap / mean) for gap in sorted(gaps)]
    near(max(max(abs(p - i / n), abs(p - (i + 1) / n)) for i, p in enumerate(law)), 0, 1.63 / math.sqrt(n), "the distance of Kolmogorov and Smirnov")
elif what == "sine":
    # 100 kpps +- 80 % within 100 ms.
    for t in range(0, 390 * MS, 3 * MS):
        turn = 2 * math.pi / (100 * MS)
        near(by(t), (t + 0.8 / turn * (1 - math.cos(turn * t))) / 10_000, 1.5, f"the frames before {t} ns")
elif what == "square":
    # 100 kpps for 20 ms of 100, else 10 kpps.
    for k in range(6):
        near(by((100 * k + 20) * MS) - by(100 * k * MS), 2000, 1, "the frames of a high")
        near(by(100 * (k + 1) * MS) - by((100 * k + 20) * MS), 800, 1, "the frames of a low")
elif what == "flash":
    # 10 kpps, from 50 ms on within 100 up to ten times that, 100 ms so, and back within 200.
    for t, ms in [(50, 50), (100, 50 + 162.5), (150, 50 + 550), (250, 600 + 1000), (450, 1600 + 1100), (500, 2700 + 50)]:
        near(by(t * MS), ms * 10, 2, f"the frames before {t} ms")
elif what == "onoff":
    # Frames 1 us apart, or a pause; of the pauses' lengths a tail as heavy as the Pareto distribution of that shape has.
    pauses = sorted(gap for gap in gaps if gap > 1_001)
    if any(gap not in (1_000, 1_001) for gap in gaps if gap <= 1_001):
        sys.exit(f"{what}: frames are neither 1 us apart nor is there a pause")
    ratio = pauses[int(len(pauses) * 0.99)] / pauses[len(pauses) // 2]
    wanted = (0.01 / 0.5) ** (-1 / 1.5)
    near(ratio / wanted, 1, 0.35, "the 99th percentile of pauses over their median, as a part of Pareto's")
else:
    sys.exit(f"no {what}")
"#;

#[test]
fn times_in_captures_are_those_of_the_shape() {
    let folder = folder();
    let dir = folder.path().display();
    let judge = format!("{dir}/judge.py");
    std::fs::write(&judge, JUDGE).expect("a script");
    for (what, rate, count, shape) in [
        ("poisson", "100kpps", 40_001, "poisson"),
        ("sine", "100kpps", 40_000, "sine:period=100ms,amplitude=80%"),
        ("square", "100kpps", 17_000, "square:period=100ms,high=20%,low=10%"),
        ("flash", "10kpps", 28_000, "flash:after=50ms,rise=100ms,peak=10x,hold=100ms,fall=200ms"),
        ("onoff", "1mpps", 200_000, "onoff:on=100us,off=900us,alpha=1.5"),
    ] {
        let file = format!("{dir}/{what}.pcap");
        run(format!(
            "netdyno craft ipv4/udp --count {count} --rate {rate} --shape {shape} --seed 11 -w {file}"
        ))
        .ok();
        run(format!("/usr/bin/python3 {judge} {file} {what}")).ok();
    }
    // The judge can say no.
    let file = format!("{dir}/even.pcap");
    run(format!("netdyno craft ipv4/udp --count 40001 --rate 100kpps -w {file}")).ok();
    run(format!("/usr/bin/python3 {judge} {file} poisson")).with(1);
    // Arrivals by chance about a curve: the curve's counts within four times the root of their number.
    let file = format!("{dir}/both.pcap");
    let shape = "square:period=100ms,high=20%,low=10%,arrivals=poisson";
    run(format!("netdyno craft ipv4/udp --count 17000 --rate 100kpps --shape {shape} --seed 3 -w {file}"))
        .ok();
    run(format!("/usr/bin/python3 {judge} {file} square")).with(1);
}

#[test]
fn a_seed_has_the_same_times_again_and_another_has_others() {
    let folder = folder();
    let dir = folder.path().display();
    let times = |seed: u64| {
        let file = format!("{dir}/{seed}.pcap");
        let line = format!(
            "netdyno craft ipv4/udp --count 1000 --rate 1mpps --shape poisson --seed {seed} -w {file}"
        );
        run(line).ok();
        run(format!("tshark -r {file} -T fields -e frame.time_epoch")).ok().stdout
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

/// Two hosts of which the second takes live frames without a program of ours, so that tcpdump sees them.
fn live() -> Net {
    let net = Net::new();
    net.start_there("ethtool -K rx0 gro on").wait().ok();
    net
}

#[test]
fn shaped_frames_arrive_at_the_times_of_their_shape() {
    alone();
    let shape = "square:period=200ms,high=25%";
    for engine in ["packet", "afxdp", "xdp", "packet --cores 2"] {
        if engine.contains("cores") && !several_cpus() {
            continue;
        }
        let net = live();
        let mut report = Value::Null;
        // 50 ms at 20 frames a millisecond, then 150 without; three times.
        let times = arrivals(&net, 3000, || {
            let line = format!(
                "netdyno send ipv4/udp --on tx0 --rate 20kpps --shape {shape} --duration 600ms --engine {engine} --json"
            );
            report = net.run(line).json();
        });
        let tx = &report["result"]["tx"];
        assert_eq!(number(&tx["intended_frames"]), 3000, "{engine}: {report}");
        assert_eq!(times.len(), 3000, "{engine}");
        let intervals = report["intervals"].as_array().expect("intervals");
        let asked: u64 = intervals.iter().map(|i| number(&i["intended_frames"])).sum();
        assert_eq!(asked, 3000, "{engine}: {intervals:?}");
        if judged(late_share(&report) < 0.05) {
            let first = times.iter().min().expect("frames");
            let in_high = times.iter().filter(|&at| (at - first) % 200_000_000 < 52_000_000).count();
            assert!(in_high >= 2700, "{engine}: {in_high} of 3000 frames arrived while the rate was high");
        }
    }
}

#[test]
fn every_engine_and_number_of_cores_sends_the_same_poisson_process() {
    alone();
    let net = Net::new();
    let file = net.file("crafted.pcap");
    let what = "ipv4/udp --rate 5kpps --shape poisson --seed 21";
    run(format!("netdyno craft {what} --count 2000 -w {file}")).ok();
    let crafted = run(format!("tshark -r {file} -T fields -e frame.time_epoch")).ok().stdout;
    let wanted: Vec<f64> = crafted.lines().map(|line| line.parse().expect("a time")).collect();
    for engine in ["packet", "afxdp", "xdp", "packet --cores 2"] {
        if engine.contains("cores") && !several_cpus() {
            continue;
        }
        let net = live();
        let mut report = Value::Null;
        let mut times = arrivals(&net, 2000, || {
            let line = format!("netdyno send {what} --on tx0 --count 2000 --engine {engine} --json");
            report = net.run(line).json();
        });
        assert_eq!(times.len(), 2000, "{engine}");
        times.sort_unstable();
        let mut starts: Vec<f64> =
            times.iter().zip(&wanted).map(|(at, due)| *at as f64 - due * 1e9).collect();
        starts.sort_by(f64::total_cmp);
        let start = starts[starts.len() / 2];
        let near = starts.iter().filter(|at| (*at - start).abs() < 2e6).count();
        if judged(late_share(&report) < 0.05) {
            assert!(near >= 1800, "{engine}: {near} of 2000 within 2 ms of their time");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_remedy() {
    for (more, said) in [
        ("--rate 1kpps --shape sin", "`sin` is not a shape of load: write poisson"),
        ("--rate top --shape poisson", "--shape: at top speed there is no rate that could vary"),
        ("--rate 1mbps --size imix --shape poisson", "give --rate as 100kpps, or one --size"),
    ] {
        let ran = run(format!("netdyno send ipv4/udp --engine null --duration 1s {more}")).with(2);
        assert!(ran.stderr.contains(said), "{more}: {}", ran.stderr);
    }
    // What the kernel cannot be handed is left to an engine that finds times on the way.
    let net = Net::new();
    let line = "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 1mpps --shape poisson --duration 1h";
    let ran = net.run(format!("{line} --engine xdp")).with(2);
    let said = "is handed the times of a shape of load, at most 4,194,304";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// Percentiles of the times between frames of each UDP port in a capture, by tshark's clock readings and Python's arithmetic: the
/// smallest value with at least that share at or below it.
const APART: &str = r#"
import json, math, subprocess, sys
seen = subprocess.run(["tshark", "-r", sys.argv[1], "-T", "fields", "-e", "udp.dstport", "-e", "frame.time_epoch"], capture_output=True, text=True, check=True)
def ns(text):
    whole, part = text.split(".")
    return int(whole) * 10**9 + int(part.ljust(9, "0")[:9])
times = {}
for line in seen.stdout.splitlines():
    port, at = line.split("\t")
    times.setdefault(port, []).append(ns(at))
told = {}
for port, of in times.items():
    gaps = sorted(b - a for a, b in zip(of, of[1:]))
    at = lambda share: gaps[math.ceil(len(gaps) * share) - 1]
    told[port] = {"count": len(gaps), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": gaps[-1], "mean": (of[-1] - of[0]) // len(gaps)}
print(json.dumps(told))
"#;

#[test]
fn times_between_a_streams_arrivals_are_tcpdumps() {
    alone();
    let net = live();
    let (file, judge, scenario) = (net.file("apart.pcap"), net.file("apart.py"), net.file("two.yaml"));
    std::fs::write(&judge, APART).expect("a script");
    let streams = "streams:\n- {name: even, frame: ipv4/udp(dport=1001), rate: 1kpps}\n- {name: chance, frame: ipv4/udp(dport=1002), rate: 2kpps, shape: poisson}\n";
    std::fs::write(&scenario, format!("defaults: {{size: 100}}\n{streams}")).expect("a scenario");
    // A packet socket has the kernel's own times of arrival, which tcpdump has, too; XDP sees a frame some microseconds sooner.
    for how in ["packet", "xdp-generic"] {
        let capture = "tcpdump -Z root -n -U -B 16384 --time-stamp-precision=nano -Q in -i rx0 udp";
        let mut tcpdump = net.start_there(format!("{capture} -w {file}"));
        tcpdump.until_it_says("listening on");
        let line = format!(
            "netdyno send {scenario} --on tx0 --measure rx0 --meter {how} --pass --engine packet --duration 2s --inter-arrival --json"
        );
        let report = net.run(line).result();
        let count = number(&report["result"]["rx"]["frames"]);
        eventually("tcpdump has written all", || frames(&file).len() as u64 >= count);
        tcpdump.signal("INT");
        tcpdump.wait().ok();
        let told = run(format!("/usr/bin/python3 {judge} {file}")).json();
        for (port, name) in [("1001", "even"), ("1002", "chance")] {
            let streams = report["streams"].as_array().expect("streams");
            let stream = streams.iter().find(|stream| stream["name"] == name).expect("the stream");
            let (apart, told) = (&stream["inter_arrival_ns"], &told[port]);
            assert_eq!(apart["count"], told["count"], "{how}, {name}");
            assert_eq!(number(&apart["count"]), number(&stream["rx_frames"]) - 1, "{how}, {name}");
            assert_eq!(number(&apart["max"]), number(&stream["gap_max_ns"]), "{how}, {name}");
            for at in ["mean", "p50", "p90", "p99", "max"] {
                let (got, wanted) =
                    (apart[at].as_f64().expect("a figure"), told[at].as_f64().expect("a time"));
                // A bucket is 1/128 wide. Clocks are compared to some 10 us now and then; whoever sees a frame later, sees it up to as late.
                let (of, apart) = if how == "packet" { (0.009, 20_000.0) } else { (0.009, 60_000.0) };
                let near = (got - wanted).abs() <= wanted * of + apart;
                assert!(
                    near || (how != "packet" && !judged(late_share(&report) < 0.05)),
                    "{how}, {name}, {at}: {got}, {wanted}"
                );
            }
        }
    }
}

#[test]
fn times_between_arrivals_are_told_of_shapes_or_why_not() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --size 100 --on tx0 --measure rx0 --rate 5kpps --count 2000";
    let without = net.run(format!("{send} --json")).result();
    assert!(without["streams"][0].get("inter_arrival_ns").is_none());
    for how in ["xdp", "packet"] {
        let report = net.run(format!("{send} --shape poisson --meter {how} --json")).result();
        let apart = &report["streams"][0]["inter_arrival_ns"];
        assert_eq!(number(&apart["count"]), 1999, "{how}");
        if judged(late_share(&report) < 0.05) {
            // Half of exponential gaps of 200 us are shorter than 139.
            assert!((110_000..170_000).contains(&number(&apart["p50"])), "{how}: {}", apart["p50"]);
        }
    }
    let said = net.run(format!("{send} --inter-arrival --verbose")).ok().stdout;
    assert!(said.contains("apart") && said.contains("of 1,999 times"), "{said}");
    let said = net.run(format!("{send} --inter-arrival --no-sign --json")).json();
    assert!(
        said["warnings"].to_string().contains("no frame that arrived carries a signature"),
        "{}",
        said["warnings"]
    );
    if several_cpus() {
        let report = net.run(format!("{send} --inter-arrival --cores 2 --engine packet --json")).json();
        assert!(
            report["warnings"].to_string().contains("several cores sent each stream"),
            "{}",
            report["warnings"]
        );
        assert!(report["streams"][0].get("inter_arrival_ns").is_none());
    }
}

#[test]
fn a_capture_leaves_at_the_times_of_a_shape() {
    let folder = folder();
    let dir = folder.path().display();
    let file = format!("{dir}/even.pcap");
    run(format!("netdyno craft ipv4/udp --size 64..1518 --count 1000 --rate 1kpps --seed 1 -w {file}")).ok();
    let times = |line: String| {
        run(line).ok();
        let fields = "-T fields -e frame.len -e frame.time_epoch";
        run(format!("tshark -r {dir}/out.pcap {fields}")).ok().stdout
    };
    let shape = "--rate 100kpps --shape square:period=5ms,high=20%,arrivals=poisson --seed 11";
    // What was crafted at these times is what was captured and leaves at them, in memory or not.
    let crafted = times(format!("netdyno craft ipv4/udp --size 1000 --count 1000 {shape} -w {dir}/out.pcap"));
    let due = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split('\t').next_back().unwrap_or_default().to_owned()).collect()
    };
    for how in ["--preload", "--stream"] {
        let replayed = times(format!("netdyno replay {file} {shape} {how} -w {dir}/out.pcap"));
        assert_eq!(due(&replayed), due(&crafted), "{how}");
        let lengths: Vec<_> = replayed.lines().filter_map(|line| line.split('\t').next()).collect();
        assert!(lengths.windows(2).any(|pair| pair[0] != pair[1]), "{how}");
    }
    for (more, said) in [
        ("--rate 10mbps --shape poisson", "give --rate as 100kpps"),
        ("--topspeed --shape poisson", "give --rate as 100kpps"),
        ("--speed 2x --shape poisson", "--rate"),
        ("--rate 5kpps --seed 3", "--shape"),
    ] {
        let ran = run(format!("netdyno replay {file} -w {dir}/no.pcap {more}")).with(2);
        assert!(ran.stderr.contains(said), "{more}: {}", ran.stderr);
    }
}
