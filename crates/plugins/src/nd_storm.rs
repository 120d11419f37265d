//! Neighbour discovery storms: solicitations to the solicited-node groups of many targets, advertisements, router discovery
//! (RFC 4861, RFC 4862).

use crate::common::*;
use plugin_sdk::packet::{ether, icmpv6, ipv6};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use std::net::Ipv6Addr;

options! {
    /// Options of nd_storm.
    {
        /// Number of hosts that speak, each with a MAC and a link-local address.
        #[schemars(range(min = 1, max = 1_000_000))]
        hosts: u64 = 1000,
        /// The first address that is asked for.
        first_target: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 1),
        /// Number of addresses that are asked for: what exhausts a router's neighbour cache is many that nobody has.
        #[schemars(range(min = 1, max = 16_000_000))]
        targets: u64 = 1000,
        /// Share of neighbour solicitations.
        #[schemars(range(max = 100))]
        solicitations: u32 = 80,
        /// Share of unsolicited neighbour advertisements that override what is known.
        #[schemars(range(max = 100))]
        advertisements: u32 = 20,
        /// Share of duplicate address detection: solicitations from the unspecified address.
        #[schemars(range(max = 100))]
        duplicate_detection: u32 = 0,
        /// Share of router solicitations.
        #[schemars(range(max = 100))]
        router_solicitations: u32 = 0,
        /// Share of router advertisements.
        #[schemars(range(max = 100))]
        router_advertisements: u32 = 0,
        /// Prefix of /64 that router advertisements announce.
        prefix: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 0),
    }
}

/// Neighbour discovery of many hosts.
#[derive(Debug)]
pub struct NdStorm;

impl Compile for NdStorm {
    type Options = Options;
    const NAME: &'static str = "nd_storm";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "IPv6 neighbour discovery of many hosts at a time: solicitations to the right groups, advertisements, duplicate address detection, router discovery.";

    fn examples() -> Vec<Example> {
        vec![
            example!("Solicitations for 1,000 addresses, and advertisements", {}),
            example!("A cache under attack: 100,000 addresses that nobody has, from one host", {
                "hosts": 1, "targets": 100_000, "solicitations": 100, "advertisements": 0
            }),
            example!("A network that starts", {
                "hosts": 500, "solicitations": 0, "advertisements": 20, "duplicate_detection": 40,
                "router_solicitations": 30, "router_advertisements": 10
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.solicitations
            + o.advertisements
            + o.duplicate_detection
            + o.router_solicitations
            + o.router_advertisements
            == 0
        {
            return Err(Fault::at("/solicitations", "all shares are 0: nothing would be sent"));
        }
        // The group has the target's low 24 bits (RFC 4291 section 2.7.1), and so has its Ethernet address.
        let low = u128::from(o.first_target) & 0xff_ffff;
        if low + u128::from(o.targets) > 1 << 24 {
            return Err(Fault::at(
                "/first_target",
                "the low 24 bits of the targets wrap around: choose another first target",
            ));
        }
        let own = macs(0x0200_0001_0000, o.hosts);
        let from = v6s(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, 0), o.hosts);
        let targets = v6s(o.first_target, o.targets);
        let group = Ipv6Addr::from(u128::from(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0)) | low);
        let groups = v6s(group, o.targets);
        let group_macs = macs(multicast_v6(group), o.targets);
        // Options hold one address: that of the first host.
        let option = |kind: &str| format!("[{kind}(02:00:00:01:00:00)]");
        let solicit = ether().src(&own).dst(&group_macs)
            / ipv6().src(&from).dst(&groups).hlim(255)
            / icmpv6().kind(135).target(&targets).options(option("slla"));
        let detect = ether().src(&own).dst(&group_macs)
            / ipv6().src("::").dst(&groups).hlim(255)
            / icmpv6().kind(135).target(&targets);
        let all = |group: &'static str, mac: &'static str| {
            ether().src(&own).dst(mac) / ipv6().src(&from).dst(group).hlim(255)
        };
        let advertise = all("ff02::1", "33:33:00:00:00:01")
            / icmpv6().kind(136).rest("0x20000000").target(&from).options(option("tlla"));
        let router = all("ff02::2", "33:33:00:00:00:02") / icmpv6().kind(133).rest(0).options(option("slla"));
        // Prefix information (RFC 4861 section 4.6.2): on-link, autonomous.
        let mut prefix = vec![64u8, 0xc0];
        for time in [2_592_000u32, 604_800, 0] {
            prefix.extend(time.to_be_bytes());
        }
        prefix.extend(o.prefix.octets());
        let prefix: String = prefix.iter().map(|byte| format!("{byte:02x}")).collect();
        let announce = all("ff02::1", "33:33:00:00:00:01")
            / icmpv6()
                .kind(134)
                .rest("0x40000708")
                .options(format!("[slla(02:00:00:01:00:00), mtu(0, 1500), opt(3, hex=\"{prefix}\")]"));
        let streams = vec![
            (solicit, "solicitation", o.solicitations),
            (advertise, "advertisement", o.advertisements),
            (detect, "duplicate address detection", o.duplicate_detection),
            (router, "router solicitation", o.router_solicitations),
            (announce, "router advertisement", o.router_advertisements),
        ];
        let streams =
            streams.into_iter().map(|(packet, name, share)| (Stream::new(packet).named(name), share.into()));
        Ok(Scenario::new(proportional(streams.collect())))
    }
}
