//! Which frames reach the devices: ARP, ICMP and ICMPv6, also behind one tag that is within the frame. (The outermost tag the kernel takes
//! out before.) All others the kernel keeps, so that test traffic costs no more than these few steps a frame.

use port::filter::Step;

// linux/bpf_common.h: classes, sizes and modes, put together.
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

const ARP: u32 = 0x0806;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const ICMP: u32 = 1;
const ICMPV6: u32 = 58;

/// The filter. Behind each comparison: how many steps are passed over if it is true, and if it is not.
pub(crate) fn steps() -> Vec<Step> {
    vec![
        // 0: what follows the addresses.
        Step(LOAD_HALF, 0, 0, 12),
        Step(EQUAL, 17, 0, ARP),
        Step(EQUAL, 7, 0, IPV4),
        Step(EQUAL, 8, 0, IPV6),
        Step(EQUAL, 1, 0, 0x8100),
        Step(EQUAL, 0, 12, 0x88a8),
        // 6: what follows a tag.
        Step(LOAD_HALF, 0, 0, 16),
        Step(EQUAL, 11, 0, ARP),
        Step(EQUAL, 5, 0, IPV4),
        Step(EQUAL, 6, 8, IPV6),
        // 10: the protocol, at each of four places.
        Step(LOAD_BYTE, 0, 0, 14 + 9),
        Step(EQUAL, 7, 6, ICMP),
        Step(LOAD_BYTE, 0, 0, 14 + 6),
        Step(EQUAL, 5, 4, ICMPV6),
        Step(LOAD_BYTE, 0, 0, 18 + 9),
        Step(EQUAL, 3, 2, ICMP),
        Step(LOAD_BYTE, 0, 0, 18 + 6),
        Step(EQUAL, 1, 0, ICMPV6),
        // 18: not taken, and taken whole.
        Step(RETURN, 0, 0, 0),
        Step(RETURN, 0, 0, 0x4_0000),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does with it.
    fn takes(frame: &[u8]) -> bool {
        let (steps, mut at, mut value) = (steps(), 0, 0);
        loop {
            let Step(code, yes, no, operand) = steps[at];
            let place = operand as usize;
            at += 1;
            match code {
                LOAD_HALF => value = u32::from(u16::from_be_bytes([frame[place], frame[place + 1]])),
                LOAD_BYTE => value = u32::from(frame[place]),
                EQUAL => at += usize::from(if value == operand { yes } else { no }),
                RETURN => return operand > 0,
                _ => panic!("{code}"),
            }
        }
    }

    #[test]
    fn arp_and_icmp_are_taken_and_nothing_else_behind_no_tag_or_one() {
        for tag in [&[][..], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 5]] {
            let frame = |kind: u16, protocol: usize, number: u8| {
                let mut frame = [&[2; 12], tag, &kind.to_be_bytes()[..]].concat();
                frame.resize(80, 0);
                frame[tag.len() + 14 + protocol] = number;
                frame
            };
            for (kind, protocol, number, taken) in [
                (0x0806, 9, 0, true),
                (0x0800, 9, 1, true),
                (0x0800, 9, 17, false),
                (0x86dd, 6, 58, true),
                (0x86dd, 6, 6, false),
                (0x86dd, 9, 1, false),
                (0x8847, 9, 1, false),
            ] {
                assert_eq!(takes(&frame(kind, protocol, number)), taken, "{tag:?} {kind:x} {number}");
            }
        }
    }
}
