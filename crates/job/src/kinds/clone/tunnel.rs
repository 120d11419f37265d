//! Copies with their clients' own addresses: a network namespace that this process alone holds, whose only way out is a tunnel (VXLAN,
//! RFC 7348) to the target. Whatever goes wrong, a copy's packet can go nowhere else: there is no other interface, and every address
//! but the target's is the namespace's own. At the target a return agent (`steer`) takes the tunnel's packets in and sends the
//! answers back.
//!
//! ```text
//!   namespace: sockets bound to clients' addresses -- table local: the target dev copies, everything else local
//!                                                        |
//!   host:                            UDP port of VXLAN <-'-> target
//! ```
//!
//! Heartbeats go through the tunnel and are sent back by the agent's program in the kernel while the agent renews its lease. When
//! they stop, the clone stops.

use anyhow::{Context, Result, bail};
use lab::Namespace;
use port::interface::Interface;
use port::netlink::{CREATE, Message, NetlinkError, REQUEST, Socket};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
use spec::Cloning;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use steer::{ENGINE_MAC, OWN_MAC};

/// Heartbeats come from nobody's addresses (RFC 2544, RFC 5180), and so does the connection that is tried first.
const TEST: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(198, 18, 0, 1), Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1));
/// The device's name in the namespace.
const NAME: &str = "copies";
/// From one heartbeat to the next.
const BEAT: Duration = Duration::from_millis(100);
/// The target is lost when none came back for so long.
const LOST: Duration = Duration::from_millis(900);
/// Before the start each heartbeat is waited for so long, and so often.
const PATIENCE: Duration = Duration::from_millis(200);
const TRIES: u32 = 8;
/// Connections that are closed have so long to be acknowledged.
const ENDS: Duration = Duration::from_millis(200);
/// Smallest heartbeat, in bytes.
const SMALL: usize = 16;

// linux/rtnetlink.h, linux/if_link.h, linux/neighbour.h.
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const IFF_UP: u32 = 1;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VXLAN_ID: u16 = 1;
const VXLAN_GROUP: u16 = 2;
const VXLAN_LINK: u16 = 3;
const VXLAN_LOCAL: u16 = 4;
const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT: u16 = 15;
const VXLAN_GROUP6: u16 = 16;
const VXLAN_LOCAL6: u16 = 17;
const VXLAN_ZERO_CSUM6_RX: u16 = 20;
const VXLAN_DF: u16 = 29;
const VXLAN_DF_SET: u8 = 1;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;

/// The namespace and what leads out of it. Both go with the process.
#[derive(Debug)]
pub struct Tunnel {
    namespace: Namespace,
    index: u32,
    mtu: u32,
    to: SocketAddr,
    here: IpAddr,
    tunnel: (u16, u32),
    beats: UdpSocket,
    test: Option<IpAddr>,
}

impl Tunnel {
    /// Makes both, in the calling thread's network namespace, as a clone asks for them. Nothing is sent yet.
    pub fn open(args: &Cloning, to: SocketAddr) -> Result<Tunnel> {
        let (port, vni) = (args.tunnel_port.unwrap_or(steer::PORT), args.vni.unwrap_or(steer::VNI));
        let probe = UdpSocket::bind(match to {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        })?;
        probe.connect(to).with_context(|| format!("there is no way to the target {to}"))?;
        let here = probe.local_addr()?.ip();
        let way = port::resolve::way_out(to.ip())?
            .with_context(|| format!("there is no way to the target {to}"))?;
        let link = Interface::by_name(&way)?;
        if link.loopback || here == to.ip() {
            bail!("the target {to} is this host: copies with clients' addresses go to another one");
        }
        let around = if to.is_ipv4() { 50 } else { 70 };
        let least = if to.is_ipv4() { 576 } else { 1280 };
        let mtu = link.mtu.saturating_sub(around);
        if mtu < least {
            bail!("{way} takes packets of {} bytes: the tunnel needs {}", link.mtu, least + around);
        }
        let namespace = Namespace::new().context("a network namespace for copies (run as root)")?;
        create(&namespace, &link, mtu, (here, to.ip()), (port, vni))?;
        let set_up = namespace.run_in(|| -> Result<(u32, UdpSocket)> {
            let index = Interface::by_name(NAME)?.index;
            lead(index, to.ip())?;
            tune();
            Ok((index, heartbeats(to)?))
        })?;
        let (index, beats) = set_up.context("the tunnel's network namespace")?;
        let test = args.test_address;
        if let Some(test) = test.filter(|test| test.is_ipv4() != to.is_ipv4() || *test == to.ip()) {
            bail!(
                "`.test_address` {test} is no client's of {to}: give an address of its family that the target has a route to"
            );
        }
        Ok(Tunnel { namespace, index, mtu, to, here, tunnel: (port, vni), beats, test })
    }

    /// Where copies' sockets are made.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// This host's address, which the agent at the target has to know.
    pub fn here(&self) -> IpAddr {
        self.here
    }

    /// Where the connection that is tried first comes from.
    pub fn test_address(&self) -> SocketAddr {
        let from = self.test.unwrap_or_else(|| test(self.to));
        SocketAddr::new(from, 1024 + (std::process::id() % 60_000) as u16)
    }

    /// Asks whether somebody at the target sends the tunnel's packets back, of any length that may occur.
    pub fn check(&self) -> Result<()> {
        let headers = if self.to.is_ipv4() { 28 } else { 48 };
        let full = (self.mtu - headers) as usize;
        let (mut small, mut whole) = (false, false);
        for number in 0..TRIES {
            for length in [SMALL, full] {
                let _ = send(&self.beats, u64::from(number), length);
            }
            let until = Instant::now() + PATIENCE;
            while Instant::now() < until && !(small && whole) {
                match receive(&self.beats) {
                    Some(SMALL) => small = true,
                    Some(length) => whole |= length == full,
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            if small && whole {
                return Ok(());
            }
        }
        let (port, vni) = self.tunnel;
        if small {
            bail!(
                "the tunnel to the target {} loses packets of {} bytes: the way there takes smaller ones than this host's interface; \
                 nothing was begun; lower the interface's MTU",
                self.to.ip(),
                self.mtu
            );
        }
        bail!(
            "nobody at the target {} answers in the tunnel (UDP port {port}, VNI {vni}): nothing was begun; start the return agent there, \
             `.return_agent`, for the server's port {} and the engine {}; firewalls have to let the tunnel's UDP port pass both ways, and a NIC that gets checksums within a \
             tunnel wrong has to leave them to the kernel (at both ends: ethtool -K IFACE tx off)",
            self.to.ip(),
            self.to.port(),
            self.here
        )
    }

    /// From now on heartbeats are sent, until the watch is dropped.
    pub fn watch(&self) -> Result<Watch> {
        let (lost, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let beats = self.beats.try_clone()?;
        let (said, ended) = (lost.clone(), over.clone());
        let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            let (mut heard, mut number) = (Instant::now(), 0u64);
            while !ended.load(Relaxed) {
                number += 1;
                // What cannot be sent does not come back.
                let _ = send(&beats, number, SMALL);
                std::thread::sleep(BEAT);
                while receive(&beats).is_some() {
                    heard = Instant::now();
                }
                if heard.elapsed() > LOST {
                    said.store(true, Relaxed);
                }
            }
        })?;
        Ok(Watch { lost, over, thread: Some(thread) })
    }
}

impl Drop for Tunnel {
    /// Connections that are closing would keep the namespace, and with it the device and its UDP port, for a while.
    fn drop(&mut self) {
        let index = self.index;
        // The ends of connections are on their way.
        std::thread::sleep(ENDS);
        let _ = self.namespace.run_in(|| {
            let gone = Message::new(RTM_DELLINK, REQUEST).link(index, 0, 0);
            let _ = Socket::route().and_then(|mut socket| socket.request(gone));
        });
    }
}

/// Heartbeats.
#[derive(Debug)]
pub struct Watch {
    lost: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// They come back no more.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn test(to: SocketAddr) -> IpAddr {
    if to.is_ipv4() { TEST.0.into() } else { TEST.1.into() }
}

fn heartbeats(to: SocketAddr) -> Result<UdpSocket> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::DGRAM, None)?;
    match to {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true)?,
    }
    bind(&socket, &SocketAddr::new(test(to), 0)).context("binding the heartbeats' socket")?;
    connect(&socket, &SocketAddr::new(to.ip(), 9)).context("connecting the heartbeats' socket")?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn send(beats: &UdpSocket, number: u64, length: usize) -> std::io::Result<usize> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(length, 0);
    beats.send(&bytes)
}

/// The length of one that came back.
fn receive(beats: &UdpSocket) -> Option<usize> {
    let mut room = [0; 1 << 16];
    beats.recv(&mut room).ok()
}

/// The tunnel's device, in the namespace; its UDP socket is this thread's namespace's.
fn create(
    namespace: &Namespace,
    link: &Interface,
    mtu: u32,
    (here, to): (IpAddr, IpAddr),
    (port, vni): (u16, u32),
) -> Result<()> {
    let message = Message::new(RTM_NEWLINK, CREATE)
        .link(0, 0, 0)
        .attr_str(IFLA_IFNAME, NAME)
        .attr(IFLA_ADDRESS, &ENGINE_MAC)
        .attr_u32(IFLA_MTU, mtu)
        .attr_u32(IFLA_NET_NS_FD, namespace.as_fd().as_raw_fd() as u32)
        .nest(IFLA_LINKINFO, |info| {
            info.attr_str(IFLA_INFO_KIND, "vxlan").nest(IFLA_INFO_DATA, |data| {
                let data = data
                    .attr_u32(VXLAN_ID, vni)
                    .attr_u32(VXLAN_LINK, link.index)
                    .attr(VXLAN_PORT, &port.to_be_bytes())
                    .attr(VXLAN_LEARNING, &[0])
                    .attr(VXLAN_DF, &[VXLAN_DF_SET]);
                match (here, to) {
                    (IpAddr::V4(here), IpAddr::V4(to)) => {
                        data.attr(VXLAN_LOCAL, &here.octets()).attr(VXLAN_GROUP, &to.octets())
                    }
                    (IpAddr::V6(here), IpAddr::V6(to)) => data
                        .attr(VXLAN_LOCAL6, &here.octets())
                        .attr(VXLAN_GROUP6, &to.octets())
                        .attr(VXLAN_ZERO_CSUM6_RX, &[1]),
                    _ => data,
                }
            })
        });
    match Socket::route()?.request(message) {
        Ok(_) => Ok(()),
        Err(NetlinkError::Refused(Errno::OPNOTSUPP)) => {
            bail!("this kernel has no VXLAN, which copies with clients' addresses go through: modprobe vxlan")
        }
        Err(NetlinkError::Refused(Errno::EXIST)) => bail!(
            "a tunnel with UDP port {port} and VNI {vni} is there already: give another `.vni`, here and at the return agent"
        ),
        Err(NetlinkError::Refused(Errno::ADDRINUSE)) => bail!(
            "another program has the tunnel's UDP port {port}: give another `.tunnel_port`, here and at the return agent"
        ),
        Err(error) => Err(error)
            .with_context(|| format!("the tunnel to {to} by {} cannot be made (run as root)", link.name)),
    }
}

/// Makes the target's address the tunnel's, and every other one the namespace's own.
fn lead(index: u32, to: IpAddr) -> Result<()> {
    let mut socket = Socket::route()?;
    let up = IFF_UP;
    let lo = Interface::by_name("lo")?.index;
    socket.request(Message::new(RTM_NEWLINK, REQUEST).link(lo, up, up)).context("setting lo up")?;
    // Packets of one segment each: what takes them out at the target sees them as they are on the wire.
    let device = Message::new(RTM_NEWLINK, REQUEST).link(index, up, up).attr_u32(IFLA_GSO_MAX_SEGS, 1);
    socket.request(device).context("setting the tunnel up")?;
    let (family, address, bits) = match to {
        IpAddr::V4(to) => (2u8, to.octets().to_vec(), 32u8),
        IpAddr::V6(to) => (10, to.octets().to_vec(), 128),
    };
    // struct rtmsg: family, lengths of the prefixes, TOS, table (local), who made it, scope, type; then flags.
    let route = |bits: u8, scope: u8, kind: u8| {
        Message::new(RTM_NEWROUTE, CREATE).fixed(&[family, bits, 0, 0, 255, 110, scope, kind, 0, 0, 0, 0])
    };
    let (link, host, unicast, local) = (253, 254, 1, 2);
    let to_target = route(bits, link, unicast).attr(RTA_DST, &address).attr_u32(RTA_OIF, index);
    socket.request(to_target).context("the route to the target")?;
    let own = route(0, host, local).attr_u32(RTA_OIF, lo);
    socket.request(own).context("the route of clients' addresses")?;
    // struct ndmsg: family, three bytes of padding, index, state, flags, type.
    let mut neighbour = vec![family, 0, 0, 0];
    neighbour.extend_from_slice(&index.to_ne_bytes());
    neighbour.extend_from_slice(&NUD_PERMANENT.to_ne_bytes());
    neighbour.extend_from_slice(&[0, 0]);
    let neighbour = Message::new(RTM_NEWNEIGH, CREATE)
        .fixed(&neighbour)
        .attr(NDA_DST, &address)
        .attr(NDA_LLADDR, &OWN_MAC);
    socket.request(neighbour).context("the target's Ethernet address in the tunnel")?;
    Ok(())
}

/// Settings of the namespace alone: a client's port may be used again soon, and connections whose process is gone end soon.
fn tune() {
    for (name, value) in [
        ("tcp_tw_reuse", "1"),
        ("tcp_tw_reuse_delay", "10"),
        ("tcp_fin_timeout", "2"),
        ("tcp_orphan_retries", "2"),
        ("ip_nonlocal_bind", "1"),
    ] {
        // Some are newer than the oldest kernels that this is for.
        let _ = std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    }
}
