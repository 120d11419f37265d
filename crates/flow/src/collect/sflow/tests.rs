use super::super::tests::room;
use super::*;
use crate::collect::Counters;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn counted(kind: u32, body: &[u8]) -> Vec<u8> {
    [&words(&[kind, body.len() as u32]), body].concat()
}

/// The beginning of a packet: `protocol` is sFlow's number of the first header.
fn header_of(protocol: u32, bytes: &[u8], length: u32) -> Vec<u8> {
    let mut body = words(&[protocol, length, if protocol == 1 { 4 } else { 0 }, bytes.len() as u32]);
    body.extend(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    counted(1, &body)
}

fn sample(number: u32, drops: u32, output: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let head = words(&[number, 5, 512, 5120, drops, 3, output, records.len() as u32]);
    counted(1, &[head, records.concat()].concat())
}

fn expanded(input: [u32; 2], output: [u32; 2], records: &[Vec<u8>]) -> Vec<u8> {
    let head = [1, 0, 5, 512, 5120, 0, input[0], input[1], output[0], output[1], records.len() as u32];
    counted(3, &[words(&head), records.concat()].concat())
}

fn datagram_of(agent: u8, number: u32, samples: &[Vec<u8>]) -> Vec<u8> {
    let head = [&words(&[5, 1]), &[192, 0, 2, agent][..], &words(&[0, number, 1000, samples.len() as u32])];
    [head.concat(), samples.concat()].concat()
}

fn datagram(samples: &[Vec<u8>]) -> Vec<u8> {
    datagram_of(9, 1, samples)
}

fn ipv4() -> Vec<u8> {
    let mut packet = vec![0x45, 8, 0, 100, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1];
    packet.extend([3, 232, 0, 53, 0, 80, 0, 0]);
    packet.extend([0x18; 40]);
    packet
}

fn ipv6() -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 80, 17, 64];
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend([3, 232, 0, 53, 0, 80, 0, 0, 1, 2, 3, 4]);
    packet
}

fn frame() -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa, 8, 0][..], &ipv4()].concat()
}

type Read = (Record, Vec<(Number, Vec<u8>)>);

fn read_all(datagrams: &[Vec<u8>]) -> (Vec<Read>, Counters) {
    let (mut session, mut room, mut read) = (Session::new(true), room(), Vec::new());
    for datagram in datagrams {
        session.message(datagram, &mut room, &mut |record, others| {
            read.push((*record, others.iter().map(|other| (other.number, other.bytes.to_vec())).collect()));
        });
    }
    (read, *session.counters())
}

fn ends(record: &Record) -> String {
    record.addresses.map(|address| address.expect("an address").to_string()).join(" ")
}

#[test]
fn packets_are_read_from_each_kind_of_first_header() {
    let (v4, v6) = (header_of(11, &ipv4(), 100), header_of(12, &ipv6(), 120));
    let ethernet = header_of(1, &frame(), 118);
    let (read, counters) = read_all(&[datagram(&[
        sample(1, 0, 4, &[v4]),
        sample(2, 0, 4, &[v6]),
        sample(3, 0, 4, &[ethernet]),
        sample(4, 0, 4, &[header_of(7, &frame(), 100)]),
    ])]);
    let said: Vec<_> =
        read.iter().map(|(r, _)| (ends(r), r.ports, r.octets, r.packets, r.sampling)).collect();
    let of_v4 = ("10.0.0.1 10.0.1.1".to_owned(), [1000, 53], 100, 1, 512);
    let of_v6 = ("2001:db8::1 2001:db8::2".to_owned(), [1000, 53], 120, 1, 512);
    assert_eq!(said, [of_v4.clone(), of_v6, of_v4]);
    assert_eq!((counters.records, counters.asides.unread_samples, counters.malformed), (3, 1, 0));
    assert_eq!((read[2].0.macs[0][5], read[0].0.interfaces), (0xaa, [3, 4]));
    // It is of whoever sampled it, through whatever it came.
    assert!(read.iter().all(|(_, others)| others[..] == [(Number::iana(130), vec![192, 0, 2, 9])]));
}

#[test]
fn a_header_that_was_cut_says_what_is_left_of_it() {
    let cut = |length: usize| sample(1, 0, 4, &[header_of(1, &frame()[..length], 118)]);
    let lengths = [60, 38, 36, 34, 33, 20, 14, 12];
    let (read, counters) = read_all(&[datagram(&lengths.map(cut))]);
    let said: Vec<_> = read
        .iter()
        .map(|(r, _)| (ends(r), r.ports, r.protocol, r.octets, r.tos, r.macs.map(|mac| mac[5])))
        .collect();
    let of = |ports| ("10.0.0.1 10.0.1.1".to_owned(), ports, 17, 100, 8, [0xaa, 0xbb]);
    assert_eq!(said, [of([1000, 53]), of([1000, 53]), of([0, 0]), of([0, 0])]);
    // Of the others not even the addresses are left.
    assert_eq!((counters.records, counters.asides.unread_samples, counters.malformed), (4, 4, 0));
    let v6 = sample(1, 0, 4, &[header_of(12, &ipv6()[..40], 120)]);
    let (read, _) = read_all(&[datagram(&[v6])]);
    assert_eq!((ends(&read[0].0), read[0].0.octets), ("2001:db8::1 2001:db8::2".to_owned(), 120));
}

#[test]
fn what_a_switch_says_of_a_packet_is_read() {
    let of_v4 = counted(3, &words(&[100, 6, 0x0a00_0001, 0x0a00_0101, 1000, 443, 0x12, 8]));
    let address = |last: u32| [0x2001_0db8, 0, 0, last];
    let of_v6 = [&[120, 17][..], &address(1), &address(2), &[53, 54, 0, 9]].concat();
    let switch = counted(1001, &words(&[16, 5, 17, 0]));
    let router = counted(1002, &words(&[1, 0xc000_0201, 24, 25]));
    let gateway = counted(
        1003,
        &words(&[1, 0xc000_0202, 64500, 64501, 64502, 2, 2, 2, 65001, 65002, 1, 1, 65003, 0, 0]),
    );
    let own = counted(1003, &words(&[2, 0x2001_0db8, 0, 0, 7, 64500, 64501, 64502, 0, 0, 0]));
    let vendor = counted(4413 << 12 | 1, &[1, 2, 3, 4]);
    let (read, counters) = read_all(&[datagram(&[
        sample(1, 0, 4, &[switch, of_v4.clone(), vendor, router, gateway]),
        sample(2, 0, 4, &[own, counted(4, &words(&of_v6))]),
        // Nothing but Ethernet addresses; and a packet that was discarded, which is no flow sample.
        sample(3, 0, 4, &[counted(2, &[0; 20])]),
        counted(5, &[0; 28]),
        counted(2, &[0; 12]),
    ])]);
    let [(first, _), (second, _)] = &read[..] else { panic!("{read:?}") };
    assert_eq!(
        (ends(first), first.ports, first.octets, first.packets),
        ("10.0.0.1 10.0.1.1".to_owned(), [1000, 443], 100, 1)
    );
    assert_eq!((first.protocol, first.tcp_flags, first.tos, first.vlans), (6, 0x12, 8, [16, 17]));
    assert_eq!((first.prefixes, first.systems), ([24, 25], [64501, 65003]));
    assert_eq!(first.next_hop, Some(Ipv4Addr::new(192, 0, 2, 1).into()));
    assert_eq!((ends(second), second.ports, second.tos), ("2001:db8::1 2001:db8::2".to_owned(), [53, 54], 9));
    assert_eq!((second.systems, second.next_hop.map(|hop| hop.is_ipv6())), ([64501, 64500], Some(true)));
    assert_eq!((counters.records, counters.asides.unread_samples, counters.malformed), (2, 2, 0));
    // A tag that the frame lost on its way in does not take one that it has.
    let tagged = [&frame()[..12], &[0x81, 0, 0, 10], &frame()[12..]].concat();
    let (read, _) = read_all(&[datagram(&[
        sample(1, 0, 4, &[header_of(1, &tagged, 122)]),
        sample(2, 0, 4, &[header_of(1, &tagged, 122), counted(1001, &words(&[0, 0, 17, 0]))]),
    ])]);
    assert_eq!([read[0].0.vlans, read[1].0.vlans], [[10, 0], [10, 17]]);
}

#[test]
fn outputs_that_are_no_interface_are_said_as_what_they_are() {
    let packet = || vec![header_of(11, &ipv4(), 100)];
    let (read, _) = read_all(&[datagram(&[
        sample(1, 0, 4, &packet()),
        sample(2, 0, 1 << 30 | 258, &packet()),
        sample(3, 0, 2 << 30 | 7, &packet()),
        sample(4, 0, 2 << 30, &packet()),
        sample(5, 0, NO_INTERFACE, &packet()),
        expanded([0, 70_000], [0, 80_000], &packet()),
        expanded([0, NO_INTERFACE], [1, 256], &packet()),
    ])]);
    let said: Vec<_> = read.iter().map(|(r, others)| (r.interfaces, others[1..].to_vec())).collect();
    let dropped = || vec![(Number::iana(89), vec![0x80])];
    let several = |count: u8| vec![(element::OUTPUTS, vec![0, 0, 0, count])];
    assert_eq!(
        said,
        [
            ([3, 4], vec![]),
            ([3, 0], dropped()),
            ([3, 0], several(7)),
            ([3, 0], several(0)),
            ([3, 0], vec![]),
            ([70_000, 80_000], vec![]),
            ([0, 0], dropped()),
        ]
    );
}

#[test]
fn more_samples_or_records_than_are_counted_are_noticed() {
    let packet = header_of(11, &ipv4(), 100);
    let two =
        [sample(1, 0, 4, std::slice::from_ref(&packet)), sample(2, 0, 4, std::slice::from_ref(&packet))];
    let whole = datagram(&two);
    let mut fewer = whole.clone();
    fewer[27] = 1;
    let mut inner = datagram(&[sample(1, 0, 4, &[packet.clone(), packet])]);
    // Of the first sample, how many records it has.
    inner[28 + 8 + 31] = 1;
    for (datagram, records, miscounted) in [(whole, 2, 0), (fewer, 1, 1), (inner, 1, 1)] {
        let (read, counters) = read_all(&[datagram]);
        assert_eq!((read.len(), counters.malformed), (records, 0));
        assert_eq!(counters.asides.miscounted_messages, miscounted);
    }
}

#[test]
fn samples_that_are_missing_or_were_dropped_are_counted_for_each_source() {
    let of = |agent: u8, number: u32, sample_number: u32, drops: u32| {
        datagram_of(agent, number, &[sample(sample_number, drops, 4, &[header_of(11, &ipv4(), 100)])])
    };
    // What was dropped before this began does not count. Two agents behind one address have numbers of their own.
    let (_, counters) = read_all(&[
        of(9, 1, 100, 70),
        of(8, 500, 7, 0),
        of(9, 2, 101, 70),
        of(9, 3, 105, 75),
        of(8, 501, 8, 1),
        of(9, 4, 103, 75),
        of(9, 4, 103, 75),
    ]);
    assert_eq!((counters.asides.missing_samples, counters.asides.dropped_samples), (2, 6));
    let mut source = Source::first(u32::MAX, u32::MAX);
    assert_eq!(source.follow(2, 1, None), Step { missing: 2, found: false, dropped: 2 });
    assert_eq!([0, 0, 1].map(|number| source.follow(number, 1, None).found), [true, false, true]);
    // Another beginning: nothing is known of what was between.
    assert_eq!(source.follow(1 << 30, 9, None), Step::default());
    assert_eq!(source.follow(5, 3, None), Step::default());
    assert_eq!(source.follow(7, 3, None), Step { missing: 1, ..Step::default() });
}

#[test]
fn samples_that_come_late_are_neither_a_restart_nor_found_where_none_was_missing() {
    let mut source = Source::first(1_000, 0);
    // Of before the first one nobody knows whether it was missing.
    assert!(!source.follow(998, 0, None).found);
    assert_eq!(source.follow(1_100, 0, None), Step { missing: 99, ..Step::default() });
    // Too late for what is remembered: it stays missing, and what follows goes on.
    assert_eq!(source.follow(1_010, 0, None), Step::default());
    assert_eq!(source.follow(1_101, 0, None), Step::default());
    // Many of them in a row are a source that began anew.
    (1..=ROW).for_each(|number| assert_eq!(source.follow(number.into(), 0, None), Step::default()));
    assert_eq!(source.follow(20, 0, None), Step { missing: 3, ..Step::default() });
}

#[test]
fn an_agent_that_restarts_erases_no_sample_that_was_missing() {
    let at = |uptime: u32, number: u32, sample_number: u32| {
        let mut bytes =
            datagram_of(9, number, &[sample(sample_number, 0, 4, &[header_of(11, &ipv4(), 100)])]);
        bytes[20..24].copy_from_slice(&uptime.to_be_bytes());
        bytes
    };
    // 11 to 29 did not come; what the agent numbers 12 after its restart is not one of these. Its 13 and 14 do not come, either.
    let (_, counters) = read_all(&[
        at(100_000, 1, 10),
        at(101_000, 2, 30),
        at(1_000, 1, 11),
        at(2_000, 2, 12),
        at(3_000, 3, 15),
    ]);
    assert_eq!((counters.asides.missing_samples, counters.restarts), (21, 1));
}

#[test]
fn a_later_fragment_is_not_taken_for_one_of_another_sample() {
    let fragment = |offset: u16, rest: &[u8]| {
        let mut packet = ipv4();
        packet[6..8].copy_from_slice(&offset.to_be_bytes());
        packet[20..20 + rest.len()].copy_from_slice(rest);
        vec![header_of(11, &packet, 100)]
    };
    // The same identification, which comes again after 65,536 packets.
    let samples =
        [sample(1, 0, 4, &fragment(0x2000, &[0, 7, 0, 9])), sample(2, 0, 4, &fragment(0x0010, &[1; 4]))];
    let (read, _) = read_all(&[datagram(&samples)]);
    assert_eq!([read[0].0.ports, read[1].0.ports], [[7, 9], [0, 0]]);
}

#[test]
fn what_is_remembered_of_sources_is_given_back() {
    let (mut session, mut room) = (Session::new(true), room());
    let whole = room;
    let mut uptime = 1_000_000_000u32;
    for number in 1..2_000 {
        let mut bytes = datagram_of((number % 7) as u8, number, &[sample(number, 0, 4, &[])]);
        // Of the sample's source: type and number.
        bytes[40..44].copy_from_slice(&number.to_be_bytes());
        uptime = if number % 100 == 0 { 1_000 } else { uptime + 1_000 };
        bytes[20..24].copy_from_slice(&uptime.to_be_bytes());
        session.message(&bytes, &mut room, &mut |_, _| {});
    }
    session.give_way(&mut room);
    assert_eq!((session.taken(), room), (0, whole));
}

#[test]
fn damaged_datagrams_are_no_panic() {
    let whole = datagram(&[
        sample(1, 0, 4, &[header_of(1, &frame(), 118), counted(1003, &words(&[1, 1, 2, 3, 4, 1, 2, 1, 5]))]),
        expanded([0, 1], [0, 2], &[header_of(12, &ipv6(), 120)]),
    ]);
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            read_all(&[damaged]);
        }
        read_all(&[whole[..at].to_vec()]);
    }
}

/// A datagram with more samples than are remembered is overtaken by the next one: that is no restart of its source.
#[test]
fn samples_of_a_datagram_that_is_far_behind_are_found_and_begin_nothing_anew() {
    let samples = |from: u32| -> Vec<Vec<u8>> {
        (from..from + 100).map(|number| sample(number, 0, 3, &[header_of(11, &ipv4(), 100)])).collect()
    };
    let all: Vec<Vec<u8>> =
        (0..4).map(|number| datagram_of(9, 10 + number, &samples(number * 100))).collect();
    let missing = |order: &[usize]| {
        let sent: Vec<Vec<u8>> = order.iter().map(|at| all[*at].clone()).collect();
        let (read, counters) = read_all(&sent);
        (read.len(), counters.asides.missing_samples)
    };
    assert_eq!(missing(&[0, 1, 2, 3]), (400, 0));
    assert_eq!(missing(&[0, 2, 3]), (300, 100));
    assert_eq!(missing(&[0, 2, 1, 3]), (400, 0));
    assert_eq!(missing(&[0, 1, 1, 0, 2, 3]), (600, 0));
}
