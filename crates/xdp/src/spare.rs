//! Spare devices: where a program is attached before it is run, so that running it changes nothing in the kernel.
//!
//! The kernel keeps a list of XDP programs (its dispatcher) that it can jump to directly. A program that runs live frames
//! and is not in the list enters it when the call begins and leaves it when the call ends, and each change waits until all
//! CPUs have left their RCU read sections: milliseconds a call, and as long as another core's call lasts. A program that is
//! attached anywhere is in the list already; then a call only counts up. So each program is attached to a device that
//! nobody sends through: one end of a veth pair, in a network namespace that has no name. Descriptors hold the namespace
//! and the link, so that all goes with the process, however it ends.
//!
//! ```text
//!   namespace (one a process)    veth 1000 <--> veth 1001    veth 1002 <--> ...      down, never up
//!                                    |              |            |
//!                                 program        program      program
//! ```

use crate::XdpError;
use crate::sys::new_namespace;
use bpf::{Hook, Link, Program};
use port::netlink::{CREATE, Message, Socket};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program that the dispatcher knows, for as long as this is kept.
#[derive(Debug)]
pub struct Known {
    /// Closed before the device is given to another program.
    link: Option<Link>,
    /// The device's number in the process's namespace.
    device: Option<u32>,
    /// Where there is no veth: a namespace of its own, whose loopback device holds the program.
    _own: Option<File>,
}

/// The process's spare devices.
#[derive(Debug)]
struct Spares {
    namespace: File,
    free: Vec<u32>,
    /// Number of the next device to be made.
    next: u32,
}

static SPARES: Mutex<Option<Spares>> = Mutex::new(None);

/// Numbers of our devices: far above those that a kernel gives the ones it puts into every namespace.
const FIRST: u32 = 1000;
const LOOPBACK: u32 = 1;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;

/// Makes `program` known to the dispatcher. Waits for RCU: no live frames of the caller may be under way.
///
/// # Errors
/// That the kernel does not take it.
pub fn attach(program: &Program) -> Result<Known, XdpError> {
    on_a_veth(program).or_else(|error| match error {
        Errno::PERM | Errno::ACCESS => Err(XdpError::Permission),
        // A kernel without veth. The generic hook of a loopback device is entered into the list just so; it makes the
        // whole machine look for such programs with each packet, so it is not the first choice.
        error => on_loopback(program).map_err(|_| XdpError::NoSpare { error }),
    })
}

fn on_a_veth(program: &Program) -> Result<Known, Errno> {
    let (namespace, device, pair) = {
        let mut spares = spares();
        let spares = match &mut *spares {
            Some(spares) => spares,
            none => none.insert(Spares { namespace: new_namespace()?, free: Vec::new(), next: FIRST }),
        };
        let namespace = spares.namespace.try_clone().map_err(|_| Errno::MFILE)?;
        match spares.free.pop() {
            Some(device) => (namespace, device, false),
            None => {
                let device = spares.next;
                spares.next += 2;
                (namespace, device, true)
            }
        }
    };
    let link = within(&namespace, || {
        if pair {
            make_pair(device)?;
            spares().iter_mut().for_each(|spares| spares.free.push(device + 1));
        }
        program
            .attach(device, Hook::XdpNative)
            .inspect_err(|_| spares().iter_mut().for_each(|spares| spares.free.push(device)))
    })?;
    Ok(Known { link: Some(link), device: Some(device), _own: None })
}

fn on_loopback(program: &Program) -> Result<Known, Errno> {
    let namespace = new_namespace()?;
    let link = within(&namespace, || program.attach(LOOPBACK, Hook::XdpGeneric))?;
    Ok(Known { link: Some(link), device: None, _own: Some(namespace) })
}

/// Runs something in a namespace, in a thread that ends there.
fn within<T: Send>(namespace: &File, work: impl FnOnce() -> Result<T, Errno> + Send) -> Result<T, Errno> {
    std::thread::scope(|scope| {
        let inside = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        scope.spawn(inside).join().unwrap_or(Err(Errno::FAULT))
    })
}

/// A veth pair with these numbers, `device` and the one after it, in the calling thread's namespace.
fn make_pair(device: u32) -> Result<(), Errno> {
    let create =
        Message::new(libc::RTM_NEWLINK, CREATE).link(device, 0, 0).nest(libc::IFLA_LINKINFO, |info| {
            info.attr_str(IFLA_INFO_KIND, "veth")
                .nest(IFLA_INFO_DATA, |data| data.nest(VETH_INFO_PEER, |peer| peer.link(device + 1, 0, 0)))
        });
    let made = Socket::route().and_then(|mut socket| socket.request(create));
    made.map(drop).map_err(|error| error.errno().unwrap_or(Errno::IO))
}

fn spares() -> MutexGuard<'static, Option<Spares>> {
    SPARES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Known {
    fn drop(&mut self) {
        self.link = None;
        if let Some(device) = self.device {
            spares().iter_mut().for_each(|spares| spares.free.push(device));
        }
    }
}
