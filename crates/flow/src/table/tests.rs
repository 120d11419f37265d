use super::*;
use crate::key::Parts;
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::Ipv4Addr;

const MS: u64 = 1_000_000;
const START: u64 = 1_700_000_000_000_000_000;

fn packet(flow: u32, at_ms: u64, tcp_flags: u16) -> Packet {
    let key = Key::new(Parts {
        addresses: [Ipv4Addr::from_bits(flow).into(), Ipv4Addr::LOCALHOST.into()],
        ports: [7, 9],
        protocol: protocol::TCP,
        tos: 0,
        vlan: None,
    });
    Packet {
        key: key.expect("one version"),
        at_ns: START + at_ms * MS,
        octets: 40,
        packets: 1,
        tcp_flags,
        ttl: 64,
        macs: [[2; 6]; 2],
        mpls: [0; 3],
        egress: false,
        sign: None,
    }
}

fn limits() -> Limits {
    Limits {
        flows: 1000,
        active_ns: 60_000 * MS,
        idle_ns: 1000 * MS,
        ended_ns: Some(100 * MS),
        ..Limits::default()
    }
}

#[test]
fn memory_for_a_flow_is_bounded() {
    for flows in [1000, 65_536, 1_000_000, 1 << 20, 10_000_000, (1 << 24) + 1] {
        assert!(bytes_per_flow(flows) <= 128.0, "{flows}: {}", bytes_per_flow(flows));
    }
}

#[test]
fn a_record_ends_when_its_time_is_over() {
    let mut table = Table::new(limits());
    let mut ended = Vec::new();
    table.add(&packet(1, 0, 0), &mut |over| ended.push(*over));
    table.add(&packet(1, 900, 0), &mut |over| ended.push(*over));
    table.add(&packet(2, 900, 0x02), &mut |over| ended.push(*over));
    table.add(&packet(2, 950, 0x11), &mut |over| ended.push(*over));
    assert!(!table.expire(START + 1040 * MS, 100, &mut |over| ended.push(*over)));
    assert!(ended.is_empty());
    table.expire(START + 1060 * MS, 100, &mut |over| ended.push(*over));
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].why, ended[0].flow.tcp_flags, ended[0].flow.packets), (Ended::Closed, 0x13, 2));
    // Idle since 900 ms: over at 1900 ms, and found out soon after.
    table.expire(START + 1890 * MS, 100, &mut |over| ended.push(*over));
    assert_eq!(ended.len(), 1);
    table.expire(START + 1910 * MS, 100, &mut |over| ended.push(*over));
    assert_eq!((ended[1].why, ended[1].flow.octets), (Ended::Idle, 80));
    assert_eq!(ended[1].flow.times_ns, [START, START + 900 * MS]);
    assert!(table.is_empty());
    assert_eq!(table.counters().over, [1, 0, 1, 0, 0, 0]);
}

#[test]
fn a_packet_after_the_timeout_begins_another_record_however_late_the_wheel_comes() {
    let mut table = Table::new(limits());
    let mut ended = Vec::new();
    table.add(&packet(1, 0, 0), &mut |over| ended.push(*over));
    table.add(&packet(1, 1000, 0), &mut |over| ended.push(*over));
    assert_eq!((ended.len(), table.len()), (1, 1));
    assert_eq!(ended[0].why, Ended::Idle);
}

#[test]
fn a_flow_that_goes_on_is_told_at_each_active_timeout() {
    let mut table = Table::new(Limits { active_ns: 5000 * MS, ..limits() });
    let mut ended = Vec::new();
    for at in (0..20_000).step_by(500) {
        table.add(&packet(1, at, 0), &mut |over| ended.push(*over));
        table.expire(START + at * MS, 100, &mut |over| ended.push(*over));
    }
    table.flush(usize::MAX, &mut |over| ended.push(*over));
    assert_eq!(ended.iter().map(|over| over.flow.packets).sum::<u64>(), 40);
    assert_eq!(
        ended.iter().map(|over| over.why).collect::<Vec<_>>(),
        [Ended::Active, Ended::Active, Ended::Active, Ended::Forced]
    );
}

#[test]
fn work_is_done_in_pieces() {
    let mut table = Table::new(limits());
    for flow in 0..500 {
        table.add(&packet(flow, 0, 0), &mut |_| panic!("there is room"));
    }
    let mut ended = 0;
    let mut pieces = 0;
    while table.expire(START + 5000 * MS, 64, &mut |_| ended += 1) {
        pieces += 1;
        assert!(ended <= 64 * pieces);
    }
    assert_eq!((ended, table.len()), (500, 0));
    assert!(pieces >= 7);
}

#[test]
fn a_full_table_ends_the_flow_that_is_idle_longest() {
    let mut table = Table::new(Limits { flows: 4, ..limits() });
    let mut ended = Vec::new();
    for flow in 0..4 {
        table.add(&packet(flow, u64::from(flow) * 100, 0), &mut |over| ended.push(*over));
    }
    assert!(ended.is_empty());
    table.add(&packet(9, 500, 0), &mut |over| ended.push(*over));
    assert_eq!((ended[0].why, ended[0].flow.key), (Ended::NoRoom, packet(0, 0, 0).key));
    assert_eq!(table.len(), 4);
}

#[test]
fn a_flood_of_resets_takes_no_more_memory_than_the_table_has() {
    let mut table = Table::new(Limits { flows: 100, ended_ns: Some(600_000 * MS), ..limits() });
    for flow in 0..100_000 {
        table.add(&packet(flow, u64::from(flow / 1000), 0x04), &mut |_| ());
    }
    assert_eq!(table.len(), 100);
    assert!(table.entries.len() <= 100 && table.closed.len() <= 2000, "{}", table.closed.len());
}

#[test]
fn a_clock_that_goes_back_or_far_ahead_loses_nothing() {
    let mut table = Table::new(limits());
    let mut ended = 0;
    for (flow, at) in [(1, 10_000), (2, 0), (3, 400_000_000), (4, 5)] {
        table.add(&packet(flow, at, 0), &mut |_| ended += 1);
        table.expire(START + at * MS, usize::MAX, &mut |_| ended += 1);
    }
    table.expire(START + 900_000_000 * MS, usize::MAX, &mut |_| ended += 1);
    assert_eq!((ended, table.len()), (4, 0));
}

#[test]
fn a_flow_that_begins_in_1970_ends_in_time() {
    let mut table = Table::new(limits());
    let mut ended = 0;
    for (flow, at_ms) in [(1, 0), (2, 3), (3, 900)] {
        table.add(&Packet { at_ns: at_ms * MS, ..packet(flow, 0, 0) }, &mut |_| ended += 1);
    }
    table.expire(1020 * MS, 100, &mut |_| ended += 1);
    assert_eq!(ended, 2);
}

/// One that comes back.
fn answer(flow: u32, at_ms: u64, tcp_flags: u16) -> Packet {
    let packet = packet(flow, at_ms, tcp_flags);
    Packet { key: packet.key.reversed(), octets: 1000, ..packet }
}

#[test]
fn both_directions_are_one_flow_that_ends_when_both_are_closed() {
    let mut table = Table::both_ways(limits());
    let mut ended = Vec::new();
    let mut over = |over: &Over| ended.push(*over);
    table.add(&packet(1, 0, SYN), &mut over);
    table.add(&answer(1, 10, SYN | ACK), &mut over);
    table.add(&packet(1, 20, ACK), &mut over);
    table.add(&packet(1, 30, ACK | FIN), &mut over);
    // It is not over for the other end.
    table.add(&answer(1, 900, ACK), &mut over);
    table.add(&answer(1, 920, ACK | FIN), &mut over);
    assert_eq!(table.len(), 1);
    table.expire(START + 1100 * MS, 100, &mut over);
    let [one] = ended[..] else { panic!("{ended:?}") };
    assert_eq!(
        (one.why, one.flow.key, one.flow.packets, one.flow.octets),
        (Ended::Closed, packet(1, 0, 0).key, 3, 120)
    );
    assert_eq!(one.flow.times_ns, [START, START + 30 * MS]);
    let back = one.other_way().expect("answers");
    assert_eq!((back.key, back.packets, back.octets), (answer(1, 0, 0).key, 3, 3000));
    assert_eq!((back.times_ns, back.tcp_flags), ([START + 10 * MS, START + 920 * MS], SYN | ACK | FIN));
    assert_eq!((back.ttl, back.lengths), ([64; 2], [1000; 2]));
    assert_eq!(one.back.map(|back| back.began), Some(Began::Source));
    assert!(table.is_empty() && table.index.iter().all(|word| *word == 0));
}

#[test]
fn who_began_is_told_by_the_handshake_and_else_by_the_first_packet() {
    let began = |packets: &[Packet]| {
        let mut table = Table::both_ways(limits());
        packets.iter().for_each(|packet| table.add(packet, &mut |_| panic!("nothing is over")));
        let mut began = None;
        table.flush(1, &mut |over| began = over.back.map(|back| back.began));
        began.expect("a flow")
    };
    assert_eq!(began(&[packet(1, 0, SYN | ACK), answer(1, 1, ACK)]), Began::Destination);
    assert_eq!(began(&[packet(1, 0, ACK), answer(1, 1, SYN)]), Began::Destination);
    assert_eq!(began(&[packet(1, 0, SYN), answer(1, 1, SYN)]), Began::Source);
    assert_eq!(began(&[packet(1, 0, ACK), answer(1, 1, ACK)]), Began::Source);
    let udp = Packet { tcp_flags: 0, key: dns(), ..packet(1, 0, 0) };
    assert_eq!(began(&[udp]), Began::Source);
}

fn dns() -> Key {
    let addresses = [Ipv4Addr::LOCALHOST.into(); 2];
    let parts = Parts { addresses, ports: [53, 53], protocol: protocol::UDP, tos: 0, vlan: None };
    Key::new(parts).expect("one version")
}

#[test]
fn a_flow_to_itself_has_no_other_direction() {
    let mut table = Table::both_ways(limits());
    for _ in 0..3 {
        table.add(&Packet { key: dns(), ..packet(1, 0, 0) }, &mut |_| panic!("nothing is over"));
    }
    let mut packets = None;
    table.flush(1, &mut |over| packets = Some((over.flow.packets, over.other_way())));
    assert_eq!(packets, Some((3, None)));
}

#[test]
fn memory_for_a_flow_of_both_directions_is_what_is_documented() {
    for flows in [1000, 1 << 20, 10_000_000] {
        assert!(bytes_per_flow_both_ways(flows) <= 192.0, "{}", bytes_per_flow_both_ways(flows));
    }
}

proptest! {
    /// What one table counts of both directions is what another counts of each.
    #[test]
    fn both_directions_come_to_the_same_as_each(
        steps in proptest::collection::vec((0u32..20, 0u64..90, 0u16..64, any::<bool>()), 1..300),
    ) {
        let limits = Limits { flows: 1000, active_ns: 1 << 60, idle_ns: 1 << 60, ended_ns: None, ..Limits::default() };
        let (mut one, mut both) = (Table::new(limits), Table::both_ways(limits));
        let (mut of_one, mut of_both) = (Vec::new(), Vec::new());
        let mut at = 0;
        for (flow, later, flags, back) in steps {
            at += later;
            let packet = if back { answer(flow, at, flags) } else { packet(flow, at, flags) };
            one.add(&packet, &mut |_| ());
            both.add(&packet, &mut |_| ());
        }
        one.flush(usize::MAX, &mut |over| of_one.push(over.flow));
        both.flush(usize::MAX, &mut |over| {
            of_both.push(over.flow);
            of_both.extend(over.other_way());
        });
        let order = |flow: &Flow| (flow.key.parts().addresses, flow.key.parts().ports);
        of_one.sort_by_key(order);
        of_both.sort_by_key(order);
        prop_assert_eq!(of_one, of_both);
    }

    /// What a map does that looks at all flows for each packet.
    #[test]
    fn it_counts_as_a_plain_map_does(
        steps in proptest::collection::vec((0u32..40, 0u64..400, 0u16..64, any::<bool>()), 1..400),
    ) {
        let limits = Limits { flows: 1000, active_ns: 3000 * MS, idle_ns: 500 * MS, ended_ns: None, ..Limits::default() };
        let mut table = Table::new(limits);
        let mut plain: HashMap<Parts2, Flow> = HashMap::new();
        let (mut told, mut wanted) = (Vec::new(), Vec::new());
        let mut at = 0;
        for (flow, later, flags, expire) in steps {
            at += later;
            let packet = packet(flow, at, flags);
            let now = packet.at_ns;
            let over = |f: &Flow| now >= f.times_ns[1] + 500 * MS || now >= f.times_ns[0] + 3000 * MS;
            plain.retain(|_, flow| { if over(flow) { wanted.push(*flow); } !over(flow) });
            let counted = plain.entry(Parts2(flow)).or_insert(Flow {
                key: packet.key, packets: 0, octets: 0, times_ns: [now; 2], tcp_flags: 0, ttl: [64; 2],
                lengths: [40; 2], macs: packet.macs, mpls: packet.mpls, egress: packet.egress,
            });
            counted.packets += 1;
            counted.octets += 40;
            counted.times_ns[1] = now;
            counted.tcp_flags |= flags;
            table.add(&packet, &mut |over| told.push(over.flow));
            if expire {
                table.expire(now, usize::MAX, &mut |over| told.push(over.flow));
            }
        }
        table.flush(usize::MAX, &mut |over| told.push(over.flow));
        wanted.extend(plain.into_values());
        let order = |flow: &Flow| (flow.times_ns, flow.key.parts().addresses, flow.packets);
        told.sort_by_key(order);
        wanted.sort_by_key(order);
        prop_assert_eq!(told, wanted);
        prop_assert!(table.is_empty() && table.index.iter().all(|word| *word == 0));
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Parts2(u32);

proptest! {
    #[test]
    fn packets_that_are_counted_together_count_as_one_by_one(
        flows in proptest::collection::vec((0u32..200, 0u64..40, 0u16..8), 1..400),
        most in 20u32..300,
    ) {
        let mut at_ms = 0;
        let packets: Vec<Packet> = flows.iter().map(|&(flow, later, flags)| {
            at_ms += later;
            packet(flow, at_ms, flags)
        }).collect();
        let limits = Limits { flows: most, idle_ns: 500 * MS, ..limits() };
        let [mut one, mut all] = [Table::new(limits), Table::new(limits)];
        let [mut of_one, mut of_all] = [Vec::new(), Vec::new()];
        packets.iter().for_each(|packet| one.add(packet, &mut |over| of_one.push(*over)));
        all.add_all(&packets, &mut |over| of_all.push(*over));
        one.flush(usize::MAX, &mut |over| of_one.push(*over));
        all.flush(usize::MAX, &mut |over| of_all.push(*over));
        prop_assert_eq!(of_one, of_all);
    }
}

proptest! {
    /// A record ends before its counters do, and what all of them say is what was counted.
    #[test]
    fn no_record_has_more_than_its_counters_can_say_and_nothing_is_lost(
        steps in proptest::collection::vec((0u32..3, 1u64..3_000_000_000, any::<bool>()), 1..200),
        both in any::<bool>(),
    ) {
        let most = u64::from(u32::MAX);
        let limits = Limits { active_ns: 1 << 60, idle_ns: 1 << 60, octets: most, ..limits() };
        let mut table = if both { Table::both_ways(limits) } else { Table::new(limits) };
        let (mut wanted, mut told) = ([0, 0], [0, 0]);
        let mut over = |over: &Over| {
            for flow in [Some(over.flow), over.other_way()].into_iter().flatten() {
                assert!(flow.octets <= most);
                told[0] += flow.packets;
                told[1] += flow.octets;
            }
        };
        for (at, (flow, octets, back)) in steps.into_iter().enumerate() {
            let packet = if back { answer(flow, at as u64, 0) } else { packet(flow, at as u64, 0) };
            wanted[0] += 1;
            wanted[1] += octets;
            table.add(&Packet { octets, ..packet }, &mut over);
        }
        table.flush(usize::MAX, &mut over);
        prop_assert_eq!(told, wanted);
    }
}

#[test]
fn a_record_that_is_full_ends_and_the_next_one_goes_on() {
    let mut table = Table::new(Limits { octets: 100, ..limits() });
    let mut ended = Vec::new();
    for at in 0..5 {
        table.add(&packet(1, at, 0), &mut |over| ended.push((over.why, over.flow.octets)));
    }
    table.flush(usize::MAX, &mut |over| ended.push((over.why, over.flow.octets)));
    assert_eq!(ended, [(Ended::Full, 80), (Ended::Full, 80), (Ended::Forced, 40)]);
    assert_eq!(table.counters().over, [0, 0, 0, 1, 0, 2]);
    assert_eq!((Ended::Full.number(), Ended::Idle.number()), (5, 1));
}

/// A peak of a moment is one, though nobody looked at it.
#[test]
fn the_most_flows_at_once_are_counted_when_they_begin() {
    let mut table = Table::new(Limits { flows: 300, ..limits() });
    for flow in 0..200 {
        table.add(&packet(flow, 0, 0x11), &mut |_| ());
    }
    table.expire(START + 200 * MS, usize::MAX, &mut |_| ());
    assert_eq!((table.len(), table.counters().most), (0, 200));
    for flow in 1000..1400 {
        table.add(&packet(flow, 300, 0), &mut |_| ());
    }
    assert_eq!((table.len(), table.counters().most), (300, 300), "there is room for no more");
}
