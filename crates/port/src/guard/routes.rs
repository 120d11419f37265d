//! Which interfaces routes lead to: those that carry the default, and the one that packets to an address leave by.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::netlink::{Attributes, DUMP, Message, NetlinkError, REQUEST, Socket, read_u16, read_u32};

/// Sizes of the fixed structs in front of attributes (`linux/rtnetlink.h`, `linux/nexthop.h`).
const RTMSG: usize = 12;
const RTNEXTHOP: usize = 8;
const NHMSG: usize = 8;

const RTA_NH_ID: u16 = 30;
const RTM_GETNEXTHOP: u16 = 106;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;

/// An interface with routes to so large a part of the world's addresses carries the default, however it is written.
const LARGE_PART: f64 = 1.0 / 8.0;

/// Interfaces that carry the default, in any table.
pub(super) fn defaults(socket: &mut Socket) -> Result<BTreeSet<u32>, NetlinkError> {
    let routes = socket.request(Message::new(libc::RTM_GETROUTE, DUMP).fixed(&[0; RTMSG]))?;
    let with_objects = routes.iter().any(|route| Attributes::after(route, RTMSG).u32(RTA_NH_ID).is_some());
    let hops = match with_objects {
        true => socket.request(Message::new(RTM_GETNEXTHOP, DUMP).fixed(&[0; NHMSG]))?,
        false => Vec::new(),
    };
    Ok(carriers(&routes, &nexthops(&hops)))
}

/// The interfaces of each nexthop object, groups among them.
pub(super) fn nexthops(messages: &[Vec<u8>]) -> BTreeMap<u32, Vec<u32>> {
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut found = BTreeMap::new();
    for message in messages {
        let attributes = Attributes::after(message, NHMSG);
        let Some(id) = attributes.u32(NHA_ID) else { continue };
        if let Some(group) = attributes.get(NHA_GROUP) {
            // struct nexthop_grp: u32 id, u8 weight, padding to eight bytes.
            groups.push((id, group.chunks(8).filter_map(|entry| read_u32(entry, 0)).collect()));
        }
        found.insert(id, attributes.u32(NHA_OIF).into_iter().collect::<Vec<u32>>());
    }
    // A group has no groups but in resilient ones' buckets, which name objects as well.
    for (id, members) in groups {
        let of: Vec<u32> = members.iter().filter_map(|member| found.get(member)).flatten().copied().collect();
        found.insert(id, of);
    }
    found
}

/// The interfaces with routes to a large part of the world.
pub(super) fn carriers(routes: &[Vec<u8>], hops: &BTreeMap<u32, Vec<u32>>) -> BTreeSet<u32> {
    let mut prefixes: BTreeMap<u32, BTreeSet<(u8, u8, Vec<u8>)>> = BTreeMap::new();
    for route in routes {
        // struct rtmsg: family, length of the destination's prefix, ..., in the eighth byte the type.
        let (Some(&family), Some(&length)) = (route.first(), route.get(1)) else { continue };
        if route.get(7) != Some(&libc::RTN_UNICAST) {
            continue;
        }
        let destination = Attributes::after(route, RTMSG).get(libc::RTA_DST).unwrap_or_default().to_vec();
        for index in out_interfaces(route, hops) {
            prefixes.entry(index).or_default().insert((family, length, destination.clone()));
        }
    }
    let large = |prefixes: &BTreeSet<(u8, u8, Vec<u8>)>, family: i32| {
        let parts = prefixes.iter().filter(|(of, ..)| i32::from(*of) == family);
        parts.map(|(_, length, destination)| part(family, *length, destination)).sum::<f64>() >= LARGE_PART
    };
    let carries = |prefixes: &BTreeSet<_>| large(prefixes, libc::AF_INET) || large(prefixes, libc::AF_INET6);
    prefixes.iter().filter(|(_, prefixes)| carries(prefixes)).map(|(index, _)| *index).collect()
}

/// How large a part of the world's addresses a prefix has: of IPv6 those that are given out (2000::/3, RFC 4291), of IPv4
/// all but groups.
fn part(family: i32, length: u8, destination: &[u8]) -> f64 {
    let first = destination.first().copied().unwrap_or(0);
    let size = |bits: u8| 0.5_f64.powi(bits.into());
    match length {
        0 | 1 => 1.0,
        _ if family == libc::AF_INET6 && length < 3 => f64::from(u8::from(first >> 6 == 0)),
        _ if family == libc::AF_INET6 => {
            if first >> 5 == 1 {
                size(length - 3)
            } else {
                0.0
            }
        }
        _ => {
            if first >> 5 == 7 && length >= 3 {
                0.0
            } else {
                size(length)
            }
        }
    }
}

/// Where a route leads: to one interface, or to several, or to what nexthop objects say.
fn out_interfaces(route: &[u8], objects: &BTreeMap<u32, Vec<u32>>) -> Vec<u32> {
    let attributes = Attributes::after(route, RTMSG);
    let mut found: Vec<u32> = attributes.u32(libc::RTA_OIF).into_iter().collect();
    let mut hops = attributes.get(libc::RTA_MULTIPATH).unwrap_or_default();
    // struct rtnexthop: u16 length, u8 flags, u8 weight, u32 interface.
    while let (Some(length), Some(index)) = (read_u16(hops, 0), read_u32(hops, 4)) {
        found.push(index);
        hops = hops.get(usize::from(length).next_multiple_of(4).max(RTNEXTHOP)..).unwrap_or_default();
    }
    found.extend(attributes.u32(RTA_NH_ID).and_then(|id| objects.get(&id)).into_iter().flatten());
    found
}

/// The interface that packets to `address` leave by, if there is a way.
pub(super) fn route_to(socket: &mut Socket, address: IpAddr) -> Vec<u32> {
    let (family, bytes) = family_and_bytes(address);
    let mut ask = [0; RTMSG];
    ask[0] = family;
    ask[1] = bytes.len() as u8 * 8;
    let routes =
        socket.request(Message::new(libc::RTM_GETROUTE, REQUEST).fixed(&ask).attr(libc::RTA_DST, &bytes));
    routes.iter().flatten().flat_map(|route| out_interfaces(route, &BTreeMap::new())).collect()
}

/// The interfaces that have `address`.
pub(super) fn owners(socket: &mut Socket, address: IpAddr) -> Result<BTreeSet<u32>, NetlinkError> {
    let address = address.to_canonical();
    let owned = crate::local::owned(socket)?.into_iter();
    Ok(owned.filter(|(_, own)| *own == address).map(|(index, _)| index).collect())
}

fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address.to_canonical() {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + payload.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn route(text: &str, way: Vec<u8>) -> Vec<u8> {
        let (address, length) = text.split_once('/').unwrap();
        let (family, bytes) = family_and_bytes(address.parse().unwrap());
        let length: u8 = length.parse().unwrap();
        let mut route = vec![family, length, 0, 0, 254, 3, 0, libc::RTN_UNICAST, 0, 0, 0, 0];
        if length > 0 {
            route.extend(attribute(libc::RTA_DST, &bytes));
        }
        route.extend(way);
        route
    }

    #[test]
    fn a_default_is_known_however_it_is_written() {
        let by = |index: u32| attribute(libc::RTA_OIF, &index.to_ne_bytes());
        for (routes, carries) in [
            (&["0.0.0.0/0"][..], true),
            (&["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/2"], true),
            (&["64.0.0.0/2"], true),
            (&["1.0.0.0/8", "2.0.0.0/7", "4.0.0.0/6", "8.0.0.0/5", "16.0.0.0/4", "32.0.0.0/7"], true),
            (&["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/4"], false),
            (&["2000::/3"], true),
            (&["2000::/4", "3000::/4"], true),
            (&["::/0"], true),
            (&["fc00::/7", "fe80::/10", "2001:db8::/32"], false),
        ] {
            let routes: Vec<_> = routes.iter().map(|text| route(text, by(3))).collect();
            assert_eq!(carriers(&routes, &BTreeMap::new()).contains(&3), carries, "{routes:?}");
        }
        // The same prefix in many tables is one.
        let routes: Vec<_> = (0..99).map(|_| route("10.0.0.0/8", by(3))).collect();
        assert!(carriers(&routes, &BTreeMap::new()).is_empty());
    }

    #[test]
    fn nexthop_objects_and_their_groups_are_followed() {
        let number = |kind, value: u32| attribute(kind, &value.to_ne_bytes());
        let object = |id, rest: Vec<u8>| [vec![0; NHMSG], number(NHA_ID, id), rest].concat();
        let group: Vec<u8> = [1u32, 0, 2, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let objects = [
            object(9, attribute(NHA_GROUP, &group)),
            object(1, number(NHA_OIF, 4)),
            object(2, number(NHA_OIF, 5)),
        ];
        let objects = nexthops(&objects);
        let by = |id| carriers(&[route("0.0.0.0/0", number(RTA_NH_ID, id))], &objects);
        assert_eq!((by(1), by(9), by(7)), ([4].into(), [4, 5].into(), [].into()));
    }
}
