//! What a packet costs the table of flows, in ns, by how many flows there are: `cargo run --release -p netdyno-flow --example table`.
//! UDP over IPv4 with random source addresses, one core, parsing among it. The first of three passes makes the flows.

use netdyno_flow::packet::{Choice, Frame, Walk};
use netdyno_flow::table::{Limits, Table};
use std::time::Instant;
use wire::LinkType;

const HOUR_NS: u64 = 3_600_000_000_000;
const BATCH: u64 = 256;

fn main() {
    for bits in [10, 16, 20, 23] {
        let limits = Limits {
            flows: 10_000_000,
            active_ns: HOUR_NS,
            idle_ns: HOUR_NS,
            ended_ns: None,
            ..Limits::default()
        };
        let (mut table, mut walk) = (Table::new(limits), Walk::new(Choice::default()));
        let packets = if bits > 22 { 30_000_000 } else { 10_000_000 };
        // Ethernet, IPv4 and UDP; the source address is filled in.
        let mut bytes = [0; 48];
        (bytes[12], bytes[14], bytes[17], bytes[22], bytes[23]) = (8, 0x45, 46, 64, 17);
        (bytes[35], bytes[37], bytes[39]) = (7, 9, 26);
        let mut random = 1_u64;
        let each = [0; 3].map(|_| {
            let begin = Instant::now();
            let mut batch = Vec::with_capacity(BATCH as usize);
            for from in (0..packets).step_by(BATCH as usize) {
                batch.clear();
                for at in from..from + BATCH {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let source = 10 << 24 | random as u32 & ((1 << bits) - 1);
                    bytes[26..30].copy_from_slice(&source.to_be_bytes());
                    let frame = Frame {
                        link: LinkType::ETHERNET,
                        bytes: &bytes,
                        length: 60,
                        at_ns: HOUR_NS + at,
                        vlan: None,
                        segment: None,
                        egress: false,
                    };
                    batch.extend(walk.packet(&frame).ok());
                }
                table.add_all(&batch, &mut |_| {});
            }
            begin.elapsed().as_nanos() as f64 / packets as f64
        });
        println!(
            "{:>9} flows: {:.0} ns a packet while they come, then {:.0} and {:.0}",
            table.len(),
            each[0],
            each[1],
            each[2]
        );
    }
}
