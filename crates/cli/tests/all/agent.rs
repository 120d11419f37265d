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
    let start_at = tai + 20_000_000_000;
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
        assert_ne!(line["method"], "run.ended", "{line}: {:?}", client.told);
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

/// System calls by which something is attached to an interface, or changed of it.
const ATTACHING: [&str; 6] =
    ["BPF_LINK_CREATE", "BPF_PROG_ATTACH", "AF_XDP", "sll_ifindex", "PACKET_ADD_MEMBERSHIP", "SIOCSIF"];

#[test]
fn an_interface_that_the_host_needs_is_refused_before_anything_is_attached_to_it_or_another() {
    let net = Net::with(&::lab::Options { cables: 2, ..Default::default() });
    net.run("ip addr add 198.18.0.1/24 dev tx0").ok();
    net.run("ip route add default via 198.18.0.2 dev tx0").ok();
    let (needed, free) = ("tx0", "tx1");
    let between = |on: &str, measure: &str| json!({ "links": [{ "on": on, "measure": measure }] });
    let send = |more: Value| {
        let mut job = json!({ "kind": "send", "what": "ipv4/udp", "rate": "1kpps", "count": 5 });
        job.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        job
    };
    let mut jobs: Vec<Value> = ["auto", "xdp", "afxdp", "packet"]
        .map(|engine| send(json!({ "links": [{ "on": needed }], "engine": engine })))
        .into();
    jobs.extend([
        send(between(free, needed)),
        send(between(needed, free)),
        send(json!({ "links": [{ "on": free }, { "on": needed }] })),
        json!({ "kind": "measure", "on": needed, "duration": "1s" }),
        json!({ "kind": "measure", "on": needed, "drop": true, "duration": "1s" }),
        json!({ "kind": "reflect", "on": needed, "duration": "1s" }),
        json!({ "kind": "bridge", "between": [free, needed], "duration": "1s" }),
        json!({ "kind": "impair", "between": [free, needed], "faults": { "loss": "1%" }, "duration": "1s" }),
        json!({ "kind": "sessions", "on": needed, "to": "198.18.0.2:80", "rate": "1kcps", "duration": "1s" }),
        json!({ "kind": "sessions-server", "on": needed, "duration": "1s" }),
        json!({ "kind": "trial", "rate": "1kpps", "bench": between(free, needed) }),
        json!({ "kind": "search", "find": "throughput", "bench": between(free, needed) }),
    ]);
    let log = net.file("calls");
    let words = format!(
        "strace -f -o {log} -e trace=bpf,bind,setsockopt,ioctl netdyno agent --stdio --allow-interface tx* --allow-address *"
    );
    let mut client = Client::new(net.command(words));
    for job in jobs {
        let run = client.start(job.clone());
        let refused = client.refused("job.wait", json!({ "run": run }));
        assert_eq!(refused["data"]["kind"], "refused", "{job}: {refused}");
        let setting =
            refused["data"]["setting"].as_str().and_then(|setting| setting.rsplit(['.', '[']).next());
        assert!(
            setting.is_some_and(|setting| ["on", "measure", "1]"].contains(&setting)),
            "{job}: {refused}"
        );
        let said = refused["message"].as_str().unwrap_or_default();
        assert!(said.contains("tx0 carries the default route"), "{job}: {refused}");
        client.call("job.forget", json!({ "run": run }));
    }
    // What is looked for is what is seen of a job that may.
    let calls = || std::fs::read_to_string(&log).expect("the calls");
    let attaching = |calls: &str| -> Vec<String> {
        let is_one = |line: &&str| ATTACHING.iter().any(|word| line.contains(word));
        calls.lines().filter(is_one).map(str::to_owned).collect()
    };
    assert_eq!(attaching(&calls()), Vec::<String>::new());
    for job in [
        json!({ "kind": "measure", "on": free, "duration": "200ms" }),
        send(json!({ "links": [{ "on": free }], "engine": "packet" })),
    ] {
        let run = client.start(job);
        client.report(&run);
    }
    assert_eq!(client.close(), Some(0));
    let seen = calls();
    for word in ["BPF_LINK_CREATE", "sll_ifindex"] {
        assert!(attaching(&seen).iter().any(|line| line.contains(word)), "{word}: {seen}");
    }
}

#[test]
fn a_hostile_client_has_one_error_for_each_line_and_takes_no_more_than_the_limits() {
    let mut client = Client::here("");
    let id = |agent: &Value| agent["id"].clone();
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"clock\",\"params\":{}1{}}}",
        "[".repeat(500_000),
        "]".repeat(400_000)
    );
    let long = "x".repeat(3 << 20);
    let huge = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"clock\"}}", "9".repeat(1000));
    let name = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"clock\"}}", "n".repeat(129));
    for bad in [
        "",
        "{",
        "[]",
        "null",
        "\u{1b}[31m",
        &deep,
        &long,
        &huge,
        &name,
        "{\"jsonrpc\":\"2.0\",\"id\":1e400,\"method\":\"clock\"}",
    ] {
        writeln!(client.to.as_mut().expect("open"), "{bad}").expect("an agent that reads");
        let answer = client.line();
        assert!(id(&answer).is_null() && answer["error"]["message"].is_string(), "{answer}");
    }
    // The greatest and the least that are numbers at all come back as they are.
    for number in [json!(u64::MAX), json!(i64::MIN)] {
        let line = json!({ "jsonrpc": "2.0", "id": number, "method": "clock", "params": { "t1": i64::MIN } });
        writeln!(client.to.as_mut().expect("open"), "{line}").expect("an agent that reads");
        assert_eq!(id(&client.line()), number);
    }
    // A content that never ends, one that is another than was said, and more of them than are kept.
    let begin =
        |bytes: u64, hash: u64| json!({ "name": "x", "bytes": bytes, "sha256": format!("{hash:064x}") });
    let whole = client.call("content.begin", begin(3, 0))["content"].clone();
    let chunk = |offset: u64, text: &str| json!({ "content": whole, "offset": offset, "base64": text });
    client.call("content.chunk", chunk(0, "YWJj"));
    for (offset, text) in
        [(3, "YQ=="), (0, "YQ=="), (u64::MAX, "YQ=="), (3, "Y"), (3, &"A".repeat(1_000_000))]
    {
        client.refused("content.chunk", chunk(offset, text));
    }
    let wrong = client.refused("content.end", json!({ "content": whole }));
    assert!(wrong["message"].as_str().is_some_and(|said| said.contains("SHA-256")), "{wrong}");
    client.refused("content.begin", begin(u64::MAX, 1));
    for number in 0..1024 {
        client.call("content.begin", begin(10, number));
    }
    let full = client.refused("content.begin", begin(10, 1024));
    assert_eq!(full["data"]["kind"], "limit", "{full}");
    let looks = client.refused("host", json!({ "interfaces": vec!["lo"; 257] }));
    assert_eq!(looks["data"]["kind"], "limit", "{looks}");
    // Jobs by the hundred, all of which want to last.
    let job =
        json!({ "kind": "send", "what": "ipv4/udp", "engine": "null", "rate": "1pps", "duration": "1h" });
    let asked: Vec<u64> = (0..500).map(|_| client.ask("job.start", json!({ "job": job }))).collect();
    let begun = asked.iter().filter(|id| client.answer(**id).get("result").is_some()).count();
    assert_eq!(begun, 16);
    // Who waits for one of them by the hundred is told so.
    let waits: Vec<u64> = (0..300).map(|_| client.ask("job.wait", json!({ "run": "r1" }))).collect();
    let refused = client.answer(waits[299]);
    assert_eq!(refused["error"]["data"]["kind"], "limit", "{refused}");
    let times = json!({ "job": job, "start_at": u64::MAX });
    client.call("job.stop", json!({ "run": "r1" }));
    assert!(client.answer(waits[0]).get("result").is_some());
    let run = client.call("job.start", times)["run"].clone();
    client.call("job.abort", json!({ "run": run }));
    // Half a line, and it is gone: all of its runs end.
    write!(client.to.as_mut().expect("open"), "{{\"jsonrpc\":").expect("an agent that reads");
    assert_eq!(client.close(), Some(0));
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
