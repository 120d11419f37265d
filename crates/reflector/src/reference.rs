//! What `programs/bpf/reflect.bpf.c` does, written as plainly as can be: for the tests to compare with.

use crate::options::Options;
use wire::numbers::ethertype;
use wire::numbers::protocol::{ICMP, ICMPV6, TCP, UDP};

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Sent back; an echo request that became a reply.
    Reflected {
        echo: bool,
    },
    Group,
    Resolution,
    Unsigned,
    Malformed,
}

impl Fate {
    /// The XDP verdict.
    pub fn verdict(self) -> u32 {
        match self {
            Fate::Reflected { .. } => 3,
            Fate::Group | Fate::Resolution | Fate::Unsigned => 2,
            Fate::Malformed => 1,
        }
    }
}

/// Turns `frame` round where it lies. Left alone unless it is reflected.
pub fn reflect(frame: &mut [u8], options: &Options) -> Fate {
    let mut turned = frame.to_vec();
    let fate = fate(&mut turned, options);
    if matches!(fate, Fate::Reflected { .. }) {
        frame.copy_from_slice(&turned);
    }
    fate
}

fn fate(frame: &mut [u8], options: &Options) -> Fate {
    if frame.len() < 14 || frame[6] & 1 == 1 {
        return Fate::Malformed;
    }
    if frame[0] & 1 == 1 {
        return Fate::Group;
    }
    if options.only_signed && wire::signature::Signature::at_end_of(frame).is_none() {
        return Fate::Unsigned;
    }
    let mut at = 12;
    for _ in 0..4 {
        if matches!(be16(frame, at), ethertype::VLAN | ethertype::QINQ | ethertype::QINQ_OLD) {
            at += 4;
            if frame.len() < at + 2 {
                if options.mac_only {
                    swap(frame, 0, 6, 6);
                    return Fate::Reflected { echo: false };
                }
                return Fate::Malformed;
            }
        }
    }
    let (kind, at) = (be16(frame, at), at + 2);
    let mut echo = false;
    match kind {
        ethertype::ARP => return Fate::Resolution,
        _ if options.mac_only => {}
        ethertype::IPV4 => {
            let header = usize::from(frame.get(at).copied().unwrap_or(0) & 15) * 4;
            if frame.len() < at + 20 || frame[at] >> 4 != 4 || header < 20 || frame.len() < at + header {
                return Fate::Malformed;
            }
            let transport = at + header;
            if be16(frame, at + 6) & 0x1fff == 0 {
                match frame[at + 9] {
                    TCP | UDP | ICMP if frame.len() < transport + 4 => return Fate::Malformed,
                    TCP | UDP => swap(frame, transport, transport + 2, 2),
                    ICMP if frame[transport] == 8 => {
                        answer(frame, transport, 0);
                        echo = true;
                    }
                    _ => {}
                }
            }
            swap(frame, at + 12, at + 16, 4);
        }
        ethertype::IPV6 => {
            let transport = at + 40;
            if frame.len() < transport || frame[at] >> 4 != 6 {
                return Fate::Malformed;
            }
            match frame[at + 6] {
                TCP | UDP | ICMPV6 if frame.len() < transport + 4 => return Fate::Malformed,
                TCP | UDP => swap(frame, transport, transport + 2, 2),
                ICMPV6 if (133..=137).contains(&frame[transport]) => return Fate::Resolution,
                ICMPV6 if frame[transport] == 128 => {
                    answer(frame, transport, 129);
                    echo = true;
                }
                _ => {}
            }
            swap(frame, at + 8, at + 24, 16);
        }
        _ => {}
    }
    swap(frame, 0, 6, 6);
    Fate::Reflected { echo }
}

fn be16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn swap(frame: &mut [u8], first: usize, second: usize, length: usize) {
    for at in 0..length {
        frame.swap(first + at, second + at);
    }
}

/// Changes the ICMP type, and the checksum by as much, in arithmetic modulo 65,535.
fn answer(frame: &mut [u8], at: usize, reply: u8) {
    let before = u32::from(be16(frame, at));
    frame[at] = reply;
    let after = u32::from(be16(frame, at));
    let sum = 65_535 - u32::from(be16(frame, at + 2));
    let sum = (sum + 65_535 - before + after) % 65_535;
    // Both 0 and 65,535 stand for zero; the checksum that is right over any message is 0xffff.
    let checksum = if sum == 0 { 65_535 } else { 65_535 - sum };
    frame[at + 2..at + 4].copy_from_slice(&(checksum as u16).to_be_bytes());
}
