//! What each of several collectors of a probe gets, and one that comes late.

use crate::common::{Net, folder, number, path, pcap_header, pcap_record, reasons};
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

/// UDP from port 7 to 9, whose header says that it has so many bytes.
fn datagram(source: [u8; 4], length: u16) -> Vec<u8> {
    let [a, b] = length.to_be_bytes();
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, a, b, 0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend(source);
    frame.extend([198, 18, 0, 2, 0, 7, 0, 9, 0, 8, 0, 0]);
    frame
}

/// nfdump is who reads the sums.
#[test]
fn counters_that_would_overflow_are_told_by_two_records_or_have_room() {
    let (net, dir) = (Net::new(), folder());
    let capture = path(&dir, "much.pcap");
    let mut bytes = pcap_header(1);
    for number in 0..70_000 {
        let frame = datagram([192, 0, 2, 1], 65_535);
        bytes.extend(pcap_record(1_700_000_000, number * 10, 65_549, &frame));
    }
    std::fs::write(&capture, bytes).expect("a capture");
    for (format, records) in [("5", 2), ("9", 1), ("ipfix", 1)] {
        let nfcapd = Nfcapd::start(&net, &dir, &format!("much-{format}"));
        let line = format!(
            "{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --format {format} {WHOLE} --json"
        );
        let report = net.run(line).ok().json();
        let (_, read) = nfcapd.ended("%pkt|%byt");
        let sums =
            read.lines().filter_map(|line| line.split_once('|')).fold([0u64; 3], |sums, (packets, bytes)| {
                let number = |text: &str| text.trim().parse::<u64>().unwrap_or_else(|_| panic!("{read}"));
                [sums[0] + 1, sums[1] + number(packets), sums[2] + number(bytes)]
            });
        assert_eq!(sums, [records, 70_000, 70_000 * 65_535], "{format}: {read}");
        let full = metering(&report)["full_records"].as_u64().unwrap_or(0);
        assert_eq!(full, records - 1, "{format}: {report}");
    }
}

#[test]
fn captures_in_any_order_of_time_have_the_times_of_their_packets() {
    let (net, dir) = (Net::new(), folder());
    let of = |name: &str, source, seconds| {
        let file = path(&dir, name);
        let frame = datagram([192, 0, 2, source], 28);
        std::fs::write(&file, [pcap_header(1), pcap_record(seconds, 250_000, 42, &frame)].concat())
            .expect("a capture");
        file
    };
    let (late, early) = (of("late.pcap", 1, 1_700_009_000), of("early.pcap", 2, 1_700_000_000));
    // Article B's times: those of IPFIX count from what the record says.
    let by_start = "-T %IPV4_SRC_ADDR,%IPV4_DST_ADDR,%IN_PKTS,%IN_BYTES,%FIRST_SWITCHED,%LAST_SWITCHED,%L4_SRC_PORT,%L4_DST_PORT,%PROTOCOL";
    for (format, template) in [("5", ""), ("9", by_start), ("ipfix", by_start), ("ipfix", "")] {
        let nfcapd = Nfcapd::start(&net, &dir, &format!("order-{format}-{}", template.len()));
        let line = format!(
            "{IN_ORDER} netdyno probe {late} {early} --export 127.0.0.1:9995 --format {format} {template} --json"
        );
        net.run(line).ok();
        let (_, read) = nfcapd.ended("%sa|%ts|%te");
        for (source, time) in
            [("192.0.2.1", "2023-11-15 00:43:20.250"), ("192.0.2.2", "2023-11-14 22:13:20.250")]
        {
            let line =
                read.lines().find(|line| line.contains(source)).unwrap_or_else(|| panic!("{format}: {read}"));
            assert_eq!(line.matches(time).count(), 2, "{format} {template}: {read}");
        }
    }
}
