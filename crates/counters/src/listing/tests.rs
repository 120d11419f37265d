//! Listings as tools print them, shortened.

use super::*;

#[track_caller]
fn plain(before: &str, after: &str, form: Form, text: &str) {
    let found = subtract(before, after).expect("two listings");
    assert_eq!((found.form, found.text.as_str()), (form, text));
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn netstat_is_matched_by_name_although_it_hides_what_is_zero() {
    plain(
        "Ip:\n    Forwarding: 2\n    100 total packets received\nIcmp:\n    ICMP input histogram:\n        destination unreachable: 1\nTcp:\n    5 connections established\n    300 segments sent out\nTcpExt:\n    Quick ack mode was activated 4 times\n    TCPTimeouts: 2\n",
        "Ip:\n    Forwarding: 2\n    150 total packets received\nIcmp:\n    ICMP input histogram:\n        destination unreachable: 3\n        echo requests: 7\nTcp:\n    4 connections established\n    900 segments sent out\n    12 segments retransmitted\nTcpExt:\n    11 delayed acks sent\n    Quick ack mode was activated 9 times\n    TCPTimeouts: 2\n",
        Form::Netstat,
        "Ip:\n    Forwarding: 2\n    50 total packets received\nIcmp:\n    ICMP input histogram:\n        destination unreachable: 2\n        echo requests: 7\nTcp:\n    4 connections established\n    600 segments sent out\n    12 segments retransmitted\nTcpExt:\n    11 delayed acks sent\n    Quick ack mode was activated 5 times\n    TCPTimeouts: 0\n",
    );
}

#[test]
fn bsds_netstat_counts_in_singular_and_plural_and_in_brackets() {
    plain(
        "tcp:\n\t1 packet sent\n\t\t1 data packet (100 bytes)\n",
        "tcp:\n\t5 packets sent\n\t\t3 data packets (350 bytes)\n\t\t2 ack-only packets (1 delayed)\n",
        Form::Netstat,
        "tcp:\n\t4 packets sent\n\t\t2 data packets (250 bytes)\n\t\t2 ack-only packets (1 delayed)\n",
    );
}

#[test]
fn ethtools_names_may_have_numbers() {
    plain(
        "NIC statistics:\n     rx_queue_0_packets: 10\n     [1]: tx_done: 4\n",
        "NIC statistics:\n     rx_queue_0_packets: 15\n     rx_queue_1_packets: 3\n     [1]: tx_done: 9\n",
        Form::Ethtool,
        "NIC statistics:\n     rx_queue_0_packets: 5\n     rx_queue_1_packets: 3\n     [1]: tx_done: 5\n",
    );
}

#[test]
fn pairs_of_lines_keep_their_gauges_and_find_columns_by_name() {
    plain(
        "Tcp: RtoMin MaxConn CurrEstab InSegs\nTcp: 200 -1 3 10\nUdp: NoPorts\nUdp: 1\n",
        "Tcp: RtoMin MaxConn CurrEstab NewOne InSegs\nTcp: 200 -1 2 4 30\nUdp: NoPorts\nUdp: 1\n",
        Form::Pairs,
        "Tcp: RtoMin MaxConn CurrEstab NewOne InSegs\nTcp: 200 -1 2 4 20\nUdp: NoPorts\nUdp: 0\n",
    );
}

#[test]
fn nstat_and_lists_of_names_keep_their_columns() {
    plain(
        "#kernel\nIpInReceives                    5695               0.0\nTcpCurrEstab                    2                  0.0\n",
        "#kernel\nIpInReceives                    5700               0.0\nIpForwDatagrams                 12                 0.0\nTcpCurrEstab                    1                  0.0\n",
        Form::Nstat,
        "#kernel\nIpInReceives                    5                  0.0\nIpForwDatagrams                 12                 0.0\nTcpCurrEstab                    1                  0.0\n",
    );
    plain(
        "Ip6InReceives                   \t5\nIp6OutRequests                  \t1\n",
        "Ip6InReceives                   \t25\nIp6OutRequests                  \t1\n",
        Form::Names,
        "Ip6InReceives                   \t20\nIp6OutRequests                  \t0\n",
    );
}

#[test]
fn interfaces_and_cpus_are_matched_by_their_names() {
    let head = "Inter-|   Receive\n face |bytes    packets\n";
    plain(
        &format!("{head}    lo: 100 5\n  eth0: 2000 10\n"),
        &format!("{head}  eth0: 2500 16\n    lo: 100 5\n"),
        Form::Dev,
        &format!("{head}  eth0:  500  6\n    lo:   0 0\n"),
    );
    let cpu = |processed: u32, cpu: u32| {
        let zeros = " 00000000".repeat(11);
        format!("{processed:08x}{zeros} {cpu:08x} 00000000 00000000\n")
    };
    plain(
        &(cpu(10, 0) + &cpu(0xffff_fff0, 1)),
        &(cpu(0xffff_ffff, 1) + &cpu(10, 0)),
        Form::Softnet,
        &(cpu(15, 1) + &cpu(0, 0)),
    );
}

#[test]
fn json_keeps_its_text_and_its_order() {
    plain(
        r#"{"kernel": {"TcpOutSegs": 5, "TcpCurrEstab": 1, "IpInReceives": 1.5}}"#,
        r#"{"kernel": {"TcpOutSegs": 15, "IcmpMsg\"": 2, "TcpCurrEstab":  7, "IpInReceives": 2.5 }}"#,
        Form::Json,
        r#"{"kernel": {"TcpOutSegs": 10, "IcmpMsg\"": 2, "TcpCurrEstab":  7, "IpInReceives": 2.5 }}"#,
    );
    plain(
        r#"[{"ifname":"a","mtu":1500,"stats64":{"rx":{"bytes":10}}},{"ifname":"b","stats64":{"rx":{"bytes":1}}}]"#,
        r#"[{"ifname":"b","stats64":{"rx":{"bytes":4}},"up":true},{"ifname":"a","mtu":1500,"stats64":{"rx":{"bytes":30}}}, null, []]"#,
        Form::Json,
        r#"[{"ifname":"b","stats64":{"rx":{"bytes":3}},"up":true},{"ifname":"a","mtu":1500,"stats64":{"rx":{"bytes":20}}}, null, []]"#,
    );
    let snapshot = |at: u64, segments: u64, connections: i64| {
        format!(
            r#"{{"schema":"netdyno.counters/1","realtime_ns":1,"monotonic_ns":{at},"counters":{{"Tcp.OutSegs":{segments}}},"gauges":{{"Tcp.CurrEstab":{connections}}}}}"#
        )
    };
    plain(&snapshot(5, 100, 3), &snapshot(9, 140, 2), Form::Json, &snapshot(9, 40, 2));
}

#[test]
fn other_text_is_matched_line_by_line_where_its_words_agree() {
    let found = subtract(
        "host up 3 hours, load 0.5\nframes 10 lost 1\nsent 5 to 10.0.0.1\n",
        "host up 4 hours, load 0.7\nframes 30 lost 4\ngot 9 from 10.0.0.1\nend 7\n",
    )
    .expect("two texts");
    assert_eq!(found.form, Form::Unknown);
    assert_eq!(found.text, "host up 4 hours, load 0.7\nframes 20 lost 3\ngot 9 from 10.0.0.1\nend 7\n");
    let lines: Vec<&str> = found.warnings.iter().map(|warning| &warning[..7]).collect();
    assert_eq!(lines, ["line 1:", "line 3:", "line 4:"]);
}

#[test]
fn what_fell_or_is_gone_is_told() {
    let found = subtract("a 10\nb 4294967290\nc 5\n", "a 4\nb 6\n").expect("two lists");
    assert_eq!(found.text, "a -6\nb 12\n");
    assert_eq!(found.warnings.len(), 3);
    assert!(found.warnings[0].contains("`a` fell from 10 to 4"));
    assert!(found.warnings[1].contains("wrapped"));
    assert!(found.warnings[2].contains("`c` is in the first file only"));
    let long = "x 99999999999999999999999\n";
    assert!(subtract(long, long).expect("two lists").warnings[0].contains("64 bits"));
}

#[test]
fn warnings_have_an_end() {
    let list = |n: u32| (0..100).map(|name| format!("a{name} {n}\n")).collect::<String>();
    let found = subtract(&list(9), &list(3)).expect("two lists");
    assert_eq!(found.warnings.len(), MOST_WARNINGS + 1);
    assert_eq!(found.warnings.last().map(String::as_str), Some("and 80 more such warnings"));
}

#[test]
fn what_are_no_two_listings_of_one_tool_is_refused() {
    let netstat = "Ip:\n    1 total packets received\n";
    assert_eq!(subtract("nothing\n", netstat), Err(ListingError::NoNumbers(Which::First)));
    assert_eq!(subtract(netstat, ""), Err(ListingError::NoNumbers(Which::Second)));
    assert_eq!(subtract(netstat, "a 1\n"), Err(ListingError::Forms(Form::Netstat, Form::Names)));
    let broken = subtract("{\"a\": 1}", "{\"a\": 1").expect_err("broken JSON");
    assert!(matches!(broken, ListingError::Json(Which::Second, _)), "{broken}");
}

proptest::proptest! {
    #[test]
    fn no_text_does_harm_and_nothing_rises_from_a_text_to_itself(
        words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..60),
        others in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..60),
    ) {
        let (text, other) = (words.concat(), others.concat());
        let _ = subtract(&text, &other);
        if let Ok(same) = subtract(&text, &text) {
            proptest::prop_assert_eq!(same.text.lines().count(), text.lines().count());
            let odd = same.warnings.iter().any(|warning| !warning.contains("64 bits"));
            proptest::prop_assert!(!odd, "{:?}", same.warnings);
        }
    }

    #[test]
    fn json_of_any_shape_keeps_its_shape(text in json()) {
        let found = subtract(&text, &text).expect("two of the same");
        let shape = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        proptest::prop_assert_eq!(shape(&found.text), shape(&text));
        proptest::prop_assert!(serde_json::from_str::<serde_json::Value>(&found.text).is_ok());
    }
}

const WORDS: [&str; 30] = [
    "Ip:",
    "Tcp: ",
    "InSegs",
    "12",
    "7",
    "18446744073709551615",
    "99999999999999999999",
    "{",
    "\"a\"",
    "\"\\\\é\"",
    ":",
    "[",
    "]",
    "}",
    ",",
    " ",
    "\n",
    "\n    ",
    "NIC statistics:\n",
    "#kernel\n",
    "Inter-|\n",
    "ä",
    "00000001 ",
    "sockets: used ",
    "-",
    ".5",
    "\t",
    "\r\n",
    "a 1\n",
    ": 3",
];

/// Objects and lists with members that may have one name twice.
fn json() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        Just("\"\\\\é\\\"1\"".to_owned()),
        Just("1.5".to_owned()),
        Just("null".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 32, 5, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..5)
            .prop_map(|items| format!("[{}]", items.join(" , ")));
        let name = proptest::sample::select(&["a", "b", "ifname", "\\\\é"][..]);
        let members = proptest::collection::vec((name, inner), 0..5).prop_map(|members| {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![list, members]
    });
    value.prop_map(|value| format!("{{\"n\": 1, \"v\": {value}}}"))
}

#[test]
fn odd_text_does_no_harm() {
    let odd = [
        "1",
        "ä1é 2\u{a0}3\n",
        "#\n",
        "Ip:\nIp: 1",
        "[1",
        "a: 1\na: \n",
        "{\"a\":{\"a\":1,\"a\":2}}",
        "\u{0}1\r\n:::1",
        "[[[1]]]",
    ];
    for a in odd {
        for b in odd {
            let _ = subtract(a, b);
        }
        if let Ok(same) = subtract(a, a) {
            assert!(!same.text.is_empty());
        }
    }
}
