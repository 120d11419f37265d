//! Whether an interface may be loaded: not if this machine or its user depends on it, or on what its frames pass.
//!
//! Two sets of interfaces are compared: those that the default route or the login uses, and those that the interface's
//! own frames leave by. Both go down through whatever is built on something else: VLANs, macvlans, bridges, bonds,
//! tunnels, also from one network namespace into another. What cannot be found out counts as in use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::thread::LinkNameSpaceType;

use crate::interface::{Disruption, Interface, InterfaceError, namespace_id};
use crate::netlink::{Attributes, DUMP, Message, NetlinkError, REQUEST, Socket, read_u16, read_u32};
use rustix::io::Errno;

/// Sizes of the fixed structs in front of attributes (`linux/rtnetlink.h`, `linux/if_addr.h`, `linux/neighbour.h`,
/// `linux/nexthop.h`).
const IFINFOMSG: usize = 16;
const IFADDRMSG: usize = 8;
const RTMSG: usize = 12;
const RTNEXTHOP: usize = 8;
const NDMSG: usize = 12;
const NHMSG: usize = 8;

const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const RTA_NH_ID: u16 = 30;
const RTM_GETNEXTHOP: u16 = 106;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;

/// Kinds of tunnels, the attribute with the interface that they are built on, and those with where they lead to
/// (linux/if_link.h, linux/if_tunnel.h).
const UNDER_TUNNELS: &[(&[&str], u16, &[u16])] = &[
    (&["vxlan"], 3, &[2, 16]),
    (&["geneve"], 0, &[2, 7]),
    (&["gre", "gretap", "erspan", "ip6gre", "ip6gretap", "ip6erspan"], 1, &[7]),
    (&["ipip", "sit", "ip6tnl"], 1, &[3]),
    (&["vti", "vti6"], 1, &[5]),
    (&["xfrm"], 1, &[]),
];

/// Through so many namespaces an interface may lead down; the kernel allows eight levels (MAX_NEST_DEV).
const MOST_LEVELS: u32 = 8;
/// An interface with routes to so large a part of the world's addresses carries the default, however it is written.
const LARGE_PART: f64 = 1.0 / 8.0;

/// Refuses an interface that this machine or its user depends on, unless `yes_disrupt` names it.
pub fn guard(name: &str, yes_disrupt: Option<&str>) -> Result<(), InterfaceError> {
    match disruption(name)? {
        Some(why) if yes_disrupt != Some(name) => {
            Err(InterfaceError::Protected { name: name.to_owned(), why })
        }
        _ => Ok(()),
    }
}

/// What loading the interface would disrupt. What lies below an interface in use (a bridge's ports, a VLAN's
/// parent) is in use, too, and so is what stands beside it on the same.
pub fn disruption(name: &str) -> Result<Option<Disruption>, InterfaceError> {
    let index = Interface::by_name(name)?.index;
    let start = Start { links: vec![index], ..Start::default() };
    of(&start, MOST_LEVELS).map_err(|source| InterfaceError::Netlink { name: name.to_owned(), source })
}

/// Where frames come into a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Start {
    links: Vec<u32>,
    /// Where a tunnel leads to whose packets are routed here.
    remotes: Vec<IpAddr>,
    /// The other end of a cable, that a bridge may take them from.
    cable: Option<u32>,
}

/// The same of what is in the calling thread's namespace.
fn of(start: &Start, levels: u32) -> Result<Option<Disruption>, NetlinkError> {
    let mut world = World::look()?;
    let mut first: BTreeSet<u32> = start.links.iter().copied().collect();
    first.extend(start.cable.and_then(|end| switch_behind(&world.nodes, end)));
    for remote in &start.remotes {
        first.extend(route_to(&mut world.socket, *remote));
    }
    if first.is_empty() {
        return Ok(None);
    }
    let touched = world.down(first);
    let defaults = world.defaults()?;
    if world.down(defaults).iter().any(|used| touched.contains(used)) {
        return Ok(Some(Disruption::DefaultRoute));
    }
    if let Some((client, server)) = login() {
        let mut used = owners(&mut world.socket, server)?;
        used.extend(route_to(&mut world.socket, client));
        if world.down(used).iter().any(|used| touched.contains(used)) {
            return Ok(Some(Disruption::Login(client)));
        }
    }
    for (lower, namespace) in world.elsewhere(&touched) {
        let seen = namespace.and_then(namespace_of).filter(|_| levels > 0);
        let found = match seen.map(|file| inside(&file, || of(&lower, levels - 1))) {
            Some(Ok(found)) => found,
            Some(Err(error)) if !matches!(error.errno(), Some(Errno::PERM | Errno::ACCESS)) => {
                return Err(error);
            }
            // Containers see no more of a cable than their own end, and may load that; the same for who may not go there.
            _ if lower.cable.is_some() => None,
            _ => Some(Disruption::Hidden),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// What matters here of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    index: u32,
    name: String,
    kind: String,
    master: Option<u32>,
    /// The interface below, or a cable's other end.
    link: Option<u32>,
    /// That one is in another namespace; its number, where it has one.
    elsewhere: Option<Option<u32>>,
    /// A tunnel's own interface, and where it leads to.
    under: Option<u32>,
    remotes: Vec<IpAddr>,
}

/// The interfaces of a namespace.
struct World {
    socket: Socket,
    nodes: Vec<Node>,
}

impl World {
    fn look() -> Result<World, NetlinkError> {
        let mut socket = Socket::route()?;
        let links = socket.request(Message::new(libc::RTM_GETLINK, DUMP).link(0, 0, 0))?;
        Ok(World { socket, nodes: links.iter().filter_map(|link| node(link)).collect() })
    }

    /// `from`, and all that frames through these pass, in this namespace.
    fn down(&mut self, from: BTreeSet<u32>) -> BTreeSet<u32> {
        let (mut found, mut new) = (from.clone(), from);
        while let Some(index) = new.pop_first() {
            let mut next = below(&self.nodes, index);
            next.extend(self.by_tunnel(index));
            new.extend(next.into_iter().filter(|index| found.insert(*index)));
        }
        found
    }

    /// The interfaces that a tunnel's packets leave by.
    fn by_tunnel(&mut self, index: u32) -> Vec<u32> {
        let Some(node) = self.nodes.iter().find(|node| node.index == index).cloned() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        if node.elsewhere.is_none() {
            for remote in self.remotes(&node) {
                found.extend(route_to(&mut self.socket, remote));
            }
        }
        if node.kind == "ppp" {
            let sessions = fs::read_to_string("/proc/thread-self/net/pppoe").unwrap_or_default();
            let devices = pppoe_devices(&sessions);
            found
                .extend(self.nodes.iter().filter(|node| devices.contains(&node.name)).map(|node| node.index));
        }
        found
    }

    /// Interfaces that carry the default, in any table.
    fn defaults(&mut self) -> Result<BTreeSet<u32>, NetlinkError> {
        let routes = self.socket.request(Message::new(libc::RTM_GETROUTE, DUMP).fixed(&[0; RTMSG]))?;
        let with_objects =
            routes.iter().any(|route| Attributes::after(route, RTMSG).u32(RTA_NH_ID).is_some());
        let hops = match with_objects {
            true => self.socket.request(Message::new(RTM_GETNEXTHOP, DUMP).fixed(&[0; NHMSG]))?,
            false => Vec::new(),
        };
        Ok(carriers(&routes, &nexthops(&hops)))
    }

    fn remotes(&mut self, node: &Node) -> Vec<IpAddr> {
        if node.kind == "vxlan" && node.remotes.is_empty() {
            return forwarded_to(&mut self.socket, node.index);
        }
        node.remotes.clone()
    }

    /// What interfaces of `of` are built on in other namespaces, with their numbers.
    fn elsewhere(&mut self, of: &BTreeSet<u32>) -> Vec<(Start, Option<u32>)> {
        let nodes: Vec<Node> = self.nodes.iter().filter(|node| of.contains(&node.index)).cloned().collect();
        let mut found = Vec::new();
        for node in nodes {
            let Some(namespace) = node.elsewhere else { continue };
            let start = if is_tunnel(&node.kind) {
                // Its link may be its own number, which means nothing there; what it is built on it says itself.
                let links = node.under.into_iter().collect();
                Some(Start { links, remotes: self.remotes(&node), ..Start::default() })
            } else if is_cable(&node.kind) {
                // Ports of a bridge are many, and where they lead is not what leads here.
                let end = node.link.filter(|_| node.master.is_none());
                end.map(|end| Start { cable: Some(end), ..Start::default() })
            } else {
                node.link.map(|link| Start { links: vec![link], ..Start::default() })
            };
            found.extend(start.map(|start| (start, namespace)));
        }
        found
    }
}

/// Reads messages of the kernel as each of the kinds that are read here, for the fuzz target.
#[doc(hidden)]
pub fn read_all(messages: &[Vec<u8>]) -> usize {
    let nodes: Vec<Node> = messages.iter().filter_map(|message| node(message)).collect();
    let below: usize = nodes.iter().map(|node| below(&nodes, node.index).len()).sum();
    below + carriers(messages, &nexthops(messages)).len()
}

/// Interfaces whose link is another end and not something below.
fn is_cable(kind: &str) -> bool {
    matches!(kind, "veth" | "netkit" | "vxcan")
}

/// Interfaces whose frames are packets to somewhere.
fn is_tunnel(kind: &str) -> bool {
    UNDER_TUNNELS.iter().any(|(kinds, ..)| kinds.contains(&kind))
}

/// The bridge or the like that takes the frames that come out of this end of a cable. (Into a VRF they are routed.)
fn switch_behind(nodes: &[Node], end: u32) -> Option<u32> {
    let of = |index: u32| nodes.iter().find(|node| node.index == index);
    of(end)?.master.and_then(of).filter(|master| master.kind != "vrf").map(|master| master.index)
}

/// What the frames of an interface pass next.
fn below(nodes: &[Node], index: u32) -> Vec<u32> {
    let of = |index: u32| nodes.iter().find(|node| node.index == index);
    let mut found: Vec<u32> =
        nodes.iter().filter(|node| node.master == Some(index)).map(|node| node.index).collect();
    let Some(node) = of(index) else { return found };
    if node.elsewhere.is_none() {
        match node.link {
            Some(end) if is_cable(&node.kind) => found.extend(switch_behind(nodes, end)),
            link => found.extend(link),
        }
        found.extend(node.under);
    }
    if node.kind == "openvswitch" {
        // Ports of a switch belong to its data path; which of them a bridge has, only the switch knows.
        let on_a_switch =
            |port: &&Node| port.master.and_then(of).is_some_and(|master| master.kind == "openvswitch");
        found.extend(nodes.iter().filter(on_a_switch).map(|port| port.index));
    }
    found
}

fn node(message: &[u8]) -> Option<Node> {
    let index = read_u32(message, 4)?;
    let attributes = Attributes::after(message, IFINFOMSG);
    let info = attributes.nested(libc::IFLA_LINKINFO);
    let (kind, data) = (info.str(IFLA_INFO_KIND).unwrap_or_default(), info.nested(IFLA_INFO_DATA));
    let namespace = attributes.u32(libc::IFLA_LINK_NETNSID);
    let elsewhere =
        attributes.get(libc::IFLA_LINK_NETNSID).map(|_| namespace.filter(|id| *id <= i32::MAX as u32));
    let of_kind = UNDER_TUNNELS.iter().find(|(kinds, ..)| kinds.contains(&kind.as_str()));
    let (link, remotes): (u16, &[u16]) = of_kind.map_or((0, &[]), |(_, link, remotes)| (*link, remotes));
    let under =
        Some(link).filter(|link| *link != 0).and_then(|link| data.u32(link)).filter(|index| *index != 0);
    let remotes = remotes.iter().filter_map(|remote| address(data.get(*remote)?));
    Some(Node {
        index,
        name: attributes.str(libc::IFLA_IFNAME)?,
        master: attributes.u32(libc::IFLA_MASTER),
        link: attributes
            .u32(libc::IFLA_LINK)
            .filter(|link| *link != 0 && (elsewhere.is_some() || *link != index)),
        elsewhere,
        under,
        remotes: remotes.filter(|address| !address.is_unspecified() && !address.is_multicast()).collect(),
        kind,
    })
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk()?))),
        16 => Some(IpAddr::V6(Ipv6Addr::from(*bytes.first_chunk()?))),
        _ => None,
    }
}

/// Where a VXLAN without a single far end sends its frames.
fn forwarded_to(socket: &mut Socket, index: u32) -> Vec<IpAddr> {
    const NDA_DST: u16 = 1;
    let mut ask = [0; NDMSG];
    ask[0] = libc::AF_BRIDGE as u8;
    let entries = socket.request(Message::new(libc::RTM_GETNEIGH, DUMP).fixed(&ask)).unwrap_or_default();
    entries
        .iter()
        .filter(|entry| read_u32(entry, 4) == Some(index))
        .filter_map(|entry| address(Attributes::after(entry, NDMSG).get(NDA_DST)?))
        .filter(|address| !address.is_unspecified() && !address.is_multicast())
        .collect()
}

/// The Ethernet interfaces of PPPoE's sessions (`/proc/net/pppoe`: number, address, device).
fn pppoe_devices(sessions: &str) -> Vec<String> {
    let device = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
    sessions.lines().skip(1).filter_map(device).collect()
}

/// The interfaces of each nexthop object, groups among them.
fn nexthops(messages: &[Vec<u8>]) -> BTreeMap<u32, Vec<u32>> {
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
fn carriers(routes: &[Vec<u8>], hops: &BTreeMap<u32, Vec<u32>>) -> BTreeSet<u32> {
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
fn route_to(socket: &mut Socket, address: IpAddr) -> Vec<u32> {
    let (family, bytes) = family_and_bytes(address);
    let mut ask = [0; RTMSG];
    ask[0] = family;
    ask[1] = bytes.len() as u8 * 8;
    let routes =
        socket.request(Message::new(libc::RTM_GETROUTE, REQUEST).fixed(&ask).attr(libc::RTA_DST, &bytes));
    routes.iter().flatten().flat_map(|route| out_interfaces(route, &BTreeMap::new())).collect()
}

/// The interfaces that have `address`.
fn owners(socket: &mut Socket, address: IpAddr) -> Result<BTreeSet<u32>, NetlinkError> {
    let (_, bytes) = family_and_bytes(address);
    let addresses = socket.request(Message::new(libc::RTM_GETADDR, DUMP).fixed(&[0; IFADDRMSG]))?;
    let is_it = |message: &&Vec<u8>| {
        let attributes = Attributes::after(message, IFADDRMSG);
        // IPv6 addresses come without IFA_LOCAL unless there is a peer.
        attributes.get(libc::IFA_LOCAL).or(attributes.get(libc::IFA_ADDRESS)) == Some(&bytes[..])
    };
    Ok(addresses.iter().filter(is_it).filter_map(|message| read_u32(message, 4)).collect())
}

fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address.to_canonical() {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// The network namespace that has this number in the calling thread's one, if any process, name or descriptor of ours holds
/// it.
fn namespace_of(number: u32) -> Option<File> {
    let of_processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_processes = of_processes
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .map(|entry| entry.path().join("ns/net"));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let ours = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one =
        |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("net:["));
    let held = ours.filter(is_one);
    // Ours first: that is where it most likely is.
    let own = [format!("/proc/{}/ns/net", std::process::id()).into(), PathBuf::from("/proc/1/ns/net")];
    let mut seen = BTreeSet::new();
    own.into_iter().chain(held).chain(named_namespaces(&mounts)).chain(of_processes).find_map(|path| {
        let file = File::open(path).ok()?;
        let data = file.metadata().ok()?;
        if !seen.insert((data.dev(), data.ino())) {
            return None;
        }
        (namespace_id(&file).ok()? == Some(number)).then_some(file)
    })
}

/// Where namespaces have names: mounts of nsfs (proc_pid_mountinfo(5): the mount point is the fifth field, the file system's
/// type the one behind a dash).
fn named_namespaces(mountinfo: &str) -> Vec<PathBuf> {
    let is_one = |line: &&str| line.split_once(" - ").is_some_and(|(_, rest)| rest.starts_with("nsfs "));
    let point = |line: &str| line.split(' ').nth(4).map(PathBuf::from);
    mountinfo.lines().filter(is_one).filter_map(point).collect()
}

/// Runs `work` in a network namespace, in a thread of its own.
fn inside<T: Send>(
    namespace: &File,
    work: impl FnOnce() -> Result<T, NetlinkError> + Send,
) -> Result<T, NetlinkError> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(NetlinkError::Open)?;
            work()
        });
        thread.join().unwrap_or(Err(NetlinkError::Malformed("the look into a namespace did not end")))
    })
}

/// The client's and our own address if the user came by SSH. `sudo` clears the variable that tells, so the
/// environments of the processes above are looked at, too.
fn login() -> Option<(IpAddr, IpAddr)> {
    let own = std::env::var("SSH_CONNECTION").ok();
    own.or_else(|| ancestors().find_map(ssh_connection_of)).and_then(|text| parse_ssh_connection(&text))
}

fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name, in parentheses, and may hold anything; the fourth is the parent.
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 1)
    };
    std::iter::successors(Some(std::process::id()), parent).skip(1)
}

fn ssh_connection_of(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| Some(str::from_utf8(entry).ok()?.strip_prefix("SSH_CONNECTION=")?.to_owned()))
}

/// `CLIENT PORT SERVER PORT`, ssh(1). A link-local address carries its interface: `fe80::1%eth0`.
fn parse_ssh_connection(text: &str) -> Option<(IpAddr, IpAddr)> {
    let mut words = text.split_whitespace();
    let mut address = |nth| words.nth(nth)?.split('%').next()?.parse().ok();
    Some((address(0)?, address(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, kind: &str) -> Node {
        Node { index, name: format!("if{index}"), kind: kind.to_owned(), ..Node::default() }
    }

    fn world(nodes: &[Node]) -> World {
        World { socket: Socket::route().unwrap(), nodes: nodes.to_vec() }
    }

    #[test]
    fn what_lies_below_a_used_interface_is_used() {
        // 4 is a VLAN on the bond 3 with the members 1 and 2; 5 is a veth whose peer is 1 in another namespace, 6 one whose
        // peer is 7 here.
        let nodes = [
            Node { master: Some(3), ..link(1, "") },
            Node { master: Some(3), ..link(2, "") },
            link(3, "bond"),
            Node { link: Some(3), ..link(4, "vlan") },
            Node { link: Some(1), elsewhere: Some(Some(0)), ..link(5, "veth") },
            Node { link: Some(7), ..link(6, "veth") },
            Node { link: Some(6), ..link(7, "veth") },
        ];
        let mut world = world(&nodes);
        assert_eq!(world.down([4].into()), [1, 2, 3, 4].into());
        assert_eq!(world.down([5].into()), [5].into());
        assert_eq!(world.down([6].into()), [6].into());
    }

    #[test]
    fn siblings_meet_on_what_both_are_built_on() {
        // 2 is a VLAN on 1, 3 a macvlan on it; 4 is a macvlan that was moved here from another namespace.
        let nodes = [
            link(1, ""),
            Node { link: Some(1), ..link(2, "vlan") },
            Node { link: Some(1), ..link(3, "macvlan") },
            Node { link: Some(1), elsewhere: Some(Some(5)), ..link(4, "macvlan") },
        ];
        let mut world = world(&nodes);
        assert_eq!(world.down([2].into()), [1, 2].into());
        assert_eq!(world.down([3].into()), [1, 3].into());
        assert_eq!(world.down([4].into()), [4].into());
        let lower = Start { links: vec![1], ..Start::default() };
        assert_eq!(world.elsewhere(&[2, 4].into()), [(lower, Some(5))]);
    }

    #[test]
    fn a_cable_into_a_bridge_passes_the_bridge() {
        // 3 is a bridge with the ports 1 and 5, whose other end is 4; 7 is a VRF, and 6 a cable from it to 8. The other end
        // of 9 is in another namespace, and so is that of 2, which is a port here.
        let nodes = [
            Node { master: Some(3), ..link(1, "") },
            Node { master: Some(3), link: Some(5), elsewhere: Some(Some(0)), ..link(2, "veth") },
            link(3, "bridge"),
            Node { link: Some(5), ..link(4, "veth") },
            Node { link: Some(4), master: Some(3), ..link(5, "veth") },
            Node { link: Some(8), master: Some(7), ..link(6, "veth") },
            link(7, "vrf"),
            Node { link: Some(6), ..link(8, "veth") },
            Node { link: Some(2), elsewhere: Some(Some(1)), ..link(9, "veth") },
        ];
        let mut world = world(&nodes);
        assert_eq!(world.down([4].into()), [1, 2, 3, 4, 5].into());
        assert_eq!(world.down([5].into()), [5].into());
        assert_eq!(world.down([8].into()), [8].into());
        let end = Start { cable: Some(2), ..Start::default() };
        assert_eq!(world.elsewhere(&[2, 4, 9].into()), [(end, Some(1))]);
    }

    #[test]
    fn a_tunnel_that_was_moved_is_looked_after_where_its_packets_are() {
        let remote: IpAddr = "127.0.0.9".parse().unwrap();
        let tunnel = |elsewhere| Node {
            link: Some(7),
            elsewhere,
            under: Some(4),
            remotes: vec![remote],
            ..link(7, "gretap")
        };
        let mut moved = world(&[tunnel(Some(Some(2)))]);
        assert_eq!(moved.down([7].into()), [7].into());
        let start = Start { links: vec![4], remotes: vec![remote], cable: None };
        assert_eq!(moved.elsewhere(&[7].into()), [(start, Some(2))]);
        assert!(world(&[tunnel(None)]).down([7].into()).contains(&4));
    }

    #[test]
    fn a_switchs_bridge_passes_all_its_ports() {
        let nodes = [
            link(1, "openvswitch"),
            Node { master: Some(1), ..link(2, "") },
            Node { master: Some(1), ..link(3, "openvswitch") },
            link(4, ""),
        ];
        assert_eq!(world(&nodes).down([3].into()), [2, 3].into());
    }

    #[test]
    fn named_namespaces_are_known_by_their_mounts() {
        let text = "24 1 0:22 / /run rw - tmpfs tmpfs rw\n99 24 0:4 net:[4026532008] /run/netns/a rw shared:5 - nsfs nsfs rw\n";
        assert_eq!(named_namespaces(text), [PathBuf::from("/run/netns/a")]);
    }

    #[test]
    fn pppoe_names_its_interfaces() {
        let text = "Id       Address              Device\n00000001 02:00:00:00:00:01     eth7\n";
        assert_eq!(pppoe_devices(text), ["eth7"]);
        assert_eq!(pppoe_devices(""), [""; 0]);
    }

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

    #[test]
    fn an_ssh_login_names_both_addresses() {
        let parsed = parse_ssh_connection("192.0.2.7 51234 198.51.100.1 22").unwrap();
        assert_eq!(parsed, ("192.0.2.7".parse().unwrap(), "198.51.100.1".parse().unwrap()));
        let parsed = parse_ssh_connection("fe80::1%eth0 51234 fe80::2%eth0 22").unwrap();
        assert_eq!(parsed.1, "fe80::2".parse::<IpAddr>().unwrap());
        assert_eq!(parse_ssh_connection("garbage"), None);
    }
}
