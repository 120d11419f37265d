//! Which side of a conversation sent each packet of a capture: tcpprep's modes.
//!
//! A packet goes out of the first interface (primary: client to server), the second (secondary) or is skipped. One
//! pass over the capture decides; where hosts must be known first ([`Auto`]), each packet's host is remembered (4
//! bytes a packet) instead of reading the capture again, so that pipes will do. Decisions are tcpprep 4.4.3's, with
//! the differences that docs/compat.md lists. Called by `netdyno tcpprep`; knows no options and prints nothing.

mod auto;
mod nets;
mod select;
mod services;

use capture::{CaptureError, Reader, Record};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::layers::{Fragment, L3, Layers};
use wire::{LinkType, Mac};

use crate::cache::{Cache, Way};

pub use auto::Auto;
pub use nets::{BadNet, Net, Nets};
pub use regex::Regex;
pub use select::{BadSelection, Selection};
pub use services::{BadServices, Services};

/// How packets are told apart.
#[derive(Debug, Clone)]
pub enum Mode {
    /// By what each host does.
    Auto(Auto),
    /// By source address: those in these networks are primary.
    Cidr(Nets),
    /// By source Ethernet address: these are primary.
    Mac(Vec<Mac>),
    /// By destination port: those of services are primary.
    Port(Services),
    /// By source address as text: what matches is primary.
    Regex(Regex),
}

/// All that decides about a packet.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How packets are told apart.
    pub mode: Mode,
    /// Which packets are sent at all.
    pub selection: Option<Selection>,
    /// Let what matches be secondary instead (`Cidr` and `Mac`; see [`classify`] for `Regex`).
    pub reverse: bool,
    /// Let what is not IP be primary instead of secondary.
    pub nonip_primary: bool,
    /// Take all IPv6 hosts for one, as tcpprep does in `Auto` mode by mistake (up to 4.6): for caches equal to its own.
    pub one_ipv6_host: bool,
    /// A host is a server that acted as one at least this many times as often as it acted as a client.
    pub ratio: f64,
}

impl Rules {
    /// Rules of this mode, all else as tcpprep has it by default.
    pub fn new(mode: Mode) -> Rules {
        Rules {
            mode,
            selection: None,
            reverse: false,
            nonip_primary: false,
            one_ipv6_host: false,
            ratio: 2.0,
        }
    }
}

/// Why a capture could not be classified.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    /// The capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// There is nothing to classify.
    #[error("{file} holds no packets")]
    NoPackets {
        /// The capture's name.
        file: String,
    },
    /// Headers cannot be read.
    #[error(
        "{file}: packet {packet} is of {link}, whose headers cannot be read: nothing tells which side sent it"
    )]
    UnreadableLink {
        /// The capture.
        file: String,
        /// The packet.
        packet: u64,
        /// Its type.
        link: LinkType,
    },
    /// Ethernet addresses were asked for where there are none.
    #[error("{file}: packet {packet} is of {link}: only Ethernet frames can be told apart by their MAC")]
    NotEthernet {
        /// The capture's name.
        file: String,
        /// Which packet.
        packet: u64,
        /// What it is.
        link: LinkType,
    },
    /// There are more hosts than can be counted.
    #[error("{file} has more than {limit} hosts")]
    TooManyHosts {
        /// The capture's name.
        file: String,
        /// How many there may be.
        limit: u32,
    },
}

/// Finds the way of each packet. `--reverse` has tcpprep put *every* packet of `Regex` mode on the secondary side,
/// which is kept: caches of the two are the same.
///
/// # Errors
/// The capture cannot be read, or its packets cannot be told apart by these rules.
pub fn classify(reader: &mut Reader, rules: &Rules) -> Result<Cache, ClassifyError> {
    let cache = match &rules.mode {
        Mode::Auto(kind) => auto::classify(reader, rules, *kind)?,
        _ => each(reader, rules)?,
    };
    if cache.is_empty() {
        return Err(ClassifyError::NoPackets { file: reader.name().to_owned() });
    }
    Ok(cache)
}

/// The modes that look at one packet at a time.
fn each(reader: &mut Reader, rules: &Rules) -> Result<Cache, ClassifyError> {
    let side = |matches: bool| if matches != rules.reverse { Way::Primary } else { Way::Secondary };
    let mut cache = Cache::new();
    // The text of an address, without a new allocation for each packet.
    let mut text = String::new();
    while let Some(record) = reader.next_record()? {
        if !record.link.is_readable() {
            let (packet, link) = (record.number, record.link);
            return Err(unreadable(reader, packet, link));
        }
        let way = if let Mode::Mac(list) = &rules.mode {
            if record.link != LinkType::ETHERNET {
                let (packet, link) = (record.number, record.link);
                return Err(ClassifyError::NotEthernet { file: reader.name().to_owned(), packet, link });
            }
            match rules.numbers(&record) {
                true => side(source_mac(record.data).is_some_and(|mac| list.contains(&mac))),
                false => Way::Skip,
            }
        } else {
            match rules.look(&record) {
                Looked::Decided(way) => way,
                Looked::Ip(packet) => match &rules.mode {
                    Mode::Cidr(nets) => side(nets.contain(packet.source)),
                    Mode::Port(services) => by_port(services, &packet, rules.nonip()),
                    Mode::Regex(pattern) => {
                        use std::fmt::Write;
                        text.clear();
                        let _ = write!(text, "{}", packet.source);
                        match pattern.is_match(&text) && !rules.reverse {
                            true => Way::Primary,
                            false => Way::Secondary,
                        }
                    }
                    Mode::Mac(_) | Mode::Auto(_) => Way::Secondary,
                },
            }
        };
        cache.push(way);
    }
    Ok(cache)
}

/// The side of frames whose headers cannot be read is not known.
fn unreadable(reader: &Reader, packet: u64, link: LinkType) -> ClassifyError {
    ClassifyError::UnreadableLink { file: reader.name().to_owned(), packet, link }
}

fn source_mac(frame: &[u8]) -> Option<Mac> {
    // A frame without a whole Ethernet header has no address that could be trusted.
    frame.first_chunk::<14>().map(|head| Mac([head[6], head[7], head[8], head[9], head[10], head[11]]))
}

fn by_port(services: &Services, packet: &Packet, other: Way) -> Way {
    let Some(transport) = packet.transport else { return Way::Secondary };
    let Some(&[_, _, high, low]) = transport.bytes.first_chunk() else { return Way::Secondary };
    let port = u16::from_be_bytes([high, low]);
    let service = match transport.protocol {
        wire::numbers::protocol::TCP => services.tcp(port),
        wire::numbers::protocol::UDP => services.udp(port),
        _ => return other,
    };
    if service { Way::Primary } else { Way::Secondary }
}

/// What the rules say about a packet before its mode is asked.
enum Looked<'a> {
    /// Skipped, or not IP.
    Decided(Way),
    /// To be told apart.
    Ip(Packet<'a>),
}

impl Rules {
    fn nonip(&self) -> Way {
        if self.nonip_primary { Way::Primary } else { Way::Secondary }
    }

    /// Whether the packet's number lets it through.
    #[inline]
    fn numbers(&self, record: &Record) -> bool {
        self.selection.as_ref().is_none_or(|selection| selection.takes_number(record.number))
    }

    #[inline]
    fn look<'a>(&self, record: &Record<'a>) -> Looked<'a> {
        if !self.numbers(record) {
            return Looked::Decided(Way::Skip);
        }
        // What is not IP has no address that could exclude it, and is sent: as tcpprep has it.
        let Some(packet) = Packet::of(record.link, record.data) else {
            return Looked::Decided(self.nonip());
        };
        match &self.selection {
            Some(selection) if !selection.takes_addresses(packet.source, packet.destination) => {
                Looked::Decided(Way::Skip)
            }
            _ => Looked::Ip(packet),
        }
    }
}

const ESP: u8 = 50;

/// What the modes look at of an IP packet.
#[derive(Clone, Copy)]
struct Packet<'a> {
    source: IpAddr,
    destination: IpAddr,
    transport: Option<Transport<'a>>,
}

#[derive(Clone, Copy)]
struct Transport<'a> {
    protocol: u8,
    /// To the end of the frame, padding and all.
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// The IP packet of a frame. PPPoE counts as something else: the tcpreplay suite does not know it.
    #[inline]
    fn of(link: LinkType, frame: &'a [u8]) -> Option<Packet<'a>> {
        let layers = Layers::parse(link, frame);
        let packet = frame.get(layers.l3_offset..)?;
        match layers.l3 {
            L3::V4 if !layers.pppoe => {
                let header = packet.first_chunk::<20>()?;
                let address = |at: usize| {
                    let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
                    IpAddr::V4(Ipv4Addr::from(bytes))
                };
                // Of later fragments, too: tcpprep takes what they carry for a transport header, and a cache made
                // here should be the same.
                let bytes = packet.get(usize::from(header[0] & 0x0f) * 4..);
                Some(Packet {
                    source: address(12),
                    destination: address(16),
                    transport: bytes.map(|bytes| Transport { protocol: header[9], bytes }),
                })
            }
            L3::V6 if !layers.pppoe => Packet::v6(packet.first_chunk()?, &layers, frame),
            _ => None,
        }
    }

    fn v6(header: &[u8; 40], layers: &Layers, frame: &'a [u8]) -> Option<Packet<'a>> {
        let address = |at: usize| {
            let bytes = header.get(at..)?.first_chunk::<16>()?;
            Some(IpAddr::V6(Ipv6Addr::from(*bytes)))
        };
        let transport = match (layers.fragment, layers.ip_protocol, layers.l4_offset) {
            // What is encrypted hides its transport.
            (_, Some(ESP), _) => None,
            (Fragment::Whole, Some(protocol), Some(at)) => {
                frame.get(at..).map(|bytes| Transport { protocol, bytes })
            }
            _ => None,
        };
        Some(Packet { source: address(8)?, destination: address(24)?, transport })
    }
}

#[cfg(test)]
mod tests;
