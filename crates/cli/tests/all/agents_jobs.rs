//! Jobs at agents by the client that netdyno itself has (crate fleet): two hosts that begin at one time, and agents that are lost in a run.

use crate::agents::program;
use crate::common::{Net, eventually, handle, number};
use ::lab::Namespace;
use agent::{JobStart, RunOutcome};
use fleet::{Client, Lost, LostKind, Patience, Reach, Told};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// An agent on a host that is a namespace.
fn reach(name: &str, host: &Namespace, words: &str) -> Reach {
    let command = format!("exec nsenter --net={} {} agent --stdio {words}", handle(host), program());
    format!("{name}={command}").parse().expect("an agent")
}

pub fn client(reach: &Reach, answer: Duration) -> Client {
    let patience = Patience { answer, stop: Arc::default() };
    Client::reach(reach, patience).unwrap_or_else(|lost| panic!("{}: {lost}", reach.name)).0
}

pub fn job(job: Value, start_at: Option<u64>) -> JobStart {
    let Value::Object(job) = job else { panic!("a job") };
    let contents = Default::default();
    JobStart {
        job,
        contents,
        start_at,
        snapshots_every_ns: 200_000_000,
        agree: None,
        among: None,
        closely: false,
    }
}

/// Takes nothing longer than a busy machine needs.
pub const LONG: Duration = Duration::from_secs(120);

pub fn send(frames: u64) -> Value {
    json!({ "kind": "send", "what": "ipv4(src=10.0.0.0/24)/udp(dport=9)", "links": [{ "on": "tx0" }], "sign": "always",
        "rate": "10kpps", "count": frames, "meter": { "clock": "tai" } })
}

#[test]
fn what_one_agent_sent_the_other_received_from_a_common_start_on() {
    let net = Net::new();
    let [near, far] = [&net.lab.sender.namespace, &net.lab.receiver.namespace];
    let mut sender = client(&reach("near", near, "--allow-interface tx0"), LONG);
    let mut meter = client(&reach("far", far, "--allow-interface rx0"), LONG);
    let offsets =
        [&mut sender, &mut meter].map(|agent| agent.offset(20, Duration::from_secs(1)).expect("an offset"));
    // A machine that is busy is ready in time.
    let begin = clocks_tai() + 30_000_000_000;
    let [at_sender, at_meter] = offsets.map(|offset| begin.saturating_add_signed(offset.offset_ns));
    let measure = json!({ "kind": "measure", "on": "rx0", "clock": "tai", "drop": true });
    let measuring = meter.start(&job(measure, Some(at_meter - 500_000_000))).expect("it measures");
    let sending = sender.start(&job(send(5_000), Some(at_sender))).expect("it sends");
    assert_eq!((&*sending.interfaces[0].name, &*measuring.interfaces[0].name), ("tx0", "rx0"));
    let (over, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut heard, mut snapshots) = (Vec::new(), 0);
    let (sent, received) = std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            meter.wait(&measuring.run, &over, &mut |told| {
                if let Told::Note(note) = told {
                    heard.push(note.text);
                }
            })
        });
        let sent = sender.wait(&sending.run, &never, &mut |told| match told {
            Told::Note(_) => {}
            Told::Snapshot(_) => snapshots += 1,
            Told::Ended(outcome) => assert!(matches!(outcome, RunOutcome::Done | RunOutcome::Short)),
        });
        std::thread::sleep(Duration::from_millis(500));
        over.store(true, Relaxed);
        (sent.expect("a report"), measured.join().expect("no panic").expect("a report"))
    });
    assert!(clocks_tai() > begin + 499_000_000, "5,000 frames take half a second from the start on");
    assert!(
        heard.iter().any(|said| said.starts_with("measuring on rx0")) && snapshots > 0,
        "{heard:?} {snapshots}"
    );
    assert_eq!(number(&sent["result"]["tx"]["frames"]), 5_000, "{sent}");
    let stream = &received["streams"][0];
    assert_eq!((number(&stream["rx_frames"]), number(&stream["lost_frames"])), (5_000, 0), "{received}");
    assert_eq!(received["result"]["latency_clock"]["name"], "tai", "{received}");
    // Both go on to answer, and end when they are left.
    for agent in [&mut sender, &mut meter] {
        agent.offset(1, Duration::from_secs(1)).expect("it answers");
        agent.abort("r1").expect("it is over");
    }
}

fn clocks_tai() -> u64 {
    let time = rustix::time::clock_gettime_dynamic(rustix::time::DynamicClockId::Tai).expect("a clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The process that has this among its words, and no shell.
pub fn process(words: &str) -> Option<String> {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let line = String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        (line.starts_with(&program()) && line.contains(words))
            .then(|| path.file_name()?.to_str().map(str::to_owned))?
    };
    std::fs::read_dir("/proc").expect("/proc").find_map(of)
}

#[test]
fn an_agent_that_is_lost_in_a_run_is_known_in_time_and_leaves_nothing() {
    let net = Net::new();
    let host = &net.lab.sender.namespace;
    let mut long = send(5_000);
    long["count"] = json!(100_000_000u64);
    let never = AtomicBool::new(false);
    for (signal, kind) in [("STOP", LostKind::Silent), ("KILL", LostKind::Ended)] {
        let mark = net.file(signal);
        std::fs::create_dir(&mark).expect("a folder");
        let mut agent = client(&reach("near", host, &format!("--allow-interface tx0 --folder {mark}")), LONG);
        let run = agent.start(&job(long.clone(), None)).expect("it sends").run;
        let pid = process(&mark).expect("an agent");
        let (mut began, answer) = (Instant::now(), Duration::from_secs(30));
        agent.waits(answer);
        let lost = agent.wait(&run, &never, &mut |told| {
            // It goes on; from now on nothing comes.
            if matches!(told, Told::Snapshot(_)) {
                net.run(format!("kill -{signal} {pid}")).ok();
                began = Instant::now();
            }
        });
        let lost = lost.expect_err("it is lost");
        assert_eq!(lost.kind(), kind, "{lost}");
        assert!(began.elapsed() < answer + LONG, "{:?}", began.elapsed());
        drop(agent);
        eventually("nothing is left", || process(&mark).is_none());
    }
    // It is stopped in order: its report is of what was done until then.
    let mut agent = client(&reach("near", host, "--allow-interface tx0"), LONG);
    let run = agent.start(&job(long.clone(), None)).expect("it sends").run;
    let stop = AtomicBool::new(false);
    let report = agent.wait(&run, &stop, &mut |told| {
        if matches!(told, Told::Snapshot(_)) {
            stop.store(true, Relaxed);
        }
    });
    let report = report.expect("a report");
    assert!(
        report["result"]["verdict"]["codes"].as_array().expect("codes").contains(&json!("stopped")),
        "{report}"
    );
    // What is refused says which setting, and what is late sends nothing.
    let mut elsewhere = send(1);
    elsewhere["links"][0]["on"] = json!("lo");
    let Err(Lost::Refused(fault)) = agent.start(&job(elsewhere, None)) else { panic!("it is not granted") };
    assert_eq!(fault.data.setting.as_deref(), Some("links[0].on"));
    let run = agent.start(&job(send(1), Some(1))).expect("it is looked at later").run;
    let Err(Lost::Refused(fault)) = agent.wait(&run, &never, &mut |_| {}) else { panic!("it is late") };
    assert_eq!(fault.data.kind, agent::FaultKind::Late);
}
