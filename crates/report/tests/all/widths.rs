//! What is printed keeps to the terminal's columns, of results of every kind and with the large numbers of fast links.

use netdyno_report::search::*;
use netdyno_report::sections::conversations::{Difference, Exchange};
use netdyno_report::*;

use crate::fixtures::{lossy_replay, sparse};
use crate::searches;

const TERA: u64 = 45_000_000_000_000;
const GIGA: u64 = 535_714_285_714;
const LONG: &str = "enp129s0f0np0";

/// Of a run: two ways, ports, cores, many streams.
fn runs() -> Vec<(&'static str, Report)> {
    let large = |change: &dyn Fn(&mut Report)| {
        let mut report = lossy_replay();
        let totals = Totals::over(GIGA, TERA, 3_600_000_000_000);
        report.result.tx.as_mut().expect("sent").totals = totals;
        report.result.rx.as_mut().expect("received").totals = totals;
        for stream in &mut report.streams {
            (stream.tx_frames, stream.rx_frames, stream.lost_frames) = (Some(GIGA), GIGA, GIGA / 7);
            (stream.duplicated_frames, stream.reordered_frames) = (123_456, 123_456);
            stream.name = Some("customer traffic with a long name".to_owned());
        }
        change(&mut report);
        report
    };
    let sent = |name: &str| TxInterface {
        interface: name.to_owned(),
        frames: GIGA,
        bytes: TERA,
        ..TxInterface::default()
    };
    let came = |name: &str| RxInterface {
        interface: name.to_owned(),
        frames: GIGA,
        bytes: TERA,
        ..RxInterface::default()
    };
    vec![
        ("large", large(&|_| {})),
        (
            "by count",
            large(&|report| {
                let loss = Loss {
                    by_count_only: true,
                    unsigned_frames: Some(1_234_567_890),
                    ..Loss::of(GIGA / 7, GIGA)
                };
                report.result.loss = Some(loss);
            }),
        ),
        (
            "both sides",
            large(&|report| {
                report.result.tx.as_mut().expect("sent").interfaces =
                    [LONG, "enp129s0f1np1"].map(sent).to_vec();
                report.result.rx.as_mut().expect("received").interfaces =
                    [LONG, "enp129s0f1np1"].map(came).to_vec();
            }),
        ),
        (
            "ports",
            large(&|report| {
                let port = PortResult {
                    interface: LONG.to_owned(),
                    tx_frames: GIGA,
                    tx_bytes: TERA,
                    failed_frames: 12,
                    measured_at: Some("enp129s0f1np1".to_owned()),
                    rx_frames: Some(GIGA),
                    rx_bytes: Some(TERA),
                    lost_frames: Some(GIGA / 7),
                    misdirected_frames: Some(12_345),
                };
                report.result.ports = vec![port; 4];
            }),
        ),
        (
            "passages",
            large(&|report| {
                let totals = Totals::over(GIGA, TERA, 3_600_000_000_000);
                let (from, to) = (LONG.to_owned(), "enp129s0f1np1".to_owned());
                report.result.passages =
                    vec![Passage { from, to, received: totals, forwarded: totals, ..Passage::default() }; 2];
            }),
        ),
    ]
}

/// Searches at 100 Gbit/s, with sizes and goals of long names.
fn all_searches() -> Vec<(&'static str, Report)> {
    let of = |kind: &str, change: &dyn Fn(&mut SizeResult)| {
        let mut report = searches::search();
        for (number, trial) in (1000..).zip(&mut report.result.trials) {
            trial.number = number;
            trial.frame_size = "random(64..1518)".to_owned();
            trial.intended_frames_per_second = Some(148.8e6);
            (trial.intended_frames, trial.sent_frames, trial.received_frames) = (GIGA, GIGA, GIGA);
            (trial.loss_ratio, trial.shortfall_ratio) = (0.123_456, 0.000_123_4);
            trial.verdict = TrialVerdict::SenderUneven;
            let floor = Floor { of: FloorOf::Device, min_ns: 12_345, typical_ns: 123_456 };
            trial.floor = Some(floor);
        }
        let search = report.result.search.as_mut().expect("a search");
        search.kind = kind.into();
        for size in &mut search.sizes {
            size.frame_size = "random(64..1518)".to_owned();
            let found = size.throughput.iter_mut().flatten();
            found.for_each(|found| found.goal = "loss 0.001 %, p99.9 below 123 us".to_owned());
            size.latency.iter_mut().for_each(|at| {
                at.frames_per_second = 148.8e6;
                at.floor = Some(Floor { of: FloorOf::Device, min_ns: 12_345, typical_ns: 123_456 });
            });
            change(size);
        }
        report
    };
    let unfinished = |axis: SearchAxis| Unfinished {
        part: "throughput".into(),
        goal: Some("loss 0 %".to_owned()),
        axis,
        passed: Some(41_000_000.0),
        passed_duration_ns: Some(250_000_000),
        failed: Some(82_000_000.0),
        failed_duration_ns: Some(3_000_000_000),
        trials: 20,
        passed_trials: 13,
        wanted_trials: None,
    };
    let mut flows = of("flows", &|size| {
        size.throughput.clear();
        size.found = Some(1_234_567.0);
        size.flows = Some(FlowsFound {
            failed_flows_per_second: Some(1_234_567.0),
            probe: "netdyno".to_owned(),
            key_order: "random".to_owned(),
            packets_per_flow: 2,
            cache_size_flows: Some(1_000_000),
            cache_flows: 12_345_678,
            export_records_per_second: Some(1_234_567.0),
            records_per_message: 1234.5,
            bytes_per_record: 123.4,
            ..FlowsFound::at(1_234_567.0)
        });
    });
    let search = flows.result.search.as_mut().expect("a search");
    search.axis = SearchAxis::FlowsPerSecond;
    for trial in &mut flows.result.trials {
        trial.flows = Some(FlowTrial {
            sent_flows: 12_345_678,
            recorded_flows: 12_345_678,
            port_lost_packets: Some(1_234_567),
            cache_lost_flows: 1_234_567,
            export_lost_records: 1_234_567,
            ..FlowTrial::default()
        });
    }
    let other = of("throughput", &|size| {
        size.throughput.clear();
        (size.found, size.burst_frames_per_second) = (Some(1_234_567.0), Some(148.8e6));
        size.outage_ns = size.recovery_ns;
    });
    let kinds =
        ["throughput", "latency", "loss", "burst", "recovery", "reset"].map(|kind| (kind, of(kind, &|_| {})));
    let mut all = vec![
        ("flows", flows),
        ("another axis", other),
        ("nothing passed", of("throughput", &|size| size.throughput = vec![None, None])),
        (
            "unfinished",
            of("throughput", &|size| {
                (size.frame_size, size.unfinished) =
                    ("1518".to_owned(), vec![unfinished(SearchAxis::FramesPerSecond)])
            }),
        ),
        (
            "unfinished bursts",
            of("burst", &|size| {
                (size.frame_size, size.unfinished) =
                    ("1518".to_owned(), vec![unfinished(SearchAxis::BurstFrames)])
            }),
        ),
    ];
    all.extend(kinds);
    all
}

fn endpoints() -> Vec<(&'static str, Report)> {
    let between = |udp: bool| {
        let mut report = Report::new("search");
        let point = |bytes: Option<u64>| BufferPoint {
            buffer_bytes: bytes,
            per_second: if udp { 1_234_567.0 } else { 98_765_432_109.0 },
            width_ratio: Some(0.1234),
            best_ratio: 0.987_654,
            send_buffer_bytes: Some(33_554_433),
            receive_buffer_bytes: Some(33_554_433),
            send_capped: true,
            receive_capped: true,
            rtt_ns: (!udp).then_some(123_456),
            retransmits: (!udp).then_some(12_345_678),
            loss_ratio: udp.then_some(0.123_456),
            ..BufferPoint::default()
        };
        let trial = EndpointTrial {
            intended_per_second: Some(1_234_567.0),
            per_second: 1_234_567.0,
            at_percentile_ns: Some(123_456),
            latency_ns: searches::search().result.trials.first().and_then(|trial| trial.latency_ns),
            unsent: 12_345_678,
            lost: 12_345_678,
            verdict: "not carried".into(),
            ..EndpointTrial::default()
        };
        report.result.endpoint_search = Some(EndpointSearch {
            kind: EndpointSearchKind::Transactions,
            test: "udp-rr".to_owned(),
            counts: if udp { EndpointCounts::Transactions } else { EndpointCounts::Bits },
            socket_buffer: Some(SocketBufferFound {
                level: 0.99,
                points: vec![point(None), point(Some(16_777_216))],
                ..SocketBufferFound::default()
            }),
            transactions: Some(TransactionsFound {
                percentile: 99.99,
                below_ns: 100_000,
                ..TransactionsFound::default()
            }),
            trials: vec![trial; 3],
            ..EndpointSearch::default()
        });
        report
    };
    let mut played = Report::new("live");
    let exchange = Exchange {
        client_bytes: 12_345_678,
        expected_bytes: 123_456_789,
        received_bytes: 123_456_789,
        difference: Some(Difference {
            offset: 12_345_678,
            captured: "6162".repeat(8),
            live: "6162".repeat(8),
            ..Difference::default()
        }),
        first_byte_ns: Some(12_345),
        captured_first_byte_ns: Some(12_345),
        last_byte_ns: Some(123_456_789),
        captured_last_byte_ns: Some(123_456_789),
        ..Exchange::default()
    };
    let address = || "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535".to_owned();
    played.result.conversations = vec![Conversation {
        captured_client: address(),
        captured_server: address(),
        from: address(),
        to: address(),
        client_bytes: 123_456_789,
        exchanges: vec![exchange; 3],
        ..Conversation::default()
    }];
    vec![("buffers over TCP", between(false)), ("buffers over UDP", between(true)), ("played", played)]
}

#[test]
fn every_result_keeps_to_the_columns_of_the_terminal() {
    let all = sparse().into_iter().chain(searches::sparse()).chain([("search", searches::search())]);
    let mut wide = String::new();
    for (name, report) in all.chain(runs()).chain(all_searches()).chain(endpoints()) {
        // A number that is none is as long as it is.
        for width in [80, 100, 120].into_iter().filter(|_| name != "numbers that are none") {
            let text = text::render(&report, text::Options { width, ..text::Options::default() });
            let longer = text.lines().filter(|line| line.chars().count() > width);
            longer.for_each(|line| wide += &format!("{name}, {width}: {line}\n"));
        }
        // Whoever asks for all, or has room, gets all.
        let room = text::Options { width: 250, ..text::Options::default() };
        for options in [room, text::Options { verbose: true, ..text::Options::default() }] {
            let text = text::render(&report, options);
            assert!(!text.contains("not shown"), "{name}: {text}");
        }
    }
    assert!(wide.is_empty(), "{wide}");
}

/// The table that a user met with on 80 columns.
#[test]
fn a_trials_table_on_a_terminal_says_what_it_left_out() {
    let mut report = Report::new("trial");
    report.result.trials = searches::search().result.trials;
    for trial in &mut report.result.trials {
        (trial.sent_frames, trial.received_frames) = (14_880_952, 14_880_952);
    }
    let text = text::render(&report, text::Options::default());
    let header = text.lines().find(|line| line.contains("verdict")).expect("a table");
    let words: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(words, ["#", "size", "load", "for", "sent", "lost", "short", "p99.9", "verdict"], "{text}");
    assert!(text.contains("not shown, for the width: p50, received (`.verbose` shows all)"), "{text}");
    let all = text::render(&report, text::Options { verbose: true, ..text::Options::default() });
    assert!(all.contains("sender short") && all.contains("  p50"), "{all}");
}
