//! Plugins as their users have them: built in, and as modules; in jobs, and told of.

use crate::common::*;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt as _;

/// A module of the world `frames`: UDP datagrams of 60 bytes, whose source ports count. `fault`: of the batches that end behind
/// this number, one frame is longer than it said.
fn module(version: &str, fault: Option<u64>) -> Vec<u8> {
    let literal = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    let description = json!({
        "name": "ports", "version": version, "about": "A datagram for each port.", "world": "frames",
        "options": { "type": "object", "additionalProperties": false, "properties": { "first": { "type": "integer", "minimum": 0, "default": 0 } } },
        "example": [{ "about": "All of them", "set": { "first": 0 } }],
    })
    .to_string();
    let opened = r#"{"frames": {"longest": 60, "count": 40000}}"#;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0xee, 0x97, 198, 18, 0, 1, 198, 18, 0, 2]);
    frame.extend([0, 0, 0, 9, 0, 26, 0, 0]);
    frame.resize(60, 0);
    let longer = fault.map_or_else(String::new, |from| {
        format!("(if (i64.gt_u (local.get $n) (i64.const {from})) (then (i32.store16 (i32.const 65538) (i32.const 61))))")
    });
    let wat = format!(
        r#"(module (memory (export "memory") 4)
  (data (i32.const 1024) "{}") (data (i32.const 8192) "{}") (data (i32.const 12288) "{}")
  (func (export "netdyno_abi") (result i32) (i32.const 1))
  (func (export "netdyno_alloc") (param i32) (result i32) (i32.const 131072))
  (func (export "netdyno_describe") (result i64) (i64.const {}))
  (func (export "netdyno_open") (param i32 i32) (result i64) (i64.const {}))
  (func (export "netdyno_frames") (param $n i64) (param $step i64) (param $count i32) (result i64)
    (local $i i32) (local $at i32)
    (local.set $at (i32.add (i32.const 65536) (i32.and (i32.add (i32.mul (local.get $count) (i32.const 2)) (i32.const 3)) (i32.const -4))))
    (loop $next
      (i32.store16 (i32.add (i32.const 65536) (i32.mul (local.get $i) (i32.const 2))) (i32.const 60))
      (memory.copy (local.get $at) (i32.const 12288) (i32.const 60))
      (i32.store8 offset=34 (local.get $at) (i32.wrap_i64 (i64.shr_u (local.get $n) (i64.const 8))))
      (i32.store8 offset=35 (local.get $at) (i32.wrap_i64 (local.get $n)))
      (local.set $at (i32.add (local.get $at) (i32.const 60)))
      (local.set $n (i64.add (local.get $n) (local.get $step)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $count))))
    {longer}
    (i64.or (i64.const 281474976710656) (i64.extend_i32_u (i32.sub (local.get $at) (i32.const 65536))))))"#,
        literal(description.as_bytes()),
        literal(opened.as_bytes()),
        literal(&frame),
        1024u64 << 32 | description.len() as u64,
        8192u64 << 32 | opened.len() as u64,
    );
    wat::parse_str(wat).expect("a module")
}

/// Its standard output has these words.
fn prints(ran: Ran, words: &[&str]) {
    for word in words {
        assert!(ran.stdout.contains(word), "no `{word}` in: {}{}", ran.stdout, ran.stderr);
    }
}

/// The source ports of frames, sorted.
fn ports(frames: &[Vec<u8>]) -> Vec<u16> {
    let port = |frame: &Vec<u8>| u16::from_be_bytes([frame[34], frame[35]]);
    let mut ports: Vec<u16> = frames.iter().map(port).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn plugins_are_listed_and_their_options_told_and_taken() {
    let dir = folder();
    let listed = run("netdyno plugin list --json").ok().json();
    let names: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(names.contains(&"simpleudp") && names.contains(&"imix"), "{names:?}");
    for name in names {
        // Each example is there to be pasted.
        let told = run(format!("netdyno plugin info {name} --json")).ok().json();
        for example in told["examples"].as_array().expect("a list") {
            let mut shell = std::process::Command::new("sh");
            let line = example["command"].as_str().expect("a command");
            let line =
                line.replacen("netdyno", env!("CARGO_BIN_EXE_netdyno"), 1).replace("--show", "-w /dev/null");
            shell.args(["-c", &line]);
            start(shell).wait().ok();
        }
        prints(
            run(format!("netdyno plugin test {name}")).ok(),
            &["world compile", "the same options make the same"],
        );
    }
    prints(run("netdyno plugin info simpleudp").ok(), &["dst_ip: ", "default 198.19.0.1", "--set"]);
    let (file, config) = (path(&dir, "a.pcap"), path(&dir, "a.yaml"));
    std::fs::write(&config, "dst_ip: 10.0.0.7\ndst_port: [5, 6]\nttl: 9\n").expect("a file");
    run(format!("netdyno craft --plugin simpleudp --plugin-config {config} --set ttl=3 --set src_ip=10.1.0.0/24 --count 20 -w {file}")).ok();
    // Whoever made the plugin may have used the seed where no value of the program shows it.
    let plain = run(format!(
        "netdyno craft --plugin simpleudp --set dst_ip=10.0.0.1 --count 3 -w {}",
        path(&dir, "b.pcap")
    ))
    .ok();
    assert!(plain.stderr.contains(", seed "), "{}", plain.stderr);
    assert_eq!(tshark_complaints(&file), "");
    for (field, wanted) in
        [("ip.dst", "10.0.0.7"), ("ip.ttl", "3"), ("udp.dstport", "5"), ("ip.src", "10.1.0.0")]
    {
        assert_eq!(tshark_field(&file, field).first().map(String::as_str), Some(wanted), "{field}");
    }
    let craft = "netdyno craft --count 1 --show";
    for (words, says) in [
        (
            "--plugin simpleudp --set dst_pi=10.0.0.1",
            &["no option `dst_pi`; did you mean `dst_ip`?", "`netdyno plugin info simpleudp`"][..],
        ),
        ("--plugin simpleudp --set payload_size=big", &["`/payload_size`: `big` is not an integer"]),
        (
            "--plugin simpleudp --set payload_size=100000",
            &["`/payload_size`: 100000 is greater than the maximum"],
        ),
        ("--plugin simpleudq", &["no plugin `simpleudq`; did you mean `simpleudp`?"]),
        (
            "--plugin simpleudp --plugin-config /no/such.yaml",
            &["--plugin-config /no/such.yaml", "No such file"],
        ),
    ] {
        run(format!("{craft} {words}")).refused(says);
    }
    for (words, says) in [
        ("--plugin simpleudp ipv4/udp", "cannot be used with"),
        ("ipv4/udp --set a=b", "cannot be used with"),
    ] {
        let ran = run(format!("{craft} {words}")).with(2);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
}

#[test]
fn a_plugin_takes_the_place_of_an_expression_in_each_job_and_the_result_says_which() {
    let net = Net::new();
    let first = net.file("first");
    let send = "netdyno send --plugin simpleudp --set dst_ip=198.18.0.2 --set flows=7 --on tx0 --measure rx0 --rate 2kpps --count 700";
    let before = net.run(format!("{send} --json --report {first}")).result();
    let source = &before["resolved"]["source"];
    assert_eq!(
        (&source["kind"], &source["name"], &source["place"]),
        (&json!("plugin"), &json!("simpleudp"), &json!("built in"))
    );
    assert_eq!(before["requested"]["plugin"]["version"], source["version"]);
    assert_eq!(before["requested"]["plugin"]["options"], json!({ "dst_ip": "198.18.0.2", "flows": 7 }));
    assert_eq!(number(&before["result"]["rx"]["frames"]), 700);
    assert_eq!(number(&before["result"]["flows"]["flows"]), 7);
    net.run(format!("netdyno rerun {first} --json")).result();
    let changed = before.to_string().replacen(
        &format!("\"version\":{}", source["version"]),
        "\"version\":\"0.0.9\"",
        usize::MAX,
    );
    std::fs::write(net.file("old.json"), changed).expect("a file");
    let old = net.file("old.json");
    net.run(format!("netdyno rerun {old}")).refused(&["the job was made with version 0.0.9", "--any-plugin"]);
    net.run(format!("netdyno rerun {old} --any-plugin --json")).result();
    let trial = run(
        "netdyno trial --lab --plugin simpleudp --set dst_ip=198.18.0.2 --rate 2kpps --duration 500ms --json",
    );
    // Whether a busy machine's sender kept the load is another question.
    let trial = trial.json();
    assert_eq!(trial["resolved"]["source"]["name"], json!("simpleudp"));
    // A sender that is held up sends fewer in the time that it has, and a trial that lasted longer intends more.
    assert_passed(&trial["result"]["trials"][0], 1000);
    run("netdyno send --plugin simpleudp --engine null --mesh --rate top").with(2);
}

#[test]
fn a_module_yields_each_frame_once_through_every_engine_that_can() {
    let net = Net::with(&::lab::Options { queues: 2, ..::lab::Options::default() });
    let file = net.file("ports.wasm");
    std::fs::write(&file, module("1", None)).expect("a file");
    let sha256 = run(format!("sha256sum {file}")).ok().stdout[..64].to_owned();
    for engine in ["packet --cores 2", "afxdp --cores 2", "auto"] {
        let send =
            format!("netdyno send --plugin {file} --on tx0 --topspeed --count 300 --engine {engine} --quiet");
        let frames = net.received(300, || {
            net.run(&send).ok();
        });
        assert_eq!(ports(&frames), (0..300).collect::<Vec<u16>>(), "{engine}");
    }
    let sent =
        net.run(format!("netdyno send --plugin {file} --on tx0 --measure rx0 --count 5000 --json")).result();
    assert_eq!(sent["resolved"]["source"]["sha256"], json!(sha256));
    assert_eq!(number(&sent["result"]["rx"]["frames"]), 5000);
    assert_eq!(number(&sent["result"]["loss"]["frames"]), 0, "{}", sent["result"]);
    let not_taken = sent["environment"]["engine"]["not_taken"].to_string();
    assert!(not_taken.contains("a plugin that yields them one by one"), "{not_taken}");
    net.run(format!("netdyno send --plugin {file} --on tx0 --rate top --count 9 --engine xdp"))
        .refused(&["cannot be made in the kernel"]);
    // What only a program can do is refused by the plugin's name.
    let null = format!("netdyno send --plugin {file} --engine null --count 9");
    for (words, says) in [
        ("--cores 2 --rate 100mbps", "give a --rate in frames, or one core"),
        ("--size 100", "--size does nothing to those"),
    ] {
        run(format!("{null} {words}")).refused(&["plugin `ports`: it yields frames one by one", says]);
    }
    for job in [
        format!("trial --lab --plugin {file} --rate 1kpps --duration 500ms"),
        format!("search throughput --lab --plugin {file} --size 64"),
    ] {
        run(format!("netdyno {job}")).refused(&["ports", "it yields frames one by one"]);
    }
    // These datagrams end with the frame: 18 bytes of a signature find their room, 60 bytes that are no datagram do not.
    let mut alien = module("1", None);
    let at = alien.windows(4).position(|bytes| bytes == [64, 17, 0xee, 0x97]).expect("the header");
    alien[at + 1] = 253;
    let unsigned = net.file("alien.wasm");
    std::fs::write(&unsigned, alien).expect("a file");
    let send = format!("netdyno send --plugin {unsigned} --on tx0 --measure rx0 --count 9");
    // Nothing had left: a result that says why, and 2.
    prints(net.run(format!("{send} --sign")).with(2), &["has no room for a signature of 18 bytes", "--sign"]);
    let without = net.run(format!("{send} --json")).json();
    assert!(
        without["warnings"].to_string().contains("9 frames had no room for a signature"),
        "{}",
        without["warnings"]
    );
    // A machine that is late for nine frames says so by its status; all of them are made.
    let even = run(format!("{null} --cores 2 --rate 1kpps --json")).json();
    assert_eq!(number(&even["result"]["tx"]["frames"]), 9);
    // All that there are, and no more.
    let all = run(format!("netdyno send --plugin {file} --engine null --cores 2 --json")).ok().json();
    assert_eq!(number(&all["result"]["tx"]["frames"]), 40_000);
    let written = net.file("all.pcap");
    run(format!("netdyno craft --plugin {file} -w {written}")).ok();
    assert_eq!(ports(&frames(&written)), (0..40_000).collect::<Vec<u16>>());
}

#[test]
fn a_module_is_checked_and_another_one_is_not_taken_for_it() {
    let dir = folder();
    let (file, report) = (path(&dir, "ports.wasm"), path(&dir, "report"));
    std::fs::write(&file, module("1", None)).expect("a file");
    prints(
        run(format!("netdyno plugin check {file}")).ok(),
        &["ports 1, world frames", "example 1, All of them"],
    );
    prints(
        run(format!("netdyno plugin test {file}")).ok(),
        &["1,000 frames of 60 bytes without FCS", "Ethernet/IPv4/UDP"],
    );
    run(format!("netdyno send --plugin {file} --engine null --count 10 --quiet --report {report}")).ok();
    std::fs::write(&file, module("1", Some(0))).expect("a file");
    run(format!("netdyno rerun {report}"))
        .refused(&["the job was made with the module with SHA-256", "--any-plugin"]);
    let fault = "frame 1 of its batch has 61 bytes, and it said that frames have 14 to 60";
    run(format!("netdyno plugin test {file}")).refused(&["in netdyno_frames", fault]);
    let ran = run(format!("netdyno send --plugin {file} --engine null --count 10 --json"));
    assert_eq!(ran.status, 2, "nothing had left: {} {}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(fault) || ran.stdout.contains(fault), "{} {}", ran.stdout, ran.stderr);
    // What was made before the fault has left, and the result says so.
    std::fs::write(&file, module("1", Some(128))).expect("a file");
    let ran = run(format!("netdyno send --plugin {file} --engine null --count 300 --json"));
    assert_eq!(ran.status, 1, "{} {}", ran.stdout, ran.stderr);
    let result = ran.json();
    assert_eq!(number(&result["result"]["tx"]["frames"]), 128);
    assert!(result["result"]["verdict"].to_string().contains(fault), "{}", result["result"]["verdict"]);
    // By name, out of the user's folder; what was compiled before is kept, and not believed if others could have written it.
    let home = path(&dir, "home");
    std::fs::create_dir_all(format!("{home}/netdyno/plugins")).expect("a folder");
    std::fs::write(format!("{home}/netdyno/plugins/ports.wasm"), module("2", None)).expect("a file");
    let by_name = |words: &str| {
        let mut list = command(format!("netdyno plugin {words}"));
        list.env("XDG_DATA_HOME", &home).env("XDG_CACHE_HOME", path(&dir, "cache"));
        start(list).wait()
    };
    let rows = by_name("list --json").ok().json();
    let row = rows.as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "ports").cloned());
    assert_eq!(row.map(|row| row["version"].clone()), Some(Value::from("2")));
    let kept = listing(path(&dir, "cache") + "/netdyno/plugins");
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    let kept = format!("{}/netdyno/plugins/{kept}", path(&dir, "cache"));
    by_name("test ports").ok();
    let mut code = std::fs::read(&kept).expect("what was kept");
    // Code that would be executed as it is: a file that is damaged, or that others may write, is not taken.
    code.iter_mut().skip(5_000).step_by(7).for_each(|byte| *byte ^= 0x55);
    std::fs::write(&kept, &code).expect("a file");
    by_name("test ports").ok();
    let meta = || std::fs::metadata(&kept).expect("what was kept");
    let sound = meta();
    by_name("test ports").ok();
    assert_eq!(meta().ino(), sound.ino(), "a sound one is taken");
    run(format!("chmod 666 {kept}")).ok();
    by_name("test ports").ok();
    assert_ne!(meta().ino(), sound.ino(), "another is made");
    assert_eq!(meta().mode() & 0o777, 0o600);
    std::fs::write(format!("{home}/netdyno/plugins/other.wasm"), module("2", None)).expect("a file");
    by_name("list").ok().says(&["it calls itself `ports`: rename the file ports.wasm"]);
    for (bytes, says) in
        [(&b"#!/bin/sh"[..], "no WebAssembly module"), (&b"\0asm\x01\0\0\0"[..], "no `memory`")]
    {
        std::fs::write(&file, bytes).expect("a file");
        run(format!("netdyno plugin check {file}")).refused(&[says]);
    }
}

#[test]
fn a_cache_is_never_another_users() {
    let dir = folder();
    let home = path(&dir, "home");
    std::fs::create_dir_all(format!("{home}/netdyno/plugins")).expect("a folder");
    std::fs::write(path(&dir, "ports.wasm"), module("1", None)).expect("a file");
    let caches = path(&dir, "caches");
    std::fs::create_dir(&caches).expect("a folder");
    // Reachable for others, as a home is.
    run(format!("chmod 755 {}", dir.path().display())).ok();
    run(format!("chown nobody {caches}")).ok();
    run(format!("cp {} {}", env!("CARGO_BIN_EXE_netdyno"), path(&dir, "plain"))).ok();
    run(format!("cp {} {}", env!("CARGO_BIN_EXE_netdyno"), path(&dir, "capable"))).ok();
    run(format!("setcap cap_net_raw=ep {}", path(&dir, "capable"))).ok();
    let kept = || std::path::Path::new(&caches).join("netdyno").exists();
    let info = |program: &str, as_nobody: bool| {
        let words = format!("{} plugin info {} --json", path(&dir, program), path(&dir, "ports.wasm"));
        let mut info = command(match as_nobody {
            true => format!("setpriv --reuid nobody --clear-groups {words}"),
            false => words,
        });
        info.env("XDG_CACHE_HOME", &caches).env("HOME", &caches);
        assert_eq!(start(info).wait().ok().json()["name"], "ports");
    };
    // Root in another's home, and a program that may more than its user: nothing is kept.
    info("plain", false);
    assert!(!kept(), "root keeps nothing in the home of nobody");
    info("capable", true);
    assert!(!kept(), "with a file's capabilities nothing is kept");
    info("plain", true);
    assert!(kept(), "its own user keeps it");
}

#[test]
fn stress_profiles_are_judged_wherever_frames_are_made() {
    let dir = folder();
    let file = path(&dir, "a.pcap");
    let plugin = "--plugin syn_flood --set dst_ip=10.0.0.1,8.8.8.8";
    let wide = "--plugin syn_flood --set dst_ip=10.0.0.1..11.0.0.1";
    for (plugin, says) in [
        (plugin, "private"),
        (wide, "private"),
        // The address that is written is private: only the frames say more.
        ("--plugin syn_flood --set dst_ip=10.0.0.0/7", "would go to 11."),
    ] {
        for job in [
            format!("craft {plugin} --count 4 -w {file}"),
            format!("send {plugin} --engine null --count 4"),
            format!("trial --lab {plugin} --rate 1kpps --duration 500ms --size 128"),
        ] {
            let ran = run(format!("netdyno {job}")).with(2);
            assert!(ran.stderr.contains(says), "{job}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_plugin_is_begun_where_nothing_stands_yet() {
    let dir = folder();
    for language in ["rust", "go", "c"] {
        let folder = path(&dir, &format!("mine_{language}"));
        run(format!("netdyno plugin new {folder} --{language}")).ok();
        assert!(!listing(&folder).is_empty());
        run(format!("netdyno plugin new {folder} --{language}"))
            .refused(&["is there already: nothing was written"]);
    }
    run(format!("netdyno plugin new {}", path(&dir, "x"))).with(2);
    run(format!("netdyno plugin new {}/.. --rust", path(&dir, "x")))
        .refused(&["the plugin is called as its folder"]);
}

/// Of netdyno there is one file, as where a release was installed; the crates that a plugin needs are those of crates.io, and
/// what is compiled of them may have been compiled before.
#[test]
fn a_new_plugin_of_each_language_builds_without_our_tree_by_the_line_that_is_printed() {
    let dir = folder();
    let alone = path(&dir, "netdyno");
    std::fs::copy(env!("CARGO_BIN_EXE_netdyno"), &alone).expect("a copy");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut built = command(format!("scripts/plugins new {}", path(&dir, "begun")));
    built.current_dir(root).env("NETDYNO", &alone);
    let tested = start(built).wait().ok();
    for language in ["rust", "go", "c"] {
        assert!(tested.stdout.contains(&format!("new_{language} 0.1.0, world compile")), "{}", tested.stdout);
    }
    let packets = "1,000 frames of 54 bytes without FCS: 1000 of Ethernet/IPv4/UDP";
    let same = tested.stdout.matches("the same options make the same, twice").count();
    assert_eq!(same, 3, "{}", tested.stdout);
    assert!(tested.stdout.contains(packets), "{}", tested.stdout);
}
