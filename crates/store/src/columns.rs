//! The columns of a row, once for all forms.

use crate::Row;
use flow::record::Record;
use std::net::IpAddr;

/// A column's values.
#[derive(Clone, Copy)]
pub enum Of {
    /// Numbers of 32 bits.
    Word(fn(&Record) -> u32),
    /// Numbers of 64 bits.
    Number(fn(&Record) -> u64),
    /// Numbers of 32 bits; 0: not known.
    Told(fn(&Record) -> u32),
    /// Nanoseconds since 1970; 0: not known.
    Time(fn(&Row) -> u64),
    /// When a row came, which is always known.
    Came(fn(&Row) -> u64),
    Name(fn(&Record) -> &'static str),
    Address(fn(&Row) -> Option<IpAddr>),
    Mac(fn(&Record) -> [u8; 6]),
}

/// A column.
pub struct Column {
    pub name: &'static str,
    pub of: Of,
}

const fn column(name: &'static str, of: Of) -> Column {
    Column { name, of }
}

/// Their names are goflow2's where it has them.
pub const COLUMNS: [Column; 30] = [
    column("type", Of::Name(|r| r.format.name())),
    column("time_received_ns", Of::Came(|row| row.received_ns)),
    column("sampler_address", Of::Address(|row| Some(row.from.to_canonical()))),
    column("observation_domain_id", Of::Word(|r| r.domain)),
    column("sampling_rate", Of::Told(|r| r.sampling)),
    column("time_flow_start_ns", Of::Time(|row| row.record.times_ns[0])),
    column("time_flow_end_ns", Of::Time(|row| row.record.times_ns[1])),
    column("bytes", Of::Number(|r| r.octets)),
    column("packets", Of::Number(|r| r.packets)),
    column("src_addr", Of::Address(|row| row.record.addresses[0])),
    column("dst_addr", Of::Address(|row| row.record.addresses[1])),
    column("etype", Of::Word(|r| etype(r).into())),
    column("proto", Of::Word(|r| r.protocol.into())),
    column("src_port", Of::Word(|r| r.ports[0].into())),
    column("dst_port", Of::Word(|r| r.ports[1].into())),
    column("in_if", Of::Word(|r| r.interfaces[0])),
    column("out_if", Of::Word(|r| r.interfaces[1])),
    column("src_mac", Of::Mac(|r| r.macs[0])),
    column("dst_mac", Of::Mac(|r| r.macs[1])),
    column("src_vlan", Of::Word(|r| r.vlans[0].into())),
    column("dst_vlan", Of::Word(|r| r.vlans[1].into())),
    column("ip_tos", Of::Word(|r| r.tos.into())),
    column("tcp_flags", Of::Word(|r| r.tcp_flags.into())),
    column("src_as", Of::Word(|r| r.systems[0])),
    column("dst_as", Of::Word(|r| r.systems[1])),
    column("src_net", Of::Word(|r| r.prefixes[0].into())),
    column("dst_net", Of::Word(|r| r.prefixes[1].into())),
    column("next_hop", Of::Address(|row| row.record.next_hop)),
    column("flow_end_reason", Of::Word(|r| r.end_reason.into())),
    column("flow_direction", Of::Word(|r| r.direction.into())),
];

/// EtherType of what a record's addresses are of; 0: it has none.
pub fn etype(record: &Record) -> u16 {
    match record.addresses[0] {
        Some(IpAddr::V4(_)) => 0x0800,
        Some(IpAddr::V6(_)) => 0x86dd,
        None => 0,
    }
}

/// Digits of an address. `write!` takes several times as long for IPv4.
pub fn write_address(address: &IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(v4) => {
            for (number, octet) in v4.octets().into_iter().enumerate() {
                if number > 0 {
                    out.push(b'.');
                }
                if octet >= 100 {
                    out.push(b'0' + octet / 100);
                }
                if octet >= 10 {
                    out.push(b'0' + octet / 10 % 10);
                }
                out.push(b'0' + octet % 10);
            }
        }
        IpAddr::V6(v6) => {
            // Writing to a Vec does not fail.
            let _ = std::io::Write::write_fmt(out, format_args!("{v6}"));
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn digit(value: u8) -> u8 {
    DIGITS.get(usize::from(value)).copied().unwrap_or(b'0')
}

pub fn write_hex(byte: u8, out: &mut Vec<u8>) {
    out.extend([digit(byte >> 4), digit(byte & 15)]);
}

pub fn write_mac(mac: [u8; 6], out: &mut Vec<u8>) {
    for (number, byte) in mac.into_iter().enumerate() {
        if number > 0 {
            out.push(b':');
        }
        write_hex(byte, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_displayed() {
        for text in ["0.0.0.0", "255.255.255.255", "10.9.100.1", "192.0.2.199", "2001:db8::1", "::"] {
            let mut out = Vec::new();
            write_address(&text.parse().unwrap(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
        let mut out = Vec::new();
        write_mac([0, 1, 0x0a, 0xff, 0x5e, 0x10], &mut out);
        assert_eq!(out, b"00:01:0a:ff:5e:10");
    }

    #[test]
    fn no_two_columns_share_a_name() {
        let names: std::collections::BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), COLUMNS.len());
    }
}
