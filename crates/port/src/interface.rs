//! Interfaces: what one is, and what it counted.
//!
//! Everything is asked over netlink and ethtool, in the network namespace of the calling thread, and nothing
//! from `/sys/class/net`: that shows the namespace in which `/sys` was mounted, which inside a lab is another
//! one. It changes nothing. Callers: the engines and the meter (by name to index, counters), every command
//! that loads an interface, and `doctor`. Whether one may be loaded is [`crate::guard`]'s to say.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use serde::Serialize;

pub use crate::guard::{Use, disruption, guard, guard_use};

use crate::ethtool::Ethtool;
use crate::netlink::{
    Attributes, DUMP, Message, NetlinkError, REQUEST, Socket, read_u16, read_u32, read_u64,
};

/// Sizes of the fixed structs in front of attributes (`linux/rtnetlink.h`, `linux/if_addr.h`, `linux/if_link.h`).
const IFINFOMSG: usize = 16;
const IF_STATS_MSG: usize = 12;

const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_STATS_LINK_64: u16 = 1;
const IFLA_PARENT_DEV_NAME: u16 = 56;
const RTM_GETSTATS: u16 = 94;
/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK`, whose frames start with an Ethernet header, too.
const FRAMED: [u16; 2] = [1, 772];

/// What can go wrong when an interface is looked up.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// There is none of that name.
    #[error("there is no interface '{name}'{}; there are: {}{}", did_you_mean(nearest.as_deref()), known.join(", "), of_a_lab(name, known))]
    Unknown {
        /// The name.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Using it may cut the user off.
    #[error(
        "{name} {why}: loading it could cut this machine off. To do it all the same, add `.yes_disrupt` {name}; \
         to try netdyno without risk, use `netdyno lab`"
    )]
    Protected {
        /// Its name.
        name: String,
        /// What it carries.
        why: Disruption,
    },
    /// What arrives there would be taken from this host, which needs it.
    #[error(
        "{name} {why}: they would be cut off, because what arrives there would be taken from this host. To do it all the same, \
         add `.yes_disrupt` {name}{}", or_rather(*instead)
    )]
    Needed {
        /// Its name.
        name: String,
        /// Who needs it.
        why: Disruption,
        /// What takes nothing away, as an imperative.
        instead: Option<&'static str>,
    },
    /// The kernel does not tell.
    #[error("cannot look at the interface '{name}': {source}")]
    Netlink {
        /// Of which interface.
        name: String,
        /// Why.
        source: NetlinkError,
    },
}

fn or_rather(instead: Option<&str>) -> String {
    instead.map(|instead| format!("; to take nothing away, {instead}")).unwrap_or_default()
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}

/// What to do about a name that interfaces of labs have, for who is in none.
fn of_a_lab(name: &str, known: &[String]) -> String {
    if !is_of_a_lab(name) || known.iter().any(|known| is_of_a_lab(known)) {
        return String::new();
    }
    format!("; {name} exists in a lab only: netdyno lab -- COMMAND, or `.lab` where the command has it")
}

/// tx0, rx1, port2, dut0.
fn is_of_a_lab(name: &str) -> bool {
    let number = ["tx", "rx", "port", "dut"].iter().find_map(|kind| name.strip_prefix(kind));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Where an XDP program sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum XdpMode {
    /// In the driver, before a socket buffer is made.
    Native,
    /// In the stack, after one was made.
    Generic,
    /// In the NIC.
    Offloaded,
    /// Several at the same time.
    Multiple,
}

/// An XDP program attached to an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct XdpAttachment {
    /// How it is attached.
    pub mode: XdpMode,
    /// As in `bpftool prog show id N`; zero with [`XdpMode::Multiple`].
    pub program_id: u32,
}

/// An interface at the moment it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name, in its network namespace.
    pub name: String,
    /// Its number there.
    pub index: u32,
    /// `None` for links without Ethernet addresses.
    pub mac: Option<[u8; 6]>,
    /// Frames on it start with an Ethernet header.
    pub ethernet: bool,
    /// Is it the loopback?
    pub loopback: bool,
    /// The largest packet: the frame without its 14 bytes of Ethernet header.
    pub mtu: u32,
    /// Set up by the administrator.
    pub up: bool,
    /// Up and ready to send: set a moment after carrier is.
    pub running: bool,
    /// The cable, or what stands for it, is in.
    pub carrier: bool,
    /// The kind of a virtual interface (`veth`, `bridge`, ...); `None` for hardware.
    pub kind: Option<String>,
    /// The driver, where it tells its name.
    pub driver: Option<String>,
    /// Where the device sits (`0000:3b:00.0`, `virtio1`); `None` for virtual ones.
    pub device: Option<String>,
    /// Megabits per second, where the driver tells. A veth says 10,000 and means nothing by it.
    pub speed_mbps: Option<u32>,
    /// Transmit queues.
    pub tx_queues: u32,
    /// Receive queues.
    pub rx_queues: u32,
    /// What queues frames before the driver: `mq`, `fq_codel`, ...
    pub queueing_discipline: Option<String>,
    /// The XDP program there, if there is one.
    pub xdp: Option<XdpAttachment>,
    /// The index of what it belongs to: a bridge, a bond.
    pub master: Option<u32>,
    /// The index of the interface below (VLAN) or at the other end (veth).
    pub link: Option<u32>,
    /// `link` counts in another network namespace.
    pub link_elsewhere: bool,
    /// That one's number here (see [`namespace_id`]).
    pub link_namespace: Option<u32>,
    /// What it has counted since it was made.
    pub counters: Counters,
}

impl Interface {
    /// Whether the NIC takes VLAN tags out of frames that it receives, so that XDP programs see them without. Asked here and
    /// now, in the interface's namespace.
    pub fn takes_tags_out(&self) -> bool {
        let asked = || Ethtool::open(&self.name)?.takes_tags_out();
        // A veth says so, too, and takes nothing out.
        self.kind.as_deref() != Some("veth") && asked() == Ok(true)
    }

    /// Looks an interface up; alternative names (`ip link property add altname`) serve as well.
    ///
    /// # Errors
    /// That there is none of this name, or the kernel does not answer.
    pub fn by_name(name: &str) -> Result<Self, InterfaceError> {
        let failed = |source| InterfaceError::Netlink { name: name.to_owned(), source };
        let mut socket = Socket::route().map_err(failed)?;
        let ask = Message::new(libc::RTM_GETLINK, REQUEST).link(0, 0, 0);
        // The kernel finds a longer name under the one attribute, a shorter one of either sort under the other.
        let attribute = if name.len() < libc::IFNAMSIZ { libc::IFLA_IFNAME } else { libc::IFLA_ALT_IFNAME };
        if !name.is_empty() && name.len() < 128 && !name.contains('\0') {
            match socket.request(ask.attr_str(attribute, name)) {
                Ok(answers) => {
                    let link = answers.first().and_then(|answer| parse_link(answer));
                    return link.ok_or_else(|| failed(NetlinkError::Malformed("not a link")));
                }
                Err(error) if error.errno() == Some(Errno::NODEV) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let known: Vec<String> =
            list(&mut socket).map_err(failed)?.into_iter().map(|link| link.name).collect();
        Err(InterfaceError::Unknown { name: name.to_owned(), nearest: nearest(name, &known), known })
    }

    /// All interfaces of this namespace.
    ///
    /// # Errors
    /// That the kernel does not answer.
    pub fn list() -> Result<Vec<Self>, InterfaceError> {
        let failed = |source| InterfaceError::Netlink { name: "all".to_owned(), source };
        list(&mut Socket::route().map_err(failed)?).map_err(failed)
    }

    /// Has it an address that other hosts reach, in the calling thread's network namespace?
    ///
    /// # Errors
    /// What netlink answers.
    pub fn has_address(&self) -> Result<bool, NetlinkError> {
        // struct ifaddrmsg: family, length, flags, scope, then the interface's index.
        let ask = Message::new(libc::RTM_GETADDR, DUMP).fixed(&[0; 8]);
        let all = Socket::route()?.request(ask)?;
        let own = |address: &Vec<u8>| crate::netlink::read_u32(address, 4) == Some(self.index);
        let global = |address: &Vec<u8>| address.get(3) == Some(&libc::RT_SCOPE_UNIVERSE);
        Ok(all.iter().any(|address| own(address) && global(address)))
    }

    /// The longest frame it carries, with the Ethernet header and without FCS.
    pub fn max_frame(&self) -> usize {
        self.mtu as usize + 14
    }
}

fn list(socket: &mut Socket) -> Result<Vec<Interface>, NetlinkError> {
    let links = socket.request(Message::new(libc::RTM_GETLINK, DUMP).link(0, 0, 0))?;
    Ok(links.iter().filter_map(|link| parse_link(link)).collect())
}

fn parse_link(message: &[u8]) -> Option<Interface> {
    let framing = read_u16(message, 2)?;
    let index = read_u32(message, 4)?;
    let flags = read_u32(message, 8)?;
    let is = |flag: i32| flags & flag as u32 != 0;
    let attributes = Attributes::after(message, IFINFOMSG);
    let name = attributes.str(libc::IFLA_IFNAME)?;
    let ethtool = Ethtool::open(&name);
    let ethtool = ethtool.as_ref().ok();
    let elsewhere = attributes.get(libc::IFLA_LINK_NETNSID).is_some();
    let xdp = attributes.nested(IFLA_XDP);
    let mode = match xdp.u8(IFLA_XDP_ATTACHED) {
        Some(1) => Some(XdpMode::Native),
        Some(2) => Some(XdpMode::Generic),
        Some(3) => Some(XdpMode::Offloaded),
        Some(4) => Some(XdpMode::Multiple),
        _ => None,
    };
    Some(Interface {
        index,
        mac: attributes.get(libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()),
        ethernet: FRAMED.contains(&framing),
        loopback: is(libc::IFF_LOOPBACK),
        mtu: attributes.u32(libc::IFLA_MTU)?,
        up: is(libc::IFF_UP),
        running: is(libc::IFF_RUNNING),
        carrier: attributes.u8(libc::IFLA_CARRIER) == Some(1),
        kind: attributes.nested(libc::IFLA_LINKINFO).str(1),
        driver: ethtool
            .and_then(|ethtool| ethtool.driver().ok())
            .map(|driver| driver.name)
            .filter(|name| !name.is_empty()),
        device: attributes.str(IFLA_PARENT_DEV_NAME),
        speed_mbps: ethtool.and_then(|ethtool| ethtool.speed_mbps().ok()).flatten(),
        tx_queues: attributes.u32(libc::IFLA_NUM_TX_QUEUES).unwrap_or(1),
        rx_queues: attributes.u32(libc::IFLA_NUM_RX_QUEUES).unwrap_or(1),
        queueing_discipline: attributes.str(libc::IFLA_QDISC),
        xdp: mode.map(|mode| XdpAttachment { mode, program_id: xdp.u32(IFLA_XDP_PROG_ID).unwrap_or(0) }),
        master: attributes.u32(libc::IFLA_MASTER),
        // The ends of a veth that are in different namespaces often have the same index.
        link: attributes.u32(libc::IFLA_LINK).filter(|link| *link != 0 && (elsewhere || *link != index)),
        link_elsewhere: elsewhere,
        link_namespace: attributes.u32(libc::IFLA_LINK_NETNSID),
        counters: attributes.get(libc::IFLA_STATS64).and_then(Counters::parse).unwrap_or_default(),
        name,
    })
}

/// `linux/net_namespace.h`.
const RTM_GETNSID: u16 = 90;
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// `struct rtgenmsg`, padded.
const RTGENMSG: usize = 4;

/// The number that the calling thread's network namespace has for another one; `None` if it has none, as when they
/// share no cable.
///
/// # Errors
/// That the kernel does not answer.
pub fn namespace_id(other: impl AsFd) -> Result<Option<u32>, NetlinkError> {
    let ask = Message::new(RTM_GETNSID, REQUEST)
        .fixed(&[0; RTGENMSG])
        .attr_u32(NETNSA_FD, other.as_fd().as_raw_fd() as u32);
    let answers = Socket::route()?.request(ask)?;
    let id = answers.first().and_then(|answer| Attributes::after(answer, RTGENMSG).u32(NETNSA_NSID));
    // -1 stands for none.
    Ok(id.filter(|id| *id <= i32::MAX as u32))
}

/// Sets an interface of the calling thread's network namespace up or down.
///
/// # Errors
/// That the kernel does not let it: EPERM, ENODEV.
pub fn set_up(index: u32, up: bool) -> Result<(), NetlinkError> {
    let flag = libc::IFF_UP as u32;
    let set = Message::new(libc::RTM_SETLINK, REQUEST).link(index, if up { flag } else { 0 }, flag);
    Socket::route()?.request(set).map(drop)
}

/// What an interface counted since it exists (`struct rtnl_link_stats64`). Bytes are without FCS; whether frames
/// that XDP took are among them is the driver's choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames that arrived.
    pub rx_packets: u64,
    /// Frames that were transmitted.
    pub tx_packets: u64,
    /// Bytes of the former, as the driver counts them.
    pub rx_bytes: u64,
    /// Bytes of the latter.
    pub tx_bytes: u64,
    /// Frames that arrived damaged.
    pub rx_errors: u64,
    /// Frames that could not be transmitted.
    pub tx_errors: u64,
    /// Frames that arrived and were dropped.
    pub rx_dropped: u64,
    /// Frames that were to be transmitted and were dropped.
    pub tx_dropped: u64,
    /// Dropped because the receive ring was full.
    pub rx_missed: u64,
}

impl Counters {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| read_u64(bytes, at * 8);
        Some(Self {
            rx_packets: word(0)?,
            tx_packets: word(1)?,
            rx_bytes: word(2)?,
            tx_bytes: word(3)?,
            rx_errors: word(4)?,
            tx_errors: word(5)?,
            rx_dropped: word(6)?,
            tx_dropped: word(7)?,
            rx_missed: word(15)?,
        })
    }

    /// What was counted between `earlier` and now. A driver that was reset counts from zero again.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            rx_packets: self.rx_packets.saturating_sub(earlier.rx_packets),
            tx_packets: self.tx_packets.saturating_sub(earlier.tx_packets),
            rx_bytes: self.rx_bytes.saturating_sub(earlier.rx_bytes),
            tx_bytes: self.tx_bytes.saturating_sub(earlier.tx_bytes),
            rx_errors: self.rx_errors.saturating_sub(earlier.rx_errors),
            tx_errors: self.tx_errors.saturating_sub(earlier.tx_errors),
            rx_dropped: self.rx_dropped.saturating_sub(earlier.rx_dropped),
            tx_dropped: self.tx_dropped.saturating_sub(earlier.tx_dropped),
            rx_missed: self.rx_missed.saturating_sub(earlier.rx_missed),
        }
    }
}

/// The names of all that is counted (`struct rtnl_link_stats64`), as `/sys/class/net/IFACE/statistics` has them.
pub const LINK_COUNTERS: [&str; 25] = [
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "multicast",
    "collisions",
    "rx_length_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
    "rx_compressed",
    "tx_compressed",
    "rx_nohandler",
    "rx_otherhost_dropped",
];

/// Reads one interface's counters again and again, for one small message each time.
#[derive(Debug)]
pub struct CounterReader {
    socket: Socket,
    name: String,
    index: u32,
}

impl CounterReader {
    /// Opened in the interface's namespace, it reads from any thread.
    ///
    /// # Errors
    /// That there is none of this name, or the kernel does not answer.
    pub fn open(name: &str) -> Result<Self, InterfaceError> {
        let index = Interface::by_name(name)?.index;
        let socket =
            Socket::route().map_err(|source| InterfaceError::Netlink { name: name.to_owned(), source })?;
        Ok(Self { socket, name: name.to_owned(), index })
    }

    /// Reads them now.
    ///
    /// # Errors
    /// That the interface went away, or the kernel does not answer.
    pub fn read(&mut self) -> Result<Counters, InterfaceError> {
        self.ask(Counters::parse)
    }

    /// All of them, in the order of [`LINK_COUNTERS`]; older kernels have fewer.
    ///
    /// # Errors
    /// That the interface went away, or the kernel does not answer.
    pub fn read_all(&mut self) -> Result<Vec<u64>, InterfaceError> {
        self.ask(|bytes| Some((0..).map_while(|word| read_u64(bytes, word * 8)).collect()))
    }

    fn ask<T>(&mut self, parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<T, InterfaceError> {
        // struct if_stats_msg: family and padding, index, filter: one bit for each attribute from 1 up.
        let mut ask = [0; IF_STATS_MSG];
        ask[4..8].copy_from_slice(&self.index.to_ne_bytes());
        ask[8..12].copy_from_slice(&(1_u32 << (IFLA_STATS_LINK_64 - 1)).to_ne_bytes());
        self.socket
            .request(Message::new(RTM_GETSTATS, REQUEST).fixed(&ask))
            .and_then(|answers| {
                answers
                    .first()
                    .and_then(|answer| Attributes::after(answer, IF_STATS_MSG).get(IFLA_STATS_LINK_64))
                    .and_then(parse)
                    .ok_or(NetlinkError::Malformed("no counters"))
            })
            .map_err(|source| InterfaceError::Netlink { name: self.name.clone(), source })
    }
}

/// What a driver can do with XDP, as it declares since Linux 6.3 (`xdp-features` of
/// `Documentation/netlink/specs/netdev.yaml`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct XdpFeatures {
    /// Native programs, with the verdicts drop, pass, abort and send back.
    pub native: bool,
    /// Frames can be redirected from it.
    pub redirect: bool,
    /// Frames redirected to it are sent: live frames and other interfaces' redirects need this. On veth it says
    /// whether the *peer* would take them now.
    pub transmit: bool,
    /// AF_XDP without copying.
    pub zero_copy: bool,
    /// Programs inside the NIC.
    pub offload: bool,
    /// Frames of several buffers received, and sent.
    pub multi_buffer_receive: bool,
    /// It transmits frames that span several buffers.
    pub multi_buffer_transmit: bool,
    /// Programs can ask for the time stamp that the hardware took of a frame. `None`: the kernel does not say (before
    /// 6.7).
    pub receive_timestamps: Option<bool>,
    /// Programs can ask for the VLAN tag that the hardware took out of a frame (Linux 6.8).
    pub receive_tags: bool,
}

/// What the driver declares; `None` if this kernel cannot be asked (before 6.3).
///
/// # Errors
/// That the interface went away, or the kernel does not answer.
pub fn xdp_features(index: u32) -> Result<Option<XdpFeatures>, NetlinkError> {
    const NETDEV_CMD_DEV_GET: u8 = 1;
    const NETDEV_A_DEV_IFINDEX: u16 = 1;
    const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
    const NETDEV_A_DEV_XDP_RX_METADATA_FEATURES: u16 = 5;
    let mut socket = Socket::generic()?;
    let family = match socket.family("netdev") {
        Err(NetlinkError::NoFamily(_)) => return Ok(None),
        other => other?,
    };
    let ask = Message::generic(family, REQUEST, NETDEV_CMD_DEV_GET).attr_u32(NETDEV_A_DEV_IFINDEX, index);
    let answers = socket.request(ask)?;
    let attribute = |kind| answers.first().and_then(|answer| Attributes::after(answer, 4).u64(kind));
    let metadata = attribute(NETDEV_A_DEV_XDP_RX_METADATA_FEATURES);
    Ok(attribute(NETDEV_A_DEV_XDP_FEATURES).map(|bits| {
        let has = |bit: u32| bits & (1 << bit) != 0;
        XdpFeatures {
            native: has(0),
            redirect: has(1),
            transmit: has(2),
            zero_copy: has(3),
            offload: has(4),
            multi_buffer_receive: has(5),
            multi_buffer_transmit: has(6),
            receive_timestamps: metadata.map(|bits| bits & 1 != 0),
            receive_tags: metadata.is_some_and(|bits| bits & 4 != 0),
        }
    }))
}

/// Why an interface must not be loaded without being told so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disruption {
    /// The way to the rest of the world leads through it.
    DefaultRoute,
    /// The user is logged in from this address, through it.
    Login(IpAddr),
    /// It is built on an interface of another network namespace that cannot be looked at.
    Hidden,
    /// It is the loopback: whatever programs of this host say to each other goes through it.
    Loopback,
    /// Connections of programs of this host go through it.
    Connections {
        /// How many.
        count: usize,
        /// One of them: own and other address.
        one: [SocketAddr; 2],
    },
}

impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefaultRoute => f.write_str("carries the default route"),
            Self::Login(client) => write!(f, "carries your login from {client}"),
            Self::Hidden => {
                f.write_str("is built on an interface of another network namespace that cannot be looked at")
            }
            Self::Loopback => f.write_str("carries the connections between this host's own programs"),
            Self::Connections { count: 1, one: [own, other] } => {
                write!(f, "carries an established TCP connection of this host ({own} with {other})")
            }
            Self::Connections { count, one: [own, other] } => {
                write!(
                    f,
                    "carries {count} established TCP connections of this host ({own} with {other}, ...)"
                )
            }
        }
    }
}

/// The name closest to `name`, if any is close: at most a third of it would have to change.
fn nearest(name: &str, known: &[String]) -> Option<String> {
    let (distance, best) =
        known.iter().map(|candidate| (strsim::levenshtein(name, candidate), candidate)).min()?;
    (distance <= name.chars().count().div_ceil(3)).then(|| best.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_with_its_properties() {
        let lo = Interface::by_name("lo").unwrap();
        assert_eq!((lo.index, lo.loopback, lo.ethernet, lo.mac), (1, true, true, Some([0; 6])));
        assert!(Interface::list().unwrap().iter().any(|link| link.name == "lo"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_all() {
        let error = Interface::by_name("l0").unwrap_err().to_string();
        assert!(error.contains("'l0' (did you mean 'lo'?); there are: lo"), "{error}");
        for name in ["", "a-name-longer-than-the-kernel-takes", "x\0y", &"x".repeat(500)] {
            assert!(matches!(Interface::by_name(name), Err(InterfaceError::Unknown { .. })), "{name:?}");
        }
    }

    #[test]
    fn names_of_a_labs_interfaces_are_told_apart_outside_of_it() {
        let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for name in ["tx0", "rx0", "tx1", "port12", "dut0"] {
            let told = of_a_lab(name, &known(&["lo", "eth0"]));
            assert!(told.starts_with(&format!("; {name} exists in a lab only: netdyno lab -- ")), "{told}");
        }
        assert_eq!(of_a_lab("tx1", &known(&["lo", "tx0"])), "", "in a lab");
        for name in ["eth0", "tx", "txa", "tx0a", "port"] {
            assert_eq!(of_a_lab(name, &known(&["lo"])), "", "{name}");
        }
    }

    #[test]
    fn a_name_is_near_if_a_third_of_its_letters_differ() {
        let near = |name: &str| nearest(name, &["eth0".into(), "lo".into()]);
        assert_eq!(
            (near("etho").as_deref(), near("wth1").as_deref(), near("a1h1")),
            (Some("eth0"), Some("eth0"), None)
        );
        assert_eq!(nearest("wlan7", &["eth0".into(), "lo".into()]), None);
    }
}
