//! Rules that change fields of each packet, or insert options.

use super::packet::{Packet, ROUTING, set};
use super::{Ip6Option, IpOption, Rule};

const DESTINATION: u8 = 60;

/// Applies a rule that leaves the number of packets as it is. Where there is no room, nothing changes.
pub(super) fn set_rule(packet: &mut Packet, rule: &Rule) {
    let Some(layout) = packet.layout() else { return };
    match rule {
        Rule::Ttl(ttl) => {
            set(&mut packet.bytes, if layout.v6 { 7 } else { 8 }, &[*ttl]);
            packet.finish();
        }
        Rule::Tos(tos) if !layout.v6 => {
            set(&mut packet.bytes, 1, &[*tos]);
            packet.finish();
        }
        Rule::Ip6Qos { class, label } if layout.v6 => {
            let word = 6 << 28 | u32::from(*class) << 20 | label & 0xf_ffff;
            set(&mut packet.bytes, 0, &word.to_be_bytes());
        }
        Rule::IpOption(option) if !layout.v6 => ip_option(packet, option),
        Rule::TcpOption(option) => tcp_option(packet, option),
        Rule::Ip6Option(option) if layout.v6 => {
            let first = packet.bytes.get(6).copied().unwrap_or(0);
            let (kind, header) = match option {
                Ip6Option::Route { left, hops } => {
                    let mut header = vec![first, hops.len() as u8 * 2, 0, *left, 0, 0, 0, 0];
                    hops.iter().for_each(|hop| header.extend(hop.octets()));
                    (ROUTING, header)
                }
                Ip6Option::Raw(bytes) => {
                    let mut header = vec![first, ((bytes.len() + 2) / 8 - 1) as u8];
                    header.extend(bytes);
                    (DESTINATION, header)
                }
            };
            // Hop-by-hop options must stay the first header (RFC 8200 section 4.1).
            if first == 0 || packet.bytes.len() + header.len() > 40 + 0xffff {
                return;
            }
            set(&mut packet.bytes, 6, &[kind]);
            packet.bytes.splice(40..40, header);
            packet.finish();
        }
        _ => {}
    }
}

/// Appends to IPv4's options.
fn ip_option(packet: &mut Packet, option: &IpOption) {
    let bytes = match option {
        IpOption::Route { strict, pointer, hops } => {
            // A no-operation before it brings the addresses to whole words.
            let mut bytes = vec![1, if *strict { 137 } else { 131 }, 3 + 4 * hops.len() as u8, *pointer];
            hops.iter().for_each(|hop| bytes.extend(hop.octets()));
            bytes
        }
        IpOption::Raw(bytes) => bytes.clone(),
    };
    insert_ip_option(packet, &bytes);
}

/// Inserts whole words behind IPv4's header; false where there is no room.
pub(super) fn insert_ip_option(packet: &mut Packet, bytes: &[u8]) -> bool {
    let Some(layout) = packet.layout().filter(|layout| !layout.v6) else { return false };
    let header = layout.payload + bytes.len();
    if header > 60 || packet.bytes.len() + bytes.len() > 0xffff {
        return false;
    }
    packet.bytes.splice(layout.payload..layout.payload, bytes.iter().copied());
    set(&mut packet.bytes, 0, &[0x40 | (header / 4) as u8]);
    packet.finish();
    true
}

/// Appends whole words to TCP's options.
pub(super) fn tcp_option(packet: &mut Packet, bytes: &[u8]) {
    let Some((layout, payload)) = packet.tcp() else { return };
    let header = payload - layout.upper + bytes.len();
    if header > 60 || packet.bytes.len() + bytes.len() > 0xffff {
        return;
    }
    packet.bytes.splice(payload..payload, bytes.iter().copied());
    let low = packet.bytes.get(layout.upper + 12).copied().unwrap_or(0) & 0x0f;
    set(&mut packet.bytes, layout.upper + 12, &[((header / 4) as u8 * 16) | low]);
    packet.finish_upper();
}
