//! Flow records of exporters to a collector: NetFlow version 5, version 9 (RFC 3954), IPFIX (RFC 7011). A collector decodes each
//! message by itself, because each carries its template.

use crate::common::*;
use plugin_sdk::options::{Addresses, ip};
use plugin_sdk::packet::udp;
use plugin_sdk::payload::{Payload, bytes};
use plugin_sdk::value::{Value, random};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// The protocol.
    Version {
        /// NetFlow version 5: IPv4 only, a fixed record.
        V5 = "v5",
        /// NetFlow version 9.
        V9 = "v9",
        /// IPFIX.
        Ipfix = "ipfix",
    }
}

options! {
    /// Options of netflow.
    {
        /// Addresses of exporters (IPv4 or IPv6), as many as `exporters`.
        exporter_ip: Addresses = addresses("10.0.0.0/16"),
        /// Number of exporters, each with sequence numbers of its own.
        #[schemars(range(min = 1, max = 65536))]
        exporters: u64 = 10,
        /// The collector.
        collector: Addresses = addresses("198.18.0.95"),
        /// The collector's port. Default: 2055, of IPFIX 4739.
        port: Option<u16> = None,
        /// The protocol.
        version: Version = Version::Ipfix,
        /// Records of a message.
        #[schemars(range(min = 1, max = 30))]
        records: u32 = 20,
        /// Flows' source addresses are of this prefix. IPv6 with version 9 and IPFIX.
        flow_src: Addresses = addresses("172.16.0.0/16"),
        /// Flows' destination addresses are of this prefix.
        flow_dst: Addresses = addresses("198.18.1.0/24"),
        /// Whether messages carry the template. Version 5 has none.
        template: bool = true,
        /// Time of export, in seconds since 1970. It stands still: frames are functions of their number.
        time: u32 = 1_767_225_600,
    }
}

/// Exporters of flows.
#[derive(Debug)]
pub struct NetFlow;

/// Fields that can vary in one frame: what netdyno has room for, less those of headers.
const ROOM: u32 = 58;

impl Compile for NetFlow {
    type Options = Options;
    const NAME: &'static str = "netflow";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "Flow records to load a collector with: NetFlow version 5 or 9 or IPFIX, of many exporters with right sequence numbers, each message with its template.";

    fn examples() -> Vec<Example> {
        vec![
            example!("IPFIX of ten exporters, 20 records a message", {}),
            example!("NetFlow version 5, full messages", { "version": "v5", "records": 30, "exporters": 100 }),
            example!("NetFlow version 9, records of IPv6 flows", {
                "version": "v9", "records": 12, "flow_src": "2001:2:0:64::/112", "flow_dst": "2001:2:0:1::/120"
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        let v6 = o.flow_src.is_ipv6();
        if v6 != o.flow_dst.is_ipv6() {
            return Err(Fault::at("/flow_dst", "of the same IP version as `flow_src`"));
        }
        if v6 && o.version == Version::V5 {
            return Err(Fault::at("/flow_src", "version 5 has records of IPv4 only"));
        }
        // Of flows over IPv6 four bytes vary.
        for (addresses, option) in [(&o.flow_src, "/flow_src"), (&o.flow_dst, "/flow_dst")] {
            if v6 && low(addresses).is_none() {
                let message = "of IPv6 an address, a prefix or a range that differs in its last 32 bits only";
                return Err(Fault::at(option, message));
            }
        }
        let exporters = o.exporter_ip.take(o.exporters).map_err(|why| Fault::at("/exporter_ip", why))?;
        // What counts records goes up by a message's, what counts messages by one; for each exporter by itself.
        let counting = |step: u32| Value::from(0..=u32::MAX - step).step(step.into()).every(o.exporters);
        let message = match o.version {
            Version::V5 => version_5(&o, counting(o.records)),
            Version::V9 => version_9(&o, counting(1), v6),
            Version::Ipfix => ipfix(&o, counting(o.records), v6),
        };
        let port = o.port.unwrap_or(if o.version == Version::Ipfix { 4739 } else { 2055 });
        let header = ip(&o.exporter_ip, &o.collector, "/collector")?.src(exporters);
        Ok(Scenario::of(Stream::new(header / udp().sport(50_000).dport(port) / message).named("flow export")))
    }
}

/// One address of a flow: 4 or 16 bytes, of which the last 4 vary.
fn address(of: &Addresses, vary: bool) -> Payload {
    match of.first() {
        std::net::IpAddr::V4(_) if vary && of.only().is_none() => {
            bytes().vary(32, if of.text().contains('(') { Value::from(of) } else { random(of) })
        }
        std::net::IpAddr::V4(first) => bytes().put(&first.octets()),
        std::net::IpAddr::V6(first) => match low(of).filter(|range| vary && range.start() != range.end()) {
            Some(range) => {
                bytes().put(first.octets().get(..12).unwrap_or_default()).vary(32, random(Value::from(range)))
            }
            None => bytes().put(&first.octets()),
        },
    }
}

/// The last 32 bits of IPv6 addresses: of an address, a prefix (of one that is shorter than /96 the first addresses of it), a range.
fn low(of: &Addresses) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = of.ends()?;
    let bits = |address| match address {
        std::net::IpAddr::V6(address) => Some(u128::from(address)),
        std::net::IpAddr::V4(_) => None,
    };
    let (first, last) = (bits(first)?, bits(last)?);
    let (low, high) = (first.min(last), first.max(last));
    let whole = of.text().contains('/');
    (low >> 32 == high >> 32 || whole)
        .then_some(low as u32..=if low >> 32 == high >> 32 { high as u32 } else { u32::MAX })
}

/// How many fields of each record vary.
fn varying(o: &Options) -> u32 {
    ROOM / o.records.max(1)
}

fn version_5(o: &Options, sequence: Value) -> Payload {
    let mut out =
        bytes().u16(5).u16(o.records as u16).u32(3_600_000).u32(o.time).u32(0).vary(32, sequence).u32(0);
    let few = varying(o);
    for n in 0..o.records {
        let length = 40 + 60 * n;
        out = out
            .append(&address(&o.flow_src, few > 0))
            .append(&address(&o.flow_dst, few > 3))
            .u32(0)
            .u16(1)
            .u16(2)
            .u32(10 + n)
            .append(&fixed_or(few > 2, length * (10 + n)))
            .u32(3_500_000)
            .u32(3_590_000)
            .append(&port(few > 1))
            .u16(443)
            .u8(0)
            .u8(0x1b)
            .u8(6)
            .u8(0)
            .u16(64_512)
            .u16(64_513)
            .u8(16)
            .u8(24)
            .u16(0);
    }
    out
}

/// A number of bytes that varies, or does not.
fn fixed_or(vary: bool, value: u32) -> Payload {
    if vary { bytes().vary(32, random(40..=1_000_000)) } else { bytes().u32(value) }
}

fn port(vary: bool) -> Payload {
    if vary { bytes().vary(16, random(1024..=65535)) } else { bytes().u16(40_000) }
}

/// Information elements of the template: number and length (version 9's numbers are the same).
fn template(v6: bool, times: [(u16, u16); 2]) -> Vec<(u16, u16)> {
    let addresses = if v6 { [(27, 16), (28, 16)] } else { [(8, 4), (12, 4)] };
    let mut fields = addresses.to_vec();
    fields.extend([(7, 2), (11, 2), (4, 1), (6, 1), (5, 1), (61, 1), (10, 4), (14, 4), (2, 4), (1, 4)]);
    fields.extend(times);
    fields
}

/// A template's set: its identifier, then the template 256.
fn template_set(set: u16, fields: &[(u16, u16)]) -> Payload {
    let mut out = bytes().u16(set).u16(8 + 4 * fields.len() as u16).u16(256).u16(fields.len() as u16);
    for (number, length) in fields {
        out = out.u16(*number).u16(*length);
    }
    out
}

/// The set of records of template 256.
fn data_set(o: &Options, times: &[u8]) -> Payload {
    let few = varying(o);
    let mut records = bytes();
    for n in 0..o.records {
        records = records
            .append(&address(&o.flow_src, few > 0))
            .append(&address(&o.flow_dst, few > 3))
            .append(&port(few > 1))
            .u16(443)
            .u8(6)
            .u8(0x1b)
            .u8(0)
            .u8(0)
            .u32(1)
            .u32(2)
            .u32(10 + n)
            .append(&fixed_or(few > 2, (40 + 60 * n) * (10 + n)))
            .put(times);
    }
    let padding = records.len().next_multiple_of(4) - records.len();
    let records = records.put(&vec![0; padding]);
    bytes().u16(256).u16(4 + records.len() as u16).append(&records)
}

fn version_9(o: &Options, sequence: Value, v6: bool) -> Payload {
    // First and last packet, by the exporter's uptime.
    let fields = template(v6, [(22, 4), (21, 4)]);
    let times: Vec<u8> = [3_500_000u32, 3_590_000].iter().flat_map(|time| time.to_be_bytes()).collect();
    let count = o.records as u16 + u16::from(o.template);
    let mut out = bytes().u16(9).u16(count).u32(3_600_000).u32(o.time).vary(32, sequence).u32(1);
    if o.template {
        out = out.append(&template_set(0, &fields));
    }
    out.append(&data_set(o, &times))
}

fn ipfix(o: &Options, sequence: Value, v6: bool) -> Payload {
    // First and last packet, in milliseconds since 1970.
    let fields = template(v6, [(152, 8), (153, 8)]);
    let end = u64::from(o.time) * 1000;
    let times: Vec<u8> = [end.saturating_sub(90_000), end.saturating_sub(10_000)]
        .iter()
        .flat_map(|time| time.to_be_bytes())
        .collect();
    let mut sets = bytes();
    if o.template {
        sets = sets.append(&template_set(2, &fields));
    }
    let sets = sets.append(&data_set(o, &times));
    // What of the sets varies is moved behind the header with them.
    bytes().u16(10).u16(16 + sets.len() as u16).u32(o.time).vary(32, sequence).u32(1).append(&sets)
}
