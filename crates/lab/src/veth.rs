//! A cable: creates a veth pair across two namespaces and sets its ends up, over rtnetlink.

use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use port::ethtool::{Ethtool, Offload};
use port::netlink::{CREATE, Message, REQUEST, Socket, read_u32};
use rustix::io::Errno;

use crate::{Host, LabError, Namespace, Options};

const VETH_INFO_PEER: u16 = 1;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const LOOPBACK_INDEX: u32 = 1;
const PREFIX_LENGTH: u8 = 24;

/// One message makes both ends, each where it belongs: the kernel creates the pair or nothing.
pub fn connect(near: &Host, far: &Host, options: &Options) -> Result<(), LabError> {
    let ends = |message: Message, host: &Host| {
        message
            .attr_str(libc::IFLA_IFNAME, host.interface)
            .attr(libc::IFLA_ADDRESS, &host.mac)
            .attr_u32(libc::IFLA_MTU, options.mtu)
            .attr_u32(libc::IFLA_NUM_TX_QUEUES, options.queues)
            .attr_u32(libc::IFLA_NUM_RX_QUEUES, options.queues)
    };
    let far_fd = far.namespace.as_fd().as_raw_fd() as u32;
    let create =
        ends(Message::new(libc::RTM_NEWLINK, CREATE).link(0, 0, 0), near).nest(libc::IFLA_LINKINFO, |info| {
            info.attr_str(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |peer| {
                    ends(peer.link(0, 0, 0), far).attr_u32(libc::IFLA_NET_NS_FD, far_fd)
                })
            })
        });
    let doing = format!(
        "create the veth pair {} - {} (MTU {}, {} queues)",
        near.interface, far.interface, options.mtu, options.queues
    );
    request(&mut route_socket(near)?, create, &doing)
}

/// Keeps an interface from giving itself IPv6 addresses, and asking whether others have them.
pub fn silence(socket: &mut Socket, name: &str) -> Result<(), LabError> {
    let no_addresses = Message::new(libc::RTM_SETLINK, REQUEST)
        .link(0, 0, 0)
        .attr_str(libc::IFLA_IFNAME, name)
        .nest(libc::IFLA_AF_SPEC, |families| {
            families.nest(libc::AF_INET6 as u16, |inet6| {
                inet6.attr(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE])
            })
        });
    match socket.request(no_addresses) {
        Ok(_) => Ok(()),
        // A kernel without IPv6 has nothing to be silenced.
        Err(error) if error.errno() == Some(Errno::AFNOSUPPORT) => Ok(()),
        Err(source) => Err(LabError::Netlink { doing: format!("keep IPv6 silent on {name}"), source }),
    }
}

/// Sets an interface up.
pub fn bring_up(socket: &mut Socket, name: &str) -> Result<(), LabError> {
    let up = libc::IFF_UP as u32;
    let set_up = Message::new(libc::RTM_SETLINK, REQUEST).link(0, up, up).attr_str(libc::IFLA_IFNAME, name);
    request(socket, set_up, &format!("set {name} up"))
}

/// Sets one end up: silent, and with what `options` ask for.
pub fn set_up(host: &Host, peer: &Host, options: &Options) -> Result<(), LabError> {
    let name = host.interface;
    let mut socket = route_socket(host)?;
    silence(&mut socket, name)?;
    let up = libc::IFF_UP as u32;
    let loopback = Message::new(libc::RTM_SETLINK, REQUEST).link(LOOPBACK_INDEX, up, up);
    request(&mut socket, loopback, "set lo up")?;
    bring_up(&mut socket, name)?;
    // Not before: veth renews what it declares about XDP only when GRO changes on an interface that is up.
    if options.gro {
        host.namespace
            .run_in(|| Ethtool::open(name)?.set_offload(Offload::Gro, true))?
            .map_err(LabError::kernel(format!("switch GRO on at {name}")))?;
    }
    if options.addresses {
        set_addresses(&mut socket, index(&host.namespace, name)?, host, peer, PREFIX_LENGTH)?;
    }
    Ok(())
}

/// The end that comes up first gets its carrier when the other does, and the kernel hooks up its queue a moment
/// later, from a work queue. Until then it drops what is sent. `IFF_RUNNING` is set when that is done.
pub fn wait_until_running(host: &Host) -> Result<(), LabError> {
    let name = host.interface;
    let mut socket = route_socket(host)?;
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let link = Message::new(libc::RTM_GETLINK, REQUEST).link(0, 0, 0).attr_str(libc::IFLA_IFNAME, name);
        let answers = socket
            .request(link)
            .map_err(|source| LabError::Netlink { doing: format!("look at {name}"), source })?;
        // struct ifinfomsg: the flags are its third 32-bit word.
        let flags = answers.first().and_then(|answer| read_u32(answer, 8)).unwrap_or(0);
        if flags & libc::IFF_RUNNING as u32 != 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(LabError::kernel(format!("get {name} to run"))(Errno::TIMEDOUT));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The number of an interface that was made here.
pub fn index(namespace: &Namespace, name: &str) -> Result<u32, LabError> {
    namespace.index_of(name)?.ok_or_else(|| LabError::kernel(format!("find {name}"))(Errno::NODEV))
}

/// Gives `host` its address, and the MAC address of `peer`'s.
pub fn set_addresses(
    socket: &mut Socket,
    index: u32,
    host: &Host,
    peer: &Host,
    prefix: u8,
) -> Result<(), LabError> {
    let family = libc::AF_INET as u8;
    // struct ifaddrmsg: family, prefix length, flags, scope, index.
    let mut address = vec![family, prefix, 0, 0];
    address.extend_from_slice(&index.to_ne_bytes());
    let address = Message::new(libc::RTM_NEWADDR, CREATE)
        .fixed(&address)
        .attr(libc::IFA_LOCAL, &host.address.octets())
        .attr(libc::IFA_ADDRESS, &host.address.octets());
    request(socket, address, &format!("give {} the address {}", host.interface, host.address))?;
    // struct ndmsg: family, three bytes of padding, index, state, flags, type.
    let mut neighbour = vec![family, 0, 0, 0];
    neighbour.extend_from_slice(&index.to_ne_bytes());
    neighbour.extend_from_slice(&NUD_PERMANENT.to_ne_bytes());
    neighbour.extend_from_slice(&[0, 0]);
    let neighbour = Message::new(libc::RTM_NEWNEIGH, CREATE)
        .fixed(&neighbour)
        .attr(NDA_DST, &peer.address.octets())
        .attr(NDA_LLADDR, &peer.mac);
    request(socket, neighbour, &format!("tell {} its neighbour's MAC", host.interface))
}

pub fn route_socket(host: &Host) -> Result<Socket, LabError> {
    host.namespace
        .run_in(Socket::route)?
        .map_err(|source| LabError::Netlink { doing: "reach the lab's kernel side".to_owned(), source })
}

pub fn request(socket: &mut Socket, message: Message, doing: &str) -> Result<(), LabError> {
    match socket.request(message) {
        Ok(_) => Ok(()),
        Err(error) if error.errno() == Some(Errno::PERM) => Err(LabError::NotPermitted),
        Err(source) => Err(LabError::Netlink { doing: doing.to_owned(), source }),
    }
}
