use super::super::view::{Key, Order};
use super::*;
use proptest::prelude::*;
use snapshot::{Count, Counter, ManualControl, Request, Stream, Title, Worker};
use std::sync::Arc;

const PLAIN: Manner = Manner { colour: false, unicode: false };

fn moment(second: u64) -> Snapshot {
    let mut latency = Histogram::new();
    latency.record_n(2_000, 1_000 * second);
    latency.record_n(40_000, second);
    let stream = |number: u32, lost| Stream {
        number,
        name: (number == 0).then(|| "voice".into()),
        received: Count { frames: 500 * second, bytes: 30_000 * second },
        lost,
        mean_latency_ns: Some(2_040.0),
        max_latency_ns: Some(40_000),
        ..Stream::default()
    };
    let title = Title {
        command: "send".into(),
        engine: Some("packet".into()),
        tx: Some("tx0".into()),
        rx: Some("rx0".into()),
        ..Title::default()
    };
    Snapshot {
        title: Arc::new(title),
        at_ns: second * 1_000_000_000,
        streams_at_ns: second * 1_000_000_000,
        remaining_ns: Some(60_000_000_000 - second * 1_000_000_000),
        percent: 100,
        intended: Some(1_002 * second),
        tx: Some(Count { frames: 1_001 * second, bytes: 60_060 * second }),
        rx: Some(Count { frames: 1_000 * second, bytes: 60_000 * second }),
        lost: Some(second),
        reordered: Some(0),
        duplicated: Some(0),
        late: Some(3),
        latency: Some(Arc::new(latency)),
        workers: vec![Worker {
            cpu: Some(1),
            sent: Count { frames: 1_001 * second, bytes: 0 },
            cpu_ns: Some(second * 250_000_000),
        }],
        streams: (0..40).map(|n| stream(n, u64::from(n % 7))).collect(),
        counters: Arc::new([Counter {
            place: "rx0".into(),
            source: "interface".into(),
            name: "rx_dropped".into(),
            rise: second,
            explains: "the ring was full".into(),
        }]),
        warnings: Arc::new(["two clocks".to_owned()]),
        ..Snapshot::default()
    }
}

fn view() -> View {
    let mut view = View::default();
    (1..=10).for_each(|second| view.update(Arc::new(moment(second))));
    view
}

fn text(view: &View, width: usize, height: usize) -> Vec<String> {
    let lines = draw(view, PLAIN, width, height);
    lines.iter().map(|l| l.spans.iter().map(|s| s.content.as_ref()).collect()).collect()
}

#[track_caller]
fn line(lines: &[String], begins: &str) -> String {
    let found = lines.iter().find(|line| line.starts_with(begins));
    found.unwrap_or_else(|| panic!("no line `{begins}` in\n{}", lines.join("\n"))).clone()
}

#[test]
fn everything_is_on_80_by_24_and_the_keys_are_in_the_last_line() {
    let lines = text(&view(), 80, 24);
    assert_eq!(lines.len(), 24);
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    assert!(
        lines[0].starts_with(" netdyno send  tx0 > rx0  packet")
            && lines[0].ends_with("RUNNING  10s  50s left ")
    );
    for (begins, words) in [
        ("intended", ["10,020", "1.00 kpps"]),
        ("sent", ["10,010", "480 kbit/s"]),
        ("received", ["10,000", "672 kbit/s"]),
        ("lost", ["10 ", "0.0999 %"]),
        ("latency", ["2.01 us", "40.0 us"]),
        ("workers", ["cpu1 1.00 kpps", "25 %"]),
        ("dropped", ["rx0 rx_dropped +10", "the ring was full"]),
        ("warning", ["two clocks", ""]),
        ("stream", ["received", "lost"]),
        ("6 ", ["5,000", "6"]),
    ] {
        let line = line(&lines, begins);
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
    assert!(lines[23].contains("q quit") && lines[23].contains("? help"));
}

#[test]
fn streams_that_were_looked_at_earlier_than_the_totals_say_so() {
    let mut view = view();
    view.update(Arc::new(Snapshot { at_ns: 10_800_000_000, ..moment(10) }));
    let lines = text(&view, 80, 24);
    assert!(line(&lines, "stream").starts_with("stream 0.8s ago "), "{lines:#?}");
}

#[test]
fn a_small_terminal_still_shows_how_it_stands() {
    let lines = text(&view(), 40, 8);
    assert_eq!(lines.len(), 8);
    assert!(lines[0].ends_with("RUNNING  10s  50s left "), "{lines:#?}");
    line(&lines, "sent");
    line(&lines, "lost");
    for (width, height) in [(0, 0), (1, 1), (3, 2), (20, 5), (300, 100)] {
        assert!(text(&view(), width, height).len() <= height.max(1));
    }
}

/// On 160 by 50 there is a plot, a distribution and a bar for each core; all streams that have room, and the keys last.
#[test]
fn a_large_terminal_uses_its_room() {
    let mut view = View::default();
    let core = |number: usize, second: u64| snapshot::Core {
        number,
        total_ticks: 100 * second,
        idle_ticks: 25 * second,
        interrupt_ticks: second,
    };
    for second in 1..=10 {
        let cores = (0..4).map(|n| core(n, second)).collect();
        view.update(Arc::new(Snapshot { cores, ..moment(second) }));
    }
    let lines = text(&view, 160, 50);
    assert_eq!(lines.len(), 50);
    assert!(lines.iter().all(|line| line.chars().count() <= 160), "{lines:#?}");
    assert!(lines[49].contains("q quit"), "{lines:#?}");
    let empty = lines.iter().filter(|line| line.trim().is_empty()).count();
    assert!(empty <= 3, "{empty} lines are empty: {}", lines.join("\n"));
    let rows = |begins: &str| lines.iter().filter(|line| line.trim_start().starts_with(begins)).count();
    assert_eq!(rows("cpu"), 3, "the first has the label: {}", lines.join("\n"));
    assert!(line(&lines, "cores").contains("75 % irq   1 % ######"), "{}", lines.join("\n"));
    let at =
        lines.iter().position(|line| line.starts_with("received") && line.contains('<')).expect("a plot");
    assert!(lines[at + 1].contains("@@@@"), "several lines high: {}", lines.join("\n"));
    // 999 of 1,000 frames within 5 us.
    let within = lines.iter().find(|line| line.contains("2 us to 5 us")).expect("a distribution");
    assert!(within.matches("99.9001 %").count() == 2, "{within}");
    assert!(lines.iter().any(|line| line.contains("1-") && line.contains(" of 40 by loss")));
    // Without streams, nothing is left over either.
    let few = view
        .now
        .as_deref()
        .cloned()
        .map(|now| Snapshot { streams: Vec::new().into(), ..now })
        .expect("a moment");
    view.now = Some(Arc::new(few));
    assert!(text(&view, 160, 50).iter().any(|line| line.contains("20 us to 50 us")));
}

#[test]
fn bars_show_the_least_that_is_more_than_nothing() {
    let values = [0.0, 1e-9, 50.0, 100.0];
    assert_eq!(sparkline(values.into_iter(), 100.0, true), " ▁▄█");
    assert_eq!(sparkline(values.into_iter(), 100.0, false), " .=@");
    assert_eq!(sparkline(values.into_iter(), 0.0, false), "    ");
}

#[test]
fn keys_ask_for_what_can_be_done_and_say_why_else_not() {
    let mut view = view();
    assert_eq!(view.press(Key::Pause), Some(Request::Toggle));
    assert_eq!(view.press(Key::Faster), Some(Request::Faster));
    let manual =
        ManualControl { no_rate: Some("at top speed there is none".into()), ..ManualControl::default() };
    let mut moment = moment(11);
    moment.title = Arc::new(Title { manual, ..Title::default() });
    view.update(Arc::new(moment.clone()));
    assert_eq!(view.press(Key::Faster), None);
    assert!(text(&view, 80, 24)[23].contains("at top speed there is none"));
    moment.phase = Phase::Settling;
    moment.at_ns += 1;
    view.update(Arc::new(moment));
    assert_eq!(view.press(Key::Pause), None);
    assert!(view.note.is_some());
    view.press(Key::Quit);
    assert!(view.quitting);
}

#[test]
fn streams_are_sorted_and_move() {
    let mut view = view();
    assert_eq!(view.streams()[0].0.number, 6);
    view.press(Key::Order);
    view.press(Key::Order);
    assert_eq!((view.order, view.streams()[0].0.number), (Order::Number, 0));
    line(&text(&view, 80, 24), "0 voice");
    view.press(Key::Down(7));
    line(&text(&view, 80, 24), "7 ");
    // Never beyond the last, however often it is pressed.
    (0..50).for_each(|_| assert_eq!(view.press(Key::Down(5)), None));
    line(&text(&view, 80, 24), "39 ");
    view.press(Key::Top);
    line(&text(&view, 80, 24), "0 voice");
}

#[test]
fn a_wide_terminal_has_room_for_names_and_captures_go_by_their_own() {
    let stream = |number, name: &str| Stream { number, name: Some(name.into()), ..Stream::default() };
    let mut view = view();
    let streams =
        [stream(0, "ipv4(src=10.0.0.0/16)/udp(dport=53)"), stream(1, "/home/someone/captures/a.pcap")];
    view.update(Arc::new(Snapshot { streams: Arc::new(streams), ..moment(11) }));
    assert!(line(&text(&view, 80, 24), "0 ").starts_with("0 ipv4(src=10.0. "));
    line(&text(&view, 80, 24), "1 a.pcap ");
    let lines = text(&view, 120, 24);
    assert!(lines.iter().all(|line| line.chars().count() <= 120), "{lines:#?}");
    line(&lines, "0 ipv4(src=10.0.0.0/16)/udp(dport=53) ");
}

#[test]
fn a_pause_and_a_changed_rate_stand_in_the_first_line() {
    let mut view = view();
    let changed = Snapshot { phase: Phase::Paused, percent: 110, ..moment(11) };
    view.update(Arc::new(changed));
    assert!(text(&view, 80, 24)[0].contains("PAUSED at 110 %"));
}

#[test]
fn a_name_cannot_drive_the_terminal() {
    let mut view = view();
    let title = Title { command: "send".into(), tx: Some("a\x1b[2J".into()), ..Title::default() };
    view.update(Arc::new(Snapshot {
        title: Arc::new(title),
        warnings: Arc::new(["\x1b]0;x\x07".into()]),
        ..moment(11)
    }));
    assert!(text(&view, 80, 24).iter().all(|line| !line.contains(['\x1b', '\x07'])));
}

#[test]
fn a_search_tells_what_it_tries_what_it_knows_and_what_was_before() {
    let mut view = View::default();
    let row = |number, verdict: &str| snapshot::Trial {
        number,
        load: 48_000.0,
        duration_ns: 3_000_000_000,
        loss_ratio: 0.012,
        p99_ns: Some(45_000),
        verdict: verdict.into(),
    };
    let bound = |goal: &str, lower, upper| snapshot::Bound { goal: goal.into(), lower, upper };
    let search = snapshot::Search {
        part: "throughput".into(),
        frame_size: "512".into(),
        size: (2, 3),
        of_rate: true,
        load: 48_200.0,
        trial_ns: 3_000_000_000,
        trial_began_ns: 9_000_000_000,
        trials: 13,
        passed: 4,
        bounds: vec![
            bound("loss=0%", Some(47_000.0), Some(48_500.0)),
            bound("loss=1%", None, Some(50_000.0)),
        ],
        rows: (0..40).map(|n| row(13 - n.min(12), if n % 2 == 0 { "loss" } else { "passed" })).collect(),
        ..snapshot::Search::default()
    };
    for second in 9..=10 {
        let moment =
            Snapshot { search: Some(Arc::new(search.clone())), streams: Arc::default(), ..moment(second) };
        view.update(Arc::new(moment));
    }
    let lines = text(&view, 80, 24);
    assert!(lines.len() == 24 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    for (begins, words) in [
        ("search", ["throughput, frames of 512 bytes", "2 of 3"]),
        ("trial    14", ["48.2 kpps for 3.00 s", "33 %"]),
        ("known    loss=0%", ["47.0 kpps passed, 48.5 kpps failed", "3.09 % apart"]),
        ("known    loss=1%", ["50.0 kpps failed", ""]),
        ("done", ["13 trials are over, 4 passed", ""]),
        ("13 ", ["48.0 kpps", "loss"]),
    ] {
        let line = line(&lines, begins);
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
}

#[test]
fn cores_and_queues_have_room_on_any_machine() {
    let core = |number: usize, second: u64| snapshot::Core {
        number,
        total_ticks: 100 * second,
        idle_ticks: (100 - number as u64).saturating_mul(second),
        interrupt_ticks: second,
    };
    let queue = |number, receives, second| snapshot::Queue {
        interface: "eth1".into(),
        receives,
        number,
        packets: if number < 2 { 1_000 * second } else { 0 },
    };
    let mut view = View::default();
    for second in 1..=10 {
        let queues = (0..2).map(|n| queue(n, true, second)).chain((2..4).map(|n| queue(n, false, second)));
        view.update(Arc::new(Snapshot {
            cores: (0..64).map(|n| core(n, second)).collect(),
            queues: queues.collect(),
            counters_at_ns: second * 1_000_000_000,
            ..moment(second)
        }));
    }
    let lines = text(&view, 80, 40);
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    // The busiest first, as not all have room.
    let cores = line(&lines, "cores");
    assert!(cores.contains("cpu63 63 % irq 1 %") && !cores.contains("cpu0 "), "{cores}");
    assert!(lines.iter().any(|line| line.contains("more")), "{lines:#?}");
    let queues = line(&lines, "queues");
    assert!(queues.contains("eth1 rx") && queues.contains("0: 1.00 kpps"), "{queues}");
    assert!(!lines.iter().any(|line| line.contains("eth1 tx")), "none of these was used: {lines:#?}");
    let two = Snapshot { cores: (0..2).map(|n| core(n, 11)).collect(), ..moment(11) };
    view.update(Arc::new(two));
    assert!(line(&text(&view, 80, 24), "cores").contains("cpu0 0 % irq 1 %"));
}

#[test]
fn directions_and_connections_are_told_under_the_rates() {
    let mut view = view();
    let count = |frames| Count { frames, bytes: 0 };
    let passage =
        snapshot::Passage { from: "a0".into(), to: "b0".into(), received: count(12), forwarded: count(9) };
    let connections =
        snapshot::Connections { open: 2, over: 1, broken: 1, waiting: 5, ..snapshot::Connections::default() };
    let moment = Snapshot { passages: vec![passage], connections: Some(connections), ..moment(11) };
    view.update(Arc::new(moment));
    let lines = text(&view, 80, 30);
    assert!(lines.iter().any(|line| line.contains("a0 > b0") && line.contains(" 9 forwarded")), "{lines:#?}");
    assert!(
        line(&lines, "played")
            .contains("1 of 8 connections (12.5 %), 1 of them broken off; 2 open, 5 to come")
    );
}

#[test]
fn connections_without_an_end_in_sight_are_no_share_and_bytes_that_nobody_counted_are_not_none() {
    let mut view = view();
    let connections =
        snapshot::Connections { open: 2, over: 12, heard: 900, ..snapshot::Connections::default() };
    view.update(Arc::new(Snapshot { connections: Some(connections), ..moment(11) }));
    let lines = text(&view, 80, 30);
    assert!(line(&lines, "played").contains("12 connections over; 2 open"), "{lines:#?}");
    assert!(line(&lines, "bytes").ends_with(" 900 heard; 0 segments sent again"), "{lines:#?}");
}

#[test]
fn what_a_bridge_kept_is_whole_on_a_narrow_terminal() {
    let mut view = view();
    let count = |frames| Count { frames, bytes: 0 };
    let passage = |from: &str, to: &str, received, forwarded| snapshot::Passage {
        from: from.into(),
        to: to.into(),
        received: count(received),
        forwarded: count(forwarded),
    };
    let long = passage("enp129s0f0np0", "enp129s0f1np1", 98_765_432_109, 98_760_000_000);
    let passages = vec![long, passage("a0", "b0", 12, 9)];
    view.update(Arc::new(Snapshot { passages, ..moment(11) }));
    for width in [80, 60] {
        let shown = text(&view, width, 30).join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            shown.contains("98,760,000,000 forwarded") && shown.contains(" 5,432,109 not "),
            "{width}: {shown}"
        );
    }
    // Interfaces of usual names have a line each.
    let passages =
        vec![passage("eth1", "eth2", 98_765_432_109, 98_760_000_000), passage("eth2", "eth1", 12, 9)];
    view.update(Arc::new(Snapshot { passages, ..moment(12) }));
    let lines = text(&view, 80, 30);
    let is =
        |begins: &str, ends: &str| lines.iter().any(|l| l.contains(begins) && l.trim_end().ends_with(ends));
    assert!(is("eth1 > eth2", " 5,432,109 not") && is("eth2 > eth1", " 3 not"), "{lines:#?}");
}

#[test]
fn a_probe_and_a_collector_say_what_became_of_records() {
    let mut view = view();
    let flows = snapshot::Flows { active: 7, ended: 1234, sent: 1200, unsent: 34, dropped: 5 };
    let collected = snapshot::Collected {
        records: 9000,
        messages: 300,
        exporters: 2,
        missing_records: 31,
        dropped_messages: 4,
        ..snapshot::Collected::default()
    };
    view.update(Arc::new(Snapshot { flows: Some(flows), collected: Some(collected), ..moment(11) }));
    let lines = text(&view, 100, 40);
    let probe = line(&lines, "flows");
    assert!(
        probe.contains("7 under way; 1,234 records ended, 1,200 sent, 34 not sent; 5 frames not metered")
    );
    let collector = line(&lines, "records");
    assert!(collector.contains(
        "9,000 of 2 exporters in 300 messages; 31 records and 0 messages missing; 4 messages lost"
    ));
    // Bars of the last minute, and the table of streams behind them.
    let history = lines.iter().filter(|line| line.contains(" <")).count();
    assert!(history >= 2, "{lines:#?}");
    let table = lines.iter().position(|line| line.contains("stream")).expect("the table of streams");
    let bars = lines.iter().position(|line| line.contains(" <")).expect("bars");
    assert!(bars < table, "{lines:#?}");
}

proptest! {
    #[test]
    fn any_size_and_any_counts_can_be_drawn(
        width in 0usize..200,
        height in 0usize..60,
        numbers in proptest::collection::vec(any::<u64>(), 8),
        at in any::<u64>(),
    ) {
        let mut view = view();
        let n = |i: usize| numbers[i];
        view.update(Arc::new(Snapshot {
            at_ns: at,
            intended: Some(n(0)),
            tx: Some(Count { frames: n(1), bytes: n(2) }),
            rx: Some(Count { frames: n(3), bytes: n(4) }),
            lost: Some(n(5)),
            remaining_ns: Some(n(6)),
            late: Some(n(7)),
            ..moment(11)
        }));
        prop_assert!(text(&view, width, height).len() <= height.max(1));
    }
}

/// A moment with a long warning, and an answer to a key that has much to say.
fn wordy() -> View {
    let mut view = view();
    let now = view.now.as_deref().cloned().expect("a moment");
    let why = "the rate of a capture at its own times is the capture's, which neither + nor - can change while it is replayed";
    let manual = ManualControl { no_rate: Some(why.to_owned()), ..ManualControl::default() };
    let title = Title { manual, ..(*now.title).clone() };
    let warning = "the CPU limits: one sending core is busy for 97 % of its time, and frames leave up to 31 ms after they were due; \
                   add sending cores, or free the ones that other programs use";
    let warnings = Arc::new([warning.to_owned(), "two clocks".to_owned(), "a third".to_owned()]);
    view.now = Some(Arc::new(Snapshot { title: Arc::new(title), warnings, ..now }));
    view
}

#[test]
fn no_word_of_warnings_help_and_answers_is_cut() {
    for (width, height) in [(80, 24), (60, 20), (200, 50)] {
        let mut view = wordy();
        let shown = |view: &View| {
            let lines = text(view, width, height);
            assert!(lines.len() <= height, "{lines:#?}");
            for (n, line) in lines.iter().enumerate() {
                assert!(line.chars().count() <= width, "{width}x{height}, line {n}: {line}");
            }
            lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let running = shown(&view);
        assert!(running.contains("or free the ones that other programs use"), "{width}: {running}");
        // A number stands whole or not at all.
        assert!(!running.contains("kbi ") && running.contains("10,010"), "{running}");
        assert_eq!(view.press(Key::Faster), None);
        assert!(shown(&view).contains("can change while it is replayed"), "{}", shown(&view));
        view.press(Key::Help);
        // All of it, on as many screens as it takes.
        let mut seen = String::new();
        for _ in 0..40 {
            seen += &shown(&view);
            view.press(Key::Down(1));
        }
        for words in [
            "end the run, and print its result",
            "What is changed by hand stands in the result.",
            "while it is replayed",
        ] {
            assert!(seen.contains(words), "{width}x{height}: no `{words}`: {seen}");
        }
        view.press(Key::Back);
        view.press(Key::Help);
        assert!(shown(&view).contains("q, Ctrl-C"), "it begins at its top again");
    }
}

#[test]
fn what_is_cut_says_so_and_ends_between_words() {
    let line = Line::from(vec![Span::raw("workers  "), Span::raw("cpu1 1.00 kpps of 2")]);
    let cut = |width| -> String {
        within(line.clone(), PLAIN, width).spans.iter().map(|s| s.content.as_ref()).collect()
    };
    assert_eq!(
        [cut(28), cut(27), cut(24)],
        ["workers  cpu1 1.00 kpps of 2", "workers  cpu1 1.00 kpps...", "workers  cpu1 1.00..."]
    );
    assert_eq!(cells(9, [(17, "10,010".into()), (11, "1.00 kpps".into())], 37), "           10,010");
}

#[test]
fn what_has_one_scale_has_as_many_lines() {
    for height in [36, 50, 60] {
        let lines = text(&view(), 200, height);
        let at =
            |name: &str| lines.iter().position(|l| l.starts_with(name) && l.contains('<')).expect("a plot");
        let (sent, received, lost) = (at("sent"), at("received"), at("lost"));
        assert_eq!(received - sent, lost - received, "{}", lines.join("\n"));
    }
}
