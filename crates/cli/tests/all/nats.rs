//! Agents that dial out to a real NATS server: each in a namespace of its own, with a cable to the server's; and what is lost on the way.

use crate::agents::program;
use crate::agents_jobs::{LONG, client, job, process, send};
use crate::common::{
    Folder, Net, Ran, Running, command, eventually, folder, handle, inside, number, path, run, start,
};
use ::lab::Namespace;
use fleet::{Client, Lost, LostKind, Reach, Told};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Where the server is, for each of them.
const ADDRESS: &str = "10.255.0.1";
/// A lease of 10 s, and some for a busy machine.
const LEASE: Duration = Duration::from_secs(60);

/// A server in a namespace of its own, with the users and the certificate of the examples.
struct Site {
    home: Namespace,
    dir: Folder,
    server: Option<Running>,
}

fn example(name: &str) -> String {
    let file = format!("{}/../../examples/nats/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// An environment in which the example's server knows its users.
fn passwords(command: &mut Command) {
    for user in ["lab1", "lab2", "operator"] {
        command.env(format!("{}_PASSWORD", user.to_uppercase()), format!("{user}-secret"));
    }
}

impl Site {
    /// With the server's configuration changed.
    fn with(change: impl FnOnce(String) -> String) -> Site {
        let dir = folder();
        let home = Namespace::new().unwrap_or_else(|error| panic!("these tests need root: {error}"));
        let mut site = Site { home, dir, server: None };
        for line in ["ip link set lo up".to_owned(), format!("ip address add {ADDRESS}/32 dev lo")] {
            start(inside(&site.home, &line)).wait().ok();
        }
        site.make_certificates();
        for user in ["lab1", "lab2", "operator", "wrong"] {
            std::fs::write(site.file(user), format!("{user}-secret\n")).expect("written");
        }
        // A machine that is busy is not to be hurried by the server either.
        let patient = change(example("nats-server.conf"))
            .replace("tls {", "tls {\n  timeout: 60")
            .replace("authorization {", "authorization {\n  timeout: 60");
        std::fs::write(site.file("nats-server.conf"), patient).expect("written");
        site.start_server();
        site
    }

    fn new() -> Site {
        Site::with(|conf| conf)
    }

    fn file(&self, name: &str) -> String {
        path(&self.dir, name)
    }

    /// A CA and the server's certificate; and another CA.
    fn make_certificates(&self) {
        let openssl = |words: &str| run(format!("openssl {words}")).ok();
        let new = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30";
        for ca in ["ca", "other"] {
            let [key, cert] = ["key", "pem"].map(|ending| self.file(&format!("{ca}.{ending}")));
            openssl(&format!("req {new} -subj /CN={ca} -keyout {key} -out {cert}"));
        }
        let [ca, ca_key, key, cert] =
            ["ca.pem", "ca.key", "server.key", "server.pem"].map(|name| self.file(name));
        openssl(&format!(
            "req {new} -subj /CN=nats.example.net -addext subjectAltName=DNS:nats.example.net,IP:{ADDRESS} \
             -addext basicConstraints=critical,CA:FALSE -CA {ca} -CAkey {ca_key} -keyout {key} -out {cert}"
        ));
    }

    /// Starts the server, which reads its files from its folder.
    fn start_server(&mut self) {
        let server = std::env::var("NETDYNO_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        let mut command = inside(&self.home, &format!("{server} -c {}", self.file("nats-server.conf")));
        passwords(command.current_dir(self.dir.path()));
        let mut server = start(command);
        server.until_it_says("Server is ready");
        self.server = Some(server);
    }

    fn kill_server(&mut self) {
        let server = self.server.take().expect("a server");
        server.signal("KILL");
        server.wait();
    }

    /// A cable from the server's namespace to this one.
    fn join(&self, host: &Namespace, number: u8) {
        for line in [
            format!("ip link add ctl{number} type veth peer name ctl netns {}", handle(host)),
            format!("ip address add 10.9.{number}.1/24 dev ctl{number}"),
            format!("ip link set ctl{number} up"),
        ] {
            start(inside(&self.home, &line)).wait().ok();
        }
        for line in [
            format!("ip address add 10.9.{number}.2/24 dev ctl"),
            "ip link set ctl up".to_owned(),
            format!("ip route add {ADDRESS} via 10.9.{number}.1"),
        ] {
            start(inside(host, &line)).wait().ok();
        }
    }

    /// The options of a user.
    fn user(&self, user: &str) -> String {
        format!(
            "--nats tls://{ADDRESS}:4222 --ca {} --user {user} --password-file {}",
            self.file("ca.pem"),
            self.file(user)
        )
    }

    /// An agent that is connected; it allows tx0.
    fn agent(&self, host: &Namespace, id: &str, words: &str) -> Running {
        let line = format!("netdyno agent {} --id {id} --allow-interface tx0 {words}", self.user(id));
        let mut agent = start(inside(host, &line));
        agent.until_it_says(&format!("{id} is connected to tls://{ADDRESS}:4222"));
        agent
    }

    /// The command by which an operator reaches an agent.
    fn way(&self, id: &str) -> String {
        let operator = self.user("operator");
        format!(
            "exec nsenter --net={} {} agents reach {id} --timeout 120s {operator}",
            handle(&self.home),
            program()
        )
    }

    fn client(&self, id: &str) -> Client {
        let reach: Reach = format!("{id}={}", self.way(id)).parse().expect("an agent");
        client(&reach, LONG)
    }

    fn process_that_reaches(&self) -> String {
        process(&format!("--password-file {}", self.file("operator"))).expect("one that reaches it")
    }

    fn check(&self, words: &str, ids: &[&str]) -> Running {
        let mut check = command(format!("netdyno agents check --timeout 120s {words}"));
        for id in ids {
            check.args(["--agent", &format!("{id}={}", self.way(id))]);
        }
        start(check)
    }

    /// What reaches an agent, or not.
    fn reach(&self, words: &str) -> Ran {
        start(inside(&self.home, &format!("netdyno agents reach --timeout 60s {words}"))).wait()
    }
}

fn frames_sent(report: &Value) -> u64 {
    number(&report["result"]["tx"]["frames"])
}

/// 10,000 a second, for longer than any test.
fn long() -> Value {
    let mut long = send(5_000);
    long["count"] = json!(100_000_000u64);
    long
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Is there an agent that serves a session, and allows this folder?
fn serves(mark: &str) -> Option<String> {
    process(&format!("agent --stdio --allow-interface=tx0 --folder={mark}"))
}

#[test]
fn an_agent_that_dials_out_is_checked_and_carries_out_jobs_as_any_other() {
    let (site, net) = (Site::new(), Net::new());
    let host = &net.lab.sender.namespace;
    site.join(host, 1);
    let mut agent = site.agent(host, "lab1", "--max-rate 1mpps");
    let ran = site.check("--json", &["lab1"]).wait().ok();
    let found = &ran.json()["agents"][0];
    assert_eq!((&found["ready"], &found["interfaces"][0]["name"]), (&json!(true), &json!("tx0")), "{found}");
    // One host has one clock.
    let (ahead, error) =
        (found["offset"]["offset_ns"].as_i64().expect("one"), number(&found["offset"]["error_ns"]));
    assert!(ahead.unsigned_abs() <= error, "{found}");
    let mut client = site.client("lab1");
    let run = client.start(&job(send(5_000), None)).expect("it sends").run;
    let report = client.wait(&run, &NEVER, &mut |_| {}).expect("a report");
    assert_eq!(frames_sent(&report), 5_000);
    // What is not granted is refused as anywhere.
    let mut fast = send(5_000);
    fast["rate"] = json!("2mpps");
    let Err(Lost::Refused(fault)) = client.start(&job(fast, None)) else { panic!("it is not granted") };
    assert_eq!(fault.data.setting.as_deref(), Some("rate"), "{fault}");
    drop(client);
    eventually("the session is over", || agent.said().matches("is over: its client").count() == 2);
    assert!(agent.said().contains(" begins: ") && agent.said().contains(", as it says)"), "{}", agent.said());
    // It is there for the next one, and ends in order.
    site.check("--quick", &["lab1"]).wait().ok();
    agent.must_run();
    agent.signal("TERM");
    agent.wait().ok();
    let ran = site.check("--quick", &["lab1"]).wait().with(2);
    assert!(ran.stdout.contains("no agent lab1 is connected to tls://10.255.0.1:4222"), "{}", ran.stdout);
}

#[test]
fn eight_agents_send_at_once_through_one_server() {
    let ids: Vec<String> = (1..=8).map(|n| format!("lab{n}")).collect();
    let site = Site::with(|conf| {
        let from = conf.find("    { user: \"lab2\"").expect("a user");
        let to = conf.find("    # Who may reach").expect("an operator");
        let more: String = (2..=8)
            .map(|n| {
                conf[from..to]
                    .replace("$LAB2_PASSWORD", &format!("lab{n}-secret"))
                    .replace("lab2", &format!("lab{n}"))
            })
            .collect();
        format!("{}{more}{}", &conf[..from], &conf[to..])
    });
    for id in &ids {
        std::fs::write(site.file(id), format!("{id}-secret\n")).expect("written");
    }
    let nets: Vec<Net> = ids.iter().map(|_| Net::new()).collect();
    let agents: Vec<Running> = (1..)
        .zip(nets.iter().zip(&ids))
        .map(|(n, (net, id))| {
            site.join(&net.lab.sender.namespace, n);
            site.agent(&net.lab.sender.namespace, id, "")
        })
        .collect();
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    let ran = site.check("--quick", &names).wait().ok();
    assert!(ran.stdout.ends_with("8 agents, all ready\n"), "{}", ran.stdout);
    std::thread::scope(|scope| {
        for id in &ids {
            let site = &site;
            scope.spawn(move || {
                let mut client = site.client(id);
                let run = client.start(&job(send(2_000), None)).expect("it sends").run;
                let report = client.wait(&run, &NEVER, &mut |_| {}).expect("a report");
                assert_eq!(frames_sent(&report), 2_000, "{id}");
            });
        }
    });
    for agent in agents {
        agent.signal("TERM");
        agent.wait().ok();
    }
}

#[test]
fn a_server_that_is_killed_in_a_run_and_started_again_loses_nothing() {
    let (mut site, net) = (Site::new(), Net::new());
    site.join(&net.lab.sender.namespace, 1);
    let agent = site.agent(&net.lab.sender.namespace, "lab1", "--lease 5m");
    let mut client = site.client("lab1");
    // In the middle of a run; and so that it ends while no server is there.
    for (frames, away) in [(60_000, 1), (30_000, 6)] {
        let run = client.start(&job(send(frames), None)).expect("it sends").run;
        let mut killed = None;
        let report = client.wait(&run, &NEVER, &mut |told| {
            if matches!(told, Told::Snapshot(_)) && killed.is_none() {
                site.kill_server();
                killed = Some(Instant::now());
                std::thread::sleep(Duration::from_secs(away));
                site.start_server();
            }
        });
        assert_eq!((frames_sent(&report.expect("a report")), killed.is_some()), (frames, true));
    }
    assert_eq!(agent.said().matches(" begins: ").count(), 1, "{}", agent.said());
    assert_eq!(agent.said().matches("is lost; lab1 tries again").count(), 2, "{}", agent.said());
}

#[test]
fn an_agent_that_is_killed_frozen_or_cut_off_is_lost_in_time_and_ends_its_run() {
    let (site, net) = (Site::new(), Net::new());
    let host = &net.lab.sender.namespace;
    site.join(host, 1);
    for how in ["KILL", "STOP", "cut"] {
        let mark = net.file(how);
        std::fs::create_dir(&mark).expect("a folder");
        let mut agent = site.agent(host, "lab1", &format!("--folder {mark}"));
        let mut client = site.client("lab1");
        let run = client.start(&job(long(), None)).expect("it sends").run;
        assert!(serves(&mark).is_some());
        let mut began = None;
        let lost = client.wait(&run, &NEVER, &mut |told| {
            if matches!(told, Told::Snapshot(_)) && began.is_none() {
                began = Some(Instant::now());
                match how {
                    "cut" => drop(start(inside(host, "ip link set ctl down")).wait().ok()),
                    signal => agent.signal(signal),
                }
            }
        });
        let lost = lost.expect_err("it is lost");
        assert_eq!(lost.kind(), LostKind::Ended, "{how}: {lost}");
        assert!(lost.to_string().contains("the agent lab1 was not heard for 10 s"), "{how}: {lost}");
        assert!(began.expect("it went on").elapsed() < LEASE, "{how}");
        drop(client);
        match how {
            "KILL" => {}
            "STOP" => agent.signal("CONT"),
            // It is alone, and its run ends all the same.
            _ => eventually("the run is over", || serves(&mark).is_none()),
        }
        eventually("nothing is left", || serves(&mark).is_none());
        if how == "cut" {
            eventually("it says why", || agent.said().contains("is over: its client was not heard for 10 s"));
            start(inside(host, "ip link set ctl up")).wait().ok();
            start(inside(host, &format!("ip route add {ADDRESS} via 10.9.1.1"))).wait().ok();
        }
        if how != "KILL" {
            eventually("it is reached again", || site.check("--quick", &["lab1"]).wait().status == 0);
            agent.must_run();
        }
    }
}

#[test]
fn a_client_that_is_killed_leaves_no_run_and_its_interface_is_free_again() {
    let (site, net) = (Site::new(), Net::new());
    let mark = net.file("mark");
    std::fs::create_dir(&mark).expect("a folder");
    site.join(&net.lab.sender.namespace, 1);
    let agent = site.agent(&net.lab.sender.namespace, "lab1", &format!("--folder {mark}"));
    let mut first = site.client("lab1");
    let run = first.start(&job(long(), None)).expect("it sends").run;
    net.until_frames_leave();
    // Two at one interface: the second is told who has it.
    let mut second = site.client("lab1");
    let Err(Lost::Refused(fault)) = second.start(&job(send(5), None)) else { panic!("it is held") };
    assert!(fault.message.contains("tx0 is held by "), "{fault}");
    assert_eq!(fault.data.setting.as_deref(), Some("links[0].on"));
    assert_eq!(agent.said().matches(" begins: ").count(), 2);
    // The first one's program is killed, and says nothing any more.
    drop(second);
    let way = site.process_that_reaches();
    super::common::run(format!("kill -KILL {way}")).ok();
    let lost = first.wait(&run, &NEVER, &mut |_| {}).expect_err("it is lost");
    assert_eq!(lost.kind(), LostKind::Ended, "{lost}");
    drop(first);
    eventually("the agent ends the run", || serves(&mark).is_none());
    eventually("it says why", || agent.said().contains("is over: its client was not heard for 10 s"));
    let mut third = site.client("lab1");
    let run = third.start(&job(send(100), None)).expect("it is free").run;
    assert_eq!(frames_sent(&third.wait(&run, &NEVER, &mut |_| {}).expect("a report")), 100);
}

#[test]
fn what_is_refused_or_not_there_is_said_at_once() {
    let (mut site, net) = (Site::new(), Net::new());
    let host = &net.lab.sender.namespace;
    site.join(host, 1);
    let [ca, other, operator, wrong] =
        ["ca.pem", "other.pem", "operator", "wrong"].map(|name| site.file(name));
    let at = format!("--nats tls://{ADDRESS}:4222");
    // One that begins before its server is there waits for it.
    let server = site.server.take().expect("a server");
    server.signal("KILL");
    server.wait();
    let mut early = start(inside(host, &format!("netdyno agent {} --id lab1", site.user("lab1"))));
    early.until_it_says("it is tried again each 2 s");
    site.reach(&format!("lab1 {}", site.user("operator"))).refused(&[
        "tls://10.255.0.1:4222 is not reached: Connection refused",
        "see that a NATS server runs there",
    ]);
    site.start_server();
    early.until_it_says("lab1 is connected to");
    for (words, says) in [
        (
            site.user("operator"),
            "no agent lab2 is connected to tls://10.255.0.1:4222: see that `netdyno agent --nats ... --id lab2` runs there with --prefix nd",
        ),
        (
            format!("{at} --ca {ca}"),
            "tls://10.255.0.1:4222 refuses this login: it wants a login: give --creds, --nkey, or --user",
        ),
        (
            format!("{at} --ca {ca} --user operator --password-file {wrong}"),
            "refuses this login: see that the server knows this user",
        ),
        (
            format!("{at} --ca {other} --user operator --password-file {operator}"),
            "is not trusted, or does not trust this end: ",
        ),
        (
            format!("{at} --user operator --password-file {operator}"),
            "--ca FILE names whose certificates are believed",
        ),
        (site.user("lab1"), "does not permit this user what it takes: "),
        (format!("{at} --ca {ca} --user operator --password-file {wrong}x"), "--password-file: "),
        (format!("{at} --nkey {ca}"), "has no seed of a user's key, which begins with SU"),
        (format!("{at} --creds {ca}"), "has no JWT with a seed behind it"),
        (
            format!("--nats nats://{ADDRESS}"),
            "anybody could read and change jobs and results: write tls://10.255.0.1:4222, or allow it by --yes-plaintext",
        ),
        ("--nats ws://a".to_owned(), "--nats: `ws://a` is neither tls:// nor nats://"),
        ("--nats tls://a:b@c".to_owned(), "a login does not belong into the address"),
        (format!("{at} --prefix a..b"), "--prefix: `a..b` is no prefix"),
        ("--nats tls://no-such-host.invalid".to_owned(), "tls://no-such-host.invalid:4222 is not reached: "),
    ] {
        site.reach(&format!("lab2 {words}")).refused(&[says]);
    }
    site.reach("a.b --nats tls://a").refused(&["`a.b` is no id of an agent"]);
    // An agent with what is another's.
    start(inside(host, &format!("netdyno agent {} --id lab2", site.user("lab1")))).wait().refused(&[
        "does not permit this user what an agent does: ",
        "let it publish nd.up.lab2.> and subscribe to nd.agent.lab2.>",
    ]);
    start(inside(
        host,
        &format!("netdyno agent {at} --ca {ca} --user lab1 --password-file {wrong} --id lab1"),
    ))
    .wait()
    .refused(&["refuses this login: see that the server knows this user"]);
    // Two of one name are no agent.
    let _twin = site.agent(host, "lab1", "");
    site.reach(&format!("lab1 {}", site.user("operator")))
        .with(2)
        .says(&["two agents answer as lab1: give each an id of its own"]);
}

#[test]
fn lines_beyond_what_the_server_takes_in_one_message_arrive() {
    let (site, net) = (Site::with(|conf| conf.replace("max_payload: 1MB", "max_payload: 2KB")), Net::new());
    site.join(&net.lab.sender.namespace, 1);
    let _agent = site.agent(&net.lab.sender.namespace, "lab1", "");
    // A report, the findings of a host, and a line of as many bytes as it may have.
    let mut client = site.client("lab1");
    let run = client.start(&job(send(5_000), None)).expect("it sends").run;
    let report = client.wait(&run, &NEVER, &mut |_| {}).expect("a report");
    assert!(report.to_string().len() > 4096, "{report}");
    assert_eq!(frames_sent(&report), 5_000);
    site.check("", &["lab1"]).wait().ok();
    let bytes = 700 << 10;
    let [lines, script] = ["lines", "script.sh"].map(|name| site.file(name));
    let chunk = "A".repeat(bytes / 3 * 4);
    let bytes = bytes / 3 * 3;
    let text = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{{\"client\":{{\"name\":\"t\",\"version\":\"1\"}},\"protocol\":[\"netdyno.agent/1\"]}}}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"content.begin\",\"params\":{{\"name\":\"x\",\"bytes\":{bytes},\"sha256\":\"{}\"}}}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"content.chunk\",\"params\":{{\"content\":\"c1\",\"offset\":0,\"base64\":\"{chunk}\"}}}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"content.end\",\"params\":{{\"content\":\"c1\"}}}}\n",
        "0".repeat(64)
    );
    std::fs::write(&lines, text).expect("written");
    std::fs::write(&script, format!("{} <{lines}\n", site.way("lab1"))).expect("written");
    let ran = run_script(&script);
    assert!(ran.stdout.contains(&format!("\"id\":3,\"result\":{{\"offset\":{bytes}}}")), "{}", ran.stdout);
    // All of it is there, and is what it is: its hash is another one.
    assert!(ran.stdout.contains("\"id\":4,\"error\":"), "{}", ran.stdout);
}

fn run_script(script: &str) -> Ran {
    run(format!("sh {script}")).ok()
}

#[test]
fn an_agent_logs_in_with_a_key() {
    // As RFC 8032 has them: 32 bytes at the end of what openssl writes; NATS writes them in base 32, with a prefix and a checksum.
    let code = "import base64, subprocess, sys\n\
        def openssl(*words, given=None): return subprocess.run(['openssl', *words], input=given, capture_output=True, check=True).stdout\n\
        key = openssl('genpkey', '-algorithm', 'ed25519', '-outform', 'DER')\n\
        public = openssl('pkey', '-inform', 'DER', '-pubout', '-outform', 'DER', given=key)[-32:]\n\
        def text(raw):\n\
        \x20   crc = 0\n\
        \x20   for byte in raw:\n\
        \x20       crc ^= byte << 8\n\
        \x20       for _ in range(8): crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xffff\n\
        \x20   return base64.b32encode(raw + crc.to_bytes(2, 'little')).decode().rstrip('=')\n\
        seed, user = 18 << 3, 20 << 3\n\
        print(text(bytes([seed | user >> 5, (user & 31) << 3]) + key[-32:]), text(bytes([user]) + public))\n";
    let dir = folder();
    let script = path(&dir, "key.py");
    std::fs::write(&script, code).expect("written");
    let made = run(format!("/usr/bin/python3 {script}")).ok().stdout;
    let (seed, user) = made.trim().split_once(' ').expect("two");
    let site =
        Site::with(|conf| conf.replace("user: \"lab1\", password: $LAB1_PASSWORD", &format!("nkey: {user}")));
    let net = Net::new();
    site.join(&net.lab.sender.namespace, 1);
    let file = site.file("seed");
    std::fs::write(&file, format!("{seed}\n")).expect("written");
    let line = format!(
        "netdyno agent --nats tls://{ADDRESS}:4222 --ca {} --nkey {file} --id lab1",
        site.file("ca.pem")
    );
    let mut agent = start(inside(&net.lab.sender.namespace, &line));
    agent.until_it_says("lab1 is connected to");
    site.check("--quick", &["lab1"]).wait().ok();
}

/// The command lines of the examples, of an agent and of the server.
fn example_commands() -> Vec<(&'static str, Vec<String>)> {
    let service = example("netdyno-agent.service");
    let line =
        service.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/netdyno ")).expect("a command");
    let words = |value: &Value| -> Vec<String> {
        value.as_array().expect("words").iter().map(|word| word.as_str().expect("text").to_owned()).collect()
    };
    let read = |name: &str| {
        let code = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
        let file = format!("{}/../../examples/nats/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", code, &file]);
        start(python).wait().ok().json()
    };
    let (compose, deployment) = (read("compose.yaml"), read("deployment.yaml"));
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    vec![
        ("systemd", line.split_whitespace().map(str::to_owned).collect()),
        ("compose", words(&compose["services"]["agent"]["command"])),
        ("kubernetes", words(&container["args"])),
    ]
}

#[test]
fn the_command_lines_of_the_examples_reach_a_real_server() {
    let (site, net) = (Site::new(), Net::new());
    let host = &net.lab.sender.namespace;
    site.join(host, 1);
    let (ca, password) = (site.file("ca.pem"), site.file("lab1"));
    for (what, words) in example_commands() {
        // What stands for this site in the place of theirs.
        let word = |word: &String| match &**word {
            "tls://nats.example.net:4222" => format!("tls://{ADDRESS}:4222"),
            "%l" => "lab1".to_owned(),
            "${CREDENTIALS_DIRECTORY}/password" | "/run/secrets/password" | "/etc/nats/password" => {
                password.clone()
            }
            "/etc/netdyno/ca.pem" | "/etc/nats/ca.pem" => ca.clone(),
            "eth1" | "net1" => "tx0".to_owned(),
            other => other.to_owned(),
        };
        let words: Vec<String> = words.iter().map(word).collect();
        let mut agent = start(inside(host, &format!("netdyno {}", words.join(" "))));
        agent.until_it_says("lab1 is connected to");
        let ran = site.check("--quick", &["lab1"]).wait().ok();
        assert!(ran.stdout.contains("  tx0: veth"), "{what}: {}", ran.stdout);
        agent.signal("TERM");
        agent.wait().ok();
    }
}

#[test]
fn a_client_that_is_stopped_ends_its_session_in_order() {
    let (site, net) = (Site::new(), Net::new());
    site.join(&net.lab.sender.namespace, 1);
    let agent = site.agent(&net.lab.sender.namespace, "lab1", "");
    let mut client = site.client("lab1");
    let run = client.start(&job(long(), None)).expect("it sends").run;
    net.until_frames_leave();
    let stop = AtomicBool::new(false);
    let report = client.wait(&run, &stop, &mut |told| {
        if matches!(told, Told::Snapshot(_)) {
            stop.store(true, Relaxed);
        }
    });
    let codes = report.expect("a report")["result"]["verdict"]["codes"].clone();
    assert!(codes.as_array().expect("codes").contains(&json!("stopped")), "{codes}");
    let way = site.process_that_reaches();
    super::common::run(format!("kill -TERM {way}")).ok();
    eventually("the session is over", || agent.said().contains("is over: its client"));
    // It has as many as it is to have, and no more.
    let mut clients: Vec<Client> = (0..8).map(|_| site.client("lab1")).collect();
    site.reach(&format!("lab1 {}", site.user("operator")))
        .refused(&["the agent lab1 refuses: 8 sessions go on, which is the most"]);
    // The agent is stopped while somebody is there, who is told.
    let mut client = clients.pop().expect("one");
    let run = client.start(&job(long(), None)).expect("it sends").run;
    agent.signal("TERM");
    let lost = client.wait(&run, &NEVER, &mut |_| {}).expect_err("it is lost");
    assert!(lost.to_string().contains("the agent lab1 has ended the session: it was stopped"), "{lost}");
    agent.wait().ok();
}
