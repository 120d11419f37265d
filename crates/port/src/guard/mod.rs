//! Whether an interface may be loaded: not if this machine or its user depends on it, or on what its frames pass.
//!
//! Two sets of interfaces are compared: those that the default route or the login uses, and those that the interface's
//! own frames leave by. Both go down through whatever is built on something else: VLANs, macvlans, bridges, bonds,
//! tunnels, also from one network namespace into another. What cannot be found out counts as in use.

mod connections;
mod login;
mod routes;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::thread::LinkNameSpaceType;

use crate::interface::{Disruption, Interface, InterfaceError, namespace_id};
use crate::netlink::{Attributes, DUMP, Message, NetlinkError, Socket, read_u32};
use login::login;
use routes::{carriers, nexthops, owners, route_to};
use rustix::io::Errno;

/// Sizes of the fixed structs in front of attributes (`linux/rtnetlink.h`, `linux/neighbour.h`).
const IFINFOMSG: usize = 16;
const NDMSG: usize = 12;

const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;

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

/// What is to be done with an interface of the calling thread's network namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Use<'a> {
    /// The interface that the user has named for this, although it is in use.
    pub yes_disrupt: Option<&'a str>,
    /// What arrives there does not reach this host any more.
    pub takes: bool,
    /// Where it does not reach this host: what would take nothing away, as an imperative for the error.
    pub instead: Option<&'static str>,
    /// The namespace is neither the user's nor this machine's first one. A cable that leads out of it may be loaded although the
    /// namespace's own default route goes through it, because what lies at the cable's other end is looked at by itself; but nothing
    /// is taken from it then.
    pub from_outside: bool,
}

/// Refuses an interface that this machine or its user depends on, unless `yes_disrupt` names it.
///
/// # Errors
/// As [`guard_use`].
pub fn guard(name: &str, yes_disrupt: Option<&str>) -> Result<(), InterfaceError> {
    guard_use(name, Use { yes_disrupt, ..Use::default() })
}

/// Refuses an interface that this machine or its user depends on, and, where frames would be taken from this host, one that
/// carries connections of its programs, unless it was named.
///
/// # Errors
/// That the interface is in use and was not named, that there is none of this name, or that the kernel does not say
/// what it is for: who cannot tell does not load it.
pub fn guard_use(name: &str, how: Use<'_>) -> Result<(), InterfaceError> {
    let interface = Interface::by_name(name)?;
    let failed = |source| InterfaceError::Netlink { name: name.to_owned(), source };
    let start = Start { links: vec![interface.index], ..Start::default() };
    let allowed = how.yes_disrupt == Some(name);
    match of(&start, MOST_LEVELS, how.from_outside && !how.takes).map_err(failed)? {
        Some(why) if !allowed => return Err(InterfaceError::Protected { name: name.to_owned(), why }),
        _ => {}
    }
    match how.takes {
        true if !allowed => match needed(&interface).map_err(failed)? {
            Some(why) => Err(InterfaceError::Needed { name: name.to_owned(), why, instead: how.instead }),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Who needs what arrives at the interface, if anybody does.
fn needed(interface: &Interface) -> Result<Option<Disruption>, NetlinkError> {
    if interface.loopback {
        return Ok(Some(Disruption::Loopback));
    }
    let mut world = World::look()?;
    let owned = crate::local::owned(&mut world.socket)?;
    let with_addresses: BTreeSet<u32> = owned.iter().map(|(index, _)| *index).collect();
    // By a VLAN on it, by a bridge that it is a port of.
    let come_by = |index: &u32| world.down([*index].into()).contains(&interface.index);
    let ours: BTreeSet<u32> = with_addresses.into_iter().filter(come_by).collect();
    if ours.is_empty() {
        return Ok(None);
    }
    let mut found: Option<(usize, _)> = None;
    for (index, (count, one)) in connections::by_interface(&connections::established(), &owned) {
        if ours.contains(&index) {
            found.get_or_insert((0, one)).0 += count;
        }
    }
    Ok(found.map(|(count, one)| Disruption::Connections { count, one }))
}

/// What loading the interface would disrupt. What lies below an interface in use (a bridge's ports, a VLAN's
/// parent) is in use, too, and so is what stands beside it on the same.
///
/// # Errors
/// That there is no such interface, or the kernel does not say what it is for.
pub fn disruption(name: &str) -> Result<Option<Disruption>, InterfaceError> {
    let index = Interface::by_name(name)?.index;
    let start = Start { links: vec![index], ..Start::default() };
    of(&start, MOST_LEVELS, false).map_err(|source| InterfaceError::Netlink { name: name.to_owned(), source })
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

/// The same of what is in the calling thread's namespace. `from_outside`: see [`Use`].
fn of(start: &Start, levels: u32, from_outside: bool) -> Result<Option<Disruption>, NetlinkError> {
    let mut world = World::look()?;
    let leads_out = |node: &Node| {
        start.links == [node.index]
            && is_cable(&node.kind)
            && node.elsewhere.is_some()
            && node.master.is_none()
    };
    let is_their_cable = from_outside && world.nodes.iter().any(leads_out);
    let mut first: BTreeSet<u32> = start.links.iter().copied().collect();
    first.extend(start.cable.and_then(|end| switch_behind(&world.nodes, end)));
    for remote in &start.remotes {
        first.extend(route_to(&mut world.socket, *remote));
    }
    if first.is_empty() {
        return Ok(None);
    }
    let touched = world.down(first);
    let defaults = routes::defaults(&mut world.socket)?;
    if !is_their_cable && world.down(defaults).iter().any(|used| touched.contains(used)) {
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
        let found = match seen.map(|file| inside(&file, || of(&lower, levels - 1, false))) {
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
}
