//! Reports to render: a full one as a lossy replay leaves it, and sparse ones.

use netdyno_report::*;

/// Six seconds of replay at 1.6 Mpps with a stall and loss in the middle.
pub fn lossy_replay() -> Report {
    let mut report = Report::new("replay");
    report.command_line = [
        "netdyno",
        "replay",
        "big flows.pcap",
        "--on",
        "v0",
        "--rate",
        "1.6mpps",
        "--loop",
        "50",
        "--unique-ip",
        "--measure",
        "v1",
    ]
    .map(String::from)
    .to_vec();
    report.requested = serde_json::from_value(serde_json::json!({
        "kind": "replay",
        "captures": ["big flows.pcap"],
        "links": [{ "on": "v0", "measure": "v1" }],
        "rate": "1.6mpps",
        "loop": 50,
        "unique_ip": true,
    }))
    .expect("a job");
    report.resolved = Resolved {
        source: Some(Source::Files { files: vec!["big flows.pcap".into()] }),
        engine: Some("auto".into()),
        rate: Some(RequestedRate {
            text: "1.6mpps".into(),
            frames_per_second: Some(1.6e6),
            ..RequestedRate::default()
        }),
        loops: Some(50),
        count: None,
        duration_ns: Some(6_000_000_000),
        unique_ip: Some(true),
        seed: Some(7),
        flow_profiles: Vec::new(),
        interfaces: vec!["v0".into(), "v1".into()],
    };
    report.environment = Environment {
        netdyno_version: "0.1.0".into(),
        netdyno_commit: Some("1b4acca".into()),
        started: Some(units::rfc3339(1_795_245_166)),
        hostname: Some("bench-3".into()),
        kernel: Some("6.18.0".into()),
        cpu_model: Some("Example CPU @ 3.00GHz".into()),
        cpus: Some(2),
        governor: Some("performance".into()),
        clocksource: Some("tsc".into()),
        tuning: [("net.core.somaxconn", "4096"), ("net.ipv4.tcp_rmem", "4096 131072 6291456")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        interfaces: ["v0", "v1"]
            .map(|name| Interface {
                name: name.into(),
                role: Some(if name == "v0" { "send" } else { "measure" }.into()),
                driver: Some("veth".into()),
                mtu: Some(1500),
                speed_bits_per_second: (name == "v1").then_some(10_000_000_000),
                tx_queues: Some(1),
                rx_queues: Some(1),
                carrier_wait_ns: (name == "v1").then_some(412_000_000),
                qdisc: Some("noqueue".into()),
                offloads: vec!["rx-gro".into()],
            })
            .to_vec(),
        engine: Some(Choice {
            name: "packet".into(),
            reason:
                "a packet socket with sendmmsg, which works on every interface and with every kind of frame"
                    .into(),
            not_taken: [
                ("xdp", "v1, the other end of v0, has no XDP program"),
                ("afxdp", "the program is too large"),
            ]
            .map(|(name, reason)| NotTaken { name: name.into(), reason: reason.into() })
            .to_vec(),
        }),
        meter: Some(Choice {
            name: "xdp native".into(),
            reason: "the driver supports it".into(),
            ..Choice::default()
        }),
    };
    report.intervals = (0..60).map(interval).collect();
    let sum = |get: fn(&Interval) -> Option<u64>| report.intervals.iter().filter_map(get).sum::<u64>();
    let (intended, sent, arrived, lost) =
        (sum(|i| i.intended_frames), sum(|i| i.tx_frames), sum(|i| i.rx_frames), sum(|i| i.lost_frames));
    let second = 1_000_000_000;
    let latency = latency(arrived);
    let lost_of_each = report.intervals.iter().map(|i| i.lost_frames.unwrap_or(0));
    let by_interval: Vec<u64> = lost_of_each.clone().map(|lost| lost / 3).collect();
    let outside_frames = lost / 3 - by_interval.iter().sum::<u64>();
    let mut left = outside_frames;
    let not_seen = lost_of_each.zip(&by_interval).map(|(lost, named)| {
        let later = left.min(lost - named);
        left -= later;
        lost - named - later
    });
    let not_seen_by_interval = not_seen.collect();
    report.result = Achieved {
        drops: vec![
            Dropped {
                function: "nf_hook_slow".into(),
                reason: "NETFILTER_DROP".into(),
                frames: lost / 3,
                kind: DroppedKind::Test,
                interface: Some("v1".into()),
                first_ns: 10_000_000,
                last_ns: 59_000_000_000,
                by_interval,
                outside_frames,
                streams: vec![DroppedOfStream {
                    stream: 1,
                    frames: lost / 3,
                    first_sequence: 7,
                    last_sequence: 4_000,
                    lowest_sequence: 7,
                    highest_sequence: 4_000,
                    first_ns: 10_000_000,
                    last_ns: 59_000_000_000,
                }],
                ..Dropped::default()
            },
            Dropped {
                function: "sock_queue_rcv_skb".into(),
                reason: "SOCKET_RCVBUFF".into(),
                frames: 3,
                ..Dropped::default()
            },
        ],
        drops_traced: Some(DropsTraced {
            named_frames: lost / 3,
            not_seen_frames: Some(lost - lost / 3),
            over_time: Some(DropsOverTime {
                outside_frames,
                not_seen_by_interval,
                ..DropsOverTime::default()
            }),
            ..DropsTraced::default()
        }),
        link_events: vec![LinkEvent {
            interface: "v1".into(),
            role: "measure".into(),
            what: LinkChange::CarrierLost,
            at_ns: 1_200_000_000,
            duration_ns: Some(350_000_000),
            between_looks: false,
        }],
        adjustments: vec![
            Adjustment { at_ns: 3_000_000_000, change: Change::Rate, rate_ratio: 1.1 },
            Adjustment { at_ns: 4_000_000_000, change: Change::Rate, rate_ratio: 1.0 },
        ],
        verdict: Verdict::Done,
        round_trip: false,
        throughput: None,
        search: None,
        trials: Vec::new(),
        capture: None,
        reflection: None,
        metering: None,
        collection: None,
        cloned: None,
        forwarded: None,
        returned: None,
        endpoint: None,
        stamp: None,
        mesh: None,
        sessions: None,
        sessions_served: None,
        sessions_search: None,
        xdp: None,
        parts_of_a_stream: 0,
        endpoint_search: None,
        served: None,
        passages: Vec::new(),
        agents: Vec::new(),
        tx: Some(Tx {
            signed: Vec::new(),
            totals: Totals::over(sent, sent * 445, 6 * second + 72_000),
            intended_frames: Some(intended),
            due_not_sent_frames: Some(intended.saturating_sub(sent)),
            intended_frames_per_second: Some(1.6e6),
            engine: "packet".into(),
            failed: 0,
            retried_enobufs: 12,
            retried_eagain: 0,
            unconfirmed_frames: None,
            truncated: 3,
            interfaces: Vec::new(),
            interface_counters: vec![InterfaceCounters::compare("v0", sent, sent + 2)],
            cores: [(1, sent / 2, 0.93), (0, sent - sent / 2, 0.88)]
                .map(|(core, frames, cpu)| Core {
                    core,
                    frames,
                    bytes: frames * 445,
                    cpu_ratio: Some(cpu),
                    ..Core::default()
                })
                .to_vec(),
            stamped_together: Some(16),
            departures: Some(Departures {
                stamped_by: "hardware".into(),
                asked_frames: 5_994,
                stamped_frames: 5_990,
                lateness_ns: Distribution::from_samples(
                    &mut (0..5_990).map(|n| 3_000 + n % 700).collect::<Vec<u64>>(),
                ),
                handing_ns: Distribution::from_samples(
                    &mut (0..5_990).map(|n| 1_900 + n % 90).collect::<Vec<u64>>(),
                ),
                clock_error_ns: 350,
            }),
        }),
        rx: Some(Rx {
            totals: Totals::over(arrived, arrived * 445, 6 * second),
            duplicated_frames: Some(0),
            reordered_frames: Some(4),
            corrupted_frames: None,
            foreign_frames: Some(2),
            dropped_frames: None,
            ..Rx::default()
        }),
        loss: Some(Loss::of(lost, sent)),
        ports: Vec::new(),
        latency_ns: Some(latency.clone()),
        conversations: vec![],
        latency_clock: Some(LatencyClock {
            name: "tai".into(),
            max_error_ns: Some(41_000),
            estimated_error_ns: Some(900),
            synchronised: Some(true),
            stepped_ns: None,
            comparison_error_ns: None,
            arrivals: Some("hardware".into()),
            hardware: Some(HardwareStamps {
                frames: arrived - 12,
                software_frames: 12,
                max_error_ns: 180,
                set_ns: None,
            }),
        }),
        delay_variation: Some(DelayVariation {
            jitter_ns: Some(1310.5),
            pdv_ns: latency.p999 - latency.min,
            ipdv_ns: Distribution::from_samples(
                &mut (0..10_000u64).map(|i| i * i / 20_000).collect::<Vec<_>>(),
            ),
        }),
        arrival_gap_ns: None,
        flows: Some(Flows::over(2_034_300, sent - 21_800, 21_800, 6 * second)),
        pacing: Some(Pacing {
            measured_at: Some("sender".into()),
            first_frame_late_ns: Some(1_200),
            gap_error_ns: Distribution::from_samples(
                &mut (0..10_000u64).map(|i| i * i / 9_000 + 80).collect::<Vec<_>>(),
            ),
            lateness_ns: Distribution::from_samples(
                &mut (0..10_000u64).map(|i| if i < 6_000 { 0 } else { i / 8 }).collect::<Vec<_>>(),
            ),
            last_frame_late_ns: Some(820),
            late_frames: Some(31),
            late_threshold_ns: Some(10_000),
            back_to_back_ratio: Some(0.0004),
            waiting: Some("spun".into()),
            wake_up_p99_ns: Some(1_300_000),
            priority: None,
            catch_up: Some(CatchUp {
                stalls: 1,
                longest_stall_ns: 100_000_000,
                frames: 160_000,
                rate_limit_ratio: 2.0,
                abandoned_ns: 0,
                ..CatchUp::default()
            }),
        }),
        counters: vec![
            HostCounter {
                place: "rx0".into(),
                source: "interface".into(),
                name: "rx_missed_errors".into(),
                rise: lost / 2,
                own_frames: None,
                explains: Some("the receive ring was full".into()),
            },
            HostCounter {
                place: "rx0".into(),
                source: "interface".into(),
                name: "rx_packets".into(),
                rise: sent - lost,
                own_frames: None,
                explains: None,
            },
        ],
        frame_sizes: [
            (64, 64, 3_100_000),
            (65, 127, 900_000),
            (128, 255, 400_000),
            (256, 511, 300_000),
            (512, 1023, 700_000),
            (1024, 1518, 4_200_000),
        ]
        .map(|(from, to, count)| Bucket { from, to, count })
        .to_vec(),
    };
    report.result.verdict.fall_short(
        Code::FramesLost,
        format!("{} of {} frames sent did not arrive", units::count(lost), units::count(sent)),
    );
    report.streams = (0..10)
        .map(|stream| Stream {
            stream,
            name: (stream == 0).then(|| "voice".into()),
            tx_frames: Some(sent / 10),
            rx_frames: arrived / 10,
            rx_bytes: arrived / 10 * 445,
            lost_frames: lost / 10,
            duplicated_frames: 0,
            reordered_frames: u64::from(stream % 3),
            reorder_extent_max: (stream % 3 > 0).then_some(4),
            reorder_extent_mean: (stream % 3 > 0).then_some(2.5),
            jitter_ns: Some(1310.5),
            gap_max_ns: Some(100_000_000),
            ..Stream::default()
        })
        .map(|stream| Stream {
            latency_ns: Some(Distribution { histogram: Vec::new(), ..latency.clone() }),
            ..stream
        })
        .collect();
    report.warnings.add(Code::SettingWithoutEffect, "v0 has no link speed; percent rates are refused");
    report.list_notes();
    report
}

/// 100 ms number `n`: a stall at 20, catching up at 21 and 22, loss from 35 to 39.
fn interval(n: u64) -> Interval {
    let step = 100_000_000;
    let tx = match n {
        20 => 0,
        21 | 22 => 240_000,
        _ => 160_000,
    };
    let lost = if (35..40).contains(&n) { 12_000 * (n - 34) } else { 0 };
    Interval {
        start_ns: n * step,
        end_ns: (n + 1) * step,
        intended_frames: Some(160_000),
        tx_frames: Some(tx),
        tx_bytes: Some(tx * 445),
        rx_frames: Some(tx - lost),
        rx_bytes: Some((tx - lost) * 445),
        lost_frames: (tx > 0).then_some(lost),
        late_frames: Some(if n == 21 { 31 } else { 0 }),
        latency_p50_ns: (tx > 0).then_some(12_000 + n * 50),
        latency_p99_ns: (tx > 0).then_some(38_000 + lost),
        latency_p999_ns: (tx > 0).then_some(52_000 + lost),
        latency_max_ns: (tx > 0).then_some(91_000 + lost),
    }
}

/// Buckets eight to the octave, as a meter keeps them, falling off from 10 us to 4 ms.
fn latency(frames: u64) -> Distribution {
    let buckets = (13..22u32).flat_map(|octave| {
        (0..8u64).map(move |part| {
            let (base, width) = (1u64 << octave, 1u64 << (octave - 3));
            let from = base + part * width;
            let distance = (from as f64).log2() - 13.6;
            let share = if distance < 0.0 { (distance * 9.0).exp() } else { (-distance * 2.4).exp() };
            Bucket { from, to: from + width - 1, count: (share * 1e6 * frames as f64 / 9.4e6) as u64 }
        })
    });
    Distribution::from_histogram(buckets, Exact::default()).expect("some buckets are filled")
}

/// Reports with little or nothing in them, each with its name.
pub fn sparse() -> Vec<(&'static str, Report)> {
    let empty = Report::new("measure");

    let mut failed = Report::new("replay");
    failed.result.verdict.fail(Code::Other, "eth9: no such interface");

    let mut one_interval = Report::new("replay");
    one_interval.result.tx =
        Some(Tx { totals: Totals::over(1, 60, 1_000), engine: "null".into(), ..Tx::default() });
    one_interval.intervals =
        vec![Interval { end_ns: 1_000, tx_frames: Some(1), tx_bytes: Some(60), ..Interval::default() }];

    let mut no_frames = Report::new("replay");
    no_frames.result.tx = Some(Tx { engine: "packet".into(), ..Tx::default() });
    no_frames.result.rx = Some(Rx::default());
    no_frames.result.loss = Some(Loss::default());
    no_frames.intervals =
        vec![
            Interval { tx_frames: Some(0), rx_frames: Some(0), lost_frames: Some(0), ..Interval::default() };
            3
        ];

    let mut only_received = Report::new("measure");
    only_received.result.rx =
        Some(Rx { totals: Totals::over(5_000, 300_000, 1_000_000_000), ..Rx::default() });
    only_received.result.latency_ns =
        Distribution::from_histogram([Bucket { from: 0, to: 0, count: 5_000 }], Exact::default());
    only_received.result.pacing =
        Some(Pacing { gap_error_ns: Distribution::from_samples(&mut [0, 0, 0]), ..Pacing::default() });
    only_received.intervals =
        vec![Interval { end_ns: 1_000_000_000, rx_frames: Some(5_000), ..Interval::default() }];

    vec![
        ("empty", empty),
        ("failed", failed),
        ("one_interval", one_interval),
        ("no_frames", no_frames),
        ("only_received", only_received),
    ]
}
