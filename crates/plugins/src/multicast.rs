//! Multicast: data of many groups, and hosts that join and leave them (IGMP versions 2 and 3, MLD version 2).

use crate::common::*;
use plugin_sdk::options::Values;
use plugin_sdk::packet::{ether, hopopts, icmpv6, igmp, ipv4, ipv6, udp};
use plugin_sdk::payload::{bytes, zeros};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

choices! {
    /// How membership is reported, where groups are of IPv4.
    Version {
        /// IGMP version 2 (RFC 2236).
        V2 = "igmpv2",
        /// IGMP version 3 (RFC 3376).
        V3 = "igmpv3",
    }
}

options! {
    /// Options of multicast.
    {
        /// The first group (IPv4 or IPv6); its version is that of all.
        first_group: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 0, 0)),
        /// Number of groups.
        #[schemars(range(min = 1, max = 1_000_000))]
        groups: u64 = 100,
        /// The source of the data. Default: 198.18.0.1 or 2001:2::1.
        source: Option<IpAddr> = None,
        /// Number of hosts that join and leave; each has addresses of its own.
        #[schemars(range(min = 1, max = 65000))]
        hosts: u64 = 1,
        /// Share of data among the frames, in percent.
        #[schemars(range(max = 100))]
        data: u32 = 100,
        /// Share of reports of membership, in percent: joins.
        #[schemars(range(max = 100))]
        joins: u32 = 0,
        /// Share of leaves, in percent.
        #[schemars(range(max = 100))]
        leaves: u32 = 0,
        /// Share of general queries, in percent.
        #[schemars(range(max = 100))]
        queries: u32 = 0,
        /// How membership is reported. IPv6 has MLD version 2.
        version: Version = Version::V2,
        /// Destination ports of the data.
        port: Values = values("5001"),
        /// Bytes of payload of the data.
        #[schemars(range(max = 9000))]
        payload_size: u16 = 1316,
        /// Time to live, or hop limit, of the data.
        #[schemars(range(min = 1))]
        ttl: u8 = 16,
    }
}

/// Groups, data, and who joins.
#[derive(Debug)]
pub struct Multicast;

impl Compile for Multicast {
    type Options = Options;
    const NAME: &'static str = "multicast";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "Multicast data of many groups to their Ethernet addresses, and hosts that join and leave by IGMP or MLD, in any mix.";

    fn examples() -> Vec<Example> {
        vec![
            example!("Data of 100 groups", {}),
            example!("Zapping: 1,000 hosts join and leave 200 groups by IGMPv2", {
                "groups": 200, "hosts": 1000, "data": 0, "joins": 50, "leaves": 50
            }),
            example!("IGMPv3, everything at a time", {
                "version": "igmpv3", "data": 60, "joins": 20, "leaves": 15, "queries": 5
            }),
            example!("IPv6 and MLDv2", {
                "first_group": "ff3e::1:0", "groups": 50, "data": 50, "joins": 30, "leaves": 15, "queries": 5
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.data + o.joins + o.leaves + o.queries == 0 {
            return Err(Fault::at("/data", "all shares are 0: nothing would be sent"));
        }
        if !o.first_group.is_multicast() {
            return Err(Fault::at("/first_group", "a multicast address: 224.0.0.0/4 or ff00::/8"));
        }
        if o.source.is_some_and(|source| source.is_ipv6() != o.first_group.is_ipv6()) {
            return Err(Fault::at("/source", "of the same IP version as the groups"));
        }
        let streams = match o.first_group {
            IpAddr::V4(group) => v4(&o, group)?,
            IpAddr::V6(group) => v6(&o, group)?,
        };
        Ok(Scenario::new(proportional(streams)))
    }
}

/// Ethernet addresses of groups walk with them: their low bits must not wrap.
fn walks(o: &Options, low: u64, bits: u32) -> Result<(), Fault> {
    if low + o.groups > 1 << bits {
        let message = format!(
            "the low {bits} bits of the groups' addresses wrap around within {} groups: choose another first group",
            o.groups
        );
        return Err(Fault::at("/first_group", message));
    }
    Ok(())
}

fn v4(o: &Options, group: Ipv4Addr) -> Result<Vec<(Stream, u64)>, Fault> {
    let mac = multicast_v4(group);
    walks(o, mac & 0x7f_ffff, 23)?;
    let source = match o.source {
        Some(IpAddr::V4(source)) => source,
        _ => Ipv4Addr::new(198, 18, 0, 1),
    };
    let (macs_of, groups) = (macs(mac, o.groups), v4s(group, o.groups));
    // All hosts for a group, then the next group.
    let every = |value: plugin_sdk::value::Value| if o.groups > 1 { value.every(o.hosts) } else { value };
    let (by_host, by_host_mac) = (every(groups.clone()), every(macs_of.clone()));
    let hosts = v4s(Ipv4Addr::new(198, 18, 1, 0), o.hosts);
    let host_macs = macs(0x0200_0001_0000, o.hosts);
    let data = ether().dst(&macs_of)
        / ipv4().src(source).dst(&groups).ttl(o.ttl)
        / udp().sport(5000).dport(&o.port)
        / zeros(o.payload_size);
    // Router alert, precedence internetwork control (RFC 3376 section 4).
    let control = || ipv4().ttl(1).tos(0xc0).options("[ra(0)]");
    let report3 = |kind: u8| {
        // A report with one record: to exclude no source is to join, to include none is to leave.
        let record = bytes().u8(kind).u8(0).u16(0).vary(32, by_host.clone());
        ether().src(&host_macs).dst("01:00:5e:00:00:16")
            / control().src(&hosts).dst("224.0.0.22")
            / igmp().kind("0x22").group("0.0.0.1")
            / record
    };
    let (join, leave) = match o.version {
        Version::V2 => (
            ether().src(&host_macs).dst(&by_host_mac)
                / control().src(&hosts).dst(&by_host)
                / igmp().kind("0x16").group(&by_host),
            ether().src(&host_macs).dst("01:00:5e:00:00:02")
                / control().src(&hosts).dst("224.0.0.2")
                / igmp().kind("0x17").group(&by_host),
        ),
        Version::V3 => (report3(4), report3(3)),
    };
    let query = ether().dst("01:00:5e:00:00:01")
        / control().src(source).dst("224.0.0.1")
        / igmp().kind("0x11").maxresp(100).group("0.0.0.0");
    let query = if o.version == Version::V3 { query / bytes().u8(2).u8(125).u16(0) } else { query };
    Ok(vec![
        (Stream::new(data).named("data"), o.data.into()),
        (Stream::new(join).named("join"), o.joins.into()),
        (Stream::new(leave).named("leave"), o.leaves.into()),
        (Stream::new(query).named("query"), o.queries.into()),
    ])
}

fn v6(o: &Options, group: Ipv6Addr) -> Result<Vec<(Stream, u64)>, Fault> {
    let mac = multicast_v6(group);
    walks(o, mac & 0xffff_ffff, 32)?;
    let source = match o.source {
        Some(IpAddr::V6(source)) => source,
        _ => Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1),
    };
    let groups = v6s(group, o.groups);
    let hosts = v6s(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, 0), o.hosts);
    let host_macs = macs(0x0200_0001_0000, o.hosts);
    let data = ether().dst(macs(mac, o.groups))
        / ipv6().src(source).dst(&groups).hlim(o.ttl)
        / udp().sport(5000).dport(&o.port)
        / zeros(o.payload_size);
    let [high, low] = [(u128::from(group) >> 64) as u64, u128::from(group) as u64];
    let lows = plugin_sdk::value::counted(low, o.groups);
    let lows = if o.groups > 1 { lows.every(o.hosts) } else { lows };
    // MLDv2 (RFC 3810): a report with one record.
    let report = |kind: u8| {
        let record = bytes().u8(kind).u8(0).u16(0).u64(high).vary(64, lows.clone());
        ether().src(&host_macs).dst("33:33:00:00:00:16")
            / ipv6().src(&hosts).dst("ff02::16").hlim(1)
            / hopopts().options("[ra(0)]")
            / icmpv6().kind(143).rest(1)
            / record
    };
    let query = ether().dst("33:33:00:00:00:01")
        / ipv6().src("fe80::1").dst("ff02::1").hlim(1)
        / hopopts().options("[ra(0)]")
        / icmpv6().kind(130).rest("0x27100000").target("::")
        / bytes().u8(2).u8(125).u16(0);
    Ok(vec![
        (Stream::new(data).named("data"), o.data.into()),
        (Stream::new(report(4)).named("join"), o.joins.into()),
        (Stream::new(report(3)).named("leave"), o.leaves.into()),
        (Stream::new(query).named("query"), o.queries.into()),
    ])
}
