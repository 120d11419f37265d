//! ARP storms: requests, answers and announcements of many hosts, as a loop or a restarted switch makes them (RFC 826, RFC 5227).

use crate::common::*;
use plugin_sdk::options::Values;
use plugin_sdk::packet::{Packet, arp, ether, vlan};
use plugin_sdk::value::random;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use std::net::Ipv4Addr;

options! {
    /// Options of arp_storm.
    {
        /// Number of hosts that speak, each with a MAC and an IPv4 address.
        #[schemars(range(min = 1, max = 1_000_000))]
        hosts: u64 = 1000,
        /// Address of the first host.
        first_host: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1),
        /// The first address that is asked for, and who is answered.
        first_target: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1),
        /// Number of addresses that are asked for.
        #[schemars(range(min = 1, max = 1_000_000))]
        targets: u64 = 256,
        /// Whether targets are taken by chance instead of in turn.
        random: bool = false,
        /// Share of requests.
        #[schemars(range(max = 100))]
        requests: u32 = 80,
        /// Share of answers, each to a target.
        #[schemars(range(max = 100))]
        answers: u32 = 10,
        /// Share of gratuitous requests: a host asks for its own address.
        #[schemars(range(max = 100))]
        gratuitous: u32 = 10,
        /// Share of probes (RFC 5227): a host without an address asks whether it is free.
        #[schemars(range(max = 100))]
        probes: u32 = 0,
        /// VLAN identifiers of an 802.1Q tag. Default: none.
        vlan: Option<Values> = None,
    }
}

/// ARP of many hosts.
#[derive(Debug)]
pub struct ArpStorm;

impl Compile for ArpStorm {
    type Options = Options;
    const NAME: &'static str = "arp_storm";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "ARP of many hosts at a time: requests, answers, gratuitous requests and probes in any mix, each host with addresses of its own.";

    fn examples() -> Vec<Example> {
        vec![
            example!("1,000 hosts, requests for 256 addresses, some answers and announcements", {}),
            example!("A move of 10,000 hosts: nothing but announcements, in VLANs", {
                "hosts": 10000, "requests": 0, "answers": 0, "gratuitous": 100, "vlan": "100..109"
            }),
            example!("Probes for addresses of chance", {
                "requests": 50, "answers": 0, "gratuitous": 0, "probes": 50, "random": true, "targets": 4096
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if o.requests + o.answers + o.gratuitous + o.probes == 0 {
            return Err(Fault::at("/requests", "all shares are 0: nothing would be sent"));
        }
        let (own, addresses) = (macs(0x0200_0001_0000, o.hosts), v4s(o.first_host, o.hosts));
        let targets = v4s(o.first_target, o.targets);
        let targets = if o.random && o.targets > 1 { random(targets) } else { targets };
        let link = |destination: &str| -> Packet {
            let link = ether().src(&own).dst(destination);
            match &o.vlan {
                Some(id) => link / vlan().id(id),
                None => link.into(),
            }
        };
        const ALL: &str = "ff:ff:ff:ff:ff:ff";
        let asked = || arp().op(1).hwsrc(&own);
        let streams = vec![
            (link(ALL) / asked().psrc(&addresses).pdst(&targets), "request", o.requests),
            (
                link("02:00:00:00:00:02")
                    / arp().op(2).hwsrc(&own).psrc(&addresses).hwdst("02:00:00:00:00:02").pdst(&targets),
                "answer",
                o.answers,
            ),
            (link(ALL) / asked().psrc(&addresses).pdst(&addresses), "gratuitous", o.gratuitous),
            (link(ALL) / asked().psrc("0.0.0.0").pdst(&targets), "probe", o.probes),
        ];
        let streams = streams
            .into_iter()
            .map(|(packet, name, share)| (Stream::new(packet).named(name).size("64"), share.into()));
        Ok(Scenario::new(proportional(streams.collect())))
    }
}
