//! UDP datagrams in exactly so many flows. Options are named as those of XDPerf's plugin of this name.

use crate::common::*;
use plugin_sdk::options::{Addresses, Macs, Values, ip};
use plugin_sdk::packet::{ether, udp, vlan};
use plugin_sdk::payload::zeros;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

options! {
    /// Options of simpleudp.
    {
        /// Source addresses (IPv4 or IPv6): one, a prefix, a range, a list, random(...).
        src_ip: Addresses = addresses("198.18.0.1"),
        /// Destination addresses, of the same IP version.
        dst_ip: Addresses = addresses("198.19.0.1"),
        /// Source ports.
        src_port: Values = values("1024..65535"),
        /// Destination ports.
        dst_port: Values = values("9"),
        /// Bytes of UDP payload. With netdyno's frame size setting that decides, and this is the least.
        #[schemars(range(max = 9000))]
        payload_size: u16 = 18,
        /// Text that the payload begins with; zeros follow.
        payload: String = String::new(),
        /// Exactly so many flows, source ports and then source addresses taken in turn, each flow once before any comes again.
        /// 0: addresses and ports advance together, as they are written.
        #[schemars(range(max = 4_294_967_296_u64))]
        flows: u64 = 0,
        /// Source Ethernet addresses. Default: netdyno's.
        src_mac: Option<Macs> = None,
        /// Destination Ethernet addresses. Default: netdyno's.
        dst_mac: Option<Macs> = None,
        /// VLAN identifiers of an 802.1Q tag. Default: none.
        vlan: Option<Values> = None,
        /// Differentiated services code points.
        dscp: Values = values("0"),
        /// Time to live, or hop limit.
        ttl: Values = values("64"),
        /// Whether UDP over IPv4 carries a checksum.
        checksum: bool = true,
        /// Ask for the Ethernet address that leads to the destination, by ARP or neighbour discovery, before the run.
        is_arp_resolve: bool = false,
    }
}

/// UDP datagrams.
#[derive(Debug)]
pub struct SimpleUdp;

impl Compile for SimpleUdp {
    type Options = Options;
    const NAME: &'static str = "simpleudp";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str =
        "UDP datagrams from many addresses and ports, in exactly so many flows if wanted.";

    fn examples() -> Vec<Example> {
        vec![
            example!("Small datagrams of one host from all of its ports", {}),
            example!("Exactly a million flows towards one server", {
                "src_ip": "10.0.0.0/16", "dst_ip": "198.18.0.1", "flows": 1_000_000
            }),
            example!("IPv6 in VLANs 100 to 199, voice's code point, 160 bytes of payload", {
                "src_ip": "2001:2::/112", "dst_ip": "2001:2:0:1::1", "vlan": "100..199", "dscp": 46, "payload_size": 160
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let header = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?.dscp(&o.dscp).ttl(&o.ttl);
        let (source, ports) = flows(o.flows, &o.src_ip, &o.src_port, "flows")?;
        let header = header.src(source);
        let v6 = header.is_v6();
        let mut transport = udp().sport(ports).dport(&o.dst_port);
        if !o.checksum {
            if v6 {
                return Err(Fault::at("/checksum", "UDP over IPv6 has a checksum (RFC 8200 section 8.1)"));
            }
            transport = transport.chksum(0);
        }
        if o.payload.len() > usize::from(o.payload_size) {
            let message = format!("it has {} bytes; `payload_size` is {}", o.payload.len(), o.payload_size);
            return Err(Fault::at("/payload", message));
        }
        let payload = zeros(o.payload_size).put(o.payload.as_bytes());
        let link = ether().maybe("src", o.src_mac.as_ref()).maybe("dst", o.dst_mac.as_ref());
        let packet = match &o.vlan {
            Some(id) => link / vlan().id(id) / header / transport / payload,
            None => link / header / transport / payload,
        };
        let mut stream = Stream::new(packet).named("simpleudp");
        if o.is_arp_resolve {
            if o.dst_mac.is_some() {
                return Err(Fault::at("/is_arp_resolve", "`dst_mac` says the address: one of them decides"));
            }
            stream.resolve = Some(true.into());
        }
        Ok(Scenario::of(stream))
    }
}
