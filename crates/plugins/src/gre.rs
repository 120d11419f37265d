//! GRE in its shapes: of packets, of Ethernet (NVGRE), and mirrored frames (ERSPAN type II).

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::{Packet, ether, gre, udp};
use plugin_sdk::payload::bytes;
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// What GRE carries.
    Kind {
        /// IP packets (RFC 2784, RFC 2890).
        Ip = "ip",
        /// Ethernet frames of virtual networks (RFC 7637).
        Nvgre = "nvgre",
        /// Mirrored Ethernet frames, ERSPAN type II.
        Erspan = "erspan",
    }
}

options! {
    /// Options of gre.
    {
        /// Tunnel endpoints that send (IPv4 or IPv6).
        src_ip: Addresses = addresses("198.18.0.1"),
        /// Tunnel endpoints that receive.
        dst_ip: Addresses = addresses("198.19.0.1"),
        /// What is carried.
        kind: Kind = Kind::Ip,
        /// Number of tunnels, each with a key of its own: the key of `ip`, the virtual subnet of `nvgre` (24 bits), the session of
        /// `erspan` (10 bits).
        #[schemars(range(min = 1, max = 16_777_216))]
        tunnels: u64 = 1,
        /// The first tunnel's number.
        first_key: u32 = 1,
        /// Whether `ip` has a key. More than one tunnel has.
        key: bool = false,
        /// Whether `ip` has sequence numbers, counting for each tunnel.
        sequence: bool = false,
        /// Whether `ip` has a checksum.
        checksum: bool = false,
        /// Inner source addresses (IPv4 or IPv6).
        inner_src: Addresses = addresses("10.0.0.0/16"),
        /// Inner destination addresses.
        inner_dst: Addresses = addresses("198.18.1.0/24"),
        /// Inner source ports.
        inner_port: Values = values("1024..65535"),
        /// VLAN of mirrored frames.
        #[schemars(range(max = 4095))]
        vlan: u16 = 100,
    }
}

/// GRE tunnels.
#[derive(Debug)]
pub struct Gre;

impl Compile for Gre {
    type Options = Options;
    const NAME: &'static str = "gre";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "GRE tunnels: IP packets with keys, sequence numbers and checksums, Ethernet frames of virtual networks (NVGRE), mirrored frames (ERSPAN type II).";

    fn examples() -> Vec<Example> {
        vec![
            example!("IPv4 in GRE without any options", {}),
            example!("1,000 tunnels with keys, sequence numbers and checksums, IPv6 inside", {
                "tunnels": 1000, "sequence": true, "checksum": true, "inner_src": "2001:2::/112", "inner_dst": "2001:2:0:1::/120"
            }),
            example!("4,096 virtual networks of NVGRE", { "kind": "nvgre", "tunnels": 4096, "first_key": 4096 }),
            example!("Mirrored frames to a collector", { "kind": "erspan", "tunnels": 4, "first_key": 10 }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let most = match o.kind {
            Kind::Ip => 1u64 << 32,
            Kind::Nvgre => 1 << 24,
            Kind::Erspan => 1 << 10,
        };
        if u64::from(o.first_key) + o.tunnels > most {
            return Err(Fault::at("/first_key", format!("the last tunnel's number is {} at most", most - 1)));
        }
        let outer = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?;
        let user: Packet =
            ip(&o.inner_src, &o.inner_dst, "/inner_dst")? / udp().sport(&o.inner_port).dport(9);
        let keys = plugin_sdk::value::counted(o.first_key.into(), o.tunnels);
        let counting = || plugin_sdk::value::Value::from(0..=u32::MAX).every(o.tunnels);
        let packet = match o.kind {
            Kind::Ip => {
                let mut header = gre();
                if o.checksum {
                    header = header.chksum_present(1);
                }
                if o.key || o.tunnels > 1 {
                    header = header.key(keys);
                }
                if o.sequence {
                    header = header.seq(counting());
                }
                outer / header / user
            }
            Kind::Nvgre => {
                // The key is 24 bits of virtual subnet and 8 bits of flow.
                let first = u64::from(o.first_key) << 8;
                let subnets = plugin_sdk::value::Value::from(first..=first + (o.tunnels - 1) * 256).step(256);
                let subnets = if o.tunnels == 1 { first.into() } else { subnets };
                outer / gre().key(subnets) / ether() / user
            }
            Kind::Erspan => {
                // Version 1, VLAN, class 0, encapsulated as it was, not truncated, session; index.
                let header = bytes().u16(0x1000 | o.vlan).vary(6, 0).vary(10, keys).u32(1);
                outer / gre().proto("0x88be").seq(counting()) / header / ether() / user
            }
        };
        Ok(Scenario::of(Stream::new(packet).named("gre")))
    }
}
