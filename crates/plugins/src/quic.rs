//! QUIC by its shapes (RFC 9000, RFC 9369): Initial packets in datagrams of 1,200 bytes, unknown versions, short headers. What is
//! encrypted is of no key: a server drops it after it has done what it does with a first packet.

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::udp;
use plugin_sdk::payload::{Payload, bytes};
use plugin_sdk::value::any;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

options! {
    /// Options of quic.
    {
        /// Addresses of clients (IPv4 or IPv6).
        clients: Addresses = addresses("10.0.0.0/16"),
        /// Addresses of servers.
        servers: Addresses = addresses("198.18.0.44"),
        /// Ports of clients.
        client_port: Values = values("random(49152..65535)"),
        /// The server's port.
        #[schemars(range(min = 1))]
        port: u16 = 443,
        /// Share of version 1 Initial packets.
        #[schemars(range(max = 100))]
        v1: u32 = 80,
        /// Share of version 2 Initial packets (RFC 9369).
        #[schemars(range(max = 100))]
        v2: u32 = 0,
        /// Share of Initial packets of versions that no server knows (0x?a?a?a?a): they provoke version negotiation.
        #[schemars(range(max = 100))]
        unknown_version: u32 = 0,
        /// Share of short header packets: connections under way.
        #[schemars(range(max = 100))]
        short: u32 = 20,
        /// Bytes of the destination connection ID of Initial packets; a client chooses 8 at least.
        #[schemars(range(min = 8, max = 20))]
        dcid: u32 = 8,
        /// Bytes of the source connection ID.
        #[schemars(range(max = 20))]
        scid: u32 = 8,
        /// Bytes of the token of Initial packets, as after Retry.
        #[schemars(range(max = 255))]
        token: u16 = 0,
        /// Bytes of UDP payload of Initial packets; servers drop those below 1,200 (RFC 9000 section 14.1).
        #[schemars(range(min = 300, max = 1452))]
        datagram: u16 = 1200,
        /// Bytes of UDP payload of short header packets.
        #[schemars(range(min = 48, max = 1452))]
        short_datagram: u16 = 1252,
    }
}

/// `count` bytes of chance.
fn chance(mut payload: Payload, mut count: u32) -> Payload {
    while count > 0 {
        let now = count.min(8);
        payload = payload.vary(now * 8, any());
        count -= now;
    }
    payload
}

/// Bytes that look encrypted: the first ones vary.
fn sealed(payload: Payload, upto: u16) -> Payload {
    let begin = payload.len();
    let rest = usize::from(upto).saturating_sub(begin);
    let noise: Vec<u8> = (0..rest).map(|i| (i as u32).wrapping_mul(0x85eb_ca6b).to_be_bytes()[1]).collect();
    let payload = payload.put(&noise);
    if rest >= 16 { payload.vary_at(begin, 64, any()).vary_at(begin + 8, 64, any()) } else { payload }
}

/// QUIC's shapes.
#[derive(Debug)]
pub struct Quic;

impl Compile for Quic {
    type Options = Options;
    const NAME: &'static str = "quic";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "QUIC by its shapes: Initial packets of versions 1 and 2 in full datagrams with connection IDs of chance, unknown versions, short header packets; contents are noise.";

    fn examples() -> Vec<Example> {
        vec![
            example!("New connections, and a fifth of packets of old ones", {}),
            example!("Versions 1, 2 and unknown ones, with tokens", {
                "v1": 40, "v2": 40, "unknown_version": 20, "short": 0, "token": 64, "dcid": 20
            }),
            example!("Only connections under way, over IPv6", {
                "clients": "2001:2::/112", "servers": "2001:2:0:1::443", "v1": 0, "short": 100, "short_datagram": 1232
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.v1 + o.v2 + o.unknown_version + o.short == 0 {
            return Err(Fault::at("/v1", "all shares are 0: nothing would be sent"));
        }
        let initial = |version: u32, first: u8, unknown: bool| {
            // Two bits of packet number length (4 bytes) and two reserved ones are protected: any value may stand there.
            let mut packet = bytes().u8(first);
            packet = if unknown {
                (0..4).fold(packet, |packet, _| packet.vary(4, any()).vary(4, 0xa))
            } else {
                packet.u32(version)
            };
            packet = chance(packet.u8(o.dcid as u8), o.dcid);
            packet = chance(packet.u8(o.scid as u8), o.scid);
            // Integers of variable length (RFC 9000 section 16), of two bytes.
            packet = packet.u16(0x4000 | o.token);
            packet = chance(packet, u32::from(o.token));
            let rest = o.datagram.saturating_sub(packet.len() as u16 + 2);
            sealed(packet.u16(0x4000 | rest), o.datagram)
        };
        let short = sealed(chance(bytes().u8(0x40), o.dcid), o.short_datagram);
        let mut streams = Vec::new();
        for (name, share, payload) in [
            ("version 1", o.v1, initial(1, 0xc3, false)),
            ("version 2", o.v2, initial(0x6b33_43cf, 0xd3, false)),
            ("unknown version", o.unknown_version, initial(0, 0xc3, true)),
            ("short header", o.short, short),
        ] {
            let header = ip(&o.clients, &o.servers, "/servers")?.dont_fragment();
            let packet = header / udp().sport(&o.client_port).dport(o.port) / payload;
            streams.push((Stream::new(packet).named(name), u64::from(share)));
        }
        Ok(Scenario::new(proportional(streams)))
    }
}
