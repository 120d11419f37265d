//! Which Ethernet address frames to an IP address go to: the next hop's.
//!
//! The kernel is asked first, for the route and for the neighbours it knows; then the link itself, by ARP (RFC 826) or
//! Neighbour Solicitation (RFC 4861), from a packet socket, so that it also works on interfaces without an address.
//! Everything happens in the network namespace of the calling thread. Nothing is written into the kernel's tables.

pub mod message;
mod socket;

use crate::interface::{Interface, InterfaceError};
use crate::netlink::{Attributes, DUMP, Message, NetlinkError, REQUEST, Socket, read_u16, read_u32};
use socket::Link;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Sizes of the fixed structs in front of attributes (`linux/rtnetlink.h`, `linux/neighbour.h`).
const RTMSG: usize = 12;
const NDMSG: usize = 12;
const RTA_VIA: u16 = 18;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_REACHABLE: u16 = 0x02;
const NUD_STALE: u16 = 0x04;
const NUD_DELAY: u16 = 0x08;
const NUD_PROBE: u16 = 0x10;
const NUD_PERMANENT: u16 = 0x80;

/// How often the link is asked, and how long an answer is waited for each time: as much as RFC 4861 (section 10) does.
const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(1);

/// Why no Ethernet address is known.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The interface cannot be asked.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The way there is no Ethernet.
    #[error("{interface} has no Ethernet address, so {address} cannot be looked for behind it")]
    NotEthernet {
        /// Where it leads.
        interface: String,
        /// Whom it leads to.
        address: IpAddr,
    },
    /// It is this host's own address.
    #[error(
        "{address} is an address of this host: frames to it do not leave by {interface}. Give ether(dst=...)"
    )]
    Own {
        /// The interface asked for.
        interface: String,
        /// The address.
        address: IpAddr,
    },
    /// Nobody answered.
    #[error(
        "nobody on {interface} answers for {hop}{} (asked {TRIES} times by {}): give the Ethernet address, \
         ether(dst=...), or check the address and the cable",
        reason(address, hop),
        protocol(hop)
    )]
    NoAnswer {
        /// Where it was asked.
        interface: String,
        /// Whom the frames are for.
        address: IpAddr,
        /// Who was asked for.
        hop: IpAddr,
    },
    /// Asking is not permitted.
    #[error(
        "asking on {interface} for {address} is not permitted: run with sudo, give CAP_NET_RAW, or ether(dst=...)"
    )]
    Permission {
        /// Where it was to be asked.
        interface: String,
        /// Whom the frames are for.
        address: IpAddr,
    },
    /// The system refused to ask.
    #[error("cannot ask on {interface} for {address}: {source}")]
    Io {
        /// Where it was to be asked.
        interface: String,
        /// Whom the frames are for.
        address: IpAddr,
        /// What it says.
        source: io::Error,
    },
    /// The kernel does not tell the way.
    #[error("cannot ask the kernel for the way to {address}: {source}")]
    Netlink {
        /// Whom the frames are for.
        address: IpAddr,
        /// Why.
        source: NetlinkError,
    },
}

fn reason(address: &IpAddr, hop: &IpAddr) -> String {
    if address == hop { String::new() } else { format!(", the next hop to {address}") }
}

fn protocol(hop: &IpAddr) -> &'static str {
    if hop.is_ipv4() { "ARP" } else { "neighbour solicitation" }
}

/// The Ethernet address that frames to `address` must go to when they leave by `interface`. `source` is the address
/// that questions are asked from first; the interface's own and none at all are tried after it.
///
/// # Errors
/// That there is no way to ask by this interface, or that nobody answered.
pub fn neighbour(interface: &str, address: IpAddr, source: Option<IpAddr>) -> Result<Mac, ResolveError> {
    let address = address.to_canonical();
    if let Some(mac) = of_group(address) {
        return Ok(mac);
    }
    let link = Interface::by_name(interface)?;
    let Some(own) = link.mac else {
        return Err(ResolveError::NotEthernet { interface: interface.to_owned(), address });
    };
    let failed = |source| ResolveError::Netlink { address, source };
    let mut kernel = Socket::route().map_err(failed)?;
    let way = way_to(&mut kernel, link.index, address).map_err(failed)?;
    let hop = match way.hop {
        Hop::Own => return Err(ResolveError::Own { interface: interface.to_owned(), address }),
        Hop::Broadcast => return Ok([0xff; 6]),
        Hop::Unicast(hop) => hop,
    };
    let known = known(&mut kernel, link.index, hop).map_err(failed)?;
    if let Some((mac, true)) = known {
        return Ok(mac);
    }
    let sources = sources(hop, [source, way.source]);
    match ask(link.index, own, hop, &sources, TRIES) {
        Ok(Some(mac)) => Ok(mac),
        // What was true a while ago is more likely than nothing.
        Ok(None) => known.map(|(mac, _)| mac).ok_or_else(|| ResolveError::NoAnswer {
            interface: interface.to_owned(),
            address,
            hop,
        }),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(ResolveError::Permission { interface: interface.to_owned(), address })
        }
        Err(source) => Err(ResolveError::Io { interface: interface.to_owned(), address, source }),
    }
}

/// Who has this address on the link of `interface`, if somebody answers a probe for it (RFC 5227, section 2.1.1) within a second: before
/// it is answered for from here. Neither a route nor what the kernel remembers is looked at.
///
/// # Errors
/// That the interface is not there or is no Ethernet, or that it cannot be asked.
pub fn holder(interface: &str, address: IpAddr) -> Result<Option<Mac>, ResolveError> {
    let link = Interface::by_name(interface)?;
    let Some(own) = link.mac else {
        return Err(ResolveError::NotEthernet { interface: interface.to_owned(), address });
    };
    let nobody = sources(address, [None, None]);
    let once = nobody.get(..1).unwrap_or_default();
    ask(link.index, own, address, once, 1).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => {
            ResolveError::Permission { interface: interface.to_owned(), address }
        }
        _ => ResolveError::Io { interface: interface.to_owned(), address, source },
    })
}

/// The first who answers for one of these addresses, all of one family, on the link of `interface`: each is asked for twice within a second
/// altogether, as [`holder`] asks for one.
///
/// # Errors
/// As of [`holder`].
pub fn holder_of_any(interface: &str, addresses: &[IpAddr]) -> Result<Option<(IpAddr, Mac)>, ResolveError> {
    let Some(address) = addresses.first().copied() else { return Ok(None) };
    let link = Interface::by_name(interface)?;
    let Some(own) = link.mac else {
        return Err(ResolveError::NotEthernet { interface: interface.to_owned(), address });
    };
    ask_all(link.index, own, addresses).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => {
            ResolveError::Permission { interface: interface.to_owned(), address }
        }
        _ => ResolveError::Io { interface: interface.to_owned(), address, source },
    })
}

/// Asks for all of them at once, and once more.
fn ask_all(index: u32, own: Mac, addresses: &[IpAddr]) -> io::Result<Option<(IpAddr, Mac)>> {
    let Some(first) = addresses.first() else { return Ok(None) };
    let link = Link::open(index, first.is_ipv4())?;
    let mut buffer = [0u8; 2048];
    for _ in 0..2 {
        let until = Instant::now() + PATIENCE / 2;
        for address in addresses {
            let nobody = sources(*address, [None, None]);
            let question = nobody.first().and_then(|nobody| message::question(own, *nobody, *address));
            question.map_or(Ok(()), |question| link.send(&question))?;
        }
        while let Some(frame) = link.receive(&mut buffer, until)? {
            let holds = |address: &IpAddr| message::answer(frame, *address).map(|mac| (*address, mac));
            if let Some(holder) = addresses.iter().find_map(holds) {
                return Ok(Some(holder));
            }
        }
    }
    Ok(None)
}

/// The address that this host sends from by `interface` to `address`, if it has one for that.
///
/// # Errors
/// That the interface is not there, or the kernel does not answer.
pub fn source(interface: &str, address: IpAddr) -> Result<Option<IpAddr>, ResolveError> {
    let address = address.to_canonical();
    let failed = |source| ResolveError::Netlink { address, source };
    let link = Interface::by_name(interface)?;
    let mut kernel = Socket::route().map_err(failed)?;
    Ok(way_to(&mut kernel, link.index, address).map_err(failed)?.source)
}

/// The interface by which packets to `address` leave this host, if there is a route.
///
/// # Errors
/// That the kernel does not answer.
pub fn way_out(address: IpAddr) -> Result<Option<String>, ResolveError> {
    let address = address.to_canonical();
    let failed = |source| ResolveError::Netlink { address, source };
    let mut kernel = Socket::route().map_err(failed)?;
    let bytes = octets(address);
    let mut ask = [0; RTMSG];
    ask[0] = family(address);
    ask[1] = bytes.len() as u8 * 8;
    let ask = Message::new(libc::RTM_GETROUTE, REQUEST).fixed(&ask).attr(libc::RTA_DST, &bytes);
    let answers = match kernel.request(ask) {
        Ok(answers) => answers,
        // There is none.
        Err(NetlinkError::Refused(_)) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let index = answers.first().and_then(|route| Attributes::after(route, RTMSG).u32(libc::RTA_OIF));
    // Any socket of this namespace will do to ask by.
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let name = |index| rustix::net::netdevice::index_to_name(socket.as_ref().ok()?, index).ok();
    Ok(index.and_then(name))
}

/// Addresses of groups map to Ethernet groups by rule (RFC 1112 section 6.4, RFC 2464 section 7).
fn of_group(address: IpAddr) -> Option<Mac> {
    match address {
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some([0xff; 6]),
        IpAddr::V4(group) if group.is_multicast() => {
            let [_, b, c, d] = group.octets();
            Some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(group) if group.is_multicast() => {
            let [.., a, b, c, d] = group.octets();
            Some([0x33, 0x33, a, b, c, d])
        }
        _ => None,
    }
}

/// Where packets go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hop {
    Unicast(IpAddr),
    Broadcast,
    Own,
}

#[derive(Debug)]
struct Way {
    hop: Hop,
    /// The address that the kernel would send from.
    source: Option<IpAddr>,
}

/// The kernel's route to `address` by the interface. Without one the destination is taken to be on the link.
fn way_to(kernel: &mut Socket, index: u32, address: IpAddr) -> Result<Way, NetlinkError> {
    let bytes = octets(address);
    let mut ask = [0; RTMSG];
    ask[0] = family(address);
    ask[1] = bytes.len() as u8 * 8;
    let ask = Message::new(libc::RTM_GETROUTE, REQUEST)
        .fixed(&ask)
        .attr(libc::RTA_DST, &bytes)
        .attr_u32(libc::RTA_OIF, index);
    let on_link = Way { hop: Hop::Unicast(address), source: None };
    let answers = match kernel.request(ask) {
        Ok(answers) => answers,
        // No route, or an interface that has none.
        Err(NetlinkError::Refused(_)) => return Ok(on_link),
        Err(error) => return Err(error),
    };
    let Some(route) = answers.first() else { return Ok(on_link) };
    let attributes = Attributes::after(route, RTMSG);
    // struct rtmsg: the eighth byte is the type.
    match route.get(7).copied() {
        Some(libc::RTN_LOCAL) => return Ok(Way { hop: Hop::Own, source: None }),
        Some(libc::RTN_BROADCAST) => return Ok(Way { hop: Hop::Broadcast, source: None }),
        Some(libc::RTN_UNICAST) if attributes.u32(libc::RTA_OIF) == Some(index) => {}
        _ => return Ok(on_link),
    }
    let gateway = attributes.get(libc::RTA_GATEWAY).and_then(address_of);
    // struct rtvia: the family, then an address of it.
    let via = attributes.get(RTA_VIA).and_then(|via| address_of(via.get(2..)?));
    Ok(Way {
        hop: Hop::Unicast(gateway.or(via).unwrap_or(address)),
        source: attributes.get(libc::RTA_PREFSRC).and_then(address_of),
    })
}

/// What the kernel knows of the neighbour: its address, and whether that is sure.
fn known(kernel: &mut Socket, index: u32, hop: IpAddr) -> Result<Option<(Mac, bool)>, NetlinkError> {
    // struct ndmsg: family, padding, index, state, flags, type.
    let mut ask = [0; NDMSG];
    ask[0] = family(hop);
    ask[4..8].copy_from_slice(&index.to_ne_bytes());
    let neighbours = kernel.request(Message::new(libc::RTM_GETNEIGH, DUMP).fixed(&ask))?;
    let wanted = octets(hop);
    Ok(neighbours.iter().find_map(|neighbour| {
        let attributes = Attributes::after(neighbour, NDMSG);
        if read_u32(neighbour, 4)? != index || attributes.get(NDA_DST)? != wanted {
            return None;
        }
        let state = read_u16(neighbour, 8)?;
        let mac = attributes.get(NDA_LLADDR)?.try_into().ok()?;
        let sure = state & (NUD_PERMANENT | NUD_REACHABLE) != 0;
        (sure || state & (NUD_STALE | NUD_DELAY | NUD_PROBE) != 0).then_some((mac, sure))
    }))
}

/// The addresses to ask from, best first, without repetition. None at all comes last: it is always answered, and makes
/// a host that is particular about its peers no more so.
fn sources(hop: IpAddr, candidates: [Option<IpAddr>; 2]) -> Vec<IpAddr> {
    let none = match hop {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let mut sources: Vec<IpAddr> = Vec::new();
    for source in candidates.into_iter().flatten().chain([none]) {
        if source.is_ipv4() == hop.is_ipv4() && !source.is_multicast() && !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources
}

/// Asks the link itself.
fn ask(index: u32, own: Mac, hop: IpAddr, sources: &[IpAddr], tries: usize) -> io::Result<Option<Mac>> {
    let link = Link::open(index, hop.is_ipv4())?;
    let mut buffer = [0u8; 2048];
    for attempt in 0..tries {
        let Some(source) = sources.get(attempt).or(sources.last()) else { break };
        let Some(question) = message::question(own, *source, hop) else { break };
        link.send(&question)?;
        let until = Instant::now() + PATIENCE;
        while let Some(frame) = link.receive(&mut buffer, until)? {
            if let Some(mac) = message::answer(frame, hop) {
                return Ok(Some(mac));
            }
        }
    }
    Ok(None)
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn groups_have_their_addresses_by_rule() {
        assert_eq!(of_group(at("224.129.2.3")), Some([0x01, 0x00, 0x5e, 0x01, 0x02, 0x03]));
        assert_eq!(of_group(at("ff02::1:ff00:2")), Some([0x33, 0x33, 0xff, 0, 0, 2]));
        assert_eq!(of_group(at("255.255.255.255")), Some([0xff; 6]));
        assert_eq!((of_group(at("198.18.0.1")), of_group(at("2001:db8::1"))), (None, None));
    }

    #[test]
    fn questions_are_asked_from_the_given_address_first_and_from_none_last() {
        let hop = at("198.18.0.2");
        let given = sources(hop, [Some(at("198.18.0.7")), Some(at("198.18.0.1"))]);
        assert_eq!(given, [at("198.18.0.7"), at("198.18.0.1"), at("0.0.0.0")]);
        // Not from the other family's.
        assert_eq!(sources(hop, [Some(at("2001:db8::1")), None]), [at("0.0.0.0")]);
        assert_eq!(sources(at("2001:db8::2"), [None, None]), [at("::")]);
    }

    #[test]
    fn an_address_of_this_host_has_no_neighbour() {
        let refused = neighbour("lo", at("127.0.0.1"), None).unwrap_err();
        assert!(matches!(refused, ResolveError::Own { .. }), "{refused}");
    }
}
