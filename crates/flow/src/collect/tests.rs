use super::*;
use crate::export::{Exporter, Settings, Status};
use crate::key::{Key, Parts};
use crate::record::time_ns;
use crate::sampling::Flows;
use crate::table::{Ended, Flow, Limits, Over, Table};
use crate::template::{Context, Version, usual};
use proptest::prelude::*;

const NOW: u64 = 1_700_000_123_456_000_000;

fn settings(version: Version) -> Settings {
    Settings {
        version,
        template: usual(version),
        first_template: 257,
        domain: 7,
        both_ways: false,
        signed: false,
        longest: 1452,
        refresh_messages: 20,
        refresh_ns: 60_000_000_000,
        context: Context {
            began_ns: NOW - 100_000_000_000,
            interfaces: [[3, 0], [0, 3]],
            sampling: 1,
            random: false,
            flows: Flows::all(),
        },
    }
}

fn over() -> impl Strategy<Value = Over> {
    let addresses = prop_oneof![
        any::<[u32; 2]>().prop_map(|a| a.map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)))),
        any::<[u128; 2]>().prop_map(|a| a.map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))),
    ];
    let counts = (1..u64::from(u32::MAX), 1..u64::from(u32::MAX), 0..90_000u64, 0..9_000u64);
    (addresses, any::<[u16; 2]>(), any::<(u8, u8)>(), proptest::option::of(1u16..4095), counts, 0..64u16)
        .prop_map(|(addresses, ports, (protocol, tos), vlan, (packets, octets, first, lasted), tcp_flags)| {
            let key = Key::new(Parts { addresses, ports, protocol, tos, vlan }).expect("one version");
            let first = NOW - 100_000_000_000 + first * 1_000_000;
            let flow = Flow {
                key,
                packets,
                octets,
                times_ns: [first, first + lasted * 1_000_000],
                tcp_flags,
                ttl: [1, 2],
                lengths: [40, 1500],
                macs: [[2; 6]; 2],
                mpls: [0; 3],
                egress: false,
            };
            Over { flow, why: Ended::Idle, back: None, signs: None }
        })
}

pub(super) fn room() -> Room {
    Room::of(1 << 24)
}

#[test]
fn all_sessions_together_keep_no_more_than_there_is_room() {
    let mut left = Room::of(200_000);
    let mut sessions: Vec<Session> = (0..50).map(|_| Session::new(false)).collect();
    for (number, session) in (0..60_000u32).zip((0..50).cycle()) {
        let id = (256 + number % 60_000) as u16;
        let mut set = vec![0, 2, 0, 12];
        set.extend(id.to_be_bytes());
        set.extend([0, 1, 0, 1, 0, 4]);
        // Data that waits for a template takes of it, too.
        set.extend([0xff, 0xff, 0, 104]);
        set.extend([0; 100]);
        sessions[session].message(&message(0, &set), &mut left, &mut |_, _| ());
    }
    let kept: usize = sessions
        .iter()
        .flat_map(|session| session.domains.values())
        .map(|domain| {
            let templates = domain.templates.values().map(|known| known.template.bytes());
            DOMAIN + templates.sum::<usize>() + domain.waiting.all().0 + domain.sequence.bytes()
        })
        .sum();
    assert!(kept <= 200_000 && kept > 50_000, "{kept}");
    assert!(sessions.iter().all(|session| session.counters().refused > 0));
    assert!(sessions.iter().map(Session::taken).sum::<usize>() >= kept);
    sessions.into_iter().for_each(|session| session.end(&mut left));
    assert_eq!(left, Room::of(200_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(overs in proptest::collection::vec(over(), 1..200), which in 0usize..3) {
        let version = [Version::V5, Version::V9, Version::Ipfix][which];
        let mut exporter = Exporter::new(settings(version)).expect("a template");
        let mut messages = Vec::new();
        let mut send = |message: crate::export::Message<'_>| messages.push(message.bytes.to_vec());
        for over in &overs {
            exporter.add(over, NOW, &mut send);
        }
        // Totals count by their differences; those of a domain that is seen to begin count from zero on.
        exporter.status(&Status { unsent: [2, 3, 4], ignored_packets: 1, ..Status::default() }, NOW, &mut send);
        exporter.status(&Status { unsent: [5, 6, 7], ignored_packets: 9, ..Status::default() }, NOW, &mut send);
        exporter.flush(NOW, &mut send);
        let mut session = Session::new(true);
        let mut read = Vec::new();
        for message in &messages {
            prop_assert!(message.len() <= 1464, "{}", message.len());
            session.message(message, &mut room(), &mut |record, _| read.push(*record));
        }
        let wanted: Vec<&Over> =
            overs.iter().filter(|over| version != Version::V5 || !over.flow.key.is_v6()).collect();
        prop_assert_eq!(read.len(), wanted.len());
        // Of IPv4 and IPv6 each are in their order.
        let key = |record: &Record| record.addresses.map(|address| address.expect("an address"));
        let mut left: Vec<&Over> = wanted;
        for record in &read {
            let at = left.iter().position(|over| {
                over.flow.key.parts().addresses == key(record)
                    && over.flow.packets == record.packets
                    && over.flow.octets == record.octets
            });
            let over = left.remove(at.expect("one that was written"));
            let parts = over.flow.key.parts();
            let icmp = matches!(parts.protocol, 1 | 58);
            prop_assert!(record.ports == parts.ports || icmp, "{:?} {:?}", record.ports, parts.ports);
            prop_assert_eq!((record.protocol, record.tos), (parts.protocol, parts.tos));
            prop_assert_eq!(record.tcp_flags, over.flow.tcp_flags);
            prop_assert_eq!(record.times_ns, over.flow.times_ns);
            prop_assert_eq!(record.interfaces, [3, 0]);
            if version != Version::V5 {
                prop_assert_eq!(record.vlans[0], parts.vlan.unwrap_or(0));
                prop_assert_eq!(record.end_reason, 1);
            }
        }
        let counters = session.counters();
        prop_assert_eq!((counters.malformed, counters.missing_records, counters.missing_messages), (0, 0, 0));
        if version == Version::Ipfix {
            prop_assert_eq!((counters.unsent, counters.ignored_packets), ([5, 6, 7], 9));
        }
    }

    #[test]
    fn damage_is_no_panic(
        overs in proptest::collection::vec(over(), 1..60),
        which in 0usize..3,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let version = [Version::V5, Version::V9, Version::Ipfix][which];
        let mut exporter = Exporter::new(settings(version)).expect("a template");
        let mut messages = Vec::new();
        let mut send = |message: crate::export::Message<'_>| messages.push(message.bytes.to_vec());
        overs.iter().for_each(|over| exporter.add(over, NOW, &mut send));
        exporter.flush(NOW, &mut send);
        let mut session = Session::new(true);
        for mut message in messages {
            for (at, value) in &changes {
                let at = at.index(message.len());
                message[at] = *value;
            }
            message.truncate(cut.index(message.len() + 1));
            session.message(&message, &mut room(), &mut |_, _| ());
        }
    }

    #[test]
    fn any_bytes_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), version in prop_oneof![Just([0, 5]), Just([0, 9]), Just([0, 10]), Just([0, 0])]) {
        let mut session = Session::new(true);
        let message: Vec<u8> = version.into_iter().chain(bytes).collect();
        session.message(&message, &mut room(), &mut |_, _| ());
    }
}

/// RFC 7011, appendix A: the example's message, its template of five elements and three records.
fn example() -> Vec<u8> {
    let mut sets = Vec::new();
    // A.2.1: template set 256.
    sets.extend([0, 2, 0, 28, 1, 0, 0, 5]);
    for (id, length) in [(8u16, 4u16), (12, 4), (15, 4), (2, 4), (1, 4)] {
        sets.extend(id.to_be_bytes());
        sets.extend(length.to_be_bytes());
    }
    // A.3: data set 256.
    sets.extend([1, 0, 0, 64]);
    for (last, next, packets, octets) in [
        ([192, 0, 2, 12], [192, 0, 2, 254], [198, 51, 100, 1], (5009u32, 5_344_385u32)),
        ([192, 0, 2, 27], [192, 0, 2, 23], [198, 51, 100, 2], (748, 388_934)),
        ([192, 0, 2, 56], [192, 0, 2, 65], [198, 51, 100, 3], (5, 6534)),
    ]
    .map(|(a, b, c, d)| (a, b, c, d))
    {
        sets.extend(last);
        sets.extend(next);
        sets.extend(packets);
        sets.extend(octets.0.to_be_bytes());
        sets.extend(octets.1.to_be_bytes());
    }
    message(0, &sets)
}

fn message(number: u32, sets: &[u8]) -> Vec<u8> {
    message_at(1_700_000_000, number, sets)
}

fn message_at(seconds: u32, number: u32, sets: &[u8]) -> Vec<u8> {
    let mut message = vec![0, 10];
    message.extend((16 + sets.len() as u16).to_be_bytes());
    message.extend(seconds.to_be_bytes());
    message.extend(number.to_be_bytes());
    message.extend(1u32.to_be_bytes());
    message.extend(sets);
    message
}

#[test]
fn the_example_of_the_rfc_is_read() {
    let mut session = Session::new(false);
    let mut read = Vec::new();
    session.message(&example(), &mut room(), &mut |record, _| read.push(*record));
    let counted: Vec<_> = read.iter().map(|record| (record.packets, record.octets)).collect();
    assert_eq!(counted, [(5009, 5_344_385), (748, 388_934), (5, 6534)]);
    assert_eq!(read[0].addresses[0], Some("192.0.2.12".parse().expect("an address")));
    assert_eq!(read[2].next_hop, Some("198.51.100.3".parse().expect("an address")));
}

#[test]
fn records_wait_for_a_late_template() {
    let whole = example();
    let (template, data) = (&whole[16..44], &whole[44..]);
    let mut session = Session::new(false);
    let mut count = 0;
    session.message(&message(0, data), &mut room(), &mut |_, _| count += 1);
    assert_eq!((count, session.counters().waiting_sets), (0, 1));
    session.message(&message(3, template), &mut room(), &mut |_, _| count += 1);
    assert_eq!((count, session.counters().waiting_sets, session.counters().missing_records), (3, 0, 0));
    // They wait within bounds.
    let mut session = Session::new(false);
    for _ in 0..3000 {
        session.message(&message(0, data), &mut room(), &mut |_, _| panic!("no template"));
    }
    assert!(session.counters().lost_sets > 1000);
}

#[test]
fn gaps_are_counted_and_late_messages_make_them_good() {
    let whole = example();
    let (template, data) = (&whole[16..44], &whole[44..]);
    let mut session = Session::new(false);
    let mut each = |_: &Record, _: &[Other<'_>]| ();
    session.message(&message(100, &whole[16..]), &mut room(), &mut each);
    session.message(&message(103, data), &mut room(), &mut each);
    assert_eq!(session.counters().missing_records, 0);
    session.message(&message(112, data), &mut room(), &mut each);
    assert_eq!(session.counters().missing_records, 6);
    session.message(&message(106, data), &mut room(), &mut each);
    assert_eq!((session.counters().missing_records, session.counters().late_messages), (3, 1));
    session.message(&message(115, data), &mut room(), &mut each);
    assert_eq!(session.counters().missing_records, 3);
    // It begins anew, some seconds later.
    session.message(&message_at(1_700_000_010, 0, template), &mut room(), &mut each);
    assert_eq!((session.counters().missing_records, session.counters().restarts), (3, 1));
    session.message(&message_at(1_700_000_010, 0, data), &mut room(), &mut each);
    session.message(&message_at(1_700_000_010, 3, data), &mut room(), &mut each);
    let counters = session.counters();
    assert_eq!((counters.missing_records, counters.restarts, counters.duplicate_messages), (3, 1, 0));
    session.message(&message_at(1_700_000_010, 3, data), &mut room(), &mut each);
    let counters = session.counters();
    assert_eq!((counters.duplicate_messages, counters.duplicate_records, counters.records), (1, 3, 24));
}

#[test]
fn ways_of_counting_are_found_out() {
    let whole = example();
    let (template, data) = (&whole[16..44], &whole[44..]);
    // An options template of two fields and a record of it; a second message holds both kinds of records.
    let options =
        [0, 3, 0, 18, 2, 0, 0, 2, 0, 1, 0, 149, 0, 4, 0, 41, 0, 4, 2, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 9];
    let both = [data, &options].concat();
    let first = [template, data].concat();
    for numbers in [
        [0, 3, 7, 10],  // RFC 7011: what came before, options among it
        [0, 3, 6, 9],   // without options
        [3, 7, 10, 13], // this message's, too
        [3, 6, 9, 12],  // softflowd
    ] {
        for lost in [false, true] {
            let mut session = Session::new(false);
            let mut each = |_: &Record, _: &[Other<'_>]| ();
            for (sets, number) in
                [&first, &both].into_iter().chain([&data.to_vec(), &data.to_vec()]).zip(numbers)
            {
                session.message(&message(number, sets), &mut room(), &mut each);
            }
            let last = numbers[3] + if lost { 6 } else { 3 };
            session.message(&message(last, data), &mut room(), &mut each);
            let missing = if lost { 3 } else { 0 };
            assert_eq!(session.counters().missing_records, missing, "{numbers:?} {lost}");
            assert_eq!((session.counters().late_messages, session.counters().restarts), (0, 0));
        }
    }
}

#[test]
fn hostile_templates_are_bounded() {
    let mut session = Session::new(false);
    let mut each = |_: &Record, _: &[Other<'_>]| ();
    for number in 0..5000u16 {
        let mut set = vec![0, 2, 0, 12];
        set.extend((256 + number).to_be_bytes());
        set.extend([0, 1, 0, 1, 0, 4]);
        session.message(&message(0, &set), &mut room(), &mut each);
    }
    assert_eq!(session.counters().refused, 5000 - MOST_TEMPLATES as u64);
    // Without a length there would be records without end.
    let mut session = Session::new(false);
    session.message(&message(0, &[0, 2, 0, 12, 1, 0, 0, 1, 0, 1, 0, 0]), &mut room(), &mut each);
    session.message(&message(0, &[1, 0, 0, 8, 0, 0, 0, 0]), &mut room(), &mut each);
    assert_eq!((session.counters().malformed, session.counters().records), (1, 0));
    // A set that is longer than its message.
    session.message(&message(0, &[1, 0, 0xff, 0xff]), &mut room(), &mut each);
    assert_eq!(session.counters().malformed, 2);
    for domain in 0..3000u32 {
        let mut message = message(0, &[1, 0, 0, 8, 0, 0, 0, 0]);
        message[12..16].copy_from_slice(&domain.to_be_bytes());
        session.message(&message, &mut room(), &mut each);
    }
    assert!(session.domains.len() <= MOST_DOMAINS);
}

#[test]
fn varying_lengths_and_enterprises_are_read() {
    let mut session = Session::new(true);
    let mut sets =
        vec![0, 2, 0, 24, 1, 0, 0, 3, 0, 82, 255, 255, 0x80, 7, 255, 255, 0, 0, 0x8b, 0x30, 0, 2, 0, 4];
    let mut data = vec![4, b'e', b't', b'h', b'7', 255, 1, 0];
    data.extend([9; 256]);
    data.extend(77u32.to_be_bytes());
    sets.extend([1, 0]);
    sets.extend((4 + data.len() as u16).to_be_bytes());
    sets.extend(data);
    let mut read = Vec::new();
    session.message(&message(0, &sets), &mut room(), &mut |record, others| {
        assert_eq!((others[0].number, others[0].bytes), (Number::iana(82), b"eth7".as_slice()));
        assert_eq!((others[1].number, others[1].bytes.len()), (Number { enterprise: 35_632, id: 7 }, 256));
        read.push(record.packets);
    });
    assert_eq!(read, [77]);
}

#[test]
fn times_of_all_kinds_are_read() {
    let ns = 1_700_000_123_456_789_000u64;
    let seconds = 1_700_000_123 + NTP;
    let fraction = (456_789_000u64 << 32).div_ceil(1_000_000_000);
    let ntp = seconds << 32 | fraction;
    const NTP: u64 = 2_208_988_800;
    assert_eq!(time_ns(Kind::Nanoseconds, &ntp.to_be_bytes()), Some(ns));
    assert_eq!(
        time_ns(Kind::Milliseconds, &(ns / 1_000_000).to_be_bytes()),
        Some(ns / 1_000_000 * 1_000_000)
    );
    assert_eq!(time_ns(Kind::Seconds, &1_700_000_123u32.to_be_bytes()), Some(1_700_000_123_000_000_000));
    let both = [1_700_000_123u64.to_be_bytes(), 456_789u64.to_be_bytes()].concat();
    assert_eq!(time_ns(Kind::Microseconds, &both), Some(ns));
    assert_eq!(time_ns(Kind::Seconds, &u64::MAX.to_be_bytes()), None);
    assert_eq!(time_ns(Kind::Nanoseconds, &[0; 8]), None);
}

#[test]
fn both_directions_of_a_record_are_read_as_a_record_each() {
    use crate::packet::Packet;
    use crate::table::{Limits, Table};
    let settings = Settings { both_ways: true, ..settings(Version::Ipfix) };
    let mut exporter = Exporter::new(settings).expect("the usual template");
    let mut table = Table::both_ways(Limits::default());
    let mut messages = Vec::new();
    for (port, answers) in [(1000, 0u64), (1001, 1), (1002, 3)] {
        let addresses = ["192.0.2.1".parse().expect("v4"), "192.0.2.2".parse().expect("v4")];
        let key =
            Key::new(Parts { addresses, ports: [port, 80], protocol: 6, tos: 0, vlan: None }).expect("v4");
        let packet = Packet {
            key,
            at_ns: NOW,
            octets: 40,
            packets: 1,
            tcp_flags: 2,
            ttl: 9,
            macs: [[1; 6], [2; 6]],
            mpls: [0; 3],
            egress: false,
            sign: None,
        };
        table.add(&packet, &mut |_| ());
        for number in 1..=answers {
            let at_ns = NOW + number * 1_000_000;
            table.add(
                &Packet { key: key.reversed(), at_ns, octets: 100, tcp_flags: 0x12, ..packet },
                &mut |_| (),
            );
        }
    }
    let mut keep =
        |message: crate::export::Message<'_>| messages.push((message.bytes.to_vec(), message.counted));
    table.flush(usize::MAX, &mut |over| exporter.add(over, NOW, &mut keep));
    exporter.flush(NOW, &mut keep);
    assert_eq!(messages.iter().map(|(_, counted)| counted[0]).sum::<u64>(), 7);
    let (mut session, mut room) = (Session::new(true), room());
    let mut read = Vec::new();
    for (message, _) in &messages {
        session.message(message, &mut room, &mut |record, others| {
            let began = others.iter().find(|other| other.number == Number::iana(239)).map(Other::unsigned);
            let of = (
                record.packets,
                record.octets,
                record.tcp_flags,
                record.times_ns[0] - NOW,
                record.times_ns[1] - NOW,
            );
            read.push((record.ports, of, began));
        });
    }
    read.sort();
    let way = |ms: u64| ms * 1_000_000;
    assert_eq!(
        read,
        [
            ([80, 1001], (1, 100, 0x12, way(1), way(1)), None),
            ([80, 1002], (3, 300, 0x12, way(1), way(3)), None),
            ([1000, 80], (1, 40, 2, 0, 0), None),
            ([1001, 80], (1, 40, 2, 0, 0), Some(1)),
            ([1002, 80], (1, 40, 2, 0, 0), Some(1)),
        ]
    );
    assert_eq!((session.counters().records, session.counters().malformed), (3, 0));
}

#[test]
fn elements_of_the_other_direction_need_flows_of_both() {
    let of = |both_ways, template: &str| {
        Exporter::new(Settings { both_ways, template: template.to_owned(), ..settings(Version::Ipfix) })
            .map(|_| ())
    };
    assert_eq!(of(true, "sourceIPv4Address reverseOctetDeltaCount biflowDirection"), Ok(()));
    for name in ["reverseOctetDeltaCount", "biflowDirection"] {
        let error =
            of(false, &format!("sourceIPv4Address {name}")).expect_err("records are of one direction");
        assert!(error.to_string().contains(name), "{error}");
    }
    let error =
        of(true, "octetDeltaCount reverseSourceIPv4Address").expect_err("a key has no other direction");
    assert!(error.to_string().contains("reverseSourceIPv4Address"), "{error}");
}

#[test]
fn templates_are_withdrawn_over_a_connection_alone() {
    let message = |sets: &[u8]| {
        let mut bytes = vec![0, 10];
        bytes.extend((16 + sets.len() as u16).to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(sets);
        bytes
    };
    let template = message(&[0, 2, 0, 12, 1, 0, 0, 1, 0, 1, 0, 4]);
    let record = message(&[1, 0, 0, 8, 0, 0, 0, 9]);
    // One is withdrawn, all of flows are, all of options are.
    let withdrawals = [[0, 2, 0, 8, 1, 0, 0, 0], [0, 2, 0, 8, 0, 2, 0, 0], [0, 3, 0, 8, 0, 3, 0, 0]];
    for (number, withdrawal) in withdrawals.iter().enumerate() {
        for connection in [false, true] {
            let mut session = if connection { Session::connection(false) } else { Session::new(false) };
            let mut room = room();
            for bytes in [&template, &record, &message(withdrawal), &record] {
                session.message(bytes, &mut room, &mut |_, _| ());
            }
            let counters = session.counters();
            let gone = connection && number < 2;
            assert_eq!(
                (counters.records, counters.waiting_sets, counters.malformed),
                if gone { (1, 1, 0) } else { (2, 0, 0) }
            );
            session.end(&mut room);
            assert_eq!(room, super::tests::room());
        }
    }
}

/// Records that are followed by others are read by other ways than the last ones of a set, and alone or several together.
#[test]
fn a_record_says_the_same_wherever_it_stands() {
    const COUNT: usize = 2 * BLOCK + 3;
    // Fields of many lengths: reduced sizes, times, addresses, MACs, what has no place, and one of no length.
    let fields: [(u16, u16); 20] = [
        (8, 4),
        (12, 4),
        (7, 2),
        (11, 2),
        (4, 1),
        (5, 1),
        (6, 2),
        (2, 3),
        (1, 8),
        (152, 8),
        (151, 4),
        (10, 4),
        (16, 3),
        (9, 1),
        (15, 4),
        (56, 6),
        (58, 2),
        (136, 1),
        (9999, 11),
        (60, 0),
    ];
    let length: usize = fields.iter().map(|(_, length)| usize::from(*length)).sum();
    let mut template = vec![1, 0, 0, fields.len() as u8];
    for (id, length) in fields {
        template.extend(id.to_be_bytes());
        template.extend(length.to_be_bytes());
    }
    let record: Vec<u8> = (0..length).map(|at| (at * 37 + 11) as u8).collect();
    let data = record.repeat(COUNT);
    let set = |number: u16, body: &[u8]| {
        [&number.to_be_bytes()[..], &(body.len() as u16 + 4).to_be_bytes(), body].concat()
    };
    let sets = [set(2, &template), set(256, &data)].concat();
    let head = [&10u16.to_be_bytes()[..], &(sets.len() as u16 + 16).to_be_bytes(), &[0; 12]].concat();
    let message = [head, sets].concat();
    let read = |keeps_others: bool| {
        let (mut session, mut room) = (Session::new(keeps_others), room());
        let mut read = Vec::new();
        session.message(&message, &mut room, &mut |record, others| {
            let others: Vec<(Number, Vec<u8>)> =
                others.iter().map(|other| (other.number, other.bytes.to_vec())).collect();
            read.push((*record, others));
        });
        assert_eq!((session.counters().records, session.counters().malformed), (COUNT as u64, 0));
        read
    };
    let [all, together] = [true, false].map(read);
    assert_eq!((all.len(), together.len()), (COUNT, COUNT));
    assert!(all.iter().all(|one| *one == all[0]));
    assert!(together.iter().all(|one| *one == (all[0].0, Vec::new())));
    let (of, others) = &all[0];
    assert_eq!(of.packets, u64::from_be_bytes([0, 0, 0, 0, 0, record[16], record[17], record[18]]));
    // The version of IP is what the addresses say.
    assert_eq!(others.iter().map(|(number, _)| number.id).collect::<Vec<_>>(), [9999]);
}

#[test]
fn records_say_which_way_packets_went() {
    for version in [Version::Ipfix, Version::V9, Version::V5] {
        let template = format!("{} flowDirection", usual(version));
        let mut exporter = Exporter::new(Settings { template, ..settings(version) }).expect("a template");
        let mut walk = Walk::new(Choice { directions: true, ..Choice::default() });
        let mut table = Table::new(Limits::default());
        // UDP from 192.0.2.1:7 to 192.0.2.2:9: as it came in, and three times as it went out again.
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([0, 7, 0, 9, 0, 8, 0, 0]);
        for egress in [true, false, true, true] {
            let frame = packet::Frame { egress, ..packet::Frame::ethernet(&frame, NOW) };
            table.add(&walk.packet(&frame).expect("UDP"), &mut |_| ());
        }
        let mut messages = Vec::new();
        let mut keep = |message: crate::export::Message<'_>| messages.push(message.bytes.to_vec());
        table.flush(usize::MAX, &mut |over| exporter.add(over, NOW, &mut keep));
        exporter.flush(NOW, &mut keep);
        let (mut session, mut room) = (Session::new(false), room());
        let mut read = Vec::new();
        for message in &messages {
            session.message(message, &mut room, &mut |record, _| {
                read.push((record.packets, record.direction, record.interfaces));
            });
        }
        read.sort_unstable();
        // Version 5 has no field for it.
        let leaving = u8::from(version != Version::V5);
        assert_eq!(read, [(1, 0, [3, 0]), (3, leaving, [0, 3])], "{version:?}");
    }
}

/// A set of so many records of a template with one field of four bytes.
fn records(template: u16, count: u16) -> Vec<u8> {
    let mut set = template.to_be_bytes().to_vec();
    set.extend((4 + 4 * count).to_be_bytes());
    (0..count).for_each(|number| set.extend(u32::from(number + 1).to_be_bytes()));
    set
}

fn template_of(number: u16) -> Vec<u8> {
    [&[0, 2, 0, 12][..], &number.to_be_bytes(), &[0, 1, 0, 1, 0, 4]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A message is of records of one of two templates, or of both, and is lost or not. The templates come late, and last.
    #[test]
    fn what_waited_for_its_template_is_counted_where_it_came(
        messages in proptest::collection::vec(([0u16..8, 0u16..8], 0u8..10, 0u8..10, any::<bool>()), 1..40),
        late in [0usize..50, 0usize..50],
        first in prop_oneof![Just(0u32), Just(u32::MAX - 30), any::<u32>()],
    ) {
        let (mut session, mut room, mut read) = (Session::new(false), room(), 0u64);
        let mut each = |_: &Record, _: &[Other<'_>]| read += 1;
        let (mut number, mut came, mut begun) = (first, 0u64, None);
        for (at, (counts, lost, twice, alone)) in messages.iter().enumerate() {
            for (which, template) in [256u16, 257].into_iter().enumerate() {
                if late[which] == at {
                    session.message(&message(number, &template_of(template)), &mut room, &mut each);
                    begun.get_or_insert(number);
                }
            }
            let counts = if *alone { [counts[0], 0] } else { *counts };
            let sets: Vec<u8> = [256, 257]
                .into_iter()
                .zip(counts)
                .filter(|(_, count)| *count > 0)
                .flat_map(|(template, count)| records(template, count))
                .collect();
            let count = u32::from(counts[0] + counts[1]);
            if count == 0 {
                continue;
            }
            if *lost > 2 {
                begun.get_or_insert(number);
                came += u64::from(count);
                let bytes = message(number, &sets);
                session.message(&bytes, &mut room, &mut each);
                if *twice == 0 {
                    session.message(&bytes, &mut room, &mut each);
                }
            }
            number = number.wrapping_add(count);
        }
        let sent = begun.map_or(0, |begun| u64::from(number.wrapping_sub(begun)));
        for template in [256, 257] {
            session.message(&message(number, &template_of(template)), &mut room, &mut each);
        }
        let counters = *session.counters();
        prop_assert_eq!(counters.records, read);
        prop_assert_eq!(counters.records - counters.duplicate_records, came, "{:?}", counters);
        let missing = if begun.is_some() { sent - came } else { 0 };
        let of = (counters.missing_records, counters.uncounted_records, counters.restarts, counters.late_messages);
        prop_assert_eq!(of, (missing, 0, 0, 0), "{:?}", counters);
    }
}

#[test]
fn records_that_nobody_can_count_are_not_said_to_be_missing() {
    let (mut session, mut room) = (Session::new(false), room());
    let mut each = |_: &Record, _: &[Other<'_>]| ();
    session.message(&message(0, &template_of(256)), &mut room, &mut each);
    session.message(&message(0, &records(256, 5)), &mut room, &mut each);
    // Ten of an unknown template; then ten are lost, and five come.
    session.message(&message(5, &records(300, 10)), &mut room, &mut each);
    session.message(&message(25, &records(256, 5)), &mut room, &mut each);
    let counters = *session.counters();
    assert_eq!((counters.missing_records, counters.uncounted_records, counters.waiting_sets), (0, 20, 1));
    session.message(&message(30, &template_of(300)), &mut room, &mut each);
    let counters = *session.counters();
    assert_eq!((counters.missing_records, counters.uncounted_records, counters.records), (10, 0, 20));
    // One that waits too long stays uncounted.
    session.at(1_000_000_000);
    session.message(&message(30, &records(301, 4)), &mut room, &mut each);
    session.message(&message(34, &records(256, 1)), &mut room, &mut each);
    session.at(10_000_000_000_000);
    session.age(&mut room);
    session.message(&message(35, &template_of(301)), &mut room, &mut each);
    let counters = *session.counters();
    assert_eq!((counters.lost_sets, counters.waiting_sets, counters.uncounted_records), (1, 0, 4));
    assert_eq!((counters.missing_records, session.waiting), (10, 0));
}

#[test]
fn empty_sets_take_room_and_a_template_looks_at_its_own_alone() {
    let (mut session, mut room) = (Session::new(false), Room::of(64 << 20));
    let mut each = |_: &Record, _: &[Other<'_>]| ();
    // 16,000 empty sets a message, each of a template of its own: once 156 MB of them took 2.1 GB.
    for first in 0..4u16 {
        let sets: Vec<u8> = (0..16_000u16)
            .flat_map(|at| [(256 + first * 16_000 + at).to_be_bytes(), [0, 4]].concat())
            .collect();
        session.message(&message(0, &sets), &mut room, &mut each);
    }
    let counters = *session.counters();
    assert_eq!(counters.waiting_sets + counters.lost_sets, 64_000);
    assert!(counters.waiting_sets as usize <= MOST_WAITING / Set::bytes(0), "{counters:?}");
    assert!(session.taken() <= MOST_WAITING + DOMAIN + 4096, "{}", session.taken());
    let domain = session.domains.values().next().expect("a domain");
    assert!(domain.waiting.all().0 == session.waiting && session.waiting <= MOST_WAITING);
    // Whatever templates come, what waits for others is left alone, and is there as before.
    let waiting = counters.waiting_sets;
    for number in 60_000..65_000u16 {
        session.message(&message(0, &template_of(number)), &mut room, &mut each);
    }
    assert_eq!(session.counters().waiting_sets, waiting);
    session.message(&message(0, &template_of(256)), &mut room, &mut each);
    assert!(session.counters().waiting_sets <= waiting);
}

#[test]
fn one_exporter_that_takes_all_it_can_leaves_others_theirs() {
    let mut room = Room::of(64 << 20);
    let mut each = |_: &Record, _: &[Other<'_>]| ();
    // Each field costs some bytes: templates as large as a datagram holds, in many domains.
    let fields = 1000u16;
    let large = |number: u16| {
        let mut set = vec![0, 2];
        set.extend((8 + 4 * fields).to_be_bytes());
        set.extend(number.to_be_bytes());
        set.extend(fields.to_be_bytes());
        (0..fields).for_each(|_| set.extend([0, 1, 0, 4]));
        set
    };
    let mut greedy: Vec<Session> = (0..8).map(|_| Session::new(false)).collect();
    for session in &mut greedy {
        for number in 256..2000 {
            session.message(&message(0, &large(number)), &mut room, &mut each);
        }
    }
    assert!(room.is_short());
    assert!(greedy.iter().all(|session| session.counters().refused > 0));
    // The own part of one that comes later holds what an exporter usually has.
    let mut late = Session::new(false);
    let mut count = 0;
    late.message(&example(), &mut room, &mut |_, _| count += 1);
    assert_eq!((count, late.counters().refused), (3, 0));
    // The greedy ones give way, which is counted.
    for session in &mut greedy {
        let before = session.counters().refused;
        session.give_way(&mut room);
        assert!(session.counters().refused > before && session.taken() == 0);
    }
    assert!(!room.is_short());
}

#[test]
fn templates_that_nobody_uses_are_forgotten_and_used_ones_are_not() {
    const SECOND: u64 = 1_000_000_000;
    let (mut session, mut room) = (Session::new(false), room());
    let whole = room;
    let mut each = |_: &Record, _: &[Other<'_>]| ();
    session.at(SECOND);
    for number in [256, 257] {
        session.message(&message(0, &template_of(number)), &mut room, &mut each);
    }
    for hour in 1..5u64 {
        session.at(hour * 3600 * SECOND);
        session.message(&message(hour as u32 - 1, &records(256, 1)), &mut room, &mut each);
        session.age(&mut room);
    }
    let left: Vec<u16> =
        session.domains.values().flat_map(|domain| domain.templates.keys().copied()).collect();
    assert_eq!((left, session.counters().records), (vec![256], 4));
    // A domain that says nothing goes whole, and gives back all that it took.
    session.at(100 * 3600 * SECOND);
    session.age(&mut room);
    assert_eq!((session.domains.len(), session.taken(), room), (0, 0, whole));
    assert_eq!(session.counters().missing_records, 0);
}

/// Options of a process: records that it did not send, in all.
fn told(domain: u32, seconds: u32, number: u32, process: u32, unsent: u64, first_ms: u64) -> Vec<u8> {
    let mut sets = vec![0, 3, 0, 22, 2, 0, 0, 3, 0, 1, 0, 144, 0, 4, 0, 166, 0, 8, 1, 67, 0, 8];
    sets.extend([2, 0, 0, 24]);
    sets.extend(process.to_be_bytes());
    sets.extend(unsent.to_be_bytes());
    sets.extend(first_ms.to_be_bytes());
    let mut message = message_at(seconds, number, &sets);
    message[12..16].copy_from_slice(&domain.to_be_bytes());
    message
}

#[test]
fn totals_of_before_and_of_several_processes_are_no_loss_of_this_run() {
    let (mut session, mut room) = (Session::new(false), room());
    let mut each = |_: &Record, _: &[Other<'_>]| ();
    // Two processes whose totals are of before, in turn.
    for at in 0..6u32 {
        let (process, unsent) = [(1, 100), (2, 20_005)][at as usize % 2];
        session.message(&told(1, 100 + at, 500 + at, process, unsent, 0), &mut room, &mut each);
    }
    assert_eq!((session.counters().unsent[0], session.counters().options), (0, 6));
    // What comes on top counts; one that was overtaken does not; one that began anew counts from zero.
    for (seconds, process, unsent, wanted) in
        [(110, 1, 107, 7), (109, 1, 103, 7), (111, 2, 20_006, 8), (120, 1, 4, 12), (121, 1, 4, 12)]
    {
        session.message(&told(1, seconds, 510, process, unsent, 0), &mut room, &mut each);
        assert_eq!(session.counters().unsent[0], wanted, "{seconds}");
    }
    // Of a domain that is seen to begin all counts,
    session.message(&told(2, 100, 0, 1, 30, 0), &mut room, &mut each);
    assert_eq!(session.counters().unsent[0], 42);
    // and of one that says that its first loss is of now, by its own clock, which is an hour off.
    session.at(5_000 * 1_000_000_000);
    let now_s = 5_000 + 3_600;
    for (domain, first_ms, wanted) in [(3, (now_s - 10) * 1000, 42), (4, now_s * 1000 + 30_000, 45)] {
        session.at((5_000 + 40) * 1_000_000_000);
        session.message(&told(domain, now_s as u32 + 40, 77, 1, 3, first_ms), &mut room, &mut each);
        assert_eq!(session.counters().unsent[0], wanted, "{domain}");
    }
}

#[test]
fn what_begins_as_no_message_is_of_no_exporter() {
    assert!(is_message(&example()));
    for bytes in [&[][..], &[0], &[0, 5], &[0, 10, 0, 200], &[0, 9, 0, 1], &[0, 0, 0, 5], &[1; 100]] {
        assert!(!is_message(bytes), "{bytes:?}");
    }
}

/// What a datagram has behind its message is not read, and that is said.
#[test]
fn a_datagram_that_holds_more_than_it_says_is_not_read_to_its_end() {
    let mut v5 = vec![0, 5, 0, 1];
    v5.resize(24 + 48, 0);
    let ipfix = [&[0, 10, 0, 16][..], &[0; 12]].concat();
    for (whole, more, records) in [(&v5, 48, 1), (&ipfix, 16, 0)] {
        let mut session = Session::new(false);
        let mut read = |bytes: &[u8]| {
            session.message(bytes, &mut room(), &mut |_, _| ());
            (session.counters().records, session.counters().malformed)
        };
        assert_eq!(read(whole), (records, 0));
        let padded = [&whole[..], &[0, 0, 0]].concat();
        assert_eq!(read(&padded), (2 * records, 0), "padding");
        let longer = [&whole[..], &vec![0; more]].concat();
        assert_eq!(read(&longer), (3 * records, 1));
    }
}
