//! What keeps a clone from doing harm, and from counting nothing without a word: targets that are refused, the connection that is
//! tried before all others, and what the first seconds of a capture must show.

use crate::place::Place;
use anyhow::{Result, bail};
use clone::funnel::{Frames, Sessions};
use port::local::within;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use spec::Cloning;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// The canary's connection has so long to come about, in seconds.
const CANARY_S: i64 = 2;
/// After so long the capture is judged.
pub const LOOK_NS: u64 = 3_000_000_000;

/// Refuses targets that would harm somebody.
pub fn refuse(
    args: &Cloning,
    (server, port): (Option<IpAddr>, u16),
    (member, to): (&str, SocketAddr),
    place: Option<&Place>,
) -> Result<()> {
    if server == Some(to.ip()) && to.port() == port {
        bail!("`.{member}` {to} is the server that is copied: give another target");
    }
    if to.ip().is_unspecified() || to.ip().is_multicast() || to.port() == 0 {
        bail!("`.{member}` {to} is no address of a server");
    }
    if !args.public_target && !is_private(to.ip()) {
        bail!(
            "`.{member}` {to} is a public address: copies of real clients' data are not sent there, unless `.public_target` \
             says so"
        );
    }
    if let Some((first, bits)) = args.prefix() {
        if first.is_ipv4() != to.is_ipv4() {
            bail!("`.source_prefix` {first}/{bits} and `.{member}` {to} are not of one family");
        }
        let inside = |address: IpAddr| within(address, first, bits);
        for (what, address) in [(member, Some(to.ip())), ("server", server)] {
            if let Some(address) = address.filter(|address| inside(*address)) {
                bail!(
                    "`.{what}` {address} lies in `.source_prefix` {first}/{bits}, which becomes this host's own: give another prefix"
                );
            }
        }
    }
    if let Some((first, bits)) = args.prefix()
        && bits < if first.is_ipv4() { 32 } else { 128 }
        && let Some(own) = port::local::addresses()?.into_iter().find(|own| within(*own, first, bits))
    {
        bail!(
            "`.source_prefix` {first}/{bits} is of a network that this host is in, by {own}: while copies come from it, no other host of it could be reached; give a prefix that is nobody's, such as 198.18.0.0/24"
        );
    }
    if let Some((first, bits)) = args.prefix()
        && let Some(used) = port::local::used(first, bits)?
    {
        bail!(
            "`.source_prefix` {first}/{bits} becomes this host's own, and {used}: what is there could not be reached; give a prefix that is \
             nobody's, such as 198.18.0.0/24"
        );
    }
    if args.client_addresses && is_here(to.ip()) {
        bail!("`.{member}` {to} is this host: copies with clients' addresses go to another one");
    }
    let Some(place) = place else { return Ok(()) };
    if is_reached(place, (server, port), to)? {
        match server {
            // A server of any address and this port: the target would be one as well.
            None => bail!(
                "`.{member}` {to} is an address of the host whose port {port} is copied: copies would be copied again; give the \
                 server's address ({}:ADDR:{port}), or another target",
                place.spec
            ),
            Some(server) => bail!(
                "`.{member}` {to} is another address of the server that is copied, {}: copies would go to production; give another \
                 target",
                SocketAddr::new(server, port)
            ),
        }
    }
    Ok(())
}

/// The calling thread's network namespace.
fn namespace() -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let file = std::fs::metadata("/proc/thread-self/ns/net")?;
    Ok((file.dev(), file.ino()))
}

/// Does `to` lead to the server whose traffic is captured there, by whichever of its host's addresses?
pub fn is_reached(place: &Place, (server, port): (Option<IpAddr>, u16), to: SocketAddr) -> Result<bool> {
    if to.port() != port {
        return Ok(false);
    }
    let here = namespace()?;
    place.run_in(|| -> Result<bool> {
        // Each namespace has a loopback of its own.
        let own = if to.ip().is_loopback() { namespace()? == here } else { is_here(to.ip()) };
        Ok(own && server.is_none_or(|server| is_served_alike(server, to.ip(), port)))
    })?
}

/// Are both addresses of this host, in the calling thread's network namespace, one server's? If its sockets are not to be found, they are.
fn is_served_alike(server: IpAddr, other: IpAddr, port: u16) -> bool {
    if server == other {
        return true;
    }
    if !is_here(server) {
        return false;
    }
    let all = listening(port);
    // A socket that is bound to an address comes before those of any.
    let of = |address: IpAddr| -> Vec<u64> {
        let bound = |wanted: &dyn Fn(IpAddr) -> bool| -> Vec<u64> {
            all.iter().filter(|(at, _)| wanted(*at)).map(|(_, inode)| *inode).collect()
        };
        let own = bound(&|at| at == address.to_canonical());
        if own.is_empty() {
            bound(&|at| at.is_unspecified() && (address.is_ipv4() || at.is_ipv6()))
        } else {
            own
        }
    };
    let (ours, theirs) = (of(server), of(other));
    if ours.is_empty() || theirs.is_empty() {
        return true;
    }
    ours.iter().any(|inode| theirs.contains(inode)) || of_one_program(&ours, &theirs)
}

/// Sockets of this network namespace that listen at a port: their addresses, and their numbers.
fn listening(port: u16) -> Vec<(IpAddr, u64)> {
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        // TCP_LISTEN is 0A.
        let lines = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        for fields in lines.filter(|fields| fields.get(3) == Some(&"0A")) {
            let end = fields.get(1).and_then(|end| end.rsplit_once(':'));
            let inode = fields.get(9).and_then(|inode| inode.parse().ok());
            if let (Some((address, at)), Some(inode)) = (end, inode)
                && u16::from_str_radix(at, 16) == Ok(port)
                && let Some(address) = address_of(address)
            {
                found.push((address, inode));
            }
        }
    }
    found
}

/// An address of /proc/net/tcp: words of 32 bits in hexadecimal, as the host has them.
fn address_of(hex: &str) -> Option<IpAddr> {
    let words =
        hex.as_bytes().chunks(8).map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
    let bytes: Vec<u8> =
        words.collect::<Option<Vec<u32>>>()?.iter().flat_map(|word| word.to_ne_bytes()).collect();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(bytes) => Some(IpAddr::from(bytes)),
        Err(_) => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()),
    }
}

/// Does a process have one of each?
fn of_one_program(ours: &[u64], theirs: &[u64]) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    let name = |inode: &u64| format!("socket:[{inode}]");
    let [ours, theirs] = [ours, theirs].map(|all| all.iter().map(name).collect::<Vec<_>>());
    processes.flatten().any(|process| {
        let Ok(files) = std::fs::read_dir(process.path().join("fd")) else { return false };
        let links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        let (mut one, mut other) = (false, false);
        for link in links {
            let link = link.to_string_lossy();
            one |= ours.iter().any(|name| *name == link);
            other |= theirs.iter().any(|name| *name == link);
        }
        one && other
    })
}

/// Is it an address of this host, in the calling thread's network namespace?
pub fn is_here(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Of addresses that nobody in the Internet has: RFC 1918, 6598, 4193, 2544, 5180, loopback, link-local and documentation.
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_documentation()
                || (a == 100 && b & 0xc0 == 64)
                || (a == 198 && b & 0xfe == 18)
        }
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            v6.is_loopback()
                || a & 0xfe00 == 0xfc00
                || a & 0xffc0 == 0xfe80
                || (a == 0x2001 && (b == 0xdb8 || (b, c) == (2, 0)))
        }
    }
}

/// How copies' packets come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the host's own address.
    Host,
    /// From a prefix, which the target has a route for.
    Prefix,
    /// From clients' addresses, through a tunnel.
    Tunnel,
}

/// A connection to the target, as copies will be made, before the first of them: nothing is begun whose answers find no way back.
pub fn canary(to: SocketAddr, from: Option<SocketAddr>, way: Way) -> Result<()> {
    let own = from.map_or_else(String::new, |from| format!(" from {}", from.ip()));
    let socket = match super::copies::begin(to, from) {
        Ok(socket) => socket,
        Err(errno) => bail!("the target {to} cannot be connected to{own}: {errno}"),
    };
    let mut asked = [PollFd::new(&socket, PollFlags::OUT)];
    let there = poll(&mut asked, Some(&Timespec { tv_sec: CANARY_S, tv_nsec: 0 }))?;
    if there == 0 {
        let remedy = match way {
            Way::Prefix => {
                "the target's answers need a route for `.source_prefix` to this host (on the target: ip route add PREFIX via THIS-HOST)"
            }
            Way::Tunnel => {
                "the return agent lets packets in, so: does the server listen there, has the target a route to that address (a default \
                 route; else give one of its clients' as `.test_address`), does rp_filter there allow them by the agent's interface, and does its NIC get checksums within a tunnel right (if \
                 not: ethtool -K IFACE tx off)?"
            }
            Way::Host => "is it the right address, and does a firewall drop connections?",
        };
        bail!(
            "the target {to} does not answer a connection{own} within {CANARY_S} s: nothing was begun; {remedy}"
        );
    }
    match sockopt::socket_error(&socket)? {
        Ok(()) => {}
        Err(errno) => bail!("the target {to} cannot be connected to{own}: {errno}; nothing was begun"),
    }
    Ok(())
}

/// What tcpdump takes for the server's frames.
pub fn filter((server, port): (Option<IpAddr>, u16)) -> String {
    match server {
        Some(server) => format!("tcp and host {server} and port {port}"),
        None => format!("tcp and port {port}"),
    }
}

/// What is wrong with what was captured, and the filter that would be right.
pub fn direction(
    args: &Cloning,
    (server, port): (Option<IpAddr>, u16),
    frames: &Frames,
    sessions: &Sessions,
) -> Option<String> {
    let filter = filter((server, port));
    let listening = args.listen.as_ref().map(|listen| format!("the captures that connect to {listen}"));
    let at = args.on.as_deref().or(listening.as_deref()).unwrap_or("the captures");
    let look = match &args.on {
        None if args.listen.is_some() => {
            format!("on their hosts: netdyno clone capture, and compare with: tcpdump -ni IFACE '{filter}'")
        }
        Some(on) => {
            let name = on.split('@').next().unwrap_or(on);
            format!("compare with: tcpdump -ni {name} '{filter}'")
        }
        None => format!("the captures need what `{filter}` takes, both directions"),
    };
    let (clients, answers) = (frames.from_clients, frames.from_server);
    if clients + answers == 0 {
        let seen = match frames.captured {
            0 => "no frame".to_owned(),
            other => format!("{} of others", report::units::counted(other, "frame")),
        };
        return Some(format!(
            "nothing of a TCP server at {} was captured at {at} ({seen}): is it the interface that its clients' packets come in by, \
             and the server's port? {look}",
            server.map_or_else(|| format!("port {port}"), |server| SocketAddr::new(server, port).to_string())
        ));
    }
    if clients == 0 {
        return Some(format!(
            "only one direction is captured at {at}: {} from port {port}, none to it. What clients say is not there, so that \
             nothing can be copied: is the server's port right, or does the mirror lack a direction? {look}",
            report::units::counted(answers, "segment")
        ));
    }
    if answers == 0 {
        return Some(format!(
            "only one direction is captured at {at}: {} to port {port}, none from it. Without answers it is not known what the \
             server took, and nothing is compared: do they leave by another interface? {look}",
            report::units::counted(clients, "segment")
        ));
    }
    if frames.syn_acks_alone > 0 && frames.syns == 0 {
        return Some(format!(
            "{} without a SYN are captured at {at}: sessions' first segments come in by another way; {look}",
            report::units::counted(frames.syn_acks_alone, "SYN-ACK")
        ));
    }
    let taken = sessions.copied + sessions.adopted;
    if frames.syns == 0 && taken == 0 && sessions.waiting + sessions.midstream > 0 {
        return Some(format!(
            "{} were open before the start, and none began since: with `.adopt` {} they are not copied; give \
             `.adopt` idle or http-boundary",
            report::units::counted(sessions.waiting + sessions.midstream, "session"),
            args.adopt
        ));
    }
    None
}
