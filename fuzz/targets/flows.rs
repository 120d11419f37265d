//! Any bytes as frames that are metered: each behind its length in two bytes, and how much later it came than the one before in one
//! (in tenths of a second). The records count what was taken, no more and no less, and a collector reads them so.
#![no_main]

use flow::collect::{Room, Session};
use flow::export::{Exporter, LONGEST, Settings};
use flow::packet::{Choice, Frame, Walk};
use flow::sampling::Flows;
use flow::table::{Limits, Table};
use flow::template::{Context, SIGNED, Version, usual};
use libfuzzer_sys::fuzz_target;
use wire::LinkType;

const SECOND: u64 = 1_000_000_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, mut rest)) = bytes.split_first() else { return };
    let signed = choice & 14 == 8;
    let mut walk = Walk::new(Choice {
        inner: choice & 1 != 0,
        directions: choice & 64 != 0,
        signatures: signed,
        samples: choice & 128 != 0,
    });
    let limits = Limits {
        flows: 8,
        active_ns: 5 * SECOND,
        idle_ns: SECOND,
        ended_ns: Some(SECOND / 2),
        ..Limits::default()
    };
    let both_ways = choice & 6 == 4;
    let table = if both_ways { Table::both_ways(limits) } else { Table::new(limits) };
    let mut table = if signed { table.with_signatures() } else { table };
    let version = if choice & 2 != 0 { Version::V9 } else { Version::Ipfix };
    let usual = usual(version);
    let settings = Settings {
        version,
        template: if signed { format!("{usual} {SIGNED}") } else { usual },
        first_template: 257,
        both_ways,
        signed,
        domain: 0,
        longest: LONGEST,
        refresh_messages: 4,
        refresh_ns: 10 * SECOND,
        context: Context {
            began_ns: SECOND,
            interfaces: [[1, 0], [0, 1]],
            sampling: 1,
            random: false,
            flows: Flows::all(),
        },
    };
    let mut exporter = Exporter::new(settings).expect("the usual template");
    let (mut session, mut room) = (Session::new(false), Room::of(1 << 20));
    let (mut came, mut read, mut now_ns) = ([0u64; 2], [0u64; 2], 2 * SECOND);
    let mut collect = |bytes: &[u8]| {
        session.message(bytes, &mut room, &mut |record, _| {
            read[0] += record.packets;
            read[1] += record.octets;
        });
    };
    while let Some((head, behind)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([head[0], head[1]])).min(behind.len());
        let (frame, behind) = behind.split_at(length);
        rest = behind;
        now_ns += u64::from(head[2]) * SECOND / 10;
        let frame = Frame {
            link: LinkType::ETHERNET,
            bytes: frame,
            length: frame.len(),
            at_ns: now_ns,
            vlan: None,
            segment: None,
            egress: false,
        };
        if let Ok(packet) = walk.packet(&frame) {
            came[0] += 1;
            came[1] += packet.octets;
            table.add(&packet, &mut |over| exporter.add(over, now_ns, &mut |message| collect(message.bytes)));
        }
        table.expire(now_ns, 16, &mut |over| {
            exporter.add(over, now_ns, &mut |message| collect(message.bytes))
        });
    }
    table.flush(usize::MAX, &mut |over| exporter.add(over, now_ns, &mut |message| collect(message.bytes)));
    exporter.flush(now_ns, &mut |message| collect(message.bytes));
    assert_eq!(read, came);
    assert_eq!(
        (session.counters().malformed, session.counters().lost_sets, session.counters().missing_records),
        (0, 0, 0)
    );
});
