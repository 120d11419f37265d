//! MPLS VPNs as the provider's core sees them: transport labels, the VPN's label, customers' packets (RFC 4364, RFC 6790).

use crate::common::*;
use plugin_sdk::options::{Addresses, Macs, Values, ip};
use plugin_sdk::packet::{Packet, ether, mpls, udp};
use plugin_sdk::value::counted;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

options! {
    /// Options of mpls_l3vpn.
    {
        /// Transport labels, outermost first. None: after penultimate hop popping.
        #[schemars(length(max = 8))]
        transport: Vec<u32> = vec![16_001],
        /// Number of VPNs, each with a label of its own. Their customers' addresses overlap, as they may.
        #[schemars(range(min = 1, max = 1_000_000))]
        vpns: u64 = 100,
        /// The first VPN's label; below 16 are reserved.
        #[schemars(range(min = 16, max = 1_048_575))]
        first_label: u32 = 100_000,
        /// Customers' source addresses (IPv4 or IPv6).
        src_ip: Addresses = addresses("10.0.0.0/16"),
        /// Customers' destination addresses.
        dst_ip: Addresses = addresses("198.18.0.0/24"),
        /// Customers' source ports.
        src_port: Values = values("1024..65535"),
        /// Flows of each VPN before the next VPN's label is taken.
        #[schemars(range(min = 1))]
        flows_per_vpn: u64 = 1,
        /// Entropy labels (RFC 6790): indicator 7 and a label of chance below the transport labels.
        entropy: bool = false,
        /// Traffic class of all labels; the customer's code point has the same three bits.
        #[schemars(range(max = 7))]
        traffic_class: u8 = 0,
        /// Time to live of the transport labels.
        ttl: u8 = 64,
        /// Ethernet address of the provider's edge.
        src_mac: Option<Macs> = None,
        /// Ethernet address of the next router.
        dst_mac: Option<Macs> = None,
    }
}

/// VPNs.
#[derive(Debug)]
pub struct MplsL3Vpn;

impl Compile for MplsL3Vpn {
    type Options = Options;
    const NAME: &'static str = "mpls_l3vpn";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "Packets of MPLS L3VPNs in a provider's core: transport labels, entropy labels, a label for each VPN, customers' IPv4 or IPv6.";

    fn examples() -> Vec<Example> {
        vec![
            example!("100 VPNs behind one transport label", {}),
            example!("Two transport labels, entropy, 6VPE, traffic class 5", {
                "transport": [16001, 24005], "entropy": true, "traffic_class": 5, "src_ip": "2001:2::/112", "dst_ip": "2001:2:0:1::/120"
            }),
            example!("At the last router: the VPN's label alone, 10,000 VPNs of four flows", {
                "transport": [], "vpns": 10000, "flows_per_vpn": 4
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if u64::from(o.first_label) + o.vpns > 1 << 20 {
            return Err(Fault::at("/first_label", "the last VPN's label has more than 20 bits"));
        }
        if let Some(bad) = o.transport.iter().position(|label| *label >= 1 << 20) {
            return Err(Fault::at(format!("/transport/{bad}"), "a label has 20 bits: 0 to 1048575"));
        }
        let mut packet: Packet =
            ether().maybe("src", o.src_mac.as_ref()).maybe("dst", o.dst_mac.as_ref()).into();
        for label in &o.transport {
            packet = packet / mpls().label(*label).tc(o.traffic_class).ttl(o.ttl);
        }
        if o.entropy {
            packet = packet
                / mpls().label(7).tc(o.traffic_class).ttl(o.ttl)
                / mpls().label("random(16..1048575)").tc(0).ttl(0);
        }
        let labels = counted(o.first_label.into(), o.vpns);
        let labels = if o.vpns > 1 { labels.every(o.flows_per_vpn) } else { labels };
        packet = packet / mpls().label(labels).tc(o.traffic_class);
        let user = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?.dscp(o.traffic_class << 3);
        Ok(Scenario::of(Stream::new(packet / user / udp().sport(&o.src_port).dport(9)).named("mpls l3vpn")))
    }
}
