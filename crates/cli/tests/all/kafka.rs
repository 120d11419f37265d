//! `netdyno collect --kafka` with a real broker, and what a client that is not ours reads from it.

use crate::common::{Folder, Net, Running, eventually, folder, number, path, reasons};
use crate::probe::{collector, ended, many_kinds};
use std::path::Path;

/// On loopback of the test's namespace.
const BROKER: &str = "127.0.0.1:9092";

/// Prepares a broker that keeps its own metadata (KRaft); starts it.
fn start_broker(net: &Net, dir: &Folder) -> Running {
    let jars = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/kafka");
    assert!(Path::new(jars).is_dir(), "{jars} is not there; `scripts/setup test` installs it");
    let (properties, logs) = (path(dir, "server.properties"), path(dir, "logs"));
    // A small machine, and a cluster's name of 22 characters.
    let java = format!(
        "java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp {jars}/*"
    );
    if !Path::new(&properties).exists() {
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n\
             listeners=PLAINTEXT://{BROKER},CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n\
             log.dirs={logs}\nnum.partitions=1\nlog.cleaner.enable=false\nbroker.session.timeout.ms=1000\nbroker.heartbeat.interval.ms=200\noffsets.topic.replication.factor=1\n"
        );
        std::fs::write(&properties, text).expect("a file");
        net.run(format!("{java} kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA -c {properties}"))
            .ok();
    }
    let mut broker = net.start(format!("{java} kafka.Kafka {properties}"));
    eventually("the broker answers", || {
        broker.must_run();
        net.run(format!("kcat -b {BROKER} -L -m 1")).status == 0
    });
    broker
}

/// The topic is there, and has records: it is made by the first one that is produced.
fn has_records(net: &Net) -> bool {
    let end = net.run(format!("kcat -b {BROKER} -Q -t flows:0:-1")).stdout;
    let end = end.trim().strip_prefix("flows [0] offset ").map(str::parse::<u64>);
    end.is_some_and(|end| end.is_ok_and(|end| end > 0))
}

/// All records of the topic, one behind the other, in a format of kcat's.
fn consumed(net: &Net, format: &str) -> Vec<u8> {
    let (file, script) = (net.file("consumed"), net.file("consume.sh"));
    let text = format!("kcat -b {BROKER} -t flows -C -o beginning -e -q -f '{format}' >{file}\n");
    std::fs::write(&script, text).expect("a script");
    net.run(format!("sh {script}")).ok();
    std::fs::read(file).expect("what it wrote")
}

/// Messages behind their lengths, each of which is a varint.
fn messages(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (mut length, mut shift) = (0usize, 0);
        loop {
            let byte = bytes[0];
            bytes = &bytes[1..];
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let (message, rest) = bytes.split_at(length);
        found.push(message);
        bytes = rest;
    }
    found.sort_unstable();
    found
}

#[test]
fn a_broker_has_each_record_once_although_it_was_killed_in_between() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let file = path(&dir, "flows.pb");
    let broker = start_broker(&net, &dir);
    let options = format!("--write {file} --kafka {BROKER} --kafka-topic flows --kafka-key sampler");
    let running = collector(&net, &options);
    let export = || {
        let whole = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";
        net.run(format!("netdyno probe {capture} --export 127.0.0.1:9995 {whole} --json")).ok();
    };
    export();
    eventually("records arrive", || has_records(&net));
    broker.signal("KILL");
    broker.wait();
    // These wait in the collector.
    export();
    let _broker = start_broker(&net, &dir);
    let report = ended(running);
    let collection = &report["result"]["collection"];
    let records = number(&collection["records"]);
    assert!(records > 800, "{report}");
    assert_eq!(
        (number(&collection["written_records"]), number(&collection["unwritten_records"])),
        (records, 0)
    );
    // What kcat reads is what protobuf's own library reads from the file (probe.rs), each message once.
    let (read, written) = (consumed(&net, "%s"), std::fs::read(&file).expect("the file"));
    let read = messages(&read);
    assert_eq!(read.len() as u64, records);
    assert!(read == messages(&written), "not the same messages");
    // Keys are the exporter's address, and compression is the batches'.
    assert_eq!(consumed(&net, "%k"), [127, 0, 0, 1].repeat(read.len()));
}

#[test]
fn a_broker_that_is_never_there_keeps_nobody_from_collecting() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    net.run("netdyno collect --kafka nowhere").refused(&[
        "--kafka",
        "`nowhere` is no address of a broker",
        "HOST:PORT",
    ]);
    net.run(format!("netdyno collect --kafka {BROKER} --kafka-topic a/b"))
        .refused(&["`a/b` is no name of a topic"]);
    let file = path(&dir, "flows.csv");
    let mut running = collector(&net, &format!("--write {file} --kafka {BROKER}"));
    let whole = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";
    net.run(format!("netdyno probe {capture} --export 127.0.0.1:9995 {whole} --json")).ok();
    running.until_it_says("producing to topic flows of Kafka at 127.0.0.1:9092: ");
    running.signal("INT");
    let ran = running.wait().with(1);
    let report = ran.json();
    let of = |name: &str| number(&report["result"]["collection"][name]);
    assert!(of("records") > 400);
    assert_eq!((of("written_records"), of("unwritten_records")), (0, of("records")));
    // The file has them all.
    let sinks = &report["result"]["collection"]["sinks"];
    assert_eq!(number(&sinks[0]["written_records"]), of("records"), "{sinks}");
    let reasons = reasons(&report);
    assert!(reasons.iter().any(|reason| reason.contains("advertised.listeners")), "{reasons:?}");
    // Once while it could be mended, and once with the result.
    assert_eq!(ran.stderr.matches("is a broker there").count(), 1, "{}", ran.stderr);
}
