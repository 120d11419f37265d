//! PPPoE of many subscribers: discovery, data of sessions, echo requests, terminations (RFC 2516, RFC 1661).

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::{Packet, ether, udp, vlan};
use plugin_sdk::payload::{Payload, bytes};
use plugin_sdk::value::{any, counted};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

options! {
    /// Options of pppoe.
    {
        /// Number of subscribers, each with a MAC and a session of its own.
        #[schemars(range(min = 1, max = 65534))]
        subscribers: u64 = 1000,
        /// Share of PADI: broadcast, in search of a concentrator.
        #[schemars(range(max = 100))]
        padi: u32 = 10,
        /// Share of PADR: a session is asked for.
        #[schemars(range(max = 100))]
        padr: u32 = 10,
        /// Share of data within sessions.
        #[schemars(range(max = 100))]
        data: u32 = 75,
        /// Share of LCP echo requests.
        #[schemars(range(max = 100))]
        echo: u32 = 5,
        /// Share of PADT: sessions end.
        #[schemars(range(max = 100))]
        padt: u32 = 0,
        /// Name of the service; empty: any.
        #[schemars(length(max = 200))]
        service: String = String::new(),
        /// Name of the concentrator that PADR and PADT are for; empty: not said.
        #[schemars(length(max = 200))]
        concentrator: String = "netdyno".to_owned(),
        /// Subscribers' addresses in sessions (IPv4 or IPv6).
        src_ip: Addresses = addresses("10.64.0.0/16"),
        /// Whom subscribers talk to.
        dst_ip: Addresses = addresses("198.18.0.0/24"),
        /// Subscribers' ports.
        src_port: Values = values("1024..65535"),
        /// VLAN identifiers of an 802.1Q tag. Default: none.
        vlan: Option<Values> = None,
    }
}

/// PPPoE clients.
#[derive(Debug)]
pub struct Pppoe;

fn tag(kind: u16, content: &str) -> Payload {
    bytes().u16(kind).u16(content.len() as u16).text(content)
}

impl Compile for Pppoe {
    type Options = Options;
    const NAME: &'static str = "pppoe";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "PPPoE of many subscribers: discovery (PADI, PADR), IPv4 or IPv6 data of sessions, LCP echoes, terminations (PADT), in any mix.";

    fn examples() -> Vec<Example> {
        vec![
            example!("1,000 subscribers, three quarters data", {}),
            example!("65,534 subscribers look for a service at once", {
                "subscribers": 65534, "padi": 100, "padr": 0, "data": 0, "echo": 0, "service": "internet"
            }),
            example!("IPv6 in sessions, terminations, a VLAN for each 100", {
                "src_ip": "2001:2:0:64::/112", "dst_ip": "2001:2:0:1::/120", "padt": 20, "data": 60, "padi": 10, "padr": 10,
                "echo": 0, "vlan": "100..109"
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.padi + o.padr + o.data + o.echo + o.padt == 0 {
            return Err(Fault::at("/data", "all shares are 0: nothing would be sent"));
        }
        let own = macs(0x0200_0100_0000, o.subscribers);
        let sessions = counted(1, o.subscribers);
        let link = |destination: &str, kind: &'static str| -> Packet {
            match &o.vlan {
                Some(id) => ether().src(&own).dst(destination) / vlan().id(id).kind(kind),
                None => ether().src(&own).dst(destination).kind(kind).into(),
            }
        };
        const HERE: &str = "02:00:00:00:00:02";
        let named = |out: Payload| {
            if o.concentrator.is_empty() { out } else { out.append(&tag(0x0102, &o.concentrator)) }
        };
        // Version 1, type 1, code, session, length of what follows.
        let discovery = |code: u8| bytes().u8(0x11).u8(code).u16(0);
        let host = bytes().u16(0x0103).u16(8).vary(64, any());
        let padi = discovery(0x09).length().append(&tag(0x0101, &o.service)).append(&host);
        let padr = named(discovery(0x19).length().append(&tag(0x0101, &o.service))).append(&host);
        let padt = named(bytes().u8(0x11).u8(0xa7).vary(16, &sessions).length());
        let session = |protocol: u16| bytes().u8(0x11).u8(0).vary(16, &sessions).length().u16(protocol);
        // An echo request: code 9, identifier, length 8, magic number.
        let echo = session(0xc021).u8(9).vary(8, 0..=255).u16(8).vary(32, any());
        let user = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?;
        let protocol = if user.is_v6() { 0x0057 } else { 0x0021 };
        let data = session(protocol) / user / udp().sport(&o.src_port).dport(9);
        let streams = vec![
            (link("ff:ff:ff:ff:ff:ff", "0x8863") / padi, "padi", o.padi),
            (link(HERE, "0x8863") / padr, "padr", o.padr),
            (link(HERE, "0x8864") / data, "data", o.data),
            (link(HERE, "0x8864") / echo, "echo", o.echo),
            (link(HERE, "0x8863") / padt, "padt", o.padt),
        ];
        let streams =
            streams.into_iter().map(|(packet, name, share)| (Stream::new(packet).named(name), share.into()));
        Ok(Scenario::new(proportional(streams.collect())))
    }
}
