//! An overlay of VXLAN as EVPN builds it: known unicast between hosts, and broadcast, unknown and multicast (RFC 7348, RFC 7432).

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::{Packet, arp, ether, ipv4, udp, vlan, vxlan};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use std::net::Ipv4Addr;

options! {
    /// Options of vxlan.
    {
        /// Tunnel endpoints that send (IPv4 or IPv6).
        vtep: Addresses = addresses("198.18.0.1"),
        /// The tunnel endpoint that receives, or several; of replicated frames as well.
        remote_vtep: Addresses = addresses("198.19.0.1"),
        /// Number of virtual networks.
        #[schemars(range(min = 1, max = 65536))]
        networks: u64 = 10,
        /// The first network's identifier.
        #[schemars(range(max = 16_777_215))]
        first_vni: u32 = 10_000,
        /// Hosts of each network behind the sending endpoints, each with a MAC and an IPv4 address.
        #[schemars(range(min = 1, max = 65000))]
        hosts: u64 = 100,
        /// Address of the first host; host n has the n-th from it on, in every network.
        first_host: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1),
        /// Address of the first host behind the receiving endpoints; there are as many.
        first_remote_host: Ipv4Addr = Ipv4Addr::new(192, 168, 128, 1),
        /// Share of ARP requests among the frames, in percent: broadcast, replicated to all endpoints.
        #[schemars(range(max = 100))]
        broadcast: u32 = 5,
        /// Share of frames to hosts that nobody knows, in percent: flooded.
        #[schemars(range(max = 100))]
        unknown: u32 = 3,
        /// Share of multicast, in percent.
        #[schemars(range(max = 100))]
        multicast: u32 = 2,
        /// VLAN identifiers of a tag in the inner frames. Default: none.
        inner_vlan: Option<Values> = None,
        /// Outer source ports: entropy for paths of equal cost.
        src_port: Values = values("49152..65535"),
    }
}

/// An overlay.
#[derive(Debug)]
pub struct Vxlan;

impl Compile for Vxlan {
    type Options = Options;
    const NAME: &'static str = "vxlan";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "VXLAN overlays as EVPN fabrics carry them: hosts of many networks, with shares of broadcast (ARP), unknown unicast and multicast, each a stream of its own.";

    fn examples() -> Vec<Example> {
        vec![
            example!("Ten networks of 100 hosts, a tenth of it broadcast, unknown and multicast", {}),
            example!("Known unicast only, 4,096 networks, inner tags", {
                "networks": 4096, "hosts": 10, "broadcast": 0, "unknown": 0, "multicast": 0, "inner_vlan": "1..100"
            }),
            example!("An ARP storm through an IPv6 underlay", {
                "vtep": "2001:2::1", "remote_vtep": "2001:2:0:1::1", "broadcast": 100, "unknown": 0, "multicast": 0
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if u64::from(o.first_vni) + o.networks > 1 << 24 {
            return Err(Fault::at("/first_vni", "the last network's identifier has more than 24 bits"));
        }
        let flooded = o.broadcast + o.unknown + o.multicast;
        let Some(known) = 100u32.checked_sub(flooded) else {
            return Err(Fault::at(
                "/broadcast",
                format!("broadcast, unknown and multicast are {flooded} percent together"),
            ));
        };
        let underlay = ip(&o.vtep, &o.remote_vtep, "/remote_vtep")?;
        // All hosts of a network, then the next network.
        let vni = plugin_sdk::value::counted(o.first_vni.into(), o.networks);
        let vni = if o.networks > 1 { vni.every(o.hosts) } else { vni };
        let own = macs(0x0200_0001_0000, o.hosts);
        let (sources, remotes) = (v4s(o.first_host, o.hosts), v4s(o.first_remote_host, o.hosts));
        let outer = || underlay.clone() / udp().sport(&o.src_port).dport(4789) / vxlan().vni(&vni);
        let frame = |destination: plugin_sdk::value::Value| -> Packet {
            let link = ether().src(&own).dst(destination);
            match &o.inner_vlan {
                Some(id) => link / vlan().id(id),
                None => link.into(),
            }
        };
        let data = || ipv4().src(&sources).dst(&remotes) / udp().sport(5000).dport(9);
        let group = Ipv4Addr::new(239, 1, 1, 1);
        let streams = vec![
            (
                Stream::new(outer() / frame(macs(0x0200_0002_0000, o.hosts)) / data()).named("known unicast"),
                known,
            ),
            (
                Stream::new(
                    outer()
                        / frame("ff:ff:ff:ff:ff:ff".into())
                        / arp().hwsrc(&own).psrc(&sources).pdst(&remotes),
                )
                .named("broadcast"),
                o.broadcast,
            ),
            (
                Stream::new(outer() / frame("random(02:ff:00:00:00:00/24)".into()) / data())
                    .named("unknown unicast"),
                o.unknown,
            ),
            (
                Stream::new(
                    outer()
                        / frame(mac(multicast_v4(group)).into())
                        / ipv4().src(&sources).dst(group).ttl(16)
                        / udp().sport(5000).dport(5001),
                )
                .named("multicast"),
                o.multicast,
            ),
        ];
        Ok(Scenario::new(proportional(streams.into_iter().map(|(s, share)| (s, share.into())).collect())))
    }
}
