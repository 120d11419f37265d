//! A flow profile as it is written in the file; `flows` compiles it.

use super::model::{Count, Name, Resolve, SizeText, Time, described, text};
use super::weighted::{FromText, Weighted};
use super::yaml::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Deserializer;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use traffic::rate::{Exact, Rate, parse_duration};

/// Packets of a flow, at most: each is a stream.
pub(super) const MAX_PACKETS: u32 = 1000;
/// Bits of an address that vary, at most.
const MAX_BITS: u8 = 32;

/// Flows that begin at a rate, each with so many packets over so long a time, each with a key (addresses, ports, protocol)
/// that no other has.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name in results. Default: `flows 1`, `flows 2`, ... by its place.
    pub name: Option<At<Name>>,
    /// New flows per second, such as 10kflows/s. Left out with `concurrency`: as many as that needs.
    pub rate: Option<At<FlowRate>>,
    /// Instead of `rate`: flows under way at a time, those of one packet not counted.
    pub concurrency: Option<At<Count>>,
    /// Flows in all. Default: as many as end within the run's duration.
    pub count: Option<At<Count>>,
    /// The first flow begins this long after the run's start.
    pub start: Option<At<Time>>,
    /// Packets of a flow. Default: 1.
    pub packets: Option<At<Weighted<Packets>>>,
    /// From the first packet of a flow to its last. The others lie evenly between.
    pub duration: Option<At<Weighted<Time>>>,
    /// Frame sizes, the frame check sequence counted. Default: 64, or what the headers need.
    pub size: Option<At<SizeText>>,
    /// Transport protocol. TCP flows begin with SYN and end with FIN. Default: udp.
    pub protocol: Option<At<Weighted<Transport>>>,
    /// Source addresses.
    pub source: At<Addresses>,
    /// Destination addresses.
    pub destination: At<Addresses>,
    /// Source ports of TCP and UDP. Default: 1024..65535.
    pub source_port: Option<At<PortRange>>,
    /// Destination ports of TCP and UDP. Default: 443.
    pub destination_port: Option<At<Weighted<Port>>>,
    /// End each frame with an 18-byte signature (stream, sequence, time). Default: as for streams.
    pub sign: Option<At<bool>>,
    /// The address of the next hop, to ask for its Ethernet address.
    pub resolve: Option<At<Resolve>>,
}

/// New flows per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRate(pub Exact);

impl<'de> Deserialize<'de> for FlowRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FlowRate, D::Error> {
        text(deserializer, "new flows per second such as 10kflows/s", |text| {
            let written = text.trim();
            match written.parse() {
                Ok(Rate::Flows(rate)) => Ok(FlowRate(rate)),
                Ok(_) => Err(format!(
                    "`{written}`: the rate of a flow profile is in new flows per second (10kflows/s); frames per second follow from `packets`"
                )),
                Err(traffic::rate::BadQuantity::NoUnit(_)) => {
                    Err(format!("`{written}` has no unit: write {written}flows/s for new flows per second"))
                }
                Err(bad) => Err(bad.to_string()),
            }
        })
    }
}

described!(FlowRate, "FlowRate", {
    "description": "New flows per second: 10kflows/s, 2.5 Mflows/s, 500fps.",
    "type": "string",
    "examples": ["10kflows/s", "500 flows/s"]
});

/// Packets of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packets(pub u32);

impl FromText for Packets {
    const WHAT: &'static str = "packets of a flow (1 to 1000)";
    const NAME: &'static str = "Packets";

    fn read(text: &str) -> Result<Packets, String> {
        let packets = text.trim().parse().ok().filter(|packets| (1..=MAX_PACKETS).contains(packets));
        packets.map(Packets).ok_or_else(|| {
            format!("`{}`: a flow has 1 to {MAX_PACKETS} packets", text.chars().take(40).collect::<String>())
        })
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX_PACKETS })
    }
}

impl FromText for Time {
    const WHAT: &'static str = "a time such as 200ms";
    const NAME: &'static str = "FlowDuration";

    fn read(text: &str) -> Result<Time, String> {
        let time = parse_duration(text).map_err(|bad| bad.to_string())?;
        Time::of(time).ok_or_else(|| format!("`{}` is too long: 366 days are the most", text.trim()))
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "examples": ["2s", "200ms"] })
    }
}

/// A protocol of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// Begins with SYN, ends with FIN.
    Tcp,
    /// Nothing but data.
    Udp,
    /// Echo requests; ICMPv6 between IPv6 addresses.
    Icmp,
}

impl Transport {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Icmp => "icmp",
        }
    }
}

impl FromText for Transport {
    const WHAT: &'static str = "tcp, udp or icmp";
    const NAME: &'static str = "Transport";

    fn read(text: &str) -> Result<Transport, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "tcp" => Ok(Transport::Tcp),
            "udp" => Ok(Transport::Udp),
            "icmp" => Ok(Transport::Icmp),
            other => Err(format!(
                "`{}`: flows are of tcp, udp or icmp; for others write streams",
                other.chars().take(40).collect::<String>()
            )),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "enum": ["tcp", "udp", "icmp"] })
    }
}

/// An address, or all addresses of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The first.
    pub first: IpAddr,
    /// There are two to the power of this.
    pub bits: u8,
}

impl Addresses {
    fn width(self) -> u8 {
        if self.first.is_ipv4() { 32 } else { 128 }
    }

    fn number(self) -> u128 {
        match self.first {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    /// The first and the last, as numbers.
    pub fn span(self) -> (u128, u128) {
        let first = self.number();
        (first, first + ((1u128 << self.bits) - 1))
    }

    /// Part `n` of two to the power of `bits`; `None` if it has not so many.
    pub fn part(self, n: u128, bits: u8) -> Option<Addresses> {
        let left = self.bits.checked_sub(bits)?;
        let first = self.number() + (n << left);
        let first = match self.first {
            IpAddr::V4(_) => Ipv4Addr::from_bits(u32::try_from(first).ok()?).into(),
            IpAddr::V6(_) => Ipv6Addr::from_bits(first).into(),
        };
        Some(Addresses { first, bits: left })
    }

    /// As a value in a packet expression: one, or each once in an order of chance.
    pub fn expression(self) -> String {
        match self.bits {
            0 => self.first.to_string(),
            bits => format!("shuffled({}/{})", self.first, self.width() - bits),
        }
    }

    fn read(text: &str) -> Result<Addresses, String> {
        let shown = || text.chars().take(60).collect::<String>();
        let bad =
            || format!("`{}` is neither an IP address nor a prefix: write 10.0.0.1 or 10.0.0.0/8", shown());
        let (address, length) = match text.trim().split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text.trim(), None),
        };
        let first: IpAddr = address.trim().parse().map_err(|_| bad())?;
        let width = Addresses { first, bits: 0 }.width();
        let length = match length {
            Some(length) => length.trim().parse().ok().filter(|length| *length <= width).ok_or_else(bad)?,
            None => width,
        };
        let all = Addresses { first, bits: 0 };
        let host = width - length;
        if host > 0 && host < 128 && all.number() & ((1u128 << host) - 1) != 0 || host == 128 {
            return Err(format!("`{}`: the bits behind the prefix must be zero", shown()));
        }
        Ok(Addresses { first, bits: host.min(MAX_BITS) })
    }
}

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Addresses, D::Error> {
        text(deserializer, "an IP address or a prefix such as 10.0.0.0/8", Addresses::read)
    }
}

described!(Addresses, "Addresses", {
    "description": "An IP address, or a prefix for all of its addresses (of an IPv6 prefix the first 4,294,967,296): 10.0.0.0/8.",
    "type": "string",
    "examples": ["10.0.0.0/8", "2001:db8::/64"]
});

/// Ports, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PortRange, D::Error> {
        text(deserializer, "ports such as 1024..65535", |text| {
            let (first, last) = text.split_once("..").unwrap_or((text, text));
            match (first.trim().parse(), last.trim().parse()) {
                (Ok(first), Ok(last)) if first <= last => Ok(PortRange { first, last }),
                _ => Err(format!(
                    "`{}`: write a port, or a range of ports such as 1024..65535",
                    text.chars().take(40).collect::<String>()
                )),
            }
        })
    }
}

described!(PortRange, "PortRange", {
    "description": "A port, or a range of ports: 1024..65535.",
    "type": ["string", "integer"],
    "examples": ["1024..65535"]
});

/// A port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port(pub u16);

impl FromText for Port {
    const WHAT: &'static str = "a port (0 to 65535)";
    const NAME: &'static str = "Ports";

    fn read(text: &str) -> Result<Port, String> {
        text.trim().parse().map(Port).map_err(|_| {
            format!("`{}`: a port is a number from 0 to 65535", text.chars().take(40).collect::<String>())
        })
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": 65535 })
    }
}
