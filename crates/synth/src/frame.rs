//! Makes the bytes of a planned frame: Ethernet, ARP, IPv4, TCP and UDP, with all lengths and checksums right.

use wire::checksum;

use crate::conversation::{
    ACK, Conversation, FIN, FULL, MINIMUM, PSH, RST, SYN, Slot, UDP_PAYLOAD, uses_timestamps,
};
use crate::hosts;
use crate::payload;
use crate::random::{For, Key};

const IPV4: usize = 14;
const TRANSPORT: usize = IPV4 + 20;
const TCP_OPTIONS: usize = TRANSPORT + 20;

/// Bytes of headers in front of a segment's payload.
pub fn header_length(c: &Conversation) -> u16 {
    TCP_OPTIONS as u16 + if c.timestamps { 12 } else { 0 }
}

/// Length of a frame that carries no payload; short ones are padded.
pub fn bare_length(c: &Conversation) -> u16 {
    header_length(c).max(MINIMUM)
}

/// Length of a SYN: segment size, window scale, selective acknowledgement and perhaps time stamps.
pub fn syn_length(c: &Conversation) -> u16 {
    TCP_OPTIONS as u16 + if c.timestamps { 20 } else { 12 }
}

/// Payload bytes that the frame carries.
pub fn payload_length(c: &Conversation, slot: &Slot) -> usize {
    usize::from(match (c.application.speech.is_tcp(), slot.flags & PSH) {
        (false, _) => slot.length - UDP_PAYLOAD,
        (true, 0) => 0,
        (true, _) => slot.length - header_length(c),
    })
}

/// Makes frames, one at a time, in a buffer of its own.
#[derive(Debug)]
pub struct Assembler {
    key: Key,
    hosts: u32,
    made: u64,
    buffer: Box<[u8; FULL as usize]>,
}

impl Assembler {
    pub fn new(key: Key, hosts: u32) -> Assembler {
        Assembler { key, hosts, made: 0, buffer: Box::new([0; FULL as usize]) }
    }

    /// The next frame of conversation `c`, which moves on by it.
    pub fn of_conversation(&mut self, c: &mut Conversation, slot: &Slot) -> &[u8] {
        let length = usize::from(slot.length);
        let payload = payload_length(c, slot);
        let (client, gateway) = (hosts::client_mac(c.client), hosts::GATEWAY_MAC);
        let (inside, outside) = (hosts::client_address(c.client), c.server);
        let (source_mac, destination_mac) = if slot.back { (gateway, client) } else { (client, gateway) };
        let (source, destination) = if slot.back { (outside, inside) } else { (inside, outside) };
        let ports = (c.client_port.to_be_bytes(), c.application.port.to_be_bytes());
        let (source_port, destination_port) = if slot.back { (ports.1, ports.0) } else { ports };
        let is_tcp = c.application.speech.is_tcp();
        let options = match (is_tcp, slot.flags) {
            (false, _) => 0,
            (true, flags) if flags & SYN != 0 => usize::from(syn_length(c)) - TCP_OPTIONS,
            (true, flags) if flags & RST != 0 => 0,
            (true, _) => usize::from(header_length(c)) - TCP_OPTIONS,
        };
        let transport = if is_tcp { 20 + options } else { 8 } + payload;
        let identification = self.key.bits(For::Identification, self.made) as u16;
        let ttl = time_to_live(self.key, c, slot.back);
        self.made += 1;

        let frame = &mut self.buffer[..length];
        frame[..6].copy_from_slice(&destination_mac);
        frame[6..12].copy_from_slice(&source_mac);
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        let total = (20 + transport) as u16;
        frame[14..16].copy_from_slice(&[0x45, 0]);
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        frame[18..20].copy_from_slice(&identification.to_be_bytes());
        frame[20..24].copy_from_slice(&[if is_tcp { 0x40 } else { 0 }, 0, ttl, if is_tcp { 6 } else { 17 }]);
        frame[24..26].fill(0);
        frame[26..30].copy_from_slice(&source);
        frame[30..34].copy_from_slice(&destination);
        let sum = checksum::finish(checksum::sum(&frame[IPV4..TRANSPORT]));
        frame[24..26].copy_from_slice(&sum.to_be_bytes());

        frame[34..36].copy_from_slice(&source_port);
        frame[36..38].copy_from_slice(&destination_port);
        let begin = TRANSPORT + transport - payload;
        let end = begin + payload;
        payload::write(self.key, c, slot.back, &mut frame[begin..end]);
        frame[end..].fill(0);
        let pseudo = checksum::pseudo_v4(source, destination, if is_tcp { 6 } else { 17 }, transport);
        if is_tcp {
            tcp_header(c, slot, options, &mut frame[TRANSPORT..begin]);
            let sum = checksum::finish(pseudo + checksum::sum(&frame[TRANSPORT..end]));
            frame[50..52].copy_from_slice(&sum.to_be_bytes());
        } else {
            frame[38..40].copy_from_slice(&(transport as u16).to_be_bytes());
            frame[40..42].fill(0);
            let sum = checksum::finish_udp(pseudo + checksum::sum(&frame[TRANSPORT..end]));
            frame[40..42].copy_from_slice(&sum.to_be_bytes());
        }
        let side = usize::from(slot.back);
        c.sent[side] += payload as u64;
        let consumed = payload as u32 + u32::from(slot.flags & (SYN | FIN) != 0);
        c.sequence[side] = c.sequence[side].wrapping_add(consumed);
        &self.buffer[..length]
    }

    /// ARP frame number `ordinal` (RFC 826): even ones ask for an inside host, odd ones are its reply.
    pub fn arp(&mut self, ordinal: usize, slot: &Slot) -> &[u8] {
        let host = self.key.skewed(For::NonFlow, (ordinal as u64 / 2) | 1 << 63, self.hosts);
        let (client, address) = (hosts::client_mac(host), hosts::client_address(host));
        let gateway = (hosts::GATEWAY_MAC, hosts::GATEWAY);
        let (sender, target, to) = match slot.back {
            false => (gateway, ([0; 6], address), [0xff; 6]),
            true => ((client, address), gateway, gateway.0),
        };
        let frame = &mut self.buffer[..usize::from(MINIMUM)];
        frame.fill(0);
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&sender.0);
        frame[12..22].copy_from_slice(&[0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1 + u8::from(slot.back)]);
        frame[22..28].copy_from_slice(&sender.0);
        frame[28..32].copy_from_slice(&sender.1);
        frame[32..38].copy_from_slice(&target.0);
        frame[38..42].copy_from_slice(&target.1);
        self.made += 1;
        frame
    }
}

/// What is left of the sender's time to live where the capture is taken, next to the inside hosts.
fn time_to_live(key: Key, c: &Conversation, back: bool) -> u8 {
    match back {
        false if uses_timestamps(key, c.client) => 64,
        false => 128,
        true => 64 - 6 - (c.server[3] % 12),
    }
}

fn tcp_header(c: &mut Conversation, slot: &Slot, options: usize, header: &mut [u8]) {
    let (side, other) = (usize::from(slot.back), usize::from(!slot.back));
    let acknowledged = if slot.flags & ACK != 0 { c.sequence[other] } else { 0 };
    header[4..8].copy_from_slice(&c.sequence[side].to_be_bytes());
    header[8..12].copy_from_slice(&acknowledged.to_be_bytes());
    header[12] = (((20 + options) / 4) << 4) as u8;
    header[13] = slot.flags;
    // Scaled by 2^7 after the handshake: eight megabytes, never full. A reset has none.
    let window = if slot.flags & RST != 0 { 0 } else { 0xfaf0u16 };
    header[14..16].copy_from_slice(&window.to_be_bytes());
    header[16..20].fill(0);
    // Milliseconds, each side on a clock of its own; the echo is what the other side said last (RFC 7323).
    let now = c.clock[side].wrapping_add((slot.time / 1_000_000) as u32);
    let echo = if slot.flags & ACK != 0 { c.said[other] } else { 0 };
    c.said[side] = now;
    let (now, echo) = (now.to_be_bytes(), echo.to_be_bytes());
    let options = &mut header[20..];
    match options.len() {
        // Segment size 1460, time stamps or not, window scale 7, selective acknowledgement permitted.
        20 => {
            options[..8].copy_from_slice(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10]);
            options[8..12].copy_from_slice(&now);
            options[12..16].copy_from_slice(&echo);
            options[16..].copy_from_slice(&[1, 3, 3, 7]);
        }
        12 if slot.flags & SYN != 0 => {
            options.copy_from_slice(&[2, 4, 0x05, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2]);
        }
        12 => {
            options[..4].copy_from_slice(&[1, 1, 8, 10]);
            options[4..8].copy_from_slice(&now);
            options[8..].copy_from_slice(&echo);
        }
        _ => {}
    }
}
