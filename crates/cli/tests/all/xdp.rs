//! XDP programs of others, compiled here: what is said of them is held to what they were written to do.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

/// Drops UDP to port 9, sends back what goes to port 10, fails at port 11, and passes all else.
const FILTER: &str = r#"
struct xdp_md { unsigned int data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex; };
#define SEC(name) __attribute__((section(name), used))
SEC("xdp") int filter(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + 38 > end || data[12] != 8 || data[13] != 0 || data[23] != 17)
		return 2;
	switch (data[36] << 8 | data[37]) {
	case 9: return 1;
	case 10: return 3;
	case 11: return 0;
	}
	return 2;
}
char _license[] SEC("license") = "GPL";
"#;

/// Two programs: one changes the first byte of each frame, the other one returns what is no verdict.
const TWO: &str = r#"
struct xdp_md { unsigned int data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex; };
#define SEC(name) __attribute__((section(name), used))
SEC("xdp") int change(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + 14 > end)
		return 1;
	data[0] ^= 2;
	return 2;
}
SEC("xdp.frags") int odd(struct xdp_md *ctx) { return 7; }
char _license[] SEC("license") = "GPL";
"#;

/// Reads behind the frame: no verifier takes it.
const WRONG: &str = r#"
struct xdp_md { unsigned int data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex; };
#define SEC(name) __attribute__((section(name), used))
SEC("xdp") int wrong(struct xdp_md *ctx) { return *(unsigned char *)(long)ctx->data; }
char _license[] SEC("license") = "GPL";
"#;

/// Counts in a map that it wants pinned, and passes every second frame.
const PINNED: &str = r#"
struct xdp_md { unsigned int data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex; };
#define SEC(name) __attribute__((section(name), used))
struct {
	int (*type)[2]; int (*max_entries)[1]; unsigned int *key; unsigned long *value; int (*pinning)[1];
} netdyno_test_pinned SEC(".maps");
static void *(*lookup)(void *, const void *) = (void *)1;
SEC("xdp") int every_second(struct xdp_md *ctx)
{
	unsigned int zero = 0;
	unsigned long *n = lookup(&netdyno_test_pinned, &zero);
	return n && __sync_fetch_and_add(n, 1) % 2 ? 2 : 1;
}
char _license[] SEC("license") = "GPL";
"#;

fn compiled(dir: &Folder, name: &str, text: &str, options: &str) -> String {
    let (source, object) = (path(dir, &format!("{name}.c")), path(dir, &format!("{name}.o")));
    std::fs::write(&source, text).expect("written");
    run(format!("clang -O2 {options} -target bpf -c {source} -o {object}")).ok();
    object
}

/// A capture of so many frames, to ports 9 to 12 in turn.
fn capture(dir: &Folder, count: u64) -> String {
    let file = path(dir, "four.pcap");
    run(format!("netdyno craft ipv4/udp(dport=[9,10,11,12]) --count {count} -w {file}")).ok();
    file
}

fn verdicts(of: &Value) -> Vec<(String, u64)> {
    let each = of["verdicts"].as_array().expect("verdicts").iter();
    each.map(|one| (one["verdict"].as_str().expect("a word").to_owned(), number(&one["frames"]))).collect()
}

fn pair(verdict: &str, frames: u64) -> (String, u64) {
    (verdict.to_owned(), frames)
}

#[test]
fn each_frame_of_a_capture_has_the_verdict_that_the_program_was_written_to_give() {
    let dir = folder();
    let (object, file) = (compiled(&dir, "filter", FILTER, "-g"), capture(&dir, 402));
    let test = run(format!("netdyno xdp test {object} {file} --json")).ok().json();
    assert_eq!(test["schema"], "netdyno.xdp-test/1");
    assert_eq!((&test["program"], &test["section"]), (&"filter".into(), &"xdp".into()));
    let mut said = verdicts(&test);
    said.sort();
    assert_eq!(said, [pair("aborted", 100), pair("drop", 101), pair("pass", 100), pair("tx", 101)]);
    assert_eq!((number(&test["frames"]), number(&test["timed_frames"])), (402, 402));
    assert!(test["ns_per_frame"].as_f64().expect("timed") > 0.0, "{test}");
    assert_eq!(
        run(format!("netdyno xdp test {object} {file} --repeat 0 --json")).ok().json()["ns_per_frame"],
        Value::Null
    );

    let failed = run(format!("netdyno xdp test {object} {file} --expect drop --json")).with(1).json();
    assert_eq!(number(&failed["differing_frames"]), 301);
    assert_eq!(failed["differing"][0], serde_json::json!({"first": 2, "last": 2, "verdict": "tx"}));
    let text = run(format!("netdyno xdp test {object} {file} --expect drop")).with(1).stdout;
    assert!(
        text.contains("301 frames are not drop") && text.contains("2 (tx), 3 (aborted), 4 (pass)"),
        "{text}"
    );
}

#[test]
fn an_expectation_that_holds_is_exit_status_0_and_frames_that_are_not_run_do_not_hold() {
    let dir = folder();
    let object = compiled(&dir, "filter", FILTER, "-g");
    let file = path(&dir, "nine.pcap");
    run(format!("netdyno craft ipv4/udp(dport=9) --count 50 -w {file}")).ok();
    let text = run(format!("netdyno xdp test {object} {file} --expect drop")).ok().stdout;
    assert!(text.contains("All are drop, as expected."), "{text}");
    // The second one is shorter than an Ethernet header.
    let short = path(&dir, "short.pcap");
    write_pcap(&short, 1, &[vec![0; 60], vec![0; 10], vec![0; 60]]);
    let test = run(format!("netdyno xdp test {object} {short} --expect pass --json")).with(1).json();
    assert_eq!((number(&test["not_run_frames"]), number(&test["differing_frames"])), (1, 1), "{test}");
    assert_eq!(number(&test["not_run"][0]["first"]), 2);
    assert_eq!(verdicts(&test), [pair("pass", 2)]);
}

#[test]
fn frames_that_go_on_are_written_as_the_program_left_them() {
    let dir = folder();
    let (object, file) = (compiled(&dir, "two", TWO, "-g"), capture(&dir, 40));
    let left = path(&dir, "left.pcapng");
    let test =
        run(format!("netdyno xdp test {object} {file} --program change --write {left} --json")).ok().json();
    assert_eq!((number(&test["changed_frames"]), number(&test["timed_singly_frames"])), (40, 40), "{test}");
    let (given, left_bytes) = (tshark_field(&file, "eth.dst"), tshark_field(&left, "eth.dst"));
    assert_eq!(given.len(), 40);
    for (given, left) in given.iter().zip(&left_bytes) {
        assert_eq!(given[2..], left[2..]);
        let first = |address: &str| u8::from_str_radix(&address[..2], 16).expect("hexadecimal");
        assert_eq!(first(given) ^ 2, first(left));
    }
    let comments = tshark_field(&left, "frame.comment");
    assert_eq!((&*comments[0], &*comments[39]), ("frame 1: pass", "frame 40: pass"));
    let odd = run(format!("netdyno xdp test {object} {file} --program xdp.frags --write {left} --json"))
        .ok()
        .json();
    assert_eq!(verdicts(&odd), [pair("(verdict 7)", 40)]);
    assert_eq!(tshark_field(&left, "frame.number"), Vec::<String>::new());
}

#[test]
fn state_is_as_the_frames_came_and_maps_are_not_pinned() {
    let dir = folder();
    let (object, file) = (compiled(&dir, "pinned", PINNED, "-g"), capture(&dir, 40));
    for _ in 0..2 {
        let failed = run(format!("netdyno xdp test {object} {file} --expect pass --json")).with(1).json();
        assert_eq!(number(&failed["differing_frames"]), 20, "{failed}");
        assert_eq!(number(&failed["differing"][0]["first"]), 1);
        assert_eq!(number(&failed["differing"][1]["first"]), 3);
    }
    assert!(!std::path::Path::new("/sys/fs/bpf/netdyno_test_pinned").exists());
}

#[test]
fn what_cannot_be_tested_is_said_with_the_verifiers_last_lines() {
    let dir = folder();
    let file = capture(&dir, 4);
    let (two, wrong) = (compiled(&dir, "two", TWO, "-g"), compiled(&dir, "wrong", WRONG, "-g"));
    let refused = run(format!("netdyno xdp test {wrong} {file}")).with(2);
    let refused = refused.says(&["does not load the program wrong", "invalid access to packet"]);
    assert!(!refused.stderr.contains("processed "), "{}", refused.stderr);
    run(format!("netdyno xdp test {two} {file}"))
        .refused(&["several", "change (section xdp), odd (section xdp.frags)"]);
    run(format!("netdyno xdp test {two} {file} --program none")).refused(&["`none`", "change (section xdp)"]);
    run(format!("netdyno xdp test {file} {file}")).refused(&["no object with BPF programs"]);
    run(format!("netdyno xdp test /nowhere.o {file}")).refused(&["/nowhere.o", "No such file"]);
    let object = compiled(&dir, "filter", FILTER, "-g");
    run(format!("netdyno xdp test {object} {object}")).with(2);
    let empty = path(&dir, "empty.pcap");
    write_pcap(&empty, 1, &[]);
    run(format!("netdyno xdp test {object} {empty} --expect pass")).refused(&["no frame"]);
    let raw = path(&dir, "raw.pcap");
    write_pcap(&raw, 101, &[vec![0x45; 40]]);
    run(format!("netdyno xdp test {object} {raw}")).refused(&["frame 1", "Ethernet"]);
    let bounded = "setpriv --bounding-set -bpf,-perfmon,-sys_admin --inh-caps -bpf,-perfmon,-sys_admin";
    let netdyno = command("netdyno").get_program().to_string_lossy().into_owned();
    run(format!("{bounded} {netdyno} xdp test {object} {file}")).refused(&["not permitted", "CAP_BPF"]);
}

/// Streams: the first is passed, the second dropped, the third sent back.
const SCENARIO: &str = "streams:\n  - name: passed\n    frame: ipv4/udp(dport=12)\n    rate: 5kpps\n  - name: dropped\n    frame: \
                        ipv4/udp(dport=9)\n    rate: 5kpps\n  - name: failed\n    frame: ipv4/udp(dport=11)\n    rate: 2kpps\n";

#[test]
fn a_program_as_the_labs_device_has_its_verdicts_by_stream_in_each_result() {
    let dir = folder();
    let object = compiled(&dir, "filter", FILTER, "-g");
    let (scenario, folder) = (path(&dir, "three.yaml"), dir.path().display());
    std::fs::write(&scenario, SCENARIO).expect("written");
    let netdyno = command("netdyno").get_program().to_string_lossy().into_owned();
    let script = path(&dir, "script.sh");
    let send = format!(
        "{netdyno} send {scenario} --on tx0 --measure rx0 --duration 500ms --quiet --json > {folder}/$1.json || [ $? = 1 ]\n"
    );
    std::fs::write(&script, format!("set -e\none() {{\n{send}}}\none first\none second\n")).expect("written");
    let ran = run(format!("netdyno lab --dut-xdp {object} -- sh {script}")).ok();
    assert!(ran.stderr.contains("device: filter of ") && ran.stderr.contains("ns a frame"), "{}", ran.stderr);
    for name in ["first", "second"] {
        let text = std::fs::read_to_string(dir.path().join(format!("{name}.json"))).expect("a result");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        let xdp = &result["result"]["xdp"];
        assert_eq!((&xdp["program"], &xdp["object"]), (&"filter".into(), &object.as_str().into()), "{xdp}");
        let sent: Vec<u64> = result["streams"]
            .as_array()
            .expect("streams")
            .iter()
            .map(|one| number(&one["tx_frames"]))
            .collect();
        let lost: Vec<u64> = result["streams"]
            .as_array()
            .expect("streams")
            .iter()
            .map(|one| number(&one["lost_frames"]))
            .collect();
        // Some kernels let no program hang on the end of another one, which is said.
        let counted = xdp["verdicts"].is_array();
        assert_eq!(counted, !ran.stderr.contains("verdicts are not counted: "), "{}", ran.stderr);
        assert_eq!(
            counted,
            !result["warnings"].to_string().contains("its verdicts are not counted"),
            "{result}"
        );
        let said: Vec<(u64, &str, &str, u64)> = xdp["verdicts"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| {
                let word = |name: &str| one[name].as_str().unwrap_or_default();
                (number(&one["stream"]), word("verdict"), word("interface"), number(&one["frames"]))
            })
            .collect();
        let truth =
            [(0, "pass", "dut0", sent[0]), (1, "drop", "dut0", sent[1]), (2, "aborted", "dut0", sent[2])];
        assert_eq!(said, truth[..if judged(counted) { 3 } else { 0 }], "{xdp}");
        assert_eq!(lost, [0, sent[1], sent[2]], "{result}");
        assert_eq!(number(&xdp["frames"]), sent.iter().sum::<u64>(), "{xdp}");
        assert!(xdp["ns_per_frame"].as_f64().expect("the kernel's") > 0.0, "{xdp}");
        let json = path(&dir, &format!("{name}.json"));
        let get = run(format!("netdyno report {json} --get xdp_ns_per_frame")).with(1).stdout;
        assert!(get.trim().parse::<f64>().expect("a number") > 0.0, "{get}");
    }
    let compared = run(format!("netdyno compare {folder}/first.json {folder}/second.json")).stdout;
    assert!(compared.contains("in the device's XDP program"), "{compared}");
}

#[test]
fn without_types_in_the_object_a_lab_says_that_verdicts_are_not_counted() {
    let dir = folder();
    let object = compiled(&dir, "filter", FILTER, "");
    let send =
        "netdyno send ipv4/udp(dport=12) --on tx0 --measure rx0 --count 100 --rate 5kpps --json --quiet";
    let ran = run(format!("netdyno lab --dut-xdp {object} -- {send}"));
    assert!(ran.stderr.contains("verdicts are not counted"), "{}", ran.stderr);
    let result = ran.result();
    assert_eq!(result["result"]["xdp"]["verdicts"], Value::Null);
    assert_eq!(number(&result["result"]["xdp"]["frames"]), 100, "{result}");
    let wrong = compiled(&dir, "wrong", WRONG, "-g");
    run(format!("netdyno lab --dut-xdp {wrong} -- true"))
        .with(2)
        .says(&["--dut-xdp", "invalid access to packet"]);
    run(format!("netdyno lab --dut-xdp {wrong} --impair 'loss 1%' -- true")).with(2);
}
