use super::*;
use crate::collect::{Room, Session};
use crate::element;
use crate::key::{Key, Parts};
use crate::record::Record;
use crate::sampling::Flows;
use crate::table::{Ended, Flow, Over};
use crate::template::usual;
use proptest::prelude::*;
use std::net::Ipv4Addr;

pub const NOW: u64 = 1_700_000_000_000_000_000;
pub const SECOND: u64 = 1_000_000_000;

pub fn settings(version: Version) -> Settings {
    Settings {
        version,
        template: usual(version),
        first_template: 257,
        both_ways: false,
        signed: false,
        domain: 9,
        longest: LONGEST,
        refresh_messages: 20,
        refresh_ns: 60 * SECOND,
        context: Context {
            began_ns: NOW - SECOND,
            interfaces: [[1, 0], [0, 1]],
            sampling: 1,
            random: false,
            flows: Flows::all(),
        },
    }
}

pub fn flow(number: u32) -> Over {
    let addresses = [Ipv4Addr::from_bits(number).into(), Ipv4Addr::LOCALHOST.into()];
    let parts = Parts { addresses, ports: [1, 2], protocol: 17, tos: 0, vlan: None };
    let flow = Flow {
        key: Key::new(parts).expect("one version"),
        packets: 1,
        octets: 100,
        times_ns: [NOW; 2],
        tcp_flags: 0,
        ttl: [64; 2],
        lengths: [100; 2],
        macs: [[0; 6]; 2],
        mpls: [0; 3],
        egress: false,
    };
    Over { flow, why: Ended::Idle, back: None, signs: None }
}

const DAY: u64 = 86_400 * SECOND;
/// Article B's times and counters.
const BY_UPTIME: &str =
    "%IPV4_SRC_ADDR %IPV4_DST_ADDR %IN_PKTS %IN_BYTES %FIRST_SWITCHED %LAST_SWITCHED %L4_SRC_PORT %PROTOCOL";

/// What a collector reads of these flows, and what the exporter counted.
fn read(settings: Settings, flows: &[Over], now_ns: u64) -> (Vec<Record>, Counters) {
    let mut exporter = Exporter::new(settings).expect("a template");
    let (mut session, mut room, mut read) = (Session::new(false), Room::of(1 << 20), Vec::new());
    let mut collect = |message: Message<'_>| {
        session.message(message.bytes, &mut room, &mut |record, _| read.push(*record));
    };
    flows.iter().for_each(|over| exporter.add(over, now_ns, &mut collect));
    exporter.flush(now_ns, &mut collect);
    (read, *exporter.counters())
}

fn at(first: u64, last: u64) -> Over {
    let over = flow(1);
    Over { flow: Flow { times_ns: [first, last], ..over.flow }, ..over }
}

#[test]
fn counters_of_v9_and_ipfix_have_eight_bytes_and_those_of_v5_four() {
    let many = |packets, octets| {
        let over = flow(1);
        Over { flow: Flow { packets, octets, ..over.flow }, ..over }
    };
    for version in [Version::V9, Version::Ipfix] {
        let over = many(1 << 33, 1 << 40);
        let (read, _) = read(settings(version), &[over], NOW);
        assert_eq!((read[0].packets, read[0].octets), (1 << 33, 1 << 40), "{version:?}");
        let exporter = Exporter::new(settings(version)).expect("the usual template");
        assert_eq!(exporter.most_octets(), u64::MAX);
    }
    let exporter = Exporter::new(settings(Version::V5)).expect("one layout");
    assert_eq!(exporter.most_octets(), u64::from(u32::MAX));
    let (read, _) = read(settings(Version::V5), &[many(5, exporter.most_octets())], NOW);
    assert_eq!((read[0].packets, read[0].octets), (5, u64::from(u32::MAX)));
}

#[test]
fn a_record_lasts_no_longer_than_its_times_can_say() {
    let longest = |version, template: &str| {
        let exporter = Exporter::new(Settings { template: template.to_owned(), ..settings(version) });
        exporter.expect("a template").longest_ns()
    };
    assert_eq!(longest(Version::V9, &usual(Version::V9)), (1 << 31) * 1_000_000);
    for version in [Version::V9, Version::Ipfix] {
        assert_eq!(longest(version, &usual(Version::Ipfix)), u64::MAX);
        assert_eq!(longest(version, BY_UPTIME), (1 << 31) * 1_000_000);
        assert_eq!(longest(version, "flowDurationMilliseconds"), 4_294_967_295 * 1_000_000);
        assert_eq!(longest(version, "flowDurationMicroseconds"), 4_294_967_295_000);
    }
    assert_eq!(longest(Version::V5, ""), (1 << 31) * 1_000_000);
}

/// RFC 7011 has no time since the start in a message's head: without the start in the record it is 1970 to everybody.
#[test]
fn in_ipfix_a_record_says_what_its_times_since_the_start_count_from() {
    let by = |version| Settings { template: BY_UPTIME.to_owned(), ..settings(version) };
    let fields = |version| {
        let template = Exporter::new(by(version)).expect("a template").templates.remove(0);
        template.fields.iter().map(|field| (field.number.id, field.length)).collect::<Vec<_>>()
    };
    assert!(fields(Version::Ipfix).contains(&(160, 8)) && !fields(Version::V9).contains(&(160, 8)));
    // Named by its user it stands where they want it, once.
    let named =
        Settings { template: format!("systemInitTimeMilliseconds {BY_UPTIME}"), ..by(Version::Ipfix) };
    let template = Exporter::new(named).expect("a template").templates.remove(0);
    let places: Vec<usize> =
        (0..template.fields.len()).filter(|at| template.fields[*at].number.id == 160).collect();
    assert_eq!(places, [0]);

    let began = settings(Version::Ipfix).context.began_ns;
    for (first, last, wanted) in [
        (began + 500_000_000, began + SECOND, [began / 1_000_000, 500, 1000]),
        // Longer than 32 bits of milliseconds reach, and before the start.
        (began + 100 * DAY, began + 101 * DAY, [(began + 100 * DAY) / 1_000_000 - 1000, 1000, 86_401_000]),
        (began - DAY, began, [(began - DAY) / 1_000_000 - 1000, 1000, 86_401_000]),
    ] {
        let mut exporter = Exporter::new(by(Version::Ipfix)).expect("a template").without_templates();
        let mut bytes: Vec<u8> = Vec::new();
        exporter.add(&at(first, last), NOW, &mut |_| ());
        exporter.flush(NOW, &mut |message| bytes.extend(message.bytes));
        // Of the only record: behind the heads, in the order of the template.
        let mut place = 20;
        let mut of = std::collections::BTreeMap::new();
        for (id, length) in fields(Version::Ipfix) {
            let field = &bytes[place..place + usize::from(length)];
            of.insert(id, field.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
            place += usize::from(length);
        }
        assert_eq!([of[&160], of[&22], of[&21]], wanted);
        assert_eq!(exporter.counters().untimely, 0);
    }
}

#[test]
fn what_the_uptime_of_netflow_cannot_say_is_counted_and_left_out() {
    let v9 = |template: &str| Settings { template: template.to_owned(), ..settings(Version::V9) };
    let began = NOW - SECOND;
    let early = [at(began - 1, NOW), at(began, NOW), at(NOW, NOW)];
    for settings in [settings(Version::V5), settings(Version::V9), v9(BY_UPTIME)] {
        let (read, counters) = read(settings, &early, NOW);
        assert_eq!((read.len(), counters.records, counters.untimely), (2, 2, 1));
        assert_eq!(read.iter().map(|record| record.times_ns[0]).collect::<Vec<_>>(), [began, NOW]);
    }
    // Where times are of 1970 nothing is in the way.
    assert_eq!(read(v9(&usual(Version::Ipfix)), &early, NOW).1.untimely, 0);
    // Sixty days later the uptime has wrapped: what ended lately is told, what ended before it wrapped is not.
    let later = NOW + 60 * DAY;
    let (_, counters) = read(settings(Version::V5), &[at(NOW, NOW), at(later - DAY, later)], later);
    assert_eq!((counters.records, counters.untimely), (1, 1));
}

/// pmacct 1.7.7 takes a time after the message for one 49.7 days off: an uptime of v9 or v5 is never more than its message's. Who adds
/// message and uptime (nfcapd 1.7.1, goflow2 2.2.6) has the time to the millisecond, without the nanoseconds that v5 has beside it.
#[test]
fn no_flow_of_netflow_ends_after_its_message() {
    let times = [(NOW, 0), (NOW + 1, 1), (NOW + 999_999_999, 1), (NOW + SECOND, 1)];
    for (now_ns, seconds, version) in times
        .into_iter()
        .flat_map(|(now_ns, seconds)| [Version::V9, Version::V5].map(|v| (now_ns, seconds, v)))
    {
        let mut exporter = Exporter::new(settings(version)).expect("a template").without_templates();
        let fields = exporter.templates[0].fields.clone();
        let mut bytes: Vec<u8> = Vec::new();
        exporter.add(&at(NOW, now_ns), now_ns, &mut |_| ());
        exporter.flush(now_ns, &mut |message| bytes.extend(message.bytes));
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let of = |id: u16| {
            if version == Version::V5 {
                return word(if id == 22 { 48 } else { 52 });
            }
            let place = fields.iter().position(|field| field.number.id == id).expect("in the template");
            word(24 + fields[..place].iter().map(|field| usize::from(field.length)).sum::<usize>())
        };
        let (uptime, sent) = (word(4), word(8));
        assert_eq!(u64::from(sent), NOW / SECOND + seconds);
        assert!(version == Version::V9 || word(12) == 0);
        assert!(of(21) <= uptime, "{} after {uptime}", of(21));
        let said = |id: u16| u64::from(sent) * 1000 - u64::from(uptime - of(id));
        assert_eq!([said(22), said(21)], [NOW / 1_000_000, now_ns / 1_000_000]);
    }
}

proptest! {
    /// Of flows in any order of time, each is read with its times, or counted as one whose times cannot be said.
    #[test]
    fn no_time_is_another_than_the_flows(
        times in proptest::collection::vec((0u64..90 * 86_400, 0u64..3600), 1..40),
        began in 0u64..30 * 86_400,
        now in 90u64..100,
        which in 0usize..3,
    ) {
        let version = [Version::V5, Version::V9, Version::Ipfix][which];
        let start = NOW;
        let flows: Vec<Over> = times
            .iter()
            .map(|(first, lasted)| at(start + first * SECOND, start + (first + lasted) * SECOND))
            .collect();
        let base = settings(version);
        let context = Context { began_ns: start + began * SECOND, ..base.context };
        let mut exporter =
            Exporter::new(Settings { template: BY_UPTIME.to_owned(), context, ..base }).expect("a template");
        let now_ns = start + now * DAY;
        let mut told = 0u64;
        for flow in &flows {
            exporter.add(flow, now_ns, &mut |_| ());
            let mut bytes: Vec<u8> = Vec::new();
            exporter.flush(now_ns, &mut |message| bytes.extend(message.bytes));
            told += u64::from(!bytes.is_empty());
        }
        let counters = exporter.counters();
        prop_assert_eq!(told, counters.records);
        prop_assert_eq!(counters.records + counters.untimely, flows.len() as u64);
        let sayable = flows.iter().filter(|over| {
            let first = over.flow.times_ns[0];
            version == Version::Ipfix
                || first >= context.began_ns && (now_ns - first) / 1_000_000 <= u64::from(u32::MAX)
        });
        prop_assert_eq!(counters.records, sayable.count() as u64);
    }
}

/// The first packets of the flows in a message of v5 or v9 by [`BY_UPTIME`], as who adds message and uptime has them: in milliseconds since
/// 1970.
fn firsts(version: Version, message: &[u8]) -> Vec<u64> {
    let word = |at: usize| u32::from_be_bytes(message[at..at + 4].try_into().expect("four bytes"));
    let fields = Exporter::new(Settings { template: BY_UPTIME.to_owned(), ..settings(version) })
        .expect("a template")
        .templates[0]
        .fields
        .clone();
    let bytes = |fields: &[Field]| fields.iter().map(|field| usize::from(field.length)).sum::<usize>();
    let (head, each, place) = match version {
        Version::V5 => (24, 48, 24),
        _ => {
            let place = fields.iter().position(|field| field.number.id == 22).expect("in the template");
            (24, bytes(&fields), bytes(&fields[..place]))
        }
    };
    let count = usize::from(u16::from_be_bytes([message[2], message[3]]));
    let of = |which| {
        u64::from(word(8)) * 1000 - u64::from(word(4).wrapping_sub(word(head + each * which + place)))
    };
    (0..count).map(of).collect()
}

proptest! {
    /// However long a message waits until it is full or asked for, the times in it are the flows'.
    #[test]
    fn times_of_a_message_that_waits_are_the_flows(
        steps in proptest::collection::vec((0u64..20 * 86_400, 0u64..60 * 86_400, 0u8..4), 1..60),
        waits in 0u64..60 * 86_400,
        which in 0usize..2,
    ) {
        let version = [Version::V5, Version::V9][which];
        let base = settings(version);
        let began_ns = NOW - 70 * DAY;
        let context = Context { began_ns, ..base.context };
        let mut exporter = Exporter::new(Settings { template: BY_UPTIME.to_owned(), context, ..base })
            .expect("a template")
            .without_templates();
        let (mut said, mut wanted, mut now_ns) = (Vec::new(), Vec::new(), NOW);
        let mut keep = |message: Message<'_>| said.extend(firsts(version, message.bytes));
        for (later, age, flush) in steps {
            now_ns += later * SECOND;
            let first = now_ns - age * SECOND;
            if age * 1000 <= u64::from(u32::MAX) {
                wanted.push(first / 1_000_000);
            }
            exporter.add(&at(first, now_ns), now_ns, &mut keep);
            if flush == 0 {
                exporter.flush(now_ns, &mut keep);
            }
        }
        exporter.flush(now_ns + waits * SECOND, &mut keep);
        prop_assert_eq!(said, wanted);
    }
}

#[test]
fn the_time_that_others_count_from_is_known_by_its_name() {
    assert_eq!(element::of_name("systemInitTimeMilliseconds").map(|element| element.number.id), Some(160));
}

/// nfcapd 1.7.1 takes the interval and the space of the second record alone, nfacctd 1.7.7 those of either, goflow2 the interval of the
/// first; the first two read one template of a set.
#[test]
fn how_packets_are_sampled_is_said_in_each_way_that_collectors_read() {
    for (version, of_options) in [(Version::V9, 1), (Version::Ipfix, 3)] {
        let context = Context { sampling: 500, ..settings(version).context };
        let mut exporter = Exporter::new(Settings { context, ..settings(version) }).expect("a template");
        let opening = exporter.opening(NOW).bytes;
        let (mut templates, mut records) = (Vec::new(), Vec::new());
        let mut at = exporter.header();
        while at + 4 <= opening.len() {
            let word = |at: usize| usize::from(u16::from_be_bytes([opening[at], opening[at + 1]]));
            let (number, body) = (word(at), &opening[at + 4..at + word(at + 2)]);
            if number == of_options {
                // Of the template: its number, how long it is, and the first field behind the scope.
                templates.push((word(at + 4), word(at + 14)));
                let fields = if of_options == 1 { word(at + 8) / 4 + 1 } else { word(at + 6) };
                assert_eq!(body.len(), (6 + 4 * fields).next_multiple_of(4), "one of each set");
            } else if number > 255 {
                records.push((number, body.to_vec()));
            }
            at += word(at + 2);
        }
        let said: Vec<_> = records
            .iter()
            .map(|(number, body)| {
                let first = templates.iter().find(|(of, _)| of == number).map(|(_, field)| *field);
                (first, body[..8].to_vec())
            })
            .collect();
        let of = |value: u32| [9u32.to_be_bytes(), value.to_be_bytes()].concat();
        assert_eq!(said, [(Some(34), of(500)), (Some(305), of(1))], "{version:?}");
        assert_eq!(records[1].1[8..12], 499u32.to_be_bytes());
        // Who reads both says the same.
        let (mut session, mut room, mut rates) = (Session::new(false), Room::of(1 << 20), Vec::new());
        session.message(&opening, &mut room, &mut |_, _| {});
        exporter.tells_templates = false;
        let mut collect = |message: Message<'_>| {
            session.message(message.bytes, &mut room, &mut |r, _| rates.push(r.sampling))
        };
        exporter.add(&flow(1), NOW, &mut collect);
        exporter.flush(NOW, &mut collect);
        assert_eq!(rates, [500]);
    }
}
