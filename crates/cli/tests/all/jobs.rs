//! Jobs as data: printed, run out of files, side by side, and again out of a result.

use crate::common::*;
use serde_json::{Value, json};

/// The command lines of README.md and some pages that do a job: what stands behind `netdyno`, and whether it was run in a lab.
fn examples() -> Vec<(String, bool)> {
    let pages = [
        include_str!("../../../../README.md"),
        include_str!("../../../../docs/impair.md"),
        include_str!("../../../../docs/flows.md"),
    ];
    let joined = pages.concat().replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| line.strip_prefix("    "));
    let ours = lines.filter_map(|line| {
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        let words = line.strip_prefix("netdyno ")?;
        let (words, lab) = match words.strip_prefix("lab ").and_then(|lab| lab.split_once("-- netdyno ")) {
            // What a server is needed for is told of a session that is not to be had here.
            Some((options, words)) => (words, !options.contains("--server")),
            None => (words, false),
        };
        let verbs = ["send ", "replay ", "live ", "impair ", "probe ", "collect ", "trial ", "search "];
        (verbs.iter().any(|verb| words.starts_with(verb)) && !words.contains("--print-job"))
            .then(|| (words.to_owned(), lab))
    });
    ours.collect()
}

/// A command line of a document, as a shell reads it, in a folder.
fn typed(dir: &Folder, line: &str) -> Ran {
    let mut shell = command("sh -c");
    shell.arg(line.replace("netdyno ", concat!(env!("CARGO_BIN_EXE_netdyno"), " "))).current_dir(dir.path());
    start(shell).wait()
}

#[test]
fn every_example_of_the_documents_is_a_job_that_runs() {
    let dir = folder();
    typed(&dir, "netdyno synth --profile smallflows -w small.pcap").ok();
    let examples = examples();
    assert!(examples.len() >= 10, "{examples:?}");
    let mut ran = 0;
    for (words, lab) in examples {
        let printed = typed(&dir, &format!("netdyno {words} --print-job")).ok();
        let mut job = printed.json();
        std::fs::write(dir.path().join("job.json"), &printed.stdout).expect("a file");
        assert_eq!(typed(&dir, "netdyno run job.json --print-job").ok().stdout, printed.stdout, "{words}");
        // Ports of one's own, a server and a session are not to be had here, and a search takes a minute: search.rs has such.
        let own_lab = words.contains("--lab") && words.starts_with("trial ");
        if !(lab || own_lab) {
            continue;
        }
        // A moment of it is enough.
        for (name, short) in [("duration", "300ms"), ("count", "1k")] {
            if let Some(long) = job.get_mut(name).filter(|long| !long.is_null()) {
                *long = json!(short);
            }
        }
        std::fs::write(dir.path().join("job.json"), job.to_string()).expect("a file");
        let around = if lab { "netdyno lab --dut bridge -- " } else { "" };
        let done = typed(&dir, &format!("{around}netdyno run job.json --json --quiet"));
        assert!(done.status < 2, "{words}: {done:?}");
        let mut asked = done.json()["requested"].take();
        // What was drawn is added.
        for seed in ["/seed", "/bench/seed"] {
            if job.pointer(seed).is_none() && asked.pointer(seed).is_some() {
                let (parent, name) = seed.rsplit_once('/').expect("a path");
                asked.pointer_mut(parent).and_then(Value::as_object_mut).expect("members").remove(name);
            }
        }
        assert_eq!(asked, job, "{words}");
        ran += 1;
    }
    assert!(ran >= 6, "{ran}");
}

#[test]
fn each_kind_of_job_is_printed_as_it_is_read() {
    for line in [
        "send ipv4/udp(dport=9) --on tx0 --measure rx0 --rate 40% --duration 1m30s --size imix --cores 0-1 --no-sign",
        "send ipv4/udp --engine null --topspeed --count 10k --core 1 --seed 5 --sign --catch-up 3 --spin",
        "replay a.pcap b.pcap --on tx0 --on2 tx1 --sides auto --measure rx0 --measure2 rx1 --speed 2x --loop 3 --unique-ip",
        "replay a.pcap -w b.pcap --stream --loss 0.5% --loss-seed 7 --vlan-add 5 --map-ip 10.0.0.0/8=172.16.0.0/12 --ttl -1",
        "measure --on rx0 --duration 5s --count 1M --drop --meter packet --timestamps software --clock tai",
        "reflect --on rx0 --only-signed --mac-only --generic --yes-disrupt rx0",
        "bridge --between a b --one-way --include S:10.0.0.0/8 --engine tc --fuzz-seed 3",
        "impair --between a b --delay 1ms --jitter 100us --reorder 1% --reorder-by 200us --flap 2s/500ms --fault-seed 9",
        "live a.pcap --to [2001:db8::2]:80 --on tx0 --all --timing fast --ignore ^Date --retries 2",
        "trial --on a --measure b --both-ways --rate 10kpps --goal p99=50us --floor 12us",
        "search throughput --lab --lab-dut router --lab-bottleneck 20mbps --method bisect --goal ndr --precision 1%",
        "search latency --on a --on c --measure b --measure d --rate 1gbps --rate 2gbps --repetitions 2",
        "search loss --lab --lab-impair delay=1ms,loss=1% --step 5%",
        "search burst --lab --throughput 1mpps --max-burst 1k",
        "search recovery --lab --max 1mpps --min 1kpps --trial-duration 1s",
        "search reset --lab --rate 5mbps --command reboot",
        "probe --on rx0 --export 192.0.2.1:2055 --format 9 -T %IN_BYTES,%IN_PKTS --idle-timeout 5s --sample 10 --inner",
        "probe a.pcap b.pcap --export 192.0.2.1:2055 --export 192.0.2.2:2055 --balance --max-flows 1000 --count 5k",
        "collect --listen 127.0.0.1:2055 --listen [::1]:4739 --write a.csv --write b.jsonl --threads 2 --count 1M",
        "search soak --lab --rate 5mbps --gateway 02:00:00:00:00:01",
    ] {
        let printed = run(format!("netdyno {line} --print-job")).ok();
        let job = printed.json();
        assert_eq!(job["schema"], "netdyno.job/1", "{line}");
        assert_eq!(job["kind"], line.split(' ').next().expect("a verb"), "{line}");
        let dir = folder();
        let file = path(&dir, "job.json");
        std::fs::write(&file, &printed.stdout).expect("a file");
        assert_eq!(run(format!("netdyno run {file} --print-job")).ok().stdout, printed.stdout, "{line}");
    }
}

#[test]
fn jobs_of_one_file_begin_together() {
    let net = Net::new();
    let file = net.file("jobs.yaml");
    let jobs = "schema: netdyno.job/1\n\
        jobs:\n\
        - {kind: measure, on: rx0, count: 2000, duration: 60s}\n\
        - {kind: send, what: ipv4/udp, sign: always, links: [{on: tx0}], rate: 2kpps, count: 2000}\n";
    std::fs::write(&file, jobs).expect("a file");
    let report = net.file("reports");
    let both = net.run(format!("netdyno run {file} --json --quiet --report {report}"));
    let both = both.json();
    let [measured, sent] = both.as_array().expect("two results").as_slice() else { panic!("{both}") };
    assert_eq!([&measured["command"], &sent["command"]], ["measure", "send"]);
    // The meter stood before the first frame left.
    assert_eq!(number(&sent["result"]["tx"]["frames"]), 2000);
    assert_eq!(number(&measured["result"]["rx"]["frames"]), 2000, "{measured}");
    assert_eq!(number(&measured["result"]["loss"]["frames"]), 0);
    assert_eq!(listing(&report), ["1-measure", "2-send"]);
    let told = net.run(format!("netdyno run {file}"));
    for words in ["jobs[0]: measure", "jobs[1]: send", "2,000"] {
        assert!(told.stdout.contains(words), "{told:?}");
    }
    for option in ["--csv", "--json-lines", "--tui", "--get=loss_ratio"] {
        let name = option.split('=').next().expect("a name");
        net.run(format!("netdyno run {file} {option}")).refused(&[name, "a file of its own"]);
    }
}

/// CLOCK_TAI is decades ahead of CLOCK_MONOTONIC.
#[test]
fn frames_of_another_job_of_the_same_file_are_told_as_what_they_may_be() {
    let net = Net::new();
    let file = net.file("jobs.yaml");
    let jobs = "schema: netdyno.job/1\n\
        jobs:\n\
        - {kind: send, what: ipv4/udp(dport=9), links: [{on: tx0, measure: rx0}], rate: 1kpps, duration: 600ms}\n\
        - {kind: send, what: ipv4/udp(dport=10), links: [{on: tx0}], rate: 1kpps, duration: 600ms}\n";
    std::fs::write(&file, jobs).expect("a file");
    let both = net.run(format!("netdyno run {file} --json --quiet")).json();
    let warnings = both[0]["warnings"].to_string();
    assert!(warnings.contains("this job did not send (another job of the same file may have)"), "{warnings}");
    assert!(warnings.contains("not of this job: others of the same file use it"), "{warnings}");
}

#[test]
fn each_of_several_jobs_stamps_its_frames_by_a_clock_of_its_own() {
    let net = Net::new();
    for engine in ["xdp", "afxdp", "packet"] {
        let file = net.file("jobs.yaml");
        let jobs = format!(
            "schema: netdyno.job/1\n\
            jobs:\n\
            - {{kind: send, what: ipv4/udp, links: [{{on: tx0, measure: rx0}}], rate: 500pps, count: 500, engine: {engine}}}\n\
            - {{kind: send, what: ipv4/udp, links: [{{on: rx0, measure: tx0}}], rate: 500pps, count: 500, engine: {engine}, \
               meter: {{clock: tai}}}}\n"
        );
        std::fs::write(&file, jobs).expect("a file");
        let both = net.run(format!("netdyno run {file} --json --quiet")).json();
        let both = both.as_array().expect("two results");
        assert_eq!(both.len(), 2);
        for result in both {
            let latency = &result["result"]["latency_ns"];
            assert_eq!(number(&latency["count"]), 500, "{engine}: {result}");
            // Far more than a machine that is busy takes for a frame.
            assert!(number(&latency["max"]) < 60_000_000_000, "{engine}: {latency}");
        }
    }
}

#[test]
fn one_of_several_that_fails_does_not_take_the_others_results() {
    let net = Net::new();
    let file = net.file("jobs.yaml");
    let jobs = "schema: netdyno.job/1\n\
        jobs:\n\
        - {kind: send, what: ipv4/udp, links: [{on: nothere0}], rate: 1kpps, count: 5}\n\
        - {kind: send, what: ipv4/udp, links: [{on: tx0, measure: rx0}], rate: 1kpps, count: 5}\n";
    std::fs::write(&file, jobs).expect("a file");
    let ran = net.run(format!("netdyno run {file} --json")).with(2).says(&["jobs[0]", "nothere0"]);
    let results = ran.json();
    assert!(results[0]["error"].as_str().is_some_and(|error| error.contains("nothere0")), "{results}");
    assert_eq!(number(&results[1]["result"]["rx"]["frames"]), 5);
}

#[test]
fn a_result_is_run_again_and_compared() {
    let net = Net::new();
    let [first, second] = ["first", "second"].map(|name| net.file(name));
    let send = "send ipv4(src=random(10.0.0.0/8))/udp --on tx0 --measure rx0 --rate 2kpps --count 4000";
    let before = net.run(format!("netdyno {send} --json --report {first}")).result();
    assert!(number(&before["requested"]["seed"]) > 0, "{}", before["requested"]);
    let again = net.run(format!("netdyno rerun {first} --json --report {second}"));
    let after = again.result();
    assert_eq!(before["requested"], after["requested"]);
    assert_eq!(before["result"]["flows"]["flows"], after["result"]["flows"]["flows"]);
    // The comparison is for people, beside the result for programs.
    assert!(again.stderr.contains("second"), "{}", again.stderr);
    let shown = net.run(format!("netdyno rerun {first} --quiet"));
    assert!(shown.stdout.contains("received") && shown.stdout.contains("now"), "{}", shown.stdout);
    // An older result has no job.
    let mut old = before.clone();
    old.as_object_mut().expect("members").remove("requested");
    let file = net.file("old.json");
    std::fs::write(&file, old.to_string()).expect("a file");
    net.run(format!("netdyno rerun {file}")).refused(&["does not say which job"]);
}

#[test]
fn a_file_allows_itself_nothing() {
    let net = Net::new();
    let ran = net.file("ran");
    let reset = json!({"schema": "netdyno.job/1", "kind": "search", "bench": {"lab": {}},
        "find": {"reset": {"rate": "1kpps", "command": format!("touch {ran}")}}, "trial_duration": "2s"});
    let file = net.file("job.json");
    std::fs::write(&file, reset.to_string()).expect("a file");
    net.run(format!("netdyno run {file}")).refused(&["would run a program", "touch", "--command 'touch"]);
    net.run(format!("netdyno run {file} --command reboot")).refused(&["touch", "reboot", "must be the same"]);
    assert!(!std::path::Path::new(&ran).exists());
    let mut given = net.command(format!("netdyno run {file} --json --quiet --command"));
    given.arg(format!("touch {ran}"));
    assert!(start(given).wait().status < 2);
    assert!(std::path::Path::new(&ran).exists(), "what was allowed is run");
    // The same of a result.
    let result = json!({"schema": "netdyno.report/2", "command": "search", "requested": reset,
        "environment": {"netdyno_version": "0"}, "result": {"verdict": {"outcome": "done"}}});
    let file = net.file("result.json");
    std::fs::write(&file, result.to_string()).expect("a file");
    net.run(format!("netdyno rerun {file}")).refused(&["would run a program"]);
    let file = net.file("disrupt.json");
    let job = json!({"schema": "netdyno.job/1", "jobs": [{"kind": "reflect", "on": "rx0", "yes_disrupt": ["eth9"]},
        {"kind": "reflect", "on": "tx0"}]});
    std::fs::write(&file, job.to_string()).expect("a file");
    net.run(format!("netdyno run {file}")).refused(&["jobs[0]", "eth9", "--yes-disrupt 'eth9'"]);
    net.run(format!("netdyno run {file} --yes-disrupt eth9 --command reboot"))
        .refused(&["--command 'reboot'", "leave it out"]);
    // Nor may it overwrite anything.
    let (target, capture) = (net.file("precious"), net.file("a.pcap"));
    std::fs::write(&target, "precious").expect("a file");
    net.run(format!("netdyno craft ipv4/udp --count 3 -w {capture}")).ok();
    let job = json!({"schema": "netdyno.job/1", "kind": "replay", "captures": [capture], "write": target});
    std::fs::write(&file, job.to_string()).expect("a file");
    net.run(format!("netdyno run {file}")).refused(&["precious", "--write '"]);
    net.run(format!("netdyno run {file} --write other")).refused(&["precious"]);
    assert_eq!(std::fs::read_to_string(&target).expect("a file"), "precious");
    net.run(format!("netdyno run {file} --write {target} --quiet")).ok();
    assert_ne!(std::fs::read(&target).expect("a file"), b"precious");
    // Nor read what is nobody else's, nor speak to anybody.
    let job = json!({"schema": "netdyno.job/1", "kind": "collect", "listen": ["127.0.0.1:0"], "duration": "1s",
        "clickhouse": {"url": "http://127.0.0.1:1", "password_file": target}});
    std::fs::write(&file, job.to_string()).expect("a file");
    net.run(format!("netdyno run {file}")).refused(&["read", &target, "--allow-read '"]);
    net.run(format!("netdyno run {file} --allow-read {target}"))
        .refused(&["http://127.0.0.1:1", "--allow-address 'http://127.0.0.1:1'"]);
    net.run(format!("netdyno run {file} --allow-read {target} --allow-address http://127.0.0.1:1 --allow-address http://127.0.0.1:2")).refused(&["leave it out"]);
}

/// A name that is no text cannot stand in a job; the result is there all the same.
#[test]
fn a_path_that_is_no_text_costs_no_result() {
    use std::os::unix::ffi::OsStrExt;
    let dir = folder();
    let name = dir.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.pcap"));
    let mut made = command("netdyno craft ipv4/udp --count 3 -w");
    made.arg(&name);
    start(made).wait().ok();
    let replay = |options: &str| {
        let mut replay = command(format!("netdyno replay --engine null {options}"));
        replay.arg(&name);
        start(replay).wait()
    };
    let report = replay("--json").json();
    assert_eq!((&report["result"]["tx"]["frames"], &report["requested"]), (&json!(3), &Value::Null));
    assert!(report["warnings"].to_string().contains("UTF-8"), "{report}");
    replay("--print-job").refused(&["UTF-8"]);
}

#[test]
fn a_trial_of_a_result_sends_the_same_frames() {
    let dir = folder();
    let first = path(&dir, "first");
    let trial = "netdyno trial ipv4(src=random(10.0.0.0/8))/udp --lab --rate 1kpps --duration 100ms";
    let before = run(format!("{trial} --json --quiet --report {first}")).json();
    let after = run(format!("netdyno rerun {first} --json --quiet")).json();
    let seed = &before["requested"]["bench"]["seed"];
    assert!(seed.is_u64(), "{seed}");
    assert_eq!(*seed, after["requested"]["bench"]["seed"]);
}

#[test]
fn a_search_out_of_a_file_goes_on_where_it_was_interrupted() {
    let dir = folder();
    let (file, to) = (path(&dir, "job.yaml"), path(&dir, "to"));
    let job = "schema: netdyno.job/1\nkind: search\nfind: {loss: {step: 50%}}\nmax: 2kpps\ntrial_duration: 1s\nbench: {lab: }\n";
    std::fs::write(&file, job.replace("{lab: }", "{lab: {}, size: 64}")).expect("a file");
    let mut first = start(command(format!("netdyno run {file} --report {to}")));
    first.until_it_says("loss 64");
    first.signal("INT");
    assert_eq!(first.wait().status, 1);
    let whole = run(format!("netdyno search loss --continue {to} --json --quiet --report {to}")).json();
    assert_eq!(whole["result"]["search"]["complete"], true);
    assert_eq!(whole["requested"]["max"], "2kpps");
}

#[test]
fn what_is_wrong_in_a_file_is_named_by_its_path() {
    let dir = folder();
    let file = path(&dir, "jobs.yaml");
    let said = |text: &str, words: &[&str]| {
        std::fs::write(&file, text).expect("a file");
        run(format!("netdyno run {file}")).refused(words);
    };
    let two =
        |second: &str| format!("schema: netdyno.job/1\njobs:\n- {{kind: reflect, on: a}}\n- {second}\n");
    said(&two("{kind: send, what: ipv4, rate: 5}"), &["jobs.yaml: jobs[1].rate: `5` has no unit"]);
    said(&two("{kind: send, what: ipv4, speed: 2x}"), &["jobs[1]", "no member `speed`"]);
    said(&two("{kind: send, rate: top}"), &["jobs[1].what: what is to be sent?"]);
    said("schema: netdyno.job/9\nkind: reflect\n", &["schema: `netdyno.job/9`", "netdyno.job/1"]);
    said("schema: netdyno.job/1\nkind: measure\non: [\n", &["jobs.yaml:3:"]);
    said("schema: netdyno.job/1\nkind: send\nwhat: ipv4\nrate: 1kpps\n", &["where to?"]);
    said(
        "schema: netdyno.job/1\nkind: impair\nbetween: [a, b]\nfaults: {jitter: 1ms}\n",
        &["faults.jitter", "`.delay`"],
    );
    let both = two("{kind: trial, rate: 1kpps, bench: {lab: {}}}");
    said(&both, &["jobs[1]", "a file of their own"]);
    run("netdyno run /nothere.yaml").refused(&["/nothere.yaml"]);
}

#[test]
fn a_server_and_its_client_stand_in_one_file_in_either_order() {
    let pairs = [
        ("kind: iperf3-server, one_off: true", "kind: iperf3, bytes: 1M, interval: 0"),
        ("kind: netserver, listen: ['127.0.0.1:12865']", "kind: netperf, bytes: 1M"),
        ("kind: endpoint-server, listen: ['127.0.0.1:12866']", "kind: endpoint, test: tcp-stream, bytes: 1M"),
    ];
    for (server, client) in pairs {
        let client = format!("{client}, host: 127.0.0.1");
        for pair in [[server, &client], [&client, server]] {
            let net = Net::new();
            let path = net.dir.path().join("pair.yaml");
            let [first, second] = pair;
            let text = format!("schema: netdyno.job/1\njobs:\n- {{{first}}}\n- {{{second}}}\n");
            std::fs::write(&path, text).expect("written");
            let line = format!("netdyno run {} --allow-address 127.0.0.1 --json -q", path.display());
            let mut runs = net.start(line);
            // Two of the servers have no end of their own. What the kernel keeps of a connection that is over tells that the test is.
            let is_over = || {
                let port = if server.contains("12865") { ":12865" } else { ":12866" };
                let sockets = net.run("ss -Htan").ok().stdout;
                let of =
                    |state: &str| sockets.lines().any(|line| line.starts_with(state) && line.contains(port));
                of("TIME-WAIT") && !of("ESTAB")
            };
            if !server.contains("one_off") {
                while !is_over() {
                    runs.must_run();
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                runs.signal("INT");
            }
            let results = runs.wait().ok().json();
            let of = |member: &str| {
                let all = results.as_array().expect("results");
                all.iter().find_map(|report| report["result"].get(member)).expect(member).clone()
            };
            let stream = &of("endpoint")["streams"][0];
            assert_eq!(
                (&stream["sent_bytes"], &stream["received_bytes"]),
                (&1_000_000.into(), &1_000_000.into())
            );
            assert_eq!((&of("served")["tests"], &of("served")["bytes"]), (&1.into(), &1_000_000.into()));
        }
    }
}
