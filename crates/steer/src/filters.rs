//! The filters that the programs hang on: of `clsact`, which stay when the process that made them dies. Each has a number by which it
//! is found again.

use bpf::{ProgramError, Quiet};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapHandle, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};
use port::interface::Interface;
use port::netlink::{CREATE, DUMP, Message, NetlinkError, REQUEST, Socket, read_u16, read_u32};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use crate::programs::Maps;

/// "nd" and which family: the filters' handle.
const HANDLE: u32 = 0x6e_64_00;
/// Before all others of their hook.
const PRIORITY: u32 = 1;
/// TC_H_CLSACT.
const CLSACT: u32 = 0xffff_fff1;
/// Its two hooks: TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), and the same of TC_H_MIN_EGRESS.
const HOOKS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];
const TCA_KIND: u16 = 1;
/// ARPHRD_ETHER, ARPHRD_LOOPBACK.
const FRAMED: [u16; 2] = [1, LOOPBACK];
const LOOPBACK: u16 = 772;

/// Which of the two hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Ingress,
    Egress,
}

impl Side {
    fn point(self) -> TcAttachPoint {
        match self {
            Side::Ingress => TC_INGRESS,
            Side::Egress => TC_EGRESS,
        }
    }
}

/// An interface that there is: its number, whether its packets have an Ethernet header, and whether they leave the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub is_ethernet: bool,
    pub is_loopback: bool,
}

/// All of this network namespace.
pub fn links(socket: &mut Socket) -> io::Result<Vec<Link>> {
    let all =
        socket.request(Message::new(libc::RTM_GETLINK, DUMP).link(0, 0, 0)).map_err(io::Error::other)?;
    // struct ifinfomsg: family, padding, type, index.
    let link = |message: &Vec<u8>| {
        let kind = read_u16(message, 2)?;
        let (is_ethernet, is_loopback) = (FRAMED.contains(&kind), kind == LOOPBACK);
        Some(Link { index: read_u32(message, 4)?, is_ethernet, is_loopback })
    };
    Ok(all.iter().filter_map(link).collect())
}

fn hook(program: impl AsFd, index: u32, side: Side, is_v6: bool) -> TcHook {
    let mut builder = TcHookBuilder::new(program.as_fd());
    builder.ifindex(index as i32).handle(HANDLE | u32::from(is_v6)).priority(PRIORITY).replace(false);
    builder.hook(side.point())
}

/// Attaches a program at an interface. True: its clsact qdisc was made for that.
pub fn attach(program: impl AsFd, index: u32, side: Side, is_v6: bool) -> io::Result<bool> {
    let _quiet = Quiet::start();
    let made = make_qdisc(index)?;
    let mut hook = hook(program, index, side, is_v6);
    hook.attach().map_err(|error| told(&error))?;
    Ok(made)
}

/// Makes sure that an interface has a clsact qdisc, which filters hang on. True: it had none.
fn make_qdisc(index: u32) -> io::Result<bool> {
    let words = tcmsg(index, CLSACT & 0xffff_0000, CLSACT).map(u32::to_ne_bytes);
    let message =
        Message::new(libc::RTM_NEWQDISC, CREATE).fixed(words.as_flattened()).attr_str(TCA_KIND, "clsact");
    match Socket::route().and_then(|mut socket| socket.request(message)) {
        Ok(_) => Ok(true),
        Err(error) if error.errno() == Some(Errno::EXIST) => Ok(false),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn told(error: &libbpf_rs::Error) -> io::Error {
    io::Error::other(Quiet::refusal(&format!("{error:#}")))
}

/// The number of the program that hangs there on a filter of ours.
pub fn attached(index: u32, side: Side, is_v6: bool) -> Option<u32> {
    let _quiet = Quiet::start();
    // Asking needs no program.
    hook(io::stdin(), index, side, is_v6).query().ok().filter(|id| *id > 0)
}

/// Takes our filter away, and no other.
pub fn detach(index: u32, side: Side, is_v6: bool) {
    let _quiet = Quiet::start();
    // One that is not there is what is wanted.
    let _ = hook(io::stdin(), index, side, is_v6).detach();
}

/// struct tcmsg: family, padding, interface, handle, parent, info.
fn tcmsg(index: u32, handle: u32, parent: u32) -> [u32; 5] {
    [0, index, handle, parent, 0]
}

/// Takes a clsact qdisc away, which was made for our filters, if nothing hangs on it any more: with it everybody's filters would go.
pub fn remove_qdisc(index: u32) {
    if let Ok(mut socket) = Socket::route()
        && matches!(is_empty(&mut socket, index), Ok(true))
    {
        let words = tcmsg(index, CLSACT & 0xffff_0000, CLSACT).map(u32::to_ne_bytes);
        let message = Message::new(libc::RTM_DELQDISC, REQUEST).fixed(words.as_flattened());
        // One that is gone is what is wanted.
        let _ = socket.request(message.attr_str(TCA_KIND, "clsact"));
    }
}

/// Hangs no filter on an interface's clsact qdisc, whoever's?
fn is_empty(socket: &mut Socket, index: u32) -> Result<bool, NetlinkError> {
    for parent in HOOKS {
        let words = tcmsg(index, 0, parent).map(u32::to_ne_bytes);
        let all = socket.request(Message::new(libc::RTM_GETTFILTER, DUMP).fixed(words.as_flattened()))?;
        if !all.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The maps of a program of ours that is attached.
pub fn maps_of(program: u32) -> Option<Maps> {
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let info = ProgInfoIter::with_query_opts(options).find(|info| info.id == program)?;
    let all: Vec<MapHandle> = info.map_ids.iter().filter_map(|id| MapHandle::from_map_id(*id).ok()).collect();
    let named = |name: &str| {
        let found = all.iter().find(|map| {
            use libbpf_rs::MapCore;
            map.name() == name
        });
        found.and_then(|map| MapHandle::try_from(map).ok())
    };
    Some(Maps {
        flows: named("flows")?,
        lease: named("lease")?,
        counts: named("counts")?,
        made: named("made")?,
    })
}

/// The interface of this name.
pub fn by_name(name: &str) -> Result<Interface, ProgramError> {
    Interface::by_name(name).map_err(|_| ProgramError::NoSuchInterface(name.to_owned()))
}

/// Why the kernel would drop copies: strict reverse-path filtering wants the route to a client to leave by the interface that the client's
/// packets come in by. A test address stands for clients.
pub fn reverse_path(on: &str, engine: IpAddr) -> Option<String> {
    let client: IpAddr = match engine {
        IpAddr::V4(_) => Ipv4Addr::new(198, 18, 0, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1).into(),
    };
    let way = port::resolve::way_out(client).ok()?;
    let Some(way) = way else {
        return Some(format!(
            "there is no default route (tried {client}): copies of clients that there is a route to are answered; have `netdyno clone` try the \
             way by one of their addresses, `.test_address`"
        ));
    };
    let read = |name: &str| -> Option<u32> {
        let file = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    let strict = engine.is_ipv4() && read("all").max(read(on)) == Some(1);
    (strict && way != on).then(|| {
        format!(
            "rp_filter is 1 at {on}, and the route to clients (tried {client}) leaves by {way}: the kernel drops copies there; \
             run the agent at {way}, or allow loose filtering: sysctl net.ipv4.conf.{on}.rp_filter=2"
        )
    })
}
