//! Frames that most networks carry whoever measures there: what hosts and switches tell each other of addresses, groups
//! and themselves. Where nothing tells a run's own frames from others', these at least are known by what they are.
//!
//! `programs/bpf/include/background.h` is the same for the meter in the kernel; `meter`'s twin test holds the two equal.

/// Is it ARP, IPv6 neighbour discovery (RFC 4861) or listener discovery (RFC 3810), IGMP, LLDP, or to a group that no bridge
/// forwards to (IEEE 802.1Q, table 8-1: spanning tree, LACP, LLDP, pause)? Tags in front change nothing.
pub fn is_background(frame: &[u8]) -> bool {
    if let [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f, ..] = frame {
        return frame.len() >= 14;
    }
    let tag_at =
        |at: usize| matches!(frame.get(at..at + 2), Some([0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00]));
    let tags = (0..4).take_while(|tag| tag_at(12 + 4 * tag)).count();
    let Some((kind, packet)) = frame.get(12 + 4 * tags..).and_then(|rest| rest.split_first_chunk::<2>())
    else {
        return false;
    };
    let byte = |at: usize| packet.get(at).copied();
    match kind {
        // ARP, LLDP.
        [0x08, 0x06] | [0x88, 0xcc] => true,
        [0x08, 0x00] => packet.len() >= 20 && packet[0] >> 4 == 4 && packet[9] == 2,
        [0x86, 0xdd] if packet.len() > 40 && packet[0] >> 4 == 6 => match packet[6] {
            58 => matches!(byte(40), Some(133..=137)),
            // Behind hop-by-hop options of 8 bytes, with the router alert.
            0 => byte(40) == Some(58) && byte(41) == Some(0) && matches!(byte(48), Some(130..=132 | 143)),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(destination: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&destination[..], &[2, 0, 0, 0, 0, 1], rest, &[0; 60]].concat()
    }

    #[test]
    fn what_is_about_on_networks_is_known_and_data_is_not() {
        const HOST: [u8; 6] = [2, 0, 0, 0, 0, 2];
        let ipv6 = |next: u8, behind: &[u8]| {
            let mut packet = vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, next, 255];
            packet.extend([0; 32]);
            packet.extend(behind);
            frame(HOST, &packet)
        };
        let mut igmp = vec![0x08, 0x00, 0x46, 0, 0, 32, 0, 0, 0, 0, 1, 2];
        igmp.resize(60, 0);
        let mut udp = igmp.clone();
        udp[11] = 17;
        for (is, frame) in [
            (true, frame([0xff; 6], &[0x08, 0x06, 0, 1])),
            (true, frame([0xff; 6], &[0x81, 0, 0, 7, 0x08, 0x06, 0, 1])),
            (true, frame([0x01, 0x80, 0xc2, 0, 0, 0], &[0, 38, 0x42, 0x42, 3])),
            (true, frame([0x01, 0x80, 0xc2, 0, 0, 0x0e], &[0x88, 0xcc])),
            (true, frame(HOST, &[0x88, 0xcc])),
            (true, ipv6(58, &[135, 0])),
            (true, ipv6(0, &[58, 0, 5, 2, 0, 0, 1, 0, 143, 0])),
            (true, frame(HOST, &igmp)),
            (false, frame(HOST, &udp)),
            (false, frame([0x01, 0x80, 0xc2, 0, 0, 0x10], &[0, 38, 0x42, 0x42, 3])),
            (false, ipv6(58, &[128, 0])),
            (false, ipv6(0, &[17, 0, 5, 2, 0, 0, 1, 0, 143, 0])),
            (false, frame(HOST, &[0x88, 0xb5])),
            (false, frame([0xff; 6], &[0x08, 0x06, 0, 1])[..13].to_vec()),
            (false, Vec::new()),
        ] {
            assert_eq!(is_background(&frame), is, "{frame:02x?}");
        }
    }
}
