//! What records say, element by element: cases that other collectors' users found wrong results with, and their siblings. Right is
//! what goflow2 and nfcapd 1.7.1 agree on, else what the RFC says.

use super::tests::room;
use super::*;
use proptest::prelude::*;

pub(super) type Fields<'a> = &'a [(u16, u16)];

/// Addresses, ports, protocol, packets, octets, first and last as uptimes.
const USUAL: [(u16, u16); 9] = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (2, 4), (1, 4), (22, 4), (21, 4)];
const SECONDS: u32 = 1_700_000_000;

pub(super) fn set(number: u16, body: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &(body.len() as u16 + 4).to_be_bytes(), body].concat()
}

pub(super) fn template(number: u16, fields: Fields<'_>) -> Vec<u8> {
    let mut body = [number.to_be_bytes(), (fields.len() as u16).to_be_bytes()].concat();
    for (id, length) in fields {
        body.extend([id.to_be_bytes(), length.to_be_bytes()].concat());
    }
    body
}

/// Of v9: in bytes of the scope and of the rest.
fn options_v9(number: u16, scope: Fields<'_>, fields: Fields<'_>) -> Vec<u8> {
    let mut body = [number, 4 * scope.len() as u16, 4 * fields.len() as u16].map(u16::to_be_bytes).concat();
    for (id, length) in scope.iter().chain(fields) {
        body.extend([id.to_be_bytes(), length.to_be_bytes()].concat());
    }
    body
}

fn options_ipfix(number: u16, scopes: u16, fields: Fields<'_>) -> Vec<u8> {
    let mut body = [number, fields.len() as u16, scopes].map(u16::to_be_bytes).concat();
    for (id, length) in fields {
        body.extend([id.to_be_bytes(), length.to_be_bytes()].concat());
    }
    body
}

fn v9_at(uptime: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let head = [uptime, SECONDS, 0, 0].map(u32::to_be_bytes).concat();
    [&[0, 9, 0, 1][..], &head, &sets.concat()].concat()
}

fn v9(sets: &[Vec<u8>]) -> Vec<u8> {
    v9_at(1_000_000, sets)
}

fn ipfix(sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    let head = [SECONDS, 0, 0].map(u32::to_be_bytes).concat();
    [&[0, 10][..], &(16 + body.len() as u16).to_be_bytes(), &head, &body].concat()
}

fn numbers(fields: &[(u64, usize)]) -> Vec<u8> {
    let bytes = |(value, length): &(u64, usize)| value.to_be_bytes()[8 - length..].to_vec();
    fields.iter().flat_map(bytes).collect()
}

/// A record of [`USUAL`]: from 10.0.0.`last`, 3 packets, 300 octets.
fn usual(last: u8, uptimes: [u32; 2]) -> Vec<u8> {
    let mut bytes = vec![10, 0, 0, last, 10, 0, 1, 1, 0, 1, 0, 2, 17, 0, 0, 0, 3, 0, 0, 1, 44];
    bytes.extend(uptimes.map(u32::to_be_bytes).concat());
    bytes
}

fn recent(last: u8) -> Vec<u8> {
    usual(last, [900_000, 990_000])
}

type Read = (Record, Vec<(Number, Vec<u8>)>);

/// What messages of one exporter say.
fn read(messages: &[Vec<u8>]) -> (Vec<Read>, Counters) {
    let (mut session, mut room, mut read) = (Session::new(true), room(), Vec::new());
    for message in messages {
        session.message(message, &mut room, &mut |record, others| {
            read.push((*record, others.iter().map(|other| (other.number, other.bytes.to_vec())).collect()));
        });
    }
    (read, *session.counters())
}

/// The record of a template whose fields hold these numbers; v9 and IPFIX say the same.
fn one(fields: &[(u16, u64, usize)]) -> Read {
    let described: Vec<(u16, u16)> = fields.iter().map(|(id, _, length)| (*id, *length as u16)).collect();
    let values: Vec<(u64, usize)> = fields.iter().map(|(_, value, length)| (*value, *length)).collect();
    let data = set(256, &numbers(&values));
    let (of_v9, _) = read(&[v9(&[set(0, &template(256, &described)), data.clone()])]);
    let (mut of_ipfix, counters) = read(&[ipfix(&[set(2, &template(256, &described)), data])]);
    assert_eq!((of_v9.len(), of_ipfix.len(), counters.malformed), (1, 1, 0));
    of_ipfix[0].0.format = Format::V9;
    assert_eq!(of_v9, of_ipfix);
    of_ipfix.remove(0)
}

/// Octets and packets of a record whose template has these counters.
fn counts(fields: &[(u16, u64)]) -> [u64; 2] {
    let fields: Vec<(u16, u64, usize)> = fields.iter().map(|(id, value)| (*id, *value, 8)).collect();
    let (record, _) = one(&fields);
    [record.octets, record.packets]
}

#[test]
fn a_record_counts_what_came_since_the_last_one_and_else_what_there_is() {
    assert_eq!(counts(&[(1, 300), (2, 3), (85, 9000), (86, 90)]), [300, 3]);
    assert_eq!(counts(&[(85, 9000), (86, 90), (1, 300), (2, 3)]), [300, 3]);
    // Nothing came since the last one.
    assert_eq!(counts(&[(1, 0), (2, 0), (85, 9000), (86, 90)]), [0, 0]);
    assert_eq!(counts(&[(85, 300), (86, 3)]), [300, 3]);
    // Where they left alone, or beside.
    assert_eq!(counts(&[(24, 3), (23, 300)]), [300, 3]);
    assert_eq!(counts(&[(171, 300), (172, 3)]), [300, 3]);
    assert_eq!(counts(&[(2, 3), (1, 300), (24, 5), (23, 500)]), [300, 3]);
    assert_eq!(counts(&[(24, 5), (23, 500), (2, 0), (1, 0)]), [500, 5]);
    let (_, others) = one(&[(1, 300, 4), (23, 500, 4), (85, 9000, 8)]);
    assert_eq!(others.iter().map(|(number, _)| number.id).collect::<Vec<_>>(), [85, 23]);
}

#[test]
fn initiators_and_responders_are_the_directions_of_a_record() {
    let fields = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (231, 8), (232, 8), (298, 8), (299, 8)];
    let data = numbers(&[
        (0x0a00_0001, 4),
        (0x0a00_0101, 4),
        (1000, 2),
        (443, 2),
        (6, 1),
        (1234, 8),
        (5678, 8),
        (12, 8),
        (34, 8),
    ]);
    let (read, counters) = read(&[ipfix(&[set(2, &template(256, &fields)), set(256, &data)])]);
    let said: Vec<_> = read.iter().map(|(r, _)| (r.ports, r.octets, r.packets)).collect();
    assert_eq!(said, [([1000, 443], 1234, 12), ([443, 1000], 5678, 34)]);
    assert_eq!(counters.records, 1);
    // Beside what counts this direction they are what they are called.
    let (record, others) = one(&[(1, 7, 4), (231, 1234, 4), (232, 5678, 4)]);
    assert_eq!((record.octets, others.len()), (7, 2));
}

#[test]
fn of_two_fields_for_one_member_the_one_that_is_not_zero_counts() {
    let v6 = |last: u8| {
        let mut bytes = [0; 16];
        (bytes[0], bytes[15]) = (0x20, last);
        bytes
    };
    let (v4, none) = ([[10, 0, 0, 1], [10, 0, 0, 2]], [[0u8; 4]; 2]);
    for order in [[8, 12, 27, 28], [27, 28, 8, 12], [27, 8, 28, 12], [12, 28, 27, 8]] {
        let fields: Vec<(u16, u16)> = order.iter().map(|id| (*id, if *id > 20 { 16 } else { 4 })).collect();
        let record = |four: [[u8; 4]; 2], six: [[u8; 16]; 2]| -> Vec<u8> {
            let of = |id: &u16| match id {
                8 => four[0].to_vec(),
                12 => four[1].to_vec(),
                27 => six[0].to_vec(),
                _ => six[1].to_vec(),
            };
            order.iter().flat_map(of).collect()
        };
        let data = [
            record(none, [v6(1), v6(2)]),
            record(v4, [[0; 16]; 2]),
            // A client that has no address yet.
            record([[0; 4], [255; 4]], [[0; 16]; 2]),
            record(none, [[0; 16], v6(2)]),
        ];
        let (read, _) = read(&[ipfix(&[set(2, &template(256, &fields)), set(256, &data.concat())])]);
        let said: Vec<String> = read
            .iter()
            .map(|(r, others)| {
                assert!(others.is_empty(), "{others:?}");
                r.addresses.map(|address| address.expect("an address").to_string()).join(" ")
            })
            .collect();
        assert_eq!(
            said,
            ["2000::1 2000::2", "10.0.0.1 10.0.0.2", "0.0.0.0 255.255.255.255", ":: 2000::2"],
            "{order:?}"
        );
    }
    for (first, second) in [(9, 29), (29, 9)] {
        for values in [[24, 0], [0, 24]] {
            let (record, _) = one(&[(first, values[0], 1), (second, values[1], 1), (13, 0, 1), (30, 25, 1)]);
            assert_eq!(record.prefixes, [24, 25]);
        }
    }
    for values in [[300, 0], [0, 300]] {
        let (record, _) = one(&[(243, values[0], 2), (58, values[1], 2), (254, 0, 2), (59, 7, 2)]);
        assert_eq!(record.vlans, [300, 7]);
    }
    // Of two that are not the first one counts, and the other one is kept.
    let (record, others) = one(&[(243, 100, 2), (58, 300, 2)]);
    assert_eq!((record.vlans[0], &others[0]), (100, &(Number::iana(58), vec![1, 44])));
    let fields = [(15, 4), (62, 16)];
    for data in [[vec![192, 0, 2, 1], vec![0; 16]], [vec![0; 4], v6(9).to_vec()]] {
        let (read, _) = read(&[ipfix(&[set(2, &template(256, &fields)), set(256, &data.concat())])]);
        assert_eq!(read[0].0.next_hop.map(|hop| hop.is_ipv4()), Some(data[0][0] != 0));
    }
    // The same element twice, as Open vSwitch has it of tunnels.
    let (record, others) = one(&[(8, 1, 4), (1, 300, 4), (8, 2, 4), (1, 999, 4)]);
    assert_eq!((record.addresses[0], record.octets), (Some(Ipv4Addr::from_bits(1).into()), 300));
    assert_eq!(others.len(), 2);
}

#[test]
fn types_of_icmp_are_read_in_any_order_and_are_no_ports() {
    let echo = u64::from(u16::from_be_bytes([8, 1]));
    let port = |fields: &[(u16, u64, usize)]| one(fields).0.ports[1];
    for fields in [
        [(4, 1, 1), (7, 0, 2), (11, 0, 2), (32, echo, 2)],
        [(32, echo, 2), (11, 0, 2), (7, 0, 2), (4, 1, 1)],
        [(11, 0, 2), (32, echo, 2), (4, 1, 1), (139, 0, 2)],
        [(139, echo, 2), (11, 0, 2), (4, 58, 1), (32, 0, 2)],
        [(177, 1, 1), (11, 0, 2), (176, 8, 1), (4, 1, 1)],
        [(179, 1, 1), (4, 58, 1), (178, 8, 1), (11, 0, 2)],
        [(32, echo, 2), (139, 0x0301, 2), (11, 0, 2), (4, 1, 1)],
        [(32, 0x0301, 2), (139, echo, 2), (11, 0, 2), (4, 58, 1)],
        // Nothing says the protocol, and nothing the ports.
        [(32, echo, 2), (11, 0, 2), (5, 0, 1), (6, 0, 1)],
        // What a port says, where the others do not.
        [(32, 0, 2), (11, echo, 2), (4, 1, 1), (5, 0, 1)],
    ] {
        assert_eq!(u64::from(port(&fields)), echo, "{fields:?}");
    }
    for fields in [
        [(4, 6, 1), (11, 443, 2), (32, echo, 2), (7, 0, 2)],
        [(32, echo, 2), (11, 443, 2), (4, 17, 1), (7, 0, 2)],
        [(176, 8, 1), (177, 1, 1), (11, 443, 2), (4, 6, 1)],
    ] {
        assert_eq!(port(&fields), 443, "{fields:?}");
    }
    assert_eq!(port(&[(4, 6, 1), (11, 0, 2), (32, echo, 2)]), 0);
}

fn times(messages: &[Vec<u8>]) -> Vec<[u64; 2]> {
    read(messages).0.iter().map(|(record, _)| record.times_ns.map(|ns| ns / 1_000_000)).collect()
}

#[test]
fn uptimes_that_wrapped_are_read_as_the_time_that_they_were() {
    let now = u64::from(SECONDS) * 1000;
    let usual_template = set(0, &template(256, &USUAL));
    // 1 s after the wrap; from before it to behind it, before it, and exported a little ahead of its own clock.
    let data = [
        usual(1, [u32::MAX - 3999, 500]),
        usual(2, [u32::MAX - 3999, u32::MAX - 999]),
        usual(3, [900, 1200]),
    ];
    let wanted = [[now - 5000, now - 500], [now - 5000, now - 2000], [now - 100, now + 200]];
    assert_eq!(times(&[v9_at(1000, &[usual_template, set(256, &data.concat())])]), wanted);
    let mut v5 = [&[0, 5, 0, 1][..], &[1000, SECONDS, 0, 0].map(u32::to_be_bytes).concat(), &[0; 4]].concat();
    let mut record = vec![0; 48];
    record[24..32].copy_from_slice(&[u32::MAX - 3999, 500].map(u32::to_be_bytes).concat());
    v5.extend(record);
    assert_eq!(times(&[v5]), [[now - 5000, now - 500]]);
}

#[test]
fn uptimes_of_ipfix_count_from_when_the_exporter_says_it_began() {
    let began = u64::from(SECONDS) * 1000 - 100_000;
    let usual_template = set(2, &template(256, &USUAL));
    let data = set(256, &usual(1, [5000, 6000]));
    // Nobody says it: the times are not known, and not of 1970.
    assert_eq!(times(&[ipfix(&[usual_template.clone(), data.clone()])]), [[0, 0]]);
    // Options do, for what follows, of which some waited for its template.
    let options =
        [set(3, &options_ipfix(512, 1, &[(144, 4), (160, 8)])), set(512, &numbers(&[(1, 4), (began, 8)]))];
    let wanted = [began + 5000, began + 6000];
    assert_eq!(
        times(&[
            ipfix(&[usual_template.clone(), data.clone()]),
            ipfix(&options),
            ipfix(std::slice::from_ref(&data)),
            ipfix(&[set(257, &usual(2, [5000, 6000])), set(2, &template(257, &USUAL))]),
        ]),
        [[0, 0], wanted, wanted]
    );
    // Records do, wherever it stands in them.
    for fields in
        [[(160, began, 8), (22, 5000, 4), (21, 6000, 4)], [(21, 6000, 4), (22, 5000, 4), (160, began, 8)]]
    {
        let (described, values): (Vec<_>, Vec<_>) =
            fields.iter().map(|(id, value, length)| ((*id, *length as u16), (*value, *length))).unzip();
        assert_eq!(
            times(&[ipfix(&[set(2, &template(256, &described)), set(256, &numbers(&values))])]),
            [wanted]
        );
    }
    // It has been up for longer than 49.7 days.
    let long_ago = u64::from(SECONDS) * 1000 - (1 << 32) - 6500;
    let values = [(long_ago, 8), (u64::from(u32::MAX), 4), (6000, 4)];
    let described = [(160, 8), (22, 4), (21, 4)];
    assert_eq!(
        times(&[ipfix(&[set(2, &template(256, &described)), set(256, &numbers(&values))])]),
        [[long_ago + u64::from(u32::MAX), long_ago + (1 << 32) + 6000]]
    );
}

#[test]
fn the_most_precise_time_that_is_said_counts() {
    let at = u64::from(SECONDS);
    let ns = |fields: &[(u16, u64, usize)]| one(fields).0.times_ns;
    assert_eq!(
        ns(&[(150, at, 4), (152, at * 1000 + 5, 8), (153, 0, 8), (151, at, 4)]),
        [(at * 1000 + 5) * 1_000_000, at * 1_000_000_000]
    );
    assert_eq!(
        ns(&[(158, 2_000_000, 4), (159, 500_000, 4)]),
        [(at - 2) * 1_000_000_000, at * 1_000_000_000 - 500_000_000]
    );
    assert_eq!(
        ns(&[(152, at * 1000, 8), (161, 250, 4)]),
        [at * 1_000_000_000, at * 1_000_000_000 + 250_000_000]
    );
    assert_eq!(ns(&[(162, 250, 4), (153, at * 1000, 8)]), [at * 1_000_000_000 - 250_000, at * 1_000_000_000]);
    // Clocks that were never set, a length that no such time has, and nothing.
    assert_eq!(ns(&[(150, 86_400, 4), (153, 3_600_000, 8)]), [0; 2]);
    assert_eq!(ns(&[(152, 0xffff_ffff, 4), (157, 0, 8)]), [0; 2]);
    assert_eq!(ns(&[(1, 5, 4)]), [0; 2]);
}

#[test]
fn records_of_v9_may_have_lengths_of_their_own() {
    let fields = [&USUAL[..], &[(96, 65_535)]].concat();
    let data = [&recent(1), &b"\x05http2"[..], &recent(2), &b"\xff\x00\x03dns"[..]].concat();
    let (read, counters) = read(&[v9(&[set(0, &template(256, &fields))]), v9(&[set(256, &data)])]);
    let said: Vec<_> = read.iter().map(|(r, others)| (r.ports, r.packets, others[0].1.as_slice())).collect();
    assert_eq!(said, [([1, 2], 3, &b"http2"[..]), ([1, 2], 3, b"dns")]);
    assert_eq!(counters.malformed, 0);
}

#[test]
fn what_follows_a_reserved_set_is_read() {
    for number in [0u16, 1, 2, 3, 4, 100, 255] {
        let message = |format: Format| {
            let own = if format == Format::V9 { 0 } else { 2 };
            let sets = [set(number, &[0; 8]), set(own, &template(256, &USUAL)), set(256, &recent(1))];
            if format == Format::V9 { v9(&sets) } else { ipfix(&sets) }
        };
        for (format, known) in [(Format::V9, [0, 1]), (Format::Ipfix, [2, 3])] {
            let (read, counters) = read(&[message(format)]);
            let reserved = u64::from(!known.contains(&number));
            assert_eq!((read.len(), counters.asides.reserved_sets), (1, reserved), "{format:?} {number}");
            assert_eq!(counters.malformed, 0);
        }
    }
}

/// softflowd's and others' PSAMP (RFC 5477): what a packet says of itself stands in its first bytes.
#[test]
fn a_sampled_packet_is_a_record_of_what_its_first_bytes_say() {
    let mut ip = vec![0x45, 0xb8, 0x05, 0xdc, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 2];
    ip.extend([0x12, 0x34, 0, 53, 5, 200, 0, 0, 1, 2, 3, 4]);
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &ip].concat();
    let padded = |bytes: &[u8]| [bytes, &vec![0xff; 90 - bytes.len()][..]].concat();
    let at = (u64::from(SECONDS) + 2_208_988_800) << 32;
    let observed = numbers(&[(7, 8), (at, 8)]);
    for (section, bytes, macs) in [(315, &frame, [2, 0, 0, 0, 0, 1]), (313, &ip, [0; 6])] {
        let own = set(2, &template(300, &[(301, 8), (324, 8), (410, 2), (section, 90)]));
        let body = [observed.clone(), numbers(&[(bytes.len() as u64, 2)]), padded(bytes)].concat();
        let (records, counters) = read(&[ipfix(&[own, set(300, &body)])]);
        let (record, others) = &records[0];
        assert_eq!(record.addresses, [ip_of([10, 0, 0, 1]), ip_of([10, 0, 1, 2])], "{section}");
        assert_eq!((record.ports, record.protocol, record.tos), ([0x1234, 53], 17, 0xb8));
        assert_eq!((record.packets, record.octets, record.macs[0]), (1, 1500, macs));
        assert_eq!(record.times_ns, [u64::from(SECONDS) * 1_000_000_000; 2]);
        assert!(others.iter().any(|(number, _)| number.id == section));
        assert_eq!(counters.records, 1);
    }
    // What the record says itself counts, and the packet says the rest: of its addresses, too, or of other ones (a tunnel's).
    let fields = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (5, 1), (6, 1), (58, 2), (56, 6), (313, 90)];
    let own = set(2, &template(300, &fields));
    let said = |source: u64, others: [u64; 7]| {
        let [port, to, protocol, tos, flags, vlan, mac] = others;
        let all = [
            (source, 4),
            (0x0a00_0102, 4),
            (port, 2),
            (to, 2),
            (protocol, 1),
            (tos, 1),
            (flags, 1),
            (vlan, 2),
        ];
        [numbers(&all), numbers(&[(mac, 6)]), padded(&ip)].concat()
    };
    let body = [
        said(0x0a00_0001, [7, 8, 17, 4, 2, 9, 0x0200_0000_0009]),
        said(0x0a00_0001, [0; 7]),
        said(0x0a00_0009, [0; 7]),
    ];
    let (records, _) = read(&[ipfix(&[own, set(300, &body.concat())])]);
    let of = |at: usize| {
        let one = &records[at].0;
        assert_eq!((one.packets, one.octets), (1, 1500), "{at}");
        (one.ports, one.protocol, one.tos, one.tcp_flags, one.vlans[0], one.macs[0][5])
    };
    assert_eq!(of(0), ([7, 8], 17, 4, 2, 9, 9));
    assert_eq!(of(1), ([0x1234, 53], 17, 0xb8, 0, 0, 0));
    assert_eq!(of(2), ([0; 2], 0, 0, 0, 0, 0));
    // What is said without addresses stays as well.
    let own = set(2, &template(300, &[(5, 1), (58, 2), (56, 6), (315, 90)]));
    let body = [numbers(&[(4, 1), (9, 2), (0x0200_0000_0009, 6)]), padded(&frame)].concat();
    let (records, _) = read(&[ipfix(&[own, set(300, &body)])]);
    let one = &records[0].0;
    assert_eq!((one.tos, one.vlans[0], one.macs[0][5], one.macs[1][5]), (4, 9, 9, 2));
    assert_eq!((one.addresses[0], one.ports, one.packets), (ip_of([10, 0, 0, 1]), [0x1234, 53], 1));
    // What is no packet of IP is a packet still.
    let own = set(2, &template(300, &[(315, 90), (1, 4)]));
    let cut = [padded(&frame[..14]), numbers(&[(0, 4)])].concat();
    let arp = [padded(&[&frame[..12], &[8, 6, 0, 1]].concat()), numbers(&[(60, 4)])].concat();
    let (records, _) = read(&[ipfix(&[own, set(300, &[cut, arp].concat())])]);
    assert_eq!(records.len(), 2);
    assert_eq!((records[1].0.addresses, records[1].0.packets, records[1].0.octets), ([None; 2], 1, 60));
    // Of an event the time is when it was observed, unless the record has times of its own.
    let own = set(2, &template(300, &[(8, 4), (323, 8), (152, 8)]));
    let ms = u64::from(SECONDS) * 1000;
    let body = [numbers(&[(1, 4), (ms + 5, 8), (ms, 8)]), numbers(&[(1, 4), (ms + 5, 8), (0, 8)])].concat();
    let (records, _) = read(&[ipfix(&[own, set(300, &body)])]);
    assert_eq!(records.iter().map(|(one, _)| one.times_ns[0] / 1_000_000 - ms).collect::<Vec<_>>(), [0, 5]);
    // Of several such times the most precise one that is none of zero, in whatever order.
    let seconds = u64::from(SECONDS);
    for fields in [[(322, 4), (323, 8)], [(323, 8), (322, 4)]] {
        let own = set(2, &template(300, &[fields[0], fields[1], (8, 4)]));
        let body = |ms: u64| {
            let value = |id: u16| if id == 322 { seconds } else { ms };
            numbers(&[
                (value(fields[0].0), fields[0].1.into()),
                (value(fields[1].0), fields[1].1.into()),
                (1, 4),
            ])
        };
        let (records, _) = read(&[ipfix(&[own, set(300, &[body(ms + 5), body(0)].concat())])]);
        let found: Vec<_> = records.iter().map(|(one, _)| one.times_ns[0] / 1_000_000 - ms).collect();
        assert_eq!(found, [5, 0], "{fields:?}");
    }
}

fn ip_of(bytes: [u8; 4]) -> Option<std::net::IpAddr> {
    Some(std::net::IpAddr::from(bytes))
}

#[test]
fn counts_in_heads_are_compared_with_what_was_read() {
    let [own, one, three] = [
        set(0, &template(256, &USUAL)),
        set(256, &recent(1)),
        set(256, &[recent(1), recent(2), recent(3)].concat()),
    ];
    let options = [set(1, &options_v9(257, &[], &[(34, 4)])), set(257, &numbers(&[(100, 4)]))];
    let reserved = set(100, &[0; 8]);
    let cases: &[(u16, &[&Vec<u8>], u64)] = &[
        // One template and three records; without the template; sets.
        (4, &[&own, &three], 0),
        (3, &[&own, &three], 0),
        (2, &[&own, &three], 0),
        (5, &[&own, &three], 1),
        (0, &[&own, &three], 1),
        (6, &[&own, &options[0], &options[1], &three], 0),
        (7, &[&own, &options[0], &options[1], &three], 1),
        // Six records, without templates and options.
        (6, &[&own, &options[0], &options[1], &three, &three], 0),
        (8, &[&own, &options[0], &options[1], &three, &three], 1),
        // The template comes behind its records, in the same message or not at all.
        (4, &[&three, &own], 0),
        (5, &[&three, &own], 1),
        (9, &[&three], 0),
        (9, &[&own, &one, &reserved], 0),
    ];
    for (count, sets, miscounted) in cases {
        let mut message = v9(&sets.iter().map(|set| (*set).clone()).collect::<Vec<_>>());
        message[2..4].copy_from_slice(&count.to_be_bytes());
        let (_, counters) = read(&[message]);
        assert_eq!(counters.asides.miscounted_messages, *miscounted, "{count}: {counters:?}");
        assert_eq!(counters.malformed, 0);
    }
    // What waited for its template belongs to the message that it came in, and a template that changed without a word is noticed.
    let waits = v9(&[set(256, &recent(1))]);
    let (read_late, counters) = read(&[waits.clone(), v9(&[set(0, &template(256, &USUAL))])]);
    assert_eq!((read_late.len(), counters.asides.miscounted_messages), (1, 0));
    let shorter = set(0, &template(256, &[(8, 4), (1, 4)]));
    let (read_wrongly, counters) = read(&[v9(&[shorter]), waits]);
    assert_eq!(
        (read_wrongly.len(), counters.asides.miscounted_messages),
        (3, 0),
        "one set is counted as one"
    );
    let (_, counters) = read(&[v9(&[set(0, &template(256, &[(8, 4), (1, 4)]))]), {
        let mut message = v9(&[three]);
        message[3] = 3;
        message
    }]);
    assert_eq!(counters.asides.miscounted_messages, 1);
}

#[test]
fn what_stands_behind_the_last_record_of_a_set_is_padding_or_counted() {
    for (more, miscounted) in [(0, 0), (3, 0), (7, 0), (8, 1), (20, 1)] {
        let data = set(256, &[recent(1), vec![0; more]].concat());
        let of_v9 = v9(&[set(0, &template(256, &USUAL)), data.clone()]);
        let of_ipfix = ipfix(&[set(2, &template(256, &USUAL)), data]);
        for message in [of_v9, of_ipfix] {
            let (read, counters) = read(&[message]);
            assert_eq!((read.len(), counters.malformed), (1, 0));
            assert_eq!(counters.asides.miscounted_messages, miscounted, "{more}");
        }
    }
}

#[test]
fn options_without_a_scope_are_options() {
    let of_v9 = [set(1, &options_v9(257, &[], &[(34, 4)])), set(257, &numbers(&[(100, 4)]))];
    let of_ipfix = [set(3, &options_ipfix(257, 0, &[(34, 4)])), set(257, &numbers(&[(100, 4)]))];
    let data = |own: u16| [set(own, &template(256, &USUAL)), set(256, &recent(1))];
    for message in [v9(&[of_v9, data(0)].concat()), ipfix(&[of_ipfix, data(2)].concat())] {
        let (read, counters) = read(&[message]);
        assert_eq!((read.len(), counters.options, counters.records), (1, 1, 1));
        assert_eq!(read[0].0.sampling, 100);
    }
}

/// One packet in how many each record says.
fn rates(messages: &[Vec<u8>]) -> (Vec<u32>, u64) {
    let (read, counters) = read(messages);
    (read.iter().map(|(record, _)| record.sampling).collect(), counters.asides.unknown_sampling)
}

#[test]
fn sampling_is_that_of_the_sampler_that_a_record_names() {
    let with_id = [&USUAL[..], &[(48, 2)]].concat();
    let templates = set(0, &[template(256, &with_id), template(258, &USUAL)].concat());
    let options = |widths: u16| set(1, &options_v9(257, &[(1, 4)], &[(48, widths), (49, 1), (50, 4)]));
    let said = |width: usize, samplers: &[(u64, u64)]| {
        let record = |(id, one_in): &(u64, u64)| numbers(&[(1, 4), (*id, width), (2, 1), (*one_in, 4)]);
        set(257, &samplers.iter().flat_map(record).collect::<Vec<u8>>())
    };
    let of = |last: u8, id: u8| [recent(last), vec![0, id]].concat();
    let data = [set(256, &[of(1, 1), of(2, 2), of(3, 0)].concat()), set(258, &recent(4))].concat();
    for width in [1usize, 2, 4] {
        let options = v9(&[options(width as u16), said(width, &[(1, 2000), (2, 4000)])]);
        // The same before the options: nobody knows yet.
        let messages = [v9(&[templates.clone(), data.clone()]), options, v9(std::slice::from_ref(&data))];
        assert_eq!(rates(&messages), (vec![0, 0, 0, 0, 2000, 4000, 0, 0], 6), "{width}");
    }
    // Who names none is meant by the only one.
    let messages = [v9(&[templates, options(2), said(2, &[(6, 100)])]), v9(&[data])];
    assert_eq!(rates(&messages), (vec![0, 0, 0, 100], 3));
}

#[test]
fn a_sampler_that_looks_at_nothing_is_none() {
    let options = set(3, &options_ipfix(512, 1, &[(149, 4), (302, 2), (304, 2), (34, 4)]));
    let of = |id: u64, way: u64, one_in: u64| numbers(&[(0, 4), (id, 2), (way, 2), (one_in, 4)]);
    for both in [[of(1, 1, 10_922), of(0, 2, 0)], [of(0, 2, 0), of(1, 1, 10_922)]] {
        let data = [set(2, &template(256, &USUAL)), set(256, &recent(1))];
        let messages =
            [ipfix(std::slice::from_ref(&options)), ipfix(&[set(512, &both.concat())]), ipfix(&data)];
        assert_eq!(rates(&messages), (vec![10_922], 0));
    }
}

#[test]
fn selectors_of_psamp_say_how_they_sample() {
    let options = set(3, &options_ipfix(512, 1, &[(302, 8), (304, 2), (305, 4), (306, 4), (335, 65_535)]));
    let of = |id: u64, space: u64, name: &[u8]| {
        [numbers(&[(id, 8), (1, 2), (1, 4), (space, 4)]), vec![name.len() as u8], name.to_vec()].concat()
    };
    let fields = [&USUAL[..], &[(302, 8)]].concat();
    let data: Vec<u8> =
        (1..4u8).flat_map(|id| [recent(id), u64::from(id).to_be_bytes().to_vec()].concat()).collect();
    let messages = [
        ipfix(&[options, set(512, &[of(1, 1999, b"in"), of(2, 3999, b"out")].concat())]),
        ipfix(&[set(2, &template(256, &fields)), set(256, &data)]),
    ];
    assert_eq!(rates(&messages), (vec![2000, 4000, 0], 1));
    let half = 0.5f64.to_bits();
    for (fields, one_in) in [
        (vec![(305, 1, 4), (306, 499, 4)], 500),
        (vec![(309, 10, 4), (310, 1000, 4)], 100),
        (vec![(311, half, 8)], 2),
        (vec![(34, 100, 4)], 100),
        (vec![(34, 0, 4)], 0),
        (vec![(50, 2000, 4), (49, 2, 1)], 2000),
        (vec![(306, 499, 4)], 0),
    ] {
        // In the record, and in options.
        assert_eq!(one(&fields).0.sampling, one_in, "{fields:?}");
        let (described, values): (Vec<_>, Vec<_>) =
            fields.iter().map(|(id, value, length)| ((*id, *length as u16), (*value, *length))).unzip();
        let options = [
            set(3, &options_ipfix(512, 1, &[&[(149, 4)][..], &described].concat())),
            set(512, &[vec![0; 4], numbers(&values)].concat()),
        ];
        let data = [set(2, &template(256, &USUAL)), set(256, &recent(1))];
        let unknown = u64::from(one_in == 0);
        assert_eq!(rates(&[ipfix(&[options, data].concat())]), (vec![one_in], unknown), "{fields:?}");
    }
}

#[test]
fn sampling_may_be_said_of_an_interface() {
    let options = set(1, &options_v9(257, &[(2, 4)], &[(34, 4)]));
    let said = set(257, &numbers(&[(3, 4), (10, 4), (4, 4), (20, 4)]));
    let fields = [(8, 4), (10, 2), (14, 2)];
    let of = |input: u64, output: u64| numbers(&[(1, 4), (input, 2), (output, 2)]);
    let data = set(256, &[of(3, 9), of(4, 3), of(9, 4), of(9, 9)].concat().repeat(BLOCK));
    let messages = [v9(&[options, said, set(0, &template(256, &fields)), data])];
    assert_eq!(rates(&messages), ([10, 20, 20, 0].repeat(BLOCK), BLOCK as u64));
}

#[test]
fn what_an_exporter_said_before_it_restarted_is_not_what_it_means_now() {
    let at = |uptime: u32, seconds: u32, number: u32, sets: &[Vec<u8>]| {
        let head = [uptime, seconds, number, 0].map(u32::to_be_bytes).concat();
        [&[0, 9, 0, 1][..], &head, &sets.concat()].concat()
    };
    // The same fields in another order: the number of the template is that of another one now.
    let other: Vec<(u16, u16)> = [&USUAL[5..7], &USUAL[..5], &USUAL[7..]].concat();
    let of_other = |record: Vec<u8>| [&record[13..21], &record[..13], &record[21..]].concat();
    let sampler = [set(1, &options_v9(257, &[(1, 4)], &[(34, 4)])), set(257, &numbers(&[(1, 4), (100, 4)]))];
    let first = at(1_000_000, SECONDS, 7, &[&sampler[..], &[set(0, &template(256, &USUAL))]].concat());
    let of_before = at(1_001_000, SECONDS + 1, 8, &[set(256, &recent(1))]);
    // Its first message, with the templates, was lost.
    let anew = at(3_000, SECONDS + 30, 1, &[set(256, &of_other(usual(2, [1_000, 2_000])))]);
    let late = at(4_000, SECONDS + 31, 2, &[set(0, &template(256, &other))]);
    let (records, counters) = read(&[first.clone(), of_before.clone(), anew, late]);
    let said: Vec<_> = records
        .iter()
        .map(|(r, _)| (r.addresses[0].map(|a| a.to_string()), r.octets, r.packets, r.sampling))
        .collect();
    let of = |last: u8, rate| (Some(format!("10.0.0.{last}")), 300, 3, rate);
    assert_eq!(said, [of(1, 100), of(2, 0)]);
    assert_eq!((counters.restarts, counters.lost_sets, counters.waiting_sets), (1, 0, 0));
    // Two processes in one domain, as some routers have it: their numbers and uptimes differ, and neither restarts.
    let second = |number: u32| at(600_000, SECONDS + number, 50_000_000 + number, &[set(256, &recent(3))]);
    let (records, _) = read(&[first, of_before, second(1), second(2)]);
    assert_eq!(records.iter().map(|(r, _)| r.sampling).collect::<Vec<_>>(), [100; 3]);
}

#[test]
fn what_came_twice_before_its_template_is_a_duplicate() {
    let numbered = |number: u32, sets: &[Vec<u8>]| {
        let mut message = v9(sets);
        message[12..16].copy_from_slice(&number.to_be_bytes());
        message
    };
    let data = numbered(5, &[set(256, &[recent(1), recent(2)].concat())]);
    let templates = numbered(6, &[set(0, &template(256, &USUAL))]);
    let (records, counters) = read(&[data.clone(), data, templates]);
    let told = (records.len(), counters.records, counters.duplicate_messages, counters.duplicate_records);
    assert_eq!(told, (4, 4, 1, 2));
}

/// Elements that templates may have, with lengths that they may have.
fn field() -> impl Strategy<Value = (u16, u16)> {
    let plain =
        [1u16, 2, 4, 5, 6, 7, 10, 11, 14, 16, 17, 58, 59, 61, 136, 243, 254, 9, 13, 29, 30, 85, 86, 23, 24];
    let more = [
        21u16, 22, 32, 139, 150, 151, 158, 159, 161, 162, 34, 35, 48, 302, 305, 306, 309, 310, 176, 177, 178,
        179,
    ];
    let counters = [231u16, 232, 298, 299, 171, 172, 60, 9999, 82];
    prop_oneof![
        4 => (prop::sample::select(plain.to_vec()), 1u16..9),
        2 => (prop::sample::select(more.to_vec()), 1u16..9),
        1 => (prop::sample::select(counters.to_vec()), 0u16..12),
        2 => prop::sample::select(vec![(8, 4), (12, 4), (27, 16), (28, 16), (15, 4), (62, 16), (56, 6), (80, 6)]),
        1 => prop::sample::select(vec![(152, 8), (153, 8), (154, 8), (155, 16), (156, 8), (157, 8), (160, 8)]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Which way a record is read is decided once for a template; what it says is the same by each of them: alone, together with
    /// others, with care, and with a field whose length varies.
    #[test]
    fn records_say_the_same_whichever_way_they_are_read(
        fields in proptest::collection::vec(field(), 1..14),
        bytes in proptest::collection::vec(prop_oneof![1 => Just(0u8), 2 => any::<u8>()], 200),
        is_v9 in any::<bool>(),
    ) {
        let length: usize = fields.iter().map(|(_, length)| usize::from(*length)).sum();
        prop_assume!(length > 0);
        let format = if is_v9 { Format::V9 } else { Format::Ipfix };
        let records = |count: usize| -> Vec<u8> {
            (0..count).flat_map(|at| bytes.iter().cycle().skip(at).take(length).copied().collect::<Vec<u8>>()).collect()
        };
        let message = |fields: &[(u16, u16)], data: &[u8]| {
            let sets = [set(if is_v9 { 0 } else { 2 }, &template(256, fields)), set(256, data)];
            if is_v9 { v9(&sets) } else { ipfix(&sets) }
        };
        // Padding of a set is shorter than a record, of which some here have but one byte.
        let count = 2 * BLOCK + 3;
        let data = records(count);
        let (all, counters) = read(&[message(&fields, &data)]);
        prop_assert_eq!((counters.records, counters.malformed), (count as u64, 0));
        let mut plain = Vec::new();
        Session::new(false).message(&message(&fields, &data), &mut room(), &mut |record, _| plain.push(*record));
        prop_assert_eq!(&plain, &all.iter().map(|(record, _)| *record).collect::<Vec<_>>());
        // Each alone.
        let mut alone = Vec::new();
        for at in 0..count {
            alone.extend(read(&[message(&fields, &data[at * length..(at + 1) * length])]).0);
        }
        prop_assert!(alone == all, "alone: {:?} {:?}", alone[0], all[0]);
        // With care, whatever the template.
        let described = template(256, &fields);
        let mut made = Template::read(&mut Cursor(&described[4..]), fields.len(), None, format)
            .expect("fields")
            .expect("some");
        made.is_careful = true;
        made.is_plain = false;
        let (mut session, mut room) = (Session::new(true), room());
        session.lend(&mut room, |session| {
            let domain = session.domain((format, 0)).expect("room");
            domain.templates.insert(256, Kept { template: made, used_s: 0 });
        });
        let mut careful: Vec<Read> = Vec::new();
        let only = if is_v9 { v9(&[set(256, &data)]) } else { ipfix(&[set(256, &data)]) };
        session.message(&only, &mut room, &mut |record, others| {
            careful.push((*record, others.iter().map(|other| (other.number, other.bytes.to_vec())).collect()));
        });
        prop_assert!(careful == all, "with care: {:?} {:?}", careful[0], all[0]);
        // Behind a field whose length varies.
        let varying = [&fields[..], &[(9998, 65_535)]].concat();
        let longer: Vec<u8> = data.chunks(length).flat_map(|record| [record, &[0]].concat()).collect();
        let mut varied = read(&[message(&varying, &longer)]).0;
        for (_, others) in &mut varied {
            others.retain(|(number, _)| number.id != 9998);
        }
        let sorted = |mut read: Vec<Read>| {
            read.iter_mut().for_each(|(_, others)| others.sort());
            read
        };
        let (varied, all) = (sorted(varied), sorted(all));
        prop_assert!(varied == all, "behind a varying field: {:?} {:?}", varied[0], all[0]);
    }
}
