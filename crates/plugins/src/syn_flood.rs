//! A flood of TCP segments at one's own equipment: how does it stand when nothing that arrives is of use? netdyno refuses other
//! destinations than private and benchmarking addresses.

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::tcp;
use plugin_sdk::value::any;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// A kind of segments.
    Kind {
        /// SYN: connections are asked for, and never completed.
        Syn = "syn",
        /// SYN and ACK: answers that nobody asked for.
        SynAck = "synack",
        /// ACK of connections that do not exist.
        Ack = "ack",
        /// RST.
        Rst = "rst",
        /// FIN and ACK.
        Fin = "fin",
        /// Data of connections that do not exist.
        Data = "data",
    }
}

options! {
    /// Options of syn_flood.
    {
        /// Addresses that it seems to come from (IPv4 or IPv6).
        src_ip: Addresses = addresses("random(198.18.0.0/15)"),
        /// The equipment under test: private or benchmarking addresses only.
        dst_ip: Addresses = addresses("198.18.0.1"),
        /// Source ports.
        src_port: Values = values("random(1024..65535)"),
        /// Destination ports.
        dst_port: Values = values("443"),
        /// Kinds of segments; they take turns.
        #[schemars(length(min = 1, max = 6))]
        kinds: Vec<Kind> = vec![Kind::Syn],
        /// Whether a SYN has the options of a common system; a bare one is told apart at once.
        options: bool = true,
        /// Time to live, or hop limit: of chance, as from many places.
        ttl: Values = values("random(40..64)"),
    }
}

/// A flood.
#[derive(Debug)]
pub struct SynFlood;

impl Compile for SynFlood {
    type Options = Options;
    const NAME: &'static str = "syn_flood";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "A stress profile for one's own equipment: TCP segments of chance that belong to no connection. Destinations are private or benchmarking addresses.";
    const RESTRICTED: bool = true;

    fn examples() -> Vec<Example> {
        vec![
            example!("SYNs from everywhere to an HTTPS server", {}),
            example!("All kinds in turn, to a range of ports over IPv6", {
                "src_ip": "random(2001:2::/48)", "dst_ip": "2001:2:0:1::1", "dst_port": "1..1024",
                "kinds": ["syn", "synack", "ack", "rst", "fin", "data"]
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if !o.dst_ip.are_private() {
            return Err(Fault::at(
                "/dst_ip",
                "a private or benchmarking address (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15, fc00::/7, 2001:2::/48)",
            ));
        }
        let mut streams = Vec::new();
        for kind in &o.kinds {
            let (name, flags) = match kind {
                Kind::Syn => ("syn", "S"),
                Kind::SynAck => ("syn ack", "SA"),
                Kind::Ack => ("ack", "A"),
                Kind::Rst => ("rst", "R"),
                Kind::Fin => ("fin", "FA"),
                Kind::Data => ("data", "PA"),
            };
            let asks = matches!(kind, Kind::Syn | Kind::SynAck);
            let mut segment = tcp()
                .sport(&o.src_port)
                .dport(&o.dst_port)
                .seq(any())
                .flags(flags)
                .window("random(512..65535)");
            if flags.contains('A') {
                segment = segment.ack(any());
            }
            if asks && o.options {
                segment = segment.options("[mss(1460), sackok, timestamp(1000000, 0), nop, wscale(7)]");
            }
            let packet = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?.ttl(&o.ttl) / segment;
            let packet = if *kind == Kind::Data { packet / plugin_sdk::payload::zeros(64) } else { packet };
            streams.push(Stream::new(packet).named(name));
        }
        Ok(Scenario::new(streams))
    }
}
