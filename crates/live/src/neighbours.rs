//! Answers for an address that we use and this host has not: ARP (RFC 826) and neighbour solicitations (RFC 4861).
//! And what routers say of packets that are too long for the way (RFC 792, RFC 1191, RFC 4443).

use crate::packet::{Ends, Mac};
use std::net::{IpAddr, Ipv6Addr};
use wire::checksum::{finish, pseudo_v6, sum};

const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const PACKET_TOO_BIG: u8 = 2;

/// The answer to a question after `own`, if this frame asks it.
pub fn answer(frame: &[u8], own: IpAddr, mac: Mac) -> Option<Vec<u8>> {
    let asker: Mac = *frame.get(6..)?.first_chunk()?;
    let mut reply = [asker, mac].concat();
    match (frame.get(12..14)?, own) {
        ([0x08, 0x06], IpAddr::V4(own)) => {
            // Ethernet, IPv4, a request, for ours.
            let arp = frame.get(14..42)?;
            let asks = arp.starts_with(&[0, 1, 8, 0, 6, 4, 0, 1]) && arp.get(24..28)? == own.octets();
            if !asks {
                return None;
            }
            reply.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
            reply.extend(mac);
            reply.extend(own.octets());
            reply.extend(arp.get(8..18)?);
            reply.resize(60, 0);
            Some(reply)
        }
        ([0x86, 0xdd], IpAddr::V6(own)) => {
            let ip = frame.get(14..54)?;
            let icmp = frame.get(54..78)?;
            let asks = ip.get(6..8)? == [ICMPV6, 255]
                && icmp.first() == Some(&SOLICITATION)
                && icmp.get(8..24)? == own.octets();
            if !asks {
                return None;
            }
            let source = Ipv6Addr::from(*ip.get(8..)?.first_chunk::<16>()?);
            // Somebody who has no address yet asks for all to hear (section 7.2.4).
            let (to, flags) = match source.is_unspecified() {
                true => (Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), 0x20),
                false => (source, 0x60),
            };
            let mut body = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
            body.extend(own.octets());
            body.extend([2, 1]);
            body.extend(mac);
            let value = finish(pseudo_v6(own.octets(), to.octets(), ICMPV6, body.len()) + sum(&body));
            body.get_mut(2..4)?.copy_from_slice(&value.to_be_bytes());
            reply.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, body.len() as u8, ICMPV6, 255]);
            reply.extend(own.octets());
            reply.extend(to.octets());
            reply.extend(body);
            Some(reply)
        }
        _ => None,
    }
}

/// The longest packet that a router says it can pass on, and our port on the connection it says it of.
pub fn too_long(frame: &[u8], ends: &Ends) -> Option<(u16, u32)> {
    let port = |at: usize| wire::bytes::be16(frame, at);
    let quoted = match (frame.get(12..14)?, ends.from.ip(), ends.to.ip()) {
        ([0x08, 0x00], IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = usize::from(frame.get(14)? & 0xf) * 4;
            let icmp = 14 + header;
            let quoted = icmp + 8;
            let right = frame.get(23) == Some(&1)
                && frame.get(icmp..icmp + 2)? == [3, 4]
                && frame.get(quoted + 9) == Some(&6)
                && frame.get(quoted + 12..quoted + 16)? == from.octets()
                && frame.get(quoted + 16..quoted + 20)? == to.octets();
            let transport = quoted + usize::from(frame.get(quoted)? & 0xf) * 4;
            right.then_some((transport, u32::from(port(icmp + 6)?)))
        }
        ([0x86, 0xdd], IpAddr::V6(from), IpAddr::V6(to)) => {
            let right = frame.get(20) == Some(&ICMPV6)
                && frame.get(54) == Some(&PACKET_TOO_BIG)
                && frame.get(62 + 6) == Some(&6)
                && frame.get(62 + 8..62 + 24)? == from.octets()
                && frame.get(62 + 24..62 + 40)? == to.octets();
            let mtu = u32::from_be_bytes(*frame.get(58..)?.first_chunk()?);
            right.then_some((102, mtu))
        }
        _ => None,
    };
    let (transport, mtu) = quoted?;
    (port(transport + 2)? == ends.to.port()).then_some((port(transport)?, mtu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_our_address_is_answered_and_nobody_else() {
        let own = "198.18.0.77".parse().unwrap();
        let mut frame = [[0xff; 6], [2, 0, 0, 0, 0, 2]].concat();
        frame.extend([
            8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 198, 18, 0, 2, 0, 0, 0, 0, 0, 0, 198, 18, 0, 77,
        ]);
        let reply = answer(&frame, own, [2, 0, 0, 0, 0, 1]).unwrap();
        assert_eq!(reply[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6]);
        assert_eq!(reply[20..42], [0, 2, 2, 0, 0, 0, 0, 1, 198, 18, 0, 77, 2, 0, 0, 0, 0, 2, 198, 18, 0, 2]);
        assert_eq!(answer(&frame, "198.18.0.78".parse().unwrap(), [2; 6]), None);
        assert!((0..frame.len()).all(|cut| answer(&frame[..cut], own, [2; 6]).is_none()));
    }

    #[test]
    fn a_router_is_believed_about_our_own_packets_only() {
        let ends = Ends { from: "198.18.0.1:1234".parse().unwrap(), to: "198.18.0.2:80".parse().unwrap() };
        let mut frame = vec![0; 14];
        frame[12] = 8;
        frame.extend([0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 198, 18, 0, 254, 198, 18, 0, 1]);
        frame.extend([3, 4, 0, 0, 0, 0, 5, 120]);
        frame.extend([
            0x45, 0, 5, 220, 0, 0, 0, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2, 4, 210, 0, 80, 0, 0, 0, 0,
        ]);
        assert_eq!(too_long(&frame, &ends), Some((1234, 1400)));
        let other = Ends { to: "198.18.0.3:80".parse().unwrap(), ..ends };
        assert_eq!(too_long(&frame, &other), None);
        assert!((0..frame.len()).all(|cut| too_long(&frame[..cut], &ends).is_none() || cut >= 66));
    }
}
