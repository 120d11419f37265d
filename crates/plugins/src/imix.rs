//! The Internet's mix of sizes, over a mix of protocols, IP versions and classes.

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::{Packet, ether, tcp, udp, vlan};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

/// A size of the mix.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Bytes of the frame, the frame check sequence counted.
    #[schemars(range(min = 64, max = 9022))]
    pub size: u16,
    /// Its share of the frames.
    #[schemars(range(min = 1, max = 10000))]
    pub share: u32,
}

/// A class of service.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its differentiated services code point.
    #[schemars(range(max = 63))]
    pub dscp: u8,
    /// Its share of the frames.
    #[schemars(range(min = 1, max = 1000))]
    pub share: u32,
}

options! {
    /// Options of imix.
    {
        /// IPv4 source addresses.
        src_ip: Addresses = addresses("10.0.0.0/16"),
        /// IPv4 destination addresses.
        dst_ip: Addresses = addresses("198.18.0.0/24"),
        /// IPv6 source addresses, for the part of IPv6.
        src_ip6: Addresses = addresses("2001:2::/112"),
        /// IPv6 destination addresses, for the part of IPv6.
        dst_ip6: Addresses = addresses("2001:2:0:1::/120"),
        /// Source ports.
        src_port: Values = values("1024..65535"),
        /// Destination ports of UDP.
        udp_port: Values = values("[4500, 5004, 9]"),
        /// Destination ports of TCP.
        tcp_port: Values = values("[443, 80]"),
        /// The sizes. Default: 64, 594 and 1518 bytes, 7 to 4 to 1.
        #[schemars(length(min = 1, max = 32))]
        sizes: Vec<Part> = vec![
            Part { size: 64, share: 7 },
            Part { size: 594, share: 4 },
            Part { size: 1518, share: 1 },
        ],
        /// Share of TCP in percent; the rest is UDP.
        #[schemars(range(max = 100))]
        tcp: u32 = 0,
        /// Share of IPv6 in percent; the rest is IPv4.
        #[schemars(range(max = 100))]
        ipv6: u32 = 0,
        /// Classes of service. Default: all best effort.
        #[schemars(length(max = 8))]
        classes: Vec<Class> = Vec::new(),
        /// VLAN identifiers of an 802.1Q tag. Default: none.
        vlan: Option<Values> = None,
    }
}

/// The Internet mix.
#[derive(Debug)]
pub struct Imix;

impl Compile for Imix {
    type Options = Options;
    const NAME: &'static str = "imix";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "The Internet's mix of frame sizes, each size, protocol, IP version and class a stream of its own: results say which of them suffers.";

    fn examples() -> Vec<Example> {
        vec![
            example!("The simple Internet mix, 7 to 4 to 1, over UDP", {}),
            example!("Two thirds TCP, a fifth IPv6, three classes", {
                "tcp": 66, "ipv6": 20,
                "classes": [{ "dscp": 46, "share": 1 }, { "dscp": 26, "share": 3 }, { "dscp": 0, "share": 6 }]
            }),
            example!("A mix with jumbo frames in a VLAN", {
                "sizes": [{ "size": 128, "share": 5 }, { "size": 1518, "share": 3 }, { "size": 9000, "share": 2 }], "vlan": 100
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.src_ip6.is_ipv6() != o.dst_ip6.is_ipv6() || !o.src_ip6.is_ipv6() {
            return Err(Fault::at("/src_ip6", "`src_ip6` and `dst_ip6` are IPv6 addresses"));
        }
        if o.src_ip.is_ipv6() || o.dst_ip.is_ipv6() {
            return Err(Fault::at(
                "/src_ip",
                "`src_ip` and `dst_ip` are IPv4 addresses; IPv6 has options of its own",
            ));
        }
        let plain = [Class { dscp: 0, share: 1 }];
        let classes = if o.classes.is_empty() { &plain[..] } else { &o.classes[..] };
        let mut streams = Vec::new();
        let all = 100u32;
        for part in &o.sizes {
            for (v6, of_version) in [(false, all.saturating_sub(o.ipv6)), (true, o.ipv6)] {
                for (of_tcp, of_protocol) in [(false, all.saturating_sub(o.tcp)), (true, o.tcp)] {
                    for class in classes {
                        let header = if v6 {
                            ip(&o.src_ip6, &o.dst_ip6, "/dst_ip6")?
                        } else {
                            ip(&o.src_ip, &o.dst_ip, "/dst_ip")?
                        };
                        let mut packet: Packet = ether().into();
                        if let Some(id) = &o.vlan {
                            packet = packet / vlan().id(id);
                        }
                        packet = packet / header.dscp(class.dscp);
                        packet = if of_tcp {
                            packet
                                / tcp()
                                    .sport(&o.src_port)
                                    .dport(&o.tcp_port)
                                    .flags("A")
                                    .seq("random()")
                                    .ack("random()")
                        } else {
                            packet / udp().sport(&o.src_port).dport(&o.udp_port)
                        };
                        // A TCP segment over IPv6 in a VLAN does not fit the smallest frame.
                        let least = 18
                            + if o.vlan.is_some() { 4 } else { 0 }
                            + if v6 { 40 } else { 20 }
                            + if of_tcp { 20 } else { 8 };
                        let size = part.size.max(least);
                        let name = format!(
                            "{size} B {}{}{}",
                            if v6 { "IPv6 " } else { "" },
                            if of_tcp { "TCP" } else { "UDP" },
                            if o.classes.is_empty() {
                                String::new()
                            } else {
                                format!(" dscp {}", class.dscp)
                            }
                        );
                        let share = (u64::from(part.share) * u64::from(of_version))
                            .saturating_mul(u64::from(of_protocol) * u64::from(class.share));
                        streams.push((Stream::new(packet).named(name).size(size.to_string()), share));
                    }
                }
            }
        }
        Ok(Scenario::new(proportional(streams)))
    }
}
