//! What each of several collectors of a probe gets, and one that comes late.

use crate::common::{Net, folder, number, path, reasons};
use crate::probe::{IN_ORDER, Nfcapd, collector, ended, many_kinds, metering, truth};
use serde_json::Value;

const WHOLE: &str = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";

fn collection(report: &Value) -> impl Fn(&str) -> u64 {
    let of = report["result"]["collection"].clone();
    move |name| number(&of[name])
}

#[test]
fn each_of_several_collectors_reads_all_that_it_gets_and_misses_nothing() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    for format in ["ipfix", "9", "5"] {
        let flows = truth(&capture, format != "5").len() as u64;
        let other = Nfcapd::start(&net, &dir, &format!("balanced-{format}"));
        let mut second = net.start("netdyno collect --listen 127.0.0.1:9996 --json");
        second.until_it_says("Ctrl-C ends");
        let line = format!(
            "{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --export 127.0.0.1:9996 --balance --format {format} {WHOLE} --json"
        );
        let report = net.run(line).with(i32::from(format == "5")).json();
        let collected = ended(second);
        let (said, read) = other.ended("%sa|%pkt");
        let others = read.lines().filter(|line| line.contains('|')).count() as u64;
        let of = collection(&collected);
        assert!(others > 0 && of("records") > 0, "{format}: {others} {collected}");
        assert_eq!(of("records") + others, flows, "{format}: {collected}");
        assert_eq!(number(&metering(&report)["sent_records"]), flows, "{report}");
        for none in ["missing_records", "missing_messages", "unread_sets", "restarts"] {
            assert_eq!(of(none), 0, "{format}: {none}: {collected}");
        }
        // What nfcapd, which is not ours, says of the numbers that it got.
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(said.contains("Sequence Errors: 0") && said.contains("Bad Packets: 0"), "{format}: {said}");
    }
}

#[test]
fn a_collector_that_comes_late_reads_what_follows_and_what_was_refused_was_not_sent() {
    let (net, dir) = (Net::new(), folder());
    let mut probe = net.start(format!(
        "{IN_ORDER} netdyno probe --on rx0 --export 127.0.0.1:9995 --idle-timeout 100ms --json"
    ));
    probe.until_it_says("Ctrl-C ends");
    let send = |source: &str| {
        let what = format!("ipv4(src={source},dst=198.18.0.2)/udp(sport=7,dport=9)");
        net.run(format!("netdyno send {what} --on tx0 --count 256 --rate 20kpps --engine packet --json"))
            .json();
        // Its flows end, and their records are on their way.
        std::thread::sleep(std::time::Duration::from_millis(700));
    };
    send("10.0.0.0/24");
    let csv = path(&dir, "late.csv");
    let late = collector(&net, &format!("--write {csv}"));
    send("10.0.1.0/24");
    probe.signal("INT");
    let report = probe.wait().with(1).json();
    let collected = ended(late);
    let of = collection(&collected);
    assert_eq!((of("records"), of("unread_sets")), (256, 0), "{collected}");
    let m = metering(&report);
    assert_eq!((number(&m["sent_records"]), number(&m["unsent_records"])), (256, 256), "{report}");
    let to = &m["collectors"][0];
    assert!(number(&to["refused_messages"]) > 0, "{report}");
    assert!(
        reasons(&report).iter().any(|said| said.contains("were refused: nobody takes them there")),
        "{report}"
    );
}
