//! Port scans: each port of each target once, in an order of the scanner's choice. Of one's own networks.

use crate::common::*;
use plugin_sdk::options::{Addresses, Values, ip};
use plugin_sdk::packet::{Packet, tcp, udp};
use plugin_sdk::payload::{Payload, bytes, text};
use plugin_sdk::value::{Value, any, counted, random, shuffled};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// In which order ports and targets are taken.
    Order {
        /// All ports of a target, then the next target.
        Ports = "ports",
        /// One port of all targets, then the next port.
        Targets = "targets",
        /// Ports in an order of chance (each once where their number is 2, 4, 8, ...), targets in turn.
        Random = "random",
    }
}

/// Ports `first` to `last` of all targets: the fields of both.
fn order(order: Order, targets: &Addresses, first: u16, last: u16) -> Result<(Value, Value), Fault> {
    let count = u64::from(last - first) + 1;
    let ports = counted(first.into(), count);
    Ok(match order {
        Order::Ports => (Value::from(targets).every(count), ports),
        Order::Targets => {
            let hosts = targets.count().and_then(|count| u64::try_from(count).ok());
            let hosts = hosts.ok_or_else(|| {
                Fault::at(
                    "/dst_ip",
                    "with the order `targets`: an address, a prefix, a range or a list of addresses",
                )
            })?;
            (targets.into(), if count == 1 { ports } else { ports.every(hosts) })
        }
        Order::Random if count == 1 => (targets.into(), ports),
        Order::Random if count.is_power_of_two() => (Value::from(targets).every(count), shuffled(ports)),
        Order::Random => (Value::from(targets).every(count), random(ports)),
    })
}

/// Targets with `every=` where they are more than one.
fn targets(value: Value, targets: &Addresses) -> Value {
    if targets.only().is_some() { targets.into() } else { value }
}

fn bounds(ports: (u16, u16)) -> Result<(u16, u16), Fault> {
    if ports.0 > ports.1 {
        return Err(Fault::at("/last_port", "it lies before `first_port`"));
    }
    Ok(ports)
}

/// Frames of one whole scan.
fn whole(targets: &Addresses, ports: u64, passes: u64) -> Result<Option<u64>, Fault> {
    if passes == 0 {
        return Ok(None);
    }
    let frames = targets
        .count()
        .and_then(|hosts| hosts.checked_mul(u128::from(ports))?.checked_mul(u128::from(passes)))
        .and_then(|frames| u64::try_from(frames).ok());
    match frames {
        Some(frames) => Ok(Some(frames)),
        None => Err(Fault::at(
            "/passes",
            "how many targets there are does not show in `dst_ip`: write an address, a prefix, a range or a list of addresses, or 0 passes (without end)",
        )),
    }
}

pub mod tcp_port_scan {
    //! TCP.
    use super::*;

    choices! {
        /// Which segments are sent.
        Kind {
            /// SYN: half-open.
            Syn = "syn",
            /// ACK: finds filters.
            Ack = "ack",
            /// FIN.
            Fin = "fin",
            /// FIN, PSH, URG.
            Xmas = "xmas",
            /// No flag.
            Null = "null",
        }
    }

    options! {
        /// Options of tcp_port_scan.
        {
            /// The scanner's addresses (IPv4 or IPv6); several are decoys.
            src_ip: Addresses = addresses("198.18.0.1"),
            /// Targets: an address, a prefix, a range.
            dst_ip: Addresses = addresses("198.19.0.0/24"),
            /// The scanner's ports.
            src_port: Values = values("random(32768..60999)"),
            /// First port.
            #[schemars(range(min = 1))]
            first_port: u16 = 1,
            /// Last port.
            #[schemars(range(min = 1))]
            last_port: u16 = 1024,
            /// Which segments are sent.
            kind: Kind = Kind::Syn,
            /// In which order.
            order: Order = Order::Ports,
            /// How often the whole is scanned; 0: without end.
            passes: u64 = 1,
        }
    }

    /// A TCP port scan.
    #[derive(Debug)]
    pub struct TcpPortScan;

    impl Compile for TcpPortScan {
        type Options = Options;
        const NAME: &'static str = "tcp_port_scan";
        const VERSION: &'static str = VERSION;
        const ABOUT: &'static str = "A TCP port scan of any size: each port of each target once, by SYN, ACK, FIN, Xmas or null segments.";

        fn examples() -> Vec<Example> {
            vec![
                example!("The first 1,024 ports of 256 hosts", {}),
                example!("One port of a /16, half a scan of the network", {
                    "dst_ip": "198.18.0.0/16", "first_port": 22, "last_port": 22, "order": "targets"
                }),
                example!("All ports of a host in an order of chance, with decoys", {
                    "src_ip": ["198.18.0.1", "198.18.0.9", "198.18.0.77"], "dst_ip": "198.19.0.1",
                    "first_port": 1, "last_port": 65535, "order": "random", "kind": "xmas"
                }),
            ]
        }

        fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
            let (first, last) = bounds((o.first_port, o.last_port))?;
            let (hosts, ports) = order(o.order, &o.dst_ip, first, last)?;
            let flags = match o.kind {
                Kind::Syn => "S",
                Kind::Ack => "A",
                Kind::Fin => "F",
                Kind::Xmas => "FPU",
                Kind::Null => "0",
            };
            let options = if o.kind == Kind::Syn { "[mss(1460)]" } else { "[]" };
            let segment =
                tcp().sport(&o.src_port).dport(ports).seq(any()).flags(flags).window(1024).options(options);
            let header = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?.dst(targets(hosts, &o.dst_ip));
            let frames = whole(&o.dst_ip, u64::from(last - first) + 1, o.passes)?;
            Ok(Scenario {
                count: frames,
                ..Scenario::of(Stream::new(header / segment).named("tcp port scan"))
            })
        }
    }
}

pub mod udp_port_scan {
    //! UDP.
    use super::*;

    options! {
        /// Options of udp_port_scan.
        {
            /// The scanner's addresses (IPv4 or IPv6); several are decoys.
            src_ip: Addresses = addresses("198.18.0.1"),
            /// Targets: an address, a prefix, a range.
            dst_ip: Addresses = addresses("198.19.0.0/24"),
            /// The scanner's ports.
            src_port: Values = values("random(32768..60999)"),
            /// First port.
            #[schemars(range(min = 1))]
            first_port: u16 = 1,
            /// Last port.
            #[schemars(range(min = 1))]
            last_port: u16 = 1024,
            /// Ask DNS, NTP, SNMP, SIP, SSDP and others in their own protocol at their ports; empty datagrams elsewhere.
            probes: bool = true,
            /// In which order.
            order: Order = Order::Ports,
            /// How often the whole is scanned; 0: without end.
            passes: u64 = 1,
        }
    }

    /// A service's name, and what it answers to.
    type Probe = (&'static str, Payload);
    /// First port, last port, and what they are asked.
    type Stretch = (u16, u16, Option<Probe>);

    /// What services answer to.
    fn probe(port: u16) -> Option<Probe> {
        Some(match port {
            53 => (
                "dns",
                bytes()
                    .vary(16, any())
                    .u16(0x0100)
                    .u16(1)
                    .u16(0)
                    .u16(0)
                    .u16(0)
                    .put(b"\x07version\x04bind\x00")
                    .u16(16)
                    .u16(3),
            ),
            69 => ("tftp", bytes().u16(1).put(b"netdyno\0octet\0")),
            123 => ("ntp", bytes().u8(0x23).put(&[0; 39]).vary(64, any())),
            // GetRequest of sysDescr.0, version 2c, community "public".
            161 => (
                "snmp",
                bytes().put(&[
                    0x30, 0x26, 2, 1, 1, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', 0xa0, 0x19, 2, 1, 1, 2, 1,
                    0, 2, 1, 0, 0x30, 0x0e, 0x30, 0x0c, 6, 8, 0x2b, 6, 1, 2, 1, 1, 1, 0, 5, 0,
                ]),
            ),
            1900 => (
                "ssdp",
                text(
                    "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: ssdp:all\r\n\r\n",
                ),
            ),
            5060 => (
                "sip",
                text(
                    "OPTIONS sip:probe@198.18.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 198.18.0.1;branch=z9hG4bK1\r\nMax-Forwards: 70\r\nTo: <sip:probe@198.18.0.1>\r\nFrom: <sip:probe@198.18.0.1>;tag=1\r\nCall-ID: 1@198.18.0.1\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n",
                ),
            ),
            // CoAP GET of /.well-known/core.
            5683 => ("coap", bytes().put(&[0x40, 1]).vary(16, any()).put(b"\xbb.well-known\x04core")),
            _ => return None,
        })
    }

    /// A UDP port scan.
    #[derive(Debug)]
    pub struct UdpPortScan;

    impl Compile for UdpPortScan {
        type Options = Options;
        const NAME: &'static str = "udp_port_scan";
        const VERSION: &'static str = VERSION;
        const ABOUT: &'static str = "A UDP port scan of any size: each port of each target once, well-known services asked in their own protocol.";

        fn examples() -> Vec<Example> {
            vec![
                example!("The first 1,024 ports of 256 hosts, services asked", {}),
                example!("Ports up to 6,000 of one IPv6 host, target by target", {
                    "src_ip": "2001:2::1", "dst_ip": "2001:2:0:1::1", "last_port": 6000
                }),
                example!("Empty datagrams only, in an order of chance", {
                    "dst_ip": "198.19.0.0/28", "first_port": 1024, "last_port": 2047, "probes": false, "order": "random"
                }),
            ]
        }

        fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
            let (first, last) = bounds((o.first_port, o.last_port))?;
            // Stretches of ports without a probe, and between them the ports with one.
            let mut stretches: Vec<Stretch> = Vec::new();
            for port in first..=last {
                match (probe(port).filter(|_| o.probes), stretches.last_mut()) {
                    (None, Some((_, end, None))) => *end = port,
                    (found, _) => stretches.push((port, port, found)),
                }
            }
            let mut streams = Vec::new();
            for (from, to, service) in stretches {
                let (hosts, ports) = order(o.order, &o.dst_ip, from, to)?;
                let header = ip(&o.src_ip, &o.dst_ip, "/dst_ip")?.dst(targets(hosts, &o.dst_ip));
                let packet: Packet = header / udp().sport(&o.src_port).dport(ports);
                let (name, packet) = match service {
                    Some((name, payload)) => (format!("port {from} ({name})"), packet / payload),
                    None if from == to => (format!("port {from}"), packet),
                    None => (format!("ports {from} to {to}"), packet),
                };
                streams.push((Stream::new(packet).named(name), u32::from(to - from) + 1));
            }
            let frames = whole(&o.dst_ip, u64::from(last - first) + 1, o.passes)?;
            let streams = if streams.len() == 1 {
                streams.into_iter().map(|(stream, _)| stream).collect()
            } else {
                shared(streams)
            };
            Ok(Scenario { count: frames, ..Scenario::new(streams) })
        }
    }
}
