//! The bytes of a look-alike's frame: whole, with lengths and checksums that hold, and payload that is a keyed pattern.

use wire::checksum;
use wire::numbers::{ethertype, protocol};

use super::plan::{Addresses, Talk};
use super::profile::{Kind, Tags, What};
use crate::conversation::{ACK, PSH, RST, SYN};
use crate::random::{For, Key};

/// Shortest frame without FCS that Ethernet takes.
const MINIMUM: usize = 60;

/// What a frame of a conversation is, beside its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// From the server.
    pub back: bool,
    /// TCP's flags; without PSH or ACK among them where it carries nothing.
    pub flags: u8,
    /// Sequence and acknowledgement number.
    pub numbers: [u32; 2],
    /// Milliseconds, for TCP's time stamps.
    pub now_ms: u32,
}

/// Makes frames in a buffer of its own.
#[derive(Debug)]
pub(super) struct Assembler {
    key: Key,
    addresses: Addresses,
    made: u64,
    buffer: Vec<u8>,
}

impl Assembler {
    pub fn new(key: Key, addresses: Addresses) -> Assembler {
        Assembler { key, addresses, made: 0, buffer: Vec::new() }
    }

    /// A frame of a conversation, of `length` bytes without FCS (or as few more as its headers need), and how many bytes of
    /// payload it carries.
    pub fn of_talk(&mut self, talk: &Talk, kind: &Kind, turn: &Turn, length: usize) -> (&[u8], u32) {
        let v6 = kind.ip == 6;
        let hosts = if turn.back { [talk.server, talk.client] } else { [talk.client, talk.server] };
        self.begin(hosts, v6);
        self.tags(kind.tags, if v6 { ethertype::IPV6 } else { ethertype::IPV4 }, talk.vlan);
        let ip = self.buffer.len();
        let transport = ip + if v6 { 40 } else { 20 };
        let room = length.saturating_sub(transport);
        let (header, payload) = match kind.protocol {
            protocol::TCP => self.tcp_parts(length, room, turn, kind.tags),
            protocol::SCTP | protocol::DCCP => (12, room.saturating_sub(12)),
            protocol::UDP | protocol::UDPLITE | protocol::ICMP | protocol::ICMPV6 => {
                (8, room.saturating_sub(8))
            }
            _ => (0, room),
        };
        self.ip_header(hosts, v6, kind.protocol, header + payload, 0);
        let start = self.buffer.len();
        self.buffer.resize(start + header, 0);
        self.payload(payload);
        self.transport(talk, kind, turn, start, header);
        let shortest = length.max(self.buffer.len());
        // Padding, of zeros.
        self.buffer.resize(shortest, 0);
        self.made += 1;
        (&self.buffer, payload as u32)
    }

    /// A frame of no conversation.
    pub fn of_other(&mut self, what: What, tags: Tags, length: usize) -> &[u8] {
        let vlan = 100;
        match what {
            What::Fragment { ip, protocol } | What::CutOff { ip, protocol } => {
                let (v6, cut) = (ip == 6, matches!(what, What::CutOff { .. }));
                self.begin([0, 1], v6);
                self.tags(tags, if v6 { ethertype::IPV6 } else { ethertype::IPV4 }, vlan);
                let fixed = self.buffer.len() + if v6 { 40 } else { 20 };
                let extension = if v6 && !cut { 8 } else { 0 };
                let payload = if cut { 0 } else { length.saturating_sub(fixed + extension) };
                let next = if extension > 0 { wire::numbers::protocol::FRAGMENT } else { protocol };
                // Behind a first fragment of 1,480 bytes.
                self.ip_header([0, 1], v6, next, extension + payload, if cut { 0 } else { 185 });
                if extension > 0 {
                    self.buffer.extend([protocol, 0, 5, 0xc8, 0, 0, 0, 1]);
                }
                self.payload(payload);
            }
            What::EtherType(ethertype::ARP) => {
                self.begin([0, 1], false);
                self.tags(tags, ethertype::ARP, vlan);
                let (mac, from, to) =
                    (self.addresses.mac(0, false), self.addresses.v4(0), self.addresses.v4(1));
                self.buffer.extend([0, 1, 8, 0, 6, 4, 0, 1]);
                self.buffer.extend(mac.iter().chain(&from).chain(&[0; 6]).chain(&to));
            }
            What::EtherType(kind) => {
                self.begin([0, 1], false);
                self.tags(tags, kind, vlan);
            }
            What::Llc => {
                self.begin([0, 1], false);
                let behind = length.saturating_sub(self.buffer.len() + tags.bytes() as usize + 2).min(1500);
                self.tags(tags, behind as u16, vlan);
                // A null link service access point, unnumbered information (IEEE 802.2).
                self.buffer.extend([0, 0, 3]);
            }
            What::Unknown => {
                self.begin([0, 1], false);
                // Local experimental EtherType 1 (IEEE 802).
                self.tags(tags, 0x88b5, vlan);
            }
        }
        let shortest = length.max(self.buffer.len());
        self.buffer.resize(shortest, 0);
        self.made += 1;
        &self.buffer
    }

    fn begin(&mut self, [from, to]: [u32; 2], v6: bool) {
        self.buffer.clear();
        self.buffer.extend(self.addresses.mac(to, v6));
        self.buffer.extend(self.addresses.mac(from, v6));
    }

    /// The EtherType, and what stands before it.
    fn tags(&mut self, tags: Tags, kind: u16, vlan: u16) {
        for left in (0..tags.vlan).rev() {
            let tag = if left > 0 { ethertype::QINQ } else { ethertype::VLAN };
            self.buffer.extend(tag.to_be_bytes());
            self.buffer.extend(vlan.to_be_bytes());
        }
        if tags.pppoe {
            self.buffer.extend(ethertype::PPPOE_SESSION.to_be_bytes());
            // Its length is filled in by the IP header (RFC 2516 section 4).
            self.buffer.extend([0x11, 0, 0, 1, 0, 0]);
            let number: u16 = if kind == ethertype::IPV6 { 0x57 } else { 0x21 };
            self.buffer.extend(number.to_be_bytes());
        } else if tags.mpls > 0 {
            self.buffer.extend(ethertype::MPLS.to_be_bytes());
            for left in (0..u32::from(tags.mpls)).rev() {
                let entry = (1000 + left) << 12 | u32::from(left == 0) << 8 | 64;
                self.buffer.extend(entry.to_be_bytes());
            }
        } else {
            self.buffer.extend(kind.to_be_bytes());
        }
    }

    /// An IP header in front of `behind` bytes. Lengths that the field has no room for are zero, as the kernel has them of
    /// what the interface will cut into segments.
    fn ip_header(&mut self, hosts: [u32; 2], v6: bool, next: u8, behind: usize, offset: u16) {
        let at = self.buffer.len();
        let told = |length: usize| u16::try_from(length).unwrap_or(0).to_be_bytes();
        if v6 {
            self.buffer.extend([0x60, 0, 0, 0]);
            self.buffer.extend(told(behind));
            self.buffer.extend([next, 64]);
            for host in hosts {
                self.buffer.extend(self.addresses.v6(host));
            }
        } else {
            let identification = self.key.bits(For::Identification, self.made) as u16;
            self.buffer.extend([0x45, 0]);
            self.buffer.extend(told(20 + behind));
            self.buffer.extend(identification.to_be_bytes());
            self.buffer.extend(offset.to_be_bytes());
            self.buffer.extend([64, next, 0, 0]);
            for host in hosts {
                self.buffer.extend(self.addresses.v4(host));
            }
            let sum = checksum::finish(checksum::sum(self.buffer.get(at..).unwrap_or(&[])));
            self.put(at + 10, &sum.to_be_bytes());
        }
        // PPPoE's length counts PPP's two bytes and what follows.
        if let Some(&[0x88, 0x64, ..]) =
            self.buffer.get(at.saturating_sub(10)..at).filter(|head| head.len() == 10)
        {
            let length = told(2 + behind + if v6 { 40 } else { 20 });
            self.put(at - 4, &length);
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.buffer.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// What of a TCP segment's room is header and what is payload.
    fn tcp_parts(&self, length: usize, room: usize, turn: &Turn, tags: Tags) -> (usize, usize) {
        let behind = room.saturating_sub(20);
        if turn.flags & SYN != 0 {
            let options = (behind & !3).min(40);
            // A few bytes more are padding; many are data with the SYN (RFC 7413).
            return (20 + options, if behind - options < 8 { 0 } else { behind - options });
        }
        match behind {
            // A short frame is an acknowledgement, padded.
            0..8 if length <= MINIMUM + 4 * usize::from(tags.vlan) => (20, 0),
            // Time stamps (RFC 7323), and maybe data.
            12.. if behind == 12 || self.made % 2 == 1 => (32, behind - 12),
            _ => (20, behind),
        }
    }

    /// The transport's header, from `start` on; the payload is there.
    fn transport(&mut self, talk: &Talk, kind: &Kind, turn: &Turn, start: usize, header: usize) {
        let ports = [talk.client_port.to_be_bytes(), talk.server_port.to_be_bytes()];
        let [from, to] = if turn.back { [ports[1], ports[0]] } else { ports };
        let length = self.buffer.len() - start;
        if kind.has_ports() {
            self.put(start, &from);
            self.put(start + 2, &to);
        }
        let sum_at = match kind.protocol {
            protocol::TCP => {
                self.tcp(turn, start, header, length - header);
                start + 16
            }
            protocol::UDP => {
                self.put(start + 4, &u16::try_from(length).unwrap_or(0).to_be_bytes());
                start + 6
            }
            protocol::UDPLITE => start + 6, // A coverage of zero is all of it (RFC 3828).
            protocol::ICMP | protocol::ICMPV6 => {
                self.put(start, &[(talk.server_port >> 8) as u8, talk.server_port as u8]);
                start + 2
            }
            protocol::SCTP => {
                // A padding chunk (RFC 4820) takes up what is left.
                if length >= header + 4 {
                    let chunk = ((length - header) as u16).to_be_bytes();
                    self.put(start + header, &[0x84, 0, chunk[0], chunk[1]]);
                }
                if let Some(packet) = self.buffer.get_mut(start..) {
                    wire::crc::fix_sctp(packet);
                }
                return;
            }
            _ => return,
        };
        let pseudo = self.pseudo(kind, start, length);
        let partial = pseudo + checksum::sum(self.buffer.get(start..).unwrap_or(&[]));
        let sum = match kind.protocol {
            protocol::UDP | protocol::UDPLITE => checksum::finish_udp(partial),
            _ => checksum::finish(partial),
        };
        self.put(sum_at, &sum.to_be_bytes());
    }

    fn tcp(&mut self, turn: &Turn, start: usize, header: usize, payload: usize) {
        let [sequence, acknowledged] = turn.numbers;
        let push = if payload > 0 && turn.flags & (SYN | RST) == 0 { PSH } else { 0 };
        let acknowledged = if turn.flags & ACK != 0 { acknowledged } else { 0 };
        self.put(start + 4, &sequence.to_be_bytes());
        self.put(start + 8, &acknowledged.to_be_bytes());
        self.put(start + 12, &[((header / 4) << 4) as u8, turn.flags | push, 0xfa, 0xf0]);
        let now = turn.now_ms.to_be_bytes();
        let options = start + 20;
        if turn.flags & SYN != 0 {
            // Segment size 1460, then nothing; the rest is the end of the list.
            if header >= 24 {
                self.put(options, &[2, 4, 5, 0xb4]);
            }
        } else if header == 32 {
            self.put(options, &[1, 1, 8, 10, now[0], now[1], now[2], now[3], 0, 0, 0, 1]);
        }
    }

    fn pseudo(&self, kind: &Kind, start: usize, length: usize) -> u64 {
        let before = self.buffer.get(..start).unwrap_or(&[]);
        match (kind.protocol, kind.ip) {
            (protocol::ICMP, _) => 0,
            (next, 6) => {
                let addresses = before.last_chunk::<32>().map_or(0, |both| checksum::sum(both));
                addresses + u64::from(next) + length as u64
            }
            (next, _) => {
                let addresses = before.last_chunk::<8>().map_or(0, |both| checksum::sum(both));
                addresses + u64::from(next) + length as u64
            }
        }
    }

    /// Keyed bytes behind a mark, by which it is told from what a protocol would say.
    fn payload(&mut self, length: usize) {
        const MARK: &[u8; 8] = b"netdyno\0";
        let at = self.buffer.len();
        self.buffer.resize(at + length, 0);
        if let Some(rest) = self.buffer.get_mut(at..) {
            let mark = length.min(MARK.len());
            rest[..mark].copy_from_slice(&MARK[..mark]);
            self.key.fill(For::Pattern, self.made, &mut rest[mark..]);
        }
    }
}
