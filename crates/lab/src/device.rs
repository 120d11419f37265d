//! The device under test between the hosts: a third namespace in which Linux forwards, with limits that are known.
//!
//! ```text
//!   sender              device                                    receiver
//!   tx0 <-- veth --> dut0 -- bridge br0, or routing -- dut1 <-- veth --> rx0
//!                     | loss, on arrival                |
//!                     | token bucket, on departure      |           (both, each way)
//! ```
//!
//! A search for the highest rate without loss is worth what it finds where the answer is known. The bucket is the
//! kernel's `tbf`, which counts frames without FCS, as all bit rates of netdyno do; [`Bottleneck::overhead`] makes it
//! count more. Lost frames are every so many, not random ones: what a meter says can be held to the frame.

use std::net::Ipv4Addr;
use std::str::FromStr;

use port::netlink::{CREATE, Message, REQUEST, Socket};
use traffic::faults::Share;
use traffic::fraction::gcd;

use crate::nat::{self, Limits};
use crate::veth::{self, request, route_socket};
use crate::{Host, LabError, Namespace, loss};

/// The device's interface towards the sender.
pub const DEVICE_NEAR: &str = "dut0";
/// The device's interface towards the receiver.
pub const DEVICE_FAR: &str = "dut1";
const BRIDGE: &str = "br0";

/// What stands between the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// How it forwards.
    pub kind: Kind,
    /// The most it forwards, each way; without one as much as Linux does.
    pub bottleneck: Option<Bottleneck>,
    /// What it loses, each way.
    pub loss: Option<Loss>,
}

/// How a device forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Frames, by MAC address; to all ports where it has not learnt one.
    Bridge,
    /// The same, but it learns no addresses: whatever comes in at one port goes out of all others.
    Hub,
    /// IPv4 packets, between 198.18.0.0/16 at the sender and 198.19.0.0/16 at the receiver. What is sent to be routed
    /// has the MAC address of [`DEVICE_NEAR`].
    Router,
    /// As the router, and what goes to the receiver has this device's address at [`DEVICE_FAR`] for a source, and a port of its choice.
    Nat(Limits),
    /// Not at all: two interfaces, between which a program of the lab's maker does.
    Program,
}

impl Kind {
    /// It forwards packets between networks, and has an address in each.
    pub fn routes(self) -> bool {
        matches!(self, Kind::Router | Kind::Nat(_))
    }
}

/// A token bucket with a queue before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// Rate at which tokens come.
    pub bits_per_second: u64,
    /// Counted for each frame besides its length without FCS: 24 for what it takes on the wire.
    pub overhead: u16,
    /// Tokens that can be saved, in bytes: no frame may be longer.
    pub burst: u32,
    /// What waits for tokens, in bytes. What does not fit is dropped.
    pub queue: u32,
}

/// Of every `of` frames, the first `frames` are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Lost.
    pub frames: u32,
    /// Of so many.
    pub of: u32,
}

/// `1%`, `0.5%`, `1/1000`.
impl FromStr for Loss {
    type Err = BadLoss;

    fn from_str(text: &str) -> Result<Loss, BadLoss> {
        let share: Share = text.parse().map_err(|_| BadLoss(text.to_owned()))?;
        let (frames, of) = share.parts();
        let common = gcd(frames, of);
        Ok(Loss { frames: frames / common, of: of / common })
    }
}

/// Why a text is no share of frames to lose.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no share of frames to lose: write 1%, 0.5% or 1/1000, more than none and at most all")]
pub struct BadLoss(String);

impl Device {
    /// The sender's and the receiver's address: one network behind a bridge, two behind a router.
    pub(crate) fn addresses(kind: Option<Kind>) -> [Ipv4Addr; 2] {
        let network = if kind.is_some_and(Kind::routes) { 19 } else { 18 };
        [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, network, 0, 2)]
    }
}

/// The device's two interfaces, as hosts that hands can be laid on like the others.
pub(crate) fn ports() -> Result<[Host; 2], LabError> {
    let namespace = Namespace::new()?;
    let port = |namespace, interface, number, address| Host {
        namespace,
        interface,
        mac: [0x02, 0, 0, 0, 1, number],
        address,
    };
    Ok([
        port(namespace.try_clone()?, DEVICE_NEAR, 1, Ipv4Addr::new(198, 18, 255, 254)),
        port(namespace, DEVICE_FAR, 2, Ipv4Addr::new(198, 19, 255, 254)),
    ])
}

/// Makes the namespace of `ports`, which are up, forward between them as `device` says.
pub(crate) fn set_up(device: &Device, ports: &[Host; 2], ends: [&Host; 2]) -> Result<(), LabError> {
    match device.kind {
        Kind::Bridge | Kind::Hub => bridge(ports, device.kind == Kind::Bridge)?,
        Kind::Router | Kind::Nat(_) => {
            for (port, end) in ports.iter().zip(ends) {
                route(port, end)?;
            }
        }
        Kind::Program => {}
    }
    if let (Kind::Nat(limits), [near, _]) = (device.kind, ports) {
        nat::translate(near, limits)?;
    }
    burden(device, ports)
}

/// The same of several ports, of which each has one of `ends` for a neighbour.
pub(crate) fn set_up_between(device: &Device, ports: &[Host], ends: &[Host]) -> Result<(), LabError> {
    match device.kind {
        Kind::Bridge | Kind::Hub => bridge(ports, device.kind == Kind::Bridge)?,
        // The networks of several ports are alike: there is nothing to be translated for.
        Kind::Router | Kind::Nat(_) => {
            for (port, end) in ports.iter().zip(ends) {
                let [first, second, network, _] = end.address.octets();
                let network = Ipv4Addr::new(first, second, network, 0);
                forward(port, end, (network, 24))?;
            }
        }
        Kind::Program => {}
    }
    burden(device, ports)
}

/// Limits and losses, at each port.
fn burden(device: &Device, ports: &[Host]) -> Result<(), LabError> {
    for port in ports {
        if let Some(bottleneck) = &device.bottleneck {
            limit(port, bottleneck)?;
        }
        if let Some(loss) = device.loss {
            loss::lose(port, loss.frames, loss.of)?;
        }
    }
    Ok(())
}

const IFLA_BR_AGEING_TIME: u16 = 4;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_BR_MCAST_QUERIER: u16 = 25;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;

/// A bridge over the ports, which may learn where addresses are, that says nothing itself: it has no spanning tree, and asks for no multicast groups.
fn bridge(ports: &[Host], learns: bool) -> Result<(), LabError> {
    let Some(first) = ports.first() else { return Ok(()) };
    let namespace = &first.namespace;
    let mut socket = route_socket(first)?;
    let create = Message::new(libc::RTM_NEWLINK, CREATE)
        .link(0, 0, 0)
        .attr_str(libc::IFLA_IFNAME, BRIDGE)
        .nest(libc::IFLA_LINKINFO, |info| {
            info.attr_str(IFLA_INFO_KIND, "bridge").nest(IFLA_INFO_DATA, |data| {
                let quiet = data.attr(IFLA_BR_MCAST_SNOOPING, &[0]).attr(IFLA_BR_MCAST_QUERIER, &[0]);
                // What it would forget at once it does not learn (net/bridge/br_fdb.c, br_fdb_update).
                if learns { quiet } else { quiet.attr_u32(IFLA_BR_AGEING_TIME, 0) }
            })
        });
    request(&mut socket, create, "create the device's bridge")?;
    veth::silence(&mut socket, BRIDGE)?;
    let index = veth::index(namespace, BRIDGE)?;
    for port in ports {
        let join = Message::new(libc::RTM_SETLINK, REQUEST)
            .link(0, 0, 0)
            .attr_str(libc::IFLA_IFNAME, port.interface)
            .attr_u32(libc::IFLA_MASTER, index);
        request(&mut socket, join, &format!("put {} into the device's bridge", port.interface))?;
    }
    veth::bring_up(&mut socket, BRIDGE)
}

const IFLA_INET_CONF: u16 = 1;
/// Numbers of `linux/ip.h`.
const IPV4_DEVCONF_FORWARDING: u16 = 1;
const IPV4_DEVCONF_SEND_REDIRECTS: u16 = 5;
const RTA_GATEWAY: u16 = 5;
const RTA_OIF: u16 = 4;
const RTA_DST: u16 = 1;

/// Makes `port` route to the half of the benchmark network that is `end`'s, and `end` send the other half here. Each
/// half has one host, which everything in it is sent to: nobody asks for an address.
fn route(port: &Host, end: &Host) -> Result<(), LabError> {
    let [_, half, ..] = end.address.octets();
    forward(port, end, (Ipv4Addr::new(198, half, 0, 0), 16))?;
    let mut socket = route_socket(end)?;
    let far = veth::index(&end.namespace, end.interface)?;
    veth::set_addresses(&mut socket, far, end, port, 32)?;
    reach(&mut socket, far, (port.address, 32), None)?;
    reach(&mut socket, far, (Ipv4Addr::new(198, 18, 0, 0), 15), Some(port.address))
}

/// Makes `port` route, and send everything to a network to `end`.
fn forward(port: &Host, end: &Host, network: (Ipv4Addr, u8)) -> Result<(), LabError> {
    let mut socket = route_socket(port)?;
    let name = port.interface;
    let forward = Message::new(libc::RTM_SETLINK, REQUEST)
        .link(0, 0, 0)
        .attr_str(libc::IFLA_IFNAME, name)
        .nest(libc::IFLA_AF_SPEC, |families| {
            families.nest(libc::AF_INET as u16, |inet| {
                inet.nest(IFLA_INET_CONF, |conf| {
                    conf.attr_u32(IPV4_DEVCONF_FORWARDING, 1).attr_u32(IPV4_DEVCONF_SEND_REDIRECTS, 0)
                })
            })
        });
    request(&mut socket, forward, &format!("make {name} forward"))?;
    let near = veth::index(&port.namespace, name)?;
    veth::set_addresses(&mut socket, near, port, end, 32)?;
    reach(&mut socket, near, (end.address, 32), None)?;
    reach(&mut socket, near, network, Some(end.address))
}

/// A route out of the interface `index`.
fn reach(
    socket: &mut Socket,
    index: u32,
    (network, bits): (Ipv4Addr, u8),
    gateway: Option<Ipv4Addr>,
) -> Result<(), LabError> {
    let scope = if gateway.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
    // struct rtmsg: family, lengths of destination and source, TOS, table, protocol, scope, type, flags.
    let fixed = [
        libc::AF_INET as u8,
        bits,
        0,
        0,
        libc::RT_TABLE_MAIN,
        libc::RTPROT_STATIC,
        scope,
        libc::RTN_UNICAST,
        0,
        0,
        0,
        0,
    ];
    let mut route = Message::new(libc::RTM_NEWROUTE, CREATE)
        .fixed(&fixed)
        .attr(RTA_DST, &network.octets())
        .attr_u32(RTA_OIF, index);
    if let Some(gateway) = gateway {
        route = route.attr(RTA_GATEWAY, &gateway.octets());
    }
    request(socket, route, &format!("make a route to {network}/{bits}"))
}

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_H_ROOT: u32 = u32::MAX;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Puts a token bucket before what leaves by `port`.
fn limit(port: &Host, bottleneck: &Bottleneck) -> Result<(), LabError> {
    let index = veth::index(&port.namespace, port.interface)?;
    let bytes_per_second = bottleneck.bits_per_second / 8;
    // struct tcmsg: family, padding, interface, handle, parent, info.
    let mut message = vec![0; 4];
    for word in [index, 0, TC_H_ROOT, 0] {
        message.extend_from_slice(&word.to_ne_bytes());
    }
    // struct tc_tbf_qopt: two struct tc_ratespec (the second, of the peak rate, unused), limit, buffer, mtu. The rate
    // and the burst are in attributes of their own, because these fields are short of bits.
    let mut parameters = vec![0, TC_LINKLAYER_ETHERNET];
    parameters.extend_from_slice(&bottleneck.overhead.to_ne_bytes());
    parameters.extend_from_slice(&[0; 4]);
    parameters.extend_from_slice(&u32::try_from(bytes_per_second).unwrap_or(u32::MAX).to_ne_bytes());
    parameters.extend_from_slice(&[0; 12]);
    for word in [bottleneck.queue, 0, 0] {
        parameters.extend_from_slice(&word.to_ne_bytes());
    }
    let add = Message::new(libc::RTM_NEWQDISC, CREATE).fixed(&message).attr_str(TCA_KIND, "tbf").nest(
        TCA_OPTIONS,
        |options| {
            options
                .attr(TCA_TBF_PARMS, &parameters)
                .attr(TCA_TBF_RATE64, &bytes_per_second.to_ne_bytes())
                .attr_u32(TCA_TBF_BURST, bottleneck.burst)
        },
    );
    request(&mut route_socket(port)?, add, &format!("put a token bucket (tbf) at {}", port.interface))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_shares_in_lowest_terms() {
        let parse = |text: &str| text.parse::<Loss>().map(|loss| (loss.frames, loss.of)).ok();
        assert_eq!(parse("1%"), Some((1, 100)));
        assert_eq!(parse("2.5%"), Some((1, 40)));
        assert_eq!(parse("0.001%"), Some((1, 100_000)));
        assert_eq!(parse("100%"), Some((1, 1)));
        assert_eq!(parse("30/1000"), Some((3, 100)));
        for bad in [
            "",
            "%",
            "0%",
            "101%",
            "1",
            "0.01",
            "1/0",
            "0/0",
            "-1%",
            "+1%",
            "1e3%",
            "1%%",
            "5000000000/1",
            "0.0000000001%",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
