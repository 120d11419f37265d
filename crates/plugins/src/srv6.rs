//! Segment routing over IPv6: encapsulated customers (RFC 8986), reduced, and compressed segment lists (RFC 9800).

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::{Packet, ether, ipv6, srv6, udp};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};
use std::net::Ipv6Addr;

choices! {
    /// How the path is written.
    Mode {
        /// H.Encaps: all segments in the routing header.
        Encaps = "h_encaps",
        /// H.Encaps.Red: the first segment stands only in the destination address.
        EncapsRed = "h_encaps_red",
        /// uSID (NEXT-C-SID): 16-bit segments in one address, further ones in a routing header.
        Usid = "usid",
    }
}

choices! {
    /// What is carried.
    Inner {
        /// IPv4 (End.DT4, End.DX4).
        Ipv4 = "ipv4",
        /// IPv6 (End.DT6, End.DX6).
        Ipv6 = "ipv6",
        /// Ethernet (End.DX2).
        Ethernet = "ethernet",
    }
}

options! {
    /// Options of srv6.
    {
        /// How the path is written.
        mode: Mode = Mode::Encaps,
        /// The source of the encapsulation, or several.
        source: Addresses = addresses("2001:2::1"),
        /// Segments of the path in the order that they are passed; the last one is the service at the far end. Not of uSID.
        #[schemars(length(min = 1, max = 16))]
        segments: Vec<Ipv6Addr> = vec![
            Ipv6Addr::new(0x2001, 2, 0, 0xa, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 2, 0, 0xb, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 2, 0, 0xc, 0, 0, 0, 0x100),
        ],
        /// uSID: the block that the segments share, of 32 bits (the address's first two words).
        block: Ipv6Addr = Ipv6Addr::new(0xfcbb, 0xbb00, 0, 0, 0, 0, 0, 0),
        /// uSID: the 16-bit segments in the order that they are passed.
        #[schemars(length(min = 1, max = 48))]
        usids: Vec<u16> = vec![0x0100, 0x0200, 0x0300, 0xe000],
        /// Segments that have been passed already: what a node in the middle of the path receives. Not of uSID.
        passed: u8 = 0,
        /// What is carried.
        inner: Inner = Inner::Ipv4,
        /// Inner source addresses, of IPv4 and Ethernet.
        inner_src: Addresses = addresses("10.0.0.0/16"),
        /// Inner destination addresses, of IPv4 and Ethernet.
        inner_dst: Addresses = addresses("198.18.0.0/24"),
        /// Inner source addresses of IPv6.
        inner_src6: Addresses = addresses("2001:2:0:100::/112"),
        /// Inner destination addresses of IPv6.
        inner_dst6: Addresses = addresses("2001:2:0:200::/120"),
        /// Inner source ports.
        inner_port: Values = values("1024..65535"),
        /// Flow labels of the outer header. Random ones, unless said, so that paths of equal cost share the load.
        flow_label: Values = values("random()"),
        /// Tag of the routing header.
        tag: Values = values("0"),
    }
}

/// Customers over segment routing.
#[derive(Debug)]
pub struct Srv6;

impl Compile for Srv6 {
    type Options = Options;
    const NAME: &'static str = "srv6";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "Customers' packets over SRv6: H.Encaps, H.Encaps.Red or uSID, carrying IPv4, IPv6 or Ethernet, as any node of the path sees them.";

    fn examples() -> Vec<Example> {
        vec![
            example!("IPv4 over three segments", {}),
            example!("Reduced, IPv6 inside, at the second node of the path", {
                "mode": "h_encaps_red", "inner": "ipv6", "passed": 1
            }),
            example!("Ethernet over a single segment: no routing header at all", {
                "mode": "h_encaps_red", "segments": ["2001:2:0:c::100"], "inner": "ethernet"
            }),
            example!("Nine uSIDs: six in the destination address, three in a routing header", {
                "mode": "usid", "usids": [256, 512, 768, 1024, 1280, 1536, 1792, 2048, 57344]
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if !o.source.is_ipv6() {
            return Err(Fault::at("/source", "an IPv6 address"));
        }
        // The path as 128-bit segments in the order of passing, and whether the first one stands in the list, too.
        let (path, reduced) = match o.mode {
            Mode::Encaps => (o.segments.clone(), false),
            Mode::EncapsRed => (o.segments.clone(), true),
            Mode::Usid => {
                let block = o.block.segments();
                if block.iter().skip(2).any(|word| *word != 0) {
                    return Err(Fault::at("/block", "the block has 32 bits: two words, then zeros"));
                }
                if let Some(zero) = o.usids.iter().position(|usid| *usid == 0) {
                    return Err(Fault::at(format!("/usids/{zero}"), "0 is the end of the container"));
                }
                let containers = o.usids.chunks(6).map(|chunk| {
                    let mut words = [0u16; 8];
                    for (word, value) in words.iter_mut().zip(block.iter().take(2).chain(chunk)) {
                        *word = *value;
                    }
                    Ipv6Addr::from(words)
                });
                (containers.collect(), true)
            }
        };
        let passed = if o.mode == Mode::Usid { 0 } else { usize::from(o.passed) };
        let Some(active) = path.get(passed) else {
            return Err(Fault::at("/passed", format!("the path has {} segments", path.len())));
        };
        // 143 is Ethernet (RFC 8986 section 10.1), which no layer of ours announces after IPv6.
        let next = (o.inner == Inner::Ethernet).then_some(143);
        let outer = ipv6().src(&o.source).dst(*active).fl(&o.flow_label);
        let listed: Vec<String> =
            path.iter().skip(usize::from(reduced)).rev().map(Ipv6Addr::to_string).collect();
        let packet: Packet = if listed.is_empty() {
            outer.maybe("nh", next).into()
        } else {
            let left = path.len().saturating_sub(1 + passed);
            let list = format!("[{}]", listed.join(", "));
            outer / srv6().segments(list).segleft(left).tag(&o.tag).maybe("nh", next)
        };
        let transport = udp().sport(&o.inner_port).dport(9);
        let v4 = || ip(&o.inner_src, &o.inner_dst, "/inner_dst");
        let packet = match o.inner {
            Inner::Ipv4 => packet / v4()? / transport,
            Inner::Ipv6 => packet / ip(&o.inner_src6, &o.inner_dst6, "/inner_dst6")? / transport,
            Inner::Ethernet => packet / ether() / v4()? / transport,
        };
        Ok(Scenario::of(Stream::new(packet).named("srv6")))
    }
}
