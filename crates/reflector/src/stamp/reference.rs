//! What `programs/bpf/stamp.bpf.c` does, written as plainly as can be: for the tests to compare with. It knows no rate.

use super::Options;
use super::clock::{PTP, Reading};
use super::own::Own;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use wire::checksum::{fold, pseudo_v4, pseudo_v6, sum};
use wire::numbers::ethertype;
use wire::numbers::protocol::UDP;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Answered,
    Other,
    TooShort,
    Malformed,
    Fragment,
    Answer,
    NotAllowed,
}

/// Source, destination, source port, SSID, identifiers of the outer VLANs.
type Session = (Ipv6Addr, Ipv6Addr, u16, u16, [u16; 2]);

/// A reflector with its sessions.
#[derive(Debug)]
pub struct Reference {
    options: Options,
    own: [u8; 6],
    generic: bool,
    reading: Reading,
    addresses: Own,
    sessions: HashMap<Session, u32>,
    pub without_room: u64,
}

/// Where the parts of a test packet stand in its frame.
struct Packet {
    v4: bool,
    network: usize,
    udp: usize,
    octets: usize,
}

impl Packet {
    fn addresses(&self, frame: &[u8]) -> [Ipv6Addr; 2] {
        let at = self.network;
        match self.v4 {
            true => [12, 16].map(|from| {
                let octets: [u8; 4] = std::array::from_fn(|i| frame[at + from + i]);
                std::net::Ipv4Addr::from(octets).to_ipv6_mapped()
            }),
            false => [8, 24].map(|from| {
                let octets: [u8; 16] = std::array::from_fn(|i| frame[at + from + i]);
                octets.into()
            }),
        }
    }

    fn pseudo(&self, frame: &[u8]) -> u64 {
        let [source, destination] = self.addresses(frame);
        let length = usize::from(be16(frame, self.udp + 4));
        match (source.to_ipv4_mapped(), destination.to_ipv4_mapped()) {
            (Some(source), Some(destination)) if self.v4 => {
                pseudo_v4(source.octets(), destination.octets(), UDP, length)
            }
            _ => pseudo_v6(source.octets(), destination.octets(), UDP, length),
        }
    }
}

impl Reference {
    pub fn new(
        options: &Options,
        own: [u8; 6],
        generic: bool,
        reading: &Reading,
        addresses: &Own,
    ) -> Reference {
        let (options, reading, addresses) = (options.clone(), *reading, addresses.clone());
        Reference { options, own, generic, reading, addresses, sessions: HashMap::new(), without_room: 0 }
    }

    pub fn sessions(&self) -> u64 {
        self.sessions.len() as u64
    }

    /// Makes the answer of `frame` where it lies, with the time stamps of `like`, which is the program's own. Left alone unless it
    /// is answered.
    pub fn answer(&mut self, frame: &mut [u8], like: &[u8]) -> Fate {
        let packet = match self.find(frame) {
            Ok(packet) => packet,
            Err(fate) => return fate,
        };
        let [source, destination] = packet.addresses(frame);
        if !self.is_to_us(&packet, destination) {
            return Fate::Other;
        }
        let payload = packet.udp + 8;
        let seconds = |at: usize| i64::from(be32(frame, payload + at));
        if frame[payload + 16..payload + 24] != [0; 8]
            && matches!((seconds(16) - seconds(4)) as u32, u32::MAX | 0 | 1)
        {
            return Fate::Answer;
        }
        if !self.allows(source) {
            return Fate::NotAllowed;
        }
        // Of TWAMP Light what follows is padding.
        let fields = if packet.octets < 44 { 41 } else { 44 };
        let zeros = frame[payload + 16..payload + fields].iter().all(|octet| *octet == 0);
        let ssid = if zeros { be16(frame, payload + 14) } else { 0 };
        let port = be16(frame, packet.udp);
        let number = self.number((source, destination, port, ssid, tags(frame)), be32(frame, payload));
        let before = frame.to_vec();
        let ptp = be16(frame, payload + 12) & PTP != 0;
        let estimate = if ptp { self.reading.ptp_estimate } else { self.reading.ntp_estimate };

        let ttl = before[packet.network + if packet.v4 { 8 } else { 7 }];
        let fresh = [
            &number.to_be_bytes()[..],
            &like[payload + 4..payload + 12],
            &estimate.to_be_bytes(),
            &ssid.to_be_bytes(),
            &like[payload + 16..payload + 24],
            &before[payload..payload + 14],
            &[0, 0, ttl, 0, 0, 0],
        ]
        .concat();
        frame[payload..payload + fields].copy_from_slice(&fresh[..fields]);
        turn(frame, &packet);
        self.sum_up(frame, &before, &packet);
        Fate::Answered
    }

    fn find(&self, frame: &[u8]) -> Result<Packet, Fate> {
        if frame[..6] != self.own {
            return Err(Fate::Other);
        }
        let mut at = 12;
        for _ in 0..4 {
            if is_tag(frame, at) {
                at += 4;
                if frame.len() < at + 2 {
                    return Err(Fate::Other);
                }
            }
        }
        let (kind, network) = (be16(frame, at), at + 2);
        let has = |octets: usize| frame.len() >= network + octets;
        let v4 = kind == ethertype::IPV4;
        let header = match kind {
            ethertype::IPV4 if has(20) && frame[network] >> 4 == 4 && frame[network + 9] == UDP => {
                usize::from(frame[network] & 15) * 4
            }
            ethertype::IPV6 if has(40) && frame[network] >> 4 == 6 && frame[network + 6] == UDP => 40,
            _ => return Err(Fate::Other),
        };
        let udp = network + header;
        let fragment = if v4 { be16(frame, network + 6) } else { 0 };
        if header < 20
            || fragment & 0x1fff != 0
            || !has(header + 8)
            || be16(frame, udp + 2) != self.options.port
        {
            return Err(Fate::Other);
        }
        if fragment & 0x3fff != 0 {
            return Err(Fate::Fragment);
        }
        let length = usize::from(be16(frame, udp + 4));
        let packet = Packet { v4, network, udp, octets: length.saturating_sub(8) };
        let room = match v4 {
            true => usize::from(be16(frame, network + 2)),
            false => usize::from(be16(frame, network + 4)) + 40,
        };
        let nobody =
            packet.addresses(frame).into_iter().zip([true, false]).any(|(address, is_source)| {
                match (v4, address.to_ipv4_mapped().map(|address| address.octets()[0])) {
                    (true, Some(first)) => matches!(first, 0 | 127 | 224..),
                    _ => address.is_multicast() || is_source && address.is_unspecified(),
                }
            });
        let without_sum = !v4 && be16(frame, udp + 6) == 0;
        if !has(room)
            || room < header + length
            || length < 8
            || nobody
            || without_sum
            || be16(frame, udp) == 0
            || frame[6] & 1 == 1
        {
            return Err(Fate::Malformed);
        }
        if packet.octets < 41 { Err(Fate::TooShort) } else { Ok(packet) }
    }

    fn is_to_us(&self, packet: &Packet, destination: Ipv6Addr) -> bool {
        let only = if packet.v4 { self.addresses.v4_only } else { self.addresses.v6_only };
        let address = match destination.to_ipv4_mapped() {
            Some(address) if packet.v4 => address.into(),
            _ => IpAddr::from(destination),
        };
        !only || self.addresses.addresses.contains(&address)
    }

    fn allows(&self, source: Ipv6Addr) -> bool {
        let all = &self.options.sources;
        all.is_empty()
            || all.iter().any(|(address, bits)| {
                let (address, bits) = match address {
                    IpAddr::V4(address) => (address.to_ipv6_mapped(), u32::from(*bits) + 96),
                    IpAddr::V6(address) => (*address, u32::from(*bits)),
                };
                (address.to_bits() ^ source.to_bits()).leading_zeros() >= bits
            })
    }

    fn number(&mut self, session: Session, senders: u32) -> u32 {
        if self.options.stateless {
            return senders;
        }
        let room = self.sessions.len() < self.options.sessions as usize;
        match self.sessions.get_mut(&session) {
            Some(next) => {
                *next += 1;
                *next - 1
            }
            None if room => {
                self.sessions.insert(session, 1);
                0
            }
            None => {
                self.without_room += 1;
                senders
            }
        }
    }

    /// The checksum of UDP is as right or wrong as it was; one that is yet to be computed is computed, or left to the kernel.
    fn sum_up(&self, frame: &mut [u8], before: &[u8], packet: &Packet) {
        let (from, to) = (packet.udp, packet.udp + 8 + packet.octets);
        let old = be16(frame, from + 6);
        if old == 0 {
            return;
        }
        // One in 65536 that is computed looks like one that is not.
        let right = fold(sum(&before[from..to]) + packet.pseudo(before)) == 0xffff;
        let unfinished = old == fold(packet.pseudo(before)) && packet.octets < 1500 && !right;
        if unfinished && self.generic {
            return;
        }
        frame[from + 6..from + 8].fill(0);
        let mut fresh = !fold(sum(&frame[from..to]) + packet.pseudo(frame));
        if !unfinished {
            // By how much it was wrong.
            let all = fold(sum(&before[from..to]) + packet.pseudo(before));
            fresh = !fold(u64::from(!fresh) + u64::from(!all));
        }
        let fresh = if fresh == 0 { 0xffff } else { fresh };
        frame[from + 6..from + 8].copy_from_slice(&fresh.to_be_bytes());
    }
}

/// Addresses, ports, time to live and its checksum.
fn turn(frame: &mut [u8], packet: &Packet) {
    swap(frame, 0, 6, 6);
    swap(frame, packet.udp, packet.udp + 2, 2);
    let at = packet.network;
    if !packet.v4 {
        frame[at + 7] = 255;
        swap(frame, at + 8, at + 24, 16);
        return;
    }
    swap(frame, at + 12, at + 16, 4);
    // RFC 1624.
    let before = u64::from(!be16(frame, at + 8));
    frame[at + 8] = 255;
    let fresh = !fold(u64::from(!be16(frame, at + 10)) + before + u64::from(be16(frame, at + 8)));
    frame[at + 10..at + 12].copy_from_slice(&fresh.to_be_bytes());
}

fn tags(frame: &[u8]) -> [u16; 2] {
    let of = |at: usize| if is_tag(frame, at) { be16(frame, at + 2) & 0xfff } else { 0 };
    [of(12), if is_tag(frame, 12) { of(16) } else { 0 }]
}

fn is_tag(frame: &[u8], at: usize) -> bool {
    matches!(be16(frame, at), ethertype::VLAN | ethertype::QINQ | ethertype::QINQ_OLD)
}

fn swap(frame: &mut [u8], a: usize, b: usize, length: usize) {
    for i in 0..length {
        frame.swap(a + i, b + i);
    }
}

fn be16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn be32(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| frame[at + i]))
}
