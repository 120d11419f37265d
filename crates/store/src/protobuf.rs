//! Records as messages of goflow2's `FlowMessage` (protocol buffers), each behind its length: what goflow2's own enrichers, and
//! pipelines behind Kafka, read.

use crate::Row;
use crate::columns::etype;
use flow::element;
use flow::record::{Format, Other};
use std::net::IpAddr;

/// Wire types of protocol buffers.
const VARINT: u32 = 0;
const BYTES: u32 = 2;

/// A message that is written.
struct Message<'a>(&'a mut Vec<u8>);

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Message<'_> {
    /// Zero is what a field is that is not there.
    fn number(&mut self, field: u32, value: impl Into<u64>) {
        let value = value.into();
        if value != 0 {
            varint(self.0, u64::from(field << 3 | VARINT));
            varint(self.0, value);
        }
    }

    /// Zero is written, too.
    fn present(&mut self, field: u32, value: u64) {
        varint(self.0, u64::from(field << 3 | VARINT));
        varint(self.0, value);
    }

    fn address(&mut self, field: u32, address: Option<IpAddr>) {
        let bytes: &[u8] = match &address {
            None => return,
            Some(IpAddr::V4(v4)) => &v4.octets(),
            Some(IpAddr::V6(v6)) => &v6.octets(),
        };
        varint(self.0, u64::from(field << 3 | BYTES));
        varint(self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn mac(&mut self, field: u32, mac: [u8; 6]) {
        let [a, b, c, d, e, f] = mac;
        self.number(field, u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
    }
}

/// Writes a row behind its length. `scratch` is memory to be used again.
pub fn write(row: &Row, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    let mut message = Message(scratch);
    let r = &row.record;
    message.number(
        1,
        match r.format {
            Format::Sflow => 1u32,
            Format::V5 => 2,
            Format::V9 => 3,
            Format::Ipfix => 4,
        },
    );
    message.number(3, r.sampling);
    let [source, destination] = r.addresses;
    message.address(6, source);
    message.address(7, destination);
    message.number(9, r.octets);
    message.number(10, r.packets);
    message.address(11, Some(row.from.to_canonical()));
    message.address(12, r.next_hop);
    let pairs = [
        (14, r.systems),
        (16, r.prefixes.map(u32::from)),
        (18, r.interfaces),
        (21, r.ports.map(u32::from)),
        (33, r.vlans.map(u32::from)),
    ];
    for (field, [of_source, of_destination]) in pairs {
        message.number(field, of_source);
        message.number(field + 1, of_destination);
    }
    message.number(20, r.protocol);
    message.number(23, r.tos);
    message.number(26, r.tcp_flags);
    let [from_mac, to_mac] = r.macs;
    message.mac(27, from_mac);
    message.mac(28, to_mac);
    message.number(30, etype(r));
    // ICMP's type and code stand in the destination port, as NetFlow has them.
    if [1, 58].contains(&r.protocol) {
        message.number(31, r.ports[1] >> 8);
        message.number(32, r.ports[1] & 0xff);
    }
    // goflow2 1 had it; later versions keep the number, and who does not know it passes over it.
    message.number(42, r.direction);
    message.number(70, r.domain);
    message.number(110, row.received_ns);
    let [first, last] = r.times_ns;
    message.number(111, first);
    message.number(112, last);
    // Numbers from 1000 on are free for others' fields. A stream may be number 0, so it is written wherever it is known.
    for (number, bytes) in row.others.iter().filter(|(number, _)| number.enterprise == element::OWN) {
        let field = match number.id {
            1 => 1000,
            2 => 1004,
            3 => 1005,
            4 => 1006,
            _ => continue,
        };
        message.present(field, Other { number: *number, bytes }.unsigned());
    }
    varint(out, scratch.len() as u64);
    out.extend_from_slice(scratch);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups_of_seven_bits() {
        let of = |value| {
            let mut out = Vec::new();
            varint(&mut out, value);
            out
        };
        assert_eq!([of(0), of(127), of(300)], [vec![0], vec![127], vec![0xac, 2]]);
        assert_eq!(of(u64::MAX), [vec![0xff; 9], vec![1]].concat());
    }
}
