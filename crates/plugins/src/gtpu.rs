//! User traffic in GTP-U tunnels: 4G's S1-U and 5G's N3, uplink or downlink (3GPP TS 29.281, TS 38.415).

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::{Packet, gtpu, tcp, udp};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// Which way.
    Direction {
        /// From subscribers to the network: inner source addresses are theirs.
        Uplink = "uplink",
        /// From the network to subscribers.
        Downlink = "downlink",
    }
}

choices! {
    /// The inner transport protocol.
    Inner {
        /// UDP.
        Udp = "udp",
        /// TCP segments with ACK.
        Tcp = "tcp",
    }
}

options! {
    /// Options of gtpu.
    {
        /// Addresses of base stations (outer source of the uplink).
        gnb_ip: Addresses = addresses("198.18.0.1"),
        /// Addresses of user plane functions (outer destination of the uplink).
        upf_ip: Addresses = addresses("198.19.0.1"),
        /// Which way.
        direction: Direction = Direction::Uplink,
        /// Number of tunnels, each with a tunnel endpoint identifier and a subscriber's address of its own.
        #[schemars(range(min = 1, max = 16_777_216))]
        tunnels: u64 = 1000,
        /// The first tunnel's endpoint identifier.
        first_teid: u32 = 1,
        /// Addresses of subscribers; tunnel n has the n-th. They decide the inner IP version.
        ue_ip: Addresses = addresses("10.45.0.0/16"),
        /// Flows of each tunnel: different inner ports of the subscriber.
        #[schemars(range(min = 1, max = 60_000))]
        flows_per_tunnel: u64 = 1,
        /// Addresses that subscribers talk to.
        server_ip: Addresses = addresses("198.18.1.0/24"),
        /// The inner transport protocol.
        inner: Inner = Inner::Udp,
        /// Inner ports of servers.
        server_port: Values = values("443"),
        /// 5G: quality of service flow identifiers, in a PDU session container; they take turns. Empty: 4G, no container.
        #[schemars(length(max = 64))]
        qfi: Vec<u8> = vec![9],
        /// Whether the header has a sequence number, counting.
        sequence: bool = false,
        /// Whether the outer source port varies, as RFC 8085 suggests for load balancing; otherwise it is 2152.
        entropy: bool = false,
    }
}

/// Subscribers' traffic in tunnels.
#[derive(Debug)]
pub struct Gtpu;

impl Compile for Gtpu {
    type Options = Options;
    const NAME: &'static str = "gtpu";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str =
        "Subscribers' packets in GTP-U tunnels, uplink or downlink, 4G or 5G with QoS flow identifiers.";

    fn examples() -> Vec<Example> {
        vec![
            example!("1,000 tunnels of 5G's uplink, QFI 9", {}),
            example!("65,536 tunnels of 5G's downlink, four QFIs, TCP inside", {
                "direction": "downlink", "tunnels": 65536, "qfi": [1, 5, 7, 9], "inner": "tcp", "flows_per_tunnel": 4
            }),
            example!("4G with IPv6 subscribers and sequence numbers", {
                "qfi": [], "ue_ip": "2001:2:0:45::/112", "server_ip": "2001:2:0:1::/120", "sequence": true, "entropy": true
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let up = o.direction == Direction::Uplink;
        if u64::from(o.first_teid) + o.tunnels > 1 << 32 {
            return Err(Fault::at("/first_teid", "the last tunnel's identifier has more than 32 bits"));
        }
        if let Some(bad) = o.qfi.iter().position(|qfi| *qfi > 63) {
            return Err(Fault::at(format!("/qfi/{bad}"), "a QoS flow identifier has 6 bits: 0 to 63"));
        }
        let (from, to) = if up { (&o.gnb_ip, &o.upf_ip) } else { (&o.upf_ip, &o.gnb_ip) };
        let outer = ip(from, to, if up { "/upf_ip" } else { "/gnb_ip" })?;
        // Ports of one tunnel go through, then the next tunnel's.
        let flows = o.flows_per_tunnel;
        let nested = |value: plugin_sdk::value::Value| if flows > 1 { value.every(flows) } else { value };
        let subscriber = o.ue_ip.take(o.tunnels).map_err(|why| Fault::at("/ue_ip", why))?;
        let subscriber = if o.tunnels > 1 { nested(subscriber) } else { subscriber };
        let teid = plugin_sdk::value::counted(o.first_teid.into(), o.tunnels);
        let teid = if o.tunnels > 1 { nested(teid) } else { teid };
        let ports = plugin_sdk::value::counted(5000, flows);
        let user = ip(&o.ue_ip, &o.server_ip, "/server_ip")?;
        let user =
            if up { user.src(subscriber).dst(&o.server_ip) } else { user.src(&o.server_ip).dst(subscriber) };
        let (sport, dport) =
            if up { (ports, (&o.server_port).into()) } else { ((&o.server_port).into(), ports) };
        let inner: Packet = match o.inner {
            Inner::Udp => user / udp().sport(sport).dport(dport),
            Inner::Tcp => user / tcp().sport(sport).dport(dport).flags("A").seq("random()").ack("random()"),
        };
        let stream = |qfi: Option<u8>| {
            let mut header = gtpu().teid(&teid);
            if o.sequence {
                header = header.seq("0..65535");
            }
            if let Some(qfi) = qfi {
                header = header.ext(format!("[psc({}, {qfi})]", u8::from(up)));
            }
            let transport = udp().sport(if o.entropy { "random(49152..65535)" } else { "2152" }).dport(2152);
            let name = qfi.map_or_else(|| "gtpu".to_owned(), |qfi| format!("qfi {qfi}"));
            Stream::new(outer.clone() / transport / header / inner.clone()).named(name)
        };
        Ok(Scenario::new(if o.qfi.is_empty() {
            vec![stream(None)]
        } else {
            o.qfi.iter().map(|qfi| stream(Some(*qfi))).collect()
        }))
    }
}
