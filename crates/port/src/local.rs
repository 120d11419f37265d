//! A prefix that is this host's own for a while: a route of the local table (`ip route add local PREFIX dev DEV`), so that sockets may
//! be bound to any address of it and what comes for them is taken in. For `clone`.
//!
//! The route leads to an interface of this process's own: the kernel takes both back when the process ends, by SIGKILL as well.

use crate::netlink::{Attributes, CREATE, DUMP, Message, NetlinkError, REQUEST, Socket, read_u32};
use crate::tun::Tun;
use rustix::io::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Of who made the route, for whoever looks at it (`ip route show table local`, proto 110): no routing daemon's.
const PROTOCOL: u8 = 110;
/// The interface; the kernel chooses the number.
const NAME: &str = "netdyno%d";

/// struct ifaddrmsg.
const IFADDRMSG: usize = 8;

/// The addresses of all interfaces of the calling thread's network namespace.
///
/// # Errors
/// That the kernel does not answer.
pub fn addresses() -> Result<Vec<IpAddr>, NetlinkError> {
    Ok(owned(&mut Socket::route()?)?.into_iter().map(|(_, address)| address).collect())
}

/// The same, with the index of the interface that has each.
///
/// # Errors
/// That the kernel does not answer.
pub fn owners() -> Result<Vec<(u32, IpAddr)>, NetlinkError> {
    owned(&mut Socket::route()?)
}

/// The same of the socket's namespace.
pub(crate) fn owned(socket: &mut Socket) -> Result<Vec<(u32, IpAddr)>, NetlinkError> {
    let messages = socket.request(Message::new(libc::RTM_GETADDR, DUMP).fixed(&[0; IFADDRMSG]))?;
    let owned = |message: &Vec<u8>| {
        let attributes = Attributes::after(message, IFADDRMSG);
        // Where there is a peer, IFA_ADDRESS is the peer's; IPv6 addresses come without IFA_LOCAL unless there is one.
        let bytes = attributes.get(libc::IFA_LOCAL).or(attributes.get(libc::IFA_ADDRESS))?;
        let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
        let address =
            v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes))));
        Some((read_u32(message, 4)?, address.ok()?))
    };
    Ok(messages.iter().filter_map(owned).collect())
}

/// The networks that the interface with this index is in, by its addresses: whatever is in one is reached over the link itself. Each is an
/// address of it and the length of its prefix.
///
/// # Errors
/// That the kernel does not answer.
pub fn networks(index: u32) -> Result<Vec<(IpAddr, u8)>, NetlinkError> {
    let mut socket = Socket::route()?;
    let messages = socket.request(Message::new(libc::RTM_GETADDR, DUMP).fixed(&[0; IFADDRMSG]))?;
    let network = |message: &Vec<u8>| {
        // Where there is a peer, the network is the peer's.
        let bytes = Attributes::after(message, IFADDRMSG).get(libc::IFA_ADDRESS)?;
        let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
        let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()?;
        (read_u32(message, 4)? == index).then_some((address, *message.get(1)?))
    };
    Ok(messages.iter().filter_map(network).collect())
}

/// What of this host leads into a prefix, in a sentence's middle: a route to a part of it or all, a gateway, or a connection with an address
/// of it, in the calling thread's network namespace. A route to more than the prefix, such as a default route, does not count, and neither do
/// routes of the table local.
///
/// # Errors
/// That the kernel does not answer.
pub fn used(first: IpAddr, bits: u8) -> Result<Option<String>, NetlinkError> {
    // struct rtmsg: family, lengths of the prefixes, TOS, table, and others; then flags.
    const RTMSG: usize = 12;
    let inside = |address: IpAddr| within(address, first, bits);
    let (family, full) = if first.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
    let mut ask = [0; RTMSG];
    if let Some(place) = ask.first_mut() {
        *place = family as u8;
    }
    let routes = Socket::route()?.request(Message::new(libc::RTM_GETROUTE, DUMP).fixed(&ask))?;
    for route in &routes {
        let (Some(&length), Some(&table)) = (route.get(1), route.get(4)) else { continue };
        if table == libc::RT_TABLE_LOCAL {
            continue;
        }
        let attributes = Attributes::after(route, RTMSG);
        let of = |kind: u16| address(attributes.get(kind)?);
        if let Some(to) = of(libc::RTA_DST).filter(|to| length >= bits && inside(*to)) {
            let what = if length == full { to.to_string() } else { format!("{to}/{length}") };
            return Ok(Some(format!("this host has a route to {what}")));
        }
        if let Some(gateway) = of(libc::RTA_GATEWAY).filter(|gateway| inside(*gateway)) {
            return Ok(Some(format!("{gateway} is a gateway of its routes")));
        }
    }
    let peer = peers().into_iter().find(|peer| inside(*peer));
    Ok(peer.map(|peer| format!("this host has a TCP connection with {peer}")))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match <[u8; 4]>::try_from(bytes) {
        Ok(bytes) => Some(IpAddr::from(bytes)),
        Err(_) => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    }
}

/// Is the address one of those that share their first `bits` bits with `first`?
pub fn within(address: IpAddr, first: IpAddr, bits: u8) -> bool {
    match (address, first) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(32u32.saturating_sub(bits.into())).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(128u32.saturating_sub(bits.into())).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The far ends of established TCP connections.
fn peers() -> Vec<IpAddr> {
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        // TCP_ESTABLISHED is 01. Addresses are words of 32 bits in hexadecimal, as the host has them.
        let lines = text.lines().skip(1).map(|line| line.split_whitespace());
        for mut fields in lines {
            let (end, state) = (fields.nth(2), fields.next());
            let Some((hex, _)) = end.filter(|_| state == Some("01")).and_then(|end| end.rsplit_once(':'))
            else {
                continue;
            };
            let words = hex.as_bytes().chunks(8).filter_map(|word| std::str::from_utf8(word).ok());
            let words = words.filter_map(|word| u32::from_str_radix(word, 16).ok());
            let bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
            found.extend(address(&bytes).map(|peer| peer.to_canonical()));
        }
    }
    found
}

/// The route, taken back when this is dropped.
#[derive(Debug)]
pub struct LocalPrefix {
    /// Where it leads to `lo`, because the kernel has no `tun`: how to take it back. After a SIGKILL it stays.
    message: Option<Message>,
    _own: Option<Tun>,
}

impl LocalPrefix {
    /// Makes a prefix local, in the calling thread's network namespace. One that is there already stays, now and afterwards.
    ///
    /// # Errors
    /// That it is not permitted, or, where the kernel has no `tun`, that the loopback is down.
    pub fn add(first: IpAddr, bits: u8) -> Result<LocalPrefix, NetlinkError> {
        let mut socket = Socket::route()?;
        let own = Tun::make(NAME).ok().and_then(|own| {
            let index = crate::interface::Interface::by_name(own.name()).ok()?.index;
            let up = libc::IFF_UP as u32;
            socket.request(Message::new(libc::RTM_NEWLINK, REQUEST).link(index, up, up)).ok()?;
            Some((own, index))
        });
        let loopback = || crate::interface::Interface::by_name("lo").map_or(1, |interface| interface.index);
        let index = own.as_ref().map_or_else(loopback, |(_, index)| *index);
        let (family, address) = match first {
            IpAddr::V4(first) => (libc::AF_INET, first.octets().to_vec()),
            IpAddr::V6(first) => (libc::AF_INET6, first.octets().to_vec()),
        };
        // struct rtmsg: family, lengths of the prefixes, TOS, table, who made it, scope, type; then flags.
        let fixed = [
            family as u8,
            bits,
            0,
            0,
            libc::RT_TABLE_LOCAL,
            PROTOCOL,
            libc::RT_SCOPE_HOST,
            libc::RTN_LOCAL,
            0,
            0,
            0,
            0,
        ];
        let message = |kind: u16, flags: u16| {
            let message = Message::new(kind, flags).fixed(&fixed).attr(libc::RTA_DST, &address);
            message.attr_u32(libc::RTA_OIF, index)
        };
        match socket.request(message(libc::RTM_NEWROUTE, CREATE)) {
            Ok(_) => {
                let message = own.is_none().then(|| message(libc::RTM_DELROUTE, REQUEST));
                Ok(LocalPrefix { message, _own: own.map(|(own, _)| own) })
            }
            Err(error) if error.errno() == Some(Errno::EXIST) => {
                Ok(LocalPrefix { message: None, _own: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Does it go with the process, however that ends?
    pub fn vanishes(&self) -> bool {
        self.message.is_none()
    }
}

impl Drop for LocalPrefix {
    fn drop(&mut self) {
        if let (Some(message), Ok(mut socket)) = (self.message.take(), Socket::route()) {
            // One that is gone already was taken back by somebody else.
            let _ = socket.request(message);
        }
    }
}
