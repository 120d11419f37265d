//! `netdyno agent`: jobs over a pipe.

use crate::common::{Folder, Net, command, eventually, folder, number, path, run, tshark_field};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A client, as little of one as can be: its requests are answered in turn.
struct Client {
    agent: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
    /// What nobody asked for, in the order it came.
    told: Vec<Value>,
    early: Vec<Value>,
    /// All lines in both directions.
    lines: Vec<Value>,
}

impl Client {
    fn new(mut agent: Command) -> Client {
        let mut agent =
            agent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("an agent that starts");
        let (to, from) = (agent.stdin.take(), agent.stdout.take().expect("a pipe"));
        let mut client = Client {
            agent,
            to,
            from: BufReader::new(from),
            next: 1,
            told: Vec::new(),
            early: Vec::new(),
            lines: Vec::new(),
        };
        let hello = json!({ "client": { "name": "test", "version": "1" }, "protocol": ["netdyno.agent/1"] });
        let welcome = client.call("hello", hello);
        assert_eq!(welcome["protocol"], "netdyno.agent/1");
        client
    }

    fn here(words: &str) -> Client {
        Client::new(command(format!("netdyno agent --stdio {words}")))
    }

    fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.to.as_mut().expect("open"), "{line}").expect("an agent that reads");
        self.lines.push(line);
        id
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a line");
        assert!(line.ends_with('\n'), "the agent ended: {:?}", self.agent.try_wait());
        let line: Value = serde_json::from_str(&line).expect("JSON");
        self.lines.push(line.clone());
        line
    }

    fn answer(&mut self, id: u64) -> Value {
        if let Some(at) = self.early.iter().position(|line| line["id"] == id) {
            return self.early.remove(at);
        }
        loop {
            let line = self.line();
            match line.get("id") {
                Some(other) if *other == id => return line,
                Some(_) => self.early.push(line),
                None => self.told.push(line),
            }
        }
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    #[track_caller]
    fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let mut answer = self.answer(id);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Starts a job: the name of its run.
    #[track_caller]
    fn start(&mut self, job: Value) -> String {
        let started = self.call("job.start", json!({ "job": job }));
        started["run"].as_str().expect("a run").to_owned()
    }

    #[track_caller]
    fn report(&mut self, run: &str) -> Value {
        self.call("job.wait", json!({ "run": run }))["report"].take()
    }

    /// Closes its end: the agent's exit status.
    fn close(mut self) -> Option<i32> {
        drop(self.to.take());
        let mut rest = String::new();
        while self.from.read_line(&mut rest).is_ok_and(|count| count > 0) {}
        self.agent.wait().expect("an end").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.to.take());
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

/// Each line is what the published schema says, by python3-jsonschema: how many there were.
fn judged(dir: &Folder, lines: &[Value]) -> usize {
    let script = r##"
import json, sys
from jsonschema import Draft202012Validator as Validator
schema = json.load(open(sys.argv[1]))
Validator.check_schema(schema)
of = lambda part: Validator({**part, "$defs": schema["$defs"]})
kinds = {kind: of({"$ref": "#/$defs/" + kind}) for kind in ("request", "answer", "notification")}
results = {name: of(part) for name, part in schema["$defs"]["results"]["properties"].items()}
asked = {}
for line in json.load(open(sys.argv[2])):
    kind = "answer" if "method" not in line else "request" if "id" in line else "notification"
    kinds[kind].validate(line)
    if kind == "request":
        asked[line["id"]] = line["method"]
    elif kind == "answer" and "result" in line:
        results[asked[line["id"]]].validate(line["result"])
try:
    kinds["request"].validate({"jsonrpc": "2.0", "id": 1, "method": "clock", "params": {"t1": "x"}})
    sys.exit("anything is taken")
except Exception as error:
    assert "not valid" in str(error), error
"##;
    let [code, said] = ["judge.py", "lines.json"].map(|name| path(dir, name));
    std::fs::write(&code, script).expect("written");
    std::fs::write(&said, Value::from(lines).to_string()).expect("written");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agent.schema.json");
    run(format!("/usr/bin/python3 {code} {schema} {said}")).ok();
    lines.len()
}

#[test]
fn the_lines_of_the_documents_are_what_the_schema_says() {
    let page = include_str!("../../../../docs/agent.md");
    let blocks = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines: Vec<Value> =
        blocks.flat_map(str::lines).map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(judged(&folder(), &lines) > 40);
}

fn kinds(told: &[Value]) -> Vec<&str> {
    told.iter().filter_map(|line| line["method"].as_str()).collect()
}

#[test]
fn files_go_to_the_agent_and_come_back_and_reports_name_them_as_the_job_does() {
    let dir = folder();
    let mut client = Client::here("");
    let got = path(&dir, "got.pcapng");
    let run = client.start(
        json!({ "kind": "send", "what": "ipv4(src=10.0.0.0/24)/udp(dport=9)", "lab": {}, "rate": "10kpps",
        "count": 1000, "meter": { "capture": { "file": got } } }),
    );
    let report = client.report(&run);
    assert_eq!(number(&report["result"]["rx"]["frames"]), 1000);
    assert_eq!(report["requested"]["meter"]["capture"]["file"], got);
    assert!(!report.to_string().contains("/proc/"), "{report}");
    assert!(!std::fs::exists(&got).expect("a folder"), "it was written here");
    let files = client.call("job.files", json!({ "run": run }));
    assert_eq!((files["files"].as_array().map(Vec::len), &files["files"][0]["name"]), (Some(1), &json!(got)));
    // By pieces, into a file that others read.
    let mut base64 = String::new();
    let mut offset = 0;
    loop {
        // Whole groups of three bytes, so that pieces of base64 are one text.
        let asked = json!({ "run": run, "name": got, "offset": offset, "length": 30_000 });
        let piece = client.call("file.read", asked);
        base64 += piece["base64"].as_str().expect("a piece");
        offset = number(&piece["offset"]);
        if piece["end"] == true {
            break;
        }
    }
    assert_eq!(offset, number(&files["files"][0]["bytes"]));
    std::fs::write(path(&dir, "got.base64"), &base64).expect("written");
    let there = path(&dir, "there.pcapng");
    let decode = format!("base64 -d {} >{there}; sha256sum <{there}", path(&dir, "got.base64"));
    let output = Command::new("sh").args(["-c", &decode]).output().expect("sh");
    let sum = String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned();
    assert_eq!(files["files"][0]["sha256"], sum, "by sha256sum");
    assert_eq!(tshark_field(&there, "frame.number").len(), 1000);
    // The same bytes there again, and replayed.
    let begin = json!({ "name": "web.pcapng", "bytes": offset, "sha256": sum });
    assert_eq!(client.call("content.begin", begin.clone())["offset"], 0);
    // A whole number of groups of four letters.
    let (first, second) = base64.split_at(base64.len() / 8 * 4);
    let asked = json!({ "content": "c1", "offset": 0, "base64": first });
    let at = client.call("content.chunk", asked)["offset"].clone();
    assert_eq!(client.call("content.begin", begin)["offset"], at, "what was sent in part is gone on with");
    client.call("content.chunk", json!({ "content": "c1", "offset": at, "base64": second }));
    client.call("content.end", json!({ "content": "c1" }));
    let job = json!({ "kind": "replay", "captures": ["web.pcapng"], "lab": {}, "rate": "10kpps" });
    let run =
        client.call("job.start", json!({ "job": job, "contents": { "web.pcapng": "c1" } }))["run"].clone();
    client.call("content.forget", json!({ "content": "c1" }));
    let report = client.report(run.as_str().expect("a run"));
    assert_eq!(number(&report["result"]["rx"]["frames"]), 1000, "{report}");
    assert_eq!(report["requested"]["captures"], json!(["web.pcapng"]));
    client.call("job.forget", json!({ "run": run }));
    assert_eq!(client.refused("job.wait", json!({ "run": run }))["data"]["kind"], "unknown");
    assert_eq!(client.close(), Some(0));
}

#[test]
fn a_run_begins_at_its_time_is_watched_and_steered_and_holds_its_interfaces() {
    let net = Net::new();
    let words = "netdyno agent --stdio --allow-interface tx0 --allow-interface rx0 --max-rate 20kpps";
    let mut client = Client::new(net.command(words));
    let mut other = Client::new(net.command(words));
    let tai = number(&client.call("host", json!({}))["clock"]["tai_ns"]);
    let send = json!({ "kind": "send", "what": "ipv4/udp", "links": [{ "on": "tx0", "measure": "rx0" }], "rate": "10kpps",
        "count": 20_000, "engine": "packet" });
    // A machine that is busy is ready in time.
    let start_at = tai + 10_000_000_000;
    let started = client
        .call("job.start", json!({ "job": send, "start_at": start_at, "snapshots_every_ns": 100_000_000 }));
    assert_eq!(started["interfaces"][0], json!({ "setting": "links[0].measure", "name": "rx0" }));
    let mine = json!({ "job": send });
    let refused = other.refused("job.start", mine);
    assert_eq!(
        (&refused["data"]["kind"], &refused["data"]["setting"]),
        (&json!("refused"), &json!("links[0].measure"))
    );
    assert!(refused["message"].as_str().is_some_and(|said| said.contains("held by run r1")), "{refused}");
    let trial = json!({ "kind": "trial", "rate": "1kpps", "bench": { "lab": {} } });
    assert_eq!(client.refused("job.start", json!({ "job": trial }))["data"]["kind"], "refused");
    // Until its first snapshot nothing can be steered.
    while !client.told.iter().any(|line| line["params"]["snapshot"]["phase"] == "running") {
        let line = client.line();
        assert_ne!(line["method"], "run.ended", "{line}");
        client.told.push(line);
    }
    assert_eq!(
        client.refused("job.rate", json!({ "run": "r1", "rate": "25kpps" }))["data"]["kind"],
        "refused"
    );
    assert_eq!(client.call("job.rate", json!({ "run": "r1", "rate": "20kpps" })), json!({ "percent": 200 }));
    client.call("job.pause", json!({ "run": "r1" }));
    client.call("job.resume", json!({ "run": "r1" }));
    let report = client.report("r1");
    let result = &report["result"];
    assert_eq!(
        (number(&result["tx"]["frames"]), number(&result["rx"]["frames"])),
        (20_000, 20_000),
        "{report}"
    );
    let began = number(&client.call("host", json!({}))["clock"]["tai_ns"]);
    assert!(began > start_at + 1_000_000_000, "20,000 frames take a second at least");
    let told = kinds(&client.told);
    assert!(told.iter().filter(|kind| **kind == "run.snapshot").count() > 3, "{told:?}");
    assert_eq!(told.last(), Some(&"run.ended"), "{told:?}");
    // Late, and nothing is sent.
    let run = client.call("job.start", json!({ "job": send, "start_at": start_at }))["run"].clone();
    let late = client.refused("job.wait", json!({ "run": run }));
    assert_eq!((&late["data"]["kind"], &late["code"]), (&json!("late"), &json!(-32_007)), "{late}");
    // Now the other one may, and it is stopped in an orderly way.
    let long = json!({ "kind": "send", "what": "ipv4/udp", "links": [{ "on": "tx0" }], "rate": "1kpps", "duration": "600s" });
    assert!(judged(&folder(), &client.lines) > 15);
    let run = other.start(long);
    std::thread::sleep(Duration::from_millis(300));
    other.call("job.stop", json!({ "run": run }));
    let report = other.report(&run);
    let codes = report["result"]["verdict"]["codes"].as_array().expect("codes");
    assert!(codes.contains(&json!("stopped")), "{report}");
    assert_eq!((client.close(), other.close()), (Some(0), Some(0)));
}

#[test]
fn what_is_not_granted_is_refused_by_its_setting_and_nothing_of_it_is_left() {
    let mut client = Client::here("--allow-address 198.18.0.1:9");
    for (job, setting) in [
        (
            json!({ "kind": "send", "what": "ipv4/udp", "links": [{ "on": "lo" }], "rate": "1pps" }),
            "links[0].on",
        ),
        (json!({ "kind": "send", "what": "/etc/passwd", "lab": {}, "rate": "1pps" }), "what"),
        (json!({ "kind": "replay", "captures": ["/etc/passwd"], "lab": {}, "rate": "1pps" }), "captures[0]"),
        (json!({ "kind": "endpoint", "test": "tcp-stream", "host": "198.18.0.2:9" }), "host"),
        (
            json!({ "kind": "endpoint", "test": "tcp-stream", "host": "198.18.0.1:9", "token_file": "/etc/shadow" }),
            "token_file",
        ),
        (json!({ "kind": "netserver" }), "listen"),
        (json!({ "kind": "collect", "listen": ["127.0.0.1:9"], "write": ["a.csv"] }), "listen[0]"),
    ] {
        let refused = client.refused("job.start", json!({ "job": job }));
        assert_eq!(
            (&refused["data"]["kind"], &refused["data"]["setting"]),
            (&json!("refused"), &json!(setting)),
            "{refused}"
        );
        assert!(refused["data"]["remedy"].is_string(), "{refused}");
    }
    // What the client agrees to has to be all, too.
    let job = json!({ "kind": "endpoint", "test": "tcp-stream", "host": "198.18.0.1:9" });
    let refused = client.refused("job.start", json!({ "job": job, "agree": {} }));
    assert!(refused["message"].as_str().is_some_and(|said| said.contains("198.18.0.1:9")), "{refused}");
    // An error of the job itself.
    let wrong = json!({ "kind": "send", "what": "ipv4/udp", "lab": {}, "rate": "1" });
    let refused = client.refused("job.start", json!({ "job": wrong }));
    assert_eq!((&refused["data"]["kind"], &refused["data"]["setting"]), (&json!("usage"), &json!("rate")));
    let run = client
        .start(json!({ "kind": "send", "what": "ipv4/udp(dprt=1)", "lab": {}, "rate": "1kpps", "count": 1 }));
    let refused = client.refused("job.wait", json!({ "run": run }));
    assert_eq!((&refused["data"]["kind"], &refused["data"]["setting"]), (&json!("usage"), &json!("what")));
    assert_eq!(client.close(), Some(0));
    command("netdyno agent").output().map_or_else(
        |error| panic!("{error}"),
        |output| assert_eq!(output.status.code(), Some(2), "--stdio is missing"),
    );
}

#[test]
fn a_client_that_goes_away_or_does_not_read_leaves_nothing_and_holds_nobody_up() {
    let net = Net::new();
    let words = "netdyno agent --stdio --allow-interface tx0 --allow-interface rx0";
    let job = json!({ "kind": "send", "what": "ipv4/udp", "links": [{ "on": "tx0", "measure": "rx0" }], "rate": "1kpps",
        "duration": "600s" });
    // It goes away while a run goes on, and somebody waits for the report: that is of what was done until then.
    let mut client = Client::new(net.command(words));
    let run = client.start(job.clone());
    let id = client.ask("job.wait", json!({ "run": run }));
    std::thread::sleep(Duration::from_millis(500));
    drop(client.to.take());
    let report = client.answer(id);
    assert_eq!(report["result"]["report"]["result"]["verdict"]["outcome"], "short", "{report}");
    assert_eq!(client.agent.wait().expect("an end").code(), Some(0));
    // It does not read: notes and snapshots are left out, the run goes on, and when the pipe closes all ends.
    let mut client = Client::new(net.command(words));
    let asked = json!({ "job": job, "snapshots_every_ns": 10_000_000 });
    client.call("job.start", asked);
    for _ in 0..20_000 {
        // Some megabytes of answers.
        client.ask("content.begin", json!({ "name": "x", "bytes": 1, "sha256": "wrong" }));
    }
    drop(client.to.take());
    let began = Instant::now();
    assert_eq!(client.agent.wait().expect("an end").code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    // It closes its ear alone.
    let mut client = Client::new(net.command(words));
    client.start(job.clone());
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    drop(std::mem::replace(
        &mut client.from,
        BufReader::new(ChildStdout::from(std::os::fd::OwnedFd::from(reader))),
    ));
    let _ = writeln!(client.to.as_mut().expect("open"), "{{}}");
    assert_eq!(client.agent.wait().expect("an end").code(), Some(2));
    // It is killed: no program is left at the interfaces, and they are free.
    let mut client = Client::new(net.command(words));
    client.start(job.clone());
    eventually("the run has begun", || net.run_there("ip -d link show rx0").stdout.contains("prog/xdp"));
    client.agent.kill().expect("killed");
    client.agent.wait().expect("an end");
    eventually("nothing is left", || !net.run_there("ip -d link show rx0").stdout.contains("prog/xdp"));
    let mut client = Client::new(net.command(words));
    let short = json!({ "kind": "send", "what": "ipv4/udp", "links": [{ "on": "tx0", "measure": "rx0" }], "rate": "1kpps",
        "count": 100 });
    let run = client.start(short);
    assert_eq!(number(&client.report(&run)["result"]["rx"]["frames"]), 100);
    assert_eq!(client.close(), Some(0));
}
