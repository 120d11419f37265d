//! `netdyno agents check`: agents behind commands, those that misbehave among them.

use crate::common::{Ran, alone, command, eventually, folder, number, path, run, start};
use crate::judged::judged;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// The program, as a shell is to call it.
pub fn program() -> String {
    command("netdyno").get_program().to_str().expect("text").to_owned()
}

/// An agent of this host.
fn agent(words: &str) -> String {
    format!("{} agent --stdio {words}", program())
}

fn check(words: &str, agents: &[(&str, String)]) -> Command {
    let mut check = command(format!("netdyno agents check {words}"));
    for (name, reach) in agents {
        check.args(["--agent", &format!("{name}={reach}")]);
    }
    check
}

/// The result, held to the published schema by python3-jsonschema.
#[track_caller]
fn told(ran: &Ran) -> Value {
    let dir = folder();
    let [code, file] = ["judge.py", "told.json"].map(|name| path(&dir, name));
    let script = "import json, sys\nfrom jsonschema import Draft202012Validator as V\nschema = json.load(open(sys.argv[1]))\n\
                  V.check_schema(schema)\nV(schema).validate(json.load(open(sys.argv[2])))\nassert not V(schema).is_valid({})\n";
    std::fs::write(&code, script).expect("written");
    std::fs::write(&file, &ran.stdout).expect("written");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.schema.json");
    run(format!("/usr/bin/python3 {code} {schema} {file}")).ok();
    ran.json()
}

fn of<'a>(told: &'a Value, name: &str) -> &'a Value {
    let agents = told["agents"].as_array().expect("agents");
    agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("no {name} in {told}"))
}

/// Does a program run that has this among its words?
fn runs(words: &str) -> bool {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // A shell that starts it is none yet, nor are those who look.
        (line.contains(words) && !line.contains("agents check")).then_some(())
    };
    std::fs::read_dir("/proc").expect("/proc").any(|entry| of(entry).is_some())
}

#[test]
fn each_agent_that_is_not_ready_has_one_error_and_the_others_have_their_results() {
    // What each answers instead, made of what a real one does.
    let through = |edit: &str| format!("{} | sed -u '{edit}'", agent(""));
    let nested = |levels: usize| {
        let repeat = |word: &str| format!("yes '{word}' | head -n {levels} | tr -d '\\n'");
        let [open, close] = [r#"{"a":"#, "}"].map(repeat);
        format!(
            r#"printf '{{"jsonrpc":"2.0","id":1,"result":'; {open}; printf 0; {close}; echo '}}'; cat >/dev/null"#
        )
    };
    let agents = [
        ("good", agent("")),
        ("gone", "echo no such host >&2; exit 255".to_owned()),
        ("nowhere", "/no/such/program".to_owned()),
        ("mute", "exec >&-; sleep 8431".to_owned()),
        ("greets", format!("echo Welcome to lab1; {}", agent(""))),
        ("garbage", "head -c 3000000 /dev/urandom".to_owned()),
        ("endless", "head -c 9000000 /dev/zero; cat".to_owned()),
        ("deep", r#"printf "%0100000d" 0 | tr 0 "["; echo; cat >/dev/null"#.to_owned()),
        // As deep as is read, and deeper.
        ("nested", nested(125)),
        ("abyss", nested(20_000)),
        ("older", through(r#"s/"version":"[0-9.]*"/"version":"0.0.9"/"#)),
        ("other", format!("sed -u s,netdyno.agent/1,netdyno.agent/9, | {}", agent(""))),
        ("wrong", through(r#"s/"clock":{/"clock":[],"was":{/"#)),
        ("unasked", through(r#"s/"id":1/"id":77/"#)),
        ("backwards", through(r#"s/"t2":[0-9]*/"t2":5/"#)),
        ("early", through(r#"s/"t3":[0-9]*/"t3":5/"#)),
        ("dies", format!("{} | head -n 1", agent(""))),
        ("lo", agent("--allow-interface lo")),
    ];
    let ran = start(check("--json --timeout 120s", &agents)).wait().with(1);
    assert_eq!(ran.stderr, "", "a result says all");
    let told = told(&ran);
    assert_eq!(told["agents"].as_array().map(Vec::len), Some(agents.len()));
    for (name, kind, says) in [
        ("gone", "ended", "its command ended (exit status: 255), and said: no such host"),
        ("nowhere", "ended", "its command ended (exit status: 127), and said: "),
        ("mute", "ended", "its command closed its output"),
        ("greets", "nonsense", "it answers what is no line of netdyno.agent/1: `Welcome to lab1`"),
        ("garbage", "nonsense", "no line of netdyno.agent/1"),
        ("endless", "nonsense", "a line of more than 1048576 bytes"),
        ("deep", "nonsense", "no line of netdyno.agent/1"),
        ("nested", "version", "it is netdyno without a version"),
        ("abyss", "nonsense", "no line of netdyno.agent/1"),
        ("older", "version", "it is netdyno 0.0.9, and this is netdyno "),
        ("other", "version", "this netdyno speaks netdyno.agent/1 alone"),
        ("wrong", "nonsense", "the answer to `host`"),
        ("unasked", "nonsense", "no line of netdyno.agent/1"),
        ("backwards", "clock", "its time stamps contradict each other"),
        ("early", "clock", "its time stamps contradict each other"),
        ("dies", "ended", "its command "),
    ] {
        let found = of(&told, name);
        assert_eq!(
            (&found["ready"], &found["error"]["kind"]),
            (&Value::from(false), &Value::from(kind)),
            "{found}"
        );
        let message = found["error"]["message"].as_str().expect("text");
        assert!(message.contains(says), "{name}: {message}");
        assert!(message.len() < 700 && !message.contains('\n'), "{name}: {message}");
        assert!(found["error"]["remedy"].is_string(), "{name}: {found}");
    }
    for name in ["good", "lo"] {
        let found = of(&told, name);
        assert_eq!(found["ready"], true, "{found}");
        assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
        assert!(!found["findings"].as_array().expect("findings").is_empty(), "{found}");
        let here =
            std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        assert_eq!(found["clock"]["source"], here.expect("a clock").trim());
        assert_is_ahead_by(found, 0);
    }
    // What was found out before the rest went wrong is told.
    assert_eq!(of(&told, "backwards")["host"]["name"], of(&told, "good")["host"]["name"]);
    assert_eq!(of(&told, "lo")["interfaces"][0]["name"], "lo");
    assert_eq!(of(&told, "good")["interfaces"], Value::Null, "it grants none");
    assert!(!runs("sleep 8431"), "a command is left");
}

/// The stated error covers the truth.
#[track_caller]
fn assert_is_ahead_by(found: &Value, truth: i64) {
    let ahead = found["offset"]["offset_ns"].as_i64().unwrap_or_else(|| panic!("no offset: {found}"));
    let error = number(&found["offset"]["error_ns"]);
    assert!(ahead.abs_diff(truth) <= error, "{ahead} is not within {error} of {truth}");
    // Half of the least round trip, and rounding.
    assert!(error <= number(&found["offset"]["round_trip_ns"]) / 2 + 2, "{found}");
}

#[test]
fn a_hundred_agents_are_checked_side_by_side_and_each_clock_is_found_within_its_error() {
    // One host has one clock: another is made of its time stamps on their way.
    let ahead = |n: i64| (n - 50) * 37_000_123_457;
    let names: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    let agents: Vec<(&str, String)> = (0..)
        .zip(&names)
        .map(|(n, name)| {
            let moved = format!(r#"s/"(t[23])":([0-9]+)/"\"$1\":".($2+({}))/ge"#, ahead(n));
            (&**name, format!("{} | perl -pe 'BEGIN {{ $| = 1 }} {moved}'", agent("")))
        })
        .collect();
    let ran = start(check("--json --timeout 600s", &agents)).wait().ok();
    let found = told(&ran);
    for (n, name) in (0..).zip(&names) {
        assert_is_ahead_by(of(&found, name), ahead(n));
    }
}

#[test]
fn a_hundred_agents_are_checked_within_five_seconds() {
    alone();
    let names: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    let agents: Vec<(&str, String)> = names.iter().map(|name| (&**name, agent(""))).collect();
    let busy = busy_share(Duration::from_millis(500));
    let began = Instant::now();
    let ran = start(check("--quick --timeout 600s", &agents)).wait().ok();
    let took = began.elapsed();
    assert!(ran.stdout.ends_with("100 agents, all ready\n"), "{}", ran.stdout);
    // Other work takes its part of the time, and may have begun meanwhile.
    let busy = busy.max(busy_share(Duration::from_millis(500)));
    if judged(busy < 0.1) {
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

/// The part of this machine's CPU time that others take, within a while.
fn busy_share(within: Duration) -> f64 {
    let look = || {
        let stat = std::fs::read_to_string("/proc/stat").expect("/proc");
        let ticks: Vec<u64> = stat
            .lines()
            .next()
            .expect("a line")
            .split_whitespace()
            .skip(1)
            .map_while(|n| n.parse().ok())
            .collect();
        // proc(5): user, nice, system, idle, iowait, ...; guests' time is part of user's.
        (ticks[..8].iter().sum::<u64>(), ticks[3] + ticks[4])
    };
    let before = look();
    std::thread::sleep(within);
    let now = look();
    let (all, idle) = (now.0 - before.0, now.1 - before.1);
    1.0 - idle as f64 / all.max(1) as f64
}

#[test]
fn agents_that_never_answer_are_given_up_in_time_and_leave_nothing() {
    let agents = [
        ("silent", "sleep 8432".to_owned()),
        ("frozen", format!("kill -STOP $$; exec {}", agent(""))),
        (
            "floods",
            r#"while :; do echo '{"jsonrpc":"2.0","method":"x","params":{}}'; done; : 8433"#.to_owned(),
        ),
        ("stubborn", "trap '' TERM HUP PIPE; while :; do sleep 8434; done".to_owned()),
        ("asks", "echo 'Password: ' >&2; cat >/dev/null; sleep 8435".to_owned()),
        // Bytes that make no line: now and then one, and as many as are taken.
        ("drips", "while :; do printf x; sleep 0.02; done; : 8436".to_owned()),
        ("zeros", "cat /dev/zero; : 8437".to_owned()),
    ];
    // From then on it has its place among the tests, and no time passes that it waits for one.
    run("true").ok();
    let began = Instant::now();
    let ran = start(check("--timeout 8s", &agents)).wait().with(2);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(ran.stdout.matches("no answer to `hello` within 8.00 s").count(), 6, "{}", ran.stdout);
    assert!(ran.stdout.contains("zeros: not ready\n  it answers what is no line of netdyno.agent/1: a line of more than 1048576 bytes\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("and said: Password:"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("7 agents: 0 ready, 7 not\n"), "{}", ran.stdout);
    for words in ["sleep 8432", "8433", "sleep 8434", "sleep 8435", "8436", "8437"] {
        eventually(words, || !runs(words));
    }
}

#[test]
fn who_stops_or_is_killed_leaves_no_agent() {
    for (signal, status) in [("INT", 2), ("KILL", 137)] {
        let dir = folder();
        let mark = path(&dir, "");
        // It greets, and what else it answers does not come.
        let agents =
            [("real", format!("{} | {{ head -n 1; cat >/dev/null; }}", agent(&format!("--folder {mark}"))))];
        let running = start(check("--timeout 600s", &agents));
        eventually("the agent runs", || runs(&format!("agent --stdio --folder {mark}")));
        running.signal(signal);
        let ran = running.wait().with(status);
        if signal == "INT" {
            assert!(ran.stdout.contains("real: not ready\n  it was not waited for\n"), "{}", ran.stdout);
        }
        eventually("nothing is left", || !runs(&mark));
    }
}

#[test]
fn a_file_lists_agents_and_options_go_before_it() {
    let dir = folder();
    let file = path(&dir, "lab.yaml");
    let text = format!(
        "schema: netdyno.inventory/1\nagents:\n  one:\n    command: {}\n    interfaces: [lo]\n    tags: [near, both]\n  \
         two:\n    command: exit 7\n    tags: [far, both]\n",
        agent("--allow-interface lo")
    );
    std::fs::write(&file, &text).expect("written");
    // A machine that is busy answers late.
    let here = format!("--timeout 600s --inventory {file}");
    let ran = start(check(&format!("{here} --tag near -v"), &[])).wait().ok();
    for words in
        ["one: ready\n", "  lo: ", "  clock: ", "  its clock is ", "give or take", "1 agent, all ready\n"]
    {
        assert!(ran.stdout.contains(words), "no `{words}` in {}", ran.stdout);
    }
    let ran = start(check(&here, &[])).wait().with(1);
    assert!(ran.stdout.contains("two: not ready\n  its command ended (exit status: 7)\n"), "{}", ran.stdout);
    start(check(&format!("{here} two"), &[])).wait().with(2);
    start(check(&format!("{here} --tag both"), &[("two", agent(""))])).wait().ok();
    // Without the findings, and of an interface that is not there.
    let ran = start(check(&format!("{here} one --quick --json"), &[])).wait().ok();
    let found = told(&ran);
    assert_eq!(of(&found, "one")["interfaces"][0]["name"], "lo");
    assert_eq!(
        (&of(&found, "one")["findings"], &of(&found, "one")["interfaces"][0]["findings"]),
        (&Value::Null, &Value::Null)
    );
    std::fs::write(
        &file,
        text.replace("interfaces: [lo]", "interfaces: [lo, none7]").replace("interface lo", "interface '*'"),
    )
    .expect("written");
    for words in ["", "--quick"] {
        let ran = start(check(&format!("{here} one {words}"), &[])).wait().with(2);
        assert!(ran.stdout.contains("none7"), "{}", ran.stdout);
    }
    std::fs::write(&file, &text).expect("written");
    // Its interface is not granted: the setting's remedy.
    let ran = start(check(&here, &[("one", agent(""))])).wait().with(2);
    let words =
        "  interfaces: lo is not granted to this agent\n  start the agent with --allow-interface lo\n";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    // What it grants and does not have is no grant of nothing.
    let ran =
        start(check("--quick --timeout 600s", &[("a", agent("--allow-interface 'none7*'"))])).wait().ok();
    assert!(ran.stdout.contains("  it grants none7*, and lists no such interface\n"), "{}", ran.stdout);
    // The published schema takes it.
    let script = "import json, sys, yaml\nfrom jsonschema import Draft202012Validator as V\nschema = json.load(open(sys.argv[1]))\n\
                  V.check_schema(schema)\nV(schema).validate(yaml.safe_load(open(sys.argv[2])))\nassert not V(schema).is_valid({})\n";
    let code = path(&dir, "judge.py");
    std::fs::write(&code, script).expect("written");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/inventory.schema.json");
    run(format!("/usr/bin/python3 {code} {schema} {file}")).ok();
    for (words, agents, says) in [
        (String::new(), vec![], "no agent is named: give --agent NAME='COMMAND'"),
        (format!("{here} three"), vec![], "there is no agent `three`; there are one, two"),
        (format!("{here} --tag nowhere"), vec![], "--tag: no agent of the inventory has the tag nowhere"),
        (String::new(), vec![("a", agent("")), ("a", agent(""))], "--agent: a is given twice"),
        ("--timeout 1ms".to_owned(), vec![("a", agent(""))], "--timeout: 100 ms are the least"),
        (format!("--inventory {}", path(&dir, "none")), vec![], "--inventory: reading"),
    ] {
        start(check(&words, &agents)).wait().refused(&[says]);
    }
    for (agent, says) in
        [("lab1", "has no command: write NAME='COMMAND'"), ("a@b=c", "`a@b` is no name of an agent")]
    {
        let mut check = command("netdyno agents check --agent");
        check.arg(agent);
        start(check).wait().with(2).says(&[says]);
    }
    std::fs::write(&file, text.replace("interfaces", "interface")).expect("written");
    start(check(&here, &[])).wait().refused(&["agents.one", "interface"]);
    std::fs::write(&file, "schema: [").expect("written");
    start(check(&here, &[])).wait().refused(&[&file]);
}

/// SHA-256 of a file, by another program.
fn hash(file: &str) -> String {
    let said = run(format!("sha256sum {file}")).ok().stdout;
    said.split_whitespace().next().expect("a hash").to_owned()
}

#[test]
fn where_netdyno_is_missing_this_one_is_copied_and_its_hash_is_compared() {
    alone();
    let dir = folder();
    let home = path(&dir, "home");
    std::fs::create_dir(&home).expect("a folder");
    let agent =
        |words: &str| format!("exec env -i HOME={home} PATH=/usr/bin:/bin {words} netdyno agent --stdio");
    let one = |words: &str, reach: String| {
        start(check(&format!("--quick --json {words}"), &[("lab1", reach)])).wait()
    };
    let lacking = told(&one("", agent("")).with(2));
    let said = of(&lacking, "lab1").to_string();
    assert!(said.contains("--agents-copy copies it"), "{said}");
    assert!(std::fs::read_dir(&home).expect("a folder").next().is_none(), "nobody asked for it");

    let ready = told(&one("--agents-copy", agent("")).ok());
    assert_eq!(of(&ready, "lab1")["ready"], true, "{ready}");
    let own = hash(&program());
    let copy = format!("{home}/.cache/netdyno/netdyno-{own}");
    let files = || -> Vec<String> {
        let entries = std::fs::read_dir(format!("{home}/.cache/netdyno")).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    };
    assert_eq!((hash(&copy), files()), (own.clone(), vec![format!("netdyno-{own}")]));
    // It is there: what is copied once is not copied again. (Nor is its time of change.)
    let changed = || std::fs::metadata(&copy).and_then(|of| of.modified()).expect("a time");
    let before = changed();
    // By an inventory, too.
    let file = path(&dir, "lab.yaml");
    let entry = format!(
        "schema: netdyno.inventory/1\nagents: {{lab1: {{command: \"{}\", copy: true}}}}\n",
        agent("")
    );
    std::fs::write(&file, entry).expect("written");
    run(format!("netdyno agents check --quick --inventory {file}")).ok();
    assert_eq!(changed(), before);
    // What has another hash is not believed.
    std::fs::write(&copy, "#!/bin/sh\necho no").expect("written");
    assert_eq!(told(&one("--agents-copy", agent("")).ok())["agents"][0]["ready"], true);
    assert_eq!((hash(&copy), files().len()), (own, 1));

    // Of another machine; what cannot be written; no shell; where to is not known.
    let fakes = path(&dir, "fakes");
    std::fs::create_dir(&fakes).expect("a folder");
    std::fs::write(format!("{fakes}/uname"), "#!/bin/sh\n[ $1 = -m ] && echo sparc64 || echo Linux\n")
        .expect("written");
    run(format!("chmod 755 {fakes}/uname")).ok();
    for (reach, why) in [
        (
            agent(&format!("PATH={fakes}:/usr/bin:/bin")),
            "its machine is sparc64 (Linux), and this netdyno is one for",
        ),
        (agent("HOME=/proc/none"), "ended (exit status"),
        (agent(&format!("HOME='{home} y'")), "has a name that shells read otherwise"),
        // What a command leaves behind holds nobody up.
        ("export HOME=/proc/none; sleep 100 & netdyno agent".to_owned(), "ended (exit status"),
        ("exec true netdyno agent --stdio".to_owned(), "no shell answers there"),
        (format!("sh -c '{} agent --stdio'", program()), "outside of quotes"),
        ("exec sleep 100 ; netdyno agent".to_owned(), "no end within 2 s"),
    ] {
        let ran = one("--agents-copy --timeout 100ms", reach.clone()).with(2);
        let error = of(&told(&ran), "lab1")["error"].to_string();
        assert!(error.contains(why), "{reach}: {error}");
    }
}
